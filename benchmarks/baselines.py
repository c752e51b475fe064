"""What several benchmarks time: the judge over Parquet, a copy of the columns it reads, TLC's batched trace validation.

Rule of this file: a run that does less than it was given, or finds right runs wrong, ends the benchmark.
"""

import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.measure import Point, Report, Timing
from tidegauge.conformance.engine.adaptive_judge import LOAD_FROM, AdaptiveJudge
from tidegauge.impl.explorer.explore import Graph
from tidegauge.spec.tlc.models import find_model
from tidegauge.traces.columns import Columns
from tidegauge.traces.formats import parquet
from tidegauge.traces.from_model.walks import STEPS, EdgeTable, draw
from validation.trace_validation import observe_behaviour, validate_traces

OFTEN = 15
"""How often what takes a fraction of a second is timed, a copy or a judgement of columns."""

MODEL = "Small"
"""What TLC validates against, and what the interleavings are walks of."""

Walk = tuple[list[int], list[int]]
"""The states and labels of a walk, as numbers in the graph."""


@cache
def _of_this_process() -> AdaptiveJudge:
    """As a worker of Spark has one."""
    return AdaptiveJudge()


def judge_parquet(paths: Sequence[Path], judging: AdaptiveJudge | None = None) -> int:
    """Judge all row groups of files that hold right runs, by this judge or that of this process; how many events."""
    events, recurring = 0, judging or _of_this_process()
    for path in paths:
        with parquet.Reader(path) as reader:
            for group in reader.row_groups():
                found = recurring.judge(reader.read_as_stored(group.index), reader.config, compile_from=0)
                if any(tally.failed for tally in found.tallies.values()):
                    raise SystemExit(f"a correct walk is judged to fail: {found.failures[:1]}")
                events += found.events
    return events


def until_known(judge: Callable[[], object], events: int, processes: int = 1) -> None:
    """Judge the same events so often that each of the processes has an automaton that knows them (judging.recurring)."""
    for _ in range(2 + -(-processes * LOAD_FROM // events)):
        judge()


def copied(report: Report, name: str, columns: Columns, work: int, unit: str, point: Point | None = None) -> Timing:
    """Time a copy of what the judge reads, which is so much work to judge."""
    held = [columns.event, columns.node, *columns.ints.values(), columns.epochs_reported, columns.epochs_at, columns.epochs]
    into = [array.copy() for array in held]

    def copy() -> None:
        for to, array in zip(into, held, strict=True):
            np.copyto(to, array)

    return report.time(name, work, unit, copy, OFTEN, point)


def walks_of(table: EdgeTable, count: int, seed: int) -> list[Walk]:
    """So many walks."""
    walks = draw(table, count, STEPS, np.random.default_rng(seed))
    found = []
    for edges in np.split(walks.edges, np.cumsum(walks.lengths)[:-1]):
        steps = edges[1:]
        found.append(([0, *table.target[steps].tolist()], table.label_of[steps].tolist()))
    return found


def validated(
    report: Report, name: str, graph: Graph, found: Sequence[Walk], repetitions: int, point: Point | None = None
) -> Timing:
    """Time TLC's validation of all walks in one run, one worker."""
    observed = [
        observe_behaviour([graph.states[s] for s in states], [graph.labels[n] for n in labels]) for states, labels in found
    ]

    def run() -> None:
        refused = [verdict for verdict in validate_traces(observed, find_model(MODEL)).verdicts if not verdict.accepted]
        if refused:
            raise SystemExit(f"TLC refuses {len(refused)} of the walks of its own model")

    return report.time(name, sum(map(len, observed)), "steps", run, repetitions, point)


def on_one_core(report: Report) -> None:
    """Hold this process on one core, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        report.notes.append("the judge was held on one core")
