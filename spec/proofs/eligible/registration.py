"""The registration of one partition and what its leaders know of it, for any number of brokers, epochs and versions.

Rules of this file

1. A state is a bundle of functions, so nothing bounds how many brokers there are. A version is what one record of the
   metadata log made of the registration; an epoch's leader may know any of the versions of that epoch.
2. Data is one truth value: `whole(b)`, the log of b holds everything committed. That a truncation removes nothing committed
   is taken over from the proof of committed data (`spec/proofs/committed`).
3. A number stands for the size of an ISR. Of counting nothing is used but this: who leaves makes it no larger, one member
   is 1, and an eligible replica outside the ISR makes the ISR smaller than the replicas.

A ghost makes the invariant inductive: `witness(e)` is a later leader that has begun, whom the leader of epoch e would need
in order to commit, and who fetches from it no more.
"""

from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

import z3

from tidegauge.spec.proofs.engine.induction import Function

NOBODY = -1


class Premise(StrEnum):
    """What the invariant rests on; each is needed (`runs.py`)."""

    ELECT_ELIGIBLE = "a leader is elected from the ISR or the ELR"
    ELIGIBLE_BELOW_MIN_ISR = "who leaves the ISR stays eligible only while the ISR is below min ISR"
    ELECTION_LOOKS_AGAIN = "an election from the ELR that meets min ISR ends the ELR"
    CHANGE_LOOKS_AGAIN = "a new min ISR that the ISR meets ends the ELR"
    REMOVED_LEAVES = "a replica that is removed leaves the ELR"
    LOST_LEAVES = "who comes back without its log leaves the ELR"
    COMMIT_ON_MIN_ISR = "the high watermark stands still while the ISR that its leader knows is below min ISR"
    ISR_WITH_MIN_ISR = "who hears of an ISR has heard of the min ISR that it was made by"
    MIN_ISR_IN_ORDER = "who hears of a min ISR has heard of the ISRs before it"
    JOINS_WHOLE = "who joins the ISR holds everything committed"
    KNOWS_THE_LATEST = "the controller takes an ISR from the latest leader, made from the latest ISR"
    NO_OLD_INCARNATION = "the controller takes no broker into the ISR that has come back without its log since"


@dataclass(frozen=True)
class State:
    """The registration, every version of it, and what leaders know."""

    current: Any
    """the latest leader epoch"""
    version: Any
    """the latest version"""
    minimum: Any
    """min.insync.replicas, as the controller has written it last"""
    minimum_version: Any
    """the latest version when it was written"""
    replica: Function
    """broker -> is a replica"""
    elr: Function
    """broker -> is an eligible leader replica"""
    isr: Function
    """version, broker -> in the ISR"""
    size: Function
    """version -> members of the ISR"""
    replicas: Function
    """version -> how many replicas there are"""
    minimum_at: Function
    """version -> min.insync.replicas when it was written"""
    leader: Function
    """epoch -> broker elected for it, NOBODY for none"""
    first: Function
    """epoch -> its first version"""
    last: Function
    """epoch -> its last version, once a later epoch is there"""
    learned: Function
    """broker -> the latest epoch it has learned, NOBODY none"""
    begun: Function
    """epoch -> its leader has learned that it leads"""
    known: Function
    """epoch -> the version of the ISR that its leader knows"""
    known_minimum: Function
    """epoch -> the min.insync.replicas that its leader knows"""
    joins: Function
    """epoch -> whom its leader has proposed for the ISR, NOBODY for nobody"""
    fit: Function
    """epoch -> that broker has not come back without its log since"""
    blocked: Function
    """epoch -> the leader of a later epoch has begun"""
    witness: Function
    """epoch -> that leader"""
    whole: Function
    """broker -> its log holds everything committed"""


NUMBERS = ("current", "version", "minimum", "minimum_version")
TRUTHS = {"replica", "elr", "isr", "begun", "fit", "blocked", "whole"}


def any_state() -> State:
    """A state about which nothing is known."""
    integer, truth = z3.IntSort(), z3.BoolSort()
    names = [field.name for field in fields(State) if field.name not in NUMBERS]
    functions = {n: z3.Function(n, *[integer] * (2 if n == "isr" else 1), truth if n in TRUTHS else integer) for n in names}
    return State(**{name: z3.Int(f"the {name}") for name in NUMBERS}, **functions)


def is_epoch(s: State, e: Any) -> Any:
    """e is one of the epochs."""
    return z3.And(e >= 0, e <= s.current)


def leading(s: State, e: Any) -> Any:
    """Epoch e's leader leads it and has learned of no later one; it may be deposed all the same."""
    return z3.And(is_epoch(s, e), s.begun(e), s.learned(s.leader(e)) == e)


def may_lead(s: State, e: Any) -> Any:
    """Epoch e's leader leads it, or may begin to."""
    return z3.And(is_epoch(s, e), s.leader(e) != NOBODY, s.learned(s.leader(e)) <= e)


def last_version(s: State, e: Any) -> Any:
    """The latest version of epoch e."""
    return z3.If(e == s.current, s.version, s.last(e))


def eligible(s: State, b: Any) -> Any:
    """b may be elected cleanly."""
    return z3.Or(s.isr(s.version, b), s.elr(b))


def proposed(s: State, e: Any, b: Any) -> Any:
    """Epoch e's leader has proposed b for the ISR."""
    return z3.And(b != NOBODY, s.joins(e) == b)


def counted(s: State, e: Any, b: Any) -> Any:
    """The high watermark of epoch e's leader waits for b: in the ISR it knows, or proposed for it."""
    return z3.Or(s.isr(s.known(e), b), proposed(s, e, b))


def small(s: State, v: Any, minimum: Any) -> Any:
    """The ISR of version v is below that min ISR, and below the replicas, which cap it."""
    return z3.And(s.size(v) < minimum, s.size(v) < s.replicas(v))


def waits_or_stands(s: State, e: Any, b: Any) -> Any:
    """Epoch e's leader, once it has begun, waits for b, or its high watermark stands still."""
    return z3.Implies(s.begun(e), z3.Or(counted(s, e, b), small(s, s.known(e), s.known_minimum(e))))


def will_wait_or_stand(s: State, e: Any, v: Any, b: Any) -> Any:
    """The same of every version that it may hear of yet, with the min ISR that it was made by, and with that of now."""
    of_epoch = z3.And(s.first(e) <= v, v <= last_version(s, e))
    ahead = z3.And(of_epoch, z3.Implies(s.begun(e), s.known(e) < v))
    since = z3.And(of_epoch, z3.Implies(s.begun(e), s.known(e) <= v), s.minimum_version <= v)
    joining = z3.And(s.begun(e), v == s.known(e), proposed(s, e, b))
    return z3.And(
        z3.Implies(ahead, z3.Or(s.isr(v, b), small(s, v, s.minimum_at(v)))),
        z3.Implies(since, z3.Or(s.isr(v, b), joining, small(s, v, s.minimum))),
    )
