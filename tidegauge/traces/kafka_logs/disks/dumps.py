"""Read replicas as tools and copied files show them, without their segments: `kafka-dump-log` text, bare checkpoint files.

An *EpochRun* is consecutive records of one leader epoch: offsets [base, end), and the place of the first.

Rules of this file

1. A dump names the partition by the path that it dumps (`Dumping /data/x-0/00000000000000000000.log`), and no node; nor does
   a checkpoint. The name of the file says it (`broker-1-dump.txt`), or the folder (`n1/`), or meta.properties beside it.
2. A dump has the header of each batch (of old releases the records only): offsets, leader epoch, whether the checksum is
   right. It is read as the segment is (segment_files.py), up to the first batch that is not valid. It may be a part of the
   log: it does not show the log end.
3. Two dumps of one segment of one node may be of different times: the second one is left out.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage.checkpoints import HIGH_WATERMARK_FILE, LEADER_EPOCH_FILE, LOG_START_FILE
from tidegauge.traces.kafka_logs.discovery.files import node_of_file
from tidegauge.traces.kafka_logs.discovery.identify import SEGMENT_DUMP, dump_kind, files_below, node_in_properties
from tidegauge.traces.kafka_logs.disks.segment_files import EpochRun
from tidegauge.traces.kafka_logs.parsing.lines import blocks
from tidegauge.traces.kafka_logs.parsing.parsed_line import METADATA_LOG
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import LARGEST

_DUMPING = re.compile(r"Dumping (?:\S*[/\\])?(?P<tp>[^\s/\\]{1,260}-\d{1,9})[/\\](?P<base>\d{20})\.log(?:\.\w{1,20})?\s*$")
_BATCH = re.compile(r"baseOffset: (?P<first>\d{1,19}) lastOffset: (?P<last>\d{1,19}) ")
_EPOCH = re.compile(r" partitionLeaderEpoch: (-?\d{1,10}) ")
_MESSAGE = re.compile(r"offset: (?P<first>\d{1,19}) position: \d")
_INVALID = re.compile(r" isvalid: false\b")
_CHECKPOINTS = {HIGH_WATERMARK_FILE: "hw", LOG_START_FILE: "log_start", LEADER_EPOCH_FILE: "epochs"}


@dataclass
class DumpedReplica:
    """The batches of one replica that dumps show, by base offset of the segment; `file` is the first dump of them."""

    segments: dict[int, list[EpochRun]] = field(default_factory=dict)
    file: str = ""

    @property
    def runs(self) -> tuple[EpochRun, ...]:
        """Return its records as runs of one epoch each: batches in a row that share an epoch are joined."""
        joined: list[EpochRun] = []
        for run in (run for _, runs in sorted(self.segments.items()) for run in runs):
            if joined and joined[-1].epoch == run.epoch:
                joined[-1] = joined[-1]._replace(end=run.end)
            else:
                joined.append(run)
        return tuple(joined)


class Dumps:
    """What dumps and checkpoint files below a folder, or in one file, show of each replica, by node and topic-partition."""

    def __init__(self, root: Path) -> None:
        """Find the dumps and checkpoint files below `root`, and read the dumps."""
        self.root = root
        self.problems: list[Problem] = []
        self.replicas: dict[tuple[int, str], DumpedReplica] = defaultdict(DumpedReplica)
        self.checkpoints: list[tuple[int, str, Path]] = []
        """The node, which field of a replica it has, and the file."""
        node_of_folder: dict[Path, int | None] = {}
        for folder, files in files_below(root) if root.is_dir() else [(root.parent, [root])]:
            in_properties = node_in_properties(folder / "meta.properties")
            # Without a meta.properties of its own a folder is of the node of the folder above it.
            folder_node = node_of_folder.get(folder.parent) if in_properties is None else in_properties
            node_of_folder[folder] = folder_node
            for path in files:
                # Of a checkpoint, the field of a replica that it has; None for a dump.
                field_name = next((name for file, name in _CHECKPOINTS.items() if file in path.name), None)
                if field_name is None and dump_kind(path) != SEGMENT_DUMP:
                    continue
                node = node_of_file(path, root) if folder_node is None else folder_node
                if node is None:
                    expected, do = "the node in its name, its folder or meta.properties", "call it such as broker-1-dump.txt"
                    self.problems.append(Problem(self.label(path), None, expected, "none", f"{do}; it is left out", lost=1))
                elif field_name is not None:
                    self.checkpoints.append((node, field_name, path))
                else:
                    self._read(path, node)

    def label(self, path: Path) -> str:
        """Return what reports call a file."""
        return path.name if path == self.root else path.relative_to(self.root).as_posix()

    def _read(self, path: Path, node: int) -> None:
        """Read a file with dumps of one or several segments of a node; a second dump of one segment is left out."""
        label = self.label(path)
        for dump in _segments(path, label, self.problems):
            if dump.tp == METADATA_LOG:
                continue
            replica = self.replicas[node, dump.tp]
            if dump.base in replica.segments:
                do = "keep the later one; this one is left out"
                expected = f"one dump of a segment of {dump.tp}"
                self.problems.append(Problem(label, dump.first_line, expected, "another one", do, lost=1))
                continue
            replica.file = replica.file or label
            replica.segments[dump.base] = list(self._runs(label, dump.base, dump.lines))

    def _runs(self, label: str, base: int, lines: list[tuple[int, str]]) -> Iterator[EpochRun]:
        """Yield the batches of a dump, or its records; end with a problem at the first that a recovery would refuse.

        `lines` are those of batches and records, each with its number in the file; `base` is the segment's base offset.
        """
        end = base
        # Dumps of old releases have the records only, not the headers of batches.
        of_batches = any(_BATCH.search(text) for _, text in lines)
        for number, text in lines:
            batch = _BATCH.search(text) if of_batches else _MESSAGE.match(text)
            if batch is None:
                continue
            first, last = int(batch["first"]), int(batch["last" if of_batches else "first"])
            epoch = _EPOCH.search(text)
            # A recovery stops at a batch that is damaged, or whose offsets go back.
            fault = "a batch that is not valid" if _INVALID.search(text) else ""
            if fault or first < end or last >= LARGEST:
                fault = fault or f"offsets {first} to {last}"
                do = "the dump is read up to there, as a broker that recovers would read the log"
                self.problems.append(Problem(label, number, f"a valid batch from offset {end} on", fault, do, lost=1))
                return
            end = last + 1
            yield EpochRun(int(epoch[1]) if epoch is not None else UNDEFINED, first, end, f"{label}:{number}")


class _SegmentDump(NamedTuple):
    """A dump of one segment: its partition, its base offset, and the lines of its batches and records with their numbers."""

    tp: str
    base: int
    first_line: int
    lines: list[tuple[int, str]]


def _segments(path: Path, label: str, problems: list[Problem]) -> Iterator[_SegmentDump]:
    """Yield the dump of each segment that is in a file; a file without the first line of any is a problem."""
    number, begun = 0, False
    of_segment: _SegmentDump | None = None
    for block in blocks(path, label, problems):
        for text in block.decode("utf-8", "replace").removesuffix("\n").split("\n"):
            number += 1
            dumping = _DUMPING.match(text)
            if text.startswith("Dumping "):
                begun = True
                if of_segment is not None:
                    yield of_segment
                # `Dumping` of an index or a snapshot ends the dump before it, and is not read.
                of_segment = None if dumping is None else _SegmentDump(dumping["tp"], int(dumping["base"]), number, [])
            elif of_segment is not None and ("baseOffset: " in text or text.startswith("offset: ")):
                of_segment.lines.append((number, text))
    if of_segment is not None:
        yield of_segment
    if not begun:
        do = "give the output with its first line: kafka-dump-log --files /data/x-0/00000000000000000000.log"
        problems.append(Problem(label, None, "a line `Dumping <path of a segment>`", "none", do, lost=1))
