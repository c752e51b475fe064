"""Makes the report that `check` gives from Parquet files that were judged on Spark.

Rules of this file

1. The report is the one of one process: the same rules, inputs and explanations, in the same order.
2. Workers return counts. Row groups whose failures are explained are judged once more on the driver: they are few.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tidegauge.conformance.judging.check import (
    CheckedInput,
    CheckOptions,
    JudgedBatch,
    Report,
    explain_failures,
    overall_verdict,
)
from tidegauge.conformance.judging.environment import lost_disk_notes
from tidegauge.conformance.judging.inputs import InputBatch
from tidegauge.conformance.judging.judge import RuleTally, judge
from tidegauge.conformance.judging.verdicts import add_tallies, rule_verdicts, run_verdict
from tidegauge.conformance.kernel.rule_ids import RULE_IDS
from tidegauge.spark_check.judging import SparkRun
from tidegauge.spark_check.place import open_parquet
from tidegauge.spark_check.result_row import ResultRow
from tidegauge.spark_check.totals import sum_rules
from tidegauge.traces.schema import MISSING


def report_of(run: SparkRun, how: CheckOptions) -> Report:
    """Return the report on a run over Parquet files."""
    inputs = tuple(_input(run, path) for path in run.files)
    tallies = {rule: RuleTally() for rule in RULE_IDS}
    for one in inputs:
        tallies = {verdict.rule.id: add_tallies(tallies[verdict.rule.id], verdict.tally) for verdict in one.rules}
    judged = tuple(_failing(run.rows, how))
    lost = [(node, row.where) for row in run.rows for node in row.lost_disks]
    resumed = [f"{run.resumed:,} of {len(run.rows):,} row groups had been judged before"] if run.resumed else []
    return Report(
        inputs=inputs,
        verdict=overall_verdict(inputs),
        rules=rule_verdicts(tallies),
        explanations=tuple(explain_failures(judged, how.explained)),
        failures=sum(tally.failed_traces for tally in tallies.values()),
        seconds=run.seconds,
        notes=(*lost_disk_notes(lost), *resumed),
    )


def _input(run: SparkRun, path: str) -> CheckedInput:
    if path not in run.heads:
        rules = rule_verdicts({rule: RuleTally() for rule in RULE_IDS})
        return CheckedInput(path, "Parquet", 0, 0, (run.unreadable[path],), rules=rules)
    rows = [row for row in run.rows if row.path == path]
    missing = tuple(run.heads[path].config.extra.get(MISSING, ()))
    rules = rule_verdicts({rule: RuleTally() for rule in RULE_IDS} | sum_rules(rows))
    events = sum(row.events for row in rows)
    return CheckedInput(
        path=path,
        kind="Parquet",
        traces=sum(row.traces for row in rows),
        events=events,
        problems=tuple(row.to_problem() for row in rows if row.problem),
        missing=missing,
        rules=rules,
        verdict=run_verdict(rules, events, whole=not missing),
    )


def _failing(rows: Sequence[ResultRow], how: CheckOptions) -> Iterator[JudgedBatch]:
    """Judge the first row groups with failures again, until there are enough failures to explain."""
    found = 0
    for row in rows:
        if row.failures and found < how.explained:
            with open_parquet(row.path) as opened:
                config = opened.config if how.profile is None else replace(opened.config, profile=how.profile)
                batch = InputBatch(row.where, opened.read(row.row_group), config)
            judgement = judge(batch.columns, config)
            found += len(judgement.failures)
            yield JudgedBatch(batch, judgement, row.path)
