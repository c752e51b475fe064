"""When a trace has ended: what is judged then, as no order of concurrent events can matter any more, and what is kept."""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel.lineage import agree_until, same_or_unknown
from tidegauge.conformance.kernel.rule_ids import DATA_02
from tidegauge.conformance.kernel.state import (
    BROKERS,
    C_EPOCH,
    C_ISR,
    CACHED,
    DELETED,
    ELECTIONS_CLEAN,
    ELECTIONS_UNSEEN,
    FINAL,
    HW,
    LEO,
    OPTION,
    REPLICAS,
    UNCLEAN,
    WHOLE,
    Caches,
    Final,
    State,
    epochs_row,
    starts_row,
)
from tidegauge.conformance.kernel.tally import undecided
from tidegauge.traces.columns import UNKNOWN


def logs_agree(st: State) -> None:
    """DATA-02: two logs hold the same records below both high watermarks.

    After an unclean election only members of the ISR are held to it: a replica that has not heard of it still carries the
    high watermark of the time before.
    """
    n = st[OPTION, BROKERS]
    for a in range(n):
        for b in range(a + 1, n):
            both = 1 << a | 1 << b
            unclean = st[WHOLE, UNCLEAN] >= 0
            if not unclean or (st[WHOLE, C_ISR] != UNKNOWN and st[WHOLE, C_ISR] & both == both):
                agree(st, a, b)


def agree(st: State, a: int, b: int) -> None:
    """DATA-02 for one pair."""
    hw_a, hw_b = st[REPLICAS + a, HW], st[REPLICAS + b, HW]
    if (hw_a == UNKNOWN and st[REPLICAS + a, LEO] == UNKNOWN) or (hw_b == UNKNOWN and st[REPLICAS + b, LEO] == UNKNOWN):
        return
    if UNKNOWN in (hw_a, hw_b):
        undecided(st, DATA_02, 1 << field.HW)
        return
    end = min(hw_a, hw_b)
    start = int(st[WHOLE, DELETED])
    if end <= start:
        return
    if UNKNOWN in (st[REPLICAS + a, CACHED], st[REPLICAS + b, CACHED]):
        undecided(st, DATA_02, 1 << field.EPOCHS)
        return
    upto = agree_until(st, a, st[REPLICAS + a, CACHED], b, st[REPLICAS + b, CACHED], start, end)
    unseen = st[WHOLE, C_EPOCH] == UNKNOWN or st[WHOLE, ELECTIONS_UNSEEN] == 1
    if upto < end and unseen and st[OPTION, ELECTIONS_CLEAN] == 0:
        undecided(st, DATA_02, 1 << field.CLEAN)
    else:
        same_or_unknown(st, DATA_02, field.HW, end, upto)


def keep(st: State, t: int, final: Final, caches: Caches) -> None:
    """The last state of trace t."""
    for b in range(st[OPTION, BROKERS]):
        for k in range(len(FINAL)):
            final[t, b, k] = st[REPLICAS + b, FINAL[k]]
        for k in range(final[t, b, len(FINAL) - 1]):
            caches[t, b, k, 0] = st[epochs_row(st, b), k]
            caches[t, b, k, 1] = st[starts_row(st, b), k]
