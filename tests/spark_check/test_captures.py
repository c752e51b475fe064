"""A directory of captures on Spark: the same report as without."""

from pathlib import Path

import pytest

from tidegauge.conformance.judging.check import How, Report, check
from tidegauge.spark_check.captures import captures_in, check_on_spark
from tidegauge.traces.kafka.shipped import FOLDER, shipped


def said(report: Report) -> object:
    return (
        report.verdict,
        report.exit_code,
        [(one.rule.id, one.verdict, one.tally) for one in report.rules],
        [(one.path, one.verdict, one.events, one.missing) for one in report.inputs],
        sorted((one.path, one.rule.id, one.at) for one in report.explanations),
    )


@pytest.mark.spark
def test_captures_are_judged_as_without_spark() -> None:
    """One task per capture; a broken one among them."""
    paths = [FOLDER / "3.4.0", shipped()["4.2.0/k-epoch-jump-control"]]
    report = check_on_spark(paths, How(), "local[2]")
    assert said(report) == said(check([shipped()["3.4.0/b-kill-leader"], paths[1]]))


def test_a_directory_of_captures_is_its_captures(tmp_path: Path) -> None:
    """However deep; a capture is one, whatever its nodes' folders are like; what is none stays what it is."""
    assert set(captures_in(FOLDER)) == set(shipped().values())
    assert list(captures_in(FOLDER / "4.2.0" / "d-unclean")) == [FOLDER / "4.2.0" / "d-unclean"]
    (tmp_path / "a" / "n1" / "logs").mkdir(parents=True)
    (tmp_path / "a" / "n1" / "logs" / "server.log").write_text("x")
    assert list(captures_in(tmp_path)) == [tmp_path / "a"]
    assert list(captures_in(tmp_path / "nothing")) == [tmp_path / "nothing"]
