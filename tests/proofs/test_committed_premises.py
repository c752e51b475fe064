"""Every premise of the committed-data invariant is needed: without it a short run loses data, and a conjunct falls."""

from collections.abc import Callable

import pytest

from tests.proofs.committed_cluster import Cluster
from tidegauge.impl import rules
from tidegauge.spec.proofs.committed.invariant import ClusterState, CommittedPremise
from tidegauge.spec.proofs.committed.steps import (
    COMMITTED_DATA,
    accept,
    commit,
    delete,
    elect,
    learn,
    lose_tail,
    propose_expand,
    restart,
    serve,
    truncate,
)
from tidegauge.spec.proofs.engine.loops import CONTRACTS
from tidegauge.spec.proofs.engine.paths import GoalTally, ProofPath, explore
from tidegauge.spec.proofs.lemmas.any_length import quantified_solver
from validation.premises.committed import COMMITTED_LOSSES
from validation.premises.plain_values import perform

Step = Callable[[ProofPath, ClusterState], ClusterState]

REACHED = "every ISR member has reached what is committed"
COUNTED = "every replica that a leader counts has reached what is committed"

UNREAL = {"a leader's recorded log ends are real"}
"""Without FORGET_LOG_ENDS this fails at the election; data is lost later, when the leader counts what is recorded."""

CARRIED_BY: dict[str, tuple[Step, str]] = {
    CommittedPremise.ELECT_FROM_ISR: (elect, "a replica that joined the ISR later shares all below the cap"),
    CommittedPremise.COMMIT_NEEDS_ALL: (commit, REACHED),
    CommittedPremise.COUNT_WHO_IS_TO_JOIN: (commit, REACHED),
    CommittedPremise.COUNT_WHO_IS_TO_LEAVE: (commit, REACHED),
    CommittedPremise.JOIN_AT_HIGH_WATERMARK: (propose_expand, COUNTED),
    CommittedPremise.JOIN_AT_EPOCH_START: (propose_expand, "a proposed member has reached the epoch start"),
    CommittedPremise.CHANGE_KNOWS_THE_LATEST: (accept, REACHED),
    CommittedPremise.NO_OLD_INCARNATION: (accept, "a member of the latest ISR is the broker in its present incarnation"),
    CommittedPremise.LEFT_ISR_FIRST: (lose_tail, REACHED),
    CommittedPremise.RESTART_LEADS_LATER: (restart, "while it leads, a leader shows its high watermark"),
    CommittedPremise.FORGET_LOG_ENDS: (learn, "a leader's recorded log ends are real"),
    CommittedPremise.REQUEST_OF_ITS_EPOCH: (serve, "a leader's recorded log ends are real"),
    CommittedPremise.RESPONSE_OF_ITS_EPOCH: (truncate, "in its epoch a follower is as long as it was when it asked"),
    CommittedPremise.DELETE_BELOW_HIGH_WATERMARK: (delete, "a leader has deleted no more than it shows"),
}
"""The step that a premise stands in, and a conjunct that the step does not keep without it."""

LONG = {
    CommittedPremise.REQUEST_OF_ITS_EPOCH,
    CommittedPremise.RESPONSE_OF_ITS_EPOCH,
    CommittedPremise.CHANGE_KNOWS_THE_LATEST,
    CommittedPremise.RESTART_LEADS_LATER,
    CommittedPremise.JOIN_AT_EPOCH_START,
    CommittedPremise.DELETE_BELOW_HIGH_WATERMARK,
    CommittedPremise.FORGET_LOG_ENDS,
}
"""z3 gives up on what is not proved only when its time is over."""


def test_every_premise_has_one_run() -> None:
    """No premise is without a run, and none has two."""
    assert sorted(loss.premise for loss in COMMITTED_LOSSES.values()) == sorted(CommittedPremise)


@pytest.mark.parametrize("run", list(COMMITTED_LOSSES))
def test_without_a_premise_committed_data_is_lost(run: str) -> None:
    """Each premise, removed, allows a short run that loses committed data; with it, one of the steps is refused."""
    loss = COMMITTED_LOSSES[run]
    free, guarded = Cluster(without=loss.premise), Cluster()
    for number, step in enumerate(loss.steps):
        if number == loss.breach:
            assert not free.lost()
            assert not free.broken() - UNREAL
        assert perform(free, step), step
    assert free.lost()
    assert free.broken()
    done = [perform(guarded, step) for step in loss.steps]
    assert done.index(False) == loss.breach
    assert not guarded.lost()
    assert not guarded.broken()


def shown_to_keep(step: Step, conjunct: str = "", without: str = "") -> GoalTally:
    """One step and one conjunct."""

    lemma = COMMITTED_DATA.keeps(step, [c for c in COMMITTED_DATA.conjuncts if c.name == conjunct])
    dropped = frozenset({without} - {""})
    return explore(lemma, vars(rules), dropped, make_solver=quantified_solver, contracts=CONTRACTS)


@pytest.mark.parametrize(
    "premise", [pytest.param(premise, marks=pytest.mark.long if premise in LONG else ()) for premise in CommittedPremise]
)
def test_without_a_premise_the_step_is_not_inductive(premise: str) -> None:
    """The proof loses a conjunct, too, and has it with the premise."""
    step, conjunct = CARRIED_BY[premise]
    assert conjunct in shown_to_keep(step, conjunct, premise).unknown
    whole = shown_to_keep(step, conjunct)
    assert conjunct in whole.proved
    assert not whole.unknown


@pytest.mark.long
def test_every_premise_is_named_by_its_step() -> None:
    """No step has a premise that is not in the table above."""
    named = {step.__name__: shown_to_keep(step).premises for step in COMMITTED_DATA.steps}
    expected = {
        step.__name__: {p for p, (carrier, _) in CARRIED_BY.items() if carrier is step} for step in COMMITTED_DATA.steps
    }
    assert named == expected
    assert set(CARRIED_BY) == set(CommittedPremise)
