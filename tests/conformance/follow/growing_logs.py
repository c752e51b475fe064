"""A capture written again as its brokers wrote it: line by line in the order of time, with files rotated meanwhile."""

import gzip
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import NamedTuple

from tidegauge.conformance.checking.check import CheckOptions, Report
from tidegauge.conformance.follow.broker_logs import BrokerLogs
from tidegauge.conformance.follow.loop import News
from tidegauge.traces.kafka_logs.growing_capture import LINES
from validation.metamorphic.cases import logs

_TIME = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+)\]")


class Written(NamedTuple):
    """A line, and the file it belongs to."""

    path: str
    text: str


def in_time(files: Mapping[str, Sequence[str]]) -> list[Written]:
    """All lines in the order in which they were written, each file in its own."""
    stamped = []
    for path, lines in sorted(files.items()):
        latest = ""
        for number, line in enumerate(lines):
            found = _TIME.match(line)
            latest = latest if found is None else max(latest, found[1].ljust(26, "0"))
            stamped.append((latest, path, number, line))
    return [Written(path, line) for _, path, _, line in sorted(stamped)]


def renamed(path: Path, number: int) -> None:
    path.rename(path.with_name(f"{path.name}.{10_000 - number}"))


def named_by_hour(path: Path, number: int) -> None:
    path.rename(path.with_name(f"{path.name}.2025-01-01-{number:04d}"))


def packed(path: Path, number: int) -> None:
    """As log4j2 does it: gzip under another name, and the file is gone."""
    with gzip.open(path.with_name(f"{path.stem}-2025-01-01-{number}.log.gz"), "wb") as out:
        out.write(path.read_bytes())
    path.unlink()


def copied(path: Path, number: int) -> None:
    """logrotate's copytruncate."""
    shutil.copy(path, path.with_name(f"{path.name}.{10_000 - number}"))
    with path.open("r+b") as file:
        file.truncate()


ROTATIONS: tuple[Callable[[Path, int], None], ...] = (renamed, named_by_hour, packed, copied)


class Run(NamedTuple):
    """What came of following."""

    report: Report
    news: list[News]
    source: BrokerLogs
    lines: int
    """Lines that were read."""
    most: int
    """Lines that were held at most."""


def read(source: BrokerLogs) -> None:
    """All there is by now."""
    while source.read_piece():
        pass


def followed(
    capture: Path,
    folder: Path,
    random: Random,
    *,
    lines: int = LINES,
    pieces: int = 20,
    rotations: int = 0,
    torn: bool = False,
) -> Run:
    """Follow a capture that is written in so many pieces; some files are rotated in between."""
    every = in_time(logs(capture))
    places = sorted(random.randrange(len(every)) for _ in range(pieces))
    turns = [random.randrange(pieces + 1) for _ in range(rotations)]
    news: list[News] = []
    source, numbers = BrokerLogs(folder, CheckOptions(situations=True), news.append, lines), count(1)
    most = 0
    for turn, (begin, end) in enumerate(zip([0, *places], [*places, len(every)], strict=True)):
        for path, text in every[begin:end]:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with (folder / path).open("ab") as file:
                file.write(f"{text}\n".encode())
        read(source)
        for _ in range(turns.count(turn)):
            path = random.choice([one for one in sorted(folder.glob("*/*.log")) if one.stat().st_size])
            if random.random() < 0.5:  # a rotation that comes before what was written last is read
                read(source)
            random.choice(ROTATIONS)(path, next(numbers))
        if random.random() < 0.7:
            source.judge()
        most = max(most, source.line_count)
    with source.reading():
        read(source)
        source.end()
    return Run(source.report(), news, source, len(every), most)
