"""Compare the story's table with the log statements in Kafka's sources: what no row reads, which releases print a row.

    python -m validation.kafka_statements CLONE [--unread] [--since TAG] [RELEASE ...]

CLONE is a git clone of Kafka with its tags. Without RELEASE the last patch release of each minor one is compared.

Rules of this file

1. A statement is a call of a logger at INFO or above: its string literals with a hole for each value.
2. A row reads a statement if it matches for some values in the holes: any of `VALUES` in the first ones, 7 in the others.
3. "Deleted log for partition" is reported: what 0.10.2 and later print so names a directory that ends in `-delete`.
"""

import argparse
import itertools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tidegauge.story.releases import release_of
from tidegauge.story.statements import STATEMENTS, Statement

CLASSES = (
    "Partition|Replica|ReplicaManager|Log|UnifiedLog|LogLoader|LocalLog|LogManager|LogSegment|AbstractFetcherThread|"
    "ReplicaFetcherThread|AbstractFetcherManager|LeaderEpochFileCache|KafkaController|PartitionStateMachine|"
    "ReplicaStateMachine|TopicDeletionManager|PartitionLeaderSelector|ReplicationControlManager|QuorumController|"
    "BrokerLifecycleManager|BrokerHeartbeatManager|AlterIsrManager|AlterPartitionManager|KafkaServer|BrokerServer"
)
HOLE = "\N{REPLACEMENT CHARACTER}"
_FILES = re.compile(rf"(?!.*/test/).*/(?P<name>{CLASSES})\.(?:scala|java)")
_CALL = re.compile(r"(?<![\w.])(?:[\w$.()]*?[lL]og(?:ger)?\.|LOG(?:GER)?\.)?(?P<level>info|warn|error|fatal)\s*\(")
_LITERAL = re.compile(r'"""(.*?)"""|"((?:\\.|[^"\\])*)"', re.DOTALL)
_VALUE = re.compile(r"\$\{(?:[^{}]|\{[^{}]*\})*\}|\$\w+|\{\}|%[-\d.]*[sd]")
_TAG = re.compile(r"(\d+\.\d+\.\d+(?:\.\d+)?)")
VALUES = ("7", "x-0", "[x,0]", "1,2", "[1, 2]", "/d/x-0", "HhPpDbsLQCqkVYGkSVHmWA", "List(isr=List(1))", "x 7 z")
MOST_HOLES = 3
LONGEST = 3000
"""Characters of a call that are looked at."""


class LogStatement(NamedTuple):
    """A class, and the text that it logs, with a hole for each value."""

    class_name: str
    text: str


def statements_of(source: str, class_name: str) -> Iterator[LogStatement]:
    """Yield the statements of a source file, at INFO or above."""
    source = re.sub(r"(?m)^\s*//.*$", "", source)
    for call in _CALL.finditer(source):
        arguments = _arguments(source[call.end() : call.end() + LONGEST])
        literals = "".join(raw or plain for raw, plain in _LITERAL.findall(arguments))
        text = _VALUE.sub(HOLE, literals)
        if text.strip(HOLE + " "):
            yield LogStatement(class_name, text)


def _arguments(text: str) -> str:
    """Return what stands before the parenthesis that closes a call; a parenthesis in a literal is none."""
    depth, at = 1, 0
    while at < len(text):
        if literal := _LITERAL.match(text, at):
            at = literal.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return text[:at]
        at += 1
    return text


def reads(row: Statement, statement: LogStatement) -> bool:
    """Return whether a row reads a statement, for some values in its holes."""
    head, text, rest = statement.text.partition(row.text)
    if not text:
        return False
    # A prefix of the class stands before it: of the partition's, the log's, the broker's.
    before = row.before is None or any(row.before.search(filled) for filled in _filled(f"[X id=7] {head}"))
    return before and any(row.after.match(filled) for filled in _filled(rest))


def _filled(text: str) -> Iterator[str]:
    """Yield a text with values in its holes."""
    first, *others = text.split(HOLE)
    for values in itertools.product(VALUES, repeat=min(len(others), MOST_HOLES)):
        yield first + "".join(value + part for value, part in zip((*values, *["7"] * len(others)), others, strict=False))


def git(clone: Path, *arguments: str) -> str:
    """Return what git prints."""
    command = ["git", "-C", str(clone), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, errors="replace").stdout


def last_of_each_minor(tags: Iterator[str]) -> list[str]:
    """Return the last patch release of each minor one since 0.9, in order."""
    last: dict[tuple[int, ...], str] = {}
    for tag in sorted((tag for tag in tags if _TAG.fullmatch(tag)), key=release_of):
        minor = release_of(tag)[: 3 if tag.startswith("0.") else 2]
        if release_of(tag) >= (0, 9):
            last[minor] = tag
    return list(last.values())


def printed_by_release(clone: Path, releases: list[str]) -> dict[LogStatement, list[str]]:
    """Return the statements with the releases that print them."""
    printed: dict[LogStatement, list[str]] = {}
    for release in releases:
        for file in git(clone, "ls-tree", "-r", "--name-only", release).splitlines():
            if found := _FILES.fullmatch(file):
                for statement in statements_of(git(clone, "show", f"{release}:{file}"), found["name"]):
                    releases_so_far = printed.setdefault(statement, [])
                    if release not in releases_so_far[-1:]:
                        releases_so_far.append(release)
    return printed


def wrong_releases(printed: dict[LogStatement, list[str]]) -> Iterator[str]:
    """Yield each row that says it is printed later, or no longer, than the sources do: it would deny a bug that is there."""
    for row in STATEMENTS:
        by = [release for statement, some in printed.items() if reads(row, statement) for release in some]
        if not by:
            continue
        first, last = min(by, key=release_of), max(by, key=release_of)
        if row.since is not None and release_of(row.since) > release_of(first):
            yield f"{row.kind} {row.text!r}: since {row.since}, but {first} prints it"
        if row.until is not None and (*release_of(row.until), 99) < release_of(last):
            yield f"{row.kind} {row.text!r}: until {row.until}, but {last} prints it"


def main() -> int:
    """Print what differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("clone", type=Path, help="a git clone of Kafka, with its tags")
    parser.add_argument("release", nargs="*", help="tags to compare")
    parser.add_argument("--unread", action="store_true", help="list the statements that no row reads")
    parser.add_argument("--since", metavar="TAG", help="with --unread: only those that no release up to this one prints")
    options = parser.parse_args()
    releases = options.release or last_of_each_minor(iter(git(options.clone, "tag").split()))
    printed = printed_by_release(options.clone, releases)
    unread = [statement for statement in printed if not any(reads(row, statement) for row in STATEMENTS)]
    print(f"{len(releases)} releases, {releases[0]} to {releases[-1]}: {len(printed)} statements, {len(unread)} not read")
    for line in wrong_releases(printed):
        print(f"  look at {line}")
    for statement in sorted(unread) if options.unread else ():
        first, last = printed[statement][0], printed[statement][-1]
        if options.since is None or release_of(first) > release_of(options.since):
            print(f"  {statement.class_name} {first} to {last}: {statement.text}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
