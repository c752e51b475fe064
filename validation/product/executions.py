"""How the product is walked: the functions of the machine and of the kernel, compiled or interpreted."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from tidegauge.conformance.engine import one_event
from tidegauge.conformance.engine.compiled import UNCOUNTED, Kernel, by_address, jit, kernel, twins_of
from tidegauge.conformance.engine.judge import frozen_inputs, options_of
from tidegauge.conformance.engine.one_event import Judge, MemoryBytes, MemoryTable, judge_from
from tidegauge.conformance.judge import state
from tidegauge.conformance.judge.compaction import tidy
from tidegauge.conformance.judge.events.lifecycle import logs_agree
from tidegauge.conformance.judge.kernel import judge_traces
from tidegauge.conformance.judge.state import PIECEWISE, Ints, forget
from tidegauge.traces.columns import to_columns
from tidegauge.traces.schema import Config, Event, Trace
from validation.product import equivalence, machine
from validation.product.access_trace import NOTED
from validation.product.machine import DONE, Tables

FIRST_GROUPS, FIRST_SETS = 1 << 12, 1 << 8
"""Room that groups of memories begin with."""


class Machine(NamedTuple):
    """The functions of validation.product.machine, with the kernel they drive."""

    kernel: Kernel
    search: Callable[..., int]
    offer: Callable[..., None]
    rehash: Callable[..., None]
    count_outcomes: Callable[..., None]
    ask_each_group: Callable[..., int]


INTERPRETED = Machine(
    Kernel(judge_traces, tidy, logs_agree),
    machine.search,
    machine.offer,
    machine.rehash,
    machine.count_outcomes,
    equivalence.ask_each_group,
)


def judge_of(events: Sequence[Event], config: Config, room: int, notes: bool = False) -> Judge:
    """Return a judge that has read nothing, with the columns of all events it may judge.

    `room`: entries of a log, registrations and terms that it can remember. `notes`: a second half of its table for notes.
    """
    columns = to_columns([Trace("", "", config, tuple(events))], config)
    options = options_of(columns, config)
    options[PIECEWISE] = 1
    st = state.allocate(options, room, 1, room)
    forget(st, 0)
    if notes:
        st = np.concatenate((st, np.zeros_like(st)))
    return judge_from(st, frozen_inputs(columns, None, np.zeros(0, np.int64)))


def kernel_with(notes: bool) -> Kernel:
    """Return the kernel as machine code; with `notes` the one that notes what it reads."""
    return kernel(NOTED if notes else None)


def machine_for(judge: Judge, tables: Tables, notes: bool = False) -> Machine:
    """Return the machine as machine code for these types."""
    type_of: Any = numba.typeof
    return _compiled(type_of(judge), type_of(tables), notes)


@cache
def _compiled(judge: Any, tables: Any, notes: bool) -> Machine:
    twins = twins_of((one_event, machine, equivalence), **UNCOUNTED)
    run, *others = by_address()  # linked in, the kernel would be compiled anew
    ints, table = types.int64[::1], types.int64[:, ::1]
    type_of: Any = numba.typeof
    groups = type_of(equivalence.empty_groups(1, 1, 1, 1, 1))
    spans, memory = (tables[Tables._fields.index(name)] for name in ("spans", "memory"))

    def compile_twin(name: str, *signature: Any) -> Callable[..., Any]:
        return jit(twins[name].py_func, signature, cached=False, **UNCOUNTED)

    return Machine(
        kernel_with(notes),
        compile_twin("search", run, *others, judge, ints, ints, ints, tables, ints),
        compile_twin("offer", run, judge, spans, memory, table),
        twins["rehash"],
        twins["count_outcomes"],
        # Groups need the notes; without them the function is never called, and would only cost its compilation.
        compile_twin("ask_each_group", run, judge, spans, memory, ints, ints, groups, ints)
        if notes
        else twins["ask_each_group"],
    )


def all_groups(
    compiled: Machine, judge: Judge, spans: MemoryTable, memory: MemoryBytes, numbers: Ints, decided: Ints
) -> equivalence.Groups:
    """Group the memories by what the judge makes of the candidates `numbers`, and return the outcomes of each group."""
    groups = equivalence.empty_groups(len(memory), len(numbers), FIRST_GROUPS, FIRST_SETS, memory.shape[1])
    at = np.zeros(3, np.int64)
    while compiled.ask_each_group(compiled.kernel[0], judge, spans, memory, numbers, decided, groups, at) != DONE:
        groups = equivalence.doubled(groups, memory, at)
    count = at[equivalence.GROUPS]
    return groups._replace(first=groups.first[:count], outcome=groups.outcome[:count])
