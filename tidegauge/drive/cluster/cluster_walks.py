"""Paths of a whole cluster: each broker is one of the contract, and what it is given is what the others have said.

Rules of this file

1. A member is the reference of the contract with its own profile. What a member reports (a request, a response, a proposal)
   is the only thing that another is given; `Provenance` says which report it was. So a path of the cluster is a path for
   each of its brokers, and where none differs from its reference each was given what the others really said.
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


class Provenance(NamedTuple):
    """Where something that a member is given comes from: this field of the report of a member after so many of its steps."""

    member: int
    at: int
    field: str


class ClusterStep(NamedTuple):
    """A step of one member, and whose reports it was made of."""

    member: int
    step: Step
    sources: tuple[Provenance, ...]


class ClusterPath(NamedTuple):
    """A path of the cluster, and of each of its members."""

    steps: tuple[ClusterStep, ...]
    cases: tuple[BrokerCase, ...]
    name: str = ""

    def place(self, member: int, at: int) -> int:
        """Return which step of the cluster a member's step is; 0 for its opening."""
        own = [number for number, step in enumerate(self.steps, 1) if step.member == member]
        return own[at - 1] if at else 0


class MemberModel(NamedTuple):
    """What walks are drawn for: the expected behaviour of a member, and what it can be given."""

    reference: BrokerReference
    capabilities: Capabilities


class _Response(NamedTuple):
    """A response in flight to a follower: what its leader has said, and the reports it is made of."""

    result: Report
    sources: tuple[Provenance, ...]
    offsets: tuple[int, int] | None = None


class PathBuilder:
    """A cluster under way: it takes what can be taken, and keeps the path."""

    def __init__(self, members: Sequence[MemberModel], controller: Profile, min_isr: int = 1) -> None:
        """Begin with brokers that have read no metadata. `image` is the registration, as the controller has it."""
        everybody = tuple(range(len(members)))
        self.members, self._setup = members, Setup(profile=controller, min_insync_replicas=min_isr)
        self._openings = [Opening(tuple(range(BROKER + 1, BROKER + len(members))), min_isr) for _ in everybody]
        self.states = [model.reference.opened(opening) for model, opening in zip(members, self._openings, strict=True)]
        self._reports = [[model.reference.report(state)] for model, state in zip(members, self.states, strict=True)]
        self._rename = [renaming(member) for member in everybody]
        self._paths: list[list[Step]] = [[] for _ in everybody]
        self._steps: list[ClusterStep] = []
        self.image = Controller(everybody, 0, 0, everybody, everybody)
        self._responses: dict[tuple[int, int], _Response] = {}
        self._verdicts: dict[int, tuple[AlterPartitionResponse, tuple[Provenance, ...]]] = {}

    def __len__(self) -> int:
        return len(self._steps)

    def path(self, name: str = "") -> ClusterPath:
        """Return what was taken so far."""
        cases = (BrokerCase(opening, tuple(steps)) for opening, steps in zip(self._openings, self._paths, strict=True))
        return ClusterPath(tuple(self._steps), tuple(cases), name)

    def name_of(self, member: int, other: int) -> int:
        """Return what a member calls another one in its steps and reports."""
        return self._rename[member](other)

    def _take(self, member: int, step: Step, *sources: Provenance) -> Report | None:
        """Have a member take a step; return what it reports, None where it cannot be given the step now."""
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
        return Provenance(member, len(self._paths[member]), field)

    # -----------------------------------------------------------------------------------------------------------------
    # Requests and responses

    def request(self, follower: int, leader: int) -> Report | None:
        """Return what a follower says to have in flight to a leader, if nobody has answered it."""
        if (follower, leader) in self._responses:
            return None
        requests: Report = self._reports[follower][-1]["requests"]
        request: Report | None = requests.get(str(self.name_of(follower, leader)))
        return request

    def has_response(self, follower: int, leader: int) -> bool:
        """Return whether a response is on its way."""
        return (follower, leader) in self._responses

    def handle(self, follower: int, leader: int, *, may_join: bool) -> bool:
        """Have a leader handle the request in flight; one that cannot, as it has no partition, loses it.

        Return whether either happened. A response is in flight then, with all steps of the leader that it was made of.
        """
        request = self.request(follower, leader)
        if request is None:
            return False
        peer, sent = self.name_of(leader, follower), self._last(follower, "requests")
        epoch = request["current_leader_epoch"]
        if "fetch_offset" not in request:
            step: Step = "offsets_for_leader_epoch", epoch, request["leader_epoch"]
        else:
            step = "fetch", peer, epoch, request["fetch_offset"], request["last_fetched_epoch"], may_join
        report = self._take(leader, step, sent)
        if report is None:
            return self.lose(follower, leader)
        results: tuple[Provenance, ...] = (self._last(leader, "result"),)
        offsets: tuple[int, int] | None = None
        if report["result"]["error"] == OFFSET_OUT_OF_RANGE:
            # A follower that is out of range asks for both ends of the leader's log.
            listed = [self._take(leader, ("list_offsets", epoch, which), sent) for which in (LATEST, EARLIEST)]
            if any(end is None or end["result"]["error"] != NONE for end in listed):
                return self.lose(follower, leader)
            latest, earliest = (end["result"]["offset"] for end in listed if end is not None)
            offsets = (earliest, latest)
            # These are the last two steps of the leader.
            at = len(self._paths[leader])
            results = (*results, Provenance(leader, at - 1, "result"), Provenance(leader, at, "result"))
        self._responses[follower, leader] = _Response(report["result"], results, offsets)
        return True

    def respond(self, follower: int, leader: int) -> bool:
        """Deliver the response that is on its way."""
        response = self._responses.pop((follower, leader), None)
        if response is None:
            return False
        step = _response_step(self.name_of(follower, leader), response, self.states[follower].request)
        return self._take(follower, step, *response.sources) is not None

    def lose(self, follower: int, leader: int) -> bool:
        """Close the connection: what was in flight on it is lost."""
        self._responses.pop((follower, leader), None)
        return self._take(follower, ("lose_response", self.name_of(follower, leader))) is not None

    # -----------------------------------------------------------------------------------------------------------------
    # A broker by itself, its clients

    def append(self, member: int, acks: int = 1) -> bool:
        """Append a record at a leader."""
        return self.states[member].broker.leads and self._take(member, ("append", acks)) is not None

    def consume(self, member: int) -> bool:
        """Let a consumer ask a leader for the latest offset."""
        epoch = self.states[member].broker.partition.leader_epoch
        return self._take(member, ("list_offsets", epoch, COMMITTED)) is not None

    def lag(self, member: int) -> bool:
        """Let the lag time of all members of the ISR that are behind run out."""
        state = self.states[member]
        return self._take(member, ("lag", tuple(sorted(broker_.lagging_members(state.setup, state.broker))))) is not None

    def crash(self, member: int, hw: int) -> bool:
        """End a process; what was in flight with it is lost, but for the responses that it had sent (rule 4)."""
        log = self.states[member].broker.partition.log
        return self._end(member, ("crash", max(log.start, min(hw, log.hw)), log.end))

    def stop(self, member: int) -> bool:
        """Stop a process in order."""
        return self._end(member, ("stop",))

    def _end(self, member: int, step: Step) -> bool:
        """End a member's process: requests to it and responses in flight are lost, and the controller fences it."""
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
        """Take a broker's session away for a moment: out of the ISR, unless it is alone there, and no leader any more."""
        return self._change(controller_.fence_broker(self._setup, self.image, member, True, self._preference(preference)))

    def elect(self, member: int) -> bool:
        """Make a member of the ISR the leader."""
        return self._change(controller_.elect_preferred(self._setup, self.image, self._preference((member,))))

    def _preference(self, first: Sequence[int]) -> tuple[int, ...]:
        return (*first, *(member for member in self.image.assignment if member not in first))

    def _change(self, image: Controller) -> bool:
        before, self.image = self.image, image
        return image != before

    def judge(self, leader: int) -> bool:
        """Have the controller judge the proposal that a leader says to have in flight."""
        proposal: Any = self._reports[leader][-1]["proposal"]
        if proposal is None or leader in self._verdicts:
            return False
        names = {self.name_of(leader, other): other for other in range(len(self.members))}
        isr = tuple(sorted(names[name] for name in proposal["isr"]))
        request = AlterPartitionRequest(leader, proposal["leader_epoch"], proposal["partition_epoch"], isr)
        self.image, response = controller_.alter_partition(self._setup, self.image, request)
        self._verdicts[leader] = response, (self._last(leader, "proposal"),)
        return True

    def respond_to_proposal(self, leader: int) -> bool:
        """Deliver the controller's response."""
        if leader not in self._verdicts:
            return False
        response, sources = self._verdicts.pop(leader)
        epoch, isr = (response.partition_epoch, response.isr) if response.error == NONE else (UNDEFINED, ())
        members = tuple(sorted(self.name_of(leader, member) for member in isr))
        return self._take(leader, ("alter_partition_response", response.error, epoch, members), *sources) is not None

    def read_metadata(self, member: int) -> bool:
        """Let a broker read the newest registration; a proposal that it overtakes is answered at once (contract)."""
        image, rename = self.image, self._rename[member]
        if image.partition_epoch <= self.states[member].partition_epoch:
            return False
        isr = tuple(sorted(map(rename, image.isr)))
        step = "metadata", rename(image.leader), image.leader_epoch, image.partition_epoch, isr
        if self._take(member, step) is None:
            return False
        if self.states[member].overtaken:
            self.judge(member)
            self.respond_to_proposal(member)
        return True


def _response_step(peer: int, response: _Response, request: Callable[[int], Any]) -> Step:
    """Return the step in which a follower gets what its leader has said."""
    result = response.result
    error = result["error"]
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
"""Something that may happen now; it returns whether it did."""

MOST_ENDS = 1
"""How often a process ends on a walk: on a broker of Kafka all paths wait for it."""


def cluster_walk(
    members: Sequence[MemberModel], controller: Profile, seed: int, number: int, min_isr: int = 1
) -> ClusterPath:
    """Draw one walk: data flows more often than leaders change, and whoever can read metadata mostly does."""
    rng = random.Random(f"{seed}.{number}")
    builder = PathBuilder(members, controller, min_isr)
    everybody = range(len(members))
    for member in everybody:
        builder.read_metadata(member)
    ends = 0
    for _ in range(4 * STEPS_OF_A_CLUSTER):
        weights = dict(_turns(builder, rng, ends < MOST_ENDS))
        turn = rng.choices([*weights], [*weights.values()])[0]
        before = builder.image
        if turn() and turn.__name__ in {"crash", "stop"}:
            ends += 1
        # A process that has ended has the partition again once it has read metadata; so has a new leader its followers.
        # Metadata has changed, or now and then without a change; a member that does not read it (0.3) lags behind.
        if builder.image is not before or rng.random() < 0.2:
            for member in everybody:
                if rng.random() < 0.7:
                    builder.read_metadata(member)
        if len(builder) >= STEPS_OF_A_CLUSTER:
            break
    return builder.path(f"walk {seed}.{number}")


def _turns(builder: PathBuilder, rng: random.Random, may_end: bool) -> Iterator[tuple[Turn, int]]:
    """Yield what may happen, and its weight: how likely it is compared with the others.

    In most walks records are copied (24) between the few elections, fences, crashes and lost responses (1 or 2).
    """
    everybody = range(len(builder.members))

    def turn(method: Callable[..., bool], *args: Any, **options: Any) -> Turn:
        """Return a call with its arguments bound, which keeps the method's name."""

        def take() -> bool:
            return method(*args, **options)

        take.__name__ = method.__name__
        return take

    for member in everybody:
        state: ReferenceBroker = builder.states[member]
        if state.broker.leads:
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
        yield turn(builder.fence, member, (rng.choice(everybody),)), 1
        if may_end:
            yield turn(builder.crash, member, rng.randint(0, 3)), 1
            yield turn(builder.stop, member), 1


def cluster_walks(members: Sequence[MemberModel], controller: Profile, seed: int, count: int) -> tuple[ClusterPath, ...]:
    """Return the first walks of a seed; every fourth needs two in-sync replicas."""
    return tuple(
        cluster_walk(members, controller, seed, number, min_isr=2 if number % 4 == 3 else 1) for number in range(count)
    )
