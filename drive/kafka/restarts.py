"""The ends of a broker's process: which steps they are, and what its checkpoints then hold."""

from collections.abc import Mapping
from pathlib import Path

from tidegauge.drive.contract import Path as Steps

CRASH, STOP = "crash", "stop"
ENDS = (CRASH, STOP)

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
