"""Known bugs: each is played or it is said why not, the expected matrix is about these, and what it says still happens."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tidegauge.cli.main import main
from tidegauge.conformance.judge.rulebook import known_bugs
from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.known_bugs import BUGS, WRONG_STEPS, bug_named
from tidegauge.drive.broker.reference import reference, reference_with
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.kill_matrix import (
    CHUNK,
    ELSEWHERE,
    TO_EXERCISE,
    WALKS,
    BugRow,
    Caught,
    Matrix,
    build_failures,
    differences,
    expected,
    kill,
    of_json,
    text_of,
    to_json,
)
from tidegauge.drive.paths.graphs import cover_of
from tidegauge.drive.paths.walks import walk
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.report import explanations
from tidegauge.drive.runner.run import shrunk
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.util.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]
ROWS = {row.name: row for row in expected().rows}
MOST_STEPS = 12


def test_every_bug_of_the_catalog_is_played_or_resembled_or_it_says_why_not() -> None:
    """What is played needs no excuse; a slip may resemble what cannot be."""
    resembled = {issue for fault in FAULTS.values() for issue in re.findall(r"KAFKA-\d+", fault.resembles)}
    for name, bug in known_bugs().items():
        assert bool(bug.beyond) != (name in BUGS) or name in resembled, name
        assert not (bug.beyond and name in BUGS), name
    assert set(known_bugs()) >= set(WRONG_STEPS)
    assert resembled <= set(known_bugs())


def test_an_unknown_bug_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"expected one of no-divergence-check, .*KAFKA-769.* seen 'KAFKA-0'"):
        bug_named("KAFKA-0")
    assert main(["bugs", "KAFKA-0"]) == 2


def test_the_kept_matrix_is_about_the_bugs_there_are_and_nothing_survives() -> None:
    """Else: ./run bugs --rewrite, and read the difference."""
    assert list(ROWS) == list(BUGS)
    assert build_failures(expected(), TO_EXERCISE, ELSEWHERE) == []
    assert of_json(to_json(expected())) == expected()


def test_the_page_has_the_number_of_bugs_and_of_steps() -> None:
    page = " ".join((ROOT / "docs" / "drive.md").read_text(encoding="utf-8").split())
    steps = [min(found.steps for found in (row.cover, row.walks) if found) for row in ROWS.values()]
    assert f"All {len(ROWS)} bugs are found in {MOST_STEPS} steps or less" in page
    assert max(steps) <= MOST_STEPS


def test_what_is_exercised_elsewhere_is_named_there() -> None:
    for name, place in ELSEWHERE.items():
        assert name in (ROOT / place).read_text(encoding="utf-8"), name


def test_each_bug_is_shown_by_a_driven_broker_in_a_few_steps() -> None:
    for row in ROWS.values():
        caught = [found for found in (row.cover, row.walks) if found is not None]
        assert caught, row.name
        assert min(found.steps for found in caught) <= MOST_STEPS, row.name


def _orders(row: BugRow) -> Iterator[BrokerCase]:
    """Those that the expected matrix says it is seen on."""
    right = BUGS[row.name].right
    if row.cover is not None:
        yield from cover_of(row.cover.where, right).cases
        return
    assert row.walks is not None
    first = int(row.walks.where.split()[2])
    yield from (walk(expected().seed, number, right) for number in range(first, first + CHUNK))


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.cover is None or row.cover.where != "two"])
def test_a_bug_is_found_where_the_matrix_says_shrunk_and_explains_itself(name: str) -> None:
    """In this process; ./run bugs has each behind a program's stdin and stdout."""
    bug, row, node = BUGS[name], ROWS[name], ReferenceNode(reference_with(BUGS[name]))
    cases = list(_orders(row))
    found = next(
        found
        for at in range(0, len(cases), CHUNK)
        if (found := play(node, cases[at : at + CHUNK], reference(bug.right)).differences)
    )
    # The limit is of wall time: on a busy machine it must not decide.
    shortest = shrunk(node, min(found, key=lambda difference: difference.at), reference(bug.right), seconds=600)
    assert shortest is not None
    assert shortest.at == (row.cover or row.walks or Caught("", 0)).steps
    named_by = {bugs[0].name for bugs in explanations(shortest, reference(bug.right), EVERYTHING.reports)}
    assert name in named_by or {found.partition("=")[0] for found in named_by} & set(bug.switches)


@pytest.mark.parametrize("name", ["KAFKA-2143"])
def test_a_row_is_made_as_it_is_kept_behind_a_program(name: str) -> None:
    """A wrong step: the judge has no traces of it, cover and walks see it."""
    count: Counter[tuple[str, str]] = Counter()
    found = kill(BUGS[name], expected().seed, count)
    assert found.row == ROWS[name]
    assert found.judged == frozenset()
    assert count["fetch_decision", "read"]


def test_a_bug_that_no_column_catches_fails() -> None:
    """So does a rule that nothing exercises, and an excuse that is stale."""
    silent = BugRow("silent", "no rule fails")
    seen = replace(silent, name="seen", walks=Caught("from walk 0 on", 3))
    matrix = Matrix(1, (silent, seen), frozenset({"HW-01"}), frozenset({"T1"}))
    assert build_failures(
        matrix, {"HW-01": "a", "HW-02": "b", "T1": "c", "T2": "d"}, {"T2": "elsewhere", "T1": "elsewhere"}
    ) == [
        "silent survives: no column catches it",
        "HW-02 is exercised by nothing; b",
        "T1 is exercised here after all: take it out of ELSEWHERE",
    ]
    assert "judge: no rule fails | cover: not seen | walks: from walk 0 on, 3 steps" in text_of(seen, "says")


def test_what_is_not_as_it_was_kept_is_told() -> None:
    before = Matrix(1, (BugRow("a", "caught", ("HW-01",)), BugRow("b", "caught")), frozenset({"HW-01"}))
    after = Matrix(1, (BugRow("a", "caught"), BugRow("c", "caught")), frozenset({"HW-02"}))
    lines = differences(before, after)
    assert [line.partition(":")[0] for line in lines] == ["a", "c", "b", "judged"]
    assert lines[-1] == "judged: expected HW-01 more and HW-02 less"
    assert differences(before, before) == []


def test_the_walks_of_the_matrix_are_whole_chunks() -> None:
    assert WALKS % CHUNK == 0
