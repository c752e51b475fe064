"""PartitionChangeBuilder: what a change of one partition's registration becomes, elections included.

Rules of this file

1. Every change adds one to the partition epoch. The leader epoch grows if and only if the change says a leader: a new one,
   none, or the same on purpose (PartitionRegistration#merge).
2. An election goes through its candidates in order: the leader of now, the ISR, the ELR, the last known leader, anybody.
   Only the last two lose data, and mark the partition RECOVERING.
3. Without ELR the ISR never becomes empty. With it, members that leave while the ISR is below min.insync.replicas become
   eligible leaders: they hold everything committed (KIP-966).
4. Source: org.apache.kafka.controller.PartitionChangeBuilder, org.apache.kafka.metadata.PartitionRegistration.
"""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import UNDEFINED

Acceptable = Callable[[int], bool]
"""Whether a broker may lead: registered, not fenced, not shutting down, its log directory online."""


class RecoveryState(Enum):
    """LeaderRecoveryState: RECOVERING after an unclean election, until the leader says otherwise."""

    RECOVERED = 0
    RECOVERING = 1


class PartitionRegistration(NamedTuple):
    """What the controller has of one partition. `replicas` in order of preference."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    recovery: RecoveryState = RecoveryState.RECOVERED
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


class Election(Enum):
    """PartitionChangeBuilder.Election."""

    ONLINE = "ONLINE"  # keep the leader if it may lead, else find one; no leader if there is none
    PREFERRED = "PREFERRED"  # move to the first replica if it may lead
    UNCLEAN = "UNCLEAN"  # as ONLINE, and somebody outside the ISR if there is nobody in it


class ChangeRequest(NamedTuple):
    """What is asked of a partition. `isr` None leaves it. `unclean_shutdown`: brokers that lost what was not flushed."""

    isr: tuple[int, ...] | None = None
    election: Election = Election.ONLINE
    recovery: RecoveryState | None = None
    unclean_shutdown: frozenset[int] = frozenset()
    replicas: tuple[int, ...] | None = None
    elects_last_known: bool = True  # PartitionChangeBuilder#setUseLastKnownLeaderInBalancedRecovery


class Elected(NamedTuple):
    """Who is elected, and whether data may be lost."""

    leader: int
    unclean: bool = False


def elect_leader(
    target: PartitionRegistration, election: Election, acceptable: Acceptable, *, elr: bool, last_known: bool = True
) -> Elected:
    """PartitionChangeBuilder#electLeader; UNDEFINED for none. `target` has the ISR and ELR that the change aims at."""
    from_elr = target.elr if elr and not target.isr else ()
    first = target.replicas[:1] if election is Election.PREFERRED else ()
    for broker in (*first, target.leader, *target.replicas):
        if broker in {*target.isr, *from_elr} and acceptable(broker):
            return Elected(broker)
    if elr and last_known and not target.isr and not target.elr and len(target.last_known_elr) == 1:
        last = target.last_known_elr[0]
        if acceptable(last):  # KAFKA-19522
            return Elected(last, unclean=True)
    if election is Election.UNCLEAN:
        anybody = next((b for b in target.replicas if acceptable(b)), UNDEFINED)
        return Elected(anybody, unclean=anybody != UNDEFINED)
    return Elected(UNDEFINED)


def build(
    profile: Profile, partition: PartitionRegistration, request: ChangeRequest, acceptable: Acceptable, min_isr: int
) -> PartitionRegistration:
    """The registration after the request; the same value when nothing changes. PartitionChangeBuilder#build."""
    replicas = partition.replicas if request.replicas is None else request.replicas
    wanted = partition.isr if request.isr is None else request.isr
    recovery = partition.recovery if request.recovery is None else request.recovery
    target = partition._replace(replicas=replicas, isr=tuple(b for b in wanted if b in replicas), recovery=recovery)
    target = _with_elr(profile, partition, target, request.unclean_shutdown, min_isr)
    last_known = request.elects_last_known
    elected = elect_leader(target, request.election, acceptable, elr=profile.elr, last_known=last_known)
    after = target._replace(leader=elected.leader)
    if elected.unclean:
        after = after._replace(isr=(elected.leader,), recovery=RecoveryState.RECOVERING)
    elif elected.leader != UNDEFINED and elected.leader not in target.isr:
        after = after._replace(isr=(elected.leader,), elr=tuple(b for b in target.elr if b != elected.leader))
    elif not target.isr and not profile.elr:
        after = after._replace(isr=partition.isr)
    if profile.elr:
        after = after._replace(last_known_elr=_last_known(partition, after))
    return _merged(partition, after, bumps=_bumps_on_purpose(profile, partition, after))


def _last_known(before: PartitionRegistration, after: PartitionRegistration) -> tuple[int, ...]:
    """Remembered when there is no leader any more, forgotten when there is one. #maybeUpdateLastKnownLeader (4.1.1)."""
    if after.leader != UNDEFINED:
        return ()
    return before.last_known_elr or ((before.leader,) if before.leader != UNDEFINED else ())


def _bumps_on_purpose(profile: Profile, before: PartitionRegistration, after: PartitionRegistration) -> bool:
    """A replica is taken away, or the ISR shrank before MV 3.6 (KAFKA-15021)."""
    if not set(before.replicas) <= set(after.replicas):
        return True
    return profile.epoch_bump_on_shrink and not set(before.isr) <= set(after.isr)


def _merged(before: PartitionRegistration, after: PartitionRegistration, *, bumps: bool) -> PartitionRegistration:
    """PartitionRegistration#merge."""
    if after == before and not bumps:
        return before
    grows = bumps or after.leader != before.leader
    return after._replace(leader_epoch=before.leader_epoch + grows, partition_epoch=before.partition_epoch + 1)


def _with_elr(
    profile: Profile,
    before: PartitionRegistration,
    target: PartitionRegistration,
    unclean_shutdown: frozenset[int],
    min_isr: int,
) -> PartitionRegistration:
    """PartitionChangeBuilder#maybePopulateTargetElr."""
    if not profile.elr or len(target.isr) >= min(min_isr, len(target.replicas)):
        return target._replace(elr=(), last_known_elr=())
    members = {*before.elr, *before.isr} & set(target.replicas)
    return target._replace(elr=tuple(sorted(members - set(target.isr) - unclean_shutdown)))


def clear_elr(partition: PartitionRegistration) -> PartitionRegistration:
    """min.insync.replicas changed: ELRs are forgotten, without a change record. ClearElrRecord (4.0)."""
    if not partition.elr and not partition.last_known_elr:
        return partition
    return partition._replace(elr=(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1)
