"""Which switches of its profile the reference reads on a path: on every other path it does the same without a switch.

Rule of this file: paths begin alike, and so does what is read on them. A step is taken once for all that begin with it.
"""

from collections.abc import Iterator, Sequence

from tidegauge.drive.contract import Opening, Order, Step
from tidegauge.drive.held import Held, opened
from tidegauge.drive.player import expected_of
from tidegauge.drive.watched import watched
from tidegauge.impl.profiles import Profile


class Beginning:
    """The first steps of some paths: the broker after them, and what was read by then."""

    def __init__(self, held: Held, read: frozenset[str]) -> None:
        self.held, self.read = held, read
        self.longer: dict[Step, Beginning] = {}


def switches_read(orders: Sequence[Order], profile: Profile) -> Iterator[frozenset[str]]:
    """The switches that the reference reads on each of the paths."""
    generation, names = watched(profile)
    beginnings: dict[Opening, Beginning] = {}
    for order in orders:
        if order.opening not in beginnings:
            held = opened(order.opening, generation)
            beginnings[order.opening] = Beginning(held, frozenset(names))
        at = beginnings[order.opening]
        for step in order.path:
            if step not in at.longer:
                names.clear()
                held, _ = expected_of(at.held, step)
                at.longer[step] = Beginning(held, at.read | names)
            at = at.longer[step]
        yield at.read
