"""The end of a trace: checks that the order of concurrent events could disturb earlier, and the copied last state."""

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.fields import RULE
from tidegauge.conformance.judge.lineage import agree_until, same_or_unknown
from tidegauge.conformance.judge.tally import undecided
from tidegauge.traces.columns import UNKNOWN


def logs_agree(st: s.State) -> None:
    """Check DATA-02: two logs have the same records below both high watermarks."""
    n = st[s.OPTION, s.BROKERS]
    # After an unclean election only members of the ISR are compared: a replica that has not fetched since still has the high
    # watermark, and records, of the time before.
    for a in range(n):
        for b in range(a + 1, n):
            both = 1 << a | 1 << b
            unclean = st[s.PARTITION, s.UNCLEAN] >= 0
            if not unclean or (st[s.PARTITION, s.C_ISR] != UNKNOWN and st[s.PARTITION, s.C_ISR] & both == both):
                pair_agrees(st, a, b)


def pair_agrees(st: s.State, a: int, b: int) -> None:
    """Check DATA-02 for one pair of replicas."""
    hw_a, hw_b = st[s.REPLICAS + a, s.HW], st[s.REPLICAS + b, s.HW]
    if (hw_a == UNKNOWN and st[s.REPLICAS + a, s.LEO] == UNKNOWN) or (
        hw_b == UNKNOWN and st[s.REPLICAS + b, s.LEO] == UNKNOWN
    ):  # no event of this replica: not even an undecided check
        return
    if UNKNOWN in (hw_a, hw_b):
        undecided(st, RULE.DATA_02, 1 << field.HW)
        return
    end = min(hw_a, hw_b)
    start = int(st[s.PARTITION, s.DELETED_UPTO])
    if end <= start:
        return
    if UNKNOWN in (st[s.REPLICAS + a, s.CACHED], st[s.REPLICAS + b, s.CACHED]):
        undecided(st, RULE.DATA_02, 1 << field.EPOCHS)
        return
    upto = agree_until(st, a, st[s.REPLICAS + a, s.CACHED], b, st[s.REPLICAS + b, s.CACHED], start, end)
    unseen = st[s.PARTITION, s.C_EPOCH] == UNKNOWN or st[s.PARTITION, s.ELECTIONS_UNOBSERVED] == 1
    if upto < end and unseen and st[s.OPTION, s.ELECTIONS_CLEAN] == 0:
        undecided(st, RULE.DATA_02, 1 << field.CLEAN)
    else:
        same_or_unknown(st, RULE.DATA_02, end, upto)


def copy_final_state(st: s.State, t: int, final: s.Final, caches: s.Caches) -> None:
    """Copy the last state of trace t."""
    for b in range(st[s.OPTION, s.BROKERS]):
        for k in range(len(s.FINAL)):
            final[t, b, k] = st[s.REPLICAS + b, s.FINAL[k]]
        for k in range(final[t, b, len(s.FINAL) - 1]):
            caches[t, b, k, 0] = st[s.epochs_row(st, b), k]
            caches[t, b, k, 1] = st[s.starts_row(st, b), k]
