"""Read a TLA+ value as TLC prints it.

| TLA+ | Python |
|---|---|
| 7, TRUE, "text" | int, bool, str |
| a model value | ModelValue |
| <<a, b>> | tuple |
| {a, b} | frozenset |
| [field |-> a], (x :> a @@ y :> b) | dict |

A frozenset cannot hold dicts, so a set of records or functions becomes a tuple of its members.
"""

import re
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(r'\s*(?:(-?\d+)|"((?:[^"\\]|\\.)*)"|(<<|>>|\|->|:>|@@|\.\.|[\[\](){},])|([A-Za-z_]\w*))')


LARGEST_SPAN = 1_000_000
"""Numbers of an interval: as many as TLC itself enumerates of a set (tlc2.TLCGlobals.setBound)."""


@dataclass(frozen=True)
class ModelValue:
    """A TLA+ model value; equal only to itself."""

    name: str


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.kind = ""
        self.token = ""
        self.advance()

    def advance(self) -> None:
        token = _TOKEN.match(self.text, self.at)
        if token is None:
            if self.text[self.at :].strip():
                raise ValueError(f"expected a TLA+ value, seen {self.text[self.at : self.at + 40]!r}")
            self.kind, self.token = "end", ""
            return
        self.at = token.end()
        self.kind = ("int", "str", "mark", "name")[(token.lastindex or 1) - 1]
        self.token = token[token.lastindex or 1]

    def take(self, mark: str) -> None:
        if self.kind != "mark" or self.token != mark:
            raise ValueError(f"expected {mark!r} before offset {self.at}, seen {self.token!r}")
        self.advance()

    def sees(self, mark: str) -> bool:
        return self.kind == "mark" and self.token == mark

    def members(self, close: str) -> list[Any]:
        members: list[Any] = []
        while not self.sees(close):
            if members:
                self.take(",")
            members.append(self.value())
        self.advance()
        return members

    def value(self) -> Any:
        """Parse one value and advance past it. Raises ValueError."""
        kind, token = self.kind, self.token
        if kind == "end":
            raise ValueError("expected a TLA+ value, seen the end of the text")
        self.advance()
        # TLC prints an interval as a..b where it has not enumerated the set.
        if kind == "int":
            return self.span(int(token))
        if kind == "str":
            return re.sub(r"\\(.)", r"\1", token)
        if kind == "name":
            # Any other name is a model value: TLC prints no strings without quotes.
            return {"TRUE": True, "FALSE": False}.get(token, ModelValue(token))
        if token == "<<":
            return tuple(self.members(">>"))
        if token == "{":
            inside = self.members("}")
            # A dict has no hash, so a set of records becomes a tuple.
            return tuple(inside) if any(isinstance(member, dict) for member in inside) else frozenset(inside)
        if token == "[":
            return self.record()
        if token == "(":
            return self.function()
        raise ValueError(f"expected a TLA+ value, seen {token!r}")

    def span(self, low: int) -> Any:
        """Return the set of an interval, a..b, which is how TLC prints some sets of ints; else `low`."""
        if not self.sees(".."):
            return low
        self.advance()
        high = int(self.token)
        self.advance()
        if high - low > LARGEST_SPAN:
            raise ValueError(f"expected an interval of at most {LARGEST_SPAN:,} numbers, seen {low}..{high}")
        return frozenset(range(low, high + 1))

    def record(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        while not self.sees("]"):
            if fields:
                self.take(",")
            name = self.token
            self.advance()
            self.take("|->")
            fields[name] = self.value()
        self.advance()
        return fields

    def function(self) -> dict[Any, Any]:
        pairs: dict[Any, Any] = {}
        while not self.sees(")"):
            if pairs:
                self.take("@@")
            key = self.value()
            self.take(":>")
            pairs[key] = self.value()
        self.advance()
        return pairs


def parse_value(text: str) -> Any:
    """Return the Python value of `text`. Raises ValueError when it is not one TLA+ value."""
    reader = _Reader(text)
    try:
        value = reader.value()
    except (TypeError, RecursionError) as error:  # a set of sequences of records, a value in values in values
        raise ValueError(f"expected a value that can be compared, seen {text[:40]!r} ({error})") from None
    if reader.kind != "end":
        raise ValueError(f"expected the end of the value, seen {reader.token!r}")
    return value


def parse_state(text: str) -> dict[str, Any]:
    r"""Parse one state, which TLC prints as a list of `/\ name = value`."""
    state: dict[str, Any] = {}
    # A state is one conjunct per variable; values may go over several lines, which never begin with /\.
    for part in re.split(r"^/\\ ", text.strip(), flags=re.MULTILINE):
        if part.strip():
            name, _, value = part.partition("=")
            state[name.strip()] = parse_value(value)
    return state
