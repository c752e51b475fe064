"""Processes that work side by side end with the one that waits for them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = """
import os, time
from tidegauge.conformance.judging.workers import workers

def busy(place):
    with open(place, "w") as mine:
        mine.write(str(os.getpid()))
    time.sleep(600)

if __name__ == "__main__":
    import sys
    with workers(2) as side_by_side:
        list(side_by_side(busy, sys.argv[1:]))
"""
SOON = 30.0


def lives(process: int) -> bool:
    """Whether there is such a process, and it is not just waiting to be buried."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat")
    return not stat.exists() or stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_whoever_is_killed_leaves_none_of_them(how: signal.Signals, tmp_path: Path) -> None:
    script, places = tmp_path / "parent.py", [tmp_path / "one", tmp_path / "two"]
    script.write_text(SCRIPT, encoding="utf-8")
    with subprocess.Popen([sys.executable, str(script), *map(str, places)]) as parent:
        until = time.monotonic() + SOON
        while not all(place.exists() and place.read_text(encoding="utf-8") for place in places):
            assert time.monotonic() < until, "expected two processes at work"
            time.sleep(0.05)
        workers = [int(place.read_text(encoding="utf-8")) for place in places]
        parent.send_signal(how)
        parent.wait()
    until = time.monotonic() + SOON
    while left := [process for process in workers if lives(process)]:
        assert time.monotonic() < until, f"expected that they end; {left} live"
        time.sleep(0.05)
