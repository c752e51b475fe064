"""The next step of an operator: what to do now, with the lines that it was derived from. Never a guess.

Rules of this file

1. A step is only given where the story names what it rests on: a node that still has the records, a node whose log is the
   longest, a replica that goes on failing. What was derived from which line is in the text.
2. Nothing is deleted by any step; a step that could lose something says what to compare before.

A *step* is a sentence to an operator, with the line that it comes from. In go the losses of a story and its entries
(StoryEntry: `kind`, `fields`, `sources`, the lines as file:number, `marks`, notes of the code for itself). Marks
used here: `deletion`, nobody leads as the topic is deleted; `fetched`, invalid records came from a leader; `any client`, any
client of ZooKeeper prints the line; `ended`, the node knew a leader of the quorum later.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from tidegauge.story.losses import DISK, SLACK, UNCLEAN, Loss
from tidegauge.story.state import NO_LEADER, UNANNOUNCED, StoryEntry

_OF_ANOTHER_CLUSTER = "its log directories are of the cluster "
_STORED_ID = re.compile(r"doesn't match stored (broker|node)\.id [`']?(\d+)[`']? in meta\.properties")
_FOREIGN_FOLDER = re.compile(r"Found directory (\S+), \S+ is not in the form of topic-partition")
USED_BY_ANOTHER = (
    "used by another process",
    "\u53e6\u4e00\u4e2a\u7a0b\u5e8f\u6b63\u5728\u4f7f\u7528",
    "von einem anderen Prozess verwendet",
    "par un autre processus",
)
"""How Windows says in its languages that a file is open."""
RENAMED_FOLDER = re.compile(r"NoSuchFileException: \S+\.[0-9a-f]{32}-(?:delete|future|stray)\b")
_UNKNOWN_LEVEL = re.compile(
    r"name='metadata\.version', featureLevel=(\d+)\), but this controller only supports versions \d+-(\d+)"
)
_OUT_OF_ORDER = re.compile(
    r"for producer(?:Id)? (\d+) at offset (\d+) in partition \S+: (\d+) \(incoming seq\. number\), (\d+) \(current end"
)
_LEVELS = (
    *((1, "3.0"), (2, "3.1"), (3, "3.2"), (4, "3.3"), (8, "3.4"), (9, "3.5"), (12, "3.6"), (15, "3.7"), (20, "3.8")),
    *((21, "3.9"), (22, "4.0"), (26, "4.1")),
)
"""The first metadata.version of each release (MetadataVersion), up to _LAST_LEVEL of the last one."""
_LAST_LEVEL = 27
_STEPS = (
    (
        ("still starting up, cannot shut down",),
        "give it more time to start, and look for what stopped it (a probe, a supervisor): nothing is lost by that",
    ),
    (
        ("Corrupt index found",),
        "move the index file that it names away, and keep the .log file beside it: the broker makes indexes anew",
    ),
    (
        ("Error loading metadata log record",),
        (
            "copy the metadata directory of this node, and see whether the other voters load theirs, before anything is "
            "formatted; the topics' records lie elsewhere"
        ),
    ),
    (
        ("Input/output error", "I/O exception in append"),
        "look for errors of the disk in the system's log before the broker writes to it again",
    ),
    (
        ("No space left", "quota exceeded", "not enough space"),
        "make room {where}, delete no segment by hand, then start the broker again",
    ),
    (
        ("AccessDenied", "Permission denied", "Read-only", *USED_BY_ANOTHER),
        "let the broker write, rename and delete {where}, then start it again",
    ),
    (
        ("Failed to acquire lock",),
        "see that no other process, and no other machine by a shared volume, uses the directory that it names",
    ),
    (
        ("-checkpoint.tmp (No such file or directory)", ".log.cleaned", ".index (No such file or directory)"),
        "see whether its log directory was deleted or unmounted while the broker ran, as by a clean-up of /tmp",
    ),
    (
        ("locking: java.io.IOException: Not supported",),
        "give the broker a file system that has locks: the one that is mounted there has none",
    ),
    (
        ("No readable meta.properties", "No `meta.properties` found"),
        "see that the volume of this node is mounted at log.dirs before kafka-storage.sh formats a directory anew",
    ),
    (
        ("Map failed",),
        "raise vm.max_map_count of the system: each segment maps two or three files; see also the limit of its memory",
    ),
    (
        ("loading its logs: java.lang.NumberFormatException",),
        "find the file, .log or .index, or the folder that has this name in its log directories, and move it away",
    ),
    (
        ("loading its logs: java.lang.StringIndexOutOfBoundsException",),
        "find the folder in its log directories that is not named as a partition is, topic-number, and move it away",
    ),
    (
        ("Received request or response with leader",),
        "see that no other node has its id, and that the metadata directory is the one that it wrote before; delete nothing",
    ),
    (
        ("OutOfMemoryError: Java heap space",),
        "give the broker more heap (KAFKA_HEAP_OPTS) and restart it: it may run on without threads that ended by that",
    ),
    (
        ("OutOfMemoryError: Direct buffer memory",),
        "raise -XX:MaxDirectMemorySize of this broker, and restart it",
    ),
    (
        ("controller.quorum.voters is not set",),
        (
            "set it, id@host:port of each controller, in the file that this process reads; in a container, see that the "
            "variable reaches it (KAFKA_CONTROLLER_QUORUM_VOTERS); no log was touched"
        ),
    ),
    (
        ("Unexpected error in raft IO thread",),
        (
            "copy the metadata directory of this node before it starts again, and look at the last batches in it with "
            "kafka-dump-log --cluster-metadata-decoder, as on the other controllers; the topics' records lie elsewhere"
        ),
    ),
    (
        ("controller to acknowledge that we are caught up",),
        (
            "look at the minute before in this log, and into the logs of the controllers: it did not learn in time that it "
            "is registered and has the metadata, or was told to stop meanwhile (initial.broker.registration.timeout.ms)"
        ),
    ),
    (
        ("Could not read file",),
        "give the user of this process the right to read that file, as by chown; delete nothing: it may be whole",
    ),
    (
        ("IOException: Invalid argument",),
        (
            "if the lines behind that one name FileChannelImpl.map, give the broker a volume whose file system can map "
            "files: a folder shared with the host of a container often cannot"
        ),
    ),
    (
        ("reached end of file after reading",),
        (
            "read that segment with kafka-dump-log: a read of it came back short; on GlusterFS turn off its caches or take "
            "another volume (KAFKA-7282), and delete nothing"
        ),
    ),
    (
        ("NoSuchFileException: /tmp/",),
        "give the broker a directory that the system does not clean: a file that it had below /tmp is gone",
    ),
)
"""What the error of a directory or a process says, one of several texts, and what to do then."""
_THREADS = (
    ("ReplicaFetcher", "restart this broker: nothing that this thread fetched is replicated until then"),
    ("log-cleaner", "restart this broker: until then no topic is compacted, and their logs grow"),
)
"""What to do where a thread died, whatever its error."""


def step_for_loss(loss: Loss) -> str:
    """Return what to do about a loss, the surest way to the records first: who has them, then what is left."""
    if loss.kept_offsets is not None and loss.node is not None:
        first, end = loss.kept_offsets
        return (
            f"broker {loss.node} still has {first} to {end - 1} of its old log, which differ from its leader's: stop it "
            f"and copy the folder {loss.partition} before it is truncated again; kafka-dump-log reads it ({loss.sources[0]})"
        )
    if loss.copies:
        holders = _nodes(loss.copies)
        return (
            f"{holders} still had all of it by what these logs tell: keep the folder {loss.partition} there, and copy it "
            f"while that broker is stopped, before it follows the new leader and truncates ({loss.sources[0]})"
        )
    truncated_by = _nodes(loss.nodes) if loss.nodes else "the replicas"
    if loss.why in (UNCLEAN, DISK) and loss.committed != "no":
        return (
            f"no replica in these logs has them any more ({truncated_by} truncated): what is left is "
            f"a backup, a mirror, or the producers; tell whoever wrote to {loss.partition} ({', '.join(loss.sources[:2])})"
        )
    if loss.committed == "no":
        return "nothing to repair: they were never committed; a producer with acks=all was told so, one with acks=1 was not"
    if loss.missing_line is not None:
        return f"look for {loss.missing_line}"
    return f"compare the segments of all replicas of {loss.partition} with kafka-dump-log before anything is deleted"


def steps_for_partition(entries: Sequence[StoryEntry]) -> list[str]:
    """Return what to do about one partition, apart from its losses: its entries in order of time."""
    steps = []
    last = without_leader(entries)
    if last is not None:
        steps += _no_leader(entries, last)
    fetchers_failed = [entry for entry in entries if entry.kind == "fetcher_failed"]
    for entry in fetchers_failed:
        has_new_role = any(
            later.order > entry.order and later.node == entry.node and later.kind in ("follower", "leader")
            for later in entries
        )
        # A new role begins a new fetcher. OutOfOrder: the leader's own log is out of order, to fetch it again is no help.
        if not has_new_role and entry.node is not None and "OutOfOrder" not in (entry.fields["error"] or ""):
            steps.append(
                f"restart broker {entry.node}: its fetcher of this partition stays failed until its role changes "
                f"(from {entry.sources[0]})"
            )
    if any(entry.kind == "produce_refused" and "NotEnoughReplicas" in str(entry.fields["error"]) for entry in entries):
        steps.append(
            "bring back the replicas that left the ISR, which is smaller than min.insync.replicas: no record is lost by it; "
            "a partition that has no more replicas needs more of them, or a lower min.insync.replicas"
        )
    sequences = [sequence for entry in entries if (sequence := missing_sequence(entry)) is not None]
    if sequences:
        steps.append(
            f"compare where the log of the leader before ended with offset {sequences[0].offset}: what it had and this "
            "leader has not is lost if it was acknowledged; what was not, the producer sends again"
        )
    for entry in entries:
        if entry.kind == "remote_read_failed":
            below = f"the segments below {entry.fields['offset']}" if entry.fields["offset"] is not None else "its segments"
            steps.append(
                f"look for {below} in the remote storage and in __remote_log_metadata: until they are found "
                "this replica does not catch up, and nothing is lost; up to 3.7.0 a reassignment may end so (KAFKA-16105)"
            )
    if any(entry.kind == "remote_copy_failed" for entry in entries):
        steps.append(
            "watch the disk of this broker, which tries again: what is not copied stays on it, and nothing is lost by that"
        )
    if any(entry.kind == "uncleanable" for entry in entries):
        steps.append(
            "look for an invalid batch in the segments of that broker with kafka-dump-log; the log grows until the broker "
            "starts again and can compact it"
        )
    from_several = [entry for entry in entries if entry.kind == "corrupt" and "leaders" in entry.fields]
    if from_several:
        steps.append(
            f"look into the memory and the network of broker {from_several[0].node}: what it fetched from "
            f"{_nodes(from_several[0].fields['leaders'])} came invalid, so it is not one leader's log; a follower asks again"
        )
    elif not fetchers_failed and any(entry.kind == "corrupt" and "fetched" in entry.marks for entry in entries):
        steps.append(
            "nothing, if it has ended: a follower asks its leader again for what it cannot read; where it goes on, look "
            "into the segment of the leader with kafka-dump-log"
        )
    steps += [
        f"look at the segment with offset {entry.fields['offset']} on each replica (kafka-dump-log) before anything is "
        "deleted: one that has it whole is to lead; if none has, the consumer has to seek past it"
        for entry in entries
        if entry.kind == "corrupt" and entry.fields.get("by") == "a consumer" and entry.fields["offset"] is not None
    ]
    if any(entry.kind == "reset" and "by" in entry.fields for entry in entries):
        steps.append(
            "compare that offset with what the log has (kafka-get-offsets): below it, retention removed what was not read; "
            "beyond it, the log was truncated, or its topic made anew"
        )
    if any(entry.kind == "elected" and "replicas_after" in entry.fields and _is_new(entry) for entry in entries):
        steps.append(
            "see whether this is a build with shared storage, such as AutoMQ, where the new leader opens the same log: "
            "Apache Kafka elects no replica that the same line adds"
        )
    if any(entry.kind == "no_other_leader" for entry in entries):
        steps.append(
            "let another replica come into the ISR, or start the one that is in it, before this broker stops: until it runs "
            "again nobody leads; nothing is lost by that"
        )
    if last is None:
        steps += _described(entries)
    steps += [
        f"restart broker {entry.node} if this goes on: what it knows of its partitions is not what ZooKeeper has"
        for entry in entries
        if entry.kind == "isr_changed" and entry.node is not None and "zkVersion" in str(entry.fields.get("error"))
    ]
    steps += [
        f"copy the folder {entry.partition} of broker {entry.node} before anything of it is deleted: it is of the topic id "
        f"{entry.fields['topic_id']}, so the topic was made anew, or its metadata was lost ({entry.sources[0]})"
        for entry in entries
        if entry.kind == "topic_id_mismatch" and entry.node is not None
    ]
    # Of a request for several partitions no line names one: see step_for_process.
    advice = [
        (_process_advice(entry), entry.sources[0]) for entry in entries if entry.kind in ("fetch_refused", "read_failed")
    ]
    steps += [f"{step} ({source})" for step, source in advice if step is not None]
    return list(dict.fromkeys(steps))


def _described(entries: Sequence[StoryEntry]) -> list[str]:
    """Return what to do about replicas that the last description of a partition shows not in sync."""
    described = next((entry for entry in reversed(entries) if entry.kind == "described"), None)
    if described is None:
        return []
    fields = described.fields
    # Those that later lines show to run again are not missing.
    missing = sorted({*fields["replicas"]} - {*fields["isr"], *fields.get("back", ())})
    if missing and fields["isr"] == [fields["leader"]] and "leader lost" in described.marks:
        return [f"delete nothing on broker {fields['leader']}: what it has of this partition, no other one surely has"]
    if missing and not any(entry.kind == "isr_changed" for entry in entries):
        run = "runs" if len(missing) == 1 else "run"
        says = "`Shrinking ISR` says since when a replica is not in sync"
        return [f"see that {_nodes(missing)} {run}; else look into the server.log of the leader: {says}"]
    return []


def _is_new(election: StoryEntry) -> bool:
    """Return whether a leader was none of the replicas before the line that elected it."""
    leader, before, after = (election.fields[name] for name in ("leader", "replicas_before", "replicas_after"))
    return leader in after and leader not in before


def without_leader(entries: Sequence[StoryEntry]) -> StoryEntry | None:
    """Return the entry by which nobody leads a partition at the end of its `entries`; None if somebody does.

    Nobody does if the last entry about a leader is an election of none, unless the topic was being deleted, or the
    line shows how it was before (mark `past`).
    """
    last = next((entry for entry in reversed(entries) if entry.kind in ("elected", "leader", "described")), None)
    if last is None or last.kind != "elected" or last.fields["leader"] != NO_LEADER or last.marks & {"deletion", "past"}:
        return None
    return last


_STEPS_BY_KIND = {
    "not_deleted": (
        "watch the disk: the folders that end in -delete stay until the broker starts again; no partition needs them"
    ),
    "session_expired": (
        "look for a pause of this broker just before it, by a long garbage collection or a slow disk, and whether ZooKeeper "
        "was slow; the broker registers again"
    ),
    "controller_overloaded": (
        "look for a pause, a slow disk or too little processor of this controller at that time: a heartbeat that waited "
        "fences no broker, but one that starts stays fenced meanwhile"
    ),
    "migration": "see that the brokers have zookeeper.metadata.migration.enable=true and controller.quorum.voters",
    "leaders_not_moved": (
        "look into controller.log at that time: where a partition has no other replica in sync, its leader cannot move"
    ),
    "controller_conflict": "restart this broker, unless the controller has changed meanwhile: no record is lost by it",
    "api_versions_failed": "look into the log of the node that answered so, at that time: it says what failed there",
    "too_few_brokers": (
        "see that the brokers run and are registered; where there are no more of them, lower the replication factor: of "
        "Kafka's own topics by offsets.topic.replication.factor and transaction.state.log.replication.factor"
    ),
    "metadata_behind": (
        "see that most of the controllers run and that this node reaches them: their logs say whether one leads"
    ),
    "not_registered": (
        "restart this broker if this goes on: clients and the controller do not see it until it is registered; no other "
        "process may have its id"
    ),
}
"""What to do about a process, whatever its lines say besides."""
_KINDS = frozenset(
    {"directory_failed", "process_failed", "voter_mismatch", "quorum", "request_failed", "thread_died", "controller"}
    | {"fetch_refused", "broker_left", "read_failed", *_STEPS_BY_KIND}
)


def step_for_process(entry: StoryEntry) -> str | None:
    """Return what to do about an entry of a node, a directory or process that failed, with its line; None: nothing known."""
    advice = _process_advice(entry) if entry.partition is None and entry.kind in _KINDS else None
    return None if advice is None else f"{advice} ({entry.sources[0]})"


def _process_advice(entry: StoryEntry) -> str | None:
    """Return what to do about an entry of a node, by its kind and its error, without its line; None: nothing is known."""
    # What the error says; its cause says more.
    why = str(entry.fields.get("cause") or entry.fields.get("error") or "")
    if entry.kind in _STEPS_BY_KIND:
        # A line that any client of ZooKeeper prints is not known to be a broker's.
        if entry.kind == "not_registered" and entry.node is None:
            own_line = f"`received error {entry.fields['error']}`"
            return f"find the broker first: its own log has {own_line}; then {_STEPS_BY_KIND[entry.kind]}"
        if "pause" in entry.fields and "any client" not in entry.marks:
            return (
                "see why its heap is full, and give it more (KAFKA_HEAP_OPTS), or the session a longer timeout "
                "(zookeeper.session.timeout.ms): each time its leaders move"
            )
        return None if "any client" in entry.marks else _STEPS_BY_KIND[entry.kind]
    if entry.kind == "quorum":
        # It knows a leader, or did later.
        if "ended" in entry.marks or entry.fields["leader"] is not None:
            return None
        if entry.fields["rejected_by"] and not entry.fields["unreachable"]:
            nodes = ", ".join(map(str, entry.fields["rejected_by"]))
            return (
                f"look into the logs of nodes {nodes}: they answered, and did not vote for it, as their metadata log goes "
                "further, or they know a leader or another candidate"
            )
        if "no voters" in entry.marks:
            return (
                "give it controller.quorum.voters, as neither its configuration nor its metadata log names a voter; with "
                "controller.quorum.bootstrap.servers instead, see that it reaches these, and that the first controller was "
                "formatted with --standalone or --initial-controllers"
            )
        return (
            "see that most of the voters run and that each reaches the others at the listener of the controllers: without a "
            "leader of the quorum no partition gets another leader and no ISR changes"
        )
    if entry.kind == "controller":
        # Whoever becomes the controller next has the same metadata. `waited`: it only could not write in time.
        return (
            "keep the stack trace behind this line: it is a bug of the controller if the next ones fail with it, too"
            if "error" in entry.fields and "waited" not in entry.fields
            else None
        )
    if entry.kind == "read_failed" and "CorruptRecordException" in why:
        return (
            "look at the segment with that offset on each replica (kafka-dump-log) before anything is deleted: a record at "
            "or behind it is damaged here, so nobody reads on; a replica in sync that has it whole is to lead"
        )
    if entry.kind == "broker_left" and entry.fields["why"] == UNANNOUNCED:
        return (
            f"look into the log of broker {entry.fields['broker']} at that time, and into that of what runs it (the system, "
            "a container that was killed): the controller sees only that it is gone"
        )
    if entry.kind == "broker_left":
        return (
            f"start broker {entry.fields['broker']} again if it is to run; its own log says why it stopped, or fell silent"
            if "dump" in entry.marks and "ended" not in entry.marks
            else None
        )
    if entry.kind == "voter_mismatch":
        return (
            "keep the metadata directories of all controllers; while the quorum has a leader, kafka-metadata-quorum "
            f"remove-controller takes out directory {entry.fields['voter']}, and add-controller adds this one"
        )
    # For the steps of _STEPS that say where.
    where = f"below {entry.fields['directory']}" if entry.kind == "directory_failed" else "in its log directories"
    if _OF_ANOTHER_CLUSTER in why:
        return (
            "delete nothing before it is clear which one is right: the folders of this broker have records of the first; "
            "bring back what ZooKeeper or the controllers lost, or correct the address that it was given"
        )
    stored = _STORED_ID.search(why)
    if stored is not None:
        return (
            f"give it the volume that is its own, or the id of this one, {stored[1]}.id={stored[2]}; delete nothing: the "
            f"folders have records of broker {stored[2]}"
        )
    if "NodeExists" in why or "already registered" in why:
        return (
            "see that no other broker has this id; if none has, start it again when the session of its last run has expired "
            "(zookeeper.session.timeout.ms): nothing is lost by it"
        )
    if RENAMED_FOLDER.search(why):
        return (
            "start the broker again: the folder that it names was renamed meanwhile, by a move between directories "
            "or as its topic was deleted; the disk itself is not at fault"
        )
    level = _UNKNOWN_LEVEL.search(why)
    if level is not None:
        wanted, known = _release_of_level(int(level[1])), _release_of_level(int(level[2]))
        return (
            f"start {wanted}, or a newer one, on this node again: the metadata have the version {level[1]}, of {wanted}, "
            f"and what runs is {known}; nothing is damaged, so format and delete nothing"
        )
    foreign = _FOREIGN_FOLDER.search(why)
    if foreign is not None:
        return (
            f"move {foreign[1]} away, or point log.dirs to a folder of its own below the place where the volume is mounted"
        )
    # A fatal line may name what it failed at, and its exception only how.
    both = f"{entry.fields.get('error')} {why}"
    if "lost_by" in entry.fields:
        leader = entry.fields["leader"]
        return (
            f"see whether broker {leader} runs, and start it if not; if it runs and its own log is silent, it hangs: keep "
            "its threads (jstack) and restart it if the partitions that it leads have other replicas in sync"
        )
    step = next((step for texts, step in _STEPS if any(text in both for text in texts)), None)
    if step is not None:
        return step.format(where=where)
    if entry.kind == "thread_died":
        return next((step for name, step in _THREADS if name in entry.fields["thread"]), None)
    if entry.kind == "directory_failed" and not why:
        return "look for the first line `Error while ..` (LogDirFailureChannel) before it: it says why"
    return None


def _release_of_level(level: int) -> str:
    """Return the release that brought a level of metadata.version, or a later one than is known here."""
    if level > _LAST_LEVEL:
        return f"a release after Kafka {_LEVELS[-1][1]}"
    return next((f"Kafka {release}" for first, release in reversed(_LEVELS) if level >= first), "an older Kafka")


class MissingSequence(NamedTuple):
    """Sequence numbers [first, end) of a producer that a log has not, in front of an offset."""

    producer: int
    offset: int
    first: int
    end: int


def missing_sequence(entry: StoryEntry) -> MissingSequence | None:
    """Return what is missing in front of records that a leader refused as out of order; None for any other entry."""
    gap = _OUT_OF_ORDER.search(str(entry.fields.get("error"))) if entry.kind == "produce_refused" else None
    if gap is None:
        return None
    producer, offset, incoming, last = (int(number) for number in gap.groups())
    # Below the last one it is an old batch, which the log has, or has had.
    return MissingSequence(producer, offset, last + 1, incoming) if incoming > last + 1 else None


class _LogEnd(NamedTuple):
    """Where the log of a replica ends, and the line that says so."""

    offset: int
    source: str


def _no_leader(entries: Sequence[StoryEntry], last: StoryEntry) -> list[str]:
    """Return what to do about a partition that nobody leads since the entry `last`: which brokers to start again.

    Where the log ends of replicas are known, also which has most: to elect another one uncleanly loses the rest (KIP-1275).
    """
    ends: dict[int, _LogEnd] = {}
    isr = last.fields["isr"]
    # Only log ends of lines since nobody leads: before, every follower copied on.
    for entry in entries:
        if entry.order < last.order - SLACK:
            continue
        if entry.node is not None and entry.kind == "follower":
            ends[entry.node] = _LogEnd(entry.fields["offset"], entry.sources[0])
        elif entry.node is not None and entry.kind == "loaded" and entry.fields["log_end"] is not None:
            ends[entry.node] = _LogEnd(entry.fields["log_end"], entry.sources[0])
        elif entry.node is not None and entry.kind == "leader":
            ends.pop(entry.node, None)  # it has appended since: how far is not told
    steps = []
    if "new" in last.fields:
        topic = str(last.partition).rpartition("-")[0]
        steps.append(
            f"start a broker that it was assigned to (kafka-topics --describe --topic {topic} names them): it is new, and "
            f"has no records ({last.sources[0]})"
        )
        return steps
    # At the first election of a partition there is no ISR before.
    if "first" in last.marks:
        return [f"see the error behind that line, which says why nobody was elected ({last.sources[0]})"]
    if not isr and "elr" in last.fields:
        steps.append(
            f"start {_nodes(last.fields['elr'])} again: an eligible leader has everything that was committed (KIP-966; "
            f"{last.sources[0]})"
        )
    elif not isr and "last_elr" in last.fields:
        steps.append(
            f"start {_nodes(last.fields['last_elr'])} again, which led last: it has everything that was committed, unless "
            f"an unclean stop cost it some (KIP-966; {last.sources[0]})"
        )
    elif isr:
        steps.append(
            f"start {_nodes(isr)} again: the last in-sync replicas have everything that was committed ({last.sources[0]})"
        )
    elif isr is not None and last.fields.get("replicas"):
        steps.append(
            f"start {_nodes(last.fields['replicas'])} again, the one first that stopped last: unclean election is allowed "
            f"for it, so the first one that runs leads, and what the others have more is lost ({last.sources[0]})"
        )
    if isr is None:
        topic = str(last.partition).rpartition("-")[0]
        steps.append(
            f"start the brokers of its ISR again, which kafka-topics --describe --topic {topic} names: they have everything "
            f"that was committed ({last.sources[0]})"
        )
    if len(ends) > 1:
        best = max(ends, key=lambda node: ends[node].offset)
        longest = ends[best]
        loses = [
            f"electing {node} loses {end.offset} to {longest.offset - 1}"
            for node, end in sorted(ends.items())
            if end.offset < longest.offset
        ]
        if loses:
            steps.append(
                f"if you must elect uncleanly, broker {best}'s log is the longest: {'; '.join(loses)} ({longest.source})"
            )
    return steps


def _nodes(nodes: Sequence[int]) -> str:
    """Return the names of brokers in a sentence: "broker 1", or "brokers 1, 2 and 3"."""
    return f"broker {nodes[0]}" if len(nodes) == 1 else f"brokers {', '.join(map(str, nodes[:-1]))} and {nodes[-1]}"
