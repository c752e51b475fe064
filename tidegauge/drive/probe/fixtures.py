"""Fixtures of checks: partitions with some content, fetch sessions and producer ids, made when a check first needs them.

Rules of this file

1. A topic is named by the prefix and its purpose, so that a check sends the same whether it runs alone or not.
2. A fixture that cannot be made leaves the check undecided; it is no failure of the broker. It is not tried twice.
"""

from collections.abc import Callable, Mapping
from uuid import UUID

from tidegauge.drive.probe.connection import BrokerConnection, NoResponseError, single_entry
from tidegauge.drive.probe.partition import NotOfferedError, ProbePartition, ProbeSession, next_batch, opening_fetch
from tidegauge.drive.probe.topics import KEEPS_ALL, Topics, UndecidedError
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl import errors
from tidegauge.impl.errors import error_text
from tidegauge.impl.fetch.fetch_session import INVALID_SESSION_ID

RECORDS = 10
"""Records of a log that a check reads, each in a batch of its own."""
LOADING = frozenset({errors.COORDINATOR_LOAD_IN_PROGRESS, errors.COORDINATOR_NOT_AVAILABLE})
"""Errors of InitProducerId while the broker loads its coordinator."""
PREFERRED = 0
"""ElectionType.PREFERRED."""


class Fixtures:
    """The fixtures of all checks. `first`: the connection to the user's broker; `check`: the id of the running check.

    Each method that returns a partition raises UndecidedError, NotOfferedError or NoResponseError where there is none.
    """

    def __init__(self, topics: Topics, prefix: str) -> None:
        """Begin without fixtures; `prefix` is the beginning of every topic name."""
        self._topics, self._prefix, self.first = topics, prefix, topics.first
        self.check = ""
        self._producer: tuple[int, int] | None = None
        self._shared_fixtures: dict[str, ProbePartition | UndecidedError] = {}

    # -----------------------------------------------------------------------------------------------------------------
    # Fixtures

    def log(self) -> ProbePartition:
        """Return a partition with ten records, one per batch. Checks share it, and none writes to it."""
        return self._shared("log", lambda: self._create_written("log"))

    def moved(self) -> ProbePartition:
        """Return a partition whose log start has moved: of ten records the first four were deleted. Checks share it."""
        return self._shared("moved", self._create_moved)

    def epochs(self) -> ProbePartition:
        """Return a partition with records of four leader epochs, by elections among two brokers. Checks share it."""
        return self._shared("epochs", self._create_elected)

    def replicated(self) -> ProbePartition:
        """Return an empty partition of two replicas for this check alone: a leader cannot commit by itself."""
        return self._create(self.check, replicas=self._two_brokers())

    def fresh(self, **config: str) -> ProbePartition:
        """Return an empty partition for this check alone.

        `config`: settings of its topic besides KEEPS_ALL, with underscores for dots: cleanup_policy="compact".
        """
        return self._create(self.check, {**KEEPS_ALL, **{name.replace("_", "."): value for name, value in config.items()}})

    def pair(self) -> tuple[ProbePartition, ProbePartition]:
        """Return two empty partitions for this check alone with the same leader, so that one fetch can name both."""
        # A broker need not place the replicas where the request says. But of more partitions than brokers, two have the same
        # leader.
        brokers, by_leader = self._topics.brokers(), dict[BrokerConnection, ProbePartition]()
        if not brokers:
            raise UndecidedError("Metadata names no broker that could lead two partitions")
        for number in range(len(brokers) + 1):
            partition = self._create(f"{self.check}-{number}", replicas=brokers[:1])
            if partition.connection in by_leader:
                return by_leader[partition.connection], partition
            by_leader[partition.connection] = partition
        raise UndecidedError(f"{len(by_leader)} partitions have as many leaders, and Metadata names {len(brokers)} brokers")

    def session(self, connection: BrokerConnection, *fetches: WireRequest) -> ProbeSession:
        """Open a fetch session for this check alone, with the partitions of these fetches. Raises NotOfferedError."""
        call = opening_fetch(*fetches)
        return self.opened(connection, call, connection.request(call))

    def opened(self, connection: BrokerConnection, call: WireRequest, response: WireMessage) -> ProbeSession:
        """Return the session that `response`, to the full fetch `call`, opens; it is closed when the probe ends.

        Raises NotOfferedError where it opens none, UndecidedError where it has an error.
        """
        if response["errorCode"] != errors.NONE:
            raise UndecidedError(f"a fetch session was not opened: {error_text(response['errorCode'])}")
        if response["sessionId"] == INVALID_SESSION_ID:
            raise NotOfferedError("a full fetch that asks for a session is given none, as it may: the session id is 0")
        self._topics.sessions.append(session := ProbeSession(connection, call, response))
        return session

    def producer(self) -> tuple[int, int]:
        """Return the producer id and the producer epoch of the probe.

        All checks share them: sequence numbers are counted per partition, and each check has its own.
        """
        if self._producer is None:
            self._producer = self._new_producer()
        return self._producer

    def absent(self) -> ProbePartition:
        """Return a partition of a topic that does not exist, with a name and an id that no topic has."""
        return self.log().elsewhere(f"{self._prefix}-absent", UUID(int=0xAB5E27))

    def _shared(self, name: str, create: Callable[[], ProbePartition]) -> ProbePartition:
        """Return the fixture called `name`, which `create` makes at its first use.

        Raises UndecidedError if that failed, NotOfferedError if the broker does not offer a request that it takes.
        """
        # A failure is remembered as well: rule 2 of this file.
        if name not in self._shared_fixtures:
            try:
                self._shared_fixtures[name] = create()
            except UndecidedError as problem:
                self._shared_fixtures[name] = problem
            except NoResponseError as problem:
                self._shared_fixtures[name] = UndecidedError(f"the setting could not be made: {problem}")
        fixture = self._shared_fixtures[name]
        if isinstance(fixture, UndecidedError):
            raise fixture
        return fixture

    # -----------------------------------------------------------------------------------------------------------------
    # How they are made

    def _create(
        self, purpose: str, config: Mapping[str, str] = KEEPS_ALL, replicas: list[int] | None = None
    ) -> ProbePartition:
        """Create a topic of one partition, named by its purpose; `replicas`: the brokers to place it on."""
        return self._topics.create(f"{self._prefix}-{purpose}", config, replicas)

    def _create_written(self, purpose: str) -> ProbePartition:
        """Return a new partition with RECORDS records."""
        partition = self._create(purpose)
        for _ in range(RECORDS):
            append_batch(partition)
        return partition

    def _create_moved(self) -> ProbePartition:
        """Return a new partition whose first four records were deleted."""
        partition = self._create_written("moved")
        result = single_entry(partition.connection.request(partition.delete_records(4)), "topics", "partitions")
        if result["errorCode"] != errors.NONE:
            raise UndecidedError(f"records could not be deleted: {error_text(result['errorCode'])}")
        partition.start = 4
        return partition

    def _new_producer(self) -> tuple[int, int]:
        """Request a producer id and its epoch, and return both. Raises UndecidedError."""
        # A broker that has just started may have to load its coordinator first.
        body = {"transactionalId": None, "transactionTimeoutMs": 60_000}
        call = WireRequest("InitProducerId", self.first.versions["InitProducerId"].stop - 1, body)
        response = self._topics.until(lambda: self.first.request(call), lambda reply: reply["errorCode"] not in LOADING)
        if response["errorCode"] != errors.NONE:
            raise UndecidedError(f"there is no producer id: {error_text(response['errorCode'])}")
        return response["producerId"], response["producerEpoch"]

    def _two_brokers(self) -> list[int]:
        """Return the ids of two brokers. Raises UndecidedError where there is one."""
        nodes = self._topics.brokers()
        if len(nodes) < 2:
            raise UndecidedError("it takes two brokers, and there is one")
        return nodes[:2]

    def _create_elected(self) -> ProbePartition:
        """Return a new partition with records of four leader epochs: of its first leader, and of three that were elected."""
        # Kafka elects the first of the replicas (the preferred one), so each new order of them is another election. A broker
        # that elects another one will do as well: only the leader epoch has to grow.
        nodes = self._two_brokers()
        # The first leader is nodes[0]; each that follows is another than the one before.
        partition = self._create("epochs", replicas=nodes)
        for leader in (nodes[1], nodes[0], nodes[1]):
            for _ in range(3):
                append_batch(partition)
            self._elect(partition.name, [leader, *(node for node in nodes if node != leader)])
            # `ready` takes the log for empty; it still has what was written to it before the election.
            elected = self._topics.ready(partition.name, behind=partition.epoch)
            elected.batches, elected.epochs, elected.timestamps = partition.batches, partition.epochs, partition.timestamps
            partition = elected
        append_batch(partition)
        return partition

    def _elect(self, name: str, replicas: list[int]) -> None:
        """Have the first of `replicas` elected leader of the topic `name`.

        The reassignment changes only the order of the replicas, and with it the preferred leader.
        """
        partitions = [{"partitionIndex": 0, "replicas": replicas}]
        self._topics.administer("AlterPartitionReassignments", {"topics": [{"name": name, "partitions": partitions}]})
        topic = {"topic": name, "partitions": [0]}
        self._topics.administer("ElectLeaders", {"electionType": PREFERRED, "topicPartitions": [topic]})


def append_batch(partition: ProbePartition, records: int = 1) -> None:
    """Write a batch of so many records with acks=all. Raises UndecidedError where it is refused."""
    result = single_entry(
        partition.connection.request(partition.produce(next_batch(partition, records))), "responses", "partitionResponses"
    )
    if result["errorCode"] != errors.NONE:
        raise UndecidedError(f"a record could not be written to {partition.name}: {error_text(result['errorCode'])}")
    partition.appended(records)
