"""What commands print, and how they end when they are interrupted or nobody reads their output."""

import contextlib
import os
import sys

from tidegauge.util.untrusted_text import visible_lines

INTERRUPTED, NOBODY_READS = 130, 141
"""Exit codes as shells define them: 128 and the number of the signal, SIGINT or SIGPIPE."""


def echo(line: str = "") -> None:
    """Print a line of the result, at once: long work must show progress."""
    print(_printable(line, sys.stdout.encoding), flush=True)


def aside(line: str) -> None:
    """Print progress or a warning to standard error, if it is open."""
    with contextlib.suppress(OSError):
        print(_printable(line, sys.stderr.encoding), file=sys.stderr, flush=True)


def _printable(line: str, encoding: str | None) -> str:
    """Return a line in which backslash escapes stand for control characters and for what `encoding` has no character for.

    File names that are not valid text have such characters. `encoding` is that of the stream, None if it has none.
    """
    encoding = encoding or "utf-8"
    return visible_lines(line).encode(encoding, "backslashreplace").decode(encoding)


def flushed() -> bool:
    """Flush standard output; return whether its reader is still there."""
    try:
        sys.stdout.flush()
    except OSError:
        return False
    return True


def interrupted() -> int:
    """Print that Ctrl-C ended the command; return the exit code."""
    aside("tidegauge: interrupted; the results printed so far are valid, nothing else was decided")
    return INTERRUPTED


def nobody_reads(code: int = NOBODY_READS) -> int:
    """Silence all output, because its reader is gone (`| head`); return the exit code."""
    # Python flushes standard output when it ends: with a closed pipe that would print an error.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    return code


def silent(_line: str) -> None:
    """Print nothing."""


def only_steps(line: str) -> None:
    """Print a line that is the heading of a job's step, "[1/9] ..."; leave out any other."""
    if line.startswith("["):
        echo(line)


def colour() -> bool:
    """Return whether the output goes to a terminal, and colour is not switched off (NO_COLOR)."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
