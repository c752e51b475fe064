"""Processes that work side by side end with the one that waits for them."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.drive.kafka_process.test_process import soon

SCRIPT = """
import os, sys, time
from tidegauge.util.workers import workers

def busy(place):
    with open(place, "w") as mine:
        mine.write(str(os.getpid()))
    time.sleep(600)

if __name__ == "__main__":
    with workers(2) as side_by_side:
        list(side_by_side(busy, sys.argv[1:]))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_whoever_is_killed_leaves_none_of_them(how: signal.Signals, tmp_path: Path) -> None:
    script, places = tmp_path / "parent.py", [tmp_path / "one", tmp_path / "two"]
    script.write_text(SCRIPT, encoding="utf-8")
    with subprocess.Popen([sys.executable, str(script), *map(str, places)]) as parent:
        assert soon(lambda: all(place.exists() and place.read_text(encoding="utf-8") for place in places))
        workers = [int(place.read_text(encoding="utf-8")) for place in places]
        assert all(map(alive, workers))
        parent.send_signal(how)
    assert soon(lambda: not any(map(alive, workers)))


def alive(pid: int) -> bool:
    """Return whether a process runs; one that has ended and was not waited for does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
