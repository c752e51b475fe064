"""Runs by hand, drawn at random: many leader epochs in few events, and a min.insync.replicas that changes.

Rules of this file

1. Logs are kept beside the events, and what is told is what they hold, but where a fault is planted: now and then a value is
   another, or a field is left out. An election is called clean by chance, so it may be a lie.
2. Every choice comes from the random numbers that are handed in.
"""

import random
from dataclasses import replace
from typing import Any

from tests.conformance.hand import CONFIG, COPIED, TWO, append, change, lead, reported
from tidegauge.traces.from_model.behaviour import numbered
from tidegauge.traces.schema import Config, Event, Trace

UNWRITTEN = -1
"""The epoch of what was deleted before the run begins."""
SETTINGS = (0, 1, 2, 3, None)
"""Values that may be told of min.insync.replicas."""


def families(count: int, seed: int) -> list[Trace]:
    """So many of each."""
    rng = random.Random(seed)
    made = [Reigns(rng).trace() for _ in range(count)] + [settings(rng) for _ in range(count)]
    return [replace(trace, name=f"family {number}") for number, trace in enumerate(made)]


class Reigns:
    """Brokers that lead one after the other, each with its own log: the epoch of each record."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.nodes = rng.choice(((1, 2), (1, 2, 3)))
        base = rng.choice((0, 0, 0, 3))
        self.starts = dict.fromkeys(self.nodes, base)
        self.logs: dict[int, list[int]] = {node: [UNWRITTEN] * base for node in self.nodes}
        self.partition_epoch = rng.choice((None, 0))
        self.hw = dict.fromkeys(self.nodes, base)
        self.events: list[Event] = []

    def trace(self) -> Trace:
        """A run of so many leader epochs."""
        rng = self.rng
        for node in self.nodes:
            self.loaded(node, epochs=())
        leader = rng.choice(self.nodes)
        for epoch in range(rng.randint(4, 9)):
            leader = leader if rng.random() < 0.6 else rng.choice(self.nodes)
            self.reign(epoch, leader)
        profile = rng.choice(("fetch-truncation", "fetch-truncation", "repaired", "kip101", "kip279", "elr"))
        extra: dict[str, Any] = {"reassigned": True} if rng.random() < 0.2 else {}
        for _ in range(rng.choice((0, 0, 1, 2))):
            self.delayed()
        config = replace(CONFIG, nodes=self.nodes, profile=profile, extra=extra, lag_rule=rng.random() < 0.15)
        return Trace("", "t-0", config, numbered(self.events))

    def report(self, node: int, event: str, **fields: object) -> None:
        """Mostly all of it, and mostly right."""
        rng = self.rng
        if rng.random() < 0.06 and fields:
            name = rng.choice(list(fields))
            number = fields[name]
            if type(number) is int and name not in ("leader", "peer") and rng.random() < 0.5:
                fields[name] = max(0, number + rng.choice((-1, 1)))
            else:
                del fields[name]
        self.events.append(reported(node, event, **fields))

    def loaded(self, node: int, **given: object) -> None:
        self.report(
            node, "Start", clean=True, leo=len(self.logs[node]), hw=self.hw[node], log_start=self.starts[node], **given
        )

    def delayed(self) -> None:
        """Some lines of a broker come later among those of others, as when its clock is behind."""
        node, at = self.rng.choice(self.nodes), self.rng.randrange(len(self.events))
        part = self.events[at : at + self.rng.randint(4, 14)]
        part.sort(key=lambda event: event.node == node)
        self.events[at : at + len(part)] = part

    def reign(self, epoch: int, leader: int) -> None:
        """It is elected, perhaps told again of an ISR that flaps, writes, commits and acknowledges; others follow."""
        rng = self.rng
        isr = (leader,) if rng.random() < 0.8 else self.nodes
        clean = rng.choice((True, True, True, True, False))
        self.registered(leader, epoch, isr, clean)
        self.leads(leader, epoch, isr, epoch_start=len(self.logs[leader]))
        for _ in range(rng.choice((0, 0, 0, 1, 3))):
            isr = rng.choice(((leader,), self.nodes))
            self.registered(leader, epoch, isr, True)
            if rng.random() < 0.7:
                self.leads(leader, epoch, isr)
        for _ in range(rng.choice((0, 1, 1, 2))):
            self.writes(leader, epoch, isr)
        for node in self.nodes:
            if node != leader and rng.random() < 0.75:
                self.follows(node, leader, epoch)
        if rng.random() < 0.15:
            node = rng.choice(self.nodes)
            self.report(node, rng.choice(("Crash", "Stop")))
            if rng.random() < 0.7:
                self.loaded(node, **({"epochs": self.entries(node)} if rng.random() < 0.8 else {}))
                if node == leader and rng.random() < 0.5:
                    self.leads(leader, epoch, isr, epoch_start=len(self.logs[leader]))
        if rng.random() < 0.15:
            node = rng.choice(self.nodes)
            self.starts[node] = rng.randint(self.starts[node], max(self.starts[node], self.hw[node]))
            self.report(node, "LogStartMoved", log_start=self.starts[node], hw=self.hw[node])
        if rng.random() < 0.25:
            node = rng.choice(self.nodes)
            given = {"epochs": self.entries(node)} if rng.random() < 0.6 else {}
            self.report(node, "Observe", leo=len(self.logs[node]), hw=self.hw[node], **given)

    def registered(self, leader: int, epoch: int, isr: tuple[int, ...], clean: bool) -> None:
        more: dict[str, object] = {}
        if self.partition_epoch is not None:
            more["partition_epoch"] = self.partition_epoch = self.partition_epoch + 1
        if self.rng.random() < 0.1:
            more["replicas"] = self.nodes if self.rng.random() < 0.6 else self.nodes[:-1]
        fields = {**change(leader, epoch, isr, self.nodes).fields, "clean": clean, **more}
        self.report(100, "ChangePartition", **fields)

    def leads(self, leader: int, epoch: int, isr: tuple[int, ...], **start: int) -> None:
        before, alone = self.hw[leader], isr == (leader,)
        self.hw[leader] = len(self.logs[leader]) if alone else before
        fields: dict[str, object] = dict(lead(leader, epoch, isr, len(self.logs[leader]), before, self.hw[leader]).fields)
        del fields["epoch_start"]
        if self.partition_epoch is not None:
            fields["partition_epoch"] = self.partition_epoch
        self.report(leader, "BecomeLeader", **fields, **start)

    def writes(self, leader: int, epoch: int, isr: tuple[int, ...]) -> None:
        log, before = self.logs[leader], self.hw[leader]
        log.append(epoch)
        self.hw[leader] = len(log) if isr == (leader,) else before
        self.report(leader, "LeaderAppend", **append(leader, epoch, len(log) - 1, before, self.hw[leader]).fields)
        if self.rng.random() < 0.5:
            self.report(leader, "ProduceAck", acks=-1, rec_end=self.hw[leader], error=0)

    def follows(self, node: int, leader: int, epoch: int) -> None:
        """It follows, and perhaps takes a record over where it may; how the leader served it nobody tells."""
        self.report(node, "BecomeFollower", leader=leader, leader_epoch=epoch, leo=len(self.logs[node]), hw=self.hw[node])
        if self.rng.random() < 0.3:
            behind, log = len(self.logs[node]), self.logs[leader]
            if self.logs[node] == log[:behind] and len(log) > behind:
                asked = {"peer": leader, "req_epoch": epoch, "req_offset": behind}
                self.report(node, "SendFetch", **asked, req_last_epoch=log[behind - 1] if behind else UNWRITTEN)
                taken = {"rec_base": behind, "rec_end": behind + 1, "rec_epoch": log[behind]}
                response = {**asked, "error": 0, "res_hw": self.hw[leader], **taken, "leo": behind + 1}
                self.logs[node].append(log[behind])
                self.hw[node] = min(self.hw[leader], behind + 1)
                self.report(node, "HandleFetchResponse", **response, hw=self.hw[node])

    def entries(self, node: int) -> tuple[tuple[int, int], ...]:
        """Its epoch cache: epochs and where they start, not below the log start."""
        log, start = self.logs[node], self.starts[node]
        first = {epoch: at for at, epoch in reversed(list(enumerate(log))) if epoch != UNWRITTEN}
        ends = {epoch: at for at, epoch in enumerate(log)}
        return tuple((epoch, max(at, start)) for epoch, at in sorted(first.items()) if ends[epoch] >= start)


def settings(rng: random.Random) -> Trace:
    """min.insync.replicas is written and read, by some, in some order; then it is asked for."""
    config: Config = replace(rng.choice((TWO, TWO, CONFIG)), min_isr=rng.choice((1, 2)), lag_rule=rng.random() < 0.15)
    config = replace(config, profile=rng.choice(("elr", "elr", "fetch-truncation")))
    events = list(COPIED)
    asked = (
        lambda: reported(1, "LeaderAppend", **append(1, 0, 1, 1, 1).fields, acks=rng.choice((-1, 1))),
        lambda: change(1, 0, (1,), partition_epoch=2, elr=rng.choice(((), (2,)))),
        lambda: reported(1, "HandleAlterPartitionResponse", isr=(1,), error=0, hw_before=1, hw=rng.choice((1, 2))),
        lambda: lead(1, 1, rng.choice(((1,), (1, 2))), leo=1, hw_before=1, hw=1),
    )
    for _ in range(rng.randint(1, 6)):
        given = {} if rng.random() < 0.2 else {"min_isr": rng.choice(SETTINGS)}
        drawn = rng.random()
        if drawn < 0.35:
            events.append(reported(100, "SetMinIsr", **given))
        elif drawn < 0.75:
            events.append(reported(rng.choice((1, 1, 2)), "ReadConfig", **given))
        else:
            events.append(rng.choice(asked)())
    events.append(rng.choice(asked)())
    return Trace("", "t-0", config, numbered(events))
