"""`python -m validation.schedules [RUNS]`: the judge over runs of the implementation, all generations,
200 steps each.

RUNS of each case (validation.random_runs.CASES), 680 if not said: more than 10,000 in all, on two processes. Then, for
each generation that loses committed records, the shortest run that does. It ends with 1 when a rule fails that may not, or
when a known loss is not seen.
"""

import os
import sys

from tidegauge.conformance.engine.judge import judge
from tidegauge.traces.columns import to_columns
from validation.random_runs import CASES, LOST, STEPS, judge_runs, shortest_loss

RUNS = 680
PROCESSES = 2
SEED = 0
LOSE = ("hw-only", "kip101", "kip279")


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
    wrong += [profile for profile in LOSE if not _seen(profile)]
    print(f"wrong: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0


def _seen(profile: str) -> bool:
    trace = shortest_loss(profile)
    failed = {failure.rule for failure in judge(to_columns([trace], trace.config), trace.config).failures}
    print(f"{profile}, shortest loss: {len(trace.events)} events, {', '.join(sorted(failed)) or 'no rule fails'}")
    return bool(failed & LOST)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
