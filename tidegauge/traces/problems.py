"""Faults of input, as values: no fault of a file ends the reading with an exception.

Rules of this file

1. A reader returns everything that it could read, and one Problem for each thing that it could not.
2. A Problem has the expected and the seen value, the place, and what to do.
3. `lost` counts the events left out because of it, so that read plus lost is the content of the input.
4. Of the problems of one file PROBLEMS_KEPT are kept, and one more that stands for all later ones, which it counts.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

PROBLEMS_KEPT = 100
"""Problems of one file that are kept: a file may have one in each of its lines."""

CHARACTERS_SHOWN = 80
"""Characters of foreign input quoted in a message."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong with one file. `line` counts from 1, and is None for a problem of the file as a whole."""

    path: str
    line: int | None
    expected: str
    seen: str
    do: str
    lost: int = 0
    more: int = 0
    """Further problems of the same file that it stands for, none of which is after line `until`."""
    until: int | None = None

    def __str__(self) -> str:
        """Return the problem as a report prints it: where, what was expected, what was seen, what to do."""
        where = self.path if self.line is None else f"{self.path}:{self.line}"
        more = f" (and {self.more:,} more up to line {self.until})" if self.more else ""
        return f"{where}: expected {self.expected}, seen {self.seen}{more}; {self.do}"


def note(problem: Problem, problems: list[Problem]) -> None:
    """Add a problem to those of the same file; after PROBLEMS_KEPT the last one of the list stands for all later ones."""
    # The first PROBLEMS_KEPT as they are, and one that will stand for the others.
    if len(problems) <= PROBLEMS_KEPT:
        problems.append(problem)
    else:
        last = problems[-1]
        lost = last.lost + problem.lost
        problems[-1] = replace(last, lost=lost, more=last.more + 1, until=max(last.until or 0, problem.line or 0))


def number_of(problems: Iterable[Problem]) -> int:
    """Return how many problems there were, those included that others stand for."""
    return sum(1 + problem.more for problem in problems)


def lost(problems: Iterable[Problem]) -> int:
    """Return the number of events left out because of `problems`."""
    return sum(problem.lost for problem in problems)


def shown(value: object) -> str:
    """Return `value` as a message quotes it: one line of at most CHARACTERS_SHOWN characters."""
    text = repr(value)
    return text if len(text) <= CHARACTERS_SHOWN else text[: CHARACTERS_SHOWN - 3] + "..."


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 trace", "2 traces"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
