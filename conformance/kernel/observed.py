"""Snapshots of a log: what is told of it whole is what the events have made.

Rules of this file

1. While a broker runs its high watermark on disk may lag behind; of one that has stopped it is the last one.
2. A member of the ISR holds every acknowledged record, as far as every election is known to be clean.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel.elections import elections_reported
from tidegauge.conformance.kernel.life import compare_cache
from tidegauge.conformance.kernel.lineage import agree_until, same_or_unknown, starts_at
from tidegauge.conformance.kernel.log_checks import cache_in_order, set_hw, set_leo
from tidegauge.conformance.kernel.rule_ids import DATA_03, EPOCH_01, LOG_02
from tidegauge.conformance.kernel.state import (
    BROKERS,
    C_EPOCH,
    C_ISR,
    CACHED,
    DELETED,
    EPOCH,
    FAILED_COUNT,
    HELD_COUNT,
    HIGHEST_HW,
    HW,
    LEADING,
    LEO,
    LOG_START,
    OPTION,
    REPLICAS,
    ROLE,
    STOPPED,
    T_ACKED,
    T_CACHED,
    T_EPOCH,
    T_PAST_ACKED,
    T_PAST_ACKS,
    TALLIES,
    TERMS,
    UNCLEAN,
    UNDECIDED_COUNT,
    UP,
    WHOLE,
    Ints,
    State,
    epochs_row,
    term,
)
from tidegauge.conformance.kernel.tally import as_expected, counted_again, decide, undecided
from tidegauge.traces.columns import UNKNOWN


def observe(st: State, b: int, leo: int, hw: int, log_start: int, reported: bool, pairs: Ints) -> None:
    """LOG-02: a snapshot shows what the events have made. While a broker runs its HW on disk may lag behind."""
    if st[REPLICAS + b, LEO] != UNKNOWN and leo != UNKNOWN:
        as_expected(st, LOG_02, field.LEO, st[REPLICAS + b, LEO], leo)
    if st[REPLICAS + b, LOG_START] != UNKNOWN and log_start != UNKNOWN:
        as_expected(st, LOG_02, field.LOG_START, st[REPLICAS + b, LOG_START], log_start)
    if hw != UNKNOWN and st[REPLICAS + b, STOPPED] == 1 and st[REPLICAS + b, HW] != UNKNOWN:
        as_expected(st, LOG_02, field.HW, st[REPLICAS + b, HW], hw)
    elif UNKNOWN not in (hw, st[REPLICAS + b, HIGHEST_HW]):
        decide(st, LOG_02, hw <= st[REPLICAS + b, HIGHEST_HW], field.HW, st[REPLICAS + b, HIGHEST_HW], hw)
    if leo != UNKNOWN:
        set_leo(st, b, leo)
    if log_start != UNKNOWN:
        starts_at(st, b, log_start)
    if hw != UNKNOWN and st[REPLICAS + b, HW] == UNKNOWN and st[REPLICAS + b, UP] != 1:
        set_hw(st, b, hw)
    if reported:
        compare_cache(st, b, EPOCH_01 if lacks_own_epoch(st, b, pairs) else LOG_02, pairs)
        cache_in_order(st, b)
    if st[WHOLE, C_ISR] != UNKNOWN and st[WHOLE, C_ISR] >> b & 1 == 1:
        still_there(st, b)


def lacks_own_epoch(st: State, b: int, pairs: Ints) -> bool:
    """Whether a leader's cache does not have the epoch that it leads in, though nothing removed it (KAFKA-7415)."""
    n, epoch = st[REPLICAS + b, CACHED], st[REPLICAS + b, EPOCH]
    if st[REPLICAS + b, ROLE] != LEADING or epoch == UNKNOWN or n == UNKNOWN or n == 0:
        return False
    return bool(st[epochs_row(st, b), n - 1] == epoch and (len(pairs) == 0 or pairs[-2] != epoch))


def still_there(st: State, b: int) -> None:
    """DATA-03 at the end: a member of the ISR holds every acknowledged record."""
    row = TALLIES + DATA_03
    for t in range(st[WHOLE, TERMS]):
        holds(st, b, t, st[term(st, t), T_ACKED])
        past = st[term(st, t), T_PAST_ACKS]
        if past > 0:
            held, failed, undecidable = st[row, HELD_COUNT], st[row, FAILED_COUNT], st[row, UNDECIDED_COUNT]
            holds(st, b, t, st[term(st, t), T_PAST_ACKED])
            counted_again(st, DATA_03, past - 1, held, failed, undecidable)


def holds(st: State, b: int, t: int, end: int) -> None:
    """DATA-03: replica b has the log of a term up to `end`, which was acknowledged."""
    if end == 0 or st[term(st, t), T_EPOCH] < st[WHOLE, UNCLEAN]:
        return
    leo, cached = st[REPLICAS + b, LEO], st[REPLICAS + b, CACHED]
    if not elections_reported(st, st[term(st, t), T_EPOCH], st[WHOLE, C_EPOCH]):
        undecided(st, DATA_03, 1 << field.CLEAN)
    elif leo != UNKNOWN and leo < end:
        decide(st, DATA_03, False, field.LEO, end, leo)
    elif leo == UNKNOWN or cached == UNKNOWN or st[term(st, t), T_CACHED] == UNKNOWN:
        undecided(st, DATA_03, 1 << field.LEO | 1 << field.EPOCHS)
    else:
        n = st[OPTION, BROKERS]
        upto = agree_until(st, n + t, st[term(st, t), T_CACHED], b, cached, int(st[WHOLE, DELETED]), end)
        same_or_unknown(st, DATA_03, field.LEO, end, upto)
