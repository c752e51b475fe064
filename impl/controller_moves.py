"""What the controller does by itself: sessions that end or begin, and elections."""

from collections.abc import Iterator

from impl import controller as controller_
from impl.controller import Controller
from impl.moves import Label, Model, Move, uncounted
from impl.rules import UNDEFINED


def controller_moves(model: Model, image: Controller, up: int) -> tuple[Move, ...]:
    """FenceBroker, UnfenceBroker, ElectPreferred: read the controller and the mask of brokers that can renew a session."""
    changes = dict(_changes(image, up)).items()
    return tuple(
        Move(label, controller=uncounted(changed))
        for label, changed in changes
        if changed.leader_epoch <= model.bounds.max_epoch
    )


def _changes(image: Controller, up: int) -> Iterator[tuple[Label, Controller]]:
    for b in image.assignment:
        runs = bool(up >> b & 1)
        if b in image.live and (b in image.isr or not runs):
            for preferred in image.assignment:
                changed = controller_.fence_broker(image, b, runs, _first(preferred, image.assignment))
                yield ("FenceBroker", b, _elected(image, changed)), changed
        if b not in image.live and runs:
            changed = controller_.unfence_broker(image, b)
            yield ("UnfenceBroker", b, _elected(image, changed)), changed
        if image.leader != UNDEFINED:
            changed = controller_.elect_preferred(image, b)
            if changed is not image:
                yield ("ElectPreferred", b), changed


def _elected(before: Controller, after: Controller) -> int:
    return after.leader if after.leader_epoch > before.leader_epoch else UNDEFINED


def _first(preferred: int, assignment: tuple[int, ...]) -> tuple[int, ...]:
    return (preferred, *(b for b in assignment if b != preferred))
