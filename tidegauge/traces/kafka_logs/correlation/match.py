"""Match requests at a leader with `Sending` lines at a follower, and with the leader's own `Recorded replica` lines.

A *send* is what a `Sending fetch request` line of a follower shows, a *fetch* what a line of the leader's request log shows;
both have all partitions of their fetch session (KIP-227). A *full fetch* begins a session or has none: its epoch is 0 or -1.

Rules of this file

1. A request of a session matches by (replica, session id, session epoch): those are unique for the life of a leader process.
2. Full fetches have no such key. They match by order and by what they ask for, among the requests that one fetcher of a
   replica sent to one leader, in the process that has the broker epoch of the fetch; requests that the sender reports as
   lost match last.
3. Clocks are not used.
4. If the leader's log lacks a request of a session, the sender's lines show what the session asks for from there on. What a
   response leaves out is unchanged (CachedPartition#maybeUpdateResponseData).
5. A summary stands for several requests of its session (Line.summarizes), and those of the two sides may end at different
   requests. It matches if the sender has the last of its requests, and all before it.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from tidegauge.traces.kafka_logs.nodes.logged_broker import LoggedStep, Send
from tidegauge.traces.kafka_logs.nodes.process import ProcessRun
from tidegauge.traces.kafka_logs.parsing.parsed_line import PartitionRequest
from tidegauge.traces.kafka_logs.parsing.request_log import LoggedFetch, LoggedResponse


def match(
    sends: Sequence[Send], fetches: Mapping[int, list[LoggedFetch]], summaries: Mapping[int, list[LoggedFetch]]
) -> dict[int, Send]:
    """Return the send of each fetch, by id() of the fetch, where it has one.

    `fetches` and `summaries` are by leader, in the order they were handled. A fetch to which its send adds partitions of
    the session gets them (rule 4).
    """
    # By replica, leader, session and its epoch; and by replica, leader, session and fetcher.
    in_session: dict[tuple[int, int, int, int], Send] = {}
    full: dict[tuple[int, int, int, int], list[Send]] = defaultdict(list)
    for send in sends:
        if send.session_epoch > 0:
            in_session[send.node, send.leader, send.session, send.session_epoch] = send
        else:
            full[send.node, send.leader, send.session, send.fetcher].append(send)
    matched: dict[int, Send] = {}
    processes = _processes(sends, (fetches, summaries))
    for leader, of_leader in fetches.items():
        next_send: dict[tuple[int, int, int, int], int] = defaultdict(int)
        for fetch in of_leader:
            if fetch.session_epoch > 0:
                send_of_fetch = in_session.pop((fetch.replica, leader, fetch.session, fetch.session_epoch), None)
            else:
                key = (fetch.replica, leader, fetch.session, fetch.fetcher)
                # Full fetches have no number: requests and sends are both in order, so the search goes on after the last
                # match.
                process = processes.get((fetch.replica, fetch.broker_epoch))
                position = _next_full_send(full[key], next_send[key], fetch, process)
                send_of_fetch = None if position is None else full[key][position]
                next_send[key] = next_send[key] if position is None else position + 1
            if send_of_fetch is not None:
                matched[id(fetch)] = send_of_fetch
                # Rule 4: after a request that the leader did not log, only the sender's lines know the whole session.
                only_sender_names = send_of_fetch.requested.keys() - fetch.requested.keys()
                # With an error it was refused as a whole, as of a session that the leader has evicted.
                for tp in only_sender_names if int(fetch.request.response.get("errorCode", 0)) == 0 else ():
                    fetch.requested[tp] = send_of_fetch.requested[tp]
                    fetch.responses[tp] = fetch.unasked.get(tp, LoggedResponse(error=0, hw=None, log_start=None))
    return matched


class SummaryMatches(NamedTuple):
    """`sent` has, by id() of a summary, the send with its last request; `broken` are the ids of summaries with a request
    that no send has, before one that a send has.
    """

    sent: dict[int, Send]
    broken: set[int]


def match_summaries(sends: Iterable[Send], fetches: Mapping[int, list[LoggedFetch]]) -> SummaryMatches:
    """Match each summary of a leader with the send of the last request that it stands for, in the same session.

    `fetches` are the summaries, by leader. One for whose requests some send is missing is noted as broken.
    """
    of_session: dict[tuple[int, int, int], list[Send]] = defaultdict(list)
    for send in sends:
        if send.session_epoch > 0:
            of_session[send.node, send.leader, send.session].append(send)
    matches = SummaryMatches({}, set())
    for leader, of_leader in fetches.items():
        for fetch in of_leader:
            # It stands for the requests first to last; a send that is a summary, too, for its last `requests` ones.
            first, last = fetch.session_epoch - fetch.request.line.requests + 1, fetch.session_epoch
            missing = first  # the next session epoch whose send was not found yet
            for send in sorted(
                of_session[fetch.replica, leader, fetch.session], key=lambda candidate: candidate.session_epoch
            ):
                send_first, send_last = send.session_epoch - send.requests + 1, send.session_epoch
                # The two have a request in common that no send before had.
                if send_last >= missing and send_first <= last:
                    # No send has the requests from the missing one to this send's first.
                    if send_first > missing:
                        matches.broken.add(id(fetch))
                    missing = send_last + 1
                    if missing > last:
                        matches.sent[id(fetch)] = send
    return matches


def _processes(
    sends: Iterable[Send], logged: Iterable[Mapping[int, list[LoggedFetch]]]
) -> dict[tuple[int, int | None], int]:
    """Return, by replica and broker epoch, the number of the sender's process, where a session in `logged` shows it.

    A session is in the sender's lines, with its process, and in the leader's request log, with the broker epoch (KIP-903).
    """
    run_of_session = {(send.node, send.leader, send.session): send.run for send in sends if send.session_epoch > 0}
    processes: dict[tuple[int, int | None], int] = {}
    for leader, of_leader in (item for fetches in logged for item in fetches.items()):
        for fetch in of_leader:
            run = run_of_session.get((fetch.replica, leader, fetch.session)) if fetch.session_epoch > 0 else None
            # A broker registers at its start: two processes never have one epoch. -1 stands for none (FetchRequest).
            if run is not None and fetch.broker_epoch is not None and fetch.broker_epoch >= 0:
                processes[fetch.replica, fetch.broker_epoch] = run
    return processes


def _next_full_send(sends: list[Send], begin: int, fetch: LoggedFetch, process: int | None) -> int | None:
    """Return the position, from `begin` on, of the first send that asks for the same as a full fetch; None if there is none.

    Only sends of the sender's `process` count, if that is known. One that was not lost is preferred (rule 2).
    """
    of_process = [i for i in range(begin, len(sends)) if process in (None, sends[i].run)]
    alike = [i for i in of_process if sends[i].requested == fetch.requested]
    return next((i for i in alike if not sends[i].lost), alike[0] if alike else None)


# The line that records a fetch: `Recorded replica` names the replica and its log end, not the request.
#
# 1. It was written after its request was taken up, and before the line of the request: the response had left by then. Of the
#    requests of one connection these spans do not overlap (LoggedRequest.since), so no constant of time is needed.
# 2. The first such line at the offset of the request is its own. If the request before it is missing, its line is still
#    waiting, perhaps at the same offset: then the closest line. The first request of a session does not tell whether.


class RecordedLines:
    """The fetches that one node recorded and that have no request yet; nearly all have a `Recorded replica` line."""

    def __init__(self, steps: Iterable[LoggedStep]) -> None:
        """Sort the recorded fetches by process, partition and replica, in the order of their lines."""
        self._waiting: dict[tuple[int, str, object], list[LoggedStep]] = defaultdict(list)
        for step in steps:
            if step.name == "HandleFetch":
                self._waiting[step.run, step.tp, step.fields.get("peer")].append(step)
        # How many of them wait no more; and the earliest time from each on: stamps go back a little, bisection needs order.
        self._done: dict[tuple[int, str, object], int] = defaultdict(int)
        self._earliest = {
            key: list(accumulate((step.time for step in reversed(waiting)), min))[::-1]
            for key, waiting in self._waiting.items()
        }

    def find(
        self, run: ProcessRun, fetch: LoggedFetch, tp: str, partition: PartitionRequest, refused: bool = False
    ) -> LoggedStep | None:
        """Return the `Recorded` line of a fetch of `tp` in process `run`; it and all before it wait no more.

        Of several at the same offset it is the one nearest to the time in which the request was handled (rule 2). None if
        there is none; a fetch that was `refused` in the handler's thread may have one from before that.
        """
        key = (run.number, tp, fetch.replica)
        waiting, earliest = self._waiting[key], self._earliest.get(key, ())
        # Its thread printed the line before it answered: a later one is of the next fetch.
        last = fetch.request.handled if refused else fetch.request.line.time
        begin, end = fetch.request.since - run.slack, last + run.slack
        window = fetch.request.dequeued, fetch.request.handled
        best, least_distance = -1, 0
        # Lines before `_done` wait no more; those from the bisected position on are all later than `end`.
        for position in range(self._done[key], bisect_right(earliest, end)):
            step = waiting[position]
            if step.fields.get("remote_leo") == partition.offset and begin <= step.time <= end:
                distance = _away(window, step.time)
                if best < 0 or distance < least_distance:
                    best, least_distance = position, distance
                # The request before it in its session is in the log: the first line is its own (rule 2).
                if fetch.whole and fetch.session_epoch > 0:
                    break
        if best < 0:
            return None
        self._done[key] = best + 1
        return waiting[best]


def _away(window: tuple[int, int], time: int) -> int:
    """Return how far a time is from a window (begin, end) of times; 0 inside."""
    begin, end = window
    return max(begin - time, time - end, 0)
