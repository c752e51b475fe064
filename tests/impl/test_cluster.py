"""The whole system: what is possible, and that it is the same however one asks."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from impl.cluster import Bounds, actions, initial, step
from impl.errors import IllegalStateError, UsageError
from impl.explore import Walker
from impl.faults import FAULTS
from impl.invariants import violated
from impl.profiles import FETCH_TRUNCATION
from impl.view import view

SMALL = Bounds(2, 2, 1, 1)


def test_the_first_state_is_the_one_the_specification_starts_from() -> None:
    """Broker 0 leads epoch 0 with an entry that has no record; followers know it and have not fetched."""
    leader = ((), 0, 0, 1, 1, 0, 0, 0b11, 0, (-1, -1), ((), ()))
    follower = ((), 0, -1, 1, 2, 0, 0, 0, 0, (-1, -1), ((), ()))
    assert view(initial(SMALL, FETCH_TRUNCATION)) == ((leader, follower), (0, 0, 0b11, 0b11), (), 0)


def test_a_label_leads_to_one_state() -> None:
    """Every enabled label is unique, and step takes it."""
    state = initial(SMALL, FETCH_TRUNCATION)
    for _ in range(20):
        enabled = actions(state)
        assert len(set(enabled)) == len(enabled)
        state = step(state, enabled[len(enabled) // 2])


def test_a_label_that_is_not_enabled_is_refused() -> None:
    """The error says what is enabled."""
    with pytest.raises(UsageError, match="LeaderAppend"):
        step(initial(SMALL, FETCH_TRUNCATION), ("LeaderAppend", 1))


@given(st.integers(0, 2**32), st.sampled_from(["fetch-truncation", "hw-only"]))
@settings(max_examples=20)
def test_remembering_changes_nothing(seed: int, profile: str) -> None:
    """A walk through remembered moves visits the states that plain steps visit."""
    walker = Walker(Bounds(3, 3, 3, 2, 2), profile)
    rng = random.Random(seed)
    plain = remembered = walker.start
    for _ in range(25):
        moves = walker.moves(remembered)
        if not moves:
            return
        move = rng.choice(moves)
        remembered, plain = walker.take(remembered, move), step(plain, move.label)
        assert plain == remembered
        assert walker.view(remembered) == view(plain)


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_invariants_hold_far_beyond_the_explored_bounds(seed: int) -> None:
    """Three brokers, twelve offsets, many epochs and crashes: nothing is violated along random walks."""
    walker = Walker(Bounds(3, 12, 12, 6, 3))
    rng = random.Random(seed)
    state = walker.start
    for _ in range(300):
        moves = walker.moves(state)
        if not moves:
            return
        state = walker.take(state, rng.choice(moves))
        violation = violated(state)
        assert violation is None, violation
        walker.view(state)


def test_a_walk_with_a_wrong_rule_is_caught() -> None:
    """The walks above would see a wrong rule: without the divergence check some walk ends in a violation."""
    walker = Walker(Bounds(3, 12, 12, 6, 3), rules=FAULTS["no-divergence-check"].rules)
    assert any(_violates(walker, random.Random(seed)) for seed in range(40))


def _violates(walker: Walker, rng: random.Random) -> bool:
    state = walker.start
    for _ in range(300):
        moves = walker.moves(state)
        if not moves:
            return False
        state = walker.take(state, rng.choice(moves))
        if violated(state) is not None:
            return True
    return False


def test_the_view_refuses_a_cache_the_records_do_not_imply() -> None:
    """Whatever the specification derives is asserted, not trusted."""
    state = initial(SMALL, FETCH_TRUNCATION)
    broker = state.brokers[0]
    log = broker.partition.log
    stale = log.cache._replace(memory=log.cache.memory._replace(epochs=(0, 1), starts=(0, 0)))
    wrong = broker._replace(partition=broker.partition._replace(log=log._replace(cache=stale)))
    with pytest.raises(IllegalStateError, match="implied by the records"):
        view(state._replace(brokers=(wrong, state.brokers[1])))


def test_the_view_refuses_an_entry_that_is_not_at_the_log_end() -> None:
    """A fetcher entry stands at the log end with the latest epoch."""
    state = initial(SMALL, FETCH_TRUNCATION)
    follower = state.brokers[1]
    assert follower.entry is not None
    wrong = follower._replace(entry=follower.entry._replace(fetch_offset=1))
    with pytest.raises(IllegalStateError, match="fetcher entry"):
        view(state._replace(brokers=(state.brokers[0], wrong)))
