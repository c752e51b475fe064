"""Scenarios as a driven broker sees them: they end where the cluster ended, and show what their headers say."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from tidegauge.cli.main import main
from tidegauge.conformance.judge.rulebook import rulebook
from tidegauge.conformance.play.scenario import Scenario, read, shipped
from tidegauge.conformance.play.session import Session
from tidegauge.drive.broker.applied_rules import T_TABLE, counting, with_callees
from tidegauge.drive.broker.known_bugs import BUGS
from tidegauge.drive.broker.reference import is_possible, reference, take_step
from tidegauge.drive.broker.state import opened
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.contract import Capabilities
from tidegauge.drive.paths.scenarios import ScenarioCase, cases_of, ends_alike, played, scenario_cases
from tidegauge.drive.paths.walks import walk
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.impl.profiles import FETCH_TRUNCATION, OF_THE_CONTROLLER, recording_reads
from tidegauge.impl.releases import profile_named

ADAPTER = Path(__file__).parents[3] / "tidegauge" / "drive" / "adapters" / "python" / "adapter.py"
PLAYED: dict[Path, tuple[Scenario, Session, list[ScenarioCase]]] = {}

ISSUES = {
    "S1": "KIP-101",
    "S2": "no-divergence-check",
    "S3": "KAFKA-6361",
    "S4": "KAFKA-6361",
    "S5": "KAFKA-7415",
    "S6": "KAFKA-7128",
    "S7": "KAFKA-7164",
    "S8": "KAFKA-7395",
    "S9": "KAFKA-14704",
    "S10": "KAFKA-12996",
    "S11": "KAFKA-15510",
    "S12": "KAFKA-10706",
    "F1": "KAFKA-18991",
    "F2": "F2",
}
"""The problems that Kafka had and solved, and findings, each with the bug that is the problem."""

NO_SCENARIO = {
    "EPOCH-06": "the model's metadata comes in order",
    "LOG-02": "a snapshot of a disk is no step",
    "SEQ-01": "a numbering of events is no step",
}
"""Rules that no scenario can show. Those of the controller (CTRL) no broker can break."""


def _played(place: Path) -> tuple[Scenario, Session, list[ScenarioCase]]:
    if place not in PLAYED:
        session = played(place)
        PLAYED[place] = (read(place), session, cases_of(place, session.profile))
    return PLAYED[place]


@pytest.mark.parametrize("place", shipped(), ids=lambda place: place.stem)
def test_a_broker_that_is_driven_through_a_scenario_ends_where_it_ended_in_the_cluster(place: Path) -> None:
    """Its log, its epochs, its ISR, its fetcher: the value of the model, but for when a fetcher thread that may truncate by
    itself does so (docs/decisions/0009).
    """
    _, session, cases = _played(place)
    assert bool(cases) is not session.has_whole_controller
    for one in cases:
        me = int(one.name.rpartition("@b")[2]) - 1
        state = opened(one.case.opening, session.profile)
        for step in one.case.path:
            assert is_possible(state, step)
            state, _ = take_step(state, step)
        assert ends_alike(one.state, session, me)


@pytest.mark.parametrize("release", ["4.0.1", "4.1.1", "4.2.0", "4.3.1"])
def test_releases_whose_brokers_do_the_same_have_the_same_scenarios(release: str) -> None:
    """Their controllers differ, and no broker reads those switches."""
    todays = [case.name for case in scenario_cases(FETCH_TRUNCATION, EVERYTHING)]
    assert [case.name for case in scenario_cases(profile_named(release), EVERYTHING)] == todays != []


def test_no_broker_reads_a_switch_of_the_controller() -> None:
    """Else two generations that differ in it would not do the same."""
    for release in ("0.10.2", "1.1.0", "2.8.1", "3.0.2", "4.3.1"):
        profile, read_switches = recording_reads(profile_named(release))
        for number in range(60):
            case = walk(7, number, profile, EVERYTHING)
            state = opened(case.opening, profile)
            for step in case.path:
                state, _ = take_step(state, step)
        assert read_switches
        assert not read_switches & OF_THE_CONTROLLER


def test_who_is_under_test_is_played_alone() -> None:
    (place,) = [place for place in shipped() if place.stem.startswith("020")]
    assert [one.name for one in _played(place)[2]] == ["020_forked_log_is_truncated_on_fetch@b1"]


def test_a_header_shows_what_it_says() -> None:
    """A rule is decided in the run, a row is taken by the broker, a problem is one: with its bug the broker differs."""
    for place in shipped():
        scenario, session, cases = _played(place)
        if not scenario.shows:
            continue
        judged = {rule for rule, tally in session.judged().tallies.items() if tally.held or tally.failed}
        count: Counter[tuple[str, str]] = Counter()
        play(ReferenceNode(reference(session.profile)), [o.case for o in cases], reference(session.profile, counting(count)))
        applied, rows = with_callees({rule for rule, _ in count}), {row for _, row in count}
        for shown in scenario.shows:
            if shown in ISSUES:
                assert _is_the_problem(shown, session, cases), f"{place.stem}: {shown}"
            elif shown in T_TABLE:
                assert shown in rows, f"{place.stem}: {shown}"
            else:
                decision = rulebook()[shown].impl.removeprefix("impl.rules:")
                assert shown in judged or decision in applied, f"{place.stem}: {shown}"


def _is_the_problem(shown: str, session: Session, cases: list[ScenarioCase]) -> bool:
    """Whether the broker of the scenario has the bug, or would differ with it."""
    bug = BUGS[ISSUES[shown]]
    wrong = session.profile.switched(bug.switches)
    if bug.switches and wrong == session.profile:
        return True
    node = ReferenceNode(reference(wrong, bug.rules, bug.wrong_step))
    return bool(play(node, [one.case for one in cases], reference(session.profile)).differences)


def test_every_rule_a_broker_can_break_every_row_and_every_problem_has_a_scenario() -> None:
    """By what the headers say, which the test above holds against the runs."""
    shows = {word for place in shipped() for word in _played(place)[0].shows}
    rules = {rule for rule in rulebook() if not rule.startswith("CTRL")}
    assert {*rules, *T_TABLE, *ISSUES} - shows == set(NO_SCENARIO)
    assert shows <= {*rules, *T_TABLE, *ISSUES}


def test_scenarios_of_another_generation_or_beyond_a_broker_are_left_out() -> None:
    today = {one.name for one in scenario_cases(FETCH_TRUNCATION, EVERYTHING)}
    assert "020_forked_log_is_truncated_on_fetch@b1" in today
    assert not any(name.startswith(("010", "100", "110")) for name in today)
    assert "111_fencing_keeps_committed@b1" in {one.name for one in scenario_cases(profile_named("kip320"), EVERYTHING)}
    few = Capabilities("few", EVERYTHING.can - {"fetch_response", "crash"}, EVERYTHING.reports)
    assert 0 < len(scenario_cases(FETCH_TRUNCATION, few)) < len(today)


def test_the_toy_broker_goes_through_them_and_a_difference_names_its_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    toy = [sys.executable, str(ADAPTER)]
    assert main(["drive", "--quiet", "--scenarios", "--", *toy]) == 0
    assert re.search(r"scenarios: \d+, as \d+ brokers see them", capsys.readouterr().out)
    assert main(["drive", "--quiet", "--scenarios", "--", *toy, "--bug"]) == 1
    said = capsys.readouterr().out
    assert "scenario 020_forked_log_is_truncated_on_fetch@b1 differs after 8 steps" in said
    assert "same as   applies_diverging=on" in said
