"""One text, three executions: the code object that `impl` runs is the one z3 proves and the one Numba compiles."""

import inspect
import types
from typing import Any

import numba
import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.typed import List as TypedList

from tidegauge.conformance.engine.compiled import functions_of
from tidegauge.impl import rules
from tidegauge.spec.proofs.engine.paths import ProofPath, explore
from tidegauge.spec.proofs.engine.symbolic import symbolic_rules

RULES = functions_of(rules)

NUMBERS = st.integers(-3, 6)


def compiled_rules() -> dict[str, Any]:
    """Each rule compiled from its own code object; the overlay's globals are the compiled rules."""
    overlay: dict[str, Any] = {"__builtins__": __builtins__, **{n: v for n, v in vars(rules).items() if isinstance(v, int)}}
    for name, rule in RULES.items():  # a rule calls only rules above it
        overlay[name] = numba.njit(types.FunctionType(rule.__code__, overlay, name))
    return overlay


COMPILED = compiled_rules()


def arguments(rule: types.FunctionType) -> st.SearchStrategy[list[Any]]:
    """Well-typed arguments, ill-formed on purpose: unsorted caches, epochs below -1, offsets outside the log."""
    length = st.shared(st.integers(1, 5))

    def of(name: str, kind: Any) -> st.SearchStrategy[Any]:
        if kind in (bool, int):
            return st.booleans() if kind is bool else NUMBERS
        member = st.booleans() if name == "counted" else NUMBERS
        return length.flatmap(lambda n: st.lists(member, min_size=n, max_size=n))

    parameters = inspect.signature(rule).parameters
    return st.tuples(*[of(name, parameter.annotation) for name, parameter in parameters.items()]).map(list)


def as_array(value: Any) -> Any:
    """A list as Numba's judge has it."""
    if not isinstance(value, list):
        return value
    return np.array(value, dtype=np.bool_ if isinstance(value[0], bool) else np.int64)


@pytest.mark.parametrize("name", list(RULES))
def test_the_same_code_object_is_run_proved_and_compiled(name: str) -> None:
    """No copy of a rule exists: all three functions share one code object."""
    symbolic = symbolic_rules(vars(rules))[name]
    assert symbolic.__code__ is RULES[name].__code__
    assert COMPILED[name].py_func.__code__ is RULES[name].__code__


@pytest.mark.parametrize("name", list(RULES))
def test_numba_answers_as_cpython(name: str) -> None:
    """The compiled rule gives the same value as the plain one, on ill-formed input too."""

    @settings(max_examples=200, deadline=None, derandomize=True, database=None)
    @given(arguments(RULES[name]))
    def check(values: list[Any]) -> None:
        assert COMPILED[name](*[as_array(v) for v in values]) == RULES[name](*values)

    check()


@pytest.mark.parametrize("name", list(RULES))
def test_the_symbolic_execution_answers_as_cpython(name: str) -> None:
    """Run on symbolic ints that are pinned to numbers, a rule gives the number that CPython gives."""

    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(arguments(RULES[name]))
    def check(values: list[Any]) -> None:
        expected = RULES[name](*values)
        tally = explore(lambda path: pinned(path, name, values, expected), vars(rules))
        assert tally.paths == 1
        assert not tally.refuted, tally.refuted
        assert not tally.unknown

    check()


def pinned(path: ProofPath, name: str, values: list[Any], expected: Any) -> None:
    """A lemma without freedom: every argument is a symbolic value equal to one number."""
    result = path.call(name, *[symbol(path, f"a{i}", value) for i, value in enumerate(values)])
    got = result if isinstance(result, tuple) else (result,)
    want = expected if isinstance(expected, tuple) else (expected,)
    assert len(got) == len(want)
    for number, (g, w) in enumerate(zip(got, want, strict=True)):
        path.goal(f"member {number} is {w}", g == (z3.BoolVal(w) if isinstance(w, bool) and z3.is_expr(g) else w))


def symbol(path: ProofPath, name: str, value: Any) -> Any:
    """A fresh symbolic value pinned to `value`, member by member for a list."""
    if isinstance(value, list):
        return [symbol(path, f"{name}_{i}", v) for i, v in enumerate(value)]
    fresh = path.boolean(name) if isinstance(value, bool) else path.integer(name)
    path.assume(fresh == value)
    return fresh


def test_a_wrong_number_is_refuted() -> None:
    """The link test can fail: another expected value is a counter-model."""
    tally = explore(lambda path: pinned(path, "latest_epoch", [[1, 4]], 5), vars(rules))
    assert tally.refuted


def test_a_rule_may_use_nothing_but_four_builtins() -> None:
    """A rule that reaches for another builtin fails its proof instead of being skipped."""
    namespace: dict[str, Any] = {}
    exec("def total(values):\n    return sum(values)\n", namespace)
    tally = explore(lambda path: path.goal("unreached", path.call("total", path.integers("v", 2)) == 0), namespace)
    assert any("NameError" in goal for goal in tally.refuted)


def test_compiled_rules_read_typed_lists() -> None:
    """Numba compiles the same text for its own sequences as well as for arrays."""
    values = TypedList([1, 2, 5])
    assert COMPILED["count_at_most"](values, 2) == 2
