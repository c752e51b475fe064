"""What is published of the contract says what the code does."""

import json
from pathlib import Path

import jsonschema
import pytest

from tidegauge.conformance.judge.rulebook import actions
from tidegauge.drive.broker.contract import REPORTED, BrokerCase, Opening
from tidegauge.drive.broker.reference import differences, reference, take_step
from tidegauge.drive.broker.state import opened, report
from tidegauge.drive.broker.steps import EVERYTHING, MAY_WAIT, STEPS, action_of, is_step, lacks, step_json, step_of
from tidegauge.drive.contract import Capabilities, Report
from tidegauge.drive.paths.selection import smoke_case
from tidegauge.drive.paths.walks import walks
from tidegauge.drive.runner import player
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.transports.lines import hello, opening_line, step_line
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.profiles import FETCH_TRUNCATION
from tidegauge.impl.releases import profile_named
from validation.docs import drive_contract
from validation.docs.tables import page_with, schema_text

ROOT = Path(__file__).resolve().parents[3]
VALIDATOR = jsonschema.Draft202012Validator(drive_contract.json_schema())
CASES = walks(3, 40, FETCH_TRUNCATION)


def test_the_json_schema_in_the_repository_is_the_one_made_from_the_code() -> None:
    """Else: python -m validation.docs.drive_contract."""
    assert (ROOT / "tidegauge" / "drive" / "schema.json").read_text(encoding="utf-8") == schema_text(
        drive_contract.json_schema()
    )


def test_the_tables_in_the_page_are_made_from_the_code() -> None:
    """Else: python -m validation.docs.drive_contract."""
    page = (ROOT / "docs" / "drive.md").read_text(encoding="utf-8")
    assert page_with(drive_contract.tables(), drive_contract.MAKER, page) == page
    assert "| `lose_response` | `peer` |" in page


def test_every_kind_of_step_is_drawn_and_is_a_line_of_the_schema() -> None:
    """Walks take every step but the one that no follower of today asks for, and the one that the refusals have."""
    drawn = {taken[0] for case in CASES for taken in case.path}
    assert drawn == set(STEPS) - {"offsets_for_leader_epoch_response", "fetch_ineligible"}
    given = jsonschema.Draft202012Validator(drive_contract.json_schema()["$defs"]["given"])
    given.validate(json.loads(opening_line(1, CASES[0].opening)))
    ineligible = ("fetch_ineligible", 2, 1, 0, -1, "shutting_down")
    for taken in {ineligible[0]: ineligible, **{taken[0]: taken for case in CASES for taken in case.path}}.values():
        given.validate(json.loads(step_line(1, taken)))


def test_every_report_of_the_reference_is_a_line_of_the_schema() -> None:
    reports: list[dict[str, object]] = []
    play(ReferenceNode(reference()), CASES[:4], reference(), lambda _n, _at, seen: not reports.append({"p": 1, **seen}))
    assert len(reports) == 100
    report = jsonschema.Draft202012Validator(drive_contract.json_schema()["$defs"]["report"])
    for one in reports:
        report.validate(one)


def test_of_a_request_that_is_refused_only_the_error_is_expected() -> None:
    """As docs/drive.md says: nothing else of a result is looked at then."""
    refused = set()

    def watch(number: int, at: int, seen: Report) -> bool:
        result, path = seen["result"], CASES[number].path
        if result is not None and result["error"] != 0:
            refused.add(path[at - 1][0])
            assert set(result) == {"error"}
        return at < len(path)

    ReferenceNode(reference()).play(CASES, watch)
    fetches = {"fetch", "fetch_in_session", *MAY_WAIT}
    assert refused == {"append", *fetches, "offsets_for_leader_epoch", "list_offsets", "delete_records"}


@pytest.mark.parametrize(("leader", "log_end"), [(2, 0), (-1, 1)])
def test_a_follower_without_epochs_truncates_by_itself_only_where_there_is_a_leader(leader: int, log_end: int) -> None:
    """Without one no fetcher thread gets the partition, and it truncates. ReplicaManager#applyLocalFollowersDelta."""
    state = opened(Opening())
    for taken in (
        ("metadata", 2, 1, 0, (1, 2)),
        ("fetch_response", 2, 0, 0, 0, ((0, 0, 1),), None, None),
        ("fetch_response", 2, 0, 0, 0, ((1, 1, 0),), None, None),  # the entry of epoch 1 goes
        ("fetch_response", 2, 1, -1, -1, (), None, (0, 1)),  # that of epoch 0, too, and the record at offset 0 stays
        ("metadata", leader, 2, 1, (2,)),
        ("lose_response", 2),  # until then the thread is busy
    ):
        state, _ = take_step(state, taken)
    assert report(state)["leo"] == log_end


@pytest.mark.parametrize("line", [{"p": 1, "leo": "many"}, {"contract": 2}, {"step": "stop"}])
def test_a_line_that_is_none_is_refused_by_the_schema(line: dict[str, object]) -> None:
    assert not VALIDATOR.is_valid(line)


def test_a_step_is_the_same_after_its_line() -> None:
    for case in CASES:
        for taken in case.path:
            assert step_of(json.loads(json.dumps(step_json(taken)))) == taken
            assert is_step(taken)


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        ("jump",),
        ("append",),
        ("append", "all"),
        ("append", True),
        ("lag", (2, "x")),
        ("list_offsets", 0, "first"),
        7,
        ("stop", 1),
        ({"stop": 1},),
    ],
)
def test_what_is_no_step_is_known(wrong: object) -> None:
    assert not is_step(wrong)


def test_every_step_is_an_action_of_the_catalog() -> None:
    assert {action_of(taken) for case in CASES for taken in case.path} <= set(actions())


def test_the_handshake_names_all_there_is() -> None:
    assert set(hello()["steps"]) == set(STEPS)
    assert set(hello()["reports"]) == set(REPORTED)


@pytest.mark.parametrize(
    ("step", "can", "lacking"),
    [
        (("append", 1), {"append"}, None),
        (("append", -1), {"append"}, "acks_all"),
        (("append", 1), {"metadata"}, "append"),
        (("crash", 0, 2), {"crash"}, None),
        (("crash", 0, 1), {"crash"}, "lose_tail"),
        (("fetch_response", 2, 0, 0, 1, (), None, None), {"fetch_response"}, "log_starts"),
        (("fetch_response", 2, 1, -1, -1, (), None, (1, 2)), {"fetch_response"}, "log_starts"),
        (("fetch_response", 2, 1, -1, -1, (), None, (0, 2)), {"fetch_response"}, None),
    ],
)
def test_what_a_broker_lacks_for_a_step(step: tuple[object, ...], can: set[str], lacking: str | None) -> None:
    assert lacks(Capabilities("some", frozenset(can), frozenset({"leo"})), step, 2) == lacking


def test_to_be_late_while_another_member_is_behind_and_is_not_is_promised_apart() -> None:
    some = Capabilities("some", frozenset({"lag"}), frozenset({"leo"}))
    assert lacks(some, ("lag", (2,)), 2, lagging=(2,)) is None
    assert lacks(some, ("lag", (2, 3)), 2, lagging=(3, 2)) is None
    assert lacks(some, ("lag", (2,)), 2, lagging=(2, 3)) == "lag_apart"
    assert lacks(EVERYTHING, ("lag", (2,)), 2, lagging=(2, 3)) is None


def test_a_crash_after_the_log_start_has_moved_needs_segments() -> None:
    some = Capabilities("some", frozenset({"crash"}), frozenset({"leo"}))
    assert lacks(some, ("crash", 1, 2), 2, 1) == "segments"
    assert lacks(some, ("crash", 0, 2), 2, 0) is None
    assert lacks(EVERYTHING, ("crash", 1, 2), 2, 1) is None


def test_a_busy_fetcher_thread_truncates_when_it_has_its_response() -> None:
    """Kafka 3.4.0 on its own wire: an entry of a new epoch takes no response while the thread waits for an earlier one."""
    old = reference(profile_named("release-3.4.0"))
    stale = ("fetch_response", 2, 0, 1, 0, ((0, 0, 0),), None, None)
    path = (("metadata", 2, 0, 0, (1, 2)), ("metadata", 2, 2, 1, (2,)), stale, stale)
    seen: list[tuple[int, int]] = []

    def watch(_number: int, at: int, said: Report) -> bool:
        request = said["requests"].get("2", {})
        seen.append((said["leo"], request.get("current_leader_epoch", -1)))
        return at < len(path)

    ReferenceNode(old).play([BrokerCase(Opening(), path)], watch)
    assert seen == [(0, -1), (0, 0), (0, 0), (0, 2), (1, 2)]


def test_a_field_that_is_absent_is_not_known_and_not_compared() -> None:
    expected = {"result": None, "leo": 1, "hw": 0}
    assert differences(expected, {"result": None, "leo": 1, "hw": 1}, frozenset(expected)) == ("hw",)
    assert differences(expected, {"result": None, "leo": 1}, frozenset(expected)) == ()


def test_the_ten_steps_are_ten_and_the_reference_takes_them() -> None:
    case = smoke_case(FETCH_TRUNCATION, EVERYTHING)
    assert len(case.path) == 10
    assert play(ReferenceNode(reference()), [case], reference()).differences == ()
    few = smoke_case(FETCH_TRUNCATION, Capabilities("few", frozenset({"metadata", "append"}), frozenset({"leo"})))
    assert [taken[0] for taken in few.path] == ["metadata", "append", "append", "metadata", "metadata"]


def test_a_step_that_a_generation_has_no_place_for_is_a_difference() -> None:
    """A path of one generation that another one cannot be given."""
    path = (("metadata", 2, 0, 0, (1, 2)), ("fetch_response", 2, 0, 0, 0, (), None, None), ("retention", 5))
    found = play(ReferenceNode(reference()), [BrokerCase(Opening(), path)], reference())
    assert [(one.at, one.fields) for one in found.differences] == [(3, ("step",))]


def test_paths_that_begin_alike_share_what_is_expected_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much of it is remembered, each path differs where it differs alone."""
    begins = (("metadata", 2, 0, 0, (1, 2)), ("fetch_response", 2, 0, 0, 0, ((0, 0, 0),), None, None))
    cases = [
        BrokerCase(Opening(), (*begins, ("metadata", 1, 1, 1, (1, 2)), ("append", 1))),
        BrokerCase(Opening(), (*begins, ("stop",), ("metadata", 1, 1, 1, (1, 2)))),
        BrokerCase(Opening(), begins),
        BrokerCase(Opening(min_insync_replicas=2), begins),
    ]
    broken = ReferenceNode(reference(rules=FAULTS["hw-is-own-log-end"].rules))
    alone = [play(broken, [case], reference()).differences for case in cases]
    assert any(alone)
    for most in (0, 1, 3, 1000):
        monkeypatch.setattr(player, "MOST_EXPECTED", most)
        assert play(broken, cases, reference()).differences == tuple(found for one in alone for found in one)
    tree = player._Expectations(reference())
    assert tree.after_opening(Opening()).after(begins[0]) is tree.after_opening(Opening()).after(begins[0])
