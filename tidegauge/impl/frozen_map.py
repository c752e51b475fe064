"""An ordered immutable mapping, hashable, so that states made of it can be compared and remembered.

Rules of this file

1. Every change returns a new mapping. Order is part of the value: it is Kafka's LinkedHashMap, whose order is the round
   robin of a fetcher thread.
2. Mappings are compared and hashed by their items, order included.
"""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class FrozenMap(Generic[K, V]):
    """Keys and values, in the order in which they were put."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[tuple[K, V]] = ()) -> None:
        self._items: dict[K, V] = dict(items)

    def get(self, key: K) -> V | None:
        """Return the value of `key`, None when it is absent."""
        return self._items.get(key)

    def put(self, key: K, value: V) -> "FrozenMap[K, V]":
        """Return the mapping with `value` for `key`; a key that is there keeps its place, a new one goes to the end."""
        return FrozenMap((*self._items.items(), (key, value)))

    def put_at_end(self, key: K, value: V) -> "FrozenMap[K, V]":
        """Return the mapping with `value` for `key`, at the end. PartitionStates#updateAndMoveToEnd."""
        return FrozenMap((*((k, v) for k, v in self._items.items() if k != key), (key, value)))

    def without(self, *keys: K) -> "FrozenMap[K, V]":
        """Return the mapping without these keys; absent ones do not matter."""
        return FrozenMap((k, v) for k, v in self._items.items() if k not in keys)

    def items(self) -> tuple[tuple[K, V], ...]:
        """Return keys with their values, in order."""
        return tuple(self._items.items())

    def values(self) -> tuple[V, ...]:
        """Return the values, in order."""
        return tuple(self._items.values())

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenMap) and self.items() == other.items()

    def __hash__(self) -> int:
        return hash(self.items())

    def __repr__(self) -> str:
        return f"FrozenMap({list(self._items.items())!r})"
