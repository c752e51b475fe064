"""One truncation round between two logs of any length: the step on which convergence rests, without a bound.

The step lemma states: the premises survive a round, the common prefix stays the same, a round that is not the last lowers a
number that is never negative, and the last one ends at the common prefix. By induction over the rounds the loop ends at the
longest common prefix, for caches of any length. Only that induction is made on paper; the bounded proofs (`convergence.py`)
run the loop itself.
"""

from typing import Any

import z3

from tidegauge.spec.proofs.engine.paths import ProofPath
from tidegauge.spec.proofs.engine.symbolic import higher, lower
from tidegauge.spec.proofs.lemmas.any_length import DIVERGING, OUT_OF_RANGE, READ, UNDEFINED, AnyLog, any_log
from tidegauge.spec.proofs.lemmas.convergence import LEADER_NEWEST, ONE_PAST, CommonPrefix


def assume_one_past(path: ProofPath, leader: AnyLog, follower: AnyLog) -> None:
    """Assume premise 2: an epoch in both caches has one start and agreeing logs below it."""
    i, j, o = z3.Ints("i j o")
    low = higher(leader.log_start, follower.log_start)
    shared = z3.And(leader.inside(i), follower.inside(j), leader.epoch(i) == follower.epoch(j))
    one_start = higher(leader.start(i), follower.log_start) == higher(follower.start(j), leader.log_start)
    path.forall([i, j], z3.Implies(shared, one_start), leader.epoch(i), follower.epoch(j))
    below = z3.And(low <= o, o < lower(leader.start(i), follower.start(j)))
    agreeing = z3.Implies(z3.And(shared, below), leader.epoch_at(o) == follower.epoch_at(o))
    path.forall([i, j, o], agreeing, leader.epoch(i), follower.epoch(j), leader.index(o))
    path.forall([i, j, o], agreeing, leader.epoch(i), follower.epoch(j), follower.index(o))


def any_common_prefix(path: ProofPath, leader: AnyLog, follower: AnyLog, name: str) -> CommonPrefix:
    """Return a number defined as the end of the common prefix; one always exists, because offsets are well ordered."""
    end, o = path.integer(name), z3.Int("o")
    low = higher(leader.log_start, follower.log_start)
    shorter = lower(leader.log_end, follower.log_end)
    path.assume(end <= shorter)
    same = z3.Implies(z3.And(low <= o, o < end), leader.epoch_at(o) == follower.epoch_at(o))
    path.forall([o], same, leader.index(o))
    path.forall([o], same, follower.index(o))
    differs = z3.And(low <= end, end < shorter, leader.epoch_at(end) != follower.epoch_at(end))
    path.assume(z3.Or(end == shorter, differs))
    return CommonPrefix(end, low)


def two_any_logs(path: ProofPath) -> tuple[AnyLog, AnyLog, CommonPrefix]:
    """Return leader and follower under the three premises, and their common prefix."""
    leader, follower = any_log(path, "leader"), any_log(path, "follower")
    if not path.drops(ONE_PAST):
        assume_one_past(path, leader, follower)
    path.assume(leader.size > 0)
    path.assume(leader.latest() >= follower.latest(), LEADER_NEWEST)
    return leader, follower, any_common_prefix(path, leader, follower, "common")


def any_truncated(path: ProofPath, log: AnyLog, target: Any) -> AnyLog:
    """Return the follower's log after a truncation at `target`."""
    end = lower(target, log.log_end)
    keeps = path.call("truncate_from_end_keeps", log.starts, end)
    return log.keeps(keeps, lower(log.log_start, end), end)


def after_the_truncation(path: ProofPath, leader: AnyLog, follower: AnyLog, common: CommonPrefix, after: AnyLog) -> None:
    """Set as goals that premises and common prefix outlive the round."""
    offset = path.integer("offset")
    path.goal("the follower's log still covers", z3.And(after.log_start <= after.log_end, after.covers()))
    path.goal("every record left has its entry", after.entry_of(offset))
    path.goal(
        "the follower's log starts where it did, or is empty", z3.Or(after.size == 0, after.log_start == follower.log_start)
    )
    path.goal("a truncation never leaves more", z3.And(after.size <= follower.size, after.log_end <= follower.log_end))
    path.goal("the leader is still the newest", leader.latest() >= after.latest())
    left, low = any_common_prefix(path, leader, after, "common_after"), common.comparable_from
    look_at(path, (leader, follower), common.end, higher(common.end, low), left.end, higher(left.end, low))
    look_at(path, (leader, follower), after.log_end, higher(after.log_end, low))
    path.goal("the common prefix is what it was", higher(left.end, low) == higher(common.end, low))


def look_at(path: ProofPath, logs: tuple[AnyLog, AnyLog], *offsets: Any) -> None:
    """Mention the entries at some offsets, so that triggers match them, without assuming anything about them."""
    seen = z3.Function("seen", z3.IntSort(), z3.BoolSort())
    for log in logs:
        for offset in offsets:
            path.assume(seen(log.index(offset)))


def any_epoch_step(path: ProofPath, _: int) -> None:
    """Prove the step lemma for one OffsetsForLeaderEpoch round between logs of any length."""
    leader, follower, common = two_any_logs(path)
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
    same_start = leader.log_start == follower.log_start
    path.goal(
        "with one log start, done exactly at the common prefix, to the offset",
        z3.Implies(z3.And(same_start, done), target == common.end),
    )
    after = any_truncated(path, follower, target)
    path.goal("not done takes an entry away and leaves one", z3.Or(done, z3.And(after.size > 0, after.size < follower.size)))
    after_the_truncation(path, leader, follower, common, after)


def any_fetch_step(path: ProofPath, _: int) -> None:
    """Prove the step lemma for one fetch between logs of any length."""
    leader, follower, common = two_any_logs(path)
    asked = path.call("latest_epoch", follower.epochs)
    decision, epoch, end = path.call(
        "fetch_decision", leader.epochs, leader.starts, leader.log_start, leader.log_end, follower.log_end, asked
    )
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
