"""Ctrl-C is heeded when nothing is under way: a topic whose creation is would come to be after the others were deleted.

It is not heeded while topics are deleted: that is what it asks for.
"""

from collections.abc import Callable

from tidegauge.drive.probe.connection import Dial, Wire


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
