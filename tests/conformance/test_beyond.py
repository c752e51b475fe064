"""The judge accepts what the implementation emits, and sees what is wrong with the profiles that have a hole."""

from dataclasses import replace

import pytest

from conformance.beyond import CASES, Case, Found, judge_runs, replay
from conformance.judge import judge
from impl.errors import UsageError
from traces.columns import to_columns

FEW = 20


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(", ", "-").replace(" ", "-"))
def test_the_judge_accepts_what_the_implementation_emits(case: Case) -> None:
    """Runs of 200 steps: no rule fails but those of the known hole."""
    (found,) = judge_runs(FEW, cases=[case], seed=3)
    assert found.right, found.says
    assert found.runs == FEW
    assert found.events > 100 * FEW


def test_a_profile_that_ought_to_lose_data_and_does_not_is_wrong() -> None:
    """Runs enough without the known loss mean that the judge, or the profile, no longer is what it was."""
    case = replace(CASES[-1], shown_by=FEW)
    found = Found(case, FEW, 5_000, {}, None, 1.0)
    assert not found.right
    assert replace(found, failed={"DATA-01": 1}).right
    assert replace(found, failed={"DATA-01": 1}).says == "20 runs, 5,000 events: DATA-01 in 1 runs (known)"
    assert not replace(found, failed={"DATA-01": 1, "FETCH-02": 1}).right


def test_a_seeded_fault_is_found_and_its_run_replayed() -> None:
    """The first run that breaks a rule it must not break is named, and comes back under its name."""
    case = Case("fetch-truncation", 2, fault="hw-is-own-log-end")
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
    assert isinstance(found, Found)


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
