"""The table of releases: a column for each, made of its transcript or taken from the page that has it."""

from pathlib import Path

import pytest

from tests.validation.test_distinct_transcripts import transcript
from validation.releases import columns
from validation.releases.columns import rows, table, tables

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kafka-releases.md"
"""That of this checkout: an installed package has no docs."""

COUNTED = {"paths": "2", "steps": "1,000", "seldom": 0, "often": 3, "no sense": None}
TABLE = """\
|  | 4.2.1 | 4.2.2 |
| --- | --- | --- |
| paths | 2 | 2 |
| steps | 1,000 | 1,000 |
| often | 3 | 3 |"""


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """Transcripts of two releases that did different things."""
    releases = ("4.2.1", "4.2.2")
    return {one: transcript(tmp_path / one, release=one, recorded=f'["{one}"]') for one in releases}


def counted(_place: Path) -> columns.Column:
    return COUNTED


def other(_place: Path) -> columns.Column:
    return {"paths": "9", "seldom": 1}


def test_a_row_that_counts_nothing_for_anybody_is_left_out(places: dict[str, Path]) -> None:
    assert table(rows(counted, places)) == TABLE


def test_a_column_that_stands_is_not_made(places: dict[str, Path]) -> None:
    """What is new of another release stands beside it."""
    (known,) = tables(f"some words\n\n{TABLE}\n\nand more")
    assert table(rows(other, places, known)) == TABLE
    first = {"4.2.1": known["4.2.1"]}
    assert rows(other, places, first) == [
        ["", "4.2.1", "4.2.2"],
        ["---"] * 3,
        ["paths", "2", "9"],
        ["steps", "1,000", ""],
        ["often", "3", ""],
        ["seldom", "", "1"],
    ]


def test_the_page_is_read_as_it_was_written() -> None:
    """Both of its tables."""
    page = PAGE.read_text(encoding="utf-8")
    found = tables(page)
    assert len(found) == 2
    assert all(table(rows(counted, dict.fromkeys(one, Path()), one)) in page for one in found)
