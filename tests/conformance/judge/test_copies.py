"""Requests that arrive twice: accepted where the source says so, and no excuse for anything else."""

from dataclasses import replace
from typing import Any

import pytest

from tests.conformance.hand import COPIED, TWO, append, broken, follow, judged, lead, reported, send, serve, take
from tests.conformance.hand import change as registered
from tidegauge.traces.schema import Event

TWICE = replace(TWO, extra={"duplicates": True})
KIP320 = replace(TWICE, profile="kip320")


def copy(offset: int, last: int, **fields: Any) -> Event:
    """The request at `offset` once more: nobody gets the response, so no records are told."""
    whole = serve(1, 2, 0, offset, last, 1, 1, 1).fields
    kept = {name: value for name, value in whole.items() if not name.startswith("rec_")}
    return reported(1, "HandleFetch", **{**kept, **fields})


LATE = (*COPIED, copy(0, -1))
"""The first fetch arrives again when the record is long committed: the leader records the old log end."""

AFTER = (
    *COPIED[:-1],
    copy(1, 0),
    append(1, 0, 1, hw_before=1, hw=1),
    take(2, 1, 0, 1, res_hw=0, hw_before=0, hw=0, count=0),
    send(2, 1, 0, 1, 0),
)
"""The fetch that was answered last arrives again before its response does."""


def test_a_request_that_is_not_in_flight_is_wrong_unless_requests_arrive_twice() -> None:
    """The same events, another word of the source."""
    assert broken(LATE) == {"FETCH-04"}
    assert broken(LATE, TWICE) == set()
    assert judged(LATE, TWICE).tallies["FETCH-04"].undecided == 1


def test_a_late_copy_leaves_what_is_in_flight_as_it_was() -> None:
    """The follower sent another request meanwhile: that one is answered, and taken over, as if nothing had been."""
    begin = (*COPIED, append(1, 0, 1, hw_before=1, hw=1), send(2, 1, 0, 1, 0), copy(0, -1, leo=2))
    response = serve(1, 2, 0, 1, 0, res_hw=1, hw=1, leo=2)
    whole = (*begin, response, take(2, 1, 0, 1, res_hw=1, hw_before=0, hw=1))
    assert broken(whole, TWICE) == set()
    other = (*begin, response, take(2, 1, 0, 1, res_hw=0, hw_before=0, hw=0))
    assert broken(other, TWICE) == {"FETCH-10"}


def test_either_response_may_be_the_one_that_is_taken_over() -> None:
    """A copy with the same words: which response the follower got is open, that it got one is not."""
    assert "FETCH-04" in broken(AFTER)
    assert broken(AFTER, TWICE) == set()
    begin = (*COPIED[:-2], copy(1, 0, res_hw=0, hw_before=0), copy(1, 0))
    newer = (*begin, take(2, 1, 0, 1, res_hw=1, hw_before=0, hw=1, count=0))
    assert broken(newer, TWICE) == set()


@pytest.mark.parametrize(
    ("fields", "rule"),
    [({"remote_leo": 1}, "FETCH-07"), ({"res_hw": 0}, "FETCH-08"), ({"hw": 0}, "HW-03"), ({"error": 74}, "FENCE-01")],
)
def test_a_copy_is_judged_like_any_request(fields: dict[str, int], rule: str) -> None:
    """What it is answered and what is recorded follow the rules."""
    bent = replace(LATE[-1], fields=dict(LATE[-1].fields) | fields)
    assert rule in broken((*COPIED, bent), TWICE)


ASKED = (
    *COPIED,
    registered(1, 1, (1, 2)),
    lead(1, 1, (1, 2), leo=1, hw_before=1, hw=1),
    follow(2, 1, 1, leo=1),
    reported(2, "SendEpochRequest", peer=1, req_epoch=1, req_last_epoch=0),
)
ENDS = reported(1, "HandleEpochRequest", peer=2, req_epoch=1, req_last_epoch=0, error=0, div_epoch=0, div_end=1)
TRUNCATED = {"target": 1, "completed": True, "leo_before": 1, "hw_before": 0, "leo": 1, "hw": 0}
TAKEN = reported(2, "HandleEpochResponse", peer=1, req_epoch=1, error=0, div_epoch=0, div_end=1, **TRUNCATED)


def test_an_epoch_request_may_arrive_twice() -> None:
    """Before its response is taken, or after the next fetch has left: that fetch is still in flight."""
    assert broken((*ASKED, ENDS, ENDS, TAKEN), KIP320) == set()
    fetch = send(2, 1, 1, 1, 0)
    served = serve(1, 2, 1, 1, 0, res_hw=1, hw=1, leo=1)
    taken = take(2, 1, 1, 1, res_hw=1, hw_before=0, hw=1, count=0)
    assert broken((*ASKED, ENDS, TAKEN, fetch, ENDS, served, taken), KIP320) == set()
    assert broken((*ASKED, ENDS, TAKEN, fetch, served, ENDS, taken), KIP320) == set()
    # The copy changes nothing of the fetch that is in flight: what the follower takes over is still compared with it.
    wrong = take(2, 1, 1, 1, res_hw=0, hw_before=0, hw=0, count=0)
    assert broken((*ASKED, ENDS, TAKEN, fetch, served, ENDS, wrong), KIP320) == {"FETCH-10"}
    once = replace(KIP320, extra={})
    assert broken((*ASKED, ENDS, TAKEN, fetch, served, ENDS, taken), once) == {"FETCH-04"}


def test_a_copy_may_be_answered_where_the_first_was_refused() -> None:
    """The leader had not heard of the epoch yet; the follower takes the response of the copy."""
    early = (*ASKED[: len(COPIED)], registered(1, 1, (1, 2)), follow(2, 1, 1, leo=1), ASKED[-1])
    refused = reported(1, "HandleEpochRequest", peer=2, req_epoch=1, req_last_epoch=0, error=75)
    leads = lead(1, 1, (1, 2), leo=1, hw_before=1, hw=1)
    assert broken((*early, refused, leads, ENDS, TAKEN), KIP320) == set()
    assert broken((*early, leads, ENDS, refused, TAKEN), KIP320) == {"FENCE-01"}
    assert broken((*early, refused, leads, TAKEN), KIP320) == {"FETCH-10"}


def test_a_wrong_end_is_wrong_in_a_copy_too() -> None:
    """EPOCH-05 holds for every response."""
    wrong = replace(ENDS, fields=dict(ENDS.fields) | {"div_end": 0})
    assert broken((*ASKED, ENDS, wrong), KIP320) == {"EPOCH-05"}


def test_before_kip_279_a_response_has_no_epoch() -> None:
    """The end alone is right, an epoch beside it is not."""
    kip101 = replace(TWO, profile="kip101")
    alone = replace(ENDS, fields=dict(ENDS.fields) | {"div_epoch": None})
    assert broken((*ASKED, alone), kip101) == set()
    assert broken((*ASKED, ENDS), kip101) == {"EPOCH-05"}
    assert broken((*ASKED, alone), KIP320) == {"EPOCH-05"}


def test_a_copy_of_a_request_that_was_overtaken_leaves_the_one_that_overtook_it() -> None:
    """The leader refuses the old fetch; the question that came after it is still in flight, and answered."""
    overtaken = (*ASKED[: len(COPIED)], send(2, 1, 0, 1, 0), *ASKED[len(COPIED) :])
    refused = reported(1, "HandleFetch", peer=2, req_epoch=0, req_offset=1, req_last_epoch=0, error=74)
    assert broken((*overtaken, refused, ENDS, TAKEN), KIP320) == set()
    assert broken((*overtaken, refused, TAKEN), KIP320) == {"FETCH-10"}
