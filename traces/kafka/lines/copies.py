"""Remove duplicate lines: a file copied beside itself, a log shipper that tried again.

Rules of this file

1. Lines are equal if their times, threads and messages are. In one file an equal line is a copy if it comes after later
   lines, or reports what cannot happen twice within one tick of the clock.
2. A file is a copy if every line of it is in another file. A second copy of the very same lines is skipped while files are
   found, before it can be mistaken for a rotated part of a log (`FileCopies`).
"""

from collections.abc import Sequence

from tidegauge.traces.kafka.lines.lines import Line
from tidegauge.traces.problems import Problem

_ONCE = (
    "partition change for",
    "Sending fetch request",
    "starts at leader epoch",
    "Appended ",
    "Registered signal handlers",
    "Log loaded for",
    "Completed request",
)
"""Messages that cannot be printed twice: each has an offset, an epoch or a request of its own."""

_LineKey = tuple[int, str, str]


class FileCopies:
    """The files found so far, by their lines."""

    def __init__(self) -> None:
        self._labels: dict[tuple[int, int], str] = {}

    def copy_of(self, label: str, lines: Sequence[Line]) -> str | None:
        """Return the file of which this one is a copy, if it is one."""
        if not lines:
            return None
        first = self._labels.setdefault((len(lines), hash(tuple(map(_key, lines)))), label)
        return None if first == label else first


def without_copies(files: Sequence[Sequence[Line]]) -> tuple[list[list[Line]], list[Problem]]:
    """Return the files of one node without copies, and what was left out."""
    kept: list[tuple[set[_LineKey], list[Line]]] = []
    problems: list[Problem] = []
    for lines in sorted(files, key=len, reverse=True):
        once = _forwards(lines)
        keys = {_key(line) for line in once if line.message and not line.summarizes}  # a summary stands for lines between
        if keys and any(keys <= others for others, _ in kept):
            problems.append(_problem(lines[0].file, None, "a copy of another file"))
            continue
        if len(once) < len(lines):
            problems.append(_problem(lines[0].file, None, f"{len(lines) - len(once):,} lines twice"))
        kept.append((keys, once))
    order = {id(lines[0]): at for at, lines in enumerate(files) if lines}
    return sorted((lines for _, lines in kept if lines), key=lambda lines: order[id(lines[0])]), problems


def _forwards(lines: Sequence[Line]) -> list[Line]:
    seen: set[_LineKey] = set()
    kept: list[Line] = []
    latest, again = 0, False
    for line in lines:
        key = _key(line)
        again = key in seen and (again or line.time < latest or any(words in line.message for words in _ONCE))
        if not again:
            seen.add(key)
            kept.append(line)
            latest = max(latest, line.time)
    return kept


def _key(line: Line) -> _LineKey:
    return (line.time, line.thread, line.message)


def _problem(path: str, line: int | None, seen: str) -> Problem:
    return Problem(path, line, "every line once", seen, "they are read once; leave copies out")
