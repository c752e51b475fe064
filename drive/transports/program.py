"""A started program and its three pipes. Nothing waits for it: it is written to and read from when it can be.

Rules of this file

1. What it is given stays with the caller until it is written, what it writes is handed over as it comes.
2. Of its stderr the end is kept. It is read whenever stdout is, so that a program that talks much is not held up.
"""

import os
import selectors
import subprocess
from collections.abc import Sequence
from typing import Protocol

from tidegauge.drive.transports.lines import DrivenProgramError

CHUNK = 1 << 16
LAST_WORDS = 2000
"""How much of its stderr is kept."""


class Running(Protocol):
    """What a driven program is to the one that drives it."""

    def exchange(self, given: bytearray, left: float) -> bytes | None:
        """Write what can be of `given`, which loses it, and read what is there; wait for neither longer than `left` seconds.

        None when its stdout has ended.
        """

    def last_words(self) -> str:
        """The end of its stderr."""

    def how_it_ended(self) -> str:
        """In words, once its stdout has ended."""

    def close(self, patience: float) -> None:
        """End of its input; it is killed when it is still there after `patience` seconds."""

    def kill(self) -> None:
        """At once."""


class Program:
    """An executable. Raises DrivenProgramError when it cannot be started."""

    def __init__(self, command: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0)
        except OSError as problem:
            raise DrivenProgramError(
                f"the driven program: expected {command[0]!r} to start; seen {problem.strerror}; check the command"
            ) from None
        self._stdin, self._stdout, self._stderr = self._process.stdin, self._process.stdout, self._process.stderr
        for stream in (self._stdin, self._stdout, self._stderr):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
        self._said = b""

    def exchange(self, given: bytearray, left: float) -> bytes | None:
        """See Running."""
        stdin, stdout, stderr = self._stdin, self._stdout, self._stderr
        if stdin is None or stdout is None or stderr is None:
            return None
        with selectors.DefaultSelector() as ready:
            ready.register(stdout, selectors.EVENT_READ)
            if not stderr.closed:
                ready.register(stderr, selectors.EVENT_READ)
            if given and not stdin.closed:
                ready.register(stdin, selectors.EVENT_WRITE)
            events = {key.fileobj for key, _ in ready.select(left)}
        if stdin in events:
            try:
                del given[: os.write(stdin.fileno(), given[:CHUNK])]
            except OSError:
                stdin.close()
        if stderr in events:
            said = os.read(stderr.fileno(), CHUNK)
            self._said = (self._said + said)[-LAST_WORDS:]
            if not said:
                stderr.close()
        return os.read(stdout.fileno(), CHUNK) or None if stdout in events else b""

    def last_words(self) -> str:
        """See Running."""
        return self._said.decode("utf-8", "backslashreplace").strip()

    def how_it_ended(self) -> str:
        """See Running."""
        try:
            return f"it ended with exit code {self._process.wait(1.0)}"
        except subprocess.TimeoutExpired:
            return "it closed its stdout"

    def close(self, patience: float) -> None:
        """See Running."""
        for stream in (self._stdin, self._stdout, self._stderr):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            self._process.wait()

    def kill(self) -> None:
        """See Running."""
        self._process.kill()
