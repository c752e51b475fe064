"""Events of a follower: requests that it sends, responses that it takes. No node logs a response that it drops."""

from collections.abc import Iterator, Mapping
from typing import Any

from tidegauge.impl import rules
from tidegauge.impl.releases import profile_named
from tidegauge.traces.model.event_parts import answered_start, epoch_end, log_fields, record_fields, report
from tidegauge.traces.model.views import (
    EPOCH_REQUEST,
    FOLLOWER,
    REQUEST,
    TRUNCATING,
    BrokerView,
    Label,
    View,
    broker,
    epoch_cache,
    node_id,
    slot_kind,
)
from tidegauge.traces.schema import Event

HW_ONLY = "hw-only"


def send(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield the request that was sent."""
    yield from _sent(src, dst, label[1])


def handle_fetch_response(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield the records and high watermark that were taken, and the next request."""
    _, follower, leader = label
    response = broker(src, follower).slots[leader]
    _, _, offset, hw, records, *_ = response
    taken = {"error": rules.NONE, "res_hw": hw, **answered_start(response), **record_fields(offset, records)}
    yield from _handled(src, label, dst, profile, taken)


def handle_diverging_response(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield the truncation, and the next request."""
    _, follower, leader = label
    before = broker(src, follower)
    _, _, offset, div_epoch, div_end = before.slots[leader]
    cache = epoch_cache(before.log, before.mark)
    epochs, starts = [entry[0] for entry in cache], [entry[1] for entry in cache]
    completed = rules.truncation_target(epochs, starts, before.leo, offset, div_epoch, div_end)[2]
    target = broker(dst, follower).leo
    truncated = {"div_epoch": div_epoch, "div_end": div_end, "target": target, "completed": completed}
    yield from _handled(src, label, dst, profile, truncated)


def handle_out_of_range(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield the reset, and the next request."""
    _, follower, leader = label
    _, _, _, leader_start, leader_end = broker(src, follower).slots[leader]
    target = broker(dst, follower).leo
    reset = {"leader_start": leader_start, "leader_end": leader_end, "target": target}
    yield from _handled(src, label, dst, profile, reset)


def _handled(src: View, label: Label, dst: View, profile: str, response: Mapping[str, Any]) -> Iterator[Event]:
    """Yield the response to a fetch, with the fields in `response`, if the follower took it; then the next request."""
    action, follower, leader = label
    before, after = broker(src, follower), broker(dst, follower)
    _, epoch, offset, *_ = before.slots[leader]
    if _taken(before, after, leader, (epoch, offset), profile):
        request = {"peer": node_id(leader), "req_epoch": epoch, "req_offset": offset}
        yield report(follower, action, **request, **response, **log_fields(before, after))
    yield from _sent(src, dst, follower)


def handle_epoch_response(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield the truncation by an OffsetsForLeaderEpoch response, and the next request."""
    _, follower, leader = label
    before, after = broker(src, follower), broker(dst, follower)
    response = before.slots[leader]
    epoch = response[1]
    # A follower drops a response that it does not wait for, or (KAFKA-7786) to a request of another epoch.
    waits = bool(before.up) and before.role == TRUNCATING and before.leader == leader
    if rules.accepts_epoch_response(before.epoch, waits, epoch, profile_named(profile).epoch_responses_checked):
        yield report(
            follower,
            "HandleEpochResponse",
            peer=node_id(leader),
            req_epoch=epoch,
            error=rules.NONE,
            **epoch_end(response),
            target=after.leo,
            completed=after.role != TRUNCATING,
            **log_fields(before, after),
        )
    yield from _sent(src, dst, follower)


def lose_response(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield only the next request: no node logs a response that is lost."""
    yield from _sent(src, dst, label[1])


def become_follower(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield the new role, the truncation if it belongs to the role change, and the first request."""
    index = label[1]
    before, after = broker(src, index), broker(dst, index)
    yield report(
        index, "BecomeFollower", leader=node_id(after.leader), leader_epoch=after.epoch, leo=before.leo, hw=before.hw
    )
    # With hw-only ReplicaManager#makeFollowers truncates; later versions leave it to the fetcher thread.
    if profile == HW_ONLY and after.role != TRUNCATING:
        yield _truncated(index, before, after)
    yield from _sent(src, dst, index)


def truncate_to_high_watermark(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield the truncation that the fetcher thread does without a response, and the first request."""
    index = label[1]
    yield _truncated(index, broker(src, index), broker(dst, index))
    yield from _sent(src, dst, index)


def _truncated(index: int, before: BrokerView, after: BrokerView) -> Event:
    truncated = {"target": after.leo, "leo_before": before.leo, "leo": after.leo, "hw": after.hw}
    return report(index, "TruncateToHighWatermark", **truncated)


def _sent(src: View, dst: View, follower: int) -> Iterator[Event]:
    """Yield the request that was sent in this step: a slot that now holds one and did not before."""
    before, after = broker(src, follower), broker(dst, follower)
    for leader, (old, new) in enumerate(zip(before.slots, after.slots, strict=True)):
        kind = slot_kind(new)
        if kind not in {REQUEST, EPOCH_REQUEST} or slot_kind(old) in {REQUEST, EPOCH_REQUEST}:
            continue
        peer = node_id(leader)
        if kind == REQUEST:
            _, epoch, offset, last_epoch = new
            fetch = {"req_epoch": epoch, "req_offset": offset, "req_last_epoch": last_epoch}
            yield report(follower, "SendFetch", peer=peer, **fetch)
        else:
            _, epoch, asked = new
            yield report(follower, "SendEpochRequest", peer=peer, req_epoch=epoch, req_last_epoch=asked)


def _taken(before: BrokerView, after: BrokerView, leader: int, request: tuple[int, int], profile: str) -> bool:
    ready = bool(before.up) and before.role == FOLLOWER and before.leader == leader
    epoch, offset = request
    checked = profile_named(profile).response_epoch_checked
    # If nothing changed the views do not show whether the response was taken: the guard of
    # AbstractFetcherThread#processFetchRequest decides, with the profile's epoch check.
    changed = (before.log, before.mark, before.hw) != (after.log, after.mark, after.hw)
    return changed or rules.accepts_fetch_response(before.leo, before.epoch, ready, offset, epoch, checked)
