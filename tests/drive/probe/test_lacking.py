"""Responses that lack what they are about leave a check failed or undecided: they are no fault of Tidegauge."""

import pytest

from tests.drive.probe.recorded import Recording, Rewrite
from tidegauge.drive.probe.connection import BrokerConnection, NoResponseError, shipped_messages, tcp
from tidegauge.drive.probe.run import CHECKS, CheckVerdict, probe, select_checks
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl import errors

DECIDED = {"CreateTopics": "topics", "DeleteTopics": "responses", "AlterPartitionReassignments": None, "ElectLeaders": None}
"""By the controller; where its refusal stands in the response."""


def without_topics(_name: str, message: WireMessage) -> None:
    for field in ("topics", "responses"):
        if field in message:
            message[field] = []


def without_partitions(_name: str, message: WireMessage) -> None:
    for topic in [*message.get("topics", []), *message.get("responses", [])]:
        for field in ("partitions", "partitionResponses"):
            if field in topic:
                topic[field] = []


def without_brokers(name: str, message: WireMessage) -> None:
    if name == "Metadata":
        message["brokers"] = []


def without_metadata(name: str, message: WireMessage) -> None:
    if name == "ApiVersions":
        message["apiKeys"] = [one for one in message["apiKeys"] if one["apiKey"] != 3]


@pytest.mark.parametrize("lacking", [without_topics, without_partitions, without_brokers, without_metadata])
def test_a_response_that_lacks_what_it_is_about_fails_or_decides_nothing(recording: Recording, lacking: Rewrite) -> None:
    """And never ends the run."""
    recording.rewrite = lacking
    found = probe(recording.dial, recording.place, recording.seed, pause=lambda _: None, patience=0.0)
    needs_no_topic = {check.id for check in select_checks(["versions"])}
    passed = {one.check.id for one in found.outcomes if one.verdict is CheckVerdict.PASS}
    assert passed <= needs_no_topic
    assert len(found.outcomes) == len(CHECKS)


@pytest.mark.parametrize(
    ("request_name", "group"),
    [
        ("Fetch", "fetch"),
        ("Produce", "acks.one"),
        ("OffsetForLeaderEpoch", "epochs.current"),
        ("DeleteRecords", "delete.unknown-topic"),
    ],
)
def test_a_check_whose_response_has_no_topic_fails(recording: Recording, request_name: str, group: str) -> None:
    """The setting is made; what is looked at then says nothing."""

    def empty(name: str, message: WireMessage) -> None:
        if name == request_name:
            without_topics(name, message)

    recording.rewrite = empty
    found = probe(
        recording.dial, recording.place, recording.seed, select_checks([group]), pause=lambda _: None, patience=5.0
    )
    assert {one.verdict for one in found.outcomes} == {CheckVerdict.FAIL}
    assert all("expected a response about one entry" in one.says for one in found.outcomes)


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", -1), ("127.0.0.1", 1 << 20), ("a..b", 9092)])
def test_a_place_that_is_none_is_no_connection(host: str, port: int) -> None:
    there = BrokerConnection(shipped_messages(), tcp(1.0), host, port, lambda _: None)
    with pytest.raises(NoResponseError, match="no connection"):
        there.request(WireRequest("ApiVersions", 0, {}))


def test_a_broker_that_is_not_the_controller_is_not_asked_to_decide(recording: Recording) -> None:
    """Half of the requests that the controller decides are refused: they go to the controller then."""
    refused: list[str] = []

    def forwards_nothing(name: str, message: WireMessage) -> None:
        if name in DECIDED:
            refused.append(name)
            if refused.count(name) % 2:
                (message if (field := DECIDED[name]) is None else message[field][0])["errorCode"] = errors.NOT_CONTROLLER
        elif name == "Metadata":
            first = next(one for one in message["brokers"] if one["port"] == recording.place[1])
            message["controllerId"] = first["nodeId"]

    recording.rewrite = forwards_nothing
    found = probe(
        recording.dial, recording.place, recording.seed, select_checks(["epochs.every-epoch"]), pause=lambda _: None
    )
    assert (found.exit_code, found.left) == (0, {})
    election = [name for name in ("AlterPartitionReassignments", "ElectLeaders") for _ in range(2)]
    assert refused == ["CreateTopics"] * 2 + election * 3 + ["DeleteTopics"] * 2
