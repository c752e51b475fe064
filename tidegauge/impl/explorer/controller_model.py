"""The controller with one partition and its brokers: the states of spec/Controller.tla, and what must hold in them.

A state has the controller's state (`control`), and for each broker, by index `b`, its process (UP, STOPPING, STOPPED, DEAD)
and its log: the leader epoch of each record. Broker b has a log directory "{b}A", and a second one, "{b}B", if disks may
fail in the model. A function that finds steps yields (label, state after it); a label is (action, arguments). ELR are the
eligible leader replicas (KIP-966). A *view* is a state as nested tuples of ints; sets of brokers are bit masks in it.

Rules of this file

1. What the controller has is what impl.controller has. Beside it stand processes, logs, and what was acknowledged.
2. Metadata reaches everybody at once, and a follower fetches all it lacks in one step: nothing is in flight. Only a changed
   min.insync.replicas may reach the leader late.
3. Equal views are equal states: what broker epochs and offsets there are is in no view, and nothing depends on it.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from tidegauge.impl.cluster.transitions import Label, mask
from tidegauge.impl.controller import requests
from tidegauge.impl.controller.brokers import BrokerHeartbeat, BrokerHeartbeatState, Heartbeats
from tidegauge.impl.controller.configurations import ConfigChange, incremental_alter_configs, update_features
from tidegauge.impl.controller.features import ELR_VERSION, Features, FeatureUpdate
from tidegauge.impl.controller.partition_change import Election
from tidegauge.impl.controller.partition_registration import (
    DELETED,
    PartitionRegistration,
    RecoveryState,
    directory_of,
    is_reassigning,
)
from tidegauge.impl.controller.quorum_controller import (
    QuorumController,
    fence_stale_broker,
    process_broker_heartbeat,
    register_broker,
    unregister_broker,
)
from tidegauge.impl.controller.records import TOPIC, ConfigResource, ControllerRecord, RegisterBrokerRecord
from tidegauge.impl.controller.replay import replay_records
from tidegauge.impl.controller.replication_control import (
    MIN_IN_SYNC_REPLICAS,
    AlterPartition,
    BrokerRegistration,
    Proposal,
    ReplicationControl,
    alter_partition,
    is_active,
    min_isr,
)
from tidegauge.impl.controller.requests import (
    DirectoryAssignment,
    Reassignment,
    alter_partition_reassignments,
    assign_replicas_to_dirs,
    delete_topic,
)
from tidegauge.impl.explorer.search import Graph, Search, View, Violation
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import AlterPartitionRequest
from tidegauge.impl.profiles import ELR, Profile
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.topic_partition import TopicPartition

NAME = "topic"
ELSEWHERE = 10
"""The first of the brokers that have partition 0, where that is another one. Nothing happens to them."""

UP, STOPPING, STOPPED, DEAD = range(4)
"""A process: runs; wants to stop, and asks the controller first; stopped in order; died."""

ONLINE, FAILED, MOVED = range(3)
"""A replica's log directory: the one it was placed in; that one failed; it lies in the other one."""

MENDED, TAKEN_OUT, FAILED_STILL = range(3)
"""A directory that failed, where its broker starts: mended and empty; not in log.dirs any more; there and failed."""


class ControlBounds(NamedTuple):
    """The limits of a model, and which requests and failures it has. `targets` are those of reassignments.

    `partition_zero` is the number of replicas of partition 0, 0 where this is that partition. `min_isrs`: the values that
    min.insync.replicas is set to; `toggles`: ELR is switched on and off. `late_config`: a changed min.insync.replicas
    reaches the leader late. `stays_failed`: a broker may start while a directory of its is failed; not
    in spec/Controller.tla.
    """

    replicas: tuple[int, ...]
    brokers: int
    partition_zero: int = 0
    targets: tuple[tuple[int, ...], ...] = ()
    min_isr: int = 2
    min_isrs: tuple[int, ...] = ()
    max_log: int = 1
    max_partition_epoch: int = 3
    max_stops: int = 1
    unclean: bool = False
    deletes: bool = False
    unregisters: bool = False
    disks_fail: bool = False
    late_config: bool = False
    toggles: bool = False
    stays_failed: bool = False


class ControlCluster(NamedTuple):
    """A state. `known_min_isr` is the min.insync.replicas that the leader has read.

    `committed` is a ghost: what was ever below the high watermark, as far as no election gave it up.
    """

    bounds: ControlBounds
    control: ReplicationControl
    processes: tuple[int, ...]
    logs: tuple[tuple[int, ...], ...]
    known_min_isr: int
    committed: tuple[int, ...] = ()
    stops: int = 0

    @property
    def tp(self) -> TopicPartition:
        """The partition: number 0 of its topic, or number 1."""
        return TopicPartition(NAME, int(self.bounds.partition_zero > 0))

    @property
    def partition(self) -> PartitionRegistration | None:
        """What the controller has of it; None once the topic is deleted."""
        return self.control.partitions.get(self.tp)


def initial_control_cluster(bounds: ControlBounds, profile: Profile = ELR) -> ControlCluster:
    """Return the initial state: all brokers run, all replicas are in the ISR, every log is empty."""
    everybody = range(bounds.brokers)
    # The replicas of partition 0, where the model is of partition 1: only their number matters (finding F4).
    elsewhere = tuple(range(ELSEWHERE, ELSEWHERE + bounds.partition_zero))
    # The second directory is there only if disks may fail.
    directories = {b: (f"{b}A", f"{b}B")[: 1 + bounds.disks_fail] for b in everybody}
    brokers = [(b, BrokerRegistration(epoch=0, directories=directories.get(b, ()))) for b in (*everybody, *elsewhere)]
    placed = tuple(f"{b}A" for b in bounds.replicas)
    partition = PartitionRegistration(bounds.replicas, bounds.replicas, bounds.replicas[0], directories=placed)
    features = Features(elr=int(profile.elr))
    control = ReplicationControl(
        FrozenMap(brokers), profile=profile, features=features, min_isr=bounds.min_isr, unclean=bounds.unclean
    )
    processes, logs = (UP,) * bounds.brokers, ((),) * bounds.brokers
    state = ControlCluster(bounds, control, processes, logs, known_min_isr=bounds.min_isr)
    partitions = [(state.tp, partition)]
    if elsewhere:
        partitions.insert(0, (state.tp._replace(partition=0), PartitionRegistration(elsewhere, elsewhere, ELSEWHERE)))
    return state._replace(control=control._replace(partitions=FrozenMap(partitions)))


# ---------------------------------------------------------------------------------------------------------------------
# Look-ups


def directory_state(state: ControlCluster, b: int) -> int:
    """Return the state of the log directory with the replica of b: ONLINE, FAILED or MOVED (it is the second one)."""
    partition, registration = state.partition, state.control.brokers.get(b)
    # Where b has no replica, ONLINE stands for that.
    if partition is None or registration is None or b not in partition.replicas:
        return ONLINE
    directory = directory_of(partition, b)
    if directory == f"{b}B":
        return MOVED
    return ONLINE if directory in registration.directories else FAILED


def is_running(state: ControlCluster, b: int) -> bool:
    """Return whether the process of b runs and can read and write its replica; b may be UNDEFINED, nobody."""
    return b != UNDEFINED and state.processes[b] in {UP, STOPPING} and directory_state(state, b) != FAILED


def common_prefix(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """Return the longest common prefix of two logs."""
    length = 0
    while length < min(len(first), len(second)) and first[length] == second[length]:
        length += 1
    return first[:length]


# ---------------------------------------------------------------------------------------------------------------------
# What TLC prints for a state


def control_view(state: ControlCluster) -> View:
    """Return the view of a state, as TLC prints it.

    (partition, brokers, logs, committed, stops, min.insync.replicas, the same as the leader has read it, (by broker the
    partitions in the index of ELRs, brokers whose index entry is of a deleted topic, whether the ELR feature is on)).
    """
    brokers = tuple(_broker_view(state, b) for b in range(state.bounds.brokers))
    index = state.control.brokers_to_elrs
    listed = tuple(index.get((b, NAME)) or () for b in range(state.bounds.brokers))
    stale = mask(b for b in range(state.bounds.brokers) if (b, DELETED) in index)
    indexes = listed, stale, int(state.control.profile.elr)
    config = (min_isr(state.control, NAME), state.known_min_isr) if state.partition is not None else (0, 0)
    return _partition_view(state.partition), brokers, state.logs, state.committed, state.stops, *config, indexes


def _partition_view(partition: PartitionRegistration | None) -> View:
    """Return the view of the registration, () for a deleted topic; the sets adding, removing, isr, elr are bit masks."""
    if partition is None:
        return ()
    return (
        partition.replicas,
        *(mask(members) for members in (partition.adding, partition.removing, partition.isr, partition.elr)),
        partition.last_known_elr,
        partition.leader,
        partition.recovery.value,
        partition.leader_epoch,
        partition.partition_epoch,
    )


def _broker_view(state: ControlCluster, b: int) -> View:
    """Return the view of a broker: (process, registration, whether it shuts down, state of its replica's directory).

    The registration is 0 for none, 1 for fenced, 2 for unfenced.
    """
    registration = state.control.brokers.get(b)
    registered = 0 if registration is None else 2 - registration.fenced
    return (
        state.processes[b],
        registered,
        int(registration is not None and registration.in_controlled_shutdown),
        directory_state(state, b),
    )


# ---------------------------------------------------------------------------------------------------------------------
# What must hold


def leader_completeness(state: ControlCluster) -> Violation | None:
    """Check that the leader holds everything acknowledged; what unclean elections gave up does not count."""
    leader = UNDEFINED if state.partition is None else state.partition.leader
    if not is_running(state, leader) or state.logs[leader][: len(state.committed)] == state.committed:
        return None
    return Violation("LeaderCompleteness", (leader,), state.committed, state.logs[leader])


def leader_is_live(state: ControlCluster) -> Violation | None:
    """Check that the leader is active and the directory of its replica can be read."""
    leader = UNDEFINED if state.partition is None else state.partition.leader
    if leader == UNDEFINED or (is_active(state.control, leader) and directory_state(state, leader) != FAILED):
        return None
    return Violation("LeaderIsLive", (leader,), (ONLINE,), (directory_state(state, leader),))


def leader_is_in_isr(state: ControlCluster) -> Violation | None:
    """Check that the leader is in the ISR."""
    partition = state.partition
    if partition is None or partition.leader == UNDEFINED or partition.leader in partition.isr:
        return None
    return Violation("LeaderIsInIsr", (partition.leader,), (partition.leader,), partition.isr)


def somebody_may_lead(state: ControlCluster) -> Violation | None:
    """Check that a partition without leader has some replica to wait for: in the ISR, in the ELR, or last known leader."""
    partition = state.partition
    if partition is None or partition.leader != UNDEFINED or partition.isr or partition.elr or partition.last_known_elr:
        return None
    return Violation("SomebodyMayLead", (), partition.replicas, ())


def elr_is_apart(state: ControlCluster) -> Violation | None:
    """Check that no replica is both in the ISR and in the ELR, and that every broker in the ELR is a replica."""
    partition = state.partition
    if partition is None or set(partition.elr) <= set(partition.replicas) - set(partition.isr):
        return None
    return Violation("ElrIsApart", partition.elr, partition.replicas, partition.isr)


def completes_in_sync(state: ControlCluster) -> Violation | None:
    """Check that a reassignment whose remaining replicas are all in sync is complete."""
    partition = state.partition
    if partition is None or not is_reassigning(partition):
        return None
    target = tuple(b for b in partition.replicas if b not in partition.removing)
    # One that removes all is never complete: a partition keeps a replica.
    if not target or not set(target) <= set(partition.isr):
        return None
    return Violation("CompletesInSync", target, (), (*partition.adding, *partition.removing))


def adds_nobody_it_removes(state: ControlCluster) -> Violation | None:
    """Check that no replica is both added and removed: such a reassignment would never be complete."""
    partition = state.partition
    if partition is None or not set(partition.adding) & set(partition.removing):
        return None
    return Violation("AddsNobodyItRemoves", (), partition.adding, partition.removing)


def brokers_may_register(state: ControlCluster) -> Violation | None:
    """Check that the controller's index of ELRs has no entry of a deleted topic, on which a registration would fail."""
    stale = tuple(b for b, topic in state.control.brokers_to_elrs if topic == DELETED)
    return Violation("BrokersMayRegister", stale, (), stale) if stale else None


CONTROL_INVARIANTS: Mapping[str, Callable[[ControlCluster], Violation | None]] = MappingProxyType(
    {
        "LeaderCompleteness": leader_completeness,
        "LeaderIsLive": leader_is_live,
        "LeaderIsInIsr": leader_is_in_isr,
        "SomebodyMayLead": somebody_may_lead,
        "ElrIsApart": elr_is_apart,
        "AddsNobodyItRemoves": adds_nobody_it_removes,
        "CompletesInSync": completes_in_sync,
        "BrokersMayRegister": brokers_may_register,
    }
)


def control_violation(state: ControlCluster, names: tuple[str, ...] = tuple(CONTROL_INVARIANTS)) -> Violation | None:
    """Return the violation of the first of the named invariants that does not hold, None if all hold."""
    return next((violation for name in names if (violation := CONTROL_INVARIANTS[name](state)) is not None), None)


# What happens to a controller, one partition and its brokers: the Next relation of spec/Controller.tla.
#
# Rules of this part
#
# 1. impl.controller decides what the controller does and writes, request by request. This part decides who may send which
#    request, and what becomes of logs and processes.
# 2. A request that Kafka answers with an error, or at which it throws, is no step.
# 3. There is no clock: any session may be over, and every broker has sent a heartbeat lately.


T = TypeVar("T")


def control_successors(state: ControlCluster) -> Iterator[tuple[Label, ControlCluster]]:
    """Yield every enabled label with the state it leads to."""
    if state.partition is not None:
        yield from _replication_steps(state, state.partition)
        yield from _operator_requests(state)
        if state.known_min_isr != min_isr(state.control, NAME):
            yield ("ReadConfig",), state._replace(known_min_isr=min_isr(state.control, NAME))
    for b in range(state.bounds.brokers):
        yield from _process_steps(state, b)
        yield from _session_steps(state, b)


def _replication_steps(state: ControlCluster, partition: PartitionRegistration) -> Iterator[tuple[Label, ControlCluster]]:
    """Find the steps of a leader and its followers: LeaderAppend, CatchUp, Acknowledge, Expand, Shrink.

    Expand and Shrink are proposed ISRs, decided by the controller in the same step.
    """
    leader = partition.leader
    if not is_running(state, leader):
        return
    log = state.logs[leader]
    if len(log) < state.bounds.max_log:
        yield ("LeaderAppend",), state._replace(logs=_put(state.logs, leader, (*log, partition.leader_epoch)))
    for f in partition.replicas:
        if f != leader and is_running(state, f) and state.logs[f] != log:
            yield ("CatchUp", f), state._replace(logs=_put(state.logs, f, log))
    # What every member of the ISR has in common with the leader.
    replicated = min((common_prefix(log, state.logs[b]) for b in (leader, *partition.isr)), key=len)
    # The leader decides by the min.insync.replicas that it has read, which may be an older one.
    enough = len(partition.isr) >= min(state.known_min_isr, len(partition.replicas))
    if enough and len(replicated) > len(state.committed):
        yield ("Acknowledge",), state._replace(committed=replicated)
    # A leader proposes a follower that has caught up and is active in its metadata cache (Partition#isReplicaIsrEligible).
    for f in partition.replicas:
        if f not in partition.isr and is_running(state, f) and is_active(state.control, f) and state.logs[f] == log:
            yield from _alter_partition_steps(state, ("Expand", f), {*partition.isr, f})
        if f in partition.isr and f != leader and state.logs[f] != log:
            yield from _alter_partition_steps(state, ("Shrink", f), {*partition.isr} - {f})


def _alter_partition_steps(state: ControlCluster, label: Label, isr: set[int]) -> Iterator[tuple[Label, ControlCluster]]:
    """Find the step in which the leader proposes an ISR and the controller accepts it; none if it refuses."""
    control, proposal = state.control, proposal_of(state, isr)
    epoch = control.brokers[proposal.broker_id].epoch
    request = AlterPartition(proposal.broker_id, epoch, (Proposal(state.tp, proposal),))
    # The leader learns the outcome from the response, which says nothing of configurations.
    yield from write_records_step(state, label, alter_partition(control, request).records, reads_config=False)


def proposal_of(state: ControlCluster, isr: set[int]) -> AlterPartitionRequest:
    """Build the leader's proposal of an ISR, in the epochs that the controller has."""
    control, partition = state.control, state.control.partitions[state.tp]
    # Where a raised min.insync.replicas comes with a new leader epoch (F11, repaired), a leader that has not read the one
    # has not read the other either.
    is_behind = not control.profile.raised_min_isr_keeps_epoch and state.known_min_isr < min_isr(control, NAME)
    leader_epoch = partition.leader_epoch - int(is_behind)
    return AlterPartitionRequest(partition.leader, leader_epoch, partition.partition_epoch, tuple(sorted(isr)))


def _operator_requests(state: ControlCluster) -> Iterator[tuple[Label, ControlCluster]]:
    """Find the requests of an operator: Reassign, Cancel, SetMinIsr, SetElr, ElectPreferred, ElectUnclean, Delete."""
    control, tp = state.control, state.tp
    # A target of None cancels the reassignment that is under way.
    for target in (*state.bounds.targets, None) if state.bounds.targets else ():
        records, _ = alter_partition_reassignments(control, (Reassignment(tp, target),))
        yield from write_records_step(state, ("Cancel",) if target is None else ("Reassign", target), records)
    for value in state.bounds.min_isrs:
        if value != min_isr(control, NAME):
            change = ConfigChange(ConfigResource(TOPIC, NAME), MIN_IN_SYNC_REPLICAS, str(value))
            records, _ = incremental_alter_configs(control, (change,))
            yield from write_records_step(state, ("SetMinIsr", value), records, reads_config=not state.bounds.late_config)
    # Only the other level is a change; as in the specification, the leader reads no configuration by it.
    for level in (0, 1) if state.bounds.toggles else ():
        if level != control.profile.elr:
            update = FeatureUpdate(ELR_VERSION, level, upgrade=level > 0)
            records, _ = update_features(control, update, control.features.metadata_version)
            yield from write_records_step(state, ("SetElr", level), records, reads_config=False)
    yield from write_records_step(state, ("ElectPreferred",), requests.elect_leader(control, tp, Election.PREFERRED).records)
    if state.bounds.unclean:
        yield from write_records_step(state, ("ElectUnclean",), requests.elect_leader(control, tp, Election.UNCLEAN).records)
    if state.bounds.deletes:
        yield from write_records_step(state, ("Delete",), delete_topic(control, NAME).records)


def _process_steps(state: ControlCluster, b: int) -> Iterator[tuple[Label, ControlCluster]]:
    """Find what begins or ends the process of broker b: Die, ShutDown, Register, Unregister."""
    registration, process = state.control.brokers.get(b), state.processes[b]
    if process in {UP, STOPPING}:
        # A process that dies keeps its log (1 in the label), or loses the disk with it (0).
        if state.stops < state.bounds.max_stops:
            dead = state._replace(processes=_put(state.processes, b, DEAD), stops=state.stops + 1)
            yield ("Die", b, 1), dead
            if state.logs[b]:
                yield ("Die", b, 0), dead._replace(logs=_put(state.logs, b, ()))
        # Controlled shutdown: a broker asks the controller before it stops, and asks again until it may. Only the first
        # request counts as a stop.
        if process == STOPPING or state.stops < state.bounds.max_stops:
            active, result = process_broker_heartbeat(
                _active_controller(state), _heartbeat(state, b)._replace(want_shut_down=True)
            )
            # Until the controller lets it stop, it goes on and asks again.
            process_after = STOPPED if result.response.should_shut_down else STOPPING
            if process_after != process and result.response.error == NONE:
                stops = state.stops + (process == UP)
                after = state._replace(processes=_put(state.processes, b, process_after), stops=stops)
                yield from reach_state(after, ("ShutDown", b), active.control)
        return
    # From here on its process is down. The third one only where the bounds allow it.
    directories = (MENDED, TAKEN_OUT, FAILED_STILL)[: 2 + state.bounds.stays_failed]
    for directory in directories if directory_state(state, b) == FAILED else (MENDED,):
        yield from _register_steps(state, b, directory)
    if state.bounds.unregisters and registration is not None:
        without, unregistered = unregister_broker(_active_controller(state), b)
        if unregistered.response == NONE:
            yield from reach_state(state, ("Unregister", b), without.control)


def _register_steps(state: ControlCluster, b: int, directory: int) -> Iterator[tuple[Label, ControlCluster]]:
    """Find Register: the process of b starts. It was stopped in order if every log directory names its broker epoch.

    `directory` is what a failed directory is by then. MENDED: it is repaired and empty. TAKEN_OUT: it is no longer the
    broker's, and the replica is created in the other one. FAILED_STILL: no stop counts as orderly, and no log is created.
    LogManager#readBrokerEpochFromCleanShutdownFiles, Partition#createLogInAssignedDirectoryId.
    """
    before = state.control.brokers.get(b)
    clean = stops_in_order(state, b, directory)
    # A new process is a new incarnation. The 0 below is no broker epoch: the controller gives it one.
    incarnation = 0 if before is None else before.incarnation + 1
    record = RegisterBrokerRecord(b, 0, incarnation, directories=directories_of(state, b, directory))
    active, result = register_broker(
        _active_controller(state), record, before.epoch if before is not None and clean else UNDEFINED
    )
    if result.response != NONE:
        return
    control = active.control
    # The broker reports where it has created the replica; the model takes that in the same step.
    if directory == TAKEN_OUT:
        assignment = DirectoryAssignment(b, control.brokers[b].epoch, f"{b}B", state.tp)
        control = replay_records(control, assign_replicas_to_dirs(control, assignment).records)
    started = state._replace(processes=_put(state.processes, b, UP))
    yield from reach_state(started, ("Register", b, directory), control)


def directories_of(state: ControlCluster, b: int, directory: int) -> tuple[str, ...]:
    """Return the log directories with which the process of b starts, a failed one being what `directory` says."""
    registration = state.control.brokers.get(b)
    # The controller has dropped a failed directory from the registration; a mended one is in log.dirs again. The second one
    # is there only if disks may fail.
    if registration is None or (directory_state(state, b) == FAILED and directory == MENDED):
        return (f"{b}A", f"{b}B")[: 1 + state.bounds.disks_fail]
    return registration.directories


def stops_in_order(state: ControlCluster, b: int, directory: int) -> bool:
    """Return whether b, as it registers, can prove that its process before stopped in order.

    The proof is the broker epoch in every log directory, so a failed one that is there (`directory`) has none.
    """
    is_proven = directory == TAKEN_OUT or directory_state(state, b) != FAILED
    return state.processes[b] == STOPPED and b in state.control.brokers and is_proven


def _session_steps(state: ControlCluster, b: int) -> Iterator[tuple[Label, ControlCluster]]:
    """Find what ends the session of b, Fence, and what its heartbeats do, Unfence and FailDirectory.

    Unfence has 1 in its label if the same heartbeat reports that a log directory has failed.
    """
    registration = state.control.brokers.get(b)
    if registration is None:
        return
    active = _active_controller(state)
    # Rule 3 of this part: any session may be over at any time.
    if not registration.fenced:
        session = (b, registration.epoch)
        over = active._replace(heartbeats=active.heartbeats._replace(expired=frozenset({session})))
        yield from reach_state(state, ("Fence", b), fence_stale_broker(over, session)[0].control)
    if state.processes[b] != UP:
        return
    may_fail = state.bounds.disks_fail and state.partition is not None and b in state.partition.replicas
    for fails in (0, 1) if may_fail and directory_state(state, b) == ONLINE else (0,):
        # A heartbeat of an unfenced broker without a failed directory changes nothing.
        if not registration.fenced and not fails:
            continue
        heartbeat = _heartbeat(state, b)._replace(offline=(f"{b}A",) if fails else ())
        after, result = process_broker_heartbeat(active, heartbeat)
        if result.response.error == NONE:
            # What was in the failed directory is lost to the broker.
            before = state._replace(logs=_put(state.logs, b, ())) if fails else state
            label = ("Unfence", b, fails) if registration.fenced else ("FailDirectory", b)
            yield from reach_state(before, label, after.control)


# ---------------------------------------------------------------------------------------------------------------------
# Between the steps


def _active_controller(state: ControlCluster) -> QuorumController:
    """Return the active controller as it is right after a heartbeat of every broker.

    Offsets of the metadata log do not count here: every broker has reported 0, and a controlled shutdown may end at 0, so at
    once as far as other brokers are concerned. No session is valid (any may be over: rule 3 of this part), so nobody is
    refused as a duplicate. `end`: the metadata log is taken to be empty, so a broker that registers gets epoch 0.
    """

    def heartbeat_state(broker: BrokerRegistration) -> BrokerHeartbeatState:
        """Return what the controller has of a registered broker's last heartbeat."""
        # A registration keeps the flag when the broker is fenced; what the controller knows of heartbeats does not.
        shuts_down = broker.in_controlled_shutdown and not broker.fenced
        return BrokerHeartbeatState(broker.fenced, metadata_offset=0, shutdown_offset=0 if shuts_down else UNDEFINED)

    brokers = ((b, heartbeat_state(broker)) for b, broker in state.control.brokers.items())
    return QuorumController(state.control, Heartbeats(FrozenMap(brokers)), end=UNDEFINED)


def _heartbeat(state: ControlCluster, b: int) -> BrokerHeartbeat:
    """Return a heartbeat of b that has read its own registration; an unregistered broker's has no epoch."""
    broker = state.control.brokers.get(b)
    return BrokerHeartbeat(b, UNDEFINED, 0) if broker is None else BrokerHeartbeat(b, broker.epoch, broker.offset)


def write_records_step(
    state: ControlCluster, label: Label, records: tuple[ControllerRecord, ...], *, reads_config: bool = True
) -> Iterator[tuple[Label, ControlCluster]]:
    """Yield the step that writes these records, if there are any; `reads_config` as in `reach_state`."""
    if records:
        yield from reach_state(state, label, replay_records(state.control, records), reads_config=reads_config)


def reach_state(
    state: ControlCluster, label: Label, control: ReplicationControl, *, reads_config: bool = True
) -> Iterator[tuple[Label, ControlCluster]]:
    """Yield the step with this label after which the controller's state is `control`, if it is within the bounds.

    A removed replica deletes its log. `reads_config`: the leader reads a change of the partition in the metadata log, so it
    has read min.insync.replicas, which stands before it.
    """
    before, after = state.partition, control.partitions.get(state.tp)
    state = state._replace(control=control)
    if after is not None and after.partition_epoch > state.bounds.max_partition_epoch:
        return
    # A process that is down deletes nothing: its log is there when it starts again.
    replicas = () if after is None else after.replicas
    logs = tuple(log if b in replicas or state.processes[b] in {STOPPED, DEAD} else () for b, log in enumerate(state.logs))
    committed = state.committed
    # RECOVERING tells clients that records may be lost, so what this leader lacks no longer counts as committed.
    if before is not None and after is not None and gives_up(before, after):
        committed = common_prefix(committed, state.logs[after.leader])
    # SetMinIsr is such a record itself, whether it changes the partition or not.
    if reads_config and (before != after or label[0] == "SetMinIsr"):
        state = state._replace(known_min_isr=min_isr(control, NAME))
    yield label, state._replace(logs=logs, committed=() if after is None else committed)


def gives_up(before: PartitionRegistration, after: PartitionRegistration) -> bool:
    """Return whether the change elects a leader that was neither in the ISR nor in the ELR, and reports it (RECOVERING)."""
    elected = after.leader not in {UNDEFINED, before.leader}
    return elected and after.leader not in {*before.isr, *before.elr} and after.recovery is RecoveryState.RECOVERING


def _put(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    """Return the values with another one at an index."""
    return (*values[:index], value, *values[index + 1 :])


# ---------------------------------------------------------------------------------------------------------------------
# Exploration


def search_control(start: ControlCluster) -> Search[ControlCluster]:
    """Return a search from a state. Equal views are equal states."""
    return Search(start, control_successors, control_view)


def explore_control(start: ControlCluster) -> Graph:
    """Return the whole labelled graph from a state."""
    return search_control(start).graph(control_view)
