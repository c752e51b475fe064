"""A log as its epoch cache and its end, and the common part of two logs: the vocabulary of the bounded proofs.

Nothing here is shared with impl.rules: a record's epoch, well-formedness and the longest common prefix are stated from
their meaning, so a rule and its statement cannot be wrong together.

The epoch cache of a log is two parallel columns: `epochs`, and `starts`, the offset of the first record of each. A symbolic
log has z3 terms in them. What "states" something returns a z3 formula; what "assumes" it adds the formula to the path, the
run of the lemma (`engine/paths.py`): `path.assume(formula, premise)`, where a run that drops the premise of that name skips
it. `path.once(name, build)` builds a large term on the first path only and uses it again on the others.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import z3

from tidegauge.spec.proofs.engine.paths import ProofPath
from tidegauge.spec.proofs.engine.symbolic import all_of, evaluate, higher, lower

NO_EPOCH = -1

INCREASING = "caches strictly increase"
COVERING = "caches cover their logs"


@dataclass(frozen=True)
class LogValue:
    """A log with plain numbers, which counter-models show and scenarios replay."""

    epochs: tuple[int, ...]
    starts: tuple[int, ...]
    log_start: int
    log_end: int

    def __str__(self) -> str:
        """Return the log as a counter-model prints it: its epoch cache, log start and log end."""
        cache = ", ".join(f"({epoch}, {start})" for epoch, start in zip(self.epochs, self.starts, strict=True))
        start = f"log start {self.log_start}, " if self.log_start else ""
        return f"cache [{cache}], {start}LEO {self.log_end}"


@dataclass(frozen=True)
class SymbolicLog:
    """A replica's log, with z3 terms for all numbers; how many cache entries there are is known."""

    epochs: list[Any]
    starts: list[Any]
    log_start: Any
    log_end: Any

    def __len__(self) -> int:
        """Return the number of cache entries."""
        return len(self.epochs)

    def epoch_at(self, offset: Any) -> Any:
        """Return the epoch of the record at `offset`: that of the last entry that starts at or below it."""
        epoch: Any = z3.IntVal(NO_EPOCH)
        for e, s in zip(self.epochs, self.starts, strict=True):
            epoch = z3.If(s <= offset, e, epoch)
        return epoch

    def latest(self) -> Any:
        """Return the last cached epoch, NO_EPOCH when there is none."""
        return self.epochs[-1] if self.epochs else z3.IntVal(NO_EPOCH)

    def strictly_increasing(self) -> Any:
        """State that epochs and starts rise from entry to entry."""
        return all_of(a < b for column in (self.epochs, self.starts) for a, b in pairwise(column))

    def covers(self) -> Any:
        """State that the first entry begins at the log start, and none beyond the log end; no entries, no records."""
        if not self.epochs:
            return self.log_start == self.log_end
        return z3.And(self.starts[0] == self.log_start, self.starts[-1] <= self.log_end)

    def well_formed(self) -> Any:
        """State all that is true of a real log: its ends are in order, its cache strictly increases and covers it."""
        return z3.And(self.log_start >= 0, self.log_start <= self.log_end, self.strictly_increasing(), self.covers())

    def describe(self, model: Any) -> "LogValue":
        """Return the log with the numbers that it has in a z3 `model`."""
        return LogValue(
            tuple(evaluate(model, self.epochs)),
            tuple(evaluate(model, self.starts)),
            evaluate(model, self.log_start),
            evaluate(model, self.log_end),
        )


def fresh_log(path: ProofPath, name: str, entries: int) -> SymbolicLog:
    """Return a log with `entries` cache entries. It is assumed that no number is negative and that its ends are in order."""
    # Counter-models show the log as a whole (`path.show`), and not each number of it.
    log = SymbolicLog(
        [path.integer(f"{name}.epoch{i}", low=0, show=False) for i in range(entries)],
        [path.integer(f"{name}.start{i}", low=0, show=False) for i in range(entries)],
        path.integer(f"{name}.log_start", low=0, show=False),
        path.integer(f"{name}.log_end", low=0, show=False),
    )
    path.show(name, log)
    path.assume(log.log_start <= log.log_end)
    return log


def increasing_log(path: ProofPath, name: str, entries: int) -> SymbolicLog:
    """Return a log with `entries` cache entries that strictly increase (a premise); they need not cover the log."""
    log = fresh_log(path, name, entries)
    path.assume(path.once(f"{name} increases", log.strictly_increasing), INCREASING)
    return log


def well_formed_log(path: ProofPath, name: str, entries: int) -> SymbolicLog:
    """Return a log with `entries` cache entries that strictly increase and cover the log (two premises)."""
    log = increasing_log(path, name, entries)
    path.assume(path.once(f"{name} covers", log.covers), COVERING)
    return log


def same_epochs(a: SymbolicLog, b: SymbolicLog) -> list[tuple[Any, Any]]:
    """Return pairs of an offset and the statement that both logs hold the same epoch there, for all offsets that matter."""
    # Epochs change only where an entry starts: logs that agree at these offsets agree everywhere in between.
    return [(o, a.epoch_at(o) == b.epoch_at(o)) for o in [comparable_from(a, b), *a.starts, *b.starts]]


def agree_below(low: Any, high: Any, same: list[tuple[Any, Any]]) -> Any:
    """State that two logs hold the same epoch at every offset in [low, high).

    `same` is their `same_epochs`; `low` is at or above the first offset that both may hold.
    """
    return all_of(z3.Implies(z3.And(low <= o, o < high), equal) for o, equal in same)


def comparable_from(a: SymbolicLog, b: SymbolicLog) -> Any:
    """Return the first offset that both logs may still hold."""
    return higher(a.log_start, b.log_start)


def common_prefix_end(a: SymbolicLog, b: SymbolicLog) -> Any:
    """Return the end of the longest common prefix: the first comparable offset where they differ, else the lower log end."""
    low = comparable_from(a, b)
    end = lower(a.log_end, b.log_end)
    # The lowest offset of a difference met so far, as a term.
    first_difference = end
    for o, equal in same_epochs(a, b):
        differs_earlier = z3.And(low <= o, o < end, z3.Not(equal), o < first_difference)
        first_difference = z3.If(differs_earlier, o, first_difference)
    return first_difference


def one_past(a: SymbolicLog, b: SymbolicLog) -> Any:
    """State that two logs have one past: an epoch in both caches has one start, and the logs agree below it.

    Both as far as the logs reach back. Convergence needs it of logs before a round, and rounds preserve it.
    """
    # `same` has pairs: an offset, and the statement that both have a record of the same epoch there.
    low, same = comparable_from(a, b), same_epochs(a, b)
    # For each entry (epoch ea, start sa) of a and each entry (eb, sb) of b.
    return all_of(
        z3.Implies(ea == eb, z3.And(_one_start(a, b, sa, sb), agree_below(low, lower(sa, sb), same)))
        for ea, sa in zip(a.epochs, a.starts, strict=True)
        for eb, sb in zip(b.epochs, b.starts, strict=True)
    )


def _one_start(a: SymbolicLog, b: SymbolicLog, start_a: Any, start_b: Any) -> Any:
    """State that an epoch starts at the same offset in both logs, as far as can be seen.

    A log whose records below its log start are deleted gives that log start as the start of the epoch it falls into.
    """
    return higher(start_a, b.log_start) == higher(start_b, a.log_start)


def records_match(a: SymbolicLog, b: SymbolicLog) -> Any:
    """State Raft's log matching on records: where both hold a record of the same epoch, they agree on everything before.

    Weaker than `one_past`: it constrains no entry that has no record yet.
    """
    low, same = comparable_from(a, b), same_epochs(a, b)
    end = lower(a.log_end, b.log_end)
    return all_of(z3.Implies(z3.And(low <= o, o < end, equal), agree_below(low, o, same)) for o, equal in same)
