"""Scenarios as paths of one driven broker: those of conformance/scenarios, and those named after a finding."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path as File
from typing import Any, NamedTuple

from tidegauge.conformance.engine.judge import judge
from tidegauge.conformance.explain.explain import explain
from tidegauge.conformance.play.directives import Player
from tidegauge.conformance.play.scenario import DIRECTORY, Scenario, files_named, read, shipped
from tidegauge.conformance.play.session import Session
from tidegauge.drive.broker.contract import BROKER, REPORTED, BrokerCase, Opening
from tidegauge.drive.broker.reference import field_text, missing_capability, step_text, take_step
from tidegauge.drive.broker.state import ReferenceBroker, opened
from tidegauge.drive.broker.steps import ENDS
from tidegauge.drive.contract import Capabilities, Path, Report, Step
from tidegauge.drive.paths import graph_projection
from tidegauge.drive.paths.cover import requested_by, resolved, response_to_overtaken
from tidegauge.drive.paths.graph_projection import Input
from tidegauge.drive.paths.unsafe_or_repaired import ROUNDED_CLAIM, ROUNDED_HIGH_WATERMARK
from tidegauge.impl.cluster.broker import truncate_alone
from tidegauge.impl.cluster.cluster import Cluster, actions
from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.explorer import isr_model
from tidegauge.impl.explorer.describe import broker_name
from tidegauge.impl.explorer.isr_model import IsrBounds, IsrCluster
from tidegauge.impl.explorer.search import Counterexample
from tidegauge.impl.profiles import ELR_REPAIRED, FETCH_TRUNCATION, SAFE, UNSAFE, Profile
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.isr_changes import steps_of, trace_of_isr_changes
from tidegauge.traces.schema import Trace
from tidegauge.util.errors import UsageError

# The scenarios of conformance/scenarios as one of their brokers sees them: paths like any other.
#
# Rules of this part
#
# 1. A scenario is a cluster's; what its broker is given becomes steps, what it does by itself is expected of it.
# 2. The contract sends a request as soon as there is something to ask, a scenario when it says so: where the two differ the
#    earlier request is lost and asked again. A proposal that metadata has overtaken is responded to at once.
# 3. What reaches a broker that has started and read no metadata is left out: the contract has no such partition.
# 4. A scenario of another generation, of the whole controller, or in which the broker loses its disk is none for a driven
#    broker.
# 5. A broker that has repaired a bug of the scenario's generation goes another way, if the scenario goes on at all.


class ScenarioCase(NamedTuple):
    """A scenario as a broker of it sees it: `020_forked_log_is_truncated_on_fetch@b1`."""

    name: str
    case: BrokerCase
    state: ReferenceBroker


def cases_of(place: File, profile: Profile) -> list[ScenarioCase]:
    """Return a case for each broker that a scenario is about; none if it is of another generation."""
    scenario = read(place)
    session = played(place)
    # Rule 4 above.
    if session.has_whole_controller or not _same_generation(session.profile, profile):
        return []
    # Rule 5 above.
    if not _same_switches(session.profile, profile):
        try:
            session = _played(scenario, profile)
        except UsageError:
            return []
    cases = []
    for me in under_test(scenario, session):
        state, path = seen_by(session, me)
        if path:
            cases.append(ScenarioCase(f"{place.stem}@{broker_name(me)}", BrokerCase(state.opening, path), state))
    return cases


def scenario_cases(profile: Profile, capabilities: Capabilities) -> list[ScenarioCase]:
    """Return the cases of all scenarios that are shipped, as far as a broker can be given them."""
    cases = [scenario for place in shipped() for scenario in cases_of(place, profile)]
    return [scenario for scenario in cases if lacks(scenario.case, profile, capabilities) is None]


def under_test(scenario: Scenario, session: Session) -> list[int]:
    """Return the brokers that a scenario is about, but for those that lose their disk."""
    about = (b for b in range(session.brokers) if broker_name(b) in (scenario.under_test or broker_name(b)))
    return [b for b in about if ("LoseDisk", b) not in session.labels]


def played(place: File) -> Session:
    """Play a scenario's commands, and return the session at its end."""
    player = Player()
    for block in read(place).transcript.blocks:
        player.run(block.command)
    assert player.session is not None, place
    return player.session


def _same_generation(of_scenario: Profile, profile: Profile) -> bool:
    # A scenario of a generation with a bug is one of those that have it repaired, too: rule 5.
    repaired = [bug for switch, bug in UNSAFE.items() if not getattr(profile, switch)]
    return _same_switches(of_scenario.without(repaired), profile)


def _same_switches(profile: Profile, other: Profile) -> bool:
    """Return whether brokers of two generations do the same: all but what the controller decides (SAFE has more of it)."""
    of_brokers = {name: getattr(SAFE, name) for name in Profile._fields if _is_controllers(name)}
    return profile._replace(name="", **of_brokers) == other._replace(name="", **of_brokers)


def _is_controllers(switch: str) -> bool:
    # All in which today's controller differs from the repaired one.
    return switch != "name" and getattr(FETCH_TRUNCATION, switch) != getattr(ELR_REPAIRED, switch)


def lacks(case: BrokerCase, profile: Profile, capabilities: Capabilities) -> str | None:
    """Return the first capability that a case needs and a broker does not have."""
    state = opened(case.opening, profile)
    for step in case.path:
        lacking_here = missing_capability(capabilities, state, step)
        if lacking_here is not None:
            return lacking_here
        state, _ = take_step(state, step)
    return None


# ---------------------------------------------------------------------------------------------------------------------
# One broker's part


def seen_by(session: Session, me: int) -> tuple[ReferenceBroker, Path]:
    """Return broker `me` of the session as the reference has it at the end, and the steps that led there."""
    rename, start = graph_projection.renaming(me), session.states[0]
    opening = Opening(tuple(range(BROKER + 1, BROKER + session.brokers)), start.model.bounds.min_insync_replicas)
    state, path = opened(opening, session.profile), list[Step]()
    # Before the first transition the broker reads the metadata that the scenario begins with.
    graph_inputs: Iterator[Input] = iter((Input(graph_projection.image_step(start, rename)),))
    transitions = zip(session.states, session.labels, session.states[1:], strict=False)
    while True:
        for graph_input in graph_inputs:
            for step in _steps(state, graph_input):
                state, _ = take_step(state, step)
                path.append(step)
        following = next(transitions, None)
        if following is None:
            return state, tuple(path)
        graph_inputs = _inputs_to(*following, me, rename)


def ends_alike(state: ReferenceBroker, session: Session, me: int) -> bool:
    """Return whether the broker has the value that it has in the cluster."""
    # A fetcher thread may truncate by itself, in the cluster at any later time (docs/decisions/0009).
    driven, free = (truncate_alone(state.setup, broker) for broker in (state.broker, session.cluster.brokers[me]))
    return graph_projection.local(driven) == graph_projection.local(free, graph_projection.renaming(me))


def _inputs_to(before: Cluster, label: Label, after: Cluster, me: int, rename: graph_projection.Rename) -> Iterator[Input]:
    """Yield what a transition gives broker `me`."""
    # A transition is of the broker that its label names first; the others notice it by a message or metadata, later.
    if label[1:2] != (me,):
        return
    graph_inputs = list(graph_projection.inputs_of(before, label, after, rename))
    match label:
        case ("HandleFetch", leader, f, expand):
            # The metadata cache refuses only where the broker itself would have let the follower in.
            joins = bool(expand) or ("HandleFetch", leader, f, 1) not in actions(before)
            fetch, *others = (
                graph_input for graph_input in graph_inputs if graph_input.step[0] != "fetch" or graph_input.step[5] is True
            )
            yield Input((*fetch.step[:5], joins))
            yield from others
        case ("HandleDuplicate", _, f, expand, epoch, offset, last):
            yield Input(("fetch", rename(f), epoch, offset, last, bool(expand)))
        case ("LoseResponse", _, leader):
            yield Input(("lose_response", rename(leader)))
        case _:
            yield from graph_inputs


def _steps(state: ReferenceBroker, graph_input: Input) -> Iterator[Step]:
    """Yield the steps of the contract by which the broker gets an input, if it is possible now."""
    # Rule 3 above: without metadata the contract has no such partition.
    unread = state.partition_epoch == UNDEFINED or state.broker.partition.leader_epoch == UNDEFINED
    name = graph_input.step[0]
    if unread and name not in {"metadata", *ENDS}:
        return
    if graph_input.requested:
        peer: int = graph_input.step[1]
        in_flight: Any = state.request(peer)
        # Rule 2 above: the contract's broker has sent an earlier request than the scenario's.
        if in_flight is not None and requested_by(in_flight) != graph_input.requested:
            yield "lose_response", peer
    elif name == "lose_response" and state.request(graph_input.step[1]) is None:
        return
    yield resolved(state, graph_input.step)
    if name == "metadata":
        after, _ = take_step(state, resolved(state, graph_input.step))
        if after.overtaken:
            yield resolved(after, response_to_overtaken(after))


# F3 of docs/findings.md as a path, and as the trace of its cluster: metadata that a leader has read already erases the ISR
# it has proposed since.
#
# Rules of this part
#
# 1. The run is the shortest that the model of ISR changes (impl.explorer.isr_model) has without a lag time that runs out:
#    members leave because they are fenced, so no broker's clock is needed.
# 2. A proposal that metadata has overtaken is responded to before anything else: rule 5 of the contract.
# 3. The controller is the suite's: it does not raise the leader epoch for a member that leaves, as Kafka's has not since
#    3.6.
# 4. The model has no election. The path goes on to one: who lacks the record leads, and the leader truncates it.


ERASED_CLAIM = (
    "Metadata that a leader has read already erases the ISR that it proposed: a record commits that a member lacks."
)
BOUNDS = IsrBounds(followers=2, max_end=1, max_partition_epoch=4, max_restarts=0)
NOT_TAKEN = frozenset({"ShrinkIsr", "RestartEmpty"})


def erased_proposal(profile: Profile) -> tuple[BrokerCase, Trace]:
    """Return the leader's path, and the trace of its cluster, by the rules of a generation."""
    counterexample = _erasing_run()
    # The run ends where the record commits; the overtaken proposal still gets its response.
    labels, (lacking,) = (*counterexample.labels, ("HandleAlterPartitionResponse",)), counterexample.violation.brokers
    states = [isr_model.initial_isr_cluster(BOUNDS, profile._replace(epoch_bump_on_shrink=False))]
    for label in labels:
        states.append(dict(isr_model.isr_successors(states[-1]))[label])
    steps = list(graph_projection.isr_beginning(states[0]))
    for before, label, after in zip(states, labels, states[1:], strict=False):
        step = graph_projection.isr_step(before, label, after)
        # The producer waits for the ISR: its acknowledgement is what makes the loss of the record a failure.
        if step is not None:
            steps.append(("append", -1) if step[0] == "append" else step)
    steps += _election(states[-1], lacking)
    peers = tuple(range(BROKER + 1, BROKER + 1 + BOUNDS.followers))
    return BrokerCase(Opening(peers), tuple(steps)), trace_of_isr_changes([*steps_of(states, labels)], "F3", "impl")


def _erasing_run() -> Counterexample[IsrCluster]:
    """Search the shortest run by the rules of a generation that reads such metadata."""
    start = isr_model.initial_isr_cluster(BOUNDS, FETCH_TRUNCATION)
    counterexample = isr_model.search_isr(start, _successors).first_violation(isr_model.check_isr_completeness)
    assert counterexample is not None, "the model has the run"
    return counterexample


def _successors(state: IsrCluster) -> Iterator[tuple[Label, IsrCluster]]:
    # Rule 2 above: an overtaken proposal gets its response first.
    overtaken = state.exchange is not None and not state.leader.state.is_inflight
    for label, after in isr_model.isr_successors(state):
        if label[0].startswith("HandleAlterPartition") if overtaken else label[0] not in NOT_TAKEN:
            yield label, after


def _election(last: IsrCluster, elected: int) -> Iterator[Step]:
    """Yield the election of a broker that lacks the record; its log is empty, so the former leader truncates to 0."""
    rename, registration = graph_projection.renaming(isr_model.LEADER), last.registration
    members = tuple(sorted(map(rename, registration.isr)))
    yield "metadata", rename(elected), isr_model.EPOCH + 1, registration.partition_epoch + 1, members
    yield "fetch_response", rename(elected), NONE, 0, 0, (), (isr_model.EPOCH, 0), None


# A scenario by its name, its file or its finding, as a path of the broker under test.
#
# Rules of this part
#
# 1. The commands are the scenario's, the generation is the one that is expected of the broker: so a release that has the fix
#    shows that, too. What the first command turns on or off is left out, and a response of a broker that does not give it.
# 2. The trace is that of the whole cluster, one broker of which is the driven one. It is what happened as long as no step of
#    that broker differs, and it is judged by what is right, not by what the release did. There is none where the path ends
#    with another value than the broker of the cluster has, or where no model has the run.


class Named(NamedTuple):
    """A scenario as one broker of it sees it, what it claims, and the trace of its cluster."""

    name: str
    claim: str
    case: BrokerCase
    trace: Trace | None
    broker: str
    unjudged: str = "the cluster's run goes another way"


ERASED_PROPOSAL = "F3"
"""It has a model of its own, and no commands."""

ROUNDED = "rounded-hw"
"""It has batches of several records, and no model has."""

KEPT_SETTINGS = ("cluster", "brokers=", "min_isr=", "max_fetch=", "clients=", "last_resort=")
"""What of a scenario's first command is not a generation's."""

BY_ITSELF = ("answer-produce", "read")
"""What a broker does or does not do: it is given nothing."""


def named_scenarios(name: str, profile: Profile, capabilities: Capabilities) -> list[Named]:
    """Return every scenario of that name, as each of its brokers under test sees it.

    Raises UsageError where there is none, or where a broker cannot be taken through it.
    """
    scenarios = list(_without_file(name, profile) or _of_files(name, profile))
    if not scenarios:
        raise UsageError(f"--scenario {name}: expected a broker that keeps its disk; seen none under test; name another")
    for scenario in scenarios:
        lacking = lacks(scenario.case, profile, capabilities)
        if lacking is not None:
            raise UsageError(
                f"--scenario {name}: expected a broker that can be given each of its steps; seen {capabilities.name}, which "
                f"does not promise `{lacking}`; name another"
            )
    return scenarios


def _without_file(name: str, profile: Profile) -> tuple[Named, ...]:
    """Return the scenario of that name among the two that have no file, as no scenario's commands can play them."""
    if name == ERASED_PROPOSAL:
        return (Named(name, ERASED_CLAIM, *erased_proposal(profile), "b1"),)
    if name == ROUNDED:
        return (Named(name, ROUNDED_CLAIM, ROUNDED_HIGH_WATERMARK, None, "b1", "it has no cluster"),)
    return ()


def _of_files(name: str, profile: Profile) -> Iterator[Named]:
    """Yield the scenario in each file of that name, once per broker under test."""
    for place in _places(name):
        scenario = read(place)
        session = _played(scenario, profile)
        for me in under_test(scenario, session):
            broker, (driven, path) = broker_name(me), seen_by(session, me)
            trace = _trace(session, place) if ends_alike(driven, session, me) else None
            yield Named(f"{place.stem}@{broker}", scenario.claim, BrokerCase(driven.opening, path), trace, broker)


def _places(name: str) -> list[File]:
    """Return the file `name`, or the shipped ones that are called so or show the finding. Raises UsageError."""
    places = files_named(name)
    if not places:
        raise UsageError(
            f"--scenario: expected F1, F2, F3, {ROUNDED}, what a scenario `shows`, or the name of its file; seen {name!r}; "
            f"the files are in {DIRECTORY}"
        )
    return places


def _played(scenario: Scenario, profile: Profile) -> Session:
    """Play a scenario by the rules of a generation. Raises UsageError where they do not let it happen."""
    player = Player()
    opening, *commands = [block.command for block in scenario.transcript.blocks]
    # As it stands, only to learn whether its profile has eligible leader replicas. These are the controller's, which is the
    # scenario's: a broker does the same with and without.
    player.run(opening)
    elr = "on" if player.session is not None and player.session.profile.elr else "off"
    options = " ".join(word for word in opening.split() if word.startswith(KEPT_SETTINGS))
    for command in (f"{options} profile={profile.name} elr={elr}", *commands):
        output = player.run(command)
        # What a broker does by itself is expected of it and no input: one that does not do it just differs.
        if output and output[0].startswith("error: ") and not command.startswith(BY_ITSELF):
            raise UsageError(
                f"{scenario.path.name}: expected a scenario that can happen under {profile.name}; seen at `{command}` "
                f"{output[0].removeprefix('error: ')}; name another, or another --profile"
            )
    if player.session is None or player.session.has_whole_controller:
        raise UsageError(
            f"{scenario.path.name}: expected a scenario of brokers; seen one of the whole controller; name another"
        )
    return player.session


def first_played(name: str, profile: Profile) -> Session:
    """Play the first scenario of that name by the rules of a generation. Raises UsageError where it cannot happen."""
    return _played(read(_places(name)[0]), profile)


def _trace(session: Session, place: File) -> Trace:
    """Return the trace of the cluster, to be judged by what is right."""
    # By the release's own profile the judge would allow what the release did wrong.
    trace = session.trace(place.stem)
    return replace(trace, config=replace(trace.config, profile=FETCH_TRUNCATION.name))


# A path as it went on the broker under test: each step, what it changed, and the judge's verdict on the run.


ALWAYS_NEW = ("result", "produced", "fetched")
"""Fields that are about one step only; the others are reported when they change."""


def shown_text(scenario: Named, reports: Sequence[Report], broker: str) -> str:
    """Return the whole report; `reports` begins with that of the opening, and ends where the broker differed."""
    lines = [
        f"{scenario.name}: {scenario.claim}",
        f"  {scenario.broker} is {broker}, broker 1 of the steps; n1, n2, .. are b1, b2, ..",
    ]
    lines += steps_text(scenario.case, reports)
    # The trace is the cluster's, with the driven broker in it only as long as no step differs.
    if len(reports) <= len(scenario.case.path):
        lines.append(
            f"  left out: {len(scenario.case.path) + 1 - len(reports)} steps, for the broker differs; the judge is not asked"
        )
    elif scenario.trace is None:
        lines.append(f"  No step differs, but {scenario.unjudged}; the judge is not asked")
    else:
        lines += ["  No step differs: this is the run of the cluster, with that broker in it.", *judged_text(scenario.trace)]
    return "\n".join([*lines, ""])


def steps_text(case: BrokerCase, reports: Sequence[Report]) -> list[str]:
    """Return a line for each step that was played, and one for what changed."""
    lines = []
    for at, (step, before, after) in enumerate(zip(case.path, reports, reports[1:], strict=False), start=1):
        lines += [f"  {at:>2}  {step_text(step)}", f"        {'; '.join(changes(before, after)) or 'nothing changes'}"]
    return lines


def changes(before: Report, after: Report) -> Iterator[str]:
    """Yield what a step changed, a text per field; of the fields about one step, what they have."""
    for field in REPORTED:
        if field not in after:
            continue
        now = after[field]
        if field in ALWAYS_NEW:
            if now:
                yield f"{field} {field_text(field, now)}"
        elif field not in before or before[field] != now:
            was = f"{field_text(field, before[field])} -> " if field in before else ""
            yield f"{field} {was}{field_text(field, now)}"


def judged_text(trace: Trace) -> list[str]:
    """Return which rules the run breaks, at which event, and what led there."""
    columns = to_columns([trace], trace.config)
    judgement = judge(columns, trace.config)
    if not judgement.failures:
        return ["the judge accepts this run: no rule is broken"]
    lines = [f"the judge rejects this run: {', '.join(failure.rule for failure in judgement.failures)}"]
    for failure in judgement.failures:
        explanation = explain(columns, trace.config, failure, [trace])
        lines.append(f"  {failure.rule:<9} at n{explanation.event.node} {explanation.event.event}: {explanation.means}")
        lines += [f"            {cause.number:>4}  {cause.says}" for cause in explanation.because]
    return lines
