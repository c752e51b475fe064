"""`python -m tests.fuzz.responses [--seed S] [--inputs N] [--only NUMBER]`: a driven program that writes anything.

Rules of this file

1. The program is the reference, but for some of its lines: other bytes, another value, a line too many, none, the end. What
   it does follows from a seed and its number. Half of the programs are wrong once, half are wrong the same way each time.
2. It runs in this process in the place of a started one: all that lies above the pipes is what `tidegauge drive` runs. What
   a program can do to a pipe is in tests/drive/transports/test_stdio.py.
3. It is blamed, or what it reports is compared, and nothing else happens. Of one in WHOLE differences are shrunk and told.
"""

import argparse
import json
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tests.fuzz.inputs import changed_bytes, changed_value
from tidegauge.drive.broker.contract import VERSION, Opening
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.state import ReferenceBroker, opened, report
from tidegauge.drive.broker.steps import EVERYTHING, step_of
from tidegauge.drive.contract import frozen
from tidegauge.drive.paths.selection import smoke_case
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.run import run, text_of
from tidegauge.drive.transports.lines import DrivenProgramError, json_line
from tidegauge.drive.transports.stdio import LONGEST_LINE, StdioNode
from tidegauge.impl.profiles import FETCH_TRUNCATION

INPUTS = 100_000
WHOLE = 100
LINES = 14
"""About as many as the ten steps are answered with."""

HELLO = json_line({"contract": VERSION, "name": "x", "can": sorted(EVERYTHING.can), "reports": sorted(EVERYTHING.reports)})


class Garbled:
    """The reference as a driven program with some lines wrong. tidegauge.drive.transports.stdio.RunningProgram"""

    def __init__(self, seed: int, number: int) -> None:
        self._name, self._lines, self._over = f"{seed}/{number}", 0, False
        chosen = random.Random(self._name)
        self._wrong_at = chosen.randrange(LINES) if chosen.random() < 0.5 else None
        self._replicas: dict[int, ReferenceBroker] = {}

    def exchange(self, given: bytearray, left: float) -> bytes | None:  # noqa: ARG002
        """Answer all that is given. With nothing to answer it ends: who waits for it would wait for ever."""
        if self._over or not given:
            return None
        lines = bytes(given).splitlines()
        given.clear()
        return b"".join(self._garbled(self._respond(json.loads(line))) for line in lines)

    def _respond(self, line: dict[str, Any]) -> bytes:
        partition, step = line.get("p"), line.get("step")
        if not isinstance(partition, int):
            return HELLO
        if step == "close":
            del self._replicas[partition]
            return b""
        if step == "open":
            opening = Opening(frozen(line["peers"]), frozen(line["min_insync_replicas"]))
            self._replicas[partition] = opened(opening, FETCH_TRUNCATION)
            return json_line({"p": partition, **report(self._replicas[partition])})
        self._replicas[partition], said = reference().take_or_refuse(self._replicas[partition], step_of(line))
        return json_line({"p": partition, **said})

    def _garbled(self, line: bytes) -> bytes:
        at, self._lines = self._lines, self._lines + bool(line)
        chosen = random.Random(f"{self._name}/{at if self._wrong_at is not None else line!r}")
        if not line or (at != self._wrong_at if self._wrong_at is not None else chosen.random() > 1 / LINES):
            return line
        return chosen.choice(CHANGES)(self, chosen, line)

    def _ends(self, chosen: random.Random, line: bytes) -> bytes:
        self._over = True
        return line[: chosen.randrange(len(line))]

    def last_words(self) -> str:
        """It has none."""
        return ""

    def how_it_ended(self) -> str:
        """As little as can be said."""
        return "it ended"

    def close(self, patience: float) -> None:
        """Nothing is left of it."""

    def kill(self) -> None:
        """Nothing is left of it."""


Change = Callable[[Garbled, random.Random, bytes], bytes]


def _value(_: Garbled, chosen: random.Random, line: bytes) -> bytes:
    return json.dumps(changed_value(chosen, json.loads(line))).encode() + b"\n"


CHANGES: Sequence[Change] = (
    *(_value, _value, _value, _value),
    lambda _, chosen, line: changed_bytes(chosen, line),
    lambda _, chosen, line: changed_bytes(chosen, line[:-1]) + b"\n",
    lambda _, chosen, __: chosen.randbytes(chosen.randrange(40)) + b"\n",
    lambda _, chosen, line: line * chosen.choice((2, 3, 100)),
    lambda _, chosen, __: b"\n" * chosen.randrange(3),
    lambda _, chosen, line: b"[" * chosen.choice((1, 2000, LONGEST_LINE // 100)) + line,
    Garbled._ends,
)


def outcome(seed: int, number: int) -> tuple[str, str]:
    """How a program ended: blamed, differs, conforms; and what is wrong with that, if anything."""
    began = time.monotonic()
    try:
        with StdioNode(["x"], launch=lambda _: Garbled(seed, number)) as node:
            cases = [smoke_case(FETCH_TRUNCATION, node.capabilities)]
            if number % WHOLE == 0:
                shown = run(node, cases, reference(FETCH_TRUNCATION))
                text_of(shown)
                played = shown.played
            else:
                played = play(node, cases, reference())
    except DrivenProgramError as blamed:
        says = str(blamed)
        complete = says.startswith("the driven program: expected") and "; seen " in says and len(says) < 2000
        return "blamed", "" if complete else says
    except BaseException:  # that is what is looked for
        return "raised", traceback.format_exc()
    if played.steps > 1 + len(cases[0].path):
        return "conforms", f"{played.steps} steps of {1 + len(cases[0].path)}"
    if time.monotonic() - began > 60:
        return "late", f"{time.monotonic() - began:.0f} s"
    return ("differs" if played.differences else "conforms"), ""


def batch(seed: int, numbers: Sequence[int]) -> tuple[Counter[str], list[str]]:
    """How the programs of these numbers ended, and which of them wrongly."""
    ended: Counter[str] = Counter()
    wrong = []
    for number in numbers:
        how, fault = outcome(seed, number)
        ended[how] += 1
        if fault:
            wrong.append(f"program {number}: {fault}")
    return ended, wrong


def main(arguments: Sequence[str]) -> int:
    """Drive every program; 1 when one is not treated as it should be."""
    parser = argparse.ArgumentParser(description="a driven program that writes anything")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=INPUTS)
    parser.add_argument("--only", type=int, help="the number of one program")
    options = parser.parse_args(arguments)
    began = time.monotonic()
    numbers = range(options.inputs) if options.only is None else [options.only]
    ended, wrong = batch(options.seed, numbers)
    for fault in wrong:
        print(fault)
    counts = ", ".join(f"{how}: {count:,}" for how, count in sorted(ended.items()))
    print(
        f"seed {options.seed}: {len(numbers):,} programs in {time.monotonic() - began:.0f} s, {len(wrong)} wrong; {counts}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
