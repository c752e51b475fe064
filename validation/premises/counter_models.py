"""Counter-models of the proofs as traces: two logs that break a premise of convergence, as brokers would report them.

Rules of this file

1. Every value after the first two logs comes from the plain rules, so the trace is what brokers with these logs do. Under
   the removal `kip-101` the leader answers as it did before KIP-279.
2. After the truncation the follower fetches until it is refused or both logs are as long and the high watermark has
   reached their end: a wrong record below it is then committed, which is what the judge can see (DATA-02).
3. Every epoch was registered once: where the follower's log knows a later epoch than the leader's, it was registered
   before, with the follower as its leader.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidegauge.conformance.engine.judge import Judgement, ReplicaState, judge
from tidegauge.impl import rules
from tidegauge.spec.proofs.lemmas.logs import LogValue
from tidegauge.spec.proofs.premises import (
    DONE,
    EPOCH_MODE,
    REMOVALS,
    LossScenario,
    common_end,
    counter_model_scenario,
    record_epoch,
    truncated,
)
from tidegauge.traces.columns import to_columns
from tidegauge.traces.schema import Config, Event, Trace

LEADER, FOLLOWER, CONTROLLER = 1, 2, 100
FETCHES = 6
"""Fetches after the truncation: append, record, commit, report; more would repeat the last response."""


MENDED = "a later fetch repairs it, because it carries the follower's last epoch (KIP-595)"
NO_EPOCH = "record {offset} has no epoch in one of the logs, so nothing distinguishes the two records"


@dataclass(frozen=True)
class CounterModelTrace:
    """A counter-model, its trace, and the judgement on it."""

    run: LossScenario
    trace: Trace
    judgement: Judgement

    @property
    def broken(self) -> tuple[str, ...]:
        """The rules that fail, in the order of the trace."""
        return tuple(dict.fromkeys(failure.rule for failure in self.judgement.failures))

    @property
    def accepted_because(self) -> str:
        """Why nothing observable is wrong; empty when the judge rejects the trace or there is no reason."""
        if self.broken:
            return ""
        leader, follower = (_as_log(replica) for replica in self.judgement.final[0])
        if leader is None or follower is None:
            return ""
        offset = common_end(leader, follower)
        # Both logs are the same from end to end by now.
        if offset == leader.log_end == follower.log_end:
            return MENDED
        if rules.UNDEFINED in (record_epoch(leader, offset), record_epoch(follower, offset)):
            return NO_EPOCH.format(offset=offset)
        return ""

    def line(self) -> str:
        """Return the verdict in one line."""
        if self.broken:
            first = self.judgement.failures[0]
            event = self.trace.events[first.row]
            seen = f"{first.compared}: expected {first.expected}, seen {first.actual}"
            return f"the judge rejects the trace: {', '.join(self.broken)} ({event.event} at {event.node}, {seen})"
        return f"the judge accepts the trace: {self.accepted_because}"


def counter_model_trace(removal: str, mode: str) -> CounterModelTrace:
    """Return the counter-model of a dropped premise as a trace. Raises SpecError for an unknown removal or mode."""
    run = counter_model_scenario(removal, mode)
    config = Config(nodes=(LEADER, FOLLOWER), controller=CONTROLLER, source=f"proofs: {REMOVALS[removal].name}")
    trace = Trace(f"{removal}-{mode}", "t-0", config, tuple(_Reported(run).events()))
    return CounterModelTrace(run, trace, judge(to_columns([trace], config), config, final=1))


def _as_log(replica: ReplicaState) -> LogValue | None:
    """Return what the judge knows of a replica as a log of the proofs; None if anything of it is unknown."""
    if replica.epochs is None or replica.leo is None or replica.log_start is None:
        return None
    epochs, starts = tuple(e for e, _ in replica.epochs), tuple(s for _, s in replica.epochs)
    return LogValue(epochs, starts, replica.log_start, replica.leo)


@dataclass
class _Reported:
    """Reports a scenario event by event, and keeps what the next event needs."""

    run: LossScenario
    log: LogValue = field(init=False)
    leader_hw: int = field(init=False)
    follower_hw: int = field(init=False)
    recorded: int = -1

    def __post_init__(self) -> None:
        # Nothing is committed yet: both high watermarks are at the log starts, as after a load without a checkpoint.
        self.log = self.run.follower
        self.leader_hw = self.run.leader.log_start
        self.follower_hw = self.run.follower.log_start

    @property
    def epoch(self) -> int:
        """The epoch that the leader leads: the latest in its cache."""
        return self.run.leader.epochs[-1]

    def events(self) -> Iterator[Event]:
        """Yield all events of the scenario."""
        yield self.start(LEADER, self.run.leader)
        yield self.start(FOLLOWER, self.run.follower)
        # A later epoch in the follower's log was registered before, with the follower as leader (rule 3).
        later = rules.latest_epoch(self.run.follower.epochs)
        if later > self.epoch:
            yield self.registered(FOLLOWER, later)
        yield self.registered(LEADER, self.epoch)
        isr = {"isr": [LEADER, FOLLOWER]}
        yield self.at(LEADER, "BecomeLeader", leader_epoch=self.epoch, **isr, leo=self.run.leader.log_end, hw=self.leader_hw)
        yield self.at(
            FOLLOWER, "BecomeFollower", leader=LEADER, leader_epoch=self.epoch, leo=self.log.log_end, hw=self.follower_hw
        )
        if self.run.mode == EPOCH_MODE:
            yield from self.epoch_rounds()
        # A follower that never finishes its epoch rounds does not fetch.
        if self.run.mode != EPOCH_MODE or self.run.outcome == DONE:
            for _ in range(FETCHES):
                yield from self.fetch()

    def at(self, node: int, event: str, **fields: object) -> Event:
        """Return an event of a node."""
        return Event(node, event, fields)

    def start(self, node: int, log: LogValue) -> Event:
        """Return the Start of a broker that loads `log`."""
        # Its checkpoint has no high watermark: a checkpoint may lag, and nothing was committed here.
        cache = [[e, s] for e, s in zip(log.epochs, log.starts, strict=True)]
        return self.at(node, "Start", clean=True, leo=log.log_end, hw=log.log_start, log_start=log.log_start, epochs=cache)

    def registered(self, leader: int, epoch: int) -> Event:
        """Return the event in which the controller registers a leader."""
        both = [LEADER, FOLLOWER]
        return self.at(CONTROLLER, "ChangePartition", leader=leader, leader_epoch=epoch, isr=both, live=both, clean=True)

    def truncate_at(self, target: int) -> dict[str, int]:
        """Truncate the follower's log; return the fields that report it."""
        before = {"leo_before": self.log.log_end, "hw_before": self.follower_hw}
        self.log = truncated(self.log, target)
        self.follower_hw = rules.high_watermark_after_truncation(self.follower_hw, target)
        return {"target": target, **before, "leo": self.log.log_end, "hw": self.follower_hw}

    def epoch_rounds(self) -> Iterator[Event]:
        """Yield the events of the rounds of OffsetsForLeaderEpoch that the scenario has."""
        for round_ in self.run.rounds[:FETCHES]:
            request = {"req_epoch": self.epoch, "req_last_epoch": round_.requested}
            response = {"error": rules.NONE, "div_epoch": round_.response[0], "div_end": round_.response[1]}
            yield self.at(FOLLOWER, "SendEpochRequest", peer=LEADER, **request)
            yield self.at(LEADER, "HandleEpochRequest", peer=FOLLOWER, **request, **response)
            # After row 4 of the truncation table the follower asks again.
            done = {"completed": round_.row != 4}
            truncation = self.truncate_at(round_.target)
            yield self.at(FOLLOWER, "HandleEpochResponse", peer=LEADER, **request, **response, **done, **truncation)

    def fetch(self) -> Iterator[Event]:
        """Yield the events of one fetch: a read, a divergence or a refusal, as the rules decide."""
        leader, offset, last = self.run.leader, self.log.log_end, rules.latest_epoch(self.log.epochs)
        request = {"req_epoch": self.epoch, "req_offset": offset, "req_last_epoch": last}
        decision, epoch, end = rules.fetch_decision(
            leader.epochs, leader.starts, leader.log_start, leader.log_end, offset, last
        )
        yield self.at(FOLLOWER, "SendFetch", peer=LEADER, **request)
        if decision == rules.READ:
            yield from self.read(request)
        elif decision == rules.DIVERGING:
            response = {"error": rules.NONE, "div_epoch": epoch, "div_end": end}
            yield self.at(LEADER, "HandleFetch", peer=FOLLOWER, **request, **response, hw=self.leader_hw)
            row, target, _ = rules.truncation_target(self.log.epochs, self.log.starts, offset, offset, epoch, end)
            done = {"div_epoch": epoch, "div_end": end, "completed": row != 4}
            truncation = self.truncate_at(target)
            yield self.at(FOLLOWER, "HandleDivergingResponse", peer=LEADER, **_request(request), **done, **truncation)
        else:
            refused = {"error": rules.OFFSET_OUT_OF_RANGE, "hw": self.leader_hw}
            yield self.at(LEADER, "HandleFetch", peer=FOLLOWER, **request, **refused)
            yield self.at(FOLLOWER, "HandleFetchError", peer=LEADER, **_request(request), error=rules.OFFSET_OUT_OF_RANGE)

    def read(self, request: dict[str, int]) -> Iterator[Event]:
        """Yield the events of a fetch that reads: the leader counts it, the follower appends the records."""
        leader, base = self.run.leader, self.log.log_end
        before = {"leo_before": base, "hw_before": self.follower_hw}
        response = {"error": rules.NONE, "res_hw": self.leader_hw, "rec_base": base, "rec_end": leader.log_end}
        if leader.log_end > base:
            response["rec_epoch"] = record_epoch(leader, leader.log_end - 1)
        self.recorded = base
        hw = rules.leader_high_watermark(self.leader_hw, leader.log_end, (base,), (True,), False)
        moved = {"remote_leo": base, "hw_before": self.leader_hw, "hw": hw, "leo": leader.log_end}
        yield self.at(LEADER, "HandleFetch", peer=FOLLOWER, **request, **response, **moved)
        appended = [[e, max(s, base)] for e, s in _entries_from(leader, base)]
        self.log = _append(self.log, appended, leader.log_end)
        self.follower_hw = rules.follower_high_watermark(self.leader_hw, self.log.log_start, self.log.log_end)
        self.leader_hw = hw
        after = {"leo": self.log.log_end, "hw": self.follower_hw}
        reported = {"epochs": appended} if appended else {}
        yield self.at(
            FOLLOWER, "HandleFetchResponse", peer=LEADER, **_request(request), **response, **reported, **before, **after
        )


def _request(request: dict[str, int]) -> dict[str, int]:
    return {name: value for name, value in request.items() if name != "req_last_epoch"}


def _entries_from(log: LogValue, base: int) -> list[tuple[int, int]]:
    """Return the epochs of the records from `base` to the end, each with the first of its records there."""
    entries: list[tuple[int, int]] = []
    for offset in range(base, log.log_end):
        epoch = record_epoch(log, offset)
        if not entries or entries[-1][0] != epoch:
            entries.append((epoch, offset))
    return entries


def _append(log: LogValue, appended: list[list[int]], end: int) -> LogValue:
    """Return the log with records of these epochs appended (LeaderEpochFileCache#assign for each)."""
    epochs, starts = log.epochs, log.starts
    for epoch, start in appended:
        keeps = rules.assign_keeps(epochs, starts, epoch, start)
        if keeps != rules.UNDEFINED:
            epochs, starts = (*epochs[:keeps], epoch), (*starts[:keeps], start)
    return LogValue(epochs, starts, log.log_start, end)
