"""A table of traces, ready to be judged many times.

Rule of this file: what is compared is all that the judge says, its tallies, first failures and last states, as the numbers
stand in its table; nothing of what it only remembers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tidegauge.conformance.judging.judge import frozen_inputs
from tidegauge.conformance.judging.options import options_of
from tidegauge.conformance.kernel.judge_kernel import judge_traces
from tidegauge.conformance.kernel.rule_ids import RULES
from tidegauge.conformance.kernel.state import (
    AT_FAILURES,
    BROKERS,
    FAILED_TRACES,
    FAILURES,
    FINAL,
    OPTION,
    OVERFLOW,
    TALLIES,
    WHOLE,
    State,
    allocate,
)
from tidegauge.traces.columns import UNKNOWN, to_columns
from tidegauge.traces.schema import Trace

ROOM, FAILURES_KEPT = 16, 64


@dataclass(frozen=True)
class Prepared:
    """Traces of one config as the kernel takes them, and its empty table."""

    name: str
    events: int
    inputs: tuple[Any, ...]
    empty: State

    def said(self) -> tuple[Any, ...]:
        """What the judge says of them now."""
        st = self.empty.copy()
        traces, brokers = len(self.inputs[-1]) - 1, int(st[OPTION, BROKERS])
        last = np.full((traces, brokers, len(FINAL)), UNKNOWN, np.int64)
        caches = np.zeros((traces, brokers, ROOM, 2), np.int64)
        run: Callable[..., None] = judge_traces
        run(st, *self.inputs, last, caches)
        kept, first = int(st[WHOLE, FAILURES]), int(st[WHOLE, AT_FAILURES])
        tallies = st[TALLIES : TALLIES + RULES, : FAILED_TRACES + 1]
        return (
            tallies.tobytes(),
            st[first : first + kept, :6].tobytes(),
            last.tobytes(),
            caches.tobytes(),
            int(st[WHOLE, OVERFLOW]),
        )


def prepared(name: str, traces: Sequence[Trace], past: int = ROOM) -> Prepared:
    """Traces that share a config, and a table with room for so many registrations and terms."""
    config = traces[0].config
    columns = to_columns(traces, config)
    inputs = frozen_inputs(columns, None, columns.missing)
    return Prepared(name, len(columns), inputs, _empty(tuple(options_of(columns, config)), past))


@cache
def _empty(options: tuple[int, ...], past: int) -> State:
    return allocate(options, ROOM, FAILURES_KEPT, past)
