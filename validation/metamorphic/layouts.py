"""Writes log lines in other patterns and JSON layouts, and as containers, journals and terminals wrap them.

Rules of this file

1. Each layout here has as much content as the documented one: time to the microsecond, level, thread, logger, message.
"""

import json
import re
from collections.abc import Callable, Mapping

from validation.metamorphic.tree import Parts, Tree, of_lines, parts

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
"""Patterns and JSON layouts with as much content as the documented one."""


def written(writer: Writer, tree: Tree) -> Tree:
    """Rewrite every line in another layout; continuation lines stay as they are."""

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
    """Split long lines as Kubernetes does: `P` parts, then `F`. At 500 bytes here, so that it happens."""

    def split(text: str) -> str:
        pieces = [text[at : at + 500] for at in range(0, len(text), 500)] or [""]
        marked = [*(("P", piece) for piece in pieces[:-1]), ("F", pieces[-1])]
        return "\n".join(f"2026-11-22T01:02:03.123456789Z stdout {mark} {piece}" for mark, piece in marked)

    return of_lines(split, tree)
