"""What a change has changed: two builds are taken through the same paths, and compared with each other.

The baseline is the build without the change. What a build did is kept as a transcript: a `TranscriptNode` that reports it
again. A change is all differences with the same causes: the known bugs and switches that make one build do what the other
did (compare.py). A difference that is shrunk has the shortest path found on which it still shows.

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
from tidegauge.drive.runner.compare import Change, Comparison, causes_text, compare
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.reference_interface import Reference
from tidegauge.drive.runner.run import shrunk
from tidegauge.drive.runner.transcript import Recorder, TranscriptFormat, TranscriptNode
from tidegauge.util.junit import JUnitCase, JUnitOutcome, JUnitSuite, write_junit_xml

BASELINE = " (baseline)"


def driven(
    node: Node[CaseT], cases: Sequence[CaseT], reference: Reference[CaseT, Any], form: TranscriptFormat[CaseT]
) -> TranscriptNode[CaseT]:
    """Take a node through cases and return what it reported, as a transcript in this format (not written to a file).

    Each case goes on to its end, or to the first step at which the node differs from the reference.
    """
    recorder = Recorder(cases)
    play(node, cases, reference, recorder)
    transcript = form.node(form.head(node.capabilities, reference.profile.name))
    for recorded in recorder.recorded():
        transcript.add(recorded)
    return transcript


def changes_from(
    baseline: TranscriptNode[CaseT],
    node: Node[CaseT],
    reference: Reference[CaseT, Any],
    echo: Callable[[str], None] = lambda _: None,
) -> Comparison[CaseT]:
    """Take a changed build through the paths of a baseline, and return what it does differently, shrunk where that is sound.

    `node` is the changed build, `reference` that of the baseline's profile. `echo` gets a line before each change is shrunk.
    """
    # Both builds may have one name: the copy of the baseline has a name of its own.
    name = f"{baseline.capabilities.name}{BASELINE}"
    first = TranscriptNode(baseline.format, baseline.capabilities._replace(name=name), baseline.profile, baseline.fields)
    for recorded in baseline.recorded():
        first.add(recorded)
    changed = driven(node, baseline.cases, reference, baseline.format)
    comparison = compare(first, changed)
    # Rule 2: the reference stands for the baseline on shorter paths only if it did the same on these.
    does_as_reference = not play(baseline, baseline.cases, reference).differences
    if not does_as_reference:
        return comparison
    return comparison._replace(changes=tuple(_shrunk_change(change, node, reference, echo) for change in comparison.changes))


def _shrunk_change(
    change: Change[CaseT], node: Node[CaseT], reference: Reference[CaseT, Any], echo: Callable[[str], None]
) -> Change[CaseT]:
    """Return a change with the shortest path found that shows it; as it is, if the node does not show it again."""
    echo(f"shrinking {change.shown.after}: {', '.join(change.shown.fields)}, {change.paths:,} paths")
    short = shrunk(node, change.shown, reference)
    return change if short is None else change._replace(shown=short)


# For a pull request.


def markdown(comparison: Comparison[Any]) -> str:
    """Return a comparison as Markdown: a heading, a table of the changes, each change as text, and the number of steps.

    Without a change a sentence stands in their place.
    """
    before, after = comparison.pair.names
    lines = [f"### {after} against {before}", ""]
    no_difference = f"No difference in {comparison.steps:,} steps that both were given."
    if not comparison.changes:
        return "\n".join((*lines, no_difference if comparison.steps else "Nothing was compared.", ""))
    lines += ["| does the same as | paths | first in |", "|---|---|---|"]
    lines += [f"| {causes_text(change)} | {change.paths:,} | {places_text(change)} |" for change in comparison.changes]
    for change in comparison.changes:
        lines += ["", "<details open><summary>" + causes_text(change) + "</summary>", "", "```"]
        lines += [comparison.pair.story(change), "```", "</details>"]
    lines += ["", f"{comparison.steps:,} steps that both were given."]
    return "\n".join((*lines, ""))


def places_text(change: Change[Any]) -> str:
    """Return after which steps a change shows first and in which fields, each with the number of paths in brackets."""
    return "; ".join(f"{place} ({paths:,})" for place, paths in change.after)


def write_junit(comparison: Comparison[Any], path: Path, tool: str) -> None:
    """Write a comparison as JUnit XML: a failed case per change.

    Without a change there is one case: it passes, or is skipped if no step was compared. `tool` is the name of the program.
    """
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
