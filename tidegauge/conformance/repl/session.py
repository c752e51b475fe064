"""A session of play: takes steps by label, describes them in lines, and keeps the path, which can be judged.

Rules of this file

1. The session decides nothing: its cluster (play.clusters) says what is enabled and what a step does. A label that is not
   enabled changes nothing.
2. Records get letters in the order they are written; a record is its (epoch, offset), as everywhere.
3. The path is kept, so a session is a trace like any other, and the judge can be asked about it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tidegauge.conformance.engine.judge import Judgement, judge
from tidegauge.conformance.repl.arguments import action_text, controller_action_text
from tidegauge.conformance.repl.step_text import change_text, step_lines
from tidegauge.impl.cluster.cluster import Bounds, Cluster, Label, actions, initial, record_epochs, step
from tidegauge.impl.controller.replication_control import is_active
from tidegauge.impl.explorer import cluster_under_controller, controller_model, describe
from tidegauge.impl.explorer.cluster_under_controller import ControlledCluster, controlled_successors, take_label
from tidegauge.impl.explorer.controller_model import FAILED_STILL, STOPPED, ControlBounds
from tidegauge.impl.explorer.describe import STARTS, Values, broker_name, broker_names, control_label_text, partition_text
from tidegauge.impl.explorer.invariants import INVARIANTS
from tidegauge.impl.explorer.view import view
from tidegauge.impl.profiles import FETCH_TRUNCATION, ModelProfile, Profile
from tidegauge.impl.rules import INELIGIBLE_REPLICA
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.behaviour import LABELS, trace_of_path
from tidegauge.traces.from_model.controlled import traces_of_controlled
from tidegauge.traces.schema import Trace
from tidegauge.util.errors import UsageError

# The two clusters that can be played: brokers under the controller of the specification, or under all of
# impl.controller.
#
# Rule of this file: a cluster is a value, one state of a run. `impl.cluster.cluster` and
# `impl.explorer.cluster_under_controller` decide what is enabled and what a step does.


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
        """Return what a broker does next to read the news of the step `label`; None when it has read them."""
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
        """Return a run of states of this kind as its nodes would have reported it."""
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


def bounds_for(brokers: int, max_fetch: int = UNBOUNDED, *, clients: bool = False) -> Bounds:
    """Return bounds that nobody reaches by hand, except `max_fetch`, the number of records in one fetch.

    With `clients` all records are those of producers that wait for acks=all.
    """
    waiting = UNBOUNDED if clients else 0
    unbounded = Bounds(brokers, UNBOUNDED, UNBOUNDED, UNBOUNDED, max_fetch, UNBOUNDED, UNBOUNDED, waiting, UNBOUNDED)
    return unbounded._replace(loses_tails=True)


def broker_play(bounds: Bounds, profile: ModelProfile = FETCH_TRUNCATION) -> "BrokerPlay":
    """Return brokers at their start."""
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
        """Return the change of role that a broker has not read yet."""
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
        """Return a run as its nodes would have reported it; the topic has one life."""
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
    """Return brokers and the whole controller at their start."""
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
        """Return the labels of what can happen now; Reassign, SetMinIsr and Create have arguments that nobody lists."""
        return tuple(label for label, _ in controlled_successors(self.controlled))

    def step(self, label: Label) -> "ControllerPlay | None":
        """Return the state after a step; None if the step cannot happen now."""
        after = take_label(self.controlled, label)
        return None if after is None else ControllerPlay(after, self.profile)

    def step_lines(self, before: "ControllerPlay", label: Label, values: Values) -> list[str]:
        """Describe the step that led here from `before`: what became of brokers, then the registration if it changed."""
        # These three have a name of the specification, and the whole controller decides them with more than it has there.
        if label[0] in LABELS and label[0] not in {"AlterPartition", "ElectPreferred", "Register"}:
            return step_lines(before.cluster, label, self.cluster, values)
        return list(_controller_lines(before.controlled, label, self.controlled))

    def next_news(self, broker: int, label: Label) -> Label | None:
        """Return the next thing that a broker reads, or has to answer before it does."""
        # The response to a proposal holds no configuration.
        news_in_order = NEWS[:-1] if label[0] == "AlterPartition" else NEWS
        enabled = self.enabled()
        news = next(((name, broker) for name in news_in_order if (name, broker) in enabled), None)
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
        known_to_brokers = self.cluster.model.setup.min_insync_replicas
        min_isr = controller_model.control_view(self.controlled.control)[5]
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
    """Describe a step of the controller, or of a process that sent it a request."""
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
    if old != new or label[0] == "SetMinIsr":
        yield f"controller {new}"


def _registration(state: ControlledCluster) -> str:
    control = state.control
    active = tuple(b for b in range(control.bounds.brokers) if is_active(control.control, b))
    return f"{_partition(state)} active={broker_names(active)} {_config(state)}"


def _partition(state: ControlledCluster) -> str:
    return partition_text(controller_model.control_view(state.control)[0])


def _config(state: ControlledCluster) -> str:
    """Return min.insync.replicas as the controller has it, and the ELR feature where it is not what the profile says."""
    _, _, _, _, _, min_isr, _, (_, _, elr) = controller_model.control_view(state.control)
    return f"min_isr={min_isr}" + ("" if elr == state.cluster.model.setup.profile.elr else f" elr={'on' if elr else 'off'}")


LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Session:
    """The run so far: every state of the cluster, and the label of each step."""

    def __init__(self, start: PlayedCluster) -> None:
        self.path: list[PlayedCluster] = [start]
        self.labels: list[Label] = []
        self.values: dict[tuple[int, int], str] = {}

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
        """Return the first of `labels` that can happen now."""
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
        if label[0] == "LeaderAppend":
            epochs = record_epochs(after.cluster.brokers[label[1]])
            self.values[epochs[-1], len(epochs) - 1] = LETTERS[len(self.values) % len(LETTERS)]
        return after.step_lines(before, label, self.values)

    def back_to(self, steps: int) -> None:
        """Take back all but the first `steps` steps."""
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
