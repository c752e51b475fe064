"""Logs as they are written: whatever is rotated, renamed, packed or truncated meanwhile, every line is read once."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import count, pairwise
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.follow.growing_logs import ROTATIONS, copied, packed, renamed
from tidegauge.traces.kafka_logs.capture import FOLDER
from tidegauge.traces.kafka_logs.discovery.tail import GrowingLog, LogTails
from tidegauge.traces.kafka_logs.parsing.lines import read_lines
from validation.metamorphic.cases import logs

LOGS = ("n1/server", "n1/request", "n2/server")
Rotation = Callable[[Path, int], None]


def line(number: int) -> bytes:
    at = f"2026-11-21 10:{number // 60_000:02d}:{number // 1000 % 60:02d},{number % 1000:03d}"
    return f"[{at}] INFO [thread-{number}] message (kafka.server.X)\n".encode()


def read(tails: LogTails, into: dict[str, bytes], random: Random) -> None:
    while grown := tails.look():
        piece = tails.take(random.choice(grown))
        if piece is not None:
            into[f"{piece.log[0].name}/{piece.log[1]}"] += piece.data


steps = st.lists(
    st.one_of(
        st.just("read"),
        st.sampled_from(LOGS),
        st.tuples(st.sampled_from(LOGS), st.sampled_from(ROTATIONS)),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(steps=steps, seed=st.integers(0, 99))
def test_every_line_once_and_in_order(steps: Sequence[str | tuple[str, Rotation]], seed: int) -> None:
    with TemporaryDirectory() as made:
        folder, random, numbers = Path(made), Random(seed), count(1)
        tails, got, written = LogTails(folder), defaultdict[str, bytes](bytes), defaultdict[str, bytes](bytes)
        for step in steps:
            if step == "read":
                read(tails, got, random)
            elif isinstance(step, str):
                path = folder / f"{step}.log"
                path.parent.mkdir(exist_ok=True)
                with path.open("ab") as file:
                    text = line(next(numbers))
                    file.write(text)
                    written[step] += text
            elif (folder / f"{step[0]}.log").exists() and (folder / f"{step[0]}.log").stat().st_size:
                step[1](folder / f"{step[0]}.log", next(numbers))
        read(tails, got, random)
        read(tails, got, random)
        tails.close()
        assert got == written
        assert not tails.problems


@pytest.mark.parametrize("rotation", [renamed, packed, copied])
def test_what_was_there_before_is_read_in_its_order(rotation: Rotation, tmp_path: Path) -> None:
    path, numbers = tmp_path / "server.log", count(1)
    for begin in range(0, 9, 3):
        path.write_bytes(b"".join(line(number) for number in range(begin, begin + 3)))
        if begin < 6:
            rotation(path, next(numbers))
    got = defaultdict[str, bytes](bytes)
    with closing(LogTails(tmp_path)) as tails:
        read(tails, got, Random(0))
    assert list(got.values()) == [b"".join(map(line, range(9)))]


def test_a_truncation_without_a_copy_is_said(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(line(1) + line(2))
    got = defaultdict[str, bytes](bytes)
    with closing(LogTails(tmp_path)) as tails:
        read(tails, got, Random(0))
        path.write_bytes(line(3))
        read(tails, got, Random(0))
    assert list(got.values()) == [line(1) + line(2) + line(3)]
    assert [problem.seen for problem in tails.problems] == ["one that was truncated"]


TEXT = (
    b"[2026-11-21 10:30:01,001] INFO [main] starting (kafka.server.X)\n"
    b"[2026-11-21 10:30:01,002] INFO [main] ReplicaManagerConfig values:\n\ta = 1\n\tb = 2\n (kafka.server.X)\n"
    b"[2026-11-21 10:30:01,003] ERROR [main] failed (kafka.server.X)\njava.lang.Exception\n\tat somewhere\n"
    b"[2026-11-21 10:30:01,004] INFO [main] torn off\n"
    b"[2026-11-21 10:30:01,005] INFO [main] stopping (kafka.server.X)\n"
)


@given(places=st.lists(st.integers(0, len(TEXT)), max_size=8))
def test_lines_in_any_pieces_are_those_of_the_file(places: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("growing") / "server.log"
    path.write_bytes(TEXT)
    whole, one, lines = read_lines(path, "server.log"), GrowingLog("server.log"), []
    ends = [0, *sorted(places), len(TEXT)]
    for begin, end in pairwise(ends):
        lines += one.feed(TEXT[begin:end])
    lines += one.end()
    assert lines == whole.lines
    assert one.problems == whole.problems


@pytest.mark.parametrize(
    "data", [b"\xff\xfe[\0", b"\0\1\2\3\4" * 9 + b"\n", b'{"log":"[2026-11-21 10:30:01,001] INFO x (a.B)\\n"}\n']
)
def test_what_is_not_followed_is_said_once(data: bytes) -> None:
    one = GrowingLog("server.log")
    one.feed(data + b"\n")
    assert one.end() == [] == one.feed(data)
    assert len(one.problems) <= 1
    assert one.refused or one.layout is None


@settings(max_examples=20, deadline=None)
@given(places=st.lists(st.integers(0, 1 << 18), max_size=8))
def test_how_a_log_is_written_is_not_found_by_too_few_lines(
    places: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of one line alone the thread might be the beginning of the message."""
    path = tmp_path_factory.mktemp("layout") / "server.log"
    texts = logs(FOLDER / "4.2.0/k-epoch-jump")["n2/server.log"][:200]
    data = "".join(f"{text}\n" for text in texts).encode()
    path.write_bytes(data)
    one, lines = GrowingLog("server.log"), []
    for begin, end in pairwise([0, *sorted(place % len(data) for place in places), len(data)]):
        lines += one.feed(data[begin:end])
    assert [*lines, *one.end()] == read_lines(path, "server.log").lines
