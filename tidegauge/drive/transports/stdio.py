"""A driven program: any executable that reads steps on stdin and writes reports on stdout, a line of JSON each.

A case is an opening and a path of steps, played on a partition of its own. The report of a step must come before the next
one is written.

Rules of this file

1. Many partitions are driven side by side, so that the program and the driver need not wait for each other. A partition has
   at most one step without a report.
2. Nothing that the program does can stop the driver: pipes are written and read only when they are ready, output is bounded,
   and silence has a time limit. A program at fault is killed, and so is one that does not end after its input has.
3. The program is started when it is first asked for its capabilities or given something to play, and again after it was
   stopped.
"""

import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol

from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.contract import Capabilities, Step, Watch
from tidegauge.drive.transports import lines
from tidegauge.util.untrusted_text import visible

CONCURRENT_PARTITIONS = 64
"""Partitions that are driven at the same time at most."""
LONGEST_LINE = 1 << 20
"""Bytes of a line of the program at most."""
CLOSE_SECONDS = 1.0
"""How long a program may take to end after its input has."""

PIPE_CHUNK = 1 << 16
STDERR_TAIL = 2000
"""How many bytes at the end of stderr are kept."""


class RunningProgram(Protocol):
    """A started program and its pipes."""

    def exchange(self, out: bytearray, seconds: float) -> bytes | None:
        """Write as much of `out` as the program takes, remove that from it, and return what the program has written.

        Waits at most some seconds until either is possible; returns b"" where there is nothing to read. Returns None when
        its stdout has ended.
        """

    def last_words(self) -> str:
        """Return the end of its stderr."""

    def how_it_ended(self) -> str:
        """Return a description of its end, once its stdout has ended."""

    def close(self, patience: float) -> None:
        """End its input, and kill it if it has not ended after `patience` seconds."""

    def kill(self) -> None:
        """Kill it."""


class Program:
    """An executable. Raises DrivenProgramError when it cannot be started."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start the program in a session of its own, with pipes that never block."""
        pipe = subprocess.PIPE
        try:
            # In a session of its own, so that processes that it starts can be killed with it.
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
            )
        except OSError as problem:
            raise lines.DrivenProgramError(
                f"the driven program: expected {command[0]!r} to start; seen {problem.strerror}; check the command"
            ) from None
        self._stdin, self._stdout, self._stderr = self._process.stdin, self._process.stdout, self._process.stderr
        for stream in (self._stdin, self._stdout, self._stderr):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
        self._stderr_tail = b""

    def exchange(self, out: bytearray, seconds: float) -> bytes | None:
        """Write some of `out`, and return what was read: see RunningProgram. Keeps the end of stderr."""
        stdin, stdout, stderr = self._stdin, self._stdout, self._stderr
        if stdin is None or stdout is None or stderr is None:
            return None
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            # stderr is read as well: a full pipe would block a program that logs much.
            if not stderr.closed:
                selector.register(stderr, selectors.EVENT_READ)
            if out and not stdin.closed:
                selector.register(stdin, selectors.EVENT_WRITE)
            ready = {key.fileobj for key, _ in selector.select(seconds)}
        if stdin in ready:
            try:
                del out[: os.write(stdin.fileno(), out[:PIPE_CHUNK])]
            except OSError:
                # It has closed its stdin, or has ended. That is an error when its stdout ends, too.
                stdin.close()
        if stderr in ready:
            data = os.read(stderr.fileno(), PIPE_CHUNK)
            self._stderr_tail = (self._stderr_tail + data)[-STDERR_TAIL:]
            if not data:
                stderr.close()
        return os.read(stdout.fileno(), PIPE_CHUNK) or None if stdout in ready else b""

    def last_words(self) -> str:
        """See RunningProgram."""
        return self._stderr_tail.decode("utf-8", "backslashreplace").strip()

    def how_it_ended(self) -> str:
        """Return how the program ended, or that it has only closed its stdout."""
        # A program that ends closes its stdout a moment before there is an exit code.
        try:
            return f"it ended with exit code {self._process.wait(1.0)}"
        except subprocess.TimeoutExpired:
            return "it closed its stdout"

    def close(self, patience: float) -> None:
        """Close the pipes, and kill the program if it has not ended after `patience` seconds."""
        for stream in (self._stdin, self._stdout, self._stderr):
            if stream is not None:
                stream.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self.kill()
        self._process.wait()

    def kill(self) -> None:
        """See RunningProgram."""
        # Also after its end: its children are in the same group, and may still run.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


class StdioNode:
    """A broker under test behind a program's stdin and stdout; a context manager, which ends the program.

    `timeout`: seconds without a line of output before the program is considered hung. `launch`: starts the command.
    """

    def __init__(
        self, command: Sequence[str], timeout: float = 10.0, launch: Callable[[Sequence[str]], RunningProgram] = Program
    ) -> None:
        """Keep the command; the program starts when it is first needed."""
        self._command, self._timeout, self._launch = list(command), timeout, launch
        self._program: RunningProgram | None = None
        self._capabilities: Capabilities | None = None
        self._partitions = 0
        """How many partitions were opened so far; that is the number of the last one."""
        # What is to be written, what was read and is not a whole line, and the number of the lines read.
        self._out, self._in, self._lines = bytearray(), bytearray(), 0

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities in the program's handshake; starts the program to get it. Raises DrivenProgramError."""
        if self._capabilities is None:
            self._start()
        # It runs, but its handshake was refused when it was first asked for.
        if self._capabilities is None:
            raise lines.DrivenProgramError("the driven program: expected a handshake, seen one that was refused")
        return self._capabilities

    def __enter__(self) -> "StdioNode":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # -----------------------------------------------------------------------------------------------------------------
    # The process

    def _start(self) -> None:
        """Start the program unless it runs, and read its handshake. Raises DrivenProgramError."""
        if self._program is not None:
            return
        self._out, self._in, self._lines = bytearray(), bytearray(), 0
        self._program = self._launch(self._command)
        self._out += lines.json_line(lines.hello())
        line = self._next_line(lambda: "a handshake")
        capabilities = lines.parse_handshake(line, self._where())
        # Cases were chosen for the capabilities of the first handshake.
        if self._capabilities is not None and capabilities != self._capabilities:
            raise lines.blame("the handshake that it gave before", line, self._where())
        self._capabilities = capabilities

    def close(self) -> None:
        """End the program's input, and kill it if it does not end."""
        program, self._program = self._program, None
        if program is not None:
            program.close(min(self._timeout, CLOSE_SECONDS))

    def _where(self) -> str:
        """Return the place of the line that was read last, for messages."""
        return f"on line {self._lines} of its stdout"

    # -----------------------------------------------------------------------------------------------------------------
    # Lines

    def _next_line(self, expected: Callable[[], str]) -> bytes:
        """Return the next line of the program, and write what is to be written meanwhile. Raises DrivenProgramError.

        `expected`: returns a description of the line, for messages.
        """
        program = self._program
        deadline = time.monotonic() + self._timeout
        # Until a whole line has been read.
        while (end := self._in.find(b"\n")) < 0:
            if len(self._in) > LONGEST_LINE:
                self._lines += 1
                raise self._at_fault(f"{expected()}, in lines of at most {LONGEST_LINE:,} bytes", bytes(self._in))
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise self._at_fault(f"{expected()} within {self._timeout:g} s", bytes(self._in), "it is silent")
            data = program.exchange(self._out, remaining) if program is not None else None
            if data is None:
                raise self._at_fault(expected(), bytes(self._in), program.how_it_ended() if program is not None else "")
            self._in += data
        line = bytes(self._in[: end + 1])
        del self._in[: end + 1]
        self._lines += 1
        return line

    def _at_fault(self, expected: str, line: bytes, how: str = "") -> lines.DrivenProgramError:
        """Return the error of the program: what was expected, the line that came, and the end of its stderr.

        `how`: what the program has done instead, "" if the line says it all.
        """
        last_words = self._program.last_words() if self._program is not None else ""
        error = lines.blame(expected, line, f"{self._where()}{', ' + how if how else ''}")
        shown = "".join(f"\n  {visible(text)}" for text in last_words.split("\n"))
        return lines.DrivenProgramError(f"{error}\nits stderr ends with:{shown}") if last_words else error

    # -----------------------------------------------------------------------------------------------------------------
    # Playing

    def play(self, cases: Sequence[BrokerCase], watch: Watch) -> None:
        """Play the cases side by side, and call `watch` with each report: see Node. Raises DrivenProgramError."""
        try:
            self._play(cases, watch)
        except BaseException:
            # After a fault, or Ctrl-C, the program is in the middle of some steps: nothing more can be played on it.
            if self._program is not None:
                self._program.kill()
            self.close()
            raise

    def _play(self, cases: Sequence[BrokerCase], watch: Watch) -> None:
        """Play cases over the pipes, up to CONCURRENT_PARTITIONS of them at a time, each at one step."""
        capabilities = self.capabilities
        self._start()
        not_begun = deque(enumerate(cases))
        # Partition -> (number of its case, number of the step without a report, 0 for the opening); the oldest step first.
        in_flight: dict[int, tuple[int, int]] = {}
        while not_begun or in_flight:
            while not_begun and len(in_flight) < CONCURRENT_PARTITIONS:
                number, case = not_begun.popleft()
                self._partitions += 1
                in_flight[self._partitions] = (number, 0)
                self._out += lines.opening_line(self._partitions, case.opening)
            line = self._next_line(lambda: _oldest_step(cases, in_flight))
            fields = lines.parse_line(line, self._where())
            partition = fields.pop("p", None)
            # Python's True is the integer 1, and JSON's true is not a partition.
            if not isinstance(partition, int) or isinstance(partition, bool) or partition not in in_flight:
                raise lines.blame(f"a report of one of the partitions {_some(in_flight)}", line, self._where())
            number, step_number = in_flight.pop(partition)
            path = cases[number].path
            step: Step | None = path[step_number - 1] if step_number else None
            report = lines.parse_report(
                fields, step, capabilities, line, f"{self._where()}, to {lines.shown_step(partition, step)}"
            )
            if watch(number, step_number, report):
                in_flight[partition] = (number, step_number + 1)
                self._out += lines.step_line(partition, path[step_number])
            else:
                self._out += lines.closing_line(partition)
        # Every step has its report: whatever else the program has written reports nothing.
        if self._in:
            self._lines += 1
            raise lines.blame("nothing more, for every step is answered", bytes(self._in), self._where())


def _oldest_step(cases: Sequence[BrokerCase], in_flight: dict[int, tuple[int, int]]) -> str:
    """Return a description of the report that has been waited for longest; `in_flight` as in `StdioNode._play`."""
    partition, (number, step_number) = next(iter(in_flight.items()))
    step = cases[number].path[step_number - 1] if step_number else None
    return f"a report to {lines.shown_step(partition, step)}"


def _some(partitions: dict[int, Any]) -> str:
    """Return the lowest numbers of some partitions, for a message."""
    shown = sorted(partitions)[:5]
    return ", ".join(map(str, shown)) + (" .." if len(partitions) > len(shown) else "")
