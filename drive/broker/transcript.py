"""What a broker reported on a set of paths, as a small file: any profile or fault is held against it without the broker.

Rules of this file

1. A line has a path's opening, its steps, what was reported after each. Reports are lists in the order of the header's
   fields, "?" for one that is not known.
2. A later header version is refused.
"""

import json
from collections.abc import Sequence
from pathlib import Path as File
from typing import Any

from tidegauge.drive.broker.contract import REPORTED, VERSION, BrokerCase, Opening, is_step
from tidegauge.drive.contract import Capabilities, Report, frozen, is_integers
from tidegauge.drive.runner import transcript as recording
from tidegauge.drive.runner.transcript import Kind, Recorded, RecordedNode

FORMAT = "tidegauge transcript"
UNKNOWN = "?"
KIND = Kind("a transcript", VERSION, recording.RECORD)


def write(place: File, capabilities: Capabilities, profile: str, recorded: Sequence[Recorded[BrokerCase]]) -> None:
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
    for case, reports in recorded:
        reported = [[seen.get(field, UNKNOWN) for field in fields] for seen in reports]
        lines.append(json.dumps([[*case.opening], case.path[: len(reports) - 1], reported], separators=(",", ":")))
    recording.write(place, lines)


class TranscriptNode(RecordedNode[BrokerCase]):
    """A broker that was driven once: it reports what it reported then."""

    def __init__(self, capabilities: Capabilities, profile: str, fields: tuple[str, ...]) -> None:
        super().__init__(profile)
        self.capabilities, self.fields = capabilities, fields


def read(place: File) -> TranscriptNode:
    """A transcript from a file. Raises TranscriptError with the line that is wrong."""
    return recording.read(place, KIND, _headed, _recorded)


def _headed(found: dict[str, Any]) -> TranscriptNode:
    if (found["format"], found["contract"]) != (FORMAT, VERSION):
        raise ValueError(f"{found['format']} of contract {found['contract']}")
    can, fields = frozenset(map(str, found["can"])), tuple(map(str, found["reports"]))
    return TranscriptNode(Capabilities(str(found["name"]), can, frozenset(fields)), str(found["profile"]), fields)


def _recorded(node: TranscriptNode, found: Any) -> Recorded[BrokerCase]:
    opening, path, reported = found
    case = BrokerCase(Opening(*frozen(opening)), frozen(path))
    if not all(map(is_step, case.path)) or not is_integers(case.opening.peers):
        raise ValueError("a step that the contract does not have")
    if len(reported) > len(case.path) + 1:
        raise ValueError("more reports than steps")
    return Recorded(case, tuple(_report(node.fields, values) for values in reported))


def _report(fields: tuple[str, ...], values: Any) -> Report:
    return {field: value for field, value in zip(fields, values, strict=True) if value != UNKNOWN}
