"""Paths that take every step of spec/Controller.tla which a controller is asked for, at least once.

The graph is the state graph of a model; an edge is a transition, given by its label (an action and its arguments). In the
graph brokers count from 0, on a path from 1. A request is here the steps of a path that an edge stands for: one, or two, or
none where the action is a broker's alone. A step is a tuple of its name and its arguments, in the order that
`STEPS[name].takes` (steps.py) has; the 0 after a broker is `lag`: the request has the broker's own broker epoch. `bounds`
are those of a model: how many brokers it has, the replicas of its partition, how many brokers outside have partition 0 if
the model's is another one (`partition_zero`), and whether log directories may fail (`disks_fail`): then a broker has two, A
and B, else A.

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
"""The models whose bounds are covered, those of F4 to F13, and how often the partition changes on a path at most
(MaxPartitionEpoch). The switches are those of the expected profile."""


def named(broker: int, bounds: model.ControlBounds) -> int:
    """Return the number that a path has for a broker of the graph.

    The brokers of the model count from 1 on a path. Those outside it, which have the replicas of partition 0 and in the
    graph the numbers from ELSEWHERE on, come after them.
    """
    return broker + 1 if broker < model.ELSEWHERE else broker - model.ELSEWHERE + bounds.brokers + 1


def begin(bounds: model.ControlBounds) -> Path:
    """Return the steps that make the graph's first state: every broker is up, and the partition has its replicas.

    The partition of the model is number 1 if there is a partition 0 on brokers outside the model, else it is number 0.
    """
    letters = "AB" if bounds.disks_fail else "A"
    outside = tuple(named(model.ELSEWHERE + number, bounds) for number in range(bounds.partition_zero))
    replicas = tuple(broker + 1 for broker in bounds.replicas)
    brokers = range(1, bounds.brokers + 1)
    starts = tuple(step for broker in brokers for step in (registers(broker, directories=letters), beats(broker)))
    config = ((MIN_IN_SYNC_REPLICAS, str(bounds.min_isr)),)
    topic = ("create_topic", "t", (outside, replicas) if outside else (replicas,), config)
    # In the graph's first state every replica is in directory A; with one directory only that needs no step.
    partition = int(bool(outside))
    assignments = (("assign_directory", broker, 0, "t", partition, "A") for broker in replicas if bounds.disks_fail)
    return (*starts, *up(*outside), topic, *assignments)


def assigned(bounds: model.ControlBounds) -> int:
    """Return how often `begin` changes the partition: its partition epoch is higher by that on a path than in the graph."""
    # A replica of a broker with two directories has none at first, and its assignment is a change.
    return len(bounds.replicas) if bounds.disks_fail else 0


def requests_of(state: model.ControlCluster, label: Label) -> Path:
    """Return the steps of a path for a transition from a state of the graph; () if the controller is asked for nothing."""
    bounds, tp = state.bounds, state.tp
    name, *arguments = label
    # The first argument is a broker, which counts from 0 in the graph and from 1 on a path; not so with these three labels.
    broker = arguments[0] + 1 if arguments and name not in {"Reassign", "SetMinIsr", "SetElr"} else 0
    match name:
        case "Expand" | "Shrink":
            # The follower joins the ISR if it is not in it, else it leaves.
            proposal = model.proposal_of(state, {*state.control.partitions[tp].isr} ^ {arguments[0]})
            # `begin` has changed the partition so often already.
            epochs = proposal.leader_epoch, proposal.partition_epoch + assigned(bounds)
            isr = tuple(member + 1 for member in proposal.isr)
            # False: the leader does not recover from an unclean election.
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
        # The second argument: 1 if the heartbeat also says that the broker's first directory has failed.
        case "Unfence":
            return (beats(broker, offline="A" if arguments[1] else ""),)
        case "FailDirectory":
            return (beats(broker, offline="A"),)
        case "ShutDown":
            return (*_heartbeats_of_others(state, arguments[0]), beats(broker, shut_down=True))
        case "Register":
            return _registers(state, arguments[0], arguments[1])
        case _:
            return ()


class ControllerCover(NamedTuple):
    """The paths; how many of the graph's edges they take (`taken_edges`), and how many there are (`steps`).

    On the other edges the release does not do as the graph: where it has no ELR, and up to 3.9 where a session is over and
    that is not noticed.
    """

    cases: tuple[ControllerCase, ...]
    taken_edges: int
    steps: int


Taken = tuple[int, Path]
"""An edge of the graph: the number of the state that it leaves, and its request."""


def cover_of(name: str, profile: Profile, opening: ClusterOpening) -> ControllerCover:
    """Return the cover of the model of this name (MODELS), with the bound on changes of the partition that is set there."""
    return cover(control_bounds_of(model_of(name))._replace(max_partition_epoch=MODELS[name]), profile, opening, name)


def model_of(name: str) -> Model:
    """Return the model of this name. Raises UsageError if it is none of MODELS."""
    if name not in MODELS:
        raise UsageError(f"drive: expected a graph of the controller: {', '.join(MODELS)}; seen {name}; choose one of those")
    return find_model(name)


def cover(bounds: model.ControlBounds, profile: Profile, opening: ClusterOpening, name: str) -> ControllerCover:
    """Return paths that take at least once each edge of a model's graph on which the release does as the graph.

    `bounds` are the model's; `name` and a number are the names of the cases.
    """
    # min.insync.replicas is set on the topic (`begin`), so that the cluster's default does not matter. ELR is on from the
    # start where the profile has it.
    opening = opening._replace(elr=int(profile.elr), min_insync_replicas=1)
    graph = _Graph(bounds, profile)
    # Counted before `follow` drops the edges on which the release does otherwise.
    steps = sum(map(len, graph.edges))
    graph.follow(opened(opening, profile))
    uncovered = {(source, request) for source in graph.reached for request in graph.edges[source]}
    coverable, cases = len(uncovered), list[ControllerCase]()
    for source in graph.reached:
        # A path goes to a state with uncovered edges, by edges that may be covered already, and on through uncovered ones.
        while any((source, request) in uncovered for request in graph.edges[source]):
            path = [*graph.way_to(source), *graph.onward(source, uncovered)]
            uncovered -= set(path)
            requests = tuple(step for _, request in path for step in request)
            cases.append(ControllerCase(opening, (*begin(bounds), *requests), f"{name} {len(cases)}"))
    return ControllerCover(tuple(cases), coverable, steps)


class _Graph:
    """The graph as the controller sees it: states that it cannot tell apart are one (`_number`), and have one number.

    `edges`: for each state its requests, each with the state that it leads to; `reached`: the states that a path can get to,
    breadth first. Of each state `_facts` has what the reference is compared with; `_from` has the edge by which it is
    reached first.
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
        # By the number of a state of the model, its number in this graph. New states come in the order of their numbers.
        number_of = [self._number(numbers, search.states[0])]
        for source, label, target, is_new in search.transitions():
            if is_new:
                number_of.append(self._number(numbers, search.states[target]))
            if request := requests_of(search.states[source], label):
                self.edges[number_of[source]][request] = number_of[target]

    def _number(self, numbers: dict[View, int], state: model.ControlCluster) -> int:
        """Return the number of a state, the same for all that the controller cannot tell apart; add it if it is new.

        `numbers`: the numbers by what the controller sees of a state.
        """
        key = _controller_view(model.control_view(state))
        if key not in numbers:
            numbers[key] = len(self.edges)
            self.edges.append({})
            epoch_offset = assigned(state.bounds)
            self._facts.append(facts(state.control, state.tp, state.bounds.brokers, id_offset=1, epoch_offset=epoch_offset))
        return numbers[key]

    def follow(self, start: ReferenceController) -> None:
        """Take the reference through the graph, breadth first; drop the edges on which it does not get to the graph's state.

        `start` is the reference's cluster without brokers. Afterwards `reached` has the states that are left.
        """
        # Ordinals of broker epochs are only in reports, which are not looked at here.
        incarnations = Incarnations()
        for step in begin(self._bounds):
            start, _ = take_step(start, step, incarnations)
        # The list grows while it is gone through: a queue.
        self.reached, states = [0], {0: start}
        for source in self.reached:
            # A state is needed once, when its edges are tried: the reference's states are large.
            before = states.pop(source)
            for request, target in [*self.edges[source].items()]:
                after = before
                for step in request:
                    after, _ = take_step(after, step, incarnations)
                # A release without ELR, or one up to 3.9 where a session is over and not noticed, goes another way.
                if facts(after.control, self._tp, self._bounds.brokers) != self._facts[target]:
                    del self.edges[source][request]
                elif target not in self._from and target != 0:
                    self._from[target] = source, request
                    self.reached.append(target)
                    states[target] = after

    def way_to(self, target: int) -> list[Taken]:
        """Return the edges of a shortest path from the first state to a state."""
        way: list[Taken] = []
        while target != 0:
            way.append(self._from[target])
            target, _ = way[-1]
        return way[::-1]

    def onward(self, at: int, uncovered: Set[Taken]) -> list[Taken]:
        """Return the edges of a path from a state that takes uncovered ones, as long as one is near (LONGEST, NEAR)."""
        way: list[Taken] = []
        on_way: set[Taken] = set()
        while len(way) < LONGEST and (more := self._nearest(at, uncovered, on_way)):
            way += more
            on_way |= set(more)
            last_state, last_request = more[-1]
            at = self.edges[last_state][last_request]
        return way

    def _nearest(self, at: int, uncovered: Set[Taken], on_way: Set[Taken]) -> list[Taken]:
        """Return the edges of a shortest path from a state whose last edge is uncovered and not in `on_way`.

        Returns [] if there is none after at most NEAR other edges.
        """
        ways: deque[tuple[int, list[Taken]]] = deque([(at, [])])
        visited = {at}
        while ways:
            state, way = ways.popleft()
            for request, target in self.edges[state].items():
                edge = state, request
                if edge in uncovered and edge not in on_way:
                    return [*way, edge]
                if target not in visited and len(way) < NEAR:
                    visited.add(target)
                    ways.append((target, [*way, edge]))
        return []


def _controller_view(view: View) -> View:
    """Return the part of a state that the controller knows. `view`: the tuple that `control_view` makes of a state."""
    partition, brokers, _logs, _committed, _stops, min_isr, _known_min_isr, indexes = view
    # The first value of a broker is the state of its process, which the controller does not know.
    return partition, tuple(broker[1:] for broker in brokers), min_isr, indexes


Facts = tuple[Any, ...]
"""What the graph and the reference are compared in after each edge: the partition and the brokers at the controller."""


def facts(
    control: ReplicationControl, tp: TopicPartition, brokers: int, *, id_offset: int = 0, epoch_offset: int = 0
) -> Facts:
    """Return what a controller has of a partition and of the model's first `brokers` brokers, as a path numbers them.

    For a state of the graph `id_offset` is 1, because brokers count from 0 there, and `epoch_offset` is by how much the
    partition epoch is higher on a path (`assigned`). For a state of the reference both are 0.
    """
    registration = control.partitions.get(tp)
    registrations = (control.brokers.get(number - id_offset) for number in range(1, brokers + 1))
    rows = tuple(None if broker is None else (broker.fenced, broker.in_controlled_shutdown) for broker in registrations)
    # The topic is deleted.
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
    numbered = tuple(tuple(broker + id_offset for broker in members) for members in lists)
    leader = registration.leader if registration.leader == UNDEFINED else registration.leader + id_offset
    epochs = registration.leader_epoch, registration.partition_epoch + epoch_offset
    return (*numbered, leader, registration.recovery, *epochs), rows


def _heartbeats_of_others(state: model.ControlCluster, broker: int) -> Path:
    """Return the heartbeats of all other brokers that let a broker's controlled shutdown end, if it has begun."""
    # It ends once every active broker has read the metadata up to its beginning (BrokerHeartbeatManager#lowestActiveOffset).
    control = state.control
    if not control.brokers[broker].in_controlled_shutdown:
        return ()
    others = (other for other, _ in control.brokers.items() if other != broker and is_active(control, other))
    return tuple(beats(named(other, state.bounds)) for other in others)


def _registers(state: model.ControlCluster, broker: int, directory: int) -> Path:
    """Return the registration of a broker's new process. `directory`: the second argument of the label Register."""
    # A directory of broker 0 is called "0A": a path has the letter alone.
    letters = "".join(name[-1] for name in model.directories_of(state, broker, directory))
    clean = model.stops_in_order(state, broker, directory)
    registration = registers(broker + 1, clean=clean, directories=letters)
    last_registration = state.control.brokers.get(broker)
    # The graph lets a process start although the last one is not fenced yet. A real controller refuses that
    # (DUPLICATE_BROKER_REGISTRATION) unless the session is over.
    if last_registration is not None and is_left_unnoticed(state.control.profile):
        registration = ("register_late", *registration[1:])
    elif last_registration is not None and not last_registration.fenced:
        return ()
    if directory != model.TAKEN_OUT:
        return (registration,)
    # TAKEN_OUT: the broker starts without its first directory, which failed and had the replica. It creates the replica in
    # the second one, and tells the controller so.
    return (registration, ("assign_directory", broker + 1, 0, "t", state.tp.partition, "B"))
