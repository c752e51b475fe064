"""What Kafka's log messages say: one table of patterns, nothing else.

Rules of this file

1. A row is (what it says, logger without its package, pattern). Packages moved between releases (kafka.log.UnifiedLog is
   org.apache.kafka.storage.internals.log.UnifiedLog since 4.1), class names did not.
2. A pattern is searched, not matched whole: prefixes such as `[Partition alpha-0 broker=1] ` differ between releases.
3. Group names are field names; `tp` is the topic-partition. Numbers become ints in `parse`, lists of ids tuples.
4. One row reads all releases where that is possible. Where releases differ, the difference is noted beside the row.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from traces.kafka.lines import Line

Value = int | str | tuple[int, ...] | None

_TP = r"(?P<tp>[A-Za-z0-9._\-]+-\d+)"
_OFFSET = r"\(offset=(?P<{}>-?\d+),? segment=[^)]*\)"  # 3.4 has no comma
_ENTRY = r"EpochEntry[(\[]epoch=(?P<epoch>\d+), startOffset=(?P<start>\d+)[)\]]"  # a record with square brackets since 4.2
_LOG = rf"\[UnifiedLog partition={_TP}, dir=[^\]]*\] "
_PARTITION = rf"\[Partition {_TP} broker=\d+\] "
_CACHE = rf"\[LeaderEpochCache {_TP}\] "
_SKIPPED = (
    rf"Skipped the become-{{}} state change for {_TP} with topic id (?:Some\((?P<topic_id>[^)]*)\)|None)"
    r"(?=.*?\bisr=\[(?P<isr>[^\]]*)\])(?=.*?\bleader=(?P<leader>-?\d+))(?=.*?\bleaderEpoch=(?P<leader_epoch>-?\d+))"
    r"(?=.*?\bpartitionEpoch=(?P<partition_epoch>\d+))"
)
# 3.x prints a LeaderAndIsrPartitionState, 4.x a PartitionRegistration; the names inside are the same, their order is not.

TABLE: tuple[tuple[str, str, str], ...] = (
    # process
    ("process-started", "LoggingSignalHandler", r"Registered signal handlers"),
    ("process-stopping", "LoggingSignalHandler", r"Terminating process due to signal"),
    ("logs-closed", "LogManager", r"^Shutdown complete\."),
    ("version", "AppInfoParser", r"^Kafka version: (?P<version>\S+)"),
    ("unclean-start", "LogManager", r"Recovering \d+ logs from .* since no clean shutdown file was found"),
    ("unclean-start", "LogManager", r"Attempting recovery for all logs in .* since no clean shutdown file was found"),  # 3.4
    ("clean-start", "LogManager", r"Skipping recovery of \d+ logs from .* since clean shutdown file was found"),
    ("clean-start", "LogManager", r"Skipping recovery for all logs in .* since clean shutdown file was found"),  # 3.4
    # a replica is loaded
    (
        "log-created",
        "LogManager",
        rf"^Created log for partition {_TP} in \S+ with properties \{{(?:.*?\bmin\.insync\.replicas=(?P<min_isr>\d+))?",
    ),
    (
        "log-completed",
        "LogManager",
        r"^Completed load of Log\(dir=[^,]*/(?P<tp>[^/,]+-\d+),.*logStartOffset=(?P<log_start>\d+), logEndOffset=(?P<leo>\d+)\)",
    ),
    ("log-loaded", "Partition", rf"Log loaded for partition {_TP} with initial high watermark (?P<hw>\d+)"),
    # roles
    (
        "leader",
        "logger",
        rf"Leader {_TP} with topic id (?:Some\((?P<topic_id>[^)]*)\)|None) starts at leader epoch (?P<leader_epoch>\d+) "
        r"from offset (?P<leo>\d+) with partition epoch (?P<partition_epoch>\d+), high watermark (?P<hw>\d+), ISR \[(?P<isr>[^\]]*)\]",
    ),
    (
        "follower",
        "logger",
        rf"Follower {_TP} starts at leader epoch (?P<leader_epoch>\d+) from offset (?P<leo>\d+) with partition epoch "
        r"(?P<partition_epoch>\d+) and high watermark (?P<hw>\d+)\. Current leader is (?P<leader>-?\d+)\.",
    ),
    (
        "leader-again",
        "logger",
        _SKIPPED.format("leader") + r".*?already the leader with leader epoch \d+\. Current high watermark (?P<hw>\d+)",
    ),
    ("follower-again", "logger", _SKIPPED.format("follower") + r".*?already a follower with leader epoch"),
    # the log
    (
        "appended",
        "UnifiedLog",
        # first offset: `Some((offset=1 segment=..))` 3.4, `Optional[(offset=1, segment=..)]` 3.6, `1` 4.x
        _LOG + r"Appended message set with last offset: -?\d+, first offset: (?:(?:Some\(|Optional\[)\(offset=)?(?P<rec_base>\d+)"
        r".*?, next offset: (?P<rec_end>\d+)",
    ),
    ("high-watermark", "UnifiedLog", _LOG + "Setting high watermark " + _OFFSET.format("hw")),
    (
        "high-watermark-lowered",
        "UnifiedLog",
        _LOG + "Non-monotonic update of high watermark from " + _OFFSET.format("hw_before") + " to " + _OFFSET.format("hw"),
    ),
    ("cut", "UnifiedLog", _LOG + r"Truncating to offset (?P<leo>\d+)"),
    ("cut-nothing", "UnifiedLog", _LOG + r"Truncating to (?P<target>\d+) has no effect as the largest offset in the log is (?P<last>-?\d+)"),
    ("cut-all", "UnifiedLog", _LOG + r"Truncate and start at offset (?P<leo>\d+), logStartOffset: (?P<log_start>\d+)"),
    ("cut-below-high-watermark", "UnifiedLog", _LOG + r"Truncating \S+ to offset (?P<target>\d+) below high watermark (?P<hw_before>\d+)"),
    ("log-start", "UnifiedLog", _LOG + r"Incremented log start offset to (?P<log_start>\d+) due to (?P<reason>.*)"),
    # the epoch cache
    ("epoch-entry", "LeaderEpochFileCache", _CACHE + "Appended new epoch entry " + _ENTRY),
    ("epoch-conflict", "LeaderEpochFileCache", _CACHE + "New epoch entry " + _ENTRY + " caused truncation of conflicting entries"),
    ("epochs-cut-at-end", "LeaderEpochFileCache", _CACHE + r"Cleared entries .* after truncating to end offset (?P<end>\d+)"),
    # the printed `rewrote first entry` is the entry before it was rewritten, so only the offset is read
    ("epochs-cut-at-start", "LeaderEpochFileCache", _CACHE + r"Cleared entries .* after truncating to start offset (?P<start>\d+)"),
    # the leader
    (
        "leader-high-watermark",
        "Partition",
        _PARTITION + "High watermark updated from " + _OFFSET.format("hw_before") + " to " + _OFFSET.format("hw"),
    ),
    (
        "leader-high-watermark-kept",
        "Partition",
        _PARTITION + r"(?:Skipping update high watermark .*All current LEOs are Set\((?P<leos>.*)\)|Not increasing HWM)",
    ),
    (
        "recorded",
        "Partition",
        _PARTITION + r"Recorded replica (?P<peer>\d+) log end offset \(LEO\) position (?P<remote_leo>\d+) and log start offset (?P<peer_start>-?\d+)",
    ),
    (
        "expand-isr",
        "Partition",
        _PARTITION + r"Submitting ISR state change PendingExpandIsr\(newInSyncReplicaId=(?P<peer>\d+), sentLeaderAndIsr=(?P<sent>.*?partitionEpoch=\d+)",
    ),
    (
        "shrink-isr",
        "Partition",
        _PARTITION + r"Submitting ISR state change PendingShrinkIsr\(outOfSyncReplicaIds=\S+ sentLeaderAndIsr=(?P<sent>.*?partitionEpoch=\d+)",
    ),
    (
        "shrinking",
        "Partition",
        _PARTITION + r"Shrinking ISR from [\d,]* to (?P<isr>[\d,]*)\. Leader: \(highWatermark: (?P<hw>\d+), endOffset: (?P<leo>\d+)\)",
    ),
    (
        "isr-answer",
        "DefaultAlterPartitionManager",
        # `beta-0` 3.x, `<topic id>:0` 4.2
        r"handled AlterPartition request for (?P<partition>\S+?): PartitionData\(partitionIndex=\d+, errorCode=(?P<error>-?\d+), "
        r"leaderId=-?\d+, leaderEpoch=(?P<leader_epoch>-?\d+), isr=\[(?P<isr>[^\]]*)\].*?partitionEpoch=(?P<partition_epoch>-?\d+)",
    ),
    ("isr-updated", "Partition", _PARTITION + r"ISR updated to (?P<isr>[\d,]+) .*version updated to (?P<partition_epoch>\d+)"),
    # the follower
    ("sending", "ReplicaFetcherThread", r"leaderId=(?P<leader>\d+), fetcherId=\d+\] Sending fetch request (?P<request>\(type=FetchRequest.*)"),
    (
        "received",
        "ReplicaFetcherThread",
        # `Received 0 messages` 3.4, `Received 0 bytes of messages` later
        rf"leaderId=(?P<peer>\d+), fetcherId=\d+\] Follower has replica log end offset (?P<leo_before>\d+) for partition {_TP}\. "
        r"Received (?P<size>\d+) (?:bytes of )?messages and leader hw (?P<res_hw>-?\d+)",
    ),
    (
        "after-append",
        "ReplicaFetcherThread",
        rf"Follower has replica log end offset (?P<leo>\d+) after appending \d+ bytes of messages for partition {_TP}",
    ),
    (
        "follower-high-watermark",
        "ReplicaFetcherThread",
        r"Follower received high watermark -?\d+ from the leader (?:and updated replica high watermark to (?P<hw>\d+)"
        rf"|but did not update replica high watermark) for partition {_TP}",
    ),
    (
        "truncating",
        "ReplicaFetcherThread",
        rf"leaderId=(?P<peer>\d+), fetcherId=\d+\] Truncating partition {_TP} with TruncationState\(offset=(?P<target>-?\d+), "
        r"completed=(?P<completed>true|false)\) due to leader epoch and offset EpochEndOffset\(errorCode=(?P<error>-?\d+), "
        r"partition=\d+, leaderEpoch=(?P<div_epoch>-?\d+), endOffset=(?P<div_end>-?\d+)\)",
    ),
    (
        "truncating-to-high-watermark",
        "ReplicaFetcherThread",
        rf"Truncating partition {_TP} with TruncationState\(offset=(?P<target>\d+), completed=(?P<completed>true|false)\) "
        r"due to local high watermark (?P<hw_before>\d+)",
    ),
    (
        "reset-to-leader-start",
        "ReplicaFetcherThread",
        rf"leaderId=(?P<peer>\d+), fetcherId=\d+\] Truncate fully and reset fetch offset for partition {_TP} from (?P<req_offset>\d+) "
        r"to the current leader's start offset (?P<leader_start>\d+)",
    ),
    (
        "reset-to-leader-end",
        "ReplicaFetcherThread",
        rf"leaderId=(?P<peer>\d+), fetcherId=\d+\] Reset fetch offset for partition {_TP} from (?P<req_offset>\d+) to current leader's "
        r"latest offset (?P<leader_end>\d+)",
    ),
    (
        "reset-to-log-end",
        "ReplicaFetcherThread",
        rf"leaderId=(?P<peer>\d+), fetcherId=\d+\] Reset fetch offset for partition {_TP} from (?P<req_offset>\d+) to the current local "
        r"replica's end offset (?P<target>\d+)",
    ),
    (
        "reset-done",
        "ReplicaFetcherThread",
        rf"Current offset \d+ for partition {_TP} is out of range, which typically implies a leader change\. "
        r"Reset fetch offset to (?P<target>\d+)",
    ),
    ("fetch-error-75", "ReplicaFetcherThread", rf"leaderId=(?P<peer>\d+).*Remote broker has a smaller leader epoch for partition {_TP} "),
    ("fetch-error-75", "ReplicaFetcherThread", rf"leaderId=(?P<peer>\d+).*Partition {_TP} has a newer epoch \(\d+\) than the current leader"),
    ("fetch-error-74", "ReplicaFetcherThread", rf"leaderId=(?P<peer>\d+).*Partition {_TP} has an older epoch \(\d+\) than the current leader"),
    ("fetch-error-6", "ReplicaFetcherThread", rf"leaderId=(?P<peer>\d+).*Remote broker is not the leader for partition {_TP},"),
    ("fetch-error-100", "ReplicaFetcherThread", rf"leaderId=(?P<peer>\d+).*Received UNKNOWN_TOPIC_ID from the leader for partition {_TP}\."),
    ("fetch-lost", "FetchSessionHandler", r"Error sending fetch request \(sessionId=(?P<session>\w+), epoch=\w+\) to node (?P<peer>\d+)"),
    # the controller
    (
        "registered",
        "ReplicationControlManager",
        # `Created partition` 3.4, `Replayed PartitionRecord for new partition` since 3.5
        rf"(?:Created partition|Replayed PartitionRecord for new partition) {_TP} with topic ID (?P<topic_id>\S+) and "
        r"PartitionRegistration\(replicas=\[(?P<replicas>[^\]]*)\].*?\bisr=\[(?P<isr>[^\]]*)\].*?\bleader=(?P<leader>-?\d+),"
        r".*?leaderEpoch=(?P<leader_epoch>\d+), partitionEpoch=(?P<partition_epoch>\d+)",
    ),
    (
        "changed",
        "ReplicationControlManager",
        rf"partition change for {_TP} with topic ID (?P<topic_id>[^:]+): (?P<changes>.*)$",
    ),
    ("isr-altered", "ReplicationControlManager", rf"Node (?P<peer>\d+) has altered ISR for {_TP} to \[(?P<isr>[^\]]*)\]"),
)


@dataclass(frozen=True, slots=True)
class Said:
    """What one line says: `what` is the first column of the table, `values` the groups."""

    what: str
    line: Line
    values: Mapping[str, Value]

    @property
    def tp(self) -> str:
        return str(self.values.get("tp", ""))

    def number(self, name: str) -> int:
        value = self.values[name]
        if not isinstance(value, int):
            raise TypeError(f"{name} of {self.line.at} is no number")
        return value

    def text(self, name: str) -> str:
        return str(self.values[name])

    def ids(self, name: str = "isr") -> tuple[int, ...]:
        value = self.values[name]
        return value if isinstance(value, tuple) else ()


_BY_LOGGER: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
for _what, _logger, _pattern in TABLE:
    _BY_LOGGER.setdefault(_logger, []).append((_what, re.compile(_pattern)))

_IDS = frozenset({"isr", "replicas"})
_TEXTS = frozenset({"tp", "topic_id", "version", "sent", "request", "reason", "changes", "partition", "completed", "session", "leos"})


def parse(line: Line) -> Said | None:
    """What `line` says, or None when this version has no use for it."""
    for what, pattern in _BY_LOGGER.get(line.logger, ()):
        found = pattern.search(line.message)
        if found is not None:
            return Said(what, line, {name: _value(name, text) for name, text in found.groupdict().items() if text is not None})
    return None


def _value(name: str, text: str) -> Value:
    if name in _IDS:
        return ids(text)
    return text if name in _TEXTS else int(text)


def ids(text: str) -> tuple[int, ...]:
    """`1, 2, 3` or `1,2,3` as numbers."""
    return tuple(int(part) for part in text.replace(" ", "").split(",") if part)


_LEO = re.compile(r"replica (\d+): \(offset=(-?\d+)")


def leos(text: str) -> dict[int, int]:
    """`replica 2: (offset=19, ..), replica 1: (offset=20, ..)` as {2: 19, 1: 20}."""
    return {int(replica): int(offset) for replica, offset in _LEO.findall(text)}


_PROPOSED = re.compile(r"\bisr=(?:List\(|\[)(?P<ids>[\d, ]*)[)\]]")
_PROPOSED_WITH_EPOCHS = re.compile(r"BrokerState\(brokerId=(\d+)")
_SENT_EPOCHS = re.compile(r"leaderEpoch=(\d+).*partitionEpoch=(\d+)")


def proposal(sent: str) -> tuple[tuple[int, ...], int, int]:
    """(ISR, leader epoch, partition epoch) of a LeaderAndIsr: `isr=List(2, 3)` 3.4, with broker epochs since 3.5."""
    plain = _PROPOSED.search(sent)
    members = ids(plain["ids"]) if plain else tuple(int(broker) for broker in _PROPOSED_WITH_EPOCHS.findall(sent))
    epochs = _SENT_EPOCHS.search(sent)
    leader_epoch, partition_epoch = (int(epochs[1]), int(epochs[2])) if epochs else (-1, -1)
    return members, leader_epoch, partition_epoch


_CHANGE = re.compile(r"(\w+): (\[[^\]]*\]|-?\w+) -> (\[[^\]]*\]|-?\w+)")


def changes(text: str) -> dict[str, tuple[str, str]]:
    """`isr: [1, 2] -> [2], leader: 1 -> 2` as {"isr": ("[1, 2]", "[2]"), ..}."""
    return {name: (old, new) for name, old, new in _CHANGE.findall(text)}


_FETCH_DATA = re.compile(
    r"(?P<tp>[A-Za-z0-9._\-]+-\d+)=PartitionData\(topicId=(?P<topic_id>[^,]*), fetchOffset=(?P<offset>-?\d+), "
    r"logStartOffset=(?P<log_start>-?\d+), maxBytes=\d+, currentLeaderEpoch=Optional(?:\[(?P<epoch>\d+)\]|\.empty), "
    r"lastFetchedEpoch=Optional(?:\[(?P<last_epoch>\d+)\]|\.empty)\)"
)
_METADATA = re.compile(r"metadata=\(sessionId=(?P<session>\w+), epoch=(?P<epoch>\w+)\)")
_REMOVED = re.compile(r"removed=(?P<tps>.*?), replaced=")
_REMOVED_TP = re.compile(r"(?:[A-Za-z0-9_\-]+:)?([A-Za-z0-9._\-]+-\d+)")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a fetch asks for one partition; -1 is undefined, as on the wire."""

    offset: int
    epoch: int
    last_epoch: int
    log_start: int


@dataclass(frozen=True, slots=True)
class FetchLine:
    """A `Sending fetch request` line: session id 0 when there is none yet, session epoch 0 for a full fetch."""

    session: int
    session_epoch: int
    asked: Mapping[str, Asked]
    removed: tuple[str, ...]
    topic_ids: Mapping[str, str]


def fetch_line(request: str) -> FetchLine:
    """The parts of `(type=FetchRequest, .. fetchData={..}, .. removed=.., metadata=(sessionId=.., epoch=..), ..)`."""
    asked: dict[str, Asked] = {}
    topics: dict[str, str] = {}
    for found in _FETCH_DATA.finditer(request):
        asked[found["tp"]] = Asked(
            int(found["offset"]), int(found["epoch"] or -1), int(found["last_epoch"] or -1), int(found["log_start"])
        )
        topics[found["tp"].rpartition("-")[0]] = found["topic_id"]
    metadata, removed = _METADATA.search(request), _REMOVED.search(request)
    session = metadata["session"] if metadata else "INVALID"
    epoch = metadata["epoch"] if metadata else "INITIAL"
    return FetchLine(
        0 if session == "INVALID" else int(session),
        {"INITIAL": 0, "FINAL": -1}.get(epoch, -1) if epoch.isalpha() else int(epoch),
        asked,
        tuple(_REMOVED_TP.findall(removed["tps"])) if removed else (),
        topics,
    )
