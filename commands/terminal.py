"""What all commands share: how a line is printed, how they end early."""

import contextlib
import os
import sys

INTERRUPTED, NOBODY_READS = 130, 141
"""128 and the number of the signal, SIGINT and SIGPIPE, as shells have it."""


def echo(line: str = "") -> None:
    """One line to the terminal, at once: long work must be seen to move."""
    print(_shown(line, sys.stdout.encoding), flush=True)


def aside(line: str) -> None:
    """One line beside the result: progress, warnings. Where nobody can see it, it is not missed."""
    with contextlib.suppress(OSError):
        print(_shown(line, sys.stderr.encoding), file=sys.stderr, flush=True)


def _shown(line: str, encoding: str | None) -> str:
    """What a terminal cannot write, and names of files that are no text, with backslashes."""
    known = encoding or "utf-8"
    return line.encode(known, "backslashreplace").decode(known)


def written() -> bool:
    """Whether all that was printed has gone out."""
    try:
        sys.stdout.flush()
    except OSError:
        return False
    return True


def interrupted() -> int:
    """Ctrl-C: one line, and the exit code."""
    aside("tidegauge: interrupted; what was printed so far stands, nothing else was decided")
    return INTERRUPTED


def nobody_reads(code: int = NOBODY_READS) -> int:
    """Whoever read the output is gone (`| head`): not a word, also not when Python flushes at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    return code


def silent(_line: str) -> None:
    """Says nothing."""


def only_steps(line: str) -> None:
    """Says where a job is, without its details."""
    if line.startswith("["):
        echo(line)


def colour() -> bool:
    """Whether a person looks at the output and wants it coloured."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
