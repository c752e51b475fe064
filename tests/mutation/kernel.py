"""Does a trace notice? Mutants of conformance/kernel, held against a fixed corpus of traces.

    python -m tests.mutation.kernel [--mutants 500] [--seed 2026] [MODULE ...]

Rules of this file

1. A mutant is a changed expression, a conjunct less, or a statement less: an update of what is known, or a check.
2. It is noticed when the judge says anything else of any trace of the corpus, breaks, or does not end.
3. Survivors that cannot be told from the original stand in kernel_survivors.toml, each with its reason. They count as
   neither noticed nor unnoticed. One that is listed and noticed fails the run.
"""

import argparse
import random
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutation.kernel_corpus import differences, tables, traces
from tests.mutation.kernel_mutants import DoesNotEndError, KernelMutant, all_mutants, at_most, function_of, in_place, modules
from tests.mutation.prepared import Prepared

SURVIVORS = Path(__file__).with_name("kernel_survivors.toml")
SECONDS = 2.0
"""Of processor time for a mutant and a table; the slowest takes a tenth of it."""
BAR = 68.0
"""Less than this part of the mutants noticed, in percent, fails the run. It follows the corpus up by hand; the aim is 97."""


def known_survivors() -> dict[str, str]:
    """Mutants that are the same behaviour, with the reason."""
    with SURVIVORS.open("rb") as file:
        return {f"{module}: {key}": reason for module, rows in tomllib.load(file).items() for key, reason in rows.items()}


def first_to_notice(mutant: KernelMutant, given: Sequence[Prepared], expected: Sequence[object]) -> int | None:
    """The first table of which the judge with this mutant says anything else; None when there is none."""
    with in_place(function_of(mutant.module, mutant.function), mutant.code):
        return next((at for at, table in enumerate(given) if differs(table, expected[at])), None)


def differs(table: Prepared, expected: object) -> bool:
    """Whether the judge as it now runs says anything else, breaks, or does not end."""
    try:
        with at_most(SECONDS):
            return table.said() != expected
    except (Exception, DoesNotEndError):  # a mutant may break in any way
        return True


def sample(names: Sequence[str], count: int, seed: int) -> tuple[list[KernelMutant], int]:
    """So many mutants of the modules, drawn with the seed, and how many there are."""
    whole = all_mutants(names)
    return random.Random(seed).sample(whole, min(count, len(whole))), len(whole)


def unnoticed(tried: Sequence[KernelMutant], given: list[Prepared]) -> Iterator[KernelMutant]:
    """Those that no table notices. What noticed the last one is asked first about the next."""
    expected = [table.said() for table in given]
    for number, mutant in enumerate(tried):
        if number > 0 and number % 50 == 0:
            print(f"           {number} of {len(tried)}", flush=True)
        at = first_to_notice(mutant, given, expected)
        if at is None:
            yield mutant
        else:
            given.insert(0, given.pop(at))
            expected.insert(0, expected.pop(at))


def main(argv: Sequence[str]) -> int:
    """Try a sample of the mutants; 1 when fewer are noticed than the bar says, or one that is listed is noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.kernel")
    parser.add_argument("modules", nargs="*", metavar="MODULE", default=modules(), help=f"some of {', '.join(modules())}")
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=2026)
    given = parser.parse_args(argv)
    if set(given.modules) - set(modules()) or given.mutants < 1:
        parser.error(f"expected modules of the kernel and a count of mutants; seen {', '.join(given.modules)}")
    if differences():
        print(
            "expected the judgements that are pinned; seen others (python -m tests.mutation.kernel_corpus); mend that first"
        )
        return 2
    begin, listed = time.monotonic(), known_survivors()
    corpus = tables(traces())
    tried, whole = sample(given.modules, given.mutants, given.seed)
    events = sum(len(trace.events) for trace in traces())
    print(f"{len(traces())} traces, {events:,} events; {len(tried)} of {whole:,} mutants, seed {given.seed}", flush=True)
    survivors: Counter[str] = Counter()
    same = set()
    for mutant in unnoticed(tried, corpus):
        if mutant.key in listed:
            same.add(mutant.key)
        else:
            survivors[mutant.module] += 1
            print(f"UNNOTICED  {mutant.key}\n           {mutant.becomes}", flush=True)
    stale = [mutant.key for mutant in tried if mutant.key in listed and mutant.key not in same]
    for key in stale:
        print(f"LISTED BUT NOTICED  {key}: remove it from {SURVIVORS.name}")
    changing = len(tried) - len(same)
    score = 100 * (changing - survivors.total()) / max(1, changing)
    by_module = ", ".join(f"{module} {count}" for module, count in survivors.most_common())
    print(
        f"{changing - survivors.total()} of {changing} noticed: {score:.1f} %; {len(same)} the same; "
        f"unnoticed: {by_module or 'none'} ({time.monotonic() - begin:.0f} s)"
    )
    return 0 if score >= BAR and not stale else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
