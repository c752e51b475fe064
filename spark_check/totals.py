"""The counts of all row groups together, and whether they reconcile."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegauge.conformance.judging.judge import RuleTally
from tidegauge.conformance.judging.verdicts import add_tallies
from tidegauge.spark_check.result_row import ResultRow


@dataclass(frozen=True)
class Totals:
    """`events_in` and `traces_in` come from the footers of the files, the other counts from the workers."""

    files: int
    unreadable_files: int
    row_groups: int
    resumed_row_groups: int
    events_in: int
    traces_in: int
    events_judged: int
    traces_judged: int
    events_malformed: int
    traces_malformed: int
    rules: Mapping[str, RuleTally]
    failures: tuple[Mapping[str, Any], ...]
    problems: tuple[str, ...]
    peak_bytes: int
    seconds: float = field(compare=False)

    @property
    def reconciles(self) -> bool:
        """Whether every event and trace of the footers was judged or is counted as malformed."""
        return (
            self.events_in == self.events_judged + self.events_malformed
            and self.traces_in == self.traces_judged + self.traces_malformed
        )

    @property
    def failed_rules(self) -> tuple[str, ...]:
        """The rules that fail somewhere."""
        return tuple(rule for rule, total in self.rules.items() if total.failed)


def sum_rules(rows: Iterable[ResultRow]) -> dict[str, RuleTally]:
    """Add up the tallies of rows, rule by rule."""
    sums: dict[str, RuleTally] = {}
    for row in rows:
        for tally in row.tallies:
            sums[tally.rule] = add_tallies(sums.get(tally.rule, RuleTally()), tally.tally())
    return dict(sorted(sums.items()))
