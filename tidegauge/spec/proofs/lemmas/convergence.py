"""Bounded proofs that repeated truncation ends at the longest common prefix (LCP).

Two modes, as in Kafka: *epoch* mode, where the follower asks OffsetsForLeaderEpoch with its latest epoch and truncates until
the table says done (AbstractFetcherThread#truncateToEpochEndOffsets, KIP-101 and KIP-279); *fetch* mode, where it fetches at
its log end and truncates at every diverging response until the leader lets it read (KIP-595, Kafka 2.8 and later).

The step lemmas hold for one round from any two logs; the loop lemmas run rounds to the end. Premises, each of them
needed (`premises.py` shows the loss without it):

1. both caches strictly increase and cover their logs;
2. one past per entry: an epoch in both caches has one start and agreeing logs below it;
3. the leader's cache is not empty and its latest epoch is not below the follower's.

A lemma takes a path, the run on which it assumes and sets goals, and how many cache entries each log has. `path.call` runs a
rule of `impl.rules` on terms. `truncation_target` returns (row of the table T1 to T5, offset to truncate at, done: whether
the follower asks no more), `fetch_decision` returns (READ, DIVERGING or OUT_OF_RANGE, diverging epoch, its end offset). The
former takes log end and fetch offset of the follower, which fetches at its log end: so that is there twice.

`path.assume(formula, premise)` assumes a formula, but where the run drops the premise of that name: `path.dropped` has the
names that it drops. `path.once(name, build)` builds a large term on the first path only and uses it again on the others.
`path.goal(name, formula)` sets what is to prove, `path.show(name, value)` what counter-models show. A *decision* of a rule
is a plain int: the path has taken one of the rule's branches, each of which returns a constant.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import z3

from tidegauge.spec.proofs.engine.paths import ProofPath
from tidegauge.spec.proofs.engine.symbolic import higher, lower
from tidegauge.spec.proofs.lemmas.logs import (
    SymbolicLog,
    common_prefix_end,
    comparable_from,
    one_past,
    records_match,
    well_formed_log,
)

UNDEFINED = -1
READ, DIVERGING, OUT_OF_RANGE = 0, 1, 2

ONE_PAST = "every entry has one past"
RECORDS_MATCH = "records match"
LEADER_NEWEST = "the leader's latest epoch is not below the follower's"

Response = Callable[[ProofPath, SymbolicLog, Any], tuple[Any, Any]]
"""path, leader, requested epoch -> (epoch, end offset): the response to OffsetsForLeaderEpoch"""


def kip_279_response(path: ProofPath, leader: SymbolicLog, requested: Any) -> tuple[Any, Any]:
    """Answer by the rule: the largest epoch not above the requested one, and its end."""
    epoch, end = path.call("end_offset_for", leader.epochs, leader.starts, leader.log_end, requested)
    return epoch, end


def kip_101_response(path: ProofPath, leader: SymbolicLog, requested: Any) -> tuple[Any, Any]:
    """Answer as KIP-101 has it: the end offset without its epoch, which the follower takes to be the requested one (T5)."""
    _, end = kip_279_response(path, leader, requested)
    return requested, end


def two_logs(path: ProofPath, leader_entries: int, follower_entries: int) -> tuple[SymbolicLog, SymbolicLog]:
    """Return leader and follower with any logs that satisfy the three premises; a dropped premise is not assumed."""
    # Premise 1: `well_formed_log` assumes it of each log, as the two premises INCREASING and COVERING.
    leader = well_formed_log(path, "leader", leader_entries)
    follower = well_formed_log(path, "follower", follower_entries)
    # Premise 2. Where it is dropped a weaker one takes its place, log matching as Raft states it: it alone is not enough.
    if ONE_PAST in path.dropped:
        path.assume(path.once(RECORDS_MATCH, lambda: records_match(leader, follower)), RECORDS_MATCH)
    path.assume(path.once(ONE_PAST, lambda: one_past(leader, follower)), ONE_PAST)
    # Premise 3. Every leader that the lemmas are proved for has entries (`groups.py`).
    path.assume(leader.latest() >= follower.latest(), LEADER_NEWEST)
    return leader, follower


def truncated(path: ProofPath, log: SymbolicLog, target: Any) -> SymbolicLog:
    """Return the follower's log after a truncation; one below the log start leaves an empty log (UnifiedLog#truncateTo)."""
    # A target above the log end truncates nothing.
    end = lower(target, log.log_end)
    keeps = path.call("truncate_from_end_keeps", log.starts, end)
    return SymbolicLog(log.epochs[:keeps], log.starts[:keeps], lower(log.log_start, end), end)


@dataclass(frozen=True)
class CommonPrefix:
    """The common prefix of two logs: its end, and the first offset at which they are comparable, the higher log start."""

    end: Any
    comparable_from: Any

    def is_reached(self, offset: Any) -> Any:
        """State that `offset` is the end of the common prefix; below the comparable part all offsets are equally good."""
        return higher(offset, self.comparable_from) == higher(self.end, self.comparable_from)

    def is_kept(self, target: Any) -> Any:
        """State that a truncation at `target` removes nothing common."""
        return z3.Or(target >= self.end, self.is_nothing())

    def is_nothing(self) -> Any:
        """State that the logs share no comparable record."""
        return self.end <= self.comparable_from


def common_part(path: ProofPath, leader: SymbolicLog, follower: SymbolicLog) -> CommonPrefix:
    """Return the longest common prefix of the two logs of a lemma, built once for all its paths."""
    return CommonPrefix(path.once("common", lambda: common_prefix_end(leader, follower)), comparable_from(leader, follower))


def _premises_survive(path: ProofPath, leader: SymbolicLog, after: SymbolicLog) -> None:
    """Set as goals that the three premises hold of the follower's log `after` the truncation: the next round needs them."""
    path.goal("the follower's log stays well formed", after.well_formed())
    path.goal("there is still one past per entry", one_past(leader, after))
    path.goal("the leader is still the newest", leader.latest() >= after.latest())


def epoch_step(path: ProofPath, leader_entries: int, follower_entries: int, response: Response = kip_279_response) -> None:
    """Prove that one OffsetsForLeaderEpoch round truncates nothing common and makes progress.

    `response` is the leader's rule. Progress: the round is done at the common prefix, or takes a cache entry away.
    """
    leader, follower = two_logs(path, leader_entries, follower_entries)
    common = common_part(path, leader, follower)
    epoch, end = response(path, leader, follower.latest())
    path.show("response", [epoch, end])
    _, target, done = path.call(
        "truncation_target", follower.epochs, follower.starts, follower.log_end, follower.log_end, epoch, end
    )
    path.show("target", target)
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
    after = truncated(path, follower, target)
    path.goal("not done takes an entry away and leaves one", z3.Or(done, z3.BoolVal(0 < len(after) < len(follower))))
    _premises_survive(path, leader, after)


def fetch_step(path: ProofPath, leader_entries: int, follower_entries: int) -> None:
    """Prove that one fetch truncates nothing common and makes progress, or reads at the common prefix."""
    leader, follower = two_logs(path, leader_entries, follower_entries)
    common = common_part(path, leader, follower)
    decision, epoch, end = path.call(
        "fetch_decision", leader.epochs, leader.starts, leader.log_start, leader.log_end, follower.log_end, follower.latest()
    )
    path.show("decision", decision)
    # Each decision has goals of its own. `isinstance`: a term compared with an int would be a formula, which is no bool.
    if isinstance(decision, int) and decision == OUT_OF_RANGE:
        # A follower with an empty cache sends no epoch, so the leader can only compare offsets.
        beyond = z3.And(z3.BoolVal(follower_entries == 0), follower.log_end > leader.log_end)
        path.goal(
            "out of range only below the leader's log, or empty beyond it",
            z3.Or(follower.log_end < leader.log_start, beyond),
        )
        return
    if isinstance(decision, int) and decision == READ:
        path.goal("a read starts exactly at the common prefix", common.is_reached(follower.log_end))
        path.goal(
            "a read starts inside the leader's log",
            z3.And(leader.log_start <= follower.log_end, follower.log_end <= leader.log_end),
        )
        return
    # What is left is DIVERGING: the follower truncates by the response.
    path.show("response", [epoch, end])
    row, target, _ = path.call(
        "truncation_target", follower.epochs, follower.starts, follower.log_end, follower.log_end, epoch, end
    )
    path.show("target", target)
    path.goal("a diverging response meets row T4 or T5", z3.Or(z3.IntVal(4) == row, z3.IntVal(5) == row))
    path.goal("nothing common is truncated", common.is_kept(target))
    after = truncated(path, follower, target)
    path.goal(
        "a truncation takes an entry or records away",
        z3.Or(z3.BoolVal(len(after) < len(follower)), after.log_end < follower.log_end),
    )
    path.goal("a truncation never leaves more", z3.And(len(after) <= len(follower), after.log_end <= follower.log_end))
    path.goal("an emptied log ends inside the leader's", z3.Or(z3.BoolVal(len(after) > 0), after.log_end <= leader.log_end))
    _premises_survive(path, leader, after)


def epoch_loop(path: ProofPath, leader_entries: int, follower_entries: int, response: Response = kip_279_response) -> None:
    """Prove that OffsetsForLeaderEpoch rounds, answered by `response`, end at the common prefix."""
    leader, follower = two_logs(path, leader_entries, follower_entries)
    common = common_part(path, leader, follower)
    now = follower
    # Each round that is not the last takes at least one entry away (epoch_step), so there are not more rounds than these.
    for _ in range(follower_entries + 1):
        epoch, end = response(path, leader, now.latest())
        _, target, done = path.call("truncation_target", now.epochs, now.starts, now.log_end, now.log_end, epoch, end)
        now = truncated(path, now, target)
        # `done` is plain where the row decides it; a term forks the path.
        if path.decide(done) if not isinstance(done, bool) else done:
            path.goal("the loop ends at the common prefix", common.is_reached(now.log_end))
            return
    # Proved if no path comes here.
    path.goal("the loop ends within one round per entry", z3.BoolVal(False))


def fetch_loop(path: ProofPath, leader_entries: int, follower_entries: int) -> None:
    """Prove that fetching and truncating ends at the common prefix, or out of range."""
    leader, follower = two_logs(path, leader_entries, follower_entries)
    common = common_part(path, leader, follower)
    now = follower
    # One round more than in epoch mode: after the last truncation a fetch must read.
    for _ in range(follower_entries + 2):
        decision, epoch, end = path.call(
            "fetch_decision", leader.epochs, leader.starts, leader.log_start, leader.log_end, now.log_end, now.latest()
        )
        if isinstance(decision, int) and decision == OUT_OF_RANGE:
            path.goal("out of range only when nothing is common", common.is_nothing())
            return
        if isinstance(decision, int) and decision == READ:
            path.goal("the loop ends at the common prefix", common.is_reached(now.log_end))
            return
        _, target, _ = path.call("truncation_target", now.epochs, now.starts, now.log_end, now.log_end, epoch, end)
        now = truncated(path, now, target)
    # Proved if no path comes here.
    path.goal("the loop ends within two fetches more than entries", z3.BoolVal(False))


# One fetch between two logs whose first records are deleted, compared with the whole logs they once were.
#
# The convergence proofs compare the records that both logs still hold. The committed-data invariant is about whole logs: a
# truncation must remove nothing that they share, deleted or not. This lemma shows that, with the premises for the whole
# logs.
#
# A fetch at exactly the leader's log start is compared with nothing: an epoch below every entry of the leader's cache gets
# that start as its end (row L4), and the follower reads on, whatever it has below. `READS_AT_START` excludes that case.


READS_AT_START = "the follower's log does not end exactly at the leader's log start"


def remainder(path: ProofPath, name: str, whole: SymbolicLog) -> SymbolicLog:
    """Return the log after any number of its first records were deleted. LeaderEpochFileCache#truncateFromStart.

    `name` is that of the log in counter-models.
    """
    start = path.integer(f"{name}.deleted_below", low=0)
    path.assume(start <= whole.log_end)
    # How many entries begin at or below the new start; the last of them stays, with its start raised.
    covers = path.call("truncate_from_start_covers", whole.starts, start)
    # No entry begins at or below the new start: the whole log begins at 0, so its cache is empty.
    if not covers:
        return SymbolicLog([], [], start, whole.log_end)
    # The covering entry and all later ones.
    return SymbolicLog(whole.epochs[covers - 1 :], [start, *whole.starts[covers:]], start, whole.log_end)


def fetch_step_with_deleted_records(path: ProofPath, leader_entries: int, follower_entries: int) -> None:
    """Prove that a fetch truncates nothing that the whole logs shared.

    The whole logs begin at offset 0; leader and follower are what is left after each has deleted any number of records.
    """
    whole_leader, whole_follower = two_logs(path, leader_entries, follower_entries)
    path.assume(z3.And(whole_leader.log_start == 0, whole_follower.log_start == 0))
    leader, follower = remainder(path, "leader", whole_leader), remainder(path, "follower", whole_follower)
    # An offset: the end of the longest common prefix of the whole logs.
    common = path.once("common", lambda: common_prefix_end(whole_leader, whole_follower))
    path.assume(follower.log_end != leader.log_start, READS_AT_START)
    decision, epoch, end = path.call(
        "fetch_decision", leader.epochs, leader.starts, leader.log_start, leader.log_end, follower.log_end, follower.latest()
    )
    if isinstance(decision, int) and decision == READ:
        path.goal("a read goes on from what the whole logs share", common == follower.log_end)
    elif isinstance(decision, int) and decision == DIVERGING:
        _, target, _ = path.call(
            "truncation_target", follower.epochs, follower.starts, follower.log_end, follower.log_end, epoch, end
        )
        path.show("target", target)
        path.goal("a truncation takes nothing that the whole logs share", target >= common)
    else:
        path.goal("out of range only below the leader's log start", follower.log_end < leader.log_start)
