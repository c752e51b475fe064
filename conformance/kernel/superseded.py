"""What the leader epochs of the past leave to remember: their claims, and who led the latest of them.

Rules of this file

1. Nobody begins to lead in a leader epoch, or commits there, once every broker is past it. A term of such an epoch is
   forgotten when the next leader was elected with all that it claims: whoever lacks that lacks what the next leader had. So
   the claim is handed on, and is asked for as often as if every term stood there still. Claims that an unclean election
   ended, and terms without any, just go.
2. Registrations of such epochs go where room is needed, the oldest first: a broker that restarts may act on old ones again
   (conformance.kernel.roles). What it then says of a forgotten epoch is undecided.
3. Where none of this helps (a broker that never says which epoch it is in, caches that nobody tells) the table grows, up
   to MOST_PAST. From there on the oldest goes all the same. That loses checks; it makes none fail.
"""

from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.elections import elections_reported, unclean_between
from tidegauge.conformance.kernel.forks import fork_end
from tidegauge.conformance.kernel.lineage import agree_until
from tidegauge.traces.columns import UNKNOWN

TERMS_AT_ONCE = 16
"""Terms after which it is worth looking for some that can be forgotten."""

REGISTRATIONS_AT_ONCE = 16
"""The same of registrations, from three quarters of a full table on."""


def room_for_a_term(st: s.State) -> None:
    """Forget terms of the past, now and then. OVERFLOW where the table is full all the same."""
    if st[s.WHOLE, s.TERMS] % TERMS_AT_ONCE == 0:
        hand_on_claims(st, all_are_past(st))
    if st[s.WHOLE, s.TERMS] == st[s.WHOLE, s.PAST]:
        if st[s.WHOLE, s.PAST] < s.MOST_PAST:
            st[s.WHOLE, s.OVERFLOW] |= s.PAST_FULL
        for _ in range(st[s.WHOLE, s.PAST] // 2):
            remove_term(st, 0)


def room_for_a_registration(st: s.State) -> None:
    """Forget the oldest, now and then. OVERFLOW where the table is full, and nearly full all the same.

    A broker that lags for a moment keeps everything that it has not heard: where nothing can go now, there is another time.
    """
    count, past = st[s.WHOLE, s.REGISTRATIONS], st[s.WHOLE, s.PAST]
    if count < past and (4 * count < 3 * past or count % REGISTRATIONS_AT_ONCE != 0):
        return
    below = all_are_past(st)
    hand_on_claims(st, below)
    one_per_isr(st, below)
    forget_registrations(st, asked_for(st, below))
    # where little can be forgotten, more room is cheaper than to look for it each time
    if count < past or 4 * st[s.WHOLE, s.REGISTRATIONS] <= 3 * past:
        return
    if past < s.MOST_PAST:
        st[s.WHOLE, s.OVERFLOW] |= s.PAST_FULL
    forget_registrations(st, -UNKNOWN)
    t = 0
    while t < st[s.WHOLE, s.TERMS]:  # between an older term and a later one an unclean election may be forgotten
        if st[s.term(st, t), s.T_EPOCH] < st[s.WHOLE, s.FORGOTTEN_UPTO]:
            remove_term(st, t)
        else:
            t += 1


def all_are_past(st: s.State) -> int:
    """The leader epoch below which the controller and every broker are. Who is down, or was never heard, is nowhere."""
    lowest = st[s.WHOLE, s.C_EPOCH]
    for b in range(st[s.OPTION, s.BROKERS]):
        if st[s.WHOLE, s.HEARD] >> b & 1 == 1 and st[s.REPLICAS + b, s.UP] != 0:
            lowest = min(lowest, st[s.REPLICAS + b, s.EPOCH])
    return int(lowest)


def hand_on_claims(st: s.State, below: int) -> None:
    """Forget terms of epochs that all brokers are past."""
    t = 0
    while t < st[s.WHOLE, s.TERMS]:
        heir = next_term(st, t, below)
        if heir >= 0 and not read_from(st, t) and elected_with(st, heir, t):
            if not unclean_between(st, st[s.term(st, t), s.T_EPOCH], st[s.term(st, heir), s.T_EPOCH]):
                inherit(st, heir, t, s.T_COMMITTED, s.T_PAST_COMMITTED, s.T_PAST_COMMITS)
                inherit(st, heir, t, s.T_ACKED, s.T_PAST_ACKED, s.T_PAST_ACKS)
            remove_term(st, t)
        else:
            t += 1


def next_term(st: s.State, t: int, upto: int) -> int:
    """The term of the next leader epoch, up to that one; UNDEFINED where there is none."""
    found = -1
    for other in range(st[s.WHOLE, s.TERMS]):
        epoch = st[s.term(st, other), s.T_EPOCH]
        if st[s.term(st, t), s.T_EPOCH] < epoch <= upto and (found < 0 or epoch < st[s.term(st, found), s.T_EPOCH]):
            found = other
    return found


def read_from(st: s.State, t: int) -> bool:
    """Whether a response that a leader gave in this term may still be taken over (conformance.kernel.follower)."""
    n = st[s.OPTION, s.BROKERS]
    if st[s.OPTION, s.FENCING] == 0:
        for p in range(s.pair(st, 0, 0), s.pair(st, 0, 0) + n * n):
            if st[p, s.ANS_TERM] == t:
                return True
    return False


def elected_with(st: s.State, heir: int, t: int) -> bool:
    """Whether later leaders can be asked for the heir's log instead of that of term t, as far as t claims anything.

    Both tell of the same records, and there is nothing that one of the two would leave undecided and the other not.
    """
    row, later, n = s.term(st, t), s.term(st, heir), st[s.OPTION, s.BROKERS]
    end = max(st[row, s.T_COMMITTED], st[row, s.T_ACKED], st[row, s.T_PAST_COMMITTED], st[row, s.T_PAST_ACKED])
    if end == 0 or unclean_between(st, st[row, s.T_EPOCH], st[later, s.T_EPOCH]):
        return True
    leo, cached, heirs = st[later, s.T_LEO], st[row, s.T_CACHED], st[later, s.T_CACHED]
    if leo == UNKNOWN or leo < end or not elections_reported(st, st[row, s.T_EPOCH], st[later, s.T_EPOCH]):
        return False
    if UNKNOWN in (cached, heirs):
        return bool(cached == heirs)
    start = st[s.WHOLE, s.DELETED]
    known_from = min(st[s.starts_row(st, n + t), 0], end) if cached > 0 else end
    heir_from = min(st[s.starts_row(st, n + heir), 0], end) if heirs > 0 else end
    if fork_end(st, n + heir) > 0 or heir_from > max(start, known_from):
        return False
    return bool(agree_until(st, n + t, cached, n + heir, heirs, start, end) >= end)


def inherit(st: s.State, heir: int, t: int, claim: int, past: int, times: int) -> None:
    """What term t claims for itself, and for terms before it, its heir claims for them all."""
    row, later = s.term(st, t), s.term(st, heir)
    st[later, past] = max(st[later, past], st[row, past], st[row, claim])
    st[later, times] += st[row, times] + (1 if st[row, claim] > 0 else 0)


def remove_term(st: s.State, t: int) -> None:
    """Forget a term; those behind it move up, and whoever names one of them goes on doing so."""
    n, room, last = st[s.OPTION, s.BROKERS], st[s.WHOLE, s.ROOM], st[s.WHOLE, s.TERMS] - 1
    for i in range(t, last):
        for k in range(s.TERM_COLUMNS):
            st[s.term(st, i), k] = st[s.term(st, i + 1), k]
        for k in range(max(st[s.term(st, i), s.T_CACHED], 0)):
            st[s.epochs_row(st, n + i), k] = st[s.epochs_row(st, n + i + 1), k]
            st[s.starts_row(st, n + i), k] = st[s.starts_row(st, n + i + 1), k]
        st[s.epochs_row(st, n + i), room] = st[s.epochs_row(st, n + i + 1), room]
        st[s.starts_row(st, n + i), room] = st[s.starts_row(st, n + i + 1), room]
    st[s.WHOLE, s.TERMS] = last
    for b in range(n):
        st[s.REPLICAS + b, s.TERM] = moved_up(st[s.REPLICAS + b, s.TERM], t)
        for follower in range(n):
            p = s.pair(st, follower, b)
            st[p, s.ANS_TERM] = moved_up(st[p, s.ANS_TERM], t)


def moved_up(named: int, t: int) -> int:
    """The number of a term when term t is gone."""
    if named == t:
        return -1
    return named - 1 if named > t else named


def asked_for(st: s.State, below: int) -> int:
    """The leader epoch below which no registration is asked for, while nobody acts on epochs below `below`.

    Unclean elections behind a term end its claims. A leader with log ends that it recorded earlier may have missed others'
    epochs since (HW-08).
    """
    for t in range(st[s.WHOLE, s.TERMS]):
        below = min(below, st[s.term(st, t), s.T_EPOCH] + 1)
    for b in range(st[s.OPTION, s.BROKERS]):
        if st[s.REPLICAS + b, s.ROLE] == s.LEADING:
            for follower in range(st[s.OPTION, s.BROKERS]):
                recorded = st[s.pair(st, follower, b), s.REMOTE_EPOCH]
                if recorded >= 0:
                    below = min(below, recorded + 1)
    return int(below)


def forget_registrations(st: s.State, below: int) -> None:
    """Forget those of the lowest leader epochs, below that one and at most half of what there is room for.

    They are in order: conformance.kernel.terms.register.
    """
    gone, count = 0, st[s.WHOLE, s.REGISTRATIONS]
    while count - gone > st[s.WHOLE, s.PAST] // 2 and st[s.registration(st, gone), s.R_EPOCH] < below:
        gone += 1
    if gone > 0:
        st[s.WHOLE, s.FORGOTTEN_UPTO] = max(st[s.WHOLE, s.FORGOTTEN_UPTO], st[s.registration(st, gone - 1), s.R_EPOCH])
    for i in range(gone, count):
        copy_registration(st, i, i - gone)
    st[s.WHOLE, s.REGISTRATIONS] = count - gone


def one_per_isr(st: s.State, below: int) -> None:
    """Of registrations that differ by the partition epoch alone the latest stays, once the leader acts on a later one."""
    kept, count = 0, st[s.WHOLE, s.REGISTRATIONS]
    for i in range(count):
        row, after = s.registration(st, i), s.registration(st, min(i + 1, count - 1))
        epoch, leader, partition_epoch = st[row, s.R_EPOCH], st[row, s.R_LEADER], st[row, s.R_PARTITION_EPOCH]
        alike = i + 1 < count and partition_epoch != UNKNOWN
        for k in (s.R_EPOCH, s.R_LEADER, s.R_ISR, s.R_UNCLEAN, s.R_REPLICAS):
            alike = alike and st[row, k] == st[after, k]
        acts_later = leader >= 0 and st[s.REPLICAS + leader, s.EPOCH] == epoch
        acts_later = acts_later and st[s.REPLICAS + leader, s.PARTITION_EPOCH] > partition_epoch
        if not (alike and (acts_later or epoch < below)):
            copy_registration(st, i, kept)
            kept += 1
    st[s.WHOLE, s.REGISTRATIONS] = kept


def copy_registration(st: s.State, i: int, to: int) -> None:
    """Write a registration over another."""
    for k in range(s.R_EPOCH, s.R_REPLICAS + 1):
        st[s.registration(st, to), k] = st[s.registration(st, i), k]
