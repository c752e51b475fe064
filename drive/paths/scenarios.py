"""The scenarios of conformance/scenarios as one of their brokers sees them: paths like any other.

Rules of this file

1. A scenario is a cluster's; what its broker is given becomes steps, what it does by itself is expected of it.
2. The contract sends a request as soon as there is something to ask, a scenario when it says so: where the two differ the
   earlier request is lost and asked again. A proposal that metadata has overtaken is responded to at once.
3. What reaches a broker that has started and read no metadata is left out: the contract has no such partition.
4. A scenario of another generation, of the whole controller, or in which the broker loses its disk is none for a driven
   broker.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path as File
from typing import Any, NamedTuple

from tidegauge.conformance.play.directives import Player
from tidegauge.conformance.play.scenario import Scenario, read, shipped
from tidegauge.conformance.play.session import Session
from tidegauge.drive.broker.contract import BROKER, BrokerCase, Opening
from tidegauge.drive.broker.reference import is_possible, missing_capability, take_step
from tidegauge.drive.broker.state import ReferenceBroker, opened
from tidegauge.drive.broker.steps import ENDS
from tidegauge.drive.contract import Capabilities, Path, Step
from tidegauge.drive.paths.cover import requested_by, resolved, response_to_overtaken
from tidegauge.drive.paths.inputs import Input, Rename, image_step, inputs_of, local, renaming
from tidegauge.impl.cluster.broker import truncate_alone
from tidegauge.impl.cluster.cluster import Cluster, Label, actions
from tidegauge.impl.explored.describe import broker_name
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import UNDEFINED


class ScenarioCase(NamedTuple):
    """A scenario as a broker of it sees it: `020_forked_log_is_truncated_on_fetch@b1`."""

    name: str
    case: BrokerCase
    state: ReferenceBroker


def cases_of(place: File, profile: Profile) -> list[ScenarioCase]:
    """Those of the brokers that the scenario is about; none if it is of another generation."""
    scenario = read(place)
    session = played(place)
    if session.has_whole_controller or not _same_generation(session.profile, profile):
        return []
    found = []
    for me in under_test(scenario, session):
        state, path = seen_by(session, me)
        if path:
            found.append(ScenarioCase(f"{place.stem}@{broker_name(me)}", BrokerCase(state.opening, path), state))
    return found


def scenario_cases(profile: Profile, capabilities: Capabilities, places: Sequence[File] = ()) -> list[ScenarioCase]:
    """All that are shipped, or those that are named, as far as a broker can be given them."""
    found = [one for place in places or shipped() for one in cases_of(place, profile)]
    return [one for one in found if lacks(one.case, profile, capabilities) is None]


def under_test(scenario: Scenario, session: Session) -> list[int]:
    """The brokers that a scenario is about, but for those that lose their disk."""
    about = (b for b in range(session.brokers) if broker_name(b) in (scenario.under_test or broker_name(b)))
    return [b for b in about if ("LoseDisk", b) not in session.labels]


def played(place: File) -> Session:
    """The session that a scenario leaves behind."""
    player = Player()
    for block in read(place).transcript.blocks:
        player.run(block.command)
    assert player.session is not None, place
    return player.session


def _same_generation(of_scenario: Profile, profile: Profile) -> bool:
    """Eligible leader replicas are the controller's: a broker does the same with and without."""
    return of_scenario._replace(name="", elr=False) == profile._replace(name="", elr=False)


def lacks(case: BrokerCase, profile: Profile, capabilities: Capabilities) -> str | None:
    """The first thing of the contract that an order needs and a broker does not have."""
    state = opened(case.opening, profile)
    for step in case.path:
        lacking_here = missing_capability(capabilities, state, step)
        if lacking_here is not None:
            return lacking_here
        state, _ = take_step(state, step)
    return None


# ---------------------------------------------------------------------------------------------------------------------
# One broker's part


def seen_by(session: Session, me: int) -> tuple[ReferenceBroker, Path]:
    """The broker at the end, and the steps that led there."""
    rename, start = renaming(me), session.states[0]
    opening = Opening(tuple(range(BROKER + 1, BROKER + session.brokers)), start.model.bounds.min_insync_replicas)
    state, path = opened(opening, session.profile), list[Step]()
    given: Iterator[Input] = iter((Input(image_step(start, rename)),))
    transitions = zip(session.states, session.labels, session.states[1:], strict=False)
    while True:
        for one in given:
            for step in _steps(state, one):
                state, _ = take_step(state, step)
                path.append(step)
        following = next(transitions, None)
        if following is None:
            return state, tuple(path)
        given = _given(*following, me, rename)


def ends_alike(state: ReferenceBroker, session: Session, me: int) -> bool:
    """Whether the broker has the value that it has in the cluster, but for when a fetcher thread that may truncate by itself
    does so (docs/decisions/0009)."""
    driven, free = (truncate_alone(state.setup, broker) for broker in (state.broker, session.cluster.brokers[me]))
    return local(driven) == local(free, renaming(me))


def _given(before: Cluster, label: Label, after: Cluster, me: int, rename: Rename) -> Iterator[Input]:
    """What a transition gives this broker."""
    if label[1:2] != (me,):
        return
    found = list(inputs_of(before, label, after, rename))
    match label:
        case ("HandleFetch", leader, f, expand):
            # The metadata cache refuses only where the broker itself would have let the follower in
            joins = bool(expand) or ("HandleFetch", leader, f, 1) not in actions(before)
            fetch, *others = (one for one in found if one.step[0] != "fetch" or one.step[5] is True)
            yield Input((*fetch.step[:5], joins))
            yield from others
        case ("HandleDuplicate", _, f, expand, epoch, offset, last):
            yield Input(("fetch", rename(f), epoch, offset, last, bool(expand)))
        case ("LoseResponse", _, leader):
            yield Input(("lose_response", rename(leader)))
        case _:
            yield from found


def _steps(state: ReferenceBroker, given: Input) -> Iterator[Step]:
    """The steps of the contract that give it."""
    unread = state.partition_epoch == UNDEFINED or state.broker.partition.leader_epoch == UNDEFINED
    name = given.step[0]
    if unread and name not in {"metadata", *ENDS}:
        return
    if given.requested:
        peer: int = given.step[1]
        in_flight: Any = state.request(peer)
        if in_flight is not None and requested_by(in_flight) != given.requested:
            yield "lose_response", peer
    elif name == "lose_response" and state.request(given.step[1]) is None:
        return
    yield resolved(state, given.step)
    if name == "metadata":
        after, _ = take_step(state, resolved(state, given.step))
        if after.overtaken:
            yield resolved(after, response_to_overtaken(after))


def is_a_path(case: BrokerCase, profile: Profile) -> bool:
    """Whether the contract allows each of its steps."""
    state = opened(case.opening, profile)
    for step in case.path:
        if not is_possible(state, step):
            return False
        state, _ = take_step(state, step)
    return True
