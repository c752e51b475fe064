"""Producers that number what they write: sent again, out of order, from an older epoch, unknown."""

import pytest

from tests.impl.brokers import NOW, SETUP, TP, leading, responses
from tidegauge.impl.errors import (
    CORRUPT_MESSAGE,
    DUPLICATE_SEQUENCE_NUMBER,
    INVALID_PRODUCER_EPOCH,
    OUT_OF_ORDER_SEQUENCE_NUMBER,
    UNKNOWN_PRODUCER_ID,
)
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import PartitionAppend, ProducedBatch, Producer, ProduceResponse
from tidegauge.impl.profiles import Setup
from tidegauge.impl.releases import profile_of_release
from tidegauge.impl.rules import NONE
from tidegauge.impl.server.client_requests import append_records
from tidegauge.impl.server.replica_manager import ReplicaManager, online_partition
from tidegauge.impl.storage.producer_state import SEQUENCES, last_sequence, producer_entry

ALONE = (1,)


def sent(
    manager: ReplicaManager, sequence: int, records: int = 1, epoch: int = 0, setup: Setup = SETUP, **given: bool
) -> ReplicaManager:
    batch = ProducedBatch(records, producer=Producer(9, epoch, sequence), **given)
    return append_records(setup, manager._replace(answered=()), 7, 1, 1000, FrozenMap([(TP, batch)]), NOW)


def reported(manager: ReplicaManager) -> PartitionAppend:
    (response,) = responses(manager)
    assert isinstance(response, ProduceResponse)
    return response.responses[TP]


def end(manager: ReplicaManager) -> int:
    partition = online_partition(manager, TP)
    assert partition is not None
    return partition.log.end


def after(*sequences: int, epoch: int = 0) -> ReplicaManager:
    manager = leading(isr=ALONE)
    for sequence in sequences:
        manager = sent(manager, sequence, epoch=epoch)
    return manager


def test_a_batch_that_is_sent_again_is_answered_with_where_it_stands() -> None:
    """Nothing is appended; so far back as the producer may have requests in flight."""
    manager = after(0, 1, 2, 3, 4)
    for sequence in range(5):
        again = sent(manager, sequence)
        assert (reported(again), end(again)) == (PartitionAppend(NONE, 10 + sequence, 0), 15)
    assert reported(sent(sent(manager, 5), 0)).error == OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_same_sequence_with_another_number_of_records_is_another_batch() -> None:
    """It is out of order: the last sequence number is compared, too."""
    assert reported(sent(after(0, 1), 0, records=2)).error == OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize(
    ("sequence", "error"), [(2, NONE), (3, OUT_OF_ORDER_SEQUENCE_NUMBER), (7, OUT_OF_ORDER_SEQUENCE_NUMBER)]
)
def test_a_sequence_has_no_holes(sequence: int, error: int) -> None:
    """The next number, and no other; a refused batch is answered with the log start and leaves the log alone."""
    manager = sent(after(0, 1), sequence)
    assert reported(manager).error == error
    if error:
        assert (reported(manager), end(manager)) == (PartitionAppend(error, log_start=0), 12)


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_0() -> None:
    """The newer one forgets the batches of the older."""
    manager = after(0, 1, epoch=3)
    assert reported(sent(manager, 2, epoch=2)).error == INVALID_PRODUCER_EPOCH
    assert reported(sent(manager, 2, epoch=4)).error == OUT_OF_ORDER_SEQUENCE_NUMBER
    newer = sent(manager, 0, epoch=4)
    assert (reported(newer).error, end(newer)) == (NONE, 13)
    assert end(sent(newer, 1, epoch=4)) == 14
    assert reported(sent(newer, 1, epoch=3)).error == INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize(
    ("release", "error"),
    [
        ("0.11.0", OUT_OF_ORDER_SEQUENCE_NUMBER),
        ("1.0.0", UNKNOWN_PRODUCER_ID),
        ("2.4.1", UNKNOWN_PRODUCER_ID),
        ("2.5.0", NONE),
    ],
)
def test_an_unknown_producer_may_begin_anywhere_since_kip_360(release: str, error: int) -> None:
    """Its batches may be gone: before, it had to begin at 0."""
    setup = Setup(profile=profile_of_release(release))
    assert reported(sent(leading(isr=ALONE), 5, setup=setup)).error == error
    assert reported(sent(leading(isr=ALONE), 0, setup=setup)).error == NONE


def test_what_is_no_longer_remembered_was_once_a_duplicate() -> None:
    """In 1.0.0 and 1.0.1, which looked at the numbers below the remembered ones."""
    manager = after(0, 1, 2, 3, 4, 5, 6)
    once = Setup(profile=profile_of_release("1.0.1"))
    assert reported(sent(manager, 1, setup=once)).error == DUPLICATE_SEQUENCE_NUMBER
    assert reported(sent(manager, 9, setup=once)).error == OUT_OF_ORDER_SEQUENCE_NUMBER
    # The remembered ones begin at 2: a batch that reaches into them is none of those, nor is one that ends at 0.
    assert reported(sent(manager, 1, records=2, setup=once)).error == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert reported(sent(manager, 0, setup=once)).error == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert reported(sent(manager, 1, setup=Setup(profile=profile_of_release("1.0.2")))).error == OUT_OF_ORDER_SEQUENCE_NUMBER


def test_records_are_looked_at_before_their_producer() -> None:
    """A corrupt batch is corrupt, whatever its numbers are."""
    assert reported(sent(after(0, 1), 7, corrupt=True)).error == CORRUPT_MESSAGE


def test_refused_batches_are_counted_as_failed() -> None:
    """Unlike what clients bring about every day."""
    assert sent(after(0), 7).stats.all_topics.failed_produce_requests == 1
    assert sent(after(0), 7, corrupt=True).stats.all_topics.failed_produce_requests == 0


def test_sequence_numbers_start_again_at_0() -> None:
    """After the greatest Java int, also inside a batch."""
    manager = sent(leading(isr=ALONE), SEQUENCES - 2, records=2)
    assert reported(sent(manager, 0)).error == NONE
    assert last_sequence(SEQUENCES - 1, 2) == 0
    across = sent(leading(isr=ALONE), SEQUENCES - 1, records=2)
    assert reported(sent(across, 1)).error == NONE


def test_producers_are_independent_and_others_have_no_state() -> None:
    """A batch without a producer belongs to no sequence."""
    manager = append_records(SETUP, after(0), 8, 1, 1000, FrozenMap([(TP, ProducedBatch(1))]), NOW)
    partition = online_partition(manager, TP)
    assert partition is not None
    assert producer_entry(partition.log.batches, 8) is None
    assert reported(sent(manager, 1)).error == NONE


def test_a_batch_that_is_sent_again_waits_for_the_replicas_as_the_first_one_does() -> None:
    """acks = -1: for the high watermark to pass where it stands, not the log end."""
    batch = FrozenMap([(TP, ProducedBatch(1, producer=Producer(9, 0, 0)))])
    waiting = append_records(SETUP, leading(), 1, -1, 1000, batch, NOW)
    again = append_records(SETUP, waiting, 2, -1, 1000, batch, NOW)
    assert [again.produces[request].statuses[TP].required for request in (1, 2)] == [11, 11]
