"""Small changes of Python text, one expression of one function at a time: mutants.

Rules of this file

1. A mutant is the text of a module with one expression changed. Its key names the function and the change, not the line: it
   survives edits elsewhere in the file. Two changes that give the same text are one mutant.
2. Only behaviour changes: annotations, docstrings, defaults, called functions, targets of assignments, errors and their
   messages stay.
3. The caller defines the replacements of an expression; `confused` has those that all callers use.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

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
                yield f"{ast.unparse(node)} -> {ast.unparse(replacement)}", ast.unparse(tree)
            _put(parent, field, index, node)


def _places(function: ast.FunctionDef, calls: bool) -> Iterator[_Place]:
    waiting: list[ast.AST] = [
        statement
        for statement in function.body
        if not isinstance(statement, ast.Expr) or (calls and isinstance(statement.value, ast.Call))
    ]
    while waiting:
        node = waiting.pop(0)
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
