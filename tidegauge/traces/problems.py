"""Faults of input, as values: no fault of a file ends the reading with an exception.

Rules of this file

1. A reader returns everything that it could read, and one Problem for each thing that it could not.
2. A Problem has the expected and the seen value, the place, and what to do.
3. `lost` counts the events left out because of it, so that read plus lost is the content of the input.
"""

from collections.abc import Iterable
from dataclasses import dataclass

SHOWN = 80
"""Characters of foreign input quoted in a message."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong with one file; `line` counts from 1 and is None where lines make no sense."""

    path: str
    line: int | None
    expected: str
    seen: str
    do: str
    lost: int = 0

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{where}: expected {self.expected}, seen {self.seen}; {self.do}"


def lost(problems: Iterable[Problem]) -> int:
    """Return the number of events left out because of `problems`."""
    return sum(problem.lost for problem in problems)


def shown(value: object) -> str:
    """Return `value` as a message quotes it: one line of at most SHOWN characters."""
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
