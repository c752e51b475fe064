"""What a run has exercised of a controller: each step becomes the events that the controller would log.

A situation is an action with the outcome of each of its comparisons; the action of an event is its name. A response stands
here for a request with the error of its response, such as `elect_leaders: ELECTION_NOT_NEEDED`. The model has for each of
them an Example: a shortest case that ends with it, and how many local steps of the model are of that kind.

Rules of this file

1. Runs and logs are counted alike (conformance/checking/situations.py). A request is counted with its response besides: no
   log has these, but for proposals.
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
    """Yield the events that a controller would log of a step: the request, then what it has changed.

    `result`: the response to the request, None if the step is none; `before`, `after`: the cluster before and after it.
    """
    name, *arguments = step
    error = NONE if result is None else result.get("error", NONE)
    if name == PROPOSAL:
        yield Event(_NODE, "AlterPartition", {"error": error})
    # The arguments of "configure" are type, name, key, value.
    if name == "configure" and error == NONE and (arguments[0], arguments[2]) == (TOPIC, MIN_IN_SYNC_REPLICAS):
        yield Event(_NODE, "SetMinIsr", {})
    old_brokers = before.control.brokers
    # In the order of Kafka's records: #handleBrokerUnfenced unfences before it elects, #handleBrokerFenced takes the broker
    # out of every ISR before it fences.
    for broker, registration in after.control.brokers.items():
        old_broker = old_brokers.get(broker)
        if old_broker is not None and old_broker.fenced and not registration.fenced:
            yield Event(_NODE, "UnfenceBroker", {"peer": broker})
    for tp, partition in after.control.partitions.items():
        old_partition = before.control.partitions.get(tp)
        if old_partition != partition:
            lists = {field: tuple(sorted(getattr(partition, field))) for field in _LISTS}
            # Not clean: the change elects a leader that may lack committed records (`gives_up`).
            clean = old_partition is None or not gives_up(old_partition, partition)
            # No leader (-1) is None in an event; brokers count from 1.
            yield Event(_NODE, "ChangePartition", {"leader": max(partition.leader, 0) or None, **lists, "clean": clean})
    # The arguments of a registration are broker, new incarnation, clean, directories.
    if name in ("register", "register_late") and error == NONE:
        yield Event(_NODE, "RegisterBroker", {"peer": arguments[0], "clean": bool(arguments[2])})
    for broker, registration in after.control.brokers.items():
        old_broker = old_brokers.get(broker)
        if old_broker is not None and not old_broker.fenced and registration.fenced:
            yield Event(_NODE, "FenceBroker", {"peer": broker})


def response_of(step: Step, result: Report | None) -> str:
    """Return the name of a request with that of its response's error, "name: ERROR"; of another step the name alone."""
    if result is None:
        return str(step[0])
    error = result.get("error", NONE)
    return f"{step[0]}: {ERROR_NAMES.get(error, error)}"


class _PlayedStep(NamedTuple):
    """A step that the reference has taken: the registrations before it as JSON, the step, its events, its response."""

    registrations: str
    step: Step
    events: tuple[Event, ...]
    response: str


def _played_steps(case: ControllerCase, profile: Profile, count: int) -> Iterator[_PlayedStep]:
    """Take the reference through the first `count` steps of a case, and yield them."""
    controller = reference(profile)
    state: ControllerState = controller.opened(case.opening)
    report: Mapping[str, Any] = controller.report(state)
    for step in case.path[:count]:
        after, next_report = controller.take(state, step)
        registrations = json.dumps([report[field] for field in ("partitions", "brokers", "features")], sort_keys=True)
        result = next_report["result"]
        # A state is a pair of the cluster and the ordinals of broker epochs.
        events = tuple(events_of(state[0], step, result, after[0]))
        yield _PlayedStep(registrations, step, events, response_of(step, result))
        state, report = after, next_report


def _situations(played: Sequence[_PlayedStep]) -> list[list[Situation]]:
    """Return for each step the situations of its events, in their order; all are computed at once, as columns."""
    events = tuple(event for step in played for event in step.events)
    # A trace without name and partition, for only the events count; `counted`: none of them are missing. Each event is a
    # row, and has the situation at its index in `distinct`.
    distinct, index_of_row = situation_codes(to_columns([Trace("", "", _CONFIG, events)], _CONFIG, counted=True))
    # The rows are in the order of the events: each step takes as many as it has events.
    following = iter(index_of_row.tolist())
    return [[distinct[next(following)] for _ in step.events] for step in played]


def exercised_control(
    cases: Sequence[ControllerCase], ended: Mapping[ControllerCase, int], profile: Profile
) -> tuple[dict[Situation, Seen], dict[str, Seen]]:
    """Return the situations and the responses that a run has exercised: how often, and where first.

    `ended`: by case that differed, the number of the step (from 1) after which it did; that step and those after it do not
    count.
    """
    situations: dict[Situation, Seen] = {}
    responses: dict[str, Seen] = {}
    for number, case in enumerate(cases, start=1):
        # Without a difference every step counts.
        played = [*_played_steps(case, profile, ended.get(case, len(case.path) + 1) - 1)]
        for at, (step, step_situations) in enumerate(zip(played, _situations(played), strict=True), start=1):
            # Exercised once, and here; `add` sums the counts and keeps the first place.
            seen = Seen(1, f"{case.name or f'path {number:,}'}, step {at}")
            for situation in step_situations:
                add(situations, {situation: seen})
            # The response to a proposal is an event, and so in a situation already.
            if step.step[0] != PROPOSAL:
                add(responses, {step.response: seen})
    return situations, responses


def explored_control(cases: Sequence[ControllerCase], profile: Profile = ELR_REPAIRED) -> ControlModel:
    """Compute the model of a controller from the paths of these cases."""
    model, counted_steps = ControlModel({}, {}), set[tuple[Any, ...]]()
    for case in cases:
        played = [*_played_steps(case, profile, len(case.path))]
        for at, (step, situations) in enumerate(zip(played, _situations(played), strict=True), start=1):
            # A local step: a request, and what the controller reports before it.
            key = case.opening, step.registrations, step.step
            shorter = ControllerCase(case.opening, case.path[:at])
            is_new = int(key not in counted_steps)
            counted_steps.add(key)
            # It is counted once: in the first of its situations, or else in its response.
            for position, situation in enumerate(situations):
                local_steps = is_new if position == 0 else 0
                model.situations[situation] = nearer(model.situations.get(situation), Example(local_steps, shorter))
            # The response to a proposal is an event, and so in a situation already.
            if step.step[0] != PROPOSAL:
                local_steps = 0 if situations else is_new
                model.responses[step.response] = nearer(model.responses.get(step.response), Example(local_steps, shorter))
    return model


def nearer(before: Example | None, other: Example) -> Example:
    """Return two examples of the same thing as one: the sum of their local steps, and the shorter case."""
    if before is None:
        return other
    case = min(before.case, other.case, key=lambda case: len(case.path))
    return Example(before.local_steps + other.local_steps, case)


@cache
def shipped_control() -> ControlModel:
    """Read the model that is shipped with the package, as `write_control` has written it."""
    data = json.loads(files("tidegauge.drive.controller").joinpath(_FILE).read_text(encoding="utf-8"))

    def read_example(local_steps: int, opening: Any, path: Any) -> Example:
        """Read the last three columns of a line."""
        return Example(local_steps, ControllerCase(ClusterOpening(*frozen(opening)), frozen(path)))

    return ControlModel(
        {Situation(action, tuple(outcomes)): read_example(*rest) for action, outcomes, *rest in data["situations"]},
        {response: read_example(*rest) for response, *rest in data["responses"]},
    )


def write_control(model: ControlModel, place: Path) -> None:
    """Write a model to a JSON file with one line per example, so that a diff shows what changes with the controller."""
    # case[:2]: the opening and the path, without the name of the case.
    lists = {
        "situations": [[*situation, count, *case[:2]] for situation, (count, case) in sorted(model.situations.items())],
        "responses": [[response, count, *case[:2]] for response, (count, case) in sorted(model.responses.items())],
    }
    parts = (
        f'"{name}":[\n' + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]"
        for name, rows in lists.items()
    )
    place.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def step_as_json(step: Step) -> dict[str, Any]:
    """Return a step as plain data: its name as "step", and its arguments by name."""
    name, *arguments = step
    return {"step": name, **dict(zip(STEPS[name].takes, arguments, strict=True))}


def model_cases() -> list[ControllerCase]:
    """Return the cases that the shipped model is computed from: covers, the findings' paths, and refusals."""
    from tidegauge.drive.controller.cover import MODELS, cover_of  # noqa: PLC0415  only who makes the file needs them
    from tidegauge.drive.controller.walks import usual_cases  # noqa: PLC0415

    opening = ClusterOpening(IBP_4_3_IV0)  # of 4.3.1
    covers = (case for name in MODELS for case in cover_of(name, ELR_REPAIRED, opening).cases)
    return [*usual_cases(ELR_REPAIRED, opening, walk_count=0), *covers]


if __name__ == "__main__":
    write_control(explored_control(model_cases()), Path(__file__).with_name(_FILE))
