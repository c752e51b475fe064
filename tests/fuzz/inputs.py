"""Inputs that nobody would write, made from those that somebody did: files, flags and bytes.

Rules of this file

1. An input is made from a seed and its number, and from nothing else: one line of the output makes it again.
2. Half of the changes are to bytes, half to what the bytes say: a field that is a list, an offset beyond 2^62, a line twice.
"""

import gzip
import json
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats import ndjson, parquet
from tidegauge.traces.kafka_logs.capture import shipped
from validation.golden import DIRECTORY

DISKS = Path(__file__).parents[1] / "kafka_logs" / "disks"
ODD: Sequence[Any] = (
    *(None, True, False, -1, 0, 1, -2, 2**31, 2**62 - 1, 2**62, 2**70, 1.5, float("inf"), "", "x", "\ud800", "\0", "1"),
    *([], {}, [[]], [1], [[0, 0]], [[0]], {"a": {}}, "9" * 5000, [None], "n1", -(2**63)),
)
"""What a JSON field may hold that it should not."""

WORDS = (
    *(b"", b"\0", b"\n", b"\r\n", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1f\x8b"),
    *b'{ } [ ] " - 99999999999999999999'.split(),
)
PLACES = ("n1/server.log", "n2/server.log", "n1/request.log", "n100/server.log", "server.log", "1/logs/kafka-request.log")
LINES_OF_A_LOG = 40


class Input(NamedTuple):
    """A command line and the files it finds, by their names below a folder; `{}` in an argument stands for that folder."""

    arguments: tuple[str, ...]
    files: Mapping[str, bytes]


def made(seed: int, number: int) -> Input:
    """The input of that number."""
    chosen = random.Random(f"{seed}/{number}")
    files, path = chosen.choice(KINDS)(chosen)
    return Input(tuple(_arguments(chosen, path)), files)


# ---------------------------------------------------------------------------------------------------------------------
# Flags

_VALUES: Mapping[str, Sequence[str]] = {
    "--profile": ("elr", "kip101", "hw-only", "fetch-truncation", "tomorrow", "", "release-3.4.1", "release-x", "\udcff"),
    "--release": ("3.4.1", "4.3.1", "0.10.2", "9", "", "3.4.", "-1", "4.3.99999999999999999999"),
    "--layout": ("[%d] %p [%t] %m (%c)%n", "%d %m %c", "%", "%d{HH:mm} %m %c", "%d{}", "(((", "%m%c%d%d", "%d{yyyy", ""),
    "--topic": ("alpha", "", "\udcff"),
    "--partition": ("alpha-0", "beta", "-1", "x-99999999999999999999"),
    "--from": ("2026-11-21T08:32:14", "1", "9999-12-31T23:59:59", ""),
    "--to": ("2026-11-21 08:32:20,5", "-1", "1763712735", "\0"),
    "--out": ("{}/out", "{}/out/deep", "{}/n1", "{}/t.ndjson", "/dev/null", "/dev/null/x", "", "{}/\udcff"),
}


def _arguments(chosen: random.Random, path: str) -> list[str]:
    command = chosen.choices(("check", "convert", "other"), (90, 9, 1))[0]
    if command == "other":
        words = (
            "check",
            "convert",
            "doctor",
            "--list",
            "--logging",
            "4.x",
            "--help",
            "--version",
            "--seed",
            "-",
            "--json-schema",
        )
        return chosen.choices(words, k=chosen.randrange(4))
    if command == "convert":
        target = chosen.choice(("{}/u.ndjson", "{}/u.parquet", "{}", "{}/no/u.ndjson", path, "/dev/null", "{}/t.ndjson"))
        return ["convert", "--quiet", path, target, *_flags(chosen, ("--layout",))]
    paths = [path] + [chosen.choice((path, "{}/nothing", "{}", "/dev/null", ""))] * (chosen.random() < 0.05)
    flags = _flags(chosen, tuple(_VALUES))
    # drawn last: an input that was wrong once stays the one of its number
    follow = ["--follow", "--until-idle", chosen.choice(("0.001", "0.001", "0", "x"))] * (chosen.random() < 0.04)
    return ["check", "--quiet", "--json", *paths, *flags, *follow]


def _flags(chosen: random.Random, names: Sequence[str]) -> list[str]:
    given: list[str] = []
    for name in names:
        if chosen.random() < 0.03:
            given += [name, chosen.choice(_VALUES[name])]
    return given + ["--all"] * (chosen.random() < 0.02) + ["--nonsense"] * (chosen.random() < 0.002)


# ---------------------------------------------------------------------------------------------------------------------
# Files

Files = tuple[dict[str, bytes], str]
"""Files by name, and the path that is judged."""


@cache
def _traces() -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted(DIRECTORY.glob("*.ndjson")))


@cache
def _tables() -> tuple[bytes, ...]:
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(DIRECTORY.glob("*.ndjson"))[:6]:
            trace, at = ndjson.read(path).traces[0], Path(scratch) / f"{path.stem}.parquet"
            parquet.write(to_columns([trace], trace.config), trace.config, at)
            found.append(at.read_bytes())
    return tuple(found)


@cache
def _logs() -> tuple[dict[str, list[bytes]], ...]:
    """Of each capture the lines of each log."""
    return tuple(
        {
            f"{path.parent.name}/{path.name.removesuffix('.gz')}": _plain(path).splitlines(keepends=True)
            for path in sorted(folder.glob("n*/*.log*"))
            if not path.name.split(".")[0].isdigit()
        }
        for folder in shipped().values()
    )


@cache
def _disks() -> dict[str, bytes]:
    return {path.relative_to(DISKS).as_posix(): path.read_bytes() for path in sorted(DISKS.rglob("*")) if path.is_file()}


def _plain(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def _one_trace(chosen: random.Random) -> Files:
    content = chosen.choice(_traces())
    if chosen.random() < 0.1:
        content += chosen.choice(_traces())
    lines = content.splitlines(keepends=True)
    for _ in range(chosen.choice((1, 1, 2, 3))):
        change = chosen.choice((_of_line, _of_line, _of_line, _of_order, _of_bytes))
        lines = change(chosen, lines)
    return {"t.ndjson": b"".join(lines)}, "{}/t.ndjson"


def _of_line(chosen: random.Random, lines: list[bytes]) -> list[bytes]:
    """One line says something else."""
    if not lines:
        return lines
    at = chosen.randrange(len(lines))
    try:
        document = json.loads(lines[at])
    except ValueError:
        return lines
    return [*lines[:at], json.dumps(changed_value(chosen, document)).encode() + b"\n", *lines[at + 1 :]]


def _of_order(chosen: random.Random, lines: list[bytes]) -> list[bytes]:
    """A line is gone, there twice, or elsewhere."""
    if not lines:
        return lines
    at, to = chosen.randrange(len(lines)), chosen.randrange(len(lines))
    left = [*lines[:at], *lines[at + 1 :]]
    return chosen.choice((left, [*lines, lines[at]], [*left[:to], lines[at], *left[to:]]))


def changed_value(chosen: random.Random, value: Any) -> Any:
    """A JSON value with one thing in it replaced, left out or added."""
    if isinstance(value, dict) and value and chosen.random() < 0.9:
        key = chosen.choice(list(value))
        if chosen.random() < 0.15:
            return {name: one for name, one in value.items() if name != key}
        if chosen.random() < 0.05:
            return value | {chosen.choice(list(value)): chosen.choice(ODD)}
        return value | {key: changed_value(chosen, value[key])}
    if isinstance(value, list) and value and chosen.random() < 0.7:
        at = chosen.randrange(len(value))
        return [*value[:at], changed_value(chosen, value[at]), *value[at + 1 :]]
    if isinstance(value, int) and chosen.random() < 0.5:
        return value + chosen.choice((-1, 1, 2, -value, 2**33))
    return chosen.choice(ODD)


def changed_bytes(chosen: random.Random, content: bytes) -> bytes:
    """Some bytes replaced, removed, repeated or added, or the rest truncated."""
    at = chosen.randrange(len(content) + 1)
    to = min(len(content), at + chosen.choice((0, 1, 1, 4, 30, 400)))
    match chosen.randrange(5):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + content[to:]
        case 2:
            return content[:at] + chosen.choice(WORDS) + content[to:]
        case 3:
            return content[:at] + chosen.randbytes(to - at) + content[to:]
        case _:
            return content[:to] + content[at:to] + content[to:]


def _a_table(chosen: random.Random) -> Files:
    content = chosen.choice(_tables())
    for _ in range(chosen.choice((1, 1, 2, 8))):
        content = changed_bytes(chosen, content)
    return {"t.parquet": content}, "{}/t.parquet"


def _some_logs(chosen: random.Random) -> Files:
    """A few lines of each log around the same place, in some places, changed."""
    capture = chosen.choice(_logs())
    files: dict[str, bytes] = {}
    where = chosen.random()
    for name, lines in capture.items():
        if chosen.random() < 0.3:
            continue
        first = int(where * max(0, len(lines) - LINES_OF_A_LOG)) if chosen.random() < 0.7 else 0
        some = lines[first : first + chosen.randrange(LINES_OF_A_LOG)]
        for _ in range(chosen.choice((0, 1, 1, 2, 4))):
            some = chosen.choice((_of_request, _of_order, _of_bytes, _of_number))(chosen, some)
        content = b"".join(some)
        to = name if chosen.random() < 0.9 else chosen.choice(PLACES)
        if chosen.random() < 0.1:
            to, content = f"{to}.gz", gzip.compress(content, 1, mtime=0)
            content = changed_bytes(chosen, content) if chosen.random() < 0.5 else content
        if to.removesuffix(".gz") not in files and f"{to}.gz" not in files:
            files[to] = content
    if chosen.random() < 0.1:
        files |= {f"n1/{name}": content for name, content in _some_disk(chosen)[0].items()}
    alone = chosen.choice(list(files)) if files and chosen.random() < 0.1 else ""
    return files, f"{{}}/{alone}" if alone else "{}"


def _of_bytes(chosen: random.Random, lines: list[bytes]) -> list[bytes]:
    return changed_bytes(chosen, b"".join(lines)).splitlines(keepends=True)


def _of_number(chosen: random.Random, lines: list[bytes]) -> list[bytes]:
    """A number, or a word, of one line is another."""
    if not lines:
        return lines
    at = chosen.randrange(len(lines))
    words = lines[at].replace(b"=", b"= ").split(b" ")
    spot = chosen.randrange(len(words))
    words[spot] = chosen.choice((b"-1", b"0", b"99999999999999999999", b"None", b"[]", b"2,", b"x-0", *WORDS))
    return [*lines[:at], b" ".join(words).replace(b"= ", b"=") + b"\n" * (spot == len(words) - 1), *lines[at + 1 :]]


def _of_request(chosen: random.Random, lines: list[bytes]) -> list[bytes]:
    """A request of the request log says something else."""
    asked = [at for at, line in enumerate(lines) if b"Completed request" in line]
    if not asked:
        return lines
    at = chosen.choice(asked)
    begin, end = lines[at].find(b"{"), lines[at].rfind(b"}") + 1
    try:
        document = json.loads(lines[at][begin:end])
    except ValueError:
        return lines
    said = json.dumps(changed_value(chosen, document)).encode()
    return [*lines[:at], lines[at][:begin] + said + lines[at][end:], *lines[at + 1 :]]


def _some_disk(chosen: random.Random) -> Files:
    files = {name: content for name, content in _disks().items() if chosen.random() < 0.8}
    for name in chosen.sample(sorted(files), k=min(len(files), chosen.choice((1, 1, 2, 4)))):
        files[name] = changed_bytes(chosen, files[name])
    return files, "{}"


def _anything(chosen: random.Random) -> Files:
    name = chosen.choice(("t.ndjson", "t.parquet", "server.log", "n1/server.log", "x", "n1/request.log.gz"))
    start = chosen.choice(
        (b"", b"PAR1", b"\x1f\x8b\x08", b"{", b"[2026-11-21 08:27:15,637] ", b'{"v":1,"event":"Config","nodes":[1]}\n')
    )
    return {name: start + chosen.randbytes(chosen.choice((0, 1, 20, 300)))}, chosen.choice(("{}", f"{{}}/{name}"))


KINDS: Sequence[Callable[[random.Random], Files]] = (
    *(_one_trace, _one_trace, _one_trace, _a_table),
    *(_some_logs, _some_logs, _some_logs, _some_disk, _anything),
)
