"""The step of the main job that needs Spark: interleavings generated and judged there."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidegauge.conformance.judge.fields import RULE_IDS
from tidegauge.impl.explorer.explore import Bounds, explore
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.spark_check.generation import Order, generate_on_spark
from tidegauge.spark_check.judging import Totals, judge_on_spark
from tidegauge.spark_check.session import session
from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats.parquet import write
from tidegauge.traces.from_model.impl_walks import impl_walks
from tidegauge.traces.from_model.walks import edge_table, generate
from tidegauge.util.workers import Echo
from validation.main_job.job import JobCase, StepResult
from validation.random_runs import MISSED_EPOCH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDED_FAULT = "hw-is-own-log-end"
FAULTY_WALKS = 20_000
BEYOND_WALKS = 250
BEYOND_PARTS = 4
BEYOND_STEPS = 80


def interleavings_judged(directory: Path, walks: int, seed: int, echo: Echo) -> StepResult:
    """Judge `walks` distinct interleavings of Small, random runs of `impl` and the traces of one fault, all on Spark."""
    order = Order(walks=walks, seed=seed)
    with session() as spark:
        parts = generate_on_spark(directory / "interleavings", order, spark=spark)
        generated = sum(part.traces for part in parts)
        events = sum(part.events for part in parts)
        echo(
            f"      seed {seed}: {generated:,} distinct interleavings, {events:,} events, "
            f"{sum(part.duplicates for part in parts):,} duplicates dropped"
        )
        right = _judged(spark, [part.path for part in parts])
        echo(f"      judged {right.events_judged:,} events in {right.seconds:.1f} s on Spark")
        # Small has two brokers and every interleaving; these have three, and steps far beyond its bounds.
        beyond = _beyond(spark, directory, seed)
        repaired = _judged(spark, beyond["repaired"])
        as_it_is = _judged(spark, beyond["fetch-truncation"])
        faulty = directory / f"{SEEDED_FAULT}.parquet"
        _faulty_walks(faulty, order, seed)
        wrong = _judged(spark, [faulty])
    cases = (
        JobCase("as many interleavings as asked for, all distinct", generated == walks, f"{generated:,} of {walks:,}"),
        JobCase("counts reconcile", all(t.reconciles for t in (right, repaired, as_it_is, wrong)), _counts(right)),
        JobCase("no rule fails on an interleaving", _clean(right), _failing(right)),
        JobCase("no rule fails on three brokers beyond the explored bounds, repaired", _clean(repaired), _failing(repaired)),
        JobCase(
            "as Kafka is, only the known finding shows there", set(as_it_is.failed_rules) <= MISSED_EPOCH, _failing(as_it_is)
        ),
        JobCase(f"the seeded fault {SEEDED_FAULT} is found", bool(wrong.failed_rules), _failing(wrong)),
    )
    exercised = sum(right.rules[rule].held > 0 for rule in RULE_IDS if rule in right.rules)
    return StepResult(
        f"{right.traces_judged:,} distinct interleavings, {right.events_judged:,} events, {exercised} rules exercised; "
        f"{repaired.traces_judged + as_it_is.traces_judged:,} runs of three brokers beyond the bounds; "
        f"the seeded fault breaks {len(wrong.failed_rules)} rules",
        cases,
        {
            "seed": seed,
            "interleavings": right.traces_judged,
            "events": right.events_judged,
            "malformed": right.events_malformed,
            "seconds_judging": round(right.seconds, 2),
            "beyond": {
                "traces": repaired.traces_judged + as_it_is.traces_judged,
                "events": repaired.events_judged + as_it_is.events_judged,
                "as_it_is_fails": {rule: as_it_is.rules[rule].failed_traces for rule in as_it_is.failed_rules},
            },
            "fault": {"name": SEEDED_FAULT, "failed_rules": list(wrong.failed_rules)},
        },
    )


def _beyond(spark: "SparkSession", directory: Path, seed: int) -> dict[str, list[Path]]:
    """Write runs of three brokers beyond the explored graphs, under the repaired rule and as Kafka is; one task a file."""

    def run(number: int) -> None:
        profile, path = orders[number]
        runs = list(impl_walks(BEYOND_WALKS, profile=profile, steps=BEYOND_STEPS, seed=seed + number))
        write(to_columns(runs, runs[0].config), runs[0].config, path)

    profiles = ("repaired", "fetch-truncation") * BEYOND_PARTS
    orders = [(profile, directory / f"beyond-{number}.parquet") for number, profile in enumerate(profiles)]
    spark.sparkContext.parallelize(range(len(orders)), len(orders)).foreach(run)
    return {wanted: [path for profile, path in orders if profile == wanted] for wanted in profiles}


def _judged(spark: "SparkSession", paths: Sequence[str | Path]) -> Totals:
    return judge_on_spark(paths, spark=spark)


def _faulty_walks(path: Path, order: Order, seed: int) -> None:
    # Tight bounds: the fault shows there, and its graph is explored in a moment.
    order = replace(order, bounds=Bounds(2, 1, 1, 0))
    graph = explore(order.bounds, order.profile, FAULTS[SEEDED_FAULT].rules)
    table = edge_table(graph.states, graph.labels, graph.edges, order.profile, source=f"fault {SEEDED_FAULT}")
    generate(table, path, FAULTY_WALKS, seed=seed)


def _clean(totals: Totals) -> bool:
    return totals.events_judged > 0 and not totals.failed_rules and totals.events_malformed == 0 and not totals.problems


def _counts(totals: Totals) -> str:
    return f"{totals.events_in:,} events in = {totals.events_judged:,} judged + {totals.events_malformed:,} malformed"


def _failing(totals: Totals) -> str:
    if not totals.failed_rules:
        return "no rule fails"
    return ", ".join(f"{rule} fails in {totals.rules[rule].failed_traces:,} traces" for rule in totals.failed_rules)
