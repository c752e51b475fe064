"""What the benchmarks share: medians, a table, JSON.

Rules of this file

1. A time is the median of several repetitions, with the fastest and slowest beside it: a shared machine is noisy.
2. A ratio is named with its baseline, measured in the same run on the same machine. A bar is a ratio a reader can check.
3. What a report says is all in its JSON: a page can be made of it without measuring again.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.machine import Machine, line, load, machine

BUSY = 2
"""The load of a core above which others are at work."""


class Point(NamedTuple):
    """Where a timing stands in a plot: on which curve, and at what of the axis below."""

    plot: str
    curve: str
    at: float


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
    point: Point | None = None

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

    @property
    def verdict(self) -> str:
        return f"bar {'<=' if self.most else '>='} {self.bar:,g}: {'reached' if self.reached else 'MISSED'}"


@dataclass
class Report:
    """The timings and ratios of one benchmark, and what they were measured on."""

    title: str
    timings: list[Timing] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    machine: Machine = field(default_factory=machine)
    day: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%d}")
    loads: list[float] = field(default_factory=lambda: [load()])
    """At the beginning, and at the end."""
    options: str = ""
    """As what the benchmark was asked for."""

    @property
    def busy(self) -> bool:
        """Whether others kept the machine busy: no benchmark makes so much load itself, before it begins and at its end."""
        return min(self.loads) > BUSY * int(self.machine["cores"])

    @property
    def reached(self) -> bool:
        """Whether every bar is."""
        return not self.ratios or (not self.busy and all(ratio.reached for ratio in self.ratios))

    def time(
        self,
        name: str,
        work: int,
        unit: str,
        run: Callable[[], object],
        repetitions: int = 5,
        point: Point | None = None,
    ) -> Timing:
        """Run something several times."""
        print(f"  {name} ...", file=sys.stderr, flush=True)
        taken = []
        for _ in range(repetitions):
            started = time.perf_counter()
            run()
            taken.append(time.perf_counter() - started)
        return self.add(name, work, unit, taken, point)

    def add(self, name: str, work: int, unit: str, taken: Sequence[float], point: Point | None = None) -> Timing:
        """Times measured elsewhere."""
        timing = Timing(name, work, unit, statistics.median(taken), min(taken), max(taken), len(taken), point)
        self.timings.append(timing)
        return timing

    def ratio(self, name: str, value: float, bar: float, *, most: bool = False) -> None:
        """A ratio against its bar."""
        self.ratios.append(Ratio(name, value, bar, most))

    def rows(self) -> list[tuple[str, ...]]:
        """The timings as a table, its head first."""
        return [
            ("", "median s", "fastest", "slowest", "n", "per second", ""),
            *(
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
            ),
        ]

    def text(self) -> str:
        rows = self.rows()
        widths = [max(len(row[column]) for row in rows) for column in range(7)]
        lines = [self.title, ""]
        for row in rows:
            cells = [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:6], widths[1:6], strict=True)),
            ]
            lines.append("  ".join((*cells, row[6])).rstrip())
        lines.append("")
        lines += [f"{ratio.name}: {ratio.value:,.2f}   ({ratio.verdict})" for ratio in self.ratios]
        loads = " and ".join(f"{at:.1f}" for at in self.loads)
        busy = ["others kept the machine busy: no bar is decided"] if self.busy else []
        return "\n".join([*lines, *self.notes, *busy, f"{line(self.machine)}, load {loads} at the beginning and the end"])

    def as_json(self) -> dict[str, Any]:
        """All of it, as a file keeps it."""
        return asdict(self)

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> "Report":
        """The report that `as_json` says."""
        timings = [Timing(**{**one, "point": Point(*one["point"]) if one["point"] else None}) for one in said["timings"]]
        return cls(**{**said, "timings": timings, "ratios": [Ratio(**one) for one in said["ratios"]]})

    def finish(self, arguments: argparse.Namespace) -> int:
        """Print the table, write the JSON; 1 where all bars were asked for and one is not reached."""
        self.loads.append(load())
        chosen = {name: value for name, value in vars(arguments).items() if name not in ("json", "strict")}
        self.options = " ".join(f"--{name} {value}" for name, value in chosen.items())
        print(self.text())
        if arguments.json:
            Path(arguments.json).write_text(json.dumps(self.as_json(), indent=1) + "\n", encoding="utf-8")
        return 1 if arguments.strict and not self.reached else 0


def parser(description: str) -> argparse.ArgumentParser:
    """The options all benchmarks have."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--json", help="write the numbers to this file too")
    options.add_argument("--strict", action="store_true", help="exit with 1 when a bar is missed or undecided")
    options.add_argument("--seed", type=int, default=0)
    return options
