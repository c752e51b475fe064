"""Scenarios as paths of one driven broker: those of conformance/scenarios, and those named after a finding.

A scenario is a file of commands that let something happen in a cluster of a model. Playing it gives a session, which has the
states and transitions (labels) of the cluster. A path has the steps of the contract for one broker of it, which is called
`me` here and numbered as in the session: 0 is b1. The broker under test plays the path, the reference says what to expect.
`before` and `after` are the states of the cluster around a transition.
"""

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
from tidegauge.impl.profiles import FETCH_TRUNCATION, OF_THE_CONTROLLER, SAFE, UNSAFE, Profile
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
# 2. In the contract a broker sends a request as soon as there is something to request, in a scenario when a command says so:
#    where the two differ the earlier request is lost and sent again. A proposal that metadata has overtaken is responded to
#    at once.
# 3. What reaches a broker that has started and read no metadata is left out: the contract has no such partition.
# 4. A scenario of another generation, of the whole controller, or in which the broker loses its disk is none for a driven
#    broker.
# 5. A broker that has repaired a bug of the scenario's generation goes another way, if the scenario goes on at all.


class ScenarioCase(NamedTuple):
    """A scenario as a broker of it sees it, named `020_forked_log_is_truncated_on_fetch@b1`.

    `state`: the broker's state at the end of the path, by the reference.
    """

    name: str
    case: BrokerCase
    state: ReferenceBroker


def cases_of(file: File, profile: Profile) -> list[ScenarioCase]:
    """Return a case for each broker that the scenario in a file is about; none if it is not of the generation `profile`."""
    scenario = read(file)
    session = played(file)
    # Rule 4 above.
    if session.has_whole_controller or not _same_generation(session.profile, profile):
        return []
    # The profile has repaired bugs of the scenario's generation (rule 5 above): play it by the rules of the profile, if it
    # can happen by those.
    if not _same_switches(session.profile, profile):
        try:
            session = _play_as(scenario, profile)
        except UsageError:
            return []
    cases = []
    for me in under_test(scenario, session):
        state, path = seen_by(session, me)
        if path:
            cases.append(ScenarioCase(f"{file.stem}@{broker_name(me)}", BrokerCase(state.opening, path), state))
    return cases


def scenario_cases(profile: Profile, capabilities: Capabilities) -> list[ScenarioCase]:
    """Return those cases of the shipped scenarios that a broker of this generation with these capabilities can be given."""
    cases = [scenario for file in shipped() for scenario in cases_of(file, profile)]
    return [scenario for scenario in cases if lacks(scenario.case, profile, capabilities) is None]


def under_test(scenario: Scenario, session: Session) -> list[int]:
    """Return the brokers that a scenario names as under test, or all if it names none; but none that loses its disk."""
    named = (b for b in range(session.brokers) if not scenario.under_test or broker_name(b) in scenario.under_test)
    return [b for b in named if ("LoseDisk", b) not in session.labels]


def played(file: File) -> Session:
    """Play the commands in a scenario's file, by the scenario's own generation; return the session at its end."""
    player = Player()
    # A block is a command with the output that it must have, which is not looked at here.
    for block in read(file).transcript.blocks:
        player.run(block.command)
    assert player.session is not None, file
    return player.session


def _same_generation(scenario_profile: Profile, profile: Profile) -> bool:
    """Return whether a scenario is for brokers of a generation: it is of the same, or of the same with more bugs."""
    repaired = [bug for switch, bug in UNSAFE.items() if not getattr(profile, switch)]
    return _same_switches(scenario_profile.without(repaired), profile)


def _same_switches(profile: Profile, other: Profile) -> bool:
    """Return whether brokers of two generations do the same: they agree in all switches but those of the controller."""
    # Both get the controller of SAFE and no name, and then are compared as a whole.
    controller = {name: getattr(SAFE, name) for name in OF_THE_CONTROLLER}
    return profile._replace(name="", **controller) == other._replace(name="", **controller)


def lacks(case: BrokerCase, profile: Profile, capabilities: Capabilities) -> str | None:
    """Return the first capability that a case needs and a broker does not have; None if it has all."""
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
    """Return (state, path): the steps that give broker `me` its part of a session, and the reference's state after them."""
    rename, start = graph_projection.renaming(me), session.states[0]
    # The other brokers are the peers 2, 3, ..
    opening = Opening(tuple(range(BROKER + 1, BROKER + session.brokers)), start.model.bounds.min_insync_replicas)
    state, path = opened(opening, session.profile), list[Step]()
    # Before the first transition the broker reads the metadata that the scenario begins with. Then `graph_inputs` has what
    # each transition gives the broker.
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
    """Return whether the broker ends its path with the same log and state that it has at the end of the session."""
    # A fetcher thread may truncate by itself, in the cluster at any later time (docs/decisions/0009): let both do it first.
    at_end, in_cluster = (truncate_alone(state.setup, broker) for broker in (state.broker, session.cluster.brokers[me]))
    return graph_projection.local(at_end) == graph_projection.local(in_cluster, graph_projection.renaming(me))


def _inputs_to(before: Cluster, label: Label, after: Cluster, me: int, rename: graph_projection.Rename) -> Iterator[Input]:
    """Yield what a transition of the cluster gives broker `me`.

    As `graph_projection.inputs_of`, but as this one transition went, not in every variant; and with what no graph has. In a
    label `f` is a follower, `expand` whether it joined the ISR.
    """
    # The first argument of a label is the broker that makes the transition; others get a message or metadata later.
    if label[1:2] != (me,):
        return
    graph_inputs = list(graph_projection.inputs_of(before, label, after, rename))
    match label:
        case ("HandleFetch", leader, f, expand):
            # The metadata cache refused the follower only if it did not join although the broker would have let it in.
            may_join = bool(expand) or ("HandleFetch", leader, f, 1) not in actions(before)
            # Of the two variants of the fetch, which differ in the last argument, take one; keep all other inputs.
            fetch, *others = (
                graph_input for graph_input in graph_inputs if graph_input.step[0] != "fetch" or graph_input.step[5] is True
            )
            yield Input((*fetch.step[:5], may_join))
            yield from others
        # These two are in no graph's inputs.
        case ("HandleDuplicate", _, f, expand, epoch, offset, last):
            yield Input(("fetch", rename(f), epoch, offset, last, bool(expand)))
        case ("LoseResponse", _, leader):
            yield Input(("lose_response", rename(leader)))
        case _:
            yield from graph_inputs


def _steps(state: ReferenceBroker, graph_input: Input) -> Iterator[Step]:
    """Yield the steps of the contract by which a broker in `state` gets an input; none if it cannot get it now."""
    # Rule 3 above: without metadata the contract has no such partition.
    has_no_metadata = state.partition_epoch == UNDEFINED or state.broker.partition.leader_epoch == UNDEFINED
    name = graph_input.step[0]
    if has_no_metadata and name not in {"metadata", *ENDS}:
        return
    if graph_input.requested:
        peer: int = graph_input.step[1]
        in_flight: Any = state.request(peer)
        # Rule 2 above: the contract's broker has sent another request, earlier than in the scenario. Lose it: the next one
        # is the scenario's.
        if in_flight is not None and requested_by(in_flight) != graph_input.requested:
            yield "lose_response", peer
    # In the scenario a request was lost that the contract's broker has not sent.
    elif name == "lose_response" and state.request(graph_input.step[1]) is None:
        return
    yield resolved(state, graph_input.step)
    # Rule 2 above: a proposal that this metadata overtakes is responded to at once.
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
# 4. The model has no election. The path goes on to one: the member that lacks the record is elected, and the former leader
#    truncates the record.


ERASED_CLAIM = (
    "Metadata that a leader has read already erases the ISR that it proposed: a record commits that a member lacks."
)
BOUNDS = IsrBounds(followers=2, max_end=1, max_partition_epoch=4, max_restarts=0)
EXCLUDED_ACTIONS = frozenset({"ShrinkIsr", "RestartEmpty"})
"""Actions that the run must not have: rule 1 above."""


def erased_proposal(profile: Profile) -> tuple[BrokerCase, Trace]:
    """Return F3 as the leader's path, and as the trace of its cluster, by the rules of a generation."""
    counterexample = _erasing_run()
    # The run ends where the record commits; the overtaken proposal still gets its response. `lacking` is the one broker that
    # violates the invariant: it is in the ISR and lacks the committed record.
    labels, (lacking,) = (*counterexample.labels, ("HandleAlterPartitionResponse",)), counterexample.violation.brokers
    # Rule 3 above: without the bump of the leader epoch.
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
    """Return the shortest run of today's Kafka after which a member of the ISR lacks a committed record."""
    start = isr_model.initial_isr_cluster(BOUNDS, FETCH_TRUNCATION)
    counterexample = isr_model.search_isr(start, _successors).first_violation(isr_model.check_isr_completeness)
    assert counterexample is not None, "the model has the run"
    return counterexample


def _successors(state: IsrCluster) -> Iterator[tuple[Label, IsrCluster]]:
    """Yield the transitions from a state of the ISR model that rules 1 and 2 above allow, with the states they lead to."""
    overtaken = state.exchange is not None and not state.leader.state.is_inflight
    for label, after in isr_model.isr_successors(state):
        # Rule 2: then only the controller's handling of the proposal, and the leader's of the response. Else rule 1.
        if label[0].startswith("HandleAlterPartition") if overtaken else label[0] not in EXCLUDED_ACTIONS:
            yield label, after


def _election(last: IsrCluster, elected: int) -> Iterator[Step]:
    """Yield the steps by which the former leader reads of the election of `elected`, which lacks the record, and follows it.

    `last`: the state of the ISR model before. The log of the elected broker is empty, so the former leader truncates to 0.
    """
    rename, registration = graph_projection.renaming(isr_model.LEADER), last.registration
    members = tuple(sorted(map(rename, registration.isr)))
    yield "metadata", rename(elected), isr_model.EPOCH + 1, registration.partition_epoch + 1, members
    # Without an error or records: a divergence, by which the leader's epoch ends at 0.
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
    """A scenario that was asked for by name, as one broker of it sees it.

    `claim`: what the scenario says happens; `trace`: of its whole cluster, None where there is none (rule 2 above);
    `broker`: which of the cluster's it is, such as b2; `unjudged`: why there is no trace.
    """

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
"""Commands for what a broker does by itself: they give it no input."""


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
    """Yield the scenario in each file of that name, once per broker under test. Raises UsageError."""
    for file in _files_called(name):
        scenario = read(file)
        session = _play_as(scenario, profile)
        for me in under_test(scenario, session):
            broker, (state, path) = broker_name(me), seen_by(session, me)
            # Where the path ends differently, the cluster's trace is not that of a run with this broker in it.
            trace = _trace(session, file) if ends_alike(state, session, me) else None
            yield Named(f"{file.stem}@{broker}", scenario.claim, BrokerCase(state.opening, path), trace, broker)


def _files_called(name: str) -> list[File]:
    """Return the file `name`, or the shipped files that are called so or show the finding `name`. Raises UsageError."""
    files = files_named(name)
    if not files:
        raise UsageError(
            f"--scenario: expected F1, F2, F3, {ROUNDED}, what a scenario `shows`, or the name of its file; seen {name!r}; "
            f"the files are in {DIRECTORY}"
        )
    return files


def _play_as(scenario: Scenario, profile: Profile) -> Session:
    """Play a scenario by the rules of another generation than its own. Raises UsageError where they do not let it happen."""
    player = Player()
    opening, *commands = [block.command for block in scenario.transcript.blocks]
    # Run its first command as it is written, only to learn whether the scenario has eligible leader replicas. That is kept:
    # it is about the controller, and brokers do the same with and without.
    player.run(opening)
    elr = "on" if player.session is not None and player.session.profile.elr else "off"
    options = " ".join(word for word in opening.split() if word.startswith(KEPT_SETTINGS))
    # The new first command starts a new session.
    for command in (f"{options} profile={profile.name} elr={elr}", *commands):
        output = player.run(command)
        # A broker of this generation may not do by itself what the scenario's does: that is no reason not to play the rest.
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
    return _play_as(read(_files_called(name)[0]), profile)


def _trace(session: Session, file: File) -> Trace:
    """Return the trace of the session's cluster, to be judged by today's protocol."""
    # By the release's own profile the judge would allow what the release did wrong.
    trace = session.trace(file.stem)
    return replace(trace, config=replace(trace.config, profile=FETCH_TRUNCATION.name))


# A path as it went on the broker under test: each step, what it changed, and the judge's verdict on the run.


ALWAYS_NEW = ("result", "produced", "fetched")
"""Fields that are about one step only; the others are reported when they change."""


def shown_text(scenario: Named, reports: Sequence[Report], broker: str) -> str:
    """Return the text about a scenario that was played on the broker under test: each step with its effect, and the verdict.

    `reports`: the broker's, first that of the opening, up to the step at which it differed from the reference. `broker`: the
    name of the broker under test.
    """
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
    """Return two lines for each step that was played: the step, and what it changed in the broker's report."""
    lines = []
    # There are reports only of the steps that were played.
    for number, (step, before, after) in enumerate(zip(case.path, reports, reports[1:], strict=False), start=1):
        lines += [f"  {number:>2}  {step_text(step)}", f"        {'; '.join(changes(before, after)) or 'nothing changes'}"]
    return lines


def changes(before: Report, after: Report) -> Iterator[str]:
    """Yield the difference between two reports, a text per field: the value before and the value after.

    Fields in ALWAYS_NEW are about the last step alone: of those, the value after, if there is one.
    """
    for field in REPORTED:
        if field not in after:
            continue
        value = after[field]
        if field in ALWAYS_NEW:
            if value:
                yield f"{field} {field_text(field, value)}"
        elif field not in before or before[field] != value:
            old_text = f"{field_text(field, before[field])} -> " if field in before else ""
            yield f"{field} {old_text}{field_text(field, value)}"


def judged_text(trace: Trace) -> list[str]:
    """Return lines about the judge's verdict on a run: which rules it breaks, at which event, and what led there."""
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
