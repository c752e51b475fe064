"""Breadth-first exploration of the implementation, and walks through its states.

A state is a `Cluster`, a label is (action, arguments), a *view* is a state as TLC prints it. To *intern* a value is to take
one object in place of all equal ones: interned values are equal if and only if they are the same object.

Rules of this file

1. What is explored is impl.cluster.cluster, with the real log, partition, fetcher and controller; there is no second
   protocol.
2. Most steps touch one broker, so few distinct (broker, input) pairs occur. Each is computed once: values are interned,
   and a function of a broker called twice with the same objects is not run again.
3. Order is that of impl.cluster.cluster: the same bounds give the same states in the same order.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any

from tidegauge.impl.cluster.broker import Broker
from tidegauge.impl.cluster.cluster import (
    Bounds,
    Caller,
    Cluster,
    Finder,
    Label,
    NetworkRow,
    Transition,
    apply,
    initial,
    successors,
    transitions_of,
)
from tidegauge.impl.explorer.invariants import INVARIANTS, OF_ONE, SHARED, read_of, violated
from tidegauge.impl.explorer.search import Counterexample, Graph, Search, View, Violation
from tidegauge.impl.explorer.spec_view import broker_view, controller_view, view, view_of_parts
from tidegauge.impl.profiles import FETCH_TRUNCATION, ModelProfile, Rules
from tidegauge.impl.releases import names_brokers, profile_named, profiles_named
from tidegauge.util.errors import UsageError


class Memo(Caller):
    """Remembers what local functions returned, and keeps one object per value."""

    def __init__(self) -> None:
        self._interned: dict[Any, Any] = {}
        self._results: dict[tuple[Any, ...], tuple[tuple[Any, ...], Any]] = {}

    def intern(self, value: Any) -> Any:
        """Return the one object that stands for all values equal to this one and of its type."""
        return self._interned.setdefault((type(value), value), value)

    def _remembered(self, function: Callable[..., Any], args: tuple[Any, ...], intern: Callable[[Any], Any]) -> Any:
        """Return the result of a function of interned arguments, computed once; `intern` interns the result."""
        key = (function, *map(id, args))
        if (arguments_and_result := self._results.get(key)) is None:
            # The arguments are kept with the result: an id is only unique while its object lives.
            arguments_and_result = self._results[key] = (args, intern(function(*args)))
        _, result = arguments_and_result
        return result

    def transitions(self, function: Callable[..., tuple[Transition, ...]], *args: Any) -> tuple[Transition, ...]:
        """Return the transitions that `function` finds, interned."""
        transitions: tuple[Transition, ...] = self._remembered(function, args, self._intern_transitions)
        return transitions

    def row(self, function: Callable[..., NetworkRow], *args: Any) -> NetworkRow:
        """Return the row that `function` builds, interned."""
        row: NetworkRow = self._remembered(function, args, self._intern_row)
        return row

    def value(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return the result of `function`, interned."""
        return self._remembered(function, args, self.intern)

    def _intern_row(self, row: NetworkRow) -> NetworkRow:
        """Return a row interned, with interned messages."""
        interned: NetworkRow = self.intern(tuple(self.intern(message) for message in row))
        return interned

    def _intern_transitions(self, transitions: tuple[Transition, ...]) -> tuple[Transition, ...]:
        """Return the transitions with interned parts: a state that one leads to consists of interned parts again."""
        return tuple(
            transition._replace(
                label=self.intern(transition.label),
                broker=self.intern(transition.broker),
                row=None if transition.row is None else self._intern_row(transition.row),
                controller=self.intern(transition.controller),
                exposed=self.intern(transition.exposed),
                response=self.intern(transition.response),
                copies=None if transition.copies is None else self._intern_row(transition.copies),
                waiting=self.intern(transition.waiting),
            )
            for transition in transitions
        )

    def cluster(self, cluster: Cluster) -> Cluster:
        """Return an equal cluster made of interned parts, for which `transitions`, `row` and `value` can be used."""
        return cluster._replace(
            brokers=tuple(self.intern(broker) for broker in cluster.brokers),
            network=tuple(self._intern_row(row) for row in cluster.network),
            controller=self.intern(cluster.controller),
            committed=self.intern(cluster.committed),
            copies=tuple(self._intern_row(row) for row in cluster.copies),
            waiting=tuple(self.intern(ends) for ends in cluster.waiting),
        )

    def view(self, cluster: Cluster) -> View:
        """Return the view of a cluster, as impl.explorer.spec_view:view does; the part of each broker is remembered."""
        model = cluster.model
        brokers = tuple(
            self.value(broker_view, model, broker, row) for broker, row in zip(cluster.brokers, cluster.network, strict=True)
        )
        return view_of_parts(brokers, self.value(controller_view, cluster.controller), cluster)


class Walker:
    """Successors of one model's states, remembered: for walks and anything else that takes many steps."""

    def __init__(self, bounds: Bounds, profile: ModelProfile | str = FETCH_TRUNCATION, rules: Rules | None = None) -> None:
        """Begin at the initial state within these bounds; `rules` replaces rules by wrong ones (a fault)."""
        self._memo = Memo()
        self.start = self._memo.cluster(initial(bounds, as_profile(profile, bounds.brokers), rules))
        self._violations: dict[tuple[Hashable, ...], Violation | None] = {}
        """By those parts of a state that an invariant reads (see `violation`)."""
        self._alone: dict[tuple[Hashable, ...], bool] = {}
        """Whether a broker breaks no invariant by itself, by what invariants read of it (see `_holds_alone`)."""

    def successors(self, cluster: Cluster) -> list[tuple[Label, Cluster]]:
        """Return every enabled label with the state it leads to; `cluster` must come from this walker."""
        return list(successors(cluster, self._memo))

    def transitions(self, cluster: Cluster) -> list[Transition]:
        """Return every enabled transition, for `take`."""
        return [transition for group in transitions_of(cluster, self._memo) for transition in group]

    def found_by(self, finder: Finder) -> tuple[Transition, ...]:
        """Return the transitions that a finder (function and arguments) finds in a state of this walker, for `take`."""
        function, *arguments = finder
        return self._memo.transitions(function, *arguments)

    def take(self, cluster: Cluster, transition: Transition) -> Cluster:
        """Return the state after a transition of `transitions(cluster)`."""
        return apply(cluster, transition, self._memo)

    def violation(self, cluster: Cluster) -> Violation | None:
        """Return the violation of the first invariant that does not hold in a state of this walker, None if all hold."""
        # Most steps change nothing that an invariant reads, so results are remembered by the ids of what they read. The memo
        # keeps each part alive, so no other value gets its id.
        parts = [self._memo.value(read_of, broker) for broker in cluster.brokers]
        key = (*map(id, parts), id(cluster.controller), id(cluster.committed), cluster.deleted, cluster.acked)
        if key not in self._violations:
            each_holds_alone = all(
                self._holds_alone(cluster, broker, part) for broker, part in zip(cluster.brokers, parts, strict=True)
            )
            # Invariants of one broker are remembered by broker, those that compare brokers (SHARED) are not. Where one of
            # the former fails, all are evaluated, since the first of the list is to be returned.
            self._violations[key] = violated(cluster, SHARED if each_holds_alone else tuple(INVARIANTS))
        return self._violations[key]

    def _holds_alone(self, cluster: Cluster, broker: Broker, part: Hashable) -> bool:
        """Return whether a broker breaks no invariant by itself; `part` is the interned value that invariants read of it."""
        key = id(part), cluster.deleted
        if key not in self._alone:
            self._alone[key] = violated(cluster._replace(brokers=(broker,)), OF_ONE) is None
        return self._alone[key]

    def view(self, cluster: Cluster) -> View:
        """Return the view of a state of this walker."""
        return self._memo.view(cluster)


def as_profile(profile: ModelProfile | str, brokers: int) -> ModelProfile:
    """Return the profile or profiles of a model with so many brokers: `profile` itself, or what its name stands for.

    In a name such as 1=3.9.1,2=4.3.1 broker 1 is the first.
    """
    if isinstance(profile, str):
        return profiles_named(profile, range(1, brokers + 1)) if names_brokers(profile) else profile_named(profile)
    return profile


def _key(cluster: Cluster) -> tuple[Hashable, ...]:
    """Return what identifies a state of interned parts: ids, which are compared faster than the parts.

    The model is the same in all states of a search.
    """
    return (
        *map(id, cluster.brokers),
        *map(id, cluster.network),
        id(cluster.controller),
        id(cluster.committed),
        cluster.crashes,
        *map(id, cluster.copies),
        cluster.duplicates,
        cluster.lost_disks,
        cluster.deleted,
        *cluster.waiting,
        cluster.acked,
    )


def _search(start: Cluster, memo: Memo) -> Search[Cluster]:
    """Return a search from `start` that computes and remembers with `memo`."""
    return Search(memo.cluster(start), partial(successors, call=memo), _key)


def explore(bounds: Bounds, profile: ModelProfile | str = FETCH_TRUNCATION, rules_override: Rules | None = None) -> Graph:
    """Return the whole labelled graph within the bounds. `rules_override` replaces rules by wrong ones (a fault).

    Duplicates and lost disks, which the specification does not have, must not be in the bounds.
    """
    return explore_from(initial(bounds, as_profile(profile, bounds.brokers), rules_override))


def explore_from(start: Cluster) -> Graph:
    """Return the whole labelled graph from any state, under the model that the state carries.

    Raises UsageError for bounds whose faults a view does not show, so that different states would have the same view.
    """
    bounds = start.model.bounds
    if bounds.max_duplicates or bounds.max_lost_disks:
        raise UsageError(
            "explore: expected no duplicates or lost disks, seen a bound for them; views do not show them: use "
            "find_violation, or walk"
        )
    memo = Memo()
    return _search(start, memo).graph(memo.view)


def transitions_from(start: Cluster) -> Iterator[tuple[Cluster, Label, Cluster, bool]]:
    """Yield every transition reachable from `start` as (source, label, target, whether the target is new)."""
    search = _search(start, Memo())
    for source, label, target, new in search.transitions():
        yield search.states[source], label, search.states[target], new


def find_violation(
    bounds: Bounds,
    profile: ModelProfile | str = FETCH_TRUNCATION,
    rules_override: Rules | None = None,
    invariants: Sequence[str] = tuple(INVARIANTS),
    max_states: int | None = None,
) -> Counterexample[Cluster] | None:
    """Return a shortest run to a state where one of the named invariants fails, None when all hold everywhere.

    `rules_override` replaces rules by wrong ones (a fault).
    `max_states` ends the search with a UsageError rather than a result: an unfinished search has not shown anything.
    """
    search = _search(initial(bounds, as_profile(profile, bounds.brokers), rules_override), Memo())
    return search.first_violation(partial(violated, names=tuple(invariants)), max_states)


__all__ = [
    "Bounds",
    "Counterexample",
    "Graph",
    "Walker",
    "explore",
    "explore_from",
    "find_violation",
    "transitions_from",
    "view",
]
