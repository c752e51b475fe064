"""The interface between the runner and a contract: a reference of one generation, and the texts of steps and reports.

The contract of a broker supplies `BrokerReference` (drive/broker/reference.py), that of a controller `ControllerReference`
(drive/controller/reference.py). A new kind of node needs such a class, a transcript format and nothing of the runner.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from tidegauge.drive.contract import Capabilities, CaseT, Report, Step
from tidegauge.drive.runner.differences import Difference
from tidegauge.impl.profiles import Profile
from tidegauge.util.errors import UsageError

StateT = TypeVar("StateT")
"""The reference's state on one path: a value, so that paths can share it."""


class Suspect(NamedTuple):
    """A known bug: switches of a profile with other values, wrong rules, or a wrong step."""

    name: str
    says: str
    switches: Mapping[str, Any]
    rules: Mapping[str, Callable[..., Any]] = {}
    wrong_step: Any = None

    def __str__(self) -> str:
        return f"{self.name}: {self.says}"


class Finding(NamedTuple):
    """Something that a release may do and another does not: switches with a value, and what they are without it."""

    name: str
    says: str
    has: Mapping[str, Any]
    right: Mapping[str, Any]

    def is_in(self, profile: Profile) -> bool:
        """Return whether a release does it."""
        return all(getattr(profile, name) == value for name, value in self.has.items())


class Reference(ABC, Generic[CaseT, StateT]):
    """The expected behaviour of a node of one generation; with bugs, that of a node that has them."""

    everything: ClassVar[Capabilities]
    called: ClassVar[str]
    """What is driven, in a word."""
    unexplained: ClassVar[str]
    """The text where no suspect does the same."""
    tries_pairs: ClassVar[bool]
    """Whether pairs of suspects are tried for each of many differences: the pairs have to be few."""
    plays_one_at_a_time: ClassVar[bool]
    """Whether a node plays one case after the other, so that each case of a round of shrinking costs its time."""

    profile: Profile

    # -----------------------------------------------------------------------------------------------------------------
    # What it does

    @abstractmethod
    def opened(self, opening: Any) -> StateT:
        """Return the state before the first step."""

    @abstractmethod
    def report(self, state: StateT) -> Report:
        """Return what is reported before the first step."""

    @abstractmethod
    def take(self, state: StateT, step: Step) -> tuple[StateT, Report]:
        """Return what is expected after a step."""

    def take_or_refuse(self, state: StateT, step: Step) -> tuple[StateT, Report]:
        """Return what a node like this reference does, also at a step that the contract does not allow now."""
        return self.take(state, step)

    def reports(self, case: CaseT) -> Iterator[Report]:
        """Yield what such a node reports on a case: after its opening, then after each step."""
        state = self.opened(case.opening)
        yield self.report(state)
        for step in case.path:
            state, report = self.take_or_refuse(state, step)
            yield report

    def can_be_given(self, case: CaseT, capabilities: Capabilities) -> bool:
        """Return whether the contract allows every step of a case, and a node with these capabilities can be given it."""
        return True

    @abstractmethod
    def differences(self, expected: Report, seen: Report, reported: frozenset[str]) -> tuple[str, ...]:
        """Return which of the reported fields differ, in the order of the contract."""

    # -----------------------------------------------------------------------------------------------------------------
    # Known bugs

    @abstractmethod
    def suspects(self) -> Iterator[Suspect]:
        """Yield every known bug that a node of this generation should not have."""

    @abstractmethod
    def with_bugs(self, suspects: Iterable[Suspect]) -> Self:
        """Return this reference with bugs."""

    def other_generations(self) -> Iterator[Self]:
        """Yield this reference for each other generation that a user may have meant."""
        yield from ()

    def with_fault(self, name: str) -> Self:
        """Return this reference with the bug of that name. Raises UsageError where the contract has no such bugs."""
        raise UsageError(f"--fault {name}: expected a broker's transcript; seen a {self.called}'s; leave --fault out")

    @abstractmethod
    def findings(self) -> Sequence[Finding]:
        """Return what a release may do and another does not."""

    @abstractmethod
    def is_same_kind(self, difference: Difference[CaseT], again: Difference[CaseT]) -> bool:
        """Return whether a shorter case shows the same difference."""

    def suspect_label(self, suspect: Suspect) -> str:
        """Return how a suspect is named in a list of causes."""
        return suspect.name

    # -----------------------------------------------------------------------------------------------------------------
    # Texts

    @abstractmethod
    def opening_text(self, opening: Any) -> str:
        """Return an opening on one line."""

    @abstractmethod
    def step_text(self, step: Step) -> str:
        """Return a step on one line."""

    @abstractmethod
    def step_sentence(self, step: Step) -> str | None:
        """Return what a step does, in a sentence."""

    @abstractmethod
    def side_by_side(self, difference: Difference[CaseT], reported: frozenset[str], names: tuple[str, str]) -> Iterator[str]:
        """Yield both reports line by line, below `names`."""

    def decision_texts(self, difference: Difference[CaseT]) -> Sequence[str]:
        """Return which rules the reference applied at the step that differs."""
        return ()

    def observed(self) -> Self:
        """Return this reference, made to count what its `notes` report."""
        return self

    def notes(self, cases: Sequence[CaseT], differences: Sequence[Difference[CaseT]]) -> list[str]:
        """Return what a run reports besides its differences, a line each."""
        return []
