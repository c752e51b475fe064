"""Read what TLC says in its tool mode: numbered messages.

Text is looked at only inside messages of known numbers (tlc2.output.EC). Everything else is kept for the error report.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from tidegauge.spec.checker.values import parse_state


class Outcome(Enum):
    """How a run of TLC ended."""

    SUCCESS = "success"
    SAFETY = "safety failure"
    LIVENESS = "liveness failure"
    DEADLOCK = "deadlock"
    ERROR = "error"


@dataclass(frozen=True)
class Progress:
    """What TLC says of itself from time to time; -1 where it did not."""

    depth: int
    generated: int
    distinct: int
    queue: int


@dataclass(frozen=True)
class TlcStep:
    """One state of a counterexample and the action that led to it; "" for the first."""

    action: str
    state: Mapping[str, Any]


_SUCCESS = 2193
_SAFETY = frozenset({2107, 2110, 2112, 2113, 2146})
_TEMPORAL = 2116
_DEADLOCK = 2114
_BEHAVIOR = 2121
_STATE = 2217
_STATS = 2199
_DEPTH = 2194
_PROGRESS = 2200
_SIMULATED = 2209  # a simulation ends with its last progress: it finds nothing out, so it has no message of success
_VERSION = 2262
_FINISHED = 2186
_ERROR_CLASS = "1"

_START = re.compile(r"@!@!@STARTMSG (-?\d+):?(\d*) @!@!@")
_END = re.compile(r"@!@!@ENDMSG -?\d+ @!@!@")
_COUNTED = re.compile(r"([\d,]+) (?:states generated|distinct states|states left)")
_KEPT_LINES = 400

OnProgress = Callable[[Progress], None]


@dataclass
class TlcTranscript:
    """Everything TLC said, sorted as it came."""

    outcome: Outcome | None = None
    property: str = ""
    version: str = ""
    counts: Progress = Progress(-1, -1, -1, -1)
    depth: int = -1
    steps: list[TlcStep] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    """lines outside any message that nobody asked for: the parser speaks so"""
    over: bool = False
    """the last message has come"""

    def take(self, number: int, kind: str, text: str, on_progress: OnProgress | None) -> None:
        """Sort one message in."""
        if number == _STATE:
            head, _, body = text.partition("\n")
            action = re.match(r"\d+: <(\w+) line", head)
            self.steps.append(TlcStep(action[1].removeprefix("MC") if action else "", parse_state(body)))
        elif number == _STATS:
            self.counts = _counts(text)
        elif number == _DEPTH:
            self.depth = int(re.sub(r"\D", "", text))
        elif number == _PROGRESS:
            depth = re.search(r"Progress\(([\d,]+)\)", text)
            if on_progress and depth:
                on_progress(_counts(text, int(depth[1].replace(",", ""))))
        elif number in {_SUCCESS, _SIMULATED}:
            self.outcome = self.outcome or Outcome.SUCCESS
        elif number == _VERSION:
            self.version = text.strip()
        elif number == _FINISHED:
            self.over = True
        elif number in _SAFETY:
            named = re.search(r"(?:Invariant|property) (?!line \d)(\w+)", text)
            self.outcome, self.property = Outcome.SAFETY, named[1] if named else ""
        elif number == _TEMPORAL:
            self.outcome = Outcome.LIVENESS
        elif number == _DEADLOCK:
            self.outcome = Outcome.DEADLOCK
        elif kind == _ERROR_CLASS and number != _BEHAVIOR:
            self.errors.append(text)


def _counts(text: str, depth: int = -1) -> Progress:
    numbers = [int(number.replace(",", "")) for number in _COUNTED.findall(text)]
    return Progress(depth, *numbers) if len(numbers) == 3 else Progress(depth, -1, -1, -1)


@dataclass
class _Message:
    number: int
    kind: str
    lines: list[str] = field(default_factory=list)


def read_transcript(lines: Iterable[str], on_progress: OnProgress | None) -> TlcTranscript:
    """Sort TLC's output, up to its last message.

    A message may hold another one, even from the middle of a line on: an error quotes its cause. The text of the inner one
    is then part of the outer one.
    """
    transcript = TlcTranscript()
    open_messages: list[_Message] = []
    for raw in lines:
        line = raw.rstrip("\r\n")
        start = _START.search(line) if "@!@!@" in line else None
        if start:
            if open_messages and start.start():
                open_messages[-1].lines.append(line[: start.start()])
            open_messages.append(_Message(int(start[1]), start[2]))
        elif open_messages and _END.match(line):
            message = open_messages.pop()
            if open_messages:
                open_messages[-1].lines += message.lines
            else:
                transcript.take(message.number, message.kind, "\n".join(message.lines), on_progress)
                if transcript.over:
                    break
        elif open_messages:
            open_messages[-1].lines.append(line)
        elif len(transcript.loose) < _KEPT_LINES:
            transcript.loose.append(line)
    return transcript


_NOISE = re.compile(r"Parsing file|Semantic processing|Residual stack|\s+at |\S+ starting at line|\s*$")
_PLACES = (
    (re.compile(r"line (\d+), col (\d+) to line \d+, col \d+ of module (\w+)"), "{2}.tla:{0}:{1}"),
    (re.compile(r"Line (\d+), column (\d+) to line \d+, column \d+ in (\w+)\s*\Z"), "{2}.tla:{0}:{1}"),
    (re.compile(r"at line (\d+), column (\d+).*parsing TLA\+ spec in file (\w+)", re.DOTALL), "{2}.tla:{0}:{1}"),
    (re.compile(r"configuration file at line (\d+)"), "line {0} of the cfg"),
)


def explain(transcript: TlcTranscript, work: Path) -> str:
    """What TLC or its parser complained about, headed by where it says the fault is."""
    said = [line for line in transcript.loose if not _NOISE.match(line)]
    errors = list(dict.fromkeys(transcript.errors))
    text = "\n".join([*said, *errors]).strip().replace(f"{work}/", "")
    for pattern, place in _PLACES:
        found = pattern.search(text)
        if found:
            return f"{place.format(*found.groups())}: {text}"
    return text or "TLC ended without a verdict and without a message"
