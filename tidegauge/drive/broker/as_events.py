"""A step of a driven broker as the events that the broker would log: what a run has exercised is counted as that of a trace.

The values are the reference's. A run counts the steps up to the first that differs: until then the broker did the same.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tidegauge.drive.broker.contract import BROKER
from tidegauge.drive.broker.reference import StepTaken
from tidegauge.drive.broker.state import ReferenceBroker
from tidegauge.drive.broker.steps import arguments_of
from tidegauge.drive.contract import Report, Step
from tidegauge.impl import rules
from tidegauge.impl.messages import Batch, FetchRequest
from tidegauge.traces.schema import Event


class StepEvents(NamedTuple):
    """The events of a step; `logged` of them are of its action, none where a broker would log nothing of that."""

    events: tuple[Event, ...]
    logged: int


def events_of_step(before: ReferenceBroker, step: Step, outcome: StepTaken) -> StepEvents:
    """Return the events of a step: of its action, then what it leads to."""
    acted = tuple(_ACTIONS.get(step[0], _nothing)(before, arguments_of(step), outcome))
    happened = (*acted, *_consequences(before, outcome))
    return StepEvents(tuple(Event(BROKER, event, fields) for event, fields in happened), len(acted))


Happened = Iterator[tuple[str, dict[str, Any]]]
Arguments = dict[str, Any]


def _nothing(_before: ReferenceBroker, _arguments: Arguments, _outcome: StepTaken) -> Happened:
    """Yield nothing: no source of traces logs it."""
    yield from ()


def _log(before: ReferenceBroker, outcome: StepTaken) -> dict[str, int]:
    """Return the fields of the broker's log: log end and high watermark before and after the step, and the log start."""
    was, now = before.broker.partition.log, outcome.state.broker.partition.log
    return {"leo_before": was.end, "hw_before": was.hw, "leo": now.end, "hw": now.hw, "log_start": now.start}


def _records(base: int, batches: tuple[Any, ...]) -> dict[str, int]:
    """Return the fields of the records of a response: batches of [base offset, last offset, epoch]."""
    fields = {"rec_base": base, "rec_end": batches[-1][1] + 1 if batches else base}
    return {**fields, "rec_epoch": batches[-1][2]} if batches else fields


def _metadata(before: ReferenceBroker, arguments: Arguments, outcome: StepTaken) -> Happened:
    """Yield the events of new metadata: the broker leads, or follows and may truncate at once."""
    log, epoch = _log(before, outcome), arguments["leader_epoch"]
    if arguments["leader"] == BROKER:
        # Within an epoch the leader only reads a new ISR.
        begins = {"epoch_start": log["leo"]} if epoch != before.broker.partition.leader_epoch else {}
        yield "BecomeLeader", {"leader_epoch": epoch, "isr": arguments["isr"], **begins, **log}
        return
    leader = None if arguments["leader"] == rules.UNDEFINED else arguments["leader"]
    yield "BecomeFollower", {"leader": leader, "leader_epoch": epoch, **log, "leo": log["leo_before"]}
    # Older followers truncate when they are made followers, others in the fetcher thread: by no response in both cases.
    if log["leo"] < log["leo_before"]:
        yield "TruncateToHighWatermark", {"target": log["leo"], **log}


def _append(before: ReferenceBroker, arguments: Arguments, outcome: StepTaken) -> Happened:
    """Yield the append and, unless it waits for its followers, the acknowledgement; a refusal only has the latter."""
    error = (outcome.result or {}).get("error", rules.NONE)
    if error != rules.NONE:
        yield "ProduceAck", {"acks": arguments["acks"], "error": error}
        return
    log, epoch = _log(before, outcome), before.broker.partition.leader_epoch
    yield "LeaderAppend", {"leader_epoch": epoch, **_records(log["leo_before"], ((0, log["leo"] - 1, epoch),)), **log}
    if arguments["acks"] != -1:
        yield "ProduceAck", {"acks": arguments["acks"], "rec_end": log["leo"], "rec_epoch": epoch, "error": error}


def _fetch(before: ReferenceBroker, arguments: Arguments, outcome: StepTaken) -> Happened:
    """Yield the event of a peer's fetch, with its response if there is one yet."""
    offset = arguments["fetch_offset"]
    request = {"peer": arguments["peer"], "req_epoch": arguments["current_leader_epoch"], "req_offset": offset}
    request |= {"req_last_epoch": arguments["last_fetched_epoch"], **_log(before, outcome)}
    # One that waits is recorded and answered later; a response in a session need not name the partition.
    yield "HandleFetch", request if outcome.result is None else {**request, **_response_fields(outcome.result, offset)}


def _response_fields(result: Report, offset: int) -> dict[str, Any]:
    """Return the fields of a response to a peer's fetch."""
    if result["error"] != rules.NONE:
        return {"error": result["error"]}
    if result["diverging"] is not None:
        return {"error": rules.NONE, "div_epoch": result["diverging"][0], "div_end": result["diverging"][1]}
    return {"error": rules.NONE, "res_hw": result["hw"], **_records(offset, tuple(result["records"]))}


def _epoch_request(_before: ReferenceBroker, arguments: Arguments, outcome: StepTaken) -> Happened:
    """Yield the event of a peer's OffsetsForLeaderEpoch request; only an answer without an error has an end offset."""
    result = outcome.result or {}
    ends = {"div_epoch": result["leader_epoch"], "div_end": result["end_offset"]} if result.get("error") == 0 else {}
    request = {"req_epoch": arguments["current_leader_epoch"], "req_last_epoch": arguments["leader_epoch"]}
    yield "HandleEpochRequest", {**request, "error": result.get("error"), **ends}


def _fetch_response(before: ReferenceBroker, arguments: Arguments, outcome: StepTaken) -> Happened:
    """Yield the event of a fetch response that the follower takes: reset, error, truncation or records."""
    peer, request, entry = arguments["peer"], before.request(arguments["peer"]), before.broker.entry
    ready = entry is not None and not entry.truncating and before.broker.source == peer
    # A response that the fetcher's entry does not take is dropped, and nobody logs it.
    if not isinstance(request, FetchRequest) or entry is None:
        return
    epoch, offset, checked = request.current_leader_epoch, request.fetch_offset, before.setup.profile.response_epoch_checked
    if not rules.accepts_fetch_response(entry.fetch_offset, entry.current_leader_epoch, ready, offset, epoch, checked):
        return
    fields = {"peer": peer, "req_epoch": epoch, "req_offset": offset, **_log(before, outcome)}
    if arguments["offsets"] is not None:
        start, end = arguments["offsets"]
        yield "HandleOutOfRange", {**fields, "leader_start": start, "leader_end": end, "target": _next(outcome)}
    elif arguments["error"] != rules.NONE:
        yield "HandleFetchError", {**fields, "error": arguments["error"]}
    elif arguments["diverging"] is not None:
        div_epoch, end = arguments["diverging"]
        truncated = {"div_epoch": div_epoch, "div_end": end, "target": fields["leo"], "completed": _fetches(outcome)}
        yield "HandleDivergingResponse", {**fields, **truncated}
    else:
        answered = {"error": rules.NONE, "res_hw": arguments["hw"], "res_log_start": arguments["log_start"]}
        yield "HandleFetchResponse", {**fields, **answered, **_records(offset, arguments["records"])}


def _epoch_response(before: ReferenceBroker, arguments: Arguments, outcome: StepTaken) -> Happened:
    """Yield the event of an OffsetsForLeaderEpoch response that the follower takes: an error, or a truncation."""
    request, entry = before.request(arguments["peer"]), before.broker.entry
    waits = entry is not None and entry.truncating and before.broker.source == arguments["peer"]
    epoch, checked = getattr(request, "current_leader_epoch", rules.UNDEFINED), before.setup.profile.epoch_responses_checked
    # A response that the fetcher's entry does not take is dropped, and nobody logs it.
    if entry is None or not rules.accepts_epoch_response(entry.current_leader_epoch, waits, epoch, checked):
        return
    if arguments["error"] != rules.NONE:
        yield "HandleFetchError", {"error": arguments["error"]}
        return
    request_fields = {"req_epoch": epoch, "req_last_epoch": getattr(request, "leader_epoch", rules.UNDEFINED)}
    answered = {"div_epoch": arguments["leader_epoch"], "div_end": arguments["end_offset"], "error": rules.NONE}
    log = _log(before, outcome)
    yield "HandleEpochResponse", {**request_fields, **answered, "target": log["leo"], "completed": _fetches(outcome), **log}


def _next(outcome: StepTaken) -> int:
    """Return the offset that the follower fetches next."""
    entry = outcome.state.broker.entry
    return outcome.state.broker.partition.log.end if entry is None else entry.fetch_offset


def _fetches(outcome: StepTaken) -> int:
    """Return 1 if the follower need not ask again where the logs part."""
    entry = outcome.state.broker.entry
    return int(entry is None or not entry.truncating)


def _alter_partition_response(before: ReferenceBroker, arguments: Arguments, outcome: StepTaken) -> Happened:
    yield "HandleAlterPartitionResponse", {"isr": arguments["isr"], "error": arguments["error"], **_log(before, outcome)}


def _log_start(before: ReferenceBroker, _arguments: Arguments, outcome: StepTaken) -> Happened:
    log = _log(before, outcome)
    if log["log_start"] != before.broker.partition.log.start:
        yield "LogStartMoved", log


def _ended(event: str, *, clean: int) -> Any:
    def ended(before: ReferenceBroker, _arguments: Arguments, outcome: StepTaken) -> Happened:
        yield event, {}
        yield "Start", {"clean": clean, **_log(before, outcome)}

    return ended


_ACTIONS = {
    "metadata": _metadata,
    "append": _append,
    "fetch": _fetch,
    "fetch_and_wait": _fetch,
    "fetch_in_session": _fetch,
    "fetch_in_session_and_wait": _fetch,
    "offsets_for_leader_epoch": _epoch_request,
    "fetch_response": _fetch_response,
    "offsets_for_leader_epoch_response": _epoch_response,
    "alter_partition_response": _alter_partition_response,
    "delete_records": _log_start,
    "retention": _log_start,
    "stop": _ended("Stop", clean=1),
    "crash": _ended("Crash", clean=0),
}


def _consequences(before: ReferenceBroker, outcome: StepTaken) -> Happened:
    """Yield what a step of any kind may lead to: a proposal, responses to what waited, the next request."""
    after = outcome.state
    if after.proposal is not None and after.proposal != before.proposal:
        members = tuple(after.proposal.isr)
        grows = len(members) > len(before.broker.partition.state.isr)
        yield ("ExpandIsr" if grows else "ShrinkIsr"), {"isr": members, **_log(before, outcome)}
    for _, error in outcome.produced:
        yield "ProduceAck", {"acks": -1, "error": error}
    for peer, response in outcome.fetched.items():
        if response is not None:
            yield "AnswerFetch", {"peer": peer, "error": response.error, **_records(0, _triples(response.records))}
    for peer, request in after.requests:
        if before.request(peer) == request:
            continue
        epoch = request.current_leader_epoch
        if isinstance(request, FetchRequest):
            yield "SendFetch", {"peer": peer, "req_epoch": epoch, "req_last_epoch": request.last_fetched_epoch}
        else:
            yield "SendEpochRequest", {"peer": peer, "req_epoch": epoch, "req_last_epoch": request.leader_epoch}


def _triples(batches: tuple[Batch, ...]) -> tuple[tuple[int, int, int], ...]:
    return tuple((batch.base, batch.last, batch.epoch) for batch in batches)
