"""Scenarios: transcripts of play that make a claim, kept in conformance/scenarios, each of them a test.

A transcript is a file of commands (conformance.play.directives), each with the output that it had. A scenario begins with a
header in comments:

    # A follower that truncates to its own high watermark loses a committed record.
    #
    # Rule under test: truncation to the high watermark (before KIP-101). Expected: BROKEN.
    # Source: KIP-101, scenario 1.
    # under-test: b1
    # shows: DATA-01, S1

Rules of this file

1. A file opens with its claim, the rule under test with the expected verdict, the source and a picture. Its name says the
   outcome. It ends with `check` and `judge`, whose output must agree with the expected verdict.
2. Two more lines are about driven brokers (docs/drive.md). `under-test` names the brokers that one stands for, all if there
   is no such line; `shows` has ids of rules, rows of the truncation table (T1 to T5), problems of Kafka (S1 to S12) and
   findings (F1, F2).
3. A file that is rewritten has not passed: someone must read the difference first.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tidegauge.conformance.play.directives import Player
from tidegauge.conformance.play.session import Session, bounds_for, broker_play
from tidegauge.traces.schema import Trace
from tidegauge.util.errors import TidegaugeError

# A transcript is a command, ----, its output, an empty line; comments and empty lines stay where they are.
#
#     write b1
#     ----
#     b1     append 0a@0, leo 0->1
#
# 1. Parsing and rendering are inverse to each other, so a rewritten file differs in outputs only.
# 2. A mismatch is a unified diff headed by file:line of the first block that differs.


SEPARATOR = "----"


class ScenarioError(TidegaugeError):
    """A file that is not a transcript: where, what was expected, what was seen."""


@dataclass(frozen=True)
class Block:
    """One command with its output; `before` are the comments and empty lines above it, `line` is its line, from 1."""

    command: str
    output: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    line: int = 0


@dataclass(frozen=True)
class Transcript:
    """The blocks of a file, and the lines after the last one."""

    blocks: tuple[Block, ...]
    after: tuple[str, ...] = field(default=())


def parse(text: str, name: str = "transcript") -> Transcript:
    """Parse the transcript in `text`; error messages call it `name`. Raises ScenarioError."""
    lines = text.splitlines()
    blocks: list[Block] = []
    before: list[str] = []  # comments and empty lines since the last block
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip() or line.startswith("#"):
            before.append(line)
            at += 1
            continue
        # A command without a separator would take the next command for its output.
        if at + 1 == len(lines) or lines[at + 1] != SEPARATOR:
            seen = repr(lines[at + 1]) if at + 1 < len(lines) else "the end"
            raise ScenarioError(
                f"{name}:{at + 2}: expected {SEPARATOR} below the command {line!r}, seen {seen}; "
                f"a command is one line, its output follows below {SEPARATOR} and ends with an empty line"
            )
        # The output: from below the separator up to the next empty line.
        end = at + 2
        while end < len(lines) and lines[end].strip():
            end += 1
        blocks.append(Block(line, tuple(lines[at + 2 : end]), tuple(before), line=at + 1))
        before = []
        at = end
    return Transcript(tuple(blocks), tuple(before))


def played_block(player: Player, command: str) -> Block:
    """Run a command; return its block, with an empty line above it."""
    return Block(command, tuple(player.run(command)), ("",))


def render(transcript: Transcript) -> str:
    """Return the text of a transcript."""
    return "".join(f"{line}\n" for line in _lines(transcript))


def _lines(transcript: Transcript) -> Iterator[str]:
    """Yield the lines of a transcript as its file has them."""
    for block in transcript.blocks:
        yield from (*block.before, block.command, SEPARATOR, *block.output)
    yield from transcript.after


def difference(expected: Transcript, seen: Transcript, name: str) -> str:
    """Return a unified diff of two transcripts of the same commands, headed by `name` and a line; empty if they agree."""
    # The commands are the same, so blocks correspond one to one, and the first that differs names the line.
    pairs = zip(expected.blocks, seen.blocks, strict=True)
    first = next((block for block, seen_block in pairs if block.output != seen_block.output), None)
    if first is None:
        return ""
    diff = difflib.unified_diff(
        render(expected).splitlines(), render(seen).splitlines(), "expected", "seen", lineterm="", n=4
    )
    return "\n".join((f"{name}:{first.line}: {first.command}: expected another output", *diff))


DIRECTORY = Path(__file__).parent.parent / "scenarios"

HOLDS, BROKEN, UNSEEN = "HOLDS", "BROKEN", "UNSEEN"
"""UNSEEN: an invariant fails, and no rule of the judge does, for a reason that the opening gives."""


@dataclass(frozen=True)
class Scenario:
    """A scenario as its file has it: the header, and the transcript with the outputs that it expects.

    `expected` is HOLDS, BROKEN or UNSEEN. `under_test` and `shows` are the words of those lines of the header (rule 2).
    """

    path: Path
    claim: str
    expected: str
    source: str
    transcript: Transcript
    under_test: frozenset[str] = frozenset()
    shows: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Played:
    """A scenario that was run: the transcript with the outputs `seen`, their difference to the file's, and the trace.

    `diff` is empty if every output is the one in the file.
    """

    scenario: Scenario
    seen: Transcript
    diff: str
    trace: Trace

    @property
    def passed(self) -> bool:
        """Whether every output is the one in the file."""
        return not self.diff

    @property
    def judge_says(self) -> str:
        """The first line that the last command `judge` printed; or that there was no such command."""
        return next((b.output[0] for b in reversed(self.seen.blocks) if b.command == "judge"), "the judge was not asked")


def shipped() -> list[Path]:
    """Return the scenarios that come with the suite: those written by hand, then those that TLC found."""
    return [*sorted(DIRECTORY.glob("*.txt")), *sorted(DIRECTORY.glob("models/*.txt"))]


def files_named(name: str | Path) -> list[Path]:
    """Return the file of that name or, if there is none, the shipped scenarios that are called so or show that finding."""
    if Path(name).is_file():
        return [Path(name)]
    return [path for path in shipped() if path.stem == str(name) or name in read(path).shows]


def read(path: Path) -> Scenario:
    """Read a scenario from its file. Raises ScenarioError with what the file lacks."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        seen = getattr(error, "strerror", None) or error
        raise ScenarioError(f"{path}: expected a transcript in UTF-8, seen {seen}; check the path") from error
    transcript = parse(text, str(path))
    if not transcript.blocks:
        raise ScenarioError(f"{path}: expected commands, seen none; begin with: cluster brokers=2")
    header = [line.lstrip("# ").rstrip() for line in transcript.blocks[0].before]
    expected = re.search(r"Rule under test: .*Expected: (HOLDS|BROKEN|UNSEEN)\.$", "\n".join(header), re.MULTILINE)
    source = next((line for line in header if line.startswith("Source: ")), "")
    if not header or not header[0] or expected is None or not source:
        raise ScenarioError(
            f"{path}:1: expected a claim, then `Rule under test: ... Expected: HOLDS.`, BROKEN. or UNSEEN., then "
            f"`Source: ...`, seen {header[:1]}; see the scenarios that are shipped"
        )
    under_test, shows = _words(header, "under-test: "), _words(header, "shows: ")
    return Scenario(path, header[0], expected[1], source.removeprefix("Source: "), transcript, under_test, shows)


def _words(header: Sequence[str], prefix: str) -> frozenset[str]:
    """Return the words after `prefix` in the first line of a header that begins so; none if there is no such line."""
    line = next((line.removeprefix(prefix) for line in header if line.startswith(prefix)), "")
    return frozenset(word for word in re.split(r"[,\s]+", line) if word)


def play_scenario(scenario: Scenario) -> Played:
    """Run every command of a scenario on the reference implementation."""
    player = Player()
    blocks = tuple(replace(block, output=tuple(player.run(block.command))) for block in scenario.transcript.blocks)
    seen = Transcript(blocks, scenario.transcript.after)
    # A scenario whose `cluster` command is wrong has played nothing; its trace is then that of an idle broker.
    session = player.session if player.session is not None else Session(broker_play(bounds_for(1)))
    return Played(
        scenario, seen, difference(scenario.transcript, seen, str(scenario.path)), session.trace(scenario.path.stem)
    )


def run_scenario(path: str | Path) -> Played:
    """Read a scenario and run it."""
    return play_scenario(read(Path(path)))


def rewrite(played: Played) -> bool:
    """Write the outputs of a run into its file; return whether that changed the file."""
    if played.passed:
        return False
    played.scenario.path.write_text(render(played.seen), encoding="utf-8")
    return True


# ---------------------------------------------------------------------------------------------------------------------
# By hand

BANNER = "Three brokers, b1 leads. `help` lists the commands, `actions` what can happen now, an empty line or `exit` ends."


def play(lines: Iterable[str], echo: Callable[[str], None], prompt: Callable[[], None] = lambda: None) -> Transcript:
    """Play commands, one a line, until `exit`; return the transcript, ready to become a scenario.

    `echo` is called with each line to print, `prompt` before each command is read.
    """
    player = Player(Session(broker_play(bounds_for(3))))
    blocks = [Block("cluster brokers=3", ("ok",))]  # the command that begins such a session
    echo(BANNER)
    prompt()
    for line in lines:
        command = line.strip()
        # An empty line ends the session, as it ends the output in a transcript.
        if command in {"", "exit", "quit"}:
            break
        if not command.startswith("#"):
            output = tuple(player.run(command))
            for printed in output:
                echo(printed)
            blocks.append(Block(command, output, ("",)))
        prompt()
    return Transcript(tuple(blocks))


def summary(played: Sequence[Played], rewritten: int = 0) -> str:
    """Return a sentence: how many scenarios went as their files expect, and how many files were `rewritten`."""
    passed = sum(result.passed for result in played)
    if rewritten:
        return (
            f"{passed} of {len(played)} scenarios went as their files expected; {rewritten} rewritten: review the difference"
        )
    return f"{passed} of {len(played)} scenarios go as their files expect"
