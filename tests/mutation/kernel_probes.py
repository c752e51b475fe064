"""Which tables can tell a mutant from the judge: those while whose judging what it changes comes to anything else.

Rules of this file

1. The judge runs with a probe wherever a mutant changes an expression. It reckons the changed expression beside the right
   one and notes the mutant where the two differ, or where the changed one does not end: a table that notes nothing of a
   mutant can never notice it.
2. A mutant that ENOUGH tables have noted is reckoned no more: any of the tables after those may tell it, too.
3. What is reckoned twice must write nothing. Where a changed expression calls something that writes, its arguments are
   compared; where that cannot be done, and where a call is left out, to run is to differ.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tests.mutation.kernel_mutants import ROOT, KernelMutant, code_of, function_of, functions_of, in_place
from tests.mutation.prepared import Prepared
from tests.processor_time import processor_time
from tidegauge.impl import rules

PROBE = "_probe"
ENOUGH = 60
"""Most mutants of which so many tables have noted something are told by one of them."""
SECONDS = 0.2
"""Of processor time for what is reckoned beside the right value."""
READS = frozenset({"min", "max", "int", "bool", "len", "range", "Records", "Request"})
"""What expressions call and is no function of the kernel, nor one of impl.rules: it writes nothing."""


def differing(tables: Sequence[Prepared], tried: Sequence[KernelMutant]) -> defaultdict[KernelMutant, list[int]]:
    """The tables, by their number, of which a mutant may make anything else."""
    found: defaultdict[KernelMutant, list[int]] = defaultdict(list)
    noted: set[int] = set()
    settled: set[int] = set()

    def probe(value: Any, first: int, changed: Sequence[Callable[[], Any]]) -> Any:
        for number, other in enumerate(changed, first):
            if number not in noted and _differs(value, other):
                noted.add(number)
        return value

    of: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for number, mutant in enumerate(tried):
        of[mutant.module, mutant.function].append(number)
    order: list[KernelMutant] = []
    with ExitStack() as stack:
        for (module, name), numbers in of.items():
            function = function_of(module, name)
            text, numbered = _probed(module, name, [tried[number] for number in numbers], len(order))
            order += numbered
            function.__globals__[PROBE] = probe
            stack.callback(function.__globals__.pop, PROBE, None)
            stack.enter_context(in_place(function, code_of(text)))
        for at, table in enumerate(tables):
            noted.clear()
            noted.update(settled)
            table.said()
            for number in noted - settled:
                found[order[number]].append(at)
                if len(found[order[number]]) == ENOUGH:
                    settled.add(number)
                    found[order[number]] += range(at + 1, len(tables))
    return found


def _differs(value: Any, other: Callable[[], Any]) -> bool:
    try:
        with processor_time(SECONDS):
            return not _same(value, other())
    except Exception:  # what a mutant cannot reckon, or not to the end, is no value either
        return True


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return bool(one == other)


@dataclass(frozen=True)
class _Place:
    """Where a probe stands: around the expression in a field of a node, or in front of a statement (`field` is empty)."""

    node: ast.AST
    field: str = ""
    index: int = -1


def _probed(module: str, name: str, mutants: Sequence[KernelMutant], first: int) -> tuple[str, list[KernelMutant]]:
    """The function with a probe for each of its mutants, which are numbered from `first`; and the mutants in that order."""
    tree = ast.parse(functions_of(module)[name])
    statements = list(_statements(tree))
    at: dict[_Place, list[tuple[KernelMutant, ast.expr, ast.expr]]] = {}
    for mutant in mutants:
        place, value, changed = change_of(statements, _read(mutant.text))
        at.setdefault(place, []).append((mutant, value, changed))
    order: list[KernelMutant] = []
    for place, some in at.items():
        if place.field:
            value = _get(place.node, place.field, place.index)
            _put(place, _call(value, first + len(order), [changed for _, _, changed in some]))
            order += [mutant for mutant, _, _ in some]
        else:
            body, index = next((body, body.index(place.node)) for body in _bodies(tree) if place.node in body)
            for mutant, before, changed in some:
                body.insert(index, ast.Expr(_call(before, first + len(order), [changed])))
                order.append(mutant)
    return ast.unparse(ast.fix_missing_locations(tree)), order


@cache
def _read(text: str) -> Sequence[ast.stmt]:
    """The statements of a mutant: they are asked about more than once, and nothing is written into them."""
    return tuple(_statements(ast.parse(text)))


def _call(value: ast.expr, first: int, changed: Sequence[ast.expr]) -> ast.Call:
    nothing = ast.arguments([], [], None, [], [], None, [])
    others = ast.Tuple([ast.Lambda(nothing, one) for one in changed], ast.Load())
    return ast.Call(ast.Name(PROBE, ast.Load()), [value, ast.Constant(first), others], [])


def change_of(statements: Sequence[ast.stmt], others: Sequence[ast.stmt]) -> tuple[_Place, ast.expr, ast.expr]:
    """Where the two functions differ, and what stands there in one and in the other."""
    one, other = next((a, b) for a, b in zip(statements, others, strict=True) if _own(a) != _own(b))
    if isinstance(other, ast.Pass):
        return _less(one)
    return _descend(one, other) or _ran(one)


def _less(statement: ast.stmt) -> tuple[_Place, ast.expr, ast.expr]:
    """A statement that is left out: what it writes is compared with what is there."""
    if isinstance(statement, ast.Assign) and _reads_only(statement.value):
        return _Place(statement), _loaded(statement.targets[0]), statement.value
    if isinstance(statement, ast.AugAssign) and _reads_only(statement.value):
        now = _loaded(statement.target)
        return _Place(statement), now, ast.BinOp(now, statement.op, statement.value)
    return _ran(statement)


def _ran(statement: ast.stmt) -> tuple[_Place, ast.expr, ast.expr]:
    return _Place(statement), ast.Constant(0), ast.Constant(1)


def _descend(one: ast.AST, other: ast.AST) -> tuple[_Place, ast.expr, ast.expr] | None:
    """The outermost expression that may be reckoned twice, and has all of the difference in it."""
    children, others = list(_children(one)), list(_children(other))
    # A conjunct less: no child alone has the difference.
    if len(children) != len(others) or type(one) is not type(other):
        return None
    differ = [
        (field, index, a, b)
        for (field, index, a), (_, _, b) in zip(children, others, strict=True)
        if ast.dump(a) != ast.dump(b)
    ]
    if len(differ) != 1:
        return None
    field, index, a, b = differ[0]
    if isinstance(a, ast.expr) and isinstance(b, ast.expr) and _stands_alone(a) and _reads_only(a) and _reads_only(b):
        return _Place(one, field, index), a, b
    if type(a) is not type(b):
        return None
    return _descend(a, b)


def _stands_alone(node: ast.expr) -> bool:
    """Whether a call may stand in its place: it is no slice, and nothing is assigned to it."""
    stored = isinstance(getattr(node, "ctx", None), ast.Store)
    sliced = isinstance(node, ast.Slice) or (
        isinstance(node, ast.Tuple) and any(isinstance(e, ast.Slice) for e in node.elts)
    )
    return not stored and not sliced


def _reads_only(node: ast.AST) -> bool:
    return _called(node) <= _readers()


def _called(node: ast.AST) -> set[str]:
    return {_function_name(each.func) for each in ast.walk(node) if isinstance(each, ast.Call)}


def _function_name(called: ast.expr) -> str:
    """The name of a function of the kernel, which reads `state as s`; "?" for anything else that is called."""
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "s":
        return called.attr
    return called.id if isinstance(called, ast.Name) else "?"


@cache
def _readers() -> frozenset[str]:
    """The functions that write nothing: they assign to no place, and call only such."""
    functions = [
        node
        for path in sorted(ROOT.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]
    writers = {node.name for node in functions if any(map(_writes, ast.walk(node)))}
    known = {node.name for node in functions} | READS | {name for name in vars(rules) if name.islower()}
    while True:
        more = {node.name for node in functions if _called(node) & writers or not _called(node) <= known} - writers
        if not more:
            return frozenset(known - writers)
        writers |= more


def _writes(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.stmt))


def _own(statement: ast.stmt) -> str:
    """The text of a statement without the statements in it."""
    return type(statement).__name__ + "".join(ast.dump(node) for _, _, node in _children(statement))


def _children(node: ast.AST) -> Iterator[tuple[str, int, ast.AST]]:
    """What stands in the fields of a node, but for statements."""
    for field, value in ast.iter_fields(node):
        for index, child in enumerate(value) if isinstance(value, list) else ((-1, value),):
            if isinstance(child, ast.AST) and not isinstance(child, ast.stmt):
                yield field, index, child


def _bodies(tree: ast.AST) -> Iterator[list[ast.AST]]:
    for node in ast.walk(tree):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list):
                yield value


def _loaded(target: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(target), mode="eval").body


def _get(node: ast.AST, field: str, index: int) -> ast.expr:
    value: Any = getattr(node, field)
    found: ast.expr = value if index < 0 else value[index]
    return found


def _put(place: _Place, node: ast.expr) -> None:
    if place.index < 0:
        setattr(place.node, place.field, node)
    else:
        getattr(place.node, place.field)[place.index] = node
