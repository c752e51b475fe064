"""Labels, bounds and transitions, and the helpers that the transitions of all actors share.

The explored system is one partition with its brokers, numbered from 0, its controller, and the messages in flight.

Rules of this file

1. A label is (action, arguments), all arguments ints; labels and action names are those of spec/Replication.tla.
2. A row is what is in flight between one follower and each broker it may follow: one message, or None. It is indexed by
   leader.
3. A set of brokers in a label is a bit mask. `image` is the controller's registration, as brokers read it.
4. Records have no contents: a log is a tuple of leader epochs by offset, UNDEFINED where a record was deleted.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, NamedTuple, ParamSpec

from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.cluster.broker import Broker
from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.messages import (
    BrokerState,
    BrokerStates,
    FetchRequest,
    LeaderResponse,
    Message,
    OffsetsForLeaderEpochRequest,
)
from tidegauge.impl.profiles import ModelProfile, Profile, Rules, Setup, serving
from tidegauge.impl.rules import UNDEFINED

Label = tuple[Any, ...]
"""("HandleFetch", leader, follower, expand) and the like."""

NetworkRow = tuple[Message, ...]
"""What is in flight between one follower and each leader."""

AwaitedRecord = tuple[int, int]
"""A record that a producer waits for: its end offset, which is all that the broker knows, and its epoch, a ghost."""


LAST_KNOWN, ANYBODY = "last-known", "anybody"
"""Whom the controller may elect as a last resort: who led last (KIP-966), or any live replica (unclean election)."""


class Bounds(NamedTuple):
    """The limits of a model: offsets below `max_log`, leader epochs up to `max_epoch`, log starts up to `max_start`.

    Log starts move in spec/LogStartMovement.tla, clients are in spec/Acks.tla. Requests that arrive twice and lost disks are
    no part of the specification. Without a bound there are none. At most `max_waiting` produces wait for a response at one
    broker.

    `keeps_in_flight`: a fetch leaves in flight what its sender has asked others. At most `max_abandoned` requests at a time
    are at a leader although nobody waits for them any more. Both are in spec/models/MCKeeping.

    `thread_truncates`: a truncation that needs no response is a step of its own, of the fetcher thread.

    What the cluster is configured with stands here too, as in a cfg. `loses_tails` and `last_resort` are read with ELR
    alone: whether a broker that stops uncleanly may find any end of its log gone, and who is elected when nobody may be
    cleanly, LAST_KNOWN or ANYBODY.
    """

    brokers: int
    max_log: int
    max_epoch: int
    max_crashes: int
    max_fetch: int = 1
    max_duplicates: int = 0
    max_lost_disks: int = 0
    max_waiting: int = 0
    max_start: int = 0
    min_insync_replicas: int = 1
    loses_tails: bool = False
    last_resort: str = ""
    thread_truncates: bool = False
    keeps_in_flight: bool = False
    max_abandoned: int = 0


class BoundedModel(NamedTuple):
    """The constants of a model: the same in every state.

    `setup` is that of the controller, and of all brokers unless `setups` has one for each.
    """

    bounds: Bounds
    setup: Setup
    setups: tuple[Setup, ...] = ()
    name: str = ""

    def setup_of(self, b: int) -> Setup:
        """Return the setup of broker `b`."""
        return self.setups[b] if self.setups else self.setup

    def serving(self, leader: int, follower: int) -> Setup:
        """Return the setup by which a leader handles what a follower sends."""
        return serving(self.setups[leader], self.setups[follower].profile) if self.setups else self.setup

    @property
    def profile_name(self) -> str:
        """The name of the profile, or of the brokers' profiles."""
        return self.name or self.setup.profile.name

    @property
    def counts_incarnations(self) -> bool:
        """Whether broker epochs are sent and compared (KIP-903): where no log is lost they change nothing."""
        return self.bounds.max_lost_disks > 0 or self.setup.profile.elr


class Transition(NamedTuple):
    """One enabled action and what it changes; None is unchanged.

    `answered` is the follower that gets `response`, `consumed` the one whose copied request was handled; `waiting` are the
    clients who still wait at the actor, `acked` the (offset, epoch) of a record that one of them was told is safe.
    """

    label: Label
    actor: int = UNDEFINED
    broker: Broker | None = None
    row: NetworkRow | None = None
    controller: Controller | None = None
    exposed: tuple[int, ...] = ()
    answered: int = UNDEFINED
    response: LeaderResponse | None = None
    copies: NetworkRow | None = None
    consumed: int = UNDEFINED
    waiting: tuple[AwaitedRecord, ...] | None = None
    acked: tuple[int, int] | None = None


Arguments = ParamSpec("Arguments")


def collect_transitions(finder: Callable[Arguments, Iterator[Transition]]) -> Callable[Arguments, tuple[Transition, ...]]:
    """Decorate a generator of transitions so that it returns them as a tuple, which a caller may remember."""

    @wraps(finder)
    def transitions(*args: Arguments.args, **kwargs: Arguments.kwargs) -> tuple[Transition, ...]:
        """Run the generator to its end."""
        return tuple(finder(*args, **kwargs))

    return transitions


def bounded_model(bounds: Bounds, profile: ModelProfile, rules: Rules | None = None) -> BoundedModel:
    """Build the constants of a model. `rules` replaces the right rules by others, for a fault."""

    def build_setup(node_profile: Profile) -> Setup:
        """Return the setup of the controller or of a broker, by its profile."""
        # Partition epochs are not counted in the model, so metadata of an equal one has to be read.
        reading = node_profile._replace(reads_equal_partition_epoch=True)
        # A lag limit below any time: every member that is behind may be found lagging.
        return Setup(rules or Rules(), reading, bounds.min_insync_replicas, replica_lag_time_max_ms=-1)

    if isinstance(profile, Profile):
        return BoundedModel(bounds, build_setup(profile))
    brokers = tuple(map(build_setup, profile.brokers))
    return BoundedModel(bounds, build_setup(profile.controller), brokers, profile.name)


def mask(brokers: Iterable[int]) -> int:
    """Return a set of brokers as a bit mask."""
    return sum(1 << b for b in brokers)


def metadata_cache(model: BoundedModel, eligible: bool, incarnations: tuple[int, ...] = ()) -> BrokerStates:
    """Return a metadata cache in which every broker may join the ISR (`eligible`), or none may.

    `incarnations` are the broker epochs by broker; empty where the model does not count them.
    """
    # UNDEFINED: a broker epoch that is not compared.
    epochs = incarnations or (UNDEFINED,) * model.bounds.brokers
    return tuple(BrokerState(b, fenced=not eligible, epoch=epoch) for b, epoch in enumerate(epochs))


def record_epochs(broker: Broker) -> tuple[int, ...]:
    """Return a broker's log as the specification has it: the epoch of each record by offset, UNDEFINED if deleted."""
    log = broker.partition.log
    epochs = [UNDEFINED] * log.end
    for batch in log.batches:
        epochs[batch.base : batch.last + 1] = [batch.epoch] * (batch.last + 1 - batch.base)
    return tuple(epochs)


def exposed_epochs(broker: Broker) -> tuple[int, ...]:
    """Return the record epochs that a leader exposes below its high watermark; () for a broker that does not lead."""
    return record_epochs(broker)[: broker.partition.log.hw] if broker.leads else ()


def extend_committed(committed: tuple[int, ...], exposed: tuple[int, ...]) -> tuple[int, ...]:
    """Return the record epochs of the longest prefix ever exposed, once a leader exposes the longer prefix `exposed`.

    Where `exposed` has a deleted record (UNDEFINED), the epoch that `committed` has of it is kept.
    """
    common = zip(committed, exposed[: len(committed)], strict=True)
    return (*(before if epoch == UNDEFINED else epoch for before, epoch in common), *exposed[len(committed) :])


def without_partition_epoch(image: Controller) -> Controller:
    """Return the image with partition epoch 0: the explored system does not count partition epochs."""
    return image._replace(partition_epoch=0)


# ---------------------------------------------------------------------------------------------------------------------
# Messages in flight


def with_message(row: NetworkRow, leader: int, message: Message) -> NetworkRow:
    """Return the follower's row with `message`, or None for nothing, in flight between it and `leader`."""
    return (*row[:leader], message, *row[leader + 1 :])


def with_request(model: BoundedModel, row: NetworkRow, leader: int, message: Message) -> NetworkRow:
    """Return the follower's row after it sends `message` to `leader`; what is in flight with others is dropped.

    A model whose bounds say `keeps_in_flight` keeps that.
    """
    # The thread that the partition has left closes its connection, unless it lives on for other partitions
    # (AbstractFetcherManager#shutdownIdleFetcherThreads).
    if model.bounds.keeps_in_flight:
        return with_message(row, leader, message)
    return tuple(message if other == leader else None for other in range(len(row)))


def follow_up_request(model: BoundedModel, broker: Broker, leader: int) -> Message:
    """Return the request that a follower sends as soon as a response from `leader` was consumed or lost.

    None: it does not follow `leader` any more, or its fetcher thread has nothing to send.
    """
    setup = model.setup_of(broker.partition.broker_id)
    return broker_.next_request(setup, broker) if broker.source == leader else None


def without_requests_to(row: NetworkRow, leader: int) -> NetworkRow:
    """Return a follower's row once `leader` has died: a request it had not read is lost, a response it sent stays."""
    return with_message(row, leader, None) if isinstance(row[leader], FetchRequest | OffsetsForLeaderEpochRequest) else row


def empty_row(row: NetworkRow) -> NetworkRow:
    """Return the row of a follower that died: nothing is in flight."""
    return (None,) * len(row)
