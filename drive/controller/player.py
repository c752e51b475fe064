"""Plays paths on a controller under test and on the reference, and holds what both report against each other.

Rules of this file

1. Reports are compared after each step. A path ends at its first difference: what comes after it follows from it.
2. A node is whatever plays orders and hands each report to a watch: a process, a transcript, the reference itself.
"""

from collections.abc import Sequence
from typing import Protocol

from tidegauge.drive.contract import Report, Watch
from tidegauge.drive.controller.contract import REPORTED, ClusterOpening, ControllerCase, Difference, fields_that_differ
from tidegauge.drive.controller.reference import Held, opened, report, step
from tidegauge.drive.controller.report import Incarnations
from tidegauge.drive.runner.differences import Played
from tidegauge.impl.profiles import Profile


class Node(Protocol):
    """A controller under test."""

    name: str

    def play(self, cases: Sequence[ControllerCase], watch: Watch) -> None:
        """Give every step of every order, in the order of its steps, until `watch` says that an order is done."""


class Under:
    """The reference on one path, step by step."""

    def __init__(self, opening: ClusterOpening, profile: Profile) -> None:
        self.held: Held = opened(opening, profile)
        self._numbers = Incarnations()

    def report(self) -> Report:
        """What is seen before the first step."""
        return report(self.held, self._numbers)

    def given(self, taken: tuple[object, ...]) -> Report:
        """What is seen after a step."""
        self.held, seen = step(self.held, taken, self._numbers)
        return seen


class ReferenceNode:
    """The reference as a controller under test."""

    def __init__(self, profile: Profile, name: str = "reference") -> None:
        self.name, self._profile = name, profile

    def play(self, cases: Sequence[ControllerCase], watch: Watch) -> None:
        """One order after the other."""
        for number, case in enumerate(cases):
            under = Under(case.opening, self._profile)
            goes_on = watch(number, 0, under.report())
            for at, taken in enumerate(case.path, start=1):
                if not goes_on:
                    break
                goes_on = watch(number, at, under.given(taken))


def play(
    node: Node, cases: Sequence[ControllerCase], profile: Profile, record: Watch | None = None
) -> Played[ControllerCase]:
    """Play every order to its end or its first difference."""
    expected: dict[int, Under] = {}
    found: dict[int, Difference] = {}
    steps = 0

    def watch(number: int, at: int, seen: Report) -> bool:
        nonlocal steps
        case = cases[number]
        if at == 0:
            under = expected[number] = Under(case.opening, profile)
            says = under.report()
        else:
            says = expected[number].given(case.path[at - 1])
        steps += 1
        if record is not None:
            record(number, at, seen)
        wrong = fields_that_differ(says, seen)
        if wrong:
            found[number] = Difference(case, at, wrong, says, seen)
        return not wrong and at < len(case.path)

    node.play(cases, watch)
    return Played(len(cases), steps, steps * len(REPORTED), tuple(found[number] for number in sorted(found)))
