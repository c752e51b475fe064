"""`python -m tests.fuzz.run [--seed S] [--inputs N] [--first F] [--only NUMBER --keep DIRECTORY]`: the command line,
given anything.

Rules of this file

1. It never ends in a traceback, and never with another exit code than 0 to 3. A fault of the tool that `main` turns into a
   sentence is found all the same.
2. Exit code 0 of `check` means that events were judged and a rule held.
"""

import argparse
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tests.fuzz.inputs import Input, made
from tidegauge.cli.main import FAULT, main

INPUTS = 1_000_000
PROCESSES = 2
BATCH = 250
SCRATCH = Path("/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir())


def written(given: Input, folder: Path) -> list[str]:
    """The files on disk; the command line that finds them."""
    for name, content in given.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return [argument.replace("{}", str(folder)) for argument in given.arguments]


def outcome(given: Input, folder: Path) -> tuple[object, str]:
    """The exit code, and what is wrong with it, if anything."""
    arguments = written(given, folder)
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    code: object
    stdin, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(next(iter(given.files.values()), b"")))
    try:
        # a path without a name is where we stand: what is there must not decide what an input does
        with chdir(folder), redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("error")
            code = main(arguments)
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # that is what is looked for
        return None, traceback.format_exc()
    finally:
        sys.stdin = stdin
    said = err.buffer.getvalue().decode()  # type: ignore[attr-defined]
    if FAULT in said:
        return code, said.strip()
    if code not in (0, 1, 2, 3):
        return code, f"exit code {code}"
    if code == 0 and arguments[0] == "check" and not {"--help", "--json-schema"} & set(arguments):
        report = out.buffer.getvalue().decode()  # type: ignore[attr-defined]
        if not (_checked(report) if "--json" in arguments else _checked_as_text(report)):
            return code, f"exit code 0, and nothing was checked: {report[-200:]!r}"
    return code, ""


def _checked(report: str) -> bool:
    try:
        found = json.loads(report)
        return bool(found["events"]) and any(rule["held"] for rule in found["rules"])
    except (ValueError, KeyError, TypeError):
        return False


def _checked_as_text(report: str) -> bool:
    passed = re.search(r"^PASS: ([\d,]+) rules hold \(.* ([\d,]+) events", report, re.MULTILINE)
    return passed is not None and "0" not in passed.groups()


def batch(first: int, seed: int, last: int) -> tuple[Counter[str], list[str]]:
    """The inputs from `first` on: how they ended, and those that are wrong."""
    codes: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(first, min(first + BATCH, last)):
        folder = Path(tempfile.mkdtemp(prefix=f"{_folder(seed)}{number}-", dir=SCRATCH))
        try:
            code, fault = outcome(made(seed, number), folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        codes[str(code)] += 1
        if fault:
            wrong.append(f"input {number}: {fault.replace(str(folder), '')}")
    return codes, wrong


def _folder(seed: int) -> str:
    """How the folder of an input begins. Of one that ends the process it is all that is left, and names it."""
    return f"fuzz-{os.getppid()}-{seed}-"


def _ended(seed: int) -> Iterator[str]:
    """The inputs that were tried when a process ended: one of them did it."""
    for folder in sorted(SCRATCH.glob(f"fuzz-{os.getpid()}-{seed}-*")):
        yield f"input {folder.name.split('-')[3]}: the process ended, with this one or another that was tried beside it"
        shutil.rmtree(folder, ignore_errors=True)


def batches(seed: int, first: int, inputs: int, processes: int) -> Iterator[tuple[Counter[str], list[str]]]:
    """All of them from `first` on, in order."""
    firsts = range(first, inputs, BATCH)
    if processes == 1:
        yield from map(partial(batch, seed=seed, last=inputs), firsts)
        return
    # As they were before Python 3.14: they have what this process has.
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        yield from pool.map(partial(batch, seed=seed, last=inputs), firsts)


def run(arguments: Sequence[str]) -> int:
    """Try every input; 1 when one is wrong."""
    parser = argparse.ArgumentParser(description="the command line, given anything")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=INPUTS)
    parser.add_argument("--first", type=int, default=0, help="go on from this one, where a run was broken off")
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--only", type=int, help="the number of one input")
    parser.add_argument("--keep", type=Path, help="with --only: write its files here and print its command line")
    chosen = parser.parse_args(arguments)
    if chosen.only is not None:
        folder = chosen.keep or Path(tempfile.mkdtemp(prefix="fuzz-"))
        folder.mkdir(parents=True, exist_ok=True)
        given = made(chosen.seed, chosen.only)
        print("tidegauge", *(repr(argument) for argument in written(given, folder)))
        print(*outcome(given, folder))
        return 0
    started, codes, wrong, done = time.monotonic(), Counter[str](), 0, 0
    try:
        for of_batch, faults in batches(chosen.seed, chosen.first, chosen.inputs, chosen.processes):
            codes += of_batch
            wrong += len(faults)
            done += of_batch.total()
            for fault in faults:
                print(fault, flush=True)
            if done % (40 * BATCH) == 0:
                print(f"{done:,} inputs, {time.monotonic() - started:.0f} s, {wrong} wrong", flush=True)
    except BrokenProcessPool:
        for fault in _ended(chosen.seed):
            print(fault, flush=True)
            wrong += 1
    except KeyboardInterrupt:
        print("stopped", flush=True)  # what was tried until then counts
    ended = ", ".join(f"exit code {code}: {count:,}" for code, count in sorted(codes.items()))
    seconds = time.monotonic() - started
    print(f"seed {chosen.seed}: {done:,} inputs from {chosen.first:,} on in {seconds:.0f} s, {wrong} wrong; {ended}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
