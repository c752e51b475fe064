"""A behaviour of the model as a trace: each labelled transition becomes the events the nodes would have told.

Rules of this file

1. Only views are read, so behaviours of TLC, of the explorer and of a faulty variant go through the same code.
2. An event says what the views show. A value no view shows (whether a truncation is completed, which error refuses a
   request) comes from `impl.rules`, the same text the views' maker ran.
3. A follower took an answer if its log, mark, high watermark or role changed. When nothing changed the views do not say:
   the guard of AbstractFetcherThread#processFetchRequest (`accepts_fetch_response`) decides, with the profile's epoch check.
4. The epoch cache is told as the records imply it, and not at all where their epochs fall: such logs forked.
5. A request that reaches a dead broker, and an answer nobody takes, are no events: no node would log them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from impl import rules
from impl.profiles import named
from traces.schema import Config, Event, Trace
from traces.views import (
    CONTROLLER,
    DATA,
    DIVERGING,
    EPOCH_END,
    EPOCH_REQUEST,
    FOLLOWER,
    LEADER,
    NO_ROLE,
    OUT_OF_RANGE,
    REQUEST,
    TRUNCATING,
    Broker,
    Label,
    View,
    broker,
    brokers,
    controller,
    epoch_cache,
    members,
    node_id,
    slot_kind,
)

HW_ONLY = "hw-only"
DUPLICATES = "duplicates"
"""Key of a Config under which a source says that a request may arrive more than once."""
INELIGIBLE_REPLICA = 107
"""Errors.INELIGIBLE_REPLICA: the controller refuses an ISR with a member that is not live (KIP-841)."""


def config_for(count: int, profile: str = "fetch-truncation", source: str = "", *, duplicates: bool = False) -> Config:
    """The config of traces with `count` brokers: ids 1 to count and the controller."""
    extra = {DUPLICATES: True} if duplicates else {}
    return Config(nodes=tuple(range(1, count + 1)), profile=profile, controller=CONTROLLER, source=source, extra=extra)


def initial_events(view: View) -> tuple[Event, ...]:
    """How the nodes got into an initial state: loaded, registered, told their roles."""
    return tuple(_initial(view))


def events_of_step(src: View, label: Label, dst: View, profile: str = "fetch-truncation") -> tuple[Event, ...]:
    """The events of one transition, in the order the acting node sees them."""
    return tuple(_STEPS[label[0]](src, label, dst, profile))


def trace_of_path(
    states: Sequence[View],
    labels: Sequence[Label],
    name: str = "",
    profile: str = "fetch-truncation",
    source: str = "",
    *,
    duplicates: bool = False,
) -> Trace:
    """The trace of a path: `labels[i]` leads from `states[i]` to `states[i + 1]`, `states[0]` is initial."""
    if len(states) != len(labels) + 1:
        raise ValueError(f"expected one state more than labels, saw {len(states)} states and {len(labels)} labels")
    events = list(initial_events(states[0]))
    for src, label, dst in zip(states, labels, states[1:], strict=False):
        events.extend(events_of_step(src, label, dst, profile))
    config = config_for(len(states[0][0]), profile, source, duplicates=duplicates)
    return Trace(name=name, tp="model-0", config=config, events=numbered(events))


def numbered(events: Sequence[Event]) -> tuple[Event, ...]:
    """The events with `seq` filled in: from 0 per node, and from 0 again when the node starts anew."""
    following: dict[int, int] = {}
    out = []
    for event in events:
        seq = 0 if event.event == "Start" else following.get(event.node, 0)
        following[event.node] = seq + 1
        out.append(Event(event.node, event.event, event.fields, seq=seq))
    return tuple(out)


# ---------------------------------------------------------------------------------------------------------------------
# One function per action


def _initial(view: View) -> Iterator[Event]:
    for index, b in enumerate(brokers(view)):
        yield _event(index, "Start", clean=True, leo=b.leo, hw=b.hw, log_start=0, epochs=epoch_cache(b.log, -1))
    yield _change_partition(view)
    order = sorted(enumerate(brokers(view)), key=lambda pair: pair[1].role != LEADER)
    for index, b in order:
        if b.role == LEADER:
            epoch_start = rules.count_below(b.log, b.epoch)
            yield _event(
                index,
                "BecomeLeader",
                leader_epoch=b.epoch,
                isr=members(b.isr),
                epoch_start=epoch_start,
                leo=b.leo,
                hw_before=b.hw,
                hw=b.hw,
            )
        elif b.role == FOLLOWER:
            yield _event(index, "BecomeFollower", leader=node_id(b.leader), leader_epoch=b.epoch, leo=b.leo, hw=b.hw)


def _leader_append(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    index = label[1]
    before, after = broker(src, index), broker(dst, index)
    yield _event(
        index,
        "LeaderAppend",
        leader_epoch=before.epoch,
        rec_base=before.leo,
        rec_end=after.leo,
        rec_epoch=after.log[-1],
        **_log(before, after),
    )


def _send(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    yield from _sent(src, dst, label[1])


def _handle_fetch(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    _, leader, follower, expand = label
    before, after = broker(src, leader), broker(dst, leader)
    if not before.up:
        return
    _, epoch, offset, last_epoch = broker(src, follower).slots[leader]
    peer = node_id(follower)
    if expand:
        yield _event(leader, "ExpandIsr", peer=peer, isr=members(after.pending), remote_leo=after.remote[follower])
    request = {"peer": peer, "req_epoch": epoch, "req_offset": offset, "req_last_epoch": last_epoch}
    answer = broker(dst, follower).slots[leader]
    kind = slot_kind(answer)
    if kind == DATA:
        hw_before, records = answer[3], answer[4]
        yield _event(
            leader,
            "HandleFetch",
            **request,
            error=rules.NONE,
            res_hw=hw_before,
            **_records(offset, records),
            remote_leo=after.remote[follower],
            hw_before=before.hw,
            hw=after.hw,
            leo=after.leo,
        )
    elif kind == DIVERGING:
        yield _event(leader, "HandleFetch", **request, error=rules.NONE, div_epoch=answer[3], div_end=answer[4], hw=after.hw)
    elif kind == OUT_OF_RANGE:
        yield _event(leader, "HandleFetch", **request, error=rules.OFFSET_OUT_OF_RANGE)
    else:
        yield _event(leader, "HandleFetch", **request, error=_refusal(before, epoch, profile))


def _refusal(leader: Broker, request_epoch: int, profile: str) -> int:
    """Partition#getLocalLog: the epoch is checked first, leadership after; without a role there is no epoch to check."""
    if leader.role == NO_ROLE or not named(profile).fencing:
        return rules.NOT_LEADER_OR_FOLLOWER
    return rules.check_leader_epoch(request_epoch, leader.epoch) or rules.NOT_LEADER_OR_FOLLOWER


def _handle_fetch_response(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    _, follower, leader = label
    before, after = broker(src, follower), broker(dst, follower)
    _, epoch, offset, hw, records = before.slots[leader]
    if _taken(before, after, leader, (epoch, offset), profile):
        yield _event(
            follower,
            "HandleFetchResponse",
            peer=node_id(leader),
            req_epoch=epoch,
            req_offset=offset,
            error=rules.NONE,
            res_hw=hw,
            **_records(offset, records),
            **_log(before, after),
        )
    yield from _sent(src, dst, follower)


def _handle_diverging_response(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    _, follower, leader = label
    before, after = broker(src, follower), broker(dst, follower)
    _, epoch, offset, div_epoch, div_end = before.slots[leader]
    if _taken(before, after, leader, (epoch, offset), profile):
        cache = epoch_cache(before.log, before.mark)
        epochs, starts = [entry[0] for entry in cache], [entry[1] for entry in cache]
        completed = rules.truncation_target(epochs, starts, before.leo, offset, div_epoch, div_end)[2]
        yield _event(
            follower,
            "HandleDivergingResponse",
            peer=node_id(leader),
            req_epoch=epoch,
            req_offset=offset,
            div_epoch=div_epoch,
            div_end=div_end,
            target=after.leo,
            completed=completed,
            **_log(before, after),
        )
    yield from _sent(src, dst, follower)


def _handle_out_of_range(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    _, follower, leader = label
    before, after = broker(src, follower), broker(dst, follower)
    _, epoch, offset, leader_start, leader_end = before.slots[leader]
    if _taken(before, after, leader, (epoch, offset), profile):
        yield _event(
            follower,
            "HandleOutOfRange",
            peer=node_id(leader),
            req_epoch=epoch,
            req_offset=offset,
            leader_start=leader_start,
            leader_end=leader_end,
            target=after.leo,
            **_log(before, after),
        )
    yield from _sent(src, dst, follower)


def _handle_epoch_request(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    _, leader, follower = label
    before = broker(src, leader)
    if not before.up:
        return
    _, epoch, asked = broker(src, follower).slots[leader]
    request = {"peer": node_id(follower), "req_epoch": epoch, "req_last_epoch": asked}
    answer = broker(dst, follower).slots[leader]
    if slot_kind(answer) == EPOCH_END:
        yield _event(leader, "HandleEpochRequest", **request, error=rules.NONE, **_epoch_end(answer))
    else:
        yield _event(leader, "HandleEpochRequest", **request, error=_refusal(before, epoch, profile))


def _epoch_end(answer: Sequence[int]) -> dict[str, int | None]:
    _, _, epoch, end = answer
    return {"div_epoch": _or_none(epoch), "div_end": _or_none(end)}


def _or_none(value: int) -> int | None:
    return None if value == rules.UNDEFINED else value


def _handle_epoch_response(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """An answer that is not waited for, or (KAFKA-7786) to a request of another epoch, is dropped without a word."""
    _, follower, leader = label
    before, after = broker(src, follower), broker(dst, follower)
    answer = before.slots[leader]
    epoch = answer[1]
    waits = bool(before.up) and before.role == TRUNCATING and before.leader == leader
    if waits and (epoch == before.epoch or not named(profile).epoch_answers_checked):
        yield _event(
            follower,
            "HandleEpochResponse",
            peer=node_id(leader),
            req_epoch=epoch,
            error=rules.NONE,
            **_epoch_end(answer),
            target=after.leo,
            completed=after.role != TRUNCATING,
            **_log(before, after),
        )
    yield from _sent(src, dst, follower)


def _lose_response(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    yield from _sent(src, dst, label[1])


def _handle_duplicate(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """The answer is on a connection nobody listens to, so what it held of records is not told."""
    _, leader, follower, expand, epoch, offset, last_epoch = label
    before, after = broker(src, leader), broker(dst, leader)
    if not before.up:
        return
    peer = node_id(follower)
    fenced = named(profile).fencing and rules.check_leader_epoch(epoch, before.epoch) != rules.NONE
    refused = before.role != LEADER or fenced
    error = _refusal(before, epoch, profile) if refused else rules.NONE
    cache = epoch_cache(before.log, before.mark)
    epochs, starts = [entry[0] for entry in cache], [entry[1] for entry in cache]
    if offset == rules.UNDEFINED:
        answer: dict[str, Any] = {}
        if not refused:
            found, end = rules.end_offset_for(epochs, starts, before.leo, last_epoch)
            answer = {"div_epoch": _or_none(found) if named(profile).answers_epoch else None, "div_end": _or_none(end)}
        request = {"peer": peer, "req_epoch": epoch, "req_last_epoch": last_epoch}
        yield _event(leader, "HandleEpochRequest", **request, error=error, **answer)
        return
    if expand:
        yield _event(leader, "ExpandIsr", peer=peer, isr=members(after.pending), remote_leo=after.remote[follower])
    request = {"peer": peer, "req_epoch": epoch, "req_offset": offset, "req_last_epoch": last_epoch}
    if refused:
        yield _event(leader, "HandleFetch", **request, error=error)
        return
    asked = last_epoch if named(profile).truncation_on_fetch else rules.UNDEFINED
    decision, epoch, end = rules.fetch_decision(epochs, starts, 0, before.leo, offset, asked)
    if decision == rules.OUT_OF_RANGE:
        yield _event(leader, "HandleFetch", **request, error=rules.OFFSET_OUT_OF_RANGE)
    elif decision == rules.DIVERGING:
        yield _event(leader, "HandleFetch", **request, error=rules.NONE, div_epoch=epoch, div_end=end, hw=after.hw)
    else:
        read = {"remote_leo": after.remote[follower], "hw_before": before.hw, "hw": after.hw, "leo": after.leo}
        yield _event(leader, "HandleFetch", **request, error=rules.NONE, res_hw=before.hw, **read)


def _silent(_src: View, _label: Label, _dst: View, _profile: str) -> Iterator[Event]:
    """No node would tell of it."""
    yield from ()


def _shrink_isr(_src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    after = broker(dst, label[1])
    yield _event(label[1], "ShrinkIsr", isr=members(after.pending), leo=after.leo, hw=after.hw)


def _become_leader(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    index = label[1]
    before, after = broker(src, index), broker(dst, index)
    start = {"epoch_start": after.leo} if after.epoch != before.epoch else {}
    yield _event(
        index,
        "BecomeLeader",
        leader_epoch=after.epoch,
        isr=members(after.isr),
        **start,
        leo=after.leo,
        hw_before=before.hw,
        hw=after.hw,
    )


def _become_follower(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    index = label[1]
    before, after = broker(src, index), broker(dst, index)
    yield _event(
        index, "BecomeFollower", leader=node_id(after.leader), leader_epoch=after.epoch, leo=before.leo, hw=before.hw
    )
    if profile == HW_ONLY:
        cut = {"target": after.leo, "leo_before": before.leo, "leo": after.leo, "hw": after.hw}
        yield _event(index, "TruncateToHighWatermark", **cut)
    yield from _sent(src, dst, index)


def _crash(_src: View, label: Label, _dst: View, _profile: str) -> Iterator[Event]:
    yield _event(label[1], "Crash")


def _restart(_src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    b = broker(dst, label[1])
    rises = all(a <= b for a, b in pairwise(b.log))
    cache = {"epochs": epoch_cache(b.log, b.mark)} if rises else {}
    yield _event(label[1], "Start", clean=False, leo=b.leo, hw=b.hw, log_start=0, **cache)


def _controller_step(_src: View, _label: Label, dst: View, _profile: str) -> Iterator[Event]:
    yield _change_partition(dst)


def _alter_partition(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    if src[1] != dst[1]:
        yield _change_partition(dst)
    else:
        proposal = members(broker(src, label[1]).pending)
        yield _event(label[1], "HandleAlterPartitionResponse", isr=proposal, error=INELIGIBLE_REPLICA)


_STEPS: Mapping[str, Callable[[View, Label, View, str], Iterator[Event]]] = {
    "LeaderAppend": _leader_append,
    "SendFetch": _send,
    "HandleFetch": _handle_fetch,
    "HandleFetchResponse": _handle_fetch_response,
    "HandleDivergingResponse": _handle_diverging_response,
    "HandleOutOfRange": _handle_out_of_range,
    "SendEpochRequest": _send,
    "HandleEpochRequest": _handle_epoch_request,
    "HandleEpochResponse": _handle_epoch_response,
    "LoseResponse": _lose_response,
    "Duplicate": _silent,
    "HandleDuplicate": _handle_duplicate,
    "LoseDisk": _silent,
    "ShrinkIsr": _shrink_isr,
    "BecomeLeader": _become_leader,
    "BecomeFollower": _become_follower,
    "Crash": _crash,
    "Restart": _restart,
    "FenceBroker": _controller_step,
    "UnfenceBroker": _controller_step,
    "ElectPreferred": _controller_step,
    "AlterPartition": _alter_partition,
}

LABELS = tuple(_STEPS)
"""The actions whose events this file knows."""


# ---------------------------------------------------------------------------------------------------------------------
# What the actions share


def _event(index: int, event: str, **fields: Any) -> Event:
    return Event(node=index + 1, event=event, fields=fields)


def _change_partition(view: View) -> Event:
    now = controller(view)
    fields = {
        "leader": node_id(now.leader),
        "leader_epoch": now.epoch,
        "isr": members(now.isr),
        "live": members(now.live),
        "clean": True,
    }
    return Event(node=CONTROLLER, event="ChangePartition", fields=fields)


def _sent(src: View, dst: View, follower: int) -> Iterator[Event]:
    """The request that left in this step: a slot that now holds one and did not before."""
    before, after = broker(src, follower), broker(dst, follower)
    for leader, (old, new) in enumerate(zip(before.slots, after.slots, strict=True)):
        kind = slot_kind(new)
        if kind not in {REQUEST, EPOCH_REQUEST} or slot_kind(old) in {REQUEST, EPOCH_REQUEST}:
            continue
        peer = node_id(leader)
        if kind == REQUEST:
            _, epoch, offset, last_epoch = new
            fetch = {"req_epoch": epoch, "req_offset": offset, "req_last_epoch": last_epoch}
            yield _event(follower, "SendFetch", peer=peer, **fetch)
        else:
            _, epoch, asked = new
            yield _event(follower, "SendEpochRequest", peer=peer, req_epoch=epoch, req_last_epoch=asked)


def _taken(before: Broker, after: Broker, leader: int, request: tuple[int, int], profile: str) -> bool:
    ready = bool(before.up) and before.role == FOLLOWER and before.leader == leader
    epoch, offset = request
    checked = named(profile).answer_epoch_checked
    changed = (before.log, before.mark, before.hw) != (after.log, after.mark, after.hw)
    return changed or rules.accepts_fetch_response(before.leo, before.epoch, ready, offset, epoch, checked)


def _records(base: int, epochs: Sequence[int]) -> dict[str, int]:
    fields = {"rec_base": base, "rec_end": base + len(epochs)}
    return {**fields, "rec_epoch": epochs[-1]} if epochs else fields


def _log(before: Broker, after: Broker) -> dict[str, int]:
    return {"leo_before": before.leo, "hw_before": before.hw, "leo": after.leo, "hw": after.hw}
