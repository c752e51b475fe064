"""The steps of a broker's contract, a class each: what it takes, when it is possible, what it does to the broker of the
reference, and what a random walk draws of it.

A new step is a class here, a line of STEPS and a method of drive/kafka_broker/partition.py, which puts it on Kafka's wire; a
line of drive/paths/walks.py says how often it is drawn.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from tidegauge.drive.broker.contract import (
    ACKS_ALL,
    ARGUMENT_TYPES,
    BATCHES,
    BROKER,
    COMMITTED,
    CONSUMERS,
    EARLIER,
    EARLIEST,
    EXTRAS,
    FENCED,
    INCARNATIONS,
    LAG_APART,
    LATER,
    LATEST,
    LOG_STARTS,
    LOSE_TAIL,
    REPORTED,
    SEGMENTS,
    SHUTTING_DOWN,
    STANDINGS,
)
from tidegauge.drive.broker.peer_fetches import (
    expected_epoch,
    fetched_at_once,
    fetched_in_session,
    fetched_or_waiting,
    known_of,
)
from tidegauge.drive.broker.state import (
    Outcome,
    ReferenceBroker,
    WaitingAppend,
    fetch_json,
    metadata_cache,
    optional_fetch_json,
    with_partition,
)
from tidegauge.drive.contract import Capabilities, Step, frozen, is_call, is_integer, is_integers
from tidegauge.impl import messages, rules
from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.cluster.broker import EARLIER as BEFORE
from tidegauge.impl.cluster.broker import NOW, REGISTERED, Broker
from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.fetch.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, LARGEST_EPOCH
from tidegauge.impl.messages import BrokerState
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.server.role_changes import ready_for_metadata

NEXT = -2
"""In a step of a graph that does not count them: the partition epoch after the last one, the session epoch that is due."""

NOT_DUE = -3
"""A session epoch that is one too high."""

FARTHEST_OFFSET = 4
"""Walks draw offsets up to here."""

BatchTuple = tuple[int, int, int]
"""Base offset, last offset, leader epoch."""


class LogBounds(NamedTuple):
    """The bounds of the broker's log, and who of its ISR is behind: they decide whether a step needs an extra."""

    end: int
    start: int = 0
    lagging: Collection[int] = ()


class StepKind(ABC):
    """A kind of step. `takes` are its arguments, `result` the fields of its response, `action` is in catalog.toml."""

    name: ClassVar[str]
    takes: ClassVar[tuple[str, ...]] = ()
    result: ClassVar[tuple[str, ...]] = ()
    action: ClassVar[str]
    says: ClassVar[str]
    ends_process: ClassVar[bool] = False
    may_wait: ClassVar[bool] = False
    """Whether it is answered later, in `fetched`, if it has to wait."""
    in_session: ClassVar[bool] = False
    """Whether it is a fetch in a session: its response need not name the partition."""

    @abstractmethod
    def apply(self, state: ReferenceBroker, *args: Any, **kwargs: Any) -> Outcome:
        """Return the broker after the step, and the response to the step's request."""

    def is_possible(self, state: ReferenceBroker, *args: Any, **kwargs: Any) -> bool:
        """Return whether the contract allows the step now, where no proposal is overtaken."""
        # A broker that has read no metadata has no such partition: nobody is answered.
        return state.partition_epoch != rules.UNDEFINED and state.broker.partition.leader_epoch != rules.UNDEFINED

    def extras(self, log: LogBounds, *args: Any, **kwargs: Any) -> Iterator[str]:
        """Yield the extras that the step needs."""
        yield from ()

    def resolved(self, state: ReferenceBroker, step: Step) -> Step:
        """Return a step of a graph with its NEXT and NOT_DUE as numbers."""
        return step


class Metadata(StepKind):
    """The broker reads the controller's registration of the partition."""

    name, takes, action = "metadata", ("leader", "leader_epoch", "partition_epoch", "isr"), "BecomeFollower"
    says = "The broker reads the controller's registration of the partition; leader -1: there is none."

    def is_possible(
        self, state: ReferenceBroker, _leader: int, _leader_epoch: int, partition_epoch: int, _isr: tuple[int, ...]
    ) -> bool:
        return partition_epoch > state.partition_epoch

    def apply(
        self, state: ReferenceBroker, leader: int, leader_epoch: int, partition_epoch: int, members: tuple[int, ...]
    ) -> Outcome:
        """Make the broker leader or follower, as the partition's registration says (ReplicaManager#applyDelta)."""
        everybody = (BROKER, *state.opening.peers)
        partition = ready_for_metadata(state.setup, state.broker.partition)
        state = state._replace(broker=state.broker._replace(partition=partition))
        image = Controller(everybody, leader, leader_epoch, members, everybody, partition_epoch)
        if leader == BROKER:
            broker = broker_.become_leader(state.setup, state.broker, image, metadata_cache(state, eligible=False))
        else:
            # Older followers truncate when they are made followers, newer ones in the fetcher thread.
            early = not state.setup.profile.truncates_in_thread
            broker = broker_.become_follower(state.setup, state.broker, image, truncates=early)
        highest = max(state.highest_epoch, leader_epoch)
        return state._replace(broker=broker, partition_epoch=partition_epoch, highest_epoch=highest), None

    def resolved(self, state: ReferenceBroker, step: Step) -> Step:
        return (*step[:3], state.partition_epoch + 1, *step[4:]) if step[3] == NEXT else step

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw a leader, mostly in a later epoch, and an ISR with it."""
        everybody, epoch = (BROKER, *state.opening.peers), state.highest_epoch
        leader = state.broker.partition.leader_id
        if epoch == rules.UNDEFINED or rng.random() < 0.8:
            epoch, leader = epoch + rng.choice((1, 1, 2)), rng.choice((*everybody, *everybody, rules.UNDEFINED))
        members = {leader if leader != rules.UNDEFINED else BROKER, *rng.sample(everybody, rng.randint(0, len(everybody)))}
        return self.name, leader, epoch, state.partition_epoch + 1, tuple(sorted(members))


class Append(StepKind):
    """A producer's batch of one record."""

    name, takes, result, action = "append", ("acks",), ("error", "base"), "LeaderAppend"
    says = "A producer's batch of one record. With acks -1 it is answered later, in `produced`."

    def apply(self, state: ReferenceBroker, acks: int) -> Outcome:
        """Append one record as a producer's request does; with acks=all it is answered later, in `produced`."""
        before, cache = state.broker.partition, metadata_cache(state, eligible=False)
        partition, error, info = partition_.append_records_to_leader(state.setup, before, 1, acks, cache, NOW)
        state = with_partition(state, partition)
        if error != rules.NONE:
            return state, {"error": error}
        # Answered once the high watermark has passed the record, in `produced`.
        if acks == -1:
            return state._replace(waiting=(*state.waiting, WaitingAppend(info.first, info.last + 1))), None
        return state, {"error": rules.NONE, "base": info.first}

    def extras(self, _log: LogBounds, acks: int) -> Iterator[str]:
        if acks == -1:
            yield ACKS_ALL

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw one with acks -1 only where acks 1 is not the same."""
        return self.name, -1 if state.opening.min_insync_replicas > 1 and rng.random() < 0.5 else 1


class Fetch(StepKind):
    """A peer's fetch of one record, which does not wait."""

    name, action = "fetch", "HandleFetch"
    takes = ("peer", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "may_join")
    result = ("error", "hw", "log_start", "records", "diverging")
    says = (
        "A peer's fetch of one record. A `current_leader_epoch` of -1 is unknown, and not compared. `may_join`: the "
        "metadata cache says that the peer may join the ISR."
    )

    def apply(self, state: ReferenceBroker, peer: int, epoch: int, offset: int, last_epoch: int, may_join: bool) -> Outcome:
        state, response = fetched_at_once(state, messages.FetchRequest(peer, epoch, offset, last_epoch), may_join=may_join)
        return state, fetch_json(response)

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw any epoch and any offset."""
        epoch, peer = _near(rng, state.broker.partition.leader_epoch), rng.choice(state.opening.peers)
        last, log = rng.choice((rules.UNDEFINED, _epoch(rng, state, 1), _epoch(rng, state))), state.broker.partition.log
        offset = rng.randrange(log.start) if log.start and rng.random() < 0.5 else _offset(rng, state)
        return self.name, peer, epoch, offset, last, rng.random() < 0.7

    def draw_catching_up(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw one as a correct follower would send it: where its log could end."""
        log, peer = state.broker.partition.log, rng.choice(state.opening.peers)
        offset = rng.randint(log.start, log.end)
        last = next((batch.epoch for batch in log.batches if batch.last == offset - 1), rules.UNDEFINED)
        return self.name, peer, state.broker.partition.leader_epoch, offset, last, rng.random() < 0.7


class FetchIneligible(StepKind):
    """A peer's fetch while it may not join the ISR, and why."""

    name, action = "fetch_ineligible", "HandleFetch"
    takes, result = (*Fetch.takes[:-1], "standing"), Fetch.result
    says = (
        "A peer's fetch of one record, with which it cannot join the ISR: it is `fenced` or `shutting_down`, or fetches as "
        "a `later` or an `earlier` incarnation than the one that is registered."
    )

    def apply(self, state: ReferenceBroker, peer: int, epoch: int, offset: int, last_epoch: int, standing: str) -> Outcome:
        """Handle a fetch of a peer that may not join the ISR: fenced, shutting down, or of another incarnation."""
        # A fenced broker has no incarnation that is alive (KRaftMetadataCache#getAliveBrokerEpoch).
        alive = None if standing == FENCED else REGISTERED
        registered = BrokerState(peer, standing == FENCED, standing == SHUTTING_DOWN, alive)
        sent = {LATER: REGISTERED + 1, EARLIER: BEFORE}.get(standing, REGISTERED)
        request = messages.FetchRequest(peer, epoch, offset, last_epoch, replica_epoch=sent)
        partition, response = partition_.fetch_records(
            state.setup, state.broker.partition, request, (registered,), NOW, max_records=1
        )
        # A refused fetch records nothing of the follower.
        return with_partition(state, partition) if response.error == rules.NONE else state, fetch_json(response)

    def extras(self, _log: LogBounds, *arguments: Any) -> Iterator[str]:
        if arguments[-1] in {LATER, EARLIER}:
            yield INCARNATIONS

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw a fetch, and why it changes no ISR."""
        return self.name, *Fetch().draw_catching_up(rng, state)[1:-1], rng.choice(STANDINGS)


class FetchAndWait(StepKind):
    """A peer's fetch that waits where there is nothing to read."""

    name, action, may_wait = "fetch_and_wait", "HandleFetch", True
    takes, result = Fetch.takes, Fetch.result
    says = "The same with minBytes 1 and a maxWait without end. One that has to wait is answered later, in `fetched`."

    def is_possible(self, state: ReferenceBroker, peer: int, *others: Any) -> bool:
        # A broker takes one request of a connection at a time (KafkaChannel#mute).
        return super().is_possible(state, peer, *others) and peer not in state.fetches

    def apply(self, state: ReferenceBroker, peer: int, epoch: int, offset: int, last_epoch: int, may_join: bool) -> Outcome:
        state, response = fetched_or_waiting(
            state, messages.FetchRequest(peer, epoch, offset, last_epoch), may_join=may_join
        )
        return state, optional_fetch_json(response)


class FetchInSession(StepKind):
    """A peer's fetch with a session epoch (KIP-227)."""

    name, action, in_session = "fetch_in_session", "HandleFetch", True
    takes, result = (*Fetch.takes, "session_epoch"), Fetch.result
    says = (
        "The same as `fetch` with a session epoch (KIP-227): 0 opens a session of this partition and another, in place "
        "of the peer's last; -1 ends that. An incremental one names this partition only if it has changed. The result "
        "is null if the response does not name it."
    )

    def apply(
        self, state: ReferenceBroker, peer: int, epoch: int, offset: int, last_epoch: int, may_join: bool, session_epoch: int
    ) -> Outcome:
        """Handle a fetch in the peer's session."""
        request = messages.FetchRequest(peer, epoch, offset, last_epoch)
        state, response = fetched_in_session(state, peer, session_epoch, request, may_join=may_join, waits=self.may_wait)
        return state, optional_fetch_json(response)

    def resolved(self, state: ReferenceBroker, step: Step) -> Step:
        return _with_session_epoch(state, step)

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw mostly the session epoch that is due, and often what the session has already: else nobody would see what a
        leader makes of that.
        """
        fetch = STEPS_BY_CLASS[Fetch]
        _, peer, *fields, may_join = rng.choice((fetch.draw, fetch.draw_catching_up, fetch.draw_catching_up))(rng, state)
        session, due, kind = state.sessions.get(peer), expected_epoch(state, peer), rng.random()
        # Without a session nearly every epoch but the initial one is only refused.
        if session is None and kind < 0.9:
            due = INITIAL_EPOCH
        elif kind < 0.1:
            return FetchOthers.name, peer, due
        elif kind < 0.2:
            due = rng.choice((INITIAL_EPOCH, FINAL_EPOCH, due + 1, LARGEST_EPOCH))
        elif kind < 0.6 and (cached := known_of(session)) is not None:
            request = cached.fetch.request
            fields = [request.current_leader_epoch, request.fetch_offset, request.last_fetched_epoch]
        return self.name, peer, *fields, may_join, due


class FetchInSessionAndWait(FetchInSession):
    """A peer's fetch with a session epoch that waits where there is nothing to read."""

    name, may_wait = "fetch_in_session_and_wait", True
    says = (
        "Both: one that has to wait is answered in `fetched`. A full one opens its session then; an incremental one is "
        "refused if another request has moved its session on meanwhile. The other partition has nothing to tell."
    )

    def is_possible(self, state: ReferenceBroker, peer: int, *others: Any) -> bool:
        return super().is_possible(state, peer, *others) and peer not in state.fetches


class FetchOthers(StepKind):
    """A peer's fetch in its session that forgets the partition."""

    name, action, in_session = "fetch_others", "HandleFetch", True
    takes, result = ("peer", "session_epoch"), Fetch.result
    says = "A peer's fetch with a session epoch of the other partition alone: the session forgets this one. Null as there."

    def apply(self, state: ReferenceBroker, peer: int, session_epoch: int) -> Outcome:
        state, response = fetched_in_session(state, peer, session_epoch, None, may_join=True)
        return state, optional_fetch_json(response)

    def resolved(self, state: ReferenceBroker, step: Step) -> Step:
        return _with_session_epoch(state, step)


def _with_session_epoch(state: ReferenceBroker, step: Step) -> Step:
    if step[-1] not in {NEXT, NOT_DUE}:
        return step
    return (*step[:-1], expected_epoch(state, step[1]) + (step[-1] == NOT_DUE))


class OffsetsForLeaderEpoch(StepKind):
    """A peer asks where a leader epoch ends."""

    name, takes = "offsets_for_leader_epoch", ("current_leader_epoch", "leader_epoch")
    result, action = ("error", "leader_epoch", "end_offset"), "HandleEpochRequest"
    says = "A peer asks where a leader epoch ends."

    def apply(self, state: ReferenceBroker, current_leader_epoch: int, leader_epoch: int) -> Outcome:
        """Answer where an epoch ends."""
        error, epoch, end = partition_.last_offset_for_leader_epoch(
            state.setup, state.broker.partition, current_leader_epoch, leader_epoch
        )
        if error != rules.NONE:
            return state, {"error": error}
        return state, {"error": rules.NONE, "leader_epoch": epoch, "end_offset": end}

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw any epoch, also one that nobody has heard of."""
        epoch = rules.UNDEFINED if rng.random() < 0.1 else _epoch(rng, state, 1)
        return self.name, _near(rng, state.broker.partition.leader_epoch), epoch


class ListOffsetsRequest(StepKind):
    """A peer asks for the earliest or the latest offset, or a consumer for the latest."""

    name, takes, result = "list_offsets", ("current_leader_epoch", "which"), ("error", "offset")
    action = "HandleOutOfRange"
    says = "A peer asks for the earliest or the latest offset; with `committed` a consumer asks for the latest."

    def apply(self, state: ReferenceBroker, current_leader_epoch: int, which: str) -> Outcome:
        """Answer with the log start, the log end or the high watermark. Partition#fetchOffsetForTimestamp."""
        spec = messages.OffsetSpec.EARLIEST if which == EARLIEST else messages.OffsetSpec.LATEST
        isolation = messages.Isolation.HIGH_WATERMARK if which == COMMITTED else messages.Isolation.LOG_END
        listed = partition_.fetch_offset_for_timestamp(
            state.setup, state.broker.partition, spec, current_leader_epoch, isolation, only_leader=True
        )
        if listed.error != rules.NONE:
            return state, {"error": listed.error}
        return state, {"error": rules.NONE, "offset": listed.offset}

    def extras(self, _log: LogBounds, _epoch: int, which: str) -> Iterator[str]:
        if which == COMMITTED:
            yield CONSUMERS

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw either."""
        return self.name, _near(rng, state.broker.partition.leader_epoch), rng.choice((EARLIEST, LATEST))


class DeleteRecords(StepKind):
    """A client deletes what lies before an offset."""

    name, takes, result, action = "delete_records", ("offset",), ("error",), "DeleteRecords"
    says = "A client deletes what lies before an offset."

    def apply(self, state: ReferenceBroker, offset: int) -> Outcome:
        partition, error, _ = partition_.delete_records(state.setup, state.broker.partition, offset)
        return with_partition(state, partition), {"error": error}

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw an offset up to the high watermark, or one beside it."""
        return self.name, _near(rng, rng.randint(0, state.broker.partition.log.hw))


class FetchResponseStep(StepKind):
    """The response to the fetch in flight to a peer."""

    name, action = "fetch_response", "HandleFetchResponse"
    takes = ("peer", "error", "hw", "log_start", "records", "diverging", "offsets")
    says = (
        "The response to the fetch in flight to a peer. `offsets`: the responses to the two ListOffsets requests "
        "(earliest, latest) that follow an out-of-range error."
    )

    def is_possible(
        self,
        state: ReferenceBroker,
        peer: int,
        error: int,
        hw: int,
        log_start: int,
        records: tuple[BatchTuple, ...],
        *others: Any,
    ) -> bool:
        """Return whether a fetch is in flight, and the records follow each other from its offset on."""
        request = state.request(peer)
        if not super().is_possible(state, peer, error, hw, log_start, records, *others):
            return False
        # Kafka's validation of batches refuses any others before the protocol has to do with them (LogValidator).
        return isinstance(request, messages.FetchRequest) and _follow_each_other(request.fetch_offset, records)

    def apply(
        self,
        state: ReferenceBroker,
        peer: int,
        error: int,
        hw: int,
        log_start: int,
        records: tuple[BatchTuple, ...],
        diverging: tuple[int, int] | None,
        offsets: tuple[int, int] | None,
    ) -> Outcome:
        """Give the follower the response to its fetch in flight."""
        request: Any = state.request(peer)
        response = messages.FetchResponse(
            error, hw, log_start, tuple(messages.Batch(*r) for r in records), *(diverging or ())
        )
        listed = None if offsets is None else messages.ListOffsets(*offsets)
        in_flight = messages.FetchResponseInFlight(request.current_leader_epoch, request.fetch_offset, response, listed)
        broker = broker_.handle_fetch_response(state.setup, state.broker, peer, in_flight)
        return _without_request(state, peer)._replace(broker=broker), None

    def extras(
        self,
        _log: LogBounds,
        _peer: int,
        _error: int,
        _hw: int,
        log_start: int,
        records: tuple[BatchTuple, ...],
        _diverging: tuple[int, int] | None,
        offsets: tuple[int, int] | None,
    ) -> Iterator[str]:
        # The first of `offsets` is the leader's earliest offset, which is its log start.
        if log_start > 0 or (offsets or (0,))[0] > 0:
            yield LOG_STARTS
        if any(base != last for base, last, _ in records):
            yield BATCHES

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw the response to any request in flight; of a right peer or not: any epoch, offset and high watermark."""
        if not state.requests:
            step: Step = STEPS_BY_CLASS[Metadata].draw(rng, state)
            return step
        peer, request = rng.choice(state.requests)
        kind = rng.random()
        error = (
            rng.choice((rules.NOT_LEADER_OR_FOLLOWER, rules.FENCED_LEADER_EPOCH, rules.UNKNOWN_LEADER_EPOCH))
            if kind < 0.08
            else rules.NONE
        )
        if not isinstance(request, messages.FetchRequest):
            epoch = rules.UNDEFINED if kind > 0.9 else _epoch(rng, state)
            end = rules.UNDEFINED if kind > 0.85 else _offset(rng, state)
            return OffsetsForLeaderEpochResponseStep.name, peer, error, epoch, end
        head = (self.name, peer)
        if error != rules.NONE:
            return (*head, error, rules.UNDEFINED, rules.UNDEFINED, (), None, None)
        # Diverging (to 0.35), out of range (to 0.45), and otherwise records: each is common enough to be tried in any state.
        if kind < 0.35:
            return (
                *head,
                rules.NONE,
                rng.randint(0, FARTHEST_OFFSET),
                0,
                (),
                (_epoch(rng, state), _offset(rng, state)),
                None,
            )
        if kind < 0.45:
            earliest = rng.choice((0, 0, _offset(rng, state)))
            latest = max(earliest, _offset(rng, state))
            return (*head, rules.OFFSET_OUT_OF_RANGE, rules.UNDEFINED, rules.UNDEFINED, (), None, (earliest, latest))
        epochs = sorted(_epoch(rng, state, 1) for _ in range(rng.choice((0, 1, 1, 2))))
        first = request.fetch_offset
        records = tuple((first + n, first + n, epoch) for n, epoch in enumerate(epochs))
        start = rng.choice((0,) * 9 + (_offset(rng, state),))
        return (*head, rules.NONE, rng.randint(0, FARTHEST_OFFSET), start, records, None, None)


def _follow_each_other(offset: int, records: tuple[BatchTuple, ...]) -> bool:
    """Return whether batches begin at an offset and leave no gap."""
    for base, last, _ in records:
        if base != offset or last < base:
            return False
        offset = last + 1
    return True


def _without_request(state: ReferenceBroker, peer: int) -> ReferenceBroker:
    return state._replace(requests=tuple((p, request) for p, request in state.requests if p != peer))


class OffsetsForLeaderEpochResponseStep(StepKind):
    """The response to the OffsetsForLeaderEpoch request in flight to a peer."""

    name, takes = "offsets_for_leader_epoch_response", ("peer", "error", "leader_epoch", "end_offset")
    action, says = "HandleEpochResponse", "The response to the OffsetsForLeaderEpoch request in flight to a peer."

    def is_possible(self, state: ReferenceBroker, peer: int, *others: Any) -> bool:
        """Return whether such a request is in flight."""
        request = state.request(peer)
        possible = super().is_possible(state, peer, *others)
        return possible and request is not None and not isinstance(request, messages.FetchRequest)

    def apply(self, state: ReferenceBroker, peer: int, error: int, leader_epoch: int, end_offset: int) -> Outcome:
        """Give the follower the response to its request in flight."""
        request: Any = state.request(peer)
        response = messages.OffsetsForLeaderEpochResponse(request.current_leader_epoch, leader_epoch, end_offset)
        broker = broker_.handle_offsets_for_leader_epoch_response(state.setup, state.broker, peer, response, error)
        return _without_request(state, peer)._replace(broker=broker), None


class LoseResponse(StepKind):
    """No response comes."""

    name, takes, action = "lose_response", ("peer",), "LoseResponse"
    says = "No response comes: the connection to a peer is closed, and the broker asks again."

    def is_possible(self, state: ReferenceBroker, peer: int) -> bool:
        return super().is_possible(state, peer) and state.request(peer) is not None

    def apply(self, state: ReferenceBroker, peer: int) -> Outcome:
        return _without_request(state, peer), None

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw a request in flight, if there is one."""
        return self.name, rng.choice([peer for peer, _ in state.requests] or state.opening.peers)


class Lag(StepKind):
    """The lag time of members of the ISR runs out."""

    name, takes, action = "lag", ("peers",), "ShrinkIsr"
    says = "The lag time of these members of the ISR runs out, and it is noticed."

    def is_possible(self, state: ReferenceBroker, peers: tuple[int, ...]) -> bool:
        lagging = set(broker_.lagging_members(state.setup, state.broker))
        return super().is_possible(state, peers) and bool(peers) and set(peers) <= lagging

    def apply(self, state: ReferenceBroker, peers: tuple[int, ...]) -> Outcome:
        return state._replace(broker=broker_.shrink_isr(state.broker, peers)), None

    def extras(self, log: LogBounds, peers: tuple[int, ...]) -> Iterator[str]:
        # A broker whose clock is moved finds all that are behind at once.
        if set(peers) != set(log.lagging):
            yield LAG_APART

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw any peers."""
        return self.name, tuple(sorted(rng.sample(state.opening.peers, rng.randint(1, len(state.opening.peers)))))


class AlterPartitionResponseStep(StepKind):
    """The controller's response to the proposal in flight."""

    name, takes = "alter_partition_response", ("error", "partition_epoch", "isr")
    action, says = "HandleAlterPartitionResponse", "The controller's response to the proposal in flight."

    def is_possible(self, state: ReferenceBroker, *_others: Any) -> bool:
        return state.proposal is not None

    def apply(self, state: ReferenceBroker, error: int, partition_epoch: int, members: tuple[int, ...]) -> Outcome:
        """Give the leader the controller's response to its proposal; after some errors it is sent again."""
        proposal: Any = state.proposal
        response = messages.AlterPartitionResponse(error)
        if error == rules.NONE:
            response = messages.AlterPartitionResponse(rules.NONE, proposal.leader_epoch, partition_epoch, members)
        cache = metadata_cache(state, eligible=False)
        partition, sent_again = partition_.handle_alter_partition_response(
            state.setup, state.broker.partition, state.proposed, response, cache, NOW
        )
        state = with_partition(state, partition)
        return state if sent_again else state._replace(proposal=None), None

    def resolved(self, state: ReferenceBroker, step: Step) -> Step:
        return (*step[:2], state.partition_epoch, *step[3:]) if step[2] == NEXT else step

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw mostly what was proposed."""
        proposal = state.proposal
        if proposal is None:
            step: Step = STEPS_BY_CLASS[Lag].draw(rng, state)
            return step
        if rng.random() < 0.6:
            return self.name, rules.NONE, state.partition_epoch + rng.randint(0, 1), proposal.isr
        error = rng.choice((rules.INELIGIBLE_REPLICA, rules.INVALID_UPDATE_VERSION, rules.FENCED_LEADER_EPOCH))
        return self.name, error, rules.UNDEFINED, ()


class Retention(StepKind):
    """A follower's retention."""

    name, takes, action = "retention", ("log_start",), "DeleteRecords"
    says = "A follower's retention removes what lies before an offset."

    def is_possible(self, state: ReferenceBroker, log_start: int) -> bool:
        partition, log = state.broker.partition, state.broker.partition.log
        return super().is_possible(state, log_start) and not partition.is_leader and log.start < log_start <= log.hw

    def apply(self, state: ReferenceBroker, log_start: int) -> Outcome:
        return state._replace(broker=broker_.delete_records(state.setup, state.broker, log_start)), None

    def draw(self, _rng: random.Random, state: ReferenceBroker) -> Step:
        """Remove one offset."""
        return self.name, state.broker.partition.log.start + 1


class Stop(StepKind):
    """The process ends in order."""

    name, action, ends_process = "stop", "Stop", True
    says = "The process ends in order, starts again and has read no metadata yet."

    def is_possible(self, state: ReferenceBroker) -> bool:
        return state.partition_epoch != rules.UNDEFINED

    def apply(self, state: ReferenceBroker) -> Outcome:
        return _restarted(state, broker_.stop(state.setup, state.broker)), None

    def draw(self, _rng: random.Random, _state: ReferenceBroker) -> Step:
        """Stop."""
        return (self.name,)


class Crash(StepKind):
    """The process dies."""

    name, takes, action, ends_process = "crash", ("hw", "log_end"), "Crash", True
    says = "The process dies and starts again, with this checkpointed high watermark and the log up to this offset."

    def is_possible(self, state: ReferenceBroker, hw: int, log_end: int) -> bool:
        log = state.broker.partition.log
        # The checkpoint may be beyond the log: it was flushed, and the records were not.
        known = state.partition_epoch != rules.UNDEFINED
        return known and log.start <= hw <= log.hw and log.start <= log_end <= log.end

    def apply(self, state: ReferenceBroker, hw: int, log_end: int) -> Outcome:
        return _restarted(state, broker_.crash(state.setup, state.broker, hw, log_end)), None

    def extras(self, log: LogBounds, _hw: int, log_end: int) -> Iterator[str]:
        if log_end < log.end:
            yield LOSE_TAIL
        # Recovery reads whole segments: records below the log start come back if they share one with a record above it.
        if log.start > 0:
            yield SEGMENTS

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw a log end and a checkpoint that a crash may leave."""
        log = state.broker.partition.log
        log_end = rng.choice((log.end, log.end, rng.randint(log.start, log.end)))
        return self.name, rng.randint(log.start, max(log.start, min(log.hw, log_end))), log_end


def _restarted(state: ReferenceBroker, down: Broker) -> ReferenceBroker:
    """Return the broker whose process is up again: what it had sent or waited for is gone with its connections."""
    return ReferenceBroker(
        state.setup,
        state.opening,
        broker_.restart(down),
        partition_epoch=state.partition_epoch,
        highest_epoch=state.highest_epoch,
        lost=tuple(sorted({*state.lost, *state.sessions})),
        wrong_step=state.wrong_step,
    )


# ---------------------------------------------------------------------------------------------------------------------
# What walks draw


def _near(rng: random.Random, value: int) -> int:
    """Draw mostly the value, else a neighbour, never below 0."""
    return max(0, value + rng.choice((0, 0, 0, 0, -1, 1)))


def _epoch(rng: random.Random, state: ReferenceBroker, beyond: int = 0) -> int:
    return rng.randint(0, state.highest_epoch + beyond)


def _offset(rng: random.Random, state: ReferenceBroker) -> int:
    return rng.randint(0, max(FARTHEST_OFFSET, state.broker.partition.log.end))


# ---------------------------------------------------------------------------------------------------------------------
# All of them

STEPS_BY_CLASS: dict[type[Any], Any] = {
    kind: kind()
    for kind in (
        Metadata,
        Append,
        Fetch,
        FetchIneligible,
        FetchAndWait,
        FetchInSession,
        FetchInSessionAndWait,
        FetchOthers,
        OffsetsForLeaderEpoch,
        ListOffsetsRequest,
        DeleteRecords,
        FetchResponseStep,
        OffsetsForLeaderEpochResponseStep,
        LoseResponse,
        Lag,
        AlterPartitionResponseStep,
        Retention,
        Stop,
        Crash,
    )
}
STEPS: Mapping[str, StepKind] = MappingProxyType({kind.name: kind for kind in STEPS_BY_CLASS.values()})
"""By name, in the order of the published tables."""

IN_SESSION = frozenset(name for name, kind in STEPS.items() if kind.in_session)
MAY_WAIT = frozenset(name for name, kind in STEPS.items() if kind.may_wait)
ENDS = frozenset(name for name, kind in STEPS.items() if kind.ends_process)

EVERYTHING = Capabilities("everything", frozenset({*STEPS, *EXTRAS}), frozenset(REPORTED))


def lacks(
    capabilities: Capabilities, step: Step, log_end: int, log_start: int = 0, lagging: Collection[int] = ()
) -> str | None:
    """Return the capability that a step needs and the broker does not have; None if it has all.

    The other arguments are of the broker before the step: where its log ends and starts, who of its ISR is behind.
    """
    name, *arguments = step
    if name not in capabilities.can:
        return str(name)
    extras = STEPS[name].extras(LogBounds(log_end, log_start, lagging), *arguments)
    return next((extra for extra in extras if extra not in capabilities.can), None)


def action_of(step: Step) -> str:
    """Return the action of catalog.toml that a step is."""
    match step:
        case (Metadata.name, leader, *_) if leader == BROKER:
            return "BecomeLeader"
        case (FetchResponseStep.name, *_, diverging, _) if diverging is not None:
            return "HandleDivergingResponse"
        case (FetchResponseStep.name, *_, offsets) if offsets is not None:
            return "HandleOutOfRange"
        case _:
            return STEPS[step[0]].action


# ---------------------------------------------------------------------------------------------------------------------
# As JSON


def step_json(step: Step) -> dict[str, Any]:
    """Return a step as the JSON object that a driven program reads."""
    return {"step": step[0], **arguments_of(step)}


def arguments_of(step: Step) -> dict[str, Any]:
    """Return the arguments of a step by name."""
    name, *values = step
    return dict(zip(STEPS[name].takes, values, strict=True))


def step_of(line: Mapping[str, Any]) -> Step:
    """Return the step that a JSON object spells; lists become tuples. Raises KeyError for one that spells none."""
    name = line["step"]
    return (name, *(frozen(line[field]) for field in STEPS[name].takes))


def is_step(value: Any) -> bool:
    """Return whether a value read from somewhere is a step of the contract."""
    if not is_call(value, STEPS):
        return False
    arguments = zip(STEPS[value[0]].takes, value[1:], strict=True)
    return all(_IS[ARGUMENT_TYPES.get(name, "integer")](argument) for name, argument in arguments)


_IS: Mapping[str, Callable[[Any], bool]] = {
    "integer": is_integer,
    "integers": is_integers,
    "boolean": lambda value: isinstance(value, bool),
    "which": lambda value: value in (EARLIEST, LATEST, COMMITTED),
    "standing": lambda value: value in STANDINGS,
    "records": lambda value: isinstance(value, tuple | list) and all(is_integers(one, 3) for one in value),
    "pair": lambda value: value is None or is_integers(value, 2),
}
