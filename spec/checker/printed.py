"""Read the lines that a spec prints (TLC!PrintT) through a pipe of its own while TLC runs."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

PIPE = "printed"
PRINTS = ("-userFile", PIPE)
"""The option of TLC. To standard output it writes each line on its own, which wakes the reader each time; to a user file it
writes kilobytes at a time. The pipe is that file."""

OnLine = Callable[[str], object]


@contextmanager
def printed(work: Path, on_line: OnLine, end: Callable[[], object]) -> Iterator[None]:
    """Call `on_line` with each line that the spec of a process in `work` prints.

    The body waits for the process. An exception of either ends the process with `end`, and is raised.
    """
    reader = os.open(work / PIPE, os.O_RDONLY | os.O_NONBLOCK)
    # Held open until the process has ended: the reader must not wait for a JVM that never opens the pipe.
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
