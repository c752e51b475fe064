"""--follow: NDJSON or broker logs are judged as they are written, or standard input as it comes in.

Rules of this file

1. A signal is heeded between two pieces, so that what was read has been judged and the report stands. A second one is not
   waited for.
2. A file that another has taken the place of is read to its end first; one that was truncated is read from its beginning.
"""

import argparse
import os
import select
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tidegauge.commands.counts import seconds
from tidegauge.impl.errors import UsageError
from tidegauge.spec.interrupts import InterruptFlag, noted_interrupts
from tidegauge.traces.files.uri import elsewhere

if TYPE_CHECKING:
    from tidegauge.conformance.judging.check import CheckOptions, Report
    from tidegauge.conformance.judging.follow import News

POLL = 0.2
"""Seconds between two looks at a file that has not grown."""
PIECE = 1 << 18
"""Bytes that are judged at once: a thousand lines, some tenths of a second."""
STDIN = "-"
WHOLE = {
    "out": "--out",
    "layout": "--layout",
    "topic": "--topic",
    "partition": "--partition",
    "begin": "--from",
    "end": "--to",
    "processes": "--processes",
}
"""Arguments of `check` that ask for something of an input that is whole."""
LOGS = frozenset({"a directory", "a broker log"})
OF_LOGS = frozenset({"layout"})
"""Those that broker logs take all the same."""
SMALL, ENOUGH = 1 << 14, 100
"""Pieces of so few bytes are read as they are written; after so many of them what there is is judged."""
LOOK = 0.5
"""Seconds between two looks at what broker logs hold by now; at least as long as one takes."""


class Anew(NamedTuple):
    """What follows is read from the beginning of a file."""

    why: str


def arguments(parser: argparse.ArgumentParser) -> None:
    """Take them."""
    parser.add_argument(
        "--follow",
        action="store_true",
        help="judge an NDJSON file, standard input (-) or a directory of broker logs as they grow, with --spark a directory "
        "that Parquet files arrive in: failures are printed as soon as they are known, the report at the end (Ctrl-C, end "
        "of standard input)",
    )
    parser.add_argument(
        "--until-idle", type=seconds, metavar="SECONDS", help="with --follow: end when nothing came for so long"
    )


def followed(
    args: argparse.Namespace, how: "CheckOptions", say: Callable[[str], None], note: Callable[[str], None]
) -> "Report":
    """The report on what came. `say` is told each failure at once, `note` what is wrong with the input."""
    from tidegauge.conformance.judging.follow import Alarm, Follow, Withdrawn

    path, kind = _path(args)
    if kind in LOGS:
        return _logs(Path(path), args.until_idle, how, say, note)
    follow = Follow("stdin" if path == STDIN else path, how)
    with noted_interrupts() as ended:
        for piece in _standard_input(args.until_idle, ended) if path == STDIN else _file(path, args.until_idle, ended):
            for news in follow.next_file(piece.why) if isinstance(piece, Anew) else follow.feed(piece):
                (say if isinstance(news, Alarm | Withdrawn) else note)(str(news))
            if follow.stopped:
                break
        for news in follow.end():
            (say if isinstance(news, Alarm | Withdrawn) else note)(str(news))
    return follow.report()


def _logs(
    path: Path, idle: float | None, how: "CheckOptions", say: Callable[[str], None], note: Callable[[str], None]
) -> "Report":
    """The report on broker logs."""
    from tidegauge.conformance.judging.follow import Alarm, Withdrawn
    from tidegauge.conformance.judging.follow_logs import FollowLogs
    from tidegauge.traces.kafka.lines.tails import Tails

    follow, tails = FollowLogs(path, how), Tails(path)

    def heed(news: "Iterable[News]") -> None:
        for one in (*tails.problems, *news):
            (say if isinstance(one, Alarm | Withdrawn) else note)(str(one))
        tails.problems.clear()

    with noted_interrupts() as ended, closing(tails):
        last = looked = time.monotonic()
        took, fresh = 0.0, False
        while not ended:
            grown, small = tails.look(), 0
            while grown and not ended and small < ENOUGH:
                piece = tails.take(min(grown, key=follow.reached))
                heed(() if piece is None else follow.feed(piece))
                small = 0 if piece is not None and len(piece.data) >= SMALL else small + 1
                last, fresh = time.monotonic(), True
                grown = tails.look()
                heed(follow.go_on(grown))
            begin = time.monotonic()
            if fresh and begin - looked >= max(LOOK, took):
                heed(follow.look())
                looked, fresh = time.monotonic(), False
                took = looked - begin
            elif idle is not None and begin - last >= idle:
                break
            else:
                time.sleep(POLL if idle is None else min(POLL, idle))
        heed(follow.end())
    return follow.report()


def _path(args: argparse.Namespace) -> tuple[str, str]:
    """The one path that is followed, and what it is. Raises UsageError for what cannot be."""
    if len(args.path) != 1:
        raise UsageError(f"check --follow: expected one path, or - for standard input, seen {len(args.path)} paths")
    (path,) = args.path
    if uri := elsewhere(path):
        raise UsageError(
            f"check --follow: {uri}: expected a path of this machine, seen a URI; "
            "with --spark Parquet is followed where it lies"
        )
    kind = "NDJSON" if path == STDIN else _kind(Path(path))
    for flag, name in WHOLE.items():
        if getattr(args, flag) and not (kind in LOGS and flag in OF_LOGS):
            raise UsageError(
                f"check --follow: expected no {name}, seen it; it is for what is whole: run check without --follow"
            )
    if kind == "a Parquet file":
        raise UsageError(
            f"check --follow: {path}: expected NDJSON or broker logs, seen {kind}; "
            "run check without --follow, and again when there is more"
        )
    return str(path), kind


def _kind(path: Path) -> str:
    from tidegauge.conformance.judging.inputs import is_parquet
    from tidegauge.traces.kafka import is_log

    if path.is_dir():
        return "a directory"
    if is_parquet(path):
        return "a Parquet file"
    return "a broker log" if is_log(path) else "NDJSON"


def _file(path: str, idle: float | None, ended: InterruptFlag) -> Iterator[bytes | Anew]:
    file = Path(path).open("rb", buffering=0)  # noqa: SIM115  another one may take its place
    last = time.monotonic()
    try:
        while not ended:
            if data := file.read(PIECE):
                yield data
                last = time.monotonic()
            elif (other := _replacing(file, path)) is not None:
                while data := file.read(PIECE):
                    yield data
                file.close()
                file = other
                yield Anew(f"{path}: another file is in its place; it is read from its beginning")
            elif os.fstat(file.fileno()).st_size < file.tell():
                file.seek(0)
                yield Anew(
                    f"{path}: the file was truncated; it is read from its beginning, what was lost in between is not known"
                )
            elif idle is not None and time.monotonic() - last >= idle:
                return
            else:
                time.sleep(POLL if idle is None else min(POLL, idle))
    finally:
        file.close()


def _replacing(file: FileIO, path: str) -> FileIO | None:
    """The file that the path names by now, if that is another one; between the two of a rotation it names none."""
    try:
        if os.path.samestat(Path(path).stat(), os.fstat(file.fileno())):
            return None
        return Path(path).open("rb", buffering=0)
    except FileNotFoundError:
        return None


def _standard_input(idle: float | None, ended: InterruptFlag) -> Iterator[bytes]:
    source, last = sys.stdin.fileno(), time.monotonic()
    while not ended:
        if select.select([source], [], [], POLL)[0]:
            data = os.read(source, PIECE)
            if not data:
                return
            yield data
            last = time.monotonic()
        elif idle is not None and time.monotonic() - last >= idle:
            return
