"""Broker logs that are judged as they are written are judged as the whole is, or less; no alarm is false."""

from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.follow.growing_logs import followed
from tidegauge.conformance.checking.check import CheckOptions, Report, check
from tidegauge.conformance.checking.situations import Situation
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.conformance.engine import judge as judge_module
from tidegauge.conformance.follow import broker_logs
from tidegauge.conformance.follow.loop import Alarm, StoryLine, Withdrawn
from tidegauge.traces.kafka_logs.capture import FOLDER
from tidegauge.traces.kafka_logs.growing_capture import LINES
from tidegauge.traces.problems import Problem
from validation.captures import expectations
from validation.metamorphic.cases import logs

EXPECTED = {name: set(of["fails"]) for name, of in expectations(FOLDER).items() if (FOLDER / name).is_dir()}
SMALL = "4.2.0/k-epoch-jump"
SOON = {"3.4.0/b-kill-leader", "4.3.1/l-ghost-elr", "3.9.1/m-lost-disk", "4.2.0/k-epoch-jump"}
"""The broken ones: in a window that holds them whole, every failure is news before the end."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("growing")


@cache
def whole(name: str, folder: Path) -> Report:
    """What `check` says of the same lines."""
    for path, lines in logs(FOLDER / name).items():
        (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / path).write_text("".join(f"{line}\n" for line in lines))
    return check([folder / name], CheckOptions(situations=True))


def times(report: Report) -> dict[Situation, int]:
    """How often each situation was seen."""
    return {situation: seen.times for situation, seen in report.inputs[0].situations.items()}


def failing(report: Report) -> set[str]:
    return {one.rule.id for one in report.rules if one.tally.failed}


@pytest.mark.long
@settings(max_examples=12, deadline=None)
@given(name=st.sampled_from(sorted(EXPECTED)), seed=st.integers(0, 1 << 16), rotations=st.integers(0, 6))
def test_what_fits_into_a_window_is_judged_as_the_whole(
    name: str, seed: int, rotations: int, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = tmp_path_factory.mktemp("whole") / FOLDER.joinpath(name).name
    run, expected = followed(FOLDER / name, made, Random(seed), pieces=8, rotations=rotations), whole(name, folder)
    assert not run.source.past.count
    assert run.report.verdict is expected.verdict
    assert [(one.rule.id, one.tally) for one in run.report.rules] == [(one.rule.id, one.tally) for one in expected.rules]
    assert (run.report.traces, run.report.events) == (expected.traces, expected.events)
    assert run.report.inputs[0].missing == expected.inputs[0].missing
    # A file that was rotated has another name: where a situation was seen first may differ.
    assert times(run.report) == times(expected)
    assert {one.rule for one in run.news if isinstance(one, Alarm)} == EXPECTED[name]
    assert [(e.rule.id, e.expected, e.actual) for e in run.report.explanations] == [
        (e.rule.id, e.expected, e.actual) for e in expected.explanations
    ]


@pytest.mark.long
@settings(max_examples=15, deadline=None)
@given(
    name=st.sampled_from(sorted(EXPECTED)),
    seed=st.integers(0, 1 << 16),
    lines=st.sampled_from([500, 1000, 2500]),
    rotations=st.integers(0, 6),
)
def test_small_windows_decide_less_and_never_more(
    name: str, seed: int, lines: int, rotations: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What is held is bounded, and nothing fails that does not fail in the whole; no broken one passes."""
    made = tmp_path_factory.mktemp("small") / FOLDER.joinpath(name).name
    run = followed(FOLDER / name, made, Random(seed), lines=lines, pieces=12, rotations=rotations)
    assert failing(run.report) <= EXPECTED[name]
    assert {one.rule for one in run.news if isinstance(one, Alarm)} <= EXPECTED[name]
    assert sum(times(run.report).values()) <= run.report.events
    if run.source.past.count:
        assert run.report.verdict is not Verdict.PASS
        assert "what was before each of" in run.report.inputs[0].missing[-1]
    assert run.source.line_count <= 2 * lines + PIECE_OF_LINES


PIECE_OF_LINES = 3000
"""Lines of one piece that is read at once, and then some."""


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.long] * (one != SMALL)) for one in sorted(SOON)])
def test_a_failure_is_news_before_the_end(name: str, tmp_path: Path) -> None:
    """And stays: looks in between, in which nodes are not equally far, withdraw nothing for good."""
    run = followed(FOLDER / name, tmp_path / "logs", Random(1), pieces=40)
    alarms = [at for at, one in enumerate(run.news) if isinstance(one, Alarm)]
    assert {run.news[at].rule for at in alarms} == EXPECTED[name]
    assert not [one for one in run.news if isinstance(one, Withdrawn)]
    assert failing(run.report) == EXPECTED[name]


def test_what_happened_is_news_once(tmp_path: Path) -> None:
    """A loss is said when its lines are there, before the report, which begins with it."""
    run = followed(FOLDER / "4.2.0/d-unclean", tmp_path / "logs", Random(1), pieces=6)
    sentences = [one.sentence for one in run.news if isinstance(one, StoryLine)]
    assert [one for one in sentences if one.startswith("Data was lost: 33 committed records of alpha-0 (40 to 72)")]
    assert any("alpha-0: " in one and "truncated from 73 to 40" in one for one in sentences)
    assert len(sentences) == len(set(sentences))
    assert run.report.story is not None
    assert [loss.records for loss in run.report.story.losses] == [33]


def test_a_trace_that_cannot_be_judged_is_news_once_and_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a trace that grows the report has all events as lost, as that of `check` has."""
    for name in ("ROOM_AT_FIRST", "MOST_ROOM"):
        monkeypatch.setattr(judge_module, name, 1)  # a second leader epoch is one too many
    run = followed(FOLDER / SMALL, tmp_path / "logs", Random(1), pieces=6)
    published = [one for one in run.news if isinstance(one, Problem)]
    assert published
    assert len({one.path for one in published}) == len(published)
    expected = check([tmp_path / "logs"])
    assert [str(one) for one in run.report.inputs[0].problems] == [str(one) for one in expected.inputs[0].problems]
    assert (run.report.verdict, run.report.exit_code) == (expected.verdict, expected.exit_code)


def test_the_story_of_large_logs_is_left_to_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report that comes after SIGTERM reads nothing large again, and says so."""
    monkeypatch.setattr(broker_logs, "MOST_BYTES", 10_000)
    run = followed(FOLDER / SMALL, tmp_path / "logs", Random(1), pieces=6)
    assert run.report.story is None
    assert failing(run.report) == EXPECTED[SMALL]
    assert any("tidegauge check DIR" in note for note in run.report.notes)


@pytest.mark.parametrize(
    ("name", "lines"), [pytest.param("3.4.0/b-kill-leader", 2500, marks=pytest.mark.long), (SMALL, 1500)]
)
def test_what_failed_in_a_window_that_is_gone_is_in_the_report(name: str, lines: int, tmp_path: Path) -> None:
    run = followed(FOLDER / name, tmp_path / "logs", Random(1), lines=lines, pieces=20)
    assert run.source.past.count
    assert failing(run.report) & EXPECTED[name]
    assert run.report.exit_code == 1
    assert {one.rule.id for one in run.report.explanations} == failing(run.report)


def test_a_window_is_large_enough_for_the_captures() -> None:
    """What the tests above take for granted."""
    assert all(sum(map(len, logs(FOLDER / name).values())) < LINES for name in EXPECTED)
