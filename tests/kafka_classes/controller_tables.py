"""The controller's state and records as the tables print them, and where a sequence begins.

A sequence does not say which values of a topic are its own where they equal the default: the first step that would tell is
looked up.
"""

from itertools import groupby
from typing import Any

from tests.kafka_classes.replay import Sequence, Step
from tidegauge.impl.controller.brokers import BrokerHeartbeatState, Heartbeats
from tidegauge.impl.controller.features import Features, partition_change_record_version, profile_in_force
from tidegauge.impl.controller.partition_registration import PartitionRegistration, RecoveryState
from tidegauge.impl.controller.quorum_controller import QuorumController
from tidegauge.impl.controller.records import (
    TOPIC,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    ConfigResource,
    ControllerRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from tidegauge.impl.controller.replication_control import (
    CLUSTER,
    MIN_IN_SYNC_REPLICAS,
    UNCLEAN_LEADER_ELECTION,
    BrokerRegistration,
    ReplicationControl,
    effective_min_isr,
    min_isr,
    unclean_enabled,
)
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.profiles import Profile
from tidegauge.impl.topic_partition import TopicPartition

REMOVED = "deleted:"


def named(text: str) -> TopicPartition:
    """A partition as the tables name it."""
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def partition_of(state: dict[str, Any]) -> PartitionRegistration:
    """A partition from what the tables print."""
    return PartitionRegistration(
        tuple(state["replicas"]),
        tuple(state["isr"]),
        state["leader"],
        state["leaderEpoch"],
        state["partitionEpoch"],
        RecoveryState[state.get("recovery", "RECOVERED")],
        tuple(state["elr"]),
        tuple(state["lastKnownElr"]),
        tuple(state.get("adding", ())),
        tuple(state.get("removing", ())),
        tuple(state.get("dirs", ())),
    )


def printed_partition(p: PartitionRegistration) -> dict[str, Any]:
    """A partition."""
    optional = {"adding": p.adding, "removing": p.removing, "dirs": p.directories}
    state: dict[str, Any] = {
        "replicas": list(p.replicas),
        "isr": list(p.isr),
        "leader": p.leader,
        "leaderEpoch": p.leader_epoch,
        "partitionEpoch": p.partition_epoch,
        "elr": list(p.elr),
        "lastKnownElr": list(p.last_known_elr),
        **{key: list(value) for key, value in optional.items() if value},
    }
    return state if p.recovery is RecoveryState.RECOVERED else {**state, "recovery": p.recovery.name}


def brokers_of(state: dict[str, Any]) -> FrozenMap[int, BrokerRegistration]:
    """All registrations from what the tables print. An incarnation that nobody names is a number of the broker's own."""
    return FrozenMap(
        (
            int(b),
            BrokerRegistration(r["epoch"], r["fenced"], r["shutdown"], tuple(r.get("dirs", ())), -int(b), r["regOffset"]),
        )
        for b, r in state.items()
    )


def printed_broker(b: BrokerRegistration) -> dict[str, Any]:
    """A registration."""
    state: dict[str, Any] = {
        "epoch": b.epoch,
        "fenced": b.fenced,
        "shutdown": b.in_controlled_shutdown,
        "regOffset": b.offset,
    }
    return {**state, "dirs": list(b.directories)} if b.directories else state


def printed_config(control: ReplicationControl, topic: str) -> dict[str, Any]:
    """What is in force for a topic."""
    return {
        "minIsr": min_isr(control, topic),
        "effectiveMinIsr": effective_min_isr(control, TopicPartition(topic, 0)),
        "unclean": unclean_enabled(control, topic),
    }


def printed(control: ReplicationControl) -> dict[str, Any]:
    """The whole state."""
    return {
        "brokers": {str(b): printed_broker(registration) for b, registration in control.brokers.items()},
        "parts": {str(tp): printed_partition(p) for tp, p in control.partitions.items()},
        "config": {topic: printed_config(control, topic) for topic in {tp.topic for tp in control.partitions}},
        "feature": {"level": control.features.metadata_version, "elr": control.features.elr},
    }


def printed_record(control: ReplicationControl, record: ControllerRecord) -> dict[str, Any]:
    """A record; `control` is the state before the batch."""
    match record:
        case PartitionChangeRecord(tp, fields):
            changed = {
                "isr": fields.isr,
                "leader": fields.leader,
                "recovery": None if fields.recovery is None else fields.recovery.name,
                "elr": fields.elr,
                "lastKnownElr": fields.last_known_elr,
                "replicas": fields.replicas,
                "adding": fields.adding,
                "removing": fields.removing,
                "dirs": fields.directories,
            }
            written = {k: list(v) if isinstance(v, tuple) else v for k, v in changed.items() if v is not None}
            version = partition_change_record_version(control.features)
            return {"r": "change", "ver": version, "t": tp.topic, "p": tp.partition, **written}
        case RegisterBrokerRecord(b, epoch, _, fenced, shutdown, _):
            return {"r": "register", "b": b, "epoch": epoch, "fenced": fenced, "shutdown": shutdown}
        case BrokerRegistrationChangeRecord(b, epoch, fenced, shutdown, directories):
            changed: dict[str, Any] = {"r": "broker", "b": b, "epoch": epoch}
            if fenced is not None:
                changed["fenced"] = fenced
            if shutdown is not None:
                changed["shutdown"] = shutdown
            if directories:
                changed["dirs"] = list(directories)
            return changed
        case UnregisterBrokerRecord(b, _):
            return {"r": "unregister", "b": b}
        case TopicRecord(t):
            return {"r": "topic", "t": t}
        case PartitionRecord(tp, _):
            return {"r": "partition", "t": tp.topic, "p": tp.partition}
        case RemoveTopicRecord(t):
            return {"r": "removeTopic", "t": t}
        case ConfigRecord(resource, key, value):
            return {"r": "config", "on": resource.type, "name": resource.name, "key": key, "value": value}
        case ClearElrRecord(t):
            return {"r": "clearElr", "t": t}
        case FeatureLevelRecord(name, level):
            return {"r": "feature", "name": name, "level": level}


def in_order(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Topics, partitions and keys come in the order of a hash map; two records of one partition in that of the batch."""
    runs = (tuple(run) for _, run in groupby(records, key=lambda record: record["r"]))
    return [record for run in runs for record in sorted(run, key=_place)]


def _place(record: dict[str, Any]) -> tuple[Any, ...]:
    return record.get("t", ""), record.get("p", 0), record.get("key", ""), record.get("name", "")


def stale_index(control: ReplicationControl) -> dict[str, list[str]]:
    """Entries of the index that the ELRs do not have."""
    stale: dict[str, set[str]] = {}
    for (broker, topic), numbers in control.brokers_to_elrs.items():
        for number in numbers:
            partition = control.partitions.get(TopicPartition(topic, number))
            if partition is None or broker not in partition.elr:
                stale.setdefault(str(broker), set()).add(f"{topic or REMOVED}-{number}")
    return {b: sorted(tps) for b, tps in stale.items()}


def expected_stale(step: Step) -> dict[str, list[str]]:
    """The same as the tables have it: which of the deleted topics it was is forgotten."""
    listed = step.get("staleElrIndex", {})
    return {b: sorted({_forgotten(tp) for tp in tps}) for b, tps in listed.items()}


def _forgotten(tp: str) -> str:
    return f"{REMOVED}-{named(tp).partition}" if tp.startswith(REMOVED) else tp


def reveals_own_value(sequence: Sequence, topic: str, key: str, value: str) -> bool:
    """Whether a topic has a value of its own that equals the default's: the first step that would tell."""
    for step in sequence["steps"]:
        if step["op"] == "deleteTopic" and step["t"] == topic and step["res"] == "NONE":
            return False
        if step["op"] != "config" or step["res"] != "NONE" or step["key"] != key:
            continue
        if step["on"] == TOPIC and step["name"] == topic:
            wrote = any(r["r"] == "config" for r in step["records"])
            return wrote if step["value"] is None else not wrote
        if step["on"] != TOPIC and step["name"] == "" and step["value"] is not None and step["value"].lower() != value:
            return topic not in step.get("config", {})
    return False


def initial_configs(sequence: Sequence) -> FrozenMap[ConfigResource, FrozenMap[str, str]]:
    """Topics whose values differ from the default have their own; with ELR on, the cluster has one, too."""
    static = sequence["static"].get(MIN_IN_SYNC_REPLICAS, "1")
    configs: dict[ConfigResource, FrozenMap[str, str]] = {}
    if sequence["init"]["feature"]["elr"]:
        configs[CLUSTER] = FrozenMap([(MIN_IN_SYNC_REPLICAS, static)])
    for topic, seen in sequence["init"]["config"].items():
        in_force_now = {MIN_IN_SYNC_REPLICAS: str(seen["minIsr"]), UNCLEAN_LEADER_ELECTION: str(seen["unclean"]).lower()}
        defaults = {MIN_IN_SYNC_REPLICAS: static, UNCLEAN_LEADER_ELECTION: "false"}
        own = {
            key: value
            for key, value in in_force_now.items()
            if value != defaults[key] or reveals_own_value(sequence, topic, key, value)
        }
        if own:
            configs[ConfigResource(TOPIC, topic)] = FrozenMap(own.items())
    return FrozenMap(configs.items())


def start(sequence: Sequence, profile: Profile) -> QuorumController:
    """Brokers that are not fenced have called; nobody has reported an offset since it registered."""
    init = sequence["init"]
    features = Features(init["feature"]["level"], init["feature"]["elr"])
    brokers = brokers_of(init["brokers"])
    control = ReplicationControl(
        brokers,
        FrozenMap((named(name), partition_of(p)) for name, p in init["parts"].items()),
        profile_in_force(profile, features),
        int(sequence["static"].get(MIN_IN_SYNC_REPLICAS, "1")),
        features=features,
        configs=initial_configs(sequence),
    )
    reported = FrozenMap((b, BrokerHeartbeatState(r.fenced)) for b, r in brokers.items())
    sessions = frozenset((b, r.epoch) for b, r in brokers.items() if not r.fenced)
    return QuorumController(control, Heartbeats(reported, sessions), init["offset"])
