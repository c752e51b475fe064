"""`python -m validation.broken_promises [HISTORIES]`: random histories of the reference, each promise broken on purpose.

Rules of this file

1. A history is a run of the reference with clients (validation.random_runs), in which no rule fails. Of every kind of
   break one place is drawn where it fits, and the history up to there, with the wrong event, is judged.
2. A break says something to somebody outside that the protocol does not allow there: a success, records, a high watermark,
   an accepted proposal. What each broker has at that place is kept from the events before it.
3. A kind that is not always caught has its reason in LET_PASS. A kind of which one passes without a reason fails the run,
   and so does a reason that nothing needs.
4. History n of seed s depends on these two alone.
"""

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from tidegauge.conformance.engine.judge import COMPILE_FROM, judge
from tidegauge.impl.rules import NONE, NOT_LEADER_OR_FOLLOWER
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.behaviour import numbered
from tidegauge.traces.schema import Config, Event, Trace
from validation.random_runs import CLIENTS, RunCase

HISTORIES = 10_000
STEPS = 60
COMPILED = 400
"""So many histories are worth compiling the judge for."""
TOGETHER = 40
"""Histories made and judged together: few enough that the judge keeps every failure."""

CASES = (
    RunCase("repaired", 3, besides=CLIENTS),
    RunCase("repaired", 2, besides=CLIENTS),
    RunCase("fetch-truncation", 2, besides=CLIENTS),
)


@dataclass
class BrokerThen:
    """One broker at a place of a history: `log` has the epoch of each record, `own` what it appended itself, by offset."""

    up: bool = True
    leads: bool = False
    epoch: int = -1
    hw: int = 0
    log: list[int] = field(default_factory=list)
    own: dict[int, int] = field(default_factory=dict)
    asked: dict[int, int] = field(default_factory=dict)
    """The end of each append that a producer with acks=all waits for, with its epoch."""


@dataclass
class Then:
    """The cluster at a place of a history."""

    brokers: dict[int, BrokerThen]
    leader: int | None = None
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    live: tuple[int, ...] = ()
    registered: list[tuple[int, ...]] = field(default_factory=list)
    """The ISRs of this leader epoch."""
    proposed: dict[int, tuple[int, ...]] = field(default_factory=dict)
    last_proposed: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The same in this leader epoch, whatever became of it."""
    responses: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """The records in the last response that a leader gave a follower."""

    def after(self, event: Event) -> None:
        """Add an event."""
        values = event.fields
        if event.event == "ChangePartition":
            if values["leader_epoch"] != self.leader_epoch:
                self.registered, self.last_proposed = [], {}
            self.leader, self.leader_epoch = values["leader"], values["leader_epoch"]
            self.isr, self.live = values["isr"], values["live"]
            self.registered.append(self.isr)
        if event.node not in self.brokers:
            return
        b = self.brokers[event.node]
        if event.event in ("ExpandIsr", "ShrinkIsr"):
            self.proposed[event.node] = self.last_proposed[event.node] = values["isr"]
        elif event.event in ("Crash", "Stop", "Start"):
            b.up, b.leads, b.epoch, b.asked = event.event == "Start", False, -1, {}
        elif event.event in ("BecomeLeader", "BecomeFollower"):
            b.leads, b.epoch = event.event == "BecomeLeader", values["leader_epoch"]
            self.proposed.pop(event.node, None)
        elif event.event == "ProduceAck":
            b.asked.pop(values["rec_end"], None)
        del b.log[values.get("leo", len(b.log)) :]
        if event.event == "LeaderAppend":
            b.log += [values["rec_epoch"]] * (values["rec_end"] - values["rec_base"])
            b.own |= dict.fromkeys(range(values["rec_base"], values["rec_end"]), values["rec_epoch"])
            b.asked[values["rec_end"]] = values["rec_epoch"]
        elif event.event == "HandleFetch" and "rec_base" in values:
            self.responses[values["peer"], event.node] = b.log[values["rec_base"] : values["rec_end"]]
        elif event.event == "HandleFetchResponse":
            b.log += self.responses[event.node, values["peer"]]
        b.hw = values.get("hw", b.hw)


Break = Callable[[Then, random.Random], Iterator[Event]]
"""The wrong events that fit at a place."""


def ack(node: int, end: int, **fields: int) -> Event:
    """Return a success for an acks=all produce."""
    return Event(node, "ProduceAck", {"acks": -1, "rec_end": end, "error": NONE, **fields})


def _before_it_is_safe(then: Then, _rng: random.Random) -> Iterator[Event]:
    for node, b in then.brokers.items():
        if b.up and b.leads:
            yield from (ack(node, end, rec_epoch=epoch) for end, epoch in b.asked.items() if end > b.hw)


def _beyond_the_log(then: Then, _rng: random.Random) -> Iterator[Event]:
    yield from (ack(node, len(b.log) + 1) for node, b in then.brokers.items() if b.up and b.leads)


def _by_a_deposed_broker(then: Then, _rng: random.Random) -> Iterator[Event]:
    for node, b in then.brokers.items():
        if b.up and not b.leads and b.epoch >= 0:
            yield from (ack(node, at + 1) for at in b.own if at < b.hw)


def _of_a_truncated_record(then: Then, _rng: random.Random) -> Iterator[Event]:
    for node, b in then.brokers.items():
        if b.up and b.leads:
            yield from (ack(node, at + 1) for at, epoch in b.own.items() if at < b.hw and b.log[at] != epoch)


def _of_a_truncated_record_by_its_epoch(then: Then, rng: random.Random) -> Iterator[Event]:
    for said in _of_a_truncated_record(then, rng):
        epoch = then.brokers[said.node].own[said.fields["rec_end"] - 1]
        yield replace(said, fields={**said.fields, "rec_epoch": epoch})


def _of_a_kept_record_by_who_leads_again(then: Then, _rng: random.Random) -> Iterator[Event]:
    for node, b in then.brokers.items():
        if b.up and b.leads:
            yield from (
                ack(node, at + 1) for at, epoch in b.own.items() if epoch < b.epoch and b.log[at : at + 1] == [epoch]
            )


def _shown_above(then: Then, rng: random.Random) -> Iterator[Event]:
    for node, b in then.brokers.items():
        if b.up and b.hw < len(b.log):
            bound = rng.randint(b.hw + 1, len(b.log))
            yield Event(node, "Read", {"bound": bound, "rec_end": bound})


def _shown_beyond_the_bound(then: Then, _rng: random.Random) -> Iterator[Event]:
    for node, b in then.brokers.items():
        if b.up and b.leads:
            yield Event(node, "Read", {"bound": b.hw, "rec_end": b.hw + 1})


def _shown_by_a_follower(then: Then, _rng: random.Random) -> Iterator[Event]:
    for node, b in then.brokers.items():
        if b.up and not b.leads and b.epoch >= 0 and b.hw > 0:
            yield Event(node, "Read", {"bound": b.hw, "rec_end": b.hw})


def _accepts_of_another(then: Then, _rng: random.Random) -> Iterator[Event]:
    yield from (_accepted(node, then.leader_epoch, then.isr) for node in then.brokers if node != then.leader)


def _accepts_of_an_older_epoch(then: Then, _rng: random.Random) -> Iterator[Event]:
    if then.leader is not None and then.leader_epoch > 0:
        yield _accepted(then.leader, then.leader_epoch - 1, then.isr)


def _accepts_nobody(then: Then, _rng: random.Random) -> Iterator[Event]:
    if then.leader is not None:
        yield _accepted(then.leader, then.leader_epoch, ())


def _accepts_without_a_proposal(then: Then, _rng: random.Random) -> Iterator[Event]:
    for isr in _larger(then):
        if then.leader is not None and set(then.proposed.get(then.leader, ())) != set(isr):
            yield _accepted(then.leader, then.leader_epoch, isr)


def _grows_without_a_proposal(then: Then, _rng: random.Random) -> Iterator[Event]:
    for isr in _larger(then):
        if then.leader is not None and set(then.last_proposed.get(then.leader, ())) != set(isr):
            yield Event(100, "ChangePartition", _registration(then, isr))


def _grows_by_a_spent_proposal(then: Then, _rng: random.Random) -> Iterator[Event]:
    for isr in _larger(then):
        last, now = (set(made.get(then.leader or 0, ())) for made in (then.last_proposed, then.proposed))
        if last == set(isr) != now:
            yield Event(100, "ChangePartition", _registration(then, isr))


def _hears_of_an_isr_that_is_not_registered(then: Then, _rng: random.Random) -> Iterator[Event]:
    if then.leader is not None and then.brokers[then.leader].leads and (then.leader,) not in then.registered:
        b = then.brokers[then.leader]
        if b.up and b.epoch == then.leader_epoch:
            values = {"isr": (then.leader,), "error": NONE, "hw_before": b.hw, "hw": b.hw}
            yield Event(then.leader, "HandleAlterPartitionResponse", values)


def _larger(then: Then) -> Iterator[tuple[int, ...]]:
    yield from (tuple(sorted({*then.isr, node})) for node in then.live if node not in then.isr)


def _registration(then: Then, isr: tuple[int, ...]) -> dict[str, object]:
    return {"leader": then.leader, "leader_epoch": then.leader_epoch, "isr": isr, "live": then.live, "clean": True}


def _accepted(node: int, epoch: int, isr: tuple[int, ...]) -> Event:
    return Event(100, "AlterPartition", {"peer": node, "leader_epoch": epoch, "isr": isr, "error": NONE})


BREAKS: Mapping[str, Break] = MappingProxyType(
    {
        "ProduceAck: before the high watermark has passed it": _before_it_is_safe,
        "ProduceAck: beyond the log": _beyond_the_log,
        "ProduceAck: by a broker that was deposed": _by_a_deposed_broker,
        "ProduceAck: of a truncated record, by a re-elected leader": _of_a_truncated_record,
        "ProduceAck: the same, with its epoch": _of_a_truncated_record_by_its_epoch,
        "ProduceAck: of a surviving record, by a re-elected leader": _of_a_kept_record_by_who_leads_again,
        "Read: above the high watermark": _shown_above,
        "Read: records beyond its bound": _shown_beyond_the_bound,
        "Read: by a follower, below its high watermark": _shown_by_a_follower,
        "AlterPartition: accepted from another broker than the leader": _accepts_of_another,
        "AlterPartition: accepted from an older leader epoch": _accepts_of_an_older_epoch,
        "AlterPartition: nobody left": _accepts_nobody,
        "AlterPartition: accepted, but never proposed": _accepts_without_a_proposal,
        "ChangePartition: the ISR grows, and nobody proposed it": _grows_without_a_proposal,
        "ChangePartition: the ISR grows by an older proposal": _grows_by_a_spent_proposal,
        "HandleAlterPartitionResponse: an ISR that is not registered": _hears_of_an_isr_that_is_not_registered,
    }
)
"""Breaks by an event that is added."""

ALTERED: Mapping[str, tuple[str, str, Callable[[int], int]]] = MappingProxyType(
    {
        "ProduceAck: success instead of an error": ("ProduceAck", "error", lambda _error: NONE),
        "HandleFetch: a high watermark too high in the response": ("HandleFetch", "res_hw", lambda hw: hw + 1),
        "HandleFetch: a high watermark too low in the response": ("HandleFetch", "res_hw", lambda hw: hw - 1),
        "HandleFetch: the high watermark rises too far": ("HandleFetch", "hw", lambda hw: hw + 1),
    }
)
"""Breaks by one field of an event of the history: kind, field, and the wrong value."""

LET_PASS: Mapping[str, str] = MappingProxyType(
    {
        "ProduceAck: of a surviving record, by a re-elected leader": "the leader may answer an idempotent producer's retry",
        "Read: by a follower, below its high watermark": "consumers may fetch from followers (KIP-392)",
        "AlterPartition: accepted, but never proposed": "an accepted proposal shows in the next change, which is judged",
        "ChangePartition: the ISR grows by an older proposal": "AlterPartition has the partition epoch",
    }
)
"""The kinds that may pass, with the reason."""


def let_pass_table() -> str:
    """Return LET_PASS as the table of docs/judge.md."""
    return "\n".join(("| promise | because |", "|---|---|", *(f"| {kind} | {why} |" for kind, why in LET_PASS.items())))


@dataclass(frozen=True)
class BrokenHistory:
    """A history up to a wrong event, and the kind of break."""

    kind: str
    trace: Trace


def broken_histories(trace: Trace, rng: random.Random) -> Iterator[BrokenHistory]:
    """Yield the history with each kind of break for which it has a place."""
    places: dict[str, list[tuple[int, Event]]] = {kind: [] for kind in (*BREAKS, *ALTERED)}
    then = Then({node: BrokerThen() for node in trace.config.nodes})
    for at, event in enumerate(trace.events):
        then.after(event)
        # Between two events of one step nobody is asked.
        if event.event in ("ExpandIsr", "Start"):
            continue
        for kind, finds in BREAKS.items():
            found = list(finds(then, rng))
            if found:
                places[kind].append((at + 1, rng.choice(found)))
        for kind, (name, changed, wrong) in ALTERED.items():
            was = event.fields.get(changed)
            if event.event == name and was is not None and _fits(event, was, wrong(was)):
                places[kind].append((at, replace(event, fields={**event.fields, changed: wrong(was)})))
    for kind, offered in places.items():
        if offered:
            upto, wrong_event = rng.choice(offered)
            yield BrokenHistory(kind, replace(trace, events=numbered((*trace.events[:upto], wrong_event))))


def _fits(event: Event, was: int, other: int) -> bool:
    """Return whether a wrong value is one there: a record may be safe although too few have it, and below 0 is no value."""
    if event.event == "ProduceAck":
        return was == NOT_LEADER_OR_FOLLOWER
    return event.fields["error"] == NONE and other >= 0


@dataclass
class Outcome:
    """What became of one kind: how many were offered, how many caught, and by which rules."""

    offered: int = 0
    caught: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    first: Trace | None = None
    """The first that passed."""


def judged(
    histories: Sequence[BrokenHistory], config: Config, outcomes: dict[str, Outcome], compile_from: int = COMPILE_FROM
) -> None:
    """Judge broken histories of one config and add up what became of them."""
    columns = to_columns([history.trace for history in histories], config)
    failing: dict[int, set[str]] = {}
    judgement = judge(columns, config, compile_from=compile_from)
    for failure in judgement.failures:
        failing.setdefault(failure.trace, set()).add(failure.rule)
    if len(judgement.failures) < sum(tally.failed_traces for tally in judgement.tallies.values()):
        raise ValueError(f"expected room for all failures of {len(histories)} histories: judge fewer at a time")
    for at, history in enumerate(histories):
        outcome = outcomes.setdefault(history.kind, Outcome())
        outcome.offered += 1
        outcome.caught += at in failing
        outcome.rules.update(failing.get(at, ()))
        if at not in failing and outcome.first is None:
            outcome.first = history.trace


def break_promises(histories: int, seed: int, steps: int = STEPS, cases: Sequence[RunCase] = CASES) -> dict[str, Outcome]:
    """Break every promise in so many histories, the cases in turn."""
    outcomes: dict[str, Outcome] = {}
    share = -(-histories // len(cases))
    for number, case in enumerate(cases):
        left = min(share, histories - number * share)
        runs = case.walks(max(left, 0), steps, seed)
        rng = random.Random(f"{seed} {number}")
        while chunk := [trace for trace, _ in zip(runs, range(min(TOGETHER, left)), strict=False)]:
            left -= len(chunk)
            broken = [history for trace in chunk for history in broken_histories(trace, rng)]
            judged(broken, chunk[0].config, outcomes, 0 if histories >= COMPILED else COMPILE_FROM)
    return outcomes


def wrong(outcomes: Mapping[str, Outcome]) -> list[str]:
    """Return a line for each kind that passes without a reason, has a reason that it does not need, or has no place."""
    lines = [f"{kind}: no history has a place for it" for kind in (*BREAKS, *ALTERED) if kind not in outcomes]
    for kind, outcome in outcomes.items():
        if outcome.caught < outcome.offered and kind not in LET_PASS:
            name = outcome.first.name if outcome.first else ""
            lines.append(f"{kind}: {outcome.offered - outcome.caught:,} pass without a reason, first {name}")
        if outcome.caught == outcome.offered and kind in LET_PASS:
            lines.append(f"{kind}: has a reason to pass, and none does")
    return lines


def main(arguments: Sequence[str]) -> int:
    """Print a line for each kind; 1 where one passes without a reason."""
    parser = argparse.ArgumentParser(prog="python -m validation.broken_promises", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("histories", nargs="?", type=int, default=HISTORIES)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    begin = time.perf_counter()
    print(f"seed {options.seed}, {options.histories:,} histories of {', '.join(case.name for case in CASES)}", flush=True)
    outcomes = break_promises(options.histories, options.seed)
    for kind in (*BREAKS, *ALTERED):
        outcome = outcomes.get(kind, Outcome())
        rules = ", ".join(f"{rule} {times:,}" for rule, times in outcome.rules.most_common(4))
        passes = f"; may pass: {LET_PASS[kind]}" if kind in LET_PASS else ""
        print(f"{kind}: {outcome.caught:,} of {outcome.offered:,} caught ({rules or 'no rule'}){passes}")
    found = wrong(outcomes)
    print("\n".join(f"DIFFERS  {line}" for line in found) or f"all as listed, in {time.perf_counter() - begin:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
