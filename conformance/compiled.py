"""The judge as machine code, made from the very functions that run uncompiled.

Rules of this file

1. Nothing is stated twice: each function is compiled from its own code object, with globals in which the functions it
   calls are replaced by their compiled twins (FunctionType with overlaid globals).
2. impl.rules stays free of Numba: its functions are compiled from here the same way.
3. Compilation takes some seconds, so it happens once per process and only when there is enough to judge.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from types import FunctionType
from typing import Any

import numba
from numba import types

from conformance import controller, follower, judge_kernel, leader, leader_hw, lineage, log_checks, roles, state, tally, terms, whole
from impl import rules
from traces.columns import INT_FIELDS

MODULES = (rules, state, tally, lineage, terms, log_checks, leader_hw, roles, leader, follower, controller, whole, judge_kernel)
"""In the order of their imports: whatever a module calls stands before it."""


@cache
def compiled(name: str = "judge_traces") -> Callable[..., None]:
    """The compiled twin of a function of the judge."""
    twins: dict[str, Any] = {}
    for module in MODULES:
        functions = {
            key: value
            for key, value in vars(module).items()
            if isinstance(value, FunctionType) and value.__module__ == module.__name__ and key != "allocate"
        }
        for key, function in _callees_first(functions):
            jit = numba.njit(signature(function), no_cfunc_wrapper=True, no_cpython_wrapper=key != name)
            twins[key] = jit(_with_globals(function, twins))
    return twins[name]  # type: ignore[no-any-return]


COLUMN = types.Array(types.int64, 1, "C", readonly=True)
_NUMBA_TYPES = {
    int: types.int64,
    bool: types.boolean,
    rules.Ints: types.int64[::1],
    Sequence[bool]: types.int64[::1],
    state.Ints: COLUMN,
    state.State: types.int64[:, ::1],
    judge_kernel.Columns: types.UniTuple(COLUMN, len(INT_FIELDS)),
    judge_kernel.Flags: types.Array(types.boolean, 1, "C", readonly=True),
    judge_kernel.Final: types.int64[:, :, ::1],
    judge_kernel.Caches: types.int64[:, :, :, ::1],
}


def signature(function: FunctionType) -> tuple[Any, ...]:
    """The argument types its annotations say. Without them Numba would compile one copy per constant argument."""
    return tuple(_NUMBA_TYPES[function.__annotations__[name]] for name in inspect.signature(function).parameters)


def _with_globals(function: FunctionType, twins: dict[str, Any]) -> FunctionType:
    names = {name: twins[name] for name in function.__code__.co_names if name in twins}
    return FunctionType(
        function.__code__, {**function.__globals__, **names}, function.__name__, function.__defaults__, function.__closure__
    )


def _callees_first(functions: dict[str, FunctionType]) -> list[tuple[str, FunctionType]]:
    """The functions of one module, each behind those of the module that it calls."""
    done: dict[str, FunctionType] = {}

    def visit(name: str) -> None:
        if name in done:
            return
        for callee in functions[name].__code__.co_names:
            if callee in functions and callee != name:
                visit(callee)
        done[name] = functions[name]

    for name in functions:
        visit(name)
    return list(done.items())
