"""The machine code of the judge made by another process, while this one does something else.

    python -m tidegauge.conformance.kernel.ahead     # make it now

Rule of this file: nothing depends on it but time. Where it is not ready when it is needed, it is made there.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tidegauge.conformance.kernel.compiled import cache_directory, compiled, is_ready

POLITE = 10
"""It takes the time that others leave."""


@contextmanager
def compiled_ahead() -> Iterator[None]:
    """Begin to compile, unless that was done; whatever is not ready at the end is given up."""
    if is_ready() or cache_directory() is None:
        yield
        return
    quiet = subprocess.DEVNULL
    with subprocess.Popen([sys.executable, "-m", __name__], stdin=quiet, stdout=quiet, stderr=quiet) as process:
        try:
            yield
        finally:
            process.kill()


if __name__ == "__main__":
    os.nice(POLITE)
    compiled()
