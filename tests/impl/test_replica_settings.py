"""The settings table: Kafka's defaults, and what it refuses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.impl.replica_settings import FOR_EVER, SETTINGS, settings
from tidegauge.util.errors import UsageError

KAFKAS_DEFAULTS = {
    "num.replica.fetchers": 1,
    "replica.fetch.min.bytes": 1,
    "replica.fetch.max.bytes": 1_048_576,
    "replica.fetch.response.max.bytes": 10_485_760,
    "replica.fetch.wait.max.ms": 500,
    "replica.fetch.backoff.ms": 1000,
    "replica.lag.time.max.ms": 30_000,
    "replica.high.watermark.checkpoint.interval.ms": 5000,
    "replica.socket.timeout.ms": 30_000,
    "replica.socket.receive.buffer.bytes": 65_536,
    "follower.replication.throttled.rate": 9_223_372_036_854_775_807,
    "min.insync.replicas": 1,
    "unclean.leader.election.enable": False,
    "log.segment.bytes": 1_073_741_824,
    "log.index.interval.bytes": 4096,
    "message.max.bytes": 1_048_588,
}


def test_defaults_are_kafkas() -> None:
    """Also where the articles print others."""
    assert {name: settings()[name] for name in KAFKAS_DEFAULTS} == KAFKAS_DEFAULTS
    assert settings()["replica.selector.class"] is None
    assert KAFKAS_DEFAULTS["follower.replication.throttled.rate"] == FOR_EVER


def test_the_lag_limit_was_ten_seconds_before_2_5() -> None:
    """KIP-537."""
    assert settings(release=(2, 4, 1))["replica.lag.time.max.ms"] == 10_000
    assert settings(release=(2, 5, 0))["replica.lag.time.max.ms"] == 30_000


def test_texts_are_read_as_a_configuration_file_has_them() -> None:
    """Numbers, and true or false in any case."""
    read = settings({"num.replica.fetchers": " 4 ", "unclean.leader.election.enable": "TRUE", "log.retention.bytes": "-1"})
    assert read.number("num.replica.fetchers") == 4
    assert read["unclean.leader.election.enable"] is True
    assert read == settings({"num.replica.fetchers": 4, "unclean.leader.election.enable": True})
    assert hash(read) == hash(settings({"num.replica.fetchers": 4, "unclean.leader.election.enable": True}))
    assert read != settings()


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"replica.fetch.wait.ms": 1}, "expected one of"),
        ({"num.replica.fetchers": 0}, "expected at least 1; seen 0"),
        ({"num.replica.fetchers": True}, "expected int; seen True"),
        ({"num.replica.fetchers": "many"}, "expected int; seen 'many'"),
        ({"unclean.leader.election.enable": "yes"}, "expected bool"),
        ({"replica.fetch.wait.max.ms": 40_000, "replica.socket.timeout.ms": 50_000}, "replica.lag.time.max.ms: expected"),
        ({"replica.socket.timeout.ms": 499}, "replica.socket.timeout.ms: expected at least replica.fetch.wait.max.ms = 500"),
    ],
)
def test_what_kafka_refuses_is_refused(given_: dict[str, object], message: str) -> None:
    """Each with the name, what was expected and what was seen."""
    with pytest.raises(UsageError, match=message):
        settings(given_)


def test_a_setting_that_is_no_number_is_not_read_as_one() -> None:
    """And an unknown name is refused on reading too."""
    for name in ("unclean.leader.election.enable", "no.such.setting"):
        with pytest.raises(UsageError):
            settings().number(name)


@given(st.sampled_from(sorted(SETTINGS)), st.one_of(st.integers(-5, 1 << 40), st.text(max_size=6), st.booleans()))
def test_a_value_is_taken_over_or_refused(name: str, value: int | str | bool) -> None:
    """Nothing else: no other error, and no other setting changes."""
    try:
        read = settings({name: value})
    except UsageError:
        return
    assert str(read[name]).strip().lower() == str(value).strip().lower() or read[name] == int(value)
    assert all(read[other] == settings()[other] for other in SETTINGS if other != name)
