"""The step by which a known bug goes wrong: a failure is said to look like a bug only if its trace has that step before it.

Rules of this file

1. The catalogue names bugs by the rule that they break (`bugs` of a rule). Where other causes break the rule as well, races
   between the lines of a source among them, STEPS says what the bug alone does.
2. A bug that is not here is named by its rule alone: the event at which that fails is its step.
3. A field that no event reports cannot rule a step out. Nor can a trace whose beginning is not in memory.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tidegauge.impl.rules import NONE
from tidegauge.traces.columns import Columns
from tidegauge.traces.schema import EVENTS, Event

PROPOSES = ("ExpandIsr", "ShrinkIsr")
ENDS_A_ROLE = ("Start", "Stop", "Crash", "DeleteReplica")


@dataclass(frozen=True)
class Before:
    """The events of a trace up to and including a failing one, which is in `row`."""

    columns: Columns
    first: int
    row: int
    event_of: Callable[[int], Event]

    @property
    def failing(self) -> Event:
        """The failing event."""
        return self.event_of(self.row)

    def events(self, *names: str, least: Mapping[str, int] = MappingProxyType({})) -> list[Event]:
        """Return the events of these names whose fields are known and have at least these values (-1 is undefined)."""
        rows = slice(self.first, self.row + 1)
        fits = np.isin(self.columns.event[rows], [EVENTS[name].code for name in names])
        for field, value in least.items():
            if field not in self.columns.ints:
                return []
            fits = fits & (self.columns.ints[field][rows] >= value)
        return [self.event_of(self.first + int(at)) for at in np.flatnonzero(fits)]

    def own(self, *names: str) -> list[Event]:
        """Return the events of these names at the node of the failing one."""
        return [event for event in self.events(*names) if event.node == self.failing.node]


def happened(bug: str, before: Before) -> bool:
    """Return whether a trace shows the step of a bug, as far as it is known."""
    step = STEPS.get(bug)
    return step is None or step(before)


def _leads_again_after_another(before: Before) -> bool:
    """Look for a leader that is elected again without having followed, and missed a leader epoch in between (F2)."""
    led: dict[int, object] = {}
    for event in before.events("BecomeLeader", "BecomeFollower", *ENDS_A_ROLE):
        if event.event != "BecomeLeader":
            led.pop(event.node, None)
            continue
        old, epoch = led.get(event.node), event.fields.get("leader_epoch")
        if isinstance(old, int) and isinstance(epoch, int) and epoch > old + 1:
            return True
        led[event.node] = epoch
    return False


def _erases_its_proposal(before: Before) -> bool:
    """Look for a leader that reads metadata which it acts on already while a proposal of it is open (F3)."""
    knows: dict[int, tuple[object, object]] = {}
    proposed: set[int] = set()
    kinds = ("BecomeLeader", "BecomeFollower", "HandleAlterPartitionResponse", *PROPOSES, *ENDS_A_ROLE)
    for event in before.events(*kinds):
        node, (epoch, partition_epoch) = event.node, knows.get(event.node, (None, None))
        if event.event in PROPOSES:
            proposed.add(node)
        elif event.event == "HandleAlterPartitionResponse":
            proposed.discard(node)
            if event.fields.get("error") == NONE:
                knows[node] = epoch, event.fields.get("partition_epoch")
        elif event.event == "BecomeLeader":
            read = event.fields.get("leader_epoch"), event.fields.get("partition_epoch")
            if node in proposed and read[0] == epoch and (read[1] == partition_epoch or None in (read[1], partition_epoch)):
                return True
            proposed.discard(node)
            knows[node] = read
        else:
            proposed.discard(node)
            knows.pop(node, None)
    return False


def _takes_a_role_in_between(before: Before) -> bool:
    """Look for a broker that takes a role between its proposal and the response to it (KAFKA-12686)."""
    proposed, taken = set[int](), set[int]()
    for event in before.events("BecomeLeader", "BecomeFollower", "HandleAlterPartitionResponse", *PROPOSES):
        if event.event in PROPOSES:
            if event.node in taken:
                return True
            proposed.add(event.node)
        elif event.event == "HandleAlterPartitionResponse":
            if event.node in taken:
                return True
            proposed.discard(event.node)
        elif event.node in proposed:
            taken.add(event.node)
    return bool(taken)


def _keeps_removed_eligible(before: Before) -> bool:
    """Look for a registration with an eligible replica that is none of its replicas (F4)."""
    replicas: object = None
    reported = removed = False
    for event in before.events("ChangePartition"):
        now = event.fields.get("replicas", replicas)
        removed |= isinstance(now, tuple) and isinstance(replicas, tuple) and not set(replicas) <= set(now)
        elr, replicas = event.fields.get("elr"), now
        reported |= elr is not None
        if isinstance(elr, tuple) and isinstance(now, tuple) and not set(elr) <= set(now):
            return True
    return removed and not reported


def _cannot_join(before: Before) -> bool:
    """Look for a replica that may not join the ISR: its broker is fenced, or not among the live ones (KAFKA-15021)."""
    fenced: set[object] = set()
    members: set[object] = set()
    for event in before.events("FenceBroker", "UnfenceBroker", "ChangePartition"):
        if event.event == "FenceBroker":
            fenced.add(event.fields.get("peer"))
        elif event.event == "UnfenceBroker":
            fenced.discard(event.fields.get("peer"))
        else:
            replicas, live = event.fields.get("replicas"), event.fields.get("live")
            members |= set(_nodes(replicas)) | set(_nodes(event.fields.get("isr")))
            fenced |= members - set(_nodes(live)) if live is not None else set()
    return bool(fenced)


def _nodes(value: object) -> Iterable[object]:
    return value if isinstance(value, tuple | list | frozenset | set) else ()


def _raises_below_its_epoch(before: Before) -> bool:
    """Return whether a leader raises its high watermark before it has a record of its own epoch (KAFKA-12619)."""
    elections = [event for event in before.own("BecomeLeader") if event.fields.get("epoch_start", 0) is not None]
    start = elections[-1].fields.get("epoch_start") if elections else None
    hw = before.failing.fields.get("hw")
    return not isinstance(start, int) or not isinstance(hw, int) or hw <= start


def _forgets_a_disk(before: Before) -> bool:
    """Look for a replica that comes back without a log that it had (KAFKA-14139)."""
    had: set[int] = set()
    for event in before.events("LoseDisk", "DeleteReplica", "Start"):
        if event.event == "LoseDisk" or (event.event == "Start" and event.fields.get("leo") == 0 and event.node in had):
            return True
        if event.event == "DeleteReplica":
            had.discard(event.node)
        else:
            had.add(event.node)
    return False


def _takes_an_older_response(before: Before) -> bool:
    """Look for records that a follower takes from a response of another leader epoch than its own (KAFKA-18991)."""
    epochs: dict[int, object] = {}
    for event in before.events("BecomeFollower", "HandleFetchResponse"):
        if event.event == "BecomeFollower":
            epochs[event.node] = event.fields.get("leader_epoch")
        elif event.fields.get("req_epoch", epochs.get(event.node)) != epochs.get(event.node, event.fields.get("req_epoch")):
            return True
    return False


STEPS: Mapping[str, Callable[[Before], bool]] = {
    "F2": _leads_again_after_another,
    "F3": _erases_its_proposal,
    "F4": _keeps_removed_eligible,
    "KAFKA-12619": _raises_below_its_epoch,
    "KAFKA-12686": _takes_a_role_in_between,
    "KAFKA-13091": lambda before: before.failing.event == "HandleAlterPartitionResponse",
    "KAFKA-13141": lambda before: bool(before.events("HandleFetch", least={"div_end": 0, "remote_leo": 0})),
    "KAFKA-14139": _forgets_a_disk,
    "KAFKA-15021": _cannot_join,
    "KAFKA-18991": _takes_an_older_response,
    "KAFKA-6361": lambda before: bool(before.events("HandleEpochResponse", "HandleEpochRequest")),
    "KAFKA-8400": lambda before: bool(before.events("HandleFetch", least={"error": 1, "remote_leo": 0})),
    "KIP-101": lambda before: bool(before.events("TruncateToHighWatermark")),
}
"""By bug, whether a trace has its step. A rule that only its bug breaks needs no row."""
