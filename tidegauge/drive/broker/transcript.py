"""How a broker's transcript is written: a line has a case's opening, its steps, and what was reported after each.

Reports are lists in the order of the header's fields, "?" for one that is not known.
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
        """See TranscriptFormat."""
        return reference(profile)

    def head(self, capabilities: Capabilities, profile: str) -> dict[str, Any]:
        """See TranscriptFormat."""
        fields = [field for field in REPORTED if field in capabilities.reports]
        return {"name": capabilities.name, "profile": profile, "can": sorted(capabilities.can), "reports": fields}

    def line(self, recorded: Recorded[BrokerCase], capabilities: Capabilities) -> Any:
        """See TranscriptFormat."""
        (opening, path, _), reports = recorded
        fields = [field for field in REPORTED if field in capabilities.reports]
        return [[*opening], path[: len(reports) - 1], [[seen.get(field, UNKNOWN) for field in fields] for seen in reports]]

    def node(self, head: dict[str, Any]) -> TranscriptNode[BrokerCase]:
        """See TranscriptFormat."""
        can, fields = frozenset(map(str, head["can"])), tuple(map(str, head["reports"]))
        capabilities = Capabilities(str(head["name"]), can, frozenset(fields))
        return TranscriptNode(self, capabilities, str(head["profile"]), fields)

    def recorded(self, node: TranscriptNode[BrokerCase], line: Any) -> Recorded[BrokerCase]:
        """See TranscriptFormat."""
        opening, path, reported = line
        case = BrokerCase(Opening(*frozen(opening)), frozen(path))
        if not all(map(is_step, case.path)) or not is_integers(case.opening.peers):
            raise ValueError("a step that the contract does not have")
        if len(reported) > len(case.path) + 1:
            raise ValueError("more reports than steps")
        by_field = (zip(node.fields, values, strict=True) for values in reported)
        reports = ({field: value for field, value in report if value != UNKNOWN} for report in by_field)
        return Recorded(case, tuple(reports))


BROKER_FORMAT = BrokerFormat()
