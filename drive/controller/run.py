"""One run against a controller: paths are played, what differs is sorted by kind, shrunk, explained and told.

Rule of this file: what does not come again on another cluster is counted beside the differences, and the run fails.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidegauge.drive.contract import Path, Watch
from tidegauge.drive.controller.contract import ClusterOpening, ControllerCase, Difference
from tidegauge.drive.controller.explain import Suspect, explanations, switched
from tidegauge.drive.controller.player import Node, ReferenceNode, play
from tidegauge.drive.controller.scenarios import SCENARIOS, SHOWN_BY
from tidegauge.drive.controller.text import story
from tidegauge.drive.runner.differences import Played
from tidegauge.drive.runner.grouping import shrunk_kinds
from tidegauge.drive.runner.shrink import SECONDS, shortened
from tidegauge.drive.runner.summary import summary
from tidegauge.impl.profiles import Profile

LOGGED = 12


class Failure(NamedTuple):
    """A kind of difference: the shortest path that shows it, how many paths do, the switches that do the same."""

    shown: Difference
    paths: int
    same: list[tuple[Suspect, ...]]
    text: str


class Run(NamedTuple):
    """What a run has shown; `findings` are those whose scenario was played as the expected profile has it."""

    name: str
    profile: str
    played: Played[ControllerCase]
    seconds: float
    failures: tuple[Failure, ...]
    not_again: int
    findings: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0 conforms, 1 differs, 3 nothing was compared."""
        return self.played.exit_code


def run(
    node: Node,
    cases: Sequence[ControllerCase],
    profile: Profile,
    recorder: Watch | None = None,
    echo: Callable[[str], None] = lambda _: None,
    log_lines: Callable[[ControllerCase], Sequence[str]] = lambda _: (),
) -> Run:
    """Play the orders on a controller and tell what differs."""
    began = time.monotonic()
    played = play(node, cases, profile, recorder)
    seconds = time.monotonic() - began
    failures, not_again = [], 0
    for shown, alike in shrunk_kinds(played.differences, lambda found: shrunk(node, found, profile), echo):
        if shown is None:
            not_again += 1
            continue
        same = explanations(shown, profile)
        text = story(shown, same, log_lines(shown.case)[-LOGGED:])
        failures.append(Failure(shown, len(alike), same, text))
    differ = {found.case for found in played.differences}
    shows = tuple(case.name for case in cases if case not in differ and is_shown(case, profile))
    return Run(node.name, profile.name, played, seconds, tuple(failures), not_again, shows)


def scenarios(opening: ClusterOpening) -> tuple[ControllerCase, ...]:
    """The findings' paths; those that switch ELR on or off need a release that has it."""
    has_elr = opening.elr > 0
    paths = {name: path for name, path in SCENARIOS.items() if has_elr or not any(s[0] == "update_feature" for s in path)}
    return tuple(ControllerCase(opening, path, name) for name, path in paths.items())


def is_shown(case: ControllerCase, profile: Profile) -> bool:
    """Whether a finding's path shows it with this profile: without its switch the reference does something else there."""
    switch = SHOWN_BY.get(case.name)
    if switch is None or not getattr(profile, switch):
        return False
    repaired = profile.switched({switch: False})
    return bool(play(ReferenceNode(profile), [case], repaired).differences)


def shrunk(node: Node, found: Difference, profile: Profile, seconds: float = SECONDS) -> Difference | None:
    """The shortest path found that shows the difference; None when it does not come again.

    A switch that explains the difference is asked first, for the reference is faster than a process: where what is left with
    it differs on the process too, it is what is shrunk further.
    """
    ends = time.monotonic() + seconds
    best = None
    for suspects in explanations(found, profile)[:1]:
        short = _shrunk(ReferenceNode(switched(profile, suspects)), found, profile, ends)
        best = None if short is None else _again(node, short.case.path, found, profile)
    return _shrunk(node, found if best is None else best, profile, ends)


def _shrunk(node: Node, found: Difference, profile: Profile, ends: float) -> Difference | None:
    best = _again(node, found.case.path[: found.at], found, profile)
    while best is not None and time.monotonic() < ends:
        shorter = next(
            (again for path in shortened(best.case.path) if (again := _again(node, path, found, profile)) is not None), None
        )
        if shorter is None:
            break
        best = shorter
    return best


def _again(node: Node, path: Path, found: Difference, profile: Profile) -> Difference | None:
    played = play(node, [found.case._replace(path=path)], profile)
    for again in played.differences:
        if (again.after, again.fields) == (found.after, found.fields):
            return again._replace(case=again.case._replace(path=path[: again.at]))
    return None


def text_of(shown: Run) -> str:
    """The whole run as text: failures, what was shown, verdict."""
    lines = []
    for failure in shown.failures:
        lines += [failure.text, f"  seen on   {failure.paths:,} paths", ""]
    if shown.not_again:
        lines.append(f"{shown.not_again} kinds of differences did not come again: the controller is not the same twice")
    if shown.findings:
        lines.append(f"shown: {', '.join(shown.findings)}")
    return "\n".join([*lines, *summary(shown.name, shown.profile, shown.played, shown.seconds)])
