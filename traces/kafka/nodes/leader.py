"""Lines of a leader, and of the metadata thread that makes leaders and followers.

Rules of this file

1. `High watermark updated` is printed by whatever caused it: an append, a fetch, a role change, an answered ISR proposal.
   For a fetch it comes *before* the `Recorded replica` line of the same thread. Between an append and a fetch of one
   thread it belongs to the fetch, unless the leader is alone in the ISR: only then can an append raise it.
2. A fetch counts before its `Recorded replica` line, up to as far back as the thread was busy with something else; another
   thread may have used it meanwhile to raise the high watermark. `timeline.py` puts such fetches in front.
3. A log that ends in mid-fetch (4.x stops logging at SIGTERM while requests are handled) has the high watermark line
   without the `Recorded` line. What the LEO dump of the line or its value tell is kept, as a HandleFetch.
4. A change of partition metadata without a new leader epoch is a `Skipped the become-..` line: that is how brokers learn
   committed ISRs in KRaft. It becomes the same event with the epoch unchanged.
"""

from collections.abc import Callable, Mapping

from tidegauge.traces.kafka.lines.phrases import broker_epochs, leos, proposal
from tidegauge.traces.kafka.lines.said import Said
from tidegauge.traces.kafka.nodes.steps import (
    Fields,
    KeptHighWatermark,
    LoggedBroker,
    LoggedStep,
    Risen,
    may_fetch,
    or_null,
    record_fields,
    reported,
)


def _leader(broker: LoggedBroker, said: Said) -> None:
    replica = broker.replica(said.tp)
    replica.leo, replica.hw, replica.leader_epoch = said.number("leo"), said.number("hw"), said.number("leader_epoch")
    replica.leader = broker.node
    replica.recorded.clear()
    replica.isr = frozenset(said.ids())
    broker.learn_topic(said)
    step = broker.begin(
        said,
        "BecomeLeader",
        {
            "leader_epoch": replica.leader_epoch,
            "partition_epoch": said.number("partition_epoch"),
            "isr": said.ids(),
            "leo": replica.leo,
            "hw_before": replica.hw,
            "hw": replica.hw,
        },
    )
    step.awaits.append(("metadata", said.tp, said.number("partition_epoch")))


def _leader_again(broker: LoggedBroker, said: Said) -> None:
    replica = broker.replica(said.tp)
    replica.leader_epoch, replica.hw = said.number("leader_epoch"), said.number("hw")
    replica.isr = frozenset(said.ids())
    step = broker.begin(
        said,
        "BecomeLeader",
        {
            "leader_epoch": replica.leader_epoch,
            "partition_epoch": said.number("partition_epoch"),
            "isr": said.ids(),
            "hw_before": replica.hw,
            "hw": replica.hw,
            **reported(leo=replica.leo),
        },
    )
    step.awaits.append(("metadata", said.tp, said.number("partition_epoch")))


def _follower(broker: LoggedBroker, said: Said) -> None:
    replica = broker.replica(said.tp)
    replica.leo, replica.hw, replica.leader_epoch = said.number("leo"), said.number("hw"), said.number("leader_epoch")
    replica.leader = said.number("leader")
    step = broker.begin(
        said,
        "BecomeFollower",
        {
            "leader": or_null(said.number("leader")),
            "leader_epoch": replica.leader_epoch,
            "partition_epoch": said.number("partition_epoch"),
            "leo": replica.leo,
            "hw": replica.hw,
        },
    )
    step.awaits.append(("metadata", said.tp, said.number("partition_epoch")))


def _follower_again(broker: LoggedBroker, said: Said) -> None:
    broker.replica(said.tp).leader_epoch = said.number("leader_epoch")
    step = broker.begin(
        said,
        "BecomeFollower",
        {
            "leader": or_null(said.number("leader")),
            "leader_epoch": said.number("leader_epoch"),
            "partition_epoch": said.number("partition_epoch"),
        },
    )
    step.awaits.append(("metadata", said.tp, said.number("partition_epoch")))


def append(broker: LoggedBroker, said: Said) -> None:
    """An append outside a fetcher thread: records of a producer (or of a group coordinator)."""
    if said.line.thread:  # without thread names this may be another thread's append
        settle(broker, said)
    replica = broker.replica(said.tp)
    base, end = said.number("rec_base"), said.number("rec_end")
    fields = record_fields(replica, base, end)
    fields.pop("epochs", None)
    if replica.leader_epoch is not None:
        fields |= {"leader_epoch": replica.leader_epoch, "rec_epoch": replica.leader_epoch}
    replica.leo = end
    broker.begin(said, "LeaderAppend", fields | reported(leo_before=base, leo=end, hw_before=replica.hw, hw=replica.hw))


def _high_watermark_risen(broker: LoggedBroker, said: Said) -> None:
    before, after = said.number("hw_before"), said.number("hw")
    broker.replica(said.tp).hw = after
    step = broker.opened(said, "BecomeLeader", "HandleAlterPartitionResponse")
    if step is not None:
        broker.add(step, hw_before=before, hw=after)
        broker.close(said)
        return
    settle(broker, said)
    append_step = broker.opened(said, "LeaderAppend")
    was = dict(append_step.fields) if append_step is not None else {}
    if append_step is not None:
        append_step.fields.update(hw_before=before, hw=after)
        if broker.replica(said.tp).isr == {broker.node}:
            return  # whoever else is in the ISR when the thread counts its next fetch
    elif not may_fetch(said):
        return  # the line that says why is missing (watch.py)
    broker.risen[said.line.thread, said.tp] = Risen(said, (broker.run, broker.index, 0, 0), append_step, was)


def _high_watermark_kept(broker: LoggedBroker, said: Said) -> None:
    """Whatever is open has had its chance to move the high watermark; with nothing open, a fetch caused the line.

    Partition#makeLeader prints its line first, takes the new epoch then and looks at the high watermark last: a fetch
    handled in between is still refused, so the leader is one from this line on.
    """
    step = broker.opened(said, "BecomeLeader", "LeaderAppend", "HandleAlterPartitionResponse")
    if step is None:
        if may_fetch(said):
            key = said.line.thread, said.tp
            if said.line.thread and key in broker.kept:  # a thread handles one fetch at a time
                _settle_kept(broker, broker.kept[key])
            recorded = dict(broker.replica(said.tp).recorded)
            broker.kept[key] = KeptHighWatermark(said, (broker.run, broker.index, 0, 0), recorded)
        return
    if step.name == "BecomeLeader":
        broker.add(step)
    broker.close(said)


def _recorded(broker: LoggedBroker, said: Said) -> None:
    key = (said.line.thread, said.tp)
    replica = broker.replica(said.tp)
    peer, position = said.number("peer"), said.number("remote_leo")
    replica.recorded[peer] = position
    fields = reported(peer=peer, req_offset=position, remote_leo=position, hw_before=replica.hw, hw=replica.hw)
    step = broker.step(said, "HandleFetch", fields)
    step.since = broker.busy.get(said.line.thread, -1)
    kept = broker.kept.pop(key, None)
    # without thread names: this fetch has its `Skipping update` line, so the raise before that is another one's
    another = not said.line.thread and kept is not None and key in broker.risen
    risen = None if another else broker.risen.pop(key, None)
    if risen is not None:
        step.fields.update(hw_before=risen.said.number("hw_before"), hw=risen.said.number("hw"))
        step.place = risen.place
        if risen.append is not None:
            risen.append.fields.update(risen.was)
    expanding = broker.expanding.pop(key, None)
    if expanding is not None and expanding.fields.get("peer") == peer:
        expanding.fields["remote_leo"] = position
    broker.close(said)


def settle(broker: LoggedBroker, said: Said) -> None:
    """A high watermark line that neither append nor `Recorded` line claims: a fetch, of whom is not told."""
    risen = broker.risen.pop((said.line.thread, said.tp), None)
    if risen is not None and risen.append is None:
        fields = {"hw_before": risen.said.number("hw_before"), "hw": risen.said.number("hw")}
        step = broker.step(risen.said, "HandleFetch", dict(fields))
        step.place = risen.place


def settle_all(broker: LoggedBroker) -> None:
    """At the end of a process."""
    for kept in broker.kept.values():
        _settle_kept(broker, kept)
    for risen in list(broker.risen.values()):
        settle(broker, risen.said)


def _settle_kept(broker: LoggedBroker, kept: KeptHighWatermark) -> None:
    """A look at the high watermark that no `Recorded` line claims: a fetch, of whom the LEOs of the line tell."""
    if "leos" not in kept.said.values:
        return
    new = {
        peer: leo
        for peer, leo in leos(kept.said.text("leos")).items()
        if peer != broker.node and leo != kept.recorded.get(peer, -1)
    }
    if len(new) != 1:
        return  # the lines of other threads, which tell of theirs, may be yet to come
    for peer, leo in new.items():
        step = broker.step(kept.said, "HandleFetch", reported(peer=peer, req_offset=leo, remote_leo=leo))
        step.place = kept.place
        broker.replica(kept.said.tp).recorded[peer] = leo


def _expand_isr(broker: LoggedBroker, said: Said) -> None:
    members, leader_epoch, partition_epoch = proposal(said.text("sent"))
    fields: Fields = {"peer": said.number("peer"), "isr": members, "partition_epoch": partition_epoch}
    known = broker_epochs(said.text("sent")).get(said.number("peer"))
    step = broker.step(said, "ExpandIsr", fields | reported(broker_epoch=known))
    step.offers.append(("proposal", said.tp, leader_epoch, partition_epoch, frozenset(members)))
    broker.expanding[said.line.thread, said.tp] = step


def _shrinking(broker: LoggedBroker, said: Said) -> None:
    replica = broker.replica(said.tp)
    replica.leo, replica.hw = said.number("leo"), said.number("hw")
    broker.begin(said, "ShrinkIsr", {"isr": said.ids(), "leo": replica.leo, "hw": replica.hw})


def _shrink_isr(broker: LoggedBroker, said: Said) -> None:
    members, leader_epoch, partition_epoch = proposal(said.text("sent"))
    step: LoggedStep = broker.opened(said, "ShrinkIsr") or broker.begin(said, "ShrinkIsr", {"isr": members})
    broker.add(step, partition_epoch=partition_epoch)
    step.offers.append(("proposal", said.tp, leader_epoch, partition_epoch, frozenset(members)))


def _isr_response(broker: LoggedBroker, said: Said) -> None:
    topic, _, partition = said.text("partition").rpartition(":")
    tp = f"{broker.topic_ids.get(topic, topic)}-{partition}" if topic else said.text("partition")
    error, epoch = said.number("error"), said.number("partition_epoch")
    hw = broker.replica(tp).hw
    fields = {"error": error} | ({"isr": said.ids(), "partition_epoch": epoch} if error == 0 else {})
    step = broker.begin(said, "HandleAlterPartitionResponse", fields | reported(hw_before=hw, hw=hw), tp)
    if error == 0:
        broker.replica(tp).isr = frozenset(said.ids())
        step.awaits.append(("metadata", tp, epoch))


def _isr_updated(broker: LoggedBroker, said: Said) -> None:
    broker.replica(said.tp).isr = frozenset(said.ids())
    if broker.opened(said, "HandleAlterPartitionResponse") is None:
        epoch = said.number("partition_epoch")
        hw = broker.replica(said.tp).hw
        step = broker.begin(
            said,
            "HandleAlterPartitionResponse",
            {"error": 0, "isr": said.ids(), "partition_epoch": epoch} | reported(hw_before=hw, hw=hw),
        )
        step.awaits.append(("metadata", said.tp, epoch))


HANDLERS: Mapping[str, Callable[[LoggedBroker, Said], None]] = {
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
    "isr-updated": _isr_updated,
}
