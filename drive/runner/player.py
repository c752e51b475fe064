"""Plays paths on a broker under test and on the reference, and holds what both report against each other after each step.

Rules of this file

1. A path ends at its first difference: what comes after it follows from it.
2. Only fields that the broker reports are compared; one that is absent from a report is not known after that step. In a
   field it may say more than the reference, not less.
3. A difference counts when it comes again on a partition of its own (`again`).
4. Paths of a cover begin alike, and so does what is expected on them: half of its steps the reference takes once for all.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tidegauge.drive.broker.contract import BY_PEER, EVERYTHING, STEPS, BrokerCase, Opening
from tidegauge.drive.broker.reference import possible, step
from tidegauge.drive.broker.state import Held, WrongStep, opened, report
from tidegauge.drive.contract import Capabilities, Node, Report, Step, Watch
from tidegauge.drive.prefix_tree import Beginning
from tidegauge.drive.runner import differences as played
from tidegauge.impl.error_codes import UNKNOWN_SERVER_ERROR
from tidegauge.impl.errors import TidegaugeError
from tidegauge.impl.profiles import FETCH_TRUNCATION, Profile, Rules

Start = Callable[[Opening], Held]
"""The reference that a broker is held against: a profile, or a fault."""


Difference = played.Difference[BrokerCase]
Played = played.Played[BrokerCase]


def play(node: Node, cases: Sequence[BrokerCase], start: Start, record: Watch | None = None) -> Played:
    """Play every order to its end or its first difference."""
    expectations = Expectations(start)
    reached: dict[int, Beginning[Expected]] = {}
    found: dict[int, Difference] = {}
    reported = node.capabilities.reports
    steps = fields = 0

    def watch(number: int, at: int, seen: Report) -> bool:
        nonlocal steps, fields
        case = cases[number]
        now = reached[number].after(case.path[at - 1]) if at else expectations.of(case.opening)
        reached[number], expected = now, now.known.report
        steps += 1
        fields += len(reported & seen.keys())
        if record is not None:
            record(number, at, seen)
        wrong = differences(expected, seen, reported)
        if wrong:
            found[number] = Difference(case, at, wrong, expected, seen)
        goes_on = not wrong and at < len(case.path)
        if not goes_on:
            del reached[number]
        return goes_on

    node.play(cases, watch)
    return Played(len(cases), steps, fields, tuple(found[number] for number in sorted(found)))


MOST = 5_000
"""How many expectations are remembered. A cover's paths lie side by side: with a thousand its reference takes 49 % of their
steps, with all of them 46 %."""


class Expected(NamedTuple):
    """What is expected after the first steps of a path: the reference's broker, and its report."""

    held: Held
    report: Report


class Expectations:
    """What is expected on the paths of a play. When it is too much it is forgotten, but for the paths under way."""

    def __init__(self, start: Start) -> None:
        self._start, self._roots, self._size = start, dict[Opening, Beginning[Expected]](), 0

    def of(self, opening: Opening) -> Beginning[Expected]:
        """What is expected before any step."""
        if opening not in self._roots:
            self._grown()
            held = self._start(opening)
            self._roots[opening] = Beginning(Expected(held, report(held)), self._longer)
        return self._roots[opening]

    def _longer(self, before: Expected, taken: Step) -> Expected:
        self._grown()
        return Expected(*expected_of(before.held, taken))

    def _grown(self) -> None:
        self._size += 1
        if self._size > MOST:
            self._roots, self._size = {}, 0


def expected_of(held: Held, taken: Step) -> tuple[Held, Report]:
    """What is expected of a step; nothing of one that a broker of this generation cannot be given."""
    try:
        return step(held, taken) if possible(held, taken) else (held, IMPOSSIBLE)
    except TidegaugeError:
        return held, IMPOSSIBLE


IMPOSSIBLE: Report = {"step": "impossible"}


def given(held: Held, taken: Step) -> tuple[Held, Report]:
    """What a broker with a bug does with a step: nothing, if the bug has left no place for it; a request gets an error."""
    after, said = expected_of(held, taken)
    if said is not IMPOSSIBLE:
        return after, said
    return after, report(held, {"error": UNKNOWN_SERVER_ERROR} if STEPS[taken[0]].result else None)


def differences(expected: Report, seen: Report, reported: frozenset[str]) -> tuple[str, ...]:
    """The reported fields in which the two differ, in the order of the contract."""
    if expected == seen:
        return ()
    if expected is IMPOSSIBLE:
        return ("step",)
    known = reported & seen.keys()
    return tuple(field for field in expected if field in known and not _agrees(expected[field], seen[field], field))


def _agrees(expected: Any, seen: Any, field: str = "") -> bool:
    if isinstance(expected, dict) and isinstance(seen, dict):
        if field in BY_PEER and expected.keys() != seen.keys():
            return False
        return all(key in seen and _agrees(value, seen[key]) for key, value in expected.items())
    return bool(expected == seen)


def reference(profile: Profile = FETCH_TRUNCATION, rules: Rules | None = None, wrong: WrongStep | None = None) -> Start:
    """What a broker of this generation is expected to do; with wrong rules or a wrong step, what one with a bug does."""
    return lambda opening: opened(opening, profile, rules, wrong)


class ReferenceNode:
    """The reference, or one with a fault, as a broker under test in this process."""

    def __init__(self, start: Start, capabilities: Capabilities = EVERYTHING) -> None:
        self.capabilities = capabilities
        self._start = start

    def play(self, cases: Sequence[BrokerCase], watch: Watch) -> None:
        """One order after the other."""
        for number, case in enumerate(cases):
            held = self._start(case.opening)
            if not watch(number, 0, report(held)):
                continue
            for at, taken in enumerate(case.path, start=1):
                held, said = given(held, taken)
                if not watch(number, at, said):
                    break
