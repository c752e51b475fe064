"""A switch that nobody reads makes no difference: what was read is noted, and a bug is looked for on those paths alone."""

import pytest

from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.known_bugs import broker_findings
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.transcript import TranscriptNode, place_of, profile_of, read
from tidegauge.impl.profiles import FETCH_TRUNCATION, recording_reads
from validation.releases.page import paths_that_show
from validation.releases.switches_read import switches_read


def test_what_is_read_is_noted_and_the_generation_is_the_same() -> None:
    profile, names = recording_reads(FETCH_TRUNCATION)
    assert (profile, names) == (FETCH_TRUNCATION, set())
    assert profile.keeps_remote_leo
    assert profile.fetcher_restart == "epoch"
    assert names == {"keeps_remote_leo", "fetcher_restart"}
    assert not profile.switched({"keeps_remote_leo": False, "elr": False}).elr
    assert names == {"keeps_remote_leo", "fetcher_restart", "elr"}, "of one that is switched, too"


@pytest.fixture(scope="module")
def node() -> TranscriptNode[BrokerCase]:
    """Every ninth path of a release with many bugs."""
    whole = read(place_of("3.4.0"), BROKER_FORMAT)
    some = TranscriptNode(BROKER_FORMAT, whole.capabilities, whole.profile, whole.fields)
    for one in whole.recorded()[::9]:
        some.add(one)
    return some


def test_a_bug_shows_on_as_many_paths_as_if_all_were_played(node: TranscriptNode[BrokerCase]) -> None:
    read = dict(zip(node.cases, switches_read(node.cases, profile_of(node)), strict=True))
    skipped = shown = 0
    for bug in broker_findings():
        if bug.is_in(profile_of(node)):
            count = paths_that_show(bug, node, read)
            assert count == len(play(node, node.cases, reference(profile_of(node).switched(bug.right))).differences)
            skipped += sum(not read[case] & bug.right.keys() for case in node.cases)
            shown += count
    assert shown > 20
    assert skipped > len(node.cases), "there are bugs that most paths have nothing to do with"


def test_a_path_whose_reads_are_not_noted_would_be_missed(node: TranscriptNode[BrokerCase]) -> None:
    unread = dict.fromkeys(node.cases, frozenset[str]())
    (bug,) = (bug for bug in broker_findings() if bug.name == "KAFKA-18991")
    read = dict(zip(node.cases, switches_read(node.cases, profile_of(node)), strict=True))
    assert paths_that_show(bug, node, read) > 0
    assert paths_that_show(bug, node, unread) == 0
