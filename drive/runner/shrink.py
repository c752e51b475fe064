"""A failing path made short: steps are left out while the broker still differs from the reference at the same kind of step.

Rules of this file

1. What is left must be a path of the contract, and one that the broker can be given: the reference says so.
2. All candidates of a round are played side by side, and the shortest that fails is taken. It ends when nothing can be
   left out.
3. A difference that does not come again is no failure: None.
"""

import time
from collections.abc import Iterator

from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.reference import lacking, possible, step
from tidegauge.drive.contract import Capabilities, Node, Path
from tidegauge.drive.runner.player import Difference, Start, play
from tidegauge.impl.errors import TidegaugeError

SECONDS = 8.0
"""How long one path may be shrunk: what it is by then is told."""


def shortened(path: Path) -> Iterator[Path]:
    """The path without some of its steps in a row, longest gaps first; its last step stays."""
    for gap in range(len(path) - 1, 0, -1):
        for at in range(len(path) - gap):
            yield (*path[:at], *path[at + gap :])


def shrunk(node: Node, found: Difference, start: Start, seconds: float = SECONDS) -> Difference | None:
    """The shortest path found that shows the difference."""
    ends = time.monotonic() + seconds
    best = _again(node, [found.case._replace(path=found.case.path[: found.at])], start, found)
    while best is not None and time.monotonic() < ends:
        shorter = _again(node, list(_candidates(best.case, start, node.capabilities)), start, found)
        if shorter is None:
            break
        best = shorter
    return best


def _again(node: Node, cases: list[BrokerCase], start: Start, found: Difference) -> Difference | None:
    same = [again for again in play(node, cases, start).differences if again.after == found.after]
    if not same:
        return None
    shortest = min(same, key=lambda again: again.at)
    return shortest._replace(case=shortest.case._replace(path=shortest.case.path[: shortest.at]))


def _candidates(case: BrokerCase, start: Start, capabilities: Capabilities) -> Iterator[BrokerCase]:
    """The order made shorter; what the contract has no place for is left out."""
    tried = {case.path}
    for path in shortened(case.path):
        if path not in tried and _is_a_path(path, case, start, capabilities):
            tried.add(path)
            yield case._replace(path=path)


def _is_a_path(path: Path, case: BrokerCase, start: Start, capabilities: Capabilities) -> bool:
    held = start(case.opening)
    for taken in path:
        if not possible(held, taken) or lacking(capabilities, held, taken) is not None:
            return False
        try:
            held, _ = step(held, taken)
        except TidegaugeError:
            return False
    return True
