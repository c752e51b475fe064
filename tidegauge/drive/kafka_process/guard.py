"""The guard of one process and one folder: `python guard.py PREFIX`, started by process.py. When its stdin ends, both go.

The driver is the process that started the guard and writes commands to its stdin. The process under guard is one that the
driver has it start, such as a broker.

Rules of this file

1. The driver, which started this script, may die at any moment, also by SIGKILL. Then the pipe to stdin ends: the only sign.
2. The folder is created here and the process is started here, so there is no moment at which they could be left behind.
3. Commands are lines of JSON: {"run": [argument, ..], "out": file} starts the process, {"signal": number} sends it a signal
   and waits for its end, {"look": true} looks whether it has ended. The response to each is a line: {"pid": number} of the
   process, or {"code": exit code}, which is null while it runs. Before all commands {"folder": path} is written.
4. If this process itself is killed, the kernel kills the other one with it (PR_SET_PDEATHSIG, on Linux).
5. Only the standard library is imported, and little of it: this script must be there fast.
"""

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any

PR_SET_PDEATHSIG = 1
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that the guard ignores: if one ended it, the folder would be left behind."""

SHUTDOWN_SECONDS = 120.0
"""After that a process that does not shut down is killed."""

POLL_SECONDS = 0.01


def _prepare() -> None:
    """Prepare the new process, between fork and exec: it does not ignore signals, and dies with the guard (rule 4)."""
    # An ignored signal stays ignored over exec: SIGTERM would not shut the process down.
    for number in IGNORED:
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _respond(**response: Any) -> None:
    """Write a response to the driver."""
    sys.stdout.write(json.dumps(response) + "\n")
    sys.stdout.flush()


def _end(process: "subprocess.Popen[bytes]", signal_number: int) -> int:
    """Send a signal to the process and everything it started; wait until it has ended, and return its exit code.

    Kills it if it does not end within SHUTDOWN_SECONDS, or if the driver goes meanwhile.
    """
    with suppress(ProcessLookupError):  # it may have ended by itself
        os.killpg(process.pid, signal_number)
    deadline = time.monotonic() + SHUTDOWN_SECONDS
    while process.poll() is None and signal_number != signal.SIGKILL:
        # The driver writes nothing while a line is unanswered: a stdin that can be read has ended, and so has the driver.
        driver_gone, _, _ = select.select([sys.stdin], [], [], POLL_SECONDS)
        if driver_gone or time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
            break
    return process.wait()


def _obey(command: dict[str, Any], process: "subprocess.Popen[bytes] | None") -> "subprocess.Popen[bytes] | None":
    """Carry out a command (rule 3) and respond to it. `process`: the one under guard; return the one after the command."""
    if "run" in command:
        with open(command["out"], "ab") as out:  # noqa: PTH123  pathlib takes as long to import as all of this to start
            process = subprocess.Popen(
                command["run"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                process_group=0,  # so that a signal reaches everything that it starts
                preexec_fn=_prepare,  # noqa: PLW1509  there is one thread here
            )
        _respond(pid=process.pid)
    elif "look" in command:
        _respond(code=None if process is None else process.poll())
    elif process is not None:
        _respond(code=_end(process, command["signal"]))
        process = None
    # A signal when there is no process: it has been ended before, and the driver only waits for a response.
    else:
        _respond(code=0)
    return process


def main() -> None:
    """Create the folder, and carry out commands until stdin ends; then kill the process and remove the folder."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    process = None
    folder = tempfile.mkdtemp(prefix=sys.argv[1])
    try:
        _respond(folder=folder)
        for line in sys.stdin:
            process = _obey(json.loads(line), process)
    finally:
        if process is not None:
            _end(process, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
