"""drive(broker): one call that takes a broker through what the command `tidegauge drive` takes it through.

The broker is a program in any language behind an adapter, an object of Python (`PythonBroker`), or anything else that plays
cases (`contract.Node`). An adapter is a driven program: it reads and writes a line of JSON per step. What is driven is one
replica of one partition; the peers, the controller and the clients are played by the steps of a case.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from tidegauge.drive.broker.contract import BROKER, VERSION, BrokerCase
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.steps import step_json
from tidegauge.drive.contract import Capabilities, Node, Step, Watch
from tidegauge.drive.paths import unsafe_or_repaired
from tidegauge.drive.paths.selection import Choice, chosen_paths
from tidegauge.drive.runner.run import run, text_of
from tidegauge.drive.transports.lines import blame, json_line, parse_handshake, parse_line, parse_report
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

    `verdict` is CONFORMS, DIFFERS or UNDECIDED, `exit_code` that of the command, `profile` the generation of the protocol
    that the broker was compared with. `failures` are the kinds of differences, each as the text that the command prints;
    `notes` are lines that say how much was covered. `text` is the whole report as the command prints it.
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

    `broker` is a PythonBroker, a node, or the command that starts an adapter, as a list of words. `profile` names a
    generation of the protocol, `release` a release of Kafka; one of them at most, without both it is the profile "safe".
    `graphs` names the graphs whose local steps are covered (None: those that the command covers), `walks` is the number of
    random walks from `seed`, `scenarios` adds the scenarios; `smoke` plays ten steps instead of all these. `timeout` is
    after how many seconds without a line of output an adapter is considered hung. Raises TidegaugeError, and what a
    PythonBroker raises.

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
    requested = profile_named(SAFE.name if profile is None and release is None else profile or f"{RELEASE}{release}")
    with ExitStack() as cleanup:
        node = _node(broker, timeout, cleanup)
        # A broker without a bug that its generation has is right: the paths are made for, and compared with, that
        # generation with the bug repaired.
        unsafe = unsafe_or_repaired.ask(node, requested)
        expected = requested.without(unsafe.repaired)
        choice = Choice(covered=graphs or (), walks=walks, seed=seed, smoke=smoke, scenarios=scenarios and not smoke)
        paths = chosen_paths(choice, node.capabilities, expected)
        # Lines about what the paths cover, and about the bugs that the broker has repaired or has.
        notes = (*paths.coverage, *unsafe_or_repaired.report_lines(unsafe, requested))
        result = run(node, paths.cases, reference(expected), notes)
    return DriveReport(
        name=result.name,
        profile=result.profile,
        verdict=VERDICTS[result.exit_code],
        exit_code=result.exit_code,
        failures=tuple(failure.text for failure in result.failures),
        notes=result.notes,
        paths=result.played.cases,
        steps=result.played.steps,
        text=text_of(result),
    )


def _node(broker: Any, timeout: float, cleanup: ExitStack) -> Node[BrokerCase]:
    """Return the argument of `drive` as a node: a PythonBroker is wrapped, a Node is left as it is, a command is started.

    The program of a command ends when `cleanup` closes. Raises UsageError for anything else.
    """
    # By the methods of the two protocols: a PythonBroker has `replica`, a Node has `play`.
    if hasattr(broker, "replica"):
        return InProcessNode(broker)
    if hasattr(broker, "play"):
        node: Node[BrokerCase] = broker
        return node
    if isinstance(broker, str) or not isinstance(broker, Sequence):
        raise UsageError(
            f"drive: expected a PythonBroker, or a command as a list of words; seen {broker!r}; split the command"
        )
    return cleanup.enter_context(StdioNode([str(word) for word in broker], timeout))


# ---------------------------------------------------------------------------------------------------------------------
# A broker that is written in Python, driven in this process: no program, no lines.
#
# Rules of this part
#
# 1. A replica gets the fields of the lines of the contract as arguments, and returns those of a report (docs/drive.md).
# 2. A report that breaks the contract is refused as a program's line is (transports/lines.py). What a replica raises is
#    raised.


class PythonReplica(Protocol):
    """A replica of one partition on the broker under test."""

    def take(self, step: str, **arguments: Any) -> Mapping[str, Any]:
        """Take a step, and return the report after it. The first is `open`, with broker, peers and min_insync_replicas."""


class PythonBroker(Protocol):
    """A broker in Python: what it can take, what it reports, and how an empty replica on it is made.

    >>> import tidegauge as tg
    >>> class Replica:
    ...     def take(self, step, **arguments):
    ...         return {"leo": 0, "hw": 1 if step == "append" else 0}
    >>> class Broker:
    ...     name, can, reports, replica = "ahead", ["metadata", "append"], ["leo", "hw"], Replica
    >>> tg.drive(Broker(), smoke=True).verdict
    'DIFFERS'
    """

    @property
    def name(self) -> str:
        """What reports call it."""

    @property
    def can(self) -> Collection[str]:
        """The steps and extras that it can take."""

    @property
    def reports(self) -> Collection[str]:
        """The fields that each of its reports has."""

    def replica(self) -> PythonReplica:
        """Return an empty replica of a new partition."""


class InProcessNode:
    """A broker in Python as a node. Raises DrivenProgramError for one that declares what the contract does not have."""

    def __init__(self, broker: PythonBroker) -> None:
        """Check what the broker declares as if it were the handshake of a driven program."""
        self._broker = broker
        handshake = {"contract": VERSION, "name": broker.name, "can": [*broker.can], "reports": [*broker.reports]}
        self.capabilities: Capabilities = parse_handshake(json_line(handshake), "in what the broker declares")

    def play(self, cases: Sequence[BrokerCase], watch: Watch) -> None:
        """Play one case after the other, each on an empty replica, until `watch` says that it is done (see Node)."""
        for number, case in enumerate(cases):
            replica = self._broker.replica()
            opening = {"broker": BROKER, **case.opening._asdict()}
            fields = replica.take("open", **_as_json(opening))
            # How many steps of the path were taken; the report after 0 is that of the opening.
            taken = 0
            while watch(number, taken, self._report(fields, case.path[taken - 1] if taken else None)):
                step = step_json(case.path[taken])
                fields = replica.take(step.pop("step"), **_as_json(step))
                taken += 1

    def _report(self, fields: Mapping[str, Any], step: Step | None) -> Mapping[str, Any]:
        """Check the report after a step as if it had come over a pipe, and return it. Raises DrivenProgramError.

        `fields` is what the replica returned; `step` is None for the opening.
        """
        where = f"after {step[0] if step else 'open'}"
        try:
            line = json_line(fields)
        except (TypeError, ValueError):
            raise blame("a report that JSON can hold", repr(fields).encode(), where) from None
        # Read back: a tuple is a list and the key 2 is "2" in a report, as on the lines of a program.
        return parse_report(parse_line(line, where), step, self.capabilities, line, where)


def _as_json(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a step as a driven program reads them from JSON: tuples are lists, and nothing is shared."""
    decoded: dict[str, Any] = json.loads(json_line(arguments))
    return decoded
