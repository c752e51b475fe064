"""No text of a sender speaks for us, whatever writer shows it."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegauge.cli.terminal import _printable
from tidegauge.conformance.checking.check import Report, check
from tidegauge.conformance.report.html import page
from tidegauge.conformance.report.json_report import json_text
from tidegauge.conformance.report.junit import write_junit
from tidegauge.conformance.report.text import as_text
from tidegauge.drive.transports.lines import NEEDED, REPORTED, VERSION, parse_handshake
from tidegauge.traces.problems import Problem
from tidegauge.util.junit import annotations
from tidegauge.util.untrusted_text import printable_json, visible, visible_lines

GOLDEN = Path(__file__).parents[2] / "tidegauge" / "traces" / "golden" / "append.ndjson"
CONTROLS = "\x00\x07\x08\x1b\r\n\x0b\x0c\x7f\x85\x9b\u200b\u200e\u2028\u2029\u202e\u2066\ufeff\udc80\U000e0041"
HOSTILE = st.text(st.sampled_from(CONTROLS + "a:%<>&'\"\\[PASS: ]é☃"), min_size=1, max_size=12)


@given(st.text() | HOSTILE)
def test_a_visible_text_is_one_printable_line(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    assert shown == text or not text.isprintable()


@given(st.text() | HOSTILE)
def test_lines_of_ours_stay_lines(text: str) -> None:
    assert visible_lines(f"one\n{visible(text)}\ntwo").split("\n")[::2] == ["one", "two"]
    assert all(line.isprintable() for line in visible_lines(text).split("\n")) or "\x1b[" in text


@given(st.recursive(st.text() | HOSTILE | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_stays_what_it_was(value: object) -> None:
    text = printable_json(json.dumps(value, ensure_ascii=False, indent=1))
    assert json.loads(text) == value
    assert all(line.isprintable() for line in text.split("\n"))


def test_colours_of_ours_reach_the_terminal() -> None:
    assert _printable("\x1b[31;1mFAIL\x1b[0m \x1b[2J\r", "utf-8") == "\x1b[31;1mFAIL\x1b[0m \\x1b[2J\\r"


RIGHT = check([GOLDEN])


def hostile_report(text: str) -> Report:
    """A report with a text of the sender's in everything that comes from input."""
    problem = Problem(text, 1, text, text, text, lost=1)
    (read,) = RIGHT.inputs
    hurt = replace(read, path=text, problems=(problem,), covered=(text,), missing=(text,))
    return replace(
        RIGHT,
        inputs=(hurt,),
        notes=(text,),
        judged=tuple(
            replace(
                judged,
                batch=replace(
                    judged.batch,
                    source=text,
                    traces=tuple(
                        replace(
                            trace,
                            name=text,
                            tp=text,
                            events=tuple(replace(e, at=text, time=text, corr=text) for e in trace.events),
                        )
                        for trace in judged.batch.traces or ()
                    ),
                ),
            )
            for judged in RIGHT.judged
        ),
    )


@given(HOSTILE)
@settings(max_examples=30)
def test_no_writer_lets_a_text_make_a_line(text: str) -> None:
    report, plain = hostile_report(text), hostile_report("x")
    written = as_text(report, everything=True)
    assert all(line.isprintable() for line in written.split("\n"))
    assert written.count("\n") == as_text(plain, everything=True).count("\n")
    assert json.loads(json_text(report))["parts"][0]["path"] == text
    made = page(report)
    assert all(line.isprintable() for line in made.replace("\t", " ").split("\n"))
    assert made.count("\n") == page(plain).count("\n")


@given(text=HOSTILE)
@settings(max_examples=30)
def test_junit_too(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("junit") / "check.xml"
    write_junit(hostile_report(text), path)
    for element in ET.parse(path).iter():
        assert all(value.isprintable() for value in element.attrib.values())
        assert all(line.isprintable() for line in (element.text or "").split("\n"))


@given(HOSTILE)
def test_a_program_cannot_name_itself_a_command_of_ci(text: str) -> None:
    """GitHub obeys a line that begins with `::`."""
    line = {"contract": VERSION, "name": f"::{text}", "can": sorted(NEEDED), "reports": list(REPORTED)}
    name = parse_handshake(json.dumps(line).encode(), "").name
    assert name.isprintable()
    assert not name.startswith(":")


@given(HOSTILE)
def test_an_annotation_is_one_line(text: str) -> None:
    (line,) = annotations(visible(text), [f"DIFFERS {visible(text)}\n  second"])
    assert line.isprintable()
    assert line.startswith("::error title=")
