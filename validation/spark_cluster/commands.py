"""Runs commands as a user does, in processes of their own, and reads their reports.

Rules of this file

1. A command is started as a user would start it; a fault may end it at any time.
2. Two runs agree when they count the same: traces, events, what was lost, and every rule's tallies.
"""

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tidegauge.util.errors import TidegaugeError
from tidegauge.util.python_processes import python_command
from validation.spark_cluster.standalone import HOST

SLOWEST = 24 * 3600
"""Seconds after which a command is ended: a billion events on two cores take minutes."""

Process = subprocess.Popen[str]
TALLIES = ("rule", "verdict", "held", "failed", "undecided", "missing", "failed_traces")


@dataclass(frozen=True)
class Checked:
    """How `tidegauge check --spark` ended: its exit code, its standard error, and its report if it wrote one."""

    code: int
    said: str
    report: Mapping[str, Any] | None

    @property
    def totals(self) -> Any:
        """The counts that must be the same whatever happens to a run."""
        if self.report is None:
            return None
        rules = [tuple(str(rule[name]) for name in TALLIES) for rule in self.report["rules"]]
        return self.report["traces"], self.report["events"], self.report["lost"], rules

    @property
    def events(self) -> int:
        """The number of events judged."""
        return int(self.report["events"]) if self.report else 0

    @property
    def seconds(self) -> float:
        """The seconds that judging took, in a session that had just begun."""
        return float(self.report["seconds"]) if self.report else float("nan")

    @property
    def resumed(self) -> int:
        """The number of row groups that had been judged before."""
        notes = self.report["notes"] if self.report else []
        return next((int(note.split()[0].replace(",", "")) for note in notes if "had been judged before" in note), 0)


def start(*arguments: str | Path) -> Process:
    """Start a tidegauge command."""
    command = python_command("tidegauge", *map(str, arguments))
    own = {**os.environ, "SPARK_LOCAL_IP": HOST}
    return subprocess.Popen(command, env=own, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def start_check(master: str, out: Path, *paths: Path, results: Path | None = None, more: Sequence[str] = ()) -> Process:
    """Start `tidegauge check --spark` with `more` arguments."""
    kept = () if results is None else ("--results", results)
    return start("check", "--quiet", "--spark", master, *more, *kept, "--out", out, *paths)


def ended(process: Process, out: Path) -> Checked:
    """Wait for a check and return its result."""
    _, said = process.communicate(timeout=SLOWEST)
    report = out / "check.json"
    found = json.loads(report.read_text(encoding="utf-8")) if report.is_file() else None
    return Checked(process.returncode, said.strip(), found)


def check(master: str, out: Path, *paths: Path, results: Path | None = None) -> Checked:
    """Run `tidegauge check --spark` to its end."""
    return ended(start_check(master, out, *paths, results=results), out)


def reached(process: Process, wanted: Callable[[], bool]) -> bool:
    """Wait until `wanted` is true; return False if the process ends first."""
    # A process that ends first has met no fault: the caller counts that as a failure.
    while process.poll() is None:
        if wanted():
            return True
        time.sleep(0.01)
    return False


def succeeded(process: Process, what: str) -> None:
    """Wait for a command that must succeed. Raises TidegaugeError with its output."""
    _, said = process.communicate(timeout=SLOWEST)
    if process.returncode:
        raise TidegaugeError(f"cluster: expected {what} to end with 0, seen {process.returncode}: {said.strip()}")


def row_groups_in(results: Path) -> list[tuple[str, int]]:
    """Return the row groups of a directory of results, repeated ones as often."""
    tables = [pq.read_table(path, columns=["fingerprint", "row_group"]) for path in sorted(results.glob("*.parquet"))]
    return [(row["fingerprint"], row["row_group"]) for table in tables for row in table.to_pylist()]


def rows_by_worker(results: Path) -> Counter[int]:
    """Count the row groups of each Python worker."""
    tables = [pq.read_table(path, columns=["worker"]) for path in results.glob("*.parquet")]
    return Counter(worker for table in tables for worker in table["worker"].to_pylist())


def peak_bytes(results: Path) -> int:
    """Return the memory of the largest worker."""
    tables = [pq.read_table(path, columns=["peak_bytes"]) for path in results.glob("*.parquet")]
    return max((int(peak) for table in tables for peak in table["peak_bytes"].to_pylist()), default=0)
