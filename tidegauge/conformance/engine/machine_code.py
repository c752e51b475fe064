"""Import Numba so that it obeys no file of the current directory; keep the machine code that it makes on disk.

Numba reads `.numba_config.yaml` of the current directory when it is imported and before each compilation, if PyYAML is
installed. Such a file may overwrite any file of the user (`chrome_trace`), and lies where somebody sent logs. Its
environment variables (`NUMBA_..`) are the user's and count as ever.
"""

import hashlib
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FunctionType
from typing import Any, Self

from tidegauge.util.files import private_directory, replacing


@contextmanager
def _without_yaml() -> Iterator[None]:
    """Make Numba believe within the block that PyYAML is not installed: then it does not open the file."""
    missing = object()
    before: object = sys.modules.get("yaml", missing)
    sys.modules["yaml"] = None  # type: ignore[assignment]  # import yaml then raises ImportError
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "A Numba config file is found")
            yield
    finally:
        if before is missing:  # nobody had imported it
            del sys.modules["yaml"]
        else:
            sys.modules["yaml"] = before  # type: ignore[assignment]


with _without_yaml():
    import numba
    from llvmlite import binding
    from numba import types
    from numba.core import config

# Before each compilation it would look for the file again, if another package had imported Numba before, and would read it.
config._HAVE_YAML, config._config_fname = False, "\0"

__all__ = ["binding", "numba", "types"]


# ---------------------------------------------------------------------------------------------------------------------
# The directory where machine code of the judge is kept for other processes, and its files for other machines.
#
# Rules of this part
#
# 1. A directory is named after all that its machine code is made from (compiled.fingerprint): the text, the compiler, the
#    processor. So its content always fits; another processor looks for another directory, finds none, and compiles.
# 2. Machine code is loaded by pickle, so a directory that others could write to is not used (files.private_directory).
#    Files are taken from another machine only where that machine also sends the functions to run.
# 3. Each file has its SHA-256 beside it. A file that does not fit is removed, and the code is made anew: a flipped bit of
#    machine code ends the process.


FILES, CHECKSUM = "*.nb[ci]", ".sha256"
"""Numba's index and data files; what the name of a file's checksum ends with."""

LAYOUT = "each file with its checksum"
"""What a directory holds; another version of this module that keeps something else names another directory."""


def directory(name: str) -> Path | None:
    """Return the directory of that name in the first place that this user can write; None where there is none."""
    places = (
        (os.environ.get("XDG_CACHE_HOME"),),
        (os.path.expanduser("~/.cache"),),  # noqa: PTH111  Path.expanduser raises for a user without a home
        # All users share this one: a folder for each. Windows, where temporary files are a user's own, has no getuid.
        (tempfile.gettempdir(), f"cache-{os.getuid() if hasattr(os, 'getuid') else 0}"),
    )
    for place, *below in places:
        # A variable that is not set, or empty, names no place.
        if place and (folder := private_directory(place, *below, "tidegauge", name)):
            return folder
    return None


def files_of(name: str) -> dict[str, bytes]:
    """Return the files of machine code that are kept under a name, with their contents: to send them to other machines."""
    folder = directory(name)
    return {} if folder is None else {path.name: path.read_bytes() for path in _intact(folder)}


def keep(name: str, files: Mapping[str, bytes]) -> None:
    """Write files of machine code that another machine sent to the directory of that name, unless it has code already."""
    folder = directory(name)
    # Code that is there was compiled here, for this processor.
    if folder is None or any(folder.glob("*.nbc")):
        return
    with suppress(OSError):
        # In the order that Numba has: the index (.nbi) before the code (.nbc).
        for file in sorted(files, reverse=True):
            with replacing(folder / file) as path:
                path.write_bytes(files[file])
            _write_checksum(folder / file)


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """Make Numba keep what it compiles in this folder, and look for it there."""
    settings: Any = numba.config
    loaded = _intact(folder)
    # Numba loads any file that it finds there: only those with the right checksum may stay.
    for file in folder.glob(FILES):
        if file not in loaded:
            file.unlink(missing_ok=True)
    # Numba is told the name of the class that says where it keeps code (Locator).
    before = settings.CACHE_DIR, settings.CACHE_LOCATOR_CLASSES
    settings.CACHE_DIR, settings.CACHE_LOCATOR_CLASSES = str(folder), f"{__name__}.{Locator.__name__}"
    try:
        yield
    finally:
        settings.CACHE_DIR, settings.CACHE_LOCATOR_CLASSES = before
        # A full disk costs the next process a compilation, and this one nothing.
        with suppress(OSError):
            for file in folder.glob(FILES):
                # What Numba has written in the block, or changed.
                if loaded.get(file) != _checksum(file):
                    _write_checksum(file)


def _intact(folder: Path) -> dict[Path, str]:
    """Return the files of machine code in a folder that have their checksum beside them, and that checksum."""
    sums = {}
    for file in sorted(folder.glob(FILES)):
        with suppress(OSError):
            if (checksum := _checksum(file)) == file.with_name(file.name + CHECKSUM).read_text(encoding="ascii"):
                sums[file] = checksum
    return sums


def _checksum(file: Path) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _write_checksum(file: Path) -> None:
    """Write the checksum of a file beside it."""
    with replacing(file.with_name(file.name + CHECKSUM)) as path:
        path.write_text(_checksum(file), encoding="ascii")


class Locator:
    """A cache locator for Numba (NUMBA_CACHE_LOCATOR_CLASSES): it keeps functions in CACHE_DIR itself.

    Numba's own locators name a folder after the path of the source file, so they find nothing for the same text in another
    checkout or in a zip that was shipped. They also depend on that one file only, and not on those that its function calls.
    """

    def __init__(self, folder: str) -> None:
        """Keep code in this folder."""
        self.folder = folder

    @classmethod
    def from_function(cls, function: FunctionType, file: str) -> Self:  # noqa: ARG003  Numba's interface
        """Return the locator, which is the same for all functions."""
        settings: Any = numba.config
        return cls(settings.CACHE_DIR)

    def ensure_cache_path(self) -> None:
        """Do nothing: the folder is there."""

    def get_cache_path(self) -> str:
        """Return the folder."""
        return self.folder

    def get_source_stamp(self) -> str:
        """Return the name of the folder, which depends on all that the code is made from: code of another stamp is stale."""
        return Path(self.folder).name

    def get_disambiguator(self) -> str:
        """Return what tells the files of functions of one name apart: a constant, as the names of those kept differ."""
        return "kept"
