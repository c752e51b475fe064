"""Files that are written whole or not at all, and the user's cache directory."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegauge.util.errors import UsageError

# Files that are written completely or not at all.
#
# 1. A file is written beside the target and replaces it at the end: if anything fails before, the target is unchanged. A
#    link stays a link. A target that is no file (a pipe, /dev/null) is written to directly.
# 2. A target that cannot be written raises UsageError, if possible before any work is done.


@contextmanager
def replacing(target: str | Path) -> Iterator[Path]:
    """Yield the path of a file that replaces `target` at the end of the block."""
    writable(target)
    final = Path(os.path.realpath(target))
    if final.exists() and not final.is_file():
        yield final
        return
    beside = final.with_name(f".{final.stem}.{os.getpid()}.part{final.suffix}")  # writers choose the format by the suffix
    try:
        yield beside
        try:
            beside.replace(final)
        except OSError as error:
            raise _refused(target, "a file that can be written", error.strerror or str(error)) from error
    finally:
        beside.unlink(missing_ok=True)


def writable(target: str | Path) -> None:
    """Raise UsageError if no file can be written at `target`."""
    _refuse_uri(target)
    final = Path(os.path.realpath(target))
    if final.is_dir():
        raise _refused(target, "a file to write", "a directory")
    if not final.parent.is_dir():
        raise _refused(target, "a file in a directory that exists", f"no directory {final.parent}")
    if not os.access(final.parent, os.W_OK | os.X_OK):
        raise _refused(target, "a directory that can be written to", "one that cannot")


def directory(target: str | Path) -> Path:
    """Return the directory `target`, made if it does not exist. Raises UsageError if it cannot be written to."""
    _refuse_uri(target)
    path = Path(target)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _refused(target, "a directory to write to", error.strerror or str(error)) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise _refused(target, "a directory that can be written to", "one that cannot")
    return path


def _refuse_uri(target: str | Path) -> None:
    # Otherwise s3://BUCKET would become a local directory `s3:` with BUCKET in it.
    if uri := elsewhere(target):
        raise _refused(uri, "a path of this machine", "a URI")


def _refused(target: str | Path, expected: str, seen: str) -> UsageError:
    return UsageError(f"{target}: expected {expected}, seen {seen}; name another place")


def cache(name: str) -> Path:
    """Return the folder `name` in the user's cache; it may not exist. Raises RuntimeError for a user without a home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "tidegauge" / name


# Names of files that may be URIs. No credentials in messages: a message that quotes a URI quotes it `without_keys`.

_KEYS = re.compile(r"(?<=://)[^/?#]*@")


def is_uri(name: str) -> bool:
    """Return whether a name is a URI, as s3://BUCKET/KEY and file:/DIRECTORY are."""
    return "://" in name or name.lower().startswith("file:")


def without_keys(uri: str) -> str:
    """Return the URI without user and password. Malformed URIs are accepted: they may have them as well."""
    return _KEYS.sub("", uri)


def elsewhere(name: str | Path) -> str | None:
    """Return the URI without keys if a name is one where a local path is expected; None if it is a path."""
    return without_keys(str(name)) if is_uri(str(name)) and not Path(name).exists() else None
