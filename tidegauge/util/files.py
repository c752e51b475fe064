"""Files that are written whole or not at all, directories that are the user's alone, the user's cache directory, and URIs.

A `target` is a file or directory that a command writes, as the user named it.
"""

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from tidegauge.util.errors import UsageError

# Files that are written completely or not at all.
#
# 1. A file is written beside the target and replaces it at the end: if anything fails before, the target is unchanged. A
#    link stays a link. A target that is no file (a pipe, /dev/null) is written to directly. Both only where the user named
#    the file itself: in a directory that somebody sent, check.json may be a link to anything.
# 2. A target that cannot be written raises UsageError, if possible before any work is done.


@contextmanager
def replacing(target: str | Path, follow: bool = True) -> Iterator[Path]:
    """Yield the path of a file to write, which replaces `target` at the end of the block.

    A link stays, and the file that it leads to is replaced; without `follow` the link itself is replaced (rule 1).
    """
    writable(target)
    final = Path(os.path.realpath(target)) if follow else Path(target)  # where the file is written in the end
    # A device or a pipe, such as /dev/stdout, is written itself: another file must not take its place.
    if follow and final.exists() and not final.is_file():
        yield final
        return
    # A name that nobody can foretell: a link that waits under it would be followed. Writers choose the format by the suffix.
    beside = final.with_name(f".{final.stem}.{token_hex(8)}.part{final.suffix}")
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


def refuse_unnamed(path: str | os.PathLike[str]) -> None:
    """Raise UsageError for an empty path: pathlib takes it for the current directory."""
    if not os.fspath(path):
        raise UsageError("expected a path, seen an empty one (a variable that is not set?); name a file or a directory")


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


def version_of_status(status: Any) -> tuple[int, ...]:
    """Return numbers that change when the content of a file does, from its status: os.stat's, or of another file system."""
    # st_ctime is the time at which the inode changed, which nobody can set; other file systems may lack both of the last.
    return status.st_size, status.st_mtime_ns, getattr(status, "st_ctime_ns", 0), getattr(status, "st_ino", 0)


def _refuse_uri(target: str | Path) -> None:
    """Raise UsageError if a target is a URI."""
    # Otherwise s3://BUCKET would become a local directory `s3:` with BUCKET in it.
    if uri := elsewhere(target):
        raise _refused(uri, "a path of this machine", "a URI")


def _refused(target: str | Path, expected: str, seen: str) -> UsageError:
    """Return the error of a target that cannot be written: what was expected there, and what is."""
    return UsageError(f"{target}: expected {expected}, seen {seen}; name another place")


# A directory that nobody else can write to, for files that are executed when they are loaded.
#
# 1. The place that it lies in may be a link, and shared. But no component of it, nor any above, may be another
#    user's, unless root's, or be writable by others unless it is sticky, as /tmp is.
# 2. What lies below the place is made by this user with mode 0700, and is no link. What was there with a mode that let
#    others write is not used: they may have. A group of one is no other (OpenSSH, StrictModes).


def private_directory(place: str | Path, *below: str) -> Path | None:
    """Return the directory `below` a place, made if it does not exist; None if there can be none that is ours alone.

    `below` are the names of folders, each in the one before.
    """
    # Without owners of files, as on Windows, a directory of the user's profile is as private as it gets.
    if not hasattr(os, "getuid"):
        return _made(Path(place).joinpath(*below))
    folder = Path(os.path.abspath(place))  # noqa: PTH100  not resolved: a link of another user in the way must be seen
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Rule 1: nothing on the way is another user's, links included, and no real directory can be changed by others.
        resolved = Path(os.path.realpath(folder))
        if not all(path.lstat().st_uid in {0, os.getuid()} for path in (folder, *folder.parents)):
            return None
        if not all(_only_ours_to_change(path.stat()) for path in (resolved, *resolved.parents)):
            return None
        for name in below:
            folder /= name
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            status = folder.lstat()
            # Rule 2: what was there already may be anything.
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or not _only_ours_to_change(status):
                return None
            # Others could read it, and not write: it is used, and made private.
            if status.st_mode & 0o077:
                folder.chmod(0o700)
        if os.access(folder, os.W_OK):
            return folder
    return None


LOCK = ".tidegauge-lock"
"""The file in a working directory that its run has locked."""


@contextmanager
def working_directory(place: Path, name: str, *, keeps: bool) -> Iterator[Path]:
    """Yield a directory in `place` for files that a run needs until its end; nobody else can write to it.

    If it `keeps` them, a run that fails leaves the directory under that `name`, and the next one goes on with what is in it.
    """
    kept = private_directory(place, name) if keeps else None
    lock = _locked(kept) if kept is not None else None
    # Another run has it now, or others could write to it.
    folder = Path(tempfile.mkdtemp(prefix=name, dir=place)) if kept is None or lock is None else kept
    try:
        yield folder
    except BaseException:
        if lock is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    else:
        # No result is lost over what cannot be removed.
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        if lock is not None:
            os.close(lock)


def remove_unused(folder: Path) -> None:
    """Remove a working directory that a run has left, unless another one has it now."""
    lock = _locked(folder)
    if lock is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked(folder: Path) -> int | None:
    """Lock a directory for this process; return the descriptor that holds the lock, None if another process has it."""
    import fcntl  # noqa: PLC0415  POSIX only

    try:
        lock = os.open(folder / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    # The process that had it has just removed it.
    except OSError:
        return None
    with suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Not that of a directory that was removed meanwhile.
        if os.fstat(lock).st_ino == (folder / LOCK).stat().st_ino:
            return lock
    os.close(lock)
    return None


def _made(folder: Path) -> Path | None:
    """Return a directory, made if it does not exist; None if it cannot be made or written to."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder if os.access(folder, os.W_OK) else None
    return None


def _only_ours_to_change(status: os.stat_result) -> bool:
    """Return whether nobody but root and this user can replace what lies in a directory of this status."""
    # A group of one is this user.
    group_writes = status.st_mode & stat.S_IWGRP and not _is_group_of_one(status.st_gid)
    others_write = status.st_mode & stat.S_IWOTH or group_writes
    # In a sticky directory, as /tmp is, only its owner can replace a file.
    return status.st_uid in {0, os.getuid()} and (not others_write or bool(status.st_mode & stat.S_ISVTX))


def _is_group_of_one(group: int) -> bool:
    """Return whether a group has no member but this user, as Debian makes one for each user."""
    import grp  # noqa: PLC0415  POSIX only
    import pwd  # noqa: PLC0415

    try:
        entry, user = grp.getgrgid(group), pwd.getpwuid(os.getuid()).pw_name
    # A group or user without an entry: nothing is known of its members.
    except KeyError:
        return False
    # The group that this process runs as, called like its user; `gr_mem` are the members who have it as a second group.
    return group == os.getgid() and entry.gr_name == user and set(entry.gr_mem) <= {user}


def cache(name: str) -> Path:
    """Return the folder `name` in the user's cache; it may not exist. Raises RuntimeError for a user without a home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "tidegauge" / name


# Names of files that may be URIs. No credentials in messages: a message that quotes a URI quotes it `without_keys`.

_KEYS = re.compile(r"(?<=://)[^/?#]*@")
"""The user and password of a URI, as in s3a://KEY:SECRET@BUCKET."""


def is_uri(name: str) -> bool:
    """Return whether a name is a URI, as s3://BUCKET/KEY and file:/DIRECTORY are."""
    return "://" in name or name.lower().startswith("file:")


def without_keys(uri: str) -> str:
    """Return the URI without user and password. Malformed URIs are accepted: they may have them as well."""
    return _KEYS.sub("", uri)


def elsewhere(name: str | Path) -> str | None:
    """Return the URI, without keys, if a name that should be a local path is a URI; None if it is a path."""
    return without_keys(str(name)) if is_uri(str(name)) and not Path(name).exists() else None
