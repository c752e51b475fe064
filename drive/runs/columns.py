"""A table with a column for each release, from what was recorded of it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tidegauge.drive.runs.deeds import of_each

Column = Mapping[str, str | int | None]
"""What stands in a release's column, by the row's name: a text, a count, or nothing where a count has no sense."""


def rows(heads: Sequence[str], of: Callable[[Path], Column], places: Sequence[Path]) -> list[list[str]]:
    """The table: a column under each head, without the rows that count nothing for anybody."""
    columns = [column for _, column in of_each(of, places)]
    names = dict.fromkeys(name for column in columns for name in column)
    found = [(name, [column.get(name) for column in columns]) for name in names]
    counted = [[name, *("" if cell is None else str(cell) for cell in row)] for name, row in found if any(row)]
    return [["", *heads], ["---"] * (1 + len(heads)), *counted]
