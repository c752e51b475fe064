"""Clients of models that have none: what a broker may tell a producer or a consumer in each state, and what it may not.

Rules of this file

1. A client changes nothing, so its events are offered in the states that there are: each success of an acks=all produce,
   with its epoch and without, and each bound of a read.
2. A success is right at a leader whose high watermark has passed the record, if its log has that record there. A read is
   right at any broker with a role, up to its own high watermark: consumers may fetch from followers (KIP-392).
"""

from collections.abc import Sequence
from typing import Any

from tidegauge.impl.rules import NONE
from tidegauge.traces.from_model.views import LEADER, NO_ROLE, View, broker
from tidegauge.traces.schema import Config, Event

ACK, READ = "ProduceAck", "Read"


def client_events(events: Sequence[Event], config: Config) -> tuple[Event, ...]:
    """Return what brokers might tell clients, in a model with these events; nothing where it has clients itself."""
    if any(event.event in (ACK, READ) for event in events):
        return ()
    leos = [event.fields.get("leo") or 0 for event in events]
    ends = range(1, max(leos, default=0) + 2)
    epochs = sorted({event.fields["leader_epoch"] for event in events if event.event == "BecomeLeader"} | {0})
    return tuple(event for node in config.nodes for event in _events_of_node(node, ends, epochs))


def _events_of_node(node: int, ends: range, epochs: Sequence[int]) -> list[Event]:
    epoch_fields: list[dict[str, Any]] = [{}, *({"rec_epoch": epoch} for epoch in epochs)]
    acks = [Event(node, ACK, {"acks": -1, "rec_end": end, **more, "error": NONE}) for end in ends for more in epoch_fields]
    return [*acks, *(Event(node, READ, {"bound": end, "rec_end": end}) for end in ends)]


def is_right(event: Event, view: View) -> bool:
    """Return whether a broker may tell this to a client in this state."""
    b, end = broker(view, event.node - 1), event.fields["rec_end"]
    if not b.up or b.role == NO_ROLE or end > b.hw:
        return False
    if event.event == READ:
        return True
    return b.role == LEADER and event.fields.get("rec_epoch", b.log[end - 1]) == b.log[end - 1]
