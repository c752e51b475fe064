"""Measures the shape of the package: its size, its imports, its names, its comments, and the files that one check enters.

`python -m validation.shape [PACKAGE_FOLDER] [--capture DIR]` prints a line per figure, as docs/figures.md has them. Text is
measured with `ast`; only the last figure runs the package.
"""

import argparse
import ast
import io
import statistics
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
LONGEST_FOLDER = 15
"""Folders with more Python files than this are named."""
ROOMS = ("benchmarks", "docs", "tests", "tidegauge", "validation")
CAPTURE = "tidegauge/traces/captures/3.4.0/b-kill-leader"


class Module:
    """One file: its text, its tree, and what is counted in it."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.lines = self.text.splitlines()

    def code_lines(self) -> set[int]:
        """Return the numbers of the lines that hold code: no blank line, comment or docstring."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
        with_code = {
            line for token in tokens if token.type not in skipped for line in range(token.start[0], token.end[0] + 1)
        }
        return with_code - set(_docstring_lines(self.tree))

    def import_lines(self) -> set[int]:
        """Return the numbers of the lines that import statements take."""
        statements = (node for node in ast.walk(self.tree) if isinstance(node, ast.Import | ast.ImportFrom))
        return {line for node in statements for line in range(node.lineno, (node.end_lineno or 0) + 1)}

    def comment_lines(self) -> set[int]:
        """Return the numbers of the lines that hold a comment and nothing else."""
        return {number for number, line in enumerate(self.lines, 1) if line.lstrip().startswith("#")}

    def functions(self) -> list[ast.FunctionDef]:
        """Return every function and method, nested ones included."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)]

    def classes(self) -> set[str]:
        """Return the names of the classes and named types that are defined at the top, and are meant for others."""
        return {node.name for node in self.tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")} | {
            target.id
            for node in self.tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name) and target.id[0].isupper() and not target.id.isupper()
        }

    def imported(self, modules: dict[str, "Module"]) -> set[str]:
        """Return the modules of the package that are imported when this one is."""
        modules_imported = set()
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                modules_imported |= {f"{node.module}.{alias.name}" for alias in node.names} & modules.keys() or {
                    node.module
                } & modules.keys()
        # A package whose __init__ imports from itself is no step of a chain.
        return modules_imported - {self.name}


def _docstring_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from range(node.lineno, (node.end_lineno or 0) + 1)


def modules_of(package: Path) -> dict[str, Module]:
    """Read every Python file below a package; adapters, which are examples of other programs, are left out."""
    paths = sorted(path for path in package.rglob("*.py") if "adapters" not in path.parts)
    named = {
        path: ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__") for path in paths
    }
    return {name: Module(path, name) for path, name in named.items()}


def longest_chain(modules: dict[str, Module]) -> list[str]:
    """Return the longest way of imports from one module to another; imports inside functions do not count."""

    @cache
    def chain(name: str) -> tuple[str, ...]:
        below = max(sorted(modules[name].imported(modules)), key=lambda other: len(chain(other)), default=None)
        return (name,) if below is None else (name, *chain(below))

    return list(chain(max(modules, key=lambda name: len(chain(name)))))


def entered(package: Path, capture: Path) -> set[str]:
    """Return the files of the package in which `check` of a log directory runs a function.

    The kernel is run uncompiled, so that its files count.
    """
    from tidegauge.conformance.checking import check  # noqa: PLC0415

    files: set[str] = set()

    def watch(frame: FrameType, event: str, _value: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(package)) and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    # A profile hook sees every call; it must go even if the check raises.
    sys.setprofile(watch)
    try:
        check.check([capture])
    finally:
        sys.setprofile(None)
    return files


def figures(package: Path) -> Iterator[tuple[str, object]]:
    """Yield each figure that the text alone gives, with its name."""
    modules = modules_of(package)
    each = modules.values()
    yield "lines of Python", sum(len(module.lines) for module in each)
    yield "lines of code among them", sum(len(module.code_lines()) for module in each)
    yield "files", len(modules)
    code = sum(len(module.code_lines()) for module in each)
    yield "imports, of the lines of code", f"{sum(len(module.import_lines()) for module in each) / code:.1%}"
    chain = longest_chain(modules)
    yield "longest import chain", f"{len(chain)}: {' > '.join(name.removeprefix('tidegauge.') for name in chain)}"
    homes: dict[str, list[str]] = defaultdict(list)
    for module in each:
        for name in module.classes():
            homes[name].append(module.name)
    several = sorted(name for name, where in homes.items() if len(where) > 1)
    yield "classes and types defined in several files", f"{len(several)} of {len(homes)}: {', '.join(several)}"
    functions = [node for module in each for node in module.functions()]
    # Bodies include docstrings: the share is of all lines that a reader of the functions meets.
    bodies = sum((node.end_lineno or 0) - node.body[0].lineno + 1 for node in functions)
    comments = sum(
        len(
            module.comment_lines()
            & {line for node in module.functions() for line in range(node.lineno, (node.end_lineno or 0) + 1)}
        )
        for module in each
    )
    yield "own-line comments, of function bodies", f"{comments / bodies:.1%}"
    yield (
        "functions, their median length",
        f"{len(functions)}, {statistics.median((n.end_lineno or 0) - n.lineno + 1 for n in functions):g}",
    )
    folders: dict[Path, int] = defaultdict(int)
    for module in each:
        folders[module.path.parent] += module.path.name != "__init__.py"
    large = sorted(
        f"{folder.relative_to(package.parent)} {count}" for folder, count in folders.items() if count > LONGEST_FOLDER
    )
    yield f"folders of more than {LONGEST_FOLDER} files", ", ".join(large) or "none"


def words_of_pages(root: Path) -> int:
    """Count the words of the Markdown of the repository; the bars and rules of a table are no words."""
    pages = [*root.glob("*.md"), *(page for name in ROOMS for page in (root / name).rglob("*.md"))]
    return sum(any(map(str.isalnum, word)) for page in pages for word in page.read_text(encoding="utf-8").split())


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m validation.shape", description=__doc__)
    parser.add_argument("package", nargs="?", type=Path, default=ROOT / "tidegauge", help="the folder of the package")
    parser.add_argument("--capture", type=Path, default=ROOT / CAPTURE, help="the log directory whose check is followed")
    options = parser.parse_args()
    for name, figure in figures(options.package):
        print(f"{name}: {figure}")
    if options.package == ROOT / "tidegauge":
        print(f"words of Markdown: {words_of_pages(ROOT):,}")
        print(f"files entered by check DIR: {len(entered(options.package, options.capture))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
