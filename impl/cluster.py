"""The whole system as a value: brokers, messages in flight, controller. The Next relation of the specification.

Rules of this file

1. Every move reads and writes one broker, or the controller, and the messages it consumes or produces. So moves are
   found per broker from few values, and a caller may remember them (`Caller`).
2. This file decides only what is possible: which clock runs out, which session ends, which message arrives. What a move
   does is decided by broker, partition, fetcher, log and controller.
3. A label is (action, arguments), all arguments ints; labels and action names are those of spec/Replication.tla.
4. There is no clock and no partition epoch: a lag time may run out whenever a replica lags, and "older partition epoch"
   is "another ISR". AlterPartition is one step, its pending proposal is the request in flight.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

from impl import broker as broker_
from impl import controller as controller_
from impl import isr
from impl.broker import Broker
from impl.controller import Controller
from impl.errors import UsageError
from impl.messages import INELIGIBLE_REPLICA, BrokerState, FetchAnswer, FetchRequest, Message, Metadata
from impl.partition_state import Partition
from impl.profiles import Profile, Rules, Setup
from impl.rules import NONE, OFFSET_OUT_OF_RANGE, UNDEFINED

Label = tuple[Any, ...]
"""("HandleFetch", leader, follower, expand) and the like."""

Row = tuple[Message, ...]
"""What is in flight between one follower and each leader."""


class Bounds(NamedTuple):
    """How far a model goes: offsets below `max_log`, leader epochs up to `max_epoch`."""

    brokers: int
    max_log: int
    max_epoch: int
    max_crashes: int
    max_fetch: int = 1


class Model(NamedTuple):
    """What stays the same in every state."""

    bounds: Bounds
    setup: Setup


class Cluster(NamedTuple):
    """A state. `committed` is a ghost: record epochs of the longest prefix any leader ever exposed."""

    model: Model
    brokers: tuple[Broker, ...]
    network: tuple[Row, ...]
    controller: Controller
    committed: tuple[int, ...] = ()
    crashes: int = 0


class Move(NamedTuple):
    """One enabled action and what it changes; None is unchanged."""

    label: Label
    actor: int = UNDEFINED
    broker: Broker | None = None
    row: Row | None = None
    controller: Controller | None = None
    exposed: tuple[int, ...] = ()
    answered: int = UNDEFINED
    answer: FetchAnswer | None = None


class Caller:
    """Calls the local functions. impl.explore has one that remembers."""

    def moves(self, function: Callable[..., tuple[Move, ...]], *args: Any) -> tuple[Move, ...]:
        """The moves `function` finds."""
        return function(*args)

    def row(self, function: Callable[..., Row], *args: Any) -> Row:
        """The row `function` builds."""
        return function(*args)


DIRECT = Caller()


def model_of(bounds: Bounds, profile: Profile, rules: Rules | None = None) -> Model:
    """A model whose lag limit is below any time: every member that is behind may be found lagging."""
    if profile.epoch_requests and not profile.truncation_on_fetch:
        raise UsageError(
            f"profile: expected one that truncates alone or on fetch; seen {profile.name}, whose OffsetsForLeaderEpoch "
            "requests have no slot in the explored cluster; step impl.fetcher_thread with it"
        )
    setup = Setup(rules if rules is not None else Rules(), profile, replica_lag_time_max_ms=-1)
    return Model(bounds, setup)


def initial(bounds: Bounds, profile: Profile, rules: Rules | None = None) -> Cluster:
    """Broker 0 leads in epoch 0, every broker is in the ISR, up and informed; logs are empty."""
    model = model_of(bounds, profile, rules)
    everybody = tuple(range(bounds.brokers))
    controller = Controller(everybody, 0, 0, everybody, everybody)
    brokers = tuple(
        broker_.become_leader(model.setup, Broker(Partition(b)), controller, _metadata(model, True))
        if b == 0
        else broker_.become_follower(model.setup, Broker(Partition(b)), controller)
        for b in everybody
    )
    return Cluster(model, brokers, ((None,) * bounds.brokers,) * bounds.brokers, controller)


def _metadata(model: Model, eligible: bool) -> Metadata:
    return tuple(BrokerState(b, fenced=not eligible) for b in range(model.bounds.brokers))


def _exposed(broker: Broker) -> tuple[int, ...]:
    if not broker.leads:
        return ()
    return record_epochs(broker)[: broker.partition.log.hw]


def record_epochs(broker: Broker) -> tuple[int, ...]:
    """The log as the specification has it: one epoch per record."""
    return tuple(batch.epoch for batch in broker.partition.log.batches for _ in range(batch.base, batch.last + 1))


# ---------------------------------------------------------------------------------------------------------------------
# Moves, by what they read


def own_moves(model: Model, b: int, broker: Broker, may_crash: bool) -> tuple[Move, ...]:
    """LeaderAppend, ShrinkIsr, Crash: read the broker alone."""
    return tuple(_own_moves(model, b, broker, may_crash))


def _own_moves(model: Model, b: int, broker: Broker, may_crash: bool) -> Iterator[Move]:
    setup, log = model.setup, broker.partition.log
    if broker.leads and log.end < model.bounds.max_log:
        after = broker_.append(setup, broker, _metadata(model, False))
        yield Move(("LeaderAppend", b), b, after, exposed=_exposed(after))
    for out_of_sync in _subsets(broker_.lagging(setup, broker)):
        yield Move(("ShrinkIsr", b, mask(out_of_sync)), b, broker_.shrink_isr(broker, out_of_sync))
    if may_crash and broker.up:
        for hw in range(log.hw + 1):
            yield Move(("Crash", b, hw, log.end), b, broker_.crash(setup, broker, hw))


def follower_moves(model: Model, f: int, broker: Broker, row: Row) -> tuple[Move, ...]:
    """SendFetch and everything an answer does: read the follower and what is in flight for it."""
    return tuple(_follower_moves(model, f, broker, row))


def _follower_moves(model: Model, f: int, broker: Broker, row: Row) -> Iterator[Move]:
    request = broker_.next_fetch(broker)
    if request is not None and row[broker.source] is None:
        yield Move(("SendFetch", f), f, row=_only(row, broker.source, request))
    for leader, answer in enumerate(row):
        if not isinstance(answer, FetchAnswer):
            continue
        after = broker_.handle_answer(model.setup, broker, leader, answer)
        yield Move((_action(answer), f, leader), f, after, _with_slot(row, leader, _automatic(after, leader)))
        yield Move(("LoseResponse", f, leader), f, row=_with_slot(row, leader, _automatic(broker, leader)))


def _action(answer: FetchAnswer) -> str:
    if answer.response.error == OFFSET_OUT_OF_RANGE:
        return "HandleOutOfRange"
    return "HandleDivergingResponse" if answer.response.is_diverging else "HandleFetchResponse"


def serve_moves(model: Model, l: int, broker: Broker, f: int, request: FetchRequest) -> tuple[Move, ...]:  # noqa: E741
    """HandleFetch: reads the leader and one request. Whether the follower may join the ISR is the metadata cache's word."""
    after, answer = broker_.serve(model.setup, broker, request, _metadata(model, False), model.bounds.max_fetch)
    kept = Move(("HandleFetch", l, f, 0), l, after, exposed=_exposed(after), answered=f, answer=answer)
    joined, answer = broker_.serve(model.setup, broker, request, _metadata(model, True), model.bounds.max_fetch)
    if joined.partition.state == after.partition.state:
        return (kept,)
    return kept, Move(("HandleFetch", l, f, 1), l, joined, exposed=_exposed(joined), answered=f, answer=answer)


def image_moves(model: Model, b: int, broker: Broker, row: Row, image: Controller) -> tuple[Move, ...]:
    """BecomeLeader, BecomeFollower, Restart, AlterPartition: read the broker and the controller."""
    return tuple(_image_moves(model, b, broker, row, image))


def _image_moves(model: Model, b: int, broker: Broker, row: Row, image: Controller) -> Iterator[Move]:
    setup, partition = model.setup, broker.partition
    if not broker.up:
        if b not in image.live:
            yield Move(("Restart", b), b, broker_.restart(broker))
        return
    known = partition.leader_epoch
    other_isr = partition.is_leader and partition.state.isr != image.isr
    if image.leader_epoch > known or (image.leader_epoch == known and other_isr):
        if image.leader == b and b in image.live:
            after = broker_.become_leader(setup, broker, image, _metadata(model, False))
            yield Move(("BecomeLeader", b), b, after, exposed=_exposed(after))
        elif image.leader != b and (b in image.live or known != UNDEFINED):
            after = broker_.become_follower(setup, broker, image)
            request = broker_.next_fetch(after)
            sends = request is not None and row[after.source] is None
            yield Move(("BecomeFollower", b), b, after, _only(row, after.source, request) if sends else row)
    if partition.state.is_inflight and partition.is_leader:
        yield from _alter_partition(model, b, broker, image)


def _alter_partition(model: Model, b: int, broker: Broker, image: Controller) -> Iterator[Move]:
    request = isr.alter_partition_request(broker.partition)
    if broker.partition.state.isr != image.isr:
        request = request._replace(partition_epoch=image.partition_epoch - 1)
    changed, response = controller_.alter_partition(image, request)
    if response.error == NONE:
        yield Move(("AlterPartition", b), b, controller=_uncounted(changed))
    elif response.error == INELIGIBLE_REPLICA:
        after = broker_.handle_alter_partition_response(model.setup, broker, response, _metadata(model, False))
        yield Move(("AlterPartition", b), b, after)


def controller_moves(model: Model, image: Controller, up: int) -> tuple[Move, ...]:
    """FenceBroker, UnfenceBroker, ElectPreferred: read the controller and the mask of brokers that can renew a session."""
    return tuple(_controller_moves(model, image, up))


def _controller_moves(model: Model, image: Controller, up: int) -> Iterator[Move]:
    for label, changed in dict(_changes(image, up)).items():
        if changed.leader_epoch <= model.bounds.max_epoch:
            yield Move(label, controller=_uncounted(changed))


def _changes(image: Controller, up: int) -> Iterator[tuple[Label, Controller]]:
    for b in image.assignment:
        runs = bool(up >> b & 1)
        if b in image.live and (b in image.isr or not runs):
            for preferred in image.assignment:
                changed = controller_.fence_broker(image, b, runs, _first(preferred, image.assignment))
                yield ("FenceBroker", b, _elected(image, changed)), changed
        if b not in image.live and runs:
            changed = controller_.unfence_broker(image, b)
            yield ("UnfenceBroker", b, _elected(image, changed)), changed
        if image.leader != UNDEFINED:
            changed = controller_.elect_preferred(image, b)
            if changed is not image:
                yield ("ElectPreferred", b), changed


def _elected(before: Controller, after: Controller) -> int:
    return after.leader if after.leader_epoch > before.leader_epoch else UNDEFINED


def _first(preferred: int, assignment: tuple[int, ...]) -> tuple[int, ...]:
    return (preferred, *(b for b in assignment if b != preferred))


def _uncounted(image: Controller) -> Controller:
    return image._replace(partition_epoch=0)


# ---------------------------------------------------------------------------------------------------------------------
# Messages in flight


def _with_slot(row: Row, leader: int, message: Message) -> Row:
    return (*row[:leader], message, *row[leader + 1 :])


def _only(row: Row, leader: int, message: Message) -> Row:
    """A fetch to a leader drops what is in flight with any other: the old thread's connection is closed."""
    return tuple(message if other == leader else None for other in range(len(row)))


def _automatic(broker: Broker, leader: int) -> Message:
    """The fetch that follows as soon as an answer from `leader` was consumed or lost."""
    return broker_.next_fetch(broker) if broker.source == leader else None


def _without_requests_to(row: Row, leader: int) -> Row:
    return _with_slot(row, leader, None) if isinstance(row[leader], FetchRequest) else row


def _nothing(row: Row) -> Row:
    return (None,) * len(row)


# ---------------------------------------------------------------------------------------------------------------------
# States


def moves_of(cluster: Cluster, call: Caller = DIRECT) -> Iterable[tuple[Move, ...]]:
    """Every enabled move, in groups."""
    model, brokers, network, image = cluster.model, cluster.brokers, cluster.network, cluster.controller
    may_crash = cluster.crashes < model.bounds.max_crashes
    for b, broker in enumerate(brokers):
        row = network[b]
        yield call.moves(own_moves, model, b, broker, may_crash)
        yield call.moves(follower_moves, model, b, broker, row)
        yield call.moves(image_moves, model, b, broker, row, image)
        for leader, message in enumerate(row):
            if isinstance(message, FetchRequest):
                yield call.moves(serve_moves, model, leader, brokers[leader], b, message)
    yield call.moves(controller_moves, model, image, mask(b for b, broker in enumerate(brokers) if broker.up))


def apply(cluster: Cluster, move: Move, call: Caller = DIRECT) -> Cluster:
    """The state after a move of this state."""
    model, brokers, network, image, committed, crashes = cluster
    b = move.actor
    if move.broker is not None:
        brokers = (*brokers[:b], move.broker, *brokers[b + 1 :])
        if len(move.exposed) > len(committed):
            committed = move.exposed
        if move.answered != UNDEFINED:
            f = move.answered
            network = (*network[:f], call.row(_with_slot, network[f], b, move.answer), *network[f + 1 :])
        elif move.label[0] == "Crash":
            crashes += 1
            network = tuple(
                call.row(_nothing, row) if f == b else call.row(_without_requests_to, row, b)
                for f, row in enumerate(network)
            )
    if move.row is not None:
        network = (*network[:b], move.row, *network[b + 1 :])
    if move.controller is not None:
        image = move.controller
    return Cluster(model, brokers, network, image, committed, crashes)


def successors(cluster: Cluster, call: Caller = DIRECT) -> Iterator[tuple[Label, Cluster]]:
    """Every enabled label with the state it leads to."""
    for group in moves_of(cluster, call):
        for move in group:
            yield move.label, apply(cluster, move, call)


def actions(cluster: Cluster) -> tuple[Label, ...]:
    """Labels of the enabled actions."""
    return tuple(move.label for group in moves_of(cluster) for move in group)


def step(cluster: Cluster, label: Label) -> Cluster:
    """The state after `label`; a label leads to exactly one state."""
    for group in moves_of(cluster):
        for move in group:
            if move.label == label:
                return apply(cluster, move)
    raise UsageError(f"step: expected one of {actions(cluster)}; seen {label}; take a label from actions(state)")


def mask(brokers: Iterable[int]) -> int:
    """A set of brokers as a bit mask."""
    return sum(1 << b for b in brokers)


def _subsets(members: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for size in range(1, len(members) + 1):
        yield from combinations(members, size)
