"""Read what TLC prints: the numbered messages of its tool mode, and the lines of TLC!PrintT.

A message has a number (tlc2.output.EC), a class (1 is an error) and lines of text, between a STARTMSG and an ENDMSG mark. A
`TlcTranscript` collects the messages of a run. TLA+ values in them become Python values (the table below). Of a
counterexample each state is a message of its own; its text is the action that led to it, and the state.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from tidegauge.util.errors import SpecError

# Read a TLA+ value as TLC prints it.
#
# | TLA+ | Python |
# |---|---|
# | 7, TRUE, "text" | int, bool, str |
# | a model value | ModelValue |
# | <<a, b>> | tuple |
# | {a, b} | frozenset |
# | [field |-> a], (x :> a @@ y :> b) | dict |
#
# A frozenset cannot hold dicts, so a set of records or functions becomes a tuple of its members.


_TOKEN = re.compile(r'\s*(?:(-?\d+)|"((?:[^"\\]|\\.)*)"|(<<|>>|\|->|:>|@@|\.\.|[\[\](){},])|([A-Za-z_]\w*))')


LARGEST_SPAN = 1_000_000
"""Numbers of an interval: as many as TLC itself enumerates of a set (tlc2.TLCGlobals.setBound)."""


@dataclass(frozen=True)
class ModelValue:
    """A TLA+ model value; equal only to itself."""

    name: str


class _Reader:
    """A recursive-descent parser of one TLA+ value, which looks ahead one token.

    `kind` of the next token: "int", "str" (without its quotes), "mark" (brackets, commas and operators), "name", or "end".
    A method parses something and goes to the token behind it; what it does not expect raises ValueError.
    """

    def __init__(self, text: str) -> None:
        """Begin at the first token of a value that TLC printed."""
        self.text = text
        self.at = 0
        self.kind = ""
        self.token = ""
        self.advance()

    def advance(self) -> None:
        """Go to the next token. Raises ValueError for what begins none."""
        token = _TOKEN.match(self.text, self.at)
        if token is None:
            if self.text[self.at :].strip():
                raise ValueError(f"expected a TLA+ value, seen {self.text[self.at : self.at + 40]!r}")
            self.kind, self.token = "end", ""
            return
        self.at = token.end()
        # The groups of _TOKEN, of which one matches.
        self.kind = ("int", "str", "mark", "name")[(token.lastindex or 1) - 1]
        self.token = token[token.lastindex or 1]

    def take(self, mark: str) -> None:
        """Go past a mark that must come next. Raises ValueError for anything else."""
        if self.kind != "mark" or self.token != mark:
            raise ValueError(f"expected {mark!r} before offset {self.at}, seen {self.token!r}")
        self.advance()

    def sees(self, mark: str) -> bool:
        """Return whether this mark comes next."""
        return self.kind == "mark" and self.token == mark

    def members(self, close: str) -> list[Any]:
        """Read values with commas between, up to the mark `close`, and go past it; the opening mark has been read."""
        members: list[Any] = []
        while not self.sees(close):
            if members:
                self.take(",")
            members.append(self.value())
        self.advance()
        return members

    def value(self) -> Any:
        """Parse one value and advance past it. Raises ValueError."""
        kind, token = self.kind, self.token
        if kind == "end":
            raise ValueError("expected a TLA+ value, seen the end of the text")
        self.advance()
        # An int may begin an interval: TLC prints a..b where it has not enumerated a set.
        if kind == "int":
            return self.span(int(token))
        if kind == "str":
            return re.sub(r"\\(.)", r"\1", token)
        if kind == "name":
            # Any other name is a model value: TLC prints no strings without quotes.
            return {"TRUE": True, "FALSE": False}.get(token, ModelValue(token))
        if token == "<<":
            return tuple(self.members(">>"))
        if token == "{":
            inside = self.members("}")
            # A dict has no hash, so a set of records becomes a tuple.
            return tuple(inside) if any(isinstance(member, dict) for member in inside) else frozenset(inside)
        if token == "[":
            return self.record()
        if token == "(":
            return self.function()
        raise ValueError(f"expected a TLA+ value, seen {token!r}")

    def span(self, low: int) -> Any:
        """Return the set low..high when `..` follows; else the int `low`, which has been read."""
        if not self.sees(".."):
            return low
        self.advance()
        high = int(self.token)  # raises ValueError for what is no number
        self.advance()
        if high - low > LARGEST_SPAN:
            raise ValueError(f"expected an interval of at most {LARGEST_SPAN:,} numbers, seen {low}..{high}")
        return frozenset(range(low, high + 1))

    def record(self) -> dict[str, Any]:
        """Read a record `[name |-> value, ...]`; its `[` has been read."""
        fields: dict[str, Any] = {}
        while not self.sees("]"):
            if fields:
                self.take(",")
            name = self.token
            self.advance()
            self.take("|->")
            fields[name] = self.value()
        self.advance()
        return fields

    def function(self) -> dict[Any, Any]:
        """Read a function `(key :> value @@ ...)`; its `(` has been read."""
        pairs: dict[Any, Any] = {}
        while not self.sees(")"):
            if pairs:
                self.take("@@")
            key = self.value()
            self.take(":>")
            pairs[key] = self.value()
        self.advance()
        return pairs


def parse_value(text: str) -> Any:
    """Return the Python value of `text`, by the table above. Raises ValueError when it is not one TLA+ value."""
    reader = _Reader(text)
    try:
        value = reader.value()
    # No hash for a set of sequences of records (TypeError), or too deep a nesting.
    except (TypeError, RecursionError) as error:
        raise ValueError(f"expected a value that can be compared, seen {text[:40]!r} ({error})") from None
    if reader.kind != "end":
        raise ValueError(f"expected the end of the value, seen {reader.token!r}")
    return value


def parse_state(text: str) -> dict[str, Any]:
    r"""Parse one state, which TLC prints as a list of `/\ name = value`."""
    state: dict[str, Any] = {}
    # A state is one conjunct per variable; values may go over several lines, which never begin with /\.
    for part in re.split(r"^/\\ ", text.strip(), flags=re.MULTILINE):
        if part.strip():
            name, _, value = part.partition("=")
            state[name.strip()] = parse_value(value)
    return state


# The lines that a spec prints (TLC!PrintT), read through a pipe of their own while TLC runs.


PIPE = "printed"
PRINTS = ("-userFile", PIPE)
"""The option of TLC. To standard output it writes each line on its own, which wakes the reader each time; to a user file it
writes kilobytes at a time. The pipe is that file."""

OnLine = Callable[[str], object]


@contextmanager
def printed(work: Path, on_line: OnLine, end: Callable[[], object]) -> Iterator[None]:
    """Call `on_line`, in a thread, with each line that the spec prints while the block runs.

    TLC runs in `work` and prints to the pipe there. The block must wait for its process. An exception in the block or in
    `on_line` calls `end`, which ends the process, and is raised.
    """
    reader = os.open(work / PIPE, os.O_RDONLY | os.O_NONBLOCK)
    # Kept open until the process has ended: else the reader would wait for ever for a JVM that never opens the pipe.
    writer = os.open(work / PIPE, os.O_WRONLY)
    # It was opened without blocking only because there was no writer yet.
    os.set_blocking(reader, True)

    def read() -> None:
        """Read lines until the last writer closes the pipe; an exception of `on_line` ends the process."""
        with os.fdopen(reader, encoding="utf-8", errors="replace") as lines:
            try:
                for line in lines:
                    on_line(line.rstrip("\r\n"))
            except BaseException:
                end()
                raise

    with ThreadPoolExecutor(1) as thread:
        reading = thread.submit(read)
        try:
            yield
        except BaseException:
            end()
            raise
        finally:
            # The reader sees the end of the pipe only after the last writer has closed it.
            os.close(writer)
    reading.result()  # raises what `on_line` raised


# The numbered messages that TLC writes in its tool mode.
#
# Only the text of messages with known numbers (tlc2.output.EC) is parsed. Everything else is kept for the error report.


class TlcOutcome(Enum):
    """How a run of TLC ended."""

    SUCCESS = "success"
    SAFETY = "safety failure"
    LIVENESS = "liveness failure"
    DEADLOCK = "deadlock"
    ERROR = "error"


@dataclass(frozen=True)
class StateCounts:
    """What TLC counted; -1 where it gave no numbers."""

    generated: int
    distinct: int


@dataclass(frozen=True)
class TlcStep:
    """One state of a counterexample and the action that led to it; "" for the first."""

    action: str
    state: Mapping[str, Any]


_SUCCESS = 2193
_SAFETY = frozenset({2107, 2110, 2112, 2113, 2146})
_TEMPORAL = 2116
_DEADLOCK = 2114
_BEHAVIOR = 2121  # of class error, but only the heading of a counterexample: its states follow
_STATE = 2217
_STATS = 2199  # the numbers of states
_DEPTH = 2194
_SIMULATED = 2209  # a simulation ends with its last progress: it finds nothing out, so it has no message of success
_VERSION = 2262
_FINISHED = 2186  # the last message of every run
_ERROR_CLASS = "1"

_START = re.compile(r"@!@!@STARTMSG (-?[0-9]{1,9}):?(\d*) @!@!@")
_END = re.compile(r"@!@!@ENDMSG -?\d+ @!@!@")
_NUMBER = r"[0-9][0-9,]{0,30}"
_COUNTED = re.compile(rf"({_NUMBER}) (?:states generated|distinct states|states left)")
_KEPT_LINES = 400


@dataclass
class TlcTranscript:
    """The messages of a run of TLC, sorted."""

    outcome: TlcOutcome | None = None
    property: str = ""
    version: str = ""
    counts: StateCounts = StateCounts(-1, -1)
    depth: int = -1
    steps: list[TlcStep] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    """lines outside any message: the parser writes so"""
    over: bool = False
    """the last message has come"""

    def take(self, number: int, kind: str, text: str) -> None:
        """Add one message: its number, its class `kind` (_ERROR_CLASS is an error), and its text. Raises SpecError.

        Messages of other numbers are dropped, unless they are of class error.
        """
        if number == _STATE:
            # "2: <MCCrash line 90, ...>" and then the state. The models that are checked wrap actions of Replication.tla
            # (MCCrash wraps Crash): a trace names both alike. The initial state has no action: its step gets "".
            head, _, body = text.partition("\n")
            action = re.match(r"\d+: <(\w+) line", head)
            try:
                state = parse_state(body)
            except ValueError as error:
                raise SpecError(f"TLC's output: expected a state, seen: {error}; run it again") from error
            self.steps.append(TlcStep(action[1].removeprefix("MC") if action else "", state))
        elif number == _STATS:
            self.counts = _counts(text)
        elif number == _DEPTH:
            depth = re.search(_NUMBER, text)
            self.depth = _int(depth[0]) if depth else -1
        elif number in {_SUCCESS, _SIMULATED}:
            # A simulation that finds a failure ends with its progress all the same: the failure came first and stays.
            self.outcome = self.outcome or TlcOutcome.SUCCESS
        elif number == _VERSION:
            self.version = text.strip()
        elif number == _FINISHED:
            self.over = True
        elif number in _SAFETY:
            # TLC names an invariant, but an action property of another module only by its line.
            named = re.search(r"(?:Invariant|property) (?!line \d)(\w+)", text)
            self.outcome, self.property = TlcOutcome.SAFETY, named[1] if named else ""
        elif number == _TEMPORAL:
            self.outcome = TlcOutcome.LIVENESS
        elif number == _DEADLOCK:
            self.outcome = TlcOutcome.DEADLOCK
        # The failures above, and _BEHAVIOR, are of class error too, but are results; any other error is a complaint.
        elif kind == _ERROR_CLASS and number != _BEHAVIOR:
            self.errors.append(text)


def _counts(text: str) -> StateCounts:
    """Return the numbers of "... states generated, ... distinct states found, ... states left on queue".

    -1 where the text does not have these three.
    """
    numbers = list(map(_int, _COUNTED.findall(text)))
    return StateCounts(*numbers[:2]) if len(numbers) == 3 else StateCounts(-1, -1)


def _int(text: str) -> int:
    """Return a number that TLC writes as 1,234."""
    return int(text.replace(",", ""))


@dataclass
class _Message:
    """A message whose end has not come yet; `kind` is its class."""

    number: int
    kind: str
    lines: list[str] = field(default_factory=list)


def read_transcript(lines: Iterable[str]) -> TlcTranscript:
    """Read the output of TLC up to its last message."""
    transcript = TlcTranscript()
    # The messages that have begun and not ended; the last one is inside the others.
    open_messages: list[_Message] = []
    for raw in lines:
        line = raw.rstrip("\r\n")
        start = _START.search(line) if "@!@!@" in line else None
        if start:
            # An error quotes its cause: a message may begin inside another one, even in the middle of a line. The text of
            # the inner one becomes part of the outer one.
            if open_messages and start.start():
                open_messages[-1].lines.append(line[: start.start()])
            open_messages.append(_Message(int(start[1]), start[2]))
        elif open_messages and _END.match(line):
            message = open_messages.pop()
            if open_messages:
                open_messages[-1].lines += message.lines
            else:
                transcript.take(message.number, message.kind, "\n".join(message.lines))
                # Not until the end of the stream: the JVM lives on for a while after its last message.
                if transcript.over:
                    break
        elif open_messages:
            open_messages[-1].lines.append(line)
        # The parser and crashes of the JVM write outside of messages; an endless dump must not fill the memory.
        elif len(transcript.loose) < _KEPT_LINES:
            transcript.loose.append(line)
    return transcript


_NOISE = re.compile(r"Parsing file|Semantic processing|Residual stack|\s+at |\S+ starting at line|\s*$")
"""Lines of the parser that do not say what is wrong: progress, and stacks of Java."""
# How TLC and its parser write a place, and how a report does, with the groups of the pattern.
_PLACES = (
    (re.compile(r"line (\d+), col (\d+) to line \d+, col \d+ of module (\w+)"), "{2}.tla:{0}:{1}"),
    (re.compile(r"Line (\d+), column (\d+) to line \d+, column \d+ in (\w+)\s*\Z"), "{2}.tla:{0}:{1}"),
    (re.compile(r"at line (\d+), column (\d+).*parsing TLA\+ spec in file (\w+)", re.DOTALL), "{2}.tla:{0}:{1}"),
    (re.compile(r"configuration file at line (\d+)"), "line {0} of the cfg"),
)


def describe_error(transcript: TlcTranscript, work: Path) -> str:
    """Return what TLC or its parser complains of, behind the place of the fault in a module or cfg if it names one."""
    complaints = [line for line in transcript.loose if not _NOISE.match(line)]
    errors = list(dict.fromkeys(transcript.errors))
    # Without the temporary directory, whose name would differ in every report.
    text = "\n".join([*complaints, *errors]).strip().replace(f"{work}/", "")
    for pattern, place in _PLACES:
        match = pattern.search(text)
        if match:
            return f"{place.format(*match.groups())}: {text}"
    return text or "TLC ended without a verdict and without a message"
