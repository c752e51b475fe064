"""Tasks of Spark in this process: most of what a run does needs no cluster."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any
from unittest.mock import Mock

import pytest

from tidegauge.spark_check import check as spark_check


def fails(*_: object, **__: object) -> None:
    raise OSError("connection lost")


@pytest.fixture
def tasks_here(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Tasks run in this process, as if Spark had given them to it; what each does, in order."""
    ran: list[object] = []

    def run(_spark: object, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
        ran.extend(getattr(function, "func", function) for _ in items)
        return map(function, items)

    monkeypatch.setattr(spark_check, "_tasks", run)
    monkeypatch.setattr(spark_check, "session", lambda master: nullcontext(Mock(sparkContext=Mock(master=master))))
    return ran
