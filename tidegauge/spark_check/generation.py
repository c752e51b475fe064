"""Generate interleavings on Spark: a task gets a seed and writes a Parquet file.

Rules of this file

1. The driver explores the model once and broadcasts the graph as arrays; a task gets the order and the number of its part.
2. Parts share no walk (traces.from_model.walks, rule 4), so what the tasks write is distinct without comparing it.
3. A part is written under another name and renamed when it is complete: an interrupted generation goes on where it was.

A *walk* is one path through the state graph of a model, an interleaving. An *order* says which walks to make. A *part* is
one of its files; it has its number, from 0, and the number of walks that `Order.share` gives it. An `EdgeTable` is the graph
as arrays. `Generated` has the counts of a part: traces, events, duplicates.
"""

import hashlib
import json
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from tidegauge.impl.explorer.explore import Bounds, explore
from tidegauge.spark_check.session import session, task_failures
from tidegauge.spark_check.storage import AnyPath, writable_directory
from tidegauge.spark_check.worker import atomic_write, remove_leftovers
from tidegauge.traces.from_model.walks import STEPS, EdgeTable, Generated, edge_table, generate, spellable
from tidegauge.util.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BOUNDS = Bounds(brokers=2, max_log=2, max_epoch=1, max_crashes=1)
"""The model Small: about 22,000 states and 107,000 transitions."""


@dataclass(frozen=True)
class Order:
    """A generation: `walks` distinct interleavings of a model, in `parts` files, a power of two."""

    walks: int
    bounds: Bounds = BOUNDS
    profile: str = "fetch-truncation"
    steps: int = STEPS
    """the most that a walk has"""
    seed: int = 0
    parts: int = 4

    def __post_init__(self) -> None:
        """Raise UsageError for a number of parts that is no power of two."""
        spellable(self.parts)

    def share(self, part: int) -> int:
        """Return how many walks a part has, counted from 0: all parts have them in equal shares, but for rounding."""
        return self.walks * (part + 1) // self.parts - self.walks * part // self.parts

    def file(self, part: int) -> str:
        """Return the file name of a part: walks-<hash of the order>-<part>-of-<parts>.parquet."""
        mark = hashlib.sha256(repr(self).encode()).hexdigest()[:8]
        return f"walks-{mark}-{part:05}-of-{self.parts:05}.parquet"

    def table(self) -> EdgeTable:
        """Explore the model; return its graph as arrays."""
        graph = explore(self.bounds, self.profile)
        return edge_table(graph.states, graph.labels, graph.edges, self.profile, source=f"walks of {self.bounds}")


def generate_on_spark(
    directory: str | AnyPath, order: Order, master: str = "local[2]", spark: "SparkSession | None" = None
) -> list[Generated]:
    """Write the parts of `order` to `directory`, and return what was made of each; the same order gives the same bytes.

    `spark` is a session to use; without one, a session on `master` is made. Raises UsageError if the directory has parts of
    another order.
    """
    target = writable_directory(directory)
    refuse_others(target, order)
    with ExitStack() as stack:
        running = spark if spark is not None else stack.enter_context(session(master))
        context = running.sparkContext
        # The graph goes to each worker once, not with each task; a task is one part.
        shared = context.broadcast(order.table())
        parts = context.parallelize(range(order.parts), order.parts)
        with task_failures(target):
            generated: list[Generated] = parts.map(lambda part: write_part(shared.value, target, order, part)).collect()
        shared.unpersist()
    # Every task has ended: unfinished files belong to attempts that were killed.
    for part in range(order.parts):
        remove_leftovers(target, order.file(part))
    return generated


def refuse_others(target: AnyPath, order: Order) -> None:
    """Raise UsageError if a directory has parts of another generation: judged together they would count as one."""
    # The hash of the order in a file name (Order.file).
    own_hash = order.file(0).split("-")[1]
    others = sorted(path.name for path in target.glob("walks-*.parquet") if path.name.split("-")[1] != own_hash)
    if others:
        raise UsageError(
            f"{target}: expected no parts but those of this generation, seen {others[0]} of another (seed, model or size "
            "differ); name another directory"
        )


def write_part(table: EdgeTable, target: AnyPath, order: Order, part: int) -> Generated:
    """Write one part with a note beside it, a JSON file that says what was made; or read the note of an earlier run."""
    path = target / order.file(part)
    note = path.with_name(f"{path.name.removesuffix('.parquet')}.json")
    # Made by an earlier run. Both must exist: an attempt that was killed between the two renames leaves the note alone.
    if path.exists() and note.exists():
        # With the path as this run names it.
        return replace(Generated(**json.loads(note.read_bytes())), path=str(path))
    # The note is renamed first, so that a part never stands without one.
    with atomic_write(path) as unfinished:
        made = generate(
            table, unfinished, order.share(part), steps=order.steps, seed=order.seed, part=part, parts=order.parts
        )
        made = replace(made, path=str(path))
        with atomic_write(note) as note_file:
            note_file.write_text(json.dumps(asdict(made)), encoding="utf-8")
    return made
