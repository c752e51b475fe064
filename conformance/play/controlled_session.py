"""A session whose controller is all of impl.control: replicas are reassigned, configurations change, topics go and come.

Rules of this file

1. As in conformance.play.session: impl.explored.controlled_cluster says what is enabled and what a step does.
2. What brokers and clients do is told as in any session. A step of the controller is told by what it made of brokers, then
   the registration, where that changed.
3. A run is a trace for each life of the topic; the judge is asked about all of them.
"""

from collections.abc import Iterator

from tidegauge.conformance.judging.judge import Judgement, judge
from tidegauge.conformance.play.session import LETTERS, Session
from tidegauge.conformance.play.step_text import change_text, reported
from tidegauge.impl.cluster.cluster import Label, record_epochs
from tidegauge.impl.control.replication_control import is_active
from tidegauge.impl.errors import UsageError
from tidegauge.impl.explored import control_cluster, controlled_cluster, describe
from tidegauge.impl.explored.control_cluster import FAILED_STILL, STOPPED, ControlBounds
from tidegauge.impl.explored.controlled_cluster import ControlledCluster, asked, successors
from tidegauge.impl.explored.describe import broker_name, names
from tidegauge.impl.explored.describe_control import STARTS, label_text, partition_text
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import INELIGIBLE_REPLICA
from tidegauge.traces.columns import to_columns
from tidegauge.traces.model.behaviour import LABELS
from tidegauge.traces.model.controlled import traces_of_controlled
from tidegauge.traces.schema import Trace

INVARIANTS = {
    "LeaderCompleteness": "it is the leader and lacks what was acknowledged",
    "LeaderIsLive": "it is the leader, and may not lead",
    "LeaderIsInIsr": "it is the leader outside the ISR",
    "SomebodyMayLead": "nobody leads, and nobody is waited for",
    "ElrIsApart": "it is eligible, and in sync or no replica",
    "AddsNobodyItRemoves": "the same replica is added and removed",
    "CompletesInSync": "all who are wanted are in sync, and the reassignment is under way",
    "BrokersMayRegister": "the controller fails when it registers",
}
"""What a violation means, in the order of impl.explored.control_cluster."""


class ControlledSession(Session):
    """The run so far."""

    def __init__(self, bounds: ControlBounds, profile: Profile, *, clients: bool = False) -> None:
        self.profile = profile
        self.state = controlled_cluster.initial(bounds, profile, clients=clients)
        self.path: list[ControlledCluster] = [self.state]
        self.labels: list[Label] = []
        self.values: dict[tuple[int, int], str] = {}
        self.cluster = self.state.cluster

    def action(self, name: str) -> str:
        """There is one of each."""
        return name

    def enabled(self) -> tuple[Label, ...]:
        """What can happen now; Reassign, SetMinIsr and Create have arguments that nobody lists."""
        return tuple(label for label, _ in successors(self.state))

    def take(self, label: Label) -> list[str]:
        """One step; what it did, a line each."""
        before, after = self.state, asked(self.state, label)
        if after is None:
            raise UsageError(f"expected an action that can happen now, saw {label_text(label)}; `actions` lists them")
        self._go_to(after)
        self.labels.append(label)
        self.path.append(after)
        if label[0] == "LeaderAppend":
            written = record_epochs(after.cluster.brokers[label[1]])
            self.values[written[-1], len(written) - 1] = LETTERS[len(self.values) % len(LETTERS)]
        if label[0] in LABELS and label[0] not in {"AlterPartition", "ElectPreferred", "Register"}:
            return reported(before.cluster, label, after.cluster, self.values)
        return list(_decided(before, label, after))

    def _go_to(self, state: ControlledCluster) -> None:
        self.state, self.cluster = state, state.cluster

    def back_to(self, steps: int) -> None:
        """Only the first `steps` steps have happened."""
        del self.labels[steps:], self.path[steps + 1 :]
        self._go_to(self.path[-1])

    def show(self) -> list[str]:
        """Every replica's log, what is in flight, the controller's registration."""
        lines = describe.grid(self.cluster, self.values).splitlines()
        known = self.cluster.model.setup.min_insync_replicas
        min_isr = control_cluster.view(self.state.control)[5]
        config = _config(self.state) + (f", {known} as brokers know" if min_isr != known else "")
        registration = [f"registration  {_partition(self.state)}; {config}"]
        return [line for line in lines if not line.startswith("controller")] + registration

    def violations(self) -> list[str]:
        """Every invariant that does not hold now."""
        found = (control_cluster.violated(self.state.control, (name,)) for name in INVARIANTS)
        return [
            f"{one.invariant} VIOLATED{_at(one.brokers)}: {INVARIANTS[one.invariant]}; "
            f"expected {list(one.expected)}, seen {list(one.seen)}"
            for one in found
            if one is not None
        ]

    def traces(self, name: str = "session") -> list[Trace]:
        """The run so far, a trace for each life of the topic."""
        return traces_of_controlled(self.path, self.labels, name, "impl")

    def trace(self, name: str = "session") -> Trace:
        """The life of now."""
        return self.traces(name)[-1]

    def judged(self) -> Judgement:
        """What the judge says of all of them, under the unchanged profile."""
        traces = self.traces()
        return judge(to_columns(traces, traces[0].config), traces[0].config)


def _at(brokers: tuple[int, ...]) -> str:
    return f" at {names(brokers)}" if brokers else ""


def _partition(state: ControlledCluster) -> str:
    return partition_text(control_cluster.view(state.control)[0])


def _decided(before: ControlledCluster, label: Label, after: ControlledCluster) -> Iterator[str]:
    """A step of the controller, or of a process that asked it."""
    match label:
        case ("Die", b, kept):
            yield f"{broker_name(b):<7}dies{'' if kept else ', and its disk is lost'}"
        case ("ShutDown", b):
            yield f"{broker_name(b):<7}{'stops' if after.control.processes[b] == STOPPED else 'waits to stop'}"
        case ("Register", b, directory):
            log = after.cluster.brokers[b].partition.log
            found = "without a log" if directory == FAILED_STILL else f"with leo {log.end}, hw {log.hw}"
            yield f"{broker_name(b):<7}starts {found}{',' if directory else ''}{STARTS[directory]}"
        case ("FailDirectory", b) | ("Unfence", b, 1):
            yield f"{broker_name(b):<7}its directory failed"
        case ("DeleteReplica", b):
            yield f"{broker_name(b):<7}deletes its replica, leo {before.cluster.brokers[b].partition.log.end}"
        case ("ReadConfig", b):
            yield f"{broker_name(b):<7}knows min_isr {after.cluster.model.setup.min_insync_replicas}"
        case ("AlterPartition", b, error) if error:
            refused = f"INELIGIBLE_REPLICA ({error})" if error == INELIGIBLE_REPLICA else f"error {error}"
            yield f"controller refuses isr={names(before.cluster.brokers[b].partition.state.proposed_isr)}: {refused}"
            changed = change_text(b, before.cluster, after.cluster)
            yield from [changed] if changed else []
    seen, now = _registered(before), _registered(after)
    if seen != now or label[0] == "SetMinIsr":
        yield f"controller {now}"


def _registered(state: ControlledCluster) -> str:
    control = state.control
    active = tuple(b for b in range(control.bounds.brokers) if is_active(control.control, b))
    return f"{_partition(state)} active={names(active)} {_config(state)}"


def _config(state: ControlledCluster) -> str:
    """min.insync.replicas as the controller has it, and whether eligible leader replicas are off."""
    _, _, _, _, _, min_isr, _, (_, _, elr) = control_cluster.view(state.control)
    return f"min_isr={min_isr}" + ("" if elr == state.cluster.model.setup.profile.elr else f" elr={'on' if elr else 'off'}")
