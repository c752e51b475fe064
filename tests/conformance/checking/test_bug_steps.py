"""A known bug is named where its own step comes before the failure, not where another cause breaks its rule."""

from collections.abc import Sequence

import pytest

from tests.conformance.hand import CONFIG, COPIED, append, change, follow, lead, reported, serve, start
from tidegauge.conformance.explain.explain import BUG_STEPS, Before, happened
from tidegauge.conformance.judge.rulebook import known_bugs, rulebook
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.behaviour import numbered
from tidegauge.traces.schema import Event, Trace

LEADS = lead(1, 0, (1, 2), partition_epoch=3)
AGAIN = lead(1, 0, (1, 2), partition_epoch=3)
NEWER = lead(1, 0, (1, 2), partition_epoch=4)
ADDS = reported(1, "ExpandIsr", peer=3, isr=(1, 2, 3))
ANSWERED = reported(1, "HandleAlterPartitionResponse", error=0, isr=(1, 2, 3), partition_epoch=4, hw_before=0, hw=0)
RAISES = append(1, 0, 0, 0, 1)
FETCHED = reported(1, "HandleFetch", peer=2, remote_leo=0, error=0)
CASES = {
    "F2": ((lead(1, 0, (1, 2)), lead(1, 2, (1, 2))), (lead(1, 0, (1, 2)), follow(1, 2, 1), lead(1, 2, (1, 2)))),
    "F3": ((LEADS, ADDS, AGAIN, RAISES), (LEADS, AGAIN, ADDS, ANSWERED, NEWER, RAISES)),
    "F4": (
        (change(1, 0, (1,), replicas=(1, 2), elr=(2,)), change(1, 1, (1,), replicas=(1,), elr=(2,))),
        (change(1, 0, (1,), replicas=(1, 2), elr=(2,)), change(1, 1, (1,), replicas=(1,), elr=())),
    ),
    "KAFKA-12619": ((lead(1, 1, (1,), leo=4), append(1, 1, 4, 0, 4)), (lead(1, 1, (1,), leo=4), append(1, 1, 4, 0, 5))),
    "KAFKA-12686": ((LEADS, ADDS, NEWER, ADDS), (LEADS, ADDS, ADDS)),
    "KAFKA-13091": ((LEADS, ADDS, ANSWERED), (LEADS, ADDS, RAISES)),
    "KAFKA-13141": (
        (reported(1, "HandleFetch", peer=2, error=0, div_epoch=0, div_end=3, remote_leo=5), RAISES),
        (reported(1, "HandleFetch", peer=2, error=0, div_epoch=0, div_end=3), FETCHED, RAISES),
    ),
    "KAFKA-14139": (
        (start(1, leo=3), reported(1, "Crash"), start(1)),
        (start(1, leo=3), reported(1, "Crash"), start(1, leo=2)),
    ),
    "KAFKA-15021": ((reported(100, "FenceBroker", peer=3), RAISES), (change(1, 0, (1, 2)), RAISES)),
    "KAFKA-18991": (
        (follow(2, 1, 1), reported(2, "HandleFetchResponse", peer=1, req_epoch=0)),
        (follow(2, 1, 1), reported(2, "HandleFetchResponse", peer=1, req_epoch=1)),
    ),
    "KAFKA-6361": ((reported(2, "HandleEpochResponse", peer=1), RAISES), (LEADS, RAISES)),
    "KAFKA-8400": ((reported(1, "HandleFetch", peer=2, error=1, remote_leo=-1), RAISES), (FETCHED, RAISES)),
    "KIP-101": ((reported(2, "TruncateToHighWatermark", target=0), RAISES), (LEADS, RAISES)),
}
"""By bug, events with its step, and such without."""


def before(events: Sequence[Event]) -> Before:
    trace = Trace("t", "t-0", CONFIG, numbered(events))
    return Before(to_columns([trace], CONFIG), 0, len(events) - 1, lambda row: trace.events[row])


@pytest.mark.parametrize("bug", sorted(BUG_STEPS))
def test_a_bug_has_its_own_step(bug: str) -> None:
    """Each row of the table, with the step and without."""
    with_step, without = CASES[bug]
    assert happened(bug, before(with_step))
    assert not happened(bug, before(without))


def test_every_step_is_of_a_bug_that_a_rule_names() -> None:
    """None stands there in vain."""
    assert set(BUG_STEPS) <= {bug for rule in rulebook().values() for bug in rule.bugs} <= set(known_bugs())


@pytest.mark.parametrize("epochs", [(None, 3), (3, None)])
def test_a_field_that_nobody_reports_rules_nothing_out(epochs: tuple[int | None, int | None]) -> None:
    """Metadata without its partition epoch may be the one that the leader acts on."""
    first, again = (lead(1, 0, (1, 2), **({} if epoch is None else {"partition_epoch": epoch})) for epoch in epochs)
    assert happened("F3", before((first, ADDS, again, RAISES)))


def test_a_step_behind_the_failure_does_not_count() -> None:
    """What comes later has not led there."""
    events = (*COPIED, serve(1, 2, 0, 1, 0, res_hw=1, hw=2, leo=1), LEADS, ADDS, AGAIN)
    trace = Trace("t", "t-0", CONFIG, numbered(events))
    columns = to_columns([trace], CONFIG)
    assert not happened("F3", Before(columns, 0, len(COPIED), lambda row: trace.events[row]))
    assert happened("F3", Before(columns, 0, len(events) - 1, lambda row: trace.events[row]))
