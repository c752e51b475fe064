"""Turn requests of the request log into steps: fetches handled and answered, acknowledgements, reads, ISR proposals.

In: the requests of one node (request_log.py: times in microseconds, bodies as Kafka's JSON), and the steps that its lines
have become. Out: more steps in `broker.steps`, and more fields in those that a request belongs to. A request is *dequeued*
when a handler thread takes it up, *handled* when that is done with it, *completed* when its response has left; it is
answered *at once* if it did not wait for records in between. A *send* is the line in which a follower sent a fetch.

How steps are ordered (LoggedStep; correlation/order.py sorts those of a node, merge.py those of several). A step happened
after `begins` and by `ends`; its `key` (time, line index, order at that line) is where its stamp puts it if nothing else
does. It comes after the steps of its node that it `follows`, and after every step of any node that `provides` a key that it
`depends_on`. One that `joins` another becomes part of the event of that if it is found to come first.

Rules of this file

1. A fetch that the leader counted has a `Recorded replica` line already; the request adds what it asked for and, if the
   response was sent at once, the response. match.py finds the line.
2. A response to a fetch that was counted is a step of its own, AnswerFetch. One that the handler thread sent itself becomes
   part of the event of its fetch if it was read before that was counted (order.py).
3. A fetch that diverges, or is refused as it is read, is not recorded: the request is the only source.
4. The JSON has the bytes of the records, not their offsets: those are taken from the follower that appended them.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tidegauge.impl.errors import NOT_CONTROLLER
from tidegauge.impl.rules import UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION
from tidegauge.traces.kafka_logs.correlation.match import RecordedLines
from tidegauge.traces.kafka_logs.nodes.logged_broker import (
    LATE_MICROSECONDS,
    Fields,
    LoggedBroker,
    LoggedStep,
    Place,
    Send,
    beside,
    or_null,
    proposal_keys,
    recorded_fields,
    reported,
    request_fields,
)
from tidegauge.traces.kafka_logs.nodes.process import END, ProcessRun, run_at
from tidegauge.traces.kafka_logs.parsing.parsed_line import PartitionRequest
from tidegauge.traces.kafka_logs.parsing.request_log import LoggedFetch, LoggedRequest, LoggedResponse

LATEST, EARLIEST = -1, -2


class _Ties(NamedTuple):
    """The keys that tie the steps of a fetch to those of its sender (logged_broker.py, rule 3)."""

    sent: tuple[Hashable, ...]
    answered: tuple[Hashable, ...]
    handled: tuple[Hashable, ...]


def _ties(fetch: LoggedFetch, send: Send | None) -> _Ties:
    """Return the keys of a fetch; `send` is the line that sent it, None if there is none."""
    # The follower's steps have the id of the send; without one no step of it has the key yet (unlogged.py may add one).
    origin = id(fetch if send is None else send)
    handled = () if send is None else (("handled", send.node, send.run),)
    return _Ties((("sent", origin),), (("answered", origin),), handled)


class _RequestPlace(NamedTuple):
    """Where the steps of `request` go that happened by `time`: their place, the latest time they may have, and the line."""

    request: LoggedRequest
    time: int
    place: Place
    ends: int
    at: str


class OffsetForTimestamp(NamedTuple):
    """An offset in a ListOffsets response; `timestamp` is what was asked for, LATEST or EARLIEST."""

    replica: int
    tp: str
    timestamp: int
    offset: int


class Exchanges:
    """Puts the requests of one node beside its steps: a method per kind of request.

    `sends` has, by id() of a fetch, the line that sent it. `response_steps` are the steps of followers that handled a
    response, by its key ("answered", ..) and partition.
    """

    def __init__(
        self,
        broker: LoggedBroker,
        runs: Sequence[ProcessRun],
        sends: Mapping[int, Send],
        response_steps: Mapping[tuple[Hashable, str], LoggedStep],
    ) -> None:
        """Sort the steps of a node by what a request looks for: recorded fetches, appends, proposals."""
        self.broker = broker
        self.response_steps = response_steps
        self.runs = runs
        self.sends = sends
        self._recorded = RecordedLines(broker.steps)
        self._appends: dict[tuple[str, object], list[LoggedStep]] = defaultdict(list)
        """By partition and first offset, the appends of this node as a leader, in the order of its lines."""
        self._proposals: dict[str, list[LoggedStep]] = defaultdict(list)
        """By partition, the AlterPartition steps of the controller's lines that no request was matched with yet."""
        self._last_fetch: dict[tuple[int, int, str], tuple[tuple[LoggedStep, ...], int]] = {}
        """By replica, fetcher and partition, the steps of its last fetch, and when that was completed."""
        self._last_place: _RequestPlace | None = None
        """Where `add` put its last step."""
        for step in broker.steps:
            if step.name == "AlterPartition":
                self._proposals[step.tp].append(step)
            elif step.name == "LeaderAppend":
                self._appends[step.tp, step.fields["rec_base"]].append(step)

    def add(self, time: int, name: str, tp: str, fields: Fields, request: LoggedRequest, topic_id: str = "") -> LoggedStep:
        """Add a step that only the request log shows; it happened by `time`, and after the request was taken up."""
        # The partitions of a request are at one place: it is looked for once.
        where = self._last_place
        if where is None or where.request is not request or where.time != time:
            run = run_at(self.runs, request.line.time)
            self._last_place = where = _RequestPlace(request, time, run.place(time), time + run.slack, request.line.at)
        step = LoggedStep(self.broker.node, tp, name, fields, where.at, time, where.place)
        # END: behind all lines of its time. `begins` is exclusive.
        step.begins, step.ends, step.key = request.since - 1, where.ends, (time, END, 0)
        step.topic_id = topic_id
        self.broker.steps.append(step)
        return step

    # fetches

    def fetch(self, fetch: LoggedFetch) -> None:
        """Add the steps of each partition of a fetch."""
        run, ties = run_at(self.runs, fetch.request.line.time), _ties(fetch, self.sends.get(id(fetch)))
        for tp, response in fetch.responses.items():
            # Consumers fetch as replica -1.
            if fetch.replica < 0:
                self._add_read(fetch, tp, response)
            else:
                self._add_follower_fetch(fetch, tp, response, run, ties)

    def _add_read(self, fetch: LoggedFetch, tp: str, response: LoggedResponse) -> None:
        """Add a Read: the end up to which a consumer may read (`bound`), from its fetch offset on (`rec_base`)."""
        # read_committed ends at the last stable offset, read_uncommitted at the high watermark.
        committed = fetch.request.body.get("isolationLevel", 0) == 1
        bound = response.stable if committed else response.hw
        # An error shows no bound.
        if response.error == 0 and bound is not None:
            fields: Fields = {"bound": bound, "rec_base": fetch.requested[tp].offset}
            read = self.add(fetch.request.completed, "Read", tp, fields, fetch.request, fetch.topic_ids.get(tp, ""))
            # The response has it even if the bound is the last stable offset: order.py compares it with the replica's.
            read.shown_hw = response.hw

    def _add_follower_fetch(
        self, fetch: LoggedFetch, tp: str, response: LoggedResponse, run: ProcessRun, ties: _Ties
    ) -> None:
        """Add the steps of one partition of a follower's fetch: HandleFetch, and AnswerFetch for its response.

        `run` is the leader's process. HandleFetch is the step of the `Recorded replica` line, if the fetch has one. If
        it has none and was refused as it was handled, HandleFetch has the response, too.
        """
        refused_at_once = fetch.request.at_once and (response.error != 0 or response.diverging)
        recorded = self._recorded_step(fetch, tp, response, run, refused_at_once=refused_at_once)
        handling = self._add_unrecorded(fetch, tp) if recorded is None else recorded
        handling.depends_on += ties.sent
        # An unknown topic is refused as the request is handled (KafkaApis#handleFetchRequest), even while the response as a
        # whole waits for other partitions.
        unknown_topic = response.error in (UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID)
        if recorded is None and (refused_at_once or unknown_topic):
            handling.fields = handling.fields | _response_fields(fetch.requested[tp], response)
            answering = handling
        else:
            answering = self._add_response(fetch, tp, response, handling, ties)
        self._follow_last_fetch(fetch, tp, handling, answering)
        # The sender's process ends after its requests were handled and answered (process.py).
        handling.provides += ties.handled
        answering.provides += ties.answered + ties.handled

    def _recorded_step(
        self, fetch: LoggedFetch, tp: str, response: LoggedResponse, run: ProcessRun, *, refused_at_once: bool
    ) -> LoggedStep | None:
        """Return the HandleFetch of the `Recorded replica` line of a fetch, with what was asked; None if it has no line.

        `refused_at_once`: the handler's thread sent an error or a diverging epoch.
        """
        request, partition = fetch.request, fetch.requested[tp]
        # A fetch that diverges, or is refused as it is read, is not recorded (Partition#fetchRecords). One that was recorded
        # may be refused all the same: DelayedFetch#tryComplete finds a replica that has gone, in the same thread. If the
        # request before it is missing (not `whole`), that one's line may still be waiting at the same offset: it would be
        # taken for the line of this one, which most likely has none.
        if refused_at_once and (response.error == 0 or not fetch.whole):
            return None
        step = self._recorded.find(run, fetch, tp, partition, refused=refused_at_once)
        if step is not None:
            # The request has the peer and the offset of the line, and more.
            step.fields = _fields_of_request(fetch.replica, fetch.broker_epoch, partition, recorded=True)
            # The fetch was counted no earlier than its request was taken up. A line has whole milliseconds (3.x) and may
            # seem to end before that: `begins` stays below `ends`.
            step.begins = max(step.begins, min(request.since, step.ends) - 1)
        return step

    def _add_unrecorded(self, fetch: LoggedFetch, tp: str) -> LoggedStep:
        """Add the HandleFetch of a fetch that no `Recorded replica` line shows, with what was asked."""
        fields = _fields_of_request(fetch.replica, fetch.broker_epoch, fetch.requested[tp], recorded=False)
        return self.add(fetch.request.handled, "HandleFetch", tp, fields, fetch.request, fetch.topic_ids.get(tp, ""))

    def _add_response(
        self, fetch: LoggedFetch, tp: str, response: LoggedResponse, handling: LoggedStep, ties: _Ties
    ) -> LoggedStep:
        """Add the AnswerFetch of a fetch whose HandleFetch is `handling`, and return it.

        It follows that, unless the handler's thread sent it: then order.py finds which of the two comes first.
        """
        request = fetch.request
        fields = _fields_of_response(fetch.replica, fetch.broker_epoch, fetch.requested[tp], response)
        if response.size and response.error == 0 and not response.diverging:
            records = self._records(ties.answered[0], tp)
            fields = fields | records if records else fields
        answering = self.add(request.completed, "AnswerFetch", tp, fields, request, fetch.topic_ids.get(tp, ""))
        if request.at_once and response.error == 0:
            # Immediate response:  read -> count the fetch -> respond, with the high watermark from before.
            # DelayedFetch:        read -> count the fetch -> tryComplete reads again, in the same thread -> respond.
            # The lines do not tell which of the two it was: order.py finds on which side of the count the read stands.
            handling.response, answering.joins, answering.key = answering, handling, beside(handling.key, -1)
            # Its stamp is now that of the fetch's line, which may be later than the response: it must not end before that.
            answering.ends = max(answering.ends, handling.key[0])
        else:
            answering.follows += (handling,)
        return answering

    def _records(self, key: Hashable, tp: str) -> Fields:
        """Return the fields of a response's records as the follower's step has them, which appended them (rule 4).

        `key` is the response's ("answered", ..); empty if no line of the follower shows them.
        """
        appended = self.response_steps.get((key, tp))
        if appended is None:
            return {}
        return {
            name: appended.fields[name] for name in ("rec_base", "rec_end", "rec_epoch", "epochs") if name in appended.fields
        }

    def _follow_last_fetch(self, fetch: LoggedFetch, tp: str, handling: LoggedStep, answering: LoggedStep) -> None:
        """Let the steps of a fetch follow those of the fetcher's last one: it sends the next when it has a response.

        `answering` is `handling` itself if one step has the request and the response.
        """
        steps = (handling,) if answering is handling else (handling, answering)
        fetcher = (fetch.replica, fetch.fetcher, tp)
        before, completed = self._last_fetch.get(fetcher, ((), 0))
        # A fetcher that has given a request up (its connection timed out) sends the next before that is handled.
        if completed <= fetch.request.dequeued:
            for step in steps:
                step.follows += before
        self._last_fetch[fetcher] = steps, fetch.request.completed

    # everything else

    def produce(self, request: LoggedRequest) -> None:
        """Add a ProduceAck per partition; its records are those of the append that began at the response's base offset."""
        acks = int(request.body["acks"])
        for topic in request.response.get("responses", ()):
            for part in topic["partitionResponses"]:
                tp = f"{topic.get('name') or self.broker.topic_ids.get(str(topic.get('topicId')))}-{part['index']}"
                error, base = int(part["errorCode"]), int(part["baseOffset"])
                fields: Fields = {"acks": acks, "error": error}
                if error == 0 and base >= 0:
                    appends = [step for step in self._appends[tp, base] if step.time <= request.line.time]
                    # The response has only the base offset: the append at that offset has the end.
                    fields |= reported(rec_base=base, rec_end=appends[-1].fields["rec_end"] if appends else None)
                    # A batch that was sent again is found in the log (idempotent producers): then no append is of this
                    # request, and an earlier one at its offset may be another batch, which is gone.
                    if appends and appends[-1].time >= request.dequeued - LATE_MICROSECONDS:
                        fields |= reported(rec_epoch=appends[-1].fields.get("rec_epoch"))
                self.add(request.completed, "ProduceAck", tp, fields, request, str(topic.get("topicId") or ""))

    def offsets_request(self, request: LoggedRequest) -> None:
        """Add the OffsetsForLeaderEpoch requests of replicas (KIP-101, KIP-279, KIP-320); consumers send them, too."""
        peer = int(request.body.get("replicaId", -1))
        partitions = {
            f"{topic['topic']}-{part['partition']}": part for topic in request.body["topics"] for part in topic["partitions"]
        }
        for topic in request.response["topics"]:
            for part in topic["partitions"]:
                tp = f"{topic['topic']}-{part['partition']}"
                # Consumers validate their positions with it (KIP-320): no replica truncates.
                if peer < 0 or tp not in partitions:
                    continue
                fields: Fields = {
                    "peer": peer,
                    "req_epoch": or_null(int(partitions[tp].get("currentLeaderEpoch", -1))),
                    "req_last_epoch": or_null(int(partitions[tp]["leaderEpoch"])),
                    "error": int(part["errorCode"]),
                    "div_epoch": or_null(int(part.get("leaderEpoch", -1))),
                    "div_end": or_null(int(part["endOffset"])),
                }
                self.add(request.handled, "HandleEpochRequest", tp, fields, request)

    def alter_partition(self, request: LoggedRequest) -> None:
        """Add the ISR proposals of an AlterPartition request, which the controller judged.

        One that it accepted has a line, and so a step, already: the request adds fields to that.
        """
        peer = int(request.body["brokerId"])
        # Versions 0 and 1 name topics (`topicName`), since 2 by id (KIP-841).
        responses = {
            (str(topic.get("topicId") or topic.get("topicName")), int(part["partitionIndex"])): part
            for topic in request.response.get("topics", ())
            for part in topic["partitions"]
        }
        for topic in request.body["topics"]:
            topic_id = str(topic.get("topicId") or topic.get("topicName"))
            for part in topic["partitions"]:
                tp = f"{self.broker.topic_ids.get(topic_id, topic_id)}-{part['partitionIndex']}"
                response = responses.get((topic_id, int(part["partitionIndex"])), request.response)
                error = int(response.get("errorCode", 0))
                # A controller that is not active judges nothing, and may not have replayed yet what the leader acts on.
                if error == NOT_CONTROLLER:
                    continue
                # Up to version 2 `newIsr` lists broker ids; since 3 `newIsrWithEpochs` has a broker epoch each (KIP-903),
                # -1 where it is unknown.
                members = part.get("newIsrWithEpochs") or [{"brokerId": broker} for broker in part.get("newIsr", ())]
                broker_epochs = {int(member["brokerId"]): int(member.get("brokerEpoch", -1)) for member in members}
                isr = tuple(broker_epochs)
                epochs = {"leader_epoch": int(part["leaderEpoch"]), "partition_epoch": int(part["partitionEpoch"])}
                step = self._accepted_proposal(tp, peer, response, isr, request) if error == 0 else None
                if step is None:
                    step = self.add(
                        request.handled, "AlterPartition", tp, {"peer": peer, "isr": isr, "error": error}, request
                    )
                    if error == 0:
                        self._place_before_change(step, response.get("partitionEpoch"))
                step.fields.update(epochs)
                named_epochs = {broker: epoch for broker, epoch in broker_epochs.items() if epoch >= 0}
                # The last key is the one with broker epochs, if there are any: the leader's step provides both.
                keys = proposal_keys(tp, epochs["leader_epoch"], epochs["partition_epoch"], isr, named_epochs)
                step.depends_on += keys[-1:]

    def _place_before_change(self, step: LoggedStep, partition_epoch: object) -> None:
        """Put an accepted proposal without a line of its own before the change to `partition_epoch` that it made.

        The change gets its `peer`: whose proposal it was.
        """
        for change in self.broker.steps:
            if (
                change.tp == step.tp
                and change.name == "ChangePartition"
                and change.fields.get("partition_epoch") == partition_epoch
            ):
                # -1: before the steps of that line, which have 0 there (LoggedStep.place).
                step.place = (change.run, change.line_index, -1, change.place[3])
                change.fields["peer"] = step.fields["peer"]

    def _accepted_proposal(
        self, tp: str, peer: int, response: Mapping[str, Any], proposed: Iterable[int], request: LoggedRequest
    ) -> LoggedStep | None:
        """Return the step of the controller's line that accepts this proposal of `peer`; None if there is none.

        It is the first that no request was matched with: it is matched now, and gets the proposed ISR. Its line has the ISR
        that became of the proposal: without the replicas that a reassignment removes if that ends here.
        """
        fitting_isrs = frozenset(proposed), frozenset(map(int, response.get("isr", ())))
        # The controller acts before it responds, and the request log is written after the response.
        before = [step for step in self._proposals[tp] if step.fields["peer"] == peer and step.time <= request.line.time]
        of_epoch = (step for step in before if ("altered", tp, response.get("partitionEpoch")) in step.provides)
        of_isr = (step for step in before if _isr_of(step) in fitting_isrs)
        step = next(of_epoch, None) or next(of_isr, None)
        if step is not None:
            self._proposals[tp].remove(step)
            step.fields["isr"] = tuple(proposed)
        return step

    def list_offsets(self, request: LoggedRequest) -> list[OffsetForTimestamp]:
        """Return the offsets in a ListOffsets response to a replica, which asks for LATEST or EARLIEST; no consumer's."""
        timestamps = {
            (topic["name"], int(part["partitionIndex"])): int(part["timestamp"])
            for topic in request.body["topics"]
            for part in topic["partitions"]
        }
        replica = int(request.body.get("replicaId", -1))
        return [
            OffsetForTimestamp(
                replica,
                f"{topic['name']}-{part['partitionIndex']}",
                timestamps[topic["name"], int(part["partitionIndex"])],
                int(part["offset"]),
            )
            for topic in request.response["topics"]
            for part in topic["partitions"]
            if replica >= 0 and int(part["errorCode"]) == 0
        ]


def _isr_of(step: LoggedStep) -> frozenset[int] | None:
    """Return the ISR that a step names, None if it names none."""
    isr = step.fields.get("isr")
    return frozenset(isr) if isinstance(isr, tuple) else None


# Requests ask for the same again and again: what is equal is one dict, which nobody changes.
@lru_cache(maxsize=1 << 14)
def _fields_of_request(replica: int, broker_epoch: int | None, partition: PartitionRequest, recorded: bool) -> Fields:
    """Return the fields of one partition of a fetch; to be read only.

    `recorded`: a line says that the leader counted it, so its offset is the log end that the leader has recorded.
    """
    fields = {"peer": replica} if not recorded else recorded_fields(replica, partition.offset)
    fields = fields | request_fields(partition)
    return fields if broker_epoch is None else {**fields, "req_broker_epoch": broker_epoch}


@lru_cache(maxsize=1 << 14)
def _fields_of_response(
    replica: int, broker_epoch: int | None, partition: PartitionRequest, response: LoggedResponse
) -> Fields:
    """Return the fields of an AnswerFetch: those of its request and of its response; to be read only."""
    request = _fields_of_request(replica, broker_epoch, partition, recorded=False)
    return request | _response_fields(partition, response)


def _response_fields(partition: PartitionRequest, response: LoggedResponse) -> Fields:
    """Return the fields of a response: an error, a diverging epoch, or up to where the log goes.

    The JSON has the bytes of records and not their offsets: only an empty response shows that there are none (rule 4).
    """
    fields: Fields = {"error": response.error}
    if response.error != 0:
        return fields
    if response.hw is not None:
        fields["res_hw"] = response.hw
    if response.log_start is not None:
        fields["res_log_start"] = response.log_start
    if response.diverging:
        fields |= {"div_epoch": or_null(response.div_epoch), "div_end": or_null(response.div_end)}
    elif response.size == 0:
        fields |= {"rec_base": partition.offset, "rec_end": partition.offset}
    return fields
