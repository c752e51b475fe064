"""Tell what a file is by its content: its kind, the system and the era that wrote it, its release, the nodes that it names.

A *kind* is a broker log, a request log, a dump, the output of a tool and so on; the *system* is Kafka or what was made of
it; the *era* is that of ZooKeeper or of KRaft.

Rules of this file

1. The name of a file counts for nothing but a segment, whose name is its first offset. `MARKS` is the table of what marks a
   kind, a system or an era: the first row of each that matches decides, for kinds of logs the most frequent one.
2. The beginning and the end of a file are looked at, so that a large one takes no longer; of a compressed one the beginning.
3. What is not read gets a sentence that says what to do instead.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from tidegauge.traces.kafka_logs.discovery.folders import FolderWalk
from tidegauge.traces.kafka_logs.discovery.writers import own_id, thread_id
from tidegauge.traces.kafka_logs.parsing.exports import restored
from tidegauge.traces.kafka_logs.parsing.layout import find
from tidegauge.traces.kafka_logs.parsing.lines import encoding_of, is_binary
from tidegauge.util.input_limits import packing_of, read_regular, unpacked_beginning

BEGINNING, END = 1 << 18, 1 << 16
"""Bytes that are looked at."""
SNIFFED = 1 << 16
"""Bytes by which a file among others is taken for a log or not."""
LAYOUT_SHOWS = 1000
"""Lines in which a layout shows."""
MOST_FILES = 1000
"""Files that are listed; the others are counted."""
DEEPEST = 6
"""Folders below the directory that was named."""

BROKER_LOG, CONTROLLER_LOG, STATE_CHANGES, REQUESTS = "broker log", "controller log", "state-change log", "request log"
SEGMENT_DUMP, METADATA_DUMP, CHECKPOINT, SEGMENT = "segment dump", "metadata dump", "checkpoint", "segment"
DESCRIBE, QUORUM, LOG_DIRS, VERIFICATION = "describe", "quorum status", "log dirs", "replica verification"
CLIENT_LOG, OTHER, UNKNOWN, TRACE = "client log", "other program", "unknown", "trace"
LOGS = frozenset({BROKER_LOG, CONTROLLER_LOG, STATE_CHANGES, REQUESTS})
APACHE, ZOOKEEPER, ZOOKEEPER_ERA, KRAFT_ERA = "Apache Kafka", "ZooKeeper", "zookeeper", "kraft"


class Mark(NamedTuple):
    """A pattern, and what it marks: a kind, a system or an era."""

    says: str
    pattern: re.Pattern[str]


def _marks(*rows: tuple[str, str]) -> tuple[Mark, ...]:
    """Compile rows of what they mark and a pattern, in which `^` is the beginning of any line."""
    return tuple(Mark(says, re.compile(pattern, re.MULTILINE)) for says, pattern in rows)


TOOLS = _marks(
    (METADATA_DUMP, (r'payload: ?\{"type":"[A-Z_]+_RECORD"|^Dumping \S*__cluster_metadata-0/'
        r"|\] (?:KRaftVersion \{|KRaftVoters\b|controlType: LEADER_CHANGE)|^Snapshot end offset: \d")),
    (SEGMENT_DUMP, (r"^(?:\| )?baseOffset: \d+ lastOffset: \d+|^Starting offset: \d+$"
        r"|^offset: \d+ position: \d+ (?:isvalid|Cre|NoT)")),
    (SEGMENT_DUMP, r"^Dumping \S+\.(?:log|index|timeindex|snapshot|checkpoint)\b"),
    (LOG_DIRS, r'"logDirs" ?: ?\[ ?(?:\{|\])'),
    (DESCRIBE, r"^[ \t]*Topic: ?\S+[ \t]+(?:TopicId: ?\S+[ \t]+)?(?:PartitionCount|Partition): ?\d+"),
    (QUORUM, r"^(?:LeaderEpoch: +\d+|CurrentVoters: +\[|NodeId[ \t]+(?:DirectoryId[ \t]+)?LogEndOffset[ \t]+Lag)"),
    (CHECKPOINT, r"^.{0,200}[$#>%] ?(?:sudo )?cat \S{0,500}-checkpoint"),
    (VERIFICATION, (r"verification process is started|max lag is \d+ for partition \S+ at offset"
        r"|^partition \S+, replica \d+: \d+: ")),
)  # fmt: skip
"""Output of Kafka's tools, dumps first."""
DUMPS = 3
"""Rows of TOOLS that mark dumps."""
SYSTEMS = _marks(
    ("Redpanda", r"\[shard +\d+(?::\w+)?\] \w+ - |\bredpanda(?:\.yaml|::|/bin| v?\d)"),
    ("AutoMQ", r"com\.automq|kafka\.log\.stream(?:aspect|)\b|[Aa]uto[Mm][Qq]|\bS3Stream\b"),
    ("Confluent", (r"io\.confluent\.|\[MergedLog partition=|_confluent-|kafka\.tier\."
        r"|Kafka version ?: \d+\.\d+\.\d+-(?:ce|ccs)\b")),
    ("LinkedIn Kafka", r"\[kafka-server\] \[|performed a truncation on topicPartition=|com\.linkedin\.|/export/content/"),
)  # fmt: skip
ERAS = _marks(
    (
        ZOOKEEPER_ERA,
        (
            r"zkVersion|\[KafkaServer id=\d|\[Kafka Server \d+\]|kafka\.zookeeper\.|kafka\.server\.KafkaServer\b"
            r"|kafka\.utils\.ZkUtils"
            r"|kafka\.controller\.(?:KafkaController|ControllerEventManager|ZkPartitionStateMachine|PartitionStateMachine)"
        ),
    ),
    (
        KRAFT_ERA,
        (
            r"\[(?:QuorumController|BrokerServer|ControllerServer|SharedServer|RaftManager|MetadataLoader|BrokerLifecycleManager"
            r"|KafkaRaftServer|DynamicConfigPublisher|BrokerMetadataPublisher)\b|org\.apache\.kafka\.controller\."
            r"|-metadata-loader-"
            r"|kafka-\d+-raft-|quorum-controller-\d|__cluster_metadata-0"
        ),
    ),
    (
        ZOOKEEPER_ERA,
        (
            r"kafka\.controller\.|\[Controller id=\d|from controller \d+ epoch|\[Controller \d+\]:|org\.I0Itec\.zkclient"
            r"|kafka\.log\.Log\b|org\.apache\.zookeeper\.(?:ZooKeeper|ClientCnxn)\b|starts at Leader Epoch"
            r"|Partition \[[^\]\s]{1,260}\] on broker"
            r"|ZooKeeper session|LeaderAndIsrRequest|\[Log partition="
        ),
    ),
)
LOG_KINDS = _marks(
    (REQUESTS, r"Completed request: ?\{|kafka\.request\.logger"),
    (
        STATE_CHANGES,
        (
            r"state\.change\.logger|\[Broker id=\d{1,9}\] "
            r"|\b(?:TRACE|INFO) (?:Broker \d+ (?:cached|received|handling|completed) |Controller \d+ epoch \d+ )"
        ),
    ),
    (
        CONTROLLER_LOG,
        (
            r"kafka\.controller\.|org\.apache\.kafka\.controller\.|\[QuorumController id=|\[Controller (?:id=)?\d+[\],]"
            r"|\[(?:Partition|Replica)(?:StateMachine| state machine on) ?[Cc]ontroller|ControllerEventThread"
        ),
    ),
    (
        BROKER_LOG,
        (
            r"kafka\.(?:server|log|cluster|network|coordinator|utils|security|zk|zookeeper|tier)\."
            r"|org\.apache\.kafka\.(?:storage|server|raft"
            r"|image|metadata|coordinator)\.|\[(?:UnifiedLog|Log|MergedLog|LogLoader|Partition|ReplicaFetcher"
            r"|ReplicaManager|KafkaServer"
            r"|BrokerServer|RaftManager|LocalLog|LeaderEpochCache) |Truncating (?:partition|log) \S+-\d+ |(?:Shrinking"
            r"|Expanding) ISR "
            r"|starts at [Ll]eader [Ee]poch \d+ from offset"
            # Quarkus and Spring shorten the names of loggers.
            r"|\b(?:org\.apa\.kaf|o\.a\.k)\.(?!c\.|cli|con|str)[a-z]"
        ),
    ),
)
"""Each is counted; the state changes that a log has among others make no state-change log of it."""
PROGRAMS = _marks(
    (
        CLIENT_LOG,
        (
            r"org\.apache\.kafka\.(?:clients\.(?:producer|consumer|admin|NetworkClient|Metadata)|connect|streams)\b"
            r"|\[(?:Consumer|Producer|AdminClient|Worker) (?:instanceId|clientId)="
        ),
    ),
    (OTHER, r"org\.apache\.zookeeper\.server\.|\b(?:QuorumPeer|NIOServerCnxn|ZooKeeperServer|FastLeaderElection)\b"),
    (OTHER, r"\[gc(?:,\w+)*[ \]]|\bGC\(\d+\)|\[GC pause|Full GC"),
    (OTHER, r"\d:\d\d[^\n]{0,80}?\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL)\b"),
)
_ZOOKEEPER = re.compile(r"org\.apache\.zookeeper\.server\.|\b(?:QuorumPeer|NIOServerCnxn|FastLeaderElection)\b")
_RELEASE = re.compile(r"Kafka version ?: ?(\d[\w.\-]{0,40})|Starting Kafka (\d+\.\d[\w.\-]{0,40})")
_CHECKPOINT = re.compile(
    r"[01]\r?\n\d{1,9}(?:\r?\n|$)(?:(?:\S{1,249} \d{1,6} \d{1,19}|\d{1,10} \d{1,19})(?:\r?\n|$))*+(?:\S.*)?"
)
_PROPERTIES = re.compile(r"^(?:node|broker)\.id=(\d{1,10})[ \t\r]*+$", re.MULTILINE)
_SEGMENT = re.compile(r".*\d{20}\.log(?:\.gz)?")
BESIDE_SEGMENTS = re.compile(
    r".*\.(?:index|timeindex|txnindex|snapshot|lock)(?:\.gz)?|\..*|partition\.metadata|.*\.(?:jar|class|pyc)"
)
_BEGINS_MESSAGE = re.compile(r"(?:\[(?=[A-Z][\w ]{2,40}[ =\-])|(?=Partition \[|Broker \d|Controller \d))")
_TIME = re.compile(r"\d[:.]\d\d|\d{13}")
_SURE = re.compile(r"Completed request|Truncating|Shrinking|Expanding|starts at")
"""What only a message has, so that the line may have no time."""
LOOKED_AT = 50
"""Matches of a mark that are looked at."""
_THREADS = re.compile(r"\[((?:kafka-\d|quorum-controller-\d)[\w\-]{1,60})\]")

DO: Mapping[str, str] = {
    DESCRIBE: "it is one moment and no history; give the log of the controller, or the brokers' state-change.log",
    QUORUM: "it is about the metadata log; give kafka-dump-log --cluster-metadata-decoder of its segments",
    LOG_DIRS: "it has sizes, not offsets; give the brokers' logs, or kafka-dump-log of the partition on each broker",
    VERIFICATION: "it says that replicas differ, not why; give kafka-dump-log of the partition on each broker",
    CHECKPOINT: "it is a terminal; give the checkpoint files themselves, those of each broker in a folder n<id>/",
    CLIENT_LOG: "clients do not see replication; give the brokers' server.log",
    OTHER: "it is not Kafka's; it does no harm beside the brokers' logs",
    UNKNOWN: "no line of it is a whole line of Kafka's; give server.log, controller.log and state-change.log of each broker",
}
"""By kind, why a file is not read, and what would help."""
_DO_SYSTEM = {"Redpanda": "Redpanda is not Kafka's code: nothing is known of its lines; tidegauge probe tests a running one"}


@dataclass(frozen=True)
class InputFile:
    """What a file is; `release` and `era` are None if it does not say, `why` tells what to do if it is not `read`."""

    path: str
    kind: str
    system: str | None = None
    era: str | None = None
    release: str | None = None
    nodes: tuple[int, ...] = ()
    read: bool = False
    why: str | None = None


def identify(path: Path, label: str) -> InputFile:
    """Return what a file is, by its content, and its name only if it is a segment; `label` is what reports call it."""
    if _SEGMENT.fullmatch(path.name):
        return InputFile(label, SEGMENT, APACHE, read=True)
    try:
        beginning, end = sample(path)
    except OSError as error:
        return InputFile(label, UNKNOWN, why=f"it cannot be read ({error.strerror or error}); check its permissions")
    if not beginning.strip():
        return InputFile(label, UNKNOWN, why="it is empty")
    if beginning.startswith(b"PAR1"):
        return InputFile(label, TRACE, read=True)
    encoding = encoding_of(beginning)
    if encoding == "utf-8" and is_binary(beginning):
        return InputFile(
            label, UNKNOWN, why="it is binary; a segment must keep the name that Kafka gave it, archives must be unpacked"
        )
    text = beginning.decode(encoding, "replace").removeprefix("\ufeff")
    return of_text(label, text + "\n" + end.decode(encoding, "replace") if end else text)


def sample(path: Path) -> tuple[bytes, bytes]:
    """Return the beginning and the end of a file, uncompressed; of a compressed one the beginning only. Raises OSError."""
    with path.open("rb") as file:
        beginning = file.read(BEGINNING)
        if packing_of(beginning) is not None:
            file.seek(0)
            return unpacked_beginning(file, BEGINNING), b""
        size = file.seek(0, 2)
        file.seek(max(BEGINNING, size - END))
        end = file.read(END)
        # If bytes are left out between the two, the end begins in the middle of a line: that is dropped.
        return beginning, end.partition(b"\n")[2] if size > BEGINNING + END else end


def of_text(label: str, text: str) -> InputFile:
    """Return what a file with this text is: the first kind that fits, from the most certain mark to the least."""
    # A line within JSON has its quotes escaped.
    plain = text.replace('\\"', '"')
    if _CHECKPOINT.fullmatch(text.rstrip()) and text.count("\n") >= 1:
        return InputFile(label, CHECKPOINT, APACHE, read=True)
    properties = _PROPERTIES.search(text)
    if properties is not None and "cluster.id=" in text and "listeners" not in text:
        return InputFile(label, CHECKPOINT, APACHE, nodes=(int(properties[1]),), read=True)
    if plain.lstrip().startswith('{"v"') and '"trace"' in plain[:SNIFFED] and '"event"' in plain[:SNIFFED]:
        return InputFile(label, TRACE, read=True)
    tool = _first(TOOLS, plain)
    if tool is not None and not _is_log(plain):
        era = KRAFT_ERA if tool in (METADATA_DUMP, QUORUM) else None
        return InputFile(label, tool, APACHE, era, read=tool in (SEGMENT_DUMP, METADATA_DUMP), why=DO.get(tool))
    system = _first(SYSTEMS, plain)
    release = _RELEASE.search(plain)
    version = None if release is None else release[1] or release[2]
    # Another implementation of the protocol: its log says nothing that is read here.
    if system in _DO_SYSTEM:
        return InputFile(label, BROKER_LOG, system, why=_DO_SYSTEM[system])
    if not _is_log(plain):
        program = _first(PROGRAMS, plain) or UNKNOWN
        owner = ZOOKEEPER if _ZOOKEEPER.search(plain) else APACHE if program == CLIENT_LOG else None
        return InputFile(label, program, owner, release=version if program == CLIENT_LOG else None, why=DO[program])
    counts = {mark.says: sum(1 for _ in mark.pattern.finditer(plain)) for mark in LOG_KINDS}
    # A broker's own log has state changes, and the controller's lines, among others.
    kind = max(LOG_KINDS, key=lambda mark: counts[mark.says]).says
    return InputFile(
        label, kind, system or APACHE, era=_first(ERAS, plain), release=version, nodes=nodes_in(plain), read=True
    )


def node_in_properties(path: Path) -> int | None:
    """Return the node id in a meta.properties, which Kafka keeps in each log directory; None if it cannot be read."""
    try:
        match = _PROPERTIES.search(read_regular(path, SNIFFED).decode())
    except (OSError, UnicodeDecodeError):
        return None
    return None if match is None else int(match[1])


def dump_kind(path: Path) -> str | None:
    """Return which of kafka-dump-log's outputs a file is, SEGMENT_DUMP or METADATA_DUMP; None for any other file."""
    text = _head(path)
    # A log may quote a dump.
    return None if _is_log(text) else _first(TOOLS[:DUMPS], text)


def _head(path: Path) -> str:
    """Return the beginning of a text file, uncompressed, with the quotes of JSON unescaped; "" for any other file."""
    try:
        with path.open("rb") as file:
            head = unpacked_beginning(file, SNIFFED)
    except OSError:
        return ""
    encoding = encoding_of(head)
    if encoding == "utf-8" and is_binary(head):
        return ""
    return head.decode(encoding, "replace").replace('\\"', '"')


def _is_log(text: str) -> bool:
    """Return whether a line of a text has a mark of a log, and a time before it, as a configuration names loggers, too."""
    return any(
        _TIME.search(text, text.rfind("\n", 0, match.start()) + 1, match.end()) or _SURE.match(match[0])
        for mark in LOG_KINDS
        for match in islice(mark.pattern.finditer(text), LOOKED_AT)
    )


def _first(marks: tuple[Mark, ...], text: str) -> str | None:
    """Return what the first mark says that matches a text; None if none does."""
    return next((mark.says for mark in marks if mark.pattern.search(text)), None)


def nodes_in(text: str) -> tuple[int, ...]:
    """Return the ids that lines say as their own, wherever the message begins in a line."""
    ids = set()
    for begin in _BEGINS_MESSAGE.finditer(text):
        # As many characters as the longest identity has, with the name of a topic in it.
        node = own_id(text[begin.start() : begin.start() + 340])
        if node is not None:
            ids.add(node)
    ids |= {node for thread in _THREADS.finditer(text) if (node := thread_id(thread[1])) is not None}
    return tuple(sorted(ids))


def looks_like_a_log(path: Path) -> bool:
    """Return whether the beginning of a file is that of a broker's log, in whatever layout or export."""
    text = restored(_head(path).encode()).decode()
    return _is_log(text) and _first(SYSTEMS, text) not in _DO_SYSTEM and find(text.split("\n")[:LAYOUT_SHOWS]) is not None


def files_at(paths: Iterable[str | PathLike[str]]) -> Iterator[InputFile]:
    """Yield what each file at and below the paths of a command line is; standard input and URIs are no files."""
    for path in map(Path, paths):
        if path.exists():
            yield from input_files(path)


def input_files(path: Path) -> Iterator[InputFile]:
    """Yield what each file at and below a path is, without files that lie beside segments and say nothing (an index)."""
    if not path.is_dir():
        yield identify(path, path.name)
        return
    listed = 0
    nodes: dict[Path, set[int]] = {}
    for folder, files in files_below(path):
        # Checkpoints and segments name no node: meta.properties, which Kafka keeps beside them or above, does.
        nodes_here = nodes[folder] = set(nodes.get(folder.parent, ()))
        inputs = []
        for file in files:
            listed += 1
            if listed <= MOST_FILES:
                inputs.append(identify(file, file.relative_to(path).as_posix()))
            if file.name == "meta.properties" and (node := node_in_properties(file)) is not None:
                nodes_here.add(node)
        for input_file in inputs:
            of_disk = input_file.kind in (CHECKPOINT, SEGMENT) and not input_file.nodes
            yield replace(input_file, nodes=tuple(sorted(nodes_here))) if of_disk else input_file
    if listed > MOST_FILES:
        yield InputFile(f"{listed - MOST_FILES:,} more files", UNKNOWN, why="they are not listed")


def files_below(path: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Yield each folder at and below a path with the files in it that may say something."""
    for folder, files in FolderWalk(path).below(DEEPEST):
        yield folder, [file for file in files if not BESIDE_SEGMENTS.fullmatch(file.name)]
