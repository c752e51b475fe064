"""Many artefacts of `--results` as one table: targets x rules, with the history of each target.

Rules of this file

1. A target is its name and the command that looked at it; its runs are in the order of version and date, the last is its
   column of the table.
2. The page is made from the artefacts alone: the same files, in any order, give the same bytes.
3. An artefact may come from anybody: it is held against its schema first, and its texts are escaped.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tidegauge.conformance.judge.rulebook import rulebook
from tidegauge.conformance.report.html import PageHead, environment, render_page
from tidegauge.conformance.report.results import FAIL, NOT_EXERCISED, NOT_SUPPORTED, PASS, UNDECIDED, results_schema
from tidegauge.conformance.report.timeline import Timelines
from tidegauge.util.errors import UsageError
from tidegauge.util.untrusted_text import visible

TEMPLATE = Path(__file__).with_name("page.html")
MARKS = {
    PASS: ("pass", "✓"),
    FAIL: ("fail", "✗"),
    UNDECIDED: ("open", "?"),
    NOT_SUPPORTED: ("none", "-"),
    NOT_EXERCISED: ("none", ""),
}
"""By verdict: the CSS class and the sign of a cell."""
LARGEST = 16_000_000
"""Bytes of an artefact."""


class Cell(NamedTuple):
    """A verdict on a rule: what the cell shows, and what it says when it is pointed at."""

    css_class: str
    mark: str
    says: str
    failed: int = 0


class Run(NamedTuple):
    """An artefact, and the rules whose verdicts are not those of the run before."""

    data: Mapping[str, Any]
    changed: Sequence[str] = ()

    @property
    def version(self) -> str:
        """The version of the target."""
        version: str = self.data["target"]["version"]
        return version

    def verdict(self, rule: str) -> str:
        """Return the verdict on a rule."""
        verdict: str = self.data["rules"].get(rule, {}).get("verdict", NOT_EXERCISED)
        return verdict

    def count(self, verdict: str) -> int:
        """Return the number of rules with a verdict."""
        return sum(counts["verdict"] == verdict for counts in self.data["rules"].values())

    def cell(self, rule: str) -> Cell:
        """Return the cell of a rule."""
        counts, verdict = self.data["rules"].get(rule, {}), self.verdict(rule)
        numbers = ", ".join(f"{counts[name]:,} {name}" for name in ("passed", "failed", "undecided") if counts.get(name))
        return Cell(*MARKS[verdict], f"{verdict}: {numbers}" if numbers else verdict, counts.get("failed", 0))


class TargetHistory(NamedTuple):
    """The runs of one target, the first to the last."""

    name: str
    command: str
    runs: Sequence[Run]

    @property
    def last(self) -> Run:
        """The run of its column."""
        return self.runs[-1]

    def unsteady(self) -> list[str]:
        """Return the rules that some run failed, or that changed between runs."""
        rules = {rule for run in self.runs for rule in run.data["rules"] if rule in run.changed or run.verdict(rule) == FAIL}
        return sorted(rules, key=_rule_order)


def read_artefacts(places: Iterable[Path]) -> list[Mapping[str, Any]]:
    """Read the artefacts in files, or in directories of them. Raises UsageError for what is none."""
    import jsonschema  # noqa: PLC0415  the schema is checked where pages are made, not where the package is used

    validator = jsonschema.Draft202012Validator(results_schema())
    artefacts: list[Mapping[str, Any]] = []
    for place in (file for each in places for file in (sorted(each.glob("*.json")) if each.is_dir() else [each])):
        expected = f"{place}: expected an artefact of --results"
        try:
            size, text = place.stat().st_size, "" if place.stat().st_size > LARGEST else place.read_text(encoding="utf-8")
            data: Any = json.loads(text) if text else f"{size:,} bytes"
            problem = next(validator.iter_errors(data), None)
        except (OSError, ValueError, RecursionError) as raised:
            raise UsageError(f"{expected}, seen {visible(str(raised))}; name another file") from None
        if problem is not None:
            where = "/".join(map(str, problem.absolute_path)) or "the whole"
            seen = f"{visible(problem.message)[:200]} at {visible(where)}"
            raise UsageError(f"{expected}, seen {seen}; make it with this version")
        artefacts.append(data)
    if not artefacts:
        raise UsageError("results: expected artefacts of --results, seen none; name files, or a directory of *.json")
    return artefacts


def histories(artefacts: Iterable[Mapping[str, Any]]) -> list[TargetHistory]:
    """Group artefacts by target, each with its runs in order."""
    by_target: dict[tuple[str, str], list[Run]] = {}
    # The text of an artefact comes last, so that the order of the files decides nothing.
    for data in sorted(artefacts, key=lambda data: (*_age(data), json.dumps(data, sort_keys=True))):
        by_target.setdefault((data["target"]["name"], data["command"]), []).append(Run(data))
    return [TargetHistory(*target, _with_changes(runs)) for target, runs in sorted(by_target.items())]


def _age(data: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what orders the runs of a target: numbers in a version count as numbers."""
    parts = re.split(r"(\d+)", data["target"]["version"])
    return tuple((part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts), data["date"]


def _with_changes(runs: Sequence[Run]) -> list[Run]:
    def changed(before: Run, after: Run) -> list[str]:
        # What is decided in one of them only has not changed: less was looked at, or more.
        rules = before.data["rules"].keys() & after.data["rules"].keys()
        differing = [rule for rule in rules if {before.verdict(rule), after.verdict(rule)} == {PASS, FAIL}]
        return sorted(differing, key=_rule_order)

    return [*runs[:1], *(Run(after.data, changed(before, after)) for before, after in pairwise(runs))]


def _rule_order(rule: str) -> tuple[int, str]:
    rules = list(rulebook())
    return (rules.index(rule) if rule in rules else len(rules)), rule


def matrix_page(artefacts: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of many artefacts."""
    targets = histories(artefacts)
    runs = [target.last for target in targets]
    exercised = {rule for run in runs for rule in run.data["rules"] if run.verdict(rule) != NOT_EXERCISED}
    suites = sorted({data["tool"]["suite"] for data in artefacts})
    head = PageHead(
        "Results",
        f"{len(targets)} targets",
        "none",
        f"{len(artefacts)} runs, {min(data['date'] for data in artefacts)} to {max(data['date'] for data in artefacts)}",
        [f"suite {suite}" for suite in suites],
    )
    return render_page(
        environment().from_string(TEMPLATE.read_text(encoding="utf-8")),
        head,
        Timelines(),
        targets=targets,
        rules=sorted(exercised, key=_rule_order),
        rulebook=rulebook(),
        marks=MARKS,
    )
