"""Which rules the reference applied, at a step and over a run.

A rule is a function of `impl.rules`, one decision of the protocol. `Rules` is the tuple of all of them that the reference is
made with; here each is wrapped, so that a call is noted and its result stays the same. Some rules are tables: their result
names the row that applied (`ROWS`). The catalog has sentences, each with an id such as HW-06, about these rules.
"""

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
    """A rule that the reference applied, its arguments and its result.

    `kafka`: the methods of Kafka that it is written after, "" for none; `ids`: those of the catalog's sentences about it.
    """

    rule: str
    arguments: tuple[Any, ...]
    result: Any
    kafka: str
    ids: tuple[str, ...]

    def __str__(self) -> str:
        """Return the decision as a line, "rule(arguments) = row: result   ids methods", then the first id's sentence."""
        names = inspect.signature(getattr(rules_, self.rule)).parameters
        # "decision = row: result" for a rule that is a table, else "decision = result".
        arguments = ", ".join(f"{name}={value_text(value)}" for name, value in zip(names, self.arguments, strict=True))
        row = f"{ROWS[self.rule](self.result)}: " if self.rule in ROWS else ""
        source = " ".join(filter(None, (", ".join(self.ids), self.kafka)))
        sentence = "".join(f"\n            {rulebook()[rule_id].sentence}" for rule_id in self.ids[:1])
        return f"{self.rule}({arguments}) = {row}{value_text(self.result)}   {source}".rstrip() + sentence


def _ids_about(functions: set[str]) -> tuple[str, ...]:
    """Return the ids of the catalog's sentences that functions of `impl.rules` with these names implement."""
    return tuple(rule.id for rule in rulebook().values() if rule.impl.removeprefix("impl.rules:") in functions)


def _callees(name: str) -> set[str]:
    """Return the names of the rules that a rule calls: those that occur in its compiled code."""
    return {*getattr(rules_, name).__code__.co_names} & {*Rules._fields}


def recording_rules(decisions: list[Decision]) -> Rules:
    """Return the right rules, wrapped: each call appends a decision to `decisions`."""

    def recording(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Return the rule called `name`, wrapped so that each call also appends a decision."""
        # A rule without a sentence of its own stands for those that it calls.
        ids = _ids_about({name}) or _ids_about(_callees(name))
        # The docstring of a rule names the methods of Kafka as Class#method.
        kafka = ", ".join(re.findall(r"[A-Z]\w+#\w+", inspect.getdoc(rule) or ""))

        def apply(*arguments: Any) -> Any:
            """Apply the rule, and note the decision."""
            result = rule(*arguments)
            decisions.append(Decision(name, arguments, result, kafka, ids))
            return result

        return apply

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
"""By the name of a rule that is a table: a function from its result to the name of the row that applied.

A result is the number of the row or begins with it; only that of check_leader_epoch is an error code of Kafka's protocol."""

T_TABLE = tuple(f"T{row}" for row in range(1, 6))

Count = Counter[tuple[str, str]]
"""How often each (rule, row) was applied; row "" for a rule that is no table and not of the kind yes or no."""


def row_of(name: str, result: Any) -> str:
    """Return the row of a rule's table that gave a result: "yes" or "no" for a bool, "" for a rule that is no table."""
    if isinstance(result, bool):
        return "yes" if result else "no"
    return ROWS[name](result) if name in ROWS else ""


def counting(count: Count) -> Rules:
    """Return the right rules, wrapped: each call adds 1 to `count` at the rule and its row."""

    def counted(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Return the rule called `name`, wrapped so that each call is also counted."""

        def apply(*arguments: Any) -> Any:
            """Apply the rule, and count it at the row that gave its result."""
            result = rule(*arguments)
            count[name, row_of(name, result)] += 1
            return result

        return apply

    return Rules(**{name: counted(name, getattr(rules_, name)) for name in Rules._fields})


def with_callees(applied: set[str]) -> set[str]:
    """Return the names of these rules and of all rules that they call, directly or not."""
    # The wrappers of this file see only calls through `Rules`, not those of one rule by another. So callees are added until
    # there are no new ones.
    while more := {callee for name in applied for callee in _callees(name)} - applied:
        applied = applied | more
    return applied


def coverage_lines(count: Count) -> list[str]:
    """Return as lines how many rules were applied and which were not, then for each table how often each row was."""
    applied = with_callees({name for name, _ in count})
    missing = [name for name in Rules._fields if name not in applied]
    lines = [f"rules applied: {len(applied)} of {len(Rules._fields)}" + (f"; not {', '.join(missing)}" if missing else "")]
    for name in ROWS:
        rows = {row: times for (rule, row), times in sorted(count.items()) if rule == name}
        if rows:
            lines.append(f"  {name}: " + ", ".join(f"{row} {times:,}" for row, times in rows.items()))
    return lines
