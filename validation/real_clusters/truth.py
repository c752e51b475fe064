"""What really happened to the records: what clients read again, and the segments on the disks after the end.

Rules of this file

1. A record is lost if it was acknowledged, its offset is not below the log start, and its name is nowhere in its partition.
2. Losses of acks=1, and after an unclean election, are allowed; others are not, and a verdict on that run is not known; nor
   is it after any loss where a disk was lost, for a producer that asks for acks=1 may lose what was committed.
3. A record whose offset an earlier one of its transactional producer has was never appended: librdkafka 2.16 uses the
   sequence number of a record again that an abort left in flight, and the broker answers with the offset of that record, as
   for a duplicate (cluster 1078). No broker lost it.
4. Replicas hold the same batches wherever two of them have the offset. Brokers have stopped in order by then.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from tidegauge.traces.segments import RecordBatch, read

SHOWN = 20
TRANSACTIONAL = "tx-"
"""How the names of transactional producers begin."""


class Acknowledged(NamedTuple):
    """A record that a broker has acknowledged, or whose transaction was committed. `acks`: what its producer asked for.

    The offset is -1 where the broker told none: for a batch that a retry sent twice.
    """

    topic: str
    partition: int
    offset: int
    name: str
    acks: str


class ReadAgain(NamedTuple):
    """A partition that was read from its log start to its end: the name of the record at each offset."""

    log_start: int
    names: Mapping[int, str]


@dataclass
class Truth:
    """`unread` partitions could not be read to their end; `differ` names replicas whose batches are not the same.

    `expired` records are below the log start; those `elsewhere` are there, at another offset than was acknowledged;
    `duplicates` are those of rule 3.
    """

    acknowledged: int = 0
    expired: int = 0
    lost: list[Acknowledged] = field(default_factory=list)
    elsewhere: int = 0
    duplicates: int = 0
    unread: list[str] = field(default_factory=list)
    differ: list[str] = field(default_factory=list)
    unclean: bool = False
    emptied: bool = False

    @property
    def forbidden(self) -> list[str]:
        """Say what must not have happened: rule 2."""
        looked_at = [record for record in self.lost if self.emptied or record.acks != "1"]
        lost = [f"{r.topic}-{r.partition} offset {r.offset} ({r.name})" for r in looked_at]
        return [] if self.unclean else [*(f"lost {each}" for each in lost), *self.differ]

    def as_json(self) -> dict[str, Any]:
        """Return the fields, for a file."""
        short = {**asdict(self), "lost": [list(each) for each in self.lost], "differ": self.differ[:SHOWN]}
        return {**short, "lost_count": len(self.lost), "forbidden": self.forbidden[:SHOWN]}


def truth_of(acknowledged: Iterable[Acknowledged], read_again: Mapping[tuple[str, int], ReadAgain]) -> Truth:
    """Compare what was acknowledged with what was read again, in the partitions that were."""
    truth = Truth()
    offsets = {tp: {name: offset for offset, name in found.names.items()} for tp, found in read_again.items()}
    for record in acknowledged:
        found = read_again.get((record.topic, record.partition))
        if found is None:
            continue
        truth.acknowledged += 1
        there = record.name in offsets[record.topic, record.partition]
        # Without an offset a record that is not there may have been below the log start.
        if record.offset < found.log_start and not there:
            truth.expired += 1
        elif not there and _sent_as_duplicate(record, found.names.get(record.offset, "")):
            truth.duplicates += 1
        elif not there:
            truth.lost.append(record)
        elif record.offset >= 0 and found.names.get(record.offset) != record.name:
            truth.elsewhere += 1
    return truth


def _sent_as_duplicate(record: Acknowledged, there: str) -> bool:
    """Return whether the record at its offset is an earlier one of the same transactional producer (rule 3)."""
    producer, _, number = record.name.rpartition("-")
    other, _, before = there.rpartition("-")
    return producer.startswith(TRANSACTIONAL) and other == producer and int(before) < int(number)


def differences(directories: Mapping[int, Iterable[Path]]) -> list[str]:
    """Compare the segments of all replicas. `directories`: those of each broker, which has stopped."""
    replicas: dict[str, dict[int, dict[int, RecordBatch]]] = defaultdict(dict)
    for broker, roots in directories.items():
        for root in roots:
            for folder in sorted(root.glob("*-*")):
                # A dot: a future replica, a deleted or a stray one.
                if folder.is_dir() and "." not in folder.name and not folder.name.startswith("__cluster_metadata"):
                    replicas[folder.name][broker] = _batches(folder)
    found = []
    for tp, logs in sorted(replicas.items()):
        for (one, first), (other, second) in combinations(sorted(logs.items()), 2):
            if not first or not second:
                continue
            begin, end = max(min(first), min(second)), min(max(first), max(second))
            for base in sorted(base for base in {*first, *second} if begin <= base <= end):
                if first.get(base) != second.get(base):
                    found.append(f"{tp}: brokers {one} and {other} differ at offset {base}")
                    break
    return found


def _batches(folder: Path) -> dict[int, RecordBatch]:
    segments = (read(path) for path in sorted(folder.glob("*.log")))
    return {batch.base: batch for segment in segments for batch in segment.batches}
