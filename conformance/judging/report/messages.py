"""Which event caused which: the arrows of the page.

Rules of this file

1. The cause of an event is the last one before it, at the other node, of a kind that can cause it and with the same values
   in the fields that both have: of a handled fetch the sent one, of a response the handled one, of a role the registration.
2. The arrows are a picture of the trace, not a verdict: a snapshot has what the judge knows to be in flight.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tidegauge.traces.schema import Event

_FETCH = ("req_epoch", "req_offset", "req_last_epoch")
_ROLE = ("leader_epoch", "partition_epoch")


class _Causes(NamedTuple):
    """The events that cause one, the fields that both must have alike, and whether each names the other as its peer."""

    events: tuple[str, ...]
    fields: tuple[str, ...]
    paired: bool = True


CAUSES: Mapping[str, _Causes] = MappingProxyType(
    {
        "HandleFetch": _Causes(("SendFetch",), _FETCH),
        "AnswerFetch": _Causes(("HandleFetch",), (), False),
        **{
            name: _Causes(("HandleFetch", "AnswerFetch"), _FETCH)
            for name in ("HandleFetchResponse", "HandleDivergingResponse", "HandleOutOfRange", "HandleFetchError")
        },
        "HandleEpochRequest": _Causes(("SendEpochRequest",), ("req_epoch", "req_last_epoch")),
        "HandleEpochResponse": _Causes(("HandleEpochRequest",), ("req_epoch", "req_last_epoch")),
        "AlterPartition": _Causes(("ExpandIsr", "ShrinkIsr"), ("isr",), False),
        "HandleAlterPartitionResponse": _Causes(("AlterPartition",), ("isr",), False),
        "BecomeLeader": _Causes(("ChangePartition",), _ROLE, False),
        "BecomeFollower": _Causes(("ChangePartition",), _ROLE, False),
    }
)
LOOK_BACK = 2_000
"""Events before an event among which its cause is looked for."""


def causes(events: Sequence[Event]) -> list[int | None]:
    """Return for each event the position of its cause, None if there is none."""
    return [
        next((at for at in range(here - 1, max(-1, here - LOOK_BACK), -1) if _caused(events[at], event)), None)
        if event.event in CAUSES
        else None
        for here, event in enumerate(events)
    ]


def _caused(cause: Event, event: Event) -> bool:
    kinds, fields, paired = CAUSES[event.event]
    if cause.event not in kinds or not all(_alike(cause, event, field) for field in fields):
        return False
    if paired:
        return cause.node == event.fields.get("peer") and cause.fields.get("peer") == event.node
    if event.event == "AnswerFetch":
        same = cause.node == event.node and cause.fields.get("peer") == event.fields.get("peer")
        return same and all(_alike(cause, event, field) for field in _FETCH)
    if event.event == "AlterPartition":
        return bool(event.fields.get("peer", cause.node) == cause.node)
    if event.event == "HandleAlterPartitionResponse":
        return bool(cause.fields.get("peer", event.node) == event.node)
    return event.event == "BecomeFollower" or cause.fields.get("leader", event.node) == event.node


def _alike(cause: Event, event: Event, field: str) -> bool:
    # A source that leaves a field out contradicts nothing.
    if field not in cause.fields or field not in event.fields:
        return True
    a, b = cause.fields[field], event.fields[field]
    return set(a) == set(b) if isinstance(a, Sequence) and isinstance(b, Sequence) else bool(a == b)
