"""A third-party broker: what it is, how it is started, and the reasons why it differs from Kafka.

Rules of this file

1. A reason is written after the source was read. It names the file and the function, or the place where the project says
   that it does not do this.
2. `claimed` is False for what the project itself says it leaves out: that is no difference, whatever the response is.
3. The reason of a check is the first whose pattern matches its id.
4. A starter is a program that is built, or a package that is installed. Nothing is downloaded but by Go.
"""

import os
import shutil
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from tidegauge.drive.kafka_process.builds import run_tool
from tidegauge.util.errors import UsageError

STARTERS = Path(__file__).with_name("starters")


class Reason(NamedTuple):
    """The reason why some checks fail, by patterns of their ids; `source` is Markdown."""

    checks: tuple[str, ...]
    text: str
    source: str
    claimed: bool = True

    def fits(self, check: str) -> bool:
        """Return whether this is about a check."""
        return any(fnmatchcase(check, pattern) for pattern in self.checks)


class ThirdParty(NamedTuple):
    """A third-party broker. `command` gets a scratch folder and returns what to run, or raises UsageError."""

    name: str
    title: str
    about: str
    command: Callable[[Path], list[str]]
    reasons: tuple[Reason, ...]

    def reason(self, check: str) -> Reason | None:
        """Return why a check fails, None if that was not looked up yet."""
        # The first that fits: a reason for one check comes before one for its whole group.
        return next((reason for reason in self.reasons if reason.fits(check)), None)


def go_starter(name: str) -> Callable[[Path], list[str]]:
    """Return the command of a starter in Go, built in the scratch folder with the versions in its go.mod."""

    def command(folder: Path) -> list[str]:
        tool = shutil.which("go")
        if tool is None:
            raise UsageError(f"{name}: expected the command go on the PATH, to build the starter; seen none; install Go")
        program = folder / name
        env = {**os.environ, "GOTOOLCHAIN": "local"}  # another compiler is not downloaded
        run_tool(name, [tool, "build", "-o", str(program), "."], cwd=STARTERS / name, env=env)
        return [str(program)]

    return command


def python_starter(name: str, package: str) -> Callable[[Path], list[str]]:
    """Return the command of a starter in Python, which needs a package."""

    def command(_folder: Path) -> list[str]:
        if find_spec(package.replace("-", "_")) is None:
            raise UsageError(f"{name}: expected the package {package}; seen none; `./run third-parties` installs it")
        return [sys.executable, str(STARTERS / f"{name}.py")]

    return command
