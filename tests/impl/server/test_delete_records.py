"""DeleteRecords requests: errors per partition, and waiting for the followers' log starts."""

import pytest

from tests.impl.brokers import NOW, OTHER, SETUP, TP, asked, broker, change, follower, leading, responses
from tidegauge.impl.errors import INVALID_TOPIC_EXCEPTION, KAFKA_STORAGE_ERROR, REQUEST_TIMED_OUT
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import BrokerState, DeleteRecordsResponse, PartitionDelete
from tidegauge.impl.rules import NONE, NOT_LEADER_OR_FOLLOWER, OFFSET_OUT_OF_RANGE, UNDEFINED, UNKNOWN_TOPIC_OR_PARTITION
from tidegauge.impl.server import purgatory
from tidegauge.impl.server.client_requests import delete_records, fetch_messages
from tidegauge.impl.server.replica_manager import ReplicaManager, mark_offline, online_partition
from tidegauge.impl.server.role_changes import make_followers, stop_partitions
from tidegauge.impl.topic_partition import TopicPartition

INTERNAL = TopicPartition("__consumer_offsets", 0)


def fetched(manager: ReplicaManager, replica: int, log_start: int) -> ReplicaManager:
    """A follower at the log end that has truncated up to `log_start`."""
    fetch = asked(replica, 10)
    fetch = fetch._replace(request=fetch.request._replace(log_start=log_start))
    return fetch_messages(SETUP, manager, 100 + replica, follower(replica, 0), FrozenMap([(TP, fetch)]), NOW)


def committed() -> ReplicaManager:
    """Everybody has ten records, from offset 0."""
    return fetched(fetched(leading(), 2, 0), 3, 0)


def deleted(manager: ReplicaManager, offset: int, *tps: TopicPartition, timeout_ms: int = 1000) -> ReplicaManager:
    return delete_records(SETUP, manager, 7, timeout_ms, FrozenMap((tp, offset) for tp in tps or (TP,)), NOW)


def reported(manager: ReplicaManager, tp: TopicPartition = TP) -> PartitionDelete:
    (response,) = [a for a in responses(manager) if isinstance(a, DeleteRecordsResponse)]
    return response.responses[tp]


def test_the_leader_truncates_at_once_and_the_response_waits_for_the_followers() -> None:
    """Until the last living one has said, with a fetch, that its log starts there."""
    waiting = deleted(committed(), 6)
    partition = online_partition(waiting, TP)
    assert partition is not None
    assert partition.log.start == 6
    waiting = fetched(waiting, 2, 6)
    assert tuple(waiting.deletes) == (7,)
    done = fetched(waiting, 3, 8)
    assert (reported(done), len(done.deletes)) == (PartitionDelete(NONE, 6), 0)


def test_minus_one_is_the_high_watermark() -> None:
    """As it is when the request is looked at."""
    waiting = deleted(committed(), -1)
    assert waiting.deletes[7].statuses[TP].required == 10
    assert reported(fetched(fetched(waiting, 2, 10), 3, 10)) == PartitionDelete(NONE, 10)


def test_what_every_replica_has_already_is_answered_at_once() -> None:
    """With the low watermark, which may be higher than what was asked for."""
    done = fetched(fetched(deleted(committed(), 6), 2, 6), 3, 6)
    again = deleted(done._replace(answered=()), 2)
    assert (reported(again), len(again.deletes)) == (PartitionDelete(NONE, 6), 0)


def test_a_replica_that_is_gone_is_not_waited_for() -> None:
    """A fenced one is; the metadata cache says which."""
    without = committed()._replace(metadata=(BrokerState(2, epoch=12), BrokerState(3, epoch=None)))
    assert reported(fetched(deleted(without, 6), 2, 6)) == PartitionDelete(NONE, 6)


def test_the_deadline_answers_with_what_is_reached() -> None:
    """A partition that still waits has timed out, and is told the low watermark of when it was truncated."""
    manager = deleted(committed(), 6)
    assert not [
        a for a in responses(purgatory.expire_requests(SETUP, manager, NOW + 999)) if isinstance(a, DeleteRecordsResponse)
    ]
    assert reported(purgatory.expire_requests(SETUP, manager, NOW + 1000)) == PartitionDelete(REQUEST_TIMED_OUT, 0)


@pytest.mark.parametrize(
    ("tp", "offset", "error"),
    [
        (TP, 11, OFFSET_OUT_OF_RANGE),
        (TP, -2, OFFSET_OUT_OF_RANGE),
        (OTHER, 0, UNKNOWN_TOPIC_OR_PARTITION),
        (INTERNAL, 0, INVALID_TOPIC_EXCEPTION),
    ],
)
def test_an_error_is_told_at_once_and_truncates_nothing(tp: TopicPartition, offset: int, error: int) -> None:
    """Above the high watermark, negative, not here, internal."""
    before = committed()
    after = deleted(before, offset, tp)
    assert reported(after, tp) == PartitionDelete(error, UNDEFINED)
    assert after._replace(answered=()) == before._replace(answered=())


def test_a_partition_with_an_error_does_not_wait_and_the_others_do() -> None:
    """The response comes for all together."""
    waiting = deleted(committed(), 6, TP, OTHER)
    done = fetched(fetched(waiting, 2, 6), 3, 6)
    assert (reported(done).error, reported(done, OTHER).error) == (NONE, UNKNOWN_TOPIC_OR_PARTITION)


def test_only_a_leader_deletes() -> None:
    """A follower follows its leader's log start; an offline log fails."""
    following = make_followers(SETUP, broker(TP), FrozenMap([(TP, change(2, 3))]), NOW).manager
    assert reported(deleted(following, 6)).error == NOT_LEADER_OR_FOLLOWER
    assert reported(deleted(mark_offline(committed(), TP), 6)).error == KAFKA_STORAGE_ERROR


def test_who_may_delete_internal_topics_does() -> None:
    """Kafka's own coordinators."""
    manager = leading(INTERNAL)
    done = delete_records(SETUP, manager, 7, 1, FrozenMap([(INTERNAL, 0)]), NOW, internal_topics_allowed=True)
    assert done.deletes[7].statuses[INTERNAL].acks_pending
    assert purgatory.expire_requests(SETUP, done, NOW + 1).answered


def test_a_request_that_has_no_time_does_not_wait() -> None:
    """It is told what is reached."""
    done = deleted(committed(), 6, timeout_ms=0)
    assert (reported(done), len(done.deletes)) == (PartitionDelete(REQUEST_TIMED_OUT, 0), 0)


def test_a_partition_that_left_is_unknown_whatever_the_metadata_cache_lists() -> None:
    """The request itself would be told NOT_LEADER_OR_FOLLOWER; one in an offline directory a storage error."""
    waiting = deleted(committed(), 6)
    gone = stop_partitions(SETUP, waiting._replace(known=frozenset({TP})), FrozenMap([(TP, True)]), NOW)
    assert reported(purgatory.check_deletes(gone, TP)) == PartitionDelete(UNKNOWN_TOPIC_OR_PARTITION, UNDEFINED)
    offline = mark_offline(waiting, TP)
    assert reported(purgatory.check_deletes(offline, TP)) == PartitionDelete(KAFKA_STORAGE_ERROR, UNDEFINED)


def test_losing_the_leadership_is_found_out_at_the_next_look() -> None:
    """completeDelayedOperationsWhenNotPartitionLeader looks at produces and fetches; a delete goes on waiting."""
    waiting = deleted(committed(), 6)
    following = make_followers(SETUP, waiting, FrozenMap([(TP, change(2, 3, partition_epoch=2))]), NOW).manager
    assert tuple(following.deletes) == (7,)
    assert reported(purgatory.check_deletes(following, TP)) == PartitionDelete(NOT_LEADER_OR_FOLLOWER, UNDEFINED)
    assert reported(purgatory.expire_requests(SETUP, following, NOW + 1000)).error == REQUEST_TIMED_OUT


def test_a_look_at_another_partition_changes_nothing() -> None:
    """And one that finds the replicas still behind keeps the request."""
    waiting = deleted(committed(), 6)
    assert purgatory.check_deletes(waiting, OTHER) == waiting
    assert purgatory.check_all(SETUP, waiting, TP, NOW) == waiting
