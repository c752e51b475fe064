"""Parquet to judge: walks of a model, and of the same with a seeded fault."""

from pathlib import Path

from tidegauge.impl.explorer.explore import explore
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.traces.from_model.walks import edge_table, generate


def right_and_wrong(folder: Path, walks: int) -> None:
    """Write right.parquet and wrong.parquet, so many walks each."""
    fault = FAULTS["hw-is-own-log-end"]
    for name, rules in (("right", None), ("wrong", fault.rules)):
        graph = explore(fault.bounds, rules_override=rules)
        generate(edge_table(graph.states, graph.labels, graph.edges), folder / f"{name}.parquet", walks, seed=1)
