"""PartitionChangeBuilder: a requested change of a partition as a record, elections and reassignments included.

`partition` (or `before`) is the registration as it is, `target` the one that the change is to lead to; the record has the
fields in which they differ. A reassignment is under way while the registration has replicas that it is *adding* or
*removing*. ELR are the eligible leader replicas (KIP-966): members that left the ISR while it was below min.insync.replicas,
so they hold everything committed. `last_known_elr` has the last known leader. Names such as F4 are findings of
docs/findings.md: a switch of the profile repairs each.
"""

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
    """Return the target with its reassignment completed, if enough of the new replicas are in sync; else unchanged.

    PartitionReassignmentReplicas#maybeCompleteReassignment. Enough are those that are added; since KAFKA-15665 (3.8) all
    that remain, since KAFKA-19975 (4.3) all that remain where the reassignment leaves fewer replicas than there were.
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
    # Somebody who is waited for is not in sync.
    if not needed <= set(isr):
        return target
    return target._replace(replicas=replicas, isr=isr, adding=(), removing=())


class Revert(NamedTuple):
    """The assignment that a cancelled reassignment goes back to. `unclean`: no original replica is in sync."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    unclean: bool


def revert(partition: PartitionRegistration) -> Revert:
    """Return what cancelling the reassignment of a partition goes back to: its replicas without those that were added.

    If none of them is in sync, the first one becomes the ISR all the same. The election that follows then counts as clean,
    so nothing is marked RECOVERING.
    """
    replicas, isr = _without(partition.replicas, partition.adding), _without(partition.isr, partition.adding)
    return Revert(replicas, isr or replicas[:1], unclean=not isr)


def _without(brokers: tuple[int, ...], removed: tuple[int, ...]) -> tuple[int, ...]:
    """Return the brokers that are not in `removed`, in their order."""
    return tuple(b for b in brokers if b not in removed)


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
    """Elect a leader of `target`, which has the ISR and ELR after the change. PartitionChangeBuilder#electLeader.

    The order is: (for PREFERRED the first replica,) the present leader, the other members of the ISR, or of the ELR if the
    ISR is empty, then the last resorts. `acceptable` says whether a broker may lead now. The leader is UNDEFINED if there is
    none.
    """
    # An ELR left over from when the feature was on still elects; a last known leader does not.
    eligible = target.isr or target.elr
    first = target.replicas[:1] if request.election is Election.PREFERRED else ()
    # The present leader before other replicas: an election that changes nothing costs no leader epoch.
    for broker in (*first, target.leader, *target.replicas):
        if broker in eligible and acceptable(broker):
            return Elected(broker)
    # Kafka elects the last known leader only where there is exactly one (#canElectLastKnownLeader).
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
    """Build the fields of the record that makes a requested change; None if nothing changes. PartitionChangeBuilder#build.

    `acceptable` says whether a broker may lead now. `min_isr` is min.insync.replicas, at most the number of replicas.
    `default_directory` gives the directory of a new replica; it is None while metadata.version has no directories.
    """
    target = complete_reassignment(profile, _requested_target(partition, request))
    target = _with_elr(profile, partition, target, request, min_isr)
    elected = elect(profile, target, request, acceptable)
    changes_leader = elected.leader != partition.leader
    unclean = changes_leader and elected.unclean
    # Nobody else is known to hold what this leader holds, so it starts with an ISR of its own.
    if changes_leader and (elected.unclean or elected.leader in target.elr):
        target = target._replace(isr=(elected.leader,), elr=_without_broker(target.elr, elected.leader))
    # Finding F12, repaired: an election that brings in the last replica completes the reassignment.
    if not profile.completes_before_election:
        target = _without_ghosts(profile, partition, complete_reassignment(profile, target))
    # Without ELR the last member stays in the ISR, as the only replica that is known to hold everything committed.
    if not target.isr and not profile.elr:
        target = target._replace(isr=partition.isr)
    # The ELR goes with an unclean election, and (F5, repaired) once the ISR has min.insync.replicas. Without the feature it
    # always goes, but (F13, repaired) while there is no leader and nobody else is waited for.
    has_min_isr = len(target.isr) >= min_isr and not profile.min_isr_change_clears_elr
    waits_for_elr = not (profile.forgets_last_member or target.isr) and elected.leader == UNDEFINED
    if unclean or has_min_isr or not (profile.elr or waits_for_elr):
        target = target._replace(elr=())
    leader = elected.leader if changes_leader else None
    # Removing a replica writes the leader again: a new leader epoch fences the removed one.
    if leader is None and not set(partition.replicas) <= set(target.replicas):
        leader = partition.leader
    # An unclean election writes the ISR even where it is unchanged.
    isr = target.isr if unclean else _changed_value(partition.isr, target.isr)
    if leader is None and isr is not None and profile.epoch_bump_on_shrink and not set(partition.isr) <= set(isr):
        # Below MV 3.6 a leader may count a removed member until it reads a new leader epoch (KAFKA-15021).
        leader = partition.leader
    fields = ChangedFields(
        isr=isr,
        leader=leader,
        recovery=_changed_recovery(partition, target, unclean=unclean),
        elr=_changed_value(partition.elr, target.elr),
        last_known_elr=_changed_last_known(profile, partition, target, leader, isr),
        replicas=_changed_value(partition.replicas, target.replicas),
        adding=_changed_value(partition.adding, target.adding),
        removing=_changed_value(partition.removing, target.removing),
        directories=_changed_directories(partition, target, request, default_directory),
    )
    return None if fields == NO_CHANGE else fields


def _requested_target(partition: PartitionRegistration, request: ChangeRequest) -> PartitionRegistration:
    """Return the registration with the requested values set, as the setters of PartitionChangeBuilder do."""
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
    """Return the target with the ELR that it has after the change. PartitionChangeBuilder#maybePopulateTargetElr.

    While the ISR is below `min_isr`, whoever was in the ISR or ELR before and is not in the ISR now is eligible. A replica
    that is being added may be: it can only have come in by the ISR.
    """
    # Without the feature nobody is added to an ELR that is left over.
    members = set(target.elr)
    if profile.elr:
        members = {*before.elr, *before.isr} - set(target.isr) if len(target.isr) < min_isr else set()
    # Sorted is the order of a Java hash set of small numbers.
    target = target._replace(elr=tuple(sorted(members - request.unclean_shutdown)))
    return _without_ghosts(profile, before, target)


def _without_ghosts(profile: Profile, before: PartitionRegistration, target: PartitionRegistration) -> PartitionRegistration:
    """Return the target without *ghosts* in its ELR: replicas that the change removes, which have no log any more.

    This is the repair of finding F4: Kafka (`elr_keeps_removed`) keeps them eligible.
    """
    ghosts = set() if profile.elr_keeps_removed else {*before.elr, *before.isr, *before.last_known_elr}
    ghosts -= set(target.replicas)
    if not ghosts:
        return target
    elr, last = (tuple(b for b in members if b not in ghosts) for members in (target.elr, target.last_known_elr))
    return target._replace(elr=elr, last_known_elr=last)


def _changed_recovery(
    partition: PartitionRegistration, target: PartitionRegistration, *, unclean: bool
) -> RecoveryState | None:
    """Return the recovery state that the record writes, None if it does not change.

    An unclean election begins a recovery, unless the request itself sets the state.
    """
    if target.recovery is partition.recovery and unclean and partition.recovery is RecoveryState.RECOVERED:
        return RecoveryState.RECOVERING
    return _changed_value(partition.recovery, target.recovery)


def _changed_last_known(
    profile: Profile,
    partition: PartitionRegistration,
    target: PartitionRegistration,
    leader: int | None,
    isr: tuple[int, ...] | None,
) -> tuple[int, ...] | None:
    """Return the last known leader that the record writes, None if it does not change. #maybeUpdateLastKnownLeader.

    It is set when the leader goes, and cleared by a new one. `leader` and `isr` are what the record writes of these, None if
    nothing.
    """
    last_known = target.last_known_elr
    # Up to 4.1.0 it is set when the ISR becomes empty, also where there was no leader: that stores -1.
    if profile.elr and profile.notes_no_leader:
        leads = value_or(leader, partition.leader) != UNDEFINED
        if isr == () and last_known != (partition.leader,):
            last_known = (partition.leader,)
        elif leads:
            last_known = ()
    # Later it goes by the leader alone: it stays the same while there is none.
    elif profile.elr and leader is not None:
        last_known = () if leader != UNDEFINED else last_known or (partition.leader,)
    # Finding F13, repaired: without a leader, the last member to go is remembered once no other replica is waited for.
    if not profile.forgets_last_member:
        last_known = _without_broker(last_known, UNDEFINED)
        if not (last_known or target.isr or target.elr) and value_or(leader, partition.leader) == UNDEFINED:
            last_known = tuple(b for b in target.replicas if b in partition.isr or b in partition.elr)
    return _changed_value(partition.last_known_elr, last_known)


def _changed_directories(
    partition: PartitionRegistration,
    target: PartitionRegistration,
    request: ChangeRequest,
    default_directory: DefaultDirectory | None,
) -> tuple[str, ...] | None:
    """Return the directories that the record writes, one per replica of the target; None if they do not change.

    PartitionChangeBuilder#setAssignmentChanges: a replica keeps its directory, or gets the requested one; a new replica gets
    the default.
    """
    if default_directory is None or (target.replicas == partition.replicas and request.directory is None):
        return None
    directory_by_broker = {b: directory_of(partition, b) for b in partition.replicas}
    if request.directory is not None:
        broker, directory = request.directory
        directory_by_broker[broker] = directory
    named = tuple(directory_by_broker[b] if b in directory_by_broker else default_directory(b) for b in target.replicas)
    return _changed_value(tuple(directory_of(partition, b) for b in partition.replicas), named)


def _changed_value(before: T, after: T) -> T | None:
    """Return `after`, None if it is equal to `before`: a record has only the fields that change."""
    return None if after == before else after


def _without_broker(brokers: tuple[int, ...], broker: int) -> tuple[int, ...]:
    """Return the brokers without one of them."""
    return tuple(b for b in brokers if b != broker)
