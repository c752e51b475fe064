"""Loses or repeats lines of broker logs, as happens in practice: each loss is a transformation of a capture's files.

Rules of this file

1. A capture is its text logs as lines, by their path (`n1/server.log`); a transformation returns new ones. What it does is
   chosen by the random numbers it is given and by nothing else.
2. Nothing is invented: every line of the result is a line of the capture, or the beginning of one. What only lays lines
   out differently (rotation, prefixes, JSON) is no loss (`relayouts.py`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random

from validation.metamorphic.log_files import (
    Choice,
    Files,
    a_broker,
    a_node,
    a_request_log,
    a_server_log,
    but_one_broker,
    everything,
    logs_of,
    node,
    request_logs,
    the_brokers,
    the_controller,
)

Transformation = Callable[[Random, Files], Files]

_TIME = re.compile(r"\[(\d{4}-\d\d-\d\d) (\d\d):(\d\d):(\d\d),(\d+)\]")
_LOGGER = re.compile(r"\(([\w.$]+)\)\s*$")
_LEVEL = re.compile(r"\[[^\]]*\] ([A-Z]+) ")
_THREAD = re.compile(r"\[[^\]]*\] [A-Z]+ \[([^\]]*)\] ")


def second(line: str) -> float | None:
    """Return the second of the day of a line's time."""
    found = _TIME.match(line)
    if found is None:
        return None
    return int(found[2]) * 3600 + int(found[3]) * 60 + float(f"{found[4]}.{found[5]}")


def _span(files: Files) -> tuple[float, float]:
    times = [time for lines in files.values() for line in lines if (time := second(line)) is not None]
    return min(times), max(times)


def _keep(files: Files, wanted: Callable[[str, str], bool]) -> Files:
    return {path: [line for line in lines if wanted(path, line)] for path, lines in files.items()}


def _within(files: Files, paths: Sequence[str], begin: float, end: float) -> Files:
    """Keep what the files in `paths` wrote between two times; a line without a time belongs to the one before it."""
    result = dict(files)
    for path in paths:
        now, kept = begin, []
        for line in files[path]:
            time = second(line)
            now = now if time is None else time
            if begin <= now <= end:
                kept.append(line)
        result[path] = kept
    return result


def _drop(lines: list[str], at: set[int]) -> list[str]:
    return [line for number, line in enumerate(lines) if number not in at]


def drop_lines(least: int, most: int, name: str = ".log") -> Transformation:
    """Drop single lines of one file."""

    def apply(random: Random, files: Files) -> Files:
        path = random.choice(logs_of(files, name))
        count = min(random.randint(least, most), len(files[path]))
        return files | {path: _drop(files[path], set(random.sample(range(len(files[path])), count)))}

    return apply


def drop_share(share: float) -> Transformation:
    """Drop that share of all lines of all files."""
    return lambda random, files: _keep(files, lambda _path, _line: random.random() >= share)


def drop_block(least: int, most: int, name: str = ".log") -> Transformation:
    """Drop consecutive lines of one file."""

    def apply(random: Random, files: Files) -> Files:
        path = random.choice(logs_of(files, name))
        lines = files[path]
        size = min(random.randint(least, most), len(lines))
        begin = random.randint(0, len(lines) - size)
        return files | {path: lines[:begin] + lines[begin + size :]}

    return apply


def drop_time(choice: Choice) -> Transformation:
    """Drop a stretch of time from some files: a full disk, a lost rotation."""

    def apply(random: Random, files: Files) -> Files:
        first, last = _span(files)
        begin = random.uniform(first, last)
        end = begin + random.uniform(0.02, 0.3) * (last - first)
        paths = choice(random, files)
        before, after = _within(files, paths, first, begin), _within(files, paths, end, last)
        return files | {path: before[path] + after[path] for path in paths}

    return apply


def drop_files(choice: Choice) -> Transformation:
    """Drop whole files."""

    def apply(random: Random, files: Files) -> Files:
        gone = set(choice(random, files))
        return {path: lines for path, lines in files.items() if path not in gone}

    return apply


def truncated_time(choice: Choice, *, late: bool, early: bool) -> Transformation:
    """Let some files begin late, end early, or both."""

    def apply(random: Random, files: Files) -> Files:
        first, last = _span(files)
        begin = first + random.uniform(0.05, 0.6) * (last - first) if late else first
        end = last - random.uniform(0.05, 0.35) * (last - first) if early else last
        return _within(files, choice(random, files), min(begin, end), end)

    return apply


def drop_logger(choice: Choice, *, whole: bool) -> Transformation:
    """Drop the lines of one logger, of the whole time or of a while."""

    def apply(random: Random, files: Files) -> Files:
        names = sorted({found[1] for lines in files.values() for line in lines if (found := _LOGGER.search(line))})
        off, paths = random.choice(names), set(choice(random, files))
        first, last = _span(files)
        begin, end = (first, last) if whole else sorted((random.uniform(first, last), random.uniform(first, last)))

        def wanted(path: str, line: str) -> bool:
            found = _LOGGER.search(line)
            # A line without a logger continues the message before it; its own loss is another transformation.
            return path not in paths or found is None or found[1] != off or not begin <= (second(line) or begin) <= end

        return _keep(files, wanted)

    return apply


def only_levels(choice: Choice, levels: frozenset[str]) -> Transformation:
    """Keep only these levels in server logs; the request log stays."""

    def apply(random: Random, files: Files) -> Files:
        paths = {path for path in choice(random, files) if path.endswith("server.log")}

        def wanted(path: str, line: str) -> bool:
            found = _LEVEL.match(line)
            return path not in paths or found is None or found[1] in levels

        return _keep(files, wanted)

    return apply


def drop_thread(random: Random, files: Files) -> Files:
    """Drop the lines of one thread, as a filter on threads does."""
    path = random.choice(logs_of(files, "server.log"))
    threads = sorted({found[1] for line in files[path] if (found := _THREAD.match(line))})
    # Without threads no line has a newline in it, so none is dropped.
    off = f"[{random.choice(threads)}] " if threads else "\n"
    return files | {path: [line for line in files[path] if off not in line[:120]]}


def tear(at_the_end: bool) -> Transformation:
    """Break a line off in its middle: a full disk, or the end of a copy."""

    def apply(random: Random, files: Files) -> Files:
        path = random.choice(logs_of(files))
        lines = files[path]
        at = random.randrange(len(lines))
        # At least one character stays and two go: a line of its own that cannot be read as the whole one.
        torn = lines[at][: random.randint(1, max(1, len(lines[at]) - 2))]
        return files | {path: [*lines[:at], torn, *(() if at_the_end else lines[at + 1 :])]}

    return apply


def forget_restart(random: Random, files: Files) -> Files:
    """Drop the lines around the beginning of a process."""
    starts = [
        (path, at) for path, lines in sorted(files.items()) for at, line in enumerate(lines) if "Registered signal" in line
    ]
    if not starts:
        return files
    path, at = random.choice(starts)
    gone = set(range(at - random.randint(0, 10), at + random.randint(1, 40)))
    return files | {path: _drop(files[path], gone)}


def skew(random: Random, files: Files) -> Files:
    """Shift one node's clock by up to a quarter of an hour."""
    who, by = random.choice(sorted({node(path) for path in files})), random.uniform(-900, 900)

    def shifted(line: str) -> str:
        found, time = _TIME.match(line), second(line)
        if found is None or time is None:
            return line
        digits = len(found[5])
        ticks = round((time + by) * 10**digits)
        whole, fraction = divmod(max(0, min(ticks, 86399 * 10**digits)), 10**digits)
        # Clipped to the day: a date that moves would be another transformation.
        clock = f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02},{fraction:0{digits}}"
        return f"[{found[1]} {clock}]{line[found.end() :]}"

    return {path: [shifted(line) for line in lines] if node(path) == who else lines for path, lines in files.items()}


def duplicate_file(random: Random, files: Files) -> Files:
    """Repeat a file under a second name, as a copy or an old rotation."""
    path = random.choice(logs_of(files))
    return files | {f"{path.removesuffix('.log')}-copy.log": list(files[path])}


def duplicate_block(random: Random, files: Files) -> Files:
    """Repeat lines, as a log shipper that tries again does."""
    path = random.choice(logs_of(files))
    begin = random.randrange(len(files[path]))
    end = begin + random.randint(1, 100)
    return files | {path: files[path][:end] + files[path][begin:]}


def duplicate_node(random: Random, files: Files) -> Files:
    """Copy a node's folder beside itself."""
    who = random.choice(sorted({node(path) for path in files}))
    return files | {f"{who}-copy/{path.partition('/')[2]}": lines for path, lines in files.items() if node(path) == who}


LOSSES: Mapping[str, Transformation] = {
    "drop a line": drop_lines(1, 1),
    "drop a line of a server log": drop_lines(1, 1, "server.log"),
    "drop a request": drop_lines(1, 1, "request.log"),
    "drop a few lines": drop_lines(2, 20),
    "drop 1 % of the lines": drop_share(0.01),
    "drop 10 % of the lines": drop_share(0.1),
    "drop a block": drop_block(5, 300),
    "drop a block of requests": drop_block(2, 60, "request.log"),
    "drop a stretch of time everywhere": drop_time(everything),
    "drop a stretch of time of a node": drop_time(a_node),
    "drop a stretch of time of a request log": drop_time(a_request_log),
    "drop a stretch of time of a server log": drop_time(a_server_log),
    "drop a request log": drop_files(a_request_log),
    "drop every request log": drop_files(request_logs),
    "drop a server log": drop_files(a_server_log),
    "drop a broker": drop_files(a_broker),
    "drop the controller": drop_files(the_controller),
    "keep one broker": drop_files(but_one_broker),
    "keep the controller": drop_files(the_brokers),
    "a logger off": drop_logger(everything, whole=True),
    "a logger off at a node": drop_logger(a_node, whole=True),
    "a logger off for a while": drop_logger(everything, whole=False),
    "a logger off for a while at a node": drop_logger(a_node, whole=False),
    "no TRACE": only_levels(everything, frozenset({"DEBUG", "INFO", "WARN", "ERROR"})),
    "no TRACE at a node": only_levels(a_broker, frozenset({"DEBUG", "INFO", "WARN", "ERROR"})),
    "INFO": only_levels(everything, frozenset({"INFO", "WARN", "ERROR"})),
    "INFO at a node": only_levels(a_node, frozenset({"INFO", "WARN", "ERROR"})),
    "drop a thread": drop_thread,
    "begin late": truncated_time(everything, late=True, early=False),
    "a node begins late": truncated_time(a_node, late=True, early=False),
    "a request log begins late": truncated_time(a_request_log, late=True, early=False),
    "a server log begins late": truncated_time(a_server_log, late=True, early=False),
    "end early": truncated_time(everything, late=False, early=True),
    "a node ends early": truncated_time(a_node, late=False, early=True),
    "a request log ends early": truncated_time(a_request_log, late=False, early=True),
    "a server log ends early": truncated_time(a_server_log, late=False, early=True),
    "a window": truncated_time(everything, late=True, early=True),
    "tear a line": tear(at_the_end=False),
    "truncate in mid-line": tear(at_the_end=True),
    "forget a restart": forget_restart,
    "skew a clock": skew,
    "duplicate a file": duplicate_file,
    "duplicate lines": duplicate_block,
    "duplicate a node": duplicate_node,
}
"""By the name that reports use."""
