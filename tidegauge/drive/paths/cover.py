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
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple

from tidegauge.drive.broker.contract import BROKER, BrokerCase, Opening
from tidegauge.drive.broker.peer_fetches import known_of, waits_in
from tidegauge.drive.broker.reference import (
    StepTaken,
    is_possible,
    missing_capability,
    read_by_consumer,
    take_step,
    take_step_unread,
)
from tidegauge.drive.broker.state import ReferenceBroker, opened
from tidegauge.drive.broker.steps import ENDS, EVERYTHING, IN_SESSION, MAY_WAIT, NEXT, NOT_DUE, STEPS
from tidegauge.drive.contract import Capabilities, Path, Step
from tidegauge.drive.paths.graph_projection import LEADER_EPOCH, Input, Inputs, Local, Requested, counted, local
from tidegauge.impl.fetch.fetch_session import FINAL_EPOCH, INITIAL_EPOCH
from tidegauge.impl.messages import FetchRequest, FollowerRequest
from tidegauge.impl.profiles import Profile, Rules
from tidegauge.impl.rules import INVALID_UPDATE_VERSION, NONE, UNDEFINED

LONGEST, NEAR, MOST_ENDS = 24, 3, 3
"""How long a path may go on, how many steps it walks to reach something new, and how many ends of the process it goes on
through."""

LocalStep = tuple[Local, Requested, Step, tuple[Hashable, ...]]
"""The broker's value, the request that a response belongs to, the step, (fetches that wait, what the sessions remember)."""


class Edge(NamedTuple):
    """A step from one explored state to the state numbered `to`.

    `takes`: the local step that it is, which ends with the fetches that wait and what the sessions remember.
    `can_be_given`: whether the broker under test has what the step needs.
    """

    takes: LocalStep
    step: Step
    to: int
    can_be_given: bool


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
    """Return paths that take every local step that a broker with these capabilities can be given.

    `seed` shuffles the order in which steps are tried; 0 leaves the graph's.
    """
    opening = _opening(inputs)
    start = opened(opening, profile)
    explored = _explore(inputs, start, capabilities)
    edges, parents = _reachable(explored)
    if seed:
        rng = random.Random(seed)
        for outgoing in edges:
            rng.shuffle(outgoing)
    left = {edge.takes for outgoing in edges for edge in outgoing if _is_counted(inputs, edge)}
    coverable = len(left)
    local_steps = len({edge.takes for outgoing in explored for edge in outgoing if _is_counted(inputs, edge)})
    reached = {edge.takes[:3] for outgoing in explored for edge in outgoing}
    # An Input is (step, request), the head of a LocalStep is (value, request, step): hence the reversal.
    unreached = sum((value, *graph_input[::-1]) not in reached for value, graph_input in _graph_inputs(inputs))
    cases = []
    for number, outgoing in enumerate(edges):
        # A state may have more steps than one path can take: a path leaves it with the first and may not come back.
        while any(edge.takes in left for edge in outgoing):
            cases.append(BrokerCase(opening, _with_numbers(start, _path(edges, parents, number, left, longest))))
    return Cover(tuple(cases), coverable, local_steps, unreached, inputs.states, inputs.transitions)


Explored = Callable[[int, Edge, ReferenceBroker, Step, StepTaken], None]
"""Gets the number of a state, an edge from it, the state, and the step that was taken with its epochs as numbers."""


def every_step(inputs: Inputs, profile: Profile, watch: Explored, rules: Rules | None = None) -> Opening:
    """Have `watch` look at every step of a graph, those nearest to the beginning first; return what they begin from."""
    opening = _opening(inputs)
    _explore(inputs, opened(opening, profile, rules), EVERYTHING, watch)
    return opening


def _opening(inputs: Inputs) -> Opening:
    return Opening(tuple(range(BROKER + 1, BROKER + 1 + inputs.peers)), inputs.min_insync_replicas)


def _is_counted(inputs: Inputs, edge: Edge) -> bool:
    """Return whether an edge is a local step of this graph: rule 1 of this file."""
    _, _, step, (waiting, _) = edge.takes
    # The steps of a graph with waiting fetches are those of the graph without, except where a fetch waits or may begin to:
    # that one covers the others already.
    if inputs.waits:
        return step[0] in MAY_WAIT or bool(waiting)
    return not inputs.sessions or step[0] in IN_SESSION


def _graph_inputs(inputs: Inputs) -> Iterator[tuple[Local, Input]]:
    """Yield each value of the broker in the graph with each input that it gets there."""
    for value, graph_inputs in inputs.given.items():
        # The contract has no requests to a broker that has read no metadata: such a broker has no partition.
        yield from ((value, graph_input) for graph_input in graph_inputs if value[LEADER_EPOCH] != UNDEFINED)


def _explore(
    inputs: Inputs, start: ReferenceBroker, capabilities: Capabilities, watch: Explored = lambda *_: None
) -> list[list[Edge]]:
    """Return the edges of every state of the contract that the inputs lead to, by the state's number; 0 is `start`."""
    number = {_key(inputs, start): 0}
    states = [start]
    edges: list[list[Edge]] = []
    for state in states:
        here: list[Edge] = []
        value = _local(inputs, state)
        for graph_input, requested in _inputs_now(inputs, state, value):
            step = resolved(state, graph_input)
            # The graph gives some inputs to a broker that has read no metadata; the contract does not.
            if not is_possible(state, step):
                continue
            taken = take_step_unread(state, step)
            after = read_by_consumer(taken.state)
            target = number.setdefault(_key(inputs, after), len(states))
            if target == len(states):
                states.append(after)
            takes = value, requested, graph_input, (state.fetches, _session_part(inputs, state))
            # A step that this broker cannot be given stays: it counts as a local step, and the report says it is not taken.
            here.append(Edge(takes, graph_input, target, missing_capability(capabilities, state, step) is None))
            watch(len(edges), here[-1], state, step, taken)
        edges.append(here)
    return edges


def _reachable(explored: list[list[Edge]]) -> tuple[list[list[Edge]], list[tuple[int, Step]]]:
    """Return the states that are reached by steps that the broker can be given: their edges, and by which step from which
    state each is reached first. `explored` are the edges of all states; states are numbered anew.
    """
    # Breadth first, so that the first way to a state is a shortest one.
    number, reached = {0: 0}, [0]
    parents, edges = [(UNDEFINED, START)], []
    for source, state in enumerate(reached):
        here: list[Edge] = []
        for edge in explored[state]:
            if edge.can_be_given:
                target = number.setdefault(edge.to, len(reached))
                if target == len(reached):
                    reached.append(edge.to)
                    parents.append((source, edge.step))
                here.append(edge._replace(to=target))
        edges.append(here)
    return edges, parents


def _inputs_now(inputs: Inputs, state: ReferenceBroker, value: Local) -> Iterator[Input]:
    """Yield the inputs that the broker may get now. `value`: its value, as the graph has it."""
    # Rule 5 of the contract: before anything else the controller responds to a proposal that metadata has overtaken. The
    # responses that the graph has for this value are tried as well.
    if state.overtaken:
        responses = (
            graph_input for graph_input in inputs.given.get(value, ()) if graph_input.step[0] == "alter_partition_response"
        )
        yield from dict.fromkeys((Input(response_to_overtaken(state)), *responses))
        return
    in_flight = {peer: requested_by(request) for peer, request in state.requests}
    for graph_input in inputs.given.get(value, ()):
        # A response is possible only while its own request is in flight: the broker may have the same value with another
        # request in flight, or with none.
        if not graph_input.requested or in_flight.get(graph_input.step[1]) == graph_input.requested:
            yield graph_input
        if inputs.waits and not inputs.sessions and graph_input.step[0] == "fetch":
            yield Input(("fetch_and_wait", *graph_input.step[1:]))
        if inputs.sessions and graph_input.step[0] == "fetch":
            yield from _session_inputs(graph_input.step, waits=inputs.waits)
    # A lost response is no input of the graph (`inputs_of` has none): any request in flight may end so.
    for peer, requested in in_flight.items():
        yield Input(("lose_response", peer), requested)


def _session_inputs(fetch: Step, *, waits: bool) -> Iterator[Input]:
    """Yield a peer's fetch with each kind of session epoch, and a fetch by which its session forgets the partition."""
    for session_epoch in (INITIAL_EPOCH, NEXT, NOT_DUE, FINAL_EPOCH):
        yield Input(("fetch_in_session", *fetch[1:], session_epoch))
        if waits:
            yield Input(("fetch_in_session_and_wait", *fetch[1:], session_epoch))
    yield Input(("fetch_others", fetch[1], NEXT))


def requested_by(request: FollowerRequest) -> Requested:
    """Return what distinguishes a request from other requests to the same peer."""
    if isinstance(request, FetchRequest):
        return request.current_leader_epoch, request.fetch_offset
    return (request.current_leader_epoch,)


def response_to_overtaken(state: ReferenceBroker) -> Step:
    """Return the controller's response to a proposal that metadata has overtaken."""
    partition, proposal = state.broker.partition, state.proposal
    # The metadata may be the proposal's own effect, which then came before the response; else the controller refuses the
    # proposal, for it names an earlier partition epoch.
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
    """Return what identifies a state in the exploration: whatever decides which inputs come and what they do."""
    proposed = response_to_overtaken(state) if state.overtaken else None
    fresh, proposes = state.partition_epoch == UNDEFINED, state.proposal is not None
    in_flight = state.requests, proposes, proposed, state.waiting, state.fetches
    return _local(inputs, state), in_flight, _session_memory(state), fresh


def _session_memory(state: ReferenceBroker) -> Hashable:
    """Return what the peers' fetch sessions remember."""
    # Not the epoch that is due: a step names it as NEXT, and the session does the same whichever it is.
    sessions = tuple((peer, known_of(session)) for peer, session in sorted(state.sessions.items()))
    return sessions, state.lost, _waits_in_sessions(state)


def _waits_in_sessions(state: ReferenceBroker) -> Hashable:
    return tuple((peer, waits_in(state, peer)) for peer in sorted(state.contexts))


def _session_part(inputs: Inputs, state: ReferenceBroker) -> Hashable:
    """Return the part of the sessions that distinguishes two local steps: rule 1 of this file."""
    return (_waits_in_sessions(state), tuple(state.sessions)) if inputs.waits and inputs.sessions else _session_memory(state)


def _path(
    edges: list[list[Edge]], parents: list[tuple[int, Step]], number: int, left: set[LocalStep], longest: int
) -> Iterator[Step]:
    """Yield a shortest run to a state, then steps to what is left near it; take them from `left`."""
    run: list[Step] = []
    at = number
    # From the state back to the beginning, which has no parent.
    while True:
        parent, step = parents[at]
        if parent == UNDEFINED:
            break
        run.append(step)
        at = parent
    yield from reversed(run)
    room, ends = longest - len(run), _count_ends(run)
    has_new = False
    while room > 0:
        nearest = _nearest(edges, number, left)
        ends += _count_ends([edge.step for edge in nearest])
        # All paths of a broker wait for each end of its process, so a path goes through few. The first new step is taken at
        # any price, or the path would be in vain.
        if not nearest or (has_new and ends > MOST_ENDS):
            return
        for edge in nearest:
            left.discard(edge.takes)
            yield edge.step
            number = edge.to
        room, has_new = room - len(nearest), True


def _count_ends(steps: Iterable[Step]) -> int:
    return sum(step[0] in ENDS for step in steps)


def _nearest(edges: list[list[Edge]], number: int, left: set[LocalStep]) -> list[Edge]:
    """Return the edges of a shortest way to a step in `left`, at most NEAR of them; none if there is no such way."""
    came_from: dict[int, tuple[int, Edge] | None] = {number: None}
    level = [number]
    for _ in range(NEAR):
        following = []
        for at in level:
            for edge in edges[at]:
                if edge.takes in left:
                    # Walk back to where the search began.
                    way, back = [edge], came_from[at]
                    while back is not None:
                        state_before, edge_before = back
                        way.append(edge_before)
                        back = came_from[state_before]
                    return way[::-1]
                if edge.to not in came_from:
                    came_from[edge.to] = (at, edge)
                    following.append(edge.to)
        level = following
    return []


def _with_numbers(start: ReferenceBroker, steps: Iterator[Step]) -> Path:
    """Return the path with numbers for the epochs that the steps of a graph name as NEXT and NOT_DUE."""
    path, state = [], start
    for graph_step in steps:
        step = resolved(state, graph_step)
        state, _ = take_step(state, step)
        path.append(step)
    return tuple(path)
