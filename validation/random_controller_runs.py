"""`python -m validation.random_controller_runs [RUNS [SEED]]`: random runs of the controller, one partition
and its brokers (impl.explorer.controller_model), far beyond the bounds of its models, under their invariants.

RUNS of each case, 200 if not said, SEED 0. Repaired, nothing may break but what is known and passed over; as Kafka 4.3.1 is,
a case must show what it names. A run is named by its case, seed and number, and is the same each time. It ends with 1 when a
case is not right; the shortest run that broke something is printed.
"""

import random
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass

from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.errors import KafkaError
from tidegauge.impl.explorer.controller_model import (
    CONTROL_INVARIANTS,
    ControlBounds,
    ControlCluster,
    control_successors,
    control_view,
    control_violation,
    initial_control_cluster,
)
from tidegauge.impl.explorer.describe import control_label_text, control_view_text
from tidegauge.impl.profiles import ELR, ELR_REPAIRED, Profile

RUNS = 200
STEPS = 80
THROWS = "throws"
"""What is broken where a request makes the controller throw that the model has no answer for."""

TARGETS = ((0,), (0, 1), (0, 1, 2), (3, 1, 2), (1, 3), (3,))
FAR = ControlBounds((0, 1, 2), 4, max_log=3, max_partition_epoch=40, max_stops=40)
REASSIGNED = FAR._replace(targets=TARGETS, min_isrs=(1, 2, 3), unregisters=True)
DISKS = FAR._replace(brokers=3, min_isrs=(1, 2, 3), disks_fail=True)

UNMARKED = frozenset({"LeaderCompleteness", "SomebodyMayLead"})
"""Where unclean election is enabled, a cancelled reassignment may elect a replica that lacks records without marking it;
and any replica may lead, so none is waited for."""

KAFKAS = frozenset({*CONTROL_INVARIANTS, THROWS})
"""Any of the findings."""


@dataclass(frozen=True)
class WalkCase:
    """Bounds and a profile. `known` is passed over; `shown` may be broken, and something of it must, in 200 runs."""

    name: str
    bounds: ControlBounds
    profile: Profile
    known: frozenset[str] = frozenset()
    shown: frozenset[str] = frozenset()

    def run(self, seed: int, number: int) -> "Walk":
        """Take one run, up to the first broken invariant."""
        chance = random.Random(f"{self.name} {seed} {number}")
        state, labels = initial_control_cluster(self.bounds, self.profile), list[Label]()
        checked = tuple(name for name in CONTROL_INVARIANTS if name not in self.known)
        for _ in range(STEPS):
            kinds: defaultdict[str, list[tuple[Label, ControlCluster]]] = defaultdict(list)
            try:
                for label, after in control_successors(state):
                    kinds[label[0]].append((label, after))
            except KafkaError as problem:  # F6: the controller throws where Kafka's does
                return Walk(number, THROWS, str(problem), tuple(labels), state)
            if not kinds:
                break
            # First a kind of step, then one of that kind: else the kinds with many arguments crowd out the rare ones.
            label, state = chance.choice(kinds[chance.choice(sorted(kinds))])
            labels.append(label)
            violation = control_violation(state, checked)
            if violation is not None:
                return Walk(number, violation.invariant, "", tuple(labels), state)
        return Walk(number, "", "", tuple(labels), state)


@dataclass(frozen=True)
class Walk:
    """A run: what broke, "" for nothing, and how it went."""

    number: int
    broken: str
    says: str
    labels: tuple[Label, ...]
    state: ControlCluster


CASES = (
    WalkCase("repaired, reassigned", REASSIGNED, ELR_REPAIRED),
    WalkCase("repaired, beside partition 0", REASSIGNED._replace(partition_zero=3), ELR_REPAIRED),
    WalkCase("repaired, disks", DISKS, ELR_REPAIRED),
    WalkCase("repaired, unclean", REASSIGNED._replace(unclean=True), ELR_REPAIRED, UNMARKED),
    WalkCase("repaired, deleted", REASSIGNED._replace(deletes=True), ELR_REPAIRED),
    WalkCase("Kafka 4.3.1, reassigned", REASSIGNED._replace(partition_zero=3), ELR, shown=KAFKAS),
    WalkCase("Kafka 4.3.1, disks", DISKS, ELR, shown=KAFKAS),
)


def main(arguments: list[str]) -> int:
    """Print a line for each case, then the wrong ones."""
    runs, seed = (*map(int, arguments), *(RUNS, 0)[len(arguments) :])
    print(f"seed {seed}, {runs:,} runs of at most {STEPS} steps for each of {len(CASES)} cases", flush=True)
    wrong = [case.name for case in CASES if not walked(case, runs, seed)]
    print(f"wrong: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0


def walked(case: WalkCase, runs: int, seed: int) -> bool:
    """Print what the runs of a case showed; return whether that is right."""
    begin, steps = time.perf_counter(), 0
    broken: Counter[str] = Counter()
    shortest: Walk | None = None
    for number in range(runs):
        walk = case.run(seed, number)
        steps += len(walk.labels)
        broken[walk.broken] += bool(walk.broken)
        if walk.broken and walk.broken not in case.shown and (shortest is None or len(walk.labels) < len(shortest.labels)):
            shortest = walk
    summary = ", ".join(f"{name} in {count:,}" for name, count in sorted(broken.items()) if count) or "nothing broken"
    print(f"{case.name}: {runs:,} runs, {steps:,} steps: {summary} ({time.perf_counter() - begin:.1f} s)", flush=True)
    if shortest is not None:
        print(f"  run {seed}-{shortest.number}: {shortest.broken} {shortest.says}")
        print("\n".join(f"  {control_label_text(label)}" for label in shortest.labels))
        print(control_view_text(control_view(shortest.state)), flush=True)
    # Few runs may miss what Kafka has; a full count must show it, or the walks have become too tame.
    is_shown = bool(case.shown & set(broken)) or not case.shown or runs < RUNS
    return shortest is None and is_shown


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
