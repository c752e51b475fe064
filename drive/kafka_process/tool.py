"""Runs a tool of this machine that takes its time: Maven fetches, Go builds."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidegauge.impl.errors import UsageError

TOOL_MINUTES = 10
SHOWN_LINES = 5


def run_tool(
    what: str, command: Sequence[str], hint: str = "", *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> None:
    """Run a command to its end. `what` it makes and the `hint` go into the message.

    Raises UsageError with the last lines of its output when it fails or takes too long.
    """
    tool = command[0]
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60 * TOOL_MINUTES,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"{what}: expected within {TOOL_MINUTES} minutes; {tool} is not done") from None
    if done.returncode:
        output = "\n".join((done.stdout + done.stderr).strip().splitlines()[-SHOWN_LINES:])
        raise UsageError(f"{what}: expected {tool} to make it; seen exit code {done.returncode}{hint}\n{output}")
