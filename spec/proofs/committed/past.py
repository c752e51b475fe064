"""Conjuncts about fetches that were sent, committed records, and the past of a later leader."""

import z3

from tidegauge.spec.proofs.committed.cluster import (
    asked_below_cap,
    is_broker,
    is_follower,
    joined_later,
    long_enough,
    same_record,
)
from tidegauge.spec.proofs.engine.induction import Conjunct, is_epoch

FETCH_CONJUNCTS: tuple[Conjunct, ...] = (
    Conjunct(
        "a leader's recorded log ends are real",
        "e r",
        lambda s, e, r: z3.And(s.remote(e, r) >= 0, s.remote(e, r) <= s.asked(e, r), s.asked(e, r) <= s.hist_end(e)),
        lambda s, e, r: [[s.remote(e, r)], [s.asked(e, r)]],
    ),
    Conjunct(
        "only who has learned the epoch asks in it",
        "e r",
        lambda s, e, r: z3.Implies(s.asked(e, r) > 0, s.known(r) >= e),
        lambda s, e, r: [[s.asked(e, r)]],
    ),
    Conjunct(
        "in its epoch a follower is as long as it was when it asked",
        "e r",
        lambda s, e, r: z3.Implies(z3.And(is_follower(s, e, r), s.known(r) == e), long_enough(s, r, e, s.asked(e, r))),
        lambda s, e, r: [[s.asked(e, r)]],
    ),
    Conjunct(
        "in its epoch a follower shares what it had when it asked",
        "e r o",
        lambda s, e, r, o: z3.Implies(z3.And(is_follower(s, e, r), s.known(r) == e), same_record(s, r, e, s.asked(e, r), o)),
        lambda s, e, r, o: [[s.asked(e, r), s.record(r, o)], [s.asked(e, r), s.hist(e, o)]],
    ),
    Conjunct(
        "after it a follower is as long as it was when it asked, up to the cap",
        "e r",
        lambda s, e, r: z3.Implies(
            z3.And(is_follower(s, e, r), s.known(r) > e), long_enough(s, r, e, asked_below_cap(s, e, r))
        ),
        lambda s, e, r: [[s.asked(e, r)]],
    ),
    Conjunct(
        "after it a follower shares what it had when it asked, up to the cap",
        "e r o",
        lambda s, e, r, o: z3.Implies(
            z3.And(is_follower(s, e, r), s.known(r) > e), same_record(s, r, e, asked_below_cap(s, e, r), o)
        ),
        lambda s, e, r, o: [[s.asked(e, r), s.record(r, o)], [s.asked(e, r), s.hist(e, o)]],
    ),
)

PAST_CONJUNCTS: tuple[Conjunct, ...] = (
    Conjunct(
        "a leader that moved on is as long as what it committed",
        "e",
        lambda s, e: z3.Implies(
            z3.And(is_epoch(s, e), s.known(s.leader(e)) > e), long_enough(s, s.leader(e), e, s.committed(e))
        ),
        lambda s, e: [[s.committed(e)]],
    ),
    Conjunct(
        "a leader that moved on still has what it committed",
        "e o",
        lambda s, e, o: z3.Implies(
            z3.And(is_epoch(s, e), s.known(s.leader(e)) > e), same_record(s, s.leader(e), e, s.committed(e), o)
        ),
        lambda s, e, o: [[s.committed(e), s.record(s.leader(e), o)], [s.committed(e), s.hist(e, o)]],
    ),
    Conjunct(
        "what is committed is in the history",
        "e",
        lambda s, e: z3.And(s.committed(e) >= 0, s.committed(e) <= s.hist_end(e)),
        lambda s, e: [[s.committed(e)]],
    ),
    Conjunct(
        "the cap bounds what is committed",
        "e",
        lambda s, e: z3.Implies(
            s.capped(e), z3.And(s.committed(e) <= s.cap(e), s.cap(e) <= s.hist_end(e), e >= 0, e < s.current)
        ),
        lambda s, e: [[s.cap(e)], [s.capped(e)]],
    ),
    Conjunct(
        "the cap has a witness that answers no more",
        "e",
        lambda s, e: z3.Implies(
            s.capped(e),
            z3.And(
                is_broker(s, s.witness(e)),
                s.isr(e, s.witness(e)),
                s.known(s.witness(e)) > e,
                z3.Or(s.witness(e) == s.leader(e), s.asked(e, s.witness(e)) <= s.cap(e)),
            ),
        ),
        lambda s, e: [[s.cap(e)], [s.capped(e)]],
    ),
    Conjunct(
        "a later leader caps the epochs before it",
        "e f",
        lambda s, e, f: z3.Implies(z3.And(s.begun(f), e >= 0, e < f), z3.And(s.capped(e), s.cap(e) <= s.start(f))),
        lambda s, e, f: [[s.begun(f), s.capped(e)], [s.begun(f), s.cap(e)], [s.begun(f), s.committed(e)]],
    ),
    Conjunct(
        "a later leader's past holds all below the cap",
        "e f o",
        lambda s, e, f, o: z3.Implies(z3.And(s.begun(f), e >= 0, e < f, o >= 0, o < s.cap(e)), s.hist(f, o) == s.hist(e, o)),
        lambda s, e, f, o: [[s.begun(f), s.hist(e, o)], [s.cap(e), s.hist(f, o)]],
    ),
    Conjunct(
        "who joined the ISR later is as long as the cap",
        "r e f",
        lambda s, r, e, f: z3.Implies(
            joined_later(s, r, e, f),
            z3.And(s.capped(e), z3.Or(s.cap(e) == 0, s.known(r) > e), long_enough(s, r, e, s.cap(e))),
        ),
        lambda s, r, e, f: [[s.isr(f, r), s.isr(e, r)]],
    ),
    Conjunct(
        "who joined the ISR later shares all below the cap",
        "r e f o",
        lambda s, r, e, f, o: z3.Implies(joined_later(s, r, e, f), same_record(s, r, e, s.cap(e), o)),
        lambda s, r, e, f, o: [[s.isr(f, r), s.isr(e, r), s.record(r, o)], [s.isr(f, r), s.isr(e, r), s.hist(e, o)]],
    ),
)
