"""drive(broker): one call that takes a broker through what the command `tidegauge drive` takes it through.

The broker is a program in any language, one in Python, or anything else that plays cases (`contract.Node`).
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.contract import Node
from tidegauge.drive.paths import repairs
from tidegauge.drive.paths.selection import Choice, chosen_paths
from tidegauge.drive.runner.run import run, text_of
from tidegauge.drive.transports.in_process import InProcessNode, PythonBroker
from tidegauge.drive.transports.stdio import StdioNode
from tidegauge.impl.profiles import SAFE
from tidegauge.impl.releases import RELEASE, profile_named
from tidegauge.util.errors import CONFORMS, FAILS, UNDECIDED, UsageError

if TYPE_CHECKING:
    import os

VERDICTS = {CONFORMS: "CONFORMS", FAILS: "DIFFERS", UNDECIDED: "UNDECIDED"}


@dataclass(frozen=True)
class DriveReport:
    """The result of `drive`.

    `verdict` is CONFORMS, DIFFERS or UNDECIDED, `exit_code` that of the command, `profile` what the broker was compared
    with. `failures` are the kinds of differences, each as the text that the command prints; `notes` say how much was
    covered.
    """

    name: str
    profile: str
    verdict: str
    exit_code: int
    failures: tuple[str, ...]
    notes: tuple[str, ...]
    paths: int
    steps: int
    text: str

    def __str__(self) -> str:
        return self.text


def drive(
    broker: "PythonBroker | Node[BrokerCase] | Sequence[str | os.PathLike[str]]",
    *,
    profile: str | None = None,
    release: str | None = None,
    graphs: Sequence[str] | None = None,
    walks: int = 0,
    seed: int = 1,
    scenarios: bool = False,
    smoke: bool = False,
    timeout: float = 10.0,
) -> DriveReport:
    """Take a broker through every local step of the graphs, random walks and scenarios, and compare it with the reference.

    `broker` is a PythonBroker, or the command that starts an adapter, as a list of words. The other arguments are the
    options of `tidegauge drive`: without `graphs`, those that the command takes; `smoke` plays ten steps instead. Raises
    TidegaugeError, and what a PythonBroker raises.

    >>> import sys
    >>> import tidegauge as tg
    >>> adapter = sys.executable, "-m", "tidegauge.drive.transports.serve"
    >>> report = tg.drive(adapter, smoke=True)
    >>> report.verdict, report.profile
    ('CONFORMS', 'safe')
    >>> wrong = tg.drive([*adapter, "--fault", "hw-not-clamped"], graphs=["small"])
    >>> print(wrong.failures[0].splitlines()[0])
    DIFFERS after 4 steps, in hw
    """
    if profile is not None and release is not None:
        raise UsageError(f"expected a profile or a release, seen both, {profile} and {release}; leave one out")
    asked_for = profile_named(SAFE.name if profile is None and release is None else profile or f"{RELEASE}{release}")
    with ExitStack() as until_done:
        node = _node(broker, timeout, until_done)
        seen = repairs.ask(node, asked_for)
        expected = asked_for.without(seen.repaired)
        choice = Choice(covered=graphs or (), walks=walks, seed=seed, smoke=smoke, scenarios=scenarios and not smoke)
        paths = chosen_paths(choice, node.capabilities, expected)
        done = run(node, paths.cases, reference(expected), (*paths.coverage, *repairs.report_lines(seen, asked_for)))
    return DriveReport(
        name=done.name,
        profile=done.profile,
        verdict=VERDICTS[done.exit_code],
        exit_code=done.exit_code,
        failures=tuple(failure.text for failure in done.failures),
        notes=done.notes,
        paths=done.played.cases,
        steps=done.played.steps,
        text=text_of(done),
    )


def _node(broker: Any, timeout: float, until_done: ExitStack) -> Node[BrokerCase]:
    if hasattr(broker, "replica"):
        return InProcessNode(broker)
    if hasattr(broker, "play"):
        node: Node[BrokerCase] = broker
        return node
    if isinstance(broker, str) or not isinstance(broker, Sequence):
        raise UsageError(
            f"drive: expected a PythonBroker, or a command as a list of words; seen {broker!r}; split the command"
        )
    return until_done.enter_context(StdioNode([str(word) for word in broker], timeout))
