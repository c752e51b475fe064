"""Proofs about high watermarks, in-sync replicas and fencing. Only the number of replicas of the leader is bounded.

Each function is a lemma about one or two rules of `impl.rules`, stated from its meaning in Kafka. It takes a path, the run
on which it assumes and sets goals, and the number of members of its sequences; a lemma without sequences deletes that
argument. `path.call` runs a rule on z3 terms. Offsets, epochs and times are integers without a bound; UNDEFINED is none. An
error is a code of Kafka's protocol. "LEO" is a replica's log end offset, as its leader has recorded it. A replica is
*counted* where the high watermark waits for it. `too_few`: the ISR is below min.insync.replicas. `path.assume` with a
second argument assumes a premise of that name, which a run may drop to show that it is needed.
"""

from typing import Any

import z3

from tidegauge.spec.proofs.engine.paths import ProofPath
from tidegauge.spec.proofs.engine.symbolic import all_of, any_of

UNDEFINED = -1
NONE, FENCED, UNKNOWN = 0, 74, 75  # NONE, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH


def follower_clamp(path: ProofPath, size: int) -> None:
    """Prove UnifiedLog#updateHighWatermark: the leader's value, clamped to [log start, log end]."""
    del size
    leader_hw, log_start = path.integer("leader_hw", low=0), path.integer("log_start", low=0)
    log_end = path.integer("log_end", low=0)
    path.assume(log_start <= log_end, "the log start is not above the log end")
    hw = path.call("follower_high_watermark", leader_hw, log_start, log_end)
    path.goal("inside the log", z3.And(log_start <= hw, hw <= log_end))
    path.goal(
        "the leader's value where it fits", z3.Implies(z3.And(log_start <= leader_hw, leader_hw <= log_end), hw == leader_hw)
    )
    path.goal("never above the leader's value, except for the log start", z3.Or(hw <= leader_hw, hw == log_start))
    path.goal("a value beyond the log end gives the log end", z3.Implies(leader_hw >= log_end, hw == log_end))
    path.goal("clamping again changes nothing", path.call("follower_high_watermark", hw, log_start, log_end) == hw)


def truncated_high_watermark(path: ProofPath, size: int) -> None:
    """Prove UnifiedLog#truncateTo: the high watermark is lowered with the log, truncated at `target`, and never raised."""
    del size
    hw, target = path.integer("hw", low=0), path.integer("target", low=0)
    after = path.call("high_watermark_after_truncation", hw, target)
    path.goal("the lower of the two", z3.And(after <= hw, after <= target, z3.Or(after == hw, after == target)))


def lifted_high_watermark(path: ProofPath, size: int) -> None:
    """Prove UnifiedLog#updateLogStartOffset: the high watermark does not stay below the log start."""
    del size
    hw, log_start = path.integer("hw", low=0), path.integer("log_start", low=0)
    after = path.call("high_watermark_after_log_start", hw, log_start)
    path.goal("the higher of the two", z3.And(after >= hw, after >= log_start, z3.Or(after == hw, after == log_start)))


def forgotten_log_ends(path: ProofPath, size: int) -> None:
    """Prove Replica#resetReplicaState: when a leader forgets the log ends of its followers in a new leader epoch.

    `keeps` is Kafka's behaviour up to 4.3.1, not repaired (finding F2): one that led before keeps them.
    """
    del size
    # The epoch that the broker knew, and that of the new metadata.
    known, epoch = path.integer("known_epoch", low=UNDEFINED), path.integer("leader_epoch", low=0)
    was_leader, keeps = path.boolean("was_leader"), path.boolean("keeps")
    forgets = path.call("forgets_log_ends", known, epoch, was_leader, keeps)
    path.goal("nothing is forgotten within an epoch", z3.Implies(epoch == known, z3.Not(forgets)))
    path.goal("nor by metadata of an older one", z3.Implies(epoch < known, z3.Not(forgets)))
    path.goal("who did not lead begins without", z3.Implies(z3.And(epoch > known, z3.Not(was_leader)), forgets))
    path.goal("repaired, every leader does", z3.Implies(z3.And(epoch > known, z3.Not(keeps)), forgets))
    path.goal("Kafka's leader keeps what it recorded (F2)", z3.Implies(z3.And(was_leader, keeps), z3.Not(forgets)))


def leader_rule(path: ProofPath, replicas: int) -> None:
    """Prove Partition#maybeIncrementLeaderHW: at or below every counted LEO, never down, and as high as that allows."""
    hw, log_end = path.integer("hw", low=0), path.integer("log_end", low=0)
    path.assume(hw <= log_end, "the high watermark is inside the log")
    leos = path.integers("leos", replicas, low=UNDEFINED)
    counted = [path.boolean(f"counted{i}") for i in range(replicas)]
    too_few = path.boolean("too_few")
    after = path.call("leader_high_watermark", hw, log_end, leos, counted, too_few)
    path.goal("never down", after >= hw)
    path.goal("inside the log", after <= log_end)
    path.goal("below the minimum ISR it stays", z3.Implies(too_few, after == hw))
    for leo, counts in zip(leos, counted, strict=True):
        path.goal("raised at most to every counted LEO", z3.Implies(z3.And(after > hw, counts), after <= leo))
        path.goal("an unknown counted LEO holds it", z3.Implies(z3.And(counts, leo == UNDEFINED), after == hw))
    # A rule that never raises the high watermark would reach all goals but this one.
    is_highest = any_of([after == log_end, *[z3.And(c, leo <= after) for leo, c in zip(leos, counted, strict=True)]])
    path.goal("raised until the log end or a counted LEO holds it", z3.Or(too_few, is_highest))


def lowest_counted(path: ProofPath, replicas: int) -> None:
    """Prove the helper that finds the lowest log end of the counted replicas, up to which a leader may commit."""
    bound = path.integer("bound")
    values = path.integers("values", replicas)
    counted = [path.boolean(f"counted{i}") for i in range(replicas)]
    lowest = path.call("lowest_counted", bound, values, counted)
    pairs = list(zip(values, counted, strict=True))
    # The two goals together: it is the minimum of the bound and the counted values.
    path.goal(
        "not above the bound or any counted value",
        z3.And(lowest <= bound, all_of(z3.Implies(c, lowest <= v) for v, c in pairs)),
    )
    path.goal("the bound or a counted value", z3.Or(lowest == bound, any_of(z3.And(c, lowest == v) for v, c in pairs)))


def minimum_isr(path: ProofPath, size: int) -> None:
    """Prove Partition#isUnderMinIsr with the effective minimum: min.insync.replicas, or the number of replicas if lower."""
    del size
    # How many members the ISR has.
    isr, minimum, replicas = path.integer("isr", low=0), path.integer("min_isr", low=1), path.integer("replicas", low=1)
    too_few = path.call("under_min_isr", isr, minimum, replicas)
    path.goal(
        "under the configured minimum and under the number of replicas", too_few == z3.And(isr < minimum, isr < replicas)
    )
    path.goal("a full ISR is never too small", z3.Implies(isr >= replicas, z3.Not(too_few)))


def counted_replicas(path: ProofPath, size: int) -> None:
    """Prove who holds the high watermark back: the maximal ISR, and who is caught up and may join (KAFKA-15021)."""
    del size
    maximal, caught_up, eligible = path.boolean("in_maximal_isr"), path.boolean("caught_up"), path.boolean("eligible")
    counts = path.call("counts_for_high_watermark", maximal, caught_up, eligible)
    path.goal("every member of the maximal ISR counts", z3.Implies(maximal, counts))
    path.goal("outside it, only who could join", z3.Implies(z3.And(counts, z3.Not(maximal)), z3.And(caught_up, eligible)))
    path.goal("who could join counts", z3.Implies(z3.And(caught_up, eligible), counts))


def isr_admission(path: ProofPath, size: int) -> None:
    """Prove Partition#isFollowerInSync (KAFKA-7128): both the high watermark and this leader's epoch start are reached."""
    del size
    leo, hw, epoch_start = path.integer("leo", low=UNDEFINED), path.integer("hw", low=0), path.integer("epoch_start", low=0)
    joins = path.call("may_join_isr", leo, hw, epoch_start)
    path.goal("a joining replica holds everything below the high watermark", z3.Implies(joins, leo >= hw))
    path.goal("a joining replica has reached this leader's epoch", z3.Implies(joins, leo >= epoch_start))
    path.goal("who has both may join", z3.Implies(z3.And(leo >= hw, leo >= epoch_start), joins))
    # The leader's rule with the new member as the one replica, which counts; the ISR is not below min.insync.replicas.
    after = path.call(
        "leader_high_watermark", hw, path.integer("log_end", low=0), [leo], [z3.BoolVal(True)], z3.BoolVal(False)
    )
    path.goal("counting the new member never pulls the high watermark above its LEO", z3.Implies(joins, after <= leo))


def caught_up(path: ProofPath, size: int) -> None:
    """Prove Replica#isCaughtUp, and the last caught-up time of Replica#updateFetchStateOrThrow; times are in ms."""
    del size
    leo, leader_end = path.integer("leo", low=0), path.integer("leader_end", low=0)
    # `last`: when the replica was last caught up, as known before; `lag`: replica.lag.time.max.ms.
    now, last, lag = path.integer("now", low=0), path.integer("last_caught_up", low=0), path.integer("lag_max", low=0)
    path.goal(
        "at the leader's end, or there within the lag limit",
        path.call("is_caught_up", leo, leader_end, now, last, lag) == z3.Or(leo == leader_end, now <= last + lag),
    )
    # A fetch at offset `fetched` and time `at`. At the replica's fetch before it, at time `previously`, the leader's log
    # ended at `before`.
    fetched, before = path.integer("fetch_offset", low=0), path.integer("previous_leader_end", low=UNDEFINED)
    at, previously = path.integer("fetch_time", low=0), path.integer("previous_fetch_time", low=0)
    # The clock of one leader, on which fetches are recorded one after the other.
    path.assume(previously <= at)
    time = path.call("last_caught_up_time", last, fetched, at, leader_end, before, previously)
    path.goal("the caught-up time never goes back", time >= last)
    path.goal("a fetch at the end counts now", z3.Implies(fetched >= leader_end, time >= at))
    reached = z3.And(fetched < leader_end, fetched >= before)
    path.goal("a fetch at the previous end counts from the previous fetch", z3.Implies(reached, time >= previously))
    path.goal("any other fetch does not count", z3.Implies(z3.And(fetched < leader_end, fetched < before), time == last))
    path.goal("never later than this fetch or what was known", z3.Or(time <= at, time == last))
    path.goal(
        "a fetch short of the end counts no later than the previous fetch",
        z3.Implies(reached, z3.Or(time == last, time == previously)),
    )


def fencing(path: ProofPath, size: int) -> None:
    """Prove Partition#checkCurrentLeaderEpoch: a request passes only in the epoch both sides know, or without one.

    `requested` is the epoch in the request, `local` the one that the broker knows.
    """
    del size
    requested, local = path.integer("requested", low=UNDEFINED), path.integer("local", low=0)
    error: Any = path.call("check_leader_epoch", requested, local)
    path.goal("no epoch is not checked", z3.Implies(requested == UNDEFINED, error == NONE))
    path.goal("the same epoch passes", z3.Implies(requested == local, error == NONE))
    older = z3.And(requested != UNDEFINED, requested < local)
    path.goal("an older epoch is fenced", z3.Implies(older, error == FENCED))
    path.goal("a newer epoch is unknown", z3.Implies(requested > local, error == UNKNOWN))


def responses_accepted(path: ProofPath, size: int) -> None:
    """Prove which responses a follower takes in AbstractFetcherThread#processFetchRequest (KAFKA-18991).

    The entry is the fetcher's state of the partition now; the request is the one of the response. `checked`: the release
    compares their leader epochs.
    """
    del size
    offset, epoch = path.integer("entry_offset", low=0), path.integer("entry_epoch", low=0)
    # The fetch offset and the leader epoch of the request.
    asked_at, asked_in = path.integer("request_offset", low=0), path.integer("request_epoch", low=UNDEFINED)
    ready, checked = path.boolean("ready"), path.boolean("epoch_checked")
    accepted = path.call("accepts_fetch_response", offset, epoch, ready, asked_at, asked_in, checked)
    path.goal("only at the offset it was asked for", z3.Implies(accepted, asked_at == offset))
    path.goal("only by an entry that is ready", z3.Implies(accepted, ready))
    path.goal(
        "with the check, no response of another epoch",
        z3.Implies(z3.And(accepted, checked), z3.Or(asked_in == epoch, asked_in == UNDEFINED)),
    )
    path.goal(
        "everything else is taken",
        z3.Or(accepted, asked_at != offset, z3.Not(ready), z3.And(checked, asked_in != epoch, asked_in != UNDEFINED)),
    )


def batches(path: ProofPath, size: int) -> None:
    """Prove that UnifiedLog#appendAsFollower stops at the first batch of a later epoch (KAFKA-18723)."""
    epochs = path.integers("batch_epochs", size, low=0)
    leader_epoch = path.integer("leader_epoch", low=0)
    accepted = path.call("batches_accepted", epochs, leader_epoch)
    path.goal("a count of batches", z3.And(accepted >= 0, accepted <= size))
    for i, e in enumerate(epochs):
        path.goal("no accepted batch is of a later epoch", z3.Implies(z3.IntVal(i) < accepted, e <= leader_epoch))
        # "is" of a later epoch.
        path.goal("the first one left out is", z3.Implies(z3.IntVal(i) == accepted, e > leader_epoch))


def first_fetch(path: ProofPath, size: int) -> None:
    """Prove ReplicaManager#initialFetchOffset: the log end, or the high watermark while there are no epochs."""
    epochs = path.integers("epochs", size, low=0)
    log_end, hw = path.integer("log_end", low=0), path.integer("hw", low=0)
    path.goal(
        "the log end where epochs are known",
        path.call("initial_fetch_offset", epochs, log_end, hw) == (hw if size == 0 else log_end),
    )


def counting(path: ProofPath, size: int) -> None:
    """Prove the two counting loops: the longest prefix within a bound, of any sequence, sorted or not."""
    values, bound = path.integers("values", size), path.integer("bound")
    for name in ("count_at_most", "count_below"):
        n = path.call(name, values, bound)
        # For each member, whether the helper counts it.
        within = [value <= bound if name == "count_at_most" else value < bound for value in values]
        path.goal(f"{name}: a count", z3.And(n >= 0, n <= size))
        path.goal(
            f"{name}: all members before are within", all_of(z3.Implies(z3.IntVal(i) < n, w) for i, w in enumerate(within))
        )
        path.goal(f"{name}: the next is not", all_of(z3.Implies(z3.IntVal(i) == n, z3.Not(w)) for i, w in enumerate(within)))


# Refused requests, accepted responses, and the effect of an error on an ISR proposal.
#
# Each goal is stated from its meaning in Kafka, with Kafka's codes written out: not from the text of the rule.


NOT_LEADER, TOO_FEW = 6, 20  # NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS_AFTER_APPEND
COMMITTED, GIVEN_UP, WAITS_FOR_METADATA, SENT_AGAIN = range(4)


def _epochs(path: ProofPath) -> tuple[Any, Any]:
    """Return a request's leader epoch, and that of the broker that handles it: -1 while it has none."""
    return path.integer("requested", low=UNDEFINED), path.integer("local", low=UNDEFINED)


def refusals(path: ProofPath, size: int) -> None:
    """Prove the order of checks in Partition#getLocalLog: the leader epoch first, leadership second.

    `serves`: the broker leads, or the request accepts any replica. `fences`: the release compares epochs at all (KIP-320).
    """
    del size
    requested, local = _epochs(path)
    serves, fences = path.boolean("serves"), path.boolean("fences")
    error = path.call("request_error", requested, local, serves, fences)
    compared = z3.And(fences, requested != UNDEFINED)
    path.goal("an older epoch is fenced, whoever is asked", z3.Implies(z3.And(compared, requested < local), error == FENCED))
    path.goal("a newer one is unknown, whoever is asked", z3.Implies(z3.And(compared, requested > local), error == UNKNOWN))
    passes = z3.Or(z3.Not(compared), requested == local)
    path.goal("then who does not serve refuses", z3.Implies(z3.And(passes, z3.Not(serves)), error == NOT_LEADER))
    path.goal("and who does answers", z3.Implies(z3.And(passes, serves), error == NONE))


def fetch_refusals(path: ProofPath, size: int) -> None:
    """Prove the order of checks in Partition#fetchRecords and #followerReplicaOrThrow: the assignment last.

    `serves` and `fences` as in `refusals`; `assigned`: the leader knows the sender as a replica.
    """
    del size
    requested, local = _epochs(path)
    serves, assigned, fences = path.boolean("serves"), path.boolean("assigned"), path.boolean("fences")
    error = path.call("fetch_error", requested, local, serves, assigned, fences)
    # The error by the checks that every request meets (`refusals`).
    before = path.call("request_error", requested, local, serves, fences)
    path.goal("what any request is refused for comes first", z3.Implies(before != NONE, error == before))
    path.goal("an assigned replica is refused for nothing else", z3.Implies(assigned, error == before))
    stranger = z3.And(before == NONE, z3.Not(assigned))
    path.goal("no other replica is served", z3.Implies(stranger, error != NONE))
    path.goal(
        "with an epoch, the leader has metadata to read", z3.Implies(z3.And(stranger, requested >= 0), error == UNKNOWN)
    )
    path.goal("without one, it is not its leader", z3.Implies(z3.And(stranger, requested < 0), error == NOT_LEADER))


def epoch_responses(path: ProofPath, size: int) -> None:
    """Prove which OffsetsForLeaderEpoch responses AbstractFetcherThread#truncateToEpochEndOffsets takes (KAFKA-7786).

    `truncating`: the fetcher's entry of the partition waits for one. `checked`: the release compares the leader epochs of
    entry and request.
    """
    del size
    epoch, asked_in = path.integer("entry_epoch", low=0), path.integer("request_epoch", low=UNDEFINED)
    truncating, checked = path.boolean("truncating"), path.boolean("epoch_checked")
    accepted = path.call("accepts_epoch_response", epoch, truncating, asked_in, checked)
    path.goal("only while it is waited for", z3.Implies(accepted, truncating))
    path.goal("with the check, only in the epoch it was asked in", z3.Implies(z3.And(accepted, checked), asked_in == epoch))
    path.goal("every other is taken", z3.Or(accepted, z3.Not(truncating), z3.And(checked, asked_in != epoch)))


def acknowledgements(path: ProofPath, size: int) -> None:
    """Prove Partition#checkEnoughReplicasReachOffset: only a leader acknowledges, and only what is committed.

    `required` is where the records of the waiting produce end.
    """
    del size
    hw, required = path.integer("hw", low=0), path.integer("required", low=0)
    leads, too_few = path.boolean("leads"), path.boolean("too_few")
    # Not committed and no error: the produce still waits.
    committed, error = path.call("produce_response", hw, required, leads, too_few)
    success = z3.And(committed, error == NONE)
    path.goal("whom it acknowledges, its high watermark has passed", z3.Implies(success, hw >= required))
    path.goal(
        "who leads no more refuses, whatever it holds",
        z3.Implies(z3.Not(leads), z3.And(z3.Not(committed), error == NOT_LEADER)),
    )
    path.goal(
        "a leader whose high watermark is below waits",
        z3.Implies(z3.And(leads, hw < required), z3.And(z3.Not(committed), error == NONE)),
    )
    reached = z3.And(leads, hw >= required)
    path.goal("a committed record is acknowledged", z3.Implies(z3.And(reached, z3.Not(too_few)), success))
    path.goal(
        "below the minimum ISR with an error", z3.Implies(z3.And(reached, too_few), z3.And(committed, error == TOO_FEW))
    )


def proposals(path: ProofPath, size: int) -> None:
    """Prove what becomes of an ISR proposal after the controller's response, for every error code, also of later versions.

    Partition#handleAlterPartitionError.
    """
    del size
    error = path.integer("error", low=UNDEFINED)
    after = path.call("proposal_after", error)
    given_up = z3.Or(error == 55, error == 107)  # OPERATION_NOT_ATTEMPTED, INELIGIBLE_REPLICA
    # UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST, FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, UNKNOWN_TOPIC_ID,
    # NEW_LEADER_ELECTED.
    waits = z3.Or(*(error == code for code in (3, 42, FENCED, 95, 100, 108)))
    path.goal("only without an error it is committed", (after == COMMITTED) == (error == NONE))
    path.goal("it is given up where the controller cannot have taken it", (after == GIVEN_UP) == given_up)
    path.goal("it waits where newer metadata decides", (after == WAITS_FOR_METADATA) == waits)
    path.goal(
        "after any other error it is sent again", (after == SENT_AGAIN) == z3.Not(z3.Or(error == NONE, given_up, waits))
    )
