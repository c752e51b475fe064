"""Findings (F1, F2, .. of docs/findings.md) as paths of a whole cluster, up to the read that lacks what was acknowledged.

A *member* is a broker of the cluster, by its index from 0 on; broker 1 is member 0. A *builder* is a cluster under way: each
of its methods lets something happen, and returns whether it did. A part of a path is a generator that calls such methods and
yields (action, whether it happened) for each. `image` is the partition's registration as the controller has it.

`up`, `registers`, `beats`, `fenced`, `topic` and `min_isr` make steps of a controller: brokers register and are unfenced, a
broker registers, sends a heartbeat, asks to be fenced; topic t is created, its min.insync.replicas set. SWITCH_ON and
SWITCH_OFF are those that switch ELR. SHOWN_BY has the switch of a profile that is on where a controller has a finding.

Rules of this file

1. F1 and F2 are scenarios: each transition of their run is taken by the members themselves. A member's requests leave at
   once, so one that the scenario sends later is lost and sent again. F3 has no scenario; it is written here, step by step.
2. What was acknowledged, and what the elected leader has then, is read from the members' reports, not from the model.
3. In the end a consumer requests the latest offset of the elected leader, or of every broker where nobody leads.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tidegauge.conformance.play.session import Session
from tidegauge.drive.broker.contract import BROKER, BrokerCase
from tidegauge.drive.broker.steps import ENDS
from tidegauge.drive.cluster.cluster_run import ClusterRun
from tidegauge.drive.cluster.cluster_walks import ClusterPath, MemberModel, PathBuilder
from tidegauge.drive.contract import Report, Step
from tidegauge.drive.controller.contract import ClusterOpening, ControllerCase
from tidegauge.drive.controller.findings import SHOWN_BY, SWITCH_OFF, SWITCH_ON, beats, fenced, min_isr, registers, topic, up
from tidegauge.drive.controller.reference import reference
from tidegauge.drive.controller.steps import step_line
from tidegauge.drive.paths import scenarios
from tidegauge.impl.cluster.cluster import Cluster, actions
from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.errors import ERROR_NAMES
from tidegauge.impl.messages import AlterPartitionResponse, FetchRequest
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.util.errors import UsageError
from tidegauge.util.untrusted_text import visible

# Findings of controllers as paths of a whole cluster: a controller of its contract, and brokers that read what it writes.
#
# Rules of this part
#
# 1. The registration that a broker reads is the one that the controller of the reference has after the same steps; a
#    proposal of a broker is a step of the controller. The real controller takes these steps, too: if none differs, the
#    brokers were given what it has written.
# 2. Sessions, configurations and features are steps of the controller; a broker's process ends by a step of its own.
# 3. A broker's contract has no configuration that changes. A broker has the last min.insync.replicas of a path from the
#    beginning, and while the controller has another nothing is appended that depends on it.


TOPIC, PARTITION = "t", 0

_FIXED_REPLICAS = "a driven broker's replicas are never reassigned, deleted and created again"

ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "F4": _FIXED_REPLICAS,
        "F6": "the topic is deleted, so there is nothing to read",
        "F7": "a reassignment stays under way, and every read is right",
        "F8": "a driven broker has no log directory that fails",
        "F10": _FIXED_REPLICAS,
        "F12": "a reassignment stays under way, and every read is right",
    }
)
"""The findings of controllers that no reader of a driven broker sees, and why."""


class PlacedStep(NamedTuple):
    """A step of the controller. `place`: how many steps of brokers come before it; `text`: the registration after it."""

    place: int
    step: Step
    text: str


class ControlledBuilder(PathBuilder):
    """A cluster under way whose controller takes the steps of its own contract: rule 1."""

    def __init__(self, members: Sequence[MemberModel], controller: Profile, opening: ClusterOpening, min_isr: int) -> None:
        """Begin a cluster. `controller`: its generation; `opening`: how the controller begins; `min_isr`: of the brokers."""
        super().__init__(members, controller, min_isr)
        self.reference, self._opening = reference(controller), opening
        self._control = self.reference.opened(opening)
        self.control_steps: list[PlacedStep] = []

    @property
    def case(self) -> ControllerCase:
        """The controller's part of the path."""
        return ControllerCase(self._opening, tuple(placed.step for placed in self.control_steps))

    def ask(self, *steps: Step) -> int:
        """Have the controller take steps of its contract; return the error in the response to the last one."""
        error = NONE
        for step in steps:
            self._control, report = self.reference.take(self._control, step)
            # `len(self)`: the number of the brokers' steps so far. A session that expires is a step without a result.
            self.control_steps.append(PlacedStep(len(self), step, self._update_image(report["partitions"])))
            error = (report["result"] or {}).get("error", NONE)
        return error

    def _update_image(self, partitions: Mapping[str, Any]) -> str:
        """Take over the registration of the partition among those that the controller reports; return it as text.

        Returns "" as long as the partition does not exist.
        """
        registration = partitions.get(f"{TOPIC}-{PARTITION}")
        if registration is None:
            return ""
        leader, epoch, isr, elr = (registration[field] for field in ("leader", "leader_epoch", "isr", "elr"))
        # Members are counted from 0 on, brokers from 1 on; no leader is -1 for both.
        self.image = self.image._replace(
            leader=leader - 1 if leader > 0 else leader,
            leader_epoch=epoch,
            isr=tuple(broker - 1 for broker in isr),
            partition_epoch=registration["partition_epoch"],
        )
        isr_text, elr_text = (",".join(map(str, brokers)) or "nobody" for brokers in (isr, elr))
        return f"leader {leader if leader > 0 else 'none'}, epoch {epoch}; ISR {isr_text}, eligible {elr_text}"

    def judge(self, leader: int) -> bool:
        """Give the controller the proposal that a leader reports, as a step of its contract; return whether there is one.

        The response is in flight then.
        """
        proposal: Any = self._reports[leader][-1]["proposal"]
        # A proposal is judged once: while the response (`_verdicts`) is in flight it is still reported.
        if proposal is None or leader in self._verdicts:
            return False
        # The leader has ids of its own for the others; the controller has member 0 as broker 1, and so on.
        brokers = {self.name_of(leader, other): other + 1 for other in range(len(self.members))}
        isr = tuple(sorted(brokers[name] for name in proposal["isr"]))
        epochs = proposal["leader_epoch"], proposal["partition_epoch"]
        # With the leader's own broker epoch (0 below it); it is not recovering (False).
        error = self.ask(("alter_partition", leader + 1, 0, TOPIC, PARTITION, *epochs, isr, False))
        response = AlterPartitionResponse(error, self.image.leader_epoch, self.image.partition_epoch, self.image.isr)
        self._verdicts[leader] = response, (self._last(leader, "proposal"),)
        return True

    def fence(self, member: int, preference: Sequence[int] = ()) -> bool:
        """Do nothing: sessions are steps of the controller (rule 2 of this part)."""
        del member, preference
        return False


StepTried = tuple[str, bool]
"""(name of the action, whether it happened)."""

FindingPart = Callable[[ControlledBuilder], Iterator[StepTried]]


def _begin(builder: ControlledBuilder, topic_min_isr: int, *before: Step) -> Iterator[StepTried]:
    """Start both brokers, create the topic with this min.insync.replicas, and append a record with acks=all.

    `before`: steps of the controller that come first.
    """
    builder.ask(*before, *up(1, 2), topic((1, 2), min_isr=topic_min_isr))
    for member in (0, 1):
        yield "BecomeLeader", builder.read_metadata(member)
    yield "LeaderAppend", builder.append(0, acks=-1)


def _copied(builder: ControlledBuilder) -> Iterator[StepTried]:
    """Let the second broker fetch the record, then fetch after it: thereby the record is committed and acknowledged."""
    # The arguments are follower and leader: member 1 fetches from member 0.
    for _ in range(2):
        yield "HandleFetch", builder.handle(1, 0, may_join=True)
        yield "HandleFetchResponse", builder.respond(1, 0)


def _fence_and_stop(builder: ControlledBuilder, member: int) -> Iterator[StepTried]:
    """Let the controller fence a broker, and then let the broker shut down in order."""
    builder.ask(fenced(member + 1))
    yield "StopBroker", builder.stop(member)


def _forgotten_elr(builder: ControlledBuilder) -> Iterator[StepTried]:
    """Take F5: everybody is down, min.insync.replicas is lowered, everybody comes back."""
    yield from _begin(builder, 2)
    yield from _copied(builder)
    for member in (1, 0):
        yield from _fence_and_stop(builder, member)
    builder.ask(min_isr(1), beats(1), beats(2))


def _old_elr_elects(builder: ControlledBuilder) -> Iterator[StepTried]:
    """Take F9: the first broker commits alone while ELR is off, and the second is still eligible afterwards."""
    yield from _begin(builder, 2)
    yield from _copied(builder)
    yield from _fence_and_stop(builder, 1)
    yield "BecomeLeader", builder.read_metadata(0)
    builder.ask(SWITCH_OFF, min_isr(1))
    yield "LeaderAppend", builder.append(0, acks=-1)
    builder.ask(SWITCH_ON)
    yield from _fence_and_stop(builder, 0)
    builder.ask(beats(2))


def _raised_too_late(builder: ControlledBuilder) -> Iterator[StepTried]:
    """Take F11: the first broker has not read the higher min.insync.replicas, by which the second is eligible."""
    yield from _begin(builder, 1)
    builder.ask(min_isr(2))
    # The leader goes on with 1 and commits alone; the controller has 2, and so keeps the member that leaves as eligible.
    yield "ShrinkIsr", builder.lag(0)
    yield "AlterPartition", builder.judge(0)
    yield "AlterPartition", builder.respond_to_proposal(0)
    yield from _fence_and_stop(builder, 0)


def _switched_on_leaderless(builder: ControlledBuilder) -> Iterator[StepTried]:
    """Take F13: ELR is switched on while nobody leads, and the last member comes back after a crash."""
    yield from _begin(builder, 2, SWITCH_OFF)
    yield from _copied(builder)
    yield from _fence_and_stop(builder, 1)
    builder.ask(fenced(1))
    yield "CrashBroker", builder.crash(0, hw=1)
    builder.ask(SWITCH_ON, beats(2), ("session_expires", 1), registers(1), beats(1))


SCRIPTS: Mapping[str, tuple[int, FindingPart]] = MappingProxyType(
    {
        "F5": (2, _forgotten_elr),
        "F9": (1, _old_elr_elects),
        "F11": (1, _raised_too_late),
        "F13": (2, _switched_on_leaderless),
    }
)
"""By finding, the min.insync.replicas that the brokers have (rule 3 of this part), and the path."""


def controlled(name: str, members: Sequence[MemberModel], controller: Profile, opening: ClusterOpening) -> ControlledBuilder:
    """Return a builder at the beginning of the path of the controller's finding `name`, on the first two members.

    The caller takes the steps of its script.

    Raises UsageError where a controller of this generation, or without ELR, does not have the bug.
    """
    # All four scripts need eligible leader replicas as well as the bug.
    if not (getattr(controller, SHOWN_BY[name]) and opening.elr):
        raise UsageError(
            f"--finding {name}: expected a controller that has it, with ELR; seen {controller.name}; name releases with both"
        )
    min_isr, _ = SCRIPTS[name]
    return ControlledBuilder(members[:2], controller, opening, min_isr)


OF_BROKERS = ("F1", "F2", "F3")
"""The findings that are a broker's; the others are the controller's."""


class FindingPath(NamedTuple):
    """The path of a finding; where that is the controller's, also its case, and the steps of the case with their places."""

    path: ClusterPath
    control: ControllerCase | None = None
    control_steps: tuple[PlacedStep, ...] = ()


TAKEN_BY_ITSELF = ("SendFetch", "SendEpochRequest", "TruncateToHighWatermark", "AnswerProduce", "Read")
"""Actions of a scenario that a member takes without any input."""


def needs_controller(name: str) -> bool:
    """Return whether a finding needs a controller in a process. Raises UsageError for one that no consumer can see."""
    if name in OF_BROKERS or name in SCRIPTS:
        return name in SCRIPTS
    reason = f", which no reader of a driven broker sees: {ELSEWHERE[name]}" if name in ELSEWHERE else ""
    raise UsageError(
        f"--finding: expected {', '.join((*OF_BROKERS, *SCRIPTS))}; seen {visible(name)}{reason}; a controller alone: "
        "tidegauge drive --kafka 4.3.1 --controller --scenarios"
    )


def finding_path(
    name: str, members: Sequence[MemberModel], controller: Profile, opening: ClusterOpening | None = None
) -> FindingPath:
    """Return the path of the finding `name`. Raises UsageError where it does not happen with these members.

    `controller`: the generation of the controller; `opening`: how its process begins, for a finding that needs one.
    """
    # Of a finding of the controller there is a script, for two brokers and a controller that takes part.
    if needs_controller(name):
        assert opening is not None, name
        controlled_builder = controlled(name, members, controller, opening)
        _, finding_part = SCRIPTS[name]
        _take_all(name, controlled_builder, finding_part(controlled_builder))
        case, steps = controlled_builder.case, tuple(controlled_builder.control_steps)
        return FindingPath(_read_in_the_end(name, controlled_builder), case, steps)
    if name == "F3":
        builder = PathBuilder(members, controller)
        _take_all(name, builder, _erased_proposal(builder))
    else:
        session = scenarios.first_played(name, members[0].reference.profile)
        if session.brokers > len(members):
            raise UsageError(f"--finding {name}: expected {session.brokers} brokers; seen {len(members)}; add some")
        builder = PathBuilder(members[: session.brokers], controller, session.cluster.model.bounds.min_insync_replicas)
        _take_all(name, builder, _followed(builder, session))
    return FindingPath(_read_in_the_end(name, builder))


def _take_all(name: str, builder: PathBuilder, steps: Iterator[StepTried]) -> None:
    """Run a generator that takes the steps of a path. Raises UsageError at a step that did not happen."""
    for step, happened in steps:
        if not happened:
            raise UsageError(
                f"--finding {name}: expected brokers that take each of its steps; seen none that takes {step}, the "
                f"{len(builder) + 1}th; name releases that have it"
            )


def _read_in_the_end(name: str, builder: PathBuilder) -> ClusterPath:
    """Let a consumer read at the leader, or at every member where nobody leads (rule 3); return the whole path."""
    leader = builder.image.leader
    for member in range(len(builder.members)) if leader == UNDEFINED else (leader,):
        builder.read_metadata(member)
        builder.consume(member)
    return builder.path(name)


def _followed(builder: PathBuilder, session: Session) -> Iterator[StepTried]:
    """Take each transition of a scenario's session; yield its action, and whether it happened."""
    for member in range(session.brokers):
        yield "BecomeFollower", builder.read_metadata(member)
    for before, label in zip(session.states, session.labels, strict=False):
        yield str(label[0]), _take(builder, before, label)


def _take(builder: PathBuilder, before: Cluster, label: Label) -> bool:
    """Have the members take a transition of a scenario; return whether it happened.

    `before`: the scenario's cluster before the transition; `label`: its action and arguments (impl.cluster.actions).
    """
    match label:
        case ("LeaderAppend", member):
            return builder.append(member, acks=-1)
        case ("HandleFetch" | "HandleEpochRequest", leader, follower, *expand):
            # Rule 1: the scenario's request is newer than the one that the member has sent. Lose it: the next one is sent.
            if not _is_sent(builder, before, follower, leader):
                builder.lose(follower, leader)
            # The follower may not join only if it did not join in the scenario, although it could have there.
            may_join = bool(expand and expand[0]) or ("HandleFetch", leader, follower, 1) not in actions(before)
            return builder.handle(follower, leader, may_join=may_join)
        case (
            "HandleFetchResponse" | "HandleDivergingResponse" | "HandleOutOfRange" | "HandleEpochResponse",
            follower,
            leader,
        ):
            return builder.respond(follower, leader)
        case ("LoseResponse", follower, leader):
            return builder.lose(follower, leader)
        case ("BecomeLeader" | "BecomeFollower", member):
            return builder.read_metadata(member)
        case ("ElectPreferred", member):
            return builder.elect(member)
        case ("FenceBroker", member, elected):
            return builder.fence(member, () if elected == UNDEFINED else (elected,))
        case ("ShrinkIsr", leader, _):
            return builder.lag(leader)
        case ("AlterPartition", leader):
            return builder.judge(leader)
        case _:
            return label[0] in TAKEN_BY_ITSELF


def _is_sent(builder: PathBuilder, before: Cluster, follower: int, leader: int) -> bool:
    """Return whether a follower has the same request in flight to a leader as in the scenario."""
    request, in_scenario = builder.request(follower, leader), before.network[follower][leader]
    # An OffsetsForLeaderEpoch request is not compared: any request will do.
    if request is None or not isinstance(in_scenario, FetchRequest):
        return request is not None
    fields = request["current_leader_epoch"], request.get("fetch_offset"), request.get("last_fetched_epoch")
    return fields == (in_scenario.current_leader_epoch, in_scenario.fetch_offset, in_scenario.last_fetched_epoch)


def _erased_proposal(builder: PathBuilder) -> Iterator[StepTried]:
    """Take F3 with members 0, 1 and 2: metadata that a leader has read already erases the ISR that it has proposed since."""
    for member in range(len(builder.members)):
        yield "BecomeFollower", builder.read_metadata(member)
    # Both followers leave the ISR.
    for follower in (1, 2):
        yield "HandleFetch", builder.handle(follower, 0, may_join=False)
        yield "HandleFetchResponse", builder.respond(follower, 0)
        yield "FenceBroker", builder.fence(follower)
    yield "BecomeLeader", builder.read_metadata(0)
    # Member 1 joins the ISR again, by a proposal whose response comes before the leader reads the metadata about it.
    yield "HandleFetch", builder.handle(1, 0, may_join=True)
    yield "LeaderAppend", builder.append(0, acks=-1)
    yield "AlterPartition", builder.judge(0)
    yield "AlterPartition", builder.respond_to_proposal(0)
    # Member 2 is proposed. Member 1 gets the record, member 2 does not.
    yield "HandleFetch", builder.handle(2, 0, may_join=True)
    for _ in range(2):
        yield "HandleFetchResponse", builder.respond(1, 0)
        yield "HandleFetch", builder.handle(1, 0, may_join=False)
    # The leader reads the metadata about member 1: it forgets the proposal, so the record is acknowledged. Then the
    # controller accepts the proposal, and may elect member 2.
    yield "BecomeLeader", builder.read_metadata(0)
    yield "LoseResponse", builder.lose(2, 0)
    yield "ElectPreferred", builder.elect(2)
    for member in (2, 0):
        yield "BecomeFollower", builder.read_metadata(member)
    yield "HandleFetch", builder.handle(0, 2, may_join=False)
    yield "HandleDivergingResponse", builder.respond(0, 2)


# ---------------------------------------------------------------------------------------------------------------------
# What the members really did


def finding_text(run: ClusterRun, control: Sequence[PlacedStep] = ()) -> str:
    """Return the text of a run of one finding: each step with what it changed, what was acknowledged, and what became of it.

    `control`: steps of the controller, each printed before the broker's step that follows it.
    """
    (path,), names = run.paths, [visible(member.name) for member in run.members]
    lines: list[str] = []
    # By member: the index of its report that was printed last; that of the opening is 0.
    last_printed = [0] * len(run.members)
    for number, cluster_step in enumerate(path.steps, 1):
        lines += _control_lines(control, number - 1)
        member = cluster_step.member
        reports = run.reports[member].get(0, ())  # the run has one path, number 0; the first report is that of the opening
        last_printed[member] += 1
        # A member that differs is played no further.
        if last_printed[member] >= len(reports):
            lines.append(f"  {number:>3}  broker {member + 1} was not given what follows: a step before it differs")
            break
        before, after = reports[last_printed[member] - 1], reports[last_printed[member]]
        changed = "; ".join(scenarios.changes(before, after)) or "nothing changes"
        step = run.members[member].reference.step_text(cluster_step.step)
        lines += [f"  {number:>3}  broker {member + 1}, {names[member]}: {step}", f"         {changed}"]
    return "\n".join([*lines, *_outcome(run, names)])


def _control_lines(control: Sequence[PlacedStep], place: int) -> Iterator[str]:
    """Yield lines about the controller's steps after `place` steps of brokers, with the registration after each."""
    for step in control:
        if step.place == place:
            yield f"       controller: {step_line(step.step)}"
            if step.text:
                yield f"         {step.text}"


def _outcome(run: ClusterRun, names: Sequence[str]) -> Iterator[str]:
    """Yield lines about what was acknowledged or shown to consumers, and what the last leader has of it (rule 2).

    `names`: of the members.
    """
    (path,) = run.paths
    reports = [dict(by_path).get(0, ()) for by_path in run.reports]
    # Offsets of records that must not be lost.
    promised = []
    for member, (case, member_reports) in enumerate(zip(path.cases, reports, strict=True)):
        broker = f"broker {member + 1} ({names[member]})"
        acknowledged, shown = _acknowledged(member_reports), _shown(case, member_reports)
        # Of those that were shown the last one stands for all: a log that has it has those before it.
        promised += [*acknowledged, *([shown - 1] if shown else [])]
        for base in acknowledged:
            yield f"  acknowledged: the record at offset {base}, by {broker}, with acks=all"
        if shown:
            yield f"  shown: the records below {shown} to consumers, by {broker} while it led"
    last: list[Mapping[str, Any]] = [member_reports[-1] if member_reports else {} for member_reports in reports]
    # The path ends with reads: at the leader, or at every member (rule 3).
    leader = path.steps[-1].member
    refusals = [(report.get("result") or {}).get("error", NONE) for report in last]
    # If all refuse the consumer, nobody leads.
    if NONE not in refusals:
        for name, (member, report) in zip(names, enumerate(last, 1), strict=True):
            refusal = ERROR_NAMES.get(refusals[member - 1], refusals[member - 1])
            yield f"  broker {member} ({name}): its log ends at {report.get('leo')}; a consumer is refused, {refusal}"
        # `leo` is the log end; it is not known of a member that does not report it.
        yield (
            "  UNREADABLE: a record that was acknowledged is in the logs, nobody leads, and nobody is elected cleanly"
            if any(offset < (report.get("leo") or 0) for offset in promised for report in last)
            else "  nobody leads"
        )
        return
    read = last[leader].get("result") or {}
    latest = f"; the latest offset for a consumer is {read['offset']}" if "offset" in read else ""
    yield f"  broker {leader + 1} ({names[leader]}) leads in the end: its log ends at {last[leader].get('leo')}{latest}"
    log_end = last[leader].get("leo")
    # Without a reported log end nothing is known to be lost.
    is_lost = isinstance(log_end, int) and any(offset >= log_end for offset in promised)
    yield "  LOST: a record that was acknowledged, or shown to consumers, is not there" if is_lost else "  nothing is lost"


def _acknowledged(reports: Sequence[Report]) -> list[int]:
    """Return the base offset of each append with acks=all that a member has acknowledged, by its reports."""
    return [base for report in reports for base, error in report.get("produced") or () if error == NONE]


def _shown(case: BrokerCase, reports: Sequence[Report]) -> int:
    """Return the highest high watermark that a member has reported while it led, 0 for none: consumers see what is below.

    `reports`: first that of the opening, then one per step of the case.
    """
    leads, highest = False, 0
    for step, report in zip(case.path, reports[1:], strict=False):
        # Only metadata makes it leader (`step[1]` is the new leader) or follower, and the end of its process ends that.
        leads = step[1] == BROKER if step[0] == "metadata" else leads and step[0] not in ENDS
        if leads and isinstance(hw := report.get("hw"), int):
            highest = max(highest, hw)
    return highest
