"""What the kill matrix has found, as it is kept: which column catches which bug, and in how many steps.

Rules of this file

1. The file holds what is the same on every machine; how long it took stands in docs/drive.md.
2. A bug that no column catches, a rule that nothing exercises and a result that is not the kept one are each told in a
   line: they fail the build.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

MATRIX_FILE = Path(__file__).parent / "matrix.json"


@dataclass(frozen=True)
class Caught:
    """A path on which a broker with a bug differs: from which graph or walk it comes, and its steps once it is shrunk."""

    where: str
    steps: int


@dataclass(frozen=True)
class BugRow:
    """One bug. `judge` has the rules that fail on its traces; `fate` says what became of it there."""

    name: str
    fate: str
    judge: tuple[str, ...] = ()
    cover: Caught | None = None
    walks: Caught | None = None

    @property
    def survives(self) -> bool:
        """Whether no column catches it."""
        return not (self.judge or self.cover or self.walks)


@dataclass(frozen=True)
class Matrix:
    """All rows, and what they went through: rules of the judge, rules of impl.rules, rows of their tables."""

    seed: int
    rows: tuple[BugRow, ...]
    judged: frozenset[str] = field(default_factory=frozenset)
    applied: frozenset[str] = field(default_factory=frozenset)


def text_of(row: BugRow, says: str) -> str:
    """A bug on a line."""
    seen = [f"judge: {', '.join(row.judge[:4]) or row.fate}"]
    seen += [
        f"{name}: " + ("not seen" if caught is None else f"{caught.where}, {caught.steps} steps")
        for name, caught in (("cover", row.cover), ("walks", row.walks))
    ]
    return f"{row.name:<32} {' | '.join(seen)}\n{'':<32} {says}"


def wrong(matrix: Matrix, rules: Mapping[str, str], elsewhere: Mapping[str, str]) -> list[str]:
    """What fails the build, a line each. `rules`: what has to be exercised, `elsewhere`: what is not here, and where."""
    lines = [f"{row.name} survives: no column catches it" for row in matrix.rows if row.survives]
    exercised = matrix.judged | matrix.applied
    lines += [
        f"{rule} is exercised by nothing; {says}"
        for rule, says in rules.items()
        if rule not in exercised and rule not in elsewhere
    ]
    lines += [f"{rule} is exercised here after all: take it out of ELSEWHERE" for rule in elsewhere if rule in exercised]
    return lines


def differences(kept: Matrix, found: Matrix) -> list[str]:
    """What is not as it was kept, a line each."""
    before, now = {row.name: row for row in kept.rows}, {row.name: row for row in found.rows}
    lines = [f"{name}: expected {before.get(name)}; seen {row}" for name, row in now.items() if before.get(name) != row]
    lines += [f"{name}: expected {row}; seen nothing" for name, row in before.items() if name not in now]
    for name, was, seen in (("judged", kept.judged, found.judged), ("applied", kept.applied, found.applied)):
        if was != seen:
            lines.append(f"{name}: expected {_words(was - seen)} more and {_words(seen - was)} less")
    return lines


def _words(words: Collection[str]) -> str:
    return ", ".join(sorted(words)) or "nothing"


def to_json(matrix: Matrix) -> str:
    """The file."""
    rows = {row.name: {key: value for key, value in asdict(row).items() if key != "name"} for row in matrix.rows}
    document = {"seed": matrix.seed, "judged": sorted(matrix.judged), "applied": sorted(matrix.applied), "rows": rows}
    return json.dumps(document, indent=1) + "\n"


def of_json(text: str) -> Matrix:
    """What a file holds."""
    document = json.loads(text)
    rows = tuple(
        BugRow(name, row["fate"], tuple(row["judge"]), _caught(row["cover"]), _caught(row["walks"]))
        for name, row in document["rows"].items()
    )
    return Matrix(document["seed"], rows, frozenset(document["judged"]), frozenset(document["applied"]))


def _caught(found: Mapping[str, str | int] | None) -> Caught | None:
    return None if found is None else Caught(str(found["where"]), int(found["steps"]))


def expected() -> Matrix:
    """Return the one that comes with the suite."""
    return of_json(MATRIX_FILE.read_text(encoding="utf-8"))
