"""Ctrl-C is heeded when nothing is under way: a topic whose creation is would come to be after the others were deleted.

A second one ends the probe at once.
"""

import signal
from collections.abc import Iterator
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

    def __init__(self, wire: Wire, asked: _Asked) -> None:
        self._wire, self._asked = wire, asked
        self.receive, self.close = wire.receive, wire.close

    def send(self, frame: bytes) -> None:
        """Unless the end is wanted."""
        self._asked.heed()
        self._wire.send(frame)


@contextmanager
def heeding(dial: Dial) -> Iterator[Dial]:
    """Connections of a probe that ends in order."""
    asked, before = _Asked(), {number: signal.getsignal(number) for number in NUMBERS}
    for number in NUMBERS:
        signal.signal(number, asked.heard)
    try:
        yield lambda host, port: _Heeding(dial(host, port), asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
