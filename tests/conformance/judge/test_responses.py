"""Responses that leave late, epochs that are asked for, and whom a request concerns.

test_rules.py has one trace for and one against each rule; here are second checks and other branches of a rule, which
mutants of the judge slipped by (tests/mutation/kernel.py).
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.conformance.hand import COPIED, OPENING, TWO, append, bent, broken, change, follow, reported, send, serve, take
from tidegauge.traces.schema import Event

DELAYED = (
    *COPIED,
    send(2, 1, 0, 1, 0),
    reported(1, "HandleFetch", peer=2, req_epoch=0, req_offset=1, req_last_epoch=0, error=0, remote_leo=1, leo=1, hw=1),
    append(1, 0, 1, 1, 1),
)
"""Broker 2 asks for offset 1 and waits; then record 1 is there."""


def answered(offset: int = 1, end: int = 2, **fields: object) -> Event:
    """The delayed response to the fetch of broker 2."""
    request = {"peer": 2, "req_epoch": 0, "req_offset": 1, "req_last_epoch": 0}
    response = {"error": 0, "res_hw": 1, "rec_base": offset, "rec_end": end, "rec_epoch": 0}
    return reported(1, "AnswerFetch", **{**request, **response, **fields})


TAKEN = take(2, 1, 0, 1, res_hw=1, hw_before=0, hw=1)
DEPOSED = (change(2, 1, (1, 2)), follow(1, 2, 1, leo=2, hw=1))


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        ((*DELAYED, answered(), TAKEN), set()),
        ((*DELAYED, answered(res_hw=0)), {"FETCH-08"}),
        ((*DELAYED, answered(res_hw=2)), {"FETCH-08"}),
        ((*DELAYED, answered(end=3)), {"FETCH-06"}),
        ((*DELAYED, answered(offset=0)), {"FETCH-06"}),
        ((*DELAYED, answered(rec_epoch=1)), {"FETCH-06"}),
        ((*DELAYED, answered(), *bent((TAKEN,), 0, rec_end=1, leo=1)), {"FETCH-10"}),
        ((*DELAYED, answered(), *bent((TAKEN,), 0, res_hw=0, hw=0)), {"FETCH-10"}),
        ((*DELAYED, answered(req_offset=0), TAKEN), set()),
        ((*DELAYED, *DEPOSED, answered()), {"FENCE-02"}),
        ((*DELAYED, *DEPOSED, answered(end=1, res_hw=0)), set()),
        ((*DELAYED, answered(error=6), TAKEN), {"FETCH-10"}),
        ((*DELAYED, answered(error=6), reported(2, "HandleFetchError", peer=1), send(2, 1, 0, 1, 0)), set()),
        ((*DELAYED, reported(1, "AnswerFetch", peer=2, req_offset=1, div_epoch=0, div_end=0)), {"FETCH-05"}),
    ],
    ids=[
        "as the leader has it",
        "a high watermark before it waited",
        "a high watermark the leader has not",
        "more than there is",
        "not at the fetch offset",
        "of another epoch",
        "fewer records taken",
        "another high watermark taken",
        "of another fetch",
        "records of a leader that was deposed",
        "nothing of a leader that was deposed",
        "refused, and taken all the same",
        "refused",
        "diverging where nothing diverges",
    ],
)
def test_a_delayed_response_is_read_again_when_it_leaves(events: Sequence[Event], rules: set[str]) -> None:
    """DelayedFetch#onComplete: the leader's records and high watermark are those of then."""
    assert broken(events) == rules


def epoch_response(**fields: object) -> Event:
    said = {"req_epoch": 0, "req_last_epoch": 0, "error": 0, "div_epoch": 0, "div_end": 1, "target": 1, "completed": True}
    return reported(2, "HandleEpochResponse", peer=1, **{**said, "leo_before": 1, "leo": 1, "hw": 0, **fields})


KIP101 = replace(TWO, profile="kip101")
KIP320 = replace(TWO, profile="kip320")
ASKING = (*COPIED, reported(2, "SendEpochRequest", peer=1, req_epoch=0, req_last_epoch=0))


def responded(**fields: object) -> tuple[Event, ...]:
    said = {"peer": 2, "req_epoch": 0, "req_last_epoch": 0, "error": 0, "div_epoch": 0, "div_end": 1, **fields}
    return (*ASKING, reported(1, "HandleEpochRequest", **said))


REFUSAL = {"error": 6, "div_epoch": None, "div_end": None}


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        (responded(), set()),
        ((*responded(), epoch_response()), set()),
        ((*responded(), epoch_response(div_end=0, target=0, leo=0)), {"FETCH-10"}),
        ((*responded(), epoch_response(div_epoch=-1)), {"FETCH-10"}),
        ((*responded(), epoch_response(target=0, leo=0)), {"TRUNC-01"}),
        ((*responded(), epoch_response(completed=False)), {"TRUNC-01"}),
        ((*responded(), epoch_response(req_epoch=1)), {"FETCH-09", "FETCH-10"}),
        ((*responded(), epoch_response(req_last_epoch=1)), {"FETCH-10"}),
        ((*responded(), epoch_response(), epoch_response()), {"FETCH-10"}),
        (responded(div_end=0), {"EPOCH-05"}),
        (responded(div_epoch=-1), {"EPOCH-05"}),
        (responded(**REFUSAL), {"FENCE-01"}),
        (responded(req_last_epoch=1), {"FETCH-04", "EPOCH-05"}),
        ((*bent(ASKING, -1, req_epoch=1),), {"FETCH-03"}),
        ((*bent(ASKING, -1, peer=2),), {"FETCH-03"}),
        ((*bent(ASKING, -1, req_last_epoch=1),), {"FETCH-02"}),
    ],
)
def test_where_an_epoch_ends_is_asked_answered_and_taken(events: Sequence[Event], rules: set[str]) -> None:
    """EPOCH-05, FETCH-10 and TRUNC-01 of OffsetsForLeaderEpoch: Partition#lastOffsetForLeaderEpoch."""
    assert broken(events, KIP320) == rules


def test_events_with_the_wrong_peer_are_named_for_what_they_are() -> None:
    """A broker asks itself, serves itself, or adds itself to the ISR."""
    assert broken((*OPENING, send(2, 2, 0, 0, -1))) == {"FETCH-03"}
    assert broken((*OPENING, serve(1, 1, 0, 0, -1, 0, 0, 0))) == {"FETCH-04"}
    assert broken((*OPENING, reported(1, "AnswerFetch", peer=1))) == {"FETCH-04"}
    assert broken((*OPENING, reported(1, "HandleEpochRequest", peer=1))) == {"FETCH-04"}
    assert broken((*OPENING, reported(2, "SendEpochRequest", peer=2))) == {"FETCH-03"}
    assert broken((*OPENING, reported(1, "ExpandIsr", peer=1))) == {"ISR-01"}
    assert broken((*OPENING, take(2, 2, 0, 0, 0, 0, 0, count=0))) == {"FETCH-10"}
