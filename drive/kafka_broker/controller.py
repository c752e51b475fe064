"""The controller of the broker under test: it registers it, believes its heartbeats, and decides nothing by itself.

Rules of this file

1. What the broker reads of the cluster is what the suite wrote into the metadata log. That it has read it is known by its
   heartbeats, which carry the offset applied since 3.5; before, they carry what was read, and `Canary` says the rest.
2. A request of an earlier process, or one that the suite has given up, does not count: it has another broker epoch.
"""

import asyncio
from uuid import UUID, uuid4

from tidegauge.drive.kafka_broker.metadata_log import TOPIC_ID, TOPIC_NAME, MetadataLog, MetadataRecord
from tidegauge.drive.kafka_broker.proposals import Proposals
from tidegauge.drive.wire.compiler import Message
from tidegauge.drive.wire.frames import HOST, Listener, Received
from tidegauge.drive.wire.messages import Messages
from tidegauge.drive.wire.primitives import WireError
from tidegauge.drive.wire.signs import Signs
from tidegauge.impl.error_codes import STALE_BROKER_EPOCH
from tidegauge.impl.rules import FENCED_LEADER_EPOCH, NONE

CONTROLLER = 3000
QUORUM_EPOCH = 5
LINGER = 0.02
"""Metadata is read so long after it was written, in seconds, with what else is written by then: to apply anything costs a
broker more than what it applies.
"""

METADATA_VERSION = "metadata.version"
SERVES = (
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


class Controller:
    """A KRaft controller for one broker. Topic ids are uuids; every topic has one partition, 0."""

    def __init__(self, messages: Messages, broker: int, signs: Signs) -> None:
        self._messages, self._broker, self.signs = messages, broker, signs
        self.log = MetadataLog(messages, QUORUM_EPOCH)
        self._listener = Listener(messages, SERVES, self._handle, signs)
        self.registered: Message = {}
        self.broker_epoch, self.unfenced = -1, False
        self.applied = -1
        self.proposals = Proposals(signs)

    async def start(self) -> int:
        """Listen; on which port."""
        return await self._listener.start()

    def close(self) -> None:
        """Stop."""
        self._listener.close()

    @property
    def port(self) -> int:
        """The port that the broker listens on."""
        return int(self.registered["listeners"][0]["port"])

    @property
    def directory(self) -> UUID | None:
        """The broker's log directory, where releases have ids for them (KIP-858)."""
        found = self.registered.get("logDirs")
        return found[0] if found else None

    # -----------------------------------------------------------------------------------------------------------------
    # What the suite does

    def append(self, *records: MetadataRecord) -> int:
        """Write records into the metadata log; the offset of the last."""
        offset = self.log.append(*records)
        self.signs.changed()
        return offset

    def register(self, node: int, port: int) -> int:
        """Register a broker that is ours, unfenced; its broker epoch."""
        epoch, version = self.log.end, min(3, self.log.newest("RegisterBrokerRecord"))
        body = {
            "brokerId": node,
            "incarnationId": uuid4(),
            "brokerEpoch": epoch,
            "fenced": False,
            "rack": None,
            "endPoints": [{"name": "PLAINTEXT", "host": HOST, "port": port, "securityProtocol": 0}],
            "features": self._features(),
        }
        if version >= 3:
            body["logDirs"] = [UUID(int=5000 + node)]
        self.append(MetadataRecord("RegisterBrokerRecord", body, version))
        return epoch

    def fence(self, node: int, broker_epoch: int, *, fenced: bool) -> int:
        """Fence a broker, or unfence it."""
        body = {"brokerId": node, "brokerEpoch": broker_epoch, "fenced": 1 if fenced else -1}
        return self.append(MetadataRecord("BrokerRegistrationChangeRecord", body))

    def partition(
        self, topic: UUID, replicas: list[int], isr: list[int], leader: int, epoch: int, partition_epoch: int
    ) -> int:
        """Register a partition as it is to be from now on."""
        version = min(1, self.log.newest("PartitionRecord"))
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
            body["directories"] = [self.directory if node == self._broker else UUID(int=5000 + node) for node in replicas]
        return self.append(MetadataRecord("PartitionRecord", body, version))

    def gone(self) -> None:
        """The broker's process has ended: nothing that it sent counts, also what is still to be read."""
        self.broker_epoch, self.applied, self.unfenced = -1, -1, False
        self.proposals.clear()

    # -----------------------------------------------------------------------------------------------------------------
    # What the broker asks

    async def _handle(self, request: Received) -> Message:
        match request.name:
            case "Fetch":
                return await self._fetch(request)
            case "BrokerRegistration":
                return self._registration(request.body)
            case "BrokerHeartbeat":
                return self._heartbeat(request.body)
            case "AlterPartition":
                if request.body["brokerEpoch"] != self.broker_epoch:
                    return {"errorCode": STALE_BROKER_EPOCH, "topics": []}
                return await self.proposals.handle(request.body)
            case "AssignReplicasToDirs":
                return {"errorCode": NONE, "directories": _assigned(request.body)}
            case _:
                raise WireError(f"the broker: expected no {request.name} request to its controller; seen {request.body}")

    async def _fetch(self, request: Received) -> Message:
        asked = request.body["topics"][0]["partitions"][0]
        offset, log = asked["fetchOffset"], self.log
        found = {
            "partitionIndex": 0,
            "errorCode": NONE,
            "logStartOffset": 0,
            "abortedTransactions": [],
            "records": b"",
            "currentLeader": {"leaderId": CONTROLLER, "leaderEpoch": log.epoch},
        }
        if asked["currentLeaderEpoch"] < log.epoch:
            found["errorCode"] = FENCED_LEADER_EPOCH
        else:
            if await self.signs.within(lambda: log.end > offset, request.body["maxWaitMs"] / 1000):
                await asyncio.sleep(LINGER)
            found["records"] = log.read(offset)
        found["highWatermark"] = found["lastStableOffset"] = log.end
        topic = {"topicId": TOPIC_ID} if request.version >= 13 else {"topic": TOPIC_NAME}
        return {"errorCode": NONE, "sessionId": 0, "responses": [{**topic, "partitions": [found]}]}

    def _registration(self, body: Message) -> Message:
        self.registered, self.unfenced = body, False
        log, version = self.log, min(3, self.log.newest("RegisterBrokerRecord"))
        if not log.end:  # a cluster begins with its metadata version: the newest that this broker has
            level = next(one["maxSupportedVersion"] for one in body["features"] if one["name"] == METADATA_VERSION)
            log.append(MetadataRecord("FeatureLevelRecord", {"name": METADATA_VERSION, "featureLevel": level}))
        self.broker_epoch = log.end
        record = {
            "brokerId": body["brokerId"],
            "incarnationId": body["incarnationId"],
            "brokerEpoch": self.broker_epoch,
            "fenced": True,
            "rack": None,
            "endPoints": body["listeners"],
            "features": self._features(),
        }
        if version >= 3:
            record["logDirs"] = body.get("logDirs", [])
        self.append(MetadataRecord("RegisterBrokerRecord", record, version))
        return {"errorCode": NONE, "brokerEpoch": self.broker_epoch}

    def _features(self) -> list[Message]:
        return [feature for feature in self.registered["features"] if feature["name"] == METADATA_VERSION]

    def _heartbeat(self, body: Message) -> Message:
        if body["brokerEpoch"] != self.broker_epoch:
            return {"errorCode": STALE_BROKER_EPOCH}
        self.applied = body["currentMetadataOffset"]
        up = self.applied >= self.broker_epoch
        if up and not body["wantFence"] and not self.unfenced:
            self.unfenced = True
            self.fence(self._broker, self.broker_epoch, fenced=False)
        self.signs.changed()
        return {
            "errorCode": NONE,
            "isCaughtUp": up,
            "isFenced": not self.unfenced,
            "shouldShutDown": body["wantShutDown"],
        }


def _assigned(body: Message) -> list[Message]:
    return [
        {
            "id": directory["id"],
            "topics": [
                {
                    "topicId": topic["topicId"],
                    "partitions": [
                        {"partitionIndex": one["partitionIndex"], "errorCode": NONE} for one in topic["partitions"]
                    ],
                }
                for topic in directory["topics"]
            ],
        }
        for directory in body["directories"]
    ]
