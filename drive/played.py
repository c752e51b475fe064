"""What playing paths has shown, on a broker or on a controller: where each first differs.

Rule of this file: nothing compared is nothing decided.
"""

from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from tidegauge.conformance.judging.verdicts import CONFORMS, FAILS, UNDECIDED
from tidegauge.drive.contract import Path, Report, Step


class _Order(Protocol):
    @property
    def opening(self) -> Any: ...

    @property
    def path(self) -> Path: ...

    def _replace(self, *, path: Path = ...) -> Self: ...


OrderT = TypeVar("OrderT", bound=_Order)
"""A path to be played: of a broker, or of a controller."""


class Difference(NamedTuple, Generic[OrderT]):
    """The first step of an order after which the two differ. `at` 0 is the opening."""

    order: OrderT
    at: int
    fields: tuple[str, ...]
    expected: Report
    seen: Report

    @property
    def step(self) -> Step | None:
        """The step itself."""
        return self.order.path[self.at - 1] if self.at else None

    @property
    def after(self) -> str:
        """The name of that step."""
        return "open" if self.step is None else str(self.step[0])


class Played(NamedTuple, Generic[OrderT]):
    """What playing orders has shown. `fields` is how many values were compared."""

    orders: int
    steps: int
    fields: int
    differences: tuple[Difference[OrderT], ...]

    @property
    def exit_code(self) -> int:
        """0 the same, 1 different, 3 nothing was compared."""
        if self.differences:
            return FAILS
        return CONFORMS if self.steps else UNDECIDED
