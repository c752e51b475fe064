"""The invariant of a registration and its leaders: 13 conjuncts.

Two of them are the claims: a broker that may be elected cleanly holds everything committed, and is a replica. The others are
the reason: a leader waits for every eligible broker or commits nothing, with every version of the ISR that it knows or may
learn of.
"""

import z3

from tidegauge.spec.proofs.eligible.registration import (
    NOBODY,
    below_minimum,
    electable,
    last_version,
    may_lead,
    waits_or_stands,
    will_wait_or_stand,
)
from tidegauge.spec.proofs.engine.induction import Conjunct, is_epoch

WHOLE = "an eligible replica holds everything committed"
REPLICA = "an eligible broker is a replica"

ELECTION_INVARIANT: tuple[Conjunct, ...] = (
    Conjunct(
        WHOLE,
        "b",
        lambda s, b: z3.Implies(electable(s, b), s.whole(b)),
        lambda s, b: [[s.isr(s.version, b)], [s.elr(b)], [s.whole(b)]],
    ),
    Conjunct(
        REPLICA,
        "b",
        lambda s, b: z3.Implies(electable(s, b), s.replica(b)),
        lambda s, b: [[s.isr(s.version, b)], [s.elr(b)]],
    ),
    Conjunct(
        "the ELR is apart from the ISR, which is below min ISR",
        "b",
        lambda s, b: z3.Implies(s.elr(b), z3.And(z3.Not(s.isr(s.version, b)), below_minimum(s, s.version, s.minimum))),
        lambda s, b: [[s.elr(b)]],
    ),
    Conjunct(
        "the latest leader is in the ISR",
        "e",
        lambda s, e: z3.Implies(z3.And(e == s.current, s.leader(e) != NOBODY), s.isr(s.version, s.leader(e))),
        lambda s, e: [[s.leader(e)]],
    ),
    Conjunct(
        "an epoch has versions, and the next epoch has later ones",
        "e",
        lambda s, e: z3.And(
            z3.Implies(is_epoch(s, e), z3.And(s.first(e) <= last_version(s, e), last_version(s, e) <= s.version)),
            z3.Implies(z3.And(is_epoch(s, e), e < s.current), s.last(e) < s.version),
            z3.And(s.current >= 0, s.minimum_version <= s.version),
        ),
        lambda s, e: [[s.first(e)], [s.last(e)], [s.leader(e)]],
    ),
    Conjunct(
        "a leader that has begun knows a version of its epoch",
        "e",
        lambda s, e: z3.Implies(
            s.begun(e),
            z3.And(
                is_epoch(s, e),
                s.leader(e) != NOBODY,
                s.learned(s.leader(e)) >= e,
                z3.And(s.first(e) <= s.known(e), s.known(e) <= last_version(s, e)),
            ),
        ),
        lambda s, e: [[s.begun(e)], [s.known(e)]],
    ),
    Conjunct(
        "no broker has learned an epoch that does not exist",
        "b",
        lambda s, b: s.learned(b) <= s.current,
        lambda s, b: [[s.learned(b)]],
    ),
    Conjunct(
        "a leader waits for every eligible replica, or stands still",
        "e v b",
        lambda s, e, v, b: z3.Implies(
            z3.And(may_lead(s, e), z3.Not(s.blocked(e)), electable(s, b)),
            z3.And(waits_or_stands(s, e, b), will_wait_or_stand(s, e, v, b)),
        ),
        lambda s, e, v, b: [[s.isr(v, b), s.leader(e)], [s.elr(b), s.leader(e), s.size(v)]],
    ),
    Conjunct(
        "a leader waits for every leader elected since, or stands still",
        "e v f",
        lambda s, e, v, f: z3.Implies(
            z3.And(may_lead(s, e), z3.Not(s.blocked(e)), e < f, f <= s.current, s.leader(f) != NOBODY),
            z3.And(waits_or_stands(s, e, s.leader(f)), will_wait_or_stand(s, e, v, s.leader(f))),
        ),
        lambda s, e, v, f: [[s.leader(e), s.leader(f), s.size(v)]],
    ),
    Conjunct(
        "a later leader that has begun blocks an earlier one",
        "e f",
        lambda s, e, f: z3.Implies(z3.And(s.begun(f), e >= 0, e < f), s.blocked(e)),
        lambda s, e, f: [[s.begun(f), s.blocked(e)]],
    ),
    Conjunct(
        "a replica that blocks a leader has learned a later epoch",
        "e",
        lambda s, e: z3.Implies(s.blocked(e), s.learned(s.witness(e)) > e),
        lambda s, e: [[s.blocked(e)], [s.witness(e)]],
    ),
    Conjunct(
        "a blocked leader waits for a replica that blocks it, or stands still",
        "e v",
        lambda s, e, v: z3.Implies(
            z3.And(s.blocked(e), may_lead(s, e)),
            z3.And(waits_or_stands(s, e, s.witness(e)), will_wait_or_stand(s, e, v, s.witness(e))),
        ),
        lambda s, e, v: [[s.blocked(e), s.size(v)], [s.witness(e), s.size(v)]],
    ),
    Conjunct(
        "a replica that the latest leader has proposed holds everything committed",
        "e",
        lambda s, e: z3.Implies(
            z3.And(e == s.current, s.begun(e), s.joins(e) != NOBODY, s.fit(e), s.known(e) == s.version),
            z3.And(s.whole(s.joins(e)), s.replica(s.joins(e))),
        ),
        lambda s, e: [[s.joins(e)]],
    ),
)
