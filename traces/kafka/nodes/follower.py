"""Lines of a fetcher thread, and of the log it writes: SendFetch and everything a response does.

Rules of this file

1. A fetcher thread has one request out at a time, so what it does with a response belongs to its last `Sending` line, and
   the next line of that kind comes after the response, unless the request was lost.
2. A request of an incremental session carries only what changed. The step SendFetch comes for every partition of the
   session, because the leader reads and counts them all.
3. The lines of one response are: received, [epoch entries], [appended], after-append, [high watermark], [log start],
   follower-high-watermark. 3.4.0 prints them for a diverging response too, before it truncates (KAFKA-14704).
4. A truncation line is printed before the truncation, and also when nothing is truncated; what the log did follows in the
   same thread.
"""

from collections.abc import Callable, Mapping

from tidegauge.impl.rules import high_watermark_after_log_start
from tidegauge.traces.kafka.lines.phrases import fetch_line
from tidegauge.traces.kafka.lines.said import Said
from tidegauge.traces.kafka.nodes import leader
from tidegauge.traces.kafka.nodes.steps import (
    FETCHER_THREAD,
    TRUNCATES,
    Fields,
    LoggedBroker,
    LoggedFetcher,
    LoggedStep,
    Send,
    or_null,
    record_fields,
    reported,
)


def _sending(broker: LoggedBroker, said: Said) -> None:
    request = fetch_line(said.text("request"))
    for topic, topic_id in request.topic_ids.items():
        broker.topic_ids[topic_id] = topic
    fetcher = broker.fetchers.setdefault(_fetcher(said), LoggedFetcher())
    # behind a request that no line tells of, the session asks for what nobody knows
    requests = said.line.requests
    goes_on = fetcher.send is not None and request.session_epoch == fetcher.send.session_epoch + requests > 0
    asked = fetcher.asked if goes_on and request.session_epoch > 0 else {}
    fetcher.asked = {tp: one for tp, one in asked.items() if tp not in request.removed} | dict(request.asked)
    fetcher.send = Send(
        broker.node,
        said.number("peer"),
        request.session,
        request.session_epoch,
        dict(fetcher.asked),
        said.line.time,
        broker.run,
        requests=requests,
    )
    broker.sends.append(fetcher.send)
    for tp in fetcher.asked:
        broker.open.pop((said.line.thread, tp), None)
        step = broker.step(said, "SendFetch", {"peer": said.number("peer"), **_request(fetcher.send, tp)}, tp)
        step.offers.append(("sent", id(fetcher.send)))
        before = fetcher.last.get(tp)
        if before is not None and not before.lost:
            step.awaits.append(("answered", id(before)))
        fetcher.last[tp] = fetcher.send


def _fetcher(said: Said) -> tuple[str, int]:
    """A fetcher is a thread and the leader it fetches from (without thread names, the leader alone)."""
    return said.line.thread, said.number("peer")


def _request(send: Send | None, tp: str) -> Fields:
    asked = send.asked.get(tp) if send is not None else None
    if asked is None:
        return {}
    return {
        "req_epoch": or_null(asked.epoch),
        "req_offset": asked.offset,
        "req_last_epoch": or_null(asked.last_epoch),
        "req_log_start": asked.log_start,
    }


def _response(broker: LoggedBroker, said: Said, name: str, fields: Fields) -> LoggedStep:
    """A step that handles the response to the last request of this thread."""
    fetcher = broker.fetchers.get(_fetcher(said))
    send = fetcher.send if fetcher is not None else None
    step = broker.begin(said, name, {"peer": said.number("peer")} | _request(send, said.tp) | fields)
    if send is not None:
        step.awaits.append(("answered", id(send)))
    return step


def _fetch_lost(broker: LoggedBroker, said: Said) -> None:
    fetcher = broker.fetchers.get(_fetcher(said))
    if fetcher is not None and fetcher.send is not None:
        fetcher.send.lost = True


def _received(broker: LoggedBroker, said: Said) -> None:
    replica = broker.replica(said.tp)
    replica.leo = said.number("leo_before")
    fields = reported(error=0, res_hw=said.number("res_hw"), leo_before=replica.leo, hw_before=replica.hw)
    if said.number("size") == 0:
        fields |= {"rec_base": replica.leo, "rec_end": replica.leo, "leo": replica.leo, "epochs": []}
    _response(broker, said, "HandleFetchResponse", fields)


def _appended(broker: LoggedBroker, said: Said) -> None:
    step = broker.opened(said, "HandleFetchResponse")
    if step is None and not said.line.thread.startswith(FETCHER_THREAD):
        leader.append(broker, said)
        return
    replica = broker.replica(said.tp)
    base, end = said.number("rec_base"), said.number("rec_end")
    if step is None:
        peer = int(said.line.thread.rpartition("-")[2])
        step = broker.begin(said, "HandleFetchResponse", reported(peer=peer, error=0, leo_before=base, hw_before=replica.hw))
    replica.leo = end
    broker.add(step, leo=end, **record_fields(replica, base, end))


def _after_append(broker: LoggedBroker, said: Said) -> None:
    step = broker.opened(said, "HandleFetchResponse")
    if step is not None:
        broker.replica(said.tp).leo = said.number("leo")
        broker.add(step, leo=said.number("leo"))


def _high_watermark(broker: LoggedBroker, said: Said) -> None:
    """Both roles print this; at a leader the line of Partition that follows says more."""
    step = broker.opened(said, "HandleFetchResponse", *TRUNCATES)
    if step is not None:
        broker.replica(said.tp).hw = said.number("hw")
        broker.add(step, hw=said.number("hw"))


def _high_watermark_lowered(broker: LoggedBroker, said: Said) -> None:
    step = broker.opened(said, "HandleFetchResponse", *TRUNCATES)
    if step is not None:
        broker.replica(said.tp).hw = said.number("hw")
        broker.add(step, hw_before=said.number("hw_before"), hw=said.number("hw"))


def _follower_high_watermark(broker: LoggedBroker, said: Said) -> None:
    replica = broker.replica(said.tp)
    step = broker.opened(said, "HandleFetchResponse")
    if step is None:
        return
    if "hw" in said.values:
        replica.hw = said.number("hw")
    broker.add(step, hw=replica.hw)
    broker.close(said)


def _truncating(broker: LoggedBroker, said: Said) -> None:
    replica = broker.replica(said.tp)
    _response(
        broker,
        said,
        "HandleDivergingResponse",
        reported(
            error=said.number("error"),
            div_epoch=said.number("div_epoch"),
            div_end=said.number("div_end"),
            target=said.number("target"),
            completed=said.text("completed") == "true",
            leo_before=replica.leo,
            hw_before=replica.hw,
            hw=replica.hw,
        ),
    )


def _truncating_to_high_watermark(broker: LoggedBroker, said: Said) -> None:
    replica = broker.replica(said.tp)
    replica.hw = said.number("hw_before")
    fields = reported(target=said.number("target"), leo_before=replica.leo, hw_before=replica.hw, hw=replica.hw)
    broker.begin(said, "TruncateToHighWatermark", fields)


def _out_of_range(broker: LoggedBroker, said: Said) -> None:
    replica = broker.replica(said.tp)
    values = {
        name: said.number(name) for name in ("req_offset", "leader_start", "leader_end", "target") if name in said.values
    }
    _response(
        broker,
        said,
        "HandleOutOfRange",
        values | reported(leo_before=replica.leo, leo=replica.leo, hw_before=replica.hw, hw=replica.hw),
    )


def _reset_done(broker: LoggedBroker, said: Said) -> None:
    step = broker.opened(said, "HandleOutOfRange")
    if step is not None:
        broker.add(step, target=said.number("target"))
        broker.close(said)


def _truncate(broker: LoggedBroker, said: Said) -> None:
    replica = broker.replica(said.tp)
    replica.leo = said.number("leo")
    replica.truncate_epochs_at_end(replica.leo)
    step = broker.opened(said, *TRUNCATES)
    if step is not None:
        broker.add(step, leo=replica.leo)


def _truncate_nothing(broker: LoggedBroker, said: Said) -> None:
    replica = broker.replica(said.tp)
    replica.leo = said.number("last") + 1
    step = broker.opened(said, *TRUNCATES)
    if step is not None:
        broker.add(step, leo=replica.leo)


def _truncate_all(broker: LoggedBroker, said: Said) -> None:
    """UnifiedLog#truncateFullyAndStartAt also empties the epoch cache, without a line."""
    replica = broker.replica(said.tp)
    replica.leo, replica.log_start, replica.epochs = said.number("leo"), said.number("log_start"), []
    step = broker.opened(said, *TRUNCATES)
    if step is not None:
        broker.add(step, leo=replica.leo, log_start=replica.log_start)


def _log_start(broker: LoggedBroker, said: Said) -> None:
    replica = broker.replica(said.tp)
    replica.log_start = said.number("log_start")
    step = broker.opened(said, "HandleFetchResponse")
    if step is not None:
        broker.add(step, log_start=replica.log_start)
        return
    if replica.hw is not None:
        replica.hw = high_watermark_after_log_start(replica.hw, replica.log_start)
    broker.step(said, "LogStartMoved", reported(log_start=replica.log_start, hw=replica.hw))


def _epoch_entry(broker: LoggedBroker, said: Said) -> None:
    epoch, start = said.number("epoch"), said.number("start")
    broker.replica(said.tp).add_epoch(epoch, start)
    step = broker.opened(said, "BecomeLeader", "HandleFetchResponse")
    if step is None or (step.name == "HandleFetchResponse" and broker.replica(said.tp).epochs is None):
        broker.step(said, "EpochCacheEntry", {"leader_epoch": epoch, "epoch_start": start})
    elif step.name == "BecomeLeader":
        broker.add(step, epoch_start=start)


def _epochs_truncated_at_end(broker: LoggedBroker, said: Said) -> None:
    broker.replica(said.tp).truncate_epochs_at_end(said.number("end"))


def _epochs_truncated_at_start(broker: LoggedBroker, said: Said) -> None:
    broker.replica(said.tp).truncate_epochs_at_start(said.number("start"))


def _fetch_error(code: int) -> Callable[[LoggedBroker, Said], None]:
    """The handler for the lines of one error code."""

    def handle(broker: LoggedBroker, said: Said) -> None:
        _response(broker, said, "HandleFetchError", {"error": code})
        broker.close(said)

    return handle


HANDLERS: Mapping[str, Callable[[LoggedBroker, Said], None]] = {
    "sending": _sending,
    "fetch-lost": _fetch_lost,
    "received": _received,
    "appended": _appended,
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
