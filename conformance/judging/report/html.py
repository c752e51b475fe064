"""A report as one HTML page that needs nothing else: no network, no other file.

Rules of this file

1. What is said is in the page as text, and can be read without a script: what is broken first, then what led there, the
   rules, the input. The script adds the viewer: every event with the replicas' logs and the messages around it.
2. A page has a frame and a main part (page/frame.html, check.html, job.html); the viewer is the same part in each.
3. What stands in a trace is foreign text: it is escaped.
"""

import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tidegauge.conformance.judging.check import Report
from tidegauge.conformance.judging.explain import Explanation
from tidegauge.conformance.judging.report.timeline import Timelines, places
from tidegauge.conformance.judging.rulebook import releases_of
from tidegauge.conformance.judging.tool import tool_version
from tidegauge.conformance.judging.verdicts import Verdict
from tidegauge.traces.schema import Config

CLASS = {Verdict.FAIL: "fail", Verdict.INCONCLUSIVE: "open", Verdict.PASS: "pass", Verdict.NOT_EXERCISED: "none"}
SCRIPTS = ("timeline.js", "logs.js", "messages.js", "viewer.js")
PROBLEMS = 200
"""Problems shown; the others are counted."""


def write_html(report: Report, path: str | Path, title: str = "Tidegauge") -> None:
    """Write the page."""
    Path(path).write_text(page(report, title), encoding="utf-8", errors="backslashreplace")


def page(report: Report, title: str = "Tidegauge") -> str:
    """The whole page."""
    lines = Timelines()
    said = _said(report, lines)
    for place in places(report.judged):
        lines.of_trace(place)
    shown = {verdict: sum(rule.verdict is verdict for rule in report.rules) for verdict in CLASS}
    folded = [verdict for verdict in (Verdict.PASS, Verdict.NOT_EXERCISED) if shown[verdict]]
    main = asset("check.html").format(
        layout="beside" if report.explanations and lines.data else "",
        said=said,
        viewer=asset("viewer.html"),
        boxes="".join(_box(verdict, count, verdict not in folded) for verdict, count in shown.items() if count),
        hidden_rules=" ".join(f"hide-{CLASS[verdict]}" for verdict in folded),
        rules="".join(_rule_row(one) for verdict in CLASS for one in report.rules if one.verdict is verdict),
        inputs="".join(_input_row(one) for one in report.inputs),
        covered=_listed("Covered", (line for one in report.inputs for line in one.covered)) + _listed("Notes", report.notes),
        problems=_problems(report),
    )
    verdict = report.verdict.value, CLASS.get(report.verdict, "fail")
    return frame(title, verdict, _summary(report, lines), judged_by(one.batch.config for one in report.judged), main, lines)


def frame(title: str, verdict: tuple[str, str], summary: str, made: Sequence[str], main: str, lines: Timelines) -> str:
    """A page around its main part. `verdict` is the word and its class, `made` what it was judged by."""
    data = {"timelines": lines.data, "failures": lines.failures}
    return asset("frame.html").format(
        title=escape(title),
        style=asset("style.css"),
        verdict=escape(verdict[0]),
        verdict_class=verdict[1],
        summary=escape(summary),
        made="".join(f"<li>{escape(one)}</li>" for one in (*made, f"Tidegauge {tool_version()}")),
        main=main,
        data=json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/"),
        script='(() => {\n"use strict";\n' + "".join(map(asset, SCRIPTS)) + "})();",
    )


def asset(name: str) -> str:
    """The text of a part of the page."""
    return files("tidegauge.conformance.judging.report").joinpath("page", name).read_text(encoding="utf-8")


def judged_by(configs: Iterable[Config]) -> list[str]:
    """The releases and profiles that the configs name."""
    configs = list(configs)
    releases = dict.fromkeys(f"Kafka {name}" for config in configs for name in releases_of(config))
    return [*releases, *dict.fromkeys(f"profile {config.profile}" for config in configs)]


# ---------------------------------------------------------------------------------------------------------------------
# What is broken


def broken(explanations: Sequence[Explanation], lines: Timelines) -> str:
    """A card per failure, the first one open; their traces come on the page."""
    return "".join(_card(at, one, lines) for at, one in enumerate(explanations))


def _card(at: int, one: Explanation, lines: Timelines) -> str:
    timeline = lines.add_failure(one)
    name = lines.data[timeline]["trace"]
    number = one.place.row - one.place.rows.start + 1
    held = lines.holds(timeline)
    because = "".join(
        f'<li class="{"here" if cause.number == number else "step"}">'
        f"{_linked(one, name, cause.number, cause.number in held, cause.says, cause.at)}</li>"
        for cause in one.because
    )
    bugs = "".join(f"<dt>looks like</dt><dd><b>{escape(bug)}</b>: {escape(says)}</dd>" for bug, says in one.bugs)
    if not one.bugs and one.rule.bugs and releases_of(one.config):
        bugs = f"<dt>looks like</dt><dd>no bug that is known of {escape(', '.join(releases_of(one.config)))}</dd>"
    where = f"{one.trace} ({one.tp})" if one.tp and one.tp not in one.trace else one.trace
    return (
        f'<details class="failure" data-failure="{at}"{" open" if at == 0 else ""}>'
        f'<summary><span class="rule">{one.rule.id}</span> {escape(one.means)}</summary>'
        + (f'<h3>Because</h3><ol class="because">{because}</ol>' if because else "")
        + '<h3>The rule</h3><dl class="facts">'
        f"<dt>{one.rule.level}</dt><dd>{escape(one.rule.sentence)}</dd>"
        f"<dt>trace</dt><dd>{escape(where)}</dd>"
        f"<dt>at</dt><dd>{_linked(one, name, number, True, '', one.at)}</dd>"
        f'<dt>expected</dt><dd class="exp">{escape(one.compared)} {escape(one.expected)}</dd>'
        f'<dt>actual</dt><dd class="act">{escape(one.compared)} {escape(one.actual)}</dd>'
        f'{bugs}<dt>rule</dt><dd class="mono">{escape(one.rule.impl)}; Kafka {escape(one.rule.kafka)}</dd></dl></details>'
    )


def _linked(one: Explanation, trace: str, number: int, on_page: bool, says: str, at: str) -> str:
    """Words and the event they are about, as a link into the viewer where the event is on the page."""
    where = f'<span class="at"><b>event {number:,}</b> {escape(at)}</span>'
    words = f"{escape(says)} {where}" if says else where
    link = urlencode({"trace": trace, "event": number, "rule": one.rule.id})
    return f'<a href="#{escape(link)}">{words}</a>' if on_page else words


# ---------------------------------------------------------------------------------------------------------------------
# The rest


def _said(report: Report, lines: Timelines) -> str:
    """What is broken; else what keeps a report from a verdict; else that nothing is."""
    if report.explanations:
        more = report.failures - len(report.explanations)
        left = f", {more:,} of them not shown" if more else ""
        title = f"What is broken <small>{_counted(report.failures, 'failure')}{left}</small>"
        return f"<h2>{title}</h2>{broken(report.explanations, lines)}{_missing(report)}"
    holds = sum(rule.verdict is Verdict.PASS for rule in report.rules)
    if report.verdict is Verdict.PASS:
        return f'<h2>Nothing is broken</h2><p class="soft">{holds} rules hold, and nothing is known to be missing.</p>'
    return f"<h2>Nothing is known to be broken</h2><p>{holds} rules hold in what was read.</p>{_missing(report)}"


def _missing(report: Report) -> str:
    """What would have to be added for a verdict on everything that happened."""
    return _listed("What is missing", report.missing)


def _listed(title: str, lines: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<h3>{title}</h3><ul class="plain">{items}</ul>' if items else ""


def _summary(report: Report, lines: Timelines) -> str:
    words = f"{_counted(report.traces, 'trace')}, {_counted(report.events, 'event')}, {report.seconds:.1f} s"
    return f"{words}; {_counted(lines.left_out, 'trace')} not on this page" if lines.left_out else words


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'s' * (number != 1)}"


def _input_row(one: Any) -> str:
    cells = (one.path, one.kind, one.verdict.value, f"{one.traces:,}", f"{one.events:,}", f"{len(one.problems):,}")
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _box(verdict: Verdict, count: int, checked: bool) -> str:
    says = f"{count} {verdict.value.lower()}"
    return f'<label><input type="checkbox" data-show="{CLASS[verdict]}"{" checked" if checked else ""}> {says}</label>'


def _rule_row(one: Any) -> str:
    return (
        f'<tr class="{CLASS[one.verdict]}"><td class="id">{one.rule.id}</td>'
        f'<td class="verdict">{one.verdict.value}</td><td>{escape(one.rule.sentence)}'
        f'<div class="says">{one.rule.level}: {escape(one.says)}</div></td></tr>'
    )


def _problems(report: Report) -> str:
    if not report.problems:
        return ""
    text = "\n".join(escape(str(problem)) for problem in report.problems[:PROBLEMS])
    more = len(report.problems) - PROBLEMS
    return (
        f"<section><h2>Bad input</h2><p>{len(report.problems):,} problems, {report.lost:,} events left out."
        f"{f' {more:,} problems are not shown.' if more > 0 else ''}</p><pre>{text}</pre></section>"
    )
