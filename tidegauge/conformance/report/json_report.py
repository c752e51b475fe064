"""A report for programs: what is broken, then what was read, then rule by rule.

Its `inputs` are the files that the paths hold, its `parts` what was judged, one for each cluster or file of traces.
"""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from tidegauge.conformance.checking.check import Report
from tidegauge.conformance.explain.explain import Explanation
from tidegauge.traces.problems import number_of
from tidegauge.util.untrusted_text import printable_json
from tidegauge.util.version import PACKAGE_VERSION, SUITE_VERSION

VERSION = 1


def as_json(report: Report) -> dict[str, Any]:
    """Return the report as plain data, by schema.json in this folder. `version` changes when a key changes its meaning."""
    return {
        "version": VERSION,
        "tool": {"name": "tidegauge", "version": PACKAGE_VERSION, "suite": SUITE_VERSION},
        "verdict": report.verdict.value,
        "exit_code": report.exit_code,
        "failures": report.failures,
        "explanations": [_explanation(explanation) for explanation in report.explanations],
        "traces": report.traces,
        "events": report.events,
        "lost": report.lost,
        "seconds": round(report.seconds, 3),
        "inputs": [
            {
                "path": file.path,
                "kind": file.kind,
                "system": file.system,
                "era": file.era,
                "release": file.release,
                "nodes": list(file.nodes),
                "read": file.read,
                "why": file.why,
            }
            for file in report.files
        ],
        "parts": [
            {
                "path": checked.path,
                "kind": checked.kind,
                "verdict": checked.verdict.value,
                "traces": checked.traces,
                "events": checked.events,
                "problems": number_of(checked.problems),
                "covered": list(checked.covered),
                "missing": list(checked.missing),
                "depends_on_order": {
                    rule: {"depends": count, "checks": checks} for rule, (count, checks) in checked.depends_on_order.items()
                },
            }
            for checked in report.inputs
        ],
        "problems": [str(problem) for problem in report.problems],
        "rules": [
            {
                "rule": rule.rule.id,
                "level": rule.rule.level,
                "sentence": rule.rule.sentence,
                "verdict": rule.verdict.value,
                "held": rule.tally.held,
                "failed": rule.tally.failed,
                "undecided": rule.tally.undecided,
                "missing": list(rule.tally.missing),
                "failed_traces": rule.tally.failed_traces,
                "after_loss": rule.tally.after_loss,
            }
            for rule in report.rules
        ],
        "notes": list(report.notes),
        **({} if report.story is None else report.story.as_json()),
    }


def _explanation(explanation: Explanation) -> dict[str, Any]:
    """Return the explanation of a failure as plain data."""
    return {
        "rule": explanation.rule.id,
        "path": explanation.path,
        "means": explanation.means,
        "because": [{"says": cause.says, "event": cause.number, "at": cause.at} for cause in explanation.because],
        "trace": explanation.trace,
        "tp": explanation.tp,
        "at": explanation.at,
        "event": {"node": explanation.event.node, "event": explanation.event.event, **explanation.event.fields},
        "compared": explanation.compared,
        "expected": explanation.expected,
        "actual": explanation.actual,
        "looks_like": [{"bug": bug, "says": says} for bug, says in explanation.bugs],
    }


def write_json(report: Report, path: str | Path) -> None:
    """Write the report to a file."""
    # Half a surrogate pair, which JSON can name and UTF-8 cannot hold, becomes the escape that it came from.
    Path(path).write_text(json_text(report) + "\n", encoding="utf-8", errors="backslashreplace")


def json_text(report: Report) -> str:
    """Return the report as a JSON document."""
    return printable_json(json.dumps(as_json(report), indent=2, ensure_ascii=False))


def schema_text() -> str:
    """Return the JSON Schema of the report."""
    return files("tidegauge.conformance.report").joinpath("schema.json").read_text(encoding="utf-8")
