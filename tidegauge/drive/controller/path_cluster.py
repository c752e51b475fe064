"""The cluster of one path: brokers and clients of its own on a controller's process, and the time of their sessions.

The paths of a process are its lanes; a broker is called by its number on the path. The suite plays the brokers and moves the
clock of the process, so it decides whose session is over. The sessions of earlier paths' brokers, which nobody keeps alive,
are left (`LeftSessions`). Lane 0 has one broker, the holder, which stays active all the time.

The controller checks for expired sessions every eighth of a session, and finds one session at a check, in no order; the next
check comes 10 ms later then (QuorumController#registerFenceStaleBrokers, BrokerHeartbeatTracker#maybeRemoveExpired):

    heartbeat            end of the session
    |---- session --------|
    .   check   .   check   .   check      the session is over between its end and the next check, and that is not noticed

Up to 3.9 the check comes when a session ends (QuorumController#rescheduleMaybeFenceStaleBrokers), and there is no such time.
"""

import math
from collections.abc import Collection
from uuid import UUID, uuid4

from tidegauge.drive.controller.contract import ALL
from tidegauge.drive.controller.metadata_image import Image, Names
from tidegauge.drive.controller.process import ControllerProcess
from tidegauge.drive.kafka_process.process import CLUSTER_ID
from tidegauge.drive.wire.compiler import WireError, WireMessage
from tidegauge.drive.wire.frames import HOST
from tidegauge.impl.controller.replication_control import ReplicationControl
from tidegauge.impl.rules import NONE, UNDEFINED

HOLDER = 2
"""The holder is broker 2 of lane 0; 1 is the controller."""

DISCARD_PORT = 9
"""In the listeners of brokers: nobody connects to them."""
NEXT_CHECK = 0.02
"""Seconds until the check after one that has found a session, and a margin."""
MOST_CHECKS = 200
"""How many checks an expired session is waited for, besides those for sessions that were left."""

MANY_LEFT_SESSIONS = 20
"""With more left sessions than these, time passes until they are over."""

HALF = 0.51
"""Of a session: twice of it is over, once of it is not."""

OLD = 0.75
"""Of a session: a broker whose session would be older sends a heartbeat first. The rest is time for a slow machine."""

BEFORE, AFTER = 0.45, 0.07
"""Of a session: a half and BEFORE of it is not over, a half, BEFORE and AFTER is; the check after that comes later.

What is missing to a whole one is time to expire the sessions that were left, on a machine with much other work too.
"""


class Lane:
    """The cluster of one path: its brokers, by their number on the path, and what the metadata log says of it (`image`)."""

    def __init__(
        self, process: ControllerProcess, number: int, control: ReplicationControl, holder: "Lane | None" = None
    ) -> None:
        """Begin a cluster of its own in the process: its brokers and topics have names with this number.

        `control`: the state that it begins with; `holder`: the lane of the holder, None for that lane itself.
        """
        self.process, self.names, self._holder = process, Names(number), holder
        self.image = Image(self.names, control)
        self.epochs: dict[int, int] = {}
        self.incarnations: dict[int, object] = {}
        self._last_offsets: dict[int, tuple[int, int]] = {}
        """By broker that has a session: the metadata offset in its last heartbeat, and where the log ended then."""
        self._last_heartbeats: dict[int, float] = {}
        """By broker, when it sent its last heartbeat, by the clock of the process: not later than the controller has it."""
        self._leaving: set[int] = set()
        """The brokers whose controlled shutdown is under way."""

    async def read(self) -> None:
        """Read what is new in the metadata log, and forget the sessions and shutdowns that it has ended."""
        # Nothing was requested since it was read last, so there is nothing more in it.
        if self.process.is_read:
            return
        self.image.read(await self.process.read())
        for broker in tuple(self._last_offsets):
            # Another registration, or none, has ended the session.
            registration = self.image.control.brokers.get(broker)
            if registration is None or registration.epoch != self.epochs[broker]:
                del self._last_offsets[broker]
            # A controlled shutdown ends with the broker fenced.
            if registration is None or registration.fenced:
                self._leaving.discard(broker)

    async def register(self, broker: int, *, new: bool, previous: int, directories: tuple[str, ...]) -> WireMessage:
        """Send a BrokerRegistration, note the broker epoch and the session that begins with it, and return the response.

        `new`: as a new incarnation; `previous`: the broker epoch before a clean shutdown, UNDEFINED after another end.
        """
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
        response = await process.call("BrokerRegistration", body)
        if response["errorCode"] == NONE:
            # Another broker epoch is another session; the one before is over once its time has passed.
            if self.epochs.get(broker) != response["brokerEpoch"]:
                if broker in self.epochs:
                    process.left_sessions.add()
                self._last_offsets.pop(broker, None)
                self._leaving.discard(broker)
                registration = self.image.control.brokers.get(broker)
                # The same incarnation gets another broker epoch up to 3.8, and its session goes on in that (KAFKA-16952).
                if not new and registration is not None and not registration.fenced:
                    self._last_offsets[broker] = (UNDEFINED, 0)
            self.incarnations[broker], self.epochs[broker] = incarnation, response["brokerEpoch"]
        return response

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
        """Send a BrokerHeartbeat, note what keeps the session alive, and return the response.

        `offset`: of the metadata that the broker says it has read; `lag`: see `epoch`; `fence`, `shut_down`: what it wants;
        `offline`: the names of its failed directories.
        """
        epoch = self.epoch(broker, lag)
        # With another broker epoch the heartbeat is refused, and no session goes on by it.
        if not lag and broker in self.epochs:
            self._last_offsets[broker] = offset, self.process.observer.at
        body = {
            "brokerId": self.names.id_of(broker),
            "brokerEpoch": epoch,
            "currentMetadataOffset": offset,
            "wantFence": fence,
            "wantShutDown": shut_down,
            "offlineLogDirs": [self.names.directory_id(name) for name in offline],
        }
        sent_at = self.process.clock.now()
        response = await self.process.call("BrokerHeartbeat", body)
        if response["errorCode"] == NONE:
            self._last_heartbeats[broker] = sent_at
        # The shutdown has begun, and goes on until all others have read of it.
        if shut_down and response["errorCode"] == NONE and not (response["isFenced"] or response["shouldShutDown"]):
            self._leaving.add(broker)
        return response

    def epoch(self, broker: int, lag: int = 0) -> int:
        """Return the broker epoch of a broker less `lag`; UNDEFINED if it is not registered."""
        return self.epochs[broker] - lag if broker in self.image.control.brokers else UNDEFINED

    async def session_expires(self, broker: int) -> None:
        """Let time pass until a broker's session is over and the metadata log says so; do nothing if it has none."""
        await self.read()
        if broker not in self._last_offsets or not self._may_have_session(broker):
            return
        changed_at_first = self.image.changed_at.get(broker, UNDEFINED)
        # In two halves: the other brokers send heartbeats before each.
        for _ in range(2):
            await self._let_time_pass(HALF, broker)
        # The controller finds one session at a check, and left ones may come first.
        for _ in range(MOST_CHECKS + len(self.process.left_sessions)):
            await self.process.barrier()
            await self.read()
            # A new record of its registration is the one that fences the broker.
            if self.image.changed_at.get(broker, UNDEFINED) != changed_at_first:
                self._last_offsets.pop(broker, None)
                return
            # The other sessions have to be kept here, too: in the machine's time these checks take a good part of a session.
            await self._let_time_pass(NEXT_CHECK / self.process.clock.session, broker)
        raise WireError(f"the controller: expected the session of broker {broker} to be over; seen no record of that")

    async def session_lapses(self, broker: int) -> None:
        """Let time pass until a broker's session is over, without the controller's notice; do nothing if it has none."""
        await self.read()
        if broker not in self._last_offsets or not self._may_have_session(broker):
            return
        # The session begins anew with this heartbeat, so that its end is known.
        await self._send_heartbeats([broker])
        for share in (1 / 2, BEFORE):
            await self._let_time_pass(share, broker)
        # The last check comes here, before the session is over; after it the clock moves over the end.
        await self._expire_left_sessions()
        self.process.clock.advance(self.process.clock.session * AFTER)

    async def _let_time_pass(self, share: float, silent: int) -> None:
        """Move the clock by a share of a session, so that no session ends by it but that of the broker `silent`.

        All others, whose sessions would be too old, send a heartbeat first.
        """
        await self.read()
        if self._holder is not None and self._holder.is_old(HOLDER, share):
            await self._holder.heartbeat(HOLDER)
        await self._send_heartbeats(
            [broker for broker in self._last_offsets if broker != silent and self.is_old(broker, share)]
        )
        self.process.clock.advance(self.process.clock.session * share)

    def is_old(self, broker: int, share: float) -> bool:
        """Return whether a broker's session will be too old (OLD) once a share of a session has passed from now on."""
        age = self.process.clock.now() - self._last_heartbeats.get(broker, -math.inf)
        return age > (OLD - share) * self.process.clock.session

    async def _send_heartbeats(self, brokers: Collection[int]) -> None:
        """Send heartbeats of some brokers that only keep their sessions: each repeats the offset of the last one."""
        # A controlled shutdown ends once every active broker has read up to it. The holder belongs to no path and is active
        # all the time: while its heartbeat says that it has read nothing, those that leave can send theirs.
        leaving = [broker for broker in brokers if broker in self._leaving]
        holder = self._holder if leaving else None
        if holder is not None:
            await holder.heartbeat(HOLDER, 0)
        for broker in leaving:
            await self.heartbeat(broker, self._offset_to_repeat(broker))
        if holder is not None:
            await holder.heartbeat(HOLDER)
        for broker in brokers:
            if broker not in leaving:
                await self.heartbeat(broker, self._offset_to_repeat(broker), fence=self.image.control.brokers[broker].fenced)

    def resigned(self) -> None:
        """Note the sessions after the controller has resigned and leads again: each begins anew, with no offset.

        They are those of registered brokers that are not fenced; in some releases those of fenced ones as well.
        """
        brokers, renews_fenced = self.image.control.brokers, self.image.control.profile.failover_renews_fenced
        with_session = [
            broker for broker in self.epochs if broker in brokers and (renews_fenced or not brokers[broker].fenced)
        ]
        self._last_offsets = dict.fromkeys(with_session, (UNDEFINED, 0))
        self._leaving.clear()

    async def hold(self) -> None:
        """Register the holder, of whose lane this is, and unfence it."""
        await self.register(HOLDER, new=True, previous=UNDEFINED, directories=("2A",))
        await self.read()
        await self.heartbeat(HOLDER)
        await self.heartbeat(HOLDER)
        await self.read()

    async def close(self) -> None:
        """End the path's cluster so that nothing of it acts any more: delete its topics, fence its brokers.

        The brokers stay registered, and their sessions are left.
        """
        for topic in tuple(self.image.topic_ids):
            body = {"topics": [{"name": self.names.full(topic), "topicId": UUID(int=0)}], "timeoutMs": 9000}
            await self.process.call("DeleteTopics", body)
        await self.read()
        for broker, registration in self.image.control.brokers.items():
            if not registration.fenced and broker not in self._leaving:
                await self.heartbeat(broker, fence=True)
        # A controlled shutdown under way ends with a heartbeat that has read everything, for all others are fenced now.
        for broker in tuple(self._leaving):
            await self.heartbeat(broker)
        await self.read()
        self.process.left_sessions.add(len(self.epochs))
        if self._holder is not None and len(self.process.left_sessions) > MANY_LEFT_SESSIONS:
            await self._let_sessions_end(self._holder)

    async def _let_sessions_end(self, holder: "Lane") -> None:
        """Let a whole session pass, until all left sessions are over and the controller has found them.

        `holder`: the holder's lane; only its session is kept alive.
        """
        for _ in range(2):
            await holder.heartbeat(HOLDER)
            self.process.clock.advance(self.process.clock.session * HALF)
        await holder.heartbeat(HOLDER)
        await self._expire_left_sessions()

    async def _expire_left_sessions(self) -> None:
        """Let the controller check until it has found every left session that is over.

        Among them may be sessions of brokers of this lane that never sent a heartbeat.
        """
        # Each check finds one, and the next one comes soon then: as many checks as there may be sessions, and one more.
        for _ in range(1 + len(self.process.left_sessions) + len(self.epochs)):
            await self.process.wake()
            self.process.clock.advance(NEXT_CHECK)
        await self.process.barrier()
        self.process.left_sessions.looked_for()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing of it acts any more, as `close` should leave it: no topic, and no broker that is not fenced."""
        return not self.image.topic_ids and all(registration.fenced for registration in self.image.control.brokers.values())

    def _may_have_session(self, broker: int) -> bool:
        """Return whether a broker can have a session: up to 3.9 not while it is fenced (KAFKA-17793).

        If that is wrong for a release, the response to the broker's next registration differs.
        """
        control = self.image.control
        return control.profile.fenced_has_session or not control.brokers[broker].fenced

    def _offset_to_repeat(self, broker: int) -> int:
        """Return the metadata offset for a heartbeat that repeats the last one; UNDEFINED if it must not be repeated."""
        offset, log_end = self._last_offsets[broker]
        # A registration that changes makes the controller forget the offset (BrokerHeartbeatManager#register), and the next
        # heartbeat must not bring it back.
        return UNDEFINED if self.image.changed_at.get(broker, UNDEFINED) >= log_end else offset
