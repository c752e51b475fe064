"""A path of a broker as the values that broker.java.j2 is filled with: a test of a leader's Partition, log and proposals.

A path has steps; the test calls a helper method of the template for each, and asserts what the reference reports after it.
What needs a request queue, a session, a fetcher thread or another process is no step of such a test (`EXPORTED`). A
difference is a step of the path at which a release reports something else.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tidegauge.drive.broker.contract import ACKS_ALL, BROKER, INCARNATIONS, BrokerCase
from tidegauge.drive.broker.reference import BrokerReference, is_possible, missing_capability
from tidegauge.drive.contract import Capabilities, Report, Step
from tidegauge.drive.java_tests.java_words import call, java_value
from tidegauge.drive.runner.differences import Difference
from tidegauge.impl.errors import ERROR_NAMES, NONE
from tidegauge.impl.releases import parse_release, release_of_version

PLACE = ("core", "kafka.cluster", "broker.java.j2")
"""The project of Kafka's tree and the package that the test is for, and the template."""

FIRST_EXPORTED = (4, 3)
"""The first release with a test: Partition and its log had other packages and signatures before."""

EXPORTED = Capabilities(
    "a test of Partition",
    frozenset(
        {
            "metadata",
            "append",
            "fetch",
            "fetch_ineligible",
            "offsets_for_leader_epoch",
            "list_offsets",
            "delete_records",
            "lag",
            "alter_partition_response",
            ACKS_ALL,
            INCARNATIONS,
        }
    ),
    frozenset({"result", "proposal", "produced", "leo", "hw", "log_start", "ends"}),
)
"""What such a test can be given, and what it sees."""


def unexported(case: BrokerCase, reference: BrokerReference, release: str, difference: Difference[BrokerCase] | None) -> str:
    """Return why a path has no test for a release; empty if it has one. `difference`: what the test has to show, if any."""
    if parse_release(release_of_version(release).release) < FIRST_EXPORTED:
        first = ".".join(map(str, FIRST_EXPORTED))
        return f"a broker of {release}, whose Partition has another form than since {first}"
    for step in case.path:
        if step[0] == "metadata" and step[1] != BROKER:
            return f"`metadata` with the leader {step[1]}: what a follower does is its fetcher thread's"
    return beyond(EXPORTED, case, reference, difference)


def beyond(
    test: Capabilities, case: BrokerCase, reference: BrokerReference, difference: Difference[BrokerCase] | None
) -> str:
    """Return what of a path a kind of test cannot be given, or does not see; empty if there is nothing.

    `test`: the steps that this kind can be given, and the fields that it asserts.
    """
    state = reference.opened(case.opening)
    for step in case.path:
        lacking = missing_capability(test, state, step)
        if lacking is not None:
            return f"`{lacking}`, which {test.name} cannot be given"
        if not is_possible(state, step):
            return f"`{step[0]}` where the contract does not allow it"
        state, _ = reference.take(state, step)
    if difference is not None and not test.reports & set(difference.fields):
        return f"a difference in {', '.join(difference.fields)} alone, which {test.name} does not see"
    return ""


def values(
    case: BrokerCase,
    reference: BrokerReference,
    _difference: Difference[BrokerCase] | None,
    comments: Mapping[int, Sequence[str]],
) -> dict[str, Any]:
    """Return what the template is filled with; `comments`: lines before a step, by its number from 1 on."""
    reports = [*reference.reports(case)]
    waiting: list[int] = []
    steps = []
    # The first report is that of the opening.
    for number, (step, before, after) in enumerate(zip(case.path, reports, reports[1:], strict=False), start=1):
        steps.append(_step(step, before, after, waiting, comments.get(number, ())))
    replicas = ", ".join(map(str, ("brokerId()", *case.opening.peers)))
    return {"steps": steps, "replicas": replicas, "acks_all": any(step["produced"] for step in steps)}


def _step(step: Step, before: Report, after: Report, waiting: list[int], comments: Sequence[str]) -> dict[str, Any]:
    """Return a step as the template takes it: the call, and what is asserted after it.

    `before`, `after`: the reports around the step. `waiting`: the base offsets of appends with acks=all that have no
    response yet; it is updated.
    """
    line, result = call(step), after["result"]
    if step[0] == "alter_partition_response":
        # The helper method takes the name of the error, not its number.
        _, error, partition_epoch, isr = step
        line = f"alterPartitionResponse({java_value(ERROR_NAMES[error])}, {partition_epoch}, {java_value(isr)})"
    # An append with acks=all that is not refused gets its response later, in `produced`; its base is where the log ended.
    if step == ("append", -1) and result is None:
        result = {"error": NONE, "base": before["leo"]}
        waiting.append(before["leo"])
    produced = {base: ERROR_NAMES[error] for base, error in after["produced"]}
    # Of each append with acks=all: its error, or that it still waits.
    appended = [(base, produced.get(base, "waits")) for base in waiting]
    waiting[:] = [base for base in waiting if base not in produced]
    return {
        "comments": comments,
        "call": line,
        "expected": None if result is None else java_value(_response(step[0], result)),
        "leo": after["leo"],
        "hw": after["hw"],
        "log_start": after["log_start"],
        # Ends of epochs are asserted only where they have changed.
        "ends": java_value(" ".join(f"{epoch},{end}" for epoch, end in after["ends"]))
        if after["ends"] != before["ends"]
        else None,
        "epochs": len(after["ends"]),
        "proposal": _proposal(after["proposal"]),
        "produced": appended,
    }


def _response(name: str, result: Mapping[str, Any]) -> str:
    """Return the result of a step called `name` as text, as the template's helper methods return Kafka's."""
    if result["error"] != NONE:
        return ERROR_NAMES[result["error"]]
    match name:
        case "append":
            return f"base {result['base']}"
        case "offsets_for_leader_epoch":
            return f"epoch {result['leader_epoch']} ends at {result['end_offset']}"
        case "list_offsets":
            return f"offset {result['offset']}"
        case "delete_records":
            return ERROR_NAMES[NONE]
    # The others are fetches.
    batches = ", ".join(f"{base}-{last} of epoch {epoch}" for base, last, epoch in result["records"])
    text = f"high watermark {result['hw']}, log start {result['log_start']}, records [{batches}]"
    if result["diverging"] is None:
        return text
    epoch, end_offset = result["diverging"]
    return f"{text}, diverging {epoch},{end_offset}"


def _proposal(proposal: Mapping[str, Any] | None) -> str:
    """Return a proposal as a Java literal, as the template's helper method returns Kafka's."""
    if proposal is None:
        return '"none"'
    isr = ", ".join(map(str, proposal["isr"]))
    return f'"[{isr}] leader epoch {proposal["leader_epoch"]} partition epoch {proposal["partition_epoch"]}"'
