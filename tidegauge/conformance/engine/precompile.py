"""Compile the judge in another process: beside a long job, or in the background of a command, for the next one too.

    python -m tidegauge.conformance.engine.precompile     # compile it now

Rule of this file: this changes the time and nothing else. Code that is not ready when it is needed is compiled there. The
compiler and multiprocessing are imported where they are used: most commands need neither.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MODULE = "tidegauge.conformance.engine.precompile"

NICENESS = 10
"""The niceness of the compiling process: it takes only the processor time that others leave."""

UNDER_WAY = "TIDEGAUGE_COMPILING"
"""The environment variable by which the workers of a command know that it compiles."""

ANNOUNCEMENT = (
    "compiling the judge in the background, once on this machine: 1 to 2 minutes of processor time, beyond this command; "
    "until then it is interpreted, which is slower and gives the same results"
)

PrintLine = Callable[[str], None]


class _Listener:
    """Functions that a long computation calls to print: a command sets them, a library call prints nothing.

    `announcement` gets ANNOUNCEMENT when a compilation begins, `progress` a line while the interpreted kernel judges.
    """

    def __init__(self) -> None:
        """Print nothing until a command sets the functions."""
        self.announcement: PrintLine = lambda _line: None
        self.progress: PrintLine = lambda _line: None
        self.give_up: Callable[[], None] = lambda: None
        """End the compilation that this process has begun, if any; set here, called by a command."""


LISTENER = _Listener()


def compile_in_background() -> bool:
    """Begin to compile the judge in another process, unless the code is ready or that was begun.

    Return False if there is no directory for the code: then no process would find it, and none is started. LISTENER gets
    the announcement, and `give_up`, which ends the other process.
    """
    from tidegauge.conformance.engine.compiled import cache_directory, is_ready  # noqa: PLC0415

    if cache_directory() is None:
        return False
    if not is_ready() and UNDER_WAY not in os.environ:
        from tidegauge.util.python_processes import python_command  # noqa: PLC0415

        os.environ[UNDER_WAY] = "yes"  # the workers of this process inherit it
        LISTENER.announcement(ANNOUNCEMENT)
        quiet = subprocess.DEVNULL
        # Its output is discarded: if it fails, the interpreted kernel judges to the end. A session of its own lets it go on
        # when the terminal of the command is closed.
        process = subprocess.Popen(python_command(MODULE), stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        LISTENER.give_up = process.kill
    return True


@contextmanager
def compiled_ahead() -> Iterator[None]:
    """Compile in another process while the body runs, unless that is done already; end the process with the body.

    Nothing is compiled where there is no directory to keep the code in.
    """
    from tidegauge.conformance.engine.compiled import cache_directory, is_ready  # noqa: PLC0415
    from tidegauge.util.python_processes import python_command  # noqa: PLC0415

    if is_ready() or cache_directory() is None:
        yield
        return
    # Output is discarded: if the process fails, the code is compiled where it is needed.
    quiet = subprocess.DEVNULL
    with subprocess.Popen(python_command(MODULE), stdin=quiet, stdout=quiet, stderr=quiet) as process:
        try:
            yield
        finally:
            process.kill()


if __name__ == "__main__":
    from tidegauge.conformance.engine.compiled import compiled

    os.nice(NICENESS)
    compiled()
