"""What mutants of the judge are held against: traces that are right, wrong, and partly told.

Rules of this file

1. The same seed gives the same traces. What the unchanged kernel says of them is asked in the same run: nothing is
   pinned that a change of a rule would have to pin anew.
2. The sources differ in what they reach: hand-written traces of each rule, golden traces and their mutants, runs of every
   generation with clients, lost disks and log starts that move, traces with parts left out, and wrong next events behind
   random behaviours of bounded models.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tests.conformance.kernel.test_rules import CASES as BY_RULE
from tidegauge.conformance.evidence.beyond import CASES
from tidegauge.conformance.evidence.golden import DIRECTORY
from tidegauge.conformance.evidence.mutation import mutants
from tidegauge.conformance.evidence.omissions import ONE_BY_ONE
from tidegauge.conformance.evidence.product.automaton import Automaton
from tidegauge.conformance.evidence.product.models import MODELS, Model
from tidegauge.conformance.evidence.product.offers import offers_of
from tidegauge.traces.columns import Columns, to_columns
from tidegauge.traces.files import ndjson
from tidegauge.traces.model.behaviour import numbered
from tidegauge.traces.schema import Config, Trace

RUNS, STEPS = 6, 60
"""Runs of each case beyond the graphs, and the steps of each."""
BEHAVIOURS, EVENTS = 150, 30
"""Random behaviours of each small model, and the events of each at most."""
OMITTED = 600
CHANGED = 900
OFFERED_MODELS = ("fetch-truncation, no crash", "kip320, no crash", "Refines", "HwOnly", "Kip101", "AcksAll")


@dataclass(frozen=True)
class Judged:
    """Traces of one config as columns."""

    columns: Columns
    config: Config


def corpus(seed: int) -> list[Judged]:
    """Everything, in an order that finds most mutants early."""
    rng = random.Random(seed)
    golden = [trace for path in sorted(DIRECTORY.glob("*.ndjson")) for trace in ndjson.read(path).traces]
    by_hand = [
        Trace(rule, "t-0", config, numbered(events))
        for rule, (good, bad, config) in BY_RULE.items()
        for events in (good, bad)
    ]
    runs = [trace for case in CASES for trace in case.walks(RUNS, STEPS, seed)]
    left_out = [omitted for trace in golden for leave_out in ONE_BY_ONE for _, omitted in leave_out(trace)]
    changed = [mutant.trace for trace in (*golden, *by_hand) for mutant in mutants(trace)]
    parts = (
        by_hand,
        golden,
        *(wrong_next(model, rng) for model in MODELS if model.name in OFFERED_MODELS),
        runs,
        rng.sample(changed, min(CHANGED, len(changed))),
        rng.sample(left_out, min(OMITTED, len(left_out))),
        [replace(trace, config=replace(trace.config, lag_rule=True)) for trace in (*by_hand, *golden, *runs)],
    )
    return [judged for part in parts for judged in _by_config(part)]


def wrong_next(model: Model, rng: random.Random) -> Iterator[Trace]:
    """Random behaviours of a model, each with an event behind it that is any of the model's or one of their changes."""
    found = model.automaton()
    offers = offers_of(found.events, model.config)
    for number in range(BEHAVIOURS):
        events = [found.events[symbol] for symbol in _behaviour(found, rng)]
        last = rng.choice(offers).event
        yield Trace(f"{model.name} {number}", "t-0", model.config, numbered((*found.initial, *events, last)))


def _behaviour(found: Automaton, rng: random.Random) -> Iterator[int]:
    state = 0
    for _ in range(rng.randrange(EVENTS)):
        first, end = int(found.first[state]), int(found.first[state + 1])
        if first == end:
            return
        edge = rng.randrange(first, end)
        yield int(found.symbol[edge])
        state = int(found.target[edge])


def _by_config(traces: Iterable[Trace]) -> Iterator[Judged]:
    of: defaultdict[str, list[Trace]] = defaultdict(list)
    for trace in traces:
        of[repr(trace.config)].append(trace)
    for some in of.values():
        yield Judged(to_columns(some, some[0].config), some[0].config)


def said(judged: Judged, judge: Any) -> tuple[Any, ...]:
    """All that the judge says: tallies, first failures, last states."""
    found = judge(judged.columns, judged.config, final=len(judged.columns.trace_starts))
    return found.tallies, found.failures, found.final
