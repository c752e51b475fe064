"""How the product is walked: the functions of the machine and of the kernel, compiled or interpreted."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from tidegauge.conformance.evidence.product import alike, machine
from tidegauge.conformance.evidence.product.machine import DONE, Bytes, Ints, Judge, Table, Tables
from tidegauge.conformance.evidence.product.reads import NOTED
from tidegauge.conformance.judging.judge import frozen_inputs
from tidegauge.conformance.judging.options import options_of
from tidegauge.conformance.kernel import state
from tidegauge.conformance.kernel.compiled import alone, callees_first, compiled, functions_of, signature, with_globals
from tidegauge.conformance.kernel.judge_kernel import judge_traces
from tidegauge.conformance.kernel.memory import tidy
from tidegauge.conformance.kernel.state import (
    AT_LOGS,
    AT_PAIRS,
    AT_REGISTRATIONS,
    AT_TERMS,
    BROKERS,
    GOES_ON,
    NOW,
    PAIR,
    R_REPLICAS,
    REPLICA,
    REPLICAS,
    WHOLE,
    State,
    forget,
)
from tidegauge.conformance.kernel.whole import logs_agree
from tidegauge.traces.columns import to_columns
from tidegauge.traces.schema import Config, Event, Trace

FIRST_GROUPS, FIRST_SETS = 1 << 12, 1 << 8
"""Room that groups of memories begin with."""
Kernel = tuple[Callable[..., None], Callable[..., None], Callable[..., None]]
"""Judge an event, forget what can no longer matter, judge what holds at the end."""


class Machine(NamedTuple):
    """The functions of conformance.evidence.product.machine, with the kernel they drive."""

    kernel: Kernel
    search: Callable[..., int]
    offer: Callable[..., None]
    entered_again: Callable[..., None]
    counted: Callable[..., None]
    asked_once: Callable[..., int]


INTERPRETED = Machine(
    (judge_traces, tidy, logs_agree), machine.search, machine.offer, machine.entered_again, machine.counted, alike.asked_once
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
    inputs = frozen_inputs(columns, None, np.zeros(0, np.int64))
    none = np.zeros((0, options[BROKERS], len(state.FINAL)), np.int64)
    caches = np.zeros((0, options[BROKERS], room, 2), np.int64)
    columns_of, event, node, reported, pairs_at, epochs, _, missing, _ = inputs
    row, span = np.zeros(1, np.int64), np.array([0, 1], np.int64)
    return Judge(st, columns_of, event, node, reported, pairs_at, epochs, row, missing, span, none, caches)


def spans_of(st: State) -> Table:
    """The cells that are the memory of the judge: rows, and how many columns of each."""
    whole = st[WHOLE].tolist()
    room, past, n = whole[state.ROOM], whole[state.PAST], int(st[state.OPTION, BROKERS])
    parts = (
        (WHOLE, 1, NOW),
        (REPLICAS, n, REPLICA),
        (whole[AT_PAIRS], n * n, PAIR),
        (whole[AT_LOGS], 2 * (n + past), room + 1),
        (whole[AT_REGISTRATIONS], past, R_REPLICAS + 1),
        (whole[AT_TERMS], past, state.TERM_COLUMNS),
    )
    return np.array([(first + i, width) for first, rows, width in parts for i in range(rows)], np.int64)


@cache
def kernel(notes: bool = False) -> Kernel:
    """As machine code; with `notes` the one that notes what it reads."""
    return compiled(NOTED if notes else None), alone(tidy), alone(logs_agree)  # type: ignore[arg-type]


@cache
def _twins() -> dict[str, Any]:
    """The functions of the machine, each calling the compiled ones."""
    made: dict[str, Any] = {}
    njit: Any = numba.njit
    for module in (machine, alike):
        for name, function in callees_first(functions_of(module)):
            made[name] = njit(with_globals(function, made))
    return made


def machine_for(judge: Judge, tables: Tables, notes: bool = False) -> Machine:
    """The machine as machine code. The kernel is handed over by address: linked in, it would be compiled anew."""
    by_address = [types.FunctionType(types.none(*signature(f))) for f in (judge_traces, tidy, logs_agree)]  # type: ignore[arg-type]
    twins = _twins()
    ints = types.int64[::1]
    njit: Any = numba.njit
    type_of: Any = numba.typeof
    walks = (*by_address, type_of(judge), ints, ints, ints, type_of(tables), ints)
    offers = (
        by_address[0],
        type_of(judge),
        type_of(tables.spans),
        type_of(tables.memory),
        types.int64[:, ::1],
    )
    groups = type_of(alike.room_for(1, 1, 1, 1, 1))
    asks = (by_address[0], type_of(judge), type_of(tables.spans), type_of(tables.memory), ints, ints, groups, ints)
    return Machine(
        kernel(notes),
        njit(walks)(twins["search"].py_func),
        njit(offers)(twins["offer"].py_func),
        twins["entered_again"],
        twins["counted"],
        njit(asks)(twins["asked_once"].py_func) if notes else twins["asked_once"],
    )


def all_groups(made: Machine, judge: Judge, spans: Table, memory: Bytes, numbers: Ints, decided: Ints) -> alike.Groups:
    """What the judge makes of the offers `numbers` after each memory."""
    groups = alike.room_for(len(memory), len(numbers), FIRST_GROUPS, FIRST_SETS, memory.shape[1])
    at = np.zeros(3, np.int64)
    while made.asked_once(made.kernel[0], judge, spans, memory, numbers, decided, groups, at) != DONE:
        groups = alike.larger(groups, memory, at)
    return groups._replace(first=groups.first[: at[alike.GROUPS]], outcome=groups.outcome[: at[alike.GROUPS]])
