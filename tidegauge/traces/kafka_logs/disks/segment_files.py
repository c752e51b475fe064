"""The segment files of replicas: where they lie, and which offsets and epochs their records have.

Rules of this file

1. A replica is a folder `<topic>-<partition>` with files `<base offset in twenty digits>.log`, as Kafka lays out a log
   directory. A capture may have them side by side too: `<topic>-<partition>.<twenty digits>.log`. Each may be gzipped.
2. Batches are not unpacked: offsets and epochs stand in front of what is compressed.
3. Reading ends where a recovering broker would truncate the log: what stands behind the first fault is lost to it, and so
   are later segments. LogLoader#recoverSegment. The fault is a Problem, what stands in front of it counts.
4. The metadata log is replicated by another protocol, and is left alone.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tidegauge.impl.rules import UNDEFINED, count_at_most
from tidegauge.traces.kafka_logs.parsing.parsed_line import METADATA_LOG
from tidegauge.traces.problems import Problem
from tidegauge.traces.segments import segment
from tidegauge.traces.segments.record_batch import CHECKSUM, RecordBatch

_FILE = re.compile(r"(?:(?P<tp>.+-\d+)\.)?(?P<base>\d{20})\.log(?:\.gz)?")
_PARTITION = re.compile(r".+-\d+")

Epochs = Sequence[Sequence[int]]
"""Pairs of an epoch and the offset it starts at."""


class EpochRun(NamedTuple):
    """Records of one leader epoch, one behind the other: offsets [base, end). `at` is where the first of them stands."""

    epoch: int
    base: int
    end: int
    at: str


@dataclass(frozen=True)
class ReplicaLog:
    """What the segment files of a replica hold: from the base of the first to `end`, the first offset that is not there."""

    start: int
    end: int
    runs: tuple[EpochRun, ...]
    file: str
    fault: Problem | None


def replica_files(folder: Path) -> dict[Path, dict[str, list[Path]]]:
    """The segment files below `folder` by log directory and topic-partition, in the order of their offsets."""
    found: dict[Path, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.rglob("*.log*")):
        name = _FILE.fullmatch(path.name)
        if name is None or not path.is_file():
            continue
        tp = name["tp"] or path.parent.name
        if _PARTITION.fullmatch(tp) and tp != METADATA_LOG:
            found[path.parent if name["tp"] else path.parent.parent][tp].append(path)
    return {log_dir: dict(files) for log_dir, files in found.items()}


def read_replica(files: Sequence[Path], folder: Path, label: str) -> ReplicaLog:
    """The records of one replica; `label` stands for `folder` in front of file names."""
    runs: list[EpochRun] = []
    end = _base(files[0])
    for path in files:
        name = f"{label}{path.relative_to(folder).as_posix()}"
        fault = None
        try:
            found = segment.read(path, records=False, after=max(end, _base(path)) - 1)
        except OSError as error:
            fault = Problem(name, None, "a readable file", str(error.strerror), "check the path and its permissions", lost=1)
            return ReplicaLog(_base(files[0]), end, tuple(runs), name, fault)
        for batch, position in zip(found.batches, found.positions, strict=True):
            _add(runs, batch, f"{name}, byte {position}")
        end = runs[-1].end if found.batches else max(end, _base(path))
        if found.fault is not None:
            fault = _problem(name, found.fault, end, torn=path == files[-1] and found.fault.torn)
            return ReplicaLog(_base(files[0]), end, tuple(runs), name, fault)
    return ReplicaLog(_base(files[0]), end, tuple(runs), name, None)


def unchecked(label: str) -> list[Problem]:
    """What to say where checksums cannot be computed."""
    if CHECKSUM is not None:
        return []
    do = "run: pip install 'tidegauge[segments]'; offsets and epochs are read all the same, unchecked"
    return [Problem(label or ".", None, "the package google_crc32c, for the checksums of record batches", "none", do)]


def epochs_of(runs: Sequence[EpochRun], start: int) -> list[list[int]]:
    """The epoch cache that these records, from offset `start` on, imply."""
    kept = [run for run in runs if run.epoch != UNDEFINED and run.end > start]
    return [[run.epoch, max(run.base, start)] for run in kept]


def contradiction(runs: Sequence[EpochRun], cache: Epochs) -> EpochRun | None:
    """The first records that do not have the epoch `cache` gives them.

    It may say more than they do: an epoch in which nothing was appended, or whose records compaction took. Of offsets
    below its first entry it says nothing.
    """
    starts = [start for _, start in cache]
    for run in runs:
        base = max(run.base, starts[0]) if starts else run.base
        if run.epoch == UNDEFINED or base >= run.end:
            continue
        known = count_at_most(starts, base)
        if known == 0 or cache[known - 1][0] != run.epoch or (known < len(starts) and starts[known] < run.end):
            return run
    return None


def _base(path: Path) -> int:
    return int(path.name.removesuffix(".gz").removesuffix(".log")[-20:])


def _add(runs: list[EpochRun], batch: RecordBatch, at: str) -> None:
    if runs and runs[-1].epoch == batch.epoch:
        runs[-1] = runs[-1]._replace(end=batch.last + 1)
    else:
        runs.append(EpochRun(batch.epoch, batch.base, batch.last + 1, at))


def _problem(name: str, fault: segment.SegmentProblem, end: int, torn: bool) -> Problem:
    """A batch that is cut off where the last file ends is what a broker that was killed, or still writes, leaves."""
    expected = f"at byte {fault.position}, behind offset {end - 1}, {fault.expected}"
    do = "the log is read up to there, as a broker that recovers would; copy the file again if its broker stopped in order"
    return Problem(name, None, expected, fault.seen, do, lost=0 if torn else 1)
