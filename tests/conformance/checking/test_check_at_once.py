"""A large NDJSON file is read at once and judged as columns; what the report says must not depend on that."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tidegauge.conformance.checking import inputs as room
from tidegauge.conformance.checking.check import Report, check
from tidegauge.traces.formats import ndjson
from validation.golden import DIRECTORY

GOLDEN = sorted(DIRECTORY.glob("*.ndjson"))


def said(report: Report) -> Report:
    """What a reader sees: without the time it took, what was kept behind it, and in which line a note was read."""
    notes = tuple(re.sub(r"\.ndjson:\d+", ".ndjson", note) for note in report.notes)
    return replace(report, seconds=0.0, judged=(), notes=notes)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Report]:
    def run(path: Path) -> Report:
        with monkeypatch.context() as patch:
            patch.setattr(room, "AT_ONCE_FROM", 0)
            return check([path])

    return run


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_both_ways_report_the_same(path: Path, at_once: Callable[[Path], Report]) -> None:
    assert said(at_once(path)) == said(check([path]))


def test_the_columns_of_a_right_file_are_judged_without_its_lines(
    at_once: Callable[[Path], Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line reader is not asked, so that its time is not spent."""
    right = DIRECTORY / "diverging-truncation.ndjson"
    expected = check([right])
    monkeypatch.setattr(ndjson, "read", lambda _: pytest.fail("read line by line"))
    assert said(at_once(right)) == said(expected)


def test_one_wrong_trace_among_many_is_found_with_its_line(tmp_path: Path, at_once: Callable[[Path], Report]) -> None:
    """Several configs in one file: the failing one is read again, and the explanation names file and line."""
    path = tmp_path / "all.ndjson"
    path.write_bytes(b"".join(one.read_bytes() for one in GOLDEN))
    report = at_once(path)
    assert report.explanations
    assert all(one.at.startswith(f"{path}:") for one in report.explanations)
    assert report.events == check([path]).events
    assert {r.rule.id: r.verdict for r in report.rules} == {r.rule.id: r.verdict for r in check([path]).rules}


def test_a_damaged_line_is_reported_either_way(tmp_path: Path, at_once: Callable[[Path], Report]) -> None:
    """A file that cannot be read at once is read line by line, and the problem has its line."""
    path = tmp_path / "damaged.ndjson"
    path.write_bytes((DIRECTORY / "append.ndjson").read_bytes() + b'{"node":1,"event":"Cra')
    assert said(at_once(path)) == said(check([path]))
    assert [problem.line for problem in at_once(path).problems]
