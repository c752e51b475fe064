"""Which table runs which line of the kernel: a mutant of a line is noticed by none that does not run it.

Rule of this file: lines are those of the texts that the mutants are made from, one function at a time (`ast.unparse`).
"""

import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from types import CodeType
from typing import Any

from tests.mutation.kernel_mutants import code_of, function_of, functions_of, in_place, modules
from tests.mutation.prepared import Prepared

Line = tuple[str, str, int]
"""Module, function, and the line in the text of the function."""


def lines_run(tables: Sequence[Prepared]) -> defaultdict[Line, list[int]]:
    """The tables that run each line of the kernel, by their number."""
    found: defaultdict[Line, list[int]] = defaultdict(list)
    hits: set[Line] = set()
    of: dict[CodeType, tuple[str, str]] = {}

    def trace(frame: Any, _event: str, _arg: object) -> Any:
        name = of.get(frame.f_code)
        if name is None:
            return None
        hits.add((*name, frame.f_lineno))
        return trace

    with ExitStack() as stack:
        for module in modules():
            for function, text in functions_of(module).items():
                code = code_of(text)
                of[code] = (module, function)
                stack.enter_context(in_place(function_of(module, function), code))
        for at, table in enumerate(tables):
            hits.clear()
            before = sys.gettrace()
            sys.settrace(trace)
            try:
                table.said()
            finally:
                sys.settrace(before)
            for hit in hits:
                found[hit].append(at)
    return found
