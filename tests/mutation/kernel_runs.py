"""Runs of every generation as an unreliable source writes them: where hand-made traces do not get, for mutants of the judge.

Rules of this file

1. A run goes on long enough for one epoch to follow another; some of its values, fields, lines and kinds are changed or
   left out at random, and sometimes its Config is that of another cluster. So one trace comes by many combinations of what
   is known and unknown.
2. Every choice comes from the seed.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tidegauge.impl.profiles import PROFILES
from tidegauge.traces.from_model.behaviour import DUPLICATES
from tidegauge.traces.schema import FIELDS, REASSIGNED, UNCLEAN_ELECTIONS, Config, Event, FieldKind, Trace
from validation.partial_traces import kinds_left_out, lines_left_out
from validation.random_runs import CASES

STEPS = 45
SILENT = (0.0, 0.0, 0.03, 0.1, 0.25)
"""How likely a field is left out of an event."""


def unreliable_runs(count: int, seed: int) -> Iterator[Trace]:
    """So many runs of each case."""
    rng = random.Random(seed)
    for case in CASES:
        for run in case.walks(count, STEPS, seed):
            yield unreliable(run, rng)


def unreliable(run: Trace, rng: random.Random) -> Trace:
    """The run with some of it changed or left out."""
    events = list(run.events)
    for at in rng.sample(range(len(events)), min(len(events), rng.choice((0, 0, 1, 1, 2, 4)))):
        events[at] = _changed(events[at], rng)
    silent = rng.choice(SILENT)
    events = [_silent(event, silent, rng) for event in events]
    made = replace(run, events=tuple(events), config=other_config(run.config, rng))
    if rng.random() < 0.3:
        made = lines_left_out(made, set(rng.sample(range(len(events)), min(len(events), rng.randint(1, 3)))))
    if rng.random() < 0.35:
        kinds = sorted({event.event for event in made.events})
        made = kinds_left_out(made, set(rng.sample(kinds, min(len(kinds), rng.randint(1, 2)))))
    return made


def _changed(event: Event, rng: random.Random) -> Event:
    """A number is another, or undefined; or a flag, or a set of brokers, is another."""
    name = rng.choice(sorted(event.fields)) if event.fields else ""
    value = event.fields.get(name)
    kind = FIELDS[name].kind if name else None
    if kind is FieldKind.INT and isinstance(value, int):
        return replace(event, fields={**event.fields, name: rng.choice((value - 1, value + 1, value + 2, None))})
    if isinstance(value, bool):
        return replace(event, fields={**event.fields, name: not value})
    if isinstance(value, tuple) and name in ("isr", "live", "replicas", "elr"):
        return replace(event, fields={**event.fields, name: value[:-1]})
    return event


def _silent(event: Event, likely: float, rng: random.Random) -> Event:
    return replace(event, fields={name: value for name, value in event.fields.items() if rng.random() >= likely})


def other_config(config: Config, rng: random.Random) -> Config:
    extra: dict[str, Any] = dict(config.extra)
    if rng.random() < 0.15:
        extra[DUPLICATES] = True
    if rng.random() < 0.15:
        extra[REASSIGNED] = True
    if rng.random() < 0.15:
        extra[UNCLEAN_ELECTIONS] = False
    profile = rng.choice(sorted(PROFILES)) if rng.random() < 0.2 else config.profile
    if rng.random() < 0.1:
        profile = mixed_profile(config, rng)
    nodes = config.nodes if rng.random() < 0.5 else tuple(reversed(config.nodes))
    least = rng.randint(1, len(nodes)) if rng.random() < 0.4 else config.min_isr
    lag = config.lag_rule != (rng.random() < 0.25)
    return replace(config, extra=extra, profile=profile, nodes=nodes, min_isr=least, lag_rule=lag)


def mixed_profile(config: Config, rng: random.Random) -> str:
    """Each broker has a profile of its own, as while a cluster is upgraded."""
    return ",".join(f"{node}={rng.choice(sorted(PROFILES))}" for node in config.nodes)
