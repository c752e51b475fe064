"""Agreement of the judge with TLC, the referee, over right traces and mutants: who accepts what, and why they differ."""

import argparse
import sys
import time

from benchmarks.machine import line, load, machine
from validation.tlc_oracle import CASES, referee, table, unexplained


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--traces", type=int, default=750, help="traces of each case, half of them mutants (default 750)")
    options.add_argument("--seed", type=int, default=0)
    arguments = options.parse_args()
    started = time.monotonic()
    ruled = list(referee(arguments.traces, seed=arguments.seed, echo=lambda line: print(line, file=sys.stderr, flush=True)))
    print(f"{len(ruled):,} traces of {len(CASES)} cases, seed {arguments.seed}: {', '.join(case.name for case in CASES)}\n")
    print(table(ruled))
    left = unexplained(ruled)
    for one in left:
        print(f"not explained: {one.says}")
    print(f"{time.monotonic() - started:.0f} s; {line(machine())}, load {load()}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
