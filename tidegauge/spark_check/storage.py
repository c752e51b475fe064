"""A file or directory of a file system that Arrow knows (S3, HDFS, Google, Azure), with the part of pathlib.Path used here.

Rules of this file

1. A path is its URI; each machine opens it with its own keys and addresses.
2. Hadoop's names of S3, s3a:// and s3n://, are s3:// here. After a ? come options of Arrow, such as endpoint_override: every
   path that is made from this one has them too.
3. An error of Arrow is raised as an OSError, as it would be for a path.

`AnyPath` is such a path or a pathlib.Path; `to_path` makes one from what a user wrote.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

import pyarrow as pa
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

from tidegauge.traces.formats.parquet import Reader
from tidegauge.util.errors import UsageError
from tidegauge.util.files import directory, is_uri, replacing, version_of_status, without_keys

NAMES_OF_S3 = ("s3a", "s3n")
PLAIN = "/=+,:@ "
"""Characters, besides letters and digits, that a URI shows as they are: all others are quoted (%xx)."""
PIECE = 1 << 22
"""Bytes that are copied at a time."""
SECOND = 10**9


class Status(NamedTuple):
    """Size and time of change, named as in os.stat_result; the time is 0 in a file system without times."""

    st_size: int
    st_mtime_ns: int


@dataclass(frozen=True)
class ArrowPath:
    """A path that may exist; `listed` is its status as a listing of its directory gave it, None without one."""

    uri: str
    listed: Status | None = field(default=None, compare=False, repr=False)

    @classmethod
    def from_uri(cls, uri: str) -> "ArrowPath":
        """Return the path that a URI names. Raises OSError for one that Arrow cannot open."""
        parts = urlsplit(uri)
        scheme = "s3" if parts.scheme in NAMES_OF_S3 else parts.scheme
        arrow_path = cls(urlunsplit(parts._replace(scheme=scheme, path=parts.path.rstrip("/"))))
        # For its error: a scheme that Arrow does not know is a mistake of the user, to be raised here and not in a worker.
        arrow_path._system_and_path()
        return arrow_path

    @property
    def name(self) -> str:
        """The last part of the path, unquoted."""
        return unquote(self._parts.path.rpartition("/")[2])

    def __str__(self) -> str:
        """Return the URI."""
        return self.uri

    def __truediv__(self, below: str) -> "ArrowPath":
        """Return the path of the file or directory named `below` in this directory."""
        return self._with_path(f"{self._parts.path}/{quote(below, PLAIN)}")

    def with_name(self, name: str) -> "ArrowPath":
        """Return another path in the same directory."""
        return self._with_path(f"{self._parts.path.rpartition('/')[0]}/{quote(name, PLAIN)}")

    def absolute(self) -> "ArrowPath":
        """Return this path: a URI is absolute."""
        return self

    def exists(self) -> bool:
        """Return whether there is a file or a directory."""
        return bool(self._info().type != FileType.NotFound)

    def is_dir(self) -> bool:
        """Return whether there is a directory; in a store of objects, a prefix of other names."""
        return bool(self._info().type == FileType.Directory)

    def stat(self) -> Status:
        """Return the status of the file; if it comes from a listing, what that gave. Raises FileNotFoundError."""
        # A listing gives all sizes and times in one request; to look at each file would be a request each.
        if self.listed is not None:
            return self.listed
        info = self._info()
        if not info.is_file:
            raise FileNotFoundError(f"{self.uri}: expected a file, seen none")
        return status_of(info)

    def iterdir(self) -> "Iterator[ArrowPath]":
        """Yield the paths in the directory; none if it does not exist."""
        files, path = self._system_and_path()
        with _as_os_error():
            infos = files.get_file_info(FileSelector(path, allow_not_found=True))
        # With the status of each file, so that `stat` need not ask for it.
        for info in infos:
            yield replace(self / info.base_name, listed=status_of(info) if info.is_file else None)

    def glob(self, pattern: str) -> "Iterator[ArrowPath]":
        """Yield the paths in the directory whose names match."""
        return (path for path in self.iterdir() if fnmatchcase(path.name, pattern))

    def files_below(self) -> "Iterator[tuple[str, ArrowPath]]":
        """Yield each file in the directory and below it, with its path from there; of a file itself, with an empty one."""
        files, path = self._system_and_path()
        info = self._info()
        if info.is_file:
            yield "", replace(self, listed=status_of(info))
            return
        with _as_os_error():
            infos = files.get_file_info(FileSelector(path, allow_not_found=True, recursive=True))
        for info in infos:
            if info.is_file:
                below = info.path[len(path) + 1 :]
                yield below, replace(self / below, listed=status_of(info))

    def mkdir(self) -> None:
        """Make the directory and those above, where they are not there."""
        files, path = self._system_and_path()
        with _as_os_error():
            files.create_dir(path)

    def opened(self) -> pa.NativeFile:
        """Open the file for random access."""
        files, path = self._system_and_path()
        with _as_os_error():
            return files.open_input_file(path)

    def read_bytes(self) -> bytes:
        """Read the file."""
        with self.opened() as file, _as_os_error():
            return bytes(file.read())

    def put(self, file: Path) -> None:
        """Copy a file of this machine to this path; a part of it is visible meanwhile, and stays if the copy fails."""
        files, path = self._system_and_path()
        # By itself Arrow would pack what is called .gz.
        with _as_os_error(), file.open("rb") as source, files.open_output_stream(path, compression=None) as target:
            while piece := source.read(PIECE):
                target.write(piece)

    def replace(self, target: "ArrowPath") -> None:
        """Move the file to `target`, in the same file system, and replace a file that is there, at once."""
        files, path = self._system_and_path()
        with _as_os_error():
            files.move(path, target._system_and_path()[1])

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file; with `missing_ok` it need not be there."""
        files, path = self._system_and_path()
        if missing_ok and not self.exists():
            return
        with _as_os_error():
            files.delete_file(path)

    @property
    def _parts(self) -> SplitResult:
        """The parts of the URI: scheme, host or bucket (`netloc`), path and options."""
        return urlsplit(self.uri)

    def _with_path(self, path: str) -> "ArrowPath":
        """Return the URI with another path, quoted; host and options stay."""
        return ArrowPath(urlunsplit(self._parts._replace(path=path)))

    def _info(self) -> FileInfo:
        """Ask the file system what the path is: a file with size and time, a directory, or nothing. Raises OSError."""
        files, path = self._system_and_path()
        with _as_os_error():
            return files.get_file_info(path)

    def _system_and_path(self) -> tuple[FileSystem, str]:
        """Return the file system of the URI, and the path in it. Raises OSError."""
        parts = self._parts
        with _as_os_error():
            # One file system for everything in a bucket, as it holds connections: looked up without the path.
            files, root = _file_system(urlunsplit(parts._replace(path="")))
        return files, f"{root}{unquote(parts.path)}"


def status_of(info: FileInfo) -> Status:
    """Return size and time of change, the time in whole seconds."""
    # Some stores with S3's protocol give milliseconds in a listing and seconds for a file, which would look like two
    # versions.
    return Status(info.size, (info.mtime_ns or 0) // SECOND * SECOND)


@cache
def _file_system(root: str) -> tuple[FileSystem, str]:
    """Open the file system of a URI without a path; return it and the path of that root in it (of S3, the bucket)."""
    system_and_path: Any = FileSystem.from_uri(root)
    return system_and_path[0], system_and_path[1].rstrip("/")


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Raise OSError instead of Arrow's own errors, which are of many classes: for an unknown scheme it is a ValueError."""
    try:
        yield
    except pa.ArrowException as error:
        raise OSError(str(error)) from error


# Copies on a disk, for readers that open paths only.


LONGEST_NAME = 200
"""Bytes of the name of a file at most: file systems allow 255, and a name that is being written has some more."""


def copy_files(source: ArrowPath, target: Path, over: Callable[..., Iterator[Any]]) -> None:
    """Copy a file, or a directory with all in it, to a path of this machine; what is copied already stays.

    `over` is a function such as map: each file is an item of it, which other machines may copy that see `target`. Raises
    UsageError for names that a disk cannot have, and where there is too little room.
    """
    files = {}
    for below, file in source.files_below():
        # The key of an object is any text: with .. or // in it, it would lead out of the directory.
        if below and not all(map(is_file_name, below.split("/"))):
            raise UsageError(
                f"{file}: expected a name that a disk can have, seen {below!r}; name the other folders one by one"
            )
        files[target / below] = file
    for copy, file in files.items():
        if not files.keys().isdisjoint(copy.parents):
            raise UsageError(f"{file}: expected a file in a folder, seen one in a file; name the other folders one by one")
    size = sum(file.stat().st_size for copy, file in files.items() if not _is_copy(copy, file))
    free = shutil.disk_usage(target.parent).free
    if size > free:
        raise UsageError(
            f"{target.parent}: expected {size / 1e9:,.1f} GB free to copy {source}, seen {free / 1e9:,.1f}; make room"
        )
    # What is copied and no more at the source, or was not copied to its end.
    for leftover in [path for path in target.rglob("*") if path.is_file() and path not in files]:
        leftover.unlink()
    for _ in over(_copy, list(files.items())):
        pass


def is_file_name(text: str) -> bool:
    """Return whether a text can be the name of a file, and leads nowhere else."""
    return text not in ("", ".", "..") and not set("/\0") & set(text) and len(os.fsencode(text)) <= LONGEST_NAME


def _is_copy(target: Path, file: ArrowPath) -> bool:
    """Return whether `target` is a copy of a file: it has its size and time of change."""
    return target.exists() and version_of_status(target.stat())[:2] == version_of_status(file.stat())[:2]


def _copy(item: tuple[Path, ArrowPath]) -> None:
    """Copy a file to a path unless its copy is there."""
    target, file = item
    if _is_copy(target, file):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target, follow=False) as unfinished:
        with file.opened() as source, unfinished.open("wb") as copy:
            shutil.copyfileobj(source, copy, PIECE)
        changed = file.stat().st_mtime_ns
        os.utime(unfinished, ns=(changed, changed))


# Places of input and results: a path that every worker can open, or a URI of a file system that Arrow knows.
#
# 1. A file: URI is a path. Files that have one are read by memory map, others piece by piece (spark_check.storage).
# 2. A URI must not hold a key: reports and results repeat it.


AnyPath: TypeAlias = Path | ArrowPath


def to_path(place: str | AnyPath) -> AnyPath:
    """Return the path that a string names: a path, a file: URI, or a URI of Arrow. A path object is returned as it is.

    Raises UsageError for a URI that Arrow cannot open, or that has a key in it.
    """
    if not isinstance(place, str):
        return place
    if not is_uri(place):
        return Path(place)
    try:
        parts = urlsplit(place)
    except ValueError as error:  # a [ that is not closed, as in an address of IPv6
        raise UsageError(f"{without_keys(place)}: expected a URI, seen: {error}") from error
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise UsageError(f"{place}: expected a file: URI of this machine, seen one of {parts.netloc}")
        return Path(unquote(parts.path))
    # s3://key:secret@bucket
    if "@" in parts.netloc and parts.scheme in ("s3", "s3a", "s3n"):
        expected = "expected keys in the environment, seen keys in the URI, which reports and results repeat; remove them"
        raise UsageError(f"{without_keys(place)}: {expected}")
    try:
        return ArrowPath.from_uri(place)
    except OSError as error:
        raise UsageError(
            f"{place}: expected a path, or a URI that Arrow opens on this machine (docs/spark.md has them), seen: {error}"
        ) from error


def local_path(place: str | AnyPath, what: str) -> Path:
    """Return a path of this machine; `what` says in errors what it is for. Raises UsageError for another file system."""
    path = to_path(place)
    if isinstance(path, ArrowPath):
        raise UsageError(f"{place}: expected {what} at a path that every worker can open, seen another file system")
    return path


def writable_directory(place: str | AnyPath) -> AnyPath:
    """Return the directory, made if it does not exist. Raises UsageError if it cannot be made, or not be written to.

    Of a directory on another file system only the making is tried: one that is there may still refuse a write.
    """
    path = to_path(place)
    # `directory` checks the permission to write, too.
    if isinstance(path, Path):
        return directory(path).absolute()
    try:
        path.mkdir()
    except OSError as error:
        raise UsageError(f"{path}: expected a directory to write to, seen: {error}; name another place") from error
    return path


def open_parquet(name: str) -> Reader:
    """Open a Parquet file by its path or URI. Raises Unreadable."""
    return Reader(name, ArrowPath(name).opened if "://" in name else None)
