"""What a run has exercised of a controller: each step becomes the events that the controller would log.

Rules of this file

1. Runs and logs are counted alike (conformance/checking/situations.py). A request is counted with its response besides, as
   `elect_leaders: ELECTION_NOT_NEEDED`: no log has these, but for proposals.
2. The model is what the reference does on the covers, the findings' paths and the refusals. A local step is a request and
   what the controller reports before it; it counts if something was in its situation.
3. What a run shows ends with the step before the first that differs.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from tidegauge.conformance.checking.situations import Seen, Situation, add, situation_codes
from tidegauge.drive.contract import DriveCase, Report, Step, frozen
from tidegauge.drive.controller.contract import BROKERS, ClusterOpening, ControllerCase, ReferenceController
from tidegauge.drive.controller.reference import ControllerState, reference
from tidegauge.drive.controller.steps import STEPS
from tidegauge.impl.controller.features import IBP_4_3_IV0
from tidegauge.impl.controller.records import TOPIC
from tidegauge.impl.controller.replication_control import MIN_IN_SYNC_REPLICAS
from tidegauge.impl.errors import ERROR_NAMES
from tidegauge.impl.explorer.controller_model import gives_up
from tidegauge.impl.profiles import ELR_REPAIRED, Profile
from tidegauge.impl.rules import NONE
from tidegauge.traces.columns import to_columns
from tidegauge.traces.schema import Config, Event, Trace

_FILE = "situations.json"
_NODE = BROKERS + 1
_CONFIG = Config(tuple(range(1, BROKERS + 1)), controller=_NODE)
_LISTS = ("isr", "replicas", "adding", "removing", "elr")
PROPOSAL = "alter_partition"
"""The request whose response is an event too."""


class Example(NamedTuple):
    """How many local steps of the model there are of something, and the shortest case that ends with one."""

    local_steps: int
    case: DriveCase[Any]


class ControlModel(NamedTuple):
    """What a controller does in the model: the situations of its events, and requests with their responses."""

    situations: dict[Situation, Example]
    responses: dict[str, Example]


def events_of(before: ReferenceController, step: Step, result: Report | None, after: ReferenceController) -> Iterator[Event]:
    """Yield the events that a controller would log of a step: the request, then what changes by it."""
    error = NONE if result is None else result.get("error", NONE)
    if step[0] == PROPOSAL:
        yield Event(_NODE, "AlterPartition", {"error": error})
    if step[0] == "configure" and error == NONE and (step[1], step[3]) == (TOPIC, MIN_IN_SYNC_REPLICAS):
        yield Event(_NODE, "SetMinIsr", {})
    was_registered = before.control.brokers
    # In the order of Kafka's records: #handleBrokerUnfenced unfences before it elects, #handleBrokerFenced takes the broker
    # out of every ISR before it fences.
    for broker, registration in after.control.brokers.items():
        was = was_registered.get(broker)
        if was is not None and was.fenced and not registration.fenced:
            yield Event(_NODE, "UnfenceBroker", {"peer": broker})
    for tp, partition in after.control.partitions.items():
        old = before.control.partitions.get(tp)
        if old != partition:
            lists = {name: tuple(sorted(getattr(partition, name))) for name in _LISTS}
            clean = old is None or not gives_up(old, partition)
            yield Event(_NODE, "ChangePartition", {"leader": max(partition.leader, 0) or None, **lists, "clean": clean})
    if step[0] in ("register", "register_late") and error == NONE:
        yield Event(_NODE, "RegisterBroker", {"peer": step[1], "clean": bool(step[3])})
    for broker, registration in after.control.brokers.items():
        was = was_registered.get(broker)
        if was is not None and not was.fenced and registration.fenced:
            yield Event(_NODE, "FenceBroker", {"peer": broker})


def response_of(step: Step, result: Report | None) -> str:
    """Return a request with the error of its response; a step that is no request by itself."""
    if result is None:
        return str(step[0])
    error = result.get("error", NONE)
    return f"{step[0]}: {ERROR_NAMES.get(error, error)}"


class _Played(NamedTuple):
    """A step that the reference has taken: what it reported before, the step, its events, its response."""

    before: str
    step: Step
    events: tuple[Event, ...]
    response: str


def _played(case: ControllerCase, profile: Profile, steps: int) -> Iterator[_Played]:
    """Yield the first steps of a case."""
    judge = reference(profile)
    state: ControllerState = judge.opened(case.opening)
    report: Mapping[str, Any] = judge.report(state)
    for step in case.path[:steps]:
        after, seen = judge.take(state, step)
        known = json.dumps([report[name] for name in ("partitions", "brokers", "features")], sort_keys=True)
        yield _Played(
            known, step, tuple(events_of(state[0], step, seen["result"], after[0])), response_of(step, seen["result"])
        )
        state, report = after, seen


def _situations(played: Sequence[_Played]) -> list[list[Situation]]:
    """Return the situations of the events of each step, all computed at once."""
    events = tuple(event for step in played for event in step.events)
    codes, of_row = situation_codes(to_columns([Trace("", "", _CONFIG, events)], _CONFIG, counted=True))
    following = iter(of_row.tolist())
    return [[codes[next(following)] for _ in step.events] for step in played]


def exercised_control(
    cases: Sequence[ControllerCase], ended: Mapping[ControllerCase, int], profile: Profile
) -> tuple[dict[Situation, Seen], dict[str, Seen]]:
    """Return the situations and the responses of a run; `ended`: the step at which a case differed."""
    situations: dict[Situation, Seen] = {}
    responses: dict[str, Seen] = {}
    for number, case in enumerate(cases, start=1):
        played = [*_played(case, profile, ended.get(case, len(case.path) + 1) - 1)]
        for at, (step, reached) in enumerate(zip(played, _situations(played), strict=True), start=1):
            seen = Seen(1, f"{case.name or f'path {number:,}'}, step {at}")
            for situation in reached:
                add(situations, {situation: seen})
            if step.step[0] != PROPOSAL:
                add(responses, {step.response: seen})
    return situations, responses


def explored_control(cases: Sequence[ControllerCase], profile: Profile = ELR_REPAIRED) -> ControlModel:
    """Compute the model from paths of a controller."""
    model, known = ControlModel({}, {}), set[tuple[Any, ...]]()
    for case in cases:
        played = [*_played(case, profile, len(case.path))]
        for at, (step, reached) in enumerate(zip(played, _situations(played), strict=True), start=1):
            key = case.opening, step.before, step.step
            shorter = ControllerCase(case.opening, case.path[:at])
            new = int(key not in known)
            known.add(key)
            # A local step is counted once: in the first of its situations, or else in its response.
            for position, situation in enumerate(reached):
                local_steps = new if position == 0 else 0
                model.situations[situation] = nearer(model.situations.get(situation), Example(local_steps, shorter))
            if step.step[0] != PROPOSAL:
                local_steps = 0 if reached else new
                model.responses[step.response] = nearer(model.responses.get(step.response), Example(local_steps, shorter))
    return model


def nearer(before: Example | None, other: Example) -> Example:
    """Return both together: all local steps, and the shorter case."""
    if before is None:
        return other
    case = min(before.case, other.case, key=lambda case: len(case.path))
    return Example(before.local_steps + other.local_steps, case)


@cache
def shipped_control() -> ControlModel:
    """Return the model that the package has."""
    data = json.loads(files("tidegauge.drive.controller").joinpath(_FILE).read_text(encoding="utf-8"))

    def example(local_steps: int, opening: Any, path: Any) -> Example:
        return Example(local_steps, ControllerCase(ClusterOpening(*frozen(opening)), frozen(path)))

    return ControlModel(
        {Situation(action, tuple(outcomes)): example(*rest) for action, outcomes, *rest in data["situations"]},
        {response: example(*rest) for response, *rest in data["responses"]},
    )


def write_control(model: ControlModel, place: Path) -> None:
    """Write the model, a line an example: what changes with the controller can be read in a diff."""
    lists = {
        "situations": [[*situation, n, *case[:2]] for situation, (n, case) in sorted(model.situations.items())],
        "responses": [[response, n, *case[:2]] for response, (n, case) in sorted(model.responses.items())],
    }
    parts = (
        f'"{name}":[\n' + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]"
        for name, rows in lists.items()
    )
    place.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def step_as_json(step: Step) -> dict[str, Any]:
    """Return a step by the names of its arguments."""
    name, *arguments = step
    return {"step": name, **dict(zip(STEPS[name].takes, arguments, strict=True))}


def model_cases() -> list[ControllerCase]:
    """Return the paths that the model is computed from."""
    from tidegauge.drive.controller.cover import MODELS, cover_of  # noqa: PLC0415  only who makes the file needs them
    from tidegauge.drive.controller.walks import usual_cases  # noqa: PLC0415

    opening = ClusterOpening(IBP_4_3_IV0)  # of 4.3.1
    covers = (case for name in MODELS for case in cover_of(name, ELR_REPAIRED, opening).cases)
    return [*usual_cases(ELR_REPAIRED, opening, walk_count=0), *covers]


if __name__ == "__main__":
    write_control(explored_control(model_cases()), Path(__file__).with_name(_FILE))
