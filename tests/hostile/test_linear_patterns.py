"""No pattern takes more than time in proportion to the length of a line (B1, B2 of the hostile cases).

The texts are generated from the patterns themselves: each repeated part is grown, and so is each run of parts behind it,
since `.*` may be filled with anything that comes later. A quadratic pattern takes at least five seconds of the processor
where a linear one takes a millisecond; each text has SECONDS of it.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any

import pytest

from tests.processor_time import processor_time
from tidegauge.bundle import writing
from tidegauge.story import advice, elections, fetchers, processes, raw_lines, reading, releases, statements, truncations
from tidegauge.traces.kafka_logs.discovery import clusters, identify, selection, writers
from tidegauge.traces.kafka_logs.disks import dumps
from tidegauge.traces.kafka_logs.nodes import gap_detection, node
from tidegauge.traces.kafka_logs.parsing import exports, layout, lines, metadata_dump, parsed_line, request_log, timestamps
from tidegauge.traces.kafka_logs.parsing.layout import PATTERNS, WRAPPERS, envelope
from tidegauge.traces.kafka_logs.parsing.parsed_line import row_of
from tidegauge.traces.kafka_logs.parsing.patterns import TABLE

SIZE, LONGEST = 1 << 15, 1 << 20
SECONDS = 2
NOT_OF_LINES = {
    "_HEAD",
    "_CONVERSION",
    "_SPACES",
    "_MAY_BE_EMPTY",
    "_TOKEN",
    "KNOWN",
    "_SEGMENT",
    "BESIDE_SEGMENTS",
    "_BESIDE",
}
"""Patterns that read our own patterns, those of --layout, or names of files."""
MATCHED = {
    "_NO_THREAD",
    "_THREAD",
    "_OWN",
    "_OWN_UNBRACKETED",
    "_DIRECTORY",
    "_REPLICA_DIRECTORY",
    "_PLACED",
    "_EXCEPTION",
    "_OF_AN_EXCEPTION",
    "_BEGINS_LINE",
    "_LOG_CONTEXT",
    "_FENCE_OR_COMMAND",
    "_PROSE",
    "_TP",
    "_NO_HOST",
    "_PREFIX",
    "_OF_A_DUMP",
    "_STUB",
    "_NO_TEXT",
    "_LIST_ITEM",
    "_OF_A_TRACE",
}
"""Patterns that are tried at the beginning of a text only."""
MODULES = (
    gap_detection,
    layout,
    lines,
    parsed_line,
    request_log,
    selection,
    timestamps,
    clusters,
    identify,
    writers,
    node,
    dumps,
    metadata_dump,
    exports,
    writing,
    raw_lines,
    reading,
    elections,
    releases,
    advice,
    fetchers,
    processes,
    truncations,
)
REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)

Use = Callable[[str], object]


def atoms(tree: Any) -> Iterator[tuple[str, bool]]:
    """Yield a text for each part of a pattern, and whether the part may be repeated without end."""
    for kind, value in tree:
        if kind is op.SUBPATTERN:
            yield from atoms(value[-1])
        elif kind is op.ATOMIC_GROUP:
            yield from atoms(value)
        elif kind is op.BRANCH:
            yield from atoms(value[1][0])
        elif kind is op.ASSERT:
            yield from atoms(value[1])
        elif kind in REPEATS:
            low, high, inner = value
            parts = list(atoms(inner))
            if high > 64 and len(parts) == 1:
                yield parts[0][0] * max(1, low), True
            else:
                yield from parts * max(1, min(low, 30))
        elif kind is op.LITERAL:
            yield chr(value), False
        elif kind is op.NOT_LITERAL:
            yield "y" if chr(value) != "y" else "z", False
        elif kind is op.ANY:
            yield "x", False
        elif kind is op.IN:
            yield member(value), False


def member(members: Any) -> str:
    """Return a character of a class."""
    inside = re.compile("".join(["[", *map(written, members), "]"]))
    return next(c for c in "a1X, -._:$[]({/" + "".join(map(chr, range(32, 127))) if inside.fullmatch(c))


def written(part: Any) -> str:
    kind, value = part
    categories = {op.CATEGORY_DIGIT: r"\d", op.CATEGORY_WORD: r"\w", op.CATEGORY_SPACE: r"\s", op.CATEGORY_NOT_SPACE: r"\S"}
    if kind is op.NEGATE:
        return "^"
    if kind is op.RANGE:
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    return categories[value] if kind is op.CATEGORY else re.escape(chr(value))


def grown(pattern: str, size: int) -> Iterator[str]:
    """Yield texts like those that the pattern matches, with each repeated part, or what may stand in it, of a size."""
    parts = list(atoms(parser.parse(pattern)))
    # Letters of one word are one part: a half word is no other case than a whole one.
    joined: list[tuple[str, bool]] = []
    for text, repeats in parts:
        if joined and not repeats and not joined[-1][1] and (text + joined[-1][0][-1]).isalpha():
            joined[-1] = joined[-1][0] + text, False
        else:
            joined.append((text, repeats))
    texts = [text for text, _ in joined]
    for at, (text, repeats) in enumerate(joined):
        if not repeats:
            continue
        before, behind = "".join(texts[:at]), "".join(texts[at + 1 :])
        runs = {text, " ", "a", "1", "a-1", "".join(texts)}
        runs |= {"".join(texts[at + 1 : end]) for end in range(at + 2, len(texts) + 1, 1 + len(texts) // 6)}
        for run in sorted(runs - {""}):
            for end in ("\x00", behind[:-1]):
                yield before + run * (size // len(run)) + end
    head = "".join(texts[: max(1, len(texts) // 2)])
    yield head * (size // len(head))
    yield "".join(texts)


def is_linear(pattern: str, use: Use, size: int) -> bool:
    try:
        for text in grown(pattern, size):
            with processor_time(SECONDS):
                use(text)
    except TimeoutError:
        return False
    return True


def every(compiled: "re.Pattern[str]") -> Use:
    """Use a pattern as findall, finditer, sub and search do."""
    return lambda text: sum(1 for _ in islice(compiled.finditer(text), 1 << 20))


def of_modules() -> list[Any]:
    """The patterns that modules look for in lines or in parts of them."""

    def named(module: ModuleType) -> Iterator[Any]:
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str) and name not in NOT_OF_LINES:
                use = value.match if name in MATCHED else every(value)
                yield pytest.param(value.pattern, use, id=f"{module.__name__.rpartition('.')[2]}.{name}")

    return [pattern for module in MODULES for pattern in named(module)]


LAYOUTS = [
    pytest.param(one.line.pattern, one.line.fullmatch, id=one.pattern)
    for one in map(envelope, (*PATTERNS, "%d{ISO8601} %-5p [%t] %X{a} %highlight{%m} (%c) %X{b} %n"))
]
BEGINS = [
    pytest.param(one.begins.pattern, one.begins.match, id=f"begins {one.pattern}") for one in map(envelope, PATTERNS[:3])
]
DATES = [pytest.param(way._read.pattern, way._read.fullmatch, id=way.regex[:20]) for way in timestamps.WAYS]
ROWS = [
    pytest.param(pattern, row_of(kind, pattern).match, id=f"{kind}-{number}")
    for number, (kind, _, pattern) in enumerate(TABLE)
]
MARKS = [
    pytest.param(mark.pattern.pattern, every(mark.pattern), id=f"{mark.says}-{number}")
    for number, mark in enumerate(
        (*identify.TOOLS, *identify.SYSTEMS, *identify.ERAS, *identify.LOG_KINDS, *identify.PROGRAMS)
    )
]


def _behind(row: statements.Statement, text: str) -> object:
    return row.after.match(text, len(row.text))


OF_STORIES = [
    pytest.param(re.escape(row.text) + row.after.pattern, partial(_behind, row), id=f"story {row.kind}-{number}")
    for number, row in enumerate(statements.STATEMENTS)
]
ALL = [*ROWS, *OF_STORIES, *of_modules(), *LAYOUTS, *BEGINS, *DATES, *MARKS]


@pytest.mark.parametrize(("pattern", "use"), ALL)
def test_a_pattern_takes_time_in_proportion_to_the_line(pattern: str, use: Use) -> None:
    assert is_linear(pattern, use, SIZE)


@pytest.mark.long
@pytest.mark.parametrize(("pattern", "use"), ALL)
def test_also_for_the_longest_line(pattern: str, use: Use) -> None:
    assert is_linear(pattern, use, LONGEST)


@pytest.mark.parametrize("wrapper", WRAPPERS, ids=lambda wrapper: wrapper.name)
@pytest.mark.parametrize(
    "part", ["a", " ", "[", "2026-01-01T00:00:00Z ", "\x1b[", "1 ", '{"log":', "a-1", "| ", "[pod/a/b] "]
)
def test_wrappers_too(wrapper: Any, part: str) -> None:
    with processor_time(SECONDS):
        wrapper.unwrap(part * (LONGEST // len(part)))


@pytest.mark.parametrize("pattern", [r"a.*b.*c.*d.*e", r"\w+: \w+"])
def test_a_pattern_that_is_not_linear_is_found(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail; of a quarter of the text, in less time."""
    monkeypatch.setitem(globals(), "SECONDS", 0.01)
    assert not is_linear(pattern, every(re.compile(pattern)), SIZE // 4)
