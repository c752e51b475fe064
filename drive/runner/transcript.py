"""What was reported on paths, and the file that keeps it, of a broker or of a controller.

Rules of this file

1. A file is gzipped lines of JSON: one that says whose it is, then a line per path.
2. The same reports give the same bytes.
"""

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path as File
from typing import Any, Generic, NamedTuple, TypeVar

from tidegauge.drive.contract import CaseT, Report, Watch
from tidegauge.impl.errors import TidegaugeError
from tidegauge.traces.files.replacing import replacing


class TranscriptError(TidegaugeError):
    """A file that is no transcript."""


RECORD = "tidegauge drive --record"
"""What writes one."""


class Recorded(NamedTuple, Generic[CaseT]):
    """One order and the reports it got: that of the opening, then one per step, as far as it was played."""

    case: CaseT
    reports: tuple[Report, ...]


class Recorder(Generic[CaseT]):
    """Keeps what is reported, for a file."""

    def __init__(self, cases: Sequence[CaseT]) -> None:
        self._orders = cases
        self._reports: dict[int, list[Report]] = {}

    def __call__(self, number: int, _at: int, seen: Report) -> bool:
        """As a watch of the player."""
        self._reports.setdefault(number, []).append(seen)
        return True

    def recorded(self) -> tuple[Recorded[CaseT], ...]:
        """Everything recorded, in the order of the orders."""
        return tuple(Recorded(self._orders[number], tuple(self._reports[number])) for number in sorted(self._reports))


class RecordedNode(Generic[CaseT]):
    """Who was driven once: reports what was reported then. `profile` is the one whose paths they are."""

    def __init__(self, profile: str) -> None:
        self.profile = profile
        self._recorded: dict[CaseT, tuple[Report, ...]] = {}

    def add(self, recorded: Recorded[CaseT]) -> None:
        """One path more."""
        self._recorded[recorded.case] = recorded.reports

    @property
    def cases(self) -> tuple[CaseT, ...]:
        """What it was driven through."""
        return tuple(self._recorded)

    def recorded(self) -> tuple[Recorded[CaseT], ...]:
        """Everything it did."""
        return tuple(Recorded(*one) for one in self._recorded.items())

    def reports(self, case: CaseT) -> tuple[Report, ...]:
        """What was reported on a path: after its opening, then after each step as far as it was played."""
        return self._recorded[case]

    def play(self, cases: Sequence[CaseT], watch: Watch) -> None:
        """Only orders that it was driven through."""
        for number, case in enumerate(cases):
            for at, seen in enumerate(self._recorded[case]):
                if not watch(number, at, seen):
                    break


NodeT = TypeVar("NodeT", bound=RecordedNode[Any])


class Kind(NamedTuple):
    """What a file is called, the major version of its contract, and the command that writes one."""

    called: str
    contract: int
    command: str


def write(place: File, lines: Iterable[str]) -> None:
    """Write the lines of a transcript."""
    with replacing(place) as beside:
        beside.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


class Parted(NamedTuple):
    """A transcript as its first line and the others: of what kind it is, whose it is, whose paths it has, what else is said
    of it, the paths.
    """

    format: str
    name: str
    profile: str
    head: str
    recorded: str


def parted(place: File) -> Parted:
    """Of a broker or of a controller. Raises TranscriptError."""
    first, _, recorded = _text(place, RECORD).partition("\n")
    try:
        head = json.loads(first)
        kind, name, profile = str(head.pop("format")), str(head.pop("name")), str(head.pop("profile"))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise _wrong(place, 1, Kind("a transcript", 1, RECORD), problem) from None
    return Parted(kind, name, profile, json.dumps(head, sort_keys=True), recorded)


def _text(place: File, command: str) -> str:
    try:
        return gzip.decompress(place.read_bytes()).decode()
    except (OSError, EOFError, ValueError) as problem:
        raise TranscriptError(f"{place}: expected a gzipped transcript; seen {problem}; `{command}` writes one") from None


def read(place: File, kind: Kind, headed: Callable[[Any], NodeT], recorded: Callable[[NodeT, Any], Recorded[Any]]) -> NodeT:
    """What the first line makes, with each other line added. Raises TranscriptError with the line that is wrong."""
    node = None
    for number, line in enumerate(_text(place, kind.command).splitlines(), start=1):
        try:
            found = json.loads(line)
            if node is None:
                node = headed(found)
            else:
                node.add(recorded(node, found))
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as problem:
            raise _wrong(place, number, kind, problem) from None
    if node is None:
        raise _wrong(place, 1, kind, "nothing")
    return node


def _wrong(place: File, number: int, kind: Kind, seen: object) -> TranscriptError:
    return TranscriptError(
        f"{place}:{number}: expected a line of {kind.called} of contract {kind.contract}; seen {seen!r}; record it again"
    )
