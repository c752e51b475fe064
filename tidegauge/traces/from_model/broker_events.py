"""The events of leaders and followers that the steps of a model become.

A *view* is a state as nested tuples of ints (traces.from_model.views). A *label* is (action, arguments...): the index of the
broker that acts, then that of its peer if it has one. A function of an action takes the view before the step (`src`), the
label, the view after it (`dst`) and the name of the cluster's profile, and yields the events that nodes report of the step.
A *slot* is the one message in flight between a follower and a leader, kept at the follower: (kind, leader epoch, ...), for a
request also (fetch offset, last fetched epoch), or only the epoch that it asks for. Nodes have ids from 1, brokers indexes
from 0. A `Profile` is the switches of a generation of Kafka: `fencing` (requests name a leader epoch, KIP-320),
`epoch_in_response` (KIP-279), `truncation_on_fetch` (KIP-595), `response_epoch_checked` and `epoch_responses_checked` (a
follower takes no response to a request of another epoch). A broker in a view has its `log` (the epochs of its records),
`role`, `epoch`, `leo`, `hw`, `mark` (the epoch that its cache has beyond its log), `pending` (the ISR it has proposed) and
`remote` (the recorded LEO of each broker).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidegauge.impl import rules
from tidegauge.impl.profiles import Profile
from tidegauge.impl.releases import profile_of_node
from tidegauge.traces.from_model import views
from tidegauge.traces.from_model.views import Label, View
from tidegauge.traces.schema import Event

# Parts of the events of several actions. A log start that stays at 0 is left out.


def report(index: int, event: str, **fields: Any) -> Event:
    """Return an event that the broker at `index` reports, with these fields of the schema."""
    return Event(node=index + 1, event=event, fields=fields)


def profile_of(profile: str, index: int) -> Profile:
    """Return the profile of the broker at `index`; `profile` names the cluster's, or one for each broker: 1=kip320,2=..."""
    return profile_of_node(profile, index + 1)


def record_fields(base: int, epochs: Sequence[int]) -> dict[str, int]:
    """Return the fields of the records of a response or an append, with these leader epochs from offset `base` on.

    Without records there is no epoch of the last one.
    """
    fields = {"rec_base": base, "rec_end": base + len(epochs)}
    return {**fields, "rec_epoch": epochs[-1]} if epochs else fields


def log_fields(before: views.BrokerView, after: views.BrokerView) -> dict[str, int]:
    """Return the fields about a broker's log before and after a step."""
    start = {"log_start": after.start} if before.start or after.start else {}
    return {"leo_before": before.leo, "hw_before": before.hw, "leo": after.leo, "hw": after.hw, **start}


def answered_start(data: Sequence[Any]) -> dict[str, int]:
    """Return the field for the leader's log start in a data response, the content of a slot."""
    return {"res_log_start": views.log_start_in(data)} if views.log_start_in(data) else {}


def refusal(leader: views.BrokerView, request_epoch: int, sender: Profile, *, serves: bool = False) -> int:
    """Return the error of a request that was made in `request_epoch` at the broker `leader`, by the rule.

    `sender` is the profile of the broker that sent it. `serves`: it leads; without that it refuses, whatever the epoch.
    """
    # Epochs are not compared with a broker without a role, which has none, nor if the sender is older than KIP-320.
    fences = sender.fencing and leader.role != views.NO_ROLE
    return rules.request_error(request_epoch, leader.epoch, serves, fences)


def epoch_end(response: Sequence[int]) -> dict[str, int | None]:
    """Return the fields of an OffsetsForLeaderEpoch response, the content of a slot."""
    _, _, epoch, end = response
    return {"div_epoch": or_none(epoch), "div_end": or_none(end)}


def or_none(value: int) -> int | None:
    """Return the value, or None for an undefined epoch or offset."""
    return None if value == rules.UNDEFINED else value


# Events of a leader: appends, requests that it handles, proposals.


def leader_append(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield the append of a record of the leader's epoch."""
    index = label[1]
    before, after = views.broker(src, index), views.broker(dst, index)
    yield report(
        index,
        "LeaderAppend",
        leader_epoch=before.epoch,
        rec_base=before.leo,
        rec_end=after.leo,
        rec_epoch=after.log[-1],
        **log_fields(before, after),
    )


def answer_produce(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield the acknowledgement or error that a client with acks=all gets."""
    _, leader, end, error = label  # `end` is the offset after its record
    still_waiting = views.waiting(dst, leader)
    # The record that waits no more: the first place at which the two lists differ, as those behind it have moved up by one.
    _, epoch = next(
        record for at, record in enumerate(views.waiting(src, leader)) if still_waiting[at : at + 1] != (record,)
    )
    acknowledged = {"rec_epoch": epoch} if error == rules.NONE else {}
    # acks=-1 is acks=all; a produce of the model is one record.
    yield report(leader, "ProduceAck", acks=-1, rec_base=end - 1, rec_end=end, **acknowledged, error=error)


def read(src: View, label: Label, _dst: View, _profile: str) -> Iterator[Event]:
    """Yield a read of the records below the high watermark."""
    _, leader, bound, end = label  # up to where a reader may read, and the end of what it gets
    yield report(leader, "Read", bound=bound, rec_base=views.broker(src, leader).start, rec_end=end)


def handle_fetch(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield a fetch with its response, and before it the ISR proposal that it leads to, if any (`expand`)."""
    _, leader, follower, expand = label
    before, after = views.broker(src, leader), views.broker(dst, leader)
    # A request that reaches a dead broker is reported by nobody.
    if not before.up:
        return
    _, epoch, offset, last_epoch = views.broker(src, follower).slots[leader]
    peer = views.node_id(follower)
    # The fetch has brought the follower far enough to join the ISR.
    if expand:
        yield report(leader, "ExpandIsr", peer=peer, isr=views.members(after.pending), remote_leo=after.remote[follower])
    request = {"peer": peer, "req_epoch": epoch, "req_offset": offset, "req_last_epoch": last_epoch}
    # The response takes the place of the request in the slot.
    response = views.broker(dst, follower).slots[leader]
    kind = views.slot_kind(response)
    if kind == views.DATA:
        # The response has the high watermark from before the fetch counted (Partition#fetchRecords reads first).
        _, _, _, hw_before, records, *_ = response
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
    elif kind == views.DIVERGING:
        _, _, _, div_epoch, div_end = response
        yield report(leader, "HandleFetch", **request, error=rules.NONE, div_epoch=div_epoch, div_end=div_end, hw=after.hw)
    elif kind == views.OUT_OF_RANGE:
        yield report(leader, "HandleFetch", **request, error=rules.OFFSET_OUT_OF_RANGE)
    # No response in the slot: the leader has refused the request.
    else:
        yield report(leader, "HandleFetch", **request, error=refusal(before, epoch, profile_of(profile, follower)))


def handle_offsets_for_leader_epoch_request(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield an OffsetsForLeaderEpoch request with its response, or a refusal."""
    _, leader, follower = label
    before = views.broker(src, leader)
    # A request that reaches a dead broker is reported by nobody.
    if not before.up:
        return
    _, epoch, last_epoch = views.broker(src, follower).slots[leader]
    request = {"peer": views.node_id(follower), "req_epoch": epoch, "req_last_epoch": last_epoch}
    response = views.broker(dst, follower).slots[leader]
    if views.slot_kind(response) == views.EPOCH_END:
        yield report(leader, "HandleEpochRequest", **request, error=rules.NONE, **epoch_end(response))
    else:
        yield report(leader, "HandleEpochRequest", **request, error=refusal(before, epoch, profile_of(profile, follower)))


def handle_duplicate(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield a request that arrives a second time, or after its sender has given it up."""
    # The follower has closed the connection of the response, so no view has its records: they are left out.
    # A label (action, leader, follower, whether it expands the ISR, epoch, fetch offset, last fetched or asked epoch).
    leader, offset = label[1], label[5]
    if views.broker(src, leader).up:
        # An OffsetsForLeaderEpoch request has no offset.
        is_epoch_request = offset == rules.UNDEFINED
        handle_again = _offsets_for_leader_epoch_request_again if is_epoch_request else _fetch_again
        yield from handle_again(src, label, dst, profile)


def _request_error(broker: views.BrokerView, epoch: int, sender: Profile) -> int:
    """Return the error of a request that was made in `epoch`, at a broker that serves it only if it leads."""
    return refusal(broker, epoch, sender, serves=broker.role == views.LEADER)


def _cache(broker: views.BrokerView) -> tuple[list[int], list[int]]:
    """Return the epoch cache of a broker as the rules take it: epochs, and their start offsets."""
    cache = views.epoch_cache(broker.log, broker.mark)
    return [epoch for epoch, _ in cache], [start for _, start in cache]


def _offsets_for_leader_epoch_request_again(src: View, label: Label, _dst: View, profile: str) -> Iterator[Event]:
    """Yield what a leader reports of a copy of an OffsetsForLeaderEpoch request: nobody gets the response."""
    _, leader, follower, _, epoch, _, last_epoch = label
    before, sender = views.broker(src, leader), profile_of(profile, follower)
    error = _request_error(before, epoch, sender)
    response: dict[str, int | None] = {}
    if error == rules.NONE:
        answered_epoch, end = rules.end_offset_for(*_cache(before), before.leo, last_epoch)
        response = {
            # Before KIP-279 a response had the end offset only.
            "div_epoch": or_none(answered_epoch) if sender.epoch_in_response else None,
            "div_end": or_none(end),
        }
    request = {"peer": views.node_id(follower), "req_epoch": epoch, "req_last_epoch": last_epoch}
    yield report(leader, "HandleEpochRequest", **request, error=error, **response)


def _fetch_again(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield what a leader reports of a copy of a fetch, or of one that its sender gave up: nobody gets the response."""
    _, leader, follower, expand, epoch, offset, last_epoch = label
    before, after = views.broker(src, leader), views.broker(dst, leader)
    peer, sender = views.node_id(follower), profile_of(profile, follower)
    error = _request_error(before, epoch, sender)
    if expand:
        yield report(leader, "ExpandIsr", peer=peer, isr=views.members(after.pending), remote_leo=after.remote[follower])
    response = {"error": error}
    # A request that is not refused is read as any other: nothing in the view shows what came of it, so the rule says it.
    if error == rules.NONE:
        # Before KIP-595 a fetch names no epoch, so the leader cannot find it diverging.
        compared_epoch = last_epoch if sender.truncation_on_fetch else rules.UNDEFINED
        decision, div_epoch, div_end = rules.fetch_decision(
            *_cache(before), before.start, before.leo, offset, compared_epoch
        )
        if decision == rules.OUT_OF_RANGE:
            response = {"error": rules.OFFSET_OUT_OF_RANGE}
        elif decision == rules.DIVERGING:
            response |= {"div_epoch": div_epoch, "div_end": div_end, "hw": after.hw}
        # Read: the response has the high watermark from before the fetch counted.
        else:
            response |= {"res_hw": before.hw, "remote_leo": after.remote[follower]}
            response |= {"hw_before": before.hw, "hw": after.hw, "leo": after.leo}
    request = {"req_epoch": epoch, "req_offset": offset, "req_last_epoch": last_epoch}
    yield report(leader, "HandleFetch", peer=peer, **request, **response)


def delete_records(_src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield the new log start of a replica, leader or follower, after records were deleted."""
    after = views.broker(dst, label[1])
    yield report(label[1], "LogStartMoved", log_start=after.start, hw=after.hw)


def shrink_isr(_src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield the proposal of a smaller ISR."""
    after = views.broker(dst, label[1])
    yield report(label[1], "ShrinkIsr", isr=views.members(after.pending), leo=after.leo, hw=after.hw)


# Events of a follower: requests that it sends, responses that it takes. No node logs a response that it drops.


HW_ONLY = "hw-only"
"""The profile of releases before KIP-101: a follower truncates to its high watermark."""


def send(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield the request that was sent, a fetch or OffsetsForLeaderEpoch."""
    yield from _sent(src, dst, label[1])


def handle_fetch_response(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield the records and high watermark that were taken, and the next request."""
    _, follower, leader = label
    response = views.broker(src, follower).slots[leader]
    _, _, offset, hw, records, *_ = response  # kind, leader epoch, fetch offset, ...
    handled = {"error": rules.NONE, "res_hw": hw, **answered_start(response), **record_fields(offset, records)}
    yield from _handled(src, label, dst, profile, handled)


def handle_diverging_response(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield the truncation by a diverging response, and the next request."""
    _, follower, leader = label
    before = views.broker(src, follower)
    _, _, offset, div_epoch, div_end = before.slots[leader]
    cache = views.epoch_cache(before.log, before.mark)
    epochs, starts = [epoch for epoch, _ in cache], [start for _, start in cache]
    # `completed` is taken from the rule, as no view shows it: completed or not, the follower fetches again.
    _, _, completed = rules.truncation_target(epochs, starts, before.leo, offset, div_epoch, div_end)
    target = views.broker(dst, follower).leo
    truncated = {"div_epoch": div_epoch, "div_end": div_end, "target": target, "completed": completed}
    yield from _handled(src, label, dst, profile, truncated)


def handle_out_of_range(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield the reset of the log by an out-of-range response, and the next request."""
    _, follower, leader = label
    _, _, _, leader_start, leader_end = views.broker(src, follower).slots[leader]
    # Where the follower's log ends now, and it fetches next.
    target = views.broker(dst, follower).leo
    reset = {"leader_start": leader_start, "leader_end": leader_end, "target": target}
    yield from _handled(src, label, dst, profile, reset)


def _handled(src: View, label: Label, dst: View, profile: str, response: Mapping[str, Any]) -> Iterator[Event]:
    """Yield the response to a fetch, with the fields in `response`, if the follower took it; then the next request.

    The event is named as the action.
    """
    action, follower, leader = label
    before, after = views.broker(src, follower), views.broker(dst, follower)
    _, epoch, offset, *_ = before.slots[leader]
    if _takes_response(before, after, leader, (epoch, offset), profile_of(profile, follower)):
        request = {"peer": views.node_id(leader), "req_epoch": epoch, "req_offset": offset}
        yield report(follower, action, **request, **response, **log_fields(before, after))
    yield from _sent(src, dst, follower)


def handle_epoch_response(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield the truncation by an OffsetsForLeaderEpoch response, and the next request."""
    _, follower, leader = label
    before, after = views.broker(src, follower), views.broker(dst, follower)
    response = before.slots[leader]
    epoch = response[1]
    # A follower drops a response that it does not wait for, or (KAFKA-7786) to a request of another epoch.
    waits = bool(before.up) and before.role == views.TRUNCATING and before.leader == leader
    if rules.accepts_epoch_response(before.epoch, waits, epoch, profile_of(profile, follower).epoch_responses_checked):
        yield report(
            follower,
            "HandleEpochResponse",
            peer=views.node_id(leader),
            req_epoch=epoch,
            error=rules.NONE,
            **epoch_end(response),
            target=after.leo,
            completed=after.role != views.TRUNCATING,
            **log_fields(before, after),
        )
    yield from _sent(src, dst, follower)


def lose_response(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield only the next request: no node logs a response that is lost."""
    yield from _sent(src, dst, label[1])


def become_follower(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield the new role, the truncation if it belongs to the role change, and the first request."""
    index = label[1]
    before, after = views.broker(src, index), views.broker(dst, index)
    yield report(
        index, "BecomeFollower", leader=views.node_id(after.leader), leader_epoch=after.epoch, leo=before.leo, hw=before.hw
    )
    # With hw-only ReplicaManager#makeFollowers truncates; later versions leave it to the fetcher thread. A model whose
    # thread truncates in a step of its own leaves it, too: the role is TRUNCATING until then.
    if profile_of(profile, index).name == HW_ONLY and after.role != views.TRUNCATING:
        yield _truncated(index, before, after)
    yield from _sent(src, dst, index)


def truncate_to_high_watermark(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield the truncation that the fetcher thread does without a response, and the first request."""
    index = label[1]
    yield _truncated(index, views.broker(src, index), views.broker(dst, index))
    yield from _sent(src, dst, index)


def _truncated(index: int, before: views.BrokerView, after: views.BrokerView) -> Event:
    """Return the event of a truncation at the follower's own high watermark."""
    truncated = {"target": after.leo, "leo_before": before.leo, "leo": after.leo, "hw": after.hw}
    return report(index, "TruncateToHighWatermark", **truncated)


def _sent(src: View, dst: View, follower: int) -> Iterator[Event]:
    """Yield the request that a follower sent in this step, if any: a slot that now holds one and did not before."""
    before, after = views.broker(src, follower), views.broker(dst, follower)
    for leader, (old, new) in enumerate(zip(before.slots, after.slots, strict=True)):
        kind = views.slot_kind(new)
        # A request that was there before this step was sent by an earlier one.
        if kind not in {views.REQUEST, views.EPOCH_REQUEST} or views.slot_kind(old) in {views.REQUEST, views.EPOCH_REQUEST}:
            continue
        peer = views.node_id(leader)
        # A fetch; else a request for the end of an epoch.
        if kind == views.REQUEST:
            _, epoch, offset, last_epoch = new
            fetch = {"req_epoch": epoch, "req_offset": offset, "req_last_epoch": last_epoch}
            yield report(follower, "SendFetch", peer=peer, **fetch)
        else:
            _, epoch, asked_epoch = new
            yield report(follower, "SendEpochRequest", peer=peer, req_epoch=epoch, req_last_epoch=asked_epoch)


def _takes_response(
    before: views.BrokerView, after: views.BrokerView, leader: int, request: tuple[int, int], own: Profile
) -> bool:
    """Return whether a follower took a fetch response from `leader`.

    `request` is the epoch and offset of the request, `own` the follower's profile.
    """
    # Its fetcher has an entry of the partition that fetches from this leader.
    ready = bool(before.up) and before.role == views.FOLLOWER and before.leader == leader
    epoch, offset = request
    checked = own.response_epoch_checked
    # If nothing changed the views do not show whether the response was taken: the guard of
    # AbstractFetcherThread#processFetchRequest decides, with the profile's epoch check.
    changed = (before.log, before.mark, before.hw) != (after.log, after.mark, after.hw)
    return changed or rules.accepts_fetch_response(before.leo, before.epoch, ready, offset, epoch, checked)
