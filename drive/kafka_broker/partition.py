"""A partition of an unmodified broker that one path is played on: what each step of the contract is on the wire.

Rule of this file: everything a broker does by itself has a sign that it is done: metadata that was applied, the next fetch
of a peer, the next AlterPartition request. A step waits for its signs; what then is not there will not come.
"""

import asyncio
from typing import Any

from tidegauge.drive.broker.contract import BROKER, EARLIEST, Opening
from tidegauge.drive.contract import Report, Step
from tidegauge.drive.kafka_broker.clients import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ONE_BATCH,
    batches_of,
    diverging_of,
    fetched,
)
from tidegauge.drive.kafka_broker.fetch_sessions import FetchSessions
from tidegauge.drive.kafka_broker.followers import Followers, Read
from tidegauge.drive.kafka_broker.metadata_log import MetadataRecord
from tidegauge.drive.kafka_broker.peers import Peer, fetch_response
from tidegauge.drive.kafka_broker.producers import Producers
from tidegauge.drive.kafka_broker.worker_slot import Lane
from tidegauge.drive.wire.compiler import Message
from tidegauge.drive.wire.frames import Call
from tidegauge.impl.error_codes import INVALID_UPDATE_VERSION, REQUEST_TIMED_OUT
from tidegauge.impl.rules import NONE, UNDEFINED

ANOTHER_INCARNATION = 1_000_000
"""Added to a broker epoch: a fetch of it is served, but it is not the one that the metadata cache knows (KIP-903)."""

TOPIC_CONFIG = 2
UNREAD: Report = {"result": None, "requests": {}, "proposal": None, "produced": [], "fetched": {}}
"""What is known of a process that has read no metadata: it has no such partition, so nobody can ask for its log."""


class Partition:
    """A partition that one path is played on."""

    def __init__(self, lane: Lane, opening: Opening) -> None:
        self._lane, self._broker, self._opening, self.topic = lane, lane.broker, opening, lane.topic()
        self._peers = {name: lane.peers[name] for name in opening.peers}
        self._ids = {BROKER: BROKER, UNDEFINED: UNDEFINED, **{name: peer.node for name, peer in self._peers.items()}}
        self._names = {node: name for name, node in self._ids.items()}
        self._producers, self._followers = Producers(lane), Followers(lane)
        self._sessions = FetchSessions(self.topic, lane.other)
        self._highest_epoch, self._created = UNDEFINED, False

    # -----------------------------------------------------------------------------------------------------------------
    # What it reports

    def opening(self) -> Report:
        """Before any step: the broker has no such partition, and nothing on disk."""
        return {**UNREAD, "leo": 0, "hw": 0, "log_start": 0, "ends": []}

    async def given(self, step: Step, known: Report | None = None) -> Report:
        """Take a step; what is seen then. `known`: what was seen after the same steps on another partition; it is taken for
        seen where this one says the same by itself.
        """
        name, *arguments = step
        if self._broker.lag_check is not None:
            self._broker.lag_check.pass_time()
        result = await getattr(self, f"_{name}")(*arguments)
        if known is not None and self._says(result, known):
            return known
        return await self.report(result)

    def _says(self, result: Report | None, known: Report) -> bool:
        """Whether what is known without a look is the same; what was told to who waited is not."""
        return (
            known["result"] == result
            and known["requests"] == self._requests()
            and not (known["produced"] or known["fetched"])
        )

    async def report(self, result: Report | None = None) -> Report:
        """Everything that is seen of the broker and its partition."""
        await self._broker.controller.proposals.exchanged()
        replica = await self._broker.looks.replica_of(self.topic, self._highest_epoch + 1)
        await asyncio.sleep(0)  # what came with the last response of this is taken in, too
        return {
            "result": result,
            "requests": self._requests(),
            "proposal": self._proposal(),
            "produced": self._producers.answered(),
            "fetched": {str(name): _named_json(found) for name, found in self._followers.answered().items()},
            "leo": replica.leo,
            "hw": replica.hw,
            "log_start": replica.log_start,
            "ends": [[*end] for end in replica.ends],
        }

    def _requests(self) -> dict[str, dict[str, int]]:
        return {str(name): found for name, peer in self._peers.items() if (found := self._request(peer))}

    def _request(self, peer: Peer) -> dict[str, int] | None:
        found = peer.fetched(self.topic.id)
        if found is None:
            return None
        return {
            "current_leader_epoch": found.current_leader_epoch,
            "fetch_offset": found.fetch_offset,
            "last_fetched_epoch": found.last_fetched_epoch,
            "log_start": found.log_start,
        }

    def _proposal(self) -> dict[str, Any] | None:
        found = self._broker.controller.proposals.waiting.get(self.topic.id)
        if found is None:
            return None
        isr = found.get("newIsr") or [one["brokerId"] for one in found["newIsrWithEpochs"]]
        return {
            "isr": sorted(self._names[node] for node in isr),
            "leader_epoch": found["leaderEpoch"],
            "partition_epoch": found["partitionEpoch"],
        }

    # -----------------------------------------------------------------------------------------------------------------
    # The controller

    def write(self, leader: int, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...]) -> int:
        """Register the partition as it is to be; the offset of it in the metadata log."""
        controller = self._broker.controller
        if not self._created:
            controller.append(MetadataRecord("TopicRecord", {"name": self.topic.name, "topicId": self.topic.id}))
            if self._opening.min_insync_replicas > 1:
                value = str(self._opening.min_insync_replicas)
                config = {"resourceType": TOPIC_CONFIG, "resourceName": self.topic.name}
                controller.append(
                    MetadataRecord("ConfigRecord", {**config, "name": "min.insync.replicas", "value": value}, 0)
                )
            self._created = True
        self._highest_epoch = max(self._highest_epoch, leader_epoch)
        replicas = [BROKER, *(peer.node for peer in self._peers.values())]
        members = [self._ids[name] for name in isr]
        return controller.partition(self.topic.id, replicas, members, self._ids[leader], leader_epoch, partition_epoch)

    async def _metadata(self, leader: int, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...]) -> None:
        await self._broker.applied(self.write(leader, leader_epoch, partition_epoch, isr))
        await self.follows(leader)

    async def follows(self, leader: int) -> None:
        """Wait until its fetcher thread has asked for it; a request that is in flight stays."""
        peer = self._peers.get(leader)
        if peer is not None and peer.fetched(self.topic.id) is None:
            await peer.ask_again()

    async def _lag(self, _peers: tuple[int, ...]) -> None:
        """All that lag: the check takes no one alone."""
        assert self._broker.lag_check is not None
        await self._broker.lag_check.run(self.topic.id)

    async def _alter_partition_response(self, error: int, partition_epoch: int, isr: tuple[int, ...]) -> None:
        proposals = self._broker.controller.proposals
        if self.topic.id not in proposals.waiting:
            await proposals.exchanged()
        response: Message = {"errorCode": error}
        if error == NONE:
            asked = proposals.waiting[self.topic.id]
            members = [self._ids[name] for name in isr]
            response = {"errorCode": NONE, "leaderId": BROKER, "leaderEpoch": asked["leaderEpoch"], "isr": members}
            response["partitionEpoch"] = partition_epoch
        proposals.respond(self.topic.id, response)
        await proposals.exchanged()

    # -----------------------------------------------------------------------------------------------------------------
    # Clients and followers

    async def _append(self, acks: int) -> Report | None:
        return await self._producers.append(self.topic, acks)

    async def _fetch(self, name: int, epoch: int, offset: int, last_epoch: int, may_join: bool) -> Report:
        call = await self._fetch_call(name, epoch, offset, last_epoch, may_join)
        return _fetch_json(fetched((await self._lane.connection.calls([call]))[0]))

    async def _fetch_and_wait(self, name: int, epoch: int, offset: int, last_epoch: int, may_join: bool) -> Report | None:
        call = await self._fetch_call(name, epoch, offset, last_epoch, may_join, waits=True)
        return _named_json(await self._followers.fetch(name, call, fetched))

    async def _fetch_in_session(
        self, name: int, epoch: int, offset: int, last_epoch: int, may_join: bool, session_epoch: int
    ) -> Report | None:
        full = await self._fetch_call(name, epoch, offset, last_epoch, may_join)
        return await self._answered_in_session(*self._sessions.fetch(name, full, session_epoch, wanted=True))

    async def _fetch_in_session_and_wait(
        self, name: int, epoch: int, offset: int, last_epoch: int, may_join: bool, session_epoch: int
    ) -> Report | None:
        full = await self._fetch_call(name, epoch, offset, last_epoch, may_join, waits=True)
        call, read = self._sessions.fetch(name, full, session_epoch, wanted=True)
        return _named_json(await self._followers.fetch(name, call, read))

    async def _fetch_others(self, name: int, session_epoch: int) -> Report | None:
        full = await self._fetch_call(name, UNDEFINED, 0, UNDEFINED, may_join=True)
        return await self._answered_in_session(*self._sessions.fetch(name, full, session_epoch, wanted=False))

    async def _answered_in_session(self, call: Call, read: Read) -> Report | None:
        return _named_json(read((await self._lane.connection.calls([call]))[0]))

    async def _fetch_call(
        self, name: int, epoch: int, offset: int, last_epoch: int, may_join: bool, *, waits: bool = False
    ) -> Call:
        broker, peer = self._broker, self._peers[name]
        call = broker.calls.fetch(
            self.topic,
            offset,
            current_leader_epoch=epoch,
            last_fetched_epoch=last_epoch,
            replica=peer.node,
            broker_epoch=peer.broker_epoch + (0 if may_join else ANOTHER_INCARNATION),
            max_bytes=ONE_BATCH,
            waits=waits,
        )
        if "replicaState" not in call.body:
            await broker.fence(peer, fenced=not may_join)
        return call

    async def _offsets_for_leader_epoch(self, current_leader_epoch: int, leader_epoch: int) -> Report:
        calls, replica = self._broker.calls, self._anybody
        call = calls.offsets_for_leader_epoch(self.topic, replica, current_leader_epoch, leader_epoch)
        found = (await self._lane.connection.calls([call]))[0]["topics"][0]["partitions"][0]
        if found["errorCode"] != NONE:
            return {"error": found["errorCode"]}
        return {"error": NONE, "leader_epoch": found["leaderEpoch"], "end_offset": found["endOffset"]}

    async def _list_offsets(self, current_leader_epoch: int, which: str) -> Report:
        timestamp = EARLIEST_TIMESTAMP if which == EARLIEST else LATEST_TIMESTAMP
        call = self._broker.calls.list_offsets(self.topic, timestamp, self._anybody, current_leader_epoch)
        found = (await self._lane.connection.calls([call]))[0]["topics"][0]["partitions"][0]
        error = found["errorCode"]
        return {"error": error} if error != NONE else {"error": NONE, "offset": found["offset"]}

    async def _delete_records(self, offset: int) -> Report:
        """DelayedDeleteRecords: a timeout says that the followers' log starts are behind, which is theirs."""
        (found,) = await self._lane.connection.calls([self._broker.calls.delete_records(self.topic, offset)])
        error = found["topics"][0]["partitions"][0]["errorCode"]
        return {"error": NONE if error == REQUEST_TIMED_OUT else error}

    @property
    def _anybody(self) -> int:
        return next(iter(self._peers.values())).node

    # -----------------------------------------------------------------------------------------------------------------
    # Its fetches

    async def _fetch_response(
        self,
        peer: int,
        error: int,
        hw: int,
        log_start: int,
        records: tuple[tuple[int, int, int], ...],
        diverging: tuple[int, int] | None,
        offsets: tuple[int, int] | None,
    ) -> None:
        response = fetch_response(error, hw, log_start, records, diverging)
        await self._peers[peer].respond(self.topic.id, response, offsets or (0, 0))

    async def _lose_response(self, peer: int) -> None:
        await self._peers[peer].ask_again()

    # -----------------------------------------------------------------------------------------------------------------
    # Its end

    def forget_process(self) -> None:
        """The process has ended, and with it every connection of a producer."""
        self._producers.close()
        self._followers.close()

    async def close(self) -> None:
        """Nobody needs it any more."""
        self.forget_process()
        controller = self._broker.controller
        if self.topic.id in controller.proposals.waiting:
            controller.proposals.respond(self.topic.id, {"errorCode": INVALID_UPDATE_VERSION})
        if self._created:
            controller.append(MetadataRecord("RemoveTopicRecord", {"topicId": self.topic.id}))


def _fetch_json(found: Message) -> Report:
    """The one partition of a response to a peer's fetch."""
    if found["errorCode"] != NONE:
        return {"error": found["errorCode"]}
    diverging = diverging_of(found)
    return {
        "error": NONE,
        "hw": found["highWatermark"],
        "log_start": found["logStartOffset"],
        "records": batches_of(found),
        "diverging": None if diverging is None else [*diverging],
    }


def _named_json(found: Message | None) -> Report | None:
    """The same of a response that waits, or that does not name the partition: null."""
    return None if found is None else _fetch_json(found)
