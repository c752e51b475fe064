"""The proof about elections: every step keeps the invariant, and whoever is elected holds everything committed."""

from dataclasses import replace

import z3

from tidegauge.spec.proofs.eligible.invariant import ELECTION_INVARIANT
from tidegauge.spec.proofs.eligible.registration import NOBODY, RegistrationState, any_registration
from tidegauge.spec.proofs.eligible.steps import CONTROLLER_STEPS, LEADER_STEPS
from tidegauge.spec.proofs.engine.induction import Induction
from tidegauge.spec.proofs.engine.paths import ProofPath


def new_registration(path: ProofPath) -> RegistrationState:
    """Return the first state: one version; every replica is in the ISR and holds everything committed, which is nothing."""
    s, first = any_registration(), path.integer("first", low=0)
    zero, no = z3.IntVal(0), z3.BoolVal(False)
    path.assume(s.replica(first))
    return replace(
        s,
        current=zero,
        version=zero,
        minimum_version=zero,
        elr=lambda _b: no,
        isr=lambda _v, b: s.replica(b),
        leader=lambda _e: first,
        first=lambda _e: zero,
        learned=lambda _b: z3.IntVal(NOBODY),
        begun=lambda _e: no,
        joins=lambda _e: z3.IntVal(NOBODY),
        blocked=lambda _e: no,
        whole=lambda _b: z3.BoolVal(True),
    )


def a_leader_is_whole(path: ProofPath, s: RegistrationState) -> None:
    """Claim that whoever is elected cleanly holds everything that is committed, and is a replica."""
    leader = s.leader(s.current)
    # An epoch without a leader: nobody was eligible.
    path.assume(leader != NOBODY)
    path.goal("the latest leader holds everything committed", s.whole(leader))
    path.goal("the latest leader is a replica", s.replica(leader))


CLEAN_ELECTION = Induction(
    any_state=any_registration,
    bounds=lambda s: z3.And(s.current >= 0, s.minimum_version <= s.version, s.first(s.current) <= s.version),
    conjuncts=ELECTION_INVARIANT,
    start=new_registration,
    steps=(*CONTROLLER_STEPS, *LEADER_STEPS),
    claims=(a_leader_is_whole,),
)
