"""./run cluster: generates and judges interleavings on a Spark master and two workers, with and without faults."""

import argparse
import math
import os
import platform
import signal
import sys
import tempfile
import time
from pathlib import Path

from tidegauge.util.errors import TidegaugeError
from tidegauge.util.workers import DEFAULT_SEED
from validation.spark_cluster.commands import check, peak_bytes, start, succeeded
from validation.spark_cluster.faults import FAULTS, Scene
from validation.spark_cluster.standalone import Cluster

WORKERS = 2
EVENTS_PER_WALK = 31
"""About: what 24 steps of Small report."""

OF_A_PART = 500_000
"""Interleavings of a part: 15 million events."""

BAR = 1.3
"""Times local[2] that the cluster may take."""

FAULTS_GENERATE = ("--traces", "200000", "--parts", "4")


def main(argv: list[str]) -> int:
    """Print what was measured and the outcome of each fault; return 1 if something is wrong."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--events", type=float, default=3e7, help="number of events, roughly; 1e9 takes a quarter of an hour (default 3e7)"
    )
    options.add_argument("--seed", type=int, default=DEFAULT_SEED)
    options.add_argument(
        "--faults",
        nargs="*",
        choices=FAULTS,
        default=list(FAULTS),
        help="faults to run (default all; none if no name follows)",
    )
    options.add_argument(
        "--directory", type=Path, help="keep all files in this directory; those that are there are not made again"
    )
    options.add_argument("--strict", action="store_true", help="also exit with 1 if the cluster takes longer than it may")
    arguments = options.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))  # so that no worker is left behind
    with tempfile.TemporaryDirectory(prefix="tidegauge-cluster-") as scratch:
        try:
            return measure(arguments, (arguments.directory or Path(scratch)).absolute(), Path(scratch))
        except TidegaugeError as error:
            print(error, file=sys.stderr)
            return 2


def measure(arguments: argparse.Namespace, folder: Path, scratch: Path) -> int:
    """Generate, judge locally and on the cluster, then run the faults."""
    walks = folder / "walks"
    traces = max(1, int(arguments.events) // EVENTS_PER_WALK)
    parts = max(WORKERS, 2 ** round(math.log2(traces / OF_A_PART)))
    order = ("--seed", str(arguments.seed), "--traces", str(traces), "--parts", str(parts))
    with Cluster(scratch / "cluster", WORKERS) as cluster:
        say(f"seed {arguments.seed}; {cluster.alive} workers of one core; {platform.machine()}, {os.cpu_count()} cores")
        begin = time.perf_counter()
        succeeded(start("generate", "--quiet", "--spark", cluster.master, *order, "--out", walks), "the generation")
        say(f"generated   {parts} parts in {time.perf_counter() - begin:.0f} s on the cluster")
        here = f"local[{WORKERS}]"
        local = check(here, scratch / "local", walks)
        whole = check(cluster.master, scratch / "whole", walks, results=scratch / "whole-results")
        part = check(cluster.master, scratch / "part", min(walks.glob("*.parquet")), results=scratch / "part-results")
        if whole.code or part.code or whole.totals != local.totals:
            say(f"WRONG: {here} ended with {local.code}, the cluster with {whole.code}, over a part with {part.code}")
            say("\n".join(found.said for found in (local, whole, part)))
            return 1
        # The cluster has as many cores as local[2] has threads: the ratio is the cost of being distributed.
        ratio = whole.seconds / local.seconds
        say(f"judged      {whole.events:,} events, nothing lost, the same tallies as on {here}")
        say(f"{here}    {local.seconds:.1f} s, {whole.events / local.seconds / 1e6:.1f} million events/s")
        reached = "MISSED" if ratio > BAR else "reached"
        say(f"cluster     {whole.seconds:.1f} s, {ratio:.2f} times {here} (bar {BAR}: {reached})")
        large, small = (peak_bytes(scratch / f"{name}-results") / 1e6 for name in ("whole", "part"))
        say(f"memory      {large:.0f} MB in the largest worker, {small:.0f} MB over {part.events:,} of the events")
        scene = Scene(cluster, walks, whole, ("--seed", str(arguments.seed), *FAULTS_GENERATE))
        wrong = [name for name in arguments.faults if not _stands(name, scene)]
    say(f"faults that change something: {', '.join(wrong) or 'none'}; load {os.getloadavg()[0]:.1f} at the end")
    return 1 if wrong or (arguments.strict and ratio > BAR) else 0


def _stands(name: str, scene: Scene) -> bool:
    outcome = FAULTS[name](scene)
    verdict = "not shown" if outcome.skipped else "the same totals"
    if outcome.wrong:
        verdict = f"WRONG: {'; '.join(outcome.wrong)}"
    say(f"{name:<18}{verdict}; {outcome.says}")
    return not outcome.wrong


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
