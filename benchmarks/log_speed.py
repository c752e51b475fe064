"""`python -m benchmarks.log_speed`: broker logs of three shapes, from their bytes to the verdict on one core, by stage.

| input | partitions | what a fetch is about |
|---|---|---|
| narrow | 2 for 3 MB | the logs of `big_logs.py`: each topic has a fetcher of its own, so one to three partitions |
| busy | 60 | 20 partitions: one fetcher per leader, as Kafka has it |
| wide | 600 | 200 partitions |

Rules of this file

1. Time is processor time, without the start of the process and with the machine code of the judge on disk.
2. A stage is a function; what it calls of another stage is that one's. The passes of `passes.py` are stages, too.
3. `--against` takes another checkout of this project and measures it in the same run, alternating; then ratios are given.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import big_logs, cluster_logs
from tidegauge.conformance.checking import check, inputs
from tidegauge.conformance.engine.adaptive_judge import AdaptiveJudge
from tidegauge.conformance.engine.compiled import compiled
from tidegauge.traces.kafka_logs import capture
from tidegauge.util.workers import collect_garbage_rarely

RATES = {"busy": 250.0, "wide": 20.0}
"""Records a second."""
PARTITIONS = {"narrow": 0, "busy": 60, "wide": 600}
OF_A_NARROW_TOPIC = 4_300_000
"""Bytes that big_logs.py writes for three partitions at least."""
ALL, REST = "all", "the rest"


def make(name: str, folder: Path, size: int, seed: int) -> None:
    """Write the logs of an input."""
    if name == "narrow":
        big_logs.make(folder, big_logs.OF_A_COPY * max(1, size // OF_A_NARROW_TOPIC), size, seed)
    else:
        cluster_logs.make(folder, PARTITIONS[name], size, seed, RATES[name])


class Stages:
    """Processor seconds by stage: of stages that call each other, the innermost is charged."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._running = [REST]
        self._mark = time.process_time()

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose time is that of a stage."""

        @wraps(function)
        def stage_of(*arguments: Any, **named: Any) -> Any:
            self.charge()
            self._running.append(stage)
            try:
                return function(*arguments, **named)
            finally:
                self.charge()
                self._running.pop()

        return stage_of

    def charge(self) -> None:
        """Charge the time since the last call to the stage that runs."""
        now = time.process_time()
        self.spent[self._running[-1]] += now - self._mark
        self._mark = now


def measured(folder: Path) -> dict[str, Any]:
    """Judge logs in this process: processor seconds by stage, events, verdict, and the memory at most in bytes."""
    collect_garbage_rarely()
    compiled()
    stages = Stages()
    for name in ("find_clusters", "node_of", "by_generation", "merge", "_trace", "uncertain_intervals"):
        setattr(capture, name, stages.timed(name.strip("_"), getattr(capture, name)))
    capture.PASSES = tuple(stages.timed(step.__name__, step) for step in capture.PASSES)  # type: ignore[misc]
    inputs.to_columns = stages.timed("to_columns", inputs.to_columns)  # type: ignore[attr-defined]
    AdaptiveJudge.judge = stages.timed("judge", AdaptiveJudge.judge)  # type: ignore[method-assign]
    report = check.check([folder])
    stages.charge()
    return {
        ALL: sum(stages.spent.values()),
        **stages.spent,
        "events": report.events,
        "verdict": report.verdict.name,
        "memory": peak_memory(),
    }


def peak_memory() -> int:
    """Return the most memory that this process had, in bytes (VmHWM: ru_maxrss begins with what its parent had)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1024


def runs(folder: Path, roots: Sequence[Path], times: int) -> list[list[dict[str, Any]]]:
    """Measure each checkout so many times, in processes of their own, alternating."""
    found: list[list[dict[str, Any]]] = [[] for _ in roots]
    for _ in range(times):
        for at, root in enumerate(roots):
            command = [sys.executable, "-P", __file__, "--measure", str(folder)]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root), str(Path(__file__).parents[1])))}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            found[at].append(json.loads(done.stdout.splitlines()[-1]))
    return found


def show(name: str, size: int, found: Sequence[Sequence[dict[str, Any]]]) -> None:
    """Print the figures of one input; with two checkouts, theirs beside each other."""
    first = found[0][0]
    verdicts = {(run["verdict"], run["events"]) for of_root in found for run in of_root}
    print(f"{name}: {size / 1e6:.0f} MB, {first['events']:,} events = {first['events'] / size * 1e6:,.0f} per MB")
    print(f"  verdict and events: {', '.join(f'{verdict} {events:,}' for verdict, events in sorted(verdicts))}")
    middle = [
        {
            stage: median(run.get(stage, 0.0) for run in of_root)
            for stage in {stage for run in of_root for stage in run} - TEXTS
        }
        for of_root in found
    ]
    for at, of_root in enumerate(middle):
        whose = ("this", "other")[at]
        memory = median(run["memory"] for run in found[at]) / 1e6
        print(f"  {whose}: {of_root[ALL]:.2f} s, {size / of_root[ALL] / 1e6:.2f} MB/s a core, {memory:,.0f} MB at most")
    if len(middle) > 1:
        print(f"  other / this: {middle[1][ALL] / middle[0][ALL]:.2f}")
    for stage, seconds in sorted(middle[0].items(), key=lambda found: -found[1]):
        if stage != ALL and seconds >= 0.005 * middle[0][ALL]:
            others = "".join(f"{one.get(stage, 0.0):9.2f} s" for one in middle[1:])
            each = seconds / first["events"] * 1e6
            print(f"    {stage:24} {seconds:7.2f} s {seconds / middle[0][ALL]:5.0%} {each:7.2f} us{others}")


TEXTS = {"events", "verdict", "memory"}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("inputs", nargs="*", default=[*PARTITIONS], help="narrow, busy, wide (default: all)")
    parser.add_argument("--megabytes", type=float, default=8)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--seed", type=int, default=48)
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--keep", type=Path, help="make the logs there, measure nothing")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.measure:
        print(json.dumps(measured(chosen.measure)))
        return 0
    roots = [Path(__file__).parents[1], *([chosen.against] if chosen.against else [])]
    print(f"seed {chosen.seed}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for name in chosen.inputs:
        with tempfile.TemporaryDirectory(prefix="tidegauge-speed-") as scratch:
            folder = chosen.keep / name if chosen.keep else Path(scratch)
            make(name, folder, int(chosen.megabytes * 1e6), chosen.seed)
            size = sum(path.stat().st_size for path in folder.glob("n*/*.log"))
            if not chosen.keep:
                show(name, size, runs(folder, roots, chosen.times))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
