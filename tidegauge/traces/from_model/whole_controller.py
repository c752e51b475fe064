"""A run of brokers under the whole controller (impl.explorer.cluster_under_controller) as traces, one for each topic id.

Rules of this file

1. Steps of brokers and clients become the same events as in any run of the model (traces.from_model.behaviour); this file
   has the registration with its assignment, and the lifecycle of brokers and replicas.
2. The first event of a replica is `Start`; after it is deleted or its directory failed it has none. To one replica a
   directory that fails under a broker is a crash that loses the disk.
3. A topic that is created again has another topic id: its events are another trace. A broker that has not read of the
   deletion yet goes on with the old replica: what it does belongs to that one's trace.

Brokers are indexes from 0 here (`b`), and node ids from 1 in events. `state.control` is the controller with its registration
of the partition and the processes of brokers, `state.cluster` the brokers with their logs; `state.held[b]` is the topic id
of the replica on b's disk, `state.topic_id` that of the topic now. A label is (action, arguments...), mostly with the broker
first. Topic ids count from 0. `broker_events.report(b, event, **fields)` is an event of broker b. `control.partition` is
None while the topic is deleted.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.controller.partition_registration import PartitionRegistration
from tidegauge.impl.explorer.cluster_under_controller import ControlledCluster
from tidegauge.impl.explorer.controller_model import STOPPED, gives_up, stops_in_order
from tidegauge.impl.explorer.spec_view import view
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.traces.from_model.behaviour import LABELS, config_for, events_of_step, numbered
from tidegauge.traces.from_model.broker_events import report
from tidegauge.traces.from_model.views import CONTROLLER, broker, epoch_cache, node_id
from tidegauge.traces.schema import REASSIGNED, Config, Event, Trace


def traces_of_controlled(
    states: Sequence[ControlledCluster], labels: Sequence[Label], name: str, source: str
) -> list[Trace]:
    """Return the traces of a path, one for each topic id; `labels[i]` leads from `states[i]` to `states[i + 1]`."""
    reports = _Reports()
    reports.begins(states[0])
    for label, (before, after) in zip(labels, pairwise(states), strict=True):
        # The topic was deleted and created again: a new topic id, and a trace of its own.
        if after.topic_id > before.topic_id:
            reports.begin_topic()
            reports.registered(after)
        else:
            reports.step(before, label, after)
    config = _config_of(states[0], source)
    # The first topic has the plain names, later ones their topic id behind them.
    return [
        Trace(
            name if not topic_id else f"{name}-{topic_id}",
            f"model-0.{topic_id}" if topic_id else "model-0",
            config,
            numbered(events),
        )
        for topic_id, events in enumerate(reports.by_topic)
    ]


def _config_of(state: ControlledCluster, source: str) -> Config:
    """Return the config of a run: of its brokers, profile and min.insync.replicas; replicas may be reassigned."""
    model = state.cluster.model
    count, min_isr = model.bounds.brokers, model.setup.min_insync_replicas
    config = config_for(count, model.profile_name, source, min_isr=min_isr)
    return Config(**{**vars(config), "extra": {REASSIGNED: True}})


class _Reports:
    """Collects the events of each topic id, and remembers of which one each broker has loaded a replica."""

    def __init__(self) -> None:
        """Begin with the first topic, and no broker that has a replica of it."""
        self.events: list[Event] = []
        """Those of the topic that there is now, or was last; the controller's are among them."""
        self.by_topic = [self.events]
        self.loaded: dict[int, int] = {}
        """By broker, the topic id of the replica that its process has loaded; a broker without one is not there."""
        self.changed = False
        """Whether min.insync.replicas has changed since the run began: from then on brokers report the value they read."""

    def begin_topic(self) -> None:
        """Begin the events of the next topic."""
        self.events = []
        self.by_topic.append(self.events)

    def events_of(self, b: int) -> list[Event]:
        """Return the events of the topic of which b has loaded a replica; without one, those of the last topic."""
        return self.by_topic[self.loaded.get(b, -1)]

    def begins(self, state: ControlledCluster) -> None:
        """Add the first events: replicas are loaded, registered, and have a role."""
        assigned = state.control.bounds.replicas
        for b in assigned:
            self.loaded[b] = 0
            self.events.append(report(b, "Start", clean=True, leo=0, hw=0, log_start=0, epochs=()))
        self.registered(state)
        # The leader first: a follower names it.
        leader = state.cluster.controller.leader
        for b in (leader, *(b for b in assigned if b != leader)):
            self._role(state, b)

    def registered(self, state: ControlledCluster) -> None:
        """Add the registration of a new partition, if there is one in the state."""
        if state.control.partition is not None:
            self.events.append(_change(state.control.partition, clean=True))

    def step(self, before: ControlledCluster, label: Label, after: ControlledCluster) -> None:
        """Add the events of one step, but those of the controller if the topic is deleted: it reports nothing about that."""
        first_new = len(self.events)
        self._step(before, label, after)
        # The brokers still learn of the deletion; the controller has no partition any more.
        if before.control.partition is None:
            self.events[first_new:] = [event for event in self.events[first_new:] if event.node != CONTROLLER]

    def _step(self, before: ControlledCluster, label: Label, after: ControlledCluster) -> None:
        """Add the events of one step, in the order in which the nodes would report them.

        The third part of a label is the error of AlterPartition, 1 in Die if the disk is kept, what a failed log directory
        is by then in Register (controller_model), and 1 in Unfence if the heartbeat also reports a failed directory.
        """
        name, *rest = label
        # The broker that acts, if the action has one.
        b = rest[0] if rest and isinstance(rest[0], int) else UNDEFINED
        match name:
            case "BecomeLeader" | "BecomeFollower":
                # Partition#makeLeader and #makeFollower create the log of a replica that the broker does not have.
                if b not in self.loaded:
                    self._start(before, b, clean=True)
                epoch_before = before.cluster.brokers[b].partition.leader_epoch
                # A new role brings the configuration that the broker has read by then.
                if self.changed and after.cluster.brokers[b].partition.leader_epoch > epoch_before:
                    self.events_of(b).append(_read_config(b, after))
                self._moved(before, label, after)
            case "ReadConfig":
                self.events_of(b).append(_read_config(b, after))
            case "SetMinIsr":
                self.changed = True
                set_min_isr = Event(node=CONTROLLER, event="SetMinIsr", fields={"min_isr": label[1]})
                self.events += [set_min_isr, *_changes(before, after)]
            case "DeleteReplica":
                self.loaded.pop(b, None)
                # Its process may have loaded nothing: then the disk says of which topic the replica is.
                self.by_topic[before.held[b]].append(report(b, name))
            case "AlterPartition":
                of_leader = self.events_of(b)
                # The controller reports nothing about a topic that is deleted.
                of_leader += (
                    event
                    for event in _altered(before, b, label[2], after)
                    if of_leader is self.events or event.node != CONTROLLER
                )
            case "Die":
                self._lost(b, "Crash", loses_disk=not label[2])
            case "ShutDown":
                self.events += _changes(before, after)
                # A controlled shutdown may take several steps: leadership moves away first, then the process ends.
                if after.control.processes[b] == STOPPED:
                    self.events.append(_concerns(b, "FenceBroker"))
                    self._lost(b, "Stop", loses_disk=False)
            case "Register":
                self._registers(before, b, label[2], after)
            case "Fence":
                self.events += [*_changes(before, after), _concerns(b, "FenceBroker")]
            case "Unfence" | "FailDirectory":
                # A heartbeat that unfences a broker may also report a failed directory (the label's second argument).
                if name == "FailDirectory" or label[2]:
                    self._lost(b, "Crash", loses_disk=True)
                begins = [_concerns(b, "UnfenceBroker")] if name == "Unfence" else []
                self.events += [*begins, *_changes(before, after)]
            case _ if name in LABELS and name != "ElectPreferred":
                self._moved(before, label, after)
            # Every other step is the controller's, and shows in the registration only.
            case _:
                self.events += _changes(before, after)

    def _moved(self, before: ControlledCluster, label: Label, after: ControlledCluster) -> None:
        """Add the events of a step of brokers, as in any run of the model, with the partition epoch where a role is new."""
        profile = before.cluster.model.profile_name
        for event in events_of_step(view(before.cluster), label, view(after.cluster), profile):
            fields = dict(event.fields)
            if event.event in {"BecomeLeader", "BecomeFollower"}:
                fields["partition_epoch"] = after.cluster.brokers[label[1]].partition.partition_epoch
            # A broker without a replica has nothing to report.
            if event.node - 1 in self.loaded:
                self.events_of(event.node - 1).append(Event(event.node, event.event, fields))

    def _start(self, state: ControlledCluster, b: int, *, clean: bool) -> None:
        """Add the Start of a replica of the newest topic: loaded from b's disk, or just created."""
        # The log as the steps of the model see it: an epoch for each record.
        replica = broker(view(state.cluster), b)
        cache = epoch_cache(replica.log, replica.mark)
        self.loaded[b] = len(self.by_topic) - 1
        self.events.append(report(b, "Start", clean=clean, leo=replica.leo, hw=replica.hw, log_start=0, epochs=cache))

    def _role(self, state: ControlledCluster, b: int) -> None:
        """Add the role that a broker has at the beginning of the run, with an empty log."""
        partition = state.cluster.brokers[b].partition
        epochs = {"leader_epoch": partition.leader_epoch, "partition_epoch": partition.partition_epoch, "leo": 0, "hw": 0}
        if partition.is_leader:
            isr = tuple(member + 1 for member in partition.state.isr)
            self.events.append(report(b, "BecomeLeader", **epochs, isr=isr, epoch_start=0))
        else:
            self.events.append(report(b, "BecomeFollower", **epochs, leader=node_id(partition.leader_id)))

    def _lost(self, b: int, event: str, *, loses_disk: bool) -> None:
        """Add the event, Crash or Stop, after which the replica on b has no events until it starts again.

        Nothing is added where b has loaded no replica.
        """
        if b in self.loaded:
            events = self.events_of(b)
            del self.loaded[b]
            events.append(report(b, event, **({"clean": True} if event == "Stop" else {})))
            events += [report(b, "LoseDisk")] if loses_disk else []

    def _registers(self, before: ControlledCluster, b: int, directory: int, after: ControlledCluster) -> None:
        """Add the start of the broker, the changes that its registration causes, and the registration.

        `directory` is what a failed log directory of its is by then, as in the label of Register (controller_model).
        """
        clean = stops_in_order(before.control, b, directory)
        # The broker has a replica of this topic id on its disk.
        if before.held[b] == before.topic_id:
            self._start(after, b, clean=clean)
        self.events += _changes(before, after)
        registered = {"peer": node_id(b), "clean": clean}
        self.events.append(Event(node=CONTROLLER, event="RegisterBroker", fields=registered))


def _read_config(b: int, state: ControlledCluster) -> Event:
    """Return the event of a broker that has read the min.insync.replicas of a state."""
    return report(b, "ReadConfig", min_isr=state.cluster.model.setup.min_insync_replicas)


def _concerns(b: int, event: str) -> Event:
    """Return an event of the controller about a broker."""
    return Event(node=CONTROLLER, event=event, fields={"peer": node_id(b)})


def _altered(before: ControlledCluster, b: int, error: int, after: ControlledCluster) -> Iterator[Event]:
    """Yield the events of leader b's ISR proposal: the controller's decision, the changes it wrote, and an error at b."""
    partition = before.cluster.brokers[b].partition
    proposed = tuple(m + 1 for m in partition.state.proposed_isr)
    epochs = {"leader_epoch": partition.leader_epoch, "partition_epoch": partition.partition_epoch}
    proposal = {"peer": node_id(b), **epochs, "isr": proposed, "error": error}
    yield Event(node=CONTROLLER, event="AlterPartition", fields=proposal)
    yield from _changes(before, after)
    # An accepted leader reads its new ISR from metadata, in a step of its own; a refused one gets none.
    if error != NONE:
        yield report(b, "HandleAlterPartitionResponse", isr=None, partition_epoch=None, error=error)


def _changes(before: ControlledCluster, after: ControlledCluster) -> Iterator[Event]:
    """Yield an event for each partition epoch that a step has added to the registration."""
    was, now = before.control.partition, after.control.partition
    # A topic that is deleted or made anew, and a step that changes nothing.
    if was is None or now is None or was == now:
        return
    # Records of one batch leave only the last registration: an earlier one has the fields on which first and last agree.
    for epoch in range(was.partition_epoch + 1, now.partition_epoch):
        same = {name: value for name, value in _fields(now).items() if _fields(was)[name] == value}
        yield Event(node=CONTROLLER, event="ChangePartition", fields={**same, "partition_epoch": epoch, "clean": True})
    yield _change(now, clean=not gives_up(was, now))


def _change(partition: PartitionRegistration, *, clean: bool) -> Event:
    """Return the event of a new registration; not `clean`: by an unclean election."""
    return Event(node=CONTROLLER, event="ChangePartition", fields={**_fields(partition), "clean": clean})


def _fields(partition: PartitionRegistration) -> dict[str, object]:
    """Return a registration as fields of ChangePartition, with node ids."""
    sets = ("isr", "replicas", "adding", "removing", "elr", "last_known_elr")
    return {
        "leader": node_id(partition.leader),
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        **{name: tuple(sorted(b + 1 for b in getattr(partition, name))) for name in sets},
    }
