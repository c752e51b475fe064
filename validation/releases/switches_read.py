"""Which switches of its profile the reference reads on a path: on every other path it does the same without a switch."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidegauge.drive.broker.contract import BrokerCase, Opening
from tidegauge.drive.broker.state import Held, opened
from tidegauge.drive.contract import Step
from tidegauge.drive.prefix_tree import Beginning
from tidegauge.drive.profile_reads import watched
from tidegauge.drive.runner.player import expected_of
from tidegauge.impl.profiles import Profile


class Reached(NamedTuple):
    """The reference's broker after some steps, and what was read by then."""

    held: Held
    read: frozenset[str]


def switches_read(cases: Sequence[BrokerCase], profile: Profile) -> Iterator[frozenset[str]]:
    """The switches that the reference reads on each of the paths."""
    generation, names = watched(profile)
    beginnings: dict[Opening, Beginning[Reached]] = {}

    def longer(before: Reached, step: Step) -> Reached:
        names.clear()
        held, _ = expected_of(before.held, step)
        return Reached(held, before.read | names)

    for case in cases:
        if case.opening not in beginnings:
            names.clear()
            held = opened(case.opening, generation)
            beginnings[case.opening] = Beginning(Reached(held, frozenset(names)), longer)
        at = beginnings[case.opening]
        for step in case.path:
            at = at.after(step)
        yield at.known.read
