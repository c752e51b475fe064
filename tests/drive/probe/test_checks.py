"""Kafka passes every check, and each check can fail: what it expects is changed on its way back, field by field."""

from functools import cache
from typing import Any
from uuid import UUID

import pytest

from tests.drive.probe.recorded import RELEASES, Recording
from tidegauge.conformance.judge.rulebook import rulebook
from tidegauge.drive.probe.check import CLOSED, REPORTED, Check, Expectation, Script
from tidegauge.drive.probe.checks.appending import EPOCH_AT
from tidegauge.drive.probe.connection import REQUESTS, BrokerConnection
from tidegauge.drive.probe.fixtures import Fixtures
from tidegauge.drive.probe.run import CHECKS, CheckVerdict, ProbeRun, probe, select_checks
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl import errors
from tidegauge.traces.segments import batch_of, encode

TODAY = "4.1.1"
ALL_AT_ONCE = {"isolation.nothing-above-the-high-watermark"}
"""Their requests go out together; they have tests of their own."""

OF_A_SESSION = {"sessionId", REPORTED}
NO_NEWS = {"partitionIndex": 0, "errorCode": 0, "highWatermark": 1, "logStartOffset": 0, "records": None}
"""What a fetch brings of a partition about which nothing is new, as far as it is looked at."""

LATER = {"3.4.0": {"offsets.earliest-local", "offsets.latest-tiered", "append.unknown-topic-id"}, "4.1.1": set()}


@cache
def recording(release: str) -> Recording:
    return Recording(release)


def probed(found: Recording, checks: tuple[Check, ...] = CHECKS) -> ProbeRun:
    return probe(found.dial, found.place, found.seed, checks, pause=lambda _: None)


@pytest.mark.parametrize("release", RELEASES)
def test_kafka_passes_every_check_that_it_offers_a_request_for(release: str) -> None:
    found = probed(recording(release).rewind())
    assert [
        (one.check.id, one.says) for one in found.outcomes if one.verdict in (CheckVerdict.FAIL, CheckVerdict.UNDECIDED)
    ] == []
    assert {one.check.id for one in found.outcomes if one.verdict is CheckVerdict.NOT_SUPPORTED} == LATER[release]
    assert (found.exit_code, found.left) == (0, {})


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_run_alone_asks_the_same(check: Check) -> None:
    """Else: something is asked that the recording does not have."""
    assert probed(recording(TODAY).rewind(), (check,)).exit_code == 0


def expectations(check: Check) -> list[tuple[int, str]]:
    """The number of each request of a check with each field that is expected of it."""
    found: list[tuple[int, str]] = []

    def noted(fixtures: Fixtures) -> Script:
        script, seen, number = check.script(fixtures), None, 0
        while True:
            try:
                expectation = next(script) if seen is None else script.send(seen)
            except StopIteration:
                return
            found.extend((number, name) for name in expectation.expected or ())
            seen = yield expectation
            number += 1

    assert probed(recording(TODAY).rewind(), (check._replace(script=noted),)).exit_code == 0
    return found


def some(found: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Those of the first, a middle and the last request."""
    numbers = sorted({number for number, _ in found})
    kept = {numbers[0], numbers[len(numbers) // 2], numbers[-1]}
    return [one for one in found if one[0] in kept]


def spoiled(check: Check, at: int, name: str) -> Check:
    """The check, whose request `at` gets a response in which one field is another."""

    def script(fixtures: Fixtures) -> Script:
        inner, seen, number = check.script(fixtures), None, 0
        while True:
            try:
                expectation = next(inner) if seen is None else inner.send(seen)
            except StopIteration:
                return
            seen = yield expectation._replace(connection=Spoiling(expectation, name)) if number == at else expectation
            number += 1

    return check._replace(script=script)


class Spoiling(BrokerConnection):
    """A link that changes what comes back."""

    def __init__(self, expectation: Expectation, name: str) -> None:
        self._of, self._field = expectation, name

    def request(self, call: WireRequest) -> WireMessage:
        if self._of.expected == CLOSED:
            return {"errorCode": errors.NONE}
        return self._changed(self._of.connection.request(call))

    def request_claiming(self, call: WireRequest, version: int) -> WireMessage:
        if self._of.expected == CLOSED:
            return {"errorCode": errors.NONE}
        return self._changed(self._of.connection.request_claiming(call, version))

    def _changed(self, message: WireMessage) -> WireMessage:
        if self._field in OF_A_SESSION:
            change_session(message, self._field)
        else:
            change(partition_in(self._of.call.name, message), self._field)
        return message


def partition_in(name: str, message: WireMessage) -> WireMessage:
    if name == "ApiVersions":
        return message
    if name == "Fetch" and (message.get("errorCode") or not message["responses"]):
        return message
    if name == "InitProducerId":
        return message
    if name in ("Metadata", "CreateTopics", "DeleteTopics"):
        of_a_topic: WireMessage = message["responses" if name == "DeleteTopics" else "topics"][0]
        return of_a_topic
    topics = message["responses" if name in ("Fetch", "Produce") else "topics"]
    found: WireMessage = topics[0]["partitionResponses" if name == "Produce" else "partitions"][0]
    return found


def change_session(message: WireMessage, name: str) -> None:
    """Make another session of it, or one that tells of a partition more, or of none."""
    if name == "sessionId":
        message[name] += 1
    else:
        message["responses"] = [] if message["responses"] else [{"topicId": UUID(int=1), "partitions": [NO_NEWS]}]


def change(partition: WireMessage, name: str) -> None:
    """Make a field another."""
    match name:
        case "errorCode":
            partition[name] = errors.POLICY_VIOLATION
        case "batches":
            partition["records"] = b"" if partition["records"] else encode(batch_of(0, 0, [b"more"]))
        case "epochs":
            records = bytearray(partition["records"])
            records[EPOCH_AT : EPOCH_AT + 4] = (77).to_bytes(4, "big")
            partition["records"] = bytes(records)
        case "divergingEpoch":
            seen: Any = partition[name]
            other = {"epoch": 0, "endOffset": 0}
            partition[name] = other if seen["epoch"] < 0 else {"epoch": seen["epoch"], "endOffset": seen["endOffset"] + 1}
        case "name":
            partition[name] += "-other"
        case _:
            partition[name] += 1


@pytest.mark.parametrize("check", [check for check in CHECKS if check.id not in ALL_AT_ONCE], ids=lambda check: check.id)
def test_a_check_notices_each_field_that_it_expects(check: Check) -> None:
    """Also in the middle and at the end of a longer one."""
    found = recording(TODAY)
    for at, name in some(expectations(check)):
        outcome = probed(found.rewind(), (spoiled(check, at, name),)).outcomes[0]
        assert outcome.verdict is CheckVerdict.FAIL, f"request {at}: {name}: {outcome.says}"


def test_records_above_the_high_watermark_are_noticed() -> None:
    """Also when the requests go out together."""
    found = recording(TODAY).rewind()

    def exposes(name: str, message: WireMessage) -> None:
        if name == "Fetch":
            partition_in(name, message)["records"] = encode(batch_of(1 << 30, 0, [b"more"]))

    found.rewrite = exposes
    (outcome,) = probed(found, select_checks(sorted(ALL_AT_ONCE))).outcomes
    assert outcome.verdict is CheckVerdict.FAIL
    assert "above the high watermark" in outcome.says


def test_a_response_to_acks_0_is_noticed() -> None:
    found = recording(TODAY).rewind()
    found.responds_to_silence = True
    (outcome,) = probed(found, select_checks(["acks.zero"])).outcomes
    assert outcome.verdict is CheckVerdict.FAIL
    assert "expected the response to request" in outcome.says


def test_a_follower_that_is_always_there_leaves_it_undecided() -> None:
    found = recording(TODAY).rewind()

    def at_once(name: str, message: WireMessage) -> None:
        if name == "Fetch":
            partition_in(name, message)["highWatermark"] = 1 << 40

    found.rewrite = at_once
    with pytest.raises(AssertionError, match="never asked"):  # it goes on asking, and the recording ends
        probed(found, select_checks(sorted(ALL_AT_ONCE)))


def test_a_rule_is_one_of_the_catalog_and_what_is_needed_can_be_said() -> None:
    assert {check.rule for check in CHECKS} - {""} <= rulebook().keys()
    assert {name for check in CHECKS for name in check.needs} <= set(REQUESTS)
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    assert all(check.says.endswith((".", ")")) and "#" in check.source for check in CHECKS)
