"""What is judged as it comes is judged as the whole file is: whatever the pieces, whatever is wrong with it."""

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.follow.same_report import FedNdjson, follow, hand, same, text_of, whole
from tests.conformance.hand import COPIED, TWO, bent, reported
from tests.conformance.judge.test_superseded import reigns, unheard
from tests.traces.strategies import trace_lists
from tidegauge.conformance.follow import ndjson as follow_ndjson
from tidegauge.conformance.follow.loop import Alarm, News, Withdrawn
from tidegauge.traces.formats import ndjson
from tidegauge.traces.from_model.behaviour import numbered
from tidegauge.traces.problems import PROBLEMS_KEPT, Problem
from tidegauge.traces.schema import Trace
from validation.golden import DIRECTORY

GOLDEN = sorted(DIRECTORY.glob("*.ndjson"))


pieces = st.lists(st.integers(0, 1 << 16), max_size=12)


@settings(max_examples=30)
@given(path=st.sampled_from(GOLDEN), places=pieces)
def test_a_golden_trace_in_any_pieces(path: Path, places: list[int], folder: Path) -> None:
    news = same(path.read_bytes(), places, folder)
    if path.name.startswith("fails-") and not path.stem.endswith("repaired"):
        assert any(isinstance(one, Alarm) for one in news) or "hw-only" in path.name


@settings(max_examples=60)
@given(found=trace_lists, places=pieces, data=st.data())
def test_whatever_the_schema_allows(found: list[Trace], places: list[int], data: st.DataObject, folder: Path) -> None:
    """Each trace has a Config of its own: `check` takes what one trace shows for all of the same Config."""
    traces = []
    for number, trace in enumerate(found):
        extra: dict[str, Any] = {}
        if data.draw(st.booleans()):
            extra["whole"] = False
        if data.draw(st.booleans()):
            extra["reports"] = ["Start", "BecomeLeader", "BecomeFollower", "LeaderAppend", "HandleFetch"]
        config = replace(trace.config, source=f"source {number}", extra=extra)
        events = tuple(replace(event, seq=data.draw(st.none() | st.integers(0, 3))) for event in trace.events)
        traces.append(Trace(trace.name, trace.tp, config, events))
    same(text_of(*traces), places, folder)


def damaged(trace: Trace, random: Random) -> list[str]:
    """The lines of a trace; some of them are gone, torn, or there twice, or its Config says what may be missing."""
    config = replace(trace.config, extra={**trace.config.extra, **random.choice(({}, {"whole": False}, {"whole": False}))})
    lines = list(ndjson.lines(replace(trace, config=config)))
    for _ in range(random.choice((0, 0, 1, 3))):
        at = random.randrange(1, len(lines))
        lines[at : at + 1] = random.choice(([], [lines[at][:17]], [lines[at], lines[at]]))
    return lines


@pytest.mark.parametrize("seed", range(24))
def test_runs_that_lost_lines(seed: int, runs: list[Trace], folder: Path) -> None:
    """Several partitions at once, their lines mixed, each judged by itself."""
    random = Random(seed)
    parts = [
        [
            json.dumps(json.loads(line) | {"trace": str(number)}) if line.endswith("}") else line
            for line in damaged(one, random)
        ]
        for number, one in enumerate(random.sample(runs, random.choice((1, 1, 2))))
    ]
    mixed: list[str] = []
    while any(parts):
        part = random.choice([one for one in parts if one])
        mixed.append(part.pop(0))
    data = "\n".join(mixed).encode() + random.choice((b"", b"\n"))
    same(data, [random.randrange(len(data)) for _ in range(random.choice((0, 3, 30)))], folder)


def by_line(trace: Trace) -> list[list[News]]:
    """What is news with each line."""
    news_by_line = list[list[News]]()
    one = FedNdjson("f", lambda news: news_by_line[-1].append(news))  # noqa: PLW0108  the last list is another one each time
    for line in ndjson.lines(trace):
        news_by_line.append([])
        one.feed(f"{line}\n".encode())
    return news_by_line


def test_a_failure_is_news_with_its_line_and_in_the_words_of_the_report(folder: Path) -> None:
    """And once."""
    wrong = hand(bent(COPIED, 3, leo=7))
    news = by_line(wrong)
    report = whole(text_of(wrong), folder)
    first = min(int(e.at.rpartition(":")[2]) for e in report.explanations)
    assert not any(news[: first - 1])
    alarms = [one for of_line in news for one in of_line if isinstance(one, Alarm)]
    assert sorted((one.rule, one.trace, one.expected, one.actual) for one in alarms) == sorted(
        (e.rule.id, e.trace, e.expected, e.actual) for e in report.explanations
    )
    for number, of_line in enumerate(news, 1):
        assert all(f"  at        f:{number}\n" in str(one) for one in of_line)
    for alarm in alarms:
        assert f"  expected  {alarm.compared} {alarm.expected}\n  actual    {alarm.compared} {alarm.actual}" in str(alarm)


def test_a_rule_that_fails_again_is_news_again() -> None:
    """In one line, once the first failures have been explained; the report counts it, as ever."""
    high = [reported(1, "HwCheckpoint", hw=9 + number) for number in range(30)]
    news = [one for of_line in by_line(hand((*COPIED, *high))) for one in of_line]
    assert len(news) == len(high)
    assert "\n" in str(news[0])
    assert "\n" not in str(news[-1])
    report, _ = follow(text_of(hand((*COPIED, *high))))
    assert report.failures == len(report.explanations) == 1
    assert sum(one.tally.failed for one in report.rules) == len(high)


def without(trace: Trace, kind: str) -> Trace:
    """The trace without its first event of a kind; the numbers show that."""
    gone = next(event for event in trace.events if event.event == kind)
    return replace(trace, events=tuple(event for event in trace.events if event is not gone))


def test_a_failure_that_missing_lines_may_explain_is_withdrawn(folder: Path) -> None:
    """That the leader handled a request which nobody sent is news, until the follower's next number shows a gap."""
    trace = without(hand(numbered(COPIED)), "SendFetch")
    news = [one for of_line in by_line(trace) for one in of_line]
    assert [type(one) for one in news] == [Alarm, Problem, Withdrawn]
    assert [one.rule for one in news if isinstance(one, Alarm | Withdrawn)] == ["FETCH-04", "FETCH-04"]
    same(text_of(trace), (), folder)
    assert follow(text_of(trace))[0].failures == 0


def quiet_then_gap(events: int) -> Trace:
    """The follower says nothing while the leader goes on; then its number shows that it had sent a request."""
    busy = [reported(1, "HwCheckpoint", hw=0)] * events
    at = next(at for at, event in enumerate(COPIED) if event.event == "HandleFetchResponse")
    return without(hand(numbered((*COPIED[:at], *busy, *COPIED[at:]))), "SendFetch")


@pytest.mark.parametrize(("events", "failures"), [(10, 0), (100, 1)])
def test_what_shows_behind_a_whole_window_changes_nothing(
    events: int, failures: int, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """Then what was said stands: this is what `check` knows better, and docs/judge.md says so."""
    monkeypatch.setattr(follow_ndjson, "WINDOW", 16)
    data = text_of(quiet_then_gap(events))
    seen, _ = follow(data, range(0, len(data), 100))
    assert whole(data, folder).failures == 0
    assert seen.failures == failures


@pytest.mark.parametrize("window", [4, 16])
def test_a_small_window_judges_whole_traces_the_same(window: int, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Where no line is missing nothing shows late."""
    monkeypatch.setattr(follow_ndjson, "WINDOW", window)
    for wrong in (hand(numbered(reigns(12))), hand(bent(reigns(12), 100, leo=3)), hand(unheard(reigns(12)))):
        data = text_of(wrong)
        same(data, range(0, len(data), 50), folder)


@pytest.mark.parametrize("extra", [{"gaps": [[1, 2, "a line"]]}, {"profile": "no-such"}])
def test_a_trace_that_cannot_be_followed_is_set_aside(extra: dict[str, Any]) -> None:
    """Others go on; the run has not passed."""
    config = replace(TWO, profile=extra.pop("profile", TWO.profile), extra=extra)
    report, news = follow(text_of(hand(COPIED), hand(COPIED, config, "other")))
    assert [type(one).__name__ for one in news] == ["Problem"]
    assert (report.events, report.lost, report.exit_code) == (len(COPIED), len(COPIED), 2)


def test_another_file_goes_on_where_the_first_one_ended() -> None:
    """Lines are counted anew, and what was known stays known."""
    lines = list(ndjson.lines(hand(numbered(bent(COPIED, len(COPIED) - 1, hw=9)))))
    news = list[News]()
    one = FedNdjson("f", news.append)
    one.feed("\n".join(lines[:9]).encode())
    assert not news
    one.next_file("another file")
    one.feed("\n".join(lines[9:]).encode() + b"\n")
    assert news[0] == "another file"
    assert {alarm.at for alarm in news if isinstance(alarm, Alarm)} == {f"f:{len(lines) - 9}"}
    assert one.report().events == len(COPIED)


def test_problems_are_counted_when_there_are_many() -> None:
    """All are news, the first are kept, none is forgotten."""
    report, news = follow(text_of(hand(COPIED)) + b"no line\n" * (PROBLEMS_KEPT + 50))
    assert sum(one.lost for one in news) == report.lost == PROBLEMS_KEPT + 50
    assert len(report.problems) == PROBLEMS_KEPT + 1
