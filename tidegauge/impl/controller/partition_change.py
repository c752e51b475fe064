"""PartitionChangeBuilder: a requested change of a partition as a record, elections and reassignments included."""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, TypeVar

from tidegauge.impl.controller.partition_registration import (
    NO_CHANGE,
    ChangedFields,
    PartitionRegistration,
    RecoveryState,
    directory_of,
    value_or,
)
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import UNDEFINED

# A reassignment under way: when it is complete, and what taking it back leaves.
#
# Source: org.apache.kafka.controller.PartitionReassignmentReplicas, PartitionReassignmentRevert.


def complete_reassignment(profile: Profile, target: PartitionRegistration) -> PartitionRegistration:
    """Complete the reassignment once enough new replicas are in sync. #maybeCompleteReassignment.

    Enough is those that are added; since KAFKA-15665 (3.8) all of them, since KAFKA-19975 (4.3) all where fewer stay.
    """
    if not target.adding and not target.removing:
        return target
    isr, replicas = _without(target.isr, target.removing), _without(target.replicas, target.removing)
    # A partition must keep a replica, and one in sync.
    if not replicas or not isr:
        return target
    needed = set(target.adding if profile.completes_by_adding else replicas)
    if profile.fewer_wait_for_all and len(target.adding) < len(target.removing):
        needed |= set(replicas)
    if not needed <= set(isr):
        return target
    return target._replace(replicas=replicas, isr=isr, adding=(), removing=())


class Revert(NamedTuple):
    """The assignment that a cancelled reassignment goes back to. `unclean`: no original replica is in sync."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    unclean: bool


def revert(partition: PartitionRegistration) -> Revert:
    """Return the replicas without those that were added; if none of them is in sync, the first one has to do.

    It is in the target's ISR then, so the election that follows counts as clean: nothing is marked RECOVERING.
    """
    replicas, isr = _without(partition.replicas, partition.adding), _without(partition.isr, partition.adding)
    return Revert(replicas, isr or replicas[:1], unclean=not isr)


def _without(brokers: tuple[int, ...], gone: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(b for b in brokers if b not in gone)


# PartitionChangeBuilder: what is asked of a partition, as the record that changes its registration, elections included.
#
# Rules of this part
#
# 1. An election goes through its candidates in order: the leader of now, the ISR, the ELR, the last known leader, anybody.
#    Only the last two lose data: they empty the ELR and mark the partition RECOVERING.
# 2. Without ELR the ISR never becomes empty, and nobody stays eligible (F13: nor where somebody is waited for). With it,
#    members that leave while the ISR is below min.insync.replicas become eligible leaders: they hold everything committed
#    (KIP-966).
# 3. A record has what changes and nothing else; it is made from the registration of now, whatever stands before it in the
#    same batch.
# 4. Source: org.apache.kafka.controller.PartitionChangeBuilder.


T = TypeVar("T")

Acceptable = Callable[[int], bool]
"""Whether a broker may lead: registered, not fenced, not shutting down, its log directory online."""

DefaultDirectory = Callable[[int], str]
"""Where a broker puts a replica that nobody has placed. ClusterDescriber#defaultDir."""


class Election(Enum):
    """PartitionChangeBuilder.Election."""

    ONLINE = "ONLINE"  # keep the leader if it may lead, else find one; no leader if there is none
    PREFERRED = "PREFERRED"  # move to the first replica if it may lead
    UNCLEAN = "UNCLEAN"  # as ONLINE, and somebody outside the ISR if there is nobody in it


class ChangeRequest(NamedTuple):
    """A requested change of a partition; None changes nothing. `unclean_shutdown`: brokers that lost the unflushed tail."""

    isr: tuple[int, ...] | None = None
    election: Election = Election.ONLINE
    recovery: RecoveryState | None = None
    unclean_shutdown: frozenset[int] = frozenset()
    replicas: tuple[int, ...] | None = None
    elects_last_known: bool = True  # PartitionChangeBuilder#setUseLastKnownLeaderInBalancedRecovery
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    directory: tuple[int, str] | None = None  # this replica lies there now


class Elected(NamedTuple):
    """The elected leader, and whether data may be lost."""

    leader: int
    unclean: bool = False


def elect(profile: Profile, target: PartitionRegistration, request: ChangeRequest, acceptable: Acceptable) -> Elected:
    """Elect a leader, UNDEFINED for none. PartitionChangeBuilder#electLeader.

    `target` has the ISR and ELR after the change.
    """
    # An ELR left over from when the feature was on still elects; a last known leader does not.
    eligible = target.isr or target.elr
    first = target.replicas[:1] if request.election is Election.PREFERRED else ()
    # The present leader before other replicas: an election that changes nothing costs no leader epoch.
    for broker in (*first, target.leader, *target.replicas):
        if broker in eligible and acceptable(broker):
            return Elected(broker)
    if profile.elr and request.elects_last_known and not eligible and len(target.last_known_elr) == 1:
        last = target.last_known_elr[0]
        # Its log may lack records that were acknowledged after it went, so the election counts as unclean.
        if acceptable(last) or profile.elects_fenced_last_known:
            return Elected(last, unclean=True)
    if request.election is Election.UNCLEAN:
        anybody = next((b for b in target.replicas if acceptable(b)), UNDEFINED)
        return Elected(anybody, unclean=anybody != UNDEFINED)
    return Elected(UNDEFINED)


def build_change(
    profile: Profile,
    partition: PartitionRegistration,
    request: ChangeRequest,
    acceptable: Acceptable,
    min_isr: int,
    default_directory: DefaultDirectory | None = None,
) -> ChangedFields | None:
    """Build the fields of the change record; None when nothing changes. PartitionChangeBuilder#build.

    `min_isr` is the effective one. `default_directory` is None while metadata.version knows no directories.
    """
    target = _with_elr(profile, partition, complete_reassignment(profile, _target(partition, request)), request, min_isr)
    elected = elect(profile, target, request, acceptable)
    changes_leader = elected.leader != partition.leader
    unclean = changes_leader and elected.unclean
    # Nobody else is known to hold what this leader holds, so it starts with an ISR of its own.
    if changes_leader and (elected.unclean or elected.leader in target.elr):
        target = target._replace(isr=(elected.leader,), elr=_without_broker(target.elr, elected.leader))
    if not profile.completes_before_election:
        target = _without_ghosts(profile, partition, complete_reassignment(profile, target))
    # Without ELR the last member stays in the ISR, as the only replica that is known to hold everything committed.
    if not target.isr and not profile.elr:
        target = target._replace(isr=partition.isr)
    commits = len(target.isr) >= min_isr and not profile.min_isr_change_clears_elr
    waits = not (profile.forgets_last_member or target.isr) and elected.leader == UNDEFINED
    if unclean or commits or not (profile.elr or waits):
        target = target._replace(elr=())
    leader = elected.leader if changes_leader else None
    # Removing a replica writes the leader again: a new leader epoch fences the removed one.
    if leader is None and not set(partition.replicas) <= set(target.replicas):
        leader = partition.leader
    # An unclean election writes the ISR even where it is unchanged.
    isr = target.isr if unclean else _written(partition.isr, target.isr)
    if leader is None and isr is not None and profile.epoch_bump_on_shrink and not set(partition.isr) <= set(isr):
        # Below MV 3.6 a leader may count a removed member until it reads a new leader epoch (KAFKA-15021).
        leader = partition.leader
    fields = ChangedFields(
        isr=isr,
        leader=leader,
        recovery=_recovery_written(partition, target, unclean=unclean),
        elr=_written(partition.elr, target.elr),
        last_known_elr=_last_known_written(profile, partition, target, leader, isr),
        replicas=_written(partition.replicas, target.replicas),
        adding=_written(partition.adding, target.adding),
        removing=_written(partition.removing, target.removing),
        directories=_directories_written(partition, target, request, default_directory),
    )
    return None if fields == NO_CHANGE else fields


def _target(partition: PartitionRegistration, request: ChangeRequest) -> PartitionRegistration:
    """Apply the requested values, as the setters of PartitionChangeBuilder do."""
    return partition._replace(
        isr=value_or(request.isr, partition.isr),
        recovery=value_or(request.recovery, partition.recovery),
        replicas=value_or(request.replicas, partition.replicas),
        adding=value_or(request.adding, partition.adding),
        removing=value_or(request.removing, partition.removing),
    )


def _with_elr(
    profile: Profile, before: PartitionRegistration, target: PartitionRegistration, request: ChangeRequest, min_isr: int
) -> PartitionRegistration:
    """Compute the ELR after the change. PartitionChangeBuilder#maybePopulateTargetElr.

    A removed replica deletes its log; Kafka keeps it eligible (finding F4). A replica that is being added may be eligible:
    it can only have come in by the ISR.
    """
    members = set(target.elr)
    if profile.elr:
        members = {*before.elr, *before.isr} - set(target.isr) if len(target.isr) < min_isr else set()
    # Sorted is the order of a Java hash set of small numbers.
    target = target._replace(elr=tuple(sorted(members - request.unclean_shutdown)))
    return _without_ghosts(profile, before, target)


def _without_ghosts(profile: Profile, before: PartitionRegistration, target: PartitionRegistration) -> PartitionRegistration:
    """Drop removed replicas from the ELR: they have no log any more (repair of finding F4)."""
    ghosts = set() if profile.elr_keeps_removed else {*before.elr, *before.isr, *before.last_known_elr}
    ghosts -= set(target.replicas)
    if not ghosts:
        return target
    elr, last = (tuple(b for b in members if b not in ghosts) for members in (target.elr, target.last_known_elr))
    return target._replace(elr=elr, last_known_elr=last)


def _recovery_written(
    partition: PartitionRegistration, target: PartitionRegistration, *, unclean: bool
) -> RecoveryState | None:
    """Return the recovery state of the record, None where it does not change: an unclean election begins a recovery."""
    if target.recovery is partition.recovery and unclean and partition.recovery is RecoveryState.RECOVERED:
        return RecoveryState.RECOVERING
    return _written(partition.recovery, target.recovery)


def _last_known_written(
    profile: Profile,
    partition: PartitionRegistration,
    target: PartitionRegistration,
    leader: int | None,
    isr: tuple[int, ...] | None,
) -> tuple[int, ...] | None:
    """Return the last known leader: set when the leader goes, cleared by a new one. #maybeUpdateLastKnownLeader."""
    last_known = target.last_known_elr
    # Up to 4.1.0 it is set when the ISR becomes empty, also where there was no leader: that stores -1.
    if profile.elr and profile.notes_no_leader:
        leads = value_or(leader, partition.leader) != UNDEFINED
        if isr == () and last_known != (partition.leader,):
            last_known = (partition.leader,)
        elif leads:
            last_known = ()
    elif profile.elr and leader is not None:
        last_known = () if leader != UNDEFINED else last_known or (partition.leader,)
    # Finding F13, repaired: without a leader, the last member to go is remembered once no other replica is waited for.
    if not profile.forgets_last_member:
        last_known = _without_broker(last_known, UNDEFINED)
        if not (last_known or target.isr or target.elr) and value_or(leader, partition.leader) == UNDEFINED:
            last_known = tuple(b for b in target.replicas if b in partition.isr or b in partition.elr)
    return _written(partition.last_known_elr, last_known)


def _directories_written(
    partition: PartitionRegistration,
    target: PartitionRegistration,
    request: ChangeRequest,
    default_directory: DefaultDirectory | None,
) -> tuple[str, ...] | None:
    """Keep the replicas' directories, give new ones the default. PartitionChangeBuilder#setAssignmentChanges."""
    if default_directory is None or (target.replicas == partition.replicas and request.directory is None):
        return None
    directory_by_broker = {b: directory_of(partition, b) for b in partition.replicas}
    if request.directory is not None:
        broker, directory = request.directory
        directory_by_broker[broker] = directory
    named = tuple(directory_by_broker[b] if b in directory_by_broker else default_directory(b) for b in target.replicas)
    return _written(tuple(directory_of(partition, b) for b in partition.replicas), named)


def _written(before: T, after: T) -> T | None:
    return None if after == before else after


def _without_broker(brokers: tuple[int, ...], broker: int) -> tuple[int, ...]:
    return tuple(b for b in brokers if b != broker)
