"""What checks look at: partitions with something in them, made when a check first needs them.

Rules of this file

1. A name is the prefix and what it is for, so that a check asks the same whether it is run alone or not.
2. What cannot be made here is a reason for a check to stay undecided, and no failure of the broker. It is not tried twice.
"""

from collections.abc import Callable, Mapping
from uuid import UUID

from tidegauge.drive.probe.connection import Link, LinkError, only
from tidegauge.drive.probe.partition import NotOfferedError, Partition, batch
from tidegauge.drive.probe.session import Session, asking
from tidegauge.drive.probe.topics import KEPT, Topics, UndecidedError
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl import error_codes
from tidegauge.impl.error_codes import error_text
from tidegauge.impl.sessions.fetch_metadata import INVALID_SESSION_ID

RECORDS = 10
LOADING = frozenset({error_codes.COORDINATOR_LOAD_IN_PROGRESS, error_codes.COORDINATOR_NOT_AVAILABLE})
PREFERRED = 0
"""ElectionType.PREFERRED."""


class Scenes:
    """What checks look at, in topics whose names begin with `prefix`; `check` is the one that looks."""

    def __init__(self, topics: Topics, prefix: str) -> None:
        self._topics, self._prefix, self.first = topics, prefix, topics.first
        self.check = ""
        self._producer: tuple[int, int] | None = None
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
        return self._create(self.check, replicas=self._two())

    def fresh(self, **config: str) -> Partition:
        """An empty partition for this check alone, whose configuration has dots for underlines."""
        return self._create(self.check, {**KEPT, **{name.replace("_", "."): value for name, value in config.items()}})

    def pair(self) -> tuple[Partition, Partition]:
        """Two empty partitions for this check alone, that one fetch can name: they have one leader. Who is asked for one
        need not heed it, but of more partitions than brokers two have the same."""
        brokers, found = self._topics.brokers(), dict[Link, Partition]()
        if not brokers:
            raise UndecidedError("Metadata names no broker that could lead two partitions")
        for number in range(len(brokers) + 1):
            partition = self._create(f"{self.check}-{number}", replicas=brokers[:1])
            if partition.link in found:
                return found[partition.link], partition
            found[partition.link] = partition
        raise UndecidedError(f"{len(found)} partitions have as many leaders, and Metadata names {len(brokers)} brokers")

    def session(self, link: Link, *fetches: WireRequest) -> Session:
        """A fetch session of this check alone."""
        call = asking(*fetches)
        return self.opened(link, call, link.ask(call))

    def opened(self, link: Link, call: WireRequest, response: WireMessage) -> Session:
        """The session that a response to a full fetch gives. Raises NotOfferedError where it gives none."""
        if response["errorCode"] != error_codes.NONE:
            raise UndecidedError(f"a fetch session was not opened: {error_text(response['errorCode'])}")
        if response["sessionId"] == INVALID_SESSION_ID:
            raise NotOfferedError("a full fetch that asks for a session is given none, as it may: the session id is 0")
        self._topics.sessions.append(session := Session(link, call, response))
        return session

    def producer(self) -> tuple[int, int]:
        """A producer id and epoch that nobody else has: its sequence numbers are counted per partition."""
        if self._producer is None:
            self._producer = self._new_producer()
        return self._producer

    def absent(self) -> Partition:
        """A topic that is not there."""
        return self.log().elsewhere(f"{self._prefix}-absent", UUID(int=0xAB5E27))

    def _once(self, name: str, made: Callable[[], Partition]) -> Partition:
        if name not in self._shared:
            try:
                self._shared[name] = made()
            except UndecidedError as problem:
                self._shared[name] = problem
            except LinkError as problem:
                self._shared[name] = UndecidedError(f"the setting could not be made: {problem}")
        found = self._shared[name]
        if isinstance(found, UndecidedError):
            raise found
        return found

    # -----------------------------------------------------------------------------------------------------------------
    # How it is made

    def _create(self, purpose: str, config: Mapping[str, str] = KEPT, replicas: list[int] | None = None) -> Partition:
        return self._topics.create(f"{self._prefix}-{purpose}", config, replicas)

    def _written(self, purpose: str) -> Partition:
        partition = self._create(purpose)
        for _ in range(RECORDS):
            append(partition)
        return partition

    def _deleted(self) -> Partition:
        partition = self._written("moved")
        found = only(partition.link.ask(partition.delete_records(4)), "topics", "partitions")
        if found["errorCode"] != error_codes.NONE:
            raise UndecidedError(f"records could not be deleted: {error_text(found['errorCode'])}")
        partition.start = 4
        return partition

    def _new_producer(self) -> tuple[int, int]:
        """A broker that has just started may have none ready."""
        body = {"transactionalId": None, "transactionTimeoutMs": 60_000}
        call = WireRequest("InitProducerId", self.first.versions["InitProducerId"].stop - 1, body)
        found = self._topics.until(lambda: self.first.ask(call), lambda seen: seen["errorCode"] not in LOADING)
        if found["errorCode"] != error_codes.NONE:
            raise UndecidedError(f"there is no producer id: {error_text(found['errorCode'])}")
        return found["producerId"], found["producerEpoch"]

    def _two(self) -> list[int]:
        nodes = self._topics.brokers()
        if len(nodes) < 2:
            raise UndecidedError("it takes two brokers, and there is one")
        return nodes[:2]

    def _elected(self) -> Partition:
        """Leader epochs grow with each election; elections follow the order of the replicas, at Kafka. Elsewhere another
        leader will do."""
        nodes = self._two()
        partition = self._create("epochs", replicas=nodes)
        for leader in (nodes[1], nodes[0], nodes[1]):
            for _ in range(3):
                append(partition)
            self._elect(partition.name, [leader, *(node for node in nodes if node != leader)])
            found = self._topics.ready(partition.name, behind=partition.epoch)
            found.batches, found.epochs, found.timestamps = partition.batches, partition.epochs, partition.timestamps
            partition = found
        append(partition)
        return partition

    def _elect(self, name: str, replicas: list[int]) -> None:
        partitions = [{"partitionIndex": 0, "replicas": replicas}]
        self._topics.administer("AlterPartitionReassignments", {"topics": [{"name": name, "partitions": partitions}]})
        wanted = {"topic": name, "partitions": [0]}
        self._topics.administer("ElectLeaders", {"electionType": PREFERRED, "topicPartitions": [wanted]})


def append(partition: Partition, records: int = 1) -> None:
    """Write a batch. Raises UndecidedError where it is not taken."""
    found = only(partition.link.ask(partition.produce(batch(partition, records))), "responses", "partitionResponses")
    if found["errorCode"] != error_codes.NONE:
        raise UndecidedError(f"a record could not be written to {partition.name}: {error_text(found['errorCode'])}")
    partition.appended(records)
