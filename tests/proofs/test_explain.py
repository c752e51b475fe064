"""A truncation whose cache is unknown: some cache explains it, or none does and a rule was broken."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegauge.impl import rules
from tidegauge.spec.proofs.explaining_cache import ObservedTruncation, cache_explaining


def test_a_truncation_that_is_not_the_last_has_a_cache() -> None:
    """LEO 9, answer (2, 8), truncated to 7 and not done: the follower holds an epoch below 2 and one above from offset 7."""
    cache = cache_explaining(ObservedTruncation(9, 2, 8, 7, completed=False))
    assert cache is not None
    assert any(e < 2 for e in cache.epochs)
    assert any(e > 2 and s == 7 for e, s in zip(cache.epochs, cache.starts, strict=True))
    assert rules.truncation_target(cache.epochs, cache.starts, 9, 9, 2, 8) == (4, 7, False)


@pytest.mark.parametrize(
    "seen",
    [
        ObservedTruncation(9, 2, 8, 10),  # above the log end
        ObservedTruncation(9, 2, 5, 7, completed=True),  # done, but above the answered end
        ObservedTruncation(9, 2, 8, 3, completed=False, log_start=4),  # asks again below its own log start
        ObservedTruncation(9, 2, 8, 7, completed=False, latest_epoch=2),  # asks again though it has the answered epoch
    ],
)
def test_an_impossible_truncate_has_none(seen: ObservedTruncation) -> None:
    """No cache of any follower that keeps the rules explains these."""
    assert cache_explaining(seen) is None


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_every_truncation_of_the_rule_is_explained(data: st.DataObject) -> None:
    """What the rule does with some cache is always explained, however many entries that cache had."""
    size = data.draw(st.integers(0, 7))
    epochs = sorted(data.draw(st.sets(st.integers(0, 12), min_size=size, max_size=size)))
    starts = sorted(data.draw(st.sets(st.integers(0, 12), min_size=size, max_size=size)))
    log_end = max([*starts, data.draw(st.integers(0, 14))])
    start = starts[0] if starts else log_end
    response = data.draw(st.integers(0, 13)), data.draw(st.integers(0, 14))
    _, target, done = rules.truncation_target(epochs, starts, log_end, log_end, *response)
    latest = epochs[-1] if epochs else rules.UNDEFINED
    assert cache_explaining(ObservedTruncation(log_end, *response, target, done, start, latest)) is not None
