"""Tidegauge as a library: judge logs and traces in a program, a notebook or a test of your own.

Rules of this file

1. What `tidegauge.__all__` names is stable, with the fields and methods that are documented there; everything else may
   change with any release.
2. A `Report` is a typed view of the JSON that `tidegauge check --json` prints, by its schema: both say the same.
3. Nothing is printed. What a command ends with a sentence for raises `TidegaugeError` with that sentence.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegauge.bundle.reading import opened
from tidegauge.conformance.checking.check import CheckOptions, check_parts, merge_reports
from tidegauge.conformance.checking.check import Report as JudgedReport
from tidegauge.conformance.checking.convert import read_whole, traces_of
from tidegauge.conformance.checking.inputs import part_of_traces
from tidegauge.conformance.checking.sharded import check_in_parallel
from tidegauge.conformance.report.json_report import as_json, write_json
from tidegauge.conformance.report.junit import write_junit
from tidegauge.conformance.report.text import as_text
from tidegauge.impl.releases import RELEASE
from tidegauge.story.story import story_of
from tidegauge.traces.kafka_logs.discovery.identify import files_at
from tidegauge.traces.kafka_logs.discovery.selection import selection_of
from tidegauge.traces.schema import Trace
from tidegauge.util.errors import TidegaugeError, UsageError
from tidegauge.util.files import directory, replacing

if TYPE_CHECKING:
    import pandas as pd

EXAMPLES = Path(__file__).parent / "traces"
"""A directory to try it on: `captures` has the logs of real clusters, by release, `golden` has traces."""

Source = str | os.PathLike[str] | Trace
"""What can be judged: a path of a file or directory, or a trace."""


@dataclass(frozen=True)
class Cause:
    """A step that led to a failure: in words, the number of its event in the trace from 1, and where it was read."""

    says: str
    event: int
    at: str

    def __str__(self) -> str:
        """Return the step in words, and its place where it has one."""
        return f"{self.says}   [{self.at}]" if self.at else self.says


@dataclass(frozen=True)
class RuleFailure:
    """A rule that a trace breaks, where it does so first.

    `means` says what is broken and what it means for users; `because` has the steps that led there, oldest first, and is
    empty for rules that need none. `expected` and `actual` are values of what is `compared`. `looks_like` are known bugs
    with this effect.
    """

    rule: str
    means: str
    because: tuple[Cause, ...]
    trace: str
    partition: str
    at: str
    compared: str
    expected: str
    actual: str
    looks_like: tuple[str, ...]


@dataclass(frozen=True)
class RuleResult:
    """The verdict on a rule, with the numbers of its checks. `missing` are the fields that would have decided the others."""

    rule: str
    level: str
    sentence: str
    verdict: str
    held: int
    failed: int
    undecided: int
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Loss:
    """Records of a partition that are gone from a node, or from everywhere, as lines of logs tell; no verdict rests on it.

    The records from offset `first` up to, not including, `end`, where these are known. `committed` is yes, no or unknown;
    `allowed` whether Kafka's rules allow it, None if the lines do not tell. `copies` are nodes whose logs still have them,
    `do` is what to do, `sources` are the lines.
    """

    partition: str
    node: int | None
    first: int | None
    end: int | None
    records: int | None
    committed: str
    acknowledged: int | None
    why: str
    allowed: bool | None
    copies: tuple[int, ...]
    do: str | None
    time: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class StoryStep:
    """Something that happened, as lines of logs tell. `fields` has what else is known of this kind (docs/operators.md)."""

    kind: str
    partition: str | None
    node: int | None
    time: str
    source: str
    fields: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Report:
    """The result of `check`.

    `verdict` is PASS, FAIL, INCONCLUSIVE or SUITE ERROR; `exit_code` that of the command. `failures` are the first of each
    rule, lost records before others; `failure_count` counts all. `problems` is what could not be read, `missing` what the
    logs lack for a verdict on everything that happened. `story` and `losses` are what lines of logs tell, whatever the
    verdict; both are empty for traces.

    >>> import tidegauge as tg
    >>> report = tg.check(tg.EXAMPLES / "golden/fails-hw-not-clamped.ndjson")
    >>> [rule.rule for rule in report.rules if rule.failed]
    ['HW-01', 'HW-05']
    >>> report.failures[0].compared, report.failures[0].expected, report.failures[0].actual
    ('hw', '1', '2')
    """

    verdict: str
    exit_code: int
    failures: tuple[RuleFailure, ...]
    failure_count: int
    rules: tuple[RuleResult, ...]
    traces: int
    events: int
    problems: tuple[str, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...]
    losses: tuple[Loss, ...]
    story: tuple[StoryStep, ...]
    _judged: JudgedReport = field(repr=False, compare=False)

    def __str__(self) -> str:
        """Return the report as `tidegauge check` prints it."""
        return as_text(self._judged)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as `tidegauge check --json` prints it; `--json-schema` describes it."""
        return as_json(self._judged)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a DataFrame with a row per rule and the fields of RuleResult as columns. Needs pandas."""
        try:
            import pandas as pd  # noqa: PLC0415  an extra: whoever wants no DataFrame need not have it
        except ModuleNotFoundError:
            raise UsageError("to_pandas: expected pandas, seen none; run: pip install 'tidegauge[pandas]'") from None
        return pd.DataFrame([vars(rule) for rule in self.rules])

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Write index.html, check.json and check.xml (JUnit) into a directory; return the path of the page."""
        from tidegauge.conformance.report.html import write_html  # noqa: PLC0415  Jinja takes a tenth of a second to load

        out = directory(os.fspath(folder))
        # Each is written beside its place and renamed when it is complete; a link of that name is replaced, not followed.
        for name, write in (("check.json", write_json), ("check.xml", write_junit), ("index.html", write_html)):
            with replacing(out / name, follow=False) as file:
                write(self._judged, file)
        return out / "index.html"


def check(
    *sources: Source,
    profile: str | None = None,
    release: str | Mapping[int, str] | None = None,
    topics: Sequence[str] = (),
    partitions: Sequence[str] = (),
    begin: str | None = None,
    end: str | None = None,
    layout: str | None = None,
    processes: int | None = None,
) -> Report:
    """Judge logs and traces: NDJSON, Parquet, broker logs, directories of them, bundles, or traces in memory.

    The arguments are the options of `tidegauge check`; `release` may give each broker its own, {1: "3.9.1", 2: "4.3.1"};
    `begin` and `end` are times such as 2026-11-21T08:27:15. Large inputs are judged by several `processes`, one per core if
    None. Raises TidegaugeError.

    >>> import tidegauge as tg
    >>> report = tg.check(tg.EXAMPLES / "captures/3.4.0/b-kill-leader")
    >>> report.verdict
    'FAIL'
    >>> report.failures[0].rule, report.failures[0].looks_like
    ('HW-06', ('KAFKA-14704',))
    >>> print(report.failures[0].because[0])
    n1's high watermark became 48 (Start).   [n1/server.log:705]
    """
    if not sources:
        raise UsageError("check: expected a path or a trace, seen none; name a file or a directory")
    paths = [_path(source) for source in sources if not isinstance(source, Trace)]
    traces = [source for source in sources if isinstance(source, Trace)]
    selection = selection_of(topics, partitions, begin, end)
    if traces and selection is not None:
        raise UsageError("check: expected broker logs to select topics or times from, seen a trace; leave one of them out")
    # A bundle is unpacked to paths of its own, and says which part of the logs it was made of.
    with opened(paths) as (inputs, bundled_part):
        # What the caller selects, else the part of the logs that a bundle says.
        how = CheckOptions(_profile(profile, release), layout, selection or bundled_part)
        reports = [check_in_parallel(inputs, how, processes)] if inputs else []
        if traces:
            reports.append(check_parts([part_of_traces(traces)], how))
        judged = reports[0] if len(reports) == 1 else merge_reports(reports, how.explained)
        # What happened, as lines of logs tell: traces in memory have no lines.
        story = story_of(inputs, selection=how.selection) if inputs else None
        return _view(judged if story is None else replace(judged.with_story(story), files=tuple(files_at(inputs))))


def _path(source: str | os.PathLike[str]) -> str:
    """Return a path as a string. Raises UsageError for what is no path, such as a list of them."""
    try:
        return os.fspath(source)
    except TypeError:
        seen = f"seen a {type(source).__name__}; unpack a list, as check(*paths)"
        raise UsageError(f"expected paths and traces, one by one, {seen}") from None


def _profile(profile: str | None, release: str | Mapping[int, str] | None) -> str | None:
    """Return the name of the profile to judge by, None for that of the input: a release's is release-3.9.1.

    Releases by broker become 1=release-3.9.1,2=release-4.3.1.
    """
    if profile is not None and release is not None:
        raise UsageError(f"expected a profile or a release, seen both, {profile} and {release}; leave one out")
    if isinstance(release, Mapping):
        return ",".join(f"{node}={RELEASE}{name}" for node, name in release.items())
    return profile if release is None else f"{RELEASE}{release}"


def _view(judged: JudgedReport) -> Report:
    """Return the public report on what was judged, made from the JSON of `check --json`.

    The fields of its classes are named as the keys of the JSON, but for those that are set by hand here.
    """
    data = as_json(judged)
    return Report(
        verdict=data["verdict"],
        exit_code=data["exit_code"],
        failures=tuple(map(_failure, data["explanations"])),
        failure_count=data["failures"],
        rules=tuple(
            RuleResult(**{name: _frozen(rule[name]) for name in RuleResult.__dataclass_fields__}) for rule in data["rules"]
        ),
        traces=data["traces"],
        events=data["events"],
        problems=tuple(data["problems"]),
        missing=judged.missing,
        notes=tuple(data["notes"]),
        losses=tuple(
            Loss(**{name: _frozen(loss[name]) for name in Loss.__dataclass_fields__}) for loss in data.get("losses", ())
        ),
        story=tuple(map(_step, data.get("story", ()))),
        _judged=judged,
    )


def _failure(data: dict[str, Any]) -> RuleFailure:
    """Return a failure from its JSON, an item of `explanations`."""
    return RuleFailure(
        because=tuple(Cause(**cause) for cause in data["because"]),
        partition=data["tp"],
        looks_like=tuple(bug["bug"] for bug in data["looks_like"]),
        **{name: data[name] for name in ("rule", "means", "trace", "at", "compared", "expected", "actual")},
    )


def _step(data: dict[str, Any]) -> StoryStep:
    """Return a step from its JSON, an item of `story`: keys that all kinds have become attributes, the others `fields`."""
    own = {name: data[name] for name in ("kind", "partition", "node", "time", "source")}
    return StoryStep(**own, fields={name: value for name, value in data.items() if name not in own})


def _frozen(value: Any) -> Any:
    """Return a list as a tuple, anything else as it is: the classes of the report are immutable."""
    return tuple(value) if isinstance(value, list) else value


class UnreadableError(TidegaugeError):
    """Something of an input could not be read; `problems` has all of it, and `traces` what was read in spite of it."""

    def __init__(self, problems: Sequence[str], traces: Sequence[Trace]) -> None:
        """Take the problems, at least one, of which the first becomes the message."""
        more = f" (and {len(problems) - 1:,} more)" if len(problems) > 1 else ""
        super().__init__(f"{problems[0]}{more}")
        self.problems, self.traces = tuple(problems), tuple(traces)


def read(*paths: str | os.PathLike[str], layout: str | None = None) -> tuple[Trace, ...]:
    """Return the traces that paths hold, one per topic-partition and cluster. Raises UnreadableError.

    The trace of broker logs is what the reader has inferred from their lines.

    >>> import tidegauge as tg
    >>> (trace,) = tg.read(tg.EXAMPLES / "golden/commit.ndjson")
    >>> trace.tp, len(trace.events), trace.events[0].event
    ('model-0', 11, 'Start')
    >>> tg.check(trace).verdict
    'PASS'
    """
    # by_line: read at once, large NDJSON has no names of traces and no places of events. A reading is (batches, problems).
    readings = [read_whole(_path(path), layout, by_line=True) for path in paths]
    traces = tuple(trace for batches, _ in readings for batch in batches for trace in traces_of(batch))
    problems = [str(problem) for _, problems in readings for problem in problems]
    if problems:
        raise UnreadableError(problems, traces)
    return traces
