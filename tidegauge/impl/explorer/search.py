"""Breadth-first search over states that are values: what every explored system shares.

Rules of this file

1. States are numbered in the order they are found: the same start and the same order of steps give the same search.
2. `key` decides which states are equal. The explored system defines it, as it defines its steps.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from tidegauge.impl.cluster.transitions import Label
from tidegauge.util.errors import UsageError

StateT = TypeVar("StateT")

View = tuple[Any, ...]
"""A state as nested tuples of ints, as TLC prints it."""


class Violation(NamedTuple):
    """A broken invariant: its name, the brokers concerned, the values expected and those seen."""

    invariant: str
    brokers: tuple[int, ...]
    expected: tuple[int, ...]
    seen: tuple[int, ...]


class Graph(NamedTuple):
    """All reachable states and labelled transitions. Edges are (source, index into labels, target)."""

    states: list[View]
    labels: list[Label]
    edges: list[tuple[int, int, int]]
    depth: int


class Counterexample(NamedTuple, Generic[StateT]):
    """A shortest path from the initial state to a violation: n labels, n + 1 states."""

    violation: Violation
    labels: tuple[Label, ...]
    states: tuple[StateT, ...]


class Search(Generic[StateT]):
    """A breadth-first search. `steps` yields each enabled label with its state; `key`: equal keys are equal states."""

    def __init__(
        self, start: StateT, steps: Callable[[StateT], Iterable[tuple[Label, StateT]]], key: Callable[[StateT], Hashable]
    ) -> None:
        """Begin at `start`; states with an equal `key` are one."""
        self.states = [start]
        self.depth = 1
        self._steps = steps
        self._key = key
        # The index of each state, by its key; and, by index, the state and label through which it was found first.
        self._number = {key(start): 0}
        self._came_from: list[tuple[int, Label] | None] = [None]

    def transitions(self) -> Iterator[tuple[int, Label, int, bool]]:
        """Run the search: yield each transition as (source, label, target, whether the target is new).

        Source and target are indexes into `states`. To be run once, to its end or as far as is needed.
        """
        states, number, key = self.states, self._number, self._key
        source, level_ends = 0, 1
        while source < len(states):
            # All states before this one are a step nearer to the start: breadth first, so runs are shortest.
            if source == level_ends:
                self.depth += 1
                level_ends = len(states)
            for label, after in self._steps(states[source]):
                state_key = key(after)
                target = number.get(state_key)
                new = target is None
                if target is None:
                    target = number[state_key] = len(states)
                    states.append(after)
                    self._came_from.append((source, label))
                yield source, label, target, new
            source += 1

    def graph(self, view: Callable[[StateT], View]) -> Graph:
        """Return all states that can be reached, as views, with their transitions. `view` makes the view of a state."""
        labels: dict[Label, int] = {}
        edges = [(source, labels.setdefault(label, len(labels)), target) for source, label, target, _ in self.transitions()]
        return Graph([view(state) for state in self.states], list(labels), edges, self.depth)

    def first_violation(
        self, check: Callable[[StateT], Violation | None], max_states: int | None = None
    ) -> Counterexample[StateT] | None:
        """Return a shortest run to a state that `check` objects to, None when it never does.

        `max_states` ends the search with a UsageError rather than a result: an unfinished search has not shown anything.
        """
        violation = check(self.states[0])
        if violation is not None:
            return Counterexample(violation, (), (self.states[0],))
        for _, _, target, new in self.transitions():
            if not new:
                continue
            violation = check(self.states[target])
            if violation is not None:
                return self._run_to(violation, target)
            if max_states is not None and target >= max_states:
                raise UsageError(f"search: expected to end within {max_states} states; seen more; raise max_states")
        return None

    def _run_to(self, violation: Violation, target: int) -> Counterexample[StateT]:
        """Return the shortest run from the start to the state with index `target`, by walking back."""
        labels: list[Label] = []
        numbers = [target]
        step = self._came_from[target]
        while step is not None:
            source, label = step
            numbers.append(source)
            labels.append(label)
            step = self._came_from[source]
        return Counterexample(violation, tuple(reversed(labels)), tuple(self.states[n] for n in reversed(numbers)))
