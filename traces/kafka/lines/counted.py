"""Requests of sessions that ask for nothing that is read: as few of them as show where one is missing.

Rules of this file

1. A session counts its requests (KIP-227). Of those that go on without a gap the first is kept, and the last, which stands
   for all behind the first. Where the count breaks, both sides of the break are there.
2. A request that a session has counted already is the same line again (copies.py): it is passed over.
3. What counts is who counts: a fetcher thread that sends another request in between breaks off, as for whoever reads it all.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tidegauge.traces.kafka.lines.selection import Request


class Row(NamedTuple):
    """A line as it is kept on disk; `counted` as in Line."""

    number: int
    time: int
    thread: str
    message: str
    logger: str
    counted: int = 0


@dataclass
class _Chain:
    """Requests `first` to `last` of a session; `held` is the last of them, unless it is the first."""

    session: int
    first: int
    last: int
    held: Row | None = None


@dataclass
class Chains:
    """The requests of one file, in its order."""

    _open: dict[tuple[str, ...], _Chain] = field(default_factory=dict)
    _seen: dict[tuple[tuple[str, ...], int], list[tuple[int, int]]] = field(default_factory=dict)

    def add(self, row: Row, request: Request) -> Iterator[Row]:
        """One more; yields those that are known to be kept."""
        chain = self._open.get(request.counter)
        if chain is not None and chain.session == request.session:
            if request.epoch == chain.last + 1:
                chain.last, chain.held = request.epoch, row
                return
            if chain.first <= request.epoch <= chain.last:
                return
        seen = self._seen.get((request.counter, request.session), ())
        if any(first <= request.epoch <= last for first, last in seen):
            return
        yield from self.end(request.counter)
        self._open[request.counter] = _Chain(request.session, request.epoch, request.epoch)
        yield row._replace(counted=1)

    def end(self, counter: tuple[str, ...]) -> Iterator[Row]:
        """Another request comes in between."""
        chain = self._open.pop(counter, None)
        if chain is not None:
            self._seen.setdefault((counter, chain.session), []).append((chain.first, chain.last))
            if chain.held is not None:
                yield chain.held._replace(counted=chain.last - chain.first)

    def end_all(self) -> Iterator[Row]:
        """The file ends."""
        for counter in list(self._open):
            yield from self.end(counter)
