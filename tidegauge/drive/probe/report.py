"""The report of a run of the probe (ProbeRun): as text, as JSON, as JUnit XML, as results by rule.

A probe is a series of checks against a broker; a check has a verdict and its exchanges, each a request with its response.
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
"""Verdicts of checks that have neither passed nor failed."""


def probe_text(run: ProbeRun) -> str:
    """Return the report for a terminal: failures with their last request and response, undecided checks, notes, counts.

    Between the notes and the counts stand the topics that could not be deleted.
    """
    lines = []
    for outcome in run.outcomes:
        if outcome.verdict is CheckVerdict.FAIL:
            lines += [*_failure_lines(outcome), ""]
    for verdict in OPEN:
        lines += [
            f"{verdict.value}: {outcome.check.id}: {outcome.says}" for outcome in run.outcomes if outcome.verdict is verdict
        ]
    lines += run.notes
    lines += [f"left: {name}: {why}; delete it by hand" for name, why in run.left.items()]
    counts = ", ".join(f"{run.count(verdict)} {verdict.value}" for verdict in CheckVerdict if run.count(verdict))
    ended = f", ended early: {run.not_run} checks were not run" if run.not_run else ""
    lines.append(f"{run.place}: {len(run.outcomes)} checks: {counts}; seed {run.seed}, suite {SUITE_VERSION}{ended}")
    # The broker's strings may have control characters, which a terminal would obey.
    return "\n".join(map(visible, lines))


def check_list(checks: Iterable[Check]) -> str:
    """Return the checks as a table for a terminal, a line each: id, rule ("-" for none), sentence."""
    rows = [(check.id, check.rule or "-", check.says) for check in checks]
    width = max(len(row[0]) for row in rows)
    return "\n".join(f"{name:{width}}  {rule:9} {says}" for name, rule, says in rows)


def _failure_lines(outcome: CheckOutcome) -> Iterable[str]:
    """Yield the lines about a failed check: its sentence, its rule's, what was seen, the last request and its response.

    Request and response are given in words and in hex.
    """
    check = outcome.check
    # A check may have no rule; `source` is Kafka's class and method.
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
    """Return bytes in hex, of more than LONGEST only the first and the number of all."""
    return data.hex() if len(data) <= LONGEST else f"{data[:LONGEST].hex()}.. ({len(data)} bytes)"


def message_text(value: Any) -> str:
    """Return a decoded message, or a value in one, as one line: {name=value ...}, [value ...], bytes in hex."""
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
    """Return the whole run as JSON; `tool` is the name and version of this program."""
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
    """Return a check with its verdict and its exchanges, as the JSON has it."""
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
    """Return a request and its response as the JSON has them: `sent` and `received` are the frames in hex."""
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
    """Return the results that every command of the suite has: counts of verdicts by rule.

    A check without a rule of the catalog counts for its group, such as "probe.offsets". `target`: the user's name for the
    broker; "" for its address.
    """
    verdicts: dict[str, list[str]] = {}
    for outcome in run.outcomes:
        rule = outcome.check.rule or f"probe.{outcome.check.id.partition('.')[0]}"
        verdicts.setdefault(rule, []).append(outcome.verdict.value)
    rules = {rule: counts_of(rule_verdicts) for rule, rule_verdicts in verdicts.items()}
    failed = [outcome for outcome in run.outcomes if outcome.verdict is CheckVerdict.FAIL]
    failures = tuple(f"{outcome.check.id}: {outcome.says}" for outcome in failed)
    # 3, the exit code of a run in which no check was decided, is the third.
    verdict = {0: PASS, 1: FAIL}.get(run.exit_code, UNDECIDED)
    return RunResults("probe", target or run.place, verdict, run.exit_code, rules, failures)


def write_probe_junit(run: ProbeRun, path: Path, tool: str) -> None:
    """Write a JUnit file with a test case per check."""
    suite = JUnitSuite(run.place, [_junit_case(outcome) for outcome in run.outcomes], {"seed": str(run.seed)})
    write_junit_xml(path, f"{tool} probe", [suite])


def _junit_case(outcome: CheckOutcome) -> JUnitCase:
    """Return the test case of a check, named by its rule ("wire" for none) and id; one that is in OPEN is skipped."""
    classname, name = f"tidegauge.probe.{outcome.check.rule or 'wire'}", outcome.check.id
    if outcome.verdict is CheckVerdict.FAIL:
        details = "\n".join(map(visible, _failure_lines(outcome)))
        return JUnitCase(classname, name, JUnitOutcome.FAILURE, outcome.says, details)
    if outcome.verdict in OPEN:
        return JUnitCase(classname, name, JUnitOutcome.SKIPPED, f"{outcome.verdict.value}: {outcome.says}")
    return JUnitCase(classname, name)
