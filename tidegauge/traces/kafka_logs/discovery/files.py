"""Find the log files of each node, and their order.

In: a directory, or a file. Out: FoundLogs, with the lines of each node as *streams*: a log with its rotated parts in order.
The *stem* of a file is its name without what rotations add; `label` is what reports put before the names of a node's files.
A file is *passed over* if it is of no use, which does no harm; logs are *left out* if that makes a verdict incomplete. A
node is *named* by its own lines, or by its folder or file.

Rules of this file

1. Any layout of folders works: the logs of one broker in the folder itself, a folder per node (`n1/`, or deeper:
   `n1/logs/`), all nodes in one folder, or one file alone. Lines show their node (writers.py), else the file's name does.
2. A log and its rotated parts are one stream. Parts are ordered by the time of their first line, and only if that is equal
   by name (log4j `server.log.2025-01-01-10`, log4j2 `server-2025-01-01-1.log.gz`, logrotate `server.log.1.gz`,
   `server.log-20250101.gz`); the file that is still written to is last.
3. Logs of other programs (garbage collector, log cleaner, authorizer, console copies) are skipped by name, a second copy
   of a file by its content; both are counted. Record segments (twenty digits) are no logs.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tidegauge.traces.kafka_logs.discovery.folders import FolderWalk
from tidegauge.traces.kafka_logs.discovery.identify import (
    BESIDE_SEGMENTS,
    CLIENT_LOG,
    LOGS,
    METADATA_DUMP,
    OTHER,
    SEGMENT_DUMP,
    UNKNOWN,
    ZOOKEEPER,
    dump_kind,
    files_below,
    identify,
    looks_like_a_log,
)
from tidegauge.traces.kafka_logs.discovery.selection import Selection
from tidegauge.traces.kafka_logs.discovery.shards import read_log, select_lines
from tidegauge.traces.kafka_logs.discovery.writers import by_writer, is_brokers, left_out, matters, named_cluster
from tidegauge.traces.kafka_logs.parsing.layout import find
from tidegauge.traces.kafka_logs.parsing.lines import EMPTY, SEE, Line, LogFile, read_lines
from tidegauge.traces.kafka_logs.parsing.merge_streams import FileCopies
from tidegauge.traces.kafka_logs.parsing.metadata_dump import read_metadata_dump
from tidegauge.traces.problems import Problem
from tidegauge.util.input_limits import file_size, is_named_packed, without_packing

PACKED = 12
"""The ratio by which a log is compressed."""

UNNAMED = 0
"""What a node is called if its log lies alone, and no line and no folder says its id."""

DEEPEST = 3
"""Folders between the directory and a log."""

_DATE = r"\d{4}-?\d\d-?\d\d[\d\-T_.]*"
_LOG_FILE = re.compile(
    rf"(?P<stem>.+?)(?:[-._](?P<inner>{_DATE}))?\.log(?:[-._](?P<outer>{_DATE}|\d{{1,4}}))?(?:\.(?:gz|bz2|zst|lz4|xz))?",
    re.ASCII,
)
_SEGMENT = re.compile(r".*\d{20}\.log(\.gz)?")
_INDEXED = re.compile(r"(?P<stem>.+)[-._](?P<index>\d{1,3})")
_PASSED_OVER = re.compile(
    r"(?:.*[-_.])?gc\.log.*|gc-.*\.log.*|log-cleaner\.log.*|kafka-authorizer\.log.*|hs_err_pid\d+\.log|.*\.out"
    r"|.*\.log.*\.(?:zip|Z|swp|bak)",
    re.IGNORECASE,
)
_FOLDER = re.compile(r"(?:n|node-?|broker-?|kafka-?|controller-?)?(\d+)")


FileLines = tuple[Path, list[Line], int | None]
"""A file, lines of it, and the node that these lines name, None if they name none."""


@dataclass
class NodeFiles:
    """The logs of one node: streams of lines, each in its own order. `folder` has its checkpoint files."""

    id: int
    folder: Path
    label: str
    streams: list[list[Line]]
    problems: list[Problem]


class UnnamedFiles(NamedTuple):
    """The logs of a folder that name no node."""

    folder: Path
    label: str
    files: list[tuple[Path, list[Line]]]
    problems: Sequence[Problem]


@dataclass
class FoundLogs:
    """The logs in a directory (or one file); `not_judged` lists logs that are not used, with the reason.

    `nested` are folders with the folders of several nodes. A node may be there twice: clusters.py divides the nodes, and
    gives each of several clusters a `name`. `unknown` are lines of which nobody can tell the node.
    """

    nodes: list[NodeFiles] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    not_judged: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    layouts: dict[str, int] = field(default_factory=dict)
    selection: Selection | None = None
    nested: list[Path] = field(default_factory=list)
    unknown: list[Line] = field(default_factory=list)
    unnamed: list[UnnamedFiles] = field(default_factory=list)
    name: str = ""
    nameless: bool = False
    """No line names the one node that there is."""
    invented: set[int] = field(default_factory=set)
    """Ids that dumps of the metadata got, of which nothing tells the node."""


def is_log(path: Path) -> bool:
    """Return whether a file is a broker's log: by its name, by Kafka's marks, or by a layout of its first 50 lines."""
    if _LOG_FILE.fullmatch(path.name):
        return True
    if path.is_file() and looks_like_a_log(path):
        return True
    try:
        with path.open("rb") as file:
            texts = file.read(1 << 16).decode("utf-8", errors="replace").split("\n")
    except OSError:
        return False
    return find(texts[:50]) is not None


def log_files(folder: Path, walk: FolderWalk, by_content: bool = False) -> list[Path]:
    """List the text logs directly in `folder`, including those that are passed over later.

    A file with another name is one if its content is a broker's (`by_content`): a text that was pasted, an export.
    """
    return sorted(
        path
        for path in walk.entries(folder)
        if not _SEGMENT.fullmatch(path.name)
        and path.is_file()
        and (
            _LOG_FILE.fullmatch(path.name)
            or _PASSED_OVER.fullmatch(path.name)
            or (by_content and not BESIDE_SEGMENTS.fullmatch(path.name) and looks_like_a_log(path))
        )
    )


def logs_in(path: Path) -> list[Path]:
    """List the logs at a path: itself, or those in it and in its folders."""
    if path.is_dir():
        return [file for _, files in log_groups(path, by_content=True) for file in broker_logs_among(files)]
    return [path] if path.is_file() and is_log(path) else []


def log_size(path: Path) -> int:
    """Estimate the uncompressed bytes of the logs below a path."""
    return sum(file_size(file) * (PACKED if is_named_packed(file) else 1) for file in logs_in(path))


def log_groups(path: Path, walk: FolderWalk | None = None, by_content: bool = False) -> list[tuple[Path, list[Path]]]:
    """List the logs in a directory itself, and those at and below each of its folders, which usually are of one node.

    Each group is (folder, files); groups without files are left out. `by_content` is that of `log_files`.
    """
    walk = walk or FolderWalk(path)
    walk.enter(path)
    inside = sorted(walk.folders(path))
    below = [
        (sub, [file for folder in _folders(sub, walk) for file in log_files(folder, walk, by_content)]) for sub in inside
    ]
    return [(folder, files) for folder, files in ((path, log_files(path, walk, by_content)), *below) if files]


def find_nodes(path: Path, layout: str | None = None, selection: Selection | None = None) -> FoundLogs:
    """Find the nodes whose logs are in `path`; `layout` is their pattern if it is known, `selection` what is read."""
    logs = FoundLogs(selection=selection)
    if path.is_file():
        if dump_kind(path) == METADATA_DUMP:
            add_metadata_dumps(path, [path], logs)
            return logs
        _read_group(path.parent, "", [path], layout, logs)
        name_the_unnamed(logs)
        for node in logs.nodes:
            node.folder = path  # the checkpoint files beside it were not named
        return logs
    if not path.is_dir():
        do = "name the directory the logs are in"
        logs.problems.append(Problem(str(path), None, "a directory with broker logs", "nothing", do))
        return logs
    walk = FolderWalk(path)
    in_folders = log_groups(path, walk, by_content=True)
    for problem in walk.left_out.values():
        leave_out(problem, logs)
    dumps = [file for _, files in files_below(path) for file in files if dump_kind(file) == METADATA_DUMP]
    if not in_folders and not dumps:
        entries = len(walk.entries(path))
        do = "copy each broker's server.log and request.log into n<id>/; see docs/kafka-logs.md"
        expected = "*.log or *.log.gz files, or one folder with such files per node"
        logs.problems.append(Problem(str(path), None, expected, f"{entries} entries, no log among them", do))
    for folder, files in in_folders:
        _read_group(folder, "" if folder == path else f"{folder.name}/", files, layout, logs)
    name_the_unnamed(logs)
    add_metadata_dumps(path, dumps, logs)
    logs.nodes.sort(key=lambda node: node.id)
    return logs


_NODE_IN_NAME = re.compile(r"(?:^|[^A-Za-z0-9])(?:n|node|broker|kafka|b|controller)[-_.]?(\d{1,9})(?!\d)")


def node_of_file(path: Path, root: Path) -> int | None:
    """Return the node after which a file, or a folder from there up to `root`, is named; None if none is.

    It is for what tools print, whose lines name no node.
    """
    match = _NODE_IN_NAME.search(path.name)
    if match is not None:
        return int(match[1])
    folders = (folder for folder in (path.parent, *path.parent.parents) if folder == root or root in folder.parents)
    return next((node for folder in folders if (node := named_node(folder)) is not None), None)


def add_metadata_dumps(root: Path, dumps: Sequence[Path], logs: FoundLogs) -> None:
    """Add dumps of the metadata log, each as the log of a controller."""
    for path in dumps:
        label = path.name if path == root else path.relative_to(root).as_posix()
        file, brokers = read_metadata_dump(path, label)
        other_ids = {node.id for node in logs.nodes} | brokers
        named = node_of_file(path, root)
        # The log is the same on each controller; one that nothing names gets an id that is no other node's.
        unused = next(number for number in count(100, 100) if number not in other_ids)
        node = unused if named is None or named in other_ids else named
        logs.invented |= {node} - {named}
        if file.lines:
            logs.nodes.append(NodeFiles(node, path, f"{label}: ", [file.lines], file.problems))
            logs.layouts[file.layout] = logs.layouts.get(file.layout, 0) + 1
        else:
            logs.problems += file.problems


def _folders(folder: Path, walk: FolderWalk, depth: int = 1) -> Iterator[Path]:
    """Yield `folder`, which is `depth` levels below the input, and the folders in it, except those of partitions."""
    yield folder
    for sub in sorted(walk.folders(folder)) if depth < DEEPEST else ():
        if not sub.name.startswith(".") and not any(_SEGMENT.fullmatch(file.name) for file in walk.entries(sub)):
            yield from _folders(sub, walk, depth + 1)


def _read_group(folder: Path, label: str, paths: Sequence[Path], layout: str | None, logs: FoundLogs) -> None:
    """Read the files in a folder, and add them to `logs` as those of one node, or of several if their lines name several."""
    files_read: list[tuple[Path, LogFile]] = []
    copies = FileCopies()
    for path in _in_reading_order(paths, logs, label, folder):
        name = f"{label}{without_packing(path.relative_to(folder).as_posix())}"
        file = read_log(path, name, layout, logs.selection) if logs.selection else read_lines(path, name, layout)
        if len(paths) > 1 and [problem.seen for problem in file.problems] == [EMPTY]:
            logs.passed_over.append(f"{file.label} (empty)")  # as a broker's controller.log is
            continue
        # No layout was found: is it a log at all?
        if any(problem.expected == SEE for problem in file.problems) and not file.layout:
            input_file = identify(path, file.label)
            if input_file.kind in (SEGMENT_DUMP, METADATA_DUMP):
                continue  # read elsewhere
            if input_file.kind not in LOGS and len(paths) > 1:
                logs.passed_over.append(f"{file.label} ({input_file.kind})")
                continue
            # What is of a known program is not Kafka's; what is not may be a broker's in a layout that nobody knows.
            if not input_file.read and (input_file.system or input_file.kind not in (OTHER, UNKNOWN)):
                seen = input_file.system or input_file.kind
                foreign = Problem(file.label, None, "a log of a Kafka broker", seen, input_file.why or "")
                file = file._replace(problems=[foreign])
        # A copy would merge as a second log of the same process: every line twice, at the same time.
        original = copies.copy_of(file.label, file.lines)
        if original is not None:
            logs.passed_over.append(f"{file.label} (as {original})")
            continue
        files_read.append((path, file))
        if file.lines:
            logs.layouts[file.layout] = logs.layouts.get(file.layout, 0) + 1
    for files_of_cluster in _by_cluster(files_read):
        problems = [problem for _, file in files_of_cluster for problem in file.problems]
        parts = [
            (path, lines if file.selected or logs.selection is None else select_lines(lines, logs.selection), node)
            for path, file in files_of_cluster
            for _, lines, node in by_node(path, file, problems, logs)
        ]
        assign_to_nodes(folder, label, parts, problems, logs)


def _by_cluster(files: Sequence[tuple[Path, LogFile]]) -> Iterator[list[tuple[Path, LogFile]]]:
    """Yield the files of a folder, apart from the lines of each cluster in a file whose writers are of several clusters.

    A log platform exports the pods of two clusters into one file; both may have a node 1.
    """
    whole: list[tuple[Path, LogFile]] = []
    for path, file in files:
        clusters = {writer: set(map(named_cluster, lines)) - {None} for writer, lines in file.sources.items()}
        if len(set().union(*clusters.values())) < 2 or any(len(named) > 1 for named in clusters.values()):
            whole.append((path, file))
            continue
        # A writer that names no cluster may be of any: separate() looks which one lacks its node.
        for position, named in enumerate(sorted({*map(frozenset, clusters.values())}, key=sorted)):
            sources = {writer: lines for writer, lines in file.sources.items() if clusters[writer] == named}
            numbers = {line.number for lines in sources.values() for line in lines}
            lines_of_cluster = [line for line in file.lines if line.number in numbers]
            # The problems of reading are the file's: once.
            problems = [] if position else file.problems
            yield [(path, file._replace(lines=lines_of_cluster, sources=sources, problems=problems))]
    if whole:
        yield whole


def assign_to_nodes(
    folder: Path, label: str, parts: Sequence[FileLines], problems: Sequence[Problem], logs: FoundLogs
) -> None:
    """Assign the lines in one folder to the node, or the nodes, that wrote them, and add these to `logs`.

    `parts` are the files, or the lines of each node in them; `problems` are those of reading them.
    """
    ids = sorted({node for _, _, node in parts if node is not None})
    if len(ids) > 1:
        # Several nodes in several folders below: a cluster of its own (rule 1 of clusters.py).
        if len({path.parent for path, _, _ in parts}) > 1 and label:
            logs.nested.append(folder)
            return
        logs.problems += problems
        _split(folder, parts, ids, logs)
        return
    node = ids[0] if ids else named_node(folder)
    files = [(path, lines) for path, lines, _ in parts]
    if node is None:
        logs.unnamed.append(UnnamedFiles(folder, label, files, problems))
        return
    if ids:
        files = _of_brokers(label, parts, logs)
    logs.nodes.append(NodeFiles(node, folder, label, _streams(files), [*problems]))


def _of_brokers(label: str, parts: Sequence[FileLines], logs: FoundLogs) -> list[tuple[Path, list[Line]]]:
    """Return the files of a node's folder without the logs of other programs, which are passed over."""
    paths = [path for path, _, _ in parts]
    # One part of a log shows that all are a broker's: a rotated part may be short, and a controller's server.log has little
    # but starts and stops.
    stems = {stem(path, paths) for path, lines, node in parts if node is not None or is_brokers(lines)}
    others = {path for path, lines, _ in parts if lines and stem(path, paths) not in stems and _is_foreign(path, lines)}
    logs.passed_over += [f"{label}{path.name} (of another program)" for path in paths if path in others]
    return [(path, lines) for path, lines, _ in parts if path not in others]


def _is_of_another_program(path: Path) -> bool:
    """Return whether a file is surely the log of a Kafka client, or of ZooKeeper."""
    input_file = identify(path, path.name)
    return input_file.kind == CLIENT_LOG or input_file.system == ZOOKEEPER


def _is_foreign(path: Path, lines: Iterable[Line]) -> bool:
    """Return whether a file without lines that only brokers have is another program's, or says nothing that matters."""
    return _is_of_another_program(path) or not any(map(matters, lines))


def name_the_unnamed(logs: FoundLogs) -> None:
    """Place the logs whose lines name no node, once all others have theirs.

    The only log of the input is read as that of node UNNAMED. Otherwise a broker's log is a problem: it may be of any node.
    """
    with_lines = [files for _, _, files, _ in logs.unnamed if any(lines for _, lines in files)]
    is_only_log = len(with_lines) == 1 and not logs.nodes and not logs.nested
    for folder, label, files, problems in logs.unnamed:
        may_be_brokers = any(is_brokers(lines) or not _is_of_another_program(path) for path, lines in files if lines)
        if is_only_log and may_be_brokers and files in with_lines:
            logs.nameless = True
            logs.nodes.append(NodeFiles(UNNAMED, folder, label, _streams(files), [*problems]))
            continue
        logs.problems += problems
        for path, lines in files:
            logs.unknown += lines
            if is_brokers(lines):
                expected, do = (
                    "lines that say which node wrote it",
                    "put it into a folder n<id>/ that is named after its node",
                )
                leave_out(Problem(f"{label}{path.name}", None, expected, "none", do, lost=1), logs)
            elif lines:
                logs.passed_over.append(f"{label}{path.name} (of another program)")
    logs.unnamed.clear()


def _in_reading_order(paths: Sequence[Path], logs: FoundLogs, label: str, folder: Path) -> list[Path]:
    """Return the logs of a broker among the paths, request logs last; pass over the others."""
    broker_logs = broker_logs_among(paths)
    chosen = set(broker_logs)
    logs.passed_over += [f"{label}{path.relative_to(folder).as_posix()}" for path in paths if path not in chosen]
    # Other logs first: they have topic names and ids, requests have ids only.
    return sorted(broker_logs, key=lambda path: "request" in path.name)


def broker_logs_among(paths: Sequence[Path]) -> list[Path]:
    """Return the paths that are logs of a broker by their names."""
    broker_logs = [path for path in paths if not _PASSED_OVER.fullmatch(path.name)]
    # kafkaServer.out repeats server.log; where a broker logs to its console only, it is the log.
    return broker_logs or [path for path in paths if path.suffix == ".out"]


def by_node(path: Path, file: LogFile, problems: list[Problem], logs: FoundLogs) -> list[FileLines]:
    """Return the lines of a file by the node that wrote them, or all with None if they name no node.

    Lines of a file of several nodes that may be of any go to `logs.unknown`, and become problems.
    """
    divided = by_writer(file.lines, file.sources)
    if not divided.by_node:
        return [(path, file.lines, None)]
    logs.unknown += divided.unknown
    problems += left_out(file.label, divided.unknown, divided.by_node)
    return [(path, of_node, node) for node, of_node in divided.by_node.items()]


def named_node(folder: Path) -> int | None:
    """Return the node after which a folder is named (`n1`, `broker-1`, `1`); None if it is not."""
    match = _FOLDER.fullmatch(folder.name)
    return int(match[1]) if match else None


def _split(folder: Path, parts: Sequence[FileLines], ids: list[int], logs: FoundLogs) -> None:
    """Divide the files of the nodes `ids` in one folder: by the node that the lines name, else by the number in the name.

    A file of which neither says the node is left out.
    """
    files_of_node: dict[int, list[tuple[Path, list[Line]]]] = defaultdict(list)
    for path, lines, named in parts:
        numbers = {int(digits) for digits in re.findall(r"\d+", stem(path, ()))} & set(ids)
        owner = named if named is not None else numbers.pop() if len(numbers) == 1 else None
        if owner is not None:
            files_of_node[owner].append((path, lines))
        elif lines:
            expected = f"lines or a name that say which of the nodes {', '.join(map(str, ids))} wrote it"
            do = f"name it after its node (n{ids[0]}-{path.name}), or put each node's files into a folder n<id>/"
            leave_out(Problem(path.name, None, expected, "neither", do, lost=1), logs)
    for node, files in sorted(files_of_node.items()):
        # Checkpoint files of several nodes have the same names: none can be in this folder, so another one is named.
        logs.nodes.append(NodeFiles(node, folder / f"n{node}", f"n{node}: ", _streams(files), []))


def leave_out(problem: Problem, logs: FoundLogs) -> None:
    """Note logs that are not used: a verdict on the others does not cover everything."""
    logs.problems.append(problem)
    logs.not_judged.append(f"{problem.path}: expected {problem.expected}, seen {problem.seen}; it is not judged")


def _streams(files: Iterable[tuple[Path, list[Line]]]) -> list[list[Line]]:
    """Join each log with its rotated parts, in order; files without lines are left out."""
    with_lines = [(path, lines) for path, lines in files if lines]
    paths = [path for path, _ in with_lines]
    parts_of_log: dict[tuple[Path, str], list[tuple[Path, list[Line]]]] = defaultdict(list)
    for path, lines in with_lines:
        parts_of_log[path.parent, stem(path, paths)].append((path, lines))
    return [
        [line for _, lines in sorted(parts, key=lambda part: _rotation_key(part[0], part[1], paths)) for line in lines]
        for _, parts in sorted(parts_of_log.items())
    ]


def stem(path: Path, paths: Sequence[Path]) -> str:
    """Return the name of a log without what a rotation adds: `server` for `server.log.1.gz`.

    `server-1.log` is a rotated part only if there is a `server.log` among `paths`.
    """
    match = _LOG_FILE.fullmatch(path.name)
    if match is None:
        return path.name
    indexed = _INDEXED.fullmatch(match["stem"])
    if indexed is not None and any(other.name == f"{indexed['stem']}.log" for other in paths):
        return indexed["stem"]
    return match["stem"]


def _rotation_key(path: Path, lines: Sequence[Line], paths: Sequence[Path]) -> tuple[bool, int, int, str, int]:
    """Return the key by which the parts of a log are sorted, the oldest first and the current file last.

    Between rotated parts the times of their first and last lines decide, then the date or the number in their name.
    """
    match = _LOG_FILE.fullmatch(path.name)
    if match is None:
        return True, 0, 0, "", 0
    # `server.log.2026-11-21` has its date outside, `server-2026-11-21.log` inside the name.
    inner = match["inner"] or match["stem"][len(stem(path, paths)) + 1 :]
    outer = match["outer"] or ""
    is_current = not inner and not outer
    numbered = outer.isdigit() and len(outer) < len("20250101")
    date = "" if numbered else " ".join(number.zfill(8) for number in re.findall(r"\d+", inner or outer))
    # Times first: dates and numbers in names differ by tool. `.2` is older than `.1`.
    return is_current, lines[0].time, lines[-1].time, date, -int(outer) if numbered else 0
