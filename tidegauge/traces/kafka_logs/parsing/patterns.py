"""What Kafka's log messages say: one table of patterns, nothing else.

Rules of this file

1. A row is (what it says, logger without its package, pattern). Packages moved between releases (kafka.log.UnifiedLog is
   org.apache.kafka.storage.internals.log.UnifiedLog since 4.1), class names did not.
2. A pattern is searched, not matched whole: prefixes such as `[Partition alpha-0 broker=1] ` differ between releases. So it
   begins with a text, or with ^.
3. Group names are field names; `tp` is the topic-partition.
4. One row reads all releases where that is possible. Where releases differ, the difference is noted beside the row.
5. From where it begins, a pattern takes time in proportion to the line, whatever the line is: what follows a `.*?` is found
   once and for all (an atomic group, `(?>..)`), and a list in brackets ends at the next bracket of either kind.
"""

_TP = r"(?P<tp>(?>[A-Za-z0-9._\-]+-\d+))"
_OFFSET = r"\(offset=(?P<{}>-?\d+),? ?segment=[^)]*\)"  # 3.4 has no comma, 3.5 no space either
_FROM_TO = f" from {_OFFSET.format('hw_before')} to {_OFFSET.format('hw')}"
_ENTRY = r"EpochEntry[(\[]epoch=(?P<epoch>\d+), startOffset=(?P<start>\d+)[)\]]"  # a record with square brackets since 4.2
_LOG = rf"\[UnifiedLog partition={_TP}, dir=[^\]]*\] "
_PARTITION = rf"\[Partition {_TP} broker=\d+\] "
_CACHE = rf"\[LeaderEpochCache {_TP}\] "
_PEER = r"leaderId=(?P<peer>\d+), fetcherId=(?P<fetcher>\d+)\] "
_TOPIC = r"(?:Some\((?P<topic_id>[^)]*)\)|None)"
_ROLE = (
    r"starts at leader epoch (?P<leader_epoch>\d+) from offset (?P<leo>\d+) with partition epoch (?P<partition_epoch>\d+)"
)
_STATE = r"TruncationState\(offset=(?P<target>-?\d+), completed=(?P<completed>true|false)\)"
_SENT = r"sentLeaderAndIsr=(?P<sent>(?>.*?partitionEpoch=\d+))"
_PENDING = rf"Pending\w+Isr\((?>.*?(?=sentLeaderAndIsr=)){_SENT}"
_CONFIG_READ = r"Updating topic (?P<topic>\S+) with new configuration : (?>.*?\bmin\.insync\.replicas -> (?P<min_isr>\d+))?"
_FUTURE = r"(?P<future>[^\s,]+)/[^/\s,]+-future"  # of AlterReplicaLogDirs (KIP-113)
_UNCLEAN = "since no clean shutdown file was found"
_CLEAN = "since clean shutdown file was found"
_AGAIN = (
    rf"Skipped the become-{{}} state change for {_TP} with topic id {_TOPIC}"
    r"(?=.*?\bisr=\[(?P<isr>[^\[\]]*)\])(?=.*?\bleader=(?P<leader>-?\d+))(?=.*?\bleaderEpoch=(?P<leader_epoch>-?\d+))"
    r"(?=.*?\bpartitionEpoch=(?P<partition_epoch>\d+))"
)
# 3.x prints a LeaderAndIsrPartitionState, 4.x a PartitionRegistration; the names inside are the same, their order is not.

_REGISTERED = (
    rf"{_TP} with topic ID (?P<topic_id>\S+) and PartitionRegistration\(replicas=\[(?P<replicas>[^\[\]]*)\]"
    r"(?>.*?\bisr=\[(?P<isr>[^\[\]]*)\])"
    r"(?:(?>.*?\bremovingReplicas=\[(?P<removing>[^\[\]]*)\], addingReplicas=\[(?P<adding>[^\[\]]*)\])"
    r"(?:, elr=\[(?P<elr>[^\[\]]*)\], lastKnownElr=\[(?P<last_known_elr>[^\[\]]*)\])?)?"
    r"(?>.*?\bleader=(?P<leader>-?\d+),)"
    r"(?>.*?leaderEpoch=(?P<leader_epoch>\d+), partitionEpoch=(?P<partition_epoch>\d+))"
)

_LOST = r"Error sending fetch request \(sessionId=\w+, epoch=\w+\) to node (?P<peer>\d+)"

_PROCESS = (
    ("process-started", "LoggingSignalHandler", r"Registered signal handlers"),
    ("process-stopping", "LoggingSignalHandler", r"Terminating process due to signal"),
    ("status-changed", "BrokerServer", r"Transition from (?P<status_before>[A-Z_]+) to (?P<status>[A-Z_]+)"),
    ("logs-closed", "LogManager", r"^Shutdown complete\."),
    ("version", "AppInfoParser", r"^Kafka version: (?P<version>\S+)"),
    ("unclean-start", "LogManager", rf"Recovering \d+ logs from .* {_UNCLEAN}"),
    ("unclean-start", "LogManager", rf"Attempting recovery for all logs in .* {_UNCLEAN}"),  # 3.4
    ("clean-start", "LogManager", rf"Skipping recovery of \d+ logs from .* {_CLEAN}"),
    ("clean-start", "LogManager", rf"Skipping recovery for all logs in .* {_CLEAN}"),  # 3.4
    (
        "log-created",
        "LogManager",
        (
            rf"^Created log for partition {_TP} in (?:{_FUTURE}|\S+) with properties "
            r"\{(?:.*?\bmin\.insync\.replicas=(?P<min_isr>\d+))?"
        ),
    ),
    # BrokerMetadataPublisher until 3.4
    ("config-read", "DynamicConfigPublisher", _CONFIG_READ),
    ("config-read", "BrokerMetadataPublisher", _CONFIG_READ),
    (
        "log-deleted",
        "LogManager",
        rf"^Log for partition {_TP} is renamed to (?P<dir>\S+)/[^/\s]+-delete and is scheduled for deletion",
    ),
    (
        "log-replacing",
        "LogManager",
        rf"^Attempting to replace current log Log\(dir=(?P<dir>[^,]*)/{_TP},.* with Log\(dir={_FUTURE},",
    ),
    ("log-replaced", "LogManager", rf"^The current replica is successfully replaced with the future replica for {_TP}"),
    ("future-completed", "LogManager", rf"^Completed load of Log\(dir=(?P<future>[^,]*)/{_TP}\.[^/,.]+-future,"),
    (
        "log-completed",
        "LogManager",
        (
            r"^Completed load of Log\(dir=[^,]*/(?P<tp>[^/,]+-\d+),.*"
            r"logStartOffset=(?P<log_start>\d+), logEndOffset=(?P<leo>\d+)\)"
        ),
    ),
    ("log-loaded", "Partition", rf"Log loaded for partition {_TP} with initial high watermark (?P<hw>\d+)"),
    ("log-there", "Partition", _PARTITION + "(?:Unified)?Log already exists"),
)

_ROLES = (
    ("partition-created", "logger", rf"Creating new partition {_TP} with topic id (?P<topic_id>[\w\-]+)"),
    (
        "leader",
        "logger",
        rf"Leader {_TP} with topic id {_TOPIC} {_ROLE}, high watermark (?P<hw>\d+), ISR \[(?P<isr>[^\]]*)\]",
    ),
    (
        "follower",
        "logger",
        rf"Follower {_TP} {_ROLE} and high watermark (?P<hw>\d+)\. Current leader is (?P<leader>-?\d+)\.",
    ),
    (
        "leader-again",
        "logger",
        _AGAIN.format("leader") + r".*?already the leader with leader epoch \d+\. Current high watermark (?P<hw>\d+)",
    ),
    ("follower-again", "logger", _AGAIN.format("follower") + r".*?already a follower with leader epoch"),
)

_LOG_FILE = (
    (
        "appended",
        "UnifiedLog",
        # first offset: `Some((offset=1 segment=..))` 3.4, `Optional[(offset=1segment=..)]` 3.5,
        # `Optional[(offset=1, segment=..)]` 3.6, `1` 4.x
        _LOG
        + r"Appended message set with last offset: -?\d+, first offset: (?:(?:Some\(|Optional\[)\(offset=)?"
        + r"(?P<rec_base>\d++).*?, next offset: (?P<rec_end>\d+)",
    ),
    ("append-failed", "LogDirFailureChannel", rf"^Error while appending records to {_TP} in dir "),
    ("high-watermark", "UnifiedLog", _LOG + "Setting high watermark " + _OFFSET.format("hw")),
    ("high-watermark-lowered", "UnifiedLog", _LOG + "Non-monotonic update of high watermark" + _FROM_TO),
    ("cut", "UnifiedLog", _LOG + r"Truncating to offset (?P<leo>\d+)"),
    (
        "cut-nothing",
        "UnifiedLog",
        _LOG + r"Truncating to (?P<target>\d+) has no effect as the largest offset in the log is (?P<last>-?\d+)",
    ),
    # to 3.5 without the log start, which is the offset
    ("cut-all", "UnifiedLog", _LOG + r"Truncate and start at offset (?P<leo>\d++)(?:, logStartOffset: (?P<log_start>\d+))?"),
    (
        "cut-below-high-watermark",  # since 4.2
        "UnifiedLog",
        _LOG + r"Truncating \S+ to offset (?P<target>\d+) below high watermark (?P<hw_before>\d+)",
    ),
    ("log-start", "UnifiedLog", _LOG + r"Incremented log start offset to (?P<log_start>\d+) due to (?P<reason>.*)"),
    ("epoch-entry", "LeaderEpochFileCache", _CACHE + "Appended new epoch entry " + _ENTRY),
    (
        "epochs-cut-at-end",
        "LeaderEpochFileCache",
        _CACHE + r"Cleared entries (?P<entries>.*) from epoch cache after truncating to end offset (?P<end>\d+)",
    ),
    # the printed `rewrote first entry` is the entry before it was rewritten, so only the offset is read
    (
        "epochs-cut-at-start",
        "LeaderEpochFileCache",
        _CACHE + r"Cleared entries .* after truncating to start offset (?P<start>\d+)",
    ),
)

_LEADER = (
    ("leader-high-watermark", "Partition", _PARTITION + "High watermark updated" + _FROM_TO),
    (
        "leader-high-watermark-kept",
        "Partition",
        _PARTITION + r"Skipping update high watermark(?: since new hw \(offset=(?P<new_hw>-?\d++))?+"
        r"(?>.*?All current LEOs are Set\()(?P<leos>.*)\)",
    ),
    ("leader-high-watermark-kept", "Partition", _PARTITION + "Not increasing HWM"),
    (
        "recorded",
        "Partition",
        _PARTITION
        + r"Recorded replica (?P<peer>\d+) log end offset \(LEO\) position (?P<remote_leo>\d+) and log start offset",
    ),
    (
        "no-replica",  # what it counts for is gone: the leader follows by now, or the topic is deleted
        "Partition",
        _PARTITION + r"The replica state of replica ID:\[(?P<peer>\d+)\] doesn't exist in the leader node",
    ),
    (
        "expand-isr",
        "Partition",
        _PARTITION + r"Submitting ISR state change PendingExpandIsr\(newInSyncReplicaId=(?P<peer>\d+), " + _SENT,
    ),
    (
        "shrink-isr",
        "Partition",
        _PARTITION
        + r"Submitting ISR state change PendingShrinkIsr\(outOfSyncReplicaIds=(?>.*? (?=sentLeaderAndIsr=))"
        + _SENT,
    ),
    (
        "shrinking",
        "Partition",
        _PARTITION
        + r"Shrinking ISR from [\d,]* to (?P<isr>[\d,]*)\. Leader: \(highWatermark: (?P<hw>\d+), endOffset: (?P<leo>\d+)\)",
    ),
    (
        "isr-answer",
        "DefaultAlterPartitionManager",
        # `beta-0` 3.x, `<topic id>:0` 4.2
        (
            r"handled AlterPartition request for (?P<partition>\S+?): PartitionData\(partitionIndex=\d+, "
            r"errorCode=(?P<error>-?\d+), leaderId=-?\d+, leaderEpoch=-?\d+, isr=\[(?P<isr>[^\]]*)\]"
            r".*?partitionEpoch=(?P<partition_epoch>-?\d+)"
        ),
    ),
    (
        "isr-refused",
        "Partition",
        _PARTITION
        + rf"Failed to alter partition to {_PENDING}"
        + r".* since the controller rejected the request with (?P<reason>\w+)",
    ),
    (
        "isr-ignored",
        "Partition",
        # what it was updated to may be a proposal again, which ends with the ISR that was committed before it
        _PARTITION
        + rf"Ignoring failed ISR update to {_PENDING}"
        + r"(?>.*? since we have already updated state to )"
        + r".*CommittedPartitionState[(\[]isr=(?:Set\(|List\(|\[)(?P<isr>[\d, ]*)",
    ),
    (
        "isr-updated",
        "Partition",
        _PARTITION + r"ISR updated to (?P<isr>[\d,]+) .*version updated to (?P<partition_epoch>\d+)",
    ),
)

_FOLLOWER = (
    ("sending", "ReplicaFetcherThread", _PEER + r"Sending fetch request (?P<request>\(type=FetchRequest.*)"),
    (
        "received",
        "ReplicaFetcherThread",
        # `Received 0 messages` 3.4, `Received 0 bytes of messages` later
        _PEER
        + rf"Follower has replica log end offset (?P<leo_before>\d+) for partition {_TP}\. "
        + r"Received (?P<size>\d+) (?:bytes of )?messages and leader hw (?P<res_hw>-?\d+)",
    ),
    (
        "after-append",
        "ReplicaFetcherThread",
        rf"Follower has replica log end offset (?P<leo>\d+) after appending \d+ bytes of messages for partition {_TP}",
    ),
    (
        "follower-high-watermark",
        "ReplicaFetcherThread",
        (
            r"Follower received high watermark -?\d+ from the leader (?:and updated replica high watermark to (?P<hw>\d+)"
            rf"|but did not update replica high watermark) for partition {_TP}"
        ),
    ),
    (
        "truncating",
        "ReplicaFetcherThread",
        _PEER
        + rf"Truncating partition {_TP} with {_STATE} due to leader epoch and offset "
        + r"EpochEndOffset\(errorCode=(?P<error>-?\d+), partition=\d+, leaderEpoch=(?P<div_epoch>-?\d+), "
        + r"endOffset=(?P<div_end>-?\d+)\)",
    ),
    (
        "truncating-to-high-watermark",
        "ReplicaFetcherThread",
        rf"Truncating partition {_TP} with {_STATE} due to local high watermark (?P<hw_before>\d+)",
    ),
    (
        "reset-to-leader-start",
        "ReplicaFetcherThread",
        _PEER
        + rf"Truncate fully and reset fetch offset for partition {_TP} from (?P<req_offset>\d+) "
        + r"to the current leader's start offset (?P<leader_start>\d+)",
    ),
    (
        "reset-to-leader-start",  # to 3.5, where a log that reaches that far is kept
        "ReplicaFetcherThread",
        _PEER
        + rf"Reset fetch offset for partition {_TP} from (?P<req_offset>\d+) "
        + r"to current leader's start offset (?P<leader_start>\d+)",
    ),
    (
        "reset-to-leader-end",
        "ReplicaFetcherThread",
        _PEER
        + rf"Reset fetch offset for partition {_TP} from (?P<req_offset>\d+) "
        + r"to current leader's latest offset (?P<leader_end>\d+)",
    ),
    (
        "reset-to-log-end",
        "ReplicaFetcherThread",
        _PEER
        + rf"Reset fetch offset for partition {_TP} from (?P<req_offset>\d+) "
        + r"to the current local replica's end offset (?P<target>\d+)",
    ),
    (
        "reset-done",
        "ReplicaFetcherThread",
        (
            rf"Current offset \d+ for partition {_TP} is out of range, which typically implies a leader change\. "
            r"Reset fetch offset to (?P<target>\d+)"
        ),
    ),
    ("fetch-error-75", "ReplicaFetcherThread", _PEER + rf"Remote broker has a smaller leader epoch for partition {_TP} "),
    (
        "fetch-error-75",
        "ReplicaFetcherThread",
        _PEER + rf"Partition {_TP} has a newer epoch \(\d+\) than the current leader",
    ),  # 3.4
    (
        "fetch-error-74",
        "ReplicaFetcherThread",
        _PEER + rf"Partition {_TP} has an older epoch \(\d+\) than the current leader",
    ),
    ("fetch-error-6", "ReplicaFetcherThread", _PEER + rf"Remote broker is not the leader for partition {_TP},"),
    ("fetch-error-100", "ReplicaFetcherThread", _PEER + rf"Received UNKNOWN_TOPIC_ID from the leader for partition {_TP}\."),
    ("fetcher-added", "ReplicaFetcherManager", r"Added fetcher to broker (?P<peer>\d+) for partitions "),
    # in a fetcher's thread with its number before it
    ("fetch-lost", "FetchSessionHandler", r"fetcherId=(?P<fetcher>\d+)\] " + _LOST),
    ("fetch-lost", "FetchSessionHandler", _LOST),
)

_CONTROLLER = (
    (
        "broker-registered",
        "ClusterControlManager",
        # `Registered new broker: `, `Re-registered broker id 1: ` 3.4; `Replayed .. broker 1: ` later
        r": RegisterBrokerRecord\(brokerId=(?P<peer>\d+),.*?brokerEpoch=(?P<broker_epoch>\d+)",
    ),
    (
        "broker-changed",
        "ClusterControlManager",
        (
            r"BrokerRegistrationChangeRecord\(brokerId=(?P<peer>\d+), brokerEpoch=(?P<broker_epoch>\d+), "
            r"fenced=(?P<fenced>-?\d+)"
        ),
    ),
    (
        "min-isr-written",
        "ConfigurationControlManager",
        (
            r"Replayed ConfigRecord for ConfigResource\(type=TOPIC, name='(?P<topic>[^']+)'\) which set configuration "
            r"min\.insync\.replicas to (?:(?P<min_isr>\d+)|null)$"
        ),
    ),
    ("registered", "ReplicationControlManager", "Replayed PartitionRecord for new partition " + _REGISTERED),
    ("registered", "ReplicationControlManager", "Created partition " + _REGISTERED),  # 3.4
    (
        "changed",
        "ReplicationControlManager",
        rf"partition change for {_TP} with topic ID (?P<topic_id>[^:]+): (?P<changes>.*)$",
    ),
    ("activated", "QuorumController", r"Becoming the active controller at epoch \d+"),
    (
        "written",
        "QuorumController",
        r"Read-write operation \S+ will be completed when the log reaches offset (?P<offset>\d+)",
    ),
    ("renounced", "QuorumController", r"Reverting to last (?:committed|stable) offset (?P<offset>-?\d+)"),
    ("isr-altered", "ReplicationControlManager", rf"Node (?P<peer>\d+) has altered ISR for {_TP} to \[(?P<isr>[^\]]*)\]"),
)

TABLE: tuple[tuple[str, str, str], ...] = (*_PROCESS, *_ROLES, *_LOG_FILE, *_LEADER, *_FOLLOWER, *_CONTROLLER)
