"""How fast the cores are while something runs: others on the same host slow them down, and no load average tells of it.

Rules of this file

1. On each core a loop is timed once a second, by the processor's time: to wait for the core is not counted, what the core
   is slowed down by is.
2. The best pace is that of the fastest twentieth of the same run: cores that were slow all the time look quiet.
3. What quiet cores would have needed is the time that passed times the mean of best / seen. A loop of Python stands for all
   that a run does, so it is an estimate.
"""

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from types import TracebackType

LOOPS, WARM = 100_000, 20_000
EVERY = 1.0
"""In seconds; a sample takes less than a hundredth of that."""

FASTEST = 20


def quiet_share(samples: Sequence[float]) -> float:
    """Which part of the work of quiet cores the cores have done, by how long the loop took each time."""
    best = sorted(samples)[len(samples) // FASTEST]
    return sum(min(1.0, best / seen) for seen in samples) / len(samples)


class Pace:
    """Samples all cores as long as its block runs; then they are in `samples`, in seconds."""

    def __init__(self) -> None:
        self.samples: list[float] = []
        self._running: list[subprocess.Popen[str]] = []

    def __enter__(self) -> "Pace":
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
        for core in cores:
            command = [sys.executable, "-S", __file__, str(core)]
            self._running.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    start_new_session=True,  # Ctrl-C is for the job; these end with their input
                )
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for running in self._running:
            said, _ = running.communicate()  # its input ends, and so does it
            self.samples += map(float, said.split())

    @property
    def share(self) -> float:
        return quiet_share(self.samples)


def timed() -> float:
    """The loop, once, on a core that has just done some of it."""
    for _ in range(WARM):
        pass
    began = time.thread_time()
    for _ in range(LOOPS):
        pass
    return time.thread_time() - began


def sample(core: int) -> None:
    """Until the input ends."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    samples = [timed()]
    while not select.select([sys.stdin], [], [], EVERY)[0]:
        samples.append(timed())
    sys.stdout.write("\n".join(map(str, samples)))


if __name__ == "__main__":
    sample(int(sys.argv[1]))
