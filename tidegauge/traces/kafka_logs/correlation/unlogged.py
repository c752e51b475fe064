"""Requests that only one side logged, and processes whose own lines are missing."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from tidegauge.traces.kafka_logs.correlation.exchanges import request_fields
from tidegauge.traces.kafka_logs.correlation.unmatched import spot
from tidegauge.traces.kafka_logs.nodes.gap_detection import AFTER_ALL_LINES, BEFORE_ALL_LINES, EVERYTHING, Gap
from tidegauge.traces.kafka_logs.nodes.node import Node
from tidegauge.traces.kafka_logs.nodes.process import END
from tidegauge.traces.kafka_logs.nodes.steps import Fields, LoggedStep, Send
from tidegauge.traces.kafka_logs.parsing.request_log import LoggedFetch

# Processes of a node that only other nodes logged: its own lines about them are missing.
#
# 1. A broker registers each time it starts (KIP-631), so every broker epoch is a process of its own. Leaders log it with
#    fetches (KIP-903), the controller when it registers the broker. A higher epoch is a later process.
# 2. A process is known by the fetches that its own lines send. Two epochs in the lines of one process, or more epochs than
#    processes between two known ones, show that the beginning of a process is missing there.


class _Known(NamedTuple):
    """A process with its broker epoch: its number in the lines of its node, and when it first and last sent a fetch."""

    epoch: int
    run: int
    first: int
    last: int


def unlogged_processes(
    nodes: Sequence[Node], fetches: Mapping[int, Sequence[LoggedFetch]], matched: Mapping[int, Send]
) -> Iterator[Gap]:
    """Yield a gap for each process of a node that other nodes name and that no line of its own begins."""
    every = [
        fetch
        for of_leader in fetches.values()
        for fetch in of_leader
        if fetch.broker_epoch is not None and fetch.broker_epoch >= 0
    ]
    for node in nodes:
        if not node.runs or node.silenced:
            continue
        own = [fetch for fetch in every if fetch.replica == node.id]
        epochs = {fetch.broker_epoch or 0 for fetch in own}
        epochs.update(*(other.controller.broker_epochs.get(node.id, ()) for other in nodes))
        yield from _between(node, sorted(epochs), _known(own, matched))


def _known(fetches: Sequence[LoggedFetch], matched: Mapping[int, Send]) -> list[_Known]:
    """Return the known processes in order."""
    sends: dict[tuple[int, int], list[int]] = {}
    for fetch in fetches:
        send = matched.get(id(fetch))
        if send is not None and fetch.broker_epoch is not None:
            sends.setdefault((fetch.broker_epoch, send.run), []).append(send.time)
    return [_Known(epoch, run, min(times), max(times)) for (epoch, run), times in sorted(sends.items())]


def _between(node: Node, epochs: Sequence[int], processes: Sequence[_Known]) -> Iterator[Gap]:
    """Yield the gaps before, between and after the known processes; `epochs` are all that are named."""
    for before, after in zip((None, *processes), (*processes, None), strict=True):
        first = -1 if before is None else before.run
        last = len(node.runs) if after is None else after.run
        unknown = [epoch for epoch in epochs if (not before or epoch > before.epoch) and (not after or epoch < after.epoch)]
        # Two broker epochs in the lines of one process: the line that begins the second one is missing.
        restarted = before is not None and after is not None and before.epoch != after.epoch and first == last
        if not restarted and len(unknown) <= max(0, last - first - 1):
            continue
        begin = BEFORE_ALL_LINES if before is None else spot(node, before.last)
        run, index = AFTER_ALL_LINES if after is None else spot(node, after.first)
        epoch = unknown[0] if unknown else after.epoch if after is not None else None
        why = f"others name its broker epoch {epoch}, and no line begins that process"
        times = (None if before is None else before.last, None if after is None else after.first)
        yield Gap(node.id, EVERYTHING, begin, AFTER_ALL_LINES if after is None else (run, index + 1), times, why)


# Requests that only one side logged.
#
# 1. A leader that died logged no request for its last fetches, only that it recorded them: they are tied to sends in order.
# 2. A fetch without a `Recorded` line is that of the only replica with a send left over, if there is just one.
# 3. A broker that was told to stop stops logging before it stops fetching (4.x):
#
#        follower   send 1 -> response 1 -> last line ...... send 2 (no line) ......
#        leader          handles 1                                handles 2
#
#    What was received was sent, so send 2 is added after the last line of its sender and after response 1; it names the
#    leader's line. It is not added where a line of the sender must be missing instead (the branches say when).
# 4. A process ends after its requests were handled and answered (`process.py`), except for a response that was sent after
#    the leader had handled a request of the next process.


def tie_unlogged(
    nodes: Sequence[Node],
    fetches: Mapping[int, list[LoggedFetch]],
    sends: Sequence[Send],
    matched: Mapping[int, Send],
    gapped: Collection[int] = (),
) -> list[tuple[Node, LoggedStep]]:
    """Tie every recorded fetch of every leader to its send, or to one that must have been.

    Returns the fetches that have none. `gapped` are the nodes of which lines are missing.
    """
    without: list[tuple[Node, LoggedStep]] = []
    used = {id(send) for send in matched.values()}
    senders = {node.id: node for node in nodes if node.runs and not node.silenced}
    for node in nodes:
        if not node.runs:
            continue  # a node without lines: its requests became no steps
        _responses_of_the_dead(node)
        latest = _add_received(node, fetches[node.id], senders, matched, gapped, without)
        left = [send for send in sends if send.leader == node.id and id(send) not in used]
        waiting = {tp: [send for send in left if tp in send.asked] for tp in {tp for send in left for tp in send.asked}}
        nameless: list[LoggedStep] = []
        unsent: dict[tuple[str, int], list[LoggedStep]] = {}
        for step in sorted(node.broker.steps, key=lambda one: one.place):
            peer = step.fields.get("peer")
            if step.name != "HandleFetch":
                continue
            if not isinstance(peer, int):
                # Rule 2. Without "hw" it is the step that process.py adds after the last line of a process.
                if "hw" in step.fields:
                    nameless.append(step)
            elif "req_epoch" in step.fields:
                # It has a request, so what was recorded before it was sent before it: there a line is missing, and stays so.
                unsent.pop((step.tp, peer), None)
            else:
                send = _tie(step, waiting.get(step.tp, []), peer, step.fields["req_offset"])
                if send is not None:
                    latest[peer] = (send.run, id(send))
                    unsent.pop((step.tp, peer), None)
                elif peer in senders:
                    unsent.setdefault((step.tp, peer), []).append(step)
        for (_, peer), steps in unsent.items():
            # A send is added only if the sender had stopped logging and neither log has other gaps; and not in an older
            # leader epoch than that of the sender's last line: that fetch was sent before the line.
            may_be_unlogged = _logs_no_more(senders, peer, latest) and peer not in gapped and node.id not in gapped
            if not may_be_unlogged or any(
                _is_older(step, _epoch(node, step), senders[peer], latest[peer][0]) for step in steps
            ):
                without += [(node, step) for step in steps]
                continue
            for step in steps:
                _send_before(step, senders[peer], latest[peer], {"req_offset": step.fields["req_offset"]})
                latest[peer] = (latest[peer][0], id(step))
        for step in nameless:
            fitting = [send for send in waiting.get(step.tp, []) if send.asked[step.tp].offset == step.fields["hw"]]
            if len({send.node for send in fitting}) == 1:
                peer = fitting[0].node
                step.fields.update(peer=peer, req_offset=step.fields["hw"], remote_leo=step.fields["hw"])
                _tie(step, waiting[step.tp], peer, step.fields["hw"])
    return without


def _tie(step: LoggedStep, waiting: list[Send], peer: int, offset: object) -> Send | None:
    """Tie a recorded fetch to the first send left over of this replica at this offset."""
    for send in waiting:
        if send.node == peer and send.asked[step.tp].offset == offset:
            step.depends_on.append(("sent", id(send)))
            step.provides += [("handled", send.node, send.run), ("answered", id(send))]
            waiting.remove(send)
            return send
    return None


def _add_received(
    node: Node,
    fetches: Sequence[LoggedFetch],
    senders: Mapping[int, Node],
    matched: Mapping[int, Send],
    gapped: Collection[int],
    without: list[tuple[Node, LoggedStep]],
) -> dict[int, tuple[int, int]]:
    """Add sends of requests that only the leader logged; return each sender's last (process, request)."""
    latest: dict[int, tuple[int, int]] = {}
    handled = {(key, step.tp): step for step in node.broker.steps if step.name == "HandleFetch" for key in step.depends_on}
    # By broker epoch: the next process of a broker has another one, and logs again.
    last = {(fetch.replica, fetch.broker_epoch): at for at, fetch in enumerate(fetches) if id(fetch) in matched}
    reported: set[tuple[int, int]] = set()
    for at, fetch in enumerate(fetches):
        send = matched.get(id(fetch))
        if send is not None:
            latest[fetch.replica] = (send.run, id(send))
            reported.add((fetch.replica, int(fetch.request.response.get("sessionId", 0)) or fetch.session))
        elif (fetch.replica, fetch.session) not in reported:
            # A session without any line of its sender: all lines of a fetcher are missing, not only the last ones.
            continue
        elif not _logs_no_more(senders, fetch.replica, latest):
            continue
        elif at > last.get((fetch.replica, fetch.broker_epoch), at):
            received = [(handled[("sent", id(fetch)), tp], fetch.asked[tp]) for tp in fetch.responses]
            run = latest[fetch.replica][0]
            older = any(_is_older(step, partition.epoch, senders[fetch.replica], run) for step, partition in received)
            # A line of the sender may be missing instead: before its last line, or at the end of its log.
            if older or fetch.replica in gapped:
                without += [(node, step) for step, _ in received]
                continue
            for step, partition in received:
                _send_before(step, senders[fetch.replica], latest[fetch.replica], request_fields(partition))
            latest[fetch.replica] = (latest[fetch.replica][0], id(fetch))
    return latest


def _logs_no_more(senders: Mapping[int, Node], replica: int, latest: Mapping[int, tuple[int, int]]) -> bool:
    """Return whether a replica may have gone on fetching without lines after its last logged send."""
    return replica in senders and replica in latest and not senders[replica].runs[latest[replica][0]].closed


def _is_older(step: LoggedStep, epoch: int | None, sender: Node, run: int) -> bool:
    """Return whether the sender logged a later leader epoch than that of a fetch: it was sent before that line."""
    last = sender.runs[run].leader_epoch(step.tp, END)
    return epoch is not None and last is not None and 0 <= epoch < last


def _epoch(leader: Node, step: LoggedStep) -> int | None:
    """Return the leader epoch in which a fetch was recorded."""
    run, index = step.place[:2]
    return leader.runs[run].leader_epoch(step.tp, index)


def _send_before(step: LoggedStep, sender: Node, latest: tuple[int, int], fields: Fields) -> None:
    """Add the send of the request that `step` handles; `latest` is (process, request) of the one before."""
    run, request = latest
    made = LoggedStep(
        sender.id, step.tp, "SendFetch", {"peer": step.node} | fields, step.at, step.time, (run, END - 1, 1, step.time)
    )
    made.provides.append(("sent", id(step)))
    made.depends_on.append(("answered", request))
    step.depends_on.append(("sent", id(step)))
    step.provides.append(("handled", sender.id, run))
    sender.broker.steps.append(made)


def _responses_of_the_dead(node: Node) -> None:
    """Untie late responses from the end of the process that asked: a request of its next process was handled before."""
    seen: dict[tuple[str, object], int] = {}
    for step in sorted(node.broker.steps, key=lambda one: one.place):
        runs = [key[2] for key in step.provides if isinstance(key, tuple) and key[0] == "handled"]
        asker = (step.tp, step.fields.get("peer"))
        if step.name == "HandleFetch" and runs:
            seen[asker] = max(seen.get(asker, 0), *runs)
        elif step.name == "AnswerFetch" and runs and runs[0] < seen.get(asker, 0):
            step.provides = [key for key in step.provides if not (isinstance(key, tuple) and key[0] == "handled")]
