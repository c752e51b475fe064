"""Requests that leave and are served, answers that arrive or are lost.

Rule of this file: an answer is consumed whether it is taken or not, and a follower of its sender asks again at once.
"""

from collections.abc import Iterator

from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.cluster.broker import Broker
from tidegauge.impl.cluster.transitions import (
    Model,
    Move,
    Row,
    all_at_once,
    automatic,
    exposed,
    metadata_of,
    only,
    with_slot,
)
from tidegauge.impl.messages import Answer, EpochEndOffset, EpochRequest, FetchAnswer, FetchRequest, Metadata, Request
from tidegauge.impl.rules import OFFSET_OUT_OF_RANGE


@all_at_once
def follower_moves(model: Model, f: int, broker: Broker, row: Row) -> Iterator[Move]:
    """SendFetch, SendEpochRequest, and everything an answer does: read the follower and what is in flight for it."""
    request = broker_.next_request(model.setup, broker)
    if request is not None and row[broker.source] is None:
        action = "SendFetch" if isinstance(request, FetchRequest) else "SendEpochRequest"
        yield Move((action, f), f, row=only(row, broker.source, request))
    for leader, answer in enumerate(row):
        if isinstance(answer, FetchAnswer | EpochEndOffset):
            after = take(model, broker, leader, answer)
            yield Move((action_of(answer), f, leader), f, after, with_slot(row, leader, automatic(model, after, leader)))
            yield Move(("LoseResponse", f, leader), f, row=with_slot(row, leader, automatic(model, broker, leader)))


def take(model: Model, broker: Broker, leader: int, answer: Answer) -> Broker:
    """The follower once an answer has reached it."""
    if isinstance(answer, FetchAnswer):
        return broker_.handle_answer(model.setup, broker, leader, answer)
    return broker_.handle_epoch_answer(model.setup, broker, leader, answer)


def action_of(answer: Answer) -> str:
    """Which action consumes it."""
    if isinstance(answer, EpochEndOffset):
        return "HandleEpochResponse"
    if answer.response.error == OFFSET_OUT_OF_RANGE:
        return "HandleOutOfRange"
    return "HandleDivergingResponse" if answer.response.is_diverging else "HandleFetchResponse"


def serve_moves(
    model: Model,
    leader: int,
    broker: Broker,
    f: int,
    request: Request,
    incarnations: tuple[int, ...] = (),
) -> tuple[Move, ...]:
    """HandleFetch, HandleEpochRequest: read the leader, one request, and the broker epochs in the metadata cache."""
    if isinstance(request, EpochRequest):
        answer = broker_.serve_epoch(model.setup, broker, request)
        return (Move(("HandleEpochRequest", leader, f), leader, broker, answered=f, answer=answer),)
    out, may_join = (metadata_of(model, eligible, incarnations) for eligible in (False, True))
    return _serve_fetch(model, leader, broker, f, request, out, may_join)


def _serve_fetch(
    model: Model,
    leader: int,
    broker: Broker,
    f: int,
    request: FetchRequest,
    out: Metadata,
    may_join: Metadata,
) -> tuple[Move, ...]:
    """Whether the follower may join the ISR is the metadata cache's word."""
    after, answer = broker_.serve(model.setup, broker, request, out, model.bounds.max_fetch)
    kept = Move(("HandleFetch", leader, f, 0), leader, after, exposed=exposed(after), answered=f, answer=answer)
    joined, answer = broker_.serve(model.setup, broker, request, may_join, model.bounds.max_fetch)
    if joined.partition.state == after.partition.state:
        return (kept,)
    return kept, Move(("HandleFetch", leader, f, 1), leader, joined, exposed=exposed(joined), answered=f, answer=answer)
