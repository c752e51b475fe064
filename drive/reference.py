"""The reference behind the contract: the code of `impl` that is explored and equals the specification, one broker of it.

Rules of this file

1. What a broker does is decided in impl.cluster.broker and below. Here stands what the world around it remembers: the
   requests in flight, the proposal that the controller has not responded to, the producers who wait.
2. `possible` says which steps the contract allows now. Paths are made, walked and shrunk by it.
3. A request leaves as soon as nothing else is in flight to that peer; one in flight to another peer stays where it is.
4. To see a broker with batches of several records is a consumer's read: it finds the position of the high watermark
   afterwards, what it says is from before (Partition#readRecords). With batches of one that changes nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tidegauge.drive.contract import BROKER, LATEST, Capabilities, Opening, Report, Step
from tidegauge.impl.client_messages import Isolation, OffsetSpec
from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.cluster.broker import NOW, Broker, settled
from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    FetchRequest,
    FetchResponse,
    FetchResponseInFlight,
    ListOffsets,
    Metadata,
    OffsetsForLeaderEpochResponse,
    Request,
)
from tidegauge.impl.profiles import FETCH_TRUNCATION, Profile, Rules, Setup
from tidegauge.impl.records import Batch
from tidegauge.impl.replica import isr
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.partition_state import Partition, PartitionState
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.storage import log as log_

NO_LIMIT = -1
"""replica.lag.time.max.ms: below any time, so nobody who is behind has caught up in time."""


Produced = tuple[tuple[int, int], ...]
"""Base offset and error of appends that were waiting."""


class Waiting(NamedTuple):
    """An append with acks -1 that nobody has answered yet."""

    base: int
    end: int


class Held(NamedTuple):
    """The broker, and what is under way around it. `highest_epoch`: the highest leader epoch it has heard of.

    `wrong` is what a broker with a bug makes of a step that the right one has taken.
    """

    setup: Setup
    opening: Opening
    broker: Broker = Broker(Partition(BROKER))
    requests: tuple[tuple[int, Request], ...] = ()
    proposal: AlterPartitionRequest | None = None
    proposed: PartitionState = PartitionState()
    waiting: tuple[Waiting, ...] = ()
    partition_epoch: int = UNDEFINED
    highest_epoch: int = UNDEFINED
    wrong: "WrongStep | None" = None

    def request(self, peer: int) -> Request | None:
        """What is in flight to a peer."""
        return dict(self.requests).get(peer)

    @property
    def overtaken(self) -> bool:
        """Whether metadata came while the controller's response to the proposal is still on its way."""
        return self.proposal is not None and self.broker.partition.state != self.proposed


Taken = tuple[Held, Report | None]
"""After a step: the broker, and the response to the step's request."""

WrongStep = Callable[[Held, Step, Held, Report | None], Taken]
"""Gets the broker before a step, the step, and what the right broker makes of both; gives what a wrong one makes of it."""


def opened(
    opening: Opening, profile: Profile = FETCH_TRUNCATION, rules: Rules | None = None, wrong: WrongStep | None = None
) -> Held:
    """An empty replica of a broker that has read no metadata."""
    setup = Setup(rules or Rules(), profile, opening.min_insync_replicas, replica_lag_time_max_ms=NO_LIMIT)
    return Held(setup, opening, wrong=wrong)


# ---------------------------------------------------------------------------------------------------------------------
# Steps


def lacking(capabilities: Capabilities, held: Held, step: Step) -> str | None:
    """What of the contract a step needs now and a broker does not have."""
    log = held.broker.partition.log
    return capabilities.lacks(step, log.end, log.start)


def possible(held: Held, step: Step) -> bool:
    """Whether the contract allows a step now."""
    name, *arguments = step
    partition, log = held.broker.partition, held.broker.partition.log
    if name == "alter_partition_response":
        return held.proposal is not None
    if held.overtaken:
        return False
    if name == "metadata":
        return bool(arguments[2] > held.partition_epoch)
    if held.partition_epoch == UNDEFINED or (partition.leader_epoch == UNDEFINED and name not in {"stop", "crash"}):
        return False  # a broker that has read no metadata has no such partition: nobody is answered
    if name == "lose_response":
        return held.request(arguments[0]) is not None
    if name == "fetch_response":
        request = held.request(arguments[0])
        return isinstance(request, FetchRequest) and _follow_each_other(request.fetch_offset, arguments[4])
    if name == "offsets_for_leader_epoch_response":
        request = held.request(arguments[0])
        return request is not None and not isinstance(request, FetchRequest)
    if name == "lag":
        return bool(arguments[0]) and set(arguments[0]) <= set(broker_.lagging(held.setup, held.broker))
    if name == "retention":
        return not partition.is_leader and log.start < arguments[0] <= log.hw
    if name == "crash":
        return bool(log.start <= arguments[0] <= min(log.hw, arguments[1]) and arguments[1] <= log.end)
    return True


def _follow_each_other(offset: int, records: tuple[tuple[int, int, int], ...]) -> bool:
    """Whether batches begin at an offset and leave no gap."""
    for base, last, _ in records:
        if base != offset or last < base:
            return False
        offset = last + 1
    return True


def step(held: Held, taken: Step) -> tuple[Held, Report]:
    """What a step that is possible makes of the broker, and what the broker reports after it."""
    after, result, produced = stepped(held, taken)
    return seen(after), report(after, result, produced)


def seen(held: Held) -> Held:
    """After somebody has looked: rule 4 of this file."""
    log = held.broker.partition.log
    if all(batch.base == batch.last for batch in log.batches):
        return held
    located = log_.locate_high_watermark(held.setup, log)
    return held._replace(broker=held.broker._replace(partition=held.broker.partition._replace(log=located)))


def stepped(held: Held, taken: Step) -> tuple[Held, Report | None, Produced]:
    """The same before anybody looks: the broker, the response to the step's request, the producers who were answered."""
    name, *arguments = taken
    before = held.broker.partition.state
    after, result = _STEPS[name](held, *arguments)
    if held.wrong is not None:
        after, result = held.wrong(held, taken, after, result)
    after, produced = _answering(_proposing(after, before))
    return _asking(after), result, produced


def report(held: Held, result: Report | None = None, produced: Produced = ()) -> Report:
    """Everything that can be reported."""
    log, proposal = held.broker.partition.log, held.proposal
    return {
        "result": result,
        "requests": {str(peer): _request_json(held.setup, request) for peer, request in held.requests},
        "proposal": None
        if proposal is None
        else {
            "isr": [*proposal.isr],
            "leader_epoch": proposal.leader_epoch,
            "partition_epoch": proposal.partition_epoch,
        },
        "produced": [[*answered] for answered in produced],
        "leo": log.end,
        "hw": log.hw,
        "log_start": log.start,
        "ends": [[*log_.end_offset_for_epoch(held.setup, log, epoch)] for epoch in range(held.highest_epoch + 1)],
    }


def _request_json(setup: Setup, request: Request) -> dict[str, int]:
    """What of a request the generation has in its messages."""
    current = request.current_leader_epoch if setup.profile.fencing else UNDEFINED
    if not isinstance(request, FetchRequest):
        return {"current_leader_epoch": current, "leader_epoch": request.leader_epoch}
    last = request.last_fetched_epoch if setup.profile.truncation_on_fetch else UNDEFINED
    return {
        "current_leader_epoch": current,
        "fetch_offset": request.fetch_offset,
        "last_fetched_epoch": last,
        "log_start": request.log_start,
    }


def _proposing(held: Held, before: PartitionState) -> Held:
    """AlterPartitionManager sends what the step has proposed. Partition#submitAlterPartition."""
    partition = held.broker.partition
    if partition.state == before or not partition.state.is_inflight or held.proposal is not None:
        return held
    return held._replace(proposal=isr.alter_partition_request(partition), proposed=partition.state)


def _answering(held: Held) -> tuple[Held, Produced]:
    """DelayedProduce#tryComplete, after whatever may have completed one."""
    if not held.waiting:
        return held, ()
    left, produced = [], []
    for waiting in held.waiting:
        reached, error = isr.check_enough_replicas_reach_offset(held.setup, held.broker.partition, waiting.end)
        if reached or error != NONE:
            produced.append((waiting.base, error))
        else:
            left.append(waiting)
    return held._replace(waiting=tuple(left)), tuple(produced)


def _asking(held: Held) -> Held:
    """The fetcher thread truncates and sends what it has to, unless it waits for a response."""
    if held.broker.source == UNDEFINED or held.request(held.broker.source) is not None:
        return held
    broker = broker_.truncated_alone(held.setup, held.broker)
    held = held._replace(broker=broker)
    request = broker_.next_request(held.setup, broker)
    if request is None:
        return held
    if isinstance(request, FetchRequest):
        request = request._replace(log_start=broker.partition.log.start)
    return held._replace(requests=tuple(sorted((*held.requests, (broker.source, request)))))


# ---------------------------------------------------------------------------------------------------------------------
# Each step


def _metadata(held: Held, leader: int, leader_epoch: int, partition_epoch: int, members: tuple[int, ...]) -> Taken:
    everybody = (BROKER, *held.opening.peers)
    image = Controller(everybody, leader, leader_epoch, members, everybody, partition_epoch)
    if leader == BROKER:
        broker = broker_.become_leader(held.setup, held.broker, image, cache_of(held, eligible=False))
    else:
        early = not held.setup.profile.truncates_in_thread
        broker = broker_.become_follower(held.setup, held.broker, image, truncates=early)
    highest = max(held.highest_epoch, leader_epoch)
    return held._replace(broker=broker, partition_epoch=partition_epoch, highest_epoch=highest), None


def cache_of(held: Held, *, eligible: bool) -> Metadata:
    """The broker's metadata cache: whether its peers may join the ISR."""
    return tuple(BrokerState(b, fenced=not eligible) for b in (BROKER, *held.opening.peers))


def led(held: Held, partition: Partition) -> Held:
    """The broker with its partition changed."""
    return held._replace(broker=settled(held.broker._replace(partition=partition)))


def _append(held: Held, acks: int) -> Taken:
    before, cache = held.broker.partition, cache_of(held, eligible=False)
    partition, error, info = partition_.append_records_to_leader(held.setup, before, 1, acks, cache, NOW)
    held = led(held, partition)
    if error != NONE:
        return held, {"error": error}
    if acks == -1:
        return held._replace(waiting=(*held.waiting, Waiting(info.first, info.last + 1))), None
    return held, {"error": NONE, "base": info.first}


def _fetch(held: Held, peer: int, epoch: int, offset: int, last_epoch: int, may_join: bool) -> Taken:
    request, cache = FetchRequest(peer, epoch, offset, last_epoch), cache_of(held, eligible=may_join)
    partition, response = partition_.fetch_records(held.setup, held.broker.partition, request, cache, NOW, max_records=1)
    if response.error != NONE:
        return held, {"error": response.error}
    return led(held, partition), {
        "error": NONE,
        "hw": response.hw,
        "log_start": response.log_start,
        "records": [[batch.base, batch.last, batch.epoch] for batch in response.records],
        "diverging": [response.diverging_epoch, response.diverging_end] if response.is_diverging else None,
    }


def _offsets_for_leader_epoch(held: Held, current_leader_epoch: int, leader_epoch: int) -> Taken:
    error, epoch, end = partition_.last_offset_for_leader_epoch(
        held.setup, held.broker.partition, current_leader_epoch, leader_epoch
    )
    return held, {"error": error} if error != NONE else {"error": NONE, "leader_epoch": epoch, "end_offset": end}


def _list_offsets(held: Held, current_leader_epoch: int, which: str) -> Taken:
    spec = OffsetSpec.LATEST if which == LATEST else OffsetSpec.EARLIEST
    listed = partition_.fetch_offset_for_timestamp(
        held.setup, held.broker.partition, spec, current_leader_epoch, Isolation.LOG_END, only_leader=True
    )
    return held, {"error": listed.error} if listed.error != NONE else {"error": NONE, "offset": listed.offset}


def _delete_records(held: Held, offset: int) -> Taken:
    partition, error, _ = partition_.delete_records(held.setup, held.broker.partition, offset)
    return led(held, partition), {"error": error}


def _without(held: Held, peer: int) -> Held:
    return held._replace(requests=tuple((p, request) for p, request in held.requests if p != peer))


def _fetch_response(
    held: Held,
    peer: int,
    error: int,
    hw: int,
    log_start: int,
    records: tuple[tuple[int, int, int], ...],
    diverging: tuple[int, int] | None,
    offsets: tuple[int, int] | None,
) -> Taken:
    request: Any = held.request(peer)
    response = FetchResponse(error, hw, log_start, tuple(Batch(*r) for r in records), *(diverging or ()))
    listed = None if offsets is None else ListOffsets(*offsets)
    in_flight = FetchResponseInFlight(request.current_leader_epoch, request.fetch_offset, response, listed)
    broker = broker_.handle_fetch_response(held.setup, held.broker, peer, in_flight)
    return _without(held, peer)._replace(broker=broker), None


def _offsets_for_leader_epoch_response(held: Held, peer: int, error: int, leader_epoch: int, end_offset: int) -> Taken:
    request: Any = held.request(peer)
    response = OffsetsForLeaderEpochResponse(request.current_leader_epoch, leader_epoch, end_offset)
    broker = broker_.handle_offsets_for_leader_epoch_response(held.setup, held.broker, peer, response, error)
    return _without(held, peer)._replace(broker=broker), None


def _lose_response(held: Held, peer: int) -> Taken:
    return _without(held, peer), None


def _lag(held: Held, peers: tuple[int, ...]) -> Taken:
    return held._replace(broker=broker_.shrink_isr(held.broker, peers)), None


def _alter_partition_response(held: Held, error: int, partition_epoch: int, members: tuple[int, ...]) -> Taken:
    asked: Any = held.proposal
    response = AlterPartitionResponse(error)
    if error == NONE:
        response = AlterPartitionResponse(NONE, asked.leader_epoch, partition_epoch, members)
    partition, again = isr.handle_alter_partition_response(
        held.setup, held.broker.partition, held.proposed, response, cache_of(held, eligible=False), NOW
    )
    held = led(held, partition)
    return held if again else held._replace(proposal=None), None


def _retention(held: Held, log_start: int) -> Taken:
    return held._replace(broker=broker_.delete_records(held.setup, held.broker, log_start)), None


def _stop(held: Held) -> Taken:
    return _started(held, broker_.stop(held.setup, held.broker)), None


def _crash(held: Held, hw: int, log_end: int) -> Taken:
    return _started(held, broker_.crash(held.setup, held.broker, hw, log_end)), None


def _started(held: Held, down: Broker) -> Held:
    """The process is up again: what it had sent or waited for is gone with its connections."""
    return Held(
        held.setup,
        held.opening,
        broker_.restart(down),
        partition_epoch=held.partition_epoch,
        highest_epoch=held.highest_epoch,
        wrong=held.wrong,
    )


_STEPS: Mapping[str, Callable[..., Taken]] = {
    "metadata": _metadata,
    "append": _append,
    "fetch": _fetch,
    "offsets_for_leader_epoch": _offsets_for_leader_epoch,
    "list_offsets": _list_offsets,
    "delete_records": _delete_records,
    "fetch_response": _fetch_response,
    "offsets_for_leader_epoch_response": _offsets_for_leader_epoch_response,
    "lose_response": _lose_response,
    "lag": _lag,
    "alter_partition_response": _alter_partition_response,
    "retention": _retention,
    "stop": _stop,
    "crash": _crash,
}
