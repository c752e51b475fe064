"""JUnit XML, as CI servers read it: suites of cases, each of which passed, failed, broke or was skipped; and its summary."""

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from tidegauge.util.errors import BAD, CONFORMS, FAILS, UNDECIDED, UsageError
from tidegauge.util.untrusted_text import shortened, visible, visible_lines
from tidegauge.util.version import SUITE_VERSION


class JUnitOutcome(Enum):
    """What came of a case that did not pass; the value is the name of its element."""

    FAILURE = "failure"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class JUnitCase:
    """One test case. `message` is one line, `details` the text of the element; a case without an `outcome` passed."""

    classname: str
    name: str
    outcome: JUnitOutcome | None = None
    message: str = ""
    details: str = ""
    seconds: float | None = None


@dataclass(frozen=True)
class JUnitSuite:
    """One test suite; `stderr` is what was wrong with its input."""

    name: str
    cases: Sequence[JUnitCase]
    properties: Mapping[str, str] = field(default_factory=dict)
    stderr: str = ""
    seconds: float | None = None


def write_junit_xml(path: Path, name: str, suites: Sequence[JUnitSuite], seconds: float | None = None) -> None:
    """Write the suites of a run called `name` to a file; `seconds` is the time of the whole run."""
    root = ElementTree.Element("testsuites", name=visible(name))
    _set_totals(root, [case for suite in suites for case in suite.cases], seconds)
    root.extend(map(_suite_element, suites))
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _suite_element(suite: JUnitSuite) -> ElementTree.Element:
    """Return the element of a suite with its cases."""
    element = ElementTree.Element("testsuite", name=visible(suite.name))
    _set_totals(element, suite.cases, suite.seconds)
    if suite.properties:
        properties = ElementTree.SubElement(element, "properties")
        for name, value in suite.properties.items():
            ElementTree.SubElement(properties, "property", name=visible(name), value=visible(value))
    for case in suite.cases:
        attributes = {"classname": visible(case.classname), "name": visible(case.name)} | _time(case.seconds)
        case_element = ElementTree.SubElement(element, "testcase", attributes)
        if case.outcome is not None:
            outcome = ElementTree.SubElement(case_element, case.outcome.value, message=visible(case.message))
            outcome.text = visible_lines(case.details) or None
    # The schema of JUnit asks for this order: properties, cases, what was printed.
    if suite.stderr:
        ElementTree.SubElement(element, "system-err").text = visible_lines(suite.stderr)
    return element


def _set_totals(element: ElementTree.Element, cases: Sequence[JUnitCase], seconds: float | None) -> None:
    """Set the numbers of cases by outcome, and the time if it is known, as attributes of a suite or a run."""
    counts = {"tests": len(cases)}
    for plural, outcome in (
        ("failures", JUnitOutcome.FAILURE),
        ("errors", JUnitOutcome.ERROR),
        ("skipped", JUnitOutcome.SKIPPED),
    ):
        counts[plural] = sum(case.outcome is outcome for case in cases)
    element.attrib.update({name: str(count) for name, count in counts.items()} | _time(seconds))


def _time(seconds: float | None) -> dict[str, str]:
    """Return the attribute with the time of a case, a suite or the run; none if it is not known."""
    return {} if seconds is None else {"time": f"{seconds:.3f}"}


# ---------------------------------------------------------------------------------------------------------------------
# What a CI job shows of its results: a summary in Markdown, annotations, a badge, and the exit code that its known
# failures leave.
#
# Rules of this part
#
# 1. It reads JUnit XML, which `check`, `probe` and the pytest plugin all write: whatever ran, the list of known failures
#    and the summary are the same.
# 2. A job fails for a case that fails and is not known, for an error, and for a line of the list that is stale
#    (`known_failures`). A job in which nothing was decided has not passed either.
# 3. Texts of cases stand in code: what a broker or a log says is no Markdown of the summary, and no command of the CI
#    server.


# The list of failures that a project knows: which cases fail, and which fail at times.
#
# Rules of this part
#
# 1. A line is the id of a case; `flaky:` before it says that it fails at times. A # and the reason may follow.
# 2. The list is strict: a case that fails and is not listed is a failure, and so is a line that is stale. A line is stale if
#    its case is no longer there, or passes and is not flaky. Left in the list, it would hide that nothing is expected any
#    more.


FLAKY = "flaky:"


class KnownFailure(NamedTuple):
    """A line of the list of known failures: where it is, why the case fails, and whether it does so only at times."""

    where: str
    reason: str
    flaky: bool = False


def known_failures(place: Path, cases: Collection[str] | None = None) -> Mapping[str, KnownFailure]:
    """Read the list of known failures in a file; return its lines by the id of the case.

    A line is `ID # REASON` or `flaky: ID # REASON`, or empty, or a comment alone. Raises UsageError if there is no such file
    or, where the `cases` of the run are given, for the id of none of them.
    """
    try:
        lines = place.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"{place}: expected a file of ids; seen {problem}; make one, with an id per line") from None
    by_id: dict[str, KnownFailure] = {}
    for number, line in enumerate(lines, start=1):
        text, _, reason = line.partition("#")
        case_id = text.strip().removeprefix(FLAKY).strip()
        if not case_id:
            continue
        if cases is not None and case_id not in cases:
            raise UsageError(f"{place}:{number}: expected the id of a case; seen {case_id!r}; take the line out")
        flaky = text.strip().startswith(FLAKY)
        why = reason.strip() or ("fails at times" if flaky else "expected to fail")
        by_id[case_id] = KnownFailure(f"{place}:{number}", why, flaky)
    return by_id


PASSED, SKIPPED, FAILED, ERROR = "passed", "skipped", "failure", "error"
FAILURES_SHOWN = 20
"""Failures that a summary and annotations show."""
LONGEST = 4000
"""Characters of one failure's text in a summary: a job may write a megabyte."""
DRIVEN = "tidegauge.driven"
"""The property of a JUnit file in which the pytest plugin writes the name of the broker."""
_PARAMETER = re.compile(r"^\w+\[(.*)\]$")
"""The name of a parametrized test of pytest: FUNCTION[PARAMETER]."""


class CaseResult(NamedTuple):
    """A case of a JUnit file: its id, what came of it, and why."""

    id: str
    outcome: str
    message: str
    details: str


@dataclass(frozen=True)
class JobSummary:
    """The results of a job, held against the list of known failures.

    `unexpected` are the failures and errors that are not listed; `as_listed` the lines whose case fails, `stale` those that
    have to be taken out (rule 2 of the list), both by the id of the case.
    """

    title: str
    cases: tuple[CaseResult, ...]
    unexpected: tuple[CaseResult, ...]
    as_listed: Mapping[str, KnownFailure]
    stale: Mapping[str, KnownFailure]

    def count(self, outcome: str) -> int:
        """Return the number of cases with an outcome."""
        return sum(case.outcome == outcome for case in self.cases)

    @property
    def exit_code(self) -> int:
        """Return 0 if nothing is unexpected, 1 for a failure or stale line, 2 for an error, 3 if nothing was decided."""
        if self.stale or any(case.outcome == FAILED for case in self.unexpected):
            return FAILS
        if self.unexpected:
            return BAD
        # A known failure was decided too.
        return CONFORMS if self.count(PASSED) or self.as_listed else UNDECIDED

    @property
    def verdict(self) -> str:
        """What is unexpected, in a few words; or that nothing is, or was decided."""
        parts = [f"{len(self.unexpected)} unexpected"] if self.unexpected else []
        parts += [f"{len(self.stale)} stale"] if self.stale else []
        otherwise = "nothing was decided" if self.exit_code == UNDECIDED else "nothing unexpected"
        return ", ".join(parts) or otherwise


def read_cases(path: Path) -> tuple[str, list[CaseResult]]:
    """Return the name of a run and its cases from a JUnit file. Raises UsageError for a file that is not JUnit."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as problem:
        do = "name what check --out, probe --junit or pytest --junitxml wrote"
        raise UsageError(f"{path}: expected JUnit XML, seen {problem}; {do}") from None
    if root.tag not in ("testsuites", "testsuite"):
        raise UsageError(f"{path}: expected JUnit XML, seen the element {visible(root.tag)}; name another file")
    # pytest calls every run `pytest tests`; its plugin says what was driven.
    driven = root.find(f".//property[@name='{DRIVEN}']")
    name = root.get("name") if driven is None else driven.get("value")
    return visible(name or path.stem), [_case(element) for element in root.iter("testcase")]


def _case(element: ElementTree.Element) -> CaseResult:
    """Return the result of a testcase element."""
    name = element.get("name", "")
    # A parametrized test of pytest is called by its parameter, which is the id of the case.
    parameter = _PARAMETER.match(name)
    case_id = visible(parameter[1] if parameter else name)
    for outcome in (ERROR, FAILED, SKIPPED):
        outcome_element = element.find(outcome)
        if outcome_element is not None:
            return CaseResult(case_id, outcome, outcome_element.get("message", ""), outcome_element.text or "")
    return CaseResult(case_id, PASSED, "", "")


def summarize(title: str, cases: Sequence[CaseResult], known_by_id: Mapping[str, KnownFailure]) -> JobSummary:
    """Hold the cases of a run against the list of known failures, and return the summary; `title` names the run."""
    outcomes: dict[str, set[str]] = {}  # by id, which several cases may have
    for case in cases:
        outcomes.setdefault(case.id, set()).add(case.outcome)
    unexpected = tuple(case for case in cases if case.outcome in (FAILED, ERROR) and case.id not in known_by_id)
    as_listed = {name: line for name, line in known_by_id.items() if outcomes.get(name, set()) & {FAILED, ERROR}}
    # The case is gone, or passes and is not flaky. One that was only skipped proves nothing: its line stays.
    stale = {
        name: line
        for name, line in known_by_id.items()
        if name not in outcomes or (name not in as_listed and not line.flaky and PASSED in outcomes[name])
    }
    return JobSummary(title, tuple(cases), unexpected, as_listed, stale)


# ---------------------------------------------------------------------------------------------------------------------
# Markdown


def markdown(summary: JobSummary) -> str:
    """Return the summary as Markdown."""
    counts = ((name, summary.count(name)) for name in (PASSED, FAILED, ERROR, SKIPPED))
    # The heading; a block to unfold for each unexpected failure; a table of the listed ones that are stale or failed.
    lines = [
        f"### {_code(summary.title)}: {summary.verdict}",
        "",
        f"suite {SUITE_VERSION}; " + ", ".join(f"{number:,} {name}" for name, number in counts if number),
        "",
    ]
    for case in summary.unexpected[:FAILURES_SHOWN]:
        lines += [
            f"<details><summary><code>{_html(case.id)}</code> {case.outcome}</summary>",
            "",
            *_fenced(case),
            "</details>",
            "",
        ]
    if len(summary.unexpected) > FAILURES_SHOWN:
        lines += [f"and {len(summary.unexpected) - FAILURES_SHOWN} more", ""]
    rows = [("stale: take it out", name, line) for name, line in summary.stale.items()]
    rows += [("flaky" if line.flaky else "known", name, line) for name, line in summary.as_listed.items()]
    if rows:
        lines += ["| listed failure | id | reason |", "|---|---|---|"]
        lines += [f"| {kind} | {_code(name)} | {_code(f'{line.where}: {line.reason}')} |" for kind, name, line in rows]
    return "\n".join(lines).rstrip() + "\n"


def _fenced(case: CaseResult) -> Iterable[str]:
    """Return the lines of a code block of Markdown with the details of a case, or else its message, shortened to LONGEST."""
    text = shortened(visible_lines(case.details.strip() or case.message), LONGEST)
    # A fence longer than any run of backticks in the text, which could end the block otherwise.
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return [f"{fence}text", text, fence, ""]


def _code(text: str) -> str:
    """Return one line as a code span that a table can hold."""
    plain = visible(text).replace("`", "'").replace("|", "\\|")
    return f"`{plain}`" if plain else ""


def _html(text: str) -> str:
    """Return one line of text escaped for HTML inside Markdown."""
    return visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# ---------------------------------------------------------------------------------------------------------------------
# Annotations and badges


def on_github() -> bool:
    """Return whether a workflow of GitHub runs this."""
    # GitHub sets the variable in every step of a workflow.
    return os.environ.get("GITHUB_ACTIONS") == "true"


def annotations(name: str, stories: Sequence[str]) -> list[str]:
    """Return a workflow command of GitHub for each story, which the run's page shows as an error.

    A story is a text of several lines; its first line is in the title of the error, after `name`.
    """
    return [f"::error title={_property(f'{name} {story.splitlines()[0]}')}::{_data(story)}" for story in stories]


def summary_annotations(summary: JobSummary) -> list[str]:
    """Return the annotations of a summary: a workflow command per unexpected failure, and one per stale line."""
    stories = [
        shortened(f"{case.id}: {case.message}\n{visible_lines(case.details)}", LONGEST)
        for case in summary.unexpected[:FAILURES_SHOWN]
    ]
    stories += [f"{name}: stale, {line.where} expects it to fail: take the line out" for name, line in summary.stale.items()]
    return annotations(summary.title, [story.rstrip() for story in stories])


def _data(text: str) -> str:
    """Escape the message of a workflow command, whose line end would end the command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape a property of a workflow command, such as its title, which a colon or a comma would end."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


BADGE_COLORS = {CONFORMS: ("conforms", "brightgreen"), FAILS: ("differs", "red")}
"""By exit code: what a badge says, and its color."""


def badge(exit_code: int, about: str) -> str:
    """Return the JSON of an endpoint badge of shields.io, schema version 1; `about` says what the outcome is about."""
    verdict, color = BADGE_COLORS.get(exit_code, ("undecided", "lightgrey"))
    return (
        json.dumps({"schemaVersion": 1, "label": "tidegauge", "message": f"{verdict} ({about})", "color": color}, indent=1)
        + "\n"
    )
