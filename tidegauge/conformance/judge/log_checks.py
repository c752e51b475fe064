"""Checks that events share: the log before an event is the one the last event left, the log after it is what rules expect.

Rules of this file

1. A reported value wins: after a failed check the judge continues with the observed value, so that one fault is one failure
   and not a series of them.
2. A value that is not reported is derived where every input is known, and becomes unknown otherwise.
3. `st` is the judge's table (conformance.judge.state), `b` the broker that reports the event, whose row is REPLICAS + b, and
   `fieldno` the position of the field that has the reported value. UNKNOWN: no event shows the value. `missing` is a bit
   mask of the fields without which an expected value is UNKNOWN: then the check is undecided for lack of them.
"""

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.field_groups import ReportedLog
from tidegauge.conformance.judge.fields import RULE
from tidegauge.conformance.judge.lineage import cache_truncate, check_order, set_log_start
from tidegauge.conformance.judge.tally import as_expected, decide, same, undecided
from tidegauge.impl.errors import OF_ANOTHER_TOPIC
from tidegauge.impl.rules import NOT_LEADER_OR_FOLLOWER, UNKNOWN_LEADER_EPOCH
from tidegauge.traces.columns import UNKNOWN


def alive(st: s.State, b: int) -> None:
    """Check LIFE-01: a broker that is down reports nothing. From here on b counts as running."""
    if st[s.REPLICAS + b, s.UP] == UNKNOWN:
        st[s.REPLICAS + b, s.UP] = 1
    else:
        decide(st, RULE.LIFE_01, st[s.REPLICAS + b, s.UP] == 1, field.RUNNING, 1, st[s.REPLICAS + b, s.UP])
        st[s.REPLICAS + b, s.UP] = 1


def responds(st: s.State, b: int, error: int) -> None:
    """Check LIFE-01 of a broker that answers a request with this error code; NONE or another.

    A broker that runs without the replica answers too (ReplicaManager#getPartitionOrError), with an error.
    """
    # A broker may be asked for a partition it has no metadata of yet, or while it has the deleted topic of the same name:
    # that does not show that the replica runs.
    if error in OF_ANOTHER_TOPIC:
        return
    # Its metadata names the partition, and it has not made the replica yet, or has it no more. While it loads the log, the
    # replica is there without an epoch: every other one is newer (Partition#checkCurrentLeaderEpoch).
    if error in (NOT_LEADER_OR_FOLLOWER, UNKNOWN_LEADER_EPOCH) and st[s.REPLICAS + b, s.UP] in (s.ABSENT, UNKNOWN):
        return
    alive(st, b)


def acts_on(st: s.State, b: int, partition_epoch: int) -> None:
    """Check EPOCH-06: metadata, or a response to a proposal, is not older than what b acts on. Partition#makeLeader.

    From here on b acts on `partition_epoch`.
    """
    old = st[s.REPLICAS + b, s.PARTITION_EPOCH]
    if UNKNOWN in (old, partition_epoch):
        undecided(st, RULE.EPOCH_06, 1 << field.PARTITION_EPOCH)
    # Before 3.3 a broker acts on metadata of an older partition epoch, too (KAFKA-13790).
    elif s.has_switch(st, s.GUARDS_PARTITION_EPOCH, b):
        decide(st, RULE.EPOCH_06, partition_epoch >= old, field.PARTITION_EPOCH, old, partition_epoch)
    st[s.REPLICAS + b, s.PARTITION_EPOCH] = partition_epoch


def set_leo(st: s.State, b: int, leo: int) -> None:
    """Set the log end of b, which may be UNKNOWN."""
    st[s.REPLICAS + b, s.LEO] = leo


def set_hw(st: s.State, b: int, hw: int) -> None:
    """Set the high watermark of b, which may be UNKNOWN; HIGHEST_HW, the most that a checkpoint may hold, follows it."""
    st[s.REPLICAS + b, s.HW] = hw
    if hw == UNKNOWN:
        st[s.REPLICAS + b, s.HIGHEST_HW] = UNKNOWN
    elif st[s.REPLICAS + b, s.HIGHEST_HW] != UNKNOWN:
        st[s.REPLICAS + b, s.HIGHEST_HW] = max(st[s.REPLICAS + b, s.HIGHEST_HW], hw)


def leo_unmoved(st: s.State, b: int, reported: int, fieldno: int) -> None:
    """Check LOG-01 and TRUNC-04: the LEO that b reports from before an event, or as unmoved, is what the last event left.

    A lower one is a truncation that no event reports (TRUNC-04), a higher one an append that none reports (LOG-01).
    """
    if reported == UNKNOWN:
        return
    leo = st[s.REPLICAS + b, s.LEO]
    if leo != UNKNOWN:
        decide(st, RULE.TRUNC_04, reported >= leo, fieldno, leo, reported)
        decide(st, RULE.LOG_01, reported <= leo, fieldno, leo, reported)
        # Go on from what the event shows, so that one fault is reported once: the epochs of unreported appends are unknown.
        if reported < leo:
            cache_truncate(st, b, reported)
        elif reported > leo:
            st[s.REPLICAS + b, s.CACHED] = UNKNOWN
    set_leo(st, b, reported)


def hw_unmoved(st: s.State, b: int, reported: int, fieldno: int) -> None:
    """Check HW-10: the HW that b reports from before an event, or as unmoved by it, is what the last event left."""
    if reported == UNKNOWN:
        return
    if st[s.REPLICAS + b, s.HW] != UNKNOWN:
        as_expected(st, RULE.HW_10, fieldno, st[s.REPLICAS + b, s.HW], reported)
    set_hw(st, b, reported)


def log_unmoved(st: s.State, b: int, before: ReportedLog) -> None:
    """Check that log end and high watermark are, before an event, what the event before it left."""
    leo_unmoved(st, b, before.leo, field.LEO_BEFORE)
    hw_unmoved(st, b, before.hw, field.HW_BEFORE)


def take_first_log_start(st: s.State, b: int, reported: int) -> None:
    """Take the first log start that a broker reports as it is; a later one is judged by LogStartMoved."""
    if reported != UNKNOWN and st[s.REPLICAS + b, s.LOG_START] == UNKNOWN:
        set_log_start(st, b, reported)


def leo_becomes(st: s.State, b: int, rule: int, expected: int, reported: int, missing: int) -> None:
    """Check by `rule` the LEO that an event reports after moving it, and set it; without a report, to the expected one."""
    same(st, rule, field.LEO, expected, reported, missing)
    set_leo(st, b, reported if reported != UNKNOWN else expected)


def hw_becomes(st: s.State, b: int, rule: int, expected: int, reported: int, missing: int) -> None:
    """Check by `rule` the HW that an event reports after moving it, and set it; without a report, to the expected one."""
    same(st, rule, field.HW, expected, reported, missing)
    set_hw(st, b, reported if reported != UNKNOWN else expected)


def believe(st: s.State, b: int, leo: int, hw: int) -> None:
    """Take LEO and HW of an event as they are, UNKNOWN or not: one without a valid peer cannot be judged."""
    set_leo(st, b, leo)
    set_hw(st, b, hw)


def fail_peer(st: s.State, code: int, peer: int) -> None:
    """Fail an event whose peer is no broker, or the broker that reports it; `code` is the kind of the event.

    An event that does not report its peer (UNKNOWN) does not fail. The rule is that of the request, response or proposal.
    """
    if peer == UNKNOWN:
        return
    rule = RULE.FETCH_10
    if code in (field.SEND_FETCH, field.SEND_EPOCH_REQUEST):
        rule = RULE.FETCH_03
    elif code in (field.HANDLE_FETCH, field.ANSWER_FETCH, field.HANDLE_EPOCH_REQUEST):
        rule = RULE.FETCH_04
    elif code == field.EXPAND_ISR:
        rule = RULE.ISR_01
    # No one value is expected: any other broker would do.
    decide(st, rule, False, field.PEER, UNKNOWN, peer)


def hw_within_log(st: s.State, b: int) -> None:
    """Check HW-01: log start <= HW <= LEO, as far as they are known; a failure names the bound that HW breaks."""
    hw, leo, start = st[s.REPLICAS + b, s.HW], st[s.REPLICAS + b, s.LEO], st[s.REPLICAS + b, s.LOG_START]
    if hw == UNKNOWN or leo == UNKNOWN:
        undecided(st, RULE.HW_01, 1 << (field.HW if hw == UNKNOWN else field.LEO))
    elif hw > leo:
        decide(st, RULE.HW_01, False, field.HW, leo, hw)
    elif hw < start:  # UNKNOWN is below every number
        decide(st, RULE.HW_01, False, field.HW, start, hw)
    else:
        # It held: the two values are not used.
        decide(st, RULE.HW_01, True, field.HW, hw, hw)


def cache_in_order(st: s.State, b: int) -> None:
    """Check EPOCH-02 on a cache that is known."""
    if st[s.REPLICAS + b, s.CACHED] != UNKNOWN:
        check_order(st, b)
