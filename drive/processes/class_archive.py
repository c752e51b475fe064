"""The classes of a release, loaded once: an archive of them, which later processes of the same runtime map (JEP 350, 514).

Rules of this file

1. A process that ends in order leaves an archive, which is moved to the user's cache then; one that is killed leaves none.
2. An archive is kept under its runtime and its jars. The runtime looks at them again, and passes over one that is of others.
3. What cannot be made or kept costs time and nothing else.
"""

import hashlib
import shutil
from contextlib import suppress
from pathlib import Path

from tidegauge.drive.cache import cache
from tidegauge.impl.errors import UsageError
from tidegauge.spec.checker.java import Java
from tidegauge.traces.files.replacing import replacing


class ClassArchive:
    """That of one runtime and the jars in a folder; a process leaves it in `home`, a folder of its own."""

    def __init__(self, java: Java, jars: Path, home: Path) -> None:
        self._java, self._left, self._kept = java, home / "classes.archive", None
        with suppress(OSError, RuntimeError):
            self._kept = cache("classes") / f"{_digest(java, jars)}.archive"

    @property
    def flags(self) -> tuple[str, ...]:
        """What a process is started with: to map the archive, or to leave one."""
        make, use = self._java.archive_flags
        if self._kept is None:
            return ()
        return (f"-XX:{use}={self._kept}",) if self._kept.is_file() else (f"-XX:{make}={self._left}",)

    def keep(self) -> None:
        """A process has ended in order."""
        if self._kept is None or not self._left.is_file():
            return
        with suppress(OSError, UsageError):
            self._kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing(self._kept) as beside:
                shutil.copyfile(self._left, beside)
            self._left.unlink()


def _digest(java: Java, jars: Path) -> str:
    """Of the runtime and the jars as they are now. Raises OSError where one of them is not there."""
    digest = hashlib.sha256()
    for path in (java.path.resolve(), *sorted(jars.resolve().glob("*.jar"))):
        found = path.stat()
        digest.update(f"{path} {found.st_size} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:20]
