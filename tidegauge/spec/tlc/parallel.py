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

from tidegauge.spec.tlc.tlc import Limits, run_tlc
from tidegauge.util.java import Java, find_java

# An archive of loaded classes. Loading them is a quarter to a third of a run of one second; the archive saves most of that.


# Uses every kind of expression and check once, so that the classes that evaluate it are loaded.
_MODULE = r"""---- MODULE WarmUp ----
EXTENDS Integers, Sequences, FiniteSets, TLC
CONSTANT b1
VARIABLES log, up
vars == <<log, up>>
Kind(b) == CASE up[b] -> [type |-> "up", epoch |-> 0] [] OTHER -> [type |-> "down", epoch |-> -1]
Init == log = [b \in {b1} |-> <<>>] /\ up = [b \in {b1} |-> TRUE]
Write(b) == \E n \in 0..1 : /\ up[b]
                            /\ log' = [log EXCEPT ![b] = Append(@, n)]
                            /\ UNCHANGED up
Next == \E b \in {b1} : Write(b)
Spec == Init /\ [][Next]_vars
Short == \A b \in {b1} : Kind(b).type = "up" /\ Cardinality({i \in 1..Len(log[b]) : log[b][i] = 1}) < 2
Grows == [][Len(log'[b1]) > Len(log[b1])]_vars
====
"""
_CONFIG = "SPECIFICATION Spec\nCONSTANT b1 = b1\nINVARIANT Short\nPROPERTY Grows\n"


def warm_start(java: Java, directory: Path) -> tuple[str, ...]:
    """Make an archive of TLC's classes; return the flags of later runs, none where the runtime makes no archive.

    For brief runs only: an archive fits the garbage collector that it was made with.
    """
    archive = directory / "tlc.archive"
    make, use = java.archive_flags
    flags = (f"-XX:{make}={archive}",)
    # The JVM writes the archive when it exits by itself.
    limits = Limits(brief=True, until_exit=True)
    run_tlc("WarmUp", _CONFIG, extra_modules={"WarmUp.tla": _MODULE}, limits=limits, java=java, jvm_flags=flags)
    return (f"-XX:{use}={archive}",) if archive.is_file() else ()


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
