"""The story of the INFO lines of a shipped capture agrees with what the judge's trace of the whole capture knows."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest

from tidegauge.story.sentences import headline
from tidegauge.story.state import StoryEntry
from tidegauge.story.story import Story, story_of
from tidegauge.traces.kafka_logs import Capture, read
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.schema import Event

NAMES = (
    "3.4.0/b-kill-leader",
    "3.9.1/m-lost-disk",
    "4.1.1/m-lost-disk",
    "4.2.0/d-unclean",
    "4.2.0/k-epoch-jump",
    "4.3.1/l-ghost-elr",
)

Said = Mapping[str, Any]
AGREEMENT: Mapping[tuple[str, str], Callable[[Event, Said], list[tuple[Any, Any]]]] = {
    ("BecomeLeader", "leader"): lambda event, said: [
        (event.fields["leader_epoch"], said["leader_epoch"]),
        (event.fields["leo"], said["offset"]),
        (event.fields["hw_before"], said["high_watermark"]),
    ],
    ("BecomeFollower", "follower"): lambda event, said: [
        (event.fields["leader_epoch"], said["leader_epoch"]),
        (event.fields["leo"], said["offset"]),
        (event.fields["hw"], said["high_watermark"]),
        (event.fields.get("leader"), None if said["leader"] == -1 else said["leader"]),
    ],
    ("HandleDivergingResponse", "truncated"): lambda event, said: [
        (event.fields["leo"], said["to"]),
        (event.fields["leo_before"], said["from"]),
    ],
    ("TruncateToHighWatermark", "truncated"): lambda event, said: [(event.fields["target"], said["to"])],
    ("Start", "loaded"): lambda event, said: [
        (event.fields["leo"], said["log_end"]),
        (event.fields["hw"], said["high_watermark"]),
    ],
    ("ChangePartition", "elected"): lambda event, said: [
        (event.fields["leader_epoch"], said["leader_epoch"]),
        (event.fields["leader"] if event.fields["leader"] is not None else -1, said["leader"]),
        (sorted(event.fields["isr"]), sorted(said["isr"])),
        (event.fields["clean"], event.fields["clean"] if said["clean"] is None else said["clean"]),
    ],
}
"""An event of the trace and an entry of the story from the same line: what they say, in pairs."""


@cache
def _capture_and_story(name: str) -> tuple[Capture, Story]:
    return read(shipped()[name]), story_of([shipped()[name]])


def disagreements(event: Event, entry: StoryEntry) -> list[str]:
    """Where the two of one line differ."""
    pairs = AGREEMENT[event.event, entry.kind](event, entry.fields)
    return [f"{event.event} {event.at}: {known} in the trace, {said} in the story" for known, said in pairs if known != said]


@pytest.mark.parametrize("name", NAMES)
def test_the_story_agrees_with_the_trace(name: str) -> None:
    capture, story = _capture_and_story(name)
    by_line = {(source, entry.partition): entry for entry in story.entries for source in entry.sources}
    compared, differ = 0, []
    for trace in capture.traces:
        for event in trace.events:
            entry = by_line.get((event.at or "", trace.tp))
            if entry is not None and (event.event, entry.kind) in AGREEMENT:
                compared += 1
                differ += disagreements(event, entry)
                assert entry.node == event.node
    assert differ == []
    assert compared > 10


def test_a_pass_over_a_loss_begins_with_the_loss() -> None:
    for name, first in (
        (
            "4.2.0/d-unclean",
            "Data was lost: 33 committed records of alpha-0 (40 to 72), from broker 1, by an unclean election",
        ),
        ("4.1.1/m-lost-disk", "Data was lost: 50 committed records of alpha-0 (0 to 49), from brokers 2, 3, because a disk"),
        ("3.9.1/m-lost-disk", "Data was lost: 50 committed records of alpha-0 (0 to 49)"),
    ):
        assert headline(_capture_and_story(name)[1], judged=True)[0].startswith(first)


def test_a_healthy_capture_has_nothing_to_tell() -> None:
    story = story_of([shipped()["4.2.0/a-steady"]])
    assert story.losses == []
    assert story.bugs == []


def test_the_comparison_can_fail() -> None:
    capture, story = _capture_and_story("4.2.0/d-unclean")
    by_line = {entry.sources[0]: entry for entry in story.entries if entry.kind == "leader"}
    event = next(
        event for trace in capture.traces for event in trace.events if event.event == "BecomeLeader" and event.at in by_line
    )
    entry = by_line[str(event.at)]
    other = StoryEntry(
        entry.kind, entry.partition, entry.node, entry.time, entry.sources, entry.order, {**entry.fields, "offset": -5}
    )
    assert disagreements(event, entry) == []
    assert len(disagreements(event, other)) == 1
