"""Walks that begin where few were: what is drawn is what is possible, and they can fail."""

import random

import pytest

from tidegauge.impl.cluster.cluster import FINDERS, actions, initial, step
from tidegauge.impl.explorer.explore import Walker, as_profile
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.explorer.invariants import violated
from validation.rare_walks import RareWalks
from validation.upgrades import WALKED, Pair, cluster_name, repaired

F1 = Pair("3.9.0", "3.9.1", (("response_epoch_checked", "off", "on"),))
SEED = "3"


def three(release: str) -> str:
    return cluster_name((release,) * 3, repaired(F1))


@pytest.mark.parametrize("seed", range(6))
def test_what_is_drawn_is_what_is_possible(seed: int) -> None:
    """In each state of a walk: the kinds of all actors have every action but Read, once, and lead where it does."""
    walker, rng = Walker(WALKED, three("3.9.0")), random.Random(seed)
    state = walker.start
    for _ in range(60):
        finders = [
            finder for kind in FINDERS if kind != "controller" for b in range(3) for finder in FINDERS[kind](state, b)
        ]
        found = [
            transition for finder in [*finders, *FINDERS["controller"](state, 0)] for transition in walker.found_by(finder)
        ]
        labels = sorted(transition.label for transition in found)
        assert labels == sorted(label for label in actions(state) if label[0] != "Read")
        if not found:
            break
        transition = rng.choice(found)
        before, state = state, walker.take(state, transition)
        assert state == step(before, transition.label)
        assert walker.violation(state) == violated(state)


def test_walks_see_f1_where_it_is_and_nothing_where_it_is_mended() -> None:
    """In a thousand walks of this seed; the run that breaks an invariant can be taken again, step by step."""
    seen = list(RareWalks(WALKED, as_profile(three("3.9.0"), 3), SEED).broken_walks(1000))
    assert seen, f"no walk of seed {SEED} breaks an invariant"
    state = initial(WALKED, as_profile(three("3.9.0"), 3))
    for label in seen[0].labels:
        assert violated(state) is None
        state = step(state, label)
    broken = violated(state)
    assert broken is not None, f"walk {seen[0].number} of seed {SEED} breaks nothing"
    assert broken.invariant == seen[0].invariant
    assert not list(RareWalks(WALKED, as_profile(three("3.9.1"), 3), SEED).broken_walks(1000)), f"seed {SEED}"


@pytest.mark.parametrize("fault", ["no-divergence-check", "hw-by-majority", "joins-at-epoch-start"])
def test_walks_see_a_wrong_rule(fault: str) -> None:
    """On few walks."""
    seen = list(RareWalks(WALKED, as_profile(three("3.9.1"), 3), SEED, FAULTS[fault].rules).broken_walks(300))
    assert seen, f"no walk of seed {SEED} breaks an invariant"
    assert seen == list(RareWalks(WALKED, as_profile(three("3.9.1"), 3), SEED, FAULTS[fault].rules).broken_walks(300))
