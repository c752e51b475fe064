"""Lines of the controller: registrations of partitions and what changes them.

Rules of this file

1. A change line names only what changed; the registration before it fills in the rest, so every ChangePartition is whole.
2. `UNCLEAN` in a line proves nothing: 4.x prints it for every partition that is RECOVERING afterwards. An election is clean
   if the new leader was in the ISR or among the eligible leader replicas (KIP-966) before.
3. Every change raises the partition epoch by one: a step of two, or a broker that acts on an epoch nobody set, shows that
   the lines are incomplete (the logger was at INFO).
4. Every controller of a quorum prints the change when it replays it. One of them is read, see capture.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidegauge.traces.kafka.lines.phrases import changes, ids
from tidegauge.traces.kafka.lines.said import Said
from tidegauge.traces.kafka.nodes.steps import Fields, LoggedBroker, LoggedStep, or_null


@dataclass(frozen=True, slots=True)
class Registration:
    """PartitionRegistration as far as the trace needs it; None is unknown."""

    isr: tuple[int, ...] | None = None
    leader: int | None = None
    leader_epoch: int | None = None
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


_LISTS = {
    "isr": "isr",
    "replicas": "replicas",
    "addingReplicas": "adding",
    "removingReplicas": "removing",
    "elr": "elr",
    "lastKnownElr": "last_known_elr",
}
"""Kafka's names of the lists in a registration, and the schema's."""


class LoggedController:
    """The lines of one controller, read in order."""

    def __init__(self, broker: LoggedBroker) -> None:
        self.broker = broker
        self.registrations: dict[str, Registration] = {}
        self.replicas: dict[str, tuple[int, ...]] = {}
        self.altered: dict[str, LoggedStep] = {}
        self.epochs: dict[str, int] = {}
        self.broker_epochs: dict[int, set[int]] = {}
        self.gaps = 0
        self.keeps_elr = False
        """Whether a line shows eligible leader replicas (KIP-966): it holds also where no line names the release."""
        self.handlers: Mapping[str, Callable[[Said], None]] = {
            "registered": self.registered,
            "changed": self.changed,
            "isr-altered": self.isr_altered,
            "broker-registered": self.broker_registered,
            "broker-changed": self.broker_changed,
            "min-isr-written": self.min_isr_written,
        }

    def registered(self, said: Said) -> None:
        """A new partition."""
        self.replicas[said.tp] = said.ids("replicas")
        self.broker.learn_topic(said)
        assigned: dict[str, Any] = {name: said.ids(name) for name in _LISTS.values() if name in said.values}
        registration = Registration(leader=said.number("leader"), leader_epoch=said.number("leader_epoch"))
        self.registrations[said.tp] = replace(registration, **assigned)
        self._change(said, said.number("partition_epoch"), clean=True)

    def changed(self, said: Said) -> None:
        """A change of its registration."""
        self.broker.learn_topic(said)
        found = changes(said.text("changes"))
        before = self.registrations.get(said.tp, Registration())
        isr = ids(found["isr"][0][1:-1]) if "isr" in found else before.isr
        elr = ids(found["elr"][0][1:-1]) if "elr" in found else before.elr or ()
        lists: dict[str, Any] = {name: ids(found[key][1][1:-1]) for key, name in _LISTS.items() if key in found}
        after = replace(before, **lists)
        self.keeps_elr |= "elr" in found
        if "leader" in found:
            after = replace(after, leader=int(found["leader"][1]))
        if "leaderEpoch" in found:
            after = replace(after, leader_epoch=int(found["leaderEpoch"][1]))
        self.registrations[said.tp] = after
        elected = "leader" in found and after.leader is not None and after.leader >= 0
        clean = None if elected and isr is None else not elected or after.leader in (*(isr or ()), *elr)
        epoch = int(found["partitionEpoch"][1]) if "partitionEpoch" in found else None
        if epoch is not None and self.epochs.get(said.tp, epoch - 1) != epoch - 1:
            self.gaps += 1
        step = self._change(said, epoch, clean)
        altered = self.altered.pop(said.tp, None)
        if altered is not None and frozenset(after.isr or ()) == frozenset(_ids(altered)):
            step.fields["peer"] = altered.fields["peer"]

    def isr_altered(self, said: Said) -> None:
        """A leader's proposal, accepted; the request log adds the epochs."""
        step = self.broker.step(said, "AlterPartition", {"peer": said.number("peer"), "isr": said.ids(), "error": 0})
        self.altered[said.tp] = step

    def broker_registered(self, said: Said) -> None:
        """A broker, in a new incarnation."""
        peer, epoch = said.number("peer"), said.number("broker_epoch")
        self.broker_epochs.setdefault(peer, set()).add(epoch)
        self._concerns(said, "RegisterBroker", {"peer": peer, "broker_epoch": epoch})

    def broker_changed(self, said: Said) -> None:
        """It is fenced (1), or no more (-1). Shutting down in order is neither."""
        if said.number("fenced"):
            name = "FenceBroker" if said.number("fenced") > 0 else "UnfenceBroker"
            self._concerns(said, name, {"peer": said.number("peer")})

    def min_isr_written(self, said: Said) -> None:
        """Of a topic that is there; what it is created with, its first log says. Taken away, it is one that nobody says."""
        for tp in self.registrations:
            if tp.rpartition("-")[0] == said.text("topic"):
                fields: Fields = {"min_isr": said.number("min_isr")} if "min_isr" in said.values else {}
                self.broker.step(said, "SetMinIsr", fields, tp)

    def _concerns(self, said: Said, name: str, fields: Fields) -> None:
        """What happens to a broker happens to each partition that it holds."""
        for tp, registration in self.registrations.items():
            if said.number("peer") in (registration.replicas or ()):
                self.broker.step(said, name, dict(fields), tp)

    def _change(self, said: Said, epoch: int | None, clean: bool | None) -> LoggedStep:
        now = self.registrations[said.tp]
        step = self.broker.step(said, "ChangePartition", {})
        if now.leader is not None:
            step.fields["leader"] = or_null(now.leader)
        for name, value in (
            ("leader_epoch", now.leader_epoch),
            ("partition_epoch", epoch),
            *((name, getattr(now, name)) for name in _LISTS.values()),
            ("clean", clean),
        ):
            if value is not None:
                step.fields[name] = value
        if epoch is not None:
            self.epochs[said.tp] = epoch
            step.offers.append(("metadata", said.tp, epoch))
        return step


def _ids(step: LoggedStep) -> tuple[int, ...]:
    isr = step.fields["isr"]
    return isr if isinstance(isr, tuple) else ()
