"""What was exercised of the model, by runs and by traces alike, and the shortest scenario for what was not."""

import json
import sys
from pathlib import Path

import pytest

from tidegauge import EXAMPLES, __suite__
from tidegauge.cli.main import main
from tidegauge.conformance.checking.check import CheckOptions, check
from tidegauge.conformance.checking.situations import Guard, Seen, Situation, situations
from tidegauge.drive.broker.as_events import events_of_step
from tidegauge.drive.broker.contract import BrokerCase, Opening
from tidegauge.drive.broker.reference import is_possible, read_by_consumer, take_step_unread
from tidegauge.drive.broker.state import opened
from tidegauge.drive.broker.steps import EVERYTHING, step_of
from tidegauge.drive.contract import frozen
from tidegauge.drive.coverage import (
    COVERED,
    CoveredModel,
    as_json,
    coverage_json,
    coverage_of,
    coverage_page,
    coverage_text,
    exercised_by_check,
    exercised_by_run,
    explored,
    model_of,
    read_exercised,
    shipped_models,
    situations_of,
)
from tidegauge.drive.paths.cover import cover
from tidegauge.drive.paths.graphs import GRAPHS
from tidegauge.drive.paths.selection import smoke_case
from tidegauge.drive.paths.short_paths import refusals
from tidegauge.impl.profiles import KIP320, SAFE
from tidegauge.traces.columns import to_columns
from tidegauge.traces.schema import Config, Event, Trace
from tidegauge.util.errors import UsageError

SERVE = (sys.executable, "-m", "tidegauge.drive.transports.serve")
SMOKE = smoke_case(SAFE, EVERYTHING)
ABOVE_THE_END = Guard("HandleFetch", "req_offset", "leo", ">")


def of_event(**fields: int) -> Situation:
    """Return the situation of one fetch."""
    config = Config((1, 2))
    columns = to_columns([Trace("t", "p", config, (Event(1, "HandleFetch", fields),))], config)
    (situation,) = situations(columns, lambda row: f"row {row}")
    return situation


def ends_with(case: BrokerCase) -> list[Situation]:
    """Return the situations of the last step of a case."""
    state = opened(case.opening, SAFE)
    for step in case.path:
        assert is_possible(state, step)
        taken = take_step_unread(state, step)
        situations_now = situations_of([events_of_step(state, step, taken)])[0]
        state = read_by_consumer(taken.state)
    return situations_now


def test_offsets_of_any_size_are_in_one_situation() -> None:
    """What counts is how the fields compare."""
    small = of_event(error=0, req_offset=1, leo=0, req_epoch=1, req_last_epoch=0)
    assert small == of_event(error=0, req_offset=987_654, leo=987_600, req_epoch=12, req_last_epoch=11)
    assert small != of_event(error=0, req_offset=1, leo=1, req_epoch=1, req_last_epoch=0)
    assert ABOVE_THE_END in small.guards()
    assert str(ABOVE_THE_END) == "the fetch offset is above the log end"


def test_what_is_not_reported_exercises_nothing() -> None:
    """An unknown field leaves its comparisons unknown, and the event may be several situations."""
    less = of_event(error=0, req_offset=1)
    assert [str(guard) for guard in less.guards()] == ["the error is NONE"]
    assert less.fits(of_event(error=0, req_offset=1, leo=0))
    assert not less.fits(of_event(error=74, req_offset=1, leo=0))


def test_the_shipped_models_are_those_of_the_graphs() -> None:
    """A graph that is explored now has no situation, row or unlogged step that the file lacks, nor a shorter case."""
    for profile in (SAFE, KIP320):
        shipped, small = shipped_models()[profile.name], explored(profile, ("small",))
        for name in ("situations", "unlogged", "rows"):
            for key, example in getattr(small, name).items():
                assert len(getattr(shipped, name)[key].case.path) <= len(example.case.path)


@pytest.mark.long
def test_the_shipped_models_are_exactly_those_of_the_graphs() -> None:
    """`python -m tidegauge.drive.coverage` makes them anew."""
    for profile in (SAFE, KIP320):
        assert shipped_models()[profile.name] == explored(profile, COVERED)


def test_every_scenario_of_the_model_ends_in_its_situation() -> None:
    """Each can be given to a broker, step by step."""
    model = model_of(SAFE)
    assert len(model.situations) > 100
    for situation, example in model.situations.items():
        assert situation in ends_with(example.case)


def test_a_cover_exercises_the_whole_of_its_graph() -> None:
    """All situations, rows and unlogged steps of the graph, and as many local steps."""
    small: CoveredModel = explored(SAFE, ("small",))
    cases = cover(GRAPHS["small"].inputs(SAFE), SAFE).cases
    made = exercised_by_run("cover", cases, {}, SAFE)
    assert small.situations.keys() <= made.situations.keys()
    assert small.rows.keys() <= made.rows.keys()
    assert small.unlogged.keys() <= made.unlogged.keys()
    assert made.unlogged["lose_response"].times > 1


def test_who_goes_everywhere_has_exercised_every_local_step_and_no_more() -> None:
    """A refused request has outcomes that no model has: they are counted apart."""
    model = shipped_models()[SAFE.name]
    everywhere = [example.case for kind in (model.situations, model.rows, model.unlogged) for example in kind.values()]
    refused = [case for case in refusals(SAFE, EVERYTHING) if case.path[-2][0] == "fetch"]
    coverage = coverage_of(exercised_by_run("all", [*everywhere, *refused], {}, SAFE))
    assert coverage.untouched == ()
    assert {share.exercised - share.total for share in coverage.shares.values()} == {0}
    assert {each.share.exercised - each.share.total for each in coverage.actions} == {0}
    assert {each.action for each in coverage.actions if each.beyond} >= {"HandleFetch"}
    assert " outcomes, " in coverage_page(coverage)


def test_steps_from_the_first_difference_on_show_nothing() -> None:
    """And a step that cannot be taken ends its path."""
    whole = exercised_by_run("ten", [SMOKE], {}, SAFE)
    half = exercised_by_run("ten", [SMOKE], {SMOKE: 3}, SAFE)
    assert {situation.action for situation in half.situations} == {"BecomeLeader", "LeaderAppend", "ProduceAck"}
    assert len(whole.situations) > len(half.situations)
    impossible = BrokerCase(Opening(), (("append", 1), *SMOKE.path))
    assert not exercised_by_run("none", [impossible], {}, SAFE).situations


def test_counts_and_places_of_steps_that_paths_share() -> None:
    """A step is counted for each path, and placed in the first."""
    longer = BrokerCase(Opening(), SMOKE.path, "again")
    made = exercised_by_run("twice", [SMOKE, longer], {}, SAFE)
    appended = {situation: seen for situation, seen in made.situations.items() if situation.action == "LeaderAppend"}
    assert sum(seen.times for seen in appended.values()) == 4
    assert {seen.first for seen in appended.values()} <= {"path 1, step 2", "path 1, step 3"}


def test_what_no_test_touched_comes_with_its_shortest_scenario() -> None:
    """As steps of the contract, and in words."""
    coverage = coverage_of(exercised_by_run("ten", [SMOKE], {}, SAFE))
    (above,) = [item for item in coverage.untouched if item.says == str(ABOVE_THE_END) and item.action == "HandleFetch"]
    assert any(ABOVE_THE_END in situation.guards() for situation in ends_with(above.example.case))
    data = as_json(coverage)
    (item,) = [item for item in data["not_exercised"] if item["says"] == above.says and item["action"] == "HandleFetch"]
    assert tuple(map(step_of, item["steps"])) == above.example.case.path
    assert Opening(*frozen(list(item["opening"].values()))) == above.example.case.opening
    assert item["words"][-1].startswith("A leader refuses a fetch of another epoch")
    share = coverage.shares["local steps"]
    assert 0 < share.exercised < share.total
    assert "rules of the reference" in coverage_text(coverage)


def test_a_trace_says_which_of_its_events_came_first() -> None:
    """Events of a capture are placed by file and line; one of a model by its number."""
    path = EXAMPLES / "golden/commit.ndjson"
    report = check([path], CheckOptions(situations=True))
    made = exercised_by_check("commit", report)
    assert sum(seen.times for seen in made.situations.values()) <= report.events
    assert Seen(1, "commit.ndjson:2").times == 1
    assert all("commit" in seen.first for seen in made.situations.values())
    assert made.rules.keys() == {rule.rule.id for rule in report.rules if rule.tally.held + rule.tally.failed}
    coverage = coverage_of(made)
    assert coverage.shares["rules of the judge"].exercised == len(made.rules)
    assert "HW-06" in coverage.undecided_rules


def test_runs_and_logs_add_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sum has what one of them has, and its counts; a page and JSON of it can be written."""
    drive, judged, both = (tmp_path / name for name in ("drive.json", "check.json", "both.json"))
    assert main(["drive", "--quiet", "--smoke", "--coverage", str(drive), "--", *SERVE]) == 0
    assert main(["check", "--quiet", "--coverage", str(judged), str(EXAMPLES / "golden/commit.ndjson")]) == 0
    capsys.readouterr()
    page = tmp_path / "both.html"
    assert main(["coverage", str(drive), str(judged), "--out", str(both), "--out", str(page)]) == 0
    reported = capsys.readouterr().out
    assert f"coverage of the model safe, suite {__suite__}, by safe, " in reported
    one, other, total = map(read_exercised, (drive, judged, both))
    assert total.situations.keys() == one.situations.keys() | other.situations.keys()
    for situation, seen in total.situations.items():
        assert seen.times == sum(part.situations[situation].times for part in (one, other) if situation in part.situations)
    assert total.rules == other.rules
    assert total.rows == one.rows
    assert json.loads(both.read_text(encoding="utf-8"))["shares"]["guards"]["exercised"] > 0
    assert "Not exercised" in page.read_text(encoding="utf-8")


def test_what_is_no_coverage_is_refused(tmp_path: Path) -> None:
    """With the name of the file; and runs held against different models are not added up."""
    wrong = tmp_path / "wrong.json"
    for text in ("{", "[]", "{}", '{"coverage": 2}', '{"coverage": 1, "exercised": {}}'):
        wrong.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match="expected the JSON that --coverage"):
            read_exercised(wrong)
    old = exercised_by_run("old", [], {}, KIP320)
    with pytest.raises(UsageError, match="expected runs that are held against the model kip320"):
        old.add(exercised_by_run("new", [], {}, SAFE))


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    """And foreign names are no HTML of the page."""
    made = exercised_by_run("<b>bold</b>", [SMOKE], {}, SAFE)
    file = tmp_path / "c.json"
    file.write_text(coverage_json(coverage_of(made)), encoding="utf-8")
    assert read_exercised(file) == made
    assert "<b>bold</b>" not in coverage_page(coverage_of(made))
