"""Checkpoint files: what they are called, and their text.

Rules of this file

1. Line 1 is the version, line 2 the number of entries, then one entry per line. A wrong number or a line that is none is an
   error: Kafka trusts no half of a file.
2. Entries are `topic partition offset`, or `epoch offset` in a partition's own leader-epoch-checkpoint.
3. Source: org.apache.kafka.server.common.CheckpointFile, OffsetCheckpointFile, LeaderEpochCheckpointFile.
"""

from tidegauge.impl.errors import CheckpointError
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.storage.epoch_cache import EpochEntries
from tidegauge.impl.topic_partition import TopicPartition

HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
LOG_START_FILE = "log-start-offset-checkpoint"
LEADER_EPOCH_FILE = "leader-epoch-checkpoint"

VERSION = 0

Offsets = FrozenMap[TopicPartition, int]


def offsets_text(offsets: Offsets) -> str:
    """Format the checkpoint file of a log directory: the high watermark, recovery point or log start of each partition."""
    lines = (f"{tp.topic} {tp.partition} {offset}" for tp, offset in offsets.items())
    return "".join(f"{line}\n" for line in (VERSION, len(offsets), *lines))


def parse_offsets(text: str, name: str = HIGH_WATERMARK_FILE) -> Offsets:
    """Parse a checkpoint file of offsets. `name` is the file's, for the message of a CheckpointError."""
    return FrozenMap(
        (TopicPartition(topic, int(partition)), int(offset))
        for topic, partition, offset in _entries(text, name, ("topic", "partition", "offset"))
    )


def parse_epochs(text: str, name: str = LEADER_EPOCH_FILE) -> EpochEntries:
    """Parse a leader-epoch-checkpoint. `name` is the file's, for the message of a CheckpointError.

    The order of the entries is not checked here, but when they are assigned to a cache one by one.
    """
    pairs = [(int(epoch), int(start)) for epoch, start in _entries(text, name, ("epoch", "offset"))]
    return EpochEntries(tuple(e for e, _ in pairs), tuple(s for _, s in pairs))


def _entries(text: str, name: str, fields: tuple[str, ...]) -> list[list[str]]:
    """Return the words of each entry of a checkpoint file. Raises CheckpointError with the line that is wrong.

    `fields` name the words that an entry has: the last two are numbers, a topic may stand before them.
    """
    lines = text.splitlines()
    for number, expected in ((1, "a version"), (2, "a number of entries")):
        if len(lines) < number or not _is_number(lines[number - 1]):
            seen = repr(lines[number - 1]) if len(lines) >= number else "the end of the file"
            raise CheckpointError(name, number, expected, seen)
    if int(lines[0]) != VERSION:
        raise CheckpointError(name, 1, f"version {VERSION}", lines[0])
    if len(lines) - 2 != int(lines[1]):
        raise CheckpointError(name, 2, f"{lines[1]} entries", str(len(lines) - 2))
    entries = [line.split() for line in lines[2:]]
    for number, words in enumerate(entries, 3):
        numbers = words[len(fields) - 2 :]
        if len(words) != len(fields) or not all(_is_number(word) for word in numbers):
            raise CheckpointError(name, number, " ".join(fields), repr(lines[number - 1]))
    return entries


def _is_number(text: str) -> bool:
    """Return whether a text is an optional minus and ASCII digits."""
    return text.removeprefix("-").isdecimal() and text.isascii()
