"""Which switches of its profile the reference reads on a path: on every other path it does the same without a switch."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidegauge.drive.broker.contract import BrokerCase, Opening
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.state import ReferenceBroker
from tidegauge.drive.contract import Step
from tidegauge.drive.runner.player import PrefixTree
from tidegauge.impl.profiles import Profile, recording_reads


class Reached(NamedTuple):
    """The reference's broker after some steps, and what was read by then."""

    state: ReferenceBroker
    read: frozenset[str]


def switches_read(cases: Sequence[BrokerCase], profile: Profile) -> Iterator[frozenset[str]]:
    """The switches that the reference reads on each of the paths."""
    generation, names = recording_reads(profile)
    generation_reference = reference(generation)
    trees: dict[Opening, PrefixTree[Reached]] = {}

    def extend(before: Reached, step: Step) -> Reached:
        names.clear()
        state, _ = generation_reference.take(before.state, step)
        return Reached(state, before.read | names)

    for case in cases:
        if case.opening not in trees:
            names.clear()
            state = generation_reference.opened(case.opening)
            trees[case.opening] = PrefixTree(Reached(state, frozenset(names)), extend)
        at = trees[case.opening]
        for step in case.path:
            at = at.after(step)
        yield at.value.read
