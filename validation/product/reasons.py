"""Why the judge accepts events that a model does not allow next. How often it does is in false_accepts.toml.

Rule of this file: a reason is true of the protocol or of traces, not of a model alone; BOUNDED marks the exceptions.
"""

from collections.abc import Mapping

AGAIN = "metadata may reach a node, or a log, late or again: it must only be newer than what the node has"
RAISED = "before 3.6 a controller raises the leader epoch when the ISR shrinks (MetadataVersion)"
WAITS = "the trace does not show what the controller waited for, nor how far bounds let it go"
LIVES = "only the controller knows which brokers are live"
SENT_AGAIN = "a request may be lost on its way, and sent again"
ASKS = "the trace does not show whether a follower still has to ask for the end of its last epoch"
OUTLIVES = "a request may outlive its sender or be overtaken: it is open which request was handled, and how"
LOADS = "an unclean restart may lose any part of the tail, and finds a checkpoint that the broker had"
BOUNDED = "only the bounds of the model forbid it"
HOW_FAR = "the trace has only the end of the records that are acknowledged or shown"
STAYED = "a log start that the model leaves out, as it is 0 or did not move, may be reported; any other is rejected"
BOUNDS = "a follower learns its leader's log start and end from ListOffsets, which no event reports"
TRUNCATES_AGAIN = "a restarted fetcher truncates again (KIP-226 resizes them); at the log end it truncates nothing"
REFUSES = "a broker may refuse a request for a reason outside the protocol"
FEWER = "a response holds as many records as the sizes of a fetch allow"
EMPTY = "a response that diverges may be observed first as one without records that changes nothing"
RECORDED = "a replica that the leader recorded as caught up may be proposed later than at its fetch: when the ISR changes"
SHOWN = "records below its high watermark are committed, and a broker that has just started may show them"
ASKED_AGAIN = "a leader may answer an idempotent producer's retry with the offset of a record that another leader appended"
DELETED = "nothing identifies a deleted record any more"
FORGETS = "a leader that is elected again may have kept its recorded log ends (F2) or not: it is open who is behind"

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
