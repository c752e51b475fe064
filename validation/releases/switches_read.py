"""Finds the switches of its profile that the reference reads on a path: other switches change nothing there."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tidegauge.drive.broker.reference import reference
from tidegauge.drive.contract import Step
from tidegauge.drive.runner.player import PrefixTree
from tidegauge.drive.runner.reference_interface import Reference
from tidegauge.impl.profiles import Profile, recording_reads


class Reached(NamedTuple):
    """The reference's state after some steps, and the switches that were read by then."""

    state: Any
    read: frozenset[str]


def switches_read(
    cases: Sequence[Any], profile: Profile, reference_of: Callable[[Profile], Reference[Any, Any]] = reference
) -> Iterator[frozenset[str]]:
    """Yield the switches that the reference of a contract, by default that of a broker, reads on each of the paths."""
    generation, names = recording_reads(profile)
    generation_reference = reference_of(generation)
    trees: dict[Any, PrefixTree[Reached]] = {}

    # Paths begin with the same steps: a tree takes each of them once.
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
