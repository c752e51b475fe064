"""A process and its scratch folder that end with us, whatever happens to us: guard.py holds both, and hears of our end.

Rule of this file: the folder lies in memory where there is room, unless TMPDIR names a place. A broker makes and renames
small files all the time, and waits for a disk.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidegauge.drive.kafka_process import guard
from tidegauge.drive.wire.primitives import WireError

OUT = "out"
"""The file in the folder that has what the process writes to stdout and stderr."""

IN_MEMORY, ROOM = Path("/dev/shm"), 2 << 30
"""Where Linux has files in memory, and how much has to be free: a broker that is driven for minutes logs 300 MB."""


def scratch() -> Path:
    """Where the folders of processes are made: rule of this file."""
    with suppress(OSError):
        named = any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
        if not named and os.access(IN_MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(IN_MEMORY).free >= ROOM:
            return IN_MEMORY
    return Path(tempfile.gettempdir())


class Guarded:
    """A folder of its own, `home`, whose name begins with `prefix`, and at most one process at a time."""

    def __init__(self, prefix: str) -> None:
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, str(scratch() / prefix)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self.home = Path(self._heard()["folder"])
        self.out = self.home / OUT

    def run(self, command: Sequence[str]) -> None:
        """Start a process."""
        self._ask(run=list(command), out=str(self.out))

    def end(self, number: int) -> None:
        """Send it a signal, and wait for its end."""
        self._ask(signal=number)

    def close(self) -> None:
        """End it and take the folder away."""
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._guard.wait()
        if self._guard.stdout is not None:
            self._guard.stdout.close()

    def _ask(self, **line: Any) -> None:
        if self._guard.stdin is None or self._guard.poll() is not None:
            raise WireError("a process: expected its guard to live; seen that it has ended")
        self._guard.stdin.write(json.dumps(line).encode() + b"\n")
        self._guard.stdin.flush()
        self._heard()

    def _heard(self) -> dict[str, Any]:
        line = self._guard.stdout.readline() if self._guard.stdout is not None else b""
        if not line:
            raise WireError(f"a process: expected its guard to say what it did; seen exit code {self._guard.wait()}")
        heard: dict[str, Any] = json.loads(line)
        return heard
