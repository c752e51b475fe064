"""Traces of a broker that others wrote from our documents alone: the right ones pass, each planted bug is found."""

from pathlib import Path

import pytest

from tidegauge.conformance.checking.check import check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.conformance.report.text import as_text

TRACES = Path(__file__).parents[1] / "independent"
FOUND = {
    "ack-after-truncation-by-deposed-leader": {"ACK-02", "DATA-03"},
    "ack-by-leader-again-after-truncation": {"DATA-03"},
    "append-under-min-isr": {"APPEND-03"},
    "equal-partition-epoch-applied": {"HW-02", "HW-03"},
    "former-leader-answers": {"FENCE-02"},
    "hw-checkpoint-above-hw": {"HW-10"},
    "hw-rises-over-a-clean-restart": {"LOAD-01"},
    "log-start-not-followed": {"LOG-03"},
    "older-alter-answer-taken": {"EPOCH-06"},
    "older-partition-epoch-applied": {"EPOCH-06"},
    "snapshot-with-another-hw": {"LOG-02"},
    "stale-proposal-accepted": {"ISR-04"},
}
"""The rules that each bug breaks."""


def failing(path: Path) -> set[str]:
    return {one.rule.id for one in check([path]).rules if one.verdict is Verdict.FAIL}


@pytest.mark.parametrize("path", sorted(TRACES.glob("right/*.ndjson")), ids=lambda path: path.stem)
def test_a_right_trace_is_not_rejected(path: Path) -> None:
    """And its report can be written."""
    assert failing(path) == set()
    assert as_text(check([path]))


@pytest.mark.parametrize("path", sorted(TRACES.glob("wrong/*.ndjson")), ids=lambda path: path.stem)
def test_a_planted_bug_is_found(path: Path) -> None:
    """By the rule that says what is wrong, with an explanation."""
    assert failing(path) == FOUND[path.stem]
    assert as_text(check([path]))
