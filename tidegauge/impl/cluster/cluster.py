"""The whole system as a value: brokers, messages in flight, controller. The Next relation of the specification.

A `Transition` is an enabled action: its label (action, arguments), the broker that acts, and what it changes. The *network*
is a row per follower: what is in flight between it and each broker, one message or None. `image` is the controller's
registration, as brokers read it. *Copies* are requests whose response nobody will get.

Rules of this file

1. Every transition reads and writes one broker, or the controller, and the messages it consumes or produces. So the
   transitions of a broker follow from few values, and a caller may remember them (`Caller`).
2. `actions.py` decides which transitions are possible; broker, partition, fetcher, log and controller decide their
   effects. This file collects and applies them.
3. There is no clock and no partition epoch: a lag time may run out whenever a replica lags, and "older partition epoch"
   is "another ISR". AlterPartition is one step, its pending proposal is the request in flight.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.cluster.actions import (
    AwaitedRecords,
    append_transitions,
    client_transitions,
    controller_transitions,
    copy_transitions,
    disconnect_transitions,
    disk_transitions,
    duplicate_transitions,
    follower_transitions,
    image_transitions,
    lose_transitions,
    may_read_metadata,
    own_transitions,
    produce_transitions,
    receive_transitions,
    serve_transitions,
    shrink_transitions,
    stop_transitions,
    thread_transitions,
)
from tidegauge.impl.cluster.broker import Broker
from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.cluster.transitions import (
    BoundedModel,
    Bounds,
    Label,
    NetworkRow,
    Transition,
    bounded_model,
    empty_row,
    extend_committed,
    mask,
    metadata_cache,
    record_epochs,
    with_message,
    without_requests_to,
)
from tidegauge.impl.messages import FetchRequest, OffsetsForLeaderEpochRequest
from tidegauge.impl.profiles import ModelProfile, Rules
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import UNDEFINED
from tidegauge.util.errors import UsageError

STOPS, STARTS = ("Crash", "CrashAndLose", "Stop"), ("Restart", "Register")
"""Actions by which a process ends or starts."""


class Cluster(NamedTuple):
    """A state. Three values are ghosts: `committed`, record epochs of the longest prefix any leader ever exposed, `deleted`,
    the highest log start anybody was told to move to, and `acked`, (offset, epoch) of the records that were acknowledged.

    `copies` are requests whose response nobody will get, as they arrive once more or were given up, a row per follower; no
    rows where there are none. `waiting` are per broker the records whose producers wait; empty where there are no clients.
    """

    model: BoundedModel
    brokers: tuple[Broker, ...]
    network: tuple[NetworkRow, ...]
    controller: Controller
    committed: tuple[int, ...] = ()
    crashes: int = 0
    copies: tuple[NetworkRow, ...] = ()
    duplicates: int = 0
    lost_disks: int = 0
    waiting: tuple[AwaitedRecords, ...] = ()
    deleted: int = 0
    """Records below this offset may be gone (DeleteRecords)."""
    acked: tuple[tuple[int, int], ...] = ()


class Caller:
    """Calls the functions of one broker or of the controller; the one of impl.explorer.explore remembers their results."""

    def transitions(self, function: Callable[..., tuple[Transition, ...]], *args: Any) -> tuple[Transition, ...]:
        """Return the transitions that `function` finds."""
        return function(*args)

    def row(self, function: Callable[..., NetworkRow], *args: Any) -> NetworkRow:
        """Return the row that `function` builds."""
        return function(*args)

    def value(self, function: Callable[..., Any], *args: Any) -> Any:
        """Return what `function` makes of a broker or of the controller."""
        return function(*args)


DIRECT = Caller()


def initial(bounds: Bounds, profile: ModelProfile, rules: Rules | None = None) -> Cluster:
    """Return the initial state: broker 0 leads in epoch 0, all are in the ISR, up and informed; logs are empty."""
    model = bounded_model(bounds, profile, rules)
    everybody = tuple(range(bounds.brokers))
    # Broker epochs are left out where they make no difference.
    incarnation = broker_.REGISTERED if model.counts_incarnations else UNDEFINED
    incarnations = (incarnation,) * bounds.brokers if model.counts_incarnations else ()
    controller = Controller(everybody, leader=0, leader_epoch=0, isr=everybody, live=everybody, incarnations=incarnations)
    loaded = (Broker(Partition(b), incarnation=incarnation) for b in everybody)
    brokers = tuple(
        broker_.become_leader(model.setup_of(b), broker, controller, metadata_cache(model, eligible=True))
        if b == 0
        else broker_.become_follower(model.setup_of(b), broker, controller)
        for b, broker in enumerate(loaded)
    )
    # A row of messages for each follower, all empty.
    empty_rows = ((None,) * bounds.brokers,) * bounds.brokers
    return Cluster(
        model,
        brokers,
        empty_rows,
        controller,
        copies=empty_rows if bounds.max_duplicates or bounds.max_abandoned else (),
        waiting=((),) * bounds.brokers if bounds.max_waiting else (),
    )


def transitions_of(cluster: Cluster, call: Caller = DIRECT) -> Iterable[tuple[Transition, ...]]:
    """Yield every enabled transition, in groups: one for each function of impl.cluster.actions and what it reads.

    `call` calls these functions; it may remember their results.
    """
    model, brokers, network, image = cluster.model, cluster.brokers, cluster.network, cluster.controller
    may_crash = _may_crash(cluster)
    for b, broker in enumerate(brokers):
        row = network[b]
        yield call.transitions(own_transitions, model, b, broker, may_crash)
        yield call.transitions(follower_transitions, model, b, broker, row)
        if _reads_metadata(cluster, b):
            yield call.transitions(image_transitions, model, b, broker, row, image)
        for leader, message in enumerate(row):
            if isinstance(message, FetchRequest | OffsetsForLeaderEpochRequest):
                yield call.transitions(serve_transitions, model, leader, brokers[leader], b, message, image.incarnations)
    up = _up(cluster)
    yield call.transitions(controller_transitions, model, image, up)
    yield from _network_faults(cluster, up, call)
    for b, waiting in enumerate(cluster.waiting):
        yield call.transitions(client_transitions, model, b, brokers[b], waiting)


def _may_crash(cluster: Cluster) -> bool:
    """Return whether another crash is within the bounds."""
    return cluster.crashes < cluster.model.bounds.max_crashes


def _reads_metadata(cluster: Cluster, b: int) -> bool:
    """Return whether broker b may read metadata: a deposed leader answers its clients before (replicaStateChangeLock)."""
    return not cluster.waiting or may_read_metadata(cluster.brokers[b], cluster.waiting[b])


def _up(cluster: Cluster) -> int:
    """Return the brokers that are up, as a bit mask."""
    return mask(b for b, broker in enumerate(cluster.brokers) if broker.up)


# The same transitions by kind and actor, for a caller that draws one and does not look at the others. Not here: what changes
# nothing (Read), DeleteRecords, and the faults of `_network_faults`.


Finder = tuple[Any, ...]
"""A function that finds transitions, followed by its arguments: for `Caller.transitions`."""


def _broker_finders(function: Callable[..., tuple[Transition, ...]]) -> Callable[[Cluster, int], list[Finder]]:
    """Return a function that gives the finder of a state and broker, where `function` reads that broker alone."""
    return lambda cluster, b: [(function, cluster.model, b, cluster.brokers[b])]


def _stop_finders(cluster: Cluster, b: int) -> list[Finder]:
    """Return the finder of the ways in which broker b's process ends; none if no more crashes are within the bounds."""
    return [(stop_transitions, cluster.model, b, cluster.brokers[b])] if _may_crash(cluster) else []


def _message_finders(cluster: Cluster, f: int) -> list[Finder]:
    """Return the finders of the steps that follower f's messages take: requests are served, responses received.

    If the follower waits for no response, they include the finder of its fetcher thread.
    """
    model, row, finders = cluster.model, cluster.network[f], list[Finder]()
    for leader, message in enumerate(row):
        if isinstance(message, FetchRequest | OffsetsForLeaderEpochRequest):
            arguments = cluster.brokers[leader], f, message, cluster.controller.incarnations
            finders.append((serve_transitions, model, leader, *arguments))
        elif message is not None:
            finders.append((receive_transitions, model, f, cluster.brokers[f], row, leader, message))
    broker = cluster.brokers[f]
    if broker.source != UNDEFINED and row[broker.source] is None:
        finders.append((thread_transitions, model, f, broker, row))
    return finders


def _loss_finders(cluster: Cluster, f: int) -> list[Finder]:
    """Return the finders of the losses of follower f's messages: responses alone are lost."""
    return [
        (lose_transitions, cluster.model, f, cluster.brokers[f], cluster.network[f], leader)
        for leader, message in enumerate(cluster.network[f])
        if message is not None and not isinstance(message, FetchRequest | OffsetsForLeaderEpochRequest)
    ]


def _metadata_finders(cluster: Cluster, b: int) -> list[Finder]:
    """Return the finder of what broker b does with the controller; none while clients wait at a deposed leader."""
    arguments = cluster.brokers[b], cluster.network[b], cluster.controller
    return [(image_transitions, cluster.model, b, *arguments)] if _reads_metadata(cluster, b) else []


def _client_finders(cluster: Cluster, b: int) -> list[Finder]:
    """Return the finder of the responses to the producers that wait at broker b; none if nobody waits."""
    waiting = cluster.waiting[b] if cluster.waiting else ()
    return [(produce_transitions, cluster.model, b, cluster.brokers[b], waiting)] if waiting else []


FINDERS: Mapping[str, Callable[[Cluster, int], list[Finder]]] = MappingProxyType(
    {
        "append": _broker_finders(append_transitions),
        "shrink": _broker_finders(shrink_transitions),
        "stop": _stop_finders,
        "message": _message_finders,
        "loss": _loss_finders,
        "metadata": _metadata_finders,
        "answer": _client_finders,
        "controller": lambda cluster, _: [(controller_transitions, cluster.model, cluster.controller, _up(cluster))],
    }
)
"""By kind of transition, a function of a state and a broker that returns finders; the controller's ignore the broker."""


def _network_faults(cluster: Cluster, up: int, call: Caller) -> Iterable[tuple[Transition, ...]]:
    """Yield the transitions of network and disk faults, in groups, as far as the bounds allow them.

    Requests arrive twice or are given up (`copies`), disks are lost; `up` is the bit mask of the brokers that run.
    """
    bounds, incarnations = cluster.model.bounds, cluster.controller.incarnations
    # The bound is on all copies at a time, of whichever follower.
    may_abandon = sum(copy is not None for copies in cluster.copies for copy in copies) < bounds.max_abandoned
    for f, copies in enumerate(cluster.copies):
        if cluster.duplicates < bounds.max_duplicates:
            yield call.transitions(duplicate_transitions, f, cluster.network[f], copies)
        if may_abandon:
            yield call.transitions(disconnect_transitions, f, cluster.network[f], copies, up)
        for leader, broker in enumerate(cluster.brokers):
            if copies[leader] is not None:
                yield call.transitions(copy_transitions, cluster.model, leader, broker, f, copies, incarnations)
    # With ELR a crash may lose the whole log (CrashAndLose), so there is no step for the disk.
    if cluster.lost_disks < bounds.max_lost_disks and not cluster.model.setup.profile.elr:
        for b, broker in enumerate(cluster.brokers):
            yield call.transitions(disk_transitions, b, broker)


def apply(cluster: Cluster, transition: Transition, call: Caller = DIRECT) -> Cluster:
    """Return the state after a transition that is enabled in it. `call` builds values, and may remember them.

    The transition says what the action itself changes; what follows from it for messages, ghosts and counts is added here.
    """
    model, brokers, network, image, committed, crashes, copies, duplicates, lost_disks, waiting, deleted, acked = cluster
    b = transition.actor
    action, *arguments = transition.label
    # The action has changed the broker, or handled a request at it.
    if transition.broker is not None:
        brokers = _put(brokers, b, transition.broker)
        if len(transition.exposed) > len(committed):
            committed = call.value(extend_committed, committed, transition.exposed)
        # A request was handled: its message in flight is the response now, or gone.
        if transition.answered != UNDEFINED:
            f = transition.answered
            network = _put(network, f, call.row(with_message, network[f], b, transition.response))
        # A process that ends loses its messages, and answers no client.
        elif action in STOPS:
            crashes += 1
            network = after_crash(network, b, call)
            copies = copies_after_crash(copies, b, model.bounds, call)
            waiting = _put(waiting, b, ()) if waiting else waiting
        # A producer waits for the record, unless as many wait at this broker as the bounds allow.
        elif action == "LeaderAppend" and waiting and len(waiting[b]) < model.bounds.max_waiting:
            appended = transition.broker.partition
            waiting = _put(waiting, b, (*waiting[b], (appended.log.end, appended.leader_epoch)))
        elif action in STARTS and model.counts_incarnations:
            # A proposal that names the broker carries the broker epoch of its last registration (KIP-903).
            brokers = tuple(call.value(broker_.outdate_proposal, broker, b) for broker in brokers)
        elif action == "DeleteRecords":
            _, log_start = arguments
            deleted = max(deleted, log_start)
        elif action == "LoseDisk":
            lost_disks += 1
        # The copy of a request was handled.
        elif transition.consumed != UNDEFINED:
            f = transition.consumed
            copies = _put(copies, f, call.row(with_message, copies[f], b, None))
    if transition.waiting is not None:
        waiting = _put(waiting, b, transition.waiting)
    if transition.acked is not None:
        acked = tuple(sorted({*acked, transition.acked}))
    if transition.row is not None:
        network = _put(network, b, transition.row)
    # A request will arrive once more, or was given up (Disconnect).
    if transition.copies is not None:
        copies = _put(copies, b, transition.copies)
        duplicates += action == "Duplicate"
    if transition.controller is not None:
        image = transition.controller
    return Cluster(
        model, brokers, network, image, committed, crashes, copies, duplicates, lost_disks, waiting, deleted, acked
    )


def _put(values: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    """Return the values with another one at an index."""
    return (*values[:index], value, *values[index + 1 :])


def after_crash(network: tuple[NetworkRow, ...], b: int, call: Caller) -> tuple[NetworkRow, ...]:
    """Return the network after broker b died: its own requests and awaited responses are gone, requests to it, too.

    Responses that it had sent stay. `call` builds the rows.
    """
    return tuple(
        call.row(empty_row, row) if f == b else call.row(without_requests_to, row, b) for f, row in enumerate(network)
    )


def copies_after_crash(copies: tuple[NetworkRow, ...], b: int, bounds: Bounds, call: Caller) -> tuple[NetworkRow, ...]:
    """Return the copies of requests after broker b died: those that it had not read are gone, as are those that it sent.

    A request that was given up (the model has `max_abandoned`) outlives its sender. `call` builds the rows.
    """
    if not bounds.max_abandoned:
        return after_crash(copies, b, call)
    return tuple(call.row(without_requests_to, row, b) for row in copies)


def successors(cluster: Cluster, call: Caller = DIRECT) -> Iterator[tuple[Label, Cluster]]:
    """Yield every enabled label with the state it leads to. `call` calls what is computed, and may remember it."""
    for group in transitions_of(cluster, call):
        for transition in group:
            yield transition.label, apply(cluster, transition, call)


def actions(cluster: Cluster) -> tuple[Label, ...]:
    """Return the labels of the enabled actions."""
    return tuple(transition.label for group in transitions_of(cluster) for transition in group)


def step(cluster: Cluster, label: Label) -> Cluster:
    """Return the state after `label`; a label leads to exactly one state. Raises UsageError if it is not enabled."""
    for group in transitions_of(cluster):
        for transition in group:
            if transition.label == label:
                return apply(cluster, transition)
    raise UsageError(f"step: expected one of {actions(cluster)}; seen {label}; take a label from actions(state)")


__all__ = [
    "FINDERS",
    "BoundedModel",
    "Bounds",
    "Caller",
    "Cluster",
    "Finder",
    "Label",
    "NetworkRow",
    "Transition",
    "actions",
    "apply",
    "initial",
    "mask",
    "record_epochs",
    "step",
    "successors",
    "transitions_of",
]
