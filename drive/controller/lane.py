"""The cluster of one path: brokers and clients of its own on a controller's process, and the time of their sessions.

Rules of this file

1. Before time moves everybody else beats whose session would be too old then, with what he said last. A broker
   registration that changes makes the controller forget what was said (BrokerHeartbeatManager#register), so then nothing is
   said again.
2. A controlled shutdown ends once every active broker has read up to it. One broker of the process that belongs to no
   path (`HOLDER`) is active all the time: while it says that it has read nothing, a heartbeat ends no controlled shutdown.
3. A session that is over is found at one of the looks that the controller takes every eighth of a session, one session a
   look and in no order (QuorumController#registerFenceStaleBrokers, BrokerHeartbeatTracker#maybeRemoveExpired); the next
   look is 10 ms later then. A look comes with the next request.
4. So between a look just before its end and the next one, a session is over and nobody has noticed, if that look found none:
   sessions that were left, by paths before too, are looked for first. Up to 3.9 the look comes when a session ends
   (QuorumController#rescheduleMaybeFenceStaleBrokers): there is no such time.
"""

import math
from collections.abc import Collection
from uuid import UUID, uuid4

from tidegauge.drive.controller.contract import ALL
from tidegauge.drive.controller.image import Image, Names
from tidegauge.drive.controller.process import ControllerProcess
from tidegauge.drive.kafka_process.process import CLUSTER_ID
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import HOST
from tidegauge.drive.wire.primitives import WireError
from tidegauge.impl.control.replication_control import ReplicationControl
from tidegauge.impl.rules import NONE, UNDEFINED

HOLDER = 2
"""Broker 2 of lane 0; 1 is the controller."""

DISCARD_PORT = 9
LOOK = 0.02
LOOKS = 200
"""How many looks a session that is over is waited for, besides those for sessions that were left."""

MANY = 20
"""Sessions that were left: before there are more, time passes and they are looked for."""

HALF = 0.51
"""Of a session: twice of it is over, once of it is not."""

OLD = 0.75
"""Of a session: what is to be older than that beats. A half of one is not, and what is left is time for a slow machine."""

BEFORE, AFTER = 0.45, 0.07
"""Of a session: a half and BEFORE of it is not over, a half, BEFORE and AFTER is; the look after that comes later.

What is missing to a whole one is time to look for those that were left, on a machine with much other work too.
"""


class Lane:
    """Brokers by their number in the path."""

    def __init__(
        self, process: ControllerProcess, number: int, control: ReplicationControl, holder: "Lane | None" = None
    ) -> None:
        self.process, self.names, self._holder = process, Names(number), holder
        self.image = Image(self.names, control)
        self.epochs: dict[int, int] = {}
        self.incarnations: dict[int, object] = {}
        self._said: dict[int, tuple[int, int]] = {}
        """The metadata offset that each said last, and where the log ended then: those that have a session."""
        self._heard: dict[int, float] = {}
        """When by the clock of the process each was last heard of: not later than the controller thinks."""
        self._leaving: set[int] = set()

    async def read(self) -> None:
        """Follow the metadata log; who has asked for nothing since he read it last knows all of it."""
        if self.process.is_read:
            return
        self.image.read(await self.process.read())
        for broker in tuple(self._said):
            known = self.image.control.brokers.get(broker)
            if known is None or known.epoch != self.epochs[broker]:
                del self._said[broker]
            if known is None or known.fenced:
                self._leaving.discard(broker)

    async def register(self, broker: int, *, new: bool, previous: int, directories: tuple[str, ...]) -> WireMessage:
        """BrokerRegistration."""
        incarnation = self.incarnations.get(broker)
        incarnation = uuid4() if new or incarnation is None else incarnation
        names, process = self.names, self.process
        listener = {"name": "PLAINTEXT", "host": HOST, "port": DISCARD_PORT, "securityProtocol": 0}
        body = {
            "brokerId": names.id_of(broker),
            "clusterId": CLUSTER_ID,
            "incarnationId": incarnation,
            "listeners": [listener],
            "features": process.supported,
            "rack": None,
            "logDirs": [names.directory_id(name) for name in directories],
            "previousBrokerEpoch": previous,
        }
        found = await process.call("BrokerRegistration", body)
        if found["errorCode"] == NONE:
            if self.epochs.get(broker) != found["brokerEpoch"]:
                if broker in self.epochs:
                    process.left_sessions.add()
                self._said.pop(broker, None)
                self._leaving.discard(broker)
                known = self.image.control.brokers.get(broker)
                if not new and known is not None and not known.fenced:
                    self._said[broker] = UNDEFINED, 0  # its session goes on in another epoch, up to 3.8 (KAFKA-16952)
            self.incarnations[broker], self.epochs[broker] = incarnation, found["brokerEpoch"]
        return found

    async def heartbeat(
        self,
        broker: int,
        offset: int = ALL,
        *,
        lag: int = 0,
        fence: bool = False,
        shut_down: bool = False,
        offline: tuple[str, ...] = (),
    ) -> WireMessage:
        """BrokerHeartbeat."""
        epoch = self.epoch(broker, lag)
        if not lag and broker in self.epochs:
            self._said[broker] = offset, self.process.observer.at
        body = {
            "brokerId": self.names.id_of(broker),
            "brokerEpoch": epoch,
            "currentMetadataOffset": offset,
            "wantFence": fence,
            "wantShutDown": shut_down,
            "offlineLogDirs": [self.names.directory_id(name) for name in offline],
        }
        now = self.process.clock.now()
        found = await self.process.call("BrokerHeartbeat", body)
        if found["errorCode"] == NONE:
            self._heard[broker] = now
        if shut_down and found["errorCode"] == NONE and not (found["isFenced"] or found["shouldShutDown"]):
            self._leaving.add(broker)
        return found

    def epoch(self, broker: int, lag: int = 0) -> int:
        """The broker epoch that it has."""
        return self.epochs[broker] - lag if broker in self.image.control.brokers else UNDEFINED

    async def session_expires(self, broker: int) -> None:
        """Let time pass until the session of a broker is over and that is in the log; nothing where it has none."""
        await self.read()
        if broker not in self._said or not self._may_have_session(broker):
            return
        begun = self.image.changed_at.get(broker, UNDEFINED)
        for _ in range(2):
            await self._pass(HALF, broker)
        for _ in range(LOOKS + len(self.process.left_sessions)):
            await self.process.barrier()
            await self.read()
            if self.image.changed_at.get(broker, UNDEFINED) != begun:
                self._said.pop(broker, None)
                return
            await self._pass(LOOK / self.process.clock.session, broker)  # in the machine's time looks are a good part of one
        raise WireError(f"the controller: expected the session of broker {broker} to be over; seen no record of that")

    async def session_lapses(self, broker: int) -> None:
        """Let time pass until the session of a broker is over, with the last look before that; nothing where it has none."""
        await self.read()
        if broker not in self._said or not self._may_have_session(broker):
            return
        await self._beat([broker])
        for share in (1 / 2, BEFORE):
            await self._pass(share, broker)
        await self._look_for_left()
        self.process.clock.advance(self.process.clock.session * AFTER)

    async def _pass(self, share: float, but: int) -> None:
        """Let a share of a session pass, which nobody's is over after but that of one."""
        await self.read()
        if self._holder is not None and self._holder.is_old(HOLDER, share):
            await self._holder.heartbeat(HOLDER)
        await self._beat([broker for broker in self._said if broker != but and self.is_old(broker, share)])
        self.process.clock.advance(self.process.clock.session * share)

    def is_old(self, broker: int, share: float) -> bool:
        """Whether a broker's session is too old when a share of one has passed."""
        since = self.process.clock.now() - self._heard.get(broker, -math.inf)
        return since > (OLD - share) * self.process.clock.session

    async def _beat(self, brokers: Collection[int]) -> None:
        """Some beat again: first those that leave, while the holder has them stay."""
        leaving = [broker for broker in brokers if broker in self._leaving]
        holder = self._holder if leaving else None
        if holder is not None:
            await holder.heartbeat(HOLDER, 0)
        for broker in leaving:
            await self.heartbeat(broker, self._last_said(broker))
        if holder is not None:
            await holder.heartbeat(HOLDER)
        for broker in brokers:
            if broker not in leaving:
                await self.heartbeat(broker, self._last_said(broker), fence=self.image.control.brokers[broker].fenced)

    def resigned(self) -> None:
        """The controller has, and leads again: sessions are those of the brokers that are not fenced; nothing was said."""
        brokers, of_all = self.image.control.brokers, self.image.control.profile.failover_renews_fenced
        known = [broker for broker in self.epochs if broker in brokers and (of_all or not brokers[broker].fenced)]
        self._said = dict.fromkeys(known, (UNDEFINED, 0))
        self._leaving.clear()

    async def hold(self) -> None:
        """Be the lane of the holder."""
        await self.register(HOLDER, new=True, previous=UNDEFINED, directories=("2A",))
        await self.read()
        await self.heartbeat(HOLDER)
        await self.heartbeat(HOLDER)
        await self.read()

    async def close(self) -> None:
        """Leave nothing that acts: no topic, no broker that is not fenced. Brokers stay registered, fenced."""
        for topic in tuple(self.image.topic_ids):
            body = {"topics": [{"name": self.names.full(topic), "topicId": UUID(int=0)}], "timeoutMs": 9000}
            await self.process.call("DeleteTopics", body)
        await self.read()
        for broker, known in self.image.control.brokers.items():
            if not known.fenced and broker not in self._leaving:
                await self.heartbeat(broker, fence=True)
        for broker in tuple(self._leaving):
            await self.heartbeat(broker)
        await self.read()
        self.process.left_sessions.add(len(self.epochs))
        if self._holder is not None and len(self.process.left_sessions) > MANY:
            await self._let_sessions_end(self._holder)

    async def _let_sessions_end(self, holder: "Lane") -> None:
        for _ in range(2):
            await holder.heartbeat(HOLDER)
            self.process.clock.advance(self.process.clock.session * HALF)
        await holder.heartbeat(HOLDER)
        await self._look_for_left()

    async def _look_for_left(self) -> None:
        """Each look finds one, and the next comes soon then. Who has registered and never beaten is found so, too."""
        for _ in range(1 + len(self.process.left_sessions) + len(self.epochs)):
            await self.process.wake()
            self.process.clock.advance(LOOK)
        await self.process.barrier()
        self.process.left_sessions.looked_for()

    @property
    def is_quiet(self) -> bool:
        """Whether it left nothing."""
        return not self.image.topic_ids and all(known.fenced for known in self.image.control.brokers.values())

    def _may_have_session(self, broker: int) -> bool:
        """Whether anything comes of its silence: a wrong guess shows in the next registration of that broker."""
        control = self.image.control
        return control.profile.fenced_has_session or not control.brokers[broker].fenced

    def _last_said(self, broker: int) -> int:
        offset, at = self._said[broker]
        return UNDEFINED if self.image.changed_at.get(broker, UNDEFINED) >= at else offset
