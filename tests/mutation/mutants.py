"""Small changes of a module of `impl`, one at a time.

Rules of this file

1. A mutant is the text of the module with one expression changed; docstrings, annotations, defaults and messages stay.
2. Its key names the function and the change, not the line: it survives edits elsewhere in the file.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

SWAPS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}


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


def mutants_of(source: str) -> list[Mutant]:
    """Every mutant of every function of a module, in the order of the text."""
    tree = ast.parse(source)
    found: dict[str, Mutant] = {}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for change, text in _changed(tree, function):
            key, number = change, 1
            while f"{function.name}: {key}" in found:
                number += 1
                key = f"{change} (no. {number})"
            found[f"{function.name}: {key}"] = Mutant(function.name, key, text)
    return list(found.values())


def _changed(tree: ast.Module, function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    for parent, field, index, node in list(_places(function)):
        for replacement in _replacements(node):
            _put(parent, field, index, replacement)
            yield f"{ast.unparse(node)} -> {ast.unparse(replacement)}", ast.unparse(ast.fix_missing_locations(tree))
            _put(parent, field, index, node)


def _places(function: ast.FunctionDef) -> Iterator[tuple[ast.AST, str, int | None, ast.expr]]:
    waiting: list[ast.AST] = [s for s in function.body if not isinstance(s, ast.Expr)]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.FunctionDef | ast.Raise | ast.JoinedStr):
            continue
        for field, value in ast.iter_fields(node):
            for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.AST):
                    waiting.append(child)
                    if isinstance(child, ast.expr) and field not in {"func", "annotation", "slice"}:
                        yield node, field, index, child


def _replacements(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for swapped in SWAPS[type(node.ops[0])]:
            yield ast.Compare(node.left, [swapped()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        for left_out in range(len(node.values)):
            rest = [v for i, v in enumerate(node.values) if i != left_out]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"min", "max"}:
        yield ast.Call(ast.Name("max" if node.func.id == "min" else "min", ast.Load()), node.args, node.keywords)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield ast.BinOp(node.left, ast.Sub() if isinstance(node.op, ast.Add) else ast.Add(), node.right)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield from (ast.Constant(node.value + 1), ast.Constant(node.value - 1))


def _put(parent: ast.AST, field: str, index: int | None, node: ast.expr) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node
