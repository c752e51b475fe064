"""A map over processes, for what takes a core each.

Rule of this file: none of them is left when the block is over, however it ends, nor when the process that waits for them is
killed. So a program that one has started must end by itself when its stdin does.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from tidegauge.conformance.judging.garbage import collect_garbage_rarely


@contextmanager
def workers(processes: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """A map over processes; none of them is left when it ends, however it ends."""
    pool = ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)
    try:
        yield pool.map
    except BaseException:
        for child in multiprocessing.active_children():
            child.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """As the process that started this one, but for Ctrl-C, which is for that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_garbage_rarely()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Nobody wants what is under way any more; and nothing here has to be put in order first."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
