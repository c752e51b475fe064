"""A process and its scratch folder that end with this process, however it ends: guard.py keeps both.

Rule of this file: the folder is in memory where there is room, unless TMPDIR names a place. A broker creates and renames
small files all the time, and would wait for a disk.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidegauge.drive.kafka_process import guard
from tidegauge.drive.wire.compiler import WireError
from tidegauge.util.python_processes import bare_python_command

OUT = "out"
"""The file in the folder for stdout and stderr of the process."""

IN_MEMORY, ROOM = Path("/dev/shm"), 2 << 30
"""Where Linux has files in memory, and the bytes that must be free: a broker that is driven for minutes logs 300 MB."""


def scratch_root() -> Path:
    """Return where the folders of processes are created: rule of this file."""
    with suppress(OSError):
        is_named = any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
        if not is_named and os.access(IN_MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(IN_MEMORY).free >= ROOM:
            return IN_MEMORY
    return Path(tempfile.gettempdir())


class Guarded:
    """A folder, `home`, whose name begins with `prefix`, and at most one process at a time."""

    def __init__(self, prefix: str) -> None:
        self._guard = subprocess.Popen(
            # The standard library alone, for the guard must be there fast.
            bare_python_command(guard.__file__, str(scratch_root() / prefix)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # A session of its own: Ctrl-C in the terminal reaches the driver alone, which then ends the process in order.
            start_new_session=True,
        )
        self.home = Path(self._read_line()["folder"])
        self.out = self.home / OUT
        self.pid = 0
        """that of the latest process"""

    def run(self, command: Sequence[str]) -> None:
        """Start a process. Raises WireError when the guard has gone."""
        self.pid = int(self._command(run=list(command), out=str(self.out))["pid"])

    def end(self, number: int) -> None:
        """Send the process a signal, and wait until it has ended. Raises WireError when the guard has gone."""
        self._command(signal=number)

    def exit_code(self) -> int | None:
        """Return the exit code of the process if it has ended by itself. Raises WireError when the guard has gone."""
        code: int | None = self._command(look=True)["code"]
        return code

    def close(self) -> None:
        """End the process and remove the folder."""
        # The end of its stdin is what tells the guard.
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._guard.wait()
        if self._guard.stdout is not None:
            self._guard.stdout.close()

    def _command(self, **line: Any) -> dict[str, Any]:
        """Send the guard a command, wait until it is done, and return its report."""
        if self._guard.stdin is None or self._guard.poll() is not None:
            raise WireError("the guard of a process: expected it to run; seen that it has ended")
        self._guard.stdin.write(json.dumps(line).encode() + b"\n")
        self._guard.stdin.flush()
        return self._read_line()

    def _read_line(self) -> dict[str, Any]:
        line = self._guard.stdout.readline() if self._guard.stdout is not None else b""
        if not line:
            raise WireError(f"the guard of a process: expected a report of what it did; seen exit code {self._guard.wait()}")
        response: dict[str, Any] = json.loads(line)
        return response
