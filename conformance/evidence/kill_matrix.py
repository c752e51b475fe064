"""The kill matrix: which rule of the judge catches which faulty implementation.

Rules of this file

1. A fault is explored like the right implementation, its graph is walked so that every edge is taken, the traces are judged.
   A fault that does what the right implementation never does, and whose traces all pass, has survived: the suite has failed.
2. Bounds grow until a rule fails: most faults show in a graph of a few hundred states. One that needs log starts that move
   has bounds of its own.
3. A fault whose graph is the right one within all bounds has shown nothing. It is told apart, and is no kill.
4. A fault can corrupt a replica so that its state no longer is a state of the model (an epoch cache that its records do not
   imply). Then there is no graph to walk; the implementation's own check that said so is named instead.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache

import numpy as np

from tidegauge.conformance.judging.judge import judge
from tidegauge.conformance.judging.progress import SEED
from tidegauge.impl.errors import IllegalStateError
from tidegauge.impl.explored.explore import Bounds, Graph, explore
from tidegauge.impl.explored.faults import FAULTS, Fault
from tidegauge.traces.model.edges import edge_table
from tidegauge.traces.model.walks import STEPS, draw

GROWING = (Bounds(2, 1, 1, 0), Bounds(2, 1, 1, 1), Bounds(2, 1, 2, 0), Bounds(2, 2, 1, 1))


class Fate(Enum):
    """What became of a fault."""

    CAUGHT = "caught"
    REFUSED = "refused by the implementation itself"
    SHOWS_NOTHING = "not shown within these bounds"
    SURVIVED = "SURVIVED"


@dataclass(frozen=True)
class Kill:
    """The fate of one fault; `by_rule` counts failing traces, most first."""

    fault: Fault
    fate: Fate
    by_rule: Mapping[str, int]
    bounds: Bounds
    traces: int
    says: str = ""


def kill(fault: Fault, seed: int = SEED) -> Kill:
    """Judge the fault's traces within growing bounds until a rule fails."""
    outcome = Kill(fault, Fate.SHOWS_NOTHING, {}, GROWING[-1], 0)
    for bounds in (fault.bounds,) if fault.bounds.max_start else GROWING:
        try:
            graph = explore(bounds, rules_override=fault.rules)
        except IllegalStateError as refusal:
            return Kill(fault, Fate.REFUSED, {}, bounds, 0, str(refusal))
        if graph == _right(bounds):  # states, labels and transitions come in an order that the rules alone decide
            continue
        outcome = _judged(fault, bounds, graph, seed)
        if outcome.fate is Fate.CAUGHT:
            return outcome
    return outcome


def kill_all(seed: int = SEED) -> Iterator[Kill]:
    """One fault after the other."""
    return (kill(fault, seed) for fault in FAULTS.values())


def _judged(fault: Fault, bounds: Bounds, graph: Graph, seed: int) -> Kill:
    table = edge_table(graph.states, graph.labels, graph.edges)
    walks = draw(table, 2 * len(graph.edges), STEPS, np.random.default_rng(seed))
    judgement = judge(table.columns(walks.edges, walks.lengths), table.config)
    failing = Counter({rule: tally.failed_traces for rule, tally in judgement.tallies.items() if tally.failed})
    fate = Fate.CAUGHT if failing else Fate.SURVIVED
    return Kill(fault, fate, dict(failing.most_common()), bounds, judgement.traces)


@cache
def _right(bounds: Bounds) -> Graph:
    return explore(bounds)
