"""Chooses the corpus that mutants of the judge are held against (tests.mutation.kernel_corpus), and writes it.

    python -m tests.mutation.kernel_choice [--mutants 250] [--seed 5]

Rules of this file

1. The stock is in the corpus, and so is what was chosen before: a test that is new adds its traces with --mutants 0. A
   variant is when it notices a mutant that nothing before it notices: a greedy cover of what can be noticed at all.
2. The mutants it is chosen by are drawn with the seed. tests.mutation.kernel holds all against it: what the corpus is worth
   shows there.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from tests.mutation import kernel_corpus
from tests.mutation.kernel import sample
from tests.mutation.kernel_corpus import tables
from tests.mutation.kernel_mutants import KernelMutant, modules
from tests.mutation.kernel_pool import stock, variants
from tests.mutation.kernel_watch import Watch
from tests.mutation.prepared import prepared
from tidegauge.traces.schema import Trace


def cover(tried: Sequence[KernelMutant], of_stock: Sequence[Trace], pool: Sequence[Trace]) -> tuple[list[Trace], int]:
    """Of the pool, what notices mutants that the stock does not; and how many nothing notices."""
    given = tables(of_stock)
    behind = len(given)
    watch = Watch([*given, *(prepared("", [trace]) for trace in pool)])
    unnoticed = len(list(watch.unnoticed(tried)))
    return [pool[at - behind] for at in sorted(watch.latest) if at >= behind], unnoticed


def main(argv: Sequence[str]) -> int:
    """Choose the corpus, write it and pin it."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.kernel_choice")
    parser.add_argument("--mutants", type=int, default=250)
    parser.add_argument("--seed", type=int, default=5)
    given = parser.parse_args(argv)
    of_stock = stock(kernel_corpus.traces() if kernel_corpus.TRACES.exists() else ())
    pool = variants(of_stock, given.seed) if given.mutants else []
    tried, whole = sample(modules(), given.mutants, given.seed)
    print(
        f"{len(of_stock)} traces and {len(pool)} variants; {len(tried)} of {whole:,} mutants, seed {given.seed}", flush=True
    )
    chosen, unnoticed = cover(tried, of_stock, pool)
    corpus = [replace(trace, name=f"{number:04}", tp="t-0") for number, trace in enumerate((*of_stock, *chosen), 1)]
    kernel_corpus.write(corpus)
    print(f"{len(chosen)} variants chosen; {unnoticed} mutants that nothing notices")
    return kernel_corpus.main(["--pin"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
