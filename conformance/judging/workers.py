"""A map over processes, for what takes a core each.

Rule of this file: none of them is left when the block is over, however it ends. So none may have started another program.
"""

import multiprocessing
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any


@contextmanager
def workers(processes: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """A map over processes; none of them is left when it ends, however it ends."""
    pool = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"), initializer=_deaf)
    try:
        yield pool.map
    except BaseException:
        for child in multiprocessing.active_children():
            child.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _deaf() -> None:
    """Ctrl-C is for the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
