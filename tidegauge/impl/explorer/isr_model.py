"""ISR changes message by message: one leader, its followers, the controller. The Next relation of spec/AlterPartition.tla.

Broker 0 leads throughout, in leader epoch 0; the others, 1 and up, follow (`f`). The *exchange* is the AlterPartition
request or response in flight, with the proposal that it is about. An *image* is a registration of the partition in the
metadata log; the leader reads them late. A function that finds steps yields (label, state after it); a label is (action,
arguments).

Rules of this file

1. Who proposes, who counts, what is committed, which response and which image is taken: impl.replica.partition and
   impl.controller decide. Here stands what is in flight between them, and what may happen next.
2. One request at a time: while one is under way AlterPartitionManager takes no other, and nothing is proposed.
3. A follower is a log end: in one leader epoch its records are the leader's. It has fetched once when things begin.
4. The metadata cache of the leader may think that nobody is eligible, at any fetch, or know all broker epochs. A broker
   that is fenced is unfenced before anything else happens. No lag limit: every member that is behind may be found lagging.
5. What ends a change is not bounded.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import combinations
from typing import NamedTuple

from tidegauge.impl.cluster.transitions import Label, mask
from tidegauge.impl.controller import brokers as brokers_
from tidegauge.impl.controller.partition_registration import PartitionRegistration
from tidegauge.impl.controller.records import RegisterBrokerRecord
from tidegauge.impl.controller.replay import replay_records
from tidegauge.impl.controller.replication_control import (
    AlterPartition,
    BrokerRegistration,
    Proposal,
    ReplicationControl,
    alter_partition,
)
from tidegauge.impl.explorer.search import Graph, Search, View, Violation
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import AlterPartitionRequest, AlterPartitionResponse, BrokerState, BrokerStates, FetchRequest
from tidegauge.impl.profiles import FETCH_TRUNCATION, Profile, Rules, Setup
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.partition_state import Partition, PartitionState, Replica
from tidegauge.impl.rules import NONE, UNDEFINED, WAITS_FOR_METADATA
from tidegauge.impl.storage import log as log_
from tidegauge.impl.topic_partition import TopicPartition

LEADER = 0
EPOCH = 0
TP = TopicPartition("topic", 0)
NOW = 0


class IsrBounds(NamedTuple):
    """The limits of a model: log ends up to `max_end`, changes up to a partition epoch, brokers that come back empty."""

    followers: int
    max_end: int
    max_partition_epoch: int
    max_restarts: int


class AlterPartitionExchange(NamedTuple):
    """The message between leader and controller, and the proposal it is about."""

    message: AlterPartitionRequest | AlterPartitionResponse
    proposed: PartitionState


class IsrCluster(NamedTuple):
    """A state. `ends` are the log ends of the followers, `images` what the leader has not read, oldest first.

    `committed` is a ghost: the highest offset ever below the high watermark.
    """

    bounds: IsrBounds
    setup: Setup
    leader: Partition
    ends: tuple[int, ...]
    control: ReplicationControl
    images: tuple[PartitionRegistration, ...] = ()
    exchange: AlterPartitionExchange | None = None
    committed: int = 0

    @property
    def registration(self) -> PartitionRegistration:
        """What the controller has of the partition."""
        return self.control.partitions[TP]

    @property
    def may_change(self) -> bool:
        """Whether another change of the ISR is within the bounds."""
        return self.registration.partition_epoch < self.bounds.max_partition_epoch

    @property
    def restarts(self) -> int:
        """How often a broker came back: the first broker epoch is 0."""
        return sum(broker.epoch for broker in self.control.brokers.values())


def initial_isr_cluster(bounds: IsrBounds, profile: Profile = FETCH_TRUNCATION, rules: Rules | None = None) -> IsrCluster:
    """Return the initial state: all brokers are in the ISR, every log is empty, every follower has fetched once."""
    everybody = tuple(range(bounds.followers + 1))
    # A lag limit below any time: every member that is behind may be found lagging.
    setup = Setup(Rules() if rules is None else rules, profile, replica_lag_time_max_ms=-1)
    brokers = FrozenMap((b, BrokerRegistration(epoch=0)) for b in everybody)
    control = ReplicationControl(
        brokers, FrozenMap([(TP, PartitionRegistration(everybody, everybody, LEADER, EPOCH))]), profile
    )
    state = IsrCluster(bounds, setup, Partition(LEADER), (0,) * bounds.followers, control)
    state = _read_image(state, state.registration)
    # Rule 3: every follower has fetched once, so that the leader has recorded a log end of each.
    for f in everybody[1:]:
        state, _ = _serve_fetch(state, f, eligible=False)
    return state


# ---------------------------------------------------------------------------------------------------------------------
# Steps


def isr_successors(state: IsrCluster) -> Iterator[tuple[Label, IsrCluster]]:
    """Yield every enabled label with the state it leads to."""
    yield from _leader_steps(state)
    for f in range(1, state.bounds.followers + 1):
        yield from _fetch_steps(state, f)
        yield from _broker_steps(state, f)
    match state.exchange:
        case AlterPartitionExchange(AlterPartitionRequest() as request, proposed):
            yield from _alter_partition_steps(state, request, proposed)
        case AlterPartitionExchange(AlterPartitionResponse() as response, proposed):
            yield ("HandleAlterPartitionResponse",), _handle_response(state, response, proposed)


def _leader_steps(state: IsrCluster) -> Iterator[tuple[Label, IsrCluster]]:
    """Find the leader's own steps: LeaderAppend, ShrinkIsr (it proposes a smaller ISR), ReadMetadata."""
    setup, leader, metadata = state.setup, state.leader, _metadata(state, eligible=False)
    if leader.log.end < state.bounds.max_end:
        appended, _, _ = partition_.append_records_to_leader(setup, leader, 1, acks=1, metadata=metadata, now=NOW)
        yield ("LeaderAppend",), _with_leader(state, appended)
    # One proposal is in flight at a time.
    if state.exchange is None and state.may_change:
        lagging = partition_.out_of_sync_replicas(setup, leader, NOW)
        # Every nonempty subset of those that are behind may be found lagging together.
        for removed in (subset for size in range(len(lagging)) for subset in combinations(lagging, size + 1)):
            shrunk = _with_leader(state, partition_.prepare_isr_shrink(leader, removed))
            yield ("ShrinkIsr", mask(removed)), _with_proposal(shrunk)
    # The leader may read several records of the metadata log together: only the newest counts.
    for n, image in enumerate(state.images, start=1):
        yield ("ReadMetadata", n), _read_image(state, image)._replace(images=state.images[n:])


def _fetch_steps(state: IsrCluster, f: int) -> Iterator[tuple[Label, IsrCluster]]:
    """Find HandleFetch of follower f, in up to four ways: it may join the ISR or not, and the response arrives or is lost.

    Whether it may join is what the leader's metadata cache says, which may be old.
    """
    for eligible in (False, True):
        after, end = _serve_fetch(state, f, eligible=eligible)
        expands = after.leader.state != state.leader.state
        # An eligible follower whose fetch expands nothing is the same step as an ineligible one's.
        if expands and state.exchange is None and state.may_change:
            after = _with_proposal(after)
        elif eligible:
            continue
        # The last argument of the label: 1 where the response is lost, so that the follower's log end stays where it was.
        yield ("HandleFetch", f, int(expands), 0), after._replace(ends=_put(state.ends, f, end))
        yield ("HandleFetch", f, int(expands), 1), after


def _alter_partition_steps(
    state: IsrCluster, request: AlterPartitionRequest, proposed: PartitionState
) -> Iterator[tuple[Label, IsrCluster]]:
    """Find HandleAlterPartition: the controller decides on a proposal; the response arrives (0 in the label) or is lost (1).

    If it is lost, the request stays in flight: the leader sends it again.
    """
    leader_request = AlterPartition(LEADER, state.control.brokers[LEADER].epoch, (Proposal(TP, request),))
    records, result = alter_partition(state.control, leader_request)
    (response,) = result.responses
    after = _with_registration(state, replay_records(state.control, records))
    if state.setup.rules.proposal_after(response.error) == WAITS_FOR_METADATA:
        # The leader waits for metadata after such a response, so whether it arrives makes no difference.
        lost = arrived = after._replace(exchange=None)
    # What is in flight is still the request, or now the response.
    else:
        lost, arrived = after, after._replace(exchange=AlterPartitionExchange(response, proposed))
    yield ("HandleAlterPartition", 0), arrived
    yield ("HandleAlterPartition", 1), lost


def _handle_response(state: IsrCluster, response: AlterPartitionResponse, proposed: PartitionState) -> IsrCluster:
    """Return the state after the leader has handled the controller's response to its proposal."""
    metadata = _metadata(state, eligible=False)
    leader, _ = partition_.handle_alter_partition_response(state.setup, state.leader, proposed, response, metadata, NOW)
    return _with_leader(state, leader)._replace(exchange=None)


def _broker_steps(state: IsrCluster, f: int) -> Iterator[tuple[Label, IsrCluster]]:
    """Find FenceBroker of follower f, where that changes the ISR, and RestartEmpty: f comes back with an empty log."""
    control = state.control
    # Fenced and unfenced in one step: what stays is that the follower has left the ISR.
    if state.may_change:
        fenced_control = replay_records(control, brokers_.broker_fenced(control, f))
        fenced = _with_registration(state, _unfenced(fenced_control, f))
        if fenced.images != state.images:
            yield ("FenceBroker", f), fenced
    if state.restarts < state.bounds.max_restarts:
        # Another process, in the next broker epoch.
        registration = RegisterBrokerRecord(f, control.brokers[f].epoch + 1, control.brokers[f].incarnation + 1)
        registered = replay_records(control, brokers_.broker_registered(control, registration))
        after = _with_registration(state, _unfenced(registered, f))
        yield ("RestartEmpty", f), after._replace(ends=_put(state.ends, f, 0))


def _unfenced(control: ReplicationControl, f: int) -> ReplicationControl:
    """Return the controller's state after it has unfenced broker f."""
    return replay_records(control, brokers_.broker_unfenced(control, f))


def _metadata(state: IsrCluster, *, eligible: bool) -> BrokerStates:
    """Return a metadata cache in which every broker may join the ISR, with its broker epoch, or none may."""
    return tuple(BrokerState(b, not eligible, epoch=registration.epoch) for b, registration in state.control.brokers.items())


def _with_leader(state: IsrCluster, leader: Partition) -> IsrCluster:
    """Return the state with the leader after a step; what was committed grows with its high watermark.

    What only a clock or the disk would read of the leader is dropped, so that states that behave alike are equal.
    """
    remotes = tuple(Replica(r.broker_id, r.log_end, broker_epoch=r.broker_epoch) for r in leader.remotes)
    log = log_.flush_cache(leader.log)._replace(recovery_point=0, hw_segment=UNDEFINED)
    return state._replace(leader=leader._replace(log=log, remotes=remotes), committed=max(state.committed, log.hw))


def _read_image(state: IsrCluster, image: PartitionRegistration) -> IsrCluster:
    """Return the state after the leader has read a registration in the metadata log."""
    leader, _ = partition_.make_leader(
        state.setup,
        state.leader,
        image.leader_epoch,
        image.partition_epoch,
        image.isr,
        image.replicas,
        _metadata(state, eligible=False),
        NOW,
    )
    return _with_leader(state, leader)


def _serve_fetch(state: IsrCluster, f: int, *, eligible: bool) -> tuple[IsrCluster, int]:
    """Let the leader serve a fetch of follower f, of one record; return (state, f's log end once the response arrives).

    `eligible`: the leader's metadata cache lets f join the ISR.
    """
    end, metadata = state.ends[f - 1], _metadata(state, eligible=eligible)
    # All records have the leader's epoch; an empty log has no last one.
    request = FetchRequest(f, EPOCH, end, EPOCH if end else UNDEFINED, replica_epoch=state.control.brokers[f].epoch)
    leader, response = partition_.fetch_records(state.setup, state.leader, request, metadata, NOW, max_records=1)
    return _with_leader(state, leader), response.records[-1].last + 1 if response.records else end


def _with_proposal(state: IsrCluster) -> IsrCluster:
    """Return the state with the leader's pending proposal sent to the controller."""
    request = partition_.alter_partition_request(state.leader, state.control.brokers[LEADER].epoch)
    return state._replace(exchange=AlterPartitionExchange(request, state.leader.state))


def _with_registration(state: IsrCluster, control: ReplicationControl) -> IsrCluster:
    """Return the state with the controller after a step; a changed registration goes to what the leader has to read."""
    changed = control.partitions[TP] != state.registration
    return state._replace(control=control, images=(*state.images, control.partitions[TP]) if changed else state.images)


def _put(ends: tuple[int, ...], f: int, end: int) -> tuple[int, ...]:
    """Return the followers' log ends with another one for follower f."""
    # Followers are numbered from 1.
    return (*ends[: f - 1], end, *ends[f:])


# ---------------------------------------------------------------------------------------------------------------------
# What TLC prints for a state


def isr_view(state: IsrCluster) -> View:
    """Return the view of a state, as TLC prints it.

    (leader, log ends, broker epochs, exchange, controller, images, committed, restarts, recent). The leader is (log end,
    high watermark, (ISR, partition epoch), proposed ISR, log ends and broker epochs as it has recorded them); ISRs are bit
    masks. `recent` is the bit mask of the followers that caught up within the lag limit: 0, for this model has none.
    """
    partition = state.leader
    pending = partition.state.proposed_isr if partition.state.is_inflight else ()
    leader = (
        partition.log.end,
        partition.log.hw,
        (mask(partition.state.isr), partition.partition_epoch),
        mask(pending),
        tuple(r.log_end for r in partition.remotes),
        tuple(r.broker_epoch for r in partition.remotes),
    )
    epochs = tuple(broker.epoch for b, broker in state.control.brokers.items() if b != LEADER)
    images = tuple(map(_registration_view, state.images))
    controller = _registration_view(state.registration)
    return leader, state.ends, epochs, _exchange_view(state), controller, images, state.committed, state.restarts, 0


def _registration_view(registration: PartitionRegistration) -> View:
    """Return (ISR as a bit mask, partition epoch)."""
    return mask(registration.isr), registration.partition_epoch


def _exchange_view(state: IsrCluster) -> View:
    """Return the view of what is in flight: its kind, then what it says; sets are bit masks.

    () nothing; (1, proposed ISR, partition epoch, broker epochs) a request; (2, ISR, partition epoch, proposed ISR) a
    response; (3, proposed ISR) a refusal.
    """
    match state.exchange:
        case AlterPartitionExchange(AlterPartitionRequest() as request, _):
            reported = dict(zip(request.isr, request.isr_epochs, strict=True))
            epochs = tuple(reported.get(f, UNDEFINED) for f in range(1, state.bounds.followers + 1))
            return 1, mask(request.isr), request.partition_epoch, epochs
        case AlterPartitionExchange(AlterPartitionResponse(error=error), proposed) if error != NONE:
            return 3, mask(proposed.proposed_isr)
        case AlterPartitionExchange(AlterPartitionResponse() as response, proposed):
            return 2, mask(response.isr), response.partition_epoch, mask(proposed.proposed_isr)
        case _:
            return ()


# ---------------------------------------------------------------------------------------------------------------------
# Exploration


def check_isr_completeness(state: IsrCluster) -> Violation | None:
    """Check that every member of the controller's ISR, who may be elected next, holds everything committed."""
    for b in state.registration.isr:
        end = state.leader.log.end if b == LEADER else state.ends[b - 1]
        if end < state.committed:
            return Violation("IsrCompleteness", (b,), (state.committed,), (end,))
    return None


def check_isr_superset(state: IsrCluster) -> Violation | None:
    """Check that the leader's maximal ISR, which holds its high watermark back, has every member of the controller's ISR."""
    maximal = state.leader.state.maximal_isr
    if set(state.registration.isr) <= set(maximal):
        return None
    return Violation("IsrSuperset", (LEADER,), state.registration.isr, maximal)


IsrSteps = Callable[[IsrCluster], Iterable[tuple[Label, IsrCluster]]]


def search_isr(start: IsrCluster, steps: IsrSteps = isr_successors) -> Search[IsrCluster]:
    """Return a search from a state; `steps` takes the place of the model's own steps."""

    def key(state: IsrCluster) -> Hashable:
        """Return what tells states apart: bounds, setup and the controller's configuration are the same in all."""
        brokers, partitions = state.control.brokers, state.control.partitions
        return state.leader, state.ends, brokers, partitions, state.images, state.exchange, state.committed

    return Search(start, steps, key)


def explore_isr(start: IsrCluster) -> Graph:
    """Return the whole labelled graph from a state.

    States with the same view may differ in a proposal that was given up: it is no variable of the specification.
    """
    return search_isr(start).graph(isr_view)
