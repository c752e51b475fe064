"""Checkpoint files: what a broker that stopped in order left on its disk.

Format (CheckpointFile): a version line `0`, a line with the number of entries, then one entry a line. Files of a log
directory name `topic partition offset`, `leader-epoch-checkpoint` of a partition `epoch startOffset`. In a capture the
latter is called `<topic>-<partition>.leader-epoch-checkpoint`; in a log directory it stands in the partition's folder.
The recovery point is not the LEO, and a log start is written only above the first segment: both stay unknown otherwise.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tidegauge.traces.kafka.steps import Fields
from tidegauge.traces.problems import Problem, shown

HW_FILE, LOG_START_FILE, EPOCHS_FILE = (
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "leader-epoch-checkpoint",
)

Entry = TypeVar("Entry")


def read_checkpoints(folder: Path, label: str) -> tuple[dict[str, tuple[str, Fields]], list[Problem]]:
    """Per topic-partition the file its values begin in, and the fields of an Observe."""
    found: dict[str, tuple[str, Fields]] = {}
    problems: list[Problem] = []
    for file, name in ((HW_FILE, "hw"), (LOG_START_FILE, "log_start")):
        if (folder / file).is_file():
            for topic, partition, offset in _entries(folder / file, f"{label}{file}", _offset, problems):
                found.setdefault(f"{topic}-{partition}", (f"{label}{file}", {}))[1][name] = offset
    for path in sorted(folder.glob(f"*{EPOCHS_FILE}")) + sorted(folder.glob(f"*/{EPOCHS_FILE}")):
        name = path.relative_to(folder).as_posix()
        tp = path.parent.name if path.name == EPOCHS_FILE else path.name.removesuffix(f".{EPOCHS_FILE}")
        if path.name == EPOCHS_FILE and path.parent == folder:
            continue
        epochs = _entries(path, f"{label}{name}", _epoch, problems)
        found.setdefault(tp, (f"{label}{name}", {}))[1]["epochs"] = epochs
    return found, problems


def _offset(parts: list[str]) -> tuple[str, int, int]:
    topic, partition, offset = parts
    return topic, int(partition), int(offset)


def _epoch(parts: list[str]) -> list[int]:
    epoch, start = parts
    return [int(epoch), int(start)]


def _entries(path: Path, label: str, entry: Callable[[list[str]], Entry], problems: list[Problem]) -> list[Entry]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(Problem(label, None, "a checkpoint file", type(error).__name__, "copy it again, or leave it out"))
        return []
    if len(lines) < 2 or lines[0] != "0" or not lines[1].isdigit():
        seen = shown("\n".join(lines[:2]))
        problems.append(Problem(label, 1, "version 0 and a number of entries", seen, "copy it again, or leave it out"))
        return []
    entries: list[Entry] = []
    for number, line in enumerate(lines[2 : 2 + int(lines[1])], 3):
        try:
            entries.append(entry(line.split(" ")))
        except ValueError:
            problems.append(Problem(label, number, "an entry", shown(line), "copy the file again, or leave it out"))
            return []
    if len(entries) != int(lines[1]):
        problems.append(
            Problem(label, None, f"{lines[1]} entries", str(len(entries)), "copy the file again, or leave it out")
        )
        return []
    return entries
