"""A large NDJSON file is judged in spans side by side; what the report says must not depend on that."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tidegauge.conformance.checking import sharded
from tidegauge.conformance.checking.check import CheckOptions, Report, check
from tidegauge.conformance.checking.sharded import check_in_parallel, check_in_spans, spans_to_judge
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.traces.formats import ndjson
from tidegauge.traces.formats.ndjson_columns import read_span, spans
from tidegauge.traces.schema import Trace
from validation.golden import DIRECTORY

RIGHT = DIRECTORY / "diverging-truncation.ndjson"
AS_NAMED = CheckOptions()
WRONG = DIRECTORY / "fails-hw-is-own-log-end.ndjson"


def many(tmp_path: Path, count: int, *more: Trace) -> Path:
    """So many right traces with names of their own, then others."""
    (trace,) = ndjson.read(RIGHT).traces
    path = tmp_path / "many.ndjson"
    ndjson.write([*(replace(trace, name=f"right-{number}") for number in range(count)), *more], path)
    return path


def said(report: Report) -> Report:
    """What a reader sees, without the time it took and what was kept behind it."""
    return replace(report, seconds=0.0, judged=())


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, CheckOptions], Report]:
    """In two processes, however small the file."""
    monkeypatch.setattr(sharded, "LARGE_BYTES", 1)

    def run(path: Path, how: CheckOptions = AS_NAMED) -> Report:
        assert len(spans_to_judge(path, how, 2)) == 2
        return check_in_parallel([path], how, processes=2)

    return run


def test_a_right_file_is_judged_in_spans_alone(
    tmp_path: Path, apart: Callable[..., Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not read as a whole again, and the report is that of the whole."""
    path = many(tmp_path, 12)
    expected = check([path])
    monkeypatch.setattr(sharded, "check", lambda *_: pytest.fail("judged as a whole"))
    assert said(apart(path)) == said(expected)
    assert (expected.verdict, expected.traces) == (Verdict.PASS, 12)


def appended(text: bytes) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.write_bytes(path.read_bytes() + text)

    return change


def without_its_last_newline(path: Path) -> None:
    path.write_bytes(path.read_bytes().rstrip(b"\n"))


def named_twice_far_apart(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"right-11"', b'"right-0"'))


def without_a_name(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"trace":"right-3",', b""))


def of_another_trace(path: Path) -> None:
    """The last line is of the first trace."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[1].replace(b"{", b'{"trace":"right-0",', 1)]))


APART, AGAIN, NEVER = "its spans are all that is judged", "it is cut, and then judged as a whole", "it is not cut"


@pytest.mark.parametrize(
    ("change", "way"),
    [
        (without_its_last_newline, APART),
        (appended(b"\n\n"), AGAIN),
        (of_another_trace, AGAIN),
        (appended(b"{\n"), AGAIN),
        (appended(b"\xff\n"), AGAIN),
        (named_twice_far_apart, NEVER),
        (without_a_name, NEVER),
        (appended(b'{"event":"Config"}\n'), NEVER),
    ],
)
def test_whatever_a_file_holds_the_report_is_that_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], way: str
) -> None:
    """Where a span cannot stand alone, the whole is judged."""
    path = many(tmp_path, 12)
    change(path)
    monkeypatch.setattr(sharded, "LARGE_BYTES", 1)
    pieces = spans_to_judge(path, AS_NAMED, 2)
    apart = check_in_spans(path, pieces, AS_NAMED, 2) if pieces else None
    assert (NEVER if not pieces else AGAIN if apart is None else APART) == way
    assert said(check_in_parallel([path], AS_NAMED, processes=2)) == said(check([path]))


def test_a_failure_has_its_line_in_the_whole_file(tmp_path: Path, apart: Callable[..., Report]) -> None:
    """The wrong trace is the last one, in the second span."""
    path = many(tmp_path, 12, *ndjson.read(WRONG).traces)
    report = apart(path)
    assert report.verdict is Verdict.FAIL
    assert said(report) == said(check([path]))


def test_what_nobody_knows_is_said_once(tmp_path: Path, apart: Callable[..., Report]) -> None:
    """A profile without meaning is a problem of the file, not of each span."""
    path, how = many(tmp_path, 12), CheckOptions(profile="nonsense")
    assert said(apart(path, how)) == said(check([path], how))


@pytest.mark.parametrize("least", [1, 2_000, 10_000])
def test_spans_are_the_file(tmp_path: Path, least: int) -> None:
    """Each begins with a Config line, is as long as asked for, and together they are all of it."""
    path = many(tmp_path, 12)
    found = [read_span(path, span) for span in spans(path, least)]
    assert b"".join(found) == path.read_bytes()
    assert len(found) > 1
    assert all(b'"Config"' in span.partition(b"\n")[0] for span in found)
    assert all(len(span) >= least for span in found[:-1])


def test_what_is_small_or_no_ndjson_is_not_cut(tmp_path: Path) -> None:
    """Nor what is to be read in another way."""
    path = many(tmp_path, 12)
    assert spans_to_judge(path, CheckOptions(), 2) == []
    assert spans_to_judge(tmp_path, CheckOptions(), 2) == []
    assert spans_to_judge("-", CheckOptions(), 2) == []
