"""The kill matrix: which rule of the judge catches which faulty implementation.

Rules of this file

1. A fault is explored like the right implementation, its graph is walked so that every edge is taken, the traces are judged.
   A fault whose traces all pass has survived, and the suite has failed, not the fault.
2. Bounds grow until a rule fails: most faults show in a graph of a few hundred states.
3. A fault can corrupt a replica so that its state no longer is a state of the model (an epoch cache that its records do not
   imply). Then there is no graph to walk; the implementation's own check that said so is named instead, and told apart.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from conformance.judge import judge
from impl.errors import IllegalStateError
from impl.explore import Bounds, explore
from impl.faults import FAULTS, Fault
from traces.edges import edge_table
from traces.walks import STEPS, draw

SEED = 20_101
GROWING = (Bounds(2, 1, 1, 0), Bounds(2, 1, 1, 1), Bounds(2, 1, 2, 0))


@dataclass(frozen=True)
class Kill:
    """What became of one fault: failing traces per rule, within which bounds, out of how many traces."""

    fault: Fault
    by_rule: Mapping[str, int]
    bounds: Bounds
    traces: int
    refused: str = ""

    @property
    def caught(self) -> bool:
        """Whether some rule failed, or the implementation refused its own state."""
        return bool(self.by_rule) or bool(self.refused)


def kill(fault: Fault, seed: int = SEED) -> Kill:
    """Judge the fault's traces within growing bounds until a rule fails."""
    outcome = Kill(fault, {}, GROWING[0], 0)
    for bounds in _growing(fault):
        try:
            graph = explore(bounds, rules_override=fault.rules)
        except IllegalStateError as refusal:
            return Kill(fault, {}, bounds, 0, refused=str(refusal))
        table = edge_table(graph.states, graph.labels, graph.edges)
        walks = draw(table, 2 * len(graph.edges), STEPS, np.random.default_rng(seed))
        columns = table.columns(walks.edges, walks.lengths)
        judgement = judge(columns, table.config)
        failing = Counter({rule: tally.failed_traces for rule, tally in judgement.tallies.items() if tally.failed})
        outcome = Kill(fault, dict(failing.most_common()), bounds, judgement.traces)
        if outcome.caught:
            return outcome
    return outcome


def kill_all(seed: int = SEED) -> Iterator[Kill]:
    """One fault after the other."""
    return (kill(fault, seed) for fault in FAULTS.values())


def _growing(fault: Fault) -> Iterator[Bounds]:
    yield from GROWING
    if fault.bounds not in GROWING:
        yield fault.bounds
