"""`python -m validation.partial_traces_random [TRACES]`: right interleavings with parts missing; no rule may fail.

Rules of this file

1. Interleavings are walks over explored graphs in which every rule holds. Of each chunk of them a set of kinds of events is
   left out, and declared; of each walk values, lines, a span or a node are, in proportions that are drawn anew.
2. No loop goes over events: values are blanked in copies of the table of different events, lines by index.
3. Chunk c of seed s depends on these two alone. A failure names both, and the trace in the chunk.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tidegauge.conformance.engine.judge import REPORTS, Judgement, judge
from tidegauge.impl.explorer.explore import Bounds, explore
from tidegauge.traces.columns import UNKNOWN, Columns, Distinct, Ints
from tidegauge.traces.from_model.walks import STEPS, EdgeTable, draw, edge_table
from tidegauge.traces.schema import EVENTS, MISSING_AHEAD, MISSING_BEHIND, Config

TRACES = 1_000_000
CHUNK = 8192
COPIES = 32
"""Copies of the table of different events, each with other values blanked."""

GRAPHS: Sequence[tuple[Bounds, str]] = (
    (Bounds(brokers=2, max_log=2, max_epoch=1, max_crashes=1), "fetch-truncation"),
    (Bounds(brokers=2, max_log=1, max_epoch=2, max_crashes=1), "repaired"),
    (Bounds(brokers=2, max_log=1, max_epoch=1, max_crashes=0), "kip320"),
    (Bounds(brokers=2, max_log=1, max_epoch=0, max_crashes=1, min_insync_replicas=2), "elr"),
    (Bounds(brokers=2, max_log=1, max_epoch=2, max_crashes=0, max_waiting=1), "repaired"),
)


@dataclass(frozen=True)
class Chunk:
    """Interleavings with parts missing, as the judge takes them."""

    number: int
    events: Distinct
    config: Config


def table_of(bounds: Bounds, profile: str) -> EdgeTable:
    """Return the edges of a whole graph and their events."""
    graph = explore(bounds, profile)
    table = edge_table(graph.states, graph.labels, graph.edges, profile)
    return replace(table, config=replace(table.config, min_isr=bounds.min_insync_replicas))


def chunk(table: EdgeTable, number: int, seed: int, count: int = CHUNK) -> Chunk:
    """Return chunk `number` of the walks of a graph."""
    rng = np.random.default_rng((seed, number))
    walks = draw(table, count, STEPS, rng, number * count // 2)
    events = table.distinct(walks.edges, walks.lengths)
    kinds = [name for name in EVENTS if rng.random() < 0.05] if rng.random() < 0.5 else []
    config = table.config
    if kinds:
        reports = [name for name in EVENTS if name not in kinds]
        config = replace(config, extra={**config.extra, REPORTS: reports})
    return Chunk(number, without_parts(events, kinds, rng), config)


def without_parts(events: Distinct, kinds: Sequence[str], rng: np.random.Generator) -> Distinct:
    """Remove declared kinds, nodes, lines, spans and values from the events."""
    rows, starts = events.rows, events.table.trace_starts
    lengths = np.diff(starts)
    trace = np.repeat(np.arange(len(lengths)), lengths)
    event, node = events.table.event[rows], events.table.node[rows]
    # A silent node in a fifth of the traces, a share of single lines in half of them, a span in a fifth.
    silent = rng.integers(0, node.max(initial=0) + 1, len(lengths))
    silent[rng.random(len(lengths)) < 0.8] = -1
    # Kinds are declared, and nothing is expected of a silent node: neither leaves a gap, so they go before gaps are sought.
    reported = ~np.isin(event, [EVENTS[name].code for name in kinds]) & (node != silent[trace])
    rows, trace, node = rows[reported], trace[reported], node[reported]
    share = np.where(rng.random(len(lengths)) < 0.5, 0.0, rng.random(len(lengths)) * 0.3)
    present = rng.random(len(rows)) >= share[trace]
    at = np.arange(len(rows)) - np.searchsorted(trace, trace)
    first = rng.integers(0, 30, len(lengths))
    span = np.where(rng.random(len(lengths)) < 0.8, 0, rng.integers(1, 12, len(lengths)))
    present &= (at < first[trace]) | (at >= (first + span)[trace])
    missing = beside_gaps(trace, node, present)[present]
    rows, trace = rows[present], trace[present]
    copies = rng.integers(0, COPIES, len(lengths))[trace]
    table = with_starts_of(blanked(events.table, rng), trace, len(lengths))
    return Distinct(table, rows + copies * len(events.table), missing)


def beside_gaps(trace: Ints, node: Ints, present: Ints) -> Ints:
    """Return for each event whether the one before it, or after it, at its node is missing."""
    # Sorted by trace and node, the events of a node are neighbours.
    order = np.lexsort((np.arange(len(trace)), node, trace))
    same = (trace[order][1:] == trace[order][:-1]) & (node[order][1:] == node[order][:-1])
    lost = ~present[order]
    sides = np.zeros(len(trace), np.int64)
    sides[order[1:]] |= np.where(same & lost[:-1], MISSING_AHEAD, 0)
    sides[order[:-1]] |= np.where(same & lost[1:], MISSING_BEHIND, 0)
    return sides


def blanked(table: Columns, rng: np.random.Generator) -> Columns:
    """Return COPIES of the table, one below the other: the first complete, the others without values or whole fields."""
    count = len(table)
    share = np.repeat(np.concatenate(([0.0], rng.random(COPIES - 1) * 0.4)), count)
    ints: dict[str, Ints] = {}
    for name, column in table.ints.items():
        gone = rng.random(COPIES * count) < share
        gone |= np.repeat(rng.random(COPIES) < 0.05, count) & (share > 0)
        ints[name] = np.where(gone, UNKNOWN, np.tile(column, COPIES))
    reported = np.tile(table.epochs_reported, COPIES) & (rng.random(COPIES * count) >= share)
    pairs = np.diff(table.epochs_at)
    return Columns(
        trace_starts=table.trace_starts,
        event=np.tile(table.event, COPIES),
        node=np.tile(table.node, COPIES),
        ints=ints,
        epochs_reported=reported,
        epochs_at=np.concatenate(([0], np.cumsum(np.tile(pairs, COPIES)))),
        epochs=np.tile(table.epochs, COPIES),
    )


def with_starts_of(table: Columns, trace: Ints, traces: int) -> Columns:
    """Return the table as that of the traces whose events are numbered `trace`."""
    return replace(table, trace_starts=np.searchsorted(trace, np.arange(traces + 1)))


def judged(chunk: Chunk) -> Judgement:
    """Judge a chunk."""
    return judge(chunk.events, chunk.config, compile_from=0)


def main(arguments: Sequence[str]) -> int:
    """Judge chunk after chunk; 1 when a rule fails."""
    parser = argparse.ArgumentParser(
        prog="python -m validation.partial_traces_random",
        description="right interleavings with parts missing: no rule may fail",
    )
    parser.add_argument("traces", nargs="?", type=int, default=TRACES)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}, {options.traces:,} interleavings of {len(GRAPHS)} graphs", flush=True)
    begin, total, events, wrong = time.perf_counter(), 0, 0, 0
    for place, (bounds, profile) in enumerate(GRAPHS):
        table, of_graph = table_of(bounds, profile), options.traces * (place + 1) // len(GRAPHS)
        number = 0
        while total < of_graph:
            judgement = judged(chunk(table, number, options.seed, min(CHUNK, of_graph - total)))
            for failure in judgement.failures[:3]:
                print(f"{profile}, chunk {number}, trace {failure.trace}: {failure.rule}", flush=True)
            total, events = total + judgement.traces, events + judgement.events
            wrong += sum(tally.failed_traces for tally in judgement.tallies.values())
            number += 1
        print(f"{profile}: {total:,} interleavings so far, {wrong:,} failures", flush=True)
    seconds = time.perf_counter() - begin
    print(f"{total:,} interleavings, {events:,} events left of them, in {seconds:.0f} s: {wrong:,} failures")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
