"""A path as a JUnit test for Kafka's own tree: steps are calls of Kafka's classes, what the reference reports is asserted.

A *case* is a path with the set-up it begins from; the *reference* is a broker or a controller in Python that a release is
compared with (`called` "broker" or "controller"); a *difference* is the first step of a case at which the release reports
something else than the reference: `at` is the step's number from 1, `after` its name, `fields` are those that differ.

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
    """A test: the project of Kafka's tree that it is for, such as core, its package, the name of its class, its text."""

    project: str
    package: str
    name: str
    text: str

    @property
    def path(self) -> Path:
        """The path of its file in Kafka's tree."""
        return Path(self.project, "src", "test", "java", *self.package.split("."), f"{self.name}.java")


class Origin(NamedTuple):
    """Where a case comes from: words that the name of the class is made of, and sentences for its comment."""

    name: str
    sentences: tuple[str, ...] = ()


def java_test(
    case: DriveCase[Any],
    reference: BrokerReference | ControllerReference,
    release: str,
    origin: Origin,
    difference: Difference[Any] | None = None,
) -> JavaTest:
    """Return the test of a case for a release. `difference`: where the release differs from the reference, if it does.

    Raises UsageError for a case that no test can have, with the reason.
    """
    # The module of the template for this kind of case.
    kind: Any = controller_template
    if isinstance(reference, BrokerReference):
        # A broker that leads and follows on its path is tested as a follower: only that test can be given both.
        kind = follower_template if follower_template.is_follower(case) else broker_template
    reason = kind.unexported(case, reference, release, difference)
    if reason:
        raise UsageError(
            "--export-junit: expected a path that Kafka's classes can be given, and a difference that they show; seen "
            f"{reason}; show it to a process instead: tidegauge drive --kafka"
        )
    name = class_name(origin.name)
    # The template leaves out the helper methods of steps that are not in `used`.
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
    """Return a test for each difference that a run has shown; and a line with the reason for each that has no test.

    `version`: of the Kafka that was run.
    """
    tests, refusals = [], []
    for number, failure in enumerate(failures, start=1):
        difference = failure.shown
        # The test ends with the step that differs.
        case = difference.case._replace(path=difference.case.path[: difference.at])
        # The known bugs that would differ in the same way.
        names = ", ".join(sorted({str(bug) for bugs in failure.same for bug in bugs}))
        sentences = (f"The same as {names}.",) if names else ()
        origin = Origin(f"{reference.called} difference {number} {difference.after}", sentences)
        try:
            tests.append(java_test(case, reference, version, origin, difference))
        except UsageError as reason:
            refusals.append(f"difference {number}, {difference.after}: {reason}")
    return tests, refusals


def write(tests: Sequence[JavaTest], target: Path) -> list[Path]:
    """Write tests, and return the paths of their files.

    `target`: a file that ends in .java, for one test; or a folder, below which the files lie as in Kafka's tree. Raises
    UsageError for a file that cannot have the tests.
    """
    if target.suffix != ".java":
        texts_by_path = [(target / test.path, test.text) for test in tests]
    elif len(tests) == 1 and re.fullmatch(r"[A-Za-z_]\w*", target.stem, re.ASCII):
        # A public class must have the name of its file.
        texts_by_path = [(target, re.sub(rf"\b{tests[0].name}\b", target.stem, tests[0].text))]
    else:
        raise UsageError(
            f"--export-junit: expected a folder, or a file that is named as a class of Java for one test; seen the file "
            f"{target.name!r} for {len(tests)}; name a folder"
        )
    for path, text in texts_by_path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [path for path, _ in texts_by_path]


@cache
def _templates() -> Environment:
    """Return the templates of this package."""
    # Without escapes of HTML: the templates make Java, and java_words escapes the values that come from a path.
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
    """Yield the lines of the class comment: where the case comes from, what is asserted, where the release differs."""
    profile, opening = reference.profile.name, reference.opening_text(case.opening)
    sentences = [*origin.sentences, f"Asserted is what Tidegauge's reference does with profile {profile}: {opening}."]
    if difference is not None:
        fields = ", ".join(difference.fields)
        sentences.append(f"Kafka {release} differs after step {difference.at}, {difference.after}, in {fields}.")
        # A step may apply many rules, for each peer and each epoch; the first ones decide.
        sentences += [" ".join(text.split()) for text in reference.decision_texts(difference)[:SHOWN_RULES]]
    for number, sentence in enumerate(sentences):
        if number:
            yield "<p>"
        yield from comment_lines(sentence)


def _comments(
    difference: Difference[Any] | None, reference: BrokerReference | ControllerReference, release: str
) -> Mapping[int, Sequence[str]]:
    """Return the comment before the step that differs, by its number: both reports side by side; {} without a difference."""
    if difference is None:
        return {}
    # All fields that there are: `everything` is the capabilities of a node that has them.
    head, *rows = reference.side_by_side(difference, reference.everything.reports, ("expected", f"Kafka {release}"))
    # `side_by_side` marks the rows that differ with "!".
    marked = [head, *(row for row in rows if "!" in row)]
    return {difference.at: [line for text in marked for line in comment_lines(text.strip().removeprefix("! "))]}


# The findings of docs/findings.md as tests: a path on which a release shows the finding, and a repaired reference.


FIXED = {"F1": ("3.9.0", "3.9.1")}
"""By finding, the last release that has it and can be given its test, and the first that has not."""

F1_SWITCH = "response_epoch_checked"
"""The switch of the profile that F1 is about. It is on in a repaired Kafka; those of other findings are off there."""

PAGE = "Tidegauge's docs/findings.md has its run, its conditions and its repair."


def finding_names() -> tuple[str, ...]:
    """Return the names of the findings that have a test, those of brokers first."""
    return ("F1", *(bug for bug in UNSAFE.values() if bug.startswith("F")), *SHOWN_BY)


def release_with(name: str) -> str:
    """Return the latest release that has a finding, among those whose sources were read."""
    return FIXED.get(name, (LATEST,))[0]


def finding_test(name: str, release: str, *, repaired: bool = True) -> JavaTest:
    """Return the test of a finding for a release. It asserts what a repaired Kafka does, or else what the release does.

    Raises UsageError for an unknown name, and for a release without the finding.
    """
    profile = profile_named(f"{RELEASE}{release}")
    case, reference, switch = _path_of(name, profile)
    # The value of the switch in a repaired Kafka: on for F1, off for the others.
    repaired_value = switch == F1_SWITCH
    if getattr(profile, switch) == repaired_value:
        raise UsageError(
            f"--export-junit: expected a release that has {name}; seen {release}, which does not; name another: --kafka "
            f"{release_with(name)}"
        )
    repaired_profile = profile_named(f"{profile.name}{CHANGED}{switch}={'on' if repaired_value else 'off'}")
    repaired_reference = replace(reference, profile=repaired_profile)
    # The release's reference, played as if it were the release, shows where a repaired Kafka differs.
    differences = play(ReferenceNode(reference), [case], repaired_reference).differences
    if not differences:
        raise UsageError(f"--export-junit: expected a path on which {release} shows {name}; seen none; name another release")
    # Some findings have several paths, such as F4 and F4-last-known.
    finding = name.partition("-")[0]
    rules, bug = ", ".join(rule.id for rule in rulebook().values() if finding in rule.bugs), known_bugs().get(finding)
    sentences = (
        f"{finding}: {bug.says}" if bug else f"{finding}.",
        f"{PAGE}{f' The judge fails traces of it by {rules}.' if rules else ''}",
    )
    origin = Origin(f"{reference.called} {name}", sentences)
    if repaired:
        return java_test(case, repaired_reference, release, origin, differences[0])
    return java_test(case, reference, release, Origin(f"{origin.name} as it is", origin.sentences))


def _path_of(name: str, profile: Profile) -> tuple[DriveCase[Any], Any, str]:
    """Return a case that shows a finding, the reference of the generation `profile`, and the finding's switch.

    Raises UsageError for an unknown name.
    """
    # The case is made for a release that has the finding, for `profile` may be of one that has it no more.
    if name in FIXED:
        profile_with = profile_named(f"{RELEASE}{release_with(name)}")
        return named_scenarios(name, profile_with, EVERYTHING)[0].case, broker_reference(profile), F1_SWITCH
    for switch, bug in UNSAFE.items():
        if bug == name:
            return TELLING[switch], broker_reference(profile), switch
    for case in finding_cases(ClusterOpening(IBP_4_3_IV0)):
        if case.name == name:
            return case, controller_reference(profile), SHOWN_BY[name]
    raise UsageError(f"--export-junit: expected one of {', '.join(finding_names())}; seen {name!r}; name one of these")
