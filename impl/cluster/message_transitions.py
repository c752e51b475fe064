"""Requests that leave and are served, answers that arrive or are lost.

Rule of this file: a response is consumed whether it is taken or not, and a follower of its sender asks again at once.
"""

from collections.abc import Iterator

from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.cluster.broker import Broker
from tidegauge.impl.cluster.transitions import (
    BoundedModel,
    NetworkRow,
    Transition,
    collect_transitions,
    exposed_epochs,
    follow_up_request,
    metadata_cache,
    with_message,
    with_only,
)
from tidegauge.impl.messages import (
    FetchRequest,
    FetchResponseInFlight,
    FollowerRequest,
    LeaderResponse,
    Metadata,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from tidegauge.impl.rules import OFFSET_OUT_OF_RANGE, UNDEFINED


@collect_transitions
def follower_transitions(model: BoundedModel, f: int, broker: Broker, row: NetworkRow) -> Iterator[Transition]:
    """Find what the fetcher thread does by itself and what a response does: they read follower and messages in flight."""
    if broker.source != UNDEFINED and row[broker.source] is None:
        yield from _thread_transitions(model, f, broker, row)
    for leader, response in enumerate(row):
        if isinstance(response, FetchResponseInFlight | OffsetsForLeaderEpochResponse):
            after = receive_response(model, broker, leader, response)
            yield Transition(
                (consuming_action(response), f, leader),
                f,
                after,
                with_message(row, leader, follow_up_request(model, after, leader)),
            )
            yield Transition(
                ("LoseResponse", f, leader), f, row=with_message(row, leader, follow_up_request(model, broker, leader))
            )


def _thread_transitions(model: BoundedModel, f: int, broker: Broker, row: NetworkRow) -> Iterator[Transition]:
    """Find SendFetch, SendEpochRequest, TruncateToHighWatermark: the thread waits for no response."""
    after = broker_.truncate_alone(model.setup, broker)
    request = broker_.next_request(model.setup, after)
    if after != broker:
        yield Transition(("TruncateToHighWatermark", f), f, after, with_only(row, after.source, request))
    elif request is not None:
        action = "SendFetch" if isinstance(request, FetchRequest) else "SendEpochRequest"
        yield Transition((action, f), f, row=with_only(row, broker.source, request))


def receive_response(model: BoundedModel, broker: Broker, leader: int, response: LeaderResponse) -> Broker:
    """Return the follower after a response has reached it."""
    if isinstance(response, FetchResponseInFlight):
        return broker_.handle_fetch_response(model.setup, broker, leader, response)
    return broker_.handle_offsets_for_leader_epoch_response(model.setup, broker, leader, response)


def consuming_action(response: LeaderResponse) -> str:
    """Return the name of the action that consumes a response."""
    if isinstance(response, OffsetsForLeaderEpochResponse):
        return "HandleEpochResponse"
    if response.response.error == OFFSET_OUT_OF_RANGE:
        return "HandleOutOfRange"
    return "HandleDivergingResponse" if response.response.is_diverging else "HandleFetchResponse"


def serve_transitions(
    model: BoundedModel,
    leader: int,
    broker: Broker,
    f: int,
    request: FollowerRequest,
    incarnations: tuple[int, ...] = (),
) -> tuple[Transition, ...]:
    """Find HandleFetch, HandleEpochRequest: they read the leader, one request, and the broker epochs it knows."""
    if isinstance(request, OffsetsForLeaderEpochRequest):
        response = broker_.serve_epoch(model.setup, broker, request)
        return (Transition(("HandleEpochRequest", leader, f), leader, broker, answered=f, response=response),)
    out, may_join = (metadata_cache(model, eligible, incarnations) for eligible in (False, True))
    return _serve_fetch(model, leader, broker, f, request, out, may_join)


def _serve_fetch(
    model: BoundedModel,
    leader: int,
    broker: Broker,
    f: int,
    request: FetchRequest,
    out: Metadata,
    may_join: Metadata,
) -> tuple[Transition, ...]:
    """Find HandleFetch with a metadata cache in which the follower may not, and may, join the ISR."""
    after, response = broker_.serve_fetch(model.setup, broker, request, out, model.bounds.max_fetch)
    kept = Transition(
        ("HandleFetch", leader, f, 0), leader, after, exposed=exposed_epochs(after), answered=f, response=response
    )
    joined, response = broker_.serve_fetch(model.setup, broker, request, may_join, model.bounds.max_fetch)
    # Eligibility made no difference: one transition, not two labels for the same state.
    if joined.partition.state == after.partition.state:
        return (kept,)
    return kept, Transition(
        ("HandleFetch", leader, f, 1), leader, joined, exposed=exposed_epochs(joined), answered=f, response=response
    )
