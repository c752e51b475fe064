"""Brokers that were met in trials (sarama's mocks, nafka, rivine): none ends the probe, hides what else it does, or leads it
to somebody else.

Each is a recorded Kafka with one thing changed.
"""

import io
import json
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tests.drive.probe.recorded import NUMBER, Recording, asked, topics_in
from tidegauge.cli.main import main
from tidegauge.drive.probe import run as probe_run
from tidegauge.drive.probe import security
from tidegauge.drive.probe.connection import Wire, shipped_messages
from tidegauge.drive.probe.run import CheckVerdict, InterruptedRunError, ProbeRun, probe, select_checks
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import API_VERSIONS, WireRequest, read_response
from tidegauge.impl import errors
from tidegauge.util.interrupts import interruptible

ITS_OWN = 18
"""The API key of ApiVersions."""
AWAY = 1000
"""How far another broker's port is."""


def probed(recording: Recording, only: list[str], **settings: Any) -> ProbeRun:
    dial = settings.pop("dial", recording.dial)
    settings = {"patience": 5.0, "pause": lambda _: None, **settings}
    return probe(dial, recording.place, recording.seed, select_checks(only), **settings)


def verdicts(found: ProbeRun) -> Mapping[str, CheckVerdict]:
    return {one.check.id: one.verdict for one in found.outcomes}


# ---------------------------------------------------------------------------------------------------------------------
# ApiVersions


def test_a_broker_whose_api_versions_does_not_list_itself_fails_that_check_alone(recording: Recording) -> None:
    def unlisted(name: str, message: WireMessage) -> None:
        if name == API_VERSIONS:
            message["apiKeys"] = [one for one in message["apiKeys"] if one["apiKey"] != ITS_OWN]

    recording.rewrite = unlisted
    found = probed(recording, ["versions.*api-versions", "versions.offered", "acks.one"])
    failing = {name for name, verdict in verdicts(found).items() if verdict is not CheckVerdict.PASS}
    assert failing == {"versions.newer-api-versions"}
    assert "expected the versions of ApiVersions" in next(one.says for one in found.outcomes if one.says)


class OwnVersion:
    """A wire on which ApiVersions is answered in the newest version, whatever it is asked in."""

    def __init__(self, wire: Wire) -> None:
        self._wire, self._number = wire, b""
        self.close = wire.close

    def send(self, frame: bytes) -> None:
        # The recording knows version 0 only: it is asked in that, and its response written in another.
        self._number = frame[NUMBER] if int.from_bytes(frame[4:6], "big") == ITS_OWN else b""
        if self._number:
            self._wire.send(frame[:6] + b"\0\0" + frame[NUMBER] + frame[12 : 14 + int.from_bytes(frame[12:14], "big")])
        else:
            self._wire.send(frame)

    def receive(self) -> bytes:
        data = self._wire.receive()
        if not self._number:
            return data
        number = int.from_bytes(data[:4], "big")
        message, _ = read_response(shipped_messages(), WireRequest(API_VERSIONS, 0, {}), number, data)
        newest = shipped_messages().versions(f"{API_VERSIONS}Response").stop - 1
        return data[:4] + shipped_messages().write(f"{API_VERSIONS}Response", newest, {"throttleTimeMs": 0, **message})


def test_a_broker_that_answers_in_a_version_of_its_own_is_let_in_and_fails_for_it(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = recording.response

    def by_content(to: str, frame: bytes) -> bytes | None:
        # The length is that of the frame in the version it was sent in.
        return known(to, (len(frame) - 4).to_bytes(4, "big") + frame[4:])

    monkeypatch.setattr(recording, "response", by_content)
    only = ["versions.oldest-api-versions", "versions.offered", "acks.one"]
    found = probed(recording, only, dial=lambda *at: OwnVersion(recording.dial(*at)))
    assert verdicts(found) == {
        "versions.offered": CheckVerdict.PASS,
        "versions.oldest-api-versions": CheckVerdict.FAIL,
        "acks.one": CheckVerdict.PASS,
    }


# ---------------------------------------------------------------------------------------------------------------------
# Topics


def never_there(name: str, message: WireMessage) -> None:
    """Metadata never names the topic."""
    if name == "Metadata":
        message["topics"] = [{**one, "errorCode": errors.UNKNOWN_TOPIC_OR_PARTITION} for one in message["topics"]]


def test_a_topic_that_never_comes_to_be_is_waited_for_once(recording: Recording) -> None:
    """Every check that needs one is undecided, and says why, or that it was not tried again."""
    recording.rewrite = never_there
    found = probed(recording, ["acks", "append", "fencing", "sessions"], patience=0.05)
    assert set(verdicts(found).values()) <= {CheckVerdict.UNDECIDED, CheckVerdict.NOT_SUPPORTED}
    undecided = [one.says for one in found.outcomes if one.verdict is CheckVerdict.UNDECIDED]
    assert len(undecided) > 40
    assert all("expected a leader that serves it within 0.05 s" in says for says in undecided)
    assert any(says.startswith("not tried again: ") for says in undecided)
    assert len(topics_in(recording, "CreateTopics")) == 1


@pytest.mark.parametrize("seconds", ["2", "40"])
def test_the_wait_for_a_topic_is_bounded_by_the_timeout(
    seconds: str, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[float] = []

    def noted(*_: Any, patience: float, **__: Any) -> ProbeRun:
        asked_for.append(patience)
        return probed(recording, ["acks.one"])

    monkeypatch.setattr(probe_run, "probe", noted)
    with redirect_stdout(io.StringIO()):
        assert main(["probe", "--quiet", "127.0.0.1:9092", "--timeout", seconds]) == 0
    assert asked_for == [1.5 * float(seconds)]


class Torn:
    """A wire on which responses to some request end too early."""

    def __init__(self, wire: Wire, name: str) -> None:
        self._wire, self._name, self._torn = wire, name, False
        self.close = wire.close

    def send(self, frame: bytes) -> None:
        self._torn = asked(frame).name == self._name
        self._wire.send(frame)

    def receive(self) -> bytes:
        return self._wire.receive()[:-3] if self._torn else self._wire.receive()


def test_an_unreadable_response_to_create_topics_fails_one_check_and_hides_no_other(recording: Recording) -> None:
    """The topic is there, as Metadata tells."""
    only = ["versions.create-topics", "versions.metadata", "acks.one", "fetch.every-offset"]
    found = probed(recording, only, dial=lambda *at: Torn(recording.dial(*at), "CreateTopics"))
    seen = verdicts(found)
    assert seen.pop("versions.create-topics") is CheckVerdict.FAIL
    assert set(seen.values()) == {CheckVerdict.PASS}
    assert found.left == {}


@pytest.mark.parametrize("name", ["Metadata", "CreateTopics", "DeleteTopics", "DeleteRecords", "InitProducerId"])
def test_a_response_that_is_not_in_its_version_has_a_check_that_fails_for_it(name: str, recording: Recording) -> None:
    """Whatever else needs the request."""
    check = "versions." + "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")
    (row,) = select_checks([check])
    torn = False

    def from_the_check_on(*at: Any) -> Wire:
        return Torn(recording.dial(*at), name) if torn else recording.dial(*at)

    def with_settings_made(fixtures: Any) -> Any:
        nonlocal torn
        fixtures.log(), fixtures.producer()
        torn = True
        for one in (fixtures.first, fixtures.log().connection):
            one.close()
        yield from row.script(fixtures)

    found = probe(
        from_the_check_on, recording.place, recording.seed, [row._replace(script=with_settings_made)], patience=0.1
    )
    assert verdicts(found) == {check: CheckVerdict.FAIL}


# ---------------------------------------------------------------------------------------------------------------------
# Where Metadata leads


def elsewhere(name: str, message: WireMessage) -> None:
    """Every broker is at another port than it is."""
    if name == "Metadata":
        message["brokers"] = [{**one, "port": one["port"] + AWAY} for one in message["brokers"]]


def test_nothing_is_written_where_metadata_names_another_place_than_the_given_one(recording: Recording) -> None:
    recording.rewrite = elsewhere
    found = probed(recording, ["acks.one", "fetch.every-offset"])
    assert set(verdicts(found).values()) == {CheckVerdict.UNDECIDED}
    host, port = recording.place
    assert f"expected a broker at {host}:{port}, where it was asked" in found.outcomes[0].says
    assert "--follow-metadata goes there" in found.outcomes[0].says
    assert topics_in(recording, "CreateTopics") == set()
    assert {to for to, _ in recording.sent} == {f"{host}:{port}"}


def test_where_it_goes_on_is_said(recording: Recording) -> None:
    """When it was asked to follow."""
    recording.rewrite = elsewhere
    warned: list[str] = []
    back: Callable[[str, int], Wire] = lambda host, port: recording.dial(  # noqa: E731
        host, port if port == recording.place[1] else port - AWAY
    )
    found = probed(recording, ["acks.one"], dial=back, follow_metadata=True, warn=warned.append)
    assert verdicts(found) == {"acks.one": CheckVerdict.PASS}
    assert found.notes == warned
    assert warned[0].endswith("which Metadata names")
    assert warned[0].startswith("goes on at ")


# ---------------------------------------------------------------------------------------------------------------------
# A run that is ended


def test_a_run_that_is_ended_hands_out_what_it_found(recording: Recording) -> None:
    def ending(_name: str, _message: WireMessage) -> None:
        if len(recording.sent) == 60:
            os.kill(os.getpid(), signal.SIGTERM)

    recording.rewrite = ending
    with pytest.raises(InterruptedRunError) as ended, interruptible() as heed:
        probed(recording, ["versions", "acks", "append"], heed=heed)
    run = ended.value.run
    assert len(run.outcomes) > 3
    assert len(run.outcomes) + run.not_run == len(select_checks(["versions", "acks", "append"]))
    assert run.left == {}


def test_after_sigterm_the_command_has_written_its_reports(
    recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The story of a failure, the counts, JSON and JUnit; the exit code is that of an interrupt."""

    def ending(name: str, message: WireMessage) -> None:
        if name == "ListOffsets":
            message["topics"][0]["partitions"][0]["offset"] += 1
        if len(recording.sent) == 120:
            os.kill(os.getpid(), signal.SIGTERM)

    recording.rewrite = ending
    monkeypatch.setattr(security, "secured", lambda *_: lambda address, port, _name: recording.dial(address, port))
    host, port = recording.place
    files = ["--json", str(tmp_path / "probe.json"), "--junit", str(tmp_path / "probe.xml")]
    with redirect_stdout(io.StringIO()) as said:
        code = main(["probe", "--quiet", f"{host}:{port}", "--seed", str(recording.seed), *files])
    assert code == 130
    assert "FAIL versions.list-offsets" in said.getvalue()
    assert "checks were not run" in said.getvalue()
    written = json.loads((tmp_path / "probe.json").read_text())
    assert written["not_run"] > 0
    assert written["counts"]["fail"] >= 1
    assert "<failure" in (tmp_path / "probe.xml").read_text()
