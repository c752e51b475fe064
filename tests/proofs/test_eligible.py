"""What an election from ISR and ELR needs: the invariant on plain registrations, and what is lost without each premise."""

import copy
import random
from collections import Counter
from collections.abc import Callable

import pytest

from tidegauge.impl import rules
from tidegauge.spec.proofs.eligible.invariant import NOBODY, NUMBERS, WHOLE, ElectionPremise, RegistrationState
from tidegauge.spec.proofs.eligible.steps import CLEAN_ELECTION
from tidegauge.spec.proofs.engine.loops import CONTRACTS
from tidegauge.spec.proofs.engine.paths import GoalTally, ProofPath, explore
from tidegauge.spec.proofs.lemmas.any_length import quantified_solver
from validation.premises.__main__ import main as show
from validation.premises.eligible import CLEAN_LOSSES, PlainRegistration
from validation.premises.plain_values import perform

BROKERS = (1, 2, 3)
WAITS = "a leader waits for every eligible replica, or stands still"
APART = "the ELR is apart from the ISR, which is below min ISR"
JOINS = "a replica that the latest leader has proposed holds everything committed"

CARRIED_BY: dict[ElectionPremise, tuple[str, str]] = {
    ElectionPremise.ELECT_ELIGIBLE: ("fence", WHOLE),
    ElectionPremise.ELIGIBLE_BELOW_MIN_ISR: ("fence", APART),
    ElectionPremise.ELECTION_LOOKS_AGAIN: ("fence", APART),
    ElectionPremise.CHANGE_LOOKS_AGAIN: ("set_minimum", APART),
    ElectionPremise.REMOVED_LEAVES: ("reassign", WHOLE),
    ElectionPremise.LOST_LEAVES: ("come_back", WHOLE),
    ElectionPremise.COMMIT_ON_MIN_ISR: ("commit", WHOLE),
    ElectionPremise.ISR_WITH_MIN_ISR: ("hear_isr", WAITS),
    ElectionPremise.MIN_ISR_IN_ORDER: ("hear_minimum", WAITS),
    ElectionPremise.JOINS_WHOLE: ("propose", JOINS),
    ElectionPremise.KNOWS_THE_LATEST: ("accept", WHOLE),
    ElectionPremise.NO_OLD_INCARNATION: ("accept", WHOLE),
}
"""The step that a premise stands in, and a conjunct that the step does not keep without it."""


def random_step(now: PlainRegistration, choice: random.Random) -> str:
    """One step that is possible."""
    b, e, out = choice.choice(BROKERS), choice.randint(0, now.current), tuple(choice.sample(BROKERS, choice.randint(0, 2)))
    elect = choice.choice([None, None, NOBODY, 1, 2, 3])
    step = choice.choice([
        ("fence", out, elect), ("reassign", tuple(choice.sample(BROKERS, choice.randint(1, 3))), elect),
        ("come_back", b, elect), *[("accept", now.current)] * 6, ("set_minimum", choice.randint(1, 3)),
        ("learn", b, e), ("learn", b, now.current), ("learn", b, now.current), ("learn", b, now.current), ("hear_isr", e),
        ("hear_isr", now.current), ("hear_minimum", e), ("propose", b), ("propose", b), ("catch_up", b), ("catch_up", b),
        ("commit", e), ("commit", now.current),
    ])  # fmt: skip
    name, *arguments = step
    if name == "learn" and b not in now.learned:
        return ""
    if name == "come_back" and b not in now.holds:
        return ""
    return str(name) if getattr(now, str(name))(*arguments) else ""


def walked(seed: int, steps: int) -> tuple[PlainRegistration, Counter[str]]:
    """A registration after a random walk, and how often each step was possible."""
    choice, happened = random.Random(seed), Counter[str]()
    now = PlainRegistration(minimum=choice.randint(1, 3))
    for _ in range(steps):
        happened[random_step(now, choice)] += 1
        assert not now.lost(), f"seed {seed}"
    return now, happened


def test_the_invariant_holds_wherever_the_steps_lead() -> None:
    """On random walks nothing is lost, every conjunct holds at the end, and every step happens."""
    happened: Counter[str] = Counter()
    for seed in range(400):
        now, seen = walked(seed, 40)
        happened += seen
        assert seed % 3 or now.broken() == set(), f"seed {seed}"
    assert {step.__name__ for step in CLEAN_ELECTION.steps} <= {name for name, times in happened.items() if times >= 10}


def test_each_conjunct_can_fail() -> None:
    """What no step does breaks each of them somewhere: none is true of everything."""
    choice, seen = random.Random(3), set[str]()
    for seed in range(400):
        damaged = copy.deepcopy(walked(seed, 25)[0])
        e, b = choice.randint(0, damaged.current), choice.choice(BROKERS)
        match seed % 10:
            case 0:
                damaged.holds[b] = {-1}
                damaged.committed += 1
            case 1:
                damaged.replica -= {b}
            case 2:
                damaged.elr ^= {b}
            case 3:
                damaged.leader[-1] = b
            case 4:
                damaged.first[e] = len(damaged.versions)
            case 5:
                damaged.known[e] = len(damaged.versions)
            case 6:
                damaged.learned[b] = damaged.current + 1
            case 7:
                damaged.known_minimum = dict.fromkeys(damaged.known_minimum, 0)
                damaged.versions = [one._replace(isr=one.isr - {b}) for one in damaged.versions[:-1]] + damaged.versions[-1:]
            case 8:
                damaged.witness = dict.fromkeys(damaged.witness, b) if seed % 20 == 8 else {}
            case _:
                damaged.joins[damaged.current], damaged.fit[damaged.current] = 9, True
                damaged.known[damaged.current] = len(damaged.versions) - 1
        seen |= damaged.broken()
    assert {conjunct.name for conjunct in CLEAN_ELECTION.conjuncts} - seen == set()


def test_every_premise_has_one_run() -> None:
    """No premise is without a run, and none has two."""
    assert sorted(loss.premise for loss in CLEAN_LOSSES.values()) == sorted(ElectionPremise)
    assert set(CARRIED_BY) == set(ElectionPremise)


@pytest.mark.parametrize("name", list(CLEAN_LOSSES))
def test_without_a_premise_a_clean_election_loses_a_record(name: str) -> None:
    """Every step is possible then; with the premise one goes otherwise, and nothing is lost."""
    loss = CLEAN_LOSSES[name]
    free, guarded = loss.begin(loss.premise), loss.begin()
    assert all(perform(free, step) for step in loss.steps)
    assert len(free.lost()) == 1
    for step in loss.steps:
        perform(guarded, step)
    assert not guarded.lost()
    assert guarded.broken() == set()
    assert WHOLE in free.broken()
    assert loss.breach < len(loss.steps)


def shown_to_keep(step: str, conjunct: str, without: str = "") -> GoalTally:
    """One step and one conjunct."""
    chosen = next(known for known in CLEAN_ELECTION.steps if known.__name__ == step)
    lemma = CLEAN_ELECTION.keeps(chosen, [c for c in CLEAN_ELECTION.conjuncts if c.name == conjunct])
    dropped = frozenset({without} - {""})
    return explore(lemma, vars(rules), dropped, make_solver=quantified_solver, contracts=CONTRACTS)


@pytest.mark.parametrize("premise", list(ElectionPremise))
def test_without_a_premise_the_step_is_not_inductive(premise: ElectionPremise) -> None:
    """The proof loses a conjunct, too, and has it with the premise."""
    step, conjunct = CARRIED_BY[premise]
    assert conjunct in shown_to_keep(step, conjunct, premise).unknown
    whole = shown_to_keep(step, conjunct)
    assert conjunct in whole.proved
    assert not whole.unknown


def test_a_step_chooses_nothing_that_the_state_is_called_by() -> None:
    """One name is one term in z3: what a step chose would be the state's own number, and less would be proved."""

    for step in CLEAN_ELECTION.steps:

        def chosen(path: ProofPath, step: Callable[[ProofPath, RegistrationState], RegistrationState] = step) -> None:
            before = CLEAN_ELECTION.assumed(path)
            step(path, before)
            of_state = {str(getattr(before, name)) for name in NUMBERS}
            path.goal("apart", of_state.isdisjoint(map(str, path.variables)))

        assert "apart" in explore(chosen, vars(rules), make_solver=quantified_solver, contracts=CONTRACTS).proved


@pytest.mark.parametrize("name", list(CLEAN_LOSSES))
def test_a_run_is_told_in_words(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each step with the registration after it, and the step that needs the premise."""
    assert show([name]) == 0
    reported = capsys.readouterr().out.splitlines()
    assert reported[0] == f"Suppose this does not hold: {CLEAN_LOSSES[name].premise}"
    assert len([line for line in reported if line.endswith("<- needs the premise")]) == 1
    assert any(line.startswith("  lost: record") for line in reported)


def test_a_run_without_a_trace_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """--trace is for scenarios that have one."""
    assert show(["removed-stays-eligible", "--trace", "x"]) == 2
    assert "--trace: expected a scenario that has a trace" in capsys.readouterr().err
