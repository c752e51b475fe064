"""A table with a column for each release, from what was recorded of it.

Rule of this file: the column of a transcript that is still the same is taken from the page.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from validation.releases.evaluate_transcripts import of_each_distinct

Column = Mapping[str, str | int | None]
"""The cells of a release's column by the row's name: a text, a count, or None where a count makes no sense."""

Columns = Mapping[str, Column]
"""The columns of a table, by the release."""


def rows(
    make_column: Callable[[Path], Column], places: Mapping[str, Path], kept_columns: Columns = MappingProxyType({})
) -> list[list[str]]:
    """Return the table: a column for each release that has a place, without rows whose cells are all empty.

    Columns in `kept_columns` are taken as they are; `make_column` makes the others from the transcript at their place.
    """
    places_to_read = [place for release, place in places.items() if release not in kept_columns]
    new = (column for _, column in of_each_distinct(make_column, places_to_read))
    columns = [kept_columns.get(release) or next(new) for release in places]
    names = dict.fromkeys(name for column in columns for name in column)
    # A finding that no release shows is left out: its row would be empty from end to end.
    all_rows = [(name, [column.get(name) for column in columns]) for name in names]
    counted = [[name, *("" if cell is None else str(cell) for cell in row)] for name, row in all_rows if any(row)]
    return [["", *places], ["---"] * (1 + len(places)), *counted]


def table(rows: list[list[str]]) -> str:
    """Format rows as Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def tables(page: str) -> list[Columns]:
    """Read the tables of a page back, as `table` writes them."""
    read: list[Columns] = []
    for lines in re.findall(r"(?:^\|.*\n?)+", page, flags=re.MULTILINE):
        heads, _, *counted = ([cell.strip() for cell in line[1:-1].split("|")] for line in lines.splitlines())
        names = [row[0] for row in counted]
        cells = ([row[at] or None for row in counted] for at in range(1, len(heads)))
        read.append({head: dict(zip(names, column, strict=True)) for head, column in zip(heads[1:], cells, strict=True)})
    return read
