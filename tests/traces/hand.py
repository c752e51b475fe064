"""Views of two brokers written by hand, and what a step between two of them tells."""

from typing import Any

from tidegauge.traces.from_model.behaviour import events_of_step
from tidegauge.traces.from_model.views import Label, View

Fields = dict[str, Any]

LEADER = {"log": (), "hw": 0, "mark": 0, "up": 1, "role": 1, "epoch": 0, "leader": 0, "isr": 3, "pending": 0}
FOLLOWER = LEADER | {"mark": -1, "role": 2, "isr": 0}
NOBODY = LEADER | {"mark": -1, "role": 0, "epoch": -1, "leader": -1, "isr": 0}
DOWN = NOBODY | {"up": 0}


def broker(base: Fields, remote: tuple[int, int] = (-1, -1), slots: tuple[Any, Any] = ((), ()), **changed: Any) -> View:
    return (*(base | changed).values(), remote, slots)


def state(one: View, two: View, controller: View = (0, 0, 3, 3)) -> View:
    return ((one, two), controller, (), 0)


def reported(src: View, label: Label, dst: View, profile: str = "fetch-truncation") -> list[tuple[int, str, Fields]]:
    return [(e.node, e.event, dict(e.fields)) for e in events_of_step(src, label, dst, profile)]
