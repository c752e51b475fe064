"""Thins out requests of sessions outside the selection, and keeps just enough to detect a gap in the session epochs.

Rules of this file

1. A session counts its requests (KIP-227). Of a chain of requests without a gap the first is kept, and the last ones; the
   one before these summarizes all between. Where the count breaks, both sides of the break are kept.
2. A request that was counted already is a copy of a line (copies.py): it is skipped.
3. A chain belongs to the counter, a fetcher thread or a session: another request of that thread in between ends it, as it
   does for a reader of all lines.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tidegauge.traces.kafka.lines.lines import Line
from tidegauge.traces.kafka.lines.selection import SessionRequest

LATEST = 3
"""Last requests of a chain that are kept: a 4.x broker that stops sends one or two more than it logs (unmatched.py)."""


@dataclass
class _RequestChain:
    """Requests `first` to `last` of a session: the `latest` lines, and the one before these."""

    session: int
    first: int
    last: int
    latest: deque[Line] = field(default_factory=deque)
    between: Line | None = None


@dataclass
class SessionSummaries:
    """The chains of requests in one file, in its order."""

    _open: dict[tuple[str, ...], _RequestChain] = field(default_factory=dict)
    _seen: dict[tuple[tuple[str, ...], int], list[tuple[int, int]]] = field(default_factory=dict)

    def add(self, line: Line, request: SessionRequest) -> Iterator[Line]:
        """Add a request; yield the lines that are certain to be kept."""
        chain = self._open.get(request.counter)
        if chain is not None and chain.session == request.session:
            if request.epoch == chain.last + 1:
                chain.last = request.epoch
                chain.latest.append(line)
                if len(chain.latest) > LATEST:
                    chain.between = chain.latest.popleft()
                return
            if chain.first <= request.epoch <= chain.last:
                return
        seen = self._seen.get((request.counter, request.session), ())
        if any(first <= request.epoch <= last for first, last in seen):
            return
        yield from self.end(request.counter)
        self._open[request.counter] = _RequestChain(request.session, request.epoch, request.epoch)
        yield replace(line, summarizes=1)

    def end(self, counter: tuple[str, ...]) -> Iterator[Line]:
        """End the chain of a counter: another request comes in between."""
        chain = self._open.pop(counter, None)
        if chain is not None:
            self._seen.setdefault((counter, chain.session), []).append((chain.first, chain.last))
            if chain.between is not None:
                yield replace(chain.between, summarizes=chain.last - LATEST - chain.first)
            yield from (replace(line, summarizes=1) for line in chain.latest)

    def end_all(self) -> Iterator[Line]:
        """End all chains at the end of the file."""
        for counter in list(self._open):
            yield from self.end(counter)
