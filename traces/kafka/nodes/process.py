"""Lines about a broker process and its logs being loaded: Start, Stop, Crash.

A replica starts when `Log loaded` names its high watermark; its LEO and log start come from `Completed load of Log` before
it, or are 0 when the log was created. The epoch cache is not logged: it is carried over from the process before, truncated
at the loaded LEO, and known only if the log was created in this capture. A process ends after all its requests were handled:
those in flight outlive it, and a process told to stop may go on serving and fetching after its last line (4.x: log4j2 stops
first). What it loads the next time beyond what it had by then was appended in between.
"""

from collections.abc import Callable, Mapping

from tidegauge.traces.kafka.lines.said import Said
from tidegauge.traces.kafka.nodes.steps import LoggedBroker, LoggedReplica, reported

END = 1 << 60
"""Behind every line of a process."""


def _version(broker: LoggedBroker, said: Said) -> None:
    broker.version = said.text("version")


def _process_stopping(broker: LoggedBroker, said: Said) -> None:  # noqa: ARG001
    broker.stopping = True


def _logs_closed(broker: LoggedBroker, said: Said) -> None:  # noqa: ARG001
    broker.logs_closed = True


def _unclean_start(broker: LoggedBroker, said: Said) -> None:  # noqa: ARG001
    broker.clean_start = False


def _clean_start(broker: LoggedBroker, said: Said) -> None:  # noqa: ARG001
    broker.clean_start = True


def _partition_created(broker: LoggedBroker, said: Said) -> None:
    broker.learn_topic(said)


def _log_created(broker: LoggedBroker, said: Said) -> None:
    """A log that was there when the process before ended, and that nobody deleted, was lost with its disk."""
    before = broker.replicas.get(said.tp)
    if before is not None and not before.loaded and before.leo:
        broker.step(said, "LoseDisk", {})
    broker.replicas[said.tp] = LoggedReplica(leo=0, log_start=0, epochs=[], created=True)
    if "min_isr" in said.values:
        broker.min_isr[said.tp] = said.number("min_isr")


def _config_read(broker: LoggedBroker, said: Said) -> None:
    """All that a topic is configured with; a min.insync.replicas that stands there no more is one that nobody says."""
    topic = said.text("topic")
    now = said.number("min_isr") if "min_isr" in said.values else None
    for tp in broker.replicas:
        if tp.rpartition("-")[0] == topic and broker.min_isr_read.get(topic, broker.min_isr.get(tp)) != now:
            broker.step(said, "ReadConfig", reported(min_isr=now), tp)
    broker.min_isr_read[topic] = now


def _log_deleted(broker: LoggedBroker, said: Said) -> None:
    broker.replicas.pop(said.tp, None)
    broker.step(said, "DeleteReplica", {})


def _log_completed(broker: LoggedBroker, said: Said) -> None:
    replica = broker.replica(said.tp)
    known = replica.leader is not None  # whoever led behind a gap, nothing says
    if broker.unheard_from is not None and known and replica.leo is not None and replica.leo < said.number("leo"):
        _served_on(broker, said, replica, (replica.leo, said.number("leo")), broker.unheard_from)
        replica.last_hw = None
    replica.leo, replica.log_start = said.number("leo"), said.number("log_start")
    replica.created = False
    replica.truncate_epochs_at_end(replica.leo)


def _served_on(broker: LoggedBroker, said: Said, replica: LoggedReplica, records: tuple[int, int], time: int) -> None:
    """Records (from, up to) that came behind the last line of the process before: of a producer, or of the leader it
    followed; none where only the high watermark moved. What that became meanwhile, nothing says.
    """
    base, end = records
    leads = replica.leader == broker.node
    fields = reported(rec_base=base, rec_end=end, leo_before=base, leo=end)
    if not leads:
        fields |= reported(peer=replica.leader, error=0)
        if base < end:
            replica.epochs = None  # whose records they are is not said
    led = "LeaderAppend" if base < end else "HandleFetch"  # of whom, nothing says either
    step = broker.step(said, led if leads else "HandleFetchResponse", fields if base < end or not leads else {})
    step.time, step.place = time, (broker.run - 1, END - 1, 2, time)  # behind the sends that nobody logged
    if not leads:  # the response to one of them, or to one in front of the last line
        step.awaits.append(("handled", broker.node, broker.run - 1))


def _log_loaded(broker: LoggedBroker, said: Said) -> None:
    replica = broker.replica(said.tp)
    known, last = replica.leader is not None, replica.last_hw
    if (
        broker.unheard_from is not None
        and known
        and replica.leo is not None
        and last is not None
        and last < said.number("hw")
    ):
        _served_on(broker, said, replica, (replica.leo, replica.leo), broker.unheard_from)
    replica.hw, replica.loaded, replica.last_hw = said.number("hw"), True, None
    broker.step(
        said,
        "Start",
        reported(
            clean=True if replica.created else broker.clean_start,
            leo=replica.leo,
            hw=replica.hw,
            log_start=replica.log_start,
            epochs=None if replica.epochs is None else [list(entry) for entry in replica.epochs],
        ),
    )
    replica.created = False


HANDLERS: Mapping[str, Callable[[LoggedBroker, Said], None]] = {
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


def end_of_run(broker: LoggedBroker, last: Said | None, followed: bool, clean: bool | None) -> None:
    """The last line of a process: Stop if it was told to stop, Crash if another one follows, else it still runs."""
    if last is not None and (broker.stopping or followed):
        name = "Stop" if broker.stopping else "Crash"
        heard = {step.tp for step in broker.steps if step.place[0] == broker.run}
        for tp, replica in broker.replicas.items():
            if replica.loaded or tp in heard:  # the line that loads it may be missing
                step = broker.step(last, name, reported(clean=clean) if broker.stopping else {}, tp)
                step.place = (broker.run, END, 0, 0)
                step.awaits.append(("handled", broker.node, broker.run))
    for replica in broker.replicas.values():
        replica.loaded, replica.leader_epoch, replica.hw, replica.last_hw = False, None, None, replica.hw
    broker.unheard_from = last.line.time if last is not None and broker.stopping and not broker.logs_closed else None
    broker.open.clear()
    broker.fetchers.clear()
    broker.risen.clear()
    broker.kept.clear()
    broker.busy.clear()
    broker.expanding.clear()
    broker.stopping = broker.logs_closed = False
    broker.clean_start = None
