"""A failing path made short: steps are left out while the broker still differs from the reference at the same kind of step.

Rules of this file

1. What is left must be a path of the contract, and one that the broker can be given: the reference says so.
2. All candidates of a round are played side by side, and the shortest that fails is taken. It ends when nothing can be
   left out.
3. A difference that does not come again is no failure: None.
"""

import time
from collections.abc import Iterator

from tidegauge.drive.contract import Capabilities, Node, Order, Path
from tidegauge.drive.player import Difference, Start, play
from tidegauge.drive.reference import lacking, possible, step
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
    best = _again(node, [found.order._replace(path=found.order.path[: found.at])], start, found)
    while best is not None and time.monotonic() < ends:
        shorter = _again(node, list(_candidates(best.order, start, node.capabilities)), start, found)
        if shorter is None:
            break
        best = shorter
    return best


def _again(node: Node, orders: list[Order], start: Start, found: Difference) -> Difference | None:
    same = [again for again in play(node, orders, start).differences if again.after == found.after]
    if not same:
        return None
    shortest = min(same, key=lambda again: again.at)
    return shortest._replace(order=shortest.order._replace(path=shortest.order.path[: shortest.at]))


def _candidates(order: Order, start: Start, capabilities: Capabilities) -> Iterator[Order]:
    """The order made shorter; what the contract has no place for is left out."""
    tried = {order.path}
    for path in shortened(order.path):
        if path not in tried and _is_a_path(path, order, start, capabilities):
            tried.add(path)
            yield order._replace(path=path)


def _is_a_path(path: Path, order: Order, start: Start, capabilities: Capabilities) -> bool:
    held = start(order.opening)
    for taken in path:
        if not possible(held, taken) or lacking(capabilities, held, taken) is not None:
            return False
        try:
            held, _ = step(held, taken)
        except TidegaugeError:
            return False
    return True
