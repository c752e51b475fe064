"""One run: each check on its own, what it asked and what came back, what was left behind.

Rules of this file

1. A check passes when all that came back is as expected, fails at the first thing that is not, is not supported when the
   broker does not offer what it needs, and is undecided when there is nothing to look at.
2. UNSUPPORTED_VERSION in place of what is expected is the broker saying that it does not support it.
3. Whatever ends a run, the topics go first, and nothing but a second interruption ends their going.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from random import Random
from typing import Any

from tidegauge.drive.probe.check import Check, FailedError, exchanged
from tidegauge.drive.probe.connection import Dial, Exchange, LinkError
from tidegauge.drive.probe.definitions import shipped
from tidegauge.drive.probe.fixtures import Scenes
from tidegauge.drive.probe.interrupts import heeding
from tidegauge.drive.probe.partition import NotOfferedError
from tidegauge.drive.probe.table import CHECKS
from tidegauge.drive.probe.topics import Topics, UndecidedError
from tidegauge.impl.errors import UsageError

PREFIX = "tidegauge-probe"


class Verdict(StrEnum):
    """What became of a check."""

    PASS = "pass"
    FAIL = "fail"
    NOT_SUPPORTED = "not supported"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Outcome:
    """A check with its verdict; `says` is what was expected and seen, or what was missing."""

    check: Check
    verdict: Verdict
    says: str
    exchanges: tuple[Exchange, ...]


@dataclass
class Probed:
    """A run. `left`: topics that could not be deleted, and why."""

    place: str
    seed: int
    prefix: str
    offered: Mapping[str, range]
    outcomes: list[Outcome] = field(default_factory=list)
    left: Mapping[str, str] = field(default_factory=dict)
    removal: tuple[Exchange, ...] = ()

    def count(self, verdict: Verdict) -> int:
        """How many checks came out so."""
        return sum(one.verdict is verdict for one in self.outcomes)

    @property
    def exit_code(self) -> int:
        """0 passes, 1 fails, 3 nothing decided."""
        if self.count(Verdict.FAIL):
            return 1
        return 0 if self.count(Verdict.PASS) else 3


def chosen(only: Sequence[str] = ()) -> tuple[Check, ...]:
    """Checks by id, by a pattern of ids, or by rule. Raises UsageError for a word that chooses none."""
    for word in only:
        if not any(_is_chosen(check, word) for check in CHECKS):
            raise UsageError(f"--only {word}: expected a check, a pattern such as 'fencing.*' or a rule; see docs/probe.md")
    return tuple(check for check in CHECKS if not only or any(_is_chosen(check, word) for word in only))


def _is_chosen(check: Check, word: str) -> bool:
    return fnmatchcase(check.id, word) or check.rule == word or check.id.startswith(f"{word}.")


def probe(
    dial: Dial,
    place: tuple[str, int],
    seed: int,
    checks: Iterable[Check] = CHECKS,
    echo: Callable[[str], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    heed: Callable[[], None] = lambda: None,
    **settings: Any,
) -> Probed:
    """Ask a broker. `echo` is given each verdict, `warn` each topic that is left, `heed` is called before each request but
    those of the removal, and may raise KeyboardInterrupt. Raises UsageError when there is no broker that speaks."""
    kept: list[Exchange] = []
    prefix = f"{PREFIX}-{Random(seed).getrandbits(32):08x}"
    topics = Topics(shipped(), heeding(dial, heed), place, kept.append, **settings)
    scenes = Scenes(topics, prefix)
    try:
        offered = topics.first.versions
    except LinkError as problem:
        raise UsageError(f"probe: expected a broker that answers ApiVersions; seen: {problem}") from problem
    found = Probed(f"{place[0]}:{place[1]}", seed, prefix, offered)
    try:
        for check in checks:
            verdict, says = _tried(check, scenes, offered)
            found.outcomes.append(Outcome(check, verdict, says, tuple(kept)))
            kept.clear()
            echo(f"{verdict.value:13} {check.id}")
    finally:
        kept.clear()
        try:
            topics.close(dial)
        finally:
            found.left, found.removal = dict(topics.left), tuple(kept)
            for name, why in found.left.items():
                warn(f"topic {name} could not be deleted: {why}; delete it by hand")
    return found


def _tried(check: Check, scenes: Scenes, offered: Mapping[str, range]) -> tuple[Verdict, str]:
    for name, least in check.needs.items():
        if not offered.get(name) or offered[name].stop <= least:
            return Verdict.NOT_SUPPORTED, f"needs {name} version {least} or newer; ApiVersions does not offer it"
    scenes.check = check.id
    asks = check.asks(scenes)
    try:
        ask = next(asks)
        while True:
            ask = asks.send(exchanged(ask))
    except StopIteration:
        return Verdict.PASS, ""
    except NotOfferedError as problem:
        return Verdict.NOT_SUPPORTED, str(problem)
    except UndecidedError as problem:
        return Verdict.UNDECIDED, str(problem)
    except FailedError as problem:
        if "; seen UNSUPPORTED_VERSION " in str(problem):
            return Verdict.NOT_SUPPORTED, str(problem)
        return Verdict.FAIL, str(problem)
    except LinkError as problem:
        return Verdict.UNDECIDED, f"the setting could not be made: {problem}"
    finally:
        asks.close()
