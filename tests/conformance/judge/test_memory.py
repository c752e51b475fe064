"""What can no longer matter is forgotten: a registration that is told again and again takes no room."""

import numpy as np

from tests.conformance.hand import OPENING, TWO, change, lead, reported
from tidegauge.conformance.engine.judge import frozen_inputs, options_of
from tidegauge.conformance.judge.compaction import tidy
from tidegauge.conformance.judge.kernel import judge_traces
from tidegauge.conformance.judge.state import (
    FAILED_TRACES,
    OVERFLOW,
    PARTITION,
    PIECEWISE,
    REGISTRATIONS,
    REPLICAS,
    TALLIES,
    State,
    allocate,
    forget,
)
from tidegauge.traces.columns import to_columns
from tidegauge.traces.schema import Event, Trace

FLAPS = 40
"""More ISR changes than a table of 16 has room for."""


def flapping(changes: int) -> tuple[Event, ...]:
    """Broker 2 leaves the ISR and comes back."""
    events = list(OPENING)
    for _ in range(changes):
        events += [reported(1, "ShrinkIsr", isr=(1,), leo=0, hw=0), change(1, 0, (1,)), lead(1, 0, (1,))]
        events += [change(1, 0, (1, 2)), lead(1, 0, (1, 2))]
    return tuple(events)


def read(events: tuple[Event, ...], forgets: bool, room: int = 16) -> State:
    """A table after these events; tidied after each of them where it `forgets`."""
    columns = to_columns([Trace("", "", TWO, events)], TWO)
    options = options_of(columns, TWO)
    options[PIECEWISE] = 1
    st = allocate(options, room, 16, 16)
    forget(st, 0)
    inputs = frozen_inputs(columns, None, np.zeros(0, np.int64))
    final, caches = np.zeros((0, 2, 4), np.int64), np.zeros((0, 2, room, 2), np.int64)
    for at in range(len(events)):
        judge_traces(st, *inputs[:6], np.array([at]), inputs[7], np.array([0, 1]), final, caches)
        if forgets:
            tidy(st)
    return st


def test_registrations_that_come_again_take_no_room() -> None:
    """They are a set, so the same table is large enough for any number of them."""
    for changes in (2, FLAPS):
        for forgets in (False, True):
            st = read(flapping(changes), forgets)
            assert st[PARTITION, OVERFLOW] == 0
            assert st[PARTITION, REGISTRATIONS] == 3


def test_a_judge_that_reads_for_ever_comes_back_to_where_it_was() -> None:
    """After each round its memory is the same numbers, but for what it counts."""
    once, often = (read(flapping(changes), forgets=True) for changes in (2, FLAPS))
    for st in (once, often):
        st[:REPLICAS] = 0  # the scalars of the partition name the row at hand, the tallies count
    assert (once == often).all()


def test_what_is_forgotten_changes_no_check() -> None:
    """A small table that has to look for what it knows twice, and a large one, count the same."""
    small, large = (read(flapping(FLAPS), forgets=False, room=room) for room in (16, 256))
    assert (small[TALLIES:REPLICAS, : FAILED_TRACES + 1] == large[TALLIES:REPLICAS, : FAILED_TRACES + 1]).all()
