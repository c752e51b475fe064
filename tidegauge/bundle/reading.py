"""Read a bundle, one file with what a verdict and a story need (writing.py writes it), as the paths that it was cut from.

Rules of this file

1. A bundle is a gzipped tar whose global header says which part of the logs it has: whoever reads it reads that part.
2. A bundle comes from somebody else: a member that is no plain file below the bundle, and one too many bytes, end the
   reading.

A bundle was cut from several *paths*, files or folders; path number n is the folder `n/` in it, and its header names the
paths. A Selection is the part of the logs that is read: topics, partitions, begin and end in time; Selection() is all.
"""

import io
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from tidegauge.traces.kafka_logs.discovery.selection import Selection
from tidegauge.util.errors import UsageError
from tidegauge.util.files import refuse_unnamed
from tidegauge.util.input_limits import unpacked

HEADER_KEY = "TIDEGAUGE.bundle"
VERSION = 1
MOST_BYTES, MOST_HEADER = 1 << 35, 1 << 20
"""Bytes that a bundle unpacks to, and of the header of a member, which tarfile reads whole."""


class _BoundedHeaders(tarfile.TarInfo):
    """A member whose extended header (PAX, GNU long names) is refused above MOST_HEADER."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        """Read what this header says follows it, as tarfile does, unless that is a header that is too large.

        tarfile calls this for each header, before it reads what follows.
        """
        if self.type not in tarfile.REGULAR_TYPES and self.size > MOST_HEADER:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        return super()._proc_member(archive)  # type: ignore[misc,no-any-return]


class _Unpacked(io.RawIOBase):
    """The content of a gzip file as a stream, which ends in an UnpackingError at a bomb."""

    def __init__(self, file: BinaryIO) -> None:
        """Unpack what `file`, a gzip file that is open, has from its position on."""
        # What is unpacked, piece by piece, and what of the last piece was not taken yet.
        self._pieces = unpacked(iter(partial(file.read, 1 << 16), b""))
        self._left = b""

    def readable(self) -> bool:
        """Return True: BufferedReader asks for it."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with what comes next; return how many bytes that was, 0 at the end."""
        # A piece of the gzip file may unpack to more than the buffer takes.
        while not self._left and (piece := next(self._pieces, b"")):
            self._left = piece
        part = self._left[: len(buffer)]
        buffer[: len(part)] = part
        self._left = self._left[len(part) :]
        return len(part)


@contextmanager
def _archive(path: Path) -> Iterator[tarfile.TarFile]:
    """Provide a bundle as a tar that is read from the beginning to the end, with its limits on sizes."""
    with (
        path.open("rb") as file,
        io.BufferedReader(_Unpacked(file)) as content,
        tarfile.open(fileobj=content, mode="r|", tarinfo=_BoundedHeaders) as archive,
    ):
        yield archive


@dataclass(frozen=True)
class BundledPath(os.PathLike[str]):
    """A path of a bundle: where it is unpacked, and what reports call it."""

    place: str
    name: str

    def __fspath__(self) -> str:
        """Return where the path is unpacked: `open` and Path take that."""
        return self.place

    def __str__(self) -> str:
        """Return what reports call the path."""
        return self.name


def header_of(path: Path) -> dict[str, Any] | None:
    """Return the header of a bundle (writing.py says what is in it); None for a file that is no bundle."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            if file.read(2) != b"\x1f\x8b":  # the magic number of gzip
                return None
        with _archive(path) as archive:
            header = json.loads(archive.pax_headers.get(HEADER_KEY, "null"))
    except (OSError, tarfile.TarError, ValueError, EOFError):
        return None
    return header if isinstance(header, dict) else None


@contextmanager
def opened(paths: Sequence[str]) -> Iterator[tuple[list[str | BundledPath], Selection | None]]:
    """Provide the paths, and the part of the logs that is to be read, None for all of them.

    In place of a bundle stand the paths that it was cut from, unpacked until the caller is done; "-" is standard input.
    """
    with tempfile.TemporaryDirectory(prefix="tidegauge-bundle-") as folder:
        provided: list[str | BundledPath] = []
        selection = None
        for number, path in enumerate(paths):
            refuse_unnamed(path)
            header = header_of(Path(path)) if path != "-" else None
            if header is None:
                provided.append(path)
                continue
            place = Path(folder) / str(number)
            _unpack(Path(path), place)
            try:
                names = [str(name) for name in header["paths"]]
                part = Selection(
                    frozenset(header["topics"]), frozenset(header["partitions"]), header["begin"], header["end"]
                )
            except (KeyError, TypeError) as error:
                raise _refused(path, "a header with paths, topics, partitions, begin and end", str(error)) from None
            for at, name in enumerate(names):
                # Messages name what the user named: the bundle, not the temporary folder.
                label = path if len(names) == 1 else f"{path}/{PurePosixPath(name).name}"
                provided.append(BundledPath(str(place / str(at) / PurePosixPath(name).name), label))
            # A reader takes one selection: of several bundles that are parts of logs, the last one's.
            if part != Selection():
                selection = part
        yield provided, selection


def _unpack(path: Path, place: Path) -> None:
    """Unpack a bundle into the folder `place`, which is made. Raises UsageError by rule 2, or if the bundle is damaged."""
    place.mkdir()
    bytes_left = MOST_BYTES
    try:
        with _archive(path) as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                bytes_left -= member.size
                content = archive.extractfile(member) if member.isfile() and not member.issparse() else None
                # Every member lies below the number of its path.
                if content is None or name.is_absolute() or ".." in name.parts or not name.parts[0].isdecimal():
                    raise _refused(path, "plain files below it", repr(member.name[:80]))
                if bytes_left < 0:
                    raise _refused(path, f"at most {MOST_BYTES:,} bytes", "more")
                target = place / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as file:
                    for piece in iter(partial(content.read, 1 << 20), b""):
                        file.write(piece)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise _refused(path, "a complete bundle", f"{type(error).__name__}: {error}") from None


def _refused(path: str | Path, expected: str, seen: str) -> UsageError:
    """Return the error to raise for a bundle: what was expected, and what was seen instead."""
    return UsageError(f"{path}: expected {expected}, seen {seen}; make the bundle again (tidegauge bundle)")
