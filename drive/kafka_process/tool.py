"""A tool of this machine that takes its time: Maven fetches, Go builds."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidegauge.impl.errors import UsageError

MINUTES = 10
LAST_WORDS = 5


def run_tool(
    what: str, command: Sequence[str], ask: str = "", *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> None:
    """Run it to its end. Raises UsageError with its last words, and with what to `ask` oneself."""
    tool = command[0]
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60 * MINUTES,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{what}: expected within {MINUTES} minutes; {tool} is not done") from None
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-LAST_WORDS:])
        raise UsageError(f"{what}: expected {tool} to make it; seen exit code {done.returncode}{ask}\n{said}")
