"""What the default run sees of a broker with a bug, and what it names as not seen."""

import itertools
import random
from collections.abc import Callable, Sequence

import pytest

from tidegauge.drive.broker.contract import REPORTED, BrokerCase
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.contract import Capabilities, Report, Step, Watch
from tidegauge.drive.kafka_broker.node import CAN
from tidegauge.drive.paths.selection import cases_beside_covers
from tidegauge.drive.paths.short_paths import (
    OUT_OF_REACH,
    change_lines,
    distinguishes,
    recorded_paths,
    refusals,
    refusals_by_action,
    switch_of,
    telling_paths,
    why_unseen,
)
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.impl.profiles import SAFE, Profile
from tidegauge.impl.releases import profile_named
from validation.docs import distinguishing as page
from validation.docs.tables import page_with

KAFKA = profile_named("4.3.1")
WIRE = Capabilities("Kafka", CAN, frozenset(REPORTED))
"""An unmodified broker, also without a clock that is moved."""

NO_EFFECT = {"epoch_responses_checked", "fences_by_epoch", "fetcher_restart", "initial_offset"}
"""Switches with values that are the same where a fetch response truncates."""


@pytest.mark.parametrize("profile", [KAFKA, SAFE], ids=lambda profile: profile.name)
@pytest.mark.parametrize("capabilities", [EVERYTHING, WIRE], ids=lambda can: can.name)
def test_a_broker_with_a_bug_differs_on_its_path_or_the_bug_is_named_as_not_seen(
    profile: Profile, capabilities: Capabilities
) -> None:
    """Every suspect of a broker: played as the run plays it. The right broker differs on none."""
    right, found = reference(profile), telling_paths(profile, capabilities)
    assert play(ReferenceNode(right, capabilities), found.cases, right).differences == ()
    for suspect in right.suspects():
        case = found.by_suspect.get(suspect.name)
        if case is not None:
            assert right.can_be_given(case, capabilities)
            assert play(ReferenceNode(right.with_bugs([suspect]), capabilities), [case], right).differences, suspect.name
    for name in found.unseen:
        assert why_unseen(name) or switch_of(name) in NO_EFFECT, name
    assert set(recorded_paths()) <= {*found.by_suspect, *page_names(KAFKA), *page_names(SAFE)}


@pytest.mark.parametrize("profile", [KAFKA, SAFE], ids=lambda profile: profile.name)
def test_a_path_distinguishes_if_a_played_broker_with_the_bug_differs_on_it(profile: Profile) -> None:
    """Also where the path is not played, since it asks for nothing that the bug changes."""
    right, chosen = reference(profile), random.Random(14)
    paths = [path for path in recorded_paths().values() if right.can_be_given(path, EVERYTHING)]
    outcomes = set()
    for suspect in right.suspects():
        for path in chosen.sample(paths, 6):
            differs = bool(play(ReferenceNode(right.with_bugs([suspect]), EVERYTHING), [path], right).differences)
            assert distinguishes(path, right, suspect, EVERYTHING.reports) is differs, (suspect.name, path)
            outcomes.add(differs)
    assert outcomes == {True, False}


def page_names(profile: Profile) -> set[str]:
    return {suspect.name for suspect in reference(profile).suspects()}


@pytest.mark.parametrize("switch", ["keeps_remote_leo", "batch_epoch_filter", "fails_partitions", "truncation_lowers_hw"])
def test_what_a_cover_does_not_see_is_seen_beside_it(switch: str) -> None:
    """A repair of F2 among them: all that was measured as blind and can be told."""
    cases, lines = cases_beside_covers(WIRE, KAFKA, ())
    changed = reference(KAFKA.switched({switch: not getattr(KAFKA, switch)}))
    assert play(ReferenceNode(changed, WIRE), cases, reference(KAFKA)).differences
    unseen = next(line for line in lines if line.startswith("not seen by this run: "))
    assert f"{switch}=" not in unseen
    assert all(f"{name}=" in unseen for name in ("delay_restarts", "counts_only_eligible"))


def test_a_broker_that_can_do_little_is_told_what_its_run_does_not_see() -> None:
    """Each suspect is on a path that tells it, or named."""
    little = Capabilities("little", frozenset({"metadata", "append", "fetch"}), frozenset({"result", "leo", "hw"}))
    found = telling_paths(SAFE, little)
    assert "keeps_remote_leo=on" in found.by_suspect
    assert "applies_diverging=on" in found.unseen
    assert not found.by_suspect.keys() & set(found.unseen)


def test_a_changed_switch_is_told_from_what_it_was() -> None:
    """So that a repair is confirmed by paths that differ without it; one that no path tells is not."""
    changed = profile_named("4.3.1+keeps_remote_leo=off+counts_only_eligible=off")
    cases = telling_paths(changed, WIRE).cases
    shown, hidden = change_lines(changed, cases, WIRE.reports)
    assert shown.startswith("keeps_remote_leo=off: told from release-4.3.1 on ")
    assert not shown.startswith("keeps_remote_leo=off: told from release-4.3.1 on 0 ")
    assert hidden.startswith("counts_only_eligible=off: told from release-4.3.1 on 0 of ")
    assert change_lines(KAFKA, cases, WIRE.reports) == []


def test_refusals_have_requests_and_responses_of_every_kind() -> None:
    """Each is one that the contract allows, and most are refused."""
    cases = refusals(KAFKA, WIRE)
    right = reference(KAFKA)
    assert all(right.can_be_given(case, WIRE) for case in cases)
    errors = {
        seen["result"]["error"]
        for case in cases
        for seen in right.reports(case)
        if seen["result"] and "error" in seen["result"]
    }
    assert errors >= {0, 1, 6, 74, 75}
    steps = {case.path[-2][0] for case in cases}
    assert steps >= {"fetch", "fetch_response", "offsets_for_leader_epoch", "list_offsets", "alter_partition_response"}
    assert refusals(KAFKA, WIRE._replace(can=frozenset({"metadata"}))) == []


def test_a_refusal_is_named_by_the_step_that_is_refused() -> None:
    """Also where the broker cannot be given the last step, which shows what the refused one left behind."""
    cannot_append = WIRE._replace(can=WIRE.can - {"append"})
    shortened = refusals_by_action(KAFKA, cannot_append)
    refused = {case.path: action for action, cases in shortened.items() for case in cases}
    for action, cases in refusals_by_action(KAFKA, WIRE).items():
        for case in cases:
            # Where the last step is an append, the path ends with what is refused.
            path = case.path[:-1] if case.path[-1][0] == "append" else case.path
            assert refused.get(path, action) == action
    assert any(path[-1][0] == "list_offsets" for path in refused)


def test_a_follower_that_has_started_anew_truncates_below_its_first_segment() -> None:
    """Kafka starts anew once more there, UnifiedLog#truncateTo: no cover has it, as the log start falls."""
    right = reference(KAFKA)
    starts = [[seen["log_start"] for seen in right.reports(case)] for case in refusals(KAFKA, WIRE)]
    falls = {(before, after) for path in starts for before, after in itertools.pairwise(path) if after < before}
    assert falls == {(5, 0), (5, 4)}


class Altered(ReferenceNode[BrokerCase]):
    """The reference, whose report after each step is changed."""

    def __init__(self, change: Callable[[Step, Report], Report]) -> None:
        super().__init__(reference(SAFE))
        self.change = change

    def play(self, cases: Sequence[BrokerCase], watch: Watch) -> None:
        for number, case in enumerate(cases):
            opened, *reports = self._reference.reports(case)
            changed = map(self.change, case.path, reports)
            all(watch(number, at, report) for at, report in enumerate((opened, *changed)))


@pytest.mark.parametrize(
    "change",
    [
        # It keeps the checkpointed high watermark beyond the log that the crash has left.
        lambda step, seen: {**seen, "hw": step[1]} if step[0] == "crash" and step[1] > step[2] else seen,
        # After UNKNOWN_SERVER_ERROR it gives its proposal up and does not send it again.
        lambda step, seen: {**seen, "proposal": None} if step[:2] == ("alter_partition_response", -1) else seen,
    ],
)
def test_a_broker_that_is_wrong_where_no_model_goes_differs_on_a_refusal(change: Callable[[Step, Report], Report]) -> None:
    cases, right = refusals(SAFE, EVERYTHING), reference(SAFE)
    assert play(Altered(change), cases, right).differences
    assert play(Altered(lambda _, seen: seen), cases, right).differences == ()


def test_a_response_to_a_proposal_answers_a_producer_that_waits() -> None:
    """It moves the high watermark, Partition#handleAlterPartitionUpdate; one with an error does not."""
    right = reference(KAFKA)
    answered = {
        step[1:3]: seen["produced"]
        for case in refusals(KAFKA, WIRE)
        for before, step, seen in zip(case.path, case.path[1:], list(right.reports(case))[2:], strict=False)
        if before == ("append", -1) and step[0] == "alter_partition_response" and step[3:] in {((1,),), ((),)}
    }
    # The broker's partition epoch is 1; what was proposed and is refused leaves the ISR of before.
    assert {key for key, produced in answered.items() if produced} == {(0, 1), (0, 2)}
    assert answered[0, 2] == [[3, 0]]
    assert len(answered) > 8


def test_the_table_is_what_the_paths_show() -> None:
    """Else: python -m validation.docs.distinguishing --only-page."""
    text = page.PAGE.read_text(encoding="utf-8")
    assert page_with({"distinguishing": page.what_sees()}, page.MAKER, text) == text
    assert all(name in text for name in OUT_OF_REACH)
