"""The graphs that a broker is taken through, and their covers.

A graph has the states and transitions of a model within bounds. What it gives one broker are that broker's inputs
(`Inputs`); a cover is a set of paths that takes each of the broker's steps in the graph at least once.

Rule of this file: bounds are small on purpose. Half a million transitions of a cluster are a few thousand things that one
broker can do.
"""

import gzip
import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tidegauge.drive.broker.contract import BrokerCase, Opening
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.contract import Capabilities, frozen
from tidegauge.drive.paths.cover import Cover, cover
from tidegauge.drive.paths.graph_projection import Inputs, of_cluster, of_isr_changes
from tidegauge.impl.cluster.transitions import Bounds
from tidegauge.impl.explorer.isr_model import IsrBounds
from tidegauge.impl.profiles import Profile, recording_reads
from tidegauge.util.errors import UsageError
from tidegauge.util.files import cache, replacing

# Covers in the user's cache: each is made once.
#
# A cover is cached under a digest of what it depends on: the code of `impl` and of `drive`, what the caller names, and the
# switches of the profile that were read while it was made, with their values. Generations that differ in none of them share
# it.


def cached_cover(name: str, depends: object, profile: Profile, make: Callable[[Profile], Cover]) -> Cover:
    """Return the cover that `make` computes for a profile, from the cache if it is there.

    `name`: the beginning of the file's name. `depends`: whatever the cover depends on besides the code and the profile, as a
    value whose repr is the same in each run.
    """
    folder, stem = _folder(), f"{name}-{_digest(repr(depends).encode(), *_code())}"
    for path in sorted(folder.glob(f"{stem}-*")) if folder is not None else ():
        # A file that cannot be read is made again without a message: nothing is lost but time.
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            cached = _read(path, profile)
            if cached is not None:
                return cached
    # `switches` grows: the names of the switches that are read from the profile while the cover is made.
    recording_profile, switches = recording_reads(profile)
    cover = make(recording_profile)
    # The switches go into the file, for `_read` to compare: another profile that agrees in them shares the cover.
    if folder is not None:
        # A cache that cannot be written costs only time.
        with suppress(OSError, UsageError):
            _write(folder, stem, {switch: getattr(profile, switch) for switch in sorted(switches)}, cover)
    return cover


def _folder() -> Path | None:
    """Return the folder of cached covers; None for a user without a home."""
    with suppress(RuntimeError):
        return cache("covers")
    return None


def _digest(*parts: bytes) -> str:
    """Return a key for a cache: the beginning of a SHA-256 of all parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:20]


def _code() -> list[bytes]:
    """Return the content of every Python file that a cover may depend on, in a fixed order."""
    packages = (Path(str(files("tidegauge").joinpath(name))).resolve() for name in ("impl", "drive"))
    return [path.read_bytes() for package in packages for path in sorted(package.rglob("*.py"))]


def _write(folder: Path, stem: str, switches: dict[str, bool | str], cover: Cover) -> None:
    """Write a file of two lines of JSON: the switches that the cover depends on, with their values, and the cover."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    switches_line = json.dumps(switches)
    cover_line = json.dumps({**cover._asdict(), "cases": [[*case] for case in cover.cases]})
    # A process that reads meanwhile sees the whole file or none.
    with replacing(folder / f"{stem}-{_digest(switches_line.encode())}.json.gz") as temporary:
        temporary.write_bytes(gzip.compress(f"{switches_line}\n{cover_line}\n".encode(), mtime=0))


def _read(path: Path, profile: Profile) -> Cover | None:
    """Return the cover in a file that `_write` wrote; None if the profile has other values for its switches."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        switches = json.loads(lines.readline())
        if any(getattr(profile, name) != value for name, value in switches.items()):
            return None
        fields: dict[str, Any] = json.loads(lines.readline())
    # A case is written as (opening, path, name); those of a cover have no names.
    cases = tuple(BrokerCase(Opening(*frozen(opening)), frozen(path)) for opening, path, _ in fields.pop("cases"))
    return Cover(cases, **fields)


class DrivenGraph(NamedTuple):
    """The bounds of a graph, and what the graph is about in words (`says`).

    `elr`: the model has eligible leader replicas, and brokers that stop. `waits`: each fetch may also be one that waits;
    `sessions`: each fetch may also be one in a session.
    """

    bounds: Bounds | IsrBounds
    says: str
    elr: bool = False
    waits: bool = False
    sessions: bool = False

    def inputs(self, profile: Profile) -> Inputs:
        """Explore the graph, and return what it gives one broker of a generation."""
        # A broker does the same with ELR and without: the switch decides only what the model's controller may do.
        model_profile = profile._replace(elr=self.elr)
        # ISR changes have a model of their own, with a leader and a controller alone.
        if isinstance(self.bounds, IsrBounds):
            return of_isr_changes(self.bounds, model_profile)
        # In some generations the fetcher thread truncates by itself, which is a transition of its own in the model.
        inputs = of_cluster(self.bounds._replace(thread_truncates=profile.truncates_in_thread), model_profile)
        return inputs._replace(waits=self.waits, sessions=self.sessions)


GRAPHS: Mapping[str, DrivenGraph] = MappingProxyType(
    {
        "small": DrivenGraph(Bounds(2, 1, 1, 0), "two brokers, one record, one election"),
        "two": DrivenGraph(Bounds(2, 2, 2, 0), "two brokers, two records, two elections"),
        "crash": DrivenGraph(Bounds(2, 2, 1, 1), "two brokers, two records, an election and a crash"),
        "starts": DrivenGraph(Bounds(2, 2, 1, 0, max_start=1), "two brokers whose log starts move"),
        "acks": DrivenGraph(
            Bounds(2, 1, 1, 1, max_waiting=1, min_insync_replicas=2), "producers that wait for two replicas"
        ),
        "waits": DrivenGraph(Bounds(2, 2, 1, 0, min_insync_replicas=2), "a peer whose fetches wait", waits=True),
        "both": DrivenGraph(Bounds(3, 1, 0, 0), "two peers whose fetches wait, without an election", waits=True),
        "sessions": DrivenGraph(Bounds(2, 1, 1, 1), "a peer that fetches in sessions", sessions=True),
        "session_starts": DrivenGraph(Bounds(2, 2, 0, 0, max_start=1), "sessions where log starts move", sessions=True),
        "session_waits": DrivenGraph(Bounds(2, 1, 1, 0), "a peer whose fetches wait in sessions", waits=True, sessions=True),
        "stops": DrivenGraph(
            Bounds(2, 1, 1, 1, loses_tails=True, min_insync_replicas=2),
            "clean stops, and crashes that lose the log's end",
            elr=True,
        ),
        "isr": DrivenGraph(IsrBounds(1, 2, 3, 0), "ISR changes, where the response comes before the metadata or after it"),
        "three": DrivenGraph(Bounds(3, 1, 1, 0), "three brokers, one record, one election"),
    }
)

USUAL = ("two", "crash", "starts", "acks", "waits", "both", "sessions", "session_starts", "session_waits", "stops", "isr")
"""What --cover takes of a driven program unless it is told otherwise."""

ON_THE_WIRE = (*USUAL, "three")
"""The same for an unmodified broker of Kafka. `three` is explored for a minute and more, once for a release."""


def graph_named(name: str) -> DrivenGraph:
    """Return the graph called `name`. Raises UsageError with the names there are."""
    if name not in GRAPHS:
        raise UsageError(f"graph: expected one of {', '.join(GRAPHS)}; seen {name!r}; choose one of those")
    return GRAPHS[name]


def cover_of(name: str, profile: Profile, capabilities: Capabilities = EVERYTHING, seed: int = 0) -> Cover:
    """Return the cover of the graph called `name` for a broker with these capabilities, from the cache if it is there.

    `seed`: another one than 0 gives other paths. Raises UsageError for an unknown name.
    """
    graph = graph_named(name)

    def make(generation: Profile) -> Cover:
        """Compute the cover."""
        return cover(graph.inputs(generation), generation, capabilities, seed)

    return cached_cover(name, (graph, sorted(capabilities.can), seed), profile, make)
