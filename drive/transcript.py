"""What a broker reported on a set of paths, as a small file: any profile or fault is held against it without the broker.

Rules of this file

1. A gzipped line of JSON that says whose it is, then a line per path: its opening, its steps, what was reported after each.
   Reports are lists in the order of the header's fields, "?" for one that is not known; a later header version is refused.
2. The same reports give the same bytes.
"""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path as File
from typing import Any, NamedTuple

from tidegauge.drive.contract import (
    REPORTED,
    VERSION,
    Capabilities,
    Opening,
    Order,
    Report,
    Watch,
    frozen,
    is_integers,
    is_step,
)
from tidegauge.impl.errors import TidegaugeError
from tidegauge.traces.files.replacing import replacing

FORMAT = "tidegauge transcript"
UNKNOWN = "?"


class TranscriptError(TidegaugeError):
    """A file that is no transcript."""


class Recorded(NamedTuple):
    """One order and the reports it got: that of the opening, then one per step, as far as it was played."""

    order: Order
    reports: tuple[Report, ...]


class Recorder:
    """Keeps what a broker reports, for a file."""

    def __init__(self, orders: Sequence[Order]) -> None:
        self._orders = orders
        self._reports: dict[int, list[Report]] = {}

    def __call__(self, number: int, _at: int, seen: Report) -> bool:
        """As a watch of the player."""
        self._reports.setdefault(number, []).append(seen)
        return True

    def recorded(self) -> tuple[Recorded, ...]:
        """Everything recorded, in the order of the orders."""
        return tuple(Recorded(self._orders[number], tuple(self._reports[number])) for number in sorted(self._reports))


def write(place: File, capabilities: Capabilities, profile: str, recorded: Sequence[Recorded]) -> None:
    """Write a transcript. `profile` is the one whose paths they are."""
    fields = [field for field in REPORTED if field in capabilities.reports]
    head = {
        "format": FORMAT,
        "contract": VERSION,
        "name": capabilities.name,
        "profile": profile,
        "can": sorted(capabilities.can),
        "reports": fields,
    }
    lines = [json.dumps(head)]
    for order, reports in recorded:
        reported = [[seen.get(field, UNKNOWN) for field in fields] for seen in reports]
        lines.append(json.dumps([[*order.opening], order.path[: len(reports) - 1], reported], separators=(",", ":")))
    with replacing(place) as beside:
        beside.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n", mtime=0))


class TranscriptNode:
    """A broker that was driven once: it reports what it reported then."""

    def __init__(self, capabilities: Capabilities, profile: str, fields: tuple[str, ...]) -> None:
        self.capabilities, self.profile, self.fields = capabilities, profile, fields
        self._recorded: dict[Order, tuple[Report, ...]] = {}

    def add(self, recorded: Recorded) -> None:
        """One path more."""
        self._recorded[recorded.order] = recorded.reports

    @property
    def orders(self) -> tuple[Order, ...]:
        """What it was driven through."""
        return tuple(self._recorded)

    def recorded(self) -> tuple[Recorded, ...]:
        """Everything it did."""
        return tuple(Recorded(*one) for one in self._recorded.items())

    def reports(self, order: Order) -> tuple[Report, ...]:
        """What it reported on a path: after its opening, then after each step as far as it was played."""
        return self._recorded[order]

    def play(self, orders: Sequence[Order], watch: Watch) -> None:
        """Only orders that it was driven through."""
        for number, order in enumerate(orders):
            for at, seen in enumerate(self._recorded[order]):
                if not watch(number, at, seen):
                    break


def read(place: File) -> TranscriptNode:
    """A transcript from a file. Raises TranscriptError with the line that is wrong."""
    try:
        text = gzip.decompress(place.read_bytes()).decode()
    except (OSError, EOFError, ValueError) as problem:
        raise TranscriptError(
            f"{place}: expected a gzipped transcript; seen {problem}; `tidegauge drive --record` writes one"
        ) from None
    node = None
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            found = json.loads(line)
            if node is None:
                node = _headed(found)
            else:
                node.add(_recorded(found, node.fields))
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as problem:
            raise _wrong(place, number, problem) from None
    if node is None:
        raise _wrong(place, 1, "nothing")
    return node


def _wrong(place: File, number: int, seen: object) -> TranscriptError:
    return TranscriptError(
        f"{place}:{number}: expected a line of a transcript of contract {VERSION}; seen {seen!r}; record it again"
    )


def _headed(found: dict[str, Any]) -> TranscriptNode:
    if (found["format"], found["contract"]) != (FORMAT, VERSION):
        raise ValueError(f"{found['format']} of contract {found['contract']}")
    can, fields = frozenset(map(str, found["can"])), tuple(map(str, found["reports"]))
    return TranscriptNode(Capabilities(str(found["name"]), can, frozenset(fields)), str(found["profile"]), fields)


def _recorded(found: Any, fields: tuple[str, ...]) -> Recorded:
    opening, path, reported = found
    order = Order(Opening(*frozen(opening)), frozen(path))
    if not all(map(is_step, order.path)) or not is_integers(order.opening.peers):
        raise ValueError("a step that the contract does not have")
    if len(reported) > len(order.path) + 1:
        raise ValueError("more reports than steps")
    return Recorded(order, tuple(_report(fields, values) for values in reported))


def _report(fields: tuple[str, ...], values: Any) -> Report:
    return {field: value for field, value in zip(fields, values, strict=True) if value != UNKNOWN}
