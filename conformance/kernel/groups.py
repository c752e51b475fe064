"""What an event reports, by what it is about: the request, the response, its records, the log before and after.

Rules of this file

1. A group is a tuple of ints with names; UNKNOWN where the source is silent. Numba takes it apart, so it costs nothing.
2. A group is the same for every event. An event that has no such field leaves it UNKNOWN, as a silent source does.
"""

from typing import NamedTuple, TypeAlias

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel import state as s

Columns: TypeAlias = tuple[s.Ints, ...]


class Request(NamedTuple):
    """What a follower asks. An OffsetsForLeaderEpoch request has no offset; its `last_epoch` is the epoch it asks about."""

    epoch: int
    offset: int
    last_epoch: int


class Response(NamedTuple):
    """What the leader responds, but for records: where the logs diverge, or an epoch ends, is (div_epoch, div_end)."""

    error: int
    hw: int
    log_start: int
    div_epoch: int
    div_end: int


class Records(NamedTuple):
    """Records [base, end), the last of which has `epoch`."""

    base: int
    end: int
    epoch: int


class Truncation(NamedTuple):
    """Where a follower truncates, and whether no further round is needed."""

    target: int
    completed: int


class Log(NamedTuple):
    """Log end and high watermark, as an event finds or leaves them."""

    leo: int
    hw: int


class Assignment(NamedTuple):
    """Who the partition is assigned to, who of them is being added or removed, and who is eligible to lead (KIP-966)."""

    replicas: int
    adding: int
    removing: int
    elr: int


GROUPS = (Request, Response, Records, Truncation, Log, Assignment)


def request_of(c: Columns, i: int) -> Request:
    """The request of event i."""
    return Request(c[field.REQ_EPOCH][i], c[field.REQ_OFFSET][i], c[field.REQ_LAST_EPOCH][i])


def response_of(c: Columns, i: int) -> Response:
    """The response of event i."""
    return Response(
        c[field.ERROR][i], c[field.RES_HW][i], c[field.RES_LOG_START][i], c[field.DIV_EPOCH][i], c[field.DIV_END][i]
    )


def records_of(c: Columns, i: int) -> Records:
    """The records of event i."""
    return Records(c[field.REC_BASE][i], c[field.REC_END][i], c[field.REC_EPOCH][i])


def truncation_of(c: Columns, i: int) -> Truncation:
    """The truncation of event i."""
    return Truncation(c[field.TARGET][i], c[field.COMPLETED][i])


def log_before(c: Columns, i: int) -> Log:
    """The log that event i found."""
    return Log(c[field.LEO_BEFORE][i], c[field.HW_BEFORE][i])


def log_after(c: Columns, i: int) -> Log:
    """The log that event i left."""
    return Log(c[field.LEO][i], c[field.HW][i])


def assignment_of(c: Columns, i: int) -> Assignment:
    """The assignment that event i registers."""
    return Assignment(c[field.REPLICAS][i], c[field.ADDING][i], c[field.REMOVING][i], c[field.ELR][i])
