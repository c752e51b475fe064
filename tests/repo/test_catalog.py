"""catalog.toml is the place where names are defined: every copy of a name is held against it."""

import importlib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tidegauge.conformance.kernel.rule_ids import RULE_IDS
from tidegauge.impl import rules
from tidegauge.impl.explored.invariants import INVARIANTS
from tidegauge.impl.profiles import Rules
from tidegauge.spec.checker.tlc import modules
from tidegauge.traces.schema import EVENTS

CATALOG: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    (Path(__file__).parents[2] / "catalog.toml").read_text(encoding="utf-8")
)
ROWS = [(kind, name, row) for kind, rows in CATALOG.items() if kind != "bug" for name, row in rows.items()]
IDS = [f"{kind}.{name}" for kind, name, _ in ROWS]


@pytest.mark.parametrize(("kind", "name", "row"), ROWS, ids=IDS)
def test_a_row_says_a_sentence_and_points_somewhere(kind: str, name: str, row: dict[str, Any]) -> None:
    """A sentence with a full stop, and a function, an operator or a class of Kafka."""
    assert row["sentence"].endswith(".")
    assert row.keys() & {"impl", "tla", "kafka"}


@pytest.mark.parametrize(("kind", "name", "row"), ROWS, ids=IDS)
def test_the_function_exists(kind: str, name: str, row: dict[str, Any]) -> None:
    """`impl` names a module and a function in it."""
    if "impl" in row:
        module, _, function = row["impl"].partition(":")
        assert callable(getattr(importlib.import_module(f"tidegauge.{module}"), function))


@pytest.mark.parametrize(("kind", "name", "row"), ROWS, ids=IDS)
def test_the_operator_exists(kind: str, name: str, row: dict[str, Any]) -> None:
    """`tla` names a module and an operator defined in it."""
    if "tla" in row:
        module, _, operator = row["tla"].partition("!")
        assert re.search(rf"^{operator}(\(.*\))? ==", modules()[f"{module}.tla"], flags=re.MULTILINE)


def test_actions_are_the_steps_of_the_spec() -> None:
    """Every disjunct of Next, and every step of clients, has a row, in each module that has one, and no row is another."""
    disjuncts: set[str] = set()
    for module, begin, end in (
        ("Replication", "Next", "Spec"),
        ("AlterPartition", "Next", "Spec"),
        ("ELR", "ElrNext", "ElrSpec"),
        ("LogStartMovement", "MoveNext", "MoveSpec"),
        ("Acks", "ClientStep", "AcksNext"),
    ):
        text = modules()[f"{module}.tla"]
        following = text[text.index(f"\n{begin} ==") : text.index(f"\n{end} ==")]
        disjuncts |= set(re.findall(r"(?:: |\\/ )([A-Z]\w+)(?:\(|$)", following, flags=re.MULTILINE))
    assert disjuncts == set(CATALOG["action"])


def test_invariants_are_those_of_the_implementation_and_the_spec() -> None:
    """What impl.explored.invariants checks has a row that names it."""
    assert set(INVARIANTS) == {name for name, row in CATALOG["invariant"].items() if "impl" in row}


def test_rules_are_those_the_judge_checks() -> None:
    """One row per rule id, in any order."""
    assert set(CATALOG["rule"]) == set(RULE_IDS)


def test_every_bug_a_rule_names_is_told_in_a_sentence() -> None:
    """A report can say what the bug is."""
    named = {bug for rule in CATALOG["rule"].values() for bug in rule.get("bugs", ())}
    assert named <= set(CATALOG["bug"])


def test_decisions_of_the_implementation_are_rules() -> None:
    """What a core runs with are functions of impl.rules, under the same names."""
    assert all(getattr(rules, name) is getattr(Rules(), name) for name in Rules._fields)


def test_actions_that_leave_a_trace_are_events() -> None:
    """An action of a broker has an event of the same name, but for those told as others."""
    reported_otherwise = {"LoseResponse", "Restart", "FenceBroker", "UnfenceBroker", "ElectPreferred"}
    modelled = {name for name, row in CATALOG["action"].items() if row["tla"].startswith("Replication!")}
    assert modelled - reported_otherwise <= set(EVENTS)


def test_the_checks_can_fail(tmp_path: Path) -> None:
    """A name that nobody defines is not found."""
    assert not re.search(r"^NoSuchOperator ==", modules()["Replication.tla"], flags=re.MULTILINE)
    with pytest.raises(AttributeError):
        importlib.import_module("tidegauge.impl.rules").no_such_rule  # noqa: B018
