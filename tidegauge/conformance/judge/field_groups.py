"""Groups of fields of an event: the request, the response, its records, the log before and after.

Rules of this file

1. A group is a named tuple of ints; UNKNOWN where the source does not report the field. Numba unpacks it at no cost.
2. A group is the same for every event. A field that an event does not have is UNKNOWN too.
3. `c` are the columns of a trace, one array per field, by the positions of conformance.judge.fields; `i` is the row of the
   event in them.
"""

from typing import NamedTuple, TypeAlias

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s

Columns: TypeAlias = tuple[s.Ints, ...]


class Request(NamedTuple):
    """A follower's request. One for OffsetsForLeaderEpoch has no offset; its `last_epoch` is the epoch it asks about."""

    epoch: int
    offset: int
    last_epoch: int


class ReportedResponse(NamedTuple):
    """A leader's response without its records; (div_epoch, div_end): where the logs diverge, or where an epoch ends."""

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
    """The offset at which a follower truncates, and whether no further round is needed (1) or is (0)."""

    target: int
    completed: int


class ReportedLog(NamedTuple):
    """Log end and high watermark, before or after an event."""

    leo: int
    hw: int


class Assignment(NamedTuple):
    """The replicas, those of them being added or removed, and those eligible to lead (KIP-966), as bit masks."""

    replicas: int
    adding: int
    removing: int
    elr: int


GROUPS = (Request, ReportedResponse, Records, Truncation, ReportedLog, Assignment)


def request_of(c: Columns, i: int) -> Request:
    """Return the request that event i sends, handles or takes the response of."""
    return Request(c[field.REQ_EPOCH][i], c[field.REQ_OFFSET][i], c[field.REQ_LAST_EPOCH][i])


def response_of(c: Columns, i: int) -> ReportedResponse:
    """Return the response that event i gives or takes over, without its records."""
    return ReportedResponse(
        c[field.ERROR][i], c[field.RES_HW][i], c[field.RES_LOG_START][i], c[field.DIV_EPOCH][i], c[field.DIV_END][i]
    )


def records_of(c: Columns, i: int) -> Records:
    """Return the range of records that event i appends, sends or fetches."""
    return Records(c[field.REC_BASE][i], c[field.REC_END][i], c[field.REC_EPOCH][i])


def truncation_of(c: Columns, i: int) -> Truncation:
    """Return where event i truncates the log, and whether the truncation is completed by it."""
    return Truncation(c[field.TARGET][i], c[field.COMPLETED][i])


def log_before(c: Columns, i: int) -> ReportedLog:
    """Return log end and high watermark before event i."""
    return ReportedLog(c[field.LEO_BEFORE][i], c[field.HW_BEFORE][i])


def log_after(c: Columns, i: int) -> ReportedLog:
    """Return log end and high watermark after event i."""
    return ReportedLog(c[field.LEO][i], c[field.HW][i])


def assignment_of(c: Columns, i: int) -> Assignment:
    """Return the assignment that event i registers: replicas and eligible leaders, as bit masks."""
    return Assignment(c[field.REPLICAS][i], c[field.ADDING][i], c[field.REMOVING][i], c[field.ELR][i])
