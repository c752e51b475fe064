"""The bound on processor time that other tests stand on."""

import time
from contextlib import suppress

import pytest

from tests.processor_time import TICK, processor_time

LITTLE, MUCH = 0.02, 60.0


def spin(seconds: float) -> None:
    begin = time.process_time()
    while time.process_time() - begin < seconds:
        pass


def test_a_block_that_takes_too_much_is_ended() -> None:
    with pytest.raises(TimeoutError), processor_time(LITTLE):
        spin(MUCH)


def test_blocks_within_a_block_take_of_its_time() -> None:
    """Each ends in time; all of them together do not."""

    def one_after_the_other() -> None:
        while True:
            with suppress(TimeoutError), processor_time(2 * LITTLE):
                spin(LITTLE)

    with pytest.raises(TimeoutError), processor_time(5 * LITTLE):
        one_after_the_other()


def test_blocks_shorter_than_a_tick_take_of_its_time_too() -> None:
    def one_after_the_other() -> None:
        while True:
            with processor_time(MUCH):
                pass

    with pytest.raises(TimeoutError), processor_time(5 * LITTLE):
        one_after_the_other()


def test_a_block_within_a_block_has_no_more_time_than_that() -> None:
    with pytest.raises(TimeoutError), processor_time(LITTLE), processor_time(MUCH):
        spin(MUCH)


def test_a_block_that_ends_is_not_ended_again() -> None:
    """What it does then, and what processor_time does, may take more than a tick."""
    with processor_time(LITTLE):
        with suppress(BaseException):
            spin(MUCH)
        spin(10 * TICK)


def test_a_block_that_goes_on_all_the_same_is_ended_later() -> None:
    def goes_on() -> None:
        with suppress(BaseException):
            spin(MUCH)
        spin(MUCH)

    with pytest.raises(TimeoutError), processor_time(LITTLE):
        goes_on()


def test_after_a_block_nothing_is_bounded() -> None:
    with suppress(TimeoutError), processor_time(LITTLE), processor_time(LITTLE):
        spin(MUCH)
    spin(3 * LITTLE)
