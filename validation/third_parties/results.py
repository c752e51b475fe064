"""What the probe found at each third party, as it is kept: a verdict per check, with what was expected and seen.

What differs from run to run and says nothing is left out: addresses, numbers of requests, the time of day.
"""

import json
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from string import ascii_uppercase
from typing import NamedTuple

from tidegauge.drive.probe.run import ProbeRun

KEPT = Path(__file__).with_name("results.json")
PLACE = re.compile(r" to (?:127\.0\.0\.1|localhost):\d+")
TIME, NOW, AN_HOUR = re.compile(r"\b\d{13}\b"), "the time of the run", 3_600_000
TOPIC_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
SEEN = re.compile(r"request \d+; seen one to \d+")


class Checked(NamedTuple):
    """A check: its id, its rule ("" where none is), its verdict and what it says."""

    id: str
    rule: str
    verdict: str
    says: str


class Result(NamedTuple):
    """A run: of whom, in which version, on which day, from which seed."""

    party: str
    version: str
    day: str
    seed: int
    checks: tuple[Checked, ...]


def result_of(party: str, version: str, when: datetime, found: ProbeRun) -> Result:
    """What is kept of a run."""
    checks = (Checked(one.check.id, one.check.rule, one.verdict.value, plain(one.says, when)) for one in found.outcomes)
    return Result(party, version, when.date().isoformat(), found.seed, tuple(checks))


def plain(says: str, when: datetime) -> str:
    """Without what differs from run to run."""
    says = SEEN.sub("one request; seen one to another", PLACE.sub("", says))
    letters = dict(zip(dict.fromkeys(TOPIC_ID.findall(says)), ascii_uppercase, strict=False))
    says = TOPIC_ID.sub(lambda one: f"topic {letters[one[0]]}", says)
    return TIME.sub(lambda one: NOW if abs(int(one[0]) - when.timestamp() * 1000) < AN_HOUR else one[0], says)


def read(path: Path = KEPT) -> list[Result]:
    """What is kept."""
    if not path.is_file():
        return []
    found = json.loads(path.read_text(encoding="utf-8"))
    return [Result(**{**one, "checks": tuple(Checked(*check) for check in one["checks"])}) for one in found]


def write(results: Iterable[Result], path: Path = KEPT) -> None:
    """Keep it, a line per check."""
    path.write_text("[\n" + ",\n".join(map(_text, results)) + "\n]\n", encoding="utf-8")


def _text(result: Result) -> str:
    head = json.dumps({**result._asdict(), "checks": []})
    return head.removesuffix("]}") + "\n " + ",\n ".join(map(json.dumps, result.checks)) + "\n]}"
