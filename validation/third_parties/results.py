"""Keeps the results of the probe at each third party in results.json: a verdict per check, with the values compared.

What differs from run to run without meaning anything is left out: addresses, numbers of requests, the time of day.
"""

import json
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from string import ascii_uppercase
from typing import NamedTuple

from tidegauge.drive.probe.run import ProbeRun

RESULTS_FILE = Path(__file__).with_name("results.json")
PLACE = re.compile(r" to (?:127\.0\.0\.1|localhost):\d+")
TIME, NOW, AN_HOUR = re.compile(r"\b\d{13}\b"), "the time of the run", 3_600_000
TOPIC_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
SEEN = re.compile(r"request \d+; seen one to \d+")


class CheckResult(NamedTuple):
    """A check: its id, its rule ("" where there is none), its verdict, and what was expected and seen."""

    id: str
    rule: str
    verdict: str
    says: str


class ThirdPartyResult(NamedTuple):
    """A run: of which third party, in which version, on which day, with which seed."""

    party: str
    version: str
    day: str
    seed: int
    checks: tuple[CheckResult, ...]


def result_of(party: str, version: str, when: datetime, run: ProbeRun) -> ThirdPartyResult:
    """Return what is kept of a run."""
    checks = (
        CheckResult(outcome.check.id, outcome.check.rule, outcome.verdict.value, plain(outcome.says, when))
        for outcome in run.outcomes
    )
    return ThirdPartyResult(party, version, when.date().isoformat(), run.seed, tuple(checks))


def plain(says: str, when: datetime) -> str:
    """Return a text without what differs from run to run."""
    says = SEEN.sub("one request; seen one to another", PLACE.sub("", says))
    # Topic ids are random; letters in the order of their appearance keep different ones apart.
    letters = dict(zip(dict.fromkeys(TOPIC_ID.findall(says)), ascii_uppercase, strict=False))
    says = TOPIC_ID.sub(lambda match: f"topic {letters[match[0]]}", says)
    return TIME.sub(lambda match: NOW if abs(int(match[0]) - when.timestamp() * 1000) < AN_HOUR else match[0], says)


def read_results(path: Path = RESULTS_FILE) -> list[ThirdPartyResult]:
    """Read the results that are kept."""
    if not path.is_file():
        return []
    results = json.loads(path.read_text(encoding="utf-8"))
    return [
        ThirdPartyResult(**{**result, "checks": tuple(CheckResult(*check) for check in result["checks"])})
        for result in results
    ]


def write_results(results: Iterable[ThirdPartyResult], path: Path = RESULTS_FILE) -> None:
    """Write the results, a line per check."""
    path.write_text("[\n" + ",\n".join(map(_text, results)) + "\n]\n", encoding="utf-8")


def _text(result: ThirdPartyResult) -> str:
    head = json.dumps({**result._asdict(), "checks": []})
    return head.removesuffix("]}") + "\n " + ",\n ".join(map(json.dumps, result.checks)) + "\n]}"
