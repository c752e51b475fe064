"""What the tests of traces that grow share."""

from pathlib import Path

import pytest

from tests.conformance.follow.same_report import some_runs
from tidegauge.traces.schema import Trace


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a module: properties take many examples."""
    return tmp_path_factory.mktemp("follow")


@pytest.fixture(scope="module")
def runs() -> list[Trace]:
    """Right and wrong runs of every kind."""
    return some_runs()
