"""A folder of logs as a value: what is in it, line by line.

Rules of this file

1. A `Tree` is what a folder holds: relative path -> bytes. A transformation is a pure function from tree to tree, and
   touches logs (`is_log`) only; checkpoint files go along.
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
    """One line taken apart."""

    time: datetime
    level: str
    thread: str
    message: str
    logger: str


def tree_of(folder: Path) -> Tree:
    """The files under `folder`, logs unzipped."""
    tree = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name, content = path.relative_to(folder).as_posix(), path.read_bytes()
        if name.endswith(".log.gz"):
            name, content = name.removesuffix(".gz"), gzip.decompress(content)
        tree[name] = content
    return tree


def write(tree: Tree, folder: Path) -> Path:
    """Lay a tree down as files."""
    for name, content in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def is_log(name: str) -> bool:
    """A text log; record segments are called so too."""
    return name.endswith(".log") and not _SEGMENT.search(name)


def lines(content: bytes) -> list[str]:
    """The lines of a log."""
    return content.decode().removesuffix("\n").split("\n") if content else []


def joined(texts: Iterable[str]) -> bytes:
    """The inverse of `lines`."""
    return "".join(f"{text}\n" for text in texts).encode()


def parts(text: str) -> Parts | None:
    """A line taken apart; None for the rest of a message of several lines."""
    found = _LINE.fullmatch(text)
    if found is None:
        return None
    when = datetime.strptime(found["time"].ljust(26, "0"), "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)
    return Parts(when, found["level"], found["thread"], found["message"], found["logger"])


def time_of(text: str) -> datetime:
    """When a line was written; long ago for what is not a line of its own."""
    found = parts(text)
    return found.time if found is not None else datetime(1970, 1, 1, tzinfo=UTC)


def of_lines(change: Callable[[str], str], tree: Tree) -> Tree:
    """Every line of every log changed by itself."""
    return {name: joined(map(change, lines(content))) if is_log(name) else content for name, content in tree.items()}


def of_names(change: Callable[[str], str], tree: Tree) -> Tree:
    """Every log under another name."""
    return {change(name) if is_log(name) else name: content for name, content in tree.items()}


def of_bytes(change: Callable[[bytes], bytes], tree: Tree) -> Tree:
    """The bytes of every log changed."""
    return {name: change(content) if is_log(name) and content else content for name, content in tree.items()}
