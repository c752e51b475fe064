"""Conjuncts about the ISR: who may be elected, whom a leader counts, and which changes are in flight to the controller."""

import z3

from tidegauge.spec.proofs.committed.cluster import ACCEPTED, NONE, in_maximal_isr, is_follower
from tidegauge.spec.proofs.engine.induction import Conjunct, is_epoch

ISR_CONJUNCTS: tuple[Conjunct, ...] = (
    Conjunct(
        "who has not begun knows no ISR and asks for none",
        "e",
        lambda s, e: z3.Implies(z3.Not(s.begun(e)), z3.And(s.known_version(e) == -1, s.status(e) == NONE)),
        lambda s, e: [[s.known_version(e)], [s.status(e)], [s.begun(e)]],
    ),
    Conjunct(
        "a leader knows no version of the ISR that is not",
        "e",
        lambda s, e: z3.Implies(
            is_epoch(s, e), z3.And(s.known_version(e) >= -1, s.known_version(e) <= s.version(e), s.version(e) >= 0)
        ),
        lambda s, e: [[s.known_version(e)], [s.version(e)]],
    ),
    Conjunct(
        "the ISR is its last version",
        "e b",
        lambda s, e, b: z3.Implies(is_epoch(s, e), s.image(e, s.version(e), b) == s.isr(e, b)),
        lambda s, e, b: [[s.isr(e, b)], [s.image(e, s.version(e), b)]],
    ),
    Conjunct(
        "a version that its leader has not seen lies in those before it",
        "e v w b",
        lambda s, e, v, w, b: z3.Implies(
            z3.And(is_epoch(s, e), s.known_version(e) < v, v <= w, w <= s.version(e), s.image(e, w, b)), s.image(e, v, b)
        ),
        lambda s, e, v, w, b: [[s.image(e, v, b), s.image(e, w, b)]],
    ),
    Conjunct(
        "a version that its leader has not seen lies in what it knows, or in what it asked for and was given",
        "e v b",
        lambda s, e, v, b: z3.Implies(
            z3.And(s.begun(e), s.known_version(e) < v, v <= s.version(e), s.image(e, v, b)),
            z3.If(s.status(e) == ACCEPTED, s.proposed(e, b), s.view(e, b)),
        ),
        lambda s, e, v, b: [[s.image(e, v, b)]],
    ),
    Conjunct(
        "the ISR lies in what its leader knows, or in what it asked for and was given",
        "e b",
        lambda s, e, b: z3.Implies(
            z3.And(s.begun(e), s.isr(e, b)), z3.If(s.status(e) == ACCEPTED, s.proposed(e, b), s.view(e, b))
        ),
        lambda s, e, b: [[s.isr(e, b)], [s.view(e, b)], [s.proposed(e, b)]],
    ),
    Conjunct(
        "a leader that knows the last version knows the ISR",
        "e b",
        lambda s, e, b: z3.Implies(z3.And(s.begun(e), s.known_version(e) == s.version(e), s.view(e, b)), s.isr(e, b)),
        lambda s, e, b: [[s.view(e, b)], [s.isr(e, b)]],
    ),
    Conjunct(
        "a leader asks for an ISR that it is in",
        "e",
        lambda s, e: z3.Implies(z3.And(s.begun(e), s.status(e) != NONE), s.proposed(e, s.leader(e))),
        lambda s, e: [[s.leader(e)], [s.status(e)]],
    ),
    Conjunct(
        "who is to join has reached the epoch start",
        "e r",
        lambda s, e, r: z3.Implies(
            z3.And(s.begun(e), is_follower(s, e, r), s.status(e) != NONE, s.proposed(e, r), z3.Not(s.view(e, r))),
            s.start(e) <= s.asked(e, r),
        ),
        lambda s, e, r: [[s.proposed(e, r)], [s.view(e, r)]],
    ),
    Conjunct(
        "everybody a leader counts has reached what is committed",
        "e r",
        lambda s, e, r: z3.Implies(
            z3.And(s.begun(e), is_follower(s, e, r), in_maximal_isr(s, e, r)), s.committed(e) <= s.asked(e, r)
        ),
        lambda s, e, r: [[s.view(e, r)], [s.proposed(e, r)], [s.asked(e, r)]],
    ),
    Conjunct(
        "who is in the latest ISR is the broker as it is now",
        "b",
        lambda s, b: z3.Implies(s.isr(s.current, b), z3.Not(s.gone(b))),
        lambda s, b: [[s.isr(s.current, b)], [s.gone(b)]],
    ),
    Conjunct(
        "every ISR member has reached what is committed",
        "e r",
        lambda s, e, r: z3.Implies(z3.And(is_follower(s, e, r), s.isr(e, r)), s.committed(e) <= s.asked(e, r)),
        lambda s, e, r: [[s.isr(e, r)], [s.asked(e, r)]],
    ),
)
