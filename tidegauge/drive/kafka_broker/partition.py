"""A partition of an unmodified broker on which one path is played: how each step of the contract goes over the wire.

A method of DrivenPartition that is called `_` and the name of a step takes that step: it gets the step's arguments, and
returns the result that is reported, None for a step that is no request or has no response yet. Steps name brokers 1, 2, ..;
the broker under test is 1, and its peers, which this program plays, have other ids on the wire (`name` is always a broker as
steps name it, `node` its id there). A partition of a response is the entry of the driven partition in it. `requests` of the
broker makes requests about a partition, `slot.connection` sends them; `controller` is the controller that this program
plays: what it appends to the metadata log the broker reads, and its `proposals` are the broker's pending AlterPartition
requests by topic id.

Rule of this file: everything that a broker does by itself has something that shows it is done: applied metadata, the next
fetch to a peer, the next AlterPartition request. A step waits for these. What is not there afterwards will not come.
"""

import asyncio
from collections.abc import Callable, Container, Mapping
from typing import Any, NamedTuple

from tidegauge.drive.broker.contract import BROKER, COMMITTED, EARLIER, EARLIEST, LATER, Opening
from tidegauge.drive.contract import Report, Step
from tidegauge.drive.kafka_broker.clients import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ONE_BATCH,
    Reading,
    ReadReplicaState,
    Topic,
    batches_of,
    diverging_of,
    fetched_partition,
)
from tidegauge.drive.kafka_broker.controller_stub import MetadataRecord
from tidegauge.drive.kafka_broker.peers import fetch_response
from tidegauge.drive.kafka_broker.worker_slot import WorkerSlot
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import Connection, WireRequest
from tidegauge.impl.errors import INVALID_UPDATE_VERSION, REQUEST_TIMED_OUT
from tidegauge.impl.fetch.fetch_session import INVALID_SESSION_ID, FetchMetadata
from tidegauge.impl.rules import NONE, UNDEFINED

# Requests that may wait in the broker's purgatory, and the fetch sessions of the driver's peers.
#
# Rules of this part
#
# 1. A request that may wait has a connection of its own, because a broker takes one request of a connection at a time
#    (KafkaChannel#mute).
# 2. A peer's fetch session (KIP-227) contains the driven partition and another one. A full request names both; an
#    incremental one names the partition only if the session does not have it, or has it with another offset or epoch, as a
#    follower's FetchSessionHandler does.
# 3. What a session contains follows from the requests that were not refused, also while they wait. A request carries the id
#    of the last session that was given, also when the process that gave it has ended.


ACKS_OF_ALL = -1
ROUND_TRIPS = 4
"""Round trips on another connection after which it is certain whether a fetch waits:

    1 answered   the fetch has been read: it was sent before
    2 answered   the fetch has been handled: one thread handles requests, in their order
    3 answered   its response has been written, if it has one: one thread writes responses
    4 answered   this process has had a turn to read it
"""

ReadPartition = Callable[[WireMessage], WireMessage | None]
"""Takes the driven partition out of a response; None when the response does not have it."""


class WaitingFetch(NamedTuple):
    """A fetch without a response yet: its connection, the task that waits for the response, how the response is read."""

    connection: Connection
    response: "asyncio.Task[list[WireMessage]]"
    read: ReadPartition


class WaitingFetches:
    """The fetches of peers that wait, by peer."""

    def __init__(self, slot: WorkerSlot) -> None:
        self._slot = slot
        self._waiting: dict[int, WaitingFetch] = {}

    async def fetch(self, peer: int, request: WireRequest, read: ReadPartition) -> WireMessage | None:
        """Send a peer's fetch on a connection of its own; return the partition of its response, None if it waits."""
        connection = await self._slot.broker.connect()
        # Once a round trip is over the broker's network thread knows this connection: a request on it is read in its order
        # among those of other connections, which ROUND_TRIPS relies on.
        await connection.round_trip()
        self._waiting[peer] = WaitingFetch(connection, asyncio.create_task(connection.exchange([request])), read)
        await asyncio.sleep(0)  # the task runs as far as its first wait: the fetch is sent
        for _ in range(ROUND_TRIPS):
            await self._slot.connection.round_trip()
        # The fetch may have ended that of another peer, whose response is reported as `fetched`.
        return self.take_responses({peer}).get(peer)

    def take_responses(self, peers: Container[int] | None = None) -> dict[int, WireMessage | None]:
        """Return by peer the partitions of the responses that have come since the last call.

        `peers`: of these peers only, None for all. A partition is None if the response does not have it.
        """
        completed = {
            peer: fetch
            for peer, fetch in self._waiting.items()
            if fetch.response.done() and (peers is None or peer in peers)
        }
        for peer, fetch in completed.items():
            del self._waiting[peer]
            fetch.connection.close()
        return {peer: fetch.read(fetch.response.result()[0]) for peer, fetch in sorted(completed.items())}

    def close(self) -> None:
        """Give up all fetches that wait, and close their connections."""
        for fetch in self._waiting.values():
            fetch.response.cancel()
            fetch.connection.close()
        self._waiting = {}


class WaitingProducer(NamedTuple):
    """A producer without a response yet."""

    connection: Connection
    response: "asyncio.Task[list[WireMessage]]"


class Producers:
    """The producers of one partition, and those of them that wait."""

    def __init__(self, slot: WorkerSlot) -> None:
        self._slot, self._broker = slot, slot.broker
        self._waiting: list[WaitingProducer] = []

    async def append(self, topic: Topic, acks: int) -> Report | None:
        """Write one record, and return error and base offset of the response.

        With acks=-1 return None once the record is appended: the response is taken later. A refusal is returned at once.
        """
        request = self._broker.requests.produce(topic, acks)
        if acks != ACKS_OF_ALL:
            return _produce_result((await self._slot.connection.exchange([request]))[0])
        end_before = await self._log_end(topic)
        connection = await self._broker.connect()
        producer = WaitingProducer(connection, asyncio.create_task(connection.exchange([request])))
        # Before the followers have fetched, only the log end shows that the broker has appended. Each read of it is handled
        # after the requests before it, so this loop ends.
        while not producer.response.done() and await self._log_end(topic) == end_before:
            pass
        if producer.response.done():
            result = _produce_result(producer.response.result()[0])
            # A refusal has no base offset. A response with one is of a record that was committed at once: it is reported in
            # `produced`, like that of every producer that waits.
            if result["base"] == UNDEFINED:
                connection.close()
                return result
        self._waiting.append(producer)
        return None

    async def _log_end(self, topic: Topic) -> Reading:
        """Read the log end offset of the partition, or the error with which the broker refuses."""
        return await self._broker.state_reader.log_end(topic)

    def take_responses(self) -> list[list[int]]:
        """Return [base offset, error] of each response that has come since the last call, in order of the offset."""
        completed = [producer for producer in self._waiting if producer.response.done()]
        self._waiting = [producer for producer in self._waiting if not producer.response.done()]
        responses = []
        for connection, response in completed:
            result = _produce_result(response.result()[0])
            responses.append([result["base"], result["error"]])
            connection.close()
        return sorted(responses)

    def close(self) -> None:
        """Give up all producers that wait, and close their connections."""
        for connection, response in self._waiting:
            response.cancel()
            connection.close()
        self._waiting = []


def _produce_result(response: WireMessage) -> dict[str, int]:
    """Return error and base offset of a Produce response."""
    partition = response["responses"][0]["partitionResponses"][0]
    return {"error": partition["errorCode"], "base": partition["baseOffset"]}


FROM_THE_START: WireMessage = {"fetchOffset": 0, "currentLeaderEpoch": UNDEFINED, "lastFetchedEpoch": UNDEFINED}
"""Fields of a fetch of the other partition, which never has records."""


class PeerSession(NamedTuple):
    """The fetch session of a peer. `partition`: as a request has named it last; None if the session does not have it."""

    id: int = INVALID_SESSION_ID
    partition: WireMessage | None = None


class PeerSessions:
    """The fetch sessions of the peers of one partition, `topic`; each also contains the partition of `other`."""

    def __init__(self, topic: Topic, other: Topic) -> None:
        self._topic, self._other = topic, other
        self._sessions: dict[int, PeerSession] = {}

    def fetch(self, peer: int, full: WireRequest, session_epoch: int, *, wanted: bool) -> tuple[WireRequest, ReadPartition]:
        """Turn a fetch outside sessions into one with a session epoch; return it, and a function that reads its response.

        `full`: the fetch, of the driven partition; `wanted`: whether the peer fetches that partition, or only the other one.
        """
        before = self._sessions.get(peer, PeerSession())
        (topic,) = full.body["topics"]
        partition = topic["partitions"][0] if wanted else None
        # `named`: the topics that the request names; session epochs 0 and -1 are those of a full request.
        named, forgotten, is_full = ([topic] if wanted else []), {}, FetchMetadata(before.id, session_epoch).is_full
        # A full request names both partitions, so that the session has them; an incremental one names only what changes.
        if is_full:
            named.append({"topicId": self._other.id, "partitions": [topic["partitions"][0] | FROM_THE_START]})
        elif partition == before.partition:
            named = []
        elif not wanted:
            forgotten = {"forgottenTopicsData": [{"topicId": self._topic.id, "partitions": [0]}]}
        body = {**full.body, "sessionId": before.id, "sessionEpoch": session_epoch, "topics": named, **forgotten}
        after = self._sessions[peer] = PeerSession(before.id, partition)

        def read(response: WireMessage) -> WireMessage | None:
            """Note what the response makes of the session; return its partition, None if it does not have it.

            An error of the whole response counts as the partition's.
            """
            if response["errorCode"] != NONE:
                # A refused request changes nothing in the session, which is as `before` again, unless a later request of the
                # peer has changed it since (`after`: as this one has left it).
                if self._sessions[peer] is after:
                    self._sessions[peer] = before
                return {"errorCode": response["errorCode"]}
            # A full request may have opened a new session.
            if is_full and response["sessionId"] != INVALID_SESSION_ID:
                self._sessions[peer] = PeerSession(response["sessionId"], partition)
            topics: list[Any] = [entry for entry in response["responses"] if entry["topicId"] == self._topic.id]
            return topics[0]["partitions"][0] if topics else None

        return full._replace(body=body), read


OTHER_INCARNATION = 1_000_000
"""Added to a broker epoch: a fetch with it is served, but it is not the epoch that the metadata cache has (KIP-903)."""

TOPIC_CONFIG = 2
UNREAD: Report = {"result": None, "requests": {}, "proposal": None, "produced": [], "fetched": {}}
"""The report on a process that has read no metadata: it has no such partition, so that its log cannot be read."""


class DrivenPartition:
    """A partition on which one path is played, with the peers and the connection of a worker slot."""

    def __init__(self, slot: WorkerSlot, opening: Opening) -> None:
        """Begin a partition on a new topic of the slot; nothing is sent yet."""
        self._slot, self._broker, self._opening, self.topic = slot, slot.broker, opening, slot.new_topic()
        self._peers = {name: slot.peers[name] for name in opening.peers}
        # Steps name brokers 1, 2, ..; the broker knows them by the ids of the slot.
        self._ids = {BROKER: BROKER, UNDEFINED: UNDEFINED, **{name: peer.node for name, peer in self._peers.items()}}
        self._names = {node: name for name, node in self._ids.items()}
        self._producers, self._waiting_fetches = Producers(slot), WaitingFetches(slot)
        self._sessions = PeerSessions(self.topic, slot.other)
        self._highest_epoch, self._is_created = UNDEFINED, False

    # -----------------------------------------------------------------------------------------------------------------
    # Reports

    def opening(self) -> Report:
        """Return the report before any step: the broker has no such partition, and nothing on disk."""
        return {**UNREAD, "leo": 0, "hw": 0, "log_start": 0, "ends": []}

    async def take(self, step: Step, known_report: Report | None = None) -> Report:
        """Take a step and return the report.

        `known_report`: the report after the same steps on another partition; it is returned in place of a new one if it can
        stand for one. Raises WireError and OSError.
        """
        name, *arguments = step
        # The lag time passes before each step (lag_check.py, rule 2), and no check may run by itself within one.
        if self._broker.lag_check is not None:
            await self._broker.lag_check.run_before_it_is_due()
            self._broker.lag_check.pass_time()
        result = await getattr(self, f"_{name}")(*arguments)
        if known_report is not None and self._may_reuse(result, known_report):
            return known_report
        return await self.report(result)

    def _may_reuse(self, result: Report | None, known_report: Report) -> bool:
        """Return whether `known_report`, a report read after the same steps on another partition, can stand for a new one.

        Only what is there without another request is compared: this step's result, and the fetches in flight.
        """
        # A waiting request gets its response once, on its own connection, and a report takes it from there: a known report
        # that has one cannot stand for reading the one of this partition.
        if known_report["produced"] or known_report["fetched"]:
            return False
        return bool(known_report["result"] == result and known_report["requests"] == self._requests())

    async def report(self, result: Report | None = None) -> Report:
        """Read everything that the contract reports, and return the report; `result` is that of the step."""
        proposals = self._broker.controller.proposals
        # A proposal is made in the course of a step and sent soon after: a request made from now on has it.
        await proposals.exchanged()
        replica = await self._broker.state_reader.read(self.topic, self._highest_epoch + 1)
        # Responses that arrived together with that of the read are taken in when the loop goes round.
        await asyncio.sleep(0)
        return {
            "result": result,
            "requests": self._requests(),
            "proposal": self._proposal_json(proposals.pending.get(self.topic.id)),
            "produced": self._producers.take_responses(),
            "fetched": {
                str(name): _fetch_json(partition) for name, partition in self._waiting_fetches.take_responses().items()
            },
            **_replica_json(replica),
        }

    def _requests(self) -> dict[str, dict[str, int]]:
        """Return the fetches in flight as they are reported, by the name of the peer that they go to."""
        in_flight = ((name, peer.request_in_flight(self.topic.id)) for name, peer in self._peers.items())
        return {
            str(name): {
                "current_leader_epoch": request.current_leader_epoch,
                "fetch_offset": request.fetch_offset,
                "last_fetched_epoch": request.last_fetched_epoch,
                "log_start": request.log_start,
            }
            for name, request in in_flight
            if request is not None
        }

    def _proposal_json(self, proposal: WireMessage | None) -> dict[str, Any] | None:
        """Return a pending proposal, an entry of AlterPartition, as it is reported; None if there is none."""
        if proposal is None:
            return None
        # Since KIP-903 (version 3) members of a proposed ISR carry their broker epochs.
        isr = proposal.get("newIsr") or [member["brokerId"] for member in proposal["newIsrWithEpochs"]]
        return {
            "isr": sorted(self._names[node] for node in isr),
            "leader_epoch": proposal["leaderEpoch"],
            "partition_epoch": proposal["partitionEpoch"],
        }

    # -----------------------------------------------------------------------------------------------------------------
    # Steps of the controller

    def write_registration(self, leader: int, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...]) -> int:
        """Write the partition's registration, and its topic first; return the offset in the metadata log."""
        controller = self._broker.controller
        if not self._is_created:
            controller.create_topic(self.topic.name, self.topic.id)
            if self._opening.min_insync_replicas > 1:
                value = str(self._opening.min_insync_replicas)
                config = {"resourceType": TOPIC_CONFIG, "resourceName": self.topic.name}
                controller.append(
                    MetadataRecord("ConfigRecord", {**config, "name": "min.insync.replicas", "value": value}, 0)
                )
            self._is_created = True
        self._highest_epoch = max(self._highest_epoch, leader_epoch)
        replicas = [BROKER, *(peer.node for peer in self._peers.values())]
        members, leader_id = [self._ids[name] for name in isr], self._ids[leader]
        return controller.register_partition(self.topic.id, replicas, members, leader_id, leader_epoch, partition_epoch)

    async def _metadata(self, leader: int, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...]) -> None:
        """Write the partition's registration, and wait until the broker has applied it and fetches from the leader."""
        await self._broker.wait_until_applied(self.write_registration(leader, leader_epoch, partition_epoch, isr))
        await self.wait_until_fetched_from(leader)

    async def wait_until_fetched_from(self, leader: int) -> None:
        """Wait until the broker fetches the partition from the leader in the metadata it has applied, if that is a peer."""
        peer = self._peers.get(leader)
        # The fetcher thread has the partition now, but its request in flight may be from before that. Only one that does
        # not have the partition is renewed: in another leader epoch an old request stays in flight, which the path needs.
        if peer is not None and peer.request_in_flight(self.topic.id) is None:
            await peer.fetch_again()

    async def _lag(self, _peers: tuple[int, ...]) -> None:
        """Let the broker check its ISR, and wait until that is over."""
        # The check of a broker finds every replica that lags, so the step always names them all (see NOT_GIVEN, lag_apart).
        assert self._broker.lag_check is not None
        await self._broker.lag_check.run(self.topic.id)

    async def _alter_partition_response(self, error: int, partition_epoch: int, isr: tuple[int, ...]) -> None:
        """Answer the pending proposal as the controller, and wait until the broker has handled the response."""
        proposals = self._broker.controller.proposals
        # The step before may have reused a known report: then the proposal is perhaps still on its way.
        if self.topic.id not in proposals.pending:
            await proposals.exchanged()
        response: WireMessage = {"errorCode": error}
        if error == NONE:
            leader_epoch, members = proposals.pending[self.topic.id]["leaderEpoch"], [self._ids[name] for name in isr]
            response = {"errorCode": NONE, "leaderId": BROKER, "leaderEpoch": leader_epoch, "isr": members}
            response["partitionEpoch"] = partition_epoch
        proposals.respond(self.topic.id, response)
        # The request after the response shows that the broker has handled it.
        await proposals.exchanged()

    # -----------------------------------------------------------------------------------------------------------------
    # Steps of clients and followers: done when the response is there

    async def _append(self, acks: int) -> Report | None:
        """Send a producer's batch of one record; the result is None if it waits for its acks."""
        return await self._producers.append(self.topic, acks)

    async def _fetch(self, name: int, epoch: int, offset: int, last_epoch: int, may_join: bool) -> Report | None:
        """Send a peer's fetch that does not wait."""
        request = await self._peer_fetch(name, epoch, offset, last_epoch, may_join)
        return _fetch_json(fetched_partition(await self._send(request)))

    async def _fetch_ineligible(self, name: int, epoch: int, offset: int, last_epoch: int, standing: str) -> Report | None:
        """Send a fetch of a peer that may not join the ISR. `standing`: why not (`contract.STANDINGS`)."""
        peer = self._peers[name]
        # Fenced or shutting down is in the metadata cache; another incarnation is another broker epoch in the fetch.
        async with self._broker.standing(peer, standing):
            request = self._broker.requests.fetch(
                self.topic,
                offset,
                current_leader_epoch=epoch,
                last_fetched_epoch=last_epoch,
                replica=peer.node,
                broker_epoch=peer.broker_epoch + {LATER: OTHER_INCARNATION, EARLIER: -1}.get(standing, 0),
                max_bytes=ONE_BATCH,
            )
            return _fetch_json(fetched_partition(await self._send(request)))

    async def _fetch_and_wait(self, name: int, epoch: int, offset: int, last_epoch: int, may_join: bool) -> Report | None:
        """Send a peer's fetch that waits if there is nothing to read."""
        request = await self._peer_fetch(name, epoch, offset, last_epoch, may_join, waits=True)
        return _fetch_json(await self._waiting_fetches.fetch(name, request, fetched_partition))

    async def _fetch_in_session(
        self, name: int, epoch: int, offset: int, last_epoch: int, may_join: bool, session_epoch: int
    ) -> Report | None:
        """Send a peer's fetch with a session epoch, which does not wait."""
        full = await self._peer_fetch(name, epoch, offset, last_epoch, may_join)
        return await self._send_in_session(*self._sessions.fetch(name, full, session_epoch, wanted=True))

    async def _fetch_in_session_and_wait(
        self, name: int, epoch: int, offset: int, last_epoch: int, may_join: bool, session_epoch: int
    ) -> Report | None:
        """Send a peer's fetch with a session epoch that waits if there is nothing to read."""
        full = await self._peer_fetch(name, epoch, offset, last_epoch, may_join, waits=True)
        request, read = self._sessions.fetch(name, full, session_epoch, wanted=True)
        return _fetch_json(await self._waiting_fetches.fetch(name, request, read))

    async def _fetch_others(self, name: int, session_epoch: int) -> Report | None:
        """Send a peer's fetch with a session epoch that is of the other partition alone."""
        # Its fields do not matter, for the request will not name the partition.
        full = await self._peer_fetch(name, UNDEFINED, 0, UNDEFINED, may_join=True)
        return await self._send_in_session(*self._sessions.fetch(name, full, session_epoch, wanted=False))

    async def _send_in_session(self, request: WireRequest, read: ReadPartition) -> Report | None:
        """Send a fetch in a session, and return its result; `read` takes the partition out of the response."""
        return _fetch_json(read(await self._send(request)))

    async def _peer_fetch(
        self, name: int, epoch: int, offset: int, last_epoch: int, may_join: bool, *, waits: bool = False
    ) -> WireRequest:
        """Return a peer's fetch, with which the peer may join the ISR or, unless `may_join`, may not.

        It is not sent; but for an old release the metadata cache is made to say so first.
        """
        peer = self._peers[name]
        request = self._broker.requests.fetch(
            self.topic,
            offset,
            current_leader_epoch=epoch,
            last_fetched_epoch=last_epoch,
            replica=peer.node,
            broker_epoch=peer.broker_epoch + (0 if may_join else OTHER_INCARNATION),
            max_bytes=ONE_BATCH,
            waits=waits,
        )
        # Before KIP-903 (version 15) a fetch has no broker epoch that could be wrong: the peer is fenced instead.
        if "replicaState" not in request.body:
            await self._broker.fence(peer, fenced=not may_join)
        return request

    async def _offsets_for_leader_epoch(self, current_leader_epoch: int, leader_epoch: int) -> Report:
        """Send a peer's OffsetsForLeaderEpoch request; return the end of the epoch, or the error."""
        requests, sender = self._broker.requests, self._any_peer
        request = requests.offsets_for_leader_epoch(self.topic, sender, current_leader_epoch, leader_epoch)
        partition = (await self._send(request))["topics"][0]["partitions"][0]
        if partition["errorCode"] != NONE:
            return {"error": partition["errorCode"]}
        return {"error": NONE, "leader_epoch": partition["leaderEpoch"], "end_offset": partition["endOffset"]}

    async def _list_offsets(self, current_leader_epoch: int, which: str) -> Report:
        """Request the log start, the log end (as a follower) or the high watermark (as a consumer)."""
        timestamp = EARLIEST_TIMESTAMP if which == EARLIEST else LATEST_TIMESTAMP
        # A request without a replica id is a consumer's: its latest offset is the high watermark.
        sender = UNDEFINED if which == COMMITTED else self._any_peer
        request = self._broker.requests.list_offsets(self.topic, timestamp, sender, current_leader_epoch)
        partition = (await self._send(request))["topics"][0]["partitions"][0]
        error = partition["errorCode"]
        return {"error": error} if error != NONE else {"error": NONE, "offset": partition["offset"]}

    async def _delete_records(self, offset: int) -> Report:
        """Send a DeleteRecords request for what lies before an offset; return the error."""
        response = await self._send(self._broker.requests.delete_records(self.topic, offset))
        error = response["topics"][0]["partitions"][0]["errorCode"]
        # The request does not wait for followers, so a timeout says only that their log starts are lower
        # (DelayedDeleteRecords); the leader's has moved.
        return {"error": NONE if error == REQUEST_TIMED_OUT else error}

    async def _send(self, request: WireRequest) -> WireMessage:
        """Send a request on the connection of the slot, and return its response."""
        (response,) = await self._slot.connection.exchange([request])
        return response

    @property
    def _any_peer(self) -> int:
        """The id on the wire of a peer, for requests in which it makes no difference which one it is."""
        return next(iter(self._peers.values())).node

    # -----------------------------------------------------------------------------------------------------------------
    # Steps of the leaders that it fetches from: done when the next fetch is there

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
        """Answer the fetch in flight to a peer. `offsets`: log start and log end that ListOffsets requests then get."""
        response = fetch_response(error, hw, log_start, records, diverging)
        # Without `offsets` no ListOffsets request follows, so that (0, 0) is not read.
        await self._peers[peer].respond(self.topic.id, response, offsets or (0, 0))

    async def _lose_response(self, peer: int) -> None:
        """Answer the fetch in flight to a peer with nothing that the broker uses."""
        await self._peers[peer].fetch_again()

    # -----------------------------------------------------------------------------------------------------------------
    # Its end

    def forget_process(self) -> None:
        """Give up the requests that wait: the process has ended, and their connections with it."""
        self._producers.close()
        self._waiting_fetches.close()

    async def close(self) -> None:
        """Give up what waits, and delete the topic."""
        self.forget_process()
        controller = self._broker.controller
        # A pending proposal would be in every AlterPartition request from now on; this error makes the broker drop it.
        if self.topic.id in controller.proposals.pending:
            controller.proposals.respond(self.topic.id, {"errorCode": INVALID_UPDATE_VERSION})
        if self._is_created:
            controller.append(MetadataRecord("RemoveTopicRecord", {"topicId": self.topic.id}))


def _replica_json(replica: ReadReplicaState | Mapping[str, int]) -> Report:
    """Return the fields of a report that the broker's replica was read for; an error in place of what it refused."""
    if not isinstance(replica, ReadReplicaState):
        return {"leo": replica}
    ends = [end if isinstance(end, Mapping) else [*end] for end in replica.ends]
    return {"leo": replica.leo, "hw": replica.hw, "log_start": replica.log_start, "ends": ends}


def _fetch_json(partition: WireMessage | None) -> Report | None:
    """Return the result of a peer's fetch from the partition of its response; None if that is None."""
    if partition is None:
        return None
    if partition["errorCode"] != NONE:
        return {"error": partition["errorCode"]}
    diverging = diverging_of(partition)
    return {
        "error": NONE,
        "hw": partition["highWatermark"],
        "log_start": partition["logStartOffset"],
        "records": batches_of(partition),
        "diverging": None if diverging is None else [*diverging],
    }
