"""Puts logs into other files: rotated as log4j, log4j2 and logrotate do it, split as in the stock config, or merged.

Rules of this file

1. Every line stays, and so does the order of the lines of one file; only their files change.
2. A node writes its own logs: those of other programs beside them (mixtures.FOREIGN) keep their files.
"""

import gzip
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from validation.metamorphic.mixtures import FOREIGN
from validation.metamorphic.tree import Tree, is_log, joined, lines, parts, time_of


class Part(NamedTuple):
    """A rotated part of a log: part `number` from 0 `of` so many, oldest first; `first` is the time of its first line."""

    stem: str
    number: int
    of: int
    first: datetime


Naming = Callable[[Part], str]


def _logrotate(part: Part) -> str:
    return f"{part.stem}.log.{part.of - part.number - 1}"


def _by_day(part: Part) -> str:
    return f"{part.stem}.log-{part.first - timedelta(days=part.of - part.number):%Y%m%d}.gz"


ROTATIONS: Mapping[str, Naming] = {
    "log4j": lambda part: f"{part.stem}.log.{part.first:%Y-%m-%d-%H}-{part.number:02d}",
    "log4j2": lambda part: f"{part.stem}-{part.first:%Y-%m-%d}-{part.number + 1}.log.gz",
    "log4j2-newest-highest": lambda part: f"{part.stem}.log.{part.number + 1}",
    "logrotate": _logrotate,
    "logrotate-zipped": lambda part: f"{_logrotate(part)}.gz",
    "logrotate-dated": _by_day,
}
"""The name of a rotated part."""


def rotated(name_of: Naming, count: int, tree: Tree) -> Tree:
    """Split each log into `count` parts, the last one under its old name."""
    done: dict[str, bytes] = {}
    for name, content in tree.items():
        texts = lines(content) if is_log(name) else []
        if len(texts) < count:
            done[name] = content
            continue
        bounds = [len(texts) * part // count for part in range(count + 1)]
        for part in range(count):
            of_part = texts[bounds[part] : bounds[part + 1]]
            last = part == count - 1
            called = name if last else name_of(Part(name.removesuffix(".log"), part, count, time_of(of_part[0])))
            done[called] = gzip.compress(joined(of_part), mtime=0) if called.endswith(".gz") else joined(of_part)
    return done


_STOCK = (
    (re.compile(r"kafka\.request\.logger"), "kafka-request.log"),
    (re.compile(r"state\.change\.logger"), "state-change.log"),
    (re.compile(r"kafka\.controller|org\.apache\.kafka\.controller\..*"), "controller.log"),
    (re.compile(r"kafka\.log\.LogCleaner.*"), "log-cleaner.log"),
)


def _is_of_a_node(name: str) -> bool:
    return is_log(name) and name.rpartition("/")[2] not in FOREIGN


def split_as_stock(tree: Tree) -> Tree:
    """Split logs into the files of Kafka's stock config: requests, state changes, controller, the rest."""
    done: dict[str, list[str]] = {}
    others = {}
    for name, content in tree.items():
        if not _is_of_a_node(name):
            others[name] = content
            continue
        folder = name.rpartition("/")[0]
        file = "server.log"
        for text in lines(content):
            found = parts(text)
            # The rest of a message goes to the file of its first line.
            if found is not None:
                file = next((file for logger, file in _STOCK if logger.fullmatch(found.logger)), "server.log")
            done.setdefault(f"{folder}/{file}" if folder else file, []).append(text)
    return others | {name: joined(texts) for name, texts in done.items()}


def one_console(tree: Tree) -> Tree:
    """Merge all logs of a node into one file by time, as on a container's console."""
    done: dict[str, list[tuple[datetime, int, str]]] = {}
    others = {}
    for name, content in tree.items():
        if not _is_of_a_node(name):
            others[name] = content
            continue
        console = done.setdefault(f"{name.rpartition('/')[0] or '.'}/console.log", [])
        latest = datetime(1970, 1, 1, tzinfo=UTC)
        for text in lines(content):
            # The rest of a message has no time of its own: it stays below its first line.
            latest = max(latest, time_of(text))
            console.append((latest, len(console), text))
    return others | {name: joined(text for _, _, text in sorted(texts)) for name, texts in done.items()}
