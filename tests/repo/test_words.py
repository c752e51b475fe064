"""One word per idea: names use Kafka's and TLA+'s words, docs/glossary.md says which they do not use."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("tidegauge", "validation", "benchmarks", "tests")
VERBS = re.compile(r"(MC)?answer_?(fetch|produce)|\w*Moves?_?(Log_?Start|Vars|Init|Next|Spec|TypeOK|View)\w*", re.IGNORECASE)
"""Names of actions, where to answer is the verb; and of log starts, which move."""


@cache
def banned() -> Mapping[str, str]:
    """Word -> what to say instead, plurals included."""
    table = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").partition("## Words that names do not use")[2]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| ")]
    words = {word.strip(): row[1] for row in rows[1:] for word in row[0].split(",")}
    return words | {f"{word}s": instead for word, instead in words.items()}


def words_of(name: str) -> set[str]:
    """A name in parts: truncate_to, TruncationPoint."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def python_names(text: str) -> Iterator[tuple[int, str]]:
    """What a module defines or binds, but for the sentences that tests are called by."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            if not node.name.startswith(("test_", "a_", "an_", "every_")):
                yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def tla_names(text: str) -> Iterator[tuple[int, str]]:
    """The operators and variables a module defines."""
    for number, line in enumerate(text.splitlines(), 1):
        for name in re.findall(r"^\s*(\w+)(?:\(.*?\))? ==", line):
            yield number, name


def wrong_names() -> Iterator[str]:
    """Each name with a banned word, as file:line."""
    for package in PACKAGES:
        for suffix, names in ((".py", python_names), (".tla", tla_names)):
            for path in sorted((ROOT / package).rglob(f"*{suffix}")):
                yield from wrong_in(path.relative_to(ROOT).as_posix(), list(names(path.read_text(encoding="utf-8"))))


def wrong_in(where: str, names: list[tuple[int, str]]) -> Iterator[str]:
    """Those of one file."""
    for line, name in names:
        found = set() if VERBS.fullmatch(name) else words_of(name) & banned().keys()
        for word in sorted(found):
            yield f"{where}:{line}: {name}: expected {banned()[word]}, seen {word}"


def test_names_have_one_word_per_idea() -> None:
    """Else: rename it, or argue the word in the glossary."""
    assert list(wrong_names()) == []


@pytest.mark.parametrize(
    ("reader", "text", "wrong"),
    [
        (python_names, "def cut_at(target): ...", ["f:1: cut_at: expected truncate, truncation, seen cut"]),
        (python_names, "for answer in (): pass", ["f:1: answer: expected response, seen answer"]),
        (python_names, "class FetchAnswer: ...", ["f:1: FetchAnswer: expected response, seen answer"]),
        (python_names, "def answer_fetch(unanswered): ...", []),
        (python_names, "move_log_start, move = 1, 2", ["f:1: move: expected transition, seen move"]),
        (tla_names, "  NoAnswerIsOld == TRUE", ["f:1: NoAnswerIsOld: expected response, seen answer"]),
    ],
)
def test_a_banned_word_is_found(reader, text: str, wrong: list[str]) -> None:  # type: ignore[no-untyped-def]
    """In functions, variables, classes and operators; a verb of an action is none."""
    assert list(wrong_in("f", list(reader(text)))) == wrong


LEFT = Path(__file__).with_name("names_left.txt")
"""Names that have no noun yet, a line each; the list may only become shorter."""


@cache
def no_nouns() -> frozenset[str]:
    """Return the words of the glossary that are no names by themselves."""
    table = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").partition("## Identifiers name a thing")[2]
    rows = [line.split("|")[1] for line in table.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    return frozenset(word.strip() for row in rows[1:] for word in row.split(","))


def nameless(text: str) -> Iterator[str]:
    """Yield the functions, classes, parameters and attributes that are called by such a word alone."""
    for node in ast.walk(ast.parse(text)):
        names = [getattr(node, "name", None)] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
        names += [node.arg] if isinstance(node, ast.arg) else []
        names += [node.attr] if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) else []
        if isinstance(node, ast.ClassDef):
            names += [getattr(one.target, "id", None) for one in node.body if isinstance(one, ast.AnnAssign)]
        yield from (str(name) for name in names if str(name).strip("_").lower() in no_nouns())


def test_a_thing_is_called_by_its_noun() -> None:
    """Functions, classes, parameters and attributes of the package and of the validation. Else: name the thing."""
    seen = {
        f"{path.relative_to(ROOT).as_posix()} {name}"
        for package in ("tidegauge", "validation")
        for path in sorted((ROOT / package).rglob("*.py"))
        for name in nameless(path.read_text(encoding="utf-8"))
    }
    left = set(LEFT.read_text(encoding="utf-8").splitlines())
    assert sorted(seen - left) == []
    assert sorted(left - seen) == [], "these have a noun now: remove them from names_left.txt"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def found(): ...", ["found"]),
        ("def read(said, *, _asked): ...", ["said", "_asked"]),
        ("class Kept: ...", ["Kept"]),
        ("class Fetch:\n    asked: int\n    at: int = 0", ["asked"]),
        ("self._found, self.known_epoch = 1, self.said", ["_found"]),
        ("def kept_sessions(known_epoch): ...", []),
    ],
)
def test_a_name_without_a_noun_is_found(text: str, names: list[str]) -> None:
    assert list(nameless(text)) == names
