"""What a proof can say, and how it is told."""

from dataclasses import dataclass, field
from enum import Enum

from tidegauge.spec.proofs.engine.paths import CounterModel


class ProofVerdict(Enum):
    """Three different answers: no model breaks the goal, one does, or the solver could not tell."""

    PROVED = "PROVED"
    COUNTER_MODEL = "COUNTER-MODEL"
    NOT_PROVED = "NOT PROVED"

    @property
    def exit_code(self) -> int:
        """0 proved, 1 refuted, 3 undecided: the exit codes of the command line."""
        return {ProofVerdict.PROVED: 0, ProofVerdict.COUNTER_MODEL: 1, ProofVerdict.NOT_PROVED: 3}[self]


@dataclass(frozen=True)
class GoalResult:
    """One goal of one lemma, over all sizes and paths."""

    lemma: str
    name: str
    verdict: ProofVerdict
    checks: int = 0
    counter_model: CounterModel | None = None
    reason: str = ""

    def describe(self) -> list[str]:
        """The goal as lines of text; a counter-model is shown value by value."""
        lines = [f"{self.verdict.value:13}  {self.lemma}: {self.name}"]
        if self.reason:
            lines.append(f"{'':15}{self.reason}")
        if self.counter_model is not None:
            lines.extend(f"{'':15}{line}" for line in self.counter_model.lines)
        return lines


@dataclass(frozen=True)
class GroupResult:
    """One group of lemmas: everything that was proved together in one process."""

    name: str
    title: str
    method: str
    verdict: ProofVerdict
    goals: tuple[GoalResult, ...] = ()
    paths: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0
    reason: str = ""
    failures: tuple[GoalResult, ...] = field(default=())

    def describe(self, verbose: bool = False) -> list[str]:
        """One line, and the failed goals under it; `verbose` adds what is lost without each premise."""
        size = f"{len(self.goals)} goals, {self.paths} paths, {self.method}, {self.seconds:.1f} s"
        lines = [f"{self.verdict.value:13}  {self.name}: {self.title} ({size})"]
        if self.reason:
            lines.append(f"{'':15}{self.reason}")
        witnesses = tuple(g for g in self.goals if g.verdict is ProofVerdict.PROVED and g.counter_model is not None)
        for goal in (*self.failures, *(witnesses if verbose else ())):
            lines.extend(f"  {line}" for line in goal.describe())
        return lines


def overall(verdicts: list[ProofVerdict]) -> ProofVerdict:
    """A counter-model outweighs an undecided goal, which outweighs a proof. Nothing proved at all is undecided."""
    if ProofVerdict.COUNTER_MODEL in verdicts:
        return ProofVerdict.COUNTER_MODEL
    if not verdicts or ProofVerdict.NOT_PROVED in verdicts:
        return ProofVerdict.NOT_PROVED
    return ProofVerdict.PROVED
