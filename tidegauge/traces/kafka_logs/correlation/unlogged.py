"""Requests that only one side logged, and processes whose own lines are missing.

A *send* is what a `Sending fetch request` line of a follower shows, a *fetch* what the leader's request log shows; `matched`
has by id() of a fetch its send. A *run* is the number of a process among those of its node; a process is *served on* if it
was told to stop and may have served, and fetched, what it did not log. To *tie* steps of two nodes is to give both a key,
such as ("answered", request): the one that provides it comes before the one that depends on it (nodes/logged_broker.py,
rule 3). The end of a process depends on ("handled", node, run), which the steps of its requests and their responses provide.
Steps that a process must have made after its last line are added with the line index AFTER_LINES in their `place`: (run,
line index, order there, time). A step happened after `begins` and by `ends`; `key` is where its stamp puts it.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tidegauge.impl.rules import NONE
from tidegauge.traces.kafka_logs.nodes.gap_detection import EVERYTHING
from tidegauge.traces.kafka_logs.nodes.logged_broker import (
    PROPOSES,
    RAISED,
    REQUEST_HANDLER,
    TAKES_RESPONSES,
    Fields,
    LoggedStep,
    Send,
    beside,
    recorded_fields,
    reported,
    request_fields,
)
from tidegauge.traces.kafka_logs.nodes.node import Node
from tidegauge.traces.kafka_logs.nodes.process import AFTER_LINES, END, MUST_HAVE_ANSWERED, MUST_HAVE_SENT, SHOWN_BY_DISK
from tidegauge.traces.kafka_logs.parsing.lines import Gap
from tidegauge.traces.kafka_logs.parsing.request_log import LoggedFetch

# Processes of a node that only other nodes logged: its own lines about them are missing.
#
# 1. A broker registers each time it starts (KIP-631), so every broker epoch is a process of its own. Leaders log it with
#    fetches (KIP-903), the controller when it registers the broker. A higher epoch is a later process.
# 2. A process is known by the fetches that its own lines send. Two epochs in the lines of one process, or more epochs than
#    processes between two known ones, show that the beginning of a process is missing there. Of a process whose fetches were
#    handled, and of which no line sends one, the lines behind its beginning are missing.


UNLOGGED_FETCHES = 10
"""Fetches that a process may have sent without a line: one that is told to stop stops logging before it stops fetching."""


class _KnownProcess(NamedTuple):
    """A process with its broker epoch: its number in the lines of its node, and when it first and last sent a fetch."""

    epoch: int
    run: int
    first: int
    last: int


def unlogged_processes(
    nodes: Sequence[Node], fetches: Mapping[int, Sequence[LoggedFetch]], matched: Mapping[int, Send]
) -> Iterator[Gap]:
    """Yield a gap for each process of a node that other nodes name and that no line of its own begins.

    `fetches` are those of request logs, by leader.
    """
    # A broker epoch of -1 stands for none.
    with_broker_epoch = [
        fetch
        for of_leader in fetches.values()
        for fetch in of_leader
        if fetch.broker_epoch is not None and fetch.broker_epoch >= 0
    ]
    for node in nodes:
        if not node.runs or node.silenced:
            continue
        own = [fetch for fetch in with_broker_epoch if fetch.replica == node.id]
        epochs = {fetch.broker_epoch or 0 for fetch in own}
        epochs.update(*(other.controller.broker_epochs.get(node.id, ()) for other in nodes))
        requests: Counter[int] = Counter()
        for fetch in own:
            requests[fetch.broker_epoch or 0] += fetch.request.line.requests
        yield from _gaps_between(node, sorted(epochs), _known_processes(own, matched), requests)


def _known_processes(fetches: Sequence[LoggedFetch], matched: Mapping[int, Send]) -> list[_KnownProcess]:
    """Return the processes that sent one of these fetches of one node, by broker epoch (rule 2)."""
    send_times: dict[tuple[int, int], list[int]] = {}
    for fetch in fetches:
        send = matched.get(id(fetch))
        if send is not None and fetch.broker_epoch is not None:
            send_times.setdefault((fetch.broker_epoch, send.run), []).append(send.time)
    return [_KnownProcess(epoch, run, min(times), max(times)) for (epoch, run), times in sorted(send_times.items())]


def _gaps_between(
    node: Node, epochs: Sequence[int], processes: Sequence[_KnownProcess], requests: Mapping[int, int]
) -> Iterator[Gap]:
    """Yield the gaps before, between and after the known processes; `epochs` are all broker epochs that others name.

    `requests` counts the fetches that leaders handled, by the broker epoch of their sender.
    """
    for before, after in zip((None, *processes), (*processes, None), strict=True):
        first = -1 if before is None else before.run
        last = len(node.runs) if after is None else after.run
        unknown = [epoch for epoch in epochs if (not before or epoch > before.epoch) and (not after or epoch < after.epoch)]
        # Two broker epochs in the lines of one process: the line that begins the second one is missing.
        restarted = before is not None and after is not None and before.epoch != after.epoch and first == last
        # Processes in between that sent no fetch may be those of the unknown epochs. A fetch is logged before it is sent: a
        # process that sent many logged some.
        without_fetch = max(0, last - first - 1)
        unsent = next((epoch for epoch in unknown if requests.get(epoch, 0) > UNLOGGED_FETCHES), None)
        if restarted or len(unknown) > without_fetch:
            epoch = unknown[0] if unknown else after.epoch if after is not None else None
            why = f"others name its broker epoch {epoch}, and no line begins that process"
        elif unsent is not None:
            why = f"{requests[unsent]} fetches of its broker epoch {unsent} were handled, and no line sends one"
        else:
            continue
        times = (None if before is None else before.last, None if after is None else after.first)
        yield Gap(node.id, EVERYTHING, node.spot_at(times[0]), node.spot_behind(times[1]), times, why)


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
#    leader's line. It is not added where a line of the sender must be missing instead (the branches say when). If it asks
#    for more than the log had, a response that brought the records is added before it.
#    A session that began then has no line at all: its first fetch is behind all that its process has lines for.
# 4. Likewise a leader that was told to stop goes on answering. Its answer is added where a follower took it; nothing is
#    known of it but that there was one, so what the follower took is not judged.
# 5. A process ends after its requests were handled and answered (`process.py`), except for a response that was sent after
#    the leader had handled a request of the next process.


class LastRequest(NamedTuple):
    """The last request that a fetcher is known to have sent: the sender's process, and the id of its send or fetch."""

    run: int
    request: int


def tie_unlogged(
    nodes: Sequence[Node],
    fetches: Mapping[int, list[LoggedFetch]],
    sends: Sequence[Send],
    matched: Mapping[int, Send],
    gapped: Collection[int] = (),
) -> list[tuple[Node, LoggedStep]]:
    """Tie every recorded fetch of every leader to its send, or to one that must have been; return those that have none.

    `fetches` are by leader; `gapped` are the nodes of which lines are missing. For each leader, first come the requests that
    it logged, then what it recorded without one, by partition and peer, and last what names no peer (rule 2).
    """
    unsent: list[tuple[Node, LoggedStep]] = []
    matched_sends = {id(send) for send in matched.values()}
    inferred = _InferredSteps(nodes)
    senders = {node.id: node for node in nodes if node.runs and not node.silenced}
    responses: dict[Hashable, list[LoggedStep]] = defaultdict(list)
    for step in (step for node in nodes for step in node.broker.steps if step.name in TAKES_RESPONSES):
        for key in step.depends_on:
            responses[key].append(step)
    for node in nodes:
        if not node.runs:
            continue  # a node without lines: its requests became no steps
        _untie_late_responses(node)
        latest = _infer_sends(node, fetches[node.id], senders, matched, gapped, unsent, inferred)
        # By id() of a send, the leader's process that handled it.
        runs = {
            id(matched[id(fetch)]): node.run_at(fetch.request.handled).number
            for fetch in fetches[node.id]
            if id(fetch) in matched
        }
        recorded = _Recorded(node, [send for send in sends if send.leader == node.id], matched_sends, runs, latest)
        recorded.tie(senders)
        unsent += recorded.add_sends(senders, gapped, inferred)
        recorded.tie_nameless()
        _add_unlogged_fetches(node, recorded.sends, runs, responses)
    inferred.shorten_what_was_served_on(senders.values())
    for node in nodes:
        _stop_replicas_begun_unlogged(node)
    return unsent


class _Recorded:
    """The fetches that one leader recorded in `Recorded replica` lines, and how they are tied to sends of its followers.

    A caller calls `tie`, then `add_sends`, then `tie_nameless`.
    """

    def __init__(
        self,
        leader: Node,
        sends: Sequence[Send],
        matched: Collection[int],
        runs: dict[int, int],
        latest: dict[tuple[int, int], LastRequest],
    ) -> None:
        """Begin with the `sends` to the leader; those whose id() is in `matched` have a request that it logged.

        `runs`: by id() of a send, the leader's process that handled it; `latest`: by follower and fetcher, its last request.
        Both are added to.
        """
        self.leader, self.sends, self._runs, self._latest = leader, sends, runs, latest
        self._number = {id(send): number for number, send in enumerate(sends)}
        # A session lives in one process of its leader. A full fetch names the one that it gives up: that may be of a process
        # that is no more (FetchSessionHandler#handleError).
        self._sessions = {send.session: runs[id(send)] for send in sends if send.session_epoch > 0 and id(send) in runs}
        self._left: dict[str, list[Send]] = defaultdict(list)
        """By partition, the sends that are not tied yet."""
        for send in sends:
            for tp in send.requested if id(send) not in matched else ():
                self._left[tp].append(send)
        self._untied: dict[tuple[str, int], list[LoggedStep]] = {}
        """By partition and follower, the last recorded fetches that are tied to no send."""
        self._nameless: list[LoggedStep] = []
        """The recorded fetches that do not name their follower."""

    def tie(self, senders: Collection[int]) -> None:
        """Tie each recorded fetch that names its follower to a send; note what is left, of followers among `senders`.

        `senders` are the ids of the nodes that have lines.
        """
        for step in sorted(
            (fetch_step for fetch_step in self.leader.broker.steps if fetch_step.name == "HandleFetch"),
            key=lambda step: step.place,
        ):
            peer = step.fields.get("peer")
            if not isinstance(peer, int):
                # Rule 2: its raise was printed, and not which follower it is of. Without "hw" it is the step that process.py
                # adds after the last line of a process.
                if "hw" in step.fields:
                    self._nameless.append(step)
            elif "req_epoch" in step.fields:
                # It has a request, so what was recorded before it was sent before it: there a line is missing, and stays so.
                self._untied.pop((step.tp, peer), None)
            elif (send := self._tie(step, peer, step.fields["req_offset"])) is not None:
                # The latest that the peer sent, not the latest that was recorded: an earlier process of this leader may have
                # recorded, at its end, what was sent before.
                last = self._latest.get((peer, send.fetcher), LastRequest(-1, 0))
                if (send.run, self._number[id(send)]) > (last.run, self._number.get(last.request, len(self.sends))):
                    self._latest[peer, send.fetcher] = LastRequest(send.run, id(send))
                self._untied.pop((step.tp, peer), None)
            elif peer in senders:
                self._untied.setdefault((step.tp, peer), []).append(step)

    def add_sends(
        self, senders: Mapping[int, Node], gapped: Collection[int], inferred: "_InferredSteps"
    ) -> list[tuple[Node, LoggedStep]]:
        """Add the sends of the fetches that are left; return those whose send must be among lines that are missing.

        A send is added only if the sender may have stopped logging, and neither log has other gaps; and not in an older
        leader epoch than that of the sender's last line: that fetch was sent before the line.
        """
        unsent: list[tuple[Node, LoggedStep]] = []
        for (tp, peer), steps in self._untied.items():
            # The last send that asks for a partition shows which of the follower's fetchers has it.
            fetcher = next((send.fetcher for send in reversed(self.sends) if send.node == peer and tp in send.requested), 0)
            before = self._latest.get((peer, fetcher))
            if (
                before is None
                or not _may_fetch_unlogged(senders, peer, before.run)
                or peer in gapped
                or self.leader.id in gapped
                or any(_is_older(step, _epoch(self.leader, step), senders[peer], before.run) for step in steps)
            ):
                unsent += [(self.leader, step) for step in steps]
                continue
            for step in steps:
                epoch = _epoch(self.leader, step)
                inferred.send_before(step, senders[peer], before, {"req_offset": step.fields["req_offset"]}, epoch)
                before = self._latest[peer, fetcher] = LastRequest(before.run, id(step))
        return unsent

    def tie_nameless(self) -> None:
        """Tie what was recorded without its follower's name, if only one follower has sends left at that offset (rule 2)."""
        for step in self._nameless:
            # The fetch raised the high watermark to its own offset: it was the last that held it back.
            hw = step.fields["hw"]
            peers = {send.node for send in self._left.get(step.tp, []) if send.requested[step.tp].offset == hw}
            if len(peers) == 1:
                (peer,) = peers
                step.fields.update(peer=peer, req_offset=hw, remote_leo=hw)
                self._tie(step, peer, hw)

    def _tie(self, step: LoggedStep, peer: int, offset: object) -> Send | None:
        """Tie a recorded fetch to the first send left of follower `peer` at `offset`; return that, None if there is none."""
        untied = self._left.get(step.tp, [])
        for send in untied:
            # A full fetch may name a session of an earlier process of the leader, which it gives up (see `_sessions`).
            session_run = self._sessions.get(send.session, step.run)
            fits_process = session_run == step.run or (send.session_epoch <= 0 and session_run < step.run)
            if send.node == peer and send.requested[step.tp].offset == offset and fits_process:
                step.depends_on += (("sent", id(send)),)
                step.provides += (("handled", send.node, send.run), ("answered", id(send)))
                untied.remove(send)
                self._runs[id(send)] = step.run
                return send
        return None


def _stop_replicas_begun_unlogged(node: Node) -> None:
    """Add a Stop, at the end of its process, for each replica that only steps after the process's last line show."""
    begun_or_stopped = {
        (step.run, step.tp) for step in node.broker.steps if step.name in ("Start", "Stop", "Crash", "DeleteReplica")
    }
    after_lines = (step for step in node.broker.steps if step.line_index == AFTER_LINES)
    steps_after_lines = [step for step in after_lines if node.runs[step.run].served_on]
    for step in steps_after_lines:
        if (step.run, step.tp) not in begun_or_stopped:
            begun_or_stopped.add((step.run, step.tp))
            stop = LoggedStep(node.id, step.tp, "Stop", {}, step.at, node.runs[step.run].last, (step.run, END, 0, 0))
            stop.depends_on += (("handled", node.id, step.run),)
            node.broker.steps.append(stop)


def _infer_sends(
    node: Node,
    fetches: Sequence[LoggedFetch],
    senders: Mapping[int, Node],
    matched: Mapping[int, Send],
    gapped: Collection[int],
    unsent: list[tuple[Node, LoggedStep]],
    inferred: "_InferredSteps",
) -> dict[tuple[int, int], LastRequest]:
    """Add sends of requests that only the leader `node` logged; return the last request by sender and fetcher.

    `fetches` are those of its request log, in order. A send is added only behind the last line of its sender: elsewhere a
    line is missing, which unmatched.py reports. Steps for which no send can be added are put into `unsent`.
    """
    latest: dict[tuple[int, int], LastRequest] = {}
    # The steps of requests that no line sends, by key of the request and partition.
    unmatched_keys = {("sent", id(fetch)) for fetch in fetches if id(fetch) not in matched}
    handled = {
        (key, step.tp): step
        for step in (node.broker.steps if unmatched_keys else ())
        if step.name == "HandleFetch"
        for key in unmatched_keys.intersection(step.depends_on)
    }
    # The last request of each fetcher that a line sends. By broker epoch: the next process of a broker has another one, and
    # logs again.
    last_sent = {_fetcher_in_process(fetch): at for at, fetch in enumerate(fetches) if id(fetch) in matched}
    # Likewise of all fetchers of a process, with its run: a fetcher that began a session when the loggers of its process had
    # stopped has no line of its own.
    last_of_process: dict[tuple[int, int | None], tuple[int, int]] = {
        (fetch.replica, fetch.broker_epoch): (matched[id(fetch)].run, at)
        for at, fetch in enumerate(fetches)
        if id(fetch) in matched and fetch.broker_epoch is not None
    }
    # Sessions, by follower and id, of which some request has a line, or which begin behind the last line of their process.
    known_sessions: set[tuple[int, int]] = set()
    for at, fetch in enumerate(fetches):
        send = matched.get(id(fetch))
        before = latest.get((fetch.replica, fetch.fetcher))
        if send is not None:
            latest[fetch.replica, fetch.fetcher] = LastRequest(send.run, id(send))
            known_sessions.add((fetch.replica, _session_given(fetch) or fetch.session))
            continue
        run, last_logged = last_of_process.get((fetch.replica, fetch.broker_epoch), (-1, at))
        begins_unlogged = not fetch.session and at > last_logged and _may_fetch_unlogged(senders, fetch.replica, run)
        if begins_unlogged and (before is None or before.run == run):
            before, last_sent[_fetcher_in_process(fetch)] = before or LastRequest(run, 0), last_logged
            known_sessions.add((fetch.replica, _session_given(fetch)))
        elif (fetch.replica, fetch.session) not in known_sessions:
            # A session without any line of its sender: all lines of a fetcher are missing, not only the last ones.
            continue
        if before is None or not _may_fetch_unlogged(senders, fetch.replica, before.run):
            continue
        # A later request has a line, so this one's line is missing, not unwritten.
        if at <= last_sent.get(_fetcher_in_process(fetch), at):
            continue
        handling_steps = [(handled[("sent", id(fetch)), tp], fetch.requested[tp]) for tp in fetch.responses]
        sender = senders[fetch.replica]
        older = any(_is_older(step, partition.epoch, sender, before.run) for step, partition in handling_steps)
        # A line of the sender may be missing instead: before its last line, or at the end of its log.
        if older or fetch.replica in gapped:
            unsent += [(node, step) for step, _ in handling_steps]
            continue
        for step, partition in handling_steps:
            inferred.send_before(step, sender, before, request_fields(partition), partition.epoch)
        latest[fetch.replica, fetch.fetcher] = LastRequest(before.run, id(fetch))
    return latest


def _session_given(fetch: LoggedFetch) -> int:
    """Return the id of the session that a response names, 0 for none."""
    return int(fetch.request.response.get("sessionId", 0))


def _fetcher_in_process(fetch: LoggedFetch) -> tuple[int, int, int | None]:
    """Return what names the fetcher of a fetch in one process of its broker: follower, fetcher number, broker epoch."""
    return fetch.replica, fetch.fetcher, fetch.broker_epoch


def _may_fetch_unlogged(senders: Mapping[int, Node], replica: int, run: int) -> bool:
    """Return whether process `run` of a broker may have gone on fetching without lines: one that closed its log did not."""
    return replica in senders and not senders[replica].runs[run].closed


def _is_older(step: LoggedStep, epoch: int | None, sender: Node, run: int) -> bool:
    """Return whether process `run` of the sender logged a later leader epoch than `epoch`, that of the fetch of `step`.

    Then the fetch was sent before that line, and not after the last one.
    """
    last = sender.runs[run].leader_epoch(step.tp, END)
    return epoch is not None and last is not None and 0 <= epoch < last


def _epoch(leader: Node, step: LoggedStep) -> int | None:
    """Return the leader epoch in which `leader` recorded the fetch of a step, as its lines show it; None if unknown."""
    run, index = step.spot
    return leader.runs[run].leader_epoch(step.tp, index)


class _InferredSteps:
    """Adds what followers must have done after their last line, as steps, to their broker's."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        """Note the metadata on which each leader epoch rests: a follower that fetches in it has read it."""
        self._epochs: dict[tuple[int, int, str], int] = {}
        """By node, process and partition, the leader epoch of the last request that was added."""
        roles = (step for node in nodes for step in node.broker.steps if step.name == "BecomeLeader")
        self._metadata = {(step.tp, step.fields.get("leader_epoch")): step.depends_on for step in roles}
        """By partition and leader epoch, the keys of the metadata."""
        self._ends: dict[tuple[int, int, str], int] = {}
        """By node, process and partition, the log end after all that is known so far."""
        self._with_ends: set[int] = set()
        """Nodes whose lines were searched for log ends."""
        self._with_sends: set[tuple[int, int, str]] = set()
        """Node, process and partition of sends that were added."""
        self._handled: dict[tuple[int, int, str, int], int] = {}
        """By node, process, partition and leader, the last step before which a send was added."""

    def send_before(self, step: LoggedStep, sender: Node, latest: LastRequest, fields: Fields, epoch: int | None) -> None:
        """Add the send of the request that the leader's `step` handles, after the `latest` request of its fetcher.

        `fields` are those of the request, `epoch` is its leader epoch. Before the send comes what the sender must have done
        to send it: follow in that epoch, and append up to the fetch offset.
        """
        run, request = latest
        place = (run, AFTER_LINES, MUST_HAVE_SENT, step.time)
        last_epoch = self._epochs.get((sender.id, run, step.tp), sender.runs[run].leader_epoch(step.tp, END))
        # It has read metadata after its last line, too, if the request is in a later leader epoch.
        if epoch is not None and last_epoch is not None and epoch > last_epoch:
            self._epochs[sender.id, run, step.tp] = epoch
            role: Fields = {"leader": step.node, "leader_epoch": epoch}
            follows = LoggedStep(sender.id, step.tp, "BecomeFollower", role, step.at, step.time, place)
            follows.depends_on += self._metadata.get((step.tp, epoch), ())
            sender.broker.steps.append(follows)
        offset, end = fields["req_offset"], self._end(sender, run, step.tp)
        if isinstance(offset, int):
            # It asks for more than its log had: the response to its last request brought the records.
            if end is not None and end < offset:
                records: Fields = {"rec_base": end, "rec_end": offset, "leo_before": end, "leo": offset}
                response = LoggedStep(
                    sender.id,
                    step.tp,
                    "HandleFetchResponse",
                    {"peer": step.node, "error": 0} | records,
                    step.at,
                    step.time,
                    place,
                )
                response.depends_on += (("answered", request),)
                sender.broker.steps.append(response)
            self._ends[sender.id, run, step.tp] = offset
            self._with_sends.add((sender.id, run, step.tp))
        inferred_send = LoggedStep(sender.id, step.tp, "SendFetch", {"peer": step.node} | fields, step.at, step.time, place)
        inferred_send.provides += (("sent", id(step)),)
        inferred_send.depends_on += (("answered", request),)
        # Requests that do not ask for the partition may stand between two that do: a refused one is asked for again later.
        channel = (sender.id, run, step.tp, step.node)
        if channel in self._handled:
            inferred_send.depends_on += (("answered", self._handled[channel]),)
        self._handled[channel] = id(step)
        step.depends_on += (("sent", id(step)),)
        step.provides += (("answered", id(step)), ("handled", sender.id, run))
        sender.broker.steps.append(inferred_send)

    def _end(self, sender: Node, run: int, tp: str) -> int | None:
        """Return the log end of a replica after the lines and the added steps of process `run`; None if it is unknown."""
        if sender.id not in self._with_ends:
            self._with_ends.add(sender.id)
            for step in sorted(sender.broker.steps, key=lambda step: step.place):
                if isinstance(end := step.fields.get("leo"), int) and step.line_index < AFTER_LINES:
                    self._ends[sender.id, step.run, step.tp] = end
        return self._ends.get((sender.id, run, tp))

    def shorten_what_was_served_on(self, nodes: Iterable[Node]) -> None:
        """Take from the last step of each process the records that added fetches have brought.

        That step is made by process.py of all records that the disk has beyond the lines (SHOWN_BY_DISK).
        """
        for node in nodes if self._with_sends else ():
            for step in node.broker.steps:
                replica, end = (node.id, step.run, step.tp), step.fields.get("rec_end")
                is_from_disk = step.name == "HandleFetchResponse" and step.place[1:3] == (AFTER_LINES, SHOWN_BY_DISK)
                if is_from_disk and replica in self._with_sends and isinstance(end, int):
                    begin = min(self._ends[replica], end)
                    step.fields |= {"rec_base": begin, "leo_before": begin}


def _add_unlogged_fetches(
    leader: Node, sends: Sequence[Send], runs: dict[int, int], responses: Mapping[Hashable, Sequence[LoggedStep]]
) -> None:
    """Add the fetches that a leader handled after the last line of a process, as responses to them show.

    `runs`: by id() of a send, the leader's process that handled it; `responses`: the followers' steps, by response key.
    """
    if not any(run.served_on for run in leader.runs):
        return
    channels: dict[tuple[int, int], list[Send]] = defaultdict(list)
    for send in sends:
        channels[send.node, send.fetcher].append(send)
    handled = {(key, step.tp) for step in leader.broker.steps if step.name == "HandleFetch" for key in step.depends_on}
    for channel in channels.values():
        run: int | None = None
        unlogged: list[Send] = []
        for send in channel:
            if id(send) not in runs:
                unlogged.append(send)
            else:
                # Requests between two that one process handled only lack their lines.
                if runs[id(send)] != run:
                    _add_handled_fetches(leader, run, unlogged, responses, handled)
                # The leader may have logged only some partitions of the last request with a line.
                run, unlogged = runs[id(send)], [send]
        _add_handled_fetches(leader, run, unlogged, responses, handled)


def _add_handled_fetches(
    leader: Node,
    run: int | None,
    sends: Iterable[Send],
    responses: Mapping[Hashable, Sequence[LoggedStep]],
    handled: Collection[tuple[Hashable, str]],
) -> None:
    """Add a HandleFetch for each response to `sends` that a follower took over, if process `run` had stopped logging.

    `responses` are the followers' steps, by response key; `handled` has the key and partition of fetches that have a step.
    """
    if run is None or not leader.runs[run].served_on:
        return
    for send in sends:
        for response in responses.get(("answered", id(send)), ()):
            # A line or a request of the leader shows this one.
            if (("sent", id(send)), response.tp) in handled:
                continue
            place = (run, AFTER_LINES, MUST_HAVE_ANSWERED, send.time)
            step = LoggedStep(leader.id, response.tp, "HandleFetch", {"peer": send.node}, response.at, send.time, place)
            step.depends_on += (("sent", id(send)),)
            step.provides += (("answered", id(send)), ("handled", send.node, send.run))
            leader.broker.steps.append(step)


def _untie_late_responses(node: Node) -> None:
    """Untie each response that the leader `node` gave after it had handled a request of the follower's next process.

    The end of a process depends on the responses to it: the next process could begin only after this one, and its request,
    which was handled before, only after that (rule 5).
    """
    # By partition and follower, the latest process of which a request was handled.
    latest_run: dict[tuple[str, object], int] = {}
    fetch_steps = [step for step in node.broker.steps if step.name in ("HandleFetch", "AnswerFetch") and step.provides]
    # If every follower had one process only, no response is to a process that has ended.
    processes = {process for step in fetch_steps for process in _processes_tied_to(step)}
    if len(processes) == len({node_id for node_id, _ in processes}):
        return
    for step in sorted(fetch_steps, key=lambda step: step.place):
        runs = [run for _, run in _processes_tied_to(step)]
        replica = (step.tp, step.fields.get("peer"))
        if step.name == "HandleFetch" and runs:
            latest_run[replica] = max(latest_run.get(replica, 0), *runs)
        elif step.name == "AnswerFetch" and runs and runs[0] < latest_run.get(replica, 0):
            step.provides = tuple(key for key in step.provides if not (isinstance(key, tuple) and key[0] == "handled"))


def _processes_tied_to(step: LoggedStep) -> Iterator[tuple[int, int]]:
    """Yield the processes, as (node, run), whose end depends on a step: of its keys ("handled", node, run)."""
    for key in step.provides:
        if isinstance(key, tuple) and key[0] == "handled":
            yield key[1], key[2]


# Fetches that a leader had counted when it was killed, before their threads wrote a line: another thread's raise may rest on
# one. Each is the last that its follower sent, and got no response.


def add_fetches_in_flight(nodes: Sequence[Node]) -> None:
    """Add the counted fetches on which the last raise of a process that was killed rests, if followers had sent them."""
    by_id = {node.id: node for node in nodes if not node.silenced}
    # By leader and process.
    ends: dict[tuple[int, int], _LastSteps] = {}
    for send in [send for node in nodes for send in node.broker.sends if send.lost and send.leader in by_id]:
        leader = by_id[send.leader]
        run = next((run for run in leader.runs[:-1] if run.first <= send.time <= run.last), None)
        # Only a process that was killed ends between a raise and the line of the fetch that allowed it.
        if run is None or run.closed or run.served_on:
            continue
        key = leader.id, run.number
        last_steps = ends[key] if key in ends else ends.setdefault(key, _LastSteps(leader, run.number))
        for tp, partition in send.requested.items():
            counted, last_raise = last_steps.counted.get((tp, send.node)), last_steps.raised.get(tp)
            # Without a raise nothing rests on the fetch; without an earlier count it is unknown what it added.
            if counted is None or last_raise is None:
                continue
            recorded_leo, hw = counted.fields["remote_leo"], last_raise.fields["hw"]
            # The raise needs a log end that no line records, and this follower had asked from there on.
            if isinstance(recorded_leo, int) and isinstance(hw, int) and recorded_leo < hw <= partition.offset:
                fields = recorded_fields(send.node, partition.offset)
                step = LoggedStep(leader.id, tp, "HandleFetch", fields, last_raise.at, last_raise.time, last_raise.place)
                # It is unknown which thread it was, which wrote nothing after it: it was done with its last step at the
                # earliest when the first of the handlers was.
                step.begins, step.ends = min(last_raise.begins, *last_steps.handler_ends.values()), last_raise.ends
                # Just before the raise.
                step.key = beside(last_raise.key, -1)
                step.follows, step.topic_id = (counted,), counted.topic_id
                leader.broker.steps.append(step)


class _LastSteps:
    """The last counts and raises of a process that was killed, and when the last step of each of its handlers ended."""

    def __init__(self, leader: Node, run: int) -> None:
        """Collect the steps of process `run` of a leader."""
        self.counted: dict[tuple[str, object], LoggedStep] = {}
        """By partition and follower, the last fetch that was counted."""
        self.raised: dict[str, LoggedStep] = {}
        """By partition, the last raise of the high watermark."""
        self.handler_ends: dict[str, int] = {}
        """By request handler, the end of its last step."""
        for step in sorted((own for own in leader.broker.steps if own.run == run), key=lambda step: step.key):
            if step.name == "HandleFetch" and "remote_leo" in step.fields:
                self.counted[step.tp, step.fields.get("peer")] = step
            elif step.name == RAISED:
                self.raised[step.tp] = step
            if REQUEST_HANDLER in step.thread:
                self.handler_ends[step.thread] = step.ends


# Proposals of a leader after SIGTERM: in 4.x it goes on serving after its loggers have stopped, and may propose an ISR.
#
# Only the controller reports such a proposal. It is the leader's if it has the epochs and the ISR that the leader
# had when its log ended, or that the controller has registered in that leader epoch since: the leader has learned of them
# without a line, by metadata or the response to a proposal. Any other proposal without a line shows that lines are missing
# (unmatched.py). It was made before any other broker learned of a later partition epoch.


def add_unlogged_proposals(nodes: Sequence[Node]) -> None:
    """Add the proposals that leaders made after their last line, as far as a controller judged them."""
    by_id: dict[object, Node] = {node.id: node for node in nodes if not node.silenced}
    # The keys of proposals that a line, or a step that is added here, makes.
    proposed = {key for node in nodes for step in node.broker.steps if step.name in PROPOSES for key in step.provides}
    judged = [step for node in nodes for step in node.broker.steps if step.name == "AlterPartition"]
    role_changes = _role_changes(nodes) if judged else {}
    registered = {
        (step.tp, step.fields.get("leader"), step.fields.get("leader_epoch"), step.fields.get("partition_epoch")): step
        for node in (nodes if judged else ())
        for step in node.broker.steps
        if step.name == "ChangePartition"
    }
    for step in judged:
        keys = [key for key in step.depends_on if isinstance(key, tuple) and key[0] == "proposal" and key not in proposed]
        leader = by_id.get(step.fields.get("peer"))
        if leader is None:
            continue
        for key in keys:
            based_on = registered.get((step.tp, leader.id, step.fields["leader_epoch"], step.fields["partition_epoch"]))
            of_epoch = role_changes.get((step.tp, step.fields["leader_epoch"]), ())
            # The first process that may have made it.
            steps = next(_inferred_proposals(leader, step, of_epoch, based_on), ())
            if steps:
                proposal = steps[-1]
                if proposal.name == "ExpandIsr":
                    # The second key of a proposal ends with the broker epochs of its members (proposal_keys).
                    epochs = dict(key[5]) if len(key) > 5 else {}
                    proposal.fields |= reported(broker_epoch=epochs.get(proposal.fields["peer"]))
                proposal.provides += (key,)
                leader.broker.steps += steps
                proposed.add(key)


def _role_changes(nodes: Sequence[Node]) -> dict[tuple[str, object], list[LoggedStep]]:
    """Return the steps in which brokers learned of a partition epoch by a role, by partition and leader epoch."""
    steps: dict[tuple[str, object], list[LoggedStep]] = defaultdict(list)
    for step in (step for node in nodes for step in node.broker.steps if step.name in ("BecomeLeader", "BecomeFollower")):
        steps[step.tp, step.fields.get("leader_epoch")].append(step)
    return steps


_ENDS_PROPOSAL = frozenset({"BecomeLeader", "BecomeFollower", "HandleAlterPartitionResponse"})
"""Steps after which a leader has no pending proposal."""


def _inferred_proposals(
    leader: Node, judged: LoggedStep, role_changes: Iterable[LoggedStep], based_on: LoggedStep | None
) -> Iterator[tuple[LoggedStep, ...]]:
    """Yield, for each process of a leader that may have made a proposal after its last line, the steps of that.

    The last step is the proposal, ExpandIsr or ShrinkIsr; before it may stand a BecomeLeader, of metadata that it must have
    read first. `judged` is the controller's AlterPartition, `based_on` the registration that it wants to change;
    `role_changes` are those of all brokers in its leader epoch.
    """
    # When other brokers learned of a later partition epoch: the proposal was made before.
    later = [
        step.time for step in role_changes if step.node != leader.id and _partition_epoch(step) > _partition_epoch(judged)
    ]
    for run in leader.runs:
        # A log that was closed has everything; a crash ends the process with its log.
        if not run.served_on:
            continue
        own = [step for step in leader.broker.steps if step.run == run.number and step.tp == judged.tp]
        leader_state, pending = _state_at_the_end(own)
        place = (run.number, AFTER_LINES, MUST_HAVE_ANSWERED, min([run.last, *later]))
        learns: list[LoggedStep] = []
        # A leader that became a follower since has no known epoch.
        if based_on is not None and leader_state.get("leader_epoch") == based_on.fields["leader_epoch"]:
            epoch = leader_state.get("partition_epoch")
            # With a proposal in flight it reads the metadata that it knows once more, and may propose again (finding F3).
            if isinstance(epoch, int) and epoch < _partition_epoch(based_on) + pending and "isr" in based_on.fields:
                leader_state = {name: based_on.fields[name] for name in ("leader_epoch", "partition_epoch", "isr")}
                learns = [LoggedStep(leader.id, judged.tp, "BecomeLeader", dict(leader_state), based_on.at, run.last, place)]
                learns[0].depends_on += (("metadata", judged.tp, _partition_epoch(based_on)),)
        old, new = leader_state.get("isr"), judged.fields.get("isr")
        same_epochs = all(
            leader_state.get(name, ()) == judged.fields.get(name) for name in ("leader_epoch", "partition_epoch")
        )
        if not same_epochs or not isinstance(old, tuple) or not isinstance(new, tuple):
            continue
        fields: Fields = {"isr": new, "partition_epoch": leader_state["partition_epoch"]}
        # A leader proposes one new member, or fewer members; anything else it cannot have made (unmatched.py).
        joins, leaves = set(new) - set(old), set(old) - set(new)
        if len(joins) == 1 and not leaves:
            fields = {"peer": joins.pop(), **fields}
            yield *learns, LoggedStep(leader.id, judged.tp, "ExpandIsr", fields, judged.at, run.last, place)
        elif leaves and not joins:
            yield *learns, LoggedStep(leader.id, judged.tp, "ShrinkIsr", fields, judged.at, run.last, place)


def _state_at_the_end(own: Iterable[LoggedStep]) -> tuple[Fields, bool]:
    """Return the leader_epoch, partition_epoch and isr of a leader after its steps `own`, and if a proposal was pending.

    The fields of a follower are none.
    """
    state: Fields = {}
    pending = False
    for step in sorted(own, key=lambda logged: logged.place):
        is_accepted = step.name == "HandleAlterPartitionResponse" and step.fields.get("error") == NONE
        if step.name == "BecomeLeader" or is_accepted:
            state |= {name: step.fields[name] for name in ("leader_epoch", "partition_epoch", "isr") if name in step.fields}
        elif step.name == "BecomeFollower":
            state = {}
        pending = step.name in PROPOSES or (pending and step.name not in _ENDS_PROPOSAL)
    return state, pending


def _partition_epoch(step: LoggedStep) -> int:
    """Return the partition epoch that a step names, -1 if it names none."""
    epoch = step.fields.get("partition_epoch")
    return epoch if isinstance(epoch, int) else -1
