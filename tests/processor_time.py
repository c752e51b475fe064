"""A bound on the processor time of a block of code."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Raise TimeoutError when the block takes more of the processor: re looks for signals while it matches, too."""

    def over(_number: int, _frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, over)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
