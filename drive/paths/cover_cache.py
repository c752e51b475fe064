"""Covers in the user's cache: each is made once.

A cover is cached under a digest of what it depends on: the code of `impl` and of `drive`, what the caller names, and the
switches of the profile that were read while it was made, with their values. Generations that differ in none of them share
it.
"""

import gzip
import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from tidegauge.drive.broker.contract import BrokerCase, Opening
from tidegauge.drive.cache import cache
from tidegauge.drive.contract import frozen
from tidegauge.drive.paths.cover import Cover
from tidegauge.drive.profile_reads import recording_reads
from tidegauge.impl.errors import UsageError
from tidegauge.impl.profiles import Profile
from tidegauge.traces.files.replacing import replacing


def cached_cover(name: str, depends: object, profile: Profile, made: Callable[[Profile], Cover]) -> Cover:
    """Return what `made` makes of a profile, from the cache if it is there; `depends` is what else it depends on."""
    folder, stem = _folder(), f"{name}-{_digest(repr(depends).encode(), *_code())}"
    for place in sorted(folder.glob(f"{stem}-*")) if folder is not None else ():
        # A file that cannot be read is made again without a message: nothing is lost but time.
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            found = _read(place, profile)
            if found is not None:
                return found
    generation, names = recording_reads(profile)
    cover = made(generation)
    if folder is not None:
        with suppress(OSError, UsageError):
            _write(folder, stem, {name: getattr(profile, name) for name in sorted(names)}, cover)
    return cover


def _folder() -> Path | None:
    with suppress(RuntimeError):
        return cache("covers")
    return None


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:20]


def _code() -> list[bytes]:
    packages = (Path(str(files("tidegauge").joinpath(name))).resolve() for name in ("impl", "drive"))
    return [path.read_bytes() for package in packages for path in sorted(package.rglob("*.py"))]


def _write(folder: Path, stem: str, switches: dict[str, bool | str], cover: Cover) -> None:
    """Write a line with the switches that were read, and one with the cover."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    read = json.dumps(switches)
    saved = json.dumps({**cover._asdict(), "cases": [[*case] for case in cover.cases]})
    with replacing(folder / f"{stem}-{_digest(read.encode())}.json.gz") as beside:
        beside.write_bytes(gzip.compress(f"{read}\n{saved}\n".encode(), mtime=0))


def _read(place: Path, profile: Profile) -> Cover | None:
    """Return the cover in a file, if it is one of this profile."""
    with gzip.open(place, "rt", encoding="utf-8") as lines:
        switches = json.loads(lines.readline())
        if any(getattr(profile, name) != value for name, value in switches.items()):
            return None
        saved: dict[str, Any] = json.loads(lines.readline())
    cases = tuple(BrokerCase(Opening(*frozen(opening)), frozen(path)) for opening, path, _ in saved.pop("cases"))
    return Cover(cases, **saved)
