"""The interface between the runner and a contract: a reference of one generation, and the texts of steps and reports.

A reference is a broker or a controller in Python whose decisions equal the specification; a node is what is compared with
it. A generation is one version of the protocol, given by a profile: a value for each switch. The contract of a broker
supplies `BrokerReference` (drive/broker/reference.py), that of a controller `ControllerReference`
(drive/controller/reference.py). A new kind of node needs such a class and a transcript format; the runner stays as it is.
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
    """A known bug that may explain a difference: other values of switches, wrong rules by name, or a wrong step.

    `says` is a sentence about it. A wrong step is a function that changes what the right reference makes of a step.
    """

    name: str
    says: str
    switches: Mapping[str, Any]
    rules: Mapping[str, Callable[..., Any]] = {}
    wrong_step: Any = None

    def __str__(self) -> str:
        return f"{self.name}: {self.says}"


class Finding(NamedTuple):
    """Something that one release does and another does not: `has` are the switches with it, `right` the same without it."""

    name: str
    says: str
    has: Mapping[str, Any]
    right: Mapping[str, Any]

    def is_in(self, profile: Profile) -> bool:
        """Return whether a generation does it: whether its switches have these values."""
        return all(getattr(profile, name) == value for name, value in self.has.items())


class Reference(ABC, Generic[CaseT, StateT]):
    """The expected behaviour of a node of one generation; with bugs, that of a node that has them."""

    everything: ClassVar[Capabilities]
    called: ClassVar[str]
    """What is driven, in a word."""
    unexplained: ClassVar[str]
    """The text that stands for the known bugs where none explains a difference."""
    tries_pairs: ClassVar[bool]
    """Whether pairs of suspects are tried for each of many differences: the pairs have to be few."""
    plays_one_at_a_time: ClassVar[bool]
    """Whether a node plays one case after the other, so that each case of a round of shrinking costs its time."""

    profile: Profile

    # -----------------------------------------------------------------------------------------------------------------
    # What it does

    @abstractmethod
    def opened(self, opening: Any) -> StateT:
        """Return the state after an opening, before the first step."""

    @abstractmethod
    def report(self, state: StateT) -> Report:
        """Return what is reported after the opening that has led to this state."""

    @abstractmethod
    def take(self, state: StateT, step: Step) -> tuple[StateT, Report]:
        """Return the state after a step, and the report that is expected of a node then."""

    def take_or_refuse(self, state: StateT, step: Step) -> tuple[StateT, Report]:
        """Return the state after a step, and what a node that is this reference reports.

        Unlike `take` it has a report also for a step that the contract does not allow in this state.
        """
        return self.take(state, step)

    def reports(self, case: CaseT) -> Iterator[Report]:
        """Yield what a node that is this reference reports on a case: after its opening, then after each step."""
        state = self.opened(case.opening)
        yield self.report(state)
        for step in case.path:
            state, report = self.take_or_refuse(state, step)
            yield report

    def can_be_given(self, case: CaseT, capabilities: Capabilities) -> bool:
        """Return whether the contract allows every step of a case, and a node with these capabilities can take it."""
        return True

    @abstractmethod
    def differences(self, expected: Report, seen: Report, reported: frozenset[str]) -> tuple[str, ...]:
        """Return the fields in which two reports differ, in the order of the contract, () if none.

        `reported`: the fields that the node reports. One that is absent from `seen` is not known, and not compared.
        """

    # -----------------------------------------------------------------------------------------------------------------
    # Known bugs

    @abstractmethod
    def suspects(self) -> Iterator[Suspect]:
        """Yield every known bug that a node of this generation should not have."""

    @abstractmethod
    def with_bugs(self, suspects: Iterable[Suspect]) -> Self:
        """Return this reference with these bugs put in, all of them together."""

    def other_generations(self) -> Iterator[Self]:
        """Yield the references of other generations: a node that does as one of them may have the wrong --profile."""
        yield from ()

    def with_fault(self, name: str) -> Self:
        """Return this reference with the bug of that name. Raises UsageError where the contract has no such bugs."""
        raise UsageError(f"--fault {name}: expected a broker's transcript; seen a {self.called}'s; leave --fault out")

    @abstractmethod
    def findings(self) -> Sequence[Finding]:
        """Return everything that some release does and another does not."""

    @abstractmethod
    def is_same_kind(self, difference: Difference[CaseT], again: Difference[CaseT]) -> bool:
        """Return whether `again`, the difference on a shorter case, is taken for the same as `difference`."""

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
        """Return what a step does, in a sentence; None if there is none for it."""

    @abstractmethod
    def side_by_side(self, difference: Difference[CaseT], reported: frozenset[str], names: tuple[str, str]) -> Iterator[str]:
        """Yield the lines of the two reports of a difference side by side; `names` are the headings, expected first.

        `reported`: the fields that the node reports, which are those shown.
        """

    def decision_texts(self, difference: Difference[CaseT]) -> Sequence[str]:
        """Return a text for each rule that the reference applied at the step that differs."""
        return ()

    def observed(self) -> Self:
        """Return a copy of this reference that counts what its `notes` report."""
        return self

    def notes(self, cases: Sequence[CaseT], differences: Sequence[Difference[CaseT]]) -> list[str]:
        """Return lines that a run reports besides its differences, such as what was covered. Call it after the run."""
        return []
