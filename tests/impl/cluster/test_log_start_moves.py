"""Log starts that move in the explored system: what may happen, what is remembered, and what must hold."""

import pytest

from tests.impl.reached import reached
from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.cluster.cluster import Bounds, Cluster, Label, actions, record_epochs, step
from tidegauge.impl.cluster.transitions import extend_committed
from tidegauge.impl.errors import OffsetOutOfRangeError
from tidegauge.impl.explorer.explore import explore, find_violation
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.explorer.invariants import INVARIANTS, violated
from tidegauge.impl.explorer.spec_view import view
from tidegauge.impl.messages import Batch
from tidegauge.impl.profiles import FETCH_TRUNCATION, Setup
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.storage.log import Log

BOUNDS = Bounds(brokers=2, max_log=2, max_epoch=1, max_crashes=1, max_start=2)

BEHIND: tuple[Label, ...] = (
    ("LeaderAppend", 0),
    ("FenceBroker", 0, 1),
    ("BecomeLeader", 1),
    ("LeaderAppend", 1),
    ("LeaderAppend", 1),
    ("BecomeFollower", 0),
    ("DeleteRecords", 1, 2),
    ("HandleFetch", 1, 0, 0),
)
"""b1 holds a record that nobody else has; b2 leads, alone in the ISR, and has deleted both of its own."""


def after(*labels: Label, bounds: Bounds = BOUNDS) -> Cluster:
    return reached(bounds, labels)


def test_without_a_bound_no_log_start_moves() -> None:
    """The graph of Replication.tla has no DeleteRecords, and its views have four parts."""
    graph = explore(BOUNDS._replace(max_start=0, max_log=1))
    assert "DeleteRecords" not in {label[0] for label in graph.labels}
    assert {len(state) for state in graph.states} == {4}
    assert all(len(slot) == 5 for state in graph.states for b in state[0] for slot in b[10] if slot and slot[0] == 2)


def test_a_batch_that_the_log_start_lies_in_stays() -> None:
    """What lies before the log start is gone by whole batches: UnifiedLog#deleteSegments takes segments."""
    log = Log(start=3, end=7, hw=5, batches=(Batch(0, 1, 0), Batch(2, 4, 0), Batch(5, 6, 0)))
    kept = broker_.settle(broker_.Broker(Partition(0, log=log))).partition.log
    assert kept.batches == (Batch(2, 4, 0), Batch(5, 6, 0))


def test_a_log_start_moves_up_to_the_high_watermark_and_to_the_bound() -> None:
    """Any replica, any offset in between; nothing above."""
    cluster = after(*BEHIND[:6])
    assert [label for label in actions(cluster) if label[0] == "DeleteRecords"] == [
        ("DeleteRecords", 1, 1),
        ("DeleteRecords", 1, 2),
    ]
    tight = after(*BEHIND[:6], bounds=BOUNDS._replace(max_start=1))
    assert ("DeleteRecords", 1, 2) not in actions(tight)
    with pytest.raises(OffsetOutOfRangeError, match="expected <= high watermark 0; seen 1"):
        broker_.delete_records(Setup(), cluster.brokers[0], 1)


def test_what_was_deleted_is_told_in_views() -> None:
    """-1 in the log, the leader's log start in its response, the highest log start behind the rest; the last epoch stays."""
    brokers, _, committed, _, deleted = view(after(*BEHIND[:7]))
    assert brokers[1][:3] == ((-1, -1), 2, 1)
    assert (committed, deleted) == ((1, 1), 2)
    answered = after(*BEHIND[:6], ("HandleFetch", 1, 0, 0), ("HandleDivergingResponse", 0, 1), ("DeleteRecords", 1, 1))
    assert view(answered)[0][0][10][1] == (1, 1, 0, -1)
    assert view(step(answered, ("HandleFetch", 1, 0, 0)))[0][0][10][1] == (4, 1, 0, 1, 2)


def test_a_follower_that_stayed_behind_starts_again_at_the_leaders_log_start() -> None:
    """It drops a record that nobody else has; log start, log end and high watermark are the leader's log start."""
    cluster = step(after(*BEHIND), ("HandleOutOfRange", 0, 1))
    log = cluster.brokers[0].partition.log
    assert (log.start, log.end, log.hw, log.batches, log.cache.epochs) == (2, 2, 2, (), ())
    assert record_epochs(cluster.brokers[0]) == (-1, -1)
    assert violated(cluster) is None


@pytest.mark.parametrize(("first", "response"), [(True, (4, 2, 0, 1, 2)), (False, (3, 2, 0, 0, 2))])
def test_out_of_range_is_tested_before_divergence(first: bool, response: tuple[int, ...]) -> None:
    """KAFKA-12996. Before it a follower with an epoch the leader never had is told first where they part, and asks again."""
    labels: tuple[Label, ...] = (
        *(("LeaderAppend", 0), ("LeaderAppend", 0), ("ElectPreferred", 1), ("BecomeLeader", 1)),
        *(("FenceBroker", 1, 0), ("BecomeLeader", 0), ("DeleteRecords", 0, 1), ("BecomeFollower", 1)),
    )
    profile = FETCH_TRUNCATION._replace(out_of_range_first=first)
    cluster = reached(BOUNDS._replace(max_epoch=2), (*labels, ("HandleFetch", 0, 1, 0)), profile)
    assert view(cluster)[0][1][10][0] == response
    if not first:
        cluster = step(step(cluster, ("HandleDivergingResponse", 1, 0)), ("HandleFetch", 0, 1, 0))
        assert view(cluster)[0][1][10][0] == (4, 2, 0, 1, 2)


def test_a_follower_takes_the_log_start_of_a_response_over() -> None:
    """Upwards only, once it has the high watermark."""
    labels: tuple[Label, ...] = (
        ("FenceBroker", 1, -1),
        ("BecomeLeader", 0),
        ("LeaderAppend", 0),
        ("SendFetch", 1),
        ("HandleFetch", 0, 1, 0),
        ("HandleFetchResponse", 1, 0),
        ("DeleteRecords", 0, 1),
        ("HandleFetch", 0, 1, 0),
    )
    cluster = after(*labels)
    assert view(cluster)[0][1][10][0] == (2, 0, 1, 1, (), 1)
    log = step(cluster, ("HandleFetchResponse", 1, 0)).brokers[1].partition.log
    assert (log.start, log.cache.memory.pairs()) == (1, ((0, 1),))


def test_a_restart_keeps_the_log_start() -> None:
    """The checkpointed high watermark is never below it, and the entry without records is forgotten."""
    cluster = after(*BEHIND[:7])
    crashes = [label for label in actions(cluster) if label[:2] == ("Crash", 1)]
    assert crashes == [("Crash", 1, 2, 2)]
    log = step(cluster, crashes[0]).brokers[1].partition.log
    assert (log.start, log.end, log.hw, log.cache.epochs) == (2, 2, 2, ())


def test_what_was_exposed_before_it_was_deleted_is_remembered() -> None:
    """The ghost keeps the epoch where the leader has the record no more, and takes the leader's word elsewhere."""
    assert extend_committed((), (0, 1)) == (0, 1)
    assert extend_committed((0,), (-1, 1)) == (0, 1)
    assert extend_committed((0, 0), (-1, 1, 2)) == (0, 1, 2)


@pytest.mark.parametrize(
    "bounds",
    [BOUNDS._replace(max_log=1, max_start=1), pytest.param(BOUNDS._replace(max_crashes=0), marks=pytest.mark.long)],
)
def test_every_invariant_holds_while_log_starts_move(bounds: Bounds) -> None:
    """In every state within the bounds of MCLogStartMovementMovingStart and MovingStartTwo."""
    assert find_violation(bounds) is None


def test_nothing_is_promised_of_a_record_that_was_deleted_somewhere() -> None:
    """b1 is in sync with a record of its own where its leader has deleted one: no invariant fails, and it may be elected."""
    labels: tuple[Label, ...] = (*BEHIND[:4], ("BecomeFollower", 0), ("DeleteRecords", 1, 1), ("HandleFetch", 1, 0, 1))
    elected: tuple[Label, ...] = (("AlterPartition", 1), ("ElectPreferred", 0), ("BecomeLeader", 0))
    cluster = after(*labels, *elected, bounds=BOUNDS._replace(max_epoch=2))
    assert [record_epochs(broker) for broker in cluster.brokers] == [(0,), (-1,)]
    assert cluster.committed == (1,)
    assert violated(cluster) is None
    assert INVARIANTS["LeaderCompleteness"](cluster._replace(deleted=0)) is not None


def test_a_log_that_starts_behind_all_that_was_deleted_is_found() -> None:
    """A follower that goes on at the leader's end instead of its start lacks what nobody deleted."""
    fault = FAULTS["starts-at-the-leaders-end"]
    found = find_violation(fault.bounds, rules_override=fault.rules, invariants=("OnlyDeletedIsGone",))
    assert found is not None
    assert found.labels[-1][0] == "HandleOutOfRange"


def test_records_kept_beside_a_new_start_are_a_hole() -> None:
    """No rule decides it, so the state is made by hand: the old records stay when the log starts again."""
    cluster = step(after(*BEHIND), ("HandleOutOfRange", 0, 1))
    kept = after(*BEHIND).brokers[0].partition.log.batches
    follower = cluster.brokers[0]
    log = follower.partition.log._replace(start=0, batches=kept)
    torn = follower._replace(partition=follower.partition._replace(log=log))
    found = violated(cluster._replace(brokers=(torn, *cluster.brokers[1:])), ("NoHole",))
    assert found is not None
    assert (found.brokers, found.seen) == ((0,), (1,))
