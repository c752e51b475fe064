"""Read the segment files of replicas: where they lie, and which offsets and leader epochs their records have.

Rules of this file

1. A replica is a folder `<topic>-<partition>` with files `<base offset in twenty digits>.log`, as Kafka lays out a log
   directory. A capture may have them side by side too: `<topic>-<partition>.<twenty digits>.log`. Each may be gzipped.
2. Batches are not decompressed: offsets and epochs are in the header, which is never compressed.
3. Reading ends where a recovering broker would truncate the log: it loses everything after the first fault, later segments
   too (LogLoader#recoverSegment). The fault is a Problem; what comes before it counts.
4. The metadata log is replicated by another protocol (KIP-595): it is skipped.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tidegauge.impl.rules import UNDEFINED, count_at_most
from tidegauge.traces import segments
from tidegauge.traces.kafka_logs.discovery.folders import FolderWalk
from tidegauge.traces.kafka_logs.parsing.parsed_line import METADATA_LOG
from tidegauge.traces.problems import Problem
from tidegauge.traces.segments import CHECKSUM, RecordBatch

_FILE = re.compile(r"(?:(?P<tp>.+-\d+)\.)?(?P<base>\d{20})\.log(?:\.gz)?")
_PARTITION = re.compile(r".+-\d+")
DEEPEST = 8
"""Folders between the directory and a segment file."""

BatchEpochs = Sequence[Sequence[int]]
"""Pairs of an epoch and the offset it starts at."""


class EpochRun(NamedTuple):
    """Consecutive records of one leader epoch: offsets [base, end). `at` is the place of the first in its file."""

    epoch: int
    base: int
    end: int
    at: str


@dataclass(frozen=True)
class ReplicaLog:
    """The records in the segment files of a replica: from offset `start` up to, not including, `end`.

    `file` is the last one that was read, `fault` the problem at which reading ended, None if there was none.
    """

    start: int
    end: int
    runs: tuple[EpochRun, ...]
    file: str
    fault: Problem | None


def replica_files(folder: Path) -> dict[Path, dict[str, list[Path]]]:
    """Find the segment files below `folder` (rule 1) by log directory and topic-partition, in the order of their offsets."""
    by_log_dir: dict[Path, dict[str, list[Path]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(_below(folder, FolderWalk(folder))):
        name = _FILE.fullmatch(path.name)
        if name is None or not path.is_file():
            continue
        tp = name["tp"] or path.parent.name
        if _PARTITION.fullmatch(tp) and tp != METADATA_LOG:
            by_log_dir[path.parent if name["tp"] else path.parent.parent][tp].append(path)
    return {log_dir: dict(files) for log_dir, files in by_log_dir.items()}


def _below(folder: Path, walk: FolderWalk, depth: int = 0) -> Iterator[Path]:
    """Yield all that is in a folder, `depth` levels below the input, and in the folders below it."""
    for path in walk.entries(folder):
        yield path
        # A folder that a link leads to is not of this log directory; what others made may be deeper than any path.
        if depth < DEEPEST and not path.is_symlink() and walk.enter(path):
            yield from _below(path, walk, depth + 1)


def read_replica(files: Sequence[Path], folder: Path, label: str) -> ReplicaLog:
    """Read the segment files of one replica, in order, up to the first fault; `label` stands for `folder` in their names."""
    runs: list[EpochRun] = []
    end = _base(files[0])
    for path in files:
        name = f"{label}{path.relative_to(folder).as_posix()}"
        fault = None
        try:
            # Offsets only grow within a log: what a segment has below the end of the one before it is a fault.
            read_segment = segments.read(path, records=False, after=max(end, _base(path)) - 1)
        except OSError as error:
            fault = Problem(name, None, "a readable file", str(error.strerror), "check the path and its permissions", lost=1)
            return ReplicaLog(_base(files[0]), end, tuple(runs), name, fault)
        for batch, position in zip(read_segment.batches, read_segment.positions, strict=True):
            _add_batch(runs, batch, f"{name}, byte {position}")
        # An empty segment was rolled at its base offset: the log ends there.
        end = runs[-1].end if read_segment.batches else max(end, _base(path))
        if read_segment.fault is not None:
            fault = _problem(name, read_segment.fault, end, torn=path == files[-1] and read_segment.fault.torn)
            return ReplicaLog(_base(files[0]), end, tuple(runs), name, fault)
    return ReplicaLog(_base(files[0]), end, tuple(runs), name, fault=None)


def unchecked(label: str) -> list[Problem]:
    """Return the problem that checksums of records cannot be computed here, as a package is missing; else none."""
    if CHECKSUM is not None:
        return []
    do = "run: pip install 'tidegauge[segments]'; offsets and epochs are read all the same, unchecked"
    return [Problem(label or ".", None, "the package google_crc32c, for the checksums of record batches", "none", do)]


def epochs_of(runs: Sequence[EpochRun], start: int) -> list[list[int]]:
    """Return the epoch cache that these records imply from offset `start` on, as pairs of an epoch and its start offset."""
    within = [run for run in runs if run.epoch != UNDEFINED and run.end > start]
    return [[run.epoch, max(run.base, start)] for run in within]


def contradiction(runs: Sequence[EpochRun], cache: BatchEpochs) -> EpochRun | None:
    """Return the first records that do not have the epoch that `cache` assigns to them; None if there are none.

    A cache may have epochs without records: nothing was appended in them, or compaction removed it. It says nothing about
    offsets below its first entry.
    """
    starts = [start for _, start in cache]
    for run in runs:
        base = max(run.base, starts[0]) if starts else run.base
        # Records of an old message format have no epoch.
        if run.epoch == UNDEFINED or base >= run.end:
            continue
        entries = count_at_most(starts, base)
        # The last entry at or below the records must have their epoch, and the next one begin behind them.
        if entries == 0 or cache[entries - 1][0] != run.epoch or (entries < len(starts) and starts[entries] < run.end):
            return run
    return None


def _base(path: Path) -> int:
    """Return the base offset of a segment, the twenty digits at the end of its file's name."""
    return int(path.name.removesuffix(".gz").removesuffix(".log")[-20:])


def _add_batch(runs: list[EpochRun], batch: RecordBatch, at: str) -> None:
    """Append a batch, which begins at the place `at`, to the runs: to the last run if that has its epoch."""
    if runs and runs[-1].epoch == batch.epoch:
        runs[-1] = runs[-1]._replace(end=batch.last + 1)
    else:
        runs.append(EpochRun(batch.epoch, batch.base, batch.last + 1, at))


def _problem(name: str, fault: segments.SegmentProblem, end: int, torn: bool) -> Problem:
    """Return the problem of a segment that is damaged at a batch; `end` is where the log ends before that.

    `torn`: the batch is the last one of the log, and incomplete.
    """
    expected = f"at byte {fault.position}, after offset {end - 1}, {fault.expected}"
    do = "the log is read up to there, as a broker that recovers would; copy the file again if its broker stopped in order"
    # A batch that ends with the last file is torn: a broker that was killed, or still writes, leaves it. Nothing is lost.
    return Problem(name, None, expected, fault.seen, do, lost=0 if torn else 1)
