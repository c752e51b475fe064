"""What a broker does where Kafka is unsafe is seen before anything else."""

import pytest

from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.paths.unsafe_or_repaired import TELLING, KafkasBugs, ask, report_lines
from tidegauge.drive.runner.player import ReferenceNode
from tidegauge.impl.profiles import FETCH_TRUNCATION, SAFE, UNSAFE, Profile

EVERY_BUG = tuple(UNSAFE.values())


def seen_of(does: Profile, expected: Profile = FETCH_TRUNCATION, capabilities: object = EVERYTHING) -> KafkasBugs:
    return ask(ReferenceNode(reference(does), capabilities), expected)


def test_each_bug_has_a_path_that_tells() -> None:
    assert TELLING.keys() == UNSAFE.keys()


def test_kafka_has_every_bug() -> None:
    assert seen_of(FETCH_TRUNCATION) == KafkasBugs((), EVERY_BUG)


@pytest.mark.parametrize("bug", EVERY_BUG)
def test_a_broker_with_one_repair(bug: str) -> None:
    assert seen_of(FETCH_TRUNCATION.without([bug])) == KafkasBugs(
        (bug,), tuple(other for other in EVERY_BUG if other != bug)
    )


def test_a_broker_that_is_expected_to_be_safe_is_asked_nothing() -> None:
    assert seen_of(FETCH_TRUNCATION, SAFE) == KafkasBugs((), ())


def test_a_broker_that_reports_too_little_tells_nothing() -> None:
    little = EVERYTHING._replace(reports=frozenset({"log"}))
    assert seen_of(FETCH_TRUNCATION.without(EVERY_BUG), capabilities=little) == KafkasBugs((), ())


def test_a_broker_with_another_bug_is_compared_with_what_was_asked_for() -> None:
    """It fits neither."""
    other = FETCH_TRUNCATION._replace(name="other", counts_only_eligible=not FETCH_TRUNCATION.counts_only_eligible)
    seen = seen_of(other)
    assert not seen.repaired


def test_only_what_loses_records_is_warned_of() -> None:
    assert report_lines(KafkasBugs((), ("KAFKA-17803",)), FETCH_TRUNCATION) == []
    (warning,) = report_lines(KafkasBugs((), ("F2", "KAFKA-17803")), FETCH_TRUNCATION)
    assert "may lose acknowledged records (F2)" in warning
