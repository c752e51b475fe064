"""The traces of a labelled graph as an automaton that reads one event after the other and never has a choice.

Rules of this file

1. A state is the set of places where a behaviour with these events may be: states of the graph, silent steps taken,
   and places between two events of one step. It is the subset construction of validation.acceptance, carried out.
2. A trace may end anywhere, so every state accepts; what a state has no transition for, the specification does not allow.
3. Reading starts after the initial events.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegauge.traces.from_model.behaviour import events_of_step, initial_events
from tidegauge.traces.from_model.views import Label, View
from tidegauge.traces.schema import Event
from validation.partial_traces import NOTHING, Omission
from validation.trace_language import key

Ints = NDArray[np.int64]
EventEdge = tuple[int, int]
"""The number of an event, and the place that it leads to."""


@dataclass(frozen=True)
class Automaton:
    """Transitions of state s are first[s] to first[s + 1]: `symbol` numbers an event of `events`, `target` a state.

    `whole[s]` says whether some behaviour is between two steps there, not between two events of one step.
    """

    initial: tuple[Event, ...]
    events: tuple[Event, ...]
    first: Ints
    symbol: Ints
    target: Ints
    whole: NDArray[np.bool_]
    inside: tuple[tuple[View, ...], ...]
    """The states of the graph in which a behaviour may be there."""

    @property
    def states(self) -> int:
        """How many there are; state 0 is the first."""
        return len(self.first) - 1


class _Places:
    """The places of behaviours: states of the graph, and one after each event of a step but the last.

    A step without events (silent) has no place of its own: its target is reached with its source.
    """

    def __init__(
        self,
        states: Sequence[View],
        labels: Sequence[Label],
        edges: Iterable[tuple[int, int, int]],
        profile: str,
        omission: Omission,
    ) -> None:
        self.events: list[Event] = []
        self._number: dict[Hashable, int] = {}
        self._whole = len(states)
        self._between: dict[tuple[tuple[int, ...], int], int] = {}
        self._steps: list[list[EventEdge]] = [[] for _ in states]
        self._silent: list[list[int]] = [[] for _ in states]
        for source, label, target in edges:
            left = map(omission.left_of, events_of_step(states[source], labels[label], states[target], profile))
            reported = tuple(self._numbered(event) for event in left if event is not None)
            if reported:
                self._steps[source].append((reported[0], self._place(reported[1:], target)))
            else:
                self._silent[source].append(target)

    def _numbered(self, event: Event) -> int:
        number = self._number.setdefault(key(event), len(self.events))
        if number == len(self.events):
            self.events.append(event)
        return number

    def _place(self, rest: tuple[int, ...], target: int) -> int:
        if not rest:
            return target
        # Steps with the same remaining events to the same state share their places: else there were one set per edge.
        place = self._between.get((rest, target))
        if place is None:
            place = self._between[rest, target] = len(self._steps)
            self._steps.append([])
            self._silent.append([])
            self._steps[place].append((rest[0], self._place(rest[1:], target)))
        return place

    def silently(self, places: Iterable[int]) -> frozenset[int]:
        """Return the places, and those that steps without events lead to."""
        seen = set(places)
        todo = list(seen)
        while todo:
            for target in self._silent[todo.pop()]:
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        return frozenset(seen)

    def next_events(self, places: Iterable[int]) -> dict[int, set[int]]:
        """Return the events that may come next, with the places that each leads to."""
        targets: dict[int, set[int]] = {}
        for place in places:
            for number, target in self._steps[place]:
                targets.setdefault(number, set()).add(target)
        return targets

    def between_steps(self, places: Iterable[int]) -> bool:
        """Return whether one of the places is a state of the graph."""
        return any(place < self._whole for place in places)


def automaton(
    states: Sequence[View],
    labels: Sequence[Label],
    edges: Iterable[tuple[int, int, int]],
    profile: str,
    omission: Omission = NOTHING,
) -> Automaton:
    """Return the automaton of a graph; `edges` are (source, index of the label, target), states[0] is initial.

    `omission`: what its events lack.
    """
    places = _Places(states, labels, edges, profile, omission)
    subsets = [places.silently({0})]
    number = {subsets[0]: 0}
    first, symbol, target = [0], [], []
    for subset in subsets:  # grows while it is read
        for event, there in sorted(places.next_events(subset).items()):
            reached = places.silently(there)
            at = number.setdefault(reached, len(subsets))
            if at == len(subsets):
                subsets.append(reached)
            symbol.append(event)
            target.append(at)
        first.append(len(symbol))
    return Automaton(
        tuple(left for event in initial_events(states[0]) if (left := omission.left_of(event)) is not None),
        tuple(places.events),
        np.array(first, np.int64),
        np.array(symbol, np.int64),
        np.array(target, np.int64),
        np.array([places.between_steps(subset) for subset in subsets]),
        tuple(tuple(states[place] for place in sorted(subset) if place < len(states)) for subset in subsets),
    )
