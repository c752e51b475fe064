"""The state of one broker while its lines are read, and the steps that they become, before nodes are merged.

The handlers of leader.py, follower.py and process.py change it line by line. Times are in microseconds of the node's clock.
A *run* is a process of the broker, numbered from 0; a *tick* is the resolution of its times less one: a line with time t was
written at t + tick at the latest. A leader *counts* a fetch when it records its fetch offset as the follower's log end.

Rules of this file

1. A LoggedStep is an event in the making: `fields` grows while more lines of the same thread add to it. Fetches that
   are alike share theirs, from line to column: those are replaced, never changed.
2. `place` orders the steps of one node: (process run, index of the line, 0 for a line of the log and 1 for a request put
   after it, time). Places of different nodes cannot be compared. `begins` and `ends` bound when the step happened, `key` is
   where its stamp puts it: correlation/order.py finds the order, and sets `place`.
3. Steps of different nodes are tied by keys: a step that depends on a key comes after every step that provides it.
   ("sent", request) from SendFetch to HandleFetch, ("answered", request) from there to the step that handles the response,
   ("metadata", partition, partition epoch) from ChangePartition to who acts on it, ("proposal", ..) from ExpandIsr or
   ShrinkIsr to AlterPartition, ("handled", node, run) from the requests of a process to its end.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from tidegauge.impl import rules
from tidegauge.impl.errors import OF_ANOTHER_TOPIC
from tidegauge.traces.kafka_logs.parsing.lines import Line
from tidegauge.traces.kafka_logs.parsing.parsed_line import ParsedLine, PartitionRequest
from tidegauge.traces.kafka_logs.parsing.timestamps import resolution

Place = tuple[int, int, int, int]
Key = tuple[int, int, int]
"""(time, index of the line, order among steps of one line), by which the steps of a replica are sorted."""
Fields = dict[str, object]
ThreadPartition = tuple[str, str]
"""A thread and a partition: a thread works on a partition in one step at a time."""


REQUEST_HANDLER, FETCHER_THREAD = "kafka-request-handler-", "ReplicaFetcherThread-"
"""Names of the threads that handle fetches (KafkaRequestHandlerPool), and of those that send them."""
PROPOSES = frozenset({"ExpandIsr", "ShrinkIsr"})
TAKES_RESPONSES = frozenset({"HandleFetchResponse", "HandleDivergingResponse", "HandleOutOfRange", "HandleFetchError"})
TRUNCATES = ("HandleDivergingResponse", "TruncateToHighWatermark", "HandleOutOfRange", "HandleEpochResponse")
"""Steps whose line a follower prints before it truncates its log."""
OF_A_CONTROLLER = frozenset(
    {"ChangePartition", "AlterPartition", "RegisterBroker", "FenceBroker", "UnfenceBroker", "SetMinIsr"}
)
_LOG_LOGGERS = frozenset(
    {"UnifiedLog", "LocalLog", "LogSegment", "ProducerStateManager", "ProducerAppendInfo", "LeaderEpochFileCache"}
)
LATE_MICROSECONDS = 50_000
"""Microseconds from a step to its line where lines name no threads, which would show it (observed on busy brokers)."""
RAISED, KEPT = "RaiseHighWatermark", "KeepHighWatermark"
"""Lines of a leader that raises its high watermark, or does not, until order.py has found the step that made it look."""
FORGOTTEN = "LinesMissing"
"""Where lines are missing: what they showed of a replica is unknown from there on, to order.py as well."""
NO_REPLICA = (*OF_ANOTHER_TOPIC, rules.NOT_LEADER_OR_FOLLOWER, rules.UNKNOWN_LEADER_EPOCH)
"""Errors of a broker that has no such replica, not yet or no more (ReplicaManager#getPartitionOrError), or loads its log."""


class MinIsrOfLog(NamedTuple):
    """A log of a partition: from which place (run, line) on it is there, and its highest min.insync.replicas if known."""

    begin: tuple[int, int]
    highest: int | None


def beside(key: Key, order: int) -> Key:
    """Return the key just after (`order` 1) or before (-1) the steps with this key, at the same line."""
    time, index, own_order = key
    return time, index, own_order + order


def proposal_keys(
    tp: str, leader_epoch: int, partition_epoch: int, isr: Iterable[int], broker_epochs: Mapping[int, int]
) -> tuple[Hashable, ...]:
    """Return the key of an ISR proposal, and one with the broker epochs of its members (KIP-903) if they are known.

    `broker_epochs` are by broker, empty if none is known.
    """
    key = ("proposal", tp, leader_epoch, partition_epoch, frozenset(isr))
    return (key, (*key, frozenset(broker_epochs.items()))) if broker_epochs else (key,)


@dataclass(eq=False, slots=True)
class LoggedStep:
    """A step of one node on one of its replicas (of a controller: on a partition): an event in the making.

    `name` and `fields` are those of the event, `at` names its line as file:line, `time` is the stamp of that. It happened
    after `begins` and not after `ends`, and after the steps that it `follows`. `thread` is that of its lines, `topic_id`
    that of its request, or of its topic where several have one name; one that `takes_effect` comes after its lines. A fetch
    that is counted has its `response`; a response that was sent at once `joins` the event of its fetch if it was read before
    that. `shown_hw` is the high watermark in the response to a consumer. For `provides` and `depends_on` see rule 3.
    """

    node: int
    tp: str
    name: str
    fields: Fields
    at: str
    time: int
    place: Place
    begins: int = -1
    ends: int = -1
    key: Key = (0, 0, 0)
    thread: str = ""
    topic_id: str = ""
    shown_hw: int | None = None
    takes_effect: bool = False
    in_flight: bool = False
    """An append without its line: its thread may not have come to raise the high watermark."""
    follows: tuple["LoggedStep", ...] = ()
    response: "LoggedStep | None" = None
    joins: "LoggedStep | None" = None
    provides: tuple[Hashable, ...] = ()
    depends_on: tuple[Hashable, ...] = ()

    @property
    def run(self) -> int:
        """The number of its process among those of its node."""
        return self.place[0]

    @property
    def line_index(self) -> int:
        """The index of its line among those of its process."""
        return self.place[1]

    @property
    def spot(self) -> tuple[int, int]:
        """Process and line, as gap_detection.py names a place in a log."""
        return self.place[:2]


@dataclass(eq=False, slots=True)
class LoggedReplica:
    """What the lines of one broker have shown of one of its replicas so far; None is unknown.

    `epochs` is the epoch cache as (epoch, start offset); `recorded` has the log ends of followers that a leader has counted;
    `loaded`: this process has loaded its log; `created`: as an empty one.
    """

    leo: int | None = None
    hw: int | None = None
    log_start: int | None = None
    epochs: list[tuple[int, int]] | None = None
    leader_epoch: int | None = None
    leader: int | None = None
    follows_from: int = -1
    """When this process last made it a follower, by the stamp of that line."""
    last_hw: int | None = None
    """The high watermark at the end of the process before."""
    loaded: bool = False
    created: bool = False
    recorded: dict[int, int] = field(default_factory=dict)
    isr: frozenset[int] = frozenset()
    ignored: tuple[Hashable, ...] = ()
    """The keys that responses to its proposals depend on which it ignored: the next proposal comes after them."""
    taken_over: "LoggedStep | None" = None
    """The last response to a proposal of its that a line shows to be taken over."""

    def led_after(self, time: int) -> bool:
        """Return whether the replica may still have led after a time: it became a follower later."""
        return time < self.follows_from

    def forget(self) -> None:
        """Forget what was known: lines are missing, so it may have changed."""
        self.leo = self.hw = self.log_start = self.epochs = self.leader_epoch = self.leader = None
        self.recorded.clear()
        self.isr = frozenset()

    def add_epoch(self, epoch: int, start: int) -> None:
        """Add an epoch to the cache (LeaderEpochFileCache#assign)."""
        # After a gap the cache is unknown: an entry says nothing about those before it.
        if self.epochs is None:
            return
        epochs, starts = [cached for cached, _ in self.epochs], [cached for _, cached in self.epochs]
        number_that_stay = rules.assign_keeps(epochs, starts, epoch, start)
        # UNDEFINED: the cache stays as it is.
        if number_that_stay != rules.UNDEFINED:
            self.epochs = [*self.epochs[:number_that_stay], (epoch, start)]

    def lacks_leader_epoch(self) -> bool:
        """Return whether the cache is known to lack the epoch of its leader, which Partition#makeLeader assigns to it."""
        if self.epochs is None or self.leader_epoch is None:
            return False
        return all(epoch < self.leader_epoch for epoch, _ in self.epochs)

    def truncate_epochs_at_end(self, end: int) -> None:
        """Truncate the cache at its end (LeaderEpochFileCache#truncateFromEnd)."""
        if self.epochs is not None:
            self.epochs = self.epochs[: rules.truncate_from_end_keeps([start for _, start in self.epochs], end)]

    def truncate_epochs_at_start(self, start: int) -> None:
        """Truncate the cache at its start: the last entry at or below `start` stays, raised to it (#truncateFromStart)."""
        if self.epochs is None:
            return
        covered = rules.truncate_from_start_covers([first for _, first in self.epochs], start)
        if covered > 0:
            last_covered_epoch, _ = self.epochs[covered - 1]
            self.epochs = [(last_covered_epoch, start), *self.epochs[covered:]]

    def epochs_of(self, base: int, end: int) -> list[list[int]] | None:
        """Return the epochs of the records in [base, end) as runs [epoch, first offset]; None if the cache is unknown."""
        if self.epochs is None:
            return None
        if base >= end:
            return []
        starts = [start for _, start in self.epochs]
        entries, inside = rules.count_at_most(starts, base), rules.count_below(starts, end)
        # The records lie below the first entry: the cache does not say their epoch.
        if entries == 0:
            return None
        # The last entry at or below `base` covers the first record; those that start inside follow.
        epoch_of_base, _ = self.epochs[entries - 1]
        return [[epoch_of_base, base], *(list(entry) for entry in self.epochs[entries:inside])]


def may_fetch(parsed: ParsedLine) -> bool:
    """Return whether the thread of a line may handle fetches; a line without a thread may be of any."""
    return not parsed.line.thread or REQUEST_HANDLER in parsed.line.thread


def fetcher_key(parsed: ParsedLine) -> tuple[int, int]:
    """Return the leader and the fetcher number of the fetcher that printed a line; 0 if the line has no number."""
    return parsed.number("peer"), parsed.number("fetcher") if "fetcher" in parsed.values else 0


def record_fields(replica: LoggedReplica, base: int, end: int) -> Fields:
    """Return the fields of the records [base, end): rec_base, rec_end and, where the epoch cache has them, their epochs.

    `epochs` are runs [epoch, first offset], `rec_epoch` is the epoch of the last record.
    """
    fields: Fields = {"rec_base": base, "rec_end": end}
    epochs = replica.epochs_of(base, end)
    if epochs is not None:
        fields["epochs"] = epochs
        if epochs:
            fields["rec_epoch"] = epochs[-1][0]
    return fields


def reported(**values: object) -> Fields:
    """Return these fields without those that are None: no line reports them."""
    return {name: value for name, value in values.items() if value is not None}


def or_null(value: int) -> int | None:
    """Return None for -1, which stands for undefined in logs and requests; any other value as it is."""
    return None if value < 0 else value


# Fetches ask for the same again and again: what is equal is one dict, which nobody changes.
@lru_cache(maxsize=1 << 14)
def recorded_fields(peer: int, offset: int) -> Fields:
    """Return the fields of a fetch that was counted, as its line has them; to be read only."""
    return {"peer": peer, "req_offset": offset, "remote_leo": offset}


@lru_cache(maxsize=1 << 14)
def request_fields(partition: PartitionRequest, peer: int | None = None) -> Fields:
    """Return the req_ fields of one partition of a fetch, and the peer if it is given; to be read only."""
    return {
        **({} if peer is None else {"peer": peer}),
        "req_epoch": or_null(partition.epoch),
        "req_offset": partition.offset,
        "req_last_epoch": or_null(partition.last_epoch),
        "req_log_start": partition.log_start,
    }


@dataclass(eq=False, slots=True)
class Send:
    """A fetch as its sender `node` logged it in process `run`; `requested` has every partition that its session asks for.

    A summary stands for several `requests` of its session (Line.summarizes). `lost`: no response to it came.
    """

    node: int
    leader: int
    session: int
    session_epoch: int
    requested: dict[str, PartitionRequest]
    time: int
    run: int
    lost: bool = False
    requests: int = 1
    fetcher: int = 0


@dataclass(eq=False, slots=True)
class LoggedFetcher:
    """The fetch session of one fetcher thread; a broker has num.replica.fetchers of them for each leader.

    `requested` are the partitions of the session, `send` is its last request, `last` by partition the last that names it.
    """

    requested: dict[str, PartitionRequest] = field(default_factory=dict)
    send: Send | None = None
    last: dict[str, Send] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class CountedFetch:
    """What a handler thread has printed of a fetch before its `Recorded replica` line: the fetch was counted before it all.

    That was after `begins` and by `ends`; `index` is the first of the lines. `raised` is its raise of the high watermark,
    `kept_line` (with its place) the line that it was not raised, `recorded` the LEOs by replica at that line, `printed` the
    (replica, LEO) that other threads have printed since.
    """

    begins: int
    ends: int
    index: int
    raised: LoggedStep | None = None
    kept_line: tuple[ParsedLine, Place] | None = None
    recorded: Mapping[int, int] = field(default_factory=dict)
    printed: set[tuple[int, int]] = field(default_factory=set)
    append: LoggedStep | None = None
    """The append before it in its thread, whose raise may be of this fetch."""


class HighWatermarkSet(NamedTuple):
    """A high watermark that a log was set to, as its line (by index) says: after `begins`, and by `ends`."""

    hw: int
    begins: int
    ends: int
    line_index: int


@dataclass(eq=False)
class LoggedBroker:
    """The state of one broker as its lines show it, read in order: replicas, fetcher threads, and the steps so far.

    `open` has, by thread and partition, the step that later lines of the thread may add to. A broker prints several lines
    for one step, without an id, and lines of other threads between them; but a thread works on one request at a time, and
    on a partition once in it. So thread and partition find the step that a line belongs to. `counted` are fetches whose
    `Recorded` line is still to come. `silent_since` is the time of the last line of a process that was told to stop and did
    not log its end. `run` and `index` are the process and the number of the current line, `now` is its time; what it reports
    happened after `begins`.
    """

    node: int
    run: int = 0
    index: int = 0
    line: Line | None = None
    """The line of the last step, and where it is; its place and key."""
    at: str = ""
    place: Place = (-1, -1, 0, 0)
    key: tuple[int, int, int] = (0, 0, 0)
    steps: list[LoggedStep] = field(default_factory=list)
    replicas: dict[str, LoggedReplica] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    """Partitions about which no line came since all that was known of replicas was forgotten (gap_detection.py)."""
    open: dict[ThreadPartition, LoggedStep] = field(default_factory=dict)
    fetchers: dict[tuple[int, int], LoggedFetcher] = field(default_factory=dict)
    """By the leader that it fetches from, and its number: ReplicaFetcherThread-<number>-<leader>."""
    counted: dict[ThreadPartition, CountedFetch] = field(default_factory=dict)
    looked: dict[tuple[str, int, int], CountedFetch] = field(default_factory=dict)
    """By partition, replica and log end, a look at the high watermark that shows a fetch without a `Recorded` line."""
    setting: dict[ThreadPartition, HighWatermarkSet] = field(default_factory=dict)
    """By thread and partition, the high watermark that the log set last and no line of Partition has yet."""
    expanding: dict[ThreadPartition, LoggedStep] = field(default_factory=dict)
    """By thread and partition, the proposal to expand the ISR that a fetch caused whose `Recorded` line is still to come."""
    proposals: dict[ThreadPartition, LoggedStep] = field(default_factory=dict)
    """By thread and partition, its last proposal."""
    taking_effect: dict[str, LoggedStep] = field(default_factory=dict)
    """By thread, the step whose line it printed before the step; it has happened by the thread's next line."""
    becoming: dict[str, list[LoggedStep]] = field(default_factory=dict)
    """By thread, the followers that it has made and whose fetchers it has not removed yet."""
    now: int = 0
    begins: int = -1
    began: int = -1
    """Just before the first line of the process."""
    spoke: int = -1
    """`latest` at the line that the current line's thread wrote before."""
    log_began: dict[str, int] = field(default_factory=dict)
    """By thread, `begins` of the first of the log's lines that it printed in a row."""
    tick: int = 0
    latest: int = -1
    """The latest stamp so far: a line that is in the file is after everything that was stamped before it."""
    spoken: dict[str, int] = field(default_factory=dict)
    """By thread, `latest` at its last line."""
    sends: list[Send] = field(default_factory=list)
    topic_ids: dict[str, str] = field(default_factory=dict)
    named: dict[str, list[tuple[tuple[int, int], str]]] = field(default_factory=dict)
    """By topic, from which line (run, index) on it has which id."""
    min_isr: dict[str, int] = field(default_factory=dict)
    """By partition, the min.insync.replicas with which its log was created."""
    min_isr_read: dict[str, int | None] = field(default_factory=dict)
    """By topic, that of the configuration that the broker read last."""
    without_min_isr: set[str] = field(default_factory=set)
    """Partitions whose logs were created without a min.insync.replicas that the topic had before."""
    existing_log: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    """By thread, the partition whose log it found last, `begins` of that line, and `latest` at it."""
    deleting: dict[str, tuple[LoggedStep, int]] = field(default_factory=dict)
    """By thread, the first replica of a batch that it deletes, and `latest` at its last line."""
    min_isr_of_logs: dict[str, list[MinIsrOfLog]] = field(default_factory=dict)
    """By partition, for each of its logs, in order."""
    appenders: set[str] = field(default_factory=set)
    """Threads that have appended as a leader, or may do so."""
    unfinished: dict[str, LoggedStep] = field(default_factory=dict)
    """By partition, an append that may have been made without its line: it failed, or a fetcher was killed in it."""
    killed: LoggedStep | None = None
    """Such an append of a leader, of any partition: the process before was killed. `appending` threads may have made one."""
    appending: int = 0
    unlogged: list[LoggedStep] = field(default_factory=list)
    """Such appends that the next process found on its disk."""
    version: str = ""
    upgraded: bool = False
    """Whether its lines name more than one version."""
    clean_start: bool | None = None
    """Whether the process found the file of a clean shutdown; None if no line says so yet."""
    stop_signal: int | None = None
    """When the process was told to stop."""
    logs_closed: bool = False
    silent_since: int | None = None

    @property
    def stopping(self) -> bool:
        """Whether the process was told to stop."""
        return self.stop_signal is not None

    def replica(self, tp: str) -> LoggedReplica:
        """Return what is known of a replica of this broker; begin with nothing known if there is none."""
        replica = self.replicas.get(tp)
        if replica is None:
            replica = self.replicas[tp] = LoggedReplica()
        return replica

    def append_in_flight(self, tp: str) -> LoggedStep | None:
        """Return the append that the process before may have made to a log without writing its line; None if there is none.

        A thread prints the line when it has appended, so a process that is killed leaves at most one a thread (SIGKILL keeps
        what was written to files). UnifiedLog#append that fails may have written the records: what fails may be the index of
        aborted transactions.
        """
        if tp in self.unfinished:
            return self.unfinished[tp]
        leads = tp in self.replicas and self.replicas[tp].leader == self.node
        # Only handlers of a leader are left, as many as were running when the process was killed.
        if self.killed is None or self.clean_start is not False or not leads or not self.appending:
            return None
        return replace(self.killed, tp=tp, fields={})

    def unlogged_append(self, parsed: ParsedLine, tp: str = "") -> LoggedStep:
        """Return an append at this line that is not among the steps yet: the next load of the log shows if it was made."""
        step = self.step(parsed, "LeaderAppend", {}, tp)
        # `step` has added it.
        self.steps.pop()
        step.in_flight = True
        return step

    def note_min_isr(self, tp: str, value: int | None, created: bool = False) -> None:
        """Note a min.insync.replicas that a partition has from now on; `created` says that its log is a new one."""
        logs = self.min_isr_of_logs.setdefault(tp, [])
        if created or not logs:
            logs.append(MinIsrOfLog((self.run, self.index), value))
        else:
            highest = logs[-1].highest
            logs[-1] = logs[-1]._replace(highest=None if highest is None or value is None else max(highest, value))

    def partition_of_response(self, parsed: ParsedLine) -> str:
        """Return the partition of an AlterPartition response: 4.2 names it by topic id (`<id>:0`), others by `beta-0`."""
        topic, _, partition = parsed.text("partition").rpartition(":")
        return f"{self.topic_ids.get(topic, topic)}-{partition}" if topic else partition

    def learn_topic(self, parsed: ParsedLine) -> None:
        """Note the topic id that a line names for its partition's topic, if it names one."""
        if "topic_id" in parsed.values:
            topic_id, topic = parsed.text("topic_id"), parsed.tp.rpartition("-")[0]
            self.topic_ids[topic_id] = topic
            named = self.named.setdefault(topic, [])
            # Deleted and created again, a topic has another id (KIP-516).
            if not named or named[-1][1] != topic_id:
                named.append(((self.run, self.index), topic_id))

    def topic_named(self, topic: str, place: tuple[int, ...]) -> str:
        """Return the topic id that lines up to a place named last for a topic; "" before the first."""
        return next((topic_id for spot, topic_id in reversed(self.named.get(topic, ())) if spot <= place[:2]), "")

    def step(self, parsed: ParsedLine, name: str, fields: Fields, tp: str = "") -> LoggedStep:
        """Add a step at this line, on partition `tp` or else the line's; return it."""
        line = parsed.line
        time, index = line.time, self.index
        # A fetch has a step for each partition of its session: their places are equal, and one tuple.
        if line is not self.line or self.place[1] != index:
            self.line, self.at, self.place, self.key = line, line.at, (self.run, index, 0, 0), (time, index, 0)
        step = LoggedStep(
            self.node,
            tp or parsed.tp,
            name,
            fields=fields,
            at=self.at,
            time=time,
            place=self.place,
            begins=self.begins,
            ends=time + self.tick,
            key=self.key,
            thread=line.thread,
        )
        self.steps.append(step)
        # A line shows something of its replica again.
        if self.forgotten:
            self.forgotten.discard(step.tp)
        return step

    def counts_from(self, parsed: ParsedLine) -> int:
        """Return the time after which the fetch was counted that the line's thread handles on its partition."""
        counted = self.counted.get((parsed.line.thread, parsed.tp))
        return self.begins if counted is None else counted.begins

    def begin_process(self, times: Sequence[int]) -> None:
        """Begin a process with lines at these `times`: forget what bounded the steps of the one before."""
        self.began = self.latest = times[0] - 1
        # 3.x prints milliseconds.
        self.tick = resolution(times) - 1
        self.spoken.clear()
        self.log_began.clear()
        self.becoming.clear()

    def read_line(self, line: Line, index: int) -> None:
        """Advance to a line: it bounds when its thread did what it prints, and what it printed before."""
        self.index, self.now = index, line.time
        # What a thread did before its first line is bounded only by the begin of its process.
        self.spoke = self.spoken.get(line.thread, self.began)
        # Without thread names nothing is known but that the line is there.
        self.begins = min(self.spoke, line.time - 1) if line.thread else line.time - 1
        # The log prints other lines while it appends, and the one of the append last (UnifiedLog#append).
        if line.logger in _LOG_LOGGERS:
            self.log_began.setdefault(line.thread, self.begins)
        else:
            self.log_began.pop(line.thread, None)
        self.latest = max(self.latest, line.time)
        self.spoken[line.thread] = self.latest
        if not line.thread:
            return
        # A step that comes after its line has happened by this one, the next of its thread.
        step = self.taking_effect.pop(line.thread, None)
        if step is not None:
            step.ends = max(step.ends, line.time + self.tick)
            if step.name == "BecomeFollower":
                self.becoming.setdefault(line.thread, []).append(step)
        # ReplicaManager#applyDelta makes all followers first; until it has removed their fetchers these go on as before.
        if line.logger == "ReplicaFetcherManager":
            for follower in self.becoming.pop(line.thread, ()):
                follower.ends = max(follower.ends, line.time + self.tick)

    def begin(self, parsed: ParsedLine, name: str, fields: Fields, tp: str = "") -> LoggedStep:
        """Add a step that later lines of this thread on its partition may add to: it is open until `close`."""
        step = self.step(parsed, name, fields, tp)
        self.open[parsed.line.thread, step.tp] = step
        return step

    def opened(self, parsed: ParsedLine, *names: str) -> LoggedStep | None:
        """Return the open step of the line's thread and partition if it is one of `names` (none: any), else None."""
        step = self.open.get((parsed.line.thread, parsed.tp))
        return step if step is not None and (not names or step.name in names) else None

    def add(self, step: LoggedStep, **values: object) -> None:
        """Add fields of the current line to a step, and put the step there; values of None are left out."""
        step.fields.update(reported(**values))
        # A step happens by its last line: what other threads printed between its lines came before it.
        step.place, step.key = (self.run, self.index, 0, 0), (self.now, self.index, 0)
        step.ends = max(step.ends, self.now + self.tick)
        if step.takes_effect and step.thread:
            self.taking_effect[step.thread] = step

    def close(self, parsed: ParsedLine) -> None:
        """Close the open step: no later line of this thread adds to it."""
        self.taking_effect.pop(parsed.line.thread, None)
        self.open.pop((parsed.line.thread, parsed.tp), None)
