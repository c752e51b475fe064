"""check(paths): judge whatever the paths hold, and report.

Rules of this file

1. A large NDJSON file is judged as columns; where something failed it is read again line by line, to say where.
2. Bad input never stops the rest: it is set aside and counted (conformance.judging.inputs). What fails behind a lost line
   is undecided (conformance.judging.damage).
3. Exit codes: 1 a MUST rule fails; else 2 some input was bad; else 3 nothing could be decided, or not everything; else 0.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from tidegauge.conformance.judging.because.history import HistoryCache
from tidegauge.conformance.judging.damage import undecide_after_loss
from tidegauge.conformance.judging.environment import LostDisk, lost_disk_notes, lost_disks
from tidegauge.conformance.judging.explain import Explanation, explain
from tidegauge.conformance.judging.inputs import InputBatch, InputFindings, open_input, read_input
from tidegauge.conformance.judging.judge import Failure, Judgement, RuleTally, judge
from tidegauge.conformance.judging.partial import keep_certain_failures
from tidegauge.conformance.judging.progress import Echo
from tidegauge.conformance.judging.recurring import Recurring
from tidegauge.conformance.judging.sequence import RULE as SEQUENCE
from tidegauge.conformance.judging.sequence import judge_sequence
from tidegauge.conformance.judging.unknown_caches import RULE as UNKNOWN_CACHES
from tidegauge.conformance.judging.unknown_caches import judge_unknown_caches
from tidegauge.conformance.judging.verdicts import (
    BAD,
    CONFORMS,
    FAILS,
    UNDECIDED,
    RuleVerdict,
    Verdict,
    decides_data_path,
    rule_verdicts,
    run_verdict,
    total_tallies,
)
from tidegauge.impl.errors import TidegaugeError
from tidegauge.impl.releases import profile_named
from tidegauge.traces.files.ndjson_columns import Span
from tidegauge.traces.kafka.lines.selection import Selection
from tidegauge.traces.problems import Problem, lost
from tidegauge.traces.schema import Config

Of = TypeVar("Of")

EXPLAINED_FAILURES = 10
"""Failures explained in a report, unless it is said otherwise."""

WORST = ("DATA-03", "DATA-01", "DATA-02", "READ-01", "ACK-01")
"""The rules about what users lose: their failures are explained first."""


@dataclass(frozen=True)
class JudgedBatch:
    """A batch with what the judge says about it."""

    batch: InputBatch
    judgement: Judgement
    path: str = ""


@dataclass(frozen=True)
class CheckedInput:
    """One path: what it is, and how much of it was read."""

    path: str
    kind: str
    traces: int
    events: int
    problems: tuple[Problem, ...]
    covered: tuple[str, ...] = ()
    """Which part of the life of each node was heard, where a source says so."""
    missing: tuple[str, ...] = ()
    """What would have to be added for a verdict on everything that happened."""
    rules: tuple[RuleVerdict, ...] = field(default=(), repr=False)
    verdict: Verdict = Verdict.SUITE_ERROR


@dataclass(frozen=True)
class Report:
    """The response to `tidegauge check`."""

    inputs: tuple[CheckedInput, ...]
    verdict: Verdict
    rules: tuple[RuleVerdict, ...]
    explanations: tuple[Explanation, ...]
    failures: int
    seconds: float
    notes: tuple[str, ...] = ()
    judged: tuple[JudgedBatch, ...] = field(default=(), repr=False)

    @property
    def events(self) -> int:
        """Events judged."""
        return sum(one.events for one in self.inputs)

    @property
    def traces(self) -> int:
        """Traces judged."""
        return sum(one.traces for one in self.inputs)

    @property
    def missing(self) -> tuple[str, ...]:
        """What the inputs lack."""
        return tuple(said for one in self.inputs for said in one.missing)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that was wrong with the input."""
        return tuple(problem for one in self.inputs for problem in one.problems)

    @property
    def lost(self) -> int:
        """Events that could not be read."""
        return lost(self.problems)

    @property
    def exit_code(self) -> int:
        """0 conforms, 1 a rule fails, 2 bad input, 3 nothing could be decided."""
        if self.verdict is Verdict.FAIL:
            return FAILS
        if self.lost or any(not one.events for one in self.inputs):
            return BAD
        return CONFORMS if self.verdict is Verdict.PASS else UNDECIDED


@dataclass(frozen=True)
class CheckOptions:
    """How paths are judged: `profile` replaces the one their configs name, `layout` is the pattern of broker logs.

    With a `selection` that part of broker logs is judged, with a `span` that of an NDJSON file. Of the failures `explained`
    are explained, the others counted.
    """

    profile: str | None = None
    layout: str | None = None
    selection: Selection | None = None
    explained: int = EXPLAINED_FAILURES
    span: Span | None = None


def check(paths: Sequence[str | Path], how: CheckOptions = CheckOptions(), echo: Echo = lambda _line: None) -> Report:
    """Judge the traces in `paths`. The path `-` is standard input."""
    begin = time.perf_counter()
    inputs: list[CheckedInput] = []
    kept: list[JudgedBatch] = []
    judgements: list[Judgement] = []
    notes: list[str] = []
    by = Recurring().judge
    for path in paths:
        with open_input(path) as source:
            for part, kind, batches, found in read_input(source, how.layout, how.selection, how.span):
                name = str(path) if part == source.name else part
                mine: list[Judgement] = []
                lost: list[LostDisk] = []
                for one in (one for batch in batches for one in judge_batch(batch, name, how.profile, found.problems, by)):
                    lost += lost_disks(one.batch.stored, one.batch.config, one.batch.traces, one.batch.source)
                    mine.append(replace(one.judgement, failures=(), final=()))
                    if one.batch.traces is not None or (
                        one.judgement.failures and sum(len(k.judgement.failures) for k in kept) < how.explained
                    ):
                        kept.append(one)
                    echo(f"{name}: {sum(j.traces for j in mine):,} traces, {sum(j.events for j in mine):,} events judged")
                inputs.append(checked_input(name, kind, found, mine))
                judgements += mine
                notes += [*found.notes, *lost_disk_notes(lost)]
    rules = rule_verdicts(total_tallies(judgements))
    return Report(
        inputs=tuple(inputs),
        verdict=overall_verdict(inputs),
        rules=rules,
        explanations=tuple(explain_failures(kept, how.explained)),
        failures=sum(tally.failed_traces for j in judgements for tally in j.tallies.values()),
        seconds=time.perf_counter() - begin,
        notes=(*notes, *(note for j in judgements for note in j.notes)),
        judged=tuple(kept),
    )


def checked_input(path: str, kind: str, found: InputFindings, judgements: Sequence[Judgement]) -> CheckedInput:
    """What came of one path."""
    tallies = total_tallies(judgements)
    events = sum(judgement.events for judgement in judgements)
    missing = list(found.missing)
    if found.covered and events and not decides_data_path(tallies):
        missing.append("the data path: no rule about what a broker does with records could be decided")
    rules = rule_verdicts(tallies)
    return CheckedInput(
        path=path,
        kind=kind,
        traces=sum(judgement.traces for judgement in judgements),
        events=events,
        problems=tuple(found.problems),
        covered=tuple(found.covered),
        missing=tuple(missing),
        rules=rules,
        verdict=run_verdict(rules, events, whole=not missing),
    )


def overall_verdict(inputs: Sequence[CheckedInput]) -> Verdict:
    """One input that fails, or of which nothing is decided, is not made good by another; one without events is bad input."""
    verdicts = {one.verdict for one in inputs if one.events}
    worst = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS)
    return next((verdict for verdict in worst if verdict in verdicts), Verdict.SUITE_ERROR)


def judge_batch(
    batch: InputBatch, path: str, profile: str | None, problems: list[Problem], by: Callable[..., Judgement] = judge
) -> Iterator[JudgedBatch]:
    """What the judge says about a batch."""
    config = batch.config if profile is None else replace(batch.config, profile=profile)
    unknown = unknown_profile_problem(batch.source, config, len(batch.stored))
    if unknown is not None:
        problems.append(unknown)
        return
    batch = replace(batch, config=config)
    judgement = by(batch.stored, config, 0 if batch.traces is None else len(batch.traces))
    if batch.traces is not None:
        if not batch.counted:
            judgement = judge_sequence(judgement, batch.traces, batch.columns)
        judgement = judge_unknown_caches(judgement, batch.traces, batch.columns, config)
        if batch.damaged is not None:
            judgement = undecide_after_loss(judgement, batch.damaged, batch.traces[0].name)
        if batch.doubts:
            judgement = keep_certain_failures(judgement, batch.traces[0], config, batch.doubts)
    elif batch.by_line is not None:
        if judgement.failures or judgement.tallies[UNKNOWN_CACHES].undecided:
            for again in batch.by_line():
                yield from judge_batch(again, path, profile, problems, by)
            return
        judgement = replace(judgement, tallies=judgement.tallies | {SEQUENCE: RuleTally(batch.numbered, 0, 0, (), 0)})
    yield JudgedBatch(batch, judgement, path)


def unknown_profile_problem(source: str, config: Config, events: int) -> Problem | None:
    """What is wrong where a config names a profile that nobody knows: so many events cannot be judged."""
    try:
        profile_named(config.profile)
    except TidegaugeError as error:
        return Problem(source, None, "a profile this version knows", str(error), "name one with --profile", events)
    return None


def explain_failures(judged: Sequence[JudgedBatch], most: int) -> Iterator[Explanation]:
    """The failures to explain, explained."""
    kept: HistoryCache = {}
    for one, failure in worst_first((of, failure) for of in judged for failure in of.judgement.failures)[:most]:
        batch = one.batch
        explanation = explain(batch.columns, batch.config, failure, batch.traces, batch.source, kept=kept)
        yield replace(explanation, path=one.path)


def worst_first(found: Iterable[tuple[Of, Failure]]) -> list[tuple[Of, Failure]]:
    """Lost records first, then one failure per rule, then the rest, in the order they were found."""
    seen: set[str] = set()
    firsts: list[tuple[Of, Failure]] = []
    others: list[tuple[Of, Failure]] = []
    for pair in found:
        (others if pair[1].rule in seen else firsts).append(pair)
        seen.add(pair[1].rule)
    firsts.sort(key=lambda pair: WORST.index(pair[1].rule) if pair[1].rule in WORST else len(WORST))
    return firsts + others
