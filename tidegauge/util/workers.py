"""A map over processes, for work that takes a core each; rare garbage collection; types that long runs share."""

import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Rule of this file: no process is left when the block ends, however it ends, nor when the process that waits for them is
# killed. A program that a worker has started must therefore end by itself when its stdin does.


# Garbage collection that is rare enough for programs that keep millions of objects.
#
# States, traces and reports are values without cycles: reference counts free them. With Python's own thresholds the
# collector took half the time of comparing a transcript with the reference, and a quarter of that of comparing a graph.

THRESHOLDS = (100_000, 50, 100)
"""Of gc.set_threshold, for the three generations."""


def collect_garbage_rarely() -> None:
    """Let Python look for cycles of objects rarely, in this process."""
    gc.set_threshold(*THRESHOLDS)


@contextmanager
def workers(processes: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield a map over so many processes, as ProcessPoolExecutor.map; no process is left after the block."""
    # Every command imports this module, few have a pool to wait for.
    import multiprocessing  # noqa: PLC0415
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415

    from tidegauge.util.python_processes import process_context  # noqa: PLC0415

    pool = ProcessPoolExecutor(processes, mp_context=process_context(), initializer=_begin)
    try:
        yield pool.map
    except BaseException:
        # A worker in the middle of long work would keep the pool from ending.
        for child in multiprocessing.active_children():
            child.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Prepare a worker: garbage collection as in the parent; Ctrl-C is handled by the parent alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_garbage_rarely()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Exit as soon as the parent process has ended, however it ended."""
    from multiprocessing import parent_process  # noqa: PLC0415

    parent = parent_process()
    assert parent is not None
    parent.join()
    # Not sys.exit: in a thread that would end the thread only, and there is nothing to clean up.
    os._exit(1)


# Types that long runs share: the function that gets lines of progress, and the default seed.


Echo = Callable[[str], None]
"""A function that is called with each line of progress."""

DEFAULT_SEED = 20_101
"""The seed of random walks and histories if the user gives none."""
