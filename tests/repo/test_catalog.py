"""catalog.toml is the place where names are defined: every copy of a name is held against it."""

import importlib
import re
import tomllib
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tidegauge.conformance.checking import rules_outside_kernel
from tidegauge.conformance.judge import fields
from tidegauge.impl import rules
from tidegauge.impl.explorer.invariants import INVARIANTS
from tidegauge.impl.profiles import Rules
from tidegauge.spec.tlc.tlc import modules
from tidegauge.traces.schema import EVENTS

CATALOG: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(
    (Path(__file__).parents[2] / "tidegauge" / "catalog.toml").read_text(encoding="utf-8")
)
ROWS = [(kind, name, row) for kind, rows in CATALOG.items() if kind != "bug" for name, row in rows.items()]
IDS = [f"{kind}.{name}" for kind, name, _ in ROWS]


Row = Mapping[str, Any]


def points(row: Row) -> bool:
    """A sentence with a full stop, and a function, an operator or a class of Kafka."""
    return row["sentence"].endswith(".") and bool(row.keys() & {"impl", "tla", "kafka"})


def function_exists(row: Row) -> bool:
    """`impl` names a module and a function in it."""
    module, _, function = row["impl"].partition(":")
    path = f"tidegauge.{module}"
    return find_spec(path) is not None and callable(getattr(importlib.import_module(path), function, None))


def operator_exists(row: Row) -> bool:
    """`tla` names a module and an operator defined in it."""
    module, _, operator = row["tla"].partition("!")
    text = modules().get(f"{module}.tla", "")
    return re.search(rf"^{operator}(\(.*\))? ==", text, flags=re.MULTILINE) is not None


def untold_bugs(catalog: Mapping[str, Mapping[str, Row]]) -> set[str]:
    """Bugs that a rule names and no sentence says."""
    return {bug for rule in catalog["rule"].values() for bug in rule.get("bugs", ())} - set(catalog["bug"])


@pytest.mark.parametrize(("kind", "name", "row"), ROWS, ids=IDS)
def test_a_row_says_a_sentence_and_names_what_exists(kind: str, name: str, row: dict[str, Any]) -> None:
    """Functions, operators, classes of Kafka."""
    assert points(row)
    assert "impl" not in row or function_exists(row)
    assert "tla" not in row or operator_exists(row)


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        (points, {"sentence": "No full stop", "kafka": "Log#append"}),
        (points, {"sentence": "Points nowhere.", "level": "MUST"}),
        (function_exists, {"impl": "impl.rules:no_such_rule"}),
        (function_exists, {"impl": "impl.no_such_module:end_offset"}),
        (function_exists, {"impl": "impl.rules:UNDEFINED"}),
        (operator_exists, {"tla": "Replication!NoSuchOperator"}),
        (operator_exists, {"tla": "NoSuchModule!Next"}),
        (operator_exists, {"tla": "Replication!Nex"}),
    ],
)
def test_a_broken_row_is_noticed(check: Callable[[Row], bool], broken: Row) -> None:
    """Each check, on a row with one mistake."""
    assert not check(broken)


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
    """What impl.explorer.invariants checks has a row that names it."""
    assert set(INVARIANTS) == {name for name, row in CATALOG["invariant"].items() if "impl" in row}


def test_the_judge_checks_the_rules_of_the_catalog_and_no_other() -> None:
    """The judge names a rule as RULE.HW_10; the compiler finds a misspelt name only in a function that is compiled."""
    kernel = Path(fields.__file__).parent
    named = {
        name
        for path in kernel.rglob("*.py")
        for name in re.findall(r"\bRULE\.([A-Z0-9_]+)", path.read_text(encoding="utf-8"))
    }
    assert {name.replace("_", "-") for name in named} | {rules_outside_kernel.SEQUENCE_RULE} == set(CATALOG["rule"])


def test_every_rule_says_what_it_means_where_it_is_broken() -> None:
    """A report begins with it."""
    assert [name for name, row in CATALOG["rule"].items() if not row.get("means", "").endswith(".")] == []


def test_every_bug_a_rule_names_is_told_in_a_sentence() -> None:
    """A report can say what the bug is."""
    assert untold_bugs(CATALOG) == set()
    assert untold_bugs({"rule": {"HW-01": {"bugs": ["KAFKA-0"]}}, "bug": {}}) == {"KAFKA-0"}


def test_decisions_of_the_implementation_are_rules() -> None:
    """What a core runs with are functions of impl.rules, under the same names."""
    assert all(getattr(rules, name) is getattr(Rules(), name) for name in Rules._fields)


def test_actions_that_leave_a_trace_are_events() -> None:
    """An action of a broker has an event of the same name, but for those told as others."""
    reported_otherwise = {"LoseResponse", "Restart", "FenceBroker", "UnfenceBroker", "ElectPreferred"}
    modelled = {name for name, row in CATALOG["action"].items() if row["tla"].startswith("Replication!")}
    assert modelled - reported_otherwise <= set(EVENTS)
