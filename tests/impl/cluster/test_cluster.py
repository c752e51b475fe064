"""The whole system: what is possible, and that it is the same however one asks."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.impl.reached import LEADERLESS, reached
from tidegauge.impl.cluster.broker import is_truncating
from tidegauge.impl.cluster.cluster import Bounds, Label, actions, initial, step
from tidegauge.impl.errors import IllegalStateError
from tidegauge.impl.explorer.explore import Walker
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.explorer.invariants import violated
from tidegauge.impl.explorer.spec_view import message_view, view
from tidegauge.impl.profiles import FETCH_TRUNCATION
from tidegauge.impl.releases import profile_named
from tidegauge.util.errors import UsageError

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


@given(st.integers(0, 2**32), st.sampled_from(["fetch-truncation", "hw-only", "kip101", "kip279", "kip320"]))
@settings(max_examples=40)
def test_remembering_changes_nothing(seed: int, profile: str) -> None:
    """A walk through remembered moves visits the states that plain steps visit."""
    walker = Walker(Bounds(3, 3, 3, 2, 2), profile)
    rng = random.Random(seed)
    plain = remembered = walker.start
    for _ in range(25):
        transitions = walker.transitions(remembered)
        if not transitions:
            return
        transition = rng.choice(transitions)
        remembered, plain = walker.take(remembered, transition), step(plain, transition.label)
        assert plain == remembered
        assert walker.view(remembered) == view(plain)


@given(st.integers(0, 2**32))
@settings(max_examples=40)
@example(273)
def test_kip_320_holds_with_two_brokers(seed: int) -> None:
    """Where no leader can miss an epoch of a third: rounds of epoch requests, refusals and crashes break nothing."""
    walker = Walker(Bounds(2, 12, 12, 6, 3), "kip320")
    rng = random.Random(seed)
    state = walker.start
    for _ in range(300):
        transitions = walker.transitions(state)
        if not transitions:
            break  # epochs, crashes and log are used up
        state = walker.take(state, rng.choice(transitions))
        violation = violated(state)
        assert violation is None, violation
        walker.view(state)


def test_a_follower_asks_before_it_fetches_and_is_fenced_in_kip_320_alone() -> None:
    """The same run in three generations: what leaves, what the leader of an older epoch does with it."""
    asked = {}
    labels: tuple[Label, ...] = (
        ("LeaderAppend", 0),
        ("SendFetch", 1),
        ("HandleFetch", 0, 1, 0),
        ("HandleFetchResponse", 1, 0),
        ("HandleFetch", 0, 1, 0),
        ("ElectPreferred", 1),
        ("BecomeLeader", 1),
        ("LoseResponse", 1, 0),
        ("ElectPreferred", 0),
        ("BecomeFollower", 1),
    )
    for name in ("kip101", "kip279", "kip320", "fetch-truncation"):
        state = reached(Bounds(2, 2, 2, 0), labels, profile_named(name))
        serves = next(label for label in actions(state) if label[0] in {"HandleFetch", "HandleEpochRequest"})
        asked[name] = (serves[0], message_view(step(state, serves).network[1][0]))
    assert asked == {
        "kip101": ("HandleEpochRequest", (6, 2, -1, -1)),
        "kip279": ("HandleEpochRequest", (6, 2, -1, -1)),
        "kip320": ("HandleEpochRequest", ()),
        "fetch-truncation": ("HandleFetch", ()),
    }


def test_a_follower_without_a_leader_will_have_to_ask() -> None:
    """The specification calls it truncating; it has no entry in any thread."""
    state = reached(Bounds(2, 1, 2, 1), LEADERLESS, profile_named("kip320"))
    assert state.brokers[1].entry is None
    assert view(state)[0][1][4] == 3
    assert not is_truncating(state.model.setup._replace(profile=FETCH_TRUNCATION), state.brokers[1], alone=False)


@given(st.integers(0, 2**32))
@settings(max_examples=60)
def test_invariants_hold_far_beyond_the_explored_bounds(seed: int) -> None:
    """Three brokers, twelve offsets, many epochs and crashes: nothing is violated along random walks."""
    walker = Walker(Bounds(3, 12, 12, 6, 3))
    rng = random.Random(seed)
    state = walker.start
    for _ in range(300):
        transitions = walker.transitions(state)
        if not transitions:
            return
        state = walker.take(state, rng.choice(transitions))
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
        transitions = walker.transitions(state)
        if not transitions:
            return False
        state = walker.take(state, rng.choice(transitions))
        violation = walker.violation(state)
        assert violation == violated(state)
        if violation is not None:
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


def test_the_view_refuses_an_entry_of_another_epoch() -> None:
    """A truncating entry need not stand at the log end, but it is of the epoch its broker knows."""
    state = initial(SMALL, profile_named("kip320"))
    follower = state.brokers[1]
    assert follower.entry is not None
    asks = follower._replace(entry=follower.entry._replace(truncating=True, fetch_offset=1))
    assert view(state._replace(brokers=(state.brokers[0], asks)))[0][1][4] == 3
    stale = follower._replace(entry=follower.entry._replace(truncating=True, current_leader_epoch=7))
    with pytest.raises(IllegalStateError, match="fetcher entry"):
        view(state._replace(brokers=(state.brokers[0], stale)))
