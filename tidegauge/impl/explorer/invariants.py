"""The invariants: what must hold in every state.

A record is *committed* if it was ever below the high watermark of a leader: `cluster.committed` has the leader epochs of
these records by offset. `cluster.acked` has the (offset, epoch) of each record that was acknowledged with acks=all,
`cluster.deleted` is the offset below which records may have been deleted. A *candidate* is a broker that the controller may
elect. `record_epochs` is a broker's log: the leader epoch of each record. A Violation has the name of the invariant, the
brokers concerned, what was expected and what was seen.

Rules of this file

1. An invariant takes a cluster and returns None, or a Violation that names it and the brokers concerned. Text is made in
   impl.explorer.describe.
2. A record that was deleted is UNDEFINED in its log (impl.cluster.transitions). No more is promised of a record that was
   deleted somewhere: a follower that has another one there finds no epoch to compare (spec/LogStartMovement.tla).
3. Of a broker an invariant reads what is in `read_of`, and nothing else.
4. Nothing here asks that a follower's high watermark never falls, or that a new leader's is not lower than the old one's:
   both happen in Kafka.
"""

from collections.abc import Callable, Hashable, Mapping
from itertools import pairwise
from types import MappingProxyType

from tidegauge.impl.cluster.broker import Broker
from tidegauge.impl.cluster.cluster import Cluster, record_epochs
from tidegauge.impl.explorer.search import Violation
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage.epoch_cache import implied_cache

Invariant = Callable[[Cluster], Violation | None]


def read_of(broker: Broker) -> tuple[Hashable, ...]:
    """Return what invariants read of a broker: two brokers in which this is equal break the same invariants."""
    partition = broker.partition
    return broker.up, partition.is_leader, partition.leader_epoch, partition.state.maximal_isr, partition.log


def _current_leaders(cluster: Cluster) -> list[int]:
    """Return the brokers that lead in the controller's leader epoch; a deposed leader may still lead an older one."""
    epoch = cluster.controller.leader_epoch
    return [b for b, broker in enumerate(cluster.brokers) if broker.leads and broker.partition.leader_epoch == epoch]


def is_prefix(prefix: tuple[int, ...], log: tuple[int, ...], deleted: int) -> bool:
    """Return whether `log` begins with `prefix`; both are record epochs by offset.

    Below `deleted` records are not compared, nor where one of them has deleted its record (UNDEFINED).
    """
    if prefix == log[: len(prefix)]:
        return True
    pairs = zip(prefix[deleted:], log[deleted:], strict=False)
    return len(prefix) <= len(log) and all(a == b or UNDEFINED in (a, b) for a, b in pairs)


def _missing_committed(cluster: Cluster, b: int) -> tuple[int, ...] | None:
    """Return the log (record epochs) of broker b if it lacks a committed record, else None."""
    log = record_epochs(cluster.brokers[b])
    return None if is_prefix(cluster.committed, log, cluster.deleted) else log


def hw_within_log(cluster: Cluster) -> Violation | None:
    """Check log start <= high watermark <= log end at every replica."""
    for b, broker in enumerate(cluster.brokers):
        log = broker.partition.log
        if not log.start <= log.hw <= log.end:
            return Violation("HwWithinLog", (b,), (log.start, log.end), (log.hw,))
    return None


def log_matching_below_hw(cluster: Cluster) -> Violation | None:
    """Check that any two replicas hold the same records below both their high watermarks."""
    for a, first in enumerate(cluster.brokers):
        for b, second in enumerate(cluster.brokers[:a]):
            shared = min(first.partition.log.hw, second.partition.log.hw)
            left, right = record_epochs(first)[:shared], record_epochs(second)[:shared]
            if not is_prefix(left, right, cluster.deleted):
                return Violation("LogMatchingBelowHw", (b, a), left, right)
    return None


def leader_completeness(cluster: Cluster) -> Violation | None:
    """Check that the leader of the current epoch holds every committed record."""
    for b in _current_leaders(cluster):
        log = _missing_committed(cluster, b)
        if log is not None:
            return Violation("LeaderCompleteness", (b,), cluster.committed, log)
    return None


def isr_completeness(cluster: Cluster) -> Violation | None:
    """Check, without ELR, that every member of the ISR, hence every candidate, holds every committed record."""
    # With ELR a member may have lost its log while it is down: it leaves the ISR only when it registers again. There
    # ElectableCompleteness is the claim.
    if cluster.model.setup.profile.elr:
        return None
    for b in cluster.controller.isr:
        log = _missing_committed(cluster, b)
        if log is not None:
            return Violation("IsrCompleteness", (b,), cluster.committed, log)
    return None


def electable_completeness(cluster: Cluster) -> Violation | None:
    """Check, with ELR, that every running broker in the ISR or the ELR holds every committed record."""
    # Without ELR IsrCompleteness claims more.
    if not cluster.model.setup.profile.elr:
        return None
    for b in (*cluster.controller.isr, *cluster.controller.elr):
        log = _missing_committed(cluster, b)
        if log is not None and cluster.brokers[b].up:
            return Violation("ElectableCompleteness", (b,), cluster.committed, log)
    return None


def elr_is_apart(cluster: Cluster) -> Violation | None:
    """Check that no replica in the ELR is in the ISR, and that the ELR is empty once the ISR has min.insync.replicas."""
    image, setup = cluster.controller, cluster.model.setup
    has_min_isr = len(image.isr) >= min(setup.min_insync_replicas, len(image.assignment))
    wrong = image.elr if has_min_isr else tuple(b for b in image.elr if b in image.isr)
    return Violation("ElrIsApart", wrong, (), image.elr) if wrong else None


def elects_whom_it_can(cluster: Cluster) -> Violation | None:
    """Check that there is a leader unless every candidate is fenced."""
    image = cluster.controller
    electable = tuple(b for b in image.isr or image.elr if b in image.live)
    return Violation("ElectsWhomItCan", electable, electable, ()) if electable and image.leader == UNDEFINED else None


def leader_is_live(cluster: Cluster) -> Violation | None:
    """Check that the leader is not fenced."""
    image = cluster.controller
    if image.leader in {UNDEFINED, *image.live}:
        return None
    return Violation("LeaderIsLive", (image.leader,), image.live, (image.leader,))


def last_leader_is_last(cluster: Cluster) -> Violation | None:
    """Check that the last known leader is set only while there is no leader."""
    image = cluster.controller
    if image.leader == UNDEFINED or not image.last_known_elr:
        return None
    return Violation("LastLeaderIsLast", image.last_known_elr, (), (image.leader,))


def no_false_exposure(cluster: Cluster) -> Violation | None:
    """Check that no high watermark covers a record that was not committed."""
    for b, broker in enumerate(cluster.brokers):
        exposed = record_epochs(broker)[: broker.partition.log.hw]
        if broker.partition.log.hw > len(cluster.committed) or not is_prefix(exposed, cluster.committed, cluster.deleted):
            return Violation("NoFalseExposure", (b,), cluster.committed, exposed)
    return None


def isr_superset(cluster: Cluster) -> Violation | None:
    """Check that the current leader's maximal ISR contains the controller's ISR."""
    for b in _current_leaders(cluster):
        maximal = cluster.brokers[b].partition.state.maximal_isr
        if not set(cluster.controller.isr) <= set(maximal):
            return Violation("IsrSuperset", (b,), cluster.controller.isr, maximal)
    return None


def epoch_cache_well_formed(cluster: Cluster) -> Violation | None:
    """Check that an epoch cache is what the records imply, plus at most one entry, of an epoch without records yet."""
    for b, broker in enumerate(cluster.brokers):
        pairs = broker.partition.log.cache.memory.pairs()
        implied = implied_cache(record_epochs(broker))
        if pairs not in {implied, (*implied, *pairs[-1:])} or not _rises_to_log_end(pairs, broker):
            return Violation("EpochCacheWellFormed", (b,), _flat(implied), _flat(pairs))
    return None


def _rises_to_log_end(pairs: tuple[tuple[int, int], ...], broker: Broker) -> bool:
    """Return whether epochs and starts strictly rise along the entries (epoch, start), none above the log end."""
    rises = all(epoch < later and start < later_start for (epoch, start), (later, later_start) in pairwise(pairs))
    return rises and all(start <= broker.partition.log.end for _, start in pairs)


def _flat(pairs: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    """Return the numbers of the pairs, one after the other."""
    return tuple(value for pair in pairs for value in pair)


def epochs_monotone(cluster: Cluster) -> Violation | None:
    """Check that record epochs never fall along a log."""
    for b, broker in enumerate(cluster.brokers):
        epochs = record_epochs(broker)
        if list(epochs) != sorted(epochs):
            return Violation("EpochsMonotone", (b,), tuple(sorted(epochs)), epochs)
    return None


def acked_is_committed(cluster: Cluster) -> Violation | None:
    """Check that every record acknowledged with acks=all is committed."""
    for offset, epoch in cluster.acked:
        if cluster.committed[offset : offset + 1] != (epoch,):
            return Violation("AckedIsCommitted", (), (offset, epoch), cluster.committed)
    return None


def acked_completeness(cluster: Cluster) -> Violation | None:
    """Check that every running broker in the ISR or ELR holds, or has deleted, the records acknowledged with acks=all."""
    candidates = (b for b in (*cluster.controller.isr, *cluster.controller.elr) if cluster.brokers[b].up)
    for b in candidates if cluster.acked else ():
        log = record_epochs(cluster.brokers[b])
        for offset, epoch in cluster.acked:
            if log[offset : offset + 1] not in {(epoch,), (UNDEFINED,)}:
                return Violation("AckedCompleteness", (b,), (offset, epoch), log)
    return None


def only_deleted_is_gone(cluster: Cluster) -> Violation | None:
    """Check that no log starts above the highest offset that records were deleted to."""
    for b, broker in enumerate(cluster.brokers):
        start = broker.partition.log.start
        if start > cluster.deleted:
            return Violation("OnlyDeletedIsGone", (b,), (cluster.deleted,), (start,))
    return None


def no_hole(cluster: Cluster) -> Violation | None:
    """Check that every record from a log's start on is there."""
    for b, broker in enumerate(cluster.brokers):
        start, epochs = broker.partition.log.start, record_epochs(broker)
        missing = tuple(offset for offset, epoch in enumerate(epochs) if epoch == UNDEFINED)
        # All offsets below the start are missing, so any further ones lie behind it.
        if missing[start:]:
            return Violation("NoHole", (b,), tuple(range(start)), missing)
    return None


INVARIANTS: Mapping[str, Invariant] = MappingProxyType(
    {
        "HwWithinLog": hw_within_log,
        "LogMatchingBelowHw": log_matching_below_hw,
        "LeaderCompleteness": leader_completeness,
        "IsrCompleteness": isr_completeness,
        "ElectableCompleteness": electable_completeness,
        "ElrIsApart": elr_is_apart,
        "ElectsWhomItCan": elects_whom_it_can,
        "LeaderIsLive": leader_is_live,
        "LastLeaderIsLast": last_leader_is_last,
        "NoFalseExposure": no_false_exposure,
        "IsrSuperset": isr_superset,
        "EpochCacheWellFormed": epoch_cache_well_formed,
        "EpochsMonotone": epochs_monotone,
        "AckedIsCommitted": acked_is_committed,
        "AckedCompleteness": acked_completeness,
        "OnlyDeletedIsGone": only_deleted_is_gone,
        "NoHole": no_hole,
    }
)

OF_ONE = ("HwWithinLog", "EpochCacheWellFormed", "EpochsMonotone", "OnlyDeletedIsGone", "NoHole")
"""Those that read one broker at a time, whatever the others and the controller are."""

SHARED = tuple(name for name in INVARIANTS if name not in OF_ONE)


def violated(cluster: Cluster, names: tuple[str, ...] = tuple(INVARIANTS)) -> Violation | None:
    """Return the violation of the first of the named invariants that does not hold, None if all hold."""
    for name in names:
        violation = INVARIANTS[name](cluster)
        if violation is not None:
            return violation
    return None
