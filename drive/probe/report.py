"""What a probe found: as text, as JSON, as JUnit.

The JSON has every exchange in hex and in words, so that it can be read, or played again, without the broker.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from tidegauge.conformance.judging.junit_xml import JUnitCase, JUnitOutcome, JUnitSuite, write_junit_xml
from tidegauge.conformance.judging.rulebook import rulebook
from tidegauge.drive.probe.check import Check
from tidegauge.drive.probe.connection import Exchange
from tidegauge.drive.probe.run import Outcome, Probed, Verdict

VERSION = 1
LONGEST = 120
"""How many bytes of a request or response a text shows."""

OPEN = (Verdict.NOT_SUPPORTED, Verdict.UNDECIDED)


def text(found: Probed) -> str:
    """Failures with what was sent and received, then what was not decided, then the count."""
    lines = []
    for one in found.outcomes:
        if one.verdict is Verdict.FAIL:
            lines += [*_failure(one), ""]
    for verdict in OPEN:
        lines += [f"{verdict.value}: {one.check.id}: {one.says}" for one in found.outcomes if one.verdict is verdict]
    lines += [f"left: {name}: {why}; delete it by hand" for name, why in found.left.items()]
    counts = ", ".join(f"{found.count(verdict)} {verdict.value}" for verdict in Verdict if found.count(verdict))
    lines.append(f"{found.place}: {len(found.outcomes)} checks: {counts}; seed {found.seed}")
    return "\n".join(lines)


def listed(checks: Iterable[Check]) -> str:
    """Checks as a table: id, rule, what it says."""
    rows = [(check.id, check.rule or "-", check.says) for check in checks]
    width = max(len(row[0]) for row in rows)
    return "\n".join(f"{name:{width}}  {rule:9} {says}" for name, rule, says in rows)


def _failure(one: Outcome) -> Iterable[str]:
    check = one.check
    yield f"FAIL {check.id}   {' '.join(filter(None, (check.rule, check.source)))}"
    yield f"  {check.says}"
    if check.rule:
        yield f"  {check.rule}: {rulebook()[check.rule].sentence}"
    yield f"  {one.says}"
    if one.exchanges:
        last = one.exchanges[-1]
        yield f"    sent      {last.call.name} version {last.call.version} to {last.to}: {words(last.call.body)}"
        yield f"              {_hex(last.sent)}"
        yield f"    received  {last.problem or words(last.response)}"
        if last.received is not None:
            yield f"              {_hex(last.received)}"


def _hex(data: bytes) -> str:
    return data.hex() if len(data) <= LONGEST else f"{data[:LONGEST].hex()}.. ({len(data)} bytes)"


def words(value: Any) -> str:
    """A message in one line: names and values, bytes in hex."""
    match value:
        case dict():
            return "{" + " ".join(f"{name}={words(inner)}" for name, inner in value.items()) + "}"
        case list():
            return "[" + " ".join(map(words, value)) + "]"
        case bytes():
            return _hex(value) or "no bytes"
        case UUID() | bool() | int():
            return str(value)
        case None:
            return "null"
        case _:
            return ascii(value)


def as_json(found: Probed, tool: str) -> str:
    """Everything."""
    body = {
        "probe": VERSION,
        "tool": tool,
        "place": found.place,
        "seed": found.seed,
        "prefix": found.prefix,
        "offered": {name: [versions.start, versions.stop - 1] for name, versions in found.offered.items()},
        "counts": {verdict.value: found.count(verdict) for verdict in Verdict},
        "checks": [_check(one) for one in found.outcomes],
        "removal": [_exchange(one) for one in found.removal],
        "left": dict(found.left),
    }
    return json.dumps(body, indent=1) + "\n"


def _check(one: Outcome) -> Mapping[str, Any]:
    check = one.check
    return {
        "id": check.id,
        "rule": check.rule or None,
        "source": check.source,
        "says": check.says,
        "verdict": one.verdict.value,
        "reason": one.says,
        "exchanges": [_exchange(exchange) for exchange in one.exchanges],
    }


def _exchange(one: Exchange) -> Mapping[str, Any]:
    return {
        "to": one.to,
        "request": one.call.name,
        "version": one.call.version,
        "asked": words(one.call.body),
        "sent": one.sent.hex(),
        "answered": None if one.response is None else words(one.response),
        "received": None if one.received is None else one.received.hex(),
        "problem": one.problem,
    }


def write_junit(found: Probed, path: Path, tool: str) -> None:
    """Write a case per check; a check that was not decided is skipped."""
    suite = JUnitSuite(found.place, [_junit_case(outcome) for outcome in found.outcomes], {"seed": str(found.seed)})
    write_junit_xml(path, f"{tool} probe", [suite])


def _junit_case(outcome: Outcome) -> JUnitCase:
    classname, name = f"tidegauge.probe.{outcome.check.rule or 'wire'}", outcome.check.id
    if outcome.verdict is Verdict.FAIL:
        return JUnitCase(classname, name, JUnitOutcome.FAILURE, outcome.says, "\n".join(_failure(outcome)))
    if outcome.verdict in OPEN:
        return JUnitCase(classname, name, JUnitOutcome.SKIPPED, f"{outcome.verdict.value}: {outcome.says}")
    return JUnitCase(classname, name)
