"""Where the cases of a play first differ, and which of these differences are alike."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Generic, NamedTuple

from tidegauge.drive.contract import CaseT, Report, Step
from tidegauge.util.errors import CONFORMS, FAILS, UNDECIDED, TidegaugeError


class Difference(NamedTuple, Generic[CaseT]):
    """The first step of a case after which a node and the reference differ, and the two reports after it.

    `at` is the number of that step, from 1; 0 is the opening. `fields` are those that differ.
    """

    case: CaseT
    at: int
    fields: tuple[str, ...]
    expected: Report
    seen: Report

    @property
    def step(self) -> Step | None:
        """The step after which they differ; None if it is the opening."""
        return self.case.path[self.at - 1] if self.at else None

    @property
    def after(self) -> str:
        """The name of the step after which they differ, "open" if it is the opening."""
        return "open" if self.step is None else str(self.step[0])


class PlayResult(NamedTuple, Generic[CaseT]):
    """The result of playing cases. `fields`: how many values were compared; `ended`: what ended it before the last case."""

    cases: int
    steps: int
    fields: int
    differences: tuple[Difference[CaseT], ...]
    ended: TidegaugeError | None = None

    @property
    def exit_code(self) -> int:
        """0 the same, 1 different, 3 nothing was compared."""
        if self.differences:
            return FAILS
        # A run that compared nothing has not shown that a node conforms.
        return CONFORMS if self.steps else UNDECIDED


DifferenceKind = tuple[str, tuple[str, ...]]
"""The name of the step after which a case differs (`Difference.after`), and the fields that differ."""


def by_kind(differences: Sequence[Difference[CaseT]]) -> dict[DifferenceKind, list[Difference[CaseT]]]:
    """Group differences by kind: those after a step of the same name, in the same fields, are alike."""
    kinds: defaultdict[DifferenceKind, list[Difference[CaseT]]] = defaultdict(list)
    for difference in differences:
        kinds[difference.after, difference.fields].append(difference)
    return kinds
