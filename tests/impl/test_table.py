"""An ordered mapping that is a value."""

from hypothesis import given
from hypothesis import strategies as st

from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.topic_partition import TopicPartition

STEPS = st.lists(st.tuples(st.sampled_from(("put", "put_at_end", "without")), st.integers(0, 4), st.integers()))


@given(STEPS)
def test_it_does_what_a_linked_map_does(steps: list[tuple[str, int, int]]) -> None:
    """A put keeps the place of a known key, a move takes it to the end; older tables stay as they were."""
    table: FrozenMap[int, int] = FrozenMap()
    expected: dict[int, int] = {}
    for what, key, value in steps:
        before, items = table, table.items()
        if what == "without":
            table = table.without(key)
            expected.pop(key, None)
        else:
            table = table.put(key, value) if what == "put" else table.put_at_end(key, value)
            if what == "put_at_end":
                expected.pop(key, None)
            expected[key] = value
        assert before.items() == items
    assert table.items() == tuple(expected.items())
    assert (list(table), len(table), table.values()) == (list(expected), len(expected), tuple(expected.values()))
    assert all(key in table and table[key] == table.get(key) == value for key, value in expected.items())


def test_order_is_part_of_the_value() -> None:
    """Equal tables have equal hashes; the same entries in another order are another table."""
    one = FrozenMap([(1, "a"), (2, "b")])
    assert one == FrozenMap([(1, "a"), (2, "b")])
    assert hash(one) == hash(FrozenMap([(1, "a"), (2, "b")]))
    assert one != FrozenMap([(2, "b"), (1, "a")])
    assert one != {1: "a", 2: "b"}
    assert one.get(3) is None
    assert repr(one) == "FrozenMap([(1, 'a'), (2, 'b')])"


def test_a_partition_is_written_as_kafka_does() -> None:
    """Topic, hyphen, number."""
    assert str(TopicPartition("my-topic", 3)) == "my-topic-3"
