"""Does a trace notice? Mutants of conformance/judge, held against a fixed corpus of traces.

    python -m tests.mutation.kernel [--mutants 500 [--seed 2026]] [MODULE ...]

Rules of this file

1. A mutant is a changed expression, a conjunct less, or a statement less: an update of what is known, or a check.
2. It is noticed when the judge says anything else of any trace of the corpus, breaks, or does not end. Every mutant is
   tried, unless --mutants draws some with the seed.
3. Survivors that cannot be told from the original stand in kernel_survivors.toml, each with its reason. They count as
   neither noticed nor unnoticed. One that is listed and noticed fails the run.
"""

import argparse
import random
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.mutation.kernel_corpus import differences, tables, traces
from tests.mutation.kernel_mutants import KernelMutant, all_mutants, modules
from tests.mutation.kernel_watch import Watch

SURVIVORS = Path(__file__).with_name("kernel_survivors.toml")
BAR = 98.0
"""Less than this part of the mutants noticed, in percent, fails the run. It follows the corpus up by hand."""


def known_survivors() -> dict[str, str]:
    """Mutants that are the same behaviour, with the reason."""
    with SURVIVORS.open("rb") as file:
        return {f"{module}: {key}": reason for module, rows in tomllib.load(file).items() for key, reason in rows.items()}


def sample(names: Sequence[str], count: int | None, seed: int) -> tuple[list[KernelMutant], int]:
    """So many mutants of the modules, drawn with the seed, or all, and how many there are."""
    whole = all_mutants(names)
    return whole if count is None else random.Random(seed).sample(whole, min(count, len(whole))), len(whole)


def main(argv: Sequence[str]) -> int:
    """Try a sample of the mutants; 1 when fewer are noticed than the bar says, or one that is listed is noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.kernel")
    parser.add_argument("modules", nargs="*", metavar="MODULE", default=modules(), help=f"some of {', '.join(modules())}")
    parser.add_argument("--mutants", type=int, help="so many of them, drawn with the seed")
    parser.add_argument("--seed", type=int, default=2026)
    given = parser.parse_args(argv)
    if set(given.modules) - set(modules()) or (given.mutants is not None and given.mutants < 1):
        parser.error(f"expected modules of the kernel and a count of mutants; seen {', '.join(given.modules)}")
    if differences():
        print(
            "expected the judgements that are pinned; seen others (python -m tests.mutation.kernel_corpus); mend that first"
        )
        return 2
    begin, listed = time.monotonic(), known_survivors()
    watch = Watch(tables(traces()))
    tried, whole = sample(given.modules, given.mutants, given.seed)
    events = sum(len(trace.events) for trace in traces())
    drawn = "" if given.mutants is None else f", seed {given.seed}"
    print(f"{len(traces())} traces, {events:,} events; {len(tried):,} of {whole:,} mutants{drawn}", flush=True)
    survivors: Counter[str] = Counter()
    same = set()
    for mutant in watch.unnoticed(tried):
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
