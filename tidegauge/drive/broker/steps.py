"""The steps of a broker's contract, a class each: what it takes, when it is possible, what it does to the broker of the
reference, and what a random walk draws of it.

A step is a tuple of its name and its arguments. Broker 1 is under test; its peers, its controller and its clients are the
suite's, so a step is one thing that they or the network do to it. `state` is everywhere the reference broker before the
step, with what is in flight around it. The methods of a class get the step's arguments in the order of `takes`:

- `is_possible` returns whether the contract allows the step now; `extras` yields the capabilities beyond the step itself
  that it needs of a broker (`contract.EXTRAS`).
- `apply` returns the state after the step and the response to the step's request; None if it is no request, or has none yet.
- `draw` returns a step for a random walk, nearly always of the kind. What it draws need not be possible: the walk then draws
  another.
- `resolved` gets a step of a state graph, in which a placeholder (NEXT, NOT_DUE) stands for an epoch that the graph does not
  count, and returns it with the number.

A sentence `says` stands in a published table, in the order of STEPS: "the same" means the step that stands before it there.
The metadata cache that a function of `impl` gets (`metadata_cache`) says who may join the ISR: peers may by a fetch with
`may_join`, and by nothing else.

A new step is a class here, a line of STEPS_BY_CLASS and a method of drive/kafka_broker/partition.py, which puts it on
Kafka's wire; a line of drive/paths/walks.py says how often it is drawn.
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
from tidegauge.impl.cluster.broker import EARLIER as EARLIER_BROKER_EPOCH
from tidegauge.impl.cluster.broker import NOW, Broker
from tidegauge.impl.cluster.broker import REGISTERED as REGISTERED_BROKER_EPOCH
from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.fetch.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, LARGEST_EPOCH
from tidegauge.impl.messages import BrokerState
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.server.role_changes import ready_for_metadata

NEXT = -2
"""In a step of a graph: in metadata the partition epoch after the last one, in a response to a proposal the last one itself,
in a fetch the session epoch that is due (`resolved`)."""

NOT_DUE = -3
"""In a step of a graph: a session epoch that is one higher than the one that is due."""

FARTHEST_OFFSET = 4
"""Walks draw offsets up to here, or up to the log end if that is higher."""

BatchTuple = tuple[int, int, int]
"""Base offset, last offset, leader epoch."""


class LogBounds(NamedTuple):
    """The broker's log end and log start, and the ISR members that are behind: they decide whether a step needs an extra."""

    end: int
    start: int = 0
    lagging: Collection[int] = ()


class StepKind(ABC):
    """A kind of step. `takes` are its arguments, `result` the fields of its response, `action` is in catalog.toml.

    The methods are described at the top of the file; `draw(rng, state)` is only in the classes that walks draw.
    """

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
        """Return whether the contract allows the step now, provided that no proposal is overtaken."""
        # A broker that has read no metadata since it started has no such partition: no request would get a response.
        return state.partition_epoch != rules.UNDEFINED and state.broker.partition.leader_epoch != rules.UNDEFINED

    def extras(self, log: LogBounds, *args: Any, **kwargs: Any) -> Iterator[str]:
        """Yield the extras of the contract that the step needs."""
        yield from ()

    def resolved(self, state: ReferenceBroker, step: Step) -> Step:
        """Return a step of a graph with numbers in place of NEXT and NOT_DUE."""
        return step


class Metadata(StepKind):
    """The broker reads the controller's registration of the partition."""

    name, takes, action = "metadata", ("leader", "leader_epoch", "partition_epoch", "isr"), "BecomeFollower"
    says = "The broker reads the controller's registration of the partition; leader -1: there is none."

    def is_possible(
        self, state: ReferenceBroker, _leader: int, _leader_epoch: int, partition_epoch: int, _isr: tuple[int, ...]
    ) -> bool:
        """Return whether the registration is newer than the one that the broker has read last."""
        return partition_epoch > state.partition_epoch

    def apply(
        self, state: ReferenceBroker, leader: int, leader_epoch: int, partition_epoch: int, isr: tuple[int, ...]
    ) -> Outcome:
        """Make the broker leader or follower, as the partition's registration says (ReplicaManager#applyDelta)."""
        replicas = (BROKER, *state.opening.peers)
        # Before 3.3 brokers compared no partition epochs: the one that the broker has read is undefined there.
        partition = ready_for_metadata(state.setup, state.broker.partition)
        state = state._replace(broker=state.broker._replace(partition=partition))
        # In the image every replica is live.
        image = Controller(replicas, leader, leader_epoch, isr, live=replicas, partition_epoch=partition_epoch)
        if leader == BROKER:
            broker = broker_.become_leader(state.setup, state.broker, image, metadata_cache(state, eligible=False))
        else:
            # Older followers truncate when they are made followers, newer ones in the fetcher thread.
            truncates_now = not state.setup.profile.truncates_in_thread
            broker = broker_.become_follower(state.setup, state.broker, image, truncates=truncates_now)
        highest = max(state.highest_epoch, leader_epoch)
        return state._replace(broker=broker, partition_epoch=partition_epoch, highest_epoch=highest), None

    def resolved(self, state: ReferenceBroker, step: Step) -> Step:
        """Return the step with the next partition epoch, its third argument, if that is NEXT."""
        name, leader, leader_epoch, partition_epoch, isr = step
        return (name, leader, leader_epoch, state.partition_epoch + 1, isr) if partition_epoch == NEXT else step

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw a registration: mostly a later leader epoch with any leader or none, else only another ISR."""
        replicas, epoch = (BROKER, *state.opening.peers), state.highest_epoch
        leader = state.broker.partition.leader_id
        # UNDEFINED: the first metadata of the path.
        if epoch == rules.UNDEFINED or rng.random() < 0.8:
            # The replicas twice: no leader is half as likely as any one of them.
            epoch, leader = epoch + rng.choice((1, 1, 2)), rng.choice((*replicas, *replicas, rules.UNDEFINED))
        isr = {leader if leader != rules.UNDEFINED else BROKER, *rng.sample(replicas, rng.randint(0, len(replicas)))}
        return self.name, leader, epoch, state.partition_epoch + 1, tuple(sorted(isr))


class Append(StepKind):
    """A producer's batch of one record."""

    name, takes, result, action = "append", ("acks",), ("error", "base"), "LeaderAppend"
    says = "A producer's batch of one record. With acks -1 it is answered later, in `produced`."

    def apply(self, state: ReferenceBroker, acks: int) -> Outcome:
        """Append one record, as a producer's request does."""
        before, cache = state.broker.partition, metadata_cache(state, eligible=False)
        partition, error, info = partition_.append_records_to_leader(
            state.setup, before, records=1, acks=acks, metadata=cache, now=NOW
        )
        state = with_partition(state, partition)
        if error != rules.NONE:
            return state, {"error": error}
        # With acks=all the response comes once the high watermark has passed the record: in the `produced` of a report.
        if acks == -1:
            return state._replace(waiting=(*state.waiting, WaitingAppend(info.first, info.last + 1))), None
        return state, {"error": rules.NONE, "base": info.first}

    def extras(self, _log: LogBounds, acks: int) -> Iterator[str]:
        """Yield ACKS_ALL for an append that waits for the ISR."""
        if acks == -1:
            yield ACKS_ALL

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw acks 1, or acks -1; the latter only with a min.insync.replicas above 1, where the two are not the same."""
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
        """Handle the fetch at once, as the broker's leader does."""
        state, response = fetched_at_once(state, messages.FetchRequest(peer, epoch, offset, last_epoch), may_join=may_join)
        return state, fetch_json(response)

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw a fetch of any epochs, offset and peer, as a wrong follower or one with another log might send it."""
        epoch, peer = _draw_near(rng, state.broker.partition.leader_epoch), rng.choice(state.opening.peers)
        last_epoch = rng.choice((rules.UNDEFINED, _draw_epoch(rng, state, beyond=1), _draw_epoch(rng, state)))
        # Where the log start has moved, half of the fetches are below it.
        log_start = state.broker.partition.log.start
        offset = rng.randrange(log_start) if log_start and rng.random() < 0.5 else _draw_offset(rng, state)
        return self.name, peer, epoch, offset, last_epoch, rng.random() < 0.7

    def draw_catching_up(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw a fetch as a right follower would send it: at an offset of the leader's log, with the epoch before that."""
        log, peer = state.broker.partition.log, rng.choice(state.opening.peers)
        offset = rng.randint(log.start, log.end)
        # UNDEFINED at the log start, and inside a batch, where no follower's log ends.
        last_epoch = next((batch.epoch for batch in log.batches if batch.last == offset - 1), rules.UNDEFINED)
        return self.name, peer, state.broker.partition.leader_epoch, offset, last_epoch, rng.random() < 0.7


class FetchIneligible(StepKind):
    """A peer's fetch while it may not join the ISR, and why."""

    name, action = "fetch_ineligible", "HandleFetch"
    takes, result = (*Fetch.takes[:-1], "standing"), Fetch.result
    says = (
        "A peer's fetch of one record, with which it cannot join the ISR: it is `fenced` or `shutting_down`, or fetches as "
        "a `later` or an `earlier` incarnation than the one that is registered."
    )

    def apply(self, state: ReferenceBroker, peer: int, epoch: int, offset: int, last_epoch: int, standing: str) -> Outcome:
        """Handle a fetch of a peer that may not join the ISR. `standing` says why not (`contract.STANDINGS`)."""
        # A fenced broker has no incarnation that is alive (KRaftMetadataCache#getAliveBrokerEpoch).
        alive_epoch = None if standing == FENCED else REGISTERED_BROKER_EPOCH
        registered = BrokerState(peer, standing == FENCED, standing == SHUTTING_DOWN, alive_epoch)
        request_epochs = {LATER: REGISTERED_BROKER_EPOCH + 1, EARLIER: EARLIER_BROKER_EPOCH}
        replica_epoch = request_epochs.get(standing, REGISTERED_BROKER_EPOCH)
        request = messages.FetchRequest(peer, epoch, offset, last_epoch, replica_epoch=replica_epoch)
        partition, response = partition_.fetch_records(
            state.setup, state.broker.partition, request, (registered,), NOW, max_records=1
        )
        # A refused fetch records nothing of the follower.
        return with_partition(state, partition) if response.error == rules.NONE else state, fetch_json(response)

    def extras(self, _log: LogBounds, *arguments: Any) -> Iterator[str]:
        """Yield INCARNATIONS for a fetch of another incarnation than the registered one; `standing` is the last argument."""
        if arguments[-1] in {LATER, EARLIER}:
            yield INCARNATIONS

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw the fetch of a right follower, and why it may not join the ISR."""
        _, *fetch_arguments, _may_join = Fetch().draw_catching_up(rng, state)
        return self.name, *fetch_arguments, rng.choice(STANDINGS)


class FetchAndWait(StepKind):
    """A peer's fetch that waits where there is nothing to read."""

    name, action, may_wait = "fetch_and_wait", "HandleFetch", True
    takes, result = Fetch.takes, Fetch.result
    says = "The same with minBytes 1 and a maxWait without end. One that has to wait is answered later, in `fetched`."

    def is_possible(self, state: ReferenceBroker, peer: int, *others: Any) -> bool:
        """Return whether no other fetch of the peer waits."""
        # A broker takes one request of a connection at a time (KafkaChannel#mute).
        return super().is_possible(state, peer, *others) and peer not in state.fetches

    def apply(self, state: ReferenceBroker, peer: int, epoch: int, offset: int, last_epoch: int, may_join: bool) -> Outcome:
        """Handle the fetch, or let it wait: then there is no response yet."""
        request = messages.FetchRequest(peer, epoch, offset, last_epoch)
        state, response = fetched_or_waiting(state, request, may_join=may_join)
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
        """Handle a fetch with a session epoch. The response is None if it does not name the partition, or if it waits."""
        request = messages.FetchRequest(peer, epoch, offset, last_epoch)
        state, response = fetched_in_session(state, peer, session_epoch, request, may_join=may_join, waits=self.may_wait)
        return state, optional_fetch_json(response)

    def resolved(self, state: ReferenceBroker, step: Step) -> Step:
        """Return the step with a number as its session epoch, the last argument."""
        return _with_session_epoch(state, step)

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw a fetch, mostly with the session epoch that is due.

        Often it repeats what the session has of the partition already: only then can a response leave the partition out.
        """
        fetch = STEPS_BY_CLASS[Fetch]
        # `fields`: current leader epoch, fetch offset, last fetched epoch.
        _, peer, *fields, may_join = rng.choice((fetch.draw, fetch.draw_catching_up, fetch.draw_catching_up))(rng, state)
        session, session_epoch, kind = state.sessions.get(peer), expected_epoch(state, peer), rng.random()
        # One number decides on the kind: below 0.1 a fetch of the other partition alone, to 0.2 another session epoch, to
        # 0.6 the fields that the session has. Without a session nearly every epoch but the initial one is only refused.
        if session is None and kind < 0.9:
            session_epoch = INITIAL_EPOCH
        elif kind < 0.1:
            return FetchOthers.name, peer, session_epoch
        elif kind < 0.2:
            session_epoch = rng.choice((INITIAL_EPOCH, FINAL_EPOCH, session_epoch + 1, LARGEST_EPOCH))
        elif kind < 0.6 and (cached := known_of(session)) is not None:
            request = cached.fetch.request
            fields = [request.current_leader_epoch, request.fetch_offset, request.last_fetched_epoch]
        return self.name, peer, *fields, may_join, session_epoch


class FetchInSessionAndWait(FetchInSession):
    """A peer's fetch with a session epoch that waits where there is nothing to read."""

    name, may_wait = "fetch_in_session_and_wait", True
    says = (
        "Both: one that has to wait is answered in `fetched`. A full one opens its session then; an incremental one is "
        "refused if another request has moved its session on meanwhile. The other partition has nothing to tell."
    )

    def is_possible(self, state: ReferenceBroker, peer: int, *others: Any) -> bool:
        """Return whether no other fetch of the peer waits: a broker takes one request of a connection at a time."""
        return super().is_possible(state, peer, *others) and peer not in state.fetches


class FetchOthers(StepKind):
    """A peer's fetch in its session that forgets the partition."""

    name, action, in_session = "fetch_others", "HandleFetch", True
    takes, result = ("peer", "session_epoch"), Fetch.result
    says = "A peer's fetch with a session epoch of the other partition alone: the session forgets this one. Null as there."

    def apply(self, state: ReferenceBroker, peer: int, session_epoch: int) -> Outcome:
        """Handle a fetch with a session epoch that does not name the partition."""
        state, response = fetched_in_session(state, peer, session_epoch, None, may_join=True)
        return state, optional_fetch_json(response)

    def resolved(self, state: ReferenceBroker, step: Step) -> Step:
        """Return the step with a number as its session epoch, the last argument."""
        return _with_session_epoch(state, step)


def _with_session_epoch(state: ReferenceBroker, step: Step) -> Step:
    """Return a fetch in a session with a number as its session epoch: what is due for NEXT, one more for NOT_DUE.

    The session epoch is the last argument; a number there stays.
    """
    _, peer, *_, session_epoch = step
    if session_epoch not in {NEXT, NOT_DUE}:
        return step
    due = expected_epoch(state, peer)
    return (*step[:-1], due + 1 if session_epoch == NOT_DUE else due)


class OffsetsForLeaderEpoch(StepKind):
    """A peer asks where a leader epoch ends."""

    name, takes = "offsets_for_leader_epoch", ("current_leader_epoch", "leader_epoch")
    result, action = ("error", "leader_epoch", "end_offset"), "HandleEpochRequest"
    says = "A peer asks where a leader epoch ends."

    def apply(self, state: ReferenceBroker, current_leader_epoch: int, leader_epoch: int) -> Outcome:
        """Handle the peer's OffsetsForLeaderEpoch request."""
        error, epoch, end = partition_.last_offset_for_leader_epoch(
            state.setup, state.broker.partition, current_leader_epoch, leader_epoch
        )
        if error != rules.NONE:
            return state, {"error": error}
        return state, {"error": rules.NONE, "leader_epoch": epoch, "end_offset": end}

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw a request about any epoch, also one that no metadata has had, or the undefined one."""
        epoch = rules.UNDEFINED if rng.random() < 0.1 else _draw_epoch(rng, state, beyond=1)
        return self.name, _draw_near(rng, state.broker.partition.leader_epoch), epoch


class ListOffsetsRequest(StepKind):
    """A peer asks for the earliest or the latest offset, or a consumer for the latest."""

    name, takes, result = "list_offsets", ("current_leader_epoch", "which"), ("error", "offset")
    action = "HandleOutOfRange"
    says = "A peer asks for the earliest or the latest offset; with `committed` a consumer asks for the latest."

    def apply(self, state: ReferenceBroker, current_leader_epoch: int, which: str) -> Outcome:
        """Return the log start, the log end or the high watermark as `which` says. Partition#fetchOffsetForTimestamp."""
        spec = messages.OffsetSpec.EARLIEST if which == EARLIEST else messages.OffsetSpec.LATEST
        isolation = messages.Isolation.HIGH_WATERMARK if which == COMMITTED else messages.Isolation.LOG_END
        listed = partition_.fetch_offset_for_timestamp(
            state.setup, state.broker.partition, spec, current_leader_epoch, isolation, only_leader=True
        )
        if listed.error != rules.NONE:
            return state, {"error": listed.error}
        return state, {"error": rules.NONE, "offset": listed.offset}

    def extras(self, _log: LogBounds, _epoch: int, which: str) -> Iterator[str]:
        """Yield CONSUMERS for a consumer's request."""
        if which == COMMITTED:
            yield CONSUMERS

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw a peer's request for the earliest or the latest offset."""
        return self.name, _draw_near(rng, state.broker.partition.leader_epoch), rng.choice((EARLIEST, LATEST))


class DeleteRecords(StepKind):
    """A client deletes what lies before an offset."""

    name, takes, result, action = "delete_records", ("offset",), ("error",), "DeleteRecords"
    says = "A client deletes what lies before an offset."

    def apply(self, state: ReferenceBroker, offset: int) -> Outcome:
        """Raise the leader's log start to an offset, or refuse that; the response does not wait for followers."""
        partition, error, _ = partition_.delete_records(state.setup, state.broker.partition, offset)
        return with_partition(state, partition), {"error": error}

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw an offset up to the high watermark, or the one above it, which a leader refuses."""
        return self.name, _draw_near(rng, rng.randint(0, state.broker.partition.log.hw))


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
        """Give the follower the response to its fetch in flight.

        `diverging`: leader epoch and end offset of a diverging response, else None. `offsets`: earliest and latest offset of
        the leader after an out-of-range error, else None.
        """
        request: Any = state.request(peer)
        batches = tuple(messages.Batch(*record) for record in records)
        response = messages.FetchResponse(error, hw, log_start, batches, *(diverging or ()))
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
        """Yield LOG_STARTS if the leader has a log start above 0, BATCHES if a batch has several records."""
        # The first of `offsets` is the leader's earliest offset, which is its log start.
        if log_start > 0 or (offsets or (0,))[0] > 0:
            yield LOG_STARTS
        if any(base != last for base, last, _ in records):
            yield BATCHES

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw a response to any request in flight, of a right leader or a wrong one: any epochs and offsets.

        If that is an OffsetsForLeaderEpoch request, the step is the response to it; with nothing in flight it is metadata.
        """
        if not state.requests:
            step: Step = STEPS_BY_CLASS[Metadata].draw(rng, state)
            return step
        peer, request = rng.choice(state.requests)
        # One number decides on the kind: an error below 0.08, diverging to 0.35, out of range to 0.45, records above.
        kind = rng.random()
        error = (
            rng.choice((rules.NOT_LEADER_OR_FOLLOWER, rules.FENCED_LEADER_EPOCH, rules.UNKNOWN_LEADER_EPOCH))
            if kind < 0.08
            else rules.NONE
        )
        if not isinstance(request, messages.FetchRequest):
            epoch = rules.UNDEFINED if kind > 0.9 else _draw_epoch(rng, state)
            end = rules.UNDEFINED if kind > 0.85 else _draw_offset(rng, state)
            return OffsetsForLeaderEpochResponseStep.name, peer, error, epoch, end
        # Below in the order of `takes`: error, high watermark, log start, records, diverging, offsets. A response with an
        # error has no high watermark and log start.
        name_and_peer = (self.name, peer)
        if error != rules.NONE:
            return (*name_and_peer, error, rules.UNDEFINED, rules.UNDEFINED, (), None, None)
        if kind < 0.35:
            hw, diverging = rng.randint(0, FARTHEST_OFFSET), (_draw_epoch(rng, state), _draw_offset(rng, state))
            return (*name_and_peer, rules.NONE, hw, 0, (), diverging, None)
        if kind < 0.45:
            earliest = rng.choice((0, 0, _draw_offset(rng, state)))
            latest = max(earliest, _draw_offset(rng, state))
            out_of_range = rules.OFFSET_OUT_OF_RANGE
            return (*name_and_peer, out_of_range, rules.UNDEFINED, rules.UNDEFINED, (), None, (earliest, latest))
        # No, one or two batches; epochs never fall along a log.
        epochs = sorted(_draw_epoch(rng, state, beyond=1) for _ in range(rng.choice((0, 1, 1, 2))))
        # A batch of one record for each epoch, from the fetch offset on.
        records = tuple((offset, offset, epoch) for offset, epoch in enumerate(epochs, start=request.fetch_offset))
        # In one response of ten the leader has deleted records.
        log_start = rng.choice((0,) * 9 + (_draw_offset(rng, state),))
        return (*name_and_peer, rules.NONE, rng.randint(0, FARTHEST_OFFSET), log_start, records, None, None)


def _follow_each_other(offset: int, records: tuple[BatchTuple, ...]) -> bool:
    """Return whether the first batch begins at an offset, and each other one where the one before it ends."""
    for base, last, _ in records:
        if base != offset or last < base:
            return False
        offset = last + 1
    return True


def _without_request(state: ReferenceBroker, peer: int) -> ReferenceBroker:
    """Return the state in which no request to the peer is in flight: its response came, or was lost."""
    return state._replace(requests=tuple((receiver, request) for receiver, request in state.requests if receiver != peer))


class OffsetsForLeaderEpochResponseStep(StepKind):
    """The response to the OffsetsForLeaderEpoch request in flight to a peer."""

    name, takes = "offsets_for_leader_epoch_response", ("peer", "error", "leader_epoch", "end_offset")
    action, says = "HandleEpochResponse", "The response to the OffsetsForLeaderEpoch request in flight to a peer."

    def is_possible(self, state: ReferenceBroker, peer: int, *others: Any) -> bool:
        """Return whether an OffsetsForLeaderEpoch request is in flight to the peer: what is no fetch is one."""
        request = state.request(peer)
        possible = super().is_possible(state, peer, *others)
        return possible and request is not None and not isinstance(request, messages.FetchRequest)

    def apply(self, state: ReferenceBroker, peer: int, error: int, leader_epoch: int, end_offset: int) -> Outcome:
        """Give the follower the response to its OffsetsForLeaderEpoch request in flight."""
        request: Any = state.request(peer)
        response = messages.OffsetsForLeaderEpochResponse(request.current_leader_epoch, leader_epoch, end_offset)
        broker = broker_.handle_offsets_for_leader_epoch_response(state.setup, state.broker, peer, response, error)
        return _without_request(state, peer)._replace(broker=broker), None


class LoseResponse(StepKind):
    """No response comes."""

    name, takes, action = "lose_response", ("peer",), "LoseResponse"
    says = "No response comes: the connection to a peer is closed, and the broker asks again."

    def is_possible(self, state: ReferenceBroker, peer: int) -> bool:
        """Return whether a request to the peer is in flight."""
        return super().is_possible(state, peer) and state.request(peer) is not None

    def apply(self, state: ReferenceBroker, peer: int) -> Outcome:
        """Drop the request in flight: the fetcher thread, whose turn is after each step, then sends another."""
        return _without_request(state, peer), None

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw one of the peers to which a request is in flight; any peer, if there is none."""
        return self.name, rng.choice([peer for peer, _ in state.requests] or state.opening.peers)


class Lag(StepKind):
    """The lag time of members of the ISR runs out."""

    name, takes, action = "lag", ("peers",), "ShrinkIsr"
    says = "The lag time of these members of the ISR runs out, and it is noticed."

    def is_possible(self, state: ReferenceBroker, peers: tuple[int, ...]) -> bool:
        """Return whether all of these peers, and there are some, are members of the ISR that are behind."""
        lagging = set(broker_.lagging_members(state.setup, state.broker))
        return super().is_possible(state, peers) and bool(peers) and set(peers) <= lagging

    def apply(self, state: ReferenceBroker, peers: tuple[int, ...]) -> Outcome:
        """Let the leader propose an ISR without these members."""
        return state._replace(broker=broker_.shrink_isr(state.broker, peers)), None

    def extras(self, log: LogBounds, peers: tuple[int, ...]) -> Iterator[str]:
        """Yield LAG_APART if some members that are behind are not among these peers."""
        # The lag times of all members run out together where the step is a jump of the broker's clock.
        if set(peers) != set(log.lagging):
            yield LAG_APART

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw one peer or several, whether they are behind or not."""
        return self.name, tuple(sorted(rng.sample(state.opening.peers, rng.randint(1, len(state.opening.peers)))))


class AlterPartitionResponseStep(StepKind):
    """The controller's response to the proposal in flight."""

    name, takes = "alter_partition_response", ("error", "partition_epoch", "isr")
    action, says = "HandleAlterPartitionResponse", "The controller's response to the proposal in flight."

    def is_possible(self, state: ReferenceBroker, *_others: Any) -> bool:
        """Return whether a proposal is in flight."""
        return state.proposal is not None

    def apply(self, state: ReferenceBroker, error: int, partition_epoch: int, isr: tuple[int, ...]) -> Outcome:
        """Give the leader the controller's response to its proposal; after some errors it is sent again."""
        proposal: Any = state.proposal
        response = messages.AlterPartitionResponse(error)
        if error == rules.NONE:
            response = messages.AlterPartitionResponse(rules.NONE, proposal.leader_epoch, partition_epoch, isr)
        cache = metadata_cache(state, eligible=False)
        partition, sent_again = partition_.handle_alter_partition_response(
            state.setup, state.broker.partition, state.proposed, response, cache, NOW
        )
        state = with_partition(state, partition)
        # What is sent again is the same request, so it stays in flight. The step has no response: it is one itself.
        return state if sent_again else state._replace(proposal=None), None

    def resolved(self, state: ReferenceBroker, step: Step) -> Step:
        """Return the step with the broker's partition epoch as the response's, if that is NEXT."""
        name, error, partition_epoch, isr = step
        return (name, error, state.partition_epoch, isr) if partition_epoch == NEXT else step

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw an acceptance of the proposal or an error; with no proposal in flight, a lag that may cause one."""
        proposal = state.proposal
        if proposal is None:
            step: Step = STEPS_BY_CLASS[Lag].draw(rng, state)
            return step
        # Accepted in the last partition epoch or in the one after it.
        if rng.random() < 0.6:
            return self.name, rules.NONE, state.partition_epoch + rng.randint(0, 1), proposal.isr
        error = rng.choice((rules.INELIGIBLE_REPLICA, rules.INVALID_UPDATE_VERSION, rules.FENCED_LEADER_EPOCH))
        return self.name, error, rules.UNDEFINED, ()


class Retention(StepKind):
    """A follower's retention."""

    name, takes, action = "retention", ("log_start",), "DeleteRecords"
    says = "A follower's retention removes what lies before an offset."

    def is_possible(self, state: ReferenceBroker, log_start: int) -> bool:
        """Return whether the broker follows, and the log start moves up, to the high watermark at most."""
        partition, log = state.broker.partition, state.broker.partition.log
        return super().is_possible(state, log_start) and not partition.is_leader and log.start < log_start <= log.hw

    def apply(self, state: ReferenceBroker, log_start: int) -> Outcome:
        """Raise the follower's log start."""
        return state._replace(broker=broker_.delete_records(state.setup, state.broker, log_start)), None

    def draw(self, _rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw a log start that is one higher."""
        return self.name, state.broker.partition.log.start + 1


class Stop(StepKind):
    """The process ends in order."""

    name, action, ends_process = "stop", "Stop", True
    says = "The process ends in order, starts again and has read no metadata yet."

    def is_possible(self, state: ReferenceBroker) -> bool:
        """Return whether any process has read metadata yet: before that there is no partition on disk."""
        return state.partition_epoch != rules.UNDEFINED

    def apply(self, state: ReferenceBroker) -> Outcome:
        """Stop the process, and start it again."""
        return _restarted(state, broker_.stop(state.setup, state.broker)), None

    def draw(self, _rng: random.Random, _state: ReferenceBroker) -> Step:
        """Return the step, which has no arguments."""
        return (self.name,)


class Crash(StepKind):
    """The process dies."""

    name, takes, action, ends_process = "crash", ("hw", "log_end"), "Crash", True
    says = "The process dies and starts again, with this checkpointed high watermark and the log up to this offset."

    def is_possible(self, state: ReferenceBroker, hw: int, log_end: int) -> bool:
        """Return whether a crash can leave this checkpointed high watermark and this log end."""
        log = state.broker.partition.log
        has_read_metadata = state.partition_epoch != rules.UNDEFINED
        # `hw` may be above `log_end`: the checkpoint was flushed, and the records were not.
        return has_read_metadata and log.start <= hw <= log.hw and log.start <= log_end <= log.end

    def apply(self, state: ReferenceBroker, hw: int, log_end: int) -> Outcome:
        """Kill the process, and start it again with what the crash has left on disk."""
        return _restarted(state, broker_.crash(state.setup, state.broker, hw, log_end)), None

    def extras(self, log: LogBounds, _hw: int, log_end: int) -> Iterator[str]:
        """Yield LOSE_TAIL if records at the end are lost, SEGMENTS if recovery could bring back some below the log start."""
        if log_end < log.end:
            yield LOSE_TAIL
        # Recovery reads whole segments: records below the log start come back if they share one with a record above it. With
        # SEGMENTS a broker has no such segment: they stay gone, as in the reference.
        if log.start > 0:
            yield SEGMENTS

    def draw(self, rng: random.Random, state: ReferenceBroker) -> Step:
        """Draw a log end and a checkpoint that a crash may leave."""
        log = state.broker.partition.log
        # In two of three crashes nothing of the log is lost.
        log_end = rng.choice((log.end, log.end, rng.randint(log.start, log.end)))
        return self.name, rng.randint(log.start, max(log.start, min(log.hw, log_end))), log_end


def _restarted(state: ReferenceBroker, ended: Broker) -> ReferenceBroker:
    """Return the state with the broker's process up again, from `state` before its end and the broker after it.

    What it had sent, and what waited in it, is gone with its connections.
    """
    return ReferenceBroker(
        state.setup,
        state.opening,
        broker_.restart(ended),
        partition_epoch=state.partition_epoch,
        highest_epoch=state.highest_epoch,
        # The peers whose fetch sessions were in that process, or in one before.
        lost=tuple(sorted({*state.lost, *state.sessions})),
        wrong_step=state.wrong_step,
    )


# ---------------------------------------------------------------------------------------------------------------------
# What walks draw


def _draw_near(rng: random.Random, value: int) -> int:
    """Draw the value itself (two times in three), or one beside it; never below 0."""
    return max(0, value + rng.choice((0, 0, 0, 0, -1, 1)))


def _draw_epoch(rng: random.Random, state: ReferenceBroker, beyond: int = 0) -> int:
    """Draw a leader epoch from 0 to the highest that any metadata has had, or so many beyond it."""
    return rng.randint(0, state.highest_epoch + beyond)


def _draw_offset(rng: random.Random, state: ReferenceBroker) -> int:
    """Draw an offset from 0 to the log end, or to FARTHEST_OFFSET if that is higher."""
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
    """Return the first capability that a step needs and the broker does not have; None if it has all.

    A capability is the step itself or an extra. The other arguments are of the broker before the step: its log end and log
    start, and the members of its ISR that are behind.
    """
    name, *arguments = step
    if name not in capabilities.can:
        return str(name)
    extras = STEPS[name].extras(LogBounds(log_end, log_start, lagging), *arguments)
    return next((extra for extra in extras if extra not in capabilities.can), None)


def action_of(step: Step) -> str:
    """Return the name of the action of catalog.toml that a step is: it may depend on the arguments."""
    # The arguments are in the order of `takes`: those of FetchResponseStep end with `diverging` and `offsets`.
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
    """Read a step from the JSON object of `step_json`; lists become tuples. Raises KeyError if something is missing."""
    name = line["step"]
    return (name, *(frozen(line[field]) for field in STEPS[name].takes))


def is_step(value: Any) -> bool:
    """Return whether a value, such as one from a file, is a step of the contract with arguments of the right types."""
    if not is_call(value, STEPS):
        return False
    arguments = zip(STEPS[value[0]].takes, value[1:], strict=True)
    return all(_IS_OF_TYPE[ARGUMENT_TYPES.get(name, "integer")](argument) for name, argument in arguments)


_IS_OF_TYPE: Mapping[str, Callable[[Any], bool]] = {
    "integer": is_integer,
    "integers": is_integers,
    "boolean": lambda value: isinstance(value, bool),
    "which": lambda value: value in (EARLIEST, LATEST, COMMITTED),
    "standing": lambda value: value in STANDINGS,
    "records": lambda value: isinstance(value, tuple | list) and all(is_integers(record, 3) for record in value),
    "pair": lambda value: value is None or is_integers(value, 2),
}
"""By a type of ARGUMENT_TYPES, whether a value is of it."""
