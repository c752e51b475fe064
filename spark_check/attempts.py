"""What tasks write: whole or not at all, however often and on however many machines at a time a task runs.

`traces.files.replacing` is for one process at a time: its names are those of process ids, and machines share these.
"""

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidegauge.spark_check.place import AnyPath


@contextmanager
def attempt(path: AnyPath) -> Iterator[Path]:
    """Where one attempt of a task writes what becomes `path`: no other, on whatever machine, has that name."""
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
        copied = path.with_name(name)  # what is copied is seen before it is whole
        try:
            copied.put(Path(scratch) / path.name)
            copied.replace(path)
        finally:
            copied.unlink(missing_ok=True)


def tidy(folder: AnyPath, names: str) -> None:
    """Remove what killed attempts left of files that are finished; `names` is a pattern of theirs."""
    for left in folder.glob(f".{names}.{'?' * 32}"):
        left.unlink(missing_ok=True)
