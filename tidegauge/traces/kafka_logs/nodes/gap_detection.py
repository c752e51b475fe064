"""Detect where lines are missing from the logs of a node: where, of which logger, and how it is known.

A *gap* is a stretch of a node's log, between two lines, in which lines of a logger are missing. A *spot* is a place in the
log: the process (*run*) and the index of the line. GapDetector compares each line, as a ParsedLine with its kind and values,
with what the lines before it showed (LoggedBroker), before the line changes that. Times are microseconds.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tidegauge.traces.kafka_logs.nodes.logged_broker import (
    FETCHER_THREAD,
    FORGOTTEN,
    TRUNCATES,
    LoggedBroker,
    LoggedReplica,
    Send,
    ThreadPartition,
    fetcher_key,
    may_fetch,
)
from tidegauge.traces.kafka_logs.parsing.lines import AFTER_ALL_LINES, BEFORE_ALL_LINES, Gap, Line, Spot
from tidegauge.traces.kafka_logs.parsing.parsed_line import ParsedLine, fetch_line

FETCHER, LOG, PARTITION, ROLES, CACHE, REQUESTS = (
    "ReplicaFetcherThread at TRACE",
    "UnifiedLog at TRACE",
    "kafka.cluster.Partition at TRACE",
    "state.change.logger at INFO",
    "LeaderEpochFileCache at DEBUG",
    "kafka.request.logger at DEBUG",
)
EVERYTHING = "every logger"
SET_BACK, SET_BACK_WITHOUT_THREADS = 100_000, 1_000_000
"""Microseconds by which a line is older than the one before it of its thread, so that the clock must have been set back.

A thread writes its lines to a file in the order of its clock.
"""
WORDS: Mapping[str, str] = {"leo": "log end", "hw": "high watermark", "entry": "epoch"}
"""The words of messages for the values that lines show."""


def latest_epoch(epochs: object) -> int | None:
    """Return the epoch of the last (epoch, start) of an epoch cache, -1 if it is empty, None if the cache is unknown."""
    if not isinstance(epochs, list):
        return None
    return int(epochs[-1][0]) if epochs else -1


# Gap detection in the lines of one node.
#
# 1. Only what Kafka always prints counts: a session counts its requests, a log its offsets, a thread prints the lines of one
#    response in one order, a high watermark line has the value before. A break in one of these is a Gap.
# 2. A Gap says nothing about what the broker did. What is judged in it, and what depends on it, is undecided
#    (conformance.checking.verdicts). What was known of the node's replicas is forgotten; later lines show it anew.
# 3. If a node's log begins without the start of a process, or ends without the end of one, the rest is a Gap, too.


SpotAndTime = tuple[Spot, int]
"""The place of a line, and its time."""


class Break(NamedTuple):
    """A contradiction between two lines: the logger whose lines are missing between them, and the evidence.

    `shows` is what the missing lines would have shown: a value, and of which partition or thread (see `_last_line_about`).
    """

    logger: str
    shows: tuple[str, str]
    why: str


_OF_A_RESPONSE = "HandleFetchResponse"
"""The step to which a fetcher's lines of one response add."""
_OF_A_LEADER = frozenset({"recorded", "leader-high-watermark", "expand-isr", "shrinking", "shrink-isr"})
_WITHOUT_LOCK = frozenset({"recorded", "expand-isr", "shrink-isr"})
"""Lines of a leader that Partition prints when it has let go of its lock: it may be a follower by then."""
_IN_A_RESPONSE = frozenset({"appended", "received", "after-append", "follower-high-watermark"})
"""Lines that a fetcher prints of one response."""
_ROLE_LINES = frozenset({"leader", "leader-again", "follower", "follower-again"})
_CHANGES_LOG = frozenset(
    {"log-created", "log-completed", "appended", "received", "after-append", "cut", "cut-nothing", "cut-all"}
)
_TRUNCATED = frozenset({"cut", "cut-nothing", "cut-all"})
_LOOKS = frozenset({"leader-high-watermark", "leader-high-watermark-kept"})
_MAKES_IT_LOOK = ("BecomeLeader", "LeaderAppend", "HandleAlterPartitionResponse")
"""Lines of a leader that has checked whether its high watermark can be raised; the steps that make it, but for a fetch."""
_REPORTED_BY: Mapping[str, frozenset[str]] = {
    "leo": _CHANGES_LOG | {"leader", "follower", "shrinking"},
    "hw": frozenset(
        {
            "log-loaded",
            "leader",
            "leader-again",
            "follower",
            "shrinking",
            "leader-high-watermark",
            "follower-high-watermark",
        }
    ),
    "set": frozenset({"high-watermark", "leader-high-watermark"}),
    "role": _ROLE_LINES,
    "entry": frozenset({"epoch-entry", "cut", "cut-all", "log-completed"}),
}
"""By value, the kinds of lines that show it: if a later line contradicts it, lines are missing after the last of these."""
_SHOWS: Mapping[str, tuple[str, ...]] = {
    kind: tuple(value for value, lines in _REPORTED_BY.items() if kind in lines)
    for kind in frozenset[str]().union(*_REPORTED_BY.values())
}
"""By kind of line, the values that it shows."""
_OF_A_REPLICA = _OF_A_LEADER | {"leader", "leader-again", "follower", "follower-again", "received", "appended"}
_NEEDS_A_ROLE = _OF_A_REPLICA - _ROLE_LINES
_EPOCH = re.compile(r"epoch=(\d+)")


class GapDetector:
    """Checks each line of one node against the state of its replicas, before the line changes that state."""

    def __init__(self, broker: LoggedBroker) -> None:
        """Begin before the first line, with nothing to compare with."""
        self.broker = broker
        self.gaps: list[Gap] = []
        self.breaks_behind_signal = False
        """Whether lines of the process contradict each other behind the signal to stop: some loggers had ended (4.x)."""
        self._leading: dict[str, bool] = {}
        """By partition, whether the broker leads (True) or follows; a partition without a role is not in it."""
        self._unloaded: set[str] = set()
        """Partitions that act though no line says that they were loaded: that is one gap, not one for each line."""
        self._with_log_end: set[str] = set()
        """Partitions whose log end a line has shown when they were loaded."""
        self._without_role: set[str] = set()
        """Partitions that act without a role: that is one gap, too."""
        self._set: dict[ThreadPartition, int] = {}
        """The high watermark that the thread gave the log last."""
        self._raised: dict[ThreadPartition, int] = {}
        """One that a leader's thread gave the log, and that no line of Partition has yet."""
        self._answered: dict[ThreadPartition, Send | None] = {}
        """The request whose response the thread handled last."""
        self._last_line_about: dict[tuple[str, str], SpotAndTime] = {}
        """The last line that shows a value ("leo", "hw", "set", "role", "entry") of a partition, or a request of a thread
        ("send"); "leo before" and the like are of the process before.
        """
        self._on_disk: dict[tuple[str, str], tuple[int, SpotAndTime]] = {}
        """By value and partition, what the process before left on its disk, as its lines show it, and the last of these."""
        self._first: SpotAndTime = (BEFORE_ALL_LINES, 0)
        """The first line of the process."""
        self._status = ""
        """That of the process (BrokerServer#maybeChangeStatus); empty if its lines do not say."""

    def begin_process(self, first: ParsedLine | None, line: Line) -> None:
        """Begin a process: `line` is its first line, `first` its first line of a known kind, None if it has none.

        What the lines of the process before showed counts no more, but for what is on its disk.
        """
        self.breaks_behind_signal = False
        self._set.clear()
        self._raised.clear()
        self._answered.clear()
        self._leading.clear()
        self._unloaded.clear()
        self._with_log_end.clear()
        self._without_role.clear()
        spot = (self.broker.run, 0)
        if first is None or first.kind != "process-started":
            why = "its log does not begin with the start of a process"
            self.gaps.append(Gap(self.broker.node, EVERYTHING, BEFORE_ALL_LINES, spot, (None, line.time), why))
            self._status = ""
        else:
            # A BrokerServer is in this status until it starts.
            self._status = "SHUTDOWN"
        self._last_line_about.clear()
        self._last_line_about |= {(f"{name} before", tp): last for (name, tp), (_, last) in self._on_disk.items()}
        self._first = (spot, line.time)

    def end_process(self, line: Line, clean: bool | None, followed: bool) -> None:
        """End a process at its last line; add a gap if its log does not go to its end.

        `clean`: whether the next process found a clean shutdown, None if unknown; `followed`: there is a next process.
        """
        spot = (self.broker.run, self.broker.index)
        self._note_what_is_left_on_disk()
        # A process that another one follows has crashed, which needs no line.
        if not self.broker.stopping and not followed:
            why = "its log ends while the process runs"
            self.gaps.append(Gap(self.broker.node, EVERYTHING, spot, AFTER_ALL_LINES, (line.time, None), why))
        elif clean and not self.broker.stopping and not self.broker.logs_closed:
            why = "the next process found a clean shutdown that no line reports"
            end = (self.broker.run + 1, 0)
            self.gaps.append(Gap(self.broker.node, EVERYTHING, spot, end, (line.time, None), why))

    def _note_what_is_left_on_disk(self) -> None:
        """Note what the next process of this node finds on disk, as far as the lines of this one show it."""
        self._on_disk.clear()
        serves_on = self.broker.stopping and not self.broker.logs_closed
        for tp, replica in self.broker.replicas.items():
            # A 4.x process that was told to stop goes on serving without lines (process.py): its disk may have more.
            if serves_on and replica.leader is not None:
                continue
            for name, value in (("leo", replica.leo), ("hw", replica.hw), ("entry", latest_epoch(replica.epochs))):
                if value is not None:
                    self._on_disk[name, tp] = value, self._last_line_about.get((name, tp), self._first)

    def check(self, parsed: ParsedLine) -> None:
        """Check a line; each break becomes a gap since the last line that showed the value.

        After nearly any break all replicas are forgotten, as each may have changed in the lines that are missing.
        """
        broker = self.broker
        broker.forgotten.discard(parsed.tp)
        if parsed.kind == "recorded" and self._is_plain_fetch(parsed):
            return
        breaks = list(self._breaks(parsed))
        spot, time = (broker.run, broker.index), parsed.line.time
        if broker.stopping:
            # What the status contradicts was printed before the signal.
            lacks_lines = parsed.kind != "status-changed" and (bool(breaks) or self._isr_of_no_proposal(parsed))
            self.breaks_behind_signal |= lacks_lines
        if not breaks:
            self._note_line(parsed, (spot, time))
            return
        for contradiction in breaks:
            begin, begin_time = self._last_line_about.get(contradiction.shows, self._first)
            why = f"{contradiction.why} ({parsed.line.at})"
            self.gaps.append(Gap(broker.node, contradiction.logger, begin, spot, (begin_time, time), why))
        # A high watermark is printed twice, by the log ("set") and by Partition: if one line is missing, the other has the
        # value. After any other break nothing that is known of any replica is certain.
        if any(contradiction.shows[0] != "set" for contradiction in breaks):
            # Not those that were forgotten before, and that no line named since: else, without the lines of TRACE, each line
            # would cost a step for each of 5,000 partitions.
            for tp in [tp for tp in broker.replicas if tp not in broker.forgotten]:
                broker.replicas[tp].forget()
                broker.step(parsed, FORGOTTEN, {}, tp).thread = ""
            broker.forgotten.update(broker.replicas)
        self._note_line(parsed, (spot, time))

    def _is_plain_fetch(self, parsed: ParsedLine) -> bool:
        """Return whether a `Recorded` line contradicts nothing: a loaded leader, an offset within its log.

        Most lines are such lines, so they are checked first.
        """
        replica = self.broker.replicas.get(parsed.tp)
        return (
            replica is not None
            and replica.loaded
            and self._leading.get(parsed.tp) is True
            and not self._raised
            and (replica.leo is None or parsed.number("remote_leo") <= replica.leo)
        )

    def ends_early(self) -> bool:
        """Return whether some loggers ended before others behind the signal to stop; asked after a process's last line.

        Then lines contradict each other, or the last raise has no line of Partition: the process is read up to the signal.
        """
        return self.breaks_behind_signal or (self.broker.stopping and bool(self._raised))

    def _isr_of_no_proposal(self, parsed: ParsedLine) -> bool:
        """Return whether a leader learns of an ISR that it must have proposed, without a line that proposes it."""
        if parsed.kind == "isr-answer" and parsed.number("error") == 0:
            tp = self.broker.partition_of_response(parsed)
        # Only a proposal adds a member; a controller that fences a broker removes one by itself.
        elif parsed.kind == "leader-again" and not set(parsed.ids()) <= self.broker.replica(parsed.tp).isr:
            tp = parsed.tp
        else:
            return False
        # A committed proposal raises the partition epoch by one: it was made at the epoch before.
        before = parsed.number("partition_epoch") - 1
        proposed = (step for step in self.broker.proposals.values() if step.tp == tp)
        return all(step.fields.get("partition_epoch") != before for step in proposed)

    def _note_line(self, parsed: ParsedLine, here: SpotAndTime) -> None:
        """Note the line, which stands `here`, as the last one that shows its values, and what it says of roles."""
        for name in _SHOWS.get(parsed.kind, ()):
            self._last_line_about[name, parsed.tp] = here
        if parsed.kind == "sending":
            self._last_line_about["send", parsed.line.thread] = here
        elif parsed.kind == "status-changed":
            self._last_line_about["status", ""] = here
        if parsed.kind in _ROLE_LINES:
            self._leading[parsed.tp] = parsed.kind.startswith("leader")
        elif parsed.kind == "log-deleted":
            # A replica that is created again is loaded again, and gets a role again.
            self._leading.pop(parsed.tp, None)
            for partitions in (self._without_role, self._unloaded, self._with_log_end):
                partitions.discard(parsed.tp)
        elif parsed.kind == "high-watermark":
            self._note_high_watermark_set(parsed)

    def _note_high_watermark_set(self, parsed: ParsedLine) -> None:
        """Note a high watermark that the log set.

        A leader that raises it prints the line of Partition next (Partition#maybeIncrementLeaderHW): `_raised` until then.
        """
        thread, hw = parsed.line.thread, parsed.number("hw")
        self._set[thread, parsed.tp] = hw
        replica = self.broker.replicas.get(parsed.tp) or LoggedReplica()
        leads = self._leading.get(parsed.tp) and thread and not thread.startswith(FETCHER_THREAD)
        # The log also sets an unchanged high watermark, for its position in a new segment: Partition prints nothing then.
        if leads and replica.hw is not None and hw > replica.hw:
            self._raised[thread, parsed.tp] = hw

    def _breaks(self, parsed: ParsedLine) -> Iterator[Break]:
        """Yield each contradiction between a line and what the lines before it showed of its replica and thread.

        First what every line of a replica needs, then the values that a kind of line has, then what a leader's line needs.
        """
        kind, broker = parsed.kind, self.broker
        if kind == "sending":
            yield from self._session(parsed)
        elif kind == "status-changed":
            before, self._status = self._status, parsed.text("status")
            if before not in ("", parsed.text("status_before")):
                yield Break(EVERYTHING, ("status", ""), f"the broker was {before}, and is {parsed.text('status_before')}")
        if not parsed.tp:
            return
        replica = broker.replicas.get(parsed.tp) or LoggedReplica()
        # Before a replica does anything, Partition#createLog has printed that line: without it earlier lines are missing.
        if kind in _OF_A_REPLICA and not replica.loaded and parsed.tp not in self._unloaded:
            self._unloaded.add(parsed.tp)
            yield Break(EVERYTHING, ("load", parsed.tp), "no line says that the replica was loaded")
        if kind in _NEEDS_A_ROLE and parsed.tp not in self._leading:
            yield from self._has_a_role(parsed.tp)
        # What a fetcher thread's missing lines would have shown: its requests.
        thread = ("send", parsed.line.thread)
        # A leader's thread prints the line of Partition right after the log's: another line shows that this one is missing.
        raised = self._raised.pop((parsed.line.thread, parsed.tp), None) if self._raised else None
        if raised is not None and not (kind == "leader-high-watermark" and parsed.number("hw") == raised):
            yield Break(
                PARTITION,
                ("hw", parsed.tp),
                f"the log was given high watermark {raised}, and no line of its leader says so",
            )
        # Without thread names it is unknown which lines belong together.
        has_thread = bool(parsed.line.thread)
        in_fetcher = parsed.line.thread.startswith(FETCHER_THREAD)
        in_response = kind in _IN_A_RESPONSE and broker.opened(parsed, _OF_A_RESPONSE) is not None
        if kind == "recorded":
            # A fetch after the log end is out of range, and not recorded (Partition#fetchRecords): the log has grown.
            if replica.leo is not None and parsed.number("remote_leo") > replica.leo:
                yield from _differs(replica.leo, parsed.number("remote_leo"), "leo", parsed.tp)
        elif kind in ("leader", "follower"):
            yield from _differs(replica.leo, parsed.number("leo"), "leo", parsed.tp)
            yield from _differs(replica.hw, parsed.number("hw"), "hw", parsed.tp)
        elif kind == "leader-again":
            yield from _differs(replica.hw, parsed.number("hw"), "hw", parsed.tp)
        elif kind == "appended":
            yield from _differs(replica.leo, parsed.number("rec_base"), "leo", parsed.tp)
            if in_fetcher and not in_response:
                yield Break(FETCHER, thread, "records were appended that no line says were received")
            elif has_thread and not in_fetcher and self._leading.get(parsed.tp) is False:
                yield Break(ROLES, ("role", parsed.tp), "a follower appended records as a leader")
            elif self._leading.get(parsed.tp) and replica.lacks_leader_epoch():
                yield Break(CACHE, ("entry", parsed.tp), "a leader appended records in a leader epoch that no line adds")
        elif kind == "received":
            yield from _differs(replica.leo, parsed.number("leo_before"), "leo", parsed.tp)
            # The lines of the response before are not complete, else its step would be closed.
            if in_response and has_thread:
                yield Break(FETCHER, thread, "the lines of a response end in the middle")
            elif has_thread and self._is_second_response(parsed):
                yield Break(FETCHER, thread, "a second response to one request")
        elif kind == "after-append":
            yield from _differs(replica.leo, parsed.number("leo"), "leo", parsed.tp)
            if has_thread and not in_response:
                yield Break(FETCHER, thread, "the lines of a response begin in the middle")
        elif kind == "follower-high-watermark" and has_thread and not in_response:
            yield Break(FETCHER, thread, "the lines of a response begin in the middle")
        elif kind == "leader-high-watermark":
            if not self._crosses(parsed, raised, replica.hw):
                yield from _differs(replica.hw, parsed.number("hw_before"), "hw", parsed.tp, PARTITION)
            if has_thread and self._set.get((parsed.line.thread, parsed.tp)) != parsed.number("hw"):
                yield Break(LOG, ("set", parsed.tp), "a high watermark that no line of the log sets")
        elif kind == "shrinking":
            # Printed under the write lock of Partition: no other thread appends meanwhile.
            yield from _differs(replica.leo, parsed.number("leo"), "leo", parsed.tp)
            yield from _differs(replica.hw, parsed.number("hw"), "hw", parsed.tp, PARTITION)
        elif kind == "truncating-to-high-watermark":
            yield from _differs(replica.hw, parsed.number("hw_before"), "hw", parsed.tp)
        elif kind in _TRUNCATED:
            # This line names the last offset, not the end; the other two name what the log end has become.
            if kind == "cut-nothing":
                yield from _differs(replica.leo, parsed.number("last") + 1, "leo", parsed.tp)
            if in_fetcher and broker.opened(parsed, *TRUNCATES) is None:
                yield Break(FETCHER, thread, "a follower's log is truncated, and no line says for what")
        else:
            yield from self._loading(parsed, replica)
        if kind in _LOOKS and not may_fetch(parsed) and broker.opened(parsed, *_MAKES_IT_LOOK) is None:
            yield Break(ROLES, ("role", parsed.tp), "a leader looks at its high watermark, and no line says for what")
        if kind in _OF_A_LEADER and self._leading.get(parsed.tp) is False:
            acted_before = kind in _WITHOUT_LOCK and has_thread and replica.led_after(broker.counts_from(parsed))
            if not acted_before:
                yield Break(ROLES, ("role", parsed.tp), "a follower acts as a leader")

    def _loading(self, parsed: ParsedLine, replica: LoggedReplica) -> Iterator[Break]:
        """Yield a break if a line of a log that is loaded has more than its disk had, or the log is loaded twice."""
        kind = parsed.kind
        if kind == "epochs-cut-at-end" and not replica.loaded:
            epochs = map(int, _EPOCH.findall(parsed.text("entries")))
            yield from self._more_on_disk(max(epochs, default=-1), "entry", parsed.tp, CACHE)
        elif kind == "log-created":
            self._with_log_end.add(parsed.tp)
            if replica.loaded:
                yield Break(EVERYTHING, ("load", parsed.tp), "a log is created for a replica that is loaded")
        elif kind == "log-completed":
            self._with_log_end.add(parsed.tp)
            # An append whose line was never written explains more.
            if self.broker.append_in_flight(parsed.tp) is None:
                yield from self._more_on_disk(parsed.number("leo"), "leo", parsed.tp)
        elif kind == "log-loaded":
            yield from self._more_on_disk(parsed.number("hw"), "hw", parsed.tp)
            if parsed.tp not in self._with_log_end:
                yield Break(EVERYTHING, ("load", parsed.tp), "no line says how far the log goes that was loaded")
            if replica.loaded:
                yield Break(EVERYTHING, ("load", parsed.tp), "a replica is loaded twice by one process")

    def _more_on_disk(self, loaded: int, name: str, tp: str, logger: str = LOG) -> Iterator[Break]:
        """Yield a break if the disk has more than the lines of the process before show: its last lines are missing.

        `loaded` is the value that a line of this process shows, `name` is its name ("leo", "hw", "entry"); `logger` is the
        one whose lines are missing.
        """
        # Less on disk is no break: what was not flushed may be lost with a crash.
        before, _ = self._on_disk.get((name, tp), (loaded, None))
        if loaded > before:
            yield Break(
                logger, (f"{name} before", tp), f"{WORDS[name]} {loaded} is loaded, and no line goes beyond {before}"
            )

    def _is_second_response(self, parsed: ParsedLine) -> bool:
        """Return whether the last request of a fetcher thread already had its response for this partition; note this one."""
        fetcher = self.broker.fetchers.get(fetcher_key(parsed))
        send = None if fetcher is None else fetcher.send
        before = self._answered.get((parsed.line.thread, parsed.tp))
        self._answered[parsed.line.thread, parsed.tp] = send
        return send is not None and send is before

    def _crosses(self, parsed: ParsedLine, raised: int | None, hw: int | None) -> bool:
        """Return whether the lines of two raises of two threads stand in the other order than the raises.

        The log sets a high watermark under its lock, Partition prints its line behind that: another thread may raise it and
        print its own line meanwhile. `raised` is what this thread gave the log, `hw` what lines have shown so far.
        """
        before, after = parsed.number("hw_before"), parsed.number("hw")
        # The line of the earlier raise, which stands behind that of the later one.
        if raised == after and hw is not None and hw > after:
            return True
        # The line of the later raise: that of the earlier one, by another thread, is still to come.
        return any(tp == parsed.tp and value == before for (_, tp), value in self._raised.items())

    def _has_a_role(self, tp: str) -> Iterator[Break]:
        """Yield a break, once for each partition, if no line gives its replica a role."""
        if tp not in self._leading and tp not in self._without_role:
            self._without_role.add(tp)
            yield Break(ROLES, ("role", tp), "no line says whether the replica leads or follows")

    def _session(self, parsed: ParsedLine) -> Iterator[Break]:
        """Check `Sending fetch request`: the requests of a session count up, and each has log end and leader epoch."""
        request = fetch_line(parsed.text("request"))
        fetcher = self.broker.fetchers.get(fetcher_key(parsed))
        thread = ("send", parsed.line.thread)
        previous = fetcher.send if fetcher is not None else None
        # Epoch 0 and -1 begin and end a session: only requests within one have a number to compare (FetchMetadata).
        if request.session_epoch > 0:
            last = None if previous is None else previous.session_epoch
            # A request with epoch 0 or -1 begins a session whose id only the response names.
            in_session = previous is not None and (previous.session == request.session or previous.session_epoch <= 0)
            # A summary stands for several requests in a row.
            if not in_session or last != request.session_epoch - parsed.line.requests:
                yield Break(
                    FETCHER,
                    thread,
                    f"request {request.session_epoch} of a session follows request {last if in_session else 'of none'}",
                )
        for tp, partition in request.requested.items():
            if tp not in self._leading:
                yield from self._has_a_role(tp)
            replica = self.broker.replicas.get(tp) or LoggedReplica()
            open_step = self.broker.open.get((parsed.line.thread, tp))
            # A thread sends its next request only after it has handled all of a response: its step would be closed.
            if parsed.line.thread and open_step is not None and open_step.name == _OF_A_RESPONSE:
                yield Break(FETCHER, thread, "the lines of a response end in the middle")
            if (
                parsed.line.thread
                and open_step is not None
                and open_step.name in TRUNCATES
                and "leo" not in open_step.fields
            ):
                yield Break(LOG, ("leo", tp), "a follower truncates its log, and no line says that the log did")
            if replica.leader_epoch is not None and partition.epoch > replica.leader_epoch:
                yield Break(ROLES, ("role", tp), f"a request in leader epoch {partition.epoch}, which no line begins")
            latest = latest_epoch(replica.epochs)
            if latest is not None and partition.last_epoch > latest:
                yield Break(CACHE, ("entry", tp), f"a request with last epoch {partition.last_epoch}, which no line adds")


def _differs(expected: int | None, seen: int, name: str, tp: str, logger: str = LOG) -> Iterator[Break]:
    """Yield a break if a line shows `seen` for the value `name` ("leo" or "hw") of a partition, and not `expected`.

    That is what the lines before it have shown, None if they have not. `logger` is the one whose lines are missing.
    """
    if expected is not None and expected != seen:
        yield Break(logger, (name, tp), f"{WORDS[name]} {seen}, which no line brings about after {expected}")


# A clock that was set back: no line is missing, but from there on its times order nothing between files and nodes.


def clock_set_back(node: int, runs: Sequence[Sequence[Line]]) -> Iterator[Gap]:
    """Yield a gap if the clock of a node was set back, as lines of one thread show.

    It goes from the first line whose time is repeated to the end of the log. `runs` are the lines of each process.
    """
    # By file and thread.
    latest: dict[tuple[str, str], int] = {}
    for run, lines in enumerate(runs):
        for index, line in enumerate(lines):
            before = latest.get((line.file, line.thread), 0)
            # A layout without threads mixes them, and a thread that stood still for seconds writes a single line late: so
            # the next line must be older, too.
            following = line if line.thread else lines[min(index + 1, len(lines) - 1)]
            back = before - max(line.time, following.time)
            if back > (SET_BACK if line.thread else SET_BACK_WITHOUT_THREADS):
                # The times behind it came twice: the gap begins at the first line, before it was set back, of such a time,
                # as other nodes' lines are mixed with those, too.
                repeated = (
                    (at, number)
                    for at in range(run + 1)
                    for number, earlier in enumerate(runs[at])
                    if earlier.time >= line.time
                )
                why = f"its clock was set back by {back / 1_000_000:,.1f} s ({line.at})"
                yield Gap(node, EVERYTHING, next(repeated, (run, index)), AFTER_ALL_LINES, (line.time, None), why)
                return
            latest[line.file, line.thread] = max(before, line.time)
