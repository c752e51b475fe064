"""Decides whether a trace is a behaviour of a graph: the events of one of its paths, whose steps without events are silent.

Rules of this file

1. The graph is an automaton: an edge reads its events, one after the other; an edge without events is silent.
   A trace is accepted if the subset construction still has a state after the last event.
2. A trace may end anywhere, between the events of one edge too: every prefix of a trace is a trace.
3. Events are compared by node, kind and fields; numbers and places of lines do not count.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence

from tidegauge.traces.from_model.behaviour import events_of_step, initial_events
from tidegauge.traces.from_model.views import Label, View
from tidegauge.traces.schema import Event

Position = tuple[int, tuple[int, ...]]
"""A state, or one that is reached once the remaining events of an edge have been read."""


def key(event: Event) -> Hashable:
    """Return what two events must share to be the same."""
    return event.node, event.event, tuple(sorted((name, _plain(value)) for name, value in event.fields.items()))


def _plain(value: object) -> object:
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value


class Language:
    """The traces of a labelled graph."""

    def __init__(
        self, states: Sequence[View], labels: Sequence[Label], edges: Iterable[tuple[int, int, int]], profile: str
    ) -> None:
        self._number: dict[Hashable, int] = {}
        self._edges: list[list[tuple[tuple[int, ...], int]]] = [[] for _ in states]
        for source, label, target in edges:
            reported = events_of_step(states[source], labels[label], states[target], profile)
            self._edges[source].append((self._numbers(reported), target))
        self._initial = initial_events(states[0])
        self._nodes = {event.node for event in self._initial}
        self._registered = next(at for at, event in enumerate(self._initial) if event.event == "ChangePartition")
        self._start = self._numbers(self._initial)
        self._by_first: list[Mapping[int, list[Position]] | None] = [None] * len(states)

    def _numbers(self, events: Iterable[Event]) -> tuple[int, ...]:
        return tuple(self._number.setdefault(key(event), len(self._number)) for event in events)

    def holds(self, events: Sequence[Event]) -> bool:
        """Return whether the events are those of a path, or of the beginning of one.

        Several paths may report the same events, so all positions that the events so far can lead to are kept.
        """
        here = self._silently({(0, self._start)})
        for event in self._begun(events):
            number = self._number.get(key(event))
            if number is None:
                return False
            here = self._silently(self._read(here, number))
            if not here:
                return False
        return True

    def _begun(self, events: Sequence[Event]) -> list[Event]:
        """Return the events with the initial ones first, in the graph's order; a prefix is completed with those it lacks.

        The nodes get into the initial state in one step of the graph. In a trace each of them gets there on its own, but
        takes its role only after the controller has registered the partition.
        """
        own = {node: [at for at, event in enumerate(events) if event.node == node] for node in self._nodes}
        used: list[int] = []
        for expected in self._initial:
            at = own[expected.node].pop(0) if own[expected.node] else len(events)  # the end: not there yet
            # Another first event, or a role before its registration, is no behaviour. Left as they are, the events cannot
            # be read from the initial ones on, so the trace is rejected.
            if at < len(events) and key(events[at]) != key(expected):
                return list(events)
            if expected.event.startswith("Become") and at < used[self._registered]:
                return list(events)
            used.append(at)
        return [*self._initial, *(event for at, event in enumerate(events) if at not in used)]

    def _read(self, here: set[Position], number: int) -> set[Position]:
        """Return the positions after the event of this number."""
        there: set[Position] = set()
        for state, rest in here:
            if rest:
                if rest[0] == number:
                    there.add((state, rest[1:]))
            else:
                there.update(self._from(state).get(number, ()))
        return there

    def _from(self, state: int) -> Mapping[int, list[Position]]:
        """Return the edges of a state that have events, by their first event."""
        known = self._by_first[state]
        if known is None:
            found: dict[int, list[Position]] = {}
            for reported, target in self._edges[state]:
                if reported:
                    found.setdefault(reported[0], []).append((target, reported[1:]))
            known = self._by_first[state] = found
        return known

    def _silently(self, here: set[Position]) -> set[Position]:
        """Return the positions with all those that steps without events lead on to."""
        todo = [state for state, rest in here if not rest]
        seen = set(here)
        while todo:
            for reported, target in self._edges[todo.pop()]:
                if not reported and (target, ()) not in seen:
                    seen.add((target, ()))
                    todo.append(target)
        return seen
