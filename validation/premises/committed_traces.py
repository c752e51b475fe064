"""Runs of the proof's cluster that lose committed data, as traces that the judge rejects.

Rules of this file

1. The judge must accept a trace up to the step that needs the premise, and reject it at that step or after it.
2. With the premise kept, the steps that remain possible are reported the same way, and the judge must accept those.
3. The proof is about a leader that forgets recorded log ends, profile `repaired`. Kafka as it is keeps them.
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property

from tidegauge.conformance.engine.judge import Failure, Judgement, judge
from tidegauge.impl import rules
from tidegauge.impl.rules import INELIGIBLE_REPLICA
from tidegauge.spec.proofs.committed.invariant import ACCEPTED, CommittedPremise
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.views import CONTROLLER
from tidegauge.traces.schema import Config, Event, Trace
from tidegauge.util.errors import SpecError
from validation.premises.committed import COMMITTED_LOSSES, CommittedLoss, PlainCluster
from validation.premises.plain_values import PlainStep, perform

# The steps of the proof's cluster, reported as the events of a trace.
#
# 1. Every number comes from the cluster or from the plain rules; the rules also decide which response a leader gives.
# 2. The cluster commits in a step of its own, Kafka in the event that made it possible: that event gets the high watermark
# after the commit.
# 3. A step that no event of the schema can express as the rules have it raises SpecError: a trace has only what brokers do.


COMPOSITE: dict[str, Callable[[PlainCluster, int], tuple[PlainStep, ...]]] = {
    "shrink": lambda c, out: (("propose_shrink", c.current, out), ("accept",), ("hear_isr", c.current)),
    "expand": lambda c, r: (("propose_expand", c.current, r), ("accept",), ("hear_isr", c.current)),
}
RAISES = ("LeaderAppend", "HandleFetch", "HandleAlterPartitionResponse", "BecomeLeader")
"""Events of a leader that may raise its high watermark."""


class Reporter:
    """Takes steps of a cluster and reports them as events; each step name of the cluster is a method."""

    def __init__(self, cluster: PlainCluster) -> None:
        self.cluster = cluster
        self.before = cluster
        self.events: list[Event] = []
        self.partition_epoch = -1
        self.request: dict[int, tuple[int, dict[str, int]]] = {}
        self.response: dict[int, tuple[int, dict[str, int]]] = {}
        self.caches: dict[int, list[tuple[int, int]]] = {self.node(b): [] for b in range(cluster.brokers)}
        for b in range(cluster.brokers):
            self.report(b, "Start", clean=True, leo=0, hw=0, log_start=0, epochs=[])
        self.registered()

    def step(self, step: PlainStep) -> int | None:
        """Take a step and report it; return the row of its first event, None if the cluster refuses the step."""
        name, *arguments = step
        row = len(self.events)
        if name in COMPOSITE:
            parts = COMPOSITE[name](self.cluster, *arguments)
            return row if all(self.step(part) is not None for part in parts) else None
        # Events report values before and after the step.
        self.before = deepcopy(self.cluster)
        if not perform(self.cluster, step):
            return None
        reported = getattr(self, name)(*arguments)
        return row if reported is None else int(reported)

    # -- parts of events

    def node(self, b: int) -> int:
        """Return the node id of the broker that incarnation b belongs to."""
        return self.cluster.place(b) + 1

    def nodes(self, brokers: Iterable[int]) -> list[int]:
        """Return the node ids of incarnations, each once."""
        return sorted({self.node(b) for b in brokers})

    @property
    def all_nodes(self) -> tuple[int, ...]:
        """The ids of all brokers."""
        return tuple(self.nodes(range(self.cluster.brokers)))

    def report(self, b: int, event: str, **reported: object) -> None:
        """Append an event of the broker of incarnation b."""
        self.events.append(Event(self.node(b), event, reported))

    def moved(self, b: int) -> dict[str, int]:
        """Return log end and high watermark of b before and after the step."""
        old, new = self.before, self.cluster
        before = {"leo_before": len(old.log[b]), "hw_before": old.hw[b]}
        return {**before, "leo": len(new.log[b]), "hw": new.hw[b]}

    def registered(self) -> None:
        """Append the controller's registration of the partition, as it is now."""
        # The proof has no fencing: a broker that is out of the ISR may run all the same, so all brokers are live.
        c, self.partition_epoch = self.cluster, self.partition_epoch + 1
        isr = {"isr": self.nodes(c.isr[c.current]), "partition_epoch": self.partition_epoch}
        leads = {"leader": self.node(c.leader[c.current]), "leader_epoch": c.current}
        live = self.nodes(range(c.brokers))
        self.events.append(Event(CONTROLLER, "ChangePartition", {**leads, **isr, "live": live, "clean": True}))

    def assign(self, b: int, epoch: int, start: int) -> None:
        """Add an entry to the cache of b (LeaderEpochFileCache#assign)."""
        epochs, starts = self.cache(b)
        keeps = rules.assign_keeps(epochs, starts, epoch, start)
        if keeps != rules.UNDEFINED:
            self.caches[self.node(b)] = [*self.caches[self.node(b)][:keeps], (epoch, start)]

    def cache(self, b: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return epochs and starts of the cache of b."""
        entries = self.caches[self.node(b)]
        return tuple(e for e, _ in entries), tuple(s for _, s in entries)

    def truncated(self, b: int, end: int) -> None:
        """Drop the entries of the cache of b that begin at `end` or after it (LeaderEpochFileCache#truncateFromEnd)."""
        del self.caches[self.node(b)][rules.truncate_from_end_keeps(self.cache(b)[1], end) :]

    # -- leadership

    def elect(self, *_: object) -> None:
        """Report ChangePartition."""
        self.registered()

    def learn(self, b: int, e: int) -> None:
        """Report BecomeLeader, if b leads epoch e, or else BecomeFollower."""
        if self.cluster.leader[e] == b:
            end = len(self.cluster.log[b])
            self.assign(b, e, end)
            self.report(
                b, "BecomeLeader", leader_epoch=e, isr=self.nodes(self.cluster.view[e]), epoch_start=end, **self.moved(b)
            )
        else:
            self.role(b)

    def role(self, b: int) -> None:
        """Report the role that b has, again."""
        e = self.cluster.known[b]
        leader, state = self.cluster.leader[e], {"leo": len(self.cluster.log[b]), "hw": self.cluster.hw[b]}
        if leader == b:
            self.report(b, "BecomeLeader", leader_epoch=e, isr=self.nodes(self.cluster.view[e]), **state)
        else:
            self.report(b, "BecomeFollower", leader=self.node(leader), leader_epoch=e, **state)

    # -- logs

    def append(self, e: int) -> None:
        """Report LeaderAppend by the leader of epoch e."""
        # The step has taken place: the record is the last one of the epoch's history.
        b, end = self.cluster.leader[e], len(self.cluster.hist[e])
        self.assign(b, e, end - 1)
        self.report(b, "LeaderAppend", leader_epoch=e, rec_base=end - 1, rec_end=end, rec_epoch=e, **self.moved(b))

    def commit(self, e: int) -> int:
        """Write the raised high watermark into the last event of the leader of epoch e; return that event's row."""
        b = self.cluster.leader[e]
        row = max(row for row, event in enumerate(self.events) if event.node == self.node(b))
        event = self.events[row]
        if event.event not in RAISES:
            raise SpecError(f"expected a high watermark to rise in one of {', '.join(RAISES)}; seen {event.event}")
        self.events[row] = replace(event, fields={**event.fields, "hw": self.cluster.hw[b]})
        return row

    def decision(self, f: int) -> tuple[int, int, int]:
        """Return what the leader of f answers to its next fetch (`rules.fetch_decision`)."""
        before = self.before
        leader, offset = before.leader[self.cluster.known[f]], len(before.log[f])
        start, end = before.log_start[leader], len(before.log[leader])
        return rules.fetch_decision(*self.cache(leader), start, end, offset, rules.latest_epoch(self.cache(f)[0]))

    def drop_empty_entry(self, f: int) -> None:
        """Report the fetch before which f has an entry without records that its leader lacks: only that entry goes."""
        if self.decision(f)[0] == rules.DIVERGING:
            self.diverge(f)
            leader, response = self.response.pop(f)
            end, hw = len(self.before.log[f]), self.before.hw[f]
            self.truncated(f, end)
            state = {"leo_before": end, "hw_before": hw, "leo": end, "hw": hw}
            point = {**response, "target": end, "completed": True}
            self.report(f, "HandleDivergingResponse", peer=self.node(leader), **point, **state)

    def asks(self, f: int, decision: int) -> tuple[int, dict[str, int], tuple[int, int]]:
        """Report SendFetch; return the leader, the request, and the (epoch, end offset) at which the logs diverge."""
        before, e = self.before, self.cluster.known[f]
        leader, offset, last = before.leader[e], len(before.log[f]), rules.latest_epoch(self.cache(f)[0])
        request = {"req_epoch": e, "req_offset": offset, "req_last_epoch": last}
        decided, epoch, diverges = self.decision(f)
        # The run was found by the proof: if the rules decide otherwise, the two have drifted apart, and no trace shows that.
        if decided != decision:
            raise SpecError(f"expected the rules to answer {decision} to {request}; seen {decided}")
        self.report(f, "SendFetch", peer=self.node(leader), **request)
        return leader, request, (epoch, diverges)

    def read(self, f: int, leader: int, request: dict[str, int], new_end: int) -> dict[str, int]:
        """Report that a leader reads a fetch of f; return the response, with records up to `new_end`."""
        base, records = request["req_offset"], self.cluster.log[leader]
        response = {"error": rules.NONE, "res_hw": self.before.hw[leader], "rec_base": base, "rec_end": new_end}
        if new_end > base:
            response["rec_epoch"] = records[new_end - 1]
        counted = {"remote_leo": base, **self.moved(leader)}
        self.report(leader, "HandleFetch", peer=self.node(f), **request, **response, **counted)
        return response

    def ask(self, f: int) -> None:
        """Report a fetch of f that stays on its way."""
        leader, request, _ = self.asks(f, rules.READ)
        self.request[f] = leader, request

    def serve(self, _e: int, f: int, *_: int) -> None:
        """Report that the fetch of f that was on its way is handled; nobody gets the response."""
        leader, request = self.request.pop(f)
        self.read(f, leader, request, len(self.cluster.log[leader]))

    def fetch(self, f: int, new_end: int) -> None:
        """Report a fetch of f that is sent, handled, and answered with records up to `new_end`."""
        self.drop_empty_entry(f)
        leader, request, _ = self.asks(f, rules.READ)
        base, records = request["req_offset"], self.cluster.log[f]
        response = self.read(f, leader, request, new_end)
        for offset in range(base, new_end):
            self.assign(f, records[offset], offset)
        handled = {"req_epoch": request["req_epoch"], "req_offset": base, **response, **self.moved(f)}
        self.report(f, "HandleFetchResponse", peer=self.node(leader), **handled)

    def diverge(self, f: int) -> None:
        """Report a fetch of f that diverges; the response stays on its way."""
        leader, request, (epoch, end) = self.asks(f, rules.DIVERGING)
        response = {"div_epoch": epoch, "div_end": end}
        hw = self.cluster.hw[leader]
        self.report(leader, "HandleFetch", peer=self.node(f), **request, error=rules.NONE, **response, hw=hw)
        self.response[f] = leader, {"req_epoch": request["req_epoch"], "req_offset": request["req_offset"], **response}

    def truncate(self, f: int, target: int, *_sent: int) -> None:
        """Report a fetch of f that diverges, or a late response. Raises SpecError if the rules truncate elsewhere."""
        if f not in self.response:
            self.diverge(f)
        leader, response = self.response.pop(f)
        offset = response["req_offset"]
        row, seen, _ = rules.truncation_target(*self.cache(f), offset, offset, response["div_epoch"], response["div_end"])
        if seen != target:
            raise SpecError(f"expected a truncation at {target}; seen {seen}")
        self.truncated(f, target)
        reported = {
            **response,
            "target": target,
            # Row 4 of the truncation table (T4) is the only one after which the follower asks again.
            "completed": row != 4,
        }
        self.report(f, "HandleDivergingResponse", peer=self.node(leader), **reported, **self.moved(f))

    # -- the ISR

    def proposal(self, e: int) -> dict[str, list[int]]:
        """Return the ISR that the leader of epoch e proposes."""
        return {"isr": self.nodes(self.cluster.proposed[e])}

    def propose_shrink(self, e: int, *_: int) -> None:
        """Report ShrinkIsr by the leader of epoch e."""
        b = self.cluster.leader[e]
        self.report(b, "ShrinkIsr", **self.proposal(e), leo=len(self.cluster.log[b]), hw=self.cluster.hw[b])

    def propose_expand(self, e: int, r: int) -> None:
        """Report ExpandIsr by the leader of epoch e, for replica r."""
        reported = {"peer": self.node(r), **self.proposal(e), "remote_leo": self.cluster.remote[e, r]}
        self.report(self.cluster.leader[e], "ExpandIsr", **reported)

    def judged(self, e: int, members: Iterable[int], error: int) -> None:
        """Report AlterPartition: the controller decides on an ISR that the leader of epoch e proposed."""
        reported = {"peer": self.node(self.cluster.leader[e]), "leader_epoch": e, "isr": self.nodes(members), "error": error}
        self.events.append(Event(CONTROLLER, "AlterPartition", reported))

    def accept(self) -> None:
        """Report AlterPartition and ChangePartition of the proposal that is accepted."""
        e = self.cluster.current
        self.judged(e, self.cluster.proposed[e], rules.NONE)
        self.registered()

    def accept_given_up(self, number: int) -> None:
        """Report the same of a proposal that its leader has given up."""
        e, _, members = self.cluster.given_up[number]
        self.judged(e, members, rules.NONE)
        self.registered()

    def refuse(self, e: int) -> None:
        """Report AlterPartition of a proposal that is refused."""
        self.judged(e, self.cluster.proposed[e], INELIGIBLE_REPLICA)

    def hear_isr(self, e: int) -> None:
        """Report how the leader of epoch e learns its new ISR: by HandleAlterPartitionResponse, or from the metadata."""
        b = self.cluster.leader[e]
        # Without an accepted proposal of its own the leader reads the ISR in the metadata log, as its role again.
        if self.before.status[e] != ACCEPTED:
            self.role(b)
            return
        hw = {"hw_before": self.before.hw[b], "hw": self.cluster.hw[b]}
        isr = self.nodes(self.cluster.view[e])
        self.report(b, "HandleAlterPartitionResponse", isr=isr, error=rules.NONE, **hw)

    def remove(self, _: int) -> None:
        """Report ChangePartition: the controller itself removes a member of the ISR."""
        self.registered()

    # -- disks

    def restart(self, b: int, _: int) -> None:
        """Report Crash, Start, and the role that the metadata gives b."""
        self.report(b, "Crash", clean=False)
        c = self.cluster
        state = {"leo": len(c.log[b]), "hw": c.hw[b], "log_start": c.log_start[b]}
        self.truncated(b, len(c.log[b]))
        epochs = [list(entry) for entry in self.caches[self.node(b)]]
        self.report(b, "Start", clean=False, **state, epochs=epochs)
        self.role(b)

    def lose_tail(self, b: int, end: int) -> None:
        """Report a restart of the incarnation that follows b on the same broker."""
        self.restart(self.cluster.gone[b], end)

    def delete(self, b: int, start: int) -> None:
        """Report LogStartMoved at b, to `start`."""
        entries = self.caches[self.node(b)]
        covers = rules.truncate_from_start_covers(self.cache(b)[1], start)
        if covers:
            self.caches[self.node(b)] = [(entries[covers - 1][0], start), *entries[covers:]]
        self.report(b, "LogStartMoved", log_start=start, hw=self.cluster.hw[b])

    def reset(self, f: int) -> None:
        """Report a fetch of f that is out of range, after which its log begins anew at the leader's log start."""
        leader, request, _ = self.asks(f, rules.OUT_OF_RANGE)
        error = rules.OFFSET_OUT_OF_RANGE
        self.report(leader, "HandleFetch", peer=self.node(f), **request, error=error, hw=self.cluster.hw[leader])
        self.caches[self.node(f)] = []
        point = {"req_epoch": request["req_epoch"], "req_offset": request["req_offset"]}
        reach = {"leader_start": self.cluster.log_start[leader], "leader_end": len(self.cluster.log[leader])}
        log = {"target": self.cluster.log_start[f], **self.moved(f), "log_start": self.cluster.log_start[f]}
        self.report(f, "HandleOutOfRange", peer=self.node(leader), **point, **reach, **log)


# The steps of the proof's cluster as sentences. Brokers are numbered from 1, as in a trace.


WORDS = {
    "elect": "the controller elects {b}",
    "learn": "{b} learns of epoch {second}",
    "append": "the leader of epoch {first} appends a record",
    "commit": "the leader of epoch {first} raises its high watermark",
    "ask": "{b} fetches, and its request stays on its way",
    "serve": "the leader of epoch {first} handles that request of {other}",
    "diverge": "{b} fetches, and the response that its log diverges stays on its way",
    "late truncate": "that response reaches {b}, which truncates its log at {second}",
    "fetch": "{b} fetches, and then holds {second} record(s)",
    "truncate": "{b} truncates its log at {second}, where it and its leader differ",
    "shrink": "the ISR shrinks: {b} leaves, and the leader hears of it",
    "expand": "the ISR grows: {b} joins, and the leader hears of it",
    "propose_shrink": "the leader of epoch {first} asks for an ISR without {other}",
    "propose_expand": "the leader of epoch {first} asks for an ISR with {other}",
    "accept": "the controller accepts that change",
    "accept_given_up": "the controller accepts a change that its leader has given up",
    "refuse": "the controller refuses the change of the leader of epoch {first}",
    "hear_isr": "the leader of epoch {first} hears of the new ISR",
    "remove": "the controller itself takes {b} out of the ISR",
    "restart": "{b} restarts with an older high watermark, {second} lower",
    "lose_tail": "{b} restarts with the first {second} record(s) of its log",
    "delete": "{b} deletes its records below offset {second}",
    "reset": "{b} drops its log and starts at its leader's log start",
}


def words(step: PlainStep, place: Callable[[int], int]) -> str:
    """Describe a step in a sentence; `place` returns the broker that an incarnation belongs to."""
    name, *arguments = step
    first, second = [*arguments, 0, 0][:2]
    other = place(second) + 1 if name in ("propose_shrink", "propose_expand", "serve") else ""
    name = "late truncate" if name == "truncate" and len(arguments) > len(("follower", "target")) else name
    return WORDS[name].format(first=first, second=second, b=f"broker {place(first) + 1}", other=f"broker {other}")


@dataclass(frozen=True)
class CommittedRun:
    """A run, its trace, and the judgement on it. `rows` has the first event of each step."""

    loss: CommittedLoss
    cluster: PlainCluster
    trace: Trace
    rows: tuple[int, ...]

    @cached_property
    def judgement(self) -> Judgement:
        """The judgement on the trace."""
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
        """Describe the run, what it loses, and the verdict."""
        sentences = (words(step, self.cluster.place) for step in self.loss.steps)
        return [*self.loss.lines(sentences, self.cluster.lost()), self.verdict()]

    def verdict(self) -> str:
        """Return the verdict in one line."""
        if not self.failures:
            return "the judge accepts the trace"
        first = self.failures[0]
        event = self.trace.events[first.row]
        seen = f"{event.event} at {event.node}, {first.compared}: expected {first.expected}, seen {first.actual}"
        return f"the judge rejects the trace: {', '.join(self.broken)} ({seen})"


def committed_run(name: str, keep_premise: bool = False) -> CommittedRun:
    """Return the run of COMMITTED_LOSSES called `name`; with `keep_premise`, only the steps that are possible then."""
    if name not in COMMITTED_LOSSES:
        raise SpecError(f"expected one of {', '.join(COMMITTED_LOSSES)}; seen {name}")
    loss = COMMITTED_LOSSES[name]
    reporter = Reporter(PlainCluster() if keep_premise else PlainCluster(without=loss.premise))
    rows = []
    for step in loss.steps:
        at = reporter.step(step)
        if at is None and not keep_premise:
            raise SpecError(f"expected {step} to be possible without the premise that {loss.premise}; seen that it is not")
        # With the premise the step may be refused, which is the point: it has no event of its own.
        rows.append(len(reporter.events) if at is None else at)
    profile = "fetch-truncation" if loss.premise == CommittedPremise.FORGET_LOG_ENDS and not keep_premise else "repaired"
    source = f"proofs: {'with' if keep_premise else 'without'} the premise that {loss.premise}"
    config = Config(nodes=reporter.all_nodes, profile=profile, controller=CONTROLLER, source=source)
    return CommittedRun(loss, reporter.cluster, Trace(name, "t-0", config, tuple(reporter.events)), tuple(rows))
