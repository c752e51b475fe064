"""What a controller and a disk say, a few lines each: proposals, registrations, topics created again, min.insync.replicas."""
# ruff: noqa: E501

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.kafka_logs.hand import CREATED, DELETED, FOLLOWS, LEADS, LOADED, STARTED, broker, events, request
from tidegauge.traces.kafka_logs import Capture, read
from tidegauge.traces.kafka_logs.capture import by_generation
from tidegauge.traces.kafka_logs.nodes.logged_broker import LoggedBroker, LoggedStep
from tidegauge.traces.kafka_logs.nodes.node import Node, changes_reported
from tidegauge.traces.kafka_logs.parsing.lines import Line
from tidegauge.traces.kafka_logs.passes import Reading, assign_topics


def test_a_proposal_the_controller_refuses_has_no_line_but_a_request(tmp_path: Path) -> None:
    """INELIGIBLE_REPLICA (107): told by the request log alone; an accepted one is put beside its line."""

    def proposed(isr: list[int], error: int) -> dict[str, Any]:
        part = {
            "partitionIndex": 0,
            "leaderEpoch": 0,
            "newIsrWithEpochs": [{"brokerId": one} for one in isr],
            "partitionEpoch": 0,
        }
        return request(
            56,
            {"brokerId": 1, "topics": [{"topicId": "T", "partitions": [part]}]},
            {"errorCode": 0, "topics": [{"topicId": "T", "partitions": [{"partitionIndex": 0, "errorCode": error}]}]},
        )

    who = "[QuorumController id=100] "
    registration = "PartitionRegistration(replicas=[1, 2], isr=[1], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0)"
    capture = broker(
        tmp_path,
        (
            "q",
            "ReplicationControlManager",
            f"{who}Replayed PartitionRecord for new partition alpha-0 with topic ID T and {registration}.",
        ),
        ("q", "ReplicationControlManager", f"{who}Node 1 has altered ISR for alpha-0 to [1, 2]."),
        (
            "q",
            "ReplicationControlManager",
            f"{who}partition change for alpha-0 with topic ID T: isr: [1] -> [1, 2], partitionEpoch: 0 -> 1",
        ),
        requests=(proposed([1, 2], 0), proposed([1, 3], 107)),
    )
    accepted, refused = events(capture, "AlterPartition")
    assert dict(accepted.fields) == {"peer": 1, "isr": (1, 2), "error": 0, "leader_epoch": 0, "partition_epoch": 0}
    assert (refused.fields["isr"], refused.fields["error"], refused.at) == ((1, 3), 107, "request.log:2")
    created, changed = events(capture, "ChangePartition")
    assert (created.node, created.fields["isr"], created.fields["clean"]) == (100, (1,), True)
    assert dict(changed.fields) == {
        "leader": 1,
        "replicas": (1, 2),
        "leader_epoch": 0,
        "partition_epoch": 1,
        "isr": (1, 2),
        "clean": True,
        "peer": 1,
    }


@pytest.mark.parametrize("topics", [["alpha"], [{"topicId": "T"}], [{"topicId": "T", "partitions": [{"errorCode": 0}]}], 1])
def test_a_response_to_a_proposal_that_is_not_of_kafkas_shape(topics: object, tmp_path: Path) -> None:
    """It is reported and left out, whoever reads it first."""
    capture = broker(
        tmp_path, STARTED, *LOADED, FOLLOWS, requests=(request(56, {"brokerId": 1, "topics": []}, {"topics": topics}),)
    )
    assert [(one.path, one.line) for one in capture.problems if "ALTER_PARTITION" in one.expected] == [("request.log", 1)]


def test_a_log_that_is_created_where_one_was_is_a_lost_disk(tmp_path: Path) -> None:
    """Only in another process, and only if nobody deleted it."""
    what = ("Start", "Stop", "Crash", "LoseDisk", "DeleteReplica")
    lost = events(broker(tmp_path / "a", STARTED, *LOADED, FOLLOWS, STARTED, *CREATED), *what)
    assert [event.event for event in lost] == ["Start", "Crash", "LoseDisk", "Start"]
    assert dict(lost[-1].fields) == {"clean": True, "leo": 0, "hw": 0, "log_start": 0, "epochs": []}
    removed = events(broker(tmp_path / "b", STARTED, *LOADED, FOLLOWS, DELETED, STARTED, *CREATED), *what)
    assert [event.event for event in removed] == ["Start", "DeleteReplica", "Start"]
    again = events(broker(tmp_path / "c", STARTED, *LOADED, FOLLOWS, DELETED, *CREATED), *what)
    assert [event.event for event in again] == ["Start", "DeleteReplica", "Start"]


def test_a_topic_that_is_created_again_is_another_topic(tmp_path: Path) -> None:
    """The same name, another id: a trace of its own, whose leader epochs begin anew. A restart is no new topic."""

    def created(topic_id: str) -> tuple[str, str, str]:
        return ("meta", "logger", f"[Broker id=1] Creating new partition alpha-0 with topic id {topic_id}.")

    led = (*LEADS[:2], LEADS[2].format("1"))
    again = [
        (
            thread,
            logger,
            message.replace("leader epoch 3", "leader epoch 0").replace("Some(T)", "Some(U)").replace(" 40", " 0"),
        )
        for thread, logger, message in (led,)
    ]
    one = broker(tmp_path / "a", STARTED, created("T"), *LOADED, led, STARTED, created("T"), *LOADED, led)
    assert [trace.name for trace in one.traces] == ["a/alpha-0"]
    two = broker(tmp_path / "b", STARTED, created("T"), *LOADED, led, DELETED, created("U"), *CREATED, *again)
    assert [trace.name for trace in two.traces] == ["b/alpha-0 (topic id T)", "b/alpha-0 (topic id U)"]
    first, second = ([event.event for event in trace.events] for trace in two.traces)
    assert first == ["Start", "BecomeLeader", "DeleteReplica"]
    assert second == ["Start", "BecomeLeader"]
    assert [trace.config.extra["topic_id"] for trace in two.traces] == ["T", "U"]


def test_a_step_is_of_the_topic_of_its_line_wherever_an_order_puts_it() -> None:
    """A broker that missed the first topic: its replica of the second is made before the line that names that topic."""
    brokers = {1: LoggedBroker(1), 2: LoggedBroker(2)}
    brokers[1].named["alpha"] = [((0, 10), "U")]
    brokers[2].named["alpha"] = [((0, 3), "T"), ((0, 10), "U")]
    for node, index in ((1, 12), (2, 5), (2, 12)):
        brokers[node].steps.append(LoggedStep(node, "alpha-0", "Start", {}, "", index, (0, index, 0, 0)))
    nodes: Any = [SimpleNamespace(id=node, broker=of_node) for node, of_node in brokers.items()]
    assign_topics(Reading(nodes, []))
    brokers[1].steps[0].place = (0, 7, 2, 0)
    grouped = {
        str(generation.topic_id): [step.node for step in of] for generation, of in by_generation(nodes, ["alpha-0"]).items()
    }
    assert grouped == {"T": [2], "U": [1, 2]}


def test_a_controller_says_who_registers_and_who_is_fenced(tmp_path: Path) -> None:
    """For each partition that the broker holds; a broker that shuts down in order is not fenced yet."""
    who = "[QuorumController id=100] "
    registration = (
        "PartitionRegistration(replicas=[1, 2], directories=[a, b], isr=[1, 2], removingReplicas=[], addingReplicas=[2], "
        "elr=[], lastKnownElr=[], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0)"
    )
    changed = f"{who}Replayed BrokerRegistrationChangeRecord modifying the registration for broker {{0}}: BrokerRegistrationChangeRecord(brokerId={{0}}, brokerEpoch=7, fenced={{1}}, inControlledShutdown=0)"
    lines = (
        f"{who}Replayed PartitionRecord for new partition alpha-0 with topic ID T and {registration}.",
        f"{who}partition change for alpha-0 with topic ID T: isr: [1, 2] -> [1], elr: [] -> [2], partitionEpoch: 0 -> 1",
        changed.format(2, 1),
        changed.format(3, 1),
        changed.format(1, 0),
        f"{who}Replayed RegisterBrokerRecord establishing a new incarnation of broker 2: RegisterBrokerRecord(brokerId=2, isMigratingZkBroker=false, incarnationId=I, brokerEpoch=9, endPoints=[])",
        changed.format(2, -1),
    )
    loggers = ("ReplicationControlManager",) * 2 + ("ClusterControlManager",) * 5
    capture = broker(tmp_path, *(("quorum", logger, text) for logger, text in zip(loggers, lines, strict=True)))
    first, second, *rest = (event for trace in capture.traces for event in trace.events)
    assert (first.fields["adding"], first.fields["elr"]) == ((2,), ())
    assert (second.fields["isr"], second.fields["elr"], second.fields["replicas"]) == ((1,), (2,), (1, 2))
    assert [(event.event, dict(event.fields)) for event in rest] == [
        ("FenceBroker", {"peer": 2}),
        ("RegisterBroker", {"peer": 2, "broker_epoch": 9}),
        ("UnfenceBroker", {"peer": 2}),
    ]


def test_a_changed_min_isr_is_told_by_controller_and_brokers(tmp_path: Path) -> None:
    """Each time it is another one; what a topic is created with, its first log says. Taken away, nobody knows what it is."""
    created = "Created log for partition alpha-0 in /d/alpha-0 with properties {min.insync.replicas=2, segment.ms=1}"
    who = "[DynamicConfigPublisher broker id=1] Updating topic alpha with new configuration : "
    read_lines = (
        "min.insync.replicas -> 2",
        "segment.ms -> 1,min.insync.replicas -> 1",
        "min.insync.replicas -> 1",
        "min.insync.replicas -> 2",
        "segment.ms -> 1",
    )
    lines = (
        ("meta", "LogManager", created),
        *LOADED[1:],
        *(("meta", "DynamicConfigPublisher", who + line) for line in read_lines),
        ("meta", "DynamicConfigPublisher", who.replace("alpha", "beta") + "min.insync.replicas -> 9"),
    )
    read_events = events(broker(tmp_path / "broker", *lines), "ReadConfig")
    assert [dict(event.fields) for event in read_events] == [{"min_isr": 1}, {"min_isr": 2}, {}]


def test_a_controller_tells_the_min_isr_that_it_has_written(tmp_path: Path) -> None:
    """Of the topic, from when it is there."""
    who = "[QuorumController id=100] Replayed "
    written = who + "ConfigRecord for ConfigResource(type=TOPIC, name='{}') which set configuration {} to {}"
    partition = (
        "PartitionRegistration(replicas=[1, 2], directories=[a, b], isr=[1, 2], removingReplicas=[], addingReplicas=[], "
        "elr=[], lastKnownElr=[], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0)"
    )
    texts = (
        written.format("alpha", "min.insync.replicas", 2),
        f"{who}PartitionRecord for new partition alpha-0 with topic ID T and {partition}.",
        written.format("alpha", "min.insync.replicas", 1),
        written.format("alpha", "retention.ms", 1),
        written.format("beta", "min.insync.replicas", 1),
        written.format("alpha", "min.insync.replicas", "null"),
    )
    loggers = ("ReplicationControlManager" if "Partition" in text else "ConfigurationControlManager" for text in texts)
    capture = broker(tmp_path, *(("quorum", logger, text) for logger, text in zip(loggers, texts, strict=True)))
    assert [dict(event.fields) for event in events(capture, "SetMinIsr")] == [{"min_isr": 1}, {}]


WHO = "[QuorumController id=100] "
QUORUM = "quorum-controller-event-handler"


def created(partition_epoch: int = 0, topic_id: str = "T", isr: str = "1, 2") -> tuple[str, str, str]:
    registration = f"PartitionRegistration(replicas=[1, 2], directories=[a, b], isr=[{isr}], removingReplicas=[], addingReplicas=[], elr=[], lastKnownElr=[], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch={partition_epoch})"
    return (
        QUORUM,
        "ReplicationControlManager",
        f"{WHO}Replayed PartitionRecord for new partition alpha-0 with topic ID {topic_id} and {registration}.",
    )


def changed(epoch: int, old: str, new: str) -> tuple[str, str, str]:
    return (
        QUORUM,
        "ReplicationControlManager",
        f"{WHO}partition change for alpha-0 with topic ID T: isr: [{old}] -> [{new}], partitionEpoch: {epoch - 1} -> {epoch}",
    )


def of_broker(record: str) -> tuple[str, str, str]:
    return (QUORUM, "ClusterControlManager", f"{WHO}Replayed something: {record}")


def fencing(by: int) -> tuple[str, str, str]:
    return of_broker(f"BrokerRegistrationChangeRecord(brokerId=2, brokerEpoch=7, fenced={by}, inControlledShutdown=0)")


REGISTERS = of_broker("RegisterBrokerRecord(brokerId=2, isMigratingZkBroker=false, brokerEpoch=7, endPoints=[])")
LOG = (REGISTERS, fencing(-1), created(), changed(1, "1, 2", "1"), fencing(1), fencing(-1), changed(2, "1", "1, 2"))
NEWS = (changed(3, "1, 2", "1"), fencing(1))


def shown(capture: Capture) -> list[tuple[str, object]]:
    kinds = ("ChangePartition", "RegisterBroker", "FenceBroker", "UnfenceBroker")
    return [(event.event, event.fields.get("partition_epoch")) for event in events(capture, *kinds)]


def test_a_controller_that_starts_again_replays_its_log(tmp_path: Path) -> None:
    """Everything once more, then what is new; from a snapshot, partitions as they are."""
    once = shown(broker(tmp_path / "once", STARTED, *LOG, *NEWS))
    assert [epoch for name, epoch in once if name == "ChangePartition"] == [0, 1, 2, 3]
    assert shown(broker(tmp_path / "replayed", STARTED, *LOG, STARTED, *LOG, *NEWS, STARTED, *LOG, *NEWS)) == once
    assert shown(broker(tmp_path / "snapshot", STARTED, *LOG, STARTED, created(2), REGISTERS, *NEWS)) == once


def test_a_partition_epoch_that_falls_within_a_process_is_no_replay(tmp_path: Path) -> None:
    """Lines of the controller are missing, or wrong: it is not judged."""
    capture = broker(tmp_path, STARTED, *LOG, changed(2, "1, 2", "1"))
    assert "partition epochs without a `partition change`" in [problem.seen for problem in capture.problems]


def of_quorum(text: str) -> tuple[str, str, str]:
    return (QUORUM, "QuorumController", f"{WHO}{text}")


ACTIVATED = of_quorum("Becoming the active controller at epoch 1, next write offset 1.")
RENOUNCED = of_quorum(
    "Renouncing the leadership due to a metadata log event. We were the leader at epoch 1, but in the new epoch 2, the leader is 101. Reverting to last stable offset 9."
)


def written(offset: int) -> tuple[str, str, str]:
    return of_quorum(
        f"Read-write operation maybeFenceStaleBroker(7) will be completed when the log reaches offset {offset}."
    )


def test_a_controller_that_gives_up_takes_back_what_it_did_not_commit(tmp_path: Path) -> None:
    """It stood still, and writes before it learns of the one that was elected; offset 9 and what is before it stay."""
    accepted = (QUORUM, "ReplicationControlManager", f"{WHO}Node 1 has altered ISR for alpha-0 to [2].")
    min_isr = f"{WHO}Replayed ConfigRecord for ConfigResource(type=TOPIC, name='alpha') which set configuration min.insync.replicas to 2"
    sets = (QUORUM, "ConfigurationControlManager", min_isr)
    again = of_broker("RegisterBrokerRecord(brokerId=2, isMigratingZkBroker=false, brokerEpoch=8, endPoints=[])")
    active = (STARTED, ACTIVATED, *LOG, written(9))
    never = (
        accepted,
        changed(3, "1, 2", "1"),
        written(10),
        fencing(1),
        sets,
        again,
        created(0, "U"),
        written(12),
        written(12),
    )
    late = (*NEWS, sets, again)
    once = broker(tmp_path / "once", *active, *late)
    kinds = ("ChangePartition", "RegisterBroker", "FenceBroker", "UnfenceBroker", "SetMinIsr", "AlterPartition")

    def reported(capture: Capture) -> list[tuple[str, object]]:
        return [(event.event, dict(event.fields)) for event in events(capture, *kinds)]

    assert len(reported(once)) == 9
    reverted = broker(tmp_path / "reverted", *active, *never, RENOUNCED, *late)
    assert (reported(reverted), reverted.problems) == (reported(once), once.problems)
    # What another one wrote is behind its activation, and stays.
    standby = broker(tmp_path / "standby", STARTED, *LOG, ACTIVATED, *never, RENOUNCED, *late)
    assert reported(standby) == reported(once)
    # A write that is not in the log by its line is not known to be lost.
    assert len(reported(broker(tmp_path / "unwritten", *active, changed(3, "1, 2", "1"), RENOUNCED))) == 6


def test_what_the_next_controller_had_is_given_back(tmp_path: Path) -> None:
    """It has more of the log than was known to be committed: the change is replayed, and its proposal was accepted."""
    accepted = (QUORUM, "ReplicationControlManager", f"{WHO}Node 1 has altered ISR for alpha-0 to [1].")
    change = changed(3, "1, 2", "1")
    capture = broker(tmp_path, STARTED, ACTIVATED, *LOG, written(9), accepted, change, written(10), RENOUNCED, change)
    altered, *later = events(capture, "AlterPartition", "ChangePartition")[-2:]
    assert (altered.event, altered.fields["isr"]) == ("AlterPartition", (1,))
    assert [dict(event.fields)["peer"] for event in later] == [1]


def test_of_several_controllers_the_one_that_did_not_start_again_is_read(tmp_path: Path) -> None:
    """The proposals that another accepted while it was active are the controller's, and come before their change."""
    accepted = (QUORUM, "ReplicationControlManager", f"{WHO}Node 1 has altered ISR for alpha-0 to [1, 2].")
    once = shown(broker(tmp_path / "once", STARTED, *LOG, *NEWS))
    restarted = (STARTED, *LOG[:-1], accepted, LOG[-1], STARTED, *LOG, *NEWS)
    for node, lines in ((101, restarted), (102, (STARTED, *LOG, *NEWS))):
        own = ((thread, logger, text.replace("id=100", f"id={node}")) for thread, logger, text in lines)
        broker(tmp_path / "quorum" / f"n{node}", *own)
    capture = read(tmp_path / "quorum")
    assert (capture.summary.controller, shown(capture)) == (102, once)
    (trace,) = capture.traces
    assert {event.node for event in trace.events} == {102}
    assert trace.config.nodes == (1, 2)
    names = [(event.event, event.fields.get("partition_epoch")) for event in trace.events]
    assert names[names.index(("ChangePartition", 2)) - 1][0] == "AlterPartition"


def test_a_node_whose_replicas_were_all_deleted_did_something(tmp_path: Path) -> None:
    """Its logs are not missing."""
    capture = broker(tmp_path, STARTED, *LOADED, FOLLOWS, DELETED)
    assert not any("nothing it did is known" in line for line in capture.missing if "node 1" in line)


@pytest.mark.parametrize("prefix", ["", "[QuorumController id=3] "], ids=["a dump", "a log"])
def test_each_change_of_a_controller_counts_once(prefix: str) -> None:
    """The lines of a metadata dump have no prefix; all of them begin with the same words."""
    says = f"{prefix}partition change for a-0 with topic ID T: isr: [1] -> [1, {{}}], partitionEpoch: {{}} -> {{}}"
    lines = [
        Line("dump.txt", number, number, "", says.format(number, number, number + 1), "ReplicationControlManager")
        for number in (2, 3, 4, 4)
    ]
    assert changes_reported(Node(3, Path(), "n3", lines, [], []))[0] == 3
