"""Defer Ctrl-C and SIGTERM until a safe point. A second signal is not deferred."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class InterruptFlag:
    """Whether a signal has asked the program to end; false until one arrives."""

    def __init__(self) -> None:
        """Begin without a signal."""
        self._set = False

    def note(self, _number: int, _frame: FrameType | None) -> None:
        """Note the first signal, as Python's handler of it, and let the next one interrupt at once."""
        self._set = True
        # Whoever presses Ctrl-C a second time does not want to wait for a safe point.
        for number in _NUMBERS:
            signal.signal(number, signal.default_int_handler)

    def __bool__(self) -> bool:
        return self._set

    def heed(self) -> None:
        """Raise KeyboardInterrupt if a signal was noted since the last call."""
        if self._set:
            self._set = False
            raise KeyboardInterrupt


@contextmanager
def noted_interrupts() -> Iterator[InterruptFlag]:
    """Note Ctrl-C and SIGTERM within the block instead of being interrupted by them; yield the flag that says so."""
    flag = InterruptFlag()
    # Python delivers signals to the main thread only: in any other there is nothing to defer.
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return
    before = {number: signal.signal(number, flag.note) for number in _NUMBERS}
    try:
        yield flag
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: it was not Python that set it


@contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Defer signals; calls of the yielded function, and the end of the block, raise KeyboardInterrupt if there was one."""
    with noted_interrupts() as flag:
        yield flag.heed
    flag.heed()
