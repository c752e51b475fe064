"""Requests of sessions that ask for nothing that is read: as few of them as show where one is missing.

Rules of this file

1. A session counts its requests (KIP-227). Of those that go on without a gap the first is kept, and the last ones; the one
   in front of these stands for all between. Where the count breaks, both sides of the break are there.
2. A request that a session has counted already is the same line again (copies.py): it is passed over.
3. What counts is who counts: a fetcher thread that sends another request in between breaks off, as for whoever reads it all.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tidegauge.traces.kafka.lines.lines import Line
from tidegauge.traces.kafka.lines.selection import Request

LATEST = 3
"""The last ones that are kept: a 4.x broker that is told to stop sends one or two more than it logs (unmatched.py)."""


@dataclass
class _Chain:
    """Requests `first` to `last` of a session: the `latest` of them, and the one in front of these."""

    session: int
    first: int
    last: int
    latest: deque[Line] = field(default_factory=deque)
    between: Line | None = None


@dataclass
class Chains:
    """The requests of one file, in its order."""

    _open: dict[tuple[str, ...], _Chain] = field(default_factory=dict)
    _seen: dict[tuple[tuple[str, ...], int], list[tuple[int, int]]] = field(default_factory=dict)

    def add(self, line: Line, request: Request) -> Iterator[Line]:
        """One more; yields those that are known to be kept."""
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
        self._open[request.counter] = _Chain(request.session, request.epoch, request.epoch)
        yield replace(line, counted=1)

    def end(self, counter: tuple[str, ...]) -> Iterator[Line]:
        """Another request comes in between."""
        chain = self._open.pop(counter, None)
        if chain is not None:
            self._seen.setdefault((counter, chain.session), []).append((chain.first, chain.last))
            if chain.between is not None:
                yield replace(chain.between, counted=chain.last - LATEST - chain.first)
            yield from (replace(line, counted=1) for line in chain.latest)

    def end_all(self) -> Iterator[Line]:
        """The file ends."""
        for counter in list(self._open):
            yield from self.end(counter)
