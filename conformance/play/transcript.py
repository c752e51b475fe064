"""Transcripts: a command, ----, its output, an empty line; comments and empty lines stay where they are.

    write b1
    ----
    b1     append 0a@0, leo 0->1

Rules of this file

1. Parsing and rendering are inverse to each other, so a rewritten file differs in outputs only.
2. A mismatch is a unified diff headed by file:line of the first block that differs.
"""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field

from tidegauge.impl.errors import TidegaugeError

SEPARATOR = "----"


class TranscriptError(TidegaugeError):
    """A file that is not a transcript: where, what was expected, what was seen."""


@dataclass(frozen=True)
class Block:
    """One command with its output; `before` are the comments and empty lines above it, `line` is the command's number."""

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
    """Parse the transcript in `text`; error messages call it `name`. Raises TranscriptError."""
    lines = text.splitlines()
    blocks: list[Block] = []
    before: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip() or line.startswith("#"):
            before.append(line)
            at += 1
            continue
        if at + 1 == len(lines) or lines[at + 1] != SEPARATOR:
            seen = repr(lines[at + 1]) if at + 1 < len(lines) else "the end"
            raise TranscriptError(
                f"{name}:{at + 2}: expected {SEPARATOR} below the command {line!r}, saw {seen}; "
                f"a command is one line, its output stands below {SEPARATOR} and ends with an empty line"
            )
        end = at + 2
        while end < len(lines) and lines[end].strip():
            end += 1
        blocks.append(Block(line, tuple(lines[at + 2 : end]), tuple(before), at + 1))
        before = []
        at = end
    return Transcript(tuple(blocks), tuple(before))


def render(transcript: Transcript) -> str:
    """Return the text of a transcript."""
    return "".join(f"{line}\n" for line in _lines(transcript))


def _lines(transcript: Transcript) -> Iterator[str]:
    for block in transcript.blocks:
        yield from (*block.before, block.command, SEPARATOR, *block.output)
    yield from transcript.after


def difference(expected: Transcript, seen: Transcript, name: str) -> str:
    """Return a diff of two transcripts of the same commands; empty if they are the same."""
    pairs = zip(expected.blocks, seen.blocks, strict=True)
    first = next((block for block, seen_block in pairs if block.output != seen_block.output), None)
    if first is None:
        return ""
    diff = difflib.unified_diff(
        render(expected).splitlines(), render(seen).splitlines(), "expected", "seen", lineterm="", n=4
    )
    return "\n".join((f"{name}:{first.line}: {first.command}: expected another output", *diff))
