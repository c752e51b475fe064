"""Ctrl-C, or a SIGTERM, that waits until nothing is under way. A second one waits for nothing.

It stands in this room because the proofs start processes; the commands and the probe wait alike.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class Asked:
    """Whether somebody wants the end."""

    def __init__(self) -> None:
        self._asked = False

    def hear(self, _number: int, _frame: FrameType | None) -> None:
        """The first signal waits, the next one does not."""
        self._asked = True
        for number in _NUMBERS:
            signal.signal(number, signal.default_int_handler)

    def __bool__(self) -> bool:
        return self._asked

    def heed(self) -> None:
        """Raises KeyboardInterrupt, once."""
        if self._asked:
            self._asked = False
            raise KeyboardInterrupt


@contextmanager
def heard() -> Iterator[Asked]:
    """Signals are noted. Only the main thread hears them: any other has nothing to wait for."""
    asked = Asked()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, asked.hear) for number in _NUMBERS}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: it was not Python that set it


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Signals wait for the `heed` that this yields, at the latest for the end: it raises KeyboardInterrupt then."""
    with heard() as asked:
        yield asked.heed
    asked.heed()
