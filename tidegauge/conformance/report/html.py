"""A report as one HTML page that needs nothing else: no network, no other file.

Rules of this file

1. The report is in the page as text, and can be read without a script: what is broken first, then what led there, the
   rules, the input. The script adds the viewer: every event with the replicas' logs and the messages around it.
2. templates/frame.html is every page's frame, templates/viewer.html the same viewer in each.
3. A trace holds foreign text: Jinja2 escapes all that the templates do not mark as safe, and what is not printable is
   escaped before (util.untrusted_text).
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from tidegauge.conformance.checking.check import Report
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.conformance.explain.explain import Explanation
from tidegauge.conformance.judge.rulebook import releases_of
from tidegauge.conformance.report.text import NO_VERDICT, verdict_word
from tidegauge.conformance.report.timeline import Timelines, places
from tidegauge.story.sentences import MOST_PARTITIONS, entry_sentence, eventful_partitions, headline
from tidegauge.story.state import SECOND, StoryEntry
from tidegauge.story.story import Story, happened
from tidegauge.traces.problems import counted
from tidegauge.traces.schema import Config
from tidegauge.util.untrusted_text import visible
from tidegauge.util.version import PACKAGE_VERSION, SUITE_VERSION

CSS_CLASSES = {Verdict.FAIL: "fail", Verdict.INCONCLUSIVE: "open", Verdict.PASS: "pass", Verdict.NOT_EXERCISED: "none"}
"""The CSS class of each verdict on a rule, in the order in which the page lists them."""
SCRIPTS = ("timeline.js", "logs.js", "messages.js", "viewer.js")
PROBLEMS_SHOWN = 200


class PageHead(NamedTuple):
    """The head of a page. `judged_by` names the releases and profiles that the verdict rests on."""

    title: str
    verdict: str
    verdict_class: str
    summary: str
    judged_by: Sequence[str]


class EventLink(NamedTuple):
    """An event as the page names it; `target` is the fragment that the viewer follows, "" where the event is not there."""

    words: str
    number: int
    at: str
    target: str


class FailureCard(NamedTuple):
    """A failure as the page shows it. `releases_without_bug`: no known bug of these releases looks like it."""

    explanation: Explanation
    trace: str
    at: EventLink
    causes: Sequence[EventLink]
    releases_without_bug: Sequence[str]


class RuleFilter(NamedTuple):
    """A box to tick, by which the page shows the rules with one verdict; `folded`: it is not ticked at first."""

    verdict: Verdict
    css_class: str
    rule_count: int
    folded: bool


def write_html(report: Report, path: str | Path, title: str = "Tidegauge") -> None:
    """Write the page of a report to a file."""
    # Half a surrogate pair, which JSON can name and UTF-8 cannot hold, becomes the escape that it came from.
    Path(path).write_text(page(report, title), encoding="utf-8", errors="backslashreplace")


def page(report: Report, title: str = "Tidegauge") -> str:
    """Return the page of a report."""
    timelines = Timelines()
    # Failures first: once a page is full, no trace without a failure is added.
    cards = failure_cards(report.explanations, timelines)
    for place in places(report.judged):
        timelines.add_trace(place)
    summary = f"{counted(report.traces, 'trace')}, {counted(report.events, 'event')}, {report.seconds:.1f} s"
    if timelines.left_out:
        summary += f"; {counted(timelines.left_out, 'trace')} not on this page"
    word = verdict_word(report)
    # A run can also have the verdict SUITE ERROR, which no rule has: it is shown as a failure.
    verdict_class = "none" if word == NO_VERDICT else CSS_CLASSES.get(report.verdict, "fail")
    configs = (judged.batch.config for judged in report.judged)
    head = PageHead(title, word, verdict_class, summary, judged_by(configs))
    counts = {verdict: sum(rule.verdict is verdict for rule in report.rules) for verdict in CSS_CLASSES}
    return render_page(
        "check.html",
        head,
        timelines,
        report=report,
        told=[] if report.story is None else headline(report.story, judged=bool(report.events), failures=report.failures),
        drawings=[] if report.story is None else lanes_of(report.story),
        cards=cards,
        not_shown=report.failures - len(report.explanations),
        holding=counts[Verdict.PASS],
        problems_shown=PROBLEMS_SHOWN,
        boxes=[
            RuleFilter(verdict, CSS_CLASSES[verdict], count, folded=verdict in (Verdict.PASS, Verdict.NOT_EXERCISED))
            for verdict, count in counts.items()
            if count
        ],
    )


def judged_by(configs: Iterable[Config]) -> list[str]:
    """Return what traces were judged by: the releases and profiles that their configs name, each once."""
    configs = list(configs)
    releases = dict.fromkeys(f"Kafka {name}" for config in configs for name in releases_of(config))
    return [*releases, *dict.fromkeys(f"profile {config.profile}" for config in configs)]


def failure_cards(explanations: Iterable[Explanation], timelines: Timelines) -> list[FailureCard]:
    """Return a card for each failure; add the events around it to the page's timelines."""
    return [_failure_card(explanation, timelines) for explanation in explanations]


def _failure_card(failure: Explanation, timelines: Timelines) -> FailureCard:
    """Return the card of a failure, with links to its events that are on the page; add these to the timelines."""
    timeline = timelines.add_failure(failure)  # its index
    name, on_page = timelines.data[timeline]["trace"], timelines.event_numbers(timeline)

    def link(number: int, at: str, words: str = "") -> EventLink:
        """Return the link to the event with this number in the trace; `at` is where it was read, `words` what it is."""
        # A cause may lie before the stretch of a long trace that is on the page: then it is text, not a link to nowhere.
        query = urlencode({"trace": name, "event": number, "rule": failure.rule.id})
        return EventLink(words, number, at, f"#{query}" if number in on_page else "")

    place = failure.place
    # A rule without known bugs never says "no bug that is known": nobody has looked for one.
    searched = failure.rule.bugs and not failure.bugs
    return FailureCard(
        failure,
        # The name of a trace may have the partition in it already.
        trace=f"{failure.trace} ({failure.tp})" if failure.tp and failure.tp not in failure.trace else failure.trace,
        at=link(place.row - place.rows.start + 1, failure.at),
        causes=[link(cause.number, cause.at, cause.says) for cause in failure.because],
        releases_without_bug=releases_of(failure.config) if searched else (),
    )


def render_page(template: str | Template, head: PageHead, timelines: Timelines, **parts: Any) -> str:
    """Return the page that a template makes: one that extends templates/frame.html, or its name.

    `parts` are the variables of this template, the others those of the frame.
    """
    return (
        environment()
        .get_template(template)
        .render(
            head=head,
            timelines=timelines,
            version=f"{PACKAGE_VERSION}, suite {SUITE_VERSION}",
            style=Markup(asset("style.css")),
            scripts=[Markup(asset(name)) for name in SCRIPTS],
            **parts,
        )
    )


def _shown(value: Any) -> Any:
    """Return what an expression of a template shows: markup as it is, anything else as one printable line (rule 3)."""
    return value if hasattr(value, "__html__") else visible(str(value))


@cache
def environment() -> Environment:
    """Return the Jinja2 environment of all pages."""
    pages = Environment(
        loader=PackageLoader("tidegauge.conformance.report"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters |= {"grouped": "{:,}".format, "counted": counted}
    # Jinja2 sorts keys by default; `tojson` itself escapes what could end a script element.
    pages.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return pages


def asset(name: str) -> str:
    """Return the text of a file in templates/."""
    loader: Any = environment().loader
    source: Callable[..., tuple[str, Any, Any]] = loader.get_source
    return source(environment(), name)[0]


# ---------------------------------------------------------------------------------------------------------------------
# What happened to a partition as a drawing: an axis of time, a lane per broker, the logs by offset where lines tell them.
#
# Rules of this part
#
# 1. An entry of the story (StoryEntry: something that log lines say happened) is a mark in the lane of its broker; elections
#    stand in the lane of the controller. Marks are in order; long times without any are shortened, so that a second and a
#    day fit on one axis. `kind` of an entry says what happened, `fields` are its values by the kind, `order` is its time in
#    microseconds, `time` the same as the line has it.
# 2. A bar is a log, up to its end; what a truncation removed is another colour, a line across is the high watermark.
# 3. Partitions and marks are bounded: the text below a drawing counts those that it leaves out.


MOST_MARKS = 40
"""Marks that a drawing has at most."""
LEFT, LANE, AXIS, WORDS = 88, 74, 26, 84
"""Pixels: the width of the names of lanes, the heights of a lane and of the axis, and the width of a mark's words."""
APART, LOWEST, HIGHEST = 26, 5, 34
"""Pixels between marks of different lanes, and of the shortest and the longest bar."""
BELOW_BASE, CLOCK_WIDTH = 18, 66
"""Pixels of a lane below its base, where the words are, and the width of a time at the axis."""
CONTROLLER, UNNAMED = "controller", "a broker"
"""Names of lanes: of the controller, and of a broker whose id is not known."""
AROUND = 60 * SECOND
"""A start or a stop so long before the first entry of a partition, or after its last, is drawn with it."""
_CLOCK = re.compile(r"\d\d:\d\d(?::\d\d)?")
# Kinds of entries that are about a whole broker, and concern all its partitions.
_OF_A_PROCESS = ("start", "stop", "directory_failed", "replica_lost", "process_failed")


class LaneMark(NamedTuple):
    """An entry in a drawing, at `x` and the `base` of its lane, in pixels.

    Heights above the base, None if not known: `top` of the log's bar, `removed_top` of what a truncation removed, `staff` of
    the line at the high watermark. `number` is the log end in digits.
    """

    x: float
    base: int
    words: str
    title: str
    css_class: str
    epoch: int | None
    top: float | None
    removed_top: float | None
    staff: float | None
    number: str


@dataclass(frozen=True)
class Lanes:
    """The drawing of a partition: `lanes` are (name, base in pixels), `clocks` (x, time); `left_out` counts entries."""

    partition: str
    width: int
    height: int
    lanes: Sequence[tuple[str, int]]
    marks: Sequence[LaneMark]
    clocks: Sequence[tuple[float, str]]
    left_out: int


def lanes_of(story: Story) -> list[Lanes]:
    """Return a drawing for each partition that had something happen, those with losses first, as the sentences are."""
    processes = [entry for entry in story.entries if entry.partition is None and entry.kind in _OF_A_PROCESS]
    of_partitions = story.of_partitions()
    return [_drawing(name, of_partitions[name], processes) for name, _ in eventful_partitions(story)[:MOST_PARTITIONS]]


def _drawing(name: str, entries: Sequence[StoryEntry], processes: Sequence[StoryEntry]) -> Lanes:
    """Return the drawing of the partition called `name`, whose entries are `entries`.

    Of `processes`, entries about whole brokers, those of the same brokers around the same time are drawn, too.
    """
    nodes = {entry.node for entry in entries}
    begin, end = entries[0].order - AROUND, entries[-1].order + AROUND
    of_brokers = [entry for entry in processes if entry.node in nodes and begin <= entry.order <= end]
    everything = sorted([*entries, *of_brokers], key=lambda entry: entry.order)
    # Of the entries before the first that is worth telling (`happened`), the last of each broker shows where its log was. If
    # not all fit, those worth telling come first.
    first_eventful = next((at for at, entry in enumerate(everything) if happened(entry)), 0)
    last_before = {_lane(entry): at for at, entry in enumerate(everything[:first_eventful]) if entry.partition is not None}
    candidates = [*last_before.values(), *range(first_eventful, len(everything))]
    ranked = sorted(candidates, key=lambda at: (not happened(everything[at]), at))
    shown = [everything[at] for at in sorted(ranked[:MOST_MARKS])]
    # The controller first, then the brokers by their ids, then those without one.
    titles = sorted({_lane(entry) for entry in shown}, key=lambda title: (title != CONTROLLER, title == UNNAMED, _id(title)))
    bases = {title: LANE * (at + 1) - BELOW_BASE for at, title in enumerate(titles)}
    # One scale for all bars: from the lowest to the highest offset that is shown.
    offsets = [offset for entry in shown for offset in _offsets(entry) if offset is not None]
    low, high = min(offsets, default=0), max(offsets, default=0)

    def height(offset: int | None) -> float | None:
        """Return the height of an offset in pixels: LOWEST for the lowest one in the drawing, HIGHEST for the highest."""
        if offset is None:
            return None
        share = (offset - low) / (high - low) if high > low else 1
        return round(LOWEST + (HIGHEST - LOWEST) * share, 1)

    marks = []
    for x, entry in zip(_columns(shown), shown, strict=True):
        log_end, removed, watermark = _offsets(entry)
        marks.append(
            LaneMark(
                x,
                bases[_lane(entry)],
                _words(entry),
                title=entry_sentence(entry),
                css_class="bad" if _is_bad(entry) else entry.kind,
                epoch=entry.fields.get("leader_epoch") if entry.kind in ("leader", "follower") else None,
                top=height(log_end),
                removed_top=height(removed),
                staff=height(watermark),
                number="" if log_end is None else f"{log_end:,}" if removed is None else f"{removed:,} to {log_end:,}",
            )
        )
    width = math.ceil(marks[-1].x) + WORDS
    lanes = [(title, bases[title]) for title in titles]
    return Lanes(
        name,
        width,
        LANE * len(titles) + AXIS,
        lanes=lanes,
        marks=marks,
        clocks=list(_clocks(marks, shown)),
        left_out=len(everything) - len(shown),
    )


def _lane(entry: StoryEntry) -> str:
    """Return the name of the lane in which an entry is drawn."""
    return CONTROLLER if entry.kind == "elected" else UNNAMED if entry.node is None else f"broker {entry.node}"


def _id(title: str) -> int:
    """Return the node id in the name of a lane, 0 if there is none."""
    return int(number[0]) if (number := re.search(r"\d+", title)) else 0


def _columns(entries: Sequence[StoryEntry]) -> Iterator[float]:
    """Yield the x of each entry's mark, from left to right in pixels.

    The words of a mark do not lie on those before it in the same lane; the distance of two marks grows with the logarithm of
    the time between them.
    """
    x, ends, time_before = float(LEFT), dict[str, float](), entries[0].order  # `ends`: by lane, where the words end
    for entry in entries:
        seconds = max(0, entry.order - time_before) / SECOND
        # The first mark (no lane has words yet) is at the left end.
        x = max(x + (APART + 8 * math.log1p(seconds) if ends else 0), ends.get(_lane(entry), 0.0))
        time_before, ends[_lane(entry)] = entry.order, x + WORDS
        yield round(x, 1)


def _clocks(marks: Sequence[LaneMark], entries: Sequence[StoryEntry]) -> Iterator[tuple[float, str]]:
    """Yield the times at the axis as (x, time): each at the first mark that has it, as far as there is room."""
    free, shown = 0.0, ""  # the x from which there is room again, and the last time
    for mark, entry in zip(marks, entries, strict=True):
        clock = _CLOCK.search(entry.time)
        if clock is not None and mark.x >= free and clock[0] != shown:
            yield mark.x, clock[0]
            free, shown = mark.x + CLOCK_WIDTH, clock[0]


def _offsets(entry: StoryEntry) -> tuple[int | None, int | None, int | None]:
    """Return (log end, log end before a truncation, high watermark) of an entry's replica; None: not known, or no such."""
    fields = entry.fields
    if entry.kind == "truncated":
        removed = fields["from"] if fields["relation"] != "no effect" else None
        return fields["to"], removed, fields["high_watermark"]
    if entry.kind in ("leader", "follower"):
        return fields["offset"], None, fields["high_watermark"]
    return (fields["log_end"], None, fields["high_watermark"]) if entry.kind == "loaded" else (None, None, None)


def _is_bad(entry: StoryEntry) -> bool:
    """Return whether an entry is drawn as a fault, such as an unclean election or a truncation below the high watermark.

    An entry of any other kind than those named here is one.
    """
    fields = entry.fields
    # Functions, since an entry has the fields of its own kind only. No leader is a negative one.
    bad: Mapping[str, Callable[[], bool]] = {
        "elected": lambda: fields["clean"] is False or fields["leader"] < 0,
        "truncated": lambda: fields["relation"] == "below",  # the high watermark
        "start": lambda: fields["clean"] is False,
        "isr_changed": lambda: fields["accepted"] is False,
    }
    quiet = ("leader", "follower", "loaded", "stop")
    return bad[entry.kind]() if entry.kind in bad else entry.kind not in quiet


def _words(entry: StoryEntry) -> str:
    """Return in a word or two what happened, to stand beside a mark: at most 14 characters."""
    fields = entry.fields
    epoch = fields.get("leader_epoch")
    # Functions, since an entry has the fields of its own kind only.
    words: Mapping[str, Callable[[], str]] = {
        "leader": lambda: f"leads {epoch}",
        "follower": lambda: f"follows {epoch}",
        "loaded": lambda: "loads",
        "start": lambda: "starts",
        "stop": lambda: "stops",
        "elected": lambda: "no leader" if fields["leader"] < 0 else f"elects {fields['leader']}",
        "truncated": lambda: "truncates" if fields["relation"] != "no effect" else "keeps all",
        "high_watermark_fell": lambda: "HW falls",
        "isr_changed": lambda: f"ISR {','.join(map(str, fields['to']))}" if fields["to"] else "ISR",
        "fetcher_failed": lambda: "fetch fails",
        "append_refused": lambda: "refuses",
        "reset": lambda: "out of range",
        "epoch_refused": lambda: "epoch refused",
        "fetch_refused": lambda: "no answer",
        "produce_refused": lambda: "takes nothing",
        "no_other_leader": lambda: "no other",
        "session_expired": lambda: "session lost",
        "not_registered": lambda: "unregistered",
        "not_controller": lambda: "no controller",
        "not_leader": lambda: "does not lead",
        "out_of_range": lambda: "out of range",
        "directory_failed": lambda: "disk fails",
        "replica_lost": lambda: "disk lost",
        "process_failed": lambda: "fails",
        "segments_missing": lambda: "segments gone",
        "records_deleted": lambda: "deletes",
        "epochs_conflict": lambda: "epochs mixed",
        "topic_id_mismatch": lambda: "other topic id",
    }
    return words[entry.kind]()[:14] if entry.kind in words else entry.kind
