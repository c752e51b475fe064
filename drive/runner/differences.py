"""What playing paths has shown, on a broker or on a controller: where each first differs.

Rule of this file: nothing compared is nothing decided.
"""

from typing import Generic, NamedTuple

from tidegauge.conformance.judging.verdicts import CONFORMS, FAILS, UNDECIDED
from tidegauge.drive.contract import CaseT, Report, Step


class Difference(NamedTuple, Generic[CaseT]):
    """The first step of a case after which the two differ. `at` 0 is the opening."""

    case: CaseT
    at: int
    fields: tuple[str, ...]
    expected: Report
    seen: Report

    @property
    def step(self) -> Step | None:
        """The step itself."""
        return self.case.path[self.at - 1] if self.at else None

    @property
    def after(self) -> str:
        """The name of that step."""
        return "open" if self.step is None else str(self.step[0])


class Played(NamedTuple, Generic[CaseT]):
    """What playing cases has shown. `fields` is how many values were compared."""

    cases: int
    steps: int
    fields: int
    differences: tuple[Difference[CaseT], ...]

    @property
    def exit_code(self) -> int:
        """0 the same, 1 different, 3 nothing was compared."""
        if self.differences:
            return FAILS
        return CONFORMS if self.steps else UNDECIDED
