"""What can happen to the played cluster besides what spec/Replication.tla has: requests that arrive twice, lost disks.

Rules of this file

1. Nothing here is enabled without a bound for it (`Bounds.max_duplicates`, `max_lost_disks`): the graph that must equal
   the specification's has none of it.
2. A request is handled twice when the follower gave its connection up and the leader still read what was on it. The
   second response goes to that connection: nobody gets it. Answers are not taken twice: the thread waits for one response,
   by correlation id (NetworkClient).
3. A copy dies with either end, as requests in flight do.
4. A lost disk is found empty at the next start. What the broker said it held before must count no longer: that is what
   broker epochs are for (KIP-903).
"""

from collections.abc import Iterator

from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.cluster.broker import Broker
from tidegauge.impl.cluster.message_transitions import serve_transitions
from tidegauge.impl.cluster.transitions import BoundedModel, Label, NetworkRow, Transition, collect_transitions, with_message
from tidegauge.impl.messages import FetchRequest, FollowerRequest, OffsetsForLeaderEpochRequest
from tidegauge.impl.rules import UNDEFINED


def duplicate_transitions(f: int, row: NetworkRow, copies: NetworkRow) -> tuple[Transition, ...]:
    """Find Duplicate: a request in flight will arrive once more, one copy at a time between follower and leader."""
    return tuple(
        Transition(("Duplicate", f, leader), f, copies=with_message(copies, leader, message))
        for leader, message in enumerate(row)
        if isinstance(message, FetchRequest | OffsetsForLeaderEpochRequest) and copies[leader] is None
    )


@collect_transitions
def copy_transitions(
    model: BoundedModel,
    leader: int,
    broker: Broker,
    f: int,
    copies: NetworkRow,
    incarnations: tuple[int, ...],
) -> Iterator[Transition]:
    """Find HandleDuplicate: the leader handles a copy like any request; the response is lost."""
    copy = copies[leader]
    if isinstance(copy, FetchRequest | OffsetsForLeaderEpochRequest):
        for served in serve_transitions(model, leader, broker, f, copy, incarnations):
            expand = served.label[3:] or (0,)
            label = ("HandleDuplicate", leader, f, *expand, *_asked(copy))
            yield served._replace(label=label, answered=UNDEFINED, response=None, consumed=f)


def _asked(request: FollowerRequest) -> Label:
    """Return the request in the label: (epoch, offset, last epoch), or (epoch, -1, epoch asked about)."""
    if isinstance(request, OffsetsForLeaderEpochRequest):
        return request.current_leader_epoch, UNDEFINED, request.leader_epoch
    return request.current_leader_epoch, request.fetch_offset, request.last_fetched_epoch


def disk_transitions(b: int, broker: Broker) -> tuple[Transition, ...]:
    """Find LoseDisk: only a broker that is down and has records."""
    if broker.up or broker.partition.log.end == 0:
        return ()
    return (Transition(("LoseDisk", b), b, broker_.lose_disk(broker)),)
