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

from tidegauge.drive.broker.contract import BROKER, BrokerCase, Opening
from tidegauge.drive.broker.peer_fetches import known_of, waits_in
from tidegauge.drive.broker.reference import is_possible, missing_capability, take_step
from tidegauge.drive.broker.state import ReferenceBroker, opened
from tidegauge.drive.broker.steps import ENDS, EVERYTHING, IN_SESSION, MAY_WAIT, NEXT, NOT_DUE, STEPS
from tidegauge.drive.contract import Capabilities, Path, Step
from tidegauge.drive.paths.inputs import LEADER_EPOCH, Input, Inputs, Local, Requested, counted, local
from tidegauge.impl.fetch.fetch_session import FINAL_EPOCH, INITIAL_EPOCH
from tidegauge.impl.messages import FetchRequest, FollowerRequest
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import INVALID_UPDATE_VERSION, NONE, UNDEFINED

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
        for outgoing in edges:
            rng.shuffle(outgoing)
    left = {edge.takes for outgoing in edges for edge in outgoing if _counts(inputs, edge)}
    taken = len(left)
    local_steps = len({edge.takes for outgoing in everything for edge in outgoing if _counts(inputs, edge)})
    reached = {edge.takes[:3] for outgoing in everything for edge in outgoing}
    unreached = sum((value, *given[::-1]) not in reached for value, given in _in_graph(inputs))
    cases = []
    for number, found in enumerate(edges):
        while any(edge.takes in left for edge in found):
            cases.append(BrokerCase(opening, _concrete(start, _path(edges, parents, number, left, longest))))
    return Cover(tuple(cases), taken, local_steps, unreached, inputs.states, inputs.transitions)


def _counts(inputs: Inputs, edge: Edge) -> bool:
    """Whether it is a local step of the graph: rule 1 of this file."""
    _, _, step, (waiting, _) = edge.takes
    if inputs.waits:
        return step[0] in MAY_WAIT or bool(waiting)
    return not inputs.sessions or step[0] in IN_SESSION


def _in_graph(inputs: Inputs) -> Iterator[tuple[Local, Input]]:
    """What the graph gives, but for requests to a broker that has read no metadata: the contract has none."""
    for value, given in inputs.given.items():
        yield from ((value, one) for one in given if value[LEADER_EPOCH] != UNDEFINED)


def _explored(inputs: Inputs, start: ReferenceBroker, capabilities: Capabilities) -> list[list[Edge]]:
    """The edges of every state of the contract that the inputs lead to."""
    number = {_key(inputs, start): 0}
    states, edges = [start], []
    for state in states:
        here: list[Edge] = []
        value = _local(inputs, state)
        for given, requested in _given(inputs, state, value):
            step = resolved(state, given)
            if not is_possible(state, step):
                continue  # the graph gives some things to a broker that has read no metadata; the contract has none
            after, _ = take_step(state, step)
            target = number.setdefault(_key(inputs, after), len(states))
            if target == len(states):
                states.append(after)
            takes = value, requested, given, (state.fetches, _counted_with(inputs, state))
            here.append(Edge(takes, given, target, missing_capability(capabilities, state, step) is None))
        edges.append(here)
    return edges


def _reached(everything: list[list[Edge]]) -> tuple[list[list[Edge]], list[tuple[int, Step]]]:
    """Return the edges of the states that are reached by what the broker can do, and how each state is reached first."""
    number, reached = {0: 0}, [0]
    parents, edges = [(UNDEFINED, START)], []
    for source, state in enumerate(reached):
        here: list[Edge] = []
        for edge in everything[state]:
            if edge.can:
                target = number.setdefault(edge.to, len(reached))
                if target == len(reached):
                    reached.append(edge.to)
                    parents.append((source, edge.step))
                here.append(edge._replace(to=target))
        edges.append(here)
    return edges, parents


def _given(inputs: Inputs, state: ReferenceBroker, value: Local) -> Iterator[Input]:
    """What may be given to the broker now; a request in flight may always be lost."""
    if state.overtaken:
        known = (given for given in inputs.given.get(value, ()) if given.step[0] == "alter_partition_response")
        yield from dict.fromkeys((Input(response_to_overtaken(state)), *known))
        return
    in_flight = {peer: requested_by(request) for peer, request in state.requests}
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


def response_to_overtaken(state: ReferenceBroker) -> Step:
    """What the controller says of a proposal that metadata has overtaken: done, or made on an earlier partition epoch."""
    partition, proposal = state.broker.partition, state.proposal
    done = proposal is not None and partition.is_leader and partition.state.isr == proposal.isr
    if done and proposal is not None and partition.leader_epoch == proposal.leader_epoch:
        return "alter_partition_response", NONE, NEXT, proposal.isr
    return "alter_partition_response", INVALID_UPDATE_VERSION, UNDEFINED, ()


def resolved(state: ReferenceBroker, step: Step) -> Step:
    """Return a step of a graph with its epochs as numbers: the steps themselves know which they are."""
    return STEPS[step[0]].resolved(state, step)


def _local(inputs: Inputs, state: ReferenceBroker) -> Local:
    return counted(state.broker, state.partition_epoch) if inputs.counts else local(state.broker)


def _key(inputs: Inputs, state: ReferenceBroker) -> Hashable:
    proposed = response_to_overtaken(state) if state.overtaken else None
    fresh, proposes = state.partition_epoch == UNDEFINED, state.proposal is not None
    in_flight = state.requests, proposes, proposed, state.waiting, state.fetches
    return _local(inputs, state), in_flight, _remembered(state), fresh


def _remembered(state: ReferenceBroker) -> Hashable:
    """What sessions remember; which epoch is due in them makes no difference to what they do."""
    sessions = tuple((peer, known_of(session)) for peer, session in sorted(state.sessions.items()))
    return sessions, state.lost, _waiting(state)


def _waiting(state: ReferenceBroker) -> Hashable:
    return tuple((peer, waits_in(state, peer)) for peer in sorted(state.contexts))


def _counted_with(inputs: Inputs, state: ReferenceBroker) -> Hashable:
    """What of the sessions makes a step another one: rule 1 of this file."""
    return (_waiting(state), tuple(state.sessions)) if inputs.waits and inputs.sessions else _remembered(state)


def _path(
    edges: list[list[Edge]], parents: list[tuple[int, Step]], number: int, left: set[LocalStep], longest: int
) -> Iterator[Step]:
    """The run to a state, then whatever is left near it."""
    run: list[Step] = []
    at = number
    while parents[at][0] != UNDEFINED:
        run.append(parents[at][1])
        at = parents[at][0]
    yield from reversed(run)
    room, ends = longest - len(run), _ends(run)
    has_taken = False
    while room > 0:
        found = _nearest(edges, number, left)
        ends += _ends([edge.step for edge in found])
        if not found or (has_taken and ends > MOST_ENDS):
            return
        for edge in found:
            left.discard(edge.takes)
            yield edge.step
            number = edge.to
        room, has_taken = room - len(found), True


def _ends(steps: Iterable[Step]) -> int:
    return sum(step[0] in ENDS for step in steps)


def _nearest(edges: list[list[Edge]], number: int, left: set[LocalStep]) -> list[Edge]:
    """The shortest way to something new that is not far; nothing if there is none."""
    came: dict[int, tuple[int, Edge] | None] = {number: None}
    level = [number]
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


def _concrete(start: ReferenceBroker, given: Iterator[Step]) -> Path:
    """The path with its partition epochs."""
    path, state = [], start
    for one in given:
        step = resolved(state, one)
        state, _ = take_step(state, step)
        path.append(step)
    return tuple(path)
