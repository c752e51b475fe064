"""Makes the logs of a cluster as 4.2 writes them: three brokers that each lead a third of the partitions, and a controller.

Rules of this file

1. A broker has one fetcher per leader (num.replica.fetchers=1), so each fetch is about every partition of its session. That
   decides how many events a megabyte holds, and no copying of a small capture shows it.
2. It is a simulation by time: fetches, waits in the purgatory, appends and acknowledgements, each with its lines, in the
   order in which Kafka does them. The words of the lines are those of the captures. Nothing is wrong with the cluster.
3. The same seed gives the same bytes.
"""

import heapq
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

BEGIN = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
BROKERS, CONTROLLER = (1, 2, 3), 100
TOPICS = ("orders", "payments", "clicks", "audit-log")
MAX_WAIT, RECORD = 500_000, 140
"""Microseconds that a fetch without records waits (replica.fetch.wait.max.ms), and bytes of a record."""

_LOG, _PARTITION, _FETCHER = "org.apache.kafka.storage.internals.log.UnifiedLog", "kafka.cluster.Partition", "kafka.server"
_STATE, _CACHE = "state.change.logger", "org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache"
_REPLICATION, _CLUSTER = (f"org.apache.kafka.controller.{name}ControlManager" for name in ("Replication", "Cluster"))
_TAIL = (
    '"throttleTimeMs":0,"responseQueueTimeMs":0.05,"securityProtocol":"PLAINTEXT",'
    '"principal":"User:ANONYMOUS","listener":"PLAINTEXT","clientInformation":'
    '{"softwareName":"unknown","softwareVersion":"unknown"}} (kafka.request.logger)'
)


@dataclass
class Replica:
    """A partition at its leader: log ends by broker, and the high watermark of each."""

    tp: str
    topic: str
    number: int
    leader: int
    ends: dict[int, int] = field(default_factory=dict)
    marks: dict[int, int] = field(default_factory=lambda: dict.fromkeys(BROKERS, 0))
    known: dict[int, int] = field(default_factory=lambda: dict.fromkeys(BROKERS, -1))
    """Log ends as the leader has recorded them."""
    unacknowledged: list[tuple[int, int]] = field(default_factory=list)
    """(time, offset) of the records that no acknowledgement has left for."""


@dataclass
class Session:
    """What one fetcher and its leader know of their fetch session."""

    follower: int
    leader: int
    replicas: list[Replica]
    id: int
    epoch: int = 0
    changed: list[Replica] = field(default_factory=list)
    reported: dict[str, int] = field(default_factory=dict)
    """The high watermarks that the last responses had."""
    waiting: int = -1
    """The session epoch of the request that waits for records."""
    dequeued: int = 0
    named: list[tuple[Replica, int]] = field(default_factory=list)
    """What the last request named, and at which offset."""


class Cluster:
    """The cluster and the clock. Every broker logs to `server.log` and `request.log` of its folder."""

    def __init__(self, folder: Path, partitions: int, seed: int) -> None:
        self.random = random.Random(f"{seed}/{partitions}")
        self.now = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._numbered = 0
        self._files = {}
        for node in (*BROKERS, CONTROLLER):
            (folder / f"n{node}").mkdir(parents=True, exist_ok=True)
            for name in ("server", "request"):
                self._files[node, name] = (folder / f"n{node}" / f"{name}.log").open("w", encoding="utf-8")
        self.written = 0
        self.topic_ids = {topic: f"{topic[:9]:_<9}Fetched{seed % 1_000_000:06}"[:22] for topic in TOPICS}
        numbers = [(topic, number) for topic in TOPICS for number in range(partitions // len(TOPICS))]
        self.replicas = [
            Replica(f"{topic}-{number}", topic, number, BROKERS[at % len(BROKERS)])
            for at, (topic, number) in enumerate(numbers)
        ]
        self.sessions = [
            Session(
                follower, leader, [one for one in self.replicas if one.leader == leader], self.random.randrange(1, 2**31 - 1)
            )
            for leader in BROKERS
            for follower in BROKERS
            if follower != leader
        ]

    def at(self, delay: int, action: Callable[[], None]) -> None:
        """Do something so many microseconds from now."""
        self._numbered += 1
        heapq.heappush(self._due, (self.now + delay, self._numbered, action))

    def run(self, size: int, rate: float) -> None:
        """Run until so many bytes are written, with so many records a second."""
        self._start()
        for session in self.sessions:
            self.at(self.random.randrange(2_000, 40_000), lambda one=session: self._send(one))
        self._produce_at(100_000, rate)
        while self.written < size:
            time, _, action = heapq.heappop(self._due)
            self.now = max(self.now, time)
            action()
        # The host ends all of them at once: nobody is left to elect another leader.
        for node in (*BROKERS, CONTROLLER):
            self._line(
                node,
                "INFO",
                "SIGTERM handler",
                "Terminating process due to signal SIGTERM",
                "org.apache.kafka.common.utils.LoggingSignalHandler",
            )
        for file in self._files.values():
            file.close()

    # lines

    def _line(self, node: int, level: str, thread: str, message: str, logger: str) -> None:
        self.now += self.random.randrange(4, 16)
        self._write(node, "server", f"{level} [{thread}] {message} ({logger})")

    def _write(self, node: int, name: str, text: str) -> None:
        stamp = (BEGIN + timedelta(microseconds=self.now)).strftime("%Y-%m-%d %H:%M:%S,%f")
        self.written += self._files[node, name].write(f"[{stamp}] {text}\n")

    def _request(
        self, node: int, header: dict[str, object], request: object, response: object, times: Sequence[int]
    ) -> None:
        """Write a finished request; `times` are when it was taken up, handled and completed."""
        self.now += self.random.randrange(60, 140)
        dequeued, handled, completed = times
        parts = {
            "totalTimeMs": self.now - dequeued + 50,
            "requestQueueTimeMs": 50,
            "localTimeMs": handled - dequeued,
            "remoteTimeMs": completed - handled,
            "sendTimeMs": self.now - completed - 50,
        }
        document = {"isForwarded": False, "requestHeader": header, "request": request, "response": response}
        connection = f"127.0.0.1:9092-127.0.0.1:{50000 + hash_of(str(header['clientId']))}-0-0"
        took = ",".join(f'"{name}":{micros / 1000}' for name, micros in parts.items())
        text = json.dumps(document, separators=(",", ":"))[:-1]
        self._write(
            node,
            "request",
            f"DEBUG [data-plane-kafka-network-thread-{node}-PLAINTEXT-PLAINTEXT-0] Completed request:"
            f'{text},"connection":"{connection}",{took},{_TAIL}',
        )

    def _handler(self) -> str:
        return f"data-plane-kafka-request-handler-{self.random.randrange(8)}"

    # the start

    def _start(self) -> None:
        for node in (CONTROLLER, *BROKERS):
            name = "org.apache.kafka.common.utils"
            self._line(node, "INFO", "main", "Registered signal handlers for TERM, INT, HUP", f"{name}.LoggingSignalHandler")
            self._line(node, "INFO", "main", "Kafka version: 4.2.0", f"{name}.AppInfoParser")
        events = f"quorum-controller-{CONTROLLER}-event-handler"
        quorum = f"[QuorumController id={CONTROLLER}]"
        for node in BROKERS:
            self._line(
                CONTROLLER,
                "INFO",
                events,
                f"{quorum} Replayed initial RegisterBrokerRecord for broker {node}: RegisterBrokerRecord(brokerId={node}, "
                f"isMigratingZkBroker=false, incarnationId=x_OuWEfRSpi2fv0iejxMt{node}, brokerEpoch={10 + node}, "
                "endPoints=[], features=[], rack=null, fenced=true, inControlledShutdown=false, logDirs=[])",
                _CLUSTER,
            )
            self._line(
                CONTROLLER,
                "INFO",
                events,
                f"{quorum} Replayed BrokerRegistrationChangeRecord modifying the registration for broker {node}: "
                f"BrokerRegistrationChangeRecord(brokerId={node}, brokerEpoch={10 + node}, fenced=-1, "
                "inControlledShutdown=0, logDirs=[])",
                _CLUSTER,
            )
        for one in self.replicas:
            order = [one.leader, *(node for node in BROKERS if node != one.leader)]
            self._line(
                CONTROLLER,
                "INFO",
                events,
                f"{quorum} Replayed PartitionRecord for new partition {one.tp} with topic ID {self.topic_ids[one.topic]} "
                f"and PartitionRegistration(replicas={order}, directories=[], isr={order}, removingReplicas=[], "
                f"addingReplicas=[], elr=[], lastKnownElr=[], leader={one.leader}, leaderRecoveryState=RECOVERED, "
                "leaderEpoch=0, partitionEpoch=0).",
                _REPLICATION,
            )
            one.ends = dict.fromkeys(BROKERS, 0)
        for one in self.replicas:
            for node in BROKERS:
                self._create(one, node)

    def _create(self, one: Replica, node: int) -> None:
        thread, tp, topic_id = f"kafka-{node}-metadata-loader-event-handler", one.tp, self.topic_ids[one.topic]
        log, state = f"[UnifiedLog partition={tp}, dir=/var/lib/kafka/n{node}]", f"[Broker id={node}]"
        partition = f"[Partition {tp} broker={node}]"
        role = "starts at leader epoch 0 from offset 0 with partition epoch 0"
        before = "Previous leader None and previous leader epoch was -1."
        self._line(node, "INFO", thread, f"{state} Creating new partition {tp} with topic id {topic_id}.", _STATE)
        self._line(
            node,
            "INFO",
            thread,
            f"Created log for partition {tp} in /var/lib/kafka/n{node}/{tp} with properties {{min.insync.replicas=2}}",
            "kafka.log.LogManager",
        )
        self._line(node, "TRACE", thread, f"{log} Setting high watermark (offset=0, segment=[0:0])", _LOG)
        loaded = f"{partition} Log loaded for partition {tp} with initial high watermark 0"
        self._line(node, "INFO", thread, loaded, _PARTITION)
        if node == one.leader:
            members = ",".join(map(str, (node, *(other for other in BROKERS if other != node))))
            self._line(
                node,
                "INFO",
                thread,
                f"{state} Leader {tp} with topic id Some({topic_id}) {role}, high watermark 0, ISR [{members}], adding "
                f"replicas [] and removing replicas [] . {before}",
                _STATE,
            )
            one.known[node] = 0
            self._entry(one, node, thread)
            self._kept(one, thread)
        else:
            self._line(
                node,
                "INFO",
                thread,
                f"{state} Follower {tp} {role} and high watermark 0. Current leader is {one.leader}. {before}",
                _STATE,
            )

    # what a leader does

    def _entry(self, one: Replica, node: int, thread: str) -> None:
        entry = "EpochEntry[epoch=0, startOffset=0]. Cache now contains 1 entries."
        self._line(node, "DEBUG", thread, f"[LeaderEpochCache {one.tp}] Appended new epoch entry {entry}", _CACHE)

    def _kept(self, one: Replica, thread: str) -> None:
        members = [*(node for node in BROKERS if node != one.leader), one.leader]
        known = ", ".join(f"replica {node}: {_at(one.known[node])}" for node in members)
        text = f"Skipping update high watermark since new hw {_at(min(one.known.values()))} is not larger than old value."
        partition = f"[Partition {one.tp} broker={one.leader}]"
        self._line(one.leader, "TRACE", thread, f"{partition} {text} All current LEOs are Set({known})", _PARTITION)

    def _look(self, one: Replica, thread: str) -> None:
        """Raise the high watermark to the lowest log end, or say that it stays."""
        lowest, mark, node = min(one.known.values()), one.marks[one.leader], one.leader
        if lowest <= mark:
            self._kept(one, thread)
            return
        log = f"[UnifiedLog partition={one.tp}, dir=/var/lib/kafka/n{node}]"
        self._line(node, "TRACE", thread, f"{log} Setting high watermark {_at(lowest)}", _LOG)
        text = f"High watermark updated from {_at(mark)} to {_at(lowest)}"
        self._line(node, "DEBUG", thread, f"[Partition {one.tp} broker={node}] {text}", _PARTITION)
        one.marks[node] = lowest
        while one.unacknowledged and one.unacknowledged[0][1] < lowest:
            since, offset = one.unacknowledged.pop(0)
            self.at(10, partial(self._acknowledge, one, since, offset))

    def _produce_at(self, delay: int, rate: float) -> None:
        self.at(delay, lambda: self._produce(rate))

    def _produce(self, rate: float) -> None:
        one, thread, since = self.random.choice(self.replicas), self._handler(), self.now
        base = one.ends[one.leader]
        self._append(one, one.leader, base, base + 1, thread)
        one.known[one.leader] = base + 1
        one.unacknowledged.append((since, base))
        self._look(one, thread)
        for session in self.sessions:
            if session.leader == one.leader and session.waiting >= 0:
                self._respond(session, session.waiting)
        self._produce_at(int(self.random.expovariate(rate) * 1_000_000), rate)

    def _append(self, one: Replica, node: int, base: int, end: int, thread: str) -> None:
        size = RECORD * (end - base)
        self._line(
            node,
            "TRACE",
            thread,
            f"[UnifiedLog partition={one.tp}, dir=/var/lib/kafka/n{node}] Appended message set with last offset: {end - 1}, "
            f"first offset: {base}, next offset: {end}, and messages: MemoryRecords(size={size}, "
            f"buffer=java.nio.HeapByteBuffer[pos=0 lim={size} cap={size + 3}])",
            _LOG,
        )
        one.ends[node] = end

    def _acknowledge(self, one: Replica, since: int, offset: int) -> None:
        header = {
            "requestApiKey": 0,
            "requestApiVersion": 10,
            "correlationId": 1,
            "clientId": f"producer-{one.tp}",
            "requestApiKeyName": "PRODUCE",
        }
        part = {"index": one.number, "errorCode": 0, "baseOffset": offset, "logAppendTimeMs": -1, "logStartOffset": 0}
        request = {
            "transactionalId": None,
            "acks": -1,
            "timeoutMs": 30000,
            "topicData": [{"name": one.topic, "partitionData": [{"index": one.number, "recordsSizeInBytes": RECORD}]}],
        }
        response = {"responses": [{"name": one.topic, "partitionResponses": [part]}], "throttleTimeMs": 0}
        self._request(one.leader, header, request, response, (since, min(since + 200, self.now - 1), self.now))

    def _handle(self, session: Session) -> None:
        """Read what a fetch asks for, count it, and answer, or wait for records."""
        thread, session.dequeued = self._handler(), self.now
        read = [(one, one.ends[session.leader], one.marks[session.leader]) for one in session.replicas]
        for one in session.replicas:
            end = one.ends[session.follower]
            if one.known[session.follower] != end:
                one.known[session.follower] = end
                self._look(one, thread)
            text = f"Recorded replica {session.follower} log end offset (LEO) position {end} and log start offset 0."
            self._line(session.leader, "DEBUG", thread, f"[Partition {one.tp} broker={session.leader}] {text}", _PARTITION)
        # A full fetch, which opens the session, is answered at once, and so is one that finds records.
        if session.epoch == 0 or any(end > one.ends[session.follower] for one, end, _ in read):
            self._respond(session, -1, read)
            return
        session.waiting = epoch = session.epoch
        self.at(MAX_WAIT, lambda: self._respond(session, epoch))

    def _respond(self, session: Session, epoch: int, read: list[tuple[Replica, int, int]] | None = None) -> None:
        """Respond to a fetch: one that waits in session epoch `epoch`, or at once with what was `read`."""
        if read is None and session.waiting != epoch:
            return
        handled = completed = self.now
        if read is None:
            handled = min(session.dequeued + 300, self.now - 1)
            read = [(one, one.ends[session.leader], one.marks[session.leader]) for one in session.replicas]
        session.waiting = -1
        full = session.epoch == 0
        answered = [
            (one, end, mark)
            for one, end, mark in read
            if full or end > one.ends[session.follower] or session.reported.get(one.tp) != mark
        ]
        session.reported |= {one.tp: mark for one, _, mark in answered}
        self.at(80, lambda: self._log_fetch(session, answered, (session.dequeued, handled, completed), full))
        self.at(350, lambda: self._receive(session, answered))

    def _log_fetch(
        self, session: Session, answered: list[tuple[Replica, int, int]], times: tuple[int, int, int], full: bool
    ) -> None:
        header = {
            "requestApiKey": 1,
            "requestApiVersion": 18,
            "correlationId": session.epoch,
            "clientId": f"broker-{session.follower}-fetcher-0",
            "requestApiKeyName": "FETCH",
        }
        asked: dict[str, list[object]] = {}
        for one, offset in session.named:
            asked.setdefault(self.topic_ids[one.topic], []).append(
                {
                    "partition": one.number,
                    "currentLeaderEpoch": 0,
                    "fetchOffset": offset,
                    "lastFetchedEpoch": 0 if offset else -1,
                    "logStartOffset": 0,
                    "partitionMaxBytes": 1048576,
                }
            )
        given: dict[str, list[object]] = {}
        for one, end, mark in answered:
            given.setdefault(self.topic_ids[one.topic], []).append(
                {
                    "partitionIndex": one.number,
                    "errorCode": 0,
                    "highWatermark": mark,
                    "lastStableOffset": mark,
                    "logStartOffset": 0,
                    "abortedTransactions": None,
                    "preferredReadReplica": -1,
                    "recordsSizeInBytes": RECORD * (end - one.ends[session.follower]),
                }
            )
        request = {
            "replicaState": {"replicaId": session.follower, "replicaEpoch": 10 + session.follower},
            "maxWaitMs": 500,
            "minBytes": 1,
            "maxBytes": 10485760,
            "isolationLevel": 0,
            "sessionId": 0 if full else session.id,
            "sessionEpoch": session.epoch,
            "topics": [{"topicId": topic, "partitions": parts} for topic, parts in asked.items()],
            "forgottenTopicsData": [],
            "rackId": "",
        }
        response = {
            "throttleTimeMs": 0,
            "errorCode": 0,
            "sessionId": session.id,
            "responses": [{"topicId": topic, "partitions": parts} for topic, parts in given.items()],
        }
        self._request(session.leader, header, request, response, times)

    # what a follower does

    def _send(self, session: Session) -> None:
        full = session.epoch == 0
        session.named = [(one, one.ends[session.follower]) for one in (session.replicas if full else session.changed)]
        epochs = [f"Optional{'[0]' if offset else '.empty'}" for _, offset in session.named]
        data = ", ".join(
            f"{one.tp}=PartitionData(topicId={self.topic_ids[one.topic]}, fetchOffset={offset}, logStartOffset=0, "
            f"maxBytes=1048576, currentLeaderEpoch=Optional[0], lastFetchedEpoch={epoch})"
            for (one, offset), epoch in zip(session.named, epochs, strict=True)
        )
        metadata = "sessionId=INVALID, epoch=INITIAL" if full else f"sessionId={session.id}, epoch={session.epoch}"
        self._fetcher(
            session,
            f"Sending fetch request (type=FetchRequest, replicaId={session.follower}, maxWait=500, minBytes=1, "
            f"maxBytes=10485760, fetchData={{{data}}}, isolationLevel=read_uncommitted, removed=, replaced=, "
            f"metadata=({metadata}), rackId=)",
        )
        self.at(self.random.randrange(150, 400), lambda: self._handle(session))

    def _fetcher(self, session: Session, text: str) -> None:
        prefix = f"[ReplicaFetcher replicaId={session.follower}, leaderId={session.leader}, fetcherId=0]"
        thread = f"ReplicaFetcherThread-0-{session.leader}"
        self._line(session.follower, "TRACE", thread, f"{prefix} {text}", f"{_FETCHER}.ReplicaFetcherThread")

    def _receive(self, session: Session, answered: list[tuple[Replica, int, int]]) -> None:
        thread, node, session.changed = f"ReplicaFetcherThread-0-{session.leader}", session.follower, []
        for one, end, mark in answered:
            own, log = one.ends[node], f"[UnifiedLog partition={one.tp}, dir=/var/lib/kafka/n{node}]"
            size = RECORD * (end - own)
            self._fetcher(
                session,
                f"Follower has replica log end offset {own} for partition {one.tp}. Received {size} bytes of messages and "
                f"leader hw {mark}",
            )
            if end > own:
                if own == 0:
                    self._entry(one, node, thread)
                self._append(one, node, own, end, thread)
                session.changed.append(one)
            self._fetcher(
                session,
                f"Follower has replica log end offset {end} after appending {size} bytes of messages for partition {one.tp}",
            )
            self._line(node, "TRACE", thread, f"{log} Setting high watermark {_at(mark)}", _LOG)
            updated = mark != one.marks[node]
            one.marks[node] = mark
            did = f"and updated replica high watermark to {mark}" if updated else "but did not update replica high watermark"
            self._fetcher(session, f"Follower received high watermark {mark} from the leader {did} for partition {one.tp}")
        session.epoch += 1
        self.at(self.random.randrange(50, 200), lambda: self._send(session))


def hash_of(text: str) -> int:
    """Return a port for a client, the same in every process."""
    return sum(map(ord, text)) % 10_000


def _at(offset: int) -> str:
    return f"(offset={offset}, segment=[{0 if offset >= 0 else -1}:{RECORD * offset if offset >= 0 else -1}])"


def make(folder: Path, partitions: int, size: int, seed: int, rate: float) -> None:
    """Write the logs of so many bytes, with so many records a second."""
    Cluster(folder, partitions, seed).run(size, rate)
