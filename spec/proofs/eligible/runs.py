"""What each premise of an election is good for: a short run that elects a broker without a committed record if it fails.

Rules of this file

1. A run is a list of steps of `plain.py`, by name and arguments.
2. The first step that is refused, or does something else, while the premise is kept is the one that needs it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegauge.spec.proofs.eligible.plain import PlainRegistration
from tidegauge.spec.proofs.eligible.registration import NOBODY, Premise

Step = tuple[Any, ...]


@dataclass(frozen=True)
class CleanLoss:
    """A premise, and the steps that lose a committed record by clean elections without it. `finding`: Kafka does so."""

    premise: Premise
    steps: tuple[Step, ...]
    replicas: tuple[int, ...] = (1, 2)
    minimum: int = 2
    finding: str = ""

    def played(self, without: str) -> tuple[PlainRegistration, list[bool]]:
        """The registration after the steps, and which of them were possible."""
        registration = PlainRegistration(without, self.replicas, self.minimum)
        return registration, [getattr(registration, name)(*arguments) for name, *arguments in self.steps]

    @property
    def breach(self) -> int:
        """The index of the step that goes otherwise while the premise is kept. Raises ValueError when none does."""
        free, guarded = (PlainRegistration(one, self.replicas, self.minimum) for one in (self.premise, ""))
        for number, (name, *arguments) in enumerate(self.steps):
            done = [getattr(one, name)(*arguments) for one in (free, guarded)]
            if done[0] != done[1] or free.seen() != guarded.seen():
                return number
        raise ValueError(f"expected a step that needs that {self.premise}; seen none in {self.steps}")


LED: tuple[Step, ...] = (("learn", 1, 0), ("learn", 2, 0))
"""Broker 1 leads, broker 2 follows."""

ALONE: tuple[Step, ...] = (*LED, ("fence", (2,)), ("hear_isr", 0))
"""Broker 2 has left the ISR, and its leader knows."""

ELECTED: tuple[Step, ...] = (("fence", (1,), 2),)
"""Broker 1 is fenced, broker 2 elected."""

CLEAN_LOSSES: Mapping[str, CleanLoss] = {
    "not-eligible": CleanLoss(Premise.ELECT_ELIGIBLE, (*ALONE, ("commit", 0), *ELECTED), minimum=1),
    "eligible-beside-enough": CleanLoss(
        Premise.ELIGIBLE_BELOW_MIN_ISR, (*ALONE, ("commit", 0), *ELECTED), minimum=1
    ),
    # both are down when min ISR is lowered; the one that is elected meets it and commits alone
    "eligible-after-election": CleanLoss(
        Premise.ELECTION_LOOKS_AGAIN,
        (
            *LED, ("fence", (2,)), ("fence", (1,), NOBODY), ("set_minimum", 1), ("fence", (), 1), ("learn", 1, 2),
            ("hear_minimum", 2), ("commit", 2), ("fence", (1,), 2),
        ),
        finding="F9; F5 repaired by halves",
    ),
    "eligible-after-change": CleanLoss(
        Premise.CHANGE_LOOKS_AGAIN,
        (*ALONE, ("set_minimum", 1), ("hear_minimum", 0), ("commit", 0), *ELECTED),
        finding="F9",
    ),
    # removed, added again, empty
    "removed-stays-eligible": CleanLoss(
        Premise.REMOVED_LEAVES,
        (
            ("learn", 1, 0), ("learn", 2, 0), ("learn", 3, 0), ("commit", 0), ("reassign", (1, 2)), ("fence", (2,)),
            ("reassign", (1, 2, 3)), ("fence", (1,), 3),
        ),
        replicas=(1, 2, 3), minimum=3, finding="F4",
    ),
    "lost-stays-eligible": CleanLoss(
        Premise.LOST_LEAVES, (*LED, ("commit", 0), ("fence", (2,)), ("come_back", 2), *ELECTED), finding="F9, F10"
    ),
    # KAFKA-15583
    "commit-below-min-isr": CleanLoss(Premise.COMMIT_ON_MIN_ISR, (*ALONE, ("commit", 0), *ELECTED)),
    # min ISR is raised, the ISR shrinks, and the leader hears of the second only
    "isr-before-min-isr": CleanLoss(
        Premise.ISR_WITH_MIN_ISR,
        (*LED, ("set_minimum", 2), ("fence", (2,)), ("hear_isr", 0), ("commit", 0), *ELECTED),
        minimum=1, finding="F11",
    ),
    # nobody leads when min ISR is lowered; a deposed leader hears of that, and of its deposition later
    "min-isr-before-isr": CleanLoss(
        Premise.MIN_ISR_IN_ORDER,
        (*ALONE, ("fence", (1,), NOBODY), ("set_minimum", 1), ("hear_minimum", 0), ("commit", 0), ("fence", (), 2)),
    ),
    "joins-behind": CleanLoss(
        Premise.JOINS_WHOLE, (*ALONE, ("commit", 0), ("propose", 2), ("accept", 0), *ELECTED), minimum=1
    ),
    # the proposal of a leader that is deposed, of a replica that has come back without its log since
    "late-proposal": CleanLoss(
        Premise.KNOWS_THE_LATEST,
        (
            ("learn", 1, 0), ("learn", 2, 0), ("learn", 3, 0), ("fence", (3,)), ("hear_isr", 0), ("propose", 3),
            ("fence", (1,), 2), ("learn", 2, 1), ("commit", 1), ("accept", 0), ("fence", (2,), 3),
        ),
        replicas=(1, 2, 3), minimum=1,
    ),
    # KIP-903
    "old-incarnation-joins": CleanLoss(
        Premise.NO_OLD_INCARNATION,
        (*LED, ("commit", 0), ("fence", (2,)), ("hear_isr", 0), ("propose", 2), ("come_back", 2), ("accept", 0), *ELECTED),
        minimum=1,
    ),
}  # fmt: skip
"""By the name under which `tidegauge prove --scenario` tells it."""
