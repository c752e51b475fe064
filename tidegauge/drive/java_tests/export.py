"""A path as a JUnit test for Kafka's own tree: steps are calls of Kafka's classes, what the reference reports is asserted.

Rules of this package

1. One template per kind of class under test: broker.java.j2 (Partition and its log), follower.java.j2 (a fetcher thread)
   and controller.java.j2 (the managers of the controller). A step is a call of a helper method, with its arguments.
2. A test asserts what the reference reports: of each step its response and the state after it.
3. It is self-contained: of Kafka's own test classes it uses those that another class may use. ReplicationControlTestContext
   is private, so the managers are built as that class does it.
4. What a test cannot be given or cannot see is refused by name (`unexported`), never left out.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

from tidegauge.conformance.judge.rulebook import known_bugs, rulebook
from tidegauge.drive.broker.reference import BrokerReference
from tidegauge.drive.broker.reference import reference as broker_reference
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.contract import DriveCase
from tidegauge.drive.controller.contract import ClusterOpening
from tidegauge.drive.controller.findings import SHOWN_BY, finding_cases
from tidegauge.drive.controller.reference import ControllerReference
from tidegauge.drive.controller.reference import reference as controller_reference
from tidegauge.drive.java_tests import broker_template, controller_template, follower_template
from tidegauge.drive.java_tests.java_words import class_name, comment_lines
from tidegauge.drive.paths.scenarios import named_scenarios
from tidegauge.drive.paths.unsafe_or_repaired import LATEST, TELLING
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.run import DriveFailure
from tidegauge.impl.controller.features import IBP_4_3_IV0
from tidegauge.impl.profiles import CHANGED, UNSAFE, Profile
from tidegauge.impl.releases import RELEASE, profile_named
from tidegauge.util.errors import UsageError

SHOWN_RULES = 3
"""How many applied rules a comment names."""


class JavaTest(NamedTuple):
    """A test: the project of Kafka's tree that it is for, its package, its class, its text."""

    project: str
    package: str
    name: str
    text: str

    @property
    def path(self) -> Path:
        """Return its path in Kafka's tree."""
        return Path(self.project, "src", "test", "java", *self.package.split("."), f"{self.name}.java")


class Origin(NamedTuple):
    """Where a path comes from: words for the name of the class, and sentences about it."""

    name: str
    sentences: tuple[str, ...] = ()


def java_test(
    case: DriveCase[Any],
    reference: BrokerReference | ControllerReference,
    release: str,
    origin: Origin,
    difference: Difference[Any] | None = None,
) -> JavaTest:
    """Return the test of a path. `difference`: where the release differs from the reference on it.

    Raises UsageError for a path that no test can have, with the reason.
    """
    kind: Any = controller_template
    if isinstance(reference, BrokerReference):
        # The oldest releases have no test of a leader, the newest none of a follower: a path of both says the second.
        kind = follower_template if follower_template.is_follower(case) else broker_template
    reason = kind.unexported(case, reference, release, difference)
    if reason:
        raise UsageError(
            "--export-junit: expected a path that Kafka's classes can be given, and a difference that they show; seen "
            f"{reason}; show it to a process instead: tidegauge drive --kafka"
        )
    name = class_name(origin.name)
    values = {
        "name": name,
        "method": f"test{name.removesuffix('Test')}",
        "about": [*_about(case, reference, release, origin, difference)],
        "opening": case.opening,
        "used": {step[0] for step in case.path},
        **kind.values(case, reference, difference, _comments(difference, reference, release)),
    }
    project, package, template = kind.PLACE
    return JavaTest(project, package, name, _templates().get_template(template).render(values))


def failure_tests(
    failures: Sequence[DriveFailure[Any]], reference: BrokerReference | ControllerReference, version: str
) -> tuple[list[JavaTest], list[str]]:
    """Return a test for each difference that a run has shown, and for those that have none a line with the reason."""
    tests, refused = [], []
    for number, failure in enumerate(failures, start=1):
        shown = failure.shown
        case = shown.case._replace(path=shown.case.path[: shown.at])
        names = ", ".join(sorted({str(bug) for bugs in failure.same for bug in bugs}))
        sentences = (f"The same as {names}.",) if names else ()
        origin = Origin(f"{reference.called} difference {number} {shown.after}", sentences)
        try:
            tests.append(java_test(case, reference, version, origin, shown))
        except UsageError as reason:
            refused.append(f"difference {number}, {shown.after}: {reason}")
    return tests, refused


def write(tests: Sequence[JavaTest], place: Path) -> list[Path]:
    """Write tests to a file that ends in .java, or below a folder as they lie in Kafka's tree; return their paths."""
    if place.suffix != ".java":
        written = [(place / test.path, test.text) for test in tests]
    elif len(tests) == 1 and re.fullmatch(r"[A-Za-z_]\w*", place.stem, re.ASCII):
        # A public class is named as its file.
        written = [(place, re.sub(rf"\b{tests[0].name}\b", place.stem, tests[0].text))]
    else:
        raise UsageError(
            f"--export-junit: expected a folder, or a file that is named as a class of Java for one test; seen the file "
            f"{place.name!r} for {len(tests)}; name a folder"
        )
    for path, text in written:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [path for path, _ in written]


@cache
def _templates() -> Environment:
    # It is Java that is made, and every value that comes from a path is made Java by java_words.
    return Environment(
        loader=PackageLoader("tidegauge.drive.java_tests", "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def _about(
    case: DriveCase[Any],
    reference: BrokerReference | ControllerReference,
    release: str,
    origin: Origin,
    difference: Difference[Any] | None,
) -> Iterator[str]:
    """Yield the lines of the test's comment: where the path comes from, what is asserted, where Kafka differs."""
    profile, opening = reference.profile.name, reference.opening_text(case.opening)
    sentences = [*origin.sentences, f"Asserted is what Tidegauge's reference does with profile {profile}: {opening}."]
    if difference is not None:
        fields = ", ".join(difference.fields)
        sentences.append(f"Kafka {release} differs after step {difference.at}, {difference.after}, in {fields}.")
        # A step may apply a rule for each peer and each epoch; the first decide.
        sentences += [" ".join(text.split()) for text in reference.decision_texts(difference)[:SHOWN_RULES]]
    for number, sentence in enumerate(sentences):
        if number:
            yield "<p>"
        yield from comment_lines(sentence)


def _comments(
    difference: Difference[Any] | None, reference: BrokerReference | ControllerReference, release: str
) -> Mapping[int, Sequence[str]]:
    """Return by step, for the one at which a release differs, both reports side by side."""
    if difference is None:
        return {}
    first, *rows = reference.side_by_side(difference, reference.everything.reports, ("expected", f"Kafka {release}"))
    shown = [first, *(row for row in rows if "!" in row)]
    return {difference.at: [line for text in shown for line in comment_lines(text.strip().removeprefix("! "))]}


# The findings of docs/findings.md as tests: a path on which a release shows the finding, and a repaired reference.


FIXED = {"F1": ("3.9.0", "3.9.1")}
"""By finding, the last release that has it and can be given its test, and the first that has not."""

F1_SWITCH = "response_epoch_checked"

PAGE = "Tidegauge's docs/findings.md has its run, its conditions and its repair."


def finding_names() -> tuple[str, ...]:
    """Return the names of the paths that have a test, those of brokers first."""
    return ("F1", *(bug for bug in UNSAFE.values() if bug.startswith("F")), *SHOWN_BY)


def release_with(name: str) -> str:
    """Return the latest release whose sources were read that shows a finding."""
    return FIXED.get(name, (LATEST,))[0]


def finding_test(name: str, release: str, *, repaired: bool = True) -> JavaTest:
    """Return the test of a finding: it asserts what a repaired Kafka does, or what the release does.

    Raises UsageError for an unknown name, and for a release without the finding.
    """
    profile = profile_named(f"{RELEASE}{release}")
    case, reference, switch = _path_of(name, profile)
    # The switch of F1 is on in a repaired Kafka; every other finding's switch is on where Kafka is unsafe.
    repaired_value = switch == F1_SWITCH
    if getattr(profile, switch) == repaired_value:
        raise UsageError(
            f"--export-junit: expected a release that has {name}; seen {release}, which does not; name another: --kafka "
            f"{release_with(name)}"
        )
    repaired_profile = profile_named(f"{profile.name}{CHANGED}{switch}={'on' if repaired_value else 'off'}")
    repaired_reference = replace(reference, profile=repaired_profile)
    shown = play(ReferenceNode(reference), [case], repaired_reference).differences
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
        return java_test(case, repaired_reference, release, origin, shown[0])
    return java_test(case, reference, release, Origin(f"{origin.name} as it is", origin.sentences))


def _path_of(name: str, profile: Profile) -> tuple[DriveCase[Any], Any, str]:
    """Return a path that shows a finding, the reference of the release, and the profile's switch for the finding."""
    # The path goes as far as a release that has the finding takes it: `profile` may be of one that has it no more.
    if name in FIXED:
        shows = profile_named(f"{RELEASE}{release_with(name)}")
        return named_scenarios(name, shows, EVERYTHING)[0].case, broker_reference(profile), F1_SWITCH
    for switch, bug in UNSAFE.items():
        if bug == name:
            return TELLING[switch], broker_reference(profile), switch
    for case in finding_cases(ClusterOpening(IBP_4_3_IV0)):
        if case.name == name:
            return case, controller_reference(profile), SHOWN_BY[name]
    raise UsageError(f"--export-junit: expected one of {', '.join(finding_names())}; seen {name!r}; name one of these")
