"""A set of paths that takes every local step: each thing that one broker can do within a model's bounds, at least once.

Rules of this file

1. A local step is a value of the broker and a step; for a response or its loss also the request it ends. Where peers may
   wait, it is also what waits, and only those count that something waits at or that may begin to. Where they fetch in
   sessions, it is also what the sessions remember, and only fetches in sessions count. Where they wait in sessions, it is
   what waits and who has a session: what a session was told before makes no difference to who waited.
2. States are explored breadth first and each path begins with a shortest run to a state that still has something to
   take; then it goes on while there is something near. So a path that fails is short already. The process does not end
   often on it (`MOST_ENDS`): paths of a broker share its ends, so all wait for as many as the path that has most.
3. Order is that of the graph, or as a seed shuffles it. The same graph and the same seed give the same paths.
"""

import random
from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

from tidegauge.drive.broker.contract import BROKER, ENDS, EVERYTHING, IN_SESSION, MAY_WAIT, BrokerCase, Opening
from tidegauge.drive.broker.fetch_sessions import expected_epoch, known_of, waits_in
from tidegauge.drive.broker.reference import lacking, possible, step
from tidegauge.drive.broker.state import Held, opened
from tidegauge.drive.contract import Capabilities, Path, Step
from tidegauge.drive.paths.inputs import LEADER_EPOCH, NEXT, NOT_DUE, Input, Inputs, Local, Requested, counted, local
from tidegauge.impl.messages import FetchRequest, FollowerRequest
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import INVALID_UPDATE_VERSION, NONE, UNDEFINED
from tidegauge.impl.sessions.fetch_metadata import FINAL_EPOCH, INITIAL_EPOCH

LONGEST, NEAR, MOST_ENDS = 24, 3, 3
"""How long a path may go on, how many steps it walks to reach something new, and how many ends of the process it goes on
through."""

LocalStep = tuple[Local, Requested, Step, tuple[Hashable, ...]]


class Edge(NamedTuple):
    """A step of a state that a path can take, if the broker `can`. `takes` ends with the fetches that wait there, and the
    sessions.
    """

    takes: LocalStep
    step: Step
    to: int
    can: bool


class Cover(NamedTuple):
    """The paths, how many local steps they take of how many there are, and how large the graph was.

    `unreached`: what the graph gives a broker that no state of the contract has. There is none, or the two have parted; but
    for a response to a proposal that metadata overtook long ago, which the contract gives at once.
    """

    cases: tuple[BrokerCase, ...]
    taken: int
    local_steps: int
    unreached: int
    states: int
    transitions: int


START: Step = ()


def cover(
    inputs: Inputs, profile: Profile, capabilities: Capabilities = EVERYTHING, seed: int = 0, longest: int = LONGEST
) -> Cover:
    """Paths that take every local step that a broker with these capabilities can be given."""
    opening = Opening(tuple(range(BROKER + 1, BROKER + 1 + inputs.peers)), inputs.min_insync_replicas)
    start = opened(opening, profile)
    everything = _explored(inputs, start, capabilities)
    edges, parents = _reached(everything)
    if seed:
        rng = random.Random(seed)
        for state in edges:
            rng.shuffle(state)
    left = {edge.takes for state in edges for edge in state if _counts(inputs, edge)}
    taken = len(left)
    local_steps = len({edge.takes for state in everything for edge in state if _counts(inputs, edge)})
    reached = {edge.takes[:3] for state in everything for edge in state}
    unreached = sum((value, *given[::-1]) not in reached for value, given in _in_graph(inputs))
    cases = []
    for number, found in enumerate(edges):
        while any(edge.takes in left for edge in found):
            cases.append(BrokerCase(opening, _concrete(start, _path(edges, parents, number, left, longest))))
    return Cover(tuple(cases), taken, local_steps, unreached, inputs.states, inputs.transitions)


def _counts(inputs: Inputs, edge: Edge) -> bool:
    """Whether it is a local step of the graph: rule 1 of this file."""
    _, _, taken, (waiting, _) = edge.takes
    if inputs.waits:
        return taken[0] in MAY_WAIT or bool(waiting)
    return not inputs.sessions or taken[0] in IN_SESSION


def _in_graph(inputs: Inputs) -> Iterator[tuple[Local, Input]]:
    """What the graph gives, but for requests to a broker that has read no metadata: the contract has none."""
    for value, given in inputs.given.items():
        yield from ((value, one) for one in given if value[LEADER_EPOCH] != UNDEFINED)


def _explored(inputs: Inputs, start: Held, capabilities: Capabilities) -> list[list[Edge]]:
    """The edges of every state of the contract that the inputs lead to."""
    number = {_key(inputs, start): 0}
    states, edges = [start], []
    for held in states:
        here: list[Edge] = []
        value = _local(inputs, held)
        for given, requested in _given(inputs, held, value):
            taken = resolved(held, given)
            if not possible(held, taken):
                continue
            after, _ = step(held, taken)
            target = number.setdefault(_key(inputs, after), len(states))
            if target == len(states):
                states.append(after)
            takes = value, requested, given, (held.fetches, _counted_with(inputs, held))
            here.append(Edge(takes, given, target, lacking(capabilities, held, taken) is None))
        edges.append(here)
    return edges


def _reached(everything: list[list[Edge]]) -> tuple[list[list[Edge]], list[tuple[int, Step]]]:
    """The states that are reached by what the broker can do, with those edges, and how each is reached first."""
    number, found = {0: 0}, [0]
    parents, edges = [(UNDEFINED, START)], []
    for source, state in enumerate(found):
        here: list[Edge] = []
        for edge in everything[state]:
            if edge.can:
                target = number.setdefault(edge.to, len(found))
                if target == len(found):
                    found.append(edge.to)
                    parents.append((source, edge.step))
                here.append(edge._replace(to=target))
        edges.append(here)
    return edges, parents


def _given(inputs: Inputs, held: Held, value: Local) -> Iterator[Input]:
    """What may be given to the broker now; a request in flight may always be lost."""
    if held.overtaken:
        known = (given for given in inputs.given.get(value, ()) if given.step[0] == "alter_partition_response")
        yield from dict.fromkeys((Input(response_to_overtaken(held)), *known))
        return
    in_flight = {peer: requested_by(request) for peer, request in held.requests}
    for given in inputs.given.get(value, ()):
        if not given.requested or in_flight.get(given.step[1]) == given.requested:
            yield given
        if inputs.waits and not inputs.sessions and given.step[0] == "fetch":
            yield Input(("fetch_and_wait", *given.step[1:]))
        if inputs.sessions and given.step[0] == "fetch":
            yield from _in_sessions(given.step, waits=inputs.waits)
    for peer, requested in in_flight.items():
        yield Input(("lose_response", peer), requested)


def _in_sessions(fetch: Step, *, waits: bool) -> Iterator[Input]:
    """The same fetch with each session epoch, and one of the session that forgets the partition."""
    for session_epoch in (INITIAL_EPOCH, NEXT, NOT_DUE, FINAL_EPOCH):
        yield Input(("fetch_in_session", *fetch[1:], session_epoch))
        if waits:
            yield Input(("fetch_in_session_and_wait", *fetch[1:], session_epoch))
    yield Input(("fetch_others", fetch[1], NEXT))


def requested_by(request: FollowerRequest) -> Requested:
    """What tells a request from others to the same peer."""
    if isinstance(request, FetchRequest):
        return request.current_leader_epoch, request.fetch_offset
    return (request.current_leader_epoch,)


def response_to_overtaken(held: Held) -> Step:
    """What the controller says of a proposal that metadata has overtaken: done, or made on an earlier partition epoch."""
    partition, proposal = held.broker.partition, held.proposal
    done = proposal is not None and partition.is_leader and partition.state.isr == proposal.isr
    if done and proposal is not None and partition.leader_epoch == proposal.leader_epoch:
        return "alter_partition_response", NONE, NEXT, proposal.isr
    return "alter_partition_response", INVALID_UPDATE_VERSION, UNDEFINED, ()


def resolved(held: Held, given: Step) -> Step:
    """A step with its epochs: metadata has the next partition epoch, a response to a proposal that of the last metadata; a
    fetch in a session has the session epoch that is due, or one too high.
    """
    if given[0] in IN_SESSION and given[-1] in {NEXT, NOT_DUE}:
        return (*given[:-1], expected_epoch(held, given[1]) + (given[-1] == NOT_DUE))
    if given[0] == "metadata" and given[3] == NEXT:
        return (*given[:3], held.partition_epoch + 1, *given[4:])
    if given[0] == "alter_partition_response" and given[2] == NEXT:
        return (*given[:2], held.partition_epoch, *given[3:])
    return given


def _local(inputs: Inputs, held: Held) -> Local:
    return counted(held.broker, held.partition_epoch) if inputs.counts else local(held.broker)


def _key(inputs: Inputs, held: Held) -> Hashable:
    proposed = response_to_overtaken(held) if held.overtaken else None
    fresh, proposes = held.partition_epoch == UNDEFINED, held.proposal is not None
    in_flight = held.requests, proposes, proposed, held.waiting, held.fetches
    return _local(inputs, held), in_flight, _remembered(held), fresh


def _remembered(held: Held) -> Hashable:
    """What sessions remember; which epoch is due in them makes no difference to what they do."""
    sessions = tuple((peer, known_of(session)) for peer, session in sorted(held.sessions.items()))
    return sessions, held.lost, _waiting(held)


def _waiting(held: Held) -> Hashable:
    return tuple((peer, waits_in(held, peer)) for peer in sorted(held.contexts))


def _counted_with(inputs: Inputs, held: Held) -> Hashable:
    """What of the sessions makes a step another one: rule 1 of this file."""
    return (_waiting(held), tuple(held.sessions)) if inputs.waits and inputs.sessions else _remembered(held)


def _path(
    edges: list[list[Edge]], parents: list[tuple[int, Step]], state: int, left: set[LocalStep], longest: int
) -> Iterator[Step]:
    """The run to a state, then whatever is left near it."""
    run: list[Step] = []
    at = state
    while parents[at][0] != UNDEFINED:
        run.append(parents[at][1])
        at = parents[at][0]
    yield from reversed(run)
    room, ends = longest - len(run), _ends(run)
    has_taken = False
    while room > 0:
        found = _nearest(edges, state, left)
        ends += _ends([edge.step for edge in found])
        if not found or (has_taken and ends > MOST_ENDS):
            return
        for edge in found:
            left.discard(edge.takes)
            yield edge.step
            state = edge.to
        room, has_taken = room - len(found), True


def _ends(steps: Iterable[Step]) -> int:
    return sum(step[0] in ENDS for step in steps)


def _nearest(edges: list[list[Edge]], state: int, left: set[LocalStep]) -> list[Edge]:
    """The shortest way to something new that is not far; nothing if there is none."""
    came: dict[int, tuple[int, Edge] | None] = {state: None}
    level = [state]
    for _ in range(NEAR):
        following = []
        for at in level:
            for edge in edges[at]:
                if edge.takes in left:
                    way, back = [edge], came[at]
                    while back is not None:
                        way.append(back[1])
                        back = came[back[0]]
                    return way[::-1]
                if edge.to not in came:
                    came[edge.to] = (at, edge)
                    following.append(edge.to)
        level = following
    return []


def _concrete(start: Held, given: Iterator[Step]) -> Path:
    """The path with its partition epochs."""
    path, held = [], start
    for one in given:
        taken = resolved(held, one)
        held, _ = step(held, taken)
        path.append(taken)
    return tuple(path)
