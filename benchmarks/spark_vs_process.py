"""Spark on local[2] against one bare process over the same Parquet files."""

import sys
import tempfile
import time
from pathlib import Path

from benchmarks.baselines import judge_parquet, until_known
from benchmarks.measure import Report, parser
from tidegauge.conformance.engine.compiled import compiled
from tidegauge.spark_check import Order, judge_on_spark
from tidegauge.spark_check.generation import write_part
from tidegauge.spark_check.session import session

CORES = 2


def main() -> int:
    options = parser(__doc__ or "")
    options.add_argument("--walks", type=int, default=2_000_000)
    options.add_argument("--repetitions", type=int, default=3)
    arguments = options.parse_args()
    master = f"local[{CORES}]"
    report = Report(f"Spark {master} against one bare process")
    order = Order(arguments.walks, seed=arguments.seed, parts=2)
    with tempfile.TemporaryDirectory() as scratch:
        table = order.table()
        started = time.perf_counter()
        made = [write_part(table, Path(scratch), order, part) for part in range(order.parts)]
        events = sum(part.events for part in made)
        report.add("generation, one process", events, "events", [time.perf_counter() - started])
        files = [Path(part.path) for part in made]
        compiled()
        until_known(lambda: judge_parquet(files), events)
        alone = report.time("one bare process", events, "events", lambda: judge_parquet(files), arguments.repetitions)
        with session(master) as spark:
            first = judge_on_spark(files, spark=spark)
            report.add("Spark, first run of a session", events, "events", [first.seconds])
            until_known(lambda: judge_on_spark(files, spark=spark), events, CORES)
            runs = [judge_on_spark(files, spark=spark) for _ in range(arguments.repetitions)]
        if not all(run.reconciles and run.events_judged == events for run in runs):
            raise SystemExit(f"counts do not reconcile: {runs[0]}")
        together = report.add(f"Spark {master}", events, "events", [run.seconds for run in runs])
    report.notes.append(
        f"{arguments.walks:,} interleavings, all of whose events are known; "
        f"largest worker {max(run.peak_bytes for run in runs) / 1e6:,.0f} MB"
    )
    report.ratio("Spark, times one process", alone.seconds / together.seconds, 1.5)
    return report.finish(arguments)


if __name__ == "__main__":
    sys.exit(main())
