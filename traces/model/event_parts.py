"""Parts of the events of several actions. A log start that stays at 0 is left out."""

from collections.abc import Sequence
from typing import Any

from tidegauge.impl import rules
from tidegauge.impl.releases import profile_named
from tidegauge.traces.model.views import NO_ROLE, BrokerView, log_start_in
from tidegauge.traces.schema import Event


def report(index: int, event: str, **fields: Any) -> Event:
    """Return an event of broker `index`."""
    return Event(node=index + 1, event=event, fields=fields)


def record_fields(base: int, epochs: Sequence[int]) -> dict[str, int]:
    """Return the fields of the records of a response or an append."""
    fields = {"rec_base": base, "rec_end": base + len(epochs)}
    return {**fields, "rec_epoch": epochs[-1]} if epochs else fields


def log_fields(before: BrokerView, after: BrokerView) -> dict[str, int]:
    """Return the fields of the log before and after."""
    start = {"log_start": after.start} if before.start or after.start else {}
    return {"leo_before": before.leo, "hw_before": before.hw, "leo": after.leo, "hw": after.hw, **start}


def answered_start(data: Sequence[Any]) -> dict[str, int]:
    """Return the field of the leader's log start in a data response."""
    return {"res_log_start": log_start_in(data)} if log_start_in(data) else {}


def refusal(leader: BrokerView, request_epoch: int, profile: str, *, serves: bool = False) -> int:
    """Return the error for a request that was refused, or (`serves`) may be."""
    # A broker without a role has no epoch to compare with.
    fences = profile_named(profile).fencing and leader.role != NO_ROLE
    return rules.request_error(request_epoch, leader.epoch, serves, fences)


def epoch_end(response: Sequence[int]) -> dict[str, int | None]:
    """Return the fields of a response about the end of an epoch."""
    _, _, epoch, end = response
    return {"div_epoch": or_none(epoch), "div_end": or_none(end)}


def or_none(value: int) -> int | None:
    """Return the value, or None for an undefined epoch or offset."""
    return None if value == rules.UNDEFINED else value
