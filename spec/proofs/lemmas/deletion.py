"""One fetch between two logs whose first records are deleted, compared with the whole logs they once were.

The convergence proofs compare the records that both logs still hold. The committed-data invariant is about whole logs: a
truncation must remove nothing that they share, deleted or not. This lemma shows that, with the premises for the whole logs.

A fetch at exactly the leader's log start is compared with nothing: an epoch below every entry of the leader's cache gets
that start as its end (row L4), and the follower reads on, whatever it has below. `READS_AT_START` excludes that case.
"""

import z3

from tidegauge.spec.proofs.engine.paths import ProofPath
from tidegauge.spec.proofs.lemmas.convergence import DIVERGING, READ, two_logs
from tidegauge.spec.proofs.lemmas.logs import SymbolicLog, common_prefix_end

READS_AT_START = "the follower's log does not end exactly at the leader's log start"


def remainder(path: ProofPath, name: str, whole: SymbolicLog) -> SymbolicLog:
    """Return the log without its first records, any number of them. LeaderEpochFileCache#truncateFromStart."""
    start = path.integer(f"{name}.deleted_below", low=0)
    path.assume(start <= whole.log_end)
    covers = path.call("truncate_from_start_covers", whole.starts, start)
    if not covers:
        return SymbolicLog([], [], start, whole.log_end)
    return SymbolicLog(whole.epochs[covers - 1 :], [start, *whole.starts[covers:]], start, whole.log_end)


def fetch_step_with_deleted_records(path: ProofPath, leader_entries: int, follower_entries: int) -> None:
    """Prove that a fetch truncates nothing that the whole logs shared; both began at offset 0 and deleted any part."""
    whole_leader, whole_follower = two_logs(path, leader_entries, follower_entries)
    path.assume(z3.And(whole_leader.log_start == 0, whole_follower.log_start == 0))
    leader, follower = remainder(path, "leader", whole_leader), remainder(path, "follower", whole_follower)
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
