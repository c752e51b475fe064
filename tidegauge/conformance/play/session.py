"""A session of play: takes steps by label, describes them in lines, and keeps the path, which can be judged.

A label is the name of an action of the specification and its arguments; brokers are named by their index. A cluster is a
value, one state of a run, so a step returns another. `values` are the letters that records are shown by. A line begins with
the name of a broker, `controller`, or a message:

    b2->b1 Fetch offset=1 epoch=0 last_fetched_epoch=0
    b1     hw 0->1, knows b2@1

Rules of this file

1. The session decides nothing: its cluster (PlayedCluster) says what is enabled and what a step does. A label that is not
   enabled changes nothing.
2. Records get letters in the order they are written; a record is its (epoch, offset), as everywhere.
3. The path is kept, so a session is a trace like any other, and the judge can be asked about it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tidegauge.conformance.engine.judge import Judgement, judge
from tidegauge.conformance.play.arguments import action_text, controller_action_text
from tidegauge.impl.cluster.cluster import Bounds, Cluster, Label, actions, initial, record_epochs, step
from tidegauge.impl.controller.replication_control import is_active
from tidegauge.impl.errors import ERROR_NAMES
from tidegauge.impl.explorer import cluster_under_controller, controller_model, describe
from tidegauge.impl.explorer.cluster_under_controller import ControlledCluster, controlled_successors, take_label
from tidegauge.impl.explorer.controller_model import FAILED_STILL, STOPPED, ControlBounds
from tidegauge.impl.explorer.describe import (
    STARTS,
    Values,
    broker_name,
    broker_names,
    control_label_text,
    controller_text,
    message_text,
    partition_text,
)
from tidegauge.impl.explorer.invariants import INVARIANTS
from tidegauge.impl.explorer.spec_view import view
from tidegauge.impl.profiles import FETCH_TRUNCATION, ModelProfile, Profile
from tidegauge.impl.rules import INELIGIBLE_REPLICA, UNDEFINED
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.behaviour import LABELS, events_of_step, trace_of_path
from tidegauge.traces.from_model.whole_controller import traces_of_controlled
from tidegauge.traces.schema import Trace
from tidegauge.util.errors import UsageError

# The two clusters that can be played: brokers under the controller of the specification, or under all of
# impl.controller. `impl.cluster.cluster` and `impl.explorer.cluster_under_controller` decide what is enabled and what a step
# does.


class PlayedCluster(Protocol):
    """One state of a cluster that a session plays."""

    @property
    def cluster(self) -> Cluster:
        """The brokers, their network and the registration that they read."""
        ...

    @property
    def profile(self) -> Profile:
        """The profile of brokers and controller; the controller's where brokers have their own."""
        ...

    def enabled(self) -> tuple[Label, ...]:
        """Return the labels of what can happen now, as far as their arguments can be listed."""
        ...

    def step(self, label: Label) -> "PlayedCluster | None":
        """Return the state after a step; None if the step cannot happen now."""
        ...

    def step_lines(self, before: Any, label: Label, values: Values) -> list[str]:
        """Describe the step from the state `before`, one of the same kind, to this one."""
        ...

    def next_news(self, broker: int, label: Label) -> Label | None:
        """Return the next step of a broker that reads what the controller decided in the step `label`.

        None if it has read all of it.
        """
        ...

    def label_text(self, label: Label) -> str:
        """Return a label in words."""
        ...

    def command(self, label: Label) -> str:
        """Return the command that takes a step."""
        ...

    def show(self, values: Values) -> list[str]:
        """Draw every replica's log, what is in flight, and the registration."""
        ...

    def violations(self) -> list[str]:
        """Describe every invariant that does not hold now."""
        ...

    def traces(self, path: Sequence[Any], labels: Sequence[Label], name: str) -> list[Trace]:
        """Return a run as its nodes would have reported it: `path` has the states, `labels` the steps between them."""
        ...


# ---------------------------------------------------------------------------------------------------------------------
# Under the controller of the specification

UNBOUNDED = 1_000
"""Offsets, epochs, crashes and network faults that nobody reaches by hand."""

ACTIONS_WITH_ELR = {
    "Crash": "CrashAndLose",
    "FenceBroker": "FenceElr",
    "UnfenceBroker": "UnfenceElr",
    "AlterPartition": "AlterPartitionElr",
}
"""Actions that a profile with ELR has under another name, by the name that they have without."""


def bounds_for(brokers: int, max_fetch: int = UNBOUNDED, *, clients: bool = False) -> Bounds:
    """Return bounds that nobody reaches by hand, except `max_fetch`, the number of records in one fetch.

    With `clients` all records are those of producers that wait for acks=all.
    """
    unbounded = Bounds(
        brokers,
        max_log=UNBOUNDED,
        max_epoch=UNBOUNDED,
        max_crashes=UNBOUNDED,
        max_fetch=max_fetch,
        max_duplicates=UNBOUNDED,
        max_lost_disks=UNBOUNDED,
        max_waiting=UNBOUNDED if clients else 0,
        max_start=UNBOUNDED,
    )
    return unbounded._replace(loses_tails=True)


def broker_play(bounds: Bounds, profile: ModelProfile = FETCH_TRUNCATION) -> "BrokerPlay":
    """Return brokers in their initial state; `profile` may have one for each broker, and one for the controller."""
    controller = profile if isinstance(profile, Profile) else profile.controller
    return BrokerPlay(initial(bounds, profile), controller)


@dataclass(frozen=True)
class BrokerPlay:
    """Brokers under the controller of the specification, which knows one partition and who is live."""

    cluster: Cluster
    profile: Profile

    def enabled(self) -> tuple[Label, ...]:
        """Return the labels of what can happen now."""
        return actions(self.cluster)

    def step(self, label: Label) -> "BrokerPlay | None":
        """Return the state after a step; None if the step cannot happen now."""
        return BrokerPlay(step(self.cluster, label), self.profile) if label in self.enabled() else None

    def step_lines(self, before: "BrokerPlay", label: Label, values: Values) -> list[str]:
        """Describe the step that led here from `before`."""
        return step_lines(before.cluster, label, self.cluster, values)

    def next_news(self, broker: int, label: Label) -> Label | None:  # noqa: ARG002
        """Return the change of role that a broker has not read yet, the only news there is; None if it has read all."""
        enabled = self.enabled()
        return next((news for name in ("BecomeLeader", "BecomeFollower") if (news := (name, broker)) in enabled), None)

    def label_text(self, label: Label) -> str:
        """Return a label in words."""
        return describe.label_text(label)

    def command(self, label: Label) -> str:
        """Return the command that takes a step."""
        return action_text(label)

    def show(self, values: Values) -> list[str]:
        """Draw every replica's log, the controller, what is in flight."""
        return describe.grid(self.cluster, values).splitlines()

    def violations(self) -> list[str]:
        """Describe every invariant that does not hold now."""
        violations = (check(self.cluster) for check in INVARIANTS.values())
        return [describe.violation_text(violation) for violation in violations if violation is not None]

    def traces(self, path: Sequence["BrokerPlay"], labels: Sequence[Label], name: str) -> list[Trace]:
        """Return a run as its nodes would have reported it, in one trace: the topic is never deleted here."""
        views = [view(state.cluster) for state in path]
        duplicates = any(label[0] == "HandleDuplicate" for label in labels)
        min_isr = self.cluster.model.bounds.min_insync_replicas
        return [
            trace_of_path(
                views, labels, name, self.cluster.model.profile_name, "impl", min_isr=min_isr, duplicates=duplicates
            )
        ]


# ---------------------------------------------------------------------------------------------------------------------
# Under the whole controller

CONTROLLER_INVARIANTS = {
    "LeaderCompleteness": "it is the leader and lacks what was acknowledged",
    "LeaderIsLive": "it is the leader, and may not lead",
    "LeaderIsInIsr": "it is the leader outside the ISR",
    "SomebodyMayLead": "nobody leads, and nobody is waited for",
    "ElrIsApart": "it is eligible, and in sync or no replica",
    "AddsNobodyItRemoves": "the same replica is added and removed",
    "CompletesInSync": "all who are wanted are in sync, and the reassignment is under way",
    "BrokersMayRegister": "the controller fails when it registers",
}
"""What a violation of each invariant means, in the order of impl.explorer.controller_model."""

NEWS = ("BecomeLeader", "BecomeFollower", "DeleteReplica", "ReadConfig")
"""What a broker reads, in the order of the metadata log."""


def controller_play(bounds: ControlBounds, profile: Profile, *, clients: bool = False) -> "ControllerPlay":
    """Return brokers and the whole controller in their initial state."""
    return ControllerPlay(cluster_under_controller.initial_controlled_cluster(bounds, profile, clients=clients), profile)


@dataclass(frozen=True)
class ControllerPlay:
    """Brokers under all of impl.controller: replicas are reassigned, configurations change, topics are deleted and
    created."""

    controlled: ControlledCluster
    profile: Profile

    @property
    def cluster(self) -> Cluster:
        """The brokers, their network and the registration that they read."""
        return self.controlled.cluster

    def enabled(self) -> tuple[Label, ...]:
        """Return the labels of what can happen now, but for Reassign, SetMinIsr and Create, which have any arguments."""
        return tuple(label for label, _ in controlled_successors(self.controlled))

    def step(self, label: Label) -> "ControllerPlay | None":
        """Return the state after a step; None if the step cannot happen now."""
        after = take_label(self.controlled, label)
        return None if after is None else ControllerPlay(after, self.profile)

    def step_lines(self, before: "ControllerPlay", label: Label, values: Values) -> list[str]:
        """Describe the step that led here from `before`: what became of brokers, then the registration if it changed."""
        # LABELS are the actions of brokers under the controller of the specification. These three are among them, and the
        # whole controller decides them with more than it has there.
        if label[0] in LABELS and label[0] not in {"AlterPartition", "ElectPreferred", "Register"}:
            return step_lines(before.cluster, label, self.cluster, values)
        return list(_controller_lines(before.controlled, label, self.controlled))

    def next_news(self, broker: int, label: Label) -> Label | None:
        """Return the next step of a broker that reads the news of `label`, or that it has to take before it reads on."""
        # After AlterPartition a broker reads the response to its proposal, which holds no configuration.
        news_in_order = NEWS[:-1] if label[0] == "AlterPartition" else NEWS
        enabled = self.enabled()
        news = next(((name, broker) for name in news_in_order if (name, broker) in enabled), None)
        # `waiting`: by broker, the records whose producers wait for a response; empty without clients.
        leads, waiting = self.cluster.brokers[broker].leads, self.cluster.waiting
        if news is not None or leads or not waiting or not waiting[broker]:
            return news
        # A broker that leads no more answers the produces in its purgatory before it reads on:
        # ReplicaManager#completeDelayedOperationsWhenNotPartitionLeader.
        return next((response for response in enabled if response[:2] == ("AnswerProduce", broker)), None)

    def label_text(self, label: Label) -> str:
        """Return a label in words."""
        return control_label_text(label)

    def command(self, label: Label) -> str:
        """Return the command that takes a step."""
        return controller_action_text(label)

    def show(self, values: Values) -> list[str]:
        """Draw every replica's log, what is in flight, the controller's registration."""
        lines = describe.grid(self.cluster, values).splitlines()
        # min.insync.replicas as brokers have read it, and as the controller has it, the sixth part of its view.
        known_to_brokers = self.cluster.model.setup.min_insync_replicas
        _, _, _, _, _, min_isr, *_ = controller_model.control_view(self.controlled.control)
        config = _config(self.controlled) + (f", {known_to_brokers} as brokers know" if min_isr != known_to_brokers else "")
        # What `describe` draws of a controller is the registration that brokers read: here the controller itself is at hand.
        registration = f"registration  {_partition(self.controlled)}; {config}"
        return [*(line for line in lines if not line.startswith("controller")), registration]

    def violations(self) -> list[str]:
        """Describe every invariant that does not hold now."""
        violations = (controller_model.control_violation(self.controlled.control, (name,)) for name in CONTROLLER_INVARIANTS)
        return [
            f"{violation.invariant} VIOLATED{f' at {broker_names(violation.brokers)}' if violation.brokers else ''}: "
            f"{CONTROLLER_INVARIANTS[violation.invariant]}; expected {list(violation.expected)}, seen {list(violation.seen)}"
            for violation in violations
            if violation is not None
        ]

    def traces(self, path: Sequence["ControllerPlay"], labels: Sequence[Label], name: str) -> list[Trace]:
        """Return a run as its nodes would have reported it, a trace for each life of the topic."""
        return traces_of_controlled([state.controlled for state in path], labels, name, "impl")


def _controller_lines(before: ControlledCluster, label: Label, after: ControlledCluster) -> Iterator[str]:
    """Describe a step of the controller, or of a process that sent it a request: first the process, then the registration.

    In a label `kept` and `fails` are 0 or 1, `directory` is an index of arguments.DIRECTORIES, `error` is 0 for none.
    """
    match label:
        case ("Die", b, kept):
            yield f"{broker_name(b):<7}dies{'' if kept else ', and its disk is lost'}"
        case ("ShutDown", b):
            yield f"{broker_name(b):<7}{'stops' if after.control.processes[b] == STOPPED else 'waits to stop'}"
        case ("Register", b, directory):
            log = after.cluster.brokers[b].partition.log
            log_text = "without a log" if directory == FAILED_STILL else f"with leo {log.end}, hw {log.hw}"
            yield f"{broker_name(b):<7}starts {log_text}{',' if directory else ''}{STARTS[directory]}"
        case ("FailDirectory", b) | ("Unfence", b, 1):
            yield f"{broker_name(b):<7}its directory failed"
        case ("DeleteReplica", b):
            yield f"{broker_name(b):<7}deletes its replica, leo {before.cluster.brokers[b].partition.log.end}"
        case ("ReadConfig", b):
            yield f"{broker_name(b):<7}knows min_isr {after.cluster.model.setup.min_insync_replicas}"
        case ("AlterPartition", b, error) if error:
            refused = f"INELIGIBLE_REPLICA ({error})" if error == INELIGIBLE_REPLICA else f"error {error}"
            yield f"controller refuses isr={broker_names(before.cluster.brokers[b].partition.state.proposed_isr)}: {refused}"
            changed = change_text(b, before.cluster, after.cluster)
            yield from [changed] if changed else []
    old, new = _registration(before), _registration(after)
    # A configuration that was set is shown even if it is what it was.
    if old != new or label[0] == "SetMinIsr":
        yield f"controller {new}"


def _registration(state: ControlledCluster) -> str:
    """Return in one line what the controller has registered: the partition, the active brokers, the configuration."""
    control = state.control
    active = tuple(b for b in range(control.bounds.brokers) if is_active(control.control, b))
    return f"{_partition(state)} active={broker_names(active)} {_config(state)}"


def _partition(state: ControlledCluster) -> str:
    """Return the partition as the controller has registered it, in words: the first part of its view."""
    return partition_text(controller_model.control_view(state.control)[0])


def _config(state: ControlledCluster) -> str:
    """Return min.insync.replicas as the controller has it, and the ELR feature where it is not what the profile says."""
    # Two parts of the controller's view: min.insync.replicas, and, the last of its last part, whether the feature is on.
    _, _, _, _, _, min_isr, _, (_, _, elr) = controller_model.control_view(state.control)
    return f"min_isr={min_isr}" + ("" if elr == state.cluster.model.setup.profile.elr else f" elr={'on' if elr else 'off'}")


LETTERS = "abcdefghijklmnopqrstuvwxyz"
"""Records are shown by these, in the order in which they are written, again and again."""


class Session:
    """The run so far: every state of the cluster, and the label of each step."""

    def __init__(self, start: PlayedCluster) -> None:
        """Begin a session at a state of a cluster, with no step taken and no record written."""
        self.path: list[PlayedCluster] = [start]
        self.labels: list[Label] = []
        self.values: dict[tuple[int, int], str] = {}  # by (epoch, offset) of a record, its letter

    @property
    def now(self) -> PlayedCluster:
        """The state after the last step."""
        return self.path[-1]

    @property
    def cluster(self) -> Cluster:
        """The brokers, their network and the registration after the last step."""
        return self.now.cluster

    @property
    def states(self) -> list[Cluster]:
        """The brokers, their network and the registration at the start and after each step."""
        return [state.cluster for state in self.path]

    @property
    def profile(self) -> Profile:
        """The profile of brokers and controller."""
        return self.now.profile

    @property
    def brokers(self) -> int:
        """The number of brokers."""
        return len(self.cluster.brokers)

    @property
    def has_whole_controller(self) -> bool:
        """Whether the controller is all of impl.controller."""
        return isinstance(self.now, ControllerPlay)

    def enabled(self) -> tuple[Label, ...]:
        """Return the labels of what can happen now."""
        return self.now.enabled()

    def first_enabled(self, labels: Iterable[Label]) -> Label | None:
        """Return the first of `labels` that can happen now; None if none can."""
        possible = set(self.enabled())
        return next((label for label in labels if label in possible), None)

    def take(self, label: Label) -> list[str]:
        """Take one step; return what it did, a line each. Raises UsageError for a label that is not enabled."""
        before, after = self.now, self.now.step(label)
        if after is None:
            seen = before.label_text(label)
            raise UsageError(f"expected an action that can happen now, seen {seen}; `actions` lists them")
        self.labels.append(label)
        self.path.append(after)
        # A letter belongs to (epoch, offset): a record that another one replaces later keeps its own.
        action, *numbers = label
        if action == "LeaderAppend":
            epochs = record_epochs(after.cluster.brokers[numbers[0]])  # by offset: the new record is the last one
            self.values[epochs[-1], len(epochs) - 1] = LETTERS[len(self.values) % len(LETTERS)]
        return after.step_lines(before, label, self.values)

    def back_to(self, steps: int) -> None:
        """Take back all steps but the first `steps`."""
        # A letter of a record that is taken back stays used; the next write gets the next one, and may overwrite it.
        del self.labels[steps:], self.path[steps + 1 :]

    def show(self) -> list[str]:
        """Draw every replica's log, what is in flight, and the registration."""
        return self.now.show(self.values)

    def traces(self, name: str = "session") -> list[Trace]:
        """Return the run so far, as its nodes would have reported it: a trace for each life of the topic."""
        return self.now.traces(self.path, self.labels, name)

    def trace(self, name: str = "session") -> Trace:
        """Return the trace of the topic's present life."""
        return self.traces(name)[-1]

    def judged(self) -> Judgement:
        """Judge the traces by the unchanged profile: a switch that was turned off must not excuse what it breaks."""
        traces = self.traces()
        return judge(to_columns(traces, traces[0].config), traces[0].config)


# The lines of one step: the message that was consumed, then what changed, a line per broker.
#
# Rules of this part
#
# 1. A message has its line when it is consumed or lost, not when it is sent: `show` lists what is in flight.
# 2. A change names only what changed, always in the order epoch, log start, leo, hw, isr, proposal, recorded log ends.


WIDTH = 7
"""Characters of the name of a broker at the beginning of a line, with the spaces after it."""


def step_lines(before: Cluster, label: Label, after: Cluster, values: Values) -> list[str]:
    """Describe the step `label`, which led from `before` to `after`; `values` has the letters of records."""
    return [line.rstrip() for line in _lines(before, label, after, values)]


def _lines(before: Cluster, label: Label, after: Cluster, values: Values) -> Iterator[str]:
    """Yield the lines of the step `label` from `before` to `after`: its message or cause first, then what changed."""
    broker = label[1]
    match label:
        case ("SendFetch" | "SendEpochRequest", follower, *_):
            source = before.brokers[follower].source
            yield f"{message_text(follower, source, after.network[follower][source], values)}  SENT"
        case ("HandleFetch" | "HandleEpochRequest", *_):
            yield from _served(before, label, after, values)
        case (
            "HandleFetchResponse" | "HandleDivergingResponse" | "HandleOutOfRange" | "HandleEpochResponse",
            follower,
            leader,
            *_,
        ):
            yield message_text(follower, leader, before.network[follower][leader], values)
            yield change_text(follower, before, after) or _line(follower, _why_no_change(before, label, after))
        case ("LoseResponse", follower, leader, *_):
            yield f"{message_text(follower, leader, before.network[follower][leader], values)}  LOST"
        case ("Duplicate", follower, leader, *_):
            yield f"{message_text(follower, leader, before.network[follower][leader], values)}  will arrive twice"
        case ("HandleDuplicate", leader, follower, *_):
            copy = before.copies[follower][leader]
            yield f"{message_text(follower, leader, copy, values)}  once more; nobody gets the response"
            yield change_text(leader, before, after) or _line(leader, "no change")
        case ("LoseDisk", *_):
            yield _line(broker, "loses its disk")
        case ("AnswerProduce", leader, end, error, *_):
            result = "acknowledged" if error == 0 else f"answered with error {error}"
            yield _line(leader, f"the produce that ends at {end} is {result}")
        case ("Read", leader, hw, bound, *_):
            yield _line(leader, f"a consumer reads up to {bound}, hw {hw}")
        case ("LeaderAppend", *_):
            yield _line(broker, f"append {_record(after, broker, values)}", *_changes(broker, before, after))
        case ("TruncateToHighWatermark", *_):
            yield _line(broker, "truncates at its high watermark", *_changes(broker, before, after))
        case ("ShrinkIsr", *_):
            yield change_text(broker, before, after)
        case ("DeleteRecords", leader, offset, *_):
            yield _line(leader, f"deletes what is before {offset}")
        case ("Crash" | "CrashAndLose", _, hw, log_end, *_):
            yield _line(broker, f"crashes, hw checkpointed at {hw}, leo {log_end}")
        case ("Stop", *_):
            yield _line(broker, "stops cleanly")
        case ("Restart" | "Register", *_):
            log = after.brokers[broker].partition.log
            yield _line(broker, f"starts with leo {log.end}, hw {log.hw}")
            if before.controller != after.controller:
                yield f"controller {controller_text(after.controller)}"
        case ("BecomeLeader", *_):
            yield _line(broker, "leads", *_changes(broker, before, after))
        case ("BecomeFollower", *_):
            leader = after.brokers[broker].partition.leader_id
            does = f"follows {broker_name(leader)}" if leader != UNDEFINED else "has no leader"
            yield _line(broker, does, *_changes(broker, before, after))
        # All other actions are the controller's.
        case _:
            yield from _decided(before, label, after)


def _served(before: Cluster, label: Label, after: Cluster, values: Values) -> Iterator[str]:
    """Yield the lines of a step in which a leader handles a request: it may be down, refuse, or answer.

    An answer is in flight after the step; nothing is after a refusal.
    """
    name, leader, follower = label[:3]
    yield message_text(follower, leader, before.network[follower][leader], values)
    profile = before.model.profile_name
    handled = [event for event in events_of_step(view(before), label, view(after), profile) if event.event == name]
    # A leader that is down handles nothing, and so reports no event; the action is enabled to take the request away.
    if not handled:
        yield _line(leader, "is down, the request is lost")
    elif after.network[follower][leader] is None:
        yield _line(leader, f"refuses: {ERROR_NAMES[handled[0].fields['error']]}")
    change = change_text(leader, before, after)
    if change:
        yield change


def _why_no_change(before: Cluster, label: Label, after: Cluster) -> str:
    """Return why a response changed nothing at its follower: that dropped it, or there was nothing new in it."""
    name, follower, _ = label  # an action that handles a response, the follower, the leader
    # A follower drops a response of another leader epoch, or to a request that it has given up: it reports no event then.
    events = events_of_step(view(before), label, view(after), before.model.profile_name)
    # In events a broker is named by its node id, which is its index plus 1.
    return "no change" if any(event.event == name and event.node == follower + 1 for event in events) else "ignores it"


def _decided(before: Cluster, label: Label, after: Cluster) -> Iterator[str]:
    """Yield the lines of a step of the controller: a proposal that it refuses, or what is registered after it."""
    # A refused proposal changes its leader, which drops it, and not the controller. The name may be that with ELR. The model
    # has one refusal, of an ineligible replica: other errors are no step. A proposal that is accepted changes no broker.
    if label[0].startswith("AlterPartition") and before.controller == after.controller and before.brokers != after.brokers:
        leader = label[1]
        proposed = broker_names(before.brokers[leader].partition.state.proposed_isr)
        yield f"controller refuses isr={proposed}: INELIGIBLE_REPLICA ({INELIGIBLE_REPLICA})"
        yield change_text(leader, before, after)
    else:
        yield f"controller {controller_text(after.controller)}"


# ---------------------------------------------------------------------------------------------------------------------
# Changes


def _line(broker: int, *parts: str) -> str:
    """Return a line about a broker: its name, then the parts with commas between them."""
    return f"{broker_name(broker):<{WIDTH}}{', '.join(parts)}"


def change_text(broker: int, before: Cluster, after: Cluster) -> str:
    """Return the line of what changed at a broker; "" if nothing did."""
    changed = _changes(broker, before, after)
    return _line(broker, *changed) if changed else ""


def _changes(broker: int, before: Cluster, after: Cluster) -> list[str]:
    """List what changed at a broker, in the order of rule 2: `hw 0->1`, `knows b2@1` (a recorded log end), ..."""
    old, new = before.brokers[broker].partition, after.brokers[broker].partition
    parts = []
    # A shorter log was truncated; `leo 5->3` alone would not say so.
    if new.log.end < old.log.end:
        parts.append(f"truncate to {new.log.end}")
    pairs = (
        ("epoch", old.leader_epoch, new.leader_epoch),
        ("start", old.log.start, new.log.start),
        ("leo", old.log.end, new.log.end),
        ("hw", old.log.hw, new.log.hw),
    )
    parts += [f"{name} {was}->{now}" for name, was, now in pairs if was != now]
    if new.is_leader and new.state.isr != old.state.isr:
        parts.append(f"isr {broker_names(new.state.isr)}")
    if new.state.is_inflight and new.state != old.state:
        parts.append(f"proposes isr {broker_names(new.state.proposed_isr)}")
    # Its proposal is decided. A leader that is deposed drops its proposal too: that goes without saying.
    elif old.state.is_inflight and not new.state.is_inflight and new.is_leader:
        parts.append("nothing proposed any more")
    # The log ends that a leader has recorded of the other replicas, UNDEFINED where it has none.
    old_log_ends = {replica.broker_id: replica.log_end for replica in old.remotes}
    for replica in new.remotes:
        if replica.log_end != old_log_ends.get(replica.broker_id, UNDEFINED):
            at = f"@{replica.log_end}" if replica.log_end != UNDEFINED else " no longer"
            parts.append(f"knows {broker_name(replica.broker_id)}{at}")
    return parts


def _record(cluster: Cluster, broker: int, values: Values) -> str:
    """Format the last record of a broker's log: epoch, letter, @ and offset, as in 0a@0."""
    epochs = record_epochs(cluster.brokers[broker])
    offset = len(epochs) - 1
    return f"{epochs[-1]}{values.get((epochs[-1], offset), '')}@{offset}"
