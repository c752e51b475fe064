"""A folder of logs as a value, and changes of its lines, names and bytes.

Rules of this file

1. A `Tree` is the content of a folder: relative path -> bytes. A transformation is a pure function from tree to tree, and
   changes logs (`is_log`) only; checkpoint files stay.
2. Logs come in as the captures have them, `[time] LEVEL [thread] message (logger)`, unzipped.
"""

import gzip
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

Tree = Mapping[str, bytes]
Relayout = Callable[[Tree], Tree]

_SEGMENT = re.compile(r"\d{20}\.log$")
_LINE = re.compile(
    r"\[(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3,6})\] (?P<level>[A-Z]+) \[(?P<thread>[^\]]*)\] "
    r"(?P<message>.*) \((?P<logger>[\w.$]+)\)"
)


class Parts(NamedTuple):
    """The parts of a log line."""

    time: datetime
    level: str
    thread: str
    message: str
    logger: str


def tree_of(folder: Path) -> Tree:
    """Read the files under `folder`, logs unzipped."""
    tree = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, content = path.relative_to(folder).as_posix(), path.read_bytes()
        if name.endswith(".log.gz"):
            name, content = name.removesuffix(".gz"), gzip.decompress(content)
        tree[name] = content
    return tree


def write(tree: Tree, folder: Path) -> Path:
    """Write a tree as files."""
    for name, content in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def is_log(name: str) -> bool:
    """Return whether a name is that of a text log; record segments end in .log too."""
    return name.endswith(".log") and not _SEGMENT.search(name)


def lines(content: bytes) -> list[str]:
    """Return the lines of a log."""
    return content.decode().removesuffix("\n").split("\n") if content else []


def joined(texts: Iterable[str]) -> bytes:
    """Return the bytes of a log with these lines."""
    return "".join(f"{text}\n" for text in texts).encode()


def parts(text: str) -> Parts | None:
    """Parse a line; None for the rest of a message of several lines."""
    found = _LINE.fullmatch(text)
    if found is None:
        return None
    when = datetime.fromisoformat(f"{found['time'].replace(',', '.'):0<26}+00:00")
    return Parts(when, found["level"], found["thread"], found["message"], found["logger"])


def time_of(text: str) -> datetime:
    """Return when a line was written; 1970 for the rest of a message of several lines."""
    found = parts(text)
    return found.time if found is not None else datetime(1970, 1, 1, tzinfo=UTC)


def of_lines(change: Callable[[str], str], tree: Tree) -> Tree:
    """Change every line of every log by itself."""
    return {name: joined(map(change, lines(content))) if is_log(name) else content for name, content in tree.items()}


def of_names(change: Callable[[str], str], tree: Tree) -> Tree:
    """Rename every log."""
    return {change(name) if is_log(name) else name: content for name, content in tree.items()}


def of_bytes(change: Callable[[bytes], bytes], tree: Tree) -> Tree:
    """Change the bytes of every log."""
    return {name: change(content) if is_log(name) and content else content for name, content in tree.items()}
