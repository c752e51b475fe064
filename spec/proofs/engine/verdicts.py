"""The verdicts of goals and groups, and their text."""

from dataclasses import dataclass, field
from enum import Enum

from tidegauge.spec.proofs.engine.paths import CounterModel


class ProofVerdict(Enum):
    """The verdict on a goal: no model breaks it, one does, or the solver could not decide."""

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
        """Return the goal as lines of text, with a counter-model value by value."""
        lines = [f"{self.verdict.value:13}  {self.lemma}: {self.name}"]
        if self.reason:
            lines.append(f"{'':15}{self.reason}")
        if self.counter_model is not None:
            lines.extend(f"{'':15}{line}" for line in self.counter_model.lines)
        return lines


@dataclass(frozen=True)
class GroupResult:
    """The results of one group of lemmas, which are proved together in one process."""

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
        """Return one line, and a line for each failed goal; `verbose` adds the loss without each premise."""
        size = f"{len(self.goals)} goals, {self.paths} paths, {self.method}, {self.seconds:.1f} s"
        lines = [f"{self.verdict.value:13}  {self.name}: {self.title} ({size})"]
        if self.reason:
            lines.append(f"{'':15}{self.reason}")
        witnesses = tuple(g for g in self.goals if g.verdict is ProofVerdict.PROVED and g.counter_model is not None)
        for goal in (*self.failures, *(witnesses if verbose else ())):
            lines.extend(f"  {line}" for line in goal.describe())
        return lines


def overall(verdicts: list[ProofVerdict]) -> ProofVerdict:
    """Combine verdicts: a counter-model outweighs an undecided goal, which outweighs a proof; no verdict is undecided."""
    if ProofVerdict.COUNTER_MODEL in verdicts:
        return ProofVerdict.COUNTER_MODEL
    if not verdicts or ProofVerdict.NOT_PROVED in verdicts:
        return ProofVerdict.NOT_PROVED
    return ProofVerdict.PROVED
