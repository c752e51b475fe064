"""docs/benchmarks.md, of the reports that are kept. Pure.

Rules of this file

1. A bar that was not reached is MISSED, in the table of its benchmark and in the count at the top.
2. Each report says its own day and load; machines that differ are told apart.
3. On a busy machine a bar is undecided, whichever side of it was seen: load does not slow two programs down alike.
"""

from collections.abc import Mapping, Sequence

from benchmarks.contents import BENCHMARKS, PLOTS, Benchmark
from benchmarks.machine import Machine
from benchmarks.measure import Ratio, Report, Timing
from validation.docs.tables import table

HEAD = """# Benchmarks

Made by `./run bench` from [its measurements](benchmarks.json), which has all timings. Times are medians, with the fastest
and the slowest, against a baseline in the same run ([the benchmarks](../benchmarks/README.md)). A curve joins medians; its
whiskers reach from the slowest to the fastest.
"""


def page(kept: Mapping[str, Report]) -> str:
    """The whole page, in the order of the list."""
    found = [(benchmark, kept[benchmark.name]) for benchmark in BENCHMARKS if benchmark.name in kept]
    lines = [HEAD, _bars(found), "", _machines(found), ""]
    return "\n".join([*lines, *(_section(benchmark, report) for benchmark, report in found)])


def _bars(found: Sequence[tuple[Benchmark, Report]]) -> str:
    """What became of all bars: a busy machine decides none. And what nobody has measured."""
    decided = [(benchmark, ratio) for benchmark, report in found if not report.busy for ratio in report.ratios]
    missed = [f"{ratio.name} ({benchmark.name})" for benchmark, ratio in decided if not ratio.reached]
    undecided = sum(len(report.ratios) for _, report in found if report.busy)
    says = [f"**{len(decided) - len(missed)} of {len(decided) + undecided} bars are reached.**"]
    says += [f"MISSED: {'; '.join(missed)}."] if missed else []
    says += [f"{undecided} are undecided: others kept the machine busy meanwhile."] if undecided else []
    left = [benchmark.name for benchmark in BENCHMARKS if all(benchmark is not one for one, _ in found)]
    says += [f"Not measured yet: {', '.join(left)}."] if left else []
    return " ".join(says)


def _machines(found: Sequence[tuple[Benchmark, Report]]) -> str:
    """A column for each machine, with what was measured on it."""
    machines: list[tuple[Machine, list[str]]] = []
    for benchmark, report in found:
        same = next((names for machine, names in machines if machine == report.machine), None)
        if same is None:
            machines.append((report.machine, [benchmark.name]))
        else:
            same.append(benchmark.name)
    whole = len(machines) == 1
    head = ["the machine", *("" if whole else ", ".join(names) for _, names in machines)]
    rows = list(dict.fromkeys(row for machine, _ in machines for row in machine))
    return table(head, [(row, *(machine.get(row, "unknown") for machine, _ in machines)) for row in rows])


def _section(benchmark: Benchmark, report: Report) -> str:
    lines = [f"## {report.title}", "", f"{benchmark.about} {_measured(benchmark.name, report)}", ""]
    for plot in PLOTS:
        if any(timing.point and timing.point.plot == plot.name for timing in report.timings):
            lines += [f"![{plot.title}](benchmarks/{plot.name}.svg)", ""]
    if report.ratios:
        rows = [(ratio.name, f"{ratio.value:,.2f}", _verdict(ratio, report)) for ratio in report.ratios]
        lines += [table(("ratio", "seen", "bar"), rows), ""]
    # No row for a timing on a curve, one that was taken once for a ratio, a stage and a copy: benchmarks.json has them.
    shown = [timing for timing in report.timings if not timing.point and timing.repetitions > 1]
    if rows := [_row(timing) for timing in shown if ": " not in timing.name]:
        lines += [table(("", "median s", "fastest to slowest", "per second"), rows), ""]
    lines += [f"* {note}" for note in report.notes]
    return "\n".join([*lines, ""])


def _row(timing: Timing) -> tuple[str, ...]:
    spread = f"{timing.fastest:.3f} to {timing.slowest:.3f}"
    return timing.name, f"{timing.seconds:.3f}", spread, f"{timing.rate:,.0f} {timing.unit}"


def _measured(name: str, report: Report) -> str:
    command = f"python -m benchmarks.{name} {report.options}"
    busy = ". **Others kept the machine busy**: neither the rates nor the ratios can be relied on" if report.busy else ""
    first, last = report.loads[0], report.loads[-1]
    return f"Measured on {report.day} by `{command}`, load {first} at the beginning and {last} at the end{busy}."


def _verdict(ratio: Ratio, report: Report) -> str:
    said = ratio.verdict.replace("MISSED", "**MISSED**").replace("bar ", "")
    return f"{said}, but undecided on a busy machine" if report.busy else said
