"""A driven program: any executable that reads steps on stdin and writes reports on stdout, a line of JSON each.

Rules of this file

1. Many partitions are driven side by side, so that the program and the suite need not wait for each other: at most one
   step of a partition is under way.
2. Nothing that the program does stops the suite: it writes and reads only when it can, counts what it gets, and looks at
   the clock. A program is killed when it is at fault, and when it is still there long after its input has ended.
3. The program is started when there is something to play, and again after it was stopped.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.contract import Capabilities, Step, Watch
from tidegauge.drive.transports.lines import (
    DrivenProgramError,
    blamed,
    capabilities_of,
    closing_line,
    hello,
    json_line,
    opening_line,
    parsed,
    report_of,
    step_line,
)
from tidegauge.drive.transports.program import Program, Running

WINDOW = 64
"""Partitions side by side."""

LONGEST_LINE = 1 << 20
MOMENT = 1.0
"""How long a program may take to end, in seconds."""


class StdioNode:
    """A broker under test behind a program's stdin and stdout; `timeout` is how long it may be silent, in seconds."""

    def __init__(
        self, command: Sequence[str], timeout: float = 10.0, launch: Callable[[Sequence[str]], Running] = Program
    ) -> None:
        self._command, self._timeout, self._launch = list(command), timeout, launch
        self._program: Running | None = None
        self._known: Capabilities | None = None
        self._partitions = 0
        self._forget()

    def _forget(self) -> None:
        self._out, self._in, self._lines = bytearray(), bytearray(), 0

    @property
    def capabilities(self) -> Capabilities:
        """What the program's handshake says; it is started to find out."""
        if self._known is None:
            self._start()
        if self._known is None:
            raise DrivenProgramError("the driven program: expected a handshake, seen none")
        return self._known

    def __enter__(self) -> "StdioNode":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # -----------------------------------------------------------------------------------------------------------------
    # The process

    def _start(self) -> None:
        if self._program is not None:
            return
        self._forget()
        self._program = self._launch(self._command)
        self._out += json_line(hello())
        line = self._next_line(lambda: "a handshake")
        said = capabilities_of(line, self._where())
        if self._known is not None and said != self._known:
            raise blamed("the handshake that it gave before", line, self._where())
        self._known = said

    def close(self) -> None:
        """End of its input; it gets a moment to end."""
        program, self._program = self._program, None
        if program is not None:
            program.close(min(self._timeout, MOMENT))

    def _where(self) -> str:
        return f"on line {self._lines} of its stdout"

    # -----------------------------------------------------------------------------------------------------------------
    # Lines

    def _next_line(self, what: Callable[[], str]) -> bytes:
        """The next line it writes, while what it is to read is written."""
        program = self._program
        deadline = time.monotonic() + self._timeout
        while (end := self._in.find(b"\n")) < 0:
            if len(self._in) > LONGEST_LINE:
                self._lines += 1
                raise self._at_fault(f"{what()}, in lines of at most {LONGEST_LINE:,} bytes", bytes(self._in))
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._at_fault(f"{what()} within {self._timeout:g} s", bytes(self._in), "it is silent")
            written = program.exchange(self._out, left) if program is not None else None
            if written is None:
                raise self._at_fault(what(), bytes(self._in), program.how_it_ended() if program is not None else "")
            self._in += written
        line = bytes(self._in[: end + 1])
        del self._in[: end + 1]
        self._lines += 1
        return line

    def _at_fault(self, expected: str, line: bytes, how: str = "") -> DrivenProgramError:
        said = self._program.last_words() if self._program is not None else ""
        error = blamed(expected, line, f"{self._where()}{', ' + how if how else ''}")
        return DrivenProgramError(f"{error}\nits stderr ends with:\n{said}") if said else error

    # -----------------------------------------------------------------------------------------------------------------
    # Playing

    def play(self, cases: Sequence[BrokerCase], watch: Watch) -> None:
        """Drive the orders side by side."""
        try:
            self._play(cases, watch)
        except BaseException:
            if self._program is not None:
                self._program.kill()
            self.close()
            raise

    def _play(self, cases: Sequence[BrokerCase], watch: Watch) -> None:
        capabilities = self.capabilities
        self._start()
        waiting = deque(enumerate(cases))
        under_way: dict[int, tuple[int, int]] = {}
        while waiting or under_way:
            while waiting and len(under_way) < WINDOW:
                number, case = waiting.popleft()
                self._partitions += 1
                under_way[self._partitions] = (number, 0)
                self._out += opening_line(self._partitions, case.opening)
            line = self._next_line(lambda: _expected(cases, under_way))
            found = parsed(line, self._where())
            partition = found.pop("p", None)
            if not isinstance(partition, int) or isinstance(partition, bool) or partition not in under_way:
                raise blamed(f"a report of one of the partitions {_some(under_way)}", line, self._where())
            number, at = under_way.pop(partition)
            path = cases[number].path
            taken: Step | None = path[at - 1] if at else None
            seen = report_of(found, taken, capabilities, line, f"{self._where()}, to {taken or 'open'}")
            if watch(number, at, seen):
                under_way[partition] = (number, at + 1)
                self._out += step_line(partition, path[at])
            else:
                self._out += closing_line(partition)
        if self._in:
            self._lines += 1
            raise blamed("nothing more, for every step is answered", bytes(self._in), self._where())


def _expected(cases: Sequence[BrokerCase], under_way: dict[int, tuple[int, int]]) -> str:
    """The oldest step that is not answered."""
    partition, (number, at) = next(iter(under_way.items()))
    step: Any = cases[number].path[at - 1] if at else ("open",)
    return f"a report to {step} of partition {partition}"


def _some(partitions: dict[int, Any]) -> str:
    shown = sorted(partitions)[:5]
    return ", ".join(map(str, shown)) + (" .." if len(partitions) > len(shown) else "")
