"""Checkpoint files: what is written is read, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.impl.errors import CheckpointError
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.storage import checkpoints as c
from tidegauge.impl.storage.epoch_cache import EpochEntries
from tidegauge.impl.topic_partition import TopicPartition

NAMES = st.text("abcXYZ019._-", min_size=1)


def test_a_file_looks_as_kafka_writes_it() -> None:
    """Version, number of entries, entries."""
    assert c.offsets_text(FrozenMap([(TopicPartition("a-b", 3), 17)])) == "0\n1\na-b 3 17\n"
    assert c.parse_epochs("0\n2\n1 0\n4 20\n") == EpochEntries((1, 4), (0, 20))
    assert c.parse_epochs("0\n0\n") == EpochEntries()


@given(st.dictionaries(st.builds(TopicPartition, NAMES, st.integers(0, 1 << 31)), st.integers(0, 1 << 62)))
def test_offsets_are_read_back(offsets: dict[TopicPartition, int]) -> None:
    """All of them, in order."""
    table = FrozenMap(offsets.items())
    assert c.parse_offsets(c.offsets_text(table)) == table


@given(st.lists(st.tuples(st.integers(0, 1 << 31), st.integers(0, 1 << 62))))
def test_epochs_are_read_back(pairs: list[tuple[int, int]]) -> None:
    """Whatever they are: judging them is the cache's business."""
    entries = EpochEntries(tuple(e for e, _ in pairs), tuple(s for _, s in pairs))
    text = "".join(f"{epoch} {start}\n" for epoch, start in pairs)
    assert c.parse_epochs(f"0\n{len(pairs)}\n{text}") == entries


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "file:1: expected a version; seen the end"),
        ("x\n0\n", "file:1: expected a version; seen 'x'"),
        ("0\n", "file:2: expected a number of entries"),
        ("1\n0\n", "file:1: expected version 0; seen 1"),
        ("0\n2\nt 0 5\n", "file:2: expected 2 entries; seen 1"),
        ("0\n1\nt 0 5\nt 1 5\n", "file:2: expected 1 entries; seen 2"),
        ("0\n1\nt 0\n", "file:3: expected topic partition offset; seen 't 0'"),
        ("0\n1\nt 0 x\n", "file:3: expected topic partition offset"),
        ("0\n1\nt 0 5 6\n", "file:3: expected topic partition offset"),
    ],
)
def test_a_damaged_file_is_refused(text: str, message: str) -> None:
    """With the line, what was expected and what was seen."""
    with pytest.raises(CheckpointError, match=message):
        c.parse_offsets(text, "file")


@given(st.text("0123 \nxt-", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No other error."""
    for parse in (c.parse_offsets, c.parse_epochs):
        try:
            parse(text)
        except CheckpointError:
            continue
