"""A step of a driven broker as the events that the broker would log: what a run has exercised is counted as that of a trace.

The values are the reference's. A run counts the steps up to the first that differs: until then the broker did the same.
A function of a kind of step gets the reference broker before the step, the step's arguments by name, and what the reference
made of the step; it yields events as pairs of a name and fields. Events and fields are those of traces (traces/schema.py).
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
    """The events of a step. The first `logged` of them are of the step itself, the others of what followed from it.

    `logged` is 0 where a broker would log nothing of the step itself.
    """

    events: tuple[Event, ...]
    logged: int


def events_of_step(before: ReferenceBroker, step: Step, outcome: StepTaken) -> StepEvents:
    """Return the events of a step: those of the step itself, then those of what it led to in the broker."""
    own_events = tuple(_ACTIONS.get(step[0], _nothing)(before, arguments_of(step), outcome))
    events = (*own_events, *_consequences(before, outcome))
    return StepEvents(tuple(Event(BROKER, name, fields) for name, fields in events), len(own_events))


NamedFields = Iterator[tuple[str, dict[str, Any]]]
"""Events of the broker under test: the name and the fields of each."""

Arguments = dict[str, Any]
"""The arguments of a step by name."""


def _nothing(_before: ReferenceBroker, _arguments: Arguments, _outcome: StepTaken) -> NamedFields:
    """Yield nothing: no source of traces logs such a step."""
    yield from ()


def _log(before: ReferenceBroker, outcome: StepTaken) -> dict[str, int]:
    """Return the fields of the broker's log: log end and high watermark before and after the step, and the log start."""
    old, new = before.broker.partition.log, outcome.state.broker.partition.log
    return {"leo_before": old.end, "hw_before": old.hw, "leo": new.end, "hw": new.hw, "log_start": new.start}


def _records(base: int, batches: tuple[Any, ...]) -> dict[str, int]:
    """Return the fields of the records of a response: their first offset `base`, their end, the epoch of the last batch.

    `batches`: (base offset, last offset, epoch) of each, from `base` on. Without any the end is `base`, without an epoch.
    """
    if not batches:
        return {"rec_base": base, "rec_end": base}
    _, last_offset, epoch = batches[-1]
    return {"rec_base": base, "rec_end": last_offset + 1, "rec_epoch": epoch}


def _metadata(before: ReferenceBroker, arguments: Arguments, outcome: StepTaken) -> NamedFields:
    """Yield the events of new metadata: the broker leads, or follows and may truncate at once."""
    log, epoch = _log(before, outcome), arguments["leader_epoch"]
    if arguments["leader"] == BROKER:
        # Within an epoch the leader only reads a new ISR: its epoch began earlier.
        epoch_start = {"epoch_start": log["leo"]} if epoch != before.broker.partition.leader_epoch else {}
        yield "BecomeLeader", {"leader_epoch": epoch, "isr": arguments["isr"], **epoch_start, **log}
        return
    # The log end of this event is that before a truncation, which is an event of its own.
    leader = None if arguments["leader"] == rules.UNDEFINED else arguments["leader"]
    yield "BecomeFollower", {"leader": leader, "leader_epoch": epoch, **log, "leo": log["leo_before"]}
    # Older followers truncate when they are made followers, others in the fetcher thread: by no response in both cases.
    if log["leo"] < log["leo_before"]:
        yield "TruncateToHighWatermark", {"target": log["leo"], **log}


def _append(before: ReferenceBroker, arguments: Arguments, outcome: StepTaken) -> NamedFields:
    """Yield the append and, unless it waits for the ISR (acks -1), its acknowledgement; only the latter for a refusal."""
    error = (outcome.result or {}).get("error", rules.NONE)
    if error != rules.NONE:
        yield "ProduceAck", {"acks": arguments["acks"], "error": error}
        return
    log, epoch = _log(before, outcome), before.broker.partition.leader_epoch
    # One batch, up to the log end; of a batch `_records` uses the last offset and the epoch alone.
    yield "LeaderAppend", {"leader_epoch": epoch, **_records(log["leo_before"], ((0, log["leo"] - 1, epoch),)), **log}
    if arguments["acks"] != -1:
        yield "ProduceAck", {"acks": arguments["acks"], "rec_end": log["leo"], "rec_epoch": epoch, "error": error}


def _fetch(before: ReferenceBroker, arguments: Arguments, outcome: StepTaken) -> NamedFields:
    """Yield the event of a peer's fetch, with the fields of its response if there is one already."""
    offset = arguments["fetch_offset"]
    request = {"peer": arguments["peer"], "req_epoch": arguments["current_leader_epoch"], "req_offset": offset}
    request |= {"req_last_epoch": arguments["last_fetched_epoch"], **_log(before, outcome)}
    # Without one the fetch waits, and is recorded all the same; or it is in a session, and its response leaves the partition
    # out.
    yield "HandleFetch", request if outcome.result is None else {**request, **_response_fields(outcome.result, offset)}


def _response_fields(result: Report, offset: int) -> dict[str, Any]:
    """Return the fields of a response to a peer's fetch. `result`: the response as reported; `offset`: the fetch offset."""
    if result["error"] != rules.NONE:
        return {"error": result["error"]}
    if result["diverging"] is not None:
        return {"error": rules.NONE, "div_epoch": result["diverging"][0], "div_end": result["diverging"][1]}
    return {"error": rules.NONE, "res_hw": result["hw"], **_records(offset, tuple(result["records"]))}


def _epoch_request(_before: ReferenceBroker, arguments: Arguments, outcome: StepTaken) -> NamedFields:
    """Yield the event of a peer's OffsetsForLeaderEpoch request; only a response without an error has an end offset."""
    result = outcome.result or {}
    error = result.get("error")
    ends = {"div_epoch": result["leader_epoch"], "div_end": result["end_offset"]} if error == rules.NONE else {}
    request = {"req_epoch": arguments["current_leader_epoch"], "req_last_epoch": arguments["leader_epoch"]}
    yield "HandleEpochRequest", {**request, "error": error, **ends}


def _fetch_response(before: ReferenceBroker, arguments: Arguments, outcome: StepTaken) -> NamedFields:
    """Yield the event of a fetch response that the follower accepts: out of range, another error, diverging, or records.

    `entry` is the partition's entry in the fetcher thread (PartitionFetchState).
    """
    peer, request, entry = arguments["peer"], before.request(arguments["peer"]), before.broker.entry
    ready = entry is not None and not entry.truncating and before.broker.source == peer
    # A response that the fetcher's entry does not accept is dropped, and nobody logs it.
    if not isinstance(request, FetchRequest) or entry is None:
        return
    epoch, offset, checked = request.current_leader_epoch, request.fetch_offset, before.setup.profile.response_epoch_checked
    if not rules.accepts_fetch_response(entry.fetch_offset, entry.current_leader_epoch, ready, offset, epoch, checked):
        return
    fields = {"peer": peer, "req_epoch": epoch, "req_offset": offset, **_log(before, outcome)}
    if arguments["offsets"] is not None:
        start, end = arguments["offsets"]
        yield "HandleOutOfRange", {**fields, "leader_start": start, "leader_end": end, "target": _next_fetch_offset(outcome)}
    elif arguments["error"] != rules.NONE:
        yield "HandleFetchError", {**fields, "error": arguments["error"]}
    elif arguments["diverging"] is not None:
        div_epoch, end = arguments["diverging"]
        # Where the follower has truncated is its log end after the step.
        target, completed = fields["leo"], _is_truncation_completed(outcome)
        truncation = {"div_epoch": div_epoch, "div_end": end, "target": target, "completed": completed}
        yield "HandleDivergingResponse", {**fields, **truncation}
    else:
        response = {"error": rules.NONE, "res_hw": arguments["hw"], "res_log_start": arguments["log_start"]}
        yield "HandleFetchResponse", {**fields, **response, **_records(offset, arguments["records"])}


def _epoch_response(before: ReferenceBroker, arguments: Arguments, outcome: StepTaken) -> NamedFields:
    """Yield the event of an OffsetsForLeaderEpoch response that the follower accepts: an error, or a truncation.

    `entry` is the partition's entry in the fetcher thread (PartitionFetchState).
    """
    request, entry = before.request(arguments["peer"]), before.broker.entry
    waits = entry is not None and entry.truncating and before.broker.source == arguments["peer"]
    # `getattr`: to the type checker the request in flight may be a fetch, or none.
    epoch, checked = getattr(request, "current_leader_epoch", rules.UNDEFINED), before.setup.profile.epoch_responses_checked
    # A response that the fetcher's entry does not accept is dropped, and nobody logs it.
    if entry is None or not rules.accepts_epoch_response(entry.current_leader_epoch, waits, epoch, checked):
        return
    if arguments["error"] != rules.NONE:
        yield "HandleFetchError", {"error": arguments["error"]}
        return
    fields: dict[str, Any] = {"req_epoch": epoch, "req_last_epoch": getattr(request, "leader_epoch", rules.UNDEFINED)}
    fields |= {"div_epoch": arguments["leader_epoch"], "div_end": arguments["end_offset"], "error": rules.NONE}
    log = _log(before, outcome)
    # Where the follower has truncated is its log end after the step.
    fields |= {"target": log["leo"], "completed": _is_truncation_completed(outcome)}
    yield "HandleEpochResponse", {**fields, **log}


def _next_fetch_offset(outcome: StepTaken) -> int:
    """Return the offset from which the follower fetches next: its log end, if no fetcher has the partition."""
    entry = outcome.state.broker.entry
    return outcome.state.broker.partition.log.end if entry is None else entry.fetch_offset


def _is_truncation_completed(outcome: StepTaken) -> int:
    """Return 1 if the follower need not ask its leader once more where their logs part, else 0."""
    entry = outcome.state.broker.entry
    return int(entry is None or not entry.truncating)


def _alter_partition_response(before: ReferenceBroker, arguments: Arguments, outcome: StepTaken) -> NamedFields:
    """Yield the event of the controller's response to a proposal."""
    yield "HandleAlterPartitionResponse", {"isr": arguments["isr"], "error": arguments["error"], **_log(before, outcome)}


def _log_start(before: ReferenceBroker, _arguments: Arguments, outcome: StepTaken) -> NamedFields:
    """Yield an event if the log start has moved. A deletion that changes nothing is not logged."""
    log = _log(before, outcome)
    if log["log_start"] != before.broker.partition.log.start:
        yield "LogStartMoved", log


def _restart(end_event: str, *, clean: int) -> Any:
    """Return the function of a step that ends the process: `end_event` says how. `clean`: 1 if it ended in order, else 0."""

    def restart_events(before: ReferenceBroker, _arguments: Arguments, outcome: StepTaken) -> NamedFields:
        """Yield the end of the process, and its start, which belongs to the same step."""
        yield end_event, {}
        yield "Start", {"clean": clean, **_log(before, outcome)}

    return restart_events


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
    "stop": _restart("Stop", clean=1),
    "crash": _restart("Crash", clean=0),
}
"""By the name of a step, the function that yields its events; a step without one is not logged."""


def _consequences(before: ReferenceBroker, outcome: StepTaken) -> NamedFields:
    """Yield the events of what a step of any kind may lead to: a proposal, responses to what waited, the next request."""
    after = outcome.state
    if after.proposal is not None and after.proposal != before.proposal:
        isr = tuple(after.proposal.isr)
        grows = len(isr) > len(before.broker.partition.state.isr)
        yield ("ExpandIsr" if grows else "ShrinkIsr"), {"isr": isr, **_log(before, outcome)}
    for _, error in outcome.produced:
        yield "ProduceAck", {"acks": -1, "error": error}
    for peer, response in outcome.fetched.items():
        if response is not None:
            # Which offset was fetched is not known here. A situation compares only the end of the records with their base.
            yield "AnswerFetch", {"peer": peer, "error": response.error, **_records(0, _triples(response.records))}
    for peer, request in after.requests:
        # It was in flight before the step already.
        if before.request(peer) == request:
            continue
        epoch = request.current_leader_epoch
        if isinstance(request, FetchRequest):
            yield "SendFetch", {"peer": peer, "req_epoch": epoch, "req_last_epoch": request.last_fetched_epoch}
        else:
            yield "SendEpochRequest", {"peer": peer, "req_epoch": epoch, "req_last_epoch": request.leader_epoch}


def _triples(batches: tuple[Batch, ...]) -> tuple[tuple[int, int, int], ...]:
    """Return base offset, last offset and leader epoch of each batch."""
    return tuple((batch.base, batch.last, batch.epoch) for batch in batches)
