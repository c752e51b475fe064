"""Conjuncts about high watermarks and log starts: only committed records are shown or deleted."""

import z3

from tidegauge.spec.proofs.committed.cluster import is_broker, leads
from tidegauge.spec.proofs.engine.induction import Conjunct

HW_CONJUNCTS: tuple[Conjunct, ...] = (
    Conjunct(
        "a high watermark lies in its log",
        "b",
        lambda s, b: z3.Implies(is_broker(s, b), z3.And(s.hw(b) >= 0, s.hw(b) <= s.log_end(b))),
        lambda s, b: [[s.hw(b)], [s.log_end(b)]],
    ),
    Conjunct(
        "a high watermark was reached by a leader",
        "b",
        lambda s, b: z3.Implies(
            z3.And(is_broker(s, b), s.hw(b) > 0),
            z3.And(s.begun(s.origin(b)), s.origin(b) <= s.known(b), s.hw(b) <= s.committed(s.origin(b))),
        ),
        lambda s, b: [[s.hw(b)], [s.origin(b)]],
    ),
    Conjunct(
        "below its high watermark a log is what that leader had",
        "b o",
        lambda s, b, o: z3.Implies(z3.And(is_broker(s, b), o >= 0, o < s.hw(b)), s.record(b, o) == s.hist(s.origin(b), o)),
        lambda s, b, o: [[s.hw(b), s.record(b, o)], [s.hist(s.origin(b), o)]],
    ),
    Conjunct(
        "while it leads, a leader shows its high watermark",
        "e",
        lambda s, e: z3.Implies(
            leads(s, e), z3.And(s.shown(e) == s.hw(s.leader(e)), s.shown_from(e) == s.origin(s.leader(e)))
        ),
        lambda s, e: [[s.shown(e)], [s.hw(s.leader(e))]],
    ),
    Conjunct(
        "a leader shows at least what it committed in its epoch",
        "e",
        lambda s, e: z3.Implies(s.begun(e), z3.And(s.committed(e) <= s.shown(e), s.shown(e) <= s.hist_end(e))),
        lambda s, e: [[s.committed(e)], [s.shown(e)]],
    ),
    Conjunct(
        "what a leader shows was reached by a leader",
        "e",
        lambda s, e: z3.Implies(
            z3.And(s.begun(e), s.shown(e) > 0),
            z3.And(s.begun(s.shown_from(e)), s.shown_from(e) <= e, s.shown(e) <= s.committed(s.shown_from(e))),
        ),
        lambda s, e: [[s.shown(e)], [s.shown_from(e)]],
    ),
    Conjunct(
        "what a leader shows is what the one that reached it had",
        "e o",
        lambda s, e, o: z3.Implies(z3.And(s.begun(e), o >= 0, o < s.shown(e)), s.hist(e, o) == s.hist(s.shown_from(e), o)),
        lambda s, e, o: [[s.shown(e), s.hist(e, o)], [s.hist(s.shown_from(e), o)]],
    ),
)

LOG_START_CONJUNCTS: tuple[Conjunct, ...] = (
    Conjunct(
        "a log starts at or below its high watermark",
        "b",
        lambda s, b: z3.Implies(is_broker(s, b), z3.And(s.log_start(b) >= 0, s.log_start(b) <= s.hw(b))),
        lambda s, b: [[s.log_start(b)], [s.hw(b)]],
    ),
    Conjunct(
        "while it leads, a leader tells its log start",
        "e",
        lambda s, e: z3.Implies(leads(s, e), s.deleted(e) == s.log_start(s.leader(e))),
        lambda s, e: [[s.deleted(e)], [s.log_start(s.leader(e))]],
    ),
    Conjunct(
        "a leader has deleted no more than it shows",
        "e",
        lambda s, e: z3.Implies(s.begun(e), z3.And(s.deleted(e) >= 0, s.deleted(e) <= s.shown(e))),
        lambda s, e: [[s.deleted(e)]],
    ),
)
