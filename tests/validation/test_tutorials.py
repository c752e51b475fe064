"""The first pages of the three people say what happens: their commands run, here with this checkout in place of a wheel."""

import os
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from validation.docs import tutorials

SLOW = "first-adapter"  # it runs every case of the suite twice


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.long) if page.stem == SLOW else page for page in tutorials.PAGES],
    ids=lambda page: page.stem,
)
def test_every_command_of_a_page_does_what_the_page_says(page: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    path = tutorials.slim_path(tmp_path / "bin")
    modules = {"python": "", "python3": "", "tidegauge": "-m tidegauge ", "pytest": "-m pytest -p no:cacheprovider "}
    for name, starts in modules.items():
        (tmp_path / "bin" / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {starts}"$@"\n')
        (tmp_path / "bin" / name).chmod(0o755)
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(tutorials.ROOT)}
    if "tidegauge" not in {point.name for point in entry_points(group="pytest11")}:
        environment["PYTEST_PLUGINS"] = "tidegauge.drive.pytest_plugin.plugin"
    (tmp_path / "work").mkdir()
    steps = [step for step in tutorials.commands(page) if not step.command.startswith("pip install")]
    played = tutorials.play(steps, tmp_path / "work", environment)
    assert [problem for step in played if (problem := step.problem())] == []
    if page.stem == SLOW:
        assert [step.code for step in played] == [0, 0, 0, 1, 1, 1, 0, 0]


def test_a_command_that_says_something_else_is_a_problem() -> None:
    step = tutorials.PlayedCommand("x", ["a .. c", "d"], "a b c\nd\n")
    assert step.problem() == ""
    assert "expected the line 'd'" in step._replace(output="d\na b c\n").problem()
    assert "seen 2" in step._replace(code=2).problem()
