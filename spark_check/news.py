"""What the rows of a batch say that is news, while files arrive.

Rules of this file

1. What is held is a tally per rule, however many files came.
2. A rule that fails for the first time is told in the words of a report: its row group is judged once more, here. One that
   fails again is a line per row group.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from tidegauge.conformance.judging.check import CheckOptions
from tidegauge.conformance.judging.explain import Explanation, explain, what_failed
from tidegauge.conformance.judging.judge import RuleTally, judge
from tidegauge.conformance.judging.verdicts import add_tallies
from tidegauge.spark_check.place import reader
from tidegauge.spark_check.result_row import ResultRow
from tidegauge.spark_check.totals import sum_rules
from tidegauge.traces.files.parquet import Unreadable
from tidegauge.traces.problems import Problem


@dataclass(frozen=True)
class Broken:
    """A rule that fails in a row group, in so many of its traces."""

    rule: str
    where: str
    traces: int
    explanation: Explanation | None = None

    def __str__(self) -> str:
        if self.explanation is None:
            return f"{self.rule:<10}fails in {self.traces:,} traces of {self.where}"
        return "\n".join((f"{self.rule:<10}{self.explanation.means}", *what_failed(self.explanation)))


@dataclass
class Tallied:
    """What has been judged so far."""

    how: CheckOptions
    files: int = 0
    traces: int = 0
    events: int = 0
    rules: dict[str, RuleTally] = field(default_factory=dict)

    def take(self, rows: Iterable[ResultRow]) -> Iterator[Broken | Problem | str]:
        """What is news in the rows of a batch; at last how much was judged, and what is broken."""
        rows = sorted(rows, key=lambda row: (row.path, row.row_group))
        if not rows:
            return
        for row in rows:
            if row.problem:
                yield row.to_problem()
            yield from self._broken(row)
            self.rules |= {
                rule: add_tallies(self.rules.get(rule, RuleTally()), one) for rule, one in sum_rules([row]).items()
            }
        self.files += len({row.fingerprint for row in rows})
        self.traces += sum(row.traces for row in rows)
        self.events += sum(row.events for row in rows)
        broken = [rule for rule, one in sorted(self.rules.items()) if one.failed]
        so_far = f"{self.files:,} files, {self.traces:,} traces, {self.events:,} events judged"
        yield f"{so_far}; broken: {', '.join(broken)}" if broken else so_far

    def _broken(self, row: ResultRow) -> Iterator[Broken]:
        failing = {tally.rule: tally.failed_traces for tally in row.tallies if tally.failed}
        first = [rule for rule in failing if not self.rules.get(rule, RuleTally()).failed]
        explained = _explained(row, first, self.how) if first else {}
        where = row.where
        for rule, traces in failing.items():
            yield Broken(rule, where, traces, explained.get(rule))


def _explained(row: ResultRow, rules: Iterable[str], how: CheckOptions) -> dict[str, Explanation]:
    """The first failures of rules in a row group, explained; none if another file is in its place by now."""
    try:
        with reader(row.path) as opened:
            config = opened.config if how.profile is None else replace(opened.config, profile=how.profile)
            columns = opened.read(row.row_group)
    except Unreadable:
        return {}
    failures = {failure.rule: failure for failure in reversed(judge(columns, config).failures)}
    source = row.where
    return {rule: explain(columns, config, failures[rule], source=source) for rule in rules if rule in failures}
