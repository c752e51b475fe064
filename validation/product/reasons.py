"""Why the judge accepts events that a model does not allow next. How often it does is in false_accepts.toml.

Rule of this file: a reason is true of the protocol or of traces, not of a model alone; BOUNDED marks the exceptions.
"""

from collections.abc import Mapping

AGAIN = "metadata may reach a node, or a log, again, and late: only newer than what the node has is required"
RAISED = "before 3.6 a controller raises the leader epoch when the ISR shrinks (MetadataVersion)"
WAITS = "nothing in the trace says what the controller waited for, nor how far bounds let it go"
LIVES = "who is live only the controller says"
SENT_AGAIN = "a request may be lost on its way, and is sent again"
ASKS = "whether a follower has still to ask where its last epoch ends is not in the trace"
OUTLIVES = "a request may outlive its sender or be overtaken, so which one was handled is open, and what was answered"
LOADS = "an unclean restart may lose any part of the tail, and finds a checkpoint that the broker had"
BOUNDED = "only the bounds of the model forbid it"
HOW_FAR = "of records that are acknowledged or shown, the trace says only how far they go"
STAYED = "a log start of which the model says nothing, as it is 0 or did not move, may be reported: any other is rejected"
BOUNDS = "where the leader's log starts and ends its follower hears from ListOffsets, which no event tells"
TRUNCATES_AGAIN = "a fetcher that begins anew truncates anew (KIP-226 resizes them), and at the log end truncates nothing"
REFUSES = "a broker may refuse a request for a reason that is no part of the protocol"
FEWER = "a response holds as many records as the sizes of a fetch allow"
EMPTY = "a response that diverges may be observed first as one without records that changes nothing"
RECORDED = "what the leader recorded may bring a replica up later than its fetch did: when the ISR changes"
SHOWN = "records below its high watermark are committed, and a broker that has just started may show them"
ASKED_AGAIN = "a leader may tell an idempotent producer that asks again where a record is that another has appended"
DELETED = "of a record that was deleted nothing says any more which it was"
FORGETS = "a leader elected again may have kept what it recorded before (F2) or not, so who is behind its log end is open"

REASONS: Mapping[tuple[str, str], str] = {
    ("ChangePartition", ""): WAITS,
    ("ChangePartition", "leader_epoch"): RAISED,
    ("ChangePartition", "leader"): WAITS,
    ("ChangePartition", "live"): LIVES,
    **{("BecomeLeader", field): AGAIN for field in ("", "epoch_start", "leo", "hw", "leader_epoch", "isr")},
    **{("BecomeFollower", field): AGAIN for field in ("", "leader", "leader_epoch")},
    ("SendFetch", ""): SENT_AGAIN,
    ("SendFetch", "req_last_epoch"): ASKS,
    **{("SendEpochRequest", field): ASKS for field in ("", "req_epoch", "req_last_epoch")},
    ("HandleFetch", "error"): REFUSES,
    ("HandleEpochRequest", "error"): REFUSES,
    **{("HandleFetch", field): FEWER for field in ("rec_end", "leo")},
    **{("HandleFetch", field): OUTLIVES for field in ("", "req_epoch", "req_offset", "req_last_epoch", "hw")},
    **{("HandleEpochRequest", field): OUTLIVES for field in ("", "req_epoch", "req_last_epoch")},
    **{
        ("HandleEpochResponse", field): OUTLIVES for field in ("", "req_epoch", "error", "div_epoch", "div_end", "hw_before")
    },
    **{("HandleOutOfRange", field): OUTLIVES for field in ("", "req_epoch", "leader_start")},
    ("HandleFetchResponse", "req_epoch"): OUTLIVES,
    ("HandleFetchResponse", ""): EMPTY,
    **{("HandleFetchResponse", field): OUTLIVES for field in ("rec_base", "rec_end", "rec_epoch", "res_hw", "hw_before")},
    **{("HandleDivergingResponse", field): OUTLIVES for field in ("", "div_epoch", "div_end", "hw_before")},
    **{("HandleAlterPartitionResponse", field): REFUSES for field in ("", "error", "isr")},
    **{(event, ""): BOUNDED for event in ("Crash", "Stop", "LeaderAppend", "LogStartMoved")},
    ("LogStartMoved", "log_start"): BOUNDED,
    **{("Start", field): LOADS for field in ("", "epochs")},
    **{("ProduceAck", field): HOW_FAR for field in ("", "acks", "error", "rec_base", "rec_end")},
    **{("Read", field): HOW_FAR for field in ("", "rec_base", "rec_end")},
    ("ProduceAck", "rec_epoch"): ASKED_AGAIN,
    ("ProduceAck", "to a client"): DELETED,
    ("Read", "to a client"): SHOWN,
    **{(event, "res_log_start"): STAYED for event in ("HandleFetch", "HandleFetchResponse")},
    ("HandleFetchResponse", "log_start"): STAYED,
    ("HandleOutOfRange", "leader_end"): BOUNDS,
    ("HandleOutOfRange", "hw_before"): OUTLIVES,
    ("TruncateToHighWatermark", ""): TRUNCATES_AGAIN,
    ("ShrinkIsr", ""): FORGETS,
    **{("RegisterBroker", field): WAITS for field in ("", "peer")},
    **{("ExpandIsr", field): RECORDED for field in ("", "remote_leo")},
}
"""What is let pass although no behaviour of the model shows it, by event and changed field; "" for the model's own.
`to a client`: what a model without clients is offered (false_accepts.BY_CLIENT)."""


def reasons_table() -> str:
    """Return the reasons as the table of docs/judge.md: a row for each, with its events and fields."""
    fields: dict[str, dict[str, list[str]]] = {}
    for (event, field), reason in REASONS.items():
        name = f"`{field}`" if field.isidentifier() else field or "itself"
        fields.setdefault(reason, {}).setdefault(event, []).append(name)
    rows = []
    for reason, events in fields.items():
        texts = (f"`{event}`: {', '.join(names)}" for event, names in events.items())
        rows.append(f"| {'; '.join(texts)} | {reason} |")
    return "\n".join(("| event, and the field that was changed | because |", "|---|---|", *rows))
