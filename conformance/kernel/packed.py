"""The judge's memory as few bytes: nothing is written of the room behind the last registration, term or entry of a log.

Rules of this file

1. What comes first says how much follows. So two memories say the same exactly when they are the same bytes.
2. What is not written stays as another memory left it. The kernel does not read it either: between traces it leaves it as it
   is (conformance.kernel.state.forget).
3. Rows are moved whole, and what is too large for a byte shows at the end: without a way out in their middle, loops become
   vector instructions.
"""

from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.one_event import LARGEST, UNKNOWN_BYTE, WORD, Bytes
from tidegauge.traces.columns import UNKNOWN


def moved(st: s.State, row: int, first: int, width: int, memory: Bytes, at: int, write: bool) -> int:
    """Some cells of a row to the memory or back; how large the largest of them is."""
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


def all_moved(st: s.State, memory: Bytes, begin: int, write: bool) -> int:
    """Whatever the judge knows; where it ends in the memory, or -1 where a value is too large."""
    n, room = st[s.OPTION, s.BROKERS], st[s.WHOLE, s.ROOM]
    largest = moved(st, s.WHOLE, 0, s.NOW, memory, begin, write)
    at = begin + s.NOW
    for first, rows, width in (
        (s.REPLICAS, n, s.REPLICA),
        (st[s.WHOLE, s.AT_PAIRS], n * n, s.PAIR),
        (st[s.WHOLE, s.AT_REGISTRATIONS], st[s.WHOLE, s.REGISTRATIONS], s.R_REPLICAS + 1),
        (st[s.WHOLE, s.AT_TERMS], st[s.WHOLE, s.TERMS], s.TERM_COLUMNS),
    ):
        for row in range(first, first + rows):
            largest = max(largest, moved(st, row, 0, width, memory, at, write))
            at += width
    for log in range(n + st[s.WHOLE, s.TERMS]):
        cached = max(st[s.REPLICAS + log, s.CACHED] if log < n else st[st[s.WHOLE, s.AT_TERMS] + log - n, s.T_CACHED], 0)
        for row in range(st[s.WHOLE, s.AT_LOGS] + 2 * log, st[s.WHOLE, s.AT_LOGS] + 2 * log + 2):
            largest = max(largest, moved(st, row, 0, cached, memory, at, write))
            largest = max(largest, moved(st, row, room, 1, memory, at + cached, write))
            at += cached + 1
    return at if largest <= LARGEST else -1


def pack(st: s.State, memory: Bytes, begin: int) -> int:
    """Write down what the judge knows: where the next word begins, or -1 where a value is too large for a byte."""
    at = all_moved(st, memory, begin, True)
    if at < 0:
        return -1
    while at % WORD != 0:
        memory[at] = 0
        at += 1
    return at


def unpack(st: s.State, memory: Bytes, begin: int) -> None:
    """The judge knows again what it knew; nothing has failed."""
    all_moved(st, memory, begin, False)
    st[s.WHOLE, s.FAILED] = 0
    st[s.WHOLE, s.FAILURES] = 0
    st[s.WHOLE, s.OVERFLOW] = 0
