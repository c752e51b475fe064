"""The format of a broker's transcripts, the files of what a broker reported (drive/runner/transcript.py).

The first line, the head, has the broker's name, the profile that the paths were made for, what it can be given, and the
fields that it reports. Each other line is [opening, path, reports] of a case: a report after the opening and after each
step, as a list of values in the order of the head's fields, "?" for a field that is not known.
"""

from typing import Any

from tidegauge.drive.broker.contract import REPORTED, VERSION, BrokerCase, Opening
from tidegauge.drive.broker.reference import BrokerReference, reference
from tidegauge.drive.broker.steps import is_step
from tidegauge.drive.contract import Capabilities, frozen, is_integers
from tidegauge.drive.runner.transcript import RECORD, Recorded, TranscriptFormat, TranscriptNode
from tidegauge.impl.profiles import Profile

UNKNOWN = "?"


class BrokerFormat(TranscriptFormat[BrokerCase]):
    """The format of a broker's transcripts."""

    name, called, command, contract = "tidegauge transcript", "a transcript", RECORD, VERSION

    def reference(self, profile: Profile) -> BrokerReference:
        """Return the reference of a broker of this profile."""
        return reference(profile)

    def head(self, capabilities: Capabilities, profile: str) -> dict[str, Any]:
        """Return the first line, without format and version of the contract; the fields are in the contract's order."""
        fields = [field for field in REPORTED if field in capabilities.reports]
        return {"name": capabilities.name, "profile": profile, "can": sorted(capabilities.can), "reports": fields}

    def line(self, recorded: Recorded[BrokerCase], capabilities: Capabilities) -> Any:
        """Return the line of a case. Its path ends with the last step that was reported."""
        (opening, path, _name), reports = recorded
        fields = [field for field in REPORTED if field in capabilities.reports]
        values = [[report.get(field, UNKNOWN) for field in fields] for report in reports]
        # The first report is that of the opening.
        return [[*opening], path[: len(reports) - 1], values]

    def node(self, head: dict[str, Any]) -> TranscriptNode[BrokerCase]:
        """Return a node without cases from a first line. Raises KeyError if something is missing in it."""
        can, fields = frozenset(map(str, head["can"])), tuple(map(str, head["reports"]))
        capabilities = Capabilities(str(head["name"]), can, frozenset(fields))
        return TranscriptNode(self, capabilities, str(head["profile"]), fields)

    def recorded(self, node: TranscriptNode[BrokerCase], line: Any) -> Recorded[BrokerCase]:
        """Read a case and its reports from a line. Raises ValueError for a wrong step, opening or number of reports."""
        opening, path, reports_as_lists = line
        case = BrokerCase(Opening(*frozen(opening)), frozen(path))
        if not is_integers((*case.opening.peers, case.opening.min_insync_replicas)):
            raise ValueError("an opening that the contract does not have")
        if not all(map(is_step, case.path)):
            raise ValueError("a step that the contract does not have")
        # One more than steps: that of the opening.
        if len(reports_as_lists) > len(case.path) + 1:
            raise ValueError("more reports than steps")
        with_names = (zip(node.fields, values, strict=True) for values in reports_as_lists)
        reports = ({field: value for field, value in report if value != UNKNOWN} for report in with_names)
        return Recorded(case, tuple(reports))


BROKER_FORMAT = BrokerFormat()
