"""What the replays share: a sequence goes through the implementation step by step until something differs."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tidegauge.impl.messages import Batch
from tidegauge.impl.storage.epoch_cache import EpochCache, EpochEntries
from tidegauge.impl.storage.log import Log

Sequence = dict[str, Any]
Step = dict[str, Any]


class Disagreement(NamedTuple):
    """The first field of a step in which the implementation differs from Kafka's class."""

    seed: int
    step: int
    op: Any
    field: str
    kafka: Any
    ours: Any

    def __str__(self) -> str:
        where = f"seed {self.seed}, step {self.step}, {self.op}"
        return f"{where}: {self.field}: expected {self.kafka}, as Kafka has it; seen {self.ours}"


class Tally(NamedTuple):
    """What a whole table came to."""

    sequences: int
    steps: int
    excluded: Counter[str]
    disagreements: list[Disagreement]


def compare(seed: int, number: int, op: Any, kafka: dict[str, Any], ours: dict[str, Any]) -> Disagreement | None:
    """The first field that differs."""
    for field, expected in kafka.items():
        if ours[field] != expected:
            return Disagreement(seed, number, op, field, expected, ours[field])
    return None


Replay = Callable[[Sequence, Counter[str]], tuple[int, Disagreement | None]]
"""A sequence -> how many steps were compared, and the disagreement that ended it."""


def run(sequences: Iterable[Sequence], replay: Replay) -> Tally:
    """Replay a table."""
    count, steps, excluded, disagreements = 0, 0, Counter[str](), []
    for sequence in sequences:
        count += 1
        compared, disagreement = replay(sequence, excluded)
        steps += compared
        if disagreement is not None:
            disagreements.append(disagreement)
    return Tally(count, steps, excluded, disagreements)


def log_of(state: dict[str, Any]) -> Log:
    """A log as the tables print it, everything on disk."""
    entries = EpochEntries(tuple(e for e, _ in state["cache"]), tuple(s for _, s in state["cache"]))
    batches = tuple(Batch(*b) for b in state["batches"])
    return Log(state["ls"], state["leo"], state["hw"], batches, EpochCache(entries, entries))


def pairs(cache: EpochCache) -> list[list[int]]:
    """A cache as the tables print it."""
    return [list(entry) for entry in cache.memory.pairs()]


def java_name(error: Exception | None, full: dict[str, str]) -> str | None:
    """The Java class an error of impl stands for."""
    return None if error is None else full[type(error).__name__]


EXCEPTIONS = {
    "IllegalArgumentError": "java.lang.IllegalArgumentException",
    "IllegalStateError": "java.lang.IllegalStateException",
    "OffsetOutOfRangeError": "org.apache.kafka.common.errors.OffsetOutOfRangeException",
    "OffsetsOutOfOrderError": "org.apache.kafka.storage.internals.log.OffsetsOutOfOrderException",
    "UnexpectedAppendOffsetError": "org.apache.kafka.server.storage.log.UnexpectedAppendOffsetException",
}
