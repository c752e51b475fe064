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
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import z3

from tidegauge.spec.proofs.engine.induction import Function, is_epoch, symbolic_state
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
    current: Any
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
    record: Function
    """broker, offset -> epoch of its record"""
    begun: Function
    """epoch -> its leader has learned that it leads"""
    start: Function
    """epoch -> its leader's log end when it began"""
    hist: Function
    hist_end: Function
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
    cap: Function
    witness: Function
    hw: Function
    """broker -> its high watermark, as leader or follower"""
    origin: Function
    """broker -> the epoch in which that high watermark was reached by its leader"""


NUMBERS = ("brokers", "current")
ARITY = {"isr": 2, "image": 3, "view": 2, "proposed": 2, "record": 2, "hist": 2, "remote": 2, "asked": 2}
TRUTHS = {"isr", "image", "view", "proposed", "gone", "begun", "capped"}


def any_cluster() -> ClusterState:
    """Return a state about which nothing is known."""
    return symbolic_state(ClusterState, NUMBERS, TRUTHS, ARITY)


def is_broker(s: ClusterState, b: Any) -> Any:
    """State that b is one of the brokers, of any incarnation."""
    return z3.And(b >= 0, b < s.brokers)


def leads(s: ClusterState, e: Any) -> Any:
    """State that epoch e's leader leads it and has not learned of a later one; it may be deposed all the same."""
    return z3.And(is_epoch(s, e), s.known(s.leader(e)) == e)


def is_follower(s: ClusterState, e: Any, r: Any) -> Any:
    """State that r is a broker and not the leader of epoch e."""
    return z3.And(is_epoch(s, e), is_broker(s, r), r != s.leader(e))


def long_enough(s: ClusterState, r: Any, e: Any, length: Any) -> Any:
    """State that broker r's log and the history of epoch e both have `length` records."""
    return z3.And(length <= s.log_end(r), length <= s.hist_end(e))


def same_record(s: ClusterState, r: Any, e: Any, length: Any, o: Any) -> Any:
    """State that at offset o, if it is below `length`, broker r's log holds the record of epoch e's leader."""
    return z3.Implies(z3.And(o >= 0, o < length), s.record(r, o) == s.hist(e, o))


def asked_below_cap(s: ClusterState, e: Any, r: Any) -> Any:
    """Return how much of the log end at which r asked in epoch e counts after r has moved on."""
    return z3.If(s.capped(e), lower(s.asked(e, r), s.cap(e)), s.asked(e, r))


def in_maximal_isr(s: ClusterState, e: Any, r: Any) -> Any:
    """State that r is in the maximal ISR of epoch e's leader: in the ISR it knows, or in the one it asks for."""
    return z3.Or(s.view(e, r), z3.And(s.status(e) != NONE, s.proposed(e, r)))


def joined_later(s: ClusterState, r: Any, e: Any, later: Any) -> Any:
    """State that r came into the ISR after epoch e, by epoch `later`, and has not learned of a newer one."""
    member = z3.And(is_broker(s, r), s.isr(later, r), z3.Not(s.isr(e, r)))
    return z3.And(member, e >= 0, e < later, later <= s.current, s.known(r) <= later)
