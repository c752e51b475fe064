"""The shipped captures, each read once."""

from collections.abc import Callable
from functools import cache

import pytest

from traces.kafka import Capture, read
from traces.kafka.shipped import shipped
from traces.schema import Trace

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
