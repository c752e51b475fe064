"""The reference of a broker's contract: one broker of `impl`, whose code is explored and equals the specification."""

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


# ---------------------------------------------------------------------------------------------------------------------
# Steps


def missing_capability(capabilities: Capabilities, state: ReferenceBroker, step: Step) -> str | None:
    """Return the capability that a step needs now and a broker does not have; None if it has all."""
    log = state.broker.partition.log
    return lacks(capabilities, step, log.end, log.start, broker_.lagging_members(state.setup, state.broker))


def is_possible(state: ReferenceBroker, step: Step) -> bool:
    """Return whether the contract allows a step now. Whatever makes or shortens a path asks this first."""
    name, *arguments = step
    # A proposal that metadata has overtaken is responded to before anything else: rule 5 of the contract.
    if state.overtaken and name != AlterPartitionResponseStep.name:
        return False
    return STEPS[name].is_possible(state, *arguments)


def take_step(state: ReferenceBroker, step: Step) -> tuple[ReferenceBroker, Report]:
    """Take a step that is possible; return the broker, and what it reports."""
    outcome = take_step_unread(state, step)
    return read_by_consumer(outcome.state), report(*outcome)


class StepTaken(NamedTuple):
    """The broker after a step, the response to the step's request, and those to requests that had waited."""

    state: ReferenceBroker
    result: Report | None
    produced: Produced
    fetched: Fetched


def take_step_unread(state: ReferenceBroker, step: Step) -> StepTaken:
    """Take a step; the report is not made, and no consumer reads (`read_by_consumer`)."""
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
    """Return the broker after a consumer's read: an unmodified broker is observed by reads, and they have an effect."""
    log = state.broker.partition.log
    # With batches of one record it changes nothing.
    if all(batch.base == batch.last for batch in log.batches):
        return state
    # The read finds the position of the high watermark afterwards; its response is from before (Partition#readRecords).
    located = log_.locate_high_watermark(state.setup, log)
    return state._replace(broker=state.broker._replace(partition=state.broker.partition._replace(log=located)))


def _send_proposal(state: ReferenceBroker, before: PartitionState) -> ReferenceBroker:
    """Send what the step has proposed, as AlterPartitionManager does. Partition#submitAlterPartition."""
    partition = state.broker.partition
    # One proposal is in flight at a time: what the state holds already was proposed by an earlier step.
    if partition.state == before or not partition.state.is_inflight or state.proposal is not None:
        return state
    return state._replace(proposal=partition_.alter_partition_request(partition), proposed=partition.state)


def _respond_to_appends(state: ReferenceBroker) -> tuple[ReferenceBroker, Produced]:
    """Answer the waiting appends that are complete. DelayedProduce#tryComplete, after whatever may have completed one."""
    if not state.waiting:
        return state, ()
    left, produced = [], []
    for waiting in state.waiting:
        reached, error = partition_.check_enough_replicas_reach_offset(state.setup, state.broker.partition, waiting.end)
        if reached or error != NONE:
            produced.append((waiting.base, error))
        else:
            left.append(waiting)
    return state._replace(waiting=tuple(left)), tuple(produced)


def _send_fetcher_request(state: ReferenceBroker) -> ReferenceBroker:
    """Truncate and send what the fetcher thread has to, unless it waits for a response."""
    # A request leaves as soon as nothing else is in flight to that peer; one to another peer stays where it is.
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
    """The expected behaviour of a broker of a generation; with wrong rules or a wrong step, that of a broker with a bug."""

    everything, called, unexplained = EVERYTHING, "broker", "no known bug"
    tries_pairs, plays_one_at_a_time = False, False

    profile: Profile = FETCH_TRUNCATION
    rules: Rules | None = None
    wrong_step: WrongStep | None = None
    applied: Count | None = None
    """How often each rule was applied, where that is counted."""

    def opened(self, opening: Opening) -> ReferenceBroker:
        """See Reference."""
        return opened(opening, self.profile, self.rules, self.wrong_step)

    def report(self, state: ReferenceBroker) -> Report:
        """See Reference."""
        return report(state)

    def take(self, state: ReferenceBroker, step: Step) -> tuple[ReferenceBroker, Report]:
        """See Reference."""
        try:
            return take_step(state, step) if is_possible(state, step) else (state, IMPOSSIBLE)
        # Where Kafka's code throws, the contract expects nothing.
        except TidegaugeError:
            return state, IMPOSSIBLE

    def take_or_refuse(self, state: ReferenceBroker, step: Step) -> tuple[ReferenceBroker, Report]:
        """See Reference: such a step changes nothing, a request gets an error."""
        after, seen = self.take(state, step)
        if seen is not IMPOSSIBLE:
            return after, seen
        # A step that is no request has no result in which an error could be.
        return after, report(state, {"error": UNKNOWN_SERVER_ERROR} if STEPS[step[0]].result else None)

    def can_be_given(self, case: BrokerCase, capabilities: Capabilities) -> bool:
        """See Reference."""
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
        """See Reference."""
        return differences(expected, seen, reported)

    def suspects(self) -> Iterator[Suspect]:
        """See Reference."""
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
        """See Reference."""
        for profile in PROFILES.values():
            # Eligible leader replicas are the controller's: a broker does the same with and without.
            if profile.name != self.profile.name and (profile == SAFE or not profile.elr):
                yield replace(self, profile=profile)

    def with_fault(self, name: str) -> Self:
        """See Reference."""
        bug = bug_named(name)
        return replace(self, profile=self.profile.switched(bug.switches), rules=bug.rules, wrong_step=bug.wrong_step)

    def findings(self) -> Sequence[Finding]:
        """See Reference."""
        return broker_findings()

    def is_same_kind(self, difference: Difference[BrokerCase], again: Difference[BrokerCase]) -> bool:
        """See Reference: at a kind of step a broker with a bug may differ in other fields when less went before."""
        return difference.after == again.after

    def opening_text(self, opening: Opening) -> str:
        """See Reference."""
        members = ",".join(map(str, (1, *opening.peers)))
        return f"replicas {members}, broker 1 under test; min.insync.replicas {opening.min_insync_replicas}"

    def step_text(self, step: Step) -> str:
        """See Reference."""
        return step_text(step)

    def step_sentence(self, step: Step) -> str | None:
        """See Reference."""
        action = actions().get(action_of(step))
        return None if action is None else f"{action.name}: {action.sentence} {action.kafka}"

    def side_by_side(
        self, difference: Difference[BrokerCase], reported: frozenset[str], names: tuple[str, str]
    ) -> Iterator[str]:
        """See Reference: every field, those that differ marked."""
        texts = {field: field_text(field, value) for field, value in difference.expected.items() if field in reported}
        width = min(WIDEST, max(map(len, (names[0], *texts.values()))))
        yield f"      {'':<10}{names[0]:<{width}}  {names[1]}"
        for field, text in texts.items():
            mark = "!" if field in difference.fields else " "
            yield f"    {mark} {field:<10}{text:<{width}}  {field_text(field, difference.seen.get(field))}"

    def decision_texts(self, difference: Difference[BrokerCase]) -> Sequence[str]:
        """See Reference."""
        return [str(decision) for decision in decisions(difference, self.profile)]

    def observed(self) -> Self:
        """See Reference: rules that are counted."""
        count: Count = Counter()
        return replace(self, rules=counting(count), applied=count)

    def notes(self, cases: Sequence[BrokerCase], differences: Sequence[Difference[BrokerCase]]) -> list[str]:
        """See Reference: the rules that were applied."""
        del cases, differences
        return coverage_lines(self.applied or Counter())


def reference(
    profile: Profile = FETCH_TRUNCATION, rules: Rules | None = None, wrong_step: WrongStep | None = None
) -> BrokerReference:
    """Return what a broker of this generation does; with wrong rules or a wrong step, what one with a bug does."""
    return BrokerReference(profile, rules, wrong_step)


def reference_with(bug: DrivenBug) -> BrokerReference:
    """Return what a broker with a known bug does."""
    return BrokerReference(bug.profile, bug.rules, bug.wrong_step)


def differences(expected: Report, seen: Report, reported: frozenset[str]) -> tuple[str, ...]:
    """Return the reported fields in which the two differ, in the order of the contract."""
    if expected == seen:
        return ()
    # The contract has no such step: there are no fields to compare.
    if expected is IMPOSSIBLE:
        return ("step",)
    known = reported & seen.keys()
    return tuple(field for field in expected if field in known and not _agrees(expected[field], seen[field], field))


def _agrees(expected: Any, seen: Any, field: str = "") -> bool:
    """Return whether a value is what the reference expects of it; `field` is empty for one inside another."""
    if isinstance(expected, dict) and isinstance(seen, dict):
        # A request that is expected of no peer, or of another, is a difference of its own.
        if field in BY_PEER and expected.keys() != seen.keys():
            return False
        # A broker may report more than the reference inside a field, not less.
        return all(key in seen and _agrees(value, seen[key]) for key, value in expected.items())
    return bool(expected == seen)


def decisions(difference: Difference[BrokerCase], profile: Profile) -> list[Decision]:
    """Return what the reference decided at the step that differs."""
    recorded: list[Decision] = []
    state = opened(difference.case.opening, profile, recording_rules(recorded))
    for step in difference.case.path[: difference.at]:
        # Only the decisions of the last step are wanted; the steps before lead to its state.
        recorded.clear()
        if is_possible(state, step):
            state = take_step_unread(state, step).state
    # Where an epoch ends is decided when the cache is asked, not in the step. It comes first: a cache that the step has left
    # as it should would show nothing else.
    in_step, recorded[:] = [*recorded], []
    if "ends" in difference.fields:
        differing = zip(difference.expected["ends"], _listed(difference.seen.get("ends")), strict=False)
        for epoch, (expected, seen) in enumerate(differing):
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
    """Return the rules that decide at the step that differs, and decide a field that differs if a field shows them."""
    right = SHOWN_BY_FIELDS - {family for name in difference.fields for family in FAMILIES.get(name, ())}
    return {name for made in decisions(difference, profile) for name in made.ids if family_of(name) not in right}


def _listed(value: Any) -> Sequence[Any]:
    """Return what a driven program has reported where a list is expected."""
    return value if isinstance(value, list | tuple) else ()


def broker_suspects(profile: Profile) -> Iterator[Suspect]:
    """Yield every known bug that a broker of this generation should not have: the switches of a profile, which are what a
    release of Kafka did, then wrong rules and wrong steps.
    """
    for name, since in SINCE.items():  # the values of a switch, each with its first release
        now = getattr(profile, name)
        for value in dict.fromkeys(value for _, value in since):
            if value != now:
                # A report quotes the sentence of the bug that is named in brackets, as it does for a fault.
                named = f" ({UNSAFE[name]})" if name in UNSAFE else ""
                yield Suspect(f"{name}={switch_text(value)}", _releases(since, value) + named, {name: value})
        # A broker may also be wrong in a way that no release was.
        if isinstance(now, bool) and not any(value != now for _, value in since):
            yield Suspect(f"{name}={switch_text(not now)}", "as no release did", {name: not now})
    right = Rules()
    for bug in BUGS.values():
        # Bugs that are switches are among those above.
        if not bug.switches:
            rules = {name: rule for name, rule in bug.rules._asdict().items() if rule is not getattr(right, name)}
            yield Suspect(bug.name, bug.says, {}, rules, bug.wrong_step)


def _releases(since: tuple[tuple[tuple[int, ...], bool | str], ...], value: bool | str) -> str:
    """Return in words which releases had a switch at `value`. `since`: (first release, value from then on), in order."""
    spans = []
    for at, (first, had) in enumerate(since):
        if had == value:
            until = since[at + 1][0] if at + 1 < len(since) else None
            begins = f"from {'.'.join(map(str, first))} on" if first != (0,) else ""
            ends = f"before {'.'.join(map(str, until))}" if until else ""
            spans.append(" ".join(filter(None, (begins, ends))))
    return f"as Kafka did {', and '.join(spans)}".rstrip()


def step_text(step: Step) -> str:
    """Return a step on one line, without arguments that are None or empty."""
    name, *arguments = step
    named = zip(STEPS[name].takes, arguments, strict=True)
    return " ".join((name, *(f"{field}={value_text(value)}" for field, value in named if value not in (None, ()))))


def field_text(field: str, value: Any) -> str:
    """Return a field of a report on one line."""
    if field in BY_PEER and isinstance(value, dict):
        return "; ".join(f"to {peer}: {value_text(inner)}" for peer, inner in value.items()) or "none"
    return value_text(value)
