"""The index of ELRs as Kafka keeps it, with its holes."""

import pytest

from tidegauge.impl.controller.partition_registration import (
    DELETED,
    BrokersToElrs,
    partitions_with_broker_in_elr,
    remove_topic_from_index,
    update_index,
)
from tidegauge.impl.errors import IllegalStateError
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.topic_partition import TopicPartition

Ids = tuple[int, ...]

ONE = TopicPartition("t", 1)


def index(**entries: Ids) -> BrokersToElrs:
    """b2=(1,) is broker 2 in partition 1 of topic t."""
    return FrozenMap(((int(name[1:]), "t"), numbers) for name, numbers in entries.items())


@pytest.mark.parametrize(
    ("before", "was", "now", "after"),
    [
        (index(), (), (2, 3), index(b2=(1,), b3=(1,))),
        (index(b2=(0,)), (), (2,), index(b2=(0, 1))),
        (index(b2=(0, 1)), (2,), (), index(b2=(0,))),
        (index(b2=(1,)), (2,), (), index()),
        (index(b2=(1,)), (2,), (2, 3), index(b2=(1,), b3=(1,))),
        (index(b2=(1,), b3=(1,)), (2, 3), (3, 4), index(b3=(1,), b4=(1,))),
        (index(b2=(1,)), (2,), (2,), index(b2=(1,))),
        # F6: in it already, as nobody took it away: there twice, and one copy becomes 0
        (index(b2=(1,)), (), (2,), index(b2=(1, 1))),
        (index(b2=(1, 1)), (2,), (), index(b2=(0,))),
        (index(b2=(5, 1, 1)), (2,), (), index(b2=(5, 0))),
    ],
)
def test_an_elr_that_becomes_another_one_is_indexed_by_the_difference(
    before: BrokersToElrs, was: Ids, now: Ids, after: BrokersToElrs
) -> None:
    """Who came and who left, and nobody else."""
    assert dict(update_index(before, ONE, was, now).items()) == dict(after.items())


def test_who_leaves_and_is_not_there_breaks_the_index() -> None:
    """With what it held."""
    with pytest.raises(IllegalStateError, match=r"expected .* in the entry; seen \(0,\); the index is broken"):
        update_index(index(b2=(0,)), ONE, (2,), ())
    with pytest.raises(IllegalStateError, match=r"seen \(\)"):
        update_index(index(), ONE, (2,), ())


def test_a_deleted_topic_leaves_the_entries_of_whoever_is_not_named() -> None:
    """Of that topic alone; they are found again under no name of a topic that is there."""
    both = index(b2=(0, 1), b3=(1,)).put((2, "u"), (4,))
    left = remove_topic_from_index(both, "t", iter((3, 3)))
    assert dict(left.items()) == {(2, DELETED): (0, 1), (2, "u"): (4,)}
    assert dict(remove_topic_from_index(both, "t", (2, 3)).items()) == {(2, "u"): (4,)}
    assert remove_topic_from_index(both, "v", ()) == both


def test_a_broker_is_found_in_each_partition_that_it_is_indexed_in() -> None:
    """As often as it stands there."""
    both = index(b2=(0, 1, 1), b3=(1,)).put((2, "u"), (4,))
    found = [TopicPartition("t", 0), ONE, ONE, TopicPartition("u", 4)]
    assert sorted(partitions_with_broker_in_elr(both, 2)) == found
    assert partitions_with_broker_in_elr(both, 4) == ()
