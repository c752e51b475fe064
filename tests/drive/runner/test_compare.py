"""What was recorded of two brokers is held against each other: what changed is told, and which known bug it is."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tidegauge.cli.main import main
from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.reference import BrokerReference, reference
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.contract import Capabilities, CaseT
from tidegauge.drive.paths.walks import walks
from tidegauge.drive.runner.compare import Comparison, compare, text_of
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.transcript import BROKER, Recorded, Recorder, TranscriptNode, place_named, read, write
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.profiles import FETCH_TRUNCATION
from tidegauge.util.errors import UsageError

CASES = walks(1, 40, FETCH_TRUNCATION)


def recorded(
    place: Path, start: BrokerReference, cases: Sequence[BrokerCase] = CASES, capabilities: Capabilities = EVERYTHING
) -> TranscriptNode[BrokerCase]:
    """A broker that was driven, from its file."""
    recorder = Recorder(cases)
    play(ReferenceNode(start, capabilities), cases, start, recorder)
    write(place, BROKER_FORMAT, capabilities, FETCH_TRUNCATION.name, recorder.recorded())
    return read(place, BROKER_FORMAT)


def recorded_of(name: str) -> TranscriptNode[BrokerCase]:
    return read(place_named(name, BROKER), BROKER_FORMAT)


def causes(found: Comparison[CaseT]) -> set[str]:
    """The bugs that explain some change by themselves, and by no other bug."""
    alone = (change.causes for change in found.changes if len(change.causes) == 1)
    return {suspect.name for (cause,) in alone for suspect in cause}


def test_two_releases_name_the_bugs_that_were_fixed_between_them() -> None:
    """From what unmodified brokers did, and nothing else remains."""
    found = compare(recorded_of("3.6.2"), recorded_of("3.9.1"))
    assert found.exit_code == 1
    assert causes(found) == {"KAFKA-15583", "KAFKA-15510", "KAFKA-18991", "KAFKA-18723"}
    assert all(change.causes for change in found.changes)
    said = text_of(found)
    assert "Kafka 3.6.2 has it. The high watermark advances while the ISR is smaller than min.insync.replicas" in said
    # how many changes with every recording; where it is seen first does not
    assert re.search(r"KAFKA-15583: \d+ paths\n +\d+  first in metadata: hw\n +\d+  first in metadata: produced, hw\n", said)
    assert "    ! hw        1            0\n" in said


def test_the_other_way_round_the_same_has_changed() -> None:
    one, other = (compare(recorded_of(a), recorded_of(b)) for a, b in (("3.4.0", "3.4.1"), ("3.4.1", "3.4.0")))
    assert causes(one) == causes(other) == {"KAFKA-14704"}
    places = [{change.shown.case for change in found.changes} for found in (one, other)]
    assert places[0] == places[1]
    (there,), (back,) = ([change.shown for change in found.changes] for found in (one, other))
    assert (there.expected, there.seen) == (back.seen, back.expected)


def test_releases_that_do_the_same_differ_in_nothing() -> None:
    found = compare(recorded_of("4.1.1"), recorded_of("4.4.0"))
    assert found.exit_code == 0
    assert found.steps > 8_000
    assert "no difference" in text_of(found)


def test_two_versions_of_ones_own_broker_are_compared_by_their_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Held against the same profile: the fault of the one is told."""
    before, after = tmp_path / "before.gz", tmp_path / "after.gz"
    recorded(before, reference(rules=FAULTS["hw-not-clamped"].rules))
    recorded(after, reference())
    assert main(["drive", "--compare", str(before), str(after)]) == 1
    assert "hw-not-clamped" in capsys.readouterr().out
    assert main(["drive", "--compare", str(after), str(after)]) == 0


def test_paths_are_compared_as_far_as_both_went(tmp_path: Path) -> None:
    """A path of the one that is only the beginning of a path of the other's."""
    short = [case._replace(path=case.path[:3]) for case in CASES]
    found = compare(recorded(tmp_path / "one", reference(), short), recorded(tmp_path / "other", reference()))
    assert found.steps == len({(case.opening, case.path[:at]) for case in short for at in range(1, len(case.path) + 1)})


def test_only_what_both_report_is_compared_and_nothing_in_common_decides_nothing(tmp_path: Path) -> None:
    wrong = reference(rules=FAULTS["hw-not-clamped"].rules)
    ends = Capabilities("ends", EVERYTHING.can, frozenset({"leo"}))
    one = recorded(tmp_path / "one", wrong, capabilities=ends)
    assert compare(one, recorded(tmp_path / "other", reference())).exit_code == 0
    few, others = CASES[:1], [case for case in CASES if case.path[0] != CASES[0].path[0]]
    assert compare(recorded(tmp_path / "few", wrong, few), recorded(tmp_path / "more", wrong, others)).exit_code == 3


def test_what_no_known_bug_does_is_told_first(tmp_path: Path) -> None:
    """A broker that reports another log start than it has."""
    right = recorded(tmp_path / "right", reference())
    moved = TranscriptNode(BROKER_FORMAT, right.capabilities, right.profile, right.fields)
    for case in right.cases:
        moved.add(Recorded(case, tuple({**seen, "log_start": 77} for seen in right.reports(case))))
    found = compare(right, moved)
    assert [change.causes for change in found.changes] == [()]
    assert text_of(found).startswith(f"no known bug: {len(CASES)} paths")


def test_what_is_no_transcript_and_no_release_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match=r"3\.4\.0, 3\.4\.1, .*4\.4\.0; seen '1\.2\.3'"):
        recorded_of("1.2.3")
    assert main(["drive", "--compare", "4.1.1", "4.3.1", "--walks", "3"]) == 2
    assert "expected --compare alone, or with --controller; seen walks besides; leave these out" in capsys.readouterr().err
