"""The contract of one KRaft controller under test: what its brokers and clients ask of it, step by step, and what is seen
of it after each step.

Rules of this file

1. One active controller; every broker and every client is the suite's. Brokers are named 1 to 8, in order of their ids.
2. A step is (name, arguments in the order of steps.STEPS). A broker epoch is never spelled: a broker names the one it has,
   or with `lag` one before it that nobody has.
3. A metadata offset is ALL, beyond the end of the log, or UNDEFINED: nothing read. What lies between depends on what else is
   in the log.
4. A report is a JSON object; broker epochs are ordinals: 0 is the first incarnation that registered.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tidegauge.drive.contract import DriveCase, Report

VERSION = 1

ALL = 1 << 40
"""A metadata offset beyond the end of any log."""

BROKERS = 8
"""How many brokers a path may name."""


REPORTED: Mapping[str, str] = MappingProxyType(
    {
        "result": "what the request was responded to with; null for a step that is no request",
        "partitions": "by name, what the metadata log makes of each partition's registration",
        "brokers": "by number, what it makes of each broker's registration",
        "features": "the finalized levels",
    }
)


class ClusterOpening(NamedTuple):
    """The cluster before the first step: its metadata.version, whether ELR is on, the cluster's min.insync.replicas."""

    metadata_version: int
    elr: int = 1
    min_insync_replicas: int = 1


ControllerCase = DriveCase[ClusterOpening]
"""A path to be played on a cluster of its own: steps from a cluster that has no broker yet."""


def directory(broker: int, letter: str) -> str:
    """Return the name of a log directory of a broker."""
    return f"{broker}{letter}"


def fields_that_differ(expected: Report, seen: Report) -> tuple[str, ...]:
    """Return the fields in which two reports differ."""
    return tuple(field for field in REPORTED if _comparable(expected, field) != _comparable(seen, field))


def _comparable(report: Report, field: str) -> Any:
    """Return the part of a field in which two reports are compared."""
    value = report.get(field)
    # A refused request has nothing but its error: what else a response of it contains is not compared.
    if field == "result" and isinstance(value, Mapping) and value.get("error"):
        return value["error"]
    return value
