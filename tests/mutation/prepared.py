"""A table of traces, ready to be judged many times.

Rules of this file

1. What is compared is all that the judge says, its tallies, first failures and last states, as the numbers stand in its
   table; nothing of what it only remembers.
2. A table that is `full` when its room is used up may not grow, and looks for what it can forget at every other term: so a
   short trace shows what takes hundreds of leader epochs else.
3. Where there are several traces, their events stand in a table of their own, in another order, and the last state of the
   last trace is not asked for: columns may come so (traces.columns), and callers may ask for a few last states.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np

from tidegauge.conformance.engine.judge import frozen_inputs, options_of
from tidegauge.conformance.judge import compaction, state
from tidegauge.conformance.judge.fields import RULES
from tidegauge.conformance.judge.kernel import judge_traces
from tidegauge.conformance.judge.state import (
    AT_FAILURES,
    BROKERS,
    FAILED_TRACES,
    FAILURES,
    FINAL,
    OPTION,
    OVERFLOW,
    PARTITION,
    PAST_ROOM,
    TALLIES,
    State,
    allocate,
)
from tidegauge.traces.columns import UNKNOWN, to_columns
from tidegauge.traces.schema import Trace

ROOM, PAST, FAILURES_KEPT = 16, 18, 64
SOON = 2
"""Terms after which a full table looks for some that can be forgotten."""


@dataclass(frozen=True)
class Prepared:
    """Traces of one config as the kernel takes them, and its empty table."""

    name: str
    events: int
    inputs: tuple[Any, ...]
    empty: State
    full: bool = False

    def said(self) -> tuple[Any, ...]:
        """What the judge says of them now."""
        st = self.empty.copy()
        traces, brokers = len(self.inputs[-1]) - 1, int(st[OPTION, BROKERS])
        asked = max(1, traces - 1)
        last = np.full((asked, brokers, len(FINAL)), UNKNOWN, np.int64)
        caches = np.zeros((asked, brokers, ROOM, 2), np.int64)
        run: Callable[..., None] = judge_traces
        with ExitStack() as little_room:
            if self.full:
                little_room.enter_context(patch.object(state, "MOST_PAST", int(st[PARTITION, PAST_ROOM])))
                little_room.enter_context(patch.object(compaction, "TERMS_AT_ONCE", SOON))
            run(st, *self.inputs, last, caches)
        kept, first = int(st[PARTITION, FAILURES]), int(st[PARTITION, AT_FAILURES])
        tallies = st[TALLIES : TALLIES + RULES, : FAILED_TRACES + 1]
        return (
            tallies.tobytes(),
            st[first : first + kept, :6].tobytes(),
            last.tobytes(),
            caches.tobytes(),
            int(st[PARTITION, OVERFLOW]),
        )


def prepared(name: str, traces: Sequence[Trace], past: int = PAST, full: bool = False) -> Prepared:
    """Traces that share a config, and a table with room for so many registrations and terms."""
    config = traces[0].config
    columns, rows = to_columns(traces, config), None
    missing = columns.missing
    if len(traces) > 1:
        events = [event for trace in traces for event in trace.events]
        table = to_columns([replace(traces[0], events=tuple(reversed(events)))], config)
        columns = replace(table, trace_starts=columns.trace_starts)
        rows = np.arange(len(events), dtype=np.int64)[::-1]
    inputs = frozen_inputs(columns, rows, missing)
    return Prepared(name, len(columns), inputs, _empty(tuple(options_of(columns, config)), past), full)


@cache
def _empty(options: tuple[int, ...], past: int) -> State:
    return allocate(options, ROOM, FAILURES_KEPT, past)
