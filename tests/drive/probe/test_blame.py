"""What the protocol leaves open is no failure, and what a broker does wrong fails the checks that are about it, not others.

Each was seen at a third-party broker (docs/third-parties.md). The brokers here are recordings of Kafka that do the same.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from tests.drive.probe.recorded import NOBODY_HAS, NUMBER, Recording, Rewrite, asked
from tidegauge.drive.probe.check import batches_in
from tidegauge.drive.probe.checks.appending import EPOCH_AT
from tidegauge.drive.probe.connection import Dial, Wire, shipped_messages, single_entry
from tidegauge.drive.probe.run import CheckVerdict, ProbeRun, probe, select_checks
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import read_response
from tidegauge.impl import errors
from tidegauge.traces.segments import decode, header


def probed(found: Recording, *single_entry: str, dial: Dial | None = None) -> ProbeRun:
    return probe(dial or found.dial, found.place, found.seed, select_checks(single_entry), pause=lambda _: None)


def that_are(found: ProbeRun, verdict: CheckVerdict) -> set[str]:
    return {one.check.id for one in found.outcomes if one.verdict is verdict}


def the_partition(message: WireMessage) -> WireMessage:
    partition: WireMessage = message["responses"][0]["partitions"][0]
    return partition


def parts(data: bytes) -> list[bytes]:
    at, found = 0, []
    while at < len(data):
        _, end = header(data, at)
        found.append(data[at:end])
        at = end
    return found


class Sparing(Wire):
    """Brings one batch per fetch, as librdkafka's mock broker does; `then` makes what it brings next."""

    def __init__(self, wire: Wire, then: Callable[[bytes], bytes] = bytes) -> None:
        self._wire, self._then, self.close = wire, then, wire.close
        self._rest: list[bytes] = []
        self._calls: deque[tuple[Any, bytes | None]] = deque()
        self._last: WireMessage = {}

    def send(self, frame: bytes) -> None:
        call = asked(frame) if frame[6:8] != NOBODY_HAS else None
        offset = call.body["topics"][0]["partitions"][0]["fetchOffset"] if call and call.name == "Fetch" else None
        if self._rest and batches_in(self._rest[0])[0][0] == offset:
            self._calls.append((call, frame[NUMBER]))
            return
        self._rest.clear()
        self._calls.append((call, None))
        self._wire.send(frame)

    def receive(self) -> bytes:
        call, number = self._calls.popleft()
        if number is not None:
            the_partition(self._last)["records"] = self._then(self._rest.pop(0))
            return number + b"\0" + shipped_messages().write("FetchResponse", call.version, self._last)
        data = self._wire.receive()
        if call is None or call.name != "Fetch" or call.version < 12:
            return data
        self._last, _ = read_response(shipped_messages(), call, int.from_bytes(data[:4], "big"), data)
        if self._last["errorCode"] or not (records := the_partition(self._last)["records"]):
            return data
        first, *self._rest[:] = parts(records)
        the_partition(self._last)["records"] = first
        return data[:5] + shipped_messages().write("FetchResponse", call.version, self._last)


READS = ("fetch", "divergence", "isolation.read-committed", "acks.one", "append", "producers", "delete")


def test_a_broker_that_brings_one_batch_per_fetch_passes(recording: Recording) -> None:
    """The rest is asked for, as a consumer does, by a follower with the epoch of what it was given last."""
    found = probed(recording, *READS, dial=lambda *at: Sparing(recording.dial(*at)))
    assert that_are(found, CheckVerdict.PASS) == {check.id for check in select_checks(READS)}
    fetches = [one for outcome in found.outcomes for one in outcome.exchanges if one.call.name == "Fetch"]
    assert {"divergence.every-epoch-and-offset", "fetch.every-offset"} <= that_are(found, CheckVerdict.PASS)
    assert len(fetches) > 300


@pytest.mark.parametrize("then", [lambda _: b"", lambda data: b"\0" * 7 + b"\x09" + data[8:]], ids=["nothing", "another"])
def test_a_broker_that_brings_something_else_instead_of_the_rest_fails(
    recording: Recording, then: Callable[[bytes], bytes]
) -> None:
    wanted = ("fetch.every-offset", "divergence.same-epoch-below-the-end", "acks.one")
    found = probed(recording, *wanted, dial=lambda *at: Sparing(recording.dial(*at), then))
    assert that_are(found, CheckVerdict.FAIL) == set(wanted)


def test_a_connection_that_is_reset_is_closed(recording: Recording) -> None:
    class Resetting(Wire):
        def __init__(self, wire: Wire) -> None:
            self._wire, self.send, self.close = wire, wire.send, wire.close

        def receive(self) -> bytes:
            try:
                return self._wire.receive()
            except EOFError:
                raise ConnectionResetError(104, "Connection reset by peer") from None

    found = probed(recording, "versions.not-offered", dial=lambda *at: Resetting(recording.dial(*at)))
    assert found.exit_code == 0


def test_a_newer_client_is_one_whatever_the_broker_offers(recording: Recording) -> None:
    """Its header has tagged fields, also where the broker offers ApiVersions up to 2."""

    def old(name: str, message: WireMessage) -> None:
        for one in message["apiKeys"] if name == "ApiVersions" else ():
            if one["apiKey"] == 18:
                one["maxVersion"] = 2

    recording.rewrite = old
    assert probed(recording, "versions.newer-api-versions").exit_code == 0


def test_another_leader_than_was_asked_for_will_do(recording: Recording) -> None:
    """As at kfake, where an election goes round: the leader epoch grows, which is what is looked at."""

    def other(name: str, message: WireMessage) -> None:
        if name == "Metadata":
            for one in message["brokers"]:
                one["nodeId"] = 3 - one["nodeId"]
            for partition in (partition for topic in message["topics"] for partition in topic["partitions"]):
                partition["leaderId"] = 3 - partition["leaderId"] if partition["leaderId"] > 0 else -1

    recording.rewrite = other
    assert probed(recording, "epochs.every-epoch").exit_code == 0


def test_settings_of_a_topic_take_create_topics(recording: Recording) -> None:
    """One that comes to be by Metadata has none: nothing is blamed for that."""

    def less(name: str, message: WireMessage) -> None:
        if name == "ApiVersions":
            message["apiKeys"] = [one for one in message["apiKeys"] if one["apiKey"] != 19]

    recording.rewrite = less
    wanted = ("append.too-large", "append.without-key-to-a-compacted-topic", "min-isr", "acks.all-is-committed")
    assert that_are(probed(recording, *wanted), CheckVerdict.NOT_SUPPORTED) == {check.id for check in select_checks(wanted)}


# ---------------------------------------------------------------------------------------------------------------------
# One thing that is wrong is one failure


def unstamped(name: str, message: WireMessage) -> None:
    """As at tansu: batches keep the leader epoch that the producer wrote."""
    if name == "Fetch" and message["responses"] and (records := the_partition(message)["records"]):
        none = (-1).to_bytes(4, "big", signed=True)
        the_partition(message)["records"] = b"".join(one[:EPOCH_AT] + none + one[EPOCH_AT + 4 :] for one in parts(records))


def refusals_at_0(name: str, message: WireMessage) -> None:
    """As at kfake."""
    if name == "Produce" and (one := message["responses"][0]["partitionResponses"][0])["errorCode"]:
        one["baseOffset"] = 0
    if name == "DeleteRecords" and (one := message["topics"][0]["partitions"][0])["errorCode"]:
        one["lowWatermark"] = 0


@pytest.mark.parametrize(
    ("wrong", "fails"),
    [
        (unstamped, {"append.leader-epoch", "append.leader-epochs-after-elections"}),
        (refusals_at_0, {"append.offset-of-a-refusal", "delete.low-watermark-of-a-refusal"}),
    ],
)
def test_one_thing_wrong_fails_what_is_about_it(recording: Recording, wrong: Rewrite, fails: set[str]) -> None:
    recording.rewrite = wrong
    found = probed(recording)
    assert that_are(found, CheckVerdict.FAIL) == fails
    assert that_are(found, CheckVerdict.UNDECIDED) == set()


def test_a_fetch_that_may_not_wait_and_brings_nothing_is_one_failure(recording: Recording) -> None:
    """As at tansu, which reads for as long as a fetch may wait."""

    class Hasty(Wire):
        def __init__(self, wire: Wire) -> None:
            self._wire, self.close = wire, wire.close
            self._hasty = False

        def send(self, frame: bytes) -> None:
            call = asked(frame) if frame[6:8] != NOBODY_HAS else None
            self._hasty = call is not None and call.name == "Fetch" and call.body["maxWaitMs"] == 0
            self._wire.send(frame)

        def receive(self) -> bytes:
            data = self._wire.receive()
            if not self._hasty:
                return data
            empty = {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0, "responses": []}
            return data[:5] + shipped_messages().write("FetchResponse", 17, empty)

    found = probed(recording, *READS, dial=lambda *at: Hasty(recording.dial(*at)))
    assert that_are(found, CheckVerdict.FAIL) == {"fetch.without-waiting"}


# ---------------------------------------------------------------------------------------------------------------------
# Producers


def test_a_producer_epoch_that_is_refused_leaves_what_comes_after_it_undecided(recording: Recording) -> None:
    def fenced(name: str, message: WireMessage) -> None:
        if name == "Produce":
            message["responses"][0]["partitionResponses"][0]["errorCode"] = errors.PRODUCER_FENCED

    recording.rewrite = fenced
    found = probed(recording, "producers.older-epoch", "producers.newer-epoch")
    assert [one.verdict for one in found.outcomes] == [CheckVerdict.UNDECIDED] * 2
    assert "PRODUCER_FENCED (90)" in found.outcomes[0].says


def test_no_check_goes_back_behind_the_producer_epoch_of_another(recording: Recording) -> None:
    """A broker may know a producer once, not by partition: what it took must never be of a smaller epoch than before."""
    taken = []
    for one in (one for outcome in probed(recording, "producers").outcomes for one in outcome.exchanges):
        if (
            one.call.name == "Produce"
            and single_entry(one.response or {}, "responses", "partitionResponses")["errorCode"] == 0
        ):
            batch, _ = decode(one.call.body["topicData"][0]["partitionData"][0]["records"])
            taken += [batch.producer_epoch] if batch.producer_id >= 0 else []
    assert len(taken) > 20
    assert taken == sorted(taken)
