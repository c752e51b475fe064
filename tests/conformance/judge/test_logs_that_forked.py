"""Logs that forked, told in part: of which records the epochs are lost, and what is known of those behind."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.conformance.hand import (
    CONFIG,
    TWO,
    broken,
    change,
    either_way,
    follow,
    judged,
    lead,
    reported,
    snapshot,
    start,
    takes,
)
from tidegauge.traces.schema import Event

KIP101 = replace(TWO, profile="kip101")
THREE_101 = replace(CONFIG, profile="kip101")
END = 12


def entry(epoch: int, begins: int) -> Event:
    """LeaderEpochFileCache#assign: a lower epoch evicts the entries of higher ones (before KIP-320; EPOCH-02 says so)."""
    return reported(2, "EpochCacheEntry", leader_epoch=epoch, epoch_start=begins)


def reads() -> tuple[Event, ...]:
    """Broker 2 leads, and serves each of its records, all as of epoch 0: FETCH-06 where it is known that they are not."""
    asked = ({"req_epoch": 9, "req_offset": at, "rec_base": at, "rec_end": at + 1} for at in range(END))
    served = (reported(2, "HandleFetch", peer=1, **each, error=0, rec_epoch=0) for each in asked)
    return (change(2, 9, (2,)), lead(2, 9, (2,), leo=END, hw=END), *served)


LOADED = reported(2, "Start", clean=True, leo=END, hw=0, log_start=0, epochs=((0, 0), (1, 1), (2, 2)))
LATE_FORK = (LOADED, entry(1, 5), entry(3, 6), entry(2, 8))
"""Which epochs the records 1 to 7 have is lost."""
EARLY_FORK = (
    reported(2, "Start", clean=True, leo=END, hw=0, log_start=0, epochs=((1, 0),)),
    entry(0, 1),
    entry(2, 3),
    entry(1, 5),
)
"""Those of the records 0 to 4 are."""
AGAIN = reported(2, "Start", clean=False, leo=END, hw=0, log_start=0, epochs=((0, 0), (1, 5), (2, 8)))
LIKE_NEW = reported(2, "Start", clean=True, leo=END, hw=0, log_start=0, epochs=((0, 0), (1, 5), (2, 8)))

FORKS: dict[str, tuple[Sequence[Event], int]] = {
    "none": ((LOADED,), 0),
    "two, one behind the other": (LATE_FORK, 7),
    "two, the first at the log start": (EARLY_FORK, 5),
    "one after another that was truncated": (
        (
            *LATE_FORK,
            reported(2, "TruncateToHighWatermark", target=1, leo=1, hw=0),
            snapshot(2, leo=END),
            entry(3, 3),
            entry(2, 6),
        ),
        3,
    ),
    "one that is loaded after a crash, up to where the log then ends": ((*LATE_FORK, reported(2, "Crash"), AGAIN), 11),
    "one that was lost with the disk": ((*EARLY_FORK, reported(2, "Crash"), reported(2, "LoseDisk"), LIKE_NEW), 0),
}


@pytest.mark.parametrize("case", FORKS)
def test_of_which_records_the_epochs_are_lost_where_a_log_forks(case: str) -> None:
    """FETCH-06 says nothing of them, and something of every other one."""
    events, lost = FORKS[case]
    for config in either_way(KIP101):
        tally = judged((*events, *reads()), config).tallies["FETCH-06"]
        # each read has two more checks, of where it begins and where it ends
        assert tally.held + tally.failed == 3 * END - lost


def test_a_log_that_begins_anew_has_no_fork() -> None:
    """Behind the reset to the leader's start nothing is left that recovery could read."""
    reset = {"leader_start": 20, "leader_end": 30, "target": 20, "leo": 20, "hw": 20, "log_start": 20}
    events = (
        *EARLY_FORK,
        follow(2, 1, 9, leo=END),
        reported(2, "HandleOutOfRange", peer=1, req_epoch=9, req_offset=END, **reset),
        reported(2, "Crash"),
        reported(2, "Start", clean=False, leo=20, hw=20, log_start=20),
    )
    for config in either_way(KIP101):
        assert "LOG-02" not in broken((*events, snapshot(2, epochs=())), config)
        assert "LOG-02" in broken((*events, snapshot(2, epochs=((7, 3),))), config)


def test_the_log_of_a_term_forks_where_its_leader_s_does() -> None:
    """The next leader has another first record, which is known of both."""
    other = (reported(1, "Start", clean=True, leo=END, hw=0, log_start=0, epochs=((5, 0),)), change(1, 10, (1,)))
    for config in either_way(KIP101):
        said = judged((*LATE_FORK, *reads(), *other, lead(1, 10, (1,), leo=END, hw=END)), config)
        assert [failure.actual for failure in said.failures if failure.rule == "DATA-01"] == [0]


FORKED_LEADER = (
    reported(2, "Start", clean=True, leo=3, hw=3, log_start=0, epochs=((0, 0), (1, 1))),
    entry(0, 2),
    change(2, 3, (2,)),
    lead(2, 3, (2,), leo=3, hw_before=3, hw=3),
)
"""Record 1 is of epoch 1, those around it of epoch 0; the cache says that the last one alone is."""
COPIES = (
    start(3, leo=1, epochs=((0, 0),)),
    follow(3, 2, 3, leo=1),
    reported(3, "SendFetch", peer=2, req_epoch=3, req_offset=1),
    reported(
        2,
        "HandleFetch",
        peer=3,
        req_epoch=3,
        req_offset=1,
        error=0,
        res_hw=3,
        rec_base=1,
        rec_end=3,
        rec_epoch=0,
        remote_leo=1,
        hw=3,
        leo=3,
    ),
    takes(3, 2, req_epoch=3, req_offset=1, error=0, res_hw=3, rec_base=1, rec_end=3, rec_epoch=0, leo=3, hw=3, log_start=0),
)
ANOTHER_TERM = (start(1, leo=3, epochs=((0, 0),)), change(1, 2, (1,)), lead(1, 2, (1,), leo=3, hw=3))


def test_records_from_a_log_that_forked_may_have_another_epoch_between() -> None:
    """The last one is of the epoch that the follower has; the one before it is not, and evicts the entry for a while."""
    for begin in ((), ANOTHER_TERM):
        for config in either_way(THREE_101):
            said = broken((*begin, *FORKED_LEADER, *COPIES, snapshot(3, epochs=((0, 2),))), config)
            assert "LOG-02" not in said


def test_a_fork_of_a_third_broker_does_not_matter() -> None:
    """Records of the epoch that the follower has, from a leader of which nothing is known, add no entry."""
    begin = (
        start(1, leo=2, epochs=((0, 0), (1, 1))),
        follow(1, 2, 3, leo=2),
        takes(1, 2, req_epoch=3, req_offset=2, error=0, rec_base=2, rec_end=3, rec_epoch=0, leo=3, log_start=0),
        start(3, leo=1, epochs=((0, 0),)),
        follow(3, 2, 3, leo=1),
    )
    records = takes(3, 2, req_epoch=3, req_offset=1, error=0, rec_base=1, rec_end=3, rec_epoch=0, leo=3, log_start=0)
    for config in either_way(THREE_101):
        assert "LOG-02" not in broken((*begin, records, snapshot(3, epochs=((0, 0),))), config)
        assert "LOG-02" in broken((*begin, records, snapshot(3, epochs=((0, 1),))), config)
