"""When a trace has ended: what is judged then, as no order of concurrent events can matter any more, and what is kept."""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.lineage import agree_until, same_or_unknown
from tidegauge.conformance.kernel.rule_ids import RULE
from tidegauge.conformance.kernel.tally import undecided
from tidegauge.traces.columns import UNKNOWN


def logs_agree(st: s.State) -> None:
    """DATA-02: two logs hold the same records below both high watermarks.

    After an unclean election only members of the ISR are held to it: a replica that has not heard of it still carries the
    high watermark of the time before.
    """
    n = st[s.OPTION, s.BROKERS]
    for a in range(n):
        for b in range(a + 1, n):
            both = 1 << a | 1 << b
            unclean = st[s.WHOLE, s.UNCLEAN] >= 0
            if not unclean or (st[s.WHOLE, s.C_ISR] != UNKNOWN and st[s.WHOLE, s.C_ISR] & both == both):
                agree(st, a, b)


def agree(st: s.State, a: int, b: int) -> None:
    """DATA-02 for one pair."""
    hw_a, hw_b = st[s.REPLICAS + a, s.HW], st[s.REPLICAS + b, s.HW]
    if (hw_a == UNKNOWN and st[s.REPLICAS + a, s.LEO] == UNKNOWN) or (
        hw_b == UNKNOWN and st[s.REPLICAS + b, s.LEO] == UNKNOWN
    ):
        return
    if UNKNOWN in (hw_a, hw_b):
        undecided(st, RULE.DATA_02, 1 << field.HW)
        return
    end = min(hw_a, hw_b)
    start = int(st[s.WHOLE, s.DELETED])
    if end <= start:
        return
    if UNKNOWN in (st[s.REPLICAS + a, s.CACHED], st[s.REPLICAS + b, s.CACHED]):
        undecided(st, RULE.DATA_02, 1 << field.EPOCHS)
        return
    upto = agree_until(st, a, st[s.REPLICAS + a, s.CACHED], b, st[s.REPLICAS + b, s.CACHED], start, end)
    unseen = st[s.WHOLE, s.C_EPOCH] == UNKNOWN or st[s.WHOLE, s.ELECTIONS_UNSEEN] == 1
    if upto < end and unseen and st[s.OPTION, s.ELECTIONS_CLEAN] == 0:
        undecided(st, RULE.DATA_02, 1 << field.CLEAN)
    else:
        same_or_unknown(st, RULE.DATA_02, field.HW, end, upto)


def keep(st: s.State, t: int, final: s.Final, caches: s.Caches) -> None:
    """The last state of trace t."""
    for b in range(st[s.OPTION, s.BROKERS]):
        for k in range(len(s.FINAL)):
            final[t, b, k] = st[s.REPLICAS + b, s.FINAL[k]]
        for k in range(final[t, b, len(s.FINAL) - 1]):
            caches[t, b, k, 0] = st[s.epochs_row(st, b), k]
            caches[t, b, k, 1] = st[s.starts_row(st, b), k]
