"""What a broker has on its disk, as observations: checkpoint files, and the records in its segment files.

Rules of this file

1. An Observe says what one source says: first the checkpoint files of a replica, then its segment files (the log end, the
   log start, and epochs). The judge holds each against what it knows, so a log that differs from its checkpoint or from
   the logs of its broker is found where it differs.
2. The epochs of records are told where nothing else tells the cache, and where they contradict it. A cache may say more
   than records do, so records that agree with it are no second observation of it.
3. Where there are text logs, a disk counts behind a broker that stopped in order: only then is it the end of those logs.
4. Without any text log the replicas are held against each other, as they lie. A log directory that was not closed in order
   is read as the broker that starts on it would load it: the high watermark within the log, no epochs behind its end.
   LogLoader#load, UnifiedLog's constructor.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidegauge.impl.profiles import FETCH_TRUNCATION
from tidegauge.impl.rules import truncate_from_end_keeps
from tidegauge.impl.storage.checkpoints import LOG_START_FILE
from tidegauge.traces.kafka.disks.checkpoints import read_checkpoints
from tidegauge.traces.kafka.disks.segment_files import (
    Epochs,
    ReplicaLog,
    contradiction,
    epochs_of,
    read_replica,
    replica_files,
    unchecked,
)
from tidegauge.traces.kafka.lines.files import node_id
from tidegauge.traces.kafka.nodes.steps import Fields
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import UNCLEAN_ELECTIONS, Config, Event, Trace

CLOSED = ".kafka_cleanshutdown"
"""LogManager writes it into a log directory when it has closed every log in order."""

_NODE_ID = re.compile(r"^(?:node|broker)\.id=(\d+)\s*$", re.MULTILINE)

Observation = tuple[str, Fields]
"""Where it was read, and what it says."""


def read_disk(
    folder: Path, label: str, caches: Mapping[str, Epochs | None]
) -> tuple[dict[str, list[Observation]], list[Problem]]:
    """The disk of a broker that stopped in order, by topic-partition; `caches` are what its logs tell of epoch caches."""
    log_dirs = replica_files(folder)
    found: dict[str, list[Observation]] = {}
    problems = unchecked(label) if log_dirs else []
    for log_dir in sorted({folder, *log_dirs}):
        checkpoints, of_checkpoints = read_checkpoints(log_dir, _label(log_dir, folder, label))
        problems += of_checkpoints
        starts = _starts_known(log_dir, of_checkpoints)
        for tp, observation in checkpoints.items():
            found.setdefault(tp, []).append(observation)
        for tp, files in log_dirs.get(log_dir, {}).items():
            log = read_replica(files, folder, label)
            problems += [log.fault] if log.fault is not None else []
            checkpointed = checkpoints.get(tp, ("", {}))[1]
            found.setdefault(tp, []).append(_reported(log, starts, checkpointed, caches.get(tp)))
    return found, problems


def left_unread(folder: Path, label: str) -> list[Problem]:
    """What to say of the segment files of a broker that did not stop in order."""
    if not replica_files(folder):
        return []
    do = "stop the broker and copy both again, or check the log directories of all brokers without their logs"
    return [Problem(label or ".", None, "segment files of a broker that stopped in order", "one that did not", do)]


def read_disks(folder: Path) -> tuple[list[Trace], list[Problem]]:
    """The replicas in the log directories below `folder`, a trace for each topic-partition: no text log says more."""
    by_partition: dict[str, dict[int, list[Observation]]] = {}
    problems: list[Problem] = []
    places = sorted(replica_files(folder).items()) if folder.is_dir() else []
    for number, (log_dir, replicas) in enumerate(places):
        node = _node(log_dir, folder, -1 - number)
        label = _label(log_dir, folder, "")
        checkpoints, of_checkpoints = read_checkpoints(log_dir, label)
        problems += of_checkpoints
        starts = _starts_known(log_dir, of_checkpoints)
        for tp, files in replicas.items():
            log = read_replica(files, log_dir, label)
            problems += [log.fault] if log.fault is not None else []
            nodes = by_partition.setdefault(tp, {})
            if node in nodes:
                do = "put the log directories of one node, and no others, into one folder"
                problems.append(Problem(label, None, f"one replica of {tp} per node", f"another one of node {node}", do, 1))
                continue
            file, checkpointed = checkpoints.get(tp, ("", {}))
            if log.fault is not None or not (log_dir / CLOSED).exists():
                checkpointed = _as_loaded(checkpointed, log.end)
                log = ReplicaLog(log.start, log.end, log.runs, log.file, None)
            nodes[node] = [(file, checkpointed)] if checkpointed else []
            nodes[node].append(_reported(log, starts, checkpointed, None))
    problems += unchecked("") if places else []
    return [_trace(folder.name, tp, nodes) for tp, nodes in sorted(by_partition.items())], problems


def _starts_known(log_dir: Path, problems: Sequence[Problem]) -> bool:
    """Whether the checkpoint of log starts was read: LogManager names only those that are not their first segment's."""
    return (log_dir / LOG_START_FILE).is_file() and not any(one.path.endswith(LOG_START_FILE) for one in problems)


def _reported(log: ReplicaLog, starts: bool, checkpointed: Fields, cache: Epochs | None) -> Observation:
    """What the segment files of a replica say beyond its checkpoint files."""
    fields: Fields = {}
    if log.fault is None:
        fields["leo"] = log.end
    if starts and "log_start" not in checkpointed:
        fields["log_start"] = log.start
    reported = checkpointed.get("epochs", cache)
    if not isinstance(reported, Sequence):
        if log.fault is None:
            fields["epochs"] = epochs_of(log.runs, _first(checkpointed, log.start))
        return log.file, fields
    differs = contradiction(log.runs, reported)
    if differs is None:
        return log.file, fields
    return differs.at, fields | {"epochs": epochs_of(log.runs, int(reported[0][1]) if reported else log.start)}


def _first(checkpointed: Fields, start: int) -> int:
    log_start = checkpointed.get("log_start", start)
    return log_start if isinstance(log_start, int) else start


def _as_loaded(checkpointed: Fields, end: int) -> Fields:
    fields = dict(checkpointed)
    hw, epochs = fields.get("hw"), fields.get("epochs")
    if isinstance(hw, int):
        fields["hw"] = min(hw, end)
    if isinstance(epochs, list):
        fields["epochs"] = epochs[: truncate_from_end_keeps([start for _, start in epochs], end)]
    return fields


def _label(log_dir: Path, folder: Path, label: str) -> str:
    return label if log_dir == folder else f"{label}{log_dir.relative_to(folder).as_posix()}/"


def _node(log_dir: Path, folder: Path, fallback: int) -> int:
    """The id in meta.properties, which Kafka keeps in each log directory, else what the folder's name says."""
    try:
        said = _NODE_ID.search((log_dir / "meta.properties").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        said = None
    if said is not None:
        return int(said[1])
    parts = log_dir.relative_to(folder).parts
    return node_id(folder / parts[0] if parts else folder, fallback)


def _trace(name: str, tp: str, nodes: Mapping[int, Sequence[Observation]]) -> Trace:
    config = Config(
        nodes=tuple(sorted(nodes)),
        profile=FETCH_TRUNCATION.name,
        lag_rule=True,
        source="Kafka segment files; elections are taken to be clean",
        extra={UNCLEAN_ELECTIONS: False},
    )
    events = tuple(
        Event(node, "Observe", fields, seq, None, None, at)
        for node, observations in sorted(nodes.items())
        for seq, (at, fields) in enumerate(observations)
    )
    return Trace(f"{name}/{tp}", tp, config, events)
