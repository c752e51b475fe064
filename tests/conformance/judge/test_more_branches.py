"""Branches of rules that no trace told apart: what is believed of a response, a registration, an election nobody reported.

test_rules.py has one trace for and one against each rule; here are second checks and other branches of a rule, which
mutants of the judge slipped by (tests/mutation/kernel.py).
"""

from tests.conformance.hand import (
    COPIED,
    FORKED,
    OPENING,
    TWO,
    bent,
    broken,
    change,
    follow,
    judged,
    lead,
    registered,
    reported,
    send,
    start,
)
from tests.conformance.judge.test_rules import GROWN, TWO_ELIGIBLE


def test_a_response_with_an_error_has_nothing_to_take_over() -> None:
    """FETCH-10, whether records are taken or a divergence."""
    assert broken(bent(COPIED, 8, error=6)) == {"FETCH-10"}
    assert broken(bent(FORKED, -2, error=6)) == {"FETCH-10"}


def test_a_response_that_does_not_say_its_request_is_to_the_one_in_flight() -> None:
    """FETCH-09 is decided by what was asked."""
    for at, events in ((8, COPIED), (-2, FORKED)):
        silent = bent(events, at, req_epoch=..., req_offset=...)
        assert broken(silent) == set()
        assert judged(silent).tallies["FETCH-09"].undecided == 0


def test_a_replica_joins_in_the_incarnation_that_has_registered() -> None:
    """CTRL-09 from the broker epoch 0 on; where nobody said what is registered, nothing is checked."""
    known = (registered(2, 5), *GROWN)
    assert broken(bent(known, 14, broker_epoch=5)) == set()
    assert broken(bent(known, 14, broker_epoch=4)) == {"CTRL-09"}
    assert broken(bent(known, 14, broker_epoch=0)) == {"CTRL-09"}
    assert judged(bent(GROWN, 13, broker_epoch=5)).tallies["CTRL-09"].held == 0


def test_who_may_lack_what_it_had_is_named_where_it_becomes_eligible() -> None:
    """CTRL-07: the ELR without it is what was expected."""
    lost = (*OPENING, change(1, 0, (1, 2), elr=()), reported(100, "RegisterBroker", peer=2, clean=False))
    (failure,) = judged((*lost, change(1, 0, (1,), elr=(2,))), TWO_ELIGIBLE).failures
    assert (failure.rule, failure.expected, failure.actual) == ("CTRL-07", 0, 0b10)


def test_an_election_that_the_controller_did_not_report_may_have_been_unclean() -> None:
    """DATA-03 stays open; that nobody registered the epoch does not."""
    acked = (*COPIED, reported(1, "ProduceAck", acks=-1, rec_end=1, error=0), reported(1, "Crash"), reported(2, "Crash"))
    elected = (*acked, start(2, clean=False), lead(2, 1, (2,)))
    assert broken(elected, TWO) == {"CTRL-03"}
    assert judged(elected).tallies["DATA-03"].undecided == 1
    assert "DATA-03" in broken((*elected[:-1], change(2, 1, (2,), (2,)), elected[-1]), TWO)


def test_a_log_start_below_a_truncation_stays() -> None:
    """UnifiedLog#truncateTo: only a truncation below the log start moves it."""
    truncated = (
        start(1, leo=3, hw=1, log_start=1, epochs=((0, 1),)),
        start(2, leo=2, hw=2, log_start=1, epochs=((0, 1),)),
        change(2, 1, (2,), (1, 2)),
        lead(2, 1, (2,), leo=2, hw_before=2, hw=2),
        follow(1, 2, 1, leo=3, hw=1),
        send(1, 2, 1, 3, 0),
        bent(FORKED, -3, req_offset=3, div_end=2, hw=2)[-3],
        bent(FORKED, -2, req_offset=3, div_end=2, target=2, leo_before=3, hw_before=1, leo=2, hw=1)[-2],
    )
    assert broken(truncated) == set()
    assert broken((*truncated, reported(1, "LogStartMoved", log_start=1))) == set()
    assert broken((*truncated, reported(1, "LogStartMoved", log_start=0))) == {"LOG-01"}


def test_a_cache_nobody_reported_leaves_open_who_truncates_at_its_high_watermark() -> None:
    """TRUNC-05 asks whether the cache is empty."""
    unknown = (OPENING[0], *bent((start(2, leo=1),), 0, epochs=...), *OPENING[2:4], follow(2, 1, 0, leo=1))
    truncated = (*unknown, reported(2, "TruncateToHighWatermark", target=0, leo_before=1, hw_before=0, leo=0, hw=0))
    assert broken(truncated) == set()
    assert judged(truncated).tallies["TRUNC-05"].undecided == 1
