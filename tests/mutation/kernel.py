"""Does a trace notice? Mutants of conformance/kernel, held against a fixed corpus of traces.

    python -m tests.mutation.kernel [--mutants 500] [--seed 2026] [MODULE ...]

Rules of this file

1. A mutant is a changed expression, a conjunct less, or a statement less: an update of what is known, or a check.
2. It is noticed when the judge says anything else of any trace of the corpus, or breaks. A child that does not end is killed
   and counts as noticed.
3. A mutant that a change of the corpus no longer lets through unnoticed raises the score; the bar follows it by hand.
"""

import argparse
import importlib
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.mutation.kernel_corpus import Judged, corpus, said
from tests.mutation.mutants import mutants_of, statements_less
from tests.mutation.run import Mutated
from tidegauge.conformance.judging.judge import judge
from tidegauge.spec.proofs.small_changes import Mutant

ROOT = Path(__file__).parents[2] / "conformance" / "kernel"
NOT_JUDGED = ("__init__", "compiled", "rule_ids", "fields", "groups", "memory")
"""No code of the judge, or code that the interpreted judge does not run."""
FORGOTTEN = ("tidegauge.conformance.kernel", "tidegauge.conformance.judging.judge")
SECONDS = 60
"""Of processor time for a mutant; the corpus takes a tenth of it."""
BAR = 60.0
"""Less than this part of the mutants noticed, in percent, fails the run."""


def all_mutants(modules: Sequence[str]) -> list[tuple[str, Mutant]]:
    """Every mutant of the modules, by name."""
    made = []
    for module in modules:
        text = (ROOT / f"{module}.py").read_text(encoding="utf-8")
        made += [(module, mutant) for mutant in (*mutants_of(text, calls=True), *statements_less(text))]
    return made


def noticed(module: str, source: str, traces: Sequence[Judged], expected: Sequence[object]) -> bool:
    """Whether a judge with this text of the module says anything else of any trace."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return status != 0
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))
    for name in [name for name in sys.modules if name.startswith(FORGOTTEN)]:
        del sys.modules[name]
    sys.meta_path.insert(0, Mutated(f"tidegauge.conformance.kernel.{module}", source))
    differs = True
    try:
        mutated = importlib.import_module("tidegauge.conformance.judging.judge").judge
        differs = any(repr(said(one, mutated)) != known for one, known in zip(traces, expected, strict=True))
    finally:
        os._exit(1 if differs else 0)


def main(argv: Sequence[str]) -> int:
    """Try a sample of the mutants, drawn with the seed; 1 when fewer are noticed than the bar says."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.kernel")
    modules = sorted(path.stem for path in ROOT.glob("*.py") if path.stem not in NOT_JUDGED)
    parser.add_argument("modules", nargs="*", metavar="MODULE", default=modules, help=f"some of {', '.join(modules)}")
    parser.add_argument("--mutants", type=int, default=500)
    parser.add_argument("--seed", type=int, default=2026)
    given = parser.parse_args(argv)
    if set(given.modules) - set(modules) or given.mutants < 1:
        parser.error(f"expected modules of the kernel and a count of mutants; seen {', '.join(given.modules)}")
    begin = time.monotonic()
    traces = corpus(given.seed)
    expected = [repr(said(one, judge)) for one in traces]
    events = sum(len(one.columns) for one in traces)
    whole = all_mutants(given.modules)
    tried = random.Random(given.seed).sample(whole, min(given.mutants, len(whole)))
    print(f"{len(traces)} tables, {events:,} events; {len(tried)} of {len(whole):,} mutants, seed {given.seed}", flush=True)
    unchanged = (ROOT / f"{given.modules[0]}.py").read_text(encoding="utf-8")
    if noticed(given.modules[0], unchanged, traces, expected):
        print("expected the same judgement from an unchanged kernel; seen another: the corpus or the reader is not the same")
        return 2
    survivors: Counter[str] = Counter()
    for module, mutant in tried:
        if not noticed(module, mutant.source, traces, expected):
            survivors[module] += 1
            print(f"UNNOTICED  {module}: {mutant.key}", flush=True)
    dead = len(tried) - survivors.total()
    score = 100 * dead / len(tried)
    by_module = ", ".join(f"{module} {count}" for module, count in survivors.most_common())
    print(
        f"{dead} of {len(tried)} noticed: {score:.1f} % ({time.monotonic() - begin:.0f} s); unnoticed: {by_module or 'none'}"
    )
    return 0 if score >= BAR else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
