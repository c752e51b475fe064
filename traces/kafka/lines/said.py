"""Parse one log line: a row of the table of patterns, matched.

Rules of this file

1. Numbers become ints, lists of ids tuples; a group that did not match is left out.
2. The metadata log is replicated by Raft (KIP-595), not by this protocol: its lines are ignored.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tidegauge.traces.kafka.lines.lines import Line
from tidegauge.traces.kafka.lines.patterns import TABLE
from tidegauge.traces.kafka.lines.phrases import METADATA_LOG, ids, number

Value = int | str | tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """A line with a pattern: `kind` is the first column of the table, `values` are the groups."""

    kind: str
    line: Line
    values: Mapping[str, Value]

    @property
    def tp(self) -> str:
        """The topic-partition, empty where the line names none."""
        return str(self.values.get("tp", ""))

    def number(self, name: str) -> int:
        """Return a group that is a number."""
        value = self.values[name]
        if not isinstance(value, int):
            raise TypeError(f"{name} of {self.line.at} is no number")
        return value

    def text(self, name: str) -> str:
        """Return a group as text."""
        return str(self.values[name])

    def ids(self, name: str = "isr") -> tuple[int, ...]:
        """Return a group that lists node ids."""
        value = self.values[name]
        return value if isinstance(value, tuple) else ()


_BY_LOGGER: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
for _kind, _logger, _pattern in TABLE:
    _BY_LOGGER.setdefault(_logger, []).append((_kind, re.compile(_pattern)))

_ENDLESS = re.compile(r"\d{19}")
_IDS = frozenset({"isr", "replicas", "adding", "removing", "elr", "last_known_elr"})
_TEXTS = frozenset(
    {
        "tp",
        "topic",
        "topic_id",
        "version",
        "sent",
        "request",
        "reason",
        "changes",
        "entries",
        "partition",
        "completed",
        "session",
        "leos",
    }
)


def parse_line(line: Line) -> ParsedLine | None:
    """Parse a line; None if it has no pattern, or is about the metadata log."""
    for kind, pattern in _BY_LOGGER.get(line.logger, ()):
        found = pattern.search(line.message)
        if found is not None:
            try:
                values = {name: _value(name, text) for name, text in found.groupdict().items() if text is not None}
            except ValueError:
                return None  # not a number where the pattern has one: the line is damaged
            return None if values.get("tp") == METADATA_LOG else ParsedLine(kind, line, values)
    return None


def _value(name: str, text: str) -> Value:
    if name in _IDS:
        return ids(text)
    if name not in _TEXTS:
        return number(text)
    if _ENDLESS.search(text):
        raise ValueError(f"expected numbers below 2^62, saw {text}")
    return text
