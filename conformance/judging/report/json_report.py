"""A report for programs."""

import json
from pathlib import Path
from typing import Any

from tidegauge.conformance.judging.check import Report
from tidegauge.conformance.judging.explain import Explanation

VERSION = 1


def as_json(report: Report) -> dict[str, Any]:
    """The report as plain data. `version` changes when a key changes its meaning."""
    return {
        "version": VERSION,
        "verdict": report.verdict.value,
        "exit_code": report.exit_code,
        "traces": report.traces,
        "events": report.events,
        "lost": report.lost,
        "seconds": round(report.seconds, 3),
        "inputs": [
            {
                "path": one.path,
                "kind": one.kind,
                "traces": one.traces,
                "events": one.events,
                "problems": len(one.problems),
                "covered": list(one.covered),
                "missing": list(one.missing),
            }
            for one in report.inputs
        ],
        "problems": [str(problem) for problem in report.problems],
        "rules": [
            {
                "rule": one.rule.id,
                "level": one.rule.level,
                "sentence": one.rule.sentence,
                "verdict": one.verdict.value,
                "held": one.tally.held,
                "failed": one.tally.failed,
                "undecided": one.tally.undecided,
                "missing": list(one.tally.missing),
                "failed_traces": one.tally.failed_traces,
                "after_loss": one.tally.after_loss,
            }
            for one in report.rules
        ],
        "notes": list(report.notes),
        "failures": report.failures,
        "explanations": [_explanation(one) for one in report.explanations],
    }


def _explanation(one: Explanation) -> dict[str, Any]:
    return {
        "rule": one.rule.id,
        "trace": one.trace,
        "tp": one.tp,
        "at": one.at,
        "event": {"node": one.event.node, "event": one.event.event, **one.event.fields},
        "compared": one.compared,
        "expected": one.expected,
        "actual": one.actual,
        "looks_like": [{"bug": bug, "says": says} for bug, says in one.bugs],
    }


def write_json(report: Report, path: str | Path) -> None:
    """Write the report to a file."""
    Path(path).write_text(json.dumps(as_json(report), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
