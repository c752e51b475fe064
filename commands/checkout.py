"""A checkout runs its own files.

Rules of this file

1. Who edits spec/Rules.tla and says `tidegauge model Small` in that checkout sees the effect. A package that was installed
   from there earlier would run its own copy, and say that everything is as pinned.
2. Code is run only from where it was installed: the checkout in which `pip install .` was said (PEP 610, direct_url.json).
   The folder one happens to stand in may be somebody else's, with the logs of an incident; of any other checkout that
   differs it is said, with the files, that it is not what runs.
3. Where no file differs there is nothing to say: both would do the same. A wheel that was built of the checkout a moment
   ago, as tox does it, is tested as it is.
"""

import filecmp
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from tidegauge.commands.terminal import aside
from tidegauge.conformance.judging.tool import PACKAGE, installed_distribution, project_table, tool_version

NAMED = 3
"""So many files are named in a message."""


def run_own_files(arguments: Sequence[str]) -> None:
    """Start again with the files of the checkout one stands in, if this package is an older copy of them.

    Does not return in that case. Otherwise says what is odd, if anything, and returns.
    """
    root = checkout_of(Path.cwd())
    if root is None:
        return
    differing = list(differences(PACKAGE, root / "tidegauge"))
    if not differing:
        return
    named = ", ".join(differing[:NAMED]) + (f" and {len(differing) - NAMED} more" if len(differing) > NAMED else "")
    if installed_from() != root:
        aside(
            f"tidegauge: expected to run the files of {root}, seen the package in {PACKAGE}, which differs in {named}: for "
            f"the files of the checkout, say there: python -m tidegauge"
        )
        return
    aside(f"tidegauge: runs the files of {root}; the package that was installed from there differs in {named}")
    path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    os.execve(sys.executable, [sys.executable, "-P", "-m", "tidegauge", *arguments], {**os.environ, "PYTHONPATH": path})


def version() -> str:
    """What runs: the version, and which checkout if its files are those of one."""
    root = PACKAGE.parent
    if is_checkout(root):
        return f"{tool_version()}, the checkout in {root}"
    return tool_version() if installed_distribution() else f"unknown, the package in {PACKAGE}"


def checkout_of(folder: Path) -> Path | None:
    """The checkout of Tidegauge that a folder lies in, if it lies in one."""
    folder = folder.resolve()
    return next((root for root in (folder, *folder.parents) if is_checkout(root)), None)


def is_checkout(root: Path) -> bool:
    """Whether a folder is one: a project of that name, with the package in it."""
    return (root / "tidegauge" / "__init__.py").is_file() and bool(project_table(root))


def installed_from() -> Path | None:
    """The folder that this package was installed from, if it was installed from one."""
    found = installed_distribution()
    try:
        origin = json.loads((found and found.read_text("direct_url.json")) or "{}")
    except json.JSONDecodeError:
        return None
    url = urlsplit(origin.get("url", ""))
    return Path(url2pathname(url.path)).resolve() if url.scheme == "file" and "dir_info" in origin else None


def differences(package: Path, other: Path) -> Iterator[str]:
    """The files that two packages do not share byte by byte, in order."""
    if package.resolve() == other.resolve():
        return
    here, there = files_of(package), files_of(other)
    for name in sorted(here | there):
        if name not in here or name not in there or not filecmp.cmp(package / name, other / name, shallow=False):
            yield name


def files_of(package: Path) -> set[str]:
    """The files of a package, by their names below it."""
    # The rooms of a checkout are links, which Path.rglob does not follow. What tools leave behind is no file of the package.
    walked = os.walk(package, followlinks=True)
    found = (Path(folder, name).relative_to(package) for folder, _, names in walked for name in names)
    return {path.as_posix() for path in found if not any(part.startswith((".", "__pycache__")) for part in path.parts)}
