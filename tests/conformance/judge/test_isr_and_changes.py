"""Who leaves an ISR and who may join it, and what the controller may make of a registration.

test_rules.py has one trace for and one against each rule; here are second checks and other branches of a rule, which
mutants of the judge slipped by (tests/mutation/kernel.py).
"""

from collections.abc import Sequence

import pytest

from tests.conformance.hand import (
    CONFIG,
    OPENING,
    TWO,
    append,
    broken,
    change,
    follow,
    lead,
    reported,
    send,
    serve,
    start,
    take,
)
from tidegauge.traces.schema import Config, Event

THREE = (start(1), start(2), start(3), change(1, 0, (1, 2, 3), (1, 2, 3)), lead(1, 0, (1, 2, 3)))
"""Broker 1 leads two others."""


def shrunk(isr: tuple[int, ...], leo: int = 0) -> Event:
    return reported(1, "ShrinkIsr", isr=isr, leo=leo, hw=0)


FETCHED = (follow(2, 1, 0), append(1, 0, 0), send(2, 1, 0, 0, -1), serve(1, 2, 0, 0, -1, res_hw=0, hw=0, leo=1))
CAUGHT_UP = (
    *FETCHED,
    take(2, 1, 0, 0, res_hw=0, hw_before=0, hw=0),
    send(2, 1, 0, 1, 0),
    serve(1, 2, 0, 1, 0, res_hw=0, hw=0, leo=1),
)


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        ((*THREE, *CAUGHT_UP, shrunk((1, 2), 1)), set()),
        ((*THREE, *CAUGHT_UP, shrunk((1,), 1)), {"ISR-02"}),
        ((*THREE, *CAUGHT_UP, shrunk((1, 3), 1)), {"ISR-02"}),
        ((*THREE, *FETCHED, shrunk((1, 3), 1)), set()),
        ((*THREE, *FETCHED, shrunk((1, 2, 3), 1)), {"ISR-02"}),
        ((*THREE, *FETCHED, shrunk((2, 3), 1)), {"ISR-02"}),
    ],
)
def test_who_has_caught_up_stays_in_the_isr(events: Sequence[Event], rules: set[str]) -> None:
    """ISR-02: Partition#getOutOfSyncReplicas, member by member; somebody goes, and not the leader."""
    assert broken(events, CONFIG) == rules


@pytest.mark.parametrize(
    ("event", "config", "rules"),
    [
        (change(1, 0, (1, 2), partition_epoch=1), TWO, set()),
        (change(1, 0, (1, 2), partition_epoch=2), TWO, {"CTRL-02"}),
        (change(1, 2, (1, 2), partition_epoch=1), TWO, {"CTRL-02"}),
        (change(2, 0, (1, 2), partition_epoch=1), TWO, {"CTRL-02"}),
        (change(1, 1, (1, 2), (2,), partition_epoch=1), TWO, {"CTRL-01", "CTRL-04"}),
        (change(None, 1, (1, 2), (2,), partition_epoch=1), TWO, {"CTRL-01", "CTRL-04"}),
        (change(None, 1, (1,), (2,), partition_epoch=1), TWO, set()),
        (change(1, 1, (2,), partition_epoch=1), TWO, {"CTRL-01"}),
    ],
)
def test_the_controllers_changes_count_on_and_name_live_members(event: Event, config: Config, rules: set[str]) -> None:
    """CTRL-01, CTRL-02, CTRL-04: PartitionRegistration#merge, PartitionChangeBuilder."""
    assert broken((*OPENING[:2], change(1, 0, (1, 2), partition_epoch=0), event), config) == rules


def test_an_isr_without_a_leader_does_not_grow() -> None:
    """ISR-04: only a leader proposes."""
    leaderless = (*OPENING, change(None, 1, (1,), (2,)))
    assert broken((*leaderless, change(None, 1, (1, 2), (1, 2)))) == {"ISR-04"}
    assert broken((*leaderless, change(None, 1, (1,), (1, 2)))) == set()
