"""Runs of the model of ISR changes (spec/AlterPartition.tla), of TLC or of the reference, as traces.

The model has one leader, its followers and the controller. A *state* is variable -> value, with the names of the
specification: `end` (broker -> LEO), `known` (follower -> the LEO that the leader has recorded; in TLC's states a record
with it), `view` (the ISR that the leader knows, with its partition epoch), `pending` (the ISR it has proposed, empty for
none), `hw` and `committed`, `controller` (the registration), `images` (registrations that the leader has not read yet),
`incarnation` (follower -> broker epoch) and `channel` (the message between leader and controller). A function of an action
takes the state before (`src`) and after the step (`dst`) and the leader's node id, and yields the events that nodes report.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.explorer.isr_model import LEADER, AlterPartitionExchange, IsrCluster
from tidegauge.impl.messages import AlterPartitionRequest
from tidegauge.impl.rules import INELIGIBLE_REPLICA, INVALID_UPDATE_VERSION, NONE
from tidegauge.spec.tlc.output import ModelValue
from tidegauge.spec.tlc.tlc import TlcStep
from tidegauge.traces.from_model.behaviour import config_for, numbered
from tidegauge.traces.from_model.views import CONTROLLER
from tidegauge.traces.schema import Event, Trace

# A run of impl.explorer.isr_model as states of spec/AlterPartition.tla, from which traces are made as from TLC's runs.
#
# The names of the fields are the variables of the specification; node ids are those of the traces, from 1.


def steps_of(states: Sequence[IsrCluster], labels: Sequence[Label]) -> Iterator[TlcStep]:
    """Yield the initial state and the state after each label; `labels[i]` leads from `states[i]` to `states[i + 1]`."""
    yield TlcStep("", _state(states[0]))
    for label, state in zip(labels, states[1:], strict=True):
        yield TlcStep(label[0], _state(state))


def _state(state: IsrCluster) -> dict[str, Any]:
    """Return a state of the explorer with the variables of AlterPartition.tla."""
    leader, registration = state.leader, state.registration
    ends = {_node(f): end for f, end in enumerate(state.ends, start=1)}
    return {
        "end": {_node(LEADER): leader.log.end, **ends},
        "known": {_node(r.broker_id): r.log_end for r in leader.remotes},
        "view": _partition(leader.state.isr, leader.partition_epoch),
        "pending": _nodes(leader.state.proposed_isr if leader.state.is_inflight else ()),
        "hw": leader.log.hw,
        "committed": state.committed,
        "controller": _partition(registration.isr, registration.partition_epoch),
        "images": tuple(_partition(image.isr, image.partition_epoch) for image in state.images),
        "incarnation": {_node(b): broker.epoch for b, broker in state.control.brokers.items() if b != LEADER},
        "channel": _channel(state.exchange),
    }


def _channel(exchange: AlterPartitionExchange | None) -> dict[str, Any]:
    """Return the message between leader and controller as the specification has it, without fields that no event needs.

    Those are the broker epochs of a request and what a response was asked; a refusal has no ISR of its own, so `asked` says
    which was refused.
    """
    if exchange is None:
        return {"type": "nothing"}
    message = exchange.message
    if isinstance(message, AlterPartitionRequest):
        return {"type": "request", **_partition(message.isr, message.partition_epoch)}
    if message.error != NONE:
        return {"type": "refusal", "asked": _nodes(exchange.proposed.proposed_isr)}
    return {"type": "response", **_partition(message.isr, message.partition_epoch)}


def _partition(isr: Sequence[int], partition_epoch: int) -> dict[str, Any]:
    """Return an ISR of broker indexes with its partition epoch, as a record of the specification."""
    return {"isr": _nodes(isr), "partitionEpoch": partition_epoch}


def _nodes(brokers: Sequence[int]) -> frozenset[int]:
    """Return the node ids of brokers."""
    return frozenset(map(_node, brokers))


def _node(broker: int) -> int:
    """Return the node id of a broker, which the explorer counts from 0."""
    return broker + 1


# A run of spec/AlterPartition.tla, TLC's or the explorer's, as a trace.
#
# 1. TLC gives states and the names of actions. The actor and its arguments follow from the difference of two states.
# 2. The model has one leader in one leader epoch, and no high watermarks of followers; such fields are left out.
# 3. The model has no election. If a member of the ISR lacks committed records at the end, the trace goes on to its election:
#    the model's property warns of that, and before it no node has reported anything wrong.


EPOCH = 0
"""The leader epoch of a run, as long as it has no election."""

TlcState = Mapping[str, Any]


def trace_of_isr_changes(steps: Sequence[TlcStep], name: str, source: str) -> Trace:
    """Return the trace of a run; the first of `steps` is the initial state."""
    states = [_plain(step.state) for step in steps]
    brokers = sorted(states[0]["end"])
    # The one broker of which no leader records a LEO.
    leader = next(b for b in brokers if b not in states[0]["known"])
    events = list(_initial(states[0], brokers, leader))
    for step, (src, dst) in zip(steps[1:], pairwise(states), strict=True):
        if step.action not in _STEPS:
            raise ValueError(f"expected an action of AlterPartition.tla, one of {', '.join(_STEPS)}; seen {step.action!r}")
        events += _STEPS[step.action](src, dst, leader)
    events += _election(states[-1])
    # In models with `recent` (followers that were caught up within the lag limit) those outside the ISR may hold the high
    # watermark back, too.
    lag_rule = any(state.get("recent") for state in states)
    return Trace(name, "model-0", replace(config_for(len(brokers), source=source), lag_rule=lag_rule), numbered(events))


def _plain(value: Any) -> Any:
    """Return a value of TLC with node ids 1, 2, .. in place of the model values b1, b2, ..; other values stay."""
    if isinstance(value, ModelValue):
        return int(value.name.removeprefix("b"))
    if isinstance(value, Mapping):
        return {_plain(key): _plain(member) for key, member in value.items()}
    if isinstance(value, frozenset):
        return frozenset(map(_plain, value))
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


def _initial(state: TlcState, brokers: Sequence[int], leader: int) -> Iterator[Event]:
    """Yield the events that begin the trace: each broker starts with an empty log, and one of them leads."""
    for b in brokers:
        yield Event(b, "Start", {"clean": True, "leo": state["end"][b], "hw": 0, "log_start": 0, "epochs": ()})
    yield _registered(state, leader, EPOCH)
    # The ISR that the leader knows.
    reported = {"leader_epoch": EPOCH, **_isr(state["view"]), "epoch_start": 0, "leo": 0, "hw": 0}
    yield Event(leader, "BecomeLeader", reported)
    for b in brokers:
        if b != leader:
            yield Event(b, "BecomeFollower", {"leader": leader, "leader_epoch": EPOCH, "leo": 0})


def _isr(partition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an event for an ISR with its partition epoch."""
    return {"isr": tuple(sorted(partition["isr"])), "partition_epoch": partition["partitionEpoch"]}


def _registered(state: TlcState, leader: int, epoch: int) -> Event:
    """Return the event of the registration that the controller has in a state."""
    reported = {"leader": leader, "leader_epoch": epoch, **_isr(state["controller"]), "clean": True}
    return Event(CONTROLLER, "ChangePartition", reported)


def _hw(src: TlcState, dst: TlcState) -> dict[str, int]:
    """Return the fields for the leader's high watermark before and after a step."""
    return {"hw_before": src["hw"], "hw": dst["hw"]}


def _append(src: TlcState, dst: TlcState, leader: int) -> Iterator[Event]:
    """Yield an append of the leader."""
    before, after = src["end"][leader], dst["end"][leader]
    records = {"rec_base": before, "rec_end": after, "rec_epoch": EPOCH}
    yield Event(
        leader, "LeaderAppend", {"leader_epoch": EPOCH, **records, "leo_before": before, "leo": after, **_hw(src, dst)}
    )


def _fetch(src: TlcState, dst: TlcState, leader: int) -> Iterator[Event]:
    """Yield a fetch, one step of the model, as its nodes report it.

    It is sent, may lead to a proposal, is handled with its response, and the follower appends the records.
    """
    # The fetch leads to a proposal of a larger ISR.
    expands = dst["pending"] != src["pending"]
    # The state does not name the follower, but its fetch changed something, as a run has no step that changes nothing: the
    # LEO that the leader has recorded of it, its log, or it is proposed for the ISR.
    f = next(
        f
        for f in src["known"]
        if src["known"][f] != dst["known"][f]
        or src["end"][f] != dst["end"][f]
        or (expands and f in dst["pending"] - src["view"]["isr"])
    )
    offset, end = src["end"][f], src["end"][leader]
    # The fields that a response repeats; a follower without records has no last fetched epoch.
    request_key = {"req_epoch": EPOCH, "req_offset": offset}
    request = {**request_key, "req_last_epoch": EPOCH if offset else None}
    # A response has the next record, or none at the leader's log end.
    records = {"rec_base": offset, "rec_end": min(offset + 1, end), **({"rec_epoch": EPOCH} if offset < end else {})}
    yield Event(f, "SendFetch", {"peer": leader, **request})
    if expands:
        proposed = {"isr": dst["pending"], "partitionEpoch": src["view"]["partitionEpoch"]}
        yield Event(leader, "ExpandIsr", {"peer": f, **_isr(proposed), "remote_leo": offset})
    # The response has the high watermark that was read before the fetch was counted.
    response = {"error": NONE, "res_hw": src["hw"], **records}
    yield Event(leader, "HandleFetch", {"peer": f, **request, **response, "remote_leo": offset, **_hw(src, dst), "leo": end})
    # Otherwise the response had no records, or was lost, and there is nothing to report: the model has no high watermarks of
    # followers.
    if dst["end"][f] != offset:
        appended = {"leo_before": offset, "leo": dst["end"][f]}
        yield Event(f, "HandleFetchResponse", {"peer": leader, **request_key, **response, **appended})


def _shrink(src: TlcState, dst: TlcState, leader: int) -> Iterator[Event]:
    """Yield the leader's proposal of a smaller ISR."""
    proposed = {"isr": dst["pending"], "partitionEpoch": src["view"]["partitionEpoch"]}
    yield Event(leader, "ShrinkIsr", {**_isr(proposed), "leo": src["end"][leader], "hw": src["hw"]})


def _alter(src: TlcState, dst: TlcState, leader: int) -> Iterator[Event]:
    """Yield the controller's decision about the proposal in the channel, and the registration if it is accepted."""
    proposal = {"peer": leader, "leader_epoch": EPOCH, "isr": tuple(sorted(src["channel"]["isr"]))}
    if src["controller"] != dst["controller"]:
        yield Event(CONTROLLER, "AlterPartition", {**proposal, "error": NONE})
        yield _registered(dst, leader, EPOCH)
    else:
        # The model has no errors: a proposal of another partition epoch is refused as old, any other for a member's restart.
        # (The leader's event has one error for all, see `_answered`.)
        stale = src["channel"]["partitionEpoch"] != src["controller"]["partitionEpoch"]
        yield Event(
            CONTROLLER, "AlterPartition", {**proposal, "error": INVALID_UPDATE_VERSION if stale else INELIGIBLE_REPLICA}
        )


def _answered(src: TlcState, dst: TlcState, leader: int) -> Iterator[Event]:
    """Yield the response to the leader's proposal: the ISR that was committed, or a refusal.

    The model has refusals without an error code: INELIGIBLE_REPLICA stands for all.
    """
    response = src["channel"]
    if response["type"] == "response":
        reported = {**_isr(response), "error": NONE}
    else:
        reported = {"isr": tuple(sorted(response["asked"])), "error": INELIGIBLE_REPLICA}
    yield Event(leader, "HandleAlterPartitionResponse", {**reported, **_hw(src, dst)})


def _metadata(src: TlcState, dst: TlcState, leader: int) -> Iterator[Event]:
    """Yield the event of the leader that reads a registration, if that changes anything for it."""
    # The last image that is read in this step, which takes those that are gone from the front: it may skip some.
    image = src["images"][len(src["images"]) - len(dst["images"]) - 1]
    # A leader that has this partition epoch already skips the image, and logs nothing.
    if (src["view"], src["pending"], src["hw"]) != (dst["view"], dst["pending"], dst["hw"]):
        yield Event(
            leader, "BecomeLeader", {"leader_epoch": EPOCH, **_isr(image), "leo": src["end"][leader], **_hw(src, dst)}
        )


def _fence(_src: TlcState, dst: TlcState, leader: int) -> Iterator[Event]:
    """Yield the registration after a broker was fenced."""
    yield _registered(dst, leader, EPOCH)


def _restart(src: TlcState, dst: TlcState, leader: int) -> Iterator[Event]:
    """Yield a crash and a start of the broker whose incarnation has changed; its log is lost."""
    # Its broker epoch is a new one.
    follower = next(broker for broker in src["incarnation"] if src["incarnation"][broker] != dst["incarnation"][broker])
    yield Event(follower, "Crash", {})
    # Its registration takes it out of the ISR.
    if src["controller"] != dst["controller"]:
        yield _registered(dst, leader, EPOCH)
    yield Event(follower, "Start", {"clean": False, "leo": 0, "hw": 0, "log_start": 0, "epochs": ()})


def _silent(_src: TlcState, _dst: TlcState, _leader: int) -> Iterator[Event]:
    """Return no event: no node reports that time passes."""
    return iter(())


def _election(last: TlcState) -> Iterator[Event]:
    """Yield an election of an ISR member without all committed records, if there is one at the end."""
    controller = last["controller"]
    # Only an election shows the loss: the judge compares the new leader's log with what was committed.
    lacking = next((b for b in sorted(controller["isr"]) if last["end"][b] < last["committed"]), None)
    if lacking is not None:
        # It becomes leader in the next epoch, with the ISR as it is, by one more change of the registration.
        end = last["end"][lacking]
        registered = {**controller, "partitionEpoch": controller["partitionEpoch"] + 1}
        yield _registered({**last, "controller": registered}, lacking, EPOCH + 1)
        yield Event(lacking, "BecomeLeader", {"leader_epoch": EPOCH + 1, **_isr(registered), "epoch_start": end, "leo": end})


_STEPS: Mapping[str, Callable[[TlcState, TlcState, int], Iterator[Event]]] = {
    "LeaderAppend": _append,
    "HandleFetch": _fetch,
    "ShrinkIsr": _shrink,
    "HandleAlterPartition": _alter,
    "HandleAlterPartitionResponse": _answered,
    "ReadMetadata": _metadata,
    "FenceBroker": _fence,
    "RestartEmpty": _restart,
    "LagLimitPasses": _silent,
}
