"""What starts a third party: a program that is built, or a package that is installed. Nothing is fetched but by Go."""

import os
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from tidegauge.drive.kafka_process.tool import run_tool
from tidegauge.impl.errors import UsageError

STARTERS = Path(__file__).with_name("starters")


def go(name: str) -> Callable[[Path], list[str]]:
    """A starter in Go, built outside of the checkout, in the versions that its go.mod names."""

    def command(folder: Path) -> list[str]:
        tool = shutil.which("go")
        if tool is None:
            raise UsageError(f"{name}: expected go on the PATH, to build it; seen none; install Go")
        program = folder / name
        env = {**os.environ, "GOTOOLCHAIN": "local"}  # another compiler is not downloaded
        run_tool(name, [tool, "build", "-o", str(program), "."], cwd=STARTERS / name, env=env)
        return [str(program)]

    return command


def python(name: str, package: str) -> Callable[[Path], list[str]]:
    """A starter in Python that needs a package."""

    def command(_folder: Path) -> list[str]:
        if find_spec(package.replace("-", "_")) is None:
            raise UsageError(f"{name}: expected the package {package}; seen none; `./run third-parties` installs it")
        return [sys.executable, str(STARTERS / f"{name}.py")]

    return command
