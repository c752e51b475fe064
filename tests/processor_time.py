"""A bound on the processor time of a block of code."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

TICK = 0.004
"""Seconds: the timer counts in ticks, and rings again after each until somebody leaves a block."""
GRACE = 1.0
"""Seconds after which a block that goes on all the same is ended again."""

_ends: list[float] = []
"""When each of the blocks that are entered ends, by the process's clock, the outermost first. The timer is one for all."""


class _Over(BaseException):
    """The time of a block is over, of all that it is within the outermost; no handler within the block takes it."""

    def __init__(self, block: int) -> None:
        super().__init__(block)
        self.block = block


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Raise TimeoutError when the block takes more of the processor: re looks for signals while it matches, too.

    A block within a block is bounded by both: what it takes is taken of the outer one's time.
    """
    block = len(_ends)
    before = signal.signal(signal.SIGVTALRM, _ring) if block == 0 else None
    try:
        _ends.append(time.process_time() + seconds)
        _wind()
        yield
    except _Over as over:
        if over.block != block:
            raise
        raise TimeoutError(f"expected at most {seconds} s of processor time") from None
    finally:
        del _ends[block:]
        _wind()
        if block == 0:
            signal.signal(signal.SIGVTALRM, before)


def _wind() -> None:
    # Blocks that are shorter than a tick would set the timer back again and again, and it would never ring: look here, too.
    _look()
    signal.setitimer(signal.ITIMER_VIRTUAL, max(min(_ends) - time.process_time(), TICK) if _ends else 0, TICK)


def _ring(_number: int, _frame: object) -> None:
    _look()


def _look() -> None:
    now = time.process_time()
    for block, end in enumerate(_ends):
        if now >= end:
            # Once: the timer rings on while the block is left, and what leaves it must not be interrupted.
            _ends[block] = now + GRACE
            raise _Over(block)
