"""One unmodified KRaft controller process, alone in its quorum: configuration, time, connections, its log.

A request is a name and a body, which is a dict of fields as Kafka's message definitions name them (`WireMessage`). What a
request did is committed when its response is there. `wake` is such a request that changes nothing. The metadata log is read
over the wire by an observer. The clock of the process may be one that the suite moves, or the machine's: `session` is the
length of a broker's session by it, `now` its time, both in seconds.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from tidegauge.drive.controller.metadata_image import LogRecord
from tidegauge.drive.kafka_broker.controller_stub import TOPIC_ID
from tidegauge.drive.kafka_process.builds import KafkaBuild
from tidegauge.drive.kafka_process.clock import Clock, make_clock
from tidegauge.drive.kafka_process.process import KafkaProcess
from tidegauge.drive.wire.compiler import Cursor, Messages, WireError, WireMessage, definitions_in, read_uvarint
from tidegauge.drive.wire.frames import API_VERSIONS, HOST, PATIENCE, Connection, WireRequest
from tidegauge.impl.controller.features import METADATA_VERSION
from tidegauge.impl.errors import NOT_CONTROLLER
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, NONE, NOT_LEADER_OR_FOLLOWER, UNDEFINED, UNKNOWN_LEADER_EPOCH
from tidegauge.traces.segments import decode, header

# The metadata log of a controller as an observer of the quorum reads it: Fetch of __cluster_metadata with replica id -1.
#
# Source: KIP-595 (observers, diverging and fenced epochs), KIP-631 (the frame of a metadata record, MetadataRecordSerde).


MAX_BYTES = 1 << 24
"""Of a fetch: more than the metadata log of a process has."""
NEWEST = 17
"""The version of Fetch that is used at most: later ones add nothing that an observer reads."""

FIRST_EPOCH = 1
OTHER_EPOCH = frozenset({FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER})
"""Errors of a fetch with a leader epoch that is not the quorum's, or to a node that does not lead it."""


class Observer:
    """Reads the metadata log from its beginning on. `epoch`: leader epoch of the quorum; `at`: offset of the next fetch."""

    def __init__(self, messages: Messages, connection: Connection, version: int) -> None:
        """Begin before the first record; `version` is the newest Fetch version that the controller has."""
        self._messages, self._connection, self._version = messages, connection, min(NEWEST, version)
        self._names = {messages.api_key(name): name for name in messages.metadata_records()}
        self.epoch, self.at, self._last_epoch = FIRST_EPOCH, 0, UNDEFINED

    async def read(self) -> list[LogRecord]:
        """Read the committed records after those read before, up to the high watermark.

        If the quorum has a newer leader epoch, note it and return what was read so far: the next call goes on.
        """
        records: list[LogRecord] = []
        while True:
            response = await self._connection.request("Fetch", self._version, self._request())
            # An error of the whole response stands for one of the partition.
            part = response["responses"][0]["partitions"][0] if not response["errorCode"] else response
            if part["errorCode"] in OTHER_EPOCH and "currentLeader" in part:
                self.epoch = max(self.epoch, part["currentLeader"]["leaderEpoch"])
                return records
            if part["errorCode"] != NONE:
                raise WireError(f"metadata log: expected to read from offset {self.at}; seen error {part['errorCode']}")
            new_batches = self._records(part["records"] or b"", part["highWatermark"])
            records += [record for batch in new_batches for record in batch]
            if not new_batches or self.at >= part["highWatermark"]:
                return records

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _request(self) -> WireMessage:
        """Return the next fetch of the metadata log, as an observer sends it."""
        partition = {
            "partition": 0,
            "currentLeaderEpoch": self.epoch,
            "fetchOffset": self.at,
            # 0 for an empty log, as in KRaft (KafkaMetadataLog#lastFetchedEpoch).
            "lastFetchedEpoch": max(self._last_epoch, 0),
            "logStartOffset": UNDEFINED,
            "partitionMaxBytes": MAX_BYTES,
        }
        # Version 15 has moved the replica id into another field (KIP-903). An observer has none.
        sender = {"replicaState": {"replicaId": UNDEFINED}} if self._version >= 15 else {"replicaId": UNDEFINED}
        limits = {"maxWaitMs": 0, "minBytes": 0, "maxBytes": MAX_BYTES, "sessionId": 0, "sessionEpoch": UNDEFINED}
        return {**sender, **limits, "topics": [{"topicId": TOPIC_ID, "partitions": [partition]}]}

    def _records(self, data: bytes, high_watermark: int) -> list[list[LogRecord]]:
        """Decode the records of each batch below the high watermark, and move the fetch offset after them.

        `data`: the batches of a fetch response, one after the other.
        """
        batches, position = [], 0
        while position < len(data):
            batch, end = header(data, position)
            if batch.base >= high_watermark:
                break
            # A control batch (a new leader's, a snapshot's) is the quorum's own and changes nothing in the cluster.
            records = [] if batch.is_control else decode(data, position)[0].records
            batches.append([self._record(record.offset, record.value or b"") for record in records])
            self.at, self._last_epoch, position = batch.last + 1, batch.epoch, end
        return batches

    def _record(self, offset: int, value: bytes) -> LogRecord:
        """Decode the record at an offset: frame version, API key and version, then the message.

        Raises WireError for an API key that is none of this release's metadata records.
        """
        cursor = Cursor(value)
        _frame_version, key, version = (read_uvarint(cursor) for _ in range(3))
        if key not in self._names:
            raise WireError(f"metadata log, offset {offset}: expected a record of this release; seen API key {key}")
        name = self._names[key]
        return LogRecord(offset, name, self._messages.read(name, version, value, cursor.at)[0])


SESSION_IS_OVER = 1.01
"""After that much of a session it is over for sure, however long the request took."""


class LeftSessions:
    """Counts the sessions that nobody keeps alive any more, until the controller has found that they are over.

    It finds one at each of its checks (path_cluster.py). `_since` has for each session when it was left, by the clock of the
    process.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: list[float] = []

    def __len__(self) -> int:
        return len(self._since)

    def add(self, count: int = 1) -> None:
        """Add so many sessions that nobody keeps alive from now on."""
        self._since += [self._clock.now()] * count

    def looked_for(self) -> None:
        """Forget the sessions that are over by now. Call it when the controller has checked until it found no more."""
        latest_over = self._clock.now() - SESSION_IS_OVER * self._clock.session
        self._since = [since for since in self._since if since > latest_over]


T = TypeVar("T")

CONTROLLER = 1
"""The controller's node id."""
MOMENT = 0.02
"""Seconds between two looks at something that is waited for."""
TASKS_COME_AFTER = 5_000
"""The periodic tasks come after that many sessions."""

NO_SUCH_TOPIC = "no-such-topic"


def properties(port: int, session: float) -> Mapping[str, object]:
    """Return the controller's configuration. `session`: the length of a broker's session in seconds."""
    # What a controller does by itself is switched off, or comes so late by its own clock that it never comes: no-op records,
    # snapshots, leader balance, the periodic unclean election.
    session_ms = int(session * 1000)
    return {
        "process.roles": "controller",
        "node.id": CONTROLLER,
        "controller.quorum.voters": f"{CONTROLLER}@{HOST}:{port}",
        "listeners": f"CONTROLLER://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "num.network.threads": 1,
        "num.io.threads": 2,
        "connections.max.idle.ms": -1,
        # What a request writes is committed at once, and a controller that starts or has resigned leads soon.
        "controller.quorum.append.linger.ms": 0,
        "controller.quorum.election.timeout.ms": 100,
        "controller.quorum.election.backoff.max.ms": 50,
        "metadata.max.idle.interval.ms": 0,
        "metadata.log.max.snapshot.interval.ms": 0,
        "metadata.max.retention.ms": -1,
        "metadata.max.retention.bytes": -1,
        "broker.session.timeout.ms": session_ms,
        "broker.heartbeat.interval.ms": max(2, min(60_000, session_ms // 4)),
        "unclean.leader.election.interval.ms": TASKS_COME_AFTER * session_ms,
        "auto.leader.rebalance.enable": "false",
    }


class ControllerProcess:
    """A controller process of a build: `start` starts it, `call` sends requests, `read` reads its metadata log.

    `supported`: the features that a broker of the release registers with; `levels`: finalized feature levels by name;
    `versions`: by request, the versions that the controller has.
    """

    connection: Connection
    observer: Observer
    process: KafkaProcess
    versions: Mapping[str, range]

    def __init__(self, build: KafkaBuild) -> None:
        """Prepare a process of a build; nothing starts yet."""
        self.clock = make_clock()
        self._build = build
        self._messages = Messages(definitions_in(build.with_messages))
        self.left_sessions = LeftSessions(self.clock)
        self.supported: list[WireMessage] = []
        self.levels: dict[str, int] = {}
        self.is_read = False
        """Whether nothing was requested since its log was read: then there is nothing more in it."""

    async def start(self) -> None:
        """Start the process, and wait until it leads and its first feature levels are in its log."""
        # The port is in controller.quorum.voters, so it has to be known before the process starts.
        self._port = free_port()
        self.process = KafkaProcess(
            self._build.class_path, properties(self._port, self.clock.session), self.clock.environment
        )
        self.process.start()
        self.connection = await self._until(self._connected, "that it listens")
        self.versions = await self.connection.versions()
        self.supported = await self._features()
        observer_connection = await Connection.open(self._messages, self._port)
        self.observer = Observer(self._messages, observer_connection, self.versions["Fetch"].stop - 1)
        await self._until(self._has_feature_levels, "a metadata.version in its log")

    async def call(self, name: str, body: WireMessage, version: int | None = None) -> WireMessage:
        """Send one request to the active controller, and return the response.

        `version`: the highest to use, None for the newest one that the controller has.
        """
        (response,) = await self._called([self._request(name, body, version)])
        return response

    def _request(self, name: str, body: WireMessage, version: int | None = None) -> WireRequest:
        """Return a request in the newest version that the controller has, or in `version` if that is lower."""
        newest = self.versions[name].stop - 1
        return WireRequest(name, newest if version is None else min(version, newest), body)

    async def _called(self, requests: Sequence[WireRequest]) -> list[WireMessage]:
        """Send requests together and return their responses.

        They are sent again while the controller does not lead, and on a new connection if the last one broke.
        """

        async def send() -> list[WireMessage] | None:
            """Send the requests once; return None if the controller does not lead yet, or the connection broke."""
            # Whatever these requests write is in the log beyond what was read of it.
            self.is_read = False
            try:
                responses = await self.connection.exchange(requests)
            except OSError:
                # If the process has ended, nobody listens: `_until` raises then, with the last lines that it wrote.
                self.connection = await self._connected() or self.connection
                return None
            return None if any(map(leads_not, responses)) else responses

        return await self._until(send, f"a response to {requests[0].name} by the active controller")

    async def read(self) -> list[LogRecord]:
        """Return the records that its metadata log has after those of the last call."""
        try:
            records = await self.observer.read()
        except OSError:
            self.process.check_runs()
            raise
        self.is_read = True
        return records

    async def wake(self, times: int = 1) -> None:
        """Wake the controller's event queue, so that it does what is due by now, with requests that change nothing.

        They cancel the reassignment of a topic that does not exist.
        """
        partition = {"partitionIndex": 0, "replicas": None}
        topics = [{"name": NO_SUCH_TOPIC, "partitions": [partition]}]
        no_change = self._request("AlterPartitionReassignments", {"timeoutMs": 9000, "topics": topics})
        await self._called([no_change] * times)

    async def barrier(self) -> None:
        """Wake the controller, and wait until all that was due is committed."""
        # A request is taken from a connection when the one before has its response (KafkaChannel#mute), so the second finds
        # done whatever the first has woken.
        await self.wake(2)

    async def leads_again(self, epoch: int) -> None:
        """Wait until a controller that has resigned in this leader epoch leads in a later one."""

        async def has_later_epoch() -> bool | None:
            """Read the log; return True once the observer has met a later leader epoch, else None."""
            await self.read()
            return self.observer.epoch > epoch or None

        await self._until(has_later_epoch, f"a leader epoch after {epoch}")
        await self.barrier()

    def close(self) -> None:
        """End the process, and close what was opened; it may not have started, or not altogether."""
        for name in ("connection", "process"):
            if hasattr(self, name):
                getattr(self, name).close()
        if hasattr(self, "observer"):
            self.observer.close()
        self.clock.close()

    async def _connected(self) -> Connection | None:
        """Return a new connection to the controller; None if nobody listens."""
        try:
            return await Connection.open(self._messages, self._port)
        except OSError:
            return None

    async def _features(self) -> list[WireMessage]:
        """Return the features that a broker of this release supports, as it registers them: those of the controller."""
        # From version 4 on the response also has features that may be at level 0 (KAFKA-17011).
        version = min(4, self.versions[API_VERSIONS].stop - 1)
        client = {"clientSoftwareName": "tidegauge", "clientSoftwareVersion": "1"}
        response = await self.connection.request(API_VERSIONS, version, client)
        return [
            {
                "name": feature["name"],
                "minSupportedVersion": feature["minVersion"],
                "maxSupportedVersion": feature["maxVersion"],
            }
            for feature in response["supportedFeatures"]
        ]

    async def _has_feature_levels(self) -> bool | None:
        """Read the log and note the feature levels in it; return True once metadata.version is among them, else None."""
        for _, name, body in await self.read():
            if name == "FeatureLevelRecord":
                self.levels[body["name"]] = body["featureLevel"]
        return METADATA_VERSION in self.levels or None

    async def _until(self, attempt: Callable[[], Awaitable[T | None]], expected: str) -> T:
        """Call `attempt` again and again until it returns something other than None, and return that.

        Raises WireError after PATIENCE seconds, which says what was `expected`, or as soon as the process has ended.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                while (result := await attempt()) is None:
                    self.process.check_runs()
                    await asyncio.sleep(MOMENT)
                return result
        except TimeoutError:
            words = self.process.last_words()
            raise WireError(
                f"the controller: expected {expected} within {PATIENCE:g} s; seen none; its last words:\n{words}"
            ) from None


def leads_not(response: WireMessage) -> bool:
    """Return whether a response is that of a controller that does not lead: NOT_CONTROLLER, of the whole or of each part."""
    if response.get("errorCode") == NOT_CONTROLLER:
        return True
    # Where the parts are depends on the request.
    parts = response.get("topics") or response.get("responses") or response.get("results") or []
    return bool(parts) and all(isinstance(part, dict) and part.get("errorCode") == NOT_CONTROLLER for part in parts)


def free_port() -> int:
    """Return a port of the loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
