"""What a controller reported on a set of paths, as a small file: any profile is held against it without the controller.

Rule of this file: a line has a path's name, its opening, its steps, and what was reported after each, as far as it is not
what was reported before.
"""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path as File
from typing import Any

from tidegauge.drive.contract import Report, frozen, is_integers
from tidegauge.drive.controller.contract import REPORTED, VERSION, ClusterOpening, ControllerCase, is_step
from tidegauge.drive.runner import transcript as recording
from tidegauge.drive.runner.transcript import Kind, Recorded, RecordedNode

FORMAT = "tidegauge controller transcript"
KIND = Kind("a controller's transcript", VERSION, "tidegauge drive --controller --record")


class TranscriptNode(RecordedNode[ControllerCase]):
    """A controller that was driven once: it reports what it reported then."""

    def __init__(self, name: str, profile: str) -> None:
        super().__init__(profile)
        self.name = name


def write(place: File, name: str, profile: str, recorded: Sequence[Recorded[ControllerCase]]) -> None:
    """Write a transcript."""
    lines: list[Any] = [{"format": FORMAT, "contract": VERSION, "name": name, "profile": profile}]
    for case, reports in recorded:
        news = [_news(before, seen) for before, seen in zip(({}, *reports), reports, strict=False)]
        lines.append([case.name, [*case.opening], case.path[: len(reports) - 1], news])
    recording.write(place, (json.dumps(line, separators=(",", ":")) for line in lines))


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
    return recording.read(place, KIND, _headed, _recorded)


def _headed(found: Any) -> TranscriptNode:
    if (found["format"], found["contract"]) != (FORMAT, VERSION) or not found["profile"]:
        raise ValueError(f"{found['format']} of contract {found['contract']}")
    return TranscriptNode(str(found["name"]), str(found["profile"]))


def _recorded(_: TranscriptNode, found: Any) -> Recorded[ControllerCase]:
    name, opening, path, news = found
    case = ControllerCase(ClusterOpening(*opening), frozen(path), str(name))
    if not all(map(is_step, case.path)) or not is_integers(opening, 3):
        raise ValueError("a step that the contract does not have")
    if not 1 <= len(news) == len(path) + 1:
        raise ValueError("as many reports as steps, and one")
    reports: list[Report] = []
    for new in news:
        reports.append({**(reports[-1] if reports else {}), **new})
        if reports[-1].keys() != REPORTED.keys():
            raise ValueError(f"a report of {sorted(reports[-1])}")
    return Recorded(case, tuple(reports))
