"""One unmodified broker with its controller: what all partitions share.

The broker under test is a process of Kafka. Its controller and its peers, the other brokers, are played by this program, the
driver: what the broker knows of the cluster is what the driver has written into the metadata log. A step of a path has to
wait until the broker has applied that metadata, and until it has sent what it proposes. Tasks wait for `Conditions`:
`wait_for` raises WireError if one is not met for long, `wait_up_to` returns whether it is after some seconds.

Rules of this file

1. The configuration takes from the broker what it would do by itself, and makes its order visible: one thread handles
   requests and one sends responses, so that what was handled first is seen first. Each setting has its reason beside it.
2. Where the clocks of the process cannot be moved, replica.lag.time.max.ms is -2: the check of the ISR runs once, at the
   start, and never again (ReplicaManager#startup schedules it every half of that; KafkaScheduler#schedule runs a task with a
   negative period once). A follower is then in time if it is at the log end, and only then, as in the reference.
3. Where they can be moved (lag_check), the time of day runs far ahead, and nothing else may come by it.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from uuid import uuid4

from tidegauge.drive.broker.contract import BROKER, FENCED, SHUTTING_DOWN
from tidegauge.drive.kafka_broker.clients import PartitionRequests, StateReader, Topic, fetched_partition
from tidegauge.drive.kafka_broker.controller_stub import CONTROLLER_ID, ControllerStub
from tidegauge.drive.kafka_broker.lag_check import CHECKED_EVERY_MS, LAG_MS, LagCheck
from tidegauge.drive.kafka_broker.peers import Peer
from tidegauge.drive.kafka_process.builds import KafkaBuild
from tidegauge.drive.kafka_process.clock import MovedClock
from tidegauge.drive.kafka_process.process import KafkaProcess
from tidegauge.drive.wire.compiler import Messages, WireError, definitions_in
from tidegauge.drive.wire.frames import HOST, PATIENCE, Conditions, Connection
from tidegauge.impl.releases import parse_release
from tidegauge.impl.rules import INELIGIBLE_REPLICA, NONE, UNDEFINED

FLUSHED_AFTER = 0.5
"""Seconds after which an epoch cache has written a truncation: the scheduler does it later (KAFKA-16541)."""

CHECKED_AFTER = 0.3
"""Seconds after the first metadata was applied in which the check of the ISR, scheduled when that began, has run."""

LOOKED_EVERY = 0.25
"""Seconds after which a process that has not registered is looked at: it may have ended."""

HIGH_WATERMARKS, LOG_STARTS = "replication-offset-checkpoint", "log-start-offset-checkpoint"

HEARTBEAT_MS = 20
HOUR_MS = 3_600_000
LAGS_AT_ONCE_MS = -2
"""Before any time: a negative period or age (rule 2)."""
NEVER_MS = (1 << 31) - 1
"""The longest that a setting of 32 bits can be."""
CENTURIES_MS = 9_000_000_000_000

APPLIED_IN_HEARTBEATS = (3, 5)
"""Since then a heartbeat carries the offset that was applied, not the one that was read."""

WITH_MOVED_CLOCK: Mapping[str, object] = {
    "replica.lag.time.max.ms": LAG_MS,
    # The checkpoint shows that a check is over (lag_check): it needs the same period, and the same, single thread.
    "replica.high.watermark.checkpoint.interval.ms": CHECKED_EVERY_MS,
    "background.threads": 1,
    # A request that is held ages by the lag time with each step.
    "request.timeout.ms": NEVER_MS,
    "controller.socket.timeout.ms": NEVER_MS,
    "replica.socket.timeout.ms": NEVER_MS,
    "broker.session.timeout.ms": NEVER_MS,
    "controller.quorum.fetch.timeout.ms": NEVER_MS,
    "controller.quorum.request.timeout.ms": NEVER_MS,
    "connections.max.idle.ms": -1,
    # Records are written with the present, and are soon days old.
    "log.retention.ms": -1,
    "log.retention.check.interval.ms": CENTURIES_MS,
    "log.roll.ms": CENTURIES_MS,
    "metadata.log.max.snapshot.interval.ms": 0,
}
"""The settings that are different where the clocks of the process can be moved."""


def broker_properties(controller_port: int, *, moved_clock: bool) -> Mapping[str, object]:
    """Return the broker's configuration. `moved_clock`: whether the driver moves the clocks of the process (rules 2, 3)."""
    return {
        "process.roles": "broker",
        "node.id": BROKER,
        "controller.quorum.voters": f"{CONTROLLER_ID}@{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        # Port 0: the broker chooses, and its registration says which one.
        "listeners": f"PLAINTEXT://{HOST}:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        # Rule 1: requests are handled, and responses written, in one order.
        "num.network.threads": 1,
        "num.io.threads": 1,
        "background.threads": 2,
        "auto.create.topics.enable": "false",
        # The cleaner would compact at times of its own; it also takes 128 MB.
        "log.cleaner.enable": "false",
        # Thousands of partitions exist at a time: small index files, and the deleted ones soon gone.
        "log.index.size.max.bytes": 4096,
        "log.segment.delete.delay.ms": 1000,
        # A heartbeat carries the metadata offset that was applied: a step waits for the next one, all slots for the same.
        "broker.heartbeat.interval.ms": HEARTBEAT_MS,
        "broker.session.timeout.ms": HOUR_MS,
        "replica.lag.time.max.ms": LAGS_AT_ONCE_MS,
        # A fetch to a peer is held for as long as the path takes.
        "replica.fetch.wait.max.ms": LAGS_AT_ONCE_MS,
        "replica.fetch.backoff.ms": 1,
        "replica.fetch.min.bytes": 1,
        "replica.socket.timeout.ms": HOUR_MS,
        # Also that of the fetcher threads' connections (BrokerBlockingSender): after it a held request would be repeated.
        "request.timeout.ms": HOUR_MS,
        # More than there are paths: a session of a path is not evicted by those of paths that are done.
        "max.incremental.fetch.session.cache.slots": 1_000_000,
        # Checkpoints are the driver's: it writes what a crash is to leave.
        "replica.high.watermark.checkpoint.interval.ms": HOUR_MS,
        **(WITH_MOVED_CLOCK if moved_clock else {}),
    }


class KafkaBroker:
    """The broker process of a build, and its controller. With a `clock` that the driver moves the lag time can run out."""

    connection: Connection
    requests: PartitionRequests
    state_reader: StateReader
    process: KafkaProcess

    def __init__(self, build: KafkaBuild, clock: MovedClock | None = None) -> None:
        """Prepare a broker and its controller; nothing starts yet."""
        self._messages = Messages(definitions_in(build.with_messages))
        self._build, self._clock, self._conditions = build, clock, Conditions()
        self.controller = ControllerStub(self._messages, BROKER, self._conditions)
        self._keep_alive = KeepAlive(self.controller)
        self.lag_check: LagCheck | None = None
        is_early = parse_release(build.release) < APPLIED_IN_HEARTBEATS
        self._barrier = AppliedMetadataBarrier(self.controller) if is_early else None

    async def start(self) -> None:
        """Start the controller and the process, and wait until the broker is up."""
        port = await self.controller.start()
        environment = {} if self._clock is None else self._clock.environment
        settings = broker_properties(port, moved_clock=self._clock is not None)
        self.process = KafkaProcess(self._build.class_path, settings, environment)
        if self._clock is not None:
            self.lag_check = LagCheck(self.controller, self._clock, self.process.data / HIGH_WATERMARKS)
        self.process.start()
        await self._connect()
        await self.wait_until_applied(self._keep_alive.register(port))
        await self._keep_alive_and_checks()

    async def _keep_alive_and_checks(self) -> None:
        """Make the new process send AlterPartition requests without end (KeepAlive), and note that its checks have begun."""
        await self._keep_alive.start(self.connection, self.requests)
        # The broker leads a partition now, and with the first one it schedules its checkpoints.
        if self.lag_check is not None:
            self.lag_check.started()

    async def end(self, *, in_order: bool) -> None:
        """End the process: stop it in order, or kill it once it has flushed what it writes with a delay."""
        self.connection.close()
        if in_order:
            await asyncio.to_thread(self.process.stop)
        else:
            await asyncio.sleep(FLUSHED_AFTER)
            self.process.kill()
        self.controller.forget_process()

    async def restart(self) -> None:
        """Start the process again after it was ended, and wait until it has applied all metadata there is."""
        offset = self.controller.log.end - 1
        self.process.start()
        await self._connect()
        await self.wait_until_applied(offset)
        await self._keep_alive_and_checks()
        # A process checks the ISR once by itself, at its start, and that races with its first metadata: what it proposes
        # then is no step of any path, and is refused.
        await asyncio.sleep(CHECKED_AFTER)
        proposals = self.controller.proposals
        await proposals.exchanged()
        # That of KeepAlive is never answered.
        for topic in proposals.pending.keys() - {self._keep_alive.topic.id}:
            proposals.respond(topic, {"errorCode": INELIGIBLE_REPLICA})
        await proposals.exchanged()

    async def wait_until_applied(self, offset: int) -> None:
        """Wait until the broker has applied the metadata up to an offset. Raises WireError."""
        if self._barrier is not None:
            await self._barrier.wait_for(offset, self.connection, self.requests)
        else:
            await self._conditions.wait_for(lambda: self.controller.applied_offset >= offset, "that metadata is applied")

    async def connect(self) -> Connection:
        """Open another connection to the broker. Raises OSError."""
        return await Connection.open(self._messages, self.controller.broker_port)

    def peer(self, node: int) -> Peer:
        """Return a new peer with this broker id, which has not started."""
        return Peer(self._messages, self.controller, self._conditions, BROKER, node)

    async def fence(self, peer: Peer, *, fenced: bool) -> None:
        """Fence or unfence a peer, and wait until the broker's metadata cache has it so."""
        if peer.fenced != fenced:
            peer.fenced = fenced
            await self.wait_until_applied(self.controller.fence(peer.node, peer.broker_epoch, fenced=fenced))

    @asynccontextmanager
    async def standing(self, peer: Peer, standing: str) -> AsyncIterator[None]:
        """Let the broker's metadata cache say, within the block, that a peer is fenced or shutting down.

        Another `standing` is not in the metadata cache, and changes nothing. After the block the peer is unfenced.
        """
        if standing == FENCED:
            await self.fence(peer, fenced=True)
        elif standing == SHUTTING_DOWN:
            await self.fence(peer, fenced=False)
            await self.wait_until_applied(self.controller.shut_down(peer.node, peer.broker_epoch))
        yield
        if standing == SHUTTING_DOWN:
            # No record takes a controlled shutdown back: another incarnation registers.
            await self.wait_until_applied(peer.register())
        await self.fence(peer, fenced=False)

    def close(self) -> None:
        """End everything, as far as it was started."""
        self.controller.close()
        if hasattr(self, "connection"):
            self.connection.close()
        if hasattr(self, "process"):
            self.process.close()

    async def _wait_until_up(self) -> None:
        """Wait until the broker has registered and is unfenced. Raises WireError if the process ends, or after PATIENCE."""
        for _ in range(round(PATIENCE / LOOKED_EVERY)):
            if await self._conditions.wait_up_to(LOOKED_EVERY, lambda: self.controller.unfenced):
                return
            self.process.check_runs()
        raise WireError(
            f"Kafka {self._build.version}: expected a registration and heartbeats within {PATIENCE:g} s; seen none; "
            f"its last words:\n{self.process.last_words()}"
        )

    async def _connect(self) -> None:
        """Wait until the broker is up, and open the connection that all partitions share."""
        await self._wait_until_up()
        self.connection = await self.connect()
        self.requests = PartitionRequests(await self.connection.versions())
        self.state_reader = StateReader(self.connection, self.requests)


# Two partitions of the driver's own, by which it knows how far the broker is.
#
# Rules of this part
#
# 1. `AppliedMetadataBarrier`, for releases before 3.5, whose heartbeats carry only the offset that was read: a partition
#    that the broker leads, in a new leader epoch each time. A fetch with the newest epoch succeeds once that epoch is
#    applied.
# 2. `KeepAlive`: a partition with a proposal that is never answered, so that AlterPartition requests keep coming. The broker
#    leads it, and a follower outside the ISR has fetched up to the log end: the broker proposes to let it in
#    (Partition#maybeExpandIsr), and asks again as long as there is no response.


POLL_SECONDS = 0.002
KEEP_ALIVE_FOLLOWER = 99


class AppliedMetadataBarrier:
    """A partition that the broker leads, whose newest leader epoch is visible once the metadata is applied.

    Metadata that is read together is applied in any order (ReplicaManager#applyDelta), so the marker may be visible before
    the rest. Therefore it takes two:

        written    ... A ...  marker 1          marker 2
        seen                            marker 1          marker 2
                                        A is being applied; A is applied, for marker 2 was read after marker 1 was seen
    """

    def __init__(self, controller: ControllerStub) -> None:
        self._controller, self._topic, self._turn = controller, Topic(uuid4(), "applied-metadata"), asyncio.Lock()
        self._epoch = self._visible = self._applied = UNDEFINED

    async def wait_for(self, offset: int, connection: Connection, requests: PartitionRequests) -> None:
        """Wait until the metadata up to an offset is applied.

        A marker is a registration of this partition in a new leader epoch. `_visible`: the offset of the last one whose
        epoch the broker has shown; `_applied`: the offset up to which all metadata is applied.
        """
        async with self._turn:
            while self._applied < offset:
                # What was written before the last marker that was seen is applied once the new one is seen.
                last_visible, marker = self._visible, self._write_marker()
                fetch = requests.fetch(self._topic, 0, current_leader_epoch=self._epoch)
                # A fetch in the leader epoch of the new marker succeeds once the marker is visible.
                while fetched_partition((await connection.exchange([fetch]))[0])["errorCode"] != NONE:
                    await asyncio.sleep(POLL_SECONDS)
                self._visible, self._applied = marker, last_visible

    def _write_marker(self) -> int:
        """Write a marker, the partition's registration in the next leader epoch; return the offset of the record."""
        if self._epoch == UNDEFINED:
            self._controller.create_topic(self._topic.name, self._topic.id)
        self._epoch += 1
        return self._controller.register_partition(self._topic.id, [BROKER], [BROKER], BROKER, self._epoch, self._epoch)


class KeepAlive:
    """A partition with a proposal that is never answered, so that the broker sends AlterPartition requests without end."""

    def __init__(self, controller: ControllerStub) -> None:
        self._controller, self.topic, self._broker_epoch = controller, Topic(uuid4(), "keep-alive"), UNDEFINED

    def register(self, port: int) -> int:
        """Write the partition and its follower into the metadata log; return the offset of the last record.

        `port`: of the controller. The broker sends nothing to the follower.
        """
        controller, topic = self._controller, self.topic
        self._broker_epoch = controller.register_peer(KEEP_ALIVE_FOLLOWER, port)
        controller.create_topic(topic.name, topic.id)
        return controller.register_partition(topic.id, [BROKER, KEEP_ALIVE_FOLLOWER], [BROKER], BROKER, 0, 0)

    async def start(self, connection: Connection, requests: PartitionRequests) -> None:
        """Let the follower fetch, once per process, and wait until the broker proposes that it joins the ISR."""
        follower, epoch = KEEP_ALIVE_FOLLOWER, self._broker_epoch
        fetch = requests.fetch(self.topic, 0, current_leader_epoch=0, replica=follower, broker_epoch=epoch)
        await connection.exchange([fetch])
        controller = self._controller
        await controller.conditions.wait_for(lambda: self.topic.id in controller.proposals.pending, "a proposal")
