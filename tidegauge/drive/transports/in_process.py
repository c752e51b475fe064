"""A broker that is written in Python, driven in this process: no program, no lines.

Rules of this file

1. A replica gets the fields of the lines of the contract as arguments, and returns those of a report (docs/drive.md).
2. A report that breaks the contract is refused as a program's line is (transports/lines.py). What a replica raises is
raised.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from tidegauge.drive.broker.contract import BROKER, VERSION, BrokerCase
from tidegauge.drive.broker.steps import step_json
from tidegauge.drive.contract import Capabilities, Step, Watch
from tidegauge.drive.transports.lines import blame, json_line, parse_handshake, parse_line, parse_report


class PythonReplica(Protocol):
    """A replica of one partition on the broker under test."""

    def take(self, step: str, **arguments: Any) -> Mapping[str, Any]:
        """Take a step, and return the report after it. The first is `open`, with broker, peers and min_insync_replicas."""


class PythonBroker(Protocol):
    """A broker in Python: what it can take, what it reports, and how an empty replica on it is made.

    >>> import tidegauge as tg
    >>> class Replica:
    ...     def take(self, step, **arguments):
    ...         return {"leo": 0, "hw": 1 if step == "append" else 0}
    >>> class Broker:
    ...     name, can, reports, replica = "ahead", ["metadata", "append"], ["leo", "hw"], Replica
    >>> tg.drive(Broker(), smoke=True).verdict
    'DIFFERS'
    """

    @property
    def name(self) -> str:
        """What reports call it."""

    @property
    def can(self) -> Collection[str]:
        """The steps and extras that it can take."""

    @property
    def reports(self) -> Collection[str]:
        """The fields that each of its reports has."""

    def replica(self) -> PythonReplica:
        """Return an empty replica of a new partition."""


class InProcessNode:
    """A broker in Python as a node. Raises DrivenProgramError for one that declares what the contract does not have."""

    def __init__(self, broker: PythonBroker) -> None:
        self._broker = broker
        handshake = {"contract": VERSION, "name": broker.name, "can": [*broker.can], "reports": [*broker.reports]}
        self.capabilities: Capabilities = parse_handshake(json_line(handshake), "in what the broker declares")

    def play(self, cases: Sequence[BrokerCase], watch: Watch) -> None:
        """Play one case after the other."""
        for number, case in enumerate(cases):
            replica = self._broker.replica()
            opening = {"broker": BROKER, **case.opening._asdict()}
            fields = replica.take("open", **_as_json(opening))
            at = 0
            while watch(number, at, self._report(fields, case.path[at - 1] if at else None)):
                step = step_json(case.path[at])
                fields = replica.take(step.pop("step"), **_as_json(step))
                at += 1

    def _report(self, fields: Mapping[str, Any], step: Step | None) -> Mapping[str, Any]:
        where = f"after {step[0] if step else 'open'}"
        try:
            line = json_line(fields)
        except (TypeError, ValueError):
            raise blame("a report that JSON can hold", repr(fields).encode(), where) from None
        # Read back: a tuple is a list and the key 2 is "2" in a report, as on the lines of a program.
        return parse_report(parse_line(line, where), step, self.capabilities, line, where)


def _as_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a step as a program gets them: with lists, of which each replica has its own."""
    read: dict[str, Any] = json.loads(json_line(arguments))
    return read
