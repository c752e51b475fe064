"""impl.server against ReplicaManager: produce, fetch and DeleteRecords requests that are answered at once or wait."""

from collections import Counter
from itertools import groupby
from typing import Any, NamedTuple

from tests.kafka_classes.replay import Disagreement, Replay, Sequence, Step, compare
from tidegauge.impl import rules
from tidegauge.impl.errors import ERROR_CODES, ERROR_NAMES
from tidegauge.impl.fetch.fetcher_thread import BrokerEndPoint
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import (
    AlterPartitionResponse,
    Batch,
    BrokerState,
    ClientResponse,
    DeleteRecordsResponse,
    FetchedPartitions,
    FetchParams,
    FetchRequest,
    PartitionFetch,
    PartitionRead,
    ProducedBatch,
    ProduceResponse,
)
from tidegauge.impl.profiles import Rules, Setup
from tidegauge.impl.replica import partition as p
from tidegauge.impl.replica.fetcher import append_records_to_follower
from tidegauge.impl.replica.partition_state import Partition, PartitionState
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.client_requests import append_records, delete_records, fetch_messages
from tidegauge.impl.server.replica_manager import ReplicaManager, online_partition, take_responses, with_partition
from tidegauge.impl.server.role_changes import PartitionChange, apply_delta, handle_isr_response, maybe_shrink_isrs
from tidegauge.impl.topic_partition import TopicPartition

LOCAL = 1
EPOCH_OF_TIME = 1_000_000
"""The clock at t = 0: a time of 0 stays told apart from "now, at the start"."""
MEBIBYTE = 1 << 20

Proposal = tuple[TopicPartition, PartitionState]


class Bench(NamedTuple):
    """The broker under test, and the proposals its controller has not answered."""

    manager: ReplicaManager
    unanswered: tuple[Proposal, ...] = ()


def _tp(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def _epoch(value: int | None) -> int:
    return UNDEFINED if value is None else value


def _produce(setup: Setup, manager: ReplicaManager, step: Step, now: int) -> ReplicaManager:
    produced = FrozenMap((_tp(a["p"]), ProducedBatch(a["n"])) for a in reversed(step["ask"]))
    return append_records(setup, manager, step["id"], step["acks"], step["timeout"], produced, now)


def _fetch(setup: Setup, manager: ReplicaManager, step: Step, now: int) -> ReplicaManager:
    params = FetchParams(
        step["replica"],
        step["maxWait"],
        step["minBytes"],
        step.get("maxBytes", MEBIBYTE),
        read_committed=step["isolation"] == "TXN_COMMITTED",
    )
    asked = FrozenMap((_tp(a["p"]), _partition_fetch(step, a)) for a in step["ask"])
    return fetch_messages(setup, manager, step["id"], params, asked, now)


def _partition_fetch(step: Step, ask: dict[str, Any]) -> PartitionFetch:
    request = FetchRequest(
        step["replica"],
        _epoch(ask["currentLeaderEpoch"]),
        ask["off"],
        _epoch(ask["lastFetchedEpoch"]),
        ask["logStart"],
        step["brokerEpoch"],
    )
    return PartitionFetch(request, ask.get("maxBytes", MEBIBYTE))


def _delete(setup: Setup, manager: ReplicaManager, step: Step, now: int) -> ReplicaManager:
    offsets = FrozenMap((_tp(a["p"]), a["o"]) for a in step["ask"])
    return delete_records(setup, manager, step["id"], step["timeout"], offsets, now)


def _metadata(setup: Setup, manager: ReplicaManager, step: Step, replicas: tuple[int, ...], now: int) -> ReplicaManager:
    change = PartitionChange(step["leader"], step["leaderEpoch"], tuple(step["isr"]), step["partitionEpoch"], replicas)
    return apply_delta(setup, manager, FrozenMap(((_tp(step["p"]), change),)), now).manager


def _follower_append(setup: Setup, manager: ReplicaManager, step: Step) -> ReplicaManager:
    tp = _tp(step["p"])
    partition = manager.hosted[tp].partition
    batch = Batch(step["base"], step["base"] + step["n"] - 1, step["epoch"])
    log, _ = append_records_to_follower(setup, partition.log, (batch,), step["epoch"])
    return with_partition(manager, tp, partition._replace(log=log))


def _answered(setup: Setup, bench: Bench, step: Step, now: int) -> Bench:
    (tp, proposed), *rest = bench.unanswered
    if step["op"] == "alterPartitionOk":
        response = AlterPartitionResponse(rules.NONE, step["leaderEpoch"], step["partitionEpoch"], tuple(step["isr"]))
    else:
        response = AlterPartitionResponse(ERROR_CODES[step["error"]])
    manager, _ = handle_isr_response(setup, bench.manager, tp, proposed, response, now)
    return Bench(manager, tuple(rest))


def _broker_state(manager: ReplicaManager, step: Step) -> ReplicaManager:
    return manager._replace(
        metadata=tuple(
            BrokerState(b.broker_id, step["fenced"], epoch=None if step["fenced"] else 100 + b.broker_id)
            if b.broker_id == step["b"]
            else b
            for b in manager.metadata
        )
    )


def applied(setup: Setup, bench: Bench, step: Step, replicas: tuple[int, ...], now: int) -> Bench:
    manager = bench.manager
    match step["op"]:
        case "produce":
            manager = _produce(setup, manager, step, now)
        case "fetch":
            manager = _fetch(setup, manager, step, now)
        case "deleteRecords":
            manager = _delete(setup, manager, step, now)
        case "advance":
            manager = purgatory.expire_requests(
                setup, manager, now - 1
            )  # Kafka's mock timer: a deadline of now has not come
        case "metadata":
            manager = _metadata(setup, manager, step, replicas, now)
        case "followerAppend":
            manager = _follower_append(setup, manager, step)
        case "maybeShrinkIsr":
            manager = maybe_shrink_isrs(setup, manager, now)
        case "brokerState":
            manager = _broker_state(manager, step)
        case "alterPartitionOk" | "alterPartitionError":
            return _answered(setup, bench, step, now)
        case name:
            raise AssertionError(f"an operation this replay does not know: {name}")
    return bench._replace(manager=manager)


# What a step shows


def _proposals(before: ReplicaManager, after: ReplicaManager, step: Step) -> tuple[Proposal, ...]:
    """Partitions whose state became pending in this step: each is sent to the controller, in the order of a fetch."""
    states = {tp: hosted.partition.state for tp, hosted in before.hosted.items()}
    order = [_tp(a["p"]) for a in step.get("ask", ())] or list(after.hosted)
    return tuple(
        (tp, state)
        for tp in order
        if tp in after.hosted and (state := after.hosted[tp].partition.state).is_inflight and state != states.get(tp)
    )


def _submission(manager: ReplicaManager, tp: TopicPartition) -> dict[str, Any]:
    request = p.alter_partition_request(manager.hosted[tp].partition)
    return {
        "p": tp.partition,
        "isr": list(request.isr),
        "leaderEpoch": request.leader_epoch,
        "partitionEpoch": request.partition_epoch,
    }


def _read(tp: TopicPartition, read: PartitionRead) -> dict[str, Any]:
    response, records = read.response, read.response.records
    shown: dict[str, Any] = {
        "p": tp.partition,
        "error": ERROR_NAMES[response.error],
        "hw": response.hw,
        "ls": response.log_start,
    }
    if response.is_diverging:
        shown["div"] = [response.diverging_epoch, response.diverging_end]
    return {**shown, "records": [records[0].base, records[-1].last] if records else []}


def _response(answered: ClientResponse) -> list[dict[str, Any]]:
    match answered:
        case FetchedPartitions(_, reads):
            return [_read(tp, read) for tp, read in reads.items()]
        case DeleteRecordsResponse(_, deletes):
            return [
                {"p": tp.partition, "error": ERROR_NAMES[d.error], "lowWatermark": d.low_watermark}
                for tp, d in deletes.items()
            ]
        case ProduceResponse(_, appends, _, _):
            return [
                {"p": tp.partition, "error": ERROR_NAMES[a.error], "base": a.base_offset, "ls": a.log_start}
                for tp, a in sorted(appends.items())
            ]


def _partition(partition: Partition | None) -> dict[str, Any] | None:
    if partition is None:
        return None
    log = partition.log
    shown = {
        "leader": partition.is_leader,
        "leaderEpoch": partition.leader_epoch,
        "partitionEpoch": partition.partition_epoch,
        "isr": sorted(partition.state.isr),
        "maxIsr": sorted(partition.state.maximal_isr),
        "ls": log.start,
        "hw": log.hw,
        "leo": log.end,
    }
    if partition.is_leader:
        shown["leos"] = {str(r.broker_id): r.log_end for r in partition.remotes}
    return shown


def in_runs(done: list[dict[str, Any]], deadlines: dict[int, tuple[str, int]]) -> list[list[dict[str, Any]]]:
    """What timers ended: the timer's queue has no order for requests of one kind with the same deadline."""
    return [
        sorted(run, key=lambda answered: answered["id"])
        for _, run in groupby(done, key=lambda answered: deadlines[answered["id"]])
    ]


def state_of(manager: ReplicaManager) -> list[dict[str, Any] | None]:
    return [_partition(online_partition(manager, _tp(number))) for number in (0, 1)]


def _start(setup: Setup, sequence: Sequence) -> ReplicaManager:
    members = tuple(sequence["replicas"])
    manager = ReplicaManager(
        LOCAL,
        broker_epoch=101,
        metadata=tuple(BrokerState(b, epoch=100 + b) for b in (1, 2, 3)),
        live=FrozenMap((b, BrokerEndPoint(b, f"host{b}", 9092)) for b in (1, 2, 3)),
        record_bytes=8,
    )
    for number, state in enumerate(sequence["init"]):
        if state is not None:
            leader = LOCAL if state["leader"] else 2
            change = PartitionChange(leader, 0, members, 0, members)
            manager = apply_delta(setup, manager, FrozenMap(((_tp(number), change),)), EPOCH_OF_TIME).manager
    return manager


def replay_with(rules_: Rules) -> Replay:
    def replay(sequence: Sequence, excluded: Counter[str]) -> tuple[int, Disagreement | None]:
        setup = Setup(rules_, min_insync_replicas=sequence["minIsr"], replica_lag_time_max_ms=sequence["lagMax"])
        bench, replicas = Bench(_start(setup, sequence)), tuple(sequence["replicas"])
        deadlines: dict[int, tuple[str, int]] = {}
        for number, step in enumerate(sequence["steps"]):
            before = bench.manager
            bench = applied(setup, bench, step, replicas, step["t"] + EPOCH_OF_TIME)
            manager, answered = take_responses(bench.manager)
            sent = _proposals(before, manager, step)
            bench = Bench(manager, (*bench.unanswered, *sent))
            ours = {
                "done": [{"id": a.request, "res": _response(a)} for a in answered],
                "waiting": sorted((*manager.produces, *manager.fetches, *manager.deletes)),
                "submitted": [_submission(manager, tp) for tp, _ in sent],
                "st": state_of(manager),
            }
            kafka = {field: step.get(field, []) for field in ours}
            if "id" in step:
                deadlines[step["id"]] = (step["op"], step["t"] + step.get("timeout", step.get("maxWait")))
            if step["op"] == "advance":
                ours["done"], kafka["done"] = in_runs(ours["done"], deadlines), in_runs(kafka["done"], deadlines)
            found = compare(sequence["seed"], number, step["op"], kafka, ours)
            if found is not None:
                return number + 1, found
        return len(sequence["steps"]), None

    return replay
