"""Count the situations that the events of traces are in: what a test or a log has exercised of each action.

A situation is an action and the outcomes of its comparisons, such as `HandleFetch` where the fetch offset is above the log
end. Offsets of any size and a model of two records are in the same situations, so both can be held against each other.
In a table of situations an outcome is a code: 0 if a field of it is not reported, 1 to 4 for <, =, > and undefined, and
_VALUE plus the value of a field that is compared with nothing.

Rules of this file

1. COMPARISONS is the one place that names what is compared. A value that is not reported leaves its comparison UNKNOWN.
2. Counting goes by whole columns: a log of a million events takes a fraction of the time that judging it does.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np

from tidegauge.impl.errors import ERROR_NAMES
from tidegauge.impl.rules import OFFSET_OUT_OF_RANGE
from tidegauge.traces.columns import UNKNOWN, Columns, Distinct, Ints, table_of
from tidegauge.traces.schema import EVENTS

Comparison = tuple[str, str]
"""Two fields that are compared; or one field and "": then its value is the outcome."""

ERROR: Comparison = ("error", "")
COMPARISONS: Mapping[str, tuple[Comparison, ...]] = MappingProxyType(
    {
        "BecomeLeader": (("leo", "hw_before"), ("hw", "hw_before"), ("epoch_start", "leo")),
        "BecomeFollower": (("leo", "hw"),),
        "LeaderAppend": (("leo_before", "hw_before"), ("hw", "hw_before")),
        "SendFetch": (("req_last_epoch", "req_epoch"),),
        "HandleFetch": (
            ERROR,
            ("req_offset", "leo"),
            ("req_offset", "hw_before"),
            ("req_last_epoch", "req_epoch"),
            ("rec_end", "rec_base"),
            ("div_end", "req_offset"),
            ("hw", "hw_before"),
        ),
        "AnswerFetch": (ERROR, ("rec_end", "rec_base")),
        "HandleFetchResponse": (("rec_end", "rec_base"), ("rec_epoch", "req_epoch"), ("res_hw", "leo"), ("hw", "hw_before")),
        "HandleDivergingResponse": (
            ("target", "leo_before"),
            ("target", "hw_before"),
            ("target", "div_end"),
            ("completed", ""),
        ),
        "HandleOutOfRange": (("target", "leo_before"), ("target", "leader_end"), ("target", "leader_start")),
        "HandleFetchError": (ERROR,),
        "SendEpochRequest": (("req_last_epoch", "req_epoch"),),
        "HandleEpochRequest": (ERROR, ("div_epoch", "req_last_epoch")),
        "HandleEpochResponse": (
            ("div_epoch", "req_last_epoch"),
            ("target", "leo_before"),
            ("target", "hw_before"),
            ("completed", ""),
        ),
        "TruncateToHighWatermark": (("target", "leo_before"),),
        "ExpandIsr": (),
        "ShrinkIsr": (("leo", "hw"),),
        "HandleAlterPartitionResponse": (ERROR, ("hw", "hw_before")),
        "Start": (("clean", ""), ("leo", "hw"), ("hw", "log_start")),
        "Stop": (),
        "Crash": (),
        "LogStartMoved": (("hw", "log_start"),),
        "ProduceAck": (("acks", ""), ERROR),
        "AlterPartition": (ERROR,),
        "ChangePartition": (("led", ""), ("clean", ""), ("full", ""), ("eligible", ""), ("adds", ""), ("removes", "")),
        "RegisterBroker": (("clean", ""),),
        "FenceBroker": (),
        "UnfenceBroker": (),
        "SetMinIsr": (),
    }
)
"""What is compared at each action of a broker, then of the controller, by the fields of its event."""

CONTROLLER_ACTIONS = frozenset(
    {"AlterPartition", "ChangePartition", "RegisterBroker", "FenceBroker", "UnfenceBroker", "SetMinIsr"}
)

STATEMENTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "led": ("no replica leads", "a replica leads"),
        "full": ("a replica is not in sync", "all replicas are in sync"),
        "eligible": ("no replica is eligible", "a replica outside the ISR is eligible"),
        "adds": ("no replica is added", "a replica is added"),
        "removes": ("no replica is removed", "a replica is removed"),
    }
)
"""Statements about a registration, which a comparison may name like a field: in words, where it does not hold and does."""

FIELD_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "leo": "the log end",
        "leo_before": "the log end before",
        "hw": "the high watermark",
        "hw_before": "the high watermark before",
        "log_start": "the log start",
        "epoch_start": "the start of the epoch",
        "req_offset": "the fetch offset",
        "req_epoch": "the leader epoch of the request",
        "req_last_epoch": "the last epoch of the follower's log",
        "rec_base": "their first offset",
        "rec_end": "the end of the records",
        "rec_epoch": "the epoch of the records",
        "res_hw": "the leader's high watermark",
        "div_end": "the diverging end offset",
        "div_epoch": "the epoch of the response",
        "target": "the truncation offset",
        "leader_start": "the leader's log start",
        "leader_end": "the leader's log end",
        "error": "the error",
        "completed": "the truncation completed",
        "clean": "clean",
        "acks": "acks",
    }
)

BELOW, EQUAL, ABOVE, UNDEFINED = "<", "=", ">", "undefined"
_OUTCOMES = (BELOW, EQUAL, ABOVE, UNDEFINED)
_WORDS = {BELOW: "is below", EQUAL: "is at", ABOVE: "is above"}
NOT_KNOWN = ""
"""The outcome of a comparison of which a field is not reported."""

_VALUE = 16
"""Codes from here on are values: a field that is compared with nothing has its own value."""


class Situation(NamedTuple):
    """An action, and the outcome of each of its comparisons: <, =, >, undefined, a value, or "" for one not known."""

    action: str
    outcomes: tuple[str, ...]

    def fits(self, other: "Situation") -> bool:
        """Return whether this is the other one, except for outcomes that are not known here: a source may report less."""
        pairs = zip(self.outcomes, other.outcomes, strict=True)
        return self.action == other.action and all(own in (NOT_KNOWN, others) for own, others in pairs)

    def guards(self) -> Iterator["Guard"]:
        """Yield each comparison whose outcome is known, with the outcome."""
        for (left, right), outcome in zip(COMPARISONS[self.action], self.outcomes, strict=True):
            if outcome != NOT_KNOWN:
                yield Guard(self.action, left, right, outcome)

    def __str__(self) -> str:
        return f"{self.action}, where " + "; ".join(map(str, self.guards())) if any(self.outcomes) else self.action


class Guard(NamedTuple):
    """One comparison of an action, `left` with `right` (as in Comparison), and one outcome of it."""

    action: str
    left: str
    right: str
    outcome: str

    def __str__(self) -> str:
        """Write it in words."""
        if self.left in STATEMENTS:
            return STATEMENTS[self.left][int(self.outcome)]
        name = FIELD_WORDS[self.left]
        if self.outcome == UNDEFINED:
            return f"{name} is undefined"
        if not self.right:
            return f"{name} is {self.outcome}"
        return f"{name} {_WORDS[self.outcome]} {FIELD_WORDS[self.right]}"


class Seen(NamedTuple):
    """How often something was exercised, and where first."""

    times: int
    first: str

    def plus(self, other: "Seen") -> "Seen":
        """Return the counts added up, with the first place of this one if it has one."""
        return Seen(self.times + other.times, self.first or other.first)


KeyT = TypeVar("KeyT")


def add(seen: dict[KeyT, Seen], more: Mapping[KeyT, Seen]) -> None:
    """Add what another source has exercised to `seen`, in place; keys are situations or guards."""
    for key, other in more.items():
        seen[key] = seen.get(key, Seen(0, other.first)).plus(other)


def added(parts: Iterable[Mapping[Situation, Seen]]) -> dict[Situation, Seen]:
    """Return what several sources have exercised together."""
    seen: dict[Situation, Seen] = {}
    for part in parts:
        add(seen, part)
    return seen


def situations(stored: Columns | Distinct, place: Callable[[int], str]) -> dict[Situation, Seen]:
    """Return the situations of all events, how often each came, and where first.

    `place` is called with the row of an event, and returns where that was read. Events of actions that are not in
    COMPARISONS are left out.
    """
    table, rows = table_of(stored)
    distinct, of_row = situation_codes(table)
    of_event = of_row if rows is None else of_row[rows]  # by event, the index of its situation in `distinct`
    indices, firsts, counts = np.unique(of_event, return_index=True, return_counts=True)
    return {
        distinct[index]: Seen(int(count), place(first))
        for index, first, count in zip(indices.tolist(), firsts.tolist(), counts.tolist(), strict=True)
        if index >= 0  # -1: an action that is not in COMPARISONS
    }


def situation_codes(table: Columns) -> tuple[list[Situation], Ints]:
    """Return the situations of a table's rows, and the index of each row's among them, -1 for a row that has none."""
    distinct: list[Situation] = []
    of_row = np.full(len(table), -1, np.int64)
    for action, comparisons in COMPARISONS.items():
        rows = np.flatnonzero(table.event == EVENTS[action].code)
        if not len(rows):
            continue
        # A column of codes for each comparison. Its `right` is "" for a field that is compared with nothing.
        columns = [_compared(_field(table, left, rows), right and _field(table, right, rows)) for left, right in comparisons]
        outcomes = np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0), np.int64)
        # A request that was refused was compared with nothing. Out of range, which has the lowest of the error codes, is
        # the outcome of a comparison.
        if comparisons[:1] == (ERROR,):
            is_refused = outcomes[:, 0] > _VALUE + OFFSET_OUT_OF_RANGE  # the code of an error is _VALUE plus the error
            outcomes[is_refused, 1:] = 0
        distinct_outcomes, which = np.unique(outcomes, axis=0, return_inverse=True)
        of_row[rows] = len(distinct) + which.reshape(-1)  # they are appended to `distinct` below
        distinct += [Situation(action, tuple(_texts(comparisons, codes))) for codes in distinct_outcomes.tolist()]
    return distinct, of_row


def _field(table: Columns, name: str, rows: Ints) -> Ints:
    """Return the values of a field, or of a statement (STATEMENTS), in these rows; UNKNOWN where it is not reported."""
    if name in STATEMENTS:
        return _stated(table, name, rows)
    column = table.ints.get(name)
    return np.full(len(rows), UNKNOWN, np.int64) if column is None else column[rows]


_SETS = {"eligible": "elr", "adds": "adding", "removes": "removing"}
"""By statement, the field with the set of brokers that must not be empty."""


def _stated(table: Columns, name: str, rows: Ints) -> Ints:
    """Return 1 where a statement about a registration holds, 0 where not, UNKNOWN where its field is not reported."""
    if name == "led":
        leader = _field(table, "leader", rows)
        return np.where(leader == UNKNOWN, UNKNOWN, leader >= 0).astype(np.int64)
    if name == "full":
        isr, replicas = _field(table, "isr", rows), _field(table, "replicas", rows)
        return np.where((isr == UNKNOWN) | (replicas == UNKNOWN), UNKNOWN, isr & replicas == replicas).astype(np.int64)
    members = _field(table, _SETS[name], rows)
    return np.where(members == UNKNOWN, UNKNOWN, members > 0).astype(np.int64)


def _compared(left: Ints, right: Ints | str) -> Ints:
    """Return the code of each outcome of comparing two fields; for a `right` of "" that of the value of `left` (_VALUE).

    0 is for a field that is not reported.
    """
    if isinstance(right, str):
        return np.where(left == UNKNOWN, 0, left + _VALUE)
    # 1, 2, 3 for below, equal, above; 4 where the left one is -1, undefined.
    outcome = np.where(left == -1, 4, 2 + np.sign(left - right))
    return np.where((left == UNKNOWN) | (right == UNKNOWN), 0, outcome)


def _texts(comparisons: Iterable[Comparison], codes: Iterable[int]) -> Iterator[str]:
    """Yield the text of the outcome of each comparison from its code."""
    for (left, right), code in zip(comparisons, codes, strict=True):
        if code == 0:
            yield NOT_KNOWN
        elif right:
            yield _OUTCOMES[code - 1]
        # A field that is compared with nothing: its value, an error by its name.
        else:
            value = code - _VALUE
            yield ERROR_NAMES.get(value, str(value)) if left == "error" else str(value)
