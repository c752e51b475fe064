"""Whatever happens to us, the process that the guard keeps ends, and its folder goes. No Java is needed for that."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tidegauge.drive.kafka_process import guard
from tidegauge.drive.kafka_process import process as kafka_process
from tidegauge.drive.kafka_process.process import KafkaProcess
from tidegauge.drive.wire.compiler import WireError
from tidegauge.util.java import Java

HOLDS = """
import json, subprocess, sys, time
guard = subprocess.Popen([sys.executable, "-I", "-S", {guard!r}, {prefix!r}], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, start_new_session=True)
folder = json.loads(guard.stdout.readline())["folder"]
sleeps = "import time; time.sleep(60)"
child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-S', '-c', {{sleeps!r}}]); {{sleeps}}"
line = {{"run": [sys.executable, "-S", "-c", child], "out": folder + "/out"}}
guard.stdin.write(json.dumps(line).encode() + b"\\n"); guard.stdin.flush()
print(json.loads(guard.stdout.readline())["pid"], guard.pid, folder, flush=True)
time.sleep(60)
"""


def soon(met: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if met():
            return True
        time.sleep(0.02)
    return False


def in_group(group: int) -> list[str]:
    """Return the command lines of the processes of a process group that have not ended."""
    members = []
    for pid, command in running():
        with suppress(ProcessLookupError):
            if os.getpgid(pid) == group:
                members.append(command)
    return members


def running() -> Iterator[tuple[int, str]]:
    """Yield each process that has not ended, with its command line."""
    for process in psutil.process_iter(["pid", "status", "cmdline"]):
        # A zombie has ended: only its parent has not asked for its exit code yet.
        if process.info["status"] != psutil.STATUS_ZOMBIE:
            yield process.info["pid"], " ".join(process.info["cmdline"] or ())


def running_commands() -> list[str]:
    return [command for _, command in running()]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_when_we_die_the_process_and_all_it_started_end_and_the_folder_goes(how: int, tmp_path: Path) -> None:
    text = HOLDS.format(guard=guard.__file__, prefix=str(tmp_path / "kept-"))
    holder = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert holder.stdout is not None
    pid, _, folder = holder.stdout.readline().split()
    assert soon(lambda: len(in_group(int(pid))) == 2)
    assert Path(folder).is_dir()
    holder.send_signal(how)
    holder.wait()
    holder.stdout.close()
    assert soon(lambda: not in_group(int(pid)))
    assert soon(lambda: not list(tmp_path.iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_when_the_guard_dies_the_process_ends_with_it(tmp_path: Path) -> None:
    text = HOLDS.format(guard=guard.__file__, prefix=str(tmp_path / "kept-"))
    holder = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    pid, guarding, _ = holder.stdout.readline().split()
    os.kill(int(guarding), signal.SIGKILL)
    assert soon(lambda: not any("subprocess" in row for row in in_group(int(pid))))
    holder.kill()
    holder.wait()
    holder.stdout.close()
    for row in in_group(int(pid)):
        assert "sleep" in row
        os.killpg(int(pid), signal.SIGKILL)


@pytest.mark.parametrize("seed", range(20))
def test_killed_at_any_moment_nothing_is_left(seed: int, tmp_path: Path) -> None:
    """Also before the guard has said that it is there."""
    text = HOLDS.format(guard=guard.__file__, prefix=str(tmp_path / "kept-"))
    holder = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(random.Random(seed).random() * 0.3)
    holder.kill()
    holder.wait()
    assert soon(lambda: not any(str(tmp_path) in command for _, command in running()))
    assert soon(lambda: not list(tmp_path.iterdir()))


def test_a_process_is_ended_in_order(tmp_path: Path) -> None:
    """What the guard ignores it does not: it gets the signal, and says its last words."""
    body = "import signal,sys,time; signal.signal(signal.SIGTERM, lambda *_: sys.exit('in order')); print('up',flush=True)"
    line = {"run": [sys.executable, "-S", "-c", f"{body}; time.sleep(60)"], "out": str(tmp_path / "out")}
    command = [sys.executable, "-I", "-S", guard.__file__, str(tmp_path / "kept-")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as guarding:
        assert guarding.stdin is not None
        guarding.stdin.write(json.dumps(line) + "\n")
        guarding.stdin.flush()
        assert soon(lambda: (tmp_path / "out").is_file() and "up" in (tmp_path / "out").read_text())
        guarding.stdin.write(json.dumps({"signal": signal.SIGTERM}) + "\n")
        guarding.stdin.flush()
        assert soon(lambda: "in order" in (tmp_path / "out").read_text())


@pytest.mark.parametrize(
    ("there", "room", "named", "in_memory"),
    [(True, 1, False, True), (True, 1, True, False), (True, 1 << 60, False, False), (False, 1, False, False)],
    ids=["there is room", "TMPDIR names a place", "no room", "no such place"],
)
def test_a_folder_lies_in_memory_where_there_is_room_and_no_other_place_is_named(
    there: bool, room: int, named: bool, in_memory: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, other = tmp_path / "memory", tempfile.gettempdir()
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    if named:
        monkeypatch.setenv("TMPDIR", other)
    if there:
        memory.mkdir()
    monkeypatch.setattr(kafka_process, "IN_MEMORY", memory)
    monkeypatch.setattr(kafka_process, "ROOM", room)
    assert kafka_process.scratch_root() == (memory if in_memory else Path(other))


def test_what_a_process_said_before_it_ended_by_itself_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JVM that refuses an agent, say. What it logged about others, or after a step, is not told of that step."""
    program = tmp_path / "java"
    program.write_text("#!/bin/sh\necho 'agent library failed \a to init'\nexit 3\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(kafka_process, "find_java", lambda: Java(program, 17, "here"))
    kafka = KafkaProcess("", {"node.id": 1})
    try:
        kafka.check_runs()
        kafka.start()
        assert soon(lambda: kafka._guarded.exit_code() is not None)
        with pytest.raises(WireError, match=r"seen exit code 3; its last words:\nagent library failed \\x07 to init"):
            kafka.check_runs()
        assert kafka.lines_about(["p1"], 99) == []
        kafka.log.write_text("p1 begins\np2\np1 ends\n", encoding="utf-8")
        assert kafka.lines_about(["p1"], len("p1 begins\np2\n")) == ["p1 begins"]
        assert kafka.lines_about(["p1"], kafka.log_size()) == ["p1 begins", "p1 ends"]
    finally:
        kafka.close()
