"""`python -m tests.fuzz.search [--coverage] [--seed S] [--inputs N] [--first F] [--only NUMBER] [--keep DIRECTORY]`:
every reader, given changed contents (tests/fuzz/readers.py).

Rules of this file

1. A reader returns or raises what it promises; an input has SECONDS of the processor, all of them MOST_BYTES of memory, and
   none ends the process. What does is shown with its number or its file, and the search goes on.
2. An input is made from a seed and its number. With --coverage Atheris (libFuzzer) makes them: it keeps what reaches code
   that nothing reached before, in the directory, where the next run begins. One that is wrong becomes a test.
"""

import argparse
import faulthandler
import hashlib
import mmap
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

INPUTS = 10_000_000
SECONDS = 5
PATIENCE = 120
"""Seconds after which a reader that waits for something is ended: the processor may be busy with other things."""

MOST_BYTES = 1 << 30
LONGEST = 4000
"""Bytes of an input that Atheris makes: it tries more of shorter ones."""

SCRATCH = "/dev/shm" if Path("/dev/shm").is_dir() else None
BATCH = 1000
SHOWN_EVERY = 50 * BATCH


def _readers() -> Any:
    # Not at the top: what Atheris is to see must be imported after it.
    from tests.fuzz import readers  # noqa: PLC0415

    return readers.READERS


def made(seed: int, number: int) -> tuple[str, bytes]:
    """Return the reader of an input, by its name, and its content."""
    from tests.fuzz.inputs import changed_bytes  # noqa: PLC0415  it imports readers

    readers, chosen = _readers(), random.Random(seed << 40 | number)
    name = list(readers)[number % len(readers)]
    samples = readers[name].samples()
    content = chosen.choice(samples)
    for _ in range(chosen.choice((1, 1, 2, 5))):
        if chosen.random() < 0.8:
            content = changed_bytes(chosen, content)
        else:
            other, at = chosen.choice(samples), chosen.randrange(len(content) + 1)
            begin = chosen.randrange(len(other) + 1)
            content = content[:at] + other[begin : begin + chosen.choice((4, 40, 400))] + content[at:]
    return name, content


def fault(name: str, content: bytes, folder: Path) -> str:
    """Give a reader a content; return what is wrong, or nothing."""
    before = signal.signal(signal.SIGVTALRM, _too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        _readers()[name].read(content, folder)
    except Exception as raised:  # that is what is looked for
        at = raised.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        place = f"{Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}" if at is not None else ""
        return f"{name}: {type(raised).__name__} at {place}: {raised}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return ""


def wrong(seed: int, number: int, folder: Path) -> str:
    """Try the input of a number; return what is wrong with it, or nothing."""
    return fault(*made(seed, number), folder)


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


class Shared:
    """Numbers that outlive the process that writes them: the input at work, how many were tried, how many were wrong."""

    def __init__(self) -> None:
        self._memory, self._form = mmap.mmap(-1, 24), struct.Struct("qqq")

    def __call__(self) -> tuple[int, int, int]:
        """Return the numbers."""
        return self._form.unpack(self._memory[:24])

    def note(self, at: int, tried: int = 0, wrong: int = 0) -> None:
        """Count on, at an input."""
        _, before, wrong_before = self()
        self._memory[:24] = self._form.pack(at, before + tried, wrong_before + wrong)


def in_another(work: Callable[[], object]) -> str:
    """Do something in a process of its own; return how that ended, if not by its own will."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        faulthandler.enable()
        work()
        sys.stdout.flush()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return "" if status == 0 else f"the process ended: {os.waitstatus_to_exitcode(status)}"


def by_number(seed: int, numbers: range, folder: Path, shared: Shared) -> None:
    """Try the inputs of these numbers. One that ends the process costs no other."""

    def work(first: int) -> None:
        for number in range(first, numbers.stop):
            if number % BATCH == 0:
                faulthandler.dump_traceback_later(BATCH * PATIENCE, exit=True)
            if number % SHOWN_EVERY == 0 and number > numbers.start:
                _, tried, faults = shared()
                print(f"seed {seed}: {tried:,} inputs before {number:,}, {faults} wrong", flush=True)
            shared.note(number, tried=1)
            if seen := wrong(seed, number, folder):
                shared.note(number, wrong=1)
                print(f"input {number}: {seen}", flush=True)

    first = numbers.start
    while first < numbers.stop and (ended := in_another(partial(work, first))):
        at, _, _ = shared()
        shared.note(at, wrong=1)
        print(f"input {at}: {ended}", flush=True)
        first = at + 1


def by_coverage(seed: int, inputs: int, keep: Path, folder: Path, shared: Shared) -> None:
    """Search with Atheris, a process for each reader; what was reached, and what was wrong, is kept."""
    import atheris  # noqa: PLC0415  for this way only

    log = (keep / "libfuzzer.log").open("ab")
    os.dup2(log.fileno(), 2)
    with atheris.instrument_imports(include=["tidegauge"], enable_loader_override=False):
        readers = _readers()

    def search(name: str) -> None:
        corpus = keep / name
        corpus.mkdir(exist_ok=True)
        for content in readers[name].samples():
            (corpus / hashlib.sha1(content).hexdigest()).write_bytes(content)
        seen: set[str] = set()

        def one(content: bytes) -> None:
            shared.note(0, tried=1)
            if (what := fault(name, content, folder)) and what[:80] not in seen:
                seen.add(what[:80])
                shared.note(0, wrong=1)
                path = keep / f"wrong-{name}-{hashlib.sha1(content).hexdigest()[:12]}"
                path.write_bytes(content)
                print(f"{path.name}: {what}", flush=True)

        options = {"runs": inputs // len(readers), "seed": seed + 1, "timeout": PATIENCE, "rss_limit_mb": MOST_BYTES >> 20}
        words = [f"-{option}={value}" for option, value in options.items()]
        atheris.Setup(
            ["fuzz", *words, "-max_len=20000", "-len_control=0", f"-artifact_prefix={keep}/ended-{name}-", str(corpus)], one
        )
        atheris.Fuzz()

    for name in readers:
        begun, (_, before, _) = time.monotonic(), shared()
        if ended := in_another(partial(search, name)):
            shared.note(0, wrong=1)
            print(f"{name}: {ended}", flush=True)
        tried = shared()[1] - before
        print(
            f"{name}: {tried:,} inputs in {time.monotonic() - begun:.0f} s, {len(list((keep / name).iterdir()))} kept",
            flush=True,
        )


def run(arguments: Sequence[str]) -> int:
    """Try every input; 1 when one is wrong."""
    parser = argparse.ArgumentParser(description="every reader, given changed contents")
    parser.add_argument("--coverage", action="store_true", help="let Atheris make them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=INPUTS, help="how many from 0 on: also where a run from --first ends")
    parser.add_argument("--first", type=int, default=0, help="go on from this one, where a run was broken off")
    parser.add_argument("--only", type=int, help="the number of one input")
    parser.add_argument("--keep", type=Path, help="with --coverage: what was reached, to go on from")
    chosen = parser.parse_args(arguments)
    if chosen.first >= chosen.inputs:
        parser.error(f"--first: expected less than the {chosen.inputs:,} of --inputs, seen {chosen.first:,}")
    shared, begun = Shared(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tidegauge-fuzz-", dir=SCRATCH) as scratch:
        if chosen.coverage:
            keep = chosen.keep or Path(tempfile.mkdtemp(prefix="tidegauge-coverage-"))
            keep.mkdir(parents=True, exist_ok=True)
            by_coverage(chosen.seed, chosen.inputs, keep, Path(scratch), shared)
        else:
            numbers = range(chosen.first, chosen.inputs) if chosen.only is None else range(chosen.only, chosen.only + 1)
            by_number(chosen.seed, numbers, Path(scratch), shared)
    _, tried, faults = shared()
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if peak > MOST_BYTES:
        faults += 1
        print(f"peak of memory: expected at most {MOST_BYTES:,} bytes, seen {peak:,}")
    seconds = time.monotonic() - begun
    print(f"seed {chosen.seed}: {tried:,} inputs in {seconds:.0f} s, {faults} wrong; peak {peak:,} bytes")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
