"""Checkpoint files: what a broker that stopped in order left on its disk.

Their format is in `impl.storage.checkpoints`. The leader-epoch-checkpoint of a partition stands in its folder in a log
directory; in a capture it is called `<topic>-<partition>.leader-epoch-checkpoint`.
The recovery point is not the LEO, and a log start is written only above the first segment: both stay unknown otherwise.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tidegauge.impl.errors import CheckpointError
from tidegauge.impl.storage.checkpoints import (
    HIGH_WATERMARK_FILE,
    LEADER_EPOCH_FILE,
    LOG_START_FILE,
    parse_epochs,
    parse_offsets,
)
from tidegauge.traces.kafka.nodes.steps import Fields
from tidegauge.traces.problems import SHOWN, Problem

Parsed = TypeVar("Parsed")
_ENDLESS = re.compile(r"\d{19}")


def read_checkpoints(folder: Path, label: str) -> tuple[dict[str, tuple[str, Fields]], list[Problem]]:
    """Per topic-partition the file its values begin in, and the fields of an Observe."""
    found: dict[str, tuple[str, Fields]] = {}
    problems: list[Problem] = []
    for file, name in ((HIGH_WATERMARK_FILE, "hw"), (LOG_START_FILE, "log_start")):
        offsets = _parsed(folder / file, f"{label}{file}", parse_offsets, problems) if (folder / file).is_file() else None
        for tp, offset in offsets.items() if offsets is not None else ():
            found.setdefault(str(tp), (f"{label}{file}", {}))[1][name] = offset
    for path in sorted(folder.glob(f"*{LEADER_EPOCH_FILE}")) + sorted(folder.glob(f"*/{LEADER_EPOCH_FILE}")):
        if path.name == LEADER_EPOCH_FILE and path.parent == folder:
            continue
        file = f"{label}{path.relative_to(folder).as_posix()}"
        tp_name = path.parent.name if path.name == LEADER_EPOCH_FILE else path.name.removesuffix(f".{LEADER_EPOCH_FILE}")
        entries = _parsed(path, file, parse_epochs, problems)
        if entries is not None:
            found.setdefault(tp_name, (file, {}))[1]["epochs"] = [list(pair) for pair in entries.pairs()]
    return found, problems


def _parsed(path: Path, label: str, parse: Callable[[str, str], Parsed], problems: list[Problem]) -> Parsed | None:
    """What a file says; None, and a Problem, where it says nothing that can be relied on."""
    do = "copy it again, or leave it out"
    try:
        text = path.read_text(encoding="utf-8")
        if _ENDLESS.search(text) is None:
            return parse(text, label)
        problems.append(Problem(label, None, "offsets and epochs below 2^62", "a number of 19 digits", do))
    except (OSError, ValueError) as error:
        problems.append(Problem(label, None, "a checkpoint file", type(error).__name__, do))
    except CheckpointError as error:
        problems.append(Problem(label, error.line, error.expected, error.seen[:SHOWN], do))
    return None
