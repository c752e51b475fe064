"""docs/judge.md says what the catalog says."""

from pathlib import Path

from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.conformance.engine.judge import CAPABILITIES, REPORTS
from tidegauge.conformance.judge.rulebook import rulebook
from validation.broken_promises import let_pass_table

PAGE = (Path(__file__).parents[2] / "docs" / "judge.md").read_text(encoding="utf-8")


def test_the_rules_table_is_the_catalog() -> None:
    """Row by row."""
    head = ("| rule | what it says | Kafka |", "|---|---|---|")
    rows = (f"| {r.id} | {r.sentence} | `{r.kafka}` |" for r in rulebook().values())
    assert "\n".join((*head, *rows)) in PAGE


def test_every_verdict_and_every_capability_is_explained() -> None:
    """And the key under which a source declares what it reports."""
    assert all(verdict.value in PAGE for verdict in Verdict)
    assert f'"{REPORTS}"' in PAGE
    assert all(any(f"`{event}`" in PAGE for event in events) for _, events in CAPABILITIES)


def test_the_promises_that_the_judge_lets_pass_are_all_there() -> None:
    assert let_pass_table() in PAGE
