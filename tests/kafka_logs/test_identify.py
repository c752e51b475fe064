"""What a file is, by its content: kind, system, era, release, nodes; what is not read, and what to do then."""
# ruff: noqa: E501

import gzip
import json
from pathlib import Path

import pytest

from tests.kafka_logs.test_writers import follows, leads, line
from tidegauge.cli.main import main
from tidegauge.traces.kafka_logs import read
from tidegauge.traces.kafka_logs.discovery.identify import DO, KRAFT_ERA, LOGS, ZOOKEEPER_ERA, identify, input_files

VERSION = "[2026-09-12 10:00:00,000] INFO Kafka version{}{} (org.apache.kafka.common.utils.AppInfoParser)\n"
KRAFT = line("10:00:01,000", "[BrokerServer id=1] Transition from SHUTDOWN to STARTING", "kafka.server.BrokerServer")
ZOOKEEPER = line("10:00:01,000", "[KafkaServer id=1] started", "kafka.server.KafkaServer")
FILES = [
    # text, kind, system, era, release, nodes
    (VERSION.format(": ", "4.1.1") + KRAFT, "broker log", "Apache Kafka", KRAFT_ERA, "4.1.1", (1,)),
    (VERSION.format(" : ", "1.1.1") + ZOOKEEPER, "broker log", "Apache Kafka", ZOOKEEPER_ERA, "1.1.1", (1,)),
    (VERSION.format(": ", "7.4.0-ce") + KRAFT, "broker log", "Confluent", KRAFT_ERA, "7.4.0-ce", (1,)),
    (line("10:00:01,000", leads(1, 5)) + line("10:00:02,000", follows(2, 5, 1)), "state-change log", "Apache Kafka", None, None, (1, 2)),
    (line("10:00:01,000", "[QuorumController id=100] Fencing broker 1", "org.apache.kafka.controller.ClusterControlManager"), "controller log", "Apache Kafka", KRAFT_ERA, None, (100,)),
    (line("10:00:01,000", "[Controller id=3] Epoch incremented to 1", "kafka.controller.KafkaController"), "controller log", "Apache Kafka", ZOOKEEPER_ERA, None, (3,)),
    (line("10:00:01,000", 'Completed request:{"requestHeader":{"requestApiKey":1}}', "kafka.request.logger"), "request log", "Apache Kafka", None, None, ()),
    ("Partition [x,0] on broker 2: Shrinking ISR for partition [x,0] from 1,2 to 2\n", "broker log", "Apache Kafka", ZOOKEEPER_ERA, None, (2,)),
    ("Dumping /d/x-0/00000000000000000000.log\nbaseOffset: 0 lastOffset: 9 count: 10 position: 0\n", "segment dump", "Apache Kafka", None, None, ()),
    ('| offset: 1 payload: {"type":"TOPIC_RECORD","version":0,"data":{}}\n', "metadata dump", "Apache Kafka", KRAFT_ERA, None, ()),
    ("Dumping copy/00000000000000000000.log\n| offset: 1 keySize: 4 headerKeys: [] KRaftVoters\n", "metadata dump", "Apache Kafka", KRAFT_ERA, None, ()),
    ("2024-05-01 10:00:00,000 INFO [Broker id=8] Skipped the become-follower state change for x-0 with\n", "state-change log", "Apache Kafka", None, None, (8,)),
    ("0\n1\nx 0 30\n", "checkpoint", "Apache Kafka", None, None, ()),
    ("0\r\n2\r\n0 0\r\n3 20\r\n", "checkpoint", "Apache Kafka", None, None, ()),
    ("version=1\nnode.id=7\ncluster.id=abcdEFGHijklMNOPqrstUV\n", "checkpoint", "Apache Kafka", None, None, (7,)),
    ("$ cat replication-offset-checkpoint\n0\n1\nx 0 30\n", "checkpoint", "Apache Kafka", None, None, ()),
    ("Topic:x\tPartitionCount:1\tReplicationFactor:1\tConfigs:\n", "describe", "Apache Kafka", None, None, ()),
    ("\tTopic: x\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\n", "describe", "Apache Kafka", None, None, ()),
    ("LeaderId:               3\nLeaderEpoch:            12\n", "quorum status", "Apache Kafka", KRAFT_ERA, None, ()),
    ('{"version":1,"brokers":[{"broker":1,"logDirs":[]}]}\n', "log dirs", "Apache Kafka", None, None, ()),
    ("partition x-0, replica 1: 3: 24 replica 2: 3: 89 Mismatch\n", "replica verification", "Apache Kafka", None, None, ()),
    (line("10:00:01,000", "[Consumer clientId=c, groupId=g] Resetting", "org.apache.kafka.clients.consumer.internals.Fetcher"), "client log", "Apache Kafka", None, None, ()),
    ("INFO  2024-05-01 10:00:00,000 [shard 0:main] raft - [group_id:1] became the leader\n", "broker log", "Redpanda", None, None, ()),
    (line("10:00:01,000", "binding to port", "org.apache.zookeeper.server.NIOServerCnxnFactory"), "other program", "ZooKeeper", None, None, ()),
    ("kafka-1  | 2024-03-08 16:42:33,730 ERROR [org.apa.kaf.sto.int.log.LogDirFailureChannel] (main) Error while appending records to x-0\n", "broker log", "Apache Kafka", None, None, ()),
    ("2024-03-08 16:42:33,730 INFO  o.a.k.s.i.log.UnifiedLog - Loading\n", "broker log", "Apache Kafka", None, None, ()),
    ("2024-03-08 16:42:33,730 INFO  o.a.k.clients.Metadata - Cluster\n", "other program", None, None, None, ()),
    ("[2017-06-21 15:09:19,478] TRACE Broker 1 cached leader info for partition x-0\n", "state-change log", "Apache Kafka", None, None, (1,)),
    ("2024-05-01 10:00:00 ERROR checkout failed\n", "other program", None, None, None, ()),
    ("Dear all, our cluster lost data.\n", "unknown", None, None, None, ()),
    ("log4j.logger.kafka.controller=TRACE, controllerAppender\n", "unknown", None, None, None, ()),
    ("", "unknown", None, None, None, ()),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "system", "era", "release", "nodes"), FILES)
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_is_what_it_contains(
    text: str,
    kind: str,
    system: str | None,
    era: str | None,
    release: str | None,
    nodes: tuple[int, ...],
    packed: bool,
    tmp_path: Path,
) -> None:
    """Whatever it is called, gzipped or not; what is not read says what to do."""
    path = tmp_path / "incident.dat"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    found = identify(path, path.name)
    assert (found.kind, found.system, found.era, found.release, found.nodes) == (kind, system, era, release, nodes)
    assert found.read == (found.why is None)


def test_every_kind_that_is_not_read_says_what_would_help() -> None:
    """Logs, segments and dumps are read."""
    assert not LOGS & DO.keys()
    assert all(";" in sentence for sentence in DO.values())


@pytest.mark.parametrize("name", ["pasted.txt", "pod.json", "note.md", "console", "export.csv"])
def test_a_log_in_a_folder_is_read_by_its_content(name: str, tmp_path: Path) -> None:
    """A configuration beside it names the same loggers, and is none."""
    (tmp_path / name).write_text(line("10:00:01,000", leads(1, 5)))
    (tmp_path / "log4j.properties").write_text("log4j.logger.state.change.logger=TRACE, stateChangeAppender\n")
    assert (read(tmp_path).summary.nodes, read(tmp_path).summary.lines) == ((1,), 1)


def test_checkpoints_are_of_the_node_of_their_directory(tmp_path: Path) -> None:
    """meta.properties says it, also for the folders of partitions below."""
    (tmp_path / "data" / "x-0").mkdir(parents=True)
    (tmp_path / "data" / "meta.properties").write_text("version=0\nbroker.id=2\ncluster.id=abcdEFGHijklMNOPqrstUV\n")
    (tmp_path / "data" / "replication-offset-checkpoint").write_text("0\n1\nx 0 30\n")
    (tmp_path / "data" / "x-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    assert {found.path: found.nodes for found in input_files(tmp_path)} == {
        "data/meta.properties": (2,),
        "data/replication-offset-checkpoint": (2,),
        "data/x-0/leader-epoch-checkpoint": (2,),
    }


def test_the_report_says_what_was_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In JSON each file; in the text those that are not read. Nobody is advised a pattern for what is not Kafka's."""
    (tmp_path / "describe.txt").write_text("\tTopic: x\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1\n")
    (tmp_path / "redpanda.log").write_text(next(text for text, _, system, *_ in FILES if system == "Redpanda"))
    main(["check", str(tmp_path), "--json"])
    inputs = {one["path"]: one for one in json.loads(capsys.readouterr().out)["inputs"]}
    assert inputs["describe.txt"]["kind"] == "describe"
    assert inputs["redpanda.log"]["system"] == "Redpanda"
    main(["check", str(tmp_path)])
    said = capsys.readouterr().out
    assert "not read: describe.txt, describe: it is one moment" in said
    assert "--layout" not in said
