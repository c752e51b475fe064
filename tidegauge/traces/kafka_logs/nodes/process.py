"""Handlers of the lines about a broker process and the loading of its logs: Start, Stop, Crash.

A handler (HANDLERS, by kind of line) reads the values of a ParsedLine, changes what is known of the broker and its replicas,
and adds steps, events in the making.

A replica starts when `Log loaded` names its high watermark; its LEO and log start come from `Completed load of Log` before
it, or are 0 if the log was created. The epoch cache is not logged: it is carried over from the process before, truncated
at the loaded LEO, and known only if the log was created in this capture. A process ends after all its requests were handled:
those in flight outlive it, and a process that was told to stop may go on serving and fetching after its last line (4.x:
log4j2 stops first). If the next process loads more than the last line showed, the rest was appended in between.

A step (LoggedStep) stands at its `place`: (run, line index, order there, time), where a *run* is the number of a process. It
happened after `begins` and by `ends`; `key` is where its stamp puts it. It comes after the steps that provide a key that it
`depends_on`: the end of a process on ("handled", node, run), which the steps of its requests provide.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

from tidegauge.traces.kafka_logs.nodes.logged_broker import (
    LATE_MICROSECONDS,
    REQUEST_HANDLER,
    LoggedBroker,
    LoggedReplica,
    LoggedStep,
    Place,
    beside,
    record_fields,
    reported,
)
from tidegauge.traces.kafka_logs.parsing.lines import Line
from tidegauge.traces.kafka_logs.parsing.parsed_line import ParsedLine
from tidegauge.traces.kafka_logs.parsing.timestamps import resolution

END = 1 << 60
"""After every line of a process."""
DEFAULT_MIN_ISR = 1
"""min.insync.replicas of a topic that was made without one: Kafka's default, as no line shows another one of the broker."""
_SETS_LEADER_EPOCH = frozenset({"Start", "BecomeLeader", "BecomeFollower", "LeaderAppend"})
"""Steps that show in which leader epoch the replica is."""

AFTER_LINES = END - 1
"""The line index of steps that a process made after its last line and before its end."""
MUST_HAVE_SENT, SHOWN_BY_DISK, MUST_HAVE_ANSWERED = 1, 2, 3
"""The order of these steps (Place[2]): requests of its own (unlogged.py), what the next process found on its disk
(_served_on), requests of others.
"""


def _version(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Note the release that a process prints; two of them are an upgrade."""
    version = parsed.text("version")
    broker.upgraded |= broker.version not in ("", version)
    broker.version = version


def _process_stopping(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Note when the process got its signal to stop."""
    broker.stop_signal = parsed.line.time


def _logs_closed(broker: LoggedBroker, parsed: ParsedLine) -> None:  # noqa: ARG001
    """Note that the process closed its logs: it logged to its very end, and wrote the clean shutdown file."""
    broker.logs_closed = True


def _unclean_start(broker: LoggedBroker, parsed: ParsedLine) -> None:  # noqa: ARG001
    """Note that the process found no clean shutdown file: the one before was killed."""
    broker.clean_start = False


def _clean_start(broker: LoggedBroker, parsed: ParsedLine) -> None:  # noqa: ARG001
    """Note that the process found a clean shutdown file."""
    broker.clean_start = True


def _partition_created(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Note the topic id with which a broker creates a partition."""
    broker.learn_topic(parsed)


def _log_created(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Begin a replica with an empty log; add LoseDisk if the process before ended with a log that no line deleted."""
    before = broker.replicas.get(parsed.tp)
    # The process before had records there; a log is created only where no directory has one.
    if before is not None and not before.loaded and before.leo:
        broker.step(parsed, "LoseDisk", {})
    broker.replicas[parsed.tp] = LoggedReplica(leo=0, log_start=0, epochs=[], created=True)
    # The line has the configuration of the topic at that time: it is what the broker has read so far.
    if "min_isr" in parsed.values:
        broker.min_isr[parsed.tp] = parsed.number("min_isr")
        broker.note_min_isr(parsed.tp, parsed.number("min_isr"), created=True)
    elif parsed.tp in broker.min_isr or parsed.tp.rpartition("-")[0] in broker.min_isr_read:
        # The topic had one, and has none here: the broker's own counts, which no line shows.
        broker.without_min_isr.add(parsed.tp)
        broker.note_min_isr(parsed.tp, None, created=True)
    else:
        broker.note_min_isr(parsed.tp, DEFAULT_MIN_ISR, created=True)


def _config_read(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Add ReadConfig to each replica of a topic whose min.insync.replicas changes.

    The line has the whole configuration: a min.insync.replicas that is not in it is unknown.
    """
    topic = parsed.text("topic")
    min_isr = parsed.number("min_isr") if "min_isr" in parsed.values else None
    # The line is printed for other settings of the topic, too: then nothing changes.
    for tp in broker.replicas:
        if tp.rpartition("-")[0] == topic and broker.min_isr_read.get(topic, broker.min_isr.get(tp)) != min_isr:
            broker.step(parsed, "ReadConfig", reported(min_isr=min_isr), tp)
            broker.note_min_isr(tp, min_isr)
    broker.min_isr_read[topic] = min_isr


def _log_deleted(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Log for partition .. is renamed to ..-delete`: the broker has no such replica any more."""
    broker.replicas.pop(parsed.tp, None)
    step = broker.step(parsed, "DeleteReplica", {})
    # ReplicaManager#stopPartitions removes all partitions of a batch before it renames the first log. So each of them goes
    # when the first does; the lines that a thread prints in a row are of one batch.
    # `spoke` is as it was noted at the thread's last deletion only if the thread wrote no line since.
    first, spoken_before = broker.deleting.get(step.thread, (step, -1))
    if step.thread and spoken_before == broker.spoke:
        step.begins, step.ends, step.key = first.begins, first.ends, beside(first.key, 1)
    else:
        first = step
    broker.deleting[step.thread] = (first, broker.latest)


def _log_completed(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Completed load of Log`, which names the log's start and end.

    What goes beyond the lines of the process before was done after its last line: it becomes steps of that.
    """
    replica = broker.replica(parsed.tp)
    had_leader = replica.leader is not None  # after a gap the leader is unknown
    in_flight = broker.append_in_flight(parsed.tp)
    # An append that a line began explains more records; else the process served on without lines.
    if in_flight is not None:
        _appended_in_flight(broker, replica, in_flight, parsed.number("leo"))
    elif broker.silent_since is not None and had_leader and replica.leo is not None:
        start_moved = replica.log_start is not None and replica.log_start < parsed.number("log_start")
        # More on disk than lines say: what it did without lines becomes one step.
        if replica.leo < parsed.number("leo") or start_moved:
            _served_on(broker, parsed, replica, (replica.leo, parsed.number("leo")), broker.silent_since)
            # What it became while the process served without lines is unknown.
            replica.last_hw = None
        if start_moved:
            step = broker.step(parsed, "LogStartMoved", {"log_start": parsed.number("log_start")})
            step.time, step.place = broker.silent_since, _after_lines(broker, broker.silent_since)
            replica.truncate_epochs_at_start(parsed.number("log_start"))
    replica.leo, replica.log_start = parsed.number("leo"), parsed.number("log_start")
    replica.created = False
    replica.truncate_epochs_at_end(replica.leo)


def _appended_in_flight(broker: LoggedBroker, replica: LoggedReplica, step: LoggedStep, end: int) -> None:
    """Give the append `step`, whose line is missing, its records: those that the loaded log, which ends at `end`, has more.

    If it has no more, the append was not made.
    """
    # It is no failed append and no fetcher's: one of the handlers was making it when the process was killed (_note_killed).
    if broker.unfinished.pop(step.tp, None) is None and replica.leo is not None and replica.leo < end:
        broker.appending -= 1
    if replica.leo is None or replica.leo >= end:
        return
    step.fields |= {"leo_before": replica.leo, "leo": end, **record_fields(replica, replica.leo, end)}
    # It is not among the steps yet, as it was not known whether it was made (LoggedBroker.unlogged_append).
    if step.in_flight:
        step.fields.pop("epochs", None)
        broker.steps.append(step)
    broker.unlogged.append(step)


def _served_on(
    broker: LoggedBroker, parsed: ParsedLine, replica: LoggedReplica, records: tuple[int, int], time: int
) -> None:
    """Add a step for what the process before did after its last line, as a leader or a follower.

    `records` are the first offset and the end of what it appended, none if only the high watermark moved; what that became
    is unknown. `time` is that of the last line.
    """
    base, end = records
    fields = reported(rec_base=base, rec_end=end, leo_before=base, leo=end)
    if replica.leader != broker.node:
        if base < end:
            replica.epochs = None  # the epochs of the records are unknown
        step = broker.step(parsed, "HandleFetchResponse", fields | reported(peer=replica.leader, error=0))
        # The response to a request from before the last line, or to one that unlogged.py adds.
        step.depends_on += (("handled", broker.node, broker.run - 1),)
    elif base < end:
        step = broker.step(parsed, "LeaderAppend", fields)
    else:
        # A fetch raised the high watermark, of which replica is unknown.
        step = broker.step(parsed, "HandleFetch", {})
    step.time, step.place = time, _after_lines(broker, time)


def _after_lines(broker: LoggedBroker, time: int) -> Place:
    """Return the place of a step that the disk shows of the process before: after its last line and its unlogged sends."""
    return (broker.run - 1, AFTER_LINES, SHOWN_BY_DISK, time)


def _log_loaded(broker: LoggedBroker, parsed: ParsedLine) -> None:
    """Take `Log loaded`, which names the checkpointed high watermark: add Start."""
    replica = broker.replica(parsed.tp)
    # A process writes the checkpoint last: one above the high watermark of its last line shows that it served on without
    # lines. That it had a leader, and a log end, must be known: after a gap they are not.
    had_leader, last_hw = replica.leader is not None, replica.last_hw
    if (
        broker.silent_since is not None
        and had_leader
        and replica.leo is not None
        and last_hw is not None
        and last_hw < parsed.number("hw")
    ):
        _served_on(broker, parsed, replica, (replica.leo, replica.leo), broker.silent_since)
    replica.hw, replica.loaded, replica.last_hw = parsed.number("hw"), True, None
    broker.step(
        parsed,
        "Start",
        reported(
            # A log that was just created has nothing to recover, whatever the process before did.
            clean=True if replica.created else broker.clean_start,
            leo=replica.leo,
            hw=replica.hw,
            log_start=replica.log_start,
            epochs=None if replica.epochs is None else [list(entry) for entry in replica.epochs],
        ),
    )
    replica.created = False
    # Its log was created without the min.insync.replicas that its topic had: from here on it is unknown.
    if parsed.tp in broker.without_min_isr:
        broker.without_min_isr.discard(parsed.tp)
        broker.step(parsed, "ReadConfig", {})


HANDLERS: Mapping[str, Callable[[LoggedBroker, ParsedLine], None]] = {
    "version": _version,
    "process-stopping": _process_stopping,
    "logs-closed": _logs_closed,
    "unclean-start": _unclean_start,
    "clean-start": _clean_start,
    "partition-created": _partition_created,
    "log-created": _log_created,
    "log-deleted": _log_deleted,
    "config-read": _config_read,
    "log-completed": _log_completed,
    "log-loaded": _log_loaded,
}


def _note_killed(broker: LoggedBroker, last: ParsedLine) -> None:
    """Note what threads may have been appending when their process was killed, behind its `last` line.

    Each handler may have one append without a line: `appending` counts them, `killed` is the step that such an append
    becomes. A fetcher's append is `unfinished`.
    """
    # The response was received, and no line says that its records were appended.
    for (_, tp), step in broker.open.items():
        if step.name == "HandleFetchResponse" and "rec_base" not in step.fields:
            broker.unfinished[tp] = step
    handlers = {thread for thread in broker.spoken if REQUEST_HANDLER in thread} | broker.appenders
    # The partition is not known yet: append_in_flight fills it in.
    broker.killed = broker.unlogged_append(last, "-")
    broker.killed.thread = ""
    # Its thread began it after the thread's last line; without thread names only the usual delay bounds that.
    began = (broker.spoken[thread] if thread else last.line.time - LATE_MICROSECONDS for thread in handlers)
    broker.killed.begins = min(began, default=last.line.time - LATE_MICROSECONDS)
    broker.appending = len(handlers)


def end_of_run(broker: LoggedBroker, last: ParsedLine | None, followed: bool, clean: bool | None) -> None:
    """End a process: add Stop to its replicas if it was told to stop, Crash if another process follows, else nothing.

    `last` is its last line, None if it has none; `clean`: whether it wrote the clean shutdown file, None if unknown.
    """
    broker.killed = None
    if last is not None and followed and not broker.stopping:
        _note_killed(broker, last)
    if last is not None and (broker.stopping or followed):
        name = "Stop" if broker.stopping else "Crash"
        # By partition, whether its steps in this process leave it with a replica.
        has_replica: dict[str, bool] = {}
        for step in broker.steps:
            if step.run == broker.run:
                stays_deleted = has_replica.get(step.tp) is False and step.name != "Start"
                has_replica[step.tp] = not stays_deleted and step.name != "DeleteReplica"
        for tp, replica in broker.replicas.items():
            # Also a replica that has steps only: the line that loads it may be missing. Not one that was deleted, of which
            # another thread had lines still to write.
            if has_replica.get(tp, replica.loaded):
                step = broker.step(last, name, reported(clean=clean) if broker.stopping else {}, tp)
                step.place = (broker.run, END, 0, 0)
                step.depends_on += (("handled", broker.node, broker.run),)
    for replica in broker.replicas.values():
        # A process that starts has no role and no leader epoch; log and epoch cache are on its disk.
        replica.loaded, replica.leader_epoch, replica.hw, replica.last_hw = False, None, None, replica.hw
        replica.follows_from = -1
    broker.silent_since = last.line.time if last is not None and broker.stopping and not broker.logs_closed else None
    # What threads had begun, and what was known of them, ends with their process.
    broker.open.clear()
    broker.forgotten.clear()
    broker.fetchers.clear()
    broker.counted.clear()
    broker.setting.clear()
    broker.taking_effect.clear()
    broker.deleting.clear()
    broker.appenders.clear()
    broker.expanding.clear()
    broker.proposals.clear()
    broker.stop_signal, broker.logs_closed = None, False
    broker.clean_start = None


# The lines of one process as a clock: which line it had written by a time.


def run_at(runs: Sequence["ProcessRun"], time: int) -> "ProcessRun":
    """Return the process that was running at `time`: the last of `runs` that had begun; the first if none had."""
    return next((run for run in reversed(runs) if run.first <= time), runs[0])


class ProcessRun:
    """The lines of one process as a clock: which line it had written by a time, in microseconds of its own clock.

    `first` and `last` are the times of its first and last line. `closed`: it logged until it had closed its logs.
    `served_on`: it was told to stop, and ended its logging before its service (4.x); its loggers ended one after the other,
    so it has all lines only `logs_until` the signal. `slack` is how far two times of one moment may differ as printed.
    """

    def __init__(self, number: int, lines: Sequence[Line], stop_signal: int | None, closed: bool) -> None:
        """Note the times of a process. `stop_signal`: when it was told to stop; `closed`: its log says that it did."""
        self.number = number
        self.closed = closed
        self.served_on = stop_signal is not None and not closed
        self.first = lines[0].time
        # Log4j of 3.x prints milliseconds, the request log fractions of them: a time may lie within a tick of the other.
        unit = resolution(line.time for line in lines)
        self.slack = unit if unit > 1 else 0
        self._times: list[int] = []
        latest = self.first
        for line in lines:
            latest = max(latest, line.time)  # at most a few lines of other threads stand a little back
            self._times.append(latest)
        self.last = latest
        self.logs_until = latest if closed or stop_signal is None else stop_signal
        self._epochs: dict[str, list[tuple[int, int | None]]] = {}
        """By partition, from which line index on its replica has which leader epoch, None if that is unknown."""

    def index(self, time: int) -> int:
        """Return the index of the last line written by `time`; -1 before the first."""
        return bisect_right(self._times, time) - 1

    def place(self, time: int) -> Place:
        """Return the place of a request at `time`: after the last line that was written by then."""
        return (self.number, self.index(time), 1, time)

    def mark(self, steps: Sequence[LoggedStep]) -> None:
        """Learn from the steps of a node at which line the leader epoch of each replica changes.

        From index -1 on, before any line, it is unknown.
        """
        # Of its role only: an entry of its epoch cache has the epoch of records, a change of the controller is not read yet.
        changing = (step for step in steps if step.name in _SETS_LEADER_EPOCH)
        for step in sorted((step for step in changing if step.run == self.number), key=lambda step: step.place):
            before = self._epochs.setdefault(step.tp, [(-1, None)])[-1][1]
            # A replica that starts has read no metadata, even if one of that name was there before.
            epoch = None if step.name == "Start" else step.fields.get("leader_epoch", before)
            if epoch != before:
                self._epochs[step.tp].append((step.line_index, epoch if isinstance(epoch, int) else None))

    def leader_epoch(self, tp: str, index: int) -> int | None:
        """Return the leader epoch of a replica at a line, as far as it is known."""
        epochs = self._epochs.get(tp, [(-1, None)])
        return epochs[bisect_right([at for at, _ in epochs], index) - 1][1]
