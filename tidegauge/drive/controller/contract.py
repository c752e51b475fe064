"""The contract of one KRaft controller under test: what its brokers and clients ask of it, step by step, and what is seen
of it after each step.

Rules of this file

1. One active controller; every broker and every client is the suite's. Brokers are named 1 to 8, in order of their ids.
2. A step is (name, arguments in the order of STEPS). A broker epoch is never spelled: a broker names the one it has, or
   with `lag` one before it that nobody has.
3. A metadata offset is ALL, beyond the end of the log, or UNDEFINED: nothing read. What lies between depends on what else is
   in the log.
4. A report is a JSON object; broker epochs are ordinals: 0 is the first incarnation that registered.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tidegauge.drive.contract import Capabilities, DriveCase, Report, Step, is_integer
from tidegauge.impl.controller.records import BROKER, TOPIC

VERSION = 1

ALL = 1 << 40
"""A metadata offset beyond the end of any log."""

BROKERS = 8
"""How many brokers a path may name."""


class RequestShape(NamedTuple):
    """A request of the contract: its arguments, the fields of its `result`, and a sentence about it."""

    takes: tuple[str, ...]
    result: tuple[str, ...]
    says: str


STEPS: Mapping[str, RequestShape] = MappingProxyType(
    {
        "register": RequestShape(
            ("broker", "new_incarnation", "clean", "directories"),
            ("error", "incarnation"),
            "BrokerRegistration. `clean`: it names the epoch it was stopped in. A directory is a letter.",
        ),
        "register_late": RequestShape(
            ("broker", "new_incarnation", "clean", "directories"),
            ("error", "incarnation"),
            "The same once the session of the incarnation before is over, and nobody has noticed yet. Not before 4.0.",
        ),
        "heartbeat": RequestShape(
            ("broker", "lag", "metadata_offset", "want_fence", "want_shut_down", "offline"),
            ("error", "caught_up", "fenced", "should_shut_down"),
            "BrokerHeartbeat. `offline`: the directories that have failed.",
        ),
        "session_expires": RequestShape(
            ("broker",), (), "No heartbeat comes for longer than a session, and that is noticed."
        ),
        "unregister": RequestShape(("broker",), ("error",), "UnregisterBroker."),
        "alter_partition": RequestShape(
            ("broker", "lag", "topic", "partition", "leader_epoch", "partition_epoch", "isr", "recovering"),
            ("error", "partition"),
            "AlterPartition of one partition; each member of the ISR is meant in the incarnation that it has.",
        ),
        "elect_leaders": RequestShape(("unclean", "topic", "partition"), ("error",), "ElectLeaders of one partition."),
        "reassign": RequestShape(
            ("topic", "partition", "replicas"),
            ("error",),
            "AlterPartitionReassignments of one partition; no replicas cancel what is under way.",
        ),
        "assign_directory": RequestShape(
            ("broker", "lag", "topic", "partition", "directory"), ("error",), "AssignReplicasToDirs of one replica."
        ),
        "create_topic": RequestShape(
            ("topic", "assignment", "configs"), ("error",), "CreateTopics with replicas for each partition."
        ),
        "delete_topic": RequestShape(("topic",), ("error",), "DeleteTopics by name."),
        "configure": RequestShape(
            ("type", "name", "key", "value"),
            ("error",),
            'IncrementalAlterConfigs of one key of a TOPIC or a BROKER; the BROKER named "" is the default of the '
            "cluster, and without a value the key is deleted.",
        ),
        "update_feature": RequestShape(
            ("name", "level", "upgrade"), ("error",), "UpdateFeatures; a downgrade is a safe one."
        ),
    }
)

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


def controller_capabilities(name: str) -> Capabilities:
    """Return the capabilities of a controller called `name`: every step, every field."""
    return Capabilities(name, frozenset(STEPS), frozenset(REPORTED))


ControllerCase = DriveCase[ClusterOpening]
"""A path to be played on a cluster of its own: steps from a cluster that has no broker yet."""


def step_line(step: Step) -> str:
    """Return a step on one line."""
    name, *arguments = step
    return " ".join((name, *(f"{field}={_word(value)}" for field, value in zip(STEPS[name].takes, arguments, strict=True))))


def _word(value: Any) -> str:
    match value:
        case None:
            return "none"
        case True | False:
            return "yes" if value else "no"
        case tuple() | list() if value and isinstance(value[0], tuple | list):
            return "[" + " ".join(map(_word, value)) + "]"
        case tuple() | list():
            return ",".join(map(_word, value)) or "none"
        case _ if value == ALL:
            return "all"
        case _:
            return str(value)


def is_step(value: Any) -> bool:
    """Return whether a value read from somewhere is a step of the contract."""
    if not isinstance(value, tuple) or not value or value[0] not in STEPS or len(value) != 1 + len(STEPS[value[0]].takes):
        return False
    named = dict(zip(STEPS[value[0]].takes, value[1:], strict=True))
    # The name of a topic is any word; a broker is named by its number, and "" is the default of the cluster.
    if named.get("type") == BROKER and named["name"] and not str(named["name"]).isdecimal():
        return False
    return all(_IS.get(name, is_integer)(argument) for name, argument in named.items())


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


def _is_broker(value: Any) -> bool:
    return is_integer(value) and 1 <= value <= BROKERS


def _is_brokers(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(_is_broker, value))


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_word, value))


_IS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(
        ("new_incarnation", "clean", "want_fence", "want_shut_down", "recovering", "unclean", "upgrade"),
        lambda value: isinstance(value, bool),
    ),
    **dict.fromkeys(("directories", "offline", "topic", "directory", "name", "key"), _is_word),
    "broker": _is_broker,
    "isr": _is_brokers,
    "replicas": lambda value: value is None or _is_brokers(value),
    "assignment": lambda value: isinstance(value, tuple) and all(map(_is_brokers, value)),
    "configs": lambda value: isinstance(value, tuple) and all(map(_is_pair, value)),
    "type": lambda value: value in (TOPIC, BROKER),
    "value": lambda value: value is None or _is_word(value),
}
"""What an argument is; one that is not named here is an integer."""


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
