"""Describes one step: the message that was consumed, then what changed, a line per broker.

    b2->b1 Fetch offset=1 epoch=0 last_fetched_epoch=0
    b1     hw 0->1, knows b2@1

Rules of this file

1. A message has its line when it is consumed or lost, not when it is sent: `show` lists what is in flight.
2. A change names only what changed, always in the order epoch, log start, leo, hw, isr, proposal, recorded log ends.
"""

from collections.abc import Iterator

from tidegauge.impl.cluster.cluster import Cluster, Label, record_epochs
from tidegauge.impl.errors import ERROR_NAMES
from tidegauge.impl.explorer.describe import Values, broker_name, broker_names, controller_text, message_text
from tidegauge.impl.explorer.view import view
from tidegauge.impl.rules import INELIGIBLE_REPLICA, UNDEFINED
from tidegauge.traces.from_model.behaviour import events_of_step

WIDTH = 7


def step_lines(before: Cluster, label: Label, after: Cluster, values: Values) -> list[str]:
    """Describe the step `label`, which led from `before` to `after`; `values` has the letters of records."""
    return [line.rstrip() for line in _lines(before, label, after, values)]


def _lines(before: Cluster, label: Label, after: Cluster, values: Values) -> Iterator[str]:
    """Yield the lines of a step: its message or cause first, then what changed."""
    name, *numbers = label
    broker = numbers[0]
    match name:
        case "SendFetch" | "SendEpochRequest":
            source = before.brokers[broker].source
            yield f"{message_text(broker, source, after.network[broker][source], values)}  SENT"
        case "HandleFetch" | "HandleEpochRequest":
            yield from _served(before, label, after, values)
        case "HandleFetchResponse" | "HandleDivergingResponse" | "HandleOutOfRange" | "HandleEpochResponse":
            yield message_text(broker, numbers[1], before.network[broker][numbers[1]], values)
            yield change_text(broker, before, after) or _line(broker, _nothing(before, label, after))
        case "LoseResponse":
            yield f"{message_text(broker, numbers[1], before.network[broker][numbers[1]], values)}  LOST"
        case "Duplicate":
            yield f"{message_text(broker, numbers[1], before.network[broker][numbers[1]], values)}  will arrive twice"
        case "HandleDuplicate":
            copy = before.copies[numbers[1]][broker]
            yield f"{message_text(numbers[1], broker, copy, values)}  once more; nobody gets the response"
            yield change_text(broker, before, after) or _line(broker, "no change")
        case "LoseDisk":
            yield _line(broker, "loses its disk")
        case "AnswerProduce":
            result = "acknowledged" if numbers[2] == 0 else f"answered with error {numbers[2]}"
            yield _line(broker, f"the produce that ends at {numbers[1]} is {result}")
        case "Read":
            yield _line(broker, f"a consumer reads up to {numbers[2]}, hw {numbers[1]}")
        case "LeaderAppend":
            yield _line(
                broker,
                f"append {_record(after, broker, values)}",
                *_changes(broker, before, after),
            )
        case "TruncateToHighWatermark":
            yield _line(broker, "truncates at its high watermark", *_changes(broker, before, after))
        case "ShrinkIsr":
            yield change_text(broker, before, after)
        case "DeleteRecords":
            yield _line(broker, f"deletes what is before {numbers[1]}")
        case "Crash" | "CrashAndLose":
            yield _line(broker, f"crashes, hw checkpointed at {numbers[1]}, leo {numbers[2]}")
        case "Stop":
            yield _line(broker, "stops cleanly")
        case "Restart" | "Register":
            log = after.brokers[broker].partition.log
            yield _line(broker, f"starts with leo {log.end}, hw {log.hw}")
            if before.controller != after.controller:
                yield f"controller {controller_text(after.controller)}"
        case "BecomeLeader":
            yield _line(broker, "leads", *_changes(broker, before, after))
        case "BecomeFollower":
            leader = after.brokers[broker].partition.leader_id
            does = f"follows {broker_name(leader)}" if leader != UNDEFINED else "has no leader"
            yield _line(broker, does, *_changes(broker, before, after))
        case _:
            yield from _decided(before, label, after)


def _served(before: Cluster, label: Label, after: Cluster, values: Values) -> Iterator[str]:
    """Describe how a leader handles a request: it may be down, refuse, or answer."""
    name, leader, follower = label[:3]
    yield message_text(follower, leader, before.network[follower][leader], values)
    profile = before.model.profile_name
    handled = [event for event in events_of_step(view(before), label, view(after), profile) if event.event == name]
    # A leader that is down handles nothing, and so reports no event; the action is enabled to take the request away.
    if not handled:
        yield _line(leader, "is down, the request is lost")
    elif after.network[follower][leader] is None:
        yield _line(leader, f"refuses: {ERROR_NAMES[handled[0].fields['error']]}")
    change = change_text(leader, before, after)
    if change:
        yield change


def _nothing(before: Cluster, label: Label, after: Cluster) -> str:
    """Return why a response changed nothing: its follower dropped it, or there was nothing new in it."""
    name, follower, _ = label
    # A follower drops a response of another leader epoch, or to a request that it has given up: it reports no event then.
    events = events_of_step(view(before), label, view(after), before.model.profile_name)
    return "no change" if any(event.event == name and event.node == follower + 1 for event in events) else "ignores it"


def _decided(before: Cluster, label: Label, after: Cluster) -> Iterator[str]:
    """Describe what the controller did."""
    # A refused proposal changes its leader, which drops it, and not the controller.
    if label[0].startswith("AlterPartition") and before.controller == after.controller and before.brokers != after.brokers:
        b = label[1]
        proposed = broker_names(before.brokers[b].partition.state.proposed_isr)
        yield f"controller refuses isr={proposed}: INELIGIBLE_REPLICA ({INELIGIBLE_REPLICA})"
        yield change_text(b, before, after)
    else:
        yield f"controller {controller_text(after.controller)}"


# ---------------------------------------------------------------------------------------------------------------------
# Changes


def _line(broker: int, *parts: str) -> str:
    return f"{broker_name(broker):<{WIDTH}}{', '.join(parts)}"


def change_text(broker: int, before: Cluster, after: Cluster) -> str:
    """Describe what changed at a broker; "" if nothing did."""
    changed = _changes(broker, before, after)
    return _line(broker, *changed) if changed else ""


def _changes(broker: int, before: Cluster, after: Cluster) -> list[str]:
    """List what changed at a broker, in the order of rule 2."""
    old, new = before.brokers[broker].partition, after.brokers[broker].partition
    parts = []
    # A shorter log was truncated; `leo 5->3` alone would not say so.
    if new.log.end < old.log.end:
        parts.append(f"truncate to {new.log.end}")
    pairs = (
        ("epoch", old.leader_epoch, new.leader_epoch),
        ("start", old.log.start, new.log.start),
        ("leo", old.log.end, new.log.end),
        ("hw", old.log.hw, new.log.hw),
    )
    parts += [f"{name} {was}->{now}" for name, was, now in pairs if was != now]
    if new.is_leader and new.state.isr != old.state.isr:
        parts.append(f"isr {broker_names(new.state.isr)}")
    if new.state.is_inflight and new.state != old.state:
        parts.append(f"proposes isr {broker_names(new.state.proposed_isr)}")
    # A leader that is deposed drops its proposal too: that goes without saying.
    elif old.state.is_inflight and not new.state.is_inflight and new.is_leader:
        parts.append("nothing proposed any more")
    old_log_ends = {replica.broker_id: replica.log_end for replica in old.remotes}
    for replica in new.remotes:
        if replica.log_end != old_log_ends.get(replica.broker_id, UNDEFINED):
            at = f"@{replica.log_end}" if replica.log_end != UNDEFINED else " no longer"
            parts.append(f"knows {broker_name(replica.broker_id)}{at}")
    return parts


def _record(cluster: Cluster, broker: int, values: Values) -> str:
    """Format the last record of a broker's log: epoch, letter, offset."""
    epochs = record_epochs(cluster.brokers[broker])
    offset = len(epochs) - 1
    return f"{epochs[-1]}{values.get((epochs[-1], offset), '')}@{offset}"
