"""The registration of one partition and what its leaders know of it, for any number of brokers, epochs and versions.

Rules of this file

1. A state is a bundle of functions, so nothing bounds how many brokers there are. A version is what one record of the
   metadata log made of the registration; an epoch's leader may know any of the versions of that epoch.
2. Data is one truth value: `whole(b)`, the log of b holds everything committed. The proof of committed data
   (`spec/proofs/committed`) shows that a truncation removes nothing committed; this one takes that for granted.
3. The size of an ISR is a number of its own. It assumes about counting only this: removing a member never enlarges an ISR, a
   single member has size 1, and an eligible replica outside the ISR makes the ISR smaller than the replicas.

A ghost makes the invariant inductive: `witness(e)` is a later leader that has begun. The leader of epoch e would need its
fetches to commit, and it fetches from that leader no more.

In the formulas `s` is the state, `e`, `f` are leader epochs, `b` is a broker, `v` a version. A leader *waits for* a broker
while its high watermark cannot pass that broker's log end; it *stands still* while it may not raise its high watermark at
all, because the ISR that it knows is below min ISR. The ELR is the eligible leader replicas (KIP-966). Functions that
"state" something return a z3 formula. `RegistrationState` describes the members of a state: `s.known(e)`, the version that
the leader of e knows, and `s.known_minimum(e)` the min ISR; `s.begun(e)`, it has learned that it leads; `s.learned(b)`, the
latest epoch that b has learned; `s.joins(e)`, whom the leader of e has proposed. A `Conjunct` is its name, the names of its
variables, the statement for a state and these variables, and the terms (triggers) at which the solver uses it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import z3

from tidegauge.spec.proofs.engine.induction import Conjunct, Function, is_epoch, symbolic_state

NOBODY = -1


class ElectionPremise(StrEnum):
    """A premise that the invariant rests on; each is needed (`runs.py`)."""

    ELECT_ELIGIBLE = "a leader is elected from the ISR or the ELR"
    ELIGIBLE_BELOW_MIN_ISR = "a replica that leaves the ISR stays eligible only while the ISR is below min ISR"
    ELECTION_LOOKS_AGAIN = "an election from the ELR that meets min ISR ends the ELR"
    CHANGE_LOOKS_AGAIN = "a new min ISR that the ISR meets ends the ELR"
    REMOVED_LEAVES = "a replica that is removed leaves the ELR"
    LOST_LEAVES = "a broker that returns without its log leaves the ELR"
    COMMIT_ON_MIN_ISR = "the high watermark stands still while the ISR that its leader knows is below min ISR"
    ISR_WITH_MIN_ISR = "a leader that learns an ISR has learned the min ISR that it was made by"
    MIN_ISR_IN_ORDER = "a leader that learns a min ISR has learned the ISRs before it"
    JOINS_WHOLE = "a replica that joins the ISR holds everything committed"
    KNOWS_THE_LATEST = "the controller takes an ISR from the latest leader, made from the latest ISR"
    NO_OLD_INCARNATION = "the controller takes no broker into the ISR that has come back without its log since"


@dataclass(frozen=True)
class RegistrationState:
    """The registration, every version of it, and the versions that leaders know."""

    current: Any
    """the latest leader epoch"""
    version: Any
    """the latest version"""
    minimum: Any
    """min.insync.replicas, as the controller wrote it last"""
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
    """epoch -> its last version, once a later epoch was elected"""
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
    """epoch -> the proposed broker has not come back without its log since it was proposed"""
    blocked: Function
    """epoch -> the leader of a later epoch has begun"""
    witness: Function
    """epoch -> that later leader"""
    whole: Function
    """broker -> its log holds everything committed"""


NUMBERS = ("current", "version", "minimum", "minimum_version")
TRUTHS = {"replica", "elr", "isr", "begun", "fit", "blocked", "whole"}


def any_registration() -> RegistrationState:
    """Return a state about which nothing is known: a z3 symbol for each member; `isr` is the one of two arguments."""
    return symbolic_state(RegistrationState, NUMBERS, TRUTHS, {"isr": 2})


def leads_now(s: RegistrationState, e: Any) -> Any:
    """State that epoch e's leader leads it and has learned of no later one; it may be deposed all the same."""
    return z3.And(is_epoch(s, e), s.begun(e), s.learned(s.leader(e)) == e)


def may_lead(s: RegistrationState, e: Any) -> Any:
    """State that epoch e's leader leads it, or may yet begin to: it has learned of no later epoch."""
    return z3.And(is_epoch(s, e), s.leader(e) != NOBODY, s.learned(s.leader(e)) <= e)


def last_version(s: RegistrationState, e: Any) -> Any:
    """Return the latest version of epoch e: of the current epoch the latest of all, of an older one its last."""
    return z3.If(e == s.current, s.version, s.last(e))


def electable(s: RegistrationState, b: Any) -> Any:
    """State that b may be elected cleanly: it is in the ISR or the ELR."""
    return z3.Or(s.isr(s.version, b), s.elr(b))


def proposed(s: RegistrationState, e: Any, b: Any) -> Any:
    """State that epoch e's leader has proposed b for the ISR."""
    return z3.And(b != NOBODY, s.joins(e) == b)


def waits_for(s: RegistrationState, e: Any, b: Any) -> Any:
    """State that the high watermark of epoch e's leader waits for b: in the ISR it knows, or proposed for it."""
    return z3.Or(s.isr(s.known(e), b), proposed(s, e, b))


def below_minimum(s: RegistrationState, v: Any, minimum: Any) -> Any:
    """State that the ISR of version v is below min ISR: below `minimum` and below the number of replicas, which caps it."""
    return z3.And(s.size(v) < minimum, s.size(v) < s.replicas(v))


def waits_or_stands(s: RegistrationState, e: Any, b: Any) -> Any:
    """State that epoch e's leader, once it has begun, waits for broker b or stands still, by what it knows."""
    return z3.Implies(s.begun(e), z3.Or(waits_for(s, e, b), below_minimum(s, s.known(e), s.known_minimum(e))))


def will_wait_or_stand(s: RegistrationState, e: Any, v: Any, b: Any) -> Any:
    """State that epoch e's leader will wait for broker b or stand still if it learns of version v.

    It may learn of any later version of its epoch, with the min ISR of that version (`ahead`); and of the latest min ISR
    while it knows a version that is not older than that (`since`).
    """
    of_epoch = z3.And(s.first(e) <= v, v <= last_version(s, e))
    # Before it begins, a leader may learn of any version of its epoch.
    ahead = z3.And(of_epoch, z3.Implies(s.begun(e), s.known(e) < v))
    since = z3.And(of_epoch, z3.Implies(s.begun(e), s.known(e) <= v), s.minimum_version <= v)
    # It keeps its proposal only while it knows no later version.
    joining = z3.And(s.begun(e), v == s.known(e), proposed(s, e, b))
    return z3.And(
        z3.Implies(ahead, z3.Or(s.isr(v, b), below_minimum(s, v, s.minimum_at(v)))),
        z3.Implies(since, z3.Or(s.isr(v, b), joining, below_minimum(s, v, s.minimum))),
    )


# ---------------------------------------------------------------------------------------------------------------------
# The invariant of a registration and its leaders: 13 conjuncts.
#
# Two of them are the claims: a broker that may be elected cleanly holds everything committed, and is a replica. The
# others are the reason: a leader waits for every eligible broker or commits nothing, with every version of the ISR that
# it knows or may learn of.


WHOLE = "an eligible replica holds everything committed"
REPLICA = "an eligible broker is a replica"

ELECTION_INVARIANT: tuple[Conjunct, ...] = (
    Conjunct(
        WHOLE,
        "b",
        lambda s, b: z3.Implies(electable(s, b), s.whole(b)),
        lambda s, b: [[s.isr(s.version, b)], [s.elr(b)], [s.whole(b)]],
    ),
    Conjunct(
        REPLICA,
        "b",
        lambda s, b: z3.Implies(electable(s, b), s.replica(b)),
        lambda s, b: [[s.isr(s.version, b)], [s.elr(b)]],
    ),
    Conjunct(
        "the ELR is apart from the ISR, which is below min ISR",
        "b",
        lambda s, b: z3.Implies(s.elr(b), z3.And(z3.Not(s.isr(s.version, b)), below_minimum(s, s.version, s.minimum))),
        lambda s, b: [[s.elr(b)]],
    ),
    Conjunct(
        "the latest leader is in the ISR",
        "e",
        lambda s, e: z3.Implies(z3.And(e == s.current, s.leader(e) != NOBODY), s.isr(s.version, s.leader(e))),
        lambda s, e: [[s.leader(e)]],
    ),
    Conjunct(
        "an epoch has versions, and the next epoch has later ones",
        "e",
        lambda s, e: z3.And(
            z3.Implies(is_epoch(s, e), z3.And(s.first(e) <= last_version(s, e), last_version(s, e) <= s.version)),
            z3.Implies(z3.And(is_epoch(s, e), e < s.current), s.last(e) < s.version),
            z3.And(s.current >= 0, s.minimum_version <= s.version),
        ),
        lambda s, e: [[s.first(e)], [s.last(e)], [s.leader(e)]],
    ),
    Conjunct(
        "a leader that has begun knows a version of its epoch",
        "e",
        lambda s, e: z3.Implies(
            s.begun(e),
            z3.And(
                is_epoch(s, e),
                s.leader(e) != NOBODY,
                s.learned(s.leader(e)) >= e,
                z3.And(s.first(e) <= s.known(e), s.known(e) <= last_version(s, e)),
            ),
        ),
        lambda s, e: [[s.begun(e)], [s.known(e)]],
    ),
    Conjunct(
        "no broker has learned an epoch that does not exist",
        "b",
        lambda s, b: s.learned(b) <= s.current,
        lambda s, b: [[s.learned(b)]],
    ),
    Conjunct(
        "a leader waits for every eligible replica, or stands still",
        "e v b",
        lambda s, e, v, b: z3.Implies(
            z3.And(may_lead(s, e), z3.Not(s.blocked(e)), electable(s, b)),
            z3.And(waits_or_stands(s, e, b), will_wait_or_stand(s, e, v, b)),
        ),
        lambda s, e, v, b: [[s.isr(v, b), s.leader(e)], [s.elr(b), s.leader(e), s.size(v)]],
    ),
    Conjunct(
        "a leader waits for every leader elected since, or stands still",
        "e v f",
        lambda s, e, v, f: z3.Implies(
            z3.And(may_lead(s, e), z3.Not(s.blocked(e)), e < f, f <= s.current, s.leader(f) != NOBODY),
            z3.And(waits_or_stands(s, e, s.leader(f)), will_wait_or_stand(s, e, v, s.leader(f))),
        ),
        lambda s, e, v, f: [[s.leader(e), s.leader(f), s.size(v)]],
    ),
    Conjunct(
        "a later leader that has begun blocks an earlier one",
        "e f",
        lambda s, e, f: z3.Implies(z3.And(s.begun(f), e >= 0, e < f), s.blocked(e)),
        lambda s, e, f: [[s.begun(f), s.blocked(e)]],
    ),
    Conjunct(
        "a replica that blocks a leader has learned a later epoch",
        "e",
        lambda s, e: z3.Implies(s.blocked(e), s.learned(s.witness(e)) > e),
        lambda s, e: [[s.blocked(e)], [s.witness(e)]],
    ),
    Conjunct(
        "a blocked leader waits for a replica that blocks it, or stands still",
        "e v",
        lambda s, e, v: z3.Implies(
            z3.And(s.blocked(e), may_lead(s, e)),
            z3.And(waits_or_stands(s, e, s.witness(e)), will_wait_or_stand(s, e, v, s.witness(e))),
        ),
        lambda s, e, v: [[s.blocked(e), s.size(v)], [s.witness(e), s.size(v)]],
    ),
    Conjunct(
        "a replica that the latest leader has proposed holds everything committed",
        "e",
        lambda s, e: z3.Implies(
            z3.And(e == s.current, s.begun(e), s.joins(e) != NOBODY, s.fit(e), s.known(e) == s.version),
            z3.And(s.whole(s.joins(e)), s.replica(s.joins(e))),
        ),
        lambda s, e: [[s.joins(e)]],
    ),
)
