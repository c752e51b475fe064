"""impl.controller against ReplicationControlManager and its neighbours: responses, records, state, of every operation."""

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.kafka_classes.controller_tables import expected_stale, in_order, printed, printed_record, stale_index, start
from tests.kafka_classes.replay import Disagreement, Replay, Sequence, Step, compare
from tidegauge.impl import releases, rules
from tidegauge.impl.controller import brokers as heartbeats_
from tidegauge.impl.controller import configurations, quorum_controller, requests
from tidegauge.impl.controller.brokers import BrokerHeartbeat
from tidegauge.impl.controller.configurations import ConfigChange
from tidegauge.impl.controller.features import ELR_VERSION, METADATA_VERSION, FeatureUpdate
from tidegauge.impl.controller.partition_change import Election
from tidegauge.impl.controller.partition_registration import RecoveryState
from tidegauge.impl.controller.quorum_controller import QuorumController
from tidegauge.impl.controller.records import ConfigResource, ControllerRecord, ControllerResult, RegisterBrokerRecord
from tidegauge.impl.controller.replication_control import AlterPartition, Proposal, ReplicationControl, alter_partition
from tidegauge.impl.controller.requests import DirectoryAssignment, Reassignment
from tidegauge.impl.errors import ERROR_NAMES
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import AlterPartitionRequest
from tidegauge.impl.profiles import Profile, Rules
from tidegauge.impl.topic_partition import TopicPartition

LATEST = {"4.1.1": 27, "4.3.1": 30}
"""The highest metadata.version that a release knows."""

THROWN = {"java.lang.RuntimeException": "UNKNOWN_SERVER_ERROR"}
"""The class lets out an exception; a process says that in its response, and resigns."""

FEATURES = {"elr": ELR_VERSION, "metadata.version": METADATA_VERSION}
LISTED = ("brokers", "parts", "config")


class Bench(NamedTuple):
    """The controller under test, the highest metadata.version, the incarnation each broker has."""

    controller: QuorumController
    latest: int
    incarnations: FrozenMap[int, int]

    @property
    def control(self) -> ReplicationControl:
        """The state that the metadata log makes."""
        return self.controller.control


class Outcome(NamedTuple):
    """What a step gave: the bench after it, the records it wrote, a result, an error code."""

    bench: Bench
    records: tuple[ControllerRecord, ...]
    result: Any = None
    error: int = rules.NONE


def tp_of(topic: str | None, partition: int) -> TopicPartition:
    """A partition of a request; no topic stands for an id that nobody knows."""
    return TopicPartition(topic or "?", partition)


def _appended(bench: Bench, records: tuple[ControllerRecord, ...], result: Any, error: int = rules.NONE) -> Outcome:
    controller = quorum_controller.write_records(bench.controller, records)
    return Outcome(bench._replace(controller=controller), records, result, error)


def _noop(bench: Bench, step: Step) -> Outcome:
    return Outcome(bench, ())


def _register(bench: Bench, step: Step) -> Outcome:
    b = step["b"]
    known = bench.control.brokers.get(b)
    beats = bench.controller.heartbeats
    if known is not None and not step["session"]:
        bench = bench._replace(
            controller=bench.controller._replace(heartbeats=heartbeats_.expire_session(beats, (b, known.epoch)))
        )
    before = bench.incarnations.get(b)
    incarnation = bench.controller.end + 1 if step["newIncarnation"] or before is None else before
    asked = RegisterBrokerRecord(b, 0, incarnation, directories=tuple(f"{b}{letter}" for letter in step["dirs"]))
    previous = step["previousEpoch"] if step["detect"] else rules.UNDEFINED
    controller, (records, error) = quorum_controller.register_broker(bench.controller, asked, previous)
    bench = bench._replace(controller=controller)
    if error != rules.NONE:
        return Outcome(bench, records, None, error)
    bench = bench._replace(incarnations=bench.incarnations.put(b, incarnation))
    return Outcome(bench, records, {"epoch": controller.control.brokers[b].epoch})


def _unregister(bench: Bench, step: Step) -> Outcome:
    controller, (records, error) = quorum_controller.unregister_broker(bench.controller, step["b"])
    return Outcome(bench._replace(controller=controller), records, None, error)


def _heartbeat(bench: Bench, step: Step) -> Outcome:
    request = BrokerHeartbeat(
        step["b"], step["epoch"], step["offset"], step["wantFence"], step["wantShutDown"], tuple(step.get("offline", ()))
    )
    controller, (records, response) = quorum_controller.process_broker_heartbeat(bench.controller, request)
    result = None
    if response.error == rules.NONE:
        result = {
            "caughtUp": response.caught_up,
            "fenced": response.fenced,
            "inControlledShutdown": response.in_controlled_shutdown,
            "shouldShutDown": response.should_shut_down,
        }
    return Outcome(bench._replace(controller=controller), records, result, response.error)


def _session_expires(bench: Bench, step: Step) -> Outcome:
    """Sessions of incarnations that are gone are over, too. Which of several is found first is a hash map's order."""
    controller = bench.controller
    registered = {(b, r.epoch) for b, r in bench.control.brokers.items() if b != step["b"]}
    beats = controller.heartbeats
    for session in beats.sessions - registered:
        beats = heartbeats_.expire_session(beats, session)
    controller = controller._replace(heartbeats=beats)
    listed = [(r["b"], r["epoch"]) for r in step["records"] if r["r"] == "broker"]
    written: tuple[ControllerRecord, ...] = ()
    for session in sorted(beats.expired, key=lambda s: listed.index(s) if s in listed else len(listed)):
        controller, (records, _) = quorum_controller.fence_stale_broker(controller, session)
        written += records
    return Outcome(bench._replace(controller=controller), written, bool(beats.expired))


def _alter_partition(bench: Bench, step: Step) -> Outcome:
    proposals = []
    for ask in step["ask"]:
        members = ask["isr"]
        isr = tuple(members) if step["version"] < 3 else tuple(b for b, _ in members)
        epochs = () if step["version"] < 3 else tuple(epoch for _, epoch in members)
        proposal = AlterPartitionRequest(step["b"], ask["leaderEpoch"], ask["partitionEpoch"], isr, epochs)
        proposals.append(Proposal(tp_of(ask["t"], ask["p"]), proposal, RecoveryState[ask["recovery"]]))
    records, altered = alter_partition(bench.control, AlterPartition(step["b"], step["epoch"], tuple(proposals)))
    if altered.error != rules.NONE:
        return Outcome(bench, (), None, altered.error)
    result = []
    for ask, response in zip(step["ask"], altered.responses, strict=True):
        row = {"t": ask["t"], "p": ask["p"], "error": ERROR_NAMES[response.error]}
        if response.error == rules.NONE:
            row |= {"leader": step["b"], "leaderEpoch": response.leader_epoch, "partitionEpoch": response.partition_epoch}
            row |= {"isr": list(response.isr), "recovery": ask["recovery"]}
        result.append(row)
    return _appended(bench, records, result)


def _errors(errors: tuple[tuple[TopicPartition, int], ...]) -> list[list[Any]]:
    return [[tp.topic, tp.partition, ERROR_NAMES[error]] for tp, error in errors]


def _elect_leaders(bench: Bench, step: Step) -> Outcome:
    asked = None if step["ask"] is None else tuple(tp_of(t, p) for t, p in step["ask"])
    records, errors = requests.elect_leaders(bench.control, Election[step["type"]], asked)
    return _appended(bench, records, _errors(errors))


def _balance_leaders(bench: Bench, step: Step) -> Outcome:
    return _appended(bench, requests.balance_leaders(bench.control).records, None)


def _elect_unclean_leaders(bench: Bench, step: Step) -> Outcome:
    return _appended(bench, requests.elect_unclean_leaders(bench.control).records, None)


def _by_error(bench: Bench, result: ControllerResult[int]) -> Outcome:
    return _appended(bench, result.records, ERROR_NAMES[result.response])


def _config(bench: Bench, step: Step) -> Outcome:
    change = ConfigChange(ConfigResource(step["on"], step["name"]), step["key"], step["value"])
    return _by_error(bench, configurations.incremental_alter_configs(bench.control, (change,)))


def _feature(bench: Bench, step: Step) -> Outcome:
    update = FeatureUpdate(FEATURES[step["name"]], step["level"], step["upgrade"])
    return _by_error(bench, configurations.update_features(bench.control, update, bench.latest))


def _reassign(bench: Bench, step: Step) -> Outcome:
    asked = tuple(
        Reassignment(tp_of(ask["t"], ask["p"]), None if ask["replicas"] is None else tuple(ask["replicas"]))
        for ask in step["ask"]
    )
    records, errors = requests.alter_partition_reassignments(bench.control, asked, allow_rf_change=step["allowRfChange"])
    return _appended(bench, records, _errors(errors))


def _assign_dirs(bench: Bench, step: Step) -> Outcome:
    asked = DirectoryAssignment(step["b"], step["epoch"], step["dir"], tp_of(step["t"], step["p"]))
    records, error = requests.assign_replicas_to_dirs(bench.control, asked)
    if ERROR_NAMES[error] in {"UNSUPPORTED_VERSION", "STALE_BROKER_EPOCH"}:
        return Outcome(bench, (), None, error)
    return _appended(bench, records, ERROR_NAMES[error])


def _create_topic(bench: Bench, step: Step) -> Outcome:
    assignment = tuple(map(tuple, step["assignment"]))
    return _by_error(bench, requests.create_topic(bench.control, step["t"], assignment, step["topicConfig"]))


def _delete_topic(bench: Bench, step: Step) -> Outcome:
    return _by_error(bench, requests.delete_topic(bench.control, step["t"]))


OPERATIONS = {
    "noop": _noop,
    "register": _register,
    "unregister": _unregister,
    "heartbeat": _heartbeat,
    "sessionExpires": _session_expires,
    "alterPartition": _alter_partition,
    "electLeaders": _elect_leaders,
    "balanceLeaders": _balance_leaders,
    "electUncleanLeaders": _elect_unclean_leaders,
    "config": _config,
    "feature": _feature,
    "reassign": _reassign,
    "assignDirs": _assign_dirs,
    "createTopic": _create_topic,
    "deleteTopic": _delete_topic,
}


def expect(expected: dict[str, Any], step: Step) -> None:
    """A step says what is different after it."""
    for key in LISTED:
        for name, value in step.get(key, {}).items():
            if value is None:
                expected[key].pop(name)
            else:
                expected[key][name] = value
    if "feature" in step:
        expected["feature"] = levels(step["feature"])


def levels(feature: dict[str, Any]) -> dict[str, Any]:
    return {key: feature[key] for key in ("level", "elr")}


def _result(step: Step, result: Any) -> Any:
    """The order of partitions in a response is that of a hash map, if nobody named them."""
    return sorted(result) if step["op"] == "electLeaders" else result


def replay_as(change: Callable[[Profile], Profile]) -> Replay:
    """Replays a sequence, resting on nothing but its beginning, with the release's profile changed so."""

    def replay(sequence: Sequence, _: Counter[str]) -> tuple[int, Disagreement | None]:
        seed, init, release = sequence["seed"], sequence["init"], sequence["v"]
        controller = start(sequence, change(releases.profile_of_release(release)))
        incarnations = FrozenMap((b, r.incarnation) for b, r in controller.control.brokers.items())
        bench = Bench(controller, LATEST[release], incarnations)
        expected = {**{key: dict(init[key]) for key in LISTED}, "feature": levels(init["feature"])}
        state = printed(bench.control)
        if (disagreement := compare(seed, -1, "init", expected, state)) is not None:
            return 0, disagreement
        for number, step in enumerate(sequence["steps"]):
            before = bench.control
            bench, records, result, error = OPERATIONS[step["op"]](bench, step)
            expect(expected, step)
            state = state if bench.control is before else printed(bench.control)
            kafka = {
                "error": step.get("err") or THROWN.get(step.get("thrown", ""), "NONE"),
                "result": _result(step, step.get("res")),
                "records": in_order(step["records"]),
                "stale": expected_stale(step),
                **expected,
            }
            ours = {
                "error": ERROR_NAMES[error],
                "result": _result(step, result),
                "records": in_order([printed_record(before, record) for record in records]),
                "stale": stale_index(bench.control),
                **state,
            }
            if (disagreement := compare(seed, number, step, kafka, ours)) is not None:
                return number, disagreement
        return len(sequence["steps"]), None

    return replay


def replay_with(_: Rules) -> Replay:
    """The controller decides nothing by the rules of impl.rules."""
    return replay_as(lambda profile: profile)
