"""A report for programs: what is broken, then what was read, then rule by rule."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from tidegauge.conformance.judging.check import Report
from tidegauge.conformance.judging.explain import Explanation
from tidegauge.conformance.judging.tool import tool_version

VERSION = 1


def as_json(report: Report) -> dict[str, Any]:
    """The report as plain data, as schema.json beside this file has it. `version` changes when a key changes its meaning."""
    return {
        "version": VERSION,
        "tool": {"name": "tidegauge", "version": tool_version()},
        "verdict": report.verdict.value,
        "exit_code": report.exit_code,
        "failures": report.failures,
        "explanations": [_explanation(one) for one in report.explanations],
        "traces": report.traces,
        "events": report.events,
        "lost": report.lost,
        "seconds": round(report.seconds, 3),
        "inputs": [
            {
                "path": one.path,
                "kind": one.kind,
                "verdict": one.verdict.value,
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
    }


def _explanation(one: Explanation) -> dict[str, Any]:
    return {
        "rule": one.rule.id,
        "path": one.path,
        "means": one.means,
        "because": [{"says": cause.says, "event": cause.number, "at": cause.at} for cause in one.because],
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
    # half a surrogate pair, which JSON can say and UTF-8 cannot, becomes the escape it came from
    Path(path).write_text(json_text(report) + "\n", encoding="utf-8", errors="backslashreplace")


def json_text(report: Report) -> str:
    """The report as a JSON document."""
    return json.dumps(as_json(report), indent=2, ensure_ascii=False)


def schema_text() -> str:
    """The JSON Schema of the report."""
    return files("tidegauge.conformance.judging.report").joinpath("schema.json").read_text(encoding="utf-8")
