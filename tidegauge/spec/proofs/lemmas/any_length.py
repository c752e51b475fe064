"""The tables, proved for caches of any length.

A log is three functions of unknown extent: the epoch and the start of entry i, and `index(o)`, the entry that holds the
record at offset o. The helpers' loops are replaced by their contracts (`loops.py`), so a rule has finitely many paths at
any length. Statements about all entries are assumed with explicit triggers and proved for an arbitrary one. A trigger is a
term: the solver uses a statement for the integers at which the term occurs in a goal or an assumption.

A lemma takes a path, the run on which it assumes and sets goals; its second argument, `_`, is the size that only bounded
lemmas use. `path.call` runs a rule of `impl.rules` on terms. `end_offset_for` returns (epoch, end offset), both UNDEFINED
when the leader has no response; `truncation_target` returns (row of the table T1 to T5, offset to truncate at, done: whether
the follower asks no more); `fetch_decision` returns (READ, DIVERGING or OUT_OF_RANGE, diverging epoch, its end offset). A
result may be a plain number: `z3.IntVal(n) == result` and `z3.BoolVal(b) == result` are formulas in any case.

`path.forall(variables, formula, *triggers)` assumes a statement about all integers, `path.assume(formula, premise)` a
formula, but where the run drops the premise of that name; `path.drops(premise)` returns whether it does. An `AnySeq` is a
sequence of any length: `function(i)` is the term of its member at i. A `CommonPrefix` has the end of the longest common
prefix of two logs, and `comparable_from`, the higher of their log starts.
"""

from dataclasses import dataclass
from typing import Any

import z3

from tidegauge.spec.proofs.engine.loops import any_sequence
from tidegauge.spec.proofs.engine.paths import GOAL_EFFORT, ProofPath
from tidegauge.spec.proofs.engine.symbolic import AnySeq, higher, lower
from tidegauge.spec.proofs.lemmas.convergence import LEADER_NEWEST, ONE_PAST, CommonPrefix

UNDEFINED = -1
READ, DIVERGING, OUT_OF_RANGE = 0, 1, 2


def quantified_solver() -> Any:
    """Return a solver that uses statements only at their triggers: a failed proof is `unknown`, no wrong model."""
    solver = z3.Solver()
    # Model-based instantiation would search for models of statements about all integers, perhaps without an end.
    solver.set("mbqi", False)
    solver.set("rlimit", GOAL_EFFORT)
    return solver


@dataclass(frozen=True)
class AnyLog:
    """A replica's log with any number of cache entries."""

    epochs: AnySeq
    starts: AnySeq
    index: Any
    """offset -> the entry that covers it"""
    size: Any
    """how many entries"""
    log_start: Any
    log_end: Any

    def epoch(self, i: Any) -> Any:
        """Return the epoch of entry i."""
        return self.epochs.function(i)

    def start(self, i: Any) -> Any:
        """Return the first offset of entry i."""
        return self.starts.function(i)

    def epoch_at(self, offset: Any) -> Any:
        """Return the epoch of the record at `offset`."""
        return self.epoch(self.index(offset))

    def holds(self, offset: Any) -> Any:
        """State that there is a record at `offset`."""
        return z3.And(self.log_start <= offset, offset < self.log_end)

    def inside(self, i: Any) -> Any:
        """State that i is the index of an entry."""
        return z3.And(i >= 0, i < self.size)

    def latest(self) -> Any:
        """Return the last cached epoch, UNDEFINED when there is none."""
        return z3.If(self.size == 0, UNDEFINED, self.epoch(self.size - 1))

    def covers(self) -> Any:
        """State that the first entry begins at the log start, and none beyond the log end; no entries, no records."""
        entries = z3.And(self.start(0) == self.log_start, self.start(self.size - 1) <= self.log_end)
        return z3.If(self.size == 0, self.log_start == self.log_end, entries)

    def entry_of(self, offset: Any) -> Any:
        """State what `index` is at an offset that holds a record: the last entry that starts at or below it."""
        at = self.index(offset)
        ends = z3.Implies(at + 1 < self.size, offset < self.start(at + 1))
        return z3.Implies(self.holds(offset), z3.And(self.inside(at), self.start(at) <= offset, ends))

    def keeps(self, size: Any, log_start: Any, log_end: Any) -> "AnyLog":
        """Return the log with only the first `size` entries, and with this log start and log end."""
        path = self.epochs.path
        epochs, starts = AnySeq(path, self.epochs.function, size), AnySeq(path, self.starts.function, size)
        return AnyLog(epochs, starts, self.index, size, log_start, log_end)


def increasing(path: ProofPath, column: AnySeq) -> None:
    """Assume that the values of a column strictly increase and are at least 0."""
    i, j = z3.Ints("i j")
    f = column.function
    path.forall([i, j], z3.Implies(z3.And(i >= 0, i < j, j < column.size), f(i) < f(j)), f(i), f(j))
    path.forall([i], z3.Implies(z3.And(i >= 0, i < column.size), f(i) >= 0), f(i))


def any_log(path: ProofPath, name: str) -> AnyLog:
    """Return a well-formed log of any length: epochs and starts rise, and the entries cover its offsets.

    `index` maps an offset to the entry that covers it; the solver uses it for the offsets of which the term
    `index(o)` occurs.
    """
    size = path.integer(f"{name}.entries", low=0)
    epochs, starts = any_sequence(path, f"{name}.epoch", size), any_sequence(path, f"{name}.start", size)
    index = z3.Function(f"{name}.index", z3.IntSort(), z3.IntSort())
    log = AnyLog(epochs, starts, index, size, path.integer(f"{name}.log_start", 0), path.integer(f"{name}.log_end", 0))
    path.assume(log.log_start <= log.log_end)
    path.assume(log.covers())
    increasing(path, epochs)
    increasing(path, starts)
    o = z3.Int("o")
    path.forall([o], log.entry_of(o), index(o))
    return log


def an_entry(path: ProofPath, log: AnyLog) -> Any:
    """Return the index of an arbitrary entry: a goal proved for it holds for all."""
    at = path.integer("at")
    path.assume(log.inside(at))
    return at


def any_response_table(path: ProofPath, _: int) -> None:
    """Prove rows L1 to L5 of the response to OffsetsForLeaderEpoch, on a cache of any length."""
    log = any_log(path, "cache")
    requested = path.integer("requested", low=UNDEFINED)
    epoch, end = path.call("end_offset_for", log.epochs, log.starts, log.log_end, requested)
    no_response = z3.And(epoch == UNDEFINED, end == UNDEFINED)
    filled = log.size > 0
    last = log.epoch(log.size - 1)
    path.goal("L1: undefined epoch has no response", z3.Implies(requested == UNDEFINED, no_response))
    path.goal(
        "L2: latest epoch ends at the log end",
        z3.Implies(z3.And(filled, requested == last), z3.And(epoch == requested, end == log.log_end)),
    )
    path.goal("L3: newer than everything has no response", z3.Implies(z3.Or(z3.Not(filled), requested > last), no_response))
    older = z3.And(filled, requested >= 0, requested < log.epoch(0))
    path.goal(
        "L4: older than everything ends at the first start",
        z3.Implies(older, z3.And(epoch == requested, end == log.start(0))),
    )
    # An arbitrary entry that has a next one: a goal proved for it holds for all.
    at = path.integer("at")
    between = z3.And(at >= 0, at + 1 < log.size, log.epoch(at) <= requested, requested < log.epoch(at + 1))
    path.goal(
        "L5: largest epoch not above, ends where the next starts",
        z3.Implies(between, z3.And(epoch == log.epoch(at), end == log.start(at + 1))),
    )
    answered = end != UNDEFINED
    path.goal("epoch and end are undefined together", (epoch == UNDEFINED) == (end == UNDEFINED))
    path.goal("the end lies in the log", z3.Implies(answered, z3.And(log.log_start <= end, end <= log.log_end)))
    path.goal("the answered epoch is not above the asked one", epoch <= requested)
    offset = path.integer("offset")
    path.goal(
        "a record lies below the end exactly when its epoch is not above the asked one",
        z3.Implies(z3.And(answered, log.holds(offset)), (offset < end) == (log.epoch_at(offset) <= requested)),
    )


def any_response_monotony(path: ProofPath, _: int) -> None:
    """Prove that a later epoch never gets an earlier response, at any length."""
    log = any_log(path, "cache")
    first, second = path.integer("first", low=0), path.integer("second", low=0)
    path.assume(first <= second)
    epoch_1, end_1 = path.call("end_offset_for", log.epochs, log.starts, log.log_end, first)
    epoch_2, end_2 = path.call("end_offset_for", log.epochs, log.starts, log.log_end, second)
    answered = z3.And(end_1 != UNDEFINED, end_2 != UNDEFINED)
    rises = z3.And(epoch_1 <= epoch_2, end_1 <= end_2)
    path.goal("epochs and ends rise with the asked epoch", z3.Implies(answered, rises))


def any_assign(path: ProofPath, _: int) -> None:
    """Prove which entries LeaderEpochFileCache#assign keeps before it appends the new one, at any length."""
    log = any_log(path, "cache")
    epoch, start = path.integer("epoch", low=0), path.integer("start", low=0)
    keeps = path.call("assign_keeps", log.epochs, log.starts, epoch, start)
    nothing_to_do = z3.And(log.size > 0, epoch == log.epoch(log.size - 1), start >= log.start(log.size - 1))
    # The rule says UNDEFINED instead of a count when the cache stays as it is.
    undefined = z3.IntVal(UNDEFINED) == keeps
    path.goal("nothing to do only for the latest epoch, not before its start", undefined == nothing_to_do)
    path.goal("a count of entries", z3.Or(undefined, z3.And(keeps >= 0, keeps <= log.size)))
    at = an_entry(path, log)
    below = z3.And(log.epoch(at) < epoch, log.start(at) < start)
    path.goal("an entry stays exactly when its epoch and start are below", z3.Or(undefined, (at < keeps) == below))


def any_truncate(path: ProofPath, _: int) -> None:
    """Prove which entries a truncation at either end keeps, at any length."""
    log = any_log(path, "cache")
    end, start = path.integer("end", low=UNDEFINED), path.integer("start", low=0)
    keeps = path.call("truncate_from_end_keeps", log.starts, end)
    at = an_entry(path, log)
    path.goal("an undefined end keeps everything", z3.Implies(end < 0, keeps == log.size))
    path.goal(
        "an entry stays exactly when it starts below the end", z3.Implies(end >= 0, (at < keeps) == (log.start(at) < end))
    )
    covers = path.call("truncate_from_start_covers", log.starts, start)
    path.goal(
        "an entry is covered exactly when it starts at or below the new start", (at < covers) == (log.start(at) <= start)
    )


def any_truncation_table(path: ProofPath, _: int) -> None:
    """Prove rows T1 to T5 on a follower's cache of any length."""
    log = any_log(path, "follower")
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
    t3 = z3.And(answered, z3.Or(log.size == 0, log.epoch(log.size - 1) < leader_epoch))
    reached = z3.And(answered, z3.Not(t3))  # the follower's cache reaches the epoch of the response

    def row_is(number: int, offset: Any, completed: bool) -> Any:
        """State that the rule takes this row, truncates at this offset, and is done or not."""
        return z3.And(row == number, target == offset, z3.BoolVal(completed) == done)

    path.goal("T1: no response truncates at the fetch offset", z3.Implies(t1, row_is(1, fetch_offset, completed=True)))
    path.goal("T2: a response without epoch is the truncation", z3.Implies(t2, row_is(2, capped, completed=True)))
    path.goal(
        "T3: an epoch newer than the follower's cache is the truncation", z3.Implies(t3, row_is(3, capped, completed=True))
    )
    at_first_start = row_is(5, lower(log.start(0), leader_end, log.log_end), completed=True)
    path.goal(
        "T5: an epoch older than the follower's cache truncates at its first start",
        z3.Implies(z3.And(reached, leader_epoch < log.epoch(0)), at_first_start),
    )
    at = an_entry(path, log)
    own_end = z3.If(at + 1 < log.size, log.start(at + 1), log.log_end)
    at_lower_end = row_is(5, lower(own_end, leader_end, log.log_end), completed=True)
    path.goal(
        "T5: a shared epoch is truncated at the lower of its two ends",
        z3.Implies(z3.And(reached, leader_epoch == log.epoch(at)), at_lower_end),
    )
    gap = z3.And(reached, at + 1 < log.size, log.epoch(at) < leader_epoch, leader_epoch < log.epoch(at + 1))
    path.goal(
        "T4: an epoch the follower never saw cuts off everything newer, and asks again",
        z3.Implies(gap, row_is(4, lower(log.start(at + 1), log.log_end), completed=False)),
    )
    path.goal("the truncation is not above the log end", z3.Implies(z3.Not(t1), target <= log.log_end))


def any_divergence_table(path: ProofPath, _: int) -> None:
    """Prove when a leader reads, diverges or is out of range for a fetch, at any length; `divergence_table` says more."""
    log = any_log(path, "leader")
    fetch_offset = path.integer("fetch_offset", low=0)
    last = path.integer("last_fetched_epoch", low=UNDEFINED)
    own_epoch, own_end = path.call("end_offset_for", log.epochs, log.starts, log.log_end, last)
    decision, epoch, end = path.call(
        "fetch_decision", log.epochs, log.starts, log.log_start, log.log_end, fetch_offset, last
    )
    # A fetch without a last fetched epoch, as a follower with an empty cache sends it: only offsets are compared.
    absent, too_low = last == UNDEFINED, fetch_offset < log.log_start
    out_without_epoch = z3.And(absent, z3.Or(too_low, fetch_offset > log.log_end))
    out = z3.Or(out_without_epoch, z3.And(z3.Not(absent), z3.Or(own_end == UNDEFINED, too_low)))
    # The leader has no record of that epoch, or its records of it end below the fetch offset (Partition#readRecords).
    diverges = z3.And(z3.Not(absent), z3.Not(out), z3.Or(own_epoch < last, own_end < fetch_offset))
    path.goal("out of range exactly by the table", (z3.IntVal(OUT_OF_RANGE) == decision) == out)
    path.goal("diverging exactly by the table", (z3.IntVal(DIVERGING) == decision) == diverges)
    path.goal(
        "a diverging response is that of OffsetsForLeaderEpoch",
        z3.Implies(diverges, z3.And(epoch == own_epoch, end == own_end)),
    )
    reads = z3.IntVal(READ) == decision
    path.goal(
        "a read starts inside the log", z3.Implies(reads, z3.And(log.log_start <= fetch_offset, fetch_offset <= log.log_end))
    )
    offset = path.integer("offset")
    before = z3.And(reads, z3.Not(absent), log.log_start <= offset, offset < fetch_offset)
    path.goal(
        "before a read nothing is newer than the epoch the follower names", z3.Implies(before, log.epoch_at(offset) <= last)
    )


def any_leader_rule(path: ProofPath, _: int) -> None:
    """Prove Partition#maybeIncrementLeaderHW over any number of replicas: never down, at or below every counted LEO."""
    hw, log_end, size = path.integer("hw", low=0), path.integer("log_end", low=0), path.integer("replicas", low=0)
    path.assume(hw <= log_end)
    # The recorded LEO of each replica, and whether the high watermark waits for it.
    leos, counted = any_sequence(path, "leos", size), any_sequence(path, "counted", size, truth=True)
    # Whether the ISR is below min.insync.replicas.
    too_few = path.boolean("too_few")
    after = path.call("leader_high_watermark", hw, log_end, leos, counted, too_few)
    path.goal("never down", after >= hw)
    path.goal("inside the log", after <= log_end)
    path.goal("below the minimum ISR it stays", z3.Implies(too_few, after == hw))
    # An arbitrary replica that counts.
    at = path.integer("at")
    counts = z3.And(at >= 0, at < size, counted.function(at))
    path.goal("raised at most to every counted LEO", z3.Implies(z3.And(after > hw, counts), after <= leos.function(at)))
    path.goal("an unknown counted LEO holds it", z3.Implies(z3.And(counts, leos.function(at) == UNDEFINED), after == hw))


# One truncation round between two logs of any length: the step on which convergence rests, without a bound.
#
# The step lemma states: the premises survive a round, the common prefix stays the same, a round that is not the last lowers
# a number that is never negative, and the last one ends at the common prefix. By induction over the rounds the loop ends at
# the longest common prefix, for caches of any length. Only that induction is made on paper; the bounded proofs
# (`convergence.py`) run the loop itself.


def assume_one_past(path: ProofPath, leader: AnyLog, follower: AnyLog) -> None:
    """Assume premise 2 of `convergence.py`: an epoch in both caches has one start and agreeing logs below it."""
    i, j, o = z3.Ints("i j o")
    low = higher(leader.log_start, follower.log_start)
    shared = z3.And(leader.inside(i), follower.inside(j), leader.epoch(i) == follower.epoch(j))
    # A log start above an epoch's start hides it, so starts are compared as far as both logs reach back.
    one_start = higher(leader.start(i), follower.log_start) == higher(follower.start(j), leader.log_start)
    path.forall([i, j], z3.Implies(shared, one_start), leader.epoch(i), follower.epoch(j))
    below = z3.And(low <= o, o < lower(leader.start(i), follower.start(j)))
    agreeing = z3.Implies(z3.And(shared, below), leader.epoch_at(o) == follower.epoch_at(o))
    path.forall([i, j, o], agreeing, leader.epoch(i), follower.epoch(j), leader.index(o))
    path.forall([i, j, o], agreeing, leader.epoch(i), follower.epoch(j), follower.index(o))


def any_common_prefix(path: ProofPath, leader: AnyLog, follower: AnyLog, name: str) -> CommonPrefix:
    """Return the longest common prefix of two logs: its end is an integer `name`, about which its definition is assumed.

    That assumes nothing about the logs: such an end always exists, because offsets are well ordered.
    """
    end, o = path.integer(name), z3.Int("o")
    low = higher(leader.log_start, follower.log_start)
    shorter = lower(leader.log_end, follower.log_end)
    path.assume(end <= shorter)
    same = z3.Implies(z3.And(low <= o, o < end), leader.epoch_at(o) == follower.epoch_at(o))
    path.forall([o], same, leader.index(o))
    path.forall([o], same, follower.index(o))
    differs = z3.And(low <= end, end < shorter, leader.epoch_at(end) != follower.epoch_at(end))
    # The prefix is the longest: it ends with a log, or at the first difference.
    path.assume(z3.Or(end == shorter, differs))
    return CommonPrefix(end, low)


def two_any_logs(path: ProofPath) -> tuple[AnyLog, AnyLog, CommonPrefix]:
    """Return leader and follower under the three premises of `convergence.py`, and their common prefix."""
    # Premise 1: `any_log` assumes it of each log, and no run drops it.
    leader, follower = any_log(path, "leader"), any_log(path, "follower")
    if not path.drops(ONE_PAST):
        assume_one_past(path, leader, follower)
    path.assume(leader.size > 0)
    path.assume(leader.latest() >= follower.latest(), LEADER_NEWEST)
    return leader, follower, any_common_prefix(path, leader, follower, "common")


def any_truncated(path: ProofPath, log: AnyLog, target: Any) -> AnyLog:
    """Return the follower's log after a truncation at `target`; one below the log start leaves an empty log."""
    # A target above the log end truncates nothing.
    end = lower(target, log.log_end)
    keeps = path.call("truncate_from_end_keeps", log.starts, end)
    return log.keeps(keeps, lower(log.log_start, end), end)


def after_the_truncation(path: ProofPath, leader: AnyLog, follower: AnyLog, common: CommonPrefix, after: AnyLog) -> None:
    """Set as goals that premises and common prefix outlive a round; `after` is the follower's log after it."""
    offset = path.integer("offset")
    # Premise 1, of what a truncation may change: no entry changes, so the cache still increases.
    path.goal("the follower's log still covers", z3.And(after.log_start <= after.log_end, after.covers()))
    path.goal("every record left has its entry", after.entry_of(offset))
    path.goal(
        "the follower's log starts where it did, or is empty", z3.Or(after.size == 0, after.log_start == follower.log_start)
    )
    path.goal("a truncation never leaves more", z3.And(after.size <= follower.size, after.log_end <= follower.log_end))
    path.goal("the leader is still the newest", leader.latest() >= after.latest())
    # The common prefix of the logs that are left, compared above `low`, below which no offset can be compared.
    left, low = any_common_prefix(path, leader, after, "common_after"), common.comparable_from
    # No goal mentions the records at these offsets, where the two prefixes could differ: triggers must meet them.
    look_at(path, (leader, follower), common.end, higher(common.end, low), left.end, higher(left.end, low))
    look_at(path, (leader, follower), after.log_end, higher(after.log_end, low))
    path.goal("the common prefix is what it was", higher(left.end, low) == higher(common.end, low))


def look_at(path: ProofPath, logs: tuple[AnyLog, AnyLog], *offsets: Any) -> None:
    """Mention the entries at some offsets to the solver, so that triggers match them; nothing is assumed about them."""
    seen = z3.Function("seen", z3.IntSort(), z3.BoolSort())
    for log in logs:
        for offset in offsets:
            # True of an uninterpreted function: it says nothing, but the term is there for the triggers to match.
            path.assume(seen(log.index(offset)))


def any_epoch_step(path: ProofPath, _: int) -> None:
    """Prove the step lemma for one OffsetsForLeaderEpoch round between logs of any length.

    The round truncates nothing common; it reaches the common prefix, or takes a cache entry away and leaves the premises
    true.
    """
    leader, follower, common = two_any_logs(path)
    # In epoch mode the follower needs an epoch that it can ask for.
    path.assume(follower.size > 0)
    asked = path.call("latest_epoch", follower.epochs)
    epoch, end = path.call("end_offset_for", leader.epochs, leader.starts, leader.log_end, asked)
    _, target, done = path.call(
        "truncation_target", follower.epochs, follower.starts, follower.log_end, follower.log_end, epoch, end
    )
    path.goal("the leader has a response", z3.And(epoch != UNDEFINED, end != UNDEFINED))
    path.goal("the truncation is not above the log end", target <= follower.log_end)
    path.goal("nothing common is truncated", common.is_kept(target))
    path.goal("done exactly at the common prefix", z3.Implies(done, common.is_reached(target)))
    # Below the higher of two log starts nothing can be compared, so there the offset itself may differ.
    same_start = leader.log_start == follower.log_start
    path.goal(
        "with one log start, done exactly at the common prefix, to the offset",
        z3.Implies(z3.And(same_start, done), target == common.end),
    )
    after = any_truncated(path, follower, target)
    path.goal("not done takes an entry away and leaves one", z3.Or(done, z3.And(after.size > 0, after.size < follower.size)))
    after_the_truncation(path, leader, follower, common, after)


def any_fetch_step(path: ProofPath, _: int) -> None:
    """Prove the step lemma for one fetch at any length: it reads at the common prefix, or truncates nothing common."""
    leader, follower, common = two_any_logs(path)
    asked = path.call("latest_epoch", follower.epochs)
    decision, epoch, end = path.call(
        "fetch_decision", leader.epochs, leader.starts, leader.log_start, leader.log_end, follower.log_end, asked
    )
    # One path per decision: the rule has returned a constant, so this is a plain comparison.
    if decision == OUT_OF_RANGE:
        beyond = z3.And(follower.size == 0, follower.log_end > leader.log_end)
        path.goal(
            "out of range only below the leader's log, or empty beyond it",
            z3.Or(follower.log_end < leader.log_start, beyond),
        )
        return
    if decision == READ:
        path.goal("a read starts exactly at the common prefix", common.is_reached(follower.log_end))
        path.goal(
            "a read starts inside the leader's log",
            z3.And(leader.log_start <= follower.log_end, follower.log_end <= leader.log_end),
        )
        return
    path.goal("what is left is divergence", z3.IntVal(DIVERGING) == decision)
    row, target, _ = path.call(
        "truncation_target", follower.epochs, follower.starts, follower.log_end, follower.log_end, epoch, end
    )
    path.goal("a diverging response meets row T4 or T5", z3.Or(z3.IntVal(4) == row, z3.IntVal(5) == row))
    path.goal("nothing common is truncated", common.is_kept(target))
    after = any_truncated(path, follower, target)
    path.goal(
        "a truncation takes an entry or records away", z3.Or(after.size < follower.size, after.log_end < follower.log_end)
    )
    path.goal("an emptied log ends inside the leader's", z3.Or(after.size > 0, after.log_end <= leader.log_end))
    after_the_truncation(path, leader, follower, common, after)
