"""The counting helpers of `impl.rules`, for sequences of any length: each loop is cut open and its contract proved.

Rules of this file

1. A helper's loop is taken from the helper's own text and split at its head: the statements before it, one turn of it, the
   return after it. The text must compile to the helper's code object, so the pieces are pieces of the code that runs.
2. A contract holds when an invariant does: *init* (before the loop), *step* (over one turn), *measure* (each turn lowers a
   number that is never negative, so the loop ends) and *post* (after the loop the invariant implies the contract).
3. Everywhere else the contract replaces the loop (`CONTRACTS`).

Terms: a *contract* states what a helper returns, by z3 formulas instead of a loop. A *piece* is a function made from some
statements of a helper. The *state* of a loop is the tuple of the local variables that the helper assigns, in order of name.
A *lemma* takes a path, the run on which it assumes and sets goals, and a size, which only the bounded lemmas use. An
`AnySeq` is a sequence of unknown length: `values.function(i)` is the term of its member at i, `values.size` its length.
"""

import ast
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import z3

from tidegauge.impl import rules
from tidegauge.spec.proofs.engine.paths import ProofPath
from tidegauge.spec.proofs.engine.symbolic import AnySeq, Int, symbolic_rules, term


@dataclass(frozen=True)
class Loop:
    """A helper cut at the head of its loop into three pieces."""

    state: tuple[str, ...]
    """names of the local variables"""
    before: Callable[..., Any]
    """arguments -> state at the first head of the loop"""
    turn: Callable[..., Any]
    """arguments, state -> (whether the loop was entered, *state after one turn); the state as it was if not"""
    after: Callable[..., Any]
    """arguments, state -> what the helper returns"""


def split(name: str, namespace: Mapping[str, Any]) -> Loop:
    """Return the helper `name` of `namespace`, cut at its loop.

    The helper must be assignments, one loop and a return. Its text is found in `__source__` of the namespace (rules that
    were made from a text, mutants), else in the file of `impl.rules`. Raises ValueError for another shape, and when the text
    is not that of the code that runs.
    """
    text = namespace.get("__source__") or inspect.getsource(rules)
    function = next(s for s in ast.parse(text).body if isinstance(s, ast.FunctionDef) and s.name == name)
    # Another text than the code that runs would prove something else: the file may have changed since the import.
    if _code_of(function).co_code != namespace[name].__code__.co_code:
        raise ValueError(f"expected the text of {name} to be its code; seen another text; load the rules again")
    # Without the docstring, which is an expression of a constant.
    body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    *head, loop, last = body
    if not (isinstance(loop, (ast.While, ast.For)) and isinstance(last, ast.Return)):
        raise ValueError(f"expected {name} to be assignments, one loop and a return; seen another shape")  # noqa: TRY004  the text is wrong, not a type
    condition, turn, counter_start = _as_while(loop)
    before_loop = [*head, *counter_start]
    # The names that the statements before the loop assign.
    state = sorted(
        {t.id for s in before_loop for t in ast.walk(s) if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store)}
    )
    arguments = [a.arg for a in function.args.args]
    return Loop(
        tuple(state),
        _function([*before_loop, _return_of(state)], arguments),
        _function(
            [ast.If(condition, [*turn, _return_of(state, entered=True)], []), _return_of(state, entered=False)],
            [*arguments, *state],
        ),
        _function([last], [*arguments, *state]),
    )


def _as_while(loop: ast.While | ast.For) -> tuple[ast.expr, list[ast.stmt], list[ast.stmt]]:
    """Return a loop as a while loop: its condition, the statements of its body, and those to run before it.

    `for i in range(n): ...` becomes `i = 0; while i < n: ...; i += 1`: only such a loop needs a statement before it, which
    starts the counter. Raises ValueError for any other `for`.
    """
    if isinstance(loop, ast.While):
        return loop.test, loop.body, []
    call, target = loop.iter, loop.target
    if not (
        isinstance(call, ast.Call)
        and ast.unparse(call.func) == "range"
        and len(call.args) == 1
        and isinstance(target, ast.Name)
    ):
        raise ValueError(f"expected a loop over range(n); seen {ast.unparse(loop.iter)}")
    # A continue would skip the step that is added to the body, and the state after a break is not that of the head.
    if any(isinstance(s, (ast.Break, ast.Continue)) for s in ast.walk(loop)):
        raise ValueError("expected a loop without break and continue")
    head, condition, step = ast.parse(f"{target.id} = 0\n{target.id} < {ast.unparse(call.args[0])}\n{target.id} += 1").body
    assert isinstance(condition, ast.Expr)
    return condition.value, [*loop.body, step], [head]


def _return_of(state: list[str], entered: bool | None = None) -> ast.stmt:
    """Return a statement that ends a piece: it returns the variables `state` as a tuple, behind `entered` if that is given.

    `entered`: for the piece of one turn, whether the loop's condition held; None for the piece before the loop, which
    returns the state alone.
    """
    members = ", ".join(([] if entered is None else [str(entered)]) + state)
    return ast.parse(f"def f():\n    return ({members},)").body[0].body[0]  # type: ignore[attr-defined, no-any-return]


def _function(body: list[ast.stmt], arguments: list[str]) -> Callable[..., Any]:
    """Return a function of these parameters with this body, in which `len`, `min` and `max` work on symbolic values."""
    # Plain positional parameters, and nothing else that a function may have.
    parameters = ast.arguments([], [ast.arg(a) for a in arguments], None, [], [], None, [])
    return types.FunctionType(_code_of(ast.FunctionDef("piece", parameters, body, [], None)), symbolic_rules({}))


def _code_of(function: ast.FunctionDef) -> types.CodeType:
    """Return the code that a function's text compiles to."""
    # Without annotations: they would add names to the code, and the text of a piece has none.
    bare = ast.arguments([], [ast.arg(a.arg) for a in function.args.args], None, [], [], None, [])
    tree = ast.Module([ast.FunctionDef(function.name, bare, function.body, [], None)], [])
    namespace: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(tree), "rules", "exec"), namespace)
    code: types.CodeType = namespace[function.name].__code__
    return code


# ---------------------------------------------------------------------------------------------------------------------
# The contracts


def _count(within: Callable[[Any, Any], Any]) -> Callable[[AnySeq, Any], Int]:
    """Return the contract of a helper that counts the longest prefix within a bound.

    `within(value, bound)` states that a value lies within it. The contract has the parameters of the helper.
    """

    def contract(values: AnySeq, bound: Any) -> Int:
        """Return a fresh count; assume that it is what the helper promises: all before it are within, the next is not."""
        path, i = values.path, z3.Int("i")
        # A fresh name per call: two calls of a helper count different things.
        count = path.fresh("count")
        path.assume(z3.And(count >= 0, count <= values.size))
        # Triggered by a read of a member, so that the solver uses the contract for the members that a goal mentions.
        path.forall([i], z3.Implies(z3.And(i >= 0, i < count), within(values.function(i), term(bound))), values.function(i))
        path.assume(z3.Implies(count < values.size, z3.Not(within(values.function(count), term(bound)))))
        return Int(path, count)

    return contract


def _lowest(bound: Any, values: AnySeq, counted: AnySeq) -> Int:
    """Return the minimum of `bound` and the counted values: the contract of `lowest_counted`.

    `counted` is a sequence of truth values; value i counts where it is true at i. The minimum is a fresh integer, and the
    path assumes what defines it.
    """
    path, i = values.path, z3.Int("i")
    # The minimum is below all counted values and is one of them, at the place `witness`.
    low, witness = path.fresh("lowest"), path.fresh("witness")
    path.assume(low <= term(bound))
    holds = z3.Implies(z3.And(i >= 0, i < values.size, counted.function(i)), low <= values.function(i))
    path.forall([i], holds, values.function(i))
    path.forall([i], holds, counted.function(i))
    inside = z3.And(witness >= 0, witness < values.size)
    path.assume(z3.Or(low == term(bound), z3.And(inside, counted.function(witness), low == values.function(witness))))
    return Int(path, low)


CONTRACTS: dict[str, Any] = {
    "count_at_most": _count(lambda value, bound: value <= bound),
    "count_below": _count(lambda value, bound: value < bound),
    "lowest_counted": _lowest,
}
"""The contract of each helper, for the overlay of the unbounded proofs."""


# ---------------------------------------------------------------------------------------------------------------------
# Their proofs


def any_sequence(path: ProofPath, name: str, size: Any, truth: bool = False) -> AnySeq:
    """Return a sequence of `size` integers (of truth values with `truth`), about which nothing else is known."""
    return AnySeq(path, z3.Function(name, z3.IntSort(), z3.BoolSort() if truth else z3.IntSort()), size)


def _run(path: ProofPath, piece: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Run a piece of a helper on terms and sequences; return its results as terms, a single one as a list of one."""
    lifted = [a if isinstance(a, AnySeq) else path.lift(a) for a in arguments]
    result = piece(*lifted)
    return [term(r) for r in result] if isinstance(result, tuple) else [term(result)]


def _prove_count(path: ProofPath, name: str, within: Callable[[Any, Any], Any]) -> None:
    """Prove the contract of the counting helper `name`: init, step, measure and post (rule 2).

    `within(value, bound)` states that the helper counts a value. The loop's state is one variable, the count so far.
    """
    loop = split(name, path.namespace)
    size, bound = path.integer("size", low=0), path.integer("bound")
    values = any_sequence(path, "values", size)
    i, at = z3.Int("i"), path.integer("at")

    def invariant_at(n: Any, index: Any) -> Any:
        """State the loop invariant for the count `n`, as far as it is about the member at `index`."""
        return z3.And(n >= 0, n <= size, z3.Implies(z3.And(index >= 0, index < n), within(values.function(index), bound)))

    (first_count,) = _run(path, loop.before, values, bound)
    # A goal about `at`, an arbitrary index, holds for all. The count is a plain int here, 0.
    path.goal("init: the invariant holds before the loop", invariant_at(z3.IntVal(first_count), at))
    n = path.integer("n")
    # One turn from any state in which the invariant holds, not only from those that the loop reaches.
    path.assume(z3.And(n >= 0, n <= size))
    path.forall([i], invariant_at(n, i), values.function(i))
    entered, after = _run(path, loop.turn, values, bound, n)
    # The loop condition forks the path: on one the loop takes a turn, on the other it has ended. `entered` is plain.
    if entered:
        path.goal("step: one turn keeps the invariant", invariant_at(after, at))
        path.goal("measure: one turn comes nearer to the end", z3.And(size - after < size - n, size - after >= 0))
    else:
        (count,) = _run(path, loop.after, values, bound, n)
        path.goal("post: a count within the length", z3.And(count >= 0, count <= size))
        path.goal("post: all members before are within", invariant_at(count, at))
        path.goal("post: the next one is not", z3.Implies(count < size, z3.Not(within(values.function(count), bound))))


def count_at_most_contract(path: ProofPath, size: int) -> None:
    """Prove that `count_at_most` keeps its contract on any sequence."""
    del size
    _prove_count(path, "count_at_most", lambda value, bound: value <= bound)


def count_below_contract(path: ProofPath, size: int) -> None:
    """Prove that `count_below` keeps its contract on any sequence."""
    del size
    _prove_count(path, "count_below", lambda value, bound: value < bound)


def lowest_counted_contract(path: ProofPath, length: int) -> None:
    """Prove that `lowest_counted` keeps its contract on any sequence: init, step, measure and post (rule 2)."""
    del length
    loop = split("lowest_counted", path.namespace)
    size, bound = path.integer("size", low=0), path.integer("bound")
    values, counted = any_sequence(path, "values", size), any_sequence(path, "counted", size, truth=True)
    j, at = z3.Int("j"), path.integer("at")

    # The loop invariant after i turns with the lowest value `low` so far: `below`, and `reached` with some witness.
    def below(i: Any, low: Any, index: Any) -> Any:
        """State that `low` is not above the member at `index`, if that is one of the first i and counted."""
        return z3.Implies(z3.And(index >= 0, index < i, counted.function(index)), low <= values.function(index))

    def reached(i: Any, low: Any, witness: Any) -> Any:
        """State that `low` is the bound, or the counted member at `witness`, which is one of the first i."""
        inside = z3.And(witness >= 0, witness < i, counted.function(witness), low == values.function(witness))
        return z3.Or(low == bound, inside)

    # The order in which the pieces take and return the state.
    assert loop.state == ("i", "lowest")
    i0, low0 = _run(path, loop.before, bound, values, counted)
    path.goal(
        "init: the invariant holds before the loop",
        z3.And(z3.IntVal(i0) == 0, low0 <= bound, below(i0, low0, at), reached(i0, low0, at)),
    )
    i, low, witness = path.integer("i"), path.integer("lowest"), path.integer("witness")
    # One turn from any state in which the invariant holds, not only from those that the loop reaches.
    path.assume(z3.And(i >= 0, i <= size, low <= bound, reached(i, low, witness)))
    path.forall([j], below(i, low, j), values.function(j))
    entered, i1, low1 = _run(path, loop.turn, bound, values, counted, i, low)
    if entered:
        path.goal("step: one turn keeps the bounds", z3.And(i1 >= 0, i1 <= size, low1 <= bound, below(i1, low1, at)))
        # Either the old witness is good, or the value that this turn has read.
        path.goal("step: the lowest stays a counted value", z3.Or(reached(i1, low1, witness), reached(i1, low1, i)))
        path.goal("measure: one turn comes nearer to the end", z3.And(size - i1 < size - i, size - i1 >= 0))
    else:
        (result,) = _run(path, loop.after, bound, values, counted, i, low)
        path.goal("post: below the bound and every counted value", z3.And(result <= bound, below(size, result, at)))
        path.goal("post: the bound or a counted value", reached(size, result, witness))
