"""Soundness where a source reports less: every behaviour of a bounded model, without a field, a kind of event, or a node.

Rules of this file

1. One thing is left out of all events of the model, every one in turn (validation.partial_traces). A kind that is
   left out is declared in `reports`, nothing else is.
2. What is absent is unknown: what breaks no rule when all is reported breaks none when less is. A rule that the profile's
   known hole breaks may still break, and no other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from validation.partial_traces import of_fields, of_kinds, of_nodes
from validation.product.executions import Machine
from validation.product.models import Model
from validation.product.walk import Walked, machine_of, walk


@dataclass(frozen=True)
class Less:
    """The product of the judge and a model that reports less; `what` is left out."""

    what: str
    walked: Walked


def walks(model: Model, compiled: Machine | None = None) -> Iterator[Less]:
    """Yield the product without each field, each field of one kind, each kind and each node of the model's events."""
    graph = model.graph()
    whole = model.automaton(graph)
    machine = compiled or machine_of(whole, model.config, model.room)
    events = (*whole.initial, *whole.events)
    for what, omission in chain(of_fields(events), of_kinds(events), of_nodes(events)):
        yield Less(what, walk(model.automaton(graph, omission), omission.config(model.config), model.room, machine))
