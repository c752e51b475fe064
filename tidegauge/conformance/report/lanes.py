"""What happened to a partition as a drawing: an axis of time, a lane per broker, the logs by offset where lines tell them.

Rules of this file

1. An entry of the story is a mark in the lane of its broker; elections stand in the lane of the controller. Marks are in
   order; long times without any are shortened, so that a second and a day fit on one axis.
2. A bar is a log, up to its end; what a truncation removed is another colour, a line across is the high watermark.
3. Partitions and marks are bounded: the text below a drawing counts those that it leaves out.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidegauge.story.sentences import MOST_PARTITIONS, entry_sentence, eventful_partitions
from tidegauge.story.state import SECOND, StoryEntry
from tidegauge.story.story import Story, happened

MOST_MARKS = 40
LEFT, LANE, AXIS, WORDS = 88, 74, 26, 84
"""Pixels: of the names of lanes, the height of a lane, of the axis, and the width of a mark's words."""
APART, HIGHEST = 26, 34
"""Pixels between marks of different lanes, and of the longest bar."""
CONTROLLER, UNNAMED = "controller", "a broker"
AROUND = 60 * SECOND
"""A start or a stop so long before the first entry of a partition, or after its last, is drawn with it."""
_CLOCK = re.compile(r"\d\d:\d\d(?::\d\d)?")
_OF_A_PROCESS = ("start", "stop", "directory_failed", "replica_lost", "process_failed")


class LaneMark(NamedTuple):
    """An entry in a drawing. `top`, `removed_top` and `staff` are heights above the lane's base; None: not known."""

    x: float
    base: int
    words: str
    title: str
    css_class: str
    epoch: int | None
    top: float | None
    removed_top: float | None
    staff: float | None
    number: str


@dataclass(frozen=True)
class Lanes:
    """The drawing of a partition."""

    partition: str
    width: int
    height: int
    lanes: Sequence[tuple[str, int]]
    marks: Sequence[LaneMark]
    clocks: Sequence[tuple[float, str]]
    left_out: int


def lanes_of(story: Story) -> list[Lanes]:
    """Return a drawing for each partition that had something happen, those with losses first, as the sentences are."""
    processes = [entry for entry in story.entries if entry.partition is None and entry.kind in _OF_A_PROCESS]
    of_partitions = story.of_partitions()
    return [_drawing(name, of_partitions[name], processes) for name, _ in eventful_partitions(story)[:MOST_PARTITIONS]]


def _drawing(name: str, entries: Sequence[StoryEntry], processes: Sequence[StoryEntry]) -> Lanes:
    nodes = {entry.node for entry in entries}
    begin, end = entries[0].order - AROUND, entries[-1].order + AROUND
    others = [entry for entry in processes if entry.node in nodes and begin <= entry.order <= end]
    everything = sorted([*entries, *others], key=lambda entry: entry.order)
    # Of what was before, the last of each broker shows where its log was; what is more than a restart has room first.
    first = next((at for at, entry in enumerate(everything) if happened(entry)), 0)
    last = {_lane(entry): at for at, entry in enumerate(everything[:first]) if entry.partition is not None}
    ranked = sorted([*last.values(), *range(first, len(everything))], key=lambda at: (not happened(everything[at]), at))
    shown = [everything[at] for at in sorted(ranked[:MOST_MARKS])]
    titles = sorted({_lane(entry) for entry in shown}, key=lambda title: (title != CONTROLLER, title == UNNAMED, _id(title)))
    bases = {title: LANE * (at + 1) - 18 for at, title in enumerate(titles)}
    offsets = [offset for entry in shown for offset in _offsets(entry) if offset is not None]
    low, high = min(offsets, default=0), max(offsets, default=0)

    def height(offset: int | None) -> float | None:
        return None if offset is None else round(5 + (HIGHEST - 5) * ((offset - low) / (high - low) if high > low else 1), 1)

    marks = []
    for x, entry in zip(_columns(shown), shown, strict=True):
        log_end, removed, watermark = _offsets(entry)
        marks.append(
            LaneMark(
                x,
                bases[_lane(entry)],
                _words(entry),
                entry_sentence(entry),
                "bad" if _is_bad(entry) else entry.kind,
                entry.fields.get("leader_epoch") if entry.kind in ("leader", "follower") else None,
                height(log_end),
                height(removed),
                height(watermark),
                "" if log_end is None else f"{log_end:,}" if removed is None else f"{removed:,} to {log_end:,}",
            )
        )
    width = math.ceil(marks[-1].x) + WORDS
    lanes = [(title, bases[title]) for title in titles]
    return Lanes(
        name, width, LANE * len(titles) + AXIS, lanes, marks, list(_clocks(marks, shown)), len(everything) - len(shown)
    )


def _lane(entry: StoryEntry) -> str:
    return CONTROLLER if entry.kind == "elected" else UNNAMED if entry.node is None else f"broker {entry.node}"


def _id(title: str) -> int:
    return int(number[0]) if (number := re.search(r"\d+", title)) else 0


def _columns(entries: Sequence[StoryEntry]) -> Iterator[float]:
    """Yield where each mark stands: words do not lie on those of the same lane, and long gaps are wider, by a logarithm."""
    x, ends, before = float(LEFT), dict[str, float](), entries[0].order
    for entry in entries:
        gap = max(0, entry.order - before) / SECOND
        x = max(x + (APART + 8 * math.log1p(gap) if ends else 0), ends.get(_lane(entry), 0.0))
        before, ends[_lane(entry)] = entry.order, x + WORDS
        yield round(x, 1)


def _clocks(marks: Sequence[LaneMark], entries: Sequence[StoryEntry]) -> Iterator[tuple[float, str]]:
    """Yield the times below the axis, each where it begins, as far as there is room."""
    free, shown = 0.0, ""
    for mark, entry in zip(marks, entries, strict=True):
        clock = _CLOCK.search(entry.time)
        if clock is not None and mark.x >= free and clock[0] != shown:
            yield mark.x, clock[0]
            free, shown = mark.x + 66, clock[0]


def _offsets(entry: StoryEntry) -> tuple[int | None, int | None, int | None]:
    """Return the end of a replica's log after an entry, before it if it was truncated, and the high watermark."""
    fields = entry.fields
    if entry.kind == "truncated":
        removed = fields["from"] if fields["relation"] != "no effect" else None
        return fields["to"], removed, fields["high_watermark"]
    if entry.kind in ("leader", "follower"):
        return fields["offset"], None, fields["high_watermark"]
    return (fields["log_end"], None, fields["high_watermark"]) if entry.kind == "loaded" else (None, None, None)


def _is_bad(entry: StoryEntry) -> bool:
    fields = entry.fields
    bad: Mapping[str, Callable[[], bool]] = {
        "elected": lambda: fields["clean"] is False or fields["leader"] < 0,
        "truncated": lambda: fields["relation"] == "below",
        "start": lambda: fields["clean"] is False,
        "isr_changed": lambda: fields["accepted"] is False,
    }
    quiet = ("leader", "follower", "loaded", "stop")
    return bad[entry.kind]() if entry.kind in bad else entry.kind not in quiet


def _words(entry: StoryEntry) -> str:
    """Say in a word or two what a mark is."""
    fields = entry.fields
    epoch = fields.get("leader_epoch")
    says: Mapping[str, Callable[[], str]] = {
        "leader": lambda: f"leads {epoch}",
        "follower": lambda: f"follows {epoch}",
        "loaded": lambda: "loads",
        "start": lambda: "starts",
        "stop": lambda: "stops",
        "elected": lambda: "no leader" if fields["leader"] < 0 else f"elects {fields['leader']}",
        "truncated": lambda: "truncates" if fields["relation"] != "no effect" else "keeps all",
        "high_watermark_fell": lambda: "HW falls",
        "isr_changed": lambda: f"ISR {','.join(map(str, fields['to']))}" if fields["to"] else "ISR",
        "fetcher_failed": lambda: "fetch fails",
        "append_refused": lambda: "refuses",
        "reset": lambda: "out of range",
        "epoch_refused": lambda: "epoch refused",
        "fetch_refused": lambda: "no answer",
        "produce_refused": lambda: "takes nothing",
        "no_other_leader": lambda: "no other",
        "session_expired": lambda: "session lost",
        "directory_failed": lambda: "disk fails",
        "replica_lost": lambda: "disk lost",
        "process_failed": lambda: "fails",
        "segments_missing": lambda: "segments gone",
        "records_deleted": lambda: "deletes",
        "epochs_conflict": lambda: "epochs mixed",
        "topic_id_mismatch": lambda: "other topic id",
    }
    return says[entry.kind]()[:14] if entry.kind in says else entry.kind
