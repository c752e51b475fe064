"""Looks for traces that notice the mutants of the judge that the corpus does not, and adds them to it.

    python -m tests.mutation.kernel_search [--batches 40] [--seed 1] [--among FILE] [MODULE ...]

Rules of this file

1. The parents of a mutant's children are the traces for which it makes something come to anything else, though not what
   the judge says (tests.mutation.kernel_probes); where there are none, those of other mutants of its line. So children
   come nearer.
2. What notices a mutant is made as short as it can be and still notice it. Every choice comes from the seed.
"""

import argparse
import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tests.mutation import kernel_corpus
from tests.mutation.kernel import known_survivors
from tests.mutation.kernel_children import child
from tests.mutation.kernel_corpus import with_little_room
from tests.mutation.kernel_mutants import KernelMutant, all_mutants, function_of, in_place, modules
from tests.mutation.kernel_pool import once
from tests.mutation.kernel_probes import differing
from tests.mutation.kernel_watch import Watch, differs
from tests.mutation.prepared import Prepared, prepared
from tidegauge.traces.schema import Trace

CHILDREN = 300
"""Children of a batch."""
ASKED = 6
"""Of a batch a mutant is asked of so many tables at most, those that were made for it first."""
PARENTS = 40
"""Traces that are kept as parents of a mutant's children, the latest ones."""


class Search:
    """What is not noticed yet, and who comes near to noticing it."""

    def __init__(self, unnoticed: Iterable[KernelMutant], known: Sequence[Trace], seed: int) -> None:
        self.unnoticed = dict.fromkeys(unnoticed)
        self.known, self.rng = known, random.Random(seed)
        self.near: defaultdict[KernelMutant, list[Trace]] = defaultdict(list)
        self.found: list[tuple[Trace, list[KernelMutant]]] = []

    def begin(self, apart: Mapping[KernelMutant, Sequence[int]]) -> None:
        """The first parents, by the tables of which other mutants make anything else."""
        beside: defaultdict[tuple[str, str, int], set[int]] = defaultdict(set)
        for mutant, numbers in apart.items():
            beside[mutant.module, mutant.function, mutant.line].update(numbers)
        for mutant in self.unnoticed:
            numbers = apart.get(mutant) or sorted(beside[mutant.module, mutant.function, mutant.line])
            known = [self.known[number] for number in numbers if number < len(self.known)]
            self.near[mutant] = self.rng.sample(known, min(PARENTS, len(known)))

    def batch(self) -> int:
        """Make children, ask the mutants of them; how many are noticed now."""
        waiting = list(self.unnoticed)
        children: list[Trace] = []
        meant: defaultdict[KernelMutant, set[int]] = defaultdict(set)
        for _ in range(CHILDREN):
            mutant = self.rng.choice(waiting)
            parent = self.rng.choice(self.near[mutant] or self.known)
            meant[mutant].add(len(children))
            children.append(child(parent, self.rng.choice(self.known), self.rng))
        tables = [(number, table, table.said()) for number, trace in enumerate(children) for table in tables_of(trace)]
        apart = differing([table for _, table, _ in tables], waiting)
        noticed: defaultdict[int, list[KernelMutant]] = defaultdict(list)
        for mutant in waiting:
            numbers = apart.get(mutant, [])
            self.rng.shuffle(numbers)
            numbers.sort(key=lambda at: (tables[at][0] not in noticed, tables[at][0] not in meant[mutant]))
            with in_place(function_of(mutant.module, mutant.function), mutant.code):
                asked = numbers[:ASKED]
                found = next((at for at in asked if differs(tables[at][1], tables[at][2])), None)
            if found is not None and once([children[tables[found][0]]]):
                noticed[tables[found][0]].append(mutant)
            elif numbers:
                few = [children[tables[at][0]] for at in numbers[:2]]
                self.near[mutant] = [*self.near[mutant], *few][-PARENTS:]
        for number, mutants in noticed.items():
            self.found.append((children[number], mutants))
            for mutant in mutants:
                del self.unnoticed[mutant]
        return sum(map(len, noticed.values()))


def tables_of(trace: Trace) -> list[Prepared]:
    """What a trace is judged as by itself."""
    return [prepared("", [trace]), *with_little_room(trace)]


def notices(trace: Trace, mutants: Sequence[KernelMutant]) -> bool:
    """Whether it notices them all."""
    if not trace.events or len(once([trace])) != 1:
        return False
    for mutant in mutants:
        tables = [(table, table.said()) for table in tables_of(trace)]
        with in_place(function_of(mutant.module, mutant.function), mutant.code):
            if not any(differs(table, expected) for table, expected in tables):
                return False
    return True


def shortened(trace: Trace, mutants: Sequence[KernelMutant]) -> Trace:
    """The trace without what it does not need to notice these mutants."""
    size = len(trace.events) // 2
    while size > 0:
        at = 0
        while at < len(trace.events):
            less = replace(trace, events=(*trace.events[:at], *trace.events[at + size :]))
            if notices(less, mutants):
                trace = less
            else:
                at += size
        size //= 2
    return trace


def main(argv: Sequence[str]) -> int:
    """Search until it is over or interrupted; the corpus is written after each batch, and pinned at the end."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.kernel_search")
    parser.add_argument("modules", nargs="*", metavar="MODULE", default=modules())
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--among", type=Path, help="what tests.mutation.kernel printed, or this: only what is unnoticed there"
    )
    given = parser.parse_args(argv)
    known, listed = kernel_corpus.traces(), known_survivors()
    tried = [mutant for mutant in all_mutants(given.modules) if mutant.key not in listed]
    tables = kernel_corpus.tables(known)
    if given.among:
        seen = set(given.among.read_text(encoding="utf-8").splitlines())
        unnoticed = [mutant for mutant in tried if f"UNNOTICED  {mutant.key}" in seen]
    else:
        unnoticed = list(Watch(tables).unnoticed(tried))
    search = Search(unnoticed, known, given.seed)
    lines = {(mutant.module, mutant.function, mutant.line) for mutant in unnoticed}
    beside = [one for one in all_mutants(given.modules) if (one.module, one.function, one.line) in lines]
    search.begin(differing(tables, beside))
    print(f"{len(search.unnoticed)} unnoticed; seed {given.seed}", flush=True)
    more: list[Trace] = []
    with suppress(KeyboardInterrupt):
        for batch in range(given.batches):
            search.batch()
            more += [shortened(trace, mutants) for trace, mutants in search.found[len(more) :]]
            corpus = [replace(trace, name=f"{at:04}", tp="t-0") for at, trace in enumerate((*known, *more), 1)]
            kernel_corpus.write(corpus)
            print(f"batch {batch + 1}: {len(search.unnoticed)} unnoticed, {len(more)} traces", flush=True)
    for mutant in search.unnoticed:
        print(f"UNNOTICED  {mutant.key}\n           {mutant.becomes}")
    return kernel_corpus.main(["--pin"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
