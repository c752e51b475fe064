"""Findings of controllers as paths of a whole cluster: a controller of its contract, and brokers that read what it writes.

Rules of this file

1. The registration that a broker reads is the one that the controller of the reference has after the same steps; a proposal
   of a broker is a step of the controller. The real controller takes these steps, too: if none differs, the brokers were
   given what it has written.
2. Sessions, configurations and features are steps of the controller; a broker's process ends by a step of its own.
3. A broker's contract has no configuration that changes. A broker has the last min.insync.replicas of a path from the
   beginning, and while the controller has another nothing is appended that depends on it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tidegauge.drive.cluster.cluster_walks import MemberModel, PathBuilder
from tidegauge.drive.contract import Step
from tidegauge.drive.controller.contract import ClusterOpening, ControllerCase
from tidegauge.drive.controller.findings import (
    SHOWN_BY,
    SWITCH_OFF,
    SWITCH_ON,
    beats,
    fenced,
    min_isr,
    registers,
    topic,
    up,
)
from tidegauge.drive.controller.reference import reference
from tidegauge.impl.messages import AlterPartitionResponse
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import NONE
from tidegauge.util.errors import UsageError

TOPIC, PARTITION = "t", 0

_FIXED_REPLICAS = "a driven broker's replicas are never reassigned, deleted and created again"

ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "F4": _FIXED_REPLICAS,
        "F6": "the topic is deleted, so there is nothing to read",
        "F7": "a reassignment stays under way, and every read is right",
        "F8": "a driven broker has no log directory that fails",
        "F10": _FIXED_REPLICAS,
        "F12": "a reassignment stays under way, and every read is right",
    }
)
"""The findings of controllers that no reader of a driven broker sees, and why."""


class PlacedStep(NamedTuple):
    """A step of the controller, after how many steps of brokers, and what it makes of the partition's registration."""

    place: int
    step: Step
    text: str


class ControlledBuilder(PathBuilder):
    """A cluster under way whose controller takes the steps of its own contract: rule 1."""

    def __init__(self, members: Sequence[MemberModel], controller: Profile, opening: ClusterOpening, min_isr: int) -> None:
        super().__init__(members, controller, min_isr)
        self.reference, self._opening = reference(controller), opening
        self._control = self.reference.opened(opening)
        self.taken: list[PlacedStep] = []

    @property
    def case(self) -> ControllerCase:
        """The controller's part of the path."""
        return ControllerCase(self._opening, tuple(taken.step for taken in self.taken))

    def ask(self, *steps: Step) -> int:
        """Have the controller take steps; return the error of the last one."""
        error = NONE
        for step in steps:
            self._control, report = self.reference.take(self._control, step)
            self.taken.append(PlacedStep(len(self), step, self._read(report["partitions"])))
            error = (report["result"] or {}).get("error", NONE)
        return error

    def _read(self, partitions: Mapping[str, Any]) -> str:
        """Take over the registration that the controller has written; return it as text."""
        registration = partitions.get(f"{TOPIC}-{PARTITION}")
        if registration is None:
            return ""
        leader, epoch, isr, elr = (registration[field] for field in ("leader", "leader_epoch", "isr", "elr"))
        # Members are counted from 0 on, brokers from 1 on; no leader is -1 for both.
        self.image = self.image._replace(
            leader=leader - 1 if leader > 0 else leader,
            leader_epoch=epoch,
            isr=tuple(broker - 1 for broker in isr),
            partition_epoch=registration["partition_epoch"],
        )
        listed = (",".join(map(str, brokers)) or "nobody" for brokers in (isr, elr))
        return f"leader {leader if leader > 0 else 'none'}, epoch {epoch}; ISR {', eligible '.join(listed)}"

    def judge(self, leader: int) -> bool:
        """See PathBuilder."""
        proposal: Any = self._reports[leader][-1]["proposal"]
        if proposal is None or leader in self._verdicts:
            return False
        brokers = {self.name_of(leader, other): other + 1 for other in range(len(self.members))}
        isr = tuple(sorted(brokers[name] for name in proposal["isr"]))
        epochs = proposal["leader_epoch"], proposal["partition_epoch"]
        error = self.ask(("alter_partition", leader + 1, 0, TOPIC, PARTITION, *epochs, isr, False))
        response = AlterPartitionResponse(error, self.image.leader_epoch, self.image.partition_epoch, self.image.isr)
        self._verdicts[leader] = response, (self._last(leader, "proposal"),)
        return True

    def fence(self, member: int, preference: Sequence[int] = ()) -> bool:
        """Do nothing: rule 2."""
        del member, preference
        return False


FindingPart = Callable[[ControlledBuilder], Iterator[tuple[str, bool]]]


def _begin(builder: ControlledBuilder, value: int, *before: Step) -> Iterator[tuple[str, bool]]:
    """Start both brokers, and create the topic with this min.insync.replicas."""
    builder.ask(*before, *up(1, 2), topic((1, 2), min_isr=value))
    for member in (0, 1):
        yield "BecomeLeader", builder.read_metadata(member)
    yield "LeaderAppend", builder.append(0, -1)


def _copied(builder: ControlledBuilder) -> Iterator[tuple[str, bool]]:
    """Let the second broker fetch the record and say so: it is acknowledged."""
    for _ in range(2):
        yield "HandleFetch", builder.handle(1, 0, may_join=True)
        yield "HandleFetchResponse", builder.respond(1, 0)


def _leaves(builder: ControlledBuilder, member: int) -> Iterator[tuple[str, bool]]:
    """Let a broker stop in order: it is fenced first."""
    builder.ask(fenced(member + 1))
    yield "StopBroker", builder.stop(member)


def _forgotten_elr(builder: ControlledBuilder) -> Iterator[tuple[str, bool]]:
    """Take F5: everybody is down, min.insync.replicas is lowered, everybody comes back."""
    yield from _begin(builder, 2)
    yield from _copied(builder)
    for member in (1, 0):
        yield from _leaves(builder, member)
    builder.ask(min_isr(1), beats(1), beats(2))


def _old_elr_elects(builder: ControlledBuilder) -> Iterator[tuple[str, bool]]:
    """Take F9: the first broker commits alone while ELR is off, and the second is still eligible afterwards."""
    yield from _begin(builder, 2)
    yield from _copied(builder)
    yield from _leaves(builder, 1)
    yield "BecomeLeader", builder.read_metadata(0)
    builder.ask(SWITCH_OFF, min_isr(1))
    yield "LeaderAppend", builder.append(0, -1)
    builder.ask(SWITCH_ON)
    yield from _leaves(builder, 0)
    builder.ask(beats(2))


def _raised_too_late(builder: ControlledBuilder) -> Iterator[tuple[str, bool]]:
    """Take F11: the first broker has not read the higher min.insync.replicas, by which the second is eligible."""
    yield from _begin(builder, 1)
    builder.ask(min_isr(2))
    yield "ShrinkIsr", builder.lag(0)
    yield "AlterPartition", builder.judge(0)
    yield "AlterPartition", builder.respond_to_proposal(0)
    yield from _leaves(builder, 0)


def _switched_on_leaderless(builder: ControlledBuilder) -> Iterator[tuple[str, bool]]:
    """Take F13: ELR is switched on while nobody leads, and the last member comes back after a crash."""
    yield from _begin(builder, 2, SWITCH_OFF)
    yield from _copied(builder)
    yield from _leaves(builder, 1)
    builder.ask(fenced(1))
    yield "CrashBroker", builder.crash(0, 1)
    builder.ask(SWITCH_ON, beats(2), ("session_expires", 1), registers(1), beats(1))


SCRIPTS: Mapping[str, tuple[int, FindingPart]] = MappingProxyType(
    {
        "F5": (2, _forgotten_elr),
        "F9": (1, _old_elr_elects),
        "F11": (1, _raised_too_late),
        "F13": (2, _switched_on_leaderless),
    }
)
"""By finding, the min.insync.replicas that the brokers have, and the path."""


def controlled(name: str, members: Sequence[MemberModel], controller: Profile, opening: ClusterOpening) -> ControlledBuilder:
    """Return a builder for the path of a finding of controllers. Raises UsageError where this controller has it not."""
    if not (getattr(controller, SHOWN_BY[name]) and opening.elr):
        raise UsageError(
            f"--finding {name}: expected a controller that has it, with ELR; seen {controller.name}; name releases with both"
        )
    return ControlledBuilder(members[:2], controller, opening, SCRIPTS[name][0])
