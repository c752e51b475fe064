"""The verdict on what is converted is the one on what it was made of, whatever the source lacks."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.conformance.checking.test_damage import TORN, lines
from tests.conformance.hand import COPIED, TWO, bent
from tidegauge.conformance.checking import inputs
from tidegauge.conformance.checking.check import Report, check
from tidegauge.conformance.checking.convert import convert
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.traces.formats import ndjson
from tidegauge.traces.from_model.behaviour import numbered
from tidegauge.traces.kafka_logs.capture import FOLDER
from tidegauge.traces.schema import Trace
from tidegauge.util.errors import UsageError
from validation.metamorphic.cases import Case, captures, cases, transformed, written

SEED = 5
CASES = list(cases(captures([FOLDER]), 20, SEED))


def said(report: Report) -> tuple[Verdict, set[str]]:
    """The verdict, and the rules that fail."""
    return report.verdict, {one.rule.id for one in report.rules if one.verdict is Verdict.FAIL}


def converted(source: Path, to: Path) -> Report:
    convert(source, to)
    return check([to])


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}-{case.capture.name}-{'+'.join(case.steps)}")
def test_logs_with_parts_missing_keep_their_verdict_as_ndjson(case: Case, tmp_path: Path) -> None:
    """A gap that is not written down would be a wrong FAIL, or a PASS on half of what happened."""
    folder = tmp_path / case.capture.name
    folder.mkdir()
    written(transformed(case, SEED), case, folder)
    report = check([folder])
    if report.events:
        assert said(converted(folder, tmp_path / "t.ndjson")) == said(report)


def test_behind_a_line_that_was_lost_nothing_is_sure_in_what_is_written_either(tmp_path: Path) -> None:
    """As NDJSON it is undecided; Parquet cannot say so, and is not written."""
    text = lines(bent(COPIED, 10, res_hw=1))
    (tmp_path / "t.ndjson").write_text("\n".join((*text[:7], TORN, *text[7:], "")), encoding="utf-8")
    report = check([tmp_path / "t.ndjson"])
    assert said(report) == (Verdict.INCONCLUSIVE, set())
    assert said(converted(tmp_path / "t.ndjson", tmp_path / "again.ndjson")) == said(report)
    with pytest.raises(UsageError, match="expected traces without missing lines"):
        convert(tmp_path / "t.ndjson", tmp_path / "t.parquet")
    assert not (tmp_path / "t.parquet").exists()


def test_what_a_source_lacks_goes_with_it_into_parquet(tmp_path: Path) -> None:
    """A run that rests on less than everything does not pass because its form has changed."""
    lacking = replace(TWO, extra={"missing": ["the logs of node 3"]})
    ndjson.write([Trace("hand", "t-0", lacking, numbered(COPIED))], tmp_path / "t.ndjson")
    assert check([tmp_path / "t.ndjson"]).missing == ("the logs of node 3",)
    assert converted(tmp_path / "t.ndjson", tmp_path / "t.parquet").verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("at_once_from", [0, inputs.AT_ONCE_FROM], ids=["large", "small"])
def test_ndjson_keeps_names_topic_ids_times_and_places(
    at_once_from: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However large the source is, and though traces of several topics are judged together."""
    monkeypatch.setattr(inputs, "AT_ONCE_FROM", at_once_from)
    events = tuple(replace(event, time="10:00:00,000", at="n1/server.log:1") for event in numbered(COPIED))
    traces = [Trace(f"hand/{name}", f"{name}-0", replace(TWO, extra={"topic_id": name}), events) for name in ("a", "b")]
    ndjson.write(traces, tmp_path / "t.ndjson")
    convert(tmp_path / "t.ndjson", tmp_path / "again.ndjson")
    assert ndjson.read(tmp_path / "again.ndjson").traces == ndjson.read(tmp_path / "t.ndjson").traces
