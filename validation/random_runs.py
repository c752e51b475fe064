"""The judge against runs of the implementation that no explored graph holds: two and three brokers, 200 steps each.

Rules of this file

1. A right profile must show nothing. A profile with a known hole may break exactly the rules that hole breaks, and
   whether it does is part of the result: a judge that has become blind to it is seen here.
2. A run is named walk-SEED-NUMBER and depends on these two and the case alone; `replay` makes it again.
3. Runs are made and judged a chunk at a time: memory does not grow with their number.
"""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tidegauge.conformance.engine.judge import judge
from tidegauge.impl.cluster.cluster import Bounds, actions, step
from tidegauge.impl.explorer.explore import find_violation
from tidegauge.impl.explorer.faults import fault_named
from tidegauge.impl.explorer.spec_view import view
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.behaviour import trace_of_path
from tidegauge.traces.from_model.impl_walks import impl_walks
from tidegauge.traces.schema import Trace
from tidegauge.util.errors import UsageError
from tidegauge.util.workers import Echo, workers

STEPS = 200
CHUNK = 100
"""Runs made and judged together."""

MOST_CHUNKS = 100_000

LOSS = Bounds(brokers=2, max_log=2, max_epoch=3, max_crashes=0)
"""Where a shortest loss is looked for."""

LOST = frozenset({"DATA-01", "DATA-02", "DATA-03"})
"""What the loss of a committed record breaks."""

MISSED_EPOCH = LOST | {"HW-08"}
"""A leader that missed an epoch counts log ends from before it (all releases up to 4.3.1), and commits too much."""

COUNTED_BEFORE = frozenset({"HW-08"})
"""The same where it loses nothing. With two brokers it takes a high watermark that waited for min.insync.replicas: what was
recorded in an earlier epoch then moves it, and nobody else can have truncated that."""

DUPLICATES = "requests twice"
KEEPING = "on a network that keeps"
"""Requests to former leaders, and requests that were given up, are handled later."""

LOST_DISKS = "lost disks"
"""The last member of the ISR may come back empty, and leads again: nobody else may (KIP-966)."""

CLIENTS = "with clients"
"""Producers with acks=all and consumers."""

LOG_STARTS = "log starts that move"
"""DeleteRecords and retention; a follower that stayed behind starts again at the leader's log start."""


@dataclass(frozen=True)
class RunCase:
    """A profile with so many brokers, perhaps with a seeded fault, and the rules that its known hole may break.

    `shown_by`: so many runs always show the hole; 0 where it is too rare to promise that.
    `besides` is what spec/Replication.tla does not have: DUPLICATES, KEEPING, LOST_DISKS, CLIENTS or LOG_STARTS.
    """

    profile: str
    brokers: int
    known: frozenset[str] = frozenset()
    shown_by: int = 0
    fault: str = ""
    besides: str = ""

    @property
    def bounds(self) -> Bounds:
        """Bounds that 200 steps seldom reach."""
        return Bounds(
            self.brokers,
            max_log=24,
            max_epoch=12,
            max_crashes=4,
            max_fetch=4,
            max_duplicates=STEPS if self.besides == DUPLICATES else 0,
            keeps_in_flight=self.besides == KEEPING,
            max_abandoned=4 if self.besides == KEEPING else 0,
            max_lost_disks=2 if self.besides == LOST_DISKS else 0,
            max_waiting=8 if self.besides == CLIENTS else 0,
            max_start=24 if self.besides == LOG_STARTS else 0,
            min_insync_replicas=2 if self.profile in {"elr", "safe"} else 1,
            loses_tails=True,
        )

    @property
    def name(self) -> str:
        """For reports."""
        return ", ".join([self.profile, f"{self.brokers} brokers", *filter(None, (self.besides, self.fault))])

    def walks(self, count: int, steps: int, seed: int) -> Iterator[Trace]:
        """Yield the first `count` runs of `seed`."""
        rules = fault_named(self.fault).rules if self.fault else None
        return impl_walks(count, bounds=self.bounds, profile=self.profile, steps=steps, seed=seed, rules=rules)


CASES = (
    RunCase("fetch-truncation", 2),
    RunCase("fetch-truncation", 3, MISSED_EPOCH),
    RunCase("elr", 2, COUNTED_BEFORE),
    RunCase("elr", 3, MISSED_EPOCH),
    RunCase("safe", 2),
    RunCase("safe", 3),
    RunCase("repaired", 2),
    RunCase("repaired", 3),
    RunCase("kip320", 2),
    RunCase("kip320", 3, MISSED_EPOCH),
    RunCase("kip279", 2, MISSED_EPOCH),
    RunCase("kip279", 3, MISSED_EPOCH),
    RunCase("kip101", 2, MISSED_EPOCH, shown_by=1_000),
    RunCase("kip101", 3, MISSED_EPOCH, shown_by=1_000),
    RunCase("repaired", 3, besides=DUPLICATES),
    RunCase("kip320", 3, MISSED_EPOCH, besides=DUPLICATES),
    RunCase("repaired", 3, besides=KEEPING),
    RunCase("repaired", 3, LOST, shown_by=300, besides=LOST_DISKS),
    RunCase("repaired", 3, besides=CLIENTS),
    RunCase("repaired", 2, besides=LOG_STARTS),
    RunCase("repaired", 3, besides=LOG_STARTS),
    RunCase("kip101", 2, MISSED_EPOCH, besides=CLIENTS),
    RunCase("hw-only", 2, MISSED_EPOCH, shown_by=1_000),
    RunCase("hw-only", 3, MISSED_EPOCH, shown_by=1_000),
)


@dataclass(frozen=True)
class JudgedCase:
    """The judge's verdict on the runs of one case. `unexpected` is the first run that breaks a rule it must not break."""

    case: RunCase
    runs: int
    events: int
    failed: dict[str, int]
    unexpected: Trace | None
    seconds: float

    @property
    def right(self) -> bool:
        """Only known rules fail, and they do if there were enough runs."""
        # A hole that no run shows any more is a finding too: the case would have lost its sense.
        shown = bool(self.failed) or not self.case.shown_by or self.runs < self.case.shown_by
        return self.runs > 0 and set(self.failed) <= self.case.known and shown

    @property
    def says(self) -> str:
        """One line."""
        failed = ", ".join(f"{rule} in {runs:,} runs" for rule, runs in sorted(self.failed.items())) or "no rule fails"
        known = " (known)" if self.failed and self.right else ""
        first = f"; first unexpected: {self.unexpected.name}" if self.unexpected is not None else ""
        return f"{self.runs:,} runs, {self.events:,} events: {failed}{known}{first}"


def judge_runs(
    runs: int,
    *,
    cases: Sequence[RunCase] = CASES,
    steps: int = STEPS,
    seed: int = 0,
    processes: int = 1,
    echo: Echo = lambda _line: None,
) -> tuple[JudgedCase, ...]:
    """Judge `runs` runs of each case; `processes` share the chunks."""
    if processes == 1:
        return tuple(_sum_of(case, map(_judge_chunk, _chunks(case, runs, steps, seed)), echo) for case in cases)
    with workers(processes) as side_by_side:
        return tuple(_sum_of(case, side_by_side(_judge_chunk, _chunks(case, runs, steps, seed)), echo) for case in cases)


def replay(case: RunCase, name: str, steps: int = STEPS) -> Trace:
    """Make the run called `name` again."""
    parts = name.split("-")
    if len(parts) != 3 or parts[0] != "walk" or not (parts[1] + parts[2]).isdecimal():
        raise UsageError(f"run: expected walk-SEED-NUMBER, seen {name!r}; a report names it")
    seed, number = int(parts[1]), int(parts[2])
    return next(islice(case.walks(number + 1, steps, seed), number, None))


def shortest_loss(profile: str, bounds: Bounds = LOSS) -> Trace:
    """Return a shortest run after which a member of the ISR lacks a committed record, with its election.

    Random runs meet the hole of kip279 too rarely to wait for it.
    """
    found = find_violation(bounds, profile, invariants=("IsrCompleteness",))
    if found is None:
        raise UsageError(
            f"profile: expected one that loses committed records, seen {profile}; hw-only, kip101 and kip279 do"
        )
    states, labels = list(found.states), list(found.labels)
    # The invariant names the ISR member that lacks the record; elect it, so that the trace shows the loss itself.
    (lacks,) = found.violation.brokers
    for label in (("ElectPreferred", lacks), ("BecomeLeader", lacks)):
        if label in actions(states[-1]):
            states.append(step(states[-1], label))
            labels.append(label)
    return trace_of_path([view(state) for state in states], labels, name=f"{profile}-loses", profile=profile, source="impl")


# ---------------------------------------------------------------------------------------------------------------------
# Chunks


@dataclass(frozen=True)
class _Chunk:
    """A number of runs of a case that one process judges."""

    case: RunCase
    runs: int
    steps: int
    seed: int


@dataclass(frozen=True)
class _ChunkResult:
    """The sums of one chunk, and its first run that breaks a rule it must not break."""

    runs: int
    events: int
    failed: dict[str, int]
    unexpected: Trace | None


def _chunks(case: RunCase, runs: int, steps: int, seed: int) -> Iterator[_Chunk]:
    for number, first in enumerate(range(0, runs, CHUNK)):
        yield _Chunk(case, min(CHUNK, runs - first), steps, seed * MOST_CHUNKS + number)


def _judge_chunk(chunk: _Chunk) -> _ChunkResult:
    case = chunk.case
    traces = list(case.walks(chunk.runs, chunk.steps, chunk.seed))
    columns = to_columns(traces, traces[0].config)
    judgement = judge(columns, traces[0].config)
    wrong = [failure.trace for failure in judgement.failures if failure.rule not in case.known]
    return _ChunkResult(
        len(traces),
        len(columns),
        {rule: tally.failed_traces for rule, tally in judgement.tallies.items() if tally.failed},
        traces[min(wrong)] if wrong else None,
    )


def _sum_of(case: RunCase, chunks: Iterator[_ChunkResult], echo: Echo) -> JudgedCase:
    begin = time.perf_counter()
    runs = events = 0
    failed: Counter[str] = Counter()
    unexpected: Trace | None = None
    for chunk in chunks:
        runs += chunk.runs
        events += chunk.events
        failed.update(chunk.failed)
        unexpected = unexpected if unexpected is not None else chunk.unexpected
    judged = JudgedCase(case, runs, events, dict(failed), unexpected, time.perf_counter() - begin)
    echo(f"{case.name}: {judged.says} ({judged.seconds:.1f} s)")
    return judged
