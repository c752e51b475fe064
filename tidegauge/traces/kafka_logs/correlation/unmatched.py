"""Gaps that show between the logs of two nodes: requests, proposals and changes that only one side logged.

A *send* is what a `Sending fetch request` line of a follower shows, a *fetch* what the leader's request log shows, `matched`
has by id() of a fetch its send. A full fetch begins a fetch session or has none (KIP-227), so it has no number. A process is
*served on* if it was told to stop and did not close its log: it may have served what it did not log. A *spot* is a place in
a node's log: (process, index of the line). All times are microseconds of the clock of their node.

Rules of this file

1. A session counts its requests, so a request that is missing between two others is missing from the log.
2. What a process did last may be logged nowhere: it was killed before it wrote, or had closed its log while it still served
   (4.x). So a line without its request, or a request without its line, counts only before the end of a process.
3. Clocks of different nodes are not compared.

A follower's step that handles the response to a send `depends_on` the key ("answered", id of the send). The step of a
proposal `provides` a key ("proposal", ..), on which the controller's AlterPartition depends.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from tidegauge.traces.kafka_logs.nodes.gap_detection import EVERYTHING, FETCHER, LOG, PARTITION, REQUESTS
from tidegauge.traces.kafka_logs.nodes.logged_broker import PROPOSES, TAKES_RESPONSES, LoggedStep, Send
from tidegauge.traces.kafka_logs.nodes.node import Node
from tidegauge.traces.kafka_logs.nodes.process import ProcessRun
from tidegauge.traces.kafka_logs.parsing.lines import AFTER_ALL_LINES, BEFORE_ALL_LINES, Gap, Line
from tidegauge.traces.kafka_logs.parsing.request_log import LoggedFetch
from tidegauge.traces.problems import Problem

SHUTDOWN = 5_000_000
"""Microseconds for which a process that logs no more goes on fetching at most, unless the next one begins later."""
UNLOGGED_AT_END = 2_000_000
"""Microseconds before the end of a process in which what it served need not be logged."""
_RECORDED = "HandleFetchResponse"
"""The step that takes over the response to a fetch that its leader records; it records no others."""


class _Channel(NamedTuple):
    """What one fetcher of a follower and one leader logged of each other: one request at a time."""

    sends: list[Send]
    fetches: list[LoggedFetch]


def unmatched(
    nodes: Sequence[Node],
    fetches: Mapping[int, Sequence[LoggedFetch]],
    matched: Mapping[int, Send],
    broken: Collection[int] = (),
) -> list[Gap]:
    """Return every gap that shows between two logs; exchanges.py must have put requests beside the steps before.

    `fetches`, by leader, include summaries (Line.summarizes); `broken` are the id() of those that stand for a request
    without a send.
    """
    gaps: list[Gap] = []
    with_lines = [node for node in nodes if node.runs and not node.silenced]
    # By leader, follower and number of the fetcher.
    channels: dict[tuple[int, int, int], _Channel] = {}
    for node in with_lines:
        for send in node.broker.sends:
            channels.setdefault((send.leader, node.id, send.fetcher), _Channel([], [])).sends.append(send)
        for fetch in fetches[node.id]:
            channels.setdefault((node.id, fetch.replica, fetch.fetcher), _Channel([], [])).fetches.append(fetch)
    for node in with_lines:
        if node.requests:
            gaps += _missing_in_session(node, fetches[node.id])
            gaps += _recorded_without_request(node)
            gaps += _served_before_first_line(node)
            gaps += _log_starts_without_line(node)
        # Without any request in its log the logger was off, or the file was not copied; or it ended before it had answered.
        elif any(leader == node.id and _responds(channel, with_lines) for (leader, _, _), channel in channels.items()):
            gaps.append(
                Gap(
                    node.id,
                    REQUESTS,
                    BEFORE_ALL_LINES,
                    AFTER_ALL_LINES,
                    (None, None),
                    "fetches were sent to it, and it logged no request",
                )
            )
        gaps += _requests_without_line(node)
    by_id = {node.id: node for node in with_lines}
    responses = {node.id: _response_steps(node) for node in with_lines}
    for leader, replica, fetcher in sorted(channels):
        if leader in by_id and replica in by_id:
            channel = channels[leader, replica, fetcher]
            gaps += _full_fetches(by_id[leader], by_id[replica], channel, matched, broken)
            gaps += _last_requests(by_id[leader], by_id[replica], channel, matched, responses[replica])
    return gaps + list(_proposals_without_line(with_lines))


def _responds(channel: _Channel, nodes: Sequence[Node]) -> bool:
    """Return whether a follower got a response of its leader: a line shows it, or its thread sent the next request."""
    if any(not first.lost and first.run == second.run for first, second in pairwise(channel.sends)):
        return True
    responses = {("answered", id(send)) for send in channel.sends}
    steps = (step for node in nodes for step in node.broker.steps if step.name in TAKES_RESPONSES)
    return any(not responses.isdisjoint(step.depends_on) for step in steps)


def found_elsewhere(nodes: Sequence[Node], gaps: Iterable[Gap], own: Iterable[Gap]) -> Iterator[Gap]:
    """Yield the gaps that other shards of the same logs show, and not `own`, at their places in the lines of `nodes`."""
    by_id = {node.id: node for node in nodes}
    known = {(gap.node, str(gap)) for gap in own}
    for gap in gaps:
        if gap.node in by_id and (gap.node, str(gap)) not in known:
            # Another shard has other lines: only the times say between which lines here the gap lies.
            node, (before, after) = by_id[gap.node], gap.times
            yield replace(gap, begin=node.spot_at(before), end=node.spot_behind(after))


def _missing_in_session(node: Node, fetches: Sequence[LoggedFetch]) -> Iterator[Gap]:
    """Yield a gap before each request whose predecessor in its session is not in the log of its leader, `node`."""
    # By session, the epoch and the time of its last request.
    last: dict[int, tuple[int, int]] = {}
    for fetch in sorted(fetches, key=lambda fetch: fetch.request.line.time):
        time = fetch.request.line.time
        if not fetch.whole:
            epoch, before = last.get(fetch.session, (None, None))
            why = f"request {fetch.session_epoch} of session {fetch.session} follows request {epoch}"
            yield Gap(node.id, REQUESTS, node.spot_at(before), node.spot_behind(time), (before, time), why)
        # The response to a full fetch names the session that it opens; 0 for none.
        opened = int(fetch.request.response.get("sessionId", 0))
        last[opened or fetch.session] = (max(0, fetch.session_epoch), time)


def _recorded_without_request(node: Node) -> Iterator[Gap]:
    """Yield a gap in the request log for each fetch that a line of the leader records and that has no request."""
    times = [request.line.time for request in node.requests]
    by_replica: dict[tuple[int, str, int], list[LoggedStep]] = {}
    recorded = [step for step in node.broker.steps if step.name == "HandleFetch"]
    # Only a step that belongs to a request has the leader epoch of that.
    if all("req_epoch" in step.fields for step in recorded):
        return
    for step in sorted(recorded, key=lambda step: step.place):
        peer = step.fields.get("peer")
        if isinstance(peer, int):
            by_replica.setdefault((step.run, step.tp, peer), []).append(step)
    # [:-1]: the last fetch of a replica may have lost its connection, or its leader was killed before it could respond.
    for step in (step for of_replica in by_replica.values() for step in of_replica[:-1] if "req_epoch" not in step.fields):
        run = node.runs[step.run]
        # A process that was told to stop may have closed its log before the requests of its last seconds were logged.
        if not run.served_on or run.logs_until - step.time > UNLOGGED_AT_END:
            before = max((time for time in times if time < step.time), default=None)
            after = min((time for time in times if time > step.time), default=None)
            begin, end = node.spot_at(before), node.spot_behind(after)
            yield Gap(node.id, REQUESTS, begin, end, (before, after), f"a fetch was recorded ({step.at}), and no request")


def _served_before_first_line(node: Node) -> Iterator[Gap]:
    """Yield a gap if a broker served requests before its first line.

    A process serves only after its first lines, so these are of another process, whose lines are missing.
    """
    first, served = node.lines[0].time, min(request.line.time for request in node.requests)
    if served < first:
        why = "it served requests before its first line"
        yield Gap(node.id, EVERYTHING, BEFORE_ALL_LINES, (0, 1), (None, first), why)


def _log_starts_without_line(node: Node) -> Iterator[Gap]:
    """Yield a gap where a response names a log start above every one that the leader's own lines had named by then."""
    # By partition, (time, log start) of its lines.
    log_starts: dict[str, list[tuple[int, int]]] = {}
    by_time = sorted(node.broker.steps, key=lambda step: step.time)
    for step in by_time:
        start = step.fields.get("log_start")
        if isinstance(start, int):
            log_starts.setdefault(step.tp, []).append((step.time, start))
    for step in by_time:
        start = step.fields.get("res_log_start")
        # A log start of 0 is above none.
        if not isinstance(start, int) or not start:
            continue
        # Another thread may write the line of the log start a little later than the response that has it.
        lines = [
            (time, logged_start) for time, logged_start in log_starts.get(step.tp, ()) if time <= step.time + UNLOGGED_AT_END
        ]
        if lines and start > max(logged_start for _, logged_start in lines):
            before = max(time for time, _ in lines)
            begin, end = min(node.spot_at(before), node.spot_at(step.time)), node.spot_behind(step.time)
            why = f"a response names log start {start} ({step.at}), and no line moves it there"
            yield Gap(node.id, LOG, begin, end, (before, step.time), why)
            log_starts[step.tp].append((step.time, start))


def _requests_without_line(node: Node) -> Iterator[Gap]:
    """Yield a gap for each fetch that was answered without an error and that no line records (rule 2 at the end)."""
    for step in node.broker.steps:
        # The line that records a fetch has `remote_leo`.
        if step.name != "HandleFetch" or step.fields.get("error", 0) != 0 or "remote_leo" in step.fields:
            continue
        # A diverging fetch is not recorded (Partition#fetchRecords).
        if "div_epoch" in step.fields or not isinstance(step.fields.get("peer"), int):
            continue
        run = node.run_at(step.time)
        # After its signal to stop, a process may have served without logging (rule 2).
        if not run.served_on or run.logs_until > step.time:
            # Requests are logged when they are answered; the line of the fetch would stand near, before or behind.
            begin, end = node.spot_at(step.time - UNLOGGED_AT_END // 2), node.spot_behind(step.time + UNLOGGED_AT_END // 2)
            why = f"a fetch was answered ({step.at}), and no line records it"
            yield Gap(node.id, PARTITION, begin, end, (step.time, step.time), why)


def _full_fetches(
    leader: Node,
    follower: Node,
    channel: _Channel,
    matched: Mapping[int, Send],
    broken: Collection[int],
) -> Iterator[Gap]:
    """Yield gaps for full fetches, which have no number: one that one side lacks, before one that both have."""
    yield from _handled_and_not_sent(follower, channel, matched, broken)
    yield from _sent_and_not_handled(leader, follower, channel, matched)


def _handled_and_not_sent(
    follower: Node, channel: _Channel, matched: Mapping[int, Send], broken: Collection[int]
) -> Iterator[Gap]:
    """Yield gaps in the log of a follower: the leader handled a full fetch that no line of it sends."""
    # Each process of a follower has a broker epoch of its own.
    by_process: dict[int | None, list[LoggedFetch]] = {}
    for fetch in channel.fetches:
        by_process.setdefault(fetch.broker_epoch, []).append(fetch)
    # Rule 2 excuses what a process did last, not a follower of whose sends none is logged.
    none_matched = not any(id(fetch) in matched for fetch in channel.fetches)
    for fetches in by_process.values():
        last_matched = max((at for at, fetch in enumerate(fetches) if id(fetch) in matched), default=-1)
        for at, fetch in enumerate(fetches):
            if id(fetch) in broken or (id(fetch) not in matched and (none_matched or at < last_matched)):
                why = f"a fetch was handled ({fetch.request.line.at}), and no line sends it"
                yield Gap(follower.id, FETCHER, BEFORE_ALL_LINES, AFTER_ALL_LINES, (None, None), why)
        # Of a summary it is unknown when the last request that the sender logged was handled.
        behind = [fetch for fetch in fetches[last_matched + 1 :] if fetch.request.line.requests == 1]
        if last_matched < 0 or not behind:
            continue
        last_sent = fetches[last_matched]
        send = matched[id(last_sent)]
        fetched_on = behind[-1].request.handled - last_sent.request.handled
        # A log that was closed has every line; one that was not lacks at most those of a shutdown.
        if follower.runs[send.run].closed or fetched_on > _longest_shutdown(follower, send):
            why = f"it fetched on for seconds ({behind[-1].request.line.at}) after the last line that says so"
            yield Gap(follower.id, FETCHER, follower.spot_at(send.time), AFTER_ALL_LINES, (send.time, None), why)


def _sent_and_not_handled(leader: Node, follower: Node, channel: _Channel, matched: Mapping[int, Send]) -> Iterator[Gap]:
    """Yield gaps in the request log of a leader: a line of the follower sends a full fetch that is not there."""
    # By id() of a send, the leader's process that handled it.
    handlers = {
        id(matched[id(fetch)]): leader.run_at(fetch.request.handled) for fetch in channel.fetches if id(fetch) in matched
    }
    handled = [at for at, send in enumerate(channel.sends) if id(send) in handlers]
    for at, send in enumerate(channel.sends if leader.requests else ()):
        # A request of a session that is missing shows in the session; a lost one may never have reached the leader.
        if id(send) in handlers or send.session_epoch > 0 or send.lost:
            continue
        # Between two sends that one process of the leader has: what a process handled last may be logged nowhere (rule 2).
        # In front of the first one it may be any process of the leader up to that of the next.
        place = bisect_left(handled, at)
        before = handlers[id(channel.sends[handled[place - 1]])] if place else leader.runs[0]
        if place < len(handled) and before is handlers[id(channel.sends[handled[place]])]:
            yield Gap(
                leader.id,
                REQUESTS,
                BEFORE_ALL_LINES,
                AFTER_ALL_LINES,
                (None, None),
                f"node {follower.id} sent a fetch that is not there",
            )


def _longest_shutdown(node: Node, send: Send) -> int:
    """Return for how long, in microseconds, a process may have fetched after its last logged send, `send`."""
    # Controlled shutdown has no limit of time, but ends before the next process, which needs its port and its directories.
    until_next_process = node.runs[send.run + 1].first - send.time if send.run + 1 < len(node.runs) else 0
    return max(SHUTDOWN, until_next_process) if node.runs[send.run].served_on else SHUTDOWN


class _LastLogged(NamedTuple):
    """The last request that process `run` of a leader logged: its place among the sends, and when it was handled.

    None, -1 and None stand for the time before its first request.
    """

    run: int | None
    place: int
    time: int | None


def _response_steps(follower: Node) -> Mapping[object, list[LoggedStep]]:
    """Return the steps in which a follower takes a response over, by the response's key ("answered", id of the send)."""
    steps: dict[object, list[LoggedStep]] = {}
    for step in follower.broker.steps:
        for key in step.depends_on if step.name in TAKES_RESPONSES else ():
            steps.setdefault(key, []).append(step)
    return steps


def _last_requests(
    leader: Node,
    follower: Node,
    channel: _Channel,
    matched: Mapping[int, Send],
    responses: Mapping[object, list[LoggedStep]],
) -> Iterator[Gap]:
    """Yield gaps where a follower handled responses to requests that a leader's process did not log, at its begin or end.

    `responses` are the follower's steps, by key of the response (see `_response_steps`).
    """
    if not leader.runs:
        return
    sends = channel.sends
    places = {id(send): at for at, send in enumerate(sends)}
    # By process of the leader, its fetches in order, each with the place of its send among the sends.
    fetches_of_run: dict[int, list[tuple[int, LoggedFetch]]] = {}
    for fetch in channel.fetches:
        # A summary asks for nothing that is read, so no step handles its response.
        if id(matched.get(id(fetch))) in places and not fetch.request.line.summarizes:
            run_number = leader.run_at(fetch.request.handled).number
            fetches_of_run.setdefault(run_number, []).append((places[id(matched[id(fetch)])], fetch))
    # The sends between the last request of a process (at first: before any) and the first request of the next process are
    # those that no line shows as handled.
    last_logged = [_LastLogged(run=None, place=-1, time=None)]
    for run_number, fetches in fetches_of_run.items():
        last_place, last_fetch = fetches[-1]
        last_logged.append(_LastLogged(run_number, last_place, last_fetch.request.handled))
    # Where each such stretch of sends ends, and the process that handled what comes behind it.
    ends = [*(fetches[0][0] for fetches in fetches_of_run.values()), len(sends)]
    next_runs = [*fetches_of_run, len(leader.runs)]
    for (run, place, time), end, next_run in zip(last_logged, ends, next_runs, strict=True):
        # Rule 2: a leader that was told to stop may have served its last requests without logging them.
        if run is not None and leader.runs[run].served_on:
            continue
        behind = [send for send in sends[place + 1 : end] if ("answered", id(send)) in responses]
        # A process of the leader without a request of this fetcher may have counted them, told to stop before it answered.
        between = [process for process in leader.runs[0 if run is None else run + 1 : next_run] if process.served_on]
        behind = [send for send in behind if not _answered_unlogged(leader, between, send, responses["answered", id(send)])]
        steps = [step for send in behind for step in responses["answered", id(send)]]
        # Fetches that diverge, are out of range or are refused are not recorded (Partition#fetchRecords).
        unrecorded = [step for step in steps if step.name != _RECORDED or not _records(leader, run, step)]
        # One response alone, to a fetch that a line records, proves nothing: the leader was killed before it logged it.
        if len(behind) > 1 or unrecorded:
            # A fetch of this kind is recorded: then lines of Partition are missing, too, not only those of the request log.
            everything = any(step.name == _RECORDED for step in unrecorded)
            why = f"node {follower.id} took {len(behind)} responses to requests that are not there"
            begin = leader.spot_at(time)
            until = AFTER_ALL_LINES if run is None or run + 1 == len(leader.runs) else (run + 1, 0)
            yield Gap(leader.id, EVERYTHING if everything else REQUESTS, begin, until, (time, None), why)


def _answered_unlogged(leader: Node, runs: Sequence[ProcessRun], send: Send, steps: Sequence[LoggedStep]) -> bool:
    """Return whether one of the processes `runs` of a leader counted a fetch, and may have answered it after its last line.

    `steps` are those in which the follower took the response to `send` over.
    """
    # The leader counted and answered it within the time from its send to its response, which the follower's clock shows. It
    # answered after the last line: so the `Recorded` line is older than that by this time at most.
    return any(
        all(
            step.name == _RECORDED and _records(leader, run.number, step, since=run.logs_until - (step.time - send.time))
            for step in steps
        )
        for run in runs
    )


def _records(leader: Node, run: int | None, response: LoggedStep, since: int = 0) -> bool:
    """Return whether a line of the leader may record the fetch of a response (Partition#updateFollowerFetchState).

    `response` is the follower's step, `run` the leader's process (None: any). A line before `since`, a time of the leader's
    clock, does not count.
    """
    offset = response.fields.get("req_offset")
    return any(
        step.name == "HandleFetch"
        and run in (None, step.run)
        and step.time >= since
        and "req_epoch" not in step.fields  # else it has a request already
        and step.tp == response.tp
        and step.fields.get("peer", response.node) == response.node
        and step.fields.get("req_offset", offset) == offset
        for step in leader.broker.steps
    )


def _proposals_without_line(nodes: Sequence[Node]) -> Iterator[Gap]:
    """Yield a gap for each proposal that the controller judged and that no line of its leader makes."""
    proposed = {key for node in nodes for step in node.broker.steps if step.name in PROPOSES for key in step.provides}
    logged = {node.id for node in nodes if node.has_replicas}
    for step in (step for node in nodes for step in node.broker.steps if step.name == "AlterPartition"):
        peer = step.fields.get("peer")
        if (
            isinstance(peer, int)
            and peer in logged
            and any(key not in proposed for key in step.depends_on if isinstance(key, tuple) and key[0] == "proposal")
        ):
            why = f"the controller judged a proposal ({step.at}) that no line makes"
            yield Gap(peer, PARTITION, BEFORE_ALL_LINES, AFTER_ALL_LINES, (None, None), why)


def without_send(node: Node, step: LoggedStep) -> Gap:
    """Return the gap for a fetch that was recorded, without a request and without a line of its sender."""
    run, index = step.spot
    why = f"a fetch was recorded ({step.at}), and no line sends it"
    return Gap(node.id, REQUESTS, (run, index), (run, index + 1), (step.time, step.time), why)


def torn_lines(nodes: Sequence[Node], problems: Sequence[Problem]) -> Iterator[Gap]:
    """Yield a gap for each line that could not be read; in a file of several nodes it may be of any of them."""
    torn = [problem for problem in problems if problem.line and problem.lost]
    paths = {problem.path for problem in torn}
    for node in nodes if torn else ():
        of_file: dict[str, list[Line]] = {}
        for line in (*node.lines, *(request.line for request in node.requests)):
            if line.file in paths:
                of_file.setdefault(line.file, []).append(line)
        for problem in torn:
            if problem.path in of_file:
                yield _torn_line(node, of_file[problem.path], problem)


def _torn_line(node: Node, lines: Sequence[Line], problem: Problem) -> Gap:
    """Return the gap of one line that could not be read, between its neighbours in the file."""
    number = problem.line or 0
    before = max((line.time for line in lines if line.number < number), default=None)
    after = min((line.time for line in lines if line.number > (problem.until or number)), default=None)
    begin, end = node.spot_at(before), node.spot_behind(after)
    return Gap(node.id, EVERYTHING, begin, end, (before, after), f"{problem.path}:{number} cannot be read")
