"""The decisions of the replica fetch / truncate / high-watermark protocol, one pure function each.

Rules of this file

1. Every decision of the protocol that is arithmetic on offsets and epochs stands here, once. `impl` calls these
   functions, the judge compiles the same code objects with Numba, `spec/proofs` runs them on symbolic integers.
2. Arguments and results are ints, bools and sequences of ints. An absent epoch or offset is UNDEFINED (-1), as on
   Kafka's wire. A result is one value or a tuple of fixed size, with the same types on every path.
3. A rule never builds a sequence: it returns positions and counts, the caller builds.
4. Loops stand only in the counting helpers at the top. Everything else is loop-free: that is what lets the proofs hold
   for caches of any length (they replace the helpers by their contracts).
5. No `//`, `%`, `in`, no negative index, no keyword arguments: all three executions must read the same text.

An epoch cache is two parallel sequences, `epochs` and `starts`, both strictly increasing: the leader epoch, and the
offset of its first record. Offsets are 0-based; `log_end` (LEO) and high watermarks are exclusive. Integers stay below
2**62, so int64 arithmetic is exact. An `entry_..` argument is a field of the PartitionFetchState that a follower's fetcher
thread has of the partition; a `request_..` or `requested` one was in the request. Bools at the end of an argument list
(`fences`, `epoch_checked`, `keeps`) say whether the release has the change that the docstring names.
"""

from collections.abc import Sequence

UNDEFINED = -1
"""Undefined epoch and undefined offset (Kafka: RecordBatch.NO_PARTITION_LEADER_EPOCH, UNDEFINED_EPOCH_OFFSET)."""

# Kafka's protocol error codes (org.apache.kafka.common.protocol.Errors)
NONE = 0
OFFSET_OUT_OF_RANGE = 1
UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_LEADER_OR_FOLLOWER = 6
NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
INVALID_REQUEST = 42
OPERATION_NOT_ATTEMPTED = 55
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
INVALID_UPDATE_VERSION = 95
UNKNOWN_TOPIC_ID = 100
INELIGIBLE_REPLICA = 107
NEW_LEADER_ELECTED = 108

# What a leader does with a fetch that passed fencing (fetch_decision)
READ = 0
DIVERGING = 1
OUT_OF_RANGE = 2

# Which row of the out-of-range table applies (out_of_range_reset)
RESET_TO_LEADER_END = 1
RESET_TO_LEADER_START = 2
RESET_TO_LOG_END = 3

# What becomes of an ISR proposal when it is responded to (proposal_after)
COMMITTED = 0
GIVEN_UP = 1
WAITS_FOR_METADATA = 2
SENT_AGAIN = 3

Ints = Sequence[int]


# ---------------------------------------------------------------------------------------------------------------------
# Counting helpers: the only loops


def count_at_most(values: Ints, bound: int) -> int:
    """Return the length of the longest prefix of `values` whose members are all <= bound."""
    n = 0
    while n < len(values) and values[n] <= bound:
        n += 1
    return n


def count_below(values: Ints, bound: int) -> int:
    """Return the length of the longest prefix of `values` whose members are all < bound."""
    n = 0
    while n < len(values) and values[n] < bound:
        n += 1
    return n


def lowest_counted(bound: int, values: Ints, counted: Sequence[bool]) -> int:
    """Return the smallest of `bound` and those `values[i]` with `counted[i]`."""
    lowest = bound
    for i in range(len(values)):
        if counted[i] and values[i] < lowest:
            lowest = values[i]
    return lowest


# ---------------------------------------------------------------------------------------------------------------------
# The leader epoch cache (LeaderEpochFileCache)


def latest_epoch(epochs: Ints) -> int:
    """Return the last epoch in the cache. LeaderEpochFileCache#latestEpoch."""
    if len(epochs) == 0:
        return UNDEFINED
    return epochs[len(epochs) - 1]


def end_offset_for(epochs: Ints, starts: Ints, log_end: int, requested: int) -> tuple[int, int]:
    """Return (epoch, end offset) for OffsetsForLeaderEpoch of `requested`. LeaderEpochFileCache#endOffsetFor.

    Both are UNDEFINED when there is no answer. L1 to L5 number the cases; the proofs cite them. Case L4 is KAFKA-7415; the
    epoch in case L5 is KIP-279 (KIP-101 answered with the end offset only).
    """
    n = len(epochs)
    if requested == UNDEFINED:
        return UNDEFINED, UNDEFINED  # L1
    if n > 0 and requested == epochs[n - 1]:
        return requested, log_end  # L2
    # How many entries have an epoch up to the requested one: the last of them is the response, if there is any.
    known = count_at_most(epochs, requested)
    if known == n:
        return UNDEFINED, UNDEFINED  # L3: newer than everything in the cache, or an empty cache
    if known == 0:
        return requested, starts[0]  # L4: older than everything in the cache
    return epochs[known - 1], starts[known]  # L5


def epoch_for_offset(epochs: Ints, starts: Ints, offset: int) -> int:
    """Return the epoch of the record at `offset`, UNDEFINED below the first entry. LeaderEpochFileCache#epochForOffset."""
    entries = count_at_most(starts, offset)
    if entries == 0:
        return UNDEFINED
    return epochs[entries - 1]


def assign_keeps(epochs: Ints, starts: Ints, epoch: int, start: int) -> int:
    """Return how many entries stay before (epoch, start) is appended; UNDEFINED when the cache has it already.

    LeaderEpochFileCache#assign, #maybeTruncateNonMonotonicEntries. An entry goes when its epoch or its start is not below
    the new one: a lower epoch at a higher offset evicts the higher epochs.
    """
    n = len(epochs)
    if n > 0 and epoch == epochs[n - 1] and start >= starts[n - 1]:
        return UNDEFINED
    return min(count_below(epochs, epoch), count_below(starts, start))


def truncate_from_end_keeps(starts: Ints, end: int) -> int:
    """Return how many entries stay in a log truncated at `end`. LeaderEpochFileCache#truncateFromEnd (KAFKA-10706)."""
    # A negative end truncates nothing: Kafka tests `endOffset >= 0` first.
    if end < 0:
        return len(starts)
    return count_below(starts, end)


def truncate_from_start_covers(starts: Ints, start: int) -> int:
    """Return how many entries begin at or below a new log start; the last of them stays, with its start raised.

    LeaderEpochFileCache#truncateFromStart.
    """
    return count_at_most(starts, start)


# ---------------------------------------------------------------------------------------------------------------------
# Truncation on the follower (AbstractFetcherThread)


def truncation_target(
    epochs: Ints, starts: Ints, log_end: int, fetch_offset: int, leader_epoch: int, leader_end: int
) -> tuple[int, int, bool]:
    """Return (case, truncation offset, completed) of a follower, given the leader's epoch and its end offset.

    AbstractFetcherThread#getOffsetTruncationState. The case, 1 to 5, is for the proofs and the judge (T1 to T5). Not
    `completed`: the follower must ask for another epoch. Neither the log start nor the high watermark is an input: nothing
    here stops a truncation below the high watermark.
    """
    if leader_end == UNDEFINED:
        # The leader has no answer: fall back to the offset that the entry had, the high watermark or the log end.
        return 1, fetch_offset, True
    if leader_epoch == UNDEFINED:
        # A leader before KIP-279 sends an end offset only.
        return 2, min(leader_end, log_end), True
    own_epoch, own_end = end_offset_for(epochs, starts, log_end, leader_epoch)
    if own_end == UNDEFINED:
        # The own cache has no such epoch and none below it: nothing of the leader's epoch can be shared.
        return 3, min(leader_end, log_end), True
    if own_epoch != leader_epoch:
        # The own log skips the leader's epoch: truncate to the end of the epoch before it, and ask again about that one.
        return 4, min(own_end, log_end), False
    # Both logs have the epoch: they agree up to the nearer of its two ends.
    return 5, min(own_end, min(leader_end, log_end)), True


def high_watermark_after_truncation(hw: int, target: int) -> int:
    """Lower the high watermark to a truncation below it. UnifiedLog#truncateTo (since 2.4)."""
    return min(hw, target)


def out_of_range_reset(leader_start: int, leader_end: int, log_end: int) -> tuple[int, int]:
    """Return (RESET_TO_..., new fetch offset) for an out-of-range fetch. AbstractFetcherThread#fetchOffsetAndTruncate.

    The leader's offsets are its answers to ListOffsets, `log_end` is the follower's. Only RESET_TO_LEADER_START drops the
    whole log; RESET_TO_LOG_END keeps all of it.
    """
    if leader_end < log_end:
        return RESET_TO_LEADER_END, leader_end
    if leader_start > log_end:
        return RESET_TO_LEADER_START, leader_start
    return RESET_TO_LOG_END, log_end


# ---------------------------------------------------------------------------------------------------------------------
# Fetch


def check_leader_epoch(requested: int, local: int) -> int:
    """Return the error of a request made in leader epoch `requested`, at a replica in epoch `local`.

    Partition#checkCurrentLeaderEpoch (KIP-320). UNDEFINED is a sender that names no epoch: it is never fenced.
    """
    if requested == UNDEFINED or requested == local:
        return NONE
    if requested < local:
        return FENCED_LEADER_EPOCH
    return UNKNOWN_LEADER_EPOCH


def request_error(requested: int, local: int, serves: bool, fences: bool) -> int:
    """Return the error of a request made in leader epoch `requested`, at a replica in epoch `local`. Partition#getLocalLog.

    `serves`: the replica leads, or the request accepts any replica (KIP-392). `fences` is KIP-320 (2.1).
    """
    # The epoch before leadership: a follower that has not read the requested epoch answers UNKNOWN_LEADER_EPOCH, and the
    # sender retries instead of looking for another leader.
    error = check_leader_epoch(requested, local) if fences else NONE
    if error == NONE and not serves:
        return NOT_LEADER_OR_FOLLOWER
    return error


def fetch_error(requested: int, local: int, serves: bool, assigned: bool, fences: bool) -> int:
    """Return the error of a fetch: `request_error`, then the assignment. Partition#fetchRecords, #followerReplicaOrThrow.

    `assigned`: the leader has the fetching follower among its replicas; a consumer counts as assigned.
    """
    error = request_error(requested, local, serves, fences)
    # A replica that the leader does not know comes from metadata that the leader has not read yet: with an epoch in the
    # request that is UNKNOWN_LEADER_EPOCH, although the epochs are equal.
    if error != NONE or assigned:
        return error
    if requested == UNDEFINED:
        return NOT_LEADER_OR_FOLLOWER
    return UNKNOWN_LEADER_EPOCH


def fetch_decision(
    epochs: Ints, starts: Ints, log_start: int, log_end: int, fetch_offset: int, last_fetched_epoch: int
) -> tuple[int, int, int]:
    """Return (READ, DIVERGING or OUT_OF_RANGE, diverging epoch, its end offset). Partition#readRecords.

    The last two are UNDEFINED unless the fetch diverges. `last_fetched_epoch` UNDEFINED: divergence is not looked for.
    """
    if last_fetched_epoch != UNDEFINED:
        epoch, end = end_offset_for(epochs, starts, log_end, last_fetched_epoch)
        # Out of range before divergence (KAFKA-12996): below the log start the cache says nothing about the leader's
        # records. An epoch for which the cache has no answer is out of range as well.
        if epoch == UNDEFINED or end == UNDEFINED or fetch_offset < log_start:
            return OUT_OF_RANGE, UNDEFINED, UNDEFINED
        if epoch < last_fetched_epoch or end < fetch_offset:
            return DIVERGING, epoch, end
    if fetch_offset < log_start or fetch_offset > log_end:
        return OUT_OF_RANGE, UNDEFINED, UNDEFINED
    return READ, UNDEFINED, UNDEFINED


def accepts_fetch_response(
    entry_offset: int, entry_epoch: int, ready: bool, request_offset: int, request_epoch: int, epoch_checked: bool
) -> bool:
    """Return whether a follower's entry takes a response. AbstractFetcherThread#processFetchRequest.

    `epoch_checked` is KAFKA-18991 (3.9.1, 4.0.1): before it only offset and readiness were compared.
    """
    if not ready or request_offset != entry_offset:
        return False
    return not epoch_checked or request_epoch == UNDEFINED or request_epoch == entry_epoch


def accepts_epoch_response(entry_epoch: int, truncating: bool, request_epoch: int, epoch_checked: bool) -> bool:
    """Return whether a follower's entry takes an OffsetsForLeaderEpoch response. #truncateToEpochEndOffsets.

    `truncating`: the entry still waits for one. `epoch_checked` is KAFKA-7786 (2.1.1): without it a response from before an
    election truncates by the log of a leader that is no longer leader.
    """
    return truncating and (not epoch_checked or request_epoch == entry_epoch)


def batches_accepted(batch_epochs: Ints, leader_epoch: int) -> int:
    """Return how many batches, from the first on, a follower in `leader_epoch` appends: up to one of a later epoch.

    UnifiedLog#appendAsFollower (KAFKA-18723).
    """
    return count_at_most(batch_epochs, leader_epoch)


def initial_fetch_offset(epochs: Ints, log_end: int, hw: int) -> int:
    """Return where fetching starts after a role change. ReplicaManager#initialFetchOffset (2.8 and later)."""
    # Without a cached epoch the leader cannot find a divergence, so only what is committed is sure to be shared.
    if len(epochs) == 0:
        return hw
    return log_end


# ---------------------------------------------------------------------------------------------------------------------
# High watermark


def follower_high_watermark(leader_hw: int, log_start: int, log_end: int) -> int:
    """Return the leader's high watermark clamped into the follower's log; it may fall. UnifiedLog#updateHighWatermark."""
    if leader_hw < log_start:
        return log_start
    return min(leader_hw, log_end)


def high_watermark_after_log_start(hw: int, log_start: int) -> int:
    """Raise the high watermark to a log start above it. UnifiedLog#updateLogStartOffset."""
    return max(hw, log_start)


def forgets_log_ends(known_epoch: int, leader_epoch: int, was_leader: bool, keeps: bool) -> bool:
    """Return whether a broker that becomes leader in `leader_epoch` forgets its followers' recorded log ends.

    Replica#resetReplicaState; Partition#makeLeader resets them in a new leader epoch only. `known_epoch` is the last one it
    had read, and `was_leader` its role there. `keeps`: a broker that led there keeps them, whatever other leader there was
    in between and whatever was truncated since: finding F2, Kafka up to 4.3.1.
    """
    return leader_epoch > known_epoch and not (keeps and was_leader)


def counts_for_high_watermark(in_maximal_isr: bool, caught_up: bool, eligible: bool) -> bool:
    """Return whether a replica holds the high watermark back. Partition#maybeIncrementLeaderHW (KAFKA-15021).

    `caught_up` is `is_caught_up`; `eligible`: it may join the ISR, being neither fenced nor an earlier incarnation.
    """
    return in_maximal_isr or (caught_up and eligible)


def under_min_isr(isr_size: int, min_isr: int, replicas: int) -> bool:
    """Return whether the committed ISR is too small. Partition#isUnderMinIsr, #effectiveMinIsr."""
    return isr_size < min(min_isr, replicas)


def leader_high_watermark(hw: int, log_end: int, leos: Ints, counted: Sequence[bool], too_few: bool) -> int:
    """Raise the leader's high watermark to the lowest counted LEO, never lower it. Partition#maybeIncrementLeaderHW.

    `leos` are the recorded LEOs of the other replicas (UNDEFINED before their first fetch); `too_few` is under_min_isr
    where the release blocks on it (KAFKA-15583).
    """
    if too_few:
        return hw
    return max(hw, lowest_counted(log_end, leos, counted))


def is_caught_up(leo: int, leader_end: int, now: int, last_caught_up: int, lag_max: int) -> bool:
    """Return whether a replica has the leader's log end, or had it at most `lag_max` ms ago. Replica#isCaughtUp.

    `leo` is its recorded LEO, `last_caught_up` comes from `last_caught_up_time`; times in ms.
    """
    return leo == leader_end or now - last_caught_up <= lag_max


def last_caught_up_time(
    old: int, fetch_offset: int, fetch_time: int, leader_end: int, previous_leader_end: int, previous_fetch_time: int
) -> int:
    """Return when a replica was last caught up, given its fetch of now. Replica#updateFetchStateOrThrow; times in ms.

    `old` is what this returned before. `leader_end` is the leader's log end now, the `previous_..` values are its log end
    and the time at the replica's previous fetch.
    """
    if fetch_offset >= leader_end:
        return max(old, fetch_time)
    # It has now what the leader had at its previous fetch, so it was caught up then.
    if fetch_offset >= previous_leader_end:
        return max(old, previous_fetch_time)
    return old


# ---------------------------------------------------------------------------------------------------------------------
# In-sync replicas


def may_join_isr(leo: int, hw: int, epoch_start: int) -> bool:
    """Return whether a follower's recorded LEO has reached the leader's high watermark and epoch start.

    Partition#isFollowerInSync (KAFKA-7128).
    """
    return leo >= hw and leo >= epoch_start


def produce_response(hw: int, required: int, leads: bool, too_few: bool) -> tuple[bool, int]:
    """Return (whether the records of an acks=all produce are committed, error). Partition#checkEnoughReplicasReachOffset.

    `required` is where its records end; `too_few` is under_min_isr of the ISR. The produce waits while this is (False,
    NONE); an error is sent at once.
    """
    # The waiting broker remembers only where the records end. Once it does not lead any more, another leader's records may
    # stand there, so its high watermark says nothing.
    if not leads:
        return False, NOT_LEADER_OR_FOLLOWER
    if hw < required:
        return False, NONE
    # The records are committed in any case; the error only says that fewer replicas hold them than were asked for.
    if too_few:
        return True, NOT_ENOUGH_REPLICAS_AFTER_APPEND
    return True, NONE


def proposal_after(error: int) -> int:
    """Return what becomes of an ISR proposal after an AlterPartition response with `error`: COMMITTED, GIVEN_UP, ...

    Partition#handleAlterPartitionError.
    """
    if error == NONE:
        return COMMITTED
    # The controller cannot have taken it: back to the committed ISR.
    if error == OPERATION_NOT_ATTEMPTED or error == INELIGIBLE_REPLICA:
        return GIVEN_UP
    # The controller may have taken it, or knows better: giving up could commit past a member that it has added.
    if error == UNKNOWN_TOPIC_OR_PARTITION or error == UNKNOWN_TOPIC_ID or error == INVALID_REQUEST:
        return WAITS_FOR_METADATA
    if error == FENCED_LEADER_EPOCH or error == INVALID_UPDATE_VERSION or error == NEW_LEADER_ELECTED:
        return WAITS_FOR_METADATA
    return SENT_AGAIN
