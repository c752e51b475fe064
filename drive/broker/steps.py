"""What each step of the contract does to the broker, and the response to it."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tidegauge.drive.broker.contract import BROKER, LATEST
from tidegauge.drive.broker.fetch_sessions import fetched_in_session
from tidegauge.drive.broker.fetches import fetched_at_once, fetched_or_waiting
from tidegauge.drive.broker.state import Held, Taken, Waiting, cache_of, fetch_json, led, named_json
from tidegauge.impl.client_messages import Isolation, OffsetSpec
from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.cluster.broker import NOW, Broker
from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.messages import (
    AlterPartitionResponse,
    FetchRequest,
    FetchResponse,
    FetchResponseInFlight,
    ListOffsets,
    OffsetsForLeaderEpochResponse,
)
from tidegauge.impl.records import Batch
from tidegauge.impl.replica import isr
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.rules import NONE


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
    held, response = fetched_at_once(held, FetchRequest(peer, epoch, offset, last_epoch), may_join=may_join)
    return held, fetch_json(response)


def _fetch_and_wait(held: Held, peer: int, epoch: int, offset: int, last_epoch: int, may_join: bool) -> Taken:
    held, response = fetched_or_waiting(held, FetchRequest(peer, epoch, offset, last_epoch), may_join=may_join)
    return held, named_json(response)


def _fetch_in_session(
    held: Held,
    peer: int,
    epoch: int,
    offset: int,
    last_epoch: int,
    may_join: bool,
    session_epoch: int,
    *,
    waits: bool = False,
) -> Taken:
    request = FetchRequest(peer, epoch, offset, last_epoch)
    held, response = fetched_in_session(held, peer, session_epoch, request, may_join=may_join, waits=waits)
    return held, named_json(response)


def _fetch_others(held: Held, peer: int, session_epoch: int) -> Taken:
    held, response = fetched_in_session(held, peer, session_epoch, None, may_join=True)
    return held, named_json(response)


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
        lost=tuple(sorted({*held.lost, *held.sessions})),
        wrong=held.wrong,
    )


STEPS: Mapping[str, Callable[..., Taken]] = {
    "metadata": _metadata,
    "append": _append,
    "fetch": _fetch,
    "fetch_and_wait": _fetch_and_wait,
    "fetch_in_session": _fetch_in_session,
    "fetch_in_session_and_wait": partial(_fetch_in_session, waits=True),
    "fetch_others": _fetch_others,
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
