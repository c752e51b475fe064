"""The forking execution itself: no path missed, no impossible path counted, every misbehaviour a failed goal."""

from typing import Any

import pytest
import z3

from tidegauge.spec.proofs.engine.paths import ProofPath, explore


def namespace(text: str) -> dict[str, Any]:
    """Rules from a text."""
    made: dict[str, Any] = {}
    exec(text, made)
    return made


THREE_WAYS = "def sign(x):\n    if x < 0:\n        return -1\n    if x == 0:\n        return 0\n    return 1\n"


def test_every_path_is_taken_once() -> None:
    """Three ways through a rule are three paths."""

    def lemma(path: ProofPath) -> None:
        x = path.integer("x")
        path.goal("sign", path.call("sign", x) * x >= 0)

    tally = explore(lemma, namespace(THREE_WAYS))
    assert tally.paths == 3
    assert tally.proved == {"sign": 3}


def test_an_assumption_prunes_paths() -> None:
    """A path the premises exclude is not walked."""

    def lemma(path: ProofPath) -> None:
        path.goal("one", z3.IntVal(1) == path.call("sign", path.integer("x", low=5)))

    assert explore(lemma, namespace(THREE_WAYS)).paths == 1


def test_contradictory_premises_prove_nothing() -> None:
    """With premises nothing satisfies no goal counts as proved."""

    def lemma(path: ProofPath) -> None:
        x = path.integer("x", low=1)
        path.assume(x < 0)
        path.goal("anything", z3.BoolVal(False))

    tally = explore(lemma, {})
    assert tally.paths == 0
    assert not tally.proved
    assert not tally.refuted


def test_a_counter_model_has_small_numbers() -> None:
    """Of all models the one with the smallest numbers tried is shown."""

    def lemma(path: ProofPath) -> None:
        x = path.integer("x", low=0)
        path.goal("below two", x < 2)

    assert explore(lemma, {}).refuted["below two"].lines == ["x: 2"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("def rule(v, x):\n    return v[len(v)]\n", "every index in range"),
        ("def rule(v, x):\n    return v[-1]\n", "every index in range"),
        ("def rule(v, x):\n    while v[0] == v[0]:\n        x += 1\n    return x\n", "terminates"),
        ("def rule(v, x):\n    return v.x\n", "runs: AttributeError"),
        ("def rule(v, x):\n    return v[x]\n", "runs: TypeError"),
    ],
)
def test_misbehaviour_is_a_failed_goal(text: str, word: str) -> None:
    """An index outside, a loop without end and an exception refute the lemma; none of them is lost."""

    def lemma(path: ProofPath) -> None:
        path.call("rule", path.integers("v", 2), path.integer("x"))

    tally = explore(lemma, namespace(text))
    assert any(goal.startswith(word) for goal in tally.refuted), tally.refuted


def test_a_dropped_premise_is_not_assumed() -> None:
    """Dropping a premise by name is the only difference between the two runs."""

    def lemma(path: ProofPath) -> None:
        x = path.integer("x")
        path.assume(x > 0, "x is positive")
        path.goal("not zero", x != 0)

    assert not explore(lemma, {}).refuted
    assert explore(lemma, {}, frozenset({"x is positive"})).refuted
    assert explore(lemma, {}).premises == {"x is positive"}
