"""The kill matrix: every known bug in a broker of its own, and who catches it.

Rules of this file

1. Three columns: the judge on traces of a cluster that has the bug, the covers of the graphs, random walks. For the last two
   the broker is a program behind stdio, as anybody's.
2. Graphs are taken from the smallest on, walks from the first on, until one differs; what differs is shrunk.
3. A wrong step is the contract's: the cluster that traces come from does not take it, so the judge has no say. A switch may
   change what no rule of the judge is about, or nothing within the smaller bounds: that is told, and the others must see it.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tidegauge.conformance.kill_matrix import GROWING, Fate, Judged, judged_within, shown_in
from tidegauge.drive.broker.applied_rules import ROWS, Count, counting, with_callees
from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.known_bugs import BUGS, DrivenBug
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.bugs.matrix_file import BugRow, Caught, Matrix
from tidegauge.drive.paths.graphs import USUAL, cover_of
from tidegauge.drive.paths.walks import walk
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.shrink import shrunk
from tidegauge.drive.transports.stdio import StdioNode
from tidegauge.impl.explorer.faults import FAULTS, RevealingModel
from tidegauge.util.python_processes import python_command

ORDER = ("isr", "acks", "stops", "crash", "starts", "two", "waits", "both", "session_starts", "sessions", "session_waits")
GRAPHS = ("small", *sorted(USUAL, key=ORDER.index))
"""From the smallest on."""

WALKS = 600
CHUNK = 60

NO_TRACES, NO_RULE_FAILS = "no traces", "no rule fails"


class Killed(NamedTuple):
    """A row, which rules were exercised for it, and how long cover and walks took until the shrunk path was there."""

    row: BugRow
    judged: frozenset[str]
    seconds: tuple[float, float]


def kill(bug: DrivenBug, seed: int, count: Count) -> Killed:
    """Compute all three columns of one bug."""
    judged = _traces(bug, seed)
    with StdioNode(python_command("tidegauge.drive.transports.serve", "--fault", bug.name)) as node:
        began = time.monotonic()
        cover = _driven(node, bug, _cover(bug), count)
        between = time.monotonic()
        walks = _driven(node, bug, _walks(bug, seed), count)
        ended = time.monotonic()
    if judged is None:
        return Killed(BugRow(bug.name, NO_TRACES, (), cover, walks), frozenset(), (between - began, ended - between))
    fate = NO_RULE_FAILS if judged.fate is Fate.SURVIVED else judged.fate.value
    row = BugRow(bug.name, fate, tuple(judged.by_rule), cover, walks)
    return Killed(row, judged.exercised, (between - began, ended - between))


def _traces(bug: DrivenBug, seed: int) -> Judged | None:
    """Judge traces of a cluster that has the bug; None for a wrong step, which no cluster takes (rule 3)."""
    if bug.wrong_step is not None:
        return None
    fault = FAULTS.get(bug.name)
    places = (
        shown_in(fault) if fault is not None else tuple(RevealingModel(bounds, bug.right.name) for bounds in GROWING[:-1])
    )
    return judged_within(places, bug.rules, bug.switches, seed)


def _cover(bug: DrivenBug) -> Iterator[tuple[str, Sequence[BrokerCase]]]:
    for name in GRAPHS:
        cases = cover_of(name, bug.right).cases
        for first in range(0, len(cases), CHUNK):
            yield name, cases[first : first + CHUNK]


def _walks(bug: DrivenBug, seed: int) -> Iterator[tuple[str, Sequence[BrokerCase]]]:
    for first in range(0, WALKS, CHUNK):
        yield f"from walk {first} on", [walk(seed, number, bug.right) for number in range(first, first + CHUNK)]


def _driven(
    node: StdioNode, bug: DrivenBug, sources: Iterable[tuple[str, Sequence[BrokerCase]]], count: Count
) -> Caught | None:
    """Play sources of cases until one shows the bug; return where, and the length of the shrunk path."""
    for where, cases in sources:
        differences = play(node, cases, reference(bug.right, counting(count))).differences
        if differences:
            shortest = shrunk(node, min(differences, key=lambda difference: difference.at), reference(bug.right))
            # A difference that does not come again is none.
            if shortest is not None:
                return Caught(where, shortest.at)
    return None


def kill_all(seed: int, names: Sequence[str] = (), echo: Callable[[Killed], None] = lambda _: None) -> Matrix:
    """Compute the rows of all bugs, or of those that are named, one after the other."""
    count: Count = Counter()
    killed = []
    for name in names or BUGS:
        killed.append(kill(BUGS[name], seed, count))
        echo(killed[-1])
    judged = frozenset(rule for bug in killed for rule in bug.judged)
    applied = with_callees({name for name, _ in count})
    rows = {row for rule, row in count if rule in ROWS}
    return Matrix(seed, tuple(bug.row for bug in killed), judged, frozenset(applied | rows))
