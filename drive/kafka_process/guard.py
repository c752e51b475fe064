"""Keeps one process and one folder: `python guard.py PREFIX`, started by guarded.py. When its stdin ends, both are gone.

Rules of this file

1. Whoever started this may die at any moment, also by SIGKILL: then the pipe ends, and that is the sign.
2. The folder is made here and the process is started here, so there is no moment at which nobody knows of them.
3. Lines of JSON: {"run": [argument, ..], "out": file} starts the process, {"signal": number} sends it a signal and waits for
   its end. Each is answered with a line. Nothing but the standard library is imported: it must start fast.
4. If this process itself is killed, the kernel kills the other one with it (PR_SET_PDEATHSIG, where there is one).
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
"""The end of the pipe is the only sign."""

PATIENCE = 120.0
"""How long a process may take to end in order, in seconds."""
MOMENT = 0.01


def _prepare() -> None:
    """Between fork and exec: what is ignored here would be ignored there, too."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _say(**said: Any) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def _end(process: "subprocess.Popen[bytes]", number: int) -> int:
    """Signal the process and everything it started, and wait."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
    ends = time.monotonic() + PATIENCE
    while process.poll() is None and number != signal.SIGKILL:
        gone, _, _ = select.select([sys.stdin], [], [], MOMENT)  # nobody writes while a line is unanswered: it has ended
        if gone or time.monotonic() > ends:
            os.killpg(process.pid, signal.SIGKILL)
            break
    return process.wait()


def _obey(line: dict[str, Any], process: "subprocess.Popen[bytes] | None") -> "subprocess.Popen[bytes] | None":
    if "run" in line:
        with open(line["out"], "ab") as out:  # noqa: PTH123  pathlib takes as long to import as all of this to start
            process = subprocess.Popen(
                line["run"],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                process_group=0,
                preexec_fn=_prepare,  # noqa: PLW1509  there is one thread here
            )
        _say(pid=process.pid)
    elif process is not None:
        _say(code=_end(process, line["signal"]))
        process = None
    else:
        _say(code=0)
    return process


def main() -> None:
    """Obey until the input ends."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    process = None
    folder = tempfile.mkdtemp(prefix=sys.argv[1])
    try:
        _say(folder=folder)
        for line in sys.stdin:
            process = _obey(json.loads(line), process)
    finally:
        if process is not None:
            _end(process, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
