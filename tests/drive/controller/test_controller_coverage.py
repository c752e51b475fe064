"""What was exercised of a controller, by runs and by logs alike, and the shortest path to what was not."""

import json
from pathlib import Path

import jsonschema
import pytest

from tidegauge import EXAMPLES
from tidegauge.conformance.checking.check import CheckOptions, check
from tidegauge.conformance.checking.situations import COMPARISONS, CONTROLLER_ACTIONS, Guard, Situation
from tidegauge.conformance.report.results import as_json as results_json
from tidegauge.conformance.report.results import results_schema
from tidegauge.drive.controller.contract import ClusterOpening, ControllerCase
from tidegauge.drive.controller.cover import cover_of
from tidegauge.drive.controller.coverage import explored_control, model_cases, shipped_control
from tidegauge.drive.controller.findings import up
from tidegauge.drive.controller.reference import reference
from tidegauge.drive.controller.walks import refusal_cases, walks
from tidegauge.drive.coverage import (
    Exercised,
    as_json,
    coverage_of,
    coverage_page,
    coverage_text,
    exercised_by_check,
    exercised_by_controller,
    read_exercised,
    results_of_controller,
)
from tidegauge.drive.runner.player import ReferenceNode
from tidegauge.drive.runner.run import run
from tidegauge.impl.controller.features import IBP_4_3_IV0
from tidegauge.impl.profiles import ELR_REPAIRED

OPENING = ClusterOpening(IBP_4_3_IV0)
UP = ControllerCase(OPENING, up(1, 2), "up")
UNCLEAN = Guard("ChangePartition", "clean", "", "0")


def of_cases(*cases: ControllerCase, ended: dict[ControllerCase, int] | None = None) -> Exercised:
    return exercised_by_controller("c", cases, ended or {}, ELR_REPAIRED)


def test_every_action_of_the_controller_is_in_the_model_with_a_path_that_ends_there() -> None:
    model = shipped_control()
    assert {situation.action for situation in model.situations} == CONTROLLER_ACTIONS
    assert UNCLEAN in {guard for situation in model.situations for guard in situation.guards()}
    for situation, example in model.situations.items():
        assert situation in of_cases(ControllerCase(*example.case[:2])).situations
        last = len(example.case.path)
        before = of_cases(ControllerCase(example.case.opening, example.case.path[: last - 1]))
        assert situation not in before.situations, "it is the last step that leads there"
    for response, example in model.responses.items():
        assert response in of_cases(ControllerCase(*example.case[:2])).unlogged


def test_the_model_is_that_of_the_reference() -> None:
    """Of the smallest graph; `test_all_of_it` has the rest."""
    small = explored_control(cover_of("RepairedCompletion", ELR_REPAIRED, OPENING).cases)
    assert small.situations.keys() <= shipped_control().situations.keys()
    assert small.responses.keys() <= shipped_control().responses.keys()


@pytest.mark.long
def test_all_of_it() -> None:
    """If it fails: python -m tidegauge.drive.controller.coverage, and look at what changes."""
    made, shipped = explored_control(model_cases()), shipped_control()
    for mine, theirs in ((made.situations, shipped.situations), (made.responses, shipped.responses)):
        assert {key: (one.local_steps, one.case[:2]) for key, one in mine.items()} == {
            key: (one.local_steps, one.case[:2]) for key, one in theirs.items()
        }


def test_a_run_counts_its_steps_up_to_the_first_that_differs() -> None:
    made = of_cases(UP)
    assert made.situations[Situation("RegisterBroker", ("0",))].times == 2
    assert made.situations[Situation("UnfenceBroker", ())].first == "up, step 2"
    assert made.unlogged["heartbeat: NONE"].times == 2
    assert not any(situation.action == "UnfenceBroker" for situation in of_cases(UP, ended={UP: 2}).situations)


def test_what_was_not_exercised_has_steps_of_the_contract_and_words(tmp_path: Path) -> None:
    """Of the controller alone; nothing is said of brokers."""
    made = coverage_of(of_cases(UP))
    assert {item.action for item in made.untouched} <= {*CONTROLLER_ACTIONS, "steps"}
    assert (made.shares["actions"].exercised, made.shares["actions"].total) == (2, 6)
    text = coverage_text(made)
    assert "<b>steps</b>: session_expires" in coverage_page(made)
    assert "register broker=1" in text
    data = as_json(made)
    (item,) = [item for item in data["not_exercised"] if item["says"] == "elect_leaders: ELECTION_NOT_NEEDED"]
    assert item["steps"][-1]["step"] == "elect_leaders"
    assert item["words"][-1] == "ElectLeaders of one partition."
    assert item["opening"]["metadata_version"] == IBP_4_3_IV0
    place = tmp_path / "c.json"
    place.write_text(json.dumps(data), encoding="utf-8")
    assert read_exercised(place) == made.exercised


def test_walks_and_refusals_reach_most_of_it() -> None:
    cases = (*refusal_cases(OPENING), *walks(1, 20, ELR_REPAIRED, OPENING))
    share = coverage_of(of_cases(*cases)).shares["guards"]
    assert share.exercised > share.total * 0.8


def test_logs_of_a_controller_count_alike_and_logs_without_one_are_not_held_against_it() -> None:
    how = CheckOptions(situations=True)
    logs = exercised_by_check("logs", check([EXAMPLES / "captures/4.2.0/d-unclean"], how))
    assert any(UNCLEAN in situation.guards() for situation in logs.situations)
    assert {"AlterPartition", "FenceBroker"} <= {situation.action for situation in logs.situations}
    with_controller = coverage_of(logs)
    assert "steps" not in {item.action for item in with_controller.untouched}, "no log has the responses"
    alone = Exercised(logs.model, ["x"], {k: v for k, v in logs.situations.items() if k.action not in CONTROLLER_ACTIONS})
    alone.judged = True
    assert not CONTROLLER_ACTIONS & {item.action for item in coverage_of(alone).untouched}
    both = of_cases(UP)
    both.add(logs)
    assert coverage_of(both).shares["local steps"].total > with_controller.shares["local steps"].total
    assert "rules of the reference" not in coverage_of(both).shares, "no broker was driven"


def test_results_of_a_controller_have_no_verdict_on_a_rule() -> None:
    shown = run(ReferenceNode(reference(ELR_REPAIRED)), [UP], reference(ELR_REPAIRED))
    results = results_json(results_of_controller(shown, of_cases(UP), "mine@1"))
    jsonschema.validate(results, results_schema())
    assert (results["verdict"], results["rules"], results["target"]["name"]) == ("pass", {}, "mine")
    assert results["coverage"]["shares"]["actions"] == {"exercised": 2, "total": 6}


def test_a_guard_of_a_registration_is_a_sentence() -> None:
    said = {str(Guard("ChangePartition", left, right, "1")) for left, right in COMPARISONS["ChangePartition"]}
    assert {"a replica leads", "all replicas are in sync", "clean is 1", "a replica is added"} <= said
