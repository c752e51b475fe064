"""How the judge scales: with events, with cores, with the length of traces, with brokers; beside a copy and TLC's batch.

Rules of this file

1. Events and cores: the same Parquet files go to one process, to two, and to Spark on one core and on two. Each of them has
   judged them before, so often that its automaton knows them: else who came to that first would be the faster.
2. Length and brokers: runs of the reference (benchmarks.runs), as columns in memory, judged in one process and copied.
3. The bars: an event costs no more in a longer run, or among more events; a second core is worth having.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.baselines import OFTEN, copied, judge_parquet, until_known, validated, walks_of
from benchmarks.measure import Point, Report, Timing, parser
from benchmarks.runs import LOG, PROFILE, STEPS, repeated, runs_of
from tidegauge.conformance.engine.compiled import compiled
from tidegauge.conformance.engine.judge import judge
from tidegauge.impl.explorer.explore import explore
from tidegauge.spark_check import Order
from tidegauge.spark_check.generation import BOUNDS, write_part
from tidegauge.spark_check.judging import SparkRun, files_in, judge_files
from tidegauge.spark_check.session import session
from tidegauge.traces.columns import Columns, to_columns
from tidegauge.traces.formats import parquet
from tidegauge.traces.from_model.walks import edge_table
from tidegauge.traces.schema import Config
from tidegauge.util.workers import workers

WALKS = 131_072
"""Interleavings in a file: about four million events, a task or two of Spark's."""

FEWEST = 2
"""Files, so that two processes have something to do."""

BATCHES = (125, 500)
"""Traces in a batch of TLC's."""

CORES = (1, 2)
LENGTHS = (20, 100, 500, 2_500)
"""Steps of a run."""

BROKERS = (2, 3, 5)
JUDGED = 500_000
"""Events judged at each length: the runs are repeated."""

FLAT = 0.9
"""What is left of a rate that does not fall, measured on a shared machine."""

TWICE = 1.5
"""What a second core adds at least: Spark's bar."""

MILLION = 1_000_000


def judge_columns(columns: Columns, config: Config) -> None:
    """Judge right runs."""
    found = judge(columns, config, compile_from=0)
    if any(tally.failed for tally in found.tallies.values()):
        raise SystemExit(f"a correct run is judged to fail: {found.failures[:1]}")


Judging = Callable[[Sequence[Path]], int]
"""Judges files; how many events they were."""


def with_events(
    report: Report,
    curve: str,
    judging: Judging,
    files: Sequence[Path],
    counts: Sequence[int],
    repetitions: int,
    processes: int,
) -> Timing:
    """The rate over two files, four, eight, ...; that of all."""
    until_known(partial(judging, files), sum(counts), processes)
    timings = []
    for size in (FEWEST << doubled for doubled in range((len(files) // FEWEST).bit_length())):
        events = sum(counts[:size])

        def run(size: int = size, events: int = events) -> None:
            judged = judging(files[:size])
            if judged != events:
                raise SystemExit(f"{curve}: expected {events:,} events judged, seen {judged:,}")

        name = f"{curve}, {events / MILLION:.1f} million events"
        timings.append(report.time(name, events, "events", run, repetitions, Point("events", curve, events)))
    report.ratio(f"{curve}: events/s of all events, times those of the fewest", timings[-1].rate / timings[0].rate, FLAT)
    return timings[-1]


def on_cores(report: Report, files: Sequence[Path], counts: Sequence[int], repetitions: int) -> None:
    """All the curves over the same files."""

    def rate(curve: str, judging: Judging, processes: int) -> float:
        return with_events(report, curve, judging, files, counts, repetitions, processes).rate

    one = rate("one process", judge_parquet, 1)
    with workers(2) as spread:
        two = rate("two processes", lambda some: sum(spread(judge_parquet, ([file] for file in some))), 2)
    on_spark = {}
    for cores in CORES:
        master, last = f"local[{cores}]", list[SparkRun]()
        with session(master) as spark:

            def judged(some: Sequence[Path], spark: Any = spark, last: list[SparkRun] = last) -> int:
                last[:] = [judge_files(spark, files_in(some))]
                return last[0].totals().events_judged

            on_spark[cores] = rate(f"Spark {master}", judged, cores)
        seconds = sum(row.seconds for row in last[0].rows)
        report.notes.append(
            f"Spark {master}: {last[0].seconds:.2f} s, of which {seconds / cores:.2f} s are judging on each core; the rest "
            f"is the footers, the start of a job, and Spark's part of each of {len(files)} tasks, which shares the cores"
        )
    report.ratio("two processes, times one", two / one, TWICE)
    report.ratio("Spark local[2], times local[1]", on_spark[2] / on_spark[1], TWICE)


def with_length(report: Report, brokers: int, seed: int) -> None:
    """The rate over runs of each length, and of a copy of the same columns."""
    curve, timings = f"{brokers} brokers", []
    for length in LENGTHS:
        traces, config = runs_of(brokers, length, seed)
        columns = to_columns(traces, config)
        columns = repeated(columns, max(1, round(JUDGED / len(columns))))
        judge_columns(columns, config)
        name = f"{curve}, runs of {length:,} steps"
        point = Point("length", curve, length)
        timings.append(report.time(name, len(columns), "events", partial(judge_columns, columns, config), OFTEN, point))
        copied(report, f"{name}: a copy", columns, len(columns), "events")
    kept = timings[-1].rate / timings[0].rate
    report.ratio(f"{curve}: events/s of the longest runs, times those of the shortest", kept, FLAT)


def main() -> int:
    options = parser(__doc__ or "")
    options.add_argument("--files", type=int, default=16, help="files of four million events, a power of two (default 16)")
    options.add_argument("--repetitions", type=int, default=3)
    arguments = options.parse_args()
    report = Report("How the judge scales")
    graph = explore(BOUNDS)
    table = edge_table(graph.states, graph.labels, graph.edges, source="benchmark")
    for traces in BATCHES:
        walks = walks_of(table, traces, arguments.seed)
        validated(report, f"TLC, one batch of {traces:,} traces", graph, walks, arguments.repetitions)
    compiled()
    with tempfile.TemporaryDirectory() as scratch:
        order = Order(WALKS * arguments.files, seed=arguments.seed, parts=arguments.files)
        made = [write_part(table, Path(scratch), order, part) for part in range(order.parts)]
        files = [Path(part.path) for part in made]
        columns, _ = parquet.read_row_group(files[0], 0)
        copied(report, "interleavings: a copy of the columns", columns, len(columns), "events")
        on_cores(report, files, [part.events for part in made], arguments.repetitions)
    for brokers in BROKERS:
        with_length(report, brokers, arguments.seed)
    report.notes.append(
        f"runs of the reference ({PROFILE}, logs of {LOG} records at most): {STEPS:,} steps at each length, "
        f"repeated until they are {JUDGED:,} events"
    )
    return report.finish(arguments)


if __name__ == "__main__":
    sys.exit(main())
