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

from tidegauge.traces.kafka_logs.nodes.steps import Fields, LoggedBroker, LoggedStep, or_null
from tidegauge.traces.kafka_logs.parsing.parsed_line import ParsedLine, changes, ids


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
    """The registrations of one controller, as its lines show them, read in order."""

    def __init__(self, broker: LoggedBroker) -> None:
        self.broker = broker
        self.registrations: dict[str, Registration] = {}
        self.replicas: dict[str, tuple[int, ...]] = {}
        self.altered: dict[str, LoggedStep] = {}
        self.epochs: dict[str, int] = {}
        self.broker_epochs: dict[int, set[int]] = {}
        self.gaps = 0
        self.keeps_elr = False
        """A line shows eligible leader replicas (KIP-966): known even if no line names the release."""
        self.handlers: Mapping[str, Callable[[ParsedLine], None]] = {
            "registered": self.registered,
            "changed": self.changed,
            "isr-altered": self.isr_altered,
            "broker-registered": self.broker_registered,
            "broker-changed": self.broker_changed,
            "min-isr-written": self.min_isr_written,
        }

    def registered(self, parsed: ParsedLine) -> None:
        """Register a new partition."""
        self.replicas[parsed.tp] = parsed.ids("replicas")
        self.broker.learn_topic(parsed)
        assigned: dict[str, Any] = {name: parsed.ids(name) for name in _LISTS.values() if name in parsed.values}
        registration = Registration(leader=parsed.number("leader"), leader_epoch=parsed.number("leader_epoch"))
        self.registrations[parsed.tp] = replace(registration, **assigned)
        self._change(parsed, parsed.number("partition_epoch"), clean=True)

    def changed(self, parsed: ParsedLine) -> None:
        """Change the registration of a partition."""
        self.broker.learn_topic(parsed)
        changed = changes(parsed.text("changes"))
        before = self.registrations.get(parsed.tp, Registration())
        # Of the values before the change the line names only those that changed: the others come from the registration.
        isr = ids(changed["isr"][0][1:-1]) if "isr" in changed else before.isr
        elr = ids(changed["elr"][0][1:-1]) if "elr" in changed else before.elr or ()
        lists: dict[str, Any] = {name: ids(changed[key][1][1:-1]) for key, name in _LISTS.items() if key in changed}
        after = replace(before, **lists)
        self.keeps_elr |= "elr" in changed
        if "leader" in changed:
            after = replace(after, leader=int(changed["leader"][1]))
        if "leaderEpoch" in changed:
            after = replace(after, leader_epoch=int(changed["leaderEpoch"][1]))
        self.registrations[parsed.tp] = after
        # A leader of -1 is the end of a leadership, not an election.
        elected = "leader" in changed and after.leader is not None and after.leader >= 0
        clean = None if elected and isr is None else not elected or after.leader in (*(isr or ()), *elr)
        epoch = int(changed["partitionEpoch"][1]) if "partitionEpoch" in changed else None
        # Rule 3: every change raises the partition epoch by one.
        if epoch is not None and self.epochs.get(parsed.tp, epoch - 1) != epoch - 1:
            self.gaps += 1
        step = self._change(parsed, epoch, clean)
        altered = self.altered.pop(parsed.tp, None)
        # Only an accepted proposal has the line `altered ISR`: the change after it with this ISR is its result.
        if altered is not None and frozenset(after.isr or ()) == frozenset(_ids(altered)):
            step.fields["peer"] = altered.fields["peer"]

    def isr_altered(self, parsed: ParsedLine) -> None:
        """Add a proposal of a leader that was accepted; the request log adds the epochs."""
        step = self.broker.step(parsed, "AlterPartition", {"peer": parsed.number("peer"), "isr": parsed.ids(), "error": 0})
        self.altered[parsed.tp] = step

    def broker_registered(self, parsed: ParsedLine) -> None:
        """Register a broker, in a new incarnation."""
        peer, epoch = parsed.number("peer"), parsed.number("broker_epoch")
        self.broker_epochs.setdefault(peer, set()).add(epoch)
        self._concerns(parsed, "RegisterBroker", {"peer": peer, "broker_epoch": epoch})

    def broker_changed(self, parsed: ParsedLine) -> None:
        """Fence a broker (1), or unfence it (-1). A controlled shutdown is neither."""
        # BrokerRegistrationFencingChange: 1 fences, -1 unfences, 0 leaves it; a controlled shutdown has a field of its own.
        if parsed.number("fenced"):
            name = "FenceBroker" if parsed.number("fenced") > 0 else "UnfenceBroker"
            self._concerns(parsed, name, {"peer": parsed.number("peer")})

    def min_isr_written(self, parsed: ParsedLine) -> None:
        """Set min.insync.replicas of an existing topic; if it was removed, the value is unknown."""
        for tp in self.registrations:
            # A configuration is of a topic, a trace of one of its partitions.
            if tp.rpartition("-")[0] == parsed.text("topic"):
                fields: Fields = {"min_isr": parsed.number("min_isr")} if "min_isr" in parsed.values else {}
                self.broker.step(parsed, "SetMinIsr", fields, tp)

    def _concerns(self, parsed: ParsedLine, name: str, fields: Fields) -> None:
        """Add a step to each partition of which a broker has a replica."""
        for tp, registration in self.registrations.items():
            if parsed.number("peer") in (registration.replicas or ()):
                self.broker.step(parsed, name, dict(fields), tp)

    def _change(self, parsed: ParsedLine, epoch: int | None, clean: bool | None) -> LoggedStep:
        now = self.registrations[parsed.tp]
        step = self.broker.step(parsed, "ChangePartition", {})
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
            self.epochs[parsed.tp] = epoch
            step.provides.append(("metadata", parsed.tp, epoch))
        return step


def _ids(step: LoggedStep) -> tuple[int, ...]:
    isr = step.fields["isr"]
    return isr if isinstance(isr, tuple) else ()
