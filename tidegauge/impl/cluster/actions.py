"""The actions of the explored cluster: brokers, messages, the controller, clients, and network faults.

Each function finds the *transitions* of some actions: for every action that is enabled, its label and what it changes. It
reads the values that it is given and no others, so that a caller may remember its result. Actions are those of
spec/Replication.tla; with eligible leader replicas (ELR) some have other names (spec/ELR.tla). `b` is a broker's index, `f`
a follower's, `leader` a leader's; `row` is what is in flight between a follower and each leader, one message or None;
`image` is the controller's registration; `up` is the bit mask of the brokers that run. `exposed` are the record epochs that
a leader's high watermark covers after a step. A `metadata_cache` says who may join the ISR: a fetch has a transition with
one that lets nobody and one that lets all, any other step has one that lets nobody. Bounds of the model limit what is
enabled.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations

from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.cluster import controller as controller_
from tidegauge.impl.cluster.broker import Broker
from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.cluster.transitions import (
    ANYBODY,
    LAST_KNOWN,
    AwaitedRecord,
    BoundedModel,
    Label,
    NetworkRow,
    Transition,
    collect_transitions,
    exposed_epochs,
    follow_up_request,
    mask,
    metadata_cache,
    with_message,
    with_request,
    without_partition_epoch,
)
from tidegauge.impl.messages import (
    AlterPartitionRequest,
    BrokerStates,
    FetchRequest,
    FetchResponseInFlight,
    FollowerRequest,
    Isolation,
    LeaderResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.rules import INELIGIBLE_REPLICA, NONE, OFFSET_OUT_OF_RANGE, UNDEFINED

# Requests that are sent and served, responses that arrive or are lost.
#
# A response is consumed whether it is taken or not, and a follower of its sender asks again at once.


@collect_transitions
def follower_transitions(model: BoundedModel, f: int, broker: Broker, row: NetworkRow) -> Iterator[Transition]:
    """Find what a follower's fetcher thread does by itself, and what a response in flight does: it arrives or is lost."""
    yield from thread_transitions(model, f, broker, row)
    # Requests in the row are the leaders' (`serve_transitions`).
    for leader, message in enumerate(row):
        if isinstance(message, FetchResponseInFlight | OffsetsForLeaderEpochResponse):
            yield from receive_transitions(model, f, broker, row, leader, message)
            yield from lose_transitions(model, f, broker, row, leader)


def receive_transitions(
    model: BoundedModel, f: int, broker: Broker, row: NetworkRow, leader: int, response: LeaderResponse
) -> tuple[Transition, ...]:
    """Find HandleFetchResponse, HandleDivergingResponse, HandleOutOfRange or HandleEpochResponse, by the response.

    The response of `leader` is consumed whether the follower takes it or not, and the next request leaves at once.
    """
    after = receive_response(model.setup_of(f), broker, leader, response)
    row = with_message(row, leader, follow_up_request(model, after, leader))
    return (Transition((consuming_action(response), f, leader), f, after, row),)


def lose_transitions(model: BoundedModel, f: int, broker: Broker, row: NetworkRow, leader: int) -> tuple[Transition, ...]:
    """Find LoseResponse: the response of `leader` in flight is lost, and the follower sends its next request."""
    row = with_message(row, leader, follow_up_request(model, broker, leader))
    return (Transition(("LoseResponse", f, leader), f, row=row),)


@collect_transitions
def thread_transitions(model: BoundedModel, f: int, broker: Broker, row: NetworkRow) -> Iterator[Transition]:
    """Find SendFetch, SendEpochRequest or TruncateToHighWatermark: steps of a thread that waits for no response."""
    # No thread has the partition, or the thread waits for its leader (`source`).
    if broker.source == UNDEFINED or row[broker.source] is not None:
        return
    setup = model.setup_of(f)
    after = broker_.truncate_alone(setup, broker)
    request = broker_.next_request(setup, after)
    # A truncation that needs no response is a step of its own, and the request that follows leaves with it.
    if after != broker:
        yield Transition(("TruncateToHighWatermark", f), f, after, with_request(model, row, after.source, request))
    elif request is not None:
        action = "SendFetch" if isinstance(request, FetchRequest) else "SendEpochRequest"
        yield Transition((action, f), f, row=with_request(model, row, broker.source, request))


def receive_response(setup: Setup, broker: Broker, leader: int, response: LeaderResponse) -> Broker:
    """Return the follower after a response of `leader` has reached it."""
    if isinstance(response, FetchResponseInFlight):
        return broker_.handle_fetch_response(setup, broker, leader, response)
    return broker_.handle_offsets_for_leader_epoch_response(setup, broker, leader, response)


def consuming_action(response: LeaderResponse) -> str:
    """Return the name of the action that consumes a response."""
    if isinstance(response, OffsetsForLeaderEpochResponse):
        return "HandleEpochResponse"
    if response.response.error == OFFSET_OUT_OF_RANGE:
        return "HandleOutOfRange"
    return "HandleDivergingResponse" if response.response.is_diverging else "HandleFetchResponse"


def serve_transitions(
    model: BoundedModel, leader: int, broker: Broker, f: int, request: FollowerRequest, incarnations: tuple[int, ...] = ()
) -> tuple[Transition, ...]:
    """Find HandleEpochRequest, or HandleFetch in each of its two ways: `broker` is the leader that serves follower `f`.

    `incarnations` are the broker epochs in the leader's metadata cache; empty where the model does not count them.
    """
    if isinstance(request, OffsetsForLeaderEpochRequest):
        response = broker_.serve_epoch(model.serving(leader, f), broker, request)
        return (Transition(("HandleEpochRequest", leader, f), leader, broker, answered=f, response=response),)
    # The leader's metadata cache may be old: it says of everybody that he may not join the ISR, or that he may.
    nobody_may_join, all_may_join = (metadata_cache(model, eligible, incarnations) for eligible in (False, True))
    return _serve_fetch(model, leader, broker, f, request, nobody_may_join, all_may_join)


def _serve_fetch(
    model: BoundedModel,
    leader: int,
    broker: Broker,
    f: int,
    request: FetchRequest,
    nobody_may_join: BrokerStates,
    all_may_join: BrokerStates,
) -> tuple[Transition, ...]:
    """Find HandleFetch with each of two metadata caches: its last argument is 1 where the leader proposes the follower."""
    setup = model.serving(leader, f)
    after, response = broker_.serve_fetch(setup, broker, request, nobody_may_join, model.bounds.max_fetch)
    served = Transition(
        ("HandleFetch", leader, f, 0), leader, after, exposed=exposed_epochs(after), answered=f, response=response
    )
    proposing, response = broker_.serve_fetch(setup, broker, request, all_may_join, model.bounds.max_fetch)
    # Eligibility made no difference: one transition, not two labels for the same state. The ISR state alone tells: without a
    # lag time (transitions.py) a replica that is caught up is at the log end and holds nothing back.
    if proposing.partition.state == after.partition.state:
        return (served,)
    return served, Transition(
        ("HandleFetch", leader, f, 1), leader, proposing, exposed=exposed_epochs(proposing), answered=f, response=response
    )


# What the controller does by itself: sessions that end or begin, registrations, and elections.
#
# Rules of this part
#
# 1. Among several who may be elected the choice is free: each is tried as the one the controller prefers.
# 2. With ELR the actions are those of spec/ELR.tla. A last resort (`Bounds.last_resort`) is an action of its own there; in
#    Kafka it is part of whatever change leaves nobody else.


ControllerChanges = Iterator[tuple[Label, Controller]]


def controller_transitions(model: BoundedModel, image: Controller, up: int) -> tuple[Transition, ...]:
    """Find what the controller does by itself: sessions that end or begin, and elections.

    FenceBroker, UnfenceBroker (with ELR FenceElr, UnfenceElr), ElectPreferred, ElectLastKnown, ElectAnybody. `up` says which
    brokers can renew a session.
    """
    changes = [*_sessions(model, image, up), *_elections(model, image)]
    return tuple(Transition(label, controller=changed) for label, changed in _within(model, changes))


def register_transitions(model: BoundedModel, b: int, broker: Broker, image: Controller) -> tuple[Transition, ...]:
    """Find Register (with ELR): a broker that was down starts, and the controller takes it out of the ISR.

    There is one transition for each broker that may be elected by that; it is in the label, UNDEFINED for none.
    """
    changes = []
    for preference in _preferences(image):
        changed = controller_.register_broker(model.setup, image, b, broker.stopped_cleanly, preference)
        changes.append((("Register", b, _elected(image, changed)), changed))
    up = broker_.restart(broker)
    return tuple(Transition(label, b, up, controller=changed) for label, changed in _within(model, changes))


def _within(model: BoundedModel, changes: Iterable[tuple[Label, Controller]]) -> ControllerChanges:
    """Yield the changes within the bound of the leader epoch, each label once, without the partition epoch."""
    # Several orders of preference elect the same broker: that is the same label and the same state.
    for label, changed in dict(changes).items():
        if changed.leader_epoch <= model.bounds.max_epoch:
            yield label, without_partition_epoch(changed)


def _sessions(model: BoundedModel, image: Controller, up: int) -> ControllerChanges:
    """Yield the fencing of each live broker and the unfencing of each that runs and is fenced, as (label, controller).

    A broker that runs (`up`) renews its session in the step in which it is fenced. A label may come twice.
    """
    setup, suffix = model.setup, "Elr" if model.setup.profile.elr else "Broker"
    for b in image.assignment:
        runs = bool(up >> b & 1)
        for preference in _preferences(image):
            # Fencing a running broker outside the ISR changes nothing: it is unfenced again in the same step.
            if b in image.live and (b in image.isr or not runs):
                changed = controller_.fence_broker(setup, image, b, comes_back=runs, preference=preference)
                yield (f"Fence{suffix}", b, _elected(image, changed)), changed
            if b not in image.live and runs:
                changed = controller_.unfence_broker(setup, image, b, preference)
                yield (f"Unfence{suffix}", b, _elected(image, changed)), changed


def _elections(model: BoundedModel, image: Controller) -> ControllerChanges:
    """Yield each election that changes the leader: of a preferred one; if nobody leads, the last resort of the bounds."""
    setup, resort = model.setup, model.bounds.last_resort
    for preference in _preferences(image):
        if image.leader != UNDEFINED:
            changed = controller_.elect_preferred(setup, image, preference)
            action = "ElectPreferred"
        elif setup.profile.elr and resort == LAST_KNOWN:
            changed = controller_.elect_last_known(setup, image)
            action = "ElectLastKnown"
        elif setup.profile.elr and resort == ANYBODY:
            changed = controller_.elect_anybody(setup, image, preference)
            action = "ElectAnybody"
        else:
            return
        if changed is not image:
            yield (action, changed.leader), changed


def _preferences(image: Controller) -> Iterator[tuple[int, ...]]:
    """Yield orders in which an election may try the replicas: one for each replica, which comes first in it."""
    for preferred in image.assignment:
        yield (preferred, *(b for b in image.assignment if b != preferred))


def _elected(before: Controller, after: Controller) -> int:
    """Return the leader that a change has elected, UNDEFINED if it has elected none: for the label."""
    return after.leader if after.leader_epoch > before.leader_epoch else UNDEFINED


# What a broker does by itself, and what it does when it reads the controller's registration.
#
# What is possible is decided here (which clock runs out, which process dies); what a step does is decided in
# impl.cluster.broker.


@collect_transitions
def own_transitions(model: BoundedModel, b: int, broker: Broker, may_crash: bool) -> Iterator[Transition]:
    """Find what a broker does by itself: LeaderAppend, ShrinkIsr, Crash (with ELR Stop, CrashAndLose), DeleteRecords."""
    setup, log = model.setup_of(b), broker.partition.log
    yield from append_transitions(model, b, broker)
    yield from shrink_transitions(model, b, broker)
    if may_crash:
        yield from stop_transitions(model, b, broker)
    if broker.up:
        for start in range(log.start + 1, min(log.hw, model.bounds.max_start) + 1):
            yield Transition(("DeleteRecords", b, start), b, broker_.delete_records(setup, broker, start))


@collect_transitions
def append_transitions(model: BoundedModel, b: int, broker: Broker) -> Iterator[Transition]:
    """Find LeaderAppend: a leader appends a record; with acks=all where the model has clients that wait."""
    setup, log = model.setup_of(b), broker.partition.log
    # An append with acks=all may be refused: then nothing has happened.
    if broker.leads and log.end < model.bounds.max_log:
        after = broker_.append_record(
            setup, broker, metadata_cache(model, eligible=False), acks=-1 if model.bounds.max_waiting else 1
        )
        if after.partition.log.end > log.end:
            yield Transition(("LeaderAppend", b), b, after, exposed=exposed_epochs(after))


def shrink_transitions(model: BoundedModel, b: int, broker: Broker) -> tuple[Transition, ...]:
    """Find ShrinkIsr: a leader proposes an ISR without some members that are behind, as if they had lagged too long."""
    return tuple(
        Transition(("ShrinkIsr", b, mask(out_of_sync)), b, broker_.shrink_isr(broker, out_of_sync))
        for out_of_sync in _subsets(broker_.lagging_members(model.setup_of(b), broker))
    )


@collect_transitions
def stop_transitions(model: BoundedModel, b: int, broker: Broker) -> Iterator[Transition]:
    """Find Stop, Crash, CrashAndLose: one for each high watermark, and with lost tails for each log end, then on disk."""
    if not broker.up:
        return
    setup, log = model.setup_of(b), broker.partition.log
    elr = setup.profile.elr
    if elr:
        yield Transition(("Stop", b), b, broker_.stop(setup, broker))
    # Lost tails are in spec/ELR.tla: without ELR a crash keeps the whole log.
    lowest_end = log.start if elr and model.bounds.loses_tails else log.end
    for log_end in range(lowest_end, log.end + 1):
        dead = broker_.kill(setup, broker, log_end)
        # Any high watermark up to the last may be the one on disk.
        for hw in range(log.start, min(log.hw, log_end) + 1):
            label = ("CrashAndLose" if elr else "Crash", b, hw, log_end)
            yield Transition(label, b, broker_.with_checkpoint(setup, dead, hw))


def _subsets(members: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the nonempty subsets."""
    for size in range(1, len(members) + 1):
        yield from combinations(members, size)


@collect_transitions
def image_transitions(
    model: BoundedModel, b: int, broker: Broker, row: NetworkRow, image: Controller
) -> Iterator[Transition]:
    """Find what a broker does with the controller: BecomeLeader, BecomeFollower, AlterPartition; if down, Restart, Register.

    `row` is what is in flight for it as a follower.
    """
    partition = broker.partition
    if not broker.up:
        if model.setup.profile.elr:
            yield from register_transitions(model, b, broker, image)
        # Without ELR a start is no request: the controller has to have fenced the process before.
        elif b not in image.live:
            yield Transition(("Restart", b), b, broker_.restart(broker))
        return
    epoch = partition.leader_epoch
    # Partition epochs are not in the model, so "a newer registration" of the same leader epoch is "another ISR".
    other_isr = partition.is_leader and partition.state.isr != image.isr
    if image.leader_epoch > epoch or (image.leader_epoch == epoch and other_isr):
        yield from role_change(model, b, broker, row, image)
    if partition.state.is_inflight and partition.is_leader:
        yield from _alter_partition(model, b, broker, image)


def role_change(model: BoundedModel, b: int, broker: Broker, row: NetworkRow, image: Controller) -> Iterator[Transition]:
    """Find BecomeLeader or BecomeFollower: a broker that is up reads a registration that is news to it.

    A fenced broker does not become leader, nor follower if it has had no role since it started.
    """
    setup = model.setup_of(b)
    if image.leader == b and b in image.live:
        after = broker_.become_leader(setup, broker, image, metadata_cache(model, eligible=False))
        yield Transition(("BecomeLeader", b), b, after, exposed=exposed_epochs(after))
    elif image.leader != b and (b in image.live or broker.partition.leader_epoch != UNDEFINED):
        after = broker_.become_follower(setup, broker, image, truncates=not model.bounds.thread_truncates)
        # The new thread sends at once. A request or response that is still in flight with this leader stays: it may arrive
        # late.
        if after.source != UNDEFINED and row[after.source] is None:
            row = with_request(model, row, after.source, broker_.next_request(setup, after))
        yield Transition(("BecomeFollower", b), b, after, row)


def _alter_partition(model: BoundedModel, b: int, broker: Broker, image: Controller) -> Iterator[Transition]:
    """Find AlterPartition: the controller decides on the pending proposal of broker b.

    An accepted one changes the registration, which the leader reads in a step of its own (BecomeLeader). A refusal for an
    ineligible replica reaches the leader in this step.
    """
    action = "AlterPartitionElr" if model.setup.profile.elr else "AlterPartition"
    request = partition_.alter_partition_request(broker.partition, broker.incarnation)
    request = request._replace(isr_epochs=sent_epochs(broker, request))
    # Partition epochs are not in the model: a leader with another ISR than the controller's has read an older registration.
    if broker.partition.state.isr != image.isr:
        request = request._replace(partition_epoch=image.partition_epoch - 1)
    changed, response = controller_.alter_partition(model.setup, image, request)
    if response.error == NONE and changed.leader_epoch <= model.bounds.max_epoch:
        yield Transition((action, b), b, controller=without_partition_epoch(changed))
    # After any other error the leader waits for metadata, and the controller has changed nothing: that is no step.
    elif response.error == INELIGIBLE_REPLICA:
        metadata = metadata_cache(model, eligible=False)
        after = broker_.handle_alter_partition_response(model.setup_of(b), broker, response, metadata)
        yield Transition((action, b), b, after)


def sent_epochs(broker: Broker, request: AlterPartitionRequest) -> tuple[int, ...]:
    """Return the broker epochs of a proposed ISR, as they were when `broker` sent the proposal.

    A member that has registered again since has an earlier one there (`PartitionState.outdated`).
    """
    outdated = broker.partition.state.outdated
    return tuple(broker_.EARLIER if b in outdated else e for b, e in zip(request.isr, request.isr_epochs, strict=True))


# Clients of the played cluster: produces with acks=all that wait for the in-sync replicas, and consumers that read.
#
# Rules of this part
#
# 1. Nothing here is enabled without a bound for it (`Bounds.max_waiting`): spec/Replication.tla has no clients, only what a
#    high watermark exposes. spec/Acks.tla has them.
# 2. With clients every record a leader appends is a produce with acks=all, and is refused where that is. It is answered as a
#    DelayedProduce is: when the high watermark has passed it, or with an error once the broker does not lead. A broker that
#    dies answers nobody.
# 3. A broker that leads no more reads no metadata before it has answered whoever waits at it: both happen under
#    ReplicaManager's replicaStateChangeLock (#completeDelayedOperationsWhenNotPartitionLeader). It has to: a DelayedProduce
#    knows where its record ended, not which it was, and after another term its log may have another one there.
# 4. A consumer is shown what Partition#fetchRecords reads for it, from the log start to the high watermark.


AwaitedRecords = tuple[AwaitedRecord, ...]
"""The records that a broker's clients wait for, oldest first."""


@collect_transitions
def client_transitions(model: BoundedModel, b: int, broker: Broker, waiting: AwaitedRecords) -> Iterator[Transition]:
    """Find AnswerProduce and Read, a consumer's fetch from the log start; `waiting` are the records awaited at broker b."""
    setup, partition = model.setup_of(b), broker.partition
    yield from produce_transitions(model, b, broker, waiting)
    if broker.leads:
        # A consumer: no replica id, no epochs.
        request = FetchRequest(UNDEFINED, UNDEFINED, partition.log.start, UNDEFINED)
        _, response = partition_.fetch_records(
            setup,
            partition,
            request,
            metadata=(),
            now=broker_.NOW,
            max_records=model.bounds.max_log,
            isolation=Isolation.HIGH_WATERMARK,
            update=False,
        )
        if response.records:
            yield Transition(("Read", b, response.hw, response.records[-1].last + 1), b)


@collect_transitions
def produce_transitions(model: BoundedModel, b: int, broker: Broker, waiting: AwaitedRecords) -> Iterator[Transition]:
    """Find AnswerProduce: a produce whose record is committed is acknowledged; at a deposed leader it gets an error.

    `waiting` has (end offset, epoch) of each awaited record.
    """
    for index, (end, epoch) in enumerate(waiting):
        reached, error = partition_.check_enough_replicas_reach_offset(model.setup_of(b), broker.partition, end)
        if reached or error != NONE:
            still_waiting = (*waiting[:index], *waiting[index + 1 :])
            acked = (end - 1, epoch) if error == NONE else None
            yield Transition(("AnswerProduce", b, end, error), b, waiting=still_waiting, acked=acked)


def may_read_metadata(broker: Broker, waiting: AwaitedRecords) -> bool:
    """Return whether a broker may read metadata: one that was deposed first answers the clients that wait at it.

    Kafka does both under ReplicaManager's replicaStateChangeLock.
    """
    return broker.leads or not waiting


# Network and disk faults, which spec/Replication.tla does not have: requests that arrive twice, requests that nobody waits
# for any more, lost disks.
#
# Rules of this part
#
# 1. Nothing here is enabled without a bound for it (`Bounds.max_duplicates`, `max_lost_disks`, `max_abandoned`).
# 2. A request is handled twice when the follower gave its connection up and the leader still read what was on it. The second
#    response goes to that connection: nobody gets it. Answers are not taken twice: the thread waits for one response, by
#    correlation id (NetworkClient).
# 3. A copy dies with either end, as requests in flight do. A request whose sender closed the connection dies with the leader
#    alone (spec/models/MCKeeping).
# 4. A lost disk is found empty at the next start. What the broker said it held before must count no longer: that is what
#    broker epochs are for (KIP-903).


def duplicate_transitions(f: int, row: NetworkRow, copies: NetworkRow) -> tuple[Transition, ...]:
    """Find Duplicate: a request in flight will arrive once more.

    `copies` are the follower's copies that have not arrived yet, by leader as in `row`: there is one at most for each.
    """
    return tuple(
        Transition(("Duplicate", f, leader), f, copies=with_message(copies, leader, message))
        for leader, message in enumerate(row)
        if isinstance(message, FetchRequest | OffsetsForLeaderEpochRequest) and copies[leader] is None
    )


def disconnect_transitions(f: int, row: NetworkRow, copies: NetworkRow, up: int) -> tuple[Transition, ...]:
    """Find Disconnect: a follower gives up its fetch to a broker that runs (`up`), which may handle it all the same.

    The fetch moves from `row` to `copies`, the requests of this follower whose response nobody will get.
    """
    return tuple(
        Transition(
            ("Disconnect", f, leader), f, row=with_message(row, leader, None), copies=with_message(copies, leader, message)
        )
        for leader, message in enumerate(row)
        if isinstance(message, FetchRequest) and copies[leader] is None and up >> leader & 1
    )


@collect_transitions
def copy_transitions(
    model: BoundedModel, leader: int, broker: Broker, f: int, copies: NetworkRow, incarnations: tuple[int, ...]
) -> Iterator[Transition]:
    """Find HandleDuplicate or HandleAbandoned: the leader handles the copy of a request of `f`; the response is lost."""
    action = "HandleDuplicate" if model.bounds.max_duplicates else "HandleAbandoned"
    copy = copies[leader]
    if isinstance(copy, FetchRequest | OffsetsForLeaderEpochRequest):
        for served in serve_transitions(model, leader, broker, f, copy, incarnations):
            # ("HandleFetch", leader, f, proposes the follower for the ISR), or ("HandleEpochRequest", leader, f), which
            # proposes nobody.
            proposes = served.label[3:] or (0,)
            label = (action, leader, f, *proposes, *_request_arguments(copy))
            yield served._replace(label=label, answered=UNDEFINED, response=None, consumed=f)


def _request_arguments(request: FollowerRequest) -> Label:
    """Return the arguments by which a label names a copied request, all ints.

    (current leader epoch, fetch offset, last fetched epoch); of an OffsetsForLeaderEpoch request (current leader epoch, -1,
    requested epoch).
    """
    if isinstance(request, OffsetsForLeaderEpochRequest):
        return request.current_leader_epoch, UNDEFINED, request.leader_epoch
    return request.current_leader_epoch, request.fetch_offset, request.last_fetched_epoch


def disk_transitions(b: int, broker: Broker) -> tuple[Transition, ...]:
    """Find LoseDisk: a broker that is down and has records finds its disk empty when it starts again."""
    if broker.up or broker.partition.log.end == 0:
        return ()
    return (Transition(("LoseDisk", b), b, broker_.lose_disk(broker)),)
