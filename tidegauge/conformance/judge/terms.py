"""Terms: who led which epoch with which log, and what was committed and acknowledged in it.

Rules of this file

1. A term is one leader epoch of one leader: the log it was elected with, and how far its high watermark and its acks=all
   responses went. Its own records follow its election log.
2. A later leader must have what an earlier one committed. Terms are compared pairwise, whenever either side learns
   something: the order in which a trace reports concurrent events of two brokers makes no difference.
3. An unclean election (or one that may have been) between two terms ends the claim of the earlier one.
4. A term carries the claims of terms before it that were removed (conformance.judge.compaction), and counts them all.
5. A broker acknowledges what it has appended itself, maybe after its term. So its own records in a term, from the log it
   was elected with (T_LEO) to where they ended (T_END), say which append an acknowledged offset belongs to:

       b1   epoch 0 appends 5..7    epoch 1 of b2: b1 truncates to 5, copies 5..9    acknowledges up to 7: lost

`st` is the judge's table (conformance.judge.state), `t` the number of a term, whose row is s.term(st, t), and n + t the
number of its log, with n brokers. A *claim* is a column of a term, T_COMMITTED or T_ACKED: the offset up to which every
later leader must have the term's log. UNKNOWN, which is below every number: no event shows the value. -1 (UNDEFINED): there
is none. Columns that begin with R_ are of a registration: a leader epoch with its leader, ISR, partition epoch and replicas.
CACHED, or T_CACHED, is the number of entries of an epoch cache.
"""

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.compaction import compare_registrations, room_for_a_registration, room_for_a_term
from tidegauge.conformance.judge.elections import elections_reported, leader_of, unclean_between
from tidegauge.conformance.judge.fields import RULE
from tidegauge.conformance.judge.lineage import agree_until, copy_log_to_term, deletions_known, epoch_at, same_or_unknown
from tidegauge.conformance.judge.tally import counted_again, decide, undecided
from tidegauge.traces.columns import UNKNOWN


def add_registration(st: s.State, epoch: int, leader: int, isr: int, partition_epoch: int, replicas: int) -> None:
    """Note that `leader` leads `epoch`; the ISR is UNKNOWN if the controller left it out, -1 if a replica reported this.

    ISR and replicas are bit masks of brokers. Registrations are a sorted set: a search for an epoch ends early, and the same
    reports in another order give the same table.
    """
    room_for_a_registration(st)
    n = st[s.PARTITION, s.REGISTRATIONS]
    row, at = s.registration(st, n), n
    st[row, s.R_EPOCH] = epoch
    st[row, s.R_LEADER] = leader
    st[row, s.R_ISR] = isr
    st[row, s.R_PARTITION_EPOCH] = partition_epoch
    st[row, s.R_REPLICAS] = replicas
    st[row, s.R_UNCLEAN] = 1 if epoch == st[s.PARTITION, s.UNCLEAN] else 0
    # From the end: a registration is nearly always later than all others.
    while at > 0:
        order = compare_registrations(st, s.registration(st, at - 1), row)
        if order == 0:
            return
        if order < 0:
            break
        at -= 1
    # It was written behind the last one: move it to its place, and those after it up by one.
    if at < n:
        for k in range(s.R_EPOCH, s.R_REPLICAS + 1):
            value = st[row, k]
            for i in range(n, at, -1):
                st[s.registration(st, i), k] = st[s.registration(st, i - 1), k]
            st[s.registration(st, at), k] = value
    st[s.PARTITION, s.REGISTRATIONS] = n + 1


def check_one_leader(st: s.State, epoch: int, leader: int) -> None:
    """Check EPOCH-04: a leader epoch has one leader, whichever node reports it. The first report becomes a registration."""
    leader_before = leader_of(st, epoch, leader)
    if leader_before == UNKNOWN:
        # -1: a replica reports it, which knows neither partition epoch nor assignment here.
        add_registration(st, epoch, leader, -1, UNKNOWN, UNKNOWN)
    else:
        decide(st, RULE.EPOCH_04, leader_before == leader, field.LEADER, leader_before, leader)


def open_term(st: s.State, b: int) -> None:
    """Note that replica b, whose epoch and log are up to date, begins to lead; check DATA-01 and DATA-03."""
    # In these epochs it opens none. The term could be accused wrongly: an unclean election in a removed epoch can no longer
    # be seen; and a leader that was elected before it lost its disk may be back before its session has ended, and leads on.
    if st[s.REPLICAS + b, s.EPOCH] <= max(st[s.PARTITION, s.FORGOTTEN_UPTO], st[s.REPLICAS + b, s.LOST_UPTO]):
        forget_appends(st, b)
        return
    room_for_a_term(st)
    t = st[s.PARTITION, s.TERMS]
    st[s.PARTITION, s.TERMS] = t + 1
    st[s.REPLICAS + b, s.TERM] = t
    for k in range(s.TERM_COLUMNS):
        st[s.term(st, t), k] = 0
    st[s.term(st, t), s.T_EPOCH] = st[s.REPLICAS + b, s.EPOCH]
    st[s.term(st, t), s.T_LEADER] = b
    st[s.term(st, t), s.T_LEO] = st[s.REPLICAS + b, s.LEO]
    st[s.term(st, t), s.T_CACHED] = st[s.REPLICAS + b, s.CACHED]
    st[s.term(st, t), s.T_END] = -1
    copy_log_to_term(st, b, t)
    # The latest leader claims most: the first failure, which is the one kept, then names the nearest leader.
    for earlier in range(t - 1, -1, -1):
        check_claim(st, earlier, t, s.T_COMMITTED, RULE.DATA_01)
        check_inherited_claims(st, earlier, t, s.T_PAST_COMMITTED, s.T_PAST_COMMITS, RULE.DATA_01)
        check_claim(st, earlier, t, s.T_ACKED, RULE.DATA_03)
        check_inherited_claims(st, earlier, t, s.T_PAST_ACKED, s.T_PAST_ACKS, RULE.DATA_03)


def term_of(st: s.State, leader: int, epoch: int) -> int:
    """Return the number of the term of a leader in an epoch; -1 when the trace has not reported its election."""
    for t in range(st[s.PARTITION, s.TERMS] - 1, -1, -1):
        if st[s.term(st, t), s.T_EPOCH] == epoch and st[s.term(st, t), s.T_LEADER] == leader:
            return t
    return -1


def commit(st: s.State, b: int, end: int) -> None:
    """Note that leader b has a high watermark of `end`; check DATA-01 against later terms if it raises the term's claim."""
    t = st[s.REPLICAS + b, s.TERM]
    if t >= 0 and end > st[s.term(st, t), s.T_COMMITTED]:
        st[s.term(st, t), s.T_COMMITTED] = end
        check_later_terms(st, t, s.T_COMMITTED, RULE.DATA_01)


def close_term(st: s.State, b: int) -> None:
    """Note that b leads no more, or begins to lead another epoch: here its own records of that term end."""
    t = st[s.REPLICAS + b, s.TERM]
    if t >= 0:
        st[s.term(st, t), s.T_END] = st[s.REPLICAS + b, s.LEO]
    st[s.REPLICAS + b, s.TERM] = -1


def forget_appends(st: s.State, b: int) -> None:
    """Note that b may have led and appended without an event: where its own records end in each of its terms is unknown."""
    for t in range(st[s.PARTITION, s.TERMS]):
        if st[s.term(st, t), s.T_LEADER] == b:
            st[s.term(st, t), s.T_END] = UNKNOWN


def term_of_append(st: s.State, b: int, end: int) -> int:
    """Return the number of the term in which b last appended the record that ends at `end`; -1 where that is not known."""
    appended_in = -1
    for t in range(st[s.PARTITION, s.TERMS]):
        if st[s.term(st, t), s.T_LEADER] == b:
            first, last = st[s.term(st, t), s.T_LEO], st[s.term(st, t), s.T_END]
            # It leads in this term now: its records go on to its log end.
            if t == st[s.REPLICAS + b, s.TERM]:
                last = st[s.REPLICAS + b, s.LEO]
            # It may have appended the record in this term, or not: UNKNOWN is below every number, so `first` may be it.
            if first < end and UNKNOWN in (first, last):
                appended_in = -1
            elif first < end <= last:
                appended_in = t
    return appended_in


def last_term_with(st: s.State, b: int, end: int, t: int) -> int:
    """Return the last term of b, from t on, whose log has the record up to `end` that it appended in term t.

    Only there it may have been committed: a leader that misses an epoch in between leads on, and owes nothing to it.

        b1   epoch 2 appends 5, epoch 4 commits 5       b2   epoch 3, without 5: right, it was not committed yet
    """
    epoch, n = st[s.term(st, t), s.T_EPOCH], st[s.OPTION, s.BROKERS]
    latest = t
    for later in range(t + 1, st[s.PARTITION, s.TERMS]):
        row = s.term(st, later)
        if st[row, s.T_LEADER] == b and (st[row, s.T_LEO] == UNKNOWN or st[row, s.T_LEO] >= end):
            cached = st[row, s.T_CACHED]
            if cached == UNKNOWN or epoch_at(st, n + later, cached, end - 1) in (epoch, UNKNOWN):
                latest = later
    return latest


def acknowledge(st: s.State, b: int, end: int, epoch: int) -> None:
    """Note that b has acknowledged, with acks=all, its append up to `end` in leader epoch `epoch`, which may be UNKNOWN.

    Check DATA-03 against b's own log, and against later terms if this raises the claim of the term.
    """
    # First the term in which it appended the record, then the last one whose claim that is.
    t = -1
    if epoch != UNKNOWN:
        check_acked_record(st, b, end, epoch)
        t = term_of(st, b, epoch)
    # The retry of an idempotent producer is acknowledged with the offsets of the first copy, which another leader may have
    # appended. A broker's log (LAG_RULE 1) does not show which it was, so it is no claim about an append of this one's.
    elif st[s.OPTION, s.LAG_RULE] == 0:
        t = term_of_append(st, b, end)
    if t >= 0:
        t = last_term_with(st, b, end, t)
        # It may have led since, unseen, with the record in its log: then the claim is that later term's.
        if st[s.REPLICAS + b, s.TERM] < 0 and st[s.term(st, t), s.T_END] == UNKNOWN:
            return
    else:
        t = st[s.REPLICAS + b, s.TERM]
    if t >= 0 and end > st[s.term(st, t), s.T_ACKED]:
        st[s.term(st, t), s.T_ACKED] = end
        check_later_terms(st, t, s.T_ACKED, RULE.DATA_03)


def check_acked_record(st: s.State, b: int, end: int, epoch: int) -> None:
    """Check DATA-03 where b reports the epoch of what it acknowledges up to `end`: its log has that epoch there.

    Only a record of another epoch is counted here: what holds is counted by check_later_terms.
    """
    leo, cached = st[s.REPLICAS + b, s.LEO], st[s.REPLICAS + b, s.CACHED]
    # A log that ends before `end` is no case of this rule: its high watermark is below, which ACK-01 sees.
    if UNKNOWN in (leo, cached) or leo < end or end <= st[s.PARTITION, s.DELETED_UPTO]:
        return
    own_epoch = epoch_at(st, b, cached, end - 1)
    # It has that record, or its cache does not show what it has, or an unclean election since may have cost it the record.
    if own_epoch in (epoch, UNKNOWN) or unclean_between(st, epoch, st[s.PARTITION, s.C_EPOCH]):
        return
    # The leader of `own_epoch` may have had the other record, and have been elected uncleanly without a report.
    if deletions_known(st) and elections_reported(st, epoch, own_epoch):
        decide(st, RULE.DATA_03, False, field.REC_EPOCH, epoch, own_epoch)
    else:
        undecided(st, RULE.DATA_03, 1 << field.CLEAN | 1 << field.LOG_START)


def check_later_terms(st: s.State, t: int, claim: int, rule: int) -> None:
    """Check by `rule` a claim of term t that has grown against every later term that is reported already.

    `claim` is its column. Logs of several brokers are merged by their clocks, so the election of the next leader may come
    before the line in which the one before it commits.
    """
    for later in range(st[s.PARTITION, s.TERMS]):
        if st[s.term(st, later), s.T_EPOCH] > st[s.term(st, t), s.T_EPOCH]:
            check_claim(st, t, later, claim, rule)


def check_claim(st: s.State, earlier: int, later: int, claim: int, rule: int) -> None:
    """Check DATA-01 or DATA-03 (`rule`): the leader of term `later` was elected with everything that `earlier` claims.

    `claim` is the column of the claim, by the rule: T_COMMITTED or T_ACKED, or the highest one of removed terms.
    """
    if st[s.term(st, earlier), s.T_EPOCH] >= st[s.term(st, later), s.T_EPOCH]:
        return
    # An unclean election between the two ends the claim.
    if unclean_between(st, int(st[s.term(st, earlier), s.T_EPOCH]), int(st[s.term(st, later), s.T_EPOCH])):
        return
    end = st[s.term(st, earlier), claim]
    if end == 0:
        return
    leo = st[s.term(st, later), s.T_LEO]
    # One of the elections that the trace does not report may have been unclean.
    if not elections_reported(st, st[s.term(st, earlier), s.T_EPOCH], st[s.term(st, later), s.T_EPOCH]):
        undecided(st, rule, 1 << field.CLEAN)
    elif leo == UNKNOWN:
        undecided(st, rule, 1 << field.LEO)
    elif leo < end:
        decide(st, rule, False, field.LEO, end, leo)
    elif st[s.term(st, earlier), s.T_CACHED] == UNKNOWN or st[s.term(st, later), s.T_CACHED] == UNKNOWN:
        undecided(st, rule, 1 << field.EPOCHS)
    else:
        # Records below a log start may be gone from either log, so they are not compared.
        start, n = int(st[s.PARTITION, s.DELETED_UPTO]), st[s.OPTION, s.BROKERS]
        same = agree_until(
            st, n + earlier, st[s.term(st, earlier), s.T_CACHED], n + later, st[s.term(st, later), s.T_CACHED], start, end
        )
        same_or_unknown(st, rule, end, same)


def check_inherited_claims(st: s.State, carrier: int, later: int, claim: int, times: int, rule: int) -> None:
    """Check what term `carrier` claims for terms that were removed: compared once, counted for each of them.

    `claim` is the column of that claim, `times` the column of how many terms it stands for.
    """
    n = st[s.term(st, carrier), times]
    if n > 0:
        row = s.TALLIES + rule
        held_before, failed_before, undecided_before = (
            st[row, s.HELD_COUNT],
            st[row, s.FAILED_COUNT],
            st[row, s.UNDECIDED_COUNT],
        )
        check_claim(st, carrier, later, claim, rule)
        counted_again(st, rule, n - 1, held_before, failed_before, undecided_before)
