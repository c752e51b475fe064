"""`python -m validation.late_lines --seed N --runs K`: late lines that must stay right, and seeded faults that are told.

K runs of the kept cases of wide clusters (tests/kafka_logs/wide), and K of the shipped captures.
"""

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.util.workers import workers
from validation.late_lines.faults import FAULTS
from validation.late_lines.runs import (
    Run,
    ended_runs,
    faulty_runs,
    healthy_runs,
    late_files,
    simulated_runs,
    small,
    unpacked,
    walked,
    walked_faults,
)
from validation.metamorphic.tree import joined, write

WIDE = Path(__file__).resolve().parents[2] / "tests" / "kafka_logs" / "wide"


def main(arguments: Sequence[str]) -> int:
    """Judge every run and print counts; 1 if anything is said of a healthy capture that was not said before."""
    parser = argparse.ArgumentParser(description="write lines of healthy captures late, and put faults into them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=100, help="healthy runs, for wide cases and for small captures")
    parser.add_argument("--ends", type=int, default=0, help="runs whose brokers log no more behind SIGTERM")
    parser.add_argument("--faults", type=int, default=0, help="runs with one fault, likewise")
    parser.add_argument("--simulated", type=int, default=0, help="simulated clusters: each partition is a history")
    parser.add_argument("--walks", type=int, default=0, help="directories of walks of the reference: each is a history")
    parser.add_argument("--walked-faults", type=int, default=0, help="directories of walks with one fault each")
    parser.add_argument("--processes", type=int, default=1, help="that judge walks")
    parser.add_argument(
        "--keep", nargs=2, metavar=("RUN", "DIR"), help="write the logs of a wide healthy run; judge nothing"
    )
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="late-lines-") as place:
        wide = unpacked(WIDE, Path(place))
        if chosen.keep is not None:
            made = late_files(wide, chosen.seed, int(chosen.keep[0]))
            write({path: joined(lines) for path, lines in made.files.items()}, Path(chosen.keep[1]))
            return 0
        wrong = 0
        if chosen.ends:
            ended = list(ended_runs([*wide, *small()], chosen.seed, chosen.ends))
            wrong += sum(1 for _, _, news in ended if news)
            for number, source, news in ended:
                if news:
                    print(f"run {number} of {source.name}: {'; '.join(news)}", flush=True)
            print(f"seed {chosen.seed}, early ends: {len(ended)} runs, {wrong} wrong", flush=True)
        if chosen.walks or chosen.walked_faults:
            wrong += _judge_walks(chosen)
        if chosen.simulated:
            wrong += _simulated(chosen.seed, chosen.simulated)
        for kind, sources in (("wide cases", wide), ("small captures", small())):
            said: Counter[str] = Counter()
            for run in healthy_runs(sources, chosen.seed, chosen.runs):
                said.update(runs=1, moved=run.made.moved, passed=run.made.passed)
                said["fail"] += run.after.verdict is Verdict.FAIL
                said["gaps"] += run.after.verdict is not Verdict.FAIL and run.noticed_late
                if run.noticed_late:
                    wrong += 1
                    print(run, flush=True)
            print(
                f"seed {chosen.seed}, {kind}: {said['runs']} runs, {said['moved']:,} lines late over {said['passed']:,} "
                f"lines; {said['fail']} FAIL, {said['gaps']} with a gap that is none",
                flush=True,
            )
            _print_noticed(kind, faulty_runs(sources, chosen.seed, chosen.faults))
        faulty = simulated_runs(chosen.seed, chosen.simulated and chosen.faults, FAULTS)
        _print_noticed("simulated", (run for run, _ in faulty))
    return 1 if wrong else 0


def _judge_walks(chosen: argparse.Namespace) -> int:
    """Judge walks of the reference; return how many are judged wrongly."""
    said: Counter[str] = Counter()
    noticed: Counter[tuple[str, str]] = Counter()
    with workers(chosen.processes) as side_by_side:
        for one in side_by_side(partial(walked, chosen.seed), range(chosen.walks)):
            said.update(histories=one.histories, moved=one.moved, wrong=len(one.wrong))
            print(*one.wrong, sep="\n", end="\n" if one.wrong else "", flush=True)
            print(
                f"seed {chosen.seed}, walks: {said['histories']:,} histories, {said['moved']:,} lines late; "
                f"{said['wrong']} wrong",
                flush=True,
            )
        for counts in side_by_side(partial(walked_faults, chosen.seed), range(chosen.walked_faults)):
            noticed.update(counts)
    _print_counts("walks", noticed)
    return said["wrong"]


def _simulated(seed: int, count: int) -> int:
    """Judge simulated clusters with late lines; return how many are judged wrongly."""
    said: Counter[str] = Counter()
    for run, partitions in simulated_runs(seed, count):
        said.update(runs=1, histories=partitions, moved=run.made.moved, wrong=run.noticed_late)
        if run.noticed_late:
            print(run, flush=True)
    print(
        f"seed {seed}, simulated clusters: {said['runs']:,} runs, {said['histories']:,} partitions, "
        f"{said['moved']:,} lines late; {said['wrong']} wrong",
        flush=True,
    )
    return said["wrong"]


def _print_noticed(kind: str, runs: Iterable[Run]) -> None:
    noticed: Counter[tuple[str, str]] = Counter()
    for run in runs:
        noticed[run.fault, "runs"] += 1
        noticed[run.fault, "plain"] += run.noticed_in_time
        noticed[run.fault, "late"] += run.noticed_late
    _print_counts(kind, noticed)


def _print_counts(kind: str, noticed: Counter[tuple[str, str]]) -> None:
    for name in FAULTS:
        if noticed[name, "runs"]:
            counts = (noticed[name, key] for key in ("plain", "late", "runs"))
            print("{:<16} {:<30} told {:>4}, with late lines {:>4}, of {:>4}".format(kind, name, *counts), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
