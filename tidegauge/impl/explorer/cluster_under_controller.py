"""Brokers and messages under the whole controller: impl.cluster's brokers, and a controller that is impl.controller.

A state joins a `Cluster` (brokers, messages in flight, clients) and a `ControlCluster` (controller, processes), and
`_share_state` lets each see what the other changed. The *image* is the controller's registration, as brokers read it. Broker
`b` is an index. A function that finds steps yields (label, state after it); a label is (action, arguments), those of
impl.cluster and of impl.explorer.controller_model. Both models have `committed`, the leader epochs by offset of the records
that were ever committed; `acked` has (offset, epoch) of those that were acknowledged, `waiting` by broker those of clients
without a response.

Rules of this file

1. A broker does what impl.cluster says, and the controller decides what impl.controller says, request by request
   (impl.explorer.controller_model). Here the two are joined: the controller's partition is the image that brokers read, and
   their logs are those of its states.
2. A broker reads the image when it is news: another partition epoch, another topic id, or that it is no replica. It reads
   min.insync.replicas with a new leader epoch at the latest: both stand in the metadata log. That of the same leader epoch
   may be the response to its own proposal, which says nothing of configurations.
3. A replica belongs to a topic id. What has another one, or is assigned elsewhere, is deleted with its log, and what comes
   after is a life of its own.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.cluster.actions import (
    client_transitions,
    follower_transitions,
    may_read_metadata,
    own_transitions,
    role_change,
    sent_epochs,
    serve_transitions,
)
from tidegauge.impl.cluster.broker import REGISTERED, Broker
from tidegauge.impl.cluster.cluster import DIRECT, Cluster, after_crash, apply
from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.cluster.transitions import BoundedModel, Bounds, Label, Transition, metadata_cache, record_epochs
from tidegauge.impl.controller.replication_control import AlterPartition, Proposal, alter_partition, is_active, min_isr
from tidegauge.impl.controller.requests import create_topic
from tidegauge.impl.explorer import controller_model
from tidegauge.impl.explorer.controller_model import (
    FAILED,
    FAILED_STILL,
    NAME,
    STOPPED,
    ControlBounds,
    ControlCluster,
    directory_state,
)
from tidegauge.impl.messages import FetchRequest, OffsetsForLeaderEpochRequest
from tidegauge.impl.profiles import ELR, Profile, Rules, Setup
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import NONE, UNDEFINED

UNBOUNDED = 1_000
"""Offsets, epochs and stops that nobody reaches by hand."""

ABSTRACT = frozenset({"LeaderAppend", "CatchUp", "Acknowledge", "Expand", "Shrink", "ReadConfig"})
"""Steps of the controller's model that are several here, message by message."""


class ControlledCluster(NamedTuple):
    """A state. `held` is per broker the topic id of its replica, UNDEFINED where it has none."""

    cluster: Cluster
    control: ControlCluster
    held: tuple[int, ...]
    topic_id: int = 0


def initial_controlled_cluster(bounds: ControlBounds, profile: Profile = ELR, *, clients: bool = False) -> ControlledCluster:
    """Return the initial state: the first replica leads, and all replicas have read the metadata.

    With `clients` every record is a produce with acks=all that waits for its response. `bounds` has the number of brokers,
    the replicas, and what the controller is configured with; its limits are lifted.
    """
    bounds = bounds._replace(max_log=UNBOUNDED, max_partition_epoch=UNBOUNDED, max_stops=UNBOUNDED, deletes=True)
    control = controller_model.initial_control_cluster(bounds._replace(targets=(), min_isrs=(), unregisters=True), profile)
    count = bounds.brokers
    unbounded = Bounds(
        count,
        max_log=UNBOUNDED,
        max_epoch=UNBOUNDED,
        max_crashes=UNBOUNDED,
        max_fetch=UNBOUNDED,
        max_waiting=UNBOUNDED if clients else 0,
    )
    # A lag limit below any time: every member that is behind may be found lagging.
    model = BoundedModel(unbounded, Setup(Rules(), profile, bounds.min_isr, replica_lag_time_max_ms=-1))
    # A row of messages for each follower, all empty.
    nothing = ((None,) * count,) * count
    brokers = tuple(Broker(Partition(b), incarnation=REGISTERED) for b in range(count))
    cluster = Cluster(model, brokers, nothing, image_of(control), waiting=((),) * count if clients else ())
    state = ControlledCluster(cluster, control, (UNDEFINED,) * count)
    # Each replica reads its role, which is the first thing that the metadata log has for it.
    for b in bounds.replicas:
        state = next(after for label, after in _metadata_steps(state, b))
    # A follower sends as soon as it follows; as in `initial` of impl.cluster, nothing is in flight yet.
    return state._replace(cluster=state.cluster._replace(network=nothing))


def image_of(control: ControlCluster) -> Controller:
    """Return the controller as impl.cluster's brokers read it; a deleted topic has no replicas."""
    everybody, partition = range(control.bounds.brokers), control.partition
    live = tuple(b for b in everybody if is_active(control.control, b))
    incarnations = (REGISTERED,) * control.bounds.brokers
    if partition is None:
        return Controller((), UNDEFINED, UNDEFINED, (), live, incarnations=incarnations)
    return Controller(
        partition.replicas,
        partition.leader,
        partition.leader_epoch,
        isr=tuple(sorted(partition.isr)),
        live=live,
        partition_epoch=partition.partition_epoch,
        incarnations=incarnations,
        elr=tuple(sorted(partition.elr)),
        last_known_elr=partition.last_known_elr,
    )


def controlled_successors(state: ControlledCluster) -> Iterator[tuple[Label, ControlledCluster]]:
    """Yield every enabled label with the state it leads to.

    Reassign, Cancel, SetMinIsr, SetElr, and a start with a directory that is still failed, only if the bounds
    (ControlBounds) name them; Create not at all. `take_label` takes these, too.
    """
    for transition in _data_transitions(state):
        yield transition.label, _share_state(state._replace(cluster=apply(state.cluster, transition)), state.control)
    for b in range(state.control.bounds.brokers):
        yield from _metadata_steps(state, b)
        yield from _alter_partition_steps(state, b)
    yield from _controller_steps(state)


def take_label(state: ControlledCluster, label: Label) -> ControlledCluster | None:
    """Return the state after any label, also one that the bounds do not name; None where it is not enabled.

    The bounds are widened for this step so that the label is among those of `controlled_successors`.
    """
    bounds = state.control.bounds
    match label:
        case ("Reassign", target):
            bounds = bounds._replace(targets=(target,))
        # With any target a cancellation is among the steps.
        case ("Cancel",):
            bounds = bounds._replace(targets=(bounds.replicas,))
        # The leader reads the new value in a step of its own.
        case ("SetMinIsr", value):
            bounds = bounds._replace(min_isrs=(value,), late_config=True)
        # Of the states of a directory at a start one needs this bound.
        case ("Register", _, _):
            bounds = bounds._replace(stays_failed=True)
        # ELR may be switched.
        case ("SetElr", _):
            bounds = bounds._replace(toggles=True)
        case ("Create", replicas):
            return next((after for _, after in _create_steps(state, label, replicas)), None)
    widened = state._replace(control=state.control._replace(bounds=bounds))
    return next((after for enabled, after in controlled_successors(widened) if enabled == label), None)


# ---------------------------------------------------------------------------------------------------------------------
# Brokers and messages


def _data_transitions(state: ControlledCluster) -> Iterator[Transition]:
    """Find what brokers and clients do among themselves, without the controller."""
    cluster, topic_ids = state.cluster, state.held
    model, incarnations = cluster.model, cluster.controller.incarnations
    for b, broker in enumerate(cluster.brokers):
        yield from own_transitions(model, b, broker, may_crash=False)
        yield from follower_transitions(model, b, broker, cluster.network[b])
        for leader, message in enumerate(cluster.network[b]):
            # A fetch names its topic id (KIP-516): a leader of another topic of that name refuses it.
            is_refused = topic_ids[leader] not in {topic_ids[b], UNDEFINED}
            if isinstance(message, FetchRequest | OffsetsForLeaderEpochRequest) and not is_refused:
                yield from serve_transitions(model, leader, cluster.brokers[leader], b, message, incarnations)
    for b, waiting in enumerate(cluster.waiting):
        yield from client_transitions(model, b, cluster.brokers[b], waiting)


def _metadata_steps(state: ControlledCluster, b: int) -> Iterator[tuple[Label, ControlledCluster]]:
    """Find what the metadata log has for broker b, if it runs: BecomeLeader, BecomeFollower, DeleteReplica, ReadConfig."""
    cluster, image, control = state.cluster, state.cluster.controller, state.control
    broker, partition = cluster.brokers[b], cluster.brokers[b].partition
    if not broker.up or directory_state(control, b) == FAILED:
        return
    # A deposed leader answers its clients before it reads more metadata (replicaStateChangeLock of ReplicaManager).
    if cluster.waiting and not may_read_metadata(broker, cluster.waiting[b]):
        return
    # A topic of another id is another topic: the old replica goes before a new one comes (ReplicaManager#applyDelta).
    if state.held[b] != UNDEFINED and (state.held[b] != state.topic_id or b not in image.assignment):
        yield ("DeleteReplica", b), _share_state(_without_replica(state, b), control)
        return
    has_role = partition.leader_epoch != UNDEFINED
    if b in image.assignment and (not has_role or image.partition_epoch > partition.partition_epoch):
        read = cluster
        # Configurations are applied before partitions, so with a new leader epoch the leader knows min.insync.replicas.
        if image.leader_epoch > partition.leader_epoch:
            read = _with_min_isr(cluster, min_isr(control.control, NAME))
        held = (*state.held[:b], state.topic_id, *state.held[b + 1 :])
        for transition in role_change(read.model, b, broker, cluster.network[b], image):
            yield transition.label, _share_state(state._replace(cluster=apply(read, transition), held=held), control)
    # A leader may read min.insync.replicas alone.
    if has_role and broker.leads and control.partition is not None:
        read = _with_min_isr(cluster, min_isr(control.control, NAME))
        if read != cluster:
            yield ("ReadConfig", b), _share_state(state._replace(cluster=read), control)


def _with_min_isr(cluster: Cluster, value: int) -> Cluster:
    """Return the cluster with brokers that have read this min.insync.replicas."""
    setup = cluster.model.setup._replace(min_insync_replicas=value)
    return cluster._replace(model=cluster.model._replace(setup=setup))


def _without_replica(state: ControlledCluster, b: int) -> ControlledCluster:
    """Return the state after broker b has deleted its replica. ReplicaManager#stopPartitions.

    Its fetcher stops, and what it has in flight is lost.
    """
    cluster = state.cluster
    brokers = list(cluster.brokers)
    brokers[b] = brokers[b]._replace(partition=Partition(b), source=UNDEFINED, entry=None)
    waiting = (*cluster.waiting[:b], (), *cluster.waiting[b + 1 :]) if cluster.waiting else ()
    network = after_crash(cluster.network, b, DIRECT)
    held = (*state.held[:b], UNDEFINED, *state.held[b + 1 :])
    return state._replace(cluster=cluster._replace(brokers=tuple(brokers), network=network, waiting=waiting), held=held)


# ---------------------------------------------------------------------------------------------------------------------
# The controller


def _alter_partition_steps(state: ControlledCluster, b: int) -> Iterator[tuple[Label, ControlledCluster]]:
    """Find AlterPartition: broker b's proposal reaches the controller, which writes metadata or refuses.

    The error code of the response is in the label.
    """
    cluster, control = state.cluster, state.control
    broker, sender = cluster.brokers[b], control.control.brokers.get(b)
    if not broker.leads or not broker.partition.state.is_inflight or sender is None:
        return
    request = partition_.alter_partition_request(broker.partition, broker.incarnation)
    epochs = tuple(_broker_epoch(control, m, e) for m, e in zip(request.isr, sent_epochs(broker, request), strict=True))
    proposal = Proposal(control.tp, request._replace(isr_epochs=epochs))
    result = alter_partition(control.control, AlterPartition(b, sender.epoch, (proposal,)))
    response = result.response.responses[0]
    label = ("AlterPartition", b, response.error)
    # An accepted proposal reaches the leader as metadata; only a refusal changes it at once.
    if response.error != NONE:
        metadata = metadata_cache(cluster.model, eligible=False)
        refused = broker_.handle_alter_partition_response(cluster.model.setup, broker, response, metadata)
        cluster = cluster._replace(brokers=(*cluster.brokers[:b], refused, *cluster.brokers[b + 1 :]))
    # One step, or none if nothing is written.
    for _, after in controller_model.write_records_step(control, label, result.records):
        control = after
    yield label, _share_state(state._replace(cluster=cluster), control)


def _broker_epoch(control: ControlCluster, b: int, incarnation: int) -> int:
    """Return the broker epoch that a leader names for a member of the ISR that it proposes.

    `incarnation`: REGISTERED or EARLIER, UNDEFINED where the leader names none. A broker that never registered has no epoch.
    """
    broker = control.control.brokers.get(b)
    if incarnation == UNDEFINED or broker is None:
        return UNDEFINED
    # Which earlier one is not compared: every epoch but the registered one is refused alike.
    return broker.epoch if incarnation == REGISTERED else broker.epoch - 1


def _controller_steps(state: ControlledCluster) -> Iterator[tuple[Label, ControlledCluster]]:
    """Find the steps of the controller's model with their effect on brokers, without those that brokers take here."""
    for label, after in controller_model.control_successors(state.control):
        if label[0] not in ABSTRACT:
            yield label, _share_state(_with_processes(state, label, after), after)


def _with_processes(state: ControlledCluster, label: Label, after: ControlCluster) -> ControlledCluster:
    """Return the state with the brokers after a step of the controller's model, which led to `after`.

    The step may end or start a process, or fail a log directory. Labels: ("Die", b, 0) if the disk goes with the process,
    else 1; ("Unfence", b, 1) if the heartbeat also reports a failed directory.
    """
    cluster = state.cluster
    setup = cluster.model.setup
    match label:
        case ("Die", b, kept):
            # CrashAndLose is the step by which the broker's messages go, too; the log that is left is in its result.
            log = cluster.brokers[b].partition.log
            # In this model a process that dies loses nothing that was not flushed: it keeps high watermark and log end.
            dead = broker_.crash(setup, cluster.brokers[b], log.hw, log.end)
            transition = Transition(("CrashAndLose", b), b, dead if kept else broker_.lose_disk(dead))
        # Until the controller lets it stop it goes on.
        case ("ShutDown", b) if after.processes[b] == STOPPED:
            transition = Transition(("Stop", b), b, broker_.stop(setup, cluster.brokers[b]))
        case ("FailDirectory", b) | ("Unfence", b, 1):
            # The process goes on without the replica, so what peers have in flight with it is lost as in a crash. `held`
            # has the topic id of each broker's replica.
            offline = Broker(Partition(b, has_log=False), incarnation=cluster.brokers[b].incarnation)
            state = state._replace(held=(*state.held[:b], UNDEFINED, *state.held[b + 1 :]))
            transition = Transition(("CrashAndLose", b), b, offline)
        case ("Register", b, directory):
            started = broker_.restart(cluster.brokers[b])
            partition = started.partition._replace(has_log=directory != FAILED_STILL)
            transition = Transition(("Register", b), b, started._replace(partition=partition))
        case _:
            return state
    return state._replace(cluster=apply(cluster, transition))


def _create_steps(
    state: ControlledCluster, label: Label, replicas: tuple[int, ...]
) -> Iterator[tuple[Label, ControlledCluster]]:
    """Find Create: the topic is created again after it was deleted, on `replicas` and with another topic id."""
    bounds = state.control.bounds
    # Only for one partition without a choice of directories: otherwise the brokers would have to report directories first.
    if state.control.partition is None and not bounds.partition_zero and not bounds.disks_fail:
        records = create_topic(state.control.control, NAME, (replicas,), {}).records
        # One step, or none if the controller refuses.
        for _, after in controller_model.write_records_step(state.control, label, records):
            yield label, _share_state(state._replace(topic_id=state.topic_id + 1), after)


def _share_state(state: ControlledCluster, control: ControlCluster) -> ControlledCluster:
    """Return the state after a step, with `control` as the controller's model: each model is told what the other changed.

    Brokers see the controller's registration; the controller's model sees the brokers' logs, what was committed, and the
    min.insync.replicas that they have read.
    """
    cluster = state.cluster
    # The same object: only brokers and messages have changed.
    if control is not state.control:
        # Acknowledged records that an unclean election gave up are no promise any more.
        acked = tuple(
            (offset, epoch) for offset, epoch in cluster.acked if control.committed[offset : offset + 1] == (epoch,)
        )
        cluster = cluster._replace(controller=image_of(control), committed=control.committed, acked=acked)
    known_min_isr = cluster.model.setup.min_insync_replicas
    logs = tuple(record_epochs(broker) for broker in cluster.brokers)
    # `take_label` widens these bounds for one step only.
    bounds = control.bounds._replace(targets=(), min_isrs=(), late_config=False, toggles=False, stays_failed=False)
    joined = control._replace(bounds=bounds, logs=logs, committed=cluster.committed, known_min_isr=known_min_isr)
    return state._replace(cluster=cluster, control=joined)
