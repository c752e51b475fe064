"""What a node did, before the nodes are put in one order.

Rules of this file

1. A Step is an event in the making: `fields` grows while more lines of the same thread tell more about it.
2. `place` orders the steps of one node: (process run, index of the line, 0 for a line of the log and 1 for a request put
   behind it, time). Places of different nodes mean nothing to each other. `since` is the line from which on the step may
   have happened: a fetch counts some time before the line that says so.
3. Steps of different nodes are tied by keys: a step that awaits a key comes after every step that offers it.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from tidegauge.impl import rules
from tidegauge.traces.kafka.lines.phrases import Asked
from tidegauge.traces.kafka.lines.said import Said

Place = tuple[int, int, int, int]
Fields = dict[str, object]


REQUEST_HANDLER, FETCHER_THREAD = "kafka-request-handler-", "ReplicaFetcherThread-"
"""How Kafka calls the threads that handle fetches (KafkaRequestHandlerPool), and those that send them."""
TAKES_RESPONSES = frozenset({"HandleFetchResponse", "HandleDivergingResponse", "HandleOutOfRange", "HandleFetchError"})
TRUNCATES = ("HandleDivergingResponse", "TruncateToHighWatermark", "HandleOutOfRange", "HandleEpochResponse")
"""What a follower says before it truncates its log."""


@dataclass(eq=False, slots=True)
class LoggedStep:
    """Something one node did to one of its replicas."""

    node: int
    tp: str
    name: str
    fields: Fields
    at: str
    time: int
    place: Place
    since: int = -1
    offers: list[Hashable] = field(default_factory=list)
    awaits: list[Hashable] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class LoggedReplica:
    """What the lines of one broker have told about one of its replicas so far; None is unknown."""

    leo: int | None = None
    hw: int | None = None
    log_start: int | None = None
    epochs: list[tuple[int, int]] | None = None
    leader_epoch: int | None = None
    leader: int | None = None
    last_hw: int | None = None
    """The high watermark as the last line of the process before left it."""
    loaded: bool = False
    created: bool = False
    recorded: dict[int, int] = field(default_factory=dict)
    isr: frozenset[int] = frozenset()

    def forget(self) -> None:
        """Lines are missing: what was known may have changed."""
        self.leo = self.hw = self.log_start = self.epochs = self.leader_epoch = self.leader = None
        self.recorded.clear()
        self.isr = frozenset()

    def add_epoch(self, epoch: int, start: int) -> None:
        """LeaderEpochFileCache#assign."""
        if self.epochs is None:
            return
        epochs, starts = [known for known, _ in self.epochs], [known for _, known in self.epochs]
        keeps = rules.assign_keeps(epochs, starts, epoch, start)
        if keeps != rules.UNDEFINED:
            self.epochs = [*self.epochs[:keeps], (epoch, start)]

    def lacks_leader_epoch(self) -> bool:
        """Whether the cache is known, and lacks the epoch of its leader, which Partition#makeLeader assigns to it."""
        if self.epochs is None or self.leader_epoch is None:
            return False
        return all(epoch < self.leader_epoch for epoch, _ in self.epochs)

    def truncate_epochs_at_end(self, end: int) -> None:
        """LeaderEpochFileCache#truncateFromEnd."""
        if self.epochs is not None:
            self.epochs = self.epochs[: rules.truncate_from_end_keeps([start for _, start in self.epochs], end)]

    def truncate_epochs_at_start(self, start: int) -> None:
        """LeaderEpochFileCache#truncateFromStart: the last entry at or below `start` stays, raised to it."""
        if self.epochs is None:
            return
        covered = rules.truncate_from_start_covers([entry[1] for entry in self.epochs], start)
        if covered > 0:
            self.epochs = [(self.epochs[covered - 1][0], start), *self.epochs[covered:]]

    def epochs_of(self, base: int, end: int) -> list[list[int]] | None:
        """The epochs of the records in [base, end) as runs [epoch, first offset]; None when the cache is not known."""
        if self.epochs is None:
            return None
        if base >= end:
            return []
        starts = [start for _, start in self.epochs]
        known, inside = rules.count_at_most(starts, base), rules.count_below(starts, end)
        if known == 0:
            return None
        return [[self.epochs[known - 1][0], base], *(list(entry) for entry in self.epochs[known:inside])]


def may_fetch(said: Said) -> bool:
    """Whether the thread of a line handles fetches; one without a name may be any."""
    return not said.line.thread or REQUEST_HANDLER in said.line.thread


def record_fields(replica: LoggedReplica, base: int, end: int) -> Fields:
    """rec_base, rec_end and, where the cache is known, the epochs of the records."""
    fields: Fields = {"rec_base": base, "rec_end": end}
    epochs = replica.epochs_of(base, end)
    if epochs is not None:
        fields["epochs"] = epochs
        if epochs:
            fields["rec_epoch"] = epochs[-1][0]
    return fields


def reported(**values: object) -> Fields:
    """Fields without those nobody told."""
    return {name: value for name, value in values.items() if value is not None}


def or_null(value: int) -> int | None:
    """-1 in a log or request is known to be undefined."""
    return None if value < 0 else value


@dataclass(eq=False, slots=True)
class Send:
    """One fetch as its sender logged it: what the whole session asks for, not only what travelled.

    One that asks for nothing that is read may stand for several `requests` of its session (Line.counted).
    """

    node: int
    leader: int
    session: int
    session_epoch: int
    asked: dict[str, Asked]
    time: int
    run: int
    lost: bool = False
    requests: int = 1


@dataclass(eq=False, slots=True)
class LoggedFetcher:
    """The fetch session of one fetcher thread, as its sender sees it."""

    asked: dict[str, Asked] = field(default_factory=dict)
    send: Send | None = None
    last: dict[str, Send] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Risen:
    """A `High watermark updated` line whose cause is not known yet; it may belong to `append`, of the same thread.

    `was` is what the append told before.
    """

    said: Said
    place: Place
    append: LoggedStep | None
    was: Fields


@dataclass(eq=False, slots=True)
class KeptHighWatermark:
    """A `Skipping update high watermark` line whose cause is not known yet; `recorded` is what the leader had of whom."""

    said: Said
    place: Place
    recorded: Mapping[int, int]


@dataclass(eq=False)
class LoggedBroker:
    """The lines of one node, read in order: the replicas, the fetcher threads, and the steps so far.

    `open` holds, per thread and topic-partition, the step that more lines of the thread may belong to. `risen` and `kept`
    hold high watermark lines whose cause is yet to come. `unheard_from` is the time of the last line of a process that was
    told to stop and logged no end. `busy` is, per thread, its last line that belonged to something other than the fetch it
    is handling.
    """

    node: int
    run: int = 0
    index: int = 0
    steps: list[LoggedStep] = field(default_factory=list)
    replicas: dict[str, LoggedReplica] = field(default_factory=dict)
    open: dict[tuple[str, str], LoggedStep] = field(default_factory=dict)
    fetchers: dict[tuple[str, int], LoggedFetcher] = field(default_factory=dict)
    risen: dict[tuple[str, str], Risen] = field(default_factory=dict)
    kept: dict[tuple[str, str], KeptHighWatermark] = field(default_factory=dict)
    expanding: dict[tuple[str, str], LoggedStep] = field(default_factory=dict)
    busy: dict[str, int] = field(default_factory=dict)
    sends: list[Send] = field(default_factory=list)
    topic_ids: dict[str, str] = field(default_factory=dict)
    named: dict[str, list[tuple[tuple[int, int], str]]] = field(default_factory=dict)
    """By topic, from which line on it is the one with which id."""
    min_isr: dict[str, int] = field(default_factory=dict)
    min_isr_read: dict[str, int | None] = field(default_factory=dict)
    version: str = ""
    clean_start: bool | None = None
    stopping: bool = False
    logs_closed: bool = False
    unheard_from: int | None = None

    def replica(self, tp: str) -> LoggedReplica:
        """What is known of a replica of this broker."""
        return self.replicas.setdefault(tp, LoggedReplica())

    def learn_topic(self, said: Said) -> None:
        """Which topic a line is about."""
        if "topic_id" in said.values:
            topic_id, topic = said.text("topic_id"), said.tp.rpartition("-")[0]
            self.topic_ids[topic_id] = topic
            named = self.named.setdefault(topic, [])
            if not named or named[-1][1] != topic_id:
                named.append(((self.run, self.index), topic_id))

    def step(self, said: Said, name: str, fields: Fields, tp: str = "") -> LoggedStep:
        """A new step at this line."""
        made = LoggedStep(self.node, tp or said.tp, name, fields, said.line.at, said.line.time, (self.run, self.index, 0, 0))
        self.steps.append(made)
        return made

    def begin(self, said: Said, name: str, fields: Fields, tp: str = "") -> LoggedStep:
        """A new step that later lines of this thread may add to."""
        made = self.step(said, name, fields, tp)
        self.open[said.line.thread, made.tp] = made
        return made

    def opened(self, said: Said, *names: str) -> LoggedStep | None:
        """The open step of this thread and topic-partition, if it is one of `names`."""
        found = self.open.get((said.line.thread, said.tp))
        return found if found is not None and (not names or found.name in names) else None

    def add(self, step: LoggedStep, **values: object) -> None:
        """This line belongs to `step`: the step has happened only now."""
        step.fields.update(reported(**values))
        step.place = (self.run, self.index, 0, 0)

    def close(self, said: Said) -> None:
        """No later line of this thread adds to the open step."""
        self.open.pop((said.line.thread, said.tp), None)
