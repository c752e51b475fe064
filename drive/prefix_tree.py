"""What is known of paths that begin alike: a tree of steps, in which each is taken once for all paths that begin with it."""

from collections.abc import Callable
from typing import Generic, TypeVar

from tidegauge.drive.contract import Step

T = TypeVar("T")


class Beginning(Generic[T]):
    """The first steps of some paths, and what is known after them. `longer` says what is known after one step more."""

    def __init__(self, known: T, longer: Callable[[T, Step], T]) -> None:
        self.known, self._longer = known, longer
        self._after: dict[Step, Beginning[T]] = {}

    def after(self, step: Step) -> "Beginning[T]":
        """That with one step more."""
        if step not in self._after:
            self._after[step] = Beginning(self._longer(self.known, step), self._longer)
        return self._after[step]
