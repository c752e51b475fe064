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

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tidegauge.traces.kafka.lines.requests import Fetch, LoggedResponse
from tidegauge.traces.kafka.nodes.steps import Send


def match(sends: Iterable[Send], fetches: Mapping[int, list[Fetch]]) -> dict[int, Send]:
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
        taken: dict[tuple[int, int, int], int] = defaultdict(int)
        for fetch in of_leader:
            if fetch.session_epoch > 0:
                found = named.pop((fetch.replica, leader, fetch.session, fetch.session_epoch), None)
            else:
                key = (fetch.replica, leader, fetch.session)
                position = _next(full[key], taken[key], fetch)
                found = None if position is None else full[key][position]
                taken[key] = taken[key] if position is None else position + 1
            if found is not None:
                matched[id(fetch)] = found
                for tp in found.asked.keys() - fetch.asked.keys() if fetch.responses or fetch.unasked else ():
                    fetch.asked[tp] = found.asked[tp]
                    fetch.responses[tp] = fetch.unasked.get(tp, LoggedResponse(0, None, None))
    return matched


class SummaryMatches(NamedTuple):
    """By id of the fetch: `sent` is the send that has the last request of a summary; `broken` are summaries with a request
    that no send has, before one that a send has.
    """

    sent: dict[int, Send]
    broken: set[int]


def match_summaries(sends: Iterable[Send], fetches: Mapping[int, list[Fetch]]) -> SummaryMatches:
    """Match summaries with sends."""
    of_session: dict[tuple[int, int, int], list[Send]] = defaultdict(list)
    for send in sends:
        if send.session_epoch > 0:
            of_session[send.node, send.leader, send.session].append(send)
    found = SummaryMatches({}, set())
    for leader, of_leader in fetches.items():
        for fetch in of_leader:
            first, last = fetch.session_epoch - fetch.request.line.requests + 1, fetch.session_epoch
            missing = first
            for send in sorted(of_session[fetch.replica, leader, fetch.session], key=lambda one: one.session_epoch):
                if send.session_epoch >= missing and send.session_epoch - send.requests < last:
                    if send.session_epoch - send.requests >= missing:
                        found.broken.add(id(fetch))
                    missing = send.session_epoch + 1
                    if missing > last:
                        found.sent[id(fetch)] = send
    return found


def _next(sends: list[Send], begin: int, fetch: Fetch) -> int | None:
    alike = [i for i in range(begin, len(sends)) if sends[i].asked == fetch.asked]
    return next((i for i in alike if not sends[i].lost), alike[0] if alike else None)
