"""Run TLC several times, two at a time, from an archive of loaded classes."""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tidegauge.spec.checker.java import Java, find_java
from tidegauge.spec.checker.tlc import Limits
from tidegauge.spec.checker.warm_start import warm_start

T = TypeVar("T")
R = TypeVar("R")

AT_ONCE = 2  # a run is one worker, so that counterexamples are shortest and counts repeat
WORTH_WARMING = 16  # so many runs save more than the archive costs


@dataclass(frozen=True)
class TlcStart:
    """How one of several runs starts: the Java, the flags of warm_start, and the event that ends the run."""

    java: Java | None = None
    warm: tuple[str, ...] = ()
    stop: threading.Event = field(default_factory=threading.Event)

    def options(self, limits: Limits) -> dict[str, Any]:
        """Return the arguments of run_tlc. The flags are for brief runs only."""
        return {"limits": limits, "java": self.java, "jvm_flags": self.warm if limits.brief else (), "stop": self.stop}


ONLY_RUN = TlcStart()
"""The start of a run that is the only one."""


@contextmanager
def run_several(run: Callable[[T, TlcStart], R], every: Sequence[T]) -> Iterator[Iterator[R]]:
    """Yield the results of `run` on each item of `every`, in order. Leaving the block ends the runs that are left."""
    java = find_java()
    with tempfile.TemporaryDirectory(prefix="tidegauge-warm-") as directory:
        warm = warm_start(java, Path(directory)) if len(every) >= WORTH_WARMING else ()
        start = TlcStart(java, warm)
        pool = ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1))
        try:
            yield pool.map(lambda item: run(item, start), every)
        finally:
            # Ctrl-C reaches only the thread that waits for the runs, so their threads are told by an event.
            start.stop.set()
            pool.shutdown(cancel_futures=True)
