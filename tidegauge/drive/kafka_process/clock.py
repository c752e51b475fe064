"""The clocks of a process of Kafka: the machine's, or the machine's with offsets that the driver changes (a *moved* clock).

A moved clock takes a C library that the process preloads. With it a session expires without waiting for it.

Rules of this file

1. The library is built from clock.c, once, in the user's cache under the hash of its source: nothing binary is shipped.
2. A process has two clocks: a monotonic one, by which tasks run and sessions expire, and the time of day, by which a leader
   knows when a follower last fetched. Each is moved by itself.
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

from tidegauge.util.files import cache

SOURCE = Path(__file__).with_name("clock.c")
COMPILERS = ("cc", "gcc", "clang")
"""The first one on PATH is used."""
NANOSECONDS = 1_000_000_000
MONOTONIC, TIME_OF_DAY = 0, 1
"""Positions of the two offsets in the shared file (clock.c)."""
_OFFSETS = struct.Struct("<qq")
"""The content of that file: both offsets, in nanoseconds."""

MOVED_SESSION, REAL_SESSION = 400.0, 1.0
"""Seconds of the process that a session lasts: longer than any path takes. Not much longer, because the process catches up
on each move: its histograms are renewed every hour (com.yammer.metrics)."""


class Clock(Protocol):
    """The clocks of a process. `session`: how many seconds, by its own clock, the process's sessions are to last."""

    session: float

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that the process is started with."""

    def now(self) -> float:
        """Return the time of its monotonic clock, in seconds."""

    def advance(self, seconds: float) -> None:
        """Let time pass for the process."""

    def close(self) -> None:
        """Release what the clock needs."""


class RealClock:
    """The machine's clocks: time passes by waiting."""

    session = REAL_SESSION
    environment: Mapping[str, str] = MappingProxyType({})

    def now(self) -> float:
        """Return the time of the machine's monotonic clock."""
        return time.monotonic()

    def advance(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def close(self) -> None:
        """Do nothing: the machine's clocks need nothing."""


class MovedClock:
    """The machine's clocks with an offset to each, shared with the process through a file (clock.c)."""

    session = MOVED_SESSION

    def __init__(self, library: Path) -> None:
        """Make the shared file, with both offsets 0; `library` is what the process has to preload."""
        self._offsets = [0, 0]
        self._file = file = tempfile.TemporaryFile()  # noqa: SIM115  it lasts as long as the clock
        file.write(_OFFSETS.pack(0, 0))
        file.flush()
        self._shared = mmap.mmap(file.fileno(), _OFFSETS.size)
        # An open file without a name in any folder: nothing is left behind, however this process ends.
        path = f"/proc/{os.getpid()}/fd/{file.fileno()}"
        self.environment: Mapping[str, str] = {"LD_PRELOAD": str(library), "TIDEGAUGE_CLOCK": path}

    def now(self) -> float:
        """Return the time of the process's monotonic clock."""
        return time.monotonic() + self._offsets[MONOTONIC] / NANOSECONDS

    def advance(self, seconds: float) -> None:
        """Move the monotonic clock; the process notices within 20 ms (NOTICED_AFTER in clock.c)."""
        self._add(MONOTONIC, seconds)

    def advance_date(self, seconds: float) -> None:
        """Move the time of day."""
        self._add(TIME_OF_DAY, seconds)

    def _add(self, clock: int, seconds: float) -> None:
        """Add to the offset of a clock, MONOTONIC or TIME_OF_DAY, and share both offsets with the process."""
        self._offsets[clock] += int(seconds * NANOSECONDS)
        self._shared[:] = _OFFSETS.pack(*self._offsets)

    def close(self) -> None:
        """Close the file."""
        self._shared.close()
        self._file.close()


class NoLibraryError(Exception):
    """There is no library to preload; the message says why."""


def make_clock() -> Clock:
    """Make the clock of one process: a moved one if that is possible."""
    try:
        return MovedClock(build_library())
    except NoLibraryError:
        return RealClock()


def build_library(source: Path = SOURCE) -> Path:
    """Return the library to preload, built unless the cache has it. Raises NoLibraryError where that is not possible."""
    if sys.platform != "linux":
        raise NoLibraryError(f"expected Linux, where a library can be preloaded; seen {sys.platform}")
    try:
        root = cache("clock")
    except RuntimeError as error:
        raise NoLibraryError(f"expected a cache to keep it in; seen: {error}") from error
    library = root / f"{hashlib.sha256(source.read_bytes()).hexdigest()[:20]}.so"
    if library.is_file():
        return library
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        raise NoLibraryError(f"expected {', '.join(COMPILERS[:-1])} or {COMPILERS[-1]} on PATH; seen none of them")
    try:
        root.mkdir(parents=True, exist_ok=True)
        return _compile(compiler, source, library)
    except OSError as error:
        raise NoLibraryError(f"expected a folder that can be written, {root}; seen: {error}") from error


def _compile(compiler: str, source: Path, library: Path) -> Path:
    """Compile `source` to the file `library`; return that. Raises NoLibraryError if it does not compile, OSError."""
    with tempfile.TemporaryDirectory(prefix=".clock-", dir=library.parent) as work:
        # Built in a folder of its own and then renamed: another run never sees half a library.
        temporary = Path(work).resolve() / library.name
        command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(temporary), str(source), "-ldl", "-lpthread"]
        # Not in the driver's working directory, where the linker might find foreign libraries.
        compilation = subprocess.run(command, cwd=work, capture_output=True, check=False)
        if compilation.returncode:
            error = compilation.stderr.decode(errors="replace").strip().partition("\n")[0]
            reason = error or compilation.returncode
            raise NoLibraryError(f"expected that {compiler} compiles {source.name}; seen: {reason}")
        temporary.replace(library)
    return library
