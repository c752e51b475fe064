"""Match requests at a leader with `Sending` lines at a follower.

Rules of this file

1. A request of a session matches by (replica, session id, session epoch): those are unique for the life of a leader process.
2. Full fetches have no such key. They match by order and by what they ask for, among the requests that one replica sent to
   one leader; requests that the sender reports as lost match last.
3. Clocks are not used.
4. If the leader's log lacks a request of a session, the sender's lines show what the session asks for from there on. What a
   response leaves out is unchanged (CachedPartition#maybeUpdateResponseData).
5. A summary stands for several requests of its session (Line.summarizes), and those of the two sides may end at different
   requests. It matches if the sender has the last of its requests, and all before it.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidegauge.traces.kafka_logs.nodes.steps import LoggedStep, Send
from tidegauge.traces.kafka_logs.nodes.timeline import ProcessRun
from tidegauge.traces.kafka_logs.parsing.parsed_line import PartitionRequest
from tidegauge.traces.kafka_logs.parsing.request_log import LoggedFetch, LoggedResponse


def match(sends: Iterable[Send], fetches: Mapping[int, list[LoggedFetch]]) -> dict[int, Send]:
    """Return the send of each fetch, by id of the fetch; `fetches` are by leader, in the order they were handled."""
    named: dict[tuple[int, int, int, int], Send] = {}
    full: dict[tuple[int, int, int], list[Send]] = defaultdict(list)
    for send in sends:
        if send.session_epoch > 0:
            named[send.node, send.leader, send.session, send.session_epoch] = send
        else:
            full[send.node, send.leader, send.session].append(send)
    matched: dict[int, Send] = {}
    for leader, of_leader in fetches.items():
        next_send: dict[tuple[int, int, int], int] = defaultdict(int)
        for fetch in of_leader:
            if fetch.session_epoch > 0:
                send_of_fetch = named.pop((fetch.replica, leader, fetch.session, fetch.session_epoch), None)
            else:
                key = (fetch.replica, leader, fetch.session)
                # Full fetches have no number: requests and sends are both in order, so the search goes on after the last
                # match.
                position = _next(full[key], next_send[key], fetch)
                send_of_fetch = None if position is None else full[key][position]
                next_send[key] = next_send[key] if position is None else position + 1
            if send_of_fetch is not None:
                matched[id(fetch)] = send_of_fetch
                # Rule 4: after a request that the leader did not log, only the sender's lines know the whole session.
                for tp in send_of_fetch.asked.keys() - fetch.asked.keys() if fetch.responses or fetch.unasked else ():
                    fetch.asked[tp] = send_of_fetch.asked[tp]
                    fetch.responses[tp] = fetch.unasked.get(tp, LoggedResponse(0, None, None))
    return matched


class SummaryMatches(NamedTuple):
    """By id of the fetch: `sent` is the send that has the last request of a summary; `broken` are summaries with a request
    that no send has, before one that a send has.
    """

    sent: dict[int, Send]
    broken: set[int]


def match_summaries(sends: Iterable[Send], fetches: Mapping[int, list[LoggedFetch]]) -> SummaryMatches:
    """Match summaries with sends."""
    of_session: dict[tuple[int, int, int], list[Send]] = defaultdict(list)
    for send in sends:
        if send.session_epoch > 0:
            of_session[send.node, send.leader, send.session].append(send)
    matches = SummaryMatches({}, set())
    for leader, of_leader in fetches.items():
        for fetch in of_leader:
            first, last = fetch.session_epoch - fetch.request.line.requests + 1, fetch.session_epoch
            missing = first
            for send in sorted(of_session[fetch.replica, leader, fetch.session], key=lambda one: one.session_epoch):
                if send.session_epoch >= missing and send.session_epoch - send.requests < last:
                    # This send and those it stands for begin after the next request that is missing: no send has that one.
                    if send.session_epoch - send.requests >= missing:
                        matches.broken.add(id(fetch))
                    missing = send.session_epoch + 1
                    if missing > last:
                        matches.sent[id(fetch)] = send
    return matches


def _next(sends: list[Send], begin: int, fetch: LoggedFetch) -> int | None:
    alike = [i for i in range(begin, len(sends)) if sends[i].asked == fetch.asked]
    return next((i for i in alike if not sends[i].lost), alike[0] if alike else None)


# The line that records a fetch: `Recorded replica` names the replica and its log end, not the request.
#
# 1. The n-th request of a replica at an offset belongs to the n-th line that records it, near the request's own times if
#    there is one. If the request before it is missing, its line is still waiting, perhaps at the same offset: then the
#    closest line.
# 2. A line that is not near is used only if no other request at that offset is nearer to it. Otherwise a request whose line
#    is lost would get the line of the next request, and so on to the end of the log.


SECOND = 1_000_000
NEAR = SECOND // 4
"""Half of replica.fetch.wait.max.ms: idle fetches of one replica, all of one offset, are further apart."""


class RecordedLines:
    """The lines of one node that belong to no request yet, as steps; `fetches` are all of its requests, in order of time."""

    def __init__(self, steps: Iterable[LoggedStep], fetches: Sequence[LoggedFetch]) -> None:
        self._waiting: dict[tuple[int, str, object], list[LoggedStep]] = defaultdict(list)
        for step in steps:
            if step.name == "HandleFetch":
                self._waiting[step.place[0], step.tp, step.fields.get("peer")].append(step)
        self._windows: dict[tuple[str, int, int], list[tuple[int, int]]] = defaultdict(list)
        for fetch in fetches:
            for tp in fetch.responses:
                window = fetch.request.dequeued, fetch.request.handled
                self._windows[tp, fetch.replica, fetch.asked[tp].offset].append(window)

    def find(self, run: ProcessRun, fetch: LoggedFetch, tp: str, partition: PartitionRequest) -> LoggedStep | None:
        """Return the line of a fetch; it and those before it wait no more."""
        waiting = self._waiting[run.number, tp, fetch.replica]
        window = fetch.request.dequeued, fetch.request.handled
        windows = self._windows[tp, fetch.replica, partition.offset]
        away = {
            position: distance
            for position, step in enumerate(waiting)
            if step.fields.get("remote_leo") == partition.offset
            and (distance := _away(window, step.time)) <= SECOND
            and (distance <= NEAR or distance <= _nearest(windows, step.time))
        }
        if not away:
            return None
        # A fetch of an idle follower is at the same offset every half second: the nearest window decides.
        near = [position for position in away if away[position] <= NEAR]
        position = (near or list(away))[0] if fetch.whole else min(away, key=lambda place: away[place])
        step = waiting[position]
        del waiting[: position + 1]
        return step


def _away(window: tuple[int, int], time: int) -> int:
    begin, end = window
    return max(begin - time, time - end, 0)


def _nearest(windows: Sequence[tuple[int, int]], time: int) -> int:
    """Return the distance to the nearest of some windows, which are ordered by their beginnings."""
    at = bisect_right(windows, (time, time))
    return min((_away(window, time) for window in windows[max(0, at - 1) : at + 1]), default=SECOND)
