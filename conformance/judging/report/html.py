"""A report as one HTML page that needs nothing else: no network, no other file.

The page holds the verdicts as a table and each explained failure as data; `page.js` draws a lane per replica, its log to
scale, a colour per leader epoch, the high watermark as a line, and steps through the events with the arrow keys.
"""

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from tidegauge.conformance.judging.check import Report
from tidegauge.conformance.judging.events import IN_FLIGHT, event_words, members
from tidegauge.conformance.judging.explain import Explanation
from tidegauge.conformance.judging.replay import ReplayedReplica, Snapshot
from tidegauge.conformance.judging.verdicts import Verdict
from tidegauge.traces.schema import Config

_CLASS = {Verdict.PASS: "pass", Verdict.FAIL: "fail", Verdict.INCONCLUSIVE: "open", Verdict.NOT_EXERCISED: "none"}


def write_html(report: Report, path: str | Path, title: str = "Tidegauge") -> None:
    """Write the page."""
    Path(path).write_text(page(report, title), encoding="utf-8", errors="backslashreplace")


def page(report: Report, title: str = "Tidegauge") -> str:
    """The whole page."""
    return asset("page.html").format(
        title=escape(title),
        style=asset("page.css"),
        script=asset("page.js"),
        data=failures_as_json(report.explanations),
        verdict=escape(report.verdict.value),
        verdict_class=_CLASS.get(report.verdict, "fail"),
        summary=_summary(report),
        inputs="".join(_input_row(one) for one in report.inputs),
        rules="".join(_rule_row(one) for one in report.rules),
        problems=_missing(report) + _problems(report),
        hidden="" if report.explanations else "hidden",
        failures=f"{len(report.explanations)} of {report.failures:,}",
    )


def failures_as_json(explanations: Sequence[Explanation]) -> str:
    """What `page.js` draws, safe inside a script element."""
    return json.dumps([failure_data(one) for one in explanations], ensure_ascii=False).replace("</", "<\\/")


def asset(name: str) -> str:
    """The text of a file beside this one."""
    return files("tidegauge.conformance.judging.report").joinpath(name).read_text(encoding="utf-8")


def _summary(report: Report) -> str:
    counts = {verdict: sum(rule.verdict is verdict for rule in report.rules) for verdict in Verdict}
    parts = [f"{counts[verdict]} {verdict.value.lower()}" for verdict in _CLASS if counts[verdict]]
    return escape(f"{report.traces:,} traces, {report.events:,} events, {report.seconds:.1f} s. Rules: {', '.join(parts)}.")


def _input_row(one: Any) -> str:
    cells = (one.path, one.kind, f"{one.traces:,}", f"{one.events:,}", f"{len(one.problems):,}")
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _rule_row(one: Any) -> str:
    bugs = ", ".join(one.rule.bugs) if one.verdict is Verdict.FAIL else ""
    return (
        f'<tr class="{_CLASS[one.verdict]}"><td class="id">{one.rule.id}</td><td>{one.rule.level}</td>'
        f'<td class="verdict">{one.verdict.value}</td><td>{escape(one.rule.sentence)}'
        f'<div class="says">{escape(one.says)}{escape("; looks like " + bugs) if bugs else ""}</div></td></tr>'
    )


def _missing(report: Report) -> str:
    """How much the verdict rests on, and what would have to be added."""
    covered = "".join(f"<li>{escape(said)}</li>" for one in report.inputs for said in one.covered)
    lacks = "".join(f"<li>{escape(said)}</li>" for said in (*report.missing, *report.notes))
    parts = [f"<h2>Covered</h2><ul>{covered}</ul>" if covered else "", f"<h2>Missing</h2><ul>{lacks}</ul>" if lacks else ""]
    return f"<section>{''.join(parts)}</section>" if any(parts) else ""


def _problems(report: Report) -> str:
    if not report.problems:
        return ""
    lines = "\n".join(escape(str(problem)) for problem in report.problems[:200])
    return (
        f"<section><h2>Bad input</h2><p>{len(report.problems):,} problems, {report.lost:,} events left out.</p>"
        f"<pre>{lines}</pre></section>"
    )


# ---------------------------------------------------------------------------------------------------------------------
# A failure as data


def failure_data(one: Explanation) -> dict[str, Any]:
    """What the page needs to draw one failure."""
    return {
        "rule": one.rule.id,
        "level": one.rule.level,
        "sentence": one.rule.sentence,
        "trace": one.trace,
        "tp": one.tp,
        "at": one.at,
        "compared": one.compared,
        "expected": one.expected,
        "actual": one.actual,
        "impl": one.rule.impl,
        "kafka": one.rule.kafka,
        "bugs": [{"bug": bug, "says": says} for bug, says in one.bugs],
        "leftOut": one.left_out,
        "nodes": list(one.config.nodes),
        "before": _snapshot(one.before, one.config),
        "steps": [
            {
                "number": step.number,
                "node": step.event.node,
                "event": step.event.event,
                "words": event_words(step.event),
                "at": step.event.at,
                "time": step.event.time or "",
                "after": _snapshot(step.after, one.config),
            }
            for step in one.steps
        ],
    }


def _snapshot(snapshot: Snapshot, config: Config) -> dict[str, Any]:
    nodes = config.nodes
    leader = snapshot.leader
    return {
        "replicas": [_replica(replica, config) for replica in snapshot.replicas],
        "leader": nodes[leader] if leader is not None and 0 <= leader < len(nodes) else None,
        "epoch": snapshot.leader_epoch,
        "isr": None if snapshot.isr is None else list(members(snapshot.isr, config)),
        "flying": [{"follower": nodes[f], "leader": nodes[to], "what": IN_FLIGHT[kind]} for f, to, kind in snapshot.flying],
    }


def _replica(replica: ReplayedReplica, config: Config) -> dict[str, Any]:
    return {
        "up": replica.up,
        "role": replica.role,
        "epoch": replica.epoch,
        "leo": replica.leo,
        "hw": replica.hw,
        "start": replica.log_start or 0,
        "epochs": None if replica.epochs is None else [list(pair) for pair in replica.epochs],
        "isr": None if replica.isr is None or replica.role != 1 else list(members(replica.isr, config)),
        "proposed": list(members(replica.proposed, config)) if replica.proposed and replica.role == 1 else None,
    }
