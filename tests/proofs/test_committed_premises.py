"""Every premise of the committed-data invariant is needed: without it a short run loses data, and a conjunct falls."""

import pytest

from tests.proofs.committed_cluster import Cluster
from tidegauge.impl import rules
from tidegauge.spec.proofs.committed import cluster as symbolic
from tidegauge.spec.proofs.committed.claims import STEPS, assume_invariant
from tidegauge.spec.proofs.committed.cluster import Premise
from tidegauge.spec.proofs.committed.disk_steps import delete, lose_tail, restart
from tidegauge.spec.proofs.committed.invariant import INVARIANT
from tidegauge.spec.proofs.committed.isr_steps import accept, propose_expand
from tidegauge.spec.proofs.committed.runs import LOSSES
from tidegauge.spec.proofs.committed.steps import Step, commit, elect, learn
from tidegauge.spec.proofs.engine.loops import CONTRACTS
from tidegauge.spec.proofs.engine.paths import GoalTally, Path, explore
from tidegauge.spec.proofs.lemmas.any_length import quantified_solver

REACHED = "every ISR member has reached what is committed"
COUNTED = "everybody a leader counts has reached what is committed"

UNREAL = {"a leader's recorded log ends are real"}
"""Without Premise.FORGET_LOG_ENDS this falls at the election; data is lost when the leader counts what is recorded."""

CARRIED_BY: dict[str, tuple[Step, str]] = {
    Premise.ELECT_FROM_ISR: (elect, "who joined the ISR later shares all below the cap"),
    Premise.COMMIT_NEEDS_ALL: (commit, REACHED),
    Premise.COUNT_WHO_IS_TO_JOIN: (commit, REACHED),
    Premise.COUNT_WHO_IS_TO_LEAVE: (commit, REACHED),
    Premise.JOIN_AT_HIGH_WATERMARK: (propose_expand, COUNTED),
    Premise.JOIN_AT_EPOCH_START: (propose_expand, "who is to join has reached the epoch start"),
    Premise.CHANGE_KNOWS_THE_LATEST: (accept, REACHED),
    Premise.NO_OLD_INCARNATION: (accept, "who is in the latest ISR is the broker as it is now"),
    Premise.LEFT_ISR_FIRST: (lose_tail, REACHED),
    Premise.RESTART_LEADS_LATER: (restart, "while it leads, a leader shows its high watermark"),
    Premise.FORGET_LOG_ENDS: (learn, "a leader's recorded log ends are real"),
    Premise.DELETE_BELOW_HIGH_WATERMARK: (delete, "a leader has deleted no more than it shows"),
}
"""The step that a premise stands in, and a conjunct that the step does not keep without it."""

LONG = {
    Premise.CHANGE_KNOWS_THE_LATEST,
    Premise.RESTART_LEADS_LATER,
    Premise.JOIN_AT_EPOCH_START,
    Premise.DELETE_BELOW_HIGH_WATERMARK,
    Premise.FORGET_LOG_ENDS,
}
"""z3 gives up on what is not proved only when its time is over."""


def test_every_premise_has_one_run() -> None:
    """No premise is without a run, and none has two."""
    assert sorted(loss.premise for loss in LOSSES.values()) == sorted(Premise)


@pytest.mark.parametrize("run", list(LOSSES))
def test_without_a_premise_committed_data_is_lost(run: str) -> None:
    """Each premise, removed, allows a short run that loses committed data; with it, one of the steps is refused."""
    loss = LOSSES[run]
    free, guarded = Cluster(without=loss.premise), Cluster()
    for number, (name, *arguments) in enumerate(loss.steps):
        if number == loss.breach:
            assert not free.lost()
            assert not free.broken() - UNREAL
        assert getattr(free, name)(*arguments), (name, arguments)
    assert free.lost()
    assert free.broken()
    done = [getattr(guarded, name)(*arguments) for name, *arguments in loss.steps]
    assert done.index(False) == loss.breach
    assert not guarded.lost()
    assert not guarded.broken()


def shown_to_keep(step: Step, conjunct: str = "", without: str = "") -> GoalTally:
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


@pytest.mark.parametrize(
    "premise", [pytest.param(premise, marks=pytest.mark.long if premise in LONG else ()) for premise in Premise]
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
    named = {step.__name__: shown_to_keep(step).premises for step in STEPS}
    expected = {step.__name__: {p for p, (carrier, _) in CARRIED_BY.items() if carrier is step} for step in STEPS}
    assert named == expected
    assert set(CARRIED_BY) == set(Premise)
