"""The shipped captures, each read once, and what can be done to them."""

import gzip
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tidegauge.traces.kafka_logs import Capture, read
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.kafka_logs.parsing.lines import clock
from tidegauge.traces.kafka_logs.parsing.timestamps import microseconds
from tidegauge.traces.schema import Trace

Reader = Callable[[str], Capture]


@cache
def _read(name: str) -> Capture:
    return read(shipped()[name])


@pytest.fixture(scope="session")
def capture() -> Reader:
    """A shipped capture by name."""
    return _read


@pytest.fixture(scope="session")
def trace() -> Callable[[str, str], Trace]:
    """One topic-partition of a shipped capture."""

    def find(name: str, tp: str) -> Trace:
        return next(one for one in _read(name).traces if one.tp == tp)

    return find


@pytest.fixture
def shifted(tmp_path: Path) -> Callable[[str, str, int], Path]:
    """A capture with the clock of one node moved by so many microseconds."""
    stamp = re.compile(r"^\[([\d\- :]+,\d+)\]", re.MULTILINE)

    def shift(name: str, node: str, by: int) -> Path:
        def moved(found: re.Match[str]) -> str:
            return f"[{clock(microseconds(found[1]) + by).replace('T', ' ').replace('.', ',')}]"

        for path in shipped()[name].rglob("*"):
            if path.is_file():
                copy = tmp_path / path.relative_to(shipped()[name])
                copy.parent.mkdir(parents=True, exist_ok=True)
                content = path.read_bytes()
                if path.parent.name == node and ".log" in path.name:
                    content = gzip.decompress(content) if path.suffix == ".gz" else content
                    copy = copy.with_suffix("") if path.suffix == ".gz" else copy
                    content = stamp.sub(moved, content.decode()).encode()
                copy.write_bytes(content)
        return tmp_path

    return shift
