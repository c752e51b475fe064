"""Topics of the probe's own: made when a check first needs them, taken away at the end.

Rules of this file

1. A name is the prefix and what it is for, so that a check asks the same whether it is run alone or not. A topic that is
   there already is somebody else's and ends the probe.
2. A topic is ready when its leader serves it. Metadata says who leads, also to a broker that does not.
3. What cannot be made here is a reason for a check to stay undecided, and no failure of the broker.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from uuid import UUID

from tidegauge.drive.probe.codes import Code, named
from tidegauge.drive.probe.link import Dial, Exchange, Link, LinkError
from tidegauge.drive.probe.partition import Partition, batch
from tidegauge.drive.wire.compiler import Message
from tidegauge.drive.wire.frames import Call
from tidegauge.drive.wire.messages import Messages
from tidegauge.impl.errors import UsageError

T = TypeVar("T")

RECORDS = 10
NOT_YET = frozenset(
    {
        Code.UNKNOWN_TOPIC_OR_PARTITION,
        Code.LEADER_NOT_AVAILABLE,
        Code.NOT_LEADER_OR_FOLLOWER,
        Code.UNKNOWN_TOPIC_ID,
        Code.FENCED_LEADER_EPOCH,
        Code.UNKNOWN_LEADER_EPOCH,
    }
)
"""What a broker says of a partition while metadata is on its way."""

LOADING = frozenset({Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE})
MOMENT, PATIENCE = 0.02, 15.0
KEPT: Mapping[str, str] = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
PREFERRED = 0
"""ElectionType.PREFERRED."""


class UndecidedError(Exception):
    """A check has no partition to look at."""


class Scenes:
    """What checks look at. `dial` opens connections, `keep` is given every exchange."""

    def __init__(
        self,
        messages: Messages,
        dial: Dial,
        place: tuple[str, int],
        prefix: str,
        keep: Callable[[Exchange], None],
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._messages, self._dial, self._keep, self._pause = messages, dial, keep, pause
        self.prefix, self.first = prefix, Link(messages, dial, *place, keep)
        self.check = ""
        self._producer: tuple[int, int] | None = None
        self._links: dict[int, Link] = {}
        self._made: list[str] = []
        self._shared: dict[str, Partition | UndecidedError] = {}

    # -----------------------------------------------------------------------------------------------------------------
    # What there is to look at

    def log(self) -> Partition:
        """Ten records, one per batch. Nobody writes to it again."""
        return self._once("log", lambda: self._written("log"))

    def moved(self) -> Partition:
        """Ten records, of which the first four were deleted."""
        return self._once("moved", self._deleted)

    def epochs(self) -> Partition:
        """Records of at least three leader epochs, by elections among two brokers."""
        return self._once("epochs", self._elected)

    def replicated(self) -> Partition:
        """An empty partition of two replicas for this check alone: a leader does not commit alone."""
        return self._create(self.check, KEPT, self._two())

    def fresh(self, **config: str) -> Partition:
        """An empty partition for this check alone, whose configuration has dots for underlines."""
        return self._create(self.check, {**KEPT, **{name.replace("_", "."): value for name, value in config.items()}})

    def producer(self) -> tuple[int, int]:
        """A producer id and epoch that nobody else has: its sequence numbers are counted per partition."""
        if self._producer is None:
            self._producer = self._new_producer()
        return self._producer

    def absent(self) -> Partition:
        """A topic that is not there."""
        return self.log().elsewhere(f"{self.prefix}-absent", UUID(int=0xAB5E27))

    def close(self) -> Mapping[str, str]:
        """Delete what was made, on a connection on which nothing is under way; what is left, and why."""
        for link in (self.first, *self._links.values()):
            link.close()
        left: dict[str, str] = {}
        for name in self._made:
            try:
                left |= self._removed(name)
            except LinkError as problem:
                left[name] = str(problem)
        self.first.close()
        return left

    def _once(self, name: str, made: Callable[[], Partition]) -> Partition:
        if name not in self._shared:
            try:
                self._shared[name] = made()
            except UndecidedError as problem:
                self._shared[name] = problem
        found = self._shared[name]
        if isinstance(found, UndecidedError):
            raise found
        return found

    # -----------------------------------------------------------------------------------------------------------------
    # How it is made

    def _create(self, purpose: str, config: Mapping[str, str], replicas: list[int] | None = None) -> Partition:
        name = f"{self.prefix}-{purpose}"
        if self._metadata(name)["topics"][0]["errorCode"] == Code.NONE:
            raise UsageError(f"topic {name}: expected a name that nobody has; seen that it is there; choose another --seed")
        self._made.append(name)
        if "CreateTopics" in self.first.versions:
            self._created(name, config, replicas)
        else:
            self._metadata(name, create=True)
        return self._ready(name)

    def _created(self, name: str, config: Mapping[str, str], replicas: list[int] | None) -> None:
        assignments = [{"partitionIndex": 0, "brokerIds": replicas}] if replicas else []
        topic = {
            "name": name,
            "numPartitions": -1 if replicas else 1,
            "replicationFactor": -1 if replicas else 1,
            "assignments": assignments,
            "configs": [{"name": key, "value": value} for key, value in config.items()],
        }
        version = self.first.versions["CreateTopics"].stop - 1
        body = {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False}
        code = self.first.ask(Call("CreateTopics", version, body))["topics"][0]["errorCode"]
        if code != Code.NONE:
            raise UndecidedError(f"a topic with {dict(config)} could not be created: {named(code)}")

    def _metadata(self, *names: str, create: bool = False) -> Message:
        body = {"topics": [{"name": name} for name in names], "allowAutoTopicCreation": create}
        return self.first.ask(Call("Metadata", self.first.versions["Metadata"].stop - 1, body))

    def _ready(self, name: str, leader: int | None = None) -> Partition:
        """The partition, when its leader (a given one) says that it leads."""

        def serving() -> Partition | None:
            found = self._metadata(name)
            topic = found["topics"][0]
            known = topic["partitions"][:1] if topic["errorCode"] == Code.NONE else []
            if not known or known[0]["leaderId"] < 0 or leader not in {None, known[0]["leaderId"]}:
                return None
            link = self._link(known[0]["leaderId"], found["brokers"])
            epoch = max(known[0].get("leaderEpoch", 0), 0)
            partition = Partition(link, name, topic.get("topicId") or UUID(int=0), epoch)
            return partition if self._serves(partition) else None

        partition = self._until(serving, lambda seen: seen is not None)
        if partition is None:
            raise UndecidedError(f"topic {name} has no leader that serves it within {PATIENCE:g} s")
        return partition

    def _until(self, look: Callable[[], T], met: Callable[[T], bool]) -> T:
        """Look until it is so, but not for ever; what was seen last."""
        deadline = time.monotonic() + PATIENCE
        while not met(seen := look()) and time.monotonic() < deadline:
            self._pause(MOMENT)
        return seen

    def _serves(self, partition: Partition) -> bool:
        call = partition.list_offsets(-1)
        if call.version >= 4:
            call = partition.list_offsets(-1, current=partition.epoch)
        return _partition(partition.link.ask(call))["errorCode"] not in NOT_YET

    def _link(self, node: int, brokers: list[Message]) -> Link:
        if node not in self._links:
            at = {one["nodeId"]: (one["host"], one["port"]) for one in brokers}
            self._links[node] = Link(self._messages, self._dial, *at[node], self._keep)
        return self._links[node]

    def _written(self, purpose: str) -> Partition:
        partition = self._create(purpose, KEPT)
        for _ in range(RECORDS):
            append(partition)
        return partition

    def _deleted(self) -> Partition:
        partition = self._written("moved")
        found = _partition(partition.link.ask(partition.delete_records(4)))
        if found["errorCode"] != Code.NONE:
            raise UndecidedError(f"records could not be deleted: {named(found['errorCode'])}")
        partition.start = 4
        return partition

    def _new_producer(self) -> tuple[int, int]:
        """A broker that has just started may have none ready."""
        body = {"transactionalId": None, "transactionTimeoutMs": 60_000}
        call = Call("InitProducerId", self.first.versions["InitProducerId"].stop - 1, body)
        found = self._until(lambda: self.first.ask(call), lambda seen: seen["errorCode"] not in LOADING)
        if found["errorCode"] != Code.NONE:
            raise UndecidedError(f"there is no producer id: {named(found['errorCode'])}")
        return found["producerId"], found["producerEpoch"]

    def _two(self) -> list[int]:
        nodes = sorted(one["nodeId"] for one in self._metadata()["brokers"])
        if len(nodes) < 2:
            raise UndecidedError("it takes two brokers, and there is one")
        return nodes[:2]

    def _elected(self) -> Partition:
        """Leader epochs grow with each election; elections follow the order of the replicas."""
        nodes = self._two()
        partition = self._create("epochs", KEPT, nodes)
        for leader in (nodes[1], nodes[0], nodes[1]):
            for _ in range(3):
                append(partition)
            self._elect(partition.name, [leader, *(node for node in nodes if node != leader)])
            found = self._ready(partition.name, leader)
            found.batches, found.timestamps = partition.batches, partition.timestamps
            partition = found
        append(partition)
        return partition

    def _elect(self, name: str, replicas: list[int]) -> None:
        partitions = [{"partitionIndex": 0, "replicas": replicas}]
        self._admin("AlterPartitionReassignments", {"topics": [{"name": name, "partitions": partitions}]})
        wanted = {"topic": name, "partitions": [0]}
        self._admin("ElectLeaders", {"electionType": PREFERRED, "topicPartitions": [wanted]})

    def _admin(self, name: str, body: dict[str, Any]) -> None:
        if name not in self.first.versions:
            raise UndecidedError(f"leaders could not be changed: ApiVersions does not offer {name}")
        self.first.ask(Call(name, self.first.versions[name].stop - 1, {**body, "timeoutMs": 10_000}))

    def _removed(self, name: str) -> Mapping[str, str]:
        offered = self.first.versions.get("DeleteTopics")
        if not offered:
            return {name: "ApiVersions does not offer DeleteTopics"}
        body = {"topics": [{"name": name, "topicId": UUID(int=0)}], "topicNames": [name], "timeoutMs": 10_000}
        version = offered.stop - 1
        body.pop("topicNames" if version >= 6 else "topics")
        code = self.first.ask(Call("DeleteTopics", version, body))["responses"][0]["errorCode"]
        return {} if code in {Code.NONE, Code.UNKNOWN_TOPIC_OR_PARTITION} else {name: named(code)}


def append(partition: Partition, records: int = 1) -> None:
    """Write a batch. Raises UndecidedError where it is not taken."""
    found = partition.link.ask(partition.produce(batch(partition, records)))["responses"][0]["partitionResponses"][0]
    if found["errorCode"] != Code.NONE:
        raise UndecidedError(f"a record could not be written to {partition.name}: {named(found['errorCode'])}")
    partition.appended(records)


def _partition(response: Message) -> Message:
    found: Message = response["topics"][0]["partitions"][0]
    return found
