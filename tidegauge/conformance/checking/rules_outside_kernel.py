"""Check the two rules that are checked on events, not by the kernel: SEQ-01, and TRUNC-01 where a cache is unknown.

Each takes a judgement that the kernel has made, and returns it with its own checks, failures and notes added.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from itertools import islice

from tidegauge.conformance.engine.judge import Failure, Judgement, RuleTally
from tidegauge.conformance.explain.replay import ReplayedReplica, replay
from tidegauge.traces.columns import Columns
from tidegauge.traces.schema import Config, Event, Trace

# TRUNC-01 where the follower's epoch cache is unknown: does any cache explain the truncation?
#
# Rules of this part
#
# 1. These truncations are judged after everything else; the judge left them undecided because it did not know the cache. z3
#    looks for a cache with which the rule truncates as the follower did (`spec.proofs.explaining_cache`; four entries are
#    enough).
# 2. A cache that explains the truncation decides nothing, since the follower's may have been another: a note names it. If
#    there is none, the rule is broken, whatever the follower's cache was.
# 3. Without z3 nothing is decided, and a note says so.


UNKNOWN_CACHES_RULE = "TRUNC-01"
TRUNCATING = ("HandleDivergingResponse", "HandleEpochResponse")
"""Events by which a follower truncates as TRUNC-01 says: by the response of its leader, and its own epoch cache."""
REQUESTS = ("SendFetch", "SendEpochRequest")
KEEPING = (*REQUESTS, "BecomeFollower", "HandleFetch", "AnswerFetch", "HandleEpochRequest", "Observe")
"""After these events of its node the last epoch in a cache is the same as before; after any other it may differ."""
COMPARED = "epoch caches that explain the truncation"
MOST_SEARCHED = 50
"""Truncations of one input that are searched for a cache; a search takes some hundredths of a second."""


@dataclass(frozen=True)
class UndecidedTruncation:
    """A truncation by a follower whose epoch cache is unknown, as the trace reports it.

    `at` is where the event was read, `log_end` the LEO before it, `response` the (epoch, end offset) that the leader sent,
    `target` the truncation offset. `completed` is False if the follower has to ask again, None if that is not reported.
    `latest_epoch` is the last epoch in the cache, None if unknown.
    """

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
        """Return the truncation in words, for a note."""
        epoch, end = self.response
        completed = {None: "", True: ", done", False: ", asking again"}[self.completed]
        return f"{self.at}: LEO {self.log_end}, response (epoch {epoch}, end {end}), truncated at {self.target}{completed}"


def judge_unknown_caches(judgement: Judgement, traces: Sequence[Trace], columns: Columns, config: Config) -> Judgement:
    """Return the judgement with a note on each undecided truncation, and a failure for each that no cache explains."""
    return with_truncations(judgement, undecided_truncations(traces, columns, config))


def with_truncations(judgement: Judgement, undecided: Iterable[UndecidedTruncation]) -> Judgement:
    """Return the judgement as `judge_unknown_caches` does, from truncations that were collected before."""
    if not judgement.tallies[UNKNOWN_CACHES_RULE].undecided:
        return judgement
    if not can_explain():
        note = (
            f"{UNKNOWN_CACHES_RULE}: no epoch cache was searched for that explains the undecided truncations, "
            "because z3 is not installed"
        )
        return replace(judgement, notes=(*judgement.notes, note))
    notes: list[str] = []
    unexplained: list[UndecidedTruncation] = []
    truncations = list(islice(undecided, MOST_SEARCHED + 1))  # one more than is searched shows that there are more
    for truncation in truncations[:MOST_SEARCHED]:
        cache = find_explaining_cache(truncation)
        if cache is None:
            unexplained.append(truncation)
            notes.append(f"{UNKNOWN_CACHES_RULE}: no epoch cache explains {truncation.words()}")
        else:
            notes.append(f"{UNKNOWN_CACHES_RULE}: {cache} would explain {truncation.words()}")
    if len(truncations) > MOST_SEARCHED:
        notes.append(
            f"{UNKNOWN_CACHES_RULE}: {MOST_SEARCHED} undecided truncations were searched for a cache; there are more"
        )
    return _with_failures(replace(judgement, notes=(*judgement.notes, *notes)), unexplained)


def can_explain() -> bool:
    """Return whether z3, an optional dependency, is installed."""
    try:
        import_module("tidegauge.spec.proofs.explaining_cache")
    except ModuleNotFoundError:
        return False
    return True


@lru_cache(maxsize=MOST_SEARCHED)
def find_explaining_cache(truncation: UndecidedTruncation) -> object | None:
    """Return an epoch cache that explains the truncation, as an object whose text is the cache; None if there is none."""
    from tidegauge.spec.proofs.explaining_cache import ObservedTruncation, cache_explaining  # noqa: PLC0415  see can_explain

    t = truncation
    return cache_explaining(ObservedTruncation(t.log_end, *t.response, t.target, t.completed, t.log_start, t.latest_epoch))


def undecided_truncations(traces: Sequence[Trace], columns: Columns, config: Config) -> Iterator[UndecidedTruncation]:
    """Yield each truncation whose cache is unknown while its log end, response and target are known."""
    for number, trace in enumerate(traces):
        truncating = [at for at, event in enumerate(trace.events) if event.event in TRUNCATING]
        if not truncating:
            continue
        first, last = int(columns.trace_starts[number]), truncating[-1]
        # By row, what the judge knew after it: a snapshot for every row up to the last truncation, and one before the first.
        snapshots = {snapshot.row: snapshot for snapshot in replay(columns, config, number, first + last, len(trace.events))}
        latest_epochs = LatestEpochs()
        for at, event in enumerate(trace.events[: last + 1]):
            latest = latest_epochs.latest(event)
            if event.event in TRUNCATING:
                # The snapshot of the row before: what was known when the response came.
                replica = snapshots[first + at - 1].replicas[config.nodes.index(event.node)]
                truncation = undecided_truncation(number, first + at, event, at, replica, latest)
                if truncation is not None:
                    yield truncation


def undecided_truncation(
    trace: int, row: int, event: Event, at: int, replica: ReplayedReplica, latest: int | None
) -> UndecidedTruncation | None:
    """Return the truncation that an event reports if its cache is unknown and the rest is known, else None.

    The event has number `at` in trace number `trace`, and `row` in the columns. `replica` is what the judge knew of the
    follower before it, `latest` the last epoch in its cache: -1 if the cache is empty, None if unknown.
    """
    reported = event.fields
    log_end = reported.get("leo_before", replica.leo)
    div_epoch, div_end = reported.get("div_epoch"), reported.get("div_end")
    target = reported.get("target")
    # With a known cache the judge has decided; a response with an error truncates nothing.
    if replica.epochs is not None or reported.get("error", 0) != 0:
        return None
    # A cache that is known to be empty covers no log with records, so the search has no answer for it.
    if log_end is None or target is None or div_epoch is None or div_end is None or latest == -1:
        return None
    completed = reported.get("completed")
    where = event.at or f"event {at + 1}"
    return UndecidedTruncation(
        trace, row, where, log_end, (div_epoch, div_end), target, completed, replica.log_start, latest
    )


class LatestEpochs:
    """The last epoch in the cache of each node, from what it sent (FETCH-02), until an event may have changed the cache."""

    def __init__(self) -> None:
        """Begin with caches that are all unknown."""
        self._latest: dict[int, int | None] = {}  # by node

    def latest(self, event: Event) -> int | None:
        """Take the next event of a trace; return the last epoch in the cache of its node before it.

        -1 is an empty cache, None is unknown.
        """
        latest = self._latest.get(event.node)
        if event.event in (*REQUESTS, *TRUNCATING) and "req_last_epoch" in event.fields:
            # Only what the follower reports of itself: in a leader's event the same field is of another node's cache.
            sent = event.fields["req_last_epoch"]
            latest = -1 if sent is None else int(sent)
        # A request that does not report it: whatever was known is no longer sure.
        elif event.event in REQUESTS:
            latest = None
        # For the next event; what this event itself does to the cache comes after what is returned.
        self._latest[event.node] = latest if event.event in KEEPING else None
        return latest


def _with_failures(judgement: Judgement, unexplained: Sequence[UndecidedTruncation]) -> Judgement:
    """Return the judgement with these truncations of TRUNC-01 counted as failed, no longer as undecided."""
    if not unexplained:
        return judgement
    old: RuleTally = judgement.tallies[UNKNOWN_CACHES_RULE]
    # Failures are the first of each trace: a trace in which TRUNC-01 has failed already gets no second one.
    failing = {failure.trace for failure in judgement.failures if failure.rule == UNKNOWN_CACHES_RULE}
    new: dict[int, Failure] = {}
    for truncation in unexplained:
        if truncation.trace not in failing:
            # Expected at least 1 cache that explains it, seen 0.
            new.setdefault(truncation.trace, Failure(truncation.trace, truncation.row, UNKNOWN_CACHES_RULE, COMPARED, 1, 0))
    tally = replace(
        old,
        failed=old.failed + len(unexplained),
        undecided=old.undecided - len(unexplained),
        failed_traces=old.failed_traces + len(new),
    )
    failures = tuple(sorted((*judgement.failures, *new.values()), key=lambda failure: (failure.trace, failure.row)))
    return replace(judgement, tallies={**judgement.tallies, UNKNOWN_CACHES_RULE: tally}, failures=failures)


# SEQ-01: the numbers of a node's events. Columns do not carry them, so this rule is judged on events.
#
# A node counts its events from any number (`seq`), by one, and may begin again from 0 or 1 when it starts. A number that
# does not follow shows that lines are missing: no broker has broken a rule, so it counts as lost, and the run does not pass.
# An event that is reported twice under one number does break the rule.


SEQUENCE_RULE = "SEQ-01"
GAPS_SHOWN = 5
"""Gaps that notes name; the others are counted."""


class Numbers:
    """Checks the sequence numbers of one trace, event by event.

    `held` counts the numbers that follow, `failed` those that repeat an event, `lost` those that leave a gap; `first` is
    the first failure, None if there is none. `notes` name the first gaps.
    """

    def __init__(self, name: str) -> None:
        """Begin with no event of the trace called `name`."""
        self.name = name
        self.held = self.failed = self.lost = 0
        self.first: Failure | None = None
        self.notes: list[str] = []
        self._last: dict[int, Event] = {}  # by node: its last event with a number

    def take(self, row: int, event: Event) -> None:
        """Check the next event, in this row of the trace."""
        if event.seq is None:
            return
        before = self._last.get(event.node)
        self._last[event.node] = event
        number = None if before is None else before.seq
        # The first number of a node may be any, as a trace may begin in the middle of a log. A broker that starts may count
        # from the beginning.
        if before is None or number is None or event.seq == number + 1 or (event.event == "Start" and event.seq in (0, 1)):
            self.held += 1
        # One number for the same event twice is a report that is wrong; any other number shows that lines were lost.
        elif event.seq == number and (event.event, event.fields) == (before.event, before.fields):
            self.failed += 1
            # The number of the trace, here 0, and the row in the columns are put in later (with_numbers).
            self.first = self.first or Failure(0, row, SEQUENCE_RULE, "seq", number + 1, event.seq)
        else:
            self.lost += 1
            if len(self.notes) < GAPS_SHOWN:
                where = event.at or f"event {row + 1} of {self.name}"
                self.notes.append(f"node {event.node}: lines are missing before {where}: seq {event.seq} follows {number}")


def judge_sequence(judgement: Judgement, traces: Sequence[Trace], columns: Columns) -> Judgement:
    """Return the judgement with SEQ-01 added, checked on the traces that the columns were made from."""
    numbers = [Numbers(trace.name) for trace in traces]
    for trace_numbers, trace in zip(numbers, traces, strict=True):
        for row, event in enumerate(trace.events):
            trace_numbers.take(row, event)
    return with_numbers(judgement, numbers, columns.trace_starts.tolist())


def with_numbers(judgement: Judgement, numbers: Sequence[Numbers], starts: Sequence[int]) -> Judgement:
    """Return the judgement with SEQ-01 added: `numbers` has the checks of each trace, `starts` the row where it begins."""
    failures = [
        replace(checked.first, trace=at, row=starts[at] + checked.first.row)
        for at, checked in enumerate(numbers)
        if checked.first
    ]
    held, failed, lost = (sum(getattr(checked, count) for checked in numbers) for count in ("held", "failed", "lost"))
    notes = [note for checked in numbers for note in checked.notes][:GAPS_SHOWN]
    if lost > GAPS_SHOWN:
        notes.append(f"and {lost - GAPS_SHOWN} more gaps")
    tally = RuleTally(held, failed, failed_traces=len(failures), after_loss=lost)
    merged = sorted((*judgement.failures, *failures), key=lambda failure: (failure.trace, failure.row))
    tallies = {**judgement.tallies, SEQUENCE_RULE: tally}
    return replace(judgement, tallies=tallies, failures=tuple(merged), notes=(*judgement.notes, *notes))
