"""The reference of a controller's contract: `impl.controller`, and what its brokers know.

A step is a tuple of its name and its arguments; its class in `STEPS` says what it does. A report has the response to the
step's request, and the registrations that the metadata log has then. Broker epochs are reported as ordinals, which
`Incarnations` gives out. A finding is a bug of some releases, given by switches of a profile.
"""

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
    """Take one step; return the cluster after it, and the report. `numbers` may be given new ordinals."""
    name, *arguments = step
    state, result = STEPS[name].apply(state, *arguments)
    # A report gives the ordinal of an incarnation in place of its broker epoch. Only registrations have one, and their first
    # argument is the broker.
    if result is not None and "incarnation" in result:
        result["incarnation"] = numbers.ordinal(arguments[0], result["incarnation"])
    # Where Kafka's controller throws it gives up its leadership, and leads again (QuorumController#handleEventException).
    if name in RESIGNS and result is not None and result["error"] == UNKNOWN_SERVER_ERROR:
        state = state._replace(controller=resigned(state.controller))
    return state, report(state, numbers, result)


# ---------------------------------------------------------------------------------------------------------------------
# For the runner

ControllerState = tuple[ReferenceController, Incarnations]
"""The cluster after some steps of a path, and the ordinals that were given out on it."""


@dataclass(frozen=True)
class ControllerReference(Reference[ControllerCase, ControllerState]):
    """The expected behaviour of a controller of a generation. The methods are described in `Reference`."""

    everything, called, unexplained = controller_capabilities("reference"), "controller", "no known switch"
    tries_pairs, plays_one_at_a_time = True, True

    profile: Profile

    def opened(self, opening: ClusterOpening) -> ControllerState:
        """Return a cluster without brokers."""
        return opened(opening, self.profile), Incarnations()

    def report(self, state: ControllerState) -> Report:
        """Return what is reported after the opening."""
        return report(*state)

    def take(self, state: ControllerState, step: Step) -> tuple[ControllerState, Report]:
        """Return the cluster after a step, and its report."""
        controller, incarnations = state
        # Paths that begin alike share a state, and numbers that are given out on one of them are not the other's.
        incarnations = incarnations.copy()
        controller, step_report = take_step(controller, step, incarnations)
        return (controller, incarnations), step_report

    def differences(self, expected: Report, seen: Report, reported: frozenset[str]) -> tuple[str, ...]:
        """Return the fields in which two reports differ: every controller reports all of them."""
        del reported
        return fields_that_differ(expected, seen)

    def suspects(self) -> Iterator[Suspect]:
        """Yield each switch of the profile that a controller reads with its other value, under the name of its finding."""
        for switch, finding in FINDINGS.items():
            value = not getattr(self.profile, switch)
            yield Suspect(finding, f"{switch}={'on' if value else 'off'}", {switch: value})

    def with_bugs(self, suspects: Iterable[Suspect]) -> Self:
        """Return the reference with the switches of these suspects, which have nothing but switches."""
        switches = {name: value for suspect in suspects for name, value in suspect.switches.items()}
        return replace(self, profile=self.profile.switched(switches))

    def findings(self) -> Sequence[Finding]:
        """Return every finding about controllers."""
        return [*controller_findings().values()]

    def is_same_kind(self, difference: Difference[ControllerCase], again: Difference[ControllerCase]) -> bool:
        """Return whether two differences come after steps of the same name, in the same fields."""
        return (difference.after, difference.fields) == (again.after, again.fields)

    def suspect_label(self, suspect: Suspect) -> str:
        """Return the finding with its switch: a finding may have several switches."""
        return str(suspect)

    def opening_text(self, opening: ClusterOpening) -> str:
        """Return an opening on one line: metadata.version, ELR, min.insync.replicas."""
        return (
            f"metadata.version {opening.metadata_version}, ELR {'on' if opening.elr else 'off'}, "
            f"min.insync.replicas {opening.min_insync_replicas}"
        )

    def step_text(self, step: Step) -> str:
        """Return a step on one line."""
        return step_line(step)

    def step_sentence(self, step: Step) -> str | None:
        """Return the name of a step, and the contract's sentence about it."""
        return f"{step[0]}: {STEPS[step[0]].says}"

    def side_by_side(
        self, difference: Difference[ControllerCase], reported: frozenset[str], names: tuple[str, str]
    ) -> Iterator[str]:
        """Yield a line for each innermost value that differs: where it is, expected and seen value, below `names`.

        A whole field would be too much: it has every registration.
        """
        del reported
        rows = [
            (name, value_text(expected), value_text(seen))
            for field in REPORTED
            if field in difference.fields
            for name, expected, seen in _innermost_differences(
                field, difference.expected.get(field), difference.seen.get(field)
            )
        ]
        name_width = max((len(name) for name, _, _ in rows), default=0)
        width = max(map(len, (names[0], *(expected for _, expected, _ in rows))))
        yield f"      {'':<{name_width}}  {names[0]:<{width}}  {names[1]}"
        for name, expected, seen in rows:
            yield f"    ! {name:<{name_width}}  {expected:<{width}}  {seen}"

    def notes(self, cases: Sequence[ControllerCase], differences: Sequence[Difference[ControllerCase]]) -> list[str]:
        """Return a line with the findings that this profile has and the controller has shown on their own paths."""
        differing = {difference.case for difference in differences}
        # Where a path has no difference the controller did as the profile, and that has the finding.
        shown = [case.name for case in cases if case not in differing and shows_finding(case, self.profile)]
        return [f"shown: {', '.join(shown)}"] if shown else []


def reference(profile: Profile) -> ControllerReference:
    """Return the reference of a controller of this profile."""
    return ControllerReference(profile)


def shows_finding(case: ControllerCase, profile: Profile) -> bool:
    """Return whether a case is a finding's own path, and a controller of this profile shows the finding on it.

    It does if the reference does something else once the finding's switch is off.
    """
    switch = SHOWN_BY.get(case.name)
    if switch is None or not getattr(profile, switch):
        return False
    repaired = reference(profile.switched({switch: False}))
    # The reference with the finding is played as if it were a node, and compared with the one without.
    return bool(play(ReferenceNode(reference(profile)), [case], repaired).differences)


def unseen(cases: Sequence[ControllerCase], profile: Profile) -> list[str]:
    """Return the switches that no case would show, as "switch=on": with that value the reference reports the same on all."""
    right = reference(profile)
    expected_reports = [list(right.reports(case)) for case in cases]

    def distinguishes(case: ControllerCase, expected: Sequence[Report], switched: ControllerReference) -> bool:
        """Return whether a reference with another value of a switch differs on a case from what is expected."""
        return any(map(fields_that_differ, expected, switched.reports(case)))

    # What a suspect of `right` says is its switch: "name=on", or off.
    switched_references = {suspect.says: right.with_bugs([suspect]) for suspect in right.suspects()}
    return [
        switch
        for switch, switched in switched_references.items()
        if not any(distinguishes(case, expected, switched) for case, expected in zip(cases, expected_reports, strict=True))
    ]


def _innermost_differences(name: str, expected: Any, seen: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the innermost values in which two values differ: the names of the keys down to it, and both values.

    `name` names the two values; None stands for a key that only one of them has.
    """
    if expected == seen:
        return
    if not (isinstance(expected, Mapping) and isinstance(seen, Mapping)):
        yield name, expected, seen
        return
    for key in sorted({*expected, *seen}, key=str):
        yield from _innermost_differences(f"{name} {key}", expected.get(key), seen.get(key))
