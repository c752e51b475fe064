"""The rules in words: read from catalog.toml, the one place where every sentence stands."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Rule:
    """A row of the catalog. `bugs` are the known bugs a failure looks like."""

    id: str
    level: str
    sentence: str
    impl: str
    kafka: str
    bugs: tuple[str, ...]


@cache
def rulebook() -> Mapping[str, Rule]:
    """Every rule by its id."""
    rows = _catalog().get("rule", {})
    return MappingProxyType(
        {
            name: Rule(
                name, row["level"], row["sentence"], row.get("impl", ""), row.get("kafka", ""), tuple(row.get("bugs", ()))
            )
            for name, row in rows.items()
        }
    )


@cache
def bug_sentences() -> Mapping[str, str]:
    """What a known bug does, by its name; only bugs the catalog describes."""
    rows = _catalog().get("bug", {})
    return MappingProxyType({name: _bug(row) for name, row in rows.items()})


def _bug(row: Mapping[str, Any]) -> str:
    says = str(row.get("says", row.get("sentence", "")))
    return f"{says} Fixed in {row['fixed']}." if row.get("fixed") else says


@cache
def _catalog() -> dict[str, Any]:
    return tomllib.loads(files("tidegauge").joinpath("catalog.toml").read_text(encoding="utf-8"))


def rules_table() -> str:
    """The rules as the table of docs/judge.md."""
    head = ("| rule | level | what it says | Kafka | looks like |", "|---|---|---|---|---|")
    rows = (f"| {r.id} | {r.level} | {r.sentence} | `{r.kafka}` | {', '.join(r.bugs)} |" for r in rulebook().values())
    return "\n".join((*head, *rows))
