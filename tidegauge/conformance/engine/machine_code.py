"""The directory where machine code of the judge is kept for other processes, and its files for other machines.

Rules of this file

1. A directory is named after all that its machine code is made from (compiled.fingerprint): the text, the compiler, the
   processor. So its content always fits; another processor looks for another directory, finds none, and compiles.
2. Only a directory that this user owns is used, since machine code is loaded by pickle. Files are taken from another machine
   only where that machine also sends the functions to run.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FunctionType
from typing import Any, Self

import numba

from tidegauge.util.files import replacing


def directory(name: str) -> Path | None:
    """Return the directory of that name in the first place that this user can write; None where there is none."""
    places = (
        os.environ.get("XDG_CACHE_HOME"),
        Path("~/.cache").expanduser(),
        Path(tempfile.gettempdir(), f"cache-{_user()}"),
    )
    for place in places:
        # A variable that is not set, or empty, names no place.
        if place:
            folder = Path(place) / "tidegauge" / name
            with suppress(OSError):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                # Machine code is loaded by pickle: a directory of another user could hold anything.
                if folder.stat().st_uid == _user() and os.access(folder, os.W_OK):
                    return folder
    return None


def files_of(name: str) -> dict[str, bytes]:
    """Return the files that are kept under a name."""
    folder = directory(name)
    return {} if folder is None else {path.name: path.read_bytes() for path in sorted(folder.glob("*.nb?"))}


def keep(name: str, files: Mapping[str, bytes]) -> None:
    """Keep files that another machine made under that name, unless there are some. Like Numba, the index before the code."""
    folder = directory(name)
    # Code that is there was compiled here, for this processor.
    if folder is None or any(folder.glob("*.nbc")):
        return
    with suppress(OSError):
        for file in sorted(files, reverse=True):
            with replacing(folder / file) as path:
                path.write_bytes(files[file])


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """Make Numba keep what it compiles in this folder, and look for it there."""
    settings: Any = numba.config
    before = settings.CACHE_DIR, settings.CACHE_LOCATOR_CLASSES
    settings.CACHE_DIR, settings.CACHE_LOCATOR_CLASSES = str(folder), f"{__name__}.{Locator.__name__}"
    try:
        yield
    finally:
        settings.CACHE_DIR, settings.CACHE_LOCATOR_CLASSES = before


class Locator:
    """A cache locator for Numba (NUMBA_CACHE_LOCATOR_CLASSES): it keeps functions in CACHE_DIR itself.

    Numba's own locators name a folder after the path of the source file, so they find nothing for the same text in another
    checkout or in a zip that was shipped. They also depend on that one file only, and not on those that its function calls.
    """

    def __init__(self, folder: str) -> None:
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
        """Return the name of the folder, which depends on all that the code is made from."""
        return Path(self.folder).name

    def get_disambiguator(self) -> str:
        """Return a constant: one function is kept."""
        return "kept"


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
