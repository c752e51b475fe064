"""A log as its epoch cache and its end, and what two logs have in common: the vocabulary of the bounded proofs.

Nothing here is shared with impl.rules: a record's epoch, well-formedness and the longest common prefix are stated from
their meaning, so a rule and its statement cannot be wrong together.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import z3

from spec.proofs.paths import Path
from spec.proofs.symbolic import all_of, evaluate, higher, lower

NO_EPOCH = -1

INCREASING = "caches strictly increase"
COVERING = "caches cover their logs"


@dataclass(frozen=True)
class LogValue:
    """A log with plain numbers: what counter-models show and scenarios replay."""

    epochs: tuple[int, ...]
    starts: tuple[int, ...]
    log_start: int
    log_end: int

    def __str__(self) -> str:
        cache = ", ".join(f"({e}, {s})" for e, s in zip(self.epochs, self.starts, strict=True))
        start = f"log start {self.log_start}, " if self.log_start else ""
        return f"cache [{cache}], {start}LEO {self.log_end}"


@dataclass(frozen=True)
class Log:
    """A replica's log: parallel cache entries, log start and log end. Members are terms; the length is known."""

    epochs: list[Any]
    starts: list[Any]
    log_start: Any
    log_end: Any

    def __len__(self) -> int:
        return len(self.epochs)

    def epoch_at(self, offset: Any) -> Any:
        """Epoch of the record at `offset`: the last entry that starts at or below it."""
        epoch: Any = z3.IntVal(NO_EPOCH)
        for e, s in zip(self.epochs, self.starts, strict=True):
            epoch = z3.If(s <= offset, e, epoch)
        return epoch

    def latest(self) -> Any:
        """Last cached epoch, NO_EPOCH when there is none."""
        return self.epochs[-1] if self.epochs else z3.IntVal(NO_EPOCH)

    def strictly_increasing(self) -> Any:
        """Epochs and starts rise from entry to entry."""
        return all_of(a < b for column in (self.epochs, self.starts) for a, b in pairwise(column))

    def covers(self) -> Any:
        """The first entry begins at the log start and none beyond the log end; a log without entries has no records."""
        if not self.epochs:
            return self.log_start == self.log_end
        return z3.And(self.starts[0] == self.log_start, self.starts[-1] <= self.log_end)

    def well_formed(self) -> Any:
        """Everything a log promises."""
        return z3.And(self.log_start >= 0, self.log_start <= self.log_end, self.strictly_increasing(), self.covers())

    def describe(self, model: Any) -> "LogValue":
        """The log in a model."""
        return LogValue(
            tuple(evaluate(model, self.epochs)),
            tuple(evaluate(model, self.starts)),
            evaluate(model, self.log_start),
            evaluate(model, self.log_end),
        )


def fresh_log(path: Path, name: str, entries: int) -> Log:
    """A log with `entries` cache entries and nothing assumed."""
    log = Log(
        [path.integer(f"{name}.epoch{i}", 0, show=False) for i in range(entries)],
        [path.integer(f"{name}.start{i}", 0, show=False) for i in range(entries)],
        path.integer(f"{name}.log_start", 0, show=False),
        path.integer(f"{name}.log_end", 0, show=False),
    )
    path.show(name, log)
    path.assume(log.log_start <= log.log_end)
    return log


def increasing_log(path: Path, name: str, entries: int) -> Log:
    """A log whose cache strictly increases; it need not cover the log."""
    log = fresh_log(path, name, entries)
    path.assume(log.strictly_increasing(), INCREASING)
    return log


def well_formed_log(path: Path, name: str, entries: int) -> Log:
    """A log with `entries` cache entries that keeps its promises."""
    log = increasing_log(path, name, entries)
    path.assume(log.covers(), COVERING)
    return log


def agree(a: Log, b: Log, low: Any, high: Any) -> Any:
    """Both logs hold the same epoch at every offset in [low, high).

    Epochs change only where an entry starts, so the offsets to compare are `low` and the starts: no quantifier.
    """
    points = [low, *a.starts, *b.starts]
    return all_of(z3.Implies(z3.And(low <= o, o < high), a.epoch_at(o) == b.epoch_at(o)) for o in points)


def comparable_from(a: Log, b: Log) -> Any:
    """First offset that both logs may still hold."""
    return higher(a.log_start, b.log_start)


def common_prefix_end(a: Log, b: Log) -> Any:
    """End of the longest common prefix: the first comparable offset where they differ, else the lower log end."""
    low = comparable_from(a, b)
    end = lower(a.log_end, b.log_end)
    found = end
    for o in [low, *a.starts, *b.starts]:
        differs = z3.And(low <= o, o < end, a.epoch_at(o) != b.epoch_at(o))
        found = z3.If(z3.And(differs, o < found), o, found)
    return found


def one_past(a: Log, b: Log) -> Any:
    """An epoch in both caches has one start (as far as both logs reach back) and agreeing logs below it."""
    low = comparable_from(a, b)
    return all_of(
        z3.Implies(ea == eb, z3.And(higher(sa, b.log_start) == higher(sb, a.log_start), agree(a, b, low, lower(sa, sb))))
        for ea, sa in zip(a.epochs, a.starts, strict=True)
        for eb, sb in zip(b.epochs, b.starts, strict=True)
    )


def records_match(a: Log, b: Log) -> Any:
    """Raft's log matching, on records: where both hold a record of the same epoch, they agree on everything before.

    Weaker than `one_past`: it says nothing about an entry that has no record yet.
    """
    low = comparable_from(a, b)
    end = lower(a.log_end, b.log_end)
    points = [low, *a.starts, *b.starts]
    return all_of(z3.Implies(z3.And(low <= o, o < end, a.epoch_at(o) == b.epoch_at(o)), agree(a, b, low, o)) for o in points)
