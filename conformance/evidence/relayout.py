"""The same logs, laid out otherwise: rotated, split, prefixed, in another pattern, as JSON lines, zipped, elsewhere.

A capture must get the same verdict for every rule however its logs were written and laid down: nothing is missing from
them. Captures of which something *is* missing are another matter (`losses.py`).

Rules of this file

1. A `Tree` is what a folder holds: relative path -> bytes. A transformation is a pure function from tree to tree, and
   touches logs (`is_log`) only; checkpoint files go along.
2. Logs come in as the captures have them, `[time] LEVEL [thread] message (logger)`, unzipped.
3. `RELAYOUTS` keeps what a log tells. `COARSER` keeps every line and loses something else: digits of the time, the thread.
"""

import gzip
import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
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


def _time_of(text: str) -> datetime:
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


# ---------------------------------------------------------------------------------------------------------------------
# Rotated and split


def _log4j(stem: str, part: int, count: int, first: datetime) -> str:  # noqa: ARG001
    return f"{stem}.log.{first:%Y-%m-%d-%H}-{part:02d}"


def _log4j2(stem: str, part: int, count: int, first: datetime) -> str:  # noqa: ARG001
    return f"{stem}-{first:%Y-%m-%d}-{part + 1}.log.gz"


def _log4j2_newest_highest(stem: str, part: int, count: int, first: datetime) -> str:  # noqa: ARG001
    return f"{stem}.log.{part + 1}"


def _logrotate(stem: str, part: int, count: int, first: datetime) -> str:  # noqa: ARG001
    return f"{stem}.log.{count - part - 1}"


def _logrotate_zipped(stem: str, part: int, count: int, first: datetime) -> str:
    return f"{_logrotate(stem, part, count, first)}.gz"


def _logrotate_dated(stem: str, part: int, count: int, first: datetime) -> str:
    return f"{stem}.log-{first - timedelta(days=count - part):%Y%m%d}.gz"


ROTATIONS: Mapping[str, Callable[[str, int, int, datetime], str]] = {
    "log4j": _log4j,
    "log4j2": _log4j2,
    "log4j2-newest-highest": _log4j2_newest_highest,
    "logrotate": _logrotate,
    "logrotate-zipped": _logrotate_zipped,
    "logrotate-dated": _logrotate_dated,
}
"""How a rotated part is called: (stem, part, number of parts, time of its first line) -> name."""


def rotated(name_of: Callable[[str, int, int, datetime], str], count: int, tree: Tree) -> Tree:
    """Each log in `count` parts, the last one under its old name."""
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
            called = name if last else name_of(name.removesuffix(".log"), part, count, _time_of(of_part[0]))
            done[called] = gzip.compress(joined(of_part), mtime=0) if called.endswith(".gz") else joined(of_part)
    return done


_STOCK = (
    (re.compile(r"kafka\.request\.logger"), "kafka-request.log"),
    (re.compile(r"state\.change\.logger"), "state-change.log"),
    (re.compile(r"kafka\.controller|org\.apache\.kafka\.controller\..*"), "controller.log"),
    (re.compile(r"kafka\.log\.LogCleaner.*"), "log-cleaner.log"),
)


def split_as_stock(tree: Tree) -> Tree:
    """The files of Kafka's stock config: requests, state changes, controller, the rest."""
    done: dict[str, list[str]] = {}
    others = {}
    for name, content in tree.items():
        if not is_log(name):
            others[name] = content
            continue
        folder = name.rpartition("/")[0]
        file = "server.log"
        for text in lines(content):
            found = parts(text)
            if found is not None:
                file = next((file for logger, file in _STOCK if logger.fullmatch(found.logger)), "server.log")
            done.setdefault(f"{folder}/{file}" if folder else file, []).append(text)
    return others | {name: joined(texts) for name, texts in done.items()}


def one_console(tree: Tree) -> Tree:
    """All logs of a node in one file, as a container's console has them, by time."""
    done: dict[str, list[tuple[datetime, int, str]]] = {}
    others = {}
    for name, content in tree.items():
        if not is_log(name):
            others[name] = content
            continue
        console = done.setdefault(f"{name.rpartition('/')[0] or '.'}/console.log", [])
        latest = datetime(1970, 1, 1, tzinfo=UTC)
        for text in lines(content):
            latest = max(latest, _time_of(text))
            console.append((latest, len(console), text))
    return others | {name: joined(text for _, _, text in sorted(texts)) for name, texts in done.items()}


# ---------------------------------------------------------------------------------------------------------------------
# Written otherwise


def _millis(time: datetime) -> str:
    return f"{time:%S}.{time.microsecond // 1000:03d}"


Writer = Callable[[Parts], str]

WRITERS: Mapping[str, Writer] = {
    "strimzi": lambda p: f"{p.time:%Y-%m-%d %H:%M:%S,%f} {p.level} {p.message} ({p.logger}) [{p.thread}]",
    "iso-8601": lambda p: f"{p.time:%Y-%m-%dT%H:%M:%S.%f}Z {p.level:5} [{p.thread}] {p.logger} - {p.message}",
    "iso-8601-brackets": lambda p: f"[{p.time:%Y-%m-%dT%H:%M:%S,%f}+0000] {p.level} [{p.thread}] {p.message} ({p.logger})",
    "log4j-example": lambda p: f"{p.time:%Y-%m-%d %H:%M:%S,%f} [{p.thread}] {p.level:5} {p.logger} - {p.message}",
    "day-first": lambda p: f"{p.time:%d %b %Y %H:%M:%S,%f} {p.level} [{p.thread}] {p.logger}: {p.message}",
    "slashes": lambda p: f"{p.time:%Y/%m/%d %H:%M:%S.%f} {p.level} {p.logger} [{p.thread}] {p.message}",
    "unix": lambda p: f"{int(p.time.timestamp())}.{p.time.microsecond:06d} {p.level} [{p.thread}] {p.message} ({p.logger})",
    "basic": lambda p: f"{p.time:%Y%m%dT%H%M%S,%f} {p.level} [{p.thread}] {p.message} ({p.logger})",
    "short-logger": lambda p: (
        f"[{p.time:%Y-%m-%d %H:%M:%S,%f}] {p.level} [{p.thread}] {p.message} ({p.logger.rpartition('.')[2]})"
    ),
    "json-layout": lambda p: json.dumps(
        {
            "instant": {"epochSecond": int(p.time.timestamp()), "nanoOfSecond": p.time.microsecond * 1000},
            "thread": p.thread,
            "level": p.level,
            "loggerName": p.logger,
            "message": p.message,
            "endOfBatch": False,
        }
    ),
    "json-template-ecs": lambda p: json.dumps(
        {
            "@timestamp": f"{p.time:%Y-%m-%dT%H:%M:%S.%f}Z",
            "log.level": p.level,
            "message": p.message,
            "process.thread.name": p.thread,
            "log.logger": p.logger,
        }
    ),
    "json-nested": lambda p: json.dumps(
        {
            "time": f"{p.time:%Y-%m-%dT%H:%M:%S.%f}Z",
            "log": {"level": p.level, "logger": p.logger},
            "process": {"thread": {"name": p.thread}},
            "message": p.message,
        }
    ),
    "logstash": lambda p: json.dumps(
        {
            "@timestamp": f"{p.time:%Y-%m-%dT%H:%M:%S.%f}+00:00",
            "@version": "1",
            "message": p.message,
            "logger_name": p.logger,
            "thread_name": p.thread,
            "level": p.level,
        }
    ),
}
"""Patterns and JSON layouts that tell as much as the documented one."""


def written(writer: Writer, tree: Tree) -> Tree:
    """Every line in another layout; what is not a line of its own stays as it is."""

    def rewrite(text: str) -> str:
        found = parts(text)
        return text if found is None else writer(found)

    return of_lines(rewrite, tree)


def _container(text: str) -> str:
    return json.dumps({"log": f"{text}\n", "stream": "stdout", "time": "2026-11-22T01:02:03.123456789Z"})


PREFIXES: Mapping[str, Callable[[str], str]] = {
    "journald": lambda text: f"Nov 22 01:02:03 kafka-host kafka-server-start.sh[4711]: {text}",
    "journald-iso": lambda text: f"2026-11-22T01:02:03+0000 kafka-host kafka[4711]: {text}",
    "kubernetes": lambda text: f"2026-11-22T01:02:03.123456789Z stdout F {text}",
    "docker-time-stamps": lambda text: f"2026-11-22T01:02:03.123456789Z {text}",
    "docker-json-file": _container,
    "compose": lambda text: f"kafka  | {text}",
    "kubectl-prefix": lambda text: f"[pod/kafka-0/kafka] {text}",
    "syslog": lambda text: f"<14>1 2026-11-22T01:02:03.123Z kafka-host kafka 4711 - - {text}",
    "ansi": lambda text: re.sub(r"\] ([A-Z]+) ", "] \x1b[32m\\1\x1b[m ", text, count=1),
}
"""What containers, journals and terminals make of a line."""


def in_parts_of_16_kib(tree: Tree) -> Tree:
    """Kubernetes splits long lines: `P` parts, then `F`. At 500 bytes here, so that it happens."""

    def split(text: str) -> str:
        pieces = [text[at : at + 500] for at in range(0, len(text), 500)] or [""]
        marked = [*(("P", piece) for piece in pieces[:-1]), ("F", pieces[-1])]
        return "\n".join(f"2026-11-22T01:02:03.123456789Z stdout {mark} {piece}" for mark, piece in marked)

    return of_lines(split, tree)


# ---------------------------------------------------------------------------------------------------------------------
# Laid down otherwise


def zipped(tree: Tree) -> Tree:
    """Every log gzipped."""
    return {
        f"{name}.gz" if is_log(name) else name: gzip.compress(content, mtime=0) if is_log(name) else content
        for name, content in tree.items()
    }


def deeper(tree: Tree) -> Tree:
    """`n1/logs/server.log`."""
    return of_names(lambda name: "/logs/".join(name.rsplit("/", 1)), tree)


def one_folder(tree: Tree) -> Tree:
    """`n1-server.log`, all in one folder, without what belongs to one node alone (its checkpoint files)."""
    return {name.replace("/", "-"): content for name, content in tree.items() if is_log(name)}


def one_stream(tree: Tree) -> Tree:
    """`docker compose logs > cluster.log`: the lines of all nodes in one file, each behind its container's name."""
    consoles = one_console({name: content for name, content in tree.items() if is_log(name)})
    texts = [
        (max(_time_of(text), datetime(1971, 1, 1, tzinfo=UTC)), name, number, text)
        for name, content in consoles.items()
        for number, text in enumerate(lines(content))
    ]
    return {"cluster.log": joined(f"{name.rpartition('/')[0]}  | {text}" for _, name, _, text in sorted(texts))}


def with_others(tree: Tree) -> Tree:
    """Logs of other programs beside those of the broker, and a second copy of each log."""
    done = dict(tree)
    for name, content in tree.items():
        if is_log(name):
            folder = name.rpartition("/")[0]
            done[f"{folder}/kafkaServer-gc.log"] = b"[0.005s][info][gc] Using G1\n"
            done[f"{folder}/kafkaServer-gc.log.0.current"] = b"[0.005s][info][gc] Using G1\n"
            done[f"{folder}/log-cleaner.log"] = b""
            done[f"{folder}/kafkaServer.out"] = content
            done[f"{name.removesuffix('.log')} (copy).log"] = content
    return done


RELAYOUTS: Mapping[str, Relayout] = {
    "as-it-is": lambda tree: tree,
    **{f"rotated-{name}": partial(rotated, named, 4) for name, named in ROTATIONS.items()},
    "split-as-stock": split_as_stock,
    "split-and-rotated": lambda tree: rotated(_log4j, 3, split_as_stock(tree)),
    "one-console": one_console,
    **{f"written-{name}": partial(written, writer) for name, writer in WRITERS.items()},
    **{f"behind-{name}": partial(of_lines, prefix) for name, prefix in PREFIXES.items()},
    "behind-kubernetes-in-parts": in_parts_of_16_kib,
    "behind-kubernetes-as-json": lambda tree: of_lines(PREFIXES["kubernetes"], written(WRITERS["logstash"], tree)),
    "zipped": zipped,
    "deeper": deeper,
    "with-others": with_others,
    "byte-order-mark": partial(of_bytes, b"\xef\xbb\xbf".__add__),
    "utf-16": partial(of_bytes, lambda content: content.decode().encode("utf-16")),
    "carriage-returns": partial(of_bytes, lambda content: content.replace(b"\n", b"\r\n")),
    "hole-of-copytruncate": partial(of_bytes, lambda content: b"\0" * 5000 + content),
    "hole-at-the-end": partial(of_bytes, lambda content: content + b"\0" * 5000),
}
"""By name: the same lines, and everything they tell."""

WITHOUT_CHECKPOINTS: Mapping[str, Relayout] = {
    "one-folder": one_folder,
    "one-folder-rotated": lambda tree: rotated(_logrotate_zipped, 3, one_folder(tree)),
    "one-stream": one_stream,
}
"""By name: the same lines; whose the checkpoint files would be, nobody could tell."""


def in_milliseconds(tree: Tree) -> Tree:
    """`%d` without microseconds."""
    return of_lines(lambda text: re.sub(r"^(\[[\d\-: ]+,\d{3})\d{3}\]", r"\1]", text), tree)


def without_thread(tree: Tree) -> Tree:
    """Kafka's default layout."""
    return of_lines(lambda text: re.sub(r"^(\[[\d\-: ,]+\] [A-Z]+) \[[^\]]*\]", r"\1", text), tree)


COARSER: Mapping[str, Relayout] = {
    "milliseconds": in_milliseconds,
    "milliseconds-split": lambda tree: split_as_stock(in_milliseconds(tree)),
    "without-thread": without_thread,
    "without-thread-in-milliseconds": lambda tree: without_thread(in_milliseconds(tree)),
    "without-thread-split": lambda tree: without_thread(split_as_stock(in_milliseconds(tree))),
}
"""By name: every line, with less in it. No rule may fail that did not; some may stay undecided."""
