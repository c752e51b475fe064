"""What was told so far: the entries, and what is known of each replica, partition and process.

Lines come in order of time. Each adds an entry to the story, or belongs to one that an earlier line began; what it says of
its replica, partition and node is kept here for the lines behind it (StoryState, which the classes of the lines extend:
Processes, Truncations, Elections, Fetchers). An `order` is a time in microseconds since 1970.

Rules of this file

1. An entry says what its lines say and no more: a field that no line gives is None.
2. Offsets and epochs of a topic that was deleted and created anew begin again: another topic id, or a deletion between,
   is another `generation`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tidegauge.story.reading import SourcedLine
from tidegauge.story.releases import Releases
from tidegauge.traces.kafka_logs.parsing.parsed_line import number

SECOND = 1_000_000
TOGETHER = 10 * SECOND
"""Lines of one truncation, or of one change of the ISR, are at most so far apart, in microseconds."""
NO_LEADER = -1
UNANNOUNCED = "without a controlled shutdown"
"""Why the controller counts a broker as gone that did not ask to stop."""
AN_ERROR = "an error"
"""What a leader answered, where no line says it."""
MOST_SOURCES = 12
"""Lines that an entry names; a loop has thousands."""


@dataclass
class StoryEntry:
    """Something that happened: to a partition, or (partition None) to a node.

    `fields` are those of docs/operators.md; `sources` are the lines it was told by, as file:number, at most MOST_SOURCES;
    `place` is a key of who wrote the first. `marks` are notes of the code for itself: for later lines, and for sentences
    that depend on them. `basis` says what a truncation rests on: `epoch`, `high watermark`, `reset`, `untold` (before
    KIP-101, and no line tells) or "".
    """

    kind: str
    partition: str | None
    node: int | None
    time: str
    sources: list[str]
    order: int
    fields: dict[str, Any]
    generation: int = 0
    basis: str = ""
    place: str = ""
    marks: set[str] = field(default_factory=set)

    def as_json(self) -> dict[str, Any]:
        """Return the entry as plain data."""
        common = {
            "kind": self.kind,
            "partition": self.partition,
            "node": self.node,
            "time": self.time,
            "source": self.sources[0],
        }
        return {**common, **self.fields, **({"sources": self.sources} if len(self.sources) > 1 else {})}


@dataclass
class ReplicaStory:
    """What the lines told so far say about a replica; an entry is the last one of what its name says.

    `ended` is when `log_end` was known to be the end exactly (None: it may have grown since), `older` when its request was
    refused as of an older epoch, `directory` where its log was made; `is_known`: a line showed that its node has had it.
    """

    log_end: int | None = None
    ended: int | None = None
    high_watermark: int | None = None
    is_known: bool = False
    loaded: StoryEntry | None = None
    truncation: StoryEntry | None = None
    fell: StoryEntry | None = None
    reset: StoryEntry | None = None
    change: StoryEntry | None = None
    follower: StoryEntry | None = None
    refused: StoryEntry | None = None
    unanswered: StoryEntry | None = None
    unwritten: StoryEntry | None = None
    not_leader: StoryEntry | None = None
    unassigned: StoryEntry | None = None
    unread: StoryEntry | None = None
    deleted_segments: StoryEntry | None = None
    beyond: StoryEntry | None = None
    failed: StoryEntry | None = None
    corrupt: StoryEntry | None = None
    conflict: StoryEntry | None = None
    mismatch: StoryEntry | None = None
    retained: StoryEntry | None = None
    retention: SourcedLine | None = None
    """The last line that gave the limit by which a segment was deleted."""
    follower_again: StoryEntry | None = None
    untiered: StoryEntry | None = None
    uncopied: StoryEntry | None = None
    stray: str | None = None
    older: int | None = None
    directory: str | None = None
    role_changed: int | None = None


@dataclass
class PartitionStory:
    """What the lines told so far say about a partition: its ISR and the version of that, its leader, its topic id.

    `described` is what the last description of it shows.

    `unclean` has, by leader, the time and the source of a warning that it is elected out of the ISR; `election_request`
    says that one was requested, `unmoved` the last entry of a leader that could not be moved away.
    """

    isr: tuple[int, ...] | None = None
    version: int | None = None
    leader_epoch: int | None = None
    leader: int | None = None
    topic_id: str | None = None
    generation: int = 0
    deleted: bool = False
    elections: list[StoryEntry] = field(default_factory=list)
    unclean: dict[int, tuple[int, str]] = field(default_factory=dict)
    election_request: str | None = None
    described: StoryEntry | None = None
    unmoved: StoryEntry | None = None


@dataclass
class NodeStory:
    """What the lines told so far say about a node: the process that runs, and whether one ran before.

    `phase` is "", "starting", "started" or "stopped"; `active`: a replica has led or followed since the start; `controls`:
    it was told to be the active controller. `made` are the log directories that it made, `lost` and `failed` entries by
    directory or partition, `refused` the time of a refusal.
    """

    start: StoryEntry | None = None
    stop: StoryEntry | None = None
    phase: str = ""
    starts: int = 0
    active: bool = False
    controls: bool = False
    made: set[str] = field(default_factory=set)
    lost: dict[str, StoryEntry] = field(default_factory=dict)
    failed: dict[str, StoryEntry] = field(default_factory=dict)
    fatal: StoryEntry | None = None
    expired: StoryEntry | None = None
    unregistered: StoryEntry | None = None
    refused_by_controller: dict[int | None, StoryEntry] = field(default_factory=dict)
    """By the broker epoch that the controller has, where its lines name it."""
    resigned: StoryEntry | None = None
    inactive: StoryEntry | None = None
    unheard: StoryEntry | None = None
    undeleted: StoryEntry | None = None
    behind: StoryEntry | None = None
    unmoved: StoryEntry | None = None
    migrating: StoryEntry | None = None
    conflict: StoryEntry | None = None
    mismatch: StoryEntry | None = None
    quorum: StoryEntry | None = None
    too_few: StoryEntry | None = None
    contended: StoryEntry | None = None
    broker_seen: int | None = None
    """When a line was printed that only a broker prints."""
    unfenced: StoryEntry | None = None
    fenced: StoryEntry | None = None
    overloaded: StoryEntry | None = None
    refused: int | None = None
    unreachable: dict[int, StoryEntry] = field(default_factory=dict)
    unanswering: dict[int, StoryEntry] = field(default_factory=dict)
    disconnected: dict[int, StoryEntry] = field(default_factory=dict)
    no_api_versions: dict[int, StoryEntry] = field(default_factory=dict)
    invalid: dict[int, list[StoryEntry]] = field(default_factory=lambda: defaultdict(list))
    """By leader, what was fetched from it and was invalid."""


@dataclass(frozen=True)
class KnownHighWatermark:
    """A high watermark that a node had by a line that is not mistaken, and the leader epoch that it was in if known."""

    order: int
    node: int | None
    offset: int
    source: str
    leader_epoch: int | None
    generation: int


@dataclass
class Telling:
    """Everything that was told: the entries in order, and the high watermarks that nodes had by what their lines say.

    `high_watermarks` are by partition, `faces` the lines by which known bugs are recognised.
    """

    entries: list[StoryEntry]
    high_watermarks: Mapping[str, Sequence[KnownHighWatermark]]
    releases: Releases
    faces: Sequence[SourcedLine]


class StoryState:
    """The entries so far, and what the lines so far say. What a line says is told by the classes below it."""

    def __init__(self) -> None:
        """Begin with nothing told. Keys are (partition, node) of replicas, names of partitions, and `key(line)` of nodes."""
        self.entries: list[StoryEntry] = []
        self.replicas: dict[tuple[str, object], ReplicaStory] = defaultdict(ReplicaStory)
        self.partitions: dict[str, PartitionStory] = defaultdict(PartitionStory)
        self.nodes: dict[object, NodeStory] = defaultdict(NodeStory)
        self.high_watermarks: dict[str, list[KnownHighWatermark]] = defaultdict(list)
        self.releases = Releases()
        self.faces: list[SourcedLine] = []
        # Of a metadata dump: topic ids and their names. Below: lines kept for the ones behind them, by node or file.
        self.topics: dict[str, str] = {}
        self.out_of_range_requests: dict[object, SourcedLine] = {}
        self.dumped: dict[str, str | None] = {}
        self.lost_fetch: dict[object, SourcedLine] = {}
        self.status: dict[str, StoryEntry] = {}
        self.metadata_dumps: dict[str, StoryEntry] = {}
        # By broker, what a description showed of partitions that it is a replica of, and not in sync.
        self.away: dict[int, list[StoryEntry]] = defaultdict(list)
        # By broker, that the controller counts it as gone; by topic, its deletion that has begun.
        self.left: dict[int, StoryEntry] = {}
        self.deletions: dict[str, StoryEntry] = {}
        # By file, the full collections of its JVM (time, ms), and the timeout of its ZooKeeper session.
        self.pauses: dict[str, list[tuple[int, float]]] = defaultdict(list)
        self.timeouts: dict[str, int] = {}

    def add(self, line: SourcedLine, kind: str, partition: str | None = None, **fields: Any) -> StoryEntry:
        """Add an entry of a line's node and time, and return it; without a partition it is about the node."""
        generation = self.partitions[partition].generation if partition is not None else 0
        entry = StoryEntry(
            kind, partition, line.node, line.time, [line.at], line.order, fields, generation, place=line.place or line.file
        )
        self.entries.append(entry)
        return entry

    def add_or_count(self, last: StoryEntry | None, line: SourcedLine, kind: str, **fields: Any) -> StoryEntry:
        """Add an entry of the line's partition, or count `last`, the last one of this kind, once more; return the entry.

        `last` is counted (in its field `times`) if it has the same `fields`; None: there is none yet.
        """
        if last is not None and fields.items() <= last.fields.items():
            last.fields["times"] += 1
            join(last, line)
            return last
        return self.add(line, kind, line.partition, **fields, times=1)

    def replica_of(self, line: SourcedLine) -> ReplicaStory:
        """Return what is known of the replica that a line is about: the one of its partition on the node that wrote it."""
        return self.replicas[str(line.partition), self.key(line)]

    @staticmethod
    def key(line: SourcedLine) -> object:
        """Return a key of the node that wrote a line: its id, or else its file and its place in that."""
        return line.node if line.node is not None else (line.file, line.place)

    def had(self, line: SourcedLine, offset: int | None, leader_epoch: int | None = None) -> None:
        """Note the high watermark that a line shows of its replica (None: none), and the leader epoch of it if known."""
        if offset is not None and line.partition is not None:
            generation = self.partitions[line.partition].generation
            self.high_watermarks[line.partition].append(
                KnownHighWatermark(line.order, line.node, offset, line.at, leader_epoch, generation)
            )

    def partition_deleted(self, name: str, order: int) -> None:
        """Note that a partition's topic was deleted at time `order`: that nobody leads it just before is part of that."""
        partition = self.partitions[name]
        partition.deleted = True
        for election in partition.elections:
            # Within a minute before the deletion.
            if election.fields["leader"] == NO_LEADER and order - election.order < 60 * SECOND:
                election.marks.add("deletion")

    def serves(self, line: SourcedLine) -> None:
        """Note that a replica of the node of a line leads or follows: its process has started, whatever it printed."""
        node = self.nodes[self.key(line)]
        node.active = True  # lines of recovery behind it are of another start
        if node.start is not None:
            node.start.marks.add("started")

    def renew(self, line: SourcedLine, topic_id: str | None, anew: bool = False) -> None:
        """Begin a new generation of the line's partition if its topic was created anew: its offsets and epochs begin again.

        It was if `topic_id`, which the line shows (else None), is another one than before; or if it was deleted and the line
        is of a log that begins (`anew`).
        """
        partition = self.partitions[str(line.partition)]
        if (topic_id and partition.topic_id and topic_id != partition.topic_id) or (anew and partition.deleted):
            self.partitions[str(line.partition)] = PartitionStory(generation=partition.generation + 1, topic_id=topic_id)
            for key in [key for key in self.replicas if key[0] == line.partition]:
                self.replicas[key] = ReplicaStory()
        elif topic_id and not partition.topic_id:
            partition.topic_id = topic_id


def join(entry: StoryEntry, line: SourcedLine) -> None:
    """Add a line to the sources of an entry that it tells too, unless it has many."""
    if line.at not in entry.sources and len(entry.sources) < MOST_SOURCES:
        entry.sources.append(line.at)


def of_broker(line: SourcedLine) -> SourcedLine:
    """Return a line as one of the broker that it names in `broker`; itself if it names none there."""
    return replace(line, node=number(line.fields["broker"])) if "broker" in line.fields else line


def optional(line: SourcedLine, name: str) -> int | None:
    """Return the number in a field of a line; None if the line does not have the field."""
    return number(line.fields[name]) if name in line.fields else None
