"""A table with a column for each release, from what was recorded of it.

Rule of this file: a column that a page has of a transcript that is still the same is taken from there.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from validation.releases.distinct import of_each_distinct

Column = Mapping[str, str | int | None]
"""What stands in a release's column, by the row's name: a text, a count, or nothing where a count has no sense."""

Columns = Mapping[str, Column]
"""The columns of a table, by the release."""


def rows(
    of: Callable[[Path], Column], places: Mapping[str, Path], standing: Columns = MappingProxyType({})
) -> list[list[str]]:
    """The table: a column for each release that has a place, without the rows that count nothing for anybody."""
    made = [place for release, place in places.items() if release not in standing]
    new = (column for _, column in of_each_distinct(of, made))
    columns = [standing.get(release) or next(new) for release in places]
    names = dict.fromkeys(name for column in columns for name in column)
    found = [(name, [column.get(name) for column in columns]) for name in names]
    counted = [[name, *("" if cell is None else str(cell) for cell in row)] for name, row in found if any(row)]
    return [["", *places], ["---"] * (1 + len(places)), *counted]


def table(found: list[list[str]]) -> str:
    """As Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in found)


def tables(page: str) -> list[Columns]:
    """The tables of a page, as `table` writes them."""
    found: list[Columns] = []
    for lines in re.findall(r"(?:^\|.*\n?)+", page, flags=re.MULTILINE):
        heads, _, *counted = ([cell.strip() for cell in line[1:-1].split("|")] for line in lines.splitlines())
        names = [row[0] for row in counted]
        cells = ([row[at] or None for row in counted] for at in range(1, len(heads)))
        found.append({head: dict(zip(names, column, strict=True)) for head, column in zip(heads[1:], cells, strict=True)})
    return found
