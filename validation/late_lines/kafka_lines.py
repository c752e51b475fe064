"""The steps of one partition of the reference in the words of Kafka's log lines: those of 4.0, as the captures have them.

Rules of this file

1. `Lines.write` gets a step of a walk; what happened in it is what traces.from_model reports. Each event has its lines, in
   the order in which one thread of Kafka prints them.
2. What the reference has not is kept here: times, fetch sessions, partition epochs, and proposals until their response.
3. kafka.cluster.Partition is at DEBUG: without `Skipping update high watermark`. Topics are one, brokers are `NODES`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from tidegauge.impl.rules import FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, NONE, UNKNOWN_LEADER_EPOCH
from tidegauge.traces.from_model import views
from tidegauge.traces.from_model.behaviour import events_of_step
from tidegauge.traces.from_model.views import Label, View
from tidegauge.traces.schema import Event
from validation.metamorphic.log_files import Files

PROFILE = "fetch-truncation"
NODES, CONTROLLER = (1, 2, 3), views.CONTROLLER

_LOG, _PARTITION, _STATE = "kafka.log.UnifiedLog", "kafka.cluster.Partition", "state.change.logger"
_CACHE, _FETCHER = "org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache", "kafka.server.ReplicaFetcherThread"
_REPLICATION, _BROKERS = (f"org.apache.kafka.controller.{name}ControlManager" for name in ("Replication", "Cluster"))
_EVENTS, _QUORUM = f"quorum-controller-{CONTROLLER}-event-handler", f"[QuorumController id={CONTROLLER}]"
_UTILS = "org.apache.kafka.common.utils"


class Session:
    """The fetch session of a fetcher thread: what the last request had, and the last high watermark that was sent."""

    def __init__(self, leader: int, number: int) -> None:
        self.leader, self.id, self.epoch = leader, number, -1
        self.port = 40000 + number % 20000
        self.asked: tuple[int, ...] = ()
        self.named = False
        self.reported: int | None = None
        self.answered = False
        self.error = NONE


@dataclass
class _Proposal:
    """A proposed ISR: the state that is pending, and (ISR, partition epoch) once the controller has accepted it."""

    text: str
    isr: list[int]
    epoch: int
    accepted: tuple[list[int], int] | None = None


class Lines:
    """The lines of one partition by file, in the order of time; `now` is in microseconds."""

    def __init__(self, random: Random, number: int, view: View) -> None:
        """Write the lines that lead to the first view."""
        self.random, self.number, self.now = random, number, 2000 + number * 150
        self.tp, self.topic, self.topic_id = f"walks-{number}", "walks", "WnT8BA0cSVmm0n3_tu1iwg"
        self.files: Files = {f"n{node}/{name}.log": [] for node in (*NODES, CONTROLLER) for name in ("server", "request")}
        self.node: dict[int | None, int] = {None: -1, **dict(zip(NODES, random.sample(NODES, 3), strict=True))}
        """By the number that a broker has in the reference, from 1."""
        self.sessions: dict[int, Session] = {}
        """By follower. No session: its thread is gone."""
        self._partition_epoch, self._known_epoch = 0, dict.fromkeys(NODES, 0)
        self._roles = dict.fromkeys(NODES, ("None", -1))
        self._proposals: dict[int, _Proposal] = {}
        self._thread, self._correlation = "", 0
        self._create(view)

    def write(self, src: View, label: Label, dst: View) -> None:
        """Write the lines of a step."""
        self._thread = f"data-plane-kafka-request-handler-{8 * self.number + self.random.randrange(8)}"
        if label[0] == "SendFetch":
            self._take_error(label[1], views.broker(src, label[1]))
        for event in events_of_step(src, label, dst, PROFILE):
            if event.event in _WRITERS:
                _WRITERS[event.event](self, event, src, dst)

    # lines

    def _line(self, node: int, level: str, thread: str, message: str, logger: str) -> None:
        self.now += self.random.randrange(4, 16)
        self.files[f"n{node}/server.log"].append(f"{_stamp(self.now)} {level} [{thread}] {message} ({logger})")

    def _log(self, node: int, level: str, thread: str, text: str) -> None:
        self._line(node, level, thread, f"[UnifiedLog partition={self.tp}, dir=/var/lib/kafka/n{node}] {text}", _LOG)

    def _partition(self, node: int, thread: str, text: str, level: str = "DEBUG") -> None:
        self._line(node, level, thread, f"[Partition {self.tp} broker={node}] {text}", _PARTITION)

    def _fetcher(self, follower: int, leader: int, text: str, level: str = "TRACE") -> None:
        prefix = f"[ReplicaFetcher replicaId={follower}, leaderId={leader}, fetcherId={self.number}]"
        self._line(follower, level, f"ReplicaFetcherThread-{self.number}-{leader}", f"{prefix} {text}", _FETCHER)

    def _metadata(self, node: int) -> str:
        return f"kafka-{node}-metadata-loader-event-handler"

    def _request(
        self, node: int, api: tuple[int, int, str], client: str, port: int, request: str, response: str, began: int
    ) -> None:
        self.now += self.random.randrange(60, 140)
        self._correlation += 1
        local = self.now - began - 40
        network = 3 * self.number + port % 3
        self.files[f"n{node}/request.log"].append(
            f"{_stamp(self.now)} DEBUG [data-plane-kafka-network-thread-{node}-PLAINTEXT-PLAINTEXT-{network}] "
            f'Completed request:{{"isForwarded":false,"requestHeader":{{"requestApiKey":{api[0]},'
            f'"requestApiVersion":{api[1]},"correlationId":{self._correlation},"clientId":"{client}","requestApiKeyName":"{api[2]}"}},"request":{request},'
            f'"response":{response},'
            f'"connection":"127.0.0.1:9092-127.0.0.1:{port}-{network}-0","totalTimeMs":{(self.now - began + 50) / 1000},'
            f'"requestQueueTimeMs":0.05,"localTimeMs":{local / 1000},"remoteTimeMs":0.0,"throttleTimeMs":0,'
            '"responseQueueTimeMs":0.01,"sendTimeMs":0.03,"securityProtocol":"PLAINTEXT","principal":"User:ANONYMOUS",'
            '"listener":"PLAINTEXT","clientInformation":{"softwareName":"unknown","softwareVersion":"unknown"}} '
            "(kafka.request.logger)"
        )

    # the start

    def _create(self, view: View) -> None:
        self.replicas = [self.node[index] for index in NODES]
        self._line(
            CONTROLLER,
            "INFO",
            _EVENTS,
            f"{_QUORUM} Replayed PartitionRecord for new partition {self.tp} with topic ID {self.topic_id} and "
            f"{self._registration(self.replicas, self.replicas[0], 0)}.",
            _REPLICATION,
        )
        for index, broker in enumerate(views.brokers(view), 1):
            node = self.node[index]
            thread = self._metadata(node)
            self._line(
                node,
                "INFO",
                thread,
                f"[Broker id={node}] Creating new partition {self.tp} with topic id {self.topic_id}.",
                _STATE,
            )
            self._line(
                node,
                "INFO",
                thread,
                f"Created log for partition {self.tp} in /var/lib/kafka/n{node}/{self.tp} with properties "
                f"{{min.insync.replicas=1}}",
                "kafka.log.LogManager",
            )
            self._log(node, "TRACE", thread, f"Setting high watermark {_at(0)}")
            self._partition(node, thread, f"Log loaded for partition {self.tp} with initial high watermark 0", "INFO")
            if broker.role == views.LEADER:
                self._leads(node, 0, 0, 0, self.replicas)
                self._entries(node, thread, [], [(0, 0)])
            else:
                self._follows(node, 0, 0, 0, self.replicas[0])

    def _registration(self, isr: list[int], leader: int, epoch: int) -> str:
        return (
            f"PartitionRegistration(replicas={self.replicas}, directories=[], isr={isr}, removingReplicas=[], "
            f"addingReplicas=[], elr=[], lastKnownElr=[], leader={leader}, leaderRecoveryState=RECOVERED, "
            f"leaderEpoch={epoch}, partitionEpoch={self._partition_epoch})"
        )

    def _previous(self, node: int, leader: int, epoch: int) -> str:
        who, before = self._roles[node]
        self._roles[node] = (f"Some({leader})", epoch)
        return f"Previous leader {who} and previous leader epoch was {before}."

    def _leads(self, node: int, epoch: int, end: int, mark: int, isr: list[int]) -> None:
        members = ",".join(map(str, isr))
        self._line(
            node,
            "INFO",
            self._metadata(node),
            f"[Broker id={node}] Leader {self.tp} with topic id Some({self.topic_id}) starts at leader epoch {epoch} "
            f"from offset {end} with partition epoch {self._partition_epoch}, high watermark {mark}, ISR [{members}], "
            f"adding replicas [] and removing replicas [] . {self._previous(node, node, epoch)}",
            _STATE,
        )

    def _follows(self, node: int, epoch: int, end: int, mark: int, leader: int) -> None:
        self._line(
            node,
            "INFO",
            self._metadata(node),
            f"[Broker id={node}] Follower {self.tp} starts at leader epoch {epoch} from offset {end} with partition epoch "
            f"{self._partition_epoch} and high watermark {mark}. Current leader is {leader}. "
            f"{self._previous(node, leader, epoch)}",
            _STATE,
        )

    # what a leader does

    def _entries(self, node: int, thread: str, before: list[tuple[int, int]], after: list[tuple[int, int]]) -> None:
        new = [entry for entry in after if entry not in before]
        for number, (epoch, start) in enumerate(new, len(after) - len(new) + 1):
            entry = f"EpochEntry(epoch={epoch}, startOffset={start}). Cache now contains {number} entries."
            self._line(node, "DEBUG", thread, f"[LeaderEpochCache {self.tp}] Appended new epoch entry {entry}", _CACHE)

    def _raise(self, node: int, thread: str, before: int, after: int) -> None:
        if after > before:
            self._log(node, "TRACE", thread, f"Setting high watermark {_at(after)}")
            self._partition(node, thread, f"High watermark updated from {_at(before)} to {_at(after)}")

    def _appended(self, node: int, thread: str, base: int, end: int) -> None:
        size = 100 * (end - base)
        self._log(
            node,
            "TRACE",
            thread,
            f"Appended message set with last offset: {end - 1}, first offset: {base}, next offset: {end}, and messages: "
            f"MemoryRecords(size={size}, buffer=java.nio.HeapByteBuffer[pos=0 lim={size} cap={size + 3}])",
        )

    def append(self, event: Event, _src: View, _dst: View) -> None:
        """Write a produce with acks=1."""
        node, fields, began = self.node[event.node], event.fields, self.now
        base, end = fields["rec_base"], fields["rec_end"]
        self._appended(node, self._thread, base, end)
        self._raise(node, self._thread, fields["hw_before"], fields["hw"])
        self._request(
            node,
            (0, 10, "PRODUCE"),
            f"producer-{self.tp}",
            30000 + 3 * self.number,
            f'{{"transactionalId":null,"acks":1,"timeoutMs":30000,"topicData":[{{"name":"{self.topic}","partitionData":'
            f'[{{"index":{self.number},"recordsSizeInBytes":100}}]}}]}}',
            f'{{"responses":[{{"name":"{self.topic}","partitionResponses":[{{"index":{self.number},"errorCode":0,"baseOffset":{base},'
            '"logAppendTimeMs":-1,"logStartOffset":0,"recordErrors":[],"errorMessage":null}]}],"throttleTimeMs":0}',
            began,
        )

    def handle_fetch(self, event: Event, _src: View, _dst: View) -> None:
        """Write the count of a fetch, what it raises, and its response."""
        node, fields, began = self.node[event.node], event.fields, self.now
        follower = self.node[fields["peer"]]
        session, error, diverging = self.sessions[fields["peer"]], fields["error"], fields.get("div_epoch")
        assert session.leader == event.node
        session.error = error
        mark = -1 if error else fields["hw"] if diverging is not None else fields["res_hw"]
        records = fields.get("rec_end", 0) - fields.get("rec_base", 0)
        if not error and diverging is None:
            self._raise(node, self._thread, fields["hw_before"], fields["hw"])
            count = (
                f"Recorded replica {follower} log end offset (LEO) position {fields['remote_leo']} and log start offset 0."
            )
            self._partition(node, self._thread, count)
        session.answered = bool(error or diverging is not None or records or session.reported != mark)
        session.reported = mark
        part = (
            f'{{"partitionIndex":{self.number},"errorCode":{error},"highWatermark":{mark},"lastStableOffset":{mark},'
            f'"logStartOffset":{-1 if error else 0},'
            + ("" if diverging is None else f'"divergingEpoch":{{"epoch":{diverging},"endOffset":{fields["div_end"]}}},')
            + f'"abortedTransactions":null,"preferredReadReplica":-1,"recordsSizeInBytes":{100 * records}}}'
        )
        epoch, offset, last = session.asked
        asked = (
            f'{{"partition":{self.number},"currentLeaderEpoch":{epoch},"fetchOffset":{offset},"lastFetchedEpoch":{last},'
            '"logStartOffset":0,"partitionMaxBytes":1048576}'
        )
        self._request(
            node,
            (1, 17, "FETCH"),
            f"broker-{follower}-fetcher-{self.number}",
            session.port,
            f'{{"replicaState":{{"replicaId":{follower},"replicaEpoch":{10 + follower}}},"maxWaitMs":0,"minBytes":1,'
            f'"maxBytes":10485760,"isolationLevel":0,"sessionId":{session.id if session.epoch else 0},'
            f'"sessionEpoch":{session.epoch},"topics":['
            + (f'{{"topicId":"{self.topic_id}","partitions":[{asked}]}}' if session.named else "")
            + '],"forgottenTopicsData":[],"rackId":""}',
            f'{{"throttleTimeMs":0,"errorCode":0,"sessionId":{session.id},"responses":['
            + (f'{{"topicId":"{self.topic_id}","partitions":[{part}]}}' if session.answered else "")
            + "]}",
            began,
        )

    def become_leader(self, event: Event, src: View, dst: View) -> None:
        """Write a new leader, or what it learns of its ISR."""
        index, fields = event.node - 1, event.fields
        node = self.node[event.node]
        thread, isr = self._metadata(node), self._members(fields["isr"])
        epoch, raised = fields["leader_epoch"], (fields["hw_before"], fields["hw"])
        if "epoch_start" in fields:
            self.sessions.pop(event.node, None)
            self._leads(node, epoch, fields["leo"], fields["hw_before"], isr)
            before, after = (_cache(views.broker(view, index)) for view in (src, dst))
            self._entries(node, thread, before, after)
            self._raise(node, thread, *raised)
            self._respond_to_proposal(event.node, isr)
        elif self._accepted(event.node) == (isr, self._partition_epoch) and self.random.random() < 0.5:
            self._respond_to_proposal(event.node, isr, raised)
        else:
            members = ",".join(map(str, isr))
            self._line(
                node,
                "INFO",
                thread,
                f"[Broker id={node}] Skipped the become-leader state change for {self.tp} with topic id "
                f"Some({self.topic_id}), "
                f"partition registration {self._registration(isr, node, epoch)} and isNew=false since it is already the "
                f"leader "
                f"with leader epoch {epoch}. Current high watermark {fields['hw_before']}, ISR [{members}], adding "
                f"replicas [] and "
                "removing replicas [].",
                _STATE,
            )
            self._raise(node, thread, *raised)
            self._respond_to_proposal(event.node, isr)
        self._known_epoch[event.node] = self._partition_epoch

    def _members(self, isr: tuple[int, ...]) -> list[int]:
        return sorted(self.node[member] for member in isr)

    # proposals

    def _accepted(self, index: int) -> tuple[list[int], int] | None:
        return self._proposals[index].accepted if index in self._proposals else None

    def _propose(self, index: int, thread: str, kind: str, members: tuple[int, ...], src: View) -> None:
        node, before = self.node[index], views.broker(src, index - 1)
        isr = self._members(members)
        states = ", ".join(f"BrokerState(brokerId={one}, brokerEpoch={10 + one})" for one in isr)
        committed = ", ".join(map(str, self._members(views.members(before.isr))))
        text = (
            f"{kind}, sentLeaderAndIsr=LeaderAndIsr(leader={node}, leaderEpoch={before.epoch}, "
            f"isrWithBrokerEpoch=List({states}), "
            f"leaderRecoveryState=RECOVERED, partitionEpoch={self._known_epoch[index]}), leaderRecoveryState=RECOVERED, "
            f"lastCommittedState=CommittedPartitionState(isr=Set({committed}), leaderRecoveryState=RECOVERED))"
        )
        self._partition(node, thread, f"Submitting ISR state change {text}")
        self._proposals[index] = _Proposal(text, isr, before.epoch)

    def expand_isr(self, event: Event, src: View, _dst: View) -> None:
        """Write the proposal of a larger ISR."""
        peer = self.node[event.fields["peer"]]
        self._propose(event.node, self._thread, f"PendingExpandIsr(newInSyncReplicaId={peer}", event.fields["isr"], src)

    def shrink_isr(self, event: Event, src: View, _dst: View) -> None:
        """Write the proposal of a smaller ISR."""
        node, fields, thread = self.node[event.node], event.fields, f"kafka-scheduler-{self.random.randrange(10)}"
        before = views.broker(src, event.node - 1)
        was, isr = self._members(views.members(before.isr)), self._members(fields["isr"])
        out = [index for index in NODES if self.node[index] in was and self.node[index] not in isr]
        lagging = " ".join(
            f"(brokerId: {self.node[index]}, endOffset: {before.remote[index - 1]}, lastCaughtUpTimeMs: 0)" for index in out
        )
        self._partition(
            node,
            thread,
            f"Shrinking ISR from {','.join(map(str, was))} to {','.join(map(str, isr))}. Leader: (highWatermark: "
            f"{fields['hw']}, endOffset: {fields['leo']}). Out of sync replicas: {lagging}.",
            "INFO",
        )
        gone = ", ".join(str(self.node[index]) for index in out)
        self._propose(event.node, thread, f"PendingShrinkIsr(outOfSyncReplicaIds=Set({gone})", fields["isr"], src)

    def _respond_to_proposal(self, index: int, isr: list[int], raised: tuple[int, int] | None = None) -> None:
        """Write the response to a proposal: with `raised` before the metadata, otherwise behind it."""
        proposal = self._proposals.pop(index, None)
        if proposal is None:
            return
        node = self.node[index]
        thread = f"broker-{node}-to-controller-alter-partition-channel-manager"
        if proposal.accepted is None:
            error = FENCED_LEADER_EPOCH if self._roles[node][1] > proposal.epoch else INVALID_UPDATE_VERSION
            data = f"errorCode={error}, leaderId=0, leaderEpoch=0, isr=[], leaderRecoveryState=0, partitionEpoch=0"
        else:
            accepted, epoch = proposal.accepted
            data = (
                f"errorCode=0, leaderId={node}, leaderEpoch={proposal.epoch}, isr={accepted}, leaderRecoveryState=0, "
                f"partitionEpoch={epoch}"
            )
        self._line(
            node,
            "DEBUG",
            thread,
            f"Controller successfully handled AlterPartition request for {self.tp}: "
            f"PartitionData(partitionIndex={self.number}, {data})",
            "kafka.server.DefaultAlterPartitionManager",
        )
        if raised is not None:
            members = ",".join(map(str, isr))
            self._partition(node, thread, f"ISR updated to {members} and version updated to {self._partition_epoch}", "INFO")
            self._raise(node, thread, *raised)
            return
        committed = f"CommittedPartitionState(isr=Set({', '.join(map(str, isr))}), leaderRecoveryState=RECOVERED)"
        self._partition(
            node,
            thread,
            f"Ignoring failed ISR update to {proposal.text} since we have already updated state to {committed}",
        )

    # what a follower does

    def send_fetch(self, event: Event, _src: View, _dst: View) -> None:
        """Write a request; the first one of a thread opens a session."""
        node, fields = self.node[event.node], event.fields
        leader = fields["peer"]
        session = self.sessions.get(event.node)
        if session is None or session.leader != leader:
            session = self.sessions[event.node] = Session(leader, self.random.randrange(1, 1 << 31))
            session.port = 40000 + 3 * (self.number * 3 % 6000) + event.node % 3
        session.epoch += 1
        epoch, offset, last = asked = (fields["req_epoch"], fields["req_offset"], fields["req_last_epoch"])
        session.named, session.asked = session.epoch == 0 or asked != session.asked, asked
        self.now += self.random.randrange(50, 200)
        named = (
            f"{self.tp}=PartitionData(topicId={self.topic_id}, fetchOffset={offset}, logStartOffset=0, maxBytes=1048576, "
            f"currentLeaderEpoch=Optional[{epoch}], lastFetchedEpoch=Optional{f'[{last}]' if last >= 0 else '.empty'})"
        )
        metadata = f"sessionId={session.id}, epoch={session.epoch}" if session.epoch else "sessionId=INVALID, epoch=INITIAL"
        self._fetcher(
            node,
            self.node[leader],
            f"Sending fetch request (type=FetchRequest, replicaId={node}, maxWait=0, minBytes=1, maxBytes=10485760, "
            f"fetchData={{{named if session.named else ''}}}, isolationLevel=read_uncommitted, removed=, replaced=, "
            f"metadata=({metadata}), rackId=)",
        )

    def _take_error(self, index: int, before: views.BrokerView) -> None:
        """Write that a response was an error; of a partition that has changed meanwhile no line tells."""
        session = self.sessions.get(index + 1)
        if session is None or not session.error or (before.leader + 1, before.epoch) != (session.leader, session.asked[0]):
            return
        node, epoch = self.node[index + 1], session.asked[0]
        said = (
            f"Remote broker has a smaller leader epoch for partition {self.tp} than this replica's current leader epoch "
            f"of {epoch}."
            if session.error == UNKNOWN_LEADER_EPOCH
            else f"Remote broker is not the leader for partition {self.tp}, which could indicate that leadership is "
            f"being moved"
        )
        self._fetcher(node, self.node[session.leader], said, "DEBUG")

    def handle_response(self, event: Event, src: View, dst: View) -> None:
        """Write what a follower takes from a response that names the partition."""
        node, fields, leader = self.node[event.node], event.fields, self.node[event.fields["peer"]]
        if not self.sessions[event.node].answered:
            return
        thread = f"ReplicaFetcherThread-{self.number}-{leader}"
        own, end, mark = fields["leo_before"], fields["leo"], fields["res_hw"]
        size = 100 * (end - own)
        self._fetcher(
            node,
            leader,
            f"Follower has replica log end offset {own} for partition {self.tp}. Received {size} bytes of messages and "
            f"leader hw {mark}",
        )
        if end > own:
            before, after = (_cache(views.broker(view, event.node - 1)) for view in (src, dst))
            self._entries(node, thread, before, after)
            self._appended(node, thread, own, end)
        self._fetcher(
            node,
            leader,
            f"Follower has replica log end offset {end} after appending {size} bytes of messages for partition {self.tp}",
        )
        self._log(node, "TRACE", thread, f"Setting high watermark {_at(fields['hw'])}")
        did = (
            f"and updated replica high watermark to {fields['hw']}"
            if fields["hw"] != fields["hw_before"]
            else "but did not update replica high watermark"
        )
        self._fetcher(node, leader, f"Follower received high watermark {mark} from the leader {did} for partition {self.tp}")

    def truncate(self, event: Event, src: View, dst: View) -> None:
        """Write the truncation by a diverging response."""
        node, fields, leader = self.node[event.node], event.fields, self.node[event.fields["peer"]]
        thread, target = f"ReplicaFetcherThread-{self.number}-{leader}", fields["target"]
        state = f"TruncationState(offset={target}, completed={str(fields['completed']).lower()})"
        why = (
            f"EpochEndOffset(errorCode=0, partition={self.number}, leaderEpoch={fields['div_epoch']}, "
            f"endOffset={fields['div_end']})"
        )
        self._fetcher(
            node, leader, f"Truncating partition {self.tp} with {state} due to leader epoch and offset {why}", "INFO"
        )
        end, mark = fields["leo_before"], fields["hw_before"]
        if target >= end:
            self._log(
                node, "INFO", thread, f"Truncating to {target} has no effect as the largest offset in the log is {end - 1}"
            )
        else:
            self._log(node, "INFO", thread, f"Truncating to offset {target}")
        before, after = (_cache(views.broker(view, event.node - 1)) for view in (src, dst))
        gone = [entry for entry in before if entry not in after]
        if gone:
            entries = ", ".join(f"EpochEntry(epoch={epoch}, startOffset={start})" for epoch, start in gone)
            text = (
                f"Cleared entries [{entries}] from epoch cache after truncating to end offset {target}, leaving "
                f"{len(after)} entries in the cache."
            )
            self._line(node, "DEBUG", thread, f"[LeaderEpochCache {self.tp}] {text}", _CACHE)
        if target < end and mark >= target:
            if mark > target:
                self._log(node, "WARN", thread, f"Non-monotonic update of high watermark from {_at(mark)} to {_at(target)}")
            self._log(node, "TRACE", thread, f"Setting high watermark {_at(target)}")

    def become_follower(self, event: Event, _src: View, dst: View) -> None:
        """Write a new follower."""
        node, fields = self.node[event.node], event.fields
        leader = fields["leader"]
        session = self.sessions.get(event.node)
        if session is not None and session.leader != leader:
            del self.sessions[event.node]
        self._follows(node, fields["leader_epoch"], fields["leo"], fields["hw"], self.node[leader])
        isr = self._members(views.members(views.broker(dst, event.node - 1).isr))
        self._respond_to_proposal(event.node, isr)

    # the controller

    def change_partition(self, _event: Event, src: View, dst: View) -> None:
        """Write the change of a registration; that a broker lives is no part of it."""
        before, after = views.controller(src), views.controller(dst)
        changes = []
        was, isr = (self._members(views.members(one.isr)) for one in (before, after))
        if was != isr:
            changes.append(f"isr: {was} -> {isr}")
        if before.leader != after.leader:
            changes.append(f"leader: {self.node[before.leader + 1]} -> {self.node[after.leader + 1]}")
        if before.epoch != after.epoch:
            changes.append(f"leaderEpoch: {before.epoch} -> {after.epoch}")
        if not changes:
            return
        for index, proposal in self._proposals.items():
            epochs = {before.epoch, after.epoch, proposal.epoch}
            if proposal.isr == isr != was and proposal.accepted is None and len(epochs) == 1:
                proposal.accepted = (isr, self._partition_epoch + 1)
                altered = f"{_QUORUM} Node {self.node[index]} has altered ISR for {self.tp} to {isr}."
                self._line(CONTROLLER, "DEBUG", _EVENTS, altered, _REPLICATION)
        changes.append(f"partitionEpoch: {self._partition_epoch} -> {self._partition_epoch + 1}")
        self._partition_epoch += 1
        text = f"{_QUORUM} partition change for {self.tp} with topic ID {self.topic_id}: {', '.join(changes)}"
        self._line(CONTROLLER, "DEBUG", _EVENTS, text, _REPLICATION)


_WRITERS: Mapping[str, Callable[[Lines, Event, View, View], None]] = {
    "LeaderAppend": Lines.append,
    "HandleFetch": Lines.handle_fetch,
    "ExpandIsr": Lines.expand_isr,
    "ShrinkIsr": Lines.shrink_isr,
    "BecomeLeader": Lines.become_leader,
    "BecomeFollower": Lines.become_follower,
    "SendFetch": Lines.send_fetch,
    "HandleFetchResponse": Lines.handle_response,
    "HandleDivergingResponse": Lines.truncate,
    "ChangePartition": Lines.change_partition,
}


def _cache(broker: views.BrokerView) -> list[tuple[int, int]]:
    return list(views.epoch_cache(broker.log, broker.mark))


def _at(offset: int) -> str:
    return f"(offset={offset}, segment=[0:{100 * offset}])"


def _stamp(micros: int) -> str:
    seconds, rest = divmod(micros, 1_000_000)
    return f"[2026-11-21 08:00:{seconds:02d},{rest:06d}]"


def lines_of_no_partition(end: int, expiries: Sequence[tuple[int, int]]) -> Files:
    """Return the lines of processes and sessions."""
    files: Files = {}
    for node in (*NODES, CONTROLLER):
        begin = [
            (10, "main", "Registered signal handlers for TERM, INT, HUP", f"{_UTILS}.LoggingSignalHandler"),
            (20, "main", "Kafka version: 4.0.0", f"{_UTILS}.AppInfoParser"),
        ]
        last = (
            end + 900_000,
            "SIGTERM handler",
            "Terminating process due to signal SIGTERM",
            f"{_UTILS}.LoggingSignalHandler",
        )
        sessions = []
        if node == CONTROLLER:
            for broker in NODES:
                record = (
                    f"RegisterBrokerRecord(brokerId={broker}, isMigratingZkBroker=false, incarnationId=x_OuWEfRSpi2fv0iejxMt"
                    f"{broker}, brokerEpoch={10 + broker}, endPoints=[], features=[], rack=null, fenced=true, "
                    "inControlledShutdown=false, logDirs=[])"
                )
                registered = f"{_QUORUM} Replayed initial RegisterBrokerRecord for broker {broker}: {record}"
                sessions.append((1000 + broker, _EVENTS, registered, _BROKERS))
                sessions.append((1010 + broker, _EVENTS, _session(broker, -1), _BROKERS))
            for time, broker in expiries:
                sessions.append((time + 900, _EVENTS, _session(broker, 1), _BROKERS))
                sessions.append((time + 1900, _EVENTS, _session(broker, -1), _BROKERS))
        files[f"n{node}/server.log"] = [
            f"{_stamp(time)} INFO [{thread}] {message} ({logger})"
            for time, thread, message, logger in (*begin, *sessions, last)
        ]
        files[f"n{node}/request.log"] = []
    return files


def _session(broker: int, fenced: int) -> str:
    return (
        f"{_QUORUM} Replayed BrokerRegistrationChangeRecord modifying the registration for broker {broker}: "
        f"BrokerRegistrationChangeRecord(brokerId={broker}, brokerEpoch={10 + broker}, fenced={fenced}, "
        "inControlledShutdown=0, logDirs=[])"
    )
