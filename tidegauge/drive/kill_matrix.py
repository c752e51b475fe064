"""The kill matrix: a row for every known bug, a column for every kind of test, and whether that test catches the bug.

A bug is a wrong rule, another value of a profile's switch, or a wrong step (what is in neither); it is put into a broker of
its own. A cover is paths that take every local step of a graph of the model. A path is shrunk by leaving out steps while the
broker still differs on it. The matrix is committed as kill_matrix.json, and a run is compared with that.

Of a DrivenBug `right` is the generation that it is a deviation from; `rules`, `switches` and `wrong_step` are its wrong
rules, its other values of switches, and its wrong step or None. `at` of a difference is the number of the step that differs.

Rules of this file

1. Three columns: the judge on traces of a cluster that has the bug, the covers of the graphs, random walks. For the last two
   the broker is a program behind stdio, as anybody's.
2. Graphs are taken from the smallest on, walks from the first on, until one differs; what differs is shrunk.
3. A wrong step is a step of the contract: the cluster that traces come from does not take it, so nothing is judged. A switch
   may change what no rule of the judge is about, or nothing within the smaller bounds: its row says so (`fate`), and the
   other columns must catch it.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tidegauge.conformance.judge.rulebook import rulebook
from tidegauge.conformance.kill_matrix import GROWING, Fate, Judged, judged_within, shown_in
from tidegauge.drive.broker.applied_rules import ROWS, T_TABLE, Count, counting, with_callees
from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.known_bugs import BUGS, DrivenBug
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.paths.graphs import USUAL, cover_of
from tidegauge.drive.paths.walks import walk
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.run import shrunk
from tidegauge.drive.transports.stdio import StdioNode
from tidegauge.impl.explorer.faults import FAULTS, RevealingModel
from tidegauge.impl.profiles import Rules
from tidegauge.util.python_processes import python_command

# The kill matrix as a committed file: which column catches which bug, and in how many steps.
#
# Rules of this part
#
# 1. The file holds what is the same on every machine; how long it took is in docs/drive.md.
# 2. A bug that no column catches, a rule that nothing exercises and a result that is not the committed one fail the build,
#    each with a line.


MATRIX_FILE = Path(__file__).parent / "kill_matrix.json"


@dataclass(frozen=True)
class Caught:
    """A path on which a broker with a bug differs: from which graph or walk it comes, and its steps once it is shrunk."""

    where: str
    steps: int


@dataclass(frozen=True)
class BugRow:
    """One bug, and what each column found; None or () is nothing.

    `judge` has the rules of the judge that fail on its traces; `fate` says in words what became of the bug in that column.
    `cover` and `walks` have the first path that catches it.
    """

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
    """All rows, the seed of the walks, and what was exercised on the way.

    `judged`: the rules of the judge that were decided; `applied`: the rules of impl.rules, and rows of their tables.
    """

    seed: int
    rows: tuple[BugRow, ...]
    judged: frozenset[str] = field(default_factory=frozenset)
    applied: frozenset[str] = field(default_factory=frozenset)


def text_of(row: BugRow, sentence: str) -> str:
    """Return a bug's row as two lines: its columns, with four rules of the judge at most, and a sentence about the bug."""
    columns = [f"judge: {', '.join(row.judge[:4]) or row.fate}"]
    columns += [
        f"{name}: " + ("not seen" if caught is None else f"{caught.where}, {caught.steps} steps")
        for name, caught in (("cover", row.cover), ("walks", row.walks))
    ]
    return f"{row.name:<32} {' | '.join(columns)}\n{'':<32} {sentence}"


def build_failures(matrix: Matrix, rules: Mapping[str, str], elsewhere: Mapping[str, str]) -> list[str]:
    """Return a line for each bug that survives, and for each rule that no bug exercises though it must be.

    `rules`: by rule that must be exercised, a sentence about it; `elsewhere`: by rule that no bug exercises, the file of the
    tests that do. An entry of `elsewhere` that a bug exercises by now is a failure, too.
    """
    lines = [f"{row.name} survives: no column catches it" for row in matrix.rows if row.survives]
    exercised = matrix.judged | matrix.applied
    lines += [
        f"{rule} is exercised by nothing; {sentence}"
        for rule, sentence in rules.items()
        if rule not in exercised and rule not in elsewhere
    ]
    lines += [f"{rule} is exercised here after all: take it out of ELSEWHERE" for rule in elsewhere if rule in exercised]
    return lines


def differences(committed: Matrix, matrix: Matrix) -> list[str]:
    """Return a line for each row that is not as in the committed matrix, and for each of the two sets that is not."""
    before, now = {row.name: row for row in committed.rows}, {row.name: row for row in matrix.rows}
    lines = [f"{name}: expected {before.get(name)}; seen {row}" for name, row in now.items() if before.get(name) != row]
    lines += [f"{name}: expected {row}; seen nothing" for name, row in before.items() if name not in now]
    for name, was, now_is in (("judged", committed.judged, matrix.judged), ("applied", committed.applied, matrix.applied)):
        if was != now_is:
            lines.append(f"{name}: expected {_listed(was - now_is)} more and {_listed(now_is - was)} less")
    return lines


def _listed(names: Collection[str]) -> str:
    """Return names in alphabetical order with commas between, or "nothing"."""
    return ", ".join(sorted(names)) or "nothing"


def to_json(matrix: Matrix) -> str:
    """Return the text of kill_matrix.json for a matrix; `of_json` reads it back."""
    rows = {row.name: {key: value for key, value in asdict(row).items() if key != "name"} for row in matrix.rows}
    document = {"seed": matrix.seed, "judged": sorted(matrix.judged), "applied": sorted(matrix.applied), "rows": rows}
    return json.dumps(document, indent=1) + "\n"


def of_json(text: str) -> Matrix:
    """Read a matrix from the text of kill_matrix.json."""
    document = json.loads(text)
    rows = tuple(
        BugRow(name, row["fate"], tuple(row["judge"]), _caught(row["cover"]), _caught(row["walks"]))
        for name, row in document["rows"].items()
    )
    return Matrix(document["seed"], rows, frozenset(document["judged"]), frozenset(document["applied"]))


def _caught(document: Mapping[str, str | int] | None) -> Caught | None:
    """Read the value of one column of a row; null is a column that does not catch the bug."""
    return None if document is None else Caught(str(document["where"]), int(document["steps"]))


def expected() -> Matrix:
    """Read the committed matrix, which a new one is compared with."""
    return of_json(MATRIX_FILE.read_text(encoding="utf-8"))


# The rules that the kill matrix has to exercise, and those that other tests exercise.


TO_EXERCISE: Mapping[str, str] = MappingProxyType(
    {
        **{rule.id: rule.sentence for rule in rulebook().values()},
        **{name: f"a decision of impl.rules:{name}" for name in Rules._fields},
        **dict.fromkeys(T_TABLE, "a row of the truncation table"),
    }
)
"""The rules of the judge, those of impl, the rows of the T-table; each with what it is."""

_JUDGE = "tests/conformance/judge/test_rules.py"
_SCENARIOS = "conformance/scenarios/"

ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "TRUNC-02": f"{_SCENARIOS}021_ex_leader_truncates_in_two_rounds.txt",
        "TRUNC-05": f"{_SCENARIOS}010_hw_only_loses_committed.txt",
        "T2": f"{_SCENARIOS}100_fast_leader_changes_fork.txt",
        **dict.fromkeys(("APPEND-03", "EPOCH-06", "CTRL-08", "CTRL-09", "LOG-02", "SEQ-01"), _JUDGE),
        "epoch_for_offset": "tests/impl/storage/test_epoch_cache.py",
    }
)
"""What no bug here exercises, with the file that does. No rounds of TRUNC-02 fit the bounds, a bug of the generation that
takes T2 is seen before; the others need fields that traces of the model do not have."""


ORDER = ("isr", "acks", "stops", "crash", "starts", "two", "waits", "both", "session_starts", "sessions", "session_waits")
GRAPHS = ("small", *sorted(USUAL, key=ORDER.index))
"""The names of the graphs whose covers are played, from the smallest graph on."""

WALKS = 600
"""How many random walks a bug gets."""
CHUNK = 60
"""How many cases are played together before it is looked whether one of them differs."""
_SHRINKING = 60.0
"""Seconds to shrink a path: more than it takes on a busy machine, as lengths are compared with those that are kept."""

NO_TRACES, NO_RULE_FAILS = "no traces", "no rule fails"
"""What `BugRow.fate` says of a bug that nothing was judged of, and of one whose traces no rule of the judge rejects."""


class Killed(NamedTuple):
    """A row, the rules of the judge that were decided for it, and the seconds that the cover and the walks took.

    The seconds include shrinking the path.
    """

    row: BugRow
    judged: frozenset[str]
    seconds: tuple[float, float]


def kill(bug: DrivenBug, seed: int, count: Count) -> Killed:
    """Compute all three columns of one bug. The rules that the right reference applies are added to `count`."""
    judged = _judged(bug, seed)
    with StdioNode(python_command("tidegauge.drive.transports.serve", "--fault", bug.name)) as node:
        began = time.monotonic()
        cover = _first_caught(node, bug, _cover_chunks(bug), count)
        between = time.monotonic()
        walks = _first_caught(node, bug, _walk_chunks(bug, seed), count)
        ended = time.monotonic()
    # A wrong step: it has the other two columns alone.
    if judged is None:
        return Killed(BugRow(bug.name, NO_TRACES, (), cover, walks), frozenset(), (between - began, ended - between))
    fate = NO_RULE_FAILS if judged.fate is Fate.SURVIVED else judged.fate.value
    row = BugRow(bug.name, fate, tuple(judged.by_rule), cover, walks)
    return Killed(row, judged.exercised, (between - began, ended - between))


def _judged(bug: DrivenBug, seed: int) -> Judged | None:
    """Judge traces of a cluster that has the bug; return None for a wrong step, which no cluster takes (rule 3)."""
    if bug.wrong_step is not None:
        return None
    fault = FAULTS.get(bug.name)
    # Only a fault names models that show it. Any other bug is looked for in all but the largest one (rule 3): the bounds in
    # GROWING are in the order of their size.
    smaller = (RevealingModel(bounds, bug.right.name) for bounds in GROWING[:-1])
    places = shown_in(fault) if fault is not None else tuple(smaller)
    return judged_within(places, bug.rules, bug.switches, seed)


def _cover_chunks(bug: DrivenBug) -> Iterator[tuple[str, Sequence[BrokerCase]]]:
    """Yield the name of a graph with some cases of its cover at a time, for all graphs.

    They are few at a time because the search ends with the first that differ.
    """
    for name in GRAPHS:
        cases = cover_of(name, bug.right).cases
        for first in range(0, len(cases), CHUNK):
            yield name, cases[first : first + CHUNK]


def _walk_chunks(bug: DrivenBug, seed: int) -> Iterator[tuple[str, Sequence[BrokerCase]]]:
    """Yield "from walk N on" with the next random walks, some at a time, up to WALKS."""
    for first in range(0, WALKS, CHUNK):
        yield f"from walk {first} on", [walk(seed, number, bug.right) for number in range(first, first + CHUNK)]


def _first_caught(
    node: StdioNode, bug: DrivenBug, chunks: Iterable[tuple[str, Sequence[BrokerCase]]], count: Count
) -> Caught | None:
    """Play chunks of cases until one shows the bug; return where that chunk is from, and the length of the shrunk path.

    `node` has the bug. `chunks`: pairs of where some cases are from, and the cases. Returns None if no chunk shows the bug.
    """
    for where, cases in chunks:
        differences = play(node, cases, reference(bug.right, counting(count))).differences
        if differences:
            # The earliest difference leaves the least to shrink.
            shortest = shrunk(node, min(differences, key=lambda difference: difference.at), reference(bug.right), _SHRINKING)
            # A difference that does not show when it is played again catches nothing.
            if shortest is not None:
                return Caught(where, shortest.at)
    return None


def kill_all(seed: int, names: Sequence[str] = (), echo: Callable[[Killed], None] = lambda _: None) -> Matrix:
    """Compute the rows of all known bugs, or of those of some names; call `echo` with each as soon as it is there."""
    count: Count = Counter()
    killed = []
    for name in names or BUGS:
        killed.append(kill(BUGS[name], seed, count))
        echo(killed[-1])
    judged = frozenset(rule for bug in killed for rule in bug.judged)
    # `count` is by (rule, row of its table). The rules that a rule calls are not counted themselves.
    applied = with_callees({name for name, _ in count})
    rows = {row for rule, row in count if rule in ROWS}
    return Matrix(seed, tuple(bug.row for bug in killed), judged, frozenset(applied | rows))
