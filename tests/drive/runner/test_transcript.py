"""What a broker did is kept, and held against other generations without it."""

import gzip
import os
from pathlib import Path

import pytest

from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.contract import Capabilities
from tidegauge.drive.controller.findings import FINDINGS
from tidegauge.drive.controller.transcript import CONTROLLER_FORMAT
from tidegauge.drive.paths.graphs import cover_of
from tidegauge.drive.paths.walks import walks
from tidegauge.drive.runner import transcript
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.recheck import recheck, text_of
from tidegauge.drive.runner.transcript import (
    CONTROLLER,
    FOLDER,
    Recorded,
    Recorder,
    TranscriptError,
    TranscriptNode,
    place_of,
    places,
    read,
    release_of,
    releases,
    write,
)
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.profiles import FETCH_TRUNCATION
from tidegauge.impl.releases import profile_named
from validation.releases import job_steps as steps
from validation.releases.controllers import paths_that_show, played_and_read
from validation.releases.job_steps import controllers_on_the_wire, kafka_on_the_wire
from validation.releases.page import PAGE, page

CASES = (*cover_of("small", FETCH_TRUNCATION).cases, *walks(1, 30, FETCH_TRUNCATION))


def recorded(place: Path, profile: str, capabilities: Capabilities = EVERYTHING) -> Path:
    """What a generation does on the paths of today's."""
    recorder = Recorder(CASES)
    start = reference(profile_named(profile))
    play(ReferenceNode(start, capabilities), CASES, reference(), recorder)
    write(place, BROKER_FORMAT, capabilities, FETCH_TRUNCATION.name, recorder.recorded())
    return place


def test_a_transcript_is_small_and_the_same_twice(tmp_path: Path) -> None:
    one, other = (recorded(tmp_path / name, "fetch-truncation") for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    assert len(one.read_bytes()) < 40_000


def test_the_generation_it_was_recorded_of_agrees_and_another_one_does_not(tmp_path: Path) -> None:
    node = read(recorded(tmp_path / "t", "fetch-truncation"), BROKER_FORMAT)
    same = recheck(node)
    assert same.exit_code == 0
    assert same.played.steps == sum(len(case.path) + 1 for case in CASES)
    assert recheck(node, fault="hw-not-clamped").exit_code == 1
    assert recheck(node, "release-3.4.0").exit_code == 1


def test_a_release_names_its_switches_by_itself(tmp_path: Path) -> None:
    """What 3.4.0 did, held against today: KAFKA-18991 and KAFKA-14704 come out as causes."""
    found = recheck(read(recorded(tmp_path / "t", "release-3.4.0"), BROKER_FORMAT))
    causes = " ".join(cause for cause, _ in found.causes)
    assert "response_epoch_checked=off" in causes
    assert "applies_diverging=on" in causes
    assert "DIFFERS after" in text_of(found)
    assert "paths as with" in text_of(found)


def test_only_what_was_reported_is_compared(tmp_path: Path) -> None:
    few = Capabilities("few", EVERYTHING.can, frozenset({"leo"}))
    node = read(recorded(tmp_path / "t", "fetch-truncation", few), BROKER_FORMAT)
    assert node.capabilities == few
    assert recheck(node, fault="diverging-end-one-high").exit_code == 0
    assert recheck(node, fault="truncates-one-high").exit_code == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "t:1: expected a line of a transcript"),
        (b"{}\n", "t:1: "),
        (b'{"format":"tidegauge transcript","contract":2}\n', "of contract 2"),
        (b"nothing\n", "t:1: "),
        (b"@\n[]\n", "t:2: "),
        (b'@\n[[[2],1],[["jump"]],[]]\n', "a step that the contract does not have"),
        (b'@\n[[[2],1],[["append","all"]],[]]\n', "a step that the contract does not have"),
        (b'@\n[[["x"],1],[],[]]\n', "an opening that the contract does not have"),
        (b'@\n[[[2],"1"],[],[]]\n', "an opening that the contract does not have"),
        (b"@\n[[[2],1],[],[[1],[1]]]\n", "more reports than steps"),
        (b"@\n[[[2],1],[],[[1,2]]]\n", "t:2: "),
    ],
)
def test_a_file_that_is_no_transcript_is_refused_with_its_line(text: bytes, says: str, tmp_path: Path) -> None:
    head = b'{"format":"tidegauge transcript","contract":1,"name":"x","profile":"elr","can":[],"reports":["leo"]}'
    (tmp_path / "t").write_bytes(gzip.compress(text.replace(b"@", head)))
    with pytest.raises(TranscriptError, match="record it again") as refused:
        read(tmp_path / "t", BROKER_FORMAT)
    assert says in str(refused.value)


def test_a_bomb_and_a_pipe_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is read to its end: somebody sent it."""
    (tmp_path / "bomb").write_bytes(gzip.compress(b"{" * (1 << 20)) * 64)
    os.mkfifo(tmp_path / "pipe")
    for name, says in (("bomb", "unpacks to more than 100 times its size"), ("pipe", "a pipe")):
        with pytest.raises(TranscriptError, match=says):
            read(tmp_path / name, BROKER_FORMAT)
    (tmp_path / "large").write_bytes(gzip.compress(b"x" * 3_000))
    monkeypatch.setattr(transcript, "MOST_BYTES", 2_000)
    with pytest.raises(TranscriptError, match="more than 2,000 bytes"):
        read(tmp_path / "large", BROKER_FORMAT)


def test_a_file_that_is_not_gzipped_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"plain")
    for name in ("t", "none"):
        with pytest.raises(TranscriptError, match="expected a gzipped transcript"):
            read(tmp_path / name, BROKER_FORMAT)


def test_what_is_not_known_stays_so_in_a_file(tmp_path: Path) -> None:
    case, few = (
        CASES[0]._replace(path=CASES[0].path[:1]),
        Capabilities("few", EVERYTHING.can, frozenset({"leo", "hw", "proposal"})),
    )
    reports = ({"leo": 0, "hw": 0, "proposal": None}, {"proposal": None})
    write(tmp_path / "t", BROKER_FORMAT, few, FETCH_TRUNCATION.name, [Recorded(case, reports)])
    replayed: list[object] = []
    read(tmp_path / "t", BROKER_FORMAT).play([case], lambda _number, _at, seen: replayed.append(seen) is None)
    assert tuple(replayed) == reports


@pytest.fixture(scope="module")
def newest() -> TranscriptNode:
    """What the newest release's broker did."""
    return read(places()[-1], BROKER_FORMAT)


@pytest.mark.parametrize("fault", ["hw-not-clamped", "joins-one-low", "diverging-end-one-low"])
def test_a_fault_is_told_from_what_an_unmodified_broker_did(fault: str, newest: TranscriptNode) -> None:
    """So the step of the main job can fail."""
    assert recheck(newest, fault=fault).played.differences


@pytest.mark.long
def test_every_fault_is_told_from_what_an_unmodified_broker_did(newest: TranscriptNode) -> None:
    assert [name for name in FAULTS if not recheck(newest, fault=name).played.differences] == []


def test_the_step_of_the_main_job_passes_with_a_case_per_release() -> None:
    found = kafka_on_the_wire(lambda _: None)
    assert found.passed
    assert {case.name for case in found.cases} == {f"Kafka {release}" for release in releases()}
    assert found.figures["steps"] > 50_000 * len(found.cases)
    assert {"Kafka 3.4.0", "Kafka 3.6.2", "Kafka 4.1.1", "Kafka 4.3.1"} <= {case.name for case in found.cases}


def under_another_name(place: Path, was: str, becomes: str, folder: Path) -> Path:
    """A transcript as if another release had done that, the only one of a folder."""
    folder.mkdir()
    said = gzip.decompress(place.read_bytes()).replace(f'"release-{was}"'.encode(), f'"release-{becomes}"'.encode(), 1)
    (folder / place.name).write_bytes(gzip.compress(said))
    return folder


def test_the_step_of_the_main_job_fails_when_a_broker_did_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What 3.4.0 did under the name of 4.1.1, and no transcript at all."""
    monkeypatch.setattr(steps, "FOLDER", under_another_name(place_of("3.4.0"), "3.4.0", "4.1.1", tmp_path / "one"))
    found = steps.kafka_on_the_wire(lambda _: None)
    assert [case.passed for case in found.cases] == [False]
    monkeypatch.setattr(steps, "FOLDER", tmp_path)
    assert not steps.kafka_on_the_wire(lambda _: None).passed


def test_the_step_of_controllers_passes_with_a_case_per_release() -> None:
    found = controllers_on_the_wire(lambda _: None)
    assert found.passed
    assert {case.name for case in found.cases} == {f"Kafka {release} (controller)" for release in releases(kind=CONTROLLER)}
    assert {"Kafka 4.1.1 (controller)", "Kafka 4.3.1 (controller)"} <= {case.name for case in found.cases}


def test_the_step_of_controllers_fails_when_one_did_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What 4.1.1 did under the name of 4.3.1, and no transcript at all."""
    place = place_of("4.1.1", kind=CONTROLLER)
    monkeypatch.setattr(steps, "FOLDER", under_another_name(place, "4.1.1", "4.3.1", tmp_path / "one"))
    found = steps.controllers_on_the_wire(lambda _: None)
    assert [case.passed for case in found.cases] == [False]
    assert "apache/kafka#20716: assigns_dirs_without_elr=on" in found.cases[0].says
    monkeypatch.setattr(steps, "FOLDER", tmp_path)
    assert not steps.controllers_on_the_wire(lambda _: None).passed


@pytest.mark.long
def test_a_release_whose_controller_is_repaired_in_a_finding_does_not_show_it() -> None:
    """F7 with the lists alone, that are no harm before 4.3, and what 4.3 repaired."""
    nodes = [read(place, CONTROLLER_FORMAT) for place in places(kind=CONTROLLER)]
    reads = [played_and_read(node)[1] for node in nodes]
    shows = {
        release_of(node): {name for name in FINDINGS.values() if paths_that_show(name, node, read)}
        for node, read in zip(nodes, reads, strict=True)
    }
    assert shows["4.3.1"] - shows["4.1.1"] == {"F7", "F10"}
    assert shows["4.1.1"] - shows["4.3.1"] == {"KAFKA-19975", "apache/kafka#20716"}
    assert shows["3.7.2"] - shows["3.8.1"] == {"KAFKA-15665", "F7"}
    assert shows["3.8.1"] - shows["3.9.1"] == {"KAFKA-16952", "KAFKA-12670"}
    assert shows["3.9.1"] - shows["4.0.1"] == {"KAFKA-17793"}
    assert shows["4.0.1"] - shows["4.1.1"] == {"KAFKA-19130", "KAFKA-19522", "apache/kafka#20629"}


@pytest.mark.long
def test_the_page_of_releases_is_the_one_that_is_made() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(FOLDER)
