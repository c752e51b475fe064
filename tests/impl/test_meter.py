"""Counts and rates: one, five and fifteen minutes, a tick each 5 s."""

from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.impl.meter import ALPHAS, TICK_MS, Meter, mark, mean_rate, rates, ticked
from tidegauge.impl.server.broker_topic_stats import BrokerTopicStats, marked

START = 1_700_000_000_000
MARKS = st.lists(st.tuples(st.integers(0, 60_000), st.integers(0, 1_000)), min_size=1, max_size=12)


def after(marks: list[tuple[int, int]]) -> tuple[Meter, int]:
    meter, now = Meter(), START
    for later, events in marks:
        now += later
        meter = mark(meter, events, now)
    return meter, now


def test_the_first_tick_is_the_rate_itself() -> None:
    """Ten marks in 5 s are two a second, in each of the three averages; before the tick there is none."""
    meter = mark(Meter(), 10, START)
    assert rates(meter, START + TICK_MS - 1) == (0.0, 0.0, 0.0)
    assert rates(meter, START + TICK_MS) == (2.0, 2.0, 2.0)


def test_a_minute_of_silence_takes_the_one_minute_rate_to_one_in_e() -> None:
    """That is what "one minute" means; the others fall more slowly."""
    meter = mark(Meter(), 10, START)
    one, five, fifteen = rates(meter, START + TICK_MS + 60_000)
    assert one == pytest.approx(2 * exp(-1))
    assert five == pytest.approx(2 * exp(-1 / 5))
    assert fifteen == pytest.approx(2 * exp(-1 / 15))


def test_the_mean_rate_is_over_all_the_time() -> None:
    """Since the first mark; without time or marks it is 0."""
    meter = mark(mark(Meter(), 10, START), 20, START + 1_000)
    assert mean_rate(meter, START + 3_000) == 10.0
    assert mean_rate(meter, START) == 0.0
    assert mean_rate(Meter(), START) == 0.0
    assert rates(Meter(), START) == (0.0, 0.0, 0.0)


@given(MARKS, st.integers(0, 300_000))
def test_many_ticks_at_once_are_the_same_as_one_by_one(marks: list[tuple[int, int]], later: int) -> None:
    """A meter that is read late says what one says that was read at every tick."""
    meter, now = after(marks)
    lazy, busy = rates(meter, now + later), meter
    for at in range(now, now + later + 1, TICK_MS):
        busy = ticked(busy, at)
    assert rates(busy, now + later) == pytest.approx(lazy)


@given(MARKS)
def test_nothing_marked_is_lost(marks: list[tuple[int, int]]) -> None:
    """The count is the sum; an average never exceeds the fastest five seconds."""
    meter, now = after(marks)
    total = sum(events for _, events in marks)
    assert meter.total == total
    assert all(0 <= rate <= total * 1000 / TICK_MS for rate in rates(meter, now + TICK_MS))
    assert tuple(sorted(ALPHAS, reverse=True)) == ALPHAS


def test_a_topic_is_counted_for_itself_and_in_all() -> None:
    """Two topics: each has its own, all topics have both."""
    stats = marked(BrokerTopicStats(), "a", START, bytes_in=70, messages_in=1)
    stats = marked(stats, "b", START + 1, bytes_in=80)
    assert (stats.topics["a"].bytes_in.total, stats.topics["b"].bytes_in.total) == (70, 80)
    assert stats.all_topics.bytes_in.total == 150
    assert stats.topics["b"].messages_in == Meter()
