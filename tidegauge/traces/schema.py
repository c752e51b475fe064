"""Trace schema v1: the vocabulary that all sources of traces and the judge share.

Rules of this file

1. An event is one thing that happened at one node. Its name is the TLA+ action's where there is one.
2. A field that a source does not know is left out: absent means unknown, and the judge leaves it free. None (JSON null)
   means known to be undefined, which is -1 in columns.
3. `leo`, `hw`, `log_start` are values after the event; `leo_before`, `hw_before` are values before it.
4. Nodes are named by their ids here and in NDJSON; columns hold their position in `Config.nodes` instead, and sets of
   nodes as bit masks over those positions.
5. This file and nothing else lists events and fields. The JSON Schema, the Parquet schema, the columns and the tables in
   docs/traces.md are made from it or tested against it.
6. A trace is the events of one topic-partition. A Config says which nodes it has, and by which profile, a generation of the
   protocol, they are judged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tidegauge.traces.problems import shown

VERSION = 1

LARGEST = 2**62
"""Integers are smaller, so that int64 arithmetic on them is exact."""

UNCLEAN_ELECTIONS = "unclean_elections"
"""Key of a Config: false if no unclean election took place, in a trace that has no events of elections."""

KAFKA_TODAY, SAFE = "fetch-truncation", "safe"
"""The profiles of those that name none (docs/decisions/0015)."""
RELEASE_KEY = "release"
"""Key of a Config for the releases of Kafka that wrote the source."""
REASSIGNED = "reassigned"
"""Key of a Config: true if the nodes are not all replicas all the time, as the `replicas` of events may show."""


WHOLE = "whole"
"""Key of a Config: false if lines may be missing where no number shows it."""
TOPIC_ID = "topic_id"
"""Key of a Config: the id of the trace's topic (KIP-516), which no rule reads."""
GAPS = "gaps"
"""Key of a Config: [event, event, what is missing] for each place with missing lines, between these events of the trace."""
MISSING = "missing"
"""Key of a Config: texts about what the whole source lacks."""

MISSING_AHEAD, MISSING_BEHIND = 1, 2
"""Lines of the event's node are missing before it, after it."""


class FieldKind(Enum):
    """How the value of a field reads in NDJSON."""

    INT = "integer"
    BOOL = "boolean"
    NODE = "node id"
    NODES = "list of node ids"
    EPOCHS = "list of [epoch, start offset]"


@dataclass(frozen=True)
class Field:
    """A field of events: how its value reads, and what it says."""

    kind: FieldKind
    says: str


FIELDS: Mapping[str, Field] = {
    "peer": Field(
        FieldKind.NODE, "the other node: the follower at a leader, the leader at a follower, the member joining the ISR"
    ),
    "leader": Field(FieldKind.NODE, "leader named by the metadata; null when there is none"),
    "leader_epoch": Field(FieldKind.INT, "leader epoch of the acting replica, or set by the controller"),
    "partition_epoch": Field(FieldKind.INT, "partition epoch, likewise"),
    "isr": Field(
        FieldKind.NODES, "in-sync replicas: committed in metadata, proposed in ExpandIsr, ShrinkIsr and AlterPartition"
    ),
    "live": Field(FieldKind.NODES, "brokers the controller does not fence"),
    "clean": Field(FieldKind.BOOL, "an election from the ISR (or ELR); a stop or start without loss of the unflushed tail"),
    "req_epoch": Field(FieldKind.INT, "currentLeaderEpoch of the request"),
    "req_offset": Field(FieldKind.INT, "fetchOffset of the request"),
    "req_last_epoch": Field(
        FieldKind.INT, "lastFetchedEpoch of the request, or the epoch asked for in OffsetsForLeaderEpoch"
    ),
    "req_log_start": Field(FieldKind.INT, "logStartOffset of the request"),
    "req_broker_epoch": Field(FieldKind.INT, "replicaEpoch of the request"),
    "error": Field(FieldKind.INT, "Kafka error code of the response; 0 is NONE"),
    "res_hw": Field(FieldKind.INT, "highWatermark in the response"),
    "res_log_start": Field(FieldKind.INT, "logStartOffset in the response"),
    "div_epoch": Field(FieldKind.INT, "diverging epoch in the response, or the epoch answered by OffsetsForLeaderEpoch"),
    "div_end": Field(FieldKind.INT, "its end offset"),
    "rec_base": Field(FieldKind.INT, "offset of the first record appended or answered"),
    "rec_end": Field(FieldKind.INT, "offset after the last one; equal to rec_base when there are none"),
    "rec_epoch": Field(FieldKind.INT, "leader epoch of the last one"),
    "leader_start": Field(FieldKind.INT, "the leader's earliest offset (ListOffsets)"),
    "leader_end": Field(FieldKind.INT, "the leader's latest offset (ListOffsets)"),
    "target": Field(FieldKind.INT, "truncation offset, or new fetch offset of an out-of-range reset"),
    "completed": Field(FieldKind.BOOL, "whether the truncation needs no further round"),
    "remote_leo": Field(FieldKind.INT, "LEO the leader recorded for the peer"),
    "epoch_start": Field(FieldKind.INT, "offset at which the leader epoch starts"),
    "acks": Field(FieldKind.INT, "acks of a produce request"),
    "bound": Field(FieldKind.INT, "offset up to which a reader could read, exclusive"),
    "leo_before": Field(FieldKind.INT, "log end offset before the event"),
    "hw_before": Field(FieldKind.INT, "high watermark before the event"),
    "leo": Field(FieldKind.INT, "log end offset after the event"),
    "hw": Field(FieldKind.INT, "high watermark after the event"),
    "log_start": Field(FieldKind.INT, "log start offset after the event"),
    "replicas": Field(FieldKind.NODES, "brokers the partition is assigned to, those being added or removed among them"),
    "adding": Field(FieldKind.NODES, "of these, those a reassignment adds"),
    "removing": Field(FieldKind.NODES, "of these, those it will remove"),
    "elr": Field(FieldKind.NODES, "eligible leader replicas (KIP-966)"),
    "last_known_elr": Field(FieldKind.NODES, "the last known leader, kept when ISR and ELR are empty (KIP-966)"),
    "min_isr": Field(FieldKind.INT, "min.insync.replicas of the topic"),
    "broker_epoch": Field(FieldKind.INT, "broker epoch of the peer: given by its registration, or known to who proposes it"),
    "epochs": Field(FieldKind.EPOCHS, "the whole epoch cache (Start, Observe), or the epochs of the records (elsewhere)"),
}

_REQUEST = ("req_epoch", "req_offset", "req_last_epoch", "req_log_start", "req_broker_epoch")
_RESPONSE = ("error", "res_hw", "res_log_start", "div_epoch", "div_end", "rec_base", "rec_end", "rec_epoch", "epochs")
_UNREAD_REQUEST = ("req_log_start", "req_broker_epoch")
_ASSIGNED = ("replicas", "adding", "removing", "elr", "last_known_elr")
_LOG = ("leo_before", "hw_before", "leo", "hw", "log_start")


@dataclass(frozen=True)
class EventType:
    """An event: its number in columns, who it happens to, the fields it may tell, and what it means.

    `carried` are those of the fields that no rule of the judge reads: they are kept and shown, and cost no verdict.
    """

    code: int
    who: str
    fields: tuple[str, ...]
    says: str
    carried: tuple[str, ...] = ()


EVENTS: Mapping[str, EventType] = {
    # roles
    "BecomeLeader": EventType(
        1,
        "broker",
        ("leader_epoch", "partition_epoch", "isr", "epoch_start", *_LOG),
        "metadata makes this replica leader",
        carried=("log_start",),
    ),
    "BecomeFollower": EventType(
        2, "broker", ("leader", "leader_epoch", "partition_epoch", *_LOG), "metadata makes this replica follower"
    ),
    # appends and fetches
    "LeaderAppend": EventType(
        3,
        "leader",
        ("leader_epoch", "rec_base", "rec_end", "rec_epoch", "acks", *_LOG),
        "records from a producer are appended",
        carried=("log_start",),
    ),
    "SendFetch": EventType(4, "follower", ("peer", *_REQUEST), "a fetch leaves for the leader", carried=_UNREAD_REQUEST),
    "HandleFetch": EventType(
        5,
        "leader",
        ("peer", *_REQUEST, *_RESPONSE, "remote_leo", *_LOG),
        "a fetch is read and recorded; res_hw is the high watermark before it counted. Answer fields are left out when "
        "the response leaves later",
        carried=("req_log_start", "epochs", "log_start"),
    ),
    "AnswerFetch": EventType(
        6,
        "leader",
        ("peer", *_REQUEST, *_RESPONSE),
        "a response leaves later than its fetch was recorded (delayed fetch)",
        carried=(*_UNREAD_REQUEST, "epochs"),
    ),
    "HandleFetchResponse": EventType(
        7,
        "follower",
        ("peer", *_REQUEST, *_RESPONSE, *_LOG),
        "records and high watermark of a response are taken over",
        carried=(*_UNREAD_REQUEST, "div_epoch", "div_end"),
    ),
    "HandleDivergingResponse": EventType(
        8,
        "follower",
        ("peer", *_REQUEST, *_RESPONSE, "target", "completed", *_LOG),
        "a diverging response truncates the log",
        carried=(*_UNREAD_REQUEST, "res_hw", "res_log_start", "rec_base", "rec_end", "rec_epoch", "epochs", "log_start"),
    ),
    "HandleOutOfRange": EventType(
        9,
        "follower",
        ("peer", *_REQUEST, "leader_start", "leader_end", "target", *_LOG),
        "an out-of-range response resets the fetch offset",
        carried=_UNREAD_REQUEST,
    ),
    "HandleFetchError": EventType(
        10,
        "follower",
        ("peer", *_REQUEST, "error"),
        "an error response delays or fails the partition",
        carried=("req_epoch", "req_offset", *_UNREAD_REQUEST, "error"),
    ),
    # OffsetsForLeaderEpoch
    "SendEpochRequest": EventType(
        11, "follower", ("peer", "req_epoch", "req_last_epoch"), "a follower asks where an epoch ends"
    ),
    "HandleEpochRequest": EventType(
        12, "leader", ("peer", "req_epoch", "req_last_epoch", "error", "div_epoch", "div_end"), "the leader answers it"
    ),
    "HandleEpochResponse": EventType(
        13,
        "follower",
        ("peer", "req_epoch", "req_last_epoch", "error", "div_epoch", "div_end", "target", "completed", *_LOG),
        "the response truncates the log",
        carried=("log_start",),
    ),
    "TruncateToHighWatermark": EventType(
        14,
        "follower",
        ("target", *_LOG),
        "a follower truncates at its own high watermark: hw-only, or an empty epoch cache",
        carried=("log_start",),
    ),
    # in-sync replicas
    "ExpandIsr": EventType(
        15,
        "leader",
        ("peer", "isr", "partition_epoch", "remote_leo", "broker_epoch"),
        "the leader proposes a larger ISR",
        carried=("partition_epoch",),
    ),
    "ShrinkIsr": EventType(
        16,
        "leader",
        ("isr", "partition_epoch", "leo", "hw"),
        "the leader proposes a smaller ISR",
        carried=("partition_epoch",),
    ),
    "AlterPartition": EventType(
        17, "controller", ("peer", "leader_epoch", "partition_epoch", "isr", "error"), "the controller judges a proposal"
    ),
    "HandleAlterPartitionResponse": EventType(
        18, "leader", ("isr", "partition_epoch", "error", "hw_before", "hw"), "the leader learns what became of its proposal"
    ),
    "ChangePartition": EventType(
        19,
        "controller",
        ("peer", "leader", "leader_epoch", "partition_epoch", "isr", "live", "clean", *_ASSIGNED),
        "the registration changes",
        carried=("peer", "last_known_elr"),
    ),
    "RegisterBroker": EventType(
        31,
        "controller",
        ("peer", "broker_epoch", "clean"),
        "a broker registers, after the changes that this causes. Not clean: it did not stop in order, or lost its disk",
    ),
    "FenceBroker": EventType(32, "controller", ("peer",), "a broker is fenced, after the changes that this causes"),
    "UnfenceBroker": EventType(33, "controller", ("peer",), "a broker is unfenced, before the changes that this causes"),
    "SetMinIsr": EventType(
        34, "controller", ("min_isr",), "min.insync.replicas changes, before the changes that this causes"
    ),
    "ReadConfig": EventType(35, "broker", ("min_isr",), "a broker has read min.insync.replicas"),
    # process and log
    "Start": EventType(20, "broker", ("clean", "leo", "hw", "log_start", "epochs"), "a replica is loaded from disk"),
    "Stop": EventType(21, "broker", ("clean",), "a broker stops in order", carried=("clean",)),
    "Crash": EventType(22, "broker", ("clean",), "a broker dies", carried=("clean",)),
    "LoseDisk": EventType(
        30, "broker", (), "the log directory of a broker that is down is gone: an event of its environment, not of a broker"
    ),
    "DeleteReplica": EventType(
        29, "broker", (), "the partition is assigned to this broker no more, or deleted: so is its log, and all it knew"
    ),
    "LogStartMoved": EventType(23, "broker", ("log_start", "hw"), "the log start moves up"),
    "EpochCacheEntry": EventType(24, "broker", ("leader_epoch", "epoch_start"), "an entry is added to the epoch cache"),
    "HwCheckpoint": EventType(25, "broker", ("hw",), "the high watermark is written to its checkpoint file"),
    "Observe": EventType(
        26, "broker", ("leo", "hw", "log_start", "epochs"), "a snapshot of a replica, from disk or a query"
    ),
    # clients
    "ProduceAck": EventType(
        27,
        "leader",
        ("acks", "rec_base", "rec_end", "rec_epoch", "error"),
        "a produce request is answered; rec_epoch is that of its records as they were appended",
        carried=("rec_base",),
    ),
    "Read": EventType(28, "leader", ("bound", "rec_base", "rec_end"), "a consumer is shown records", carried=("rec_base",)),
}


@dataclass(frozen=True)
class Config:
    """What holds for a whole trace.

    `nodes` are broker ids, in the order in which columns count them. `controller` is the node id of the controller, None if
    it has no events; in columns it comes after the last broker. `profile` is what the trace is judged by, `source` what it
    was made from; `extra` has all other keys.
    `lag_rule` is whether a replica outside the ISR that was caught up within the lag limit may hold the high watermark
    back: False makes the leader's rule exact, True only bounds it.
    """

    nodes: tuple[int, ...]
    min_isr: int = 1
    profile: str = KAFKA_TODAY
    lag_rule: bool = False
    controller: int | None = None
    source: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Event:
    """One line: `fields` has the values that the source reports, None for known to be undefined.

    `at` is where it was read ("n1/server.log:116"); `unknown` keeps what this version has no name for.
    """

    node: int
    event: str
    fields: Mapping[str, Any]
    seq: int | None = None
    time: str | None = None
    corr: str | None = None
    at: str = ""
    unknown: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Trace:
    """The events of one topic-partition in an order that respects causality."""

    name: str
    tp: str
    config: Config
    events: tuple[Event, ...]


# A Config as JSON: the same keys in a Config line and in the metadata of a Parquet file.


KEYS = ("nodes", "min_isr", "profile", "lag_rule", "controller", "source")
"""The keys of this version; `Config.extra` keeps any others."""

MOST_NODES = 61
"""Sets of nodes are bit masks in an int64, the controller has a position too, and UNKNOWN is no mask."""

MOST_MEMBERS = 2**31 - 1
"""min.insync.replicas is an INT, at least 1 (LogConfig)."""


def as_json(config: Config) -> dict[str, Any]:
    """Return a config as a JSON object: the keys of this version, then those of `extra`.

    A config without a controller has no such key.
    """
    own = {key: getattr(config, key) for key in KEYS}
    if config.controller is None:
        del own["controller"]
    # A key of `extra` never replaces one of this version.
    return {**own, "nodes": list(config.nodes), **{key: value for key, value in config.extra.items() if key not in KEYS}}


def from_json(line: Mapping[str, Any], envelope: tuple[str, ...] = ()) -> Config:
    """Return the Config that a JSON object holds, one for which `fault` returns None; keys in `envelope` are left out."""
    # A profile that the line names replaces the one of those that name none.
    own = {"profile": unnamed_profile(line), **{key: line[key] for key in KEYS if key in line}}
    extra = {key: value for key, value in line.items() if key not in KEYS and key not in envelope}
    return Config(**{**own, "nodes": tuple(line["nodes"])}, extra=extra)


def unnamed_profile(line: Mapping[str, Any]) -> str:
    """Return the profile for a config that names none: today's Kafka's if it names a release, else a safe broker's."""
    return KAFKA_TODAY if RELEASE_KEY in line else SAFE


def fault(line: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what the first wrong key of a Config line should have been, and what it is; None if all are right.

    A key that is left out is right, but for `nodes`. Of those in `extra` two are looked at; a flag there counts only as an
    explicit true or false, and any other value as none.
    """
    nodes = line.get("nodes")
    if not isinstance(nodes, list) or not nodes or not all(map(is_int, nodes)) or len(set(nodes)) != len(nodes):
        return '"nodes" to be a list of different node ids', shown(nodes)
    if len(nodes) > MOST_NODES:
        return f"at most {MOST_NODES} nodes", str(len(nodes))
    # A key, whether its value is right, and what it should be.
    for key, right, form in (
        ("min_isr", lambda value: is_int(value) and 1 <= value <= MOST_MEMBERS, f"an integer from 1 to {MOST_MEMBERS}"),
        ("profile", lambda value: isinstance(value, str), "a text"),
        ("lag_rule", lambda value: isinstance(value, bool), "true or false"),
        ("controller", lambda value: value is None or is_int(value), "a node id"),
        ("source", lambda value: isinstance(value, str), "a text"),
        (MISSING, _texts, "a list of texts"),
        (GAPS, _gaps, "a list of [event, event, what is missing]"),
    ):
        if key in line and not right(line[key]):
            return f'"{key}" to be {form}', shown(line[key])
    return None


def _texts(value: object) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _gaps(value: object) -> bool:
    """Return whether a value is a list of gaps, each as GAPS describes it."""
    return isinstance(value, list) and all(
        isinstance(gap, list) and len(gap) == 3 and all(map(is_int, gap[:2])) and isinstance(gap[2], str) for gap in value
    )


def is_int(value: object) -> bool:
    """Return whether a value is an integer and no truth value."""
    return isinstance(value, int) and not isinstance(value, bool)
