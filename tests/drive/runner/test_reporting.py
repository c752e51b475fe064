"""What differs is shrunk to a few steps, told side by side, and named by the bugs that do the same."""

from collections.abc import Sequence
from typing import Any

import pytest

from tidegauge.drive.broker.contract import BrokerCase, Opening
from tidegauge.drive.broker.reference import broker_suspects, decisions, reference, step_text
from tidegauge.drive.broker.steps import EVERYTHING, lacks
from tidegauge.drive.contract import Capabilities, CaseError, Watch, errors_of_case
from tidegauge.drive.paths.graphs import GRAPHS, cover_of
from tidegauge.drive.paths.walks import walks
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.reference_interface import Reference
from tidegauge.drive.runner.report import explain_most, explanations, story, value_text
from tidegauge.drive.runner.run import run, shrunk, text_of
from tidegauge.drive.wire.compiler import WireError
from tidegauge.impl import rules as rules_
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.profiles import FETCH_TRUNCATION, REPAIRED, Rules
from tidegauge.impl.releases import profile_named
from tidegauge.impl.rules import UNDEFINED, Ints
from tidegauge.util.errors import FAILS

CASES = [
    *cover_of("small", FETCH_TRUNCATION).cases,
    *walks(1, 240, FETCH_TRUNCATION),
]


def test_a_release_is_explained_by_its_switch() -> None:
    """KAFKA-14704, which the model's own diverging responses would hide: they have no high watermark."""
    today = FETCH_TRUNCATION._replace(name="old", applies_diverging=True)
    cases = walks(1, 60, FETCH_TRUNCATION)
    found = run(ReferenceNode(reference(today)), cases, reference(FETCH_TRUNCATION))
    assert "same as   applies_diverging=on: as Kafka did from 2.8 on before 3.4.1" in text_of(found)


class NodeThatGivesUp(ReferenceNode[BrokerCase]):
    """A node that plays so many cases, and gives up at the second step of the next one."""

    def __init__(self, played_as: Reference[BrokerCase, Any], after: int) -> None:
        super().__init__(played_as)
        self.after = after

    def play(self, cases: Sequence[BrokerCase], watch: Watch) -> None:
        super().play(cases[: self.after], watch)
        opened, first = list(self._reference.reports(cases[self.after]))[:2]
        watch(self.after, 0, opened)
        watch(self.after, 1, first)
        with errors_of_case(self.after):
            raise WireError("the broker: expected its process to run; seen exit code 1")


def test_what_differed_before_a_broker_gave_up_is_a_verdict() -> None:
    old = reference(FETCH_TRUNCATION._replace(name="old", applies_diverging=True))
    found = run(NodeThatGivesUp(old, 50), walks(1, 60, FETCH_TRUNCATION), reference(FETCH_TRUNCATION))
    assert found.exit_code == FAILS
    assert found.played.cases == 51
    text = text_of(found)
    assert "same as   applies_diverging=on" in text
    assert "no more paths were played, and none was made shorter: the broker: expected its process to run" in text


def test_a_broker_that_gives_up_before_anything_differs_is_told_with_its_path() -> None:
    cases = walks(1, 3, FETCH_TRUNCATION)
    with pytest.raises(CaseError) as raised:
        run(NodeThatGivesUp(reference(FETCH_TRUNCATION), 2), cases, reference(FETCH_TRUNCATION))
    head, path, opening, *steps = str(raised.value).splitlines()
    assert (head, path) == ("the broker: expected its process to run; seen exit code 1", "on this path:")
    assert opening.strip() == reference(FETCH_TRUNCATION).opening_text(cases[2].opening)
    assert steps == [f"  {at:>2}  {step_text(step)}" for at, step in enumerate(cases[2].path[:2], start=1)]


def test_two_bugs_at_once_are_found_together() -> None:
    """Neither alone does what the broker does."""
    both = FAULTS["hw-not-clamped"].rules._replace(
        truncate_from_end_keeps=FAULTS["entry-at-the-truncation-stays"].rules.truncate_from_end_keeps
    )
    path = (
        ("metadata", 2, 1, 0, (1, 2)),
        ("fetch_response", 2, 0, 0, 0, ((0, 0, 0), (1, 1, 1)), None, None),
        ("fetch_response", 2, 0, 9, 0, (), (0, 1), None),
    )
    case = BrokerCase(Opening(), path)
    node = ReferenceNode(reference(rules=both))
    assert [one.at for one in play(node, [case], reference()).differences] == [3]
    (found,) = play(node, [case], reference()).differences
    assert ("entry-at-the-truncation-stays",) in [
        tuple(bug.name for bug in bugs) for bugs in explanations(found, reference(), EVERYTHING.reports)
    ]
    seen = {**found.seen, "hw": 5}
    assert explanations(found._replace(seen=seen), reference(), EVERYTHING.reports) == []


def test_finding_f2_is_a_switch() -> None:
    """A leader that misses an epoch keeps the log ends it recorded: today's Kafka against the profile that mends it."""
    path = (
        ("metadata", 1, 0, 0, (1, 2, 3)),
        ("append", 1),
        ("fetch", 2, 0, 1, 0, True),
        ("metadata", 1, 2, 1, (1, 2)),
    )
    found = run(ReferenceNode(reference()), [BrokerCase(Opening((2, 3)), path)], reference(REPAIRED))
    assert found.failures[0].shown.fields == ("hw",)
    assert "same as   keeps_remote_leo=on" in text_of(found)


def test_what_was_decided_is_heard_with_kafkas_method() -> None:
    path = (("metadata", 1, 0, 0, (1, 2)), ("append", 1), ("fetch", 2, 0, 1, 0, True))
    (found,) = play(
        ReferenceNode(reference(rules=FAULTS["hw-may-fall"].rules)), [BrokerCase(Opening(), path)], reference()
    ).differences
    heard = {one.rule: one for one in decisions(found._replace(at=3), FETCH_TRUNCATION)}
    assert heard["fetch_decision"].kafka == "Partition#readRecords"
    assert heard["leader_high_watermark"].result == 1
    assert "HW-02" in heard["leader_high_watermark"].ids


class Moody:
    """A broker that reports a wrong log end the first time."""

    capabilities = EVERYTHING

    def __init__(self) -> None:
        self._right, self._times = ReferenceNode(reference()), 0

    def play(self, cases: list[BrokerCase], watch: Watch) -> None:
        """The first report is wrong."""

        def wrong(number: int, at: int, seen: object) -> bool:
            self._times += 1
            return watch(number, at, {**seen, "leo": 7} if self._times == 1 else seen)  # type: ignore[dict-item]

        self._right.play(cases, wrong)


def test_the_rule_behind_what_is_asked_after_a_step_is_named_first() -> None:
    """A cache that answers with the epoch that was asked for: no rule of the step itself decides that."""

    def names_what_was_asked(epochs: Ints, starts: Ints, log_end: int, requested: int) -> tuple[int, int]:
        found, end = rules_.end_offset_for(epochs, starts, log_end, requested)
        return (requested, end) if found != UNDEFINED else (found, end)

    node = ReferenceNode(reference(rules=Rules.with_rule("end_offset_for", names_what_was_asked)))
    path = (("metadata", 1, 0, 0, (1, 2)), ("append", 1), ("metadata", 1, 2, 1, (1, 2)), ("append", 1))
    (found,) = play(node, [BrokerCase(Opening(), path)], reference()).differences
    assert found.fields == ("ends",)
    named = [decision.rule for decision in decisions(found, FETCH_TRUNCATION)]
    assert named[0] == "end_offset_for"
    assert "assign_keeps" in named


def test_a_bug_that_does_not_explain_all_of_its_kind_is_called_similar() -> None:
    """Two with the same effect on a short path: what is there on half of the paths is not called the same."""
    reported = EVERYTHING.reports
    right = reference()
    node = ReferenceNode(reference(rules=FAULTS["hw-one-high"].rules))
    alike = play(node, CASES[:40], right).differences
    explained = explain_most(explanations(alike[0], right, reported), alike, right, reported)
    assert explained.is_whole
    assert "  same as   " in story(alike[0], right, explained, reported)
    similar = explained._replace(paths=1, sample=2)
    text = story(alike[0], right, similar, reported)
    assert "  similar   " in text
    assert "on 1 of 2 such paths" in text
    assert "same as" not in text


def test_a_difference_that_does_not_come_again_fails_and_is_told_apart() -> None:
    echoed: list[str] = []
    found = run(Moody(), CASES[:3], reference(FETCH_TRUNCATION), echo=echoed.append)
    assert echoed == ["shrinking open: leo, 1 paths"]
    assert (found.exit_code, found.not_again, found.failures) == (1, 1, ())
    assert "not the same twice" in text_of(found)


def test_what_is_shrunk_can_still_be_given() -> None:
    """A crash that loses nothing must not become one that loses the log's end."""
    capabilities = Capabilities("no lost tails", EVERYTHING.can - {"lose_tail"}, EVERYTHING.reports)
    node = ReferenceNode(reference(rules=FAULTS["entry-at-the-truncation-stays"].rules), capabilities)
    cases = walks(1, 60, FETCH_TRUNCATION, capabilities)
    for found in play(node, cases, reference()).differences[:6]:
        shortest = shrunk(node, found, reference())
        assert shortest is not None
        state = reference().opened(shortest.case.opening)
        assert lacks(capabilities, shortest.case.path[-1], state.broker.partition.log.end) in {None, "lose_tail"}


def test_nothing_compared_is_nothing_decided() -> None:
    found = run(ReferenceNode(reference()), [], reference(FETCH_TRUNCATION))
    assert found.exit_code == 3
    assert "UNDECIDED" in text_of(found)


def test_suspects_are_switches_and_faults_with_what_they_are() -> None:
    known = {one.name: one for one in broker_suspects(profile_named("release-3.4.0"))}
    assert known["response_epoch_checked=on"].says == "as Kafka did from 3.9.1 on before 4.0.0, and from 4.0.1 on"
    assert known["keeps_remote_leo=off"].says == "as no release did"
    assert "KAFKA-3003" in known["hw-not-clamped"].says


def test_a_step_reads_as_a_line() -> None:
    assert step_text(("fetch_response", 2, 0, 1, 0, ((0, 0, 3),), None, None)) == (
        "fetch_response peer=2 error=0 hw=1 log_start=0 records=[0,0,3]"
    )
    assert step_text(("fetch", 2, 0, 0, -1, True)).endswith("may_join=yes")


def test_what_was_seen_stands_apart_from_what_was_expected_however_long_it_is() -> None:
    request = dict.fromkeys(("current_leader_epoch", "fetch_offset", "last_fetched_epoch", "log_start"), 1)
    expected, seen = {"requests": {"2": request, "3": request}}, {"requests": {}}
    case = BrokerCase(Opening((2, 3)), (("lose_response", 2),))
    text = story(Difference(case, 1, ("requests",), expected, seen), reference(), (), EVERYTHING.reports)
    assert "log_start=1  none" in text


def test_every_graph_says_what_it_is_for() -> None:
    assert all(graph.says for graph in GRAPHS.values())


def test_a_code_is_shown_with_its_name() -> None:
    assert value_text({"error": 75, "hw": -1}) == "error=75(UNKNOWN_LEADER_EPOCH) hw=-1"
    assert value_text({"error": 0}) == "error=0"
    assert value_text({"error": 9999}) == "error=9999"
