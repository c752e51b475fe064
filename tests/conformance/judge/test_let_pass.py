"""What the product of model and judge found that the judge let pass, and what stays right beside it."""

from dataclasses import replace

import pytest

from tests.conformance.hand import (
    COPIED,
    FORKED,
    OPENING,
    TWO,
    append,
    broken,
    change,
    lead,
    reported,
    send,
    serve,
    start,
    take,
)
from tidegauge.traces.schema import Event

HW_ONLY = replace(TWO, profile="hw-only")
REPLAYED = (
    start(1, leo=3, hw=2, epochs=((0, 0),)),
    start(2),
    change(2, 5, (2,)),
)
"""Broker 1 comes back while the controller is five leader epochs further."""
REPLAYS = {"leader_epoch": 0, "isr": (1,), "leo": 3, "hw_before": 2}
DELETED = (*COPIED, reported(1, "LogStartMoved", log_start=1, hw=1), send(2, 1, 0, 1, 0))
"""Broker 1 has deleted record 0, and broker 2 asks for the next."""
SERVED = {"res_hw": 1, "hw": 1, "leo": 1}
TAKEN = {"res_hw": 1, "hw_before": 0, "hw": 1, "count": 0}


@pytest.mark.parametrize(
    ("hw", "rules"),
    [(2, set()), (3, set()), (4, {"HW-01"}), (1, {"HW-04"})],
    ids=["as it was", "alone in the ISR of then", "above the log end", "lowered"],
)
def test_a_role_of_the_past_leaves_the_high_watermark_in_the_log(hw: int, rules: set[str]) -> None:
    """Metadata that a broker reads again after a restart may raise its high watermark, and does no more."""
    assert broken((*REPLAYED, reported(1, "BecomeLeader", **REPLAYS, hw=hw))) == rules


@pytest.mark.parametrize(("answered", "rules"), [(1, set()), (0, {"FETCH-08"}), (2, {"FETCH-08"})])
def test_a_response_carries_the_log_start_of_its_leader(answered: int, rules: set[str]) -> None:
    """FETCH-08, whether it holds records or says where the logs diverge."""
    assert broken((*DELETED, serve(1, 2, 0, 1, 0, **SERVED, res_log_start=answered))) == rules
    diverging = FORKED[-3]
    assert diverging.event == "HandleFetch"
    bent = Event(diverging.node, diverging.event, {**diverging.fields, "res_log_start": answered - 1 if answered else 1})
    assert broken((*FORKED[:-3], bent)) == rules


def test_a_broker_may_write_late_that_its_log_start_has_moved() -> None:
    """In the logs of brokers another thread writes the line."""
    late = (*COPIED, send(2, 1, 0, 1, 0), serve(1, 2, 0, 1, 0, **SERVED, res_log_start=1))
    late = (*late, take(2, 1, 0, 1, **TAKEN, res_log_start=1, log_start=1))
    assert broken(late) == {"FETCH-08"}
    assert broken(late, replace(TWO, lag_rule=True)) == set()


@pytest.mark.parametrize(
    ("reported_start", "taken", "rules"), [(1, 1, set()), (1, 0, {"FETCH-10"}), (None, 1, set()), (None, 0, {"FETCH-10"})]
)
def test_a_follower_takes_over_the_log_start_that_was_answered(
    reported_start: int | None, taken: int, rules: set[str]
) -> None:
    """FETCH-10; where the response does not say it, it is where the leader's log starts."""
    said = {} if reported_start is None else {"res_log_start": reported_start}
    answered = (*DELETED, serve(1, 2, 0, 1, 0, **SERVED, **said))
    assert broken((*answered, take(2, 1, 0, 1, **TAKEN, res_log_start=taken, log_start=taken))) == rules


def test_only_a_follower_truncates_at_its_high_watermark() -> None:
    """TRUNC-05 before KIP-101: a leader would lose what its followers have copied, but at its log end it loses nothing."""
    alone = (*OPENING, append(1, 0, 0))
    truncated = reported(1, "TruncateToHighWatermark", target=0, leo_before=1, hw_before=0, leo=0, hw=0)
    assert broken((*alone, truncated), HW_ONLY) == {"TRUNC-05"}
    nothing = reported(1, "TruncateToHighWatermark", target=0, leo_before=0, hw_before=0, leo=0, hw=0)
    assert broken((*OPENING, nothing), HW_ONLY) == set()
    deposed = (
        *alone,
        change(2, 1, (2,)),
        lead(2, 1, (2,)),
        reported(1, "BecomeFollower", leader=2, leader_epoch=1, leo=1, hw=0),
    )
    assert broken((*deposed, truncated), HW_ONLY) == set()
