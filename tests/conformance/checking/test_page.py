"""The page: what is broken as text, every event and state as data, nothing from outside, bounded, safe with foreign text."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from xml.etree import ElementTree

import pytest

from tests.conformance.hand import COPIED, TWO, bent
from tidegauge import __suite__, __version__
from tidegauge.conformance.checking.check import Report, check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.conformance.explain.explain import TraceRow
from tidegauge.conformance.explain.replay import replay
from tidegauge.conformance.report import timeline
from tidegauge.conformance.report.html import SCRIPTS, asset, page, write_html
from tidegauge.conformance.report.junit import write_junit
from tidegauge.conformance.report.text import verdict_line
from tidegauge.conformance.report.timeline import CAUSES, Timelines, causes, changed
from tidegauge.drive.coverage import coverage_of, coverage_page, exercised_by_check
from tidegauge.story.story import story_of
from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats import ndjson, parquet
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.schema import EVENTS, Event, Trace
from validation.golden import DIRECTORY
from validation.main_job.page import job_page


@pytest.fixture(scope="module")
def report() -> Report:
    return check([shipped()["4.2.0/k-epoch-jump"]])


@pytest.fixture(scope="module")
def text(report: Report) -> str:
    return page(report)


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found.group(1))
    return data


def states(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every state of a timeline, put together as templates/timeline.js does."""
    out = [line["before"]]
    for event in line["events"]:
        delta = dict(event[5])
        replicas = delta.pop("replicas", {})
        last = out[-1]
        out.append(
            {**last, **delta, "replicas": [{**one, **replicas.get(str(k), {})} for k, one in enumerate(last["replicas"])]}
        )
    return out


class Links(HTMLParser):
    """The links of a page, and its tags that were left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a":
            self.links.append(given.get("href") or "")
        if given.get("id"):
            self.ids.append(given["id"] or "")
        assert "src" not in given
        assert "onclick" not in given


def test_what_is_broken_can_be_read_without_a_script(text: str, report: Report) -> None:
    """The first words of the main part are the worst failure; then why; release, profile, version and coverage are there."""
    body = text.partition("<main>")[2].partition("<script")[0]
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))
    first = report.explanations[0]
    assert words.split("3 failures ")[1].startswith(
        f"DATA-03 {first.means} Because n1 appended offset 1 in epoch 0. event 139"
    )
    assert [words.index(one.means) for one in report.explanations] == sorted(
        words.index(one.means) for one in report.explanations
    )
    for said in ("Kafka 4.2.0", "profile elr", f"Tidegauge {__version__}, suite {__suite__}"):
        assert f"<li>{said}</li>" in text
    assert all(said in words for one in report.inputs for said in one.covered)


def test_the_page_needs_nothing_from_outside(text: str, tmp_path: Path) -> None:
    """No request, no other file: links stay in the page, and the policy allows nothing else."""
    assert all(link.startswith("#trace=") for link in Links(text).links)
    assert set(re.findall(r"https?://[^\s\"'<>]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text
    for wanted in ("prefers-color-scheme: dark", "prefers-reduced-motion", "prefers-contrast", ":focus-visible", "viewport"):
        assert wanted in text


def test_every_link_leads_to_an_event_of_the_page(text: str) -> None:
    """Trace, number and rule: what the viewer looks for."""
    data = data_of(text)
    links = [parse_qs(link[1:]) for link in Links(text).links]
    assert len(links) > 15
    for link in links:
        (line,) = (one for one in data["timelines"] if one["trace"] == link["trace"][0])
        assert line["first"] <= int(link["event"][0]) < line["first"] + len(line["events"])
        assert link["rule"][0] in {failure["rule"] for failure in data["failures"]}


def test_the_page_holds_every_event_and_state(text: str, report: Report) -> None:
    """All events of all partitions in their order, and behind each what the judge knew, put together from what changed."""
    data = data_of(text)
    traces = {trace.name: trace for one in report.judged for trace in one.batch.traces or ()}
    assert {line["trace"] for line in data["timelines"]} == set(traces)
    for line in data["timelines"]:
        trace = traces[line["trace"]]
        assert [(event[0], event[1], event[3]) for event in line["events"]] == [
            (e.node, e.event, e.at) for e in trace.events
        ]
        columns = to_columns([trace], trace.config)
        known = replay(columns, trace.config, 0, len(trace.events) - 1, len(trace.events))
        assert [[(r["leo"], r["hw"], r["role"]) for r in state["replicas"]] for state in states(line)] == [
            [(r.leo, r.hw, r.role) for r in snapshot.replicas] for snapshot in known
        ]


def test_a_change_is_what_differs() -> None:
    """Of replicas by position, of the rest by name; nothing where nothing changed."""
    one = {"leader": 1, "replicas": [{"leo": 1, "hw": 0}, {"leo": 2, "hw": 2}]}
    two = {"leader": 2, "replicas": [{"leo": 1, "hw": 1}, {"leo": 2, "hw": 2}]}
    assert changed(one, two) == {"leader": 2, "replicas": {0: {"hw": 1}}}
    assert changed(one, one) == {}


def test_a_failure_knows_its_event_and_the_offsets_to_mark(text: str) -> None:
    """DATA-03 at event 185: expected up to 2, seen up to 1."""
    failure = data_of(text)["failures"][0]
    assert (failure["rule"], failure["event"], failure["between"]) == ("DATA-03", 185, [1, 2])
    assert failure["because"] == [139, 152, 170, 173, 174, 183, 185, 201]


def long(events: int) -> TraceRow:
    """A trace of so many reads."""
    reads = tuple(Event(1, "Read", {"bound": 0, "rec_end": 0}, at=f"line {at}") for at in range(events))
    trace = Trace("long", "t-0", TWO, reads)
    return TraceRow(to_columns([trace], TWO), TWO, 0, 0, (trace,))


def test_a_page_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long trace is there around its failure, one far away brings its own stretch; other traces have room or not."""
    for name, value in (("WHOLE_TRACE", 100), ("AFTER_FAILURE", 20), ("PAGE_IS_FULL", 150), ("FULL_PAGE_STRETCH", 10)):
        monkeypatch.setattr(timeline, name, value)
    place, lines = long(1000), Timelines()
    assert lines.add_stretch(replace(place, row=600)) == 0
    assert lines.add_stretch(replace(place, row=610)) == 0
    assert lines.add_stretch(replace(place, row=50)) == 1
    assert lines.add_stretch(replace(place, row=999)) == 2
    assert [(one["first"], len(one["events"]), one["total"]) for one in lines.data] == [
        (522, 100, 1000),
        (1, 100, 1000),
        (991, 10, 1000),
    ]
    assert all(number in lines.event_numbers(at) for at, number in ((0, 601), (0, 611), (1, 51), (2, 1000)))
    lines.add_trace(place)
    assert lines.left_out == 0
    lines.add_trace(long(60))
    assert (lines.left_out, len(lines.data)) == (1, 3)


def test_traces_of_one_name_have_links_of_their_own() -> None:
    """The main job has captures of the same name: a number tells them apart; a second stretch of one has none."""
    one, two, lines = long(20), long(30), Timelines()
    for place in (one, two, replace(one, row=5)):
        lines.add_stretch(place)
    assert [line["trace"] for line in lines.data] == ["long", "long (2)"]


def test_what_is_left_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces that found no room are counted in the head of the page."""
    ndjson.write([Trace(f"t{at}", "t-0", TWO, COPIED) for at in range(3)], tmp_path / "t.ndjson")
    monkeypatch.setattr(timeline, "PAGE_IS_FULL", 2 * len(COPIED))
    text = page(check([tmp_path / "t.ndjson"]))
    assert "1 trace not on this page" in text
    assert len(data_of(text)["timelines"]) == 2


def test_the_frame_and_the_viewer_are_one_part() -> None:
    """The page of a check and that of the main job have the same head and the same viewer."""
    one, two = page(check([DIRECTORY / "commit.ndjson"])), job_page(())
    head = [text.split("</style>")[0].split("<title>")[0] for text in (one, two)]
    assert head[0] == head[1]
    for name in ("viewer.html", "style.css", *SCRIPTS):
        assert asset(name) in one
        assert asset(name) in two


def test_ids_are_unique_and_controls_have_names(text: str) -> None:
    """What the script looks up is there once; buttons, fields and drawings say what they are."""
    ids = Links(text.partition("<script type")[0]).ids
    assert len(ids) == len(set(ids))
    wanted = {name for script in SCRIPTS for name in re.findall(r'\bby\("(\w+)"\)', asset(script))}
    assert wanted <= set(ids) | {"rules"}
    for control in re.findall(r"<(?:button|input|select)\b[^>]*>", asset("viewer.html")):
        labelled = "aria-label=" in control or "name=" in control or 'id="timeline"' in control or 'type="reset"' in control
        assert labelled, control


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_a_number_has_its_heading_on_a_phone_too(text: str, report: Report) -> None:
    """There the row of headings is not shown, and each cell is a line."""
    pages = [text, coverage_page(coverage_of(exercised_by_check("logs", report)))]
    seen = 0
    for table in (table for one in pages for table in re.findall(r"<table>.*?</table>", one, re.DOTALL)):
        heads = re.findall(r"<th[^>]*>([^<]*)</th>", table)
        for row in re.findall(r"<tr[^>]*>(<td.*?)</tr>", table, re.DOTALL):
            cells = re.findall(r"<td([^>]*)>(.*?)</td>", row, re.DOTALL)
            for head, (attributes, says) in zip(heads, cells, strict=True) if heads else ():
                if re.fullmatch(r"[\d,]+(?: of [\d,]+)?", says):
                    assert f'data-head="{head}"' in attributes, row
                    seen += 1
    assert seen > 20, "the tables of both pages"


def test_colours_can_be_told_apart() -> None:
    """WCAG AA, light and dark: words on cards and papers, numbers on the colours of epochs, words on badges."""
    light, dark = (
        dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in asset("style.css").split("@media (prefers-color", 1)
    )
    dark = light | dict(list(dark.items())[:40])
    for theme in (light, dark):
        for word in ("ink", "soft", "pass", "fail", "open", "none", "hw", "water"):
            assert contrast(theme[word], theme["card"]) >= 4.5, word
        for on in ("paper", "mark", "wash", "lost"):
            assert contrast(theme["ink"], theme[on]) >= 4.5, on
        for epoch in range(8):
            assert contrast(theme["on"], theme[f"e{epoch}"]) >= 4.5, epoch
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_arrows_join_what_caused_what(report: Report) -> None:
    """A handled fetch comes of the sent one with the same words, a response of the handling, a role of its registration."""
    batch = next(one.batch for one in report.judged for trace in one.batch.traces or () if trace.tp == "alpha-0")
    events = (batch.traces or ())[0].events
    of = causes(events)
    assert of[184] == 182  # n2 becomes leader because of the registration
    for at, cause in enumerate(of):
        if cause is not None:
            assert cause < at
            assert events[cause].event in CAUSES[events[at].event].events
            if events[at].event == "HandleFetch":
                assert events[cause].node == events[at].fields["peer"]
                assert events[cause].fields["req_offset"] == events[at].fields["req_offset"]
    handled = [cause for event, cause in zip(events, of, strict=True) if event.event == "HandleFetch"]
    assert len(handled) > 50
    assert None not in handled
    assert set(CAUSES) <= set(EVENTS)


def test_an_arrow_needs_the_same_words() -> None:
    """Another offset, another peer, or an order that cannot be: no arrow. What is not said is no contradiction."""
    send = Event(2, "SendFetch", {"peer": 1, "req_offset": 5, "req_epoch": 0})
    handle = Event(1, "HandleFetch", {"peer": 2, "req_offset": 5})
    assert causes([send, handle]) == [None, 0]
    assert causes([handle, send]) == [None, None]
    assert causes([send, replace(handle, fields={"peer": 2, "req_offset": 6})]) == [None, None]
    assert causes([send, replace(handle, fields={"peer": 3, "req_offset": 5})]) == [None, None]


def test_text_from_a_trace_cannot_break_the_page(tmp_path: Path) -> None:
    """A trace name is foreign text: it is escaped in every report."""
    lines = (DIRECTORY / "fails-no-divergence-check.ndjson").read_text(encoding="utf-8").splitlines()
    lines[0] = lines[0].replace("golden/fails-no-divergence-check", "</script><b>\\u0001&")
    path = tmp_path / "x&<y>.ndjson"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    seen = check([path])
    text = page(seen)
    assert "</script><b>" not in text
    assert "x&<y>" not in text.split('id="data"')[0]
    # Control characters are shown, not sent.
    assert data_of(text)["timelines"][0]["trace"] == "</script><b>\\x01&"
    write_html(seen, tmp_path / "r.html")
    write_junit(seen, tmp_path / "r.xml")
    assert ElementTree.parse(tmp_path / "r.xml").getroot().tag == "testsuites"


def test_a_source_without_lines_has_its_events_too(tmp_path: Path) -> None:
    """Columns of Parquet become events again where something fails."""
    traces = [Trace("t", "t-0", TWO, COPIED), Trace("u", "t-0", TWO, bent(COPIED, 5, hw=1))]
    parquet.write(to_columns(traces, TWO), TWO, tmp_path / "t.parquet")
    data = data_of(page(check([tmp_path / "t.parquet"])))
    assert [event[1] for event in data["timelines"][0]["events"]] == [event.event for event in COPIED]


def test_a_page_does_not_praise_a_loss_nor_what_was_not_judged() -> None:
    """A PASS over a loss begins with the loss; where no rule was judged the page says so."""
    lost = shipped()["4.1.1/m-lost-disk"]
    passed = page(replace(check([lost]), story=story_of([lost])))
    assert passed.index("Data was lost") < passed.index("<h2>No rule is broken</h2>")
    assert "Nothing is broken" not in passed
    nothing = Report((), Verdict.SUITE_ERROR, (), (), failures=0, seconds=0)
    assert "<h2>No rule was judged</h2>" in page(nothing)


def test_lines_that_say_nothing_are_no_error_of_the_suite(tmp_path: Path) -> None:
    started = tmp_path / "server.log"
    started.write_text(
        "[2024-03-11 10:43:22,196] INFO [GroupCoordinator 1]: Startup complete. (kafka.coordinator.group.GroupCoordinator)\n"
    )
    assert verdict_line(check([started]).with_story(story_of([started]))).startswith("NO VERDICT: no event was judged")
    started.write_text("hello\n")
    assert verdict_line(check([started]).with_story(story_of([started]))).startswith("SUITE ERROR: no event was judged")


def test_problems_stand_on_lines_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "bad.ndjson").write_text("{}\n{}\n", encoding="utf-8")
    report = check([tmp_path / "bad.ndjson", tmp_path / "none.ndjson"])
    assert len(report.problems) > 1
    listed = page(report).partition("<h2>Bad input</h2>")[2]
    assert listed.count("&#10;") == len(report.problems) - 1
    assert "\\n" not in listed.partition("</pre>")[0]
