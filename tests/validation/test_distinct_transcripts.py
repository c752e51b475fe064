"""What releases did is looked at once where it is the same, and whose it is stays said."""

import gzip
import json
from pathlib import Path

import pytest

from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.controller.findings import FINDINGS
from tidegauge.drive.controller.transcript import CONTROLLER_FORMAT
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.transcript import TranscriptError, place_of, profile_of, read
from validation.releases.evaluate_transcripts import of_each_distinct
from validation.releases.switches_read import switches_read

BROKER, CONTROLLER = BROKER_FORMAT.name, CONTROLLER_FORMAT.name


def transcript(place: Path, *, release: str, kind: str = BROKER, reports: str = "leo", recorded: str = "[1]") -> Path:
    """One of a release that did this."""
    head = {"format": kind, "name": f"Kafka {release}", "profile": f"release-{release}", "reports": [reports]}
    place.write_bytes(gzip.compress(f"{json.dumps(head)}\n{recorded}\n".encode()))
    return place


def test_who_did_the_same_by_the_same_switches_is_looked_at_once(tmp_path: Path) -> None:
    """4.2.1 and 4.2.2 have the same switches, 3.4.0 has others."""
    alike = [transcript(tmp_path / release, release=release) for release in ("4.2.1", "4.2.2")]
    others = [
        transcript(tmp_path / "older", release="3.4.0"),
        transcript(tmp_path / "other fields", release="4.2.1", reports="hw"),
        transcript(tmp_path / "other paths", release="4.2.1", recorded="[2]"),
    ]
    found = of_each_distinct(str, [*alike, *others])
    assert [name for name, _ in found] == [f"Kafka {release}" for release in ("4.2.1", "4.2.2", "3.4.0", "4.2.1", "4.2.1")]
    assert [made for _, made in found] == [str(place) for place in (alike[0], alike[0], *others)]


@pytest.mark.parametrize(("kind", "looked_at"), [(BROKER, 1), (CONTROLLER, 2)], ids=["brokers", "controllers"])
def test_what_a_controller_alone_reads_makes_no_two_brokers_different(kind: str, looked_at: int, tmp_path: Path) -> None:
    """4.2.2 and 4.3.1 differ in KAFKA-19975 and in what AssignReplicasToDirs forgets."""
    alike = [transcript(tmp_path / release, release=release, kind=kind) for release in ("4.2.2", "4.3.1")]
    assert len({made for _, made in of_each_distinct(str, alike)}) == looked_at


@pytest.mark.parametrize("release", ["3.4.0", "4.3.1"])
def test_a_broker_reads_no_switch_of_a_controller(release: str) -> None:
    node = read(place_of(release), BROKER_FORMAT)
    cases, profile = node.cases[::20], profile_of(node)
    played = play(node, cases, reference(profile))
    assert played.steps > 1_000
    assert not played.differences
    switches = frozenset[str]().union(*switches_read(cases, profile))
    assert not switches & FINDINGS.keys()
    assert "keeps_remote_leo" in switches, "what a broker reads is noted"


NO_GZIP = b"no gzip"


@pytest.mark.parametrize(
    "text", [b"", b"{}\n", b"[1]\n", b"x", NO_GZIP], ids=["empty", "nobody", "list", "no JSON", "no gzip"]
)
def test_what_is_no_transcript_is_told_with_its_file(text: bytes, tmp_path: Path) -> None:
    place = tmp_path / "broken"
    place.write_bytes(text if text == NO_GZIP else gzip.compress(text))
    with pytest.raises(TranscriptError, match=r"broken.*expected a .*transcript"):
        of_each_distinct(str, [place])
