"""Events judged per second on one core against TLC's batched trace validation, and against copying the same bytes.

The same interleavings go to both. An event is a step of the model here, for both sides: the judge's traces have more events
than steps (an append and the fetch that follows are two events), so counting those would flatter it.
"""

import sys
import tempfile
import time
from pathlib import Path

from benchmarks.baselines import OFTEN, copied, judge_parquet, on_one_core, validated, walks_of
from benchmarks.measure import Point, Report, parser
from tidegauge.conformance.checking.check import check
from tidegauge.conformance.engine.adaptive_judge import BEGIN_FROM, AdaptiveJudge, prepare
from tidegauge.conformance.engine.judge import judge
from tidegauge.impl.explorer.explore import Graph, explore
from tidegauge.spark_check.generation import BOUNDS
from tidegauge.traces.formats import ndjson, parquet
from tidegauge.traces.from_model.behaviour import trace_of_path
from tidegauge.traces.from_model.walks import edge_table, generate
from tidegauge.traces.schema import Trace

LINES_OF = 10_000
"""Walks judged from NDJSON."""


def judge_ndjson(path: Path) -> int:
    report = check([path])
    if report.exit_code:
        raise SystemExit(f"correct walks are judged to fail: {report.verdict}")
    return report.events


def trace(graph: Graph, walk: tuple[list[int], list[int]], name: str) -> Trace:
    states, labels = walk
    return trace_of_path([graph.states[s] for s in states], [graph.labels[n] for n in labels], name=name)


def at(curve: str) -> Point:
    """One of the baselines that are drawn below each other."""
    return Point("baselines", curve, 0)


def main() -> int:
    options = parser(__doc__ or "")
    options.add_argument("--traces", type=int, default=500, help="traces TLC validates in one run")
    options.add_argument("--walks", type=int, default=4_000_000, help="traces judged from Parquet")
    options.add_argument("--repetitions", type=int, default=5)
    arguments = options.parse_args()
    report = Report("The judge against TLC's batched trace validation")
    graph = explore(BOUNDS)
    table = edge_table(graph.states, graph.labels, graph.edges, source="benchmark")

    found = walks_of(table, arguments.traces, arguments.seed)
    name = "TLC, one batch, one worker"
    tlc = validated(report, name, graph, found, arguments.repetitions, at(name))

    on_one_core(report)
    started = time.perf_counter()
    prepare()
    report.notes.append(f"the judge was ready after {time.perf_counter() - started:.1f} s, which is not counted")
    with tempfile.TemporaryDirectory() as scratch:
        walks = Path(scratch) / "walks.parquet"
        made = generate(table, walks, arguments.walks, seed=arguments.seed)
        per_event = tlc.work / sum(len(trace(graph, walk, "").events) for walk in found)

        def steps(events: int) -> int:
            return int(events * per_event)

        seen = AdaptiveJudge()
        judge_parquet([walks], seen)
        name = "Parquet to verdict"
        from_parquet = report.time(
            name,
            steps(made.events),
            "steps",
            lambda: judge_parquet([walks], AdaptiveJudge()),
            arguments.repetitions,
            at(name),
        )
        name = "the same once more"
        report.time(name, steps(made.events), "steps", lambda: judge_parquet([walks], seen), arguments.repetitions, at(name))

        lines = Path(scratch) / "walks.ndjson"
        drawn = walks_of(table, LINES_OF, arguments.seed)
        ndjson.write((trace(graph, walk, f"w{i}") for i, walk in enumerate(drawn)), lines)
        line_events = judge_ndjson(lines)
        name = "NDJSON to verdict"
        from_lines = report.time(
            name, steps(line_events), "steps", lambda: judge_ndjson(lines), arguments.repetitions, at(name)
        )

        columns, config = parquet.read_row_group(walks, 0)
        held = steps(len(columns))
        name = "copying the columns"
        copy = copied(report, name, columns, held, "steps", at(name))
        name = "judging the columns"
        judged = report.time(name, held, "steps", lambda: judge(columns, config, compile_from=0), OFTEN, at(name))
    report.notes.append(f"the kernel judges the first {BEGIN_FROM:,} events, then a lazy automaton; once more: all is known")
    report.notes.append(
        f"{made.events:,} events in Parquet, {line_events:,} lines of NDJSON; {per_event:.2f} steps per event"
    )
    report.ratio("Parquet to verdict, times TLC", from_parquet.rate / tlc.rate, 10_000)
    report.ratio("NDJSON to verdict, times TLC", from_lines.rate / tlc.rate, 1_000)
    report.ratio("judging, times copying the same bytes", judged.seconds / copy.seconds, 10, most=True)
    return report.finish(arguments)


if __name__ == "__main__":
    sys.exit(main())
