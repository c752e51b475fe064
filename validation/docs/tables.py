"""Writes a schema for others to read: as a JSON Schema file, and as tables between two marks of a page."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    return "\n".join((lines[0], "|---" * len(head) + "|", *lines[1:]))


def code(names: Iterable[str]) -> str:
    """Format names as code, in one cell."""
    return " ".join(f"`{name}`" for name in names)


def page_with(tables: Mapping[str, str], maker: str, page: str) -> str:
    """Return the page with each table between its marks replaced; `maker` is the module that the marks name."""
    for name, made in tables.items():
        begin, end = f"<!-- {name}: made by {maker} -->", f"<!-- end of {name} -->"
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n{made}\n{end}{after}"
    return page


def schema_text(schema: Mapping[str, Any]) -> str:
    """Return a JSON Schema as the text of its file."""
    return json.dumps(schema, indent=1) + "\n"


def write_both(schema_file: Path, schema: Mapping[str, Any], page: Path, tables: Mapping[str, str], maker: str) -> None:
    """Write the schema, and the tables into the page."""
    schema_file.write_text(schema_text(schema), encoding="utf-8")
    page.write_text(page_with(tables, maker, page.read_text(encoding="utf-8")), encoding="utf-8")
