"""Responses that leave later than their fetch was recorded, told in part: what each part is enough for, and no more."""

from dataclasses import replace
from typing import Any

from tests.conformance.hand import (
    COPIED,
    TWO,
    append,
    broken,
    change,
    either_way,
    follow,
    judged,
    lead,
    reported,
    send,
    start,
    without,
)
from tidegauge.traces.schema import Event

ASKED = {"req_epoch": 0, "req_offset": 1, "req_last_epoch": 0}


def held(**fields: Any) -> Event:
    """The fetch at offset 1 is recorded; its response leaves later."""
    return reported(1, "HandleFetch", peer=2, **{**ASKED, "error": 0, "remote_leo": 1, "hw": 1, "leo": 2, **fields})


def response(**fields: Any) -> Event:
    return reported(1, "AnswerFetch", peer=2, **{**ASKED, **fields})


def taken(**fields: Any) -> Event:
    return reported(2, "HandleFetchResponse", peer=1, **{**ASKED, "error": 0, **fields})


WRITTEN = (*COPIED, append(1, 0, 1, 1, 1), send(2, 1, 0, 1, 0))
WAITS = (*WRITTEN, held())
NOTHING_TO_READ = {"rec_base": 1, "rec_end": 1}
ONE_RECORD = {"rec_base": 1, "rec_end": 2, "rec_epoch": 0}
DIVERGES = {"div_epoch": 0, "div_end": 0}


OPENING_AT_ONE = (
    change(1, 0, (1, 2)),
    lead(1, 0, (1, 2), leo=1, hw_before=1, hw=1),
    follow(2, 1, 0, leo=1, hw=1),
    append(1, 0, 1, 1, 1),
    send(2, 1, 0, 1, -1),
)
"""The logs begin at offset 1."""


def of_unknown_start(*events: Event) -> tuple[Event, ...]:
    """The same behind a start that does not say where the leader's log begins."""
    begun = reported(1, "Start", clean=True, leo=0, hw=0, epochs=())
    return (begun, *WAITS[1:], *events)


def test_a_response_that_says_that_nothing_diverges_is_a_read() -> None:
    """Null where an epoch would end is enough; its high watermark is what the follower takes over."""
    said = response(error=0, div_end=None, res_hw=1)
    assert broken((*WAITS, said, taken(res_hw=1))) == set()
    assert broken((*WAITS, said, taken(res_hw=0))) == {"FETCH-10"}
    said = response(error=0, div_epoch=None, res_hw=1)
    assert broken((*WAITS, said, taken(res_hw=0))) == {"FETCH-10"}


def test_null_is_no_divergence() -> None:
    """Records with null where logs diverge are records: the follower appends them."""
    for null in ({"div_end": None}, {"div_epoch": None}, {"div_end": None, "div_epoch": None}):
        said = response(error=0, res_hw=1, **ONE_RECORD, **null)
        assert broken((*WAITS, said, taken(res_hw=1, **ONE_RECORD, leo=2, hw=1))) == set()


def test_what_a_refusal_does_not_have_shows_that_a_response_is_none() -> None:
    """An end or an epoch alone: its high watermark is held to the leader's. Null in either says nothing of that."""
    for part in ({"rec_base": 1}, {"div_epoch": 0}, {"div_end": 0}):
        assert broken((*WAITS, response(res_hw=5, **part))) >= {"FETCH-08"}
        assert "FETCH-08" not in broken((*WAITS, response(res_hw=1, **part)))
    for null in ({"rec_base": None}, {"div_epoch": None}, {"div_end": None}, {"rec_base": None, "div_end": None}):
        assert broken((*WAITS, response(res_hw=5, **null))) == set()


def test_a_high_watermark_of_null_is_none_to_hold() -> None:
    assert broken((*WAITS, response(error=0, res_hw=None, **NOTHING_TO_READ))) == set()


def test_no_records_need_no_leader() -> None:
    """Who was deposed reads nothing (Partition#fetchRecords); null is no offset of records."""
    deposed = (*WAITS, change(2, 1, (2,)), follow(1, 2, 1, leo=2, hw=1))
    assert broken((*deposed, response(error=0, **ONE_RECORD))) == {"FENCE-02"}
    assert broken((*deposed, response(error=0, **NOTHING_TO_READ))) == set()
    assert broken((*deposed, response(error=0, rec_base=None, rec_end=2))) == set()


def test_the_log_start_of_a_response_is_what_the_follower_takes_over() -> None:
    """Also where nobody knows where the leader's log begins; null is none, and then it is the leader's."""
    for begins in (0, 1):
        said = response(error=0, res_hw=1, res_log_start=begins, **NOTHING_TO_READ)
        assert broken(of_unknown_start(said, taken(res_log_start=begins, res_hw=1))) == set()
        assert broken(of_unknown_start(said, taken(res_log_start=1 - begins, res_hw=1))) == {"FETCH-10"}
    said = response(error=0, res_hw=1, res_log_start=None, **NOTHING_TO_READ)
    assert broken((*WAITS, said, taken(res_log_start=0, res_hw=1))) == set()
    assert broken((*WAITS, said, taken(res_log_start=1, res_hw=1))) == {"FETCH-10"}


def test_so_is_that_of_a_diverging_one() -> None:
    """A diverging response has a log start, which the follower may take over before it truncates (KAFKA-14704)."""
    for begins in (0, 1):
        said = response(error=0, res_log_start=begins, **DIVERGES)
        assert "FETCH-10" not in broken(of_unknown_start(said, taken(res_log_start=begins)))
        assert "FETCH-10" in broken(of_unknown_start(said, taken(res_log_start=1 - begins)))
    said = response(error=0, res_log_start=None, **DIVERGES)
    assert "FETCH-10" not in broken((*WAITS, said, taken(res_log_start=0)))
    assert "FETCH-10" in broken((*WAITS, said, taken(res_log_start=1)))
    waits = (*COPIED, append(1, 0, 1, 1, 1), reported(2, "LogStartMoved", log_start=0, hw=0), send(2, 1, 0, 1, 0), held())
    said = response(error=0, res_log_start=1, **DIVERGES)
    took = taken(res_log_start=0, log_start=0)
    assert judged((*waits, said, took)).tallies["LOG-03"].failed == 0


def test_it_is_held_to_the_high_watermark_that_the_leader_had() -> None:
    """Not below the one at which it was recorded; and where its own log start is none, the leader's counts."""
    said = response(error=0, res_hw=1, res_log_start=None, **NOTHING_TO_READ)
    starts = (start(node, leo=1, hw=1, log_start=1) for node in (1, 2))
    waits = (*starts, *OPENING_AT_ONE, held(req_last_epoch=-1))
    for config in either_way(TWO):
        assert broken((*WAITS, response(error=0, res_hw=0, **NOTHING_TO_READ)), config) == {"FETCH-08"}
        assert broken((*waits, said, taken(res_log_start=1, res_hw=1)), config) == set()
        assert broken((*waits, said, taken(res_log_start=0, res_hw=1)), config) == {"FETCH-10"}
        diverges = response(error=0, res_log_start=None, **DIVERGES)
        assert "FETCH-10" not in broken((*waits, diverges, taken(res_log_start=1)), config)
        assert "FETCH-10" in broken((*waits, diverges, taken(res_log_start=0)), config)


KIP101 = replace(TWO, profile="kip101")
"""Nobody is fenced: a response is that of the term in which it was given."""


def led(leader: int, follower: int) -> tuple[Event, ...]:
    """The leader has a record of epoch 0, is elected in epoch 1 and writes another; the follower has nothing, and asks."""
    return (
        start(leader, leo=1, hw=1, epochs=((0, 0),)),
        start(follower),
        change(leader, 0, (leader,)),
        lead(leader, 0, (leader,), leo=1, hw_before=1, hw=1),
        change(leader, 1, (leader,)),
        lead(leader, 1, (leader,), leo=1, hw_before=1, hw=1),
        follow(follower, leader, 1),
        append(leader, 1, 1, 1, 2),
        send(follower, leader, 1, 0, -1),
    )


def late(leader: int, follower: int, *between: Event, epoch: int = 1, handled: bool = True) -> tuple[Event, ...]:
    """Both records leave in a response that was held, or of which nobody saw the fetch handled."""
    asked = {"peer": follower, "req_epoch": epoch, "req_offset": 0, "req_last_epoch": -1}
    both = {"rec_base": 0, "rec_end": 2, "rec_epoch": 1}
    fetch = reported(leader, "HandleFetch", **asked, error=0, remote_leo=0, hw=2, leo=2)
    went = reported(leader, "AnswerFetch", **asked, error=0, res_hw=2, **both)
    took = reported(follower, "HandleFetchResponse", **{**asked, "peer": leader}, error=0, res_hw=2, **both, leo=2, hw=2)
    return (*led(leader, follower), *((fetch,) if handled else ()), *between, went, took)


def cache(node: int, *entries: tuple[int, int]) -> Event:
    return reported(node, "Observe", leo=2, epochs=entries)


def test_late_records_are_of_the_term_in_which_they_left() -> None:
    """The log that its leader was elected with says where their epochs begin: the follower's cache is known."""
    for leader, follower in ((1, 2), (2, 1)):
        for handled in (True, False):
            events = late(leader, follower, handled=handled)
            assert broken((*events, cache(follower, (0, 0), (1, 1))), KIP101) == set()
            assert broken((*events, cache(follower, (1, 0))), KIP101) == {"DATA-02", "LOG-02"}


def test_those_of_a_leader_that_was_elected_again_are_of_no_term_that_is_known() -> None:
    """It may have read them before, or after: no cache contradicts the response, only what the logs come to at the end."""
    for leader, follower in ((1, 2), (2, 1)):
        again = (change(leader, 2, (leader,)), lead(leader, 2, (leader,), leo=2, hw_before=2, hw=2))
        events = late(leader, follower, *again)
        assert broken((*events, cache(follower, (0, 0), (1, 1))), KIP101) == set()
        assert broken((*events, cache(follower, (1, 0))), KIP101) == {"DATA-02"}


def test_a_response_whose_lower_bound_is_unknown_is_undecided() -> None:
    """FETCH-08: the leader's high watermark is told only after the fetch was recorded."""
    unknown = without((*WRITTEN, held()), "hw", "hw_before", "res_hw")
    events = (*unknown, append(1, 0, 2, 1, 1), response(error=0, res_hw=5, **NOTHING_TO_READ))
    tally = judged(events).tallies["FETCH-08"]
    assert (tally.failed, tally.undecided) == (0, 1)
