"""A set of paths that takes every local step: each thing that one broker can do within a model's bounds, at least once.

Terms: a *graph* is a model's, projected on one broker (graph_projection.py: `Inputs`); it gives the broker an *input* in a
*local state*. A *state* is the whole state of the contract's reference broker. Exploring starts at a new broker and gives
it, in each state, the inputs that the graph has for its local state. An *edge* is such an input, from one state to another,
the state numbered `to`; `takes` is the local step that it is (rule 1).

In a state there are: `requests`, in flight to peers; `proposal`, an AlterPartition request in flight (`overtaken` if
metadata came before its response); `waiting`, appends that wait; by peer `fetches`, the fetch that waits, `sessions`, the
fetch session, and `contexts`, the fetch that waits in it; `lost`, the peers whose sessions ended with the broker's process.

Rules of this file

1. A local step is a local state of the broker and a step; for a response or its loss also the request it ends. In a graph
   where peers' fetches may wait, it is also what waits, and only those steps count at which something waits or may begin
   to. Where they fetch in sessions, it is also what the sessions remember, and only fetches in sessions count. Where they
   wait in sessions, it is what waits and who has a session: what else a session remembers makes no difference to who waited.
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
"""(local state, the request that a response belongs to, step, (fetches that wait, what the sessions remember))."""


class Edge(NamedTuple):
    """A step from one explored state to the state numbered `to`.

    `takes`: the local step that it is. `step`: as the graph has it, with NEXT for an epoch. `can_be_given`: whether the
    broker under test has what the step needs.
    """

    takes: LocalStep
    step: Step
    to: int
    can_be_given: bool


class Cover(NamedTuple):
    """The paths, how many local steps they take (`steps_taken`) of how many there are, and how large the graph is.

    `unreached`: the number of inputs of the graph that came up in no state. Unless it is 0, the contract's reference and the
    model differ; except for responses to a proposal that metadata has overtaken, which the contract gives at once.
    """

    cases: tuple[BrokerCase, ...]
    steps_taken: int
    local_steps: int
    unreached: int
    states: int
    transitions: int


START: Step = ()
"""In place of the step to the first state, which has none."""


def cover(
    inputs: Inputs, profile: Profile, capabilities: Capabilities = EVERYTHING, seed: int = 0, longest: int = LONGEST
) -> Cover:
    """Return paths that take every local step that a broker with these capabilities can be given.

    `seed` shuffles the order in which steps are tried; 0 leaves the graph's. `longest`: with so many steps a path ends.
    """
    opening = _opening(inputs)
    start = opened(opening, profile)
    explored = _explore(inputs, start, capabilities)
    edges, parents = _reachable(explored)
    if seed:
        rng = random.Random(seed)
        for outgoing in edges:
            rng.shuffle(outgoing)
    # What this broker can be given, what the graph has in all, and which inputs of the graph came up at all.
    remaining = {edge.takes for outgoing in edges for edge in outgoing if _is_counted(inputs, edge)}
    coverable = len(remaining)
    local_steps = len({edge.takes for outgoing in explored for edge in outgoing if _is_counted(inputs, edge)})
    reached = {edge.takes[:3] for outgoing in explored for edge in outgoing}
    # An Input is (step, request), the head of a LocalStep is (local state, request, step): hence the reversal.
    unreached = sum((local_state, *graph_input[::-1]) not in reached for local_state, graph_input in _graph_inputs(inputs))
    cases = []
    for number, outgoing in enumerate(edges):
        # A state may have more steps than one path can take: a path leaves it with the first and may not come back.
        while any(edge.takes in remaining for edge in outgoing):
            cases.append(BrokerCase(opening, _with_numbers(start, _path(edges, parents, number, remaining, longest))))
    return Cover(tuple(cases), coverable, local_steps, unreached, inputs.states, inputs.transitions)


Explored = Callable[[int, Edge, ReferenceBroker, Step, StepTaken], None]
"""Is called with the number of a state, an edge from it, the state, the step with its epochs as numbers, and its effect."""


def every_step(inputs: Inputs, profile: Profile, watch: Explored, rules: Rules | None = None) -> Opening:
    """Call `watch` with every step of a graph, those nearest to the beginning first; return the opening of all paths.

    `rules`: those of the reference, by default the right ones.
    """
    opening = _opening(inputs)
    _explore(inputs, opened(opening, profile, rules), EVERYTHING, watch)
    return opening


def _opening(inputs: Inputs) -> Opening:
    """Return the opening of all paths of a graph: as many peers as there, called 2, 3, .."""
    return Opening(tuple(range(BROKER + 1, BROKER + 1 + inputs.peers)), inputs.min_insync_replicas)


def _is_counted(inputs: Inputs, edge: Edge) -> bool:
    """Return whether an edge is a local step of this graph: rule 1 of this file."""
    _, _, step, (waiting, _) = edge.takes
    # The steps of a graph with waiting fetches are those of the graph without, except where a fetch waits or may begin to:
    # that one covers the others already.
    if inputs.waits:
        return step[0] in MAY_WAIT or bool(waiting)
    # In a graph with sessions the fetches in sessions alone are new.
    return not inputs.sessions or step[0] in IN_SESSION


def _graph_inputs(inputs: Inputs) -> Iterator[tuple[Local, Input]]:
    """Yield each local state of the broker in the graph with each input that it gets there."""
    for local_state, graph_inputs in inputs.by_local.items():
        # The contract has no requests to a broker that has read no metadata: such a broker has no partition.
        yield from ((local_state, graph_input) for graph_input in graph_inputs if local_state[LEADER_EPOCH] != UNDEFINED)


def _explore(
    inputs: Inputs, start: ReferenceBroker, capabilities: Capabilities, watch: Explored = lambda *_: None
) -> list[list[Edge]]:
    """Return the edges from every state that the inputs lead to, by the state's number; 0 is `start`.

    Calls `watch` with each edge.
    """
    numbers = {_key(inputs, start): 0}
    # Grows while it is iterated over: breadth first.
    states = [start]
    edges: list[list[Edge]] = []
    for state in states:
        outgoing: list[Edge] = []
        local_state = _local(inputs, state)
        for graph_input, requested in _inputs_now(inputs, state, local_state):
            step = resolved(state, graph_input)
            # The graph gives some inputs to a broker that has read no metadata; the contract does not.
            if not is_possible(state, step):
                continue
            # `watch` gets the state before a consumer reads; the paths go on after that.
            step_taken = take_step_unread(state, step)
            after = read_by_consumer(step_taken.state)
            target = numbers.setdefault(_key(inputs, after), len(states))
            if target == len(states):
                states.append(after)
            takes = local_state, requested, graph_input, (state.fetches, _session_part(inputs, state))
            # A step that this broker cannot be given stays: it counts as a local step, and the report says it is not taken.
            outgoing.append(Edge(takes, graph_input, target, missing_capability(capabilities, state, step) is None))
            watch(len(edges), outgoing[-1], state, step, step_taken)
        edges.append(outgoing)
    return edges


def _reachable(explored: list[list[Edge]]) -> tuple[list[list[Edge]], list[tuple[int, Step]]]:
    """Return the edges, and the parents, of the states that are reached by steps that the broker can be given.

    `explored`: the edges of all states, by number. These states are numbered anew. The parent of a state is (state, step) by
    which it is reached first; that of the first state is (UNDEFINED, START).
    """
    # Breadth first (`reached` grows while it is iterated over), so that the first way to a state is a shortest one.
    numbers, reached = {0: 0}, [0]
    parents, edges = [(UNDEFINED, START)], []
    for source, state in enumerate(reached):
        outgoing: list[Edge] = []
        for edge in explored[state]:
            if edge.can_be_given:
                target = numbers.setdefault(edge.to, len(reached))
                if target == len(reached):
                    reached.append(edge.to)
                    parents.append((source, edge.step))
                outgoing.append(edge._replace(to=target))
        edges.append(outgoing)
    return edges, parents


def _inputs_now(inputs: Inputs, state: ReferenceBroker, local_state: Local) -> Iterator[Input]:
    """Yield the inputs that the broker may get in a state. `local_state`: that of the state, as the graph has it."""
    # Rule 5 of the contract: before anything else the controller responds to a proposal that metadata has overtaken. The
    # responses that the graph has for this local state are tried as well.
    if state.overtaken:
        graph_inputs = inputs.by_local.get(local_state, ())
        responses = (graph_input for graph_input in graph_inputs if graph_input.step[0] == "alter_partition_response")
        yield from dict.fromkeys((Input(response_to_overtaken(state)), *responses))
        return
    in_flight = {peer: requested_by(request) for peer, request in state.requests}
    for graph_input in inputs.by_local.get(local_state, ()):
        # A response is possible only while its own request is in flight: in the same local state the broker may have another
        # request in flight, or none.
        if not graph_input.requested or in_flight.get(graph_input.step[1]) == graph_input.requested:
            yield graph_input
        # The graph itself has only fetches without a session that do not wait; the others are variants of those. With
        # sessions only fetches in them wait: the others are in the graph with `waits` alone.
        if inputs.waits and not inputs.sessions and graph_input.step[0] == "fetch":
            yield Input(("fetch_and_wait", *graph_input.step[1:]))
        if inputs.sessions and graph_input.step[0] == "fetch":
            yield from _session_inputs(graph_input.step, waits=inputs.waits)
    # A lost response is no input of the graph (`inputs_of` has none): any request in flight may end so.
    for peer, requested in in_flight.items():
        yield Input(("lose_response", peer), requested)


def _session_inputs(fetch: Step, *, waits: bool) -> Iterator[Input]:
    """Yield a peer's fetch with each kind of session epoch, and a fetch of other partitions in its session.

    INITIAL_EPOCH begins a session, NEXT is due in it, NOT_DUE is a wrong one, FINAL_EPOCH ends it.
    `waits`: yield the fetches that wait as well.
    """
    for session_epoch in (INITIAL_EPOCH, NEXT, NOT_DUE, FINAL_EPOCH):
        yield Input(("fetch_in_session", *fetch[1:], session_epoch))
        if waits:
            yield Input(("fetch_in_session_and_wait", *fetch[1:], session_epoch))
    yield Input(("fetch_others", fetch[1], NEXT))


def requested_by(request: FollowerRequest) -> Requested:
    """Return what tells a request from others to the same peer: epoch and offset of a fetch, the epoch of any other."""
    if isinstance(request, FetchRequest):
        return request.current_leader_epoch, request.fetch_offset
    return (request.current_leader_epoch,)


def response_to_overtaken(state: ReferenceBroker) -> Step:
    """Return the controller's response to a proposal that metadata has overtaken: accepted, or refused."""
    partition, proposal = state.broker.partition, state.proposal
    # The metadata may be the proposal's own effect, which then came before the response; else the controller refuses the
    # proposal, for it names an earlier partition epoch (or leader epoch). Which error it is makes no difference: a leader
    # ignores the response to a proposal that metadata has overtaken.
    is_done = proposal is not None and partition.is_leader and partition.state.isr == proposal.isr
    # In another leader epoch the same ISR is not the proposal's effect.
    if is_done and proposal is not None and partition.leader_epoch == proposal.leader_epoch:
        return "alter_partition_response", NONE, NEXT, proposal.isr
    return "alter_partition_response", INVALID_UPDATE_VERSION, UNDEFINED, ()


def resolved(state: ReferenceBroker, step: Step) -> Step:
    """Return a step of a graph with numbers in place of NEXT and NOT_DUE: each kind of step knows which they are."""
    return STEPS[step[0]].resolved(state, step)


def _local(inputs: Inputs, state: ReferenceBroker) -> Local:
    """Return the local state of a state, as this graph has it: with partition epochs, or without."""
    return counted(state.broker, state.partition_epoch) if inputs.counts else local(state.broker)


def _key(inputs: Inputs, state: ReferenceBroker) -> Hashable:
    """Return what identifies a state in the exploration: whatever decides which inputs come and what they do."""
    due_response = response_to_overtaken(state) if state.overtaken else None
    # A broker that has read no metadata yet (`is_new`) can be given less than others.
    is_new, has_proposal = state.partition_epoch == UNDEFINED, state.proposal is not None
    in_flight = state.requests, has_proposal, due_response, state.waiting, state.fetches
    return _local(inputs, state), in_flight, _session_memory(state), is_new


def _session_memory(state: ReferenceBroker) -> Hashable:
    """Return what the peers' fetch sessions remember, for a key."""
    # Without the next session epoch: a step names it as NEXT, and the session does the same whichever it is.
    sessions = tuple((peer, known_of(session)) for peer, session in sorted(state.sessions.items()))
    return sessions, state.lost, _waits_in_sessions(state)


def _waits_in_sessions(state: ReferenceBroker) -> Hashable:
    """Return (peer, what its waiting fetch in a session waits in) for each peer that has one, for a key."""
    return tuple((peer, waits_in(state, peer)) for peer in sorted(state.contexts))


def _session_part(inputs: Inputs, state: ReferenceBroker) -> Hashable:
    """Return the part of the sessions that distinguishes two local steps: rule 1 of this file."""
    return (_waits_in_sessions(state), tuple(state.sessions)) if inputs.waits and inputs.sessions else _session_memory(state)


def _path(
    edges: list[list[Edge]], parents: list[tuple[int, Step]], number: int, remaining: set[LocalStep], longest: int
) -> Iterator[Step]:
    """Yield the steps of one path: a shortest run to the state `number`, then on to remaining local steps near it.

    Removes the local steps that it takes from `remaining`. `edges`, `parents`: as `_reachable` returns them.
    """
    run: list[Step] = []
    state = number
    # From the state back to the beginning, which has no parent.
    while True:
        parent, step = parents[state]
        if parent == UNDEFINED:
            break
        run.append(step)
        state = parent
    yield from reversed(run)
    # From here on `number` is the state that the path has come to.
    room, ends = longest - len(run), _count_ends(run)
    has_new = False
    while room > 0:
        way = _nearest(edges, number, remaining)
        ends += _count_ends([edge.step for edge in way])
        # All paths of a broker wait for each end of its process, so a path goes through few. The first new step is taken at
        # any price, or the path would be in vain.
        if not way or (has_new and ends > MOST_ENDS):
            return
        for edge in way:
            remaining.discard(edge.takes)
            yield edge.step
            number = edge.to
        room, has_new = room - len(way), True


def _count_ends(steps: Iterable[Step]) -> int:
    """Return how many of the steps end the broker's process."""
    return sum(step[0] in ENDS for step in steps)


def _nearest(edges: list[list[Edge]], number: int, remaining: set[LocalStep]) -> list[Edge]:
    """Return the edges of a shortest way from a state to a remaining local step; none if it takes more than NEAR edges."""
    came_from: dict[int, tuple[int, Edge] | None] = {number: None}
    level = [number]
    # Breadth first, one level of states after the other.
    for _ in range(NEAR):
        next_level = []
        for state in level:
            for edge in edges[state]:
                # The first that is found is at the end of a shortest way.
                if edge.takes in remaining:
                    # Walk back to where the search began.
                    way, back = [edge], came_from[state]
                    while back is not None:
                        state_before, edge_before = back
                        way.append(edge_before)
                        back = came_from[state_before]
                    return way[::-1]
                if edge.to not in came_from:
                    came_from[edge.to] = (state, edge)
                    next_level.append(edge.to)
        level = next_level
    return []


def _with_numbers(start: ReferenceBroker, steps: Iterator[Step]) -> Path:
    """Return the path of a graph's steps, with numbers in place of NEXT and NOT_DUE: those of the states it goes through."""
    path, state = [], start
    for graph_step in steps:
        step = resolved(state, graph_step)
        state, _ = take_step(state, step)
        path.append(step)
    return tuple(path)
