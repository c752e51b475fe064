"""Which rules the reference applied, at a step and over a run: each rule is wrapped, and is not changed."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tidegauge.conformance.judge.rulebook import rulebook
from tidegauge.drive.runner.report import value_text
from tidegauge.impl import rules as rules_
from tidegauge.impl.profiles import Rules

# The decisions of a step: each rule with its arguments and its result.


class Decision(NamedTuple):
    """A rule that the reference applied, its arguments and its result; `ids` are rows of the catalog about it."""

    rule: str
    arguments: tuple[Any, ...]
    result: Any
    kafka: str
    ids: tuple[str, ...]

    def __str__(self) -> str:
        """Return the decision as a line: the rule with its arguments and result, the row of its table, and its source."""
        names = inspect.signature(getattr(rules_, self.rule)).parameters
        arguments = ", ".join(f"{name}={value_text(value)}" for name, value in zip(names, self.arguments, strict=True))
        row = f"{ROWS[self.rule](self.result)}: " if self.rule in ROWS else ""
        source = " ".join(filter(None, (", ".join(self.ids), self.kafka)))
        says = "".join(f"\n            {rulebook()[name].sentence}" for name in self.ids[:1])
        return f"{self.rule}({arguments}) = {row}{value_text(self.result)}   {source}".rstrip() + says


def _rows_about(names: set[str]) -> tuple[str, ...]:
    return tuple(row.id for row in rulebook().values() if row.impl.removeprefix("impl.rules:") in names)


def _callees(name: str) -> set[str]:
    """Return the rules that a rule names in its code: those that it calls."""
    return {*getattr(rules_, name).__code__.co_names} & {*Rules._fields}


def recording_rules(decisions: list[Decision]) -> Rules:
    """Return the rules, each of which adds to `decisions` when it is applied."""

    def recording(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Return the rule, wrapped: each call is added to `decisions`."""
        # A rule that no row is about stands for those that it calls.
        ids = _rows_about({name}) or _rows_about(_callees(name))
        kafka = ", ".join(re.findall(r"[A-Z]\w+#\w+", inspect.getdoc(rule) or ""))

        def applied(*arguments: Any) -> Any:
            result = rule(*arguments)
            decisions.append(Decision(name, arguments, result, kafka, ids))
            return result

        return applied

    return Rules(**{name: recording(name, getattr(rules_, name)) for name in Rules._fields})


# Counts of the rules that the reference applied in a run, and of the rows of their tables.


ROWS: Mapping[str, Callable[[Any], str]] = MappingProxyType(
    {
        "truncation_target": lambda result: f"T{result[0]}",
        "fetch_decision": lambda result: ("read", "diverging", "out of range")[result[0]],
        "out_of_range_reset": lambda result: ("", "to the leader's end", "to the leader's start", "to its own end")[
            result[0]
        ],
        "check_leader_epoch": lambda result: {0: "same epoch", 74: "fenced", 75: "unknown"}[result],
        "proposal_after": lambda result: ("committed", "given up", "waits for metadata", "sent again")[result],
    }
)
"""Rules that are tables: which row a result is."""

T_TABLE = tuple(f"T{row}" for row in range(1, 6))

Count = Counter[tuple[str, str]]
"""How often each (rule, row) was applied; row "" for a rule that is no table and not of the kind yes or no."""


def row_of(name: str, result: Any) -> str:
    """Return the row of a rule's table that a result is; yes or no where that is all that it may be."""
    if isinstance(result, bool):
        return "yes" if result else "no"
    return ROWS[name](result) if name in ROWS else ""


def counting(count: Count) -> Rules:
    """Return the rules, each of which adds to `count` when it is applied and changes nothing."""

    def counted(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        def applied(*arguments: Any) -> Any:
            result = rule(*arguments)
            count[name, row_of(name, result)] += 1
            return result

        return applied

    return Rules(**{name: counted(name, getattr(rules_, name)) for name in Rules._fields})


def with_callees(applied: set[str]) -> set[str]:
    """Return these rules and those that they call themselves."""
    # The wrappers see calls through `Rules` only; a rule that calls another one names it in its code.
    while more := {callee for name in applied for callee in _callees(name)} - applied:
        applied = applied | more
    return applied


def coverage_lines(count: Count) -> list[str]:
    """Return which rules were applied and which were not, and the rows of the tables, a line each."""
    applied = with_callees({name for name, _ in count})
    missing = [name for name in Rules._fields if name not in applied]
    lines = [f"rules applied: {len(applied)} of {len(Rules._fields)}" + (f"; not {', '.join(missing)}" if missing else "")]
    for name in ROWS:
        rows = {row: times for (rule, row), times in sorted(count.items()) if rule == name}
        if rows:
            lines.append(f"  {name}: " + ", ".join(f"{row} {times:,}" for row, times in rows.items()))
    return lines
