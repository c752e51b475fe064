"""Ctrl-C is heeded when nothing is under way: a topic whose creation is would come to be after the others were deleted.

It is not heeded while topics are deleted: that is what it asks for. A second one waits for nothing.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from tidegauge.drive.probe.link import Dial, Wire

NUMBERS = (signal.SIGINT, signal.SIGTERM)


class _Asked:
    """Whether somebody wants the end."""

    def __init__(self) -> None:
        self._asked = False

    def heard(self, _number: int, _frame: FrameType | None) -> None:
        """The first signal waits, the next one does not."""
        self._asked = True
        for number in NUMBERS:
            signal.signal(number, signal.default_int_handler)

    def heed(self) -> None:
        """Raises KeyboardInterrupt, once."""
        if self._asked:
            self._asked = False
            raise KeyboardInterrupt


class _Heeding:
    """A wire that looks whether somebody wants the end before it sends."""

    def __init__(self, wire: Wire, heed: Callable[[], None]) -> None:
        self._wire, self._heed = wire, heed
        self.receive, self.close = wire.receive, wire.close

    def send(self, frame: bytes) -> None:
        """Unless the end is wanted."""
        self._heed()
        self._wire.send(frame)


def heeding(dial: Dial, heed: Callable[[], None]) -> Dial:
    """Connections that call `heed` before each request."""
    return lambda host, port: _Heeding(dial(host, port), heed)


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Signals wait for the `heed` that this yields, at the latest for the end: it raises KeyboardInterrupt then."""
    asked, before = _Asked(), {number: signal.getsignal(number) for number in NUMBERS}
    for number in NUMBERS:
        signal.signal(number, asked.heard)
    try:
        yield asked.heed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    asked.heed()
