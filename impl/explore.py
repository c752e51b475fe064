"""Breadth-first exploration of the implementation.

Rules of this file

1. What is explored is impl.cluster, with the real log, partition, fetcher and controller; there is no second protocol.
2. Most moves touch one broker, so few distinct (broker, input) pairs occur. Each is computed once: values are interned,
   and a local function called twice with the same objects is not run again.
3. Order is that of impl.cluster: the same bounds give the same states in the same order.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from impl.cluster import Bounds, Caller, Cluster, Label, Move, Row, apply, initial, moves_of, successors
from impl.errors import UsageError
from impl.invariants import INVARIANTS, Violation
from impl.profiles import FETCH_TRUNCATION, Profile, Rules, named
from impl.view import View, broker_view, controller_view, view


class Memo(Caller):
    """Remembers what local functions returned, and keeps one object per value."""

    def __init__(self) -> None:
        self._same: dict[Any, Any] = {}
        self._known: dict[tuple[Any, ...], tuple[tuple[Any, ...], Any]] = {}

    def intern(self, value: Any) -> Any:
        """The one object that stands for this value. A bool or int is its own."""
        return self._same.setdefault((type(value), value), value)

    def _remembered(self, function: Callable[..., Any], args: tuple[Any, ...], keep: Callable[[Any], Any]) -> Any:
        key = (function, *map(id, args))
        known = self._known.get(key)
        if known is None:
            # The arguments are kept with the result: an id is only unique while its object lives.
            known = self._known[key] = (args, keep(function(*args)))
        return known[1]

    def moves(self, function: Callable[..., tuple[Move, ...]], *args: Any) -> tuple[Move, ...]:
        """The moves `function` finds, interned."""
        found: tuple[Move, ...] = self._remembered(function, args, self._interned)
        return found

    def row(self, function: Callable[..., Row], *args: Any) -> Row:
        """The row `function` builds, interned."""
        found: Row = self._remembered(function, args, self._interned_row)
        return found

    def value(self, function: Callable[..., Any], *args: Any) -> Any:
        """What `function` returns, interned."""
        return self._remembered(function, args, self.intern)

    def _interned_row(self, row: Row) -> Row:
        kept: Row = self.intern(tuple(self.intern(message) for message in row))
        return kept

    def _interned(self, moves: tuple[Move, ...]) -> tuple[Move, ...]:
        return tuple(
            move._replace(
                label=self.intern(move.label),
                broker=self.intern(move.broker),
                row=None if move.row is None else self._interned_row(move.row),
                controller=self.intern(move.controller),
                exposed=self.intern(move.exposed),
                answer=self.intern(move.answer),
                copies=None if move.copies is None else self._interned_row(move.copies),
                waiting=self.intern(move.waiting),
            )
            for move in moves
        )

    def cluster(self, cluster: Cluster) -> Cluster:
        """The same cluster made of interned parts."""
        return cluster._replace(
            brokers=tuple(self.intern(broker) for broker in cluster.brokers),
            network=tuple(self._interned_row(row) for row in cluster.network),
            controller=self.intern(cluster.controller),
            committed=self.intern(cluster.committed),
            copies=tuple(self._interned_row(row) for row in cluster.copies),
            waiting=tuple(self.intern(ends) for ends in cluster.waiting),
        )

    def view(self, cluster: Cluster) -> View:
        """impl.view, remembered per broker."""
        setup = cluster.model.setup
        brokers = tuple(
            self.value(broker_view, setup, broker, row) for broker, row in zip(cluster.brokers, cluster.network, strict=True)
        )
        return brokers, self.value(controller_view, cluster.controller), cluster.committed, cluster.crashes


class Walker:
    """Successors of one model's states, remembered: for walks and anything else that takes many steps."""

    def __init__(self, bounds: Bounds, profile: Profile | str = FETCH_TRUNCATION, rules: Rules | None = None) -> None:
        self._memo = Memo()
        self.start = self._memo.cluster(initial(bounds, as_profile(profile), rules))

    def successors(self, cluster: Cluster) -> list[tuple[Label, Cluster]]:
        """Every enabled label with the state it leads to; `cluster` must come from this walker."""
        return list(successors(cluster, self._memo))

    def moves(self, cluster: Cluster) -> list[Move]:
        """Every enabled move; `take` one of them."""
        return [move for group in moves_of(cluster, self._memo) for move in group]

    def take(self, cluster: Cluster, move: Move) -> Cluster:
        """The state after a move of `moves(cluster)`."""
        return apply(cluster, move, self._memo)

    def view(self, cluster: Cluster) -> View:
        """impl.view of a state of this walker."""
        return self._memo.view(cluster)


def as_profile(profile: Profile | str) -> Profile:
    """A profile, or the one of that name."""
    return named(profile) if isinstance(profile, str) else profile


class Graph(NamedTuple):
    """All reachable states and labelled transitions. Edges are (source, index into labels, target)."""

    states: list[View]
    labels: list[Label]
    edges: list[tuple[int, int, int]]
    depth: int


class Found(NamedTuple):
    """A shortest path from the initial state to a violation: n labels, n + 1 states."""

    violation: Violation
    labels: tuple[Label, ...]
    states: tuple[Cluster, ...]


def _key(cluster: Cluster) -> tuple[Hashable, ...]:
    return (
        *map(id, cluster.brokers),
        *map(id, cluster.network),
        id(cluster.controller),
        id(cluster.committed),
        cluster.crashes,
        *map(id, cluster.copies),
        cluster.duplicates,
        cluster.lost_disks,
        *cluster.waiting,
    )


class _Search:
    """Breadth-first, one level at a time; states are numbered in the order they are found."""

    def __init__(self, start: Cluster, memo: Memo) -> None:
        self.memo = memo
        self.states = [start]
        self.depth = 1
        self._number = {_key(start): 0}

    def transitions(self) -> Iterator[tuple[int, Label, int, bool]]:
        """(source, label, target, whether the target is new)."""
        states, number, memo = self.states, self._number, self.memo
        source, level_ends = 0, 1
        while source < len(states):
            if source == level_ends:
                self.depth += 1
                level_ends = len(states)
            cluster = states[source]
            for group in moves_of(cluster, memo):
                for move in group:
                    after = apply(cluster, move, memo)
                    key = _key(after)
                    target = number.get(key)
                    new = target is None
                    if target is None:
                        target = number[key] = len(states)
                        states.append(after)
                    yield source, move.label, target, new
            source += 1


def explore(bounds: Bounds, profile: Profile | str = FETCH_TRUNCATION, rules_override: Rules | None = None) -> Graph:
    """The whole labelled graph within the bounds, which must be those of the specification: a view shows nothing else."""
    return explore_from(initial(bounds, as_profile(profile), rules_override))


def explore_from(start: Cluster) -> Graph:
    """The same from any state, under the model it carries."""
    bounds = start.model.bounds
    if bounds.max_duplicates or bounds.max_lost_disks or bounds.max_waiting:
        raise UsageError(
            "explore: expected no duplicates, lost disks or clients, seen a bound for them; views do not show them: use "
            "find_violation, or walk"
        )
    memo = Memo()
    search = _Search(memo.cluster(start), memo)
    labels: dict[Label, int] = {}
    edges = [(source, labels.setdefault(label, len(labels)), target) for source, label, target, _ in search.transitions()]
    return Graph([memo.view(cluster) for cluster in search.states], list(labels), edges, search.depth)


def find_violation(
    bounds: Bounds,
    profile: Profile | str = FETCH_TRUNCATION,
    rules_override: Rules | None = None,
    invariants: Sequence[str] = tuple(INVARIANTS),
    max_states: int | None = None,
) -> Found | None:
    """A shortest run to a state where one of the named invariants fails, None when all hold everywhere.

    `max_states` stops the search with a UsageError rather than an answer: an unfinished search has not shown anything.
    """
    memo = Memo()
    start = memo.cluster(initial(bounds, as_profile(profile), rules_override))
    checks = [INVARIANTS[name] for name in invariants]
    search = _Search(start, memo)
    came_from: list[tuple[int, Label] | None] = [None]
    violation = _first_violation(checks, start)
    if violation is not None:
        return Found(violation, (), (start,))
    for source, label, target, new in search.transitions():
        if not new:
            continue
        came_from.append((source, label))
        violation = _first_violation(checks, search.states[target])
        if violation is not None:
            return _path(violation, search.states, came_from, target)
        if max_states is not None and target >= max_states:
            raise UsageError(f"search: expected to end within {max_states} states; seen more; raise max_states")
    return None


def _first_violation(checks: Sequence[Callable[[Cluster], Violation | None]], cluster: Cluster) -> Violation | None:
    for check in checks:
        violation = check(cluster)
        if violation is not None:
            return violation
    return None


def _path(violation: Violation, states: list[Cluster], came_from: list[tuple[int, Label] | None], target: int) -> Found:
    labels: list[Label] = []
    numbers = [target]
    step = came_from[target]
    while step is not None:
        numbers.append(step[0])
        labels.append(step[1])
        step = came_from[step[0]]
    return Found(violation, tuple(reversed(labels)), tuple(states[n] for n in reversed(numbers)))


__all__ = ["Bounds", "Found", "Graph", "Walker", "explore", "explore_from", "find_violation", "view"]
