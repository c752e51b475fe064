"""A controller under test against the reference: paths, differences, what explains them, transcripts. None is started."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tidegauge.cli.main import main
from tidegauge.drive.contract import Step, Watch
from tidegauge.drive.controller.contract import (
    ALL,
    REPORTED,
    ClusterOpening,
    ControllerCase,
)
from tidegauge.drive.controller.findings import FINDINGS, SCENARIOS, SHOWN_BY, finding_cases, registers, up
from tidegauge.drive.controller.reference import reference, shows_finding, unseen
from tidegauge.drive.controller.steps import STEPS, controller_capabilities, is_step, step_line
from tidegauge.drive.controller.transcript import CONTROLLER_FORMAT
from tidegauge.drive.controller.walks import walks
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.report import explanations
from tidegauge.drive.runner.run import run, text_of
from tidegauge.drive.runner.transcript import FOLDER, Recorder, TranscriptError, read, write
from tidegauge.impl.errors import DUPLICATE_BROKER_REGISTRATION, UNKNOWN_SERVER_ERROR
from tidegauge.impl.profiles import Profile
from tidegauge.impl.releases import profile_named
from tidegauge.impl.rules import NONE

OPENING = ClusterOpening(30)
KAFKA = profile_named("release-4.3.1")
WALKS = walks(1, 60, KAFKA, OPENING)
CASES = (*finding_cases(OPENING), *WALKS)


def without(switch: str) -> Profile:
    return KAFKA.switched({switch: not getattr(KAFKA, switch)})


def by_name(name: str) -> ControllerCase:
    return next(case for case in CASES if case.name == name)


def test_the_reference_conforms_to_itself() -> None:
    found = run(ReferenceNode(reference(KAFKA)), CASES, reference(KAFKA))
    assert found.exit_code == 0
    assert found.played.steps == sum(len(case.path) + 1 for case in CASES)
    assert set(found.notes[0].removeprefix("shown: ").split(", ")) == set(SHOWN_BY)
    assert "CONFORMS to release-4.3.1" in text_of(found)


@pytest.mark.parametrize("name", SHOWN_BY)
def test_a_controller_with_a_finding_is_told_from_one_without_and_the_finding_is_named(name: str) -> None:
    """The other way round as well: what a release that is repaired does."""
    for has, expected in ((KAFKA, without(SHOWN_BY[name])), (without(SHOWN_BY[name]), KAFKA)):
        (difference,) = play(ReferenceNode(reference(has)), [by_name(name)], reference(expected)).differences
        same = explanations(difference, reference(expected), frozenset(REPORTED))
        named_by = {switch for bugs in same for suspect in bugs for switch in suspect.switches}
        assert SHOWN_BY[name] in named_by


@pytest.mark.parametrize("switch", FINDINGS)
def test_every_switch_of_a_controller_is_told_on_some_path(switch: str) -> None:
    played = play(ReferenceNode(reference(without(switch))), CASES, reference(KAFKA))
    assert played.differences, switch


def test_what_the_default_run_does_not_tell_is_named() -> None:
    """Of 4.3.1 it tells every switch; the scenarios alone leave some, and each of these is told on no path of theirs."""
    assert unseen(CASES, KAFKA) == []
    left = unseen(finding_cases(OPENING), KAFKA)
    assert "unclean_by_config=off" in left
    assert "indexes_go_stale=off" not in left
    for name in left:
        switch = name.partition("=")[0]
        assert not play(ReferenceNode(reference(without(switch))), finding_cases(OPENING), reference(KAFKA)).differences


def test_f13_forgets_whom_the_partition_waits_for() -> None:
    reports: list[dict[str, object]] = []
    play(
        ReferenceNode(reference(KAFKA)),
        [by_name("F13")],
        reference(KAFKA),
        lambda _number, _at, seen: reports.append(dict(seen)) is None,
    )
    left = reports[-1]["partitions"]
    assert isinstance(left, dict)
    assert [left["t-0"][field] for field in ("leader", "isr", "elr", "last_known_elr")] == [-1, [], [], []]


@pytest.mark.parametrize("passes", [("session_expires", 2), ("register_late", 2, True, False, "A")])
def test_while_time_passes_for_one_broker_another_whose_session_was_over_begins_it_anew(passes: Step) -> None:
    """The suite sends its heartbeats then; a process with its id is a second one, and is refused (walk 439 of seed 1)."""
    late: Step = ("register_late", 1, False, False, "A")
    again: Step = registers(1)

    def last_error(*steps: Step) -> int:
        *_, last = reference(KAFKA).reports(ControllerCase(OPENING, (*up(1, 2), *steps)))
        return int(last["result"]["error"])

    assert last_error(late, again) == NONE
    assert last_error(late, passes, again) == DUPLICATE_BROKER_REGISTRATION
    # For a broker without a session no time passes.
    assert last_error(("unregister", 2), late, passes, again) == NONE


def test_f6_fails_each_registration() -> None:
    errors: list[object] = []
    play(
        ReferenceNode(reference(KAFKA)),
        [by_name("F6")],
        reference(KAFKA),
        lambda _n, _at, seen: errors.append(seen["result"]) is None,
    )
    assert errors[-3:] == [{"error": UNKNOWN_SERVER_ERROR}] * 3


def test_a_finding_that_the_profile_does_not_have_is_not_called_shown() -> None:
    assert shows_finding(by_name("F4"), KAFKA)
    assert not shows_finding(by_name("F4"), profile_named("elr-repaired"))
    assert shows_finding(by_name("F13"), KAFKA)
    assert not shows_finding(by_name("F13"), profile_named("elr-repaired"))


def test_a_difference_is_shrunk_and_told_side_by_side_with_the_finding() -> None:
    repaired = without("elr_keeps_removed")
    found = run(
        ReferenceNode(reference(KAFKA), controller_capabilities("a controller")),
        WALKS,
        reference(repaired),
        log_lines=lambda _: ["its own words"],
    )
    assert found.exit_code == 1
    shown = found.failures[0]
    assert shown.shown.at < 13, "brokers, a topic and what shows it"
    assert "F4: elr_keeps_removed=on" in shown.text
    assert "expected" in shown.text
    assert "! partitions t-" in shown.text
    assert "log       its own words" in shown.text
    assert "a controller DIFFERS from release-4.3.1" in text_of(found)


class Moody:
    """A controller that does something else the first time."""

    capabilities = controller_capabilities("moody")

    def __init__(self) -> None:
        self._again = False

    def play(self, cases: Sequence[ControllerCase], watch: Watch) -> None:
        right = ReferenceNode(reference(KAFKA if self._again else without("min_isr_change_clears_elr")))
        self._again = True
        right.play(cases, watch)


def test_what_does_not_come_again_fails_the_run() -> None:
    found = run(Moody(), [by_name("F5")], reference(KAFKA))
    assert (found.exit_code, found.not_again, found.failures) == (1, 1, ())
    assert "not the same twice" in text_of(found)


def test_nothing_played_is_nothing_decided() -> None:
    assert run(ReferenceNode(reference(KAFKA)), [], reference(KAFKA)).exit_code == 3


def test_walks_are_drawn_from_their_seed_and_take_every_kind_of_step() -> None:
    assert walks(1, 60, KAFKA, OPENING) == WALKS
    assert walks(2, 3, KAFKA, OPENING) != WALKS[:3]
    assert {step[0] for case in WALKS for step in case.path} == set(STEPS)
    assert all(is_step(step) for case in CASES for step in case.path)


def test_a_release_without_elr_is_not_asked_to_switch_it() -> None:
    names = {case.name for case in finding_cases(ClusterOpening(21, elr=0))}
    assert "F4" in names
    assert not names & {"F8", "F9", "F11", "F13"}
    assert set(SCENARIOS) - names == {"F8", "F9", "F11", "F13"}


@pytest.mark.parametrize(
    "found",
    [
        None,
        (),
        ("abdicate",),
        ({"abdicate": 1},),
        ("session_expires",),
        ("session_expires", "1"),
        ("session_expires", 9),
        ("reassign", "t", 0, (1, 99)),
        ("configure", "BROKER", "x", "min.insync.replicas", "1"),
        ("create_topic", "t", ((1,),), (("min.insync.replicas",),)),
    ],
)
def test_what_is_no_step_of_the_contract_is_told(found: object) -> None:
    assert not is_step(found)


def test_a_step_is_one_line() -> None:
    assert step_line(("heartbeat", 1, 0, ALL, True, False, "A")) == (
        "heartbeat broker=1 lag=0 metadata_offset=all want_fence=yes want_shut_down=no offline=A"
    )
    assert step_line(("reassign", "t", 0, None)) == "reassign topic=t partition=0 replicas=none"


# ---------------------------------------------------------------------------------------------------------------------
# Transcripts


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    recorder = Recorder(CASES)
    play(ReferenceNode(reference(KAFKA)), CASES, reference(KAFKA), recorder)
    capabilities = controller_capabilities("Kafka 4.3.1 (controller)")
    write(tmp_path / "c.gz", CONTROLLER_FORMAT, capabilities, KAFKA.name, recorder.recorded())
    return tmp_path / "c.gz"


def test_a_transcript_is_read_as_it_was_written(recorded: Path, tmp_path: Path) -> None:
    node = read(recorded, CONTROLLER_FORMAT)
    assert node.cases == CASES
    again = Recorder(node.cases)
    assert not play(node, node.cases, reference(KAFKA), again).differences
    write(tmp_path / "d.gz", CONTROLLER_FORMAT, node.capabilities, node.profile, again.recorded())
    assert (tmp_path / "d.gz").read_bytes() == recorded.read_bytes()


def test_recheck_holds_a_controllers_transcript_against_any_profile(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recheck", str(recorded)]) == 0
    assert f"0 of {len(CASES)} paths differ" in capsys.readouterr().out
    assert main(["recheck", str(recorded), "--profile", "elr-repaired"]) == 1
    said = capsys.readouterr().out
    assert all(f"{name}: " in said for name in ("F4", "F5", "F6", "F7", "F8", "F9", "F10", "F12"))
    assert main(["recheck", str(recorded), "--fault", "hw-not-clamped"]) == 2


SHIPPED = sorted((FOLDER).glob("controller-*.gz"))


@pytest.mark.parametrize("place", SHIPPED, ids=[place.stem for place in SHIPPED])
def test_what_an_unmodified_controller_did_is_not_what_it_would_do_without_a_finding(place: Path) -> None:
    """Or, without ELR, what 4.0 does: so the step of the main job can fail."""
    node = read(place, CONTROLLER_FORMAT)
    profile = profile_named(node.profile)
    shows = [case for case in node.cases if shows_finding(case, profile)]
    assert len(shows) > 5 or play(node, node.cases, reference(profile_named("release-4.0.0"))).differences
    for case in shows:
        repaired = profile.switched({SHOWN_BY[case.name]: False})
        assert play(node, [case], reference(repaired)).differences, case.name


def lines(*extra: object) -> bytes:
    head = {"format": CONTROLLER_FORMAT.name, "contract": 1, "name": "x", "profile": "release-4.3.1"}
    return gzip.compress("\n".join(json.dumps(line) for line in (head, *extra)).encode())


REPORT = {"result": None, "partitions": {}, "brokers": {}, "features": {"metadata.version": 30, "elr": 1}}


@pytest.mark.parametrize(
    "line",
    [
        ["F4", [30, 1, 1], [], []],
        ["F4", [30, 1], [], [REPORT]],
        ["F4", [30, 1, 1], [["abdicate"]], [REPORT, REPORT]],
        ["F4", [30, 1, 1], [["session_expires", 1]], [REPORT]],
        ["F4", [30, 1, 1], [], [{"result": None}]],
        [],
        7,
    ],
)
def test_a_broken_transcript_is_bad_input(line: object, tmp_path: Path) -> None:
    place = tmp_path / "c.gz"
    place.write_bytes(lines(line))
    with pytest.raises(TranscriptError, match=r"c\.gz:2: expected a line of a controller's transcript"):
        read(place, CONTROLLER_FORMAT)
    assert main(["recheck", str(place)]) == 2


def test_a_transcript_of_another_contract_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "c.gz"
    place.write_bytes(gzip.compress(json.dumps({"format": CONTROLLER_FORMAT.name, "contract": 2}).encode()))
    assert main(["recheck", str(place)]) == 2


@pytest.mark.parametrize("options", [[], ["--kafka", "4.3.1", "--smoke"], ["--kafka", "4.3.1", "--scenario", "F2"]])
def test_a_controller_is_one_of_a_release_and_takes_its_own_paths(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drive", "--controller", *options]) == 2
    assert "expected --controller with --kafka RELEASE" in capsys.readouterr().err
