"""The clocks of a process: moved where a C compiler makes what is preloaded, and what the doctor says of it."""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tidegauge.cli.main import main
from tidegauge.drive.kafka_process.clock import COMPILERS, MovedClock, NoLibraryError, RealClock, build_library, make_clock


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A compiler that fails, the only one on the PATH of Linux."""
    program = tmp_path / "path" / COMPILERS[0]
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho broken.c:1: error: no C >&2; exit 1\n", encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr(sys, "platform", "linux")


@pytest.fixture
def moved() -> Iterator[MovedClock]:
    """Clocks that are moved, where they can be."""
    try:
        library = build_library()
    except NoLibraryError as problem:
        pytest.skip(str(problem))
    with closing(MovedClock(library)) as clocks:
        yield clocks


LOOKS = """import sys, time
for _ in sys.stdin:
    print(time.monotonic(), time.time(), flush=True)
"""


def test_each_clock_of_a_process_is_moved_by_itself(moved: MovedClock) -> None:
    with subprocess.Popen(
        [sys.executable, "-S", "-c", LOOKS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **moved.environment},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        seen = []
        for advance in (lambda: None, lambda: moved.advance(5_000), lambda: moved.advance_date(70_000)):
            advance()
            process.stdin.write("\n")
            process.stdin.flush()
            seen.append([float(word) for word in process.stdout.readline().split()])
        process.stdin.close()
    (first, date), (second, same_date), (third, later_date) = seen
    assert abs(date - time.time()) < 100, "an offset is nothing at first"
    assert 5_000 <= second - first < 5_100
    assert 0 <= same_date - date < 100
    assert 0 <= third - second < 100
    assert 70_000 <= later_date - same_date < 70_100


NAMED = """import ctypes, sys, time
libc = ctypes.CDLL(None)
libc.pthread_self.restype, libc.pthread_setname_np.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)
for line in sys.stdin:
    assert libc.pthread_setname_np(libc.pthread_self(), line.strip().encode()) == 0
    print(time.monotonic(), open("/proc/thread-self/comm").read(), end="", flush=True)
"""


def test_what_makes_meters_tick_keeps_the_clocks_of_the_machine(moved: MovedClock) -> None:
    """Or each move would be a hundred ticks of every meter (com.yammer.metrics)."""
    moved.advance(5_000)
    names = ("kafka-scheduler", "metrics-meter-t", "metrics-reporte")
    done = subprocess.run(
        [sys.executable, "-S", "-c", NAMED],
        input="".join(f"{name}\n" for name in names),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **moved.environment},
    )
    seen = [line.split() for line in done.stdout.splitlines()]
    assert tuple(name for _, name in seen) == names, "it has the name for everybody"
    assert [round((float(at) - time.monotonic()) / 5_000) for at, _ in seen] == [1, 0, 1]


WAITS = """import ctypes, sys, time
libc, mutex, condition = ctypes.CDLL(None), ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
libc.pthread_mutex_lock(mutex)
until = (ctypes.c_long * 2)(int(time.monotonic()) + 60, 0)
print("begun", flush=True)
sys.stdin.readline()
print(libc.pthread_cond_timedwait(condition, mutex, until), flush=True)
"""


def test_a_wait_for_what_was_before_the_machine_started_is_over(moved: MovedClock) -> None:
    """The clock is moved by more than the machine is up: the deadline, put back, is before its clock's beginning."""
    command = [sys.executable, "-S", "-c", WAITS]
    environment = {**os.environ, **moved.environment}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        moved.advance(time.monotonic() + 1_000)
        assert process.communicate("\n", 60)[0] == f"{errno.ETIMEDOUT}\n"


def test_without_a_compiler_time_passes_by_waiting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the doctor says what is missing, and what to do."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(NoLibraryError, match="expected cc, gcc or clang on PATH"):
        build_library()
    assert isinstance(make_clock(), RealClock)
    assert main(["doctor"]) == 2
    said = capsys.readouterr().out
    assert "MISSING  C compiler: expected cc, gcc or clang on PATH; seen none of them" in said
    assert "install gcc or clang" in said
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(NoLibraryError, match="expected Linux, where a library can be preloaded; seen darwin"):
        build_library()


@pytest.mark.usefixtures("compiler")
def test_a_cache_that_cannot_be_written_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Time passes by waiting then, too."""
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(NoLibraryError, match="expected a folder that can be written"):
        build_library()
    assert isinstance(make_clock(), RealClock)


@pytest.mark.usefixtures("compiler")
def test_a_compiler_that_fails_is_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text("no C", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NoLibraryError, match=r"expected that .* compiles broken\.c; seen: .*error: no C"):
        build_library(broken)


def test_a_library_that_was_made_needs_no_compiler_and_the_doctor_says_where_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    try:
        library = build_library()
    except NoLibraryError as problem:
        pytest.skip(str(problem))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build_library() == library
    main(["doctor"])
    assert f"found    C compiler: clock.c is compiled, {library}" in capsys.readouterr().out
