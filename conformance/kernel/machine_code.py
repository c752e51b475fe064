"""Where the machine code of the judge is kept for other processes, and how it goes to other machines.

Rules of this file

1. A directory is named after all that its machine code is made from (compiled.fingerprint), so what is found in it fits:
   the text, the compiler, the processor. Another processor looks for another directory, finds none, and compiles.
2. Only a directory of this user's own is used: machine code is loaded by pickle. What is shipped comes from whoever also
   sends the functions that run.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FunctionType
from typing import Any, Self

import numba

from tidegauge.traces.files.replacing import replacing


def directory(name: str) -> Path | None:
    """The directory of that name in the first place that this user can write; None where there is none."""
    places = (
        os.environ.get("XDG_CACHE_HOME"),
        Path("~/.cache").expanduser(),
        Path(tempfile.gettempdir(), f"cache-{_user()}"),
    )
    for place in places:
        if place:
            found = Path(place) / "tidegauge" / name
            with suppress(OSError):
                found.mkdir(mode=0o700, parents=True, exist_ok=True)
                if found.stat().st_uid == _user() and os.access(found, os.W_OK):
                    return found
    return None


def files_of(name: str) -> dict[str, bytes]:
    """What is kept under a name, file by file."""
    kept = directory(name)
    return {} if kept is None else {path.name: path.read_bytes() for path in sorted(kept.glob("*.nb?"))}


def keep(name: str, files: Mapping[str, bytes]) -> None:
    """Keep what another machine made under that name, unless it is there. As Numba does, the index first, then the code."""
    kept = directory(name)
    if kept is None or any(kept.glob("*.nbc")):
        return
    with suppress(OSError):
        for file in sorted(files, reverse=True):
            with replacing(kept / file) as whole:
                whole.write_bytes(files[file])


@contextmanager
def kept_in(folder: Path) -> Iterator[None]:
    """Numba keeps what it compiles in this folder, and looks for it there."""
    settings: Any = numba.config
    before = settings.CACHE_DIR, settings.CACHE_LOCATOR_CLASSES
    settings.CACHE_DIR, settings.CACHE_LOCATOR_CLASSES = str(folder), f"{__name__}.{Locator.__name__}"
    try:
        yield
    finally:
        settings.CACHE_DIR, settings.CACHE_LOCATOR_CLASSES = before


class Locator:
    """What Numba asks where to keep a function (NUMBA_CACHE_LOCATOR_CLASSES): in CACHE_DIR as it is.

    Its own locators name a folder after the path of the source file, and so find nothing for the same text elsewhere: in
    another checkout, or in a zip that was shipped. They also look at that one file only, none that its function calls.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    @classmethod
    def from_function(cls, function: FunctionType, file: str) -> Self:  # noqa: ARG003  Numba's interface
        """The locator of a function: it is the same for all."""
        settings: Any = numba.config
        return cls(settings.CACHE_DIR)

    def ensure_cache_path(self) -> None:
        """The folder is there."""

    def get_cache_path(self) -> str:
        """The folder."""
        return self.folder

    def get_source_stamp(self) -> str:
        """The name of the folder says what the code is made from."""
        return Path(self.folder).name

    def get_disambiguator(self) -> str:
        """One function is kept."""
        return "kept"


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0
