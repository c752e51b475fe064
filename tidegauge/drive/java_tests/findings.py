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
from tidegauge.drive.paths.repairs import LATEST, TELLING
from tidegauge.drive.paths.scenarios import named_scenarios
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.impl.controller.features import IBP_4_3_IV0
from tidegauge.impl.profiles import CHANGED, UNSAFE, Profile
from tidegauge.impl.releases import RELEASE, profile_named
from tidegauge.util.errors import UsageError

FIXED = {"F1": ("3.9.0", "3.9.1")}
"""By finding, the last release that has it and can be given its test, and the first that has not."""

FOLLOWS = "response_epoch_checked"
"""The switch of F1, which is on where it is repaired."""

PAGE = "Tidegauge's docs/findings.md has its run, its conditions and its repair."


def finding_names() -> tuple[str, ...]:
    """Return the names of the paths that have a test, those of brokers first."""
    return ("F1", *(bug for bug in UNSAFE.values() if bug.startswith("F")), *SHOWN_BY)


def release_with(name: str) -> str:
    """Return the latest release whose sources were read that shows a finding."""
    return FIXED.get(name, (LATEST,))[0]


def finding_test(name: str, release: str, *, repaired: bool = True) -> JavaTest:
    """Return the test of a finding: it asserts what a repaired Kafka does, or what the release does.

    Raises UsageError for a name that is none, and where the release has not the finding.
    """
    profile = profile_named(f"{RELEASE}{release}")
    case, reference, switch = _path_of(name, profile)
    repair = switch == FOLLOWS
    if getattr(profile, switch) == repair:
        raise UsageError(
            f"--export-junit: expected a release that has {name}; seen {release}, which has not; name another: --kafka "
            f"{release_with(name)}"
        )
    right = replace(reference, profile=profile_named(f"{profile.name}{CHANGED}{switch}={'on' if repair else 'off'}"))
    shown = play(ReferenceNode(reference), [case], right).differences
    if not shown:
        raise UsageError(f"--export-junit: expected a path on which {release} shows {name}; seen none; name another release")
    finding = name.partition("-")[0]
    rules, bug = ", ".join(rule.id for rule in rulebook().values() if finding in rule.bugs), known_bugs().get(finding)
    sentences = (
        f"{finding}: {bug.says}" if bug else f"{finding}.",
        f"{PAGE}{f' The judge fails traces of it by {rules}.' if rules else ''}",
    )
    origin = Origin(f"{reference.called} {name}", sentences)
    if repaired:
        return java_test(case, right, release, origin, shown[0])
    return java_test(case, reference, release, Origin(f"{origin.name} as it is", origin.sentences))


def _path_of(name: str, profile: Profile) -> tuple[DriveCase[Any], Any, str]:
    """Return a path that shows a finding, the reference of the release, and the switch that it is."""
    if name in FIXED:
        shows = profile_named(f"{RELEASE}{release_with(name)}")
        return named_scenarios(name, shows, EVERYTHING)[0].case, broker_reference(profile), FOLLOWS
    for switch, bug in UNSAFE.items():
        if bug == name:
            return TELLING[switch], broker_reference(profile), switch
    for case in finding_cases(ClusterOpening(IBP_4_3_IV0)):
        if case.name == name:
            return case, controller_reference(profile), SHOWN_BY[name]
    raise UsageError(f"--export-junit: expected one of {', '.join(finding_names())}; seen {name!r}; name one of these")
