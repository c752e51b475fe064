"""The judge's memory as few bytes: the room after the last registration, term and entry of a log is left out.

Rules of this file

1. Counts come first and give the length of the rest. So two memories are the same exactly when their bytes are.
2. Cells that are not written keep the values of another memory. The kernel does not read them: it leaves them as they are
   between traces, too (conformance.kernel.state.forget).
3. Rows are copied whole, and a value that is too large for a byte is noticed at the end: only loops without an exit become
   vector instructions.
"""

from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.one_event import LARGEST, UNKNOWN_BYTE, WORD, Bytes
from tidegauge.traces.columns import UNKNOWN


def move_row(st: s.State, row: int, first: int, width: int, memory: Bytes, at: int, write: bool) -> int:
    """Copy cells of a row to the memory or back. Return the largest absolute value among them."""
    cells, written = st[row, first : first + width], memory[at : at + width]
    largest = 0
    if write:
        for k in range(width):
            value = cells[k]
            largest = max(largest, abs(0 if value == UNKNOWN else value))
            written[k] = UNKNOWN_BYTE if value == UNKNOWN else min(max(value, -LARGEST), LARGEST)
    else:
        for k in range(width):
            cells[k] = UNKNOWN if written[k] == UNKNOWN_BYTE else written[k]
    return largest


def move_all(st: s.State, memory: Bytes, begin: int, write: bool) -> int:
    """Copy all that the judge knows. Return where it ends in the memory, or -1 where a value is too large."""
    n, room = st[s.OPTION, s.BROKERS], st[s.PARTITION, s.CACHE_ROOM]
    largest = move_row(st, s.PARTITION, 0, s.NOW, memory, begin, write)
    at = begin + s.NOW
    for first, rows, width in (
        (s.REPLICAS, n, s.REPLICA),
        (st[s.PARTITION, s.AT_PAIRS], n * n, s.PAIR),
        (st[s.PARTITION, s.AT_REGISTRATIONS], st[s.PARTITION, s.REGISTRATIONS], s.R_REPLICAS + 1),
        (st[s.PARTITION, s.AT_TERMS], st[s.PARTITION, s.TERMS], s.TERM_COLUMNS),
    ):
        for row in range(first, first + rows):
            largest = max(largest, move_row(st, row, 0, width, memory, at, write))
            at += width
    for log in range(n + st[s.PARTITION, s.TERMS]):
        cached = max(st[s.REPLICAS + log, s.CACHED] if log < n else st[st[s.PARTITION, s.AT_TERMS] + log - n, s.T_CACHED], 0)
        for row in range(st[s.PARTITION, s.AT_LOGS] + 2 * log, st[s.PARTITION, s.AT_LOGS] + 2 * log + 2):
            largest = max(largest, move_row(st, row, 0, cached, memory, at, write))
            largest = max(largest, move_row(st, row, room, 1, memory, at + cached, write))
            at += cached + 1
    return at if largest <= LARGEST else -1


def pack(st: s.State, memory: Bytes, begin: int) -> int:
    """Write what the judge knows. Return where the next word begins, or -1 where a value is too large for a byte."""
    at = move_all(st, memory, begin, True)
    if at < 0:
        return -1
    while at % WORD != 0:
        memory[at] = 0
        at += 1
    return at


def unpack(st: s.State, memory: Bytes, begin: int) -> None:
    """Read what the judge knew; nothing has failed."""
    move_all(st, memory, begin, False)
    st[s.PARTITION, s.FAILED] = 0
    st[s.PARTITION, s.FAILURES] = 0
    st[s.PARTITION, s.OVERFLOW] = 0
