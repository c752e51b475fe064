"""`python -m validation.docs.tutorials`: play docs/first-*.md from the built wheel, and say how long each took.

Each page is played in an environment and a folder of its own, with what python:3.12-slim has on its PATH: no compiler, ps,
make or Java. The time includes the installation.

Rules of this file

1. A line of a `console` block that begins with `$ ` is a command, what follows it must be in its output, in this order; `..`
   stands for anything. All commands of a page are run in one shell.
2. A command must not end with a traceback, and its exit code must be one of Tidegauge's.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tidegauge.util.python_processes import python_command

ROOT = Path(__file__).resolve().parents[2]
PAGES = tuple(sorted((ROOT / "docs").glob("first-*.md")))
SLIM = ("sh", "bash", "cat", "cp", "grep", "head", "ls", "mkdir", "mv", "rm", "sed", "tail", "uname")
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_MARK = "::played"


class PlayedCommand(NamedTuple):
    """A command of a page, the lines that its output must have, and the output it had."""

    command: str
    expected: Sequence[str]
    output: str = ""
    code: int = 0

    def problem(self) -> str:
        """Return what is wrong with the output, empty for nothing."""
        lines = iter(self.output.splitlines())
        for line in self.expected:
            pattern = re.compile(".*".join(map(re.escape, line.strip().split(".."))))
            if not any(pattern.search(each) for each in lines):
                return f"{self.command}: expected the line {line!r}; seen\n{self.output}"
        if self.code not in (0, 1) or "Traceback" in self.output:
            return f"{self.command}: expected exit code 0 or 1; seen {self.code} and\n{self.output}"
        return ""


def commands(page: Path) -> list[PlayedCommand]:
    """Return the commands of a page."""
    steps: list[PlayedCommand] = []
    for line in "".join(_BLOCK.findall(page.read_text(encoding="utf-8"))).splitlines():
        if line.startswith("$ "):
            steps.append(PlayedCommand(line[2:], []))
        else:
            steps[-1] = steps[-1]._replace(expected=[*steps[-1].expected, line])
    return steps


def play(steps: Sequence[PlayedCommand], folder: Path, environment: Mapping[str, str]) -> list[PlayedCommand]:
    """Run commands one after the other in one shell, and return them with their output."""
    script = "\n".join(f"{step.command}\necho {_MARK} $?" for step in steps)
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", f"exec 2>&1\n{script}"],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    outputs = re.findall(rf"(.*?){_MARK} (\d+)\n", done.stdout, re.DOTALL)
    return [step._replace(output=text, code=int(code)) for step, (text, code) in zip(steps, outputs, strict=True)]


def slim_path(folder: Path) -> str:
    """Return a folder for the PATH that has what every slim image has, and nothing else."""
    for name in SLIM:
        tool = shutil.which(name)
        if tool:
            (folder / name).symlink_to(tool)
    return str(folder)


def main() -> int:
    """Build the wheel, play each page, and print a line for each."""
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        build = python_command("hatchling", "build", "-t", "wheel", "-d", str(home / "dist"))
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = (home / "dist").iterdir()
        (home / "wheel.txt").write_text(f"tidegauge @ {wheel.as_uri()}\n", encoding="utf-8")
        (home / "bin").mkdir()
        path = slim_path(home / "bin")
        for page in PAGES:
            folder = home / page.stem
            folder.mkdir()
            subprocess.run(python_command("venv", str(home / f"{page.stem}-venv")), check=True)
            environment = {
                "HOME": str(home / f"{page.stem}-home"),
                "LANG": "C.UTF-8",
                "PATH": f"{home / f'{page.stem}-venv' / 'bin'}:{path}",
                "PIP_CONSTRAINT": str(home / "wheel.txt"),
                "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                **{key: value for key, value in os.environ.items() if key.startswith("PIP_INDEX")},
            }
            began = time.monotonic()
            played = play(commands(page), folder, environment)
            seconds = time.monotonic() - began
            problems = [problem for step in played if (problem := step.problem())]
            wrong += bool(problems)
            lines = [f"{page.name}: {len(played)} commands, {seconds:.0f} s", *problems, ""]
            sys.stdout.write("\n".join(lines))
            sys.stdout.flush()
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
