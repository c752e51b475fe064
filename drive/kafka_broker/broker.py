"""One unmodified broker, its controller and its peers: what all partitions share.

Rules of this file

1. The configuration makes ours what a broker does by itself: nothing is checked by a clock, one thread handles requests and
   one sends responses, so that what was handled before is seen before.
2. replica.lag.time.max.ms is -2: the check of the ISR runs once, at the start, and never again
   (ReplicaManager#startup schedules it every half of that; KafkaScheduler#schedule runs a task with a negative period once).
   Nobody has caught up in time but who stands at the log end, which is what the reference has, too. A process whose clocks
   are ours has a lag time instead (lag_check), and nothing else there may come by the time of day, which runs away.
3. request.timeout.ms is that of the fetcher threads' connections, too (BrokerBlockingSender): when it ran out, a request
   that is held would be asked again.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from tidegauge.drive.broker.contract import BROKER
from tidegauge.drive.kafka_broker.canary import Canary
from tidegauge.drive.kafka_broker.clients import Calls, Versions
from tidegauge.drive.kafka_broker.controller import CONTROLLER, Controller
from tidegauge.drive.kafka_broker.lag_check import CHECKED_EVERY_MS, LAG_MS, LagCheck
from tidegauge.drive.kafka_broker.peers import Peer
from tidegauge.drive.kafka_broker.pulse import Pulse
from tidegauge.drive.kafka_broker.restarts import HIGH_WATERMARKS
from tidegauge.drive.kafka_broker.state_reader import Looks
from tidegauge.drive.kafka_process.clock import MovedClock
from tidegauge.drive.kafka_process.jars import release_in
from tidegauge.drive.kafka_process.process import KafkaProcess
from tidegauge.drive.wire.frames import HOST, Connection
from tidegauge.drive.wire.messages import Messages, definitions_in
from tidegauge.drive.wire.signs import Signs
from tidegauge.impl.releases import version_of
from tidegauge.impl.rules import INELIGIBLE_REPLICA

FLUSHED_AFTER = 0.5
"""An epoch cache writes a truncation later, by the scheduler (KAFKA-16541); in seconds."""

CHECKED_AFTER = 0.3
"""A check that was scheduled when the first metadata began to be applied has run, when it has been; in seconds."""

MANY_SESSIONS = 1_000_000
"""More than there are paths: no session is driven out by those of paths that are done."""

HEARTBEAT_MS = 20
"""A heartbeat says which metadata was applied: one step waits for it that long, all paths together do not."""

HOUR_MS = 3_600_000
NO_LIMIT_MS = -2
NEVER_MS = (1 << 31) - 1
CENTURIES_MS = 9_000_000_000_000

APPLIED_IN_HEARTBEATS = (3, 5)
"""Since then a heartbeat carries the offset that was applied, not the one that was read."""


WITH_LAG: Mapping[str, object] = {
    "replica.lag.time.max.ms": LAG_MS,
    "replica.high.watermark.checkpoint.interval.ms": CHECKED_EVERY_MS,
    "background.threads": 1,
    "request.timeout.ms": NEVER_MS,
    "controller.socket.timeout.ms": NEVER_MS,
    "replica.socket.timeout.ms": NEVER_MS,
    "broker.session.timeout.ms": NEVER_MS,
    "controller.quorum.fetch.timeout.ms": NEVER_MS,
    "controller.quorum.request.timeout.ms": NEVER_MS,
    "connections.max.idle.ms": -1,
    "log.retention.ms": -1,
    "log.retention.check.interval.ms": CENTURIES_MS,
    "log.roll.ms": CENTURIES_MS,
    "metadata.log.max.snapshot.interval.ms": 0,
}
"""What is otherwise where the clocks of the process are ours."""


def properties(controller_port: int, *, lags: bool) -> Mapping[str, object]:
    """The broker's configuration."""
    return {
        "process.roles": "broker",
        "node.id": BROKER,
        "controller.quorum.voters": f"{CONTROLLER}@{HOST}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "num.network.threads": 1,
        "num.io.threads": 1,
        "background.threads": 2,
        "auto.create.topics.enable": "false",
        "log.cleaner.enable": "false",
        "log.index.size.max.bytes": 4096,
        "log.segment.delete.delay.ms": 1000,
        "broker.heartbeat.interval.ms": HEARTBEAT_MS,
        "broker.session.timeout.ms": HOUR_MS,
        "replica.lag.time.max.ms": NO_LIMIT_MS,
        "replica.fetch.wait.max.ms": NO_LIMIT_MS,
        "replica.fetch.backoff.ms": 1,
        "replica.fetch.min.bytes": 1,
        "replica.socket.timeout.ms": HOUR_MS,
        "request.timeout.ms": HOUR_MS,
        "max.incremental.fetch.session.cache.slots": MANY_SESSIONS,
        "replica.high.watermark.checkpoint.interval.ms": HOUR_MS,
        **(WITH_LAG if lags else {}),
    }


class KafkaBroker:
    """A broker of the release whose jars lie in a folder; with a `clock` lag times can run out."""

    connection: Connection
    calls: Calls
    looks: Looks
    process: KafkaProcess

    def __init__(self, jars: Path, clock: MovedClock | None = None) -> None:
        self.release = release_in(jars) or ""
        self._messages = Messages(definitions_in([*jars.glob("kafka-clients-*.jar"), *jars.glob("kafka-metadata-*.jar")]))
        self._jars, self._clock, self._signs = jars, clock, Signs()
        self.controller = Controller(self._messages, BROKER, self._signs)
        self._pulse = Pulse(self.controller)
        self.lag_check: LagCheck | None = None
        early = version_of(self.release) < APPLIED_IN_HEARTBEATS
        self._canary = Canary(self.controller) if early else None

    async def start(self) -> None:
        """Start the controller and the process, and wait until it is up."""
        port = await self.controller.start()
        environment = {} if self._clock is None else self._clock.environment
        self.process = KafkaProcess(self._jars, properties(port, lags=self._clock is not None), environment)
        if self._clock is not None:
            self.lag_check = LagCheck(self.controller, self._clock, self.process.data / HIGH_WATERMARKS)
        self.process.start()
        await self._connected()
        offset = self._pulse.register(port)
        await self.applied(offset)
        await self._pulse.start(self.connection, self.calls)

    async def end(self, *, in_order: bool) -> None:
        """End the process: in order, or at once, when what it writes a moment later is written."""
        self.connection.close()
        if in_order:
            await asyncio.to_thread(self.process.stop)
        else:
            await asyncio.sleep(FLUSHED_AFTER)
            self.process.kill()
        self.controller.gone()

    async def restarted(self) -> None:
        """Start the process again, after it was ended, and wait until it has applied all metadata there is.

        The one check of the ISR that a process makes at its start races with its first metadata: its proposals are refused.
        """
        offset = self.controller.log.end - 1
        self.process.start()
        await self._connected()
        await self.applied(offset)
        await self._pulse.start(self.connection, self.calls)
        await asyncio.sleep(CHECKED_AFTER)
        await self.controller.proposals.exchanged()
        for topic in self.controller.proposals.waiting.keys() - {self._pulse.topic.id}:
            self.controller.proposals.respond(topic, {"errorCode": INELIGIBLE_REPLICA})
        await self.controller.proposals.exchanged()

    async def applied(self, offset: int) -> None:
        """Wait until the metadata up to an offset is applied."""
        if self._canary is not None:
            await self._canary.applied(offset, self.connection, self.calls)
        else:
            await self._signs.wait_for(lambda: self.controller.applied >= offset, "that metadata is applied")

    async def connect(self) -> Connection:
        """Another connection to the broker."""
        return await Connection.open(self._messages, self.controller.port)

    def peer(self, node: int) -> Peer:
        """A broker of ours."""
        return Peer(self._messages, self.controller, self._signs, BROKER, node)

    async def fence(self, peer: Peer, *, fenced: bool) -> None:
        """Have the metadata cache say whether a peer is fenced."""
        if peer.fenced != fenced:
            peer.fenced = fenced
            await self.applied(self.controller.fence(peer.node, peer.broker_epoch, fenced=fenced))

    def close(self) -> None:
        """End everything."""
        self.controller.close()
        if hasattr(self, "connection"):
            self.connection.close()
        if hasattr(self, "process"):
            self.process.close()

    async def _connected(self) -> None:
        await self._signs.wait_for(lambda: self.controller.unfenced, "a registration and heartbeats")
        self.connection = await self.connect()
        self.calls = Calls(Versions(await self.connection.versions()))
        self.looks = Looks(self.connection, self.calls)
