"""Chooses the corpus that mutants of the judge are held against (tests.mutation.kernel_corpus), and writes it.

    python -m tests.mutation.kernel_choice [--mutants 250] [--seed 5]

Rules of this file

1. The stock is in the corpus, and so is what was chosen before: a test that is new adds its traces with --mutants 0. A
   variant is when it notices a mutant that nothing before it notices: a greedy cover of what can be noticed at all.
2. The mutants it is chosen by are drawn with the seed. Another seed in tests.mutation.kernel holds others against it: what
   the corpus is worth shows there.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import CodeType
from typing import Any

from tests.mutation import kernel_corpus
from tests.mutation.kernel import differs, sample
from tests.mutation.kernel_mutants import KernelMutant, code_of, function_of, functions_of, in_place, modules
from tests.mutation.kernel_pool import stock, variants
from tests.mutation.prepared import Prepared, prepared
from tidegauge.traces.schema import Trace

Line = tuple[str, str, int]
"""Module, function, and the line in the text of the function."""


def cover(tried: Sequence[KernelMutant], of_stock: Sequence[Trace], pool: Sequence[Trace]) -> tuple[list[Trace], int]:
    """Of the pool, what notices mutants that the stock does not; and how many nothing notices."""
    tables = [prepared("", [trace]) for trace in (*of_stock, *pool)]
    expected = [table.said() for table in tables]
    running = lines_run(tables)
    latest: list[int] = []
    unnoticed = 0
    for number, mutant in enumerate(tried, 1):
        reach = set(running[mutant.module, mutant.function, mutant.line])
        first = [at for at in latest if at in reach]
        rest = sorted(reach.difference(first), key=lambda at: (at >= len(of_stock), tables[at].events))
        with in_place(function_of(mutant.module, mutant.function), mutant.code):
            found = next((at for at in (*first, *rest) if differs(tables[at], expected[at])), None)
        if found is None:
            unnoticed += 1
        else:
            latest = [found, *(at for at in latest if at != found)]
        if number % 50 == 0:
            print(f"{number} of {len(tried)}: {unnoticed} unnoticed by all", flush=True)
    return [pool[at - len(of_stock)] for at in sorted(latest) if at >= len(of_stock)], unnoticed


def lines_run(tables: Sequence[Prepared]) -> defaultdict[Line, list[int]]:
    """The tables that run each line of the kernel, counted in the texts that its mutants are made from."""
    found: defaultdict[Line, list[int]] = defaultdict(list)
    hits: set[Line] = set()
    of: dict[CodeType, tuple[str, str]] = {}

    def trace(frame: Any, _event: str, _arg: object) -> Any:
        name = of.get(frame.f_code)
        if name is None:
            return None
        hits.add((*name, frame.f_lineno))
        return trace

    with ExitStack() as stack:
        for module in modules():
            for function, text in functions_of(module).items():
                code = code_of(text)
                of[code] = (module, function)
                stack.enter_context(in_place(function_of(module, function), code))
        for at, table in enumerate(tables):
            hits.clear()
            before = sys.gettrace()
            sys.settrace(trace)
            try:
                table.said()
            finally:
                sys.settrace(before)
            for hit in hits:
                found[hit].append(at)
    return found


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
