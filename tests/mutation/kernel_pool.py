"""Where the corpus for mutants of the judge is chosen from.

Rules of this file

1. The stock: every trace that a test of the kernel judges, written by hand for a rule, the golden traces, those of
   tests/conformance/independent and kernel_apart; none longer than SHORT.
2. Variants of the stock are drawn with the seed: one thing changed, null or left out, another config, the nodes the other
   way round. Wrong next events of bounded models come as they are, and so do runs of every generation; others are written
   as an unreliable source would (tests.mutation.kernel_runs). Families of short traces come by their theme.
3. Every trace is as NDJSON says it back, so that the corpus can be written down. Lines that are missing, as the numbers of
   the others show, are no loss of it.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import hand
from tests.mutation.kernel_apart import apart
from tests.mutation.kernel_families import families
from tests.mutation.kernel_heirs import heirs
from tests.mutation.kernel_little_families import little_families
from tests.mutation.kernel_runs import mixed_profile, unreliable_runs
from tidegauge.conformance.engine.judge import REPORTS
from tidegauge.impl.profiles import PROFILES
from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats import ndjson
from tidegauge.traces.from_model.behaviour import DUPLICATES, numbered
from tidegauge.traces.problems import lost
from tidegauge.traces.schema import FIELDS, REASSIGNED, UNCLEAN_ELECTIONS, WHOLE, Config, FieldKind, Trace
from validation.golden import DIRECTORY
from validation.partial_traces import ONE_BY_ONE
from validation.product.automaton import Automaton
from validation.product.false_accepts import candidates_of
from validation.product.models import MODELS, Model
from validation.random_runs import CASES
from validation.trace_mutants import mutants

KERNEL_TESTS = Path(__file__).parents[1] / "conformance" / "judge"
INDEPENDENT = Path(__file__).parents[1] / "conformance" / "independent"
SHORT = 60
"""Events of a trace at most."""
VARIED = 30
"""Events of a trace at most of which every value is varied."""
DRAWN = {"config": 300, "mixed": 300, "changed": 300, "null": 150, "left out": 350, "turned round": 1700}
"""How many variants of each kind are drawn."""
RUNS, STEPS = 1, 40
"""Runs of each case beyond the graphs, and the steps of each."""
UNRELIABLE = 18
"""Unreliable runs of each case."""
THEMES = 40
"""Traces of each family."""
SHORT_TERMS = 400
"""Runs of many short terms."""
BEHAVIOURS, EVENTS = 5, 30
"""Random behaviours of each small model, and the events of each at most."""
OFFERED_MODELS = ("fetch-truncation, no crash", "kip320, no crash", "Refines", "HwOnly", "Kip101", "AcksAll")


def stock(kept: Sequence[Trace]) -> list[Trace]:
    """The traces that tests and third parties have written, then those that are `kept`; each once, in a fixed order."""
    found = _judged_by_tests()
    paths = (*sorted(DIRECTORY.glob("*.ndjson")), *sorted(INDEPENDENT.rglob("*.ndjson")))
    found += [trace for path in paths for trace in ndjson.read(path).traces] + apart()
    return once((*(trace for trace in found if 0 < len(trace.events) <= SHORT), *kept))


def variants(of: Sequence[Trace], seed: int) -> list[Trace]:
    """Drawn from all the variants of these traces, kind by kind; then runs and wrong next events."""
    rng = random.Random(seed)
    varied = [trace for trace in of if len(trace.events) <= VARIED]
    made: dict[str, Callable[[], list[Trace]]] = {
        "config": lambda: [other for trace in of for other in _other_configs(trace)],
        "mixed": lambda: [
            replace(trace, config=replace(trace.config, profile=mixed_profile(trace.config, rng))) for trace in of
        ],
        "changed": lambda: [mutant.trace for trace in varied for mutant in mutants(trace)],
        "null": lambda: [other for trace in varied for other in _nulls(trace)],
        "left out": lambda: [less for trace in varied for leave_out in ONE_BY_ONE for _, less in leave_out(trace)],
        "turned round": lambda: [_turned_round(trace) for trace in of],
    }
    drawn = [trace for kind, count in DRAWN.items() for trace in rng.sample(made[kind](), count)]
    runs = [trace for case in CASES for trace in case.walks(RUNS, STEPS, seed)]
    wrong = [trace for model in MODELS if model.name in OFFERED_MODELS for trace in wrong_next(model, rng)]
    themes = [*families(THEMES, seed), *little_families(THEMES, seed), *(heirs(rng) for _ in range(SHORT_TERMS))]
    return once((*drawn, *runs, *unreliable_runs(UNRELIABLE, seed), *wrong, *themes))


def wrong_next(model: Model, rng: random.Random) -> Iterator[Trace]:
    """Random behaviours of a model, each with an event behind it that is any of the model's or one of their changes."""
    found = model.automaton()
    offers = candidates_of(found.events, model.config)
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


def _judged_by_tests() -> list[Trace]:
    """What goes through hand.judged while the tests of the kernel run. Raises ValueError where one of them fails."""
    seen: list[Trace] = []

    def seeing(traces: Sequence[Trace], config: Config) -> Any:
        seen.extend(replace(trace, config=config) for trace in traces)
        return to_columns(traces, config)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hand, "to_columns", seeing)
        quiet = ("-q", "-p", "no:cacheprovider", "-n0", "-W", "ignore::pytest.PytestAssertRewriteWarning")
        ended = pytest.main([*quiet, "-m", "not long", str(KERNEL_TESTS)])
    if ended != pytest.ExitCode.OK:
        raise ValueError(f"expected the tests in {KERNEL_TESTS} to pass; seen exit code {ended}; mend that first")
    return seen


def once(traces: Iterable[Trace]) -> list[Trace]:
    """Each trace of which NDJSON says every event back, once, wherever it was read."""
    found: dict[str, Trace] = {}
    for trace in traces:
        text = "\n".join(ndjson.lines(_nowhere(replace(trace, name="", tp="t-0"))))
        if text not in found:
            read = ndjson.read_bytes(text.encode(), "")
            if not lost(read.problems) and len(read.traces) == 1:
                found[text] = _nowhere(read.traces[0])
    return list(found.values())


def _nowhere(trace: Trace) -> Trace:
    return replace(trace, events=tuple(replace(event, at="") for event in trace.events))


def _other_configs(trace: Trace) -> Iterator[Trace]:
    """The same events under another generation, another min.insync.replicas, or reported otherwise."""
    config = trace.config
    kinds = sorted({event.event for event in trace.events})
    others = [replace(config, lag_rule=not config.lag_rule)]
    others += [replace(config, profile=name) for name in PROFILES if name != config.profile]
    others += [replace(config, min_isr=least) for least in range(1, len(config.nodes) + 1) if least != config.min_isr]
    said: list[dict[str, Any]] = [{DUPLICATES: True}, {WHOLE: False}, {REASSIGNED: True}, {UNCLEAN_ELECTIONS: False}]
    said += [{REPORTS: [other for other in kinds if other != kind]} for kind in kinds]
    others += [replace(config, extra={**config.extra, **more}) for more in said]
    return (replace(trace, config=other) for other in others)


def _nulls(trace: Trace) -> Iterator[Trace]:
    """Each number in turn is known to be undefined."""
    for at, event in enumerate(trace.events):
        for name in event.fields:
            if FIELDS[name].kind is FieldKind.INT:
                without = replace(event, fields={**event.fields, name: None})
                yield replace(trace, events=(*trace.events[:at], without, *islice(trace.events, at + 1, None)))


def _turned_round(trace: Trace) -> Trace:
    """The judge counts the nodes from the other end."""
    return replace(trace, config=replace(trace.config, nodes=tuple(reversed(trace.config.nodes))))
