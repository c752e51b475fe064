"""Handlers of the controller's lines: registrations of partitions and what changes them.

A method of LoggedController handles one kind of line (HANDLERS): it reads the values of the ParsedLine and adds steps,
events in the making, to those of its broker. Lines come in the order of the log, process by process. Keys tie steps: one
that `depends_on` a key comes after those that `provide` it. ("metadata", partition, partition epoch) is that of the change
to this epoch, ("altered", ..) of the proposal that led to it, ("proposed", ..) of a proposal that was made in it.

Rules of this file

1. A change line names only what changed; the registration before it fills in the rest, so every ChangePartition is whole.
2. `UNCLEAN` in a line proves nothing: 4.x prints it for every partition that is RECOVERING afterwards. An election is clean
   if the new leader was in the ISR or among the eligible leader replicas (KIP-966) before.
3. Every change raises the partition epoch by one: a step of two, or a broker that acts on an epoch nobody set, shows that
   the lines are incomplete (the logger was at INFO).
4. Every controller of a quorum prints a change when it replays it. One of them is read (choose_controller); of the others
   only the proposals that they accepted while they were active, which nobody else prints.
5. A controller that starts again replays its log from the beginning, or from a snapshot, and prints again what it printed
   before. A topic's partition epochs and a broker's epochs only grow, so they show what is new.
6. The active controller prints a change when it writes it to its log. If it gives up its leadership before the others have
   it (it stood still, and they elected one), it goes back to what is committed: the change never was.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tidegauge.traces.kafka_logs.nodes.logged_broker import Fields, LoggedBroker, LoggedStep, Place, or_null
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
"""Kafka's names of the lists in a registration -> the schema's."""


class PrintedBefore:
    """What the processes of a controller printed by key, to tell what a later one replays."""

    def __init__(self) -> None:
        """Begin with nothing printed."""
        self._values: dict[Hashable, list[Hashable]] = {}
        """By key, the values in the order in which they were printed first."""
        self._replayed: dict[Hashable, int] = {}
        """By key, how many of these values this process has printed again."""

    def begin_process(self) -> None:
        """Begin a process: it replays everything, so no value was printed again yet."""
        self._replayed.clear()

    def begin_at_snapshot(self) -> None:
        """Begin behind everything that was printed: a snapshot has the state, and not what led to it."""
        self._replayed = {key: len(values) for key, values in self._values.items()}

    def again(self, key: Hashable, value: Hashable) -> bool:
        """Return whether an earlier process printed this value of `key`, else note it as new.

        A controller that starts replays the metadata log and prints the same values again, those of a key in their order. So
        a value is a repetition only if it is the next one.
        """
        values = self._values.setdefault(key, [])
        position = self._replayed.get(key, 0)
        replayed = position < len(values) and values[position] == value
        if not replayed:
            values.append(value)
        self._replayed[key] = position + 1 if replayed else len(values)
        return replayed

    def forget_last(self, key: Hashable) -> None:
        """Forget the value of `key` that was noted last, as its change was undone (rule 6)."""
        values = self._values[key]
        values.pop()
        self._replayed[key] = min(self._replayed.get(key, 0), len(values))


_ABSENT = object()
"""Stands for a key that a table has not."""


class Uncommitted:
    """A list of functions that undo the changes which a controller made since it became active (rule 6).

    A change is noted as its line is read; a later line says at which offset of the metadata log it was written.
    """

    def __init__(self) -> None:
        """Begin with nothing to undo."""
        self._undo: list[Callable[[], object]] = []
        self._written: list[tuple[int, int]] = []
        """(offset, how many functions there were when it was written), both grow."""

    def begin(self) -> None:
        """Take all changes so far for committed: they are not undone any more."""
        self._undo, self._written = [], []

    def put(self, table: dict[Any, Any], key: Hashable, value: object) -> None:
        """Set table[key] to `value`, and note how to undo that."""
        before = table.get(key, _ABSENT)
        self.note(partial(table.pop, key, None) if before is _ABSENT else partial(table.__setitem__, key, before))
        table[key] = value

    def note(self, undo: Callable[[], object]) -> None:
        """Note a function that undoes a change."""
        self._undo.append(undo)

    def written(self, offset: int) -> None:
        """Note that the changes since the last write are in the log, up to this offset."""
        if len(self._undo) > (self._written[-1][1] if self._written else 0):
            self._written.append((offset, len(self._undo)))

    def revert(self, committed: int) -> None:
        """Undo the changes that were written behind the offset `committed`.

        Those without a written offset stay: a write that is not in the log by its line is not known to be lost.
        """
        number_committed = max((count for offset, count in self._written if offset <= committed), default=0)
        number_written = self._written[-1][1] if self._written else 0
        for undo in reversed(self._undo[number_committed:number_written]):
            undo()
        self.begin()


class LoggedController:
    """The registrations of one controller, as its lines show them, read in order.

    Without `chosen` another controller of the quorum is read, and this one adds only the proposals that it accepted.
    """

    def __init__(self, broker: LoggedBroker) -> None:
        """Begin with no registration known."""
        self.broker = broker
        self.chosen = True
        self._printed = PrintedBefore()
        self._uncommitted = Uncommitted()
        self._withdrawn: dict[LoggedStep, None] = {}
        """The steps that it took back when it last gave up its leadership. A proposal among them may come back: the
        controller that was elected may have had it in its log.
        """
        self._latest: dict[tuple[str, str], int] = {}
        self._latest_before: dict[tuple[str, str], int] = {}
        """By partition and topic id, the latest partition epoch that a line has shown, now and when the process began: what
        is not above the latter is replayed.
        """
        self._registered_before: dict[int, frozenset[int]] = {}
        """By broker, the broker epochs that lines had shown when the process began."""
        self.registrations: dict[str, Registration] = {}
        self.replicas: dict[str, tuple[int, ...]] = {}
        """By partition, the replicas that it was created with."""
        self.altered: dict[str, LoggedStep] = {}
        """By partition, the step of an accepted proposal whose change no line has shown yet."""
        self.epochs: dict[str, int] = {}
        """By partition, its latest partition epoch."""
        self.broker_epochs: dict[int, set[int]] = {}
        self.gaps = 0
        """Changes that skipped a partition epoch (rule 3)."""
        self.keeps_elr = False
        """A line shows eligible leader replicas (KIP-966): known even if no line names the release."""

    def begin_process(self) -> None:
        """Keep what earlier processes have shown: a process begins by printing that again (rule 5)."""
        self._printed.begin_process()
        self._uncommitted.begin()
        self._latest_before = dict(self._latest)
        self._registered_before = {peer: frozenset(epochs) for peer, epochs in self.broker_epochs.items()}

    def registered(self, parsed: ParsedLine) -> None:
        """Register a new partition, or one that a process which starts replays."""
        again = self._is_replayed(parsed, parsed.number("partition_epoch"))
        # A log begins with partitions as they were created (partition epoch 0), a snapshot has them as they are.
        if again and parsed.number("partition_epoch") > 0:
            self._printed.begin_at_snapshot()
        self._uncommitted.put(self.replicas, parsed.tp, parsed.ids("replicas"))
        lists: dict[str, Any] = {name: parsed.ids(name) for name in _LISTS.values() if name in parsed.values}
        registration = Registration(leader=parsed.number("leader"), leader_epoch=parsed.number("leader_epoch"))
        self._uncommitted.put(self.registrations, parsed.tp, replace(registration, **lists))
        if not again:
            self.broker.learn_topic(parsed)
            self._change(parsed, parsed.number("partition_epoch"), clean=True)

    def changed(self, parsed: ParsedLine) -> None:
        """Take `partition change for <partition>`: fields with the value before and after, such as `isr: [1, 2] -> [1]`."""
        changed = changes(parsed.text("changes"))
        old = {name: value_before for name, (value_before, _) in changed.items()}
        new = {name: value_after for name, (_, value_after) in changed.items()}
        before = self.registrations.get(parsed.tp, Registration())
        # Of the values before the change the line names only those that changed: the others come from the registration.
        # [1:-1] takes the brackets off a list.
        isr = ids(old["isr"][1:-1]) if "isr" in changed else before.isr
        elr = ids(old["elr"][1:-1]) if "elr" in changed else before.elr or ()
        lists: dict[str, Any] = {name: ids(new[key][1:-1]) for key, name in _LISTS.items() if key in changed}
        after = replace(before, **lists)
        self.keeps_elr |= "elr" in changed
        if "leader" in changed:
            after = replace(after, leader=int(new["leader"]))
        if "leaderEpoch" in changed:
            after = replace(after, leader_epoch=int(new["leaderEpoch"]))
        self._uncommitted.put(self.registrations, parsed.tp, after)
        # A leader of -1 is the end of a leadership, not an election.
        elected = "leader" in changed and after.leader is not None and after.leader >= 0
        # Clean is a leader out of the ISR or the ELR before the change; with an unknown ISR nobody can say.
        clean = None if elected and isr is None else not elected or after.leader in (*(isr or ()), *elr)
        epoch = int(new["partitionEpoch"]) if "partitionEpoch" in changed else None
        # A controller that starts replays the log: its lines about old changes are no new changes.
        if self._is_replayed(parsed, epoch):
            return
        self.broker.learn_topic(parsed)
        # Rule 3: every change raises the partition epoch by one.
        if epoch is not None and self.epochs.get(parsed.tp, epoch - 1) != epoch - 1:
            self.gaps += 1
        self._restore_withdrawn_proposal(parsed.tp, epoch, after.isr)
        step = self._change(parsed, epoch, clean)
        altered = self.altered.pop(parsed.tp, None)
        if altered is not None:
            self._uncommitted.note(partial(self.altered.__setitem__, parsed.tp, altered))
        # Only an accepted proposal has the line `altered ISR`: the change after it with this ISR is its result.
        if altered is not None and frozenset(after.isr or ()) == frozenset(_isr_of(altered)):
            step.fields["peer"] = altered.fields["peer"]

    def isr_altered(self, parsed: ParsedLine) -> None:
        """Take the line `altered ISR`: add a leader's proposal that was accepted. The request log adds its epochs later."""
        step = self.broker.step(parsed, "AlterPartition", {"peer": parsed.number("peer"), "isr": parsed.ids(), "error": 0})
        self._uncommitted.put(self.altered, parsed.tp, step)
        # If it is undone, the step is withdrawn.
        self._uncommitted.note(partial(self._withdrawn.setdefault, step))
        # Keys tie it to the change that it makes, which may be read from the log of another controller: that has the next
        # partition epoch.
        if parsed.tp in self.epochs:
            step.depends_on += (
                ("metadata", parsed.tp, self.epochs[parsed.tp]),
                ("proposed", parsed.tp, self.epochs[parsed.tp]),
            )
            step.provides += (("altered", parsed.tp, self.epochs[parsed.tp] + 1),)

    def broker_registered(self, parsed: ParsedLine) -> None:
        """Add RegisterBroker for a broker epoch that no earlier process of the controller has shown."""
        peer, epoch = parsed.number("peer"), parsed.number("broker_epoch")
        if epoch not in self.broker_epochs.setdefault(peer, set()):
            self.broker_epochs[peer].add(epoch)
            self._uncommitted.note(partial(self.broker_epochs[peer].discard, epoch))
        if epoch not in self._registered_before.get(peer, ()):
            self._step_of_broker(parsed, "RegisterBroker", {"peer": peer, "broker_epoch": epoch})

    def broker_changed(self, parsed: ParsedLine) -> None:
        """Add FenceBroker or UnfenceBroker, as a line about a broker's registration says: a controlled shutdown is neither.

        A repetition adds nothing.
        """
        # BrokerRegistrationFencingChange: 1 fences, -1 unfences, 0 leaves it; a controlled shutdown has a field of its own.
        key = ("fenced", parsed.number("peer"), parsed.number("broker_epoch"))
        if parsed.number("fenced") and not self._printed_again(key, parsed.number("fenced")):
            name = "FenceBroker" if parsed.number("fenced") > 0 else "UnfenceBroker"
            self._step_of_broker(parsed, name, {"peer": parsed.number("peer")})

    def min_isr_written(self, parsed: ParsedLine) -> None:
        """Add SetMinIsr to each partition of an existing topic; if the configuration was removed, the value is unknown."""
        if self._printed_again(("min.insync.replicas", parsed.text("topic")), parsed.values.get("min_isr")):
            return
        for tp in self.registrations:
            # A configuration is of a topic, a trace of one of its partitions.
            if tp.rpartition("-")[0] == parsed.text("topic"):
                fields: Fields = {"min_isr": parsed.number("min_isr")} if "min_isr" in parsed.values else {}
                self._step(parsed, "SetMinIsr", fields, tp)

    def activated(self, parsed: ParsedLine) -> None:  # noqa: ARG002
        """Take the line that this is now the active controller: all that it replayed before is committed."""
        self._uncommitted.begin()

    def written(self, parsed: ParsedLine) -> None:
        """Note up to where its log has the changes that it printed just before."""
        self._uncommitted.written(parsed.number("offset"))

    def renounced(self, parsed: ParsedLine) -> None:
        """Take the line that it gives up its leadership: undo what it wrote and no majority has (rule 6)."""
        self._withdrawn.clear()
        # What undoes a step puts it into `_withdrawn`.
        self._uncommitted.revert(parsed.number("offset"))
        if self._withdrawn:
            self.broker.steps[:] = [step for step in self.broker.steps if step not in self._withdrawn]

    def _restore_withdrawn_proposal(self, tp: str, epoch: int | None, isr: tuple[int, ...] | None) -> None:
        """Restore the proposal that makes a change (its partition epoch and ISR), if it was taken back.

        The change shows that the controller that was elected had the proposal in its log.
        """
        for step in self._withdrawn:
            if ("altered", tp, epoch) in step.provides and frozenset(_isr_of(step)) == frozenset(isr or ()):
                del self._withdrawn[step]
                self.broker.steps.append(step)
                self.altered[tp] = step
                return

    def _printed_again(self, key: Hashable, value: Hashable) -> bool:
        """Return whether an earlier process printed this value of `key` (see PrintedBefore.again); else note it."""
        again = self._printed.again(key, value)
        if not again:
            self._uncommitted.note(partial(self._printed.forget_last, key))
        return again

    def _step_of_broker(self, parsed: ParsedLine, name: str, fields: Fields) -> None:
        """Add a step about the broker of a line to each partition of which that has a replica."""
        for tp, registration in self.registrations.items():
            if parsed.number("peer") in (registration.replicas or ()):
                self._step(parsed, name, dict(fields), tp)

    def _step(self, parsed: ParsedLine, name: str, fields: Fields, tp: str = "") -> LoggedStep:
        """Make a step at a line, of partition `tp` or the line's own; add it if this is the controller that is read."""
        if self.chosen:
            step = self.broker.step(parsed, name, fields, tp)
            self._uncommitted.note(partial(self._withdrawn.setdefault, step))
            return step
        place: Place = (self.broker.run, self.broker.index, 0, 0)
        return LoggedStep(self.broker.node, tp or parsed.tp, name, fields, parsed.line.at, parsed.line.time, place)

    def _is_replayed(self, parsed: ParsedLine, epoch: int | None) -> bool:
        """Return whether an earlier process had this partition epoch of the line's partition, or a later one; note it."""
        if epoch is None:
            return False
        key = (parsed.tp, parsed.text("topic_id"))
        self._uncommitted.put(self._latest, key, max(epoch, self._latest.get(key, -1)))
        return epoch <= self._latest_before.get(key, -1)

    def _change(self, parsed: ParsedLine, epoch: int | None, clean: bool | None) -> LoggedStep:
        """Add ChangePartition with the whole registration; `epoch` is its partition epoch.

        `clean` says whether a new leader was in the ISR or among the eligible leader replicas, None if that is unknown.
        """
        registration = self.registrations[parsed.tp]
        step = self._step(parsed, "ChangePartition", {})
        if registration.leader is not None:
            step.fields["leader"] = or_null(registration.leader)
        for name, value in (
            ("leader_epoch", registration.leader_epoch),
            ("partition_epoch", epoch),
            *((name, getattr(registration, name)) for name in _LISTS.values()),
            ("clean", clean),
        ):
            if value is not None:
                step.fields[name] = value
        if epoch is not None:
            self._uncommitted.put(self.epochs, parsed.tp, epoch)
            # Brokers act on it after it; the proposal that it is the result of comes before it.
            step.provides += (("metadata", parsed.tp, epoch),)
            step.depends_on += (("altered", parsed.tp, epoch),)
        return step


HANDLERS: Mapping[str, Callable[[LoggedController, ParsedLine], None]] = {
    "registered": LoggedController.registered,
    "changed": LoggedController.changed,
    "isr-altered": LoggedController.isr_altered,
    "broker-registered": LoggedController.broker_registered,
    "broker-changed": LoggedController.broker_changed,
    "min-isr-written": LoggedController.min_isr_written,
    "activated": LoggedController.activated,
    "written": LoggedController.written,
    "renounced": LoggedController.renounced,
}


def _isr_of(step: LoggedStep) -> tuple[int, ...]:
    """Return the ISR that a step names, empty if it names none."""
    isr = step.fields.get("isr")
    return isr if isinstance(isr, tuple) else ()
