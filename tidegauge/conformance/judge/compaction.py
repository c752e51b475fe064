"""The table of the judge is kept small: superseded leader epochs are compacted, consumed cells are cleared.

`st` is the judge's table (conformance.judge.state): `st[row, column]`. `b` is the number of a broker, `n` how many there
are, `p` the row of what is in flight between a follower and a leader, `t` the number of a term: a leader epoch of one
leader. A term *claims* the offsets that were committed and acknowledged in it: every later leader must have them. Log n + t
is the one that the leader of term t was elected with. UNKNOWN, which is below every number: no event shows the value. -1
(UNDEFINED): there is none. Columns begin with what they are of: T_ a term, R_ a registration (a leader epoch as it was
registered), REQ_, RES_ and OLD_ a request in flight, its response, and a request that another overtook. T_LEO is where the
log ended with which the leader of a term was elected, T_END where it ended when that leader ceased to lead (-1 before).
CACHED is the number of entries in an epoch cache. PAST_ROOM is how many terms, and registrations, the table has room for.

Rules of the canonical form (tidy)

1. What can no longer matter is UNKNOWN, and cells that are not in use are 0. Nothing here changes how the judge decides on
   any later event: validation/product walks all behaviours of bounded models over tables that were made canonical here.
2. Two tables that are the same to every later event should be the same numbers. Then the number of states of the judge
   over a bounded model is finite, and an endless run comes back to states it was in (conformance.engine.transitions).

Rules of the compaction of old leader epochs, so that a long trace needs a table of fixed size

1. Once every broker is past a leader epoch, nobody begins to lead in it or commits there any more. Its term is removed
   when the leader of the next epoch, its heir, was elected with all that the term claims. The heir inherits the claim:

       leader epoch        0            1            2            every broker and the controller are at 2 or later
       elected             b1           b2           b1
       committed           up to 5      up to 7      up to 9
       b2 was elected with the records of b1 up to 5:  term 0 is removed, term 1 also claims "5, for one term more"

   A leader of epoch 3 that has b2's log up to 5 has b1's too, so one comparison stands for both, and is counted twice
   (terms.check_inherited_claims). A claim that an unclean election ended, or a term that claims nothing, is just removed.
2. Registrations of such epochs are removed where room is needed, the oldest first: a broker that restarts may act on old
   ones again (conformance.judge.events.roles). What it then reports about a removed epoch is undecided.
3. Where none of this helps (a broker that never reports its leader epoch, caches that are never reported) the table
   grows, up to MOST_PAST. From there on the oldest are removed all the same. That loses checks; it makes none fail.
"""

from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.elections import elections_reported, unclean_between
from tidegauge.conformance.judge.lineage import agree_until, fork_end
from tidegauge.traces.columns import UNKNOWN

# The canonical form.


def tidy(st: s.State) -> None:
    """Make the table canonical: forget what can no longer matter, clear what is behind the last entry of each kind."""
    # Terms, and entries of logs.
    clear_unused_entries(st)
    # Registrations: every column of each row that there is room for and that is free.
    for i in range(st[s.PARTITION, s.REGISTRATIONS], st[s.PARTITION, s.PAST_ROOM]):
        for k in range(s.R_EPOCH, s.R_REPLICAS + 1):
            st[s.registration(st, i), k] = 0
    forget_consumed(st)


def forget_consumed(st: s.State) -> None:
    """Set to UNKNOWN what no later check reads: the epoch starts of those who do not lead, requests that were answered."""
    n = st[s.OPTION, s.BROKERS]
    for b in range(n):
        # Only a leader's epoch start is read, and an election sets it.
        if st[s.REPLICAS + b, s.ROLE] not in (s.LEADING, UNKNOWN):
            st[s.REPLICAS + b, s.EPOCH_START] = UNKNOWN
        for leader in range(n):
            forget_consumed_request(st, s.pair(st, b, leader), st[s.REPLICAS + b, s.MORE_ROUNDS] != 0)


def clear_unused_entries(st: s.State) -> None:
    """Set to 0 the cells behind the last entry of each log, and the whole rows behind the last term."""
    n, room = st[s.OPTION, s.BROKERS], st[s.PARTITION, s.CACHE_ROOM]
    # The first n logs are those of the replicas, the others belong to terms: log n + t to term t.
    for log in range(n + st[s.PARTITION, s.PAST_ROOM]):
        cached = 0
        if log < n:
            cached = st[s.REPLICAS + log, s.CACHED]
        elif log - n < st[s.PARTITION, s.TERMS]:
            cached = st[s.term(st, log - n), s.T_CACHED]
        else:
            # No term uses this row. The cell behind the room for entries is the fork of the log.
            for k in range(s.TERM_COLUMNS):
                st[s.term(st, log - n), k] = 0
            st[s.epochs_row(st, log), room] = 0
            st[s.starts_row(st, log), room] = 0
        for k in range(max(cached, 0), room):
            st[s.epochs_row(st, log), k] = 0
            st[s.starts_row(st, log), k] = 0


def compare_registrations(st: s.State, first: int, second: int) -> int:
    """Return -1 where the registration in row `first` sorts before that in row `second`, 1 where after it, 0 if equal."""
    for k in range(s.R_EPOCH, s.R_REPLICAS + 1):
        if st[first, k] != st[second, k]:
            return -1 if st[first, k] < st[second, k] else 1
    return 0


def forget_consumed_request(st: s.State, p: int, asks_again: bool) -> None:
    """Forget in row `p` the fields of an answered request, and those that the kind of response in flight does not have.

    `asks_again`: the truncation goes on, and TRUNC-02 will compare the next request with the epoch in the last one.
    """
    kind = st[p, s.KIND]
    # Once a response was taken over the next request starts anew; of an AMBIGUOUS one no field is compared.
    if kind in (s.NOTHING, s.AMBIGUOUS):
        st[p, s.REQ_EPOCH] = UNKNOWN
        st[p, s.REQ_OFFSET] = UNKNOWN
        if not asks_again:
            st[p, s.REQ_LAST] = UNKNOWN
    if kind != s.DELAYED:
        st[p, s.DELAYED_HW] = UNKNOWN
    if kind != s.DATA:
        st[p, s.RES_HW] = UNKNOWN
        st[p, s.RES_BASE] = UNKNOWN
        st[p, s.RES_END] = UNKNOWN
        st[p, s.RES_REC_EPOCH] = UNKNOWN
        st[p, s.RES_TERM] = -1
    # Which fields a kind of response has is read off where it is taken over: handle_fetch_response and
    # handle_diverging_response for DATA and DIVERGED, handle_epoch_response for EPOCH_RESPONSE and REFUSED.
    if kind not in (s.DATA, s.DIVERGED):
        st[p, s.RES_LOG_START] = UNKNOWN
    if kind not in (s.DIVERGED, s.EPOCH_RESPONSE):
        st[p, s.RES_DIV_EPOCH] = UNKNOWN
        st[p, s.RES_DIV_END] = UNKNOWN
    if kind not in (s.REFUSED, s.EPOCH_RESPONSE):
        st[p, s.RES_ERROR] = UNKNOWN
    if st[p, s.OLD_KIND] == s.NOTHING:
        st[p, s.OLD_EPOCH] = UNKNOWN
        st[p, s.OLD_OFFSET] = UNKNOWN
        st[p, s.OLD_LAST] = UNKNOWN


# Compaction of old leader epochs.


TERMS_AT_ONCE = 16
"""After so many new terms it is worth looking for some that can be removed."""

REGISTRATIONS_AT_ONCE = 16
"""The same for registrations, once three quarters of the table are full."""


def room_for_a_term(st: s.State) -> None:
    """Make room for one more term. Sets OVERFLOW if the table stays full and can become larger."""
    if st[s.PARTITION, s.TERMS] % TERMS_AT_ONCE == 0:
        compact_terms(st, all_past_epoch(st))
    if st[s.PARTITION, s.TERMS] == st[s.PARTITION, s.PAST_ROOM]:
        # The term needs a row in any case, so the older half goes. OVERFLOW makes the caller judge the trace again in a
        # larger table; in the largest, these terms are lost. (Room is a multiple of TERMS_AT_ONCE: a full table was just
        # compacted.)
        if st[s.PARTITION, s.PAST_ROOM] < s.MOST_PAST:
            st[s.PARTITION, s.OVERFLOW] |= s.PAST_FULL
        for _ in range(st[s.PARTITION, s.PAST_ROOM] // 2):
            remove_term(st, 0)


def room_for_a_registration(st: s.State) -> None:
    """Make room for one more registration. Sets OVERFLOW if the table stays full, or nearly, and can become larger.

    Nothing can be removed that a lagging broker has not acted on yet, so this is tried again after a few more registrations.
    """
    count, room = st[s.PARTITION, s.REGISTRATIONS], st[s.PARTITION, s.PAST_ROOM]
    # Three quarters full, and not at every registration: looking costs time.
    if count < room and (4 * count < 3 * room or count % REGISTRATIONS_AT_ONCE != 0):
        return
    below = all_past_epoch(st)
    compact_terms(st, below)
    compact_isr_changes(st, below)
    forget_registrations(st, registrations_needed_from(st, below))
    # Where little can be removed, more room is cheaper than to look for it each time.
    if count < room or 4 * st[s.PARTITION, s.REGISTRATIONS] <= 3 * room:
        return
    # OVERFLOW makes the caller judge the trace again in a larger table; in the largest, the oldest half is lost.
    if room < s.MOST_PAST:
        st[s.PARTITION, s.OVERFLOW] |= s.PAST_FULL
    above_every_epoch = -UNKNOWN
    forget_registrations(st, above_every_epoch)
    # Whether an election was unclean is read off its registration. Between two terms one may be among the removed ones, so
    # the claims of terms that far back can no longer be checked.
    t = 0
    while t < st[s.PARTITION, s.TERMS]:
        if st[s.term(st, t), s.T_EPOCH] < st[s.PARTITION, s.FORGOTTEN_UPTO]:
            remove_term(st, t)
        else:
            t += 1


def all_past_epoch(st: s.State) -> int:
    """Return the lowest leader epoch in which the controller or a broker that runs and was observed may still act."""
    lowest = st[s.PARTITION, s.C_EPOCH]
    for b in range(st[s.OPTION, s.BROKERS]):
        # A broker that is down reads the latest metadata before it leads again; one without events has no term here.
        if st[s.PARTITION, s.OBSERVED] >> b & 1 == 1 and st[s.REPLICAS + b, s.UP] not in (0, s.ABSENT):
            lowest = min(lowest, st[s.REPLICAS + b, s.EPOCH])
    return int(lowest)


def compact_terms(st: s.State, below: int) -> None:
    """Remove terms that have an heir of an epoch up to `below`, which all brokers have reached; it inherits their claims."""
    t = 0
    while t < st[s.PARTITION, s.TERMS]:
        heir = next_term(st, t, below)
        # An event that is still to come may need the term itself.
        responds = term_may_still_respond(st, t) or waits_for_acknowledgement(st, t)
        if heir >= 0 and not responds and has_claimed_log(st, heir, t):
            # An unclean election may lose committed records: it ends the claims of the terms before it.
            if not unclean_between(st, st[s.term(st, t), s.T_EPOCH], st[s.term(st, heir), s.T_EPOCH]):
                inherit_claims(st, heir, t, s.T_COMMITTED, s.T_PAST_COMMITTED, s.T_PAST_COMMITS)
                inherit_claims(st, heir, t, s.T_ACKED, s.T_PAST_ACKED, s.T_PAST_ACKS)
            remove_term(st, t)
        else:
            t += 1


def next_term(st: s.State, t: int, upto: int) -> int:
    """Return the number of the term of the next leader epoch after term t's, at most `upto`; -1 where there is none."""
    following = -1
    for other in range(st[s.PARTITION, s.TERMS]):
        epoch = st[s.term(st, other), s.T_EPOCH]
        if st[s.term(st, t), s.T_EPOCH] < epoch <= upto and (following < 0 or epoch < st[s.term(st, following), s.T_EPOCH]):
            following = other
    return following


def term_may_still_respond(st: s.State, t: int) -> bool:
    """Return whether a follower may still take over a response that the leader gave in term `t`."""
    n = st[s.OPTION, s.BROKERS]
    # The epochs of the records in a response are those of the log of its term (follower.epochs_of_records). With fencing
    # (KIP-320) no response outlives the epoch of its request.
    if st[s.OPTION, s.FENCING] != (1 << n) - 1:
        for p in range(s.pair(st, 0, 0), s.pair(st, 0, 0) + n * n):
            if st[p, s.RES_TERM] == t:
                return True
    return False


def waits_for_acknowledgement(st: s.State, t: int) -> bool:
    """Return whether term t is kept because its leader may yet acknowledge what it appended in it.

    A bound on the table: of each broker only the last past term may be kept for that. An acknowledgement of what it appended
    in an earlier one finds no term.
    """
    row, b = s.term(st, t), st[s.term(st, t), s.T_LEADER]
    # It appended nothing, or all is acknowledged. An end that is UNKNOWN, or -1 as the term goes on, is below both.
    if st[row, s.T_END] <= max(st[row, s.T_LEO], st[row, s.T_ACKED]):
        return False
    # It has a later past term: only that one may be kept. The term in which it leads now is not past.
    for later in range(t + 1, st[s.PARTITION, s.TERMS]):
        if st[s.term(st, later), s.T_LEADER] == b and later != st[s.REPLICAS + b, s.TERM]:
            return False
    return True


def has_claimed_log(st: s.State, heir: int, t: int) -> bool:
    """Return whether later leaders can be compared with the heir's log instead of term t's, as far as t claims anything.

    Both logs have the same records there, and a comparison with one is undecided exactly where it is with the other. The
    heir is the term of a later leader epoch; log n + t of the table is the one that the leader of term t was elected with.
    """
    row, later, n = s.term(st, t), s.term(st, heir), st[s.OPTION, s.BROKERS]
    end = max(st[row, s.T_COMMITTED], st[row, s.T_ACKED], st[row, s.T_PAST_COMMITTED], st[row, s.T_PAST_ACKED])
    # Term t claims nothing, or nothing that its heir has to have.
    if end == 0 or unclean_between(st, st[row, s.T_EPOCH], st[later, s.T_EPOCH]):
        return True
    leo, cached, heirs = st[later, s.T_LEO], st[row, s.T_CACHED], st[later, s.T_CACHED]
    # An heir that lacks a claimed record has failed DATA-01 or DATA-03; term t is needed to find the others that do.
    if leo == UNKNOWN or leo < end or not elections_reported(st, st[row, s.T_EPOCH], st[later, s.T_EPOCH]):
        return False
    # A comparison with a log of unknown epochs is undecided: only where both are unknown, the heir's decides no less.
    if UNKNOWN in (cached, heirs):
        return bool(cached == heirs)
    # Below its first entry, and where it forked, a cache shows no epochs: the heir's must show all that term t's does.
    start = st[s.PARTITION, s.DELETED_UPTO]
    known_from = min(st[s.starts_row(st, n + t), 0], end) if cached > 0 else end
    heir_from = min(st[s.starts_row(st, n + heir), 0], end) if heirs > 0 else end
    if fork_end(st, n + heir) > 0 or heir_from > max(start, known_from):
        return False
    return bool(agree_until(st, n + t, cached, n + heir, heirs, start, end) >= end)


def inherit_claims(st: s.State, heir: int, t: int, claim: int, past: int, times: int) -> None:
    """Add to the heir's claim for removed terms what term t claims for itself and for those before it.

    `claim`, `past` and `times` are columns: the term's own claim, the highest claim of the terms removed before it, and how
    many terms those were.
    """
    row, later = s.term(st, t), s.term(st, heir)
    st[later, past] = max(st[later, past], st[row, past], st[row, claim])
    st[later, times] += st[row, times] + (1 if st[row, claim] > 0 else 0)


def remove_term(st: s.State, t: int) -> None:
    """Remove a term; those after it move up by one, and references to them are renumbered."""
    n, room, last = st[s.OPTION, s.BROKERS], st[s.PARTITION, s.CACHE_ROOM], st[s.PARTITION, s.TERMS] - 1
    for i in range(t, last):
        for k in range(s.TERM_COLUMNS):
            st[s.term(st, i), k] = st[s.term(st, i + 1), k]
        for k in range(max(st[s.term(st, i), s.T_CACHED], 0)):
            st[s.epochs_row(st, n + i), k] = st[s.epochs_row(st, n + i + 1), k]
            st[s.starts_row(st, n + i), k] = st[s.starts_row(st, n + i + 1), k]
        # After the room for entries come the offsets of a fork.
        st[s.epochs_row(st, n + i), room] = st[s.epochs_row(st, n + i + 1), room]
        st[s.starts_row(st, n + i), room] = st[s.starts_row(st, n + i + 1), room]
    st[s.PARTITION, s.TERMS] = last
    for b in range(n):
        st[s.REPLICAS + b, s.TERM] = renumbered(st[s.REPLICAS + b, s.TERM], t)
        for follower in range(n):
            p = s.pair(st, follower, b)
            st[p, s.RES_TERM] = renumbered(st[p, s.RES_TERM], t)


def renumbered(number: int, t: int) -> int:
    """Return what the term number `number` becomes as term t is removed: -1 if it is t itself; below 0 (none) it stays."""
    if number == t:
        return -1
    return number - 1 if number > t else number


def registrations_needed_from(st: s.State, below: int) -> int:
    """Return the leader epoch from which on registrations are needed, if nobody acts on epochs below `below`."""
    # The registrations after a term say whether an unclean election has ended its claims.
    for t in range(st[s.PARTITION, s.TERMS]):
        below = min(below, st[s.term(st, t), s.T_EPOCH] + 1)
    # A leader that counts an old log end must not have missed another leader since (HW-08, finding F2).
    for b in range(st[s.OPTION, s.BROKERS]):
        if st[s.REPLICAS + b, s.ROLE] == s.LEADING:
            for follower in range(st[s.OPTION, s.BROKERS]):
                recorded = st[s.pair(st, follower, b), s.REMOTE_EPOCH]
                if recorded >= 0:
                    below = min(below, recorded + 1)
    return int(below)


def forget_registrations(st: s.State, below: int) -> None:
    """Remove registrations of the lowest leader epochs, those below `below`, and at most until half of the room is free.

    They are sorted (conformance.judge.terms.add_registration).
    """
    removed, count = 0, st[s.PARTITION, s.REGISTRATIONS]
    while count - removed > st[s.PARTITION, s.PAST_ROOM] // 2 and st[s.registration(st, removed), s.R_EPOCH] < below:
        removed += 1
    if removed > 0:
        st[s.PARTITION, s.FORGOTTEN_UPTO] = max(
            st[s.PARTITION, s.FORGOTTEN_UPTO], st[s.registration(st, removed - 1), s.R_EPOCH]
        )
    for i in range(removed, count):
        copy_registration(st, i, i - removed)
    st[s.PARTITION, s.REGISTRATIONS] = count - removed


def compact_isr_changes(st: s.State, below: int) -> None:
    """Keep the latest of registrations that differ only by the partition epoch, once no broker acts on the earlier ones.

    So it is once their leader acts on a later partition epoch, or once every broker is at leader epoch `below` or later.
    """
    remaining, count = 0, st[s.PARTITION, s.REGISTRATIONS]
    for i in range(count):
        row, after = s.registration(st, i), s.registration(st, min(i + 1, count - 1))
        epoch, leader, partition_epoch = st[row, s.R_EPOCH], st[row, s.R_LEADER], st[row, s.R_PARTITION_EPOCH]
        # The next registration differs by its partition epoch only.
        alike = i + 1 < count and partition_epoch != UNKNOWN
        for k in (s.R_EPOCH, s.R_LEADER, s.R_ISR, s.R_UNCLEAN, s.R_REPLICAS):
            alike = alike and st[row, k] == st[after, k]
        # The leader leads this epoch, with a later registration of it.
        acts_later = leader >= 0 and st[s.REPLICAS + leader, s.EPOCH] == epoch
        acts_later = acts_later and st[s.REPLICAS + leader, s.PARTITION_EPOCH] > partition_epoch
        # Kept: some broker may still act on it.
        if not (alike and (acts_later or epoch < below)):
            copy_registration(st, i, remaining)
            remaining += 1
    st[s.PARTITION, s.REGISTRATIONS] = remaining


def copy_registration(st: s.State, i: int, to: int) -> None:
    """Copy registration number `i` over number `to`."""
    for k in range(s.R_EPOCH, s.R_REPLICAS + 1):
        st[s.registration(st, to), k] = st[s.registration(st, i), k]
