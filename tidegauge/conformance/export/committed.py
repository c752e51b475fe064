"""Runs of the proof's cluster that lose committed data, as traces that the judge rejects.

Rules of this file

1. The judge must accept a trace up to the step that needs the premise, and reject it at that step or after it.
2. With the premise kept, the steps that remain possible are told the same way, and the judge must accept those.
3. The proof is about a leader that forgets recorded log ends, profile `repaired`. Kafka as it is keeps them.
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property

from tidegauge.conformance.engine.judge import Failure, Judgement, judge
from tidegauge.impl import rules
from tidegauge.impl.rules import INELIGIBLE_REPLICA
from tidegauge.spec.proofs.committed.cluster import ACCEPTED, CommittedPremise
from tidegauge.spec.proofs.committed.plain import PlainCluster
from tidegauge.spec.proofs.committed.runs import COMMITTED_LOSSES, CommittedLoss
from tidegauge.spec.proofs.engine.induction import PlainStep, perform
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.views import CONTROLLER
from tidegauge.traces.schema import Config, Event, Trace
from tidegauge.util.errors import SpecError

# Tells the steps of the proof's cluster as the events of a trace.
#
# Rules of this file
#
# 1. Every number comes from the cluster or from the plain rules; which response a leader gives is asked of the rules.
# 2. The cluster commits in a step of its own, Kafka in the event that let it: that event has the high watermark after it.
# 3. A step that an event of the schema cannot say as the rules have it raises; nothing is told that brokers would not do.


COMPOSITE: dict[str, Callable[[PlainCluster, int], tuple[PlainStep, ...]]] = {
    "shrink": lambda c, out: (("propose_shrink", c.current, out), ("accept",), ("hear_isr", c.current)),
    "expand": lambda c, r: (("propose_expand", c.current, r), ("accept",), ("hear_isr", c.current)),
}
RAISES = ("LeaderAppend", "HandleFetch", "HandleAlterPartitionResponse", "BecomeLeader")
"""Events at a leader that may raise its high watermark."""


class Reporter:
    """Takes steps of a cluster and tells the events."""

    def __init__(self, cluster: PlainCluster) -> None:
        self.cluster = cluster
        self.before = cluster
        self.events: list[Event] = []
        self.partition_epoch = -1
        self.caches: dict[int, list[tuple[int, int]]] = {self.node(b): [] for b in range(cluster.brokers)}
        for b in range(cluster.brokers):
            self.report(b, "Start", clean=True, leo=0, hw=0, log_start=0, epochs=[])
        self.registered()

    def step(self, step: PlainStep) -> int | None:
        """Takes a step and tells it: the row of its first event. None when the cluster refuses it."""
        name, *arguments = step
        row = len(self.events)
        if name in COMPOSITE:
            parts = COMPOSITE[name](self.cluster, *arguments)
            return row if all(self.step(part) is not None for part in parts) else None
        self.before = deepcopy(self.cluster)
        if not perform(self.cluster, step):
            return None
        reported = getattr(self, name)(*arguments)
        return row if reported is None else int(reported)

    # -- words of a trace

    def node(self, b: int) -> int:
        """The id of the broker that incarnation b is."""
        return self.cluster.place(b) + 1

    def nodes(self, brokers: Iterable[int]) -> list[int]:
        """Their ids."""
        return sorted({self.node(b) for b in brokers})

    @property
    def all_nodes(self) -> tuple[int, ...]:
        """The ids of all brokers."""
        return tuple(self.nodes(range(self.cluster.brokers)))

    def report(self, b: int, event: str, **reported: object) -> None:
        """An event at a broker."""
        self.events.append(Event(self.node(b), event, reported))

    def moved(self, b: int) -> dict[str, int]:
        """Log end and high watermark before and after the step."""
        old, new = self.before, self.cluster
        before = {"leo_before": len(old.log[b]), "hw_before": old.hw[b]}
        return {**before, "leo": len(new.log[b]), "hw": new.hw[b]}

    def registered(self) -> None:
        """The controller's partition, as it is now. A broker that is out of the ISR may run all the same."""
        c, self.partition_epoch = self.cluster, self.partition_epoch + 1
        isr = {"isr": self.nodes(c.isr[c.current]), "partition_epoch": self.partition_epoch}
        leads = {"leader": self.node(c.leader[c.current]), "leader_epoch": c.current}
        live = self.nodes(range(c.brokers))
        self.events.append(Event(CONTROLLER, "ChangePartition", {**leads, **isr, "live": live, "clean": True}))

    def assign(self, b: int, epoch: int, start: int) -> None:
        """LeaderEpochFileCache#assign."""
        epochs, starts = self.cache(b)
        keeps = rules.assign_keeps(epochs, starts, epoch, start)
        if keeps != rules.UNDEFINED:
            self.caches[self.node(b)] = [*self.caches[self.node(b)][:keeps], (epoch, start)]

    def cache(self, b: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Epochs and starts of a broker's cache."""
        entries = self.caches[self.node(b)]
        return tuple(e for e, _ in entries), tuple(s for _, s in entries)

    def truncated(self, b: int, end: int) -> None:
        """LeaderEpochFileCache#truncateFromEnd."""
        del self.caches[self.node(b)][rules.truncate_from_end_keeps(self.cache(b)[1], end) :]

    # -- leadership

    def elect(self, *_: object) -> None:
        """ChangePartition."""
        self.registered()

    def learn(self, b: int, e: int) -> None:
        """BecomeLeader, BecomeFollower."""
        if self.cluster.leader[e] == b:
            end = len(self.cluster.log[b])
            self.assign(b, e, end)
            self.report(
                b, "BecomeLeader", leader_epoch=e, isr=self.nodes(self.cluster.view[e]), epoch_start=end, **self.moved(b)
            )
        else:
            self.role(b)

    def role(self, b: int) -> None:
        """The role that b has, told again."""
        e = self.cluster.known[b]
        leader, state = self.cluster.leader[e], {"leo": len(self.cluster.log[b]), "hw": self.cluster.hw[b]}
        if leader == b:
            self.report(b, "BecomeLeader", leader_epoch=e, isr=self.nodes(self.cluster.view[e]), **state)
        else:
            self.report(b, "BecomeFollower", leader=self.node(leader), leader_epoch=e, **state)

    # -- logs

    def append(self, e: int) -> None:
        """LeaderAppend."""
        b, end = self.cluster.leader[e], len(self.cluster.hist[e])
        self.assign(b, e, end - 1)
        self.report(b, "LeaderAppend", leader_epoch=e, rec_base=end - 1, rec_end=end, rec_epoch=e, **self.moved(b))

    def commit(self, e: int) -> int:
        """The last event at the leader has raised its high watermark."""
        b = self.cluster.leader[e]
        row = max(row for row, event in enumerate(self.events) if event.node == self.node(b))
        event = self.events[row]
        if event.event not in RAISES:
            raise SpecError(f"expected a high watermark to rise in one of {', '.join(RAISES)}; seen {event.event}")
        self.events[row] = replace(event, fields={**event.fields, "hw": self.cluster.hw[b]})
        return row

    def asks(self, f: int, decision: int) -> tuple[int, dict[str, int], tuple[int, int]]:
        """SendFetch, and what the rules say of it: the leader, the request, where they part."""
        was, e = self.before, self.cluster.known[f]
        leader, offset, last = was.leader[e], len(was.log[f]), rules.latest_epoch(self.cache(f)[0])
        asked = {"req_epoch": e, "req_offset": offset, "req_last_epoch": last}
        start, end = was.log_start[leader], len(was.log[leader])
        decided, epoch, diverges = rules.fetch_decision(*self.cache(leader), start, end, offset, last)
        if decided != decision:
            raise SpecError(f"expected the rules to answer {decision} to {asked}; seen {decided}")
        self.report(f, "SendFetch", peer=self.node(leader), **asked)
        return leader, asked, (epoch, diverges)

    def fetch(self, f: int, new_end: int) -> None:
        """Sent, handled and answered."""
        leader, asked, _ = self.asks(f, rules.READ)
        base, records = asked["req_offset"], self.cluster.log[f]
        response = {"error": rules.NONE, "res_hw": self.before.hw[leader], "rec_base": base, "rec_end": new_end}
        if new_end > base:
            response["rec_epoch"] = records[-1]
        counted = {"remote_leo": base, **self.moved(leader)}
        self.report(leader, "HandleFetch", peer=self.node(f), **asked, **response, **counted)
        for offset in range(base, new_end):
            self.assign(f, records[offset], offset)
        taken = {"req_epoch": asked["req_epoch"], "req_offset": base, **response, **self.moved(f)}
        self.report(f, "HandleFetchResponse", peer=self.node(leader), **taken)

    def truncate(self, f: int, target: int) -> None:
        """A fetch that diverges. Where the rules truncate elsewhere than the run does, the run cannot be told."""
        leader, asked, (epoch, end) = self.asks(f, rules.DIVERGING)
        offset = asked["req_offset"]
        row, seen, _ = rules.truncation_target(*self.cache(f), offset, offset, epoch, end)
        if seen != target:
            raise SpecError(f"expected a truncation at {target}; seen {seen}")
        response = {"div_epoch": epoch, "div_end": end}
        hw = self.cluster.hw[leader]
        self.report(leader, "HandleFetch", peer=self.node(f), **asked, error=rules.NONE, **response, hw=hw)
        self.truncated(f, target)
        reported = {
            "req_epoch": asked["req_epoch"],
            "req_offset": offset,
            **response,
            "target": target,
            "completed": row != 4,
        }
        self.report(f, "HandleDivergingResponse", peer=self.node(leader), **reported, **self.moved(f))

    # -- the ISR

    def proposal(self, e: int) -> dict[str, list[int]]:
        """The ISR that the leader of epoch e asks for."""
        return {"isr": self.nodes(self.cluster.proposed[e])}

    def propose_shrink(self, e: int, *_: int) -> None:
        """ShrinkIsr."""
        b = self.cluster.leader[e]
        self.report(b, "ShrinkIsr", **self.proposal(e), leo=len(self.cluster.log[b]), hw=self.cluster.hw[b])

    def propose_expand(self, e: int, r: int) -> None:
        """ExpandIsr."""
        reported = {"peer": self.node(r), **self.proposal(e), "remote_leo": self.cluster.remote[e, r]}
        self.report(self.cluster.leader[e], "ExpandIsr", **reported)

    def judged(self, e: int, members: Iterable[int], error: int) -> None:
        """AlterPartition."""
        reported = {"peer": self.node(self.cluster.leader[e]), "leader_epoch": e, "isr": self.nodes(members), "error": error}
        self.events.append(Event(CONTROLLER, "AlterPartition", reported))

    def accept(self) -> None:
        """AlterPartition, ChangePartition."""
        e = self.cluster.current
        self.judged(e, self.cluster.proposed[e], rules.NONE)
        self.registered()

    def accept_given_up(self, number: int) -> None:
        """The same of a change that was given up."""
        e, _, members = self.cluster.given_up[number]
        self.judged(e, members, rules.NONE)
        self.registered()

    def refuse(self, e: int) -> None:
        """AlterPartition."""
        self.judged(e, self.cluster.proposed[e], INELIGIBLE_REPLICA)

    def hear_isr(self, e: int) -> None:
        """HandleAlterPartitionResponse, or metadata."""
        b = self.cluster.leader[e]
        if self.before.status[e] != ACCEPTED:
            self.role(b)
            return
        hw = {"hw_before": self.before.hw[b], "hw": self.cluster.hw[b]}
        isr = self.nodes(self.cluster.view[e])
        self.report(b, "HandleAlterPartitionResponse", isr=isr, error=rules.NONE, **hw)

    def remove(self, _: int) -> None:
        """ChangePartition."""
        self.registered()

    # -- disks

    def restart(self, b: int, _: int) -> None:
        """Crash, Start, and the role that its metadata gives it."""
        self.report(b, "Crash", clean=False)
        c = self.cluster
        state = {"leo": len(c.log[b]), "hw": c.hw[b], "log_start": c.log_start[b]}
        self.truncated(b, len(c.log[b]))
        epochs = [list(entry) for entry in self.caches[self.node(b)]]
        self.report(b, "Start", clean=False, **state, epochs=epochs)
        self.role(b)

    def lose_tail(self, b: int, end: int) -> None:
        """A restart of the newest incarnation, which stands where b stood."""
        self.restart(self.cluster.gone[b], end)

    def delete(self, b: int, start: int) -> None:
        """LogStartMoved."""
        entries = self.caches[self.node(b)]
        covers = rules.truncate_from_start_covers(self.cache(b)[1], start)
        if covers:
            self.caches[self.node(b)] = [(entries[covers - 1][0], start), *entries[covers:]]
        self.report(b, "LogStartMoved", log_start=start, hw=self.cluster.hw[b])

    def reset(self, f: int) -> None:
        """A fetch out of range, and a new beginning at the leader's log start."""
        leader, asked, _ = self.asks(f, rules.OUT_OF_RANGE)
        error = rules.OFFSET_OUT_OF_RANGE
        self.report(leader, "HandleFetch", peer=self.node(f), **asked, error=error, hw=self.cluster.hw[leader])
        self.caches[self.node(f)] = []
        point = {"req_epoch": asked["req_epoch"], "req_offset": asked["req_offset"]}
        reach = {"leader_start": self.cluster.log_start[leader], "leader_end": len(self.cluster.log[leader])}
        log = {"target": self.cluster.log_start[f], **self.moved(f), "log_start": self.cluster.log_start[f]}
        self.report(f, "HandleOutOfRange", peer=self.node(leader), **point, **reach, **log)


# A step of the proof's cluster in words, with brokers counted as a trace counts them.


WORDS = {
    "elect": "the controller elects {b}",
    "learn": "{b} learns of epoch {second}",
    "append": "the leader of epoch {first} appends a record",
    "commit": "the leader of epoch {first} raises its high watermark",
    "fetch": "{b} fetches and holds {second} record(s) then",
    "truncate": "{b} truncates its log at {second}: it and its leader differ there",
    "shrink": "the ISR shrinks: {b} leaves, and the leader hears of it",
    "expand": "the ISR grows: {b} joins, and the leader hears of it",
    "propose_shrink": "the leader of epoch {first} asks for an ISR without {other}",
    "propose_expand": "the leader of epoch {first} asks for an ISR with {other}",
    "accept": "the controller takes that change",
    "accept_given_up": "the controller takes a change that its leader has given up",
    "refuse": "the controller refuses the change of the leader of epoch {first}",
    "hear_isr": "the leader of epoch {first} hears of the new ISR",
    "remove": "the controller itself takes {b} out of the ISR",
    "restart": "{b} restarts with an older high watermark, {second} lower",
    "lose_tail": "{b} restarts with the first {second} record(s) of its log",
    "delete": "{b} deletes what lies below offset {second}",
    "reset": "{b} drops its log and starts at its leader's log start",
}


def words(step: PlainStep, place: Callable[[int], int]) -> str:
    """The step as a sentence; `place` says where a later incarnation of a broker stands."""
    name, *arguments = step
    first, second = [*arguments, 0, 0][:2]
    other = place(second) + 1 if name in ("propose_shrink", "propose_expand") else ""
    return WORDS[name].format(first=first, second=second, b=f"broker {place(first) + 1}", other=f"broker {other}")


@dataclass(frozen=True)
class CommittedRun:
    """A run, its trace, and what the judge says of it. `rows` has the first event of every step."""

    loss: CommittedLoss
    cluster: PlainCluster
    trace: Trace
    rows: tuple[int, ...]

    @cached_property
    def judgement(self) -> Judgement:
        """The judge's word."""
        return judge(to_columns([self.trace], self.trace.config), self.trace.config)

    @property
    def failures(self) -> list[Failure]:
        """The first failure of every rule that fails, in the order of the trace."""
        return sorted(self.judgement.failures, key=lambda failure: failure.row)

    @property
    def broken(self) -> tuple[str, ...]:
        """The rules that fail, in that order."""
        return tuple(failure.rule for failure in self.failures)

    def lines(self) -> list[str]:
        """The run in words, what it loses, and the judge's word."""
        sentences = (words(step, self.cluster.place) for step in self.loss.steps)
        return [*self.loss.lines(sentences, self.cluster.lost()), self.verdict()]

    def verdict(self) -> str:
        """The judge's word in one line."""
        if not self.failures:
            return "the judge accepts the trace"
        first = self.failures[0]
        event = self.trace.events[first.row]
        seen = f"{event.event} at {event.node}, {first.compared}: expected {first.expected}, seen {first.actual}"
        return f"the judge rejects the trace: {', '.join(self.broken)} ({seen})"


def committed_run(name: str, keep_premise: bool = False) -> CommittedRun:
    """The run of COMMITTED_LOSSES called `name`; with its premise kept, only the steps that are possible then."""
    if name not in COMMITTED_LOSSES:
        raise SpecError(f"expected one of {', '.join(COMMITTED_LOSSES)}; seen {name}")
    loss = COMMITTED_LOSSES[name]
    reporter = Reporter(PlainCluster() if keep_premise else PlainCluster(without=loss.premise))
    rows = []
    for step in loss.steps:
        at = reporter.step(step)
        if at is None and not keep_premise:
            raise SpecError(f"expected {step} to be possible without the premise that {loss.premise}; seen that it is not")
        rows.append(len(reporter.events) if at is None else at)
    profile = "fetch-truncation" if loss.premise == CommittedPremise.FORGET_LOG_ENDS and not keep_premise else "repaired"
    source = f"proofs: {'with' if keep_premise else 'without'} the premise that {loss.premise}"
    config = Config(nodes=reporter.all_nodes, profile=profile, controller=CONTROLLER, source=source)
    return CommittedRun(loss, reporter.cluster, Trace(name, "t-0", config, tuple(reporter.events)), tuple(rows))
