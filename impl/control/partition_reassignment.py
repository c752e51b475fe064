"""A reassignment under way: when it is complete, and what taking it back leaves.

Source: org.apache.kafka.controller.PartitionReassignmentReplicas, PartitionReassignmentRevert.
"""

from typing import NamedTuple

from tidegauge.impl.control.partition_registration import PartitionRegistration
from tidegauge.impl.profiles import Profile


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
    """What a cancelled reassignment goes back to. `unclean`: nobody in sync is among the original replicas."""

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
