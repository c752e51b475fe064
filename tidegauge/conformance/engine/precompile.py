"""Precompile the judge in another process, while this one does something else.

    python -m tidegauge.conformance.engine.precompile     # compile it now

Rule of this file: this changes the time and nothing else. Code that is not ready when it is needed is compiled there.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tidegauge.conformance.engine.compiled import cache_directory, compiled, is_ready
from tidegauge.util.python_processes import python_command

NICENESS = 10
"""The niceness of the compiling process: it takes only the processor time that others leave."""


@contextmanager
def compiled_ahead() -> Iterator[None]:
    """Compile in another process while the body runs, unless that is done already; end the process with the body."""
    if is_ready() or cache_directory() is None:
        yield
        return
    # Output is discarded: if the process fails, the code is compiled where it is needed.
    quiet = subprocess.DEVNULL
    with subprocess.Popen(python_command(__name__), stdin=quiet, stdout=quiet, stderr=quiet) as process:
        try:
            yield
        finally:
            process.kill()


if __name__ == "__main__":
    os.nice(NICENESS)
    compiled()
