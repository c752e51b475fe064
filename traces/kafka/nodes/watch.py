"""What shows that lines are missing from the logs of a node: where, of which logger, and how it is known.

Rules of this file

1. Only what Kafka always prints counts: a session counts its requests, a log its offsets, a thread prints the lines of one
   response in one order, a high watermark line says what it was before. A break in one of these is a Gap.
2. A Gap says nothing about what the broker did. What is judged in it, and what rests on it, is unknown
   (conformance.judging.partial). What was read of the node's replicas is forgotten: it goes on from what is said next.
3. Where a node's log begins without the beginning of a process, or ends without the end of one, the rest is a Gap too.
"""

import re
from collections.abc import Iterator, Mapping

from tidegauge.traces.kafka.lines.lines import Line
from tidegauge.traces.kafka.lines.phrases import fetch_line
from tidegauge.traces.kafka.lines.said import Said
from tidegauge.traces.kafka.nodes.gaps import (
    BEGIN,
    CACHE,
    END,
    EVERYTHING,
    FETCHER,
    LOG,
    PARTITION,
    ROLES,
    WORDS,
    Gap,
    Spot,
    latest_epoch,
)
from tidegauge.traces.kafka.nodes.steps import FETCHER_THREAD, TRUNCATES, LoggedBroker, LoggedReplica, Send, may_fetch

Seen = tuple[Spot, int]
"""Where a line stands, and its time."""

Break = tuple[str, tuple[str, str], str]
"""The logger that lacks lines, what it would have told and of whom, and how it shows."""

_OF_A_RESPONSE = "HandleFetchResponse"
_OF_A_LEADER = frozenset({"recorded", "leader-high-watermark", "expand-isr", "shrinking", "shrink-isr"})
_ROLE_LINES = frozenset({"leader", "leader-again", "follower", "follower-again"})
_CHANGES_LOG = frozenset(
    {"log-created", "log-completed", "appended", "received", "after-append", "cut", "cut-nothing", "cut-all"}
)
_TRUNCATED = frozenset({"cut", "cut-nothing", "cut-all"})
_LOOKS = frozenset({"leader-high-watermark", "leader-high-watermark-kept"})
_MAKES_IT_LOOK = ("BecomeLeader", "LeaderAppend", "HandleAlterPartitionResponse")
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
"""The lines that say a thing anew: what does not fit it later was lost behind the last of them."""
_OF_A_REPLICA = _OF_A_LEADER | {"leader", "leader-again", "follower", "follower-again", "received", "appended"}
_EPOCH = re.compile(r"epoch=(\d+)")


class Watch:
    """The lines of one node, seen before they are taken in."""

    def __init__(self, broker: LoggedBroker) -> None:
        self.broker = broker
        self.gaps: list[Gap] = []
        self._leading: dict[str, bool] = {}
        self._unloaded: set[str] = set()
        self._sized: set[str] = set()
        self._without_role: set[str] = set()
        self._set: dict[tuple[str, str], int] = {}
        self._raised: dict[tuple[str, str], int] = {}
        self._answered: dict[tuple[str, str], Send | None] = {}
        self._reported: dict[tuple[str, str], Seen] = {}
        self._left: dict[tuple[str, str], tuple[int, Seen]] = {}
        self._first: Seen = (BEGIN, 0)

    def begins(self, first: Said | None, line: Line) -> None:
        """A process, at its first line that says something."""
        self._set.clear()
        self._raised.clear()
        self._answered.clear()
        self._leading.clear()
        self._unloaded.clear()
        self._sized.clear()
        self._without_role.clear()
        spot = (self.broker.run, 0)
        if first is None or first.what != "process-started":
            why = "its log does not begin with the start of a process"
            self.gaps.append(Gap(self.broker.node, EVERYTHING, BEGIN, spot, (None, line.time), why))
        self._reported.clear()
        self._reported |= {(f"{what} before", tp): seen for (what, tp), (_, seen) in self._left.items()}
        self._first = (spot, line.time)

    def ends(self, line: Line, clean: bool | None, followed: bool) -> None:
        """A process, at its last line."""
        spot = (self.broker.run, self.broker.index)
        self._leaves()
        if not self.broker.stopping and not followed:
            why = "its log ends while the process runs"
            self.gaps.append(Gap(self.broker.node, EVERYTHING, spot, END, (line.time, None), why))
        elif clean and not self.broker.stopping and not self.broker.logs_closed:
            why = "the next process found a clean shutdown that no line tells of"
            end = (self.broker.run + 1, 0)
            self.gaps.append(Gap(self.broker.node, EVERYTHING, spot, end, (line.time, None), why))

    def _leaves(self) -> None:
        """What the next process of this node finds on disk, as far as this one's lines say; one whose last lines say that it
        was told to stop may serve on behind them, under the leader they name (process.py)."""
        self._left.clear()
        serves_on = self.broker.stopping and not self.broker.logs_closed
        for tp, replica in self.broker.replicas.items():
            if serves_on and replica.leader is not None:
                continue
            for what, value in (("leo", replica.leo), ("hw", replica.hw), ("entry", latest_epoch(replica.epochs))):
                if value is not None:
                    self._left[what, tp] = value, self._reported.get((what, tp), self._first)

    def see(self, said: Said) -> None:
        """One line."""
        broker = self.broker
        found = list(self._breaks(said, broker))
        here: Seen = ((broker.run, broker.index), said.line.time)
        for logger, key, why in found:
            begin, time = self._reported.get(key, self._first)
            self.gaps.append(Gap(broker.node, logger, begin, here[0], (time, here[1]), f"{why} ({said.line.at})"))
        if any(key[0] != "set" for _, key, _ in found):  # the other line of a high watermark says all there is to it
            for replica in broker.replicas.values():
                replica.forget()
        self._carries(said, here)

    def _carries(self, said: Said, here: Seen) -> None:
        """Since which line each of the things that are checked holds."""
        for what, lines in _REPORTED_BY.items():
            if said.what in lines:
                self._reported[what, said.tp] = here
        if said.what == "sending":
            self._reported["send", said.line.thread] = here
        if said.what in _ROLE_LINES:
            self._leading[said.tp] = said.what.startswith("leader")
        elif said.what == "log-deleted":  # a replica that is created again is loaded, and given a role, anew
            self._leading.pop(said.tp, None)
            for seen in (self._without_role, self._unloaded, self._sized):
                seen.discard(said.tp)
        elif said.what == "high-watermark":
            self._sets(said)

    def _sets(self, said: Said) -> None:
        """A leader that raises it says so in the next line of the thread (Partition#maybeIncrementLeaderHW).

        One that sets it where it was, for a new segment or its place in the segment, says no more.
        """
        thread, hw = said.line.thread, said.number("hw")
        self._set[thread, said.tp] = hw
        replica = self.broker.replicas.get(said.tp) or LoggedReplica()
        leads = self._leading.get(said.tp) and thread and not thread.startswith(FETCHER_THREAD)
        if leads and replica.hw is not None and hw > replica.hw:
            self._raised[thread, said.tp] = hw

    def _breaks(self, said: Said, broker: LoggedBroker) -> Iterator[Break]:
        if said.what == "sending":
            yield from self._session(said)
        if not said.tp:
            return
        replica = broker.replicas.get(said.tp) or LoggedReplica()
        if said.what in _OF_A_REPLICA and not replica.loaded and said.tp not in self._unloaded:
            self._unloaded.add(said.tp)
            yield EVERYTHING, ("load", said.tp), "no line says that the replica was loaded"
        if said.what in _OF_A_REPLICA - _ROLE_LINES:
            yield from self._has_a_role(said.tp)
        thread = ("send", said.line.thread)
        raised = self._raised.pop((said.line.thread, said.tp), None)
        if raised is not None and not (said.what == "leader-high-watermark" and said.number("hw") == raised):
            yield PARTITION, ("hw", said.tp), f"the log was given high watermark {raised}, and no line of its leader says so"
        named = bool(said.line.thread)  # without the names of threads nobody knows which lines belong together
        in_fetcher = said.line.thread.startswith(FETCHER_THREAD)
        answering = broker.opened(said, _OF_A_RESPONSE) is not None
        if said.what in ("leader", "follower"):
            yield from _differs(replica.leo, said.number("leo"), "leo", said.tp)
            yield from _differs(replica.hw, said.number("hw"), "hw", said.tp)
        elif said.what == "leader-again":
            yield from _differs(replica.hw, said.number("hw"), "hw", said.tp)
        elif said.what == "appended":
            yield from _differs(replica.leo, said.number("rec_base"), "leo", said.tp)
            if in_fetcher and not answering:
                yield FETCHER, thread, "records were appended that no line says were received"
            elif named and not in_fetcher and self._leading.get(said.tp) is False:
                yield ROLES, ("role", said.tp), "a follower appended records as a leader"
            elif self._leading.get(said.tp) and replica.lacks_leader_epoch():
                yield CACHE, ("entry", said.tp), "a leader appended records in a leader epoch that no line adds"
        elif said.what == "received":
            yield from _differs(replica.leo, said.number("leo_before"), "leo", said.tp)
            if answering and named:
                yield FETCHER, thread, "the lines of a response end in the middle"
            elif named and self._is_second(said):
                yield FETCHER, thread, "a second response to one request"
        elif said.what == "after-append":
            yield from _differs(replica.leo, said.number("leo"), "leo", said.tp)
            if named and not answering:
                yield FETCHER, thread, "the lines of a response begin in the middle"
        elif said.what == "follower-high-watermark" and named and not answering:
            yield FETCHER, thread, "the lines of a response begin in the middle"
        elif said.what == "leader-high-watermark":
            yield from _differs(replica.hw, said.number("hw_before"), "hw", said.tp, PARTITION)
            if named and self._set.get((said.line.thread, said.tp)) != said.number("hw"):
                yield LOG, ("set", said.tp), "a high watermark that no line of the log sets"
        elif said.what == "shrinking":  # under the write lock of Partition: no other thread appends meanwhile
            yield from _differs(replica.leo, said.number("leo"), "leo", said.tp)
            yield from _differs(replica.hw, said.number("hw"), "hw", said.tp, PARTITION)
        elif said.what == "recorded" and replica.leo is not None and said.number("remote_leo") > replica.leo:
            # behind the log end a fetch is out of range, and not recorded (Partition#fetchRecords)
            yield from _differs(replica.leo, said.number("remote_leo"), "leo", said.tp)
        elif said.what == "truncating-to-high-watermark":
            yield from _differs(replica.hw, said.number("hw_before"), "hw", said.tp)
        elif said.what in _TRUNCATED:
            if said.what == "cut-nothing":
                yield from _differs(replica.leo, said.number("last") + 1, "leo", said.tp)
            if in_fetcher and broker.opened(said, *TRUNCATES) is None:
                yield FETCHER, thread, "a follower's log is truncated, and no line says for what"
        elif said.what == "epochs-cut-at-end" and not replica.loaded:
            yield from self._found(max(map(int, _EPOCH.findall(said.text("entries"))), default=-1), "entry", said.tp, CACHE)
        elif said.what == "log-created":
            self._sized.add(said.tp)
            if replica.loaded:
                yield EVERYTHING, ("load", said.tp), "a log is created for a replica that is loaded"
        elif said.what == "log-completed":
            self._sized.add(said.tp)
            yield from self._found(said.number("leo"), "leo", said.tp)
        elif said.what == "log-loaded":
            yield from self._found(said.number("hw"), "hw", said.tp)
            if said.tp not in self._sized:
                yield EVERYTHING, ("load", said.tp), "no line says how far the log goes that was loaded"
            if replica.loaded:
                yield EVERYTHING, ("load", said.tp), "a replica is loaded twice by one process"
        if said.what in _LOOKS and not may_fetch(said) and broker.opened(said, *_MAKES_IT_LOOK) is None:
            yield ROLES, ("role", said.tp), "a leader looks at its high watermark, and no line says for what"
        if said.what in _OF_A_LEADER and self._leading.get(said.tp) is False:
            yield ROLES, ("role", said.tp), "a follower acts as a leader"

    def _found(self, loaded: int, what: str, tp: str, logger: str = LOG) -> Iterator[Break]:
        """More on disk than the process before had: its last lines are missing, as those of one that is killed may be."""
        left, _ = self._left.get((what, tp), (loaded, None))
        if loaded > left:
            yield logger, (f"{what} before", tp), f"{WORDS[what]} {loaded} is loaded, and no line goes beyond {left}"

    def _is_second(self, said: Said) -> bool:
        """Whether the last request of a fetcher thread has had its response for this partition."""
        fetcher = self.broker.fetchers.get((said.line.thread, said.number("peer")))
        send = None if fetcher is None else fetcher.send
        before = self._answered.get((said.line.thread, said.tp))
        self._answered[said.line.thread, said.tp] = send
        return send is not None and send is before

    def _has_a_role(self, tp: str) -> Iterator[Break]:
        if tp not in self._leading and tp not in self._without_role:
            self._without_role.add(tp)
            yield ROLES, ("role", tp), "no line says whether the replica leads or follows"

    def _session(self, said: Said) -> Iterator[Break]:
        """FetchSessionHandler counts the requests of a session; a request tells log end and leader epoch."""
        request = fetch_line(said.text("request"))
        fetcher = self.broker.fetchers.get((said.line.thread, said.number("peer")))
        thread = ("send", said.line.thread)
        before = fetcher.send if fetcher is not None else None
        if request.session_epoch > 0:
            last = None if before is None else before.session_epoch
            known = before is not None and (before.session == request.session or before.session_epoch <= 0)
            if not known or last != request.session_epoch - said.line.requests:
                yield (
                    FETCHER,
                    thread,
                    f"request {request.session_epoch} of a session follows request {last if known else 'of none'}",
                )
        for tp, asked in request.asked.items():
            yield from self._has_a_role(tp)
            replica = self.broker.replicas.get(tp) or LoggedReplica()
            open_step = self.broker.open.get((said.line.thread, tp))
            if said.line.thread and open_step is not None and open_step.name == _OF_A_RESPONSE:
                yield FETCHER, thread, "the lines of a response end in the middle"
            if said.line.thread and open_step is not None and open_step.name in TRUNCATES and "leo" not in open_step.fields:
                yield LOG, ("leo", tp), "a follower truncates its log, and no line says that the log did"
            if replica.leader_epoch is not None and asked.epoch > replica.leader_epoch:
                yield ROLES, ("role", tp), f"a request in leader epoch {asked.epoch}, which no line begins"
            latest = latest_epoch(replica.epochs)
            if latest is not None and asked.last_epoch > latest:
                yield CACHE, ("entry", tp), f"a request with last epoch {asked.last_epoch}, which no line adds"


def _differs(known: int | None, seen: int, what: str, tp: str, logger: str = LOG) -> Iterator[Break]:
    if known is not None and known != seen:
        yield logger, (what, tp), f"{WORDS[what]} {seen}, which no line brings about after {known}"
