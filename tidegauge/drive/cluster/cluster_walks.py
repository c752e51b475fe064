"""Paths of a whole cluster: each broker is one of the contract, and what it is given is what the others have reported.

A *member* is a broker of the cluster, by its index from 0 on. In the steps and reports of one member it is itself broker 1,
and the others are 2, 3, .. (`PathBuilder.name_of`). The *image* is the partition's registration as the controller has it. A
*proposal* is an AlterPartition request, a *verdict* the controller's response to it. A report has, among others, `requests`
(those in flight, by the peer's id as text), `proposal` (the one in flight, or None) and `result` (the response to the step's
request).

Rules of this file

1. A member is the reference of the contract with its own profile. What a member reports (a request, a response, a proposal)
   is the only thing that another is given; `Provenance` says which report it was. So a path of the cluster is a path for
   each of its brokers, and where none differs from its reference each was given what the others really reported.
2. A member that was not given metadata has no partition yet: what is sent to it is lost, as a closed connection loses it.
3. The controller is that of impl.cluster.controller. It judges a proposal at any time between the proposal and its response.
4. A process that ends is up again in the same step, and loses its session: the controller takes it out of the ISR.
5. A walk is drawn from (seed, number) alone: the same two give the same walk.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tidegauge.drive.broker.contract import BROKER, COMMITTED, EARLIEST, LATEST, BrokerCase, Opening
from tidegauge.drive.broker.reference import BrokerReference, is_possible, missing_capability, take_step
from tidegauge.drive.broker.state import ReferenceBroker
from tidegauge.drive.contract import Capabilities, Report, Step
from tidegauge.drive.paths.graph_projection import renaming
from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.cluster import controller as controller_
from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.messages import AlterPartitionRequest, AlterPartitionResponse, FetchRequest
from tidegauge.impl.profiles import Profile, Setup
from tidegauge.impl.rules import NONE, OFFSET_OUT_OF_RANGE, UNDEFINED
from tidegauge.util.errors import TidegaugeError

STEPS_OF_A_CLUSTER = 60
"""How many steps of members a walk has at most, roughly."""


class Provenance(NamedTuple):
    """Where something that a member is given comes from: this field of the report of a member after its step number `at`."""

    member: int
    at: int
    field: str


class ClusterStep(NamedTuple):
    """A step of one member, and the reports that its arguments were taken from."""

    member: int
    step: Step
    sources: tuple[Provenance, ...]


class ClusterPath(NamedTuple):
    """A path of the cluster, and the part of each member: its case is the steps of that member alone."""

    steps: tuple[ClusterStep, ...]
    cases: tuple[BrokerCase, ...]
    name: str = ""

    def place(self, member: int, at: int) -> int:
        """Return the number in the path of a member's own step number `at`; both count from 1, 0 is the opening."""
        numbers = [number for number, step in enumerate(self.steps, 1) if step.member == member]
        return numbers[at - 1] if at else 0


class MemberModel(NamedTuple):
    """A member as paths are made for it: the reference that it is compared with, and the steps that it can be given."""

    reference: BrokerReference
    capabilities: Capabilities


class _Response(NamedTuple):
    """A response in flight to a follower: the leader's `result`, and the reports that it was taken from.

    `offsets`: the leader's (earliest, latest) offset, for a follower that is out of range.
    """

    result: Report
    sources: tuple[Provenance, ...]
    offsets: tuple[int, int] | None = None


class PathBuilder:
    """A cluster under way. Its methods let something happen if it is possible now, and record the steps of the members.

    A method that returns bool returns whether it happened.
    """

    def __init__(self, members: Sequence[MemberModel], controller: Profile, min_isr: int = 1) -> None:
        """Begin with brokers that have read no metadata. `controller`: its generation; `min_isr`: min.insync.replicas."""
        everybody = tuple(range(len(members)))
        self.members, self._setup = members, Setup(profile=controller, min_insync_replicas=min_isr)
        self._openings = [Opening(tuple(range(BROKER + 1, BROKER + len(members))), min_isr) for _ in everybody]
        self.states = [model.reference.opened(opening) for model, opening in zip(members, self._openings, strict=True)]
        self._reports = [[model.reference.report(state)] for model, state in zip(members, self.states, strict=True)]
        self._rename = [renaming(member) for member in everybody]
        self._paths: list[list[Step]] = [[] for _ in everybody]
        self._steps: list[ClusterStep] = []
        # All members have a replica, are in the ISR and are up; member 0 leads, in epoch 0.
        self.image = Controller(everybody, leader=0, leader_epoch=0, isr=everybody, live=everybody)
        # What is in flight: responses by (follower, leader), verdicts by the leader that proposed, each with its sources.
        self._responses: dict[tuple[int, int], _Response] = {}
        self._verdicts: dict[int, tuple[AlterPartitionResponse, tuple[Provenance, ...]]] = {}

    def __len__(self) -> int:
        """Return how many steps there are so far, those of all members together."""
        return len(self._steps)

    def path(self, name: str = "") -> ClusterPath:
        """Return the path so far."""
        cases = (BrokerCase(opening, tuple(steps)) for opening, steps in zip(self._openings, self._paths, strict=True))
        return ClusterPath(tuple(self._steps), tuple(cases), name)

    def name_of(self, member: int, other: int) -> int:
        """Return the id that the member `other` has in the steps and reports of `member`."""
        return self._rename[member](other)

    def _take(self, member: int, step: Step, *sources: Provenance) -> Report | None:
        """Have a member take a step; return its report, None where it cannot be given the step now.

        `sources`: the reports that the step's arguments were taken from.
        """
        state, capabilities = self.states[member], self.members[member].capabilities
        if not is_possible(state, step) or missing_capability(capabilities, state, step) is not None:
            return None
        try:
            self.states[member], report = take_step(state, step)
        # Where Kafka's code throws, a broker would be in no defined state.
        except TidegaugeError:
            return None
        self._paths[member].append(step)
        self._reports[member].append(report)
        self._steps.append(ClusterStep(member, step, sources))
        return report

    def _last(self, member: int, field: str) -> Provenance:
        """Return the provenance of a field in the latest report of a member."""
        return Provenance(member, len(self._paths[member]), field)

    # -----------------------------------------------------------------------------------------------------------------
    # Requests and responses

    def request(self, follower: int, leader: int) -> Report | None:
        """Return the request that a follower reports to have in flight to a leader; None if there is a response to it."""
        if (follower, leader) in self._responses:
            return None
        requests: Report = self._reports[follower][-1]["requests"]
        request: Report | None = requests.get(str(self.name_of(follower, leader)))
        return request

    def has_response(self, follower: int, leader: int) -> bool:
        """Return whether a response of a leader to a follower is in flight."""
        return (follower, leader) in self._responses

    def handle(self, follower: int, leader: int, *, may_join: bool) -> bool:
        """Have a leader handle the request in flight, so that a response is in flight then.

        A leader that cannot handle it, as it has no partition, loses it: that counts as happened, too. `may_join`: whether
        the follower may join the ISR.
        """
        request = self.request(follower, leader)
        if request is None:
            return False
        peer, source = self.name_of(leader, follower), self._last(follower, "requests")
        epoch = request["current_leader_epoch"]
        # A request is a fetch or an OffsetsForLeaderEpoch.
        if "fetch_offset" not in request:
            step: Step = "offsets_for_leader_epoch", epoch, request["leader_epoch"]
        else:
            step = "fetch", peer, epoch, request["fetch_offset"], request["last_fetched_epoch"], may_join
        report = self._take(leader, step, source)
        if report is None:
            return self.lose(follower, leader)
        response_sources: tuple[Provenance, ...] = (self._last(leader, "result"),)
        offsets: tuple[int, int] | None = None
        if report["result"]["error"] == OFFSET_OUT_OF_RANGE:
            # A follower that is out of range asks for both ends of the leader's log.
            end_reports = [self._take(leader, ("list_offsets", epoch, which), source) for which in (LATEST, EARLIEST)]
            if any(end is None or end["result"]["error"] != NONE for end in end_reports):
                return self.lose(follower, leader)
            latest, earliest = (end["result"]["offset"] for end in end_reports if end is not None)
            offsets = (earliest, latest)
            # The two are the leader's last steps.
            last = len(self._paths[leader])
            end_sources = (Provenance(leader, number, "result") for number in (last - 1, last))
            response_sources = (*response_sources, *end_sources)
        self._responses[follower, leader] = _Response(report["result"], response_sources, offsets)
        return True

    def respond(self, follower: int, leader: int) -> bool:
        """Deliver the leader's response that is in flight to the follower."""
        response = self._responses.pop((follower, leader), None)
        if response is None:
            return False
        step = _response_step(self.name_of(follower, leader), response, self.states[follower].request)
        return self._take(follower, step, *response.sources) is not None

    def lose(self, follower: int, leader: int) -> bool:
        """Close the connection of a follower to a leader: the request or the response in flight on it is lost."""
        self._responses.pop((follower, leader), None)
        return self._take(follower, ("lose_response", self.name_of(follower, leader))) is not None

    # -----------------------------------------------------------------------------------------------------------------
    # A broker by itself, its clients

    def append(self, member: int, acks: int = 1) -> bool:
        """Append a record at a member, if it leads."""
        return self.states[member].broker.leads and self._take(member, ("append", acks)) is not None

    def consume(self, member: int) -> bool:
        """Let a consumer ask a member for the latest offset, which for a consumer is the high watermark (COMMITTED)."""
        epoch = self.states[member].broker.partition.leader_epoch
        return self._take(member, ("list_offsets", epoch, COMMITTED)) is not None

    def lag(self, member: int) -> bool:
        """Let the lag time run out for all that are behind in the ISR: the leader, `member`, proposes to remove them."""
        state = self.states[member]
        return self._take(member, ("lag", tuple(sorted(broker_.lagging_members(state.setup, state.broker))))) is not None

    def crash(self, member: int, hw: int) -> bool:
        """Let a member's process die, with the high watermark `hw` on its disk as far as the log allows, and all records."""
        log = self.states[member].broker.partition.log
        # The disk has no more than the broker had, and no less than the log start.
        return self._end(member, ("crash", max(log.start, min(hw, log.hw)), log.end))

    def stop(self, member: int) -> bool:
        """Shut a member's process down in order."""
        return self._end(member, ("stop",))

    def _end(self, member: int, step: Step) -> bool:
        """End a member's process by a step: requests and responses to it are lost, and the controller fences it (rule 4).

        Responses that it had sent itself stay in flight.
        """
        if self._take(member, step) is None:
            return False
        self._verdicts.pop(member, None)
        for other in range(len(self.members)):
            self._responses.pop((member, other), None)
            if other != member and self.request(other, member) is not None:
                self.lose(other, member)
        self.fence(member)
        return True

    # -----------------------------------------------------------------------------------------------------------------
    # The controller

    def fence(self, member: int, preference: Sequence[int] = ()) -> bool:
        """Let a member lose its session for a moment: it leaves the ISR, unless it is alone there, and leads no more.

        `preference`: the members to elect, the preferred one first; the others follow.
        """
        order = self._preference(preference)
        return self._change(controller_.fence_broker(self._setup, self.image, member, comes_back=True, preference=order))

    def elect(self, member: int) -> bool:
        """Have the controller elect a member, if it is in the ISR."""
        return self._change(controller_.elect_preferred(self._setup, self.image, self._preference((member,))))

    def _preference(self, first: Sequence[int]) -> tuple[int, ...]:
        """Return all members in the order in which they are to be elected: these first."""
        return (*first, *(member for member in self.image.assignment if member not in first))

    def _change(self, image: Controller) -> bool:
        """Take over a new image; return whether it is another one than before."""
        before, self.image = self.image, image
        return image != before

    def judge(self, leader: int) -> bool:
        """Have the controller judge the proposal that a leader reports to have in flight; the verdict is in flight then."""
        proposal: Any = self._reports[leader][-1]["proposal"]
        # A proposal is judged once: while the verdict is in flight it is still reported.
        if proposal is None or leader in self._verdicts:
            return False
        # The leader's report has its own ids for the members.
        names = {self.name_of(leader, other): other for other in range(len(self.members))}
        isr = tuple(sorted(names[name] for name in proposal["isr"]))
        request = AlterPartitionRequest(leader, proposal["leader_epoch"], proposal["partition_epoch"], isr)
        self.image, response = controller_.alter_partition(self._setup, self.image, request)
        self._verdicts[leader] = response, (self._last(leader, "proposal"),)
        return True

    def respond_to_proposal(self, leader: int) -> bool:
        """Deliver the controller's verdict to the leader that made the proposal."""
        if leader not in self._verdicts:
            return False
        response, sources = self._verdicts.pop(leader)
        epoch, isr = (response.partition_epoch, response.isr) if response.error == NONE else (UNDEFINED, ())
        members = tuple(sorted(self.name_of(leader, member) for member in isr))
        return self._take(leader, ("alter_partition_response", response.error, epoch, members), *sources) is not None

    def read_metadata(self, member: int) -> bool:
        """Let a member read the image, if it is newer than what it has read.

        A proposal that the image overtakes gets its response at once: rule 5 of the contract.
        """
        image, rename = self.image, self._rename[member]
        if image.partition_epoch <= self.states[member].partition_epoch:
            return False
        isr = tuple(sorted(map(rename, image.isr)))
        step = "metadata", rename(image.leader), image.leader_epoch, image.partition_epoch, isr
        if self._take(member, step) is None:
            return False
        if self.states[member].overtaken:
            # It may have been judged before.
            self.judge(member)
            self.respond_to_proposal(member)
        return True


def _response_step(peer: int, response: _Response, request: Callable[[int], Any]) -> Step:
    """Return the step in which a follower gets a response. `peer`: its leader; `request`: returns what it has in flight."""
    result = response.result
    error = result["error"]
    # The other kind of request is OffsetsForLeaderEpoch.
    if not isinstance(request(peer), FetchRequest):
        if error != NONE:
            return "offsets_for_leader_epoch_response", peer, error, UNDEFINED, UNDEFINED
        return "offsets_for_leader_epoch_response", peer, NONE, result["leader_epoch"], result["end_offset"]
    if error != NONE:
        return "fetch_response", peer, error, UNDEFINED, UNDEFINED, (), None, response.offsets
    records = tuple(tuple(batch) for batch in result["records"])
    diverging = None if result["diverging"] is None else tuple(result["diverging"])
    return "fetch_response", peer, NONE, result["hw"], result["log_start"], records, diverging, None


# ---------------------------------------------------------------------------------------------------------------------
# Random walks


Turn = Callable[[], bool]
"""A method of PathBuilder with its arguments bound; it returns whether it happened."""

MOST_ENDS = 1
"""How often a process ends on a walk at most: on a broker of Kafka all paths wait for it."""


def cluster_walk(
    members: Sequence[MemberModel], controller: Profile, seed: int, number: int, min_isr: int = 1
) -> ClusterPath:
    """Draw the walk with a number: records flow more often than leaders change, and members mostly read new metadata.

    `controller`: its generation; `min_isr`: min.insync.replicas.
    """
    rng = random.Random(f"{seed}.{number}")
    builder = PathBuilder(members, controller, min_isr)
    everybody = range(len(members))
    for member in everybody:
        builder.read_metadata(member)
    ends = 0
    # A turn need not happen, and may be several steps: try more often than a walk is long.
    for _ in range(4 * STEPS_OF_A_CLUSTER):
        weights = dict(_turns(builder, rng, ends < MOST_ENDS))
        turn = rng.choices([*weights], [*weights.values()])[0]
        before = builder.image
        # `_turns` has left the method's name to the call.
        if turn() and turn.__name__ in {"crash", "stop"}:
            ends += 1
        # After a change of the image each member reads it with probability 0.7; the others lag behind. Sometimes members
        # read although nothing has changed: those that lag, and those whose process has ended.
        if builder.image is not before or rng.random() < 0.2:
            for member in everybody:
                if rng.random() < 0.7:
                    builder.read_metadata(member)
        if len(builder) >= STEPS_OF_A_CLUSTER:
            break
    return builder.path(f"walk {seed}.{number}")


def _turns(builder: PathBuilder, rng: random.Random, may_end: bool) -> Iterator[tuple[Turn, int]]:
    """Yield each turn that may be tried now with its weight: how likely it is compared with the others.

    `may_end`: whether a process may end. In most walks records are copied (weight 24) between the few elections, fences,
    crashes and lost responses (1 or 2).
    """
    everybody = range(len(builder.members))

    def turn(method: Callable[..., bool], *args: Any, **options: Any) -> Turn:
        """Return a call with its arguments bound, which keeps the method's name."""

        def take() -> bool:
            """Let it happen, if it is possible now."""
            return method(*args, **options)

        take.__name__ = method.__name__
        return take

    for member in everybody:
        state: ReferenceBroker = builder.states[member]
        if state.broker.leads:
            # Every third producer waits for the ISR (acks -1).
            yield turn(builder.append, member, rng.choice((1, 1, -1))), 10
            yield turn(builder.lag, member), 3
        if state.proposal is not None:
            yield turn(builder.judge, member), 12
            yield turn(builder.respond_to_proposal, member), 12
        yield turn(builder.read_metadata, member), 4
        for leader in everybody:
            if builder.request(member, leader) is not None:
                yield turn(builder.handle, member, leader, may_join=rng.random() < 0.8), 24
                yield turn(builder.lose, member, leader), 1
            elif builder.has_response(member, leader):
                yield turn(builder.respond, member, leader), 24
                yield turn(builder.lose, member, leader), 1
        yield turn(builder.elect, member), 2
        # Any member may be the preferred leader then.
        yield turn(builder.fence, member, (rng.choice(everybody),)), 1
        if may_end:
            # A crash leaves a high watermark up to 3 on the disk, as far as the log allows.
            yield turn(builder.crash, member, rng.randint(0, 3)), 1
            yield turn(builder.stop, member), 1


def cluster_walks(members: Sequence[MemberModel], controller: Profile, seed: int, count: int) -> tuple[ClusterPath, ...]:
    """Return the first walks of a seed; every fourth needs two in-sync replicas."""
    return tuple(
        cluster_walk(members, controller, seed, number, min_isr=2 if number % 4 == 3 else 1) for number in range(count)
    )
