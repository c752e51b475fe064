"""The time of a process: ours, where a C compiler can make what is preloaded for that; else the machine's.

Rules of this file

1. The library is made of clock.c, once, in the user's cache under the text's own hash: nothing binary is shipped.
2. A process has two clocks: a monotonic one, by which tasks come and sessions end, and the time of day, by which a leader
   knows when a follower was there. Each is moved by itself.
3. Without a compiler, or where nothing can be preloaded, time passes by waiting: a controller's sessions are short then, and
   an expiry costs a little more than one of them.
"""

import hashlib
import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from tidegauge.drive.cache import cache

SOURCE = Path(__file__).with_name("clock.c")
COMPILERS = ("cc", "gcc", "clang")
"""The first one on PATH is taken."""
NANOSECONDS = 1_000_000_000
_OFFSETS = struct.Struct("<qq")

MOVED_SESSION, REAL_SESSION = 400.0, 1.0
"""How long a session lasts, in seconds of the process: longer than any path takes. And not more, for a process makes up for
each move: its histograms are made anew every hour (com.yammer.metrics)."""


class Clock(Protocol):
    """The time that a process has."""

    session: float

    @property
    def environment(self) -> Mapping[str, str]:
        """What the process is started with."""

    def now(self) -> float:
        """What its monotonic clock says, in seconds."""

    def advance(self, seconds: float) -> None:
        """Let that much time pass."""

    def close(self) -> None:
        """Nobody looks at it any more."""


class RealClock:
    """The machine's time."""

    session = REAL_SESSION
    environment: Mapping[str, str] = MappingProxyType({})

    def now(self) -> float:
        """The machine's monotonic clock."""
        return time.monotonic()

    def advance(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def close(self) -> None:
        """There is nothing to close."""


class MovedClock:
    """The machine's clocks and an offset to each."""

    session = MOVED_SESSION

    def __init__(self, library: Path) -> None:
        self._offsets = [0, 0]
        self._file = place = tempfile.TemporaryFile()  # noqa: SIM115  it lasts as long as the clock
        place.write(_OFFSETS.pack(0, 0))
        place.flush()
        self._shared = mmap.mmap(place.fileno(), _OFFSETS.size)
        where = f"/proc/{os.getpid()}/fd/{place.fileno()}"  # no folder of ours is left behind, whatever happens to us
        self.environment: Mapping[str, str] = {"LD_PRELOAD": str(library), "TIDEGAUGE_CLOCK": where}

    def now(self) -> float:
        """The machine's monotonic clock, moved."""
        return time.monotonic() + self._offsets[0] / NANOSECONDS

    def advance(self, seconds: float) -> None:
        """Move the monotonic clock; the process notices within moments."""
        self._add(0, seconds)

    def advance_date(self, seconds: float) -> None:
        """Move the time of day."""
        self._add(1, seconds)

    def _add(self, clock: int, seconds: float) -> None:
        self._offsets[clock] += int(seconds * NANOSECONDS)
        self._shared[:] = _OFFSETS.pack(*self._offsets)

    def close(self) -> None:
        """Give the file back."""
        self._shared.close()
        self._file.close()


class NoLibraryError(Exception):
    """There is no library to preload; why."""


def clock() -> Clock:
    """A clock for one process."""
    try:
        return MovedClock(made())
    except NoLibraryError:
        return RealClock()


def made(source: Path = SOURCE) -> Path:
    """The library to preload, made if it is not there yet. Raises NoLibraryError where that cannot be."""
    if sys.platform != "linux":
        raise NoLibraryError(f"expected Linux, where a library can be preloaded; seen {sys.platform}")
    root = cache("clock")
    place = root / f"{hashlib.sha256(source.read_bytes()).hexdigest()[:20]}.so"
    if place.is_file():
        return place
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise NoLibraryError(f"expected {', '.join(COMPILERS[:-1])} or {COMPILERS[-1]} on PATH; seen none of them")
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".clock-", dir=root) as work:
        beside = Path(work) / place.name
        command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(beside), str(source), "-ldl", "-lpthread"]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
            raise NoLibraryError(f"expected that {compiler} compiles {source.name}; seen: {said or done.returncode}")
        beside.replace(place)
    return place
