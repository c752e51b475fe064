"""Which known bugs a failure looks like: those that the release has which the source names."""

from dataclasses import replace

import pytest

from tidegauge.cli.options import RELEASE_LINES
from tidegauge.conformance.checking.check import check
from tidegauge.conformance.judge.rulebook import known_bugs, looks_like, releases_of, rulebook
from tidegauge.impl.releases import parse_release, profile_of_release
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.schema import Config

ANYBODY = Config(nodes=(1, 2))
RELEASES = [
    release for line in RELEASE_LINES for minor in line for release in (minor, *(f"{minor}.{patch}" for patch in range(4)))
]


def kafka(release: str, profile: str = "fetch-truncation") -> Config:
    return replace(ANYBODY, profile=profile, extra={"release": release})


def named(rule: str, config: Config) -> list[str]:
    return [bug.name for bug in looks_like(rulebook()[rule], config)]


@pytest.mark.parametrize(
    ("config", "bugs"),
    [
        (ANYBODY, ["KIP-101", "KAFKA-6361", "KAFKA-18991", "F2", "F4", "KAFKA-14139"]),
        (kafka("my broker 0.9"), ["KIP-101", "KAFKA-6361", "KAFKA-18991", "F2", "F4", "KAFKA-14139"]),
        (kafka("4.2.0", "elr"), ["F2", "F4"]),
        (kafka("4.2.0"), ["F2", "KAFKA-14139"]),  # a cluster that keeps no eligible leader replicas
        (kafka("4.0.0"), ["KAFKA-18991", "F2", "KAFKA-14139"]),
        (kafka("3.9.1"), ["F2", "KAFKA-14139"]),
        (kafka("1.1.0", "kip101"), ["KAFKA-6361", "KAFKA-18991", "F2", "KAFKA-14139"]),
        (kafka("0.10.2", "hw-only"), ["KIP-101", "KAFKA-6361", "KAFKA-18991", "F2", "KAFKA-14139"]),
        (kafka("3.9.0, 3.9.1"), ["KAFKA-18991", "F2", "KAFKA-14139"]),  # in the middle of an upgrade
        (kafka("3.9.0", "release-3.9.1"), ["F2", "KAFKA-14139"]),  # --release says otherwise than the logs
    ],
)
def test_a_bug_is_named_where_the_release_has_it(config: Config, bugs: list[str]) -> None:
    """A source without a release may be anybody's; one with several has what any of them has."""
    assert named("DATA-01", config) == bugs


def test_a_fix_that_was_ported_back_counts_in_its_line_only() -> None:
    """KAFKA-9491 was fixed in 2.4.1 and 2.5.0; KAFKA-7104 by 2.1 at the latest."""
    assert [release for release in ("2.4.0", "2.4.1", "2.5", "2.3.1") if "KAFKA-9491" in named("HW-07", kafka(release))] == [
        "2.4.0",
        "2.3.1",
    ]
    assert [release for release in ("2.0", "2.1", "4.3") if "KAFKA-7104" in named("FETCH-08", kafka(release))] == ["2.0"]


def said_fixed(fixed: str, release: str) -> bool:
    """What the words of the catalog say of a release."""
    fixes = [parse_release(word) for word in fixed.split(", ")]
    version = parse_release(release)
    return any(fix <= (*version, 0) for fix in [fix for fix in fixes if fix[:2] == version[:2]] or fixes)


def test_switches_and_words_say_the_same() -> None:
    """A bug with a switch of impl.releases is fixed where its words say so, back to where what it is about began."""
    rows = {name: bug for name, bug in known_bugs().items() if bug.switches and "Fixed in" in bug.says}
    assert len(rows) > 10
    for name, bug in rows.items():
        if name == "KAFKA-14139":
            continue  # fixed by a feature of the cluster
        fixed = bug.says.rpartition("Fixed in ")[2].removesuffix(".")
        for release in RELEASES:
            if said_fixed(fixed, release):
                assert not bug.is_in(parse_release(release), profile_of_release(release)), (name, release)
    assert all(bug.switches or bug.fixed for bug in known_bugs().values())


def test_reports_name_the_release_and_only_its_bugs() -> None:
    """4.2.0 loses a record by F2; F4 has no step there, and KIP-101 and the others were fixed long before."""
    report = check([shipped()["4.2.0/k-epoch-jump"]])
    assert {bug for one in report.explanations for bug, _ in one.bugs} == {"F2"}
    assert {releases_of(one.config) for one in report.explanations} == {("4.2.0",)}
