"""The judge as machine code, compiled from the functions that also run interpreted.

A twin is such a function compiled by Numba, or ready to be. A Rewriting changes the text of each function first, such as
that of validation, which notes the cells of the judge's table that are read.

Rules of this file

1. Nothing is written twice: each function is compiled from its own code object, with globals in which the functions it
   calls are replaced by their compiled twins (FunctionType with other globals). Attributes of modules are constants for it.
2. impl.rules does not import Numba: its functions are compiled from here the same way.
3. Compilation takes about a minute, so it happens only when there is enough to judge, and the machine code is kept on disk
   for other processes. That changes the time and nothing else.
"""

import hashlib
import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from tidegauge.conformance.engine import double_array, machine_code, one_event, transitions
from tidegauge.conformance.engine.machine_code import binding, numba, types
from tidegauge.conformance.judge import (
    compaction,
    elections,
    field_groups,
    in_flight,
    lineage,
    log_checks,
    state,
    tally,
    terms,
    unobserved,
)
from tidegauge.conformance.judge import kernel as judge_kernel
from tidegauge.conformance.judge.events import controller, follower, leader, leader_hw, lifecycle, roles, serving, truncation
from tidegauge.impl import rules
from tidegauge.traces.columns import INT_FIELDS

MODULES = (
    rules,
    state,
    field_groups,
    tally,
    lineage,
    elections,
    compaction,
    terms,
    log_checks,
    leader_hw,
    roles,
    unobserved,
    in_flight,
    lifecycle,
    serving,
    leader,
    follower,
    truncation,
    controller,
    judge_kernel,
)
"""In the order of their imports: each module after those that it calls."""


AUTOMATON = (one_event, transitions, double_array)
"""The modules of the lazy automaton (conformance.engine.adaptive_judge)."""

TOP = "judge_traces"
_RARE = """
    failed undecided check_claim check_later_terms open_term agree_until next_start epoch_at copy_entries compare_cache
    acked_records_present hw_raised log_ends_are_current led_between lower_bound_of_hw truncate handle_epoch_response
    observe log_start_moved epoch_cache_entry handle_out_of_range truncate_to_high_watermark answer_fetch
    handle_alter_partition_response produce_ack consumer_read expand_isr shrink_isr propose copy_final_state believe
    add_registration alter_partition handle_diverging_response raise_log_start set_log_start cache_raise copy_log_to_term
    term_of copy_kind restore_pair check_epoch_response_accepted isr_not_empty fork copy_fork reload_fork acts_on
    pending_after_metadata lines_missing forget_unobserved forget_peers reported_again tidy forget_consumed
    clear_unused_entries compare_registrations forget_consumed_request register_broker fence_broker unfence_broker
    unknown_broker joins_as_proposed elects_eligible delete_replica lose_disk room_for_a_term room_for_a_registration
    all_past_epoch compact_terms next_term term_may_still_respond has_claimed_log inherit_claims remove_term renumbered
    registrations_needed_from forget_registrations compact_isr_changes copy_registration check_inherited_claims
    holds_acked counted_again no_hw_from_diverging check_response_log_start log_start_as_sent lacks_own_epoch set_min_isr
    read_config
"""
RARE = frozenset(_RARE.split())
"""Functions off the common path stay calls; all others are inlined, as a call that passes the table costs a check's time."""


@dataclass(frozen=True)
class Rewriting:
    """A change to the kernel: `rewritten` returns another function for each of its; these may also call `calls`."""

    rewritten: Callable[[FunctionType], FunctionType]
    calls: tuple[Any, ...]


@cache
def compiled(rewriting: Rewriting | None = None) -> Callable[..., None]:
    """Return the compiled twin of judge_kernel.judge_traces, as it is or rewritten."""
    # Code that is ready on disk is loaded whole: its callees need not be compiled before it.
    return cached_on_disk(lambda cached: _build(not (cached and is_ready(rewriting)), rewriting, cached), rewriting)


def cached_on_disk(build: Callable[[bool], Callable[..., Any]], rewriting: Rewriting | None = None) -> Callable[..., Any]:
    """Return what `build(cached)` returns; `cached`: whether Numba looks for the code in a directory, and keeps it there."""
    directory = cache_directory(rewriting)
    if directory is not None:
        with suppress(OSError), machine_code.kept_in(directory):  # on a full disk the code is made, and not kept
            return build(True)
    return build(False)


def _build(eager: bool, rewriting: Rewriting | None, cached: bool) -> Callable[..., None]:
    """Compile judge_traces, or load it if it is `cached` on disk.

    With `eager` its callees are compiled before it. Without, Numba compiles a callee when it needs it, which it does only
    if the code on disk turns out to be unusable.
    """
    twins: dict[str, Any] = {}
    njit: Any = numba.njit
    for function in rewriting.calls if rewriting else ():
        twins[function.__name__] = njit(with_globals(function, twins))
    for module in MODULES:
        for key, function in callees_first(functions_of(module)):
            twin = with_globals(rewriting.rewritten(function) if rewriting else function, twins)
            if key == TOP:
                twins[key] = njit(signature(function), cache=cached)(twin)
            # Only TOP is kept on disk, with all that it calls: the callees of a cached kernel are never compiled.
            elif eager:
                # Only compiled code calls a callee: it needs no wrapper for C or Python.
                decorator = njit(
                    signature(function), no_cfunc_wrapper=True, no_cpython_wrapper=True, forceinline=key not in RARE
                )
                twins[key] = decorator(twin)
            else:
                twins[key] = njit(twin)  # without types: compiled when it is called
    return twins[TOP]  # type: ignore[no-any-return]


class Kernel(NamedTuple):
    """Three functions of the judge: judge traces; forget what can no longer matter; check the end of a trace."""

    judge: Callable[..., None]
    forget: Callable[..., None]
    end: Callable[..., None]


@cache
def kernel(rewriting: Rewriting | None = None) -> Kernel:
    """Return the functions that judge one event at a time (conformance.engine.one_event), as machine code."""
    # A rewriting changes the judging of events; what is forgotten, and the check at the end of a trace, stay as they are.
    return Kernel(judge=compiled(rewriting), forget=alone(compaction.tidy), end=alone(lifecycle.logs_agree))


BY_ADDRESS: tuple[Any, ...] = (judge_kernel.judge_traces, compaction.tidy, lifecycle.logs_agree)
"""Functions with the types of those of a Kernel, in its order."""


def by_address() -> list[Any]:
    """Return the Numba types of the functions of a Kernel, for compiled code that gets them as arguments.

    Linked into that code, they would be compiled again.
    """
    return [types.FunctionType(types.none(*signature(function))) for function in BY_ADDRESS]


def alone(function: Any) -> Callable[..., None]:
    """Return the compiled twin of one function of the kernel, which Python or other compiled code can call by itself."""
    return cached_on_disk(partial(jit, with_globals(function, twins_of(MODULES)), signature(function)))


UNCOUNTED: dict[str, Any] = {"_nrt": False}
"""For functions that neither make an array nor return one. Numba counts the references to each array of a tuple when it is
taken out of it: two locked instructions for each of forty columns, a quarter of the time that a transition took."""


def twins_of(modules: Sequence[ModuleType], **options: Any) -> dict[str, Any]:
    """Return the twins of all functions of modules by name, each calling the others' twins, to be compiled when called.

    The modules are in the order of their imports; `options` are those of numba.njit.
    """
    twins: dict[str, Any] = {}
    njit: Any = numba.njit
    for module in modules:
        for key, function in callees_first(functions_of(module)):
            twins[key] = njit(with_globals(function, twins), **options)
    return twins


def jit(function: Any, types_of_arguments: tuple[Any, ...], cached: bool, **options: Any) -> Callable[..., Any]:
    """Compile a function for arguments of these types, or load it if it is `cached`; `options` are those of numba.njit."""
    njit: Any = numba.njit
    twin: Callable[..., Any] = njit(types_of_arguments, cache=cached, **options)(function)
    return twin


def functions_of(module: ModuleType) -> dict[str, FunctionType]:
    """Return the functions of a module that can be compiled, by name."""
    return {
        key: value
        for key, value in vars(module).items()
        # `allocate` runs before the kernel, as Python. From Python 3.14 on a module has `__annotate__` (PEP 649).
        if isinstance(value, FunctionType)
        and value.__module__ == module.__name__
        and key not in ("allocate", "__annotate__")
    }


def cache_directory(rewriting: Rewriting | None = None) -> Path | None:
    """Return the directory of the machine code, named after all that it is made from; None when none can be written."""
    return machine_code.directory(fingerprint(rewriting))


def is_ready(rewriting: Rewriting | None = None) -> bool:
    """Return whether the machine code is compiled already."""
    directory = cache_directory(rewriting)
    return directory is not None and any(directory.glob(f"*.{TOP}-*.nbc"))


def fingerprint(rewriting: Rewriting | None = None) -> str:
    """Return a hash of the text, the compiler and the processor that the machine code is made for."""
    settings: Any = numba.config
    made_for = [binding.get_host_cpu_name(), binding.get_host_cpu_features(), settings.CPU_NAME, settings.CPU_FEATURES]
    return _hashed([machine_code.LAYOUT, sys.version, numba.__version__, *map(str, made_for), text_fingerprint(rewriting)])


def text_fingerprint(rewriting: Rewriting | None = None) -> str:
    """Return a hash of the code as it is loaded."""
    # Not of the files: they may have been edited since this process imported them.
    modules = (*MODULES, *AUTOMATON, sys.modules[__name__])  # the last is this one, which decides how they are compiled
    parts = [
        _function_text(value) for module in modules for value in vars(module).values() if isinstance(value, FunctionType)
    ]
    if rewriting:
        rewritten = (rewriting.rewritten(function) for module in MODULES for function in functions_of(module).values())
        parts += [_function_text(function) for function in (*rewriting.calls, *rewritten)]
    return _hashed(
        [*parts, repr(UNCOUNTED), *sorted(RARE), *INT_FIELDS, *(repr(group._fields) for group in field_groups.GROUPS)]
    )


def _hashed(parts: Sequence[str]) -> str:
    """Return a hash of texts, short enough for the name of a directory."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:20]


def _function_text(function: FunctionType) -> str:
    """Return the code of a function and the constants it names, of its own module or of a module that it imports."""
    names = function.__code__.co_names
    own = function.__globals__
    namespaces = [own, *(vars(own[name]) for name in names if isinstance(own.get(name), ModuleType))]
    values = [(name, namespace[name]) for namespace in namespaces for name in names if _is_constant(namespace.get(name))]
    return repr((function.__module__, function.__annotations__, _text(function.__code__), values))


def _is_constant(value: Any) -> bool:
    """Return whether a value is a number, a text, or a tuple of such."""
    # The text of any other object has its address, or the path of this checkout.
    return all(map(_is_constant, value)) if isinstance(value, tuple) else isinstance(value, int | str)


def _text(code: CodeType) -> str:
    """Return a code object as text, without the file and line it was compiled from."""
    inner = [_text(value) if isinstance(value, CodeType) else repr(value) for value in code.co_consts]
    return repr((code.co_name, code.co_code, code.co_names, code.co_varnames, inner))


COLUMN = types.Array(types.int64, 1, "C", readonly=True)
"""A read-only column of events, as engine.judge.frozen makes it."""
_NUMBA_TYPES: dict[Any, Any] = {
    int: types.int64,
    bool: types.boolean,
    rules.Ints: types.int64[::1],
    Sequence[bool]: types.int64[::1],
    state.Ints: COLUMN,
    state.State: types.int64[:, ::1],
    field_groups.Columns: types.UniTuple(COLUMN, len(INT_FIELDS)),  # type: ignore[no-untyped-call]
    judge_kernel.Flags: types.Array(types.boolean, 1, "C", readonly=True),
    state.Final: types.int64[:, :, ::1],
    state.Caches: types.int64[:, :, :, ::1],
    **{group: types.NamedUniTuple(types.int64, len(group._fields), group) for group in field_groups.GROUPS},  # type: ignore[no-untyped-call]
}


def signature(function: FunctionType) -> tuple[Any, ...]:
    """Return the Numba types of a function's arguments, by its annotations, which are the keys of _NUMBA_TYPES."""
    # Without them Numba would compile one copy for each constant argument.
    return tuple(_NUMBA_TYPES[function.__annotations__[name]] for name in inspect.signature(function).parameters)


def with_globals(function: Any, twins: dict[str, Any]) -> FunctionType:
    """Copy a function so that it calls those of `twins`, whether by name or as attributes of conformance.judge.state."""
    names = {name: twins[name] for name in function.__code__.co_names if name in twins}
    # Modules of the judge import judge.state as `s` and call `s.pair(..)`: they get a copy of that module with twins in it.
    if function.__globals__.get("s") is state:
        twin = ModuleType(state.__name__)
        vars(twin).update({**vars(state), **{name: twins[name] for name in functions_of(state) if name in twins}})
        names["s"] = twin
    return FunctionType(
        function.__code__, {**function.__globals__, **names}, function.__name__, function.__defaults__, function.__closure__
    )


def callees_first(functions: dict[str, FunctionType]) -> list[tuple[str, FunctionType]]:
    """Return the functions of one module, each after those of the module that it calls."""
    done: dict[str, FunctionType] = {}

    def visit(name: str) -> None:
        """Add the functions that a function calls, then the function itself."""
        if name in done:
            return
        for callee in functions[name].__code__.co_names:
            if callee in functions and callee != name:
                visit(callee)
        done[name] = functions[name]

    for name in functions:
        visit(name)
    return list(done.items())
