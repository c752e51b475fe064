"""Every step of the cluster keeps the invariant of `committed.py`, it holds at the start, and it gives the claim."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import z3

from spec.proofs.committed import (
    COMMIT_NEEDS_ALL,
    ELECT_FROM_ISR,
    INVARIANT,
    JOIN_AT_EPOCH_START,
    JOIN_AT_HIGH_WATERMARK,
    RESTART_LEADS_LATER,
    State,
    any_state,
)
from spec.proofs.paths import Path
from spec.proofs.symbolic import AnySeq, higher

Step = Callable[[Path, State], State]


def assume_invariant(path: Path, s: State) -> None:
    """Every conjunct, with its triggers."""
    path.assume(z3.And(s.brokers > 0, s.current >= 0))
    for conjunct in INVARIANT:
        variables = z3.Ints(conjunct.variables)
        for trigger in conjunct.triggers(s, *variables):
            path.forall(variables, conjunct.holds(s, *variables), *trigger)


def prove_invariant(path: Path, s: State) -> None:
    """Every conjunct, for arbitrary values of its variables."""
    for conjunct in INVARIANT:
        values = [path.integer(f"{conjunct.name}:{v}", show=False) for v in conjunct.variables.split()]
        path.goal(conjunct.name, conjunct.holds(s, *values))


def keeps(step: Step) -> Callable[[Path, int], None]:
    """The lemma that a step keeps the invariant."""

    def lemma(path: Path, _: int) -> None:
        before = any_state()
        assume_invariant(path, before)
        prove_invariant(path, step(path, before))

    lemma.__name__ = f"{step.__name__}_keeps_it"
    return lemma


def _leads(s: State, e: Any) -> Any:
    """Epoch e's leader leads it and has not learned of a later one; it may be deposed all the same."""
    return z3.And(e >= 0, e <= s.current, s.known(s.leader(e)) == e)


def _a_broker(path: Path, s: State, name: str) -> Any:
    broker = path.integer(name)
    path.assume(z3.And(broker >= 0, broker < s.brokers))
    return broker


def elect(path: Path, s: State) -> State:
    """The controller elects an ISR member for the next epoch, and may drop others from the ISR."""
    chosen = _a_broker(path, s, "chosen")
    path.assume(s.isr(s.current, chosen), ELECT_FROM_ISR)
    left, r = z3.Function("left", z3.IntSort(), z3.BoolSort()), z3.Int("r")
    path.assume(left(chosen))
    path.forall([r], z3.Implies(z3.And(left(r), r != chosen), s.isr(s.current, r)), left(r))
    new = s.current + 1
    return replace(
        s,
        current=new,
        leader=lambda e: z3.If(e == new, chosen, s.leader(e)),
        isr=lambda e, b: z3.If(e == new, left(b), s.isr(e, b)),
    )


def _checkpoint(path: Path, s: State, b: Any) -> Any:
    """The high watermark of a broker that may have restarted: no higher than it was, perhaps none."""
    loaded = path.integer("checkpointed", low=0)
    path.assume(loaded <= s.hw(b))
    return loaded


def learn(path: Path, s: State) -> State:
    """A broker learns of any epoch later than the one it knows; its leader begins to lead.

    It may have restarted before, as a leader too: its high watermark is then the checkpoint.
    """
    b, epoch = _a_broker(path, s, "learner"), path.integer("epoch")
    path.assume(z3.And(s.known(b) < epoch, epoch <= s.current, epoch >= 0))
    loaded = _checkpoint(path, s, b)
    learned = replace(s, known=lambda x: z3.If(x == b, epoch, s.known(x)), hw=lambda x: z3.If(x == b, loaded, s.hw(x)))
    if not path.decide(s.leader(epoch) == b):
        return learned

    def earlier(e: Any) -> Any:
        return z3.And(e >= 0, e < epoch)

    def follows(e: Any) -> Any:
        return z3.And(earlier(e), s.isr(e, b), s.leader(e) != b)

    def is_lowest(e: Any) -> Any:
        return z3.And(follows(e), z3.Or(z3.Not(s.capped(e)), s.asked(e, b) <= s.cap(e)))

    def led(e: Any) -> Any:
        return z3.And(earlier(e), s.leader(e) == b)

    return replace(
        learned,
        begun=lambda e: z3.Or(e == epoch, s.begun(e)),
        start=lambda e: z3.If(e == epoch, s.log_end(b), s.start(e)),
        hist=lambda e, o: z3.If(e == epoch, s.record(b, o), s.hist(e, o)),
        hist_end=lambda e: z3.If(e == epoch, s.log_end(b), s.hist_end(e)),
        shown=lambda e: z3.If(e == epoch, loaded, s.shown(e)),
        shown_from=lambda e: z3.If(e == epoch, s.origin(b), s.shown_from(e)),
        capped=lambda e: z3.Or(earlier(e), s.capped(e)),
        cap=lambda e: z3.If(is_lowest(e), s.asked(e, b), z3.If(led(e), s.committed(e), s.cap(e))),
        witness=lambda e: z3.If(z3.Or(is_lowest(e), led(e)), b, s.witness(e)),
    )


def append(path: Path, s: State) -> State:
    """A leader, deposed or not, appends a record of its epoch."""
    epoch = path.integer("epoch")
    path.assume(_leads(s, epoch))
    b, end = s.leader(epoch), s.hist_end(epoch)
    return replace(
        s,
        record=lambda x, o: z3.If(z3.And(x == b, o == s.log_end(b)), epoch, s.record(x, o)),
        log_end=lambda x: z3.If(x == b, s.log_end(b) + 1, s.log_end(x)),
        hist=lambda e, o: z3.If(z3.And(e == epoch, o == end), epoch, s.hist(e, o)),
        hist_end=lambda e: z3.If(e == epoch, end + 1, s.hist_end(e)),
    )


def _a_follower(path: Path, s: State) -> tuple[Any, Any]:
    """A follower in an epoch whose leader has begun; that leader may have learned of a later epoch since."""
    f, epoch = _a_broker(path, s, "follower"), path.integer("epoch")
    path.assume(z3.And(s.begun(epoch), s.known(f) == epoch, s.leader(epoch) != f))
    return f, epoch


def cut(path: Path, s: State) -> State:
    """A follower cuts its log where it and its leader differ, or anywhere above that.

    The answer may be old: the leader's log has only grown since, and with records of its epoch, which the follower's
    records at a difference are not. It was made for this log: a follower has one fetch in flight.
    """
    f, epoch = _a_follower(path, s)
    target = path.integer("target", low=0)
    differs = z3.Or(target >= s.hist_end(epoch), s.record(f, target) != s.hist(epoch, target))
    path.assume(z3.And(target < s.log_end(f), differs))
    lowered = path.call("high_watermark_after_truncation", s.hw(f), target)
    return replace(
        s,
        log_end=lambda x: z3.If(x == f, target, s.log_end(x)),
        hw=lambda x: z3.If(x == f, lowered, s.hw(x)),
    )


def ask(path: Path, s: State) -> State:
    """A follower whose log is a prefix of its leader's sends a fetch at its end.

    A fetch at another end or of another past is answered as diverging, whenever it arrives: nothing is recorded.
    """
    f, epoch = _a_follower(path, s)
    end = s.log_end(f)
    last_agrees = z3.Or(end == 0, s.record(f, end - 1) == s.hist(epoch, end - 1))
    path.assume(z3.And(end <= s.hist_end(epoch), last_agrees))
    highest = higher(s.asked(epoch, f), end)
    return replace(s, asked=lambda e, r: z3.If(z3.And(e == epoch, r == f), highest, s.asked(e, r)))


def serve(path: Path, s: State) -> State:
    """A leader, deposed or not, records a fetch: the last one, an old one or one twice, whatever its sender does now."""
    f, epoch, offset = _a_broker(path, s, "follower"), path.integer("epoch"), path.integer("offset", low=0)
    path.assume(z3.And(_leads(s, epoch), s.leader(epoch) != f, offset <= s.asked(epoch, f)))
    return replace(s, remote=lambda e, r: z3.If(z3.And(e == epoch, r == f), offset, s.remote(e, r)))


def take(path: Path, s: State) -> State:
    """A follower takes records for the end it asked at, perhaps long after they left: any that the leader has had.

    The high watermark in the answer is one the leader had then: any that is not above its last.
    """
    f, epoch = _a_follower(path, s)
    end, new_end, told = s.log_end(f), path.integer("new_end"), path.integer("told", low=0)
    path.assume(z3.And(end <= s.asked(epoch, f), end <= new_end, new_end <= s.hist_end(epoch), told <= s.shown(epoch)))
    followed = path.call("follower_high_watermark", told, z3.IntVal(0), new_end)
    return replace(
        s,
        hw=lambda x: z3.If(x == f, followed, s.hw(x)),
        origin=lambda x: z3.If(x == f, s.shown_from(epoch), s.origin(x)),
        record=lambda x, o: z3.If(z3.And(x == f, o >= end), s.hist(epoch, o), s.record(x, o)),
        log_end=lambda x: z3.If(x == f, new_end, s.log_end(x)),
    )


def commit(path: Path, s: State) -> State:
    """A leader, deposed or not, raises its high watermark by the rule, over the ISR it last knew.

    Whether the ISR is too small for min.insync.replicas is left open: then the rule lets the high watermark stand.
    """
    epoch = path.integer("epoch")
    path.assume(_leads(s, epoch))
    counted, r = z3.Function("counted", z3.IntSort(), z3.BoolSort()), z3.Int("r")
    if COMMIT_NEEDS_ALL not in path.dropped:
        counts = counted(r) == z3.And(s.isr(epoch, r), r != s.leader(epoch))
        path.forall([r], counts, counted(r))
        path.forall([r], counts, s.isr(epoch, r))
    path.premises.add(COMMIT_NEEDS_ALL)
    leos = AnySeq(path, lambda i: s.remote(epoch, i), s.brokers)
    b, too_few = s.leader(epoch), z3.Bool("too_few")
    others = AnySeq(path, counted, s.brokers)
    hw = path.call("leader_high_watermark", s.hw(b), s.hist_end(epoch), leos, others, too_few)
    if not path.decide(hw > s.hw(b)):
        return s
    return replace(
        s,
        committed=lambda e: z3.If(e == epoch, hw, s.committed(e)),
        hw=lambda x: z3.If(x == b, hw, s.hw(x)),
        origin=lambda x: z3.If(x == b, epoch, s.origin(x)),
        shown=lambda e: z3.If(e == epoch, hw, s.shown(e)),
        shown_from=lambda e: z3.If(e == epoch, epoch, s.shown_from(e)),
    )


def shrink(path: Path, s: State) -> State:
    """The leader and the controller drop a follower from the ISR."""
    out = _a_broker(path, s, "out")
    path.assume(z3.And(_leads(s, s.current), out != s.leader(s.current)))
    return replace(s, isr=lambda e, b: z3.If(z3.And(e == s.current, b == out), z3.BoolVal(False), s.isr(e, b)))


def expand(path: Path, s: State) -> State:
    """The leader and the controller take a follower into the ISR, by the rule."""
    joins = _a_broker(path, s, "joins")
    path.assume(_leads(s, s.current))
    path.premises |= {JOIN_AT_HIGH_WATERMARK, JOIN_AT_EPOCH_START}
    hw = 0 if JOIN_AT_HIGH_WATERMARK in path.dropped else s.hw(s.leader(s.current))
    start = 0 if JOIN_AT_EPOCH_START in path.dropped else s.start(s.current)
    path.assume(path.call("may_join_isr", s.remote(s.current, joins), hw, start))
    return replace(s, isr=lambda e, b: z3.Or(z3.And(e == s.current, b == joins), s.isr(e, b)))


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
            known=lambda _b: z3.IntVal(-1),
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
    e, f, o, r = path.integer("epoch", 0), path.integer("later"), path.integer("offset", 0), _a_broker(path, s, "member")
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
    b, o, f, r = _a_broker(path, s, "shows"), path.integer("offset", 0), path.integer("later"), _a_broker(path, s, "member")
    path.assume(o < s.hw(b))
    e = s.origin(b)
    path.decide(s.isr(e, r))
    path.decide(s.asked(e, r) >= s.committed(e))
    later = z3.And(s.begun(f), e < f)
    path.goal("it is committed", z3.And(e <= s.current, o < s.committed(e)))
    path.goal("every later leader began with it", z3.Implies(later, z3.And(o < s.start(f), s.hist(f, o) == s.record(b, o))))
    member = s.isr(s.current, r)
    path.goal("every ISR member has it", z3.Implies(member, z3.And(o < s.log_end(r), s.record(r, o) == s.record(b, o))))


def restart(path: Path, s: State) -> State:
    """A follower restarts with its log whole and the high watermark it last wrote to disk."""
    b = _a_broker(path, s, "restarts")
    path.assume(z3.Or(s.known(b) < 0, s.leader(s.known(b)) != b), RESTART_LEADS_LATER)
    loaded = _checkpoint(path, s, b)
    return replace(s, hw=lambda x: z3.If(x == b, loaded, s.hw(x)))


STEPS: tuple[Step, ...] = (elect, learn, append, cut, ask, serve, take, commit, shrink, expand, restart)
CLAIMS: tuple[Callable[[Path, int], None], ...] = (committed_data_is_safe, what_is_shown_is_safe)
LEMMAS: tuple[Callable[[Path, int], None], ...] = (initially, *map(keeps, STEPS), *CLAIMS)
