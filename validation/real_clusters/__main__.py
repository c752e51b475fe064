"""python -m validation.real_clusters: makes real clusters by seed, judges their logs and keeps what is judged wrongly.

Needs Java, Maven or the jars of the releases, and confluent-kafka. Not in CI: a cluster takes one to two minutes.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

from confluent_kafka import KafkaException

from tidegauge.drive.wire.compiler import WireError
from tidegauge.util.errors import UsageError
from tidegauge.util.python_processes import process_context
from validation.real_clusters.cluster import ClusterError
from validation.real_clusters.judgement import Rightness
from validation.real_clusters.kept_clusters import Outcome, judge_cluster, made, make, outcomes, size_of_logs, write_results
from validation.real_clusters.shapes import INCIDENTS, shape_of

BEHIND = 10
"""How much nicer judging is: brokers that wait for a processor are paused brokers."""


def main(arguments: Sequence[str]) -> int:
    """Print a line per cluster, write the table; 1 when a verdict is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="that of the first cluster; the others follow (default 0)")
    parser.add_argument("--clusters", type=int, default=1, help="how many (default 1)")
    parser.add_argument("--small", action="store_true", help="at most 24 partitions and two incidents")
    parser.add_argument("--release", help="of this release, in place of the one that the seed draws")
    parser.add_argument("--fetchers", type=int, help="with so many fetchers to a leader, likewise")
    parser.add_argument("--incidents", help="names of incidents, with commas between them, likewise")
    parser.add_argument("--out", type=Path, default=Path("clusters"), help="where the family is kept (default ./clusters)")
    parser.add_argument("--unjudged", action="store_true", help="judge none now; with --again: those never judged")
    parser.add_argument(
        "--again", action="store_true", help="make none: judge the kept logs again, of these seeds or of all"
    )
    parser.add_argument("--wrong", action="store_true", help="with --again: only those whose verdict was wrong")
    parser.add_argument("--shapes", action="store_true", help="print the shapes, and make nothing")
    chosen = parser.parse_args(arguments)
    wrong = 0
    for outcome in _again(chosen) if chosen.again else _made(chosen):
        wrong += outcome.right != Rightness.RIGHT
        print(f"{time.strftime('%H:%M:%S', time.gmtime())} {outcome.row()}", flush=True)
        write_results(chosen.out)
    return 1 if wrong else 0


def _made(chosen: argparse.Namespace) -> Iterator[Outcome]:
    """Make one cluster after the other; each is judged while the next one runs."""
    wanted = chosen.incidents.split(",") if chosen.incidents is not None else None
    for unknown in set(wanted or ()) - set(INCIDENTS):
        raise UsageError(f"--incidents: expected some of {', '.join(INCIDENTS)}; seen {unknown}")
    # Another process: it would keep the clients of the next cluster from their work. Not a fork: they are threads.
    with ProcessPoolExecutor(1, process_context(), os.nice, (BEHIND,)) as judging:
        judged: list[Future[Outcome]] = []
        for seed in range(chosen.seed, chosen.seed + chosen.clusters):
            shape = shape_of(seed, chosen.small, chosen.release, chosen.fetchers, wanted)
            if chosen.shapes:
                print(seed, shape.words, shape.incidents)
                continue
            try:
                folder = make(shape, chosen.out)
                if not chosen.unjudged:
                    judged.append(judging.submit(judge_cluster, folder))
            except (ClusterError, WireError, KafkaException, OSError) as error:
                print(f"seed {seed}: {shape.words}: {error}", file=sys.stderr, flush=True)
            while judged and judged[0].done():
                yield judged.pop(0).result()
        for last in judged:
            yield last.result()


def _again(chosen: argparse.Namespace) -> Iterator[Outcome]:
    """Judge those of the seeds that are there; with --unjudged those that never were, with --wrong those judged wrongly."""
    seeds = range(chosen.seed, chosen.seed + chosen.clusters) if chosen.clusters > 1 or chosen.seed else None
    before = {outcome.folder: outcome.right for outcome in outcomes(chosen.out)}
    # The smallest logs first: most verdicts come soon.
    for folder in sorted(made(chosen.out), key=size_of_logs):
        if (
            (seeds is None or int(folder.name) in seeds)
            and not (chosen.wrong and before.get(folder) == Rightness.RIGHT)
            and not (chosen.unjudged and folder in before)
        ):
            yield judge_cluster(folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
