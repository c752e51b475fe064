"""A scenario that is named, by its file or by its finding, as the broker under test is taken through it.

Rules of this file

1. The commands are the scenario's, the generation is the one that is expected of the broker: so a release that has the fix
   shows that, too. What the first command turns on or off is left out, and a response of a broker that does not give it.
2. The trace is that of the whole cluster, one broker of which is the driven one. It is what happened as long as no step of
   that broker differs, and it is judged by what is right, not by what the release did. There is none where the path ends
   with another value than the broker of the cluster has, or where no model has the run.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path as File
from typing import NamedTuple

from tidegauge.conformance.play.directives import Player
from tidegauge.conformance.play.scenario import DIRECTORY, Scenario, read, shipped
from tidegauge.conformance.play.session import Session
from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.contract import Capabilities
from tidegauge.drive.paths import rounded_high_watermark
from tidegauge.drive.paths.erased_proposal import CLAIM, erased_proposal
from tidegauge.drive.paths.scenarios import ends_alike, lacks, seen_by, under_test
from tidegauge.impl.errors import UsageError
from tidegauge.impl.explored.describe import broker_name
from tidegauge.impl.profiles import FETCH_TRUNCATION, Profile
from tidegauge.traces.schema import Trace


class Named(NamedTuple):
    """A scenario as one broker of it sees it, what it claims, and what its cluster tells of it."""

    name: str
    claim: str
    case: BrokerCase
    trace: Trace | None
    broker: str
    unjudged: str = "the cluster's run goes another way"


ERASED_PROPOSAL = "F3"
"""It has a model of its own, and no commands."""

ROUNDED = "rounded-hw"
"""It has batches of several records, and no model has."""

KEPT = ("cluster", "brokers=", "min_isr=", "max_fetch=", "clients=", "last_resort=")
"""What of a scenario's first command is not a generation's."""

BY_ITSELF = ("answer-produce", "read")
"""What a broker does or does not do: it is given nothing."""


def named_scenarios(name: str, profile: Profile, capabilities: Capabilities) -> list[Named]:
    """Every scenario of that name, as each of its brokers under test sees it.

    Raises UsageError where there is none, or where a broker cannot be taken through it.
    """
    found = list(_apart(name, profile) or _of_files(name, profile))
    if not found:
        raise UsageError(f"--scenario {name}: expected a broker that keeps its disk; seen none under test; name another")
    for one in found:
        lacking = lacks(one.case, profile, capabilities)
        if lacking is not None:
            raise UsageError(
                f"--scenario {name}: expected a broker that can be given each of its steps; seen {capabilities.name}, which "
                f"does not promise `{lacking}`; name another"
            )
    return found


def _apart(name: str, profile: Profile) -> tuple[Named, ...]:
    """The scenario of that name that is no file."""
    if name == ERASED_PROPOSAL:
        return (Named(name, CLAIM, *erased_proposal(profile), "b1"),)
    if name == ROUNDED:
        return (Named(name, rounded_high_watermark.CLAIM, rounded_high_watermark.case(), None, "b1", "it has no cluster"),)
    return ()


def _of_files(name: str, profile: Profile) -> Iterator[Named]:
    for place in _places(name):
        scenario = read(place)
        session = _played(scenario, profile)
        for me in under_test(scenario, session):
            broker, (held, path) = broker_name(me), seen_by(session, me)
            trace = _trace(session, place) if ends_alike(held, session, me) else None
            yield Named(f"{place.stem}@{broker}", scenario.claim, BrokerCase(held.opening, path), trace, broker)


def _places(name: str) -> list[File]:
    if File(name).is_file():
        return [File(name)]
    found = [place for place in shipped() if place.stem == name or name in read(place).shows]
    if not found:
        raise UsageError(
            f"--scenario: expected F1, F2, F3, {ROUNDED}, what a scenario `shows`, or the name of its file; seen {name!r}; "
            f"they lie in {DIRECTORY}"
        )
    return found


def _played(scenario: Scenario, profile: Profile) -> Session:
    """The scenario by the rules of a generation. Raises UsageError where they do not let it happen.

    Eligible leader replicas are the controller's, which is the scenario's: a broker does the same with and without.
    """
    player = Player()
    first, *commands = [block.command for block in scenario.transcript.blocks]
    player.run(first)
    elr = "on" if player.session is not None and player.session.profile.elr else "off"
    kept = " ".join(word for word in first.split() if word.startswith(KEPT))
    for command in (f"{kept} profile={profile.name} elr={elr}", *commands):
        said = player.run(command)
        if said and said[0].startswith("error: ") and not command.startswith(BY_ITSELF):
            raise UsageError(
                f"{scenario.path.name}: expected a scenario that {profile.name} lets happen; seen at `{command}` "
                f"{said[0].removeprefix('error: ')}; name another, or another --profile"
            )
    if player.session is None or player.session.has_whole_controller:
        raise UsageError(
            f"{scenario.path.name}: expected a scenario of brokers; seen one of the whole controller; name another"
        )
    return player.session


def _trace(session: Session, place: File) -> Trace:
    """What the cluster tells, to be judged by what is right."""
    trace = session.trace(place.stem)
    return replace(trace, config=replace(trace.config, profile=FETCH_TRUNCATION.name))
