"""Whose a line is: the node, the cluster and the program that it says itself, wherever it lies."""
# ruff: noqa: E501

import gzip
import json
import re
import shutil
from pathlib import Path

import pytest

from tidegauge.conformance.checking.check import check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.traces.kafka_logs import read, read_all
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.kafka_logs.discovery.files import find_nodes
from tidegauge.traces.kafka_logs.discovery.writers import by_writer, left_out, own_id, thread_id
from tidegauge.traces.kafka_logs.parsing.lines import Line

SOUND = "4.2.0/k-epoch-jump-control"
ID, OTHER_ID = "HhPpDbsLQCqkVYGkSVHmWA", "QQQpDbsLQCqkVYGkSVHmWA"


def line(time: str, message: str, logger: str = "state.change.logger") -> str:
    return f"[2026-09-12 {time}] INFO {message} ({logger})\n"


def leads(node: int, epoch: int, topic_id: str = ID) -> str:
    return (
        f"[Broker id={node}] Leader orders-0 with topic id Some({topic_id}) starts at leader epoch {epoch} from offset 100 with "
        f"partition epoch {epoch + 4}, high watermark 100, ISR [1,2], adding replicas [] and removing replicas [] . Previous "
        "leader None and previous leader epoch was -1."
    )


def follows(node: int, epoch: int, leader: int) -> str:
    return (
        f"[Broker id={node}] Follower orders-0 starts at leader epoch {epoch} from offset 100 with partition epoch {epoch + 4} "
        f"and high watermark 100. Current leader is {leader}. Previous leader None and previous leader epoch was -1."
    )


SIGNALS = "Registered signal handlers for TERM, INT, HUP"
SIGNALLER = "org.apache.kafka.common.utils.LoggingSignalHandler"
TIME_LINE = (
    line("10:00:00,000", SIGNALS, SIGNALLER),
    line("10:00:03,000", leads(1, 5)),
    line("10:00:03,004", follows(2, 5, 1)),
    line("10:05:03,000", leads(2, 6)),
    line("10:05:03,010", follows(1, 6, 2)),
)


@pytest.mark.parametrize(
    ("message", "node"),
    [
        ("[Broker id=3] Leader x-0 starts", 3),
        ("[Controller id=3, targetBrokerId=2] Node 2 disconnected.", 3),
        ("[Controller id=3 epoch=7] Changed partition x-0", 3),
        ("[Controller 3]: Broker 3 starting become controller state transition", 3),
        ("[ReplicaFetcherManager on broker 3] Removed fetcher", 3),
        ("[Partition state machine on Controller 3]: Started", 3),
        ("[ReplicaFetcher replicaId=3, leaderId=1, fetcherId=0] Truncating", 3),
        ("[Partition x-0 broker=3] Shrinking ISR", 3),
        ("[RaftManager id=100] Completed transition", 100),
        ("[MetadataLoader id=100] initializeNewPublishers", 100),
        ("[KafkaServer id=3] started", 3),
        ("[Kafka Server 3], started", 3),
        ("[KafkaRaftServer nodeId=3] Kafka Server started", 3),
        ("[SocketServer listenerType=BROKER, nodeId=3] Enabling request processing.", 3),
        ("[DynamicConfigPublisher broker id=3] Updating topic x", 3),
        ("[ReplicaStateMachine controllerId=3] Started", 3),
        ("[GroupCoordinator 3]: Elected as the group coordinator", 3),
        ("[KafkaApi-3] Error when handling request", 3),
        ("[Controller-3-to-broker-2-send-thread]: Starting", 3),
        ("[broker-3-to-controller-heartbeat-channel-manager]: Starting", 3),
        ("Partition [x,0] on broker 3: Shrinking ISR for partition [x,0] from 1,2 to 1", 3),
        ("Broker 3 received LeaderAndIsr request correlation id 33 from controller 0 epoch 1", 3),
        ("[ReplicaFetcherThread-0-1]: Replica 2 for partition x-0 reset its fetch offset", None),
        ("[ReplicaFetcherThread-0-1], Starting", None),
        ("[ExpirationReaper-0-null]: Starting", None),
        ("[UnifiedLog partition=x-0, dir=/data/3] Truncating to offset 7", None),
        ("[Consumer instanceId=3, clientId=consumer-3, groupId=g] Resetting", None),
        ("[Broker id=3", None),
    ],
)
def test_what_a_line_says_of_its_node(message: str, node: int | None) -> None:
    """The names that Kafka's classes give themselves, since 0.9; that of the leader is not the writer's."""
    assert own_id(message) == node


def test_what_a_thread_says_of_its_node() -> None:
    """Only threads that are named after the broker they run in."""
    assert thread_id("kafka-3-metadata-loader-event-handler") == 3
    assert thread_id("quorum-controller-100-event-handler") == 100
    assert thread_id("data-plane-kafka-network-thread-3-ListenerName(PLAINTEXT)-PLAINTEXT-1") == 3
    assert [thread_id(name) for name in ("ReplicaFetcherThread-0-3", "kafka-scheduler-3", "data-plane-kafka-request-handler-3")] == [
        None,
        None,
        None,
    ]  # fmt: skip


def whose(folder: Path) -> dict[int, int | None]:
    """The node of each line of the one file in a folder, by number."""
    found = find_nodes(folder)
    nodes = {line.number: node.id for node in found.nodes for stream in node.streams for line in stream}
    return nodes | dict.fromkeys((line.number for line in found.unknown), None)


def test_a_time_line_of_two_brokers_is_two_nodes(tmp_path: Path) -> None:
    """`cat broker*.log | sort`: what no line tells is left out, and counted."""
    (tmp_path / "timeline.log").write_text("".join(TIME_LINE))
    capture = read(tmp_path)
    assert capture.summary.nodes == (1, 2)
    assert [(problem.line, problem.lost) for problem in capture.problems if problem.lost] == [(1, 1)]
    assert check([tmp_path]).verdict is not Verdict.FAIL
    assert whose(tmp_path) == {1: None, 2: 1, 3: 2, 4: 2, 5: 1}


def test_the_requests_of_a_node_that_only_their_thread_names_are_not_anothers() -> None:
    """A controller whose server.log is lost: its request log lies in the file of a broker, some of whose lines name nobody."""
    texts = ((leads(1, 5), "main"), ("Completed request:{}", "data-plane-kafka-network-thread-100-CONTROLLER-PLAINTEXT-1"))
    lines = [
        Line("both.log", at, at, thread, text, "logger") for at, (text, thread) in enumerate((*texts, (SIGNALS, "main")), 1)
    ]
    written = by_writer(lines, {})
    assert {node: [line.number for line in of_node] for node, of_node in written.by_node.items()} == {1: [1]}
    assert [line.number for line in written.unknown] == [2, 3]
    (problem,) = left_out("both.log", written.unknown, written.by_node)[:1]
    assert "which node wrote them" in problem.expected


def test_a_pod_tells_the_node_of_its_lines(tmp_path: Path) -> None:
    """Lines that say no node are of the node that others of their pod say; a pod that says none is no node."""
    pods = ("kafka-1", "kafka-1", "kafka-2", "kafka-2", "kafka-1")
    texts = [
        json.dumps({"log": text, "stream": "stdout", "kubernetes": {"pod_name": pod}})
        for text, pod in zip(TIME_LINE, pods, strict=True)
    ]
    stranger = json.dumps({"log": TIME_LINE[0], "stream": "stdout", "kubernetes": {"pod_name": "zookeeper-0"}})
    (tmp_path / "pods.log").write_text("\n".join([*texts, stranger]) + "\n")
    capture = read(tmp_path)
    assert capture.summary.nodes == (1, 2)
    assert [problem.line for problem in capture.problems if problem.lost] == [6]


def test_a_directory_tells_the_node_if_each_broker_has_its_own(tmp_path: Path) -> None:
    """In containers all have the same: then it tells nothing."""
    threads = (
        "kafka-1-metadata-loader-event-handler",
        "kafka-2-metadata-loader-event-handler",
        "data-plane-kafka-request-handler-0",
    )

    def texts(second: str) -> str:
        log = "[UnifiedLog partition=orders-0, dir={}] Setting high watermark (offset=9, segment=[0:0])"
        rows = [
            (threads[0], "[Partition orders-0 broker=1] Log loaded for partition orders-0 with initial high watermark 9"),
            (threads[1], "[Partition orders-0 broker=2] Log loaded for partition orders-0 with initial high watermark 9"),
            (threads[0], log.format("/data/1")),
            (threads[1], log.format(second)),
            (threads[2], log.format("/data/1")),
        ]
        return "".join(
            f"[2026-09-12 10:00:0{at},000] TRACE [{thread}] {message} (kafka.log.UnifiedLog)\n"
            for at, (thread, message) in enumerate(rows)
        )

    for name, second, node in (("own", "/data/2", 1), ("shared", "/data/1", None)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "all.log").write_text(texts(second))
        assert whose(tmp_path / name) == {1: 1, 2: 2, 3: 1, 4: 2, 5: node}


@pytest.mark.parametrize("together", [True, False], ids=["one-file", "a-file-each"])
def test_one_topic_with_two_ids_at_one_time_is_of_two_clusters(together: bool, tmp_path: Path) -> None:
    """Also if the ids of the brokers differ, and no line names a cluster."""
    texts = [
        line("10:00:03,000", leads(node, 0, topic_id)) + line("10:04:03,000", leads(node, 1, topic_id))
        for node, topic_id in ((1, ID), (2, OTHER_ID))
    ]
    if together:
        (tmp_path / "all.log").write_text("".join(texts))
    else:
        for name, text in zip(("prod", "dr"), texts, strict=True):
            (tmp_path / name).mkdir()
            (tmp_path / name / "server.log").write_text(text)
    assert sorted(capture.summary.nodes for capture in read_all(tmp_path)) == [(1,), (2,)]
    assert check([tmp_path]).verdict is not Verdict.FAIL


def test_a_topic_that_was_created_anew_is_of_the_same_cluster(tmp_path: Path) -> None:
    """One id after the other; they are two traces."""
    (tmp_path / "n1.log").write_text(line("10:00:03,000", leads(1, 0)))
    (tmp_path / "n2.log").write_text(line("10:04:03,000", leads(2, 0, OTHER_ID)))
    (capture,) = read_all(tmp_path)
    assert capture.summary.nodes == (1, 2)
    assert sorted(trace.config.extra["topic_id"] for trace in capture.traces) == sorted((ID, OTHER_ID))


def test_a_cluster_id_is_a_cluster(tmp_path: Path) -> None:
    """Of ZooKeeper and of KRaft, whatever the topics are called."""
    for node, cluster in ((1, ID), (2, OTHER_ID)):
        text = line("10:00:01,000", f"Cluster ID = {cluster}", "kafka.server.KafkaServer")
        text += line("10:00:03,000", leads(node, 0).replace(f"Some({ID})", "None"))
        (tmp_path / f"n{node}.log").write_text(text)
    assert sorted(capture.summary.nodes for capture in read_all(tmp_path)) == [(1,), (2,)]


FOREIGN = {
    "zookeeper.log": "[2026-11-21 10:29:30,000] INFO [main] binding to port 0.0.0.0/0.0.0.0:2181 (org.apache.zookeeper.server.NIOServerCnxnFactory)\n",
    "connect.log": "[2026-11-21 10:29:30,000] INFO [main] Kafka version: 3.7.0 (org.apache.kafka.common.utils.AppInfoParser)\n"
    "[2026-11-21 10:29:30,100] INFO [main] Registered signal handlers for TERM, INT, HUP (org.apache.kafka.common.utils.LoggingSignalHandler)\n"
    "[2026-11-21 10:29:31,000] INFO [main] [Worker clientId=connect-1, groupId=c] Starting (org.apache.kafka.connect.runtime.distributed.DistributedHerder)\n",
}


@pytest.mark.parametrize("where", ["", "n1", "other"])
def test_the_log_of_another_program_is_no_node(where: str, tmp_path: Path) -> None:
    """A ZooKeeper or a Connect worker beside the brokers changes no verdict, even where its client prints what brokers print."""
    for node in shipped()[SOUND].glob("n*"):
        shutil.copytree(node, tmp_path / node.name)
    (tmp_path / where).mkdir(exist_ok=True)
    for name, text in FOREIGN.items():
        (tmp_path / where / name).write_text(text)
    report = check([tmp_path])
    assert (report.verdict, report.missing) == (check([shipped()[SOUND]]).verdict, ())
    assert sum("another program" in note for note in report.notes) == 1


def in_seconds(folder: Path) -> None:
    """Rewrite the logs with times without a fraction."""
    for path in folder.rglob("*.log.gz"):
        text = gzip.decompress(path.read_bytes()).decode()
        path.write_bytes(gzip.compress(re.sub(r"(?m)^(\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d+\]", r"\1]", text).encode()))


def test_lines_in_seconds_are_not_twice(tmp_path: Path) -> None:
    """What cannot happen twice in a millisecond can in a second."""
    for node in shipped()[SOUND].glob("n*"):
        shutil.copytree(node, tmp_path / node.name)
    in_seconds(tmp_path)
    capture = read(tmp_path)
    assert not [problem for problem in capture.problems if "twice" in problem.seen]
    assert check([tmp_path]).verdict is not Verdict.FAIL
