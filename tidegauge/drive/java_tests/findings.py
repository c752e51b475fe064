"""The findings of docs/findings.md as tests: a path on which a release shows the finding, and a repaired reference."""

from dataclasses import replace
from typing import Any

from tidegauge.conformance.judge.rulebook import known_bugs, rulebook
from tidegauge.drive.broker.reference import reference as broker_reference
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.contract import DriveCase
from tidegauge.drive.controller.contract import ClusterOpening
from tidegauge.drive.controller.findings import SHOWN_BY, finding_cases
from tidegauge.drive.controller.reference import reference as controller_reference
from tidegauge.drive.java_tests.export import JavaTest, Origin, java_test
from tidegauge.drive.paths.repairs import TELLING
from tidegauge.drive.paths.scenarios import named_scenarios
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.impl.controller.features import IBP_4_3_IV0
from tidegauge.impl.profiles import CHANGED, UNSAFE, Profile
from tidegauge.impl.releases import RELEASE, profile_named
from tidegauge.util.errors import UsageError

LATE_RESPONSE = "F1"
LATE_RESPONSE_SWITCH = "response_epoch_checked"
LATE_RESPONSE_SCENARIO = "response-epoch-unchecked"

ISSUES = {LATE_RESPONSE: "KAFKA-18991"}
"""What the catalog calls a finding that has an issue."""

PAGE = "Tidegauge's docs/findings.md has its run, its conditions and its repair."


def finding_names() -> tuple[str, ...]:
    """Return the names of the paths that have a test, those of brokers first."""
    brokers = (LATE_RESPONSE, *(bug for bug in UNSAFE.values() if bug.startswith("F")))
    return (*brokers, *SHOWN_BY)


def finding_test(name: str, release: str, *, repaired: bool = True) -> JavaTest:
    """Return the test of a finding: it asserts what a repaired Kafka does, or what the release does.

    Raises UsageError for a name that is none, and where the release has not the finding.
    """
    profile = profile_named(f"{RELEASE}{release}")
    case, reference, switch, value = _path_of(name, profile)
    if getattr(profile, switch) == value:
        raise UsageError(
            f"--export-junit: expected a release that has {name}; seen {release}, which has not; name another: --kafka"
        )
    right = replace(reference, profile=profile_named(f"{profile.name}{CHANGED}{switch}={'on' if value else 'off'}"))
    shown = play(ReferenceNode(reference), [case], right).differences
    if not shown:
        raise UsageError(f"--export-junit: expected a path on which {release} shows {name}; seen none; name another release")
    finding = name.partition("-")[0]
    rules = ", ".join(rule.id for rule in rulebook().values() if {ISSUES.get(finding, finding)} & set(rule.bugs))
    bug = known_bugs().get(ISSUES.get(finding, finding))
    sentences = (
        f"{finding}: {bug.says}" if bug else f"{finding}.",
        f"{PAGE}{f' The judge fails traces of it by {rules}.' if rules else ''}",
    )
    origin = Origin(f"{reference.called} {name}", sentences)
    if repaired:
        return java_test(case, right, release, origin, shown[0])
    return java_test(case, reference, release, Origin(f"{origin.name} as it is", origin.sentences))


def _path_of(name: str, profile: Profile) -> tuple[DriveCase[Any], Any, str, bool]:
    """Return a path that shows a finding, the reference of the release, the switch, and its value where it is repaired."""
    broker = broker_reference(profile)
    if name == LATE_RESPONSE:
        scenario = named_scenarios(LATE_RESPONSE_SCENARIO, profile, EVERYTHING)[0]
        return scenario.case, broker, LATE_RESPONSE_SWITCH, True
    for switch, bug in UNSAFE.items():
        if bug == name:
            return TELLING[switch], broker, switch, False
    for case in finding_cases(ClusterOpening(IBP_4_3_IV0)):
        if case.name == name:
            return case, controller_reference(profile), SHOWN_BY[name], False
    raise UsageError(f"--export-junit: expected one of {', '.join(finding_names())}; seen {name!r}; name one of these")
