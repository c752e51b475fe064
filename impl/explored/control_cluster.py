"""The controller with one partition and its brokers: the states of spec/Controller.tla, and what must hold in them.

Rules of this file

1. What the controller has is what impl.control has. Beside it stand processes, logs, and what was acknowledged.
2. Metadata reaches everybody at once, and a follower fetches all it lacks in one step: nothing is in flight. Only a changed
   min.insync.replicas may reach the leader late.
3. Equal views are equal states: what broker epochs and offsets there are is in no view, and nothing depends on it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from tidegauge.impl.cluster.transitions import mask
from tidegauge.impl.control.brokers_to_elrs import DELETED
from tidegauge.impl.control.features import Features
from tidegauge.impl.control.partition_registration import PartitionRegistration, directory_of, is_reassigning
from tidegauge.impl.control.replication_control import BrokerRegistration, ReplicationControl, is_active, min_isr
from tidegauge.impl.explored.invariants import Violation
from tidegauge.impl.explored.view import View
from tidegauge.impl.profiles import ELR, Profile
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.table import Table
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
    """How far a model goes. `partition_zero` is the number of replicas of partition 0, 0 where this is that partition.

    `stays_failed`: a broker may start while a directory of its is failed; not in spec/Controller.tla.
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
    """A state. `committed` is a ghost: what was ever below the high watermark, as far as no election gave it up."""

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
    """Return the initial state: all brokers run and are in the ISR, every log is empty."""
    everybody = range(bounds.brokers)
    elsewhere = tuple(range(ELSEWHERE, ELSEWHERE + bounds.partition_zero))
    directories = {b: (f"{b}A", f"{b}B")[: 1 + bounds.disks_fail] for b in everybody}
    brokers = [(b, BrokerRegistration(0, directories=directories.get(b, ()))) for b in (*everybody, *elsewhere)]
    placed = tuple(f"{b}A" for b in bounds.replicas)
    partition = PartitionRegistration(bounds.replicas, bounds.replicas, bounds.replicas[0], directories=placed)
    features = Features(elr=int(profile.elr))
    control = ReplicationControl(
        Table(brokers), profile=profile, features=features, min_isr=bounds.min_isr, unclean=bounds.unclean
    )
    state = ControlCluster(bounds, control, (UP,) * bounds.brokers, ((),) * bounds.brokers, bounds.min_isr)
    partitions = [(state.tp, partition)]
    if elsewhere:
        partitions.insert(0, (state.tp._replace(partition=0), PartitionRegistration(elsewhere, elsewhere, ELSEWHERE)))
    return state._replace(control=control._replace(partitions=Table(partitions)))


# ---------------------------------------------------------------------------------------------------------------------
# Look-ups


def directory_state(state: ControlCluster, b: int) -> int:
    """Return where the replica of b is: ONLINE, FAILED or MOVED."""
    partition, known = state.partition, state.control.brokers.get(b)
    if partition is None or known is None or b not in partition.replicas:
        return ONLINE
    named = directory_of(partition, b)
    if named == f"{b}B":
        return MOVED
    return ONLINE if named in known.directories else FAILED


def is_running(state: ControlCluster, b: int) -> bool:
    """Return whether b can read and write its replica."""
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
    """(partition, brokers, logs, committed, stops, min.insync.replicas, as brokers know it, (index of eligible leaders,
    brokers whose index names a deleted topic, whether the feature is on)).
    """
    brokers = tuple(_broker_view(state, b) for b in range(state.bounds.brokers))
    index = state.control.brokers_to_elrs
    listed = tuple(index.get((b, NAME)) or () for b in range(state.bounds.brokers))
    stale = mask(b for b in range(state.bounds.brokers) if (b, DELETED) in index)
    kept = listed, stale, int(state.control.profile.elr)
    config = (min_isr(state.control, NAME), state.known_min_isr) if state.partition is not None else (0, 0)
    return _partition_view(state.partition), brokers, state.logs, state.committed, state.stops, *config, kept


def _partition_view(partition: PartitionRegistration | None) -> View:
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
    """Return its process; 0 not registered, 1 fenced, 2 unfenced; whether it shuts down; where its replica is."""
    known = state.control.brokers.get(b)
    registered = 0 if known is None else 2 - known.fenced
    return state.processes[b], registered, int(known is not None and known.in_controlled_shutdown), directory_state(state, b)


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
    """Check that, without a leader, some replica is waited for."""
    partition = state.partition
    if partition is None or partition.leader != UNDEFINED or partition.isr or partition.elr or partition.last_known_elr:
        return None
    return Violation("SomebodyMayLead", (), partition.replicas, ())


def elr_is_apart(state: ControlCluster) -> Violation | None:
    """Check that no replica is both in sync and eligible, and that every eligible broker is a replica."""
    partition = state.partition
    if partition is None or set(partition.elr) <= set(partition.replicas) - set(partition.isr):
        return None
    return Violation("ElrIsApart", partition.elr, partition.replicas, partition.isr)


def completes_in_sync(state: ControlCluster) -> Violation | None:
    """Check that a reassignment whose new replicas are all in sync is complete."""
    partition = state.partition
    if partition is None or not is_reassigning(partition):
        return None
    wanted = tuple(b for b in partition.replicas if b not in partition.removing)
    if not wanted or not set(wanted) <= set(partition.isr):
        return None
    return Violation("CompletesInSync", wanted, (), (*partition.adding, *partition.removing))


def adds_nobody_it_removes(state: ControlCluster) -> Violation | None:
    """Check that no replica is both added and removed: that would never be complete."""
    partition = state.partition
    if partition is None or not set(partition.adding) & set(partition.removing):
        return None
    return Violation("AddsNobodyItRemoves", (), partition.adding, partition.removing)


def brokers_may_register(state: ControlCluster) -> Violation | None:
    """Check that the controller does not fail on what its index remembers of a deleted topic."""
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
    """Return the first of the named invariants that does not hold."""
    return next((violation for name in names if (violation := CONTROL_INVARIANTS[name](state)) is not None), None)
