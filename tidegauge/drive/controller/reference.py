"""The reference of a controller's contract: `impl.controller`, and what its brokers know."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from tidegauge.drive.contract import Report, Step
from tidegauge.drive.controller.contract import (
    REPORTED,
    ClusterOpening,
    ControllerCase,
    ReferenceController,
    fields_that_differ,
    opened,
    report,
    resigned,
)
from tidegauge.drive.controller.findings import FINDINGS, SHOWN_BY, controller_findings
from tidegauge.drive.controller.metadata_image import Incarnations
from tidegauge.drive.controller.steps import STEPS, controller_capabilities, step_line
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.reference_interface import Finding, Reference, Suspect
from tidegauge.drive.runner.report import value_text
from tidegauge.impl.errors import UNKNOWN_SERVER_ERROR
from tidegauge.impl.profiles import Profile

RESIGNS = frozenset({"register", "register_late", "unregister", "heartbeat"})
"""Requests in which an exception is not caught: the controller resigns."""


def take_step(state: ReferenceController, step: Step, numbers: Incarnations) -> tuple[ReferenceController, Report]:
    """Take one step, and return what is reported after it."""
    name, *arguments = step
    state, result = STEPS[name].apply(state, *arguments)
    # A report gives the ordinal of an incarnation in place of its broker epoch.
    if result is not None and "incarnation" in result:
        result["incarnation"] = numbers.ordinal(arguments[0], result["incarnation"])
    # Where Kafka's controller throws it gives up its leadership, and leads again (QuorumController#handleEventException).
    if name in RESIGNS and result is not None and result["error"] == UNKNOWN_SERVER_ERROR:
        state = state._replace(controller=resigned(state.controller))
    return state, report(state, numbers, result)


# ---------------------------------------------------------------------------------------------------------------------
# For the runner

ControllerState = tuple[ReferenceController, Incarnations]


@dataclass(frozen=True)
class ControllerReference(Reference[ControllerCase, ControllerState]):
    """The expected behaviour of a controller of a generation."""

    everything, called, unexplained = controller_capabilities("reference"), "controller", "no known switch"
    tries_pairs, plays_one_at_a_time = True, True

    profile: Profile

    def opened(self, opening: ClusterOpening) -> ControllerState:
        """See Reference."""
        return opened(opening, self.profile), Incarnations()

    def report(self, state: ControllerState) -> Report:
        """See Reference."""
        return report(*state)

    def take(self, state: ControllerState, step: Step) -> tuple[ControllerState, Report]:
        """See Reference."""
        controller, incarnations = state
        # Paths that begin alike share a state, and numbers that are given out on one of them are not the other's.
        incarnations = incarnations.copy()
        controller, seen = take_step(controller, step, incarnations)
        return (controller, incarnations), seen

    def differences(self, expected: Report, seen: Report, reported: frozenset[str]) -> tuple[str, ...]:
        """See Reference."""
        del reported
        return fields_that_differ(expected, seen)

    def suspects(self) -> Iterator[Suspect]:
        """See Reference: the switches of the profile that a controller reads, each with its other value."""
        for switch, finding in FINDINGS.items():
            value = not getattr(self.profile, switch)
            yield Suspect(finding, f"{switch}={'on' if value else 'off'}", {switch: value})

    def with_bugs(self, suspects: Iterable[Suspect]) -> Self:
        """See Reference."""
        return replace(
            self,
            profile=self.profile.switched({name: value for suspect in suspects for name, value in suspect.switches.items()}),
        )

    def findings(self) -> Sequence[Finding]:
        """See Reference."""
        return [*controller_findings().values()]

    def is_same_kind(self, difference: Difference[ControllerCase], again: Difference[ControllerCase]) -> bool:
        """See Reference."""
        return (difference.after, difference.fields) == (again.after, again.fields)

    def suspect_label(self, suspect: Suspect) -> str:
        """See Reference: a finding may have several switches."""
        return str(suspect)

    def opening_text(self, opening: ClusterOpening) -> str:
        """See Reference."""
        return (
            f"metadata.version {opening.metadata_version}, ELR {'on' if opening.elr else 'off'}, "
            f"min.insync.replicas {opening.min_insync_replicas}"
        )

    def step_text(self, step: Step) -> str:
        """See Reference."""
        return step_line(step)

    def step_sentence(self, step: Step) -> str | None:
        """See Reference."""
        return f"{step[0]}: {STEPS[step[0]].says}"

    def side_by_side(
        self, difference: Difference[ControllerCase], reported: frozenset[str], names: tuple[str, str]
    ) -> Iterator[str]:
        """See Reference: the innermost values that differ, for a report has whole registrations."""
        del reported
        rows = [
            (name, value_text(expected), value_text(seen))
            for field in REPORTED
            if field in difference.fields
            for name, expected, seen in _apart(field, difference.expected.get(field), difference.seen.get(field))
        ]
        name_width = max((len(name) for name, _, _ in rows), default=0)
        width = max(map(len, (names[0], *(expected for _, expected, _ in rows))))
        yield f"      {'':<{name_width}}  {names[0]:<{width}}  {names[1]}"
        for name, expected, seen in rows:
            yield f"    ! {name:<{name_width}}  {expected:<{width}}  {seen}"

    def notes(self, cases: Sequence[ControllerCase], differences: Sequence[Difference[ControllerCase]]) -> list[str]:
        """See Reference: the findings whose scenario was played as this profile has it."""
        differ = {difference.case for difference in differences}
        shown = [case.name for case in cases if case not in differ and shows_finding(case, self.profile)]
        return [f"shown: {', '.join(shown)}"] if shown else []


def reference(profile: Profile) -> ControllerReference:
    """Return what a controller of this generation is expected to do."""
    return ControllerReference(profile)


def shows_finding(case: ControllerCase, profile: Profile) -> bool:
    """Return whether a finding's path shows it with this profile: without its switch the reference does something else."""
    switch = SHOWN_BY.get(case.name)
    if switch is None or not getattr(profile, switch):
        return False
    repaired = reference(profile.switched({switch: False}))
    return bool(play(ReferenceNode(reference(profile)), [case], repaired).differences)


def unseen(cases: Sequence[ControllerCase], profile: Profile) -> list[str]:
    """Return the switches of a controller that no case tells: with the other value the reference does the same on all."""
    right = reference(profile)
    expected = [list(right.reports(case)) for case in cases]

    def distinguishes(case: ControllerCase, reports: Sequence[Report], wrong: ControllerReference) -> bool:
        return any(map(fields_that_differ, reports, wrong.reports(case)))

    wrong_ones = {suspect.says: right.with_bugs([suspect]) for suspect in right.suspects()}
    return [
        switch
        for switch, wrong in wrong_ones.items()
        if not any(map(distinguishes, cases, expected, [wrong] * len(expected)))
    ]


def _apart(name: str, expected: Any, seen: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the innermost values that differ, each with its place."""
    if expected == seen:
        return
    if not (isinstance(expected, Mapping) and isinstance(seen, Mapping)):
        yield name, expected, seen
        return
    for key in sorted({*expected, *seen}, key=str):
        yield from _apart(f"{name} {key}", expected.get(key), seen.get(key))
