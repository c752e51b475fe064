"""What the tests of hostile inputs share."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CAPTURE = ROOT / "tidegauge" / "traces" / "captures" / "3.4.0" / "b-kill-leader"
MOST_BYTES = 1 << 30
"""The memory that any hostile input may need."""

SLOWEST = 600
"""Seconds after which a command is ended: one that compiles the judge on a busy machine takes minutes."""

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# ru_maxrss would be that of the test's own process: exec keeps it (Linux, exec_mmap).
_MEASURED = """
import sys
from tidegauge.__main__ import run

if __name__ == "__main__":
    most = int(sys.argv.pop(1))
    sys.argv[0] = "tidegauge"
    code = run()
    (peak,) = (int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
    sys.exit(code if peak <= most else f"peak of memory: {peak:,} bytes")
"""


@pytest.fixture
def command(tmp_path: Path) -> Run:
    """Run tidegauge as its installed script does, in a directory; above MOST_BYTES of memory it says so and fails."""
    script = tmp_path / "command" / "tidegauge"
    script.parent.mkdir()
    script.write_text(_MEASURED)

    def run(*arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
        called = [sys.executable, str(script), str(MOST_BYTES), *map(str, arguments)]
        whole = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", **(env or {})}
        return subprocess.run(
            called,
            cwd=cwd,
            env=whole,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
            timeout=SLOWEST,
        )

    return run
