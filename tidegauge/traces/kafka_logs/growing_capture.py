"""The logs of a cluster as they grow: their last lines are a window, which can be read as a capture at any time.

A *piece* is a block of bytes that a log file has grown by; a *group* is the folder that makes logs those of one node. The
caller feeds pieces, looks at the window as often as it likes, and once it is full begins the next one with `forget`. Times
are in microseconds, each on the clock of the node that wrote it.

Rules of this file

1. The window is bounded by volume: it has at least the last LINES that were read of all logs together, and at most three
   times as many and a piece. It is a capture that begins late; of forgotten lines CarryOver is kept.
2. A window is a stretch of reading, not of time: no clock decides what belongs to it.
3. A log lacks nothing before its last line. If a node has logged something, at a later time on its own clock, since the
   window was read last, its log does not end before what other nodes had logged by then (correlation/log_coverage.py).
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tidegauge.traces.kafka_logs.capture import Capture, capture_of
from tidegauge.traces.kafka_logs.discovery.clusters import separate
from tidegauge.traces.kafka_logs.discovery.files import FileLines, FoundLogs, assign_to_nodes, by_node, name_the_unnamed
from tidegauge.traces.kafka_logs.discovery.tail import GrowingLog, LogFile, Piece
from tidegauge.traces.kafka_logs.discovery.writers import own_id
from tidegauge.traces.kafka_logs.parsing.lines import Line, clock
from tidegauge.traces.kafka_logs.parsing.lines import LogFile as ReadLog
from tidegauge.traces.kafka_logs.passes import NO_CARRY_OVER, CarryOver
from tidegauge.traces.problems import Problem

LINES = 20_000
"""Lines in a window at least. To read and judge twice as many takes some two seconds of one core."""


@dataclass
class _LogInWindow:
    """The lines of one log; the first `old` of them (and `old_problems` problems) belong to the window before, too.

    `node_ids` are the nodes that its lines name as their writer, `latest` is the time of its last line.
    """

    group: Path
    path: Path
    growing: GrowingLog
    lines: list[Line] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    old: int = 0
    old_problems: int = 0
    node_ids: set[int] = field(default_factory=set)
    latest: int = 0


def _parts(log: _LogInWindow, problems: list[Problem], logs: FoundLogs) -> list[FileLines]:
    """Return the lines of a log by the node that wrote them; add to `problems` and `logs` what could not be divided."""
    # One writer: its id may stand in lines that are no longer in the window.
    if len(log.node_ids) < 2:
        return [(log.path, list(log.lines), next(iter(log.node_ids), None))]
    return by_node(log.path, ReadLog(log.growing.label, list(log.lines), []), problems, logs)


class GrowingCapture:
    """The window on the logs at `root`: what was read of them last, and what older windows showed."""

    def __init__(self, root: Path, layout: str | None = None, lines: int = LINES) -> None:
        """Begin with an empty window, which is full with so many new `lines`; `layout` is a pattern of log4j2."""
        self.root = root
        self.layout = layout
        self.lines = lines
        self.before: Mapping[str, CarryOver] = {}
        """What is known from before the window, by cluster."""
        self.judged_until: Mapping[int, str] = {}
        """Until when, by node, the windows before were judged."""
        self.news: list[Problem] = []
        """New problems; the caller clears the list."""
        self._logs: dict[LogFile, _LogInWindow] = {}
        self._new_lines = 0
        """Lines that were read since the window began."""
        self._target = 0
        """The latest time in any log when the window became full."""
        self._latest: dict[int, int] = {}
        """By node, the time of its last line at the last look, in microseconds of its clock."""
        self._seen_until: dict[tuple[int, int], int] = {}
        """By (a, b), until when on a's clock the log of b was seen to go on."""

    def full(self, more: Collection[LogFile]) -> bool:
        """Return whether the window has its lines, and no log lags behind; `more` are the logs with unread lines."""
        if self._new_lines < self.lines:
            return False
        # Logs that lag behind the furthest one are read first, else their next lines would be older than the window. Twice
        # as many lines end the wait: a log whose clock is far behind might never get there.
        self._target = self._target or max(window_log.latest for window_log in self._logs.values())
        return self._new_lines >= 2 * self.lines or all(self.reached(log) >= self._target for log in more)

    @property
    def lines_in_memory(self) -> int:
        """The number of lines in memory."""
        return sum(len(log.lines) for log in self._logs.values())

    def reached(self, log: LogFile) -> int:
        """Return the time up to which a log was read, on its clock; 0 if no line of it was."""
        return self._logs[log].latest if log in self._logs else 0

    def feed(self, piece: Piece) -> None:
        """Read a piece of a log: its complete lines go into the window, the rest waits for the next piece."""
        log = self._logs.get(piece.log)
        if log is None:
            log = self._logs[piece.log] = _LogInWindow(piece.group, piece.path, GrowingLog(piece.label, self.layout))
        # The first piece of a file (the log was rotated) completes the last line of the file before it.
        lines = log.growing.next_file(piece.label) if piece.first else []
        log.path = piece.path
        self._add_lines(log, [*lines, *log.growing.feed(piece.data)])

    def end(self) -> None:
        """Read the last line of each log, which waited for more: nothing is fed any more."""
        for log in self._logs.values():
            self._add_lines(log, log.growing.end())

    def look(self) -> list[Capture]:
        """Read the window as a capture for each cluster, and note how far each log was seen to go on."""
        logs = self._nodes_in_window()
        latest = {node.id: max(stream[-1].time for stream in node.streams) for node in logs.nodes if node.streams}
        for node_id, time in latest.items():
            # Rule 3: it has gone on logging, so what others had logged at the last look lies before its end.
            if time > self._latest.get(node_id, time):
                for other, logged in self._latest.items():
                    self._seen_until[other, node_id] = max(min(logged, time), self._seen_until.get((other, node_id), 0))
        self._latest |= latest
        clusters = separate(logs)
        # Disks are not observed, as they change while they are read: the nodes get a folder without any. Only now, as
        # clusters are named after the folders of their nodes.
        for node in (node for cluster in clusters for node in cluster.nodes):
            node.folder = Path(os.devnull)
        return self._read(clusters, self._seen_until)

    def whole(self) -> list[Capture]:
        """Read the window, and the disks, as logs that do not grow any more: as the command `check` does."""
        return self._read(separate(self._nodes_in_window()), {})

    def forget(self, captures: list[Capture]) -> None:
        """Begin the next window after `captures`, which this one was read as; its lines stay for one more window."""
        self.before = {capture.cluster: capture.carry_over for capture in captures}
        self.judged_until = {node: clock(time) for node, time in self._latest.items()}
        self._new_lines = self._target = 0
        for log in self._logs.values():
            # Two windows overlap by all lines of the older one: what an event depends on may lie before the new window.
            del log.lines[: log.old], log.problems[: log.old_problems]
            log.old, log.old_problems = len(log.lines), len(log.problems)

    def _add_lines(self, log: _LogInWindow, lines: list[Line]) -> None:
        """Add new lines of a log to the window, and the problems that its reader met since the last call."""
        log.lines += lines
        self._new_lines += len(lines)
        self.news += log.growing.problems
        log.problems += log.growing.problems
        log.growing.problems.clear()
        log.latest = max([log.latest, *(line.time for line in lines)])
        log.node_ids |= {node for line in lines if (node := own_id(line.message)) is not None}

    def _nodes_in_window(self) -> FoundLogs:
        """Return the lines in memory by node, as `find_nodes` does for a directory, with a problem if there are no logs."""
        all_logs = FoundLogs()
        for group, logs in self._groups():
            problems = [problem for log in logs for problem in log.problems]
            parts = [part for log in logs for part in _parts(log, problems, all_logs)]
            label = "" if group == self.root or self.root.is_file() else f"{group.name}/"
            assign_to_nodes(group, label, parts, problems, all_logs)
            for log in logs:
                if log.lines and log.growing.layout is not None:
                    name = log.growing.layout.name
                    all_logs.layouts[name] = all_logs.layouts.get(name, 0) + 1
        if not self._logs:
            folders = "name the directory that the brokers write their logs to, with one folder n<id>/ per broker"
            expected, do = "logs (*.log) with at least one complete line", f"{folders}; see docs/kafka-logs.md"
            all_logs.problems.append(Problem(str(self.root), None, expected, "none", do))
        for folder in all_logs.nested:
            seen, do = "a folder with the folders of several nodes", "follow that folder by itself"
            all_logs.problems.append(Problem(str(folder), None, "a folder per node", seen, do, lost=1))
        name_the_unnamed(all_logs)
        all_logs.nodes.sort(key=lambda node: node.id)
        return all_logs

    def _groups(self) -> Iterator[tuple[Path, list[_LogInWindow]]]:
        """Yield each folder with its logs, folders and logs sorted by name."""
        groups: dict[Path, list[_LogInWindow]] = {}
        for _, log in sorted(self._logs.items()):
            groups.setdefault(log.group, []).append(log)
        yield from sorted(groups.items())

    def _read(self, clusters: Iterable[FoundLogs], seen_until: Mapping[tuple[int, int], int]) -> list[Capture]:
        """Return the capture of each cluster; `seen_until` is that of CarryOver."""
        return [
            capture_of(
                "/".join((self.root.name, cluster.name)).rstrip("/"),
                cluster,
                replace(self.before.get(cluster.name, NO_CARRY_OVER), seen_until=seen_until),
            )
            for cluster in clusters
        ]
