"""A model's .cfg, TLC's configuration file, as a value: `parse_cfg` reads a text, `Cfg.text` writes one.

Rules of this file

1. TLC's syntax as far as the models use it: comments, CONSTANTS with `=` and `<-`, SPECIFICATION or INIT and NEXT,
   INVARIANT, PROPERTY, CONSTRAINT, ACTION_CONSTRAINT, SYMMETRY, VIEW; each keyword also in singular or plural. Anything
   else is refused with its line: a cfg that is read in part would be another model.
2. Values stay text, as TLC reads them; `number` and `members` report a value of another kind.
3. A comment that opens the file states the purpose of the model and ends in "Expected: ...". Other comments are not kept.
4. `text` writes the one layout that the files of spec/models have, so that reading and writing a file gives the same bytes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tidegauge.util.errors import SpecError

_TOKEN = re.compile(
    r'(?P<skip>\s+|\\\*[^\n]*|\(\*.*?\*\))|(?P<sign><-|=)|(?P<name>[A-Za-z_]\w*)|(?P<value>-?\d+|"[^"\n]*"|\{[^{}]*\})',
    re.DOTALL,
)
# Keyword -> field of Cfg: those with any number of names, and those with one.
_LISTS = {
    "INVARIANT": "invariants",
    "INVARIANTS": "invariants",
    "PROPERTY": "properties",
    "PROPERTIES": "properties",
    "CONSTRAINT": "constraints",
    "CONSTRAINTS": "constraints",
    "ACTION_CONSTRAINT": "action_constraints",
    "ACTION_CONSTRAINTS": "action_constraints",
}
_SINGLE = {"SPECIFICATION": "specification", "INIT": "init", "NEXT": "next", "SYMMETRY": "symmetry", "VIEW": "view"}
_CONSTANTS = frozenset({"CONSTANT", "CONSTANTS"})
# Keywords of TLC that the models do not use: they end a list of names, and are refused.
_UNREAD = frozenset({"CHECK_DEADLOCK", "POSTCONDITION", "ALIAS", "TYPE", "TYPE_CONSTRAINT"})
_KEYWORDS = frozenset({*_LISTS, *_SINGLE, *_CONSTANTS, *_UNREAD})


class Cfg(NamedTuple):
    """One cfg. `where` is its name in messages, `comment` its opening lines; "" and () stand for parts that are absent."""

    where: str = "cfg"
    comment: tuple[str, ...] = ()
    specification: str = ""
    init: str = ""
    next: str = ""
    constants: Mapping[str, str] = {}
    """name = value, in the order of the file"""
    substitutions: Mapping[str, str] = {}
    """name <- operator"""
    invariants: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    action_constraints: tuple[str, ...] = ()
    symmetry: str = ""
    view: str = ""

    @property
    def claim(self) -> str:
        """The purpose of the model: the opening comment up to "Expected:"."""
        return " ".join(self.comment).partition("Expected:")[0].strip()

    @property
    def expected(self) -> str:
        """The expected result in the opening comment; "" where there is none."""
        return " ".join(self.comment).partition("Expected:")[2].strip()

    @property
    def checked(self) -> tuple[str, ...]:
        """Everything that is checked: invariants, then properties."""
        return (*self.invariants, *self.properties)

    def number(self, name: str, default: int | None = None) -> int:
        """Return the constant of that name, `default` where there is none.

        Raises SpecError when it is no number, and where there is neither a constant nor a default.
        """
        value = self.constants.get(name, "no such constant" if default is None else str(default))
        if not re.fullmatch(r"-?\d+", value):
            raise SpecError(f"{self.where}: expected a number for the constant {name}, seen {value}")
        return int(value)

    def members(self, name: str) -> tuple[str, ...]:
        """Return the members of the constant of that name, as text. Raises SpecError when it is no set, or there is none."""
        value = self.constants.get(name, "no such constant")
        if not value.startswith("{"):
            raise SpecError(f"{self.where}: expected a set for the constant {name}, seen {value}")
        return tuple(part for part in map(str.strip, value.strip("{}").split(",")) if part)

    def with_constants(self, **constants: int | Sequence[str]) -> "Cfg":
        """Return a copy with other values of constants: MaxLog=1, Broker=("b1", "b2") for a set of model values.

        Raises SpecError for a constant that the cfg does not have.
        """
        unknown = sorted(set(constants) - set(self.constants))
        if unknown:
            raise SpecError(
                f"{self.where}: expected a constant, one of {', '.join(self.constants)}; "
                f"seen {', '.join(unknown)}; name one of those"
            )
        # An int is a number, anything else the names of a set's members.
        values = {name: str(value) if isinstance(value, int) else _set(value) for name, value in constants.items()}
        return self._replace(constants={**self.constants, **values})

    def with_substitutions(self, **operators: str) -> "Cfg":
        """Return a copy with more operators substituted (name <- operator): ReportStep="PrintStep"."""
        return self._replace(substitutions={**self.substitutions, **operators})

    def without_properties(self) -> "Cfg":
        """Return a copy without invariants and properties, for runs that need the whole graph even where one fails."""
        return self._replace(invariants=(), properties=())

    def text(self) -> str:
        """Return the text that TLC reads."""
        return "\n".join([*(f"\\* {line}".rstrip() for line in self.comment), *self._lines()]) + "\n"

    def _lines(self) -> Iterator[str]:
        """Yield the lines of the cfg below its opening comment."""
        for keyword, name in (("SPECIFICATION", self.specification), ("INIT", self.init), ("NEXT", self.next)):
            if name:
                yield f"{keyword} {name}"
        if self.constants or self.substitutions:
            yield "CONSTANTS"
        yield from (f"  {name} = {value}" for name, value in self.constants.items())
        yield from (f"  {name} <- {operator}" for name, operator in self.substitutions.items())
        yield from (f"INVARIANT {name}" for name in self.invariants)
        yield from (f"PROPERTY {name}" for name in self.properties)
        yield from (f"CONSTRAINT {name}" for name in self.constraints)
        yield from (f"ACTION_CONSTRAINT {name}" for name in self.action_constraints)
        for keyword, name in (("SYMMETRY", self.symmetry), ("VIEW", self.view)):
            if name:
                yield f"{keyword} {name}"


def named_brokers(count: int) -> tuple[str, ...]:
    """Return the first `count` of the model values that MCReplication.tla names: b1, b2, b3."""
    return tuple(f"b{number}" for number in range(1, count + 1))


def _set(members: Sequence[str]) -> str:
    """Return a set as a cfg writes it: {b1, b2}."""
    return "{" + ", ".join(members) + "}"


class _Tokens:
    """The words of a cfg, comments left out, and the position `at` of the next word.

    A word is (kind, text, line number); its kind is the group of _TOKEN that matched: "sign", "name" or "value". The methods
    call a name that is a keyword of TLC "keyword" instead.
    """

    def __init__(self, text: str, where: str) -> None:
        """Divide a cfg into words, each with its kind and line. Raises SpecError."""
        self.where = where
        self.words: list[tuple[str, str, int]] = []
        at, line = 0, 1
        while at < len(text):
            token = _TOKEN.match(text, at)
            if token is None:
                raise SpecError(
                    f"{where}:{line}: expected a keyword, a name or a value, seen {text[at:].split(maxsplit=1)[0]}"
                )
            if token.lastgroup and token.lastgroup != "skip":
                self.words.append((token.lastgroup, token[0], line))
            at, line = token.end(), line + token[0].count("\n")
        self.at = 0

    def follows(self, *kinds: str) -> bool:
        """Return whether a word of one of these kinds comes next."""
        if self.at == len(self.words):
            return False
        kind, word, _ = self.words[self.at]
        # A keyword is no name: a list of names ends where the next keyword begins, nothing else divides them.
        return ("keyword" if word in _KEYWORDS else kind) in kinds

    def take(self, expected: str, *kinds: str) -> str:
        """Return the next word and go past it. Raises SpecError ("expected ...") when it is of another kind."""
        if not self.follows(*kinds):
            end = ("", "the end", self.words[-1][2] if self.words else 1)
            _, seen, line = self.words[self.at] if self.at < len(self.words) else end
            raise SpecError(f"{self.where}:{line}: expected {expected}, seen {seen}")
        self.at += 1
        return self.words[self.at - 1][1]

    def refuse(self, expected: str) -> SpecError:
        """Return the error to raise for the word just taken, which is not what was expected."""
        _, seen, line = self.words[self.at - 1]
        return SpecError(f"{self.where}:{line}: expected {expected}, seen {seen}")


def parse_cfg(text: str, where: str = "cfg") -> Cfg:
    """Read the text of a cfg; `where` names it in messages. Raises SpecError with the line that is not understood."""
    tokens = _Tokens(text, where)
    # Fields of Cfg: those with lists of names, and those with one.
    lists: dict[str, list[str]] = {field: [] for field in _LISTS.values()}
    single: dict[str, str] = {}
    constants: dict[str, str] = {}
    substitutions: dict[str, str] = {}
    while tokens.at < len(tokens.words):
        keyword = tokens.take("a keyword", "keyword")
        if keyword in _CONSTANTS:
            while tokens.follows("name"):
                _constant(tokens, constants, substitutions)
        elif keyword in _LISTS:
            while tokens.follows("name"):
                lists[_LISTS[keyword]].append(tokens.take("a name", "name"))
        # Once only: a second INIT would silently replace the first.
        elif keyword in _SINGLE and _SINGLE[keyword] not in single:
            single[_SINGLE[keyword]] = tokens.take("a name", "name")
        else:
            raise tokens.refuse("a keyword that Tidegauge's models use, SPECIFICATION, INIT, NEXT, SYMMETRY and VIEW once")
    # By the names of the fields, which come from _SINGLE and _LISTS.
    parts: dict[str, Any] = {**single, **{field: tuple(names) for field, names in lists.items()}}
    return Cfg(where, _comment(text), constants=constants, substitutions=substitutions)._replace(**parts)


def _constant(tokens: _Tokens, constants: dict[str, str], substitutions: dict[str, str]) -> None:
    """Read `name = value` into `constants`, or `name <- operator` into `substitutions`. Raises SpecError."""
    name = tokens.take("a name", "name")
    if name in constants or name in substitutions:
        raise tokens.refuse("each constant once")
    if tokens.take("= or <-", "sign") == "<-":
        substitutions[name] = tokens.take("an operator", "name")
        return
    value = tokens.take("a number, a string, a name or a set", "value", "name")
    # A set is brought into the one layout that the files have (rule 4); any other value stays as it is.
    if value[0] == "{":
        value = _set([part.strip() for part in value[1:-1].split(",") if part.strip()])
    constants[name] = value


def _comment(text: str) -> tuple[str, ...]:
    """Return the lines of the comment that opens a cfg."""
    comment = re.match(r"(?:\\\*[^\n]*\n?)*", text)
    return tuple(line.removeprefix("\\*").strip() for line in comment[0].splitlines()) if comment else ()
