"""Mutants of the judge, put into the running interpreter one function at a time.

Rules of this file

1. A mutant is another code object for one function: whoever has imported the function runs it, and nothing is imported
   again. It is taken back whatever the mutant did.
2. A mutant that does not end is stopped after some processor time, and counts as noticed.
"""

import ast
import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from tests.mutation.mutants import mutants_of, statements_less

ROOT = Path(__file__).parents[2] / "tidegauge" / "conformance" / "judge"
NOT_JUDGED = ("__init__", "fields", "rulebook", "event_groups")
"""Modules that name things and judge nothing."""
NOT_CHANGED = (
    "allocate",
    "tidy",
    "forget_consumed",
    "clear_unused_entries",
    "compare_registrations",
    "forget_consumed_request",
)
"""Functions that make room and judge nothing, or that the interpreted judge does not run: the normal form of a table."""


@dataclass(frozen=True)
class KernelMutant:
    """A function of the kernel with one change; `line` is where, in the text of the function as `ast.unparse` writes it."""

    module: str
    function: str
    change: str
    line: int
    text: str
    """The whole function."""

    @property
    def code(self) -> CodeType:
        """The code object of the changed function."""
        return code_of(self.text)

    @property
    def becomes(self) -> str:
        """What the changed line is now."""
        return self.text.splitlines()[self.line - 1].strip()

    @property
    def key(self) -> str:
        """Module, function and change."""
        return f"{self.module}: {self.function}: {self.change}"


def modules() -> list[str]:
    """The modules whose functions are changed."""
    return sorted(path.stem for path in ROOT.rglob("*.py") if path.stem not in NOT_JUDGED)


def path_of(module: str) -> Path:
    """Return the file of a module of the judge, in whichever folder it is."""
    (path,) = ROOT.rglob(f"{module}.py")
    return path


def functions_of(module: str) -> dict[str, str]:
    """Every function of a module with its text."""
    tree = ast.parse(path_of(module).read_text(encoding="utf-8"))
    found = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name not in NOT_CHANGED)
    return {node.name: ast.unparse(node) for node in found}


def all_mutants(names: Sequence[str]) -> list[KernelMutant]:
    """Every mutant of the modules, in the order of their text."""
    return [
        KernelMutant(module, function, mutant.change, _first_difference(text, mutant.source), mutant.source)
        for module in names
        for function, text in functions_of(module).items()
        for mutant in (*mutants_of(text, calls=True), *statements_less(text))
    ]


def _first_difference(one: str, other: str) -> int:
    lines = zip(one.splitlines(), other.splitlines(), strict=False)
    return next(number for number, (before, after) in enumerate(lines, 1) if before != after)


@cache
def code_of(text: str) -> CodeType:
    """The code object of the one function in a text."""
    return next(const for const in compile(text, "a mutant", "exec").co_consts if isinstance(const, CodeType))


def function_of(module: str, name: str) -> FunctionType:
    """A function of the kernel as it runs."""
    package = ".".join(path_of(module).parent.relative_to(ROOT.parents[2]).parts)
    found: Any = getattr(importlib.import_module(f"{package}.{module}"), name)
    return found


@contextmanager
def in_place(function: FunctionType, code: CodeType) -> Iterator[None]:
    """The function runs this code."""
    before = function.__code__
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = before
