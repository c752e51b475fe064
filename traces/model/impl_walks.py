"""Traces of the implementation itself, run beyond what can be explored: more brokers, longer logs, more epochs.

Rules of this file

1. A walk takes steps of impl.cluster.cluster one at a time; nothing is precomputed and no graph bounds it.
2. An action is drawn first, then one of its instances, so an action with many variants (a crash for each checkpointed high
   watermark) is not more likely. Controller, crash and loss are rarer than data, as in practice; otherwise hardly a record
   would be committed between two elections.
3. Walk n of seed s depends on (s, n) alone.
"""

import random
from collections.abc import Iterator

from tidegauge.impl.explored.explore import Bounds, Walker
from tidegauge.impl.profiles import Rules
from tidegauge.traces.model.behaviour import trace_of_path
from tidegauge.traces.schema import Trace

BOUNDS = Bounds(brokers=3, max_log=12, max_epoch=8, max_crashes=3, max_fetch=4)
STEPS = 120
RARE = (
    "FenceBroker",
    "UnfenceBroker",
    "FenceElr",
    "UnfenceElr",
    "Register",
    "ElectPreferred",
    "Crash",
    "CrashAndLose",
    "Stop",
    "ShrinkIsr",
    "LoseResponse",
    "Duplicate",
    "LoseDisk",
    "Read",
    "DeleteRecords",
)
OFTEN = 8
"""How many times likelier any other action is than a rare one."""

FORGET = 200
"""Walks after which the walker's cache of values is dropped: it must not grow with the number of walks."""


def impl_walks(
    count: int,
    *,
    bounds: Bounds = BOUNDS,
    profile: str = "fetch-truncation",
    steps: int = STEPS,
    seed: int = 0,
    rules: Rules | None = None,
) -> Iterator[Trace]:
    """Yield `count` traces; `rules` replaces some of the implementation's rules, to seed a fault."""
    for number in range(count):
        if number % FORGET == 0:
            walker = Walker(bounds, profile, rules)
        rng = random.Random(f"{seed}/{number}")
        yield one_walk(walker, rng, steps, f"walk-{seed}-{number}", profile)


def one_walk(walker: Walker, rng: random.Random, steps: int, name: str, profile: str) -> Trace:
    """Walk once from the initial state; end early where no transition is possible."""
    cluster = walker.start
    states, labels = [walker.view(cluster)], []
    for _ in range(steps):
        transitions: dict[str, list[int]] = {}
        enabled = walker.transitions(cluster)
        for index, transition in enumerate(enabled):
            transitions.setdefault(transition.label[0], []).append(index)
        if not transitions:
            break
        names = list(transitions)
        action = rng.choices(names, [1 if name in RARE else OFTEN for name in names])[0]
        transition = enabled[rng.choice(transitions[action])]
        cluster = walker.take(cluster, transition)
        labels.append(transition.label)
        states.append(walker.view(cluster))
    bounds = walker.start.model.bounds
    twice, min_isr = bounds.max_duplicates > 0, bounds.min_insync_replicas
    return trace_of_path(states, labels, name=name, profile=profile, source="impl", min_isr=min_isr, duplicates=twice)
