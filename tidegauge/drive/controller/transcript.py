"""The format of a controller's transcripts, the files of what a controller reported (drive/runner/transcript.py).

The first line, the head, has the controller's name and the profile that the paths were made for. Each other line is
[name, opening, path, changes] of a case: after the opening and after each step, the fields of the report that are not as in
the report before.
"""

from collections.abc import Callable
from typing import Any

from tidegauge.drive.contract import Capabilities, Report, frozen, is_integers
from tidegauge.drive.controller.contract import REPORTED, VERSION, ClusterOpening, ControllerCase
from tidegauge.drive.controller.reference import ControllerReference, reference
from tidegauge.drive.controller.steps import controller_capabilities, is_step
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.transcript import Recorded, TranscriptFormat, TranscriptNode
from tidegauge.impl.profiles import Profile

LEVEL = "metadata.version"


class ControllerFormat(TranscriptFormat[ControllerCase]):
    """The format of a controller's transcripts."""

    name, called = "tidegauge controller transcript", "a controller's transcript"
    command, contract, head_separators = "tidegauge drive --controller --record", VERSION, (",", ":")

    def reference(self, profile: Profile) -> ControllerReference:
        """Return the reference of a controller of this profile."""
        return reference(profile)

    def head(self, capabilities: Capabilities, profile: str) -> dict[str, Any]:
        """Return the first line, without format and version of the contract."""
        return {"name": capabilities.name, "profile": profile}

    def line(self, recorded: Recorded[ControllerCase], capabilities: Capabilities) -> Any:
        """Return the line of a case. Its path ends with the last step that was reported."""
        del capabilities
        (opening, path, name), reports = recorded
        before: Report = {}
        changes = []
        for report in reports:
            changed_fields = (field for field in REPORTED if field not in before or before[field] != report[field])
            changes.append({field: report[field] for field in changed_fields})
            before = report
        # The first report precedes every step. A node that failed on the way has none for the rest of the path.
        steps = path[: len(reports) - 1]
        return [name, [*opening], steps, changes]

    def node(self, head: dict[str, Any]) -> TranscriptNode[ControllerCase]:
        """Return a node without cases from a first line. Raises ValueError or KeyError if something is missing in it."""
        if not head["profile"]:
            raise ValueError("no profile")
        return TranscriptNode(self, controller_capabilities(str(head["name"])), str(head["profile"]))

    def recorded(self, node: TranscriptNode[ControllerCase], line: Any) -> Recorded[ControllerCase]:
        """Read a case and its reports from a line. Raises ValueError for a wrong step, opening or number of reports."""
        del node
        name, opening, path, changes = line
        case = ControllerCase(ClusterOpening(*opening), frozen(path), str(name))
        if not all(map(is_step, case.path)) or not is_integers(opening, 3):
            raise ValueError("a step that the contract does not have")
        if not 1 <= len(changes) == len(path) + 1:
            raise ValueError("as many reports as steps, and one")
        reports: list[Report] = []
        # A report is the one before it with the fields that the step has changed; the first has all fields.
        for changed_fields in changes:
            reports.append({**(reports[-1] if reports else {}), **changed_fields})
            if reports[-1].keys() != REPORTED.keys():
                raise ValueError(f"a report of {sorted(reports[-1])}")
        return Recorded(case, tuple(reports))

    def comparable(
        self, first: TranscriptNode[ControllerCase], second: TranscriptNode[ControllerCase]
    ) -> tuple[TranscriptNode[ControllerCase], Callable[[Difference[ControllerCase]], str]]:
        """Return the second transcript as if its openings had the first's metadata.version, and a note that says so.

        Each release ran at the metadata.version of its own, so that every report would differ in it. A difference in what
        the controller does because of its metadata.version is explained by no switch: the note after it names the level.
        """
        first_level, second_level = _level(first), _level(second)
        # A transcript of several levels is compared as it is.
        if first_level is None or second_level is None:
            return second, lambda _: ""
        name = second.capabilities.name

        def note(difference: Difference[ControllerCase]) -> str:
            """Return what is written after the text of a difference; nothing if both had the same level."""
            is_own_level = difference.case.opening.metadata_version == second_level
            return "" if is_own_level else f"\n  {name} did so at {LEVEL} {second_level}, its own"

        return _at_other_level(second, second_level, first_level), note


def _level(node: TranscriptNode[ControllerCase]) -> int | None:
    """Return the metadata.version of the openings of all cases; None if there are several."""
    levels = {case.opening.metadata_version for case in node.cases}
    return levels.pop() if len(levels) == 1 else None


def _at_other_level(node: TranscriptNode[ControllerCase], own: int, level: int) -> TranscriptNode[ControllerCase]:
    """Return a transcript with `level` in place of its own metadata.version, in openings and reports."""
    changed = TranscriptNode(node.format, node.capabilities, node.profile, node.fields)
    for case, reports in node.recorded():
        opening = case.opening._replace(metadata_version=level)
        changed.add(Recorded(case._replace(opening=opening), tuple(_report_at(report, own, level) for report in reports)))
    return changed


def _report_at(report: Report, own: int, level: int) -> Report:
    """Return a report with `level` in place of the metadata.version `own`; as it is where a step has set another one."""
    features = report["features"]
    return {**report, "features": {**features, LEVEL: level}} if features[LEVEL] == own else report


CONTROLLER_FORMAT = ControllerFormat()
