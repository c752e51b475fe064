"""Tell which node wrote a line, where one file may have the lines of several: a time line made with `sort`, a log platform.

The *writer* of a line is the pod or the host that a wrapper around the line names (layout.py); the *node* is Kafka's id.

Rules of this file

1. A line belongs to the node that it says itself (`[Broker id=1]`). Else its thread says it (`kafka-1-raft-io-thread`), or
   its writer (a pod, a host) or its log directory, if all that say a node there say the same.
2. A directory tells the node only where each broker of the file has one of its own: in containers all have the same.
3. What cannot be told is left out; a line that the reader understands is then a Problem. A node is never guessed: lines of
   one broker that are taken for another's would look like a broken broker.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidegauge.traces.kafka_logs.parsing.lines import Line
from tidegauge.traces.kafka_logs.parsing.parsed_line import parse_line
from tidegauge.traces.kafka_logs.parsing.patterns import TABLE
from tidegauge.traces.kafka_logs.parsing.request_log import is_request
from tidegauge.traces.problems import Problem, note

_NAMED_BY_ID = (
    r"Broker|Controller|QuorumController|KafkaServer|BrokerServer|ControllerServer|SharedServer|RaftManager|MetadataLoader"
    r"|SnapshotGenerator|BrokerLifecycleManager|ControllerRegistrationManager|BrokerMetadataPublisher|KRaftMigrationDriver"
    r"|TransactionCoordinator|GroupCoordinator|ShareCoordinator|\w{1,60}ChannelManager"
)
_NAMED_BY_NUMBER = (
    r"Controller|GroupCoordinator|QuorumController|Kafka Server|BrokerServer|StandardAuthorizer|Topic Deletion Manager"
    r"|Transaction State Manager|Transaction Marker Channel Manager|(?:RPC )?ProducerId Manager"
)
OWN_IDENTITY = (
    r"\[(?:Partition [^\s\]]{1,260} broker=|ReplicaFetcher replicaId=|KafkaApi-"
    rf"|(?:{_NAMED_BY_ID}) id=|(?:{_NAMED_BY_NUMBER}) |\w{{1,60}}Publisher (?:broker|controller|node) id="
    r"|(?:ReplicaManager|\w{1,60}ChannelManager) broker=|RemoteLogManager="
    r"|\w{1,60} (?:controllerId|brokerId|nodeId)=|SocketServer listenerType=\w{1,20}, nodeId="
    r"|[\w \-]{1,60} on (?:[Bb]roker|[Cc]ontroller) |(?:TxnMarkerSenderThread|AddPartitionsToTxnSenderThread)-"
    r"|(?:zk-)?(?:broker|controller|Controller)-(?=\d+-to-)|kafka-(?=\d+-raft-))(\d{1,9})(?=[\],: \-])"
)
"""The identity that Kafka's classes print before their messages (Logging#logIdent, LogContext), since 0.9."""
OWN_IN_WORDS = (
    r"Partition \[[^\]\s]{1,260}\] on broker (\d{1,9})(?=:)"  # 0.9 to 0.11
    r"|Broker (\d{1,9}) (?=received |handling |completed |starting |stopped |truncated |skipped |ignoring |cached )"
    r"|Controller (\d{1,9}) epoch \d{1,9} (?=changed |sending |started |received |initiated |fails )"
    r"|Registered broker (\d{1,9}) at path "
)
"""Messages that begin with their node, without brackets."""
_NAMING_CLUSTERS = frozenset({"KafkaServer", "BrokerLifecycleManager", "QuorumController"})
CLUSTER_ID = re.compile(r"(?:Cluster ID = |clusterId |in cluster )([A-Za-z0-9_\-]{22})(?![A-Za-z0-9_\-])")
"""Where Kafka names the cluster of a node."""
_OWN = re.compile(OWN_IDENTITY)
_OWN_UNBRACKETED = re.compile(OWN_IN_WORDS)
_THREAD = re.compile(
    r"(?:kafka-(?=\d+-(?:metadata-loader|raft|snapshot))|quorum-controller-|(?:broker|controller|Controller|Broker)-(?=\d+-)"
    r"|BrokerToControllerChannelManager broker=|NodeToControllerChannelManager id=|TxnMarkerSenderThread-"
    r"|(?:data-plane-|control-plane-)?kafka-network-thread-(?=\d+-))(\d{1,9})(?!\d)"
)
_DIRECTORY = re.compile(
    r"\[(?:UnifiedLog|LogLoader|Log|ProducerStateManager) partition=[^,\]]{1,260}, dir=([^\]]++)\]"
    r"|(?:Recovering|Skipping recovery of) \d{1,9} logs from ([^\s,]++) since "
)
_REPLICA_DIRECTORY = re.compile(r"Completed load of Log\(dir=([^,]++),|Created log for partition \S{1,260} in (\S++) with ")


def own_id(message: str) -> int | None:
    """Return the node that a message names as its own, if it does."""
    first = message[:1]
    if first == "[":
        match = _OWN.match(message)
        return None if match is None else int(match[1])
    # Only a line that begins with one of these letters can have such a name: this is asked of every line.
    # Each form of name has a group of its own, of which one has matched.
    if first in ("B", "C", "P", "R") and (match := _OWN_UNBRACKETED.match(message)) is not None:
        return int(match[match.lastindex or 1])
    return None


def thread_id(thread: str) -> int | None:
    """Return the node after which a thread is named, if it is."""
    match = _THREAD.match(thread)
    return None if match is None else int(match[1])


class WrittenLines(NamedTuple):
    """The lines of a file by the node that wrote them; `unknown` are those of which that cannot be told."""

    by_node: Mapping[int, list[Line]]
    unknown: list[Line]


def by_writer(lines: Sequence[Line], sources: Mapping[str, Sequence[Line]]) -> WrittenLines:
    """Divide the lines of one file by the node that wrote them; `sources` are lines by writer, where wrappers name it."""
    own_ids = [own_id(line.message) for line in lines]
    ids = {node for node in own_ids if node is not None}
    # A node of which the file has requests only is named by its threads alone.
    of_threads = {node for thread in {line.thread for line in lines} if (node := thread_id(thread)) is not None}
    if len(ids | of_threads) < 2 and sum(map(bool, sources)) < 2:
        # One node, or none, and no two writers. Lines without an id are of the node that the others name: `main` and the log
        # itself name none.
        return WrittenLines({node: list(lines) for node in ids}, [] if ids else list(lines))
    writer_of_line = {line.number: writer for writer, written in sources.items() if writer for line in written}
    ids_of_writer: dict[str, set[int]] = defaultdict(set)
    for line, node in zip(lines, own_ids, strict=True):
        if node is not None and line.number in writer_of_line:
            ids_of_writer[writer_of_line[line.number]].add(node)
    nodes = [
        node if node is not None else _node_of(line, ids_of_writer.get(writer_of_line.get(line.number, ""), set()))
        for line, node in zip(lines, own_ids, strict=True)
    ]
    directories = _directories(lines, nodes, ids)
    by_node: dict[int, list[Line]] = {node: [] for node in sorted(ids)}
    unknown: list[Line] = []
    for line, node in zip(lines, nodes, strict=True):
        node_or_owner = node if node is not None or not directories else directories.get(_directory(line) or "")
        # A thread may be named after a node that no line names: that it is a node of Kafka is not sure.
        of_node = unknown if node_or_owner is None else by_node.get(node_or_owner, unknown)
        of_node.append(line)
    return WrittenLines(by_node, unknown)


def named_cluster(line: Line) -> str | None:
    """Return the id of the cluster that a line of a broker or controller names as its own; None if it names none."""
    if line.logger not in _NAMING_CLUSTERS:
        return None
    match = CLUSTER_ID.search(line.message)
    return None if match is None else match[1]


NAMING_TOPICS = frozenset(
    {"logger", "ReplicationControlManager", "LogManager", "KafkaServer", "BrokerLifecycleManager", "QuorumController"}
)
"""Loggers whose lines name topic ids or cluster ids."""
_WITH_ID = re.compile(r" with topic (?:id (?:Some\()?|ID )([A-Za-z0-9_\-]{22})(?![A-Za-z0-9_\-])")
_LOADED = re.compile(r"topicId=([A-Za-z0-9_\-]{22}), topic=([^,]{1,249}),")
_NO_ID = "A" * 22
"""Uuid.ZERO_UUID: a topic without an id, from before KIP-516."""
_LONGEST_NAME = 260
"""Characters of a topic and a partition."""


def named_topic(message: str) -> tuple[str, str] | None:
    """Return the topic that a message names with its id, and the id; None if it names none."""
    match = _WITH_ID.search(message)
    if match is not None:
        # The name stands before it; 8 characters more are enough to see a word `topic` before that.
        words_before = message[max(0, match.start() - _LONGEST_NAME - 8) : match.start()].split(" ")
        # `topic orders with topic ID ..` names the topic, everything else a partition.
        topic = words_before[-1] if words_before[-2:-1] == ["topic"] else words_before[-1].rpartition("-")[0]
        return (topic, match[1]) if topic and match[1] != _NO_ID else None
    match = _LOADED.search(message)
    return (match[2], match[1]) if match is not None and match[1] != _NO_ID else None


def _node_of(line: Line, ids_of_writer: set[int]) -> int | None:
    """Return the node that the thread of a line names, else the one node of its writer; None if neither is known."""
    node = thread_id(line.thread)
    return next(iter(ids_of_writer)) if node is None and len(ids_of_writer) == 1 else node


def _directory(line: Line) -> str | None:
    """Return the log directory that a line names, which tells the nodes of one file apart; None if it names none."""
    match = _DIRECTORY.match(line.message)
    if match is not None:
        return match[match.lastindex or 1]
    match = _REPLICA_DIRECTORY.match(line.message)
    return None if match is None else match[match.lastindex or 1].rpartition("/")[0]


def _directories(lines: Sequence[Line], nodes: Sequence[int | None], ids: set[int]) -> Mapping[str, int]:
    """Return the node of each log directory; empty unless each broker of the file has a directory of its own (rule 2).

    `nodes` are those of the lines, as far as they are known, `ids` all that lines name.
    """
    nodes_of: dict[str, set[int]] = defaultdict(set)
    for line, node in zip(lines, nodes, strict=True):
        if node is not None and (directory := _directory(line)) is not None:
            nodes_of[directory].add(node)
    owners = {directory: next(iter(of_one)) for directory, of_one in nodes_of.items() if len(of_one) == 1}
    # A broker without a directory of its own may have the path of another's on its own host. Controllers have no replicas.
    brokers = {
        node for line in lines if line.message.startswith("[Partition ") and (node := own_id(line.message)) is not None
    }
    return owners if len(owners) == len(nodes_of) and brokers & ids <= set(owners.values()) else {}


OF_ANY_PROGRAM = frozenset({"AppInfoParser", "LoggingSignalHandler", "FetchSessionHandler"})
"""Loggers that Kafka's clients have, too: a Connect worker prints its version and its signals as a broker does."""
_OF_A_BROKER = frozenset({logger for _, logger, _ in TABLE} - OF_ANY_PROGRAM) | {
    *("KafkaServer", "KafkaRaftServer", "BrokerServer", "ControllerServer", "QuorumController", "KafkaController", "Log"),
    *("ReplicaManager", "SocketServer", "KafkaConfig", "BrokerLifecycleManager", "RaftManager", "MetadataLoader"),
}


def is_brokers(lines: Iterable[Line]) -> bool:
    """Return whether any of the lines is of a logger that only brokers and controllers have."""
    return any(line.logger in _OF_A_BROKER for line in lines)


def matters(line: Line) -> bool:
    """Return whether a line would be evidence: it matches a row of the table (patterns.py), or is of the request log.

    A file, or a line of an unknown node, without such evidence may be left out and nothing is lost.
    """
    return parse_line(line) is not None or is_request(line)


def left_out(label: str, unknown: Sequence[Line], ids: Iterable[int]) -> list[Problem]:
    """Return a problem for each of the lines `unknown` that matters: it may be of any of the nodes `ids`."""
    problems: list[Problem] = []
    # One: threads name another, of which nothing else is there.
    which = "which node" if len({*ids}) < 2 else f"which of the nodes {', '.join(map(str, sorted(ids)))}"
    for line in unknown:
        if matters(line):
            expected = f"lines that say {which} wrote them: themselves, or by their thread, pod or host"
            do = "the line is left out; give the logs of each node in a file of its own, or with its pod or host"
            note(Problem(label, line.number, expected, "a line that says none", do, lost=1), problems)
    return problems
