"""The files that have arrived in a directory, as a log on disk: an offset of a stream is a position in it.

Rules of this file

1. A version of a file arrives once, under its fingerprint; a file that is replaced by a changed one arrives again.
2. A position is returned only after everything before it is on the disk. A line that was incomplete when its writer was
   killed has no position yet: the next writer removes it.
3. One process writes at a time. It keeps a fingerprint for each arrival in memory, and nothing else that grows.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tidegauge.spark_check.storage import AnyPath
from tidegauge.spark_check.worker import file_fingerprint
from tidegauge.util.errors import TidegaugeError

FOLLOWED = "followed"
"""The folder in a directory of results that holds how far a stream has come."""
AT_ONCE = 256
"""Files that arrive with one look: their failures are published before the next ones are read."""


class Arrival(NamedTuple):
    """A version of a file."""

    path: str
    mark: str


class Arrivals:
    """The log at `path`, read to its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.end = 0
        self.marks: set[str] = set()
        if path.exists():
            with path.open("rb") as lines:
                for line in lines:
                    # A line without its end was torn by a kill: no position after it was returned.
                    if line.endswith(b"\n"):
                        self.end += len(line)
                        self.marks.add(_arrival(line).mark)

    def look(self, files: Iterable[AnyPath], judge: str, most: int = AT_ONCE) -> int:
        """Add at most so many `files` that have not arrived in this version; return the new end."""
        new: dict[str, Arrival] = {}
        for path in files:
            # Enough for one batch: the rest arrives with the next look.
            if len(new) == most:
                break
            try:
                mark = file_fingerprint(path, judge)
            except FileNotFoundError:  # gone since it was listed
                continue
            if mark not in self.marks:
                new[mark] = Arrival(str(path), mark)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if new:
            self._append(new.values())
            self.marks |= new.keys()
        self.path.touch()  # a look that found nothing is seen, too
        return self.end

    def between(self, start: int, end: int) -> list[Arrival]:
        """Return the arrivals between two positions. Raises TidegaugeError for a position that this log never returned."""
        if not start <= end <= self.end:
            raise TidegaugeError(
                f"{self.path}: expected the log of what arrived to reach {max(start, end)}, seen its end at {self.end}; "
                f"remove {self.path.parent} to begin again; what has been judged is not judged again"
            )
        if start == end:
            return []
        with self.path.open("rb") as log:
            log.seek(start)
            return [_arrival(line) for line in log.read(end - start).splitlines()]

    def _append(self, arrivals: Iterable[Arrival]) -> None:
        data = b"".join(json.dumps(arrival).encode() + b"\n" for arrival in arrivals)
        with self.path.open("ab") as log:
            # Removes the torn line of a killed writer; otherwise the first new line would continue it.
            log.truncate(self.end)
            log.write(data)
            log.flush()
            # Spark commits the position to its checkpoint: after a power failure it would ask for lines that are gone.
            os.fsync(log.fileno())
        self.end += len(data)


def log_in(results: str | Path) -> Path:
    """Return the path of the log in a directory of results."""
    return Path(results) / FOLLOWED / "arrivals"


def last_look(results: str | Path) -> int:
    """Return a number that changes with each look."""
    log = log_in(results)
    return log.stat().st_mtime_ns if log.exists() else 0


def _arrival(line: bytes) -> Arrival:
    return Arrival(*json.loads(line))
