"""A file or directory of a file system that Arrow knows (S3, HDFS, Google, Azure), with what of pathlib.Path is needed here.

Rules of this file

1. It is named by its URI; whoever has the name finds it again with what that machine has of keys and addresses.
2. Hadoop's names of S3, s3a:// and s3n://, are s3:// here. What stands behind a ? are options of Arrow's, such as
   endpoint_override: they are part of every name that is made of it.
3. What Arrow refuses is an OSError, whatever it raised: so it is with a path.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

NAMES_OF_S3 = ("s3a", "s3n")
PLAIN = "/=+,:@ "
"""Besides letters and digits, what a name may hold and be read in a URI as it is."""
PIECE = 1 << 22
"""Bytes that are copied at a time."""
SECOND = 10**9


class Status(NamedTuple):
    """What tells versions of a file apart, as os.stat_result has it; a file system without times says 0."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True)
class ArrowPath:
    """What stands at `uri`, or might; `listed` is what a list of its directory said of it."""

    uri: str
    listed: Status | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, uri: str) -> "ArrowPath":
        """The path that a URI names. Raises OSError for one that Arrow cannot open."""
        parts = urlsplit(uri)
        scheme = "s3" if parts.scheme in NAMES_OF_S3 else parts.scheme
        found = cls(urlunsplit(parts._replace(scheme=scheme, path=parts.path.rstrip("/"))))
        found._there()
        return found

    @property
    def name(self) -> str:
        """The last part, as it is called there."""
        return unquote(self._parts.path.rpartition("/")[2])

    def __str__(self) -> str:
        return self.uri

    def __truediv__(self, below: str) -> "ArrowPath":
        return self._at(f"{self._parts.path}/{quote(below, PLAIN)}")

    def with_name(self, name: str) -> "ArrowPath":
        """Another in the same directory."""
        return self._at(f"{self._parts.path.rpartition('/')[0]}/{quote(name, PLAIN)}")

    def absolute(self) -> "ArrowPath":
        """It is."""
        return self

    def exists(self) -> bool:
        """Whether anything stands there."""
        return bool(self._info().type != FileType.NotFound)

    def is_dir(self) -> bool:
        """Whether a directory stands there; in a store of objects, a name that others go on from."""
        return bool(self._info().type == FileType.Directory)

    def stat(self) -> Status:
        """Which version of a file stands there, or stood when it was listed. Raises FileNotFoundError."""
        if self.listed is not None:
            return self.listed
        info = self._info()
        if not info.is_file:
            raise FileNotFoundError(f"{self.uri}: expected a file, seen none")
        return status_of(info)

    def iterdir(self) -> "Iterator[ArrowPath]":
        """What lies in the directory; nothing if there is none."""
        files, path = self._there()
        with _refused():
            found = files.get_file_info(FileSelector(path, allow_not_found=True))
        for one in found:
            yield replace(self / one.base_name, listed=status_of(one) if one.is_file else None)

    def glob(self, pattern: str) -> "Iterator[ArrowPath]":
        """What lies in the directory by such a name."""
        return (one for one in self.iterdir() if fnmatchcase(one.name, pattern))

    def mkdir(self) -> None:
        """Make the directory and those above, where they are not there."""
        files, path = self._there()
        with _refused():
            files.create_dir(path)

    def opened(self) -> pa.NativeFile:
        """The file, to be read anywhere in it."""
        files, path = self._there()
        with _refused():
            return files.open_input_file(path)

    def read_bytes(self) -> bytes:
        """What the file holds."""
        with self.opened() as file, _refused():
            return bytes(file.read())

    def put(self, file: Path) -> None:
        """Copy a file of this machine there; half of it may stand there meanwhile, and if that ends early."""
        files, path = self._there()
        with _refused(), file.open("rb") as source, files.open_output_stream(path) as target:
            while piece := source.read(PIECE):
                target.write(piece)

    def replace(self, target: "ArrowPath") -> None:
        """Take the place of what stands at `target`, or of nothing, at once."""
        files, path = self._there()
        with _refused():
            files.move(path, target._there()[1])

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file."""
        files, path = self._there()
        if missing_ok and not self.exists():
            return
        with _refused():
            files.delete_file(path)

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self.uri)

    def _at(self, path: str) -> "ArrowPath":
        return ArrowPath(urlunsplit(self._parts._replace(path=path)))

    def _info(self) -> FileInfo:
        files, path = self._there()
        with _refused():
            return files.get_file_info(path)

    def _there(self) -> tuple[FileSystem, str]:
        parts = self._parts
        with _refused():
            # one file system for all that lies in a bucket: it holds connections
            files, root = _file_system(urlunsplit(parts._replace(path="")))
        return files, f"{root}{unquote(parts.path)}"


def status_of(info: FileInfo) -> Status:
    """As the file system says, to the second: some that are called S3 say milliseconds in a list and seconds of a file."""
    return Status(info.size, (info.mtime_ns or 0) // SECOND * SECOND)


@cache
def _file_system(root: str) -> tuple[FileSystem, str]:
    found: Any = FileSystem.from_uri(root)
    return found[0], found[1].rstrip("/")


@contextmanager
def _refused() -> Iterator[None]:
    """Raise OSError for what Arrow refuses: a scheme it does not know is a ValueError of its."""
    try:
        yield
    except pa.ArrowException as error:
        raise OSError(str(error)) from error
