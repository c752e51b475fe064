"""The leader's high watermark: every event that may advance it is judged here.

Rules of this file

1. Where config.lag_rule is off, only the maximal ISR holds the high watermark back and the rule is exact. Where it is on,
   a caught-up replica outside the ISR may hold it back too: the rule bounds it from above by the maximal ISR and from
   below by all replicas (Partition#maybeIncrementLeaderHW, KAFKA-15021).
2. A real leader learns of a committed ISR before its log shows it, if the log shows it at all: with lag_rule on, the ISR
   that the controller has registered in this leader epoch is as good as the one the leader last reported.

`st` is the judge's table (conformance.judge.state): row REPLICAS + b is leader b, the row of a pair (s.pair) has the log end
that b recorded of a follower `r` (REMOTE) and the leader epoch in which it did (REMOTE_EPOCH). `isr` is the committed ISR
and `maximal` the members that count, proposed ones too: bit masks. UNKNOWN, which is below every number: no event shows the
value. Finding F2: a leader that is elected again, and did not follow in between, still counts log ends that it recorded
before; a log end that it should have forgotten is -1, and STALE_LEO has it.
"""

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.elections import led_between, read_min_isr
from tidegauge.conformance.judge.fields import RULE
from tidegauge.conformance.judge.log_checks import set_hw
from tidegauge.conformance.judge.tally import decide, same, undecided
from tidegauge.conformance.judge.terms import commit
from tidegauge.impl.rules import counts_for_high_watermark, leader_high_watermark, under_min_isr
from tidegauge.traces.columns import UNKNOWN


def size_of(members: int, brokers: int) -> int:
    """Count the brokers in a bit mask."""
    count = 0
    for b in range(brokers):
        count += members >> b & 1
    return count


def under_min(st: s.State, b: int, isr: int) -> int:
    """Return whether ISR `isr` of leader b has fewer members than min.insync.replicas: 1, 0 or UNKNOWN.

    Partition#isUnderMinIsr, #effectiveMinIsr: the bar is never higher than the number of replicas, as the leader knows it.
    """
    n = st[s.OPTION, s.BROKERS]
    members, min_isr = size_of(isr, n), read_min_isr(st, b)
    if min_isr == UNKNOWN:
        return UNKNOWN
    # Where the ISR is large enough the number of replicas does not matter.
    if members >= min_isr:
        return 0
    if st[s.OPTION, s.REASSIGNED] == 0:
        return int(under_min_isr(members, min_isr, n))
    # During a reassignment the number of replicas changes. A broker's log does not show when the leader read the change, so
    # the answer is known only where the assignment it acts on and the registered one give the same.
    assigned, registered = st[s.REPLICAS + b, s.ASSIGNED], st[s.PARTITION, s.C_REPLICAS]
    if assigned == UNKNOWN:
        return UNKNOWN
    other = assigned if st[s.OPTION, s.LAG_RULE] == 0 or registered == UNKNOWN else registered
    short = under_min_isr(members, min_isr, size_of(assigned, n))
    return int(short) if short == under_min_isr(members, min_isr, size_of(other, n)) else UNKNOWN


def too_few(st: s.State, b: int, isr: int) -> int:
    """Return whether b's HW must not advance as its committed ISR is below min.insync.replicas: 1, 0 or UNKNOWN.

    Releases before 3.7 do not block it (KAFKA-15583).
    """
    return under_min(st, b, isr) if s.has_switch(st, s.BLOCKS_UNDER_MIN_ISR, b) else 0


def gather_log_ends(st: s.State, b: int, maximal: int) -> bool:
    """Fill the rows LEOS and COUNTED for the leader's rule; return False when a log end that counts is unknown.

    `maximal` is the bit mask of the members that count: the ISR, and those that are proposed.
    """
    n = st[s.OPTION, s.BROKERS]
    all_known = True
    for r in range(n):
        remote = st[s.pair(st, r, b), s.REMOTE]
        st[s.LEOS, r] = remote
        # A replica outside of these may count, too, if it is caught up (two False): no event shows whether it is (rule 1).
        st[s.COUNTED, r] = r != b and counts_for_high_watermark(maximal >> r & 1 == 1, False, False)
        if st[s.COUNTED, r] and remote == UNKNOWN:
            all_known = False
    return all_known


def lowest_log_end(st: s.State, b: int, maximal: int) -> int:
    """Return the lowest LEO of the members in `maximal`, as leader b recorded them; UNKNOWN when one of them is."""
    n = st[s.OPTION, s.BROKERS]
    lowest = st[s.REPLICAS + b, s.LEO]
    for r in range(n):
        if r != b and maximal >> r & 1 == 1:
            lowest = min(lowest, st[s.pair(st, r, b), s.REMOTE])
    return int(lowest)


def is_stale(st: s.State, b: int, r: int) -> bool:
    """Return whether b recorded the LEO of r in an earlier epoch and keeps it by its profile; a repaired b does not (F2)."""
    recorded, epoch = st[s.pair(st, r, b), s.REMOTE_EPOCH], st[s.REPLICAS + b, s.EPOCH]
    return bool(s.has_switch(st, s.KEEPS_REMOTE_LEO, b) and UNKNOWN not in (recorded, epoch) and 0 <= recorded < epoch)


def forget_old_log_ends(st: s.State, b: int, maximal: int, noted: bool) -> bool:
    """Return whether the rule counts a LEO in `maximal` that b recorded in an earlier epoch (is_stale).

    If `noted`, leader b has been seen to count it no more: such LEOs become -1, forgotten.
    """
    counts_stale = False
    for r in range(st[s.OPTION, s.BROKERS]):
        if r != b and maximal >> r & 1 == 1 and is_stale(st, b, r):
            counts_stale = True
            if noted:
                st[s.pair(st, r, b), s.REMOTE] = -1
                st[s.pair(st, r, b), s.REMOTE_EPOCH] = -1
    return counts_stale


def lowest_with_stale(st: s.State, b: int, maximal: int) -> int:
    """Return the lowest LEO of the members in `maximal` if b still counts what it recorded before its election (F2)."""
    lowest = st[s.REPLICAS + b, s.LEO]
    for r in range(st[s.OPTION, s.BROKERS]):
        if r != b and maximal >> r & 1 == 1:
            p = s.pair(st, r, b)
            lowest = min(lowest, st[p, s.STALE_LEO] if st[p, s.REMOTE] == -1 else st[p, s.REMOTE])
    return int(lowest)


def expected_hw(st: s.State, b: int, isr: int, trigger: int, reported: int) -> int:
    """Return the HW of leader b by its rule, UNKNOWN when an input is.

    `trigger`: whether the leader tried to advance its HW (1, 0, UNKNOWN), `reported`: the HW that it reports to have now.
    """
    hw, leo = st[s.REPLICAS + b, s.HW], st[s.REPLICAS + b, s.LEO]
    if trigger == 0:
        return int(hw)
    if UNKNOWN in (hw, leo):
        return UNKNOWN
    # A proposed member counts from the moment of the proposal: the controller may have added it (maximal ISR, KIP-497).
    pending, short = st[s.REPLICAS + b, s.PENDING], too_few(st, b, isr)
    if UNKNOWN in (isr, pending, short) or not gather_log_ends(st, b, isr | pending):
        return UNKNOWN
    n = st[s.OPTION, s.BROKERS]
    tried = leader_high_watermark(hw, leo, s.entries(st, s.LEOS, n), s.flags(st, s.COUNTED, n), short == 1)
    # It may not have tried: then the old HW is right, too, and where it reports none, it is unknown which of the two it has.
    stays = trigger == UNKNOWN and tried != hw and reported in (UNKNOWN, hw)
    return int(reported) if stays else tried


def advance(st: s.State, b: int, reported: int, trigger: int) -> None:
    """Judge the HW that leader b reports after an event (HW-03, HW-04), and note what is committed by it.

    `trigger`: whether the event makes it try to advance its HW: 1, 0, UNKNOWN.
    """
    hw = st[s.REPLICAS + b, s.HW]
    isr = st[s.REPLICAS + b, s.ISR]
    if st[s.OPTION, s.LAG_RULE] == 1:
        # Which replicas outside the ISR are caught up depends on the leader's clock, which no trace has: HW-03 is a lower
        # bound here, and HW-02 (below, in hw_raised) the upper one.
        lower_bound_of_hw(st, b, isr, reported, trigger)
        after = reported
    else:
        expected = expected_hw(st, b, isr, trigger, reported)
        stayed_put = expected not in (UNKNOWN, hw, reported) and reported in (UNKNOWN, hw)
        # A leader may do better than this profile: one that forgets, with each new leader epoch, where its followers stood
        # (F2 repaired) does not advance yet. That is no fault. Note that it has forgotten, and judge the rest accordingly.
        if stayed_put and forget_old_log_ends(st, b, isr | st[s.REPLICAS + b, s.PENDING], reported == hw):
            expected = reported
        same(st, RULE.HW_03, field.HW, expected, reported, 1 << field.REMOTE_LEO | 1 << field.ISR | 1 << field.HW)
        after = reported if reported != UNKNOWN else expected
    if reported != UNKNOWN and hw != UNKNOWN:
        decide(st, RULE.HW_04, reported >= hw, field.HW, hw, reported)
        if reported > hw:
            hw_raised(st, b, isr, reported)
    set_hw(st, b, after)
    # What is below the leader's high watermark is committed: every later leader must have it (DATA-01).
    if after != UNKNOWN:
        commit(st, b, after)


def lower_bound_of_hw(st: s.State, b: int, isr: int, reported: int, trigger: int) -> None:
    """Check HW-03 where replicas outside the ISR may count (rule 1): the HW is not below what all replicas have.

    `trigger` is 1 where the leader surely tried to advance, 0 where it did not, UNKNOWN where it may have.
    """
    hw, leo = st[s.REPLICAS + b, s.HW], st[s.REPLICAS + b, s.LEO]
    if trigger != 1:
        return
    if reported == UNKNOWN or hw == UNKNOWN or leo == UNKNOWN or isr == UNKNOWN:
        undecided(st, RULE.HW_03, 1 << field.HW | 1 << field.LEO | 1 << field.ISR)
        return
    n = st[s.OPTION, s.BROKERS]
    if not gather_log_ends(st, b, (1 << n) - 1):
        undecided(st, RULE.HW_03, 1 << field.REMOTE_LEO)
        return
    short = too_few(st, b, isr)
    if short == UNKNOWN:
        undecided(st, RULE.HW_03, 1 << field.REPLICAS)
        return
    # Whoever counts, the lowest of all replicas is the least that the rule can give.
    lowest = leader_high_watermark(hw, leo, s.entries(st, s.LEOS, n), s.flags(st, s.COUNTED, n), short == 1)
    decide(st, RULE.HW_03, reported >= lowest, field.HW, lowest, reported)


def isr_in_force(st: s.State, b: int, isr: int, reported: int) -> int:
    """Return the committed ISR with which leader b moved its HW to `reported`; by rule 2 maybe not `isr`, its last one.

    UNKNOWN where no event shows which ISR is registered.
    """
    registered, pending = st[s.PARTITION, s.C_ISR], st[s.REPLICAS + b, s.PENDING]
    if st[s.OPTION, s.LAG_RULE] == 0 or isr == UNKNOWN or st[s.PARTITION, s.C_EPOCH] != st[s.REPLICAS + b, s.EPOCH]:
        return isr
    # The ISR it reported allows this HW: no need to assume that it has read another. The log of a broker:
    #
    #     leader      ISR {1,2,3}                          HW 4 -> 7      (no line when the shrunk ISR arrives)
    #     controller                ISR {1,2} registered
    #     fetches     b2 at 7, b3 at 4
    #
    # With {1,2,3} the HW could not pass 4; with the registered {1,2} it may be 7, so that is the ISR it acts on.
    lowest = lowest_log_end(st, b, isr if pending == UNKNOWN else isr | pending)
    if lowest == UNKNOWN or lowest >= reported:
        return isr
    if registered == UNKNOWN:
        return UNKNOWN
    if lowest_log_end(st, b, registered) < reported:  # UNKNOWN is below every number
        return isr
    # The leader has read the registered ISR, so its proposal is answered too.
    st[s.REPLICAS + b, s.ISR] = registered
    st[s.REPLICAS + b, s.PENDING] = 0
    return int(registered)


def hw_raised(st: s.State, b: int, isr: int, reported: int) -> None:
    """Check that leader b may move its HW up to `reported`: HW-02, every member of the maximal ISR has the records below it.

    HW-08: no log end that lets it pass is from before another leader. HW-09: the ISR is not below min.insync.replicas.
    """
    isr = isr_in_force(st, b, isr, reported)
    if isr == UNKNOWN:
        undecided(st, RULE.HW_02, 1 << field.ISR)
        undecided(st, RULE.HW_08, 1 << field.ISR)
        undecided(st, RULE.HW_09, 1 << field.ISR)
        return
    # A proposal of which nothing is known can only add members to those that count: the known ones count in any case.
    pending = st[s.REPLICAS + b, s.PENDING]
    counted = isr if pending == UNKNOWN else isr | pending
    lowest = lowest_log_end(st, b, counted)
    if lowest == UNKNOWN:
        undecided(st, RULE.HW_02, 1 << field.REMOTE_LEO)
    elif pending == UNKNOWN and reported <= lowest:
        undecided(st, RULE.HW_02, 1 << field.ISR)
    elif reported > lowest and reported <= lowest_with_stale(st, b, counted):
        # The HW passed only because old log ends were counted: the fault is F2, so HW-08 fails and not HW-02. Forgotten log
        # ends have epoch -1, so log_ends_are_current does not count them again.
        decide(st, RULE.HW_08, False, field.HW, st[s.REPLICAS + b, s.HW], reported)
    else:
        decide(st, RULE.HW_02, reported <= lowest, field.HW, lowest, reported)
    short = too_few(st, b, isr)
    if short == UNKNOWN:
        undecided(st, RULE.HW_09, 1 << field.REPLICAS)
    else:
        decide(st, RULE.HW_09, short == 0, field.HW, st[s.REPLICAS + b, s.HW], reported)
    log_ends_are_current(st, b, counted, reported)


def log_ends_are_current(st: s.State, b: int, maximal: int, reported: int) -> None:
    """Check HW-08: no log end that lets the HW pass was recorded before another broker led (finding F2).

    `maximal` is the bit mask of the members that count (Partition#maximalIsr), `reported` the HW that the leader has now.
    """
    n = st[s.OPTION, s.BROKERS]
    epoch = st[s.REPLICAS + b, s.EPOCH]
    for r in range(n):
        if r != b and maximal >> r & 1 == 1:
            recorded = st[s.pair(st, r, b), s.REMOTE_EPOCH]
            # Recorded since it leads in this epoch.
            if recorded == epoch and epoch != UNKNOWN:
                decide(st, RULE.HW_08, True, field.HW, reported, reported)
            elif recorded == UNKNOWN or epoch == UNKNOWN:
                undecided(st, RULE.HW_08, 1 << field.REMOTE_LEO)
            elif recorded >= 0:
                # An old LEO is right as long as nobody else led: without another leader the follower did not truncate.
                other = led_between(st, b, recorded, epoch)
                if other == UNKNOWN:
                    undecided(st, RULE.HW_08, 1 << field.LEADER)
                else:
                    decide(st, RULE.HW_08, other == 0, field.HW, st[s.REPLICAS + b, s.HW], reported)
