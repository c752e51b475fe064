"""docs/mapping.md names what exists."""

import importlib
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAPPING = (ROOT / "docs" / "mapping.md").read_text(encoding="utf-8")


def test_every_function_named_exists() -> None:
    """`impl.module:function` imports."""
    named = re.findall(r"`(impl\.[\w.]+):(\w+)`", MAPPING)
    assert len(named) > 40
    for module, function in named:
        assert callable(getattr(importlib.import_module(f"tidegauge.{module}"), function)), f"{module}:{function}"


def rows() -> list[list[str]]:
    """The cells of every row that claims something, up to what is not here yet."""
    present = MAPPING.partition("## What is not here yet")[0]
    lines = [line for line in present.splitlines() if line.startswith("|") and not line.startswith("|---")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] not in {"system", "in the article"}]


def test_every_row_has_a_function_and_something_that_holds_it() -> None:
    """A function of impl, and a test, a table of Kafka's classes, or the graph."""
    assert len(rows()) > 90
    for row in rows():
        assert re.search(r"`impl\.[\w.]+", row[1]), row
        assert re.search(r"`tests/|table|graph", row[-1]), row


def test_every_module_of_the_implementation_is_named() -> None:
    """Nothing of it is outside the page, but what only carries values or text."""
    values = {"errors", "messages", "frozen_map", "controller.records", "replica.partition_state"}
    text = {"explorer.describe", "explorer.spec_view"}
    paths = (
        path.relative_to(ROOT / "tidegauge" / "impl")
        for path in (ROOT / "tidegauge" / "impl").rglob("*.py")
        if path.name != "__init__.py"
    )
    modules = {".".join(path.with_suffix("").parts) for path in paths} - values - text
    missing = {name for name in modules if f"impl.{name}" not in MAPPING}
    assert missing <= {"explorer.explore", "explorer.invariants", "explorer.faults"}, missing


def test_every_test_named_exists() -> None:
    """Paths under tests/ are files or directories."""
    named = set(re.findall(r"`(tests/[\w/.]+)`", MAPPING))
    assert len(named) > 5
    assert not [path for path in named if not (ROOT / path).exists()]
