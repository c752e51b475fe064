"""What docs/benchmarks.md shows: which benchmarks, with sizes that take a quarter of an hour together, and which plots."""

from typing import NamedTuple


class Benchmark(NamedTuple):
    """A module of this folder, how the page runs it, and what it compares."""

    name: str
    arguments: tuple[str, ...]
    about: str


BENCHMARKS = (
    Benchmark(
        "judge_vs_tlc",
        ("--repetitions", "3"),
        "The same interleavings go to the judge, on one core, and to TLC, all in one run. A step is a transition.",
    ),
    Benchmark(
        "scaling",
        ("--files", "16", "--repetitions", "3"),
        "The judge over more events, on more cores, over longer runs and over more brokers.",
    ),
    Benchmark(
        "foreign_files",
        ("--repetitions", "3"),
        "`tidegauge check` over what others write, NDJSON and compressed Parquet with nulls; its stages, profiled.",
    ),
    Benchmark(
        "first_check",
        ("--repetitions", "1"),
        "`tidegauge check` of a million events on a machine that has never compiled the judge, and once more.",
    ),
    Benchmark(
        "spark_vs_process",
        ("--walks", "4000000", "--repetitions", "3"),
        "Interleavings as Parquet, judged by Spark on two cores and by one bare process.",
    ),
    Benchmark(
        "explorer_vs_tlc",
        ("--repetitions", "1"),
        "The same bounded models explored by the implementation and by TLC on one worker, to the same states.",
    ),
    Benchmark(
        "drive_over_stdio",
        ("--repetitions", "3"),
        "The covers of a driven broker through the reference behind a pipe, and in one process.",
    ),
)
NAMES = tuple(benchmark.name for benchmark in BENCHMARKS)

MILLION = 1_000_000


class Plot(NamedTuple):
    """A plot: its name in `Point.plot`, what it says, and the axis below; "" for rows of their own on a logarithmic axis."""

    name: str
    title: str
    below: str
    unit: float = 1


PLOTS = (
    Plot("baselines", "Steps of the model per second, one core (logarithmic)", ""),
    Plot("events", "From Parquet to verdict: events per second, by events and cores", "million events", MILLION),
    Plot("length", "Judging columns: events per second, by length and brokers", "steps of a run"),
)
