"""States of TLC and of the explorer as views, nested tuples of ints, and their parts by name.

Rules of this file

1. A view is plain data. Nothing here computes a next state.
2. Undefined is -1, also in a log where a record was deleted; a set of brokers is a bit mask, a broker is its index;
   `node_id` gives an index its id in traces.

A view is (brokers, controller, ...): a tuple per broker with the fields of BrokerView, then those of ControllerView; in a
model with clients the last but one member has what producers wait for. A *slot* is the one message in flight between a
follower and a leader, (kind, leader epoch, ...) with the fields of its kind. A log is the epochs of its records, by offset.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

View: TypeAlias = tuple[Any, ...]
Label: TypeAlias = tuple[Any, ...]

CONTROLLER = 100
"""Node id of the controller in every trace made from a model."""

NO_ROLE, LEADER, FOLLOWER, TRUNCATING = 0, 1, 2, 3
"""TRUNCATING: a follower that must ask for the end of its last epoch before it fetches."""

REQUEST, DATA, DIVERGING, OUT_OF_RANGE, EPOCH_REQUEST, EPOCH_END = 1, 2, 3, 4, 5, 6
"""The kind of message in a slot; an empty slot is the empty tuple."""


class BrokerView(NamedTuple):
    """One replica."""

    log: tuple[int, ...]
    hw: int
    mark: int
    """epoch of the last entry of the epoch cache if that has no record yet, else -1"""
    up: int
    """1 while its process runs, else 0"""
    role: int
    """NO_ROLE to TRUNCATING"""
    epoch: int
    """the leader epoch that it knows"""
    leader: int
    isr: int
    """the ISR that it knows as a leader"""
    pending: int
    """the proposed ISR, 0 for none"""
    remote: tuple[int, ...]
    """by broker: its LEO as this leader has recorded it"""
    slots: tuple[tuple[Any, ...], ...]
    """by leader: the message in flight between this follower and it"""

    @property
    def leo(self) -> int:
        """Log end offset: records are numbered from 0."""
        return len(self.log)

    @property
    def start(self) -> int:
        """Log start offset: the records before it were deleted."""
        return next((offset for offset, epoch in enumerate(self.log) if epoch >= 0), len(self.log))


class ControllerView(NamedTuple):
    """The registration of the partition, and the brokers that are not fenced.

    With ELR also the eligible replicas, the last leader, the brokers that are down after a clean stop, and for each leader
    the members of its proposal that have registered again since.
    """

    leader: int
    epoch: int
    isr: int
    live: int
    elr: int = 0
    last_leader: int = -1
    clean: int = 0
    reborn: tuple[int, ...] = ()

    @property
    def keeps_elr(self) -> bool:
        """Whether the model has eligible leader replicas."""
        return bool(self.reborn)

    @property
    def registration(self) -> tuple[int, ...]:
        """The parts of the registration that ChangePartition reports."""
        return self.leader, self.epoch, self.isr, self.live, self.elr


def brokers(view: View) -> list[BrokerView]:
    """Return the replicas of a view, by index."""
    return [BrokerView(*fields) for fields in view[0]]


def broker(view: View, index: int) -> BrokerView:
    """Return the replica at `index`."""
    return BrokerView(*view[0][index])


def controller(view: View) -> ControllerView:
    """Return the controller of a view."""
    return ControllerView(*view[1])


def waiting(view: View, index: int) -> tuple[tuple[int, int], ...]:
    """Return the end and the epoch of each record that a producer waits for at a broker, in a model with clients."""
    return view[-2][index]  # type: ignore[no-any-return]


def slot_kind(slot: Sequence[Any]) -> int:
    """Return the kind of the message in a slot, REQUEST to EPOCH_END; 0 for none."""
    return slot[0] if slot else 0


def log_start_in(data: Sequence[Any]) -> int:
    """Return the leader's log start in a data response, which leaves a 0 out."""
    return data[5] if len(data) > 5 else 0


def node_id(index: int) -> int | None:
    """Return the id of the broker at `index` in a trace; None for index -1."""
    return index + 1 if index >= 0 else None


def members(mask: int) -> tuple[int, ...]:
    """Return the node ids of the brokers in a bit mask."""
    return tuple(index + 1 for index in range(mask.bit_length()) if mask >> index & 1)


def epoch_cache(log: Sequence[int], mark: int) -> tuple[tuple[int, int], ...]:
    """Return the epoch cache as (epoch, start offset) pairs: where the epochs of the records change, then `mark` if any.

    `mark` is the epoch of an entry at the log end that has no record yet, -1 for none.
    """
    changes = ((epoch, offset) for offset, epoch in enumerate(log) if offset == 0 or log[offset - 1] != epoch)
    starts = [(epoch, offset) for epoch, offset in changes if epoch >= 0]
    return (*starts, (mark, len(log))) if mark >= 0 else tuple(starts)
