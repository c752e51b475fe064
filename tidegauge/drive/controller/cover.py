"""Paths that take every step of spec/Controller.tla which a controller is asked for, at least once.

Rules of this file

1. The graph is that of impl.explorer.controller_model, which is TLC's. What brokers and logs do by themselves is no request:
   states that the controller cannot tell apart are one, and a step is a request, or two, in such a state.
2. A path begins with a shortest run to a state that still has something to take, and goes on while there is something near.
3. What is expected is the reference's word (reference.py), as on every path. A step that does not take it to the graph's
   next state is no part of the cover, and counted.
"""

from collections import deque
from collections.abc import Mapping, Set
from types import MappingProxyType
from typing import Any, NamedTuple

from tidegauge.drive.contract import Path
from tidegauge.drive.controller.contract import ClusterOpening, ControllerCase, ReferenceController, opened
from tidegauge.drive.controller.findings import beats, is_left_unnoticed, registers, up
from tidegauge.drive.controller.metadata_image import Incarnations
from tidegauge.drive.controller.reference import take_step
from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.controller.records import TOPIC
from tidegauge.impl.controller.replication_control import MIN_IN_SYNC_REPLICAS, ReplicationControl, is_active
from tidegauge.impl.explorer import controller_model as model
from tidegauge.impl.explorer.search import View
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.topic_partition import TopicPartition
from tidegauge.spec.tlc.models import Model, find_model
from tidegauge.traces.from_model.impl_walks import control_bounds_of
from tidegauge.util.errors import UsageError

LONGEST, NEAR = 24, 3
"""How long a path may go on after its beginning, and how many steps it walks to reach something new."""

MODELS: Mapping[str, int] = MappingProxyType(
    {
        "RepairedCompletion": 3,
        "RepairedDisks": 3,
        "RepairedReassignment": 2,
        "RepairedFeature": 3,
        "RepairedRevert": 3,
        "RepairedMinIsr": 3,
        "RepairedLateConfig": 3,
    }
)
"""Whose bounds are covered, those of F4 to F13, and how often the partition changes on a path at most (MaxPartitionEpoch).
The switches are those of the expected profile."""


def named(b: int, bounds: model.ControlBounds) -> int:
    """Return a broker of the graph as it is named in a step: from 1 on, those that partition 0 has elsewhere last."""
    return b + 1 if b < model.ELSEWHERE else b - model.ELSEWHERE + bounds.brokers + 1


def begin(bounds: model.ControlBounds) -> Path:
    """Return the requests that make the graph's first state: every broker is up, and the partition has its replicas."""
    letters = "AB" if bounds.disks_fail else "A"
    elsewhere = tuple(named(model.ELSEWHERE + n, bounds) for n in range(bounds.partition_zero))
    here = tuple(b + 1 for b in bounds.replicas)
    brokers = range(1, bounds.brokers + 1)
    starts = tuple(step for b in brokers for step in (registers(b, directories=letters), beats(b)))
    config = ((MIN_IN_SYNC_REPLICAS, str(bounds.min_isr)),)
    topic = ("create_topic", "t", (elsewhere, here) if elsewhere else (here,), config)
    places = (("assign_directory", b, 0, "t", int(bool(elsewhere)), "A") for b in here if bounds.disks_fail)
    return (*starts, *up(*elsewhere), topic, *places)


def assigned(bounds: model.ControlBounds) -> int:
    """Return how often the partition changes in its beginning."""
    # A replica of a broker with two directories has none at first, and its assignment is a change.
    return len(bounds.replicas) if bounds.disks_fail else 0


def requests_of(state: model.ControlCluster, label: Label) -> Path:
    """Return what a step of the graph asks the controller for; nothing where it is a broker's alone."""
    bounds, tp = state.bounds, state.tp
    name, *arguments = label
    # The graph counts brokers from 0, a path from 1; the labels of these three begin with no broker.
    broker = arguments[0] + 1 if arguments and name not in {"Reassign", "SetMinIsr", "SetElr"} else 0
    match name:
        case "Expand" | "Shrink":
            proposal = model.proposal_of(state, {*state.control.partitions[tp].isr} ^ {arguments[0]})
            epochs = proposal.leader_epoch, proposal.partition_epoch + assigned(bounds)
            isr = tuple(member + 1 for member in proposal.isr)
            return (("alter_partition", proposal.broker_id + 1, 0, "t", tp.partition, *epochs, isr, False),)
        case "Reassign":
            return (("reassign", "t", tp.partition, tuple(named(replica, bounds) for replica in arguments[0])),)
        case "Cancel":
            return (("reassign", "t", tp.partition, None),)
        case "SetMinIsr":
            return (("configure", TOPIC, "t", MIN_IN_SYNC_REPLICAS, str(arguments[0])),)
        case "SetElr":
            return (("update_feature", "elr", arguments[0], arguments[0] > 0),)
        case "ElectPreferred" | "ElectUnclean":
            return (("elect_leaders", name == "ElectUnclean", "t", tp.partition),)
        case "Delete":
            return (("delete_topic", "t"),)
        case "Unregister":
            return (("unregister", broker),)
        case "Fence":
            return (("session_expires", broker),)
        case "Unfence":
            return (beats(broker, offline="A" if arguments[1] else ""),)
        case "FailDirectory":
            return (beats(broker, offline="A"),)
        case "ShutDown":
            return (*_read_by_all_others(state, arguments[0]), beats(broker, shut_down=True))
        case "Register":
            return _registers(state, arguments[0], arguments[1])
        case _:
            return ()


class ControllerCover(NamedTuple):
    """The paths; how many of the graph's steps they take (`taken`), and how many there are (`steps`).

    In the others the release does not do as the graph: where it has no ELR, and up to 3.9 where a session is over and that
    is not noticed.
    """

    cases: tuple[ControllerCase, ...]
    taken: int
    steps: int


Taken = tuple[int, Path]
"""A state's number, and the steps that a transition of the graph is there."""


def cover_of(name: str, profile: Profile, opening: ClusterOpening) -> ControllerCover:
    """Return the cover of a model of MCController."""
    return cover(control_bounds_of(model_of(name))._replace(max_partition_epoch=MODELS[name]), profile, opening, name)


def model_of(name: str) -> Model:
    """Return a model that has a cover. Raises UsageError for another."""
    if name not in MODELS:
        raise UsageError(f"drive: expected a graph of the controller: {', '.join(MODELS)}; seen {name}; choose one of those")
    return find_model(name)


def cover(bounds: model.ControlBounds, profile: Profile, opening: ClusterOpening, name: str) -> ControllerCover:
    """Return paths that take at least once each step of the graph that the release takes too."""
    # min.insync.replicas is set on the topic (`begin`), so that the cluster's default does not matter.
    opening = opening._replace(elr=int(profile.elr), min_insync_replicas=1)
    graph = _Graph(bounds, profile)
    steps = sum(map(len, graph.edges))
    graph.follow(opened(opening, profile))
    left = {(source, request) for source in graph.reached for request in graph.edges[source]}
    coverable, cases = len(left), list[ControllerCase]()
    for source in graph.reached:
        # A path goes to a state with steps that are left, by steps that may be taken already, and on through those left.
        while any((source, request) in left for request in graph.edges[source]):
            path = [*graph.way_to(source), *graph.onward(source, left)]
            left -= set(path)
            requests = tuple(step for _, request in path for step in request)
            cases.append(ControllerCase(opening, (*begin(bounds), *requests), f"{name} {len(cases)}"))
    return ControllerCover(tuple(cases), coverable, steps)


class _Graph:
    """The graph as the controller sees it.

    `edges`: for each state the requests there, with the state that comes then; `reached`: the states that a path can get to.
    """

    def __init__(self, bounds: model.ControlBounds, profile: Profile) -> None:
        """Explore the model, and keep of each state what the controller sees of it."""
        self.edges: list[dict[Path, int]] = []
        self.reached: list[int] = []
        self._bounds, self._tp = bounds, TopicPartition("t", int(bounds.partition_zero > 0))
        self._facts: list[Facts] = []
        self._from: dict[int, Taken] = {}
        numbers: dict[View, int] = {}
        search = model.search_control(model.initial_control_cluster(bounds, profile))
        of_state = [self._number(numbers, search.states[0])]
        for source, label, target, new in search.transitions():
            if new:
                of_state.append(self._number(numbers, search.states[target]))
            if request := requests_of(search.states[source], label):
                self.edges[of_state[source]][request] = of_state[target]

    def _number(self, numbers: dict[View, int], state: model.ControlCluster) -> int:
        """Return the number of a state, the same for all that the controller cannot tell apart."""
        key = _local(model.control_view(state))
        if key not in numbers:
            numbers[key] = len(self.edges)
            self.edges.append({})
            self._facts.append(facts(state.control, state.tp, 1, assigned(state.bounds), state.bounds.brokers))
        return numbers[key]

    def follow(self, start: ReferenceController) -> None:
        """Keep the steps that take the reference to the graph's next state, breadth first."""
        incarnations = Incarnations()
        for step in begin(self._bounds):
            start, _ = take_step(start, step, incarnations)
        self.reached, states = [0], {0: start}
        for source in self.reached:
            # A state is needed once, when its edges are tried: the reference's states are large.
            here = states.pop(source)
            for request, target in [*self.edges[source].items()]:
                after = here
                for step in request:
                    after, _ = take_step(after, step, incarnations)
                # A release without ELR, or one up to 3.9 where a session is over and not noticed, goes another way: such a
                # step is no part of the cover.
                if facts(after.control, self._tp, 0, 0, self._bounds.brokers) != self._facts[target]:
                    del self.edges[source][request]
                elif target not in self._from and target != 0:
                    self._from[target] = source, request
                    self.reached.append(target)
                    states[target] = after

    def way_to(self, target: int) -> list[Taken]:
        """Return a shortest run to a state."""
        way: list[Taken] = []
        while target != 0:
            way.append(self._from[target])
            target = way[-1][0]
        return way[::-1]

    def onward(self, at: int, left: Set[Taken]) -> list[Taken]:
        """Return what is left from here on, as long as there is something near."""
        way: list[Taken] = []
        steps_taken: set[Taken] = set()
        while len(way) < LONGEST and (more := self._nearest(at, left, steps_taken)):
            way += more
            steps_taken |= set(more)
            last_state, last_request = more[-1]
            at = self.edges[last_state][last_request]
        return way

    def _nearest(self, at: int, left: Set[Taken], steps_taken: Set[Taken]) -> list[Taken]:
        """Return a shortest way to a step in `left` that is not in `steps_taken`; none within NEAR steps."""
        ways: deque[tuple[int, list[Taken]]] = deque([(at, [])])
        visited = {at}
        while ways:
            here, way = ways.popleft()
            for request, target in self.edges[here].items():
                step = here, request
                if step in left and step not in steps_taken:
                    return [*way, step]
                if target not in visited and len(way) < NEAR:
                    visited.add(target)
                    ways.append((target, [*way, step]))
        return []


def _local(view: View) -> View:
    """Return the part of a state's view that the controller has: the order of `view` is that of `control_view`."""
    partition, brokers, _, _, _, min_isr, _, indexes = view
    # The first value of a broker is the state of its process, which the controller does not know.
    return partition, tuple(broker[1:] for broker in brokers), min_isr, indexes


Facts = tuple[Any, ...]


def facts(control: ReplicationControl, tp: TopicPartition, add: int, epochs: int, brokers: int) -> Facts:
    """Return what a controller has of the partition and the first brokers, for comparing the graph with the reference.

    `add`: what broker ids are raised by, for the graph counts from 0 and a path from 1; `epochs`: the same for the partition
    epoch, for a path may begin with more changes than the graph.
    """
    registration = control.partitions.get(tp)
    registrations = (control.brokers.get(b + 1 - add) for b in range(brokers))
    rows = tuple(None if broker is None else (broker.fenced, broker.in_controlled_shutdown) for broker in registrations)
    if registration is None:
        return None, rows
    lists = (
        registration.replicas,
        registration.adding,
        registration.removing,
        registration.isr,
        registration.elr,
        registration.last_known_elr,
    )
    raised = tuple(tuple(b + add for b in members) for members in lists)
    leader = registration.leader if registration.leader == UNDEFINED else registration.leader + add
    return (*raised, leader, registration.recovery, registration.leader_epoch, registration.partition_epoch + epochs), rows


def _read_by_all_others(state: model.ControlCluster, b: int) -> Path:
    """Return heartbeats of all other brokers, with which a controlled shutdown can end."""
    # It ends once every active broker has read the metadata up to its beginning (BrokerHeartbeatManager#lowestActiveOffset).
    control = state.control
    if not control.brokers[b].in_controlled_shutdown:
        return ()
    others = (other for other, _ in control.brokers.items() if other != b and is_active(control, other))
    return tuple(beats(named(other, state.bounds)) for other in others)


def _registers(state: model.ControlCluster, b: int, directory: int) -> Path:
    """Return the start of a process with the directories that control_steps gives it."""
    letters = "".join(name[-1] for name in model.directories_of(state, b, directory))
    starts: Path = (registers(b + 1, clean=model.stops_in_order(state, b, directory), directories=letters),)
    registered = state.control.brokers.get(b)
    # The graph lets a process start although the last one is not fenced yet. A real controller refuses that
    # (DUPLICATE_BROKER_REGISTRATION) unless the session is over.
    if registered is not None and is_left_unnoticed(state.control.profile):
        starts = (("register_late", *starts[0][1:]),)
    elif registered is not None and not registered.fenced:
        return ()
    if directory != model.TAKEN_OUT:
        return starts
    # The replica is in none of its directories any more, so that the broker assigns it to one.
    return (*starts, ("assign_directory", b + 1, 0, "t", state.tp.partition, "B"))
