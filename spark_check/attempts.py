"""What tasks write: whole or not at all, however often and on however many machines at a time a task runs.

`traces.files.replacing` is for one process at a time: its names are those of process ids, and machines share these.
"""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def attempt(path: Path) -> Iterator[Path]:
    """Where one attempt of a task writes what becomes `path`: no other, on whatever machine, has that name."""
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def tidy(folder: Path, names: str) -> None:
    """Remove what killed attempts left of files that are finished; `names` is a pattern of theirs."""
    for left in folder.glob(f".{names}.{'?' * 32}"):
        left.unlink(missing_ok=True)
