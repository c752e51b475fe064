"""`python -m benchmarks.schedules [RUNS]`: the judge over runs of the implementation, all generations, 200 steps each.

RUNS of each case (conformance.beyond.CASES), 680 if not said: more than 10,000 in all, on two processes. It ends with 1
when a rule fails that may not, or when a known loss is not seen.
"""

import os
import sys

from conformance.beyond import CASES, STEPS, judge_runs

RUNS = 680
PROCESSES = 2
SEED = 0


def main(arguments: list[str]) -> int:
    """Print a line for each case, then the sum."""
    runs = int(arguments[0]) if arguments else RUNS
    print(f"seed {SEED}, {runs:,} runs of {STEPS} steps for each of {len(CASES)} cases", flush=True)
    processes = min(PROCESSES, os.cpu_count() or 1)
    done = judge_runs(runs, seed=SEED, processes=processes, echo=lambda line: print(line, flush=True))
    wrong = [found.case.name for found in done if not found.right]
    total, events = sum(found.runs for found in done), sum(found.events for found in done)
    seconds = sum(found.seconds for found in done)
    print(f"{total:,} runs, {events:,} events in {seconds:.0f} s on {processes} processes")
    print(f"wrong: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
