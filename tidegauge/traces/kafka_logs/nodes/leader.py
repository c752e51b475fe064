"""Handlers of the lines of a leader, and of the metadata thread that makes leaders and followers.

A handler (HANDLERS, by kind of line) reads the values of a ParsedLine, changes what is known of the replica in
`broker.replicas`, and begins a step, an event in the making, or adds fields to the step that its thread has open on this
partition (LoggedBroker: `begin`, `opened`, `add`, `close`). Lines come in the order of the log. To *look* at the high
watermark is to check whether it can be raised (Partition#maybeIncrementLeaderHW): a look prints one line, if it raises or
not. A fetch is *counted* when the leader records its fetch offset as the follower's log end.

A step happened after `begins` and by `ends`, and after the steps that it `follows`; `key` is where its stamp puts it: (time,
line index, order among the steps of a line). Keys in `provides` and `depends_on` tie it to steps of other nodes. Until the
`Recorded` line of a fetch comes, `broker.counted` has, by thread and partition, what its thread has printed of it
(CountedFetch).

Rules of this file

1. `High watermark updated` is printed by the thread that looked: at an append, a fetch, a role change, the response to an
   ISR proposal. For a fetch it comes *before* the `Recorded replica` line of the same thread. Which step allowed the raise
   is another question: correlation/order.py answers it.
2. A fetch counts before its `Recorded replica` line, and before what its thread printed about the high watermark of it.
3. A log that ends in mid-fetch (4.x stops logging at SIGTERM while requests are handled) has the high watermark line
   without the `Recorded` line. It becomes a HandleFetch with what the LEOs or the value of the line show.
4. Only a proposal that was sent is one. DefaultAlterPartitionManager#submit takes one per partition and refuses the next in
   the same thread, before it is sent (OPERATION_NOT_ATTEMPTED). A response to a proposal that metadata has replaced is
   ignored (Partition#submitAlterPartition): it changes nothing.
5. A change of partition metadata without a new leader epoch is a `Skipped the become-..` line: that is how brokers learn
   committed ISRs in KRaft. It becomes the same event with the epoch unchanged.
"""

from collections.abc import Callable, Hashable, Mapping

from tidegauge.traces.kafka_logs.nodes.logged_broker import (
    KEPT,
    LATE_MICROSECONDS,
    RAISED,
    CountedFetch,
    Fields,
    HighWatermarkSet,
    LoggedBroker,
    LoggedStep,
    ThreadPartition,
    may_fetch,
    or_null,
    proposal_keys,
    record_fields,
    recorded_fields,
    reported,
)
from tidegauge.traces.kafka_logs.parsing.parsed_line import ParsedLine, broker_epochs, leos, proposal


def _takes_effect_after_line(broker: LoggedBroker, step: LoggedStep) -> LoggedStep:
    """Note that a step happens after its line, and by the next line of its thread (`broker.taking_effect`); return it."""
    step.takes_effect = True
    broker.add(step)
    return step


def _begin_role(broker: LoggedBroker, parsed: ParsedLine, name: str, values: Fields, leader: Fields | None = None) -> None:
    """Begin the step `name` of a role, which the metadata of its partition epoch brings, with the fields `values`.

    `leader` is the field of that name, for a follower: it comes first.
    """
    epoch = parsed.number("partition_epoch")
    epochs: Fields = {"leader_epoch": parsed.number("leader_epoch"), "partition_epoch": epoch}
    step = broker.begin(parsed, name, {**(leader or {}), **epochs, **values})
    # Partition#makeFollower sets the epoch, looks for the log, and only then prints its line; whoever asks for another epoch
    # is refused from then on (ReplicaManager#readFromLog looks at it without the lock). So the step may be as early as the
    # line of the log, if that is the last one of this thread.
    tp, begins, spoken_before = broker.existing_log.pop(step.thread, ("", 0, 0))
    if name == "BecomeFollower" and step.thread and (tp, spoken_before) == (parsed.tp, broker.spoke):
        step.begins = begins
    _takes_effect_after_line(broker, step).depends_on += (("metadata", parsed.tp, epoch),)


def _log_exists(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `UnifiedLog already exists`: the thread has begun to change the role of the replica."""
    broker.existing_log[parsed.line.thread] = (parsed.tp, broker.begins, broker.latest)


def _leader(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Leader <partition> .. starts at leader epoch`: the broker leads, and knows nothing of its followers yet."""
    replica = broker.replica(parsed.tp)
    replica.leo, replica.hw, replica.leader_epoch = parsed.number("leo"), parsed.number("hw"), parsed.number("leader_epoch")
    replica.leader, replica.follows_from = broker.node, -1
    replica.recorded.clear()
    replica.isr = frozenset(parsed.ids())
    broker.learn_topic(parsed)
    fields: Fields = {"isr": parsed.ids(), "leo": replica.leo, "hw_before": replica.hw, "hw": replica.hw}
    _begin_role(broker, parsed, "BecomeLeader", fields)


def _leader_again(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Skipped the become-leader state change`: the same leader epoch with other metadata (rule 5)."""
    replica = broker.replica(parsed.tp)
    replica.leader_epoch, replica.hw = parsed.number("leader_epoch"), parsed.number("hw")
    replica.isr = frozenset(parsed.ids())
    fields: Fields = {"isr": parsed.ids(), "hw_before": replica.hw, "hw": replica.hw, **reported(leo=replica.leo)}
    _begin_role(broker, parsed, "BecomeLeader", fields)


def _follower(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Follower <partition> starts at leader epoch`: the broker follows the leader that the line names."""
    replica = broker.replica(parsed.tp)
    replica.leo, replica.hw, replica.leader_epoch = parsed.number("leo"), parsed.number("hw"), parsed.number("leader_epoch")
    replica.leader, replica.follows_from = parsed.number("leader"), broker.now
    fields: Fields = {"leo": replica.leo, "hw": replica.hw}
    _begin_role(broker, parsed, "BecomeFollower", fields, {"leader": or_null(replica.leader)})


def _follower_again(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Skipped the become-follower state change`: the same leader epoch with other metadata (rule 5)."""
    broker.replica(parsed.tp).leader_epoch = parsed.number("leader_epoch")
    _begin_role(broker, parsed, "BecomeFollower", {}, {"leader": or_null(parsed.number("leader"))})


def append(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Appended message set` outside a fetcher thread: add LeaderAppend, of a producer or a group coordinator."""
    # A thread does one thing at a time: a fetch that it was handling has ended, without a `Recorded` line.
    _put_aside_fetches_of(broker, parsed.line.thread)
    broker.appenders.add(parsed.line.thread)
    replica = broker.replica(parsed.tp)
    base, end = parsed.number("rec_base"), parsed.number("rec_end")
    fields = record_fields(replica, base, end)
    # All records of a producer are of the leader's epoch (UnifiedLog#appendAsLeader).
    fields.pop("epochs", None)
    if replica.leader_epoch is not None:
        fields |= {"leader_epoch": replica.leader_epoch, "rec_epoch": replica.leader_epoch}
    replica.leo = end
    step = broker.begin(parsed, "LeaderAppend", fields | reported(leo_before=base, leo=end))
    # The log prints this line last of those of an append: it began with the first.
    step.begins = (
        broker.log_began.pop(parsed.line.thread, step.begins) if parsed.line.thread else broker.now - LATE_MICROSECONDS
    )


def _high_watermark_risen(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `High watermark updated`: part of a role or ISR change, or the effect of an append or of a fetch."""
    before, after = parsed.number("hw_before"), parsed.number("hw")
    replica = broker.replica(parsed.tp)
    # The high watermark only rises; but the line of a later raise may stand before this one.
    replica.hw = after if replica.hw is None else max(replica.hw, after)
    step = broker.opened(parsed, "BecomeLeader", "HandleAlterPartitionResponse")
    # A change of role or of the ISR raises it in the same thread: the line belongs to that step.
    if step is not None:
        broker.add(step, hw_before=before, hw=after)
        broker.close(parsed)
        return
    append_step = broker.opened(parsed, "LeaderAppend")
    if append_step is None and not may_fetch(parsed):
        return  # the line of its cause is missing (gap_detection.py)
    step = broker.step(parsed, RAISED, {"hw_before": before, "hw": after})
    key = parsed.line.thread, parsed.tp
    if not parsed.line.thread:
        step.begins = broker.now - LATE_MICROSECONDS
        return
    # UnifiedLog prints its line when it has the new value, Partition only later: the raise happened by the first.
    log_line = broker.setting.pop(key, HighWatermarkSet(after, step.begins, step.ends, broker.index))
    index = log_line.line_index
    if log_line.hw == after:
        # `ends` less the tick is the stamp of the log's line.
        step.begins, step.ends, step.key = log_line.begins, log_line.ends, (log_line.ends - broker.tick, index, 0)
    if append_step is not None:
        step.follows += (append_step,)
        broker.close(parsed)  # an append looks once: the thread's next line of this kind is of a fetch
        # This one is, too, if the line of an append that raised nothing was not logged (Partition at DEBUG).
        broker.counted[key] = CountedFetch(step.begins, step.ends, index, append=append_step)
        return
    _fetch_in_progress(broker, key, step.begins, step.ends, index).raised = step


def _high_watermark_kept(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take the line of a look that did not raise the high watermark: close the step that made the leader look.

    If none is open, a fetch did, whose `Recorded` line is still to come.
    """
    step = broker.opened(parsed, "BecomeLeader", "LeaderAppend", "HandleAlterPartitionResponse")
    if step is None:
        # Without thread names it is unknown which fetch it was.
        if parsed.line.thread and may_fetch(parsed):
            key = parsed.line.thread, parsed.tp
            in_progress = _fetch_in_progress(broker, key, broker.begins, broker.now + broker.tick, broker.index)
            in_progress.kept_line = (parsed, (broker.run, broker.index, 0, 0))
            in_progress.recorded = dict(broker.replica(parsed.tp).recorded)
            _add_skipped_update(broker, parsed)
        return
    _add_skipped_update(broker, parsed)
    # A fetch that is handled between the line of Partition#makeLeader and this one is still refused: makeLeader sets the new
    # epoch after its line, and looks at the high watermark last. So the step happens with this line.
    if step.name == "BecomeLeader":
        broker.add(step)
    broker.close(parsed)


def _recorded(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Recorded replica r log end offset`, the last line of a counted fetch: add its HandleFetch."""
    key = (parsed.line.thread, parsed.tp)
    replica = broker.replica(parsed.tp)
    peer, log_end = parsed.number("peer"), parsed.number("remote_leo")
    replica.recorded[peer] = log_end
    step = broker.step(parsed, "HandleFetch", recorded_fields(peer, log_end))
    counted = broker.counted.pop(key, None)
    if broker.counted:
        # A log end that a look of another thread shows is not that thread's own fetch if its `Recorded` line is this one.
        for (_, tp), in_progress in broker.counted.items():
            if tp == parsed.tp:
                in_progress.printed.add((peer, log_end))
        _put_aside_fetches_of(broker, parsed.line.thread)
    # The log end is printed now: it is no longer one that only a look at the high watermark shows.
    if broker.looked:
        broker.looked.pop((parsed.tp, peer, log_end), None)
    if not parsed.line.thread:
        # Without threads the only bound is how late a line may be printed.
        step.begins = broker.now - LATE_MICROSECONDS
    elif counted is not None and counted.append is not None:
        # The raise that its thread printed may be of the append before it: the fetch only comes after that.
        step.begins, step.thread = counted.begins, ""
        step.follows += (counted.append,)
    elif counted is not None:
        # It was counted before the first of the lines that its thread printed of it (-1: before the steps of that line).
        step.begins, step.ends, step.key = counted.begins, counted.ends, (counted.ends - broker.tick, counted.index, -1)
        if counted.raised is not None:
            counted.raised.follows += (step,)
    # The proposal to expand the ISR that this fetch made the leader send.
    expanding = broker.expanding.pop(key, None) if broker.expanding else None
    if expanding is not None and expanding.fields.get("peer") == peer:
        expanding.fields["remote_leo"] = log_end
    broker.close(parsed)


def _put_aside_fetches_of(broker: LoggedBroker, thread: str) -> None:
    """Put aside what a thread has printed of a fetch: it goes on with something else, so its `Recorded` line is missing.

    Or there was no fetch: a produce request looks, too, whose records the log had already (an idempotent producer's).
    """
    for key in [key for key in broker.counted if key[0] == thread]:
        _put_aside(broker, broker.counted.pop(key))


def _fetch_in_progress(broker: LoggedBroker, key: ThreadPartition, begins: int, ends: int, index: int) -> CountedFetch:
    """Return what a thread has printed so far of the fetch that it handles on a partition.

    If it has printed nothing, the fetch begins here: it was counted after `begins` and by `ends`, before line `index`.
    """
    counted = broker.counted.get(key)
    # A fetch looks once. Two looks are two fetches, or an append and a fetch: the `Recorded` line of the first is missing.
    if counted is not None and (counted.append is not None or counted.raised is not None or counted.kept_line is not None):
        _put_aside(broker, broker.counted.pop(key))
        counted = None
    return counted or broker.counted.setdefault(key, CountedFetch(begins, ends, index))


def _put_aside(broker: LoggedBroker, counted: CountedFetch) -> None:
    """Note the one log end that the look of a fetch shows and no `Recorded` line did, as `broker.looked`.

    The `Recorded` line of this fetch is missing, or another thread may still print it.
    """
    if counted.kept_line is None:
        return
    line, _ = counted.kept_line
    # `Not increasing HWM` names no log ends.
    if "leos" not in line.values:
        return
    log_ends = leos(line.text("leos"))
    # The leader's own log end is no fetch.
    recorded = {**counted.recorded, broker.node: log_ends.get(broker.node)}
    unrecorded = [
        (line.tp, peer, log_end)
        for peer, log_end in log_ends.items()
        if log_end != recorded.get(peer, -1) and (peer, log_end) not in counted.printed
    ]
    # Of two it is unknown which one this thread counted.
    if len(unrecorded) == 1:
        broker.looked.setdefault(unrecorded[0], counted)


def _no_replica(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Note that a fetch was counted: its leader prints this line as it finds afterwards that it leads no more."""
    _fetch_in_progress(broker, (parsed.line.thread, parsed.tp), broker.begins, broker.now + broker.tick, broker.index)


def _add_skipped_update(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Add a step with the log ends that a leader saw as it did not raise its high watermark.

    order.py needs it to find the order, and drops it. `Not increasing HWM` names no log ends.
    """
    if "leos" in parsed.values:
        step = broker.step(parsed, KEPT, {"leos": parsed.text("leos")} | reported(hw=parsed.values.get("new_hw")))
        if not parsed.line.thread:
            step.begins = broker.now - LATE_MICROSECONDS


def settle_all(broker: LoggedBroker) -> None:
    """Add a HandleFetch for each fetch whose `Recorded` line did not come, at the end of a process.

    The log ends that its look printed may show of which replica it is.
    """
    for counted in broker.counted.values():
        # Its own raise is all that shows the fetch, which becomes one of an unknown replica.
        if counted.raised is not None:
            counted.raised.name = "HandleFetch"
        _put_aside(broker, counted)
    # Log ends that only a look at the high watermark shows (`_put_aside`).
    for (_, peer, leo), counted in broker.looked.items():
        if counted.kept_line is not None:
            parsed, place = counted.kept_line
            step = broker.step(parsed, "HandleFetch", recorded_fields(peer, leo))
            # -1: before the steps of the first line that its thread printed of it.
            step.begins, step.ends, step.key = counted.begins, counted.ends, (counted.ends - broker.tick, counted.index, -1)
            step.place = place
            broker.replica(parsed.tp).recorded[peer] = leo
    broker.looked.clear()


def _expand_isr(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Submitting ISR state change PendingExpandIsr`: a fetch made the leader propose one more member."""
    if _sent_again(broker, parsed):
        return
    members, _, partition_epoch = proposal(parsed.text("sent"))
    fields: Fields = {"peer": parsed.number("peer"), "isr": members, "partition_epoch": partition_epoch}
    # Since 3.5 the proposal names the broker epoch that the leader knows of each member (KIP-903).
    broker_epoch = broker_epochs(parsed.text("sent")).get(parsed.number("peer"))
    step = broker.step(parsed, "ExpandIsr", fields | reported(broker_epoch=broker_epoch))
    _tie_proposal(broker, parsed, step)
    broker.expanding[parsed.line.thread, parsed.tp] = step
    if may_fetch(parsed):
        _fetch_in_progress(broker, (parsed.line.thread, parsed.tp), step.begins, step.ends, broker.index)


def _sent_again(broker: LoggedBroker, parsed: ParsedLine) -> bool:
    """Return whether a proposal is the last one again, as its thread just took an error as the response to that.

    Partition#handleAlterPartitionError sends it again; it is no new proposal.
    """
    response = broker.opened(parsed, "HandleAlterPartitionResponse")
    return response is not None and response.fields.get("error") != 0


def _tie_proposal(broker: LoggedBroker, parsed: ParsedLine, step: LoggedStep) -> None:
    """Give a proposal's step the keys that tie it to what the controller makes of it, and to the proposal before it."""
    keys, ignored = _proposal_keys(parsed), broker.replica(parsed.tp).ignored
    broker.proposals[parsed.line.thread, parsed.tp] = step
    # Whatever the controller did with the proposal before, whose response was ignored, it did before it answered. If that
    # was the same proposal (F3), it is the one that was accepted.
    step.depends_on += ignored
    # The last key is the most exact (with the broker epochs of the members, if named); the first is the one that
    # `_isr_refused` looks for.
    repeats = bool(ignored) and any(keys[-1] in step_before.provides for step_before in broker.steps)
    # The controller's line of a change has neither the leader epoch nor the members of what it accepted.
    accepted_as = ("proposed", parsed.tp, step.fields["partition_epoch"])
    step.provides += (("again", keys[0]),) if repeats else (*keys, accepted_as)
    broker.replica(parsed.tp).ignored = ()


def _proposal_keys(parsed: ParsedLine) -> tuple[Hashable, ...]:
    """Return the keys of the proposal that a `Submitting ISR state change` line sends (logged_broker.proposal_keys)."""
    sent = parsed.text("sent")
    members, leader_epoch, partition_epoch = proposal(sent)
    return proposal_keys(parsed.tp, leader_epoch, partition_epoch, members, broker_epochs(sent))


def _shrinking(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Shrinking ISR from .. to ..`, the first of the two lines of a shrink; it has log end and high watermark."""
    replica = broker.replica(parsed.tp)
    replica.leo, replica.hw = parsed.number("leo"), parsed.number("hw")
    broker.begin(parsed, "ShrinkIsr", {"isr": parsed.ids(), "leo": replica.leo, "hw": replica.hw})


def _shrink_isr(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Submitting ISR state change PendingShrinkIsr`, the second line of a shrink; the first may be missing."""
    if _sent_again(broker, parsed):
        return
    members, _, partition_epoch = proposal(parsed.text("sent"))
    step: LoggedStep = broker.opened(parsed, "ShrinkIsr") or broker.begin(parsed, "ShrinkIsr", {"isr": members})
    # Not `broker.add`, which would move the step here: its values are those of the first line, under the lock, and this one
    # is printed when the lock is free again.
    step.fields["partition_epoch"] = partition_epoch
    _tie_proposal(broker, parsed, step)


def _isr_refused(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take back a proposal that its own thread could not send; one that the controller refused has its response."""
    # A response that was taken over is of an earlier proposal.
    response = broker.opened(parsed, "HandleAlterPartitionResponse")
    if response is not None and response is not broker.replica(parsed.tp).taken_over:
        return
    step = broker.proposals.pop((parsed.line.thread, parsed.tp), None)
    # Without thread names the last proposal may be another thread's.
    key = _proposal_keys(parsed)[0]
    if step is not None and {key, ("again", key)} & set(step.provides):
        _take_back(broker, parsed, step)
        broker.expanding.pop((parsed.line.thread, parsed.tp), None)


def _isr_ignored(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take back an accepted response that changed nothing, or a proposal that was not sent as another one was under way.

    A response with an error stays: the controller did refuse, and the leader's state is the same either way.
    """
    # Without thread names other threads' lines may stand between the response and this one.
    of_thread = broker.opened(parsed, "HandleAlterPartitionResponse")
    response = of_thread if parsed.line.thread else _untaken_response(broker, parsed)
    # No response came before: the line says that a proposal was not sent, as another one was under way.
    if response is None:
        _isr_refused(broker, parsed)
    # The controller accepted what metadata had replaced meanwhile (rule 4). The controller's part did happen: the next
    # proposal comes after it (_tie_proposal).
    elif response.fields.get("error") == 0:
        _take_back(broker, parsed, response)
        broker.replica(parsed.tp).ignored += response.depends_on
    broker.replica(parsed.tp).isr = frozenset(parsed.ids())


def _untaken_response(broker: LoggedBroker, parsed: ParsedLine) -> LoggedStep | None:
    """Return the response to the proposal that a line names; None if none came, or the last one was taken over."""
    key = _proposal_keys(parsed)[0]
    for step in reversed(broker.steps):
        if step.tp != parsed.tp:
            continue
        if step.name == "HandleAlterPartitionResponse":
            return None if step is broker.replica(parsed.tp).taken_over else step
        if {key, ("again", key)} & set(step.provides):
            return None
    return None


def _take_back(broker: LoggedBroker, parsed: ParsedLine, step: LoggedStep) -> None:
    """Remove a step that a later line shows not to have happened; the thread no longer adds to it."""
    # From the end: it is one of the last steps. By identity, as steps of equal fields are different steps.
    index = next((index for index in range(len(broker.steps) - 1, -1, -1) if broker.steps[index] is step), None)
    if index is not None:
        del broker.steps[index]
    if broker.opened(parsed) is step:
        broker.close(parsed)


def _isr_response(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `handled AlterPartition request`: the controller's response, an error or the ISR that is committed.

    The line is printed before the leader takes it over. If it does not, _isr_ignored takes the step back (rule 4).
    """
    # 4.2 names the partition by its topic id.
    tp = broker.partition_of_response(parsed)
    error, epoch = parsed.number("error"), parsed.number("partition_epoch")
    fields: Fields = {"error": error} | ({"isr": parsed.ids(), "partition_epoch": epoch} if error == 0 else {})
    step = _takes_effect_after_line(broker, broker.begin(parsed, "HandleAlterPartitionResponse", fields, tp))
    if error == 0:
        broker.replica(tp).isr = frozenset(parsed.ids())
        # That ISR is committed with this partition epoch, so the controller's step came before.
        step.depends_on += (("metadata", tp, epoch),)


def _isr_updated(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `ISR updated to ..`: the leader has taken a response over."""
    broker.replica(parsed.tp).isr = frozenset(parsed.ids())
    step = broker.opened(parsed, "HandleAlterPartitionResponse")
    if step is not None:
        # The response is taken over between the two lines; this one is printed under the lock.
        broker.add(step)
        broker.taking_effect.pop(parsed.line.thread, None)
    else:
        # DefaultAlterPartitionManager was silent (its logger is at DEBUG): this line alone shows the response.
        epoch = parsed.number("partition_epoch")
        fields: Fields = {"error": 0, "isr": parsed.ids(), "partition_epoch": epoch}
        step = broker.begin(parsed, "HandleAlterPartitionResponse", fields)
        step.depends_on += (("metadata", parsed.tp, epoch),)
    broker.replica(parsed.tp).taken_over = step


HANDLERS: Mapping[str, Callable[[LoggedBroker, ParsedLine], None]] = {
    "leader": _leader,
    "leader-again": _leader_again,
    "log-there": _log_exists,
    "follower": _follower,
    "follower-again": _follower_again,
    "leader-high-watermark": _high_watermark_risen,
    "leader-high-watermark-kept": _high_watermark_kept,
    "no-replica": _no_replica,
    "recorded": _recorded,
    "expand-isr": _expand_isr,
    "shrinking": _shrinking,
    "shrink-isr": _shrink_isr,
    "isr-answer": _isr_response,
    "isr-refused": _isr_refused,
    "isr-ignored": _isr_ignored,
    "isr-updated": _isr_updated,
}
