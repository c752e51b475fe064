"""Conjuncts about epochs, logs and histories."""

import z3

from tidegauge.spec.proofs.committed.cluster import is_broker, leads, same_record
from tidegauge.spec.proofs.engine.induction import Conjunct, is_epoch

LOG_CONJUNCTS: tuple[Conjunct, ...] = (
    Conjunct(
        "no broker knows an epoch that is not",
        "b",
        lambda s, b: z3.Implies(is_broker(s, b), z3.And(s.known(b) >= -1, s.known(b) <= s.current)),
        lambda s, b: [[s.known(b)]],
    ),
    Conjunct(
        "a leader is a broker and in its ISR",
        "e",
        lambda s, e: z3.Implies(is_epoch(s, e), z3.And(is_broker(s, s.leader(e)), s.isr(e, s.leader(e)))),
        lambda s, e: [[s.leader(e)]],
    ),
    Conjunct(
        "a leader comes from the ISR before it",
        "e",
        lambda s, e: z3.Implies(z3.And(is_epoch(s, e), e > 0), s.isr(e - 1, s.leader(e))),
        lambda s, e: [[s.leader(e)]],
    ),
    Conjunct(
        "who has begun has learned it",
        "e",
        lambda s, e: z3.Implies(s.begun(e), z3.And(is_epoch(s, e), s.known(s.leader(e)) >= e)),
        lambda s, e: [[s.begun(e)]],
    ),
    Conjunct(
        "who has learned that it leads has begun",
        "e",
        lambda s, e: z3.Implies(z3.And(is_epoch(s, e), s.known(s.leader(e)) == e), s.begun(e)),
        lambda s, e: [[s.leader(e)]],
    ),
    Conjunct(
        "while it leads, a leader's log ends where its history does",
        "e",
        lambda s, e: z3.Implies(leads(s, e), s.log_end(s.leader(e)) == s.hist_end(e)),
        lambda s, e: [[s.leader(e)], [s.hist_end(e)]],
    ),
    Conjunct(
        "while it leads, a leader's log is its history",
        "e o",
        lambda s, e, o: z3.Implies(leads(s, e), same_record(s, s.leader(e), e, s.hist_end(e), o)),
        lambda s, e, o: [[s.leader(e), s.hist(e, o)], [s.leader(e), s.record(s.leader(e), o)]],
    ),
    Conjunct("logs have ends", "b", lambda s, b: s.log_end(b) >= 0, lambda s, b: [[s.log_end(b)]]),
    Conjunct(
        "a history begins at its start",
        "e",
        lambda s, e: z3.Implies(s.begun(e), z3.And(s.start(e) >= 0, s.start(e) <= s.hist_end(e))),
        lambda s, e: [[s.start(e)], [s.begun(e)]],
    ),
    Conjunct(
        "who has not begun has done nothing",
        "e",
        lambda s, e: z3.Implies(z3.Not(s.begun(e)), z3.And(s.committed(e) == 0, s.hist_end(e) == 0)),
        lambda s, e: [[s.committed(e)], [s.hist_end(e)], [s.begun(e)]],
    ),
    Conjunct(
        "a record lies in the history of its epoch",
        "b o",
        lambda s, b, o: z3.Implies(
            z3.And(is_broker(s, b), o >= 0, o < s.log_end(b)),
            z3.And(s.begun(s.record(b, o)), s.start(s.record(b, o)) <= o, o < s.hist_end(s.record(b, o))),
        ),
        lambda s, b, o: [[s.record(b, o)]],
    ),
    Conjunct(
        "a log agrees with the history of each of its records, below it",
        "b o p",
        lambda s, b, o, p: z3.Implies(
            z3.And(is_broker(s, b), p >= 0, p <= o, o < s.log_end(b)), s.record(b, p) == s.hist(s.record(b, o), p)
        ),
        lambda s, b, o, p: [[s.record(b, o), s.record(b, p)]],
    ),
    Conjunct(
        "a record of a history lies in the history of its epoch",
        "e o",
        lambda s, e, o: z3.Implies(
            z3.And(s.begun(e), o >= 0, o < s.hist_end(e)),
            z3.And(s.begun(s.hist(e, o)), s.start(s.hist(e, o)) <= o, o < s.hist_end(s.hist(e, o))),
        ),
        lambda s, e, o: [[s.hist(e, o)]],
    ),
    Conjunct(
        "a history agrees with the history of each of its records, below it",
        "e o p",
        lambda s, e, o, p: z3.Implies(
            z3.And(s.begun(e), p >= 0, p <= o, o < s.hist_end(e)), s.hist(e, p) == s.hist(s.hist(e, o), p)
        ),
        lambda s, e, o, p: [[s.hist(e, o), s.hist(e, p)]],
    ),
)
