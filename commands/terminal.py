"""What all commands share: exit codes, how a line is printed."""

import os
import sys

CONFORMS, FAILS, BAD, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130


def echo(line: str = "") -> None:
    """One line to the terminal, at once: long work must be seen to move."""
    print(line, flush=True)


def aside(line: str) -> None:
    """One line beside the result: progress, warnings."""
    print(line, file=sys.stderr, flush=True)


def silent(_line: str) -> None:
    """Says nothing."""


def only_steps(line: str) -> None:
    """Says where a job is, without its details."""
    if line.startswith("["):
        echo(line)


def colour() -> bool:
    """Whether a person looks at the output and wants it coloured."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ
