"""check(paths): judge whatever the paths hold, and report.

A path holds parts, one for each cluster or file of traces; a part comes in batches of traces
(conformance.checking.inputs). The judgement on a batch has a tally for each rule: how many checks held, failed or could not
be decided. A report adds the tallies up, gives each rule and each input a verdict, and explains the worst failures.

Rules of this file

1. A large NDJSON file is judged as columns; where something failed it is read again line by line, to give the line.
2. Bad input never stops the rest: it is set aside and counted (conformance.checking.inputs). A rule that fails after a lost
   line is undecided (conformance.checking.verdicts).
3. Exit codes: 1 a MUST rule fails; else 2 some input was bad; else 3 nothing could be decided, or not everything; else 0.

What happens to a batch of traces, in this order, since each step reads the judgement of the one before:

    judge                  the kernel over all events
    sequence               SEQ-01, on events: columns carry no numbers
    unknown_caches         notes, and failures, for truncations that the kernel left undecided
    damage                 rules that fail after a lost line become undecided: last but one, so that it sees every failure
    partial                failures that a gap in broker logs may explain become undecided
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TypeVar

from tidegauge.conformance.checking.inputs import InputBatch, InputFindings, InputPart, open_input, read_input
from tidegauge.conformance.checking.rules_outside_kernel import SEQUENCE_RULE as SEQUENCE
from tidegauge.conformance.checking.rules_outside_kernel import UNKNOWN_CACHES_RULE as UNKNOWN_CACHES
from tidegauge.conformance.checking.rules_outside_kernel import judge_sequence, judge_unknown_caches
from tidegauge.conformance.checking.situations import Seen, Situation, add, added, situations
from tidegauge.conformance.checking.verdicts import (
    LostDisk,
    RuleVerdict,
    Verdict,
    decides_data_path,
    keep_certain_failures,
    lost_disk_notes,
    lost_disks,
    rule_verdicts,
    run_verdict,
    undecide_after_loss,
)
from tidegauge.conformance.engine.adaptive_judge import AdaptiveJudge
from tidegauge.conformance.engine.judge import (
    Failure,
    Judgement,
    RuleTally,
    TooLargeError,
    add_tallies,
    judge,
    total_tallies,
)
from tidegauge.conformance.explain.causes import HistoryCache
from tidegauge.conformance.explain.explain import Explanation, explain
from tidegauge.impl.releases import profiles_named
from tidegauge.story.story import Story
from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats.ndjson_columns import Span
from tidegauge.traces.kafka_logs.discovery.identify import InputFile
from tidegauge.traces.kafka_logs.discovery.selection import Selection
from tidegauge.traces.kafka_logs.parsing.lines import Gap
from tidegauge.traces.problems import Problem, lost
from tidegauge.traces.schema import Config
from tidegauge.util.errors import BAD, CONFORMS, FAILS, UNDECIDED, TidegaugeError
from tidegauge.util.workers import Echo

Origin = TypeVar("Origin")
"""What a caller keeps beside a failure to find where it came from: its batch, or the name of its trace."""

EXPLAINED_FAILURES = 10
"""Failures that a report explains by default."""

WORST = ("DATA-03", "DATA-01", "DATA-02", "READ-01", "ACK-01")
"""The rules about lost and wrong data: their failures are explained first."""


@dataclass(frozen=True)
class JudgedBatch:
    """A batch with its judgement; `path` is the input that it came from."""

    batch: InputBatch
    judgement: Judgement
    path: str = ""


@dataclass(frozen=True)
class CheckedInput:
    """One part of a path: what it is, how much of it was read, and its verdict."""

    path: str
    kind: str
    traces: int
    events: int
    problems: tuple[Problem, ...]
    covered: tuple[str, ...] = ()
    """The part of each node's life that the source covers, where it says so."""
    missing: tuple[str, ...] = ()
    """What the source lacks for a verdict on everything that happened."""
    checks: Mapping[tuple[str, bool], int] = field(default_factory=dict, repr=False)
    """By rule, how many checks of broker logs hold in any order of a replica's lines (False), or depend on it (True)."""
    gaps: tuple[tuple[str, Gap], ...] = field(default=(), repr=False)
    """Where lines of broker logs are missing, each with the folder of its cluster if there are several."""
    rules: tuple[RuleVerdict, ...] = field(default=(), repr=False)
    verdict: Verdict = Verdict.SUITE_ERROR
    situations: Mapping[Situation, Seen] = field(default_factory=dict, repr=False)
    """Those of its events, if they were asked for."""
    profiles: frozenset[str] = field(default=frozenset(), repr=False)
    """By which its events were judged, if situations were asked for."""

    @property
    def depends_on_order(self) -> dict[str, tuple[int, int]]:
        """By rule: how many of its checks depend on the order of concurrent lines, and how many checks it has in all."""
        dependent = {rule: count for (rule, depends), count in sorted(self.checks.items()) if depends and count}
        return {rule: (count, count + self.checks.get((rule, False), 0)) for rule, count in dependent.items()}


@dataclass(frozen=True)
class Report:
    """The result of `tidegauge check`."""

    inputs: tuple[CheckedInput, ...]
    verdict: Verdict
    rules: tuple[RuleVerdict, ...]
    explanations: tuple[Explanation, ...]
    failures: int
    seconds: float
    notes: tuple[str, ...] = ()
    judged: tuple[JudgedBatch, ...] = field(default=(), repr=False)
    story: Story | None = field(default=None, repr=False)
    """What the lines of broker logs tell, apart from every verdict; None if it was not asked for."""
    files: tuple[InputFile, ...] = field(default=(), repr=False)
    """What each file is that the paths hold, if that was asked for."""

    def with_story(self, story: Story) -> "Report":
        """Return the report with a story; note in the story which lost records had been promised, as the rules found."""
        for explanation in self.explanations:
            # Expected and actual value of these rules: records up to the first were committed (DATA-01) or acknowledged
            # (DATA-03), and a log is right only up to the second.
            promised_end, right_end = explanation.values
            acknowledged = explanation.rule.id == "DATA-03"
            if explanation.rule.id in ("DATA-01", "DATA-03") and promised_end is not None and right_end is not None:
                story.note_broken_promises(explanation.tp, right_end, promised_end, acknowledged)
        # A selected partition without a line may be misspelled; where traces were judged, it was there all the same.
        unseen = (f"no line is about {', '.join(story.unseen)}: check the name",) if story.unseen and not self.traces else ()
        return replace(self, story=story, notes=(*self.notes, *unseen))

    @property
    def events(self) -> int:
        """Events judged."""
        return sum(checked.events for checked in self.inputs)

    @property
    def traces(self) -> int:
        """Traces judged."""
        return sum(checked.traces for checked in self.inputs)

    @property
    def missing(self) -> tuple[str, ...]:
        """What the inputs lack."""
        return tuple(line for checked in self.inputs for line in checked.missing)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Everything that was wrong with the input."""
        return tuple(problem for checked in self.inputs for problem in checked.problems)

    @property
    def lost(self) -> int:
        """Events that could not be read."""
        return lost(self.problems)

    @property
    def exit_code(self) -> int:
        """0 conforms, 1 a rule fails, 2 bad input, 3 nothing could be decided, or not everything (rule 3)."""
        if self.verdict is Verdict.FAIL:
            return FAILS
        # Before UNDECIDED: bad input can be mended, and the events that it lost may be why nothing was decided. An input
        # without events is bad, too.
        if self.lost or any(not checked.events for checked in self.inputs):
            return BAD
        return CONFORMS if self.verdict is Verdict.PASS else UNDECIDED


@dataclass(frozen=True)
class CheckOptions:
    """How paths are judged: `profile` replaces the one that their configs name, `layout` is the pattern of broker logs.

    `selection` is the part of broker logs that is judged, `span` the part of an NDJSON file: its first byte, and one after
    the last. So many failures are `explained`, the others are counted.
    """

    profile: str | None = None
    layout: str | None = None
    selection: Selection | None = None
    explained: int = EXPLAINED_FAILURES
    span: Span | None = None
    situations: bool = False
    """Whether the situations of the events are counted, for a report on coverage."""


def check(
    paths: Sequence[str | PathLike[str]], how: CheckOptions = CheckOptions(), echo: Echo = lambda _line: None
) -> Report:
    """Judge the traces in `paths`; `-` is standard input. `echo` gets a line of progress for each batch."""
    return check_parts(_parts(paths, how), how, echo)


def check_in_worker(path: str | PathLike[str], how: CheckOptions) -> Report:
    """Judge one path, in a process of several; its batches are dropped: the page would need the events of all processes."""
    return replace(check([path], how), judged=())


def _parts(paths: Sequence[str | PathLike[str]], how: CheckOptions) -> Iterator[InputPart]:
    """Yield the parts of all paths; a part with the name of its source gets the path that the user wrote as its name."""
    for path in paths:
        with open_input(path) as source:
            for part in read_input(source, how.layout, how.selection, how.span):
                # They differ for a pipe, which is copied into a file of another name.
                yield part._replace(name=str(path)) if part.name == source.name else part


def check_parts(parts: Iterable[InputPart], how: CheckOptions, echo: Echo = lambda _line: None) -> Report:
    """Judge parts of inputs as `check` does, batch by batch, and report on them; an input of the report is one part."""
    begin = time.perf_counter()
    # Of all parts; the batches that are kept are for explanations and the page.
    inputs: list[CheckedInput] = []
    kept_batches: list[JudgedBatch] = []
    failures_kept = 0
    judgements: list[Judgement] = []
    notes: list[str] = []
    judge_columns = AdaptiveJudge().judge  # one for all parts: it may learn an automaton that is faster
    for name, kind, batches, findings in parts:
        # Of this part.
        judgements_of_part: list[Judgement] = []
        traces = events = 0
        disks_lost: list[LostDisk] = []
        seen: dict[Situation, Seen] = {}
        profiles: set[str] = set()
        for judged in (
            judged for batch in batches for judged in judge_batch(batch, name, how.profile, findings.problems, judge_columns)
        ):
            batch, judgement = judged.batch, judged.judgement
            disks_lost += lost_disks(batch.stored, batch.config, batch.traces, batch.source)
            # The failures are with the batches that are kept.
            judgements_of_part.append(replace(judgement, failures=(), final=()))
            if how.situations:
                add(seen, situations(batch.stored, batch.place))
                profiles.add(batch.config.profile)
            # Batches with events are kept for the page. All columns together may exceed the memory: of those only the ones
            # with a failure to explain are kept.
            if batch.traces is not None or (judgement.failures and failures_kept < how.explained):
                kept_batches.append(judged)
                failures_kept += len(judgement.failures)
            traces, events = traces + judgement.traces, events + judgement.events
            echo(f"{name}: {traces:,} traces, {events:,} events judged")
        # Made after the last batch, since `findings` are complete only then.
        checked = checked_input(name, kind, findings, judgements_of_part)
        inputs.append(replace(checked, situations=seen, profiles=frozenset(profiles)))
        judgements += judgements_of_part
        notes += [*findings.notes, *lost_disk_notes(disks_lost)]
    rules = rule_verdicts(total_tallies(judgements))
    return Report(
        inputs=tuple(inputs),
        verdict=overall_verdict(inputs),
        rules=rules,
        explanations=tuple(explain_failures(kept_batches, how.explained)),
        failures=sum(tally.failed_traces for j in judgements for tally in j.tallies.values()),
        seconds=time.perf_counter() - begin,
        notes=(*notes, *(note for j in judgements for note in j.notes)),
        judged=tuple(kept_batches),
    )


def checked_input(path: str, kind: str, findings: InputFindings, judgements: Sequence[Judgement]) -> CheckedInput:
    """Return the result of one input from the judgements on its batches, and what was noted while it was read."""
    tallies = total_tallies(judgements)
    events = sum(judgement.events for judgement in judgements)
    missing = list(findings.missing)
    # Logs of a controller alone decide its rules: without this line they would pass as if brokers had been checked. Only of
    # broker logs is it said what they cover.
    if findings.covered and events and not decides_data_path(tallies):
        missing.append("the data path: no rule about what a broker does with records could be decided")
    rules = rule_verdicts(tallies)
    return CheckedInput(
        path=path,
        kind=kind,
        traces=sum(judgement.traces for judgement in judgements),
        events=events,
        problems=tuple(findings.problems),
        covered=tuple(findings.covered),
        missing=tuple(missing),
        checks=findings.checks,
        gaps=findings.gaps,
        rules=rules,
        verdict=run_verdict(rules, events, whole=not missing and lost(findings.problems) == 0),
    )


def overall_verdict(inputs: Sequence[CheckedInput]) -> Verdict:
    """Return FAIL if an input fails, PASS if all pass, else INCONCLUSIVE; SUITE_ERROR if no input has a judged event.

    An input without events keeps the others from passing.
    """
    verdicts = {checked.verdict if checked.events else Verdict.SUITE_ERROR for checked in inputs}
    # Nothing was judged.
    if verdicts <= {Verdict.SUITE_ERROR}:
        return Verdict.SUITE_ERROR
    if Verdict.FAIL in verdicts:
        return Verdict.FAIL
    return Verdict.PASS if verdicts == {Verdict.PASS} else Verdict.INCONCLUSIVE


def judge_batch(
    batch: InputBatch,
    path: str,
    profile: str | None,
    problems: list[Problem],
    judge_columns: Callable[..., Judgement] = judge,
) -> Iterator[JudgedBatch]:
    """Judge a batch by its config, or by `profile` instead of the config's; yield the batch with its judgement.

    A batch may be split into its traces, or be read again line by line: then each of these batches is yielded instead.
    What cannot be judged is appended to `problems`. `judge_columns` has the signature of engine.judge.judge.
    """
    config = batch.config if profile is None else replace(batch.config, profile=profile)
    unknown = unknown_profile_problem(batch.source, config, len(batch.stored))
    if unknown is not None:
        problems.append(unknown)
        return
    batch = replace(batch, config=config)
    try:
        # The last states of all traces that are there as events.
        last_states = 0 if batch.traces is None else len(batch.traces)
        judgement = judge_columns(batch.stored, config, last_states)
    except TooLargeError as error:
        # Only a trace that is too large by itself is left out: the others of the batch are judged one by one.
        parts = list(_by_trace(batch))
        # No parts: the batch is that trace.
        if not parts:
            name = batch.source if batch.traces is None else f"{batch.source}: {batch.traces[0].name}"
            do = "split it, or judge it by another --profile; the other traces are judged"
            problems.append(Problem(name, None, "a trace that can be judged", str(error), do, lost=len(batch.stored)))
        for part in parts:
            yield from judge_batch(part, path, profile, problems, judge_columns)
        return
    if batch.traces is not None:
        # Events that the input counts itself have sequence numbers by construction: there is nothing to check.
        if not batch.counted:
            judgement = judge_sequence(judgement, batch.traces, batch.columns)
        judgement = judge_unknown_caches(judgement, batch.traces, batch.columns, config)
        # A batch with a lost line, or with gaps in its logs, has one trace (inputs.InputBatch).
        if batch.damaged is not None:
            judgement = undecide_after_loss(judgement, batch.damaged, batch.traces[0].name)
        # A failure counts only if nothing that may be missing in a gap could explain it.
        if batch.doubts:
            judgement = keep_certain_failures(judgement, batch.traces[0], config, batch.doubts)
    elif batch.by_line is not None:
        # Columns have no lines to name in an explanation and no events for the steps above: where one of them is needed,
        # the traces are read again line by line. A trace without failures needs neither.
        if judgement.failures or judgement.tallies[UNKNOWN_CACHES].undecided:
            for batch_of_lines in batch.by_line():
                yield from judge_batch(batch_of_lines, path, profile, problems, judge_columns)
            return
        # The reader of columns takes only numbers that follow: each is a check of SEQ-01 that held.
        judgement = replace(judgement, tallies=judgement.tallies | {SEQUENCE: RuleTally(held=batch.numbered)})
    yield JudgedBatch(batch, judgement, path)


def _by_trace(batch: InputBatch) -> Iterator[InputBatch]:
    """Yield the parts of a batch that can be judged by themselves: its traces, or the batches of the file line by line.

    Yield nothing for a batch of one trace, and for Parquet, which is never read line by line.
    """
    if batch.traces is not None and len(batch.traces) > 1:
        for trace in batch.traces:
            yield replace(batch, stored=to_columns([trace], batch.config), traces=(trace,))
    elif batch.by_line is not None:
        for batch_of_lines in batch.by_line():
            yield replace(batch_of_lines, config=batch.config)


def unknown_profile_problem(source: str, config: Config, events: int) -> Problem | None:
    """Return a problem if a config names a profile that this version does not know; `events` of the source are lost then."""
    try:
        profiles_named(config.profile, config.nodes)
    except TidegaugeError as error:
        return Problem(source, None, "a profile this version knows", str(error), "name one with --profile", lost=events)
    return None


def explain_failures(judged: Sequence[JudgedBatch], most: int) -> Iterator[Explanation]:
    """Yield explanations of the worst failures in these batches, at most `most`."""
    histories: HistoryCache = {}  # the failures of one trace share what was replayed of it
    failures = ((origin, failure) for origin in judged for failure in origin.judgement.failures)
    for origin, failure in worst_first(failures)[:most]:
        batch = origin.batch
        explanation = explain(batch.columns, batch.config, failure, batch.traces, batch.source, histories=histories)
        yield replace(explanation, path=origin.path)


def worst_first(failures: Iterable[tuple[Origin, Failure]]) -> list[tuple[Origin, Failure]]:
    """Sort failures: first one of each rule, those about lost records (WORST) before the others, then all the rest."""
    rules: set[str] = set()
    firsts: list[tuple[Origin, Failure]] = []
    others: list[tuple[Origin, Failure]] = []
    for origin, failure in failures:
        (others if failure.rule in rules else firsts).append((origin, failure))
        rules.add(failure.rule)

    def severity(pair: tuple[Origin, Failure]) -> int:
        """Return the place of a failure's rule in WORST, or after all of them."""
        _, failure = pair
        return WORST.index(failure.rule) if failure.rule in WORST else len(WORST)

    firsts.sort(key=severity)
    return firsts + others


# One report from several: of shares of one input, or of several inputs.


MOST_KEPT = 1000
"""Problems, and lines about what is missing, that one input keeps of all its shares."""


def merge_reports(reports: Sequence[Report], explained: int = EXPLAINED_FAILURES) -> Report:
    """Merge reports on different inputs, or on shares of one; keep at most `explained` explanations."""
    inputs = tuple(checked for report in reports for checked in report.inputs)
    explanations = _first_of_each_rule([explanation for report in reports for explanation in report.explanations])
    return Report(
        inputs=inputs,
        verdict=overall_verdict(inputs),
        rules=_rules([report.rules for report in reports]),
        explanations=explanations[:explained],
        failures=sum(report.failures for report in reports),
        # Shares are judged side by side.
        seconds=max((report.seconds for report in reports), default=0.0),
        notes=tuple(dict.fromkeys(note for report in reports for note in report.notes)),
        judged=tuple(judged for report in reports for judged in report.judged),
    )


def report_without_failures(inputs: Sequence[CheckedInput], notes: Sequence[str]) -> Report:
    """Return the report that had these inputs and notes, and no failure."""
    return Report(
        inputs=tuple(inputs),
        verdict=overall_verdict(inputs),
        rules=_rules([checked.rules for checked in inputs]),
        explanations=(),
        failures=0,
        seconds=0.0,
        notes=tuple(notes),
    )


def merge_shares(shares: Sequence[CheckedInput]) -> CheckedInput:
    """Merge shares of one input. Every share reads the same files, so a problem that all of them met is reported once."""
    rules = _rules([share.rules for share in shares])
    events = sum(share.events for share in shares)
    with_events = [share for share in shares if share.events] or list(shares)
    # A share without events would miss the whole data path, which another share may have.
    missing = tuple(dict.fromkeys(line for share in with_events for line in share.missing))
    problems = tuple(dict.fromkeys(problem for share in shares for problem in share.problems))
    # A line ends with the percentage that is covered, which may differ by share, as a gap may show in one of them only: node
    # and period come before the comma.
    covered: dict[str, str] = {}
    for line in (line for share in with_events for line in share.covered):
        period, _, percentage = line.rpartition(",")
        least = covered.setdefault(period, line).rpartition(",")[2]
        if int(percentage.rstrip("%")) < int(least.rstrip("%")):
            covered[period] = line
    return CheckedInput(
        path=shares[0].path,
        kind=shares[0].kind,
        traces=sum(share.traces for share in shares),
        events=events,
        problems=problems[:MOST_KEPT],
        covered=tuple(sorted(covered.values())),
        missing=missing[:MOST_KEPT],
        checks=sum((Counter(share.checks) for share in shares), Counter()),
        rules=rules,
        verdict=run_verdict(rules, events, whole=not missing and lost(problems) == 0),
        situations=added(share.situations for share in shares),
        profiles=frozenset().union(*(share.profiles for share in shares)),
    )


def _rules(parts: Sequence[Sequence[RuleVerdict]]) -> tuple[RuleVerdict, ...]:
    """Add up the tallies of several reports (`parts`), rule by rule, and return the verdicts on the sums."""
    tallies = {verdict.rule.id: verdict.tally for verdict in parts[0]}
    for part in parts[1:]:
        tallies = {verdict.rule.id: add_tallies(tallies[verdict.rule.id], verdict.tally) for verdict in part}
    return rule_verdicts(tallies)


def _first_of_each_rule(explanations: Sequence[Explanation]) -> tuple[Explanation, ...]:
    """Order explanations: the first of each rule, then the others."""
    # Reversed, so that the first one of a rule overwrites the later ones; and reversed again.
    firsts = list({explanation.rule.id: explanation for explanation in reversed(explanations)}.values())[::-1]
    return (*firsts, *(explanation for explanation in explanations if explanation not in firsts))
