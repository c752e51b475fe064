"""What a run is around its checks: what a broker does not offer, topics that are taken away whatever happens, reports."""

import io
import json
import os
import signal
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from tests.drive.probe.recorded import Recording, asked, closes_session, topics_in
from tidegauge.cli.main import main
from tidegauge.drive.probe import security
from tidegauge.drive.probe.check import Check
from tidegauge.drive.probe.connection import Wire
from tidegauge.drive.probe.report import message_text, probe_text
from tidegauge.drive.probe.run import CHECKS, CheckVerdict, ProbeRun, probe, select_checks
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.impl import errors
from tidegauge.util.errors import UsageError
from tidegauge.util.interrupts import interruptible

TODAY = "4.1.1"
MANY = 300


@cache
def the_recording() -> Recording:
    return Recording(TODAY)


@pytest.fixture
def recording() -> Recording:
    return the_recording().rewind()


def probed(found: Recording, checks: tuple[Check, ...] = CHECKS) -> ProbeRun:
    return probe(found.dial, found.place, found.seed, checks, pause=lambda _: None)


# ---------------------------------------------------------------------------------------------------------------------
# What a broker offers


def test_what_is_not_offered_is_not_supported_and_nothing_fails(recording: Recording) -> None:
    """As a broker that has no OffsetForLeaderEpoch, no idempotent producers, and Fetch without last fetched epochs."""

    def less(name: str, message: WireMessage) -> None:
        if name == "ApiVersions":
            message["apiKeys"] = [one for one in message["apiKeys"] if one["apiKey"] not in (22, 23)]

    recording.rewrite = less
    checks = select_checks(["epochs", "producers", "fencing.offsets-for-leader-epoch-newer", "acks.one"])
    found = probed(recording, checks)
    assert {one.check.id for one in found.outcomes if one.verdict is CheckVerdict.PASS} == {"acks.one"}
    assert found.count(CheckVerdict.NOT_SUPPORTED) == len(checks) - 1
    assert found.exit_code == 0


def test_unsupported_version_in_place_of_what_is_expected_is_no_failure(recording: Recording) -> None:
    def unsupported(name: str, message: WireMessage) -> None:
        if name == "OffsetForLeaderEpoch":
            message["topics"][0]["partitions"][0]["errorCode"] = errors.UNSUPPORTED_VERSION

    recording.rewrite = unsupported
    found = probed(recording, select_checks(["epochs.current"]))
    assert [one.verdict for one in found.outcomes] == [CheckVerdict.NOT_SUPPORTED]
    assert found.exit_code == 3


def test_a_topic_that_cannot_be_created_leaves_what_needs_it_undecided(recording: Recording) -> None:
    def forbidden(name: str, message: WireMessage) -> None:
        if name == "CreateTopics":
            message["topics"][0]["errorCode"] = errors.TOPIC_AUTHORIZATION_FAILED

    recording.rewrite = forbidden
    found = probed(recording, select_checks(["acks.one", "fencing"]))
    assert {one.verdict for one in found.outcomes} == {CheckVerdict.UNDECIDED}
    assert "TOPIC_AUTHORIZATION_FAILED" in found.outcomes[0].says
    assert found.exit_code == 3


class Longer:
    """A wire on which responses to some request have a byte more than their version."""

    def __init__(self, wire: Wire, name: str) -> None:
        self._wire, self._name, self._longer = wire, name, False
        self.close = wire.close

    def send(self, frame: bytes) -> None:
        self._longer = asked(frame).name == self._name
        self._wire.send(frame)

    def receive(self) -> bytes:
        return self._wire.receive() + (b"\0" if self._longer else b"")


def test_a_response_with_a_byte_too_many_is_no_response(recording: Recording) -> None:
    found = probe(
        lambda *at: Longer(recording.dial(*at), "Fetch"),
        recording.place,
        recording.seed,
        select_checks(["fetch.every-offset"]),
    )
    assert "1 bytes after the end of the response" in found.outcomes[0].says
    assert found.exit_code == 1


def test_a_byte_behind_metadata_is_noted_and_hides_no_check(recording: Recording) -> None:
    """As librdkafka's mock broker writes one."""
    checks = select_checks(["fetch.every-offset"])
    found = probe(lambda *at: Longer(recording.dial(*at), "Metadata"), recording.place, recording.seed, checks)
    noted = [one.problem for one in found.outcomes[0].exchanges if one.call.name == "Metadata"]
    assert set(noted) == {"1 bytes after the end of the response in this version"}
    assert found.exit_code == 0


# ---------------------------------------------------------------------------------------------------------------------
# Topics


def test_every_topic_that_is_created_is_deleted_and_has_a_name_of_the_probes_own(recording: Recording) -> None:
    found = probed(recording)
    created = topics_in(recording, "CreateTopics")
    assert created == topics_in(recording, "DeleteTopics")
    assert len(created) > 30
    assert all(name.startswith(f"{found.prefix}-") for name in created)
    assert found.prefix.startswith("tidegauge-probe-")


def test_a_topic_that_is_there_is_not_touched(recording: Recording) -> None:
    def there(name: str, message: WireMessage) -> None:
        if name == "Metadata":
            message["topics"][0]["errorCode"] = errors.NONE

    recording.rewrite = there
    with pytest.raises(UsageError, match="choose another --seed"):
        probed(recording, select_checks(["acks.one"]))
    assert topics_in(recording, "DeleteTopics") == topics_in(recording, "CreateTopics") == set()


def test_a_topic_that_somebody_else_creates_meanwhile_is_not_deleted(recording: Recording) -> None:
    """The metadata may lag: it is the controller that says so."""

    def taken(name: str, message: WireMessage) -> None:
        if name == "CreateTopics":
            message["topics"][0]["errorCode"] = errors.TOPIC_ALREADY_EXISTS

    recording.rewrite = taken
    with pytest.raises(UsageError, match="choose another --seed"):
        probed(recording, select_checks(["acks.one"]))
    assert topics_in(recording, "CreateTopics")
    assert topics_in(recording, "DeleteTopics") == set()


def test_what_could_not_be_made_is_not_made_again(recording: Recording) -> None:
    """A broker that closes the connection on what the setting takes: every check that needs it is undecided."""
    found = probe(
        lambda *at: Closing(recording.dial(*at)), recording.place, recording.seed, select_checks(["delete", "LOG-01"])
    )
    undecided = {one.check.id for one in found.outcomes if one.verdict is CheckVerdict.UNDECIDED}
    assert undecided == {"offsets.earliest-after-delete-records", "offsets.earliest-local"}
    assert {one.verdict for one in found.outcomes if one.check.id.startswith("delete.")} == {CheckVerdict.FAIL}
    assert found.left == {}


class Closing:
    """A wire that ends when records are to be deleted."""

    def __init__(self, wire: Wire) -> None:
        self._wire, self._ended = wire, False
        self.close = wire.close

    def send(self, frame: bytes) -> None:
        self._ended = asked(frame).name == "DeleteRecords"
        self._wire.send(frame)

    def receive(self) -> bytes:
        if self._ended:
            raise EOFError
        return self._wire.receive()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", [5, 40, 150, MANY])
def test_interrupted_at_any_request_the_topics_go_first(recording: Recording, after: int, number: int) -> None:
    """What is under way comes to its end, so that no topic is created behind its deletion."""

    def interrupting(name: str, message: WireMessage) -> None:
        if len(recording.sent) == after:
            os.kill(os.getpid(), number)

    recording.rewrite = interrupting
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), interruptible() as heed:
        probe(recording.dial, recording.place, recording.seed, heed=heed, pause=lambda _: None)
    deleted = topics_in(recording, "DeleteTopics")
    assert topics_in(recording, "CreateTopics") <= deleted, "the last of which may not have been asked for yet"
    assert signal.getsignal(number) == before
    closed = sum(closes_session(frame) for _, frame in recording.sent[after:])
    assert len(recording.sent) == after + 2 * len(deleted) + closed, "a deletion and a look for each, then the sessions"


def test_a_topic_that_could_not_be_deleted_is_said(recording: Recording) -> None:
    def stays(name: str, message: WireMessage) -> None:
        if name == "DeleteTopics":
            message["responses"][0]["errorCode"] = errors.POLICY_VIOLATION

    recording.rewrite = stays
    found = probed(recording, select_checks(["acks.one"]))
    assert list(found.left.values()) == ["POLICY_VIOLATION (44)"]
    assert "delete it by hand" in probe_text(found)


# ---------------------------------------------------------------------------------------------------------------------
# The command and its reports


@pytest.fixture
def at(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The arguments that probe what was recorded."""
    monkeypatch.setattr(security, "secured", lambda *_: lambda address, port, _name: recording.dial(address, port))
    host, port = recording.place
    return ["probe", "--quiet", f"{host}:{port}", "--seed", str(recording.seed)]


def test_a_failure_is_told_in_words_and_in_hex(recording: Recording, at: list[str], tmp_path: Path) -> None:
    """And stands in both reports."""

    def unfenced(name: str, message: WireMessage) -> None:
        if name == "OffsetForLeaderEpoch":
            message["topics"][0]["partitions"][0].update(errorCode=errors.NONE, leaderEpoch=0, endOffset=10)

    recording.rewrite = unfenced
    report, junit = tmp_path / "probe.json", tmp_path / "probe.xml"
    wanted = ["--only", "fencing.offsets-for-leader-epoch-newer", "--only", "acks.one"]
    said = io.StringIO()
    with redirect_stdout(said):
        assert main([*at, *wanted, "--json", str(report), "--junit", str(junit)]) == 1
    lines = said.getvalue()
    assert "FAIL fencing.offsets-for-leader-epoch-newer   FENCE-01 Partition#checkCurrentLeaderEpoch" in lines
    assert "errorCode: expected UNKNOWN_LEADER_EPOCH (75); seen NONE (0)" in lines
    assert "currentLeaderEpoch=1" in lines
    found = json.loads(report.read_text())
    assert found["counts"] == {"pass": 1, "fail": 1, "not supported": 0, "undecided": 0}
    last = next(one for one in found["checks"] if one["verdict"] == "fail")["exchanges"][-1]
    assert last["sent"] in lines
    assert bytes.fromhex(last["received"])[4:]
    suite = Xml.parse(junit).getroot()[0]
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("2", "1")
    assert len(suite.findall("testcase/failure")) == 1


def test_a_run_in_which_all_passes_ends_with_0(at: list[str]) -> None:
    with redirect_stdout(io.StringIO()) as said:
        assert main([*at, "--only", "acks"]) == 0
    assert "checks: " in said.getvalue()


@pytest.mark.parametrize("place", ["localhost", "localhost:", ":9092", "localhost:0", "localhost:70000", "localhost:x"])
def test_what_is_no_host_and_port_is_refused(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", place]) == 2
    assert "expected HOST:PORT" in capsys.readouterr().err


def test_where_nobody_listens_and_what_is_no_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "127.0.0.1:1"]) == 2
    assert main(["probe", "127.0.0.1:1", "--only", "no-such-check"]) == 2
    assert main(["probe"]) == 2
    said = capsys.readouterr().err
    assert "expected a broker that answers ApiVersions" in said
    assert "no-such-check" in said


def test_the_checks_are_listed_and_chosen_by_id_group_pattern_and_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(CHECKS)
    assert [check.id for check in select_checks(["acks.one"])] == ["acks.one"]
    assert {check.id.split(".")[0] for check in select_checks(["epochs", "*.unknown-topic"])} > {
        "epochs",
        "append",
        "offsets",
    }
    assert {check.rule for check in select_checks(["FENCE-01"])} == {"FENCE-01"}


def test_what_a_broker_wrote_is_shown_as_one_line_of_plain_letters() -> None:
    assert message_text({"a": [1, None], "b": {"c": "x\n\x1b", "d": b"\x00\xff"}}) == "{a=[1 null] b={c='x\\n\\x1b' d=00ff}}"
