"""One node of a capture (a broker, a controller or both): its lines in order, and the steps that they become.

In: the lines of a node's files, each file in its order. Each line that has a pattern becomes a ParsedLine (its kind and its
values) and goes to the handler of its kind in leader.py, follower.py, process.py or controller.py, which adds steps, events
in the making. A *run* is one process of the node: its lines, and its number from 0.

Rules of this file

1. Kafka's default configuration writes the lines of one process to several files (server.log, state-change.log,
   controller.log). They are merged by that node's clock, each file in its own order (`merge_streams.py`).
2. Requests are found by their lines, not by the name of their file: a console has them among the others.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tidegauge.traces.kafka_logs.discovery.files import NodeFiles
from tidegauge.traces.kafka_logs.nodes import controller, follower, leader, process
from tidegauge.traces.kafka_logs.nodes.controller import LoggedController
from tidegauge.traces.kafka_logs.nodes.gap_detection import GapDetector, clock_set_back
from tidegauge.traces.kafka_logs.nodes.logged_broker import OF_A_CONTROLLER, LoggedBroker, ThreadPartition
from tidegauge.traces.kafka_logs.nodes.process import ProcessRun
from tidegauge.traces.kafka_logs.parsing.lines import AFTER_ALL_LINES, BEFORE_ALL_LINES, Gap, Line, Spot, incarnations
from tidegauge.traces.kafka_logs.parsing.merge_streams import merge_streams, without_copies
from tidegauge.traces.kafka_logs.parsing.parsed_line import ParsedLine, parse_line
from tidegauge.traces.kafka_logs.parsing.request_log import NOT_KAFKAS, LoggedRequest, RequestReader, is_request
from tidegauge.traces.problems import Problem, shown

HANDLERS = {**process.HANDLERS, **leader.HANDLERS, **follower.HANDLERS}
"""By kind of line, the function (broker, line) that handles it."""


# The log of a replica and another of the same name: one that is to replace it, or that was replaced.
#
# 1. A replica is moved between directories of a broker (KIP-113) by a second log, `..-future`, which a thread of its own
#    fills (ReplicaAlterLogDirsThread). Its lines name the partition as those of the replica's log do; the directory or the
#    thread tell them apart, as the two are never in one directory. A log may begin after the move did: then the directory in
#    which the replica was loaded, or else the first one that is seen, is the replica's.
# 2. The future log replaces the replica's when it has the same log end, with its high watermark, under the lock of the
#    partition (Partition#maybeReplaceCurrentWithFutureReplica). So the replica makes no step; the other log is now the old
#    one.
# 3. A fetcher looks the log up before it handles a response (ReplicaFetcherThread#processPartitionData). If the log is
#    replaced meanwhile, the records go to the new log, and the log end and high watermark that it prints are the old one's:
#    the replica does not take over the leader's. The first response whose line comes behind the replacement may be such a
#    one: then its log end is that without the records, or the high watermark is set in the old directory.

_MOVER = "ReplicaAlterLogDirsThread-"
_LOG_PREFIX = re.compile(r"^\[UnifiedLog partition=[^,]*, dir=([^\]]*)\]")
"""The beginning of the log's own lines, with its directory."""
_LOG_LOCATION = re.compile(r"(?:Completed load of Log\(dir=|Created log for partition \S{1,260} in )([^,\s]++)")
"""The directory of the partition in the lines that load or create a log: `<directory>/<partition>`."""
_OF_LOOKED_UP_LOG = frozenset({"after-append", "follower-high-watermark"})
"""Kinds of the fetcher's lines with values of the log that it looked up (rule 3)."""


class LogDirs:
    """Tells which lines are about the log of a replica, and which about another log of its name; lines come in order."""

    def __init__(self, broker: LoggedBroker) -> None:
        """Begin with no directory known."""
        self.broker = broker
        self._own: dict[str, str] = {}
        self._other: dict[str, str] = {}
        """By partition, the directory of the replica's log, and that of the other log of the same name."""
        self._replaced: dict[str, str] = {}
        """By partition, the directory of the replica's log while another one replaces it."""
        self._last: dict[ThreadPartition, str] = {}
        """By thread and partition, the directory that the thread named last."""
        self._astride: set[ThreadPartition] = set()
        """Threads and partitions whose response began with one log and ends with the other (rule 3)."""
        self._may_be_astride: set[ThreadPartition] = set()
        """Those whose response is the first since the log was replaced: it may be such a one."""
        self._swapped: set[str] = set()
        """Partitions whose log was replaced, and no response was seen since."""

    def begin_process(self) -> None:
        """Begin a process, which finds out anew what is in its directories."""
        self._own.clear()
        self._other.clear()
        self._replaced.clear()
        self._last.clear()
        self._astride.clear()
        self._may_be_astride.clear()
        self._swapped.clear()

    def of_replica(self, parsed: ParsedLine) -> ParsedLine | None:
        """Return the line, or None if it is about another log than the replica's: one to come, or one that was replaced.

        Lines about the move between directories itself are None, too: the replica makes no step (rule 2).
        """
        if self._note_directories(parsed):
            return None
        tp, key = parsed.tp, (parsed.line.thread, parsed.tp)
        message = parsed.line.message
        # In lines of the log itself; [1] is the directory. Lines of LogManager name it as `dir`.
        directory = _LOG_PREFIX.match(message) if message.startswith("[UnifiedLog") else None
        # The thread that moves a replica writes about the log to come only.
        if parsed.line.thread.startswith(_MOVER):
            if directory is not None:
                self._other.setdefault(tp, directory[1])
            return None
        if parsed.kind in ("log-completed", "log-created"):
            location = _LOG_LOCATION.match(parsed.line.message)
            # "": unknown, so that no directory differs from it.
            self._own[tp] = location[1].rpartition("/")[0] if location is not None else ""
        # The replica's own log: the next one of its name may lie in any directory.
        elif parsed.kind == "log-deleted" and parsed.values.get("dir") == self._own.get(tp):
            self._own.pop(tp, None)
        # The first directory that a log began with is the replica's; another one is that of the other log (rule 1).
        elif directory is not None and self._own.setdefault(tp, directory[1]) not in ("", directory[1]):
            self._other.setdefault(tp, directory[1])
        # Nearly always: the replica has one log.
        if tp not in self._other:
            return parsed
        if directory is not None:
            self._last[key] = directory[1]
        named = parsed.values.get("dir") if directory is None else directory[1]
        # Partition#createLog names no directory, but its thread has printed the line of the log before.
        if parsed.kind == "log-loaded":
            named = self._last.get(key)
        # The line is about the other log.
        if named == self._other[tp]:
            if key in self._may_be_astride:
                self._astride.add(key)
            return None
        # The next response: what it begins with is the log that the fetcher looks up now.
        if parsed.kind == "received":
            self._astride.discard(key)
            self._may_be_astride.discard(key)
            if tp in self._swapped:
                self._swapped.remove(tp)
                self._may_be_astride.add(key)
        return self._of_looked_up_log(parsed) if parsed.kind in _OF_LOOKED_UP_LOG else parsed

    def _note_directories(self, parsed: ParsedLine) -> bool:
        """Note what a line says of the move of a replica between directories; return whether it is about that."""
        tp, key = parsed.tp, (parsed.line.thread, parsed.tp)
        if parsed.kind in ("log-created", "future-completed") and "future" in parsed.values:
            self._other[tp] = self._last[key] = parsed.text("future")
        elif parsed.kind == "log-replacing":
            self._other[tp], self._replaced[tp] = parsed.text("future"), parsed.text("dir")
        elif parsed.kind == "log-replaced":
            self._own[tp], self._other[tp] = self._other.get(tp, ""), self._replaced.pop(tp, "")
            # Responses that a fetcher is handling: they began with one log and end with another (rule 3).
            self._astride |= {
                (thread, open_tp)
                for (thread, open_tp), step in self.broker.open.items()
                if open_tp == tp and step.name == "HandleFetchResponse"
            }
            self._swapped.add(tp)
        else:
            return False
        return True

    def _of_looked_up_log(self, parsed: ParsedLine) -> ParsedLine | None:
        """Return a line with values of the log that a fetcher looked up, or None if that was replaced meanwhile (rule 3).

        Then the response is *astride*: its lines are about two logs.
        """
        key = parsed.line.thread, parsed.tp
        if parsed.kind == "after-append":
            step = self.broker.opened(parsed, "HandleFetchResponse") if key in self._may_be_astride else None
            if step is not None:
                log_end = parsed.number("leo")
                # It names the log end from before the append, not that after it: the records went to the other log.
                if log_end == step.fields.get("leo_before") and log_end != step.fields.get("leo"):
                    self._astride.add(key)
            return None if key in self._astride else parsed
        if key not in self._astride:
            return parsed
        # The last line of the response has the other log's high watermark. The replica's is unknown until its next response.
        self._astride.discard(key)
        self.broker.replica(parsed.tp).hw = None
        self.broker.close(parsed)
        return None


@dataclass(eq=False)
class Node:
    """A node: its lines and requests, and what they show.

    `label` is its folder as names of its files begin with it. `kinds` counts its lines by kind, `runs` are its processes.
    `stopped`: its last process was told to stop. `silenced`: a logger was off, so that its replicas are not judged;
    `silenced_controller`: it did not log every change as a controller.
    """

    id: int
    folder: Path
    label: str
    lines: list[Line]
    requests: list[LoggedRequest]
    problems: list[Problem]
    broker: LoggedBroker = field(init=False)
    controller: LoggedController = field(init=False)
    log_dirs: LogDirs = field(init=False)
    runs: list[ProcessRun] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    stopped: bool = False
    silenced: bool = False
    silenced_controller: bool = False

    def __post_init__(self) -> None:
        """Begin with nothing read of the node's lines."""
        self.broker = LoggedBroker(self.id)
        self.log_dirs = LogDirs(self.broker)
        self.controller = LoggedController(self.broker)

    @property
    def has_replicas(self) -> bool:
        """Return whether its lines show replicas of it; they may all have been deleted since."""
        return bool(self.broker.replicas) or any(step.name not in OF_A_CONTROLLER for step in self.broker.steps)

    def read(self, with_controller: bool) -> None:
        """Turn all lines into steps, process by process; those of a controller only if `with_controller`.

        A process whose loggers ended one after the other at a shutdown is read again up to its signal to stop.
        """
        runs = incarnations(self.lines)
        # What is known before the lines are read: to begin anew means to go back to it.
        kinds, problems, names = Counter(self.kinds), len(self.problems), dict(self.broker.topic_ids)
        version, chosen = self.broker.version, self.controller.chosen
        while (number := self._read_runs(runs, with_controller)) is not None:
            # Its loggers ended one after the other: what some still say behind the signal is left out.
            runs[number] = _until_signal(runs[number])
            signal, ends = runs[number][-1].time, runs[number + 1][0].time if number + 1 < len(runs) else process.END
            # A response shows what such a process had done by then; only the controller's decisions are not its own.
            self.requests = [
                request
                for request in self.requests
                if not signal < request.line.time < ends or request.name == "ALTER_PARTITION"
            ]
            self.runs, self.kinds = [], Counter(kinds)
            del self.problems[problems:]
            self.__post_init__()
            self.broker.topic_ids.update(names)
            self.broker.version, self.controller.chosen = version, chosen

    def _read_runs(self, runs: Sequence[Sequence[Line]], with_controller: bool) -> int | None:
        """Read every process, and return None; or stop at one whose lines behind its signal to stop are not whole.

        The number of that process is returned: it is to be read up to the signal only.
        """
        detector = GapDetector(self.broker)
        for number, lines in enumerate(runs):
            self.broker.run = number
            self.controller.begin_process()
            last = self._read_run(lines, with_controller, detector)
            next_start = _next_start(runs[number + 1 :])
            closed = self.broker.logs_closed
            # Up to 3.x loggers go on until the logs are closed.
            early = detector.ends_early() and not closed and not self.broker.version.startswith("3.")
            # A thread that the signal found between two of its lines lacks one even if no line is behind the signal.
            if early and len(_until_signal(lines)) < len(lines):
                return number
            # A process that closed its logs wrote the clean shutdown file; of any other the next process knows.
            clean = True if closed else next_start
            # `end_of_run` forgets the signal.
            stop_signal, self.stopped = self.broker.stop_signal, self.broker.stopping
            detector.end_process(lines[-1], next_start, number + 1 < len(runs))
            leader.settle_all(self.broker)
            process.end_of_run(self.broker, last, number + 1 < len(runs), clean)
            self.runs.append(ProcessRun(number, lines, stop_signal, closed))
        for run in self.runs:
            run.mark(self.broker.steps)
        self.gaps += [*detector.gaps, *clock_set_back(self.id, runs)]
        return None

    def run_at(self, time: int) -> ProcessRun:
        """Return the process that was running at `time`."""
        return process.run_at(self.runs, time)

    def spot_at(self, time: int | None) -> Spot:
        """Return the place of the last line that was written by `time` (None: before the first)."""
        # A node with requests only has no lines.
        if time is None or not self.runs:
            return BEFORE_ALL_LINES
        run = self.run_at(time)
        return run.number, run.index(time)

    def spot_behind(self, time: int | None) -> Spot:
        """Return the place behind the last line that was written by `time` (None: behind all)."""
        if time is None or not self.runs:
            return AFTER_ALL_LINES
        run, index = self.spot_at(time)
        return run, index + 1

    def silence(self) -> None:
        """Forget the replicas of this node, of which a logger was off; what it logged as a controller stays."""
        self.silenced = True
        self.broker.steps = [step for step in self.broker.steps if step.name in OF_A_CONTROLLER]
        self.requests = [request for request in self.requests if request.name == "ALTER_PARTITION"]
        self.broker.sends.clear()
        self.broker.replicas.clear()

    def silence_controller(self) -> None:
        """Forget what this node logged as a controller."""
        self.silenced_controller = True
        self.broker.steps = [step for step in self.broker.steps if step.name not in OF_A_CONTROLLER]
        self.requests = [request for request in self.requests if request.name != "ALTER_PARTITION"]

    def _read_run(self, lines: Sequence[Line], with_controller: bool, detector: GapDetector) -> ParsedLine | None:
        """Read the lines of one process: check each for gaps, then hand it to its handler.

        Return a line of kind "end" at which the steps of the process's end are added, None if it has no lines.
        """
        parsed = None
        self.log_dirs.begin_process()
        detector.begin_process(
            next((parsed_line for line in lines if (parsed_line := parse_line(line)) is not None), None), lines[0]
        )
        self.broker.begin_process([line.time for line in lines])
        for index, line in enumerate(lines):
            self.broker.read_line(line, index)
            parsed = parse_line(line)
            if parsed is None:
                continue
            self.kinds[parsed.kind] += 1
            parsed = self.log_dirs.of_replica(parsed)
            if parsed is None:
                continue
            # Before the handler: a gap shows in what was known when the line was printed.
            detector.check(parsed)
            handler = HANDLERS.get(parsed.kind)
            try:
                if handler is not None:
                    handler(self.broker, parsed)
                elif with_controller and parsed.kind in controller.HANDLERS:
                    controller.HANDLERS[parsed.kind](self.controller, parsed)
            except NOT_KAFKAS as error:
                self.problems.append(_unlike_kafka(line, error))
        return ParsedLine("end", lines[-1], {}) if lines else parsed


def _until_signal(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of a process up to the one that says that it was told to stop."""
    parsed_lines = (parse_line(line) for line in lines)
    signal = next(at for at, parsed in enumerate(parsed_lines) if parsed is not None and parsed.kind == "process-stopping")
    return [*lines[: signal + 1]]


def _unlike_kafka(line: Line, error: Exception) -> Problem:
    """Return the problem of a line that begins like one of Kafka's and continues otherwise, so that a handler raised."""
    expected = f"a line of {line.logger} as Kafka has them"
    do = "the line is left out; if it is unchanged, its Kafka release is not known to this reader"
    return Problem(line.file, line.number, expected, f"{shown(line.message)} ({error})", do, lost=1)


def _next_start(runs: Sequence[Sequence[Line]]) -> bool | None:
    """Return whether the first process of `runs` found a clean shutdown; None if its lines do not say, or there is none."""
    for line in runs[0] if runs else ():
        parsed = parse_line(line)
        if parsed is not None and parsed.kind in ("clean-start", "unclean-start"):
            return parsed.kind == "clean-start"
    return None


def changes_reported(node: Node) -> tuple[int, int, int]:
    """Return the key by which the controller to read is chosen among nodes: the one with the largest key.

    First how many different partition changes its lines have; of two with the same the one with fewer processes, as each
    replays the changes of the one before it; then how many proposals it accepted, which only the active controller prints.
    """
    changes = set()
    accepted = processes = 0
    for line in node.lines:
        if line.logger == "ReplicationControlManager":
            if "partition" in line.message:
                # Without the prefix `[QuorumController id=3] `, which the lines of a metadata dump do not have.
                prefix, _, change = line.message.partition("] ")
                changes.add(hash(change if prefix.startswith("[") else line.message))
            accepted += "has altered ISR" in line.message
        processes += line.message.startswith("Registered signal handlers")
    # One more if lines that are not in memory had changes (passes.py): then it has some, even if the lines here have none.
    return len(changes) + bool(node.kinds["changed"] or node.kinds["registered"]), -processes, accepted


def node_of(files: NodeFiles) -> Node:
    """Make a node of its files: its lines in order, and its requests in the order in which they were handled."""
    line_streams: list[list[Line]] = []
    request_streams: list[list[Line]] = []
    streams, copies = without_copies(files.streams)
    for stream in streams:
        requests = [line for line in stream if is_request(line)]
        request_streams.append(requests)
        # A request log of its own has no other lines.
        if len(requests) < len(stream):
            line_streams.append([line for line in stream if not is_request(line)] if requests else stream)
    problems = [*files.problems, *copies]
    in_order: list[LoggedRequest] = []
    reader = RequestReader(min((stream[0].time for stream in line_streams if stream), default=0))
    for line in merge_streams([stream for stream in request_streams if stream]):
        request = reader.read(line)
        if isinstance(request, Problem):
            problems.append(request)
        elif request is not None:
            in_order.append(request)
    # Lines are written when responses have left, in another order than the requests were handled.
    in_order.sort(key=lambda request: request.handled)
    lines = merge_streams([stream for stream in line_streams if stream])
    return Node(files.id, files.folder, files.label, lines, in_order, problems)


def topic_ids(nodes: Sequence[Node]) -> Mapping[str, str]:
    """Return topic names by id, from all nodes."""
    return {topic_id: name for node in nodes for topic_id, name in node.broker.topic_ids.items()}
