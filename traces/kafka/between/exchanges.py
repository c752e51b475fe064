"""Requests become steps: fetches handled and answered, produce acknowledgements, reads, proposals at the controller.

Rules of this file

1. A fetch the leader counted has a `Recorded replica` line already; the request adds what it asked and, if the response left
   at once, what was answered. Which line that is, recorded.py says.
2. A response that left later is a step of its own, AnswerFetch, when it was completed. So is one that left in the handler
   thread but was read after the fetch was counted: it has another high watermark, or records that came after it.
3. A fetch that was refused or found to diverge is not recorded: the request is the only source.
4. Record counts are not in the JSON, only bytes. What the records of a response were, the follower that appended them tells.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

from tidegauge.impl.rules import UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION
from tidegauge.traces.kafka.between.recorded import RecordedLines
from tidegauge.traces.kafka.lines.phrases import Asked
from tidegauge.traces.kafka.lines.requests import Fetch, LoggedRequest, LoggedResponse
from tidegauge.traces.kafka.nodes.steps import Fields, LoggedBroker, LoggedStep, Send, or_null, reported
from tidegauge.traces.kafka.nodes.timeline import Mark, Run, explains

LATEST, EARLIEST = -1, -2
TAKEN = 200_000
"""How long after its line a new leader epoch may be taken (seen: 109 ms, cold); at TRACE a later line tells when."""
LATE = 20_000
"""How much later than its request was finished a line of the request log may be written (a busy network thread)."""


class Exchanges:
    """The requests one node logged, put beside its steps."""

    def __init__(
        self,
        broker: LoggedBroker,
        runs: Sequence[Run],
        sends: Mapping[int, Send],
        taken: Mapping[tuple[Hashable, str], LoggedStep],
        fetches: Sequence[Fetch],
    ) -> None:
        self.broker = broker
        self.taken = taken
        self.runs = runs
        self.sends = sends
        self.unexplained = 0
        self.moved = 0
        self._recorded = RecordedLines(broker.steps, fetches)
        self._appends: dict[tuple[str, object], list[LoggedStep]] = defaultdict(list)
        self._proposals: dict[str, list[LoggedStep]] = defaultdict(list)
        for step in broker.steps:
            if step.name == "AlterPartition":
                self._proposals[step.tp].append(step)
            elif step.name == "LeaderAppend":
                self._appends[step.tp, step.fields["rec_base"]].append(step)

    def run_of(self, time: int) -> Run:
        """The process that was running at `time`."""
        return next((run for run in reversed(self.runs) if run.first <= time), self.runs[0])

    def add(self, time: int, name: str, tp: str, fields: Fields, request: LoggedRequest) -> LoggedStep:
        """A step told by the request log alone."""
        run = self.run_of(request.line.time)
        step = LoggedStep(self.broker.node, tp, name, fields, request.line.at, time, run.place(time))
        self.broker.steps.append(step)
        return step

    # fetches

    def fetch(self, fetch: Fetch) -> None:
        """Every partition of one fetch."""
        for tp, response in fetch.responses.items():
            asked = fetch.asked[tp]
            if fetch.replica < 0:
                self._read(fetch, tp, asked, response)
            else:
                self._handle(fetch, tp, asked, response)

    def _read(self, fetch: Fetch, tp: str, asked: Asked, response: LoggedResponse) -> None:
        committed = fetch.request.body.get("isolationLevel", 0) == 1
        bound = response.stable if committed else response.hw
        if response.error == 0 and bound is not None:
            self.add(fetch.request.completed, "Read", tp, {"bound": bound, "rec_base": asked.offset}, fetch.request)

    def _handle(self, fetch: Fetch, tp: str, asked: Asked, response: LoggedResponse) -> None:
        request = fetch.request
        run = self.run_of(request.line.time)
        refused = request.at_once and (response.error != 0 or response.diverging)
        step = None if refused else self._recorded.find(run, fetch, tp, asked)
        # of a topic that the broker has not heard of yet KafkaApis#handleFetchRequest says so, whatever the others wait for
        unheard_of = step is None and response.error in (UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID)
        together = request.at_once or unheard_of
        if step is None:
            step = self.add(request.handled, "HandleFetch", tp, {"peer": fetch.replica}, request)
            if refused and not unheard_of:
                self._place_refused(run, step, asked, response, request)
        elif request.at_once and response.hw is not None:
            together = self._read_before_counted(run, step, response.hw, request)
        step.since = max(step.since, run.index(request.dequeued - LATE))
        asks = _asks(fetch, asked)
        step.fields.update(asks)
        send = self.sends.get(id(fetch))
        origin = id(send if send is not None else fetch)
        step.awaits.append(("sent", origin))
        answering = step
        responses = _responses(asked, response) | self._records(origin, tp, response)
        if together and run.had(tp, step.place, responses.get("rec_end")):
            step.fields.update(responses)
        else:
            fields = {"peer": fetch.replica} | asks | responses
            answering = self.add(request.completed, "AnswerFetch", tp, fields, request)
            self._place_response(run, answering, step, response, request)
        answering.offers.append(("answered", origin))
        if send is not None:
            step.offers.append(("handled", send.node, send.run))
            answering.offers.append(("handled", send.node, send.run))

    def _records(self, origin: int, tp: str, response: LoggedResponse) -> Fields:
        """The records of a response, as the follower appended them."""
        handled = self.taken.get((("answered", origin), tp))
        if handled is None or response.error != 0 or response.diverging or response.size == 0:
            return {}
        return {
            name: handled.fields[name] for name in ("rec_base", "rec_end", "rec_epoch", "epochs") if name in handled.fields
        }

    def _read_before_counted(self, run: Run, step: LoggedStep, res_hw: int, request: LoggedRequest) -> bool:
        """Whether the response tells the high watermark that held before the fetch counted, as an immediate one does.

        Otherwise the fetch had to wait and what it waited for was there already: DelayedFetch#tryComplete read again in
        the same thread, after the fetch was counted.
        """
        if step.fields.get("hw_before") == res_hw:
            return True
        if step.fields.get("hw") != step.fields.get("hw_before"):
            return False
        place = run.choose(step.tp, (request.dequeued, step.time), step.time, lambda mark: mark.hw == res_hw, latest=True)
        if place is None:
            return False
        self.moved += 1
        step.place = min(place, step.place)
        step.fields.update(hw_before=res_hw, hw=res_hw)
        return True

    def _place_refused(
        self, run: Run, step: LoggedStep, asked: Asked, response: LoggedResponse, request: LoggedRequest
    ) -> None:
        """The response tells what the leader epoch was: an error compares it with the request's, data means equality.

        A partition responses before its log is loaded (as if in epoch -1); its Start comes first all the same.
        """

        def fits(mark: Mark) -> bool:
            return explains(mark, asked.epoch, response.error)

        place = run.choose(step.tp, (request.dequeued, request.handled), request.handled, fits, latest=True)
        if place is None:
            place = run.choose(step.tp, (request.dequeued - TAKEN, request.handled), request.handled, fits, latest=True)
        step.place = max(place or step.place, run.start(step.tp))

    def _place_response(
        self, run: Run, answering: LoggedStep, step: LoggedStep, response: LoggedResponse, request: LoggedRequest
    ) -> None:
        """A late response tells the high watermark when it was read again, and that its records were there."""
        end = answering.fields.get("rec_end")

        def fits(mark: Mark) -> bool:
            there = not isinstance(end, int) or mark.leo is None or mark.leo >= end
            return response.error != 0 or response.hw is None or (mark.hw == response.hw and there)

        place = run.choose(answering.tp, (request.completed, request.line.time), request.completed, fits, latest=False)
        if place is None:
            place = run.choose(answering.tp, (step.time, request.line.time), request.completed, fits, latest=True)
        if place is None:
            self.unexplained += 1
        answering.place = max(place or answering.place, step.place)

    # everything else

    def produce(self, request: LoggedRequest) -> None:
        """One ProduceAck per partition; the records are those of the append that began at the answered offset."""
        acks = int(request.body["acks"])
        for topic in request.response.get("responses", ()):
            for part in topic["partitionResponses"]:
                tp = f"{topic.get('name') or self.broker.topic_ids.get(str(topic.get('topicId')))}-{part['index']}"
                error, base = int(part["errorCode"]), int(part["baseOffset"])
                fields: Fields = {"acks": acks, "error": error}
                if error == 0 and base >= 0:
                    appends = [step for step in self._appends[tp, base] if step.time <= request.line.time]
                    fields |= reported(rec_base=base, rec_end=appends[-1].fields["rec_end"] if appends else None)
                self.add(request.line.time, "ProduceAck", tp, fields, request)

    def offsets_request(self, request: LoggedRequest) -> None:
        """OffsetsForLeaderEpoch of a replica (KIP-101, KIP-279, KIP-320)."""
        peer = int(request.body.get("replicaId", -1))
        asked = {
            f"{topic['topic']}-{part['partition']}": part for topic in request.body["topics"] for part in topic["partitions"]
        }
        for topic in request.response["topics"]:
            for part in topic["partitions"]:
                tp = f"{topic['topic']}-{part['partition']}"
                if peer < 0 or tp not in asked:
                    continue
                fields: Fields = {
                    "peer": peer,
                    "req_epoch": or_null(int(asked[tp].get("currentLeaderEpoch", -1))),
                    "req_last_epoch": or_null(int(asked[tp]["leaderEpoch"])),
                    "error": int(part["errorCode"]),
                    "div_epoch": or_null(int(part.get("leaderEpoch", -1))),
                    "div_end": or_null(int(part["endOffset"])),
                }
                self.add(request.handled, "HandleEpochRequest", tp, fields, request)

    def alter_partition(self, request: LoggedRequest) -> None:
        """A proposal at the controller: accepted ones have a line already."""
        peer = int(request.body["brokerId"])
        responses = {
            (str(topic.get("topicId") or topic.get("topicName")), int(part["partitionIndex"])): int(part["errorCode"])
            for topic in request.response.get("topics", ())
            for part in topic["partitions"]
        }
        for topic in request.body["topics"]:
            topic_id = str(topic.get("topicId") or topic.get("topicName"))
            for part in topic["partitions"]:
                tp = f"{self.broker.topic_ids.get(topic_id, topic_id)}-{part['partitionIndex']}"
                error = responses.get((topic_id, int(part["partitionIndex"])), int(request.response.get("errorCode", 0)))
                isr = tuple(part.get("newIsr") or [int(state["brokerId"]) for state in part.get("newIsrWithEpochs", ())])
                epochs = {"leader_epoch": int(part["leaderEpoch"]), "partition_epoch": int(part["partitionEpoch"])}
                step = self._altered(tp, peer, isr, request) if error == 0 else None
                if step is None:
                    step = self.add(
                        request.handled, "AlterPartition", tp, {"peer": peer, "isr": isr, "error": error}, request
                    )
                step.fields.update(epochs)
                step.awaits.append(("proposal", tp, epochs["leader_epoch"], epochs["partition_epoch"], frozenset(isr)))

    def _altered(self, tp: str, peer: int, isr: Iterable[int], request: LoggedRequest) -> LoggedStep | None:
        """The first line of this proposal that no request has been put beside."""
        members = frozenset(isr)
        for step in self._proposals[tp]:
            reported_isr = step.fields.get("isr")
            if (
                step.fields["peer"] == peer
                and isinstance(reported_isr, tuple)
                and frozenset(reported_isr) == members
                and step.time <= request.line.time
            ):
                self._proposals[tp].remove(step)
                return step
        return None

    def list_offsets(self, request: LoggedRequest) -> list[tuple[int, str, int, int]]:
        """(replica, topic-partition, LATEST or EARLIEST, offset) asked by a fetcher that was out of range."""
        asked = {
            (topic["name"], int(part["partitionIndex"])): int(part["timestamp"])
            for topic in request.body["topics"]
            for part in topic["partitions"]
        }
        replica = int(request.body.get("replicaId", -1))
        return [
            (
                replica,
                f"{topic['name']}-{part['partitionIndex']}",
                asked[topic["name"], int(part["partitionIndex"])],
                int(part["offset"]),
            )
            for topic in request.response["topics"]
            for part in topic["partitions"]
            if replica >= 0 and int(part["errorCode"]) == 0
        ]


def asked_fields(asked: Asked) -> Fields:
    """The req_ fields of one partition of a fetch."""
    return {
        "req_epoch": or_null(asked.epoch),
        "req_offset": asked.offset,
        "req_last_epoch": or_null(asked.last_epoch),
        "req_log_start": asked.log_start,
    }


def _asks(fetch: Fetch, asked: Asked) -> Fields:
    return asked_fields(asked) | reported(req_broker_epoch=fetch.broker_epoch)


def _responses(asked: Asked, response: LoggedResponse) -> Fields:
    fields: Fields = {"error": response.error}
    if response.error != 0:
        return fields
    fields |= reported(res_hw=response.hw, res_log_start=response.log_start)
    if response.diverging:
        fields |= {"div_epoch": or_null(response.div_epoch), "div_end": or_null(response.div_end)}
    elif response.size == 0:
        fields |= {"rec_base": asked.offset, "rec_end": asked.offset}
    return fields
