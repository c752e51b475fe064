"""A report as one HTML page that needs nothing else: no network, no other file.

Rules of this file

1. The report is in the page as text, and can be read without a script: what is broken first, then what led there, the
   rules, the input. The script adds the viewer: every event with the replicas' logs and the messages around it.
2. templates/frame.html is every page's frame, templates/viewer.html the same viewer in each.
3. A trace holds foreign text: Jinja2 escapes all that the templates do not mark as safe, and what is not printable is
   escaped before (util.foreign_text).
"""

from collections.abc import Callable, Iterable, Sequence
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
from tidegauge.conformance.report.lanes import lanes_of
from tidegauge.conformance.report.text import NO_VERDICT, verdict_word
from tidegauge.conformance.report.timeline import Timelines, places
from tidegauge.story.sentences import headline
from tidegauge.traces.problems import counted
from tidegauge.traces.schema import Config
from tidegauge.util.foreign_text import visible
from tidegauge.util.version import PACKAGE_VERSION, SUITE_VERSION

CSS_CLASSES = {Verdict.FAIL: "fail", Verdict.INCONCLUSIVE: "open", Verdict.PASS: "pass", Verdict.NOT_EXERCISED: "none"}
"""The CSS class of each verdict, in the order in which the page lists them."""
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
    """A box that shows or folds the rules with one verdict."""

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
    verdict = verdict_word(report)
    verdict_class = "none" if verdict == NO_VERDICT else CSS_CLASSES.get(report.verdict, "fail")
    configs = (judged.batch.config for judged in report.judged)
    head = PageHead(title, verdict, verdict_class, summary, judged_by(configs))
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
            RuleFilter(verdict, CSS_CLASSES[verdict], count, verdict in (Verdict.PASS, Verdict.NOT_EXERCISED))
            for verdict, count in counts.items()
            if count
        ],
    )


def judged_by(configs: Iterable[Config]) -> list[str]:
    """Return the releases and profiles that the configs name, each once."""
    configs = list(configs)
    releases = dict.fromkeys(f"Kafka {name}" for config in configs for name in releases_of(config))
    return [*releases, *dict.fromkeys(f"profile {config.profile}" for config in configs)]


def failure_cards(explanations: Iterable[Explanation], timelines: Timelines) -> list[FailureCard]:
    """Return a card per failure; the traces they are in are added to the page's timelines."""
    return [_failure_card(explanation, timelines) for explanation in explanations]


def _failure_card(failure: Explanation, timelines: Timelines) -> FailureCard:
    """Return the card of a failure, with links to its events as far as they are on the page."""
    timeline = timelines.add_failure(failure)
    name, on_page = timelines.data[timeline]["trace"], timelines.event_numbers(timeline)

    def link(number: int, at: str, words: str = "") -> EventLink:
        # A cause may lie before the stretch of a long trace that is on the page: then it is text, not a link to nowhere.
        query = urlencode({"trace": name, "event": number, "rule": failure.rule.id})
        return EventLink(words, number, at, f"#{query}" if number in on_page else "")

    place = failure.place
    # A rule without known bugs never says "no bug that is known": nobody has looked for one.
    searched = failure.rule.bugs and not failure.bugs
    return FailureCard(
        failure,
        trace=f"{failure.trace} ({failure.tp})" if failure.tp and failure.tp not in failure.trace else failure.trace,
        at=link(place.row - place.rows.start + 1, failure.at),
        causes=[link(cause.number, cause.at, cause.says) for cause in failure.because],
        releases_without_bug=releases_of(failure.config) if searched else (),
    )


def render_page(template: str | Template, head: PageHead, timelines: Timelines, **parts: Any) -> str:
    """Fill a template that extends templates/frame.html: its name, or one of `environment()`."""
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
    """Return what an expression of a template shows; texts of the input as one line (rule 3)."""
    return value if hasattr(value, "__html__") else visible(str(value))


@cache
def environment() -> Environment:
    """Return the environment of all pages."""
    made = Environment(
        loader=PackageLoader("tidegauge.conformance.report"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"grouped": "{:,}".format, "counted": counted}
    # Jinja2 sorts keys by default; `tojson` itself escapes what could end a script element.
    made.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return made


def asset(name: str) -> str:
    """Return the text of a file in templates/."""
    loader: Any = environment().loader
    source: Callable[..., tuple[str, Any, Any]] = loader.get_source
    return source(environment(), name)[0]
