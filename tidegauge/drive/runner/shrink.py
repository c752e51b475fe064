"""A failing path made short: steps are left out while the node still differs from the reference in the same way."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from tidegauge.drive.contract import Capabilities, CaseT, Node, Path
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.reference import Reference
from tidegauge.drive.runner.report import explanations

SECONDS = 8.0
"""How long one path may be shrunk; the result is the shortest by then."""


def shrunk(
    node: Node[CaseT], difference: Difference[CaseT], reference: Reference[CaseT, Any], seconds: float = SECONDS
) -> Difference[CaseT] | None:
    """Return the shortest path found that shows the difference; None if it does not come again."""
    ends = time.monotonic() + seconds
    best = None
    if reference.plays_one_at_a_time:
        # The reference is faster than a process. What is left with a bug that explains the difference is played on the
        # node, and if it differs there too, it is what is shrunk further.
        for bugs in explanations(difference, reference, node.capabilities.reports)[:1]:
            short = _shrunk(ReferenceNode(reference.with_bugs(bugs), node.capabilities), difference, reference, ends)
            best = None if short is None else _again(node, [short.case], reference, difference)
    return _shrunk(node, difference if best is None else best, reference, ends)


def _shrunk(
    node: Node[CaseT], difference: Difference[CaseT], reference: Reference[CaseT, Any], ends: float
) -> Difference[CaseT] | None:
    """Shrink on one node, until nothing shorter differs or the time `ends`; None if the difference does not come again."""
    # A difference that does not come again is no failure of this path.
    best = _again(node, [difference.case._replace(path=difference.case.path[: difference.at])], reference, difference)
    while best is not None and time.monotonic() < ends:
        shorter = _shorter(node, best, difference, reference)
        if shorter is None:
            break
        best = shorter
    return best


def _shorter(
    node: Node[CaseT], best: Difference[CaseT], difference: Difference[CaseT], reference: Reference[CaseT, Any]
) -> Difference[CaseT] | None:
    """Return a difference of the same kind on a path with fewer steps than `best`; None if there is none."""
    # A node that plays cases side by side takes all candidates at once; for another each case costs its time.
    candidates = _candidates(best.case, reference, node.capabilities)
    rounds = ([case] for case in candidates) if reference.plays_one_at_a_time else iter([[*candidates]])
    return next((again for cases in rounds if (again := _again(node, cases, reference, difference)) is not None), None)


def _again(
    node: Node[CaseT], cases: Sequence[CaseT], reference: Reference[CaseT, Any], difference: Difference[CaseT]
) -> Difference[CaseT] | None:
    """Play cases, and return the shortest difference of the same kind, cut after its step."""
    same = [again for again in play(node, cases, reference).differences if reference.is_same_kind(difference, again)]
    if not same:
        return None
    shortest = min(same, key=lambda again: again.at)
    return shortest._replace(case=shortest.case._replace(path=shortest.case.path[: shortest.at]))


def _candidates(case: CaseT, reference: Reference[CaseT, Any], capabilities: Capabilities) -> Iterator[CaseT]:
    """Yield the case without some steps in a row, longest gaps first, as far as the node can be given that."""
    tried = {case.path}
    for path in _shortened(case.path):
        shorter = case._replace(path=path)
        # A path without some steps may be none that the contract allows, or none that the node can be given.
        if path not in tried and reference.can_be_given(shorter, capabilities):
            tried.add(path)
            yield shorter


def _shortened(path: Path) -> Iterator[Path]:
    """Yield the path without some of its steps in a row, longest gaps first; its last step stays."""
    for gap in range(len(path) - 1, 0, -1):
        for at in range(len(path) - gap):
            yield (*path[:at], *path[at + gap :])
