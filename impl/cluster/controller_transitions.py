"""What the controller does by itself: sessions that end or begin, registrations, and elections.

Rules of this file

1. Among several who may be elected the choice is free: each is tried as the one the controller prefers.
2. With ELR the actions are those of spec/ELR.tla. A last resort (`Bounds.last_resort`) is an action of its own there; in
   Kafka it is part of whatever change leaves nobody else.
"""

from collections.abc import Iterable, Iterator

from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.cluster import controller as controller_
from tidegauge.impl.cluster.broker import Broker
from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.cluster.transitions import ANYBODY, LAST_KNOWN, BoundedModel, Label, Transition, without_partition_epoch
from tidegauge.impl.rules import UNDEFINED

ControllerChanges = Iterator[tuple[Label, Controller]]


def controller_transitions(model: BoundedModel, image: Controller, up: int) -> tuple[Transition, ...]:
    """Find FenceBroker, UnfenceBroker (with ELR FenceElr, UnfenceElr), ElectPreferred, ElectLastKnown, ElectAnybody.

    They read the controller and the mask of brokers that can renew a session.
    """
    changes = [*_sessions(model, image, up), *_elections(model, image)]
    return tuple(Transition(label, controller=changed) for label, changed in _within(model, changes))


def register_transitions(model: BoundedModel, b: int, broker: Broker, image: Controller) -> tuple[Transition, ...]:
    """Find Register: a broker that was down starts; until its registration counts the controller changes the partition."""
    changes = []
    for preference in _preferences(image):
        changed = controller_.register_broker(model.setup, image, b, broker.stopped_cleanly, preference)
        changes.append((("Register", b, _elected(image, changed)), changed))
    up = broker_.restart(broker)
    return tuple(Transition(label, b, up, controller=changed) for label, changed in _within(model, changes))


def _within(model: BoundedModel, changes: Iterable[tuple[Label, Controller]]) -> ControllerChanges:
    """Keep each change once, without the partition epoch, up to the highest leader epoch."""
    for label, changed in dict(changes).items():
        if changed.leader_epoch <= model.bounds.max_epoch:
            yield label, without_partition_epoch(changed)


def _sessions(model: BoundedModel, image: Controller, up: int) -> ControllerChanges:
    setup, suffix = model.setup, "Elr" if model.setup.profile.elr else "Broker"
    for b in image.assignment:
        runs = bool(up >> b & 1)
        for preference in _preferences(image):
            # Fencing a running broker outside the ISR changes nothing: it is unfenced again in the same step.
            if b in image.live and (b in image.isr or not runs):
                changed = controller_.fence_broker(setup, image, b, runs, preference)
                yield (f"Fence{suffix}", b, _elected(image, changed)), changed
            if b not in image.live and runs:
                changed = controller_.unfence_broker(setup, image, b, preference)
                yield (f"Unfence{suffix}", b, _elected(image, changed)), changed


def _elections(model: BoundedModel, image: Controller) -> ControllerChanges:
    setup, resort = model.setup, model.bounds.last_resort
    for preference in _preferences(image):
        if image.leader != UNDEFINED:
            changed = controller_.elect_preferred(setup, image, preference)
            action = "ElectPreferred"
        elif setup.profile.elr and resort == LAST_KNOWN:
            changed = controller_.elect_last_known(setup, image)
            action = "ElectLastKnown"
        elif setup.profile.elr and resort == ANYBODY:
            changed = controller_.elect_anybody(setup, image, preference)
            action = "ElectAnybody"
        else:
            return
        if changed is not image:
            yield (action, changed.leader), changed


def _preferences(image: Controller) -> Iterator[tuple[int, ...]]:
    """Return the assignment with each of its brokers first."""
    for preferred in image.assignment:
        yield (preferred, *(b for b in image.assignment if b != preferred))


def _elected(before: Controller, after: Controller) -> int:
    return after.leader if after.leader_epoch > before.leader_epoch else UNDEFINED
