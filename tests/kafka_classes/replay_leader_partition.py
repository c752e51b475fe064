"""impl.replica against Partition: roles, produce, fetch, ISR, AlterPartition, high and low watermark."""

from collections import Counter
from typing import Any, NamedTuple

from tests.kafka_classes.replay import Disagreement, Replay, Sequence, Step, compare, log_of, pairs
from tidegauge.impl import errors, rules
from tidegauge.impl.errors import ERROR_CODES, ERROR_NAMES
from tidegauge.impl.messages import AlterPartitionResponse, Batch, BrokerState, BrokerStates, FetchRequest, Isolation
from tidegauge.impl.profiles import Rules, Setup
from tidegauge.impl.replica import partition as p
from tidegauge.impl.replica.fetcher import append_records_to_follower
from tidegauge.impl.replica.partition_state import Partition, PartitionState, Replica
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.server.purgatory import high_watermark_incremented

LOCAL = 1
NOT_LEADER = -2
EVERYTHING = 1 << 20
EPOCH_OF_TIME = 1_000_000
"""The clock at t = 0: a time of 0 stays told apart from "now, at the start"."""

EXCLUDED = {
    "currentLeaderEpoch -1": "present and -1: on the wire -1 is absent, so no request can carry it",
}

CLASSES = {
    rules.OFFSET_OUT_OF_RANGE: "org.apache.kafka.common.errors.OffsetOutOfRangeException",
    rules.NOT_LEADER_OR_FOLLOWER: "org.apache.kafka.common.errors.NotLeaderOrFollowerException",
    rules.FENCED_LEADER_EPOCH: "org.apache.kafka.common.errors.FencedLeaderEpochException",
    rules.UNKNOWN_LEADER_EPOCH: "org.apache.kafka.common.errors.UnknownLeaderEpochException",
    errors.NOT_ENOUGH_REPLICAS: "org.apache.kafka.common.errors.NotEnoughReplicasException",
}


class Bench(NamedTuple):
    """The partition under test, what its broker's metadata cache says, and the proposals not answered yet."""

    partition: Partition
    metadata: BrokerStates
    unanswered: tuple[tuple[PartitionState, dict[str, Any]], ...] = ()


class Outcome(NamedTuple):
    """What a step gave: the bench after it, a result, an error code, proposals sent."""

    bench: Bench
    result: Any = None
    error: int = rules.NONE
    submitted: tuple[dict[str, Any], ...] = ()


COMPLETING = frozenset({"makeLeader", "fetch", "alterPartitionOk"})
"""Operations of Partition that look at what waits when the high watermark rose; a produce leaves that to its caller."""


def _completions(op: str, before: Partition, after: Partition) -> int:
    return int(op in COMPLETING and high_watermark_incremented(before, after))


def _submission(partition: Partition) -> dict[str, Any]:
    request = p.alter_partition_request(partition, own_epoch=101)
    return {
        "isr": [list(member) for member in zip(request.isr, request.isr_epochs, strict=True)],
        "leaderEpoch": request.leader_epoch,
        "partitionEpoch": request.partition_epoch,
    }


def _after(bench: Bench, partition: Partition, result: Any = None, error: int = rules.NONE) -> Outcome:
    """A step that may have proposed an ISR: a new pending state is sent to the controller."""
    was, now = bench.partition.state, partition.state
    sent = now.is_inflight and now != was
    bench = bench._replace(partition=partition)
    if not sent:
        return Outcome(bench, result, error)
    request = _submission(partition)
    return Outcome(bench._replace(unanswered=(*bench.unanswered, (now, request))), result, error, (request,))


def _fetch(setup: Setup, bench: Bench, step: Step, now: int) -> Outcome:
    request = FetchRequest(
        step["replica"],
        UNDEFINED if step["currentLeaderEpoch"] is None else step["currentLeaderEpoch"],
        step["off"],
        UNDEFINED if step["lastFetchedEpoch"] is None else step["lastFetchedEpoch"],
        step["logStart"],
        step["brokerEpoch"],
    )
    leo = bench.partition.log.end
    partition, response = p.fetch_records(
        setup,
        bench.partition,
        request,
        bench.metadata,
        now,
        EVERYTHING,
        isolation=Isolation(step["isolation"]),
        update=step["update"],
    )
    if response.error != rules.NONE:
        return _after(bench, partition, None, response.error)
    records = response.records
    result = {
        "hw": response.hw,
        "ls": response.log_start,
        "leo": leo,
        "lso": response.hw,
        "div": [response.diverging_epoch, response.diverging_end] if response.is_diverging else None,
        "records": [records[0].base, records[-1].last] if records else [],
    }
    return _after(bench, partition, result)


def _produce(setup: Setup, bench: Bench, step: Step, now: int) -> Outcome:
    partition, error, info = p.append_records_to_leader(setup, bench.partition, step["n"], step["acks"], bench.metadata, now)
    if error != rules.NONE:
        return _after(bench, partition, None, error)
    rose = partition.log.hw > bench.partition.log.hw
    result = {"first": info.first, "last": info.last, "hwChange": "INCREASED" if rose else "SAME"}
    return _after(bench, partition, result)


def _answered(setup: Setup, bench: Bench, response: AlterPartitionResponse, now: int) -> Outcome:
    (proposed, request), *rest = bench.unanswered
    partition, again = p.handle_alter_partition_response(setup, bench.partition, proposed, response, bench.metadata, now)
    bench = bench._replace(partition=partition, unanswered=tuple(rest))
    if not again:
        return Outcome(bench)
    return Outcome(bench._replace(unanswered=(*rest, (proposed, request))), submitted=(request,))


def _metadata(metadata: BrokerStates, step: Step) -> BrokerStates:
    changes: dict[str, dict[str, Any]] = {
        "fence": {"fenced": True},
        "unfence": {"fenced": False},
        "shuttingDown": {"shutting_down": True},
        "notShuttingDown": {"shutting_down": False},
        "notAlive": {"epoch": None},
        "brokerEpoch": {"epoch": step["brokerEpoch"]},
    }
    return tuple(
        broker._replace(**changes[step["what"]]) if broker.broker_id == step["broker"] else broker for broker in metadata
    )


def _delete_records(setup: Setup, bench: Bench, step: Step) -> Outcome:
    partition, error, requested = p.delete_records(setup, bench.partition, step["o"])
    if error != rules.NONE:
        return _after(bench, partition, None, error)
    low = p.low_watermark(partition, bench.metadata)
    return _after(bench, partition, {"requested": requested, "lowWatermark": low})


def applied(setup: Setup, bench: Bench, step: Step, now: int) -> Outcome:
    partition = bench.partition
    match step["op"]:
        case "makeLeader":
            members, replicas = tuple(step["isr"]), tuple(step["replicas"])
            led, new = p.make_leader(
                setup, partition, step["leaderEpoch"], step["partitionEpoch"], members, replicas, bench.metadata, now
            )
            return _after(bench, led, new)
        case "makeFollower":
            followed, grew = p.make_follower(partition, 2, step["leaderEpoch"], step["partitionEpoch"])
            return _after(bench, followed, grew)
        case "followerAppend":
            batches = tuple(Batch(*batch[:3]) for batch in step["batches"])
            log, _ = append_records_to_follower(setup, partition.log, batches, step["leaderEpoch"])
            return _after(bench, partition._replace(log=log))
        case "produce":
            return _produce(setup, bench, step, now)
        case "fetch":
            return _fetch(setup, bench, step, now)
        case "offsetForLeaderEpoch":
            epoch = UNDEFINED if step["currentLeaderEpoch"] is None else step["currentLeaderEpoch"]
            error, found, end = p.last_offset_for_leader_epoch(
                setup, partition, epoch, step["epoch"], only_leader=step["onlyLeader"]
            )
            return Outcome(bench, {"error": ERROR_NAMES[error], "epoch": found, "end": end})
        case "maybeShrinkIsr":
            return _after(bench, p.maybe_shrink_isr(setup, partition, now))
        case "alterPartitionOk":
            response = AlterPartitionResponse(rules.NONE, step["leaderEpoch"], step["partitionEpoch"], tuple(step["isr"]))
            return _answered(setup, bench, response, now)
        case "alterPartitionError":
            return _answered(setup, bench, AlterPartitionResponse(ERROR_CODES[step["error"]]), now)
        case "metadata":
            return Outcome(bench._replace(metadata=_metadata(bench.metadata, step)))
        case "deleteRecords":
            return _delete_records(setup, bench, step)
        case "enoughReplicas":
            enough, error = p.check_enough_replicas_reach_offset(setup, partition, step["requiredOffset"])
            return Outcome(bench, [enough, ERROR_NAMES[error]])
        case "advance" | "noop":
            return Outcome(bench)
        case name:
            raise AssertionError(f"an operation this replay does not know: {name}")


def _time(value: int) -> int | None:
    return None if value == 0 else value - EPOCH_OF_TIME


def _replica(replica: Replica) -> list[int | None]:
    return [
        replica.log_end,
        replica.log_start,
        replica.last_fetch_leader_end,
        _time(replica.last_fetch_time),
        _time(replica.last_caught_up_time),
        replica.broker_epoch,
    ]


def state_of(setup: Setup, bench: Bench) -> dict[str, Any]:
    partition, log = bench.partition, bench.partition.log
    return {
        "leader": partition.is_leader,
        "leaderEpoch": partition.leader_epoch,
        "partitionEpoch": partition.partition_epoch,
        "epochStart": None if partition.epoch_start == UNDEFINED else partition.epoch_start,
        "isr": sorted(partition.state.isr),
        "maxIsr": sorted(partition.state.maximal_isr),
        "inflight": partition.state.is_inflight,
        "underMinIsr": p.is_under_min_isr(setup, partition),
        "lw": p.low_watermark(partition, bench.metadata) if partition.is_leader else NOT_LEADER,
        "replicas": {str(r.broker_id): _replica(r) for r in partition.remotes},
        "log": {
            "ls": log.start,
            "leo": log.end,
            "hw": log.hw,
            "cache": pairs(log.cache),
            "batches": [list(batch[:3]) for batch in log.batches],
        },
    }


def _start(state: dict[str, Any]) -> Bench:
    partition = Partition(LOCAL, log_of(state["log"]), 2, state["leaderEpoch"], state["partitionEpoch"])
    return Bench(partition, tuple(BrokerState(b, epoch=100 + b) for b in range(1, 6)))


def replay_with(rules_: Rules) -> Replay:
    def replay(sequence: Sequence, excluded: Counter[str]) -> tuple[int, Disagreement | None]:
        setup = Setup(rules_, min_insync_replicas=sequence["minIsr"], replica_lag_time_max_ms=sequence["lagMax"])
        bench, compared = _start(sequence["init"]), 0
        for number, step in enumerate(sequence["steps"]):
            excluded.update(field for field in step if field in EXCLUDED)
            if step.get("currentLeaderEpoch") == UNDEFINED:
                excluded["currentLeaderEpoch -1"] += 1
                continue
            outcome = applied(setup, bench, step, step["t"] + EPOCH_OF_TIME)
            completions = _completions(step["op"], bench.partition, outcome.bench.partition)
            bench = outcome.bench
            ours = {
                "completions": completions,
                "st": state_of(setup, bench),
                "res": outcome.result,
                "err": CLASSES.get(outcome.error),
                "submitted": list(outcome.submitted),
            }
            kafka = {"st": step["st"], "res": step.get("res"), "err": step.get("err")}
            kafka["completions"] = step.get("completions", 0)
            kafka["submitted"] = step.get("submitted", [])
            found = compare(sequence["seed"], number, step["op"], kafka, ours)
            compared += 1
            if found is not None:
                return compared, found
        return compared, None

    return replay
