"""Which rules the reference applied at a step, and with what outcome: each rule is wrapped, and is not changed."""

import inspect
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from tidegauge.conformance.judging.rulebook import rulebook
from tidegauge.drive.runner.text import value_text
from tidegauge.impl import rules as rules_
from tidegauge.impl.profiles import Rules


class Decision(NamedTuple):
    """A rule that the reference applied, its arguments and its result; `ids` are rows of the catalog about it."""

    rule: str
    arguments: tuple[Any, ...]
    result: Any
    kafka: str
    ids: tuple[str, ...]

    def __str__(self) -> str:
        arguments = ", ".join(value_text(argument) for argument in self.arguments)
        source = " ".join(filter(None, (", ".join(self.ids), self.kafka)))
        return f"{self.rule}({arguments}) = {value_text(self.result)}   {source}".rstrip()


def recording_rules(decisions: list[Decision]) -> Rules:
    """Return the rules, each of which adds to `decisions` when it is applied."""

    def recording(name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        ids = tuple(row.id for row in rulebook().values() if row.impl == f"impl.rules:{name}")
        kafka = ", ".join(re.findall(r"[A-Z]\w+#\w+", inspect.getdoc(rule) or ""))

        def applied(*arguments: Any) -> Any:
            result = rule(*arguments)
            decisions.append(Decision(name, arguments, result, kafka, ids))
            return result

        return applied

    return Rules(**{name: recording(name, getattr(rules_, name)) for name in Rules._fields})
