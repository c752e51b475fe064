"""Checks every event shares: what it finds is what the last one left, what it leaves is what the rules say.

Rules of this file

1. What an event tells wins: after a failed check the judge goes on from the observed value, so that one fault is one
   failure and not a trail of them.
2. What it does not tell is derived where every input is known, and becomes unknown otherwise.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel.groups import Log
from tidegauge.conformance.kernel.lineage import cache_truncate, starts_at, well_formed
from tidegauge.conformance.kernel.rule_ids import (
    EPOCH_02,
    EPOCH_06,
    FETCH_03,
    FETCH_04,
    FETCH_10,
    HW_01,
    HW_10,
    ISR_01,
    LIFE_01,
    LOG_01,
    TRUNC_04,
)
from tidegauge.conformance.kernel.state import (
    CACHED,
    GUARDS_PARTITION_EPOCH,
    HIGHEST_HW,
    HW,
    LEO,
    LOG_START,
    OPTION,
    PARTITION_EPOCH,
    REPLICAS,
    UP,
    State,
)
from tidegauge.conformance.kernel.tally import as_expected, decide, same, undecided
from tidegauge.traces.columns import UNKNOWN


def alive(st: State, b: int) -> None:
    """LIFE-01: a broker that is down tells nothing."""
    if st[REPLICAS + b, UP] == UNKNOWN:
        st[REPLICAS + b, UP] = 1
    else:
        decide(st, LIFE_01, st[REPLICAS + b, UP] == 1, field.RUNNING, 1, st[REPLICAS + b, UP])
        st[REPLICAS + b, UP] = 1


def acts_on(st: State, b: int, partition_epoch: int) -> None:
    """EPOCH-06: no metadata, and no response to a proposal, is older than what b acts on. Partition#makeLeader."""
    old = st[REPLICAS + b, PARTITION_EPOCH]
    if UNKNOWN in (old, partition_epoch):
        undecided(st, EPOCH_06, 1 << field.PARTITION_EPOCH)
    elif st[OPTION, GUARDS_PARTITION_EPOCH] == 1:
        decide(st, EPOCH_06, partition_epoch >= old, field.PARTITION_EPOCH, old, partition_epoch)
    st[REPLICAS + b, PARTITION_EPOCH] = partition_epoch


def set_leo(st: State, b: int, leo: int) -> None:
    """The log of b now ends at `leo`, which may be UNKNOWN."""
    st[REPLICAS + b, LEO] = leo


def set_hw(st: State, b: int, hw: int) -> None:
    """The high watermark of b is now `hw`, which may be UNKNOWN."""
    st[REPLICAS + b, HW] = hw
    if hw == UNKNOWN:
        st[REPLICAS + b, HIGHEST_HW] = UNKNOWN
    elif st[REPLICAS + b, HIGHEST_HW] != UNKNOWN:
        st[REPLICAS + b, HIGHEST_HW] = max(st[REPLICAS + b, HIGHEST_HW], hw)


def leo_unmoved(st: State, b: int, reported: int, fieldno: int) -> None:
    """LOG-01 and TRUNC-04: LEO is what the last event left. A lower one is a truncation nobody reported."""
    if reported == UNKNOWN:
        return
    leo = st[REPLICAS + b, LEO]
    if leo != UNKNOWN:
        decide(st, TRUNC_04, reported >= leo, fieldno, leo, reported)
        decide(st, LOG_01, reported <= leo, fieldno, leo, reported)
        if reported < leo:
            cache_truncate(st, b, reported)
        elif reported > leo:
            st[REPLICAS + b, CACHED] = UNKNOWN
    set_leo(st, b, reported)


def hw_unmoved(st: State, b: int, reported: int, fieldno: int) -> None:
    """HW-10: HW is what the last event left."""
    if reported == UNKNOWN:
        return
    if st[REPLICAS + b, HW] != UNKNOWN:
        as_expected(st, HW_10, fieldno, st[REPLICAS + b, HW], reported)
    set_hw(st, b, reported)


def found(st: State, b: int, before: Log) -> None:
    """What an event finds is what the one before it left."""
    leo_unmoved(st, b, before.leo, field.LEO_BEFORE)
    hw_unmoved(st, b, before.hw, field.HW_BEFORE)


def log_start_unmoved(st: State, b: int, reported: int) -> None:
    """A first log start is learned; a later one is judged where it moves."""
    if reported != UNKNOWN and st[REPLICAS + b, LOG_START] == UNKNOWN:
        starts_at(st, b, reported)


def leo_becomes(st: State, b: int, rule: int, expected: int, reported: int, missing: int) -> None:
    """Judge LEO after an event that moves it."""
    same(st, rule, field.LEO, expected, reported, missing)
    set_leo(st, b, reported if reported != UNKNOWN else expected)


def hw_becomes(st: State, b: int, rule: int, expected: int, reported: int, missing: int) -> None:
    """Judge HW after an event that moves it."""
    same(st, rule, field.HW, expected, reported, missing)
    set_hw(st, b, reported if reported != UNKNOWN else expected)


def learn(st: State, b: int, leo: int, hw: int) -> None:
    """An event that does not say whom it concerns cannot be judged, only believed."""
    set_leo(st, b, leo)
    set_hw(st, b, hw)


def nobody(st: State, code: int, peer: int) -> None:
    """A request, a response or a proposal concerns another broker: not none, and not the one that tells it."""
    if peer == UNKNOWN:
        return
    rule = FETCH_10
    if code in (field.SEND_FETCH, field.SEND_EPOCH_REQUEST):
        rule = FETCH_03
    elif code in (field.HANDLE_FETCH, field.RESPONSE_FETCH, field.HANDLE_EPOCH_REQUEST):
        rule = FETCH_04
    elif code == field.EXPAND_ISR:
        rule = ISR_01
    decide(st, rule, False, field.PEER, UNKNOWN, peer)


def within(st: State, b: int) -> None:
    """HW-01: log start <= HW <= LEO, as far as they are known."""
    hw, leo, start = st[REPLICAS + b, HW], st[REPLICAS + b, LEO], st[REPLICAS + b, LOG_START]
    if hw == UNKNOWN or leo == UNKNOWN:
        undecided(st, HW_01, 1 << (field.HW if hw == UNKNOWN else field.LEO))
    elif hw > leo:
        decide(st, HW_01, False, field.HW, leo, hw)
    elif hw < start:  # UNKNOWN is below every number
        decide(st, HW_01, False, field.HW, start, hw)
    else:
        decide(st, HW_01, True, field.HW, hw, hw)


def cache_in_order(st: State, b: int) -> None:
    """EPOCH-02 on a cache that is known."""
    if st[REPLICAS + b, CACHED] != UNKNOWN:
        decide(st, EPOCH_02, well_formed(st, b), field.ENTRIES, st[REPLICAS + b, CACHED], st[REPLICAS + b, CACHED])
