"""A path of a broker that follows as the lines that follower.java.j2 is filled with: a test of its fetcher thread.

In the test a fetch is a call with a lambda: what happens before the response arrives is in the body of the lambda, which
returns the response at its end. A difference is a step of the path at which a release reports something else.

Rules of this file

1. Under test is AbstractFetcherThread, with a log that is Kafka's own mock: where it ends and what is fetched next is
   asserted. The last fetched epoch is not: the mock has no epoch cache. What the broker does while it leads is no method
   under test, so it is done to that log.
2. One peer has one fetch under way. What happens meanwhile happens before its response is returned.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tidegauge.drive.broker.contract import ACKS_ALL, BROKER, BrokerCase
from tidegauge.drive.broker.reference import BrokerReference
from tidegauge.drive.broker.steps import arguments_of
from tidegauge.drive.contract import Capabilities, Report, Step
from tidegauge.drive.java_tests.broker_template import beyond
from tidegauge.drive.java_tests.java_words import java_value
from tidegauge.drive.runner.differences import Difference
from tidegauge.impl.errors import NONE
from tidegauge.impl.releases import parse_release, release_of_version
from tidegauge.impl.rules import UNDEFINED

PLACE = ("core", "kafka.server", "follower.java.j2")
"""The project of Kafka's tree and the package that the test is for, and the template."""

EXPORTED = (3, 9)
"""The only release with a test: in others fetcher threads and their mocks have other packages and signatures."""

GIVEN = Capabilities(
    "a test of a fetcher thread",
    frozenset({"metadata", "append", "fetch", "fetch_response", ACKS_ALL}),
    frozenset({"leo", "requests"}),
)
"""What such a test can be given, and what it sees."""


def is_follower(case: BrokerCase) -> bool:
    """Return whether a path has a step that only a follower is given."""
    return any(step[0] == "fetch_response" for step in case.path)


def unexported(case: BrokerCase, reference: BrokerReference, release: str, difference: Difference[BrokerCase] | None) -> str:
    """Return why a path has no test for a release; empty if it has one. `difference`: what the test has to show, if any."""
    if parse_release(release_of_version(release).release)[:2] != EXPORTED:
        exported = ".".join(map(str, EXPORTED))
        return f"a follower of {release}, whose fetcher thread has another form than in {exported}"
    if len(case.opening.peers) > 1:
        return "a follower of several peers, each with a fetch under way"
    responses = [arguments_of(step) for step in case.path if step[0] == "fetch_response"]
    if any(response["error"] != NONE or response["records"] or response["offsets"] for response in responses):
        return "a `fetch_response` with records or an error"
    return beyond(GIVEN, case, reference, difference)


def values(
    case: BrokerCase,
    reference: BrokerReference,
    _difference: Difference[BrokerCase] | None,
    comments: Mapping[int, Sequence[str]],
) -> dict[str, Any]:
    """Return what the template is filled with; `comments`: lines before a step, by its number from 1 on."""
    return {"lines": [*_lines(case, [*reference.reports(case)], comments)]}


def _lines(case: BrokerCase, reports: Sequence[Report], comments: Mapping[int, Sequence[str]]) -> Iterator[str]:
    """Yield the lines of the test. The lambda of a fetch encloses the steps up to its response.

    `reports`: first that of the opening, then one per step; `comments`: lines before a step, by its number.
    """
    # The numbers of the steps that are responses, and of those that have sent the requests.
    responses = [number for number, step in enumerate(case.path, 1) if step[0] == "fetch_response"]
    fetching_steps = {_sent_at(case, reports, number) for number in responses}
    epoch, indent = UNDEFINED, ""
    for number, (step, before, after) in enumerate(zip(case.path, reports, reports[1:], strict=False), 1):
        yield from (f"{indent}// {comment}" for comment in comments.get(number, ()))
        # The end of the lambda that was begun after an earlier step.
        if step[0] == "fetch_response":
            response = arguments_of(step)
            # (high watermark, log start, diverging epoch, its end), the last two undefined for none.
            fields = (response["hw"], response["log_start"], *(response["diverging"] or (UNDEFINED, UNDEFINED)))
            yield f"{indent}return response({', '.join(map(java_value, fields))});"
            indent = ""
            yield "});"
        else:
            epoch = arguments_of(step)["leader_epoch"] if step[0] == "metadata" else epoch
            yield from (f"{indent}{line}" for line in _calls(step, epoch, before, after))
        # A fetch of the peer that does not raise the high watermark leaves no line, so nothing is asserted after it either.
        if (step[0], after["hw"]) != ("fetch", before["hw"]):
            yield f"{indent}assertLogEnd({after['leo']});"
        request = _request(after)
        if step[0] == "fetch_response" and request:
            yield f"assertEquals({request}, nextFetch());"
        # The request that this step has sent gets a response: begin the lambda.
        if number in fetching_steps:
            yield f"fetch({request}, () -> {{"
            indent = "    "


def _calls(step: Step, epoch: int, before: Report, after: Report) -> Iterator[str]:
    """Yield the calls of the template's helper methods that a step becomes, which may be none; `epoch`: the leader epoch."""
    match step[0]:
        case "metadata":
            leads = arguments_of(step)["leader"] == BROKER
            yield f"{'lead' if leads else 'follow'}({epoch});"
        case "append":
            yield f"append({epoch});"
    # The peer's fetch itself is no call: only the high watermark that it raises is (rule 1).
    if after["hw"] != before["hw"]:
        yield f"commit({after['hw']});"


def _sent_at(case: BrokerCase, reports: Sequence[Report], response: int) -> int:
    """Return the number of the step that has sent the request whose response is step `response`; both count from 1."""
    # Go back as long as the same request was in flight before the step. `reports[n]` is that after step n, which is
    # `case.path[n - 1]`; a response ends the request that was in flight before it.
    sent, request = response - 1, _request(reports[response - 1])
    while sent > 1 and case.path[sent - 1][0] != "fetch_response" and _request(reports[sent - 1]) == request:
        sent -= 1
    return sent


def _request(report: Report) -> str:
    """Return the fetch in flight as a Java literal, as the template's helper method has it; empty if there is none."""
    for request in report["requests"].values():
        return java_value(f"epoch {request['current_leader_epoch']}, offset {request['fetch_offset']}")
    return ""
