"""Places of input and results: a path that every worker can open, or a URI of a file system that Arrow knows.

Rules of this file

1. A file: URI is a path. Files that have one are read by memory map, others piece by piece (spark_check.arrow_path).
2. A URI must not hold a key: reports and results repeat it.
"""

from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from tidegauge.impl.errors import UsageError
from tidegauge.spark_check.arrow_path import ArrowPath
from tidegauge.traces.files.parquet import Reader
from tidegauge.traces.files.replacing import directory
from tidegauge.traces.files.uri import is_uri, without_keys

AnyPath: TypeAlias = Path | ArrowPath


def to_path(place: str | AnyPath) -> AnyPath:
    """Return the path that a string names. Raises UsageError for a URI that Arrow cannot open."""
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
    if "@" in parts.netloc and parts.scheme in ("s3", "s3a", "s3n"):
        expected = "expected keys in the environment, seen them in the URI, which reports and results repeat"
        raise UsageError(f"{without_keys(place)}: {expected}")
    try:
        return ArrowPath.of(place)
    except OSError as error:
        raise UsageError(
            f"{place}: expected a path, or a URI that Arrow opens on this machine (docs/spark.md has them), seen: {error}"
        ) from error


def local_path(place: str | AnyPath, what: str) -> Path:
    """Return a path of this machine; `what` is for errors. Raises UsageError for a URI of another file system."""
    path = to_path(place)
    if isinstance(path, ArrowPath):
        raise UsageError(f"{place}: expected {what} at a path that every worker can open, seen another file system")
    return path


def writable_directory(place: str | AnyPath) -> AnyPath:
    """Return the directory, made if it does not exist. Raises UsageError if nothing can be written into it."""
    path = to_path(place)
    if isinstance(path, Path):
        return directory(path).absolute()
    try:
        path.mkdir()
    except OSError as error:
        raise UsageError(f"{path}: expected a directory to write to, seen: {error}; name another place") from error
    return path


def open_parquet(name: str) -> Reader:
    """Open the Parquet file of that name. Raises Unreadable."""
    return Reader(name, ArrowPath(name).opened if "://" in name else None)
