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

from tests.mutation.mutants import mutants_of, statements_less

ROOT = Path(__file__).parents[2] / "tidegauge" / "conformance" / "judge"
NOT_JUDGED = ("__init__", "fields", "rulebook", "field_groups")
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
ROWS = frozenset({"PARTITION", "OPTION", "LEOS", "COUNTED", "SAVED_PAIR"})
"""They are no columns: in another one nothing is found, as where an AT_ scalar is another."""
ALIKE = (
    *("HW HIGHEST_HW", "HW HW_MOVED", "LEO CACHED", "EPOCH PARTITION_EPOCH", "ISR PROPOSED", "ISR ASSIGNED"),
    *("REQ_EPOCH REQ_LAST", "REQ_EPOCH OLD_EPOCH", "REQ_OFFSET OLD_OFFSET", "REQ_LAST OLD_LAST", "KIND OLD_KIND"),
    *("REMOTE STALE_LEO", "C_EPOCH C_PARTITION_EPOCH", "C_ISR C_ELR", "C_ISR C_REPLICAS", "R_EPOCH R_PARTITION_EPOCH"),
    *("T_LEO T_END", "T_COMMITTED T_ACKED", "T_PAST_COMMITTED T_PAST_ACKED"),
)
"""Columns that hold the same kind of value and do not stand beside each other."""


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
    return [mutant for module in names for mutant in _mutants_of_module(module)]


@cache
def _mutants_of_module(module: str) -> Sequence[KernelMutant]:
    """Unparsing each of thousands takes seconds."""
    return [
        KernelMutant(module, function, mutant.change, _first_difference(text, mutant.source), mutant.source)
        for function, text in functions_of(module).items()
        for mutant in (*mutants_of(text, calls=True, more=Confusions(text).of), *statements_less(text))
    ]


class Confusions:
    """What a function of the judge may mistake for what: columns, locals, UNKNOWN, a member less of what is looked through.

    A column is taken for those beside it in its row and for those ALIKE; a local for those bound before and after it, where
    both are numbers; UNKNOWN for 0 and -1.
    """

    def __init__(self, text: str) -> None:
        nodes = list(ast.walk(ast.parse(text)))
        (function,) = (node for node in nodes if isinstance(node, ast.FunctionDef))
        numbers = [arg for arg in function.args.args if ast.unparse(arg.annotation or function) == "int"]
        self._bound = {arg.arg: 0 for arg in numbers}
        """The locals that are numbers, in the order of the text, each with the line from which on it has a value."""
        stored = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        for node in sorted(stored, key=lambda node: (node.lineno, node.col_offset)):
            self._bound.setdefault(node.id, node.lineno)
        compared = [right for node in nodes if isinstance(node, ast.Compare) for right in node.comparators]
        iterated = [node.iter for node in nodes if isinstance(node, ast.For)]
        self._looked_through = {(node.lineno, node.col_offset) for node in (*compared, *iterated)}
        checks = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "decide"]
        reports = [arg for check in checks if ast.unparse(check.args[2]) == "True" for arg in check.args[4:]]
        read = (node for arg in reports for node in ast.walk(arg) if isinstance(node, ast.expr))
        self._unread = {(node.lineno, node.col_offset) for node in read}
        """What was expected and seen of a check that holds is read by nobody."""

    def of(self, node: ast.expr) -> Iterator[ast.expr]:
        """Yield what may stand there by mistake."""
        if (node.lineno, node.col_offset) in self._unread:
            return
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "s":
            yield from (ast.Attribute(node.value, other, ast.Load()) for other in columns().get(node.attr, ()))
        elif isinstance(node, ast.Name) and node.id == "UNKNOWN":
            yield from (ast.Constant(0), ast.Constant(-1))
        elif isinstance(node, ast.Name):
            others = columns().get(node.id) or self._locals_beside(node)
            yield from (ast.Name(other, ast.Load()) for other in others)
        elif isinstance(node, ast.Tuple) and (node.lineno, node.col_offset) in self._looked_through:
            for less in range(len(node.elts)):
                yield ast.Tuple([e for at, e in enumerate(node.elts) if at != less], ast.Load())

    def _locals_beside(self, node: ast.Name) -> Sequence[str]:
        if node.id not in self._bound:
            return ()
        known = [name for name, line in self._bound.items() if line < node.lineno or name == node.id]
        at = known.index(node.id)
        return (*known[max(at - 1, 0) : at], *known[at + 1 : at + 2])


@cache
def columns() -> dict[str, Sequence[str]]:
    """Each column of the judge's table, and each value that is counted in state.py, with those it may be mistaken for."""
    found: dict[str, Sequence[str]] = {}
    for node in ast.parse(path_of("state").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Call):
            names = map(ast.unparse, node.targets[0].elts)
            row = [name for name in names if name not in ROWS and not name.startswith("AT_")]
            for at, name in enumerate(row):
                found[name] = (*row[max(at - 1, 0) : at], *row[at + 1 : at + 2])
    for pair in ALIKE:
        for one, other in (pair.split(), pair.split()[::-1]):
            found[one] = tuple(dict.fromkeys((*found[one], other)))
    return found


def _first_difference(one: str, other: str) -> int:
    lines = zip(one.splitlines(), other.splitlines(), strict=False)
    return next(number for number, (before, after) in enumerate(lines, 1) if before != after)


@cache
def code_of(text: str) -> CodeType:
    """The code object of the one function in a text."""
    # From Python 3.14 on the first code is that of the annotations.
    return next(
        const
        for const in compile(text, "a mutant", "exec").co_consts
        if isinstance(const, CodeType) and const.co_name != "__annotate__"
    )


def function_of(module: str, name: str) -> FunctionType:
    """A function of the kernel as it runs."""
    package = ".".join(path_of(module).parent.relative_to(ROOT.parents[2]).parts)
    found: FunctionType = getattr(importlib.import_module(f"{package}.{module}"), name)
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
