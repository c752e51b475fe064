"""Compile the judge in another process, at most one for a command: it goes on after the command, for the next one."""

import os
import subprocess
from collections.abc import Callable

UNDER_WAY = "TIDEGAUGE_COMPILING"
"""The environment variable by which the workers of a command know that it compiles."""

ANNOUNCEMENT = (
    "compiling the judge in the background, once on this machine: 1 to 2 minutes of processor time, beyond this command; "
    "until then it is interpreted, which is slower and gives the same results"
)

Hear = Callable[[str], None]


class _Listener:
    """Who hears what a long computation says: a command sets both, and a library call hears nothing."""

    def __init__(self) -> None:
        self.announcement: Hear = lambda _line: None
        self.progress: Hear = lambda _line: None
        self.give_up: Callable[[], None] = lambda: None
        """End the compilation that this process has begun, if any."""


LISTENER = _Listener()


def compile_in_background() -> bool:
    """Begin, unless the code is ready or it was begun; return whether there will be code that every process finds."""
    from tidegauge.conformance.engine.compiled import cache_directory, is_ready  # noqa: PLC0415  the compiler

    if cache_directory() is None:
        return False
    if not is_ready() and UNDER_WAY not in os.environ:
        from tidegauge.util.python_processes import python_command  # noqa: PLC0415  multiprocessing, for most in vain

        os.environ[UNDER_WAY] = "yes"
        LISTENER.announcement(ANNOUNCEMENT)
        quiet = subprocess.DEVNULL
        # Its output is discarded: if it fails, the interpreted kernel judges to the end. A session of its own lets it go on
        # when the terminal of the command is closed.
        process = subprocess.Popen(
            python_command("tidegauge.conformance.engine.precompile"),
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            start_new_session=True,
        )
        LISTENER.give_up = process.kill
    return True
