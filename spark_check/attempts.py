"""Atomic writes of tasks, which may run several times and on several machines at once.

`traces.files.replacing` is for one process at a time: its names are those of process ids, and machines share these.
"""

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegauge.spark_check.place import AnyPath


@contextmanager
def atomic_write(path: AnyPath) -> Iterator[Path]:
    """Provide a file of this machine to write to; afterwards it becomes `path`. No other attempt has its name."""
    name = f".{path.name}.{uuid.uuid4().hex}"
    if isinstance(path, Path):
        unfinished = path.with_name(name)
        try:
            yield unfinished
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        return
    with tempfile.TemporaryDirectory(prefix="tidegauge-attempt-") as scratch:
        yield Path(scratch) / path.name
        # A copy is visible before it is complete, so it too gets a name of its own first.
        copied = path.with_name(name)
        try:
            copied.put(Path(scratch) / path.name)
            copied.replace(path)
        finally:
            copied.unlink(missing_ok=True)


def remove_leftovers(folder: AnyPath, names: str) -> None:
    """Remove what killed attempts left of finished files; `names` is a pattern of the files' names."""
    for left in folder.glob(f".{names}.{'?' * 32}"):
        left.unlink(missing_ok=True)
