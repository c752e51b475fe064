"""Handlers of the lines of a fetcher thread, and of the log that it writes: SendFetch and everything that a response does.

A handler (HANDLERS, by kind of line) reads the values of a ParsedLine, changes what is known of the replica in
`broker.replicas`, and begins a step, an event in the making, or adds fields to the step that its thread has open on this
partition (LoggedBroker: `begin`, `opened`, `add`, `close`). Lines come in the order of the log. Keys tie steps of two nodes:
a SendFetch provides ("sent", request), and the step that handles its response depends on ("answered", request).

Rules of this file

1. A fetcher thread has one request in flight at a time, so what it does with a response belongs to its last `Sending` line,
   and the next such line comes after the response, unless the request was lost.
2. A request of an incremental session has only what changed. There is a SendFetch for every partition of the session,
   because the leader reads and counts them all.
3. The lines of one response are: received, [epoch entries], [appended], after-append, [high watermark], [log start],
   follower-high-watermark. 3.4.0 prints them for a diverging response too, before it truncates (KAFKA-14704).
4. A truncation line is printed before the truncation, and also when nothing is truncated; what the log did follows in the
   same thread.
"""

from collections.abc import Callable, Hashable, Mapping

from tidegauge.impl.rules import high_watermark_after_log_start
from tidegauge.traces.kafka_logs.nodes import leader
from tidegauge.traces.kafka_logs.nodes.logged_broker import (
    FETCHER_THREAD,
    TRUNCATES,
    Fields,
    HighWatermarkSet,
    LoggedBroker,
    LoggedFetcher,
    LoggedStep,
    Send,
    fetcher_key,
    record_fields,
    reported,
    request_fields,
)
from tidegauge.traces.kafka_logs.parsing.parsed_line import ParsedLine, fetch_line


def _sending(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Add a SendFetch for each partition that the session asks for now, and remember the request for its response."""
    request = fetch_line(parsed.text("request"))
    for topic, topic_id in request.topic_ids.items():
        broker.topic_ids[topic_id] = topic
    fetcher = broker.fetchers.setdefault(fetcher_key(parsed), LoggedFetcher())
    requests = parsed.line.requests
    # Epochs 0 and -1 begin and end a session; one that skips a number shows that the line of a request is missing.
    goes_on = (
        fetcher.send is not None
        and request.session_epoch > 0
        and request.session_epoch == fetcher.send.session_epoch + requests
    )
    # A session sends only what changed (KIP-227): what it asked for before still counts, as long as no request is missing.
    partitions = fetcher.requested if goes_on else {}
    fetcher.requested = {tp: partition for tp, partition in partitions.items() if tp not in request.removed} | dict(
        request.requested
    )
    fetcher.send = Send(
        broker.node,
        parsed.number("peer"),
        request.session,
        request.session_epoch,
        dict(fetcher.requested),
        parsed.line.time,
        broker.run,
        requests=requests,
        fetcher=fetcher_key(parsed)[1],
    )
    broker.sends.append(fetcher.send)
    sent: tuple[Hashable, ...] = (("sent", id(fetcher.send)),)
    for tp, partition in fetcher.requested.items():
        # The thread sends its next fetch after it has handled the response to the last one.
        broker.open.pop((parsed.line.thread, tp), None)
        step = broker.step(parsed, "SendFetch", request_fields(partition, fetcher.send.leader), tp)
        step.provides = sent
        before = fetcher.last.get(tp)
        # A fetcher waits for each response; only after a lost one does it send again without.
        if before is not None and not before.lost:
            step.depends_on = (("answered", id(before)),)
        fetcher.last[tp] = fetcher.send


def _fields_of_request(send: Send | None, tp: str) -> Fields:
    """Return the req_ fields of a partition in a request; empty if its line is missing, or did not ask for it."""
    partition = send.requested.get(tp) if send is not None else None
    return {} if partition is None else request_fields(partition)


def _begin_response(broker: LoggedBroker, parsed: ParsedLine, name: str, fields: Fields) -> LoggedStep:
    """Begin and return the step `name` that handles the response to the last request of this fetcher.

    It has `fields`, and those of the request. If the line of the request is missing, it depends on no response.
    """
    fetcher = broker.fetchers.get(fetcher_key(parsed))
    send = fetcher.send if fetcher is not None else None
    step = broker.begin(parsed, name, {"peer": parsed.number("peer")} | _fields_of_request(send, parsed.tp) | fields)
    if send is not None:
        step.depends_on += (("answered", id(send)),)
    return step


def _fetch_lost(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Note that the fetcher's last request failed, as FetchSessionHandler prints: no response to it comes."""
    fetcher = broker.fetchers.get(fetcher_key(parsed))
    if fetcher is not None and fetcher.send is not None:
        fetcher.send.lost = True


def _received(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Received .. and leader hw`, the first line of a response; later lines of its thread add to the step."""
    replica = broker.replica(parsed.tp)
    replica.leo = parsed.number("leo_before")
    fields = reported(error=0, res_hw=parsed.number("res_hw"), leo_before=replica.leo, hw_before=replica.hw)
    # An empty response prints no line of the log: its records are known to be none.
    if parsed.number("size") == 0:
        fields |= {"rec_base": replica.leo, "rec_end": replica.leo, "leo": replica.leo, "epochs": []}
    _begin_response(broker, parsed, "HandleFetchResponse", fields)


def _appended(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Appended message set`: add the records to the response that the fetcher thread handles.

    In other threads the same line is of a leader's append.
    """
    step = broker.opened(parsed, "HandleFetchResponse")
    if step is None and not parsed.line.thread.startswith(FETCHER_THREAD):
        leader.append(broker, parsed)
        return
    replica = broker.replica(parsed.tp)
    base, end = parsed.number("rec_base"), parsed.number("rec_end")
    if step is None:
        # The line `Follower has replica log end offset` is missing; the thread is called ReplicaFetcherThread-<id>-<leader>.
        peer = int(parsed.line.thread.rpartition("-")[2])
        step = broker.begin(
            parsed, "HandleFetchResponse", reported(peer=peer, error=0, leo_before=base, hw_before=replica.hw)
        )
    replica.leo = end
    broker.add(step, leo=end, **record_fields(replica, base, end))


def _append_failed(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Note an append that failed and may have written its records all the same: the next load of the log shows it."""
    step = broker.opened(parsed, "HandleFetchResponse")
    broker.unfinished[parsed.tp] = broker.unlogged_append(parsed) if step is None else step


def _after_append(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Follower has replica log end offset .. after appending`: add the log end to the response's step."""
    step = broker.opened(parsed, "HandleFetchResponse")
    if step is not None:
        broker.replica(parsed.tp).leo = parsed.number("leo")
        broker.add(step, leo=parsed.number("leo"))


def _high_watermark(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Note the high watermark of a follower; keep a leader's (`broker.setting`) for the line of Partition behind it."""
    step = broker.opened(parsed, "HandleFetchResponse", *TRUNCATES)
    if step is None:
        key = parsed.line.thread, parsed.tp
        # The log prints other lines while it raises, and this one last (UnifiedLog#updateHighWatermarkMetadata).
        begins = broker.log_began.pop(parsed.line.thread, broker.begins)
        broker.setting[key] = HighWatermarkSet(parsed.number("hw"), begins, broker.now + broker.tick, broker.index)
    else:
        broker.replica(parsed.tp).hw = parsed.number("hw")
        broker.add(step, hw=parsed.number("hw"))


def _high_watermark_lowered(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take the line of a log that a truncation makes lower its high watermark: add both values to the step."""
    step = broker.opened(parsed, "HandleFetchResponse", *TRUNCATES)
    if step is not None:
        broker.replica(parsed.tp).hw = parsed.number("hw")
        broker.add(step, hw_before=parsed.number("hw_before"), hw=parsed.number("hw"))


def _follower_high_watermark(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Follower received high watermark`, the last line of a response: add the high watermark, and close the step."""
    replica = broker.replica(parsed.tp)
    step = broker.opened(parsed, "HandleFetchResponse")
    if step is None:
        return
    # "did not update replica high watermark": it stays as it was.
    if "hw" in parsed.values:
        replica.hw = parsed.number("hw")
    broker.add(step, hw=replica.hw)
    broker.close(parsed)


def _truncating(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Begin HandleDivergingResponse: the line has the truncation target, and the response that led to it."""
    replica = broker.replica(parsed.tp)
    _begin_response(
        broker,
        parsed,
        "HandleDivergingResponse",
        reported(
            error=parsed.number("error"),
            div_epoch=parsed.number("div_epoch"),
            div_end=parsed.number("div_end"),
            target=parsed.number("target"),
            completed=parsed.text("completed") == "true",
            leo_before=replica.leo,
            hw_before=replica.hw,
            # As before, unless a line of the log lowers it.
            hw=replica.hw,
        ),
    )


def _truncating_to_high_watermark(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Truncating partition .. due to local high watermark`: what a follower does without leader epochs."""
    replica = broker.replica(parsed.tp)
    replica.hw = parsed.number("hw_before")
    fields = reported(target=parsed.number("target"), leo_before=replica.leo, hw_before=replica.hw, hw=replica.hw)
    broker.begin(parsed, "TruncateToHighWatermark", fields)


def _out_of_range(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Begin HandleOutOfRange: a reset prints one of three lines, with different offsets.

    Then perhaps come those of a truncation, and last `reset-done`.
    """
    replica = broker.replica(parsed.tp)
    values = {
        name: parsed.number(name) for name in ("req_offset", "leader_start", "leader_end", "target") if name in parsed.values
    }
    _begin_response(
        broker,
        parsed,
        "HandleOutOfRange",
        # Log end and high watermark are as before, unless a truncation line follows.
        values | reported(leo_before=replica.leo, leo=replica.leo, hw_before=replica.hw, hw=replica.hw),
    )


def _reset_done(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take the last line of an out-of-range reset: the offset from which the follower fetches on is its target."""
    step = broker.opened(parsed, "HandleOutOfRange")
    if step is not None:
        broker.add(step, target=parsed.number("target"))
        broker.close(parsed)


def _truncate(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Truncating to offset`, which the log prints: it adds the log end to the step that truncates."""
    replica = broker.replica(parsed.tp)
    replica.leo = parsed.number("leo")
    # UnifiedLog#truncateTo truncates the epoch cache, too; a cache from which nothing is removed prints no line.
    replica.truncate_epochs_at_end(replica.leo)
    step = broker.opened(parsed, *TRUNCATES)
    if step is not None:
        broker.add(step, leo=replica.leo)


def _truncate_nothing(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Truncating to .. has no effect`: the log already ends at or before the target."""
    replica = broker.replica(parsed.tp)
    # The line names the last offset, not the end.
    replica.leo = parsed.number("last") + 1
    step = broker.opened(parsed, *TRUNCATES)
    if step is not None:
        broker.add(step, leo=replica.leo)


def _truncate_all(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take the line of a log that is truncated fully; it begins anew at a new offset, which is its start and end.

    UnifiedLog#truncateFullyAndStartAt also empties the epoch cache, without a line.
    """
    replica = broker.replica(parsed.tp)
    replica.leo, replica.epochs = parsed.number("leo"), []
    replica.log_start = parsed.number("log_start") if "log_start" in parsed.values else replica.leo
    step = broker.opened(parsed, *TRUNCATES)
    if step is not None:
        broker.add(step, leo=replica.leo, log_start=replica.log_start)


def _log_start(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Incremented log start offset`: part of a fetch response, or a step of its own (deleted records)."""
    replica = broker.replica(parsed.tp)
    replica.log_start = parsed.number("log_start")
    step = broker.opened(parsed, "HandleFetchResponse")
    if step is not None:
        broker.add(step, log_start=replica.log_start)
        return
    # UnifiedLog#updateLogStartOffset raises a high watermark below the new log start.
    if replica.hw is not None:
        replica.hw = high_watermark_after_log_start(replica.hw, replica.log_start)
    broker.step(parsed, "LogStartMoved", reported(log_start=replica.log_start, hw=replica.hw))


def _epoch_entry(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Appended new epoch entry`: add it to the epoch cache, and to the step that it is part of, or as its own."""
    epoch, start = parsed.number("epoch"), parsed.number("start")
    broker.replica(parsed.tp).add_epoch(epoch, start)
    step = broker.opened(parsed, "BecomeLeader", "HandleFetchResponse")
    # The records of a response have the epochs of the entries that were added before, so these need no event of their own,
    # unless the cache is unknown. The entry of a new leader is part of BecomeLeader.
    if step is None or (step.name == "HandleFetchResponse" and broker.replica(parsed.tp).epochs is None):
        broker.step(parsed, "EpochCacheEntry", {"leader_epoch": epoch, "epoch_start": start})
    elif step.name == "BecomeLeader":
        broker.add(step, epoch_start=start)


def _epochs_truncated_at_end(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Truncate the epoch cache as LeaderEpochFileCache#truncateFromEnd prints it; that is no event."""
    broker.replica(parsed.tp).truncate_epochs_at_end(parsed.number("end"))


def _epochs_truncated_at_start(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Truncate the epoch cache as LeaderEpochFileCache#truncateFromStart prints it; that is no event."""
    broker.replica(parsed.tp).truncate_epochs_at_start(parsed.number("start"))


def _fetch_error(code: int) -> Callable[[LoggedBroker, ParsedLine], None]:
    """Return the handler (broker, line) for the line that a fetcher prints of a partition with error `code`."""

    def handle(broker: LoggedBroker, parsed: ParsedLine) -> None:
        """Add HandleFetchError: the line is all that the fetcher prints of the response."""
        _begin_response(broker, parsed, "HandleFetchError", {"error": code})
        broker.close(parsed)

    return handle


HANDLERS: Mapping[str, Callable[[LoggedBroker, ParsedLine], None]] = {
    "sending": _sending,
    "fetch-lost": _fetch_lost,
    "received": _received,
    "appended": _appended,
    "append-failed": _append_failed,
    "after-append": _after_append,
    "high-watermark": _high_watermark,
    "high-watermark-lowered": _high_watermark_lowered,
    "follower-high-watermark": _follower_high_watermark,
    "truncating": _truncating,
    "truncating-to-high-watermark": _truncating_to_high_watermark,
    "reset-to-leader-start": _out_of_range,
    "reset-to-leader-end": _out_of_range,
    "reset-to-log-end": _out_of_range,
    "reset-done": _reset_done,
    "cut": _truncate,
    "cut-nothing": _truncate_nothing,
    "cut-all": _truncate_all,
    "log-start": _log_start,
    "epoch-entry": _epoch_entry,
    "epochs-cut-at-end": _epochs_truncated_at_end,
    "epochs-cut-at-start": _epochs_truncated_at_start,
    "fetch-error-6": _fetch_error(6),
    "fetch-error-74": _fetch_error(74),
    "fetch-error-75": _fetch_error(75),
    "fetch-error-100": _fetch_error(100),
}
