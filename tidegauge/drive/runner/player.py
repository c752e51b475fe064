"""Plays cases on a node and on the reference, and compares what both report after each step.

A case is an opening and a path of steps. The node plays all cases and calls back with each report; the reference's state and
report after the same steps come from a tree, because many paths begin alike. A difference counts only when it comes again on
a partition or a cluster of its own: run.py plays it again.
"""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from tidegauge.drive.contract import Capabilities, CaseError, CaseT, Node, Report, Step, Watch
from tidegauge.drive.runner.differences import Difference, PlayResult
from tidegauge.drive.runner.reference_interface import Reference, StateT
from tidegauge.util.errors import TidegaugeError

T = TypeVar("T")


class PrefixTree(Generic[T]):
    """A node of a tree of paths: the first steps that some paths share, with the `value` after these steps.

    `extend` computes the value after one more step from the value before; it is called once for all paths that begin so.
    """

    def __init__(self, value: T, extend: Callable[[T, Step], T]) -> None:
        self.value, self._extend = value, extend
        self._after: dict[Step, PrefixTree[T]] = {}

    def after(self, step: Step) -> "PrefixTree[T]":
        """Return the child for one more step; make it on the first call."""
        if step not in self._after:
            self._after[step] = PrefixTree(self._extend(self.value, step), self._extend)
        return self._after[step]


def play(
    node: Node[CaseT], cases: Sequence[CaseT], reference: Reference[CaseT, Any], record: Watch | None = None
) -> PlayResult[CaseT]:
    """Play every case to its end or its first difference. `record` gets every report as well; what it returns is ignored.

    Raises what the node raises, with the path on which it gave up.
    """
    result = play_as_far_as_it_goes(node, cases, reference, record)
    if result.ended is not None:
        raise result.ended
    return result


def play_as_far_as_it_goes(
    node: Node[CaseT], cases: Sequence[CaseT], reference: Reference[CaseT, Any], record: Watch | None = None
) -> PlayResult[CaseT]:
    """Play like `play`; but where the node raises, return the result so far, with the error as its `ended`.

    A node that has raised cannot be used again.
    """
    expectations = _Expectations(reference)
    # The node calls `watch` when it has a report, of whichever case is under way: many are at a time. By number of the case:
    # its place in the tree of expectations, the last step that was reported, its first difference.
    places: dict[int, PrefixTree[_Expected[Any]]] = {}
    last_reported: dict[int, int] = {}
    differences: dict[int, Difference[CaseT]] = {}
    reported = node.capabilities.reports
    steps = fields = 0

    def watch(number: int, at: int, seen: Report) -> bool:
        """Compare the report after step `at` of a case (0: its opening) with the reference's; return whether it goes on."""
        nonlocal steps, fields
        case, last_reported[number] = cases[number], at
        place = places[number].after(case.path[at - 1]) if at else expectations.after_opening(case.opening)
        places[number], expected = place, place.value.report
        # The opening counts as a step, too.
        steps += 1
        # A field that is absent from a report is not known after that step, and not compared.
        fields += len(reported & seen.keys())
        if record is not None:
            record(number, at, seen)
        differing = reference.differences(expected, seen, reported)
        if differing:
            differences[number] = Difference(case, at, differing, expected, seen)
        # What comes after the first difference follows from it.
        goes_on = not differing and at < len(case.path)
        if not goes_on:
            # `_Expectations` forgets only what no case holds.
            del places[number]
        return goes_on

    played = len(cases)
    ended: TidegaugeError | None = None
    try:
        node.play(cases, watch)
    except TidegaugeError as problem:
        played, ended = len(last_reported), problem
        # A case that has reported nothing failed at its opening: there is no path to show.
        if isinstance(problem, CaseError) and problem.number in last_reported:
            path = _path_text(cases[problem.number], last_reported[problem.number], reference)
            ended = CaseError(problem.number, f"{problem}\non this path:\n{path}")
            ended.__cause__ = problem
    return PlayResult(played, steps, fields, tuple(differences[number] for number in sorted(differences)), ended)


def _path_text(case: CaseT, last_reported: int, reference: Reference[CaseT, Any]) -> str:
    """Return a case as lines: its opening, the steps that the node has reported, and the one at which it failed."""
    steps = (f"  {at:>2}  {reference.step_text(step)}" for at, step in enumerate(case.path[: last_reported + 1], start=1))
    return "\n".join((f"  {reference.opening_text(case.opening)}", *steps))


MOST_EXPECTED = 5_000
"""How many expectations are remembered. The paths of a cover lie side by side: even with a thousand the reference takes 49 %
of their steps, with all of them 46 %. Without the tree holding a release's transcript against its profile takes 1.6 times as
long (8,663 paths of 4.4.0: 6.3 s of processor time, not 3.9 s)."""


class _Expected(NamedTuple, Generic[StateT]):
    """The reference's state after the first steps of a path, and its report."""

    state: StateT
    report: Report


class _Expectations(Generic[CaseT, StateT]):
    """The expected states and reports on the paths of a play: a tree per opening, computed as far as cases ask for it."""

    def __init__(self, reference: Reference[CaseT, StateT]) -> None:
        self._reference, self._size = reference, 0
        self._roots: dict[Any, PrefixTree[_Expected[StateT]]] = {}

    def after_opening(self, opening: Any) -> PrefixTree[_Expected[StateT]]:
        """Return the root of the tree for an opening: what is expected before any step."""
        if opening not in self._roots:
            self._count()
            state = self._reference.opened(opening)
            self._roots[opening] = PrefixTree(_Expected(state, self._reference.report(state)), self._after)
        return self._roots[opening]

    def _after(self, before: _Expected[StateT], step: Step) -> _Expected[StateT]:
        """Return what is expected after one more step. It is the `extend` of the trees, called once for each new child."""
        self._count()
        return _Expected(*self._reference.take(before.state, step))

    def _count(self) -> None:
        """Count one more expectation, and forget all trees if there are too many."""
        self._size += 1
        # The parts of a tree that cases under way have reached stay: `play_as_far_as_it_goes` holds them.
        if self._size > MOST_EXPECTED:
            self._roots, self._size = {}, 0


class ReferenceNode(Generic[CaseT]):
    """The reference, or one with a bug, as a node in this process: one case after the other."""

    def __init__(self, reference: Reference[CaseT, Any], capabilities: Capabilities | None = None) -> None:
        self._reference = reference
        self.capabilities = capabilities or reference.everything

    def play(self, cases: Sequence[CaseT], watch: Watch) -> None:
        """Play one case after the other; call `watch` with each report, and end the case when it returns False."""
        for number, case in enumerate(cases):
            for at, report in enumerate(self._reference.reports(case)):
                if not watch(number, at, report):
                    break
