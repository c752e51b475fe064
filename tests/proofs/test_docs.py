"""What docs/proofs.md says is proved is what is proved."""

import re
from pathlib import Path as File

from tidegauge.spec.proofs.committed.invariant import COMMITTED_INVARIANT
from tidegauge.spec.proofs.eligible.invariant import ELECTION_INVARIANT
from tidegauge.spec.proofs.premises import all_groups
from validation.premises.eligible import CLEAN_LOSSES
from validation.rule_mutants import equivalents, mutants

PAGE = (File(__file__).parents[2] / "docs" / "proofs.md").read_text(encoding="utf-8")


def test_the_table_has_every_group_beside_its_method() -> None:
    """A row per method, its groups in the order of `tidegauge prove --list`, which has their claims."""
    table = PAGE.partition("| method | groups |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([a-z ]+) \| (.+?) \|$", table, re.MULTILINE)
    expected: dict[str, list[str]] = {}
    for group in all_groups().values():
        expected.setdefault(group.method, []).append(f"`{group.name}`")
    assert rows == [(method, " ".join(names)) for method, names in expected.items()]


def test_the_numbers_of_mutants_and_conjuncts_are_right() -> None:
    """The counts of mutants and conjuncts are what the text says; another number there is a page to update."""
    made, same = len(mutants()), len(equivalents())
    assert f"{made} changes of one expression" in PAGE
    assert f"{made - same} are refuted" in PAGE
    assert f"{same} are the same function" in PAGE
    assert f"invariant of {len(COMMITTED_INVARIANT)} conjuncts" in PAGE
    assert f"invariant of {len(ELECTION_INVARIANT)} conjuncts" in PAGE


def test_every_premise_of_an_election_has_its_row() -> None:
    """In the order of the table of runs, with the premise's own words."""
    for name, loss in CLEAN_LOSSES.items():
        assert f"| {loss.premise} | `{name}` |" in PAGE
