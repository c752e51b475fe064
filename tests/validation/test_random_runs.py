"""The judge accepts what the implementation emits, and sees what is wrong with the profiles that have a hole."""

from dataclasses import replace

import pytest

from tidegauge.conformance.engine.judge import judge
from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.traces.columns import to_columns
from tidegauge.util.errors import UsageError
from validation import schedules
from validation.random_runs import CASES, LOG_STARTS, JudgedCase, RunCase, judge_runs, replay, shortest_loss
from validation.schedules import main

FEW = 8


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(", ", "-").replace(" ", "-"))
def test_the_judge_accepts_what_the_implementation_emits(case: RunCase) -> None:
    """Runs of 200 steps: no rule fails but those of the known hole."""
    (found,) = judge_runs(FEW, cases=[case], seed=3)
    assert found.right, found.says
    assert found.runs == FEW
    assert found.events > 100 * FEW
    assert len({case.name for case in CASES}) == len(CASES)


def test_log_starts_do_move_in_the_runs_that_say_so() -> None:
    """Deletions at leaders and followers, and followers that start again; in no other case."""
    moving = [case for case in CASES if case.besides == LOG_STARTS]
    reported = {case: {event.event for trace in case.walks(3, 200, 1) for event in trace.events} for case in moving}
    assert all({"LogStartMoved", "HandleOutOfRange"} <= events for events in reported.values())
    assert {case.brokers for case in moving} == {2, 3}
    assert all(case.bounds.max_start == 0 for case in CASES if case not in moving)


@pytest.mark.parametrize("profile", ["hw-only", "kip101", "kip279"])
def test_the_shortest_loss_of_an_old_generation_is_a_later_leader_that_lacks_a_record(profile: str) -> None:
    """What random runs meet seldom is shown by the run that goes there."""
    trace = shortest_loss(profile)
    failures = judge(to_columns([trace], trace.config), trace.config).failures
    assert {failure.rule for failure in failures} == {"DATA-01"}
    assert trace.events[failures[0].row].event == "BecomeLeader"


def test_a_generation_that_loses_nothing_has_no_such_run() -> None:
    """The error names those that do."""
    with pytest.raises(UsageError, match="hw-only, kip101 and kip279 do"):
        shortest_loss("kip320", Bounds(2, 1, 1, 0))


def test_the_run_of_all_schedules_says_what_became_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    """A line per case, the losses, and 0 when nothing is wrong."""
    assert main(["2"]) == 0
    said = capsys.readouterr().out
    assert all(f"{case.name}: 2 runs" in said for case in CASES)
    assert "kip279, shortest loss: " in said
    assert said.endswith("wrong: none\n")


def test_the_run_of_all_schedules_ends_with_1_when_a_loss_is_not_seen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but the losses is asked here."""
    monkeypatch.setattr(schedules, "CASES", ())
    monkeypatch.setattr(schedules, "LOSE", ("repaired",))
    monkeypatch.setattr(schedules, "shortest_loss", lambda _profile: replay(CASES[0], "walk-0-0", 5))
    assert main(["1"]) == 1
    assert capsys.readouterr().out.endswith("wrong: repaired\n")


def test_a_profile_that_ought_to_lose_data_and_does_not_is_wrong() -> None:
    """Runs enough without the known loss mean that the judge, or the profile, no longer is what it was."""
    case = replace(CASES[-1], shown_by=FEW)
    found = JudgedCase(case, FEW, 5_000, {}, None, 1.0)
    assert not found.right
    assert replace(found, failed={"DATA-01": 1}).right
    assert replace(found, failed={"DATA-01": 1}).says == f"{FEW} runs, 5,000 events: DATA-01 in 1 runs (known)"
    assert not replace(found, failed={"DATA-01": 1, "FETCH-02": 1}).right


def test_a_seeded_fault_is_found_and_its_run_replayed() -> None:
    """The first run that breaks a rule it must not break is named, and comes back under its name."""
    case = RunCase("fetch-truncation", 2, fault="hw-is-own-log-end")
    (found,) = judge_runs(5, cases=[case], seed=3)
    assert not found.right
    assert found.unexpected is not None
    assert f"first unexpected: {found.unexpected.name}" in found.says
    again = replay(case, found.unexpected.name)
    assert again == found.unexpected
    assert judge(to_columns([again], again.config), again.config).failures


def test_no_runs_have_shown_nothing() -> None:
    """An empty run is not right."""
    (found,) = judge_runs(0, cases=CASES[:1])
    assert not found.right
    assert isinstance(found, JudgedCase)


def test_processes_do_not_change_the_result() -> None:
    """The same runs, whoever makes them."""
    said: list[str] = []
    (one,) = judge_runs(6, cases=CASES[:1], steps=40, seed=5)
    (two,) = judge_runs(6, cases=CASES[:1], steps=40, seed=5, processes=2, echo=said.append)
    assert replace(one, seconds=0.0) == replace(two, seconds=0.0)
    assert said[0].startswith("fetch-truncation, 2 brokers: 6 runs, ")


@pytest.mark.parametrize("name", ["walk-1", "walk-a-b", "run-1-2", ""])
def test_a_name_that_is_no_run_is_refused(name: str) -> None:
    """Expected and seen."""
    with pytest.raises(UsageError, match="expected walk-SEED-NUMBER"):
        replay(CASES[0], name)
