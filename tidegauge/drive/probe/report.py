"""The report of a probe: as text, as JSON, as JUnit.

The JSON has every exchange in hex and in words, so that it can be read, or replayed, without the broker.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from tidegauge.conformance.judge.rulebook import rulebook
from tidegauge.conformance.report.results import FAIL, PASS, UNDECIDED, RunResults, counts_of
from tidegauge.drive.probe.check import Check
from tidegauge.drive.probe.connection import WireExchange
from tidegauge.drive.probe.run import CheckOutcome, CheckVerdict, ProbeRun
from tidegauge.util.junit import JUnitCase, JUnitOutcome, JUnitSuite, write_junit_xml
from tidegauge.util.untrusted_text import visible
from tidegauge.util.version import SUITE_VERSION

FORMAT_VERSION = 1
LONGEST = 120
"""Bytes of a request or response that a text shows at most."""

OPEN = (CheckVerdict.NOT_SUPPORTED, CheckVerdict.UNDECIDED)


def probe_text(run: ProbeRun) -> str:
    """Return the failures with the last request and response, then the checks without a decision, then the counts."""
    lines = []
    for outcome in run.outcomes:
        if outcome.verdict is CheckVerdict.FAIL:
            lines += [*_failure(outcome), ""]
    for verdict in OPEN:
        lines += [
            f"{verdict.value}: {outcome.check.id}: {outcome.says}" for outcome in run.outcomes if outcome.verdict is verdict
        ]
    lines += run.notes
    lines += [f"left: {name}: {why}; delete it by hand" for name, why in run.left.items()]
    counts = ", ".join(f"{run.count(verdict)} {verdict.value}" for verdict in CheckVerdict if run.count(verdict))
    ended = f", ended early: {run.not_run} checks were not run" if run.not_run else ""
    lines.append(f"{run.place}: {len(run.outcomes)} checks: {counts}; seed {run.seed}, suite {SUITE_VERSION}{ended}")
    return "\n".join(map(visible, lines))


def check_list(checks: Iterable[Check]) -> str:
    """Return the checks as a table: id, rule, sentence."""
    rows = [(check.id, check.rule or "-", check.says) for check in checks]
    width = max(len(row[0]) for row in rows)
    return "\n".join(f"{name:{width}}  {rule:9} {says}" for name, rule, says in rows)


def _failure(outcome: CheckOutcome) -> Iterable[str]:
    """Yield a failed check: its claim, rule, what was seen instead, and the last request with its response, in hex, too."""
    check = outcome.check
    yield f"FAIL {check.id}   {' '.join(filter(None, (check.rule, check.source)))}"
    yield f"  {check.says}"
    if check.rule:
        yield f"  {check.rule}: {rulebook()[check.rule].sentence}"
    yield f"  {outcome.says}"
    if outcome.exchanges:
        last = outcome.exchanges[-1]
        yield f"    sent      {last.call.name} version {last.call.version} to {last.to}: {message_text(last.call.body)}"
        yield f"              {_hex(last.sent)}"
        yield f"    received  {last.problem or message_text(last.response)}"
        if last.received is not None:
            yield f"              {_hex(last.received)}"


def _hex(data: bytes) -> str:
    return data.hex() if len(data) <= LONGEST else f"{data[:LONGEST].hex()}.. ({len(data)} bytes)"


def message_text(value: Any) -> str:
    """Return a message in one line: names and values, bytes in hex."""
    match value:
        case dict():
            return "{" + " ".join(f"{name}={message_text(inner)}" for name, inner in value.items()) + "}"
        case list():
            return "[" + " ".join(map(message_text, value)) + "]"
        case bytes():
            return _hex(value) or "no bytes"
        case UUID() | bool() | int():
            return str(value)
        case None:
            return "null"
        case _:
            return ascii(value)


def probe_json(run: ProbeRun, tool: str) -> str:
    """Return the whole run as JSON."""
    body = {
        "probe": FORMAT_VERSION,
        "tool": tool,
        "place": run.place,
        "seed": run.seed,
        "prefix": run.prefix,
        "offered": {name: [versions.start, versions.stop - 1] for name, versions in run.offered.items()},
        "counts": {verdict.value: run.count(verdict) for verdict in CheckVerdict},
        "checks": [_check(outcome) for outcome in run.outcomes],
        "removal": [_exchange(exchange) for exchange in run.cleanup],
        "left": dict(run.left),
        "notes": run.notes,
        "not_run": run.not_run,
    }
    return json.dumps(body, indent=1) + "\n"


def _check(outcome: CheckOutcome) -> Mapping[str, Any]:
    check = outcome.check
    return {
        "id": check.id,
        "rule": check.rule or None,
        "source": check.source,
        "says": check.says,
        "verdict": outcome.verdict.value,
        "reason": outcome.says,
        "exchanges": [_exchange(exchange) for exchange in outcome.exchanges],
    }


def _exchange(exchange: WireExchange) -> Mapping[str, Any]:
    return {
        "to": exchange.to,
        "request": exchange.call.name,
        "version": exchange.call.version,
        "asked": message_text(exchange.call.body),
        "sent": exchange.sent.hex(),
        "answered": None if exchange.response is None else message_text(exchange.response),
        "received": None if exchange.received is None else exchange.received.hex(),
        "problem": exchange.problem,
    }


def probe_results(run: ProbeRun, target: str) -> RunResults:
    """Return the results by rule; a check that is about none counts for its group."""
    verdicts: dict[str, list[str]] = {}
    for outcome in run.outcomes:
        rule = outcome.check.rule or f"probe.{outcome.check.id.partition('.')[0]}"
        verdicts.setdefault(rule, []).append(outcome.verdict.value)
    failures = tuple(f"{each.check.id}: {each.says}" for each in run.outcomes if each.verdict is CheckVerdict.FAIL)
    rules = {rule: counts_of(each) for rule, each in verdicts.items()}
    verdict = {0: PASS, 1: FAIL}.get(run.exit_code, UNDECIDED)
    return RunResults("probe", target or run.place, verdict, run.exit_code, rules, failures)


def write_probe_junit(run: ProbeRun, path: Path, tool: str) -> None:
    """Write a case per check; a check that was not decided is skipped."""
    suite = JUnitSuite(run.place, [_junit_case(outcome) for outcome in run.outcomes], {"seed": str(run.seed)})
    write_junit_xml(path, f"{tool} probe", [suite])


def _junit_case(outcome: CheckOutcome) -> JUnitCase:
    """Return the test case of a check; one that could not be decided is skipped."""
    classname, name = f"tidegauge.probe.{outcome.check.rule or 'wire'}", outcome.check.id
    if outcome.verdict is CheckVerdict.FAIL:
        return JUnitCase(classname, name, JUnitOutcome.FAILURE, outcome.says, "\n".join(map(visible, _failure(outcome))))
    if outcome.verdict in OPEN:
        return JUnitCase(classname, name, JUnitOutcome.SKIPPED, f"{outcome.verdict.value}: {outcome.says}")
    return JUnitCase(classname, name)
