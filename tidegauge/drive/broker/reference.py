"""The reference of a broker's contract: one broker of `impl`, whose code is explored and equals the specification.

A step is a tuple of its name and its arguments; its class in `STEPS` says what it does. A case is an opening and a path of
steps; a report has a value by field. `reported` are the fields that the node under test reports. A wrong step is a function
that changes what the right broker has made of a step: a bug that is in no rule and no switch. A decision is a rule that was
applied, with its arguments and its result. A switch is a choice in which releases of Kafka differ (impl/profiles.py); UNSAFE
names the bug of each switch that is wrong in today's Kafka, and SAFE is the profile of brokers that are not Kafka.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from tidegauge.conformance.judge.rulebook import actions
from tidegauge.drive.broker.applied_rules import Count, Decision, counting, coverage_lines, recording_rules
from tidegauge.drive.broker.contract import BY_PEER, BrokerCase, Opening
from tidegauge.drive.broker.known_bugs import BUGS, DrivenBug, broker_findings, bug_named
from tidegauge.drive.broker.peer_fetches import answered_in_sessions, completed
from tidegauge.drive.broker.state import Fetched, Produced, ReferenceBroker, WrongStep, opened, report
from tidegauge.drive.broker.steps import EVERYTHING, STEPS, AlterPartitionResponseStep, action_of, lacks
from tidegauge.drive.contract import Capabilities, Report, Step
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.reference_interface import Finding, Reference, Suspect
from tidegauge.drive.runner.report import value_text
from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.errors import UNKNOWN_SERVER_ERROR
from tidegauge.impl.messages import FetchRequest
from tidegauge.impl.profiles import FETCH_TRUNCATION, PROFILES, SAFE, UNSAFE, Profile, Rules, switch_text
from tidegauge.impl.releases import SINCE
from tidegauge.impl.replica import partition as partition_
from tidegauge.impl.replica.partition_state import PartitionState
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.storage import log as log_
from tidegauge.util.errors import TidegaugeError

IMPOSSIBLE: Report = {"step": "impossible"}
"""What is expected of a step that a broker of this generation cannot be given."""

WIDEST = 100
"""The widest a column of expected values may be, in characters."""


# ---------------------------------------------------------------------------------------------------------------------
# Steps


def missing_capability(capabilities: Capabilities, state: ReferenceBroker, step: Step) -> str | None:
    """Return the capability that a step needs in this state and a broker does not have; None if it has all."""
    log = state.broker.partition.log
    return lacks(capabilities, step, log.end, log.start, broker_.lagging_members(state.setup, state.broker))


def is_possible(state: ReferenceBroker, step: Step) -> bool:
    """Return whether the contract allows a step in this state. It must be asked before the step is taken."""
    name, *arguments = step
    # A proposal that metadata has overtaken is responded to before anything else: rule 5 of the contract.
    if state.overtaken and name != AlterPartitionResponseStep.name:
        return False
    return STEPS[name].is_possible(state, *arguments)


def take_step(state: ReferenceBroker, step: Step) -> tuple[ReferenceBroker, Report]:
    """Take a step that is possible; return the broker after it, and its report."""
    outcome = take_step_unread(state, step)
    # The report is from before the read's effect (see `read_by_consumer`).
    return read_by_consumer(outcome.state), report(*outcome)


class StepTaken(NamedTuple):
    """The broker after a step, the response to the step's request (None if there is none), those to requests that waited.

    `produced`: to appends; `fetched`: to fetches of peers.
    """

    state: ReferenceBroker
    result: Report | None
    produced: Produced
    fetched: Fetched


def take_step_unread(state: ReferenceBroker, step: Step) -> StepTaken:
    """Take a step that is possible, and all that follows from it in the broker; make no report, and let no consumer read."""
    name, *arguments = step
    before = state.broker.partition
    after, result = STEPS[name].apply(state, *arguments)
    if state.wrong_step is not None:
        after, result = state.wrong_step(state, step, after, result)
    after, produced = _respond_to_appends(_send_proposal(after, before.state))
    after, fetched = answered_in_sessions(*completed(before, after))
    # The fetcher thread comes last: its request has the log that the step has left.
    return StepTaken(_send_fetcher_request(after), result, produced, fetched)


def read_by_consumer(state: ReferenceBroker) -> ReferenceBroker:
    """Return the broker after a consumer's read.

    An unmodified broker is observed by reads after each step. Such a read can lower a high watermark inside a batch to the
    base of the batch.
    """
    log = state.broker.partition.log
    # With batches of one record no high watermark is inside one.
    if all(batch.base == batch.last for batch in log.batches):
        return state
    # The read looks up the position of the high watermark after it has its response (Partition#readRecords).
    located = log_.locate_high_watermark(state.setup, log)
    return state._replace(broker=state.broker._replace(partition=state.broker.partition._replace(log=located)))


def _send_proposal(state: ReferenceBroker, before: PartitionState) -> ReferenceBroker:
    """Send the ISR that the step has proposed, if it has, as AlterPartitionManager does. Partition#submitAlterPartition.

    `before`: the partition's state before the step, which differs if the step has proposed something.
    """
    partition = state.broker.partition
    # One proposal is in flight at a time: what the state holds already was proposed by an earlier step.
    if partition.state == before or not partition.state.is_inflight or state.proposal is not None:
        return state
    return state._replace(proposal=partition_.alter_partition_request(partition), proposed=partition.state)


def _respond_to_appends(state: ReferenceBroker) -> tuple[ReferenceBroker, Produced]:
    """Answer the waiting appends that are complete or fail; return the base offset and the error of each.

    DelayedProduce#tryComplete. It is called after every step: any may have completed one.
    """
    if not state.waiting:
        return state, ()
    still_waiting, produced = [], []
    for append in state.waiting:
        reached, error = partition_.check_enough_replicas_reach_offset(state.setup, state.broker.partition, append.end)
        if reached or error != NONE:
            produced.append((append.base, error))
        else:
            still_waiting.append(append)
    return state._replace(waiting=tuple(still_waiting)), tuple(produced)


def _send_fetcher_request(state: ReferenceBroker) -> ReferenceBroker:
    """Do one loop of the fetcher thread: truncate what needs no response, and send the next request to the leader.

    Nothing is done without a leader to fetch from, or while a request to it is in flight. One to another peer stays there.
    """
    if state.broker.source == UNDEFINED or state.request(state.broker.source) is not None:
        return state
    broker = broker_.truncate_alone(state.setup, state.broker)
    state = state._replace(broker=broker)
    request = broker_.next_request(state.setup, broker)
    if request is None:
        return state
    # The model's requests have no log start, which only the contract reports.
    if isinstance(request, FetchRequest):
        request = request._replace(log_start=broker.partition.log.start)
    return state._replace(requests=tuple(sorted((*state.requests, (broker.source, request)))))


# ---------------------------------------------------------------------------------------------------------------------
# For the runner


@dataclass(frozen=True)
class BrokerReference(Reference[BrokerCase, ReferenceBroker]):
    """The expected behaviour of a broker of a generation; with wrong rules or a wrong step, that of a broker with a bug.

    The methods are described in `Reference`; None for `rules` means the right ones.
    """

    everything, called, unexplained = EVERYTHING, "broker", "no known bug"
    tries_pairs, plays_one_at_a_time = False, False

    profile: Profile = FETCH_TRUNCATION
    rules: Rules | None = None
    wrong_step: WrongStep | None = None
    applied: Count | None = None
    """How often each rule was applied, where that is counted."""

    def opened(self, opening: Opening) -> ReferenceBroker:
        """Return an empty replica of a broker that has read no metadata."""
        return opened(opening, self.profile, self.rules, self.wrong_step)

    def report(self, state: ReferenceBroker) -> Report:
        """Return what is reported after the opening."""
        return report(state)

    def take(self, state: ReferenceBroker, step: Step) -> tuple[ReferenceBroker, Report]:
        """Return the broker after a step, and its report: IMPOSSIBLE, and the same broker, if the step cannot be taken."""
        try:
            return take_step(state, step) if is_possible(state, step) else (state, IMPOSSIBLE)
        # Where Kafka's code throws, the contract expects nothing.
        except TidegaugeError:
            return state, IMPOSSIBLE

    def take_or_refuse(self, state: ReferenceBroker, step: Step) -> tuple[ReferenceBroker, Report]:
        """Return the broker after a step, and what a node with these rules reports.

        A step that cannot be taken changes nothing; if it is a request, it gets an error.
        """
        after, seen = self.take(state, step)
        if seen is not IMPOSSIBLE:
            return after, seen
        # A step that is no request has no result in which an error could be.
        return after, report(state, {"error": UNKNOWN_SERVER_ERROR} if STEPS[step[0]].result else None)

    def can_be_given(self, case: BrokerCase, capabilities: Capabilities) -> bool:
        """Return whether each step of a case is possible, and a broker with these capabilities can take it."""
        state = self.opened(case.opening)
        for step in case.path:
            if not is_possible(state, step) or missing_capability(capabilities, state, step) is not None:
                return False
            # Where Kafka's code throws, the contract expects nothing.
            try:
                state, _ = take_step(state, step)
            except TidegaugeError:
                return False
        return True

    def differences(self, expected: Report, seen: Report, reported: frozenset[str]) -> tuple[str, ...]:
        """Return the fields in which two reports differ, in the order of the contract."""
        return differences(expected, seen, reported)

    def suspects(self) -> Iterator[Suspect]:
        """Yield every known bug that a broker of this generation should not have."""
        yield from broker_suspects(self.profile)

    def with_bugs(self, suspects: Iterable[Suspect]) -> Self:
        """Return the reference with these suspected bugs put in: their switches, wrong rules and wrong step."""
        switches: dict[str, bool | str] = {}
        rules: dict[str, Callable[..., Any]] = {}
        wrong_step = self.wrong_step
        for suspect in suspects:
            switches |= suspect.switches
            rules |= suspect.rules
            wrong_step = suspect.wrong_step or wrong_step
        changed = (self.rules or Rules())._replace(**rules)
        return replace(self, profile=self.profile.switched(switches), rules=changed, wrong_step=wrong_step)

    def other_generations(self) -> Iterator[Self]:
        """Yield the references of the other profiles that a broker may conform to."""
        for profile in PROFILES.values():
            # Eligible leader replicas are the controller's: a broker does the same with and without, so of two profiles the
            # one without stands for both. SAFE has them, but no other profile is the same without.
            if profile.name != self.profile.name and (profile == SAFE or not profile.elr):
                yield replace(self, profile=profile)

    def with_fault(self, name: str) -> Self:
        """Return this reference with the known bug of that name. Raises UsageError if there is none."""
        bug = bug_named(name)
        return replace(self, profile=self.profile.switched(bug.switches), rules=bug.rules, wrong_step=bug.wrong_step)

    def findings(self) -> Sequence[Finding]:
        """Return everything that some release does and a repaired broker does not."""
        return broker_findings()

    def is_same_kind(self, difference: Difference[BrokerCase], again: Difference[BrokerCase]) -> bool:
        """Return whether two differences come after steps of the same name.

        Their fields do not matter: after fewer steps the same bug may show in others.
        """
        return difference.after == again.after

    def opening_text(self, opening: Opening) -> str:
        """Return an opening on one line: the replicas, and min.insync.replicas."""
        replicas = ",".join(map(str, (1, *opening.peers)))
        return f"replicas {replicas}, broker 1 under test; min.insync.replicas {opening.min_insync_replicas}"

    def step_text(self, step: Step) -> str:
        """Return a step on one line."""
        return step_text(step)

    def step_sentence(self, step: Step) -> str | None:
        """Return the step's action of the catalog: name, sentence, method of Kafka; None if it has none."""
        action = actions().get(action_of(step))
        return None if action is None else f"{action.name}: {action.sentence} {action.kafka}"

    def side_by_side(
        self, difference: Difference[BrokerCase], reported: frozenset[str], names: tuple[str, str]
    ) -> Iterator[str]:
        """Yield a line for each reported field: expected and seen value below their headings, with a ! if they differ."""
        texts = {field: field_text(field, value) for field, value in difference.expected.items() if field in reported}
        width = min(WIDEST, max(map(len, (names[0], *texts.values()))))
        yield f"      {'':<10}{names[0]:<{width}}  {names[1]}"
        for field, text in texts.items():
            mark = "!" if field in difference.fields else " "
            yield f"    {mark} {field:<10}{text:<{width}}  {field_text(field, difference.seen.get(field))}"

    def decision_texts(self, difference: Difference[BrokerCase]) -> Sequence[str]:
        """Return a text for each rule that was applied at the step that differs."""
        return [str(decision) for decision in decisions(difference, self.profile)]

    def observed(self) -> Self:
        """Return a copy with the right rules, which counts in `applied` how often it applies each (for `notes`)."""
        count: Count = Counter()
        return replace(self, rules=counting(count), applied=count)

    def notes(self, cases: Sequence[BrokerCase], differences: Sequence[Difference[BrokerCase]]) -> list[str]:
        """Return lines that say which rules were applied; those of a copy that `observed` has made."""
        del cases, differences
        return coverage_lines(self.applied or Counter())


def reference(
    profile: Profile = FETCH_TRUNCATION, rules: Rules | None = None, wrong_step: WrongStep | None = None
) -> BrokerReference:
    """Return the reference of a profile; with wrong rules or a wrong step, one that behaves as a broker with a bug."""
    return BrokerReference(profile, rules, wrong_step)


def reference_with(bug: DrivenBug) -> BrokerReference:
    """Return the reference that behaves as a broker with a known bug."""
    return BrokerReference(bug.profile, bug.rules, bug.wrong_step)


def differences(expected: Report, seen: Report, reported: frozenset[str]) -> tuple[str, ...]:
    """Return the fields in which two reports differ, in the order of the contract; () if none, ("step",) for IMPOSSIBLE.

    Compared are the fields of `expected` that are in `reported`; one that is absent from `seen` is not known.
    """
    if expected == seen:
        return ()
    # The contract has no such step: there are no fields to compare.
    if expected is IMPOSSIBLE:
        return ("step",)
    known = reported & seen.keys()
    return tuple(field for field in expected if field in known and not _agrees(expected[field], seen[field], field))


def _agrees(expected: Any, seen: Any, field: str = "") -> bool:
    """Return whether a value that was seen is as expected. `field` is the report's field, "" for a value inside another."""
    if isinstance(expected, dict) and isinstance(seen, dict):
        # A request to a peer that gets none is a difference: of these fields the keys are compared, too.
        if field in BY_PEER and expected.keys() != seen.keys():
            return False
        # A broker may report more than the reference inside a field, not less.
        return all(key in seen and _agrees(value, seen[key]) for key, value in expected.items())
    return bool(expected == seen)


def decisions(difference: Difference[BrokerCase], profile: Profile) -> list[Decision]:
    """Return the rules that the reference applied at the step that differs; before them those that computed its "ends"."""
    recorded: list[Decision] = []
    state = opened(difference.case.opening, profile, recording_rules(recorded))
    for step in difference.case.path[: difference.at]:
        # Only the decisions of the last step are wanted; the steps before lead to its state.
        recorded.clear()
        if is_possible(state, step):
            state = take_step_unread(state, step).state
    # The field "ends" is computed when it is reported, from the epoch cache, not in the step. So where it differs, the rules
    # that compute it are applied here once more to be recorded. They come first: the step may have left the cache as it
    # should, and then only they explain the difference.
    # `recorded` is emptied in place: the rules of `state` go on to record into it.
    in_step, recorded[:] = [*recorded], []
    if "ends" in difference.fields:
        both_ends = zip(difference.expected["ends"], _listed(difference.seen.get("ends")), strict=False)
        for epoch, (expected, seen) in enumerate(both_ends):
            if expected != seen:
                log_.end_offset_for_epoch(state.setup, state.broker.partition.log, epoch)
    return [*recorded, *in_step]


FAMILIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "result": ("FENCE", "FETCH", "EPOCH"),
        "requests": ("FENCE", "FETCH", "TRUNC", "OOR"),
        "proposal": ("ISR",),
        "produced": ("ACK", "APPEND"),
        "fetched": ("FETCH",),
        "leo": ("APPEND", "TRUNC", "OOR"),
        "hw": ("HW",),
        "log_start": ("LOG", "OOR"),
        "ends": ("EPOCH", "TRUNC"),
    }
)
"""By reported field: the families of rules that decide its value."""
SHOWN_BY_FIELDS = {family for families in FAMILIES.values() for family in families}


def family_of(rule: str) -> str:
    """Return the family of a rule of the catalog: HW of HW-06."""
    return rule.partition("-")[0]


def blamed(difference: Difference[BrokerCase], profile: Profile) -> set[str]:
    """Return the ids of the rules that may be broken, where the reference and the node differ.

    These are the rules that the reference applied at the step that differs, without those of a family that decides fields
    of which none differs.
    """
    innocent = SHOWN_BY_FIELDS - {family for field in difference.fields for family in FAMILIES.get(field, ())}
    applied = decisions(difference, profile)
    return {rule for decision in applied for rule in decision.ids if family_of(rule) not in innocent}


def _listed(value: Any) -> Sequence[Any]:
    """Return a value that a driven program has reported where a list is expected: () if it is no list."""
    return value if isinstance(value, list | tuple) else ()


def broker_suspects(profile: Profile) -> Iterator[Suspect]:
    """Yield every known bug that a broker of this generation should not have: the switches of a profile, which are what a
    release of Kafka did, then wrong rules and wrong steps.
    """
    # `since`: pairs of a first release and the value of the switch from then on.
    for name, since in SINCE.items():
        now = getattr(profile, name)
        for value in dict.fromkeys(value for _, value in since):
            if value != now:
                # A report quotes the sentence of the bug that is named in brackets, as it does for a fault.
                bug_name = f" ({UNSAFE[name]})" if name in UNSAFE else ""
                yield Suspect(f"{name}={switch_text(value)}", _releases(since, value) + bug_name, {name: value})
        # A broker may also be wrong in a way that no release was.
        if isinstance(now, bool) and not any(value != now for _, value in since):
            yield Suspect(f"{name}={switch_text(not now)}", "as no release did", {name: not now})
    right = Rules()
    for bug in BUGS.values():
        # Bugs that are switches are among those above.
        if not bug.switches:
            # Only the wrong rules of the bug, by name: so two bugs can be put in together.
            rules = {name: rule for name, rule in bug.rules._asdict().items() if rule is not getattr(right, name)}
            yield Suspect(bug.name, bug.says, {}, rules, bug.wrong_step)


def _releases(since: tuple[tuple[tuple[int, ...], bool | str], ...], value: bool | str) -> str:
    """Return in words which releases had a switch at `value`. `since`: (first release, value from then on), in order.

    The release (0,) stands for the very first one.
    """
    spans = []
    for at, (first, since_value) in enumerate(since):
        if since_value == value:
            # The span ends with the next row of the table; the last one goes on.
            until = since[at + 1][0] if at + 1 < len(since) else None
            begins = f"from {'.'.join(map(str, first))} on" if first != (0,) else ""
            ends = f"before {'.'.join(map(str, until))}" if until else ""
            spans.append(" ".join(filter(None, (begins, ends))))
    return f"as Kafka did {', and '.join(spans)}".rstrip()


def step_text(step: Step) -> str:
    """Return a step on one line, "name argument=value ...", without arguments that are None or empty."""
    name, *arguments = step
    by_name = zip(STEPS[name].takes, arguments, strict=True)
    return " ".join((name, *(f"{argument}={value_text(value)}" for argument, value in by_name if value not in (None, ()))))


def field_text(field: str, value: Any) -> str:
    """Return the value of a report's field on one line; those by peer as "to 2: ..."."""
    if field in BY_PEER and isinstance(value, dict):
        return "; ".join(f"to {peer}: {value_text(inner)}" for peer, inner in value.items()) or "none"
    return value_text(value)
