"""Every premise of the committed-data invariant is needed: without it a short run loses data, and a conjunct falls."""

from typing import Any

import pytest

from impl import rules
from spec.proofs import cluster as symbolic
from spec.proofs.any_length import quantified_solver
from spec.proofs.cluster import (
    CHANGE_KNOWS_THE_LATEST,
    COMMIT_NEEDS_ALL,
    COUNT_WHO_IS_TO_JOIN,
    COUNT_WHO_IS_TO_LEAVE,
    DELETE_BELOW_HIGH_WATERMARK,
    ELECT_FROM_ISR,
    FORGET_LOG_ENDS,
    JOIN_AT_EPOCH_START,
    JOIN_AT_HIGH_WATERMARK,
    LEFT_ISR_FIRST,
    NO_OLD_INCARNATION,
    RESTART_LEADS_LATER,
)
from spec.proofs.committed import INVARIANT
from spec.proofs.committed_claims import STEPS, assume_invariant
from spec.proofs.committed_steps import Step, commit, elect, learn
from spec.proofs.disk_steps import delete, lose_tail, restart
from spec.proofs.isr_steps import accept, propose_expand
from spec.proofs.loops import CONTRACTS
from spec.proofs.paths import Path, Tally, explore
from tests.proofs.committed_cluster import Cluster

Run = list[tuple[Any, ...]]

PREMISES = {name: text for name, text in vars(symbolic).items() if name.isupper() and isinstance(text, str)}

LOSSES: dict[str, Run] = {
    ELECT_FROM_ISR: [
        ("learn", 0, 0), ("learn", 1, 0), ("shrink", 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0),
        ("elect", 2), ("learn", 2, 1),
    ],
    COMMIT_NEEDS_ALL: [("learn", 0, 0), ("append", 0), ("commit", 0), ("elect", 1), ("learn", 1, 1)],
    # the controller has taken broker 2 into the ISR, and the leader has not heard of it
    COUNT_WHO_IS_TO_JOIN: [
        ("learn", 0, 0), ("learn", 1, 0), ("shrink", 2), ("propose_expand", 0, 2), ("accept",), ("append", 0),
        ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0),
    ],
    # the controller has not taken broker 2 out of the ISR, and never does
    COUNT_WHO_IS_TO_LEAVE: [
        ("learn", 0, 0), ("learn", 1, 0), ("propose_shrink", 0, 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1),
        ("commit", 0), ("refuse", 0),
    ],
    JOIN_AT_HIGH_WATERMARK: [
        ("learn", 0, 0), ("learn", 1, 0), ("shrink", 1), ("shrink", 2), ("append", 0), ("commit", 0), ("expand", 1),
        ("elect", 1), ("learn", 1, 1),
    ],
    # KAFKA-7128: the new leader's high watermark is behind what the old one committed, the returning follower with it
    JOIN_AT_EPOCH_START: [
        ("learn", 0, 0), ("learn", 1, 0), ("shrink", 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0),
        ("elect", 1), ("learn", 1, 1), ("learn", 2, 1), ("expand", 2), ("elect", 2), ("learn", 2, 2),
    ],
    # the request of a change that its leader has given up arrives late
    CHANGE_KNOWS_THE_LATEST: [
        ("learn", 0, 0), ("shrink", 2), ("propose_expand", 0, 2), ("remove", 1), ("hear_isr", 0), ("append", 0),
        ("commit", 0), ("accept_given_up", 0),
    ],
    # KIP-903: the leader proposes a follower by what it had fetched before it lost its disk
    NO_OLD_INCARNATION: [
        ("learn", 0, 0), ("learn", 1, 0), ("shrink", 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0),
        ("remove", 1), ("hear_isr", 0), ("lose_tail", 1, 0), ("propose_expand", 0, 1), ("accept",),
    ],
    LEFT_ISR_FIRST: [
        ("learn", 0, 0), ("learn", 1, 0), ("shrink", 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0),
        ("lose_tail", 1, 0),
    ],
    # the leader comes back with an old checkpoint and lets a follower join that has not what it committed before
    RESTART_LEADS_LATER: [
        ("learn", 0, 0), ("learn", 1, 0), ("learn", 2, 0), ("shrink", 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1),
        ("commit", 0), ("restart", 0, 1), ("expand", 2),
    ],
    # Kafka 4.3.1 as it is: broker 0 does not know that broker 2 led in between, and that broker 1 cut its log
    FORGET_LOG_ENDS: [
        ("learn", 0, 0), ("learn", 1, 0), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("elect", 2), ("learn", 2, 1),
        ("learn", 1, 1), ("cut", 1, 0), ("elect", 0, {2}), ("learn", 0, 2), ("commit", 2),
    ],
    # a follower that begins at the leader's log start shows all below it
    DELETE_BELOW_HIGH_WATERMARK: [("learn", 0, 0), ("learn", 1, 0), ("append", 0), ("delete", 0, 1), ("reset", 1)],
}  # fmt: skip

REACHED = "every ISR member has reached what is committed"
COUNTED = "everybody a leader counts has reached what is committed"

CARRIED_BY: dict[str, tuple[Step, str]] = {
    ELECT_FROM_ISR: (elect, "who joined the ISR later shares all below the cap"),
    COMMIT_NEEDS_ALL: (commit, REACHED),
    COUNT_WHO_IS_TO_JOIN: (commit, REACHED),
    COUNT_WHO_IS_TO_LEAVE: (commit, REACHED),
    JOIN_AT_HIGH_WATERMARK: (propose_expand, COUNTED),
    JOIN_AT_EPOCH_START: (propose_expand, "who is to join has reached the epoch start"),
    CHANGE_KNOWS_THE_LATEST: (accept, REACHED),
    NO_OLD_INCARNATION: (accept, "who is in the latest ISR is the broker as it is now"),
    LEFT_ISR_FIRST: (lose_tail, REACHED),
    RESTART_LEADS_LATER: (restart, "while it leads, a leader shows its high watermark"),
    FORGET_LOG_ENDS: (learn, "a leader's recorded log ends are real"),
    DELETE_BELOW_HIGH_WATERMARK: (delete, "a leader has deleted no more than it shows"),
}
"""The step that a premise stands in, and a conjunct that the step does not keep without it."""


@pytest.mark.parametrize("premise", PREMISES.values())
def test_without_a_premise_committed_data_is_lost(premise: str) -> None:
    """Each premise, removed, allows a short run that loses committed data; with it, one of the steps is refused."""
    free, guarded = Cluster(without=premise), Cluster()
    for name, *arguments in LOSSES[premise]:
        assert getattr(free, name)(*arguments), (name, arguments)
    assert free.lost()
    assert free.broken()
    done = [getattr(guarded, name)(*arguments) for name, *arguments in LOSSES[premise]]
    assert not all(done)
    assert not guarded.lost()
    assert not guarded.broken()


def shown_to_keep(step: Step, conjunct: str = "", without: str = "") -> Tally:
    """One step and one conjunct."""

    def lemma(path: Path) -> None:
        before = symbolic.any_state()
        assume_invariant(path, before)
        after = step(path, before)
        for one in INVARIANT:
            if one.name == conjunct:
                path.goal(one.name, one.holds(after, *[path.fresh(v) for v in one.variables.split()]))

    dropped = frozenset({without} - {""})
    return explore(lemma, vars(rules), dropped, make_solver=quantified_solver, contracts=CONTRACTS)


@pytest.mark.parametrize("premise", PREMISES.values())
def test_without_a_premise_the_step_is_not_inductive(premise: str) -> None:
    """The proof loses a conjunct, too, and has it with the premise."""
    step, conjunct = CARRIED_BY[premise]
    assert conjunct in shown_to_keep(step, conjunct, premise).unknown
    whole = shown_to_keep(step, conjunct)
    assert conjunct in whole.proved
    assert not whole.unknown


def test_every_premise_is_named_by_its_step() -> None:
    """No step has a premise that is not in the table above."""
    named = {step.__name__: shown_to_keep(step).premises for step in STEPS}
    expected = {step.__name__: {p for p, (carrier, _) in CARRIED_BY.items() if carrier is step} for step in STEPS}
    assert named == expected
    assert set(CARRIED_BY) == set(PREMISES.values())
