"""Releases are recorded whole or in parts, and their page says what was recorded."""

from pathlib import Path

import pytest

from tests.drive import stand_ins
from tests.validation.test_release_columns import PAGE
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.kafka_process.builds import KafkaBuild
from tidegauge.drive.paths.scenarios import named_scenarios
from tidegauge.drive.runner import transcript
from tidegauge.drive.runner.recheck import recheck
from tidegauge.drive.runner.transcript import BROKER, CONTROLLER, FOLDER, place_of, places, read
from tidegauge.impl.profiles import Profile
from tidegauge.impl.releases import RELEASE, SINCE, parse_release, profile_named
from validation.releases import page as releases


def test_a_part_is_recorded_anew_and_the_rest_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that does what 3.9.1 does is not what 4.3.1 is, on the scenarios too."""
    profile = profile_named("release-4.3.1")
    scenarios = {one.case for name in releases.SCENARIOS for one in named_scenarios(name, profile, EVERYTHING)}
    monkeypatch.setattr(releases, "GRAPHS", ("small",))
    monkeypatch.setattr(releases, "PARTS", ("small", "walks", "scenarios"))
    monkeypatch.setattr(releases, "WALKS", 2)
    monkeypatch.setattr(releases, "build_of", lambda release, _: KafkaBuild(release, release, ()))
    monkeypatch.setattr(releases, "KafkaNode", stand_ins.broker("release-4.3.1"))
    assert releases.record("4.3.1", None, tmp_path, releases.PARTS)[0]
    whole = read(place_of("4.3.1", tmp_path), BROKER_FORMAT)
    assert scenarios < set(whole.cases)
    monkeypatch.setattr(releases, "KafkaNode", stand_ins.broker("release-3.9.1"))
    assert not releases.record("4.3.1", None, tmp_path, ["scenarios"])[0]
    part = read(place_of("4.3.1", tmp_path), BROKER_FORMAT)
    both = zip(part.cases, whole.cases, strict=True)
    assert all(ours.path == its.path[: len(ours.path)] for ours, its in both), "in the same order, up to a difference"
    rest = set(whole.cases) - scenarios
    assert rest < set(part.cases)
    assert all(part.reports(case) == whole.reports(case) for case in rest)
    assert recheck(part).exit_code == 1


def test_each_profile_since_the_oldest_release_is_on_the_wire() -> None:
    """Whatever changed in between, a release that has it did what the table says."""
    there = transcript.releases()
    changes = {since for rows in SINCE.values() for since, _ in rows if since > parse_release(there[0])}
    asked = {".".join(map(str, (*since, 0)[:3])) for since in changes}
    assert {unnamed(one) for one in asked} <= {unnamed(one) for one in there}
    assert asked >= {"3.5.1", "4.0.0", "4.3.0"}


def unnamed(release: str) -> Profile:
    return profile_named(f"{RELEASE}{release}")._replace(name="")


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> str:
    """The page, from which the columns that stand are taken too."""
    monkeypatch.setattr(releases, "PAGE", PAGE)
    return PAGE.read_text(encoding="utf-8")


def test_a_column_of_the_page_is_what_its_transcript_says(page: str) -> None:
    """Of the controller that did least."""
    all_of_them = [*places(FOLDER, BROKER), *places(FOLDER, CONTROLLER)]
    least = min(all_of_them, key=lambda place: place.stat().st_size)
    others = [place for place in all_of_them if place != least]
    assert releases.page(FOLDER, others) == page


@pytest.mark.long
def test_the_page_is_what_the_transcripts_say(page: str) -> None:
    assert releases.page(FOLDER) == page
