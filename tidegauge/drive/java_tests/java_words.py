"""Parts of a path as Java: steps as calls of helper methods, their arguments as literals, sentences as comments, names.

Values come from traces and files of others, so none may end the literal or the comment that it is written in.
"""

import re
from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from tidegauge.drive.contract import Step
from tidegauge.drive.controller.contract import ALL
from tidegauge.util.errors import UsageError

COMMENT_WIDTH = 115
"""How long a line of a comment may be."""


def comment_lines(sentence: str) -> Iterator[str]:
    """Yield a sentence as the lines of a comment, without anything that would end the comment."""
    # javac reads \\u as an escape anywhere in a file, and */ ends a comment.
    safe = sentence.replace("\\", "/").replace("*/", "* /")
    yield from wrap(safe, COMMENT_WIDTH)


def java_value(value: Any) -> str:
    """Return a step's argument as an expression of Java."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            # ALL is a metadata offset beyond the end of any log.
            if value == ALL:
                return "Long.MAX_VALUE"
            return str(value) if abs(value) < 2**31 else f"{value}L"
        case str():
            # Names of topics and keys of configurations have such characters only; any other text is written as escapes of
            # its UTF-16 code units, of four hex digits each.
            units = value.encode("utf-16-be").hex()
            escapes = (f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
            return f'"{value}"' if re.fullmatch(r"[\w .,:()\[\]-]*", value, re.ASCII) else f'"{"".join(escapes)}"'
        case tuple() | list():
            return f"List.of({', '.join(map(java_value, value))})"
    raise UsageError(f"--export-junit: expected a number, a word or a list of these in a step; seen {value!r}")


def helper_name(step: str) -> str:
    """Return the helper method of a step: `alter_partition` is alterPartition."""
    first, *others = step.split("_")
    return first + "".join(word.capitalize() for word in others)


def call(step: Step) -> str:
    """Return a step as a call of its helper method."""
    return f"{helper_name(step[0])}({', '.join(map(java_value, step[1:]))})"


def class_name(words: str) -> str:
    """Return the name of a Java class, made of the words in a text, such as BrokerF1Test of "broker F1"."""
    parts = re.findall(r"[A-Za-z0-9]+", words)
    name = "".join(part[0].upper() + part[1:] for part in parts)
    return f"{'' if name[:1].isalpha() else 'Path'}{name}Test"
