"""A report for a terminal: what is broken, what it means and what led to it; the rules; what was read; the verdict last.

A story is what the log lines say happened, apart from every verdict (tidegauge.story); a report has one if it was asked for.
Text of the input passes `visible`, which escapes what is not printable. With `colour`, verdicts are in colour.
"""

from collections.abc import Iterator

from tidegauge.conformance.checking.check import Report
from tidegauge.conformance.checking.verdicts import RuleVerdict, Verdict
from tidegauge.conformance.explain.explain import explanation_text
from tidegauge.story.sentences import headline, unread_errors
from tidegauge.traces.kafka_logs.discovery.identify import OTHER, UNKNOWN
from tidegauge.traces.problems import counted, number_of
from tidegauge.util.untrusted_text import visible
from tidegauge.util.version import SUITE_VERSION

NO_VERDICT = "NO VERDICT"
"""The verdict as a person reads it where there is a story, and nothing was judged."""
PROBLEMS, UNREAD = 10, 5
"""Problems, and files that were not read, that are shown; the others are counted."""
FIRST = 3
"""Lines of each kind that are shown beside a story, if the verdict is not what matters."""
_ORDER = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.NOT_EXERCISED)
"""The verdicts on rules, the worst first."""
_COLOURS = {Verdict.PASS: "32", Verdict.FAIL: "31;1", Verdict.INCONCLUSIVE: "33", Verdict.SUITE_ERROR: "35;1"}


def as_text(report: Report, colour: bool = False, everything: bool = False) -> str:
    """Return the report as text; rules that hold, or that no event exercised, are counted, or listed too if `everything`."""
    return "\n".join(_lines(report, colour, everything))


def _lines(report: Report, colour: bool, everything: bool) -> Iterator[str]:
    """Yield the lines of a report: the story, failures with their causes, rules, inputs, the verdict."""
    # What happened comes before what it proves: a PASS over a loss begins with the loss. Of a story in which nothing
    # happened the headline says so if there is no verdict (not `judged`), and else is empty.
    judged = report.verdict in (Verdict.PASS, Verdict.FAIL)
    if report.story is not None and (happenings := headline(report.story, judged=judged, failures=report.failures)):
        yield from happenings
        yield ""
    # Neither story nor verdict: say what else the files hold.
    elif report.story is not None and not report.events:
        yield "Nothing is told: no line of these files is known here to say what happened to a partition."
        yield from map(visible, unread_errors(report.story))
        yield from map(visible, _unread(report))
    if report.explanations:
        yield from _broken(report, colour)
    # Beside a story whose verdict says neither FAIL nor PASS, print only the first few things that it lacks.
    briefly = report.story is not None and not everything and not report.failures and report.verdict is not Verdict.PASS
    # Without an event no rule was checked: beside a story that is no news.
    if report.events or not briefly:
        yield from _rules(report, colour, everything)
        yield ""
    yield from map(visible, _read(report, FIRST if briefly else None))
    yield verdict_line(report, colour)


def _broken(report: Report, colour: bool) -> Iterator[str]:
    """Yield a sentence for each explained failure, then each of them with what led there, and how many more there are."""
    for explanation in report.explanations:
        yield f"{_painted(f'{explanation.rule.id:<10}', Verdict.FAIL, colour)}{visible(explanation.means)}"
    # A single explanation begins with the sentence above it: leave out its first line.
    if len(report.explanations) == 1:
        yield explanation_text(report.explanations[0]).partition("\n")[2]
    else:
        for number, explanation in enumerate(report.explanations, 1):
            yield ""
            yield f"--- failure {number} of {report.failures:,} " + "-" * 40
            yield explanation_text(explanation)
    if report.failures > len(report.explanations):
        yield f"... and {report.failures - len(report.explanations):,} more first failures, not shown"
    yield ""


def _rules(report: Report, colour: bool, everything: bool) -> Iterator[str]:
    """Yield a line per rule, the worst verdict first; rules that pass or are not exercised are counted, or listed too.

    They are listed if `everything`.
    """
    folded = {} if everything else {Verdict.PASS: "hold", Verdict.NOT_EXERCISED: "were not called for by any event"}
    # What fails comes first, then what was not decided.
    for verdict in _ORDER:
        rules = [rule for rule in report.rules if rule.verdict is verdict]
        if verdict not in folded:
            yield from (_rule_line(rule, colour) for rule in rules)
    counts = [f"{sum(rule.verdict is verdict for rule in report.rules)} rules {verb}" for verdict, verb in folded.items()]
    if counts:
        yield f"{', '.join(counts)}; --all lists them"


def _read(report: Report, most: int | None = None) -> Iterator[str]:
    """Yield what was read, how much of what happened it covers, and what was wrong with it.

    Of missing things, and of problems, `most` lines are shown; None: all of the former, PROBLEMS of the latter.
    """
    for checked in report.inputs:
        yield (
            f"{checked.path}: {checked.kind}, {counted(checked.traces, 'trace')}, {counted(checked.events, 'event')}"
            + (f", {counted(number_of(checked.problems), 'problem')}" if checked.problems else "")
            + (f": {checked.verdict.value}" if len(report.inputs) > 1 else "")
        )
        if checked.covered and checked.events:
            yield f"covered: {'; '.join(checked.covered)}"
        if checked.depends_on_order:
            counts = (f"{rule} {count:,} of {checks:,}" for rule, (count, checks) in checked.depends_on_order.items())
            yield f"depends on the order of concurrent lines, at most: {', '.join(counts)} checks"
        yield from (f"missing: {line}" for line in checked.missing[:most])
        if most is not None and len(checked.missing) > most:
            yield f"missing: {len(checked.missing) - most:,} more; --all lists them"
    yield from report.notes
    # With neither, they were listed at the beginning.
    if report.events or (report.story is not None and report.story.has_entries):
        yield from _unread(report)
    if report.problems:
        yield f"bad input: {counted(number_of(report.problems), 'problem')}, {counted(report.lost, 'event')} left out"
        shown = PROBLEMS if most is None else most
        yield from (f"  {problem}" for problem in report.problems[:shown])
        if len(report.problems) > shown:
            yield f"  ... and {number_of(report.problems) - shown:,} more"
    yield ""


def _unread(report: Report) -> Iterator[str]:
    """Yield the files that were not read, and why."""
    # Files of no known kind are listed only if nothing was judged: then one of them may be what the user meant.
    unread = [file for file in report.files if not file.read and (file.kind not in (OTHER, UNKNOWN) or not report.events)]
    yield from (f"not read: {file.path}, {file.kind}: {file.why}" for file in unread[:UNREAD])
    if len(unread) > UNREAD:
        yield f"not read: {len(unread) - UNREAD:,} more files; --json lists them"


def _rule_line(rule: RuleVerdict, colour: bool) -> str:
    """Return the line of a rule: id, verdict, counts; one that did not pass has its sentence below."""
    verdict = _painted(f"{rule.verdict.value:<12}", rule.verdict, colour)
    line = f"{rule.rule.id:<10}{verdict}  {rule.says}"
    return f"{line}\n{'':<24}{rule.rule.sentence}" if rule.verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE) else line


def verdict_line(report: Report, colour: bool = False) -> str:
    """Return the last line of a report: the verdict, what it rests on, what was judged in how much time."""
    failed = [rule.rule.id for rule in report.rules if rule.verdict is Verdict.FAIL]
    after_loss = [rule.rule.id for rule in report.rules if rule.tally.after_loss]
    passed = sum(rule.verdict is Verdict.PASS for rule in report.rules)
    # Why a report is INCONCLUSIVE: failures after lost lines; else what could not be read; else what is missing; else that
    # nothing could be decided.
    undecided = f"undecided after lost lines: {', '.join(after_loss)}" if after_loss else "nothing could be decided"
    # What was covered did pass: without this the line would read as if nothing had been checked.
    if report.missing and passed and not after_loss:
        undecided = f"{passed} rules hold in what is covered and none is broken, but something is missing"
    unread_inputs = [checked for checked in report.inputs if not checked.events]
    if (report.lost or unread_inputs) and not after_loss:
        unread_text = counted(report.lost, "event") if report.lost else counted(len(unread_inputs), "input")
        undecided = f"{passed} rules hold in what was read and none is broken, but {unread_text} could not be read"
    reason = {
        Verdict.PASS: f"{passed} rules hold",
        Verdict.FAIL: f"broken: {', '.join(failed)}",
        Verdict.INCONCLUSIVE: undecided,
        Verdict.SUITE_ERROR: _unjudged(report),
    }[report.verdict]
    return (
        f"{_painted(verdict_word(report), report.verdict, colour)}: {reason} "
        f"({counted(report.traces, 'trace')}, {counted(report.events, 'event')}, {report.seconds:.1f} s; "
        f"suite {SUITE_VERSION})"
    )


def verdict_word(report: Report) -> str:
    """Return the verdict as a person reads it: NO_VERDICT in place of SUITE ERROR for what was only read for its story."""
    return NO_VERDICT if report.verdict is Verdict.SUITE_ERROR and _is_story_only(report) else report.verdict.value


def _is_story_only(report: Report) -> bool:
    """Return whether the inputs were read for their story alone: they have no event, and nothing is wrong with them."""
    return report.story is not None and not report.events and (report.story.has_entries or not report.problems)


def _unjudged(report: Report) -> str:
    """Return why there is no verdict: nothing could be judged, or the lines were enough for the story alone."""
    # A story needs a few lines, a verdict needs every step.
    if report.story is None or not report.story.has_entries:
        return "no event was judged"
    return "no rule was judged: a verdict needs every step; docs/kafka-logs.md says which loggers write them"


def _painted(text: str, verdict: Verdict, colour: bool) -> str:
    """Return a text in the colour of a verdict (ANSI escapes), or as it is without `colour`."""
    code = _COLOURS.get(verdict)
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code else text
