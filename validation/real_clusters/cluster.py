"""A running cluster: its nodes, an administrator, and a story with the time of everything that was done to it."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, OffsetSpec
from kafka.errors import KafkaError

from tidegauge.util.errors import TidegaugeError
from validation.real_clusters.nodes import START_SECONDS, STOCK_FILES, TWO_FILES, ClusterNode
from validation.real_clusters.shapes import ClusterShape

HEAP_MB = {60: 288, 300: 384, 1000: 512}
"""By the number of partitions, at most."""
INTERNAL = ("offsets.topic", "transaction.state.log")
"""What the settings of the internal topics begin with."""
FIRST_CONTROLLER = 100
TIMEOUT_MS = 15_000
SESSION_MS = 9000
"""broker.session.timeout.ms, Kafka's default"""


class ClusterError(TidegaugeError):
    """A cluster that does not do what this program needs: the run says nothing about the judge."""


class RunningCluster:
    """A cluster of one shape. Close it: its processes and folders go."""

    def __init__(self, shape: ClusterShape) -> None:
        self.shape = shape
        self.began = time.monotonic()
        self.story: list[str] = []
        self.unclean = False
        """Whether an election was allowed to lose records."""
        self.emptied = False
        """Whether a disk was lost."""
        heap = next(mb for most, mb in HEAP_MB.items() if shape.partitions <= most)

        def node(number: int, role: str) -> ClusterNode:
            directories = shape.directories if role == "broker" else 1
            files = STOCK_FILES if shape.stock_files else TWO_FILES
            properties = _properties(shape, number, role)
            return ClusterNode(number, shape.release, heap, directories, files, properties, shape.rolled, shape.compressed)

        self.controllers = {n: node(n, "controller") for n in range(FIRST_CONTROLLER, FIRST_CONTROLLER + shape.controllers)}
        self.brokers = {n: node(n, "broker") for n in range(1, shape.brokers + 1)}
        self.nodes = {**self.controllers, **self.brokers}
        voters = ",".join(f"{n}@127.0.0.1:{each.port}" for n, each in self.controllers.items())
        for each in self.nodes.values():
            listener = "CONTROLLER" if each.number in self.controllers else "PLAINTEXT"
            listening = {"controller.quorum.voters": voters, "listeners": f"{listener}://127.0.0.1:{each.port}"}
            each.properties.update(listening)
        self.bootstrap = ",".join(f"127.0.0.1:{each.port}" for each in self.brokers.values())
        self.metadata = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0, "socket.timeout.ms": 8000})
        self._admin: KafkaAdminClient | None = None
        self.watched: dict[str, int] = {}
        """Topic -> partitions, of those that must be whole before anything else happens to the cluster."""

    def start(self) -> None:
        """Format and start every node, and wait until all brokers are there. Raises ClusterError."""
        bootstrap = None
        for controller in self.controllers.values():
            bootstrap = controller.format_controller(bootstrap)
        for broker in self.brokers.values():
            broker.format_broker()
        for each in self.nodes.values():
            each.start()
        self.wait_for(self.nodes.values())
        self._until(lambda: len(self.metadata.list_topics(timeout=5).brokers) == len(self.brokers), "all brokers registered")
        self.say("the cluster is up")

    def wait_for(self, nodes: Iterable[ClusterNode]) -> None:
        """Wait until these listen. Raises ClusterError."""
        for each in nodes:
            self._until(each.listens, f"node {each.number} listening", each.last_words)

    def _until(self, holds: Callable[[], bool], what: str, words: Callable[[], str] = str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            with suppress(KafkaException):
                if holds():
                    return
            time.sleep(0.2)
        raise ClusterError(f"a cluster: expected {what} within {START_SECONDS:g} s; seen that it is not\n{words()}")

    def say(self, what: str) -> None:
        """Add a line to the story."""
        self.story.append(f"{time.strftime('%H:%M:%S', time.gmtime())} {time.monotonic() - self.began:6.1f} {what}")

    def create(self, topic: str, partitions: int, watched: bool = True, **settings: object) -> None:
        """Create a topic; keywords are its settings, with _ for each dot."""
        config = {name.replace("_", "."): str(value) for name, value in settings.items()}
        new = NewTopic(topic, partitions, self.shape.replication, config=config)
        self._have_done(
            f"create {topic}", lambda: self.metadata.create_topics([new], operation_timeout=10)[topic].result(20)
        )
        if watched:
            self.watched[topic] = partitions

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        self.watched.pop(topic, None)
        self._have_done(
            f"delete {topic}", lambda: self.metadata.delete_topics([topic], operation_timeout=10)[topic].result(20)
        )

    def add_partitions(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        new = NewPartitions(topic, partitions)
        self._have_done(
            f"{topic} gets {partitions} partitions", lambda: self.metadata.create_partitions([new])[topic].result(20)
        )
        self.watched[topic] = partitions

    def configure(self, topic: str, **settings: object) -> None:
        """Change settings of a topic."""
        config = {name.replace("_", "."): str(value) for name, value in settings.items()}
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=config)
        self.ask(f"configure {topic} {config}", lambda admin: admin.alter_configs([resource], incremental=True))

    def ask(self, what: str, act: Callable[[KafkaAdminClient], Any]) -> Any:
        """Have the administrator do something, once more with new connections if it fails; say what came of it."""
        for attempt in (1, 2):
            try:
                if self._admin is None:
                    self._admin = KafkaAdminClient(
                        bootstrap_servers=self.bootstrap.split(","), request_timeout_ms=TIMEOUT_MS
                    )
                response = act(self._admin)
            except (KafkaError, OSError, AssertionError, KeyError, ValueError) as error:
                self.close_administrator()
                self.say(f"{what[:200]} failed: {type(error).__name__} {error}"[:400])
                if attempt == 2:
                    return None
                time.sleep(1)
            else:
                self.say(what[:300])
                return response
        return None

    def _have_done(self, what: str, act: Callable[[], object]) -> None:
        try:
            act()
        except KafkaException as error:
            self.say(f"{what} failed: {error}"[:300])
        else:
            self.say(what)

    def reassign(self, replicas: Mapping[tuple[str, int], Sequence[int]], seconds: float = 25) -> None:
        """Give partitions other replicas, and wait until they have them."""
        asked = {TopicPartition(*tp): list(nodes) for tp, nodes in replicas.items()}
        text = ", ".join(f"{topic}-{n}={list(nodes)}" for (topic, n), nodes in replicas.items())
        self.ask(f"reassign {text}", lambda admin: admin.alter_partition_reassignments(asked))
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(1)
            admin = self._admin
            with suppress(KafkaError, OSError):
                if admin is None or not admin.list_partition_reassignments():
                    break
        self.say("reassigned")

    def elect(self, kind: int, partitions: Iterable[tuple[str, int]] | None = None) -> None:
        """Have leaders elected: 0 the preferred ones, 1 uncleanly."""
        chosen = None if partitions is None else [TopicPartition(*tp) for tp in partitions]
        word = ("preferred", "unclean")[kind]
        self.ask(f"{word} election", lambda admin: admin.elect_leaders(kind, chosen, timeout_ms=10_000, raise_errors=False))

    def ends(self, topic: str) -> dict[int, int]:
        """Return the log end of each partition of a topic."""
        specs = {TopicPartition(topic, n): OffsetSpec.LATEST for n in range(self.watched[topic])}
        response = self.ask(f"ends of {topic}", lambda admin: admin.list_partition_offsets(specs)) or {}
        return {tp.partition: found.offset for tp, found in response.items()}

    def delete_records(self, topic: str, below: Mapping[int, int]) -> None:
        """Delete the records of partitions below offsets; -1 is the high watermark."""
        asked = {TopicPartition(topic, n): offset for n, offset in below.items()}
        self.ask(
            f"delete records of {topic} below {dict(below)}", lambda admin: admin.delete_records(asked, timeout_ms=10_000)
        )

    def relocate(self, broker: int, topic: str, partitions: Sequence[int], directory: Path) -> None:
        """Have replicas of a broker copied to another of its directories (AlterReplicaLogDirs)."""
        asked = {(topic, n, broker): str(directory) for n in partitions}
        self.ask(
            f"broker {broker}: {topic} {list(partitions)} to {directory.name}",
            lambda admin: admin.alter_replica_log_dirs(asked),
        )

    def active_controller(self) -> int:
        """Return the leader of the metadata quorum; the first controller where nobody says."""
        response = self.ask("the active controller", lambda admin: admin.describe_metadata_quorum())
        try:
            found = int(response["topics"][0]["partitions"][0]["leader_id"])
        except (TypeError, KeyError, IndexError):
            return FIRST_CONTROLLER
        return found if found in self.controllers else FIRST_CONTROLLER

    def replicas(self) -> dict[tuple[str, int], tuple[int, list[int], list[int]]]:
        """Return leader, replicas and ISR of each watched partition."""
        topics = self.metadata.list_topics(timeout=8).topics
        return {
            (name, n): (each.leader, list(each.replicas), list(each.isrs))
            for name in self.watched
            if name in topics
            for n, each in topics[name].partitions.items()
        }

    def settle(self, seconds: float = 25) -> bool:
        """Wait until every ISR is whole; say if it is not."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(KafkaException):
                partitions = self.replicas()
                whole = all(leader >= 0 and set(isr) == set(replicas) for leader, replicas, isr in partitions.values())
                if whole and len(partitions) >= sum(self.watched.values()):
                    self.say("all ISRs are whole")
                    return True
            time.sleep(0.5)
        self.say(f"the ISRs are not whole after {seconds:g} s")
        return False

    def stop(self, random: Random) -> None:
        """Stop the brokers in order, in any order of them, then the controllers."""
        for broker in random.sample(list(self.brokers.values()), len(self.brokers)):
            if broker.runs:
                broker.stop()
                self.say(f"broker {broker.number} stopped")
        with ThreadPoolExecutor() as threads:
            list(threads.map(lambda each: each.stop(), [each for each in self.controllers.values() if each.runs]))
        self.say("stopped")

    def keep(self, folder: Path) -> int:
        """Write logs, story and shape to a folder; return the bytes of logs."""
        size = sum(each.keep_logs(folder / "logs" / f"n{n}") for n, each in self.nodes.items())
        (folder / "story.txt").write_text("\n".join([self.shape.words, *self.story]) + "\n", encoding="utf-8")
        (folder / "shape.json").write_text(json.dumps(self.shape.as_json(), indent=1) + "\n", encoding="utf-8")
        return size

    def close_administrator(self) -> None:
        """Drop the connections of the administrator."""
        if self._admin is not None:
            with suppress(KafkaError, OSError):
                self._admin.close()
        self._admin = None

    def close(self) -> None:
        """End everything."""
        self.close_administrator()
        for each in self.nodes.values():
            each.close()


def _properties(shape: ClusterShape, number: int, role: str) -> dict[str, object]:
    properties: dict[str, object] = {
        "process.roles": role,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "auto.create.topics.enable": "false",
        "num.network.threads": 2,
        "num.io.threads": 4,
        "replica.lag.time.max.ms": shape.lag_ms,
        "broker.session.timeout.ms": SESSION_MS,
        "num.replica.fetchers": shape.fetchers,
        "group.initial.rebalance.delay.ms": 0,
        "log.cleaner.dedupe.buffer.size": 16 << 20,
        "transaction.state.log.min.isr": 2 if shape.replication > 2 else 1,
        "log.retention.check.interval.ms": 2000,
        "log.segment.delete.delay.ms": 1000,
        "log.initial.task.delay.ms": 3000,
    }
    for topic in INTERNAL:
        properties[f"{topic}.replication.factor"] = shape.replication
        properties[f"{topic}.num.partitions"] = 6
    if role == "broker":
        properties |= {"inter.broker.listener.name": "PLAINTEXT", "broker.rack": f"r{number}"}
    else:
        properties |= {"controller.quorum.election.timeout.ms": 1000, "controller.quorum.fetch.timeout.ms": 2000}
    if "rack" in shape.consumers:
        properties["replica.selector.class"] = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    if shape.large_records:
        properties |= {"replica.fetch.response.max.bytes": 400_000, "replica.fetch.max.bytes": 150_000}
    return properties
