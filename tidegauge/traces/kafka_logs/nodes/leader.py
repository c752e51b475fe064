"""Lines of a leader, and of the metadata thread that makes leaders and followers.

Rules of this file

1. `High watermark updated` is printed by the thread that caused it: by an append, a fetch, a role change, the response to an
   ISR proposal. For a fetch it comes *before* the `Recorded replica` line of the same thread. Between an append and a fetch
   of one thread it belongs to the fetch, unless the leader is alone in the ISR: only then can an append raise it.
2. A fetch counts before its `Recorded replica` line, up to as far back as the thread was busy with something else; another
   thread may have used it meanwhile to raise the high watermark. `timeline.py` puts such fetches before that.
3. A log that ends in mid-fetch (4.x stops logging at SIGTERM while requests are handled) has the high watermark line
   without the `Recorded` line. It becomes a HandleFetch with what the LEOs or the value of the line show.
4. Only a proposal that was sent is one. DefaultAlterPartitionManager#submit takes one per partition and refuses the next in
   the same thread, before it is sent (OPERATION_NOT_ATTEMPTED). A response to a proposal that metadata has replaced is
   ignored (Partition#submitAlterPartition): it changes nothing.
5. A change of partition metadata without a new leader epoch is a `Skipped the become-..` line: that is how brokers learn
   committed ISRs in KRaft. It becomes the same event with the epoch unchanged.
"""

from collections.abc import Callable, Hashable, Mapping

from tidegauge.traces.kafka_logs.nodes.steps import (
    Fields,
    KeptHighWatermark,
    LoggedBroker,
    LoggedStep,
    RaisedHighWatermark,
    may_fetch,
    or_null,
    record_fields,
    reported,
)
from tidegauge.traces.kafka_logs.parsing.parsed_line import ParsedLine, broker_epochs, leos, proposal


def _leader(broker: LoggedBroker, parsed: ParsedLine) -> None:
    replica = broker.replica(parsed.tp)
    replica.leo, replica.hw, replica.leader_epoch = parsed.number("leo"), parsed.number("hw"), parsed.number("leader_epoch")
    replica.leader, replica.follows_from = broker.node, -1
    replica.recorded.clear()
    replica.isr = frozenset(parsed.ids())
    broker.learn_topic(parsed)
    step = broker.begin(
        parsed,
        "BecomeLeader",
        {
            "leader_epoch": replica.leader_epoch,
            "partition_epoch": parsed.number("partition_epoch"),
            "isr": parsed.ids(),
            "leo": replica.leo,
            "hw_before": replica.hw,
            "hw": replica.hw,
        },
    )
    step.depends_on.append(("metadata", parsed.tp, parsed.number("partition_epoch")))


def _leader_again(broker: LoggedBroker, parsed: ParsedLine) -> None:
    replica = broker.replica(parsed.tp)
    replica.leader_epoch, replica.hw = parsed.number("leader_epoch"), parsed.number("hw")
    replica.isr = frozenset(parsed.ids())
    step = broker.begin(
        parsed,
        "BecomeLeader",
        {
            "leader_epoch": replica.leader_epoch,
            "partition_epoch": parsed.number("partition_epoch"),
            "isr": parsed.ids(),
            "hw_before": replica.hw,
            "hw": replica.hw,
            **reported(leo=replica.leo),
        },
    )
    step.depends_on.append(("metadata", parsed.tp, parsed.number("partition_epoch")))


def _follower(broker: LoggedBroker, parsed: ParsedLine) -> None:
    replica = broker.replica(parsed.tp)
    replica.leo, replica.hw, replica.leader_epoch = parsed.number("leo"), parsed.number("hw"), parsed.number("leader_epoch")
    replica.leader, replica.follows_from = parsed.number("leader"), broker.index
    step = broker.begin(
        parsed,
        "BecomeFollower",
        {
            "leader": or_null(parsed.number("leader")),
            "leader_epoch": replica.leader_epoch,
            "partition_epoch": parsed.number("partition_epoch"),
            "leo": replica.leo,
            "hw": replica.hw,
        },
    )
    step.depends_on.append(("metadata", parsed.tp, parsed.number("partition_epoch")))


def _follower_again(broker: LoggedBroker, parsed: ParsedLine) -> None:
    broker.replica(parsed.tp).leader_epoch = parsed.number("leader_epoch")
    step = broker.begin(
        parsed,
        "BecomeFollower",
        {
            "leader": or_null(parsed.number("leader")),
            "leader_epoch": parsed.number("leader_epoch"),
            "partition_epoch": parsed.number("partition_epoch"),
        },
    )
    step.depends_on.append(("metadata", parsed.tp, parsed.number("partition_epoch")))


def append(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Add an append outside a fetcher thread: records of a producer (or of a group coordinator)."""
    if parsed.line.thread:  # without thread names the waiting line may be another thread's
        settle(broker, parsed)
    replica = broker.replica(parsed.tp)
    base, end = parsed.number("rec_base"), parsed.number("rec_end")
    fields = record_fields(replica, base, end)
    # All records of a producer are of the leader's epoch (UnifiedLog#appendAsLeader).
    fields.pop("epochs", None)
    if replica.leader_epoch is not None:
        fields |= {"leader_epoch": replica.leader_epoch, "rec_epoch": replica.leader_epoch}
    replica.leo = end
    broker.begin(parsed, "LeaderAppend", fields | reported(leo_before=base, leo=end, hw_before=replica.hw, hw=replica.hw))


def _high_watermark_risen(broker: LoggedBroker, parsed: ParsedLine) -> None:
    before, after = parsed.number("hw_before"), parsed.number("hw")
    broker.replica(parsed.tp).hw = after
    step = broker.opened(parsed, "BecomeLeader", "HandleAlterPartitionResponse")
    # A change of role or of the ISR raises it in the same thread: the line belongs to that step.
    if step is not None:
        broker.add(step, hw_before=before, hw=after)
        broker.close(parsed)
        return
    # The thread prints a new raise, so the one that waits had no `Recorded` line.
    settle(broker, parsed)
    append_step = broker.opened(parsed, "LeaderAppend")
    was = dict(append_step.fields) if append_step is not None else {}
    if append_step is not None:
        append_step.fields.update(hw_before=before, hw=after)
        if broker.replica(parsed.tp).isr == {broker.node}:
            # Alone in the ISR the append raised it. The ISR is asked now: it may be larger at the thread's next fetch.
            return
    elif not may_fetch(parsed):
        return  # the line of its cause is missing (gap_detection.py)
    broker.raised[parsed.line.thread, parsed.tp] = RaisedHighWatermark(
        parsed, (broker.run, broker.index, 0, 0), append_step, was
    )


def _high_watermark_kept(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Close the open step, which did not raise the high watermark; if none is open, a fetch caused the line."""
    step = broker.opened(parsed, "BecomeLeader", "LeaderAppend", "HandleAlterPartitionResponse")
    if step is None:
        if may_fetch(parsed):
            key = parsed.line.thread, parsed.tp
            if parsed.line.thread and key in broker.kept:  # a thread handles one fetch at a time
                _settle_kept(broker, broker.kept[key])
            recorded = dict(broker.replica(parsed.tp).recorded)
            broker.kept[key] = KeptHighWatermark(parsed, (broker.run, broker.index, 0, 0), recorded)
        return
    # A fetch that is handled between the line of Partition#makeLeader and this one is still refused: makeLeader sets the new
    # epoch after its line, and looks at the high watermark last. So the step happens with this line.
    if step.name == "BecomeLeader":
        broker.add(step)
    broker.close(parsed)


def _recorded(broker: LoggedBroker, parsed: ParsedLine) -> None:
    key = (parsed.line.thread, parsed.tp)
    replica = broker.replica(parsed.tp)
    peer, position = parsed.number("peer"), parsed.number("remote_leo")
    replica.recorded[peer] = position
    fields = reported(peer=peer, req_offset=position, remote_leo=position, hw_before=replica.hw, hw=replica.hw)
    step = broker.step(parsed, "HandleFetch", fields)
    step.since = broker.busy.get(parsed.line.thread, -1)
    # It was counted while the replica led: Partition#updateFollowerFetchState prints its line without the lock.
    if replica.led_after(step.since):
        step.place = (broker.run, replica.follows_from, -1, 0)
    kept = broker.kept.pop(key, None)
    # Without thread names: this fetch has a `Skipping update` line, so the raise before that was by another one.
    another = not parsed.line.thread and kept is not None and key in broker.raised
    raised = None if another else broker.raised.pop(key, None)
    if raised is not None:
        step.fields.update(hw_before=raised.parsed.number("hw_before"), hw=raised.parsed.number("hw"))
        step.place = raised.place
        if raised.append is not None:
            raised.append.fields.update(raised.was)
    expanding = broker.expanding.pop(key, None)
    if expanding is not None and expanding.fields.get("peer") == peer:
        expanding.fields["remote_leo"] = position
    broker.close(parsed)


def settle(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Add a HandleFetch of an unknown replica for a raise that neither an append nor a `Recorded` line explains."""
    raised = broker.raised.pop((parsed.line.thread, parsed.tp), None)
    if raised is not None and raised.append is None:
        fields = {"hw_before": raised.parsed.number("hw_before"), "hw": raised.parsed.number("hw")}
        step = broker.step(raised.parsed, "HandleFetch", dict(fields))
        step.place = raised.place


def settle_all(broker: LoggedBroker) -> None:
    """Settle all waiting high watermark lines, at the end of a process."""
    for kept in broker.kept.values():
        _settle_kept(broker, kept)
    for raised in list(broker.raised.values()):
        settle(broker, raised.parsed)


def _settle_kept(broker: LoggedBroker, kept: KeptHighWatermark) -> None:
    """Add a HandleFetch for a `Skipping update` line that no `Recorded` line explains; its LEOs show of which replica."""
    # `Not increasing HWM` names no log ends.
    if "leos" not in kept.parsed.values:
        return
    new = {
        peer: leo
        for peer, leo in leos(kept.parsed.text("leos")).items()
        if peer != broker.node and leo != kept.recorded.get(peer, -1)
    }
    if len(new) != 1:
        return  # several changed: `Recorded` lines of other threads may still come
    for peer, leo in new.items():
        step = broker.step(kept.parsed, "HandleFetch", reported(peer=peer, req_offset=leo, remote_leo=leo))
        step.place = kept.place
        broker.replica(kept.parsed.tp).recorded[peer] = leo


def _expand_isr(broker: LoggedBroker, parsed: ParsedLine) -> None:
    if _sent_again(broker, parsed):
        return
    members, _, partition_epoch = proposal(parsed.text("sent"))
    fields: Fields = {"peer": parsed.number("peer"), "isr": members, "partition_epoch": partition_epoch}
    # Since 3.5 the proposal names the broker epoch that the leader knows of each member (KIP-903).
    broker_epoch = broker_epochs(parsed.text("sent")).get(parsed.number("peer"))
    step = broker.step(parsed, "ExpandIsr", fields | reported(broker_epoch=broker_epoch))
    _proposed(broker, parsed, step)
    broker.expanding[parsed.line.thread, parsed.tp] = step


def _sent_again(broker: LoggedBroker, parsed: ParsedLine) -> bool:
    """Return whether the thread that took an error as response sends its proposal again (#handleAlterPartitionError)."""
    response = broker.opened(parsed, "HandleAlterPartitionResponse")
    return response is not None and response.fields.get("error") != 0


def _proposed(broker: LoggedBroker, parsed: ParsedLine, step: LoggedStep) -> None:
    step.provides.append(_proposal(parsed))
    broker.proposals[parsed.line.thread, parsed.tp] = step
    # Whatever the controller did with the proposal before, whose response was ignored, it did before it answered.
    step.depends_on += broker.replica(parsed.tp).ignored
    broker.replica(parsed.tp).ignored.clear()


def _proposal(parsed: ParsedLine) -> Hashable:
    members, leader_epoch, partition_epoch = proposal(parsed.text("sent"))
    return "proposal", parsed.tp, leader_epoch, partition_epoch, frozenset(members)


def _shrinking(broker: LoggedBroker, parsed: ParsedLine) -> None:
    replica = broker.replica(parsed.tp)
    replica.leo, replica.hw = parsed.number("leo"), parsed.number("hw")
    broker.begin(parsed, "ShrinkIsr", {"isr": parsed.ids(), "leo": replica.leo, "hw": replica.hw})


def _shrink_isr(broker: LoggedBroker, parsed: ParsedLine) -> None:
    if _sent_again(broker, parsed):
        return
    members, _, partition_epoch = proposal(parsed.text("sent"))
    step: LoggedStep = broker.opened(parsed, "ShrinkIsr") or broker.begin(parsed, "ShrinkIsr", {"isr": members})
    broker.add(step, partition_epoch=partition_epoch)
    _proposed(broker, parsed, step)


def _isr_refused(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take back a proposal that its own thread could not send; one that the controller refused has its response."""
    if broker.opened(parsed, "HandleAlterPartitionResponse") is not None:
        return
    step = broker.proposals.pop((parsed.line.thread, parsed.tp), None)
    # Without thread names the last proposal may be another thread's.
    if step is not None and _proposal(parsed) in step.provides:
        _take_back(broker, parsed, step)
        broker.expanding.pop((parsed.line.thread, parsed.tp), None)


def _isr_ignored(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take back a response that changed nothing, or a proposal that was not sent as another one was under way."""
    response = broker.opened(parsed, "HandleAlterPartitionResponse")
    if response is None:
        _isr_refused(broker, parsed)
    elif response.fields.get("error") == 0:
        _take_back(broker, parsed, response)
        broker.replica(parsed.tp).ignored += response.depends_on
    broker.replica(parsed.tp).isr = frozenset(parsed.ids())


def _take_back(broker: LoggedBroker, parsed: ParsedLine, step: LoggedStep) -> None:
    at = next((at for at in range(len(broker.steps) - 1, -1, -1) if broker.steps[at] is step), None)
    if at is not None:
        del broker.steps[at]
    if broker.opened(parsed) is step:
        broker.close(parsed)


def _isr_response(broker: LoggedBroker, parsed: ParsedLine) -> None:
    # 4.2 names the partition by topic id (`<id>:0`), earlier releases by name (`beta-0`).
    topic, _, partition = parsed.text("partition").rpartition(":")
    tp = f"{broker.topic_ids.get(topic, topic)}-{partition}" if topic else parsed.text("partition")
    error, epoch = parsed.number("error"), parsed.number("partition_epoch")
    hw = broker.replica(tp).hw
    fields = {"error": error} | ({"isr": parsed.ids(), "partition_epoch": epoch} if error == 0 else {})
    step = broker.begin(parsed, "HandleAlterPartitionResponse", fields | reported(hw_before=hw, hw=hw), tp)
    if error == 0:
        broker.replica(tp).isr = frozenset(parsed.ids())
        step.depends_on.append(("metadata", tp, epoch))


def _isr_updated(broker: LoggedBroker, parsed: ParsedLine) -> None:
    broker.replica(parsed.tp).isr = frozenset(parsed.ids())
    # DefaultAlterPartitionManager was silent (its logger is at DEBUG): this line alone shows the response.
    if broker.opened(parsed, "HandleAlterPartitionResponse") is None:
        epoch = parsed.number("partition_epoch")
        hw = broker.replica(parsed.tp).hw
        step = broker.begin(
            parsed,
            "HandleAlterPartitionResponse",
            {"error": 0, "isr": parsed.ids(), "partition_epoch": epoch} | reported(hw_before=hw, hw=hw),
        )
        step.depends_on.append(("metadata", parsed.tp, epoch))


HANDLERS: Mapping[str, Callable[[LoggedBroker, ParsedLine], None]] = {
    "leader": _leader,
    "leader-again": _leader_again,
    "follower": _follower,
    "follower-again": _follower_again,
    "leader-high-watermark": _high_watermark_risen,
    "leader-high-watermark-kept": _high_watermark_kept,
    "recorded": _recorded,
    "expand-isr": _expand_isr,
    "shrinking": _shrinking,
    "shrink-isr": _shrink_isr,
    "isr-answer": _isr_response,
    "isr-refused": _isr_refused,
    "isr-ignored": _isr_ignored,
    "isr-updated": _isr_updated,
}
