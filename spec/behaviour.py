"""A counterexample as a sequence of labels and views, ready to become a trace.

TLC names the actions of a counterexample without their arguments. The run reports every transition it tries as well
(spec/graph.py), so each step is looked up there; a step that was never reported would be a fault of ours and is raised.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from spec.errors import SpecError
from spec.graph import Label, View, report
from spec.models import Model
from spec.tlc import Outcome
from spec.values import ModelValue

_NONE = ModelValue("NoBroker")
_ROLES = {"none": 0, "leader": 1, "follower": 2, "truncating": 3}
_FIELDS = {
    "nothing": (),
    "request": (1, "epoch", "offset", "lastEpoch"),
    "data": (2, "epoch", "offset", "hw", "records"),
    "diverging": (3, "epoch", "offset", "divEpoch", "divEnd"),
    "out of range": (4, "epoch", "offset", "leaderStart", "leaderEnd"),
    "epoch request": (5, "epoch", "lastEpoch"),
    "epoch end": (6, "epoch", "endEpoch", "endOffset"),
}


class Behaviour(NamedTuple):
    """What failed, and a shortest way there: n states, n - 1 labels between them."""

    property: str
    states: tuple[View, ...]
    labels: tuple[Label, ...]


def view_of(state: Mapping[str, Any]) -> View:
    """MCReplication!View of a state that TLC printed in full. Brokers are b1, b2, ... in that order."""
    order = sorted(state["log"], key=lambda broker: int(broker.name.removeprefix("b")))

    def index(broker: ModelValue) -> int:
        return -1 if broker == _NONE else order.index(broker)

    def mask(brokers: frozenset[ModelValue]) -> int:
        return sum(1 << index(broker) for broker in brokers)

    def slot(message: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(message[part] if isinstance(part, str) else part for part in _FIELDS[message["type"]])

    brokers = tuple(
        (
            *(state[name][b] for name in ("log", "hw", "mark")),
            int(state["up"][b]),
            _ROLES[state["role"][b]],
            state["epoch"][b],
            index(state["leader"][b]),
            mask(state["isr"][b]),
            mask(state["pending"][b]),
            tuple(state["remoteLeo"][b][r] for r in order),
            tuple(slot(state["net"][b][r]) for r in order),
        )
        for b in order
    )
    controller = state["controller"]
    told = (index(controller["leader"]), controller["epoch"], mask(controller["isr"]), mask(controller["live"]))
    return (brokers, told, state["committed"], state["crashes"])


def counterexample(model: Model) -> Behaviour:
    """The shortest failing run of a model that fails. Raises SpecError when it holds."""
    graph, result = report(model.module, model.config())
    if result.outcome is not Outcome.SAFETY:
        raise SpecError(f"{model.cfg}: expected a safety failure to show, seen {result.outcome.value}")
    states = tuple(view_of(step.state) for step in result.counterexample)
    numbers = {state: number for number, state in enumerate(graph.states)}
    by_pair = {(source, target): graph.labels[label] for source, label, target in graph.transitions}
    labels: list[Label] = []
    for step, source, target in zip(result.counterexample[1:], states, states[1:], strict=False):
        label = by_pair.get((numbers.get(source, -1), numbers.get(target, -1)))
        if label is None or label[0] != step.action:
            raise SpecError(f"{model.cfg}: expected a reported {step.action} from {source} to {target}, seen {label}")
        labels.append(label)
    return Behaviour(result.property, states, tuple(labels))
