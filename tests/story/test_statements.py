"""Each row of the table is matched by a line as Kafka prints it; whatever stands around it."""

import json
from pathlib import Path

import pytest

from tests.story.conftest import Telling
from tests.story.test_excerpts import texts_of
from tidegauge.conformance.report.json_report import schema_text
from tidegauge.story.statements import STATEMENTS, Statement, statements_in

UUID = "HhPpDbsLQCqkVYGkSVHmWA"

LINES = (Path(__file__).parent / "lines.txt").read_text(encoding="utf-8").splitlines()
"""What Kafka prints for the rows that no case of wild.tar.xz has a line of, from its sources."""


@pytest.fixture(scope="module")
def seen(wild: Path) -> set[Statement]:
    """The rows that a line matched."""
    lines = [*LINES, *(line for lines in texts_of(wild).values() for line in lines)]
    return {row for line in lines for row, _, _ in statements_in(line.replace('\\"', '"'))}


def test_every_row_is_matched_by_a_line(seen: set[Statement]) -> None:
    assert [(row.kind, row.text) for row in STATEMENTS if row not in seen] == []


@pytest.mark.parametrize("line", LINES)
def test_what_stands_around_a_line_changes_nothing(line: str) -> None:
    alone = [(row, partition, fields) for row, partition, fields in statements_in(line)]
    assert len(alone) == 1
    around = f'kafka-1 | {{"log": "[2026-01-01 00:00:00,000] WARN [main] {line}", "stream": "stdout"}}'
    assert [(row, partition) for row, partition, _ in statements_in(around)] == [
        (row, partition) for row, partition, _ in alone
    ]


def test_the_partition_is_the_one_that_the_line_is_about() -> None:
    said = [next(iter(statements_in(line)))[1] for line in LINES]
    assert set(said) <= {"x-0", None}
    assert said.count("x-0") == 90


def test_a_directory_that_is_deleted_or_moved_is_not_the_partition() -> None:
    load = "Completed load of Log(dir=/data/1/{}, topicId={}, topic=x, highWatermark=0, logStartOffset=0, logEndOffset=9)"
    assert list(statements_in(load.format(f"x-0.{'a' * 32}-delete", UUID))) == []
    assert list(statements_in(load.format(f"x-0.{'a' * 32}-future", UUID))) == []
    assert [partition for _, partition, _ in statements_in(load.format("x-0", UUID))] == ["x-0"]


def test_every_kind_of_entry_is_in_the_schema(telling: Telling) -> None:
    kinds = {entry.kind for line in LINES for entry in telling(f"[2026-01-01 00:00:00,000] WARN {line}\n").entries}
    assert len(kinds) > 30
    fields = json.loads(schema_text())["properties"]["story"]["items"]["properties"]
    assert [kind for kind in kinds if kind not in fields["kind"]["enum"]] == []


def test_a_line_of_no_row_says_nothing() -> None:
    assert list(statements_in("[2026-01-01 00:00:00,000] INFO Truncating nothing at all (kafka.log.Log)")) == []
