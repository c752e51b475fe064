"""A trace that lost lines: what fails behind them is nobody's fault yet."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.conformance.hand import COPIED, TWO, bent
from tidegauge.conformance.checking.check import Report, check
from tidegauge.conformance.checking.verdicts import Verdict, verdict_of
from tidegauge.conformance.engine.judge import RuleTally
from tidegauge.conformance.report.json_report import as_json
from tidegauge.conformance.report.text import as_text
from tidegauge.traces.formats import ndjson
from tidegauge.traces.from_model.behaviour import numbered
from tidegauge.traces.schema import Event, Trace

TORN = '{"v": 1, "node": 1, "event": '


def lines(events: Sequence[Event], name: str = "hand") -> list[str]:
    """Without numbers, which would show the gap by themselves."""
    return list(ndjson.lines(Trace(name, "t-0", TWO, tuple(events))))


def checked(tmp_path: Path, *text: str) -> Report:
    path = tmp_path / "t.ndjson"
    path.write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    return check([path])


def verdicts(report: Report, *rules: str) -> list[Verdict]:
    by_id = {one.rule.id: one.verdict for one in report.rules}
    return [by_id[rule] for rule in rules]


def test_a_failure_behind_a_lost_line_is_undecided(tmp_path: Path) -> None:
    """The request was in the file, cut off: that the leader handled it is no fault of the leader. The run has not passed."""
    good = lines(COPIED)
    at = next(at for at, line in enumerate(good) if "SendFetch" in line)
    report = checked(tmp_path, *good[:at], TORN, *good[at + 1 :])
    assert verdicts(report, "FETCH-04") == [Verdict.INCONCLUSIVE]
    assert (report.verdict, report.exit_code, report.failures) == (Verdict.INCONCLUSIVE, 2, 0)
    assert report.explanations == ()
    said = as_text(report)
    assert "INCONCLUSIVE: undecided after lost lines: FETCH-04 (" in said
    assert f"hand: a line before its event {at} was lost" in said
    assert "1 failed after a line was lost" in said
    reported = {rule["rule"]: rule["after_loss"] for rule in as_json(report)["rules"]}
    assert {rule for rule, failed in reported.items() if failed} == {"FETCH-04"}


def test_a_gap_in_the_numbers_is_a_lost_line_too(tmp_path: Path) -> None:
    """What the missing line may have done is undecided; the run has not passed, and a note says where."""
    good = list(ndjson.lines(Trace("hand", "t-0", TWO, numbered(COPIED))))
    at = next(at for at, line in enumerate(good) if "SendFetch" in line)
    report = checked(tmp_path, *good[:at], *good[at + 1 :])
    assert (report.verdict, report.failures) == (Verdict.INCONCLUSIVE, 0)
    assert verdicts(report, "SEQ-01") == [Verdict.INCONCLUSIVE]
    assert "lines are missing before" in as_text(report)


def test_the_same_line_that_was_never_written_is_a_failure(tmp_path: Path) -> None:
    """Only what could not be read is forgiven."""
    good = lines([event for at, event in enumerate(COPIED) if at != 6])
    report = checked(tmp_path, *good)
    assert (report.verdict, report.exit_code) == (Verdict.FAIL, 1)
    assert verdicts(report, "FETCH-04") == [Verdict.FAIL]


def test_a_failure_in_front_of_the_lost_line_stands(tmp_path: Path) -> None:
    """The judge had not come to the line yet."""
    wrong = lines(bent(COPIED, 5, hw=1))
    report = checked(tmp_path, *wrong[:10], TORN, *wrong[11:])
    assert (report.verdict, report.exit_code) == (Verdict.FAIL, 1)
    assert verdicts(report, "HW-02") == [Verdict.FAIL]
    assert {explanation.rule.id for explanation in report.explanations} >= {"HW-02"}


@pytest.mark.parametrize("lost", ["[1, 2]", '{"v": 0}', '{"event": "Tomorrow", "node": 1}', '{"event": "Crash", "node": 9}'])
def test_every_kind_of_line_that_cannot_be_read_counts(tmp_path: Path, lost: str) -> None:
    """No object, no version, no event, no node of the trace."""
    wrong = lines(bent(COPIED, 10, res_hw=1))
    assert checked(tmp_path, *wrong).verdict is Verdict.FAIL
    assert checked(tmp_path, *wrong[:3], lost, *wrong[3:]).verdict is Verdict.INCONCLUSIVE


def test_a_lost_line_is_none_of_the_traces_that_ended_before_or_begin_after(tmp_path: Path) -> None:
    """One trace of three is damaged; the fault of another is found."""
    wrong = bent(COPIED, 10, res_hw=1)
    first, second, third = (lines(events, name) for events, name in ((wrong, "one"), (COPIED, "two"), (COPIED, "three")))
    report = checked(tmp_path, *first, *second[:7], TORN, *second[8:], *third)
    assert report.traces == 3
    assert report.verdict is Verdict.FAIL
    assert {failure.trace for failure in report.explanations} == {"one"}
    assert verdicts(report, "FETCH-04") == [Verdict.INCONCLUSIVE]
    again = checked(tmp_path, *second[:7], TORN, *second[8:], *first)
    assert {failure.trace for failure in again.explanations} == {"one"}


def test_a_writer_that_was_cut_off_has_told_all_that_is_judged(tmp_path: Path) -> None:
    """Nothing comes behind the last line: what is there is judged as ever, and the file is bad input all the same."""
    report = checked(tmp_path, *lines(COPIED), TORN)
    assert (report.verdict, report.exit_code) == (Verdict.INCONCLUSIVE, 2)
    wrong = checked(tmp_path, *lines(bent(COPIED, 10, res_hw=1)), TORN)
    assert (wrong.verdict, wrong.exit_code) == (Verdict.FAIL, 1)


def test_a_rule_that_also_fails_elsewhere_fails() -> None:
    """What was set aside takes nothing from what was found."""
    assert verdict_of(RuleTally(held=3, after_loss=2)) is Verdict.INCONCLUSIVE
    assert verdict_of(RuleTally(held=3, failed=1, after_loss=2)) is Verdict.FAIL
