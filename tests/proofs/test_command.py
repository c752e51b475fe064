"""`tidegauge prove` on the command line: what it prints by default, on request, and when asked for what is not there."""

from collections.abc import Callable

import pytest

from tidegauge.cli.main import main
from tidegauge.spec.proofs.premises import REMOVALS
from validation import rule_mutants
from validation.premises.__main__ import main as show
from validation.rule_mutants import MutationReport


def test_the_default_output_is_one_line_per_group(capsys: pytest.CaptureFixture[str]) -> None:
    """Witnesses are told with --verbose only."""
    assert main(["prove", "--quiet", "--group", "isr", "--group", "removals"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["PROVED"] * 2 + ["PROVED:"]
    assert main(["prove", "--quiet", "--verbose", "--group", "removals"]) == 0
    assert capsys.readouterr().out.count("the common prefix ends at") == 11


@pytest.mark.parametrize("name", list(REMOVALS))
def test_every_removal_is_listed_and_told_in_words(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--list names the scenario; its name tells both logs and where the loop ends."""
    assert show(["--list"]) == 0
    assert f"{name} " in capsys.readouterr().out
    assert show([name]) == 0
    reported = capsys.readouterr().out
    assert "leader    cache" in reported
    assert "the common prefix ends at" in reported


@pytest.mark.parametrize("ask", [lambda: show(["gravity"]), lambda: main(["prove", "--group", "gravity"])])
def test_a_name_that_does_not_exist_is_bad_usage(ask: Callable[[], int], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, with the names that exist."""
    assert ask() == 2
    assert "expected" in capsys.readouterr().err


def test_mutants_that_go_unnoticed_fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the report and exits with its code, with as many processes as asked for."""
    asked: list[int] = []

    def kill_all(processes: int) -> MutationReport:
        asked.append(processes)
        return MutationReport({"a": "lemma"}, {}, ("b",), ())

    monkeypatch.setattr("validation.rule_mutants.kill_all", kill_all)
    assert rule_mutants.main(["--processes", "3"]) == 1
    assert asked == [3]
    assert "UNNOTICED      b" in capsys.readouterr().out
