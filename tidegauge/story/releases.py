"""Which release a log can be of: what it says, else what its lines look like.

Rules of this file

1. `Kafka version: ..` says it. Else each line bounds it: a row of the table names the first and the last release that
   prints it so, and a class that moved between packages does the same.
2. Bounds are of one node, or of one file where no node is known; what nobody bounds is open.

A release is a tuple of its parts: 3.4.1 is (3, 4, 1). In a last release, 99 as a part stands for any number there.
"""

import re
from collections import defaultdict

from tidegauge.story.reading import SourcedLine

Release = tuple[int, ...]

_MOVED: tuple[tuple[str, Release | None, Release | None], ...] = (
    # where the class is printed, the first release and the last one that print it so
    ("org.apache.kafka.storage.internals.log.UnifiedLog", (4, 1), None),
    ("org.apache.kafka.storage.internals.log.", (3, 5), None),
    ("kafka.log.UnifiedLog", (3, 1), (4, 0, 99)),
    ("kafka.log.Log)", None, (3, 0, 99)),
    ("kafka.log.MergedLog", None, None),
    ("[QuorumController ", (2, 8), None),
)
_HIGHEST = (99,)


def release_of(text: str) -> Release:
    """Return the release in a text, at most four parts, without what a vendor appends: `3.9.1-ccs` is (3, 9, 1)."""
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("-")[0])[:4])


class Releases:
    """The bounds of each node's release, by node id, or by file where the node is not known."""

    def __init__(self) -> None:
        """Begin with no bounds; `printed` are the releases that lines say, `_epochs` who uses leader epochs by its lines."""
        self.printed: dict[object, set[str]] = defaultdict(set)
        self._first: dict[object, Release] = {}
        self._last: dict[object, Release] = {}
        self._epochs: set[object] = set()

    @staticmethod
    def _whose(line: SourcedLine) -> object:
        """Return the key under which the release of a line's writer is kept: its node, or its file."""
        return line.node if line.node is not None else line.file

    def note(self, line: SourcedLine) -> None:
        """Narrow the bounds of the release that printed a line by what the line says, and how."""
        whose = self._whose(line)
        if line.says.kind == "release":
            self.printed[whose].add(line.fields["release"])
            return
        # Its row of statements.py, if that names releases.
        if line.says.since is not None:
            self._first[whose] = max(self._first.get(whose, ()), release_of(line.says.since))
        if line.says.until is not None:
            self._last[whose] = min(self._last.get(whose, _HIGHEST), (*release_of(line.says.until), 99))
        if "UnifiedLog" in line.text or "kafka.log.Log" in line.text or "kafka.storage" in line.text:
            # The package of its class, the most precise name first.
            for printed, first, last in _MOVED:
                if printed in line.text:
                    if first is not None:
                        self._first[whose] = max(self._first.get(whose, ()), first)
                    if last is not None:
                        self._last[whose] = min(self._last.get(whose, _HIGHEST), last)
                    break
        # Leader epochs in a broker's own lines show that it uses them; what the controller sends has had them since 0.8.
        if line.says.kind != "received" and ("eader epoch" in line.text.lower() or "LeaderEpoch" in line.text):
            self._epochs.add(whose)

    def bounds(self, whose: object) -> tuple[Release, Release]:
        """Return the first and the last release that a node, or a file of no known node, can be of: () and (99,) if open."""
        releases = sorted(release_of(text) for text in self.printed.get(whose, ()))
        if releases:
            return releases[0], releases[-1]
        return self._first.get(whose, ()), self._last.get(whose, _HIGHEST)

    def has_epochs(self, line: SourcedLine) -> bool:
        """Return whether its release truncates by leader epochs (KIP-101, since 0.11), by what it says."""
        first, _ = self.bounds(self._whose(line))
        # A release that is printed decides alone.
        if self.printed.get(self._whose(line)):
            return first >= (0, 11)
        return first >= (0, 11) or self._whose(line) in self._epochs

    def raises_before_truncation(self, line: SourcedLine) -> bool:
        """Return whether the release may raise a high watermark just before the truncation: 2.7 to 3.4.0 (KAFKA-14704)."""
        first, last = self.bounds(self._whose(line))
        return first <= (3, 4, 0) and last >= (2, 7)
