"""The inputs that a model's graph gives one broker: for each local state of the broker, the steps that can reach it there.

A graph has the states and transitions of a model of a whole cluster. A local state (Local) is the part of a state that one
broker has, as a tuple. An input is what a transition gives that broker (a message, metadata, a client's request, a crash),
as a step of the contract with the driven broker; NEXT in it stands for the next partition epoch. `me` is the id of that
broker in the model. A transition is given as `before`, `label`, `after`: the states around it, its action with arguments. A
`rename` is a function from ids in the model to ids in steps (rule 1).

Rules of this file

1. The graph is the one that equals TLC's (spec = impl), projected on each of its brokers. The brokers are renamed: the one
   that gets the inputs is 1, the others are 2, 3, .. in the order of their ids.
2. What an input leads to is not read from the graph: the reference behind the contract computes it. Where the two
   differed, local states would have no steps, and the cover would show that.
3. A diverging response has no high watermark in the model. Here it has one beyond any log: a broker that takes it over by
   mistake would otherwise not be seen.
4. A peer that is not to join the ISR yet is let in by the metadata cache all the same: the broker itself must refuse it.
5. A process that ends is up again in the same step. What the controller does is seen when the broker reads of it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tidegauge.drive.broker.contract import BROKER, EARLIEST, LATEST, Opening
from tidegauge.drive.broker.reference import take_step
from tidegauge.drive.broker.state import opened
from tidegauge.drive.broker.steps import NEXT
from tidegauge.drive.contract import Step
from tidegauge.impl.cluster.broker import Broker, truncate_alone
from tidegauge.impl.cluster.cluster import Bounds, Cluster, initial
from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.explorer import isr_model
from tidegauge.impl.explorer.explore import transitions_from
from tidegauge.impl.messages import FetchResponseInFlight, Message
from tidegauge.impl.profiles import Profile
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import INELIGIBLE_REPLICA, INVALID_UPDATE_VERSION, NONE, UNDEFINED

Local = tuple[Any, ...]
"""The local state of a broker, as `local` makes it: without ids of the model, and without partition epochs."""

LEADER_EPOCH = 2
"""The position of the leader epoch in a Local: UNDEFINED while the broker has read no metadata."""

Requested = tuple[int, ...]
"""Which request a response belongs to: (epoch, offset) of a fetch, (epoch) of an OffsetsForLeaderEpoch request."""


class Input(NamedTuple):
    """A step, and for a response the request it belongs to."""

    step: Step
    requested: Requested = ()


class Inputs(NamedTuple):
    """The inputs that a graph gives one broker: `by_local` has, for each local state, those that may reach it there.

    (A mapping to None is an ordered set.) `counts`: whether partition epochs are numbers there, not NEXT; `waits`: whether
    each fetch may also be one that waits; `sessions`: whether it may be one in a session. `states`, `transitions`: how large
    the graph is.
    """

    by_local: Mapping[Local, Mapping[Input, None]]
    peers: int
    min_insync_replicas: int
    counts: bool
    states: int
    transitions: int
    waits: bool = False
    sessions: bool = False


Rename = Callable[[int], int]


def local(broker: Broker, rename: Rename = lambda broker: broker) -> Local:
    """Return the local state of a broker, with its peers renamed: all that decides how it responds to an input."""
    partition, state = broker.partition, broker.partition.state
    return (
        partition.log,
        rename(partition.leader_id),
        partition.leader_epoch,
        partition.epoch_start,
        _set(state.isr, rename),
        rename(state.adding),
        _set(state.removing, rename),
        tuple(sorted((rename(r.broker_id), r.log_end) for r in partition.remotes)),
        rename(broker.source),
        broker.entry,
    )


def _set(brokers: tuple[int, ...], rename: Rename) -> tuple[int, ...]:
    """Return a set of brokers, renamed, in ascending order."""
    return tuple(sorted(map(rename, brokers)))


def renaming(me: int) -> Rename:
    """Return the renaming by which broker `me` is broker 1, and the others are 2, 3, .. in their order."""
    # In the model brokers are 0, 1, ..: those before `me` go up by two, those after it by one.
    return lambda b: b if b == UNDEFINED else BROKER if b == me else b + 1 + (b < me)


# ---------------------------------------------------------------------------------------------------------------------
# The cluster


def of_cluster(bounds: Bounds, profile: Profile) -> Inputs:
    """Return what the graph of impl.cluster.cluster within bounds gives a broker: the inputs of all its brokers together."""
    by_local: defaultdict[Local, dict[Input, None]] = defaultdict(dict)
    start = initial(bounds, profile)
    renames = [renaming(b) for b in range(bounds.brokers)]
    # The model begins with brokers that have read the first registration; a path begins one step earlier.
    for rename in renames:
        by_local[local(Broker(Partition(BROKER)))][Input(image_step(start, rename))] = None
    seen_keys: set[Any] = set()
    local_states: dict[tuple[int, int, bool], Local] = {}
    kept_alive: list[Broker] = []
    states, transitions = 1, 0
    for before, label, after, new in transitions_from(start):
        # `new`: `after` has not come up before.
        states, transitions = states + new, transitions + 1
        _, b, *_ = label  # the action, and the broker that makes the transition
        broker = before.brokers[b]
        # In the model a truncation of the fetcher thread is a transition of its own; the contract's broker truncates as soon
        # as no request is in flight, so its local state is the one after that.
        truncates = broker.entry is not None and broker.entry.truncating and before.network[b][broker.source] is None
        # Most transitions of a cluster repeat what another one gave this broker: skip them. The explorer interns the parts
        # of its states, so equal parts are the same object.
        key = (label, id(broker), truncates, _also_read(before, label), id(after.brokers[b]))
        if key in seen_keys:
            continue
        seen_keys.add(key)
        graph_inputs = list(inputs_of(before, label, after, renames[b]))
        if graph_inputs:
            if (b, id(broker), truncates) not in local_states:
                reached = truncate_alone(start.model.setup, broker) if truncates else broker
                local_states[b, id(broker), truncates] = local(reached, renames[b])
                # An id is unique only as long as its object lives.
                kept_alive.append(broker)
            by_local[local_states[b, id(broker), truncates]].update(dict.fromkeys(graph_inputs))
    return Inputs(
        by_local, bounds.brokers - 1, bounds.min_insync_replicas, counts=False, states=states, transitions=transitions
    )


def _also_read(before: Cluster, label: Label) -> Any:
    """Return a key of what a transition reads besides the broker: a message, the controller's registration, or nothing."""
    match label:
        case ("HandleFetch" | "HandleEpochRequest", leader, f, *_):
            return id(before.network[f][leader])
        case ("HandleFetchResponse" | "HandleDivergingResponse" | "HandleOutOfRange" | "HandleEpochResponse", f, leader):
            return id(before.network[f][leader])
        case ("LoseResponse", f, leader):
            return id(before.network[f][leader])
        case ("BecomeLeader" | "BecomeFollower", _):
            return before.controller.leader, before.controller.leader_epoch, before.controller.isr
        case _:
            return None


def image_step(cluster: Cluster, rename: Rename) -> Step:
    """Return the step in which a broker reads the controller's registration of the partition as metadata."""
    image = cluster.controller
    return "metadata", rename(image.leader), image.leader_epoch, NEXT, _set(image.isr, rename)


def inputs_of(before: Cluster, label: Label, after: Cluster, rename: Rename) -> Iterator[Input]:
    """Yield what a transition of a cluster gives the broker that takes it; nothing where the broker does it by itself.

    `label`: the transition's action and its arguments, the broker first; `f` is a follower, `expand` whether it joins the
    ISR. `network[f][leader]` is the message between the two. The last argument of a fetch is whether the peer may join.
    """
    match label:
        case ("BecomeLeader" | "BecomeFollower", _):
            yield Input(image_step(before, rename))
        case ("LeaderAppend", _):
            # In a model whose producers wait, an append has acks=all (-1).
            yield Input(("append", -1 if before.waiting else 1))
        case ("HandleFetch", leader, f, expand):
            request: Any = before.network[f][leader]
            fetch = ("fetch", rename(f), request.current_leader_epoch, request.fetch_offset, request.last_fetched_epoch)
            yield Input((*fetch, True))
            # Rule 4 of this file: where the model lets the peer join, the metadata cache may refuse it as well.
            if expand:
                yield Input((*fetch, False))
            response = after.network[f][leader]
            # A follower that is out of range asks the leader for both ends of its log.
            if isinstance(response, FetchResponseInFlight) and response.offsets is not None:
                yield from (Input(("list_offsets", fetch[2], which)) for which in (LATEST, EARLIEST))
        case ("HandleEpochRequest", leader, f):
            request = before.network[f][leader]
            yield Input(("offsets_for_leader_epoch", request.current_leader_epoch, request.leader_epoch))
        case ("HandleFetchResponse" | "HandleDivergingResponse" | "HandleOutOfRange" | "HandleEpochResponse", f, leader):
            yield _input_of_response(rename(leader), before.network[f][leader])
        case ("ShrinkIsr", _, members):
            # `members` is a mask with a bit for each broker that leaves.
            lagging = tuple(b for b in range(members.bit_length()) if members >> b & 1)
            yield Input(("lag", _set(lagging, rename)))
        case ("AlterPartition" | "AlterPartitionElr", b) if before.brokers[b] is not after.brokers[b]:
            # Only a refusal changes the broker: what the controller accepts reaches it as metadata.
            yield Input(("alter_partition_response", INELIGIBLE_REPLICA, UNDEFINED, ()))
        case ("Crash" | "CrashAndLose", _, hw, kept):
            yield Input(("crash", hw, kept))
        case ("Stop", _):
            yield Input(("stop",))
        case ("DeleteRecords", b, start):
            # A client deletes records at a leader; at a follower, retention does.
            yield Input(("delete_records" if before.brokers[b].leads else "retention", start))


def _input_of_response(peer: int, message: Message) -> Input:
    """Return the input that a response in flight from `peer`, the leader, is to its follower."""
    # The other kind of response is to an OffsetsForLeaderEpoch request.
    if not isinstance(message, FetchResponseInFlight):
        epoch_response: Any = message
        step = ("offsets_for_leader_epoch_response", peer, NONE, epoch_response.leader_epoch, epoch_response.end_offset)
        return Input(step, (epoch_response.request_epoch,))
    response, request = message.response, (message.request_epoch, message.request_offset)
    records = tuple((batch.base, batch.last, batch.epoch) for batch in response.records)
    head = ("fetch_response", peer, response.error)
    # Rule 3 of this file.
    if response.is_diverging:
        diverging = (response.diverging_epoch, response.diverging_end)
        return Input((*head, BEYOND, 0, (), diverging, None), request)
    offsets = None if message.offsets is None else (message.offsets.earliest, message.offsets.latest)
    return Input((*head, response.hw, response.log_start, records, None, offsets), request)


BEYOND = 99
"""A high watermark beyond any log of a model."""


# ---------------------------------------------------------------------------------------------------------------------
# ISR changes


def of_isr_changes(bounds: isr_model.IsrBounds, profile: Profile) -> Inputs:
    """Return the inputs that the graph of impl.explorer.isr_model gives its leader, which is the broker under test.

    In this graph a leader may get the response to its AlterPartition request before the metadata that the request caused.
    Partition epochs are numbers, so a local state has them, too: see `counted`.
    """
    rename = renaming(isr_model.LEADER)
    start = isr_model.initial_isr_cluster(bounds, profile)
    by_local: defaultdict[Local, dict[Input, None]] = defaultdict(dict)
    peers = tuple(range(BROKER + 1, BROKER + 1 + bounds.followers))
    state = opened(Opening(peers), profile)
    # The graph starts with a leader that leads already; these steps take a new broker there.
    for step in isr_beginning(start):
        by_local[counted(state.broker, state.partition_epoch)][Input(step)] = None
        state, _ = take_step(state, step)
    search = isr_model.search_isr(start)
    transitions = 0
    for source, label, target, _ in search.transitions():
        transitions += 1
        before, after = search.states[source], search.states[target]
        # Images that the leader has not read yet are in `images`, one for each partition epoch.
        last_image = before.registration.partition_epoch - len(before.images)
        step_of_leader = isr_step(before, label, after)
        # The model's leader is a partition alone, without a fetcher thread.
        if step_of_leader is not None:
            by_local[counted(Broker(before.leader), last_image, rename)][Input(step_of_leader)] = None
    # The model has no min.insync.replicas: it is 1.
    return Inputs(by_local, bounds.followers, 1, counts=True, states=len(search.states), transitions=transitions)


def _fetch(peer: int, offset: int, *, join: bool) -> Step:
    """Return the fetch of a peer in the model's only leader epoch; `join`: whether it may join the ISR."""
    epoch = isr_model.EPOCH
    # A peer without records has no last fetched epoch.
    return "fetch", peer, epoch, offset, epoch if offset else UNDEFINED, join


def isr_beginning(start: isr_model.IsrCluster) -> tuple[Step, ...]:
    """Return the steps before the model's first state: the leader reads its first metadata, and everybody fetches once."""
    isr = _set(start.registration.isr, renaming(isr_model.LEADER))
    metadata = ("metadata", BROKER, isr_model.EPOCH, start.registration.partition_epoch, isr)
    return metadata, *(_fetch(peer, 0, join=False) for peer in isr if peer != BROKER)


def isr_step(before: isr_model.IsrCluster, label: Label, after: isr_model.IsrCluster) -> Step | None:
    """Return the step that a transition of the ISR model is to the leader; None for one that gives the leader nothing.

    In a label followers and unread images count from 1; `members` is a mask with a bit for each broker that leaves.
    """
    exchange, rename = before.exchange, renaming(isr_model.LEADER)
    match label:
        case ("LeaderAppend",):
            return "append", 1
        case ("HandleFetch", f, expands, _):
            return _fetch(rename(f), before.ends[f - 1], join=bool(expands))
        case ("ShrinkIsr", members):
            return "lag", _set(tuple(b for b in range(members.bit_length()) if members >> b & 1), rename)
        case ("ReadMetadata", n):
            image = before.images[n - 1]
            return "metadata", BROKER, isr_model.EPOCH, image.partition_epoch, _set(image.isr, rename)
        # An exchange is a proposal and the response to it. Where it ends at the controller, the proposal was refused. A
        # leader whose proposal metadata has overtaken ignores the refusal.
        case ("HandleAlterPartition", _) if after.exchange is None and not before.leader.state.is_inflight:
            return None
        case ("HandleAlterPartition", _) if after.exchange is None:
            return "alter_partition_response", INVALID_UPDATE_VERSION, UNDEFINED, ()
        case ("HandleAlterPartitionResponse",) if exchange is not None:
            response: Any = exchange.message
            return "alter_partition_response", response.error, response.partition_epoch, _set(response.isr, rename)
        case _:
            return None


def counted(broker: Broker, image: int, rename: Rename = lambda broker: broker) -> Local:
    """Return the local state of a broker with its partition epoch, and with `image`, that of the last metadata it read."""
    return (*local(broker, rename), broker.partition.partition_epoch, image)
