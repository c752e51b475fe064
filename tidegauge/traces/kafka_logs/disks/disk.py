"""Read what a broker left on its disk, checkpoints and segment files, as observations at the end of its logs.

An *observation* is where values of a replica were read, and these as fields of an Observe event: `leo`, `hw`, `log_start`,
and `epochs`, the epoch cache as pairs of an epoch and its start offset. A *log directory* is one of Kafka's log.dirs.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tidegauge.impl.errors import CheckpointError
from tidegauge.impl.profiles import FETCH_TRUNCATION
from tidegauge.impl.rules import truncate_from_end_keeps
from tidegauge.impl.storage.checkpoints import (
    HIGH_WATERMARK_FILE,
    LEADER_EPOCH_FILE,
    LOG_START_FILE,
    parse_epochs,
    parse_offsets,
)
from tidegauge.traces.kafka_logs.discovery.files import named_node
from tidegauge.traces.kafka_logs.discovery.folders import leads_out
from tidegauge.traces.kafka_logs.disks.dumps import Dumps
from tidegauge.traces.kafka_logs.disks.segment_files import (
    BatchEpochs,
    ReplicaLog,
    contradiction,
    epochs_of,
    read_replica,
    replica_files,
    unchecked,
)
from tidegauge.traces.kafka_logs.nodes.gap_detection import EVERYTHING, WORDS, latest_epoch
from tidegauge.traces.kafka_logs.nodes.logged_broker import Fields, LoggedStep
from tidegauge.traces.kafka_logs.nodes.node import Node
from tidegauge.traces.kafka_logs.nodes.process import END
from tidegauge.traces.kafka_logs.parsing.lines import AFTER_ALL_LINES as END_OF_LOG
from tidegauge.traces.kafka_logs.parsing.lines import Gap
from tidegauge.traces.problems import CHARACTERS_SHOWN, Problem
from tidegauge.traces.schema import UNCLEAN_ELECTIONS, Config, Event, Trace
from tidegauge.util.input_limits import read_regular

# The checkpoint files of a broker that stopped in order.
#
# Their format is in `impl.storage.checkpoints`. The leader-epoch-checkpoint of a partition is in its folder in a log
# directory; in a capture it is called `<topic>-<partition>.leader-epoch-checkpoint`.
# The recovery point is not the LEO, and a log start is written only above the first segment: both stay unknown otherwise.


Parsed = TypeVar("Parsed")
_ENDLESS = re.compile(r"\d{19}")
MOST_CHECKPOINT, MOST_PROPERTIES = 16 << 20, 1 << 16
"""Bytes of a checkpoint, which has a line of at most 280 bytes for each partition of a broker, and of meta.properties."""


def read_checkpoints(folder: Path, label: str) -> tuple[dict[str, tuple[str, Fields]], list[Problem]]:
    """Read the checkpoint files in a log directory, or the copies of them in the folder of a node.

    Return, by topic-partition, the first file that has values of it, and the fields of an Observe; and the problems. `label`
    stands for the folder in names of files.
    """
    observations: dict[str, tuple[str, Fields]] = {}
    problems: list[Problem] = []
    for file, name in ((HIGH_WATERMARK_FILE, "hw"), (LOG_START_FILE, "log_start")):
        offsets = _parsed(folder / file, folder, f"{label}{file}", parse_offsets, problems)
        for tp, offset in offsets.items() if offsets is not None else ():
            observations.setdefault(str(tp), (f"{label}{file}", {}))[1][name] = offset
    for path in sorted(folder.glob(f"*{LEADER_EPOCH_FILE}")) + sorted(folder.glob(f"*/{LEADER_EPOCH_FILE}")):
        # A checkpoint beside the partitions names none: its partition is unknown.
        if path.name == LEADER_EPOCH_FILE and path.parent == folder:
            continue
        file = f"{label}{path.relative_to(folder).as_posix()}"
        tp_name = path.parent.name if path.name == LEADER_EPOCH_FILE else path.name.removesuffix(f".{LEADER_EPOCH_FILE}")
        entries = _parsed(path, folder, file, parse_epochs, problems)
        if entries is not None:
            observations.setdefault(tp_name, (file, {}))[1]["epochs"] = [list(pair) for pair in entries.pairs()]
    return observations, problems


def _parsed(
    path: Path, folder: Path, label: str, parse: Callable[[str, str], Parsed], problems: list[Problem]
) -> Parsed | None:
    """Return what `parse` (text, label) makes of a checkpoint file below `folder`.

    None without the file; None, and a Problem, if its content cannot be relied on.
    """
    do = "copy it again, or leave it out"
    try:
        if not path.exists():
            return None
        if leads_out(path, folder):
            do = "copy what it leads to, or use --follow-links if you trust who made it"
            problems.append(Problem(label, None, "no link that leads out of what was named", "one", do))
            return None
        text = read_regular(path, MOST_CHECKPOINT).decode()
        # The columns of a trace hold 64-bit integers: a damaged number must not overflow there.
        if _ENDLESS.search(text) is None:
            return parse(text, label)
        problems.append(Problem(label, None, "offsets and epochs of at most 18 digits", "a longer number", do))
    except (OSError, ValueError) as error:
        seen = str(error.strerror) if isinstance(error, OSError) and error.strerror else type(error).__name__
        problems.append(Problem(label, None, "a checkpoint file", seen, do))
    except CheckpointError as error:
        problems.append(Problem(label, error.line, error.expected, error.seen[:CHARACTERS_SHOWN], do))
    return None


# The disk of a broker as observations: its checkpoint files, and the records in its segment files.
#
# 1. Each source is an Observe of its own: first the checkpoint files of a replica, then its segment files (log end, log
#    start and epochs). The judge compares each with what it knows, so a log that differs from its checkpoint or from the
#    text logs is reported where it differs.
# 2. The epochs of records are reported only if no checkpoint shows the cache, or if they contradict it. A cache may have
#    more entries than the records show, so records that agree with it are no second observation of it.
# 3. With text logs, the disk of a broker counts only if the broker stopped in order: only then is it the end of those logs.
# 4. Without any text log the replicas are compared with each other. A log directory that was not closed in order is read as
#    the next broker would load it: the high watermark within the log, no epochs after its end (LogLoader#load, UnifiedLog's
#    constructor).


CLOSED = ".kafka_cleanshutdown"
"""LogManager writes it into a log directory when it has closed every log in order."""

_NODE_ID = re.compile(r"^(?:node|broker)\.id=(\d{1,10})[ \t\r]*+$", re.MULTILINE)

Observation = tuple[str, Fields]
"""Where it was read, and its fields."""


def read_disk(
    folder: Path, label: str, caches: Mapping[str, BatchEpochs | None]
) -> tuple[dict[str, list[Observation]], list[Problem]]:
    """Return the observations of the disk of a broker that stopped in order, by topic-partition; and the problems.

    `folder` is that of the node. `caches` are the epoch caches as its text logs show them, None if unknown.
    """
    log_dirs = replica_files(folder)
    by_partition: dict[str, list[Observation]] = {}
    problems = unchecked(label) if log_dirs else []
    for log_dir in sorted({folder, *log_dirs}):
        checkpoints, of_checkpoints = read_checkpoints(log_dir, _label(log_dir, folder, label))
        problems += of_checkpoints
        starts_known = _starts_known(log_dir, of_checkpoints)
        for tp, observation in checkpoints.items():
            by_partition.setdefault(tp, []).append(observation)
        for tp, files in log_dirs.get(log_dir, {}).items():
            log = read_replica(files, folder, label)
            problems += [log.fault] if log.fault is not None else []
            _, checkpointed = checkpoints.get(tp, ("", {}))
            by_partition.setdefault(tp, []).append(_of_segments(log, starts_known, checkpointed, caches.get(tp)))
    return by_partition, problems


def left_unread(folder: Path, label: str) -> list[Problem]:
    """Return the problem for segment files of a broker that did not stop in order; none if it has no such files."""
    if not replica_files(folder):
        return []
    do = "stop the broker and copy both again, or check the log directories of all brokers without their logs"
    return [Problem(label or ".", None, "segment files of a broker that was shut down cleanly", "one that was not", do)]


def read_disks(folder: Path) -> tuple[list[Trace], list[Problem]]:
    """Read the log directories below `folder` without any text log: a trace of its replicas for each topic-partition."""
    # By topic-partition and node.
    by_partition: dict[str, dict[int, list[Observation]]] = {}
    problems: list[Problem] = []
    log_dirs = sorted(replica_files(folder).items()) if folder.is_dir() else []
    for number, (log_dir, replicas) in enumerate(log_dirs):
        # One that nothing names gets a negative id of its own.
        node = _node(log_dir, folder, -1 - number)
        label = _label(log_dir, folder, "")
        checkpoints, of_checkpoints = read_checkpoints(log_dir, label)
        problems += of_checkpoints
        starts_known = _starts_known(log_dir, of_checkpoints)
        for tp, files in replicas.items():
            log = read_replica(files, log_dir, label)
            problems += [log.fault] if log.fault is not None else []
            nodes = by_partition.setdefault(tp, {})
            # Two replicas of one partition: the folder has the disks of two brokers.
            if node in nodes:
                do = "put the log directories of one node, and no others, into one folder"
                problems.append(
                    Problem(label, None, f"one replica of {tp} per node", f"another one of node {node}", do, lost=1)
                )
                continue
            file, checkpointed = checkpoints.get(tp, ("", {}))
            # The broker that starts on it recovers its logs first, up to the first fault: read them as it would load them.
            if log.fault is not None or not (log_dir / CLOSED).exists():
                checkpointed = _as_loaded(checkpointed, log.end)
                log = ReplicaLog(log.start, log.end, log.runs, log.file, fault=None)
            nodes[node] = [(file, checkpointed)] if checkpointed else []
            nodes[node].append(_of_segments(log, starts_known, checkpointed, cache=None))
    problems += unchecked("") if log_dirs else []
    return [_trace(folder.name, tp, nodes) for tp, nodes in sorted(by_partition.items())], problems


def read_dumps(path: Path) -> tuple[list[Trace], list[Problem]]:
    """Read what dumps of segments, and checkpoint files without segments, show of replicas: a trace for each partition."""
    dumps = Dumps(path)
    problems = dumps.problems
    # By node and topic-partition, the first file that has values of the replica, and these.
    checkpointed: dict[tuple[int, str], tuple[str, Fields]] = {}
    for node, name, file in dumps.checkpoints:
        label = dumps.label(file)
        if name == "epochs":
            tp = file.parent.name if file.name == LEADER_EPOCH_FILE else file.name.removesuffix(f".{LEADER_EPOCH_FILE}")
            entries = _parsed(file, path, label, parse_epochs, problems)
            if entries is not None:
                checkpointed.setdefault((node, tp), (label, {}))[1]["epochs"] = [list(pair) for pair in entries.pairs()]
            continue
        offsets = _parsed(file, path, label, parse_offsets, problems)
        for partition, offset in offsets.items() if offsets is not None else ():
            checkpointed.setdefault((node, str(partition)), (label, {}))[1][name] = offset
    by_partition: dict[str, dict[int, list[Observation]]] = {}
    for node, tp in sorted({*checkpointed, *dumps.replicas}):
        file_of, fields = checkpointed.get((node, tp), ("", {}))
        replica = dumps.replicas.get((node, tp))
        runs = () if replica is None else replica.runs
        observations = by_partition.setdefault(tp, {}).setdefault(node, [])
        if replica is not None and runs:
            # It may be a part of the log: then it is read as a log that ends there.
            fields = _as_loaded(fields, runs[-1].end)
            log = ReplicaLog(min(replica.segments), runs[-1].end, runs, replica.file, fault=None)
            # Without a checkpoint of it the log starts where its first segment does: only DeleteRecords would leave more.
            observations.append(_of_segments(log, starts_known=True, checkpointed=fields, cache=None))
        if fields:
            observations.insert(0, (file_of, fields))
    traces = [_trace(path.name, tp, nodes, DUMPED) for tp, nodes in sorted(by_partition.items()) if any(nodes.values())]
    return traces, problems


def _starts_known(log_dir: Path, problems: Sequence[Problem]) -> bool:
    """Return whether the checkpoint of log starts was read without a problem.

    Then a log that it leaves out starts at its first segment (LogManager#checkpointLogStartOffsetsInDir).
    """
    return (log_dir / LOG_START_FILE).is_file() and not any(problem.path.endswith(LOG_START_FILE) for problem in problems)


def _of_segments(log: ReplicaLog, starts_known: bool, checkpointed: Fields, cache: BatchEpochs | None) -> Observation:
    """Return what the segment files of a replica show beyond its checkpoint files, whose fields are `checkpointed`.

    `starts_known`: see `_starts_known`. `cache` is the epoch cache by the lines of the broker, which counts if there is no
    checkpoint of it.
    """
    fields: Fields = {}
    # A damaged log ends where a recovery would truncate it, not where its broker had come.
    if log.fault is None:
        fields["leo"] = log.end
    if starts_known and "log_start" not in checkpointed:
        fields["log_start"] = log.start
    reported_cache = checkpointed.get("epochs", cache)
    # Nothing else shows the epoch cache: report what the records imply.
    if not isinstance(reported_cache, Sequence):
        if log.fault is None:
            fields["epochs"] = epochs_of(log.runs, _log_start(checkpointed, log.start))
        return log.file, fields
    contradicting = contradiction(log.runs, reported_cache)
    if contradicting is None:
        return log.file, fields
    # The cache says nothing about records below its first entry: they are left out.
    first_start = int(reported_cache[0][1]) if reported_cache else log.start
    return contradicting.at, fields | {"epochs": epochs_of(log.runs, first_start)}


def _log_start(checkpointed: Fields, start: int) -> int:
    """Return the log start that a checkpoint has, else `start`, that of the first segment."""
    log_start = checkpointed.get("log_start", start)
    return log_start if isinstance(log_start, int) else start


def _as_loaded(checkpointed: Fields, end: int) -> Fields:
    """Return the checkpointed fields as a broker has them once it has loaded a log that ends at `end` (rule 4)."""
    fields = dict(checkpointed)
    hw, epochs = fields.get("hw"), fields.get("epochs")
    if isinstance(hw, int):
        fields["hw"] = min(hw, end)
    if isinstance(epochs, list):
        fields["epochs"] = epochs[: truncate_from_end_keeps([start for _, start in epochs], end)]
    return fields


def _label(log_dir: Path, folder: Path, label: str) -> str:
    """Return what stands for a log directory in names of files; `label` stands for `folder`."""
    return label if log_dir == folder else f"{label}{log_dir.relative_to(folder).as_posix()}/"


def _node(log_dir: Path, folder: Path, fallback: int) -> int:
    """Return the node id in meta.properties, which Kafka keeps in each log directory; else that in the folder's name.

    If there is neither, return `fallback`.
    """
    try:
        properties = log_dir / "meta.properties"
        is_named = not leads_out(properties, folder)
        node_line = _NODE_ID.search(read_regular(properties, MOST_PROPERTIES).decode()) if is_named else None
    except (OSError, UnicodeDecodeError):
        node_line = None
    if node_line is not None:
        return int(node_line[1])
    # The first folder below the input is that of the node, such as n1/.
    parts = log_dir.relative_to(folder).parts
    named = named_node(folder / parts[0] if parts else folder)
    return fallback if named is None else named


SEGMENTS, DUMPED = "Kafka segment files", "dumps and checkpoints of Kafka"


def _trace(name: str, tp: str, nodes: Mapping[int, Sequence[Observation]], source: str = SEGMENTS) -> Trace:
    """Return the trace of a partition whose events are observations: what each disk shows, without what happened.

    A disk does not show the release: the profile is that of today's Kafka. Nor does it show who held the high watermark
    back, so `lag_rule` only bounds it; and no election: if one might have been unclean, no two replicas could be compared.
    """
    config = Config(
        nodes=tuple(sorted(nodes)),
        profile=FETCH_TRUNCATION.name,
        lag_rule=True,
        source=f"{source}; elections are taken to be clean",
        extra={UNCLEAN_ELECTIONS: False},
    )
    events = tuple(
        Event(node, "Observe", fields, seq, None, None, at)
        for node, observations in sorted(nodes.items())
        for seq, (at, fields) in enumerate(observations)
    )
    return Trace(f"{name}/{tp}", tp, config, events)


# The disk of a node that has text logs, compared with its last lines.


def observe(node: Node, ends_early: bool) -> list[Problem]:
    """Add what the disk of a node that stopped in order has, as Observe steps; return the problems.

    `ends_early`: the log of some node ends before the disk was written.
    """
    if not node.runs or not node.stopped:
        return left_unread(node.folder, node.label)
    # A log that ends before the disk was written, this node's or another's, would make the disk look like a wrong broker's.
    if ends_early:
        return []
    observed, problems = read_disk(
        node.folder, node.label, {tp: replica.epochs for tp, replica in node.broker.replicas.items()}
    )
    run = node.runs[-1]
    place = (run.number, END, 1, run.last)  # just after its Stop, at (run, END, 0, 0)
    for tp, observations in sorted(observed.items()):
        if tp in node.broker.replicas:
            node.broker.steps += [
                LoggedStep(node.id, tp, "Observe", fields, at, run.last, place) for at, fields in observations
            ]
    return problems


def beyond_the_lines(node: Node, controller: Node | None) -> Iterator[Gap]:
    """Yield a gap if the disk of a node that stopped in order has more than its lines show: the last of them are missing.

    In 4.x they always are: a process that was told to stop goes on serving without logging. `controller` is the one whose
    lines were read, None if there is none.
    """
    last_line = (node.broker.run, node.broker.index)
    for step in node.broker.steps:
        if step.name != "Observe":
            continue
        replica = node.broker.replicas[step.tp]
        cache = step.fields.get("epochs")
        latest_on_disk = _epoch_learned_after_lines(node, controller, step.tp, latest_epoch(cache))
        # More than the lines show is a cache that begins with theirs, or an epoch behind that of the last role.
        for name, logged, on_disk in (
            ("leo", replica.leo, step.fields.get("leo")),
            ("hw", replica.last_hw, step.fields.get("hw")),
            ("entry", latest_epoch(replica.epochs), latest_epoch(_if_continues(replica.epochs, cache))),
            ("entry", _latest_epoch_of_role(node, step.tp), latest_on_disk),
        ):
            if logged is not None and isinstance(on_disk, int) and on_disk > logged:
                why = f"{WORDS[name]} {on_disk} on disk, and no line goes beyond {logged} ({step.at})"
                yield Gap(node.id, EVERYTHING, last_line, END_OF_LOG, (node.runs[-1].last, None), why)


def _latest_epoch_of_role(node: Node, tp: str) -> int | None:
    """Return the latest leader epoch in which a replica had a role, None if it had none.

    Unless lines are missing, its cache has no later one.
    """
    return max((epoch for step, epoch in _epochs(node, tp) if step.name in ("BecomeLeader", "BecomeFollower")), default=None)


def _epoch_learned_after_lines(node: Node, controller: Node | None, tp: str, epoch: int | None) -> int | None:
    """Return the leader epoch `epoch` if the node's process may have learned of it after its last line, else None.

    If the controller registered it before that line, the process has logged that it learned of it; if the controller never
    registered it, no cache can have it.
    """
    if controller is None:
        return epoch
    changes = (step_and_epoch for step_and_epoch in _epochs(controller, tp) if step_and_epoch[0].name == "ChangePartition")
    # Clocks of two nodes are compared here: nothing else orders these lines.
    return epoch if any(registered == epoch and step.time > node.runs[-1].last for step, registered in changes) else None


def _epochs(node: Node, tp: str) -> Iterator[tuple[LoggedStep, int]]:
    """Yield every step of a node about a partition that has a leader epoch, with that."""
    for step in node.broker.steps:
        epoch = step.fields.get("leader_epoch")
        if step.tp == tp and isinstance(epoch, int):
            yield step, epoch


def _if_continues(cache_before: Sequence[tuple[int, int]] | None, cache: object) -> object:
    """Return the epoch cache `cache` if it begins with the entries of `cache_before`, else None."""
    entries_before = list(cache_before or ())
    if not isinstance(cache, list):
        return None
    return cache if [tuple(entry) for entry in cache[: len(entries_before)]] == entries_before else None
