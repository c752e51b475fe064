"""What a change has changed: two builds are taken through the same paths, and compared with each other.

Rules of this file

1. The paths are those of the baseline's profile. The baseline is driven first: its process ends before the other starts.
2. A difference is shrunk on the changed build. What the baseline would do on a shorter path is what its profile says, so a
   baseline that differs from its own profile has its differences shown as they are.
3. Texts are for a pull request: the summary is Markdown, and JUnit has a case per change.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tidegauge.drive.contract import CaseT, Node
from tidegauge.drive.runner.compare import UNEXPLAINED, Change, Comparison, compare
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.reference_interface import Reference
from tidegauge.drive.runner.run import shrunk
from tidegauge.drive.runner.transcript import Recorder, TranscriptFormat, TranscriptNode
from tidegauge.util.junit import JUnitCase, JUnitOutcome, JUnitSuite, write_junit_xml

BASELINE = " (baseline)"


def driven(
    node: Node[CaseT], cases: Sequence[CaseT], reference: Reference[CaseT, Any], form: TranscriptFormat[CaseT]
) -> TranscriptNode[CaseT]:
    """Take a node through cases, each up to its end or to where it differs from the reference; return what it did."""
    recorder = Recorder(cases)
    play(node, cases, reference, recorder)
    did = form.node(form.head(node.capabilities, reference.profile.name))
    for recorded in recorder.recorded():
        did.add(recorded)
    return did


def changes_from(
    baseline: TranscriptNode[CaseT],
    node: Node[CaseT],
    reference: Reference[CaseT, Any],
    echo: Callable[[str], None] = lambda _: None,
) -> Comparison[CaseT]:
    """Take a changed build through the paths of a baseline, and return its differences, shrunk."""
    name = f"{baseline.capabilities.name}{BASELINE}"
    first = TranscriptNode(baseline.format, baseline.capabilities._replace(name=name), baseline.profile, baseline.fields)
    for recorded in baseline.recorded():
        first.add(recorded)
    changed = driven(node, baseline.cases, reference, baseline.format)
    comparison = compare(first, changed)
    as_its_profile = not play(baseline, baseline.cases, reference).differences
    if not as_its_profile:
        return comparison
    return comparison._replace(changes=tuple(_short(change, node, reference, echo) for change in comparison.changes))


def _short(
    change: Change[CaseT], node: Node[CaseT], reference: Reference[CaseT, Any], echo: Callable[[str], None]
) -> Change[CaseT]:
    """Return a change with the shortest path that shows it, where one is found."""
    echo(f"shrinking {change.shown.after}: {', '.join(change.shown.fields)}, {change.paths:,} paths")
    short = shrunk(node, change.shown, reference)
    return change if short is None else change._replace(shown=short)


# For a pull request.


def markdown(comparison: Comparison[Any]) -> str:
    """Return what has changed as Markdown: a line that says whether, a table of the changes, each with its path."""
    before, after = comparison.pair.names
    lines = [f"### {after} against {before}", ""]
    same = f"No difference in {comparison.steps:,} steps that both were given."
    if not comparison.changes:
        return "\n".join((*lines, same if comparison.steps else "Nothing was compared.", ""))
    lines += ["| does the same as | paths | first in |", "|---|---|---|"]
    lines += [f"| {causes_text(change)} | {change.paths:,} | {places_text(change)} |" for change in comparison.changes]
    for change in comparison.changes:
        lines += ["", "<details open><summary>" + causes_text(change) + "</summary>", "", "```"]
        lines += [comparison.pair.story(change), "```", "</details>"]
    lines += ["", f"{comparison.steps:,} steps that both were given."]
    return "\n".join((*lines, ""))


def causes_text(change: Change[Any]) -> str:
    """Return the known bugs and switches by which a change is explained."""
    return ", or ".join(" with ".join(suspect.name for suspect in bugs) for bugs in change.causes) or UNEXPLAINED


def places_text(change: Change[Any]) -> str:
    """Return after which steps a change shows first, and in which fields."""
    return "; ".join(f"{place} ({paths:,})" for place, paths in change.after)


def write_junit(comparison: Comparison[Any], path: Path, tool: str) -> None:
    """Write a failed case per change; one that passes if nothing has changed, and is skipped if nothing was compared."""
    before, after = comparison.pair.names
    cases = [
        JUnitCase(
            "tidegauge.drive.baseline",
            f"{change.shown.after}: {', '.join(change.shown.fields)}",
            JUnitOutcome.FAILURE,
            f"{causes_text(change)}: {places_text(change)}",
            comparison.pair.story(change),
        )
        for change in comparison.changes
    ]
    if not cases:
        outcome = None if comparison.steps else JUnitOutcome.SKIPPED
        cases = [JUnitCase("tidegauge.drive.baseline", f"{comparison.steps:,} steps", outcome)]
    write_junit_xml(path, f"{tool} drive --baseline", [JUnitSuite(f"{after} against {before}", cases)])
