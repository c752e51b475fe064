"""Events judged per second on one core against TLC's batched trace validation, and against copying the same bytes.

The same interleavings go to both. An event is a step of the model here, for both sides: the judge's traces have more events
than steps (an append and the fetch that follows are two events), so counting those would flatter it.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.measure import Report, parser
from tidegauge.conformance.judging.check import check
from tidegauge.conformance.judging.judge import judge
from tidegauge.conformance.kernel.compiled import compiled
from tidegauge.impl.explored.explore import Bounds, Graph, explore
from tidegauge.spec.checker.models import find_model
from tidegauge.spec.validation.trace_validation import Observation, observe, validate
from tidegauge.traces.columns import Columns
from tidegauge.traces.files import ndjson, parquet
from tidegauge.traces.model.behaviour import trace_of_path
from tidegauge.traces.model.edges import EdgeTable, edge_table
from tidegauge.traces.model.walks import STEPS, draw, generate

BOUNDS = Bounds(brokers=2, max_log=2, max_epoch=1, max_crashes=1)


def paths(table: EdgeTable, count: int, seed: int) -> list[tuple[list[int], list[int]]]:
    """(states, labels) of walks as numbers in the graph."""
    walks = draw(table, count, STEPS, np.random.default_rng(seed))
    found = []
    for edges in np.split(walks.edges, np.cumsum(walks.lengths)[:-1]):
        steps = edges[1:]
        found.append(([0, *table.target[steps].tolist()], table.label_of[steps].tolist()))
    return found


def observations(graph: Graph, found: list[tuple[list[int], list[int]]]) -> list[list[Observation]]:
    return [observe([graph.states[s] for s in states], [graph.labels[n] for n in labels]) for states, labels in found]


def judge_parquet(path: Path) -> int:
    events = 0
    with parquet.Reader(path) as reader:
        for group in reader.row_groups():
            found = judge(reader.read_as_stored(group.index), reader.config, compile_from=0)
            if any(tally.failed for tally in found.tallies.values()):
                raise SystemExit(f"a correct walk is judged to fail: {found.failures[:1]}")
            events += found.events
    return events


def judge_ndjson(path: Path) -> int:
    report = check([path])
    if report.exit_code:
        raise SystemExit(f"correct walks are judged to fail: {report.verdict}")
    return report.events


def arrays(columns: Columns) -> list[np.ndarray]:
    return [columns.event, columns.node, *columns.ints.values(), columns.epochs_reported, columns.epochs_at, columns.epochs]


def main() -> int:
    options = parser(__doc__ or "")
    options.add_argument("--traces", type=int, default=500, help="traces TLC validates in one run")
    options.add_argument("--walks", type=int, default=60_000, help="traces judged from Parquet")
    arguments = options.parse_args()
    report = Report("The judge against TLC's batched trace validation")
    graph = explore(BOUNDS)
    table = edge_table(graph.states, graph.labels, graph.edges, source="benchmark")

    found = paths(table, arguments.traces, arguments.seed)
    observed = observations(graph, found)
    steps = sum(map(len, observed))
    validation = validate(observed, find_model("Small"))
    refused = [verdict for verdict in validation.verdicts if not verdict.accepted]
    if refused:
        raise SystemExit(f"TLC refuses {len(refused)} of the walks of its own model")
    tlc = report.add("TLC, one batch, one worker", steps, "steps", [validation.seconds])

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        report.notes.append("the judge was held on one core")
    started = time.perf_counter()
    compiled()
    report.notes.append(f"the judge was ready after {time.perf_counter() - started:.1f} s, which is not counted")
    with tempfile.TemporaryDirectory() as scratch:
        walks = Path(scratch) / "walks.parquet"
        made = generate(table, walks, arguments.walks, seed=arguments.seed)
        per_event = steps / sum(
            len(trace_of_path([graph.states[s] for s in p], [graph.labels[n] for n in q]).events) for p, q in found
        )
        judged_steps = int(made.events * per_event)
        judge_parquet(walks)
        from_parquet = report.time("Parquet to verdict", judged_steps, "steps", lambda: judge_parquet(walks))

        lines = Path(scratch) / "walks.ndjson"
        reported = [
            trace_of_path([graph.states[s] for s in p], [graph.labels[n] for n in q], name=f"w{i}")
            for i, (p, q) in enumerate(paths(table, 10_000, arguments.seed))
        ]
        ndjson.write(reported, lines)
        line_events = judge_ndjson(lines)
        from_lines = report.time("NDJSON to verdict", int(line_events * per_event), "steps", lambda: judge_ndjson(lines))

        columns, config = parquet.read_row_group(walks, 0)
        held = arrays(columns)
        into = [array.copy() for array in held]
        copied = report.time(
            "copying the columns",
            len(columns),
            "events",
            lambda: [np.copyto(b, a) for a, b in zip(held, into, strict=True)],
            15,
        )
        judged = report.time(
            "judging the columns", len(columns), "events", lambda: judge(columns, config, compile_from=0), 15
        )
    report.notes.append(
        f"{made.events:,} events in Parquet, {line_events:,} lines of NDJSON; {per_event:.2f} steps per event"
    )
    report.ratio("Parquet to verdict, times TLC", from_parquet.rate / tlc.rate, 10_000)
    report.ratio("NDJSON to verdict, times TLC", from_lines.rate / tlc.rate, 1_000)
    report.ratio("judging, times copying the same bytes", judged.seconds / copied.seconds, 10, most=True)
    return report.finish(arguments)


if __name__ == "__main__":
    sys.exit(main())
