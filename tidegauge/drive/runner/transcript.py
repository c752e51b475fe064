"""Transcripts: what a node reported on a set of cases, as a small file. It is compared with any profile without the node.

A file is gzipped lines of JSON: the head (format, version of the contract, name of the node, profile, and what the format
adds), then a line per case with its reports. The same reports give the same bytes. The contract of a broker and that of a
controller each have a format (`TranscriptFormat`). Transcripts of Kafka's releases are shipped with the package.
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
    """Keeps every report of a play, for a file. It is called as a `Watch`: give it to the player as `record`."""

    def __init__(self, cases: Sequence[CaseT]) -> None:
        self._cases = cases
        self._reports: dict[int, list[Report]] = {}

    def __call__(self, number: int, _at: int, report: Report) -> bool:
        """Keep a report on a case, which come in the order of its steps. The player ignores what is returned."""
        self._reports.setdefault(number, []).append(report)
        return True

    def recorded(self) -> tuple[Recorded[CaseT], ...]:
        """Return every case that has a report with its reports, in the order of the cases."""
        return tuple(Recorded(self._cases[number], tuple(self._reports[number])) for number in sorted(self._reports))


class TranscriptNode(Generic[CaseT]):
    """A transcript as a node: it reports again what the recorded node reported.

    `profile` names the profile that the paths were made for; `fields` are those of the reports, in the order of the file.
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
        """The cases that were recorded."""
        return tuple(self._recorded)

    def recorded(self) -> tuple[Recorded[CaseT], ...]:
        """Return every case with its reports."""
        return tuple(Recorded(case, reports) for case, reports in self._recorded.items())

    def reports(self, case: CaseT) -> tuple[Report, ...]:
        """Return what was reported on a case: after its opening, then after each step as far as it was played."""
        return self._recorded[case]

    def play(self, cases: Sequence[CaseT], watch: Watch) -> None:
        """Call `watch` with the recorded reports on each case, until it returns False (see Node). Each must be recorded."""
        for number, case in enumerate(cases):
            for at, report in enumerate(self._recorded[case]):
                if not watch(number, at, report):
                    break


class TranscriptFormat(ABC, Generic[CaseT]):
    """The format of a contract's transcripts. `called` and `command` are for messages: what a file is, what writes one."""

    name: ClassVar[str]
    called: ClassVar[str]
    command: ClassVar[str]
    contract: ClassVar[int]
    head_separators: ClassVar[tuple[str, str] | None] = None
    """The separators of json.dumps for the first line; None for its usual ones."""

    @abstractmethod
    def reference(self, profile: Profile) -> Reference[CaseT, Any]:
        """Return the reference of the same contract."""

    @abstractmethod
    def head(self, capabilities: Capabilities, profile: str) -> dict[str, Any]:
        """Return the values of the head except the format and the version of the contract, as JSON."""

    @abstractmethod
    def line(self, recorded: Recorded[CaseT], capabilities: Capabilities) -> Any:
        """Return a case and its reports as the JSON value of one line. `capabilities` are those of the node."""

    @abstractmethod
    def node(self, head: dict[str, Any]) -> TranscriptNode[CaseT]:
        """Return a node without cases from a head. Raises ValueError or KeyError if it is wrong."""

    @abstractmethod
    def recorded(self, node: TranscriptNode[CaseT], line: Any) -> Recorded[CaseT]:
        """Read a case and its reports from the JSON value of a line. Raises ValueError or KeyError if it is wrong.

        `node` is that of the head, which says what the columns of the line are.
        """

    def comparable(
        self, first: TranscriptNode[CaseT], second: TranscriptNode[CaseT]
    ) -> tuple[TranscriptNode[CaseT], Callable[[Difference[CaseT]], str]]:
        """Return the second transcript made comparable with the first, and a function for notes on differences.

        That function gets a difference of the two and returns what is written after its text, "" for nothing.
        """
        del first
        return second, lambda _: ""


def write(
    place: File, form: TranscriptFormat[CaseT], capabilities: Capabilities, profile: str, recorded: Iterable[Recorded[CaseT]]
) -> None:
    """Write a transcript to a file. `profile` names the profile that the paths were made for."""
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
    """Read a transcript that is in one of these formats. Raises TranscriptError with the line that is wrong.

    If the first line names none of them, the message asks for the first format.
    """
    # The format of the file, as soon as its first line has said it.
    form = formats[0]
    lines = _text(place, form.command).splitlines()
    if not lines:
        raise _wrong(place, 1, form, "nothing")
    node: TranscriptNode[Any] | None = None
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line)
            # The first line is the head, and tells how the others are read.
            if node is None:
                form = next((candidate for candidate in formats if candidate.name == value["format"]), form)
                node = _node(form, value)
            else:
                node.add(form.recorded(node, value))
        # A file from somewhere else may have any JSON where a format expects a list or an object.
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as problem:
            raise _wrong(place, number, form, problem) from None
    assert node is not None
    return node


def _node(form: TranscriptFormat[Any], head: dict[str, Any]) -> TranscriptNode[Any]:
    """Return a node without cases from a head. Raises ValueError for another format or another version of its contract."""
    # In another version of a contract a step may mean something else.
    if (head["format"], head["contract"]) != (form.name, form.contract):
        raise ValueError(f"{head['format']} of contract {head['contract']}")
    return form.node(head)


class TranscriptParts(NamedTuple):
    """A transcript whose cases are not read: three values of its head, the other values as JSON, the other lines as text."""

    format: str
    name: str
    profile: str
    head: str
    recorded: str


def parts(place: File) -> TranscriptParts:
    """Split a transcript of any format into its parts; only the head is read. Raises TranscriptError if that is wrong."""
    first, _, recorded = _text(place, RECORD).partition("\n")
    try:
        head = json.loads(first)
        form, name, profile = str(head.pop("format")), str(head.pop("name")), str(head.pop("profile"))
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise TranscriptError(_expected(place, 1, "a transcript", 1, problem)) from None
    return TranscriptParts(form, name, profile, json.dumps(head, sort_keys=True), recorded)


def _text(place: File, command: str) -> str:
    """Read and unpack a file, up to a limit. Raises TranscriptError, which names the command that writes such a file."""
    try:
        return b"".join(at_most(MOST_BYTES, unpacked([read_regular(place, MOST_PACKED)]))).decode()
    except (OSError, EOFError, ValueError) as problem:
        # An OSError of the system repeats the path and adds a number; its reason alone is a sentence.
        seen = getattr(problem, "strerror", None) or problem
        raise TranscriptError(f"{place}: expected a gzipped transcript; seen {seen}; `{command}` writes one") from None


def _wrong(place: File, number: int, form: TranscriptFormat[Any], seen: object) -> TranscriptError:
    """Return the error for a line that is none of this format. `seen`: what it is instead, or the exception."""
    return TranscriptError(_expected(place, number, form.called, form.contract, seen))


def _expected(place: File, number: int, called: str, contract: int, seen: object) -> str:
    """Return the message on a wrong line. `called`: what such a file is called; `seen`: what is there, or the exception."""
    return f"{place}:{number}: expected a line of {called} of contract {contract}; seen {seen!r}; record it again"


# The shipped transcripts: one of an unmodified Kafka broker and one of a controller per release.


FOLDER = Path(__file__).resolve().parent.parent / "transcripts"

BROKER, CONTROLLER = "kafka", "controller"
"""The kinds of transcripts: what the names of their files begin with."""


def place_of(release: str, folder: Path = FOLDER, kind: str = BROKER) -> Path:
    """Return the path of a release's transcript in a folder. `kind` is BROKER or CONTROLLER."""
    return folder / f"{kind}-{release}.gz"


def place_named(name: str, kind: str) -> Path:
    """Return the path of a transcript that is named on the command line: by a file, or by a release whose one is shipped.

    Raises UsageError with the names of the shipped releases for anything else.
    """
    if Path(name).is_file():
        return Path(name)
    shipped = releases(kind=kind)
    if name not in shipped:
        raise UsageError(
            f"compare: expected a transcript, or a release of {', '.join(shipped)}; seen {name!r}; choose one of those"
        )
    return place_of(name, kind=kind)


def release_of(node: TranscriptNode[CaseT]) -> str:
    """Return the release of a shipped transcript, such as 3.9.1: its profile is named after it."""
    return node.profile.removeprefix(RELEASE)


def profile_of(node: TranscriptNode[CaseT]) -> Profile:
    """Return the profile that the paths of a transcript were made for."""
    return profile_named(node.profile)


def releases(folder: Path = FOLDER, kind: str = BROKER) -> list[str]:
    """Return the releases whose transcripts of a kind (BROKER or CONTROLLER) a folder has, oldest first."""
    names = (place.name.removeprefix(f"{kind}-").removesuffix(".gz") for place in folder.glob(f"{kind}-*.gz"))
    return sorted(names, key=parse_release)


def places(folder: Path = FOLDER, kind: str = BROKER) -> list[Path]:
    """Return the paths of the transcripts of a kind (BROKER or CONTROLLER) in a folder, oldest release first."""
    return [place_of(release, folder, kind) for release in releases(folder, kind)]
