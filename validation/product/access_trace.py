"""Rewrites the kernel so that it notes which cells of its table it reads: memories that agree in these are judged alike.

Rules of this file

1. A read is an `st[..]` in the text, until a rule fails: after that nothing changes the outcome.
2. Notes are in a second half of the table, at the same row and column.
"""

import ast
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from tidegauge.conformance.engine.compiled import MODULES, TOP, Rewriting, callees_first, functions_of, with_globals
from tidegauge.conformance.judge.state import FAILED, PARTITION, Ints, State


def cell_read(st: State, row: int, column: int) -> int:
    """Note and return the value of a cell."""
    # Once a rule has failed the event is rejected: what is read after that decides nothing.
    if st[PARTITION, FAILED] == 0:
        st[st.shape[0] // 2 + row, column] = 1
    return st[row, column]  # type: ignore[no-any-return]


def cells_read(st: State, row: int, count: int) -> Ints:
    """Note and return the first values of a row."""
    if st[PARTITION, FAILED] == 0:
        for column in range(count):
            st[st.shape[0] // 2 + row, column] = 1
    return st[row, :count]


class _Noted(ast.NodeTransformer):
    """Replaces reads of `st[row, column]` and `st[row, :count]` by calls that note them."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or not isinstance(node.value, ast.Name) or node.value.id != "st":
            return node
        if not isinstance(node.slice, ast.Tuple):
            raise TypeError(f"expected a row and a column of the table, seen {ast.unparse(node)} at line {node.lineno}")
        row, column = node.slice.elts
        called, last = ("cell_read", column)
        if isinstance(column, ast.Slice):
            if column.lower is not None or column.upper is None or column.step is not None:
                raise TypeError(f"expected the first values of a row, seen {ast.unparse(node)} at line {node.lineno}")
            called, last = ("cells_read", column.upper)
        return ast.Call(ast.Name(called, ast.Load()), [node.value, row, last], [])


def noted(function: FunctionType) -> FunctionType:
    """Return the function with every read noted.

    An update in place (`st[..] |= x`) reads nothing that is not read elsewhere.
    """
    tree = ast.parse(inspect.getsource(function))
    made: dict[str, Any] = {}
    text = ast.fix_missing_locations(_Noted().visit(tree))
    exec(compile(text, inspect.getfile(function), "exec"), dict(function.__globals__), made)
    code = made[function.__name__].__code__
    beside = {"cell_read": cell_read, "cells_read": cells_read}
    twin = FunctionType(code, {**function.__globals__, **beside}, function.__name__, function.__defaults__)
    twin.__annotations__ = function.__annotations__
    return twin


NOTED = Rewriting(noted, (cell_read, cells_read))


def uncompiled() -> Callable[..., None]:
    """Return the kernel that notes what it reads, interpreted: for tiny models."""
    twins: dict[str, Any] = {}
    for module in MODULES:
        for key, function in callees_first(functions_of(module)):
            twins[key] = with_globals(noted(function), twins)
    return twins[TOP]  # type: ignore[no-any-return]
