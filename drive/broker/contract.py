"""The contract of one broker under test: what it is given, step by step, and what it reports after each step.

Rules of this file

1. One replica of one partition at a time, on a broker that decides nothing about time: its peers, its controller, its
   clients, the network, lag times and crashes are the suite's. The broker under test is broker 1, its peers are 2, 3, ..
2. A step is (name, arguments in the order of STEPS). Arguments are named as in Kafka's message schemas; UNDEFINED (-1)
   is what it is there: no leader, no epoch, no offset.
3. A report is a JSON object. A field that is absent is not known, null is known to be none. What a broker cannot be given or
   cannot report is declared (`Capabilities`) and costs coverage, never a failure.
4. Back-off has no length, and nobody who is behind has caught up in time: a member lags as soon as it lacks a record, and
   whether that is noticed is a step of its own (`lag`).
5. A proposal that metadata has overtaken is responded to before anything else happens.
6. A new step or field gets a new minor version, a new meaning a new major one. A driven program names the major version.
"""

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tidegauge.drive.contract import Capabilities, DriveCase, Step, frozen, is_integer, is_integers

VERSION = 1
"""The major version of the contract."""

BROKER = 1
"""The broker under test."""

EARLIEST, LATEST = "earliest", "latest"

IN_SESSION = frozenset({"fetch_in_session", "fetch_in_session_and_wait", "fetch_others"})
"""Fetches in a session: their responses need not name the partition."""

CRASH, STOP = "crash", "stop"
ENDS = frozenset({CRASH, STOP})
"""Steps in which the process ends."""

MAY_WAIT = frozenset({"fetch_and_wait", "fetch_in_session_and_wait"})
"""Fetches that are answered later, in `fetched`, if they have to wait."""


class Shape(NamedTuple):
    """What a step takes, what `result` holds after it, whose action it is in catalog.toml, and a sentence."""

    takes: tuple[str, ...]
    result: tuple[str, ...]
    action: str
    says: str


STEPS: Mapping[str, Shape] = MappingProxyType(
    {
        "metadata": Shape(
            ("leader", "leader_epoch", "partition_epoch", "isr"),
            (),
            "BecomeFollower",
            "The broker reads the controller's registration of the partition; leader -1: there is none.",
        ),
        "append": Shape(
            ("acks",),
            ("error", "base"),
            "LeaderAppend",
            "A producer's batch of one record. With acks -1 it is answered later, in `produced`.",
        ),
        "fetch": Shape(
            ("peer", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "may_join"),
            ("error", "hw", "log_start", "records", "diverging"),
            "HandleFetch",
            "A peer's fetch of one record. `may_join`: the metadata cache says that the peer may join the ISR.",
        ),
        "fetch_and_wait": Shape(
            ("peer", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "may_join"),
            ("error", "hw", "log_start", "records", "diverging"),
            "HandleFetch",
            "The same with minBytes 1 and a maxWait without end. One that has to wait is answered later, in `fetched`.",
        ),
        "fetch_in_session": Shape(
            ("peer", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "may_join", "session_epoch"),
            ("error", "hw", "log_start", "records", "diverging"),
            "HandleFetch",
            "The same as `fetch` with a session epoch (KIP-227): 0 opens a session of this partition and another, in place "
            "of the peer's last; -1 ends that. An incremental one names this partition only if it has changed. The result "
            "is null if the response does not name it.",
        ),
        "fetch_in_session_and_wait": Shape(
            ("peer", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "may_join", "session_epoch"),
            ("error", "hw", "log_start", "records", "diverging"),
            "HandleFetch",
            "Both: one that has to wait is answered in `fetched`. A full one opens its session then; an incremental one is "
            "refused if another request has moved its session on meanwhile. The other partition has nothing to tell.",
        ),
        "fetch_others": Shape(
            ("peer", "session_epoch"),
            ("error", "hw", "log_start", "records", "diverging"),
            "HandleFetch",
            "A peer's fetch with a session epoch of the other partition alone: the session forgets this one. Null as there.",
        ),
        "offsets_for_leader_epoch": Shape(
            ("current_leader_epoch", "leader_epoch"),
            ("error", "leader_epoch", "end_offset"),
            "HandleEpochRequest",
            "A peer asks where a leader epoch ends.",
        ),
        "list_offsets": Shape(
            ("current_leader_epoch", "which"),
            ("error", "offset"),
            "HandleOutOfRange",
            "A peer asks for the earliest or the latest offset.",
        ),
        "delete_records": Shape(("offset",), ("error",), "DeleteRecords", "A client deletes what lies before an offset."),
        "fetch_response": Shape(
            ("peer", "error", "hw", "log_start", "records", "diverging", "offsets"),
            (),
            "HandleFetchResponse",
            "The response to the fetch in flight to a peer. `offsets`: the responses to the two ListOffsets requests "
            "(earliest, latest) that follow an out-of-range error.",
        ),
        "offsets_for_leader_epoch_response": Shape(
            ("peer", "error", "leader_epoch", "end_offset"),
            (),
            "HandleEpochResponse",
            "The response to the OffsetsForLeaderEpoch request in flight to a peer.",
        ),
        "lose_response": Shape(
            ("peer",),
            (),
            "LoseResponse",
            "No response comes: the connection to a peer is closed, and the broker asks again.",
        ),
        "lag": Shape(("peers",), (), "ShrinkIsr", "The lag time of these members of the ISR runs out, and it is noticed."),
        "alter_partition_response": Shape(
            ("error", "partition_epoch", "isr"),
            (),
            "HandleAlterPartitionResponse",
            "The controller's response to the proposal in flight.",
        ),
        "retention": Shape(
            ("log_start",), (), "DeleteRecords", "A follower's retention removes what lies before an offset."
        ),
        "stop": Shape((), (), "Stop", "The process ends in order, starts again and has read no metadata yet."),
        "crash": Shape(
            ("hw", "log_end"),
            (),
            "Crash",
            "The process dies and starts again, with this checkpointed high watermark and the log up to this offset.",
        ),
    }
)

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "isr": "integers",
        "peers": "integers",
        "may_join": "boolean",
        "which": "word",
        "records": "records",
        "diverging": "pair",
        "offsets": "pair",
    }
)
"""What an argument is; one that is not named here is an integer. A record is [base offset, last offset, epoch], a pair may
be null."""

LOSE_TAIL, ACKS_ALL, LOG_STARTS, SEGMENTS, BATCHES = "lose_tail", "acks_all", "log_starts", "segments", "batches"
LAG_APART = "lag_apart"
EXTRAS: Mapping[str, str] = MappingProxyType(
    {
        LOSE_TAIL: "a crash may lose the end of the log: `log_end` below the log end",
        LOG_STARTS: "a leader's log start above 0, in its fetch responses and its earliest offset",
        SEGMENTS: "what lies before a log start is gone, also after a crash: no record shares its segment",
        ACKS_ALL: "an append with acks -1, and the responses in `produced`",
        BATCHES: "batches of several records in a fetch response; what is reported is seen by a consumer's read",
        LAG_APART: "the lag time of some members of the ISR runs out, while others are behind as well",
    }
)
"""What more a broker may be able to do."""

REPORTED: Mapping[str, str] = MappingProxyType(
    {
        "result": "what the step's request was answered with; null for a step that is no request",
        "requests": "by peer, the request in flight to it: a fetch, or an OffsetsForLeaderEpoch request; it stays until it "
        "is responded to or lost",
        "proposal": "the AlterPartition request in flight, null for none",
        "produced": "the waiting appends with acks -1 that this step answered: base offset and error of each",
        "fetched": "by peer, the waiting fetch that this step completed: what it was answered with, as in the `result` of "
        "that fetch",
        "leo": "the log end offset",
        "hw": "the high watermark",
        "log_start": "the log start offset",
        "ends": "for each leader epoch from 0 to the highest the broker has heard of, the epoch and end offset that "
        "its epoch cache answers",
    }
)

BY_PEER = frozenset({"requests", "fetched"})
"""Fields that are objects with a value for each peer that has one."""

NEEDED = frozenset({"metadata"})
"""Without these nothing can be driven."""


EVERYTHING = Capabilities("everything", frozenset({*STEPS, *EXTRAS}), frozenset(REPORTED))


class Opening(NamedTuple):
    """How a partition is set up: who has replicas of it besides the broker under test, and its min.insync.replicas."""

    peers: tuple[int, ...] = (2,)
    min_insync_replicas: int = 1


BrokerCase = DriveCase[Opening]
"""A path to be played on a partition of its own: steps from an empty replica that has read no metadata."""


def action_of(step: Step) -> str:
    """The action of catalog.toml that a step is."""
    match step:
        case ("metadata", leader, *_) if leader == BROKER:
            return "BecomeLeader"
        case ("fetch_response", *_, diverging, _) if diverging is not None:
            return "HandleDivergingResponse"
        case ("fetch_response", *_, offsets) if offsets is not None:
            return "HandleOutOfRange"
        case _:
            return STEPS[step[0]].action


def step_json(step: Step) -> dict[str, Any]:
    """A step as the JSON object that a driven program reads."""
    name, *arguments = step
    return {"step": name, **dict(zip(STEPS[name].takes, arguments, strict=True))}


def step_of(line: Mapping[str, Any]) -> Step:
    """The step that a JSON object spells; lists become tuples. Raises KeyError for one that spells none."""
    name = line["step"]
    return (name, *(frozen(line[field]) for field in STEPS[name].takes))


def is_step(found: Any) -> bool:
    """Whether a value read from somewhere is a step of the contract."""
    if not isinstance(found, tuple) or not found or found[0] not in STEPS or len(found) != 1 + len(STEPS[found[0]].takes):
        return False
    return all(_IS[KINDS.get(name, "integer")](value) for name, value in zip(STEPS[found[0]].takes, found[1:], strict=True))


_IS: Mapping[str, Callable[[Any], bool]] = {
    "integer": is_integer,
    "integers": is_integers,
    "boolean": lambda value: isinstance(value, bool),
    "word": lambda value: value in (EARLIEST, LATEST),
    "records": lambda value: isinstance(value, tuple | list) and all(is_integers(one, 3) for one in value),
    "pair": lambda value: value is None or is_integers(value, 2),
}


def lacks(
    capabilities: Capabilities, step: Step, log_end: int, log_start: int = 0, lagging: Collection[int] = ()
) -> str | None:
    """What of the contract this step needs and the broker does not have; the log ends and starts there before it, and
    those members of its ISR are behind."""
    if step[0] not in capabilities.can:
        return str(step[0])
    if step[0] == "crash" and step[2] < log_end and LOSE_TAIL not in capabilities.can:
        return LOSE_TAIL
    if step[0] == "crash" and log_start > 0 and SEGMENTS not in capabilities.can:
        return SEGMENTS
    if step[0] == "append" and step[1] == -1 and ACKS_ALL not in capabilities.can:
        return ACKS_ALL
    if step[0] == "fetch_response" and (step[4] > 0 or (step[7] or (0,))[0] > 0) and LOG_STARTS not in capabilities.can:
        return LOG_STARTS
    if step[0] == "fetch_response" and BATCHES not in capabilities.can and any(base != last for base, last, _ in step[5]):
        return BATCHES
    if step[0] == "lag" and set(step[1]) != set(lagging) and LAG_APART not in capabilities.can:
        return LAG_APART
    return None
