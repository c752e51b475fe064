"""The results of a run as one JSON file, the artefact of `--results`: what was held against which suite, and each verdict.

Rules of this file

1. `check`, `drive` and `probe` write the same keys, by results.schema.json in this folder: validation/results makes one
   table of many.
2. A rule has the verdict of the worst that was seen of it. A check of the probe that is about no rule counts for its group,
   such as `probe.versions`.
3. The date is that of SOURCE_DATE_EPOCH where that is set: the same run makes the same bytes.
"""

import json
import os
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from tidegauge.conformance.checking.check import Report
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.util.files import replacing
from tidegauge.util.untrusted_text import shortened, visible, visible_lines
from tidegauge.util.version import PACKAGE_VERSION, SUITE_VERSION

FORMAT_VERSION = 1
PASS, FAIL, UNDECIDED, NOT_SUPPORTED, NOT_EXERCISED = "pass", "fail", "undecided", "not supported", "not exercised"
WORST_FIRST = (FAIL, UNDECIDED, PASS, NOT_SUPPORTED, NOT_EXERCISED)
"""The verdicts on a rule. What passes says more than what the target does not offer."""
FAILURES_KEPT, LONGEST_FAILURE = 50, 400
"""Failures that are kept, and characters of each at most."""
_VERDICTS = {  # in the artefact's words
    Verdict.PASS: PASS,
    Verdict.FAIL: FAIL,
    Verdict.INCONCLUSIVE: UNDECIDED,
    Verdict.NOT_EXERCISED: NOT_EXERCISED,
    Verdict.SUITE_ERROR: UNDECIDED,
}


class RuleCounts(NamedTuple):
    """The verdict on a rule, one of WORST_FIRST, and how many checks passed, failed and could not be decided."""

    verdict: str
    passed: int = 0
    failed: int = 0
    undecided: int = 0


class RunResults(NamedTuple):
    """The results of one run: its command (`check`, ..), and the target that was held against the suite, as NAME@VERSION.

    `failures` are texts, `coverage` is what `--coverage` writes, None if it was not asked for.
    """

    command: str
    target: str
    verdict: str
    exit_code: int
    rules: Mapping[str, RuleCounts]
    failures: tuple[str, ...] = ()
    coverage: Mapping[str, Any] | None = None


def counts_of(verdicts: Iterable[str]) -> RuleCounts:
    """Return the counts of a rule, and the worst as its verdict, from the verdicts of its single checks (WORST_FIRST).

    Without any check it is not exercised.
    """
    of_checks = list(verdicts)
    worst = next(verdict for verdict in WORST_FIRST if verdict in (of_checks or [NOT_EXERCISED]))
    return RuleCounts(worst, of_checks.count(PASS), of_checks.count(FAIL), of_checks.count(UNDECIDED))


def results_of_check(report: Report, target: str) -> RunResults:
    """Return the results of a `check`; `target` is what produced the traces, as NAME@VERSION."""
    rules = {
        rule.rule.id: RuleCounts(_VERDICTS[rule.verdict], rule.tally.held, rule.tally.failed, rule.tally.undecided)
        for rule in report.rules
    }
    failures = tuple(f"{explanation.rule.id}: {explanation.means}" for explanation in report.explanations)
    return RunResults("check", target, _VERDICTS[report.verdict], report.exit_code, rules, failures)


def write_results(results: RunResults, place: str | Path) -> None:
    """Write the artefact to the file `place`."""
    with replacing(place) as beside:
        beside.write_text(json.dumps(as_json(results), indent=1) + "\n", encoding="utf-8")


def as_json(results: RunResults) -> dict[str, Any]:
    """Return the artefact as plain data, by results.schema.json."""
    name, _, version = visible(results.target).partition("@")
    return {
        "results": FORMAT_VERSION,
        "tool": {"name": "tidegauge", "version": PACKAGE_VERSION, "suite": SUITE_VERSION},
        "command": results.command,
        "target": {"name": name, "version": version},
        "date": _date(),
        "environment": {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()},
        "verdict": results.verdict,
        "exit_code": results.exit_code,
        "rules": {name: counts._asdict() for name, counts in sorted(results.rules.items())},
        "failures": [shortened(visible_lines(text), LONGEST_FAILURE) for text in results.failures[:FAILURES_KEPT]],
        "coverage": results.coverage,
    }


def _date() -> str:
    """Return today's date, or that of SOURCE_DATE_EPOCH, with which a build can be repeated byte for byte."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else datetime.now(UTC)
    return moment.date().isoformat()


def results_schema() -> dict[str, Any]:
    """Return the JSON Schema of the artefact."""
    schema: dict[str, Any] = json.loads(
        files("tidegauge.conformance.report").joinpath("results.schema.json").read_text(encoding="utf-8")
    )
    return schema
