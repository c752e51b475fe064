"""Every step of the cluster keeps the invariant of `committed.py`, it holds at the start, and it gives the claims."""

from collections.abc import Callable
from dataclasses import replace

import z3

from tidegauge.spec.proofs.committed.cluster import NONE, State, any_state
from tidegauge.spec.proofs.committed.disk_steps import DISK_STEPS
from tidegauge.spec.proofs.committed.invariant import INVARIANT
from tidegauge.spec.proofs.committed.isr_steps import ISR_STEPS
from tidegauge.spec.proofs.committed.steps import Step, a_broker, append, ask, commit, elect, learn, serve, take, truncate
from tidegauge.spec.proofs.engine.induction import assume_all, prove_all
from tidegauge.spec.proofs.engine.paths import Path


def assume_invariant(path: Path, s: State) -> None:
    """Every conjunct, with its triggers."""
    path.assume(z3.And(s.brokers > 0, s.current >= 0))
    assume_all(path, s, INVARIANT)


def prove_invariant(path: Path, s: State) -> None:
    """Every conjunct, for arbitrary values of its variables."""
    prove_all(path, s, INVARIANT)


def keeps(step: Step) -> Callable[[Path, int], None]:
    """The lemma that a step keeps the invariant."""

    def lemma(path: Path, _: int) -> None:
        before = any_state()
        assume_invariant(path, before)
        prove_invariant(path, step(path, before))

    lemma.__name__ = f"{step.__name__}_keeps_it"
    return lemma


def initially(path: Path, _: int) -> None:
    """Empty logs, nothing learned, everybody in the ISR of epoch 0."""
    s, first = any_state(), path.integer("first")
    zero, no = z3.IntVal(0), z3.BoolVal(False)
    path.assume(z3.And(s.brokers > 0, first >= 0, first < s.brokers))
    prove_invariant(
        path,
        replace(
            s,
            current=zero,
            leader=lambda _e: first,
            isr=lambda _e, _b: z3.BoolVal(True),
            version=lambda _e: zero,
            image=lambda _e, _v, _b: z3.BoolVal(True),
            known_version=lambda _e: z3.IntVal(-1),
            status=lambda _e: z3.IntVal(NONE),
            known=lambda _b: z3.IntVal(-1),
            gone=lambda _b: no,
            log_start=lambda _b: zero,
            log_end=lambda _b: zero,
            begun=lambda _e: no,
            hist_end=lambda _e: zero,
            remote=lambda _e, _r: zero,
            asked=lambda _e, _r: zero,
            shown=lambda _e: zero,
            committed=lambda _e: zero,
            capped=lambda _e: no,
            hw=lambda _b: zero,
        ),
    )


def committed_data_is_safe(path: Path, _: int) -> None:
    """The claim: committed data lies in every later leader's past and on every ISR member."""
    s = any_state()
    assume_invariant(path, s)
    e, f, o, r = path.integer("epoch", 0), path.integer("later"), path.integer("offset", 0), a_broker(path, s, "member")
    path.assume(z3.And(e <= s.current, o < s.committed(e)))
    path.decide(s.isr(e, r))  # a member since then, or one that joined later
    path.decide(s.asked(e, r) >= s.committed(e))
    later = z3.And(s.begun(f), e < f)
    path.goal("every later leader began with it", z3.Implies(later, z3.And(o < s.start(f), s.hist(f, o) == s.hist(e, o))))
    member = s.isr(s.current, r)
    path.goal("every ISR member has it", z3.Implies(member, z3.And(o < s.log_end(r), s.record(r, o) == s.hist(e, o))))


def what_is_shown_is_safe(path: Path, _: int) -> None:
    """What any broker's high watermark shows is committed: every later leader began with it, every ISR member has it."""
    s = any_state()
    assume_invariant(path, s)
    b, o, f, r = a_broker(path, s, "shows"), path.integer("offset", 0), path.integer("later"), a_broker(path, s, "member")
    path.assume(o < s.hw(b))
    e = s.origin(b)
    path.decide(s.isr(e, r))
    path.decide(s.asked(e, r) >= s.committed(e))
    later = z3.And(s.begun(f), e < f)
    path.goal("it is committed", z3.And(e <= s.current, o < s.committed(e)))
    path.goal("every later leader began with it", z3.Implies(later, z3.And(o < s.start(f), s.hist(f, o) == s.record(b, o))))
    member = s.isr(s.current, r)
    path.goal("every ISR member has it", z3.Implies(member, z3.And(o < s.log_end(r), s.record(r, o) == s.record(b, o))))


STEPS: tuple[Step, ...] = (elect, learn, append, truncate, ask, serve, take, commit, *ISR_STEPS, *DISK_STEPS)
CLAIMS: tuple[Callable[[Path, int], None], ...] = (committed_data_is_safe, what_is_shown_is_safe)
LEMMAS: tuple[Callable[[Path, int], None], ...] = (initially, *map(keeps, STEPS), *CLAIMS)
