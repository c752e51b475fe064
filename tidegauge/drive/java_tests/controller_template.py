"""A path of a controller as the values that controller.java.j2 is filled with: a test of its managers alone.

A path has steps; the test calls a helper method of the template for each, and asserts what the reference reports after it:
the error, and the registrations of partitions, brokers and features that have changed. A difference is a step of the path at
which a release reports something else.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tidegauge.drive.contract import Report, Step
from tidegauge.drive.controller.contract import ControllerCase
from tidegauge.drive.controller.reference import RESIGNS, ControllerReference
from tidegauge.drive.controller.steps import STEPS
from tidegauge.drive.java_tests.java_words import call, helper_name, java_value
from tidegauge.drive.runner.differences import Difference
from tidegauge.impl.controller.partition_registration import MIGRATING
from tidegauge.impl.errors import ERROR_NAMES, NONE, UNKNOWN_SERVER_ERROR
from tidegauge.impl.releases import parse_release, release_of_version

PLACE = ("metadata", "org.apache.kafka.controller", "controller.java.j2")
"""The project of Kafka's tree and the package that the test is for, and the template."""

FIRST_EXPORTED = (4, 3)
"""The first release with a test: the managers had other signatures before."""


def unexported(
    case: ControllerCase, reference: ControllerReference, release: str, difference: Difference[ControllerCase] | None
) -> str:
    """Return why a path has no test for a release; empty if it has one. `difference`: what the test has to show, if any."""
    if parse_release(release_of_version(release).release) < FIRST_EXPORTED:
        first = ".".join(map(str, FIRST_EXPORTED))
        return f"a controller of {release}, whose managers have other signatures than since {first}"
    # Of a result the test asserts the error alone.
    in_result = () if difference is None or difference.fields != ("result",) else (difference.expected, difference.seen)
    if in_result and len({_error(report) for report in in_result}) == 1:
        return "a difference in a response's fields beside the error"
    unnamed = [error for report in reference.reports(case) if (error := _error(report)) not in ERROR_NAMES]
    return f"the error {unnamed[0]}, whose name is not known here" if unnamed else ""


def values(
    case: ControllerCase,
    reference: ControllerReference,
    difference: Difference[ControllerCase] | None,
    comments: Mapping[int, Sequence[str]],
) -> dict[str, Any]:
    """Return what the template is filled with; `comments`: lines before a step, by its number from 1 on."""
    # Brokers and features are asserted only where the difference is in them: each path begins with many of these.
    fields = () if difference is None else difference.fields
    reports = [*reference.reports(case)]
    steps = []
    # The first report is that of the opening.
    for number, (step, before, after) in enumerate(zip(case.path, reports, reports[1:], strict=False), start=1):
        # Where a release differs, and at the end, what has stayed as it was is asserted as well.
        everything = number == len(case.path) or (difference is not None and number == difference.at)
        steps.append(_step(step, before, after, fields, everything=everything) | {"comments": comments.get(number, ())})
    return {"steps": steps, "uses_brokers": any(step["brokers"] for step in steps)}


def _error(report: Report) -> int:
    """Return the error in the result of a step; none for a step that has no result."""
    return int((report["result"] or {}).get("error", NONE))


def _step(step: Step, before: Report, after: Report, fields: Sequence[str], *, everything: bool) -> dict[str, Any]:
    """Return a step as the template takes it: the call, its error, and the registrations to assert.

    `before`, `after`: the reports around the step; `fields`: those in which a release differs. The registrations are those
    that the step changed, or all of them with `everything`.
    """
    error = None if after["result"] is None else _error(after)
    changed = {
        field: {name: value for name, value in after[field].items() if everything or before[field].get(name) != value}
        for field in ("partitions", "brokers", "features")
    }
    deleted_topics = {name.rpartition("-")[0] for name in before["partitions"].keys() - after["partitions"].keys()}
    return {
        "call": _call(step),
        "error": None if error is None else ERROR_NAMES[error],
        # Where the controller resigns it leads again, and sessions start anew.
        "fails_over": error == UNKNOWN_SERVER_ERROR and step[0] in RESIGNS,
        "partitions": [(_topic_and_number(name), _registration(value)) for name, value in changed["partitions"].items()],
        "gone": [java_value(topic) for topic in sorted(deleted_topics)],
        "brokers": [
            (broker, java_value(value["fenced"]), java_value(value["in_controlled_shutdown"]), _dirs(value["directories"]))
            for broker, value in changed["brokers"].items()
            if "brokers" in fields
        ],
        "features": [
            (java_value("eligible.leader.replicas.version" if name == "elr" else name), level)
            for name, level in changed["features"].items()
            if "features" in fields
        ],
    }


def _call(step: Step) -> str:
    """Return a step as the call of its helper method; configurations, the last argument, become a map."""
    if STEPS[step[0]].takes[-1] != "configs":
        return call(step)
    pairs = (java_value(part) for pair in step[-1] for part in pair)
    return f"{helper_name(step[0])}({', '.join(map(java_value, step[1:-1]))}, Map.of({', '.join(pairs)}))"


def _topic_and_number(partition: str) -> str:
    """Return the partition "topic-number" as two arguments of a Java method."""
    topic, _, number = partition.rpartition("-")
    return f"{java_value(topic)}, {number}"


def _registration(partition: Mapping[str, Any]) -> dict[str, Any]:
    """Return a partition's registration with the values that the builder of Kafka's PartitionRegistration takes, as Java."""
    # A partition whose directories are not known has MIGRATING for each replica (DirectoryId).
    arrays = ("replicas", "isr", "elr", "last_known_elr", "adding", "removing")
    return {
        **partition,
        **{name: f"new int[] {{{', '.join(map(str, partition[name]))}}}" for name in arrays},
        "directories": _dirs(partition["directories"] or [MIGRATING] * len(partition["replicas"])),
        "recovery": "RECOVERING" if partition["recovering"] else "RECOVERED",
    }


def _dirs(names: Sequence[str]) -> str:
    """Return log directories as a call of the template's helper method."""
    return f"dirs({', '.join(map(java_value, names))})"
