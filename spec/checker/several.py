"""Several runs of TLC, two at a time and started warm, in the order given; none is left when they are over.

Rule of this file: Ctrl-C is heard by the thread that waits for them, and by none of theirs. So `stop` ends what runs.
"""

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
class Start:
    """How one of several runs starts: by which Java, with which flags of warm_start, and what ends it."""

    java: Java | None = None
    warm: tuple[str, ...] = ()
    stop: threading.Event = field(default_factory=threading.Event)

    def options(self, limits: Limits) -> dict[str, Any]:
        """What run_tlc is given besides its limits: the flags are for brief runs."""
        return {"limits": limits, "java": self.java, "jvm_flags": self.warm if limits.brief else (), "stop": self.stop}


ALONE = Start()
"""A run that is the only one."""


@contextmanager
def several(run: Callable[[T, Start], R], every: Sequence[T]) -> Iterator[Iterator[R]]:
    """What `run` makes of each, in order; the block must read it to its end, or what is left is ended."""
    java = find_java()
    with tempfile.TemporaryDirectory(prefix="tidegauge-warm-") as directory:
        warm = warm_start(java, Path(directory)) if len(every) >= WORTH_WARMING else ()
        start = Start(java, warm)
        pool = ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1))
        try:
            yield pool.map(lambda one: run(one, start), every)
        finally:
            start.stop.set()
            pool.shutdown(cancel_futures=True)
