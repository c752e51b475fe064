"""One run of a cluster: each member's node plays its part of every path; the first step of a path that differs is reported.

A *member* is a broker of the cluster, by its index from 0 on; texts count from 1. Its *node* is what plays its steps, such
as a process of Kafka. A path of the cluster has steps of all members in one order; a member's part of it is a case.

Rules of this file

1. A member is compared with its own profile. What comes after the first step that differs, at whichever member, follows
   from it: there the others were given what the right member would have reported.
2. Up to there each member was given what the others really reported. No comparison is needed: a reported value that differs
   from the one that was handed on is already that member's difference. The values that nobody reports are counted apart.
3. Members with the same node share it: a path of each is played on a partition of its own.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.reference import BrokerReference
from tidegauge.drive.cluster.cluster_walks import ClusterPath, MemberModel
from tidegauge.drive.contract import Node, Report
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.run import failures_of
from tidegauge.drive.runner.transcript import Recorder
from tidegauge.util.errors import CONFORMS, FAILS, UNDECIDED
from tidegauge.util.untrusted_text import visible
from tidegauge.util.version import SUITE_VERSION


class ClusterMember(NamedTuple):
    """A broker of the cluster: its name, its node, and the reference that it is compared with.

    `log_lines`: returns the lines that the node logged about a case.
    """

    name: str
    node: Node[BrokerCase]
    reference: BrokerReference
    log_lines: Callable[[BrokerCase], Sequence[str]] = lambda _: ()

    @property
    def model(self) -> MemberModel:
        """The member as paths are made for it."""
        return MemberModel(self.reference, self.node.capabilities)


class MemberDifference(NamedTuple):
    """The first step of a path that differs: the member, the number of the step in the path, and the member's difference."""

    path: ClusterPath
    member: int
    at: int
    difference: Difference[BrokerCase]


class ClusterRun(NamedTuple):
    """The result of a run. `steps`, `fields`: how many were compared; `seconds`: how long it took.

    `handed`: how many of the values that members were given are what the others really reported; `unreported`: how many the
    others do not report. `differences`: one per path that differs; `stories`: a text about each member that differs.
    """

    members: tuple[ClusterMember, ...]
    paths: tuple[ClusterPath, ...]
    steps: int
    fields: int
    handed: int
    unreported: int
    seconds: float
    differences: tuple[MemberDifference, ...]
    stories: tuple[str, ...]
    reports: tuple[Mapping[int, tuple[Report, ...]], ...]
    """Of each member, what it reported on each path, by the number of the path."""

    @property
    def exit_code(self) -> int:
        """0 conforms, 1 differs, 3 nothing was compared."""
        return FAILS if self.differences else CONFORMS if self.steps else UNDECIDED


def play_cluster(
    members: Sequence[ClusterMember], paths: Sequence[ClusterPath], echo: Callable[[str], None] = lambda _: None
) -> ClusterRun:
    """Have every member play its part of the paths, one member after the other, and find where a path first differs.

    `echo` is called with a line before each member plays.
    """
    began, steps, fields = time.monotonic(), 0, 0
    differences: list[dict[int, Difference[BrokerCase]]] = []
    reports: list[dict[int, tuple[Report, ...]]] = []
    for number, member in enumerate(members):
        echo(f"broker {number + 1}, {member.name}: {len(paths):,} paths")
        cases = [path.cases[number] for path in paths]
        recorder = _RecorderByNumber(cases)
        played = play(member.node, cases, member.reference, recorder)
        steps, fields = steps + played.steps, fields + played.fields
        # By identity: two cases of a member may be equal.
        numbers = {id(case): index for index, case in enumerate(cases)}
        differences.append({numbers[id(difference.case)]: difference for difference in played.differences})
        reports.append(recorder.by_number)
    # Of each path that differs, the first difference: what comes after it does not count (rule 1).
    firsts = [first for index, path in enumerate(paths) if (first := _first(path, index, differences)) is not None]
    handed, unreported = _count_handed_on(members, paths, reports, {id(first.path): first.at for first in firsts})
    stories = tuple(_story(members, firsts)) if firsts else ()
    return ClusterRun(
        tuple(members),
        tuple(paths),
        steps,
        fields,
        handed,
        unreported,
        time.monotonic() - began,
        tuple(firsts),
        stories,
        tuple(reports),
    )


class _RecorderByNumber(Recorder[BrokerCase]):
    """Records reports by the number of the case, not by the case: two paths may be the same for a member."""

    @property
    def by_number(self) -> dict[int, tuple[Report, ...]]:
        """The reports of each case, the first of them that of its opening."""
        return {number: tuple(reports) for number, reports in self._reports.items()}


def _first(
    path: ClusterPath, number: int, differences: Sequence[dict[int, Difference[BrokerCase]]]
) -> MemberDifference | None:
    """Return the first difference of a path in the order of the cluster's steps, None if no member differs.

    `number`: that of the path; `differences`: of each member, by the number of the path.
    """
    candidates = [
        MemberDifference(path, member, path.place(member, by_path[number].at), by_path[number])
        for member, by_path in enumerate(differences)
        if number in by_path
    ]
    return min(candidates, key=lambda candidate: candidate.at, default=None)


def _count_handed_on(
    members: Sequence[ClusterMember],
    paths: Sequence[ClusterPath],
    reports: Sequence[dict[int, tuple[Report, ...]]],
    ends: dict[int, int],
) -> tuple[int, int]:
    """Count the values given to a member that another really reported, and those that nobody reports (rule 2).

    `reports`: of each member, by the number of the path. `ends`: the step at which a path first differs, by the path's id;
    the steps after it do not count.
    """
    handed = unreported = 0
    for number, path in enumerate(paths):
        for step in path.steps[: ends.get(id(path), len(path.steps))]:
            # A source names a member, one of its reports, and the field that the value was taken from.
            for member, index, field in step.sources:
                member_reports = reports[member].get(number, ())
                can_report = field in members[member].node.capabilities.reports
                # A member that differs is played no further, so it may have fewer reports than the path has steps.
                is_reported = can_report and index < len(member_reports) and field in member_reports[index]
                handed, unreported = handed + is_reported, unreported + (not is_reported)
    return handed, unreported


def _story(members: Sequence[ClusterMember], firsts: Sequence[MemberDifference]) -> list[str]:
    """Return a text for each member that differs: the shortest path up to there, and the member's part of it shrunk.

    `firsts`: the first difference of each path that differs.
    """
    stories = []
    for number, member in enumerate(members):
        of_member = [first for first in firsts if first.member == number]
        if not of_member:
            continue
        shortest = min(of_member, key=lambda first: first.at)
        head = f"broker {number + 1}, {visible(member.name)}, DIFFERS on {len(of_member):,} paths"
        lines = [f"{head}, first at step {shortest.at} of {shortest.path.name}:"]
        numbered = list(enumerate(shortest.path.steps[: shortest.at], 1))
        lines += [f"  {at:>3}  broker {step.member + 1}  {member.reference.step_text(step.step)}" for at, step in numbered]
        # Plays the member's parts again, alone, to find the shortest that still differ.
        failures, not_repeated = failures_of(
            member.node, [first.difference for first in of_member], member.reference, log_lines=member.log_lines
        )
        lines += [f"  by itself, broker {number + 1} as broker 1 of the steps:", *(failure.text for failure in failures)]
        if not_repeated:
            lines.append(f"{not_repeated} kinds of differences did not come again: the broker is not the same twice")
        stories.append("\n".join(lines))
    return stories


def cluster_text(run: ClusterRun) -> str:
    """Return the report of a run: the stories of members that differ, what was handed on and compared, the verdict."""
    named = Counter(visible(member.name) for member in run.members)
    cluster = ", ".join(name if count == 1 else f"{count} of {name}" for name, count in named.items())
    lines = list(run.stories)
    unreported = f"; {run.unreported:,} are not reported" if run.unreported else ""
    lines.append(
        f"{len(run.paths):,} paths of the cluster, {sum(len(path.steps) for path in run.paths):,} steps; "
        f"{run.handed:,} requests, responses and proposals that a broker was given are what another said{unreported}"
    )
    rate = run.steps / run.seconds if run.seconds else 0.0
    lines.append(
        f"{run.steps:,} steps of brokers in {run.seconds:.1f} s ({rate:,.0f}/s), {run.fields:,} fields compared; suite "
        f"{SUITE_VERSION}"
    )
    verdicts = {
        CONFORMS: f"the cluster of {cluster} CONFORMS: no step differs",
        FAILS: f"the cluster of {cluster} DIFFERS on {len(run.differences):,} of {len(run.paths):,} paths",
        UNDECIDED: f"the cluster of {cluster}: UNDECIDED, nothing was compared",
    }
    return "\n".join([*lines, verdicts[run.exit_code]])
