"""One unmodified KRaft controller process, alone in its quorum: configuration, time, connections, its log.

What a request did is committed when its response is there. `wake` is such a request that changes nothing.
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


PLENTY = 1 << 24
NEWEST = 17
"""Later versions of Fetch add nothing that an observer reads."""

FIRST_EPOCH = 1
OTHER_EPOCH = frozenset({FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER})


class Observer:
    """Reads a log from its beginning on. `epoch` is the leader epoch of the quorum."""

    def __init__(self, messages: Messages, connection: Connection, version: int) -> None:
        """Begin before the first record; `version` is the newest Fetch version that the controller has."""
        self._messages, self._connection, self._version = messages, connection, min(NEWEST, version)
        self._names = {messages.api_key(name): name for name in messages.metadata_records()}
        self.epoch, self.at, self._last_epoch = FIRST_EPOCH, 0, UNDEFINED

    async def read(self) -> list[LogRecord]:
        """Read the committed records after those read before; none if the quorum turns out to have a newer leader epoch."""
        records: list[LogRecord] = []
        while True:
            response = await self._connection.request("Fetch", self._version, self._request())
            part = response["responses"][0]["partitions"][0] if not response["errorCode"] else response
            # The response names the leader epoch, with which the caller's next read succeeds.
            if part["errorCode"] in OTHER_EPOCH and "currentLeader" in part:
                self.epoch = max(self.epoch, part["currentLeader"]["leaderEpoch"])
                return records
            if part["errorCode"] != NONE:
                raise WireError(f"metadata log: expected to read from offset {self.at}; seen error {part['errorCode']}")
            new = self._records(part["records"] or b"", part["highWatermark"])
            records += [record for batch in new for record in batch]
            if not new or self.at >= part["highWatermark"]:
                return records

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def _request(self) -> WireMessage:
        """Return the next fetch of the metadata log, as an observer sends it."""
        partition = {
            "partition": 0,
            "currentLeaderEpoch": self.epoch,
            "fetchOffset": self.at,
            "lastFetchedEpoch": max(self._last_epoch, 0),
            "logStartOffset": UNDEFINED,
            "partitionMaxBytes": PLENTY,
        }
        sender = {"replicaState": {"replicaId": UNDEFINED}} if self._version >= 15 else {"replicaId": UNDEFINED}
        limits = {"maxWaitMs": 0, "minBytes": 0, "maxBytes": PLENTY, "sessionId": 0, "sessionEpoch": UNDEFINED}
        return {**sender, **limits, "topics": [{"topicId": TOPIC_ID, "partitions": [partition]}]}

    def _records(self, data: bytes, high_watermark: int) -> list[list[LogRecord]]:
        """Decode the records of each whole batch below the high watermark."""
        batches, at = [], 0
        while at < len(data):
            batch, end = header(data, at)
            if batch.base >= high_watermark:
                break
            # A control batch (a new leader's, a snapshot's) is the quorum's own and changes nothing in the cluster.
            records = [] if batch.is_control else decode(data, at)[0].records
            batches.append([self._record(record.offset, record.value or b"") for record in records])
            self.at, self._last_epoch, at = batch.last + 1, batch.epoch, end
        return batches

    def _record(self, offset: int, value: bytes) -> LogRecord:
        """Decode a record: frame version, API key and version, then the message. Raises WireError."""
        cursor = Cursor(value)
        _, key, version = (read_uvarint(cursor) for _ in range(3))
        if key not in self._names:
            raise WireError(f"metadata log, offset {offset}: expected a record of this release; seen API key {key}")
        name = self._names[key]
        return LogRecord(offset, name, self._messages.read(name, version, value, cursor.at)[0])


SESSION_IS_OVER = 1.01
"""After that much of a session it is over for sure, however long the request took."""


class LeftSessions:
    """The sessions of a process that nobody keeps alive any more and the controller may not have found over yet: a count.

    It finds one at each of its checks (path_cluster.Lane). Time is that of the process's clock.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: list[float] = []

    def __len__(self) -> int:
        return len(self._since)

    def add(self, many: int = 1) -> None:
        """Count `many` more that nobody keeps alive from now on."""
        self._since += [self._clock.now()] * many

    def looked_for(self) -> None:
        """Forget what was over: the controller has checked until there was nothing to find."""
        begun = self._clock.now() - SESSION_IS_OVER * self._clock.session
        self._since = [since for since in self._since if since > begun]


T = TypeVar("T")

CONTROLLER = 1
MOMENT = 0.02
TASKS_COME_AFTER = 5_000
"""The periodic tasks come after that many sessions."""

NO_SUCH_TOPIC = "no-such-topic"


def properties(port: int, session: float) -> Mapping[str, object]:
    """Return the controller's configuration."""
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
    """A controller of a build."""

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
        """Start it, and wait until it leads and its first feature levels are in its log."""
        # The port is in controller.quorum.voters, so it has to be known before the process starts.
        self._port = free_port()
        self.process = KafkaProcess(
            self._build.class_path, properties(self._port, self.clock.session), self.clock.environment
        )
        self.process.start()
        self.connection = await self._until(self._connected, "that it listens")
        self.versions = await self.connection.versions()
        self.supported = await self._features()
        other = await Connection.open(self._messages, self._port)
        self.observer = Observer(self._messages, other, self.versions["Fetch"].stop - 1)
        await self._until(self._begun, "a metadata.version in its log")

    async def call(self, name: str, body: WireMessage, version: int | None = None) -> WireMessage:
        """Send one request, in the newest version that both sides have; again after a moment while it does not lead."""
        (response,) = await self._called([self._call(name, body, version)])
        return response

    def _call(self, name: str, body: WireMessage, version: int | None = None) -> WireRequest:
        newest = self.versions[name].stop - 1
        return WireRequest(name, newest if version is None else min(version, newest), body)

    async def _called(self, calls: Sequence[WireRequest]) -> list[WireMessage]:
        """Send requests together, again while the controller does not lead; on a new connection where the last one broke."""

        async def asked() -> list[WireMessage] | None:
            """Send the requests to the leader; None where it does not lead yet, or the connection was lost."""
            # Whatever these requests write is in the log beyond what was read of it.
            self.is_read = False
            try:
                responses = await self.connection.exchange(calls)
            except OSError:
                # Nobody listens where its process has ended: `_until` says so then, with its last words.
                self.connection = await self._connected() or self.connection
                return None
            return None if any(map(leads_not, responses)) else responses

        return await self._until(asked, f"a response to {calls[0].name} by the active controller")

    async def read(self) -> list[LogRecord]:
        """Return what its log has more than when it was last read."""
        try:
            records = await self.observer.read()
        except OSError:
            self.process.check_runs()
            raise
        self.is_read = True
        return records

    async def wake(self, times: int = 1) -> None:
        """Wake its event queue, so that what is due by now is done: a reassignment of a topic that does not exist."""
        partition = {"partitionIndex": 0, "replicas": None}
        topics = [{"name": NO_SUCH_TOPIC, "partitions": [partition]}]
        nothing = self._call("AlterPartitionReassignments", {"timeoutMs": 9000, "topics": topics})
        await self._called([nothing] * times)

    async def barrier(self) -> None:
        """Wake it, and wait for all that was due to be committed: of one connection a request is taken when the one before
        is answered (KafkaChannel#mute), so the second finds done whatever the first has woken.
        """
        await self.wake(2)

    async def leads_again(self, epoch: int) -> None:
        """Wait until a controller that has resigned in this leader epoch leads in a later one."""

        async def later() -> bool | None:
            await self.read()
            return self.observer.epoch > epoch or None

        await self._until(later, f"a leader epoch after {epoch}")
        await self.barrier()

    def close(self) -> None:
        """End everything."""
        for name in ("connection", "process"):
            if hasattr(self, name):
                getattr(self, name).close()
        if hasattr(self, "observer"):
            self.observer.close()
        self.clock.close()

    async def _connected(self) -> Connection | None:
        try:
            return await Connection.open(self._messages, self._port)
        except OSError:
            return None

    async def _features(self) -> list[WireMessage]:
        """Return the features that a broker of this release supports: those of the controller."""
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

    async def _begun(self) -> bool | None:
        for _, name, body in await self.read():
            if name == "FeatureLevelRecord":
                self.levels[body["name"]] = body["featureLevel"]
        return METADATA_VERSION in self.levels or None

    async def _until(self, met: Callable[[], Awaitable[T | None]], expected: str) -> T:
        """Call `met` until it returns something. Raises WireError, which names what was `expected`, after PATIENCE."""
        try:
            async with asyncio.timeout(PATIENCE):
                while (result := await met()) is None:
                    self.process.check_runs()
                    await asyncio.sleep(MOMENT)
                return result
        except TimeoutError:
            words = self.process.last_words()
            raise WireError(
                f"the controller: expected {expected} within {PATIENCE:g} s; seen none; its last words:\n{words}"
            ) from None


def leads_not(response: WireMessage) -> bool:
    """Return whether a controller that does not lead responded: in the whole, or in its only part."""
    if response.get("errorCode") == NOT_CONTROLLER:
        return True
    parts = response.get("topics") or response.get("responses") or response.get("results") or []
    return bool(parts) and all(isinstance(part, dict) and part.get("errorCode") == NOT_CONTROLLER for part in parts)


def free_port() -> int:
    """Return a port of the loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
