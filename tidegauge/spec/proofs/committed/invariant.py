"""The cluster of the committed-data invariant: its state, its ghosts, and what the conjuncts and steps say about it.

Rules of this file

1. A state is a bundle of functions of broker, epoch and offset, so nothing bounds how many there are of each.
2. A broker is an incarnation. One that comes back without its last records is another broker, whose log is a prefix of
   the old one's, and the old one is gone: that is what Kafka's broker epoch says (KIP-903).
3. A log has all the records it ever had. Deleting moves its start; the records below it exist only in this model.

Two ghosts make the invariant inductive. `hist(e, o)` is the log of epoch e's leader while it leads, and stays when it
stops: log matching becomes a statement about one log at a time. `cap(e)` bounds what the leader of epoch e can still commit
once a later leader has begun, because some ISR member of e (`witness(e)`) has moved on and sends no more fetches in e. A
fetch that it sent before (`asked`) may still be recorded.

In the formulas `s` is the state, `e`, `f` are leader epochs, `b`, `r` brokers (`r` a replica that follows), `o`, `p`
offsets, `v`, `w` versions of the ISR. The members of the state that are read most: `s.known(b)`, the latest epoch that b has
learned; `s.begun(e)`, the leader of e knows that it leads; `s.record(b, o)`, the epoch of b's record at o; `s.asked(e, r)`,
the highest log end at which r has fetched in e; `s.view(e, r)`, r is in the ISR that the leader of e knows. Functions that
"state" something return a z3 formula. A `Conjunct` is its name, the names of its variables, the statement for a state and
these variables, and the terms (triggers) at which the solver uses it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import z3

from tidegauge.spec.proofs.engine.induction import Conjunct, Function, is_epoch, symbolic_state
from tidegauge.spec.proofs.engine.symbolic import lower


class CommittedPremise(StrEnum):
    """A premise that the invariant rests on; each is needed (`runs.py`)."""

    ELECT_FROM_ISR = "a leader is elected from the ISR"
    COMMIT_NEEDS_ALL = "the high watermark waits for every ISR member"
    COUNT_WHO_IS_TO_JOIN = "the high watermark waits for a replica that is proposed for the ISR"
    COUNT_WHO_IS_TO_LEAVE = (
        "the high watermark waits for a replica that is to leave the ISR until the controller has removed it"
    )
    JOIN_AT_HIGH_WATERMARK = "a replica that joins the ISR has reached the high watermark"
    JOIN_AT_EPOCH_START = "a replica that joins the ISR has reached the leader's epoch start"
    CHANGE_KNOWS_THE_LATEST = "the controller takes an ISR from the latest leader, made from the latest ISR"
    NO_OLD_INCARNATION = "the controller takes no broker into the ISR that has restarted without its last records"
    LEFT_ISR_FIRST = "a broker that restarts without its last records has left the ISR"
    RESTART_LEADS_LATER = "a leader that restarted leads only in a later epoch"
    FORGET_LOG_ENDS = "a leader forgets the recorded log ends in a new epoch"
    REQUEST_OF_ITS_EPOCH = "a leader records no request of an older epoch"
    RESPONSE_OF_ITS_EPOCH = "a follower truncates by no response to a request of an older epoch"
    DELETE_BELOW_HIGH_WATERMARK = "only what is below the high watermark is deleted"


NONE, SENT, ACCEPTED, REFUSED = range(4)
"""The status of an ISR change that a leader has proposed; its response may take any time."""


@dataclass(frozen=True)
class ClusterState:
    """The cluster: each member is a function of broker, epoch and offset, plus the current epoch and the brokers."""

    brokers: Any
    """how many; they are the numbers below"""
    current: Any
    """the latest leader epoch"""
    leader: Function
    """epoch -> broker elected for it"""
    isr: Function
    """epoch, broker -> in the controller's ISR in that epoch, as it is or as it was when the next leader was elected"""
    version: Function
    """epoch -> how often the controller has changed the ISR in it (the partition epoch, counted from the election)"""
    image: Function
    """epoch, version, broker -> in the ISR at that version"""
    known_version: Function
    """epoch -> the version that its leader knows, -1 none"""
    view: Function
    """epoch, broker -> in the ISR as its leader knows it"""
    proposed: Function
    """epoch, broker -> in the ISR that its leader asks for"""
    status: Function
    """epoch -> the status of the change its leader asked for"""
    known: Function
    """broker -> the latest epoch it has learned, -1 none"""
    gone: Function
    """broker -> it has restarted without its last records: another broker stands in its place"""
    log_start: Function
    log_end: Function
    """broker -> offset"""
    record: Function
    """broker, offset -> epoch of its record"""
    begun: Function
    """epoch -> its leader has learned that it leads"""
    start: Function
    """epoch -> its leader's log end when it began"""
    hist: Function
    """epoch, offset -> epoch of the record in the log of the epoch's leader, as it is or as it was when it stopped"""
    hist_end: Function
    """epoch -> the log end of its leader, likewise"""
    deleted: Function
    """epoch -> the log start of its leader, as it is or as it was when the leader learned of a later epoch"""
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
    """epoch -> a later leader has begun, so what its leader can still commit is bounded"""
    cap: Function
    """epoch -> that bound, an offset"""
    witness: Function
    """epoch -> the ISR member that has moved on and so bounds it"""
    hw: Function
    """broker -> its high watermark, as leader or follower"""
    origin: Function
    """broker -> the epoch in which that high watermark was reached by its leader"""


NUMBERS = ("brokers", "current")
"""The members that are numbers; all others are functions, of ARITY arguments or one, those of TRUTHS to truth values."""
ARITY = {"isr": 2, "image": 3, "view": 2, "proposed": 2, "record": 2, "hist": 2, "remote": 2, "asked": 2}
TRUTHS = {"isr", "image", "view", "proposed", "gone", "begun", "capped"}


def any_cluster() -> ClusterState:
    """Return a state about which nothing is known: a z3 symbol for each member of ClusterState."""
    return symbolic_state(ClusterState, NUMBERS, TRUTHS, ARITY)


def is_broker(s: ClusterState, b: Any) -> Any:
    """State that b is one of the brokers, of any incarnation."""
    return z3.And(b >= 0, b < s.brokers)


def leads(s: ClusterState, e: Any) -> Any:
    """State that epoch e's leader leads it: it has learned of e and of no later epoch. It may be deposed all the same."""
    return z3.And(is_epoch(s, e), s.known(s.leader(e)) == e)


def is_follower(s: ClusterState, e: Any, r: Any) -> Any:
    """State that r is a broker and not the leader of epoch e."""
    return z3.And(is_epoch(s, e), is_broker(s, r), r != s.leader(e))


def long_enough(s: ClusterState, r: Any, e: Any, length: Any) -> Any:
    """State that broker r's log and the history of epoch e both have `length` records."""
    return z3.And(length <= s.log_end(r), length <= s.hist_end(e))


def same_record(s: ClusterState, r: Any, e: Any, length: Any, o: Any) -> Any:
    """State that at offset o broker r's log holds the record of epoch e's leader, if o is below `length`."""
    return z3.Implies(z3.And(o >= 0, o < length), s.record(r, o) == s.hist(e, o))


def asked_below_cap(s: ClusterState, e: Any, r: Any) -> Any:
    """Return the highest log end at which r has fetched in epoch e, bounded by the cap of e if it has one."""
    return z3.If(s.capped(e), lower(s.asked(e, r), s.cap(e)), s.asked(e, r))


def in_maximal_isr(s: ClusterState, e: Any, r: Any) -> Any:
    """State that r is in the maximal ISR of epoch e's leader: in the ISR it knows, or in the one it asks for."""
    return z3.Or(s.view(e, r), z3.And(s.status(e) != NONE, s.proposed(e, r)))


def joined_later(s: ClusterState, r: Any, e: Any, later: Any) -> Any:
    """State that r is in the ISR of epoch `later`, was not in that of the earlier epoch e, and knows none after `later`."""
    member = z3.And(is_broker(s, r), s.isr(later, r), z3.Not(s.isr(e, r)))
    return z3.And(member, e >= 0, e < later, later <= s.current, s.known(r) <= later)


# ---------------------------------------------------------------------------------------------------------------------
# Committed data outlives every election: the conjuncts of the inductive invariant, and their order.


# Epochs, logs and histories.


LOG_CONJUNCTS: tuple[Conjunct, ...] = (
    Conjunct(
        "no broker knows an epoch that does not exist",
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
        "a leader that has begun has learned its epoch",
        "e",
        lambda s, e: z3.Implies(s.begun(e), z3.And(is_epoch(s, e), s.known(s.leader(e)) >= e)),
        lambda s, e: [[s.begun(e)]],
    ),
    Conjunct(
        "a broker that has learned that it leads has begun",
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
        "a leader that has not begun has done nothing",
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


# The ISR: who may be elected, whom a leader counts, and which changes are in flight to the controller.


ISR_CONJUNCTS: tuple[Conjunct, ...] = (
    Conjunct(
        "a leader that has not begun knows no ISR and asks for none",
        "e",
        lambda s, e: z3.Implies(z3.Not(s.begun(e)), z3.And(s.known_version(e) == -1, s.status(e) == NONE)),
        lambda s, e: [[s.known_version(e)], [s.status(e)], [s.begun(e)]],
    ),
    Conjunct(
        "a leader knows no version of the ISR that does not exist",
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
        "a version that its leader has not seen lies in the ISR that it knows, or in one that it asked for and was given",
        "e v b",
        lambda s, e, v, b: z3.Implies(
            z3.And(s.begun(e), s.known_version(e) < v, v <= s.version(e), s.image(e, v, b)),
            z3.If(s.status(e) == ACCEPTED, s.proposed(e, b), s.view(e, b)),
        ),
        lambda s, e, v, b: [[s.image(e, v, b)]],
    ),
    Conjunct(
        "the ISR lies in the one that its leader knows, or in one that it asked for and was given",
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
        "a proposed member has reached the epoch start",
        "e r",
        lambda s, e, r: z3.Implies(
            z3.And(s.begun(e), is_follower(s, e, r), s.status(e) != NONE, s.proposed(e, r), z3.Not(s.view(e, r))),
            s.start(e) <= s.asked(e, r),
        ),
        lambda s, e, r: [[s.proposed(e, r)], [s.view(e, r)]],
    ),
    Conjunct(
        "every replica that a leader counts has reached what is committed",
        "e r",
        lambda s, e, r: z3.Implies(
            z3.And(s.begun(e), is_follower(s, e, r), in_maximal_isr(s, e, r)), s.committed(e) <= s.asked(e, r)
        ),
        lambda s, e, r: [[s.view(e, r)], [s.proposed(e, r)], [s.asked(e, r)]],
    ),
    Conjunct(
        "a member of the latest ISR is the broker in its present incarnation",
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


# High watermarks and log starts: only committed records are shown or deleted.


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
        "the high watermark that a leader shows was reached by a leader",
        "e",
        lambda s, e: z3.Implies(
            z3.And(s.begun(e), s.shown(e) > 0),
            z3.And(s.begun(s.shown_from(e)), s.shown_from(e) <= e, s.shown(e) <= s.committed(s.shown_from(e))),
        ),
        lambda s, e: [[s.shown(e)], [s.shown_from(e)]],
    ),
    Conjunct(
        "a leader shows the records of the leader that reached its high watermark",
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
        "while it leads, a leader reports its log start",
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


# Fetches that were sent, committed records, and the past of a later leader.


FETCH_CONJUNCTS: tuple[Conjunct, ...] = (
    Conjunct(
        "a leader's recorded log ends are real",
        "e r",
        lambda s, e, r: z3.And(s.remote(e, r) >= 0, s.remote(e, r) <= s.asked(e, r), s.asked(e, r) <= s.hist_end(e)),
        lambda s, e, r: [[s.remote(e, r)], [s.asked(e, r)]],
    ),
    Conjunct(
        "only a broker that has learned the epoch asks in it",
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
        "a leader that moved on has a log as long as what it committed",
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
        "the cap has a witness that no longer answers",
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
        "a replica that joined the ISR later has a log as long as the cap",
        "r e f",
        lambda s, r, e, f: z3.Implies(
            joined_later(s, r, e, f),
            z3.And(s.capped(e), z3.Or(s.cap(e) == 0, s.known(r) > e), long_enough(s, r, e, s.cap(e))),
        ),
        lambda s, r, e, f: [[s.isr(f, r), s.isr(e, r)]],
    ),
    Conjunct(
        "a replica that joined the ISR later shares all below the cap",
        "r e f o",
        lambda s, r, e, f, o: z3.Implies(joined_later(s, r, e, f), same_record(s, r, e, s.cap(e), o)),
        lambda s, r, e, f, o: [[s.isr(f, r), s.isr(e, r), s.record(r, o)], [s.isr(f, r), s.isr(e, r), s.hist(e, o)]],
    ),
)


# The whole invariant, for any number of brokers, epochs and offsets.
#
# What a leader committed lies in the past of every later leader, and on every member of the ISR. Deposed leaders are in the
# model with everything they can do: until they learn of a later epoch they append, answer fetches, propose ISR changes and
# raise their high watermark. A fetch may be in flight for any time: it is sent, recorded and taken in separate steps, late,
# out of order or twice. So is an ISR change: proposed by a leader, taken or refused by the controller, learned of later;
# meanwhile a leader counts everybody who may be in the ISR. A truncation removes only what the follower does not share with
# its leader, and a fetch that reads extends a prefix of the leader's log; the convergence proofs show both for the rules.
# High watermarks, ISR admission and the reset of a log out of range are the rules themselves. A broker that restarts has
# its log or a prefix of it, and an older high watermark, the one in its checkpoint. Records below a high watermark may be
# deleted.
#
# Not modelled: two fetches of one follower in flight, ELR, unclean election.


COMMITTED_INVARIANT: tuple[Conjunct, ...] = (
    *LOG_CONJUNCTS,
    *ISR_CONJUNCTS,
    *FETCH_CONJUNCTS,
    *PAST_CONJUNCTS,
    *HW_CONJUNCTS,
    *LOG_START_CONJUNCTS,
)
