"""Committed data outlives every election: an inductive invariant, for any number of brokers, epochs and offsets.

What a leader committed lies in the past of every later leader, and on every member of the ISR. Deposed leaders are in
the model with all they can do: until they learn of a later epoch they append, answer fetches and raise their high
watermark. Fetches are in flight as long as they like: they are asked, recorded and taken in steps of their own, late, out
of order or twice. A cut removes only what the follower does not share with its leader, and a fetch that reads extends a
prefix of the leader's log; both are what the convergence proofs say of the rules. High watermarks and ISR admission are
the rules themselves. A broker that restarts has its log and an older high watermark, the one in its checkpoint.

Not in it: two fetches of one follower in flight, pending ISR changes, restarts that lose a tail, log start, ELR, unclean
election, and remote LEOs kept by a leader that is elected again.

Two ghosts make it inductive. `hist(e, o)` is the log of epoch e's leader while it leads, and stays when it stops: log
matching becomes a statement about one log at a time. `cap(e)` bounds what the leader of epoch e can still commit once
a later leader has begun, because some ISR member of e (`witness(e)`) has moved on and sends no more fetches in e. What it
asked at before (`asked`) may still be recorded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import z3

from spec.proofs.symbolic import lower

ELECT_FROM_ISR = "a leader is elected from the ISR"
COMMIT_NEEDS_ALL = "the high watermark waits for every ISR member"
JOIN_AT_HIGH_WATERMARK = "who joins the ISR has reached the high watermark"
JOIN_AT_EPOCH_START = "who joins the ISR has reached the leader's epoch start"
RESTART_LEADS_LATER = "a leader that restarted leads only in a later epoch"

Function = Callable[..., Any]


@dataclass(frozen=True)
class State:
    """The cluster: each member is a function of broker, epoch and offset, plus the current epoch and the brokers."""

    brokers: Any
    current: Any
    leader: Function
    """epoch -> broker elected for it"""
    isr: Function
    """epoch, broker -> in the ISR of that epoch, as it is or as it was when the next leader was elected"""
    known: Function
    """broker -> the latest epoch it has learned, -1 none"""
    log_end: Function
    record: Function
    """broker, offset -> epoch of its record"""
    begun: Function
    """epoch -> its leader has learned that it leads"""
    start: Function
    """epoch -> its leader's log end when it began"""
    hist: Function
    hist_end: Function
    remote: Function
    """epoch, broker -> the log end that the epoch's leader has recorded for it, 0 before its first fetch"""
    asked: Function
    """epoch, broker -> the highest log end at which it has asked for records in the epoch, sharing all below it"""
    shown: Function
    """epoch -> the high watermark of its leader, as it is or as it was when the leader learned of a later epoch"""
    shown_from: Function
    """epoch -> the epoch in which that high watermark was reached"""
    committed: Function
    """epoch -> the high watermark its leader has reached in it"""
    capped: Function
    cap: Function
    witness: Function
    hw: Function
    """broker -> its high watermark, as leader or follower"""
    origin: Function
    """broker -> the epoch in which that high watermark was reached by its leader"""


def any_state(name: str = "") -> State:
    """A state about which nothing is known."""
    integer, truth = z3.IntSort(), z3.BoolSort()

    def function(label: str, arity: int, sort: Any = integer) -> Function:
        made: Function = z3.Function(name + label, *[integer] * arity, sort)
        return made

    return State(
        brokers=z3.Int(name + "brokers"),
        current=z3.Int(name + "current"),
        leader=function("leader", 1),
        isr=function("isr", 2, truth),
        known=function("known", 1),
        log_end=function("log_end", 1),
        record=function("record", 2),
        begun=function("begun", 1, truth),
        start=function("start", 1),
        hist=function("hist", 2),
        hist_end=function("hist_end", 1),
        remote=function("remote", 2),
        asked=function("asked", 2),
        shown=function("shown", 1),
        shown_from=function("shown_from", 1),
        committed=function("committed", 1),
        capped=function("capped", 1, truth),
        cap=function("cap", 1),
        witness=function("witness", 1),
        hw=function("hw", 1),
        origin=function("origin", 1),
    )


@dataclass(frozen=True)
class Conjunct:
    """One statement for all values of its variables, and the terms that bring it up."""

    name: str
    variables: str
    holds: Function
    triggers: Function


def _epoch(s: State, e: Any) -> Any:
    return z3.And(e >= 0, e <= s.current)


def _broker(s: State, b: Any) -> Any:
    return z3.And(b >= 0, b < s.brokers)


def _leading(s: State, e: Any) -> Any:
    return z3.And(_epoch(s, e), s.known(s.leader(e)) == e)


def _follows(s: State, e: Any, r: Any) -> Any:
    return z3.And(_epoch(s, e), _broker(s, r), r != s.leader(e))


def _long_enough(s: State, r: Any, e: Any, length: Any) -> Any:
    """Broker r's log and the history of epoch e both have `length` records."""
    return z3.And(length <= s.log_end(r), length <= s.hist_end(e))


def _same(s: State, r: Any, e: Any, length: Any, o: Any) -> Any:
    """Below `length`, broker r's log holds what epoch e's leader held, looked at in one offset."""
    return z3.Implies(z3.And(o >= 0, o < length), s.record(r, o) == s.hist(e, o))


def _kept(s: State, e: Any, r: Any) -> Any:
    """How much of what r asked at in epoch e counts after r has moved on."""
    return z3.If(s.capped(e), lower(s.asked(e, r), s.cap(e)), s.asked(e, r))


def _joined_later(s: State, r: Any, e: Any, later: Any) -> Any:
    """r came into the ISR after epoch e, by epoch `later`, and has not learned of a newer one."""
    member = z3.And(_broker(s, r), s.isr(later, r), z3.Not(s.isr(e, r)))
    return z3.And(member, e >= 0, e < later, later <= s.current, s.known(r) <= later)


INVARIANT: tuple[Conjunct, ...] = (
    Conjunct(
        "no broker knows an epoch that is not",
        "b",
        lambda s, b: z3.Implies(_broker(s, b), z3.And(s.known(b) >= -1, s.known(b) <= s.current)),
        lambda s, b: [[s.known(b)]],
    ),
    Conjunct(
        "a leader is a broker and in its ISR",
        "e",
        lambda s, e: z3.Implies(_epoch(s, e), z3.And(_broker(s, s.leader(e)), s.isr(e, s.leader(e)))),
        lambda s, e: [[s.leader(e)]],
    ),
    Conjunct(
        "a leader comes from the ISR before it",
        "e",
        lambda s, e: z3.Implies(z3.And(_epoch(s, e), e > 0), s.isr(e - 1, s.leader(e))),
        lambda s, e: [[s.leader(e)]],
    ),
    Conjunct(
        "who has begun has learned it",
        "e",
        lambda s, e: z3.Implies(s.begun(e), z3.And(_epoch(s, e), s.known(s.leader(e)) >= e)),
        lambda s, e: [[s.begun(e)]],
    ),
    Conjunct(
        "who has learned that it leads has begun",
        "e",
        lambda s, e: z3.Implies(z3.And(_epoch(s, e), s.known(s.leader(e)) == e), s.begun(e)),
        lambda s, e: [[s.leader(e)]],
    ),
    Conjunct(
        "while it leads, a leader's log ends where its history does",
        "e",
        lambda s, e: z3.Implies(_leading(s, e), s.log_end(s.leader(e)) == s.hist_end(e)),
        lambda s, e: [[s.leader(e)], [s.hist_end(e)]],
    ),
    Conjunct(
        "while it leads, a leader's log is its history",
        "e o",
        lambda s, e, o: z3.Implies(_leading(s, e), _same(s, s.leader(e), e, s.hist_end(e), o)),
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
            z3.And(_broker(s, b), o >= 0, o < s.log_end(b)),
            z3.And(s.begun(s.record(b, o)), s.start(s.record(b, o)) <= o, o < s.hist_end(s.record(b, o))),
        ),
        lambda s, b, o: [[s.record(b, o)]],
    ),
    Conjunct(
        "a log agrees with the history of each of its records, below it",
        "b o p",
        lambda s, b, o, p: z3.Implies(
            z3.And(_broker(s, b), p >= 0, p <= o, o < s.log_end(b)), s.record(b, p) == s.hist(s.record(b, o), p)
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
        lambda s, e, r: z3.Implies(z3.And(_follows(s, e, r), s.known(r) == e), _long_enough(s, r, e, s.asked(e, r))),
        lambda s, e, r: [[s.asked(e, r)]],
    ),
    Conjunct(
        "in its epoch a follower shares what it had when it asked",
        "e r o",
        lambda s, e, r, o: z3.Implies(z3.And(_follows(s, e, r), s.known(r) == e), _same(s, r, e, s.asked(e, r), o)),
        lambda s, e, r, o: [[s.asked(e, r), s.record(r, o)], [s.asked(e, r), s.hist(e, o)]],
    ),
    Conjunct(
        "after it a follower is as long as it was when it asked, up to the cap",
        "e r",
        lambda s, e, r: z3.Implies(z3.And(_follows(s, e, r), s.known(r) > e), _long_enough(s, r, e, _kept(s, e, r))),
        lambda s, e, r: [[s.asked(e, r)]],
    ),
    Conjunct(
        "after it a follower shares what it had when it asked, up to the cap",
        "e r o",
        lambda s, e, r, o: z3.Implies(z3.And(_follows(s, e, r), s.known(r) > e), _same(s, r, e, _kept(s, e, r), o)),
        lambda s, e, r, o: [[s.asked(e, r), s.record(r, o)], [s.asked(e, r), s.hist(e, o)]],
    ),
    Conjunct(
        "a leader that moved on is as long as what it committed",
        "e",
        lambda s, e: z3.Implies(
            z3.And(_epoch(s, e), s.known(s.leader(e)) > e), _long_enough(s, s.leader(e), e, s.committed(e))
        ),
        lambda s, e: [[s.committed(e)]],
    ),
    Conjunct(
        "a leader that moved on still has what it committed",
        "e o",
        lambda s, e, o: z3.Implies(
            z3.And(_epoch(s, e), s.known(s.leader(e)) > e), _same(s, s.leader(e), e, s.committed(e), o)
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
        "every ISR member has reached what is committed",
        "e r",
        lambda s, e, r: z3.Implies(z3.And(_follows(s, e, r), s.isr(e, r)), s.committed(e) <= s.asked(e, r)),
        lambda s, e, r: [[s.isr(e, r)], [s.asked(e, r)]],
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
                _broker(s, s.witness(e)),
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
            _joined_later(s, r, e, f),
            z3.And(s.capped(e), z3.Or(s.cap(e) == 0, s.known(r) > e), _long_enough(s, r, e, s.cap(e))),
        ),
        lambda s, r, e, f: [[s.isr(f, r), s.isr(e, r)]],
    ),
    Conjunct(
        "who joined the ISR later shares all below the cap",
        "r e f o",
        lambda s, r, e, f, o: z3.Implies(_joined_later(s, r, e, f), _same(s, r, e, s.cap(e), o)),
        lambda s, r, e, f, o: [[s.isr(f, r), s.isr(e, r), s.record(r, o)], [s.isr(f, r), s.isr(e, r), s.hist(e, o)]],
    ),
    Conjunct(
        "a high watermark lies in its log",
        "b",
        lambda s, b: z3.Implies(_broker(s, b), z3.And(s.hw(b) >= 0, s.hw(b) <= s.log_end(b))),
        lambda s, b: [[s.hw(b)], [s.log_end(b)]],
    ),
    Conjunct(
        "a high watermark was reached by a leader",
        "b",
        lambda s, b: z3.Implies(
            z3.And(_broker(s, b), s.hw(b) > 0),
            z3.And(s.begun(s.origin(b)), s.origin(b) <= s.known(b), s.hw(b) <= s.committed(s.origin(b))),
        ),
        lambda s, b: [[s.hw(b)], [s.origin(b)]],
    ),
    Conjunct(
        "below its high watermark a log is what that leader had",
        "b o",
        lambda s, b, o: z3.Implies(z3.And(_broker(s, b), o >= 0, o < s.hw(b)), s.record(b, o) == s.hist(s.origin(b), o)),
        lambda s, b, o: [[s.hw(b), s.record(b, o)], [s.hist(s.origin(b), o)]],
    ),
    Conjunct(
        "while it leads, a leader shows its high watermark",
        "e",
        lambda s, e: z3.Implies(
            _leading(s, e), z3.And(s.shown(e) == s.hw(s.leader(e)), s.shown_from(e) == s.origin(s.leader(e)))
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
