"""The scenarios of the controller's models, and the random runs beyond them."""

from dataclasses import replace
from pathlib import Path

import pytest

from tidegauge.conformance.engine.judge import judge
from tidegauge.conformance.from_tlc.tlc_runs import DIRECTORY, file_stem
from tidegauge.impl.explorer.controller_model import CONTROL_INVARIANTS, control_view
from tidegauge.impl.explorer.describe import control_view_text
from tidegauge.impl.profiles import ELR, ELR_REPAIRED
from tidegauge.spec.tlc.models import find_model
from tidegauge.traces.columns import to_columns
from tidegauge.traces.schema import Trace
from validation import controller_scenarios, random_controller_runs
from validation.controller_scenarios import (
    ALL_AT_ONCE,
    UNSEEN,
    ScenarioError,
    models,
    run_of,
    scenario_of,
    scenario_path,
    shown,
    trace_of,
)
from validation.random_controller_runs import CASES, WalkCase


def test_the_scenarios_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of another length than the pinned one is an error."""
    forgotten = find_model("ForgottenElr")
    monkeypatch.setattr(controller_scenarios, "shown", lambda: iter(((forgotten, False), (forgotten, True))))
    assert controller_scenarios.main(tmp_path) == 0
    written = sorted(path.name for path in tmp_path.glob("*.txt"))
    assert written == ["forgotten-elr-repaired.txt", "forgotten-elr.txt"]
    with pytest.raises(ScenarioError, match="expected BrokersMayRegister to fail after 4 states; seen none"):
        run_of(replace(find_model("RepairedRevert"), property="BrokersMayRegister", length=4))


@pytest.mark.parametrize("name", ["GhostElr", "ForgottenElr", "FailedDirectoryLeads", "RaisedTooLate"])
def test_the_scenarios_are_the_runs_of_the_models(name: str) -> None:
    """Message by message over the real brokers and controller, as they are kept; every step led to the model's state."""
    for model, repaired in shown():
        if model.name == name:
            kept = scenario_path(model, DIRECTORY, repaired=repaired).read_text(encoding="utf-8")
            assert scenario_of(model, repaired=repaired) == kept


def test_every_finding_is_played_and_repaired() -> None:
    """Message by message, with a twin; which runs no rule sees is said, and of no others."""
    stems = {scenario_path(model, DIRECTORY, repaired=repaired) for model, repaired in shown()}
    assert all(path.exists() for path in stems)
    assert {model.name for model in models()} - {model.name for model, _ in shown()} == ALL_AT_ONCE
    assert {name for name, _ in _shown_names()} == {name for name, repaired in _shown_names() if repaired}
    said = {path.stem for path in stems if "Expected: UNSEEN." in path.read_text(encoding="utf-8")}
    assert said == {file_stem(find_model(name)) for name in UNSEEN}
    assert not any("error:" in path.read_text(encoding="utf-8") for path in stems)


def _shown_names() -> set[tuple[str, bool]]:
    return {(model.name, repaired) for model, repaired in shown()}


def test_the_judge_sees_a_finding_as_a_trace_and_nothing_where_it_is_repaired() -> None:
    """With the switch on the rules that F4 breaks; off, none."""
    broken = {repaired: _broken(trace_of(find_model("GhostElr"), repaired=repaired)) for repaired in (False, True)}
    assert broken == {False: {"CTRL-06", "CTRL-07", "DATA-01", "DATA-03"}, True: set()}


def _broken(trace: Trace) -> set[str]:
    return {failure.rule for failure in judge(to_columns([trace], trace.config), trace.config).failures}


def test_a_step_that_leads_elsewhere_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's run under other switches is not what the model has."""
    monkeypatch.setattr(controller_scenarios, "switches_of", lambda _: ())
    with pytest.raises(ScenarioError, match="after Reassign to b1: expected the state of the model"):
        scenario_of(find_model("GhostElr"))


def test_a_random_run_is_the_same_each_time() -> None:
    """By case, seed and number."""
    one, other = CASES[0].run(3, 1), CASES[0].run(3, 1)
    assert one.labels == other.labels
    assert CASES[0].run(4, 1).labels != one.labels


def test_random_runs_show_what_is_wrong_with_kafka_and_nothing_repaired(capsys: pytest.CaptureFixture[str]) -> None:
    """A few runs each. What may not break is printed with its run, and makes the case wrong."""
    few = CASES[0].bounds._replace(max_stops=6)
    assert random_controller_runs.walked(WalkCase("repaired", few, ELR_REPAIRED), 4, 0)
    assert "repaired: 4 runs, 320 steps: nothing broken" in capsys.readouterr().out
    assert not random_controller_runs.walked(WalkCase("Kafka", few, ELR), 12, 0)
    said = capsys.readouterr().out
    assert any(name in said for name in CONTROL_INVARIANTS)
    assert "\n  run 0-" in said


def test_the_command_ends_with_1_when_a_case_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs and seed are its arguments."""
    kafka = WalkCase("Kafka", CASES[0].bounds, ELR)
    monkeypatch.setattr(random_controller_runs, "CASES", (kafka,))
    assert random_controller_runs.main(["12", "5"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("seed 5, 12 runs of at most 80 steps for each of 1 cases\n")
    assert said.endswith("wrong: Kafka\n")
    monkeypatch.setattr(random_controller_runs, "CASES", ())
    assert random_controller_runs.main([]) == 0


def test_a_state_is_printed_as_the_models_are() -> None:
    """A line for each broker, the partition, what was committed."""
    assert len(control_view_text(control_view(CASES[0].run(0, 0).state)).splitlines()) == 6
