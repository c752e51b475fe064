"""The kill matrix on traces: which rule of the judge catches which faulty implementation.

Rules of this file

1. A fault is explored like the right implementation, its graph is walked so that every edge is taken, the traces are judged.
   It is caught where a rule fails on a walk that the right implementation cannot take up to there. A fault that does what
   the right implementation never does, and that no rule catches, has survived: the suite has failed.
2. Bounds grow until a rule fails: most faults show in a graph of a few hundred states. One that shows elsewhere names its
   own bounds (`Fault.shown`), and those are the only ones.
3. A fault whose graph is the right one within all bounds has shown nothing. It is reported separately, and is no kill.
4. A fault can corrupt a replica so that its state no longer is a state of the model (an epoch cache that its records do not
   imply). Then there is no graph to walk; the report names the check of the implementation that refused it.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, partial

import numpy as np

from tidegauge.conformance.engine.compiled import compiled
from tidegauge.conformance.engine.judge import judge
from tidegauge.impl.errors import IllegalStateError
from tidegauge.impl.explorer.explore import Bounds, Graph, Walker, explore
from tidegauge.impl.explorer.faults import FAULTS, Fault, RevealingModel
from tidegauge.impl.profiles import Rules
from tidegauge.impl.releases import profile_named
from tidegauge.traces.from_model.walks import STEPS, EdgeTable, draw, edge_table
from tidegauge.util.workers import DEFAULT_SEED, workers

GROWING = (Bounds(2, 1, 1, 0), Bounds(2, 1, 1, 1), Bounds(2, 2, 1, 0), Bounds(2, 1, 2, 0), Bounds(2, 2, 1, 1))
"""Brokers, records, leader epochs after the first, crashes."""


class Fate(Enum):
    """What became of a fault."""

    CAUGHT = "caught"
    REFUSED = "refused by the implementation itself"
    SHOWS_NOTHING = "not shown within these bounds"
    SURVIVED = "SURVIVED"


@dataclass(frozen=True)
class Judged:
    """The fate of one wrong implementation, and within which bounds; `traces` were judged.

    `by_rule` counts failing traces, most first; `exercised` are the rules that were checked at all; `says` is the refusal.
    """

    fate: Fate
    by_rule: Mapping[str, int]
    bounds: Bounds
    traces: int
    says: str = ""
    exercised: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Kill:
    """A fault and its fate."""

    fault: Fault
    judged: Judged


def kill(fault: Fault, seed: int = DEFAULT_SEED) -> Kill:
    """Judge the fault's traces within its own bounds, or growing ones; `seed` is that of the walks."""
    return Kill(fault, judged_within(shown_in(fault), fault.rules, seed=seed))


def kill_all(seed: int = DEFAULT_SEED) -> Iterator[Kill]:
    """Yield the kill of every fault, in the order of the table; works on all cores."""
    compiled()  # once, before several processes would each do it
    with workers(os.cpu_count() or 1) as side_by_side:
        for fault, judged in zip(FAULTS.values(), side_by_side(partial(_judged_fault, seed=seed), FAULTS), strict=True):
            yield Kill(fault, judged)


def _judged_fault(name: str, seed: int) -> Judged:
    """Return what became of the fault of that name: in a worker process, which is given names."""
    return kill(FAULTS[name], seed).judged


def shown_in(fault: Fault) -> tuple[RevealingModel, ...]:
    """Return the models in which to look for a fault, one after the other (rule 2)."""
    return (fault.shown,) if fault.shown is not None else tuple(map(RevealingModel, GROWING))


def judged_within(
    places: Sequence[RevealingModel],
    rules: Rules,
    switches: Mapping[str, bool | str] | None = None,
    seed: int = DEFAULT_SEED,
) -> Judged:
    """Judge the traces of wrong `rules`, or of `switches` that are set otherwise, in one model after the other.

    Each model judges them by its own profile, which is right. Stop at the first model in which a rule fails.
    """
    outcome = Judged(Fate.SHOWS_NOTHING, {}, places[-1].bounds, traces=0)
    for place in places:
        wrong_profile = profile_named(place.profile).switched(switches or {})
        try:
            graph = explore(place.bounds, wrong_profile, rules)
        # The fault made a state that the implementation refuses (rule 4).
        except IllegalStateError as refusal:
            return Judged(Fate.REFUSED, {}, place.bounds, traces=0, says=str(refusal))
        judged = _judged(place, graph, seed)
        if judged.fate is Fate.CAUGHT:
            return judged
        # Another graph than the right one: the fault shows, and has survived so far. Equality is enough, because states,
        # labels and transitions come in an order that only the rules decide.
        if graph != _right_graph(place):
            outcome = judged
    return outcome


def _judged(place: RevealingModel, graph: Graph, seed: int) -> Judged:
    """Judge walks over every edge of a faulty graph; a failure that the right implementation has too is no kill.

    `Walks` has the edges of all walks one after the other, and how many edges each has. An EdgeTable has the events of an
    edge as rows from `first_row[edge]` on, up to those of the next edge.
    """
    table = edge_table(graph.states, graph.labels, graph.edges, place.profile)
    walks = draw(table, 2 * len(graph.edges), STEPS, np.random.default_rng(seed))  # every second walk aims at an edge
    config = replace(table.config, min_isr=place.bounds.min_insync_replicas)
    judgement = judge(table.distinct(walks.edges, walks.lengths), config)
    failing = Counter({rule: tally.failed_traces for rule, tally in judgement.tallies.items() if tally.failed})
    exercised = frozenset(rule for rule, tally in judgement.tallies.items() if tally.held or tally.failed)
    # An edge of a walk stands for some events: from the row of a failure follows the edge at which the walk fails.
    first_edge = np.cumsum(walks.lengths) - walks.lengths + 1  # by walk, after the pseudo edge of the initial state
    events_upto = np.cumsum(np.diff(table.first_row)[walks.edges])  # by edge, the events of all edges up to its end
    end_of = {failure: np.searchsorted(events_upto, failure.row, side="right") + 1 for failure in judgement.failures}
    # A rule of the judge may fail on the right implementation too, where a profile is known to be faulty: that is no kill.
    failed_walks = (walks.edges[first_edge[failure.trace] : end].tolist() for failure, end in end_of.items())
    fate = Fate.SURVIVED if all(_right_takes(place, graph, table, walk) for walk in failed_walks) else Fate.CAUGHT
    return Judged(fate, dict(failing.most_common()), place.bounds, judgement.traces, exercised=exercised)


def _right_takes(place: RevealingModel, graph: Graph, table: EdgeTable, walk: Sequence[int]) -> bool:
    """Return whether the right implementation can take the walk over these edges of the faulty graph."""
    walker = _walker(place)
    cluster = walker.start
    for edge in walk:
        # The edge's label and the view of its target: the same step is one with both.
        step = (table.labels[table.label_of[edge]], graph.states[table.target[edge]])
        after = next((state for label, state in walker.successors(cluster) if (label, walker.view(state)) == step), None)
        if after is None:
            return False
        cluster = after
    return True


@cache
def _walker(place: RevealingModel) -> Walker:
    """Return what takes single steps of the right implementation within a model's bounds."""
    return Walker(place.bounds, place.profile)


@cache
def _right_graph(place: RevealingModel) -> Graph:
    """Return the graph of the right implementation within a model's bounds."""
    return explore(place.bounds, place.profile)
