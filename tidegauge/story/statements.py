"""What Kafka's INFO, WARN and ERROR lines say about a partition, release by release: one table, nothing else.

Rules of this file

1. A row is (what it says, the text that it is found by, what follows that text, what stands before it, the releases that
   print it, the logger). The text is searched in the line, whatever the layout around it: a pasted line without a date, a
   JSON export and a container's log are read by the same row.
2. What follows is matched where the text ends, what stands before is searched in the last `BEFORE` characters: a line is
   read in time proportional to its length.
3. Group names are field names. `tp` is the partition; `topic` and `number` are the two halves of `[topic,0]` (to 1.0);
   `node` is who wrote the line. Both are taken from the brackets before the text where the row has none.
4. Releases are the first and the last one that prints the line so; None: none before, or none after, that is known.
   They bound the release of a log that does not say it. `validation.kafka_statements` holds them against Kafka's sources.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

BEFORE = 420
"""Characters before the text of a row in which its partition and node stand: a topic has at most 249."""

_NAME = r"(?>[A-Za-z0-9._\-*]+-(?:\d+|[A-Z]\b))"  # somebody may have written *** over a topic, or X-N
TP = rf"(?P<tp>{_NAME})"
_OLD_TP = r"\[(?P<topic>[A-Za-z0-9._\-]+),\s?(?P<number>\d+)\]"
ANY_TP = rf"(?:\[(?P<topic>[A-Za-z0-9._\-]+),\s?(?P<number>\d+)\]|{TP})"
_CLIENT_TP = rf"(?:TopicPartition\(topic=u?'(?P<topic>[A-Za-z0-9._\-]+)', partition=(?P<number>\d+)\)|{TP})"
_ROLE_BEFORE = r"{}" + TP + r"(?: with topic id (?:(?:Some|Optional)[(\[](?P<topic_id>[\w\-]{{22}})[)\]]|None|\S+))? $"
_ISR = r"(?:\[(?=[\d, ]*\])|(?=[\d,]+ ))(?P<isr>(?:\d[\d, ]*\d|\d)?)"
_ZK_STATE = (
    r"\(Leader:(?P<leader>-?\d+),ISR:(?P<isr>[\d,]*),(?:LeaderRecoveryState:(?P<recovery>\w+),)?LeaderEpoch:(?P<leader_epoch>\d+),"
    r"(?:(?:ZkVersion|PartitionEpoch):(?P<version>\d+),)?"
)
_LEADER_AND_ISR = (
    r"LeaderAndIsr\(leader=(?P<leader>-?\d+), leaderEpoch=(?P<leader_epoch>\d+), "
    r"(?:isr=List\((?P<isr>[\d, ]*)\)|isrWithBrokerEpoch=List\((?P<isr_with_epochs>(?:[^()]|\([^()]*\))*)\))"
    r"(?:, leaderRecoveryState=(?P<recovery>\w+))?(?:, (?:zkVersion|partitionEpoch)=(?P<version>\d+))?"
)
_PARTITION_STATE = (
    r"PartitionState\((?>[^()\[\]]*?\bleader=(?P<leader>-?\d+)), leaderEpoch=(?P<leader_epoch>\d+), "
    r"isr=\[?(?P<isr>[\d, ]*)\]?, (?:zkVersion|partitionEpoch)=(?P<version>\d+)"
)
_FROM_TO = r"\(?(?:offset=)?(?P<from>\d++)[^)]*+\) to \(?(?:offset=)?(?P<to>\d+)"
_STATE = r"(?:Offset)?TruncationState\(offset=(?P<to>\d+), completed=(?P<completed>true|false)\)"
_RESET = r"(?P<from>\d+)(?: to|;) (?>.*?offset (?:to )?(?=\d))(?P<to>\d+)"
_OUT_OF_RANGE = (
    rf"(?P<from>\d+) for partition {ANY_TP} (?:is )?out of range(?:; reset offset|, which typically implies a leader change\. "
    r"Reset fetch offset) to (?P<to>\d+)"
)
_DIR = r"(?P<directory>[^\s,()\"]+[^\s,().\"])"
_TOPIC_DIR = r"(?P<directory>[^,)]*?)[/\\](?P<tp>[^/\\,)]+)"
_DIRECTORY_ERROR = (
    r"(?P<what>(?:appending|creating(?! ephemeral)|deleting|fetching|flushing|loading|locking|reading checkpoint|renaming|rolling|truncating"
    r"|writing)\b[^/\\:]{0,330}?)(?P<directory>(?:[A-Za-z]:)?[/\\][^\s,():\"]*[^\s,().:\"])(?:: (?P<error>.*))?"
)
_OWN_FILE = r"(?:[A-Za-z]:)?[/\\][^\s:]{1,300}?(?:meta\.properties|checkpoint|\d{20}\.(?:log|index|timeindex|txnindex|snapshot))(?:\.tmp)?"
_REGISTRATION = (
    rf"{TP}(?: with topic ID (?P<topic_id>[\w\-]{{22}}))? and PartitionRegistration\((?=.*?\bisr=\[(?P<isr>[\d, ]*)\])"
    r"(?=.*?\bleader=(?P<leader>-?\d+))(?=.*?\bleaderEpoch=(?P<leader_epoch>\d+))(?=.*?\bpartitionEpoch=(?P<version>\d+))"
)

_CHANNEL = (
    r"\[(?:RaftManager (?:id|nodeId)|TransactionCoordinator id|Controller id|ReplicaFetcher replicaId|"
    r"(?:Broker|Node)ToControllerChannelManager (?:broker|id))=(?P<node>\d+)[^\]]*\] $"
)
_RAFT = r"\[RaftManager (?:id|nodeId)=(?P<node>\d+)\] $"
_RAFT_STATE = (
    r"(?P<state>Unattached|Voted|Prospective|Candidate|Follower|Leader|Resigned)(?:State)?\((?:[^()=]{1,20}=[^()=,]*, ?){0,3}"
    r"epoch=(?P<epoch>\d+)(?:, leader(?:Id)?=(?P<leader>\d+))?(?:(?=[^()]{0,200}?\bvoters=\[(?P<voters>[\d, ]*)\]))?"
    r"(?:.*? from (?:Leader\(localId=\d+, epoch=(?P<led>\d+)|FollowerState\((?:fetchTimeoutMs=\d+, )?epoch=(?P<followed>\d+), leader(?:Id)?="
    r"(?P<lost>\d+)))?"
)

_STATUS_OF = (
    r"^[|> \t]{0,20}(?P<replica>\d{1,10})\s+(?:[\w\-]{22}\s+)?(?P<end>\d+)\s+(?P<lag>-?\d+)\s+(?:-?\d+|\d+ ms ago)\s+(?:-?\d+|\d+ ms ago)"
    r"\s{0,60}$"
)
"""A row of kafka-metadata-quorum describe --replication, before the last column."""

Row = tuple[str, str, str, str, tuple[str | None, str | None], str]

# fmt: off
_PROCESS: tuple[Row, ...] = (
    ("starting", "Registered signal handlers for ", "", "", ("2.3", None), "LoggingSignalHandler"),
    ("starting", "starting (kafka.server.KafkaServer)", "", "", (None, "3.9"), "KafkaServer"),
    ("starting", "Transition from SHUTDOWN to STARTING", "", "", ("2.8", None), "BrokerServer, ControllerServer"),
    ("started", "] started", "", r"\[KafkaServer id=(?P<node>\d+)$", ("1.0", "3.9"), "KafkaServer"),
    ("started", "], started", "", r"\[Kafka Server (?P<node>\d+)$", (None, "0.11"), "KafkaServer"),
    ("started", "Kafka Server started", "", "", ("2.8", None), "KafkaRaftServer"),
    ("started", "Transition from STARTING to STARTED", "", "", ("2.8", None), "BrokerServer, ControllerServer"),
    ("stopping", "Terminating process due to signal ", "", "", ("1.0", None), "LoggingSignalHandler"),
    ("stopping", " shutting down", "", r"\[(?:KafkaServer id=\d+\]|Kafka Server \d+\],)$", (None, "3.9"), "KafkaServer"),
    ("session-expired", "Session expired.", "", r"\[ZooKeeperClient[^\]]{0,60}\] $", ("1.0", "3.9"), "ZooKeeperClient"),
    ("session-expired", "ZK expired; shut down all controller components", "", r"\[SessionExpirationListener on (?P<node>\d+)\], $", (None, "1.0"), "KafkaController"),
    ("client-session-expired", "Unable to reconnect to ZooKeeper service, session ", r"0x\w+ has expired", "", (None, "3.9"), "ClientCnxn"),
    ("session-timeout", "nitiating client connection, connectString=", r"\S{1,400} sessionTimeout=(?P<timeout>\d+)", "", (None, "3.9"), "ZooKeeper"),
    ("paused", "Full GC", r".{0,300}?(?P<seconds>\d{1,6}\.\d{1,9}) secs\]", "", (None, None), "the JVM to 8"),
    ("paused", "Pause Full ", r".{0,120}?(?P<milliseconds>\d{1,9}\.\d{1,9})ms", "", (None, None), "the JVM since 9"),
    ("epoch-updated", "Updated PartitionLeaderEpoch. New: {epoch:", rf"(?P<leader_epoch>\d+), offset:(?P<offset>\d+)\}}(?:, Current: [^,]{{0,60}}, [^,]{{0,60}} for Partition: {TP})?", "", ("0.11", "1.1"), "LeaderEpochFileCache"),
    ("not-registered", "creating ephemeral at ", r"/brokers/ids/(?P<node>\d+), (?P<error>node already exists and owner '\S+ does not match current session)", "", ("1.1", "3.9"), "KafkaZkClient$CheckedEphemeral"),
    ("not-registered", "Unable to register broker ", r"(?P<node>\d+) because the controller returned error (?P<error>[A-Z_]+)", "", ("2.8", None), "BrokerLifecycleManager"),
    ("not-registered", " sent a heartbeat request but received error ", r"(?P<error>[A-Z_]+)", r"Broker (?P<node>\d+)$", ("2.8", None), "BrokerLifecycleManager"),
    ("heartbeat-refused", "ailed with StaleBrokerEpochException", r"(?:.*?(?:for broker id|from broker) (?P<broker>\d+))?(?:.*?Expected broker epoch (?P<expected>\d+), but got (?:broker epoch )?(?P<got>\d+))?", r"\[(?:QuorumController id=|Controller )(?P<node>\d+)\] processBrokerHeartbeat: (?:event )?f$", ("2.8", None), "QuorumController"),
    ("heartbeat-late", "processExpiredBrokerHeartbeat: control", r"(?:ler event queue overloaded\. Timed out heartbeat from broker (?P<broker>\d+))?", r"\[(?:QuorumController id=|Controller )(?P<node>\d+)\] $", ("3.5", None), "ReplicationControlManager"),
    ("too-few-brokers", "eplication factor: ", r"(?P<wanted>\d+) larger than available brokers: (?P<brokers>\d+)", "", (None, None), "AdminUtils"),
    ("too-few-brokers", "he target replication factor of ", r"(?P<wanted>\d+) cannot be reached because only (?P<brokers>\d+) broker\(s\) are registered", "", ("3.0", None), "StripedReplicaPlacer"),
    ("not-controller", "The active controller appears to be node ", r"(?P<active>\d+)", "", ("2.8", None), "NotControllerException"),
    ("not-controller", "No controller appears to be active", "", "", ("2.8", None), "NotControllerException"),
    ("leaders-not-moved", "Error during controlled shutdown, ", r".{0,160}?: (?P<error>.*?)(?: \(kafka\.|$)", r"\[Kafka ?Server (?:id=)?(?P<node>\d+)\],? $", (None, "3.9"), "KafkaServer"),
    ("leaders-not-moved", "Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed", "", r"\[Kafka ?Server (?:id=)?(?P<node>\d+)\],? $", (None, "3.9"), "KafkaServer"),
    ("migration-conflict", "Check op on KRaft Migration ZNode failed", r"(?:\. (?:Expected|Sent) zkVersion = (?P<version>\d+))?", "", ("3.4", "3.9"), "KafkaZkClient"),
    ("migration", "No brokers are known to KRaft, waiting for brokers to register", "", r"\[KRaftMigrationDriver (?:id=)?(?P<node>\d+)\] $", ("3.4", "3.9"), "KRaftMigrationDriver"),
    ("request-failed", "rror when handling request", "", r"\[KafkaApi-(?P<node>\d+)\] E$", (None, "2.7"), "KafkaApis"),
    ("task-failed", "ncaught exception in scheduled task '", r"(?P<task>[\w\-]+)'", "", (None, None), "KafkaScheduler"),
    ("thread-died", " Error due to", "", r"\[(?P<thread>(?![^\]]*(?:[cC]onsumer|finder|mirror))[^\[\]]{1,120})\][:,]$", (None, None), "ShutdownableThread"),
    ("request-failed", "No space left on device", r"(?= \(kafka\.utils\.CoreUtils)", "", (None, "3.9"), "CoreUtils"),
    ("request-failed", "Disk quota exceeded", r"(?= \(kafka\.utils\.CoreUtils)", "", (None, "3.9"), "CoreUtils"),
    ("in-recovery", "at kafka.log.LogSegment.recover(", "", "", (None, None), "LogSegment"),
    ("stopped", "shut down completed", "", r"\[(?:KafkaServer|BrokerServer|ControllerServer) id=(?P<node>\d+)\] $", ("1.0", None), "KafkaServer"),
    ("stopped", "shut down completed", "", r"\[Kafka Server (?P<node>\d+)\], $", (None, "0.11"), "KafkaServer"),
    ("stopped", "Transition from SHUTTING_DOWN to SHUTDOWN", "", "", ("2.8", None), "BrokerServer, ControllerServer"),
    ("cluster", "Cluster ID = ", r"(?P<cluster>[\w\-]{22})", "", ("0.10.1", "3.9"), "KafkaServer"),
    ("cluster", "with clusterId ", r"(?P<cluster>[\w\-]{22})", "", ("3.3", None), "QuorumController"),
    ("cluster", " in cluster ", r"(?P<cluster>[\w\-]{22}) is now", "", ("2.8", None), "BrokerLifecycleManager"),
    ("release", "Kafka version", r" ?: (?P<release>\d+(?:\.\d+)+(?:-[\w.]+)?)", "", (None, None), "AppInfoParser"),
    # a directory that was not shut down cleanly; 2.8 says so of an empty one, too
    ("unclean", "since no clean shutdown file was found", "", rf"(?P<logs>\d+|all) logs? (?:from|in) {_DIR} $", ("2.6", None), "LogManager"),
    ("unclean", "Recovering unflushed segment ", r"\d+", "", (None, None), "Log, LogLoader"),
    ("clean", "since clean shutdown file was found", "", "", ("2.6", None), "LogManager"),
    ("clean", "Found clean shutdown file. Skipping recovery", "", "", (None, "2.5"), "LogManager"),
    ("empty", "No logs found to be loaded in ", "", "", ("3.5", None), "LogManager"),
    ("index-rebuilt", "Found a corrupted index file", "", "", (None, None), "Log, LogLoader"),
    ("directory-error", "rror while ", _DIRECTORY_ERROR, "", ("1.0", None), "LogDirFailureChannel"),
    ("directory-error", "Failed to clean up log for ", r"(?P<what>(?>[A-Za-z0-9._\-]+-\d+) )in dir (?P<directory>\S+) due to IOException", "", ("1.0", None), "LogCleaner"),
    ("directory-error", "Failed to create or validate ", rf"(?P<what>data directory ){_DIR}", "", ("1.0", None), "LogDirFailureChannel"),
    ("io-error", ": Input/output error", "", rf"Exception: (?P<path>{_OWN_FILE})$", (None, None), "java.nio.file"),
    ("io-error", ": Read-only file system", "", rf"Exception: (?P<path>{_OWN_FILE})$", (None, None), "java.nio.file"),
    ("directory-made", " not found, creating it", "", r"[Ll]og directory '?(?P<directory>[^\s']+)'?$", (None, None), "LogManager"),
    ("directory-failed", "Stopping serving ", rf"(?:logs|replicas) in dir {_DIR}", "", ("1.0", None), "LogManager, ReplicaManager"),
    ("directory-failed", "because they are in the failed log directory ", _DIR, "", ("1.1", None), "ReplicaManager"),
    ("directory-offline", "marked offline, remaining directories: ", "", r"Directories \[?(?P<directory>[^\]]{1,200}?)\]? in broker (?P<broker>\d+) $", ("3.7", None), "ReplicationControlManager"),
    ("fatal", "Shutdown broker because ", r"(?P<error>(?:all log dirs(?: in)?|none of the specified log dirs from|the metadata log dir) .+? (?:ha(?:ve|s) failed|can be created or validated))", "", ("1.0", None), "LogManager"),
    ("fatal", "Halting due to unrecoverable I/O error", r"(?P<error>[^(]*)", "", (None, "0.11"), "ReplicaManager"),
    ("fatal", "Disk error while replicating data", rf"(?: for {ANY_TP})?", "", (None, "0.11"), "ReplicaFetcherThread"),
    ("fatal", "because log truncation is not allowed for ", rf"(?:partition |topic )?(?:{ANY_TP}|[\w.\-]+),? {{1,3}}[Cc]urrent leader(?:'s| (?P<leader>\d+)'s) latest offset (?P<leader_end>\d+) is less than replica(?:'s| (?P<node>\d+)'s) latest offset (?P<log_end>\d+)", "", (None, "2.0"), "ReplicaFetcherThread"),
    ("fatal", "because log truncation is not allowed", r"(?P<error>[^(]*)", "", (None, "2.0"), "ReplicaFetcherThread"),
    ("fatal", "The Cluster ID ", r"(?P<cluster_id>[\w\-]+) doesn't match stored clusterId (?:Some\()?(?P<stored>[\w\-]+)", "", ("2.4", "3.9"), "KafkaServer"),
    ("fatal", "Invalid cluster.id in: ", r"\S+\. Expected (?P<cluster_id>[\w\-]{22}), but read (?P<stored>[\w\-]{22})", "", ("3.7", None), "MetaPropertiesEnsemble"),
    ("fatal", "A broker is already registered on the path ", r"/brokers/ids/(?P<node>\d+)", "", (None, None), "ZkUtils"),
    ("fatal", "There was an error in one of the threads during logs loading: ", r"(?P<error>.+?)(?: \(kafka\.|$)", "", ("0.8.2", None), "LogManager"),
    ("fatal", "Fatal error during ", r"(?P<error>\w+ (?:startup|shutdown))", "", (None, "3.9"), "KafkaServer"),
    ("fatal", "Exiting Kafka due to fatal exception", r"(?P<error>[^(]*)", "", (None, None), "Kafka$"),
    ("fatal", "Got exception while starting SharedServer", "", r"\[SharedServer id=(?P<node>\d+)\] $", ("3.4", None), "SharedServer"),
    ("fatal", "eceived a fatal error while waiting for ", r"(?P<error>[^(]*)", "", ("3.5", None), "FutureUtils"),
    ("fatal", "If using process.roles, ", r"(?:either )?controller\.quorum\.(?P<setting>bootstrap\.servers|voters) must", "", ("3.0", None), "KafkaConfig"),
    ("fatal", "Encountered fatal fault: ", r"(?P<error>[^(]*)", "", ("3.3", None), "ProcessTerminatingFaultHandler"),
    ("controller-conflict", "conflict in /controller data: ", r"\{[^{}]{0,100}?\"brokerid\": ?(?P<node>\d+)[^{}]{0,200}\} stored data: \{[^{}]{0,100}?\"brokerid\": ?(?P<active>\d+)", "", (None, "2.0"), "ZkUtils"),
    ("own-conflict", "I wrote this conflicted ephemeral node [", r"\{[^{}]{0,100}?\"brokerid\": ?(?P<node>\d+)[^{}]{0,200}\}\] at /controller a while back", "", (None, "0.11"), "ZkUtils"),
    ("controller", "eady to serve as the new controller with epoch ", r"(?P<controller_epoch>\d+)", "", (None, "3.9"), "KafkaController"),
    ("controller", "ecoming the active controller at epoch ", r"(?P<controller_epoch>\d+)", "", ("3.0", None), "QuorumController"),
    ("metadata-empty", "The metadata log appears to be empty. ", "", r"\[(?:QuorumController id=|Controller )(?P<node>\d+)\] (?:Performing controller activation\. )?$", ("3.3", None), "QuorumController"),
    ("unfenced", "Unfenced broker: ", r"(?:UnfenceBrokerRecord\(id=)?(?P<broker>\d+)", r"\[(?:QuorumController id=|Controller )(?P<node>\d+)\] $", ("2.8", "3.4"), "ClusterControlManager"),
    ("unfenced", "The broker has been unfenced. Transitioning from RECOVERY to RUNNING", "", r"\[BrokerLifecycleManager id=(?P<node>\d+)[^\]]*\] $", ("2.8", None), "BrokerLifecycleManager"),
    ("controller-resigned", "resigned as the controller", "", r"Broker (?P<node>\d+) $", (None, "0.11"), "KafkaController"),
    ("controller-resigned", "] Resigned", "", r"\[Controller id=(?P<node>\d+)$", ("1.0", "3.9"), "KafkaController"),
    ("controller-resigned", "Renouncing leadership and reverting to the last committed offset ", "", r"\[(?:QuorumController id=|Controller )(?P<node>\d+)\] (?:(?P<event>\w++): (?:event )?failed with (?:unknown server exception )?(?P<error>\w++))?.{0,200}$", ("2.8", None), "QuorumController"),
    ("write-given-up", "ailed with NotControllerException in ", r"(?P<waited>\d+) (?:us|microseconds)", r"\[(?:QuorumController id=|Controller )(?P<node>\d+)\] (?P<event>\w++): (?:event )?f$", ("3.0", None), "QuorumController"),
    ("controller-resigned", "Renouncing the leadership ", r"(?=at oldEpoch|due to)", "", ("2.8", None), "QuorumController"),
    ("voter-mismatch", "sent a voter key (", r"[^;]{1,120}?directoryId=(?:Optional\[)?(?P<voter>[\w\-]{22})[^;]{1,40} in the VOTE request that doesn't match the local key \((?:OptionalInt\[)?(?P<node>\d+)\]?, (?P<own>[\w\-]{22})\)", "", ("3.9", None), "KafkaRaftClient"),
    ("broker-left", "Fencing broker ", r"(?P<brokers>\d+)(?: at epoch \d+)? because (?P<why>its session has timed out)", "", ("2.8", None), "ReplicationControlManager"),
    ("stop-announced", "Shutting down broker ", r"(?P<broker>\d+)\b", r"\[Controller (?:id=)?\d+\]:? $", (None, "3.9"), "KafkaController"),
    ("left-announced", "from list of shutting down brokers", "", r"Removed (?:[A-Za-z]{1,20}\()?(?P<brokers>[\d, ]*)\)? $", (None, "3.9"), "KafkaController"),
    ("left-leading", "nvoking state change to OfflinePartition for partitions ", r"(?= ?\()", "", (None, "1.0"), "PartitionStateMachine"),
    ("broker-came", "Newly added brokers: ", r"(?P<brokers>\d+(?:,\d+)*), deleted brokers: ", "", (None, "3.9"), "KafkaController, ReplicaStateMachine"),
    ("broker-left", "Broker failure callback for ", r"(?P<brokers>\d[\d,]*)", "", (None, "3.9"), "KafkaController"),
    ("not-deleted", "Exception in kafka-delete-logs thread", r"(?:\.: (?P<error>\S+))?", "", ("0.10.2", None), "LogManager"),
    ("not-deleted", "Exception while deleting Log(dir=", r"(?P<directory>[^,]+?)[/\\][^,/\\]+-delete,", "", ("1.0", None), "LogManager"),
    ("topic-deleting", "Starting topic deletion for topics ", r"(?P<names>[A-Za-z0-9._\-,]+)", "", (None, "3.9"), "KafkaController, PartitionStateMachine"),
    ("topic-deleted", "Removed topic ", r"(?P<name>[A-Za-z0-9._\-]+) with ID ", "", ("2.8", "3.5"), "ReplicationControlManager"),
    ("topic-deleted", "Replayed RemoveTopicRecord for topic ", r"(?P<name>[A-Za-z0-9._\-]+) with ID ", "", ("3.6", None), "ReplicationControlManager"),
    ("topic-deleted", "Deletion of topic ", r"(?P<name>[A-Za-z0-9._\-]+) successfully completed", "", (None, "3.9"), "TopicDeletionManager"),
)

_NODES: tuple[Row, ...] = (
    ("quorum-state", "Completed transition to ", _RAFT_STATE, _RAFT, ("2.8", None), "QuorumState"),
    ("quorum-attempt", "Attempting durable transition to ", r"(?P<state>Unattached|Voted|Prospective|Candidate)(?:State)?\((?:[^()=]{1,20}=[^()=,]*, ?){0,3}epoch=(?P<epoch>\d+)", _RAFT, ("3.7", None), "QuorumState"),
    ("metadata-behind", "the loader is still catching up because we still don't know the high water mark", "", r"\[MetadataLoader id=(?P<node>\d+)\] .{0,60}$", ("3.5", None), "MetadataLoader"),
    ("metadata-caught-up", "he loader finished catching up to the current high water mark of ", r"\d+", r"\[MetadataLoader id=(?P<node>\d+)\] .{0,60}$", ("3.5", None), "MetadataLoader"),
    ("status-leader", "LeaderId: ", r"\s*(?P<leader>-?\d+)(?![\w,.)])", r"(?<![A-Za-z])$", ("3.3", None), "kafka-metadata-quorum"),
    ("status-epoch", "LeaderEpoch: ", r"\s*(?P<epoch>\d+)(?![\w,.)])", r"(?<![A-Za-z])$", ("3.3", None), "kafka-metadata-quorum"),
    ("status-lag", "MaxFollowerLag: ", r"\s*(?P<lag>-?\d+)(?![\w,.)])", r"(?<![A-Za-z])$", ("3.3", None), "kafka-metadata-quorum"),
    ("status-replica", "Leader  ", r"\s*$", _STATUS_OF, ("3.3", None), "kafka-metadata-quorum"),
    ("status-replica", "Follower", r"\s*$", _STATUS_OF, ("3.3", None), "kafka-metadata-quorum"),
    ("quorum-none", "In the new epoch ", r"(?P<epoch>\d+), the leader is \(none\)", r"\[QuorumController id=(?P<node>\d+)\] $", ("3.3", None), "QuorumController"),
    ("quorum-rejected", "Insufficient remaining votes to become leader (rejected by ", r"\[(?P<rejecting>.*?)\]\)", _RAFT, ("2.8", None), "KafkaRaftClient"),
    ("quorum-timeout", "Election has timed out, backing off for ", "", _RAFT, ("3.5", None), "KafkaRaftClient"),
    ("quorum-timeout", "Election timed out before receiving sufficient vote responses", "", _RAFT, ("4.0", None), "KafkaRaftClient"),
    ("quorum-alone", "Did not receive fetch request from the majority of the voters within ", r"(?P<limit>\d+)ms", "", ("3.7", None), "LeaderState"),
    ("unreachable", "Connection to node ", r"(?P<peer>-?\d+) (?:\((?P<address>[^)]*)\) )?could not be established", _CHANNEL, ("1.0", None), "NetworkClient"),
    ("disconnected", " disconnected.", "", r"\[RaftManager (?:id|nodeId)=(?P<node>\d+)\] Node (?P<peer>-?\d+)$", ("3.3", None), "NetworkClient"),
    ("unreachable", "Disconnecting from node ", r"(?P<peer>\d+) (?:on \S+ )?due to (?:socket connection setup|request) timeout", _CHANNEL, ("2.7", None), "NetworkClient"),
    ("unreachable", "Error connecting to node ", r"\S+ \(id: (?P<peer>\d+)", _CHANNEL, ("2.4", None), "NetworkClient"),
    ("api-versions-failed", " when making an ApiVersionsRequest with correlation id ", r"\d+", _CHANNEL.removesuffix(" $") + r" Received error (?P<error>[A-Z_]+) from node (?P<peer>-?\d+)$", ("0.10.2", None), "NetworkClient"),
    ("unheard", "because the RPC got timed out before it could be sent", "", r"\[BrokerLifecycleManager id=(?P<node>\d+)[^\]]*\] Unable to (?:send a heartbeat|register the broker) $", ("2.8", None), "BrokerLifecycleManager"),
    ("unreachable", "Cancelled in-flight BROKER_HEARTBEAT request ", r".*? due to node (?P<peer>\d+) being disconnected", r"\[(?:Broker|Node)ToControllerChannelManager (?:broker|id)=(?P<node>\d+)[^\]]*\] $", ("3.2", None), "NetworkClient"),
    ("unreachable", "fails to send request ", r"(?>.*? to broker )(?:id:|Node\(|\S+ \(id: ?)(?P<peer>\d+)", r"Controller (?P<node>\d+) epoch \d+ $", (None, "3.9"), "RequestSendThread"),
)

_LOG: tuple[Row, ...] = (
    ("dumped-segment", "Dumping ", r"(?:\S*[/\\])?(?P<tp>[^/\\\s]+-\d+)[/\\](?P<segment>\d{20})\.log\b", "", (None, None), "kafka-dump-log"),
    ("dumped-snapshot", "Snapshot end offset: ", r"(?P<end>\d+), epoch: (?P<epoch>\d+)", "", ("3.3", None), "kafka-dump-log"),
    ("dumped-quorum", "KRaftVersion ", r"\{.{0,40}?\"kRaftVersion\": ?(?P<kraft_version>\d+)", "", ("3.9", None), "kafka-dump-log"),
    ("dumped-quorum", "KRaftVoters", r" *\{.{0,40}?\"voters\": ?(?P<voters>\[.*)", "", ("3.9", None), "kafka-dump-log"),
    ("dumped-quorum", "controlType: LEADER_CHANGE", "", "", ("2.8", None), "kafka-dump-log"),
    ("dumped-batch", "baseOffset: ", r"(?P<first>\d+) lastOffset: (?P<last>\d+) (?>.*?partitionLeaderEpoch: )(?P<epoch>-?\d+) (?>.*?\bposition: )(?P<position>\d+) (?=.*?\bsize: (?P<size>\d+))(?=.*?\bisvalid: (?P<valid>true|false))", "", (None, None), "kafka-dump-log"),
    ("loaded", "Completed load of Log(dir=", _TOPIC_DIR + r",(?: topicId=(?P<topic_id>[\w\-]{22}),)?(?>.*?highWatermark=)(?P<high_watermark>\d+),(?>.*?logStartOffset=)(?P<log_start>\d+), logEndOffset=(?P<log_end>\d+)", "", ("2.4", None), "LogManager"),
    ("loaded", "Completed load of log ", r"(?:with )?(?:(?P<tp>(?>[A-Za-z0-9._\-]+-\d+)) with )?(?:\d+ (?:log )?segments?,? (?:and )?)?(?:log start offset (?P<log_start>\d+) and )?log end offset (?P<log_end>\d+)", "", (None, "2.5"), "Log"),
    ("initial-high-watermark", "with initial high watermark ", r"(?P<high_watermark>\d+)", rf"(?:Log|Replica) loaded for partition {TP} $", ("0.11", None), "Partition, Replica"),
    ("no-checkpoint", "No checkpointed highwatermark is found for partition ", ANY_TP, "", (None, None), "Partition"),
    ("segment-deleted", "Deleting segment ", rf"(?P<base>\d+)(?: from log {TP}|(?= \(kafka\.log\.Log\)|$))", "", (None, "2.3"), "Log"),
    ("segment-deleted", "Scheduling log segment ", rf"(?:\[baseOffset )?(?P<base>\d+)(?:, size \d+\])?(?: for log {TP})? for deletion", "", (None, "2.3"), "Log"),
    ("retained", "Incremented log start offset to ", r"(?P<to>\d+) due to (?P<why>segment deletion)", "", ("2.6", None), "UnifiedLog, Log"),
    ("start-moved", "Incrementing log start offset to ", r"(?P<to>\d+)", "", ("0.11", "2.5"), "Log"),
    ("retained-because", "retention ", r"(?P<why>time|size) (?P<limit>\d+)(?:ms)? breach", "", ("0.10.2", None), "Log, UnifiedLog"),
    ("created", "Created log for partition ", rf"(?:{TP}|{_OLD_TP}) in {_DIR}", "", (None, None), "LogManager"),
    ("deleted", "is scheduled for deletion", "", rf"Log for partition {TP} is renamed to {_DIR} and $", ("0.10.2", None), "LogManager"),
    ("deleted", "Deleted log for partition ", rf"(?:{TP}|{_OLD_TP}) in (?!\S*-delete\b){_DIR}", "", (None, "0.10.1"), "LogManager"),
    ("moved", "is successfully replaced with the future replica for ", TP, "", ("1.1", None), "LogManager"),
    ("moved", "current replica is caught up with future replica", "", rf"Partition {TP} $", (None, None), "ReplicaAlterLogDirsThread"),
    ("stray", "is marked as stray and renamed to ", _DIR, rf"Log for partition {TP} $", ("3.6", None), "LogManager"),
    ("stray", "marked stray and renamed to ", _DIR, rf"Log in \S{{0,300}}[/\\]{TP} $", ("3.7", None), "LogManager"),
    ("stray-because", "Found stray log dir ", _TOPIC_DIR + r",[^:]{0,400}: (?P<reason>[^(]*)", "", ("3.0", None), "LogManager"),
    ("truncated", "Truncating log ", rf"{TP} to offset (?P<to>\d+)", "", (None, "0.11"), "Log"),
    ("truncated", "Truncating to offset ", r"(?P<to>\d+)", "", ("1.0", None), "Log, UnifiedLog, MergedLog"),
    ("no-effect", "Truncating ", rf"(?:{TP} )?to (?P<to>\d+) has no effect as the largest offset in the log is (?P<last>-?\d+)", "", (None, None), "Log, UnifiedLog, MergedLog"),
    ("below", "Truncating ", rf"{TP} to offset (?P<to>\d+) below high watermark (?P<high_watermark>\d+)", "", ("2.0", None), "ReplicaFetcherThread, UnifiedLog"),
    ("truncating-to-high-watermark", "Truncating partition ", rf"{TP} to local high watermark (?P<to>\d+)", "", ("2.1", "3.0"), "ReplicaFetcherThread"),
    ("truncating-to-high-watermark", "Truncating partition ", rf"{TP} (?:with|to) {_STATE} due to local high watermark", "", ("3.1", None), "ReplicaFetcherThread"),
    ("truncating-to-high-watermark", "leader replied with an unknown offset in ", rf"{TP}\. (?:High watermark|The initial fetch offset) (?P<to>\d+) will be used", "", ("0.11", None), "ReplicaFetcherThread"),
    ("truncating-to-epoch", "Truncating partition ", rf"{TP} (?:with|to) {_STATE} due to leader epoch and offset EpochEndOffset[({{](?P<answer>[^)}}]*)", "", ("3.1", None), "ReplicaFetcherThread"),
    ("truncated-fully", "Truncate fully and start at offset ", r"(?P<to>\d+)", "", (None, "3.9"), "Log, UnifiedLog"),
    ("truncated-fully", "Truncate and start at offset ", r"(?P<to>\d+)", "", ("1.0", None), "Log, UnifiedLog"),
    ("truncation-reported", "performed a truncation on topicPartition=", rf"{TP} during leaderEpoch=(?P<leader_epoch>-?\d++)(?>.*?targetOffset=)(?P<to>\d+)\. The previousLogEndOffset=(?P<from>\d+) and the newLogEndOffset=\d+, (?>.*?After truncation the highWatermark=)(?P<high_watermark>\d+)", r"brokerId=(?P<node>\d+) $", (None, None), "Partition of LinkedIn"),
    ("fell", "Non-monotonic update of high watermark from ", _FROM_TO, "", ("2.7", None), "Log, UnifiedLog"),
    ("segments-missing", "Deleting all segments because logEndOffset (", r"(?P<log_end>\d+)\) .{0,4}smaller than logStartOffset \(?(?P<log_start>\d+)", "", ("2.2", None), "Log, LogLoader"),
    ("records-deleted", "ncremented log start offset to ", r"(?P<to>\d+) due to client delete records request", "", ("2.6", None), "Log, UnifiedLog"),
    ("epochs-conflict", "This implies messages have arrived out of order", rf"(?:\. New: [^,]{{0,60}}, [^,]{{0,60}}, Current: [^,]{{0,60}}, [^,]{{0,60}} for Partition: {TP})?", "", ("0.11", "2.6"), "LeaderEpochFileCache"),
    ("epochs-conflict", "caused truncation of conflicting entries ", "", r"New epoch entry .{1,90} $", ("2.0", None), "LeaderEpochFileCache"),
    ("corrupt", "Found invalid messages during fetch for partition ", rf"{ANY_TP} offset (?P<offset>\d+)", "", (None, None), "ReplicaFetcherThread"),
    ("corrupt", " is invalid, cause: Record is corrupt", "", rf"(?P<reader>Record) for partition {TP} at offset (?P<offset>\d+)$", (None, None), "Fetcher of a consumer"),
    ("corrupt", "Corruption found in segment ", r"\d+(?: of log (?P<tp>(?>[A-Za-z0-9._\-]+-\d+)))?,? truncating to offset (?P<offset>\d+)", "", (None, None), "Log, LogLoader"),
    ("corrupt", "Found invalid offset during recovery", rf"(?: for log {TP})?\. Deleting the corrupt segment and creating an empty one with starting offset (?P<offset>\d+)", "", (None, None), "Log, LogLoader"),
    ("uncleanable", " as uncleanable", "", rf"Marking its partition \({TP}\)$", ("2.2", None), "LogCleaner"),
    ("corrupt", "Found invalid messages in log segment ", r"\S*?[/\\](?P<tp>[^/\\\s]+-\d+)[/\\]\d+\.log at byte offset (?P<byte>\d+)", "", (None, None), "LogSegment"),
)

_ROLES: tuple[Row, ...] = (
    ("leader", "starts at leader epoch ", rf"(?P<leader_epoch>\d+) from offset (?P<offset>\d+) with (?:partition epoch (?P<version>\d+), )?high watermark (?P<high_watermark>\d+),? ISR {_ISR}", _ROLE_BEFORE.format("Leader "), ("2.6", None), "state.change.logger"),
    ("leader", "starts at ", r"(?i:leader epoch) (?P<leader_epoch>\d+) from offset (?P<offset>\d+)(?: with high watermark (?P<high_watermark>\d+))?\. Previous (?i:leader epoch)", rf"(?:\]|\bon broker \d+:) {TP} $", ("0.11", "2.5"), "Partition"),
    ("follower", "starts at leader epoch ", r"(?P<leader_epoch>\d+) from offset (?P<offset>\d+) with (?:partition epoch (?P<version>\d+) and )?high watermark (?P<high_watermark>\d+)(?:\. Current leader is (?P<leader>-?\d+)(?:\. Previous leader Some\((?P<previous>\d+)\))?)?", _ROLE_BEFORE.format("Follower "), ("2.6", None), "state.change.logger"),
    ("creating", "Creating new partition ", rf"{TP} with topic id (?P<topic_id>[\w\-]{{22}})", "", ("3.0", None), "state.change.logger"),
    ("leader-again", "Skipped the become-leader state change for ", rf"{TP} with (?=.*?\bisr=\[(?P<isr>[\d, ]*)\])(?=.*?\bleaderEpoch=(?P<leader_epoch>\d+))(?=.*?\bpartitionEpoch=(?P<version>\d+)).*?Current high watermark (?P<high_watermark>\d+)", "", ("3.3", None), "state.change.logger"),
    ("follower-again", "Skipped the become-follower state change for ", rf"{TP} with (?!.*\balready at a newer partition epoch)(?=.*?\bleader=(?P<leader>-?\d+))(?=.*?\bleaderEpoch=(?P<leader_epoch>\d+))(?=.*?\bisr=\[(?P<isr>[\d, ]*)\])(?=.*?\bpartitionEpoch=(?P<version>\d+))", "", ("3.3", None), "state.change.logger"),
    ("recovering", "was marked as RECOVERING", "", rf"The topic partition {TP} $", ("3.2", None), "Partition"),
    ("leader-unavailable", "but cannot become follower since the new leader ", r"(?P<leader>-?\d+) is unavailable", rf"for partition {ANY_TP} (?:\(last update controller epoch \d+\) )?$", (None, "3.9"), "ReplicaManager"),
    ("topic-id-mismatch", "does not match the topic I", rf"[Dd] for partition {TP} (?:received|provided in the request): (?P<received>[\w\-]{{22}})", r"Topic I[Dd] in memory: (?P<own>[\w\-]{22}) $", ("2.8", "4.1"), "ReplicaManager"),
    ("role-change", "Removed fetcher for partitions ", r"(?:Set\(|HashSet\()?(?P<partitions>.*)", r"\[ReplicaFetcherManager on broker (?P<node>\d+)\] $", (None, None), "ReplicaFetcherManager"),
    ("fetching", "Added fetcher ", r"(?:to broker (?:BrokerEndPoint\(id=)?(?P<leader>\d++)[^ ]*+(?: [^ ]++)? )?for partitions (?P<partitions>(?:Map|HashMap|List|ArrayBuffer|Set|HashSet)\(.*)", r"\[ReplicaFetcherManager on broker (?P<node>\d+)\] $", (None, None), "ReplicaFetcherManager"),
)

_ISR_CHANGES: tuple[Row, ...] = (
    ("shrink", "Shrinking ISR ", rf"(?:for partition {ANY_TP} )?from (?P<from>[\d,]+) to (?P<to>[\d,]*)(?:\. Leader: \(highWatermark: (?P<high_watermark>\d+), endOffset: (?P<log_end>\d+)\)(?:\. Out of sync replicas: (?P<lagging>(?:\(brokerId: \d+, endOffset: -?\d+[^()]{{0,60}}\)[ ,]*)+))?)?", "", (None, None), "Partition"),
    ("expand", "Expanding ISR ", rf"(?:for partition {ANY_TP} )?from (?P<from>[\d,]*) to (?P<to>[\d,]+)", "", (None, "2.7"), "Partition"),
    ("isr-accepted", "ISR updated to ", r"\[?(?P<to>[\d,]++)\]?(?P<few> \(under-min-isr\))? *+(?:and |with )? *+(?:zkVersion|version) updated to \[?(?P<version>\d+)", "", (None, None), "Partition"),
    ("isr-accepted", "ISR updated from AlterIsr to ", r"(?P<to>[\d,]++)(?P<few> \(under-min-isr\))? and version updated to \[(?P<version>\d+)", "", ("2.7", "2.7"), "Partition"),
    ("isr-refused", "Cached zkVersion ", r"\[?(?P<version>-?\d+)\]? not equal to that in zookeeper", "", (None, "2.7"), "Partition"),
    ("isr-rejected", "Failed to update ISR to ", rf"LeaderAndIsr\((?P<sent>[^()]{{0,300}}(?:\([^()]*\)[^()]{{0,300}})?)\) for partition {TP}, (?P<error>bad ZK version)", "", ("2.7", "3.9"), "KafkaController"),
    ("isr-refused", "Failed to update ISR to ", r"(?P<sent>.*?) due to (?P<error>.*)", "", ("2.8", None), "Partition"),
    ("isr-refused", "Controller failed to update ISR to ", r"(?P<sent>.*?) due to (?P<error>.*)", "", ("2.7", "2.7"), "Partition"),
    ("isr-refused", "Failed to alter partition to ", r"(?P<sent>Pending\w++.*?) (?:since|because|due) (?P<error>.*)", "", ("3.2", None), "Partition"),
    ("isr-rejected", "ejecting AlterPartition ", rf"(?:request )?from node (?P<proposer>\d+) for {TP} because (?P<error>.*)", "", ("3.2", None), "ReplicationControlManager, KafkaController"),
    ("isr-rejected", "ejecting alterIsr request from node ", rf"(?P<proposer>\d+) for {TP} because (?P<error>.*)", "", ("3.0", "3.1"), "ReplicationControlManager"),
    ("controller-isr", "ISR for partition ", rf"{TP} updated to \[(?P<to>[\d,]+)\] and (?:zkVersion|partition epoch) updated to \[(?P<version>\d+)\]", "", ("2.7", "3.9"), "KafkaController"),
)

_ELECTIONS: tuple[Row, ...] = (
    ("unclean-choice", "No broker in ISR is alive for ", rf"{ANY_TP}\. Elect leader (?P<leader>\d+) from live brokers (?P<live>[\d,]*)", "", (None, "1.0"), "OfflinePartitionLeaderSelector"),
    ("chosen", "Selected new leader and ISR ", r"\{(?=[^}]*\"leader\": ?(?P<leader>-?\d+))(?=[^}]*\"leader_epoch\": ?(?P<leader_epoch>\d+))(?=[^}]*\"isr\": ?\[(?P<isr>[\d, ]*)\])[^}]*\} for offline partition " + ANY_TP, "", (None, "1.0"), "OfflinePartitionLeaderSelector"),
    ("chosen", "After leader election, leader cache for ", rf"{ANY_TP} is updated to {_ZK_STATE}", "", ("1.0", "1.0"), "PartitionStateMachine"),
    ("leader-moved", " : current leader = ", r"(?P<before>\d+), new leader = (?P<leader>\d+)", rf"\[ControlledShutdownLeaderSelector\]: Partition {ANY_TP}$", (None, "1.0"), "ControlledShutdownLeaderSelector"),
    ("elected", "Changed partition ", rf"{TP} from (?P<before>\w+) to OnlinePartition with state {_LEADER_AND_ISR}", "", ("1.0", "3.9"), "state.change.logger"),
    ("removed", "state changed to ", _ZK_STATE + r".*?after removing replica (?P<removed>\d+) from the ISR", rf"Partition {TP} $", ("2.6", "3.9"), "state.change.logger"),
    ("removed", "New leader and ISR for partition ", rf"{ANY_TP} is \{{(?=[^}}]*\"leader\": ?(?P<leader>-?\d+))(?=[^}}]*\"leader_epoch\": ?(?P<leader_epoch>\d+))(?=[^}}]*\"isr\": ?\[(?P<isr>[\d, ]*)\])", "", (None, "1.0"), "KafkaController"),
    ("received", "ached leader info ", rf"\(LeaderAndIsrInfo:\(Leader:(?P<leader>-?\d+),ISR:(?P<isr>[\d,]*),LeaderEpoch:(?P<leader_epoch>\d+),.*? for partition {ANY_TP}", "", (None, "1.0"), "state.change.logger"),
    ("received", "ached leader info ", rf"{_PARTITION_STATE}.*? for partition {ANY_TP}", "", (None, "2.3"), "state.change.logger"),
    ("received", "ached leader info ", rf"UpdateMetadata(?=PartitionState\(topicName='(?P<topic>[A-Za-z0-9._\-]+)', partitionIndex=(?P<number>\d+)){_PARTITION_STATE}", "", ("2.4", "3.9"), "state.change.logger"),
    ("received", "eceived LeaderAndIsr request ", rf"\(LeaderAndIsrInfo:\(Leader:(?P<leader>-?\d+),ISR:(?P<isr>[\d,]*),LeaderEpoch:(?P<leader_epoch>\d+),.*? for partition {ANY_TP}", "", (None, "0.9"), "state.change.logger"),
    ("received", "eceived LeaderAndIsr request ", rf"(?:LeaderAndIsr)?{_PARTITION_STATE}.*? for partition {ANY_TP}", "", ("0.10", "2.3"), "state.change.logger"),
    ("received", "eceived LeaderAndIsr request ", rf"LeaderAndIsr(?=PartitionState\(topicName='(?P<topic>[A-Za-z0-9._\-]+)', partitionIndex=(?P<number>\d+)){_PARTITION_STATE}", "", ("2.4", "3.9"), "state.change.logger"),
    ("no-leader", "failed to change state for partition ", rf"{TP} from (?P<before>Offline|New)Partition to OnlinePartition", "", ("1.1", "3.9"), "state.change.logger"),
    ("no-leader", "initiated state change for partition ", rf"{ANY_TP} from (?P<before>Offline|New)Partition to OnlinePartition failed", "", (None, "1.0"), "state.change.logger"),
    ("no-leader", "ncountered error during state change of partition ", rf"{ANY_TP} from (?P<before>New) to Online, assigned replicas are \[(?P<assigned>[\d,]*)\], live brokers are \[(?:[A-Za-z]{{0,20}}Set\()?(?P<live>[\d, ]*)", "", (None, "3.9"), "state.change.logger"),
    ("initial-states", "artition state machine with initial state -> ", r"(?P<states>.*)", "", (None, "3.9"), "PartitionStateMachine"),
    ("no-leader", "Failed to elect leader for partition ", rf"{TP} under strategy Offline", "", ("1.1", "3.9"), "PartitionStateMachine"),
    ("no-leader", "No replica in ISR for partition ", rf"{ANY_TP} is alive\. Live brokers are: \[[^\]]*\], ISR brokers are: \[(?P<isr>[\d, ]*)\]", "", (None, "1.0"), "OfflinePartitionLeaderSelector"),
    ("no-leader", "No replica for partition ", rf"{ANY_TP} is alive\. Live brokers are: ", "", (None, "1.0"), "OfflinePartitionLeaderSelector"),
    ("no-leader", "Leader: ", r"(?:none|-1)\s+Replicas: ?(?P<replicas>[\d,]+)\s+Isr: ?(?P<isr>[\d,]*)(?:\s+Elr: ?(?P<elr>[\d,]*)\s+LastKnownElr: ?(?P<last_elr>[\d,]*))?", r"Topic: ?(?P<topic>[A-Za-z0-9._\-*]+)\s+(?:TopicId: ?\S+\s+)?Partition: ?(?P<number>\d+)\s+$", (None, None), "kafka-topics --describe"),
    ("described", "Leader: ", r"(?P<leader>\d+)\s+Replicas: ?(?P<replicas>[\d,]+)\s+Isr: ?(?P<isr>[\d,]*)", r"Topic: ?(?P<topic>[A-Za-z0-9._\-*]+)\s+(?:TopicId: ?\S+\s+)?Partition: ?(?P<number>\d+)\s+$", (None, None), "kafka-topics --describe"),
    ("reassignment", "eassignment of partition ", rf"{ANY_TP} (?:is )?(?P<done>still in progress|completed|failed)", "", (None, None), "kafka-reassign-partitions --verify"),
    ("no-other-leader", "No other replicas in ISR ", rf"(?P<isr>[\d,]+) for {ANY_TP} besides shutting down brokers ", "", (None, "1.0"), "ControlledShutdownLeaderSelector"),
    ("no-other-leader", "Failed to elect leader for partition ", rf"{TP} under strategy ControlledShutdown", "", ("1.1", "3.9"), "PartitionStateMachine"),
    ("asked", "Starting replica leader election (UNCLEAN) for partitions ", r"(?P<partitions>[^ ]++) triggered by (?P<by>\w+)", "", ("2.4", "3.9"), "KafkaController"),
    ("changed", "partition change for ", rf"{TP}(?: with topic ID (?P<topic_id>[\w\-]{{22}}))?: (?P<changes>.*)", r"(?P<unclean>UNCLEAN )?$", ("2.8", None), "ReplicationControlManager"),
    ("changes", "changing partition(s): ", r"(?P<partitions>.*PartitionChangeRecord\(.*)", "", ("3.0", None), "ReplicationControlManager"),
    ("registered", "Replayed PartitionRecord for new partition ", _REGISTRATION, "", ("3.6", None), "ReplicationControlManager"),
    ("registered", "Created partition ", _REGISTRATION, "", ("3.0", "3.5"), "ReplicationControlManager"),
    ("dumped-topic", '"type":"TOPIC_RECORD"', r".*?\"name\":\"(?P<topic>[A-Za-z0-9._\-]+)\",\"topicId\":\"(?P<topic_id>[\w\-]{22})\"", r"(?:\boffset: (?P<offset>\d+) .{0,300})?$", ("2.8", None), "kafka-dump-log --cluster-metadata-decoder"),
    ("dumped-fence", '"type":"BROKER_REGISTRATION_CHANGE_RECORD"', r".*?\"brokerId\":(?P<broker>\d+),\"brokerEpoch\":\d+,\"fenced\":(?P<fenced>-?1)\b", "", ("3.2", None), "kafka-dump-log --cluster-metadata-decoder"),
    ("dumped-partition", '"type":"PARTITION_RECORD"', r"(?>.*?\"data\":)(?P<data>\{.*\})\}", "", ("2.8", None), "kafka-dump-log --cluster-metadata-decoder"),
    ("dumped-change", '"type":"PARTITION_CHANGE_RECORD"', r"(?>.*?\"data\":)(?P<data>\{.*\})\}", "", ("2.8", None), "kafka-dump-log --cluster-metadata-decoder"),
)

_FETCHER: tuple[Row, ...] = (
    ("reset", "Reset fetch offset for partition ", rf"{TP} from {_RESET}", "", ("1.0", None), "ReplicaFetcherThread"),
    ("reset", "reset fetch offset for partition ", rf"{TP} from {_RESET}", "", ("3.6", None), "ReplicaFetcherThread"),
    ("consumer-reset", "Current offset ", _OUT_OF_RANGE, r"\[ConsumerFetcher[ T][^\]]*\],? $", (None, "1.1"), "ConsumerFetcherThread"),
    ("consumer-reset", "Fetch offset ", rf"(?P<from>\d+) is out of range for (?:topic-)?partition {_CLIENT_TP}", "", (None, None), "Fetcher of a consumer"),
    ("consumer-reset", "Fetch position FetchPosition{offset=", rf"(?P<from>\d++)(?>.{{0,400}}? is out of range for partition ){TP}", "", ("2.6", None), "Fetcher of a consumer"),
    ("consumer-reset", "Truncation detected for partition ", rf"{TP} at offset FetchPosition\{{offset=(?P<from>\d+),(?:.{{0,400}}? known to diverge FetchPosition\{{offset=(?P<to>\d+))?", "", ("2.3", None), "SubscriptionState of a consumer"),
    ("consumer-reset", "offset reset (at offset ", r"(?P<from>\d+)\b(?:\) to (?P<which>END|BEGINNING)\b)?(?=.{0,400}?Offset out of range)", r"(?P<topic>[A-Za-z0-9._\-]+) \[(?P<number>\d+)\]: $", (None, None), "librdkafka"),
    ("reset", "reset its fetch offset ", r"(?:from (?P<from>\d+) )?to current leader (?P<leader>\d+)'s (?P<which>latest|start) offset (?P<to>\d+)", rf"Replica (?P<node>\d+) for partition {ANY_TP} $", (None, "2.0"), "ReplicaFetcherThread"),
    ("reset", "Current offset ", _OUT_OF_RANGE, "", (None, None), "ReplicaFetcherThread"),
    ("fetch-error", "rror occurred while processing data for partition ", rf"{ANY_TP} at offset (?P<offset>\d+)", "", ("2.3", None), "ReplicaFetcherThread"),
    ("fetch-error", "rror processing data for partition ", rf"{ANY_TP} (?:at )?offset (?P<offset>\d+)", "", (None, None), "ReplicaFetcherThread"),
    ("fetch-error", "rror while processing data for partition ", rf"{ANY_TP}(?: at offset (?P<offset>\d+))?", "", ("1.0", None), "ReplicaFetcherThread"),
    ("fetch-error", "eplication is failing due to ", rf"(?P<error>a message that is greater than replica\.fetch\.max\.bytes) for partition {ANY_TP}", "", ("0.10", "4.0"), "ReplicaFetcherThread"),
    ("fetch-error", "rror occurred during truncation for ", rf"(?:partition )?{TP}", "", ("2.3", None), "ReplicaFetcherThread"),
    ("tier-unread", "Error building remote log auxiliary state for ", TP, "", ("3.3", None), "ReplicaFetcherThread"),
    ("tier-unwritten", "Error occurred while copying log segments of partition: ", rf"[\w\-]{{22}}:{TP}", "", ("3.5", None), "RemoteLogManager"),
    ("marked-failed", " marked as failed", "", rf"Partition {TP}$", ("2.3", None), "ReplicaFetcherThread"),
    ("append-refused", "Unexpected offset in append to ", rf"{TP}\. (?:First|Last) offset (?:or last offset of the first batch )?(?P<first_offset>\d+) is less than the next offset (?P<expected_offset>\d+)", "", ("2.0", None), "UnexpectedAppendOffsetException"),
    ("offset-mismatch", "Offset mismatch for partition ", rf"{TP}: fetched offset = (?P<fetched>\d+), log end offset = (?P<log_end>\d+)", "", (None, None), "IllegalStateException"),
    ("out-of-order", "Out of order offsets found in append to ", rf"{TP}", "", (None, None), "OffsetsOutOfOrderException"),
    ("too-large", " is too large for segment with current file position at ", r"(?P<position>\d+)", "", ("2.1", None), "FileRecords"),
    ("produce-error", "Error processing append operation on partition ", rf"{TP}", "", (None, None), "ReplicaManager"),
    ("too-few-in-sync", "The size of the current ISR ", rf"(?P<isr>: \d+|[^()]{{0,40}}\([\d, ]*\)) is insufficient to satisfy the min\.isr requirement of (?P<least>\d+) for partition {ANY_TP}", "", (None, None), "NotEnoughReplicasException"),
    ("index-offset", "Attempt to append an offset", r" \((?P<offset>\d+)\) to position \d+ no larger than the last offset appended \(\d+\) to(?: \S*?[/\\](?P<tp>[^/\\\s]+-\d+)[/\\]\d+\.index)?", "", (None, None), "OffsetIndex"),
    ("not-leader", ": broker unavailable: produce: Broker: Not leader for partition", "", r"\[thrd:[^\]]*/(?P<broker>\d+)\]: (?P<topic>[A-Za-z0-9._\-]+) \[(?P<number>\d+)\]$", (None, None), "librdkafka"),
    ("not-leader", "Leader not local for partition ", rf"{ANY_TP} on broker (?P<node>\d+)", "", (None, None), "ReplicaManager"),
    ("out-of-range", "eceived request for offset ", rf"(?P<offset>\d+) for partition {ANY_TP}, but we only have log segments in the range (?P<log_start>\d+) to (?P<log_end>\d+)", "", (None, None), "OffsetOutOfRangeException"),
    ("out-of-range", "Request for offset ", r"(?P<offset>\d+) but we only have log segments in the range (?P<log_start>\d+) to (?P<log_end>\d+)", "", (None, None), "OffsetOutOfRangeException"),
    ("asked-for", "rror when processing fetch request for partition ", rf"{ANY_TP} offset (?P<offset>\d+)", "", (None, None), "KafkaApis"),
    ("asked-for", "rror processing fetch operation on partition ", rf"{ANY_TP},? offset (?P<offset>\d+)", "", (None, None), "ReplicaManager"),
    ("read-failed", "rocessing fetch with max size ", rf"\d+ from (?P<reader>consumer|[^:]{{1,40}}?) on partition <?(?:{ANY_TP}|(?P<hidden>[^ :<>]{{1,80}}>-\d+))?:? ?(?:PartitionData)?\(fetchOffset=(?P<offset>\d+)", "", ("2.2", None), "ReplicaManager"),
    ("fetch-refused", "Error for partition ", rf"{ANY_TP} (?:at offset (?P<offset>\d+)|to broker (?P<leader>\d+):(?P<error>[^(]*))", "", (None, None), "ReplicaFetcherThread"),
    ("fetch-refused", "rror getting offset for partition ", rf"{ANY_TP}(?: to broker (?P<leader>\d+))?", "", (None, None), "AbstractFetcherThread"),
    ("not-assigned", "one of the assigned replicas ", rf"(?P<replicas>[\d,]+) for partition {ANY_TP}", r"Leader (?P<node>\d+) failed to record follower (?P<replica>\d+)'s position -?\d+,? .{0,60}$", (None, "3.2"), "Partition, ReplicaManager"),
    ("fetch-refused", "Error in fetch to broker ", r"(?P<leader>\d+)", "", (None, "1.0"), "ReplicaFetcherThread"),
    ("fetch-refused", "Error in fetch ", r"(?:Name: FetchRequest;|kafka\.server\.ReplicaFetcherThread\$FetchRequest@)(?:.*?ReplicaId: (?P<node>\d+))?(?:[^\[\]]*?RequestInfo: \[(?P<topic>[A-Za-z0-9._\-]+),(?P<number>\d+)\] -> PartitionFetchInfo\(\d+,\d+\)(?=\.))?(?:.*? Possible cause: (?P<error>[^(]*))?", r"\[ReplicaFetcherThread-\d+-\d+\], $", (None, "0.10"), "ReplicaFetcherThread"),
    ("fetch-lost", "Error sending fetch request (", r"sessionId=\w+, epoch=\w+\) to node \d+: ?(?P<error>[^(]*)", r"\[ReplicaFetcher replicaId=\d+, leaderId=\d+, fetcherId=\d+\] $", ("1.1", None), "FetchSessionHandler"),
    ("fetch-refused", "Error in response for fetch request ", "", "", ("1.1", None), "ReplicaFetcherThread"),
    ("fetch-refused", " from the leader for partition ", TP, r"\bReceived (?P<error>[A-Z_]+)$", ("2.7", None), "ReplicaFetcherThread"),
    ("epoch-refused", "as the leader reported an error: ", r"(?P<error>[A-Z_]+)", rf"for partition {TP} $", ("2.1", None), "ReplicaFetcherThread"),
    ("epoch-older", "has an older epoch (", r"(?P<epoch>\d+)\) than the current leader", rf"Partition {TP} $", ("2.1", None), "ReplicaFetcherThread"),
    ("epoch-newer", "has a newer epoch (", r"(?P<epoch>\d+)\) than the current leader", rf"Partition {TP} $", ("3.4", None), "ReplicaFetcherThread"),
    ("epoch-newer", "has an new epoch (", r"(?P<epoch>\d+)\) than the current leader", rf"Partition {TP} $", ("2.5", "3.3"), "ReplicaFetcherThread"),
    ("epoch-newer", "Remote broker has a smaller leader epoch for partition ", TP, "", ("2.1", None), "ReplicaFetcherThread"),
)

# fmt: on
TABLE = (*_PROCESS, *_NODES, *_LOG, *_ROLES, *_ISR_CHANGES, *_ELECTIONS, *_FETCHER)


@dataclass(frozen=True, slots=True)
class Statement:
    """A row of the table, compiled: `after` is what follows its text, `before` what stands before it (None: anything)."""

    kind: str
    text: str
    after: re.Pattern[str]
    before: re.Pattern[str] | None
    since: str | None
    until: str | None
    logger: str


STATEMENTS = tuple(
    Statement(kind, text, re.compile(after), re.compile(before) if before else None, since, until, logger)
    for kind, text, after, before, (since, until), logger in TABLE
)

_CONTEXT = re.compile(
    rf"\[Partition (?P<of>{_NAME}) broker=|\bPartition \[(?P<topic>[A-Za-z0-9._\-]+),(?P<number>\d+)\] on broker |"
    rf"(?:partition=|\[LeaderEpochCache )(?P<log>{_NAME})(?=[,\]])"
)
_RENAMED = re.compile(r"\.[0-9a-f]{32}-(?:delete|future|stray)$")

Fields = Mapping[str, str]


def statements_in(text: str) -> Iterator[tuple[Statement, str | None, Fields]]:
    """Yield what a line says, once or not at all: the first row that it fits, the partition or None, and the fields.

    The fields are the values of the named groups that matched, by name, as text.
    """
    for row in STATEMENTS:
        at = text.find(row.text)
        if at < 0:
            continue
        after = row.after.match(text, at + len(row.text))
        if after is None:
            continue
        fields = {name: value for name, value in after.groupdict().items() if value is not None}
        head = text[max(0, at - BEFORE) : at]
        if row.before is not None:
            before = row.before.search(head)
            if before is None:
                continue
            fields.update((name, value) for name, value in before.groupdict().items() if value is not None)
        partition = partition_named(fields, head)
        # The directory of a deleted topic, or of a move between directories, is not the partition's.
        if partition is not None and _RENAMED.search(partition):
            return
        yield row, partition, fields
        return


def partition_named(fields: Fields, head: str) -> str | None:
    """Return the partition in the fields of a line, or else the last one in brackets in `head`, the text before the row's.

    None if neither has one.
    """
    if "tp" in fields:
        return fields["tp"]
    if "topic" in fields and "number" in fields:
        return f"{fields['topic']}-{fields['number']}"
    matches = list(_CONTEXT.finditer(head))
    if not matches:
        return None
    last = matches[-1]
    return last["of"] or last["log"] or f"{last['topic']}-{last['number']}"
