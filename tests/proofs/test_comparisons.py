"""Every comparison of every rule, exchanged by hand: a proof fails with a counter-model, or the two are proved the same."""

import ast
import inspect
import io
import time
import tokenize
from collections import Counter
from typing import Any

import pytest
import z3

from tidegauge.impl import rules
from tidegauge.spec.proofs.engine.paths import ProofPath, explore
from tidegauge.spec.proofs.engine.symbolic import symbolic_rules, term
from tidegauge.spec.proofs.prove import namespace_of
from validation.rule_mutants import SWAPS, equivalents, killer, mutants, refuter

MUTANTS = {mutant.key: mutant for mutant in mutants()}
SIGNS = {"<", "<=", ">", ">=", "==", "!="}
LIMIT = 60.0
"""Seconds in which an exchanged comparison must be refuted."""


def exchanged() -> list[str]:
    """For every comparison in the text its twin's key: `<` and `<=`, `>` and `>=`, `==` and `!=` exchanged."""
    keys = []
    for function in ast.parse(inspect.getsource(rules)).body:
        seen: Counter[str] = Counter()
        for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
            if isinstance(node, ast.Compare):
                assert len(node.ops) == 1, f"{function.name}: a chain of comparisons has no single twin"
                twin = ast.Compare(node.left, [SWAPS[type(node.ops[0])][0]()], node.comparators)
                key = f"{function.name}: {ast.unparse(node)} -> {ast.unparse(twin)}"
                seen[key] += 1
                keys.append(key if seen[key] == 1 else f"{key} (no. {seen[key]})")
    return keys


TWINS = exchanged()
SAME = [key for key in TWINS if key in equivalents()]


def test_every_comparison_in_the_text_has_its_twin() -> None:
    """As many twins as there are comparison signs in the text of the rules, each a mutant that can be tried."""
    tokens = tokenize.generate_tokens(io.StringIO(inspect.getsource(rules)).readline)
    signs = [token.string for token in tokens if token.type == tokenize.OP and token.string in SIGNS]
    assert len(TWINS) == len(set(TWINS)) == len(signs) >= 40
    assert set(TWINS) <= set(MUTANTS)


@pytest.mark.parametrize("key", [key for key in TWINS if key not in SAME])
def test_an_exchanged_comparison_is_refuted_within_a_minute(key: str) -> None:
    """The proof that fails shows the values for which the rule is wrong."""
    started = time.monotonic()
    found = refuter(MUTANTS[key])
    assert found is not None, f"{key} survives every proof"
    _, model = found
    assert model.lines or "terminates" in model.goal or "index in range" in model.goal, key
    assert time.monotonic() - started < LIMIT


def symbols(path: ProofPath, rule: str, size: int) -> list[Any]:
    """Any arguments: unbounded numbers, sequences of that size."""
    found: dict[str, Any] = {}
    for name, parameter in inspect.signature(getattr(rules, rule)).parameters.items():
        if parameter.annotation is int:
            found[name] = path.integer(name)
        elif parameter.annotation is bool:
            found[name] = path.boolean(name)
        elif name == "counted":
            found[name] = [path.boolean(f"{name}{i}") for i in range(size)]
        else:
            found[name] = path.integers(name, size)
    if {"log_start", "log_end"} <= found.keys():
        path.assume(found["log_start"] <= found["log_end"])
    return list(found.values())


def both(key: str, size: int) -> Any:
    """Rule and twin on the same arguments."""
    twin = symbolic_rules(namespace_of(MUTANTS[key].source))[MUTANTS[key].function]

    def lemma(path: ProofPath) -> None:
        arguments = symbols(path, MUTANTS[key].function, size)
        one = path.call(MUTANTS[key].function, *arguments)
        other = term(twin(*[path.lift(a) for a in arguments]))
        path.goal(
            "the same value", z3.simplify(term(one) == other) if z3.is_expr(one) or z3.is_expr(other) else one == other
        )

    return lemma


@pytest.mark.parametrize("size", [0, 1, 2, 3])
@pytest.mark.parametrize("key", SAME)
def test_a_comparison_that_may_be_exchanged_is_proved_the_same(key: str, size: int) -> None:
    """Where the two differ nothing does: on all numbers, and on a log whose start is not above its end."""
    tally = explore(both(key, size), vars(rules))
    assert list(tally.proved) == ["the same value"]
    assert not tally.refuted
    assert killer(MUTANTS[key]) is None


def test_what_is_not_the_same_is_not_proved_the_same() -> None:
    """The comparison of rule and twin can fail."""
    tally = explore(both("may_join_isr: leo >= hw -> leo > hw", 0), vars(rules))
    assert "the same value" in tally.refuted
