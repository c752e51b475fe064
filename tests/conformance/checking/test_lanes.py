"""The drawing of a story: an axis of time, a lane per broker, logs as bars; bounded, and safe with foreign text."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tidegauge.conformance.checking.check import Report
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.conformance.report.html import CONTROLLER, MOST_MARKS, lanes_of, page
from tidegauge.story.sentences import MOST_PARTITIONS
from tidegauge.story.state import StoryEntry
from tidegauge.story.story import Story, story_of
from tidegauge.traces.kafka_logs.capture import shipped

NOTHING = Report((), Verdict.SUITE_ERROR, (), (), failures=0, seconds=0)


@pytest.fixture(scope="module")
def lost() -> Story:
    return story_of([shipped()["4.2.0/d-unclean"]])


def fell(partition: str, order: int, node: int = 1) -> StoryEntry:
    fields = {"from": 9, "to": 5}
    return StoryEntry("high_watermark_fell", partition, node, f"2026-01-01 00:00:{order % 60:02}", ["a:1"], order, fields)


def test_each_broker_has_a_lane_and_each_entry_a_mark_in_order_of_time(lost: Story) -> None:
    drawing = lanes_of(lost)[0]
    titles = [title for title, _ in drawing.lanes]
    assert titles[0] == CONTROLLER
    assert titles[1:4] == ["broker 1", "broker 2", "broker 3"]
    assert [mark.x for mark in drawing.marks] == sorted(mark.x for mark in drawing.marks)
    truncated = next(mark for mark in drawing.marks if mark.words == "truncates")
    assert truncated.css_class == "bad"
    assert truncated.number == "73 to 40"
    assert truncated.removed_top is not None
    assert truncated.top is not None
    assert truncated.removed_top > truncated.top
    assert any(mark.words.startswith("elects") and mark.css_class == "bad" for mark in drawing.marks)
    of_lanes = {base for _, base in drawing.lanes}
    assert all(mark.base in of_lanes and 0 <= mark.x < drawing.width for mark in drawing.marks)


def test_words_of_a_lane_do_not_lie_on_each_other(lost: Story) -> None:
    for drawing in lanes_of(lost):
        for _, base in drawing.lanes:
            ends = [mark.x for mark in drawing.marks if mark.base == base]
            assert all(after - before >= 80 for before, after in pairwise(ends))


def test_the_page_shows_the_drawing_and_escapes_what_the_input_says(lost: Story) -> None:
    text = page(NOTHING.with_story(lost))
    assert text.count('<details class="lanes" open>') == 1
    assert "NO VERDICT" in text
    bad = replace(fell("x-0", 1), kind="fetcher_failed", fields={"offset": 1, "error": "<script>alert(1)</script>"})
    assert "<script>alert" not in page(NOTHING.with_story(Story([bad])))


def test_a_cluster_of_thousands_of_partitions_is_bounded_and_nothing_that_happened_is_no_drawing() -> None:
    story = Story([fell(f"x-{number}", number) for number in range(5_000)])
    assert len(lanes_of(story)) == MOST_PARTITIONS
    busy = lanes_of(Story([fell("x-0", second * 1_000_000) for second in range(500)]))[0]
    assert (len(busy.marks), busy.left_out) == (MOST_MARKS, 500 - MOST_MARKS)
    quiet = replace(fell("x-0", 1), kind="stop", fields={"clean": True})
    assert lanes_of(Story([quiet])) == []
    assert 'class="lanes"' not in page(NOTHING.with_story(Story([quiet])))


def test_a_drawing_of_one_entry_without_broker_time_or_offset_is_made(tmp_path: Path) -> None:
    (tmp_path / "paste.txt").write_text("WARN Truncating orders-0 to offset 3100 below high watermark 5800\n")
    drawing = lanes_of(story_of([tmp_path]))[0]
    assert [title for title, _ in drawing.lanes] == ["a broker"]
    assert drawing.clocks == []


def test_a_time_stands_below_the_axis_once() -> None:
    """Where it begins: two entries of one second, far apart on the axis, are of one label."""
    entries = [replace(fell("x-0", order), time="2026-01-01 00:00:07") for order in (0, 40_000_000, 80_000_000)]
    assert [clock for _, clock in lanes_of(Story(entries))[0].clocks] == ["00:00:07"]
