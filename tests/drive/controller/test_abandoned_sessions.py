"""Sessions that nobody keeps are counted until the controller must have found them."""

from collections.abc import Mapping
from types import MappingProxyType

from tidegauge.drive.controller.process import LeftSessions


class Hand:
    """A clock that is moved by hand."""

    session = 100.0
    environment: Mapping[str, str] = MappingProxyType({})

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds

    def close(self) -> None:
        pass


def test_one_that_was_left_just_before_is_not_over_when_the_controller_looks() -> None:
    """A lane that was closed, and a lapse of the next: its sessions are found at the looks of the one after that."""
    clock = Hand()
    left = LeftSessions(clock)
    left.add(3)
    clock.advance(98.5)
    left.looked_for()
    assert len(left) == 3
    left.add()
    clock.advance(98.5)
    left.looked_for()
    assert len(left) == 1
    clock.advance(98.5)
    left.looked_for()
    assert len(left) == 0
