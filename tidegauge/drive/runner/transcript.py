"""What a node reported on a set of cases, as a small file: any profile or fault is compared with it without the node.

A file is gzipped lines of JSON: one that says whose it is, then a line per case. The same reports give the same bytes.
"""

import gzip
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from pathlib import Path as File
from typing import Any, ClassVar, Generic, NamedTuple

from tidegauge.drive.contract import Capabilities, CaseT, Report, Watch
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.reference_interface import Reference
from tidegauge.impl.profiles import Profile
from tidegauge.impl.releases import RELEASE, parse_release, profile_named
from tidegauge.util.errors import TidegaugeError, UsageError
from tidegauge.util.files import replacing
from tidegauge.util.input_limits import at_most, read_regular, unpacked


class TranscriptError(TidegaugeError):
    """A file that is no transcript."""


MOST_PACKED, MOST_BYTES = 32 << 20, 256 << 20
"""Bytes of a transcript: packed, and of its text. Those of 8,671 paths have 0.1 and 4 MB."""
RECORD = "tidegauge drive --record"
"""The command that writes a broker's transcript."""


class Recorded(NamedTuple, Generic[CaseT]):
    """One case and the reports on it: after its opening, then one per step, as far as it was played."""

    case: CaseT
    reports: tuple[Report, ...]


class Recorder(Generic[CaseT]):
    """Keeps what is reported, for a file. It is a watch of the player."""

    def __init__(self, cases: Sequence[CaseT]) -> None:
        self._cases = cases
        self._reports: dict[int, list[Report]] = {}

    def __call__(self, number: int, _at: int, seen: Report) -> bool:
        """Keep a report; the case goes on as the player decides."""
        self._reports.setdefault(number, []).append(seen)
        return True

    def recorded(self) -> tuple[Recorded[CaseT], ...]:
        """Return everything recorded, in the order of the cases."""
        return tuple(Recorded(self._cases[number], tuple(self._reports[number])) for number in sorted(self._reports))


class TranscriptNode(Generic[CaseT]):
    """A node that was driven once: it reports what it reported then. `profile` is the one whose paths they are; `fields` are
    those that it reports, in the order of its file.
    """

    def __init__(
        self, form: "TranscriptFormat[CaseT]", capabilities: Capabilities, profile: str, fields: tuple[str, ...] = ()
    ) -> None:
        self.format, self.capabilities, self.profile, self.fields = form, capabilities, profile, fields
        self._recorded: dict[CaseT, tuple[Report, ...]] = {}

    def add(self, recorded: Recorded[CaseT]) -> None:
        """Add what was reported on one case."""
        self._recorded[recorded.case] = recorded.reports

    @property
    def cases(self) -> tuple[CaseT, ...]:
        """What it was driven through."""
        return tuple(self._recorded)

    def recorded(self) -> tuple[Recorded[CaseT], ...]:
        """Return every case with its reports."""
        return tuple(Recorded(case, reports) for case, reports in self._recorded.items())

    def reports(self, case: CaseT) -> tuple[Report, ...]:
        """Return what was reported on a case: after its opening, then after each step as far as it was played."""
        return self._recorded[case]

    def play(self, cases: Sequence[CaseT], watch: Watch) -> None:
        """Play cases that it was driven through."""
        for number, case in enumerate(cases):
            for at, seen in enumerate(self._recorded[case]):
                if not watch(number, at, seen):
                    break


class TranscriptFormat(ABC, Generic[CaseT]):
    """The format of a contract's transcripts. `called` and `command` are for messages: what a file is, what writes one."""

    name: ClassVar[str]
    called: ClassVar[str]
    command: ClassVar[str]
    contract: ClassVar[int]
    head_separators: ClassVar[tuple[str, str] | None] = None
    """What stands between the values of the first line, if it is not what json.dumps writes."""

    @abstractmethod
    def reference(self, profile: Profile) -> Reference[CaseT, Any]:
        """Return the reference of the same contract."""

    @abstractmethod
    def head(self, capabilities: Capabilities, profile: str) -> dict[str, Any]:
        """Return the first line, besides format and version of the contract."""

    @abstractmethod
    def line(self, recorded: Recorded[CaseT], capabilities: Capabilities) -> Any:
        """Return a case and its reports as one line."""

    @abstractmethod
    def node(self, head: dict[str, Any]) -> TranscriptNode[CaseT]:
        """Return the node of a first line. Raises ValueError or KeyError for one that is wrong."""

    @abstractmethod
    def recorded(self, node: TranscriptNode[CaseT], line: Any) -> Recorded[CaseT]:
        """Return the case and its reports of a line. Raises ValueError or KeyError for one that is wrong."""

    def comparable(
        self, first: TranscriptNode[CaseT], second: TranscriptNode[CaseT]
    ) -> tuple[TranscriptNode[CaseT], Callable[[Difference[CaseT]], str]]:
        """Return the second as it is compared with the first, and what is told after the story of a difference."""
        del first
        return second, lambda _: ""


def write(
    place: File, form: TranscriptFormat[CaseT], capabilities: Capabilities, profile: str, recorded: Iterable[Recorded[CaseT]]
) -> None:
    """Write a transcript. `profile` is the one whose paths they are."""
    compact = partial(json.dumps, separators=(",", ":"))
    head = {"format": form.name, "contract": form.contract, **form.head(capabilities, profile)}
    lines = [
        json.dumps(head, separators=form.head_separators),
        *(compact(form.line(entry, capabilities)) for entry in recorded),
    ]
    with replacing(place) as beside:
        # Without a time in the gzip header the same reports give the same bytes.
        beside.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


def read(place: File, *formats: TranscriptFormat[Any]) -> TranscriptNode[Any]:
    """Read a transcript that is in one of these formats. Raises TranscriptError with the line that is wrong."""
    lines = _text(place, formats[0].command).splitlines()
    form = formats[0]
    if not lines:
        raise _wrong(place, 1, form, "nothing")
    node: TranscriptNode[Any] | None = None
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line)
            if node is None:
                form = next((known_format for known_format in formats if known_format.name == value["format"]), form)
                node = _node(form, value)
            else:
                node.add(form.recorded(node, value))
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as problem:
            raise _wrong(place, number, form, problem) from None
    assert node is not None
    return node


def _node(form: TranscriptFormat[Any], head: dict[str, Any]) -> TranscriptNode[Any]:
    # A later version of a contract has steps that mean something else.
    if (head["format"], head["contract"]) != (form.name, form.contract):
        raise ValueError(f"{head['format']} of contract {head['contract']}")
    return form.node(head)


class TranscriptParts(NamedTuple):
    """A transcript as its first line and the others: its format, whose it is, whose paths it has, the rest, the cases."""

    format: str
    name: str
    profile: str
    head: str
    recorded: str


def parts(place: File) -> TranscriptParts:
    """Read the head of a transcript of whatever format. Raises TranscriptError."""
    first, _, recorded = _text(place, RECORD).partition("\n")
    try:
        head = json.loads(first)
        form, name, profile = str(head.pop("format")), str(head.pop("name")), str(head.pop("profile"))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise TranscriptError(_expected(place, 1, "a transcript", 1, problem)) from None
    return TranscriptParts(form, name, profile, json.dumps(head, sort_keys=True), recorded)


def _text(place: File, command: str) -> str:
    try:
        return b"".join(at_most(MOST_BYTES, unpacked([read_regular(place, MOST_PACKED)]))).decode()
    except (OSError, EOFError, ValueError) as problem:
        # An OSError of the system repeats the path and adds a number; its reason alone is a sentence.
        seen = getattr(problem, "strerror", None) or problem
        raise TranscriptError(f"{place}: expected a gzipped transcript; seen {seen}; `{command}` writes one") from None


def _wrong(place: File, number: int, form: TranscriptFormat[Any], seen: object) -> TranscriptError:
    return TranscriptError(_expected(place, number, form.called, form.contract, seen))


def _expected(place: File, number: int, called: str, contract: int, seen: object) -> str:
    return f"{place}:{number}: expected a line of {called} of contract {contract}; seen {seen!r}; record it again"


# The shipped transcripts: one of an unmodified Kafka broker and one of a controller per release.


FOLDER = Path(__file__).resolve().parent.parent / "transcripts"

BROKER, CONTROLLER = "kafka", "controller"
"""The kinds of transcripts: what the names of their files begin with."""


def place_of(release: str, folder: Path = FOLDER, kind: str = BROKER) -> Path:
    """Return the file of a release's transcript."""
    return folder / f"{kind}-{release}.gz"


def place_named(name: str, kind: str) -> Path:
    """Return the file `name`, or the transcript of the release `name`. Raises UsageError with the releases there are."""
    if Path(name).is_file():
        return Path(name)
    there = releases(kind=kind)
    if name not in there:
        raise UsageError(
            f"compare: expected a transcript, or a release of {', '.join(there)}; seen {name!r}; choose one of those"
        )
    return place_of(name, kind=kind)


def release_of(node: TranscriptNode[CaseT]) -> str:
    """Return the release whose transcript it is."""
    return node.profile.removeprefix(RELEASE)


def profile_of(node: TranscriptNode[CaseT]) -> Profile:
    """Return the profile of that release, from which the paths were made."""
    return profile_named(node.profile)


def releases(folder: Path = FOLDER, kind: str = BROKER) -> list[str]:
    """Return the releases whose transcripts a folder has, oldest first."""
    names = (place.name.removeprefix(f"{kind}-").removesuffix(".gz") for place in folder.glob(f"{kind}-*.gz"))
    return sorted(names, key=parse_release)


def places(folder: Path = FOLDER, kind: str = BROKER) -> list[Path]:
    """Return the files of all transcripts in a folder, oldest release first."""
    return [place_of(release, folder, kind) for release in releases(folder, kind)]
