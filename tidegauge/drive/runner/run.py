"""One run: cases are played; differences are grouped by kind, shrunk, explained and written as text.

A difference is the first step of a case after which the node and the reference report different values. Differences are of
one kind if they are in the same fields after a step of the same name. To shrink one is to find a shorter path on which the
node still differs in the same way. A difference that does not come again when its case is played again is reported as such:
the node is not deterministic. `echo` gets a line of progress before something takes long.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple

from tidegauge.drive.contract import Capabilities, CaseT, Node, Path, Watch
from tidegauge.drive.runner.differences import Difference, PlayResult, by_kind
from tidegauge.drive.runner.player import ReferenceNode, play, play_as_far_as_it_goes
from tidegauge.drive.runner.reference_interface import Reference
from tidegauge.drive.runner.report import NAMES, SuspectedBugs, accepting, explain_most, explanations, story
from tidegauge.traces.problems import counted
from tidegauge.util.errors import CONFORMS, FAILS, UNDECIDED
from tidegauge.util.version import SUITE_VERSION

KINDS = 5
"""How many kinds of differences are shrunk and explained."""

SAMPLE = 20
"""On how many differences of a kind a known bug that explains the shortest one is tried."""

LOGGED = 12
"""How many lines at the end of the node's log are shown."""


class DriveFailure(NamedTuple, Generic[CaseT]):
    """A kind of difference: the shortest case that shows it, how many cases do, the known bugs that do the same."""

    shown: Difference[CaseT]
    paths: int
    same: tuple[SuspectedBugs, ...]
    text: str
    accepted: tuple[str, ...] = ()
    """The generations that do the same."""


class DriveRun(NamedTuple, Generic[CaseT]):
    """The result of a run. `not_again`: how many kinds of differences did not come again; `notes`: lines of coverage."""

    name: str
    called: str
    profile: str
    played: PlayResult[CaseT]
    seconds: float
    failures: tuple[DriveFailure[CaseT], ...]
    not_again: int
    notes: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0 conforms, 1 differs, 3 nothing was compared."""
        # What did not come again counts: a node that is not the same twice cannot be tested, and the run fails.
        return self.played.exit_code


def run(
    node: Node[CaseT],
    cases: Sequence[CaseT],
    reference: Reference[CaseT, Any],
    notes: Sequence[str] = (),
    recorder: Watch | None = None,
    echo: Callable[[str], None] = lambda _: None,
    log_lines: Callable[[CaseT], Sequence[str]] = lambda _: (),
) -> DriveRun[CaseT]:
    """Play cases on a node, compare it with the reference, and return the result with the differences explained.

    `notes`: lines to report besides; `recorder` gets every report; `log_lines` returns what the node logged when a case was
    played last. Raises what the node raises, unless something differed before it gave up: that is a result.
    """
    observed = reference.observed()
    began = time.monotonic()
    played = play_as_far_as_it_goes(node, cases, observed, recorder)
    seconds = time.monotonic() - began
    if played.ended is not None and not played.differences:
        raise played.ended
    # A node that has given up cannot be used again. What is played again is compared with `reference`, not with `observed`,
    # which counts: the notes are about the cases themselves.
    again = played.ended is None
    failures, not_again = failures_of(node, played.differences, reference, echo, log_lines, again=again)
    all_notes = (*notes, *observed.notes(cases, played.differences))
    name, called = node.capabilities.name, reference.called
    return DriveRun(name, called, reference.profile.name, played, seconds, tuple(failures), not_again, all_notes)


def failures_of(
    node: Node[CaseT],
    differences: Sequence[Difference[CaseT]],
    reference: Reference[CaseT, Any],
    echo: Callable[[str], None] = lambda _: None,
    log_lines: Callable[[CaseT], Sequence[str]] = lambda _: (),
    *,
    again: bool = True,
) -> tuple[list[DriveFailure[CaseT]], int]:
    """Return a failure for each of the most frequent kinds of differences, and how many other kinds did not come again.

    The shortest difference of a kind is played again and shrunk. With `again` off nothing is played, it is shown as it is.
    """
    failures, not_again = [], 0
    reported = node.capabilities.reports
    # The kinds with the most differences first.
    for (after, fields), alike in sorted(by_kind(differences).items(), key=lambda item: -len(item[1]))[:KINDS]:
        shortest = min(alike, key=lambda difference: difference.at)
        if again:
            echo(f"shrinking {after}: {', '.join(fields)}, {len(alike):,} paths")
        shown = shrunk(node, shortest, reference) if again else shortest
        if shown is None:
            not_again += 1
            continue
        # Many bugs look alike on a short path, so those are named that explain most of the longer ones, too.
        explained = explain_most(explanations(shown, reference, reported), alike[:SAMPLE], reference, reported)
        accepted = accepting(shown, reference, reported)
        text = story(shown, reference, explained, reported, NAMES, log_lines(shown.case)[-LOGGED:], accepted)
        failures.append(DriveFailure(shown, len(alike), explained.causes, text, accepted))
    return failures, not_again


def text_of(run: DriveRun[CaseT]) -> str:
    """Return the whole run as text: failures, notes, how much was compared, the verdict."""
    lines = []
    for failure in run.failures:
        lines += [failure.text, f"  seen on   {failure.paths:,} paths", ""]
    if run.not_again:
        lines.append(f"{run.not_again} kinds of differences did not come again: the {run.called} is not the same twice")
    lines += run.notes
    accepting_all = _accepting_all(run)
    if accepting_all:
        lines.append(f"--profile {accepting_all[0]} accepts every difference that is shown")
    played = run.played
    if played.ended is not None:
        lines.append(f"no more paths were played, and none was made shorter: {played.ended}")
    rate = played.steps / run.seconds if run.seconds else 0.0
    lines.append(
        f"{counted(played.cases, 'path')}, {counted(played.steps, 'step')} in {run.seconds:.1f} s ({rate:,.0f}/s), "
        f"{played.fields:,} fields compared; suite {SUITE_VERSION}"
    )
    verdicts = {
        CONFORMS: f"{run.name} CONFORMS to {run.profile}: no step differs",
        FAILS: f"{run.name} DIFFERS from {run.profile} on {len(played.differences):,} of {played.cases:,} paths",
        UNDECIDED: f"{run.name}: UNDECIDED, nothing was compared",
    }
    return "\n".join([*lines, verdicts[run.exit_code]])


def _accepting_all(run: DriveRun[CaseT]) -> list[str]:
    """Return the names of the other generations by whose rules every failure is right, the nearest first."""
    first = run.failures[0].accepted if run.failures else ()
    return [name for name in first if all(name in failure.accepted for failure in run.failures)]


# A failing path made short: steps are left out while the node still differs from the reference in the same way.


SECONDS = 8.0
"""How long one path may be shrunk; the result is the shortest by then."""


def shrunk(
    node: Node[CaseT], difference: Difference[CaseT], reference: Reference[CaseT, Any], seconds: float = SECONDS
) -> Difference[CaseT] | None:
    """Return the difference on the shortest path that is found in so many seconds; None if it does not come again."""
    deadline = time.monotonic() + seconds
    best = None
    if reference.plays_one_at_a_time:
        # Each case takes a process of the node its time, and the reference next to none. So a reference with a bug that
        # explains the difference stands for the node first: one is enough, if there is any. Its shortest path is then played
        # on the node; if that differs there, too, shrinking goes on from it.
        for bugs in explanations(difference, reference, node.capabilities.reports)[:1]:
            short = _shrunk_on(ReferenceNode(reference.with_bugs(bugs), node.capabilities), difference, reference, deadline)
            best = None if short is None else _replayed(node, [short.case], reference, difference)
    return _shrunk_on(node, difference if best is None else best, reference, deadline)


def _shrunk_on(
    node: Node[CaseT], difference: Difference[CaseT], reference: Reference[CaseT, Any], deadline: float
) -> Difference[CaseT] | None:
    """Shrink a difference by playing shorter paths on a node, until none of them differs or the deadline is over.

    Returns None if the difference does not come again on its own path. `deadline` is a time of `time.monotonic`.
    """
    best = _replayed(node, [difference.case._replace(path=difference.case.path[: difference.at])], reference, difference)
    while best is not None and time.monotonic() < deadline:
        shorter = _shorter(node, best, difference, reference)
        if shorter is None:
            break
        best = shorter
    return best


def _shorter(
    node: Node[CaseT], best: Difference[CaseT], difference: Difference[CaseT], reference: Reference[CaseT, Any]
) -> Difference[CaseT] | None:
    """Return a difference of the same kind as `difference` on a path with fewer steps than `best`; None if there is none."""
    candidates = _candidates(best.case, reference, node.capabilities)
    # A node that plays cases side by side takes all candidates at once; for another each case costs its time.
    rounds = ([case] for case in candidates) if reference.plays_one_at_a_time else iter([[*candidates]])
    for cases in rounds:
        replayed = _replayed(node, cases, reference, difference)
        if replayed is not None:
            return replayed
    return None


def _replayed(
    node: Node[CaseT], cases: Sequence[CaseT], reference: Reference[CaseT, Any], difference: Difference[CaseT]
) -> Difference[CaseT] | None:
    """Play cases; return the earliest difference of the same kind as `difference`, None if there is none.

    The path of its case then ends with the step that differs.
    """
    differences = play(node, cases, reference).differences
    alike = [replayed for replayed in differences if reference.is_same_kind(difference, replayed)]
    if not alike:
        return None
    earliest = min(alike, key=lambda replayed: replayed.at)
    return earliest._replace(case=earliest.case._replace(path=earliest.case.path[: earliest.at]))


def _candidates(case: CaseT, reference: Reference[CaseT, Any], capabilities: Capabilities) -> Iterator[CaseT]:
    """Yield shorter cases: the case without some steps in a row, longest gaps first, if a node can be given the rest."""
    tried = {case.path}
    for path in _shortened(case.path):
        shorter = case._replace(path=path)
        # A path without some steps may be none that the contract allows, or none that the node can be given.
        if path not in tried and reference.can_be_given(shorter, capabilities):
            tried.add(path)
            yield shorter


def _shortened(path: Path) -> Iterator[Path]:
    """Yield the path without some of its steps in a row, longest gaps first; its last step stays."""
    # The last step is the one that differs, so no gap reaches it.
    for gap in range(len(path) - 1, 0, -1):
        for at in range(len(path) - gap):
            yield (*path[:at], *path[at + gap :])
