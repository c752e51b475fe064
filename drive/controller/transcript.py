"""What a controller reported on a set of paths, as a small file: any profile is held against it without the controller.

Rules of this file

1. A gzipped line of JSON that says whose it is, then a line per path: its name, its opening, its steps, and what was
   reported after each, as far as it is not what was reported before.
2. The same reports give the same bytes.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path as File
from typing import Any

from tidegauge.drive.contract import Report, Watch, frozen, is_integers
from tidegauge.drive.controller.contract import REPORTED, VERSION, Opening, Order, is_step
from tidegauge.drive.transcript import TranscriptError
from tidegauge.traces.files.replacing import replacing

FORMAT = "tidegauge controller transcript"


class Recorder:
    """Keeps what a controller reports, for a file."""

    def __init__(self, orders: Sequence[Order]) -> None:
        self._orders = orders
        self._reports: dict[int, list[Report]] = {}

    def __call__(self, number: int, _at: int, seen: Report) -> bool:
        """As a watch of the player."""
        self._reports.setdefault(number, []).append(seen)
        return True

    def recorded(self) -> dict[Order, tuple[Report, ...]]:
        """The reports of each order: that of the opening, then one per step, as far as it was played."""
        return {self._orders[number]: tuple(reports) for number, reports in sorted(self._reports.items())}


class TranscriptNode:
    """A controller that was driven once: it reports what it reported then. `profile` is the one whose paths they are."""

    def __init__(self, name: str, profile: str, recorded: Mapping[Order, tuple[Report, ...]]) -> None:
        self.name, self.profile, self._recorded = name, profile, recorded

    @property
    def orders(self) -> tuple[Order, ...]:
        """What it was driven through."""
        return tuple(self._recorded)

    def play(self, orders: Sequence[Order], watch: Watch) -> None:
        """Only orders that it was driven through."""
        for number, order in enumerate(orders):
            for at, seen in enumerate(self._recorded[order]):
                if not watch(number, at, seen):
                    break


def write(place: File, name: str, profile: str, recorded: Mapping[Order, tuple[Report, ...]]) -> None:
    """Write a transcript."""
    lines: list[Any] = [{"format": FORMAT, "contract": VERSION, "name": name, "profile": profile}]
    for order, reports in recorded.items():
        news = [_news(before, seen) for before, seen in zip(({}, *reports), reports, strict=False)]
        lines.append([order.name, [*order.opening], order.path[: len(reports) - 1], news])
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    with replacing(place) as beside:
        beside.write_bytes(gzip.compress(text.encode(), mtime=0))


def _news(before: Report, seen: Report) -> dict[str, Any]:
    return {field: seen[field] for field in REPORTED if field not in before or before[field] != seen[field]}


def is_transcript(place: File) -> bool:
    """Whether a file says that it is one of a controller's."""
    try:
        with gzip.open(place, "rt", encoding="utf-8") as lines:
            head = json.loads(next(lines))
    except (OSError, EOFError, ValueError, StopIteration):
        return False
    return isinstance(head, dict) and head.get("format") == FORMAT


def read(place: File) -> TranscriptNode:
    """A transcript from a file. Raises TranscriptError with the line that is wrong."""
    try:
        text = gzip.decompress(place.read_bytes()).decode()
    except (OSError, EOFError, ValueError) as problem:
        raise TranscriptError(
            f"{place}: expected a gzipped transcript; seen {problem}; `tidegauge drive --controller --record` writes one"
        ) from None
    head: dict[str, Any] = {}
    recorded: dict[Order, tuple[Report, ...]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            found = json.loads(line)
            if head:
                order, reports = _recorded(found)
                recorded[order] = reports
            else:
                head = _head(found)
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as problem:
            raise TranscriptError(
                f"{place}:{number}: expected a line of a controller's transcript of contract {VERSION}; seen {problem!r}; "
                "record it again"
            ) from None
    if not head:
        raise TranscriptError(f"{place}: expected a controller's transcript; seen nothing; record it again")
    return TranscriptNode(str(head["name"]), str(head["profile"]), recorded)


def _head(found: Any) -> dict[str, Any]:
    if (found["format"], found["contract"]) != (FORMAT, VERSION) or not found["profile"]:
        raise ValueError(f"{found['format']} of contract {found['contract']}")
    return dict(found)


def _recorded(found: Any) -> tuple[Order, tuple[Report, ...]]:
    name, opening, path, news = found
    order = Order(Opening(*opening), frozen(path), str(name))
    if not all(map(is_step, order.path)) or not is_integers(opening, 3):
        raise ValueError("a step that the contract does not have")
    if not 1 <= len(news) == len(path) + 1:
        raise ValueError("as many reports as steps, and one")
    reports: list[Report] = []
    for new in news:
        reports.append({**(reports[-1] if reports else {}), **new})
        if reports[-1].keys() != REPORTED.keys():
            raise ValueError(f"a report of {sorted(reports[-1])}")
    return order, tuple(reports)
