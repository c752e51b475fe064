"""Mutants of the rules: small changes of one expression each, and whether a proof notices them.

python -m validation.rule_mutants --processes 2
"""

import argparse
import ast
import inspect
import sys
import tomllib
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path as File
from typing import Any

from tidegauge.impl import rules
from tidegauge.spec.proofs.engine.paths import CounterModel
from tidegauge.spec.proofs.groups import BOUNDED, SizedLemma
from tidegauge.spec.proofs.prove import namespace_of
from tidegauge.util.python_processes import process_context

# Mutants of any module.
#
# 1. A mutant is the text of a module with one expression changed. Its key names the function and the change, not the line:
#    it survives edits elsewhere in the file. Two changes that give the same text are one mutant.
# 2. Only behaviour changes: annotations, docstrings, defaults, called functions, targets of assignments, errors and their
#    messages stay.
# 3. The caller defines the replacements of an expression; `confused` has those that all callers use.


Swaps = Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]]
"""The replacements of each comparison."""

Replacements = Callable[[ast.expr], Iterator[ast.expr]]

_Place = tuple[ast.AST, str, int | None, ast.expr]
"""Node, field, index in the field if that is a list, and the expression there."""


@dataclass(frozen=True)
class Mutant:
    """One changed expression."""

    function: str
    change: str
    source: str

    @property
    def key(self) -> str:
        """Function and change."""
        return f"{self.function}: {self.change}"


def mutants_of(source: str, replacements: Replacements, calls: bool = False) -> list[Mutant]:
    """Return every mutant of every function of a module, in the order of the text; `calls`: also of bare calls."""
    tree = ast.parse(source)
    mutants: dict[str, Mutant] = {}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for change, text in _changed(tree, function, replacements, calls):
            # The same change may be possible twice in a function, at different places.
            key, number = change, 1
            while f"{function.name}: {key}" in mutants:
                number += 1
                key = f"{change} (no. {number})"
            mutants[f"{function.name}: {key}"] = Mutant(function.name, key, text)
    return list(mutants.values())


def confused(node: ast.expr, swaps: Swaps) -> Iterator[ast.expr]:
    """Yield confusions: another comparison, and for or, one condition less, min for max, plus for minus, n+1."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for swapped in swaps[type(node.ops[0])]:
            yield ast.Compare(node.left, [swapped()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        for left_out in range(len(node.values)):
            rest = [v for i, v in enumerate(node.values) if i != left_out]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"min", "max"}:
        yield ast.Call(ast.Name("max" if node.func.id == "min" else "min", ast.Load()), node.args, node.keywords)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield from (ast.Constant(node.value + 1), ast.Constant(node.value - 1))


def _changed(
    tree: ast.Module, function: ast.FunctionDef, replacements: Replacements, calls: bool
) -> Iterator[tuple[str, str]]:
    seen = {ast.unparse(function)}
    for parent, field, index, node in list(_places(function, calls)):
        for replacement in replacements(node):
            _put(parent, field, index, replacement)
            text = ast.unparse(function)
            if text not in seen:
                seen.add(text)
                whole = ast.unparse(tree) if len(tree.body) > 1 else text
                yield f"{ast.unparse(node)} -> {ast.unparse(replacement)}", whole
            _put(parent, field, index, node)


def _places(function: ast.FunctionDef, calls: bool) -> Iterator[_Place]:
    """Yield each expression that a mutant may change, breadth first: its parent, the field, the index there, itself."""
    waiting: list[ast.AST] = [
        statement
        for statement in function.body
        if not isinstance(statement, ast.Expr) or (calls and isinstance(statement.value, ast.Call))
    ]
    while waiting:
        node = waiting.pop(0)
        # Nested functions are mutated on their own, and messages are no behaviour.
        if isinstance(node, ast.FunctionDef | ast.Raise | ast.JoinedStr):
            continue
        for field, value in ast.iter_fields(node):
            for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.AST):
                    waiting.append(child)
                    if isinstance(child, ast.expr) and field not in {"func", "annotation"} and not _is_assigned(child):
                        yield node, field, index, child


def _is_assigned(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def _put(parent: ast.AST, field: str, index: int | None, node: ast.expr) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


# The mutants of the rules, and the proofs that refute them.
#
# A mutant of `impl/rules.py` is *killed* when a lemma that reaches the changed
# rule finds a counter-model. A mutant that no lemma kills must be the same function on all arguments that the
# protocol can pass; `rule_mutants.toml` lists those, each with its reason. Any other is a hole in the proofs.


EQUIVALENT = File(__file__).with_name("rule_mutants.toml")

SWAPS: Swaps = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE),
    ast.NotEq: (ast.Eq, ast.Gt, ast.Lt),
}

KILLING_SIZE = 2
"""Entries of the caches: every mutant that is killed at all is killed with two."""


@cache
def mutants() -> tuple[Mutant, ...]:
    """Return every mutant of every rule, in the order of the text."""
    return tuple(mutants_of(inspect.getsource(rules), _replacements))


def _replacements(node: ast.expr) -> Iterator[ast.expr]:
    """Yield other expressions for one of a rule: those of `confused`, an operand alone, a value one up or down."""
    yield from confused(node, SWAPS)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"min", "max"}:
        yield from node.args
    elif isinstance(node, ast.BinOp):
        yield node.left
    elif isinstance(node, ast.Name) and node.id.isupper():
        yield from (ast.Constant(getattr(rules, node.id) + step) for step in (1, -1))
    elif isinstance(node, (ast.Name, ast.Subscript)) and not _is_sequence(node):
        yield ast.BinOp(node, ast.Add(), ast.Constant(1))
        yield ast.BinOp(node, ast.Sub(), ast.Constant(1))


SEQUENCES = {"values", "counted", "epochs", "starts", "leos", "batch_epochs"}
TRUTHS = {"ready", "epoch_checked", "in_maximal_isr", "caught_up", "eligible", "too_few"} | {
    *("serves", "assigned", "fences", "truncating", "was_leader", "keeps")
}


def _is_sequence(node: ast.expr) -> bool:
    """Return whether an expression is a sequence or truth value, which has no neighbour one up or down."""
    name = node.value if isinstance(node, ast.Subscript) else node
    truth = isinstance(node, ast.Subscript) and isinstance(name, ast.Name) and name.id == "counted"
    return truth or (isinstance(node, ast.Name) and node.id in SEQUENCES | TRUTHS)


@cache
def _reach() -> list[tuple[SizedLemma, frozenset[str]]]:
    """Return every lemma with the rules it reaches, directly or through others; the cheap ones first."""
    reached = []
    for group in sorted(BOUNDED, key=lambda g: g.weight):
        for lemma in group.lemmas:
            called: set[str] = set()
            # What a lemma calls does not depend on the size, once there are entries to look at.
            for size in lemma.sizes(2):
                called |= lemma.explore(size, vars(rules)).called
            reached.append((lemma, frozenset(_closure(called))))
    return reached


def _closure(names: set[str]) -> set[str]:
    waiting, closed = list(names), set(names)
    while waiting:
        function = getattr(rules, waiting.pop())
        for name in function.__code__.co_names:
            if isinstance(getattr(rules, name, None), types.FunctionType) and name not in closed:
                closed.add(name)
                waiting.append(name)
    return closed


def refuter(mutant: Mutant) -> tuple[SizedLemma, CounterModel] | None:
    """Return the lemma that refutes the mutant, and a counter-model; None when the mutant survives them all."""
    namespace: Mapping[str, Any] = namespace_of(mutant.source)
    for lemma, reached in _reach():
        if mutant.function in reached:
            for size in lemma.sizes(KILLING_SIZE):
                tally = lemma.explore(size, namespace, stop_at_first=True)
                if tally.refuted:
                    return lemma, next(iter(tally.refuted.values()))
    return None


def killer(mutant: Mutant) -> str | None:
    """Return the lemma and goal that refute the mutant, None when it survives them all."""
    refutation = refuter(mutant)
    return None if refutation is None else f"{refutation[0].name}: {refutation[1].goal}"


def equivalents() -> dict[str, str]:
    """Load the mutants known to be the same function on everything that the protocol passes, with the reason."""
    with EQUIVALENT.open("rb") as file:
        return {str(row["mutant"]): str(row["reason"]) for row in tomllib.load(file)["equivalent"]}


@dataclass(frozen=True)
class MutationReport:
    """The fate of every mutant."""

    killed: dict[str, str]
    equivalent: dict[str, str]
    holes: tuple[str, ...]
    """Mutants that survive and are not listed."""
    wrongly_listed: tuple[str, ...]
    """Listed as equivalent, but killed or no mutant at all."""

    @property
    def exit_code(self) -> int:
        """0 when every mutant is accounted for, else 1."""
        return 1 if self.holes or self.wrongly_listed or not self.killed else 0

    def describe(self) -> list[str]:
        """Return the counts, and every mutant that is not accounted for."""
        total = len(self.killed) + len(self.equivalent) + len(self.holes)
        lines = [
            f"{total} mutants: {len(self.killed)} killed, {len(self.equivalent)} equivalent, {len(self.holes)} unnoticed"
        ]
        lines += [
            f"UNNOTICED      {key}: no proof refutes it; strengthen a lemma or list it with a reason" for key in self.holes
        ]
        lines += [f"WRONGLY LISTED {key}: a proof refutes it, or it is no mutant; remove it" for key in self.wrongly_listed]
        return lines


def kill_all(processes: int) -> MutationReport:
    """Try every mutant, in several processes at once."""
    listed, made = equivalents(), mutants()
    killed: dict[str, str] = {}
    survived: list[str] = []
    with process_context().Pool(processes) as pool:
        for key, lemma_and_goal in pool.imap_unordered(_try, made, chunksize=10):
            if lemma_and_goal is None:
                survived.append(key)
            else:
                killed[key] = lemma_and_goal
    return MutationReport(
        killed={k: v for k, v in killed.items() if k not in listed},
        equivalent={k: listed[k] for k in survived if k in listed},
        holes=tuple(k for k in survived if k not in listed),
        wrongly_listed=tuple(k for k in listed if k not in survived),
    )


def _try(mutant: Mutant) -> tuple[str, str | None]:
    return mutant.key, killer(mutant)


def main(argv: Sequence[str] | None = None) -> int:
    """Try every mutant and print the report."""
    parser = argparse.ArgumentParser(prog="python -m validation.rule_mutants", description=__doc__)
    parser.add_argument("--processes", type=int, default=2, help="number of mutants tried at once (default 2)")
    report = kill_all(parser.parse_args(argv).processes)
    print("\n".join(report.describe()))
    return report.exit_code


if __name__ == "__main__":
    sys.exit(main())
