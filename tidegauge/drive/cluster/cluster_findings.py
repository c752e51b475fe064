"""Findings as paths of a whole cluster, up to the read that lacks what was acknowledged.

Rules of this file

1. F1 and F2 are scenarios: each transition of their run is taken by the members themselves. A member's requests leave at
   once, so one that the scenario sends later is lost and sent again. F3 has no scenario; it is written here, step by step.
2. What was acknowledged, and what the elected leader has then, is read from the members' reports, not from the model.
3. In the end a consumer asks the leader that was elected for the latest offset, where it can be asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidegauge.conformance.repl.session import Session
from tidegauge.drive.broker.contract import BROKER, BrokerCase
from tidegauge.drive.broker.steps import ENDS
from tidegauge.drive.cluster.cluster_run import ClusterRun
from tidegauge.drive.cluster.cluster_walks import ClusterPath, MemberModel, PathBuilder
from tidegauge.drive.contract import Report
from tidegauge.drive.paths import scenarios
from tidegauge.impl.cluster.cluster import Cluster, actions
from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.messages import FetchRequest
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.util.errors import UsageError
from tidegauge.util.foreign_text import visible

OF_BROKERS = ("F1", "F2", "F3")
"""The findings that are a broker's; the others are the controller's."""

FOLLOWED = ("SendFetch", "SendEpochRequest", "TruncateToHighWatermark", "AnswerProduce", "Read")
"""What a member does by itself."""

RESPONSES = ("HandleFetchResponse", "HandleDivergingResponse", "HandleOutOfRange", "HandleEpochResponse")

ONE_AND_TWO = ((1, 0), (2, 0))


def finding_path(name: str, members: Sequence[MemberModel], controller: Profile) -> ClusterPath:
    """Return the path of a finding. Raises UsageError where these members do not go it."""
    if name not in OF_BROKERS:
        raise UsageError(
            f"--finding: expected {', '.join(OF_BROKERS)}; seen {name!r}; what a controller does wrong: drive --kafka 4.3.1 "
            "--controller --scenarios"
        )
    if name == "F3":
        builder = PathBuilder(members, controller)
        steps: Iterator[tuple[str, bool]] = _erased_proposal(builder)
    else:
        session = scenarios.first_played(name, members[0].reference.profile)
        if session.brokers > len(members):
            raise UsageError(f"--finding {name}: expected {session.brokers} brokers; seen {len(members)}; add some")
        builder = PathBuilder(members[: session.brokers], controller, session.cluster.model.bounds.min_insync_replicas)
        steps = _followed(builder, session)
    for step, happened in steps:
        if not happened:
            raise UsageError(
                f"--finding {name}: expected brokers that take each of its steps; seen none that takes {step}, the "
                f"{len(builder) + 1}th; name releases that have it"
            )
    leader = builder.image.leader
    builder.consume(leader)
    return builder.path(name)


def _followed(builder: PathBuilder, session: Session) -> Iterator[tuple[str, bool]]:
    """Take each transition of a session; yield its name, and whether it happened."""
    for member in range(session.brokers):
        yield "BecomeFollower", builder.read_metadata(member)
    for before, label in zip(session.states, session.labels, strict=False):
        yield str(label[0]), _take(builder, before, label)


def _take(builder: PathBuilder, before: Cluster, label: Label) -> bool:
    match label:
        case ("LeaderAppend", member):
            return builder.append(member, -1)
        case ("HandleFetch" | "HandleEpochRequest", leader, follower, *expand):
            # Rule 1: the scenario's request is newer than the one that the member has sent.
            if not _is_sent(builder, before, follower, leader):
                builder.lose(follower, leader)
            joins = bool(expand and expand[0]) or ("HandleFetch", leader, follower, 1) not in actions(before)
            return builder.handle(follower, leader, may_join=joins)
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
            return label[0] in FOLLOWED


def _is_sent(builder: PathBuilder, before: Cluster, follower: int, leader: int) -> bool:
    """Return whether a member has in flight what it has in the scenario."""
    own, wanted = builder.request(follower, leader), before.network[follower][leader]
    if own is None or not isinstance(wanted, FetchRequest):
        return own is not None
    fields = own["current_leader_epoch"], own.get("fetch_offset"), own.get("last_fetched_epoch")
    return fields == (wanted.current_leader_epoch, wanted.fetch_offset, wanted.last_fetched_epoch)


def _erased_proposal(builder: PathBuilder) -> Iterator[tuple[str, bool]]:
    """Take F3: metadata that a leader has read already erases the ISR that it has proposed since."""
    for member in range(len(builder.members)):
        yield "BecomeFollower", builder.read_metadata(member)
    for follower, leader in ONE_AND_TWO:
        yield "HandleFetch", builder.handle(follower, leader, may_join=False)
        yield "HandleFetchResponse", builder.respond(follower, leader)
        yield "FenceBroker", builder.fence(follower)
    yield "BecomeLeader", builder.read_metadata(0)
    # The second is in the ISR again, by a proposal that is answered before its metadata is read.
    yield "HandleFetch", builder.handle(1, 0, may_join=True)
    yield "LeaderAppend", builder.append(0, -1)
    yield "AlterPartition", builder.judge(0)
    yield "AlterPartition", builder.respond_to_proposal(0)
    # The third is proposed; the second has the record, and the third has not.
    yield "HandleFetch", builder.handle(2, 0, may_join=True)
    for _ in range(2):
        yield "HandleFetchResponse", builder.respond(1, 0)
        yield "HandleFetch", builder.handle(1, 0, may_join=False)
    # Here the proposal is forgotten and the record acknowledged; then the controller accepts what was proposed.
    yield "BecomeLeader", builder.read_metadata(0)
    yield "LoseResponse", builder.lose(2, 0)
    yield "ElectPreferred", builder.elect(2)
    for member in (2, 0):
        yield "BecomeFollower", builder.read_metadata(member)
    yield "HandleFetch", builder.handle(0, 2, may_join=False)
    yield "HandleDivergingResponse", builder.respond(0, 2)


# ---------------------------------------------------------------------------------------------------------------------
# What the members really did


def finding_text(run: ClusterRun) -> str:
    """Return each step of the path with what it changed, what was acknowledged, and what the elected leader has."""
    (path,), names = run.paths, [visible(member.name) for member in run.members]
    lines, at = [], [0] * len(run.members)
    for number, own_step in enumerate(path.steps, 1):
        member = own_step.member
        own = run.reports[member].get(0, ())
        at[member] += 1
        if at[member] >= len(own):
            lines.append(f"  {number:>3}  broker {member + 1} was not given what follows: a step before it differs")
            break
        changed = "; ".join(scenarios.changes(own[at[member] - 1], own[at[member]])) or "nothing changes"
        step = run.members[member].reference.step_text(own_step.step)
        lines += [f"  {number:>3}  broker {member + 1}, {names[member]}: {step}", f"         {changed}"]
    return "\n".join([*lines, *_outcome(run, names)])


def _outcome(run: ClusterRun, names: Sequence[str]) -> Iterator[str]:
    """Yield what was acknowledged, and what the last leader has of it: rule 2."""
    (path,) = run.paths
    leader = path.steps[-1].member
    reports = [dict(own).get(0, ()) for own in run.reports]
    last: Mapping[str, Any] = reports[leader][-1] if reports[leader] else {}
    promised = []
    for member, (case, own) in enumerate(zip(path.cases, reports, strict=True)):
        broker = f"broker {member + 1} ({names[member]})"
        acknowledged, shown = _acknowledged(own), _shown(case, own)
        promised += [*acknowledged, *([shown - 1] if shown else [])]
        for base in acknowledged:
            yield f"  acknowledged: the record at offset {base}, by {broker}, with acks=all"
        if shown:
            yield f"  shown: the records below {shown} to consumers, by {broker} while it led"
    read = last.get("result") or {}
    latest = f"; the latest offset for a consumer is {read['offset']}" if "offset" in read else ""
    yield f"  broker {leader + 1} ({names[leader]}) leads in the end: its log ends at {last.get('leo')}{latest}"
    gone = isinstance(end := last.get("leo"), int) and any(offset >= end for offset in promised)
    yield "  LOST: a record that was acknowledged, or shown to consumers, is not there" if gone else "  nothing is lost"


def _acknowledged(reports: Sequence[Report]) -> list[int]:
    """Return the base offset of each record whose producer was told that all in-sync replicas have it."""
    return [base for report in reports for base, error in report.get("produced") or () if error == NONE]


def _shown(case: BrokerCase, reports: Sequence[Report]) -> int:
    """Return the highest high watermark that a member has reported while it led: consumers are shown what is below."""
    leads, highest = False, 0
    for step, report in zip(case.path, reports[1:], strict=False):
        leads = step[1] == BROKER if step[0] == "metadata" else leads and step[0] not in ENDS
        if leads and isinstance(hw := report.get("hw"), int):
            highest = max(highest, hw)
    return highest
