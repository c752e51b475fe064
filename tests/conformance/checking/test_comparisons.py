"""What a failure says was expected is never what it says was seen, and reads as the check asks for it."""

import pytest

from tests.mutation.kernel_corpus import traces
from tidegauge.conformance.engine.judge import Failure, judge
from tidegauge.conformance.explain.replay import BOUNDED, MEMBERS, comparison_text
from tidegauge.conformance.judge.fields import COMPARED, RULE_IDS
from tidegauge.traces.columns import to_columns
from tidegauge.traces.schema import Config

THREE = Config(nodes=(1, 2, 3))
SETS = ("isr", "live", "elr", "adding", "removing", "elected leader", "pending proposal")


def test_no_failure_expects_what_it_has_seen() -> None:
    """Of every trace in the corpus of the judge's mutants."""
    judged = [(trace.config, judge(to_columns([trace], trace.config), trace.config)) for trace in traces()]
    failures = [(config, failure) for config, judgement in judged for failure in judgement.failures]
    assert len({failure.rule for _, failure in failures}) > 50
    same = [failure for config, failure in failures if len(set(comparison_text(failure, config))) == 1]
    assert not same


@pytest.mark.parametrize(
    ("rule", "compared", "expected", "actual", "seen", "wanted"),
    [
        ("ACK-01", "hw", 2, 1, "1", "2 or more"),
        ("READ-01", "bound", 1, 2, "2", "1 or less"),
        ("APPEND-01", "leo", 2, 1, "1", "2"),
        ("CTRL-01", "elected leader", 0b011, 0b100, "{3}", "one of {1, 2}"),
        ("CTRL-01", "elected leader", 0b001, 0, "none", "one of {1}"),
        ("CTRL-04", "isr", 0b010, 0b011, "{1, 2}", "{2}: n1 is fenced, or not live"),
        ("ISR-03", "pending proposal", 0, 0b011, "{1, 2}", "none"),
        ("FETCH-03", "peer", None, 1, "node 2", "another broker"),
        ("FETCH-04", "in flight", 1, 0, "nothing", "a request"),
        ("FETCH-05", "response", 4, 3, "records", "a diverging response"),
    ],
)
def test_a_comparison_in_words(rule: str, compared: str, expected: int | None, actual: int, seen: str, wanted: str) -> None:
    assert comparison_text(Failure(0, 0, rule, compared, expected, actual), THREE) == (seen, wanted)


def test_only_comparisons_that_exist_have_words() -> None:
    keys = {*BOUNDED, *MEMBERS}
    assert {rule for rule, _ in keys} <= set(RULE_IDS)
    assert {compared for _, compared in keys} <= set(COMPARED)
    assert {compared for _, compared in MEMBERS} <= set(SETS)
