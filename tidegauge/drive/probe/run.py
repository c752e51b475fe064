"""A run of the probe: checks of a broker in, every check's verdict and exchanges out, and the topics that are left.

An exchange is a request and its response. `echo`, `warn` and `note` are functions that are called with a line of text.

Rules of this file

1. A check passes if all responses are as expected, fails at the first that is not, is not supported if the broker does not
   offer what it needs, and is undecided if there is nothing to compare.
2. Whatever ends a run, the topics are removed first; only a second interrupt ends that.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from random import Random
from typing import Any

from tidegauge.drive.probe.check import Check, FailedError, check_exchange
from tidegauge.drive.probe.checks.acks import ACKS_CHECKS
from tidegauge.drive.probe.checks.appending import APPEND_CHECKS
from tidegauge.drive.probe.checks.deleting import DELETE_CHECKS
from tidegauge.drive.probe.checks.epochs import EPOCH_CHECKS, FENCING_CHECKS
from tidegauge.drive.probe.checks.fetching import FETCH_CHECKS
from tidegauge.drive.probe.checks.offsets import OFFSET_CHECKS
from tidegauge.drive.probe.checks.producers import PRODUCER_CHECKS
from tidegauge.drive.probe.checks.sessions import SESSION_CHECKS
from tidegauge.drive.probe.checks.versions import VERSION_CHECKS
from tidegauge.drive.probe.connection import Dial, NoResponseError, WireExchange, heeding, shipped_messages
from tidegauge.drive.probe.fixtures import Fixtures
from tidegauge.drive.probe.partition import NotOfferedError
from tidegauge.drive.probe.topics import Topics, UndecidedError
from tidegauge.util.errors import UsageError

CHECKS: tuple[Check, ...] = (
    *VERSION_CHECKS,
    *FENCING_CHECKS,
    *EPOCH_CHECKS,
    *FETCH_CHECKS,
    *SESSION_CHECKS,
    *OFFSET_CHECKS,
    *ACKS_CHECKS,
    *APPEND_CHECKS,
    *PRODUCER_CHECKS,
    *DELETE_CHECKS,
)
"""Every check, in the order in which they run."""

PREFIX = "tidegauge-probe"


class CheckVerdict(StrEnum):
    """The result of a check."""

    PASS = "pass"
    FAIL = "fail"
    NOT_SUPPORTED = "not supported"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class CheckOutcome:
    """A check with its verdict. `says`: what was expected and seen, or what is missing; "" if it passes."""

    check: Check
    verdict: CheckVerdict
    says: str
    exchanges: tuple[WireExchange, ...]


@dataclass
class ProbeRun:
    """A run. `place`: the broker as "host:port"; `prefix`: the beginning of all topic names, made from the seed.

    `offered`: the versions of each request; `left`: the topics that could not be deleted, and why; `cleanup`: the exchanges
    of the deletions.
    """

    place: str
    seed: int
    prefix: str
    offered: Mapping[str, range]
    outcomes: list[CheckOutcome] = field(default_factory=list)
    left: Mapping[str, str] = field(default_factory=dict)
    cleanup: tuple[WireExchange, ...] = ()
    notes: list[str] = field(default_factory=list)
    """A line for each broker that the run connected to because Metadata names it, and not the user."""
    not_run: int = 0
    """The number of checks that did not run because of an interrupt."""

    def count(self, verdict: CheckVerdict) -> int:
        """Return the number of checks with a verdict."""
        return sum(outcome.verdict is verdict for outcome in self.outcomes)

    @property
    def exit_code(self) -> int:
        """1 if a check fails; else 0 if one passes; 3 if none was decided."""
        if self.count(CheckVerdict.FAIL):
            return 1
        return 0 if self.count(CheckVerdict.PASS) else 3


class InterruptedRunError(KeyboardInterrupt):
    """An interrupt has ended a run, whose topics are removed; `run` is what there is of it."""

    def __init__(self, run: ProbeRun) -> None:
        super().__init__()
        self.run = run


def select_checks(only: Sequence[str] = ()) -> tuple[Check, ...]:
    """Return the checks that any of the words in `only` selects; without words all.

    A word is an id, a pattern of ids with "*", the group of ids before the dot, or a rule. Raises UsageError for a word that
    selects no check.
    """
    for word in only:
        if not any(_is_selected(check, word) for check in CHECKS):
            raise UsageError(
                f"--only: expected a check, a pattern such as 'fencing.*' or a rule; seen {word!r}; --list lists them"
            )
    return tuple(check for check in CHECKS if not only or any(_is_selected(check, word) for word in only))


def _is_selected(check: Check, word: str) -> bool:
    """Return whether a word of --only stands for the check."""
    return fnmatchcase(check.id, word) or check.rule == word or check.id.startswith(f"{word}.")


def probe(
    dial: Dial,
    place: tuple[str, int],
    seed: int,
    checks: Sequence[Check] = CHECKS,
    echo: Callable[[str], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    heed: Callable[[], None] = lambda: None,
    **settings: Any,
) -> ProbeRun:
    """Run checks against the broker at `place`, a host and a port, over connections that `dial` opens.

    `echo` is called with each verdict; `warn` with each further broker that is connected to, and with each topic that could
    not be removed. `heed` is called before each request, except when topics are removed, and may raise KeyboardInterrupt:
    the run ends then with InterruptedRunError. `settings`: more arguments of Topics. Raises UsageError when no broker
    responds.
    """
    exchanges: list[WireExchange] = []
    prefix = f"{PREFIX}-{Random(seed).getrandbits(32):08x}"
    notes: list[str] = []

    def note(line: str) -> None:
        """Put a line into the report, and warn with it at once."""
        notes.append(line)
        warn(line)

    topics = Topics(shipped_messages(), heeding(dial, heed), place, exchanges.append, note=note, **settings)
    fixtures = Fixtures(topics, prefix)
    try:
        offered = topics.first.versions
    except NoResponseError as problem:
        raise UsageError(f"probe: expected a broker that answers ApiVersions; seen: {problem}") from problem
    run = ProbeRun(f"{place[0]}:{place[1]}", seed, prefix, offered, notes=notes)
    interrupted = False
    try:
        for check in checks:
            verdict, says = _verdict_of(check, fixtures, offered)
            # The connections have added the exchanges of this check to the list.
            run.outcomes.append(CheckOutcome(check, verdict, says, tuple(exchanges)))
            exchanges.clear()
            echo(f"{verdict.value:13} {check.id}")
    except KeyboardInterrupt:
        run.not_run, interrupted = len(checks) - len(run.outcomes), True
    finally:
        exchanges.clear()
        # With the plain dial: Ctrl-C ended the checks, and must not end the removal of their topics.
        try:
            topics.close(dial)
        finally:
            run.left, run.cleanup = dict(topics.left), tuple(exchanges)
            for name, why in run.left.items():
                warn(f"topic {name} could not be deleted: {why}; delete it by hand")
    if interrupted:
        raise InterruptedRunError(run)
    return run


def _verdict_of(check: Check, fixtures: Fixtures, offered: Mapping[str, range]) -> tuple[CheckVerdict, str]:
    """Run a check; return its verdict and, unless it passes, why: what was expected and seen, or what is missing."""
    for name, least in check.needs.items():
        if not offered.get(name) or offered[name].stop <= least:
            return CheckVerdict.NOT_SUPPORTED, f"needs {name} version {least} or newer; ApiVersions does not offer it"
    fixtures.check = check.id
    script = check.script(fixtures)
    try:
        expectation = next(script)
        while True:
            expectation = script.send(check_exchange(expectation))
    # The script has no more requests: all responses were as expected.
    except StopIteration:
        return CheckVerdict.PASS, ""
    except NotOfferedError as problem:
        return CheckVerdict.NOT_SUPPORTED, str(problem)
    except UndecidedError as problem:
        return CheckVerdict.UNDECIDED, str(problem)
    except FailedError as problem:
        # With this error code the broker says itself that it does not support the request.
        if "; seen UNSUPPORTED_VERSION " in str(problem):
            return CheckVerdict.NOT_SUPPORTED, str(problem)
        return CheckVerdict.FAIL, str(problem)
    # `check_exchange` makes a lost response a FailedError: this is of a request that prepares the check, or has no response.
    except NoResponseError as problem:
        return CheckVerdict.UNDECIDED, f"the setting could not be made: {problem}"
    finally:
        script.close()
