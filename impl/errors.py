"""Exceptions, in two groups: those of the whole package, and those that Kafka's own classes raise.

    TidegaugeError
    ├── UsageError                      general: the caller asked for something that does not exist
    ├── FatalExitError                  protocol: the broker process ends
    └── KafkaError                      protocol: what Kafka's own class raises in the same place
        ├── IllegalArgumentError        IllegalArgumentException
        ├── IllegalStateError           IllegalStateException
        ├── OffsetOutOfRangeError       OffsetOutOfRangeException
        ├── UnexpectedAppendOffsetError UnexpectedAppendOffsetException
        ├── OffsetsOutOfOrderError      OffsetsOutOfOrderException
        ├── CorruptRecordError          CorruptRecordException
        ├── RemoteStorageError          RemoteStorageException
        ├── InvalidOffsetError          InvalidOffsetException
        └── CheckpointError             IOException: Malformed line in checkpoint file

The error of a response is no exception: it is a code (impl.error_codes).
"""

from typing import Any

# ---------------------------------------------------------------------------------------------------------------------
# General errors


class TidegaugeError(Exception):
    """Root of every error this package raises."""


class UsageError(TidegaugeError):
    """The caller named something that does not exist: a profile, a label that is not enabled."""


# ---------------------------------------------------------------------------------------------------------------------
# Protocol errors


class FatalExitError(TidegaugeError):
    """FatalExitError: the process exits, and no caller continues."""


class KafkaError(TidegaugeError):
    """An exception that Kafka's own class raises in the same place.

    `left_behind`: the state after it, where Kafka changes something before it throws.
    """

    def __init__(self, message: str, left_behind: Any = None) -> None:
        super().__init__(message)
        self.left_behind = left_behind


class IllegalArgumentError(KafkaError):
    """A negative epoch or offset where none is allowed."""


class IllegalStateError(KafkaError):
    """A fetch response that does not start at the end of the log."""


class OffsetOutOfRangeError(KafkaError):
    """An offset outside [log start, log end]."""


class UnexpectedAppendOffsetError(KafkaError):
    """A follower append below the end of the log."""


class OffsetsOutOfOrderError(KafkaError):
    """Batches whose last offsets do not increase."""


class CorruptRecordError(KafkaError):
    """A batch whose checksum does not match."""


class RemoteStorageError(KafkaError):
    """Remote storage has no segment for an offset, or is not enabled."""


class InvalidOffsetError(KafkaError):
    """An index entry that is not above the last one."""


class CheckpointError(KafkaError):
    """A checkpoint file that is not what Kafka writes, from `line` on."""

    def __init__(self, name: str, line: int, expected: str, seen: str) -> None:
        super().__init__(f"{name}:{line}: expected {expected}; seen {seen}; restore the file")
        self.line = line
        self.expected = expected
        self.seen = seen
