"""What one broker does in the graphs of the model, and the nearest case of each: situations, rows of rules, unlogged steps.

situations.json has the models of two profiles; `python -m tidegauge.drive.paths.covered_model` makes it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from tidegauge.conformance.checking.situations import Guard, Situation, situation_codes
from tidegauge.drive.broker.applied_rules import Count, counting
from tidegauge.drive.broker.as_events import StepEvents, events_of_step
from tidegauge.drive.broker.contract import BROKER, BrokerCase, Opening
from tidegauge.drive.broker.reference import StepTaken
from tidegauge.drive.broker.state import ReferenceBroker
from tidegauge.drive.contract import Path as Steps
from tidegauge.drive.contract import Step, frozen
from tidegauge.drive.paths.cover import Edge, every_step
from tidegauge.drive.paths.graphs import GRAPHS
from tidegauge.impl.profiles import KIP320, SAFE, Profile
from tidegauge.traces.columns import to_columns
from tidegauge.traces.schema import Config, Trace

COVERED = ("two", "crash", "starts", "acks", "waits", "both", "stops", "isr")
"""The graphs of the model: those without fetch sessions, which change no situation."""
_FILE = "situations.json"


class Example(NamedTuple):
    """How many local steps of the model there are of something, and the shortest case that ends with one."""

    local_steps: int
    case: BrokerCase


class CoveredModel(NamedTuple):
    """What one broker does in a model: situations, steps that nobody logs, and rows of rules ("rule: row")."""

    profile: str
    situations: dict[Situation, Example]
    unlogged: dict[str, Example]
    rows: dict[str, Example]

    def guards(self) -> dict[Guard, Example]:
        """Return each outcome of a comparison that a local step has."""
        guards: dict[Guard, Example] = {}
        for situation, example in self.situations.items():
            for guard in situation.guards():
                guards[guard] = nearer(guards.get(guard), example)
        return guards


def nearer(before: Example | None, other: Example) -> Example:
    """Return both together: all local steps, and the shorter case."""
    if before is None:
        return other
    case = min(before.case, other.case, key=lambda case: len(case.path))
    return Example(before.local_steps + other.local_steps, case)


def model_of(profile: Profile) -> CoveredModel:
    """Return the model that runs and logs of a profile are held against."""
    # Two generations differ in what a broker does at all: one truncates by fetch responses, one asks where epochs end.
    return shipped_models()[(SAFE if profile.truncation_on_fetch else KIP320).name]


@cache
def shipped_models() -> Mapping[str, CoveredModel]:
    """Return the models that the package has, by the name of their profile."""
    text = files("tidegauge.drive.paths").joinpath(_FILE).read_text(encoding="utf-8")

    def example(local_steps: int, opening: Any, path: Any) -> Example:
        return Example(local_steps, BrokerCase(Opening(*frozen(opening)), frozen(path)))

    return {
        name: CoveredModel(
            name,
            {Situation(action, tuple(outcomes)): example(*rest) for action, outcomes, *rest in model["situations"]},
            {step: example(*rest) for step, *rest in model["unlogged"]},
            {row: example(*rest) for row, *rest in model["rows"]},
        )
        for name, model in json.loads(text).items()
    }


# ---------------------------------------------------------------------------------------------------------------------
# The model


def explored(profile: Profile, graphs: Iterable[str] = COVERED) -> CoveredModel:
    """Compute the model of a profile from graphs."""
    model = CoveredModel(profile.name, {}, {}, {})
    # The same local step in another graph, or behind other requests, is one.
    seen: set[Any] = set()
    for name in graphs:
        steps = _steps_of_graph(name, profile, seen)
        for step, reached in zip(steps, situations_of([step.events for step in steps]), strict=True):
            for row in step.rows:
                model.rows[row] = nearer(model.rows.get(row), Example(1, step.case))
            # Consequences of a step are situations too; the local step is that of its action.
            for position, situation in enumerate(reached):
                example = Example(int(position == 0 < step.events.logged), step.case)
                model.situations[situation] = nearer(model.situations.get(situation), example)
            if not step.events.logged:
                name_ = step.case.path[-1][0]
                model.unlogged[name_] = nearer(model.unlogged.get(name_), Example(1, step.case))
    return model


class _LocalStep(NamedTuple):
    """A local step: the shortest case that ends with it, its events, the rows of rules that were applied."""

    case: BrokerCase
    events: StepEvents
    rows: Sequence[str]


def _steps_of_graph(name: str, profile: Profile, seen: set[Any]) -> list[_LocalStep]:
    """Return the local steps of a graph that are not in `seen`, and add them to it."""
    count: Count = Counter()
    parents: dict[int, tuple[int, Step]] = {}
    steps: list[tuple[int, Step, StepEvents, list[str]]] = []

    def watch(source: int, edge: Edge, state: ReferenceBroker, step: Step, outcome: StepTaken) -> None:
        if edge.to:
            parents.setdefault(edge.to, (source, step))
        key = state.opening, edge.takes[:3]
        if key not in seen:
            seen.add(key)
            steps.append((source, step, events_of_step(state, step, outcome), rows_of(count)))
        count.clear()

    opening = every_step(GRAPHS[name].inputs(profile), profile, watch, counting(count))
    return [
        _LocalStep(BrokerCase(opening, (*_run(parents, source), step)), events, rows) for source, step, events, rows in steps
    ]


def _run(parents: Mapping[int, tuple[int, Step]], state: int) -> Steps:
    """Return the steps of a shortest run to a state."""
    steps = []
    while state in parents:
        state, step = parents[state]
        steps.append(step)
    return tuple(reversed(steps))


def rows_of(count: Count) -> list[str]:
    """Return the rows that were applied, each as a text."""
    return [": ".join(filter(None, applied)) for applied in count]


_CONFIG = Config(tuple(range(BROKER, BROKER + 4)))


def situations_of(steps: Sequence[StepEvents]) -> list[list[Situation]]:
    """Return the situations of the events of each step, all computed at once."""
    events = tuple(event for step in steps for event in step.events)
    codes, of_row = situation_codes(to_columns([Trace("", "", _CONFIG, events)], _CONFIG, counted=True))
    following = iter(of_row.tolist())
    return [[codes[next(following)] for _ in step.events] for step in steps]


def write_models(models: Iterable[CoveredModel], place: Path) -> None:
    """Write models, a line an example: what changes with a rule can be read in a diff."""
    parts = []
    for model in models:
        lists = ",\n".join(
            f'"{name}":[\n' + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]"
            for name, rows in _as_lists(model).items()
        )
        parts.append(f'"{model.profile}":{{{lists}}}')
    place.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def _as_lists(model: CoveredModel) -> dict[str, Any]:
    return {
        "situations": [[*situation, n, *case[:2]] for situation, (n, case) in sorted(model.situations.items())],
        "unlogged": [[step, n, *case[:2]] for step, (n, case) in sorted(model.unlogged.items())],
        "rows": [[row, n, *case[:2]] for row, (n, case) in sorted(model.rows.items())],
    }


if __name__ == "__main__":
    write_models(map(explored, (SAFE, KIP320)), Path(__file__).with_name(_FILE))
