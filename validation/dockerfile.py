"""`python -m validation.dockerfile [--suite trixie]`: play the Dockerfile in a bare Debian root, without a container engine.

Needs root and debootstrap. Every command of the image then runs as its user, without a network.

Rules of this file

1. `FROM python:..` becomes Debian's own Python in a root that debootstrap makes; its version is printed. A second stage
   begins with a copy of that root.
2. COPY, RUN, ENV, USER, WORKDIR, ENTRYPOINT and CMD do what Docker does with them; any other instruction is refused.
3. A step that ends with another code than 0 ends the play.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PACKAGES = "python3,python3-venv,ca-certificates"
HOST_FILES = ("/etc/pip.conf", "/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt")
"""What pip needs of this machine to reach its registry."""
TRACE = ROOT / "tidegauge" / "traces" / "golden" / "append.ndjson"
ASKED = (
    ("--version",),
    ("--help",),
    ("check", "append.ndjson"),
    ("prove",),
    ("model", "Small"),
    ("drive", "--help"),
)

_ENTER = """
root=$0 user=$1 folder=$2
mount -t proc proc "$root/proc" && mkdir -p "$root/dev/shm" && mount -t tmpfs tmpfs "$root/dev/shm" || exit
exec chroot --userspec="$user" "$root" sh -c 'cd "$0" && exec "$@"' "$folder" "${@:3}"
"""
"""Run a command in a root, with what Docker mounts there."""


@dataclass
class Stage:
    """A stage of the Dockerfile: its root, and what its instructions have set."""

    root: Path
    user: str = "0:0"
    folder: str = "/"
    entry: Sequence[str] = ()
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH, "LANG": "C.UTF-8"})

    def run(self, command: Sequence[str], network: bool = True) -> None:
        """Run a command in the root, as Docker does. Raises CalledProcessError."""
        spaces = ["unshare", "--mount", "--pid", "--fork", *([] if network else ["--net"])]
        inside = [f"{name}={value}" for name, value in {**passed_on(), **self.environment}.items()]
        arguments = [str(self.root), self.user, self.folder, "env", "-i", *inside, *command]
        subprocess.run([*spaces, "bash", "-c", _ENTER, *arguments], check=True, stdin=subprocess.DEVNULL)


def passed_on() -> Mapping[str, str]:
    """Return what pip's configuration has in this environment: a registry or certificates of this machine."""
    return {name: value for name, value in os.environ.items() if name.startswith("PIP_") and name != "PIP_FIND_LINKS"}


def instructions(text: str) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile with their arguments."""
    lines = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines if line.strip())]


def play(steps: Sequence[tuple[str, str]], base: Path, folder: Path) -> Stage:
    """Do what a Dockerfile says; return its last stage. Raises CalledProcessError, or SystemExit for another instruction."""
    stages: dict[str, Stage] = {}
    for name, rest in steps:
        print(name, rest, flush=True)
        stage = next(reversed(stages.values()), Stage(base))
        words = rest.split()
        match name:
            case "FROM":
                called = words[2] if "AS" in words else str(len(stages))
                stages[called] = Stage(folder / called)
                subprocess.run(["cp", "-a", base, folder / called], check=True)
            case "COPY":
                source = ROOT
                if words[0].startswith("--from="):
                    source = stages[words.pop(0).removeprefix("--from=")].root
                copy(
                    [source / one.lstrip("/") for one in words[:-1]], stage.root / words[-1].lstrip("/"), rest.endswith("/")
                )
            case "RUN":
                stage.run(["sh", "-c", rest])
            case "ENV":
                for one in shlex.split(rest):
                    key, _, value = one.partition("=")
                    stage.environment[key] = value.replace(f"${key}", stage.environment.get(key, ""))
            case "USER":
                stage.user = f"{rest}:{rest}"
            case "WORKDIR":
                stage.folder = rest
            case "ENTRYPOINT":
                stage.entry = json.loads(rest)
            case "CMD":
                stage.run([*stage.entry, *json.loads(rest)])
            case _:
                raise SystemExit(f"Dockerfile: expected an instruction that this play knows, seen {name}")
    return stage


def copy(sources: Sequence[Path], target: Path, into: bool) -> None:
    """Copy files into a folder, or the contents of a folder."""
    for source in sources:
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        else:
            place = target / source.name if into else target
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, place)


def bare_root(suite: str, place: Path) -> None:
    """Make a root of a Debian suite that has Python, as `python` too."""
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(place)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    (place / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    for file in filter(os.path.exists, HOST_FILES):
        shutil.copyfile(file, place / file.lstrip("/"))


def main() -> int:
    """Play the Dockerfile, then ask the image."""
    parser = argparse.ArgumentParser(
        prog="python -m validation.dockerfile", description="play the Dockerfile in a bare Debian root"
    )
    parser.add_argument("--suite", default="trixie", help="of Debian (default trixie)")
    chosen = parser.parse_args()
    if os.geteuid() or not shutil.which("debootstrap"):
        parser.error("expected root and debootstrap; install it, or use docker build")
    with tempfile.TemporaryDirectory(prefix="tidegauge-image-") as folder:
        bare_root(chosen.suite, Path(folder, "base"))
        image = play(instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")), Path(folder, "base"), Path(folder))
        shutil.copy(TRACE, image.root / image.folder.lstrip("/"))
        image.run(["python3", "--version"])
        for command in ASKED:
            print("docker run", *command, flush=True)
            image.run([*image.entry, *command], network=False)
    print(f"all steps of the Dockerfile and {len(ASKED)} commands of the image, on Debian {chosen.suite}: none fails")
    return 0


if __name__ == "__main__":
    sys.exit(main())
