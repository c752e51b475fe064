"""TRUNC-01 where the follower's epoch cache is unknown: does any cache explain the truncation?

Rules of this file

1. These truncations are judged after everything else; the judge left them undecided because it did not know the cache. z3
   looks for a cache with which the rule truncates as the follower did (`spec.proofs.explain`; four entries are enough).
2. A cache that explains the truncation decides nothing, since the follower's may have been another: a note names it. If
   there is none, the rule is broken, whatever the follower's cache was.
3. Without z3 nothing is decided, and a note says so.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from itertools import islice

from tidegauge.conformance.judging.judge import Failure, Judgement, RuleTally
from tidegauge.conformance.judging.replay import ReplayedReplica, replay
from tidegauge.traces.columns import Columns
from tidegauge.traces.schema import Config, Event, Trace

RULE = "TRUNC-01"
TRUNCATING = ("HandleDivergingResponse", "HandleEpochResponse")
REQUESTS = ("SendFetch", "SendEpochRequest")
KEEPING = (*REQUESTS, "BecomeFollower", "HandleFetch", "AnswerFetch", "HandleEpochRequest", "Observe")
"""After these events of its node a cache ends as before; after any other it may not."""
COMPARED = "epoch caches that explain the truncation"
MOST = 50
"""Truncations that are looked at in one input; a search takes some hundredths of a second."""


@dataclass(frozen=True)
class UndecidedTruncation:
    """A truncation by a follower whose cache is unknown, as the trace reports it."""

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
        """Describe the truncation."""
        epoch, end = self.response
        again = {None: "", True: ", done", False: ", asking again"}[self.completed]
        return f"{self.at}: LEO {self.log_end}, told (epoch {epoch}, end {end}), truncated at {self.target}{again}"


def judge_unknown_caches(judgement: Judgement, traces: Sequence[Trace], columns: Columns, config: Config) -> Judgement:
    """Return the judgement with a note on each undecided truncation, and a failure for each that no cache explains."""
    return with_truncations(judgement, undecided_truncations(traces, columns, config))


def with_truncations(judgement: Judgement, undecided: Iterable[UndecidedTruncation]) -> Judgement:
    """Return the same judgement from undecided truncations that were collected before."""
    if not judgement.tallies[RULE].undecided:
        return judgement
    if not can_explain():
        note = f"{RULE}: whether any epoch cache explains the undecided truncations was not asked: z3 is not installed"
        return replace(judgement, notes=(*judgement.notes, note))
    notes: list[str] = []
    unexplained: list[UndecidedTruncation] = []
    truncations = list(islice(undecided, MOST + 1))
    for truncation in truncations[:MOST]:
        cache = find_explaining_cache(truncation)
        if cache is None:
            unexplained.append(truncation)
            notes.append(f"{RULE}: no epoch cache explains {truncation.words()}")
        else:
            notes.append(f"{RULE}: {cache} would explain {truncation.words()}")
    if len(truncations) > MOST:
        notes.append(f"{RULE}: {MOST} undecided truncations were looked at; there are more")
    return _with_failures(replace(judgement, notes=(*judgement.notes, *notes)), unexplained)


def can_explain() -> bool:
    """Return whether z3, an optional dependency, is installed."""
    try:
        import_module("tidegauge.spec.proofs.explain")
    except ModuleNotFoundError:
        return False
    return True


@lru_cache(maxsize=MOST)
def find_explaining_cache(seen: UndecidedTruncation) -> object | None:
    """Return a cache that explains the truncation, None if there is none."""
    from tidegauge.spec.proofs.explain import ObservedTruncation, cache_explaining  # noqa: PLC0415  see can_explain

    return cache_explaining(
        ObservedTruncation(seen.log_end, *seen.response, seen.target, seen.completed, seen.log_start, seen.latest_epoch)
    )


def undecided_truncations(traces: Sequence[Trace], columns: Columns, config: Config) -> Iterator[UndecidedTruncation]:
    """Yield each truncation whose cache is unknown while its log end, response and target are known."""
    for number, trace in enumerate(traces):
        rows = [at for at, event in enumerate(trace.events) if event.event in TRUNCATING]
        if not rows:
            continue
        first = int(columns.trace_starts[number])
        snapshots = {s.row: s for s in replay(columns, config, number, first + rows[-1], len(trace.events))}
        latest_epochs = LatestEpochs()
        for at, event in enumerate(trace.events[: rows[-1] + 1]):
            latest = latest_epochs.latest(event)
            if event.event in TRUNCATING:
                replica = snapshots[first + at - 1].replicas[config.nodes.index(event.node)]
                truncation = undecided_truncation(number, first + at, event, at, replica, latest)
                if truncation is not None:
                    yield truncation


def undecided_truncation(
    trace: int, row: int, event: Event, at: int, replica: ReplayedReplica, latest: int | None
) -> UndecidedTruncation | None:
    """Return the truncation in event number `at` of a trace; `replica` is what was known before it."""
    reported = event.fields
    log_end = reported.get("leo_before", replica.leo)
    response = reported.get("div_epoch"), reported.get("div_end")
    target = reported.get("target")
    # With a known cache the judge has decided; a response with an error truncates nothing.
    if replica.epochs is not None or reported.get("error", 0) != 0:
        return None
    # a cache known to be empty covers no log with records, so the search has no response for it
    if log_end is None or target is None or response[0] is None or response[1] is None or latest == -1:
        return None
    completed = reported.get("completed")
    where = event.at or f"event {at + 1}"
    return UndecidedTruncation(
        trace, row, where, log_end, (response[0], response[1]), target, completed, replica.log_start, latest
    )


class LatestEpochs:
    """The epoch that each node last sent, which is the last one in its cache (FETCH-02) until an event may change that."""

    def __init__(self) -> None:
        self._latest: dict[int, int | None] = {}

    def latest(self, event: Event) -> int | None:
        """Return the last epoch in the cache of the event's node before it; -1 if the cache is empty, None if unknown."""
        latest = self._latest.get(event.node)
        if event.event in (*REQUESTS, *TRUNCATING) and "req_last_epoch" in event.fields:
            # Only what the follower reports of itself: in a leader's event the same field is of another node's cache.
            sent = event.fields["req_last_epoch"]
            latest = -1 if sent is None else int(sent)
        elif event.event in REQUESTS:
            latest = None
        self._latest[event.node] = latest if event.event in KEEPING else None
        return latest


def _with_failures(judgement: Judgement, unexplained: Sequence[UndecidedTruncation]) -> Judgement:
    if not unexplained:
        return judgement
    old: RuleTally = judgement.tallies[RULE]
    # Failures are the first of each trace: a trace in which TRUNC-01 has failed already gets no second one.
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
