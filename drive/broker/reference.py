"""The reference behind the contract: the code of `impl` that is explored and equals the specification, one broker of it.

Rules of this file

1. `possible` says which steps the contract allows now. Paths are made, walked and shrunk by it.
2. A request leaves as soon as nothing else is in flight to that peer; one in flight to another peer stays where it is.
3. To see a broker with batches of several records is a consumer's read: it finds the position of the high watermark
   afterwards, what it says is from before (Partition#readRecords). With batches of one that changes nothing.
"""

from tidegauge.drive.broker.contract import MAY_WAIT, lacks
from tidegauge.drive.broker.fetch_sessions import answered_in_sessions
from tidegauge.drive.broker.fetches import completed
from tidegauge.drive.broker.state import Fetched, Held, Produced, report
from tidegauge.drive.broker.steps import STEPS
from tidegauge.drive.contract import Capabilities, Report, Step
from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.messages import FetchRequest
from tidegauge.impl.replica import isr
from tidegauge.impl.replica.partition_state import PartitionState
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.storage import log as log_


def lacking(capabilities: Capabilities, held: Held, step: Step) -> str | None:
    """What of the contract a step needs now and a broker does not have."""
    log = held.broker.partition.log
    return lacks(capabilities, step, log.end, log.start, broker_.lagging_members(held.setup, held.broker))


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
    if name in MAY_WAIT:
        return arguments[0] not in held.fetches
    if name == "lose_response":
        return held.request(arguments[0]) is not None
    if name == "fetch_response":
        request = held.request(arguments[0])
        return isinstance(request, FetchRequest) and _follow_each_other(request.fetch_offset, arguments[4])
    if name == "offsets_for_leader_epoch_response":
        request = held.request(arguments[0])
        return request is not None and not isinstance(request, FetchRequest)
    if name == "lag":
        return bool(arguments[0]) and set(arguments[0]) <= set(broker_.lagging_members(held.setup, held.broker))
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
    after, result, produced, fetched = stepped(held, taken)
    return seen(after), report(after, result, produced, fetched)


def seen(held: Held) -> Held:
    """After somebody has looked: rule 3 of this file."""
    log = held.broker.partition.log
    if all(batch.base == batch.last for batch in log.batches):
        return held
    located = log_.locate_high_watermark(held.setup, log)
    return held._replace(broker=held.broker._replace(partition=held.broker.partition._replace(log=located)))


def stepped(held: Held, taken: Step) -> tuple[Held, Report | None, Produced, Fetched]:
    """The same before anybody looks: the broker, the response to the step's request, who was answered that had waited."""
    name, *arguments = taken
    before = held.broker.partition
    after, result = STEPS[name](held, *arguments)
    if held.wrong is not None:
        after, result = held.wrong(held, taken, after, result)
    after, produced = _answering(_proposing(after, before.state))
    after, fetched = answered_in_sessions(*completed(before, after))
    return _asking(after), result, produced, fetched


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
    broker = broker_.truncate_alone(held.setup, held.broker)
    held = held._replace(broker=broker)
    request = broker_.next_request(held.setup, broker)
    if request is None:
        return held
    if isinstance(request, FetchRequest):
        request = request._replace(log_start=broker.partition.log.start)
    return held._replace(requests=tuple(sorted((*held.requests, (broker.source, request)))))
