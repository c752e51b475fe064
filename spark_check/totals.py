"""What all row groups together say, and whether the counts reconcile."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegauge.conformance.judging.judge import RuleTally
from tidegauge.conformance.judging.verdicts import add_tallies


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
        """Every event and trace that came in was judged or is counted as malformed."""
        return (
            self.events_in == self.events_judged + self.events_malformed
            and self.traces_in == self.traces_judged + self.traces_malformed
        )

    @property
    def failed_rules(self) -> tuple[str, ...]:
        """The rules that fail somewhere."""
        return tuple(rule for rule, total in self.rules.items() if total.failed)


def sum_rules(rows: Iterable[Mapping[str, Any]]) -> dict[str, RuleTally]:
    """The tallies of all rows, rule by rule."""
    sums: dict[str, RuleTally] = {}
    for row in rows:
        for said in row["tallies"]:
            counts = {name: said[name] for name in ("held", "failed", "undecided", "failed_traces")}
            tally = RuleTally(**counts, missing=tuple(said["missing"]))
            sums[said["rule"]] = add_tallies(sums.get(said["rule"], RuleTally()), tally)
    return dict(sorted(sums.items()))
