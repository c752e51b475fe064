"""What the script of the page does, in headless Chromium where there is one: links, slider, keys, filters, zoom, 390 px."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.hand import TWO
from tidegauge.conformance.checking.check import check
from tidegauge.conformance.report.html import page
from tidegauge.traces.formats import ndjson
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.schema import Event, Trace

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium, which is not on this machine")

FLAGS = "--headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run --virtual-time-budget=20000"
ERRORS = "<script>window.wrong = []; addEventListener('error', (e) => window.wrong.push(String(e.message)));</script>"
HELP = """
const $ = (id) => document.getElementById(id);
const at = () => $("place").textContent;
const key = (name, target) => target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
const set = (name, value) => {
  $("filter")[name].value = value;
  $("filter").dispatchEvent(new Event("input", { bubbles: true }));
};
const axis = () => [...document.querySelectorAll("#logs > text.soft[text-anchor=middle]")].map((one) => one.textContent);
const listed = () => [...document.querySelectorAll("#events .event")].map((row) => row.querySelector(".n").textContent);
const out = {};
"""

Drive = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def broken() -> str:
    return page(check([shipped()["4.2.0/k-epoch-jump"]]))


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    """Open a page at a link, run a script in it, and give what that left in `out`."""

    def driven(text: str, script: str, link: str = "", size: str = "1280,900") -> dict[str, Any]:
        left = "out.wrong = window.wrong; const pre = document.createElement('pre'); pre.id = 'left'; "
        left += "pre.textContent = JSON.stringify(out); document.body.append(pre);"
        file = tmp_path / "page.html"
        text = text.replace("<head>", f"<head>{ERRORS}", 1)
        file.write_text(
            text.replace("</body>", f"<script>(() => {{{HELP}{script};{left}}})()</script></body>"), encoding="utf-8"
        )
        assert CHROMIUM is not None
        command = [
            CHROMIUM,
            *FLAGS.split(),
            "--dump-dom",
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--window-size={size}",
        ]
        done = subprocess.run([*command, f"{file.as_uri()}{link}"], capture_output=True, text=True, timeout=120, check=False)
        found = re.search(r'<pre id="left">(.*?)</pre>', done.stdout, re.DOTALL)
        assert found is not None, done.stderr[-2000:]
        out: dict[str, Any] = json.loads(unescape(found.group(1)))
        assert out["wrong"] == []
        return out

    return driven


def test_a_link_leads_to_its_event_and_failure(broken: str, drive: Drive) -> None:
    """The event is shown, selected in the list and on the slider; the card of the rule is open; the link stays as it is."""
    out = drive(
        broken,
        """out.at = at(); out.now = $("now").textContent; out.slider = $("slider").value;
        out.chosen = document.querySelector(".chosen .rule").textContent; out.hash = location.hash;
        out.row = document.querySelector("[aria-selected=true] .n").textContent;""",
        "#trace=k-epoch-jump%2Falpha-0&event=152&rule=DATA-01",
    )
    assert out["at"] == "after event 152 of 362"
    assert out["now"].startswith("n2 HandleDivergingResponse")
    assert (out["chosen"], out["slider"], out["row"]) == ("DATA-01", "152", "152")
    assert "event=152" in out["hash"]


def test_without_a_link_the_worst_failure_is_shown(broken: str, drive: Drive) -> None:
    """And a step of because is a link to its event."""
    out = drive(
        broken,
        """out.at = at(); out.now = $("now").textContent;
        location.hash = document.querySelector("ol.because a").getAttribute("href");
        dispatchEvent(new HashChangeEvent("hashchange")); out.then = at();
        const cards = document.querySelectorAll("details.failure");
        cards[2].querySelector("summary").click(); out.third = at();
        out.open = [...cards].map((card) => card.open); out.card = document.querySelector(".chosen .rule").textContent;""",
    )
    assert out["at"] == "after event 185 of 362"
    assert "DATA-03 fails" in out["now"]
    assert out["then"] == "after event 139 of 362"
    assert (out["third"], out["card"], out["open"]) == ("after event 170 of 362", "HW-08", [True, False, True])


def test_a_card_that_opens_late_does_not_lead_away(broken: str, drive: Drive) -> None:
    """The toggle of the card that is open from the start arrives after the link was followed."""
    out = drive(
        broken,
        """document.querySelectorAll("details").forEach((one) => one.dispatchEvent(new Event("toggle"))); out.at = at();""",
        "#trace=k-epoch-jump%2Falpha-0&event=152&rule=DATA-01",
    )
    assert out["at"] == "after event 152 of 362"


def test_the_slider_and_the_focus_stay(broken: str, drive: Drive) -> None:
    """While one drags, the slider is the same element and has the focus; so has a button that was pressed."""
    out = drive(
        broken,
        """const slider = $("slider"); slider.focus(); out.seen = [];
        for (const value of [5, 90, 300]) {
          slider.value = value;
          slider.dispatchEvent(new Event("input"));
          out.seen.push(at());
        }
        out.kept = document.activeElement === slider && slider.isConnected && $("slider") === slider;
        $("forward").focus(); $("forward").click(); out.next = at(); out.button = document.activeElement.id;""",
    )
    assert out["seen"] == ["after event 5 of 362", "after event 90 of 362", "after event 300 of 362"]
    assert out["kept"] is True
    assert (out["next"], out["button"]) == ("after event 301 of 362", "forward")


def test_every_event_is_reached_by_keys(broken: str, drive: Drive) -> None:
    """Home, then one arrow per event, to End; in the list up and down; in a field the keys are its own."""
    out = drive(
        broken,
        """key("Home", document.body); out.first = at(); out.seen = [];
        for (let k = 0; k < 362; k += 1) { key("ArrowRight", document.body); out.seen.push(Number(at().split(" ")[2])); }
        out.last = at(); key("ArrowLeft", document.body); out.back = at(); key("ArrowUp", $("events")); out.up = at();
        key("Home", $("filter").find); out.field = at(); key("End", document.body); out.end = at();""",
    )
    assert out["first"] == "before event 1 of 362"
    assert out["seen"] == list(range(1, 363))
    assert (out["last"], out["back"], out["up"]) == (
        "after event 362 of 362",
        "after event 361 of 362",
        "after event 360 of 362",
    )
    assert (out["field"], out["end"]) == (out["up"], out["last"])


def test_filters_and_search(broken: str, drive: Drive) -> None:
    """By node, event, rule, offset, time and words; stepping goes through what is shown; the link keeps the filter."""
    out = drive(
        broken,
        """const one = (name, value) => { set(name, value); out[name] = [$("count").textContent, listed()]; set(name, ""); };
        key("Home", document.body); one("node", "100"); one("kind", "Crash"); one("story", "DATA-03"); one("offset", "1");
        one("find", "n1/request.log:52"); one("from", "10:31:05.5"); one("to", "10:30:35");
        set("kind", "BecomeLeader"); key("Home", document.body);
        key("ArrowRight", document.body); out.stepped = $("now").textContent; out.hash = location.hash;""",
    )
    assert out["story"][1] == ["139", "152", "170", "173", "174", "183", "185", "201"]
    assert out["find"] == ["1 of 362 events", ["173"]]
    assert out["kind"][1] == ["174"]
    assert out["offset"][1][0] == "139"
    assert out["node"][0].endswith(" of 362 events")
    assert int(out["from"][0].split()[0]) < 362
    assert out["to"][1][0] == "1"
    assert out["stepped"].startswith("n1 BecomeLeader")
    assert "kind=BecomeLeader" in out["hash"]


def test_zoom(broken: str, drive: Drive) -> None:
    """In, out, along, all, and back to what matters; the drawing says its state in words."""
    out = drive(
        broken,
        """out.fit = axis(); for (let k = 0; k < 3; k += 1) $("out").click(); out.out = axis();
        $("right").click(); out.right = axis(); $("whole").click(); out.whole = axis(); $("fit").click(); out.again = axis();
        out.says = $("logs").getAttribute("aria-label");""",
    )
    assert out["fit"] == out["again"] == ["0", "1", "2"]
    assert len(out["out"]) > len(out["fit"])
    assert out["right"] != out["out"]
    assert out["says"].startswith("n1 down, log end 2, high watermark 2; n2 leader, log end 1, ")


def test_a_narrow_screen_does_not_scroll_sideways(broken: str, drive: Drive) -> None:
    """390 px: nothing is wider than the screen."""
    script = """const html = document.documentElement; const right = (one) => one.getBoundingClientRect().right;
        const all = [...document.querySelectorAll("main *")].filter((one) => !one.closest("svg, pre"));
        const wide = all.filter((one) => right(one) > innerWidth + 1).map((one) => one.tagName);
        Object.assign(out, { inner: innerWidth, scroll: html.scrollWidth, wide })"""
    out = drive(broken, script, size="390,844")
    assert out["scroll"] <= out["inner"]
    assert out["wide"] == []


def test_a_long_trace_keeps_the_page_small(drive: Drive, tmp_path: Path) -> None:
    """5,000 events at offsets in the millions: only the rows in sight are there, the axis has the offsets that matter."""
    begin = 4_000_000
    events = [Event(1, "Start", {"clean": True, "leo": begin, "hw": begin, "log_start": 0, "epochs": ((3, 0),)})]
    events += [
        Event(1, "LeaderAppend", {"leo": begin + k, "leo_before": begin + k - 1, "hw": begin + k}) for k in range(1, 5000)
    ]
    ndjson.write([Trace("long", "t-0", TWO, tuple(events))], tmp_path / "t.ndjson")
    out = drive(
        page(check([tmp_path / "t.ndjson"])),
        """key("End", document.body); out.rows = document.querySelectorAll("#events .event").length; out.at = at();
        out.axis = axis(); out.drawn = document.querySelectorAll("svg *").length;
        $("events").scrollTop = 60000; $("events").dispatchEvent(new Event("scroll")); out.listed = listed();""",
    )
    assert out["at"] == "after event 5,000 of 5,000"
    assert out["rows"] < 60
    assert out["drawn"] < 600
    assert all(offset.startswith(("4,004,9", "4,005,0")) for offset in out["axis"])
    assert "2,001" in out["listed"]
