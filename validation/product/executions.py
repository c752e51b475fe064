"""How the product is walked: the functions of the machine and of the kernel, compiled or interpreted."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from tidegauge.conformance.judging.judge import frozen_inputs
from tidegauge.conformance.judging.options import options_of
from tidegauge.conformance.kernel import one_event, state
from tidegauge.conformance.kernel.compiled import UNCOUNTED, Kernel, by_address, jit, kernel, twins_of
from tidegauge.conformance.kernel.judge_kernel import judge_traces
from tidegauge.conformance.kernel.memory import tidy
from tidegauge.conformance.kernel.one_event import Bytes, Judge, Table, judge_from
from tidegauge.conformance.kernel.state import GOES_ON, Ints, forget
from tidegauge.conformance.kernel.whole import logs_agree
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
    entered_again: Callable[..., None]
    counted: Callable[..., None]
    asked_once: Callable[..., int]


INTERPRETED = Machine(
    Kernel(judge_traces, tidy, logs_agree),
    machine.search,
    machine.offer,
    machine.entered_again,
    machine.counted,
    equivalence.asked_once,
)


def judge_of(events: Sequence[Event], config: Config, room: int, notes: bool = False) -> Judge:
    """A judge that has read nothing, with the columns of all events it may be asked about, and room for `notes`."""
    columns = to_columns([Trace("", "", config, tuple(events))], config)
    options = options_of(columns, config)
    options[GOES_ON] = 1
    st = state.allocate(options, room, 1, room)
    forget(st, 0)
    if notes:
        st = np.concatenate((st, np.zeros_like(st)))
    return judge_from(st, frozen_inputs(columns, None, np.zeros(0, np.int64)))


def kernel_with(notes: bool) -> Kernel:
    """As machine code; with `notes` the one that notes what it reads."""
    return kernel(NOTED if notes else None)


def machine_for(judge: Judge, tables: Tables, notes: bool = False) -> Machine:
    """The machine as machine code. The kernel is handed over by address: linked in, it would be compiled anew."""
    type_of: Any = numba.typeof
    return _compiled(type_of(judge), type_of(tables), notes)


@cache
def _compiled(judge: Any, tables: Any, notes: bool) -> Machine:
    twins = twins_of((one_event, machine, equivalence), **UNCOUNTED)
    run, *others = by_address()
    ints, table = types.int64[::1], types.int64[:, ::1]
    type_of: Any = numba.typeof
    groups = type_of(equivalence.room_for(1, 1, 1, 1, 1))
    spans, memory = (tables[Tables._fields.index(name)] for name in ("spans", "memory"))

    def made(name: str, *said: Any) -> Callable[..., Any]:
        return jit(twins[name].py_func, said, cached=False, **UNCOUNTED)

    return Machine(
        kernel_with(notes),
        made("search", run, *others, judge, ints, ints, ints, tables, ints),
        made("offer", run, judge, spans, memory, table),
        twins["entered_again"],
        twins["counted"],
        made("asked_once", run, judge, spans, memory, ints, ints, groups, ints) if notes else twins["asked_once"],
    )


def all_groups(made: Machine, judge: Judge, spans: Table, memory: Bytes, numbers: Ints, decided: Ints) -> equivalence.Groups:
    """What the judge makes of the offers `numbers` after each memory."""
    groups = equivalence.room_for(len(memory), len(numbers), FIRST_GROUPS, FIRST_SETS, memory.shape[1])
    at = np.zeros(3, np.int64)
    while made.asked_once(made.kernel[0], judge, spans, memory, numbers, decided, groups, at) != DONE:
        groups = equivalence.larger(groups, memory, at)
    return groups._replace(first=groups.first[: at[equivalence.GROUPS]], outcome=groups.outcome[: at[equivalence.GROUPS]])
