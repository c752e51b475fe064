"""What the benchmarks share: medians, a table, JSON.

Rules of this file

1. A time is the median of several repetitions, with the fastest and slowest beside it: a shared machine is noisy.
2. A ratio is named with its baseline, measured in the same run on the same machine. A bar is a ratio a reader can check.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Timing:
    """`work` units were done in `seconds` (median)."""

    name: str
    work: int
    unit: str
    seconds: float
    fastest: float
    slowest: float
    repetitions: int

    @property
    def rate(self) -> float:
        return self.work / self.seconds


@dataclass(frozen=True)
class Ratio:
    """How many times something is another; `bar` is what it should reach, or stay below where `most` is set."""

    name: str
    value: float
    bar: float
    most: bool = False

    @property
    def reached(self) -> bool:
        return self.value <= self.bar if self.most else self.value >= self.bar


@dataclass
class Report:
    """The timings and ratios of one benchmark, and what they were measured on."""

    title: str
    timings: list[Timing] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def time(self, name: str, work: int, unit: str, run: Callable[[], object], repetitions: int = 5) -> Timing:
        """Run something several times."""
        print(f"  {name} ...", file=sys.stderr, flush=True)
        taken = []
        for _ in range(repetitions):
            started = time.perf_counter()
            run()
            taken.append(time.perf_counter() - started)
        return self.add(name, work, unit, taken)

    def add(self, name: str, work: int, unit: str, taken: Sequence[float]) -> Timing:
        """Times measured elsewhere."""
        timing = Timing(name, work, unit, statistics.median(taken), min(taken), max(taken), len(taken))
        self.timings.append(timing)
        return timing

    def ratio(self, name: str, value: float, bar: float, *, most: bool = False) -> None:
        """A ratio against its bar."""
        self.ratios.append(Ratio(name, value, bar, most))

    def text(self) -> str:
        rows = [("", "median s", "fastest", "slowest", "n", "per second", "")]
        rows += [
            (
                t.name,
                f"{t.seconds:.3f}",
                f"{t.fastest:.3f}",
                f"{t.slowest:.3f}",
                f"{t.repetitions}",
                f"{t.rate:,.0f}",
                t.unit,
            )
            for t in self.timings
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(7)]
        lines = [self.title, ""]
        for row in rows:
            cells = [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:6], widths[1:6], strict=True)),
            ]
            lines.append("  ".join((*cells, row[6])).rstrip())
        lines.append("")
        for ratio in self.ratios:
            sign = "<=" if ratio.most else ">="
            verdict = "reached" if ratio.reached else "MISSED"
            lines.append(f"{ratio.name}: {ratio.value:,.2f}   (bar {sign} {ratio.bar:,g}: {verdict})")
        return "\n".join([*lines, *self.notes, machine()])

    def finish(self, arguments: argparse.Namespace) -> int:
        """Print the table, write the JSON; 1 where a bar was asked for and missed."""
        print(self.text())
        if arguments.json:
            ratios = [asdict(ratio) | {"reached": ratio.reached} for ratio in self.ratios]
            found = {
                "title": self.title,
                "machine": machine(),
                "timings": [asdict(t) for t in self.timings],
                "ratios": ratios,
            }
            Path(arguments.json).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        return 1 if arguments.strict and not all(ratio.reached for ratio in self.ratios) else 0


def machine() -> str:
    """What it was measured on."""
    load = os.getloadavg()[0]
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f} at the end"


def parser(description: str) -> argparse.ArgumentParser:
    """The options all benchmarks have."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--json", help="write the numbers to this file too")
    options.add_argument("--strict", action="store_true", help="exit with 1 when a bar is missed")
    options.add_argument("--seed", type=int, default=0)
    return options
