"""A tree of paths that begin alike: what is known after a step is found once for all paths that begin with it."""

from collections.abc import Callable
from typing import Generic, TypeVar

from tidegauge.drive.contract import Step

T = TypeVar("T")


class PrefixTree(Generic[T]):
    """The first steps of some paths, and the value after them. `extend` finds the value after one more step."""

    def __init__(self, value: T, extend: Callable[[T, Step], T]) -> None:
        self.value, self._extend = value, extend
        self._after: dict[Step, PrefixTree[T]] = {}

    def after(self, step: Step) -> "PrefixTree[T]":
        """Return the tree after one more step."""
        if step not in self._after:
            self._after[step] = PrefixTree(self._extend(self.value, step), self._extend)
        return self._after[step]
