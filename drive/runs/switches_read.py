"""Which switches of its profile the reference reads on a path: on every other path it does the same without a switch."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidegauge.drive.beginnings import Beginning
from tidegauge.drive.contract import Opening, Order, Step
from tidegauge.drive.held import Held, opened
from tidegauge.drive.player import expected_of
from tidegauge.drive.watched import watched
from tidegauge.impl.profiles import Profile


class Reached(NamedTuple):
    """The reference's broker after some steps, and what was read by then."""

    held: Held
    read: frozenset[str]


def switches_read(orders: Sequence[Order], profile: Profile) -> Iterator[frozenset[str]]:
    """The switches that the reference reads on each of the paths."""
    generation, names = watched(profile)
    beginnings: dict[Opening, Beginning[Reached]] = {}

    def longer(before: Reached, step: Step) -> Reached:
        names.clear()
        held, _ = expected_of(before.held, step)
        return Reached(held, before.read | names)

    for order in orders:
        if order.opening not in beginnings:
            names.clear()
            held = opened(order.opening, generation)
            beginnings[order.opening] = Beginning(Reached(held, frozenset(names)), longer)
        at = beginnings[order.opening]
        for step in order.path:
            at = at.after(step)
        yield at.known.read
