"""Lines of a leader, and of the metadata thread that makes leaders and followers.

Rules of this file

1. `High watermark updated` is printed by whatever caused it: an append, a fetch, a role change, an answered ISR proposal.
   For a fetch it comes *before* the `Recorded replica` line of the same thread.
2. A change of partition metadata without a new leader epoch is a `Skipped the become-..` line: that is how brokers learn
   committed ISRs in KRaft. It becomes the same event with the epoch unchanged.
"""

from collections.abc import Callable, Mapping

from traces.kafka.patterns import Said, proposal
from traces.kafka.steps import Broker, Step, or_null, record_fields, told


def leader(broker: Broker, said: Said) -> None:
    replica = broker.replica(said.tp)
    replica.leo, replica.hw, replica.leader_epoch = said.number("leo"), said.number("hw"), said.number("leader_epoch")
    _learn_topic(broker, said)
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


def leader_again(broker: Broker, said: Said) -> None:
    replica = broker.replica(said.tp)
    replica.leader_epoch, replica.hw = said.number("leader_epoch"), said.number("hw")
    step = broker.begin(
        said,
        "BecomeLeader",
        {
            "leader_epoch": replica.leader_epoch,
            "partition_epoch": said.number("partition_epoch"),
            "isr": said.ids(),
            "hw_before": replica.hw,
            "hw": replica.hw,
            **told(leo=replica.leo),
        },
    )
    step.awaits.append(("metadata", said.tp, said.number("partition_epoch")))


def follower(broker: Broker, said: Said) -> None:
    replica = broker.replica(said.tp)
    replica.leo, replica.hw, replica.leader_epoch = said.number("leo"), said.number("hw"), said.number("leader_epoch")
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


def follower_again(broker: Broker, said: Said) -> None:
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


def _learn_topic(broker: Broker, said: Said) -> None:
    if "topic_id" in said.values:
        broker.topic_ids[said.text("topic_id")] = said.tp.rpartition("-")[0]


def append(broker: Broker, said: Said) -> None:
    """An append outside a fetcher thread: records of a producer (or of a group coordinator)."""
    replica = broker.replica(said.tp)
    base, end = said.number("rec_base"), said.number("rec_end")
    fields = record_fields(replica, base, end)
    fields.pop("epochs", None)
    if replica.leader_epoch is not None:
        fields |= {"leader_epoch": replica.leader_epoch, "rec_epoch": replica.leader_epoch}
    replica.leo = end
    broker.begin(said, "LeaderAppend", fields | told(leo_before=base, leo=end, hw_before=replica.hw, hw=replica.hw))


def high_watermark_risen(broker: Broker, said: Said) -> None:
    key = (said.line.thread, said.tp)
    step = broker.opened(said, "BecomeLeader", "HandleAlterPartitionResponse")
    if step is not None:
        broker.add(step, hw_before=said.number("hw_before"), hw=said.number("hw"))
        broker.replica(said.tp).hw = said.number("hw")
        return
    if key in broker.risen:
        _risen_alone(broker, broker.risen[key])
    broker.risen[key] = said


def high_watermark_kept(broker: Broker, said: Said) -> None:
    """The append that is open has had its chance to move the high watermark."""
    if broker.opened(said, "LeaderAppend") is not None:
        _settle(broker, said)
        broker.close(said)


def recorded(broker: Broker, said: Said) -> None:
    key = (said.line.thread, said.tp)
    replica = broker.replica(said.tp)
    risen = broker.risen.get(key)
    if risen is not None and _append_raised_it(broker, risen, said):
        _settle(broker, said)
        risen = None
    broker.risen.pop(key, None)
    position = said.number("remote_leo")
    fields = told(peer=said.number("peer"), req_offset=position, remote_leo=position, hw_before=replica.hw, hw=replica.hw)
    step = broker.step(said, "HandleFetch", fields)
    if risen is not None:
        step.fields.update(hw_before=risen.number("hw_before"), hw=risen.number("hw"))
        replica.hw = risen.number("hw")
    expanding = broker.expanding.pop(key, None)
    if expanding is not None and expanding.fields.get("peer") == said.number("peer"):
        expanding.fields["remote_leo"] = position
    broker.close(said)


def _append_raised_it(broker: Broker, risen: Said, said: Said) -> bool:
    """Between an append and a fetch of the same thread the line belongs to the nearer one."""
    step = broker.opened(said, "LeaderAppend")
    return step is not None and risen.line.time - step.time < said.line.time - risen.line.time


def _settle(broker: Broker, said: Said) -> None:
    """A high watermark line that no fetch claimed belongs to the append of its thread."""
    risen = broker.risen.pop((said.line.thread, said.tp), None)
    if risen is None:
        return
    step = broker.opened(said, "LeaderAppend")
    if step is None:
        _risen_alone(broker, risen)
        return
    step.fields.update(hw_before=risen.number("hw_before"), hw=risen.number("hw"))
    broker.replica(said.tp).hw = risen.number("hw")


def _risen_alone(broker: Broker, risen: Said) -> None:
    """Nobody claims the line: what is certain is the value, as an observation."""
    broker.replica(risen.tp).hw = risen.number("hw")
    broker.step(risen, "Observe", {"hw": risen.number("hw")})


def settle_all(broker: Broker) -> None:
    """At the end of a process."""
    for risen in list(broker.risen.values()):
        _settle(broker, risen)


def expand_isr(broker: Broker, said: Said) -> None:
    members, leader_epoch, partition_epoch = proposal(said.text("sent"))
    step = broker.step(
        said, "ExpandIsr", {"peer": said.number("peer"), "isr": members, "partition_epoch": partition_epoch}
    )
    step.offers.append(("proposal", said.tp, leader_epoch, partition_epoch, frozenset(members)))
    broker.expanding[said.line.thread, said.tp] = step


def shrinking(broker: Broker, said: Said) -> None:
    broker.begin(said, "ShrinkIsr", {"isr": said.ids(), "leo": said.number("leo"), "hw": said.number("hw")})


def shrink_isr(broker: Broker, said: Said) -> None:
    members, leader_epoch, partition_epoch = proposal(said.text("sent"))
    step: Step = broker.opened(said, "ShrinkIsr") or broker.begin(said, "ShrinkIsr", {"isr": members})
    broker.add(step, partition_epoch=partition_epoch)
    step.offers.append(("proposal", said.tp, leader_epoch, partition_epoch, frozenset(members)))


def isr_answer(broker: Broker, said: Said) -> None:
    topic, _, partition = said.text("partition").rpartition(":")
    tp = f"{broker.topic_ids.get(topic, topic)}-{partition}" if topic else said.text("partition")
    error, epoch = said.number("error"), said.number("partition_epoch")
    hw = broker.replica(tp).hw
    fields = {"error": error} | ({"isr": said.ids(), "partition_epoch": epoch} if error == 0 else {})
    step = broker.begin(said, "HandleAlterPartitionResponse", fields | told(hw_before=hw, hw=hw), tp)
    if error == 0:
        step.awaits.append(("metadata", tp, epoch))


def isr_updated(broker: Broker, said: Said) -> None:
    if broker.opened(said, "HandleAlterPartitionResponse") is None:
        epoch = said.number("partition_epoch")
        hw = broker.replica(said.tp).hw
        step = broker.begin(
            said,
            "HandleAlterPartitionResponse",
            {"error": 0, "isr": said.ids(), "partition_epoch": epoch} | told(hw_before=hw, hw=hw),
        )
        step.awaits.append(("metadata", said.tp, epoch))


HANDLERS: Mapping[str, Callable[[Broker, Said], None]] = {
    "leader": leader,
    "leader-again": leader_again,
    "follower": follower,
    "follower-again": follower_again,
    "leader-high-watermark": high_watermark_risen,
    "leader-high-watermark-kept": high_watermark_kept,
    "recorded": recorded,
    "expand-isr": expand_isr,
    "shrinking": shrinking,
    "shrink-isr": shrink_isr,
    "isr-answer": isr_answer,
    "isr-updated": isr_updated,
}
