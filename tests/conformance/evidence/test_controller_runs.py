"""The page of shortest runs, and the random runs beyond them."""

from dataclasses import replace
from pathlib import Path

import pytest

from tidegauge.conformance.evidence import controller_runs, controller_walks
from tidegauge.conformance.evidence.controller_runs import RunError, models, section
from tidegauge.conformance.evidence.controller_walks import CASES, WalkCase
from tidegauge.impl.explored.control_cluster import INVARIANTS, view
from tidegauge.impl.explored.describe_control import view_text
from tidegauge.impl.profiles import ELR, ELR_REPAIRED
from tidegauge.spec.checker.models import find_model

PAGE = Path(__file__).resolve().parents[3] / "docs" / controller_runs.PAGE.name


@pytest.mark.parametrize("name", ["GhostElr", "ForgottenElr", "StaleIndex", "NeverCompletes", "FailedDirectoryLeads"])
def test_the_page_has_the_runs(name: str) -> None:
    """As the reference takes them today."""
    assert section(find_model(name)) in PAGE.read_text(encoding="utf-8")


def test_every_finding_has_one() -> None:
    """No heading is missing, none is too many."""
    headings = [line[3:] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("## ")]
    assert headings == [model.name for model in models()]


def test_the_page_is_written_a_section_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is pinned; a run of another length is an error."""
    forgotten = find_model("ForgottenElr")
    monkeypatch.setattr(controller_runs, "models", lambda: (forgotten,))
    assert controller_runs.main(tmp_path / "page.md") == 0
    assert "## ForgottenElr\n" in (tmp_path / "page.md").read_text(encoding="utf-8")
    with pytest.raises(RunError, match="expected BrokersMayRegister to fail after 4 states; seen none"):
        section(replace(find_model("RepairedRevert"), property="BrokersMayRegister", length=4))


def test_a_random_run_is_the_same_each_time() -> None:
    """By case, seed and number."""
    one, other = CASES[0].run(3, 1), CASES[0].run(3, 1)
    assert one.labels == other.labels
    assert CASES[0].run(4, 1).labels != one.labels


def test_random_runs_show_what_is_wrong_with_kafka_and_nothing_repaired(capsys: pytest.CaptureFixture[str]) -> None:
    """A few runs each. What may not break is printed with its run, and makes the case wrong."""
    few = CASES[0].bounds._replace(max_stops=6)
    assert controller_walks.walked(WalkCase("repaired", few, ELR_REPAIRED, controller_walks.LATE), 4, 0)
    assert "repaired: 4 runs, 320 steps: nothing broken" in capsys.readouterr().out
    assert not controller_walks.walked(WalkCase("Kafka", few, ELR, controller_walks.LATE), 12, 0)
    said = capsys.readouterr().out
    assert any(name in said for name in INVARIANTS)
    assert "\n  run 0-" in said


def test_the_command_ends_with_1_when_a_case_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs and seed are its arguments."""
    kafka = WalkCase("Kafka", CASES[0].bounds, ELR, controller_walks.LATE)
    monkeypatch.setattr(controller_walks, "CASES", (kafka,))
    assert controller_walks.main(["12", "5"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("seed 5, 12 runs of at most 80 steps for each of 1 cases\n")
    assert said.endswith("wrong: Kafka\n")
    monkeypatch.setattr(controller_walks, "CASES", ())
    assert controller_walks.main([]) == 0


def test_a_state_is_printed_as_the_models_are() -> None:
    """A line for each broker, the partition, what was committed."""
    assert len(view_text(view(CASES[0].run(0, 0).state)).splitlines()) == 6
