"""Reading only what is committed: the last stable offset, aborted transactions, fetches that wait for a marker."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.impl.brokers import NOW, SETUP, TP, asked, leading, responses
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import (
    Batch,
    FetchedPartitions,
    FetchParams,
    Isolation,
    Marker,
    PartitionRead,
    ProducedBatch,
    Transaction,
)
from tidegauge.impl.server.client_requests import append_records, fetch_messages
from tidegauge.impl.server.replica_manager import ReplicaManager, online_partition
from tidegauge.impl.storage.log import Log, append_as_follower, append_as_leader, truncate_to
from tidegauge.impl.storage.producer_state import (
    AbortedTransaction,
    aborted_transactions,
    first_unstable_offset,
    last_stable_offset,
    read_bound,
)

ONE, TWO = Transaction(1), Transaction(2)
COMMIT_1, ABORT_1, COMMIT_2 = Transaction(1, Marker.COMMIT), Transaction(1, Marker.ABORT), Transaction(2, Marker.COMMIT)


def log_of(*batches: Transaction | None, hw: int | None = None) -> Log:
    """One record each."""
    log = Log()
    for transaction in batches:
        log, _ = append_as_leader(SETUP, log, 1, 0, transaction)
    return log._replace(hw=log.end if hw is None else hw)


@pytest.mark.parametrize(
    ("batches", "hw", "stable"),
    [
        ((None, None), 2, 2),
        ((None, ONE, ONE, None), 4, 1),
        ((None, ONE, COMMIT_1, None), 4, 4),
        ((None, ONE, ABORT_1, None), 4, 4),
        ((None, ONE, COMMIT_1, None), 3, 3),
        ((None, ONE, COMMIT_1, None), 2, 1),
        ((None, ONE, None), 1, 1),
        ((ONE, TWO, COMMIT_1, None), 4, 1),
        ((ONE, TWO, COMMIT_2, None), 4, 0),
        ((ONE, TWO, COMMIT_2, COMMIT_1), 3, 0),
        ((None, COMMIT_1, None), 3, 3),
        ((ONE, COMMIT_1, ONE), 3, 2),
    ],
)
def test_the_last_stable_offset_is_where_the_first_unfinished_transaction_begins(
    batches: tuple[Transaction | None, ...], hw: int, stable: int
) -> None:
    """Unfinished until its marker is below the high watermark; never above it. A marker alone ends nothing."""
    assert last_stable_offset(log_of(*batches, hw=hw)) == stable


def test_an_unfinished_transaction_that_begins_below_the_log_start_holds_there() -> None:
    """Nobody is sent below the log."""
    log = log_of(ONE, ONE, None)._replace(start=1)
    assert (first_unstable_offset(log), last_stable_offset(log)) == (1, 1)
    assert first_unstable_offset(log_of(ONE, COMMIT_1)) is None


def test_a_truncation_opens_the_transaction_whose_marker_it_took() -> None:
    """The producer state is built anew from what is left."""
    log, _ = truncate_to(SETUP, log_of(ONE, None, COMMIT_1), 2)
    assert last_stable_offset(log) == 0


def test_a_follower_knows_what_its_records_say() -> None:
    """It may serve readers of committed transactions (KIP-392)."""
    leader = log_of(ONE, None, COMMIT_1)
    follower, _ = append_as_follower(SETUP, Log(), leader.batches, 0)
    assert [last_stable_offset(follower._replace(hw=hw)) for hw in (1, 2, 3)] == [0, 0, 3]


def test_each_isolation_has_its_bound() -> None:
    """Log end, high watermark, last stable offset."""
    log = log_of(None, ONE, None, None, hw=3)
    assert [read_bound(log, isolation) for isolation in Isolation] == [4, 3, 1]


def test_a_response_lists_the_aborted_transactions_it_has_records_of() -> None:
    """From the first batch that is read to the last, marker included."""
    log = log_of(ONE, ABORT_1, None, ONE, None, ABORT_1)
    first, second = AbortedTransaction(1, 0, 1), AbortedTransaction(1, 3, 5)
    for span, expected in (
        ((0, 6), (first, second)),
        ((1, 3), (first,)),
        ((2, 3), ()),
        ((2, 4), (second,)),
        ((5, 6), (second,)),
    ):
        assert aborted_transactions(log, log.batches[slice(*span)]) == expected
    assert aborted_transactions(log, ()) == ()
    assert aborted_transactions(log_of(ONE, COMMIT_1), log_of(ONE, COMMIT_1).batches) == ()


COMMITTED = FetchParams(max_wait_ms=0, read_committed=True)


def produced(manager: ReplicaManager, transaction: Transaction | None) -> ReplicaManager:
    return append_records(SETUP, manager, 7, 1, 1000, FrozenMap([(TP, ProducedBatch(1, transaction=transaction))]), NOW)


def read(manager: ReplicaManager, offset: int, params: FetchParams = COMMITTED) -> PartitionRead:
    after = fetch_messages(SETUP, manager._replace(answered=()), 1, params, FrozenMap([(TP, asked(-1, offset))]), NOW)
    (response,) = [a for a in responses(after) if isinstance(a, FetchedPartitions)]
    return response.reads[TP]


def test_who_reads_committed_stops_at_an_open_transaction_and_others_do_not() -> None:
    """Until its end is committed; an aborted one is then read, and listed."""
    open_ = produced(produced(leading(isr=(1,)), ONE), None)
    stopped = read(open_, 10)
    assert (stopped.records, stopped.last_stable, stopped.aborted) == ((), 10, ())
    assert len(read(open_, 10, FetchParams(max_wait_ms=0)).records) == 2
    ended = read(produced(open_, ABORT_1), 10)
    assert ended.records == (Batch(10, 10, 2, ONE), Batch(11, 11, 2), Batch(12, 12, 2, ABORT_1))
    assert (ended.last_stable, ended.aborted) == (13, (AbortedTransaction(1, 10, 12),))


def test_others_are_not_told_about_transactions() -> None:
    """Neither is who reads committed when there is an error."""
    manager = produced(leading(isr=(1,)), ONE)
    assert read(manager, 10, FetchParams(max_wait_ms=0)).last_stable == -1
    assert read(manager, 99).last_stable == -1


def test_a_fetch_of_committed_records_waits_for_the_marker() -> None:
    """Records of an open transaction do not fill it; the marker, once committed, does."""
    waits = COMMITTED._replace(max_wait_ms=500)
    open_ = produced(leading(isr=(1,)), ONE)
    waiting = fetch_messages(SETUP, open_._replace(answered=()), 1, waits, FrozenMap([(TP, asked(-1, 10))]), NOW)
    assert not responses(waiting)
    more = produced(waiting, ONE)
    assert [a for a in responses(more) if isinstance(a, FetchedPartitions)] == []
    done = produced(more, COMMIT_1)
    (response,) = [a for a in responses(done) if isinstance(a, FetchedPartitions)]
    assert len(response.reads[TP].records) == 3
    partition = online_partition(done, TP)
    assert partition is not None
    assert last_stable_offset(partition.log) == partition.log.end


@given(
    st.lists(st.sampled_from([None, ONE, TWO, COMMIT_1, ABORT_1, COMMIT_2]), max_size=12),
    st.integers(0, 12),
    st.integers(0, 12),
)
def test_below_the_last_stable_offset_every_transaction_is_over(
    batches: list[Transaction | None], hw: int, later: int
) -> None:
    """And the last stable offset never falls while the log grows and its high watermark rises."""
    log = log_of(*batches)
    low = log._replace(hw=min(hw, log.end))
    stable = last_stable_offset(low)
    assert stable <= low.hw
    for batch in low.batches[:stable]:
        if batch.transaction is not None and batch.transaction.marker is None:
            ends = [b for b in low.batches[: low.hw] if b.base > batch.base and b.transaction is not None]
            assert any(b.transaction.producer_id == batch.transaction.producer_id and b.transaction.marker for b in ends)
    assert last_stable_offset(log._replace(hw=min(max(hw, later), log.end))) >= stable
