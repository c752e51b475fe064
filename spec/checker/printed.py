"""What a spec prints (TLC!PrintT), read through a pipe of its own while TLC runs.

Rules of this file

1. To its standard output TLC writes each line by itself, and who reads it is woken for each. To a file of the user's
   (-userFile) it writes kilobytes at a time. That file is a pipe.
2. The pipe is open for writing here, too, until the process has ended: so neither end waits for a JVM that never opened it.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

PIPE = "printed"
PRINTS = ("-userFile", PIPE)
"""What TLC is told, where it runs in the directory that the pipe is in."""

OnLine = Callable[[str], object]


@contextmanager
def printed(work: Path, on_line: OnLine, end: Callable[[], object]) -> Iterator[None]:
    """While a process runs in `work`: `on_line` gets each line that its spec prints.

    The body waits for the process. What either raises has the process ended by `end`, and is raised.
    """
    reader = os.open(work / PIPE, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(work / PIPE, os.O_WRONLY)
    os.set_blocking(reader, True)

    def read() -> None:
        with os.fdopen(reader, encoding="utf-8", errors="replace") as lines:
            try:
                for line in lines:
                    on_line(line.rstrip("\r\n"))
            except BaseException:
                end()
                raise

    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(read)
        try:
            yield
        except BaseException:
            end()
            raise
        finally:
            os.close(writer)
    reading.result()
