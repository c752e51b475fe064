"""How a controller's transcript is written: a line has a case's name, its opening, its steps, and what was reported after
each, as far as it is not what was reported before.
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
        """See TranscriptFormat."""
        return reference(profile)

    def head(self, capabilities: Capabilities, profile: str) -> dict[str, Any]:
        """See TranscriptFormat."""
        return {"name": capabilities.name, "profile": profile}

    def line(self, recorded: Recorded[ControllerCase], capabilities: Capabilities) -> Any:
        """See TranscriptFormat."""
        del capabilities
        (opening, path, name), reports = recorded
        before: Report = {}
        changes = []
        for report in reports:
            changes.append({f: report[f] for f in REPORTED if f not in before or before[f] != report[f]})
            before = report
        # The first report precedes every step. A node that failed on the way has none for the rest of the path.
        steps = path[: len(reports) - 1]
        return [name, [*opening], steps, changes]

    def node(self, head: dict[str, Any]) -> TranscriptNode[ControllerCase]:
        """See TranscriptFormat."""
        if not head["profile"]:
            raise ValueError("no profile")
        return TranscriptNode(self, controller_capabilities(str(head["name"])), str(head["profile"]))

    def recorded(self, node: TranscriptNode[ControllerCase], line: Any) -> Recorded[ControllerCase]:
        """See TranscriptFormat."""
        del node
        name, opening, path, news = line
        case = ControllerCase(ClusterOpening(*opening), frozen(path), str(name))
        if not all(map(is_step, case.path)) or not is_integers(opening, 3):
            raise ValueError("a step that the contract does not have")
        if not 1 <= len(news) == len(path) + 1:
            raise ValueError("as many reports as steps, and one")
        reports: list[Report] = []
        # A line holds only what a step changed: the report is that of the step before it, with the news.
        for new in news:
            reports.append({**(reports[-1] if reports else {}), **new})
            if reports[-1].keys() != REPORTED.keys():
                raise ValueError(f"a report of {sorted(reports[-1])}")
        return Recorded(case, tuple(reports))

    def comparable(
        self, first: TranscriptNode[ControllerCase], second: TranscriptNode[ControllerCase]
    ) -> tuple[TranscriptNode[ControllerCase], Callable[[Difference[ControllerCase]], str]]:
        """Return the second as if it had run at the first's metadata.version, until a step changes it.

        Each runs at the one that is its release's own, and that alone is no difference. What a level decides would be a
        difference that no switch explains.
        """
        ours, theirs = _level(first), _level(second)
        # A transcript of several levels is compared as it is.
        if ours is None or theirs is None:
            return second, lambda _: ""
        name = second.capabilities.name

        def note(difference: Difference[ControllerCase]) -> str:
            own = difference.case.opening.metadata_version == theirs
            return "" if own else f"\n  {name} did so at {LEVEL} {theirs}, its own"

        return _moved(second, theirs, ours), note


def _level(node: TranscriptNode[ControllerCase]) -> int | None:
    """Return the metadata.version that it was opened with; None if there are several."""
    levels = {case.opening.metadata_version for case in node.cases}
    return levels.pop() if len(levels) == 1 else None


def _moved(node: TranscriptNode[ControllerCase], own: int, level: int) -> TranscriptNode[ControllerCase]:
    """Return the transcript with `level` in place of the node's own metadata.version."""
    moved = TranscriptNode(node.format, node.capabilities, node.profile, node.fields)
    for case, reports in node.recorded():
        opening = case.opening._replace(metadata_version=level)
        moved.add(Recorded(case._replace(opening=opening), tuple(_at_level(seen, own, level) for seen in reports)))
    return moved


def _at_level(seen: Report, own: int, level: int) -> Report:
    """Return a report with `level` as its metadata.version, if that is still the node's own."""
    features = seen["features"]
    return {**seen, "features": {**features, LEVEL: level}} if features[LEVEL] == own else seen


CONTROLLER_FORMAT = ControllerFormat()
