"""Small changes of the rules are noticed. TIDEGAUGE_MUTANTS=all tries every one; otherwise a sample.

Every exchanged comparison is tried in test_comparisons.py.
"""

import os
from collections import Counter

import pytest

from validation.rule_mutants import MutationReport, equivalents, killer, mutants

ALL = {mutant.key: mutant for mutant in mutants()}
EVERY = os.environ.get("TIDEGAUGE_MUTANTS") == "all"


KILLABLE = [key for key in ALL if key not in equivalents()]
SAMPLE = KILLABLE if EVERY else KILLABLE[::15]


def test_there_are_many_and_every_rule_has_some() -> None:
    """At least 300 mutants are made, and no rule is left out."""
    per_rule = Counter(mutant.function for mutant in ALL.values())
    assert sum(per_rule.values()) >= 300
    assert len(per_rule) == 31


def test_the_list_of_equivalents_names_mutants_with_a_reason() -> None:
    """Every row of rule_mutants.toml is a mutant that exists, and says why it is the same function."""
    for key, reason in equivalents().items():
        assert key in ALL, f"{key} is no mutant of impl/rules.py any more"
        assert len(reason.split()) >= 5, key


@pytest.mark.parametrize("key", SAMPLE)
def test_a_mutant_is_killed(key: str) -> None:
    """A mutant that is not listed as equivalent is refuted by a proof."""
    assert killer(ALL[key]) is not None, f"{key} survives every proof"


@pytest.mark.parametrize("key", list(equivalents())[:: 1 if EVERY else 12])
def test_a_listed_mutant_survives(key: str) -> None:
    """A row of rule_mutants.toml that a proof kills is wrong."""
    assert killer(ALL[key]) is None


def test_a_hole_fails_the_report() -> None:
    """A mutant nobody notices, a row that is wrong and a run without mutants are failures, and are named."""
    fine = MutationReport({"a": "lemma"}, {"b": "reason"}, (), ())
    assert fine.exit_code == 0
    assert fine.describe() == ["2 mutants: 1 killed, 1 equivalent, 0 unnoticed"]
    assert MutationReport({"a": "lemma"}, {}, ("c",), ()).exit_code == 1
    assert "UNNOTICED      c" in MutationReport({"a": "lemma"}, {}, ("c",), ()).describe()[1]
    assert MutationReport({"a": "lemma"}, {}, (), ("d",)).exit_code == 1
    assert MutationReport({}, {}, (), ()).exit_code == 1
