"""TRUNC-01 where the follower's epoch cache is unknown: does any cache explain the cut?

Rules of this file

1. Judged after everything else, on the cuts that the judge left undecided because it did not know the cache. z3 looks for a
   cache with which the rule cuts as the follower did (`spec.proofs.explain`; four entries are a complete search).
2. A cache that explains the cut decides nothing: it could have been so. It is told in a note. No cache at all is a failure:
   whatever the follower had, it did not do this.
3. Without z3 nothing is decided, and a note says that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from tidegauge.conformance.judging.judge import Failure, Judgement, Tally
from tidegauge.conformance.judging.replay import Snapshot, replay
from tidegauge.traces.columns import Columns
from tidegauge.traces.schema import Config, Event, Trace

RULE = "TRUNC-01"
CUTS = ("HandleDivergingResponse", "HandleEpochResponse")
REQUESTS = ("SendFetch", "SendEpochRequest")
COMPARED = "epoch caches that explain the cut"
MOST = 50
"""Cuts looked at in one input; a search takes some hundredths of a second."""


@dataclass(frozen=True)
class Cut:
    """A cut by a follower whose cache is unknown, as the trace tells it."""

    trace: int
    row: int
    at: str
    log_end: int
    answer: tuple[int, int]
    target: int
    completed: bool | None
    log_start: int | None
    latest_epoch: int | None

    def words(self) -> str:
        """What was seen."""
        epoch, end = self.answer
        again = {None: "", True: ", done", False: ", asking again"}[self.completed]
        return f"{self.at}: LEO {self.log_end}, told (epoch {epoch}, end {end}), cut at {self.target}{again}"


def judge_unknown_caches(judgement: Judgement, traces: Sequence[Trace], columns: Columns, config: Config) -> Judgement:
    """The judgement with notes on the undecided cuts, and failures for those that no cache explains."""
    if not judgement.tallies[RULE].undecided:
        return judgement
    try:
        from tidegauge.spec.proofs.explain import Truncation, cache_explaining  # noqa: PLC0415  z3 is an extra
    except ModuleNotFoundError:
        note = f"{RULE}: whether any epoch cache explains the undecided cuts was not asked: z3 is not installed"
        return replace(judgement, notes=(*judgement.notes, note))
    notes: list[str] = []
    unexplained: list[Cut] = []
    cuts = list(islice(undecided_cuts(traces, columns, config), MOST + 1))
    for cut in cuts[:MOST]:
        seen = Truncation(cut.log_end, *cut.answer, cut.target, cut.completed, cut.log_start, cut.latest_epoch)
        cache = cache_explaining(seen)
        if cache is None:
            unexplained.append(cut)
            notes.append(f"{RULE}: no epoch cache explains {cut.words()}")
        else:
            notes.append(f"{RULE}: {cache} would explain {cut.words()}")
    if len(cuts) > MOST:
        notes.append(f"{RULE}: {MOST} undecided cuts were looked at; there are more")
    return _with_failures(replace(judgement, notes=(*judgement.notes, *notes)), unexplained)


def undecided_cuts(traces: Sequence[Trace], columns: Columns, config: Config) -> Iterator[Cut]:
    """Every cut whose cache is unknown, where log end, answer and target are known."""
    for number, trace in enumerate(traces):
        rows = [at for at, event in enumerate(trace.events) if event.event in CUTS]
        if not rows:
            continue
        first = int(columns.trace_starts[number])
        before = {s.row: s for s in replay(columns, config, number, first + rows[-1], len(trace.events))}
        for at in rows:
            cut = _cut(number, first + at, trace.events[: at + 1], before[first + at - 1], config)
            if cut is not None:
                yield cut


def _cut(trace: int, row: int, events: Sequence[Event], known: Snapshot, config: Config) -> Cut | None:
    event = events[-1]
    replica = known.replicas[config.nodes.index(event.node)]
    told = event.fields
    log_end = told.get("leo_before", replica.leo)
    answer = told.get("div_epoch"), told.get("div_end")
    target, latest = told.get("target"), _latest_epoch(events)
    if replica.epochs is not None or told.get("error", 0) != 0:
        return None
    # a cache known to be empty covers no log with records, so the search has no answer for it
    if log_end is None or target is None or answer[0] is None or answer[1] is None or latest == -1:
        return None
    completed = told.get("completed")
    where = event.at or f"event {len(events)}"
    return Cut(trace, row, where, log_end, (answer[0], answer[1]), target, completed, replica.log_start, latest)


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


def _with_failures(judgement: Judgement, unexplained: Sequence[Cut]) -> Judgement:
    if not unexplained:
        return judgement
    old: Tally = judgement.tallies[RULE]
    failing = {failure.trace for failure in judgement.failures if failure.rule == RULE}
    new: dict[int, Failure] = {}
    for cut in unexplained:
        if cut.trace not in failing:
            new.setdefault(cut.trace, Failure(cut.trace, cut.row, RULE, COMPARED, 1, 0))
    tally = replace(
        old,
        failed=old.failed + len(unexplained),
        undecided=old.undecided - len(unexplained),
        failed_traces=old.failed_traces + len(new),
    )
    failures = tuple(sorted((*judgement.failures, *new.values()), key=lambda failure: (failure.trace, failure.row)))
    return replace(judgement, tallies={**judgement.tallies, RULE: tally}, failures=failures)
