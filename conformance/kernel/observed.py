"""Snapshots of a log (Observe): it is as the events before have made it.

Rules of this file

1. While a broker runs its high watermark on disk may be an earlier one; after an orderly stop it is the last one.
2. A member of the ISR has every acknowledged record, as far as every election is known to be clean.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.elections import elections_reported
from tidegauge.conformance.kernel.life import compare_cache
from tidegauge.conformance.kernel.lineage import agree_until, same_or_unknown, set_log_start
from tidegauge.conformance.kernel.log_checks import cache_in_order, set_hw, set_leo
from tidegauge.conformance.kernel.rule_ids import RULE
from tidegauge.conformance.kernel.tally import as_expected, counted_again, decide, undecided
from tidegauge.traces.columns import UNKNOWN


def observe(st: s.State, b: int, leo: int, hw: int, log_start: int, reported: bool, pairs: s.Ints) -> None:
    """Check LOG-02: a snapshot shows the log that the events have made."""
    if st[s.REPLICAS + b, s.LEO] != UNKNOWN and leo != UNKNOWN:
        as_expected(st, RULE.LOG_02, field.LEO, st[s.REPLICAS + b, s.LEO], leo)
    if st[s.REPLICAS + b, s.LOG_START] != UNKNOWN and log_start != UNKNOWN:
        as_expected(st, RULE.LOG_02, field.LOG_START, st[s.REPLICAS + b, s.LOG_START], log_start)
    if hw != UNKNOWN and st[s.REPLICAS + b, s.STOPPED] == 1 and st[s.REPLICAS + b, s.HW] != UNKNOWN:
        as_expected(st, RULE.LOG_02, field.HW, st[s.REPLICAS + b, s.HW], hw)
    elif UNKNOWN not in (hw, st[s.REPLICAS + b, s.HIGHEST_HW]):
        decide(st, RULE.LOG_02, hw <= st[s.REPLICAS + b, s.HIGHEST_HW], field.HW, st[s.REPLICAS + b, s.HIGHEST_HW], hw)
    if leo != UNKNOWN:
        set_leo(st, b, leo)
    if log_start != UNKNOWN:
        set_log_start(st, b, log_start)
    # Of a broker that runs this is the checkpoint, not its high watermark.
    if hw != UNKNOWN and st[s.REPLICAS + b, s.HW] == UNKNOWN and st[s.REPLICAS + b, s.UP] != 1:
        set_hw(st, b, hw)
    if reported:
        compare_cache(st, b, RULE.EPOCH_01 if lacks_own_epoch(st, b, pairs) else RULE.LOG_02, pairs)
        cache_in_order(st, b)
    if st[s.PARTITION, s.C_ISR] != UNKNOWN and st[s.PARTITION, s.C_ISR] >> b & 1 == 1:
        acked_records_present(st, b)


def lacks_own_epoch(st: s.State, b: int, pairs: s.Ints) -> bool:
    """Return whether a leader's cache lacks the epoch that it leads in, though nothing removed it (KAFKA-7415)."""
    n, epoch = st[s.REPLICAS + b, s.CACHED], st[s.REPLICAS + b, s.EPOCH]
    if st[s.REPLICAS + b, s.ROLE] != s.LEADING or epoch == UNKNOWN or n == UNKNOWN or n == 0:
        return False
    return bool(st[s.epochs_row(st, b), n - 1] == epoch and (len(pairs) == 0 or pairs[-2] != epoch))


def acked_records_present(st: s.State, b: int) -> None:
    """Check DATA-03 on a snapshot: a member of the ISR has every acknowledged record."""
    row = s.TALLIES + RULE.DATA_03
    for t in range(st[s.PARTITION, s.TERMS]):
        holds_acked(st, b, t, st[s.term(st, t), s.T_ACKED])
        # Claims of removed terms are compared once and counted for each of them (conformance.kernel.superseded).
        past = st[s.term(st, t), s.T_PAST_ACKS]
        if past > 0:
            held, failed, undecidable = st[row, s.HELD_COUNT], st[row, s.FAILED_COUNT], st[row, s.UNDECIDED_COUNT]
            holds_acked(st, b, t, st[s.term(st, t), s.T_PAST_ACKED])
            counted_again(st, RULE.DATA_03, past - 1, held, failed, undecidable)


def holds_acked(st: s.State, b: int, t: int, end: int) -> None:
    """Check DATA-03: replica b has the log of a term up to `end`, which was acknowledged."""
    if end == 0 or st[s.term(st, t), s.T_EPOCH] < st[s.PARTITION, s.UNCLEAN]:
        return
    leo, cached = st[s.REPLICAS + b, s.LEO], st[s.REPLICAS + b, s.CACHED]
    if not elections_reported(st, st[s.term(st, t), s.T_EPOCH], st[s.PARTITION, s.C_EPOCH]):
        undecided(st, RULE.DATA_03, 1 << field.CLEAN)
    elif leo != UNKNOWN and leo < end:
        decide(st, RULE.DATA_03, False, field.LEO, end, leo)
    elif leo == UNKNOWN or cached == UNKNOWN or st[s.term(st, t), s.T_CACHED] == UNKNOWN:
        undecided(st, RULE.DATA_03, 1 << field.LEO | 1 << field.EPOCHS)
    else:
        n = st[s.OPTION, s.BROKERS]
        upto = agree_until(st, n + t, st[s.term(st, t), s.T_CACHED], b, cached, int(st[s.PARTITION, s.DELETED_UPTO]), end)
        same_or_unknown(st, RULE.DATA_03, field.LEO, end, upto)
