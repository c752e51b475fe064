"""The plots of docs/benchmarks.md, as SVG. Pure: timings in, text out.

Rules of this file

1. An axis of rates begins at zero, or is logarithmic and says so. A curve is drawn through medians, from the fastest to the
   slowest of each.
2. Text and lines have colours that are read on white and on black; behind them is nothing. A marker of its own tells each
   curve without its colour.
3. The same timings give the same bytes with the same Matplotlib: no date, no random ids, text as text.
"""

import io
from collections.abc import Iterable, Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from benchmarks.contents import MILLION, Plot
from benchmarks.measure import Report, Timing

GREY, FAINT = "#6e7681", "#6e768155"
CURVES = (("#1f77d0", "o"), ("#d1600f", "s"), ("#2c974b", "^"), ("#a05ad0", "D"))
STYLE = {
    "svg.hashsalt": "tidegauge",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": GREY,
    "axes.labelcolor": GREY,
    "axes.edgecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": FAINT,
    "legend.frameon": False,
}


def drawn(plot: Plot, reports: Iterable[Report]) -> str:
    """The SVG of a plot; "" where no timing has a place in it."""
    shown = [
        (report, timing)
        for report in reports
        for timing in report.timings
        if timing.point and timing.point.plot == plot.name
    ]
    if not shown:
        return ""
    found = [timing for _, timing in shown]
    busy = "; on a busy machine" if any(report.busy for report, _ in shown) else ""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 3.4 if plot.below else 2.4), layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.add_subplot()
        axes.patch.set_alpha(0)
        axes.set_title(f"{plot.title}{busy}", loc="left", fontsize=11)
        if plot.below:
            _curves(axes, plot, found)
        else:
            _rows(axes, found)
        out = io.StringIO()
        FigureCanvasSVG(figure).print_svg(out, metadata={"Date": None, "Creator": None})
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _curves(axes: Axes, plot: Plot, timings: Sequence[Timing]) -> None:
    names = dict.fromkeys(timing.point.curve for timing in timings if timing.point)
    for (colour, marker), name in zip(CURVES, names, strict=False):
        of = [(timing.point.at / plot.unit, timing) for timing in timings if timing.point and timing.point.curve == name]
        rates = [timing.rate / MILLION for _, timing in of]
        reach = [
            [timing.rate / MILLION - timing.work / timing.slowest / MILLION for _, timing in of],
            [timing.work / timing.fastest / MILLION - timing.rate / MILLION for _, timing in of],
        ]
        axes.errorbar([at for at, _ in of], rates, reach, color=colour, marker=marker, label=name, capsize=3, elinewidth=1)
    at = sorted({timing.point.at / plot.unit for timing in timings if timing.point})
    axes.set_xscale("log")
    axes.set_xticks(at, [f"{value:,.0f}" for value in at])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"{plot.below} (logarithmic)")
    axes.set_ylabel("million events per second")
    axes.grid(axis="y")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def _rows(axes: Axes, timings: Sequence[Timing]) -> None:
    ordered = sorted(timings, key=lambda timing: timing.rate)
    colour, marker = CURVES[0]
    for row, timing in enumerate(ordered):
        rates = (timing.work / timing.slowest, timing.work / timing.fastest)
        axes.plot(rates, (row, row), color=colour, linewidth=1)
        axes.plot(timing.rate, row, color=colour, marker=marker)
        axes.annotate(f"{timing.rate:,.0f}", (timing.rate, row), (0, 7), textcoords="offset points", ha="center", fontsize=9)
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.set_yticks(range(len(ordered)), [timing.point.curve for timing in ordered if timing.point])
    axes.set_ylim(-0.5, len(ordered) - 0.3)
    axes.margins(x=0.1)
    axes.grid(axis="x")
