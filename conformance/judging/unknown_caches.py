"""TRUNC-01 where the follower's epoch cache is unknown: does any cache explain the truncation?

Rules of this file

1. Judged after everything else, on the truncations that the judge left undecided because it did not know the cache. z3 looks
   for a cache with which the rule truncates as the follower did (`spec.proofs.explain`; four entries are a complete search).
2. A cache that explains the truncation decides nothing: it could have been so. It is told in a note. No cache at all is a
   failure: whatever the follower had, it did not do this.
3. Without z3 nothing is decided, and a note says that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tidegauge.conformance.judging.judge import Failure, Judgement, RuleTally
from tidegauge.conformance.judging.replay import Snapshot, replay
from tidegauge.traces.columns import Columns
from tidegauge.traces.schema import Config, Event, Trace

RULE = "TRUNC-01"
TRUNCATING = ("HandleDivergingResponse", "HandleEpochResponse")
REQUESTS = ("SendFetch", "SendEpochRequest")
COMPARED = "epoch caches that explain the truncation"
MOST = 50
"""Truncates looked at in one input; a search takes some hundredths of a second."""


@dataclass(frozen=True)
class UndecidedTruncation:
    """A truncation by a follower whose cache is unknown, as the trace tells it."""

    trace: int
    row: int
    at: str
    log_end: int
    response: tuple[int, int]
    target: int
    completed: bool | None
    log_start: int | None
    latest_epoch: int | None

    def words(self) -> str:
        """What was seen."""
        epoch, end = self.response
        again = {None: "", True: ", done", False: ", asking again"}[self.completed]
        return f"{self.at}: LEO {self.log_end}, told (epoch {epoch}, end {end}), truncated at {self.target}{again}"


def judge_unknown_caches(judgement: Judgement, traces: Sequence[Trace], columns: Columns, config: Config) -> Judgement:
    """The judgement with notes on the undecided truncates, and failures for those that no cache explains."""
    if not judgement.tallies[RULE].undecided:
        return judgement
    try:
        from tidegauge.spec.proofs.explain import Truncation, cache_explaining  # noqa: PLC0415  z3 is an extra
    except ModuleNotFoundError:
        note = f"{RULE}: whether any epoch cache explains the undecided truncates was not asked: z3 is not installed"
        return replace(judgement, notes=(*judgement.notes, note))
    notes: list[str] = []
    unexplained: list[UndecidedTruncation] = []
    truncations = list(islice(undecided_truncations(traces, columns, config), MOST + 1))
    for truncation in truncations[:MOST]:
        seen = Truncation(
            truncation.log_end,
            *truncation.response,
            truncation.target,
            truncation.completed,
            truncation.log_start,
            truncation.latest_epoch,
        )
        cache = cache_explaining(seen)
        if cache is None:
            unexplained.append(truncation)
            notes.append(f"{RULE}: no epoch cache explains {truncation.words()}")
        else:
            notes.append(f"{RULE}: {cache} would explain {truncation.words()}")
    if len(truncations) > MOST:
        notes.append(f"{RULE}: {MOST} undecided truncates were looked at; there are more")
    return _with_failures(replace(judgement, notes=(*judgement.notes, *notes)), unexplained)


def undecided_truncations(traces: Sequence[Trace], columns: Columns, config: Config) -> Iterator[UndecidedTruncation]:
    """Every truncation whose cache is unknown, where log end, answer and target are known."""
    for number, trace in enumerate(traces):
        rows = [at for at, event in enumerate(trace.events) if event.event in TRUNCATING]
        if not rows:
            continue
        first = int(columns.trace_starts[number])
        before = {s.row: s for s in replay(columns, config, number, first + rows[-1], len(trace.events))}
        for at in rows:
            truncation = _truncate(number, first + at, trace.events[: at + 1], before[first + at - 1], config)
            if truncation is not None:
                yield truncation


def _truncate(trace: int, row: int, events: Sequence[Event], known: Snapshot, config: Config) -> UndecidedTruncation | None:
    event = events[-1]
    replica = known.replicas[config.nodes.index(event.node)]
    reported = event.fields
    log_end = reported.get("leo_before", replica.leo)
    response = reported.get("div_epoch"), reported.get("div_end")
    target, latest = reported.get("target"), _latest_epoch(events)
    if replica.epochs is not None or reported.get("error", 0) != 0:
        return None
    # a cache known to be empty covers no log with records, so the search has no response for it
    if log_end is None or target is None or response[0] is None or response[1] is None or latest == -1:
        return None
    completed = reported.get("completed")
    where = event.at or f"event {len(events)}"
    return UndecidedTruncation(
        trace, row, where, log_end, (response[0], response[1]), target, completed, replica.log_start, latest
    )


def _latest_epoch(events: Sequence[Event]) -> int | None:
    """The epoch the follower asked with is the last in its cache (FETCH-02)."""
    for event in reversed(events):
        if event.node == events[-1].node:
            if "req_last_epoch" in event.fields:
                latest = event.fields["req_last_epoch"]
                return -1 if latest is None else int(latest)
            if event.event in REQUESTS:
                return None
    return None


def _with_failures(judgement: Judgement, unexplained: Sequence[UndecidedTruncation]) -> Judgement:
    if not unexplained:
        return judgement
    old: RuleTally = judgement.tallies[RULE]
    failing = {failure.trace for failure in judgement.failures if failure.rule == RULE}
    new: dict[int, Failure] = {}
    for truncation in unexplained:
        if truncation.trace not in failing:
            new.setdefault(truncation.trace, Failure(truncation.trace, truncation.row, RULE, COMPARED, 1, 0))
    tally = replace(
        old,
        failed=old.failed + len(unexplained),
        undecided=old.undecided - len(unexplained),
        failed_traces=old.failed_traces + len(new),
    )
    failures = tuple(sorted((*judgement.failures, *new.values()), key=lambda failure: (failure.trace, failure.row)))
    return replace(judgement, tallies={**judgement.tallies, RULE: tally}, failures=failures)
