"""What others take away of the cores is seen, and what quiet ones would have needed is estimated from it."""

import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import pace
from benchmarks.pace import Pace, quiet_share


def test_cores_that_are_slowed_down_to_a_half_for_half_of_the_time_do_three_quarters() -> None:
    assert quiet_share([1.0] * 50 + [2.0] * 50) == 0.75


def test_one_sample_that_was_faster_than_all_others_is_no_pace() -> None:
    assert quiet_share([0.1] + [1.0] * 99) == 1.0


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=60), st.floats(0.01, 100))
def test_what_is_done_is_a_share_whatever_the_unit(samples: list[float], unit: float) -> None:
    share = quiet_share(samples)
    assert 0 < share <= 1
    assert quiet_share([unit * one for one in samples]) == pytest.approx(share)


def test_every_core_is_sampled_while_the_block_runs() -> None:
    with Pace() as seen:
        time.sleep(2.5 * pace.EVERY)
    assert len(seen.samples) >= (os.cpu_count() or 1)
    assert all(one > 0 for one in seen.samples)
    assert 0 < seen.share <= 1
