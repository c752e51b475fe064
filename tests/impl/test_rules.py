"""The decisions, on the vectors that were run through Kafka's own classes."""

import pytest

from tidegauge.impl import rules
from tidegauge.impl.errors import ERROR_CODES
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.profiles import Rules
from tidegauge.impl.rules import (
    DIVERGING,
    FENCED_LEADER_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OUT_OF_RANGE,
    READ,
    UNDEFINED,
    UNKNOWN_LEADER_EPOCH,
    Ints,
)

# Leader: batches of epoch 0 at 0-1, 3 at 2-7, 4 at 8-12, 7 at 13, 9 at 14-16; it leads epoch 10 (PartitionTest)
LEADER = ((0, 3, 4, 7, 9, 10), (0, 2, 8, 13, 14, 17))


@pytest.mark.parametrize(
    ("requested", "response"),
    [
        (-1, (-1, -1)),
        (0, (0, 10)),
        (1, (1, 10)),
        (2, (2, 20)),
        (3, (2, 20)),
        (4, (4, 35)),
        (6, (4, 35)),
        (7, (7, 50)),
        (8, (-1, -1)),
    ],
)
def test_the_end_of_an_epoch_follows_the_response_table(requested: int, response: tuple[int, int]) -> None:
    """Rows L1 to L5 of OffsetsForLeaderEpoch, cache [(2,10),(4,20),(7,35)], log end 50."""
    assert rules.end_offset_for((2, 4, 7), (10, 20, 35), 50, requested) == response


def test_an_empty_cache_answers_nothing() -> None:
    """Whatever is asked of an empty cache is undefined."""
    assert {rules.end_offset_for((), (), 50, epoch) for epoch in range(-1, 9)} == {(UNDEFINED, UNDEFINED)}


@pytest.mark.parametrize(
    ("cache", "log_end", "response", "expected"),
    [
        (((0,), (0,)), 2, (0, 1), (5, 1, True)),
        (((1, 2), (0, 4)), 7, (1, 7), (5, 4, True)),
        (((0, 1, 3), (0, 5, 7)), 9, (2, 8), (4, 7, False)),
        (((0, 1), (0, 5)), 7, (0, 5), (5, 5, True)),
        (((5,), (10,)), 20, (3, 15), (5, 10, True)),
        (((), ()), 20, (3, 15), (3, 15, True)),
        (((0,), (0,)), 200, (5, -1), (1, 98, True)),
        (((0,), (0,)), 20, (-1, 15), (2, 15, True)),
    ],
)
def test_the_truncation_target_follows_the_table(
    cache: tuple[tuple[int, ...], tuple[int, ...]], log_end: int, response: tuple[int, int], expected: tuple[int, int, bool]
) -> None:
    """Rows T1 to T5 with the offsets Kafka gives, fetch offset 98."""
    assert rules.truncation_target(*cache, log_end, 98, *response) == expected


@pytest.mark.parametrize(
    ("last_fetched", "offset", "log_start", "expected"),
    [
        (2, 5, 0, (DIVERGING, 0, 2)),
        (0, 4, 0, (DIVERGING, 0, 2)),
        (6, 6, 0, (DIVERGING, 4, 13)),
        (5, 9, 0, (DIVERGING, 4, 13)),
        (10, 18, 0, (DIVERGING, 10, 17)),
        (0, 2, 0, (READ, -1, -1)),
        (7, 14, 0, (READ, -1, -1)),
        (9, 17, 0, (READ, -1, -1)),
        (10, 17, 0, (READ, -1, -1)),
        (11, 5, 0, (OUT_OF_RANGE, -1, -1)),
        (-1, 18, 0, (OUT_OF_RANGE, -1, -1)),
        (-1, 4, 5, (OUT_OF_RANGE, -1, -1)),
    ],
)
def test_a_fetch_is_read_diverging_or_out_of_range(
    last_fetched: int, offset: int, log_start: int, expected: tuple[int, int, int]
) -> None:
    """The vectors of PartitionTest.testLastFetchedOffsetValidation."""
    assert rules.fetch_decision(*LEADER, log_start, 17, offset, last_fetched) == expected


@pytest.mark.parametrize(
    ("last_fetched", "offset", "expected"),
    [
        (2, 8, (DIVERGING, 2, 5)),
        (0, 5, (READ, -1, -1)),
        (3, 5, (READ, -1, -1)),
        (0, 0, (OUT_OF_RANGE, -1, -1)),
        (5, 4, (OUT_OF_RANGE, -1, -1)),
    ],
)
def test_out_of_range_is_tested_before_divergence(last_fetched: int, offset: int, expected: tuple[int, int, int]) -> None:
    """With log start 5 a fetch below it is out of range, whatever its epoch says (KAFKA-12996)."""
    assert rules.fetch_decision((3, 4, 7, 9, 10), (5, 8, 13, 14, 17), 5, 17, offset, last_fetched) == expected


def test_an_epoch_that_is_there_is_no_news() -> None:
    """The last entry again, at its start or later; at an earlier start it is replaced."""
    assert [rules.assign_keeps((0, 3), (0, 5), 3, start) for start in (4, 5, 6)] == [1, UNDEFINED, UNDEFINED]


def test_a_log_without_epochs_is_fetched_from_its_high_watermark() -> None:
    """Divergence can not be found without an epoch; with one it is fetched from the log end."""
    assert rules.initial_fetch_offset((), 5, 3) == 3
    assert rules.initial_fetch_offset((0,), 5, 3) == 5


def test_fencing_compares_with_the_local_epoch() -> None:
    """Absent passes, older is fenced, newer is unknown."""
    assert [rules.check_leader_epoch(epoch, 3) for epoch in (-1, 2, 3, 4)] == [
        NONE,
        FENCED_LEADER_EPOCH,
        NONE,
        UNKNOWN_LEADER_EPOCH,
    ]


def test_the_leader_never_lowers_and_waits_for_every_counted_replica() -> None:
    """Up to the lowest counted log end, never down, not at all under min ISR."""
    assert rules.leader_high_watermark(3, 9, [7, 5], [True, False], False) == 7
    assert rules.leader_high_watermark(8, 9, [7, 5], [True, True], False) == 8
    assert rules.leader_high_watermark(3, 9, [7, 5], [False, False], False) == 9
    assert rules.leader_high_watermark(3, 9, [7, 5], [False, False], True) == 3


def test_the_follower_clamps_into_its_log_and_may_fall() -> None:
    """Below the log start it is the log start, above the log end the log end."""
    assert [rules.follower_high_watermark(hw, 2, 6) for hw in (0, 2, 4, 9)] == [2, 2, 4, 6]


@pytest.mark.parametrize(
    ("requested", "serves", "assigned", "error"),
    [
        (2, True, True, FENCED_LEADER_EPOCH),
        (2, False, False, FENCED_LEADER_EPOCH),
        (4, False, True, UNKNOWN_LEADER_EPOCH),
        (3, False, False, NOT_LEADER_OR_FOLLOWER),
        (UNDEFINED, False, True, NOT_LEADER_OR_FOLLOWER),
        (3, True, False, UNKNOWN_LEADER_EPOCH),
        (UNDEFINED, True, False, NOT_LEADER_OR_FOLLOWER),
        (3, True, True, NONE),
        (UNDEFINED, True, True, NONE),
    ],
)
def test_a_fetch_is_refused_for_its_epoch_then_for_the_role_then_for_the_assignment(
    requested: int, serves: bool, assigned: bool, error: int
) -> None:
    """Asked of a broker in epoch 3; any other request is refused for the first two."""
    assert rules.fetch_error(requested, 3, serves, assigned, True) == error
    if assigned:
        assert rules.request_error(requested, 3, serves, True) == error


def test_without_fencing_only_the_role_and_the_assignment_count() -> None:
    """Before KIP-320 requests have no epoch to compare."""
    assert [rules.request_error(2, 3, serves, False) for serves in (True, False)] == [NONE, NOT_LEADER_OR_FOLLOWER]
    assert rules.fetch_error(2, 3, True, True, False) == NONE


def test_an_epoch_response_is_taken_in_the_epoch_it_was_asked_in() -> None:
    """KAFKA-7786; before it, by any entry that waits for one."""
    assert [rules.accepts_epoch_response(5, True, epoch, True) for epoch in (4, 5, UNDEFINED)] == [False, True, False]
    assert [rules.accepts_epoch_response(5, truncating, 4, False) for truncating in (True, False)] == [True, False]


def test_a_log_start_lifts_the_high_watermark() -> None:
    """Up to itself, never down."""
    assert [rules.high_watermark_after_log_start(hw, 5) for hw in (3, 5, 8)] == [5, 5, 8]


def test_a_leader_forgets_in_a_new_epoch_unless_it_led_and_keeps() -> None:
    """Finding F2: Kafka's leader that is elected again keeps what it recorded."""
    assert [rules.forgets_log_ends(3, 5, was_leader, True) for was_leader in (False, True)] == [True, False]
    assert rules.forgets_log_ends(3, 5, True, False)
    assert not rules.forgets_log_ends(5, 5, False, False)


def test_only_a_leader_acknowledges_and_only_what_is_committed() -> None:
    """Partition#checkEnoughReplicasReachOffset; who was deposed says so whatever its high watermark is."""
    assert [rules.produce_response(hw, 3, False, False) for hw in (2, 3)] == [(False, NOT_LEADER_OR_FOLLOWER)] * 2
    assert [rules.produce_response(hw, 3, True, False) for hw in (2, 3)] == [(False, NONE), (True, NONE)]
    assert [rules.produce_response(hw, 3, True, True) for hw in (2, 3)] == [(False, NONE), (True, 20)]


def test_what_becomes_of_a_proposal() -> None:
    """The table of Partition#handleAlterPartitionError; REQUEST_TIMED_OUT stands for all other errors."""
    after = {error: rules.proposal_after(error) for error in (0, 3, 7, 42, 55, 74, 95, 97, 100, 107, 108)}
    assert after == {0: 0, 3: 2, 7: 3, 42: 2, 55: 1, 74: 2, 95: 2, 97: 3, 100: 2, 107: 1, 108: 2}


def test_a_replaced_rule_reaches_every_rule_that_calls_it() -> None:
    """Directly, as fetch_decision calls end_offset_for, or through another; what does not call it stays the same."""

    def no_end(epochs: Ints, starts: Ints, log_end: int, requested: int) -> tuple[int, int]:
        return UNDEFINED, UNDEFINED

    replaced = Rules.with_rule("end_offset_for", no_end)
    assert replaced.truncation_target((0,), (0,), 9, 5, 0, 3) == (3, 3, True)
    assert replaced.fetch_decision((0,), (0,), 0, 9, 5, 0)[0] == OUT_OF_RANGE
    assert replaced.may_join_isr is rules.may_join_isr
    unfenced = FAULTS["never-fenced"].rules
    assert unfenced.fetch_error(2, 3, True, True, True) == NONE
    assert rules.fetch_error(2, 3, True, True, True) == FENCED_LEADER_EPOCH


def test_the_rules_a_core_runs_with_are_these() -> None:
    """The default of every field of Rules is the function of that name."""
    assert Rules()._asdict() == {name: getattr(rules, name) for name in Rules._fields}


def test_the_error_codes_of_the_rules_are_those_of_the_table() -> None:
    """impl.rules has constants of its own, because Numba and z3 read them from its namespace."""
    own = {name: code for name, code in vars(rules).items() if name in ERROR_CODES}
    assert own == {name: ERROR_CODES[name] for name in own}
    assert len(own) == 13
