"""Events of a leader: appends, requests that it handles, proposals."""

from collections.abc import Iterator

from tidegauge.impl import rules
from tidegauge.impl.releases import profile_named
from tidegauge.traces.model.event_parts import answered_start, epoch_end, log_fields, or_none, record_fields, refusal, report
from tidegauge.traces.model.views import (
    DATA,
    DIVERGING,
    EPOCH_END,
    LEADER,
    OUT_OF_RANGE,
    BrokerView,
    Label,
    View,
    broker,
    epoch_cache,
    members,
    node_id,
    slot_kind,
)
from tidegauge.traces.schema import Event


def leader_append(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield the append of a record of the leader's epoch."""
    index = label[1]
    before, after = broker(src, index), broker(dst, index)
    yield report(
        index,
        "LeaderAppend",
        leader_epoch=before.epoch,
        rec_base=before.leo,
        rec_end=after.leo,
        rec_epoch=after.log[-1],
        **log_fields(before, after),
    )


def answer_produce(_src: View, label: Label, _dst: View, _profile: str) -> Iterator[Event]:
    """Yield the acknowledgement or error that a client with acks=all gets."""
    _, leader, end, error = label
    yield report(leader, "ProduceAck", acks=-1, rec_base=end - 1, rec_end=end, error=error)


def read(src: View, label: Label, _dst: View, _profile: str) -> Iterator[Event]:
    """Yield a read of the records below the high watermark."""
    _, leader, bound, end = label
    yield report(leader, "Read", bound=bound, rec_base=broker(src, leader).start, rec_end=end)


def handle_fetch(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield a fetch with its response; before it the proposal that it may lead to."""
    _, leader, follower, expand = label
    before, after = broker(src, leader), broker(dst, leader)
    # No node would log a request that reaches a dead broker.
    if not before.up:
        return
    _, epoch, offset, last_epoch = broker(src, follower).slots[leader]
    peer = node_id(follower)
    if expand:
        yield report(leader, "ExpandIsr", peer=peer, isr=members(after.pending), remote_leo=after.remote[follower])
    request = {"peer": peer, "req_epoch": epoch, "req_offset": offset, "req_last_epoch": last_epoch}
    response = broker(dst, follower).slots[leader]
    kind = slot_kind(response)
    if kind == DATA:
        hw_before, records = response[3], response[4]
        yield report(
            leader,
            "HandleFetch",
            **request,
            error=rules.NONE,
            res_hw=hw_before,
            **answered_start(response),
            **record_fields(offset, records),
            remote_leo=after.remote[follower],
            hw_before=before.hw,
            hw=after.hw,
            leo=after.leo,
        )
    elif kind == DIVERGING:
        yield report(
            leader, "HandleFetch", **request, error=rules.NONE, div_epoch=response[3], div_end=response[4], hw=after.hw
        )
    elif kind == OUT_OF_RANGE:
        yield report(leader, "HandleFetch", **request, error=rules.OFFSET_OUT_OF_RANGE)
    else:
        yield report(leader, "HandleFetch", **request, error=refusal(before, epoch, profile))


def handle_offsets_for_leader_epoch_request(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield an OffsetsForLeaderEpoch request with its response, or a refusal."""
    _, leader, follower = label
    before = broker(src, leader)
    if not before.up:
        return
    _, epoch, asked = broker(src, follower).slots[leader]
    request = {"peer": node_id(follower), "req_epoch": epoch, "req_last_epoch": asked}
    response = broker(dst, follower).slots[leader]
    if slot_kind(response) == EPOCH_END:
        yield report(leader, "HandleEpochRequest", **request, error=rules.NONE, **epoch_end(response))
    else:
        yield report(leader, "HandleEpochRequest", **request, error=refusal(before, epoch, profile))


def handle_duplicate(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield a request that arrives a second time."""
    # The follower has closed the connection of the response, so no view has its records: they are left out.
    leader, offset = label[1], label[5]
    if broker(src, leader).up:
        yield from (_offsets_for_leader_epoch_request_again if offset == rules.UNDEFINED else _fetch_again)(
            src, label, dst, profile
        )


def _refused(leader: BrokerView, epoch: int, profile: str) -> int:
    return refusal(leader, epoch, profile, serves=leader.role == LEADER)


def _cache(leader: BrokerView) -> tuple[list[int], list[int]]:
    cache = epoch_cache(leader.log, leader.mark)
    return [epoch for epoch, _ in cache], [start for _, start in cache]


def _offsets_for_leader_epoch_request_again(src: View, label: Label, _dst: View, profile: str) -> Iterator[Event]:
    _, leader, follower, _, epoch, _, asked = label
    before = broker(src, leader)
    error = _refused(before, epoch, profile)
    response: dict[str, int | None] = {}
    if error == rules.NONE:
        last, end = rules.end_offset_for(*_cache(before), before.leo, asked)
        response = {
            "div_epoch": or_none(last) if profile_named(profile).epoch_in_response else None,
            "div_end": or_none(end),
        }
    request = {"peer": node_id(follower), "req_epoch": epoch, "req_last_epoch": asked}
    yield report(leader, "HandleEpochRequest", **request, error=error, **response)


def _fetch_again(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    _, leader, follower, expand, epoch, offset, last_epoch = label
    before, after = broker(src, leader), broker(dst, leader)
    peer, error = node_id(follower), _refused(before, epoch, profile)
    if expand:
        yield report(leader, "ExpandIsr", peer=peer, isr=members(after.pending), remote_leo=after.remote[follower])
    response = {"error": error}
    if error == rules.NONE:
        asked = last_epoch if profile_named(profile).truncation_on_fetch else rules.UNDEFINED
        decision, div_epoch, div_end = rules.fetch_decision(*_cache(before), before.start, before.leo, offset, asked)
        if decision == rules.OUT_OF_RANGE:
            response = {"error": rules.OFFSET_OUT_OF_RANGE}
        elif decision == rules.DIVERGING:
            response |= {"div_epoch": div_epoch, "div_end": div_end, "hw": after.hw}
        else:
            response |= {"res_hw": before.hw, "remote_leo": after.remote[follower]}
            response |= {"hw_before": before.hw, "hw": after.hw, "leo": after.leo}
    request = {"req_epoch": epoch, "req_offset": offset, "req_last_epoch": last_epoch}
    yield report(leader, "HandleFetch", peer=peer, **request, **response)


def delete_records(_src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield the move of a log start, at any replica."""
    after = broker(dst, label[1])
    yield report(label[1], "LogStartMoved", log_start=after.start, hw=after.hw)


def shrink_isr(_src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield the proposal of a smaller ISR."""
    after = broker(dst, label[1])
    yield report(label[1], "ShrinkIsr", isr=members(after.pending), leo=after.leo, hw=after.hw)
