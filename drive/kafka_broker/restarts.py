"""The ends of a broker's process: which steps they are, what its checkpoints then hold, and how paths share them.

Rules of this file

1. A process ends with all its partitions. So a path begins where the ends that come are those that it has, and many paths
   go through the same ends side by side.
2. Paths without an end come last: what waits for an end costs who plays beside it, for its proposals are sent again in each
   AlterPartition request.
3. A process that has read no metadata has changed nothing on disk: to end it again changes the checkpoint at most.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from tidegauge.drive.broker.contract import CRASH, ENDS
from tidegauge.drive.contract import Path as Steps

HIGH_WATERMARKS, LOG_STARTS = "replication-offset-checkpoint", "log-start-offset-checkpoint"


def checkpointed(path: Steps, at: int) -> int | None:
    """The high watermark that the checkpoint holds after the ends of the process that begin at a step; None: what the
    process has written itself, when it stopped."""
    found = None
    for step in path[at:]:
        if step[0] not in ENDS:
            break
        found = step[1] if step[0] == CRASH else found
    return found


def write_checkpoint(data: Path, name: str, offsets: Mapping[str, int]) -> None:
    """Set offsets of some topics in a checkpoint, leave those of others. OffsetCheckpointFile: version, count, lines."""
    place = data / name
    lines = place.read_text(encoding="utf-8").splitlines()[2:] if place.is_file() else []
    found = {topic: int(offset) for topic, partition, offset in map(str.split, lines) if partition == "0"}
    found |= offsets
    body = "".join(f"{topic} 0 {offset}\n" for topic, offset in found.items())
    place.write_text(f"0\n{len(found)}\n{body}", encoding="utf-8")


def ends_of(path: Steps) -> str:
    """The kinds of the ends of the process in a path, a letter each. What ends it again before it has read metadata does
    not count: rule 3 of this file."""
    kinds, before = "", ""
    for step in path:
        if step[0] in ENDS and before not in ENDS:
            kinds += step[0][0]
        before = step[0]
    return kinds


def in_one_row(rows: Iterable[str]) -> str:
    """A short row of ends that has every given row in it, so that paths share the ends of one process. Greedy: the two that
    overlap most are joined first."""
    left = [row for row in dict.fromkeys(rows) if row]
    left = [row for row in left if not any(row in other for other in left if other != row)]
    while len(left) > 1:
        overlap, one, other = max(
            ((_overlap(one, other), one, other) for one in left for other in left if one != other), key=lambda pair: pair[0]
        )
        joined = one + other[overlap:]
        left = [row for row in left if row not in joined] + [joined]
    return left[0] if left else ""


def begins_at(row: str, ends: str) -> int:
    """Before which of the ends in the row a path with these ends begins; behind all of them without one."""
    return row.find(ends) if ends else len(row)


def _overlap(one: str, other: str) -> int:
    """How much of the end of one is the beginning of the other."""
    return next(size for size in range(min(len(one), len(other)), -1, -1) if one.endswith(other[:size]))
