"""Values without a circle are not walked in search of one: neither in a command's process nor in those beside it."""

import gc
from collections.abc import Iterator

import pytest

from tidegauge.cli.main import main
from tidegauge.util.workers import THRESHOLDS, workers


@pytest.fixture
def as_python_has_it() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield gc.get_threshold()
    gc.set_threshold(*before)


def _thresholds(_: None) -> tuple[int, int, int]:
    return gc.get_threshold()


def test_a_command_collects_seldom(as_python_has_it: tuple[int, int, int]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert gc.get_threshold() == THRESHOLDS != as_python_has_it


def test_so_do_the_processes_beside_it() -> None:
    with workers(1) as side_by_side:
        assert list(side_by_side(_thresholds, [None])) == [THRESHOLDS]
