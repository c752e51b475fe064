"""Bounded proofs of the tables: the response of a leader, the truncation of a follower, the outcome of a fetch.

Offsets and epochs are unbounded, caches have a known number of entries. Each row is stated from its meaning in Kafka
(LeaderEpochFileCache#endOffsetFor, AbstractFetcherThread#getOffsetTruncationState, Partition#readRecords), not from the
text of the rule.

Every lemma takes a path, the run on which it assumes and sets goals, and `entries`, how many entries the cache has.
`path.call` runs a rule of `impl.rules` on terms; the three most used return
`end_offset_for`: (epoch, end offset), the response of OffsetsForLeaderEpoch, both UNDEFINED when the leader has none;
`truncation_target`: (row of the table T1 to T5, offset to truncate at, done: whether the follower asks no more);
`fetch_decision`: (READ, DIVERGING or OUT_OF_RANGE, and the diverging epoch and its end offset).
A result may be a plain number: `z3.IntVal(n) == result` and `z3.BoolVal(b) == result` are formulas in any case. A goal of
one name may be set several times, for each entry of the cache.
"""

from typing import Any, NamedTuple

import z3

from tidegauge.spec.proofs.engine.paths import ProofPath
from tidegauge.spec.proofs.engine.symbolic import all_of, any_of, lower
from tidegauge.spec.proofs.lemmas.logs import SymbolicLog, fresh_log, increasing_log, well_formed_log

UNDEFINED = -1
READ, DIVERGING, OUT_OF_RANGE = 0, 1, 2


class ResponseRow(NamedTuple):
    """A row of the response table: under the condition the response is this epoch and end offset. Terms of z3 or numbers."""

    name: str
    condition: Any
    epoch: Any
    end: Any


def expected_response(log: SymbolicLog, requested: Any) -> list[ResponseRow]:
    """Return the rows of the response table for a `requested` epoch; their conditions are disjoint and complete."""
    none = ResponseRow("L1: undefined epoch has no response", requested == UNDEFINED, UNDEFINED, UNDEFINED)
    if len(log) == 0:
        return [none, ResponseRow("L3: empty cache has no response", requested >= 0, UNDEFINED, UNDEFINED)]
    rows = [
        none,
        ResponseRow("L2: latest epoch ends at the log end", requested == log.epochs[-1], requested, log.log_end),
        ResponseRow("L3: newer than everything has no response", requested > log.epochs[-1], UNDEFINED, UNDEFINED),
        ResponseRow(
            "L4: older than everything ends at the first start",
            z3.And(requested >= 0, requested < log.epochs[0]),
            requested,
            log.starts[0],
        ),
    ]
    for i in range(len(log) - 1):
        between = z3.And(log.epochs[i] <= requested, requested < log.epochs[i + 1])
        name = "L5: largest epoch not above, ends where the next starts"
        rows.append(ResponseRow(name, between, log.epochs[i], log.starts[i + 1]))
    return rows


def response_table(path: ProofPath, entries: int) -> None:
    """Prove rows L1 to L5, and the meaning of the response for the records."""
    log = well_formed_log(path, "cache", entries)
    requested = path.integer("requested", low=UNDEFINED)
    epoch, end = path.call("end_offset_for", log.epochs, log.starts, log.log_end, requested)
    rows = expected_response(log, requested)
    # PbEq: of the conditions, each with weight 1, exactly one holds.
    path.goal("the rows are disjoint and complete", z3.PbEq([(row.condition, 1) for row in rows], 1))
    for row in rows:
        path.goal(row.name, z3.Implies(row.condition, z3.And(epoch == row.epoch, end == row.end)))
    answered = end != UNDEFINED
    path.goal("epoch and end are undefined together", (epoch == UNDEFINED) == (end == UNDEFINED))
    path.goal("the end lies in the log", z3.Implies(answered, z3.And(log.log_start <= end, end <= log.log_end)))
    path.goal("the answered epoch is not above the asked one", epoch <= requested)
    offset = path.integer("offset")
    inside = z3.And(answered, log.log_start <= offset, offset < log.log_end)
    path.goal(
        "a record lies below the end exactly when its epoch is not above the asked one",
        z3.Implies(inside, (offset < end) == (log.epoch_at(offset) <= requested)),
    )
    same_epoch, same_end = path.call("end_offset_for", log.epochs, log.starts, log.log_end, epoch)
    path.goal("asking for the answered epoch repeats the response", z3.And(same_epoch == epoch, same_end == end))


def response_monotony(path: ProofPath, entries: int) -> None:
    """Prove that a later epoch never gets an earlier response."""
    log = well_formed_log(path, "cache", entries)
    first, second = path.integer("first", low=0), path.integer("second", low=0)
    path.assume(first <= second)
    epoch_1, end_1 = path.call("end_offset_for", log.epochs, log.starts, log.log_end, first)
    epoch_2, end_2 = path.call("end_offset_for", log.epochs, log.starts, log.log_end, second)
    answered = z3.And(end_1 != UNDEFINED, end_2 != UNDEFINED)
    path.goal("epochs rise with the asked epoch", z3.Implies(answered, epoch_1 <= epoch_2))
    path.goal("ends rise with the asked epoch", z3.Implies(answered, end_1 <= end_2))
    path.goal("what has no response is newer than what has one", z3.Implies(end_1 == UNDEFINED, end_2 == UNDEFINED))


def epoch_lookup(path: ProofPath, entries: int) -> None:
    """Prove the lookups of the latest epoch and of the epoch of a record."""
    log = increasing_log(path, "cache", entries)
    offset = path.integer("offset", low=0)
    path.goal("latest epoch is the last entry", path.call("latest_epoch", log.epochs) == log.latest())
    path.goal(
        "the epoch of an offset is that of the last entry at or below it",
        path.call("epoch_for_offset", log.epochs, log.starts, offset) == log.epoch_at(offset),
    )


def truncation_table(path: ProofPath, entries: int) -> None:
    """Prove rows T1 to T5: which one applies, where it truncates, and its meaning for the records."""
    log = well_formed_log(path, "follower", entries)
    fetch_offset = path.integer("fetch_offset", low=0)
    leader_epoch, leader_end = path.integer("leader_epoch", low=UNDEFINED), path.integer("leader_end", low=UNDEFINED)
    row, target, done = path.call(
        "truncation_target", log.epochs, log.starts, log.log_end, fetch_offset, leader_epoch, leader_end
    )
    capped = lower(leader_end, log.log_end)
    # When a row applies: T1 no response, T2 one without an epoch, T3 an epoch above all in the cache; T4 and T5 follow.
    t1 = leader_end == UNDEFINED
    t2 = z3.And(z3.Not(t1), leader_epoch == UNDEFINED)
    answered = z3.And(z3.Not(t1), z3.Not(t2))
    t3 = z3.And(answered, all_of(e < leader_epoch for e in log.epochs))

    def row_is(number: int, offset: Any, completed: bool) -> Any:
        """State that the rule takes this row, truncates at this offset, and is done or not."""
        return z3.And(row == number, target == offset, z3.BoolVal(completed) == done)

    path.goal("T1: no response truncates at the fetch offset", z3.Implies(t1, row_is(1, fetch_offset, completed=True)))
    path.goal("T2: a response without epoch is the truncation", z3.Implies(t2, row_is(2, capped, completed=True)))
    path.goal(
        "T3: an epoch newer than the follower's cache is the truncation", z3.Implies(t3, row_is(3, capped, completed=True))
    )
    if log.epochs:
        below = z3.And(answered, leader_epoch < log.epochs[0])
        path.goal(
            "T5: an epoch older than the follower's cache truncates at its first start",
            z3.Implies(below, row_is(5, lower(log.starts[0], leader_end, log.log_end), completed=True)),
        )
    for i, e in enumerate(log.epochs):
        own_end = log.starts[i + 1] if i + 1 < entries else log.log_end
        at_lower_end = row_is(5, lower(own_end, leader_end, log.log_end), completed=True)
        path.goal(
            "T5: a shared epoch is truncated at the lower of its two ends",
            z3.Implies(z3.And(answered, leader_epoch == e), at_lower_end),
        )
        if i + 1 < entries:
            gap = z3.And(answered, e < leader_epoch, leader_epoch < log.epochs[i + 1])
            path.goal(
                "T4: an epoch the follower never saw cuts off everything newer, and asks again",
                z3.Implies(gap, row_is(4, lower(log.starts[i + 1], log.log_end), completed=False)),
            )
    path.goal("the truncation is not above the log end", z3.Implies(z3.Not(t1), target <= log.log_end))
    path.goal("the truncation is not negative", target >= 0)
    offset = path.integer("offset")
    kept = z3.And(answered, z3.Not(t3), log.log_start <= offset, offset < target)
    path.goal("no kept record is newer than the answered epoch", z3.Implies(kept, log.epoch_at(offset) <= leader_epoch))
    truncated = z3.And(answered, z3.Not(t3), offset >= target, offset < log.log_end, offset < leader_end)
    path.goal(
        "below the answered end only newer records are truncated", z3.Implies(truncated, log.epoch_at(offset) > leader_epoch)
    )
    path.goal("only T4 asks again", z3.Not(done) == (z3.IntVal(4) == row))
    path.goal(
        "T4 takes at least the latest entry and leaves its own",
        z3.Implies(
            z3.Not(done), z3.And(any_of([s >= target for s in log.starts]), any_of([s < target for s in log.starts]))
        ),
    )


def row_t2_is_redundant(path: ProofPath, entries: int) -> None:
    """Prove that row T2 truncates where T3 would: the follower's own cache has no response for an undefined epoch."""
    log = fresh_log(path, "follower", entries)
    leader_end = path.integer("leader_end", low=0)
    _, own_end = path.call("end_offset_for", log.epochs, log.starts, log.log_end, UNDEFINED)
    # 0 is the fetch offset, which only row T1 reads.
    _, target, done = path.call("truncation_target", log.epochs, log.starts, log.log_end, 0, UNDEFINED, leader_end)
    path.goal("without row T2, row T3 would apply", own_end == UNDEFINED)
    path.goal("and truncate at the same offset", z3.And(target == lower(leader_end, log.log_end), z3.BoolVal(True) == done))


def divergence_table(path: ProofPath, entries: int) -> None:
    """Prove when a leader reads, diverges or is out of range for a fetch.

    Also the promise of READ: it starts inside the log, and no record before it is newer than the fetch's last epoch.
    """
    log = well_formed_log(path, "leader", entries)
    fetch_offset = path.integer("fetch_offset", low=0)
    last = path.integer("last_fetched_epoch", low=UNDEFINED)
    decision, epoch, end = path.call(
        "fetch_decision", log.epochs, log.starts, log.log_start, log.log_end, fetch_offset, last
    )
    # A fetch without a last fetched epoch, as a follower with an empty cache sends it.
    absent = last == UNDEFINED
    too_low = fetch_offset < log.log_start
    # An epoch newer than the whole cache: OffsetsForLeaderEpoch would have no response (row L3).
    unanswered = z3.And(z3.Not(absent), all_of(e < last for e in log.epochs))
    # The response as one term: one row holds (`expected_response`), so neither their order nor the first values matter.
    response_epoch: Any = last
    response_end: Any = log.log_end
    for row in expected_response(log, last):
        response_epoch = z3.If(row.condition, row.epoch, response_epoch)
        response_end = z3.If(row.condition, row.end, response_end)
    # The two columns of the table: without an epoch only offsets are compared.
    out_without_epoch = z3.And(absent, z3.Or(too_low, fetch_offset > log.log_end))
    out = z3.Or(out_without_epoch, z3.And(z3.Not(absent), z3.Or(unanswered, too_low)))
    # The leader has no record of that epoch, or its records of it end below the fetch offset (Partition#readRecords).
    diverges = z3.And(z3.Not(absent), z3.Not(out), z3.Or(response_epoch < last, response_end < fetch_offset))
    path.goal("below the log start is out of range, before anything else", z3.Implies(too_low, decision == OUT_OF_RANGE))
    path.goal("an epoch without answer is out of range", z3.Implies(unanswered, decision == OUT_OF_RANGE))
    path.goal("out of range exactly by the table", (z3.IntVal(OUT_OF_RANGE) == decision) == out)
    path.goal("diverging exactly by the table", (z3.IntVal(DIVERGING) == decision) == diverges)
    path.goal(
        "a diverging response is that of OffsetsForLeaderEpoch",
        z3.Implies(diverges, z3.And(epoch == response_epoch, end == response_end)),
    )
    path.goal(
        "without divergence there is no diverging response",
        z3.Implies(z3.Not(diverges), z3.And(epoch == UNDEFINED, end == UNDEFINED)),
    )
    reads = z3.IntVal(READ) == decision
    inside = z3.And(log.log_start <= fetch_offset, fetch_offset <= log.log_end)
    path.goal("a read starts inside the log", z3.Implies(reads, inside))
    offset = path.integer("offset")
    before = z3.And(reads, z3.Not(absent), log.log_start <= offset, offset < fetch_offset)
    path.goal(
        "before a read nothing is newer than the epoch the follower names", z3.Implies(before, log.epoch_at(offset) <= last)
    )


def out_of_range(path: ProofPath, entries: int) -> None:
    """Prove the out-of-range reset (AbstractFetcherThread#fetchOffsetAndTruncate)."""
    del entries
    leader_start, leader_end = path.integer("leader_start", low=0), path.integer("leader_end", low=0)
    log_end = path.integer("log_end", low=0)
    path.assume(leader_start <= leader_end, "the leader's start is not above its end")
    # Kinds: 1 truncates at the leader's end, 2 drops the log and begins at the leader's start, 3 keeps it (RESET_TO_..).
    kind, target = path.call("out_of_range_reset", leader_start, leader_end, log_end)
    above, below = leader_end < log_end, leader_start > log_end
    path.goal("a log beyond the leader's end is truncated there", z3.Implies(above, z3.And(kind == 1, target == leader_end)))
    path.goal(
        "a log wholly below the leader's start is dropped", z3.Implies(below, z3.And(kind == 2, target == leader_start))
    )
    path.goal("any other log stays", z3.Implies(z3.Not(z3.Or(above, below)), z3.And(kind == 3, target == log_end)))
    path.goal("the next fetch is inside the leader's log", z3.And(leader_start <= target, target <= leader_end))
    path.goal("a log that reaches the leader's is never dropped", z3.Implies(log_end >= leader_start, kind != 2))


def assign(path: ProofPath, entries: int) -> None:
    """Prove that LeaderEpochFileCache#assign keeps well-formedness and evicts exactly the entries that are not below."""
    log = increasing_log(path, "cache", entries)
    epoch, start = path.integer("epoch", low=0), path.integer("start", low=0)
    # How many entries stay before (epoch, start) is appended.
    keeps = path.call("assign_keeps", log.epochs, log.starts, epoch, start)
    nothing_to_do = z3.And(epoch == log.latest(), log.starts[-1] <= start) if entries else z3.BoolVal(False)
    # The rule returns the plain constant UNDEFINED on the path where there is nothing to do; on the others a count.
    if isinstance(keeps, int) and keeps == UNDEFINED:
        path.goal("nothing to do only for the latest epoch, not before its start", nothing_to_do)
        return
    path.goal("something to do only for a new or corrected entry", z3.Not(nothing_to_do))
    path.goal("a count of entries", z3.And(keeps >= 0, keeps <= entries))
    for i in range(entries):
        below = z3.And(log.epochs[i] < epoch, log.starts[i] < start)
        path.goal("an entry stays exactly when its epoch and start are below", (z3.IntVal(i) < keeps) == below)
    # The count is a term: a case for each value that it can have.
    for count in range(entries + 1):
        after = SymbolicLog([*log.epochs[:count], epoch], [*log.starts[:count], start], log.log_start, log.log_end)
        here = z3.IntVal(count) == keeps
        path.goal("the cache stays strictly increasing", z3.Implies(here, after.strictly_increasing()))


def truncate_from_end(path: ProofPath, entries: int) -> None:
    """Prove LeaderEpochFileCache#truncateFromEnd: no entry from the truncation on; records below it keep their epoch."""
    log = well_formed_log(path, "cache", entries)
    end = path.integer("end", low=UNDEFINED)
    keeps = path.call("truncate_from_end_keeps", log.starts, end)
    path.goal("a count of entries", z3.And(keeps >= 0, keeps <= entries))
    path.goal("an undefined end keeps everything", z3.Implies(end < 0, keeps == z3.IntVal(entries)))
    for i in range(entries):
        path.goal(
            "an entry stays exactly when it starts below the end",
            z3.Implies(end >= 0, (z3.IntVal(i) < keeps) == (log.starts[i] < end)),
        )
    offset = path.integer("offset", low=0)
    # `keeps` is a term: a case for each value that it can have.
    for count in range(entries + 1):
        # A truncation below the log start leaves an empty log there.
        after = SymbolicLog(log.epochs[:count], log.starts[:count], lower(log.log_start, end), lower(log.log_end, end))
        here = z3.And(end >= 0, z3.IntVal(count) == keeps)
        path.goal("the log stays well formed", z3.Implies(here, after.well_formed()))
        path.goal(
            "records below the truncation keep their epoch",
            z3.Implies(z3.And(here, offset < end), after.epoch_at(offset) == log.epoch_at(offset)),
        )


def truncate_from_start(path: ProofPath, entries: int) -> None:
    """Prove LeaderEpochFileCache#truncateFromStart: the covering entry stays, with its start raised."""
    log = well_formed_log(path, "cache", entries)
    start = path.integer("start", low=0)
    path.assume(z3.And(log.log_start <= start, start <= log.log_end), "the new log start lies in the log")
    # How many entries start at or below the new log start; the last of them stays.
    covers = path.call("truncate_from_start_covers", log.starts, start)
    path.goal("a count of entries", z3.And(covers >= 0, covers <= entries))
    # The new log start lies in the log, whose first entry begins at the old one. An empty cache has none to cover.
    path.goal("the first entry is covered", z3.BoolVal(entries == 0) if entries == 0 else covers >= 1)
    offset = path.integer("offset", low=0)
    for count in range(1, entries + 1):
        after = SymbolicLog([*log.epochs[count - 1 :]], [start, *log.starts[count:]], start, log.log_end)
        here = z3.IntVal(count) == covers
        path.goal("the log stays well formed", z3.Implies(here, after.well_formed()))
        path.goal(
            "records at and above the new start keep their epoch",
            z3.Implies(z3.And(here, start <= offset), after.epoch_at(offset) == log.epoch_at(offset)),
        )
