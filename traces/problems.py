"""What is wrong with input: a value, never an exception that ends a reading.

Rules of this file

1. A reader hands back what it could read and one Problem for everything it could not; it raises for nothing a file holds.
2. A Problem says what was expected, what was seen, where, and what to do.
3. `lost` counts the events left out because of it, so that read plus lost is what the input held.
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
        return f"{where}: expected {self.expected}, saw {self.seen}; {self.do}"


def lost(problems: Iterable[Problem]) -> int:
    """Events left out because of `problems`."""
    return sum(problem.lost for problem in problems)


def shown(value: object) -> str:
    """`value` as a message quotes it: one line, truncated at SHOWN characters."""
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
