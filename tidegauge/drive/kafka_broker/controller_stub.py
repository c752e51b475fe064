"""The controller of the broker under test: it registers the broker, answers its heartbeats, and decides nothing by itself.

The driver is this program. A proposal is the ISR that the broker proposes for a partition in an AlterPartition request; it
is pending until the driver answers it. A body is a dict of fields as Kafka's message definitions name them (`WireMessage`).
Tasks wait for `Conditions`, functions that say whether something has come about: `wait_for` raises WireError if it never
does, `wait_up_to` returns whether it has after some seconds, and `notify` has all of them looked at again.

Rules of this file

1. What the broker reads of the cluster, the driver wrote into the metadata log. Since 3.5 its heartbeats carry the offset
   that it has applied; before, only the one that it has read (see AppliedMetadataBarrier).
2. A request of an earlier process, or of one that the driver has given up, does not count: it has another broker epoch.
3. AlterPartition requests come one at a time, with every pending proposal. A proposal that the driver has not answered is
   left out of the response: the broker keeps it and sends it again (AlterPartitionManager#handleAlterPartitionResponse).
4. So a request made after some moment contains every proposal made before it, and shows that the broker has handled every
   response before it. The proposal of `KeepAlive` is never answered, so that the requests never stop.
5. The metadata log is records in batches, each record at its own offset, as KIP-500 and KIP-631 have it. A record is a frame
   version, an API key, a version and a message (MetadataRecordSerde).
"""

import asyncio
import time
from bisect import bisect_left
from typing import NamedTuple
from uuid import UUID, uuid4

from tidegauge.drive.wire.compiler import Messages, WireError, WireMessage, write_uvarint
from tidegauge.drive.wire.frames import HOST, Conditions, Listener, ReceivedRequest
from tidegauge.impl.errors import STALE_BROKER_EPOCH
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, NONE
from tidegauge.traces.segments import batch_of, encode

CONTROLLER_ID = 3000
QUORUM_EPOCH = 5
"""The leader epoch of the quorum, which never changes."""
METADATA_LINGER = 0.02
"""Seconds between a write of metadata and its being read, so that what is written meanwhile is read with it: applying
metadata at all costs a broker more than each record of it."""

PROPOSAL_PAUSE = 0.04
"""Seconds that an AlterPartition request is held while nobody waits for the next one."""

PROPOSAL_LINGER = 0.02
"""Seconds that it is held when somebody waits: others who begin to wait meanwhile are served by the same next request."""

METADATA_VERSION = "metadata.version"
SERVED = (
    "Fetch",
    "ApiVersions",
    "BrokerRegistration",
    "BrokerHeartbeat",
    "AlterPartition",
    "AssignReplicasToDirs",
    "FetchSnapshot",
    "Vote",
    "BeginQuorumEpoch",
    "EndQuorumEpoch",
)

FRAME_VERSION = 1
TOPIC_NAME, TOPIC_ID = "__cluster_metadata", UUID(int=1)


class MetadataRecord(NamedTuple):
    """A metadata record: the name of its definition, its fields, its version (None: the newest that the release has)."""

    name: str
    body: WireMessage
    version: int | None = None


class MetadataLog:
    """Batches of metadata records, all of one leader epoch of the quorum."""

    def __init__(self, messages: Messages, epoch: int) -> None:
        """Begin with an empty log; `epoch` is the leader epoch of all its batches. `end`: the log end offset."""
        self._messages, self.epoch, self.end = messages, epoch, 0
        self._batches: list[bytes] = []
        self._base_offsets: list[int] = []

    def append(self, *records: MetadataRecord) -> int:
        """Write the records as one batch and return the offset of the last."""
        values = [self._encode(*record) for record in records]
        self._batches.append(encode(batch_of(self.end, self.epoch, values, int(time.time() * 1000))))
        self._base_offsets.append(self.end)
        self.end += len(values)
        return self.end - 1

    def read(self, offset: int) -> bytes:
        """Return all batches from an offset on, which must be where a batch begins or the log end."""
        return b"".join(self._batches[bisect_left(self._base_offsets, offset) :])

    def newest_version(self, name: str) -> int:
        """Return the newest version of a record that the release has."""
        return self._messages.versions(name).stop - 1

    def _encode(self, name: str, body: WireMessage, version: int | None) -> bytes:
        """Encode a record of the metadata log: frame version, API key and version, then the message."""
        version = self.newest_version(name) if version is None else version
        out = bytearray()
        for number in (FRAME_VERSION, self._messages.api_key(name), version):
            write_uvarint(out, number)
        return bytes(out) + self._messages.write(name, version, body)


class Proposals:
    """The broker's pending proposals, by topic id, and the driver's responses. Every topic has one partition, 0.

    Timeline of `exchanged`, called while request 1 is held:

        broker   |--request 1--|          |--request 2--|
        driver      held ... response 1      -> `exchanged` returns: request 2 was made after response 1 was handled
    """

    def __init__(self, conditions: Conditions) -> None:
        """Begin with no proposal pending.

        `_requests` counts the AlterPartition requests; `_is_held`: one is being held; `_somebody_waits`: in `exchanged`, for
        the next one.
        """
        self._conditions = conditions
        self._responses: dict[UUID, WireMessage] = {}
        self._requests, self._is_held, self._somebody_waits = 0, False, False
        self.pending: dict[UUID, WireMessage] = {}

    def respond(self, topic: UUID, response: WireMessage) -> None:
        """Put the response to a topic's proposal into the next AlterPartition response."""
        self._responses[topic] = response

    async def exchanged(self) -> None:
        """Wait for an AlterPartition request that the broker makes after now, and after it has handled all responses so far.

        Then `pending` has every proposal that it has made before. Raises WireError if no such request comes.
        """
        # A request that is held was made before now, so the next one will do. With none held, the next one may already be on
        # its way, made before now: it takes the one after that.
        awaited_request = self._requests + (1 if self._is_held else 2)
        self._somebody_waits = True
        self._conditions.notify()
        await self._conditions.wait_for(lambda: self._requests >= awaited_request, "another AlterPartition request")

    def clear(self) -> None:
        """Forget the proposals of a process that has ended."""
        self.pending.clear()
        self._responses.clear()

    async def handle(self, body: WireMessage) -> WireMessage:
        """Take the proposals of an AlterPartition request, hold it for a while, and return the response.

        Proposals that the driver has not answered are left out of it (rule 3).
        """
        self.pending = {topic["topicId"]: topic["partitions"][0] for topic in body["topics"]}
        self._requests, self._is_held = self._requests + 1, True
        self._conditions.notify()
        # The broker sends the next request at once: without a pause the two would do nothing else.
        if await self._conditions.wait_up_to(PROPOSAL_PAUSE, lambda: self._somebody_waits):
            await asyncio.sleep(PROPOSAL_LINGER)
        self._somebody_waits = False
        topics = [
            {"topicId": topic, "partitions": [{"partitionIndex": 0, **self._responses.pop(topic)}]}
            for topic in self.pending
            if topic in self._responses
        ]
        self._is_held = False
        return {"errorCode": NONE, "topics": topics}


class ControllerStub:
    """A KRaft controller for one broker, `broker`, that does what the driver says. Topic ids are uuids; every topic has one
    partition, 0.
    """

    def __init__(self, messages: Messages, broker: int, conditions: Conditions) -> None:
        """Begin with an empty metadata log; `broker` is the id of the one broker.

        `unfenced`: whether its process is; `applied_offset`: the metadata offset in its last heartbeat. -1 is none yet.
        """
        self._messages, self._broker, self.conditions = messages, broker, conditions
        self.log = MetadataLog(messages, QUORUM_EPOCH)
        self._listener = Listener(messages, SERVED, self._handle, conditions)
        self._registration: WireMessage = {}
        self._broker_epoch, self.unfenced = -1, False
        self.applied_offset = -1
        self.proposals = Proposals(conditions)

    async def start(self) -> int:
        """Listen and return the port."""
        return await self._listener.start()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()

    @property
    def broker_port(self) -> int:
        """The port that the broker listens on."""
        return int(self._registration["listeners"][0]["port"])

    # -----------------------------------------------------------------------------------------------------------------
    # What the driver does

    def append(self, *records: MetadataRecord) -> int:
        """Write records into the metadata log and return the offset of the last."""
        offset = self.log.append(*records)
        self.conditions.notify()
        return offset

    def register_peer(self, node: int, port: int) -> int:
        """Register a broker of the driver's, unfenced; return its broker epoch."""
        return self._append_registration(node, uuid4(), port_listeners(port), [UUID(int=5000 + node)], fenced=False)

    def fence(self, node: int, broker_epoch: int, *, fenced: bool) -> int:
        """Write that a broker is fenced or unfenced; return the offset of the record."""
        # BrokerRegistrationFencingChange: 1 fences, -1 unfences, 0 changes nothing.
        body = {"brokerId": node, "brokerEpoch": broker_epoch, "fenced": 1 if fenced else -1}
        return self.append(MetadataRecord("BrokerRegistrationChangeRecord", body))

    def shut_down(self, node: int, broker_epoch: int) -> int:
        """Write that a broker is in controlled shutdown; return the offset of the record."""
        body = {"brokerId": node, "brokerEpoch": broker_epoch, "fenced": 0, "inControlledShutdown": 1}
        return self.append(MetadataRecord("BrokerRegistrationChangeRecord", body))

    def create_topic(self, name: str, topic: UUID) -> None:
        """Write the record of a topic."""
        self.append(MetadataRecord("TopicRecord", {"name": name, "topicId": topic}))

    def register_partition(
        self, topic: UUID, replicas: list[int], isr: list[int], leader: int, epoch: int, partition_epoch: int
    ) -> int:
        """Write the new registration of a topic's partition, in a leader epoch `epoch`; return the offset of the record."""
        # Version 1 is the first with log directories; no later field is needed.
        version = min(1, self.log.newest_version("PartitionRecord"))
        body = {
            "partitionId": 0,
            "topicId": topic,
            "replicas": replicas,
            "isr": isr,
            "removingReplicas": [],
            "addingReplicas": [],
            "leader": leader,
            "leaderEpoch": epoch,
            "partitionEpoch": partition_epoch,
        }
        if version >= 1:
            # Since KIP-858 a replica has a log directory. The broker looks for its own there, and asks for a change
            # (AssignReplicasToDirs) when it is another.
            broker_directory = (self._registration.get("logDirs") or [None])[0]
            body["directories"] = [broker_directory if node == self._broker else UUID(int=5000 + node) for node in replicas]
        return self.append(MetadataRecord("PartitionRecord", body, version))

    def forget_process(self) -> None:
        """Note that the broker's process has ended: ignore from now on what it has sent, also what is still to be read."""
        self._broker_epoch, self.applied_offset, self.unfenced = -1, -1, False
        self.proposals.clear()

    # -----------------------------------------------------------------------------------------------------------------
    # Requests of the broker

    async def _handle(self, request: ReceivedRequest) -> WireMessage:
        """Return the response to a request of the broker. Raises WireError for one that it should not have sent."""
        match request.name:
            case "Fetch":
                return await self._fetch(request)
            case "BrokerRegistration":
                return self._register_broker(request.body)
            case "BrokerHeartbeat":
                return self._heartbeat(request.body)
            case "AlterPartition":
                # A process that was killed may still have a request on its way.
                if request.body["brokerEpoch"] != self._broker_epoch:
                    return {"errorCode": STALE_BROKER_EPOCH, "topics": []}
                return await self.proposals.handle(request.body)
            case "AssignReplicasToDirs":
                return {"errorCode": NONE, "directories": _accept_directories(request.body)}
            case _:
                # Whatever else a broker asks its controller shows that the driver's picture of the cluster is wrong.
                raise WireError(f"the broker: expected no {request.name} request to its controller; seen {request.body}")

    async def _fetch(self, request: ReceivedRequest) -> WireMessage:
        """Return the response to a fetch of the metadata log; with no new records only after its maxWaitMs."""
        fetch = request.body["topics"][0]["partitions"][0]
        offset, log = fetch["fetchOffset"], self.log
        partition = {
            "partitionIndex": 0,
            "errorCode": NONE,
            "logStartOffset": 0,
            "abortedTransactions": [],
            "records": b"",
            "currentLeader": {"leaderId": CONTROLLER_ID, "leaderEpoch": log.epoch},
        }
        if fetch["currentLeaderEpoch"] < log.epoch:
            # A broker that has just started does not know the quorum's epoch: it learns the leader from this error.
            partition["errorCode"] = FENCED_LEADER_EPOCH
        else:
            if await self.conditions.wait_up_to(request.body["maxWaitMs"] / 1000, lambda: log.end > offset):
                await asyncio.sleep(METADATA_LINGER)
            partition["records"] = log.read(offset)
        partition["highWatermark"] = partition["lastStableOffset"] = log.end
        # Since version 13 (KIP-516) a Fetch names a topic by its id.
        topic = {"topicId": TOPIC_ID} if request.version >= 13 else {"topic": TOPIC_NAME}
        return {"errorCode": NONE, "sessionId": 0, "responses": [{**topic, "partitions": [partition]}]}

    def _register_broker(self, body: WireMessage) -> WireMessage:
        """Register the broker, fenced, and return the response, with its new broker epoch.

        The first time the record of the metadata version is written before.
        """
        self._registration, self.unfenced = body, False
        if not self.log.end:
            # A cluster's metadata begins with its metadata version: here the newest that this broker supports.
            level = next(
                feature["maxSupportedVersion"] for feature in body["features"] if feature["name"] == METADATA_VERSION
            )
            self.log.append(MetadataRecord("FeatureLevelRecord", {"name": METADATA_VERSION, "featureLevel": level}))
        self._broker_epoch = self._append_registration(
            body["brokerId"], body["incarnationId"], body["listeners"], body.get("logDirs", []), fenced=True
        )
        return {"errorCode": NONE, "brokerEpoch": self._broker_epoch}

    def _append_registration(
        self, node: int, incarnation: UUID, listeners: list[WireMessage], directories: list[UUID], *, fenced: bool
    ) -> int:
        """Write the registration of a broker and return its broker epoch: the offset of the record, as at a controller."""
        # Version 3 is the first with log directories (KIP-858); no later field is needed.
        epoch, version = self.log.end, min(3, self.log.newest_version("RegisterBrokerRecord"))
        body = {
            "brokerId": node,
            "incarnationId": incarnation,
            "brokerEpoch": epoch,
            "fenced": fenced,
            "rack": None,
            "endPoints": listeners,
            "features": [feature for feature in self._registration["features"] if feature["name"] == METADATA_VERSION],
        }
        if version >= 3:
            body["logDirs"] = directories
        self.append(MetadataRecord("RegisterBrokerRecord", body, version))
        return epoch

    def _heartbeat(self, body: WireMessage) -> WireMessage:
        """Return the response to a heartbeat; unfence the broker if it has caught up, as a controller does."""
        if body["brokerEpoch"] != self._broker_epoch:
            return {"errorCode": STALE_BROKER_EPOCH}
        self.applied_offset = body["currentMetadataOffset"]
        # A broker is unfenced when it has caught up to its own registration, and asks for it
        # (BrokerHeartbeatManager#calculateNextBrokerState).
        is_caught_up = self.applied_offset >= self._broker_epoch
        if is_caught_up and not body["wantFence"] and not self.unfenced:
            self.unfenced = True
            self.fence(self._broker, self._broker_epoch, fenced=False)
        self.conditions.notify()
        return {
            "errorCode": NONE,
            "isCaughtUp": is_caught_up,
            "isFenced": not self.unfenced,
            "shouldShutDown": body["wantShutDown"],
        }


def port_listeners(port: int) -> list[WireMessage]:
    """Return the listeners of a registration for one plain port of the loopback."""
    return [{"name": "PLAINTEXT", "host": HOST, "port": port, "securityProtocol": 0}]


def _accept_directories(body: WireMessage) -> list[WireMessage]:
    """Return the response to AssignReplicasToDirs that accepts everything in the request."""
    return [
        {
            "id": directory["id"],
            "topics": [
                {
                    "topicId": topic["topicId"],
                    "partitions": [
                        {"partitionIndex": partition["partitionIndex"], "errorCode": NONE}
                        for partition in topic["partitions"]
                    ],
                }
                for topic in directory["topics"]
            ],
        }
        for directory in body["directories"]
    ]
