"""What Kafka raises, as exceptions, and what its responses carry, as error codes.

    TidegaugeError                      util.errors
    ├── FatalExitError                  the broker process ends
    └── KafkaError                      what Kafka's own class raises in the same place
        ├── IllegalArgumentError        IllegalArgumentException
        ├── IllegalStateError           IllegalStateException
        ├── OffsetOutOfRangeError       OffsetOutOfRangeException
        ├── UnexpectedAppendOffsetError UnexpectedAppendOffsetException
        ├── OffsetsOutOfOrderError      OffsetsOutOfOrderException
        ├── CorruptRecordError          CorruptRecordException
        ├── RemoteStorageError          RemoteStorageException
        ├── InvalidOffsetError          InvalidOffsetException
        └── CheckpointError             IOException: Malformed line in checkpoint file

The error of a response is no exception: it is a code, in the table below.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tidegauge.util.errors import TidegaugeError


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
        """Note the line that is wrong, what it should be and what it is."""
        super().__init__(f"{name}:{line}: expected {expected}; seen {seen}; restore the file")
        self.line = line
        self.expected = expected
        self.seen = seen


# Kafka's protocol error codes, as far as this package meets them: the one table of names and numbers.
#
# impl.rules keeps constants of its own for the codes that a rule returns or reads, because Numba and z3 take them from
# there; a test compares them with these. Source: org.apache.kafka.common.protocol.Errors.


UNKNOWN_SERVER_ERROR = -1
NONE = 0
OFFSET_OUT_OF_RANGE = 1
CORRUPT_MESSAGE = 2
UNKNOWN_TOPIC_OR_PARTITION = 3
LEADER_NOT_AVAILABLE = 5
NOT_LEADER_OR_FOLLOWER = 6
REQUEST_TIMED_OUT = 7
MESSAGE_TOO_LARGE = 10
STALE_CONTROLLER_EPOCH = 11
COORDINATOR_LOAD_IN_PROGRESS = 14
COORDINATOR_NOT_AVAILABLE = 15
INVALID_TOPIC_EXCEPTION = 17
RECORD_LIST_TOO_LARGE = 18
NOT_ENOUGH_REPLICAS = 19
NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
INVALID_REQUIRED_ACKS = 21
TOPIC_AUTHORIZATION_FAILED = 29
CLUSTER_AUTHORIZATION_FAILED = 31
UNSUPPORTED_VERSION = 35
TOPIC_ALREADY_EXISTS = 36
INVALID_REPLICATION_FACTOR = 38
INVALID_REPLICA_ASSIGNMENT = 39
INVALID_CONFIG = 40
NOT_CONTROLLER = 41
INVALID_REQUEST = 42
UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
POLICY_VIOLATION = 44
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
DUPLICATE_SEQUENCE_NUMBER = 46
INVALID_PRODUCER_EPOCH = 47
OPERATION_NOT_ATTEMPTED = 55
KAFKA_STORAGE_ERROR = 56
UNKNOWN_PRODUCER_ID = 59
FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71
FENCED_LEADER_EPOCH = 74
UNKNOWN_LEADER_EPOCH = 75
UNSUPPORTED_COMPRESSION_TYPE = 76
STALE_BROKER_EPOCH = 77
OFFSET_NOT_AVAILABLE = 78
PREFERRED_LEADER_NOT_AVAILABLE = 80
ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
ELECTION_NOT_NEEDED = 84
NO_REASSIGNMENT_IN_PROGRESS = 85
INVALID_RECORD = 87
PRODUCER_FENCED = 90
INVALID_UPDATE_VERSION = 95
UNKNOWN_TOPIC_ID = 100
DUPLICATE_BROKER_REGISTRATION = 101
BROKER_ID_NOT_REGISTERED = 102
INCONSISTENT_TOPIC_ID = 103
FETCH_SESSION_TOPIC_ID_ERROR = 106
INELIGIBLE_REPLICA = 107
NEW_LEADER_ELECTED = 108
OFFSET_MOVED_TO_TIERED_STORAGE = 109

OF_ANOTHER_TOPIC = (UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID)
"""What a broker answers that has no such topic, or a deleted one of the same name (ReplicaManager#readFromLog)."""

ERROR_CODES: Mapping[str, int] = MappingProxyType(
    {name: code for name, code in dict(globals()).items() if type(code) is int}
)
"""Name -> number of every code above."""

ERROR_NAMES: Mapping[int, str] = MappingProxyType({code: name for name, code in ERROR_CODES.items()})
"""Number -> name."""


def error_text(code: int) -> str:
    """Format a code with its name, "NOT_CONTROLLER (41)"; a code that is not in the table as "error 999"."""
    return f"{ERROR_NAMES[code]} ({code})" if code in ERROR_NAMES else f"error {code}"
