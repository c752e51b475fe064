"""Where the tables are, and how they are read."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BUNDLED = Path(__file__).parent / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--kafka-classes", default=str(BUNDLED), metavar="DIR", help="directory of truth tables (*.jsonl.gz)")


@pytest.fixture
def bundled(request: pytest.FixtureRequest) -> bool:
    """Whether the tables are the ones that come with the project."""
    return Path(request.config.getoption("--kafka-classes")).resolve() == BUNDLED.resolve()


@pytest.fixture
def table(request: pytest.FixtureRequest) -> Callable[[str], Iterator[dict[str, Any]]]:
    """Sequences of a table by name; skipped with a word where another directory does not have it."""
    directory = Path(request.config.getoption("--kafka-classes"))

    def sequences(name: str) -> Iterator[dict[str, Any]]:
        path = directory / f"{name}.jsonl.gz"
        if not path.exists():
            pytest.skip(f"{name}: expected {path}; seen no such file; give a directory that has it")
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)

    return sequences
